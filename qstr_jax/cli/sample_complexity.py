r"""Samples to a test loss, or losses against n, for any setting: runs a sweep, leaves rows, figures and tables.

python -m qstr_jax --config=experiments/exhibits/quickstart.py --workdir=results/quickstart \
    --config.models=transformer,ffn --config.seq_lens=8,12

A setting of the task, or of one model, is --config.task.token_dim=5, --config.rnn.width=64,128; --describe=rnn lists
them. Several values make an axis. Settings that are neither on the x axis nor a model's own get a figure per value.
"""

import functools
import logging
import os
import runpy
from collections.abc import Callable
from typing import Any

from absl import flags
from ml_collections import config_dict, config_flags

from qstr_jax import failures, sweeps
from qstr_jax.cli import base, command_line, runtime
from qstr_jax.storage import results
from qstr_jax.sweeps import listing, runner

CONFIG = config_flags.DEFINE_config_file('config', None, 'Settings of the sweep, a file in exhibits/ or your own.')
DRY_RUN = flags.DEFINE_bool('dry_run', False, 'List cells, lanes, parameters, work and time; run nothing.')


@functools.cache
def _names_in(path: str) -> dict[str, Any]:
    """What a config's file defines; the file is run once a command."""
    return runpy.run_path(path, run_name='config_config')  # as config_flags names it


def _of_config(name: str, default: Callable[..., None]) -> Callable[..., None]:
    """A function of the file that --config names, such as its `draw`; the default where it has none.

    It may raise anything, which becomes a line.
    """
    path, _, _ = config_flags.get_config_filename(flags.FLAGS['config']).partition('.py:')
    path = path.removesuffix('.py') + '.py'
    own = _names_in(path).get(name, default)
    if not callable(own):
        raise ValueError(f'{name}={own!r}: must be a function, in {path}')

    def in_a_line(*given: Any) -> None:
        with failures.in_a_line(f'{name} of {path}'):
            own(*given)

    return default if own is default else in_a_line


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Draws a results directory as the file of --config does, or as all others; nothing where no lane has run."""
    from qstr_jax.report import drawing  # imported here: it takes seconds, and most processes of a job draw nothing

    if not results.load(workdir).empty:
        _of_config('draw', drawing.draw)(workdir, config)


def prepared(
    start: Callable[[], None] = lambda: None, share: tuple[int, int] = (0, 1)
) -> tuple[sweeps.Sweep, tuple[sweeps.Cell, ...]] | None:
    """The sweep of --config and its cells, checked before any work; None after a dry run, which lists those of a share.

    Cells may be made on the device, so `start` is called before them.
    """
    config = CONFIG.value
    _of_config('draw', draw)  # an error if it is no function
    sweep = base.to_sweep(config, config_flags.get_override_values(flags.FLAGS['config']))
    _of_config('check', lambda *_: None)(config, sweep)  # whether the file of --config can draw it
    runtime.check()
    if not DRY_RUN.value:
        runtime.workdir()  # an error if there is none
        start()
    cells = sweeps.cells_of(sweep)
    base.check_drawn(config, cells)
    if DRY_RUN.value:
        mine, workdir = runner.share(sweep, cells, *share), runtime.workdir() if runtime.WORKDIR.value else None
        print(listing.describe(sweep, mine, workdir) if mine else runner.NO_CELLS.format(*share))
        return None
    return sweep, cells


def run() -> None:
    """Runs the sweep of --config into --workdir, then draws it."""
    index, count = runtime.share()
    found = prepared(runtime.start, (index, count))
    if found is None:
        return
    sweep, cells = found
    name = 'sweep' if count == 1 else f'share {index} of {count}'
    logging.info('%s: %s', name, listing.summary(runner.share(sweep, cells, index, count)))
    sweeps.run(sweep, runtime.workdir(), runtime.options(), cells)
    if runtime.is_first():
        draw(runtime.workdir(), CONFIG.value)


def main() -> None:
    """The binary; without --config every setting is at its default."""
    command_line.launch(run, default_config=base.__file__)
