"""Encodings: what a draw promises, the statistics of ω against plain Python, and the layout of z."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax.tasks import encodings
from tests.helpers import quick_jit

KEY = jax.random.key(0, impl='threefry2x32')


def draw_many(num_draws, *args, **kwargs):
    keys = jax.random.split(KEY, num_draws)
    return quick_jit(jax.vmap(lambda key: encodings.draw(key, *args, **kwargs)))(keys)


def slow_draw(key, seq_len, encoding_dim, max_coherence, distinct):
    """Rejection, vector by vector, as the docstring says: (vectors, redraws)."""
    vectors, redraws = [], 0
    for i in range(seq_len):
        for attempt in range(encodings.MAX_TRIES):
            key_i = jax.random.fold_in(jax.random.fold_in(key, i), attempt)
            signs = np.asarray(jax.random.rademacher(key_i, (encoding_dim,), jnp.float32), np.float64)
            dots = [float(signs @ other) for other in vectors]
            equal = distinct and encoding_dim in dots
            if not equal and all(abs(dot) <= max_coherence * encoding_dim for dot in dots):
                break
            redraws += 1
        vectors.append(signs)
    return np.stack(vectors) / math.sqrt(encoding_dim), redraws


def pair_products(omega_NxE):
    """⟨ω_i, ω_j⟩ of all i < j."""
    omega_NxE = np.asarray(omega_NxE, np.float64)
    return (omega_NxE @ omega_NxE.T)[np.triu_indices(len(omega_NxE), 1)]


def largest_product(omega_NxE):
    return np.max(np.abs(pair_products(omega_NxE)))


@pytest.mark.parametrize(('seq_len', 'expected'), [(2, 3), (4, 6), (6, 8), (12, 12), (100, 23)])
def test_default_dimension(seq_len, expected):
    assert encodings.default_encoding_dim(seq_len) == expected


def test_entries_are_balanced_signs_over_root_dimension():
    omega = np.asarray(draw_many(200, 8, 20).omega_NxE)
    assert omega.shape == (200, 8, 20)
    assert set(np.unique(np.abs(omega))) == {np.float32(1 / math.sqrt(20))}
    np.testing.assert_allclose(np.linalg.norm(omega, axis=-1), 1.0, rtol=1e-6)
    assert abs(np.mean(np.sign(omega))) < 4 / math.sqrt(omega.size)
    # Entries at different places agree as often as not.
    products = np.sign(omega[:, :-1] * omega[:, 1:]), np.sign(omega[..., :-1] * omega[..., 1:])
    for product in products:
        assert abs(np.mean(product)) < 4 / math.sqrt(product.size)


def test_coherence_is_honoured():
    seq_len = 64
    dim = math.ceil(18 * math.log(seq_len))
    drawn = draw_many(100, seq_len, dim, max_coherence=0.5)
    assert np.all(drawn.complete)
    assert np.any(drawn.redraws > 0)
    assert max(largest_product(omega) for omega in drawn.omega_NxE) <= 0.5 + 1e-6
    free = draw_many(100, seq_len, dim)
    assert max(largest_product(omega) for omega in free.omega_NxE) > 0.5


def test_coherence_exactly_at_the_bound_is_allowed():
    drawn = draw_many(20, 4, 8, max_coherence=0.25)
    assert np.all(drawn.complete)
    assert max(largest_product(omega) for omega in drawn.omega_NxE) == pytest.approx(0.25)


# At d_e = ⌊5 ln N⌋, see the paper's Section 6 (arXiv:2503.11272).
@pytest.mark.parametrize('seq_len', [2, 4, 6])
def test_equal_vectors_are_redrawn_by_default(seq_len):
    drawn = draw_many(2000, seq_len, encodings.default_encoding_dim(seq_len))
    assert np.all(drawn.complete)
    assert np.any(drawn.redraws)
    assert not np.any(jax.vmap(encodings.equal_pairs)(drawn.omega_NxE))


def test_equal_vectors_stay_on_request():
    drawn = draw_many(2000, 6, 8, distinct=False)
    expected = 15 / 2**8  # pairs times the chance that one of them is equal
    pairs = jax.vmap(encodings.equal_pairs)(drawn.omega_NxE)
    assert np.mean(pairs) == pytest.approx(expected, abs=4 * math.sqrt(expected / 2000))
    assert not np.any(drawn.redraws)


@pytest.mark.parametrize(('dim', 'max_coherence', 'distinct'), [(10, 0.5, False), (3, 1.0, True)])
def test_draw_equals_slow_rejection(dim, max_coherence, distinct):
    drawn = draw_many(3, 5, dim, max_coherence=max_coherence, distinct=distinct)
    assert np.any(drawn.redraws)
    for i, key in enumerate(jax.random.split(KEY, 3)):
        omega, redraws = slow_draw(key, 5, dim, max_coherence, distinct)
        np.testing.assert_allclose(drawn.omega_NxE[i], omega, rtol=1e-6)
        assert drawn.redraws[i] == redraws


def test_redraws_of_equal_vectors_are_counted():
    # N = 2, d_e = 1: the second vector is the other sign; the number of tries is geometric, mean 1.
    drawn = draw_many(4000, 2, 1)
    assert np.all(drawn.omega_NxE[:, 0] == -drawn.omega_NxE[:, 1])
    assert np.mean(drawn.redraws) == pytest.approx(1.0, abs=4 * math.sqrt(2 / 4000))


def test_impossible_coherence_is_reported():
    drawn = draw_many(1, 64, 6, max_coherence=0.5)
    assert not np.any(drawn.complete)
    assert drawn.redraws[0] >= encodings.MAX_TRIES


def test_impossible_distinctness_is_reported():
    assert not np.any(draw_many(1, 3, 1).complete)


def test_vmap_equals_single():
    batched = draw_many(4, 8, 10, max_coherence=0.7)
    single = quick_jit(lambda key: encodings.draw(key, 8, 10, max_coherence=0.7))
    for i, key in enumerate(jax.random.split(KEY, 4)):
        for one, many in zip(single(key), batched, strict=True):
            assert np.array_equal(one, many[i])


@pytest.mark.parametrize('seed', range(5))
def test_statistics_against_plain_python(seed):
    omega = np.random.default_rng(seed).choice([-1.0, 1.0], (12, 5)).astype(np.float32) / math.sqrt(5)
    assert encodings.coherence(omega) == pytest.approx(largest_product(omega), abs=1e-6)
    rows = [tuple(row) for row in omega.tolist()]
    equal = sum(rows[i] == rows[j] for i in range(12) for j in range(i))
    assert encodings.equal_pairs(omega) == equal


def test_equal_pairs_counts_every_pair_of_a_group():
    assert encodings.equal_pairs(jnp.ones((4, 3))) == 6


@pytest.mark.parametrize('scale', [1.0, 0.5])
def test_layout_of_an_encoded_prompt(scale):
    rng = np.random.default_rng(0)
    x, omega = rng.normal(size=(4, 2)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)
    t = rng.integers(0, 4, size=(4, 2))
    z = encodings.encode(x, t, omega, scale)
    assert z.shape == (4, 2 + 3 * 3)
    for i in range(4):
        expected = list(x[i])
        for j in (i, *t[i]):
            expected += [scale * entry for entry in omega[j]]
        assert z[i].tolist() == pytest.approx(expected)


def test_scale_factor():
    assert encodings.scale_factor('unscaled', 10, 3) == 1.0
    assert encodings.scale_factor('scaled', 10, 4) == pytest.approx(math.sqrt(2.5))
    with pytest.raises(ValueError, match=r"^encoding_scale='half': one of unscaled, scaled$"):
        encodings.scale_factor('half', 10, 3)
