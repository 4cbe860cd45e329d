"""Figure 1b at the best learning rate: samples to test MSE 0.02 on simple-1STR, N = 25, 27, …, 33.

The rate is chosen as in Figure 1a at the best learning rate. The RNN, which takes hours, is run only at N = 25.
"""

from experiments.exhibits import figure1b
from qstr_jax.cli import base

ORDER = 50
IS_SUPPORTING = True
QUESTION = 'What changes on simple-1STR when each architecture has its own best learning rate?'
FOLDERS = {'figure1b_tuned': ('transformer', 'ffn', 'rnn')}
FIGURES = {
    'figure1b_tuned/figure.png': 'Samples to test error 0.02 at the best learning rate; the RNN only at N = 25',
    'figure1b_tuned/tuning_learning_rate.png': 'Samples against the learning rate, from which the best is chosen',
}


def get_config(part='transformer'):
    """One architecture as in Figure 1b, the rate tuned, a test every ten steps; of the RNN three lanes at N = 25."""
    base.check_part(part, FOLDERS)
    config = figure1b.get_config(part)
    config.tune.learning_rate = 'auto'
    config.check_every = 10
    config.title = '{task} at the best learning rate: samples to test MSE {threshold}'
    config.published_samples = ()  # The published samples are at one rate.
    if part == 'rnn':
        config.update(seq_lens=(25,), num_seeds=3)
    return config


def reduced(part='transformer'):
    """The same in seconds, for the tests: every part is a small FFN."""
    return base.shrink_tuned(get_config(part), seq_lens=(3,), threshold=0.8)


def text(rows):
    transformer, ffn = (rows('figure1b_tuned', model=model) for model in ('transformer', 'ffn'))
    before = {model: rows('figure1b', model=model, seq_len=33) for model in ('transformer', 'ffn')}
    often = before['ffn'].values('check_every')[0] // ffn.values('check_every')[0]
    return f"""
At N = 33 a better rate takes the Transformer from {before['transformer'].mean()} to
{transformer.where(seq_len=33).mean()} samples, the FFN from {before['ffn'].mean()} to {ffn.where(seq_len=33).mean()};
tests are {often} times as frequent. Their exponents are {transformer.exponent()} and {ffn.exponent()}.

The Transformer's best rate is {transformer.extent('learning_rate')} at every N, ten times the published one; the FFN's
is the published one at N = 25 and 27 and lower beyond. The RNN needs {rows('figure1b_tuned', model='rnn').mean()} at N
= 25, between the two. All of it, with what the rates were chosen from, took
{rows('figure1b_tuned', 'figure1b_tuned/selection').time()}.
"""


def table(rows):
    return rows('figure1b_tuned').samples_table('seq_len')


def limits(rows):
    return f"""
The RNN beyond N = {max(rows('figure1b_tuned', model='rnn').values('seq_len'))} is not run. So short a range of N says
little about an exponent.
"""
