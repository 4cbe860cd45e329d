"""Theorem 6: an FFN at a stationary point or of least norm errs by at least 1 − n/(N d), run by run.

simple-1STR, linear link, d = 4; FFN f(T, W x), an oracle on the floor, controls to which the theorem does not apply, at
n/(Nd) from 0.1 to 3. From random weights FFNs learn nothing below n = N d, where any floor would hold. So a directory
of its own starts FFNs at the oracle, written as a network, and lets L-BFGS go on.
"""

from experiments.exhibits import card_theorem6, learning_curves
from qstr_jax.analysis import selection
from qstr_jax.cli import base

ORDER = 200
QUESTION = 'Do FFNs on n < N d prompts stay above their floor?'
FOLDERS = {'theorem6': ('transformer', 'ffn'), 'theorem6_started': ('started',)}
TITLES = {'theorem6_started': 'Theorem 6 from the oracle on: FFNs that start there and go on by L-BFGS, run by run'}
FIGURES = {
    'theorem6_started/floor.png': 'Test loss of FFNs that start at the oracle, each at the λ that validation chooses, '
    'and the floor 1 − n/(Nd)'
}


def get_config(part='ffn'):
    """FFNs and baselines; a Transformer; or FFNs that start at the oracle."""
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
    config.title = 'Theorem 6: {task}, d = {token_dim}, networks from random weights'
    if part == 'transformer':
        config.models, config.learners = ('transformer',), ('stationary',)
    if part == 'started':
        config.plugins = (*config.plugins, 'qstr_jax.theory.construction_start')
        config.models, config.learners = ('ffn', 'theorem6_oracle'), ('stationary',)
        config.starts, config.optimizer, config.weight_decay = ('construction',), 'lbfgs', (1e-6, 1e-5, 1e-4)
        config.update(schedule=None, learning_rate=None, num_samples=(0.1, 0.2, 0.3, 0.5, 0.7, 0.9))
        config.title = 'Theorem 6: {task}, d = {token_dim}, FFNs started at the oracle'
        config.notes = ('FFNs start with u and the encodings ω in their weights',)
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
    informed = table[table['test_loss'] < 1]
    weakest = informed['weight_decay'].eq(table['weight_decay'].min())
    crossed = informed['test_loss'] < 1 - 0.6 * informed.eval('num_samples / (seq_len * token_dim)')
    drawn = selection.select(table)
    return f"""
Of {started.count()} runs that start at the oracle {rows('theorem6_started').below_floor()} lies below the floor of its
own u and training set by more than three standard errors, but only {len(informed)} err by less than 1, so only
these could have gone below, and {num_stationary(informed) or 'none'} of these is at a stationary point. So they show
that the oracle, written as an FFN, has the oracle's loss; FFNs at stationary points are in the card of Theorem 6.

{(informed['steps'] <= informed['check_every']).sum()} of the {len(informed)} stop at their first check: the start has
next to no risk on its prompts, and λ‖Θ‖ is below the tolerance of {started.extent('tolerance')}. The gradient is
{_gradient(informed).min():.1f} times λ‖Θ‖ or more, where a stationary point has 0 and at most
{card_theorem6.CONVERGED:g} counts as one. {weakest.sum()} of them have the least weight decay, {crossed.sum()} cross a
wrong floor, 1 − 0.6 n/(Nd), and {started.count(outcome='diverged')} of all runs diverge.

{by_decay(rows)}. The figure has {len(drawn)} runs, those at the weight decay λ that validation chooses;
{(drawn['test_loss'] >= 1).sum()} of them err by 1 or more, as predicting nothing does, and are not drawn.

From random weights FFNs learn nothing below n = N d: {(below['test_loss'] >= 1).sum()} of {len(below)} runs err by 1 or
more, so any floor would hold for them. The two directories took {rows('theorem6_started').time()} and
{rows('theorem6').time()}.
"""


def num_stationary(fits):
    """How many fits are at a stationary point: their gradient is small beside λ‖Θ‖, as in the theorem's card."""
    return int((_gradient(fits) <= card_theorem6.CONVERGED).sum())


def _gradient(fits):
    """‖∇[R̂ + (λ/2)‖Θ‖²]‖/(λ‖Θ‖); the tolerance of a sweep is on the gradient's absolute size instead."""
    return fits['grad_norm'] / (fits['weight_decay'] * fits['norm'])


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
That FFNs at stationary points keep to the floor, as no run here is at one that could cross it, nor that training finds
the oracle: these start with u and the encodings in their weights, and a stronger weight decay takes them away from
there. N d is at most {max(rows('theorem6').table.eval('seq_len * token_dim'))}.
"""
