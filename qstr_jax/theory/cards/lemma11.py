"""Card of Lemma 11, (A.2): the constructed Transformer's error against α, and its norm against N."""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pandas as pd

from qstr_jax import tasks
from qstr_jax.theory import constructions, measures
from qstr_jax.theory.cards import card, draws, fits
from qstr_jax.theory.sparse_task import SparseTask

NAME = 'lemma11'
ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card.

    Attributes:
        seq_lens: values of N.
        sparsity: values of q; the first panel has the middle one.
        token_dim: d.
        links: names of links.
        sharpness: values of α d/(2q) in the first panel.
        error: √ε, the error that the other constructions are built for.
        num_prompts: prompts per point.
    """

    seq_lens: tuple = (16, 128, 1024)
    sparsity: tuple = (1, 2, 4)
    token_dim: int = 10
    links: tuple = ('linear', 'sum', 'hermite2')
    sharpness: tuple = (2, 4, 8, 12, 16, 24)
    error: float = 0.1
    num_prompts: int = 1


def _encoding_dim(seq_len: int) -> int:
    """d_e at which Rademacher vectors meet Assumption 3 after a few redraws."""
    return max(24, round(20 * math.log(seq_len)))


def _middle(settings: Settings) -> int:
    return settings.sparsity[len(settings.sparsity) // 2]


def _setup(settings: Settings, seq_len: int, sparsity: int, link: str) -> tuple[SparseTask, tasks.Draw, tasks.Prompt]:
    """A task with scaled encodings that meet Assumption 3, its draw and prompts, in float64."""
    task = tasks.build(
        'qstr',
        seq_len=seq_len,
        sparsity=sparsity,
        token_dim=settings.token_dim,
        link=link,
        encoding_dim=_encoding_dim(seq_len),
        encoding_scale='scaled',
        max_coherence=0.5,
    )
    return task, *draws.draw(task, settings.num_prompts)


def _against_alpha(settings: Settings, bar: card.Bar) -> pd.DataFrame:
    """Error and attention mass off the right token over α, with the paper's bound N exp(−αd/2q)."""
    sparsity = _middle(settings)
    rows = []
    for seq_len in bar(settings.seq_lens, 'α'):
        task, task_draw, prompts = _setup(settings, seq_len, sparsity, 'sum')
        radius = float(np.max(np.linalg.norm(prompts.x_NxD, axis=-1)))
        for sharpness in settings.sharpness:
            alpha = sharpness * 2 * sparsity / settings.token_dim
            built = constructions.transformer(task, task_draw, radius, alpha=alpha, coherence=0.5)
            leak = 2 * built.norms['lipschitz'] * math.sqrt(sparsity) * radius
            rows.append(
                {
                    'seq_len': seq_len,
                    'alpha': alpha,
                    'limit': leak * min(1.0, seq_len * math.exp(-sharpness)),
                    'error': draws.largest_error(built.module, built.params, prompts, task, task_draw),
                    'off_mass': measures.off_mass(built.module, built.params, prompts, task, task_draw)['max'],
                    'mass_limit': min(1.0, seq_len * math.exp(-sharpness)),
                }
            )
    return pd.DataFrame(rows)


def _against_length(settings: Settings, bar: card.Bar) -> pd.DataFrame:
    """Error and norms of the construction at the target error, for every q, link and N."""
    rows: list[dict[str, Any]] = []
    cells = list(itertools.product(settings.seq_lens, settings.sparsity, settings.links))
    for seq_len, sparsity, link in bar(cells, 'N'):
        task, task_draw, prompts = _setup(settings, seq_len, sparsity, link)
        radius = float(np.max(np.linalg.norm(prompts.x_NxD, axis=-1)))
        alpha = constructions.paper_alpha(task, task_draw, radius, settings.error)
        built = constructions.transformer(task, task_draw, radius, settings.error, alpha=alpha, coherence=0.5)
        rows.append(
            {
                'seq_len': seq_len,
                'sparsity': sparsity,
                'link': link,
                'alpha': alpha,
                'norm': built.norms['query_key_frobenius'],
                'square': draws.largest_error(built.module, built.params, prompts, task, task_draw) ** 2,
            }
        )
    return pd.DataFrame(rows)


