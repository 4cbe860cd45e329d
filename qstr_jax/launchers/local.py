"""A sweep as processes of this machine, see `submitit_jobs`."""

from qstr_jax.launchers import submitit_jobs
from qstr_jax.launchers.request import Request


def run(request: Request) -> None:
    """See `qstr_jax.launchers`."""
    submitit_jobs.run('local', request)
