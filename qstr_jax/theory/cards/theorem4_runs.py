"""Runs of the card of Theorem 4: constrained ERM, random labels, twisted teachers, indices never asked, given parts."""

import dataclasses
import itertools
from typing import Any

import jax
import numpy as np
import pandas as pd

from qstr_jax import learners, models, tasks
from qstr_jax.theory import capacity, construction_norm, construction_start, partly_given, twisted_teacher
from qstr_jax.theory.cards import fixed_sample
from qstr_jax.theory.sparse_task import SparseTask

# Modules that register the radius unit 'construction' and the starts that are used here.
PLUGINS = (construction_norm, construction_start)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card: Transformers with H = q = 1 by the point-wise risk in the ball of the construction, R = 1.

    Attributes:
        token_dim: d.
        few: d_e below N.
        many: d_e of at least N.
        width: m, width of the ReLU layer.
        num_lanes: lanes of each kind, each with its own (u, ω) and prompts.
        steps: training steps of batches of 64.
        learning_rate: the first one; it falls along a cosine.
        rate_lens: values of N at which test losses are measured against n.
        rate_samples: their values of n.
        seq_lens: values of N for random labels, twisted teachers and given parts.
        label_multiples: values of n/N of random labels.
        label_risk: training risk at which random labels count as fitted.
        twists: draws of twisted teachers.
        unseen_len: N of the runs that never ask for the indices beyond N/2.
        unseen_samples: their n.
        unseen_dims: their values of d_e.
        given_samples: values of n where a part is given.
        threshold: test loss that counts as learnt.
        test_samples: test prompts.
    """

    token_dim: int = 10
    few: int = 10
    many: int = 75
    width: int = 32
    num_lanes: int = 3
    steps: int = 3000
    learning_rate: float = 3e-3
    rate_lens: tuple = (16, 32)
    rate_samples: tuple = (400, 800, 1600, 3200, 6400)
    seq_lens: tuple = (12, 24, 48)
    label_multiples: tuple = (30, 60, 120)
    label_risk: float = 0.1
    twists: int = 5
    unseen_len: int = 32
    unseen_samples: int = 4000
    unseen_dims: tuple = (8, 16, 75)
    given_samples: tuple = (100, 400, 1600, 3200)
    threshold: float = 0.1
    test_samples: int = 500


def _task(settings: Settings, seq_len: int, encoding_dim: int, name: str = 'qstr', **values: Any) -> SparseTask:
    """1STR with encodings as incoherent as their dimension allows at these N."""
    coherence = 0.5 if encoding_dim >= settings.many else 0.8 if encoding_dim >= settings.few else 1.0
    return tasks.build(
        name,
        seq_len=seq_len,
        sparsity=1,
        token_dim=settings.token_dim,
        link='linear',
        encoding_dim=encoding_dim,
        encoding_scale='scaled',
        max_coherence=coherence,
        **values,
    )


def _fit(
    settings: Settings, task: Any, sizes: tuple, *, part: str = '', test_task: Any = None, **values: Any
) -> pd.DataFrame:
    """Fits for every n and lane: constrained ERM from W_QK = 0, or free fits with a part of the network given."""
    lanes = [(size, seed) for size in sizes for seed in range(settings.num_lanes)]
    module: Any = models.Transformer(num_heads=1, mlp_width=settings.width, attention='merged')
    common: dict[str, Any] = {'risk': 'pointwise', 'batch_size': 64, 'schedule': 'cosine', 'max_steps': settings.steps}
    common |= {'check_every': settings.steps, 'test_samples': settings.test_samples, 'validation_samples': 1}
    rates = {'learning_rate': settings.learning_rate}
    learner: Any
    if part:
        module = partly_given.PartlyGiven(module, part)
        learner = learners.AdamW(starts=(f'given:{partly_given.PARTS.index(part)}',), **common)
        rates |= {'weight_decay': 0.0}
    else:
        learner = learners.Constrained(radius_unit='construction', starts=('attention:0',), **common, **values)
        rates |= {'radius': 1.0}
    found = fixed_sample.run(
        task,
        module,
        learner,
        sizes=[size for size, _ in lanes],
        seeds=[seed for _, seed in lanes],
        test_task=test_task,
        **rates,
    ).columns
    kept = ('test_loss', 'test_loss_se', 'train_risk', 'is_erm')
    columns = {name: np.asarray(found[name]) for name in kept if name in found}
    places = pd.DataFrame(lanes, columns=['num_samples', 'lane'])
    return places.assign(seq_len=task.seq_len, encoding_dim=task.encoding_dim, **columns)


def rate(settings: Settings, bar: Any) -> pd.DataFrame:
    """Test losses of constrained ERM against n, each beside the construction on its sample.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    return pd.concat(
        _fit(
            settings, _task(settings, n, settings.few), settings.rate_samples, reference='construction',
            erm_tolerance=0.01,
        )
        for n in bar(settings.rate_lens, 'constrained ERM, N')
    )  # fmt: skip


