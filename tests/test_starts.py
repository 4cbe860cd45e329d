"""Fits from several starts: the least training risk is the answer."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import qstr_jax.theory.construction_norm
import qstr_jax.theory.construction_start  # noqa: F401, a plugin
from qstr_jax import sweeps, tasks
from qstr_jax.learners import restarts, starts
from qstr_jax.storage import results
from qstr_jax.theory import construction_norm, constructions
from tests import helpers, small

pytestmark = pytest.mark.slow

FITS = {
    'models': ('transformer',),
    'transformer.attention': 'merged',
    'learners': 'constrained',
    'num_samples': 24,
    'seq_lens': 3,
    'radius': 10.0,
    'task_per_lane': True,
    'test_task': 'qstr',
    'max_coherence': 0.9,
    'encoding_dim': 6,
    'max_steps': 30,
    'max_samples': None,
    'threshold': None,
    'validation_samples': 16,
}


def settings(*names, **changes):
    return small.settings(**{**FITS, **changes, 'starts': names})


@pytest.fixture(scope='module')
def rows(tmp_path_factory):
    """The same lanes from each of two starts alone, and from both."""
    folder = tmp_path_factory.mktemp('starts')
    names = ('attention:0', 'init:1')
    for chosen in [(name,) for name in names] + [names]:
        sweeps.run(settings(*chosen, reference='construction'), folder, small.quiet())
    return results.load(folder)


def test_the_answer_is_that_of_the_start_with_the_least_training_risk(rows):
    single = rows[rows['num_starts'].isna()]
    several = rows[rows['num_starts'] == 2]
    assert len(several) == 2
    for _, row in several.iterrows():
        alone = single[single['seed'] == row['seed']]
        best = alone.loc[alone['train_risk'].idxmin()]
        assert row['start'] == best['starts']
        for name in 'train_risk', 'test_loss', 'norm':
            assert row[name] == pytest.approx(best[name], rel=1e-5)
        assert row['highest_start_risk'] == pytest.approx(alone['train_risk'].max(), rel=1e-5)
        assert row['steps'] == alone['steps'].sum()
    assert several['highest_start_risk'].gt(several['train_risk']).all()


def test_a_row_is_an_erm_where_its_training_risk_is_at_most_the_constructions(rows):
    assert rows['reference_train_risk'].max() < 1e-2
    assert (rows['is_erm'] == (rows['train_risk'] <= rows['reference_train_risk'] + 1e-3)).all()
    assert not rows['is_erm'].any()  # 30 steps are not enough.


def test_the_construction_is_that_of_the_theory():
    cell = sweeps.cells_of(settings('construction'))[0]
    task = cell.problem.task
    lane = cell.lanes[0]
    task_draw = helpers.draw(tasks.task_key(lane.task_seed, task), task)
    place = starts.StartContext(
        key=tasks.streams.stream_key(lane.seed, 'init', task), problem=cell.problem, task_draw=task_draw
    )
    names = 'construction', 'mixed:0.5', 'init', 'construction:0.5'
    make = helpers.quick_jit(lambda draw: [starts.params(name, place._replace(task_draw=draw)) for name in names])
    params, half, first, shrunk = make(task_draw)
    radius = construction_norm.token_radius(task)
    built = constructions.transformer(task, jax.device_get(task_draw), radius, coherence=task.max_coherence)
    z_NxE = jax.random.normal(jax.random.key(0), (task.seq_len, task.embedding_dim))
    np.testing.assert_allclose(
        cell.problem.module.apply(params, z_NxE), built.module.apply(built.params, z_NxE), rtol=1e-5, atol=1e-5
    )
    jax.tree.map(lambda a, b, c: np.testing.assert_allclose(a, (b + c) / 2, atol=1e-6), half, first, params)
    factors = {'attention': 0.5, 'hidden': 1.0, 'out': 1.0}
    for name, factor in factors.items():
        jax.tree.map(
            lambda a, b, factor=factor: np.testing.assert_allclose(a, factor * b, atol=1e-6),
            shrunk['params'][name],
            params['params'][name],
        )


def test_a_start_that_diverged_cannot_win():
    found = restarts.first({'w': jnp.zeros(())})
    for value, risk in ((1.0, jnp.nan), (2.0, 0.5), (3.0, jnp.inf), (4.0, 0.7)):
        found = restarts.add(found, {'w': jnp.float32(value)}, risk=jnp.float32(risk), train_loss=risk, steps=10)
    assert (int(found.winner), float(found.params['w']), float(found.risk)) == (1, 2.0, 0.5)
    assert (float(found.highest), int(found.steps), int(found.number)) == (pytest.approx(0.7), 40, 4)


FFN = {
    'models': 'ffn', 'task': 'simple_qstr', 'test_task': None, 'ffn.form': 'theorem6', 'ffn.widths': (8, 4, 2),
    'transformer.attention': None, 'radius': None, 'learners': 'stationary', 'span': 'coordinates',
}  # fmt: skip


def test_an_ffn_that_starts_at_the_construction_retrieves_and_is_of_least_norm():
    cell = sweeps.cells_of(settings('construction', **FFN))[0]
    task, lane = cell.problem.task, cell.lanes[0]
    task_draw = helpers.draw(tasks.task_key(lane.task_seed, task), task)
    key = tasks.streams.stream_key(lane.seed, 'init', task)
    params = starts.params('construction', starts.StartContext(key, cell.problem, task_draw))
    prompts = tasks.examples(tasks.streams.stream_key(1, 'test', task), jnp.arange(50), task, task_draw.link)
    z_BxNxE = jax.vmap(lambda prompt: tasks.encode(prompt, task, task_draw))(prompts)
    answers = jax.vmap(lambda z_NxE: cell.problem.module.apply(params, z_NxE))(z_BxNxE)
    np.testing.assert_allclose(answers, prompts.y_N, atol=1e-4)
    layers = params['params']
    first = {name: layers[name] for name in ('tokens', 'indices')}
    norms = [float(optax.tree.norm(part)) for part in (first, *(layers[n] for n in ('hidden_1', 'hidden_2', 'out')))]
    np.testing.assert_allclose(norms, norms[0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize('span', ['free', 'coordinates'])
def test_the_reference_is_measured_as_the_module_has_it(span, tmp_path):
    changes = {**FFN, 'span': span, 'batch_size': 0, 'reference': 'construction', 'num_seeds': 1}
    row = sweeps.run(settings('init', **changes), tmp_path, small.quiet()).iloc[0]
    assert row['reference_train_risk'] < 1e-6 < row['train_risk']
    assert not row['is_erm']


@pytest.mark.parametrize(
    ('names', 'changes', 'words'),
    [
        (('xavier',), {}, 'did you mean|not one of|one of'),
        (('init', 'init'), {}, 'given twice'),
        (('init:one',), {}, 'comes a number'),
        (('attention:nan',), {}, 'comes a number'),
        (('init:-1',), {}, 'whole number from 0'),
        (('init:2.5',), {}, 'whole number from 0'),
        (('init:1e10',), {}, 'whole number from 0'),
        (('init', 'init:1'), {'learners': 'min_norm', 'radius': None}, 'would be ignored'),
    ],
)
def test_impossible_starts_are_one_line(names, changes, words):
    with pytest.raises(ValueError, match=words):
        sweeps.cells_of(settings(*names, **changes))


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'starts': ('attention:0',)}, "^starts='attention:0': Recurrent has no attention$"),
        ({'reference': 'construction'}, "^reference='construction': needs transformer.attention=merged"),
        ({'reference': 'nope'}, "^reference='nope': unknown"),
    ],
)
def test_a_start_that_the_model_lacks_is_found_before_any_work(changes, words, tmp_path):
    lacking = {'models': 'rnn', 'transformer.attention': None, 'rnn.width': 4}
    with pytest.raises(ValueError, match=words):
        sweeps.run(small.settings(**{**FITS, **lacking, **changes}), tmp_path, small.quiet())
    assert not list(tmp_path.glob('rows/*'))


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('attention:0', "^first_params='attention:0': Feedforward has no attention$"),
        ('nope', "^first_params='nope': unknown"),
    ],
)
def test_so_is_one_of_online(name, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        sweeps.run(small.settings(models='ffn', first_params=name), tmp_path, small.quiet())
    assert not list(tmp_path.glob('rows/*'))


def test_a_search_says_whether_its_largest_miss_is_an_erm(tmp_path):
    changes = {'num_samples': (), 'min_samples': 2, 'max_samples': 32, 'threshold': 0.5, 'reference': 'construction'}
    for tolerance in 1e-3, 10.0:
        sweeps.run(settings('attention:0', **changes, erm_tolerance=tolerance), tmp_path, small.quiet())
    rows = results.load(tmp_path)
    curves = results.load_curves(tmp_path, rows=rows)
    for _, row in rows.iterrows():
        fits = curves[(curves['seed'] == row['seed']) & (curves['erm_tolerance'] == row['erm_tolerance'])]
        missed = fits[fits['test_loss'] >= 0.5].set_index('samples')
        assert row['miss_is_erm'] == missed['is_erm'][missed.index.max()]
    assert set(rows['miss_is_erm']) == {True, False}
