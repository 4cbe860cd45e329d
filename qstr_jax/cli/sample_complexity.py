r"""Samples to a test loss against N, q or any other setting: runs a sweep, leaves rows, figures and tables.

python -m qstr_jax --config=experiments/configs/figure1a.py --workdir=results/figure1a \
    --config.models=transformer,ffn --config.seq_lens=8,12

A setting of the task, or of one model, is --config.task.token_dim=5, --config.rnn.width=64,128; --describe=rnn lists
them. Several values make an axis. Settings that are neither on the x axis nor a model's own get a figure per value.
"""

import logging
import os
import pathlib
from collections.abc import Callable

import pandas as pd
from absl import flags
from ml_collections import config_dict, config_flags

from qstr_jax import analysis, columns, plots, sweeps
from qstr_jax.analysis import combinations, crossings, formats, kinds, published, tuning
from qstr_jax.cli import base, command_line, runtime
from qstr_jax.storage import files, results
from qstr_jax.sweeps import listing, tune, tuned

CONFIG = config_flags.DEFINE_config_file('config', None, 'Settings of the sweep, a file in experiments/configs or your own.')
DRY_RUN = flags.DEFINE_bool('dry_run', False, 'List cells, lanes, parameters, work and time; run nothing.')

Draw = Callable[[str | os.PathLike, config_dict.ConfigDict], None]
Check = Callable[[config_dict.ConfigDict, sweeps.Sweep], None]


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Writes figures, training curves and tables of a results directory.

    Args:
        workdir: the results directory.
        config: says what is on the x axis, and what stands above and under the figures.
    """
    folder = pathlib.Path(workdir)
    rows, curves = results.load(folder), results.load_curves(folder)
    if rows.empty:  # An early share of a sweep that had nothing to run.
        return
    online = crossings.at_thresholds(kinds.split_kinds(rows).online)
    together = [*analysis.ALWAYS_NAMED, *combinations.model_settings(online)]
    for point, chosen in combinations.combinations(online, (config.x,), together):
        draw_one(folder, config, chosen, point)
    if crossings.has_crossings(rows):
        for point, chosen in combinations.combinations(online, ('threshold',), together):
            title = combinations.title(config.title, chosen, point)
            figure = plots.samples_against_threshold(
                chosen, title=title, notes=combinations.notes(config.notes, chosen)
            )
            plots.save(figure, folder / f'thresholds{combinations.suffix(point)}')
    draw_curves(folder, kinds.split_kinds(curves).online, config.x)
    draw_tuning(folder, config)


def draw_one(
    folder: pathlib.Path, config: config_dict.ConfigDict, rows: pd.DataFrame, point: combinations.Point
) -> None:
    """Writes figure and table of one combination of settings.

    Args:
        folder: the results directory.
        config: of `draw`.
        rows: of these settings.
        point: the settings that the file's name needs.
    """
    suffix, x = combinations.suffix(point), config.x
    reference = published.published_samples(rows, config.reference, config.reference_for) if x == 'seq_len' else {}
    title = combinations.title(config.title, rows, point)
    figure = plots.samples_against(
        rows, x, reference=reference, title=title, notes=combinations.notes(config.notes, rows)
    )
    paths = plots.save(figure, folder / f'figure{suffix}')
    table = formats.markdown(analysis.samples_table(rows, x))
    files.write_text(folder / f'table{suffix}.md', table)
    print(f'{table}figure: {paths[1]}')


def draw_curves(folder: pathlib.Path, curves: pd.DataFrame, x: str) -> None:
    """Writes the training curves of all lanes, shaded by the setting on the x axis; one figure per further setting.

    Args:
        folder: the results directory.
        curves: of online training.
        x: a setting.
    """
    for point, chosen in combinations.combinations(curves, (x,), ('model',)):
        threshold = chosen['threshold'].iloc[0] if chosen['threshold'].nunique() == 1 else None
        figure = plots.training_curves(chosen, by=x, threshold=threshold, title=combinations.title('', chosen, point))
        plots.save(figure, folder / f'curves{combinations.suffix(point)}')


def draw_tuning(folder: pathlib.Path, config: config_dict.ConfigDict) -> None:
    """Writes what each tuned setting was chosen from: a figure and a table; nothing where nothing was tuned.

    Args:
        folder: the results directory.
        config: of `draw`.
    """
    selection = folder / tuned.SELECTION
    if not (selection / 'config.json').exists():
        return
    rows = tuning.longest(results.load(selection))
    for setting in (name for name, value in config.tune.items() if value is not None and name not in tune.OPTIONS):
        title = f'Choosing the {columns.label(setting)}'
        plots.save(plots.tuning(rows, setting, config.x, title=title), folder / f'tuning_{setting}')
    table = formats.markdown(tuning.chosen(results.load(folder), config.x))
    files.write_text(folder / 'tuning.md', table)


def check_samples(config: config_dict.ConfigDict, sweep: sweeps.Sweep) -> None:
    """Raises ValueError unless lanes train until a test loss is reached, which is what is drawn.

    Args:
        config: of `draw`.
        sweep: what will be run.
    """
    if sweep.num_samples:
        raise ValueError(
            f'num_samples={sweep.num_samples}: this binary draws samples to a threshold; '
            'experiments.learning_curves draws losses against n'
        )


def run(draw: Draw = draw, check: Check | None = None) -> None:
    """Runs the sweep of --config into --workdir, then draws it.

    Args:
        draw: called with the directory and the config.
        check: raises ValueError before any work if `draw` cannot draw such a sweep.
    """
    config, sweep = CONFIG.value, base.to_sweep(CONFIG.value)
    if check is not None:
        check(config, sweep)
    runtime.check()
    if DRY_RUN.value:
        base.check_drawn(config, sweep)
        print(listing.describe(sweep, runtime.workdir() if runtime.WORKDIR.value else None))
        return
    workdir = runtime.workdir()
    runtime.start()
    base.check_drawn(config, sweep)  # After the start, since it may use the device.
    logging.info('sweep: %s', listing.summary(sweeps.cells_of(sweep)))
    sweeps.run(sweep, workdir, runtime.options())
    if runtime.is_first():
        draw(workdir, config)


def main() -> None:
    """The binary; without --config every setting is at its default."""
    command_line.launch(run, default_config=base.__file__)


if __name__ == '__main__':
    main()
