"""Theorem 6: an FFN at a stationary point or of least norm errs by at least 1 − n/(N d), run by run.

simple-1STR, linear link, d = 4; FFN f(T, W x), an oracle on the floor, controls to which the theorem does not apply, at
n/(Nd) from 0.1 to 3. A directory of its own has gradient descent with momentum from first layers in the span.
"""

from experiments.exhibits import learning_curves
from qstr_jax.cli import base
from qstr_jax.settings import checks

ORDER = 200
QUESTION = 'Do FFNs on n < N d prompts stay above their floor?'
FOLDERS = {'theorem6': ('transformer', 'ffn'), 'theorem6_started': ('started',)}
FIGURES = {
    'theorem6/floor.png': 'Test loss of FFNs above the floor 1 − n/(Nd)',
    'theorem6_started/floor.png': 'The same for gradient descent with momentum, started in the span',
}


def get_config(part='ffn'):
    """FFNs at stationary points and of least norm with the baselines; a Transformer; or FFNs started in the span."""
    checks.choice('part', part, sum(FOLDERS.values(), ()))
    config = base.get_config(learning_curves.PLUGINS)
    config.models = ('ffn', 'theorem6_oracle', 'least_squares', 'zero')
    config.learners = ('stationary', 'min_norm')
    config.probes = ('theorem6_floor',)
    config.task.name = config.test_task = 'simple_qstr'
    config.preset = 'paper'
    config.seq_lens = (5, 10)
    config.token_dim = 4
    config.encoding_dim = 12
    config.ffn.form = 'theorem6'
    config.ffn.widths = (64, 32)
    config.transformer.attention = 'merged'
    config.transformer.mlp_width = 16
    config.task_per_lane = True
    config.num_samples = (0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    config.samples_unit = 'Nd'
    config.span = 'coordinates'
    config.optimizer = 'adam'
    config.batch_size = 0
    config.learning_rate = (1e-2,)
    config.weight_decay = (1e-3,)
    config.schedule = 'cosine'
    config.max_steps = 3000
    config.check_every = 250
    config.tolerance = 1e-3
    config.test_samples = 2000
    config.num_seeds = 5
    config.title = 'Theorem 6: {task}, test loss against n/(Nd)'
    if part == 'transformer':
        config.models, config.learners = ('transformer',), ('stationary',)
    if part == 'started':
        config.models, config.learners = ('ffn', 'theorem6_oracle'), ('stationary',)
        config.span, config.optimizer, config.learning_rate = 'started', 'sgd', (0.03,)
        config.seq_lens = (5,)
    return config


def reduced(part='ffn'):
    """The same in seconds, for the tests."""
    config = get_config(part)
    if part != 'transformer':
        config.models = ('ffn', 'theorem6_oracle')
    config.transformer.mlp_width = 4
    config.learners = ('stationary',)
    config.seq_lens = (3,)
    config.token_dim = 2
    config.encoding_dim = 4
    config.ffn.widths = (8, 8)
    config.num_samples = (0.5, 1.0, 2.0)
    config.max_steps = 40
    config.check_every = 20
    config.test_samples = 200
    config.validation_samples = 50
    config.num_seeds = 2
    return config


def text(rows):
    lanes, span = rows('theorem6'), rows('theorem6_started')
    ffn, started = lanes.where(model='ffn'), span.where(model='ffn')
    below = ffn.table['num_samples'] < ffn.table['seq_len'] * ffn.table['token_dim']
    return f"""
They do: {lanes.below_floor()} of {ffn.count()} runs lies below the floor of its own u and training set, and
{span.below_floor()} of {started.count()} that are started in the span.

But {(~below).sum()} of the {ffn.count()} have n ≥ N d and floor 0, which says nothing, and those below have a test
loss of {ffn.table['test_loss'][below].min():.3f} or more, where predicting nothing errs by 1: they are far above their
floor. The oracle lies on it, and least squares that knows t, to which the theorem does not apply, below it.

{ffn.count(converged=True)} of the {ffn.count()} fits end at a stationary point or at least norm by their own measure,
{started.count(converged=True) or 'none'} of the {started.count()} started ones. The two directories took
{lanes.time()} and {span.time()}.
"""


def limits(rows):
    return f"""
A run that could have failed: none that is below n = N d comes near its floor. The floor holds for stationary points
and least norm of FFNs, not for any FFN that is trained, and N d is at most
{max(rows('theorem6').table.eval('seq_len * token_dim'))}.
"""
