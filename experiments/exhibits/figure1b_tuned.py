"""Figure 1b at each architecture's best learning rate: samples to test MSE 0.02 on simple-1STR, N = 25, 27, …, 33.

Command:  make figure1b-tuned
          python -m experiments.sample_complexity --config=experiments/configs/figure1b_tuned.py --workdir=DIR
Runtime:  2 minutes of a busy core for the Transformer, 65 for the FFN, two and a half hours for the RNN at N = 25
Expect:   means 13.8, 14.3, 15.5, 15.2, 17.0 thousand for the Transformer, at rate 1e-2 at every N; 116, 159, 200, 216,
          234 thousand for the FFN, rates 1e-3, 1e-3, 3e-4, 3e-4, 3e-4; 63.4 thousand for the RNN at N = 25 at rate 3e-3
          (3 lanes); its other N are not run
"""

from experiments.configs import base
from experiments.exhibits import figure1b


def get_config():
    """As Figure 1b, a task per lane, the rate tuned, a test every ten steps."""
    config = figure1b.get_config()
    config.task_per_lane = True
    config.tune.learning_rate = 'auto'
    config.check_every = 10
    config.title = '{task} at the best learning rate: samples to test MSE {threshold}'
    config.reference = ()  # The published samples are at one rate.
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    base.shrink_tuned(config)
    config.seq_lens = (3,)
    config.threshold = 0.8
    return config
