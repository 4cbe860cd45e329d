r"""Samples to a test loss over settings, as heat maps with the published setting framed.

python -m experiments.sensitivity --config=experiments/configs/sensitivity.py:transformer --workdir=results/sensitivity
"""

import functools
import pathlib

from experiments import command_line, study
from qstr_jax import analysis, plots, studies
from qstr_jax.analysis import formats
from qstr_jax.storage import files


def table(rows, settings):
    """The summary by settings, as Markdown."""
    summary = analysis.summarize(rows, settings)
    columns = [*settings, 'num_lanes', 'num_reached', 'mean', 'min', 'max', 'lower_bound']
    return formats.markdown(summary[columns])


def draw(workdir, config):
    """Writes a heat map and a table per architecture."""
    workdir, axes = pathlib.Path(workdir), dict(config.heatmap)
    x, y, panels, top = (axes.get(name) or None for name in ('x', 'y', 'panels', 'top'))
    rows = studies.load(workdir)
    for model in analysis.model_order(rows):
        chosen = rows[rows['model'] == model]
        figure = plots.samples_heatmap(
            chosen, x, y, panels, dict(config.published), top, config.title, tuple(config.notes)
        )
        path = plots.save(figure, workdir / f'heatmap_{model}')[1]
        text = table(chosen, [name for name in (panels, y, x) if name])
        files.write_text(workdir / f'table_{model}.md', text)
        print(f'{text}figure: {path}')


if __name__ == '__main__':
    command_line.launch(functools.partial(study.main, draw))
