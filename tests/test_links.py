"""Links: values against plain loops, label variances, and the two-layer ReLU forms of Assumption 2."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import variances
from qstr_jax.tasks import links
from tests.helpers import quick_jit

KEY = jax.random.key(0, impl='threefry2x32')
SIZES = ((1, 10), (3, 4))
EXACT = ('linear', 'mean', 'sum', 'two_layer')


@functools.cache
def setup(name, sparsity, token_dim):
    link = links.get(name)
    return link, quick_jit(lambda: link.init(KEY, sparsity, token_dim))()


def inside(sparsity, token_dim, radius, num_points=2000):
    """Points with every ‖x_j‖ ≤ radius, many of them on the sphere."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_points, sparsity, token_dim))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return (radius * np.minimum(1, rng.uniform(0, 1.5, (num_points, sparsity, 1))) * x).astype(np.float32)


def slow_value(name, params, x_QxD):
    """The link by its formula, token by token."""
    x = np.asarray(x_QxD, np.float64).tolist()
    q, d = len(x), len(x[0])
    dot = lambda u, v: sum(float(a) * float(b) for a, b in zip(u, v, strict=True))  # noqa: E731
    if name == 'linear':
        return dot(params['u_V'], itertools.chain(*x))
    if name == 'mean':
        return sum(dot(params['u_D'], token) for token in x) / q
    if name == 'sum':
        return sum(dot(u, token) for u, token in zip(params['u_QxD'], x, strict=True)) / math.sqrt(q)
    if name == 'hermite2':
        projections = [dot(u, token) for u, token in zip(params['u_QxD'], x, strict=True)]
        return sum((z * z - 1) / math.sqrt(2) for z in projections) / math.sqrt(q)
    if name == 'norm2':
        return sum(dot(token, token) - d for token in x) / math.sqrt(q * d)
    units = zip(params['a_M'], params['W_MxV'], params['b_M'], strict=True)
    return sum(float(a) * max(0.0, dot(w, itertools.chain(*x)) + float(b)) for a, w, b in units)


def test_every_built_in_link_is_covered():
    assert set(links.names()) >= {'linear', 'mean', 'sum', 'hermite2', 'norm2', 'two_layer'}


@pytest.mark.parametrize(('sparsity', 'token_dim'), SIZES)
@pytest.mark.parametrize('name', ['linear', 'mean', 'sum', 'hermite2', 'norm2', 'two_layer'])
def test_value_equals_slow_formula(name, sparsity, token_dim):
    link, params = setup(name, sparsity, token_dim)
    points = inside(sparsity, token_dim, 3.0, num_points=5)
    for x, value in zip(points, quick_jit(jax.vmap(lambda x: link.apply(params, x)))(points), strict=True):
        assert value == pytest.approx(slow_value(name, params, x), abs=1e-5)


@pytest.mark.parametrize(('sparsity', 'token_dim'), SIZES)
@pytest.mark.parametrize('name', ['linear', 'mean', 'sum', 'hermite2', 'norm2'])
def test_variance_and_mean_of_labels(name, sparsity, token_dim):
    link, params = setup(name, sparsity, token_dim)
    x = np.random.default_rng(1).normal(size=(100_000, sparsity, token_dim)).astype(np.float32)
    y = np.asarray(quick_jit(jax.vmap(lambda each: link.apply(params, each)))(x))
    variance = variances.of_link(name, sparsity)
    expected = {'mean': 1 / sparsity, 'norm2': 2.0}.get(name, 1.0)
    assert variance == pytest.approx(expected)
    assert np.mean(y) == pytest.approx(0, abs=5 * math.sqrt(variance / len(y)))
    assert np.var(y) == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize(
    ('name', 'leaf'),
    [('linear', 'u_V'), ('mean', 'u_D'), ('sum', 'u_QxD'), ('hermite2', 'u_QxD'), ('two_layer', 'W_MxV')],
)
def test_directions_are_unit_vectors_without_a_preference(name, leaf):
    keys = jax.random.split(KEY, 2000)
    link = links.get(name)
    u = np.asarray(quick_jit(jax.vmap(lambda key: link.init(key, 2, 3)[leaf]))(keys), np.float64)
    np.testing.assert_allclose(np.linalg.norm(u, axis=-1), 1.0, rtol=1e-5)
    size = u.shape[-1]
    tolerance = 5 / math.sqrt(len(keys))
    flat = u.reshape(len(keys), -1)
    # Second moments: I/size within a vector, 0 between vectors.
    second = flat.T @ flat / len(keys)
    np.testing.assert_allclose(second, np.eye(flat.shape[1]) / size, atol=tolerance)
    np.testing.assert_allclose(flat.mean(0), 0, atol=tolerance)


