"""Figure 1b: samples to test MSE 0.02 on simple-1STR, linear link, N = 25, 27, …, 33.

Command:  make figure1b, make figure1b-all
          python -m experiments.sample_complexity --config=experiments/configs/figure1b.py --workdir=DIR
Runtime:  4 minutes on two cores for the Transformer, 6 for the FFN; 75 for one lane of the RNN at all N on a busy core
Expect:   means (thousands) for N = 25, …, 33, five lanes with a task each: Transformer 118, 122, 132, 129, 141;
          FFN 131, 183, 372, 433, 584; RNN, one lane, 109, 147, 160, 160, 166. Published at N = 25 and 33: Transformer
          117 and 140, RNN 107 and 165, FFN 240 and 630. Of 24 draws of (u, ω) four need 237 to 346 with the FFN at
          N = 25, the others 109 to 186.
"""

from experiments.configs import base


def get_config():
    """As published: preset `published`, five seeds that share one draw of (u, ω)."""
    config = base.get_config()
    config.task.name = 'simple_qstr'
    config.seq_lens = (25, 27, 29, 31, 33)
    config.threshold = 0.02
    config.check_every = 100
    config.title = '{task}: samples to test MSE {threshold}'
    # Read off the published plot.
    published = {
        'test_task': 'simple_qstr',
        'task': 'simple_qstr',
        'link': 'linear',
        'token_dim': 10,
        'threshold': 0.02,
    }
    config.reference_for.update(published)
    config.reference = (
        ('transformer', 25, 117_000),
        ('transformer', 33, 140_000),
        ('rnn', 25, 107_000),
        ('rnn', 33, 165_000),
        ('ffn', 25, 240_000),
        ('ffn', 33, 630_000),
    )
    return config


def reduced():
    """The same in seconds, for the tests: shorter prompts, a threshold that is soon reached."""
    config = get_config()
    config.models = ('transformer', 'ffn')
    config.seq_lens = (5,)
    config.threshold = 0.9
    config.check_every = 20
    config.num_seeds = 2
    config.ffn.widths = (32,)
    config.test_samples = 100
    config.max_samples = 12_800
    return config
