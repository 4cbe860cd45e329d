"""Tables and figures of one results directory, by what kind of lanes it holds."""

import functools
import itertools
from collections.abc import Iterator

import pandas as pd

from qstr_jax import analysis, columns, plots
from qstr_jax.analysis import crossings, kinds, selection
from qstr_jax.plots.panels import by_panel
from qstr_jax.report.section import Section

# Figures of one kind in a section: one for each learning rate, and so on.
_MOST_FIGURES = 6
_MOST_TRAINING_CURVES = 3
# A row of more panels is too wide to be read, and one of hundreds takes minutes to draw.
_MOST_PANELS = 12


def add(section: Section, rows: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Adds what the rows and curves of a directory show."""
    online, searches, fits = kinds.split_kinds(rows)
    if len(online):
        _add_online(section, online)
        _add_training_curves(section, curves)
    for some, show in ((searches, _add_search), (fits, _add_fits)):
        # A setting is chosen by all of its lanes, those that diverged included.
        chosen = selection.select(some) if len(some) and 'validation_loss' in some.columns else some.iloc[:0]
        finished = chosen[chosen['outcome'] != 'diverged']
        if len(finished):
            if lost := len(chosen) - len(finished):
                section.say(f'{lost} of {len(chosen)} lanes with the chosen settings diverged and are not shown.')
            show(section, finished)
        elif len(some):
            _add_losses(section, some)


def x_axis(rows: pd.DataFrame) -> str | None:
    """What the curves of a directory run over: N, or q, or the first other number in which rows differ."""
    apart = [name for name in analysis.curve_columns(rows) if pd.api.types.is_numeric_dtype(rows[name])]
    return next((name for name in ('seq_len', 'sparsity', *apart) if name in apart), None)


def _add_online(section: Section, rows: pd.DataFrame) -> None:
    """Samples to threshold, or test losses where no lane reached it."""
    outcomes = set(rows['outcome'])
    if 'reached' not in outcomes:
        section.say(
            'No lane reached the threshold within its budget, so there are no samples to threshold and no '
            'exponent; the table shows the test losses at the end instead.'
        )
        _add_losses(section, rows)
        return
    if outcomes & {'censored', 'outraced'}:
        section.say(
            'A mean is of the lanes that learn. It is a lower bound, marked ≥, where none learns or some were outraced.'
        )
    x = x_axis(rows)
    further = analysis.curve_columns(rows, x)[1:]
    if x and (x in ('seq_len', 'sparsity') or not further):
        _add_samples(section, rows, x)
    else:
        _add_summary(section, rows)


def _add_samples(section: Section, rows: pd.DataFrame, x: str) -> None:
    """Tables with exponents and figures, one for each optimiser: each choice of the lanes' settings."""
    groups = list(_groups('Samples to threshold', rows, x))
    section.tables += [(caption, analysis.samples_table(lanes, x)) for caption, lanes in groups]
    if len(groups) > _MOST_FIGURES:
        section.say(f'Figures of the first {_MOST_FIGURES} of {len(groups)} tables; the charts above have all lanes.')
    for caption, lanes in groups[:_MOST_FIGURES]:
        num_panels = len(by_panel(analysis.split_curves(lanes, x)))
        if num_panels <= _MOST_PANELS:
            section.figures.append((caption, functools.partial(plots.samples_against, lanes, x)))
        else:
            section.say(f'{caption}: a figure would have {num_panels} panels; choose some curves in the charts above.')


def _add_summary(section: Section, rows: pd.DataFrame) -> None:
    """A line per point, and a heat map of each architecture that has two or three settings to show."""
    apart = analysis.curve_columns(rows)
    summary = analysis.summarize(rows, apart)
    table = summary[[*apart, 'num_lanes', 'num_reached', 'mean', 'low', 'high', 'lower_bound']]
    section.tables.append(('Samples to threshold', table.rename(columns=analysis.headings(apart))))
    if rows['seq_len'].nunique() == 1 and len(apart) == 1:
        section.say('Only one N: an exponent needs three.')
    for model, lanes in rows.groupby('model'):
        settings = analysis.curve_columns(lanes)[1:]
        if len(settings) in (2, 3):
            *panels, x, y = settings
            draw = functools.partial(plots.samples_heatmap, lanes, x, y, panels=panels[0] if panels else None)
            section.figures.append((f'Samples to threshold, {analysis.display(model)}', draw))


def _add_search(section: Section, rows: pd.DataFrame) -> None:
    """n*: the smallest sample that is enough, with the hyperparameters that validation prompts choose."""
    x = x_axis(rows) or 'seq_len'
    section.tables.append(('n*, the smallest n with test loss below the threshold', analysis.samples_table(rows, x)))
    if rows[x].nunique() > 1:
        section.figures.append((f'n* against {analysis.heading(x)}', functools.partial(plots.samples_against, rows, x)))


def _add_fits(section: Section, rows: pd.DataFrame) -> None:
    """Test loss against the size of a fixed sample, with the hyperparameters that validation prompts choose."""
    if rows['num_samples'].nunique() == 1:
        _add_losses(section, rows)
        return
    section.figures.append(('Test loss against n', functools.partial(plots.learning_curves, rows)))
    lines = []
    for curve in analysis.split_curves(rows, 'num_samples'):
        task = {analysis.heading(name): value for name, value in curve.task.items()}
        means = curve.lanes.groupby('num_samples')['test_loss'].mean()
        lines.append({**task, 'curve': curve.name, **{f'n = {n:g}': loss for n, loss in means.items()}})
    section.tables.append(('Test loss against n, mean over lanes', pd.DataFrame(lines)))


def _add_losses(section: Section, rows: pd.DataFrame) -> None:
    """Test losses at the end of training, by whatever varies."""
    apart = analysis.curve_columns(rows)
    losses = rows.groupby(apart, dropna=False)['test_loss']
    table = losses.agg(lanes='size', mean='mean', smallest='min', largest='max').reset_index()
    table = table.rename(columns=analysis.headings(apart))
    section.tables.append(('Test loss at the end', table))


def _add_training_curves(section: Section, curves: pd.DataFrame) -> None:
    """Training curves of all lanes, a figure for each choice of settings that colours do not show, up to a limit."""
    if not {'model', 'samples', 'test_loss'} <= set(curves.columns):
        return
    if (online := kinds.split_kinds(curves).online).empty:
        return
    by = x_axis(online) or 'seq_len'
    groups = _groups('Training curves', online, by, tasks=True)
    for caption, lanes in itertools.islice(groups, _MOST_TRAINING_CURVES):
        threshold = crossings.shared_loss_threshold(lanes)
        section.figures.append((caption, functools.partial(plots.training_curves, lanes, by=by, threshold=threshold)))


def _groups(caption: str, rows: pd.DataFrame, x: str, tasks: bool = False) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rows by the settings of lanes in which they differ, and perhaps of tasks, with captions."""
    roles = ('lane', 'learner', 'task') if tasks else ('lane',)
    apart = columns.with_role(analysis.curve_columns(rows, x), *roles)
    if not apart:
        yield caption, rows
        return
    for values, lanes in rows.groupby(apart, dropna=False):
        point = zip(apart, values, strict=True)
        yield ', '.join([caption, *(analysis.setting_text(*item) for item in point if not pd.isna(item[1]))]), lanes
