"""Which tag does the head of a word have? Sentences of the Turkish Web Treebank (turkish-treebanks, Apache 2.0)."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax.settings import checks
from qstr_jax.tasks import encodings
from qstr_jax.tasks.base import Sequence, logits_of
from qstr_jax.tasks.data import files
from qstr_jax.tasks.task import Draw, Prompt, register

_DIGEST = '95e2586e60c3bbdf'
# Coarse parts of speech; the column UPOS of the treebank has no others.
TAGS = ('NOUN', 'VERB', 'PUNCT', 'ADJ', 'ADP', 'ADV', 'CONJ', 'DET', 'NUM', 'PRON', 'PRT', 'X', 'ONOM', 'AFFIX')
# The treebank's own split, by the number of a sentence in its file, modulo 10.
_SPLITS = ('train',) * 8 + ('validation', 'test')


class Sentences(NamedTuple):
    """Sentences of at most N words: tags (S, N), heads (S, N; a root is its own), lengths (S,), who asks (S, N)."""

    tag: np.ndarray
    head: np.ndarray
    length: np.ndarray
    asks: np.ndarray


@register('word_heads')
@dataclasses.dataclass(frozen=True)
class WordHeads(Sequence):
    """A word knows where its head stands in the sentence, and asks for the head's part of speech, one of 14.

    A prompt is a sentence of n ≤ N words, longer ones are left out; a token is the word's own part of speech. The root
    of a sentence has no head and does not count. The split is the treebank's, eight tenths for training.

    Attributes:
        hops: 1 asks for the head, 2 for the head's head, though a word still points only to its head.

    Raises:
        ValueError: an impossible value, or turkish-treebanks is not installed.
    """

    hops: int = 1

    num_outputs = len(TAGS)
    loss = 'cross_entropy'

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('hops', self.hops)
        if self.hops > 2:
            raise ValueError(f'hops={self.hops}: must be 1 or 2')
        files.folder('word_heads', 'turkish_treebanks')

    @property
    def token_dim(self) -> int:
        """d, indicators of the part of speech."""
        return len(TAGS)

    @property
    def embedding_dim(self) -> int:
        """D_e = d + 2 d_e."""
        return self.token_dim + 2 * self._encoding_dim

    def no_retrieval(self, threshold_on: str) -> float:
        """The error of `trivial` on the test sentences."""
        sentences = sentences_of('test', self.seq_len, self.hops)
        p_SxNxC = guess_table(self.seq_len, self.hops)[sentences.tag, next_tags(sentences.tag, sentences.length)]
        label_SxN = np.take_along_axis(sentences.tag, _asked(sentences.head, self.hops), axis=1)
        if threshold_on == 'loss':
            error_SxN = -np.log(np.take_along_axis(p_SxNxC, label_SxN[..., None], axis=2)[..., 0])
        else:
            error_SxN = p_SxNxC.argmax(axis=2) != label_SxN
        return float(np.mean((error_SxN * sentences.asks).sum(axis=1) / sentences.asks.sum(axis=1)))

    def sample(self, key: jax.Array, link_params: Any, stream: str = 'train') -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        sentences = sentences_of(stream, self.seq_len, self.hops)
        drawn = jax.random.randint(key, (), 0, len(sentences.length))
        tag_N, head_N, length, asks_N = (jnp.asarray(array)[drawn] for array in sentences)
        t_N = head_N if self.hops == 1 else head_N[head_N]
        t_NxQ = head_N[:, None] if self.hops == 1 else jnp.stack([head_N, t_N], axis=1)
        return Prompt(
            x_NxD=jax.nn.one_hot(tag_N, len(TAGS)), t_NxQ=t_NxQ, y_N=tag_N[t_N], weights_N=asks_N, length=length
        )

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens: part of speech, ω_i, and ω of the head; arguments as in `Task.encode`."""
        return encodings.encode(prompt.x_NxD, prompt.t_NxQ[:, :1], task_draw.encodings.omega_NxE)

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits of the part of speech at the position that is asked for, (N, C): no error."""
        return logits_of(jnp.argmax(prompt.x_NxD, axis=1)[prompt.t_NxQ[:, -1]], self.num_outputs)

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """Logits (N, C) of each tag's frequency in training sentences, given the tags of the word and the next one.

        Half of all heads are the next word, so its tag is by far the best guess from neighbours alone.
        """
        tag_N, length = jnp.argmax(prompt.x_NxD, axis=1), jnp.asarray(prompt.length)
        next_N = jnp.where(jnp.arange(self.seq_len) + 1 < length, jnp.roll(tag_N, -1), len(TAGS))
        return jnp.log(jnp.asarray(guess_table(self.seq_len, self.hops), jnp.float32))[tag_N, next_N]


def _asked(head_SxN: np.ndarray, hops: int) -> np.ndarray:
    """The position of the word that is asked for."""
    return head_SxN if hops == 1 else np.take_along_axis(head_SxN, head_SxN, axis=1)


def next_tags(tag_SxN: np.ndarray, length_S: np.ndarray) -> np.ndarray:
    """The tag of the next word, 14 at the end of a sentence."""
    following_SxN = np.roll(tag_SxN, -1, axis=1)
    return np.where(np.arange(tag_SxN.shape[1]) + 1 < length_S[:, None], following_SxN, len(TAGS))


@functools.cache
def guess_table(seq_len: int, hops: int) -> np.ndarray:
    """How often training sentences ask for each tag, by own and next tag: counts plus one, normalised, (14, 15, 14)."""
    sentences = sentences_of('train', seq_len, hops)
    label_SxN = np.take_along_axis(sentences.tag, _asked(sentences.head, hops), axis=1)
    table = np.ones((len(TAGS), len(TAGS) + 1, len(TAGS)))
    following_SxN = next_tags(sentences.tag, sentences.length)
    np.add.at(table, (sentences.tag, following_SxN, label_SxN), sentences.asks)
    return table / table.sum(axis=2, keepdims=True)


@functools.cache
def sentences_of(stream: str, seq_len: int, hops: int) -> Sentences:
    """Sentences of at most N words in which at least one word asks."""
    words, split = read()
    found = np.split(words[:, 1:], np.flatnonzero(words[:, 0] == 0)[1:])
    kept = [one for one, name in zip(found, split, strict=True) if name == stream and 1 < len(one) <= seq_len]
    length = np.array([len(one) for one in kept], np.int32)
    padded = np.stack([np.pad(one, ((0, seq_len - len(one)), (0, 0))) for one in kept])
    tag, head = padded[..., 0], padded[..., 1]
    is_root = head == np.arange(seq_len)
    asks = (np.arange(seq_len) < length[:, None]) & ~is_root
    if hops == 2:
        asks &= ~np.take_along_axis(is_root, head, axis=1)
    has = asks.any(axis=1)
    return Sentences(tag[has], head[has], length[has], asks[has].astype(np.float32))


@functools.cache
def read() -> tuple[np.ndarray, np.ndarray]:
    """Place in the sentence, tag and place of the head of every word (words, 3), and the split of every sentence."""
    where = files.folder('word_heads', 'turkish_treebanks').parent / 'data'
    words, split = [], []
    for section in ('web', 'wiki'):
        sentences = (where / f'{section}.conllu').read_text(encoding='utf8').strip().split('\n\n')
        split += [_SPLITS[number % 10] for number in range(len(sentences))]
        for sentence in sentences:
            rows = [line.split('\t') for line in sentence.splitlines() if not line.startswith('#')]
            # CoNLL-U: the number of the word from 1, form, lemma, UPOS, XPOS, features, head; 0 is the root's.
            words += [(i, TAGS.index(row[3]), (int(row[6]) or i + 1) - 1) for i, row in enumerate(rows)]
    found = np.array(words, np.int32)
    files.check('word_heads', {'words': found}, _DIGEST)
    return found, np.array(split)
