"""The worst ERM: the largest n at which an ERM of the ball was found that errs (Theorem 4 is about every ERM).

Minimises R̂ + λ max(0, level − error on fresh prompts) within the ball of Lemma 11's norm (R = 1), from Lemma 11's
network. A fit counts if its norm is at most R, its training risk at most 0.001 and its test loss at least 0.05 by two
standard errors. d_e = ⌊3 ln N⌋ at coherence ≤ 3/4 and the point-wise risk, as in n_star_erm. Parts `shrunk…` start
at half of W_QK: where the softmax is saturated, as at N = 32, its gradient is zero and the hinge cannot pull. Parts
`steps…` have four times as many steps, `more_steps` sixteen times, `hinge` other λ, `wide…` d_e = 75.
"""

import itertools
import pathlib

import numpy as np
import pandas as pd

from experiments.exhibits import n_star_erm
from qstr_jax import analysis, plots
from qstr_jax.analysis import erms, formats, growth
from qstr_jax.cli import base
from qstr_jax.learners import worst_erm
from qstr_jax.report import drawing, numbers
from qstr_jax.storage import results
from qstr_jax.theory import memory_lines

ORDER = 165
QUESTION = 'Up to how many prompts does some empirical minimiser of the ball fail to retrieve?'
FIGURES = {
    'worst_erm/figure.png': 'The largest n at which an ERM of the ball was found that errs, against N, compared with '
    'n* of the ERMs that Adam finds (an upper bound where the fits just below are no ERMs) and random labels that the '
    'ball fits'
}
# Four times as many steps, which find larger n.
LONGER = {'max_steps': 16_000, 'max_samples': 102_400, 'starts': ('construction:0.5',)}
PARTS = {
    'log': {},
    'log_128': {'seq_lens': (128,)},
    'log_256': {'seq_lens': (256,)},
    'shrunk': {'starts': ('construction:0.5',)},
    'shrunk_128': {'seq_lens': (128,), 'starts': ('construction:0.5',)},
    'shrunk_256': {'seq_lens': (256,), 'starts': ('construction:0.5',)},
    'radius': {'seq_lens': (8, 16), 'radius': (0.5, 2.0)},
    'hinge': {'seq_lens': (16, 64), 'hinge': (0.03, 0.3), 'starts': ('construction:0.5',)},
    'steps': {'seq_lens': (8, 16, 32, 64), **LONGER},
    'steps_128': {'seq_lens': (128,), **LONGER},
    'steps_256': {'seq_lens': (256,), **LONGER},
    'more_steps': {'seq_lens': (8, 16), **LONGER, 'max_steps': 64_000},
    'wide': {'starts': ('construction:0.5',)},
    'wide_steps': LONGER,
}
FOLDERS = {'worst_erm': tuple(PARTS)}
THRESHOLDS = (0.02, 0.05, 0.1)
RULE = ['max_coherence', 'encoding_dim']
POINT = [*RULE, 'radius', 'seq_len', 'seed']
TRIES = ['hinge', 'starts', 'max_steps']


def get_config(part='log'):
    """As `n_star_erm` at R = 1 and d_e = ⌊3 ln N⌋, with the hinge, from Lemma 11's network."""
    base.check_part(part, FOLDERS)
    config = n_star_erm.get_config('wide' if part.startswith('wide') else 'log')
    config.learners = ('worst_erm',)
    config.learner.reference = None
    config.update(seq_lens=(8, 16, 32, 64), radius=(1.0,), starts=('construction',), hinge=(0.1,))
    config.update(min_samples=1600, max_samples=25_600, resolution=0.2, validation_samples=100)
    config.title = '{task}, R = 1: up to which n an ERM was found that errs, {risk} risk'
    config.notes = ('d_e = {encoding_dim}',)
    config.update(PARTS[part])
    return config


def reduced(part='log'):
    """The same in seconds, for the tests."""
    config = n_star_erm.shrink(get_config(part))
    config.update(seq_lens=(3,), starts=('construction:0.5',), erm_tolerance=0.5, hinge=(1.0,))
    config.update(min_samples=2, max_samples=16)
    config.num_seeds = 3
    return config


