"""Figure 1a at the best learning rate: samples to test MSE 0.7 on 1STR, N = 4, 6, …, 12.

At one fixed rate the samples are optimiser steps as much as statistics. Here each architecture has, at each N, the rate
whose slowest of three selection lanes needs the fewest samples; the samples are those of five other seeds.
"""

from experiments.exhibits import figure1a
from qstr_jax.cli import base

ORDER = 20
QUESTION = 'How many samples does each architecture need at its own best learning rate?'
FOLDERS = {'figure1a_tuned': ('transformer', 'ffn', 'rnn')}
FIGURES = {
    'figure1a_tuned/figure.png': 'Samples to test error 0.7 at the best learning rate of each architecture',
    'figure1a_tuned/tuning_learning_rate.png': 'Samples against the learning rate, of which the best is chosen; lanes '
    'that have lost are stopped (triangles)',
}


def get_config(part='transformer'):
    """One architecture as in Figure 1a, a task per lane, the rate tuned, a test every two steps."""
    base.check_part(part, FOLDERS)
    config = figure1a.get_config()
    config.update(preset='standard', models=(part,), seq_lens=(4, 6, 8, 10, 12), task_per_lane=True)
    config.tune.learning_rate = 'auto'
    config.check_every = 2
    config.title = '{task} at the best learning rate: samples to test MSE {threshold}'
    config.notes = ()
    config.published_samples = ()  # The published samples are at one rate.
    return config


def reduced(part='transformer'):
    """The same in seconds, for the tests: every part is a small FFN."""
    return base.shrink_tuned(get_config(part), seq_lens=(2, 3))


def text(rows):
    transformer, rnn, ffn = (rows('figure1a_tuned', model=model) for model in ('transformer', 'rnn', 'ffn'))
    chosen = rows('figure1a_tuned/selection')
    return f"""
The Transformer's samples grow as N^{transformer.exponent()}, the RNN's as N^{rnn.exponent()}, the FFN's as
N^{ffn.exponent()}; the FFN needs most, clearly from N = 6 on.

The best rate of Transformer and RNN is {transformer.extent('learning_rate')} and {rnn.extent('learning_rate')} at
every N, both above the published one. The FFN's falls from {ffn.where(seq_len=4).extent('learning_rate')} at N = 4 to
the published {ffn.where(seq_len=12).extent('learning_rate')} at N = 12.

N^a or (log N)^p: {transformer.law()} for the Transformer, {rnn.law()} for the RNN, {ffn.law()} for the FFN. Lanes and
the choice took {rows('figure1a_tuned', 'figure1a_tuned/selection', model=('transformer', 'ffn')).time()} for
Transformer and FFN, {rnn.time()} and {chosen.where(model='rnn').time()} for the RNN.
"""


def table(rows):
    return rows('figure1a_tuned').samples_table('seq_len')


def limits(rows):
    seeds = {len(text.split()) for text in rows('figure1a_tuned').values('tuned_seeds')}
    return f"""
A rate is the best of those tried, on {max(seeds)} seeds; batch size, weight decay and width are not tuned, and the
widths of the three are those of the paper's code, not of one size.
"""
