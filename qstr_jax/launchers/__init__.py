"""Where the processes of a sweep run, by the names that `experiments.launch` has for it.

`run(request)` of a module runs the sweep of `request.arguments` to its end and draws it, as
`experiments.sample_complexity` does with these arguments; what a user can correct ends the process with one line.
`ray` imports no JAX: a process that only hands out work must not take a device.
"""

from qstr_jax.launchers.request import Request

NAMES = ('slurm', 'local', 'ray')


def run(name: str, request: Request) -> None:
    """Runs a sweep to its end by one of `NAMES`."""
    if name == 'ray':
        from qstr_jax.launchers import ray

        ray.run(request)
    else:
        from qstr_jax.launchers import submitit_jobs

        submitit_jobs.run(name, request)
