"""How long a sweep will take: bounds from timed steps, and the pace of lanes that are there."""

import math

import jax
import pytest

from qstr_jax import sweeps
from qstr_jax.storage import files, lane_keys
from qstr_jax.sweeps import cost, monitor, pace
from tests import helpers, small, stored


@pytest.fixture
def timed(monkeypatch):
    """Steps of a second, and the cells that were timed."""
    seen = []

    def seconds(problem, num_lanes):
        seen.append(problem.task.seq_len)
        return helpers.second(problem, num_lanes)

    monkeypatch.setattr(pace, 'step_seconds', seconds)
    monkeypatch.setattr(pace, '_num_devices', lambda: 2)
    return seen


def finished(tmp_path, sweep, num_lanes, seconds):
    """A directory in which some lanes of each cell are there, and took so long."""
    folder = tmp_path / 'results'
    for cell in sweeps.cells_of(sweep):
        lanes = cell.lanes[:num_lanes]
        stored.make(folder, lanes, sweep, cell.id, **dict(cell.columns))
        names = [lane_keys.name_of(lane) for lane in lanes]
        batch = {'cell': cell.id, 'lanes': names, 'wall_seconds': seconds, 'compile_seconds': 0.0}
        files.write_json(folder / 'provenance' / f'{cell.id}.json', {'batches': [batch]})
    monitor.add_plan(folder, sweeps.cells_of(sweep))
    return folder


def test_the_smallest_and_the_largest_step_of_a_model_are_timed_and_speeds_lie_between(timed):
    cells = sweeps.cells_of(small.settings(models='ffn', seq_lens=(2, 3, 6, 4)))
    found = pace.paces(cells)
    assert sorted(timed) == [2, 6]
    steps = small.SMALL['max_samples'] / small.SMALL['batch_size']
    at = {cell.problem.task.seq_len: found[cell.id].seconds / pace.BESIDE_STEPS for cell in cells}
    # Every timed step takes a second, so a step between them does too, if speeds grow with its operations.
    assert at == pytest.approx(dict.fromkeys((2, 3, 4, 6), steps))
    assert not any(each.is_measured for each in found.values())


def test_a_budget_twice_as_long_takes_twice_as_long(timed):
    once, twice = (
        pace.paces(sweeps.cells_of(small.settings(models='ffn', max_samples=number))) for number in (1600, 3200)
    )
    assert [2 * one.seconds for one in once.values()] == pytest.approx([two.seconds for two in twice.values()])


@pytest.mark.parametrize(
    ('platform', 'seq_len', 'is_long'), [('cpu', 20_000, True), ('cpu', 8, False), ('gpu', 8, False)]
)
def test_who_will_see_nothing_for_long_is_told_so(platform, seq_len, is_long):
    (cell,) = sweeps.cells_of(sweeps.Sweep(models='transformer', seq_len=seq_len))
    text = pace.warning(cell, platform)
    assert bool(text) == is_long
    if is_long:
        assert 'TFLOP to the first check of a lane' in text
        assert 'a smaller check_every, batch_size or seq_len' in text


def test_a_step_too_large_to_time_is_not(timed, monkeypatch):
    monkeypatch.setattr(pace, 'MOST_FLOPS', 1)
    (found,) = pace.paces(sweeps.cells_of(small.settings(models='ffn'))).values()
    assert timed == []
    assert math.isnan(found.seconds)


def test_lanes_that_are_there_tell_the_pace_of_their_cell(timed, tmp_path):
    """40 seconds of one device for two lanes: with two devices a lane adds 10 to the run."""
    sweep = small.settings(models='ffn', num_seeds=5)
    folder = finished(tmp_path, sweep, 2, 40.0)
    (cell,) = sweeps.cells_of(sweep)
    assert pace.paces([cell], folder) == {cell.id: pace.Pace(10.0, True)}
    assert timed == []


@pytest.mark.parametrize('model', ['transformer', 'rnn', 'ffn'])
@pytest.mark.parametrize('risk', ['averaged', 'pointwise'])
def test_steps_of_all_models_can_be_timed(model, risk, monkeypatch):
    monkeypatch.setattr(pace, 'TIMING_SECONDS', 0.0)
    problem = small.cell(model, risk=risk).problem
    assert 0 < pace.step_seconds(problem, 2) < 1


def test_a_dry_run_tells_the_time_that_is_left(timed, tmp_path):
    sweep = small.settings(models='ffn', num_seeds=5)
    lines = small.listed(sweep, tmp_path / 'nowhere').splitlines()
    (cell,) = sweeps.cells_of(sweep)
    bound = pace.BESIDE_STEPS * 3200 / 16 * 5
    assert f'≤ {bound / 60:.0f} min' in lines[1]
    assert lines[3] == f'time on this machine: at most {bound / 60:.0f} min'
    assert not any('there already' in line for line in lines)
    folder = finished(tmp_path, sweep, 2, 40.0)
    lines = small.listed(sweep, folder).splitlines()
    assert lines[1].split()[:3] == [cell.id, '5', '2']
    assert lines[1].endswith('about 30 s')
    assert lines[3:] == [
        '2 of 5 lanes are there already',
        'time on this machine: about 30 s at the pace of lanes that are there',
    ]
    more = small.listed(small.settings(models='ffn', num_seeds=5, seq_lens=(3, 4)), folder)
    assert f'about 30 s at the pace of lanes that are there, at most {bound / 60:.0f} min for cells without any' in more
    assert '2 of 10 lanes are there already' in more


def test_a_dry_run_of_what_is_finished_says_so_and_times_nothing(timed, tmp_path):
    sweep = small.settings(models='ffn', num_seeds=2)
    lines = small.listed(sweep, finished(tmp_path, sweep, 2, 40.0)).splitlines()
    assert lines[-1] == '2 of 2 lanes are there already'
    assert timed == []


def test_without_a_device_a_dry_run_tells_the_rest(monkeypatch):
    """JAX raises an assertion where CUDA is asked for and no GPU is there."""

    def devices():
        raise AssertionError

    monkeypatch.setattr(jax, 'devices', devices)
    lines = small.listed(small.settings(models='ffn')).splitlines()
    assert lines[1].split()[-1] == '?'
    assert lines[-1] == 'time on this machine: unknown for 1 cells'


def test_a_budget_too_small_for_a_tenth_of_a_teraflop_is_no_zero(timed):
    sweep = small.settings(models='ffn')
    (cell,) = sweeps.cells_of(sweep)
    flops = cost.training_flops(cell.problem, small.SMALL['max_samples']) / 1e12
    assert f' {flops:.3g} ' in small.listed(sweep)
