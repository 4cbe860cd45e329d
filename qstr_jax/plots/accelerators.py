"""What programs take to compile for accelerators, and how long their steps are estimated to take."""

from collections.abc import Sequence

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from qstr_jax import analysis, columns
from qstr_jax.plots.labels import display
from qstr_jax.plots.panels import log_ticks
from qstr_jax.plots.style import STYLE, frame, legend_line, looks, make_room

# The column, the factor of its unit, and the title.
PANELS = (
    ('compile_cpu_seconds', 1.0, 'seconds of a core to compile'),
    ('memory_bytes', 2**-20, 'MiB, by the compiler'),
    ('estimated_step_seconds', 1e6, 'estimated µs per step'),
)
_NOTE = (
    'nothing was run on an accelerator; an estimate is a lower bound by published peaks, bandwidths and launch costs'
)


def accelerators(entries: pd.DataFrame, *, title: str = '', notes: Sequence[str] = ()) -> Figure:
    """Curves against N: a colour per architecture, a line style per device.

    Args:
        entries: a row per program, with device, model, seq_len and the columns of `PANELS`.
        title: above the figure.
        notes: small, under the figure.

    Raises:
        ValueError: no rows, or missing columns.
    """
    analysis.require(entries, ('device', 'model', 'seq_len', *(name for name, _, _ in PANELS)))
    models, devices = analysis.model_order(entries), sorted(set(entries['device']))
    styles = dict(zip(devices, ('-', '--', ':', '-.', (0, (5, 1, 1, 1, 1, 1))), strict=False))
    look = looks(models)
    with matplotlib.rc_context(STYLE):
        figure, axes = frame(len(PANELS), title, [_NOTE, *notes])
        for axis, (column, factor, name) in zip(axes, PANELS, strict=True):
            for (device, model), some in entries.sort_values('seq_len').groupby(['device', 'model']):
                colour, marker, _ = look[model]
                values = some[column].astype(float) * factor
                axis.plot(some['seq_len'], values, color=colour, marker=marker, linestyle=styles[device], label=device)
            axis.set(xlabel=columns.label('seq_len'), title=name)
            if column == 'compile_cpu_seconds':
                axis.set_ylim(bottom=0)
            else:
                axis.set_yscale('log')
                log_ticks(axis.yaxis)
        lines = [legend_line((look[model][0], look[model][1], ''), display(model)) for model in models]
        lines += [legend_line(('0.3', '', styles[device]), device) for device in devices]
        legend = axes[0].legend(handles=lines, loc='lower left', bbox_to_anchor=(0, 1.12), ncols=2)
        make_room(figure, axes, len(legend.get_texts()) // 2 + 2)
    return figure
