"""q-sparse token regression (Definition 2): every position points to q tokens, and its label is a function of them."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from qstr_jax.settings import checks
from qstr_jax.tasks import encoders, encodings, links
from qstr_jax.tasks.base import Base
from qstr_jax.tasks.task import Draw, Prompt, register

INDICES = ('uniform', 'half')
TOKENS = ('gaussian', 'half')


@register('qstr')
@dataclasses.dataclass(frozen=True)
class QSTR(Base):
    """qSTR: x ~ N(0, I), t_i uniform on [N]^q for every position i, y_i = g(x_{t_i1}, …, x_{t_iq}).

    A task of your own inherits from this class and overrides `draw_indices`, `draw_tokens` or `labels`.

    Attributes:
        seq_len: N, at least 2.
        sparsity: q, 1 ≤ q ≤ N.
        token_dim: d.
        link: g, a registered link; in Python also a `links.Link` or a function x (q, d) → scalar.
        indices: distribution of t. 'uniform' on [N]^q; 'half': t_i = (1, …, q) where i ≥ N/2 and uniform elsewhere
            (Propositions 3 and 21); in Python also a function (key, seq_len, sparsity) → t (N, q).
        tokens: distribution of x. 'gaussian': N(0, I); 'half': the first ⌈N/2⌉ − 1 tokens are Gaussian and the others
            zero (Propositions 3 and 21); in Python also a function (key, seq_len, token_dim) → x (N, d).
        encoding: the registered encoding of positions.
        encoding_factor: c, makes d_e = ⌊c ln N⌋; None is 5, or whatever `encoding_dim` says.
        encoding_dim: d_e; None is ⌊c ln N⌋.
        encoding_scale: 'unscaled', or 'scaled' by √(d/q).
        max_coherence: largest |⟨ω_i, ω_j⟩| that is accepted for i ≠ j; 1 accepts any.
        distinct_encodings: whether a vector that equals an earlier one is drawn again.

    Raises:
        ValueError: a size is impossible or a name unknown.
    """

    # Whether all positions share one row of t.
    shares_indices: ClassVar[bool] = False

    seq_len: int = 8
    sparsity: int = 1
    token_dim: int = 10
    link: str | links.Link | Callable = 'linear'
    indices: str | Callable = 'uniform'
    tokens: str | Callable = 'gaussian'
    encoding: str | encoders.Encoder = 'rademacher'
    encoding_factor: float | None = None
    encoding_dim: int | None = None
    encoding_scale: str = 'unscaled'
    max_coherence: float = 1.0
    distinct_encodings: bool = True

    def __post_init__(self) -> None:
        checks.integer('seq_len', self.seq_len, 2)
        checks.integer('sparsity', self.sparsity)
        checks.integer('token_dim', self.token_dim)
        if self.sparsity > self.seq_len:
            raise ValueError(f'sparsity={self.sparsity}: must be at most seq_len={self.seq_len} (q ≤ N)')
        self._fill_in_encodings()
        encodings.scale_factor(self.encoding_scale, self.token_dim, self.sparsity)
        object.__setattr__(self, 'link', links.get(self.link))
        for name, value, known in (('indices', self.indices, INDICES), ('tokens', self.tokens, TOKENS)):
            if not callable(value) and value not in known:
                raise ValueError(f'{name}={value!r}: must be a function, or one of {", ".join(known)}')
        if self.indices == 'half' and self.shares_indices:
            raise ValueError("indices='half': positions have different indices, so the task must be 'qstr'")
        if self.indices == 'half' and 2 * self.sparsity >= self.seq_len:
            raise ValueError(f"sparsity={self.sparsity}: indices='half' needs q < N/2, N = {self.seq_len}")

    @property
    def scale(self) -> float:
        """Factor of the encodings: √(d/q) or 1."""
        return encodings.scale_factor(self.encoding_scale, self.token_dim, self.sparsity)

    @property
    def embedding_dim(self) -> int:
        """D_e = d + (q+1) d_e, the width of an encoded token."""
        return self.token_dim + (self.sparsity + 1) * self._encoding_dim

    @property
    def num_gaussian(self) -> int:
        """Number of leading tokens that are not zero: N, or for 'half' the i < N/2 (1-based) of Proposition 3."""
        return (self.seq_len + 1) // 2 - 1 if self.tokens == 'half' else self.seq_len

    @property
    def stream_name(self) -> str:
        """The text that random streams depend on: name, N, q and d. Two links see the same tokens and indices."""
        return f'{self.name} N={self.seq_len} q={self.sparsity} d={self.token_dim}'

    def draw_link(self, key: jax.Array) -> Any:
        """Draws the link's parameters."""
        return links.get(self.link).init(key, self.sparsity, self.token_dim)

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt."""
        return self._prompt(key, self._numbers(key), link_params)

    def samples(self, keys_B: jax.Array, link_params: Any) -> Prompt:
        """Draws a prompt for each key.

        The random numbers are drawn in a loop over two halves of the keys. The result of a loop is flat in memory, so
        Φ^{-1} runs over long rows. Otherwise XLA would compute it inside loops over the (N, d) tokens, which is four
        times as slow on a CPU at d = 10.
        """
        numbers = in_halves(self._numbers, keys_B)
        return jax.vmap(lambda key, own: self._prompt(key, own, link_params))(keys_B, numbers)

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens z (N, D_e) of one prompt."""
        return encodings.encode(prompt.x_NxD, prompt.t_NxQ, task_draw.encodings.omega_NxE, self.scale)

    def labels(self, x_NxD: jax.Array, t_NxQ: jax.Array, link_params: Any) -> jax.Array:
        """Labels y_i = g(x_{t_i1}, …, x_{t_iq}), (N,).

        Args:
            x_NxD: tokens, (N, d).
            t_NxQ: indices, (N, q).
            link_params: `Draw.link`.
        """
        g = links.get(self.link).apply
        if self.shares_indices:  # one t, so one label
            return jnp.broadcast_to(g(link_params, x_NxD[t_NxQ[0]]), (self.seq_len,))
        return jax.vmap(lambda t_Q: g(link_params, x_NxD[t_Q]))(t_NxQ)

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The labels, (N,): a predictor that knows the link has no error."""
        return self.labels(prompt.x_NxD, prompt.t_NxQ, link_params)

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """E[y_i | x] = mean_m g(x_m, …, x_m), (N,), of uniform indices and links that are sums over tokens."""
        return jnp.broadcast_to(jnp.mean(self.alike(prompt.x_NxD, link_params)), (self.seq_len,))

    def alike(self, x_NxD: jax.Array, link_params: Any) -> jax.Array:
        """g(x_m, …, x_m) of each token, (N,)."""
        g = links.get(self.link).apply
        return jax.vmap(lambda x_D: g(link_params, jnp.broadcast_to(x_D, (self.sparsity, self.token_dim))))(x_NxD)

    def draw_indices(self, key: jax.Array, unit_RxQ: jax.Array) -> jax.Array:
        """Indices (R, q) in 0..N-1: R = N rows, or a single row that all positions share.

        Args:
            key: for a distribution of your own.
            unit_RxQ: uniform numbers in [0, 1).
        """
        if callable(self.indices):
            t_NxQ = self.indices(jax.random.fold_in(key, 0), self.seq_len, self.sparsity)
            check_shape('indices', t_NxQ, self.seq_len, self.sparsity)
            return t_NxQ.astype(jnp.int32)[: self._num_rows]
        t_RxQ = uniform_indices(unit_RxQ, self.seq_len)
        if self.indices == 'half':
            is_fixed_N = 2 * (jnp.arange(self.seq_len) + 1) >= self.seq_len
            t_RxQ = jnp.where(is_fixed_N[:, None], jnp.arange(self.sparsity)[None, :], t_RxQ)
        return t_RxQ

    def draw_tokens(self, key: jax.Array, normal_GxD: jax.Array) -> jax.Array:
        """Tokens x (N, d).

        Args:
            key: for a distribution of your own.
            normal_GxD: standard normal numbers, a row for each token that is not zero.
        """
        if callable(self.tokens):
            x_NxD = self.tokens(jax.random.fold_in(key, 1), self.seq_len, self.token_dim)
            check_shape('tokens', x_NxD, self.seq_len, self.token_dim)
            return x_NxD
        return jnp.pad(normal_GxD, ((0, self.seq_len - self.num_gaussian), (0, 0)))

    @property
    def _num_rows(self) -> int:
        return 1 if self.shares_indices else self.seq_len

    @property
    def _shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the normals and of the uniforms that make up a prompt."""
        num_tokens = 0 if callable(self.tokens) else self.num_gaussian
        num_rows = 0 if callable(self.indices) else self._num_rows
        return (num_tokens, self.token_dim), (num_rows, self.sparsity)

    def _numbers(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Normals and uniforms of one prompt, flat."""
        return normals_and_uniforms(key, *map(math.prod, self._shapes))

    def _prompt(self, key: jax.Array, numbers: tuple[jax.Array, jax.Array], link_params: Any) -> Prompt:
        """A prompt from its numbers."""
        normal, unit = (flat.reshape(shape) for flat, shape in zip(numbers, self._shapes, strict=True))
        x_NxD = self.draw_tokens(key, normal)
        check_shape('draw_tokens', x_NxD, self.seq_len, self.token_dim)
        t_RxQ = self.draw_indices(key, unit)
        t_NxQ = jnp.broadcast_to(t_RxQ, (self.seq_len, self.sparsity))
        y_N = self.labels(x_NxD, t_NxQ, link_params)
        check_shape('labels', y_N, self.seq_len)
        return Prompt(x_NxD, t_NxQ, y_N)


@register('simple_qstr')
@dataclasses.dataclass(frozen=True)
class SimpleQSTR(QSTR):
    """simple-qSTR: qSTR with t_i = t for all positions i, one t in each prompt."""

    shares_indices: ClassVar[bool] = True


def normals_and_uniforms(key: jax.Array, num_normals: int, num_uniforms: int) -> tuple[jax.Array, jax.Array]:
    """Standard normal numbers, and uniform ones in [0, 1), from a single draw of bits.

    A single draw compiles several times faster than separate ones and runs in half the time.
    """
    smallest = jnp.nextafter(jnp.float32(-1), jnp.float32(0))
    uniform = jax.random.uniform(key, (num_normals + num_uniforms,), jnp.float32, smallest, 1.0)
    # Φ^{-1} of the uniforms: the normals that jax.random.normal makes of the same bits.
    normal = jnp.sqrt(jnp.float32(2)) * jax.lax.erf_inv(uniform[:num_normals])
    return normal, (uniform[num_normals:] + 1) / 2


def uniform_indices(unit: jax.Array, seq_len: int) -> jax.Array:
    """⌊uniform · N⌋, integers in 0..N-1."""
    # Only a guard: the largest uniform is 1 − 2⁻²³, so the product stays below N.
    return jnp.minimum((unit * seq_len).astype(jnp.int32), seq_len - 1)


def check_shape(name: str, array: jax.Array, *shape: int) -> None:
    """Raises ValueError if a user's function returned another shape, which would be broadcast silently."""
    if jnp.shape(array) != shape:
        raise ValueError(f'{name}: the function must return shape {shape}, not {jnp.shape(array)}')


def in_halves(function: Callable, keys_B: jax.Array) -> Any:
    """`function` of each key; an even number of keys is processed in two halves, one after the other."""
    size = len(keys_B)
    if size % 2:
        return jax.vmap(function)(keys_B)
    halves = jax.lax.map(jax.vmap(function), keys_B.reshape(2, size // 2))
    return jax.tree.map(lambda leaf: leaf.reshape(size, *leaf.shape[2:]), halves)
