"""Small sweeps that several test files run: cells of a fraction of a second."""

from qstr_jax import sweeps

# Narrow, short, and with few test prompts; enough to train.
SMALL = {
    'seq_lens': (3,),
    'num_seeds': 2,
    'token_dim': 4,
    'rnn_width': 8,
    'mlp_width': 16,
    'ffn_widths': (16, 16),
    'batch_size': 16,
    'check_every': 5,
    'max_samples': 3200,
    'test_samples': 64,
    'learning_rate': 3e-3,
    'threshold': 0.9,
}


def settings(**changes):
    """`sweeps.Settings` of a small sweep."""
    return sweeps.Settings(**{**SMALL, **changes})


def cell(model='transformer', **changes):
    """One cell of a small sweep."""
    return sweeps.cells_of(settings(models=(model,), **changes))[0]


def quiet(**options):
    """`sweeps.Options` without a bar, on one device: every further one would compile every cell again."""
    return sweeps.Options(**{'progress': False, 'num_devices': 1, **options})
