"""Link functions g: R^{q×d} → R, which map the relevant tokens to a label: y_i = g(x_{t_i1}, …, x_{t_iq}).

A link is a few pure functions, among them its two-layer ReLU form (Assumption 2) if it has one. `register` adds a link
under a name that configs can use.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax

from qstr_jax import failures
from qstr_jax.settings import Schema, function_names, registry
from qstr_jax.tasks import link_functions as own
from qstr_jax.tasks.link_functions import unit_vectors
from qstr_jax.tasks.two_layer import TwoLayer

__all__ = ['REGISTRY', 'Link', 'get', 'names', 'register', 'two_layer_form', 'unit_vectors']


@dataclasses.dataclass(frozen=True)
class Link:
    """A link function.

    Attributes:
        name: what configs and rows call it.
        init: (key, sparsity, token_dim) → parameters, a pytree of arrays; may be empty.
        apply: (parameters, x (q, d)) → scalar label.
        two_layer: (parameters, sparsity, token_dim, radius, error) → `TwoLayer`, or None if there is none.
        settings: (name, value) pairs that its builder was called with.
    """

    name: str
    init: Callable[..., Any]
    apply: Callable[..., jax.Array]
    two_layer: Callable[..., TwoLayer] | None = None
    settings: tuple = ()


def two_layer_form(
    link: Link, params: Any, sparsity: int, token_dim: int, *, radius: float, error: float = 0.1
) -> TwoLayer:
    """The link as a two-layer ReLU network whose error is at most `error` wherever all ‖x_j‖ ≤ radius."""
    if link.two_layer is None:
        raise ValueError(f'link {link.name!r} has no two-layer form (give Link(two_layer=...))')
    if not radius > 0 or not error > 0:
        raise ValueError(f'radius={radius}, error={error}: both must be positive')
    return link.two_layer(params, sparsity, token_dim, radius, error)


REGISTRY = registry.Registry('link', 'link')


def register(link: 'Link | str') -> Any:
    """Adds a link to those that configs can name.

    Args:
        link: a `Link` without settings; or a name, and then this is a decorator of a builder (**settings) → `Link`.

    Raises:
        ValueError: the name is taken.
    """
    if isinstance(link, Link):
        REGISTRY.add(link.name, link, Schema())
        return link
    return REGISTRY.registering(link)


def names() -> tuple[str, ...]:
    """Names of all registered links."""
    return REGISTRY.names()


@functools.cache  # one Link per function, so that tasks made from the same function are equal
def _from_function(function: Callable) -> 'Link':
    return Link(function_names.name_of(function), lambda key, sparsity, token_dim: {}, lambda _, x_QxD: function(x_QxD))


@functools.cache  # one Link per setting, so that tasks made from the same settings are equal
def _from_builder(builder: Callable[..., 'Link'], name: str, settings: tuple) -> 'Link':
    with failures.named(f'link={name!r}'):
        link = builder(**dict(settings))
    if not isinstance(link, Link):
        raise ValueError(f'link={name!r}: its builder must return a Link, not {link!r}')
    return dataclasses.replace(link, name=name, settings=settings)


def get(link: 'str | Link | Callable', **settings: Any) -> 'Link':
    """The `Link` of a name; a `Link` is returned as it is, and a plain function x (q, d) → scalar is wrapped."""
    if isinstance(link, Link):
        return link
    if callable(link):
        return _from_function(link)
    entry = REGISTRY.get(link)
    kept = {name: value for name, value in settings.items() if value != entry.schema.pick(name, entry.name).default}
    if isinstance(entry.builder, Link):
        return entry.builder
    return _from_builder(entry.builder, entry.name, tuple(sorted(kept.items())))


for _link in (
    Link('linear', own.linear_init, own.linear_apply, own.linear_two_layer),
    Link('mean', own.mean_init, own.mean_apply, own.mean_two_layer),
    Link('sum', own.separate_init, own.sum_apply, own.sum_two_layer),
    Link('hermite2', own.separate_init, own.hermite2_apply, own.hermite2_two_layer),
    Link('norm2', own.norm2_init, own.norm2_apply, own.norm2_two_layer),
    Link('two_layer', own.two_layer_init, own.two_layer_apply, own.two_layer_two_layer),
):
    register(_link)
