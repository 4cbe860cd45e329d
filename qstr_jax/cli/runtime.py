"""Flags that the binaries share: directories, devices, processes, shares, checkpoints, the compilation cache."""

import glob
import logging
import math
import os
import re
from collections.abc import Iterable

import jax
from absl import flags

from qstr_jax import failures, sweeps, threads
from qstr_jax.storage import files, names, provenance

WORKDIR = flags.DEFINE_multi_string(
    'workdir',
    None,
    'Directory of the results. `experiments.report` and `experiments.table1` take several, by repetition, commas or '
    'globs.',
)
OUTPUT = flags.DEFINE_string('output', None, 'Directory for what a binary makes of results, or measures.')
_DISTRIBUTED = flags.DEFINE_bool(
    'distributed', False, 'Join a jax.distributed job; on Slurm, Kubernetes and Cloud TPU nothing else is needed.'
)
_COORDINATOR = flags.DEFINE_string('coordinator', None, 'HOST:PORT of process 0, where it is not found by itself.')
_NUM_PROCESSES = flags.DEFINE_integer('num_processes', None, 'Processes of the job.', lower_bound=1)
_PROCESS_ID = flags.DEFINE_integer('process_id', None, 'Number of this process.', lower_bound=0)
_SHARD_INDEX = flags.DEFINE_integer('shard_index', 0, 'Which share of the cells to run.', lower_bound=0)
_NUM_SHARDS = flags.DEFINE_integer('num_shards', 1, 'Number of shares, for any scheduler.', lower_bound=1)
_NUM_DEVICES = flags.DEFINE_integer('num_devices', None, 'Local devices to use; all by default.', lower_bound=1)
_CHECKPOINT_SECONDS = flags.DEFINE_float(
    'checkpoint_seconds', 60.0, 'How often running lanes are saved.', lower_bound=0
)
_MEMORY_LIMIT = flags.DEFINE_float(
    'memory_limit_gb', None, 'Memory of one lane batch; measured by default.', lower_bound=0
)
_REFRESH = flags.DEFINE_bool(
    'refresh', False, 'Run cells again whose rows are of code that has changed; old rows stay in WORKDIR/replaced.'
)
_CACHE = flags.DEFINE_string(
    'compilation_cache', '~/.cache/qstr_jax/xla', 'Where compiled programs are kept between runs; empty for nowhere.'
)

# Seconds that a finished process waits for the others of its job. JAX would end the job after five minutes.
WAIT_SECONDS = 30 * 86_400


def workdir(default: str | None = None) -> str:
    """The directory of --workdir, or the default; a ValueError says that there is none, or that there are several."""
    given = WORKDIR.value or ([] if default is None else [default])
    if not ''.join(given).strip():
        raise ValueError('--workdir=DIR is missing: give a results directory')
    if len(given) > 1:
        raise ValueError(f'--workdir={", ".join(given)}: give one directory')
    return reachable('workdir', given[0])


def workdirs(arguments: Iterable[str] = ()) -> list[str]:
    """The directories of --workdir and further ones: split on commas, globs expanded, each once."""
    given = ','.join([*(WORKDIR.value or []), *arguments])
    parts = [os.path.expanduser(part.strip()) for part in given.split(',') if part.strip()]
    found = [path for part in parts for path in (sorted(glob.glob(part)) or [reachable('workdir', part)])]
    if not found:
        raise ValueError('--workdir=DIR is missing: which results should be read?')
    return list(dict.fromkeys(found))


def reachable(flag: str, path: str) -> str:
    """A path, or an address such as gs://bucket/folder; ~ is the home directory."""
    path = os.path.expanduser(path.strip())
    names.reachable(f'--{flag}={path}', path)
    return path


def output(default: str) -> str:
    """The directory of --output."""
    if OUTPUT.value is not None and not OUTPUT.value.strip():
        raise ValueError(f'--output=: give a directory, or leave the flag out for {default}')
    if OUTPUT.value is not None and ',' in OUTPUT.value:
        raise ValueError(f'--output={OUTPUT.value}: give one directory')
    return reachable('output', OUTPUT.value or default)


