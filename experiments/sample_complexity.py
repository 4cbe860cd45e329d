r"""Samples to a test loss, or losses against n, for any setting: runs a sweep, leaves rows, figures and tables.

python -m experiments.sample_complexity --config=experiments/exhibits/quickstart.py --workdir=results/quickstart \
    --config.models=transformer,ffn --config.seq_lens=8,12

A setting of the task, or of one model, is --config.task.token_dim=5, --config.rnn.width=64,128; --describe=rnn lists
them. Several values make an axis. Settings that are neither on the x axis nor a model's own get a figure per value.
"""

import importlib
import logging
import os
import pathlib
import types

from absl import flags
from ml_collections import config_dict, config_flags

from experiments import command_line, exhibits, runtime
from experiments.configs import base
from qstr_jax import sweeps
from qstr_jax.report import drawing
from qstr_jax.storage import results
from qstr_jax.sweeps import listing

CONFIG = config_flags.DEFINE_config_file('config', None, 'Settings of the sweep, a file in exhibits/ or your own.')
DRY_RUN = flags.DEFINE_bool('dry_run', False, 'List cells, lanes, parameters and work; run nothing.')


def exhibit() -> types.ModuleType | None:
    """The exhibit whose file --config names, which may draw and check in its own way."""
    path = pathlib.Path(config_flags.get_config_filename(flags.FLAGS['config'])).resolve()
    is_exhibit = str(path.parent) in exhibits.__path__
    return importlib.import_module(f'experiments.exhibits.{path.stem}') if is_exhibit else None


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Draws a results directory as the exhibit of --config does, or as all others; nothing where no lane has run."""
    if not results.load(workdir).empty:
        getattr(exhibit(), 'draw', drawing.draw)(workdir, config)


def run() -> None:
    """Runs the sweep of --config into --workdir, then draws it."""
    config, sweep = CONFIG.value, base.to_sweep(CONFIG.value)
    getattr(exhibit(), 'check', lambda *_: None)(config, sweep)
    runtime.check()
    if DRY_RUN.value:
        base.check_drawn(config, sweep)
        print(listing.describe(sweep))
        return
    workdir = runtime.workdir()
    runtime.start()
    base.check_drawn(config, sweep)  # After the start, since it may use the device.
    logging.info('sweep: %s', listing.summary(sweeps.cells_of(sweep)))
    sweeps.run(sweep, workdir, runtime.options())
    if runtime.is_first():
        draw(workdir, config)


def main() -> None:
    """The binary."""
    command_line.launch(run)


if __name__ == '__main__':
    main()