def checks_of(
    settings: Settings, by_alpha: pd.DataFrame, by_length: pd.DataFrame, norms: pd.DataFrame
) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    Args:
        settings: of the card.
        by_alpha: constructions over α.
        by_length: constructions for the target error, over N.
        norms: largest norm of these for each q and N.
    """
    limit = 4 * settings.error**2
    cap = np.concatenate([_cap(chosen) for _, chosen in norms.groupby('sparsity')])
    return (
        card.below(
            'mass off the right token ≤ N exp(−αd/2q) for every α',
            by_alpha['off_mass'],
            by_alpha['mass_limit'] + ROUNDING,
        ),
        card.below('|ŷ − y| ≤ 2L√q r_x N exp(−αd/2q) for every α', by_alpha['error'], by_alpha['limit'] + ROUNDING),
        card.below(f'squared error ≤ 4ε = {limit:g} at the α of Lemma 11', by_length['square'], limit),
        card.below('‖W_QK‖_F grows no faster than (log N)^1.5', norms['norm'], cap),
    )


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    with jax.enable_x64(True):
        by_alpha, by_length = _against_alpha(settings, bar), _against_length(settings, bar)
    limit = 4 * settings.error**2
    norms = by_length.groupby(['sparsity', 'seq_len'], as_index=False)['norm'].max()
    return card.Card(
        name=NAME,
        statement='Lemma 11, (A.2)',
        claim='q heads with W_QK = α I in the (query ω_t, key ω) block put at most N exp(−αd/2q) off the right token; '
        'their norm grows no faster than (log N)^1.5.',
        setting=f'qSTR, d = {settings.token_dim}, d_e = 20 ln N, coherence ≤ 1/2, float64, q = '
        f'{", ".join(map(str, settings.sparsity))}, links {", ".join(settings.links)}; largest error over '
        f'all positions, prompts per point: {settings.num_prompts}.',
        panels=(
            card.Panel(f'sum link, q = {_middle(settings)}', 'α', 'largest |ŷ − y|', log_y=True),
            card.Panel(f'α for error {settings.error:g}, all q', 'N', 'largest squared error', log_x=True, log_y=True),
            card.Panel('same α, all links', 'N', '‖W_QK‖_F of one head', log_x=True),
        ),
        points=pd.DataFrame(_points(by_alpha, by_length, norms)),
        lines=pd.DataFrame(_lines(by_alpha, by_length, norms, limit)),
        checks=checks_of(settings, by_alpha, by_length, norms),
        finding=_finding(by_alpha, norms),
    )


def _finding(by_alpha: pd.DataFrame, norms: pd.DataFrame) -> str:
    """How loose the bound is, and how fast the norms grow."""
    loose = float(np.median(by_alpha['limit'] / np.maximum(by_alpha['error'], 1e-15)))
    slopes = {q: fits.slope(np.log(chosen['seq_len']), chosen['norm'])[0] for q, chosen in norms.groupby('sparsity')}
    exponents = ', '.join(f'{slope:.2f} (q = {q})' for q, slope in slopes.items())
    return (
        f'The bound on the error is {loose:.0f} times the error (median). Exponents of ‖W_QK‖_F in log N: '
        f'{exponents}; √d_e alone gives 0.5, and α adds less than 1 while its constants outweigh log N.'
    )


def _cap(norms: pd.DataFrame) -> np.ndarray:
    """(log N)^1.5 through the first norm."""
    growth = np.log(norms['seq_len']) / math.log(norms['seq_len'].iloc[0])
    return norms['norm'].iloc[0] * growth.to_numpy() ** 1.5 * (1 + ROUNDING)


def _points(by_alpha: pd.DataFrame, by_length: pd.DataFrame, norms: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in by_alpha.itertuples():
        yield card.point(0, f'N = {row.seq_len}', row.alpha, row.error)
    largest = by_length.groupby(['link', 'seq_len'], as_index=False, sort=False)['square'].max()
    for row in largest.itertuples():
        yield card.point(1, f'{row.link}', row.seq_len, row.square)
    for row in norms.itertuples():
        yield card.point(2, f'q = {row.sparsity}', row.seq_len, row.norm)


def _lines(by_alpha: pd.DataFrame, by_length: pd.DataFrame, norms: pd.DataFrame, limit: float) -> list[dict[str, Any]]:
    rows = []
    for i, (seq_len, chosen) in enumerate(by_alpha.groupby('seq_len')):
        label = '2L√q r_x N exp(−αd/2q)' if i == 0 else ''
        rows += card.line(0, label, chosen['alpha'], chosen['limit'], of=f'N = {seq_len}')
    lengths = sorted(set(by_length['seq_len']))
    rows += card.line(1, 'bound 4ε', lengths, [limit] * len(lengths))
    for i, (sparsity, chosen) in enumerate(norms.groupby('sparsity')):
        label = '∝ (log N)^1.5' if i == 0 else ''
        rows += card.line(2, label, chosen['seq_len'], _cap(chosen), of=f'q = {sparsity}')
    return rows