def labels(settings: Settings, bar: Any) -> pd.DataFrame:
    """How many random labels the ball fits, and up to which n a twisted teacher is an ERM that fails.

    Args:
        settings: of the card.
        bar: progress bar.

    Returns:
        A row per N, d_e and lane: kind, seq_len, encoding_dim, num_samples.
    """
    rows = []
    for n, dim in bar(list(itertools.product(settings.seq_lens, (settings.few, settings.many))), 'random labels, N'):
        sizes = tuple(multiple * n for multiple in settings.label_multiples)
        fitted = _fit(settings, _task(settings, n, dim, 'random_labels'), sizes)
        for _, lane in fitted.groupby('lane'):
            found = capacity.capacity(lane['num_samples'], lane['train_risk'], settings.label_risk)
            # Where all n were fitted, or none, the capacity is known from one side only.
            side = ', at least' if np.isinf(found.missed) else '' if found.fitted else ', at most'
            kind = f'random labels{side}'
            rows.append({'kind': kind, 'seq_len': n, 'encoding_dim': dim, 'num_samples': found.value})
        for samples in twisted_teacher.samples(_task(settings, n, dim), range(settings.twists)):
            rows.append({'kind': 'twisted teacher', 'seq_len': n, 'encoding_dim': dim, 'num_samples': samples})
    return pd.DataFrame(rows)


def _asked(key: jax.Array, seq_len: int, sparsity: int) -> jax.Array:
    """Indices of the first half."""
    return jax.random.randint(key, (seq_len, sparsity), 0, seq_len // 2)


def _not_asked(key: jax.Array, seq_len: int, sparsity: int) -> jax.Array:
    """Indices of the second half."""
    return jax.random.randint(key, (seq_len, sparsity), seq_len // 2, seq_len)


def unseen(settings: Settings, bar: Any) -> pd.DataFrame:
    """Test losses on indices that no training prompt asks for, against d_e.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    found = []
    for dim in bar(settings.unseen_dims, 'unseen indices, d_e'):
        task, other = (_task(settings, settings.unseen_len, dim, indices=draw) for draw in (_asked, _not_asked))
        found.append(_fit(settings, task, (settings.unseen_samples,), test_task=other))
    return pd.concat(found)


def given(settings: Settings, bar: Any) -> pd.DataFrame:
    """Test losses against n where a part of the construction is given.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    cells = list(itertools.product(settings.seq_lens[:: max(1, len(settings.seq_lens) - 1)], partly_given.PARTS))
    return pd.concat(
        _fit(settings, _task(settings, n, settings.few), settings.given_samples, part=part).assign(part=part)
        for n, part in bar(cells, 'given parts, N')
    )


def learnt(rows: pd.DataFrame, threshold: float) -> float:
    """The smallest n from which on the loss is below a threshold; infinite if it is not at the largest.

    Args:
        rows: of one lane, with the columns num_samples and test_loss.
        threshold: of the loss.
    """
    rows = rows.sort_values('num_samples')
    is_below = (rows['test_loss'] < threshold).to_numpy()
    first = len(is_below) - int(np.argmin(is_below[::-1])) if not is_below.all() else 0
    return float(rows['num_samples'].iloc[first]) if first < len(is_below) else np.inf
