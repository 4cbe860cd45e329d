"""Positional encodings by name. An encoder is a function (key, task) → vectors ω (N, d_e)."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax.settings import registry
from qstr_jax.tasks import encodings

REGISTRY = registry.Registry('encoding', 'encoding', leading=('key', 'task'))


@dataclasses.dataclass(frozen=True)
class Encoder:
    """A registered function with its settings.

    Attributes:
        name: as registered.
        settings: (name, value) pairs of the settings that are not at their default.
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    def draw(self, key: jax.Array, task: Any) -> encodings.Encodings:
        """Draws the encodings of one task."""
        found = REGISTRY.get(self.name).builder(key, task, **dict(self.settings))
        if not isinstance(found, encodings.Encodings):
            found = encodings.Encodings(found, jnp.int32(0), jnp.bool_(True))
        shape = (task.seq_len, task.encoding_dim)
        if found.omega_NxE.shape != shape:
            raise ValueError(f'encoding={self.name!r}: must return shape {shape}, not {found.omega_NxE.shape}')
        return found


def register(name: str) -> Callable[[Callable], Callable]:
    """Decorator that registers a function (key, task, **settings) → ω (N, d_e), or `encodings.Encodings`.

    Args:
        name: what `--config.encoding` calls it.

    Raises:
        ValueError: the name is taken.
    """
    return REGISTRY.registering(name)


def get(encoder: 'str | Encoder', **settings: Any) -> Encoder:
    """The encoder of a name; an `Encoder` is returned as it is."""
    if isinstance(encoder, Encoder):
        return encoder
    entry = REGISTRY.get(encoder)
    kept = {name: value for name, value in settings.items() if value != entry.schema.pick(name, encoder).default}
    return Encoder(encoder, tuple(sorted(kept.items())))


@register('rademacher')
def rademacher(key: jax.Array, task: Any) -> encodings.Encodings:
    """Vectors in {±1/√d_e}^{d_e}, redrawn until they meet `max_coherence` and `distinct_encodings` of the task."""
    return encodings.draw(key, task.seq_len, task.encoding_dim, task.max_coherence, task.distinct_encodings)
