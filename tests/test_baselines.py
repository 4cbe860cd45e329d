"""Baselines: against their normal equations, and the lines that they draw."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import models, tasks
from qstr_jax.models import baselines
from tests import helpers


@functools.partial(helpers.quick_jit, static_argnames=('task', 'num'))
def sample(task, num, seed=0):
    drawn = tasks.draw(tasks.task_key(seed, task), task)
    prompts = tasks.examples(jax.random.key(seed), jnp.arange(num), task, drawn.link)
    return drawn, prompts, jax.vmap(lambda prompt: tasks.encode(prompt, task, drawn))(prompts)


@pytest.mark.parametrize('scale', ['scaled', 'unscaled'])
@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_retrieved_tokens_are_the_right_ones(name, scale):
    task = tasks.build(name, seq_len=9, sparsity=3, token_dim=4, link='sum', encoding_dim=8, encoding_scale=scale)
    _, prompts, z_BxNxE = sample(task, 20)
    for b in range(20):
        expected = prompts.x_NxD[b][prompts.t_NxQ[b]].reshape(9, -1)
        np.testing.assert_array_equal(baselines.retrieved(z_BxNxE[b], 4, 3), expected)


def test_least_squares_solves_its_normal_equations():
    task = tasks.build(
        'qstr', seq_len=5, sparsity=2, token_dim=3, link='hermite2', encoding_dim=8
    )  # no linear label: the fit is not exact
    drawn, prompts, z_BxNxE = sample(task, 30)
    module = baselines.LeastSquares(3, 2)
    there_BxN = jnp.arange(30)[:, None] < jnp.full((30, 5), 12)
    penalty = 0.7
    w_F = module.closed_form(z_BxNxE, prompts.y_N, there_BxN, penalty, drawn)['params']['w_F']
    phi = np.concatenate([baselines.retrieved(z_BxNxE[b], 3, 2) for b in range(12)])
    y = np.asarray(prompts.y_N[:12]).ravel()
    expected = np.linalg.solve(phi.T @ phi + penalty * np.eye(6), phi.T @ y)
    np.testing.assert_allclose(w_F, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize('pointwise', [False, True])
def test_ridge_solves_its_normal_equations(pointwise):
    task = tasks.build('qstr', seq_len=3, sparsity=1, token_dim=2, encoding_dim=4)
    drawn, prompts, z_BxNxE = sample(task, 20)
    there_BxN = jnp.broadcast_to(jnp.arange(20)[:, None] < 15, (20, 3))
    if pointwise:
        there_BxN &= jax.nn.one_hot(jax.random.randint(jax.random.key(1), (20,), 0, 3), 3, dtype=bool)
    w_FxN = baselines.Ridge().closed_form(z_BxNxE, prompts.y_N, there_BxN, 0.3, drawn)['params']['w_FxN']
    phi = np.concatenate([np.asarray(z_BxNxE).reshape(20, -1), np.ones((20, 1))], axis=1)
    for i in range(3):
        rows = np.asarray(there_BxN[:, i])
        gram = phi[rows].T @ phi[rows] + 0.3 * np.eye(phi.shape[1])
        expected = np.linalg.solve(gram, phi[rows].T @ np.asarray(prompts.y_N[:, i])[rows])
        np.testing.assert_allclose(w_FxN[:, i], expected, rtol=1e-3, atol=1e-4)


def test_one_position_is_that_of_all():
    task = tasks.build('qstr', seq_len=4, sparsity=2, token_dim=3, link='sum', encoding_dim=6)
    _, _, z_BxNxE = sample(task, 1)
    for module in (baselines.Zero(), baselines.LeastSquares(3, 2), baselines.Ridge()):
        params = {'params': module.init(jax.random.key(0), z_BxNxE[0]).get('params', {})}
        params = jax.tree.map(lambda leaf: leaf + jnp.arange(leaf.size).reshape(leaf.shape), params)
        everywhere = models.predict(module, params, z_BxNxE[0])
        for i in range(4):
            assert models.predict(module, params, z_BxNxE[0], i) == pytest.approx(float(everywhere[i]), rel=1e-5)
