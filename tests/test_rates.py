"""The theorems' curves: shapes, and covering bounds whose Lipschitz steps hold on real modules."""

import math

import jax
import numpy as np
import pytest

from qstr_jax.models import Recurrent, Transformer
from qstr_jax.theory import bounds, rates, rnn_sizes, sensitivity

SIZES = {'sparsity': 2, 'token_dim': 10, 'width': 2, 'r_a': 2.0, 'r_w': 1.0}


def slope(curve, low, high):
    return math.log(curve(high) / curve(low)) / math.log(high / low)


def test_through_one_point():
    curve = rates.through(lambda n: rnn_sizes.theorem9_memorise(n), 10, 7.0)
    assert curve(10) == pytest.approx(7)
    assert slope(curve, 10, 100) == pytest.approx(3)
    with pytest.raises(ValueError, match='value=0'):
        rates.through(lambda n: n, 10, 0)


def test_theorem4_is_free_of_the_length_but_for_logarithms():
    assert rates.theorem4_radius_square(sparsity=3, token_dim=9, width=4, r_a=2.0, r_w=0.5) == pytest.approx(1 + 1 + 1)
    risk = rates.theorem4(1000, 16, **SIZES, approximation=0.3, constant=2, log_power=0)
    c_1 = (2 + 2 + 0.4) * 20
    assert risk == pytest.approx(2 * (0.3 + c_1 * math.sqrt(2 * 12 * 14 / 1000)))
    assert 0 < slope(lambda length: rates.theorem4(1000, length, **SIZES), 10, 10_000) < 0.1
    assert slope(lambda n: rates.theorem4(n, 16, **SIZES, log_power=0), 10, 1000) == pytest.approx(-0.5)
    assert rates.token_radius(100, 10, 4) == pytest.approx(math.sqrt(12 * math.e * math.log(1000)))
    with pytest.raises(ValueError, match='num_samples=0'):
        rates.theorem4(0, 16, **SIZES)


def test_other_rates():
    assert rates.theorem7(100, 64, complexity=50.0) == pytest.approx(math.sqrt(50 * math.log(6400) / 100))
    assert rnn_sizes.proposition8_width(64, math.sqrt(math.e - 1)) == pytest.approx(64)
    assert rnn_sizes.proposition8_norm(64, math.e - 1, constant=0.5) == pytest.approx(32)
    assert slope(lambda n: rnn_sizes.proposition8_norm(n, 100), 10, 100) == pytest.approx(1)
    assert slope(lambda n: rnn_sizes.theorem9_generalise(n, 100, 3), 10, 100) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match='width=1'):
        rnn_sizes.theorem9_generalise(64, 1, 2)


def moved(tree, seed, sizes):
    """`tree` with each leaf named in `sizes` moved by a random step of that Frobenius norm."""
    rng = np.random.default_rng(seed)

    def move(path, leaf):
        size = next((s for name, s in sizes.items() if name in jax.tree_util.keystr(path)), 0.0)
        direction = rng.normal(size=leaf.shape)
        return np.float32(leaf + size * direction / np.linalg.norm(direction))

    return jax.tree_util.tree_map_with_path(move, tree)


def test_proposition17_steps_move_a_transformer_by_less_than_the_distance():
    module = Transformer(2, 6, 'merged', output_bias=False)
    z_BxNxE = np.float32(np.random.default_rng(1).normal(size=(50, 7, 5)))
    radius_z = float(np.max(np.linalg.norm(z_BxNxE, axis=-1)))
    apply = jax.jit(jax.vmap(module.apply, (None, 0)))
    params = jax.jit(module.init)(jax.random.key(2), z_BxNxE[0])
    tree = params['params']
    norm_a = float(np.linalg.norm(tree['out']['kernel']))
    norm_w = math.hypot(np.linalg.norm(tree['hidden']['kernel']), np.linalg.norm(tree['hidden']['bias']))
    step_a, step_w, step_qk = bounds.transformer_steps(
        0.5, num_heads=2, norm_a=1.2 * norm_a, norm_w=1.2 * norm_w, radius_z=radius_z
    )
    before_BxN = apply(params, z_BxNxE)
    for seed in range(20):
        sizes = {'out': step_a, "'hidden']['kernel": 0.8 * step_w, "'hidden']['bias": 0.6 * step_w, 'qk': step_qk}
        after_BxN = apply(moved(params, seed, sizes), z_BxNxE)
        assert 1e-5 < float(np.max(np.abs(after_BxN - before_BxN))) <= 0.5


