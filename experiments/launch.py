r"""Runs a sweep on a Slurm cluster, a Ray cluster, or as processes of this machine.

python -m experiments.launch --config=experiments/exhibits/figure1a.py --workdir=results/figure1a \
    --executor=ray --cpus=1 --gpus=1 --config.num_seeds=10
python -m experiments.launch --config=experiments/exhibits/figure1a.py --workdir=results/figure1a \
    --executor=slurm --num_shards=6 --slurm_partition=gpu --timeout_min=240 --cpus=4 --gpus=1

Arguments that are not the launcher's are those of `experiments.sample_complexity`. The same command, given again, runs
what is missing; docs/tutorials/cluster.md says which executor to take when.
"""

import math
import re
import sys
from collections.abc import Sequence

from absl import app, flags

from qstr_jax import launchers
from qstr_jax.launchers.request import Request

# Flags of the launcher itself; all but the first have the names of fields of `Request`. Everything else on the command
# line belongs to the jobs. No JAX is imported here: a process that only hands out work must not take a device.
OWN = flags.FlagValues()
EXECUTOR = flags.DEFINE_enum('executor', 'slurm', launchers.NAMES, 'What runs the processes.', flag_values=OWN)
flags.DEFINE_integer(
    'num_workers', None, 'Processes of ray; by default as many as fit. Others take --num_shards.',
    lower_bound=1, flag_values=OWN,
)  # fmt: skip
flags.DEFINE_string('address', None, 'Ray cluster to join, or auto; without it one starts here.', flag_values=OWN)
flags.DEFINE_string('slurm_partition', None, 'Partition of the Slurm jobs.', flag_values=OWN)
flags.DEFINE_integer(
    'timeout_min', 24 * 60, 'Minutes per Slurm job, which is then queued again.', lower_bound=1, flag_values=OWN
)
flags.DEFINE_integer('cpus', 2, 'CPU cores per process.', lower_bound=1, flag_values=OWN)
flags.DEFINE_float(
    'gpus', 0, 'GPUs per process, with ray also 0.5; local processes share the first GPUs, and with 0 see none.',
    lower_bound=0, flag_values=OWN,
)  # fmt: skip
flags.DEFINE_integer('tpus', 0, 'TPU chips per process, with ray.', lower_bound=0, flag_values=OWN)
flags.DEFINE_float('mem_gb', None, "Memory per process; the default is the cluster's.", lower_bound=0, flag_values=OWN)
flags.DEFINE_string('log_dir', None, 'Where submitit keeps job files and logs.', flag_values=OWN)
WAIT = flags.DEFINE_bool('wait', True, 'Wait for the Slurm jobs, then draw the figure.', flag_values=OWN)
flags.DEFINE_float('poll_seconds', 5.0, 'How often processes are looked at.', lower_bound=0, flag_values=OWN)


# The flags that an executor does not use.
UNUSED = {
    'slurm': ('num_workers', 'address', 'tpus'),
    'local': ('num_workers', 'address', 'tpus', 'slurm_partition', 'cpus', 'mem_gb'),
    'ray': ('slurm_partition', 'timeout_min', 'log_dir', 'wait'),
}
# Flags of `experiments.sample_complexity` that no launcher uses, and those that Ray's does not use, since it gives its
# workers a lane batch at a time.
UNUSED_OF_SWEEP = ('shard_index', 'describe')
UNUSED_BY_RAY = ('num_shards', 'distributed', 'coordinator', 'num_processes', 'process_id')


def refuse_unused(arguments: Sequence[str]) -> None:
    """Ends the process with one line for a flag that would be ignored."""
    ignored = dict.fromkeys(UNUSED[EXECUTOR.value], f'--executor={EXECUTOR.value}')
    for name, by in (ignored | ({} if WAIT.value else {'poll_seconds': '--nowait'})).items():
        if OWN[name].present:
            sys.exit(f'error: --{name}: {by} does not use it, leave it out')
    for name in UNUSED_OF_SWEEP + (UNUSED_BY_RAY if EXECUTOR.value == 'ray' else ()):
        if any(re.match(f'--?{name}(=|$)', word) for word in arguments):
            sys.exit(f'error: --{name}: --executor={EXECUTOR.value} does not use it, leave it out')


def parse(argv: Sequence[str]) -> list[str]:
    """Takes the launcher's own flags out; the rest is kept for the jobs."""
    if '--help' in argv:
        print(OWN.get_help())
    try:
        rest = OWN([argument for argument in argv if argument != '--'], known_only=True)
    except flags.Error as error:
        sys.exit(f'error: {error}')
    refuse_unused(rest)
    flags.FLAGS(rest[:1])  # absl reads its own flags from here
    return rest


def main(argv: Sequence[str]) -> None:
    """Runs the sweep; an error that the user can correct is one line."""
    own = OWN.flag_values_dict()
    for name in 'gpus', 'mem_gb', 'poll_seconds':
        if not math.isfinite(own[name] or 0):
            sys.exit(f'error: --{name}={own[name]}: must be a finite number')
    executor, request = own.pop('executor'), Request(arguments=tuple(argv[1:]), **own)
    if executor == 'ray':
        from qstr_jax.launchers import ray

        ray.run(request)
    else:
        from qstr_jax.launchers import submitit_jobs

        submitit_jobs.run(executor, request)


if __name__ == '__main__':
    app.run(main, flags_parser=parse)
