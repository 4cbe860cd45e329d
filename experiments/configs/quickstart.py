"""Quickstart: a small Figure 1a, samples to test MSE 0.7 on 1STR against N.

Command:  make quickstart
          python -m experiments.sample_complexity --config=experiments/configs/quickstart.py --workdir=DIR
Runtime:  about 2 minutes on two cores
Expect:   at N = 2 all three alike; at N = 8 Transformer < FFN < RNN, means (thousands) 16, 41, 72.
"""

from experiments.configs import base


def get_config():
    """Three architectures, N = 2, 4, 6, 8, three seeds; a narrower RNN and fewer test prompts than published."""
    config = base.get_config()
    config.seq_lens = (2, 4, 6, 8)
    config.num_seeds = 3
    config.rnn.width = 128
    config.test_samples = 1000
    config.title = 'Quickstart: {task}, samples to test MSE {threshold}'
    config.notes = (
        'seeds: {num_seeds} (published: 5)',
        'test prompts: {test_samples} (published: 5,000)',
        '{rnn_cell} of width {rnn_width} (published: 500)',
    )
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.seq_lens = (2, 3)
    config.num_seeds = 2
    config.rnn.width = 16
    config.test_samples = 100
    config.max_samples = 3200
    config.check_every = 5
    return config
