"""n* of FFNs at stationary points: the least n with test loss 0.2 against N, beside Theorem 6's N d (1 − 0.2).

simple-1STR, linear link, d = 2, N = 4, 8, …, 64; FFN f(T, W x) of widths (64, 32), trained to stationary points of the
regularised risk, the setting of Theorem 6.
"""

from experiments.exhibits import theorem6
from qstr_jax.cli import base

ORDER = 205
QUESTION = 'Do FFNs at stationary points need n ≥ Ω(N d) prompts?'
FIGURES = {'n_star_stationary/figure.png': 'n* of FFNs at stationary points against N, d = 2'}


def get_config():
    """The FFN of `theorem6` at d = 2, five lanes with a task each; searches from n = 8 to 20,480."""
    config = theorem6.get_config()
    config.models = ('ffn',)
    config.learners = ('stationary',)
    config.probes = ()
    config.seq_lens = (4, 8, 16, 32, 64)
    config.token_dim = 2
    config.encoding_dim = 16
    config.num_samples = base.unset()
    config.samples_unit = 'prompts'
    config.batch_size = 64
    config.threshold = 0.2
    config.min_samples = 8
    config.max_samples = 20_480
    config.resolution = 0.1
    config.test_samples = 1000
    config.title = '{task}, d = {token_dim}: n* of FFNs at stationary points'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.seq_lens = (2,)
    config.encoding_dim = 4
    config.ffn.widths = (8, 8)
    config.max_steps = 60
    config.check_every = 30
    config.threshold = 0.6
    config.max_samples = 64
    config.resolution = 0.5
    config.test_samples = 100
    config.num_seeds = 2
    return config
