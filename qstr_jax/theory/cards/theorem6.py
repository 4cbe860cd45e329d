"""Card of Theorem 6: FFNs fitted on n samples of simple-1STR against the floor of their own training set."""

import dataclasses
import functools

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
    """Rows of `experiments.learning_curves` to draw; '' for own fits, which the other settings are about.

    n as tenths of N d; gradient descent with momentum from the span of the training prompts, ridge λ on all weights.
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


def _problem(settings, num_samples):
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
def _oracle(data, num_samples):
    """The floor of one lane's (u, training set), and its oracle's squared errors on the test prompts."""
    x_BxNxD, u_D = data.train.x_NxD, data.task_draw.link['u_K']
    # Prompts beyond n become zeros, which add nothing to the span: one program for every n.
    x_BxNxD = jnp.where(jnp.arange(x_BxNxD.shape[0])[:, None, None] < num_samples, x_BxNxD, 0.0)
    basis_RxK = floors.span_basis(x_BxNxD.reshape(x_BxNxD.shape[0], -1))
    prompts = data.held_out
    predict = jax.vmap(lambda x_NxD, t: floors.theorem6_oracle(basis_RxK, x_NxD, t, u_D))
    prediction_B = predict(prompts.x_NxD, prompts.t_NxQ[:, 0, 0])
    return floors.theorem6_given(x_BxNxD, u_D), (prompts.y_N[:, 0] - prediction_B) ** 2


def _own_rows(settings, sizes):
    """A fitted FFN and the oracle for every n and lane, as rows of `run_floors.with_floor`; all are one program."""
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
            'seed': seed,
            'num_samples': size,
            'outcome': found['outcome'][k],
            'floor': max(0.0, float(floor)),
            'load': size / (settings.seq_len * settings.token_dim),
        }
        fit = {column: float(found[column][k]) for column in ('test_loss', 'test_loss_se', 'span_residual')}
        rows.append({**common, 'model': 'ffn', 'learner': 'stationary', **fit})
        rows.append(
            {
                **common,
                'model': ORACLE,
                'learner': '',
                'test_loss': float(loss),
                'test_loss_se': float(error),
                'span_residual': 0.0,
            }
        )
    return rows


def _load(path):
    """Rows of a results directory, without diverged ones and other models."""
    try:
        rows = run_floors.with_floor(results.load(path))
    except ValueError as error:
        raise ValueError(f'{NAME}.rows={path!r}: {error}; give those of configs/theorem6.py') from None
    rows = rows[rows['is_bound'] & (rows['outcome'] != 'diverged')]
    if (rows['model'] == 'ffn').sum() == 0:
        raise ValueError(f'{NAME}.rows={path!r}: no rows of the model ffn in it')
    return rows.assign(floor=rows['floor'].clip(lower=0.0))


def measure(settings, bar):
    """Rows with floor and load = n/(Nd)."""
    if settings.rows:
        return _load(settings.rows)
    sizes = [max(1, round(part * settings.seq_len * settings.token_dim / 10)) for part in settings.tenths]
    return pd.DataFrame([row for _ in bar([0], 'all n') for row in _own_rows(settings, sizes)])


def checks_of(rows):
    """The comparisons of the verdict."""
    fitted, oracle = rows[rows['model'] != ORACLE], rows[rows['model'] == ORACLE]
    below, partial = fitted[fitted['load'] < 1], oracle[oracle['load'] < 1]
    means = partial.groupby('load')['floor'].agg(['mean', 'std', 'count'])
    # A smaller training set knows less: the floor of a set of half the size is a wrong one.
    wrong = card.above('', oracle['test_loss'], (1 - oracle['load'] / 2).clip(lower=0.0), oracle['test_loss_se'])
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
            1 - means.index.to_numpy(),
            means['std'] / np.sqrt(means['count']),
        ),
        card.fails('a wrong floor, 1 − n/(2Nd), is crossed', wrong),
        card.below('rows of W lie in the span: residual ≤ 1e-3', fitted['span_residual'].fillna(np.inf), 1e-3),
    )


def _mean_over_draws(rows):
    """Mean losses, printed floors and standard errors by learner, N and load."""
    grouped = rows.groupby(['learner', 'seq_len', 'load'])['test_loss'].agg(['mean', 'std', 'count']).reset_index()
    return grouped['mean'], 1 - grouped['load'], (grouped['std'] / np.sqrt(grouped['count'])).fillna(0.0)


def make(settings, bar):
    """The card; see `lemma11.make`."""
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
        NAME,
        'Theorem 6',
        'On simple-1STR an FFN at a stationary point or of least norm has risk ≥ 1 − n/(Nd) on average over u, and ≥ '
        'the '
        'floor of its own (u, training set).',
        f'simple-1STR, linear; {origin}; every lane its own (u, ω).',
        (
            card.Panel('test loss against n/(Nd)', 'n/(Nd)', 'test loss'),
            card.Panel('each run against its own floor', 'floor of (u, training set)', 'test loss', join=False),
        ),
        pd.DataFrame(_points(rows)),
        pd.DataFrame(_lines(rows)),
        checks_of(rows),
        f'{len(fitted)} fitted networks; the nearest lies {margin:.1f} standard errors above its floor. The floor is '
        'one '
        'side only: it does not say that an FFN gets near it.',
    )


def _points(rows):
    for row in rows.itertuples():
        name = 'oracle' if row.model == ORACLE else f'FFN, {row.learner}'
        yield card.point(0, name, row.load, min(row.test_loss, 2.0), row.test_loss_se)
        yield card.point(1, name, row.floor, min(row.test_loss, 2.0), row.test_loss_se)


def _lines(rows):
    loads = np.linspace(0, max(1.0, rows['load'].max()), 60)
    return card.line(0, '1 − n/(Nd)', loads, np.maximum(0, 1 - loads)) + card.line(1, 'floor', [0, 1], [0, 1])
