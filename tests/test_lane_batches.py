"""Lane batches, and shares of the cells."""

import pytest

from qstr_jax import sweeps
from qstr_jax.sweeps import cost, lane_batches
from tests import small


@pytest.fixture(scope='module')
def cells():
    return sweeps.cells_of(small.settings(models=('transformer', 'ffn'), seq_lens=(2, 3, 4, 5), num_seeds=5))


def test_batches_cover_every_lane_once(cells):
    batches = lane_batches.cut(cells, lambda cell: 2)
    assert [len(batch.lanes) for batch in batches[:3]] == [2, 2, 1]
    assert len({batch.name for batch in batches}) == len(batches) == 3 * len(cells)
    assert sorted((batch.cell.id, lane) for batch in batches for lane in batch.lanes) == sorted(
        (cell.id, lane) for cell in cells for lane in cell.lanes
    )


@pytest.mark.parametrize('count', [1, 2, 3, 5, 8, 11])
def test_shares_are_a_partition_in_order(cells, count):
    shares = [lane_batches.share(cells, index, count) for index in range(count)]
    assert sorted(cell.id for share in shares for cell in share) == sorted(cell.id for cell in cells)
    for share in shares:
        assert list(share) == [cell for cell in cells if cell in share]


@pytest.mark.parametrize('count', [2, 3])
def test_shares_are_about_equal_in_work(cells, count):
    def load(cell):
        return cost.prediction_flops(cell.problem) * cell.problem.task.seq_len

    loads = [sum(map(load, lane_batches.share(cells, index, count))) for index in range(count)]
    # The greedy rule's bound: apart by no more than the largest piece.
    assert max(loads) - min(loads) <= max(map(load, cells))


def test_the_largest_cell_is_given_away_first(cells, monkeypatch):
    monkeypatch.setattr(lane_batches, 'work', lambda cell: 4.0 if cell is cells[-1] else 1.0)
    assert sorted(len(lane_batches.share(cells[-5:], index, 2)) for index in range(2)) == [1, 4]
