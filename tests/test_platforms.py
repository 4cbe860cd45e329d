"""What is chosen by platform, and that every kind of cell can be handed to the compilers of accelerators."""

import collections
import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import decompositions, learners, sweeps
from qstr_jax.accelerators import measure
from qstr_jax.cli import base
from qstr_jax.learners import held_out, lanes
from qstr_jax.models import gated_cell
from qstr_jax.sweeps import lane_batches, platforms, programs
from tests import helpers, small
from tests.helpers import quick_jit

ONLINE = [
    {'model': 'transformer'},
    {'model': 'transformer', 'transformer.attention': 'merged', 'risk': 'pointwise'},
    {'model': 'ffn'},
    {'model': 'ffn', 'ffn.form': 'theorem6'},
    *({'model': 'rnn', 'rnn.cell': cell} for cell in ('relu', 'tanh', 'gru', 'lstm')),
    {'model': 'rnn', 'rnn.cell': 'deep', 'rnn.lipschitz': 0.1, 'rnn.radius': 1.0, 'rnn.readout': 'mlp'},
]
FIXED = ('adamw', 'constrained', 'min_norm', 'stationary')
SIZES = {'token_dim': 3, 'num_seeds': 2, 'seq_lens': 2, 'test_samples': 16, 'num_samples': 4}


def assert_lowered(problem, num_lanes=2):
    """Both programs lower for both platforms, at once where they get the same, and none asks its host for anything."""
    names_of = collections.defaultdict(list)
    for platform, name in measure.LOWERED_FOR.items():
        names_of[platforms.for_platform(problem, platform)].append(name)
    for suited, names in names_of.items():
        for program in programs.traced(suited, num_lanes):
            text = program.lower(lowering_platforms=tuple(names)).as_text()
            assert 'func.func public @main' in text
            assert 'callback' not in text


@pytest.mark.slow
@pytest.mark.parametrize('changes', ONLINE, ids=lambda changes: '-'.join(str(value) for value in changes.values()))
def test_cells_of_online_training_lower_for_accelerators(changes):
    assert_lowered(small.cell(**changes).problem)


@pytest.mark.slow
@pytest.mark.parametrize('learner', FIXED)
def test_cells_of_learners_on_a_fixed_sample_lower_for_accelerators(learner):
    cells = sweeps.cells_of(sweeps.Sweep(models='ffn', learners=learner, ffn={'widths': (8, 8)}, **SIZES))
    assert_lowered(cells[0].problem, num_lanes=9)  # so many that they are drawn in parts


@pytest.mark.slow
def test_baselines_in_closed_form_lower_for_accelerators():
    names = ('ridge', 'zero', 'least_squares')
    cells = sweeps.cells_of(sweeps.Sweep(models=names, learners='adamw', **SIZES))
    assert len(cells) == len(names)
    for cell in cells:
        assert_lowered(cell.problem, num_lanes=1)


@pytest.mark.slow
@pytest.mark.parametrize('config', ['figure2', 'n_star_erm', 'theorem6', 'theorem6_control'])
def test_published_cells_on_a_fixed_sample_lower_for_accelerators(config):
    """With their plugins: several starts, the construction, spans and oracles."""
    cells = sweeps.cells_of(base.to_sweep(helpers.config_module(config).reduced()))
    for cell in {(cell.model, type(cell.problem.learner)): cell for cell in cells}.values():
        assert_lowered(cell.problem)


@pytest.mark.slow
def test_the_precision_of_products_is_a_setting_whose_default_renames_nothing():
    cells = {precision: small.cell('ffn', precision=precision) for precision in (None, 'highest', 'high', 'default')}
    assert cells['highest'].id == cells[None].id == small.cell('ffn').id
    assert len({cell.id for cell in cells.values()}) == 3
    texts = {name: measure.lowered(cell.problem, 2, 'tpu')[1].as_text() for name, cell in cells.items()}
    assert ('HIGHEST' in texts['highest'], 'HIGHEST' in texts['high'], 'HIGH' in texts['high']) == (True, False, True)
    assert 'HIGH' not in texts['default']


@pytest.mark.parametrize(('num_lanes', 'size'), [(5, 5), (8, 8), (12, 6), (13, 1), (16, 8)])
def test_lanes_are_tested_in_equal_parts(num_lanes, size):
    sizes = []

    def squares(values_K, tree):
        sizes.append(len(values_K))
        return values_K**2 + tree['a'].sum(axis=1)

    values_K, rows_KxN = jnp.arange(num_lanes), jnp.arange(2 * num_lanes).reshape(num_lanes, 2)
    found = lanes.in_parts(squares, values_K, {'a': rows_KxN})
    assert set(sizes) == {size}
    assert (found == values_K**2 + rows_KxN.sum(axis=1)).all()


