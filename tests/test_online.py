"""The online learner: one lane, lane batches, chunking, screening, portability."""

import dataclasses
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from qstr_jax import learners, models, sweeps, tasks
from qstr_jax.learners import crossings, lanes, online, screening
from qstr_jax.sweeps import programs
from qstr_jax.tasks import streams
from tests import helpers, small
from tests.helpers import quick_jit

MODELS = ('transformer', 'rnn', 'ffn')
# In the quick run the FFN stands for the others, whose programs take longest to compile.
ONE_QUICK = [pytest.param(model, marks=[] if model == 'ffn' else [pytest.mark.slow]) for model in MODELS]
# Eight checks that no lane ends before; three lanes: tests of one cell find its program compiled.
SHORT = {'threshold': 1e-6, 'max_samples': 640}


def lanes_of(cell_settings, **changes):
    return programs.lane_arrays(sweeps.cells_of(small.settings(**cell_settings, **changes))[0].lanes)


def run_all(problem, lanes_K, chunk=1000):
    """The constants, and the last state on the host."""
    data_K, state_K = learners.init(lanes_K, problem)
    while np.any(np.asarray(state_K.outcome) == lanes.RUNNING):
        state_K = learners.advance(state_K, data_K, lanes_K, jnp.int32(chunk), problem)
    return data_K, jax.device_get(state_K)


def assert_same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def one_lane(tree_K, k):
    return jax.tree.map(lambda leaf: leaf[k], tree_K)


@pytest.mark.slow
def test_a_step_is_adamw_on_the_risk_of_fresh_examples():
    """Against a loop in which the examples, the loss and PyTorch's AdamW are written out."""
    cell = small.cell('ffn')
    problem, task = cell.problem, cell.problem.task
    lane = small.lane(3, 0, 1e-2, 0.1)
    step = 2

    @quick_jit
    def trained():
        data, state = online.init_lane(lane, problem)
        there = state.params, state.opt_state, step
        return data, state, online.train_step(*there, data=data, lane=lane, problem=problem)

    data, state, (params, _, loss) = trained()
    key = streams.stream_key(3, 'train', task)
    size = problem.learner.batch_size

    def risk(p):
        total = 0.0
        for i in range(step * size, (step + 1) * size):
            prompt = tasks.sample(jax.random.fold_in(key, i), task, data.task_draw.link)
            prediction_N = models.predict(problem.module, p, tasks.encode(prompt, task, data.task_draw))
            total += jnp.mean((prompt.y_N - prediction_N) ** 2) / size
        return total

    expected_loss, grads = quick_jit(jax.value_and_grad(risk))(state.params)
    assert loss == pytest.approx(float(expected_loss), rel=1e-5)

    def adamw(p, g):  # first step: both moments, corrected for their bias, are g and g²
        return p * (1 - 1e-2 * 0.1) - 1e-2 * g / (np.abs(g) + 1e-8)

    # Where a gradient is rounding noise its sign is too: Adam's first step there is ± the rate.
    expected = jax.tree.map(adamw, *jax.device_get((state.params, grads)))
    for got, want, g in zip(*map(jax.tree.leaves, (params, expected, grads)), strict=True):
        clear = np.abs(np.asarray(g)) > 1e-6
        np.testing.assert_allclose(np.asarray(got)[clear], np.asarray(want)[clear], atol=2e-6)


@pytest.mark.parametrize('model', ONE_QUICK)
def test_a_vmapped_lane_equals_a_single_run(model):
    problem = small.cell(model, **SHORT).problem
    lanes_K = lanes_of({}, num_seeds=3)
    _, together = run_all(problem, lanes_K)
    for k in range(3):
        _, alone = run_all(problem, jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], lanes_K))
        # Losses, not parameters: attention's key bias has no gradient but rounding noise, which Adam scales up.
        chex.assert_trees_all_close(one_lane(alone.curves, 0), one_lane(together.curves, k), rtol=2e-4)
        assert np.asarray(alone.curves.train_C).std() > 1e-2


def test_a_lane_does_not_depend_on_its_neighbours():
    """Same number of lanes, other neighbours, other place: the same bits."""
    problem = small.cell(**SHORT).problem
    _, first = run_all(problem, programs.lane_arrays([small.lane(s, 0, 1e-3, 0.0) for s in (0, 1, 2)]))
    _, second = run_all(problem, programs.lane_arrays([small.lane(s, 0, 1e-3, 0.0) for s in (7, 0, 0)]))
    assert_same_bits(one_lane(first, 0), one_lane(second, 1))
    assert_same_bits(one_lane(first, 0), one_lane(second, 2))


