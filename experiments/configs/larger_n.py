"""Larger N: samples and seconds to test MSE 0.7 on 1STR by the point-wise risk, N = 16, 64, 256, 1024.

The point-wise risk (2.3), Theorem 4's, asks for one position of each prompt, so that a step of the Transformer costs
O(N). A prompt then carries one label instead of N, which is why these samples are no continuation of Figure 1a.

Command:  make larger-n
          python -m experiments.larger_n --config=experiments/configs/larger_n.py --workdir=DIR
Runtime:  a lane takes 1, 11 and 170 seconds at N = 16, 64, 256 on a busy core, besides 17 each to compile; at N = 1024
          53 minutes
Expect:   46.9k, 128k, 356k samples (means of three lanes, none off its mean by more than 10 %) and 1,229k (one lane),
          N^0.78. At N = 1024 the loss stays at a constant's to 1,150k samples and then falls. The FFN at N = 16 is
          censored at 4,000k (150 seconds a lane).
"""

from experiments.configs import base


def get_config():
    """Preset `published` but for the risk, with 1,000 test prompts and a look at them every 100 steps."""
    config = base.get_config()
    config.models = ('transformer',)
    config.seq_lens = (16, 64, 256, 1024)
    config.risk = 'pointwise'
    config.num_seeds = 3
    config.task_per_lane = True
    config.check_every = 100
    config.test_samples = 1000
    config.max_samples = 4_000_000
    config.title = '1STR, point-wise risk: samples to test MSE 0.7'
    config.notes = ('1,000 test prompts (published: 5,000), a test every 100 steps',)
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
