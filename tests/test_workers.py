"""Several workers on one directory, several devices, several shares: the same bytes, each lane trained once."""

import os
import shutil
import signal

import pytest

from qstr_jax.storage import merge, provenance, results
from tests import harness
from tests.deaths import Death
from tests.harness import EIGHT, MANY, MODELS, OURS

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def alone(lab, tmp_path_factory):
    """Tables of one worker that did everything."""
    workdir = tmp_path_factory.mktemp('alone')
    lab.finish(workdir, MANY)
    assert len(harness.trained(workdir)) == 18
    return harness.tables(workdir)


def join(processes):
    """Waits for processes; returns their exit codes."""
    for process in processes:
        process.join(600)
    return [process.exitcode for process in processes]


def test_workers_share_a_directory(lab, alone, tmp_path):
    count = 4  # two of them are below, asked for different seeds
    processes = [lab.start(tmp_path, MANY, checkpoint_seconds=1e6) for _ in range(count)]
    assert join(processes) == [0] * count, [process.log.read_text() for process in processes]
    assert harness.tables(tmp_path) == alone
    assert len(harness.trained(tmp_path)) == 18
    assert set(harness.trained(tmp_path).values()) == {1}
    assert harness.leftovers(tmp_path) == []
    assert len(list((tmp_path / 'provenance').iterdir())) > 1  # they did share


def test_another_finishes_what_a_killed_worker_held(lab, alone, tmp_path):
    """The first dies in the middle of its second batch; the second waits for no one and trains what is left."""
    first = lab.start(tmp_path, MANY, Death('qstr_jax.learners.online:Online.progress', call=9))
    second = lab.start(tmp_path, MANY)
    assert join([first, second]) == [-signal.SIGKILL, 0], second.log.read_text()
    assert harness.tables(tmp_path) == alone
    assert provenance.of_rows(tmp_path)['run'].notna().all()
    assert harness.leftovers(tmp_path) == []


def test_workers_that_die_one_after_the_other_and_together(lab, alone, tmp_path):
    for round_number in range(3):
        deaths = [Death('event', 60 + 20 * round_number), Death('event', 80), Death('event', 70)]
        assert set(join([lab.start(tmp_path, MANY, death) for death in deaths])) == {-signal.SIGKILL}
    lab.finish(tmp_path, MANY)
    assert harness.tables(tmp_path) == alone
    assert provenance.of_rows(tmp_path)['run'].notna().all()
    assert harness.leftovers(tmp_path) == []


def test_workers_that_ask_for_different_seeds(lab, alone, tmp_path):
    """They cut the cells in the same way where they overlap, so that no lane is trained twice."""
    asked = [{**MANY, 'num_seeds': num_seeds} for num_seeds in (4, 6)]
    processes = [lab.start(tmp_path, settings, checkpoint_seconds=1e6) for settings in asked]
    assert join(processes) == [0, 0]
    assert harness.tables(tmp_path) == alone
    assert set(harness.trained(tmp_path).values()) == {1}


def test_shares_make_the_whole_in_one_directory_or_merged(lab, alone, tmp_path):
    for index in range(3):
        lab.finish(tmp_path / 'one', MANY, shard_index=index, num_shards=3)
        lab.finish(tmp_path / f'{index}', MANY, shard_index=index, num_shards=3)
        assert len(list((tmp_path / f'{index}' / 'rows').iterdir())) == 1
    assert harness.tables(tmp_path / 'one') == alone
    merge.merge([tmp_path / f'{index}' for index in range(3)], tmp_path / 'merged')
    assert harness.tables(tmp_path / 'merged') == alone


def test_a_share_without_cells_is_done_at_once(lab, tmp_path):
    code, output = lab.run(tmp_path, {'models': ('ffn',)}, shard_index=1, num_shards=2, progress=True)
    assert code == 0, output
    assert 'share 1 of 2 has no cells' in output
    assert harness.tables(tmp_path) == {}
    assert results.load(tmp_path).empty


