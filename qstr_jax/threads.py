"""XLA's threads on a CPU: at least two, so that rows do not depend on how many cores a process may use.

XLA cuts matrix products by the number of threads that its CPU client sees. One thread gives other bits than two; two
and more agree. Workers under `taskset` or Slurm's `--cpus-per-task=1` would therefore write other rows. The client
takes the number from the environment variable NPROC when it starts, however many cores there are.
"""

import os
import sys
import warnings

LEAST = 2


def cores() -> int:
    """The cores that this process may use."""
    # Not every system says which these are.
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


def ensure() -> None:
    """Sets NPROC to two where XLA would see fewer threads; warns if JAX has started already. Imports no JAX."""
    told = os.environ.get('NPROC', '')
    if (int(told) if told.isdigit() else cores()) >= LEAST:
        return
    os.environ['NPROC'] = str(LEAST)
    bridge = sys.modules.get('jax._src.xla_bridge')
    if bridge is not None and getattr(bridge, '_backends', None):
        warnings.warn(
            'JAX started on one CPU thread before qstr_jax was imported, so rows will differ in their last bits from '
            f'those of other machines: import qstr_jax first, or set NPROC={LEAST}',
            stacklevel=3,
        )
