"""Emulated precisions: which operands are rounded, inside which kinds of program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.benchmarks import rounding

LEFT_MxK = jax.random.normal(jax.random.key(0), (4, 5))
RIGHT_KxN = jax.random.normal(jax.random.key(1), (5, 3))


def bf16(values):
    return values.astype(jnp.bfloat16).astype(jnp.float32)


def loss(left_MxK, right_KxN):
    return jnp.sum(jnp.sin(left_MxK @ right_KxN))


def test_products_of_gradients_are_rounded_and_nothing_else():
    gradient = jax.jit(rounding.rounded(jax.grad(loss, (0, 1)), 'bf16'))
    left, right = gradient(LEFT_MxK, RIGHT_KxN)
    cotangent_MxN = bf16(jnp.cos(bf16(LEFT_MxK) @ bf16(RIGHT_KxN)))
    np.testing.assert_allclose(left, cotangent_MxN @ bf16(RIGHT_KxN).T, rtol=1e-6)
    np.testing.assert_allclose(right, bf16(LEFT_MxK).T @ cotangent_MxN, rtol=1e-6)


def test_tf32_is_nearer():
    exact = LEFT_MxK @ RIGHT_KxN
    errors = [
        float(jnp.abs(rounding.rounded(jnp.matmul, name)(LEFT_MxK, RIGHT_KxN) - exact).max())
        for name in ('tf32', 'bf16')
    ]
    assert 0 < errors[0] < 2**-9 < errors[1] < 2**-5


def scanned(left, right):
    def body(carry, row):
        return carry + row @ right, (row @ right).sum()

    return jax.lax.scan(body, jnp.zeros(3), left, reverse=True)


def looped(left, right):
    return jax.lax.fori_loop(0, left.shape[0], lambda i, total: total + left[i] @ right, jnp.zeros(3))


def branched(left, right):
    return jax.lax.cond(left[0, 0] > 9, lambda: left @ left.T @ left @ right, lambda: 2 * left @ right)


@jax.custom_jvp
def product(left, right):
    return left @ right


product.defjvp(lambda primals, tangents: (product(*primals), tangents[0] @ primals[1] + primals[0] @ tangents[1]))


def called(left, right):
    return jax.vmap(jax.checkpoint(jax.jit(product)), (0, None))(left, right)


@pytest.mark.parametrize('function', [scanned, looped, branched, called])
def test_inside_loops_branches_and_calls(function):
    """Rounding the operands of these is rounding all that goes into their products."""
    got = rounding.rounded(function, 'bf16')(LEFT_MxK, RIGHT_KxN)
    wanted = function(bf16(LEFT_MxK), bf16(RIGHT_KxN))
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    exact = jax.tree.leaves(function(LEFT_MxK, RIGHT_KxN))[0]
    assert float(jnp.abs(jax.tree.leaves(got)[0] - exact).max()) > 1e-4


def test_inside_the_condition_of_a_loop():
    """(1 + 2⁻⁹)·1 > 1 holds for ever, and not at all once the factor is rounded to 1."""

    def count(left_K, right_K):
        return jax.lax.while_loop(lambda i: (i < 3) & (left_K @ right_K > 1), lambda i: i + 1, 0)

    vectors = jnp.array([1 + 2**-9]), jnp.ones(1)
    assert count(*vectors) == 3
    assert rounding.rounded(count, 'bf16')(*vectors) == 0
