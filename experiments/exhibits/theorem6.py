"""Theorem 6: an FFN at a stationary point or of least norm errs by at least 1 − n/(N d), run by run.

Command:  make theorem6
          python -m experiments.learning_curves --config=experiments/configs/theorem6.py --workdir=DIR
Runtime:  28 minutes on two cores that other work shared; make's two further runs 2 and 3
Expect:   every FFN run above its floor, the oracle within 2.2 s.e. of it, least squares that knows t below;
          mean loss of the FFN 1.1 to 1.4.
"""

from experiments.configs import base
from experiments.exhibits import learning_curves


def get_config():
    """simple-1STR, linear link, d = 4; FFN f(T, W x), oracle, and a control that knows t, at n/(Nd) from 0.1 to 3."""
    config = base.get_config(learning_curves.PLUGINS)
    config.models = ('ffn', 'theorem6_oracle', 'least_squares', 'zero')
    config.learners = ('stationary', 'min_norm')
    config.probes = ('theorem6_floor',)
    config.task.name = config.test_task = 'simple_qstr'
    config.preset = 'paper'
    config.seq_lens = (5, 10)
    config.token_dim = 4
    config.encoding_dim = 12
    config.ffn.form = 'theorem6'
    config.ffn.widths = (64, 32)
    config.transformer.attention = 'merged'
    config.transformer.mlp_width = 16
    config.task_per_lane = True
    config.num_samples = (0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    config.samples_unit = 'Nd'
    config.span = 'coordinates'
    config.optimizer = 'adam'
    config.batch_size = 0
    config.learning_rate = (1e-2,)
    config.weight_decay = (1e-3,)
    config.schedule = 'cosine'
    config.max_steps = 3000
    config.check_every = 250
    config.tolerance = 1e-3
    config.test_samples = 2000
    config.num_seeds = 5
    config.title = 'Theorem 6: {task}, test loss against n/(Nd)'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.models = ('ffn', 'theorem6_oracle')
    config.learners = ('stationary',)
    config.seq_lens = (3,)
    config.token_dim = 2
    config.encoding_dim = 4
    config.ffn.widths = (8, 8)
    config.num_samples = (0.5, 1.0, 2.0)
    config.max_steps = 40
    config.check_every = 20
    config.test_samples = 200
    config.validation_samples = 50
    config.num_seeds = 2
    return config
