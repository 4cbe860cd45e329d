"""How many times as many training steps and tests a second as a baseline, per cell."""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.figure import Figure

from qstr_jax import analysis
from qstr_jax.plots.style import AXIS_NAMES, STYLE, display, frame, looks

# (columns of ours, of the baseline, title)
PANELS = (
    ('all_step', 'torch_step', 'training steps, a lane per device'),
    ('ours_test', 'torch_test', 'tests, one lane'),
)


def speed(records: pd.DataFrame, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Bars of ours over the baseline, one per model and length; the line at 1 is as fast.

    Args:
        records: a row per cell with model, seq_len, devices and, for each of all_step, ours_test, torch_step and
            torch_test, NAME_seconds, NAME_low and NAME_high over rounds. In `all_step` seconds every device makes a
            step. The error bar runs over the ratios of the rounds' extremes.
        title, notes: above the figure, and small under it.
    """
    analysis.require(records, ('model', 'seq_len', 'devices', *(f'{name}_seconds' for p in PANELS for name in p[:2])))
    models = analysis.model_order(records)
    look = looks(models)
    lengths = sorted(set(records['seq_len']))
    width = 0.8 / len(models)
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(PANELS), title, notes)
        for axis, (ours, theirs, name) in zip(axes, PANELS, strict=True):
            for i, model in enumerate(models):
                cells = records[records['model'] == model]
                x = np.array([lengths.index(n) for n in cells['seq_len']]) + (i - (len(models) - 1) / 2) * width
                lanes = cells['devices'] if ours == 'all_step' else 1
                ratio = lanes * cells[f'{theirs}_seconds'] / cells[f'{ours}_seconds']
                low = lanes * cells[f'{theirs}_low'] / cells[f'{ours}_high']
                high = lanes * cells[f'{theirs}_high'] / cells[f'{ours}_low']
                axis.bar(
                    x,
                    ratio,
                    width,
                    color=look[model][0],
                    label=display(model),
                    gid=f'{ours} {model}',
                    yerr=[ratio - low, high - ratio],
                    error_kw={'elinewidth': 0.6, 'ecolor': '0.3'},
                )
            axis.axhline(1, color='0.4', linewidth=0.8)
            axis.set(yscale='log', xlabel=AXIS_NAMES['seq_len'], ylabel='times PyTorch')
            axis.set_title(name)
            axis.xaxis.set(
                major_locator=ticker.FixedLocator(range(len(lengths))),
                major_formatter=ticker.FixedFormatter([str(n) for n in lengths]),
            )
            axis.yaxis.set(
                major_locator=ticker.LogLocator(subs=(1, 2, 4)),
                major_formatter='{x:g}',
                minor_locator=ticker.NullLocator(),
            )
            axis.grid(False, axis='x')
        figure.legend(*axes[0].get_legend_handles_labels(), loc='outside upper left', ncols=len(models))
        figure.set_figheight(figure.get_figheight() + 0.3)
    return figure
