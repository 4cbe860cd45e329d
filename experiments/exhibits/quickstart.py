"""Quickstart: a small Figure 1a, samples to test MSE 0.7 on 1STR against N.

Three architectures, N = 2, 4, 6, 8 and three seeds, with a narrower RNN and fewer test prompts than published.
"""

from qstr_jax.cli import base

ORDER = 5
IS_SUPPORTING = True
QUESTION = 'Does the installation work, and what does a first figure look like?'
FIGURES = {'quickstart/figure.png': 'Samples to test error 0.7 against N, three architectures'}


def get_config():
    """Three architectures, N = 2, 4, 6, 8, three seeds; a narrower RNN and fewer test prompts than published."""
    config = base.get_config(seq_lens=(2, 4, 6, 8), num_seeds=3, rnn={'width': 128}, test_samples=1000)
    config.title = 'Quickstart: {task}, samples to test MSE {threshold}'
    config.notes = (
        'seeds: {num_seeds} (published: 5)',
        'test prompts: {test_samples} (published: 5,000)',
        '{rnn_cell} of width {rnn_width} (published: 500)',
    )
    return config


def reduced():
    """The same in seconds, for the tests."""
    return shrink(get_config())


def shrink(config):
    """Shrinks Figure 1a to seconds, for the tests."""
    config.update(seq_lens=(2,), num_seeds=2, rnn={'width': 16}, test_samples=100, max_samples=3200, check_every=5)
    return config


def text(rows):
    runs = rows('quickstart', seq_len=8)
    return f"""
At N = 8 the Transformer needs {runs.where(model='transformer').mean()} samples, the FFN
{runs.where(model='ffn').mean()} and the RNN {runs.where(model='rnn').mean()} ({runs.lanes()} lanes of one (u, ω)).

At N = 2 a predictor that ignores t errs by 0.5 and is good enough, so that the three are nearly alike there.
"""


def table(rows):
    return rows('quickstart').samples_table('seq_len')


def limits(rows):
    return f"""
{rows('quickstart').lanes()} seeds share one draw of (u, ω), so
that it says nothing of the task in general; Figure 1a has more draws, lengths and the published sizes.
"""