@pytest.mark.parametrize('model', ONE_QUICK)
def test_a_run_does_not_depend_on_how_it_is_cut(model):
    problem = small.cell(model, **SHORT).problem
    lanes_K = lanes_of({}, num_seeds=3)
    _, whole = run_all(problem, lanes_K, chunk=8)
    data_K, parts = learners.init(lanes_K, problem)
    for chunk in (2, 5, 1):
        parts = learners.advance(parts, data_K, lanes_K, jnp.int32(chunk), problem)
    assert np.all(np.asarray(parts.outcome) == lanes.CENSORED)
    assert_same_bits(whole, parts)


def test_one_program_per_cell():
    """Seeds, learning rates, weight decays and the number of checks are traced: nothing compiles again."""
    problem = small.cell(max_samples=1600).problem
    learners.advance.clear_cache()
    for rate, chunk in ((1e-3, 1), (1e-2, 5), (3e-3, 2)):
        run_all(problem, programs.lane_arrays([small.lane(s, s, rate, rate) for s in (1, 2, 3)]), chunk)
    assert learners.advance._cache_size() == 1


def test_outcomes():
    """Reached and frozen there, censored at the budget, diverged, outraced: in one lane_batch, none an exception."""
    problem = small.cell(max_samples=1600).problem
    races = [(1e-2, 0), (1e-6, 0), (1e30, 0), (1e-6, 390), (1e-6, 1), (1e-6, 1600), (1e-2, 1520)]
    lanes = [small.lane(0, 0, rate, 0.0, stop_after) for rate, stop_after in races]
    lanes_K = programs.lane_arrays(lanes)
    data_K, state_K = run_all(problem, lanes_K)
    report = problem.learner.report(state_K, problem)
    assert report['outcome'] == ['reached', 'censored', 'diverged', 'outraced', 'outraced', 'censored', 'reached']
    assert report['samples_to_threshold'][1:6] == [None] * 5
    assert list(report['num_samples'][3:6]) == [400, 80, 1600]
    assert report['num_samples'][1] == 1600
    assert report['samples_to_threshold'][0] == report['num_samples'][0] < 1600
    # The frozen lane still has the parameters of its crossing.
    loss, _ = online.evaluate(one_lane(state_K.params, 0), one_lane(data_K, 0), problem)
    assert float(loss) == pytest.approx(float(report['test_loss'][0]), rel=1e-5)
    assert float(loss) < problem.learner.threshold
    # A race changes nothing before its end.
    curves = problem.learner.report_curves(state_K, problem)
    for raced, free in ((3, 1), (4, 1), (6, 0)):
        for name, values in curves[raced].items():
            np.testing.assert_array_equal(values, curves[free][name][: len(values)])
    assert len(curves[6]['samples']) == len(curves[0]['samples'])


def test_the_crossing_is_the_first_check_below_the_threshold():
    problem = small.cell(screen=False).problem
    _, state_K = run_all(problem, lanes_of({}))
    for curve in problem.learner.report_curves(state_K, problem):
        assert np.all(curve['test_loss'][:-1] >= problem.learner.threshold)
        assert curve['test_loss'][-1] < problem.learner.threshold
        assert np.all(curve['test_loss_se'] == 0)
        np.testing.assert_array_equal(np.diff(curve['samples']), problem.learner.samples_per_check)


@pytest.mark.parametrize('model', ONE_QUICK)
def test_screening_changes_no_outcome(model):
    """The same parameters and crossings, with fewer evaluations; replaying its decisions misses none."""
    changes = {'test_samples': 800, 'threshold': 0.6, 'max_samples': 16_000}
    screened = small.cell(model, **changes, screen=True).problem
    lanes_K = lanes_of({})
    _, with_screen = run_all(screened, lanes_K)
    full = dataclasses.replace(screened, learner=dataclasses.replace(screened.learner, screen=False))
    _, without = run_all(full, lanes_K)
    a, b = screened.learner.report(with_screen, screened), full.learner.report(without, full)
    assert a['samples_to_threshold'] == b['samples_to_threshold'] != [None, None]
    assert_same_bits(with_screen.params, without.params)
    assert np.sum(a['num_evaluations']) < np.sum(b['num_evaluations'])
    for curve in full.learner.report_curves(without, full):
        assert np.all(curve['is_due'][curve['test_loss'] < full.learner.threshold])


