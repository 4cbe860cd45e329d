"""Card of Lemma 11, (A.2): the constructed Transformer's error against α, and its norm against N."""

import dataclasses
import itertools
import math
from typing import Any

import jax
import numpy as np
import pandas as pd

from experiments import cards
from qstr_jax import progress, tasks
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, lines_by, points_by
from qstr_jax.theory import constructions, draws, measures
from qstr_jax.theory.sparse_task import SparseTask

ORDER = 300
QUESTION = 'How much does the constructed Transformer err, and what norm does that cost as N grows?'
LIMITS = 'What training finds: that is the card of alignment. Each point is one draw of encodings and prompts.'
ROUNDING = 1e-12
# How often the interval of the least α is halved; then α is known to 1/2^7 of Lemma 11's.
BISECTIONS = 7


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

    seq_lens: tuple[int, ...] = (16, 128, 1024)
    sparsity: tuple[int, ...] = (1, 2, 4)
    token_dim: int = 10
    links: tuple[str, ...] = ('linear', 'sum', 'hermite2')
    sharpness: tuple[float, ...] = (2, 4, 8, 12, 16, 24)
    error: float = 0.1
    num_prompts: int = 1


# Settings of the small version, which takes seconds.
REDUCED = {'seq_lens': (8, 16), 'sparsity': (1, 2), 'sharpness': (2, 8), 'links': ('sum',)}


