"""q-sparse token regression (Definition 2): prompts, labels, and what is drawn once per task.

Everything is written for one prompt. A dataset is a pure function: example i of a stream with key `key` is
`sample(fold_in(key, i))`, so nothing is stored and training sets are nested in n.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from qstr_jax.tasks import encodings, links, streams

# 'qstr': every position has its own t_i. 'simple_qstr': t_i = t for all i, one t per prompt.
NAMES = ('qstr', 'simple_qstr')
INDICES = ('uniform', 'half')
TOKENS = ('gaussian', 'half')


class Prompt(NamedTuple):
    """One prompt and its labels: tokens x (N, d), indices t (N, q) in 0..N-1, labels y (N,)."""

    x_NxD: jax.Array
    t_NxQ: jax.Array
    y_N: jax.Array


class DrawError(ValueError):
    """The encodings of a task could not be drawn."""


class Draw(NamedTuple):
    """What a task draws once: the link's parameters and the encodings."""

    link: Any
    encodings: encodings.Encodings


def _check_integer(name, value, least):
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f'{name}={value!r}: must be an integer, at least {least}')


@dataclasses.dataclass(frozen=True)
class Task:
    """Static settings of a task.

    Attributes:
        name: 'qstr' or 'simple_qstr'.
        seq_len: N, at least 2.
        sparsity: q, 1 ≤ q ≤ N.
        token_dim: d.
        link: a name known to `links.get`, a `links.Link`, or a function x (q, d) → scalar.
        indices: distribution of t. 'uniform' on [N]^q; 'half': t_i = (1, …, q) where i ≥ N/2 and uniform
            elsewhere (Propositions 3 and 21); or a function (key, seq_len, sparsity) → t (N, q), of which
            'simple_qstr' uses row 0.
        tokens: distribution of x. 'gaussian': N(0, I); 'half': the first ⌈N/2⌉ − 1 tokens are Gaussian and
            the others zero (Propositions 3 and 21); or a function (key, seq_len, token_dim) → x (N, d).
        encoding_dim: d_e; None is ⌊5 ln N⌋.
        encoding_scale: 'unscaled', or 'scaled' by √(d/q).
        max_coherence: largest |⟨ω_i, ω_j⟩|, i ≠ j, by rejection; 1 accepts all.
        distinct_encodings: redraw a vector that equals an earlier one.

    Raises:
        ValueError: a size is impossible or a name unknown.
    """

    name: str = 'qstr'
    seq_len: int = 8
    sparsity: int = 1
    token_dim: int = 10
    link: str | links.Link | Callable = 'linear'
    indices: str | Callable = 'uniform'
    tokens: str | Callable = 'gaussian'
    encoding_dim: int | None = None
    encoding_scale: str = 'unscaled'
    max_coherence: float = 1.0
    distinct_encodings: bool = True

    def __post_init__(self):
        if self.name not in NAMES:
            raise ValueError(f'task={self.name!r}: unknown, one of {", ".join(NAMES)}')
        _check_integer('seq_len', self.seq_len, 2)
        _check_integer('sparsity', self.sparsity, 1)
        _check_integer('token_dim', self.token_dim, 1)
        if self.sparsity > self.seq_len:
            raise ValueError(f'sparsity={self.sparsity}: must be at most seq_len={self.seq_len} (q ≤ N)')
        if self.encoding_dim is None:
            object.__setattr__(self, 'encoding_dim', encodings.default_encoding_dim(self.seq_len))
        _check_integer('encoding_dim', self.encoding_dim, 1)
        is_number = isinstance(self.max_coherence, (int, float))
        if not is_number or not 0 < self.max_coherence <= 1:
            raise ValueError(f'max_coherence={self.max_coherence!r}: must lie in (0, 1]')
        if self.distinct_encodings and 2**self.encoding_dim < self.seq_len:
            raise ValueError(
                f'encoding_dim={self.encoding_dim}: there are only {2**self.encoding_dim} distinct '
                f'encodings for seq_len={self.seq_len}; take encoding_dim ≥ {(self.seq_len - 1).bit_length()}'
            )
        encodings.scale_factor(self.encoding_scale, self.token_dim, self.sparsity)
        object.__setattr__(self, 'link', links.get(self.link))
        self._check_distributions()

    def _check_distributions(self):
        for name, value, known in (
            ('indices', self.indices, INDICES),
            ('tokens', self.tokens, TOKENS),
        ):
            if not callable(value) and value not in known:
                raise ValueError(f'{name}={value!r}: a function, or one of {", ".join(known)}')
        if self.indices == 'half':
            if self.name == 'simple_qstr':
                raise ValueError("indices='half': the positions differ, so the task must be 'qstr'")
            if 2 * self.sparsity >= self.seq_len:
                raise ValueError(f"sparsity={self.sparsity}: indices='half' needs q < N/2, N = {self.seq_len}")

    @property
    def scale(self):
        """Factor of the encodings: √(d/q) or 1."""
        return encodings.scale_factor(self.encoding_scale, self.token_dim, self.sparsity)

    @property
    def embedding_dim(self):
        """D_e = d + (q+1) d_e, the width of an encoded token."""
        return self.token_dim + (self.sparsity + 1) * self.encoding_dim

    @property
    def num_gaussian(self):
        """How many leading tokens are non-zero: N, or the i < N/2 (1-based) of Proposition 3."""
        return (self.seq_len + 1) // 2 - 1 if self.tokens == 'half' else self.seq_len


