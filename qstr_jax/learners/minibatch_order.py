"""The order of the examples of a fixed sample: shuffled epochs, with n a traced number.

A permutation of 0..n−1 is computed where it is needed instead of being stored: a Feistel network permutes the first
4^k ≥ n numbers, and a result outside 0..n−1 goes through the network again until it is inside. So one program serves
every n, and the cost of a minibatch depends on its own size, not on n.
"""

import jax
import jax.numpy as jnp

# Rounds of the network; four make it a pseudo-random permutation.
ROUNDS = 4


def _mix(bits: jax.Array) -> jax.Array:
    """A bijective mix of 32 bits (the finaliser of MurmurHash3)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)


def _half_bits(size: jax.Array) -> jax.Array:
    """The smallest k with 4^k ≥ size, for a traced integer."""
    powers = jnp.uint32(4) ** jnp.arange(16, dtype=jnp.uint32)
    return jnp.sum(powers < size.astype(jnp.uint32)).astype(jnp.uint32)


def permuted(key: jax.Array, i: jax.Array, size: jax.Array) -> jax.Array:
    """Element i of a permutation of 0..size−1 that is a function of `key`."""
    half = _half_bits(size)
    mask = (jnp.uint32(1) << half) - 1
    keys_R = jax.random.bits(key, (ROUNDS,), jnp.uint32)

    def network(value: jax.Array) -> jax.Array:
        left, right = value >> half, value & mask
        for r in range(ROUNDS):
            left, right = right, left ^ (_mix(right ^ keys_R[r]) & mask)
        return (left << half) | right

    start = network(i.astype(jnp.uint32))
    end = jax.lax.while_loop(lambda value: value >= size.astype(jnp.uint32), network, start)
    return end.astype(jnp.int32)


def minibatch(key: jax.Array, step: jax.Array, batch_size: int, size: jax.Array) -> jax.Array:
    """Indices (B,) of the examples of one minibatch: each example once per epoch, each epoch in its own order."""

    def element(offset: jax.Array) -> jax.Array:
        # 32 bits: good for 4·10⁹ examples.
        flat = step.astype(jnp.uint32) * jnp.uint32(batch_size) + offset.astype(jnp.uint32)
        epoch, i = flat // size.astype(jnp.uint32), flat % size.astype(jnp.uint32)
        return permuted(jax.random.fold_in(key, epoch), i, size)

    return jax.vmap(element)(jnp.arange(batch_size))