@pytest.fixture(scope='module')
def one_device(lab, tmp_path_factory):
    workdir = tmp_path_factory.mktemp('one_device')
    lab.finish(workdir, EIGHT)
    return workdir


def test_the_number_of_devices_changes_no_bit(lab, one_device, tmp_path):
    """Eight; four and two are below."""
    lab.finish(tmp_path, EIGHT, num_devices=8)
    assert harness.tables(tmp_path) == harness.tables(one_device)
    assert set(harness.trained(tmp_path).values()) == {1}
    assert harness.leftovers(tmp_path) == []


def test_killed_on_four_devices_and_gone_on_with_on_one_and_on_two(lab, one_device, tmp_path):
    code, output = lab.run(tmp_path, EIGHT, Death('qstr_jax.learners.online:Online.progress', call=30), num_devices=4)
    assert code == -signal.SIGKILL, output
    assert len(os.listdir(tmp_path / 'progress')) >= 2  # several devices were at work
    shutil.copytree(tmp_path, tmp_path.with_name('copy'))
    for workdir, count in (tmp_path, 1), (tmp_path.with_name('copy'), 2):
        lab.finish(workdir, EIGHT, num_devices=count)
        assert harness.tables(workdir) == harness.tables(one_device)
        assert provenance.of_rows(workdir)['run'].notna().all()
        assert harness.leftovers(workdir) == []


def test_a_signal_saves_the_state_of_every_device(lab, one_device, tmp_path):
    death = Death('qstr_jax.learners.online:Online.progress', call=9, signal_number=signal.SIGTERM)
    code, output = lab.run(tmp_path, EIGHT, death, num_devices=4, checkpoint_seconds=1e6)
    assert code == 128 + signal.SIGTERM, output
    assert len(os.listdir(tmp_path / 'checkpoints')) >= 2
    lab.finish(tmp_path, EIGHT, num_devices=8)
    assert harness.tables(tmp_path) == harness.tables(one_device)
    assert harness.leftovers(tmp_path) == []


# Programs as users have them: at XLA's own level of optimisation, where sums are vectorised and fused.


@pytest.fixture(scope='module')
def own_level(tmp_path_factory):
    return harness.Lab(tmp_path_factory, flags='')


@pytest.fixture(scope='module')
def optimised(own_level, tmp_path_factory):
    """Tables of one worker on one device that nobody disturbed."""
    workdir = tmp_path_factory.mktemp('optimised')
    own_level.finish(workdir, OURS)
    assert len(harness.trained(workdir)) == 6
    return harness.tables(workdir)


def test_at_the_users_level_a_kill_and_devices_change_no_bit(own_level, optimised, tmp_path):
    """Each architecture is killed in the middle of its second lane, and goes on on two devices."""
    for model in MODELS:
        death = Death('qstr_jax.learners.online:Online.progress', call=15)
        code, output = own_level.run(tmp_path, {**OURS, 'models': (model,)}, death)
        assert code == -signal.SIGKILL, output
        assert list(tmp_path.glob(f'checkpoints/{model}*'))
    own_level.finish(tmp_path, OURS, num_devices=2)
    assert harness.tables(tmp_path) == optimised


def test_at_the_users_level_workers_change_no_bit(own_level, optimised, tmp_path):
    processes = [own_level.start(tmp_path, OURS, checkpoint_seconds=1e6) for _ in range(2)]
    assert join(processes) == [0, 0], [process.log.read_text() for process in processes]
    assert harness.tables(tmp_path) == optimised


def test_the_users_programs_are_not_those_of_the_tests(lab, optimised, tmp_path):
    """The comparisons above are of other numbers than those at the top of this file."""
    lab.finish(tmp_path, {**OURS, 'models': ('ffn',)})
    quick = harness.tables(tmp_path)
    assert quick.keys() < optimised.keys()
    assert all(quick[name] != optimised[name] for name in quick if name.startswith('curves'))
