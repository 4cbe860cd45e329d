"""Larger N at the best learning rate: samples to test MSE 0.7 on 1STR by the point-wise risk, N = 4, 8, …, 1024.

Command:  make larger-n-tuned
          python -m experiments.larger_n --config=experiments/configs/larger_n_tuned.py --workdir=DIR
          the others as far as they go: --config.models=ffn,rnn --config.seq_lens=4,8
Runtime:  4 minutes of a busy core to N = 64, 9 for N = 256, 4 for the FFN at N = 4 and 8
Expect:   means 1.7, 3.6, 7.2 thousand at N = 4, 8, 16 at rates 3e-2, 3e-2, 1e-2; at N = 64 (rate 1e-2) three of five
          lanes need 26 to 30 thousand and two never learn within a million, though all three selection lanes did, and
          all five of a run with --config.tune.num_seeds=5. At 3e-3 those five need 42 to 46 thousand. N = 256 needs 166
          thousand at 3e-3, all five lanes; the published rate 1e-3 needs 356 there. The FFN needs 10.2 and
          218 thousand at N = 4 and 8, rates 3e-3 and 1e-3. N = 1024 and the RNN are not run.
"""

from experiments.configs import base, larger_n


def get_config():
    """As the larger N, five lanes, the rate tuned, a test every ten steps, at most a million samples."""
    config = larger_n.get_config()
    config.num_seeds = 5
    config.tune.learning_rate = 'auto'
    config.check_every = 10
    config.max_samples = 1_000_000
    config.title = '{task}, point-wise risk, best learning rate: samples to test MSE {threshold}'
    config.notes = ('{test_samples} test prompts (published: 5,000), a test every {check_every} steps',)
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    base.shrink_tuned(config)
    config.seq_lens = (2, 3)
    config.threshold = 0.9
    return config
