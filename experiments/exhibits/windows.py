"""Windows of learning rates: at how many of seven rates the lanes of each mixer learn 1STR, N = 4.

The protocol of `architectures` without its choice of rates: one label a prompt, two blocks, 20,000 parameters, ten
lanes with a task each. Okpekpe and Orvieto (arXiv:2508.19029) found that recurrent models recall where attention does,
but in a narrow window of rates.
"""

import pandas as pd

from experiments.exhibits import architectures
from qstr_jax import analysis, plots
from qstr_jax.analysis import formats
from qstr_jax.report import drawing, lanes

ORDER = 40
IS_SUPPORTING = True
QUESTION = 'For which architectures is the window of learning rates narrow?'
FIGURES = {'windows/figure.png': 'Labels to test error 0.7 on 1STR, N = 4, at seven rates; most lanes learn at the top'}
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
POINT = ['model', 'learning_rate']
MOST = 0.8  # A rate lies in the window if at least this share of its lanes learn.


def get_config():
    """All mixers at seven learning rates."""
    config = architectures.get_config('qstr_4')
    config.update(num_seeds=10, tune={'learning_rate': None, 'num_seeds': None}, learning_rate=RATES)
    config.title = '{task}, N = {seq_len}, one label a prompt: labels to test MSE {threshold}'
    return config


def reduced():
    """The same in seconds, for the tests: two mixers at two rates."""
    config = get_config()
    config.models, config.seq_lens, config.learning_rate = ('min_gru', 'rg_lru'), (2,), (3e-3, 1e-2)
    config.num_seeds, config.max_samples, config.test_samples = 2, 1024, 100
    return config


def draw(workdir, config):
    """Labels over rate and mixer, and a table."""
    rows = lanes.load(workdir)
    figure = plots.samples_heatmap(rows, 'learning_rate', 'model', **drawing.words(config, rows))
    drawing.save(figure, workdir, 'figure')
    architectures.write_points(workdir, rows, POINT)


def windows(rows):
    """The rates at which most lanes of each mixer learn, the widest window first."""
    points = analysis.summarize(rows('windows').table, POINT)
    inside = points['learning_rate'].where(points['num_learn'] >= MOST * points['num_lanes'])
    found = {model: sorted(own.dropna()) for model, own in inside.groupby(points['model'])}
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def text(rows):
    some, found = rows('windows'), windows(rows)
    by_count = []
    for count in sorted({len(window) for window in found.values()}, reverse=True):
        alike = ', '.join(analysis.display(model) for model in found if len(found[model]) == count)
        by_count.append(f'at {count or "none"} for {alike}')
    return f"""
Of {len(some.values('learning_rate'))} rates from {RATES[0]:g} to {RATES[-1]:g}, at least {MOST * 100:g} %
of {some.lanes()} lanes learn within {some.values('max_samples')[0]:,} labels: {'; '.join(by_count)}.

{some.count(outcome='diverged')} of {len(some.table)} lanes diverge. A prompt has one label; {some.time()} in all.
"""


def table(rows):
    lines = []
    for model, window in windows(rows).items():
        some = rows('windows', model=model)
        rate = architectures.best_first(analysis.summarize(some.table, POINT))['learning_rate'].iloc[0]
        ends = f'{window[0]:g} to {window[-1]:g}' if len(window) > 1 else ''.join(f'{one:g}' for one in window) or '–'
        lines.append([analysis.display(model), ends, f'{rate:g}', some.where(learning_rate=rate).mean()])
    return formats.pipes(['', 'window', 'best rate', 'labels there'], lines)


def moved(rows):
    """How many lanes learn here and in `architectures`, on another kind of CPU, for the cells and rates of both."""
    counts = [
        rows(folder)
        .table.groupby(['cell', 'model', 'learning_rate'])['outcome']
        .agg(lambda own: own.eq('reached').sum())
        for folder in ('windows', 'architectures')
    ]
    return pd.concat(counts, axis=1, keys=['here', 'there']).dropna().astype(int)


def limits(rows):
    found = moved(rows)
    most = found.loc[(found['here'] - found['there']).abs().idxmax()]
    _, model, rate = most.name
    none = [model for model, window in windows(rows).items() if not window]
    many = rows('architectures_long', seq_len=4)
    slow = [one for one in none if many.where(model=one).table['outcome'].eq('reached').all()]
    return f"""
One task, one N, one budget: at the lowest rates a lane may learn with more labels, so the lower end of a window is the
budget's as well. A mixer without a window may be slow rather than hard to tune: within a million labels all lanes of
{len(slow)} of these {len(none)} learn, at a rate that one lane chose (`architectures_long`). No schedule and no other
weight decay was tried.

Near the budget another CPU or version, which rounds otherwise, moves how many lanes learn: of the {len(found)} mixers
with equal settings here and in `architectures` most of all {analysis.display(model)}, {most['here']} lanes here and
{most['there']} there at rate {rate:g}.
"""
