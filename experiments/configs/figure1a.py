"""Figure 1a: samples to test MSE 0.7 on 1STR, linear link, N = 2, 4, …, 12.

Command:  make figure1a
          python -m experiments.sample_complexity --config=experiments/configs/figure1a.py --workdir=DIR
Runtime:  about an hour on two cores, nearly all of it the RNN cells at N = 10 and 12
Expect:   at N = 12 Transformer < RNN < FFN; means (thousands) 18.8, 84.6, 134; published 17, 74, 115.
"""

from experiments.configs import base


def get_config():
    """As published: preset `published`, five seeds that share one draw of (u, ω)."""
    config = base.get_config()
    config.seq_lens = (2, 4, 6, 8, 10, 12)
    config.title = '{task}: samples to test MSE {threshold}'
    config.notes = ('at N = 2 a predictor that ignores t errs by 0.5',)
    # Read off the published plot.
    published = {'test_task': 'simple_qstr', 'task': 'qstr', 'link': 'linear', 'token_dim': 10, 'threshold': 0.7}
    config.reference_for.update(published)
    config.reference = (
        ('transformer', 6, 10_500),
        ('transformer', 12, 17_000),
        ('rnn', 6, 33_000),
        ('rnn', 12, 74_000),
        ('ffn', 6, 20_000),
        ('ffn', 12, 115_000),
    )
    return config


def reduced():
    """The same in seconds, for the tests, in cells of the quickstart's."""
    config = get_config()
    config.seq_lens = (2,)
    config.num_seeds = 2
    config.rnn.width = 16
    config.test_samples = 100
    config.max_samples = 3200
    config.check_every = 5
    return config
