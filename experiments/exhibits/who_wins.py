"""Who wins where: samples to a small error against N, at the best rate, for retrieval, recall, tracking and real data.

Retrieval: qSTR and causal qSTR. Recall: MQAR, and keys with noise. Tracking: parity and words over S_3, supervised at
every position. Real data: flights with given positions, heads of words, digits that point. The networks are small and
of the published kinds: a Transformer of one layer, a bidirectional GRU of width 32, an FFN of widths 64 and 64.
"""

from qstr_jax.cli import base
from qstr_jax.settings import checks

ORDER = 32
QUESTION = 'Which architecture needs the fewest samples for retrieval, recall, tracking, and on real data?'
MSE, LENGTHS = 0.3, (4, 8, 12)
# By task: its lengths, its threshold, the settings that are not at their default.
PARTS = {
    'qstr': (LENGTHS, MSE, {}),
    'modular_sum': (LENGTHS, 0.05, {}),
    'mqar': ((8, 12, 16), 0.05, {'vocab_size': 32}),  # N = 4 has one pair, which needs no recall
    'permutations': (LENGTHS, 0.05, {}),
    'noisy_keys': (LENGTHS, MSE, {}),
    'pointing_digits': (LENGTHS, 0.2, {}),
    'word_heads': ((8, 12), 0.05, {}),  # few sentences have four words
    'causal_qstr': (LENGTHS, MSE, {}),
    'flights': (LENGTHS, MSE, {}),
}
FOLDERS = {'who_wins': tuple(PARTS)}


def get_config(part='qstr'):
    """One task: three architectures, five lanes with a task each, the rate tuned, at most 64,000 prompts."""
    checks.choice('part', part, PARTS)
    seq_lens, threshold, settings = PARTS[part]
    config = base.get_config()
    config.task.name = part
    config.task.update(settings)
    config.seq_lens, config.threshold = seq_lens, threshold
    if threshold != MSE:
        config.threshold_on = 'error_rate'
    config.task_per_lane = True
    config.tune.learning_rate = (1e-3, 3e-3, 1e-2)
    config.rnn.width = 32
    config.ffn.widths = (64, 64)
    config.test_samples = 1000
    config.max_samples = 64_000
    return config


def reduced(part='qstr'):
    """The same in seconds, for the tests: every part is a small FFN."""
    config = get_config(part)
    base.shrink_tuned(config)
    config.seq_lens = config.seq_lens[:1]
    return config


def draw(workdir, config):
    """Nothing yet."""
