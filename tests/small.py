"""Small sweeps that several test files run: cells of a fraction of a second."""

from qstr_jax import learners, sweeps
from qstr_jax.sweeps import listing

# Narrow, short, and with few test prompts; enough to train.
SMALL = {
    'preset': 'published',
    'seq_lens': (3,),
    'num_seeds': 2,
    'token_dim': 4,
    'rnn.width': 8,
    'transformer.mlp_width': 16,
    'ffn.widths': (16, 16),
    'batch_size': 16,
    'check_every': 5,
    'max_samples': 3200,
    'test_samples': 64,
    'learning_rate': 3e-3,
    'threshold': 0.9,
}


def lane(seed, task_seed=None, learning_rate=1e-3, weight_decay=0.01, stop_after=0):
    """A lane of online training."""
    task_seed = seed if task_seed is None else task_seed
    rates = {'learning_rate': learning_rate, 'weight_decay': weight_decay, 'stop_after': stop_after}
    return learners.lane(learners.Online(), seed=seed, task_seed=task_seed, **rates)


def settings(**changes):
    """`sweeps.Sweep` of a small sweep."""
    return sweeps.Sweep(**{**SMALL, **changes}).without_unused()


def cell(model='transformer', **changes):
    """One cell of a small sweep."""
    return sweeps.cells_of(settings(models=(model,), **changes))[0]


def listed(sweep, workdir=None):
    """The listing of a dry run."""
    return listing.describe(sweep, sweeps.cells_of(sweep), workdir)


def quiet(**options):
    """`sweeps.Options` without a bar, on one device: every further one would compile every cell again."""
    return sweeps.Options(**{'progress': False, 'num_devices': 1, **options})
