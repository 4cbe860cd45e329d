"""What tasks start from: one number at each position, squared loss, prompts drawn one by one, positions encoded."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from qstr_jax.settings import checks
from qstr_jax.tasks import encoders, encodings
from qstr_jax.tasks.task import Draw, DrawError, Prompt


class Base:
    """The defaults of a task whose positions have encodings."""

    name: ClassVar[str]
    # Fields of the tasks.
    seq_len: int
    encoding: str | encoders.Encoder
    encoding_factor: float | None
    encoding_dim: int | None
    max_coherence: float
    distinct_encodings: bool

    def _fill_in_encodings(self) -> None:
        """Finds d_e and the encoder; raises ValueError for encodings that cannot exist."""
        dim = encodings.checked_dim(self.seq_len, self.encoding_dim, self.encoding_factor)
        encoder = encoders.get(self.encoding)
        if encoder.name == 'rademacher':
            encodings.check_sizes(self.seq_len, dim, self.max_coherence, self.distinct_encodings)
        object.__setattr__(self, 'encoding_dim', dim)
        object.__setattr__(self, 'encoding', encoder)

    @property
    def _encoding_dim(self) -> int:
        assert self.encoding_dim is not None  # `_fill_in_encodings` has found it
        return self.encoding_dim

    @property
    def num_outputs(self) -> int:
        """C, numbers that a model predicts at each position."""
        return 1

    @property
    def loss(self) -> str:
        """'squared', or 'cross_entropy' for labels that are classes 0..C-1."""
        return 'squared'

    def no_retrieval(self, threshold_on: str) -> float | None:
        """Test error of the best predictor that does not look up what is asked for; None where it is not known.

        A threshold above it needs no retrieval.

        Args:
            threshold_on: 'loss', or 'error_rate' for 1 − accuracy.
        """
        return None

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The prediction of the best predictor that knows the task, (N,) or (N, C).

        Args:
            prompt: one prompt, whose labels it may not read.
            link_params: `Draw.link`.
        """
        raise NotImplementedError

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """As `oracle`, for the best predictor that does not look up what is asked for; its error is `no_retrieval`."""
        raise NotImplementedError

    def check_draw(self, complete: jax.Array) -> None:
        """Raises DrawError when the encodings of a `Draw`, or of several, are not complete."""
        if not bool(jnp.all(complete)):
            raise DrawError(
                f'encoding_dim={self.encoding_dim}: too small to draw seq_len={self.seq_len} distinct vectors with '
                f'max_coherence={self.max_coherence}; 16-20 ln N, here '
                f'{encodings.default_encoding_dim(self.seq_len, 18)}, meets even 1/2'
            )

    def draw_link(self, key: jax.Array) -> Any:
        """What all prompts share besides the encodings; nothing by default."""
        return ()

    def draw(self, key: jax.Array) -> Draw:
        """Draws what all prompts share."""
        key_link, key_encodings = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(2))
        return Draw(self.draw_link(key_link), encoders.get(self.encoding).draw(key_encodings, self))


@dataclasses.dataclass(frozen=True)
class Sequence(Base):
    """A sequence of tokens without pointers, z_i = (x_i, ω_i); a task adds `token_dim`, `sample`, perhaps `draw_link`.

    Attributes:
        seq_len: N, at least 2.
        encoding: the registered encoding of positions.
        encoding_factor: c, makes d_e = ⌊c ln N⌋; None is 5, or whatever `encoding_dim` says.
        encoding_dim: d_e; None is ⌊c ln N⌋.
        max_coherence: largest |⟨ω_i, ω_j⟩| that is accepted for i ≠ j; 1 accepts any.
        distinct_encodings: whether a vector that equals an earlier one is drawn again.

    Raises:
        ValueError: a size is impossible or a name unknown.
    """

    # Tokens that a label is made of, which the published widths of the architectures follow.
    sparsity: ClassVar[int] = 1

    seq_len: int = 8
    encoding: str | encoders.Encoder = 'rademacher'
    encoding_factor: float | None = None
    encoding_dim: int | None = None
    max_coherence: float = 1.0
    distinct_encodings: bool = True

    def __post_init__(self) -> None:
        checks.integer('seq_len', self.seq_len, 2)
        self._fill_in_encodings()

    @property
    def token_dim(self) -> int:
        """d."""
        raise NotImplementedError

    @property
    def embedding_dim(self) -> int:
        """D_e = d + d_e, the width of an encoded token."""
        return self.token_dim + self._encoding_dim

    @property
    def stream_name(self) -> str:
        """The text that random streams depend on: the name and all settings, without those of encodings."""
        fields = [field.name for field in dataclasses.fields(self)]
        own = [name for name in fields if name not in _ENCODING]
        return ' '.join([self.name, *(f'{name}={getattr(self, name)}' for name in own)])

    def sample(self, key: jax.Array, link_params: Any) -> Prompt:
        """Draws one prompt."""
        raise NotImplementedError

    def samples(self, keys_B: jax.Array, link_params: Any) -> Prompt:
        """Draws a prompt for each key."""
        return jax.vmap(lambda key: self.sample(key, link_params))(keys_B)

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens z_i = (x_i, ω_i), (N, D_e)."""
        return jnp.concatenate([prompt.x_NxD, task_draw.encodings.omega_NxE], axis=-1)


def logits_of(y_N: jax.Array, num_classes: int) -> jax.Array:
    """Logits (N, C) that leave a probability of about 2e-9 for each other class."""
    return 20.0 * jax.nn.one_hot(y_N, num_classes)


_ENCODING = ('encoding', 'encoding_factor', 'encoding_dim', 'max_coherence', 'distinct_encodings')
