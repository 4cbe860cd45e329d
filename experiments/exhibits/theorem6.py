"""Theorem 6: an FFN at a stationary point or of least norm errs by at least 1 − n/(N d), run by run.

simple-1STR, linear link, d = 4; FFN f(T, W x), an oracle on the floor, controls to which the theorem does not apply, at
n/(Nd) from 0.1 to 3. From random weights FFNs learn nothing below n = N d, where any floor would hold. So a directory
of its own starts FFNs at the oracle, written as a network, and lets L-BFGS go on to a stationary point.
"""

from experiments.exhibits import learning_curves
from qstr_jax.cli import base

ORDER = 200
QUESTION = 'Do FFNs on n < N d prompts stay above their floor?'
FOLDERS = {'theorem6': ('transformer', 'ffn'), 'theorem6_started': ('started',)}
FIGURES = {'theorem6_started/floor.png': 'Test loss of FFNs that start at the oracle, and the floor 1 − n/(Nd)'}


def get_config(part='ffn'):
    """FFNs at stationary points or of least norm, and baselines; a Transformer; or FFNs that start at the oracle."""
    base.check_part(part, FOLDERS)
    config = base.get_config(learning_curves.PLUGINS)
    config.update(models=('ffn', 'theorem6_oracle', 'least_squares', 'zero'), learners=('stationary', 'min_norm'))
    config.update(probes=('theorem6_floor',), preset='paper', task={'name': 'simple_qstr'})
    config.update(seq_lens=(5, 10), token_dim=4, encoding_dim=12, task_per_lane=True, num_seeds=5)
    config.ffn.update(form='theorem6', widths=(64, 32))
    config.transformer.update(attention='merged', mlp_width=16)
    config.update(num_samples=(0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0), samples_unit='Nd')
    config.update(span='coordinates', optimizer='adam', batch_size=0, learning_rate=(1e-2,), weight_decay=(1e-3,))
    config.update(schedule='cosine', tolerance=1e-3, max_steps=3000, check_every=250, test_samples=2000)
    config.title = 'Theorem 6: {task}, test loss against n/(Nd)'
    if part == 'transformer':
        config.models, config.learners = ('transformer',), ('stationary',)
    if part == 'started':
        config.plugins = (*config.plugins, 'qstr_jax.theory.construction_start')
        config.models, config.learners = ('ffn', 'theorem6_oracle'), ('stationary',)
        config.starts, config.optimizer, config.weight_decay = ('construction',), 'lbfgs', (1e-6, 1e-5, 1e-4)
        config.update(schedule=None, learning_rate=None, num_samples=(0.1, 0.2, 0.3, 0.5, 0.7, 0.9))
    return config


def reduced(part='ffn'):
    """The same in seconds, for the tests."""
    config = get_config(part)
    if part != 'transformer':
        config.models = ('ffn', 'theorem6_oracle')
    config.transformer.mlp_width = 4
    config.update(learners=('stationary',), seq_lens=(3,), token_dim=2, encoding_dim=4)
    config.ffn.widths = (8, 8)
    config.update(num_samples=(0.5, 1.0, 2.0), num_seeds=2)
    config.update(max_steps=40, check_every=20, test_samples=200, validation_samples=50)
    return config


def text(rows):
    random, started = rows('theorem6', model='ffn'), rows('theorem6_started', model='ffn')
    table, below = started.table, random.table.query('num_samples < seq_len * token_dim')
    weakest = (table['test_loss'] < 1) & table['weight_decay'].eq(table['weight_decay'].min())
    crossed = table['test_loss'] < 1 - 0.6 * table.eval('num_samples / (seq_len * token_dim)')
    return f"""
They do: {started.count()} runs start at the oracle and are trained on, {started.count(converged=True)} of them to a
stationary point, {started.count(outcome='diverged')} diverge, and {rows('theorem6_started').below_floor()} lies below
the floor of its own u and training set, by more than three standard errors of its test. Only
{(table['test_loss'] < 1).sum()} err by less than 1, as could go below; {weakest.sum()} of these have the least weight
decay, and {crossed.sum()} cross a wrong floor, 1 − 0.6 n/(Nd).

{by_decay(rows)}. The figure has the weight decay λ that validation chooses. Runs that err by 1 or more, as predicting
nothing does, are not drawn.

From random weights FFNs learn nothing below n = N d: {(below['test_loss'] >= 1).sum()} of {len(below)} runs err by 1 or
more, so any floor would hold for them. The two directories took {rows('theorem6_started').time()} and
{rows('theorem6').time()}.
"""


def by_decay(rows):
    """How far above the oracle's error runs end, in the median, for each weight decay."""
    table = rows('theorem6_started').table
    draw = ['seq_len', 'seed', 'num_samples']
    oracle = table[table['model'] == 'theorem6_oracle'].set_index(draw)['test_loss'].rename('oracle')
    ffn = table[table['model'] == 'ffn'].join(oracle, on=draw)
    above = (ffn['test_loss'] - ffn['oracle']).groupby(ffn['weight_decay']).median()
    parts = ', '.join(f'{value:.2f} at λ = {decay:g}' for decay, value in above.items())
    return f"The median of their error minus the oracle's is {parts}"


def limits(rows):
    return f"""
That training finds such networks: these start with u and the encodings in their weights, and a stronger weight decay
takes them away from there. The floor holds for stationary points and least norm of FFNs, not for any FFN that is
trained; N d is at most {max(rows('theorem6').table.eval('seq_len * token_dim'))}.
"""
