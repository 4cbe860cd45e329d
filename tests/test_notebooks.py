"""The notebooks run top to bottom, keep their outputs, and name the repository's address as pyproject.toml does."""

import importlib.metadata
import importlib.util
import io
import pathlib
import re
import subprocess
import sys
import tomllib
import types

import nbformat
import pandas as pd
import pytest

from experiments import notebooks
from qstr_jax import analysis
from qstr_jax.analysis import formats
from tests import helpers

ROOT = pathlib.Path(__file__).parents[1]
PATHS = sorted((ROOT / 'colab').glob('*.ipynb'))
URL = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['urls']['Repository']


def read(path):
    return nbformat.read(path, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == 'code']


def pictures(notebook):
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    return [output for output in outputs if 'image/png' in output.get('data', {})]


def test_there_are_five():
    assert [path.stem for path in PATHS] == ['quickstart', 'real_data', 'theorems', 'your_own_architecture', 'zoo']


def test_unknown_names_run_nothing(monkeypatch):
    monkeypatch.setattr(notebooks, '_NAME', types.SimpleNamespace(value=['quickstart', 'nothing']))
    monkeypatch.setattr(notebooks, 'execute', lambda path: pytest.fail('runs'))
    with pytest.raises(ValueError, match='--name=nothing: unknown, one of quickstart, real_data'):
        notebooks.run()


def test_without_what_runs_them_the_extra_is_named(tmp_path):
    """In a Python that has none of it, as after `make install`."""
    hidden = "import sys; sys.modules.update(dict.fromkeys(('nbclient', 'nbformat', 'ipykernel')))\n"
    code = hidden + "import runpy; runpy.run_module('experiments.notebooks', run_name='__main__')"
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True)
    helpers.assert_one_error(done, 'nbclient, nbformat, ipykernel is missing', 'make install EXTRA=notebooks')


@pytest.mark.parametrize('path', PATHS, ids=lambda path: path.stem)
def test_each_opens_with_its_badge_and_an_install_cell_in_step_with_the_package(path):
    notebook = read(path)
    nbformat.validate(notebook)
    slug = URL.removeprefix('https://github.com/')
    first, second = notebook.cells[:2]
    page = f'https://colab.research.google.com/github/{slug}/blob/main/colab/{path.name}'
    assert page in first.source.splitlines()[0]
    assert f"'git+{URL}'" in second.source
    addresses = set(re.findall(r'github\.com/[\w.-]+/[\w.-]+', path.read_text()))
    assert addresses == {URL.removeprefix('https://')}


@pytest.mark.parametrize('path', PATHS, ids=lambda path: path.stem)
def test_the_install_cell_leaves_jax_alone(path, monkeypatch):
    """The package comes without dependencies, and they with jax and jaxlib pinned at what is there."""
    calls = []
    requires = ['jax>=0.10', 'flax>=0.12', 'pytest>=8; extra == "test"', 'jax[tpu]>=0.10; extra == "tpu"']
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    monkeypatch.setattr(importlib.metadata, 'requires', lambda name: requires)
    monkeypatch.setattr(subprocess, 'run', lambda call, check: calls.append(call))
    exec(compile(code(read(path))[0].source, path.name, 'exec'), {})
    package, others = (call[5:] for call in calls)
    assert package == ['--no-deps', f'git+{URL}']
    versions = [f'{name}=={importlib.metadata.version(name)}' for name in ('jax', 'jaxlib')]
    assert others == ['flax>=0.12', *versions]


@pytest.mark.parametrize('path', PATHS, ids=lambda path: path.stem)
def test_outputs_with_pictures_are_kept(path):
    notebook = read(path)
    assert pictures(notebook)
    assert all(cell.execution_count for cell in code(notebook))
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    assert not any(output.output_type == 'error' for cell in code(notebook) for output in cell.outputs)
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize('path', PATHS, ids=lambda path: path.stem)
def test_all_that_is_imported_is_installed_with_the_package(path):
    known = {
        'functools',
        'jax',
        'flax',
        'matplotlib',
        'numpy',
        'optax',
        'pandas',
        'qstr_jax',
        'importlib',
        'subprocess',
        'sys',
    }
    text = '\n'.join(cell.source for cell in code(read(path)))
    assert set(re.findall(r'^(?:import|from) (\w+)', text, flags=re.MULTILINE)) <= known


def test_the_table_of_the_quickstart_is_what_today_s_rules_make_of_its_rows():
    """Fails where a rule of exponents or tables has changed since the notebook was run; `make notebooks` mends it."""
    outputs = [output for cell in code(read(PATHS[0])) for output in cell.outputs]
    texts = [output.get('text') or output.get('data', {}).get('text/plain', '') for output in outputs]
    (listed,) = (text for text in texts if 'samples_to_threshold' in text)
    rows = pd.read_csv(io.StringIO(listed), sep=r'\s+')
    rows = rows.assign(
        task='qstr', link='linear', sparsity=1, threshold=0.7, max_samples=200_000, learner='online', check_every=10,
        batch_size=64,
    )  # fmt: skip
    (table,) = (text for text in texts if 'exponent of N' in text)
    assert table.strip() == formats.markdown(analysis.samples_table(rows)).strip()


# What a sweep's length is made of, and less of it: every model is still compiled, trained, tabulated and drawn.
SHORTER = {
    r'seq_lens=\(2, 4, 6\)': 'seq_lens=(2,)',
    r'num_seeds=\d+': 'num_seeds=1',
    r'max_samples=[\d_]+': 'max_samples=1_920',
}

# Of a notebook's own loops: fewer steps, and the ends of what is compiled anew for each value.
FEWER = {
    r'num_steps = \d+': 'num_steps = 50',
    r'noises = \[.*\]': 'noises = [0.0, 2.0]',
    r'for sharpness in \(.*\)': 'for sharpness in (2, 20)',
    r'for n in \(.*\):': 'for n in (5, 40):',
}


def shortened(notebook):
    """The notebook with less training in its sweep, or in its own steps."""
    for cell in code(notebook):
        for long, short in {**SHORTER, **FEWER}.items():
            cell.source = re.sub(long, short, cell.source)
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize('path', PATHS, ids=lambda path: path.stem)
def test_each_runs_top_to_bottom(path, tmp_path, monkeypatch):
    """Pictures come out where they came out before."""
    monkeypatch.setenv('JAX_PLATFORMS', 'cpu')
    monkeypatch.setenv('XLA_FLAGS', helpers.QUICK_FLAGS)
    nbformat.write(shortened(read(path)), tmp_path / path.name)
    notebook = notebooks.execute(tmp_path / path.name)
    assert len(pictures(notebook)) == len(pictures(read(path)))


def test_the_sweeps_of_notebooks_are_those_that_get_shorter():
    for path in PATHS:
        text = '\n'.join(cell.source for cell in code(read(path)))
        assert all(bool(re.search(setting, text)) == ('sweeps.run' in text) for setting in SHORTER)


def test_what_gets_shorter_in_loops_is_there():
    texts = [cell.source for path in PATHS for cell in code(read(path))]
    assert all(any(re.search(long, text) for text in texts) for long in FEWER)
