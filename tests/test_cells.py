"""Cells and lanes of a sweep."""

import jax
import jax.numpy as jnp
import pytest

from qstr_jax import columns, models, sweeps
from qstr_jax.learners import held_out
from qstr_jax.sweeps import cells, cost
from qstr_jax.tasks import links
from tests import small


def test_cells_are_the_product_of_static_axes():
    cells = sweeps.cells_of(small.settings(seq_lens=(2, 3), sparsity=(1, 2)))
    points = [(c.model, c.problem.task.seq_len, c.problem.task.sparsity) for c in cells]
    assert len(set(points)) == len(points) == 3 * 2 * 2
    assert len({c.id for c in cells}) == len(cells)


def test_lanes_are_the_product_of_traced_axes():
    rates = {'learning_rate': (1e-3, 1e-2), 'weight_decay': (0.0, 0.1)}
    (cell,) = sweeps.cells_of(small.settings(models='ffn', num_seeds=3, **rates))
    lanes = cell.lanes
    assert len(set(lanes)) == 12
    assert {lane.task_seed for lane in lanes} == {0}
    own = sweeps.cells_of(small.settings(num_seeds=3, task_per_lane=True))[0].lanes
    assert [lane.task_seed for lane in own] == [lane.seed for lane in own] == [0, 1, 2]


def test_a_cell_is_known_by_what_changes_its_program():
    before = small.cell('ffn')
    assert small.cell('ffn').id == before.id
    assert small.cell('ffn', num_seeds=7, **{'rnn.width': 99}).id == before.id
    # What a setting is by default changes nothing, whoever says it.
    for changes in (
        {'encoding_dim': 5},
        {'model.initializer': 'pytorch'},
        {'risk': 'averaged'},
        {'optimizer': 'adamw'},
    ):
        assert small.cell('ffn', **changes).id == before.id
    for changes in ({'ffn.widths': (8,)}, {'threshold': 0.5}, {'batch_size': 8}, {'link': 'sum'}, {'preset': 'paper'}):
        assert small.cell('ffn', **changes).id != before.id


def test_what_a_learner_traces_makes_lanes_and_all_else_cells():
    sweep = small.settings(models='ffn', learning_rate=(1e-3, 1e-2), batch_size=(8, 16))
    cells = sweeps.cells_of(sweep)
    assert len(cells) == 2
    assert all(len(cell.lanes) == 2 * 2 for cell in cells)
    sgd = sweeps.cells_of(small.settings(models='ffn', optimizer='sgd'))[0]
    assert sgd.lanes[0]._fields == ('seed', 'task_seed', 'learning_rate', 'stop_after')


@pytest.mark.parametrize('optimizer', ['adamw', 'sgd', 'adam', 'lion', 'muon'])
def test_online_training_takes_optimisers_by_name(optimizer):
    problem = small.cell('ffn', optimizer=optimizer).problem
    lane = small.cell('ffn', optimizer=optimizer).lanes[0]
    params = {'w': jnp.ones((4, 3))}
    transform = problem.learner.transform(lane)
    updates, _ = transform.update({'w': jnp.full((4, 3), 0.1)}, transform.init(params), params)
    assert float(jnp.abs(updates['w']).max()) > 0


def test_published_sizes():
    """Widths of the paper's published code: q heads and 100, GRU of 500 q, FFN of N d q and 1000."""
    cells = {c.model: c.problem.module for c in sweeps.cells_of(sweeps.Sweep(seq_lens=(6,), sparsity=(2,), link='sum'))}
    assert (cells['transformer'].num_heads, cells['transformer'].mlp_width) == (2, 100)
    assert (cells['rnn'].width, cells['rnn'].cell, cells['rnn'].states) == (1000, 'gru', 'inclusive')
    assert cells['ffn'].widths == (6 * 10 * 2, 1000)
    assert sweeps.cells_of(sweeps.Sweep(seq_lens=(6,)))[0].problem.task.encoding_dim == 8


@pytest.mark.parametrize(
    ('changes', 'word'),
    [
        ({'seq_lens': (1,)}, 'seq_len'),
        ({'sparsity': (4,)}, 'sparsity'),
        ({'models': ('transformr',)}, 'transformer, rnn, ffn'),
        ({'link': 'cubic'}, 'hermite2'),
        ({'transformer.num_heads': 0}, 'num_heads'),
        ({'encoding_dim': 1}, 'encoding_dim'),
        ({'rnn.cell': 'vanilla'}, 'gru'),
        ({'task': '1str'}, 'simple_qstr'),
        ({'test_task': '1str'}, 'test_task'),
        ({'ffn.widths': (0,)}, 'ffn.widths'),
        ({'rnn.radius': 1.0}, 'deep'),
    ],
)
def test_impossible_cells_are_refused_before_anything_runs(changes, word):
    with pytest.raises(ValueError, match=word) as caught:
        sweeps.cells_of(small.settings(**changes))
    assert '\n' not in str(caught.value)


def test_operations_of_a_prediction_are_counted():
    """FFN by hand, with biases and ReLUs; a GRU's scan counts once per token."""
    task = small.cell('ffn').problem.task
    flat = task.seq_len * task.embedding_dim
    products = 2 * (flat * 16 + 16 * 16 + 16 * task.seq_len)
    assert cost.prediction_flops(small.cell('ffn').problem) == products + (16 + 16 + task.seq_len) + (16 + 16)
    rnn = small.cell('rnn').problem
    per_token = 2 * 2 * (task.embedding_dim * 3 * 8 + 8 * 3 * 8) + 2 * 16
    assert task.seq_len * per_token < cost.prediction_flops(rnn) < 1.5 * task.seq_len * per_token
    assert cost.num_parameters(rnn) == 2 * (task.embedding_dim * 24 + 8 * 24 + 48) + 17


@pytest.mark.parametrize('model', ['transformer', 'attention', 'mlp_mixer', 'gla', 'min_gru', 's5'])
def test_operations_are_those_that_the_compiler_counts_where_nothing_is_repeated(model):
    problem = small.cell(model, seq_lens=16).problem
    z_NxE = jax.ShapeDtypeStruct((16, problem.task.embedding_dim), jnp.float32)
    params = held_out.abstract_params(problem.module, problem.task)
    found = jax.jit(lambda p, z: models.predict(problem.module, p, z)).lower(params, z_NxE).cost_analysis()
    assert cost.prediction_flops(problem) == pytest.approx(found['flops'] + found['transcendentals'], rel=0.1)


def test_two_points_of_one_id_are_an_error():
    with pytest.raises(ValueError, match=r'batch_size, learner[.]check_every: two points have the id'):
        sweeps.cells_of(sweeps.Sweep('ffn', seq_lens=4, batch_size=(76, 272), check_every=(286, 37)))


def test_axes_of_a_link_count_among_the_cells(monkeypatch, own_entries):
    monkeypatch.setattr(columns, '_TABLE', dict(columns._TABLE))

    @links.register('scaled')
    def scaled(own: float = 1.0):
        return links.get('linear')

    monkeypatch.setattr(cells, 'MOST_CELLS', 4)
    sweep = small.settings(models='ffn', link=('linear', 'scaled'), **{'scaled.own': (1.0, 2.0, 3.0, 4.0)})
    with pytest.raises(ValueError, match='the axes make 5 cells: at most 4 in one sweep'):
        sweeps.cells_of(sweep)
