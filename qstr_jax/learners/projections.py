"""Projections onto norm balls, and the constraint sets of parameter trees that are made of them.

    l2          {‖vec Θ‖₂ ≤ R}                             the whole tree (Section 2 of arXiv:2503.11272)
    frobenius   {‖W‖_F ≤ R}                                per matrix
    two_one     {‖W‖_{2,1} = Σ_columns ‖w_·b‖₂ ≤ R}        per matrix
    operator    {‖W‖_op ≤ R}                               per matrix

A matrix is the last two axes of a leaf: heads and directions are projected one by one.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import optax

from qstr_jax import decompositions

# Divisors are norms, but at least this.
TINY = 1e-30


def frobenius(w_AxB: jax.Array, radius: Any) -> jax.Array:
    """argmin_V ‖V − W‖_F s.t. ‖V‖_F ≤ R: W min(1, R/‖W‖_F)."""
    norm = jnp.linalg.norm(w_AxB)
    return w_AxB * jnp.minimum(1.0, radius / jnp.maximum(norm, TINY))


def operator(w_AxB: jax.Array, radius: Any) -> jax.Array:
    """argmin_V ‖V − W‖_F s.t. ‖V‖_op ≤ R: singular values above R become R."""
    u_AxR, sizes_R, v_RxB = decompositions.svd(w_AxB)
    cut_AxB = (u_AxR * jnp.minimum(sizes_R, radius)[None, :]) @ v_RxB
    return jnp.where(sizes_R[0] <= radius, w_AxB, cut_AxB)


def two_one(w_AxB: jax.Array, radius: Any) -> jax.Array:
    """argmin_V ‖V − W‖_F s.t. ‖V‖_{2,1} ≤ R: the norms of the columns are projected onto the l1 ball."""
    norms_B = jnp.linalg.norm(w_AxB, axis=0)
    shrunk_B = optax.projections.projection_l1_ball(norms_B, radius)
    cut_AxB = w_AxB * (shrunk_B / jnp.maximum(norms_B, TINY))[None, :]
    return jnp.where(jnp.sum(norms_B) <= radius, w_AxB, cut_AxB)


SETS = {'frobenius': frobenius, 'two_one': two_one, 'operator': operator}


def l2(tree: Any, radius: Any) -> Any:
    """The whole tree, scaled to ‖vec Θ‖₂ ≤ R if it is longer."""
    norm = optax.tree.norm(tree)
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, radius / jnp.maximum(norm, TINY)), tree)


@functools.cache
def parse(constraint: str) -> tuple[tuple[str, str, float], ...]:
    """The sets of a constraint: 'l2' → (), 'PATH:SET:RADIUS+…' → ((path, name, radius), …).

    PATH is that of a leaf, such as 'attention/qk_HxExE'. RADIUS is multiplied by the lane's radius. Commas would make
    an axis of a sweep.
    """
    if constraint == 'l2':
        return ()
    parts: list[tuple[str, str, float]] = []
    for text in constraint.split('+'):
        fields = text.strip().split(':')
        if len(fields) != 3 or fields[1] not in SETS:
            raise ValueError(
                f"constraint={text.strip()!r}: must be 'l2', or PATH:SET:RADIUS with SET one of {', '.join(SETS)}"
            )
        try:
            radius = float(fields[2])
        except ValueError:
            radius = 0.0
        if not 0 < radius < math.inf:
            raise ValueError(f'constraint={text.strip()!r}: the radius must be a positive number')
        if fields[0] in (path for path, _, _ in parts):
            raise ValueError(f'constraint={text.strip()!r}: {fields[0]} is given twice; a matrix has one set')
        parts.append((fields[0], fields[1], radius))
    return tuple(parts)


def leaf_path(path: tuple[Any, ...]) -> str:
    """The name of a leaf, such as 'attention/qk_HxExE'; the outer 'params' is left out."""
    names = [str(key.key) for key in path]
    return '/'.join(names[1:] if names[0] == 'params' else names)


def check(constraint: str, params: Any) -> None:
    """Raises ValueError when a constraint names a leaf that does not exist or is not a matrix."""
    leaves = {leaf_path(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}
    for path, name, _ in parse(constraint):
        if path not in leaves or len(leaves[path].shape) < 2:
            matrices = ', '.join(p for p, leaf in leaves.items() if len(leaf.shape) >= 2)
            raise ValueError(f'constraint={path}:{name}: no such matrix; the model has {matrices}')


def project(tree: Any, constraint: str, radius: Any) -> Any:
    """The projection of parameters onto their constraint set."""
    sets = parse(constraint)
    if not sets:
        return l2(tree, radius)

    def project_leaf(path: tuple[Any, ...], leaf: jax.Array) -> jax.Array:
        for name, set_name, factor in sets:
            if leaf_path(path) == name:
                matrices = leaf.reshape(-1, *leaf.shape[-2:])
                onto = functools.partial(SETS[set_name], radius=factor * radius)
                leaf = jax.vmap(onto)(matrices).reshape(leaf.shape)
        return leaf

    return jax.tree_util.tree_map_with_path(project_leaf, tree)
