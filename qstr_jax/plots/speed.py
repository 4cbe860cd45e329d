"""How many times as many training steps and tests a second as a baseline."""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.plots.labels import display
from qstr_jax.plots.panels import log_ticks
from qstr_jax.plots.style import STYLE, frame, looks

# The columns of ours and of the baseline, and the title.
PANELS = (
    ('all_step', 'torch_step', 'training steps, a lane per device'),
    ('ours_test', 'torch_test', 'tests, one lane'),
)


def speed(records: pd.DataFrame, *, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Bars of the baseline's seconds over ours, one per model and length; at the line both are as fast.

    Args:
        records: a row per cell with model, seq_len, devices and, for each of all_step, ours_test, torch_step and
            torch_test, NAME_seconds, NAME_low and NAME_high over rounds. In `all_step` seconds every device makes a
            step. The error bar runs over the ratios of the rounds' extremes.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(records, ('model', 'seq_len', 'devices', *(f'{name}_seconds' for p in PANELS for name in p[:2])))
    models = analysis.model_order(records)
    lengths = sorted(set(records['seq_len']))
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(PANELS), title, notes)
        for axis, (ours, theirs, name) in zip(axes, PANELS, strict=True):
            for place, model in enumerate(models):
                width = 0.8 / len(models)
                shift = (place - (len(models) - 1) / 2) * width
                cells = records[records['model'] == model]
                places = np.array([lengths.index(length) for length in cells['seq_len']]) + shift
                _draw_bars(axis, cells, places, (ours, theirs), width)
            axis.axhline(1, color='0.4', linewidth=0.8)
            axis.set(yscale='log', xlabel=columns.label('seq_len'), ylabel='times PyTorch', title=name)
            axis.set_xticks(range(len(lengths)), labels=[str(length) for length in lengths])
            log_ticks(axis.yaxis, subs=(1, 2, 4))
            axis.grid(False, axis='x')
        figure.legend(*axes[0].get_legend_handles_labels(), loc='outside upper left', ncols=len(models))
        figure.set_figheight(figure.get_figheight() + 0.3)
    return figure


def _draw_bars(axis: Axes, cells: pd.DataFrame, places: np.ndarray, names: tuple[str, str], width: float) -> None:
    """The bars of one model, with error bars."""
    (ours, theirs), model = names, cells['model'].iloc[0]
    lanes = cells['devices'] if ours == 'all_step' else 1
    ratio = lanes * cells[f'{theirs}_seconds'] / cells[f'{ours}_seconds']
    low = lanes * cells[f'{theirs}_low'] / cells[f'{ours}_high']
    high = lanes * cells[f'{theirs}_high'] / cells[f'{ours}_low']
    axis.bar(
        places,
        ratio,
        width,
        color=looks([model])[model][0],
        label=display(model),
        gid=f'{ours} {model}',
        yerr=[ratio - low, high - ratio],
        error_kw={'elinewidth': 0.6, 'ecolor': '0.3'},
    )
