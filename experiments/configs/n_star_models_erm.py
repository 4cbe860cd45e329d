"""n* of all architectures at d = 2 at a matched protocol: two starts each, learning rate chosen on validation prompts.

The Transformer starts at W_QK = 0 and at its own first parameters, RNN and FFN at two draws of theirs; the start of
least training risk is the answer. Run it once per architecture with the same --workdir.

Command:  make n-star-models-erm
          python -m experiments.learning_curves --config=experiments/configs/n_star_models_erm.py:ffn --workdir=DIR
          and once more with --config.task.name=qstr --config.test_task=qstr and another directory
Runtime:  8 minutes of a busy core for the Transformer to N = 32, 6 for the FFN to N = 16, 40 for the RNN to N = 16, on
          simple-1STR; on 1STR 16 for the Transformer to N = 32, 7 for the FFN and 12 for the RNN to N = 8
Expect:   simple-1STR: 49, 134, 320, 544 for the Transformer at N = 4, 8, 16, 32, N^1.2 [0.7, 1.7], nearer to
          (log N)^2.7; 129, 361, 866 for the RNN and 114, 612, 2,150 for the FFN at N = 4, 8, 16, N^1.4 and N^2.1; at
          N = 32 the FFN does not fit its prompts in 2,000 steps
          1STR: 64, 76, 176, 114 for the Transformer, N^0.3 [-0.5, 1.1]; 510 and 1,440 for the RNN at N = 4, 8; 761 for
          the FFN at N = 4, and at N = 8 it does not fit 20,480 prompts in 2,000 steps
"""

from experiments.configs import n_star_models
from qstr_jax import checks

STARTS = {'transformer': ('attention:0', 'init'), 'rnn': ('init', 'init:1'), 'ffn': ('init', 'init:1')}


def get_config(model='transformer'):
    """That of `n_star_models` for one architecture, with two starts and the learning rate as a further choice."""
    checks.choice('model', model, STARTS)
    config = n_star_models.get_config()
    config.models = (model,)
    config.starts = STARTS[model]
    config.learning_rate = (3e-3, 1e-2)
    config.weight_decay = (0.01,)
    config.seq_lens = (4, 8, 16, 32)
    config.max_samples = 20480
    config.title = '{task}, d = 2: n* of AdamW on n prompts, the best of two starts'
    config.notes = ('learning rate chosen on validation prompts',)
    return config


def reduced(model='transformer'):
    """The same in seconds, for the tests."""
    config = n_star_models.reduced()
    config.models = (model,)
    config.starts = STARTS[model]
    return config
