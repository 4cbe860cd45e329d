"""Risks (2.1)-(2.3) against slow loops over prompts and positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from qstr_jax import models, tasks
from qstr_jax.learners import risks
from qstr_jax.tasks import streams
from tests import helpers
from tests.helpers import quick_jit, random_params

TASK = tasks.build('qstr', seq_len=4, sparsity=2, token_dim=3, link='sum')
NUM_PROMPTS = 6
POSITIONS = jnp.array([3, 0, 0, 2, 1, 3])


class Shift(nn.Module):
    """A module that knows nothing of positions: Σ over features plus one weight."""

    @nn.compact
    def __call__(self, z_NxE):
        return z_NxE.sum(-1) + self.param('shift', nn.initializers.zeros, ())


MODULES = (models.Transformer(2, 5), models.Feedforward((7,), TASK.token_dim), Shift())


@pytest.fixture(scope='module')
def drawn():
    return helpers.draw(tasks.task_key(0, TASK), TASK)


@pytest.fixture(scope='module')
def prompts(drawn):
    key = streams.stream_key(0, 'train', TASK)
    return quick_jit(lambda: tasks.examples(key, jnp.arange(NUM_PROMPTS), TASK, drawn.link))()


def squared_errors(module, params, prompts, drawn):
    """(n, N) table of (y − ŷ)², prompt by prompt."""
    table = np.zeros((NUM_PROMPTS, TASK.seq_len))
    predict = quick_jit(lambda prompt: module.apply(params, tasks.encode(prompt, TASK, drawn)))
    for i in range(NUM_PROMPTS):
        prompt = jax.tree.map(lambda leaf: leaf[i], prompts)  # noqa: B023
        prediction = predict(prompt)
        for j in range(TASK.seq_len):
            table[i, j] = (float(prompt.y_N[j]) - float(prediction[j])) ** 2
    return table


@pytest.mark.parametrize('module', MODULES, ids=lambda module: type(module).__name__)
def test_risks_equal_slow_loops(module, drawn, prompts):
    z = jnp.zeros((TASK.seq_len, TASK.embedding_dim))
    params = random_params(module, z, scale=0.3)
    table = squared_errors(module, params, prompts, drawn)
    assert table.min() >= 0
    assert table.max() > 0.1
    first = jax.tree.map(lambda leaf: leaf[0], prompts)
    context = {'task': TASK, 'task_draw': drawn}

    @quick_jit
    def measure():
        at = jax.lax.map(lambda j: risks.position_error(module, params, first, j, **context), jnp.arange(4))
        return {
            'averaged': risks.averaged(module, params, prompts, **context),
            'pointwise': risks.pointwise(module, params, prompts, POSITIONS, **context),
            'prompt': risks.prompt_error(module, params, first, **context),
            'positions': at,
        }

    measured = measure()
    assert measured['averaged'] == pytest.approx(table.sum() / (NUM_PROMPTS * TASK.seq_len), rel=1e-4)
    expected = sum(table[i, int(j)] for i, j in enumerate(POSITIONS)) / NUM_PROMPTS
    assert measured['pointwise'] == pytest.approx(expected, rel=1e-4)
    assert measured['pointwise'] != pytest.approx(float(measured['averaged']), rel=1e-2)
    assert measured['prompt'] == pytest.approx(table[0].mean(), rel=1e-4)
    np.testing.assert_allclose(measured['positions'], table[0], rtol=1e-3, atol=1e-5)


class Zero(nn.Module):
    """ŷ = 0."""

    def __call__(self, z_NxE):
        return jnp.zeros(z_NxE.shape[0])


def test_risk_of_zero_is_the_mean_square_of_the_labels(drawn, prompts):
    expected = np.mean(np.asarray(prompts.y_N, np.float64) ** 2)
    assert risks.averaged(Zero(), {}, prompts, TASK, drawn) == pytest.approx(expected, rel=1e-5)


def test_logits_of_few_digits_are_judged_in_float32():
    task = tasks.build('modular_sum', seq_len=4)
    logits_NxC = jax.random.normal(jax.random.key(0), (4, task.num_outputs), jnp.bfloat16)
    y_N = jnp.array([0, 1, 1, 0])
    found_N = risks.errors(logits_NxC, y_N, task)
    assert found_N.dtype == jnp.float32
    np.testing.assert_array_equal(found_N, risks.errors(logits_NxC.astype(jnp.float32), y_N, task))
