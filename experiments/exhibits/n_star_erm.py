"""n* of ERMs: constrained ERM against N, beside how many random labels the same ball fits (Theorem 4).

Parts `log…` have d_e = ⌊3 ln N⌋ at coherence ≤ 3/4, redrawn until it is met, `wide…` d_e = 75 at coherence ≤ 1/2, where
attention can be a look-up table while N ≤ 75; both are feasible for N = 8 … 512.
Fits start at W_QK = 0 and at the module's own W_QK. The result of least training risk is kept and compared with
Lemma 11's network: a row that is no ERM is hollow and left out of exponent fits. `…labels` fit random labels.
Directories of their own have the averaged risk, and four times as many steps.
"""

import numpy as np
import pandas as pd

from experiments.exhibits import learning_curves
from qstr_jax import analysis, plots
from qstr_jax.analysis import combinations, erms, formats, growth, kinds, selection
from qstr_jax.cli import base
from qstr_jax.report import drawing, numbers
from qstr_jax.settings import registry
from qstr_jax.storage import results
from qstr_jax.theory import memory_lines

ORDER = 170
QUESTION = 'From how many prompts on do the empirical minimisers that Adam finds retrieve?'
FOLDERS = {
    'n_star_erm': ('log', 'log_128', 'log_256', 'wide', 'log_labels', 'wide_labels', 'wide_labels_64'),
    'n_star_erm_long': ('long',),
    'n_star_erm_averaged': ('averaged', 'averaged_64'),
    'n_star_erm_simple': ('simple',),
    'n_star_erm_rnn': ('rnn',),
}
TITLES = {
    'n_star_erm_long': 'n* of ERMs, four times the steps: point-wise risk, 1STR, N = 16 to 128',
    'n_star_erm_averaged': 'n* of ERMs, averaged risk: 1STR, N = 8 to 64',
    'n_star_erm_simple': 'n* of ERMs, simple-1STR: point-wise risk, N = 8 to 128',
    'n_star_erm_rnn': "n* of ERMs, Theorem 7's RNN: simple-1STR, N = 4 to 32",
}
FIGURES = {
    'n_star_erm/figure.png': 'n* against N, point-wise risk, d_e = ⌊3 ln N⌋, compared with random labels that the ball '
    'fits (dot-dash) and ERMs that err (dashed)',
    'n_star_erm/figure_2.png': 'The same with d_e = 75',
    'n_star_erm/twisted.png': 'n* compared with the largest n at which a twisted teacher, a network of the ball, is an '
    'ERM that errs',
    'n_star_erm_long/figure.png': 'd_e = ⌊3 ln N⌋ with four times as many steps',
    'n_star_erm_averaged/figure.png': 'The same by the averaged risk, where a prompt has N labels',
    'n_star_erm_simple/figure.png': 'n* against N on simple-1STR, compared with ERMs that err (dashed)',
    'n_star_erm_rnn/figure.png': "n* of Theorem 7's RNN against N on simple-1STR",
}
PLUGINS = (*learning_curves.PLUGINS, 'qstr_jax.theory.construction_start', 'qstr_jax.theory.capacity')
# By rule: c of d_e = ⌊c ln N⌋, d_e, the largest coherence, and what the title says.
RULES = {'log': (3.0, None, 0.75, 'd_e = ⌊3 ln N⌋'), 'wide': (None, 75, 0.5, 'd_e = 75')}
# What differs from its rule in each part: lengths, R, seeds and others.
PARTS = {
    'log': {'radius': (0.5, 1.0, 2.0)},
    'log_128': {'seq_lens': (128,)},
    'log_256': {'seq_lens': (256,), 'max_samples': 51_200},
    'wide': {},
    'log_labels': {'seq_lens': (8, 16, 32, 64, 128, 256)},
    'wide_labels': {},
    'wide_labels_64': {'seq_lens': (64,), 'num_samples': (12_800,)},
    'long': {'seq_lens': (16, 32, 64, 128), 'max_steps': 16_000},
    'averaged': {'seq_lens': (8, 16, 32), 'radius': (0.5, 1.0, 2.0)},
    'averaged_64': {'seq_lens': (64,)},
    'simple': {'test_task': 'simple_qstr', 'seq_lens': (8, 12, 16, 24, 32, 64, 128)},
    'rnn': {'test_task': 'simple_qstr', 'seq_lens': (4, 6, 8, 12, 16, 32)},
}
_POINT = ['encoding_factor', 'encoding_dim', 'radius', 'seq_len']


