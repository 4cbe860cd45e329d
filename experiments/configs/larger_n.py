"""Larger N: samples and seconds to test MSE 0.7 on 1STR by the point-wise risk, N = 4, 8, 16, 64, 256, 1024.

The point-wise risk (2.3), Theorem 4's, asks for one position of each prompt, so that a step of the Transformer costs
O(N). A prompt then carries one label instead of N, which is why these samples are no continuation of Figure 1a.

Command:  make larger-n
          python -m experiments.larger_n --config=experiments/configs/larger_n.py --workdir=DIR
          the others as far as they go: --config.models=ffn --config.seq_lens=4,8,16
          --config.models=rnn --config.seq_lens=4,8 --config.num_seeds=1
Runtime:  a lane takes under a second to N = 16, 2, 22 and 990 at N = 64, 256, 1024 on a busy core, most of the
          last in tests; besides 5 each to compile
Expect:   means of three lanes, thousands: 12.8, 25.6, 46.9, 128, 356, 1,270, N^0.81 [0.75, 0.86]; at N = 1024 the loss
          stays at a constant's to about 1,150 and then falls. FFN 21.3 and 230 at N = 4 and 8, at N = 16 censored at
          4,000. RNN, one lane, 38.4 and 134 at N = 4 and 8 (28 and 274 seconds).
"""

from experiments.configs import base


def get_config():
    """Preset `published` but for the risk, with 1,000 test prompts and a look at them every 100 steps."""
    config = base.get_config()
    config.models = ('transformer',)
    config.seq_lens = (4, 8, 16, 64, 256, 1024)
    config.risk = 'pointwise'
    config.num_seeds = 3
    config.task_per_lane = True
    config.check_every = 100
    config.test_samples = 1000
    config.max_samples = 4_000_000
    config.title = '{task}, point-wise risk: samples to test MSE {threshold}'
    config.notes = ('{test_samples} test prompts (published: 5,000), a test every {check_every} steps',)
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.seq_lens = (3, 4)
    config.num_seeds = 2
    config.learning_rate = (1e-2,)
    config.threshold = 0.9
    config.check_every = 20
    config.test_samples = 100
    config.max_samples = 12_800
    return config
