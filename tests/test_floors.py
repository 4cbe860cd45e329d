"""Floors hold on real attention outputs and training sets, oracles attain them, and a wrong one is crossed."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from qstr_jax import models, tasks
from qstr_jax.models import attention, deep_cell
from qstr_jax.theory import floors, heads, networks, recurrences
from tests import helpers

PROMPTS = 4000


def half_task(sparsity, token_dim):
    return dataclasses.replace(heads.half_task(sparsity, token_dim), encoding_dim=4 * sparsity + 6)


def random_scores(task, num_heads, ignore_tokens):
    """W_QK of random heads; without the blocks that read tokens, as Proposition 21 has it, if asked."""
    size, d = task.embedding_dim, task.token_dim
    qk_HxExE = jax.random.normal(jax.random.key(1), (num_heads, size, size)) / np.sqrt(size)
    return qk_HxExE.at[:, :, :d].set(0) if ignore_tokens else qk_HxExE


@functools.partial(jax.jit, static_argnames='task')
def oracle_errors(task, task_draw, qk_HxExE, keys):
    """Squared errors of the oracle at the last position, which reads the attention's outputs and nothing else."""
    position, omega_NxE = task.seq_len - 1, task_draw.encodings.omega_NxE
    module = attention.MergedAttention(qk_HxExE.shape[0])

    def error(key):
        prompt = tasks.sample(key, task, task_draw.link)
        x_NxD, t_NxQ = prompt.x_NxD.astype(qk_HxExE.dtype), prompt.t_NxQ
        z_NxE = tasks.encode(tasks.Prompt(x_NxD, t_NxQ, None), task, task_draw)
        heads_1xF = module.apply({'params': {'qk_HxExE': qk_HxExE}}, z_NxE[position][None], z_NxE)
        heads_HxE = heads_1xF.reshape(qk_HxExE.shape[0], -1)
        seen = floors.seen_through_heads(heads_HxE, qk_HxExE, t_NxQ, position=position, task=task, omega_NxE=omega_NxE)
        y = task.labels(x_NxD, t_NxQ, task_draw.link)[position]
        return (y - floors.oracle(*seen)) ** 2

    return jax.vmap(error)(keys)


def mean_and_error(errors_B):
    return float(np.mean(errors_B)), float(np.std(errors_B) / np.sqrt(len(errors_B)))


@pytest.mark.parametrize(
    ('sparsity', 'token_dim', 'num_heads', 'ignore_tokens'),
    [(2, 2, 1, False), (3, 4, 2, False), (4, 10, 3, False), (3, 1, 1, False), (4, 1, 3, True), (3, 4, 2, True)],
)
def test_head_floors_are_attained_through_real_attention(sparsity, token_dim, num_heads, ignore_tokens):
    with jax.enable_x64(True):
        task = half_task(sparsity, token_dim)
        task_draw = helpers.draw(jax.random.key(0), task)
        qk_HxExE = random_scores(task, num_heads, ignore_tokens)
        keys = jax.random.split(jax.random.key(2), PROMPTS)
        mean, error = mean_and_error(oracle_errors(task, task_draw, qk_HxExE, keys))
        if ignore_tokens:
            floor = floors.proposition21(num_heads, sparsity, late=True)
            wrong = floors.proposition21(num_heads - 1, sparsity, late=True)
        else:
            floor = floors.head_floor(num_heads, sparsity, token_dim, late=True)
            wrong = floors.head_floor(max(1, num_heads - 1), sparsity, token_dim, late=True)
            assert floors.proposition3(num_heads, sparsity, token_dim, late=True) <= floor
        assert abs(mean - floor) < 4 * error + 1e-12
        if floor > 0 and num_heads > 1:
            assert mean + 4 * error < wrong  # a floor that is off by one head is crossed


