"""n* of all architectures on a small task (d = 2): AdamW on n prompts to test loss 0.05, against N.

Exclusive GRU of width 32 with a two-layer read-out, FFN (128, 64), merged Transformer; on simple-1STR and on 1STR.
"""

from experiments.exhibits import learning_curves
from qstr_jax.cli import base

ORDER = 180
IS_SUPPORTING = True
QUESTION = 'How large must a fixed training set be for AdamW, architecture by architecture?'
FOLDERS = {'n_star_models_simple': ('simple',), 'n_star_models_qstr': ('qstr',)}
TITLES = {
    'n_star_models_simple': 'n* of all architectures, simple-1STR: AdamW on n prompts to test loss 0.05, d = 2',
    'n_star_models_qstr': 'n* of all architectures, 1STR: AdamW on n prompts to test loss 0.05, d = 2',
}
FIGURES = {
    'n_star_models_simple/figure.png': 'n* of Transformer, FFN and RNN against N on simple-1STR, d = 2',
    'n_star_models_qstr/figure.png': 'The same on 1STR',
}


def get_config(part='simple'):
    """d = 2 and five lanes with a task each; simple-1STR to N = 16 with two weight decays, 1STR to N = 8 with one."""
    base.check_part(part, FOLDERS)
    config = base.get_config(learning_curves.PLUGINS)
    config.update(models=('transformer', 'rnn', 'ffn', 'least_squares'), learners=('adamw',), preset='paper')
    config.update(task={'name': 'simple_qstr'}, seq_lens=(4, 8, 16), token_dim=2, encoding_dim=16)
    config.transformer.update(attention='merged', mlp_width=32)
    config.rnn.update(cell='gru', width=32, states='exclusive', readout='mlp')
    config.update(ffn={'widths': (128, 64)}, task_per_lane=True)
    config.update(learning_rate=(3e-3,), weight_decay=(0.01, 0.3), schedule='cosine')
    config.update(max_steps=2000, check_every=500, threshold=0.05, min_samples=20, max_samples=20480, resolution=0.25)
    config.update(test_samples=1000, validation_samples=500)
    config.title = '{task}, d = {token_dim}: n* of AdamW on n prompts'
    config.notes = ('weight decay chosen on validation prompts',)
    if part == 'qstr':
        config.update(models=('transformer', 'rnn', 'ffn'), task={'name': 'qstr'}, seq_lens=(4, 8))
        config.update(weight_decay=(0.01,), title='1STR, d = 2: n* of AdamW on n prompts', notes=())
    return config


def reduced(part='simple'):
    """The same in seconds, for the tests; of 1STR the FFN alone."""
    models = ('transformer', 'ffn') if part == 'simple' else ('ffn',)
    small = {'seq_lens': (2,), 'encoding_dim': 4, 'ffn': {'widths': (16,)}, 'max_samples': 80}
    return base.shrink_search(get_config(part), models=models, **small)


def text(rows):
    transformer, rnn, ffn = (rows('n_star_models_simple', model=model) for model in ('transformer', 'rnn', 'ffn'))
    qstr = {model: rows('n_star_models_qstr', model=model) for model in ('transformer', 'rnn', 'ffn')}
    others = rows('n_star_models_qstr', model=('rnn', 'ffn'), seq_len=8)
    return f"""
On simple-1STR the Transformer needs {_from_to(transformer)} prompts from N = 4 to 16, the RNN {_from_to(rnn)} and the
FFN {_from_to(ffn)}.

On 1STR they part at once: at N = 4 the Transformer needs {qstr['transformer'].where(seq_len=4).mean()}, the RNN
{qstr['rnn'].where(seq_len=4).mean()} and the FFN {qstr['ffn'].where(seq_len=4).mean()}, and at N = 8 of RNN and FFN
{others.count(outcome='reached') or 'none'} of {others.count()} lanes gets there within
{others.values('max_samples')[0]:,}. All of it took {rows('n_star_models_simple', 'n_star_models_qstr').time()}.
"""


def _from_to(lanes):
    return f'{lanes.where(seq_len=4).mean()} to {lanes.where(seq_len=16).mean()}'


def table(rows):
    return rows('n_star_models_simple', model=('transformer', 'rnn', 'ffn')).samples_table('seq_len')


def limits(rows):
    lengths = rows('n_star_models_simple').values('seq_len')
    return f"""
What Theorems 4, 6 and 7 are about: AdamW is none of their learners, and nothing checks that a fit minimises its
training risk. {len(lengths)} lengths on simple-1STR and two on 1STR say little about an exponent.
"""
