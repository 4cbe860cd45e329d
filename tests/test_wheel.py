"""The wheel: it holds `qstr_jax` alone, and runs where a user has a folder `experiments` of their own."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from qstr_jax.storage import results
from tests import harness, helpers

pytestmark = pytest.mark.slow

SOURCES = ('pyproject.toml', 'README.md', 'LICENSE', 'setup.py', 'qstr_jax', 'experiments', 'tests')
SETTINGS = {
    'models': ('ffn',), 'seq_lens': (2,), 'num_seeds': 1, 'token_dim': 4, 'ffn.widths': (8,), 'batch_size': 16,
    'check_every': 5, 'max_samples': 160, 'test_samples': 40,
}  # fmt: skip


def pip(*arguments):
    subprocess.run([sys.executable, '-m', 'pip', *arguments, '--quiet', '--no-deps', '--no-index'], check=True)


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """Built from a copy, since building leaves files in the source, by the installed setuptools."""
    source, folder = tmp_path_factory.mktemp('source'), tmp_path_factory.mktemp('wheel')
    for name in SOURCES:
        path, ignored = helpers.ROOT / name, shutil.ignore_patterns('__pycache__', 'results', '*.egg-info')
        copy = shutil.copy if path.is_file() else shutil.copytree
        copy(path, source / name, **({} if path.is_file() else {'ignore': ignored}))
    pip('wheel', str(source), f'--wheel-dir={folder}', '--no-build-isolation')
    (path,) = folder.glob('*.whl')
    return path


def test_it_holds_the_package_alone_and_all_of_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split('/')[0] for name in names if '.dist-info/' not in name} == {'qstr_jax'}
    there = {f'qstr_jax/{path.relative_to(helpers.ROOT / "qstr_jax")}' for path in helpers.ROOT.glob('qstr_jax/**/*')
             if path.is_file() and '__pycache__' not in path.parts}  # fmt: skip
    assert {name for name in there if not name.endswith('README.md')} <= set(names)


def test_it_runs_from_anywhere_beside_the_users_own_experiments(wheel, tmp_path):
    pip('install', str(wheel), f'--target={tmp_path / "installed"}')
    (tmp_path / 'mine/experiments').mkdir(parents=True)
    (tmp_path / 'mine/experiments/__init__.py').write_text('raise AssertionError("the user\'s own was imported")')
    environment = {
        **os.environ, 'PYTHONPATH': str(tmp_path / 'installed'), 'XLA_FLAGS': helpers.QUICK_FLAGS,
        'JAX_PLATFORMS': 'cpu',
    }  # fmt: skip

    def python(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path / 'mine', env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert python('-c', 'import qstr_jax; print(qstr_jax.__file__)').startswith(str(tmp_path / 'installed'))
    python('-m', 'qstr_jax', '--workdir=results', *harness.arguments(SETTINGS))
    assert len(results.load(tmp_path / 'mine/results')) == 1
    assert (tmp_path / 'mine/results/table.md').exists()
