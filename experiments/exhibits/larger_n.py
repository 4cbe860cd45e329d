"""Larger N: the Transformer's samples and seconds to test MSE 0.7 on 1STR by the point-wise risk, N = 4 to 1024.

The point-wise risk (2.3), Theorem 4's, asks for one position of each prompt, so that a step of the Transformer costs
O(N). A prompt then carries one label instead of N, which is why these samples are no continuation of Figure 1a.
"""

from qstr_jax import analysis, plots
from qstr_jax.analysis import combinations
from qstr_jax.cli import base
from qstr_jax.report import drawing, lanes
from qstr_jax.storage import provenance

ORDER = 110
IS_SUPPORTING = True
QUESTION = 'Does the Transformer keep its slow growth on prompts of a thousand tokens?'
FOLDERS = {'larger_n': ('short', 'long')}
FIGURES = {
    'larger_n/figure.png': 'Samples to test error 0.7 against N, one label per prompt, to N = 1024',
    'larger_n/cost.png': 'Seconds and samples against N',
}


def get_config(part='short'):
    """The published size and rate, five lanes, 1,000 test prompts; a test every 10 steps to N = 64, then every 100."""
    base.check_part(part, FOLDERS)
    seq_lens, check_every = {'short': ((4, 8, 16, 64), 10), 'long': ((256, 1024), 100)}[part]
    config = base.get_config(models=('transformer',), seq_lens=seq_lens, risk='pointwise', task_per_lane=True)
    config.update(check_every=check_every, test_samples=1000, max_samples=4_000_000)
    config.title = '{task}, point-wise risk: samples to test MSE {threshold}'
    config.notes = ('the published size and learning rate; tested on 1STR', '{test_samples} test prompts')
    return config


def reduced(part='short'):
    """The same in seconds, for the tests."""
    config = get_config(part)
    config.update(seq_lens=(3,), num_seeds=2, learning_rate=(1e-2,))
    config.update(threshold=0.9, check_every=20, test_samples=100, max_samples=12_800)
    return config


def draw(workdir, config):
    """What every sweep gets, and samples and seconds side by side."""
    drawing.draw(workdir, config)
    rows = lanes.load(workdir)
    seconds = analysis.seconds_per_cell(provenance.load(workdir), rows)
    for point, chosen in combinations.combinations(rows, (config.x,), combinations.model_settings(rows)):
        figure = plots.samples_and_seconds(chosen, seconds, config.x, **drawing.words(config, chosen, point))
        drawing.save(figure, workdir, f'cost{combinations.suffix(point)}')
    costs = seconds.drop(columns=['cell', 'wall_seconds']).sort_values(['model', 'seq_len'])
    drawing.write(costs, workdir, 'seconds')


def text(rows):
    lanes = rows('larger_n')
    lengths = tuple(lanes.values('seq_len'))
    longest = lanes.where(seq_len=lengths[-1])
    tuned = rows('one_label', model='transformer')
    return f"""
With one label per prompt it needs {lanes.where(seq_len=lengths[0]).mean()} samples at N = {lengths[0]} and
{longest.mean()} at N = {lengths[-1]}, which grows as N^{lanes.exponent()} at this learning rate (N^a or (log N)^p:
{lanes.law()}).

Exponents between neighbouring N are {lanes.slopes()}. At about 20,000 parameters, its best batch size and rate it is
N^{tuned.exponent()} to N = {tuned.values('seq_len')[-1]}. It took {lanes.where(seq_len=lengths[:-1]).time()} to
N = {lengths[-2]} and {longest.time()} at N = {lengths[-1]}.
"""


def table(rows):
    return rows('larger_n').samples_table('seq_len')


def limits(rows):
    shortest, best = rows('larger_n', seq_len=4), rows('one_label_published', model='transformer', seq_len=4)
    (rate,) = rows('larger_n').values('learning_rate')
    return f"""
It is no continuation of Figure 1a, whose prompts carry N labels, and one rate, {rate:g}, is not the best at each N:
at N = 4 the same network needs {best.mean()} at its best batch size and rate, and {shortest.mean()} here.
"""
