"""Card of the bounds: what those behind Theorems 4 and 7 say with all of their constants, and Lemma 12."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np
import pandas as pd
from scipy import special

from qstr_jax import progress, tasks
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, lines_by, points_by
from qstr_jax.theory import bounds, constructions, rates, recurrences
from qstr_jax.theory.sparse_task import SparseTask

ORDER = 350
QUESTION = 'What do the generalisation bounds say with all of their constants?'
LIMITS = 'That the bounds are near to what ERMs need: they are for any ERM of the ball, and nothing is trained here.'
TRANSFORMER, RNN = 'Transformer', 'RNN'


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card; the link is linear and q = 1.

    Attributes:
        seq_lens: values of N.
        token_dim: d.
        log_samples: values of log_10 n.
        level: τ, where losses are cut off; the label has variance 1.
        failure: δ.
        shares: radii of Lemma 12, as shares of r_x.
    """

    seq_lens: tuple[int, ...] = (16, 64, 256, 1024)
    token_dim: int = 10
    log_samples: tuple[int, ...] = (4, 5, 6, 7, 8, 9, 10, 11, 12)
    level: float = 4.0
    failure: float = 0.05
    shares: tuple[float, ...] = (0.15, 0.2, 0.25, 0.3, 0.6, 0.8, 0.9, 1.0)


# Settings of the small version, which takes seconds.
REDUCED = {'seq_lens': (8, 16), 'token_dim': 3, 'log_samples': (4, 6, 8, 10, 12), 'shares': (0.3, 1.0)}


