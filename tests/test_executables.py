"""Programs that processes of the tests share are found only by those who would compile the same."""

import jax
import numpy as np
import pytest

from qstr_jax.sweeps import programs
from tests import executables, small


@pytest.fixture
def sharing(tmp_path, monkeypatch):
    """Begins to share what a function compiles, with given conditions; returns the list of what it is called with."""

    trace_anew = programs.abstract_state

    def begin(compile_anew, *conditions):
        compiled = []
        monkeypatch.setattr(programs, '_compile', lambda *which: compiled.append(which) or compile_anew(*which))
        monkeypatch.setattr(programs, 'abstract_state', trace_anew)
        executables.share(tmp_path, *conditions)
        return compiled

    return begin


def test_a_program_is_compiled_once_and_makes_the_same_bits(sharing):
    # A cell of no other test: a program that JAX's cache of the worker knows cannot be written.
    problem, device = small.cell('ffn', batch_size=12).problem, jax.devices()[-1]
    lanes_K = programs.lane_arrays([small.lane(0), small.lane(1)], device)
    ends, states, structures, numbers_of_compiled, compile_anew = [], [], [], [], programs._compile
    for _ in range(2):
        compiled = sharing(compile_anew, 'flags')
        init, advance, _ = programs._compile(problem, 2, device)
        data_K, state_K = init(lanes_K)
        ends.append(jax.device_get(advance(state_K, data_K, lanes_K, np.int32(2))))
        numbers_of_compiled.append(len(compiled))
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state_K))  # donated by both
        states.append([(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(programs.abstract_state(problem, 2))])
        structures.append(jax.tree.structure(programs.abstract_state(problem, 2)))
    assert numbers_of_compiled == [1, 0]
    assert states[0] == states[1]
    assert structures[0] == structures[1]
    jax.tree.map(np.testing.assert_array_equal, *ends)


def test_another_problem_size_device_or_condition_is_another_program(sharing, monkeypatch):
    def nothing(*which):
        pass

    monkeypatch.setattr(executables, '_write', lambda compiled, path: path.touch())
    problem, device = small.cell('ffn').problem, jax.devices()[0]
    sharing(nothing, 'flags')
    programs._compile(problem, 1, device)
    other = small.cell('ffn', check_every=7).problem
    for condition, *which in (
        ('flags', other, 1, device),
        ('flags', problem, 2, device),
        ('flags', problem, 1, jax.devices()[-1]),
        ('others', problem, 1, device),
    ):
        compiled = sharing(nothing, condition)
        programs._compile(*which)
        assert len(compiled) == 1, which
