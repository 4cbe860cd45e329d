"""The cost of a cell before it runs: parameters and floating-point operations, counted on the traced program."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from qstr_jax import models
from qstr_jax.learners import held_out
from qstr_jax.learners.problem import Problem

_ARITHMETIC = frozenset((
    'add', 'sub', 'mul', 'div', 'neg', 'abs', 'max', 'min', 'exp', 'exp2', 'log', 'log1p', 'expm1', 'sin', 'cos',
    'tanh', 'logistic', 'erf', 'sqrt', 'rsqrt', 'square', 'integer_pow', 'pow',
))  # fmt: skip
_REDUCTIONS = frozenset(('reduce_sum', 'reduce_max', 'reduce_min', 'cumsum', 'cumprod', 'cummax', 'cumlogsumexp'))


def num_parameters(problem: Problem) -> int:
    """Number of trained parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(held_out.abstract_params(problem.module, problem.task)))


@functools.lru_cache(maxsize=64)
def prediction_flops(problem: Problem) -> int:
    """Floating-point operations of one prompt's predictions."""
    task = problem.task
    z_NxE = jax.ShapeDtypeStruct((task.seq_len, task.embedding_dim), jnp.float32)
    params = held_out.abstract_params(problem.module, task)
    jaxpr = jax.make_jaxpr(lambda p, z: models.predict(problem.module, p, z))(params, z_NxE)
    return _flops(jaxpr.jaxpr)


def training_flops(problem: Problem, num_samples: int) -> int:
    """Floating-point operations of training: one forward pass, and twice as many for the backward pass."""
    return 3 * num_samples * prediction_flops(problem)


def budget_flops(problem: Problem) -> int:
    """Floating-point operations of a lane that uses its whole budget."""
    return training_flops(problem, problem.learner.most_examples())


def _flops(jaxpr: Any) -> int:
    """Operations of a traced program, those of a scan once for each step, where the compiler counts a step once."""
    total = 0
    for equation in jaxpr.eqns:
        total += _flops_of(equation)
        repeats = equation.params.get('length', 1) if equation.primitive.name == 'scan' else 1
        for name in 'jaxpr', 'call_jaxpr':
            inner_jaxpr = equation.params.get(name)
            if inner_jaxpr is not None:
                total += repeats * _flops(getattr(inner_jaxpr, 'jaxpr', inner_jaxpr))
    return total


def _flops_of(equation: Any) -> int:
    """Operations of one equation: one for each element that arithmetic makes or that a reduction reads."""
    name, made = equation.primitive.name, math.prod(equation.outvars[0].aval.shape)
    read = math.prod(equation.invars[0].aval.shape) if equation.invars else 0
    if name == 'dot_general':
        (contracted, _), _ = equation.params['dimension_numbers']
        return 2 * made * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
    if name == 'conv_general_dilated':
        return 2 * made * math.prod(equation.invars[1].aval.shape[1:])
    if name == 'fft':
        return round(5 * read * math.log2(max(2, math.prod(equation.params['fft_lengths']))))
    if name in _REDUCTIONS:
        return read
    return made if name in _ARITHMETIC else 0
