"""What made the rows: each row has its run, the run its commit, and no record names a folder of this machine."""

import json
import pathlib
import platform
import re
import subprocess

import pytest

import qstr_jax
from qstr_jax.storage import files, provenance, results
from tests import helpers
from tests.stored import CELL, LANES, make

SECONDS = {'wall': 1.0, 'compile': 0.0}


def add_run(workdir, name, lanes, commit='a' * 40, **options):
    """A run that finished some lanes."""
    record = {'id': name, 'started': f'2026-01-01T00:00:0{name[-1]}+00:00', 'git_commit': commit, 'batches': []}
    provenance.add_batch(workdir, record, CELL, lanes, program='0', seconds=SECONDS, **options)


def test_each_row_has_its_run_its_commit_and_whether_the_tree_was_clean(tmp_path):
    workdir = make(tmp_path)
    add_run(workdir, 'run1', LANES[:2])
    add_run(workdir, 'run2', LANES[2:3], commit='b' * 40 + '+')
    add_run(workdir, 'run3', LANES[3:], stopped=True)
    found = provenance.of_rows(workdir)
    assert list(found['lane']) == [f'seed{seed}-task0-lr0.001-wd0.01' for seed in range(4)]
    assert list(found['run']) == ['run1', 'run1', 'run2', None]
    assert list(found['git_commit'].str[0]) == ['a', 'a', 'b', None]
    assert list(found['is_clean']) == [True, True, False, None]


def test_of_several_runs_that_finished_a_lane_the_last_one_wrote_its_row(tmp_path):
    """As a kill between the record and the row leaves it."""
    workdir = make(tmp_path)
    add_run(workdir, 'run1', LANES)
    add_run(workdir, 'run2', LANES[:1])
    assert list(provenance.of_rows(workdir)['run']) == ['run2', 'run1', 'run1', 'run1']


def test_a_run_of_another_program_did_not_write_the_row(tmp_path):
    """Two runs finished the lane and the first was kept."""
    workdir = make(tmp_path)
    add_run(workdir, 'run1', LANES)
    add_run(workdir, 'run2', LANES)
    first = results.load(workdir).assign(program='0')
    record = {'id': 'run3', 'started': '2026-01-01T00:00:03+00:00', 'git_commit': None, 'batches': []}
    provenance.add_batch(workdir, record, CELL, LANES, program='1', seconds=SECONDS)
    assert set(provenance.of_rows(workdir, first)['run']) == {'run2'}


def test_old_records_with_seeds_alone_count_where_they_are_clear(tmp_path):
    workdir = make(tmp_path)
    batch = {'cell': CELL, 'wall_seconds': 1, 'compile_seconds': 0}
    for name, seeds in ('run1', [0, 1]), ('run2', [1, 2]):
        lanes = [f'seed{seed}' for seed in seeds]
        files.write_json(workdir / 'provenance' / f'{name}.json', {'id': name, 'batches': [{**batch, 'lanes': lanes}]})
    assert list(provenance.of_rows(workdir)['run']) == ['run1', None, 'run2', None]


def test_what_a_table_is_from(tmp_path):
    make(tmp_path / 'a')
    add_run(tmp_path / 'a', 'run1', LANES[:3])
    sources = provenance.sources(results.load_all([tmp_path]))
    assert [(source['folder'], source['run'], source['lanes']) for source in sources] == [
        ('a', 'run1', 3),
        ('a', None, 1),
    ]
    assert provenance.sources(results.load_all([tmp_path / 'a']).iloc[:0]) == []


def test_a_record_names_no_folder_of_this_machine():
    command = ['/x/experiments/heads.py', f'--workdir={helpers.ROOT}/results/a', '--output=/somewhere/else', '--n=3']
    record = provenance.made_by(command)
    assert record['command'] == ['heads.py', '--workdir=results/a', '--output=else', '--n=3']
    assert not re.search(r'[\s"=]/\w', json.dumps(record))


@pytest.mark.skipif(not pathlib.Path('/proc/cpuinfo').exists(), reason='Linux names its CPU there')
def test_a_record_names_the_kind_of_cpu():
    described = provenance.describe_device().removeprefix('cpu (').partition(',')[0]
    assert f': {described}\n' in pathlib.Path('/proc/cpuinfo').read_text() or described == platform.machine()


def test_committed_files_name_no_folder_of_a_machine_and_none_is_temporary():
    done = subprocess.run(['git', 'ls-files', 'experiments'], cwd=helpers.ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip('not a checkout')
    paths = [pathlib.Path(helpers.ROOT, line) for line in done.stdout.splitlines()]
    assert not [path for path in paths if path.name.startswith('.') or path.name.endswith('.tmp')]
    texts = [path for path in paths if path.suffix in ('.json', '.md', '.txt', '.tex') and path.exists()]
    assert texts
    for path in texts:
        assert not re.search(r'(?<![\w.:/])/(work|tmp|root|home|check|Users)/', path.read_text()), path


def git(folder, *words):
    subprocess.run(['git', '-C', str(folder), '-c', 'user.name=a', '-c', 'user.email=a@b.c', *words], check=True)


def test_a_package_below_another_project_has_no_commit(tmp_path, monkeypatch):
    package = tmp_path / '.venv/qstr_jax/__init__.py'
    package.parent.mkdir(parents=True)
    package.touch()
    git(tmp_path, 'init', '-q')
    git(tmp_path, 'commit', '-q', '--allow-empty', '-m.')
    monkeypatch.setattr(qstr_jax, '__file__', str(package))
    assert provenance.git_commit() is None


def test_a_module_that_is_not_added_is_a_change_and_a_new_result_is_none(tmp_path, monkeypatch):
    package = tmp_path / 'qstr_jax/__init__.py'
    package.parent.mkdir()
    package.touch()
    for words in ['init', '-q'], ['add', '.'], ['commit', '-q', '-m.']:
        git(tmp_path, *words)
    monkeypatch.setattr(qstr_jax, '__file__', str(package))
    (tmp_path / 'config.json').touch()
    assert not provenance.git_commit().endswith('+')
    (tmp_path / 'my_models.py').touch()
    assert provenance.git_commit().endswith('+')
