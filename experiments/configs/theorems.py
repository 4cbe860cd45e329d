"""The theorems as cards: constructions against their bounds, trained networks against floors.

Command:  make theorems
          python -m experiments.theorems --config=experiments/configs/theorems.py --workdir=DIR
Runtime:  about 45 minutes of one core; a card that is done is not made twice, and trainings go on where they stopped
Expect:   each card says whether its checks hold, and at how many points they could have failed; numbers in
          experiments/results/theorems/cards.json; what is asymptotic is told under each figure
"""

import dataclasses

from ml_collections import config_dict

from qstr_jax.theory import cards


def get_config():
    """All cards with the settings of the full run, `config.CARD.SETTING`."""
    config = config_dict.ConfigDict()
    config.cards = cards.names()
    for name in cards.names():
        config[name] = config_dict.ConfigDict(dataclasses.asdict(cards.settings(name)))
    return config


_SHORT_TRAINING = {
    'num_lanes': 1, 'steps': 200, 'batch_size': 32, 'mlp_width': 32, 'test_samples': 200, 'oracle_prompts': 100,
}  # fmt: skip
# By card, what differs from the full run in the tests.
_REDUCED = {
    'lemma11': {'seq_lens': (8, 16), 'sparsity': (1, 2), 'sharpness': (2, 8), 'links': ('sum',), 'num_prompts': 1},
    'proposition3': {'sizes': ((2, 2),), 'narrow': (2, 1), **_SHORT_TRAINING},
    'proposition21': {'sparsity': (2,), **_SHORT_TRAINING},
    'alignment': {
        'seq_len': 4, 'token_dim': 2, 'encoding_dim': 6,
        'num_lanes': 1, 'steps': 40, 'batch_size': 8, 'mlp_width': 8, 'test_samples': 64,
    },
    'theorem4': {
        'token_dim': 2, 'few': 4, 'many': 12, 'width': 4, 'num_lanes': 1, 'steps': 10,
        'rate_lens': (3,), 'rate_samples': (8, 16),
        'seq_lens': (3,), 'label_multiples': (2,), 'twists': 1,
        'unseen_len': 4, 'unseen_samples': 8, 'unseen_dims': (2, 4),
        'given_samples': (8,), 'test_samples': 20,
    },
    'bounds': {'seq_lens': (8, 16), 'token_dim': 3, 'log_samples': (4, 6, 8, 10, 12), 'shares': (0.3, 1.0)},
    'theorem6': {
        'simple_lens': (2,), 'seq_lens': (3,), 'token_dim': 3, 'tenths': (5,), 'num_lanes': 2, 'max_steps': 300,
        'control_len': 3, 'control_lanes': 1, 'control_dim': 4, 'control_steps': 20, 'test_samples': 100,
    },
    'alpha': {
        'seq_lens': (3,), 'token_dim': 2, 'threshold': 5.0, 'windows': 2, 'width': 4, 'hidden_width': 8,
        'num_lanes': 1, 'steps': 20, 'batch_size': 8, 'test_samples': 50,
    },
    'proposition8': {
        'seq_lens': (3,), 'eighths': (8,), 'target': 2.0, 'readout_width': 8, 'bits': (1,), 'storing_prompts': 50,
        'num_lanes': 1, 'steps': 20, 'batch_size': 8, 'test_samples': 50,
    },
    'theorem7': {'seq_lens': (4, 8), 'sparsity': (1, 2), 'token_dim': 3, 'num_prompts': 1},
    'theorem9': {
        'num_samples': (4, 8), 'draws': 1, 'seq_len': 4, 'seq_lens': (3,), 'token_dim': 3,
        'trained_lens': (2, 3), 'trained_samples': (4, 8), 'num_lanes': 1, 'bisections': 1,
        'steps': 20, 'online_steps': 20, 'test_samples': 50,
    },
}  # fmt: skip


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    for name, settings in _REDUCED.items():
        config[name].update(settings)
    return config
