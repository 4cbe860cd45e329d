r"""Samples to a test loss over two or three settings, as heat maps with the published setting framed.

python -m experiments.sensitivity --config=experiments/configs/sensitivity.py:transformer --workdir=results/sensitivity

Any settings can be on the axes: --config.heatmap.x=rnn_width --config.heatmap.y=learning_rate, as the rows call them.
"""

import os
import pathlib
from collections.abc import Sequence

import pandas as pd
from ml_collections import config_dict

from qstr_jax import analysis, plots, sweeps
from qstr_jax.analysis import combinations, formats
from qstr_jax.cli import command_line, sample_complexity
from qstr_jax.storage import files, results


def table(rows: pd.DataFrame, settings: Sequence[str]) -> str:
    """The summary by settings, as Markdown.

    Args:
        rows: one row per lane, of one architecture.
        settings: the columns that tell the points apart.
    """
    columns = [*settings, 'num_lanes', 'num_reached', 'mean', 'min', 'max', 'lower_bound']
    return formats.markdown(analysis.summarize(rows, settings)[columns])


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Writes a heat map and a table per architecture, and per combination of further settings.

    Args:
        workdir: the results directory.
        config: says which settings are on the axes.
    """
    folder, rows = pathlib.Path(workdir), results.load(workdir)
    if rows.empty:  # An early share of a sweep that had nothing to run.
        return
    x, y, panels, top = (config.heatmap.get(name) or None for name in ('x', 'y', 'panels', 'top'))
    axes = [name for name in (x, y, panels) if name]
    for point, chosen in combinations.combinations(rows, axes):
        (model,) = set(chosen['model'])
        others = {name: value for name, value in point.items() if name != 'model'}
        figure = plots.samples_heatmap(
            chosen, x, y, panels=panels, published=dict(config.published), top=top,
            title=combinations.title(config.title, chosen, others), notes=combinations.notes(config.notes, chosen),
        )  # fmt: skip
        name = f'{model}{combinations.suffix(others)}'
        path = plots.save(figure, folder / f'heatmap_{name}')[1]
        text = table(chosen, axes[::-1])
        files.write_text(folder / f'table_{name}.md', text)
        print(f'{text}figure: {path}')


def check(config: config_dict.ConfigDict, sweep: sweeps.Sweep) -> None:
    """Raises ValueError unless two settings are on the axes, and lanes train until a test loss is reached.

    Args:
        config: of `draw`.
        sweep: what will be run.
    """
    for name in 'x', 'y':
        if not config.heatmap[name]:
            raise ValueError(f'heatmap.{name} is missing: which column is on this axis?')
    sample_complexity.check_samples(config, sweep)


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw, check))


if __name__ == '__main__':
    main()