def draw(key, task):
    """Link parameters and encodings of one task; pure. Check it with `check_draw` on the host."""
    key_link, key_encodings = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    return Draw(
        link=task.link.init(key_link, task.sparsity, task.token_dim),
        encodings=encodings.draw(
            key_encodings,
            task.seq_len,
            task.encoding_dim,
            task.max_coherence,
            task.distinct_encodings,
        ),
    )


def check_draw(complete, task):
    """Raises DrawError when the encodings of a `Draw` are not `complete` (which may be batched)."""
    if not bool(jnp.all(complete)):
        raise DrawError(
            f'encoding_dim={task.encoding_dim}: too small to draw seq_len={task.seq_len} distinct vectors with '
            f'max_coherence={task.max_coherence}; 16-20 ln N, here '
            f'{round(18 * encodings.default_encoding_dim(task.seq_len) / 5)}, meets even 1/2'
        )


def labels(x_NxD, t_NxQ, task, link_params):
    """Labels y_i = g(x_{t_i1}, …, x_{t_iq}), (N,)."""
    g = task.link.apply
    if task.name == 'simple_qstr':  # one t, so one label
        return jnp.broadcast_to(g(link_params, x_NxD[t_NxQ[0]]), (task.seq_len,))
    return jax.vmap(lambda t_Q: g(link_params, x_NxD[t_Q]))(t_NxQ)


def _uniform_indices(unit, seq_len):
    """⌊uniform · N⌋; the minimum guards against a product that rounds up to N."""
    return jnp.minimum((unit * seq_len).astype(jnp.int32), seq_len - 1)


def _check_shape(name, array, *shape):
    """What a user's function returns: any other shape would broadcast in silence."""
    if jnp.shape(array) != shape:
        raise ValueError(f'{name}: the function must return shape {shape}, not {jnp.shape(array)}')


def _draw_indices(key, unit_RxQ, task):
    if callable(task.indices):
        t_NxQ = task.indices(jax.random.fold_in(key, 0), task.seq_len, task.sparsity)
        _check_shape('indices', t_NxQ, task.seq_len, task.sparsity)
        rows = 1 if task.name == 'simple_qstr' else task.seq_len
        t_RxQ = t_NxQ.astype(jnp.int32)[:rows]
    else:
        t_RxQ = _uniform_indices(unit_RxQ, task.seq_len)
    if task.indices == 'half':
        is_fixed_N = 2 * (jnp.arange(task.seq_len) + 1) >= task.seq_len
        t_RxQ = jnp.where(is_fixed_N[:, None], jnp.arange(task.sparsity)[None, :], t_RxQ)
    return jnp.broadcast_to(t_RxQ, (task.seq_len, task.sparsity))


