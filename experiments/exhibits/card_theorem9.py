"""Card of Theorem 9: the norm that fits n samples, of trained and constructed RNNs, against the norm that retrieves."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from experiments import cards
from qstr_jax import analysis, progress, tasks
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, point
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import draws, interpolation, rates, recurrences, rnn_sizes

ORDER = 400
QUESTION = 'Does fitting n samples cost an RNN less norm than retrieving?'
LIMITS = (
    'The threshold n ≤ N^c, which is asymptotic, and that every RNN that retrieves has the norm of the claim: no '
    'finite run tests them. The least norm is the least that a search of radii found.'
)
STORING_DEPTH = 4  # layers of the storing RNN's read-out, L_y
UPPER = 'upper end of 95 %, by lane noise alone'
LEAST, ONLINE = 'least norm', 'fresh prompts'
# Sizes of the trained RNNs.
WIDTH, READOUT, DEPTH = 16, 128, 2


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card.

    Attributes:
        num_samples: values of n, the prompts that the memoriser fits.
        draws: memorisers for each n.
        seq_len: N of the memoriser's task.
        seq_lens: values of N of the storing RNN's task.
        token_dim: d of the memoriser and the storing RNN.
        trained_lens: values of N of the trained RNNs, with d = 1.
        trained_samples: values of n for the trained RNNs of least norm.
        num_lanes: trained RNNs of each kind.
        bisections: radii that are tried for the least norm.
        steps: training steps of each radius.
        online_steps: training steps on fresh prompts of the RNNs that retrieve.
        epsilon: ε, the training risk that the RNNs of least norm may keep.
        test_samples: prompts on which risks are measured.
    """

    num_samples: tuple[int, ...] = (8, 16, 32, 64, 128)
    draws: int = 5
    seq_len: int = 16
    seq_lens: tuple[int, ...] = (8, 16, 32, 64)
    token_dim: int = 10
    trained_lens: tuple[int, ...] = (4, 8, 16)
    trained_samples: tuple[int, ...] = (8, 32, 128)
    num_lanes: int = 5
    bisections: int = 5
    steps: int = 800
    online_steps: int = 2500
    epsilon: float = 0.01
    test_samples: int = 1000