def _middle(settings: Settings) -> int:
    return settings.sparsity[len(settings.sparsity) // 2]


def _setup(
    settings: Settings, seq_len: int, sparsity: int, link: str
) -> tuple[SparseTask, tasks.Draw, tasks.Prompt, float]:
    """A task with scaled encodings that meet Assumption 3, its draw, prompts and their largest ‖x_j‖, in float64."""
    sizes = {'seq_len': seq_len, 'sparsity': sparsity, 'token_dim': settings.token_dim}
    # d_e at which Rademacher vectors meet Assumption 3 after a few redraws.
    sizes['encoding_dim'] = max(24, round(20 * math.log(seq_len)))
    task = tasks.build('qstr', **sizes, link=link, encoding_scale='scaled', max_coherence=0.5)
    task_draw, prompts = draws.draw(task, settings.num_prompts)
    return task, task_draw, prompts, float(np.max(np.linalg.norm(prompts.x_NxD, axis=-1)))


def _against_alpha(settings: Settings) -> pd.DataFrame:
    """Error and attention mass off the right token over α, with the paper's bound N exp(−αd/2q)."""
    sparsity = _middle(settings)
    rows = []
    for seq_len in progress.each(settings.seq_lens, 'lemma11: α'):
        task, task_draw, prompts, radius = _setup(settings, seq_len, sparsity, 'sum')
        for sharpness in settings.sharpness:
            alpha = sharpness * 2 * sparsity / settings.token_dim
            built = constructions.transformer(task, task_draw, radius, alpha=alpha, coherence=0.5)
            network = built.module, built.params, prompts, task, task_draw
            leak = 2 * built.norms['lipschitz'] * math.sqrt(sparsity) * radius
            share = min(1.0, seq_len * math.exp(-sharpness))
            off_mass = float(measures.off_mass(*network)['max'])
            row = {'seq_len': seq_len, 'alpha': alpha, 'off_mass': off_mass, 'mass_limit': share}
            rows.append({**row, 'error': draws.largest_error(*network), 'limit': leak * share})
    return pd.DataFrame(rows)


def _against_length(settings: Settings) -> pd.DataFrame:
    """The squared error of the construction for the target error, for every q, link and N."""
    rows: list[dict[str, Any]] = []
    cells = list(itertools.product(settings.seq_lens, settings.sparsity, settings.links))
    for seq_len, sparsity, link in progress.each(cells, 'lemma11: N'):
        task, task_draw, prompts, radius = _setup(settings, seq_len, sparsity, link)
        alpha = constructions.paper_alpha(task, task_draw, radius, settings.error)
        built = constructions.transformer(task, task_draw, radius, settings.error, alpha=alpha, coherence=0.5)
        error = draws.largest_error(built.module, built.params, prompts, task, task_draw)
        rows.append({'seq_len': seq_len, 'link': link, 'square': error**2})
    return pd.DataFrame(rows)


def _least(settings: Settings) -> pd.DataFrame:
    """The least ‖W_QK‖_F of one head whose network errs by at most 2√ε on the prompts, by bisection, beside Lemma 11's.

    The network is evaluated at each α, so that the growth in N is measured and not computed by a formula.
    """
    rows = []
    cells = list(itertools.product(settings.seq_lens, settings.sparsity))
    for seq_len, sparsity in progress.each(cells, 'lemma11: least norm'):
        task, task_draw, prompts, radius = _setup(settings, seq_len, sparsity, 'sum')
        low, high = 0.0, constructions.paper_alpha(task, task_draw, radius, settings.error)
        norm = high * math.sqrt(task.encoding_dim)
        for _ in range(BISECTIONS):
            alpha = (low + high) / 2
            built = constructions.transformer(task, task_draw, radius, alpha=alpha, coherence=0.5)
            error = draws.largest_error(built.module, built.params, prompts, task, task_draw)
            low, high = (low, alpha) if error <= 2 * settings.error else (alpha, high)
        least = high * math.sqrt(task.encoding_dim)
        rows.append({'seq_len': seq_len, 'sparsity': sparsity, 'least': least, 'norm': norm})
    return pd.DataFrame(rows)


def checks_of(
    settings: Settings, by_alpha: pd.DataFrame, by_length: pd.DataFrame, norms: pd.DataFrame
) -> tuple[check.Check, ...]:
    """The comparisons of the verdict."""
    limit = 4 * settings.error**2
    later = norms.sort_values(['sparsity', 'seq_len'])
    cap = np.concatenate([_cap(chosen) for _, chosen in later.groupby('sparsity')])
    flat = np.concatenate([_cap(chosen, 0.0) for _, chosen in later.groupby('sparsity')])
    is_later = (later['seq_len'] > min(settings.seq_lens)).to_numpy()
    least, off_mass, mass_limit = later['least'][is_later], by_alpha['off_mass'], by_alpha['mass_limit'] + ROUNDING
    flat_line = check.below('', least, flat[is_later])
    return (
        check.below('mass off the right token ≤ N exp(−αd/2q) for every α', off_mass, mass_limit),
        check.below('|ŷ − y| ≤ 2L√q r_x N exp(−αd/2q) for every α', by_alpha['error'], by_alpha['limit'] + ROUNDING),
        check.below(f'squared error ≤ 4ε = {limit:g} at the α of Lemma 11', by_length['square'], limit),
        check.below('least measured ‖W_QK‖_F ≤ (log N)^1.5 through the first N', least, cap[is_later]),
        check.fails('a wrong line, the same norm at every N, is crossed', flat_line),
    )


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card, computed anew."""
    with jax.enable_x64(True):
        by_alpha, by_length, norms = _against_alpha(settings), _against_length(settings), _least(settings)
    limit = 4 * settings.error**2
    return Card(
        statement='Lemma 11, (A.2)',
        claim='q heads with W_QK = α I in the (query ω_t, key ω) block put at most N exp(−αd/2q) off the right token; '
        'their norm grows no faster than (log N)^1.5.',
        setting=f'qSTR, d = {settings.token_dim}, d_e = 20 ln N, coherence ≤ 1/2, float64, q = '
        f'{", ".join(map(str, settings.sparsity))}, links {", ".join(settings.links)}; largest error over '
        f'all positions, prompts per point: {settings.num_prompts}.',
        panels=(
            Panel(f'sum link, q = {_middle(settings)}', 'α', 'largest |ŷ − y|', log_y=True),
            Panel(f'α for error {settings.error:g}, all q', 'N', 'largest squared error', log_x=True, log_y=True),
            Panel(f'least norm for error {2 * settings.error:g}, sum link', 'N', '‖W_QK‖_F of one head', log_x=True),
        ),
        points=pd.DataFrame(_points(by_alpha, by_length, norms)),
        lines=pd.DataFrame(_lines(by_alpha, by_length, norms, limit)),
        checks=checks_of(settings, by_alpha, by_length, norms),
        finding=_finding(by_alpha, norms),
    )


def _finding(by_alpha: pd.DataFrame, norms: pd.DataFrame) -> str:
    """How loose the bound is, and how fast the norms grow."""
    loose = float(np.median(by_alpha['limit'] / np.maximum(by_alpha['error'], 1e-15)))
    powers = {q: cards.power('(log N)', np.log(own['seq_len']), own['least']) for q, own in norms.groupby('sparsity')}
    exponents = ', '.join(f'{power} (q = {q})' for q, power in powers.items())
    share = norms['least'] / norms['norm']
    return (
        f'The bound on the error is {loose:.0f} times the error (median). The least norm is {share.min():.2f} to '
        f"{share.max():.2f} of Lemma 11's and grows like {exponents}; √d_e alone gives 0.5."
    )


def _cap(norms: pd.DataFrame, power: float = 1.5) -> np.ndarray:
    """(log N)^power through the first norm."""
    growth = np.log(norms['seq_len']) / math.log(norms['seq_len'].iloc[0])
    return norms['least'].iloc[0] * growth.to_numpy() ** power


def _points(by_alpha: pd.DataFrame, by_length: pd.DataFrame, norms: pd.DataFrame) -> list[dict[str, Any]]:
    largest = by_length.groupby(['link', 'seq_len'], as_index=False, sort=False)['square'].max()
    points = points_by(0, by_alpha, 'N = {seq_len}', 'alpha', 'error')
    points += points_by(1, largest, '{link}', 'seq_len', 'square')
    return points + points_by(2, norms, 'q = {sparsity}', 'seq_len', 'least')


def _lines(by_alpha: pd.DataFrame, by_length: pd.DataFrame, norms: pd.DataFrame, limit: float) -> list[dict[str, Any]]:
    rows = lines_by(0, '2L√q r_x N exp(−αd/2q)', by_alpha, by='seq_len', x='alpha', y='limit', of='N = {}')
    lengths = sorted(set(by_length['seq_len']))
    rows += line(1, 'bound 4ε', lengths, limit)
    for i, (sparsity, chosen) in enumerate(norms.groupby('sparsity')):
        label = '∝ (log N)^1.5' if i == 0 else ''
        rows += line(2, label, chosen['seq_len'], _cap(chosen), of=f'q = {sparsity}')
    return rows
