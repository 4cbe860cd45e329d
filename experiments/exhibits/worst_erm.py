"""The worst ERM: the largest n at which an ERM of the ball was found that errs (Theorem 4 is about every ERM).

Minimises R̂ + λ max(0, level − error on fresh prompts) within the ball of Lemma 11's norm (R = 1), from Lemma 11's
network. A fit counts if its norm is at most R, its training risk at most 0.001 and its test loss at least 0.05 by two
standard errors. d_e = ⌊3 ln N⌋ at coherence ≤ 3/4 and the point-wise risk, as in n_star_erm. Part `shrunk` starts at
half of W_QK, where the softmax is less saturated, and `strong` has λ = 0.3.
"""

import pathlib

import numpy as np
import pandas as pd

from experiments.exhibits import n_star_erm
from qstr_jax import analysis, checks, plots
from qstr_jax.analysis import combinations, formats, growth
from qstr_jax.cli import base
from qstr_jax.learners import worst_erm
from qstr_jax.storage import files, results

ORDER = 165
QUESTION = 'Up to how many prompts does some empirical minimiser of the ball fail to retrieve?'
FIGURES = {
    'worst_erm/figure.png': 'The largest n at which an ERM of the ball was found that errs, against N, and the '
    'smallest n tried at which none was (dashed)'
}
PARTS = {
    'log': {},
    'radius': {'radius': (0.5, 2.0)},
    'wide': {'encoding_factor': None, 'encoding_dim': 75, 'max_coherence': 0.5},
    'log_256': {'seq_lens': (256,)},
    'strong': {'hinge': (0.3, 1.0)},
    'shrunk': {'starts': ('construction:0.5',), 'seq_lens': (8, 16, 32, 64, 256)},
    'long': {'max_steps': 16_000, 'check_every': 4000},
}
FOLDERS = {'worst_erm': tuple(PARTS)}
THRESHOLDS = (0.02, 0.05, 0.1)


def get_config(part='log'):
    """As `n_star_erm` at R = 1 and d_e = ⌊3 ln N⌋, with the hinge, from Lemma 11's network."""
    checks.choice('part', part, PARTS)
    config = base.get_config(n_star_erm.PLUGINS)
    config.models = ('transformer',)
    config.learners = ('worst_erm',)
    config.preset = 'paper'
    config.test_task = 'qstr'
    config.seq_lens = (8, 16, 32, 64)
    config.token_dim = 10
    config.encoding_factor, config.encoding_dim, config.max_coherence = 3.0, None, 0.75
    config.encoding_scale = 'scaled'
    config.transformer.attention = 'merged'
    config.transformer.mlp_width = 32
    config.task_per_lane = True
    config.risk = 'pointwise'
    config.radius = (1.0,)
    config.radius_unit = 'construction'
    config.starts = ('construction',)
    config.hinge = (0.1,)
    config.threshold = 0.05
    config.min_samples = 1600
    config.max_samples = 25_600
    config.resolution = 0.2
    config.learning_rate = (3e-3,)
    config.schedule = 'cosine'
    config.batch_size = 64
    config.max_steps = 4000
    config.check_every = 1000
    config.test_samples = 1000
    config.validation_samples = 100
    config.num_seeds = 3
    config.title = '{task}: the largest n at which an ERM that errs was found, {risk} risk, d_e = ⌊3 ln N⌋'
    config.update(PARTS[part])
    return config


def reduced(part='log'):
    """The same in seconds, for the tests."""
    config = get_config(part)
    config.seq_lens = (2, 3)
    config.token_dim = 2
    config.encoding_factor = None
    config.encoding_dim = 6
    config.max_coherence = 0.9
    config.transformer.mlp_width = 8
    config.erm_tolerance = 0.5
    config.min_samples = 2
    config.max_samples = 16
    config.max_steps = 60
    config.check_every = 30
    config.test_samples = 100
    config.validation_samples = 50
    config.num_seeds = 2
    return config


def draw(workdir, config):
    """Writes figure and tables: the largest n with an ERM that errs by lane, and the fits that are the evidence."""
    folder = pathlib.Path(workdir)
    rows = results.load(folder)
    curves = results.load_curves(folder, rows=rows)
    lanes = erring(rows)
    if lanes.empty:
        return
    figure = plots.samples_against(
        lanes,
        lines=none_found(rows),
        title=combinations.title(config.title, rows),
        notes=combinations.notes(config.notes, rows),
    )
    figure.axes[0].set_ylabel('largest n at which an ERM that errs was found')
    paths = plots.save(figure, folder / 'figure')
    text = formats.markdown(analysis.samples_table(lanes))
    files.write_text(folder / 'table.md', text)
    files.write_text(folder / 'growth.md', formats.markdown(growth.growth(lanes), digits=3))
    files.write_text(folder / 'thresholds.md', formats.markdown(by_threshold(curves)))
    files.write_text(folder / 'fits.md', formats.markdown(fits(curves), digits=3))
    print(f'{text}figure: {paths[1]}')


def erring(rows):
    """A line a task and N: the largest n of its lanes with an ERM that errs as `samples_to_threshold`.

    A lane whose every n has one is a lower bound by its budget; a task without any is left out.
    """
    best = rows.loc[rows.groupby(['seq_len', 'seed'])['erring_samples'].idxmax()]
    best = best[best['erring_samples'] > 0].reset_index(drop=True)
    outcome = best['outcome'].where(best['outcome'].eq('censored'), 'reached')
    return best.assign(outcome=outcome, samples_to_threshold=best['erring_samples'].where(outcome.eq('reached')))


def none_found(rows):
    """At each N the mean of the smallest n that was tried and had no ERM that errs, as a line of the figure."""
    ended = rows[rows['samples_to_threshold'].notna()]
    best = ended.groupby(['seq_len', 'seed'])['samples_to_threshold'].max()
    return best.groupby('seq_len').mean().rename('samples').reset_index().assign(name='none was found')


def fits(curves):
    """The fits that are the evidence, at the largest n of each task: every number of the certificate."""
    found = by_evidence(curves, curves['threshold'])
    largest = found.loc[found.groupby(['seq_len', 'seed'])['samples'].idxmax()]
    largest = largest.assign(norm_over_radius=largest['norm'] / largest['fitted_radius'])
    return largest[
        ['seq_len', 'seed', 'hinge', 'starts', 'samples', 'train_risk', 'norm_over_radius', 'test_loss', 'test_loss_se']
    ]


def by_evidence(curves, threshold):
    """The fits that are ERMs with a test loss of at least a threshold, by two standard errors."""
    least = curves['test_loss'] - worst_erm.ERRORS * curves['test_loss_se']
    return curves[curves['is_erm'].eq(True) & (least >= threshold)]


def by_threshold(curves):
    """The largest n with an ERM that errs by each threshold: geometric mean over tasks, and each task's."""
    lines = []
    for threshold in THRESHOLDS:
        largest = by_evidence(curves, threshold).groupby(['seq_len', 'seed'])['samples'].max()
        for n, own in largest.groupby('seq_len'):
            lines.append({
                'threshold': threshold, 'N': n, 'mean': round(float(np.exp(np.log(own).mean()))), 'tasks': len(own),
                'smallest': own.min(), 'largest': own.max(),
            })  # fmt: skip
    return pd.DataFrame(lines)
