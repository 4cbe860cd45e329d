"""Theorem 6's oracle as a baseline, and budgets in units of the constructions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import models, sweeps, tasks
from qstr_jax.learners import constrained
from qstr_jax.theory import construction_norm, constructions, floors, oracles
from tests import helpers, small

SETTINGS = {
    'models': 'theorem6_oracle', 'learners': 'stationary', 'task': 'simple_qstr', 'test_task': 'simple_qstr',
    'seq_lens': 4, 'token_dim': 3, 'num_samples': (2, 6, 12, 20), 'probes': 'theorem6_floor', 'test_samples': 2000,
    'validation_samples': 10, 'task_per_lane': True,
    **dict.fromkeys(('batch_size', 'check_every', 'max_samples', 'learning_rate')),
}  # fmt: skip


@pytest.mark.slow
def test_the_oracle_attains_the_floor_of_its_draw(tmp_path):
    """The floor recomputed by `floors.theorem6_given` from the streams; the loss within its standard error."""
    settings = small.settings(**SETTINGS)
    rows = sweeps.run(settings, tmp_path, small.quiet())
    task = sweeps.cells_of(settings)[0].problem.task
    for _, row in rows.iterrows():
        drawn = helpers.draw(tasks.task_key(row['task_seed'], task), task)
        key = tasks.streams.stream_key(row['seed'], 'train', task)
        prompts = helpers.examples(key, jnp.arange(row['num_samples']), task, drawn.link)
        floor = float(floors.theorem6_given(prompts.x_NxD, drawn.link['u_V']))
        assert row['theorem6_floor'] == pytest.approx(floor, abs=1e-5)
        assert abs(row['test_loss'] - floor) <= 4 * row['test_loss_se'] + 1e-6
    assert rows.loc[rows['num_samples'] >= 12, 'test_loss'].max() < 1e-6


def test_the_oracle_answers_at_one_position():
    module = oracles.Theorem6Oracle(4, 3)
    task = tasks.build('qstr', seq_len=4, sparsity=1, token_dim=3, encoding_dim=5)
    drawn = helpers.draw(tasks.task_key(0, task), task)
    z_NxE = tasks.encode(tasks.sample(jax.random.key(0), task, drawn.link), task, drawn)
    params = {'params': {'target_NxV': jnp.arange(48.0).reshape(4, 12)}}
    predict = helpers.quick_jit(functools.partial(models.predict, module, params))
    assert [predict(z_NxE, i) for i in range(4)] == pytest.approx(predict(z_NxE).tolist())


@pytest.mark.parametrize(
    'changes',
    [
        {'link': 'hermite2'},
        {'sparsity': 2, 'link': 'sum'},
        {'task': 'hops', 'test_task': 'hops'},
        {'task': 'latent_index', 'test_task': 'latent_index'},
    ],
)
def test_other_tasks_have_no_such_oracle(changes):
    with pytest.raises(ValueError, match='Theorem 6'):
        sweeps.cells_of(small.settings(**{**SETTINGS, **changes}))


def test_the_unit_of_a_transformer_is_the_norm_of_its_construction():
    changes = {
        'models': 'transformer', 'learners': 'constrained', 'num_samples': 8, 'radius_unit': 'construction',
        'transformer.attention': 'merged', 'max_samples': None, 'encoding_dim': 40, 'max_coherence': 0.5,
        'token_dim': 10, 'seq_lens': 4,
    }  # fmt: skip
    (cell,) = sweeps.cells_of(small.settings(**changes))
    task = cell.problem.task
    radius = np.sqrt(23.209)  # 99 % quantile of χ² with 10 degrees of freedom
    drawn = helpers.draw(tasks.task_key(5, task), task)
    built = constructions.transformer(task, drawn, radius, construction_norm.ERROR, coherence=0.5)
    assert cell.problem.learner.unit_norm == pytest.approx(built.norms['param_norm'], rel=1e-3)
    assert constrained.norm_of_unit('construction', small.cell('ffn').problem.module, task) == 1.0
    deep = small.cell('rnn', **{'rnn.cell': 'deep'}, **{'rnn.states': 'exclusive'}, task='simple_qstr', encoding_dim=8)
    assert constrained.norm_of_unit('construction', deep.problem.module, deep.problem.task) > 1
