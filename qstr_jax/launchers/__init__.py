"""Where the processes of a sweep run, by the names that `experiments.launch` has for it.

`ray` and `submitit_jobs` run the sweep of a request and draw it, as `experiments.sample_complexity` does with the
request's arguments; what a user can correct ends the process with one line. `ray` imports no JAX: a process that only
hands out work must not take a device.
"""

NAMES = ('slurm', 'local', 'ray')
