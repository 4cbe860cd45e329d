"""Sensitivity: samples to test MSE 0.7 on 1STR, N = 6, over learning rate × weight decay × width.

One architecture at a time, after the colon; the published setting is framed in the figure.

Command:  make sensitivity
          python -m experiments.sensitivity --config=experiments/configs/sensitivity.py:transformer --workdir=DIR
          python -m experiments.sensitivity --config=experiments/configs/sensitivity.py:ffn --workdir=DIR2
          python -m experiments.sensitivity --config=experiments/configs/sensitivity.py:rnn --workdir=DIR3
Runtime:  4 minutes on two busy cores for the Transformer, 2 for the FFN; for a lane a point of the RNN on a busy
          core 11 at width 250, 24 at 500, 96 at 1000 without decay 1 at 1e-4
Expect:   Transformer: samples fall like rate^-0.84 at every width, from 112k at 1e-4 over 12.8k at 1e-3 to 2.35k at
          1e-2; weight decay up to 1 moves them by at most 13 %, half or double width by at most 4 %. FFN: 165k at 1e-4,
          21.1k at 1e-3, 10.9k at the best rate, 3e-3; at 1e-3 26.9k with half the widths and 16.2k with double. RNN:
          rate^-0.73, from 207k at 1e-4 over 30.1k at 1e-3 to 7.68k at 1e-2; 1.2 to 1.3 times that with half the width,
          0.87 times at 1e-4, 0.74 at 1e-3 and 1.25 at 1e-2 with double; a weight decay of 1 adds 14 to 50 %
          (127 % at double width and 1e-2).
"""

from experiments.configs import base
from qstr_jax import analysis, checks

# By model: the setting, its values (half, as published, double), and what rows say of the published one.
WIDTHS = {
    'transformer': ('mlp_width', (50, 100, 200), 100),
    'rnn': ('width', (250, 500, 1000), 500),
    'ffn': ('widths', ((30, 500), (60, 1000), (120, 2000)), '60,1000'),
}


def get_config(model='transformer'):
    """Preset `published` but for the three axes; three lanes a point, each with its own (u, ω)."""
    checks.choice('model', model, WIDTHS)
    setting, widths, published = WIDTHS[model]
    column = f'{model}_{setting}'
    config = base.get_config()
    config.models = (model,)
    config.seq_lens = (6,)
    config.num_seeds = 3
    config.task_per_lane = True
    config.learning_rate = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    config.weight_decay = (0.01, 0.1, 1.0)
    config.max_samples = 300_000
    config[model][setting] = widths
    config.heatmap = {'x': 'learning_rate', 'y': 'weight_decay', 'panels': column, 'top': ''}
    config.published = {'learning_rate': 1e-3, 'weight_decay': 0.01, column: published}
    config.title = f'{analysis.DISPLAY_NAMES[model]}: {{task}}, N = {{seq_len}}, samples to test MSE {{threshold}}'
    return config


def reduced(model='transformer'):
    """The same in seconds, for the tests."""
    config = get_config(model)
    setting, *_ = WIDTHS[model]
    config.seq_lens = (3,)
    config.num_seeds = 2
    config.learning_rate = (1e-3, 1e-2)
    config.weight_decay = (0.01, 0.1)
    config.threshold = 0.9
    config.test_samples = 64
    config.max_samples = 3200
    config[model][setting] = ((16, 16), (32, 32)) if model == 'ffn' else (8, 16)
    return config