def draw(workdir, config):
    """Writes figure and tables: the largest n with an ERM that errs by task, and the fits that are the evidence.

    Where the rows of `n_star_erm` lie beside these, their n* and random labels at R = 1 are drawn, too.
    """
    rows = results.load(workdir)
    lanes = _by_steps(rows)
    if lanes.empty:
        return
    beside = pathlib.Path(workdir).parent / 'n_star_erm'
    # Lines of all N: one of two would have no exponent.
    num_lengths = lanes.groupby(['max_coherence', 'radius', 'max_steps'])['seq_len'].transform('nunique')
    drawn = lanes[num_lengths == num_lengths.max()]
    lines = of_n_star_erm(results.load(beside), drawn) if (beside / 'rows').exists() else None
    names = 'ERMs that err, ' + drawn['max_steps'].map('{:,} steps'.format)
    drawn = drawn.assign(model=names, max_steps=drawn['max_steps'].max())
    figure = plots.samples_against(drawn, lines=lines, **drawing.words(config, drawn))
    figure.axes[0].set_ylabel('largest $n$ found\nwith an ERM that errs\n(a lower bound)')
    drawing.save(figure, workdir, 'figure')
    drawing.write(analysis.samples_table(lanes), workdir, 'table')
    drawing.write(growth.growth(lanes), workdir, 'growth', digits=3)
    found = evidence(results.load_curves(workdir, rows=rows))
    drawing.write(by_threshold(found), workdir, 'thresholds')
    drawing.write(largest_fits(found), workdir, 'fits', digits=3)


def of_n_star_erm(rows, lanes):
    """Lines beside these lanes: n* of the ERMs that Adam finds at R = 1, and the random labels that the ball fits."""
    rows = rows[rows['radius'].eq(1.0) & rows['max_coherence'].isin(lanes['max_coherence'])]
    searches = rows[rows['samples_to_threshold'].notna() & ~erms.is_short(rows)]
    logs = np.log(searches['samples_to_threshold'].astype(float)).groupby(
        [searches[name] for name in (*RULE, 'seq_len')]
    )
    means = np.exp(logs.mean())[logs.size() >= numbers.MIN_LANES]
    found = means.rename('samples').reset_index().assign(name='n* of Adam')
    return pd.concat([found, memory_lines.capacity_lines(rows)], ignore_index=True)


def evidence(curves):
    """The fits that are ERMs, with their test loss minus two standard errors as a lower bound."""
    least = curves['test_loss'] - worst_erm.ERRORS * curves['test_loss_se']
    ratio = curves['norm'] / curves['fitted_radius']
    return curves[curves['is_erm'].eq(True)].assign(least_test_loss=least, norm_over_radius=ratio)


def largest_fits(found):
    """The certificate of the fit at each point's largest n, which is the evidence for that n."""
    found = found[found['least_test_loss'] >= found['threshold']]
    largest = found.loc[found.groupby(POINT, dropna=False)['samples'].idxmax()]
    return largest[[*POINT, *TRIES, 'samples', 'train_risk', 'norm_over_radius', 'test_loss', 'test_loss_se']]


def by_threshold(found):
    """The largest n with an ERM that errs by each threshold: geometric mean, smallest and largest of the tasks.

    By fits of as many steps as all N have, at R = 1.
    """
    found, lines = found[found['radius'].eq(1)], []
    for threshold, (_, of_rule) in itertools.product(THRESHOLDS, found.groupby('max_coherence')):
        lengths = of_rule.groupby('max_steps')['seq_len'].nunique()
        most = lengths.index[lengths == lengths.max()].max()
        errs = of_rule['max_steps'].le(most) & of_rule['least_test_loss'].ge(threshold)
        largest = of_rule[errs].groupby(POINT, dropna=False)['samples'].max()
        for place, own in largest.groupby(POINT[:-1], dropna=False):
            numbers = {'mean': np.exp(np.log(own).mean()), 'smallest': own.min(), 'largest': own.max()}
            texts = {name: analysis.short_number(value) for name, value in numbers.items()}
            point = dict(zip(POINT[:-1], place, strict=True))
            lines.append({'threshold': threshold, **point, 'max_steps': most, 'tasks': len(own), **texts})
    return pd.DataFrame(lines)


