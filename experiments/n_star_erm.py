r"""n* of ERMs beside what memorising allows: runs a sweep as `learning_curves`, and draws all parts in one figure.

python -m experiments.n_star_erm --config=experiments/configs/n_star_erm.py:log --workdir=results/n_star_erm
"""

import os
import pathlib

import pandas as pd
from ml_collections import config_dict

from experiments import command_line, learning_curves, sample_complexity
from qstr_jax import plots
from qstr_jax.analysis import erms, formats, growth, kinds, selection
from qstr_jax.storage import files, results
from qstr_jax.theory import memory_lines


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """What `learning_curves` draws, and n* of all parts with the lines of capacity and of twisted teachers.

    Args:
        workdir: the results directory, with the parts that were run so far.
        config: of the part that was run last.
    """
    learning_curves.draw(workdir, config)
    folder = pathlib.Path(workdir)
    rows = results.load(folder)
    searches = kinds.split_kinds(rows).searches if len(rows) else rows
    searches = searches[searches['outcome'] != 'diverged'] if len(rows) else rows
    if searches.empty:
        return
    chosen = selection.select(searches)
    twisted = memory_lines.twisted_lines(chosen, threshold=chosen['threshold'].iloc[0])
    lines = pd.concat([memory_lines.capacity_lines(rows), twisted], ignore_index=True)
    title = '1STR: n* of constrained ERM, point-wise risk'
    plots.save(plots.n_star_against(chosen, lines=lines, title=title, notes=tuple(config.notes)), folder / 'erm')
    fits = results.load_curves(folder)
    by = ['encoding_factor', 'encoding_dim', 'radius', 'seq_len']
    errs = erms.failing(fits[fits['is_search'].eq(True)], by).assign(name='an ERM that was found errs')
    tables = growth.growth(chosen), lines.drop(columns='max_coherence'), errs[['name', *by, 'samples', 'num_lanes']]
    files.write_text(folder / 'erm.md', '\n'.join(formats.markdown(table, digits=3) for table in tables))


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw, learning_curves.check))


if __name__ == '__main__':
    main()
