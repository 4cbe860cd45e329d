"""Card of Theorem 6: FFNs at stationary points against the floor of their own training set, and a Transformer below."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from experiments import cards
from qstr_jax import progress, tasks
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, point
from qstr_jax.sweeps import Sweep, cells_of
from qstr_jax.tasks import streams
from qstr_jax.theory import draws, floors, table_readout
from qstr_jax.theory.sparse_task import SparseTask

ORDER = 360
QUESTION = 'Does an FFN at a stationary point ever err less than the floor of its own training set?'
LIMITS = 'FFNs that are not at a stationary point, to which the theorem does not apply, and links that are not linear.'
TASKS = {'simple_qstr': 'simple-1STR', 'qstr': '1STR'}
# Largest ‖∇_W‖/‖λ W‖ of a fit that counts as converged.
CONVERGED = 1e-2
FFN, TRANSFORMER = 'FFN', 'Transformer'


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card; networks have m = 2N and ridge penalty λ on all weights.

    Attributes:
        simple_lens: values of N on simple-1STR.
        seq_lens: values of N on 1STR, where a prompt asks for N indices.
        token_dim: d.
        tenths: values of n as tenths of N d.
        num_lanes: networks for each n, each with its own (u, ω) and prompts.
        weight_decay: λ.
        max_steps: most steps of L-BFGS.
        control_len: N of the Transformer, on 1STR; the FFN beside it has the same prompts.
        control_tenths: its n as tenths of N d.
        control_lanes: number of Transformers.
        control_dim: d_e of the Transformer.
        control_steps: its training steps, AdamW with batches of 32.
        test_samples: test prompts of the oracle and the Transformer.
    """

    simple_lens: tuple[int, ...] = (2, 3, 4)
    seq_lens: tuple[int, ...] = (4, 16)
    token_dim: int = 10
    tenths: tuple[int, ...] = (1, 3, 5, 7, 8, 9, 12)
    num_lanes: int = 5
    weight_decay: float = 1e-3
    max_steps: int = 5000
    control_len: int = 64
    control_tenths: int = 8
    control_lanes: int = 5
    control_dim: int = 75
    control_steps: int = 1000
    test_samples: int = 2000


# Settings of the small version, which takes seconds.
REDUCED = {
    'simple_lens': (2,), 'seq_lens': (3,), 'token_dim': 3, 'tenths': (5,), 'num_lanes': 2, 'max_steps': 300,
    'control_len': 3, 'control_lanes': 1, 'control_dim': 4, 'control_steps': 20, 'test_samples': 100,
}  # fmt: skip


def _size(settings: Settings, seq_len: int, tenths: float) -> int:
    return max(1, round(tenths * seq_len * settings.token_dim / 10))


def _fitted(settings: Settings, task: SparseTask, prompts: tasks.Prompt, u_D: Any, seed: int) -> dict[str, Any]:
    """One FFN on the prompts, with the columns that all networks have."""
    num_samples, seq_len = len(prompts.y_N), task.seq_len
    x_BxV = np.asarray(prompts.x_NxD, np.float64).reshape(num_samples, -1)
    t_BxR = np.asarray(prompts.t_NxQ)[:, : 1 if task.name == 'simple_qstr' else seq_len, 0]
    sizes = {'width': 2 * seq_len, 'weight_decay': settings.weight_decay, 'max_steps': settings.max_steps}
    fit = table_readout.fit(x_BxV, t_BxR, np.asarray(u_D, np.float64), seed=seed, **sizes)
    row = {'network': FFN, 'task': task.name, 'seq_len': seq_len, 'num_samples': num_samples, 'lane': seed}
    row |= {'load': num_samples / (seq_len * task.token_dim), 'loss': fit.loss(u_D), 'error': 0.0}
    row |= {'residual': fit.residual, 'off_span': fit.off_span(x_BxV), 'oracle': np.nan, 'oracle_error': np.nan}
    return row | {'floor': _floor(prompts, u_D)}


def _floor(prompts: tasks.Prompt, u_D: Any) -> float:
    return max(0.0, float(floors.theorem6_given(jnp.asarray(prompts.x_NxD), jnp.asarray(u_D))))


