"""The README's examples run as they stand."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from qstr_jax.storage import results
from tests import helpers

README = pathlib.Path(__file__).parents[1] / 'README.md'
BLOCKS = re.findall(r'```python\n(.*?)```', README.read_text(), flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize('number', range(len(BLOCKS)))
def test_python_blocks_run(number, tmp_path):
    """Each by itself and optimised: some train too slowly with the programs of the tests' own process."""
    call = [sys.executable, '-c', BLOCKS[number]]
    flags = helpers.flags_of(helpers.OPTIMISED)
    environment = {**os.environ, 'PYTHONPATH': str(README.parent), 'XLA_FLAGS': flags}
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert 'failed' not in done.stderr
    for workdir in tmp_path.glob('results/*'):
        assert not results.load(workdir).empty


def test_there_is_an_example_of_each_kind():
    text = '\n'.join(BLOCKS)
    assert all(part in text for part in ('models.register', 'links.register', 'tasks.register'))


def test_links_and_pictures_exist():
    for target in re.findall(r'(?:\]\(|src=")(?!http)([^)#"]+)[)"]', README.read_text()):
        assert (README.parent / target).exists(), target


def test_table_1_is_the_committed_one():
    """`test_table1` compares that with the rows."""
    committed = README.parent / 'experiments/results/table1/table1.md'
    assert committed.read_text() in README.read_text()


def test_every_folder_of_the_tree_is_there():
    for folder in re.findall(r'^ *([\w/]+/) {2,}', README.read_text(), flags=re.MULTILINE):
        assert list(README.parent.rglob(folder.rstrip('/'))), folder
