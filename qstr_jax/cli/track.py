"""Sends rows and curves of a results directory to an experiment tracker.

python -m qstr_jax track --workdir=results/mine --tracker=trackio
"""

from absl import flags

from qstr_jax import trackers
from qstr_jax.cli import command_line, runtime


def run() -> None:
    """Sends all lanes of --workdir."""
    number = trackers.send(runtime.workdir(), flags.FLAGS.tracker, flags.FLAGS.project)
    print(f'{number} runs in the project {flags.FLAGS.project!r} of {flags.FLAGS.tracker}')


def main() -> None:
    """The binary."""
    flags.DEFINE_enum('tracker', 'trackio', trackers.TRACKERS, 'Where the lanes go; wandb offline.')
    flags.DEFINE_string('project', 'qstr_jax', "The tracker's name for the runs.")
    command_line.launch(run, used=('workdir', 'tracker', 'project'))