def _lane(settings: Settings, name: str, seq_len: int, seed: int) -> list[dict[str, Any]]:
    """FFNs and oracles on nested training sets of one draw."""
    task = tasks.build(name, seq_len=seq_len, sparsity=1, token_dim=settings.token_dim, link='linear')
    sizes = [_size(settings, seq_len, tenths) for tenths in settings.tenths]
    rows = []
    with jax.enable_x64(True):
        task_draw, prompts = draws.draw(task, max(sizes), seed=2 * seed + 1, task_seed=seed)
        _, fresh = draws.draw(task, settings.test_samples, seed=2 * seed + 2, task_seed=seed)
        u_D = task_draw.link['u_V']
        for size in sizes:
            row = _fitted(settings, task, jax.tree.map(lambda leaf, n=size: leaf[:n], prompts), u_D, seed)
            basis_RxV = floors.span_basis(prompts.x_NxD[:size].reshape(size, -1))
            oracle = jax.vmap(lambda x_NxD, t, v=basis_RxV: floors.theorem6_oracle(v, x_NxD, t, u_D))
            errors_B = (fresh.y_N[:, 0] - oracle(fresh.x_NxD, fresh.t_NxQ[:, 0, 0])) ** 2
            loss, error = draws.mean_and_error(errors_B)
            rows.append(row | {'oracle': loss, 'oracle_error': error})
    return rows


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """Transformers that are trained on n prompts of 1STR."""
    task = {'name': 'qstr', 'seq_len': settings.control_len, 'sparsity': 1, 'token_dim': settings.token_dim}
    task |= {'link': 'linear', 'encoding_dim': settings.control_dim, 'encoding_scale': 'scaled'}
    learner = {'batch_size': 32, 'schedule': 'cosine', 'learning_rate': 3e-3, 'weight_decay': 0.0}
    learner |= {'max_steps': settings.control_steps, 'check_every': settings.control_steps}
    learner |= {'test_samples': settings.test_samples, 'validation_samples': 1}
    model = {'num_heads': 1, 'mlp_width': 32, 'attention': 'merged'}
    size = _size(settings, settings.control_len, settings.control_tenths)
    more = {'models': 'transformer', 'transformer': model, 'learners': 'adamw', 'learner': learner}
    return {'control': cards.own_draws(task, settings.control_lanes, num_samples=size, **more)}


