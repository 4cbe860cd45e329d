"""Card of Theorem 6: FFNs fitted on n samples of simple-1STR against the floor of their own training set."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import learners, models, tasks
from qstr_jax.analysis import floors as run_floors
from qstr_jax.learners.problem import Problem
from qstr_jax.storage import results
from qstr_jax.theory import floors
from qstr_jax.theory.cards import card, training

NAME = 'theorem6'
ORACLE = 'theorem6_oracle'


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the card.

    Attributes:
        rows: path of results of `experiments.learning_curves` to draw. '' fits networks instead, by gradient descent
            with momentum from inside the span of the training prompts; only these depend on the settings below.
        seq_len: N.
        token_dim: d.
        tenths: values of n as tenths of N d.
        num_lanes: networks for each n.
        widths: widths of the hidden layers.
        steps: training steps.
        learning_rate: the first one; it falls along a cosine.
        weight_decay: λ of the ridge penalty on all weights.
        test_samples: test prompts.
    """

    rows: str = ''
    seq_len: int = 8
    token_dim: int = 5
    tenths: tuple = (1, 2, 4, 6, 8, 9, 12, 20)
    num_lanes: int = 5
    widths: tuple = (64, 64)
    steps: int = 2000
    learning_rate: float = 0.03
    weight_decay: float = 1e-3
    test_samples: int = 4000


