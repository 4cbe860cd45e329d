"""How many times faster training steps and tests are than a baseline's, per cell, beside the factor aimed at."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import AXIS_NAMES, STYLE, display, frame, looks

PANELS = (('step', 'training steps'), ('test', 'test evaluations'))


def speed(records: pd.DataFrame, targets: Mapping = (), title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Bars of baseline seconds / our seconds, one per model and length; a dash at each target; 1 is as fast.

    Args:
        records: a row per cell with exhibit, model, seq_len and {ours, torch}_{step, test}_{seconds, low, high}; the
            error bar runs over the ratios of the rounds' extremes.
        targets: (exhibit, model) → factor aimed at.
        title, notes: above the figure, and small under it.
    """
    analysis.require(records, ('exhibit', 'model', 'seq_len', 'ours_step_seconds', 'torch_step_seconds'))
    models = analysis.model_order(records)
    look = looks(models)
    lengths = sorted(set(records['seq_len']))
    width = 0.8 / len(models)
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(PANELS), title, notes)
        for axis, (kind, name) in zip(axes, PANELS, strict=True):
            for i, model in enumerate(models):
                cells = records[records['model'] == model]
                x = np.array([lengths.index(n) for n in cells['seq_len']]) + (i - (len(models) - 1) / 2) * width
                ours, theirs = (cells[f'{who}_{kind}_seconds'] for who in ('ours', 'torch'))
                ratio = theirs / ours
                low = cells[f'torch_{kind}_low'] / cells[f'ours_{kind}_high']
                high = cells[f'torch_{kind}_high'] / cells[f'ours_{kind}_low']
                axis.bar(x, ratio, width, color=look[model][0], label=display(model), gid=f'{kind} {model}',
                         yerr=[ratio - low, high - ratio], error_kw={'elinewidth': 0.6, 'ecolor': '0.3'})
                aims = [dict(targets).get((exhibit, model), np.nan) for exhibit in cells['exhibit']]
                if kind == 'step':
                    axis.hlines(aims, x - width / 2, x + width / 2, color='black', linewidth=1.2)
            axis.axhline(1, color='0.4', linewidth=0.6)
            axis.set(yscale='log', xlabel=AXIS_NAMES['seq_len'], ylabel=f'{name}: times PyTorch')
            axis.xaxis.set(major_locator=ticker.FixedLocator(range(len(lengths))),
                           major_formatter=ticker.FixedFormatter([str(n) for n in lengths]))
            axis.yaxis.set(major_locator=ticker.LogLocator(subs=(1, 2, 4)), major_formatter='{x:g}',
                           minor_locator=ticker.NullLocator())
            axis.grid(False, axis='x')
        axes[0].legend(loc='lower left', bbox_to_anchor=(0, 1.0), ncols=len(models), borderaxespad=0.2)
        figure.set_figheight(figure.get_figheight() + 0.2)
    return figure
