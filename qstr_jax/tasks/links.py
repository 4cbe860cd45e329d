"""Link functions g: R^{q×d} → R, which map the relevant tokens to a label: y_i = g(x_{t_i1}, …, x_{t_iq}).

A link is a few pure functions, among them its two-layer ReLU form (Assumption 2) if it has one. `register` adds a link
under a name that configs can use.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import failures
from qstr_jax.settings import Schema, function_names, registry
from qstr_jax.tasks import two_layer
from qstr_jax.tasks.two_layer import TwoLayer

__all__ = ['REGISTRY', 'Link', 'get', 'names', 'register', 'two_layer_form', 'unit_vectors']
# Units of the link 'two_layer', m_g.
TWO_LAYER_WIDTH = 16


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


def unit_vectors(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Independent vectors, uniform on the unit sphere."""
    normal = jax.random.normal(key, shape)
    return normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)


# The links that come with the package. `--describe=links` shows the docstrings of the functions.
Params = dict[str, jax.Array]


def _linear(params: Params, x_QxD: jax.Array) -> jax.Array:
    """⟨u, vec(x)⟩."""
    return jnp.sum(params['u_V'] * x_QxD.reshape(-1))


def _mean(params: Params, x_QxD: jax.Array) -> jax.Array:
    """(1/q) Σ_j ⟨u, x_j⟩."""
    return jnp.mean(x_QxD @ params['u_D'])


def _separate(key: jax.Array, sparsity: int, token_dim: int) -> Params:
    """Draws u_1, …, u_q, for the links sum and hermite2."""
    return {'u_QxD': unit_vectors(key, (sparsity, token_dim))}


def _projections(params: Params, x_QxD: jax.Array) -> jax.Array:
    return jnp.sum(params['u_QxD'] * x_QxD, axis=-1)


def _sum(params: Params, x_QxD: jax.Array) -> jax.Array:
    """Σ_j ⟨u_j, x_j⟩/√q."""
    return jnp.sum(_projections(params, x_QxD)) / math.sqrt(x_QxD.shape[0])


def _hermite2(params: Params, x_QxD: jax.Array) -> jax.Array:
    """(1/√q) Σ_j He2(⟨u_j, x_j⟩)."""
    he2_Q = (_projections(params, x_QxD) ** 2 - 1) / math.sqrt(2)
    return jnp.sum(he2_Q) / math.sqrt(x_QxD.shape[0])


def _squares(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """The two-layer form of hermite2: squares, interpolated between knots."""
    scale, constant = 1 / math.sqrt(2 * sparsity), -math.sqrt(sparsity / 2)
    directions_QxV = two_layer.block_rows(params['u_QxD'])
    return two_layer.quadratic(directions_QxV, scale=scale, constant=constant, radius=radius, error=error)


def _norm2(params: Params, x_QxD: jax.Array) -> jax.Array:
    """(1/√(qd)) Σ_j (‖x_j‖² − d)."""
    return (jnp.sum(x_QxD**2) - x_QxD.size) / math.sqrt(x_QxD.size)


def _squares_of_all(params: Params, sparsity: int, token_dim: int, radius: float, error: float) -> TwoLayer:
    """The two-layer form of norm2: squares of all coordinates, interpolated between knots."""
    root = math.sqrt(sparsity * token_dim)
    eye_VxV = jnp.eye(sparsity * token_dim)
    return two_layer.quadratic(eye_VxV, scale=1 / root, constant=-root, radius=radius, error=error)


def _network_init(key: jax.Array, sparsity: int, token_dim: int) -> Params:
    """Draws a, W and b of the link two_layer."""
    key_a, key_w, key_b = jax.random.split(key, 3)
    return {
        'a_M': jax.random.normal(key_a, (TWO_LAYER_WIDTH,)) / math.sqrt(TWO_LAYER_WIDTH),
        'W_MxV': unit_vectors(key_w, (TWO_LAYER_WIDTH, sparsity * token_dim)),
        'b_M': jax.random.normal(key_b, (TWO_LAYER_WIDTH,)) / 2,
    }


def _network(params: Params, x_QxD: jax.Array) -> jax.Array:
    """The network itself."""
    return TwoLayer(**params, error=0.0)(x_QxD)


for _link in (
    # u is uniform on the unit sphere of R^{qd}; at q = 1 the link is the paper's ⟨u, x_1⟩.
    Link(
        'linear',
        lambda key, q, d: {'u_V': unit_vectors(key, (q * d,))},
        _linear,
        lambda params, *_: two_layer.linear(params['u_V']),
    ),
    # One shared u: the projection of a sparse average.
    Link(
        'mean',
        lambda key, q, d: {'u_D': unit_vectors(key, (d,))},
        _mean,
        lambda params, q, *_: two_layer.linear(jnp.tile(params['u_D'] / q, q)),
    ),
    Link(
        'sum',
        _separate,
        _sum,
        lambda params, q, *_: two_layer.linear((params['u_QxD'] / math.sqrt(q)).reshape(-1)),
    ),
    # He2(z) = (z² − 1)/√2.
    Link('hermite2', _separate, _hermite2, _squares),
    Link('norm2', lambda key, q, d: {}, _norm2, _squares_of_all),
    # A random two-layer ReLU network, with weights of Assumption 2's size.
    Link('two_layer', _network_init, _network, lambda params, *_: TwoLayer(**params, error=0.0)),
):
    register(_link)
