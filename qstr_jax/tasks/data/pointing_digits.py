"""Images of digits that point to each other (the 1,797 images of scikit-learn, from UCI's optdigits, CC BY 4.0)."""

import dataclasses
import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax.tasks import encodings
from qstr_jax.tasks.base import Sequence
from qstr_jax.tasks.data import files
from qstr_jax.tasks.task import Draw, Prompt, register

_DIGEST = '6c21e4a9eb385162'
_PIXELS, _DIGITS = 64, 10
# First image of validation and of test: images of one writer follow each other.
_SPLITS = {'train': slice(0, 1078), 'validation': slice(1078, 1437), 'test': slice(1437, 1797)}
# Width of the oracle's kernel: the best of 0.25, 0.5, 1, 2, 4 and 8 on the validation images.
_BANDWIDTH = 1.0


@register('pointing_digits')
@dataclasses.dataclass(frozen=True)
class PointingDigits(Sequence):
    """Tokens are images of handwritten digits; position i asks for the digit at position t_i, uniform on [N].

    Images are split: the first 1,078 are for training, 359 for validation and 360 for tests.

    Attributes:
        pointer: what tells t_i: 'given', the encoding of that position; or 'image', an image of the digit t_i, counted
            from 0, so that N ≤ 10.

    Raises:
        ValueError: an impossible value, or scikit-learn is not installed.
    """

    pointer: Literal['given', 'image'] = 'given'

    num_outputs = _DIGITS
    loss = 'cross_entropy'

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pointer == 'image' and self.seq_len > _DIGITS:
            raise ValueError(f"seq_len={self.seq_len}: pointer='image' writes positions as one digit, so N ≤ {_DIGITS}")
        files.folder('pointing_digits', 'sklearn')

    @property
    def token_dim(self) -> int:
        """d, pixels: of one image, or of two with the pointer's."""
        return 2 * _PIXELS if self.pointer == 'image' else _PIXELS

    @property
    def embedding_dim(self) -> int:
        """D_e = d + d_e, and d_e more where t_i is given."""
        return self.token_dim + (1 if self.pointer == 'image' else 2) * self._encoding_dim

    def no_retrieval(self, threshold_on: str) -> float:
        """Error of the digits' frequencies in the prompt, exactly known: E H(k/N), or 1 − E max k/N; k multinomial."""
        from scipy import stats  # takes a fourth of the package's import

        n, p = self.seq_len, 1 / _DIGITS
        count = np.arange(n + 1)
        if threshold_on == 'loss':
            share = count / n
            return float(-_DIGITS * np.sum(stats.binom.pmf(count, n, p) * share * np.log(np.maximum(share, 1e-9))))
        # Counts are Poisson given their sum, so P(all k ≤ m) = P(all ≤ m, sum n)/P(sum n), and E max = Σ_m P(max > m).
        term, whole = stats.poisson.pmf(count, n * p), stats.poisson.pmf(n, n)
        powers = [np.polynomial.polynomial.polypow(term[: most + 1], _DIGITS) for most in range(n)]
        at_most = [power[n] / whole if len(power) > n else 0.0 for power in powers]
        return float(1 - np.sum(1 - np.array(at_most)) / n)

    def sample(self, key: jax.Array, link_params: Any, stream: str = 'train') -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        images, digits = (jnp.asarray(array[_SPLITS[stream]]) for array in read())
        key_images, key_t, key_pointer = jax.random.split(key, 3)
        drawn_N = jax.random.randint(key_images, (self.seq_len,), 0, len(images))
        t_N = jax.random.randint(key_t, (self.seq_len,), 0, self.seq_len)
        x_NxD = images[drawn_N]
        if self.pointer == 'image':
            log_p_NxI = jnp.where(digits[None] == t_N[:, None], 0.0, -jnp.inf)
            x_NxD = jnp.concatenate([x_NxD, images[jax.random.categorical(key_pointer, log_p_NxI)]], axis=1)
        return Prompt(x_NxD, t_N[:, None], digits[drawn_N][t_N])

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens: image, ω_i, and ω_{t_i} or the pointer's image; arguments as in `Task.encode`."""
        if self.pointer == 'image':
            return super().encode(prompt, task_draw)
        return encodings.encode(prompt.x_NxD, prompt.t_NxQ, task_draw.encodings.omega_NxE)

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits (N, C) of a classifier of images that is told t, or reads its image: a bound that can be met."""
        probability_NxC = class_probabilities(prompt.x_NxD[:, :_PIXELS])
        if self.pointer == 'given':
            return jnp.log(probability_NxC[prompt.t_NxQ[:, 0]])
        points_NxN = class_probabilities(prompt.x_NxD[:, _PIXELS:])[:, : self.seq_len]
        return jnp.log(points_NxN @ probability_NxC / jnp.sum(points_NxN, axis=1, keepdims=True))

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits (N, C) of the digits' frequencies in the prompt, as the classifier reads them."""
        frequency_C = jnp.mean(class_probabilities(prompt.x_NxD[:, :_PIXELS]), axis=0)
        return jnp.broadcast_to(jnp.log(frequency_C), (self.seq_len, _DIGITS))


def class_probabilities(images_NxD: jax.Array) -> jax.Array:
    """Probabilities of the digits by a kernel classifier of the training images, Σ_j exp(−‖x − x_j‖²/h) 1[y_j = c]."""
    known_IxD, digits_I = (jnp.asarray(array[_SPLITS['train']]) for array in read())
    # ‖x‖² is the same for all j, so the softmax does without it.
    score_NxI = 2 * images_NxD @ known_IxD.T - jnp.sum(known_IxD**2, axis=1)[None]
    weight_NxI = jax.nn.softmax(score_NxI / _BANDWIDTH)
    return 0.99 * weight_NxI @ jax.nn.one_hot(digits_I, _DIGITS) + 0.01 / _DIGITS


@functools.cache
def read() -> tuple[np.ndarray, np.ndarray]:
    """Images, with pixels in [−1, 1], (1797, 64), and their digits."""
    path = files.folder('pointing_digits', 'sklearn') / 'datasets/data/digits.csv.gz'
    raw = np.loadtxt(path, delimiter=',', dtype=np.float32).astype(np.int32)
    files.check('pointing_digits', {'digits': raw}, _DIGEST)
    return (raw[:, :_PIXELS] / 8 - 1).astype(np.float32), raw[:, _PIXELS]
