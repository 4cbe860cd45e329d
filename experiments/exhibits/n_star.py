"""n*: the smallest sample on which constrained ERM gets below test loss 0.05, against N (Theorem 4).

Command:  make n-star
          python -m experiments.learning_curves --config=experiments/configs/n_star.py --workdir=DIR
Runtime:  61 minutes on two cores that other work shared, without R = 1/2 at N = 64; by the point-wise risk 33
Expect:   means 127, 233, 260, 323 at N = 8, 16, 32, 64 for R = 1; R = 1/2 censored, its training risk stays large.
"""

from experiments.configs import base
from experiments.exhibits import learning_curves


def get_config():
    """Merged Transformer, H = q = 1, d = 10, scaled encodings of coherence ≤ 1/2; R in construction norms."""
    config = base.get_config(learning_curves.PLUGINS)
    config.models = ('transformer', 'least_squares')
    config.learners = ('constrained',)
    config.preset = 'paper'
    config.test_task = 'qstr'
    config.seq_lens = (8, 16, 32, 64)
    config.token_dim = 10
    config.encoding_dim = 75  # 18 ln 64
    config.encoding_scale = 'scaled'
    config.max_coherence = 0.5
    config.transformer.attention = 'merged'
    config.transformer.mlp_width = 32
    config.task_per_lane = True
    config.radius = (0.5, 1.0, 2.0)
    config.radius_unit = 'construction'
    config.learning_rate = (3e-3,)
    config.schedule = 'cosine'
    config.batch_size = 32
    config.max_steps = 1000
    config.check_every = 250
    config.threshold = 0.05
    config.min_samples = 5
    config.max_samples = 5120
    config.resolution = 0.2
    config.test_samples = 1000
    config.validation_samples = 500
    config.num_seeds = 3
    config.title = '{task}: n* of constrained ERM, averaged risk'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.models = ('transformer',)
    config.seq_lens = (2, 3)
    config.token_dim = 2
    config.encoding_dim = 8
    config.max_coherence = 0.8
    config.transformer.mlp_width = 8
    config.radius = (1.0, 2.0)
    config.max_steps = 60
    config.check_every = 30
    config.threshold = 0.6
    config.min_samples = 2
    config.max_samples = 64
    config.resolution = 0.5
    config.test_samples = 100
    config.validation_samples = 50
    config.num_seeds = 2
    return config
