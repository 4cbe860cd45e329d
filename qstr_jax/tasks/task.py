"""The interface of a task: it draws labelled prompts one at a time, and once what all of its prompts share.

A dataset is a pure function: example i of a stream with key `key` is drawn from `fold_in(key, i)`, so nothing is stored
and training sets are nested in n.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from qstr_jax import failures
from qstr_jax.settings import registry
from qstr_jax.tasks import encodings, streams

REGISTRY = registry.Registry('task', 'task')
Kind = TypeVar('Kind', bound=type[Any])


class Prompt(NamedTuple):
    """One prompt and its labels.

    Attributes:
        x_NxD: tokens.
        t_NxQ: the positions that each label is made of, in 0..N-1; (N, 0) where the question makes no sense.
        y_N: labels: numbers (N,) or (N, C), or with `loss` 'cross_entropy' classes 0..C-1, integers (N,).
        weights_N: how much each position counts in the risks, at least 0 and not all 0; None: all the same.
        length: n, of a prompt that ends after n ≤ N tokens; the others are padding, which no model can read and which
            does not count. None: N.
    """

    x_NxD: jax.Array
    t_NxQ: jax.Array
    y_N: jax.Array
    weights_N: jax.Array | None = None
    length: jax.Array | None = None

    @property
    def counts_N(self) -> jax.Array | None:
        """The weights, 0 at padding; None where all positions count the same."""
        if self.length is None:
            return self.weights_N
        is_there_N = (jnp.arange(self.x_NxD.shape[-2]) < self.length).astype(jnp.float32)
        return is_there_N if self.weights_N is None else is_there_N * self.weights_N


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
        num_outputs: C, numbers that a model predicts at each position.
        loss: 'squared', or 'cross_entropy' with C logits at each position.
    """

    name: ClassVar[str]
    seq_len: int

    @property
    def embedding_dim(self) -> int: ...
    @property
    def stream_name(self) -> str: ...
    @property
    def num_outputs(self) -> int: ...
    @property
    def loss(self) -> str: ...
    def draw(self, key: jax.Array) -> Draw:
        """Draws what all prompts share; the key is of `task_key`."""
        ...

    def check_draw(self, complete: jax.Array) -> None:
        """Raises DrawError when encodings could not be drawn.

        Args:
            complete: of `Draw.encodings`, of one lane or of many.
        """
        ...

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt. With a third argument `stream` it is told which stream asks, to split finite data.

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

    def no_retrieval(self, threshold_on: str) -> float | None:
        """Test error of the best predictor that does not look up what is asked for; None where it is not known.

        Args:
            threshold_on: 'loss', or 'error_rate' for 1 − accuracy.
        """
        ...

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens z (N, D_e) of one prompt."""
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

    Raises ValueError for an unknown name, and where these values are impossible for that task.
    """
    entry = REGISTRY.get(name)
    fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    return entry.builder(**{field: value for field, value in fields.items() if field in entry.schema})


def draw(key: jax.Array, task: Task) -> Draw:
    """Draws the link's parameters and the encodings of a task; pure. The key is of `task_key`.

    On the host, `task.check_draw` checks the result.
    """
    return task.draw(key)


def sample(key: jax.Array, task: Task, link_params: Any, stream: str = 'train') -> Prompt:
    """Draws one prompt.

    Args:
        key: typed key of this prompt.
        task: the task.
        link_params: `Draw.link`.
        stream: 'train', 'validation' or 'test', for tasks that split finite data.
    """
    return task.sample(key, link_params, **({'stream': stream} if is_split(task) else {}))


def samples(keys_B: jax.Array, task: Task, link_params: Any, stream: str = 'train') -> Prompt:
    """`sample` of each key: a `Prompt` with a leading axis.

    Args:
        keys_B: typed keys (B,).
        task: the task.
        link_params: `Draw.link`.
        stream: as for `sample`.
    """
    if is_split(task):
        return jax.vmap(lambda key: sample(key, task, link_params, stream))(keys_B)
    return task.samples(keys_B, link_params)


def is_split(task: Task) -> bool:
    """Whether a task splits its data between streams: its `sample` has an argument `stream`."""
    return 'stream' in inspect.signature(type(task).sample).parameters


def examples(key: jax.Array, indices_B: jax.Array, task: Task, link_params: Any, stream: str = 'train') -> Prompt:
    """Examples of a stream, by their numbers (B,): a `Prompt` with a leading axis; the key is `stream_key`'s."""
    return samples(jax.vmap(jax.random.fold_in, (None, 0))(key, indices_B), task, link_params, stream)


def encode(prompt: Prompt, task: Task, task_draw: Draw) -> jax.Array:
    """Encoded tokens z (N, D_e) of one prompt; of more than N encodings the first N are taken."""
    if len(task_draw.encodings.omega_NxE) > task.seq_len:
        omega_NxE = task_draw.encodings.omega_NxE[: task.seq_len]
        task_draw = task_draw._replace(encodings=task_draw.encodings._replace(omega_NxE=omega_NxE))
    return task.encode(prompt, task_draw)


def positions(key: jax.Array, indices_B: jax.Array, seq_len: int, counts_BxN: jax.Array | None = None) -> jax.Array:
    """The positions j(i) of the point-wise risk (2.3), (B,); each depends only on the example, by its number.

    The key is of the stream 'position'. The probability of j is proportional to `Prompt.counts_N`; None: j ~ Unif[N].
    """
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, indices_B)
    if counts_BxN is not None:
        return jax.vmap(lambda k, counts_N: jax.random.categorical(k, jnp.log(counts_N)))(keys, counts_BxN)
    return jax.vmap(lambda k: jax.random.randint(k, (), 0, seq_len))(keys)


def task_key(seed: Any, task: Task) -> jax.Array:
    """The key that `draw` is called with; the seed is an integer, which may be traced."""
    return streams.stream_key(seed, 'task', task)
