"""Twisted teachers: training risk 0 and a large test loss where d_e ≥ N, not where d_e is small."""

import numpy as np
import pytest

from qstr_jax import tasks
from qstr_jax.theory import construction_norm, twisted_teacher

SHARP = 60.0


def orthogonal(seq_len):
    return np.linalg.qr(np.random.default_rng(0).normal(size=(seq_len, seq_len)))[0]


def test_with_orthogonal_encodings_the_training_risk_is_0_and_the_test_loss_twice_the_share_not_asked():
    omega = orthogonal(12)
    found = twisted_teacher.twist(omega, np.array([0, 1, 2, 3, 3, 5, 6, 7, 9]), SHARP)
    assert found.train_risk < 1e-9
    assert found.test_loss == pytest.approx(2 * 4 / 12, abs=1e-6)
    np.testing.assert_allclose(found.block_ExE @ found.block_ExE.T, np.eye(12), atol=1e-10)


def test_errors_are_those_of_real_prompts():
    rng = np.random.default_rng(1)
    omega = orthogonal(5)
    block, u = orthogonal(5)[::-1], np.array([0.6, 0.8])
    x = rng.normal(size=(200_000, 5, 2))
    scores = 2.0 * omega @ block @ omega.T
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    sampled = ((np.einsum('tn,bnd->btd', weights, x) @ u - x @ u) ** 2).mean(axis=0)
    np.testing.assert_allclose(twisted_teacher.errors(block, omega, 2.0), sampled, rtol=0.02)


def test_the_largest_sample_is_the_last_before_too_few_indices_are_left():
    omega, asked = orthogonal(10), np.array([0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 9])
    found = {
        threshold: twisted_teacher.largest_sample(omega, asked, SHARP, threshold=threshold, tolerance=1e-3)
        for threshold in (0.3, 0.5, 2.1)
    }
    # Two indices are left until 8 comes at place 11, three until 7 at place 9; one alone has nowhere to turn to.
    assert found == {0.3: 11, 0.5: 9, 2.1: 0}


def test_encodings_of_a_small_dimension_leave_no_room():
    wide = tasks.build('qstr', seq_len=32, encoding_dim=75, max_coherence=0.5, encoding_scale='scaled')
    narrow = tasks.build('qstr', seq_len=32, encoding_dim=10, max_coherence=0.75, encoding_scale='scaled')
    samples = twisted_teacher.samples(wide, (0, 1))
    assert all(1.5 * 32 < n < 8 * 32 for n in samples)
    assert twisted_teacher.samples(narrow, (0, 1)) == [0, 0]
    assert twisted_teacher.samples(wide, (1,), asked_per_prompt=32) == [samples[1] // 32]
    expected = construction_norm.transformer(wide).bounds['alpha'] * 10
    assert twisted_teacher.sharpness_of(wide) == pytest.approx(expected)


def test_another_link_is_refused():
    with pytest.raises(ValueError, match='needs the linear link and q = 1, not sum and 2'):
        twisted_teacher.sharpness_of(tasks.build('qstr', sparsity=2, link='sum'))
