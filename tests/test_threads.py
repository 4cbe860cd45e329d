"""Rows do not depend on the cores that a process may use."""

import os
import subprocess
import sys

import pytest

from tests import helpers

# Trains an FFN whose products are large enough to be cut, and prints its losses to the last bit, XLA's threads first.
PROGRAM = """
import os, sys, tempfile
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:int(sys.argv[1])]))
from qstr_jax import sweeps
print(os.environ.get('NPROC'), flush=True)
if len(sys.argv) > 2:
    sys.exit()
sweep = sweeps.Sweep(models='ffn', seq_lens=4, num_seeds=1, threshold=0.2, test_samples=1000, max_samples=6400)
rows = sweeps.run(sweep, tempfile.mkdtemp(), sweeps.Options(progress=False))
print(float(rows['test_loss'][0]).hex(), float(rows['train_loss'][0]).hex())
"""


def said(*arguments, **environment):
    """What the program prints, by lines: NPROC once `qstr_jax` is there, and the losses."""
    call = [sys.executable, '-c', PROGRAM, *map(str, arguments)]
    inherited = {name: value for name, value in os.environ.items() if name != 'NPROC'}
    environment = {**inherited, 'PYTHONPATH': str(helpers.ROOT), **environment}
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity') or os.cpu_count() < 2, reason='needs Linux and two cores')
def test_one_core_gives_the_bits_of_two():
    threads, *losses = said(1, NPROC='1')
    assert threads == '2'
    assert len(losses) == 1
    assert losses == said(2)[1:]
    # Where nobody has set it, it is set to the same: the run above, once more.
    assert said(1, 'no training') == ['2']


def test_jax_that_has_started_on_one_thread_is_warned_of():
    program = (
        'import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); import jax; jax.devices(); import qstr_jax'
    )
    inherited = {name: value for name, value in os.environ.items() if name != 'NPROC'}
    call = [sys.executable, '-c', program]
    done = subprocess.run(
        call, capture_output=True, text=True, env={**inherited, 'PYTHONPATH': str(helpers.ROOT)}, timeout=300
    )
    assert 'NPROC=2' in done.stderr
