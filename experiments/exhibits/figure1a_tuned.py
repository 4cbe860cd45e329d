"""Figure 1a at each architecture's best learning rate: samples to test MSE 0.7 on 1STR, N = 4, 6, …, 12.

At one fixed rate the samples are optimiser steps as much as statistics. Here each architecture has, at each N, the rate
whose slowest of three selection lanes needs the fewest samples; the samples are those of five other seeds.

Command:  make figure1a-tuned
          python -m experiments.sample_complexity --config=experiments/configs/figure1a_tuned.py --workdir=DIR
Runtime:  7 minutes of a busy core for Transformer and FFN; the RNN 13 at N = 4 and 6, two hours of a fifth of a core
          at N = 8 and 10, and again at N = 12
Expect:   means 794, 1,050, 1,150, 1,280, 1,380 for the Transformer at rate 3e-2, N^0.50 [0.37, 0.63]; 3.0, 10.5, 26.9,
          58.1, 119 thousand for the FFN at rates 1e-2, 3e-3, 3e-3, 1e-3, 1e-3, N^3.33 [3.08, 3.59]; 3.7, 8.3,
          13.1, 21.0, 23.7 thousand for the RNN at rate 1e-2, N^1.74 [1.41, 2.08]. Choosing costs 1.2
          times the samples of the untuned sweep at 1e-3 (Transformer 0.3, FFN 1.5).
"""

from experiments.configs import base
from experiments.exhibits import figure1a


def get_config():
    """As Figure 1a, a task per lane, the rate tuned, a test every two steps. At N = 2 ignoring t errs by 0.5."""
    config = figure1a.get_config()
    config.seq_lens = (4, 6, 8, 10, 12)
    config.task_per_lane = True
    config.tune.learning_rate = 'auto'
    config.check_every = 2
    config.title = '{task} at the best learning rate: samples to test MSE {threshold}'
    config.notes = ()
    config.reference = ()  # The published samples are at one rate.
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    base.shrink_tuned(config)
    config.seq_lens = (2, 3)
    return config
