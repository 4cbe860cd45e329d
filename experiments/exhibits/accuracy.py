"""Samples against accuracy: 1STR at N = 4 and 8, to test MSE 0.9, 0.7, 0.5, 0.3 and 0.1 in one run, at the best rate.

At which loss do the architectures part? The learning rate is tuned for the last threshold; the others are on the way.

Command:  make accuracy
          python -m experiments.sample_complexity --config=experiments/configs/accuracy.py --workdir=DIR
Runtime:  12 minutes of a busy core
Expect:   means at N = 4 and thresholds 0.9, 0.7, 0.5, 0.3, 0.1: Transformer 0.45, 0.90, 1.2, 1.7, 2.4 thousand, FFN
          0.64, 4.7, 8.4, 12.2, 19.6 thousand; at N = 8 0.83, 1.3, 1.7, 2.0, 2.7 and 4.3, 27, 91, 186, 291 thousand.
"""

from experiments.configs import base


def get_config():
    """Transformer and FFN, five lanes with a task each, a test every five steps, at most 400,000 samples."""
    config = base.get_config()
    config.models = ('transformer', 'ffn')
    config.seq_lens = (4, 8)
    config.threshold = 0.1
    config.thresholds = (0.9, 0.7, 0.5, 0.3)
    config.task_per_lane = True
    config.tune.learning_rate = 'auto'
    config.check_every = 5
    config.max_samples = 400_000
    config.title = '{task} at the best learning rate for MSE 0.1'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    base.shrink_tuned(config)
    config.seq_lens = (3,)
    config.threshold = 0.8
    config.thresholds = (0.95, 0.9)
    return config
