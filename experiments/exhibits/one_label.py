"""One label a prompt: samples to test MSE 0.7 on 1STR by the point-wise risk, N = 4 to 256, about 20,000 parameters.

Each architecture has at each N the batch size and learning rate whose slowest selection lane needs the fewest prompts;
ten other lanes are reported, each with its own (u, ω). The Transformer goes to N = 256.
"""

from qstr_jax.cli import base
from qstr_jax.settings import checks

ORDER = 8
QUESTION = 'How many labels does each architecture need, at one label a prompt and its own best settings?'
# By model and N the width at which it has 18,000 to 22,000 parameters: of the Transformer's ReLU layer, of the GRU's
# states in each direction, and of the FFN's first layer of two.
WIDTHS = {
    'transformer': {4: 748, 8: 508, 16: 386, 32: 262, 64: 188, 256: 50},
    'rnn': {4: 46, 8: 43, 16: 41, 32: 39, 64: 37},
    'ffn': {4: 103, 8: 55, 16: 27, 32: 11, 64: 4},
}
FOLDERS = {'one_label': tuple(f'{model}_{n}' for n in WIDTHS['transformer'] for model in WIDTHS if n in WIDTHS[model])}
FIGURES = {
    'one_label/figure.png': 'Prompts of one label each to test error 0.7 against N',
    'one_label/tuning_learning_rate.png': 'Prompts against the learning rate, from which the best is chosen',
    'one_label/tuning_batch_size.png': 'Prompts against the batch size, from which the best is chosen',
}


def get_config(part='transformer_4'):
    """One architecture at one N, ten lanes; at most 300,000 prompts."""
    checks.choice('part', part, FOLDERS['one_label'])
    model, _, number = part.rpartition('_')
    width = WIDTHS[model][int(number)]
    config = base.get_config()
    config.models = (model,)
    config.seq_lens = (int(number),)
    config.risk = 'pointwise'
    config.num_seeds = 10
    config.task_per_lane = True
    config.tune.learning_rate = 'auto'
    config.tune.batch_size = (16, 64, 256)
    config.tune.num_seeds = 5
    config.check_every = 4
    config.test_samples = 1000
    config.max_samples = 300_000
    setting, value = {
        'transformer': ('mlp_width', width), 'rnn': ('width', width), 'ffn': ('widths', (width, 100)),
    }[model]  # fmt: skip
    config[model][setting] = value
    config.title = '{task}, one label a prompt, best batch size and rate: prompts to test MSE {threshold}'
    config.notes = ('about 20,000 parameters each; tested on 1STR', '1,000 test prompts, a test every 4 steps')
    return config


def reduced(part='transformer_4'):
    """The same in seconds, for the tests: every part is a small FFN."""
    config = get_config(part)
    base.shrink_tuned(config)
    config.seq_lens = (2,)
    config.tune.batch_size = (16, 64)
    config.threshold = 0.9
    return config


def text(rows):
    transformer, rnn, ffn = (rows('one_label', model=model) for model in ('transformer', 'rnn', 'ffn'))
    shortest, longest = (transformer.where(seq_len=pick(transformer.values('seq_len'))) for pick in (min, max))
    failed = ffn.where(outcome='censored')
    return f"""
With one label a prompt the Transformer's samples grow as N^{transformer.exponent()}: {shortest.mean()} at N =
{shortest.values('seq_len')[0]}, {longest.mean()} at N = {longest.values('seq_len')[0]}. At N = 8 the RNN needs
{rnn.where(seq_len=8).mean()} and the FFN does not learn within {failed.values('max_samples')[0]:,}.

N^a or (log N)^p for the Transformer: {transformer.law()}; between neighbouring N the exponent is
{transformer.slopes()}. Theorem 4 claims samples that do not grow with N beyond the logarithm for an empirical risk
minimiser in a ball; this is AdamW, stopped at its first crossing, so that the power of N is the optimiser's and
contradicts no theorem. Steps beside samples: {transformer.mean('steps', by='seq_len', digits=3)} at N =
{', '.join(f'{seq_len:g}' for seq_len in transformer.values('seq_len'))}, with batches of
{transformer.extent('batch_size')} and rates of {transformer.extent('learning_rate')}. Of the FFN's lanes
{ffn.where(seq_len=4).count(outcome='reached')} of {ffn.where(seq_len=4).count()} learn at N = 4, of the others
{ffn.count(outcome='reached') - ffn.where(seq_len=4).count(outcome='reached')} of {ffn.count() - ffn.where(seq_len=4).count()}.
Lanes and choice took {rows('one_label', 'one_label/selection').time()}.
"""


def table(rows):
    return rows('one_label').samples_table('seq_len')


def limits(rows):
    return f"""
Width, depth, weight decay and batches below {min(rows('one_label/selection').values('batch_size')):g} are not tuned,
and settings are the best of those tried on five selection lanes. FFN beyond N =
{max(rows('one_label', model='ffn').values('seq_len')):g} and RNN beyond
{max(rows('one_label', model='rnn').values('seq_len')):g} are not run.
"""
