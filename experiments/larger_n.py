r"""Samples and seconds to a test loss at large N: the sample-complexity sweep, with its cost beside it.

python -m experiments.larger_n --config=experiments/configs/larger_n.py --workdir=results/larger_n
"""

import os
import pathlib

from ml_collections import config_dict

from qstr_jax import analysis, plots
from qstr_jax.analysis import combinations, formats
from qstr_jax.cli import command_line, sample_complexity
from qstr_jax.storage import files, provenance, results


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """What `sample_complexity` draws, with its figure on logarithmic axes, and samples and seconds side by side.

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
        words = {
            'title': combinations.title(config.title, chosen, point),
            'notes': combinations.notes(config.notes, chosen),
        }
        suffix = combinations.suffix(point)
        # On linear axes all small N would lie in one corner.
        plots.save(plots.n_star_against(chosen, config.x, **words), folder / f'figure{suffix}')
        plots.save(plots.samples_and_seconds(chosen, seconds, config.x, **words), folder / f'cost{suffix}')
    table = seconds.drop(columns=['cell', 'wall_seconds']).sort_values(['model', 'seq_len'])
    files.write_text(folder / 'seconds.md', formats.markdown(table))


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw, sample_complexity.check_samples))


if __name__ == '__main__':
    main()
