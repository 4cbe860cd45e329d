"""Larger N: samples and seconds to test MSE 0.7 on 1STR by the point-wise risk, N = 4, 8, 16, 64, 256, 1024.

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
FOLDERS = {'larger_n': ('transformer', 'ffn', 'rnn')}
FIGURES = {
    'larger_n/figure.png': 'Samples to test error 0.7 against N, one label per prompt, to N = 1024',
    'larger_n/cost.png': 'Seconds and samples against N',
}


def get_config(part='transformer'):
    """The point-wise risk, 1,000 test prompts, a look at them every 100 steps; FFN and RNN as far as they go."""
    base.check_part(part, FOLDERS)
    seq_lens = {'transformer': (4, 8, 16, 64, 256, 1024), 'ffn': (4, 8, 16), 'rnn': (4, 8)}[part]
    config = base.get_config(preset='published', models=(part,), seq_lens=seq_lens)
    config.update(risk='pointwise', num_seeds=1 if part == 'rnn' else 3, task_per_lane=True)
    config.update(check_every=100, test_samples=1000, max_samples=4_000_000)
    config.title = '{task}, point-wise risk: samples to test MSE {threshold}'
    config.notes = ('{test_samples} test prompts (published: 5,000), a test every {check_every} steps',)
    return config


def reduced(part='transformer'):
    """The same in seconds, for the tests."""
    config = get_config(part)
    config.update(models=('transformer',), seq_lens=(3,), num_seeds=2, learning_rate=(1e-2,))
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
    transformer, ffn = (rows('larger_n', model=model) for model in ('transformer', 'ffn'))
    longest = transformer.where(seq_len=1024)
    return f"""
With one label per prompt it needs {transformer.where(seq_len=4).mean()} samples at N = 4 and {longest.mean()} at N =
1024, which grows as N^{transformer.exponent()} at this learning rate (N^a or (log N)^p: {transformer.law()}), at the
best rate as N^{rows('larger_n_tuned', model='transformer').exponent()} to N = 256.

Exponents between neighbouring N are {transformer.slopes()}. The FFN goes from {ffn.where(seq_len=4).mean()} at N = 4
to {ffn.where(seq_len=8).mean()} at N = 8, and {ffn.count(seq_len=16, outcome='reached') or 'none'} of
{ffn.count(seq_len=16)} lanes gets there within {ffn.values('max_samples')[0]:,} at N = 16. The Transformer took
{transformer.where(seq_len=(4, 8, 16, 64, 256)).time()} to N = 256 and {longest.time()} at N = 1024, FFN and RNN
{rows('larger_n', model=('ffn', 'rnn')).time()}.
"""


def table(rows):
    return rows('larger_n', model=('transformer', 'ffn')).samples_table('seq_len')


def limits(rows):
    lanes, rnn = rows('larger_n'), rows('larger_n', model='rnn')
    between = lanes.values('check_every')[0] * lanes.values('batch_size')[0]
    return f"""
It is no continuation of Figure 1a, whose prompts carry N labels, and it is tested on simple-1STR, though trained on
1STR. The loss is looked at every {between:,} prompts, so that N = 4 is known to a factor of two; the RNN has
{rnn.lanes()} lane at N = {' and '.join(f'{n:g}' for n in rnn.values('seq_len'))}, which is drawn and in no number.
"""
