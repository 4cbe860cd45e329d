"""Figure 1b at each architecture's best learning rate: samples to test MSE 0.02 on simple-1STR, N = 25, 27, …, 33.

Command:  make figure1b-tuned
          python -m experiments.sample_complexity --config=experiments/configs/figure1b_tuned.py --workdir=DIR
Runtime:  2 minutes of a busy core for the Transformer
Expect:   means 13.8, 14.3, 15.5, 15.2, 17.0 thousand for the Transformer, at rate 1e-2 at every N; FFN
          and RNN are not run.
"""

from experiments.configs import base


def get_config():
    """As Figure 1b, a task per lane, the rate tuned, a test every ten steps."""
    config = base.get_config()
    config.task.name = 'simple_qstr'
    config.seq_lens = (25, 27, 29, 31, 33)
    config.threshold = 0.02
    config.task_per_lane = True
    config.tune.learning_rate = 'auto'
    config.check_every = 10
    config.title = 'simple-1STR at the best learning rate: samples to test MSE 0.02'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.models = ('ffn',)
    config.seq_lens = (3, 4)
    config.threshold = 0.8
    config.num_seeds = 2
    config.ffn.widths = (32,)
    config.tune.num_seeds = 2
    config.test_samples = 100
    config.max_samples = 6400
    return config
