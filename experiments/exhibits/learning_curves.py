"""Learning curves: test loss against the size n of a fixed sample, all models, beside the baselines.

Command:  make learning-curves
          python -m experiments.learning_curves --config=experiments/configs/learning_curves.py --workdir=DIR
Runtime:  23 minutes on two cores that other work shared, most of it the RNN
Expect:   at n = 50, 100, 1,000 test loss 0.77, 0.017, 0.002 for the Transformer; the RNN 0.84 and the FFN 1.1 at 1,000.
"""

from experiments.configs import base

PLUGINS = ('qstr_jax.theory.construction_norm', 'qstr_jax.theory.oracles')


def get_config():
    """1STR at N = 8, d = 5: AdamW on n prompts, a grid of learning rates and weight decays per n."""
    config = base.get_config(PLUGINS)
    config.models = ('transformer', 'rnn', 'ffn', 'zero', 'least_squares', 'ridge')
    config.learners = ('adamw',)
    config.preset = 'paper'
    config.test_task = 'qstr'
    config.rnn.cell = 'gru'
    config.rnn.width = 64
    config.transformer.mlp_width = 32
    config.seq_lens = (8,)
    config.token_dim = 5
    config.encoding_dim = 20
    config.task_per_lane = True
    config.num_samples = (0.4, 1, 4, 10, 20, 50, 200)
    config.samples_unit = 'qd'
    config.learning_rate = (1e-3, 3e-3)
    config.weight_decay = (1e-2, 0.3)
    config.schedule = 'cosine'
    config.max_steps = 1000
    config.check_every = 250
    config.test_samples = 1000
    config.validation_samples = 500
    config.num_seeds = 3
    config.title = '{task}, N = {seq_len}, d = {token_dim}: AdamW on n prompts'
    config.notes = ('learning rate and weight decay chosen on validation prompts at every n',)
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.models = ('transformer', 'least_squares', 'ridge')
    config.seq_lens = (3,)
    config.token_dim = 2
    config.encoding_dim = 4
    config.num_samples = (1, 8)
    config.weight_decay = (1e-2,)
    config.max_steps = 40
    config.check_every = 20
    config.test_samples = 100
    config.validation_samples = 50
    config.num_seeds = 2
    return config
