"""What keeps a worker's memory small: compiled programs are freed where they take much of it."""

import ctypes
import gc
import pathlib
import resource

import jax
import pyarrow

from qstr_jax.sweeps import programs
from tests import helpers

# A worker frees its programs when it has this much memory in use. XLA's compiler aborts, without saying why, in a
# process that has used up its memory maps (65,530, /proc/sys/vm/max_map_count): a program of a learner has about 200
# of them, which are given back with it, and programs of a gigabyte have some 10,000.
FULL = 850 * 2**20


def resident_bytes():
    """Memory that this process has in use now; 0 where it cannot be told."""
    statm = pathlib.Path('/proc/self/statm')
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else 0


def make_room(limit=FULL):
    """Frees compiled programs, and what functions of tests remember, above a limit; returns whether it did."""
    if resident_bytes() > limit:
        trim()
    if resident_bytes() <= limit:
        return False
    helpers.forget_tests()
    helpers.forget(programs)
    jax.clear_caches()
    gc.collect()
    trim()
    return True


def trim():
    """The C library keeps what a compilation gave back, for each of its threads, and Arrow the tables that were read.

    This hands it to the system.
    """
    pyarrow.default_memory_pool().release_unused()
    libc = ctypes.CDLL(None)
    if hasattr(libc, 'malloc_trim'):
        libc.malloc_trim(0)
