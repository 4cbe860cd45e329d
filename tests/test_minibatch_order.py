"""Shuffled epochs computed where they are asked for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax.learners import minibatch_order
from tests.helpers import quick_jit

KEY = jax.random.key(0)
LARGEST = 5000

# n is traced: one program for all of them.
minibatch = jax.jit(minibatch_order.minibatch, static_argnums=2)


@jax.jit
def elements(key, size):
    """The permutation of 0..n−1, over and over."""
    return jax.vmap(lambda i: minibatch_order.permuted(key, i, size))(jnp.arange(LARGEST) % size)


def permutation(size, key=KEY):
    return np.asarray(elements(key, jnp.int32(size)))[:size]


@pytest.mark.parametrize('size', [1, 2, 3, 4, 5, 16, 17, 100, 1000])
def test_every_element_once(size):
    assert sorted(permutation(size).tolist()) == list(range(size))


def test_keys_give_other_permutations_that_look_random():
    size = 50
    keys = jax.random.split(KEY, 400)
    images = quick_jit(jax.vmap(lambda key: minibatch_order.permuted(key, jnp.int32(7), jnp.int32(size))))(keys)
    counts = np.bincount(np.asarray(images), minlength=size)
    # χ² with 49 degrees of freedom: 99.9 % lie below 85.
    assert np.sum((counts - 8) ** 2 / 8) < 85


@pytest.mark.parametrize(('size', 'batch'), [(10, 4), (7, 16), (64, 64)])
def test_minibatches_walk_through_epochs(size, batch):
    steps = 12
    seen = np.concatenate([minibatch(KEY, jnp.int32(s), batch, jnp.int32(size)) for s in range(steps)])
    epochs = [seen[i : i + size] for i in range(0, len(seen) - size + 1, size)]
    assert all(sorted(epoch) == list(range(size)) for epoch in epochs)
    assert size < 5 or any(not np.array_equal(epoch, epochs[0]) for epoch in epochs[1:])


def test_n_is_traced():
    """One program gives the permutation of each epoch, element by element."""
    minibatch.clear_cache()
    for size in (5, 50, LARGEST):
        epochs, places = np.divmod(3 * 8 + np.arange(8), size)
        expected = [permutation(size, jax.random.fold_in(KEY, e))[i] for e, i in zip(epochs, places, strict=True)]
        np.testing.assert_array_equal(minibatch(KEY, jnp.int32(3), 8, jnp.int32(size)), expected)
    assert minibatch._cache_size() == 1