@pytest.mark.parametrize(('num_lanes', 'size'), [(1, None), (8, None), (9, 3), (40, 4), (42, 3)])
def test_many_lanes_draw_in_parts_on_an_accelerator_and_at_once_on_a_cpu(num_lanes, size):
    sizes = {'cpu': (), 'tpu': (), 'cuda': ()}
    drawn = jax.jit(lanes.over_lanes_in_parts(lambda key: jax.random.normal(key, (3,))))
    keys_K = jax.random.split(jax.random.key(0), num_lanes)
    for platform in sizes:
        text = drawn.trace(keys_K).lower(lowering_platforms=(platform,)).as_text()
        sizes[platform] = re.findall(r'dynamic_update_slice.*tensor<\d+x(\d+)x3xf32>', text)
    assert sizes == {'cpu': [], 'tpu': [str(size)] * bool(size), 'cuda': [str(size)] * bool(size)}
    assert (drawn(keys_K) == jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys_K)).all()


def test_a_tpu_finds_eigenvalues_by_jacobi():
    """Its compiler takes minutes over what JAX would choose."""
    traced = jax.jit(decompositions.eigh).trace(jnp.eye(300))
    texts = {name: traced.lower(lowering_platforms=(name,)).as_text() for name in ('cpu', 'tpu', 'cuda')}
    assert 'Eigh' in texts['tpu']
    assert 'while' not in texts['tpu']
    assert 'syevd' in texts['cpu']
    assert 'solver_syev' in texts['cuda']


def test_a_tpu_finds_singular_values_by_one_polar_decomposition_and_jacobi():
    """JAX's own choice there is a polar decomposition for every half of the spectrum."""
    own = jax.jit(decompositions.svd).trace(jnp.eye(300)).lower(lowering_platforms=('tpu',)).as_text()
    jaxs = jax.jit(jnp.linalg.svd).trace(jnp.eye(300)).lower(lowering_platforms=('tpu',)).as_text()
    assert 'Eigh' in own
    assert own.count('stablehlo.while') < jaxs.count('stablehlo.while') / 2


@pytest.mark.parametrize(
    ('platform', 'seq_len', 'unroll'),
    [('cpu', 4, gated_cell.UNROLL), ('gpu', 4, 4), ('gpu', 12, 12), ('gpu', 16, 8), ('gpu', 33, 11), ('tpu', 4, 1)],
)
def test_loops_are_joined_as_the_table_says(platform, seq_len, unroll):
    """In equal parts; and the parameters are the same, so that a checkpoint of one platform is one of another."""
    problem = small.cell('rnn', seq_lens=seq_len).problem
    suited = platforms.for_platform(problem, platform)
    assert suited.module.unroll == unroll <= platforms.TABLE[platform].unroll
    assert suited.module.clone(unroll=gated_cell.UNROLL) == problem.module
    assert (suited is problem) == (platform == 'cpu')


@pytest.mark.parametrize('platform', platforms.TABLE)
def test_a_model_without_such_a_loop_only_has_other_chunks_of_test_prompts(platform):
    chunk = platforms.TABLE[platform].test_chunk
    problem = small.cell('ffn', test_samples=chunk + 1).problem
    assert platforms.for_platform(problem, platform) == dataclasses.replace(problem, test_chunk=chunk)
    problem = small.cell('ffn', test_samples=chunk).problem
    assert platforms.for_platform(problem, platform) is problem


def test_the_chunk_of_test_prompts_changes_errors_by_rounding_alone():
    problem = small.cell('transformer', test_samples=1250).problem
    data_K, state_K = learners.init(programs.lane_arrays([small.lane(0)]), problem)
    data, params = jax.tree.map(lambda leaf: leaf[0], (data_K, state_K.params))

    def errors(chunk):
        own = dataclasses.replace(problem, test_chunk=chunk)
        return quick_jit(lambda: held_out.measured_on(params, data.task_draw, data.test_prompts, own)[0])()

    np.testing.assert_allclose(errors(100), errors(500), rtol=1e-5)


def test_an_unknown_platform_is_treated_as_a_gpu():
    assert platforms.of('rocm') == platforms.TABLE['gpu']


def test_a_compiler_option_that_the_user_sets_is_kept(monkeypatch):
    monkeypatch.setitem(platforms.TABLE, 'cpu', platforms.TABLE['cpu']._replace(init={platforms.LEVEL: 2}))
    monkeypatch.delenv('XLA_FLAGS', raising=False)
    assert platforms.options('cpu', 'init') == {platforms.LEVEL: 2}
    assert platforms.options('cpu', 'advance') is None
    monkeypatch.setenv('XLA_FLAGS', f'--{platforms.LEVEL}=1')
    assert platforms.options('cpu', 'init') is None


@pytest.mark.parametrize(('num_lanes', 'size'), [(5, 5), (45, 45), (64, 64), (65, 33), (100, 50)])
@pytest.mark.parametrize('platform', ['gpu', 'tpu'])
def test_an_accelerator_takes_all_lanes_or_equal_batches_of_at_most_64(platform, num_lanes, size):
    assert lane_batches.default_size(small.cell('rnn').problem.module, num_lanes, platform) == size
