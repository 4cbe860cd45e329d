r"""Runs a sweep as a Slurm array, or as processes on this machine, with submitit (`pip install qstr_jax[launch]`).

python -m experiments.launch --config=experiments/exhibits/figure1a.py --workdir=results/figure1a --num_shards=6 \
    --executor=slurm --slurm_partition=gpu --timeout_min=240 --cpus=4 --gpus=1 --config.num_seeds=10

Each of the --num_shards jobs runs `python -m experiments.sample_complexity` on its share of the cells; all other
arguments go to it as they are. A job that Slurm preempts or that runs out of time saves its state and is queued
again. The same command, given again, runs what is missing.

submitit writes its job files and logs to --log_dir, WORKDIR-logs by default. They are pickles, which is why they may
not lie in the results directory; once the sweep is done they can be deleted.
"""

import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from absl import app, flags

from qstr_jax import sweeps
from qstr_jax.cli import base, command_line, runtime, sample_complexity
from qstr_jax.sweeps import listing

# Flags of the launcher alone; everything else on the command line belongs to the jobs.
OWN = flags.FlagValues()
EXECUTOR = flags.DEFINE_enum(
    'executor', 'slurm', ['slurm', 'local'], 'Where the jobs run: a Slurm array, or processes here.', flag_values=OWN
)
PARTITION = flags.DEFINE_string('slurm_partition', None, 'Partition of the Slurm jobs.', flag_values=OWN)
TIMEOUT = flags.DEFINE_integer(
    'timeout_min', 24 * 60, 'Minutes per job, which is then queued again.', lower_bound=1, flag_values=OWN
)
CPUS = flags.DEFINE_integer('cpus', 2, 'CPU cores per Slurm job.', lower_bound=1, flag_values=OWN)
GPUS = flags.DEFINE_integer(
    'gpus', 0, 'GPUs per job; local jobs share the first ones, and with 0 see none.', lower_bound=0, flag_values=OWN
)
MEMORY = flags.DEFINE_float('mem_gb', None, "Memory per Slurm job; the default is the cluster's.", flag_values=OWN)
LOG_DIR = flags.DEFINE_string('log_dir', None, 'Where submitit keeps job files and logs.', flag_values=OWN)
WAIT = flags.DEFINE_bool('wait', True, 'Wait for the jobs, then draw the figure.', flag_values=OWN)
POLL = flags.DEFINE_float('poll_seconds', 5.0, 'How often the jobs are looked at.', lower_bound=0, flag_values=OWN)

# Lines of a failed shard's log that are shown.
TAIL = 8


class Shard:
    """One job: a command in a process of its own. submitit pickles this, so it holds strings alone."""

    def __init__(self, command: Sequence[str], folder: str):
        self.command, self.folder = command, folder

    def __call__(self) -> None:
        # The scheduler signals the whole job; the process answers to SIGTERM, which `checkpoint` sends.
        process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            preexec_fn=lambda: signal.signal(signal.SIGUSR2, signal.SIG_IGN),
        )
        self._process = process
        try:
            while process.poll() is None:  # `wait` would hold a lock that `checkpoint` needs in its signal handler
                time.sleep(0.2)
        finally:
            if process.poll() is None:
                process.terminate()
        if process.returncode:
            raise RuntimeError(f'exit code {process.returncode}')

    def checkpoint(self) -> Any:
        """Called by submitit at a preemption or timeout: saves the state, and asks for a new job that goes on."""
        from submitit.helpers import DelayedSubmission

        self._process.terminate()
        self._process.wait()
        return DelayedSubmission(Shard(self.command, self.folder))


def log_dir(workdir: str, chosen: str | None) -> pathlib.Path:
    """Where job files go: `chosen`, or beside the results.

    Args:
        workdir: the results directory.
        chosen: the folder that the user named, if any.

    Raises:
        ValueError: it is in the results directory, where nothing may be pickled.
    """
    workdir = pathlib.Path(workdir).absolute()
    folder = pathlib.Path(chosen).absolute() if chosen else workdir.parent / f'{workdir.name}-logs'
    if folder == workdir or workdir in folder.parents:
        raise ValueError(f'log_dir={str(chosen)!r}: must lie outside the results directory {workdir}')
    return folder


