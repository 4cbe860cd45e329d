"""Rows do not depend on the cores that a process may use."""

import os
import subprocess
import sys

import jax
import pytest

from qstr_jax import threads
from tests import helpers

# Trains an FFN whose products are large enough to be cut, and prints its losses to the last bit, XLA's threads first.
PROGRAM = """
import os, sys, tempfile
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:int(sys.argv[1])]))
from qstr_jax import sweeps
print(os.environ.get('NPROC'), flush=True)
sweep = sweeps.Sweep(models='ffn', seq_lens=4, num_seeds=1, threshold=0.2, test_samples=1000, max_samples=6400)
rows = sweeps.run(sweep, tempfile.mkdtemp(), sweeps.Options(progress=False))
print(float(rows['test_loss'][0]).hex(), float(rows['train_loss'][0]).hex())
"""


def said(cores):
    """What the program prints on so many cores, by lines: NPROC once `qstr_jax` is there, and the losses."""
    inherited = {name: value for name, value in os.environ.items() if name != 'NPROC'}
    # Compiled quickly, which changes nothing of the products that are cut.
    environment = {**inherited, 'PYTHONPATH': str(helpers.ROOT), 'XLA_FLAGS': helpers.QUICK_FLAGS}
    call = [sys.executable, '-c', PROGRAM, str(cores)]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity') or os.cpu_count() < 2, reason='needs Linux and two cores')
def test_one_core_gives_the_bits_of_two():
    set_to, *losses = said(1)
    assert set_to == '2'
    assert len(losses) == 1
    assert losses == said(2)[1:]


@pytest.fixture
def one_core(monkeypatch):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0}, raising=False)
    monkeypatch.delenv('NPROC', raising=False)
    jax.devices()  # has started


@pytest.mark.usefixtures('one_core')
@pytest.mark.parametrize('told', [None, '1'])
def test_jax_that_has_started_on_one_thread_is_warned_of(monkeypatch, told):
    if told:
        monkeypatch.setenv('NPROC', told)
    with pytest.warns(UserWarning, match='NPROC=2'):
        threads.ensure()
    assert os.environ['NPROC'] == '2'


@pytest.mark.usefixtures('one_core')
def test_a_larger_number_stays(monkeypatch):
    monkeypatch.setenv('NPROC', '3')
    threads.ensure()
    assert os.environ['NPROC'] == '3'
