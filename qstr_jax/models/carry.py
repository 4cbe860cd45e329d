"""What a module hands from one token to the next: the collection 'carry'.

A module that is applied with this collection starts from it; if the collection may change, the module leaves its last
state there. This lets a prompt be read in pieces, and tests count and perturb the numbers that are carried.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn


def backward(num_tokens: int, length: jax.Array | None) -> Any:
    """The order in which the backward direction reads tokens: the last one first, and padding after all tokens."""
    return slice(None, None, -1) if length is None else (length - 1 - jnp.arange(num_tokens)) % num_tokens


def start(module: nn.Module, name: str, default: Any) -> Any:
    """What a sequence begins with."""
    return module.get_variable('carry', name, default)


def keep(module: nn.Module, name: str, end: Any) -> None:
    """Keeps what a sequence ended with."""
    if module.is_mutable_collection('carry') and not module.is_initializing():
        module.put_variable('carry', name, end)


def scan(module: nn.Module, step: Callable[[Any, Any], tuple[Any, Any]], default: Any, inputs: Any) -> Any:
    """Runs a recurrence over the tokens: (carry, input of a token) → (carry, output)."""
    end, outputs = jax.lax.scan(step, start(module, 'state', default), inputs)
    keep(module, 'state', end)
    return outputs


def before(module: nn.Module, name: str, x: jax.Array) -> jax.Array:
    """The token before each one, (N, …); zeros before the first."""
    first = start(module, name, jnp.zeros_like(x[0]))
    keep(module, name, x[-1])
    return jnp.concatenate([first[None], x[:-1]])


def cumulated(module: nn.Module, name: str, x: jax.Array) -> jax.Array:
    """Sums of the tokens so far, (N, …)."""
    total = start(module, name, jnp.zeros_like(x[0]))[None] + jnp.cumsum(x, axis=0)
    keep(module, name, total[-1])
    return total