def _log_covers(transformer_task: SparseTask, rnn_task: SparseTask, task_draw: tasks.Draw, radius: float) -> dict:
    """ε → log C of the balls that just hold the constructions, for tokens up to r_x, by network."""
    built = constructions.transformer(transformer_task, task_draw, radius, coherence=0.5)
    params = built.params['params']
    qk_HxExE, hidden = np.asarray(params['attention']['qk_HxExE']), params['hidden']
    attention: dict[str, Any] = {
        'num_heads': 1,
        'width': len(params['out']['kernel']),
        'embedding_dim': transformer_task.embedding_dim,
        'norm_a': float(np.linalg.norm(params['out']['kernel'])),
        'norm_w': math.hypot(np.linalg.norm(hidden['kernel']), np.linalg.norm(hidden['bias'])),
        'norm_qk': float(np.abs(qk_HxExE).sum()),
        'radius_z': math.sqrt(radius**2 + 2 * transformer_task.scale**2),
    }
    kept = recurrences.retrieving(rnn_task, task_draw, radius)
    tree = kept.params['params']
    in_cell, everything = (sum(map(np.size, jax.tree.leaves(part))) for part in (tree['cell'], tree))
    recurrence: dict[str, Any] = {
        'norm': max(1.0, kept.norms['param_norm']),
        'depths': (sum('kernel' in name for name in tree['cell']) - 1, len(tree) - 1),
        'sizes': (in_cell // 2, everything - in_cell),
        'radius_h': radius,
        'radius_z': math.sqrt(radius**2 + 2 * rnn_task.scale**2),
        'lipschitz': 0.0,
    }
    return {
        TRANSFORMER: lambda distance: bounds.log_cover_transformer(distance, **attention),
        RNN: lambda distance: bounds.log_cover_rnn(distance, rnn_task.seq_len, **recurrence),
    }


def _bounds(settings: Settings, seq_len: int) -> list[dict[str, Any]]:
    """The bound on the risk of an ERM with training risk 0, by network and n."""
    sizes = {'seq_len': seq_len, 'sparsity': 1, 'token_dim': settings.token_dim, 'link': 'linear'}
    sizes |= {'encoding_dim': max(24, round(20 * math.log(seq_len))), 'encoding_scale': 'scaled', 'max_coherence': 0.5}
    both = tasks.build('qstr', **sizes), tasks.build('simple_qstr', **sizes)
    task_draw = jax.device_get(jax.jit(both[0].draw)(tasks.task_key(0, both[0])))
    rows = []
    for log_n in settings.log_samples:
        n = 10.0**log_n
        radius = rates.token_radius(n, seq_len, settings.token_dim, bounds.gaussian_moment(settings.token_dim))
        for network, predictions in _log_covers(*both, task_draw, radius).items():
            losses = bounds.truncated(predictions, settings.level)
            steps = [step(losses, n, settings.level) for step in (bounds.chaining, bounds.one_step)]
            sizes_of = {'num_samples': n, 'bound': settings.level, 'failure': settings.failure}
            bound = bounds.risk(0.0, min(steps), **sizes_of)
            rows.append({'network': network, 'seq_len': seq_len, 'num_samples': n, 'bound': bound})
    return rows


def _tails(settings: Settings) -> pd.DataFrame:
    """P(max ‖x_j‖ ≥ R) of n = 1,000 prompts, exactly and by Lemma 12."""
    rows, n, d = [], 1000, settings.token_dim
    moment = bounds.gaussian_moment(d)
    for seq_len in (min(settings.seq_lens), max(settings.seq_lens)):
        for share in settings.shares:
            radius = share * rates.token_radius(n, seq_len, d, moment)
            exact = -np.expm1(n * seq_len * np.log1p(-special.chdtrc(d, radius**2)))
            bound = bounds.largest_token(radius, n, seq_len, d, moment)
            rows.append({'seq_len': seq_len, 'share': share, 'exact': float(exact), 'bound': bound})
    return pd.DataFrame(rows)


def first_below(rows: pd.DataFrame) -> pd.DataFrame:
    """n from which on the bound is below 1, or infinity: seq_len, network, num_samples."""
    found = []
    for (network, seq_len), one in rows.groupby(['network', 'seq_len'], sort=False):
        log_n = np.interp(0.0, -np.log(one['bound']), np.log(one['num_samples']), right=np.inf)
        found.append({'network': network, 'seq_len': seq_len, 'num_samples': float(np.exp(log_n))})
    return pd.DataFrame(found)


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card, computed anew."""
    with jax.enable_x64(True):
        computed = [row for n in progress.each(settings.seq_lens, 'bounds: N') for row in _bounds(settings, n)]
    found, tail = pd.DataFrame(computed), _tails(settings)
    needed = first_below(found)
    told = '; '.join(
        f'{network}: {", ".join(f"{row.num_samples:.0e} (N = {row.seq_len})" for row in one.itertuples())}'
        for network, one in needed.groupby('network', sort=False)
    )
    return Card(
        statement='Proposition 17, Corollary 31, Lemmas 12, 18 and 32, Corollaries 19 and 33',
        claim='Covering numbers bound the risk of every ERM in the ball of the construction; N enters by logarithms.',
        setting=f'linear link, q = 1, d = {settings.token_dim}, scaled encodings of coherence 1/2, d_e = 20 ln N; the '
        f'least balls with the constructions of Lemma 11 and Propositions 26-28, losses cut at {settings.level:g}, '
        f'training risk 0, probability {1 - settings.failure:g}; all constants of the proofs.',
        panels=(
            Panel('risk of an ERM, at most', 'n', 'bound', log_x=True, log_y=True),
            Panel('from which n the bound is below 1', 'N', 'n', log_x=True, log_y=True),
            Panel('Lemma 12, n = 1,000; below 10⁻¹⁸ drawn there', 'R/r_x', 'P(max ‖x_j‖ ≥ R)', log_y=True),
        ),
        points=pd.DataFrame(_points(found, needed, tail)),
        lines=pd.DataFrame(_lines(found, tail)),
        checks=checks_of(found, tail),
        finding=f'The bounds say something, a risk below 1, from n on: {told}. ERMs that are '
        'trained need hundreds to thousands of samples (card theorem4): the theorem gives the rate; its constants are '
        'far too large.',
    )


def checks_of(rows: pd.DataFrame, tail: pd.DataFrame) -> tuple[check.Check, ...]:
    """The comparisons of the verdict; rows as of `_bounds`, tail of `_tails`."""
    last = [one.sort_values('num_samples')[-2:] for _, one in rows.groupby(['network', 'seq_len'])]
    slopes = [np.diff(np.log(one['bound']))[0] / np.diff(np.log(one['num_samples']))[0] for one in last]
    needed = first_below(rows)
    first = needed.groupby('network').transform('first')
    logs = np.log(needed['seq_len']) / np.log(first['seq_len'])
    later = needed['seq_len'] > first['seq_len']
    grown = (needed['num_samples'] / first['num_samples'])[later]
    return (
        check.below('the bounds fall as n^(−1/2), up to logarithms: exponent at the largest n', slopes, -0.45),
        check.below('n for a bound below 1 grows no faster than (log N)^3', grown, logs[later] ** 3),
        check.fails('a wrong line, the same n at every N, is crossed', check.below('', grown, 1.0)),
        check.above('Lemma 12: bound ≥ P(max ‖x_j‖ ≥ R)', tail['bound'], tail['exact'], can_fail=tail['bound'] < 1),
    )


def _points(rows: pd.DataFrame, needed: pd.DataFrame, tail: pd.DataFrame) -> list[dict[str, Any]]:
    ends = rows[rows['seq_len'].isin([rows['seq_len'].min(), rows['seq_len'].max()])]
    points = points_by(0, ends, '{network}, N = {seq_len}', 'num_samples', 'bound')
    points += points_by(1, needed[np.isfinite(needed['num_samples'])], '{network}', 'seq_len', 'num_samples')
    return points + points_by(2, tail, 'N = {seq_len}', 'share', 'exact')


def _lines(rows: pd.DataFrame, tail: pd.DataFrame) -> list[dict[str, Any]]:
    ends = [rows['num_samples'].min(), rows['num_samples'].max()]
    lines = line(0, 'zero', ends, 1)
    return lines + lines_by(2, 'Lemma 12', tail, by='seq_len', x='share', y='bound', of='N = {}')
