"""Flights that name rows of a table by a key: samples against N, and the error against the noise of keys.

A prompt is a table of N hours of weather, each with a key that is drawn anew, and N flights that have the key of one of
them and ask for its wind speed: a database join. Rows that a test sees were never trained on. Once at N = 4, …, 64 for
the samples to test error 0.3, and once at N = 8 for the error after a fixed budget, with noise on the flights' keys.
"""

from qstr_jax.cli import base
from qstr_jax.settings import checks

ORDER = 36
QUESTION = 'How many prompts does a learnt join by key need as the table grows, and how blurred may keys be?'
FOLDERS = {'flights': ('samples',), 'flights_noise': ('noise',)}


def get_config(part='samples'):
    """Transformer and FFN at N = 4, …, 64; or the Transformer at N = 8, five sizes of noise, for all of its budget."""
    checks.choice('part', part, ('samples', 'noise'))
    config = base.get_config()
    config.task.name, config.task.lookup = 'flights', 'key'
    config.task_per_lane = True
    config.tune.learning_rate = (3e-3, 1e-2)
    config.test_samples = 1000
    config.max_samples = 64_000
    if part == 'samples':
        config.models = ('transformer', 'ffn')
        config.ffn.widths = (64, 64)
        config.seq_lens = (4, 8, 16, 32, 64)
        config.threshold = 0.3
        config.title = 'Joins by key: samples to test MSE {threshold}'
    else:
        config.models = ('transformer',)
        config.seq_lens = (8,)
        config.task.key_noise = (0.0, 0.25, 0.5, 1.0, 2.0)
        config.threshold = 1e-9  # never reached: all lanes get the same budget
        config.x = 'key_noise'
        config.save_params = True
    return config


def reduced(part='samples'):
    """The same in seconds, for the tests: a small FFN, or a Transformer at one noise."""
    config = get_config(part)
    base.shrink_tuned(config)
    if part == 'samples':
        config.seq_lens = (3, 4)
    else:
        config.models = ('transformer',)
        config.seq_lens, config.task.key_noise = (4,), (0.0, 1.0)
    return config


def draw(workdir, config):
    """Nothing yet."""
