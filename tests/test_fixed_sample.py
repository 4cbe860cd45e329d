"""Learners on a fixed sample: certificates, known minimisers, nested data, traced n, search, span, bad settings."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from scipy import optimize

from qstr_jax import learners, models, sweeps, tasks
from qstr_jax.learners import fits, projections
from qstr_jax.learners.lanes import RUNNING
from qstr_jax.learners.learner import REGISTRY as LEARNERS
from qstr_jax.learners.problem import Problem
from qstr_jax.models import baselines
from qstr_jax.storage import checkpoint
from qstr_jax.sweeps import programs
from qstr_jax.tasks import streams
from tests import helpers, small

TASK = tasks.build('qstr', seq_len=3, sparsity=1, token_dim=3, encoding_dim=4)
SIMPLE = tasks.build('simple_qstr', seq_len=3, sparsity=1, token_dim=3, encoding_dim=4)
SMALL = {
    'batch_size': 0, 'max_steps': 60, 'check_every': 20, 'max_samples': 16, 'test_samples': 40,
    'validation_samples': 20,
}  # fmt: skip


class Linear(nn.Module):
    """ŷ_i = ⟨w, x_{t_i}⟩, trained like any other model: its minimisers are known."""

    @nn.compact
    def __call__(self, z_NxE):
        w_F = self.param('w_F', nn.initializers.normal(0.5), (3,))
        return baselines.retrieved(z_NxE, 3, 1) @ w_F


class Far(Linear):
    """`Linear`, but it starts far away."""

    @nn.compact
    def __call__(self, z_NxE):
        return baselines.retrieved(z_NxE, 3, 1) @ self.param('w_F', nn.initializers.normal(50.0), (3,))


FFN = models.Feedforward((8, 8), 3, 'theorem6')
TRANSFORMER = models.Transformer(1, 8, 'merged')


def make(module, learner, task=TASK, is_search=False, **changes):
    """A problem whose learner keeps `max_samples` prompts."""
    fixed = learner(**{**SMALL, **changes})
    # Bound to one n of that size, or to a search up to it.
    bound = fixed.bind(module, task, (0,) if is_search else (fixed.max_samples,))
    return Problem(task=task, test_task=task, module=module, learner=bound)


def lane(problem, n, seed=0, rate=0.02, decay=0.0, radius=0.0, hinge=0.0, stop_after=0):
    rates = {'learning_rate': rate, 'weight_decay': decay, 'radius': radius, 'hinge': hinge, 'stop_after': stop_after}
    return learners.lane(problem.learner, seed=seed, task_seed=seed, sample_size=n, **rates)


@functools.cache
def compiled(problem, num_lanes):
    """`init` and `advance` of a lane_batch, compiled quickly: they run once or twice."""
    lanes_K = programs.lane_arrays([lane(problem, 1)] * num_lanes)
    shapes = jax.eval_shape(functools.partial(learners.init, problem=problem), lanes_K)
    data_K, state_K = shapes
    init = learners.init.lower(lanes_K, problem).compile(helpers.QUICK)
    return init, learners.advance.lower(state_K, data_K, lanes_K, jnp.int32(1), problem).compile(helpers.QUICK)


def run(problem, *lanes, chunk=1000):
    """Runs lanes to their end; returns data, state and the report as one dict per lane."""
    lanes_K = programs.lane_arrays(lanes)
    init, advance = compiled(problem, len(lanes))
    data_K, state_K = init(lanes_K)
    while np.any(np.asarray(state_K.outcome) == RUNNING):
        state_K = advance(state_K, data_K, lanes_K, jnp.int32(chunk))
    columns = problem.learner.report(state_K, problem)
    return data_K, state_K, [{name: values[k] for name, values in columns.items()} for k in range(len(lanes))]


@functools.partial(helpers.quick_jit, static_argnames='problem')
@functools.partial(jax.value_and_grad, argnums=0)
def example_risk(params, i, train_key, place_key, drawn, problem):
    """The risk of example i and its gradient, from the random streams alone."""
    task = problem.task
    prompt = tasks.sample(jax.random.fold_in(train_key, i), task, drawn.link)
    error_N = (prompt.y_N - problem.module.apply(params, tasks.encode(prompt, task, drawn))) ** 2
    position = tasks.positions(place_key, jnp.atleast_1d(i), task.seq_len)[0]
    return error_N[position] if problem.learner.risk == 'pointwise' else jnp.mean(error_N)


def objective(problem, a_lane, params, decay):
    """The risk, and the gradient of the regularised one, example by example."""
    drawn = helpers.draw(tasks.task_key(a_lane.task_seed, problem.task), problem.task)
    keys = [streams.stream_key(a_lane.seed, name, problem.task) for name in ('train', 'position')]
    n = a_lane.sample_size
    found = [example_risk(params, i, *keys, drawn, problem=problem) for i in range(n)]
    risks, grads = zip(*jax.device_get(found), strict=True)
    return sum(risks) / n, jax.tree.map(lambda leaf, *parts: decay * np.asarray(leaf) + sum(parts) / n, params, *grads)


def params_of(state_K, k=0):
    return jax.tree.map(lambda leaf: leaf[k], state_K.params)


CASES = {
    'stationary': (make(FFN, learners.Stationary, SIMPLE), {'decay': 0.01}),
    'adamw': (make(TRANSFORMER, learners.AdamW, batch_size=4, risk='pointwise'), {'decay': 0.1}),
    'constrained': (make(TRANSFORMER, learners.Constrained, batch_size=4, schedule='cosine'), {'radius': 2.0}),
    'worst_erm': (make(TRANSFORMER, learners.WorstERM, batch_size=4, fresh=4), {'radius': 2.0, 'hinge': 0.3}),
    'min_norm': (make(FFN, learners.MinNorm, SIMPLE, bisections=3, epsilon=0.3), {}),
    'closed_form': (make(baselines.Ridge(), learners.ClosedForm, risk='pointwise'), {'decay': 0.05}),
}


# In the quick run AdamW and closed forms stand for the others.
ONES = [pytest.param(n, marks=[] if n in ('adamw', 'closed_form') else [pytest.mark.slow]) for n in CASES]


@pytest.fixture(scope='module', params=ONES)
def finished(request):
    """Name, problem and lanes of a case that has run, with what `run` gives; pytest runs a case's tests together."""
    problem, numbers = CASES[request.param]
    lanes = lane(problem, 5, 1, **numbers), lane(problem, 12, 2, **numbers)
    return request.param, problem, lanes, *run(problem, *lanes)


