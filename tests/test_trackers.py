"""Rows in an experiment tracker: offline, real, and read back."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import types

import pytest

from qstr_jax import sweeps, trackers
from qstr_jax.storage import results
from tests import small


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tracked')
    sweeps.run(small.settings(num_seeds=2), folder, small.quiet())
    return folder


def test_trackio_has_each_lane_with_its_checks_and_its_row(workdir, tmp_path):
    command = [sys.executable, '-m', 'qstr_jax', 'track', f'--workdir={workdir}', '--project=mine']
    environment = {**os.environ, 'TRACKIO_DIR': str(tmp_path), 'HF_HUB_OFFLINE': '1'}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows, curves = results.load(workdir), results.load_curves(workdir)
    assert f"{len(rows)} runs in the project 'mine' of trackio" in done.stdout
    with sqlite3.connect(tmp_path / 'mine.db') as database:
        configs = [json.loads(one) for (one,) in database.execute('select config from configs order by id')]
        logged = [json.loads(one) for (one,) in database.execute('select metrics from metrics order by id')]
    assert [config['seed'] for config in configs] == rows['seed'].tolist()
    assert {config['cell'] for config in configs} == set(rows['cell'])
    assert len(logged) == len(rows) + len(curves)
    ends = [one for one in logged if 'outcome' in one]
    assert [one['samples_to_threshold'] for one in ends] == rows['samples_to_threshold'].tolist()
    tested = [one['test_loss'] for one in logged if 'outcome' not in one and 'test_loss' in one]
    assert tested == pytest.approx(curves['test_loss'].dropna().tolist())


def test_wandb_is_asked_to_stay_offline(workdir, monkeypatch):
    started = []

    class Run:
        def log(self, values, step=None):
            pass

        def finish(self):
            pass

    class Wandb:
        @staticmethod
        def init(**given):
            started.append(given)
            return Run()

    monkeypatch.setitem(sys.modules, 'wandb', Wandb)
    monkeypatch.delenv('WANDB_MODE', raising=False)
    assert trackers.send(workdir, 'wandb') == len(started)
    assert {one['mode'] for one in started} == {'offline'}
    assert len({one['name'] for one in started}) == len(started)


def test_lanes_without_a_setting_of_other_cells_have_their_checks(tmp_path, monkeypatch):
    """Adam has no weight decay."""
    sweep = small.settings(models='ffn', seq_lens=2, num_seeds=1, optimizer=('adamw', 'adam'), weight_decay=None)
    sweeps.run(sweep, tmp_path, small.quiet())
    checks = []

    class Run:
        def log(self, values, step=None):
            checks[-1] += step is not None

        def finish(self):
            pass

    monkeypatch.setitem(sys.modules, 'trackio', types.SimpleNamespace(init=lambda **_: checks.append(0) or Run()))
    assert trackers.send(tmp_path, 'trackio') == len(checks) == 2
    assert sum(checks) == len(results.load_curves(tmp_path))
    assert min(checks) > 0


def test_rows_whose_curves_are_gone_are_sent(workdir, tmp_path, monkeypatch):
    shutil.copytree(workdir, tmp_path / 'copy')
    shutil.rmtree(tmp_path / 'copy/curves')
    sent = []
    run = types.SimpleNamespace(log=lambda values, step=None: sent.append(step), finish=lambda: None)
    monkeypatch.setitem(sys.modules, 'trackio', types.SimpleNamespace(init=lambda **_: run))
    assert trackers.send(tmp_path / 'copy', 'trackio') == len(results.load(workdir)) == len(sent)
    assert set(sent) == {None}


def test_what_cannot_be_sent_is_one_line(workdir, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match='one of'):
        trackers.send(workdir, 'mlflow')
    monkeypatch.setitem(sys.modules, 'wandb', None)
    with pytest.raises(ValueError, match='pip install wandb'):
        trackers.send(workdir, 'wandb')
    with pytest.raises(results.ResultsError):
        trackers.send(tmp_path, 'trackio')