def get_config(part='log'):
    """Merged Transformer, H = q = 1, d = 10, scaled encodings; the point-wise risk; R in construction norms."""
    base.check_part(part, FOLDERS)
    rule = 'wide' if part.startswith('wide') else 'log'
    config = base.get_config(PLUGINS, models=('transformer',), learners=('constrained',), preset='paper')
    config.update(seq_lens=(8, 16, 32, 64), token_dim=10, encoding_scale='scaled', task_per_lane=True)
    config.encoding_factor, config.encoding_dim, config.max_coherence, words = RULES[rule]
    config.transformer.update(attention='merged', mlp_width=32)
    config.update(risk='pointwise', radius=(1.0,), radius_unit='construction', starts=('attention:0', 'init'))
    config.update(learning_rate=(3e-3,), schedule='cosine', batch_size=64)
    config.update(max_steps=4000, check_every=1000, test_samples=1000, validation_samples=500)
    if 'labels' in part:
        _fit_labels(config)
        config.title = f'Random labels: training risk against n, point-wise risk, {words}'
    else:
        _search(config, part.startswith('averaged'))
        config.title = f'{{task}}: n* of constrained ERM, {{risk}} risk, {words}'
    if part == 'rnn':
        _be_recurrent(config)
    config.update(PARTS[part])
    config.task.name = config.test_task
    return config


def _search(config, averaged):
    config.test_task = 'qstr'
    config.learner.reference = 'construction'
    config.update(threshold=0.05, min_samples=100, max_samples=12800, resolution=0.15, num_seeds=5)
    if averaged:
        config.update(risk='averaged', batch_size=32, min_samples=10)


def _be_recurrent(config):
    """The RNN of Theorem 7, whose states hardly depend on those before: α_N ≤ 1/N at every N that is run."""
    config.models = ('rnn',)
    config.rnn.update(cell='deep', states='exclusive', readout='mlp', width=10, transition_widths=(32, 32))
    config.rnn.update(readout_widths=(64, 64), lipschitz=1 / 32)
    config.starts = ('init', 'init:1')
    config.learner.reference = ''


def _fit_labels(config):
    config.update(test_task='random_labels', num_samples=(100, 200, 400, 800, 1600, 3200, 6400), num_seeds=3)


def reduced(part='log'):
    """The same in seconds, for the tests; all searches of the Transformer on 1STR are one."""
    config = shrink(get_config(part))
    config.update(seq_lens=(2,), radius=(1.0,))
    config.starts = config.starts[:1]
    config.num_seeds = 2
    if 'labels' in part:
        config.num_samples = (4, 8)
    else:
        config.update(threshold=0.6, min_samples=2, max_samples=64, resolution=0.5)
        config.update(risk='pointwise', batch_size=64)
    return config


def shrink(config):
    """Shrinks a fit on n prompts to seconds, for the tests."""
    config.update(token_dim=2, encoding_factor=None, encoding_dim=6, max_coherence=0.9)
    config.transformer.mlp_width = 8
    config.update(max_steps=60, check_every=30, test_samples=100, validation_samples=50)
    return config


def check(config, sweep):
    """Raises ValueError unless all learners find ERMs in a ball, since those are what is drawn."""
    others = [name for name in sweep.learners if 'radius' not in registry.entries()[name].schema]
    if others:
        raise ValueError(
            f'learners={",".join(others)}: ERMs in a ball are drawn, of learners with a radius, such as constrained'
        )


