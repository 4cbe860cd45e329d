"""Settings of every test, made before JAX touches a device, and what keeps a worker's memory small."""

import collections
import gc
import importlib
import os
import resource
import shutil
import sys
import tempfile
import warnings

import jax
import pytest
from absl import flags
from matplotlib import figure
from ml_collections import config_flags

from qstr_jax import columns
from qstr_jax.cli import command_line
from qstr_jax.settings import registry
from qstr_jax.storage import cell_tables
from qstr_jax.sweeps import pace, platforms
from tests import helpers, memory

# Eight CPU devices, so that code for several of them runs on any machine; shapes must agree in rank.
jax.config.update('jax_num_cpu_devices', 8)
jax.config.update('jax_numpy_rank_promotion', 'raise')
# As the binaries do: a GPU would multiply in TF32, which agrees with no reference to rounding.
jax.config.update('jax_default_matmul_precision', 'highest')

# The suite compiles thousands of small programs and runs each for a moment, so they are compiled as quickly as can be.
# Programs that tests start in processes of their own are compiled as a user's are, so the flags are gone once they are
# read. Whoever sets flags gets those instead.
if 'XLA_FLAGS' not in os.environ:
    os.environ['XLA_FLAGS'] = helpers.QUICK_FLAGS
    jax.devices()
    del os.environ['XLA_FLAGS']
    platforms.TABLE['cpu'] = platforms.TABLE['cpu']._replace(init={platforms.LEVEL: 0})

# A worker that freed its programs does so again only after it has grown by this much: going through all objects of a
# process takes a second or two, and what was compiled must be compiled again.
GROWTH = 120 * 2**20
# A run in which a worker took more than this fails.
LIMIT = 1500 * 2**20

# Files that take longest, which start first, so that the workers end at the same time: each takes whole files in order.
LONGEST = (
    'ray', 'workers', 'fixed_sample', 'sample_complexity', 'cards', 'faults', 'online', 'distributed', 'damage',
    'exhibits', 'gallery', 'notebooks', 'benchmark', 'docs', 'launch', 'plugins', 'tuned', 'runner', 'starts',
    'models', 'programs', 'recurrent', 'measures', 'links', 'constructions', 'report',
)  # fmt: skip

# Files that import PyTorch, whose 300 MB a worker keeps, so they come last, and into memory that is freed before.
WITH_TORCH = ('adapters', 'baseline')

# Files that read all committed rows, or run much at a time: memory is freed before them as well.
LARGE = (
    'gallery', 'explorer', 'hooks', 'exhibits', 'report', 'table1', 'data', 'benchmark', 'tuned', 'runner', 'contract',
    'starts',
)  # fmt: skip

# Modules that remember all committed rows or all exhibits.
REMEMBERING = ('experiments.exhibit', 'experiments.gallery')

# Modules of the package that register something when they are imported, as configs ask for.
PLUGINS = tuple(
    f'qstr_jax.theory.{name}'
    for name in ('capacity', 'construction_norm', 'construction_start', 'oracles', 'partly_given')
)

# By worker its peak memory and the test that first took that much; those of this process so far.
_PEAKS, _PEAK = pytest.StashKey[dict](), pytest.StashKey[tuple]()
# Bytes in use after memory was last freed.
_LEFT = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """What a file's functions remember goes with it; compiled programs go where they take much memory."""
    is_last = nextitem is None or nextitem.module is not item.module
    if (peak := peak_bytes()) > item.config.stash[_PEAK][0]:
        item.config.stash[_PEAK] = peak, item.nodeid
    if is_last:
        helpers.forget_tests()
        for name in REMEMBERING:
            if name in sys.modules:
                helpers.forget(sys.modules[name])
    makes_room = is_last and nextitem is not None and nextitem.path.stem.removeprefix('test_') in (*WITH_TORCH, *LARGE)
    limit = 0 if makes_room else max(memory.FULL, item.config.stash[_LEFT] + GROWTH)
    if memory.make_room(limit):
        item.config.stash[_LEFT] = memory.resident_bytes()


def pytest_collection_modifyitems(items):
    place = {f'test_{name}': number for number, name in enumerate(LONGEST)}
    place |= {f'test_{name}': len(LONGEST) + 1 for name in WITH_TORCH}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


def pytest_collection_finish(session):
    """What is imported by now stays, so that Python need not look through it; tracing makes many objects at a time."""
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_configure(config):
    """Makes the folder in which the workers share compiled programs; it goes with the session."""
    config.stash[_PEAKS], config.stash[_PEAK] = {}, (0, '')
    config.stash[_LEFT] = 0
    if not hasattr(config, 'workerinput'):
        os.environ[helpers.CACHE] = tempfile.mkdtemp(prefix='qstr_jax_programs_')
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(helpers.CACHE)))
    # Of its own: the flags of the tests' processes are no part of the name of a program.
    helpers.share_programs('tests')


