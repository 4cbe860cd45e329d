"""A larger embedding instead of more heads: test loss against training samples for one head, q = 3, and growing d_e.

The task is that of `heads`. The floor (1 − 1/q)(1 − 1/d) of one head holds for every width of the embedding.
"""

from experiments.exhibits import heads

ORDER = 100
IS_SUPPORTING = True
QUESTION = 'Can a larger embedding stand in for missing heads?'
FIGURES = {'embedding/heads.png': 'Test loss against samples for one head and four widths of the embedding'}
draw = heads.draw


def get_config():
    """H = 1, d_e = 9 (as published), 18, 36, 72: D_e = 39 to 291."""
    config = heads.get_config()
    config.update(transformer={'num_heads': 1}, x='encoding_dim', encoding_dim=(9, 18, 36, 72))
    config.title = 'One head, larger embeddings: {link}, q = {sparsity}, d = {token_dim}, N = {seq_len}'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = heads.reduced()
    config.update(transformer={'num_heads': 1}, x='encoding_dim', encoding_dim=(5, 8))
    return config


def text(rows):
    lanes, two = rows('embedding'), rows('heads', transformer_num_heads=2)
    published, largest = (lanes.where(encoding_dim=d_e).mean('test_loss') for d_e in (9, 72))
    return f"""
It cannot: one head errs by {published} with the published d_e and by {largest} with eight times of it, while a second
head errs by {two.mean('test_loss')} after as many prompts.

No width of the embedding comes near the floor of one head. {lanes.lanes()} lanes with a task each; {lanes.time()} in
all.
"""


def table(rows):
    return heads.losses_table(rows, 'embedding', 'd_e', 'd_e')


def limits(rows):
    return f"""
What happens after more than {rows('embedding').values('max_samples')[0]:,} prompts: all losses are at that number. The
floor holds only for Proposition 3's task.
"""
