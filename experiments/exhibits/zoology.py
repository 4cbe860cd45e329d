"""Zoology's picture: accuracy on MQAR against width, attention beside recurrent mixers, and the samples to 99 %.

As in Figure 2 of Arora et al., "Zoology" (arXiv:2312.04927): two causal blocks of norm and mixer without MLP, here one
head as wide as the sequence, and a convolution of two tokens before each mixer, for all alike. N = 4 K for K pairs.
The rate is tuned at each width and number of pairs for the samples to 99 %, which that figure does not have.
"""

from qstr_jax.cli import base
from qstr_jax.settings import checks

ORDER = 34
QUESTION = 'How wide must attention and recurrent networks be to recall K pairs, and how many prompts do they need?'
WIDTHS = {'w8': 8, 'w16': 16, 'w32': 32}
FOLDERS = {'zoology': tuple(WIDTHS)}
MODELS = ('attention', 'deltanet', 'mamba2')


def get_config(part='w8'):
    """One width: three mixers, two and four pairs, five lanes with a task each, at most 32,000 prompts."""
    checks.choice('part', part, WIDTHS)
    width = WIDTHS[part]
    config = base.get_config()
    config.models = MODELS
    config.task.name, config.task.vocab_size = 'mqar', 32
    config.seq_lens = (8, 16)
    for model in MODELS:
        config[model].update(width=width, head_dim=width, heads=1, mlp='none', short_conv=2, bidirectional=False)
    config.mamba2.state_dim = width
    config.task_per_lane = True
    config.tune.learning_rate = (3e-3, 1e-2)
    config.threshold, config.threshold_on = 0.01, 'error_rate'
    config.test_samples = 1000
    config.max_samples = 32_000
    return config


def reduced(part='w8'):
    """The same in seconds, for the tests: attention at one width."""
    config = get_config('w8')
    config.models = ('attention',)
    config.seq_lens, config.num_seeds, config.tune.num_seeds = (8,), 2, 2
    config.max_samples, config.test_samples = 6400, 100
    return config


def draw(workdir, config):
    """Nothing yet."""