def peak_bytes():
    """The most memory that this process has ever had in use."""
    unit = 1 if sys.platform == 'darwin' else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def pytest_sessionfinish(session):
    """A worker tells its peak to the process that started it, which is where the run is judged."""
    config = session.config
    if hasattr(config, 'workeroutput'):
        config.workeroutput['peak'] = config.stash[_PEAK]
        return
    config.stash[_PEAKS] = config.stash[_PEAKS] or {'this process': config.stash[_PEAK]}
    if session.exitstatus == 0 and (is_too_large(config) or any(fails for _, fails in not_run(config))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if 'peak' in (getattr(node, 'workeroutput', None) or {}):
        node.config.stash[_PEAKS][node.gateway.id] = node.workeroutput['peak']


def is_too_large(config):
    return max(peak for peak, _ in config.stash[_PEAKS].values()) > LIMIT


def must_run(report):
    """Whether a test fails the run when it is skipped: in CI all but those that need the compilers of accelerators."""
    # The report of a whole file, as of one whose library is not installed, has no keywords.
    return 'QSTR_JAX_ALL_TESTS' in os.environ and 'compilers' not in getattr(report, 'keywords', ())


def not_run(config):
    """Why tests or whole files were skipped, whether that fails the run, and how many."""
    reports = config.pluginmanager.get_plugin('terminalreporter').stats.get('skipped', [])
    return collections.Counter(
        (str(report.longrepr[2]).removeprefix('Skipped: '), must_run(report)) for report in reports
    )


def pytest_terminal_summary(terminalreporter, config):
    fails = ', so the run fails'
    peaks = ', '.join(
        f'{name} {peak / 1e9:.2f} GB in {test}' for name, (peak, test) in sorted(config.stash[_PEAKS].items())
    )
    over = f': more than {LIMIT / 1e9:.2f} GB{fails}' if is_too_large(config) else ''
    terminalreporter.write_line(f'peak memory: {peaks}{over}')
    for (reason, is_needed), count in sorted(not_run(config).items()):
        terminalreporter.write_line(f'NOT RUN, {count} of them: {reason}{fails if is_needed else ""}')


@pytest.fixture
def own_entries():
    """Undoes what a test registers; what our own plugins register stays, since a module is imported only once."""
    for name in PLUGINS:
        importlib.import_module(name)
    known = registry._ENTRIES
    before = dict(known)
    yield
    known.clear()
    known.update(before)


@pytest.fixture
def _as_before(monkeypatch):
    """Undoes what a binary changes for its whole process."""
    monkeypatch.setattr(pace, 'step_seconds', helpers.second)  # which compiles a program
    monkeypatch.setattr(sys, 'argv', sys.argv)
    monkeypatch.setattr(sys, 'unraisablehook', sys.unraisablehook)
    monkeypatch.setattr(warnings, 'formatwarning', warnings.formatwarning)


@pytest.fixture
def no_pdfs(monkeypatch):
    """Most of a picture's time goes into its PDF; `test_plots` and the cards have theirs."""
    savefig = figure.Figure.savefig

    def save_small(self, content, format=None, **options):
        if format != 'pdf':
            savefig(self, content, format=format, **{**options, 'dpi': 40})

    monkeypatch.setattr(figure.Figure, 'savefig', save_small)


@pytest.fixture(scope='module')
def lab(tmp_path_factory):
    """Runs sweeps in processes of their own, which may die."""
    from tests import harness  # whose fork server the other files do not need

    return harness.Lab(tmp_path_factory)


@pytest.fixture
def parse(monkeypatch):
    """`command_line.parse` of arguments, with flags of its own."""
    own = flags.FlagValues()
    config_flags.DEFINE_config_file('config', None, 'Settings.', flag_values=own)
    monkeypatch.setattr(flags, 'FLAGS', own)

    def call(*arguments):
        monkeypatch.setattr(sys, 'argv', ['binary', *arguments])  # where the overrides are read from
        return command_line.parse(sys.argv), own

    return call


@pytest.fixture(autouse=True, scope='module')
def _own_columns():
    """Undoes what the tests of a file declare: a column keeps the first role that it is given in a process."""
    before = dict(columns._TABLE)
    yield
    columns._TABLE.clear()
    columns._TABLE.update(before)
    cell_tables._rows_of.cache_clear()  # which would not declare the columns of its files again
    for entry in registry.entries().values():
        registry.declare_columns(entry)
