"""n* of all architectures, d = 2: two starts and two learning rates each, of which validation prompts choose.

The Transformer starts at W_QK = 0 and at its own first parameters, RNN and FFN at two draws of theirs; the result of
least training risk is kept. On simple-1STR and on 1STR.
"""

from experiments.exhibits import n_star_models
from qstr_jax.cli import base
from qstr_jax.report import numbers

ORDER = 190
IS_SUPPORTING = True
QUESTION = 'How large must a fixed training set be when each architecture has two starts and a choice of rates?'
FOLDERS = {
    f'n_star_models_erm_{task}': tuple(f'{task}_{model}' for model in ('transformer', 'ffn', 'rnn'))
    for task in ('simple', 'qstr')
}
TITLES = {
    'n_star_models_erm_simple': 'n* of all architectures, simple-1STR: the best of two starts and two rates, d = 2',
    'n_star_models_erm_qstr': 'n* of all architectures, 1STR: the best of two starts and two rates, d = 2',
}
FIGURES = {
    'n_star_models_erm_simple/figure.png': 'n* against N on simple-1STR, d = 2, the best of two starts',
    'n_star_models_erm_qstr/figure.png': 'The same on 1STR',
}
STARTS = {'transformer': ('attention:0', 'init'), 'rnn': ('init', 'init:1'), 'ffn': ('init', 'init:1')}


def get_config(part='simple_transformer'):
    """The config of `n_star_models` for one architecture, with two starts, and with the learning rate chosen too."""
    base.check_part(part, FOLDERS)
    task, model = part.split('_')
    config = n_star_models.get_config(task)
    config.update(models=(model,), starts=STARTS[model], learning_rate=(3e-3, 1e-2), weight_decay=(0.01,))
    if model == 'transformer':
        config.seq_lens = (4, 8, 16, 32)
    config.title = '{task}, d = 2: n* of AdamW, the best of two starts'
    config.notes = ('learning rate chosen on validation prompts',)
    return config


def reduced(part='simple_transformer'):
    """The same in seconds, for the tests: of 1STR every part is an FFN."""
    task, model = part.split('_')
    model = model if task == 'simple' else 'ffn'
    config = n_star_models.reduced(task)
    config.update(models=(model,), starts=STARTS[model], learning_rate=(3e-3, 1e-2), weight_decay=(0.01,))
    config.rnn.width = 4
    return config


def text(rows):
    simple, qstr = (
        {model: rows(f'n_star_models_erm_{task}', model=model) for model in STARTS} for task in ('simple', 'qstr')
    )
    transformer, hard = simple['transformer'], qstr['ffn'].where(seq_len=8)
    return f"""
On simple-1STR the Transformer's n\\* grows as N^{transformer.exponent()} (N^a or (log N)^p: {transformer.law()}), the
RNN's as N^{simple['rnn'].exponent()} and the FFN's as N^{simple['ffn'].exponent()}; three lengths each leave these two
open. {by_rate(simple)}

On 1STR they part at once: at N = 4 the Transformer needs {qstr['transformer'].where(seq_len=4).mean()} prompts, the
RNN {qstr['rnn'].where(seq_len=4).mean()} and the FFN {qstr['ffn'].where(seq_len=4).mean()}, and from N = 4 to 32 the
Transformer's grows as N^{qstr['transformer'].exponent()}.

Of the FFN at N = 8 on 1STR {hard.count(outcome='reached') or 'none'} of {hard.count()} searches gets there within
{hard.values('max_samples')[0]:,} prompts, where its training risk is {hard.smallest('train_risk')} or more: in
{hard.values('max_steps')[0]:,} steps from each start the optimiser does not fit them. All of it took
{rows('n_star_models_erm_simple').time()} on simple-1STR and {rows('n_star_models_erm_qstr').time()} on 1STR.
"""


def by_rate(lanes):
    """How the exponents hang on the grid of two rates."""
    slow, fast = lanes['transformer'].values('learning_rate')
    exponents = [f'N^{own.where(learning_rate=slow).exponent()}' for own in lanes.values()]
    last = lanes['transformer'].where(learning_rate=slow, seq_len=32)
    return (
        f'They hang on the two rates: at {slow:g} alone they are {numbers.and_last(exponents)}, and '
        f'{last.count(outcome="reached") or "none"} of {last.count()} Transformers gets there at N = 32; a rate above '
        f'{fast:g} was not tried.'
    )


def table(rows):
    tables = (rows(f'n_star_models_erm_{task}').samples_table('seq_len') for task in ('simple', 'qstr'))
    return 'simple-1STR:\n\n{}\n\n1STR:\n\n{}'.format(*tables)


def limits(rows):
    longest = {model: max(rows('n_star_models_erm_simple', model=model).values('seq_len')) for model in ('rnn', 'ffn')}
    return f"""
n\\* of an architecture where its fits are no minima of the training risk, as the FFN's on 1STR at N = 8, so that its
exponent there cannot be read off. RNN and FFN beyond N = {max(longest.values())} on simple-1STR and 8 on 1STR are not
run.
"""
