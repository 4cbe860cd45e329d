"""n* of ERMs: constrained ERM against N, beside how many random labels the same ball fits (Theorem 4).

By part, after the colon: `log` has d_e = ⌊3 ln N⌋ at coherence ≤ 3/4, redrawn until it is met, `wide` d_e = 75 at
coherence ≤ 1/2, where attention can be a look-up table while N ≤ 75; both are feasible for N = 8 … 512.
Fits start at W_QK = 0 and at the module's own W_QK, the least training risk is the answer, and Lemma 11's network
stands beside each: a row that is no ERM is hollow and in no exponent. `log_labels` and `wide_labels` fit random labels.

Command:  make n-star-erm
          python -m experiments.n_star_erm --config=experiments/configs/n_star_erm.py:log --workdir=DIR
Runtime:  5 minutes of a busy core for `log` at one R (20 lanes), 4 more at N = 128 and 10 at N = 256 (five lanes, with
          --config.seq_lens=128,256 --config.max_samples=51200), 35 for `wide` with three lanes, and beside other work
          3 to 30 seconds a fit of up to 6,400 labels
Expect:   `log`, R = 1: 892, 1,450, 1,630, 2,390 at N = 8 … 64, 19 of 20 rows are ERMs, and 5,050 and 11,600 at N = 128
          and 256, where 3 and 2 of 5 are and no fit just below n* is: N^0.4 [0.0, 0.7] for n* of ERMs. R = 2
          gives the same, R = 1/2 up to 2 % less, and --config.max_steps=16000 the same at N = 64 and 128.
          `wide`: 623, 1,100, 1,860, 2,850, N^0.75 [0.59, 0.92], all ERMs; the start at W_QK = 0 wins at n*.
          Twisted teachers explain 12 to 260 prompts of that for `wide`, and few or none for `log`. Random labels
          fitted: 1,130, 2,260, 4,530, 9,050 for `wide` (N = 64 needs --config.num_samples=12800, too); 1,130, 1,130,
          2,260, 2,260, 2,260, 3,590 for `log` at N = 8 … 256
"""

from experiments.configs import base
from experiments.exhibits import learning_curves
from qstr_jax import checks

PLUGINS = (*learning_curves.PLUGINS, 'qstr_jax.theory.construction_start', 'qstr_jax.theory.capacity')
# By rule: c of d_e = ⌊c ln N⌋, d_e, the largest coherence, and what the title says.
RULES = {'log': (3.0, None, 0.75, 'd_e = ⌊3 ln N⌋'), 'wide': (None, 75, 0.5, 'd_e = 75')}
PARTS = ('log', 'wide', 'log_labels', 'wide_labels')


def get_config(part='log'):
    """Merged Transformer, H = q = 1, d = 10, scaled encodings; the point-wise risk; R in construction norms."""
    checks.choice('part', part, PARTS)
    rule, _, labels = part.partition('_')
    config = base.get_config(PLUGINS)
    config.models = ('transformer',)
    config.learners = ('constrained',)
    config.preset = 'paper'
    config.seq_lens = (8, 16, 32, 64)
    config.token_dim = 10
    config.encoding_factor, config.encoding_dim, config.max_coherence, words = RULES[rule]
    config.encoding_scale = 'scaled'
    config.transformer.attention = 'merged'
    config.transformer.mlp_width = 32
    config.task_per_lane = True
    config.risk = 'pointwise'
    config.radius = (0.5, 1.0)
    config.radius_unit = 'construction'
    config.starts = ('attention:0', 'init')
    config.learning_rate = (3e-3,)
    config.schedule = 'cosine'
    config.batch_size = 64
    config.max_steps = 4000
    config.check_every = 1000
    config.test_samples = 1000
    config.validation_samples = 500
    if labels:
        _fit_labels(config)
        config.title = f'Random labels: training risk against n, point-wise risk, {words}'
    else:
        _search(config)
        config.title = f'{{task}}: n* of constrained ERM, point-wise risk, {words}'
    return config


def _search(config):
    config.test_task = 'qstr'
    config.learner.reference = 'construction'
    config.threshold = 0.05
    config.min_samples = 100
    config.max_samples = 12800
    config.resolution = 0.15
    config.num_seeds = 5


def _fit_labels(config):
    config.task.name = config.test_task = 'random_labels'
    config.num_samples = (100, 200, 400, 800, 1600, 3200, 6400)
    config.num_seeds = 3


def reduced(part='log'):
    """The same in seconds, for the tests."""
    config = get_config(part)
    config.seq_lens = (2, 3)
    config.token_dim = 2
    config.encoding_factor = None
    config.encoding_dim = 6
    config.max_coherence = 0.9
    config.transformer.mlp_width = 8
    config.radius = (1.0,)
    config.starts = ('attention:0',)
    config.max_steps = 60
    config.check_every = 30
    config.test_samples = 100
    config.validation_samples = 50
    config.num_seeds = 2
    if part.endswith('labels'):
        config.num_samples = (4, 8)
    else:
        config.threshold = 0.6
        config.min_samples = 2
        config.max_samples = 64
        config.resolution = 0.5
    return config