def submit(shards: Sequence[Shard], folder: pathlib.Path) -> list[Any]:
    """Submits all shards as one array; returns submitit's jobs.

    Args:
        shards: the jobs.
        folder: where submitit keeps its files.

    Raises:
        sweeps.SweepError: submitit is not installed, or there is no such cluster here.
    """
    try:
        import submitit
    except ImportError:
        raise sweeps.SweepError("submitit is missing: pip install 'qstr_jax[launch]'") from None
    try:
        executor = submitit.AutoExecutor(folder, cluster=EXECUTOR.value)
    except RuntimeError as error:  # no sbatch
        raise sweeps.SweepError(f'executor={EXECUTOR.value!r} cannot be used here ({error})') from None
    executor.update_parameters(
        name='qstr_jax',
        timeout_min=TIMEOUT.value,
        cpus_per_task=CPUS.value,
        gpus_per_node=GPUS.value,
        mem_gb=MEMORY.value,
        slurm_partition=PARTITION.value,
    )
    with executor.batch():
        return [executor.submit(shard) for shard in shards]


def wait(jobs: Sequence[Any]) -> None:
    """Waits for all jobs.

    Args:
        jobs: submitit's.

    Raises:
        sweeps.SweepError: some failed; the message has the end of each one's log.
    """
    while not all(job.done() for job in jobs):
        time.sleep(POLL.value)
    failed = [(i, job, reason) for i, job in enumerate(jobs) if (reason := _failure(job))]
    if failed:
        reports = [f'shard {i}: {reason}; {job.paths.stderr} ends with\n{_tail(job)}' for i, job, reason in failed]
        raise sweeps.SweepError('\n'.join([f'{len(failed)} of {len(jobs)} shards failed', *reports]))


def _failure(job: Any) -> str | None:
    """Why a finished job failed, in a few words; None if it did not."""
    from submitit.core.utils import UncompletedJobError

    try:
        error = job.exception()
    except UncompletedJobError:  # killed, or never started
        return f'ended without a word, state {job.state}'
    if error is None:
        return None
    lines = str(error).strip().splitlines()  # a traceback, then where submitit's files are
    causes = [line for line in lines if line.startswith('RuntimeError: ')]
    return (causes or lines)[-1].removeprefix('RuntimeError: ')


def _tail(job: Any) -> str:
    """The last lines that the shard itself wrote: without submitit's own, and the traceback it adds."""
    text = (job.stderr() or '') or (job.stdout() or '')
    text = text.replace('\r', '\n').split('submitit ERROR')[0]
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith('submitit ')]
    return '\n'.join(f'    {line}' for line in lines[-TAIL:]) or '    (nothing)'


def refuse_unused() -> None:
    """Raises ValueError for a flag that would be ignored."""
    command_line.refuse_unused([name for name in command_line.SWEEP if name != 'shard_index'], 'the launcher')
    of_local = ('slurm_partition', 'cpus', 'mem_gb') if EXECUTOR.value == 'local' else ()
    ignored = dict.fromkeys(of_local, '--executor=local') | ({} if WAIT.value else {'poll_seconds': '--nowait'})
    for name, by in ignored.items():
        if OWN[name].present:
            raise ValueError(f'--{name}: {by} does not use it, leave it out')


def run(arguments: Sequence[str]) -> None:
    """Submits the shards, waits for them and draws the figure.

    Args:
        arguments: of the jobs' command line.
    """
    refuse_unused()
    workdir, num_shards = runtime.workdir(), flags.FLAGS.num_shards
    config = sample_complexity.CONFIG.value
    sweep = base.to_sweep(config)
    runtime.check()
    base.check_drawn(config, sweep)  # An impossible setting is better found here than in every job.
    if sample_complexity.DRY_RUN.value:
        print(listing.describe(sweep, workdir))
        return
    folder = log_dir(workdir, LOG_DIR.value)
    command = [sys.executable, '-m', 'experiments.sample_complexity', *arguments]
    shards = [Shard([*command, f'--shard_index={i}'], str(pathlib.Path.cwd())) for i in range(num_shards)]
    jobs = submit(shards, folder)
    print(
        f'{num_shards} jobs ({", ".join(job.job_id for job in jobs)}), logs in {folder}; '
        f'look in: python -m experiments.status --workdir={workdir}'
    )
    if WAIT.value:
        wait(jobs)
        sample_complexity.draw(workdir, config)


def parse(argv: Sequence[str]) -> list[str]:
    """Takes the launcher's own flags out; the rest is checked as the jobs will see it, and kept.

    Args:
        argv: the command line.
    """
    if '--help' in argv:
        print(OWN.get_help())
    try:
        rest = OWN([argument for argument in argv if argument != '--'], known_only=True)
    except flags.Error as error:
        sys.exit(f'error: {error}')
    command_line.parse(rest)
    return rest


def main(argv: Sequence[str]) -> None:
    """Submits and waits; an error that the user can correct is one line.

    Args:
        argv: of `parse`.
    """
    command_line.exit_on_error(lambda: run(argv[1:]))


if __name__ == '__main__':
    flags.mark_flag_as_required('config')
    app.run(main, flags_parser=parse)
