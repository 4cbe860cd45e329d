"""Heads: test loss against training samples for H = 1, …, 2q heads at fixed q, beside the floors of too few heads.

The task is Proposition 3's: link norm2, half of the tokens zero, t_i = (1, …, q) on the other half; no Transformer
with H < q heads, of any width and with any amount of data, falls below (1 − H/q)(1 − H/d) (theory/floors.py).

Command:  make heads
          python -m experiments.heads --config=experiments/configs/heads.py --workdir=DIR
Runtime:  11 minutes on two cores
Expect:   after 512,000 prompts the test losses (mean of three lanes) are 0.79, 0.39, 0.19, 0.04, 0.03, 0.02 for
          H = 1, …, 6; the floors are 0.444 and 0.111 for H = 1, 2 and 0 from H = 3 on. H = q + 1 learns far faster
          than H = q.
"""

from experiments.configs import base


def get_config():
    """q = 3, d = 3, N = 7, H = 1, …, 6; every lane trains for its whole budget."""
    config = base.get_config()
    config.models = ('transformer',)
    config.link, config.indices, config.tokens = 'norm2', 'half', 'half'
    config.test_task = 'qstr'
    config.seq_lens, config.sparsity, config.token_dim = (7,), (3,), 3
    config.num_seeds = 3
    config.task_per_lane = True
    config.threshold = 1e-9  # never reached: all lanes get the same budget
    config.max_samples = 512_000
    config.check_every = 100
    config.test_samples = 1000
    config.title = 'Heads: {link}, q = {sparsity}, d = {token_dim}, N = {seq_len}'
    config.x = 'transformer_num_heads'
    config.transformer.num_heads = (1, 2, 3, 4, 5, 6)
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.seq_lens, config.sparsity, config.token_dim = (5,), (2,), 2
    config.num_seeds = 2
    config.transformer.mlp_width = 16
    config.max_samples = 3200
    config.check_every = 10
    config.test_samples = 64
    config.transformer.num_heads = (1, 2)
    return config
