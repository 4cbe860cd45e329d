"""Networks that are told a part of the construction: the part stays, and the rest is trained."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import learners, models, tasks
from qstr_jax.learners import starts
from qstr_jax.learners.problem import Problem
from qstr_jax.theory import partly_given
from tests import helpers


@pytest.fixture(scope='module')
def place():
    """A lane of a small task with a plain Transformer."""
    task = tasks.build('qstr', seq_len=3, sparsity=1, token_dim=2, link='linear', encoding_dim=4)
    module = models.Transformer(num_heads=1, mlp_width=4, attention='merged')
    problem = Problem(task=task, test_task=task, module=module, learner=learners.AdamW())
    return starts.StartContext(
        tasks.streams.stream_key(0, 'init', task), problem, helpers.draw(tasks.task_key(0, task), task)
    )


def told(place, part):
    """A module that is told a part, and its first parameters."""
    module = models.build('partly_given', place.problem.task, part=part, mlp_width=4)
    return module, started('given', place._replace(problem=dataclasses.replace(place.problem, module=module)))


def started(start, place):
    """The first parameters of a start, made by one program."""
    make = helpers.quick_jit(lambda key, drawn: starts.params(start, place._replace(key=key, task_draw=drawn)))
    return make(place.key, place.task_draw)


@pytest.mark.parametrize('part', list(partly_given.PARTS))
def test_a_given_part_is_the_constructions_and_is_not_trained(place, part):
    module, params = told(place, part)
    built = started('construction', place)
    z_NxE = jax.random.normal(jax.random.key(0), (3, place.problem.task.embedding_dim))
    slopes = helpers.quick_jit(jax.grad(lambda p: jnp.sum(models.predict(module, p, z_NxE, 1) ** 2)))(params)['params']
    kept = {'attention': {'attention'}, 'link': {'hidden', 'out'}}.get(part, set())
    for name in slopes:
        assert (helpers.norm(slopes[name]) == 0) == (name in kept), name
        is_built = all(
            np.array_equal(one, other)
            for one, other in zip(
                jax.tree.leaves(params['params'][name]), jax.tree.leaves(built['params'][name]), strict=True
            )
        )
        assert is_built == (name in kept)


def test_padding_is_not_read(place):
    module, params = told(place, 'nothing')
    z_NxE = jax.random.normal(jax.random.key(0), (3, place.problem.task.embedding_dim))
    longer = z_NxE.at[2].set(5.0)
    one, other = (models.predict(module, params, z, length=jnp.int32(2))[:2] for z in (z_NxE, longer))
    np.testing.assert_array_equal(one, other)


def test_what_has_no_part_is_named(place):
    with pytest.raises(ValueError, match='needs the model partly_given, not Transformer'):
        starts.params('given', place)
    with pytest.raises(ValueError, match=r'partly_given\.part'):
        models.build('partly_given', place.problem.task, part='all')
