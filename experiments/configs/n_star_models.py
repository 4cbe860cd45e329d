"""n* of all architectures on a small task (d = 2): AdamW on n prompts to test loss 0.05, against N.

Command:  make n-star-models
          python -m experiments.learning_curves --config=experiments/configs/n_star_models.py --workdir=DIR
          and once more with --config.task.name=qstr --config.test_task=qstr and another directory
Runtime:  37 minutes on a core that other work shared, most of it the RNN's
Expect:   means on simple-1STR at N = 4, 8, 16: Transformer 62, 173, 481, RNN 114, 361, 1,440, FFN 107, 612, 2,290.
"""

from experiments.configs import base, learning_curves


def get_config():
    """simple-1STR, d = 2; exclusive GRU of width 32 with a two-layer read-out, FFN (128, 64), merged Transformer."""
    config = base.get_config(learning_curves.PLUGINS)
    config.models = ('transformer', 'rnn', 'ffn', 'least_squares')
    config.learners = ('adamw',)
    config.preset = 'paper'
    config.task.name = config.test_task = 'simple_qstr'
    config.seq_lens = (4, 8, 16)
    config.token_dim = 2
    config.encoding_dim = 16
    config.transformer.attention = 'merged'
    config.transformer.mlp_width = 32
    config.rnn.cell = 'gru'
    config.rnn.width = 32
    config.rnn.states = 'exclusive'
    config.rnn.readout = 'mlp'
    config.ffn.widths = (128, 64)
    config.task_per_lane = True
    config.learning_rate = (3e-3,)
    config.weight_decay = (0.01, 0.3)
    config.schedule = 'cosine'
    config.max_steps = 2000
    config.check_every = 500
    config.threshold = 0.05
    config.min_samples = 20
    config.max_samples = 20480
    config.resolution = 0.25
    config.test_samples = 1000
    config.validation_samples = 500
    config.num_seeds = 3
    config.title = '{task}, d = {token_dim}: n* of AdamW on n prompts'
    config.notes = ('weight decay chosen on validation prompts',)
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.models = ('transformer', 'ffn')
    config.seq_lens = (2,)
    config.encoding_dim = 4
    config.ffn.widths = (16,)
    config.weight_decay = (0.01, 0.3)
    config.max_steps = 60
    config.check_every = 30
    config.threshold = 0.6
    config.max_samples = 80
    config.resolution = 0.5
    config.test_samples = 100
    config.validation_samples = 50
    config.num_seeds = 2
    return config
