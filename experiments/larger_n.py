r"""Samples and seconds to a test loss at large N: the sample-complexity sweep, with its cost beside it.

python -m experiments.larger_n --config=experiments/configs/larger_n.py --workdir=results/larger_n
"""

import os
import pathlib

from ml_collections import config_dict

from experiments import command_line, sample_complexity
from qstr_jax import analysis, plots
from qstr_jax.analysis import combinations, formats
from qstr_jax.storage import files, provenance, results


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """What `sample_complexity` draws, and samples and seconds side by side.

    Args:
        workdir: the results directory.
        config: of the sweep.
    """
    sample_complexity.draw(workdir, config)
    folder = pathlib.Path(workdir)
    rows = results.load(folder)
    if rows.empty:
        return
    seconds = analysis.seconds_per_cell(provenance.load(folder), rows)
    for point, chosen in combinations.combinations(rows, (config.x,), combinations.model_settings(rows)):
        title = combinations.title(config.title, chosen, point)
        figure = plots.samples_and_seconds(chosen, seconds, config.x, title=title, notes=tuple(config.notes))
        plots.save(figure, folder / f'cost{combinations.suffix(point)}')
    table = seconds.drop(columns=['cell', 'wall_seconds']).sort_values(['model', 'seq_len'])
    files.write_text(folder / 'seconds.md', formats.markdown(table))


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw, sample_complexity.check_samples))


if __name__ == '__main__':
    main()