def draw(workdir, config):
    """Writes figure and tables: n* of all parts, capacity, twisted teachers, the ERMs that err, random labels."""
    rows = results.load(workdir)
    both = rows, results.load_curves(workdir, rows=rows)
    rows, curves = (_with_points(erms.by_own_risk(table)) for table in both)
    parts = kinds.split_kinds(rows)
    if len(parts.fits):
        risks = parts.fits.pivot_table(index=_POINT, columns='num_samples', values='train_risk', dropna=False)
        drawing.write(risks.dropna(how='all').reset_index(), workdir, 'labels', digits=3)
    searches = parts.searches[parts.searches['outcome'] != 'diverged']
    if searches.empty:
        return
    chosen = selection.select(searches)
    lines = _lines(rows, chosen, curves)
    # Where balls do not bind, R = 1/2 and 2 would lie on R = 1.
    shown, of_one = chosen, chosen[chosen['radius'].eq(1)]
    if len(of_one):
        shown, config.notes = of_one, (*config.notes, 'R = 1')
    notes = combinations.notes(config.notes, shown)
    is_twisted = lines['name'].str.startswith('twisted')
    title = '{task}: n* of constrained ERM, {risk} risk'
    # A figure for each rule for d_e, since each has its own N.
    for i, (factor, own) in enumerate(shown.groupby('encoding_factor', dropna=False)):
        is_own = lines['encoding_factor'].eq(factor) | (lines['encoding_factor'].isna() & pd.isna(factor))
        beside = lines[~is_twisted & is_own]
        rule = 'd_e = {encoding_dim}' if pd.isna(factor) else f'd_e = ⌊{factor:g} ln N⌋'
        figure = plots.samples_against(
            own, lines=beside, title=combinations.title(f'{title}, {rule}', own), notes=notes
        )
        drawing.save(figure, workdir, f'figure_{i + 1}' if i else 'figure')
    if lines.loc[is_twisted, 'samples'].notna().any():
        title = combinations.title(f'{title}, beside twisted teachers', shown)
        drawing.save(
            plots.samples_against(shown, lines=lines[is_twisted], title=title, notes=notes), workdir, 'twisted'
        )
    drawing.write(analysis.samples_table(chosen), workdir, 'table')
    drawing.write(growth.growth(chosen), workdir, 'growth', digits=3)
    drawing.write(lines, workdir, 'lines', digits=3)


def _with_points(table):
    """A table with all columns of points; those that nobody has set, such as a rule for d_e, are missing values."""
    return table.assign(**{name: float('nan') for name in _POINT if name not in table.columns})


def _lines(rows, chosen, curves):
    """What lies beside n*: the ERMs that were found and err, the capacity for random labels, twisted teachers."""
    failing = erms.failing(curves[curves['is_search'].eq(True)], [name for name in _POINT if name != 'radius'])
    parts = (
        failing.assign(name='an ERM of this search errs', samples=failing['samples'].replace(0, float('nan'))),
        memory_lines.capacity_lines(rows),
        # Twisted teachers are Transformers, so no other ball holds them.
        memory_lines.twisted_lines(chosen[chosen['model'] == 'transformer'], threshold=chosen['threshold'].iloc[0]),
    )
    columns = ['name', 'encoding_factor', 'encoding_dim', 'seq_len', 'samples']
    return pd.concat([part[columns] for part in parts], ignore_index=True)


def text(rows):
    lanes = rows('n_star_erm', task='qstr', radius=1, encoding_factor=3)
    wide = rows('n_star_erm', task='qstr', radius=1, encoding_dim=75)
    labels = rows('n_star_erm', task='random_labels', encoding_factor=3, num_samples=3200)
    long, averaged = rows('n_star_erm_long'), rows('n_star_erm_averaged')
    beyond = lanes.where(seq_len=(128, 256))
    simple, rnn = rows('n_star_erm_simple'), rows('n_star_erm_rnn')
    fitted = rnn.where(train_risk=tuple(risk for risk in rnn.table['train_risk'] if risk <= erms.TOLERANCE))
    return f"""
With d_e = ⌊3 ln N⌋ the search ends at {analysis.short_number(ends(lanes)[8])} prompts at N = 8 and at
{analysis.short_number(ends(lanes)[256])} at N = 256, ERMs or not. Up to N = 64, and with N = 128 as an upper bound, the
prompts from which on these ERMs retrieve grow as N^{lanes.exponent()}; the searches themselves grow faster beyond, as
N^{rise(lanes, 64, 128):.2f} to N = 128 and N^{rise(lanes, 128, 256):.2f} to N = 256. With d_e = 75 it is
N^{wide.exponent()} to N = 64.

A search ends for one of two reasons: with fewer prompts an ERM errs, or with fewer prompts the optimiser finds no ERM.
The first is so in {lanes.count(miss_is_erm=True)} of {lanes.count()} lanes, {beyond.count(miss_is_erm=True) or 'none'}
of them beyond N = 64; {lanes.count(is_erm=False)} lanes end at no ERM and are left out of exponent fits. Up to
N = 64 the search ends where memorising does: the mean training risk on 3,200 random labels falls from
{labels.where(seq_len=8).mean('train_risk')} at N = 8 to {labels.where(seq_len=256).mean('train_risk')} at N = 256.
Beyond it ends well above, and four times as many steps do not mend that: at N = 64 and 128
{num_same(long.where(seq_len=(64, 128)), lanes)} of {long.count(seq_len=(64, 128))} searches end at the n of before.

On simple-1STR, where all positions ask for the same token, the Transformer's grow as N^{simple.exponent()}, where
{simple.count(miss_is_erm=False)} of {simple.count()} lanes are bounds and {simple.count(is_erm=False)} end at no ERM;
those of Theorem 7's RNN as N^{fitted.exponent()}, from {fitted.where(seq_len=4).mean()} at N = 4 to
{fitted.where(seq_len=16).mean()} at N = 16 (N^a or (log N)^p: {fitted.law()}). It is compared with no reference:
{fitted.count()} of {rnn.count()} of its lanes are ERMs by their own training risk, of at most {erms.TOLERANCE:g}, but
{fitted.count(seq_len=32) or 'none'} at N = 32.

By the averaged risk, where a prompt has N labels, the bound falls with N, and {averaged.count(is_erm=True)} of
{averaged.count()} lanes end at an ERM. The five directories took {rows('n_star_erm').time()}, {long.time()},
{averaged.time()}, {simple.time()} and {rnn.time()}.
"""


