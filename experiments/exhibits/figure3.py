"""Figure 3: samples to test MSE 0.88 against the number of relevant tokens q on hermite2, N = 7, H = q heads.

0.88 lies above 1 − 1/N = 0.857, the risk of the best predictor that ignores t_i: with tokens N(0, I) and uniform
indices E[y | x] has variance 1/N + C/(qN) of a label variance 1 + C/(qN), C = Σ_{j≠l} ⟨u_j, u_l⟩², whatever q and u. So
this threshold asks for little retrieval, and it shows.

Command:  make figure3
          python -m experiments.sample_complexity --config=experiments/configs/figure3.py --workdir=DIR
Runtime:  13 minutes on two cores for Transformer and FFN; a lane of the RNN on a busy core 7 at q = 1, 73 at
          q = 4 (25 million parameters): so near the threshold 73 of its 129 tests are made
Expect:   means (thousands) for q = 1, 2, 3, 4: Transformer 248, 213, 183, 111; FFN 231, 261, ≥ 366 (one of five lanes
          censored at 1,000), 151; RNN at q = 1, 2, 4 234, 337, 83 (one lane each; q = 3 was stopped at 386, loss
          0.885); lanes differ by up to a factor of 6 with their draw of (u, ω). No growth with q.
"""

from experiments.configs import base


def get_config():
    """Preset `published` at learning rate 1e-4; H = q, RNN width 500 q, FFN widths (N d q, 1000); a task per lane."""
    config = base.get_config()
    config.link = 'hermite2'
    config.seq_lens = (7,)
    config.sparsity = (1, 2, 3, 4)
    config.learning_rate = (1e-4,)
    config.threshold = 0.88
    config.task_per_lane = True
    config.x = 'sparsity'
    config.title = 'qSTR, {link}, N = {seq_len}: samples to test MSE {threshold}'
    return config


def reduced():
    """The same in seconds, for the tests: a link and a rate that are soon learnt."""
    config = get_config()
    config.models = ('ffn',)
    config.link = 'linear'
    config.seq_lens = (4,)
    config.sparsity = (1, 2)
    config.learning_rate = (3e-3,)
    config.num_seeds = 2
    config.rnn.width = 16
    config.ffn.widths = (64,)
    config.test_samples = 100
    config.max_samples = 12_800
    return config