def _by_steps(rows):
    """For each number of steps, the points of `erms.worst` by fits of at most as many, if each task has one."""
    point = ['max_coherence', 'radius', 'max_steps', 'seq_len']
    efforts = []
    for (_, steps), own in rows.groupby(['max_coherence', 'max_steps']):
        is_there = rows['max_coherence'].isin(own['max_coherence']) & rows['seq_len'].isin(own['seq_len'])
        efforts.append(erms.worst(rows[is_there & (rows['max_steps'] <= steps)]).assign(max_steps=steps))
    lanes = pd.concat(efforts, ignore_index=True).merge(rows[point].drop_duplicates())
    lanes['max_samples'] = lanes['max_samples'].max()  # which goes with the steps
    return lanes[lanes.groupby(point)['seed'].transform('nunique') == rows['seed'].nunique()]


def _steps(rows):
    return sorted(rows['max_steps'].unique())


def _mean(lanes, n):
    """'5.7k': the geometric mean of the tasks at one N."""
    return analysis.short_number(float(np.exp(np.log(lanes.loc[lanes['seq_len'].eq(n), 'num_samples']).mean())))


def _few(lanes):
    """'(1 of 5 tasks)': where an ERM that errs was found for too few tasks; '–' where no search was run."""
    by_task = lanes.groupby('seed')['erring_samples'].max().gt(0)
    return f'({by_task.sum()} of {len(by_task)} tasks)' if len(by_task) else '–'


def _gains(lanes):
    """How many times larger n is than by the fewest steps, for each larger number of steps: a mean over its N."""
    logs = np.log(lanes['num_samples']).groupby([lanes['max_steps'], lanes['seq_len']]).mean().unstack('max_steps')
    return np.exp(logs.sub(logs.iloc[:, 0], axis=0).mean()).iloc[1:]


def _gains_text(lanes):
    """'2.0 from 4,000 to 16,000 (N = 8 to 256)'."""
    fewest, *_ = _steps(lanes)
    extents = lanes.groupby('max_steps')['seq_len'].agg(['min', 'max'])
    return ' and '.join(
        f'{gain:.1f} from {fewest:,} to {steps:,} (N = {extents["min"][steps]} to {extents["max"][steps]})'
        for steps, gain in _gains(lanes).items()
    )


def _by_hinge(rows, steps):
    """'3.20k and 4.68k with λ = 0.03; …': the means at N = 16 and 64 from the shrunk start."""
    ends = {'seq_len': (16, 64), 'max_steps': steps, 'starts': 'construction:0.5'}
    tried = rows('worst_erm', radius=1, encoding_factor=3, **ends).table
    return '; '.join(
        f'{_mean(own, 16)} and {_mean(own, 64)} with λ = {hinge:g}'
        for hinge, own in tried.assign(num_samples=tried['erring_samples']).groupby('hinge')
    )


