"""Sweeps that are killed, in earnest: the same command goes on, and ends with the same bytes.

Each process here is real and dies by a real signal. What is compared is every Parquet file, byte for byte, with that
of a run that nobody disturbed.
"""

import random
import shutil
import signal
import time

import pytest

from qstr_jax.storage import provenance
from tests import harness
from tests.deaths import Death
from tests.harness import THREE_FFNS

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def undisturbed(lab, tmp_path_factory):
    """Tables of a run without a fault, and the seconds that it takes once everything is compiled."""
    lab.finish(tmp_path_factory.mktemp('compile'), THREE_FFNS)
    workdir, start = tmp_path_factory.mktemp('undisturbed'), time.monotonic()
    lab.finish(workdir, THREE_FFNS)
    assert len(harness.tables(workdir)) == 6
    assert set(harness.trained(workdir).values()) == {1}
    return harness.tables(workdir), time.monotonic() - start


def check(workdir, tables):
    """Nothing lost, nothing left behind, and every row has its run.

    A process may die between the line of provenance and the row that it is about; then another trains the last steps
    again, and has a line too.
    """
    assert harness.tables(workdir) == tables
    assert provenance.of_rows(workdir)['run'].notna().all()
    assert harness.leftovers(workdir) == []


def test_killed_at_changes_of_the_file_system(lab, undisturbed, tmp_path):
    """Ends the process at the n-th file that it makes, renames or removes, n random, until a run gets through."""
    rng, kills = random.Random(0), 0
    for _ in range(12):
        code, output = lab.run(tmp_path, THREE_FFNS, Death('event', rng.randint(1, 120)))
        if code == 0:
            break
        assert code == -signal.SIGKILL, output
        kills += 1
    assert kills >= 8
    lab.finish(tmp_path, THREE_FFNS)
    check(tmp_path, undisturbed[0])


# In this order: each leads to the next, over the three cells of the sweep.
STATIONS = [
    Death('qstr_jax.storage.results:add_sweep'),
    Death('qstr_jax.sweeps.monitor:add_plan', when='after'),
    Death('qstr_jax.sweeps.programs:compile_programs'),
    Death('qstr_jax.sweeps.programs:compile_programs', when='after'),
    Death('qstr_jax.learners.online:Online.progress', call=3),  # trained, not yet saved
    Death('qstr_jax.storage.checkpoint:save', call=2),
    Death('qstr_jax.storage.checkpoint:save', call=2, when='after'),
    Death('qstr_jax.storage.checkpoint:load'),
    Death('qstr_jax.storage.checkpoint:load', when='after'),
    Death('qstr_jax.learners.online:Online.report'),
    Death('qstr_jax.sweeps.rows:rows', when='after'),
    Death('qstr_jax.storage.files:write_table'),  # the curves
    Death('pyarrow.parquet:write_table', when='middle'),
    Death('qstr_jax.storage.files:write_table', when='after'),
    Death('qstr_jax.storage.files:write_table', call=2),  # the rows
    Death('pyarrow.parquet:write_table', call=2, when='middle'),
    Death('qstr_jax.storage.checkpoint:remove'),  # the first cell's rows are there
    Death('qstr_jax.storage.files:write_table', call=2),  # the second cell
    Death('qstr_jax.storage.provenance:add_batch', when='after'),
    Death('qstr_jax.storage.results:load'),  # the third cell, and all is done
]


def test_killed_before_in_the_middle_and_after(lab, undisturbed, tmp_path):
    for death in STATIONS:
        # Saving at every check takes as long as all else, so only they do it whom it is about.
        interval = 0.0 if 'checkpoint' in death.target else 1e6
        code, output = lab.run(tmp_path, THREE_FFNS, death, checkpoint_seconds=interval)
        assert code == -signal.SIGKILL, (death, output)
    lab.finish(tmp_path, THREE_FFNS)
    check(tmp_path, undisturbed[0])


def test_killed_at_random_moments(lab, undisturbed, tmp_path):
    """From outside, by the clock: in training, compiling and evaluating as much as in writing."""
    tables, seconds = undisturbed
    rng, kills = random.Random(1), 0
    while kills < 8:
        process = lab.start(tmp_path, THREE_FFNS)
        process.join(rng.uniform(0.1, 0.6) * seconds)
        kills += process.is_alive()
        if not process.is_alive():  # the machine is quicker than it was: once more from the beginning
            seconds /= 2
            shutil.rmtree(tmp_path)
        process.kill()
        process.join()
    lab.finish(tmp_path, THREE_FFNS)
    check(tmp_path, tables)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_state(lab, undisturbed, tmp_path, number):
    death = Death('qstr_jax.learners.online:Online.progress', call=4, signal_number=number)
    code, output = lab.run(tmp_path, THREE_FFNS, death, checkpoint_seconds=1e6)
    assert code == 128 + number
    assert output.splitlines() == [
        'stopping: running lanes are saved after this call to the device; once more stops at once',
        f'stopped by {number.name}: the running lanes are saved; the same command continues them',
    ]
    (checkpoint,) = (tmp_path / 'checkpoints').glob('*/*')
    assert int(checkpoint.name) >= 4
    assert harness.tables(tmp_path) == {}
    (sitting,) = harness.sittings(tmp_path)
    assert sitting['stopped']
    assert sitting['wall_seconds'] > 0
    lab.finish(tmp_path, THREE_FFNS, checkpoint_seconds=1e6)
    check(tmp_path, undisturbed[0])


def test_trained_parameters_survive_kills(lab, undisturbed, tmp_path):
    """Killed while parameters are saved, over and over; all are there in the end, and nothing half-written."""
    settings = {'save_params': True, 'models': ('ffn',)}
    for call in (1, 6, 11, 16, 21, 26):
        lab.run(tmp_path, settings, Death('event', call), checkpoint_seconds=1e6)
    for death in Death('qstr_jax.storage.checkpoint:save_tree', when='after'), Death('qstr_jax.storage.results:add'):
        code, output = lab.run(tmp_path, settings, death, checkpoint_seconds=1e6)
        assert code == -signal.SIGKILL, output
    lab.finish(tmp_path, settings)
    assert harness.leftovers(tmp_path) == []
    assert harness.tables(tmp_path).items() <= undisturbed[0].items()
    assert len(list(tmp_path.glob('params/ffn*/seed*'))) == 2
