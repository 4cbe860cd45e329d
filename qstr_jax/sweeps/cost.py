"""What a cell costs, before it runs: parameters and multiply-adds, counted on the traced program."""

import math

import jax
import jax.numpy as jnp

from qstr_jax import models
from qstr_jax.learners import online


def abstract_params(problem):
    """Shapes of a model's parameters; nothing is computed."""
    task = problem.task
    z_NxE = jax.ShapeDtypeStruct((task.seq_len, task.embedding_dim), jnp.float32)
    variables = jax.eval_shape(problem.module.init, jax.random.key(0), z_NxE)
    return {'params': variables.get('params', {})}


def num_parameters(problem):
    """Number of trained numbers."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(abstract_params(problem)))


def prediction_flops(problem):
    """Floating-point operations of the matrix products of one prompt's predictions."""
    task = problem.task
    z_NxE = jax.ShapeDtypeStruct((task.seq_len, task.embedding_dim), jnp.float32)
    jaxpr = jax.make_jaxpr(lambda p, z: models.predict(problem.module, p, z))(abstract_params(problem), z_NxE)
    return _dot_flops(jaxpr.jaxpr)


def most_examples(problem):
    """Examples that a lane trains on at most, with repetition."""
    learner = problem.learner
    if isinstance(learner, online.Online):
        return learner.max_samples
    return learner.max_checks * learner.check_every * (learner.batch_size or learner.max_samples)


def training_flops(problem, num_samples):
    """Operations of training on `num_samples` prompts: forward once, backward twice as much."""
    return 3 * num_samples * prediction_flops(problem)


def _dot_flops(jaxpr):
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
