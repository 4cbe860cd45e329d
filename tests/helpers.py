"""What several test files share."""

import contextlib
import functools
import importlib
import importlib.util
import io
import math
import os
import pathlib
import signal
import sys

import jax
import numpy as np
import pytest
from absl import app, flags
from absl.testing import flagsaver

from qstr_jax import tasks

ROOT = pathlib.Path(__file__).parents[1]

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec('torch') is None, reason='needs PyTorch: make install EXTRA=benchmark'
)

# In the environment, where workers find it: the folder of the session's compiled programs.
CACHE = 'QSTR_JAX_TEST_CACHE'

# OPTIMISED for programs that run for seconds: compiled in half the time. XLA's newer emitters of fused loops take half
# of the compiling by themselves, and cutting a small program into pieces that compile side by side costs more than it
# saves. QUICK for programs that run once: they compile up to ten times faster and run slower.
OPTIMISED = {'xla_cpu_parallel_codegen_split_count': 1}
if jax.__version_info__ < (0, 11):  # Later versions have no other emitters and refuse the flag.
    OPTIMISED['xla_cpu_use_fusion_emitters'] = False
QUICK = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True, **OPTIMISED}


def forget(module):
    """Drops what the functions of a module remember."""
    for value in vars(module).values():
        if hasattr(value, 'cache_clear'):
            value.cache_clear()


def forget_tests():
    """Drops what functions of tests remember; pytest's copy of a file is another than that which other files import."""
    for name, module in list(sys.modules.items()):
        if name.startswith(('tests.', 'test_')):
            forget(module)


@contextlib.contextmanager
def flags_as_before(module):
    """Undoes what is set of absl's flags, and of those that a binary has for itself (`OWN`)."""
    saved = [(own, flagsaver.save_flag_values(own)) for own in (flags.FLAGS, getattr(module, 'OWN', None)) if own]
    try:
        yield
    finally:
        for own, values in saved:
            flagsaver.restore_flag_values(values, own)


@contextlib.contextmanager
def flag_values(**values):
    """Flags as if typed, in a test that parses no command line."""
    known = flags.FLAGS.is_parsed()
    with flagsaver.flagsaver():
        if not known:
            flags.FLAGS.mark_as_parsed()
        with flagsaver.flagsaver(**values):
            yield


def flags_of(options):
    """Compiler options as XLA_FLAGS has them."""
    return ' '.join(f'--{name}={str(value).lower()}' for name, value in options.items())


QUICK_FLAGS = flags_of(QUICK)


def share_programs(kind):
    """Keeps all programs of this process, however small, where others of its kind find them."""
    jax.config.update('jax_compilation_cache_dir', f'{os.environ[CACHE]}/{kind}')
    jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)


quick_jit = functools.partial(jax.jit, compiler_options=QUICK)
# Outside of `jit` every operation is compiled by itself, which takes longer than all of them together.
examples = quick_jit(tasks.examples, static_argnames='task')
draw = quick_jit(tasks.draw, static_argnames='task')


def second(problem, num_lanes):
    """In place of `pace.step_seconds`, which compiles and times a step."""
    return 1.0


def random_like(tree, seed=0, scale=1.0):
    """Normal numbers in place of all leaves, so that biases count too."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: scale * rng.normal(size=leaf.shape).astype(np.float32), tree)


def random_params(module, *args, scale=1.0):
    """Random parameters, biases included, of a module that is called with `args`."""
    return random_like(jax.eval_shape(module.init, jax.random.key(0), *args), scale=scale)


def norm(tree):
    """‖vec tree‖₂, on the host: JAX would compile a program for every operation and shape."""
    return math.sqrt(sum(np.sum(np.square(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)))


@contextlib.contextmanager
def within(seconds):
    """Raises TimeoutError if what is done here takes longer, as opening a pipe without a writer does."""

    def ring(*_):
        raise TimeoutError(f'nothing after {seconds} s')

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def assert_one_error(done, *words):
    """A process failed and told why in its last line, which has these words, without a traceback."""
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith('error: ')
    assert all(word in last for word in words)
    assert 'Traceback' not in done.stderr


def end_of(module, *words):
    """How a binary ends in this process with the words of a command line: what it gives to `sys.exit`."""
    # A launcher imports it while it runs, and flags that are defined meanwhile are gone afterwards.
    importlib.import_module('qstr_jax.cli.sample_complexity')
    sys.argv = [module.__name__, *words]
    is_launcher = module.__name__ == 'experiments.launch'
    run = functools.partial(app.run, module.main, flags_parser=module.parse) if is_launcher else module.main
    with flags_as_before(module), contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as end:
        run()
    return end.value.code


def assert_one_line(code, *words):
    """What a binary gives to `sys.exit` is an error in one line, which has these words."""
    assert isinstance(code, str)
    assert code.startswith('error: ')
    assert '\n' not in code
    assert all(word in code for word in words), code


def config_module(name):
    """experiments.exhibits.NAME."""
    return importlib.import_module(f'experiments.exhibits.{name}')
