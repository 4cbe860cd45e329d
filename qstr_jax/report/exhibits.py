"""Tables and figures of one results directory, by the learner that made its rows."""

import itertools

from qstr_jax import analysis, plots
from qstr_jax.analysis import formats, selection

ONLINE = 'online_adamw'
MAX_CURVES = 3  # figures of learning curves per q: one learning rate each


def add(section, rows, curves):
    """Adds what the rows (not empty) and curves of a directory show to a `content.Section`."""
    finished = rows[rows['outcome'] != 'diverged']
    if (rows['learner'] == ONLINE).all():
        if (rows['outcome'] == 'reached').any():
            _add_samples(section, rows)
        else:
            _add_losses(section, rows)
        _add_curves(section, curves)
    elif len(finished) and finished.get('validation_loss') is not None:
        if 'is_search' in rows and rows['is_search'].eq(True).any():
            _add_search(section, finished)
        elif finished['num_samples'].nunique() > 1:
            _add_fits(section, finished)
        else:
            _add_losses(section, finished)
    else:
        _add_losses(section, rows)


def x_axis(rows):
    """What the curves of a directory run over: N, or q where only q varies."""
    return 'sparsity' if rows['seq_len'].nunique() == 1 and rows['sparsity'].nunique() > 1 else 'seq_len'


def _add_samples(section, rows):
    """Samples to threshold: per optimiser a table with exponents, and a figure if there are several points."""
    x = x_axis(rows)
    optimisers = rows.groupby(['learning_rate', 'weight_decay'])
    if rows[x].nunique() == 1:
        by = ['model', *(name for name in ('learning_rate', 'weight_decay') if rows[name].nunique() > 1)]
        summary = analysis.summarize(rows, by)
        columns = [*by, 'num_lanes', 'num_reached', 'mean', 'low', 'high', 'lower_bound']
        section.tables.append(('Samples to threshold', summary[columns]))
        section.words.append(f'Only one {analysis.SYMBOLS[x]}: an exponent needs three.')
        return
    for (rate, decay), lanes in optimisers:
        caption = 'Samples to threshold' + (
            f', learning rate {rate:g}, weight decay {decay:g}' if optimisers.ngroups > 1 else ''
        )
        (frame,) = formats.from_markdown(analysis.table(lanes, x))
        section.tables.append((caption, frame))
        section.figures.append((caption, plots.samples_against_length(lanes, x=x)))


def _add_search(section, rows):
    """n*: the smallest sample that is enough, with the optimiser that validation prompts choose."""
    named = selection.name_curves(selection.select(rows))
    (frame,) = formats.from_markdown(analysis.table(named))
    section.tables.append(('n*, the smallest n with test loss below the threshold', frame))
    if named['seq_len'].nunique() > 1:
        section.figures.append(('n* against N', plots.scaling(named)))


def _add_fits(section, rows):
    """Test loss against the size of a fixed sample, with the optimiser that validation prompts choose."""
    named = selection.name_curves(selection.select(rows))
    section.figures.append(('Test loss against n', plots.learning_curves(named)))
    by_n = named.pivot_table(index=['task', 'seq_len', 'model'], columns='num_samples', values='test_loss')
    section.tables.append(('Test loss against n, mean over lanes', by_n.rename(columns=str).reset_index()))


def _add_losses(section, rows):
    """Test losses at the end of training, by whatever varies."""
    varying = [
        name
        for name in ('seq_len', 'sparsity', 'num_samples', 'learning_rate', 'weight_decay')
        if rows[name].nunique() > 1
    ]
    losses = rows.groupby(['model', *varying], observed=True)['test_loss']
    table = losses.agg(lanes='size', mean='mean', smallest='min', largest='max').reset_index()
    section.tables.append(('Test loss at the end', table))


def _add_curves(section, curves):
    if {'samples', 'test_loss'} <= set(curves.columns) and len(curves):
        thresholds = set(curves['threshold']) if 'threshold' in curves else set()
        threshold = thresholds.pop() if len(thresholds) == 1 else 0
        threshold = threshold if threshold > 1e-6 else None  # a budget for all, no threshold
        for sparsity, mine in curves.groupby('sparsity'):
            # One learning rate at a time: a line is a lane, and lanes of several rates share their seed.
            for (rate, decay), lanes in itertools.islice(mine.groupby(['learning_rate', 'weight_decay']), MAX_CURVES):
                caption = f'Learning curves, q = {sparsity}, learning rate {rate:g}, weight decay {decay:g}'
                section.figures.append((caption, plots.curves(lanes, threshold)))