def text(rows):
    found = _by_steps(rows('worst_erm', radius=1, encoding_factor=3).table)
    lengths = sorted(found['seq_len'].unique())
    num_lengths = found.groupby('max_steps')['seq_len'].nunique()
    fewest, most = num_lengths.index[0], num_lengths.index[num_lengths == len(lengths)][-1]
    lanes = found[found['max_steps'].eq(most)]
    ordinary = rows('n_star_erm', task='qstr', radius=1, encoding_factor=3)
    last, half = ordinary.where(seq_len=lengths[-1]), rows('worst_erm', radius=0.5).table
    erring = half[half['erring_samples'].gt(0)]
    ends = n_star_erm.ends(ordinary)
    widths = lanes.groupby('seq_len')['encoding_dim'].first()
    slope = np.polyfit(np.log(widths.index), np.log(widths), 1)[0]
    fit, of_fewest = (analysis.exponent(found[found['max_steps'].eq(steps)]) for steps in (most, fewest))
    law = growth.law(fit)
    by_logarithm = f' (better: {law})' if law.startswith('(log') else ''
    wide = rows('worst_erm', encoding_dim=75, max_steps=most).table
    largest, missed = wide.loc[wide['erring_samples'].idxmax()], wide[wide['erring_samples'].eq(0)]
    return f"""
ERMs that err were found up to {_mean(lanes, lengths[0])} prompts at N = {lengths[0]} and {_mean(lanes, lengths[-1])} at
N = {lengths[-1]} by fits of {most:,} steps, means of {lanes.groupby('seq_len')['seed'].nunique().min()} tasks, as
N^{str(fit).replace('-', '−')}{by_logarithm}, while the search by constrained ERM ends at
{analysis.short_number(ends[lengths[0]])} and {analysis.short_number(ends[lengths[-1]])} ({last.count(is_erm=True)} of
{last.count()} lanes there are ERMs).

Theorem 4 bounds it by polylog N, which a power of N would have contradicted; d_e itself grows as N^{slope:.2f}. Each
number rests on a fit whose certificate stands in fits.md: norm at most R, training risk at most 0.001, which is within
0.001 of the least risk as risks are not negative, test loss above 0.05 by two standard errors.

More steps raise n by factors of {_gains_text(found)}. By {fewest:,} steps it grows as
N^{str(of_fewest).replace('-', '−')}, slower than by {most:,}. There, from the shrunk start, n at N = 16 and 64 is
{_by_hinge(rows, fewest)}.

With d_e = 75 and {most:,} steps {wide['erring_samples'].gt(0).sum()} of {len(wide)} searches find an ERM that errs, at
up to {largest['erring_samples']:,} prompts at N = {largest['seq_len']}. Of the others, {erms.is_short(missed).sum()} of
{len(missed)} stay above the training risk of an ERM at the least n, {int(missed['num_samples'].max()):,}.

In the ball R = 1/2 {len(erring)} of {len(half)} searches find an ERM that errs,
at up to {erring['erring_samples'].max():,} prompts, {(erring['seq_len'] == 16).sum()} of them at N = 16.
{len(rows('worst_erm').table)} searches took {rows('worst_erm').time()}.
"""


def table(rows):
    tried = rows('worst_erm').table
    found = _by_steps(tried)
    lengths = sorted(found['seq_len'].unique())
    lines = []
    curve = ['max_coherence', 'radius', 'max_steps']
    ordered = found.sort_values(curve, ascending=[False, True, True])
    for (coherence, radius, steps), own in ordered.groupby(curve, sort=False):
        here = tried[tried[curve].eq([coherence, radius, steps]).all(axis=1)]
        few = {n: _few(here[here['seq_len'].eq(n)]) for n in {*lengths}.difference(own['seq_len'])}
        name = f'R = {radius:g}, {steps:,} steps{", d_e = 75" if own["encoding_factor"].isna().all() else ""}'
        lines.append([name, *(few.get(n) or _mean(own, n) for n in lengths)])
    return formats.pipes(['prompts', *(f'N = {n}' for n in lengths)], lines)


def limits(rows):
    lanes = rows('worst_erm', radius=1, encoding_factor=3).table
    gains = _gains(_by_steps(lanes))
    lengths = sorted(lanes.loc[lanes['max_steps'].eq(gains.index[-1]), 'seq_len'].unique())
    fits = rows.written('worst_erm', 'fits.md').table.astype({'radius': float, 'norm_over_radius': float})
    ratios = fits.loc[fits['radius'].eq(1), 'norm_over_radius']
    return f"""
That no ERM errs from these n on: each is a lower bound and rises with the steps of a fit, {gains.iloc[-1]:.1f}-fold
from {_steps(lanes)[0]:,} to {gains.index[-1]:,} at N = {' and '.join(map(str, lengths))}.

By {_steps(lanes)[0]:,} steps each is the best of {lanes['starts'].nunique()} starts, with more of the shrunk one alone.
The n of a search lie on a grid, so lanes that agree tell of its steps of 20 % and not of no noise. An ERM of R = 1 is
one of R = 2 as well, so R = 2 never has fewer.

That the radius matters: the norm of these fits is
{ratios.min():.2f} to {ratios.max():.2f} of R = 1, the least from the shrunk start. Not run: R = 1/2 and 2 at N > 16,
N = 512, other starts with d_e = 75, other levels, still more steps, RNN, FFN.
"""
