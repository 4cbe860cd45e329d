"""Prompts and parameters follow from keys; what NumPy or Python draws while code is traced is refused beforehand."""

import dataclasses
import random

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import models, sweeps, tasks
from qstr_jax.sweeps import outputs
from qstr_jax.tasks import shapes
from tests import small

RNG = np.random.default_rng(0)


def check(**changes):
    outputs.check(sweeps.cells_of(small.settings(**{'models': 'ffn', **changes})), {})


def legacy(key, seq_len, token_dim):
    return jnp.asarray(np.random.normal(size=(seq_len, token_dim)), jnp.float32)  # noqa: NPY002


def seeded_every_time(key, seq_len, token_dim):
    np.random.seed(0)  # noqa: NPY002
    return legacy(key, seq_len, token_dim)


def fresh(key, seq_len, token_dim):
    return jnp.asarray(np.random.default_rng().normal(size=(seq_len, token_dim)), jnp.float32)


def of_a_generator(key, seq_len, token_dim):
    return jnp.asarray(RNG.normal(size=(seq_len, token_dim)), jnp.float32)


def of_python(key, seq_len, token_dim):
    return jnp.full((seq_len, token_dim), random.random())


def constant(key, seq_len, token_dim):
    return jnp.asarray(np.random.default_rng(0).normal(size=(seq_len, token_dim)), jnp.float32)


def first(key, seq_len, sparsity):
    return jnp.zeros((seq_len, sparsity), jnp.int32)


@pytest.mark.parametrize('tokens', [legacy, seeded_every_time, fresh, of_a_generator, of_python])
def test_random_numbers_that_tracing_freezes_are_refused(tokens):
    with pytest.raises(ValueError, match=r"task='qstr'.*tracing freezes.*jax.random from the key"):
        check(tokens=tokens)


def test_so_are_those_of_a_link():
    with pytest.raises(ValueError, match='tracing freezes'):
        check(link=lambda x_QxD: x_QxD[0, 0] * random.random())


def test_a_part_of_a_prompt_may_be_constant_but_not_all_of_it():
    check(tokens=constant)
    check(indices=first)
    with pytest.raises(ValueError, match=r"task='qstr'.*every prompt is the same"):
        check(tokens=constant, indices=first)


def from_one(key, seq_len, sparsity):
    return 1 + jax.random.randint(key, (seq_len, sparsity), 0, seq_len)


def before_the_first(key, seq_len, sparsity):
    return from_one(key, seq_len, sparsity) - 2


def within(key, seq_len, sparsity):
    return from_one(key, seq_len, sparsity) - 1


@pytest.mark.parametrize('task', ['qstr', 'simple_qstr'])
def test_indices_of_tokens_that_are_not_there_are_refused_before_any_work(task, tmp_path):
    for indices, found in (from_one, r'1\.\.3'), (before_the_first, r'-1\.\.1'):
        with pytest.raises(ValueError, match=rf'indices must lie in 0\.\.2 \(0\.\.N−1\), not in {found}'):
            sweeps.run(small.settings(models='ffn', task=task, indices=indices), tmp_path / 'results', small.quiet())
    assert not (tmp_path / 'results').exists()
    outputs.check_draws(sweeps.cells_of(small.settings(models='ffn', task=task, indices=within)))


@dataclasses.dataclass(frozen=True)
class Odd(tasks.ModularSum):
    """Prompts with a part that others give."""

    part: str = 'y_N'
    value: tuple[float, ...] = (0, 1, 1)

    def sample(self, key, link_params):
        prompt = super().sample(key, link_params)
        kind = jnp.float32 if self.part == 'weights_N' else jnp.int32
        value = jnp.asarray(self.value, kind)
        return prompt._replace(**{self.part: value if self.part != 'length' else value[0]})


@pytest.mark.parametrize(
    ('part', 'right', 'wrong', 'says'),
    [
        ('y_N', (0, 1, 1), (0, -1, 1), r'classes must lie in 0\.\.1 \(0\.\.C−1\), not in -1\.\.1; .* weight 0'),
        ('y_N', (0, 1, 1), (0, 7, 1), r'classes must lie in 0\.\.1 .*, not in 0\.\.7'),
        ('weights_N', (0, 2, 1), (-1, 2, 1), r'weights must lie in 0\.\.inf, not in -1'),
        ('length', (3, 0, 0), (4, 0, 0), r'lengths must lie in 1\.\.3 \(1\.\.N\), not in 4\.\.4'),
    ],
)
def test_so_are_classes_weights_and_lengths_that_no_prompt_has(part, right, wrong, says):
    shapes.check_prompts(Odd(seq_len=3, part=part, value=right))
    with pytest.raises(ValueError, match=says):
        shapes.check_prompts(Odd(seq_len=3, part=part, value=wrong))


class Drawn(nn.Module):
    how: str

    @nn.compact
    def __call__(self, z_NxE):
        def draw(key, shape, dtype=jnp.float32):
            if self.how == 'key':
                return jax.random.normal(key, shape, dtype)
            rng = {'legacy': np.random, 'fresh': np.random.default_rng(), 'fixed': np.random.default_rng(0)}[self.how]
            return jnp.asarray(rng.normal(size=shape), dtype)

        return nn.Dense(1, kernel_init=draw)(z_NxE)[:, 0]


def test_so_are_parameters_and_what_a_builder_draws():
    @models.register('drawn')
    def drawn(task, how: str = 'key', builds: bool = False):
        return Drawn(how) if not builds else Drawn(('key', 'fixed')[random.getrandbits(1)])

    for how in 'legacy', 'fresh':
        with pytest.raises(ValueError, match=r"models='drawn'.*tracing freezes"):
            check(models='drawn', drawn={'how': how})
    with pytest.raises(ValueError, match=r"models='drawn'.*tracing freezes"):
        check(models='drawn', drawn={'builds': True})
    for how in 'key', 'fixed':
        check(models='drawn', drawn={'how': how})