@pytest.mark.slow
def test_a_threshold_crossed_on_the_way_is_that_of_a_run_to_it():
    """The same curve up to there, bit for bit, evaluations included; the smallest is not crossed within the budget."""
    settings = {'test_samples': 400, 'max_samples': 8000, 'num_seeds': 2}
    through = small.cell('ffn', **settings, threshold=1e-3, thresholds=(0.8, 0.9)).problem
    assert through.learner.thresholds == (0.9, 0.8)
    lanes_K = lanes_of({}, num_seeds=2)
    _, through_K = run_all(through, lanes_K)
    report, curves = through.learner.report(through_K, through), through.learner.report_curves(through_K, through)
    _, single_K = run_all(small.cell('ffn', **settings, threshold=0.9).problem, lanes_K)
    single = small.cell('ffn', **settings, threshold=0.9).problem
    singles = single.learner.report_curves(single_K, single)
    alone = single.learner.report(single_K, single)['samples_to_threshold']
    for k, text in enumerate(report['crossings']):
        first, second, last = (part.split(':') for part in text.split(' '))
        assert (first[0], second[0], last) == ('0.9', '0.8', ['0.001', ''])
        assert int(first[1]) == alone[k] < int(second[1])
        for name, values in singles[k].items():
            np.testing.assert_array_equal(curves[k][name][: len(values)], values)
        at = int(second[1]) // through.learner.samples_per_check - 1
        is_full = curves[k]['test_loss_se'] == 0
        assert is_full[at]
        assert curves[k]['test_loss'][at] < 0.8
        assert not np.any(is_full[:at] & (curves[k]['test_loss'][:at] < 0.8))
    assert report['outcome'] == ['censored'] * 2


def test_one_evaluation_may_cross_several_thresholds():
    learner = online.Online(threshold=0.1, thresholds=(0.7, 0.5))
    losses = [0.9, 0.6, 0.45, 0.45, 0.3, np.nan]
    errors = [0.0, 0.1, 0.0, 0.1, 0.0, np.nan]  # 0 for evaluations on all test prompts
    curves = online.Curves(*(np.array(values, np.float32) for values in (losses, losses, errors, losses)))
    assert crossings.text(curves, learner) == '0.7:1920 0.5:1920 0.1:'
    assert [float(crossings.pending(jax.tree.map(lambda c, n=n: c[:n], curves), learner)) for n in (2, 3)] == [
        pytest.approx(0.7), pytest.approx(0.1),
    ]  # fmt: skip
    assert crossings.text(curves, online.Online(threshold=0.7)) == '0.7:1920'


def curves_of(problem, **settings):
    """The curves of both lanes, with other settings of the learner."""
    problem = dataclasses.replace(problem, learner=dataclasses.replace(problem.learner, **settings))
    return problem.learner.report_curves(run_all(problem, lanes_of({}))[1], problem)


@pytest.mark.slow
def test_the_subset_estimates_the_test_loss():
    """Where the evaluation was skipped the curve's value is within its standard errors of the full one."""
    changes = {'test_samples': 800, 'threshold': 0.3, 'max_samples': 8_000}
    problem = small.cell('transformer', **changes, screen=True).problem
    for curve, truth in zip(curves_of(problem), curves_of(problem, screen=False), strict=True):
        skipped = curve['test_loss_se'] > 0
        assert skipped.sum() > 10
        error = (curve['test_loss'] - truth['test_loss'])[skipped] / curve['test_loss_se'][skipped]
        assert np.max(np.abs(error)) < 4
        np.testing.assert_array_equal(curve['test_loss'][~skipped], truth['test_loss'][~skipped])


def test_a_check_counts_as_an_evaluation_only_where_there_was_one():
    """On error rates too, where the standard error is 0 as long as the same prompts of the subset are wrong."""
    sweep = sweeps.Sweep(
        models='ffn', task='modular_sum', seq_lens=3, batch_size=16, check_every=5, max_samples=3200, test_samples=160,
        threshold_on='error_rate', threshold=0.02,
    )  # fmt: skip
    problem = sweeps.cells_of(sweep)[0].problem
    for curve, truth in zip(curves_of(problem), curves_of(problem, screen=False), strict=True):
        is_full = curve['test_loss_se'] == 0
        assert 0 < is_full.sum() < len(is_full)
        assert curve['is_due'][is_full].all()
        np.testing.assert_array_equal(curve['accuracy'][is_full], truth['accuracy'][is_full])


