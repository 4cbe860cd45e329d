r"""Learners on a fixed sample: test loss against n, or n* against N; runs a sweep, leaves rows, figures and tables.

python -m experiments.learning_curves --config=experiments/configs/n_star.py --workdir=results/n_star \
    --config.seq_lens=8,16 --config.num_seeds=5
"""

import os
import pathlib

import pandas as pd
from ml_collections import config_dict

from qstr_jax import analysis, plots, registry, sweeps
from qstr_jax.analysis import combinations, floors, formats, growth, kinds, selection
from qstr_jax.cli import command_line, sample_complexity
from qstr_jax.storage import files, results


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Writes figures and tables of a results directory: one setting per point, chosen on validation prompts.

    Args:
        workdir: the results directory.
        config: says what is on the x axis, and what stands above and under the figures.
    """
    folder = pathlib.Path(workdir)
    rows = results.load(folder)
    if rows.empty:  # An early share of a sweep that had nothing to run.
        return
    _, searches, fits = kinds.split_kinds(rows)
    values = {'samples_to_threshold': searches, 'test_loss': fits}
    tables = [selection.sensitivity(some, value=value) for value, some in values.items() if len(some)]
    files.write_text(folder / 'sensitivity.md', '\n'.join(map(formats.markdown, tables)))
    finished = searches[searches['outcome'] != 'diverged']
    if len(finished):
        draw_searches(folder, selection.select(finished), config)
    finished = fits[fits['outcome'] != 'diverged']
    if len(finished):
        chosen = selection.select(finished)
        draw_losses(folder, chosen, config)
        if 'theorem6_floor' in chosen.columns:
            draw_floor(folder, chosen, config)


def draw_searches(folder: pathlib.Path, rows: pd.DataFrame, config: config_dict.ConfigDict) -> None:
    """n* against N or another setting, and which power of N or of log N it is.

    Args:
        folder: the results directory.
        rows: of `selection.select`.
        config: of `draw`.
    """
    title = combinations.title(config.title, rows)
    figure = plots.n_star_against(rows, config.x, title=title, notes=combinations.notes(config.notes, rows))
    paths = plots.save(figure, folder / 'figure')
    table = formats.markdown(analysis.samples_table(rows, config.x))
    files.write_text(folder / 'table.md', table)
    if config.x == 'seq_len':
        laws = formats.markdown(growth.growth(rows), digits=3)
        files.write_text(folder / 'growth.md', laws)
        table += f'\n{laws}'
    print(f'{table}figure: {paths[1]}')


def draw_losses(folder: pathlib.Path, rows: pd.DataFrame, config: config_dict.ConfigDict) -> None:
    """Test loss against n.

    Args:
        folder, rows, config: as for `draw_searches`.
    """
    figure = plots.learning_curves(
        rows, title=combinations.title(config.title, rows), notes=combinations.notes(config.notes, rows)
    )
    paths = plots.save(figure, folder / 'learning_curves')
    apart = analysis.curve_columns(rows, 'num_samples')
    names = list(dict.fromkeys(['task', 'seq_len', *apart]))
    losses = rows.groupby([*names, 'num_samples'], dropna=False)['test_loss'].mean().unstack('num_samples')
    table = formats.markdown(losses.reset_index(), digits=3)
    files.write_text(folder / 'table.md', table)
    print(f'{table}figure: {paths[1]}')


def draw_floor(folder: pathlib.Path, rows: pd.DataFrame, config: config_dict.ConfigDict) -> None:
    """Theorem 6's floor under the runs.

    Args:
        folder, rows, config: as for `draw_searches`; some rows are the oracle's.
    """
    rows = floors.with_floor(rows)
    figure = plots.loss_against_floor(
        rows, title=combinations.title(config.title, rows), notes=combinations.notes(config.notes, rows)
    )
    paths = plots.save(figure, folder / 'floor')
    table = formats.markdown(floors.floor_table(rows), digits=3)
    files.write_text(folder / 'floor.md', table)
    print(f'{table}figure: {paths[1]}')


def check(config: config_dict.ConfigDict, sweep: sweeps.Sweep) -> None:
    """Raises ValueError if no learner of a sweep has a fixed sample, since those are what is drawn.

    Args:
        config: of `draw`.
        sweep: what will be run.
    """
    if not any('sample_size' in registry.entries()[name].schema for name in sweep.learners):
        raise ValueError(
            f'learners={",".join(sweep.learners)}: this binary draws learners on a fixed sample, such as adamw; '
            'experiments.sample_complexity draws online training'
        )


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw, check))


if __name__ == '__main__':
    main()
