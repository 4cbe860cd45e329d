"""Shares of a sweep as jobs of submitit: a Slurm array, or processes of this machine (`make install EXTRA=launch`).

Each of the --num_shards jobs runs `python -m experiments.sample_complexity` on its share of the cells. A job that Slurm
preempts or that runs out of time saves its state and is queued again. Job files and logs are pickles, which is why they
may not lie in the results directory; once the sweep is done they can be deleted.
"""

import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from absl import flags

from qstr_jax import sweeps
from qstr_jax.cli import command_line, runtime, sample_complexity
from qstr_jax.launchers.request import Request
from qstr_jax.storage import files

# A job goes on where it was stopped, so it may run out of time as often as it needs.
MOST_TIMEOUTS = 10**6

# Lines of a failed shard's log that are shown.
TAIL = 8


class Shard:
    """One job: a command in a process of its own. submitit pickles this, so it holds only strings."""

    def __init__(self, command: Sequence[str], folder: str) -> None:
        self.command, self.folder = command, folder

    def __call__(self) -> None:
        # The scheduler signals the whole job; the process answers to SIGTERM, which `checkpoint` sends.
        process = subprocess.Popen(
            self.command, cwd=self.folder, preexec_fn=lambda: signal.signal(signal.SIGUSR2, signal.SIG_IGN)
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
    """Where job files go: `chosen`, or beside the results."""
    if not chosen and '://' in workdir:
        raise ValueError(f'workdir={workdir!r}: job files need a folder here, give --log_dir')
    results = pathlib.Path(workdir).resolve()
    folder = pathlib.Path(chosen).resolve() if chosen else results.parent / f'{results.name}-logs'
    if folder == results or results in folder.parents:
        raise ValueError(f'log_dir={str(chosen)!r}: must lie outside the results directory {results}')
    return folder


def submit(cluster: str, shards: Sequence[Shard], folder: pathlib.Path, request: Request) -> list[Any]:
    """Submits all shards as one array; returns submitit's jobs."""
    try:
        import submitit
    except ImportError:
        raise sweeps.SweepError('submitit is missing: make install EXTRA=launch') from None
    try:
        with files.writing(f'--log_dir={str(folder)!r}'):
            executor = submitit.AutoExecutor(folder, cluster=cluster, slurm_max_num_timeout=MOST_TIMEOUTS)
    except RuntimeError as error:  # no sbatch
        raise sweeps.SweepError(f'executor={cluster!r} cannot be used here ({error})') from None
    executor.update_parameters(
        name='qstr_jax',
        timeout_min=request.timeout_min,
        cpus_per_task=request.cpus,
        gpus_per_node=int(request.gpus),
        mem_gb=request.mem_gb,
        slurm_partition=request.slurm_partition,
    )
    with executor.batch():
        return [executor.submit(shard) for shard in shards]


def wait(jobs: Sequence[Any], poll_seconds: float) -> None:
    """Waits for all jobs."""
    while not all(job.done() for job in jobs):
        time.sleep(poll_seconds)
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
        return f'ended without an error message, state {job.state}'
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


def _run(cluster: str, request: Request) -> None:
    # An impossible setting is better found here than in every job.
    if sample_complexity.prepared() is None:
        return
    workdir, num_shards = runtime.workdir(), flags.FLAGS.num_shards
    if request.gpus != int(request.gpus) or request.tpus:
        raise ValueError(f'gpus={request.gpus:g}, tpus={request.tpus}: parts of GPUs and TPUs need --executor=ray')
    folder = log_dir(workdir, request.log_dir)
    command = [sys.executable, '-m', 'experiments.sample_complexity', *request.arguments]
    shards = [Shard([*command, f'--shard_index={i}'], str(pathlib.Path.cwd())) for i in range(num_shards)]
    jobs = submit(cluster, shards, folder, request)
    print(
        f'{num_shards} jobs ({", ".join(job.job_id for job in jobs)}), logs in {folder}; '
        f'look in: python -m experiments.status --workdir={workdir}'
    )
    if request.wait:
        wait(jobs, request.poll_seconds)
        sample_complexity.draw(workdir, sample_complexity.CONFIG.value)


def run(cluster: str, request: Request) -> None:
    """Submits the shards to 'slurm' or 'local', waits for them and draws the figure."""
    command_line.parse(['experiments.launch', *request.arguments])
    command_line.exit_on_error(lambda: _run(cluster, request))
