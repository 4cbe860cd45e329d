"""Samples against accuracy: 1STR at N = 4 and 8, to test MSE 0.9, 0.7, 0.5, 0.3 and 0.1 in one run, at the best rate.

The learning rate is tuned for the last threshold; lanes cross the others on the way.
"""

import itertools

from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.cli import base

ORDER = 30
QUESTION = 'At which test loss do the architectures part?'
FIGURES = {
    'accuracy/thresholds.png': 'Samples against the test loss that is asked for, Transformer and FFN, N = 4 and 8',
    'accuracy/tuning_learning_rate.png': 'Samples to 0.1 against the learning rate, from which the best is chosen',
}


def get_config():
    """Transformer and FFN, five lanes with a task each, a test every five steps, at most 400,000 samples."""
    config = base.get_config(models=('transformer', 'ffn'), seq_lens=(4, 8), task_per_lane=True)
    config.update(threshold=0.1, thresholds=(0.9, 0.7, 0.5, 0.3), check_every=5, max_samples=400_000)
    config.tune.learning_rate = 'auto'
    config.title = '{task} at the best learning rate for MSE 0.1'
    return config


def reduced():
    """The same in seconds, for the tests."""
    return base.shrink_tuned(get_config(), seq_lens=(3,), threshold=0.8, thresholds=(0.95, 0.9))


def text(rows):
    transformer, ffn = (rows('accuracy', model=model, seq_len=8) for model in ('transformer', 'ffn'))
    first, last = {'threshold': 0.9}, {'threshold': 0.1}
    easy, hard = factors(rows, 8)
    easy_4, hard_4 = factors(rows, 4)
    return f"""
At N = 8 the FFN needs {easy} times the Transformer's samples for test error 0.9, where no retrieval is needed, and
{hard} times for 0.7 and below, where it is. For 0.9 the Transformer needs {transformer.where(**first).mean()} and the
FFN {ffn.where(**first).mean()}, for 0.1 {transformer.where(**last).mean()} and {ffn.where(**last).mean()}.

A predictor that ignores t errs by 1 − 1/N (dashed). At N = 4 the FFN needs {easy_4} times the Transformer's samples for
0.9 and {hard_4} times for 0.7 and below. It took {rows('accuracy', 'accuracy/selection').time()} with all that the
rates were chosen from.
"""


def factors(rows, seq_len):
    """How many times the Transformer's samples the FFN needs: at the threshold 0.9, and as an interval below it."""
    means = analysis.summarize(rows('accuracy', seq_len=seq_len).table, ['model', 'threshold'])
    means = means.pivot(index='threshold', columns='model', values='mean')
    ratio = means['ffn'] / means['transformer']
    below = ratio[ratio.index < ratio.index.max()]
    return f'{ratio[ratio.index.max()]:.2g}', f'{below.min():.0f} to {below.max():.0f}'


def table(rows):
    lines = []
    for seq_len, model in itertools.product((4, 8), ('transformer', 'ffn')):
        means = rows('accuracy', model=model, seq_len=seq_len).mean(by='threshold').split(', ')
        lines.append([f'N = {seq_len}', analysis.display(model), *means[::-1]])
    return formats.pipes(['samples', '', '0.9', '0.7', '0.5', '0.3', '0.1'], lines)


def limits(rows):
    return f"""
There is no RNN, and no length beyond
{max(rows('accuracy').values('seq_len'))}. The rate is the best for the last threshold, not for each.
"""