def _draw_tokens(key, normal_GxD, task):
    if callable(task.tokens):
        x_NxD = task.tokens(jax.random.fold_in(key, 1), task.seq_len, task.token_dim)
        _check_shape('tokens', x_NxD, task.seq_len, task.token_dim)
        return x_NxD
    return jnp.pad(normal_GxD, ((0, task.seq_len - task.num_gaussian), (0, 0)))


def _sizes(task):
    """Shapes of the normals and of the uniforms that a prompt is cut out of."""
    num_tokens = 0 if callable(task.tokens) else task.num_gaussian
    num_rows = 1 if task.name == 'simple_qstr' else task.seq_len
    num_rows = 0 if callable(task.indices) else num_rows
    return (num_tokens, task.token_dim), (num_rows, task.sparsity)


def _numbers(key, task):
    """Normals, then uniforms of one prompt, flat, of one draw of bits.

    One draw compiles several times faster and runs in half the time of separate ones.
    """
    num_normals, num_uniforms = map(math.prod, _sizes(task))
    smallest = jnp.nextafter(jnp.float32(-1), jnp.float32(0))
    uniform = jax.random.uniform(key, (num_normals + num_uniforms,), jnp.float32, smallest, 1.0)
    # Φ^{-1} of the uniforms: the normals that jax.random.normal makes of the same bits.
    normal = jnp.sqrt(jnp.float32(2)) * jax.lax.erf_inv(uniform[:num_normals])
    return normal, (uniform[num_normals:] + 1) / 2


def _prompt(key, numbers, task, link_params):
    """A prompt from its numbers; the key is for the distributions that a user brings."""
    normal, unit = (flat.reshape(shape) for flat, shape in zip(numbers, _sizes(task), strict=True))
    x_NxD = _draw_tokens(key, normal, task)
    t_NxQ = _draw_indices(key, unit, task)
    chex.assert_shape(x_NxD, (task.seq_len, task.token_dim))
    return Prompt(x_NxD, t_NxQ, labels(x_NxD, t_NxQ, task, link_params))


def sample(key, task, link_params):
    """Draws one prompt: x ~ N(0, I_{Nd}), t uniform on [N]^q and independent of x, y = g(x_t).

    Args:
        key: typed key of this prompt.
        task: `Task`.
        link_params: `Draw.link`.

    Returns:
        `Prompt`.
    """
    return _prompt(key, _numbers(key, task), task, link_params)


def samples(keys_B, task, link_params):
    """`sample` of each key: a `Prompt` with a leading axis.

    Numbers are drawn in a loop of two halves. A loop's result lies in memory flat, so Φ^{-1} runs over long rows; XLA
    would else compute it inside loops over the (N, d) tokens, four times as slow on a CPU at d = 10.
    """
    numbers = _in_halves(lambda key: _numbers(key, task), keys_B)
    return jax.vmap(lambda key, own: _prompt(key, own, task, link_params))(keys_B, numbers)


def _in_halves(function, keys_B):
    """`function` of each key, one half of an even number of keys after the other."""
    size = len(keys_B)
    if size % 2:
        return jax.vmap(function)(keys_B)
    halves = jax.lax.map(jax.vmap(function), keys_B.reshape(2, size // 2))
    return jax.tree.map(lambda leaf: leaf.reshape(size, *leaf.shape[2:]), halves)


def examples(key, indices_B, task, link_params):
    """Examples number `indices_B` of the stream `key`: a `Prompt` with a leading axis."""
    return samples(jax.vmap(jax.random.fold_in, (None, 0))(key, indices_B), task, link_params)


def encode(prompt, task, task_draw):
    """Embedded tokens z (N, D_e) of one prompt."""
    return encodings.encode(prompt.x_NxD, prompt.t_NxQ, task_draw.encodings.omega_NxE, task.scale)


def positions(key, indices_B, seq_len):
    """The j(i) ~ Unif[N] of the point-wise risk (2.3): a function of the example, so drawn once."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, indices_B)
    return jax.vmap(lambda k: jax.random.randint(k, (), 0, seq_len))(keys)


def task_key(seed, task):
    """Key that `draw` is called with."""
    return streams.stream_key(seed, 'task', task)
