"""A larger embedding instead of more heads: test loss against training samples for one head, q = 3, and growing d_e.

The task is that of `heads.py`. The floor (1 − 1/q)(1 − 1/d) of one head holds for every width of the embedding.

Command:  make embedding
          python -m experiments.heads --config=experiments/configs/embedding.py --workdir=DIR
Runtime:  5 minutes on two busy cores
Expect:   after 512,000 prompts test losses of 0.80, 0.76, 0.73, 0.77 (means of three lanes) for d_e = 9, 18, 36, 72: no
          line is near the floor, 0.444, and a larger embedding does not stand in for heads
"""

from experiments.exhibits import heads


def get_config():
    """H = 1, d_e = 9 (as published), 18, 36, 72: D_e = 39 to 291."""
    config = heads.get_config()
    config.transformer.num_heads = 1
    config.x = 'encoding_dim'
    config.encoding_dim = (9, 18, 36, 72)
    config.title = 'One head, larger embeddings: {link}, q = {sparsity}, d = {token_dim}, N = {seq_len}'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = heads.reduced()
    config.transformer.num_heads = 1
    config.x = 'encoding_dim'
    config.encoding_dim = (5, 9)
    return config
