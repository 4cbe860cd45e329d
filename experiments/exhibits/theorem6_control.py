"""Theorem 6's control: a Transformer on 1STR, N = 64, below the floor 1 − n/(Nd) that holds for FFNs.

Command:  make theorem6
          python -m experiments.learning_curves --config=experiments/configs/theorem6_control.py --workdir=DIR
Runtime:  2 minutes on two cores that other work shared
Expect:   test error 0.001 at n/(Nd) = 3/4, where no FFN of the theorem is below 1/4.
"""

from experiments.exhibits import n_star


def get_config():
    """The learner of `n_star.py` at three given n, beside Theorem 6's oracle."""
    config = n_star.get_config()
    config.models = ('transformer', 'theorem6_oracle')
    config.seq_lens = (64,)
    config.num_samples = (0.25, 0.5, 0.75)
    config.samples_unit = 'Nd'
    config.radius = (1.0,)
    config.probes = ('theorem6_floor',)
    # A search has these; here n is given.
    config.min_samples = config.max_samples = config.resolution = None
    config.title = '{task}, N = {seq_len}, d = {token_dim}: a Transformer below the floor of FFNs'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = n_star.reduced()
    config.models = ('transformer', 'theorem6_oracle')
    config.seq_lens = (3,)
    config.num_samples = (0.5, 1.0)
    config.samples_unit = 'Nd'
    config.probes = ('theorem6_floor',)
    config.min_samples = config.max_samples = config.resolution = None
    return config