@pytest.mark.slow
def test_pointwise_risk_uses_one_fixed_position_per_example():
    problem = small.cell('transformer', risk='pointwise').problem
    lane = small.lane(0, 0, 1e-3, 0.0)
    data, state = quick_jit(lambda: online.init_lane(lane, problem))()
    indices_B = jnp.arange(16)
    loss = quick_jit(lambda: online.batch_loss(state.params, data, problem, indices_B))()
    task = problem.task
    prompts = helpers.examples(data.train_key, indices_B, task, data.task_draw.link)
    positions_B = tasks.positions(streams.stream_key(0, 'position', task), indices_B, task.seq_len)
    errors = []
    for i in range(16):
        prompt = jax.tree.map(lambda leaf, i=i: leaf[i], prompts)
        prediction_N = models.predict(problem.module, state.params, tasks.encode(prompt, task, data.task_draw))
        errors.append(float((prompt.y_N - prediction_N)[positions_B[i]] ** 2))
    assert float(loss) == pytest.approx(np.mean(errors), rel=1e-5)


def test_all_architectures_see_the_same_prompts():
    lane = small.lane(5, 5, 1e-3, 0.0)
    drawn = [quick_jit(online.init_lane, static_argnums=1)(lane, small.cell(model).problem)[0] for model in MODELS]
    for other in drawn[1:]:
        assert_same_bits(drawn[0].test_prompts, other.test_prompts)
        assert_same_bits(drawn[0].task_draw, other.task_draw)
        assert_same_bits(jax.random.key_data(drawn[0].train_key), jax.random.key_data(other.train_key))


def test_a_gradient_is_right_in_debug_key_reuse_mode():
    """A single lane draws no number twice."""
    problem = small.cell().problem
    lane = small.lane(0, 0, 1e-3, 0.0)

    def first_loss():
        data, state = online.init_lane(lane, problem)
        return online.batch_loss(state.params, data, problem, jnp.arange(4))

    with jax.debug_key_reuse(True):
        loss = quick_jit(first_loss)()
    assert math.isfinite(float(loss))


def test_optimizer_takes_traced_rates():
    grads = {'w': jnp.ones(3)}

    def updated(rate):
        optimizer = online.Online().transform(small.lane(0, 0, rate, 0.0))
        return optimizer.update(grads, optimizer.init(grads), grads)[0]['w']

    rates_K = jnp.array([1e-3, 1e-2])
    np.testing.assert_allclose(jax.vmap(updated)(rates_K), -rates_K[:, None] * jnp.ones((2, 3)), rtol=1e-4)
    assert optax.tree.norm(updated(0.0)) == 0


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('batch_size', 0),
        ('check_every', -1),
        ('max_samples', 1.5),
        ('test_samples', 0),
        ('threshold', 0.0),
        ('risk', 'both'),
        ('stop_after', -1),
        ('stop_after', 0.5),
        ('thresholds', (0.8, 0.7)),
        ('thresholds', (0.8, 0.8)),
        ('thresholds', (0.8, 'low')),
        ('thresholds', (float('inf'),)),
        ('max_samples', 100),
    ],
)
def test_impossible_settings_are_named(name, value):
    with pytest.raises(ValueError, match=name) as caught:
        online.Online(**{name: value})
    assert '\n' not in str(caught.value)


SCHEDULES = {
    'constant': (),
    'cosine': optax.cosine_decay_schedule(1e-2, 40),
    'warmup_cosine': optax.warmup_cosine_decay_schedule(0.0, 1e-2, 7, 40),
}


def scheduled(name, **changes):
    """A cell of 40 steps with a schedule."""
    warmup = {'warmup_steps': 7} if name == 'warmup_cosine' else {}
    return small.cell('ffn', **SHORT, schedule=name, **warmup, **changes)


@pytest.mark.parametrize('name', ['cosine', 'warmup_cosine'])
def test_the_learning_rate_of_a_step_is_optaxs(name):
    learner, lane = scheduled(name).problem.learner, small.lane(0, learning_rate=1e-2)
    steps = jnp.arange(learner.max_steps)
    rates = jax.vmap(lambda step: learner.lane_at(lane, step).learning_rate)(steps)
    np.testing.assert_allclose(rates, jax.vmap(SCHEDULES[name])(steps), rtol=1e-6)
    assert scheduled('constant').problem.learner.lane_at(lane, steps) is lane