def test_corollary31_steps_move_an_rnn_by_less_than_the_distance():
    seq_len = 9
    module = Recurrent(4, 'deep', 'exclusive', 'mlp', (5,), (6,), radius=1.0)
    z_BxNxE = np.float32(np.random.default_rng(1).normal(size=(50, seq_len, 3)))
    radius_z = float(np.max(np.linalg.norm(z_BxNxE, axis=-1)))
    apply = jax.jit(jax.vmap(module.apply, (None, 0)))
    params = jax.jit(module.init)(jax.random.key(2), z_BxNxE[0])
    alpha = float(np.max(sensitivity.transition_lipschitz(params)))
    norm = 1.2 * max(1.0, *(float(np.linalg.norm(leaf)) * 2 for leaf in jax.tree.leaves(params)))
    step_h = 0.5 / (4 * norm**2 * bounds.state_growth(seq_len, alpha))
    size_h = step_h / bounds.mlp_lipschitz(2, norm, 1 + radius_z)
    size_y = 0.25 / bounds.mlp_lipschitz(2, norm, 2 + radius_z)
    before_BxN = apply(params, z_BxNxE)
    for seed in range(20):
        sizes = {'cell': size_h / 2, 'readout_0': size_y / 2, 'out': size_y / 2}  # 4, 2 and 1 leaves
        after_BxN = apply(moved(params, seed, sizes), z_BxNxE)
        assert 1e-7 < float(np.max(np.abs(after_BxN - before_BxN))) <= 0.5


def test_state_growth_is_that_of_the_recursion():
    for alpha in (0.0, 0.1, 1.0):
        error = 0.0
        for _ in range(10):
            error = (1 + alpha) * error + 1
        assert bounds.state_growth(10, alpha) == pytest.approx(error)
    assert bounds.state_growth(10, 0.1) <= math.e * 10


def test_covering_bounds_scale_as_the_paper_says():
    def transformer(distance=0.1, num_heads=2, width=8, embedding_dim=50, norm_qk=3.0):
        return bounds.log_cover_transformer(
            distance,
            num_heads=num_heads,
            width=width,
            embedding_dim=embedding_dim,
            norm_a=1.0,
            norm_w=2.0,
            norm_qk=norm_qk,
            radius_z=1.5,
        )

    def rnn(seq_len, lipschitz=None, norm=3.0):
        return bounds.log_cover_rnn(
            0.1, seq_len, norm=norm, depths=(3, 4), sizes=(100, 200), radius_h=2.0, radius_z=2.0, lipschitz=lipschitz
        )

    assert transformer(distance=0.05) > transformer() > transformer(width=4)
    step_qk = bounds.transformer_steps(0.1, num_heads=2, norm_a=1.0, norm_w=2.0, radius_z=1.5)[2]
    dense = 2 * 50**2 * math.log1p(2 * 3.0 / step_qk)
    assert transformer() - transformer(norm_qk=1e-9) <= dense + 1e-9
    # Length enters the RNN's bound through a logarithm, and only as 2 p_h log N.
    assert rnn(10**4) - rnn(10**2) == pytest.approx(2 * 100 * math.log(10**2), rel=0.01)
    assert rnn(100, 0.0) < rnn(100) < rnn(100, 1.0)
    assert bounds.log_maurey(10, 1.0, 0.5) == pytest.approx(4 * math.log(201))
    with pytest.raises(ValueError, match='distance=0'):
        transformer(distance=0)
    with pytest.raises(ValueError, match=r'^norm=0.5'):
        rnn(10, norm=0.5)


def test_maurey_covering_is_reached_by_sampling():
    """A mean of k signed vertices comes within r/√k of a matrix of entrywise ℓ1 norm r, on average over draws."""
    rng = np.random.default_rng(0)
    w_DxD = rng.normal(size=(6, 6))
    radius = np.abs(w_DxD).sum()
    for count in (4, 64):
        errors = []
        for _ in range(50):
            counts = rng.multinomial(count, np.abs(w_DxD).ravel() / radius).reshape(6, 6)
            errors.append(np.sum((radius / count * counts * np.sign(w_DxD) - w_DxD) ** 2))
        assert np.mean(errors) <= radius**2 / count