@pytest.mark.parametrize(('sparsity', 'token_dim'), SIZES)
@pytest.mark.parametrize('name', EXACT)
def test_exact_two_layer_forms(name, sparsity, token_dim):
    link, params = setup(name, sparsity, token_dim)
    net = links.two_layer_form(link, params, sparsity, token_dim, radius=4.0)
    assert net.error == 0
    for x in inside(sparsity, token_dim, 400.0, num_points=20):  # exact beyond the radius too
        expected = slow_value(name, params, x)
        assert net(x) == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_hermite2_form_on_a_dense_grid():
    radius, error = 6.0, 0.1
    link, params = setup('hermite2', 2, 3)
    net = links.two_layer_form(link, params, 2, 3, radius=radius, error=error)
    grid = np.linspace(-radius, radius, 201, dtype=np.float32)
    # x_j = z_j u_j has the projection z_j and the norm |z_j|.
    points = np.stack(
        [
            np.stack([z1 * params['u_QxD'][0], z2 * params['u_QxD'][1]])
            for z1, z2 in itertools.product(grid[::4], grid[::4])
        ]
    )
    difference = np.asarray(quick_jit(jax.vmap(lambda x: net(x) - link.apply(params, x)))(points))
    assert net.error == error
    assert np.max(np.abs(difference)) <= error * (1 + 1e-3)
    assert np.max(difference) >= 0.9 * error
    assert np.min(difference) <= -0.9 * error


@pytest.mark.parametrize(
    ('name', 'sparsity', 'token_dim', 'radius', 'error'),
    [
        ('hermite2', 1, 10, 6.0, 0.1),
        ('hermite2', 4, 10, 6.0, 0.1),
        ('hermite2', 3, 4, 3.3, 0.02),
        ('norm2', 1, 3, 5.0, 0.1),
        ('norm2', 3, 2, 2.9, 0.03),
    ],
)
def test_approximate_forms_keep_their_error_and_nearly_attain_it(name, sparsity, token_dim, radius, error):
    link, params = setup(name, sparsity, token_dim)
    net = links.two_layer_form(link, params, sparsity, token_dim, radius=radius, error=error)
    points = np.concatenate(
        [
            inside(sparsity, token_dim, radius),
            np.zeros((1, sparsity, token_dim), np.float32),  # all projections on a knot
            _half_way(name, params, sparsity, token_dim, net),
        ]
    )
    difference = np.asarray(quick_jit(jax.vmap(lambda x: net(x) - link.apply(params, x)))(points))
    assert net.error == error
    assert np.max(np.abs(difference)) <= error + 2e-4  # float32 at values of about 50
    assert np.max(difference) >= 0.9 * error
    assert np.min(difference) <= -0.9 * error


def _half_way(name, params, sparsity, token_dim, net):
    """The point whose projections all lie half-way between the first two knots."""
    biases = np.asarray(net.b_M)
    half_step = np.min(np.abs(biases[(biases < 0)])) / 2
    directions = params['u_QxD'] if name == 'hermite2' else np.ones((sparsity, token_dim))
    return half_step * np.asarray(directions, np.float32)[None]


