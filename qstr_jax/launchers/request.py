"""What a launcher is asked for."""

import dataclasses


class LaunchError(Exception):
    """What a user can correct, in one line."""


@dataclasses.dataclass(frozen=True)
class Request:
    """A sweep, and what its processes need.

    Attributes:
        arguments: the command line of `experiments.sample_complexity`.
        num_workers: processes of `ray`; None takes as many as there is room for. The others take --num_shards.
        cpus: cores of a process.
        gpus: GPUs of a process; 0.5 puts two processes on one.
        tpus: TPU chips of a process.
        mem_gb: memory of a process; None leaves it to the cluster.
        timeout_min: minutes of a Slurm job, which is then queued again.
        partition: of the Slurm jobs.
        log_dir: where submitit keeps its files.
        address: of a Ray cluster; None starts one here.
        wait: whether to wait for Slurm's jobs, and draw.
        poll_seconds: how often processes are looked at.
    """

    arguments: tuple[str, ...]
    num_workers: int | None = None
    cpus: int = 2
    gpus: float = 0
    tpus: int = 0
    mem_gb: float | None = None
    timeout_min: int = 24 * 60
    partition: str | None = None
    log_dir: str | None = None
    address: str | None = None
    wait: bool = True
    poll_seconds: float = 5.0

    @property
    def platform(self) -> str:
        """What JAX must find in a process: 'cpu', 'gpu' or 'tpu'."""
        return 'tpu' if self.tpus else 'gpu' if self.gpus else 'cpu'

    @property
    def devices(self) -> int:
        """The devices of a process, each of which runs a lane batch at a time."""
        return {'tpu': self.tpus, 'gpu': max(1, int(self.gpus)), 'cpu': self.cpus}[self.platform]
