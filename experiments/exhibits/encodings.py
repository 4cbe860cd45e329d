"""Encodings: samples to test MSE 0.7 on 1STR, N = 6, over d_e (with the coherence) and scaled against unscaled.

Command:  make encodings
          python -m experiments.sensitivity --config=experiments/configs/encodings.py --workdir=DIR
Runtime:  2 minutes on two cores, most of it to compile twelve programs
Expect:   scaled encodings need a third of the samples (published setting 12.2k, scaled 4.0k), larger d_e needs fewer:
          from d_e = 3 to 32 15.4k to 6.1k unscaled and 4.9k to 1.9k scaled; mean largest coherence 1.00 to 0.37.
"""

from experiments.configs import base


def get_config():
    """The Transformer; published is d_e = ⌊5 ln 6⌋ = 8, unscaled. Five lanes a point, each with its own (u, ω)."""
    config = base.get_config()
    config.models = ('transformer',)
    config.seq_lens = (6,)
    config.num_seeds = 5
    config.task_per_lane = True
    config.max_samples = 300_000
    config.encoding_dim = (3, 5, 8, 12, 18, 32)
    config.encoding_scale = ('unscaled', 'scaled')
    config.heatmap = {'x': 'encoding_dim', 'y': 'encoding_scale', 'panels': '', 'top': 'encoding_coherence'}
    config.published = {'encoding_dim': 8, 'encoding_scale': 'unscaled'}
    config.title = 'Transformer: {task}, N = {seq_len}, samples to test MSE {threshold}'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.seq_lens = (3,)
    config.num_seeds = 2
    config.threshold = 0.9
    config.test_samples = 64
    config.max_samples = 3200
    config.encoding_dim = (3,)
    return config
