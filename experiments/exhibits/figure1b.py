"""Figure 1b: samples to test MSE 0.02 on simple-1STR, linear link, N = 25, 27, …, 33.

As published (preset `published`), with a draw of (u, ω) for each lane.
A directory of its own has many draws of the FFN at N = 25.
"""

import pandas as pd

from experiments.exhibits import figure1a
from qstr_jax import analysis
from qstr_jax.cli import base

ORDER = 40
QUESTION = 'How many training prompts does each architecture need where all positions ask for the same token?'
FOLDERS = {'figure1b': ('transformer', 'ffn', 'rnn'), 'figure1b_draws': ('draws',)}
TITLES = {'figure1b_draws': 'Figure 1b over many draws of (u, ω): the FFN at N = 25'}
LIMITS = 'N grows only by a third, too little to fix an exponent or law.'
FIGURES = {
    'figure1b/figure.png': 'Samples to test error 0.02 on simple-1STR against N, compared with the published numbers',
    'figure1b_draws/figure.png': 'The FFN at N = 25 over many draws of (u, ω)',
}
# Read off the published plot.
PUBLISHED = {('transformer', 25): 117_000, ('transformer', 33): 140_000, ('rnn', 25): 107_000, ('rnn', 33): 165_000,
             ('ffn', 25): 240_000, ('ffn', 33): 630_000}  # fmt: skip


def get_config(part='transformer'):
    """One architecture, with a (u, ω) for each lane; or `draws`, 24 of them for the FFN at N = 25."""
    base.check_part(part, FOLDERS)
    config = base.get_config(preset='published', models=('ffn',) if part == 'draws' else (part,))
    config.update(task={'name': 'simple_qstr'}, task_per_lane=True, num_seeds=5)
    config.update(seq_lens=(25, 27, 29, 31, 33), threshold=0.02, check_every=100)
    config.title = '{task}: samples to test MSE {threshold}'
    config.published_for.update(
        test_task='simple_qstr', task='simple_qstr', link='linear', token_dim=10, threshold=0.02
    )
    config.published_samples = tuple((*point, samples) for point, samples in PUBLISHED.items())
    if part == 'draws':
        config.update(seq_lens=(25,), num_seeds=24)
    return config


def reduced(part='transformer'):
    """The same in seconds, for the tests: shorter prompts, a threshold that is soon reached."""
    config = get_config(part)
    config.update(models=('ffn',), ffn={'widths': (32,)}, seq_lens=(5,), num_seeds=2)
    config.update(threshold=0.9, check_every=20, test_samples=100, max_samples=12_800)
    return config


def text(rows):
    transformer, rnn, ffn = (rows('figure1b', model=model) for model in ('transformer', 'rnn', 'ffn'))
    draws = rows('figure1b_draws')
    by = {backend: rnn.count(backend=backend) for backend in ('cpu', 'gpu')}
    with_all = analysis.exponent(pd.concat([draws.table, ffn.where(seq_len=(27, 29, 31, 33)).table]))
    return f"""
From N = 25 to 33 the Transformer goes from {transformer.where(seq_len=25).mean()} to
{transformer.where(seq_len=33).mean()} samples, N^{transformer.exponent()}, the FFN from {ffn.where(seq_len=25).mean()}
to {ffn.where(seq_len=33).mean()}, five draws of (u, ω) each, the RNN from {rnn.where(seq_len=25).mean()} to
{rnn.where(seq_len=33).mean()}, N^{rnn.exponent()}.

{draws.count()} draws at N = 25, these among them, need {draws.mean()} by the FFN, between {draws.smallest()} and
{draws.largest()}.

By its own five draws at each N the FFN grows as N^{ffn.exponent()}, with the {draws.count()} at N = 25 as N^{with_all}.
Transformer and FFN took {transformer.time()} and {ffn.time()}, the RNN {rnn.time()}: {by['cpu']}
of its lanes by a CPU, {by['gpu']} by a GPU.
"""


def table(rows):
    draws = rows('figure1b_draws')
    return figure1a.published_table(PUBLISHED, {'measured': rows('figure1b'), f'{draws.count()} draws': draws})
