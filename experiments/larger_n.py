r"""Samples and seconds to a test loss at large N: the sample-complexity sweep, with its cost beside it.

python -m experiments.larger_n --config=experiments/configs/larger_n.py --workdir=results/larger_n
"""

import pathlib

from experiments import command_line, sample_complexity
from qstr_jax import plots, studies
from qstr_jax.analysis import formats
from qstr_jax.storage import files, results


def draw(workdir, config):
    """What `sample_complexity` draws, and samples and seconds side by side."""
    sample_complexity.draw(workdir, config)
    workdir = pathlib.Path(workdir)
    rows, seconds = results.load(workdir), studies.seconds(workdir)
    if rows.empty:
        return
    plots.save(plots.cost(rows, seconds, config.title, tuple(config.notes)), workdir / 'cost')
    columns = ['model', 'seq_len', 'device', 'lanes', 'seconds_per_lane', 'compile_seconds']
    table = seconds.sort_values(['model', 'seq_len'])[columns]
    files.write_text(workdir / 'seconds.md', formats.markdown(table))


if __name__ == '__main__':
    command_line.launch(lambda: sample_complexity.run(draw))
