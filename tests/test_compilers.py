"""Small cells compiled whole for a TPU and a GPU, where their makers' compilers are installed."""

import json
import os
import pathlib
import subprocess

import pytest

from qstr_jax.accelerators import chips
from tests import compile_small, helpers

pytestmark = [pytest.mark.slow, pytest.mark.compilers]


def python_of(platform):
    """Python of the environment that has a platform's compiler."""
    variable = f'QSTR_JAX_{platform.upper()}_COMPILE'
    folder = os.environ.get(variable) or helpers.ROOT / f'.venv-{platform}-compile'
    python = pathlib.Path(folder, 'bin/python')
    if not python.exists():
        pytest.skip(f'needs a compiler for {platform}s: make accelerators, or {variable}=DIR, an environment with it')
    return python


@pytest.fixture(scope='module', params=['v5e', 'h100'])
def compiled(request):
    """What the compiler of one device says, see `compile_small`."""
    python = python_of(chips.get(request.param).platform)
    command = [python, '-m', 'tests.compile_small', request.param]
    done = subprocess.run(command, cwd=helpers.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize('model', compile_small.MODELS)
def test_a_small_cell_compiles_whole(compiled, model):
    found = compiled['cells'][model]
    assert found['lanes'] == 2
    assert 2**10 < found['memory_bytes'] < 2**30


def test_one_program_serves_every_device_of_a_group(compiled):
    """The text of both optimised programs is the same to the letter."""
    assert compiled['num_devices'] in (16, 8)
    assert len(set(compiled['programs'])) == 1
