"""The interface of a task: it draws labelled prompts one at a time, and once what all of its prompts share.

A dataset is a pure function: example i of a stream with key `key` is drawn from `fold_in(key, i)`, so nothing is stored
and training sets are nested in n.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import jax

from qstr_jax import failures, registry
from qstr_jax.tasks import encodings, streams

REGISTRY = registry.Registry('task', 'task')
Kind = TypeVar('Kind', bound=type[Any])


class Prompt(NamedTuple):
    """One prompt and its labels: tokens x (N, d), indices t (N, q) in 0..N-1, labels y (N,)."""

    x_NxD: jax.Array
    t_NxQ: jax.Array
    y_N: jax.Array


class DrawError(ValueError):
    """The encodings of a task could not be drawn."""


class Draw(NamedTuple):
    """What a task draws once: the parameters of its link, and its positional encodings."""

    link: Any
    encodings: encodings.Encodings


class Task(Protocol):
    """What samplers, learners and models need of a task. Its settings are the fields of a frozen dataclass.

    Attributes:
        name: as registered.
        seq_len: N.
        embedding_dim: D_e, width of an encoded token.
        stream_name: text that its random streams depend on, besides the seed.
    """

    name: ClassVar[str]
    seq_len: int

    @property
    def embedding_dim(self) -> int: ...
    @property
    def stream_name(self) -> str: ...
    def draw(self, key: jax.Array) -> Draw:
        """Draws what all prompts share.

        Args:
            key: of `task_key`.
        """
        ...

    def check_draw(self, complete: jax.Array) -> None:
        """Raises DrawError when encodings could not be drawn.

        Args:
            complete: of `Draw.encodings`, of one lane or of many.
        """
        ...

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt.

        Args:
            key: typed key of this prompt.
            link_params: `Draw.link`.
        """
        ...

    def samples(self, keys_B: jax.Array, link_params: Any) -> Prompt:
        """Draws a prompt for each key: a `Prompt` with a leading axis.

        Args:
            keys_B: typed keys, (B,).
            link_params: `Draw.link`.
        """
        ...

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens z (N, D_e) of one prompt.

        Args:
            prompt: one prompt.
            task_draw: has the encodings.
        """
        ...


def register(name: str) -> Callable[[Kind], Kind]:
    """Decorator that registers a frozen dataclass as a task; its fields are its settings.

    Args:
        name: the name that sweeps use.

    Raises:
        ValueError: the name is taken, or the class is not a dataclass.
    """

    def add(kind: Kind) -> Kind:
        kind.name = name
        REGISTRY.add(name, kind)
        return kind

    return add


def names() -> tuple[str, ...]:
    """Names of all tasks."""
    return REGISTRY.names()


def build(name: str, **settings: Any) -> Any:
    """The task of a name.

    Args:
        name: as registered.
        **settings: its settings; the others have their defaults.

    Raises:
        ValueError: an unknown name or setting, or an impossible value.
    """
    entry = REGISTRY.get(name)
    settings = entry.schema.checked(settings, name, is_bare=True)
    with failures.named(f'task={name!r}'):
        return entry.builder(**settings)


def sibling(task: Any, name: str) -> Any:
    """Another task, with the values of all settings that the two have in common.

    Args:
        task: the task that has the values.
        name: of the other one.

    Raises:
        ValueError: an unknown name, or values that are impossible for the other task.
    """
    entry = REGISTRY.get(name)
    fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    return entry.builder(**{field: value for field, value in fields.items() if field in entry.schema})


def draw(key: jax.Array, task: Task) -> Draw:
    """Draws the link's parameters and the encodings of a task; pure. Check the result with `check_draw` on the host.

    Args:
        key: of `task_key`.
        task: the task.
    """
    return task.draw(key)


def check_draw(complete: jax.Array, task: Task) -> None:
    """Raises DrawError when encodings could not be drawn.

    Args:
        complete: of `Draw.encodings`, of one lane or of many.
        task: the task.
    """
    task.check_draw(complete)


def sample(key: jax.Array, task: Task, link_params: Any) -> Prompt:
    """Draws one prompt.

    Args:
        key: typed key of this prompt.
        task: the task.
        link_params: `Draw.link`.
    """
    return task.sample(key, link_params)


def samples(keys_B: jax.Array, task: Task, link_params: Any) -> Prompt:
    """`sample` of each key: a `Prompt` with a leading axis.

    Args:
        keys_B: typed keys (B,).
        task: the task.
        link_params: `Draw.link`.
    """
    return task.samples(keys_B, link_params)


def examples(key: jax.Array, indices_B: jax.Array, task: Task, link_params: Any) -> Prompt:
    """Examples of a stream: a `Prompt` with a leading axis.

    Args:
        key: of the stream, `streams.stream_key`.
        indices_B: numbers of the examples (B,).
        task: the task.
        link_params: `Draw.link`.
    """
    return samples(jax.vmap(jax.random.fold_in, (None, 0))(key, indices_B), task, link_params)


def encode(prompt: Prompt, task: Task, task_draw: Draw) -> jax.Array:
    """Encoded tokens z (N, D_e) of one prompt.

    Args:
        prompt: one prompt.
        task: the task.
        task_draw: the task's `Draw`.
    """
    return task.encode(prompt, task_draw)


def positions(key: jax.Array, indices_B: jax.Array, seq_len: int) -> jax.Array:
    """The positions j(i) ~ Unif[N] of the point-wise risk (2.3), (B,); each depends on the example alone.

    Args:
        key: of the stream 'position'.
        indices_B: numbers of the examples (B,).
        seq_len: N.
    """
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, indices_B)
    return jax.vmap(lambda k: jax.random.randint(k, (), 0, seq_len))(keys)


def task_key(seed: Any, task: Task) -> jax.Array:
    """The key that `draw` is called with.

    Args:
        seed: integer, may be traced.
        task: the task.
    """
    return streams.stream_key(seed, 'task', task)
