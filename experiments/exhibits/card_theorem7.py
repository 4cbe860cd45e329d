"""Card of Theorem 7's construction (Propositions 26-28): the retrieving RNN's error against N."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import pandas as pd

from qstr_jax import progress, tasks
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, lines_by, points_by
from qstr_jax.theory import draws, gates, networks, recurrences
from qstr_jax.theory.sparse_task import SparseTask

ORDER = 370
QUESTION = 'Is the constructed RNN exact at every N, and what norm does it need?'
LIMITS = 'The rate in n, whose constants are free.'
LARGEST_ERRORS = {'float32': 1e-5, 'float64': 1e-12}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card.

    Attributes:
        seq_lens: values of N.
        sparsity: values of q.
        token_dim: d.
        link: name of a link with an exact two-layer form.
        num_prompts: prompts per point.
    """

    seq_lens: tuple[int, ...] = (8, 32, 128, 512)
    sparsity: tuple[int, ...] = (1, 2, 3)
    token_dim: int = 10
    link: str = 'sum'
    num_prompts: int = 4


# Settings of the small version, which takes seconds.
REDUCED = {'seq_lens': (4, 8), 'sparsity': (1, 2), 'token_dim': 3, 'num_prompts': 1}


def _row(settings: Settings, seq_len: int, sparsity: int, precision: str) -> dict[str, Any]:
    """Error and norm of one construction, where M is the data's largest entry, and the norm by the formula."""
    sizes = {'seq_len': seq_len, 'sparsity': sparsity, 'token_dim': settings.token_dim}
    task = tasks.build('simple_qstr', link=settings.link, **sizes)
    with jax.enable_x64(precision == 'float64'):
        task_draw, prompts = draws.draw(task, settings.num_prompts, precision)
        bound = float(jnp.max(jnp.abs(prompts.x_NxD)))
        built = recurrences.retrieving(task, task_draw, bound)
        networks.check_tokens(built, prompts.x_NxD)
        error = draws.largest_error(built.module, built.params, prompts, task, task_draw)
    norms = {'square': built.norms['transition_square'], 'formula': formula(task, task_draw, bound)}
    return {'seq_len': seq_len, 'sparsity': sparsity, 'precision': precision, 'error': error, **norms}


def formula(task: SparseTask, task_draw: tasks.Draw, bound: float) -> float:
    """‖Θ_f‖² = 4 q d_e + 2d + 6 q d + 4 q d d_e M²/δ², with M a little larger against rounding."""
    q, d, d_e = task.sparsity, task.token_dim, task.encoding_dim
    delta = networks.separation(task_draw.encodings.omega_NxE).distance
    return 4 * q * d_e + 2 * d + 6 * q * d + 4 * q * d * d_e * ((1 + gates.SLACK) * bound / delta) ** 2


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card, computed anew."""
    cells = list(itertools.product(settings.seq_lens, settings.sparsity, LARGEST_ERRORS))
    found = pd.DataFrame([_row(settings, *cell) for cell in progress.each(cells, 'theorem7: N')])
    checks = [
        check.below(f'|ŷ − y| ≤ {limit:g} in {precision}', found['error'][found['precision'] == precision], limit)
        for precision, limit in LARGEST_ERRORS.items()
    ]
    precise = found[found['precision'] == 'float64']
    ratio = abs(precise['square'] / precise['formula'] - 1)
    checks.append(check.below('‖Θ_f‖² is that of the formula', ratio, 1e-5))
    return Card(
        statement='Theorem 7, Propositions 26-28',
        claim='On simple-qSTR an RNN with d_h = q d and transitions that ignore the hidden state (α_N = 0) is exact '
        'for every N; its norm depends on N only through d_e, M and δ.',
        setting=f'simple-qSTR, {settings.link} link, d = {settings.token_dim}, d_e = ⌊5 ln N⌋, distinct encodings, '
        f'M the largest |x_jk|; largest error over {settings.num_prompts} prompts, all positions.',
        panels=(
            Panel('the constructed RNN', 'N', 'largest |ŷ − y|', log_x=True, log_y=True),
            Panel('weights of one transition', 'N', '‖Θ_f‖²', log_x=True, log_y=True),
        ),
        points=pd.DataFrame(_points(found)),
        lines=pd.DataFrame(_lines(settings, found)),
        checks=tuple(checks),
        finding='At ⌊5 ln N⌋ the norm follows δ = min ‖ω_i − ω_j‖₁ of the draw, not N. The rate of the theorem in n '
        'has free constants and is not tested by this card.',
    )


def _points(rows: pd.DataFrame) -> list[dict[str, Any]]:
    points = points_by(0, rows, '{precision}, q = {sparsity}', 'seq_len', 'error')
    return points + points_by(1, rows[rows['precision'] == 'float64'], 'q = {sparsity}', 'seq_len', 'square')


def _lines(settings: Settings, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """The limits of the errors, and the norm by its formula."""
    lengths = list(settings.seq_lens)
    lines = []
    for precision, limit in LARGEST_ERRORS.items():
        lines += line(0, f'limit in {precision}', lengths, limit)
    precise, label = rows[rows['precision'] == 'float64'], '4qd_e + 2d + 6qd + 4qd d_e M²/δ²'
    return lines + lines_by(1, label, precise, by='sparsity', x='seq_len', y='formula', of='q = {}')
