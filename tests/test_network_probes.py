"""Probes of the cards, against their definitions on networks that are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import learners, models, tasks
from qstr_jax.learners.problem import Problem
from qstr_jax.models import probes
from qstr_jax.theory import constructions, network_probes, sensitivity
from tests import helpers

TASK = tasks.build('qstr', seq_len=4, sparsity=1, token_dim=1, link='linear', encoding_dim=8)


def measured(name, module, params, task=TASK, task_draw=None, **settings):
    """The columns of a probe, as a sweep computes them: jitted and vmapped over lanes."""
    problem = Problem(task=task, test_task=task, module=module, learner=learners.Online())
    task_draw = helpers.draw(tasks.task_key(0, task), task) if task_draw is None else task_draw
    probe = functools.partial(probes.get(name, **settings), problem=problem)
    lanes = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (params, task_draw))
    found = helpers.quick_jit(jax.vmap(probe))(*lanes)
    assert all(np.array_equal(*values) for values in found.values())
    return {column: float(values[0]) for column, values in found.items()}


@functools.cache
def rnn(cell):
    shape = {'readout': 'mlp', 'states': 'exclusive', 'readout_widths': (6,)}
    module = models.build('rnn', TASK, width=3, cell=cell, **shape)
    z_NxE = jnp.zeros((TASK.seq_len, TASK.embedding_dim))
    return module, {'params': helpers.quick_jit(module.init)(jax.random.key(0), z_NxE)['params']}


def test_loss_at_late_positions():
    """Zero errs by the variance of the label there, 2, whatever it is elsewhere."""
    half = {'indices': 'half', 'tokens': 'half', 'encoding_dim': 8, 'link': 'norm2'}
    task = tasks.build('qstr', seq_len=5, sparsity=2, token_dim=2, **half)
    found = measured('late_loss', models.Zero(), {'params': {}}, task, num_prompts=4000)
    assert abs(found['late_loss'] - 2) < 4 * found['late_loss_se'] < 0.5


def test_alignment_of_the_construction():
    task = tasks.build('qstr', seq_len=4, sparsity=2, token_dim=2, link='sum', encoding_dim=8)
    task_draw = helpers.draw(tasks.task_key(0, task), task)
    built = constructions.transformer(task, task_draw, 5.0, alpha=30.0)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), built.params)
    found = measured('head_alignment', built.module, params, task, task_draw)
    assert (found['alignment_share'], found['alignment_cosine']) == pytest.approx((1, 1), abs=1e-5)
    assert found['off_mass'] < 1e-2


@pytest.mark.parametrize('name', ['head_alignment', 'transition_lipschitz', 'state_sensitivity', 'rounded_states'])
def test_a_probe_that_does_not_apply_adds_nothing(name):
    module = models.build('rnn', TASK, width=3)
    params = helpers.quick_jit(module.init)(jax.random.key(0), jnp.zeros((TASK.seq_len, TASK.embedding_dim)))
    assert not measured(name, module, params)


def test_lipschitz_product_of_the_larger_direction():
    module, params = rnn('deep')
    expected = float(np.max(sensitivity.transition_lipschitz(params)))
    assert measured('transition_lipschitz', module, params)['transition_lipschitz'] == pytest.approx(expected, rel=1e-5)


def test_sensitivity_from_both_sides():
    found = measured('state_sensitivity', *rnn('gru'))
    assert 0 < found['sensitivity_below'] <= found['sensitivity_above']


def test_rounded_states_come_near_to_those_that_are_not():
    """Beside the loss of the network itself on the same prompts."""
    module, params = rnn('gru')
    found = measured('rounded_states', module, params, bits=(1, 12), num_prompts=100)
    task_draw = helpers.draw(tasks.task_key(0, TASK), TASK)

    @helpers.quick_jit
    def loss():
        prompts = network_probes._prompts(TASK, task_draw, 100)
        return jnp.mean(
            jax.vmap(lambda p: (p.y_N - models.predict(module, params, tasks.encode(p, TASK, task_draw))) ** 2)(prompts)
        )

    exact = float(loss())
    assert found['rounded_12'] == pytest.approx(exact, rel=1e-3)
    assert abs(found['rounded_1'] - exact) > 10 * abs(found['rounded_12'] - exact)
    assert set(found) == {'rounded_1', 'rounded_1_se', 'rounded_12', 'rounded_12_se'}
