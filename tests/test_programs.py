"""The two compiled programs of a cell."""

import jax
import numpy as np
import pytest

from qstr_jax import learners, sweeps
from qstr_jax.sweeps import platforms, programs, training
from tests import small

STATE = jax.jit(lambda lanes_K, problem: learners.init(lanes_K, problem)[1], static_argnames='problem')
LANES = sweeps.cells_of(small.settings(num_seeds=3))[0].lanes


@pytest.fixture(scope='module')
def cell():
    return small.cell('ffn', max_samples=400, threshold=1e-9)


@pytest.fixture(scope='module')
def compiled(cell):
    """For three lanes, on the last device."""
    return programs.compile_programs(cell.problem, 3, jax.devices()[-1])


@pytest.mark.slow
@pytest.mark.parametrize('model', ['transformer', 'rnn', 'ffn'])
def test_fewer_passes_start_from_the_same_bits(model):
    """The level of users against XLA's own level; what is drawn is the same for all architectures."""
    problem = small.cell(model).problem
    init = learners.init if model == 'ffn' else STATE
    lanes_K = programs.lane_arrays(LANES)
    starts = []
    for level in 2, 3:
        options = {platforms.LEVEL: level}
        starts.append(init.lower(lanes_K, problem).compile(compiler_options=options)(lanes_K))
    if model != 'ffn':
        jax.tree.map(np.testing.assert_array_equal, *starts)
        return
    labels = [data.test_prompts.y_N for data, _ in starts]
    np.testing.assert_allclose(*labels, rtol=1e-4, atol=1e-6)
    # A unit vector is divided by a sum, which CPUs with wide registers add up in another order.
    links = [data.task_draw.link['u_V'] for data, _ in starts]
    np.testing.assert_allclose(*links, rtol=3e-7)
    drawn = [
        (
            data.task_draw._replace(link=None),
            data.test_prompts._replace(y_N=None),
            jax.random.key_data(data.train_key),
            state,
        )
        for data, state in starts
    ]
    jax.tree.map(np.testing.assert_array_equal, *drawn)


def test_memory_is_known_and_grows_with_the_lanes(cell, compiled):
    one = programs.compile_programs(cell.problem, 1, jax.devices()[0])
    params = sum(leaf.size * 4 for leaf in jax.tree.leaves(programs.abstract_state(cell.problem, 1).params))
    assert compiled.memory_bytes > 1.5 * one.memory_bytes > 3 * params
    assert compiled.compile_seconds > 0


def test_all_is_on_the_chosen_device(cell, compiled):
    data_K, state_K = training.train(compiled, cell.problem, LANES)
    devices = {leaf.devices().pop() for leaf in jax.tree.leaves((data_K, state_K)) if hasattr(leaf, 'devices')}
    assert devices == {jax.devices()[-1]}


def test_the_abstract_state_is_the_states_shape(cell, compiled):
    _, _, state_K = training.start(compiled, LANES)
    for abstract, leaf in zip(
        jax.tree.leaves(programs.abstract_state(cell.problem, 3)), jax.tree.leaves(state_K), strict=True
    ):
        assert (abstract.shape, abstract.dtype) == (leaf.shape, leaf.dtype)


@pytest.mark.parametrize('learner', ['online', 'adamw', 'constrained', 'min_norm', 'stationary'])
def test_abstract_lanes_are_the_shape_of_every_learners_lanes(learner):
    sizes = () if learner == 'online' else (16,)
    cell = sweeps.cells_of(
        sweeps.Sweep(models='ffn', seq_lens=3, learners=learner, num_samples=sizes, num_seeds=2, token_dim=4)
    )[0]
    found, abstract = programs.lane_arrays(cell.lanes), programs.abstract_lanes(cell.problem, 2)
    assert found._fields == abstract._fields
    assert [(leaf.shape, leaf.dtype) for leaf in found] == [(leaf.shape, leaf.dtype) for leaf in abstract]


def test_those_who_compile_one_program_have_one_lock_which_is_then_forgotten(cell):
    one, same, other = (programs._lock_of(cell.problem, size) for size in (3, 3, 4))
    assert one is same is not other
    del one, same, other
    assert not programs._compiling
