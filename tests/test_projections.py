"""Projections against brute force: nothing inside the set is nearer, by optimisation and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from qstr_jax import decompositions
from qstr_jax.learners import projections

NORMS = {
    'frobenius': jnp.linalg.norm,
    'two_one': lambda w_AxB: jnp.sum(jnp.linalg.norm(w_AxB, axis=0)),
    'operator': decompositions.operator_norm,
}


def matrix(seed=0, shape=(3, 4), scale=2.0):
    return scale * np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize('name', list(projections.SETS))
def test_nothing_in_the_set_is_nearer(name):
    """Against a general solver: min ‖V − W‖² s.t. norm(V) ≤ R."""
    w, radius = matrix(), 1.5
    found = np.asarray(projections.SETS[name](w, radius), np.float64)
    assert NORMS[name](jnp.asarray(found)) <= radius * (1 + 1e-5)

    def norm(flat):
        return float(np.asarray(NORMS[name](flat.reshape(w.shape))))

    with jax.enable_x64(True):
        best = optimize.minimize(
            lambda flat: np.sum((flat - w.ravel()) ** 2), found.ravel() * 0.9, method='SLSQP',
            jac=lambda flat: 2 * (flat - w.ravel()),
            constraints=[{'type': 'ineq', 'fun': lambda flat: radius - norm(flat)}], options={'maxiter': 500},
        )  # fmt: skip
    distance = np.sum((found - w) ** 2)
    assert distance == pytest.approx(best.fun, rel=2e-3)
    # Random points of the set, at random shares of its radius: none is nearer.
    for seed in range(200):
        v = matrix(seed + 1)
        v = v * radius / float(NORMS[name](v)) * np.random.default_rng(seed).uniform(0.5, 1)
        assert np.sum((v - w) ** 2) >= distance - 1e-4


@pytest.mark.parametrize('name', list(projections.SETS))
def test_points_inside_stay(name):
    w = matrix(scale=0.1)
    np.testing.assert_array_equal(projections.SETS[name](w, 10.0), w)


@pytest.mark.parametrize('name', list(projections.SETS))
def test_a_matrix_of_zeros_has_a_projection(name):
    assert np.all(np.asarray(projections.SETS[name](jnp.zeros((2, 3)), 1.0)) == 0)


def test_the_whole_tree_is_scaled():
    tree = {'params': {'a': {'kernel': matrix()}, 'b': {'bias': matrix(1, (5,))}}}
    norm = np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    found = projections.project(tree, 'l2', 2.0)
    for new, old in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
        np.testing.assert_allclose(new, old * 2.0 / norm, rtol=1e-6)


def test_named_sets_touch_their_leaf_alone_and_heads_one_by_one():
    heads = np.stack([matrix(0, (3, 3)), 0.01 * matrix(1, (3, 3))])
    tree = {'params': {'attention': {'qk': heads}, 'out': {'kernel': matrix(2)}}}
    found = projections.project(tree, 'attention/qk:operator:0.5', 2.0)['params']
    np.testing.assert_array_equal(found['out']['kernel'], tree['params']['out']['kernel'])
    assert decompositions.operator_norm(found['attention']['qk'][0]) == pytest.approx(1.0, rel=1e-5)
    np.testing.assert_array_equal(found['attention']['qk'][1], heads[1])


@pytest.mark.parametrize(
    ('constraint', 'word'),
    [
        ('l3', 'PATH:SET:RADIUS'),
        ('a:nuclear:1', 'frobenius'),
        ('a:operator:-1', 'positive'),
        ('a:operator:x', 'positive'),
        ('a:operator:inf', 'positive'),
        ('a:operator:1+a:two_one:1', 'a is given twice'),
    ],
)
def test_bad_constraints(constraint, word):
    with pytest.raises(ValueError, match=word):
        projections.parse(constraint)


def test_a_constraint_on_a_leaf_that_is_not_there():
    with pytest.raises(ValueError, match='out/kernel'):
        projections.check('hidden/kernel:operator:1', {'params': {'out': {'kernel': matrix()}}})