def start() -> None:
    """Joins the job, sets cache and precision, and logs which device is used. Call it before any computation."""
    check()
    if _CACHE.value.strip():
        cache = reachable('compilation_cache', _CACHE.value)
        jax.config.update('jax_compilation_cache_dir', str(files.make_folder(cache)))
        jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.5)
    use_all_cores()
    # A learner's programs set the precision themselves; cards and figures run models without a learner.
    if jax.config.jax_default_matmul_precision is None:  # type: ignore[attr-defined]
        jax.config.update('jax_default_matmul_precision', 'highest')
    if _is_distributed():
        try:
            jax.distributed.initialize(
                _COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value, shutdown_timeout_seconds=WAIT_SECONDS
            )
        except (RuntimeError, ValueError) as error:
            raise ValueError(f'the job cannot be joined: {failures.reason(error)}') from None
    _check_platform()
    logging.info('device: %s', provenance.describe_device())


def check() -> None:
    """Checks the values of all flags here, before any work."""
    _options()
    for flag in (_NUM_PROCESSES, _PROCESS_ID):
        if flag.value is not None and not _is_distributed():
            raise ValueError(f'--{flag.name}={flag.value}: needs --coordinator=HOST:PORT or --distributed')
    if _COORDINATOR.value is not None and not re.fullmatch(r'\S+:\d+', _COORDINATOR.value):
        raise ValueError(f'--coordinator={_COORDINATOR.value}: give HOST:PORT of process 0')
    number, count = _PROCESS_ID.value, _NUM_PROCESSES.value
    if number is not None and count is not None and number >= count:
        raise ValueError(f'--process_id={number}, --num_processes={count}: need 0 ≤ process_id < num_processes')


def _check_platform() -> None:
    """Raises ValueError where JAX finds none of the devices that it is told to use."""
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # it raises either
        asked = jax.config.jax_platforms  # type: ignore[attr-defined]
        why = str(error).partition(' (set JAX_PLATFORMS')[0] or 'JAX finds none'
        hint = f'JAX_PLATFORMS={asked}: leave it unset to use what there is; ' if asked else ''
        raise ValueError(f'{hint}no such device here: {why}') from None


def _is_distributed() -> bool:
    return _DISTRIBUTED.value or _COORDINATOR.value is not None


def use_all_cores() -> None:
    """Makes each core a device of its own, so that a lane runs on each at the same time.

    The small products of a lane hardly use a second core: two lanes side by side on two cores make 1.0 (RNN) to 2.4
    (FFN, N = 4) times as many steps a second as one after the other (experiments/benchmarks/README.md). Rows do not
    depend on the number of devices. A number of CPU devices that the user has set stays as it is.
    """
    is_set = 'xla_force_host_platform_device_count' in os.environ.get('XLA_FLAGS', '')
    if jax.config.jax_num_cpu_devices < 1 and not is_set:  # type: ignore[attr-defined]
        try:
            jax.config.update('jax_num_cpu_devices', threads.cores())
        except RuntimeError:
            logging.warning('JAX has started already, in a plugin or config: all lanes run on one core')


def is_first() -> bool:
    """Waits for all processes of the job; True in the one that draws."""
    first = jax.process_index() == 0
    if jax.process_count() > 1:
        jax.distributed.shutdown()
    return first


def share() -> tuple[int, int]:
    """Which share of the cells the flags ask for, of how many."""
    return _SHARD_INDEX.value, _NUM_SHARDS.value


def options() -> sweeps.Options:
    """The options that the flags ask for."""
    return _options(progress=jax.process_index() == 0)


def _options(progress: bool = True) -> sweeps.Options:
    limit = _MEMORY_LIMIT.value
    if limit is not None and not 0 < limit < math.inf:
        raise ValueError(f'--memory_limit_gb={limit:g}: must be positive and finite; without it the limit is measured')
    return sweeps.Options(
        progress=progress,
        checkpoint_seconds=_CHECKPOINT_SECONDS.value,
        memory_limit=None if limit is None else max(1, int(min(limit, 2**30) * 2**30)),
        shard_index=_SHARD_INDEX.value,
        num_shards=_NUM_SHARDS.value,
        num_devices=_NUM_DEVICES.value,
        refresh=_REFRESH.value,
    )
