"""Helpers of `qstr`: random numbers, indices from uniform numbers, checks of users' functions, and a loop over keys."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def normals_and_uniforms(key: jax.Array, num_normals: int, num_uniforms: int) -> tuple[jax.Array, jax.Array]:
    """Standard normal numbers, and uniform ones in [0, 1), from a single draw of bits.

    A single draw compiles several times faster than separate ones and runs in half the time.
    """
    smallest = jnp.nextafter(jnp.float32(-1), jnp.float32(0))
    uniform = jax.random.uniform(key, (num_normals + num_uniforms,), jnp.float32, smallest, 1.0)
    # Φ^{-1} of the uniforms: the normals that jax.random.normal makes of the same bits.
    normal = jnp.sqrt(jnp.float32(2)) * jax.lax.erf_inv(uniform[:num_normals])
    return normal, (uniform[num_normals:] + 1) / 2


def uniform_indices(unit: jax.Array, seq_len: int) -> jax.Array:
    """⌊uniform · N⌋, integers in 0..N-1."""
    # The minimum guards against a product that rounds up to N.
    return jnp.minimum((unit * seq_len).astype(jnp.int32), seq_len - 1)


def check_shape(name: str, array: jax.Array, *shape: int) -> None:
    """Raises ValueError if a user's function returned another shape, which would be broadcast silently."""
    if jnp.shape(array) != shape:
        raise ValueError(f'{name}: the function must return shape {shape}, not {jnp.shape(array)}')


def in_halves(function: Callable, keys_B: jax.Array) -> Any:
    """`function` of each key; an even number of keys is processed in two halves, one after the other."""
    size = len(keys_B)
    if size % 2:
        return jax.vmap(function)(keys_B)
    halves = jax.lax.map(jax.vmap(function), keys_B.reshape(2, size // 2))
    return jax.tree.map(lambda leaf: leaf.reshape(size, *leaf.shape[2:]), halves)
