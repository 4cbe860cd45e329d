"""What a launcher is asked for."""

import dataclasses


class LaunchError(Exception):
    """What a user can correct, in one line."""


@dataclasses.dataclass(frozen=True)
class Request:
    """A sweep, and what its processes need."""

    arguments: tuple[str, ...]  # the command line of `experiments.sample_complexity`
    num_workers: int | None = None  # of `ray`; None takes as many as fit. Other launchers take --num_shards.
    cpus: int = 2  # of a process
    gpus: float = 0  # of a process; 0.5 puts two processes on one
    tpus: int = 0  # chips of a process
    mem_gb: float | None = None  # of a process; None leaves it to the cluster
    timeout_min: int = 24 * 60  # of a Slurm job, which is then queued again
    slurm_partition: str | None = None  # of the Slurm jobs
    log_dir: str | None = None  # where submitit keeps its files
    address: str | None = None  # of a Ray cluster; None starts one here
    wait: bool = True  # whether to wait for Slurm's jobs, and draw
    poll_seconds: float = 5.0  # how often processes are looked at

    @property
    def platform(self) -> str:
        """What JAX must find in a process: 'cpu', 'gpu' or 'tpu'."""
        return 'tpu' if self.tpus else 'gpu' if self.gpus else 'cpu'

    @property
    def devices(self) -> int:
        """The devices of a process, each of which runs a lane batch at a time."""
        return {'tpu': self.tpus, 'gpu': max(1, int(self.gpus)), 'cpu': self.cpus}[self.platform]