def _control(settings: Settings, found: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of the Transformers beside the floors of their own prompts, and an FFN on the first one's prompts."""
    (cell,) = cells_of(sweeps(settings)['control'])
    task: Any = cell.problem.task
    rows: list[dict[str, Any]] = []
    for lane in found.itertuples():
        link = tasks.draw(tasks.task_key(lane.task_seed, task), task).link
        key = streams.stream_key(lane.seed, 'train', task)
        prompts = tasks.examples(key, jnp.arange(lane.num_samples), task, link)
        if not rows:
            rows.append(_fitted(settings, task, prompts, link['u_V'], lane.seed))
        row = {**rows[0], 'network': TRANSFORMER, 'lane': lane.seed, 'floor': _floor(prompts, link['u_V'])}
        rows.append({**row, 'loss': lane.test_loss, 'error': lane.test_loss_se})
    return rows


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows; FFNs are fitted anew."""
    lengths = {'simple_qstr': settings.simple_lens, 'qstr': settings.seq_lens}
    lanes = [(name, n, seed) for name in lengths for n in lengths[name] for seed in range(settings.num_lanes)]
    fitted = [row for lane in progress.each(lanes, 'theorem6: FFN') for row in _lane(settings, *lane)]
    return card_of(settings, pd.DataFrame([*fitted, *_control(settings, rows['control'])]))


def checks_of(rows: pd.DataFrame) -> tuple[check.Check, ...]:
    """The comparisons of the verdict; a fit that did not converge does not count as a run.

    A loss of 1 or more means that a network learnt nothing; any floor below 1 would pass beside it.
    """
    every = rows[rows['network'] == FFN]
    fitted, control = every[every['residual'] <= CONVERGED], rows[rows['network'] == TRANSFORMER]
    means = fitted.groupby(['task', 'seq_len', 'load'])['loss'].agg(['mean', 'sem', 'count'])
    means = means[means['count'] > 1]
    printed = np.maximum(0.0, 1 - means.index.get_level_values('load').to_numpy())
    learnt, oracle = (fitted['floor'] > 0) & (fitted['loss'] < 1), every[every['oracle'].notna() & (every['load'] < 1)]
    # Tokens of one seed nest in N and are the same on both tasks; u is drawn for each, so floors are uncorrelated.
    average = oracle.groupby('load')['floor'].agg(['mean', 'sem'])
    loss, sem = means['mean'].to_numpy(), means['sem'].to_numpy()
    wrong = check.above('', fitted['loss'], np.maximum(0.0, 1 - 0.6 * fitted['load']))
    return (
        check.above(
            'FFNs ≥ the floor of their own (u, training set)', fitted['loss'], fitted['floor'], can_fail=learnt
        ),
        check.above('mean over draws ≥ 1 − n/(Nd)', loss, printed, sem, can_fail=(printed > 0) & (loss < 1)),
        check.fails('a wrong floor, 1 − 0.6 n/(Nd), is crossed', wrong),
        check.below('Transformers on 1STR are below it', control['loss'] + 3 * control['error'], control['floor']),
        check.near(
            'the oracle attains the floor of its set', oracle['oracle'], oracle['floor'], oracle['oracle_error']
        ),
        check.near('floors average to 1 − n/(Nd)', average['mean'], 1 - average.index.to_numpy(), average['sem']),
        check.below('W, started elsewhere, ends in the span: share outside', fitted['off_span'], 1e-3),
        check.above('share of fits that converged', len(fitted) / len(every), 0.9),
    )


def card_of(settings: Settings, rows: pd.DataFrame) -> Card:
    """The card of measured rows."""
    return Card(
        statement='Theorem 6',
        claim='An FFN f(T, W x) at a stationary point has risk ≥ 1 − n/(Nd) on average over u, and ≥ the floor of its '
        'own (u, training set).',
        setting=f'Linear link, d = {settings.token_dim}; FFN f(T, W x)_i = ⟨a_{{t_i}}, W x⟩, m = 2N, ridge λ = '
        f'{settings.weight_decay:g}, L-BFGS from outside the span, {settings.num_lanes} draws, exact population loss; '
        f'Transformer at N = {settings.control_len}: AdamW, {settings.control_steps:,} steps.',
        panels=(
            Panel('simple-1STR: one index per prompt', 'n/(Nd)', 'loss'),
            Panel('1STR: N indices per prompt', 'n/(Nd)', 'loss', log_y=False),
            Panel('each run against its own floor', 'floor of (u, training set)', 'loss', join=False),
        ),
        points=pd.DataFrame(_points(rows)),
        lines=pd.DataFrame(_lines(settings, rows)),
        checks=checks_of(rows),
        finding=_finding(rows),
    )


def _finding(rows: pd.DataFrame) -> str:
    """How near FFNs come to the floor, and which fits do not count as runs."""
    every = rows[rows['network'] == FFN]
    fitted = every[(every['residual'] <= CONVERGED) & (every['floor'] > 0)]
    gained = (1 - fitted['loss']) / (1 - fitted['floor'])
    best = ', '.join(
        f'{share.median():.2f} ({TASKS[task]}, N = {n})'
        for (task, n), share in gained.groupby([fitted['task'], fitted['seq_len']])
    )
    return (
        f'Share of the variance that the floor allows which FFNs explain, median: {best}. On simple-1STR each index '
        'learns from its own n/N prompts, so the loss is about 1 − n/(N²d): N times as far as the floor. '
        f'{int((every["residual"] > CONVERGED).sum())} of {len(every)} fits did not converge and are not drawn.'
    )


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    groups = rows[(rows['network'] == TRANSFORMER) | (rows['residual'] <= CONVERGED)]
    for (network, task, n, load), chosen in groups.groupby(['network', 'task', 'seq_len', 'load']):
        spread = 0.0 if len(chosen) == 1 else chosen['loss'].sem()
        panel = 0 if task == 'simple_qstr' else 1
        yield point(panel, f'{network}, N = {n}', load, chosen['loss'].mean(), spread)
    for row in groups.itertuples():
        name = row.network if row.network == TRANSFORMER else f'{row.network}, {TASKS[row.task]}'
        yield point(2, name, row.floor, row.loss, row.error)


def _lines(settings: Settings, rows: pd.DataFrame) -> list[dict[str, Any]]:
    loads = np.linspace(0, rows['load'].max(), 40)
    lines = line(2, 'floor', [0, 1], [0, 1])
    for panel in (0, 1):
        lines += line(panel, 'floor 1 − n/(Nd)', loads, np.maximum(0, 1 - loads))
    for n in settings.simple_lens:
        label = '1 − n/(N²d)' if n == settings.simple_lens[0] else ''
        lines += line(0, label, loads, 1 - loads / n, of=f'{FFN}, N = {n}')
    return lines
