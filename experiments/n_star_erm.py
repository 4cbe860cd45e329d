r"""n* of ERMs beside what memorising allows: runs one part of a sweep, and draws all parts of the directory so far.

python -m experiments.n_star_erm --config=experiments/configs/n_star_erm.py:log --workdir=results/n_star_erm
"""

import os
import pathlib

import pandas as pd
from ml_collections import config_dict

from experiments import learning_curves
from qstr_jax import analysis, plots, registry, sweeps
from qstr_jax.analysis import combinations, erms, formats, growth, kinds, selection
from qstr_jax.cli import command_line, sample_complexity
from qstr_jax.storage import files, results
from qstr_jax.theory import memory_lines

_POINT = ['encoding_factor', 'encoding_dim', 'radius', 'seq_len']


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Writes figure and tables: n* of all parts, capacity, twisted teachers, the ERMs that err, fits of random labels.

    Args:
        workdir: the results directory.
        config: of the part that was run last.
    """
    folder = pathlib.Path(workdir)
    rows = results.load(folder)
    if rows.empty:
        return
    rows, curves = (_with_points(table) for table in (rows, results.load_curves(folder, rows=rows)))
    parts = kinds.split_kinds(rows)
    if len(parts.fits):
        risks = parts.fits.pivot_table(index=_POINT, columns='num_samples', values='train_risk', dropna=False)
        table = formats.markdown(risks.dropna(how='all').reset_index(), digits=3)
        files.write_text(folder / 'labels.md', table)
    searches = parts.searches[parts.searches['outcome'] != 'diverged']
    if searches.empty:
        return
    chosen = selection.select(searches)
    lines = _lines(rows, chosen, curves)
    title = combinations.title('{task}: n* of constrained ERM, {risk} risk', searches)
    figure = plots.n_star_against(chosen, lines=lines, title=title, notes=combinations.notes(config.notes, chosen))
    paths = plots.save(figure, folder / 'figure')
    table = formats.markdown(analysis.samples_table(chosen))
    files.write_text(folder / 'table.md', table)
    files.write_text(folder / 'growth.md', formats.markdown(growth.growth(chosen), digits=3))
    files.write_text(folder / 'lines.md', formats.markdown(lines, digits=3))
    print(f'{table}figure: {paths[1]}')


def _with_points(table: pd.DataFrame) -> pd.DataFrame:
    """A table with all columns of points; those that nobody has set, such as a rule for d_e, are missing values."""
    return table.assign(**{name: float('nan') for name in _POINT if name not in table.columns})


def _lines(rows: pd.DataFrame, chosen: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """What lies beside n*: the ERMs that were found and err, the capacity for random labels, twisted teachers."""
    failing = erms.failing(curves[curves['is_search'].eq(True)], [name for name in _POINT if name != 'radius'])
    parts = (
        failing.assign(name='an ERM that was found errs', samples=failing['samples'].replace(0, float('nan'))),
        memory_lines.capacity_lines(rows),
        memory_lines.twisted_lines(chosen, threshold=chosen['threshold'].iloc[0]),
    )
    columns = ['name', 'encoding_factor', 'encoding_dim', 'seq_len', 'samples']
    return pd.concat([part[columns] for part in parts], ignore_index=True)


def check(config: config_dict.ConfigDict, sweep: sweeps.Sweep) -> None:
    """Raises ValueError unless all learners find ERMs in a ball, since those are what is drawn.

    Args:
        config: of `draw`.
        sweep: what will be run.
    """
    learning_curves.check(config, sweep)
    others = [name for name in sweep.learners if 'radius' not in registry.entries()[name].schema]
    if others:
        raise ValueError(
            f'learners={",".join(others)}: this binary draws ERMs in a ball, of learners with a radius, such as '
            'constrained; experiments.learning_curves draws the others'
        )


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw, check))


if __name__ == '__main__':
    main()
