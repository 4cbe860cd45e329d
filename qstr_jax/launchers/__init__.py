"""Where the processes of a sweep run: a module each, named as `experiments.launch` names it, with a function `run`.

`run(request)` runs the sweep of `request.arguments` to its end and draws it, as `experiments.sample_complexity` does
with these arguments; what a user can correct ends the process with one line. `ray` imports no JAX: a process that only
hands out work must not take a device.
"""

import importlib

from qstr_jax.launchers.request import Request

NAMES = ('slurm', 'local', 'ray')


def run(name: str, request: Request) -> None:
    """Runs a sweep to its end.

    Args:
        name: one of `NAMES`.
        request: what to run, and on what.
    """
    importlib.import_module(f'{__name__}.{name}').run(request)