def table(rows):
    lanes = {
        'd_e = ⌊3 ln N⌋': rows('n_star_erm', task='qstr', radius=1, encoding_factor=3),
        'the same, four times the steps': rows('n_star_erm_long'),
        'd_e = 75': rows('n_star_erm', task='qstr', radius=1, encoding_dim=75),
        'd_e = ⌊3 ln N⌋, averaged risk': rows('n_star_erm_averaged', radius=1),
    }
    lengths = (8, 16, 32, 64, 128, 256)
    lines = [
        [name, *(entry(some.where(seq_len=n)) if some.count(seq_len=n) else '–' for n in lengths)]
        for name, some in lanes.items()
    ]
    return formats.pipes(['prompts, R = 1', *(f'N = {n}' for n in lengths)], lines)


def limits(rows):
    one = rows('n_star_erm', task='qstr', radius=1).table
    ball = rows('n_star_erm', task='qstr', radius=1, encoding_factor=3, seq_len=64, outcome='reached')
    most = ball.table['samples_to_threshold'].max()
    erring = rows('worst_erm', seq_len=64, radius=1, encoding_factor=3).table['erring_samples'].max()
    by_radius = {radius: rows('n_star_erm', task='qstr', radius=radius, encoding_factor=3) for radius in (0.5, 1, 2)}
    same = {radius: num_same(by_radius[radius], by_radius[1]) for radius in (0.5, 2)}
    return f"""
That all ERMs retrieve from n\\* on: some ERMs of the same ball, searched for because they err (the worst ERM), still
err at up to {erring:,} prompts at N = 64, while n\\* here is at most {most:,.0f}. At N = 128 and 256 n\\* is at most
that of the search.

These are the ERMs that Adam finds, from the start at W_QK = 0 in
{rows('n_star_erm', task='qstr').count(start='attention:0')} of {rows('n_star_erm', task='qstr').count()} lanes. At
R = 1 the fits at n\\* have at most {(one['norm'] / one['fitted_radius']).max():.2f} of the radius.

That R matters or not: these balls do not bind, so {same[2]} of {by_radius[2].count()} searches at R = 2, and
{same[0.5]} of {by_radius[0.5].count()} at R = 1/2, end at the n of R = 1. The three curves are one measurement.

The ball R = 1/2 does not hold Lemma 11's network, so lanes that are left out there may be ERMs all the same. The RNN
has 32 units a transition, where the network of Theorem 7's proof has 2 d + 2 q d_e, 36 at N = 16 and 40 at N = 32.
"""


def entry(lanes):
    """'≤ 4.40k (3 of 5 are ERMs)': the mean of the lanes that end at an ERM, '–' of fewer than three."""
    some, short = lanes.count() - lanes.count(is_erm=False), lanes.count(is_erm=False)
    mean = lanes.mean() if some >= numbers.MIN_LANES else '–'
    return f'{mean} ({some} of {lanes.count()} are ERMs)' if short else mean


def ends(lanes):
    """The geometric mean of the n at which all searches end, by N."""
    logs = np.log(lanes.table['samples_to_threshold'].astype(float))
    return np.exp(logs.groupby(lanes.table['seq_len']).mean())


def rise(lanes, short, long):
    """The power of N by which the ends of searches grow between two N."""
    means = np.log(ends(lanes))
    return (means[long] - means[short]) / np.log(long / short)


def num_same(some, others):
    """How many searches end at the same n as others of their N and seed."""
    mine, theirs = (one.table.set_index(['seq_len', 'seed'])['samples_to_threshold'] for one in (some, others))
    return int(mine.eq(theirs.reindex(mine.index)).sum())
