"""Link functions g: R^{q×d} → R, each with its two-layer ReLU form (Assumption 2).

A link is three pure functions and two facts; `register` adds one under a name that configs can use.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from qstr_jax import registry

TWO_LAYER_WIDTH = 16


class TwoLayer(NamedTuple):
    """a_g^T σ(W_g vec(x) + b_g), with vec(x) = (x_1, …, x_q) ∈ R^{qd}.

    `error` is sup |g − net| over ‖x_j‖ ≤ radius, the radius it was built for (0 where it is exact);
    the paper's ε_2NN is its square.
    """

    a_M: jax.Array
    W_MxK: jax.Array
    b_M: jax.Array
    error: float

    def __call__(self, x_QxD):
        """Value at tokens x, (q, d)."""
        return self.a_M @ jax.nn.relu(self.W_MxK @ x_QxD.reshape(-1) + self.b_M)


@dataclasses.dataclass(frozen=True)
class Link:
    """A link function.

    Attributes:
        name: what configs and rows call it.
        init: (key, sparsity, token_dim) → parameters, a pytree of arrays; may be empty.
        apply: (parameters, x (q, d)) → scalar label.
        variance: (sparsity, token_dim) → label variance under N(0, I) tokens, or None if unknown.
        two_layer: (parameters, sparsity, token_dim, radius, error) → `TwoLayer`, or None if there is none.
        settings: (name, value) pairs that a builder made it of.
    """

    name: str
    init: Callable[..., Any]
    apply: Callable[..., jax.Array]
    variance: Callable[[int, int], float] | None = None
    two_layer: Callable[..., TwoLayer] | None = None
    settings: tuple = ()


def two_layer_form(link, params, sparsity, token_dim, radius, error=0.1):
    """The link as a two-layer ReLU network that errs by at most `error` where ‖x_j‖ ≤ radius.

    Raises:
        ValueError: the link has no such form, or radius or error is not positive.
    """
    if link.two_layer is None:
        raise ValueError(f'link {link.name!r} has no two-layer form (give Link(two_layer=...))')
    if not radius > 0 or not error > 0:
        raise ValueError(f'radius={radius}, error={error}: both must be positive')
    return link.two_layer(params, sparsity, token_dim, radius, error)


def unit_vectors(key, shape):
    """Independent uniform unit vectors along the last axis."""
    normal = jax.random.normal(key, shape)
    return normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)


def _opposite_units(weight_K):
    """w·x = σ(w·x) − σ(−w·x): two units, exact."""
    a_M = jnp.array([1.0, -1.0])
    return TwoLayer(a_M, jnp.stack([weight_K, -weight_K]), jnp.zeros(2), 0.0)


def _quadratic_two_layer(directions_PxK, scale, constant, radius, error):
    """scale · Σ_p ⟨v_p, x⟩² + constant by linear interpolation between knots kh, |k|h ≤ radius.

    The chord of z² over a step h lies above it by at most h²/4, so P terms err by at most
    P · scale · h²/4 = 2 · error on one side; the constant moves the band to ±error.
    """
    num_directions = directions_PxK.shape[0]
    step = math.sqrt(8 * error / (num_directions * scale))
    num_knots = math.ceil(radius / step)
    # From the chord's slope (2k+1)h: σ(z) has weight h, every later knot adds 2h; both signs of z.
    weight_per_knot = scale * step * jnp.where(jnp.arange(num_knots) == 0, 1.0, 2.0)
    knots = -step * jnp.arange(num_knots)
    signed_2PxK = jnp.concatenate([directions_PxK, -directions_PxK])
    W_MxK = jnp.repeat(signed_2PxK, num_knots, axis=0)
    a_M = jnp.tile(weight_per_knot, 2 * num_directions)
    b_M = jnp.tile(knots, 2 * num_directions)
    # One unit with zero weights and bias 1 carries the constant.
    a_M = jnp.append(a_M, constant - error)
    W_MxK = jnp.concatenate([W_MxK, jnp.zeros((1, W_MxK.shape[1]))])
    return TwoLayer(a_M, W_MxK, jnp.append(b_M, 1.0), error)


def _block_rows(u_QxD):
    """Row j reads ⟨u_j, x_j⟩ from vec(x): (q, d) → (q, qd)."""
    sparsity = u_QxD.shape[0]
    return jnp.einsum('qd,qr->qrd', u_QxD, jnp.eye(sparsity)).reshape(sparsity, -1)


# linear: ⟨u, vec(x)⟩, u uniform on the unit sphere of R^{qd}; the paper's ⟨u, x_1⟩ at q = 1.


def _linear_init(key, sparsity, token_dim):
    return {'u_K': unit_vectors(key, (sparsity * token_dim,))}


def _linear_apply(params, x_QxD):
    return jnp.sum(params['u_K'] * x_QxD.reshape(-1))


def _linear_two_layer(params, sparsity, token_dim, radius, error):
    return _opposite_units(params['u_K'])


# mean: (1/q) Σ_j ⟨u, x_j⟩ with one shared u: sparse averaging, projected.


def _mean_init(key, sparsity, token_dim):
    return {'u_D': unit_vectors(key, (token_dim,))}


def _mean_apply(params, x_QxD):
    return jnp.mean(x_QxD @ params['u_D'])


def _mean_two_layer(params, sparsity, token_dim, radius, error):
    return _opposite_units(jnp.tile(params['u_D'] / sparsity, sparsity))


# sum: Σ_j ⟨u_j, x_j⟩/√q. hermite2: (1/√q) Σ_j He2(⟨u_j, x_j⟩), He2(z) = (z² − 1)/√2.


def _separate_init(key, sparsity, token_dim):
    return {'u_QxD': unit_vectors(key, (sparsity, token_dim))}


def _projections(params, x_QxD):
    return jnp.sum(params['u_QxD'] * x_QxD, axis=-1)


def _sum_apply(params, x_QxD):
    return jnp.sum(_projections(params, x_QxD)) / math.sqrt(x_QxD.shape[0])


def _sum_two_layer(params, sparsity, token_dim, radius, error):
    return _opposite_units((params['u_QxD'] / math.sqrt(sparsity)).reshape(-1))


def _hermite2_apply(params, x_QxD):
    he2_Q = (_projections(params, x_QxD) ** 2 - 1) / math.sqrt(2)
    return jnp.sum(he2_Q) / math.sqrt(x_QxD.shape[0])


def _hermite2_two_layer(params, sparsity, token_dim, radius, error):
    scale = 1 / math.sqrt(2 * sparsity)
    directions = _block_rows(params['u_QxD'])
    return _quadratic_two_layer(directions, scale, -math.sqrt(sparsity / 2), radius, error)


# norm2: (1/√(qd)) Σ_j (‖x_j‖² − d).


def _norm2_init(key, sparsity, token_dim):
    return {}


def _norm2_apply(params, x_QxD):
    return (jnp.sum(x_QxD**2) - x_QxD.size) / math.sqrt(x_QxD.size)


def _norm2_two_layer(params, sparsity, token_dim, radius, error):
    size = sparsity * token_dim
    return _quadratic_two_layer(jnp.eye(size), 1 / math.sqrt(size), -math.sqrt(size), radius, error)


# two_layer: a random network of the class itself, with weights of Assumption 2's size.


def _two_layer_init(key, sparsity, token_dim):
    key_a, key_w, key_b = jax.random.split(key, 3)
    width = TWO_LAYER_WIDTH
    return {
        'a_M': jax.random.normal(key_a, (width,)) / math.sqrt(width),
        'W_MxK': unit_vectors(key_w, (width, sparsity * token_dim)),
        'b_M': jax.random.normal(key_b, (width,)) / 2,
    }


def _two_layer_apply(params, x_QxD):
    return TwoLayer(**params, error=0.0)(x_QxD)


def _two_layer_two_layer(params, sparsity, token_dim, radius, error):
    return TwoLayer(**params, error=0.0)


REGISTRY = registry.Registry('link', 'link')


def register(link: 'Link | str') -> Any:
    """Adds a link to those that configs can name.

    Args:
        link: a `Link`, which has no settings; or a name, which makes this a decorator of a builder
            (**settings) → `Link`.

    Raises:
        ValueError: the name is taken.
    """
    if isinstance(link, Link):
        # A link that is registered as it is has the place of its function, which tells whether a cell was run again.
        known = registry.entries().get(link.name)
        if known is not None and known.builder is not link and not _is_rerun(known.builder, link):
            raise ValueError(f'link {link.name!r} exists already: choose another name')
        registry.replace(REGISTRY, link.name, link)
        return link

    def add(builder: Callable[..., Link]) -> Callable[..., Link]:
        REGISTRY.add(link, builder)
        return builder

    return add


def _is_rerun(known: Any, link: 'Link') -> bool:
    if not isinstance(known, Link):
        return False
    places = {(f.__module__, f.__qualname__) for f in (known.apply, link.apply)}
    return len(places) == 1 and '<lambda>' not in link.apply.__qualname__


def names() -> tuple[str, ...]:
    """Names that `get` knows."""
    return REGISTRY.names()


@functools.cache  # one Link per function, so that tasks made from the same function are equal
def _from_function(function: Callable) -> 'Link':
    name = getattr(function, '__name__', type(function).__name__)
    return Link(name, lambda key, sparsity, token_dim: {}, lambda _, x_QxD: function(x_QxD))


@functools.cache  # one Link per setting, so that tasks made from the same settings are equal
def _from_builder(builder: Callable[..., 'Link'], name: str, settings: tuple) -> 'Link':
    return dataclasses.replace(builder(**dict(settings)), name=name, settings=settings)


def get(link: 'str | Link | Callable', **settings: Any) -> 'Link':
    """The `Link` of a name; a `Link` passes through, and a plain function x (q, d) → scalar is wrapped.

    Args:
        link: a name, a `Link` or a function.
        **settings: of the named link.

    Raises:
        ValueError: an unknown name or setting.
    """
    if isinstance(link, Link):
        return link
    if callable(link):
        return _from_function(link)
    entry = REGISTRY.get(link)
    kept = {name: value for name, value in settings.items() if value != entry.schema.pick(name, entry.name).default}
    if isinstance(entry.builder, Link):
        return entry.builder
    return _from_builder(entry.builder, entry.name, tuple(sorted(kept.items())))


register(Link('linear', _linear_init, _linear_apply, lambda q, d: 1.0, _linear_two_layer))
register(Link('mean', _mean_init, _mean_apply, lambda q, d: 1.0 / q, _mean_two_layer))
register(Link('sum', _separate_init, _sum_apply, lambda q, d: 1.0, _sum_two_layer))
register(Link('hermite2', _separate_init, _hermite2_apply, lambda q, d: 1.0, _hermite2_two_layer))
register(Link('norm2', _norm2_init, _norm2_apply, lambda q, d: 2.0, _norm2_two_layer))
register(Link('two_layer', _two_layer_init, _two_layer_apply, None, _two_layer_two_layer))