# Settings of the small version, which takes seconds.
REDUCED = {
    'num_samples': (4, 8), 'draws': 1, 'seq_len': 4, 'seq_lens': (3,), 'token_dim': 3, 'trained_lens': (2, 3),
    'trained_samples': (4, 8), 'num_lanes': 1, 'bisections': 1, 'steps': 20, 'online_steps': 20, 'test_samples': 50,
}  # fmt: skip


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """The RNNs of least norm that fit n samples of the point-wise risk, and the same RNN on fresh prompts."""
    task = {'name': 'qstr', 'seq_len': settings.trained_lens, 'sparsity': 1, 'token_dim': 1}
    task |= {'link': 'linear', 'encoding_dim': 8}
    model = {'width': WIDTH, 'cell': 'gru', 'states': 'exclusive', 'readout': 'mlp', 'readout_widths': (READOUT,)}
    least = {'epsilon': settings.epsilon, 'bisections': settings.bisections, 'risk': 'pointwise', 'batch_size': 32}
    least |= {'schedule': 'cosine', 'learning_rate': 1e-2, 'max_steps': settings.steps, 'validation_samples': 1}
    least |= {'check_every': max(1, settings.steps // 4), 'test_samples': settings.test_samples}
    fits = {'learners': 'min_norm', 'learner': least, 'num_samples': settings.trained_samples}
    fresh = cards.Settings(settings.online_steps, 64, 5e-3, settings.test_samples)
    rnn: dict[str, Any] = {'models': 'rnn', 'rnn': model}
    return {
        LEAST: cards.own_draws(task, settings.num_lanes, **rnn, **fits),
        ONLINE: cards.online(fresh, task, num_seeds=settings.num_lanes, probes='param_norm', **rnn),
    }


def measure(rows: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Norms and risks of all trained RNNs: network, seq_len, num_samples, lane, square, loss, error and converged."""
    least, online = rows[LEAST], rows[ONLINE]
    both = [
        least.assign(network=LEAST, square=least['norm'] ** 2, error=least['test_loss_se']),
        online.assign(network=ONLINE, square=online['param_norm'] ** 2, error=np.nan, converged=True),
    ]
    found = pd.concat(both, ignore_index=True).rename(columns={'test_loss': 'loss', 'seed': 'lane'})
    return found.astype({'converged': bool})


def at_one_size(rows: pd.DataFrame) -> pd.DataFrame:
    """‖Θ‖² over its geometric mean at the same n, so that all n make one curve in N: the mean over n of each task."""
    logs = np.log(rows['square'])
    ratios = logs - logs.groupby(rows['num_samples']).transform('mean')
    return np.exp(ratios.groupby([rows['seq_len'], rows['lane']]).mean()).rename('square').reset_index()


def _memoriser(settings: Settings, num_samples: int, draw: int) -> dict[str, Any]:
    """Norms and training risk (point-wise) of one memoriser."""
    task = tasks.build('qstr', seq_len=settings.seq_len, sparsity=1, token_dim=settings.token_dim, link='linear')
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, num_samples, seed=10 + draw)
        positions_B = tasks.positions(jax.random.key(draw), jnp.arange(num_samples), settings.seq_len)
        built = interpolation.memorising(jax.random.key(draw), prompts, positions_B, task)
        fitted_BxN = draws.square_errors(built.module, built.params, prompts, task, task_draw)
        risk = np.mean(fitted_BxN[np.arange(num_samples), np.asarray(positions_B)])
    norms = {'square': built.norms['square'], 'layerwise': built.norms['square_layerwise']}
    return {'num_samples': num_samples, 'risk': float(risk), 'bound': built.bounds['square'], **norms}


def _storing(settings: Settings, seq_len: int) -> dict[str, Any]:
    """‖Θ‖² of the RNN that stores all tokens, exact at every N, with states in the unit ball (r_h = 1)."""
    task = tasks.build('qstr', seq_len=seq_len, sparsity=1, token_dim=settings.token_dim, link='linear')
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, 2)
        bound = float(jnp.max(jnp.abs(prompts.x_NxD)))
        radius = float(jnp.max(jnp.linalg.norm(prompts.x_NxD, axis=-1)))
        built = recurrences.storing(task, task_draw, bound, radius=radius, state_radius=1.0)
        error = draws.largest_error(built.module, built.params, prompts, task, task_draw)
    square, width = built.norms['param_norm'] ** 2, seq_len * task.token_dim
    return {'seq_len': seq_len, 'square': square, 'width': width, 'error': error}


def _finding(rows: pd.DataFrame, stored: pd.DataFrame, trained: pd.DataFrame) -> str:
    """Exponents in n and N, and how far the proven lower line is."""
    fitted = trained[trained['network'] == LEAST]
    trained_in_n, built_in_n = (cards.power('n', one['num_samples'], one['square']) for one in (fitted, rows))
    sizes = at_one_size(fitted)
    in_length = cards.power('N', sizes['seq_len'], sizes['square'])
    last = stored.iloc[-1]
    proven = rnn_sizes.theorem9_generalise(last['seq_len'], last['width'], STORING_DEPTH)
    return (
        f'‖Θ‖²: trained {trained_in_n}, at given n {in_length}; constructed {built_in_n}. The proven side is far '
        f'lower: with constant 1 it asks for ‖Θ‖² ≥ {proven:.1f} at N = {last["seq_len"]:.0f}, where the storing RNN '
        f'has {analysis.short_number(last["square"])}. The threshold n ≤ N^c is asymptotic: no finite run tests it.'
    )


def checks_of(rows: pd.DataFrame, stored: pd.DataFrame, trained: pd.DataFrame) -> tuple[check.Check, ...]:
    """The comparisons of the verdict."""
    power = cards.exponent(rows['num_samples'], rows['square'])
    every, online = (trained[trained['network'] == name] for name in (LEAST, ONLINE))
    fitted = every[every['converged']]
    sizes = at_one_size(fitted)
    in_length = cards.exponent(sizes['seq_len'], sizes['square'])
    means = np.log(rows['square']).groupby(np.log(rows['num_samples'])).mean()
    cost = np.exp(np.interp(np.log(fitted['num_samples']), means.index, means))
    blind, seeing = 1 - 1 / fitted['seq_len'], online[online['seq_len'] == online['seq_len'].min()]
    return (
        check.below('the least norm found: ‖Θ‖² ≤ that of the memoriser on as many samples', fitted['square'], cost),
        check.below(f'‖Θ‖² at given n grows slower than N^(1/{DEPTH}): {UPPER}', in_length.high, 1 / DEPTH),
        check.above('least norm fits, but retrieves nothing: risk ≥ 1 − 1/N', fitted['loss'], blind, fitted['error']),
        check.below('the same RNN on fresh prompts: risk < 1 − 1/N', seeing['loss'], 1 - 1 / seeing['seq_len']),
        check.above('share of fits that reached risk ε', len(fitted) / len(every), 0.9),
        check.below('training risk of the memoriser ≤ 1e-8', rows['risk'], 1e-8),
        check.below('memoriser: ‖Θ‖² ≤ the bound of Lemma 38', rows['layerwise'], rows['bound']),
        check.below('memoriser: exponent of ‖Θ‖² in n ≤ 3, lower end of 95 %', power.low, 3.0),
        check.below('the storing RNN (r_h = 1) is exact', stored['error'], 1e-9),
    )


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows; constructions are made anew."""
    cells = list(itertools.product(settings.num_samples, range(settings.draws)))
    memorisers = pd.DataFrame([_memoriser(settings, *cell) for cell in progress.each(cells, 'theorem9: memoriser')])
    stored = pd.DataFrame([_storing(settings, seq_len) for seq_len in settings.seq_lens])
    trained = measure(rows)
    return Card(
        statement='Theorem 9, Lemmas 36-38',
        claim='Fitting n samples of the point-wise risk costs ‖Θ‖² = O(n³) whatever N is, retrieving costs '
        'Ω((N/log d_h)^(1/L_y)): for small n the least norm fits and does not retrieve (Ω is not checked).',
        setting=f'1STR, linear; trained: exclusive GRU, d = 1, d_h = {WIDTH}, L_y = {DEPTH}, states of norm above '
        "the theorem's r_h = 1 allowed, least norm by "
        f'bisection to risk {settings.epsilon:g}, {settings.num_lanes} lanes; constructed: d = {settings.token_dim}, '
        f'memoriser at N = {settings.seq_len}, {settings.draws} draws, storing RNN with L_y = '
        f'{STORING_DEPTH}, float64.',
        panels=(
            Panel('fitting n samples', 'n', '‖Θ‖²', log_x=True, log_y=True),
            Panel('by N', 'N', '‖Θ‖²', log_x=True, log_y=True),
            Panel('risk of the trained', 'n', 'population risk', log_x=True),
        ),
        points=pd.DataFrame(_points(memorisers, stored, trained)),
        lines=pd.DataFrame(_lines(settings, memorisers, stored)),
        checks=checks_of(memorisers, stored, trained),
        finding=_finding(memorisers, stored, trained),
    )


NORMS = {'square': 'memoriser, one factor per unit', 'layerwise': 'one factor for all', 'bound': 'bound of Lemma 38'}


def _points(rows: pd.DataFrame, stored: pd.DataFrame, trained: pd.DataFrame) -> Iterator[dict[str, Any]]:
    fitted = trained[trained['network'] == LEAST]
    for (seq_len, num_samples), chosen in fitted.groupby(['seq_len', 'num_samples']):
        square, loss = chosen['square'], chosen['loss']
        yield point(0, f'trained, N = {seq_len}', num_samples, square.mean(), square.sem())
        yield point(1, f'trained, n = {num_samples}', seq_len, square.mean(), square.sem())
        yield point(2, f'trained, N = {seq_len}', num_samples, loss.mean(), loss.sem())
    for num_samples, chosen in rows.groupby('num_samples'):
        for column, name in NORMS.items():
            yield point(0, name, num_samples, chosen[column].mean(), chosen[column].sem())
    for seq_len, chosen in trained[trained['network'] == ONLINE].groupby('seq_len'):
        yield point(1, 'trained on fresh prompts', seq_len, chosen['square'].mean(), chosen['square'].sem())
    for row in stored.itertuples():
        yield point(1, 'storing RNN', row.seq_len, row.square)


def _lines(settings: Settings, rows: pd.DataFrame, stored: pd.DataFrame) -> list[dict[str, Any]]:
    counts, lengths = list(settings.num_samples), list(settings.seq_lens)
    at = rows[rows['num_samples'] == counts[-1]]['square'].mean()
    cubic = rates.through(rnn_sizes.theorem9_memorise, counts[-1], at)
    lines = line(0, '∝ n³', counts, [cubic(n) for n in counts])
    lower = [rnn_sizes.theorem9_generalise(row.seq_len, row.width, STORING_DEPTH) for row in stored.itertuples()]
    lines += line(1, '(N/log d_h)^(1/L_y), constant 1', lengths, lower)
    for n in settings.trained_lens:
        ends = [min(settings.trained_samples), max(settings.trained_samples)]
        label = '1 − 1/N' if n == settings.trained_lens[0] else ''
        lines += line(2, label, ends, 1 - 1 / n, of=f'trained, N = {n}')
    return lines