def _problem(settings: Settings, num_samples: int) -> Problem:
    task = tasks.build(
        'simple_qstr',
        seq_len=settings.seq_len,
        sparsity=1,
        token_dim=settings.token_dim,
        link='linear',
        encoding_dim=12,
    )
    learner = learners.Stationary(
        optimizer='sgd',
        batch_size=0,
        schedule='cosine',
        max_steps=settings.steps,
        check_every=max(1, settings.steps // 10),
        test_samples=settings.test_samples,
        validation_samples=1,
        span='started',
    )
    module = models.Feedforward(tuple(settings.widths), settings.token_dim, 'theorem6')
    return Problem(task=task, test_task=task, module=module, learner=learner.bind(module, task, (num_samples,)))


@jax.jit
def _oracle(data: Any, num_samples: int) -> tuple[jax.Array, jax.Array]:
    """The floor of one lane's (u, training set), and its oracle's squared errors on the test prompts."""
    x_BxNxD, u_D = data.train.x_NxD, data.task_draw.link['u_V']
    # Prompts beyond n become zeros, which add nothing to the span, so that one program serves every n.
    x_BxNxD = jnp.where(jnp.arange(x_BxNxD.shape[0])[:, None, None] < num_samples, x_BxNxD, 0.0)
    basis_RxV = floors.span_basis(x_BxNxD.reshape(x_BxNxD.shape[0], -1))
    prompts = data.held_out
    predict = jax.vmap(lambda x_NxD, t: floors.theorem6_oracle(basis_RxV, x_NxD, t, u_D))
    prediction_B = predict(prompts.x_NxD, prompts.t_NxQ[:, 0, 0])
    return floors.theorem6_given(x_BxNxD, u_D), (prompts.y_N[:, 0] - prediction_B) ** 2


def _own_rows(settings: Settings, sizes: list[int]) -> list[dict[str, Any]]:
    """A fitted FFN and the oracle for every n and lane, with the columns of `run_floors.with_floor`; one program."""
    problem = _problem(settings, max(sizes))
    size_K = jnp.repeat(jnp.asarray(sizes), settings.num_lanes)
    seeds_K, full = jnp.tile(jnp.arange(settings.num_lanes), len(sizes)), functools.partial(jnp.full, size_K.shape)
    rates_K = {'learning_rate': full(settings.learning_rate), 'weight_decay': full(settings.weight_decay)}
    lanes_K = learners.lane(problem.learner, seed=seeds_K, task_seed=seeds_K, sample_size=size_K, **rates_K)
    data_K, state_K = learners.init(lanes_K, problem)
    tasks.check_draw(data_K.task_draw.encodings.complete, problem.task)
    state_K = learners.advance(state_K, data_K, lanes_K, problem.learner.max_checks, problem)
    found = problem.learner.report(state_K, problem)
    rows = []
    for k, (seed, size) in enumerate(zip(seeds_K.tolist(), size_K.tolist(), strict=True)):
        floor, errors_B = _oracle(training.lane(data_K, k), size)
        loss, error = training.mean_and_error(errors_B)
        common = {
            'seq_len': settings.seq_len,
            'token_dim': settings.token_dim,
            'seed': seed,
            'num_samples': size,
            'outcome': found['outcome'][k],
            'floor': max(0.0, float(floor)),
            'load': size / (settings.seq_len * settings.token_dim),
        }
        fit = {column: float(found[column][k]) for column in ('test_loss', 'test_loss_se', 'span_residual')}
        rows.append({**common, 'model': 'ffn', 'learner': 'stationary', **fit})
        best = {'test_loss': float(loss), 'test_loss_se': float(error), 'span_residual': 0.0}
        rows.append({**common, 'model': ORACLE, 'learner': '', **best})
    return rows


def _load(path: str) -> pd.DataFrame:
    """Rows of a results directory that Theorem 6 is about, without those that diverged."""
    try:
        rows = run_floors.with_floor(results.load(path))
    except ValueError as error:
        raise ValueError(f'{NAME}.rows={path!r}: {error}; give those of configs/theorem6.py') from None
    rows = rows[rows['is_bound'] & (rows['outcome'] != 'diverged')]
    if (rows['model'] == 'ffn').sum() == 0:
        raise ValueError(f'{NAME}.rows={path!r}: no rows of the model ffn in it')
    return rows.assign(floor=rows['floor'].clip(lower=0.0))


def measure(settings: Settings, bar: card.Bar) -> pd.DataFrame:
    """Losses of fitted FFNs and of oracles.

    Args:
        settings: of the card.
        bar: progress bar.

    Returns:
        Rows with the columns of `run_floors.with_floor`: floor of the own training set, load = n/(Nd).
    """
    if settings.rows:
        return _load(settings.rows)
    sizes = [max(1, round(part * settings.seq_len * settings.token_dim / 10)) for part in settings.tenths]
    return pd.DataFrame([row for _ in bar([0], 'all n') for row in _own_rows(settings, sizes)])


def printed_of(rows: pd.DataFrame, share: float = 1.0) -> np.ndarray:
    """Theorem 6's printed floor of each row, see `floors.theorem6_floor`.

    Args:
        rows: with the columns num_samples, seq_len and token_dim.
        share: share of the training prompts that are taken to be there.
    """
    sizes = zip(rows['num_samples'], rows['seq_len'], rows['token_dim'], strict=True)
    return np.array([floors.theorem6_floor(share * n, seq_len, d) for n, seq_len, d in sizes])


def checks_of(rows: pd.DataFrame) -> tuple[card.Check, ...]:
    """The comparisons of the verdict.

    Args:
        rows: of `measure`.
    """
    rows = rows.assign(printed_floor=printed_of(rows))
    fitted, oracle = rows[rows['model'] != ORACLE], rows[rows['model'] == ORACLE]
    below, partial = fitted[fitted['load'] < 1], oracle[oracle['load'] < 1]
    means = partial.groupby(['load', 'printed_floor'])['floor'].agg(['mean', 'std', 'count']).reset_index()
    # Half of the training prompts show less, so their floor is too high.
    wrong = card.above('', oracle['test_loss'], printed_of(oracle, share=0.5), oracle['test_loss_se'])
    return (
        card.above(
            'fitted FFNs ≥ the floor of their own (u, training set)',
            fitted['test_loss'],
            fitted['floor'],
            fitted['test_loss_se'],
        ),
        card.above('fitted FFNs ≥ 1 − n/(Nd), mean over draws', *_mean_over_draws(below)),
        card.near(
            'the oracle attains the floor of its set', partial['test_loss'], partial['floor'], partial['test_loss_se']
        ),
        card.near(
            'floors of sets average to 1 − n/(Nd)',
            means['mean'],
            means['printed_floor'],
            means['std'] / np.sqrt(means['count']),
        ),
        card.fails('a wrong floor, 1 − n/(2Nd), is crossed', wrong),
        card.below('rows of W lie in the span: residual ≤ 1e-3', fitted['span_residual'].fillna(np.inf), 1e-3),
    )


def _mean_over_draws(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series]:
    """Mean losses, printed floors and standard errors by learner, N and load."""
    groups = rows.groupby(['learner', 'seq_len', 'load', 'printed_floor'])
    grouped = groups['test_loss'].agg(['mean', 'std', 'count']).reset_index()
    return grouped['mean'], grouped['printed_floor'], (grouped['std'] / np.sqrt(grouped['count'])).fillna(0.0)


def make(settings: Settings, bar: card.Bar) -> card.Card:
    """Makes the card.

    Args:
        settings: of the card.
        bar: progress bar.
    """
    rows = measure(settings, bar)
    origin = (
        f'rows of {settings.rows}'
        if settings.rows
        else (
            f'N = {settings.seq_len}, d = {settings.token_dim}, widths {settings.widths[0]}, {settings.widths[1]}, '
            'full-batch gradient descent with momentum from inside the span, '
            f'λ = {settings.weight_decay:g}, {settings.steps:,} steps'
        )
    )
    fitted = rows[rows['model'] != ORACLE]
    margin = ((fitted['test_loss'] - fitted['floor']) / fitted['test_loss_se']).min()
    return card.Card(
        name=NAME,
        statement='Theorem 6',
        claim='On simple-1STR an FFN at a stationary point or of least norm has risk ≥ 1 − n/(Nd) on average over u, '
        'and ≥ the floor of its own (u, training set).',
        setting=f'simple-1STR, linear; {origin}; every lane its own (u, ω).',
        panels=(
            card.Panel('test loss against n/(Nd)', 'n/(Nd)', 'test loss'),
            card.Panel('each run against its own floor', 'floor of (u, training set)', 'test loss', join=False),
        ),
        points=pd.DataFrame(_points(rows)),
        lines=pd.DataFrame(_lines(rows)),
        checks=checks_of(rows),
        finding=f'{len(fitted)} fitted networks; the nearest lies {margin:.1f} standard errors above its floor. The '
        'floor is one side only: it does not say that an FFN gets near it.',
    )


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in rows.itertuples():
        name = 'oracle' if row.model == ORACLE else f'FFN, {row.learner}'
        yield card.point(0, name, row.load, min(row.test_loss, 2.0), row.test_loss_se)
        yield card.point(1, name, row.floor, min(row.test_loss, 2.0), row.test_loss_se)


def _lines(rows: pd.DataFrame) -> list[dict[str, Any]]:
    loads = np.linspace(0, max(1.0, rows['load'].max()), 60)
    floor = [floors.theorem6_floor(load, 1, 1) for load in loads]  # n in units of N d
    return card.line(0, '1 − n/(Nd)', loads, floor) + card.line(1, 'floor', [0, 1], [0, 1])