def test_form_fails_far_outside_its_radius():
    link, params = setup('hermite2', 1, 10)
    net = links.two_layer_form(link, params, 1, 10, radius=2.0, error=0.1)
    far = 10.0 * params['u_QxD']
    assert abs(net(far) - link.apply(params, far)) > 1


@pytest.mark.parametrize(('sparsity', 'units'), [(1, 13), (2, 29), (4, 65)])
def test_units_of_hermite2(sparsity, units):
    link, params = setup('hermite2', sparsity, 10)
    net = links.two_layer_form(link, params, sparsity, 10, radius=6.0, error=0.1)
    assert net.a_M.shape == net.b_M.shape == (units,)
    assert net.W_MxV.shape == (units, sparsity * 10)
    step = math.sqrt(8 * math.sqrt(2) * 0.1 / math.sqrt(sparsity))
    assert units == 2 * sparsity * math.ceil(6.0 / step) + 1


@pytest.mark.parametrize('name', ['linear', 'mean', 'sum'])
def test_linear_links_need_two_units(name):
    link, params = setup(name, 3, 4)
    net = links.two_layer_form(link, params, 3, 4, radius=1.0)
    assert (net.a_M.shape, net.W_MxV.shape, net.b_M.shape) == ((2,), (2, 12), (2,))


def test_unknown_name():
    with pytest.raises(ValueError, match=r"^link='quadratic': unknown, one of linear, mean, [^\n]*two_layer[^\n]*$"):
        links.get('quadratic')


def first_coordinate(x_QxD):
    return x_QxD[0, 0]


def test_own_function_becomes_a_link():
    link = links.get(first_coordinate)
    assert link.name == 'first_coordinate'
    assert link.apply(link.init(KEY, 2, 3), jnp.arange(6.0).reshape(2, 3) + 5) == 5
    assert links.get(first_coordinate) == link


def test_own_callable_without_a_name():
    class Scaled:
        def __call__(self, x_QxD):
            return 2 * x_QxD[0, 0]

    link = links.get(Scaled())
    assert link.name == 'Scaled'
    assert link.apply({}, jnp.ones((2, 3))) == 2


def test_own_link_passes_through():
    link = links.Link('own', lambda key, q, d: {}, lambda params, x_QxD: x_QxD[0, 0])
    assert links.get(link) is link


@pytest.mark.parametrize('bad', [None, 3, ['linear']])
def test_what_is_no_link_is_an_error_in_one_line(bad):
    with pytest.raises(ValueError, match=r'^link=[^\n]*: unknown[^\n]* one of linear[^\n]*$'):
        links.get(bad)


def test_no_two_layer_form():
    link = links.get(first_coordinate)
    with pytest.raises(ValueError, match=r"^link 'first_coordinate' has no two-layer form[^\n]*$"):
        links.two_layer_form(link, {}, 2, 3, radius=1.0)


@pytest.mark.parametrize(('radius', 'error'), [(0, 0.1), (-1.0, 0.1), (1.0, 0), (1.0, -0.1), (math.nan, 0.1)])
def test_radius_and_error_must_be_positive(radius, error):
    link, params = setup('hermite2', 1, 10)
    with pytest.raises(ValueError, match=r'^radius=[^\n]*error=[^\n]*positive$'):
        links.two_layer_form(link, params, 1, 10, radius=radius, error=error)


@pytest.mark.usefixtures('own_entries')
def test_register():
    link = links.Link('own', lambda key, q, d: {}, lambda params, x_QxD: x_QxD[0, 0])
    assert links.register(link) is link
    assert links.get('own') is link
    assert 'own' in links.names()
    links.register(link)  # again is fine
    clash = links.Link('own', lambda key, q, d: {}, lambda params, x_QxD: x_QxD[0, 1])
    with pytest.raises(ValueError, match=r"^link 'own' exists already, as a link: choose another name$"):
        links.register(clash)
    assert links.get('own') is link
