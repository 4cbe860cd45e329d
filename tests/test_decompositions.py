"""Decompositions under vmap: the values and gradients of JAX's own, without a batch that could wait for itself."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import decompositions, learners, sweeps
from qstr_jax.sweeps import programs

BATCH = re.compile(r'custom_call @lapack_\w+\(.*: \(tensor<(?:\d+x){3,}\w+>')


@pytest.fixture(scope='module')
def w_KxAxB():
    return jax.random.normal(jax.random.key(0), (5, 4, 3)).at[4].set(0.0)


def test_svd_and_eigh_of_a_batch_are_those_of_each_matrix(w_KxAxB):
    u_KxAxR, sizes_KxR, v_KxRxB = jax.jit(jax.vmap(decompositions.svd))(w_KxAxB)
    np.testing.assert_allclose(u_KxAxR * sizes_KxR[:, None] @ v_KxRxB, w_KxAxB, atol=1e-5)
    np.testing.assert_allclose(sizes_KxR, jnp.linalg.svd(w_KxAxB, compute_uv=False), atol=1e-5)
    gram_KxBxB = jnp.swapaxes(w_KxAxB, 1, 2) @ w_KxAxB
    values_KxB, vectors_KxBxB = jax.jit(jax.vmap(decompositions.eigh))(gram_KxBxB)
    np.testing.assert_allclose(gram_KxBxB @ vectors_KxBxB, values_KxB[:, None] * vectors_KxBxB, atol=1e-5)


@pytest.mark.parametrize(('shape', 'rank'), [((6, 6), 6), ((4, 7), 4), ((9, 5), 2)])
def test_the_svd_of_a_tpu_is_one_of_any_rank(shape, rank):
    """Its steps run anywhere; only the iteration for the eigenvalues is another one there."""
    rng = np.random.default_rng(0)
    w_AxB = (rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))).astype(np.float32)
    u_AxR, sizes_R, v_RxB = jax.jit(decompositions._svd_by_jacobi)(w_AxB)
    np.testing.assert_allclose(u_AxR * sizes_R[None] @ v_RxB, w_AxB, atol=2e-5)
    np.testing.assert_allclose(sizes_R, np.linalg.svd(w_AxB, compute_uv=False), atol=2e-5)
    for rows in (u_AxR.T, v_RxB):
        np.testing.assert_allclose(rows @ rows.T, np.eye(min(shape)), atol=1e-5)


def test_the_operator_norm_and_its_gradient(w_KxAxB):
    values_K, grads_KxAxB = jax.vmap(jax.value_and_grad(decompositions.operator_norm))(w_KxAxB)
    full = jax.vmap(jax.value_and_grad(lambda w: jnp.linalg.norm(w, ord=2)))(w_KxAxB[:4])
    np.testing.assert_allclose(values_K[:4], full[0], rtol=1e-5)
    np.testing.assert_allclose(grads_KxAxB[:4], full[1], atol=1e-5)
    assert values_K[4] == 0
    assert np.all(np.isfinite(grads_KxAxB))


@pytest.mark.parametrize('decompose', [decompositions.svd, decompositions.eigh])
def test_a_gradient_through_a_decomposition_is_an_error_not_zero(decompose):
    with pytest.raises(ValueError, match='Linearization'):
        jax.grad(lambda w: decompose(w)[1].sum())(jnp.eye(3))


def test_the_pattern_finds_a_batch(w_KxAxB):
    assert BATCH.search(jax.jit(jax.vmap(jnp.linalg.svd)).lower(w_KxAxB).as_text())
    assert not BATCH.search(jax.jit(jax.vmap(decompositions.svd)).lower(w_KxAxB).as_text())


FIXED = {'token_dim': 3, 'num_seeds': 2, 'seq_lens': 2, 'test_samples': 16, 'num_samples': 4}
CELLS = {
    'deep cell': {'models': 'rnn', 'num_seeds': 2, 'seq_lens': 2, 'rnn': {'cell': 'deep', 'lipschitz': 0.1}},
    'operator ball': {'models': 'ffn', 'learners': 'constrained', 'constraint': 'out/kernel:operator:1', **FIXED},
    'span': {'models': 'ffn', 'learners': 'stationary', 'ffn': {'form': 'theorem6'}, 'span': 'coordinates', **FIXED},
    'closed form': {'models': 'least_squares', 'learners': 'adamw', **FIXED},
}


@pytest.mark.parametrize('name', CELLS)
def test_no_program_decomposes_a_batch_at_once(name):
    problem = sweeps.cells_of(sweeps.Sweep(**CELLS[name]))[0].problem
    lanes_K = programs.abstract_lanes(problem, 2)
    data_K, state_K = jax.eval_shape(functools.partial(learners.init, problem=problem), lanes_K)
    num_checks = jax.ShapeDtypeStruct((), np.int32)
    init = learners.init.lower(lanes_K, problem)
    advance = learners.advance.lower(state_K, data_K, lanes_K, num_checks, problem)
    texts = init.as_text(), advance.as_text()
    assert any('@lapack_' in text for text in texts)
    assert not any(BATCH.search(text) for text in texts)