@pytest.mark.slow
def test_training_follows_the_schedule():
    """Against optax's own schedule; a lane's neighbours change nothing; however it is cut, the same bits."""
    problem = scheduled('warmup_cosine').problem
    lanes_K = programs.lane_arrays([small.lane(seed, 0, rate, 0.1) for seed, rate in ((0, 1e-2), (1, 3e-2))])
    data_K, together = run_all(problem, lanes_K, chunk=8)
    _, first = learners.init(lanes_K, problem)
    data, params = one_lane(data_K, 0), one_lane(first, 0).params
    optimizer = optax.adamw(SCHEDULES['warmup_cosine'], weight_decay=0.1)

    def step(carry, number):
        params, state = carry
        indices_B = number * problem.learner.batch_size + jnp.arange(problem.learner.batch_size)
        loss, grads = jax.value_and_grad(online.batch_loss)(params, data, problem, indices_B)
        updates, state = optimizer.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), loss

    losses = quick_jit(lambda start: jax.lax.scan(step, start, jnp.arange(40))[1])((params, optimizer.init(params)))
    np.testing.assert_allclose(losses.reshape(8, 5).mean(axis=1), together.curves.train_C[0], rtol=2e-4)
    _, swapped = run_all(problem, jax.tree.map(lambda leaf: leaf[::-1], lanes_K))
    chex.assert_trees_all_close(one_lane(swapped.curves, 0), one_lane(together.curves, 1), rtol=2e-4)
    parts = first
    for chunk in (3, 5):  # As it is saved and read again between two parts.
        parts = learners.advance(jax.device_get(parts), data_K, lanes_K, jnp.int32(chunk), problem)
    assert_same_bits(together, parts)


def test_a_schedule_names_no_old_cell_and_is_said_where_it_is_set():
    plain, cosine = small.cell('ffn', **SHORT), scheduled('cosine')
    assert plain.id == scheduled('constant').id != cosine.id
    assert not {'schedule', 'warmup_steps', 'first_params'} & set(dict(plain.columns))
    assert dict(cosine.columns)['schedule'] == 'cosine'
    assert dict(scheduled('warmup_cosine').columns)['warmup_steps'] == 7
    with pytest.raises(ValueError, match='warmup_steps=7: would be ignored'):
        small.cell('ffn', **SHORT, warmup_steps=7)
    for steps in 0, 40:
        with pytest.raises(ValueError, match=f'warmup_steps={steps}: must be 1 to 39'):
            small.cell('ffn', **SHORT, schedule='warmup_cosine', warmup_steps=steps)


def test_training_starts_where_it_is_told():
    task = {'seq_lens': 3, 'transformer.attention': 'merged'}
    problem = small.cell(**SHORT, **task, first_params='attention:0').problem
    _, state_K = learners.init(lanes_of({}), problem)
    assert not np.any(state_K.params['params']['attention']['qk_HxExE'])
    assert np.all(np.any(state_K.params['params']['hidden']['kernel'], axis=(1, 2)))
    with pytest.raises(ValueError, match='nowhere'):
        learners.Online(first_params='nowhere')


def test_screen_before_any_evaluation_is_a_plain_mean():
    errors_T = jnp.arange(8.0)
    loss, standard_error = screening.estimate(screening.start(64), errors_T)
    assert float(loss) == pytest.approx(3.5)
    assert float(standard_error) == pytest.approx(np.std(np.arange(8)) / np.sqrt(8))


@pytest.mark.parametrize(('loss', 'due'), [(0.9, False), (0.75, True), (0.5, True), (float('nan'), True)])
def test_due_when_the_bracket_reaches_the_threshold(loss, due):
    assert bool(screening.is_due(jnp.float32(loss), jnp.float32(0.02), 0.7)) == due


@pytest.mark.parametrize(
    ('threshold_on', 'accuracy', 'loss'), [('error_rate', [0.94, 0.95], [0.3, 0.1]), ('loss', [0.94, 0.99], [0.3, 0.2])]
)
def test_between_evaluations_what_is_judged_is_the_estimate_of_screening(threshold_on, accuracy, loss):
    """It knows the last evaluation, as a mean over the subset does not."""
    judged_C = jnp.array([0.06, 0.05]) if threshold_on == 'error_rate' else jnp.array([0.3, 0.2])
    on_subset = {'accuracy': np.array([[0.94, 0.99]]), 'test_loss': np.array([[0.3, 0.1]])}
    curves_1 = online.Curves(
        train_C=judged_C[None], test_C=judged_C[None], test_se_C=jnp.array([[0.0, 0.01]]),
        is_due_C=jnp.array([[True, False]]), others_C=on_subset,
    )  # fmt: skip
    measures = learners.Online(threshold_on=threshold_on)._measures(curves_1)
    np.testing.assert_allclose(measures['accuracy'][0], accuracy, rtol=1e-6)
    np.testing.assert_allclose(measures['test_loss'][0], loss, rtol=1e-6)
