"""The cost of a cell before it runs: parameters and floating-point operations, counted on the traced program."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import models
from qstr_jax.learners import held_out
from qstr_jax.learners.problem import Problem


def num_parameters(problem: Problem) -> int:
    """Number of trained parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(held_out.abstract_params(problem.module, problem.task)))


@functools.lru_cache(maxsize=64)
def prediction_flops(problem: Problem) -> int:
    """Floating-point operations of the matrix products of one prompt's predictions."""
    task = problem.task
    z_NxE = jax.ShapeDtypeStruct((task.seq_len, task.embedding_dim), jnp.float32)
    params = held_out.abstract_params(problem.module, task)
    jaxpr = jax.make_jaxpr(lambda p, z: models.predict(problem.module, p, z))(params, z_NxE)
    return _dot_flops(jaxpr.jaxpr)


def training_flops(problem: Problem, num_samples: int) -> int:
    """Floating-point operations of training: one forward pass, and twice as many for the backward pass."""
    return 3 * num_samples * prediction_flops(problem)


def _dot_flops(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == 'dot_general':
            (contracted, _), _ = equation.params['dimension_numbers']
            shape = equation.invars[0].aval.shape
            inner = math.prod(shape[axis] for axis in contracted)
            total += 2 * inner * math.prod(equation.outvars[0].aval.shape)
        repeats = equation.params.get('length', 1) if equation.primitive.name == 'scan' else 1
        for name in 'jaxpr', 'call_jaxpr':
            inner_jaxpr = equation.params.get(name)
            if inner_jaxpr is not None:
                total += repeats * _dot_flops(getattr(inner_jaxpr, 'jaxpr', inner_jaxpr))
    return total
