"""Tasks that ask for one half of the indices: the prompts of qSTR otherwise."""

import jax.numpy as jnp
import numpy as np
import pytest

import qstr_jax.theory.unasked  # noqa: F401, a plugin
from qstr_jax import tasks
from qstr_jax.tasks import streams
from tests import helpers

SIZES = {'seq_len': 5, 'sparsity': 1, 'token_dim': 2}


def prompts(name):
    task = tasks.build(name, **SIZES)
    task_draw = helpers.draw(tasks.task_key(0, task), task)
    key = streams.stream_key(0, 'train', task)
    examples = helpers.quick_jit(lambda link: tasks.examples(key, jnp.arange(200), task, link))
    return examples(task_draw.link), task_draw.link


@pytest.mark.parametrize(('name', 'asked'), [('first_half', {0, 1}), ('second_half', {2, 3, 4})])
def test_indices_of_one_half_and_tokens_of_qstr(name, asked):
    found, link = prompts(name)
    plain, plain_link = prompts('qstr')
    assert set(np.unique(found.t_NxQ)) == asked
    np.testing.assert_array_equal(found.x_NxD, plain.x_NxD)
    np.testing.assert_array_equal(link['u_V'], plain_link['u_V'])
    x_BxNxD, t_BxN = np.asarray(found.x_NxD), np.asarray(found.t_NxQ)[..., 0]
    retrieved = np.take_along_axis(x_BxNxD, t_BxN[..., None], axis=1)
    np.testing.assert_allclose(found.y_N, retrieved @ np.asarray(link['u_V']), rtol=1e-4, atol=1e-5)