def test_certificates_recomputed(finished):
    """Risk, gradient, norm and distance from the parameters, the streams and nothing else."""
    name, problem, lanes, _, state_K, rows = finished
    for k, (a_lane, row) in enumerate(zip(lanes, rows, strict=True)):
        decay = a_lane.weight_decay if name in ('stationary', 'closed_form') else 0.0
        params = params_of(state_K, k)
        risk, grads = objective(problem, a_lane, params, decay)
        assert row['train_risk'] == pytest.approx(float(risk), rel=1e-4, abs=1e-6)
        assert row['norm'] == pytest.approx(helpers.norm(params), rel=1e-5)
        assert row['num_samples'] == a_lane.sample_size
        if name in ('stationary', 'adamw', 'closed_form'):
            assert row['grad_norm'] == pytest.approx(helpers.norm(grads), rel=1e-3, abs=2e-6)
            assert row['distance'] == 0
        else:
            assert row['norm'] <= row['fitted_radius'] * (1 + 1e-5)
            assert row['distance'] <= 1e-5 * row['norm']


def test_a_vmapped_lane_equals_a_single_run(finished):
    _, problem, lanes, _, state_K, rows = finished
    _, alone, (row,) = run(problem, lanes[1])
    chex.assert_trees_all_close(params_of(alone), params_of(state_K, 1), rtol=2e-3, atol=2e-4)
    assert row['test_loss'] == pytest.approx(rows[1]['test_loss'], rel=1e-2)
    assert row['outcome'] == rows[1]['outcome'] == 'fitted'