def test_printed_and_sharper_head_floors():
    assert floors.proposition3(1, 4, 10) == pytest.approx(1 - 14 / 40)
    assert floors.proposition3(1, 4, 10, late=True) == pytest.approx(2 * (1 - 14 / 40))
    assert floors.proposition3(3, 4, 10) == 0
    assert floors.head_floor(3, 4, 10) == pytest.approx(0.25 * 0.7)
    assert floors.head_floor(3, 4, 10, late=True) == pytest.approx(0.35)
    assert floors.head_floor(4, 4, 10) == floors.head_floor(1, 3, 1) == floors.proposition21(4, 4) == 0
    for num_heads in range(1, 6):
        for q in range(1, 6):
            for d in range(1, 6):
                assert floors.proposition3(num_heads, q, d) <= floors.head_floor(num_heads, q, d) + 1e-12
                assert floors.head_floor(num_heads, q, d) <= floors.proposition21(num_heads, q)
    mask_N = floors.late_positions(9)
    x_NxD = tasks.sample(jax.random.key(0), half_task(4, 2), {}).x_NxD
    assert np.array_equal(mask_N, np.all(np.asarray(x_NxD) == 0, axis=1))
    with pytest.raises(ValueError, match='num_heads=0'):
        floors.head_floor(0, 2, 2)
    task = tasks.build(
        'qstr', seq_len=12, sparsity=2, token_dim=2, link='norm2', indices='half', tokens='half', encoding_dim=12
    )
    with pytest.raises(ValueError, match=r'^seq_len=12, .* must be 2q\+1'):
        floors.seen_through_heads(None, None, None, position=0, task=task, omega_NxE=None)


@pytest.mark.parametrize('shared', [True, False])
def test_fixed_scores_floor_holds_for_hermite2(shared):
    """E[y | X^T A] by Gaussian conditioning, exact: the error is 1 − H/q for one shared u, above it otherwise."""
    rng = np.random.default_rng(0)
    q, d, heads = 5, 3, 2
    directions_QxD = np.eye(d)[np.zeros(q, int)] if shared else np.eye(d)[np.arange(q) % d]
    a_QxH = np.linalg.qr(rng.dirichlet(np.ones(q), heads).T)[0]
    x_BxQxD = rng.normal(size=(200_000, q, d))
    p_BxQ = np.sum(x_BxQxD * directions_QxD, axis=-1)
    seen_BxQ = np.sum(np.einsum('qh,rh,brd->bqd', a_QxH, a_QxH, x_BxQxD) * directions_QxD, axis=-1)
    unseen_Q = np.diag(np.eye(q) - a_QxH @ a_QxH.T)
    y_B = np.sum(p_BxQ**2 - 1, axis=1) / np.sqrt(2 * q)
    oracle_B = np.sum(seen_BxQ**2 + unseen_Q - 1, axis=1) / np.sqrt(2 * q)
    mean, error = mean_and_error((y_B - oracle_B) ** 2)
    floor = floors.proposition21(heads, q)
    assert (abs(mean - floor) if shared else floor - mean) < 4 * error


def training_tokens(count, task, seed):
    prompts = jax.jit(tasks.examples, static_argnames='task')
    return prompts(jax.random.key(seed), jnp.arange(count), task, {'u_V': jnp.ones(task.token_dim)}).x_NxD


def test_theorem6_floor_of_real_training_sets():
    """The printed floor is the mean over u; the oracle attains the floor of its (u, training set)."""
    task = tasks.build('simple_qstr', seq_len=8, sparsity=1, token_dim=5, link='linear')
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        x_BxNxD = training_tokens(30, task, 0).astype(float)
        u_UxD = rng.normal(size=(4000, 5))
        u_UxD /= np.linalg.norm(u_UxD, axis=1, keepdims=True)
        floor_U = jax.vmap(lambda u_D: floors.theorem6_given(x_BxNxD, u_D))(u_UxD)
        mean, error = mean_and_error(floor_U)
        assert abs(mean - floors.theorem6_floor(30, 8, 5)) < 4 * error
        assert float(np.std(floor_U)) > 0.01  # one u is not the mean: a run has its own floor
        assert float(jnp.mean(jax.vmap(lambda u: floors.theorem6_given(x_BxNxD, u))(jnp.eye(5)))) == (
            pytest.approx(0.25)
        )
        basis_RxV, u_D = floors.span_basis(x_BxNxD.reshape(30, -1)), jnp.asarray(u_UxD[0])
        test_CxNxD, t_C = jnp.asarray(rng.normal(size=(40_000, 8, 5))), jnp.asarray(rng.integers(8, size=40_000))
        oracle_C = jax.vmap(lambda x, t: floors.theorem6_oracle(basis_RxV, x, t, u_D))(test_CxNxD, t_C)
        y_C = test_CxNxD[jnp.arange(40_000), t_C] @ u_D
        mean, error = mean_and_error((y_C - oracle_C) ** 2)
        assert abs(mean - float(floor_U[0])) < 4 * error
        assert mean + 4 * error < float(floors.theorem6_given(x_BxNxD[:24], u_D))  # of a set of 24: crossed
        twice = jnp.concatenate([x_BxNxD, x_BxNxD])
        assert float(floors.theorem6_given(twice, u_D)) == pytest.approx(float(floor_U[0]))
    assert floors.theorem6_floor(40, 8, 5) == floors.theorem6_floor(50, 8, 5) == 0
    with pytest.raises(ValueError, match='num_samples=-1'):
        floors.theorem6_floor(-1, 8, 5)