@pytest.mark.parametrize('finished', ['min_norm'], indirect=True)
def test_a_run_is_the_same_however_it_is_cut(finished):
    _, problem, lanes, _, whole_K, _ = finished
    _, cut_K, _ = run(problem, *lanes, chunk=2)
    for a, b in zip(jax.tree.leaves(whole_K), jax.tree.leaves(cut_K), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('finished', ['constrained'], indirect=True)
def test_a_state_survives_a_checkpoint(finished, tmp_path):
    _, problem, lanes, _, state_K, _ = finished
    folder = checkpoint.files.epath.Path(tmp_path) / 'unit'
    checkpoint.save(folder, state_K)
    restored_K = checkpoint.load(folder, programs.abstract_state(problem, len(lanes)))
    for a, b in zip(jax.tree.leaves(state_K), jax.tree.leaves(restored_K), strict=True):
        np.testing.assert_array_equal(a, b)


def test_training_sets_are_nested():
    """Another capacity draws the same first prompts, and those of the online learner."""
    init_lane = helpers.quick_jit(fits.init_lane, static_argnames='problem')
    few, many = (
        init_lane(lane(problem, 4), problem=problem)[0]
        for problem in (make(FFN, learners.Stationary, SIMPLE, max_samples=n) for n in (4, 16))
    )
    for a, b in zip(jax.tree.leaves(few.train), jax.tree.leaves(many.train), strict=True):
        np.testing.assert_array_equal(a, b[:4])
    np.testing.assert_array_equal(few.position_B, many.position_B[:4])
    key = streams.stream_key(0, 'train', SIMPLE)
    np.testing.assert_array_equal(
        few.train.x_NxD, helpers.examples(key, jnp.arange(4), SIMPLE, few.task_draw.link).x_NxD
    )
    test, validation = jnp.split(few.held_out.x_NxD, [40])
    assert not np.isin(np.asarray(few.train.x_NxD), np.asarray(test)).any()
    assert not np.isin(np.asarray(validation), np.asarray(test)).any()


def test_a_fit_sees_its_n_examples_and_no_other(finished):
    """What lies beyond n is poisoned; n is traced, so the program is the one that is there."""
    _, problem, lanes, data_K, _, rows = finished
    lanes_K = programs.lane_arrays(lanes)
    beyond_KxB = jnp.arange(16)[None, :] >= np.array([a_lane.sample_size for a_lane in lanes])[:, None]

    def poison(leaf):
        mask = beyond_KxB.reshape(*beyond_KxB.shape, *(1,) * (leaf.ndim - 2))
        return jnp.where(mask, 1e6, leaf) if leaf.dtype == jnp.float32 else leaf

    poisoned_K = data_K._replace(train=jax.tree.map(poison, data_K.train))
    init, advance = compiled(problem, len(lanes))
    again_K = advance(init(lanes_K)[1], poisoned_K, lanes_K, jnp.int32(1000))
    for row, column in zip(rows, problem.learner.report(again_K, problem)['train_risk'], strict=True):
        assert column == pytest.approx(row['train_risk'], rel=1e-3, abs=1e-6)


def least_squares_arrays(a_lane, n):
    drawn = helpers.draw(tasks.task_key(a_lane.task_seed, TASK), TASK)
    prompts = helpers.examples(streams.stream_key(a_lane.seed, 'train', TASK), jnp.arange(n), TASK, drawn.link)
    phi = np.concatenate([np.asarray(prompts.x_NxD[i][prompts.t_NxQ[i][:, 0]]) for i in range(n)])
    return phi.astype(np.float64), np.asarray(prompts.y_N, np.float64).ravel()


@pytest.mark.parametrize('module', [Linear(), Far()], ids=['inside', 'outside'])
def test_constrained_erm_finds_the_constrained_minimum(module):
    """A linear model's, against a general solver, wherever it starts."""
    problem = make(module, learners.Constrained, max_steps=2000, check_every=500, schedule='cosine', tolerance=1e-3)
    a_lane = lane(problem, 6, 3, 0.02, radius=0.6)
    _, state_K, (row,) = run(problem, a_lane)
    phi, y = least_squares_arrays(a_lane, 6)
    best = optimize.minimize(
        lambda w: np.mean((y - phi @ w) ** 2), np.zeros(3), method='SLSQP',
        constraints=[{'type': 'ineq', 'fun': lambda w: 0.36 - w @ w}],
    )  # fmt: skip
    assert row['train_risk'] == pytest.approx(best.fun, rel=1e-4)
    np.testing.assert_allclose(params_of(state_K)['params']['w_F'], best.x, atol=2e-3)
    assert row['converged']


def test_only_starts_outside_the_ball_are_moved():
    learner = learners.Constrained(radius=1.0)
    starts_S = {'w_F': jnp.array([[0.6, 0.8], [0.3, 0.1], [-3.0, 4.0]])}
    placed_S = learner.placed(starts_S, lane(make(Linear(), learners.Constrained), 4, radius=1.0))
    np.testing.assert_array_equal(placed_S['w_F'][:2], starts_S['w_F'][:2])
    np.testing.assert_allclose(placed_S['w_F'][2], [-0.6, 0.8], rtol=1e-6)


def test_min_norm_finds_the_least_norm():
    """A linear model's, against a general solver."""
    problem = make(
        Linear(), learners.MinNorm, max_steps=1000, check_every=100, schedule='cosine', epsilon=0.05, bisections=10
    )
    a_lane = lane(problem, 6, 3, 0.02)
    _, _, (row,) = run(problem, a_lane)
    phi, y = least_squares_arrays(a_lane, 6)
    best = optimize.minimize(
        lambda w: w @ w, np.ones(3) / 2, method='SLSQP',
        constraints=[{'type': 'ineq', 'fun': lambda w: 0.05 - np.mean((y - phi @ w) ** 2)}],
    )  # fmt: skip
    assert row['train_risk'] <= 0.05
    assert row['norm'] == pytest.approx(np.sqrt(best.fun), rel=0.01)
    assert row['infeasible_radius'] <= row['norm'] * 1.0001
    assert row['infeasible_radius'] >= 0.97 * row['norm']
    assert row['min_train_risk'] < 0.05
    assert row['converged']


def test_a_fit_that_does_not_get_there_says_so():
    problem = make(FFN, learners.Stationary, SIMPLE, tolerance=1e-9)
    assert not run(problem, lane(problem, 12, decay=1e-3))[2][0]['converged']
    strict = make(Linear(), learners.MinNorm, epsilon=1e-9, bisections=1)
    assert not run(strict, lane(strict, 12, rate=1e-4))[2][0]['converged']


def test_least_squares_that_knows_t_reaches_zero_at_n_equal_d():
    problem = make(baselines.LeastSquares(3, 1), learners.ClosedForm, risk='pointwise')
    _, _, rows = run(problem, *(lane(problem, n, seed) for seed in range(5) for n in (2, 3)))
    before, at = rows[::2], rows[1::2]
    assert max(row['test_loss'] for row in at) < 1e-6
    # Bayes: 1 − n/d on average over tasks; five tasks are few.
    assert 0.05 < np.mean([row['test_loss'] for row in before]) < 0.9


def test_a_search_ends_at_d_for_least_squares():
    problem = make(baselines.LeastSquares(3, 1), learners.ClosedForm, risk='pointwise',
        is_search=True, threshold=1e-4, min_samples=1,
    )  # fmt: skip
    races = [lane(problem, 0, 4, stop_after=stop_after) for stop_after in (0, 4, 2)]
    _, state_K, (row, winner, loser) = run(problem, *races)
    assert row['outcome'] == 'reached'
    assert row['samples_to_threshold'] == row['num_samples'] == 3
    assert {**winner, 'test_loss': 0} == pytest.approx({**row, 'test_loss': 0}, nan_ok=True)
    assert (loser['outcome'], loser['samples_to_threshold'], loser['num_samples']) == ('outraced', None, 2)
    curve, _, raced = problem.learner.report_curves(state_K, problem)
    assert list(raced['samples']) == [1, 2]
    assert list(curve['samples']) == sorted(curve['samples'])
    assert len(curve['samples']) == row['num_fits']


@pytest.mark.slow
def test_n_star_agrees_with_single_fits():
    """A fit inside a search is the fit of a lane that is given that n."""
    settings = {'batch_size': 4, 'max_steps': 100, 'check_every': 50, 'max_samples': 64}
    search = make(
        TRANSFORMER, learners.AdamW, **settings, is_search=True, threshold=0.75, min_samples=4, resolution=0.3
    )
    _, state_K, rows = run(search, *(lane(search, 0, seed) for seed in (1, 2, 3)))
    single = make(TRANSFORMER, learners.AdamW, **settings)
    reached = [k for k, row in enumerate(rows) if row['outcome'] == 'reached']
    assert reached
    k = reached[0]
    low, high = int(state_K.bracket.low[k]), int(state_K.bracket.high[k])
    _, _, (below, above) = run(single, *(lane(single, n, k + 1) for n in (low, high)))
    assert above['test_loss'] < 0.75 <= below['test_loss']
    assert above['test_loss'] == pytest.approx(rows[k]['test_loss'], rel=1e-3)
    assert rows[k]['samples_to_threshold'] == high


def test_a_radius_in_which_nothing_fits_is_censored():
    problem = make(TRANSFORMER, learners.Constrained, is_search=True, threshold=0.05, min_samples=8, max_samples=16)
    _, _, (row,) = run(problem, lane(problem, 0, radius=1e-3))
    assert row['outcome'] == 'censored'
    assert row['samples_to_threshold'] is None
    assert row['num_samples'] == 16


def test_a_diverging_lane_is_recorded_and_its_neighbour_unharmed():
    problem = make(Linear(), learners.Stationary, optimizer='sgd', max_steps=200)
    _, _, (good, bad) = run(problem, *(lane(problem, 12, rate=rate) for rate in (0.01, 1e8)))
    assert (good['outcome'], bad['outcome']) == ('fitted', 'diverged')
    assert np.isfinite(good['test_loss'])


@pytest.mark.slow
@pytest.mark.parametrize(
    ('changes', 'limit'),
    [
        ({'span': 'started', 'optimizer': 'sgd'}, 1e-4),
        ({'span': 'coordinates', 'optimizer': 'adam'}, 1e-5),
        ({'span': 'coordinates', 'optimizer': 'lbfgs'}, 1e-5),
    ],
)
def test_the_first_layer_stays_in_the_span(changes, limit):
    """Recomputed from the training prompts; three of them in nine dimensions."""
    problem = make(FFN, learners.Stationary, SIMPLE, **changes)
    a_lane = lane(problem, 3, 5, 0.01, 0.01)
    data_K, state_K, (row,) = run(problem, a_lane)
    x_BxV = np.asarray(data_K.train.x_NxD[0, :3].reshape(3, -1), np.float64)
    kernel_VxM = np.asarray(params_of(state_K)['params']['tokens']['kernel'], np.float64)
    inside = np.linalg.pinv(x_BxV) @ (x_BxV @ kernel_VxM)
    share = np.linalg.norm(kernel_VxM - inside) / np.linalg.norm(kernel_VxM)
    assert share <= limit
    assert row['span_residual'] == pytest.approx(share, abs=1e-5)
    assert row['span_residual'] <= row['span_bound'] + 1e-5


def test_adam_leaves_the_span():
    """The check above can fail."""
    problem = make(FFN, learners.Stationary, SIMPLE)
    data_K, state_K, _ = run(problem, lane(problem, 3, 5, 0.01, 0.01))
    x_BxV = np.asarray(data_K.train.x_NxD[0, :3].reshape(3, -1))
    kernel_VxM = np.asarray(params_of(state_K)['params']['tokens']['kernel'])
    inside = np.linalg.pinv(x_BxV) @ (x_BxV @ kernel_VxM)
    assert np.linalg.norm(kernel_VxM - inside) > 0.05 * np.linalg.norm(kernel_VxM)


@pytest.mark.slow
def test_three_seeds_and_eight_sizes_are_one_program(tmp_path, monkeypatch):
    calls = []
    compile_programs = programs.compile_programs
    monkeypatch.setattr(programs, 'compile_programs', lambda *a: calls.append(a) or compile_programs(*a))
    settings = small.settings(
        models='ffn', learners='adamw', num_samples=(1, 2, 3, 5, 8, 13, 21, 34), num_seeds=3, max_steps=10,
        task_per_lane=True, validation_samples=16, test_task='qstr', max_samples=None,
    )  # fmt: skip
    rows = sweeps.run(settings, tmp_path, small.quiet())
    assert len(calls) == 1
    assert len(rows) == 24
    columns = {'learner', 'num_samples', 'test_loss', 'test_loss_se', 'train_risk', 'grad_norm', 'converged'}
    assert columns <= set(rows.columns)
    assert sorted(set(rows['num_samples'])) == [1, 2, 3, 5, 8, 13, 21, 34]
    assert (rows['learner'] == 'adamw').all()
    # Once more, with one more size that fits: only that one is run.
    more = settings.replace(num_samples=(34, 55))
    assert len(sweeps.run(more, tmp_path, small.quiet())) == 27


@pytest.mark.parametrize(
    ('learner', 'changes', 'word'),
    [
        ('stationary', {'optimizer': 'muon'}, 'optimizer'),
        ('min_norm', {'epsilon': 0.0}, 'epsilon'),
        ('stationary', {'max_steps': 0}, 'max_steps'),
        ('stationary', {'max_steps': 2.5}, 'max_steps'),
        ('adamw', {'max_steps': 50}, 'max_steps=50: must be a multiple of check_every=20'),
        ('stationary', {'stop_after': -1}, 'stop_after'),
        ('adamw', {'min_samples': 20, 'is_search': True}, 'min_samples'),
        ('adamw', {'span': 'started'}, 'leave the span'),
        ('stationary', {'span': 'started'}, 'leave the span'),
        ('stationary', {'optimizer': 'lbfgs', 'batch_size': 4}, 'batch_size'),
        ('constrained', {'optimizer': 'lbfgs'}, 'lbfgs'),
        ('constrained', {'constraint': 'out/kernel:ball:1'}, 'constraint'),
        ('constrained', {'radius': 0.0}, 'radius'),
        ('adamw', {'train_threshold': float('nan')}, 'train_threshold'),
    ],
)
def test_bad_settings(learner, changes, word):
    with pytest.raises(ValueError, match=word) as caught:
        LEARNERS.get(learner).builder(**{**SMALL, **changes})
    assert '\n' not in str(caught.value)


def test_bounds_of_several_matrices_are_one_constraint():
    """And no axis, as of names with commas between them."""
    constraint = 'hidden_0/kernel:operator:2+out/kernel:frobenius:1'
    settings = {'models': 'ffn', 'learners': 'constrained', 'max_samples': None, 'constraint': constraint}
    (cell,) = sweeps.cells_of(small.settings(num_samples=4, **settings))
    sets = projections.parse(cell.problem.learner.constraint)
    assert sets == (('hidden_0/kernel', 'operator', 2.0), ('out/kernel', 'frobenius', 1.0))


@pytest.mark.parametrize(
    ('changes', 'word'),
    [
        ({'learners': 'erm'}, 'erm'),
        ({'learners': 'adamw', 'optimizer': 'sgd'}, 'ignored'),
        ({'learners': 'stationary', 'optimizer': 'lbfgs', 'batch_size': 0, 'learning_rate': 0.1}, 'learning_rate'),
        ({'learners': 'min_norm', 'weight_decay': 0.1}, 'weight_decay'),
        ({'learners': 'min_norm', 'constraint': 'l2'}, 'constraint'),
        ({'learners': 'adamw', 'max_samples': 100}, 'max_samples'),
        ({'learners': 'adamw', 'stop_after': 100}, 'stop_after'),
    ],
)
def test_a_setting_that_would_be_ignored_is_an_error(changes, word):
    settings = {'learning_rate': None, 'max_samples': None, **changes}
    with pytest.raises(ValueError, match=word) as caught:
        sweeps.cells_of(small.settings(num_samples=4, **settings))
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    ('changes', 'word'),
    [
        ({'span': 'coordinates', 'learners': 'stationary', 'models': 'ffn'}, 'theorem6'),
        ({'learners': 'constrained', 'constraint': 'head/kernel:operator:1', 'models': 'ffn'}, 'out/kernel'),
        ({'learners': 'constrained', 'radius_unit': 'proof'}, 'radius_unit'),
        ({'models': 'ridge', 'num_samples': ()}, 'closed form'),
    ],
)
def test_impossible_cells(changes, word):
    with pytest.raises(ValueError, match=word):
        sweeps.cells_of(small.settings(**{'num_samples': 4, 'max_samples': None, **changes}))