# Lloyd-Max levels of a standard normal, by bits per coordinate.
LEVELS = {0: [0.0], 1: [-0.7979, 0.7979], 2: [-1.5104, -0.4528, 0.4528, 1.5104]}


@functools.cache
def storing_setup():
    task = tasks.build('qstr', seq_len=8, sparsity=1, token_dim=1, link='linear', encoding_dim=12)
    task_draw = jax.jit(tasks.draw, static_argnames='task')(jax.random.key(0), task)
    prompts = jax.jit(tasks.examples, static_argnames='task')(jax.random.key(1), jnp.arange(4000), task, task_draw.link)
    return task, task_draw, prompts, recurrences.storing(task, task_draw, 6.0)


def error_with_states(change):
    """Mean errors per prompt of the storing RNN when its states pass through `change` where a token is stored."""
    task, task_draw, prompts, built = storing_setup()
    networks.check_tokens(built, prompts.x_NxD)

    def error(prompt, key):
        def interceptor(next_fun, args, kwargs, context):
            states_2xNxH = next_fun(*args, **kwargs)
            if not isinstance(context.module, deep_cell.DeepCell) or context.method_name != '__call__':
                return states_2xNxH
            return jnp.where(states_2xNxH == 0, 0.0, change(states_2xNxH, key))

        with nn.intercept_methods(interceptor):
            prediction_N = models.predict(built.module, built.params, tasks.encode(prompt, task, task_draw))
        return jnp.mean((prompt.y_N - prediction_N) ** 2)

    return jax.jit(jax.vmap(error))(prompts, jax.random.split(jax.random.key(2), len(prompts.y_N)))


@pytest.mark.parametrize('bits', [0, 1, 2])
def test_proposition8_converse_with_quantised_states(bits):
    levels_L = jnp.asarray(LEVELS[bits])

    def nearest(states_2xNxH, key):
        return levels_L[jnp.argmin(jnp.abs(states_2xNxH[..., None] - levels_L[None, None, None]), axis=-1)]

    mean, error = mean_and_error(error_with_states(nearest))
    floor = floors.proposition8_bits(7 * bits, 8)
    assert floor - 4 * error < mean < np.pi * np.sqrt(3) / 2 * floor
    if bits == 0:
        assert abs(mean - floor) < 4 * error
    else:
        assert mean < floors.proposition8_bits(3.5 * bits, 8)  # half the bits: a wrong floor, crossed


@pytest.mark.parametrize('distortion', [0.5, 0.1])
def test_proposition8_converse_is_attained_by_a_gaussian_channel(distortion):
    def channel(states_2xNxH, key):
        noise_2xNxH = jax.random.normal(key, states_2xNxH.shape)
        return (1 - distortion) * states_2xNxH + np.sqrt(distortion * (1 - distortion)) * noise_2xNxH

    mean, error = mean_and_error(error_with_states(channel))
    floor = floors.proposition8_bits(7 / 2 * np.log2(1 / distortion), 8)
    assert floor == pytest.approx(7 / 8 * distortion)
    assert abs(mean - floor) < 4 * error
