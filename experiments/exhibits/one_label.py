"""One label a prompt: samples to test MSE 0.7 on 1STR by the point-wise risk, N = 4 to 256, about 20,000 parameters.

Each architecture has at each N the batch size and learning rate whose slowest of five selection lanes needs the fewest
prompts; ten other lanes are reported, each with its own (u, ω). The widths of the paper's code are run beside it where
they are affordable.
"""

from qstr_jax import analysis
from qstr_jax.cli import base
from qstr_jax.report import numbers

ORDER = 8
QUESTION = 'How many labels does each architecture need, at one label a prompt and its best batch size and rate?'
# By model and N the width at which it has 18,000 to 22,000 parameters: of the Transformer's ReLU layer, of the GRU's
# states in each direction, and of the FFN's first layer of two.
WIDTHS = {
    'transformer': {4: 748, 5: 613, 6: 613, 8: 508, 12: 422, 16: 386, 32: 262, 64: 188, 128: 105, 256: 50},
    'rnn': {4: 46, 5: 45, 6: 45, 8: 43, 12: 42, 16: 41},
    'ffn': {4: 103, 5: 84, 6: 75, 8: 55, 16: 27},
}
# The N at which the widths of the paper's code are run too: its RNN has 1.6 million parameters.
PUBLISHED = {'transformer': (4, 8, 16, 32, 64), 'rnn': (4,), 'ffn': (4, 6, 8)}
# The budget of parts for which 300,000 prompts are too few; they take fewer tests.
BUDGETS = {
    'transformer_256': 3_000_000,
    'rnn_12': 3_000_000,
    'rnn_16': 30_000_000,
    'ffn_8': 30_000_000,
    'ffn_16': 3_000_000,
    'published_ffn_8': 30_000_000,
}
# The batches that these parts try; the others try 1, 4, 16, 64 and 256, those of the paper's widths from 4 on.
BATCHES = {
    **dict.fromkeys(BUDGETS, (64, 256, 1024)),
    **dict.fromkeys(('transformer_64', 'transformer_128'), (4, 16, 64, 256)),
    **dict.fromkeys(('rnn_12', 'published_rnn_4'), (16, 64, 256)),
    **dict.fromkeys(('ffn_8', 'published_ffn_8'), (16, 64, 256, 1024)),
}
FOLDERS = {
    'one_label': tuple(f'{model}_{n}' for model in WIDTHS for n in WIDTHS[model]),
    'one_label_published': tuple(f'published_{model}_{n}' for model in PUBLISHED for n in PUBLISHED[model]),
}
TITLES = {
    'one_label_published': "One label a prompt, the paper's widths: samples to test MSE 0.7 on 1STR, N = 4 to 64",
}
FIGURES = {
    'one_label/figure.png': 'Prompts of one label each to test error 0.7 against N',
    'one_label/tuning_learning_rate.png': 'Prompts against the learning rate, from which the best is chosen',
    'one_label/tuning_batch_size.png': 'Prompts against the batch size, from which the best is chosen',
    'one_label_published/figure.png': "The same with the widths of the paper's code",
}


def get_config(part='transformer_4'):
    """One architecture at one N, ten lanes; at most 300,000 prompts or those of BUDGETS."""
    base.check_part(part, FOLDERS)
    model, number = part.removeprefix('published_').split('_')
    config = base.get_config()
    config.update(models=(model,), seq_lens=(int(number),), risk='pointwise', num_seeds=10, task_per_lane=True)
    # Rates that won at shorter prompts, where a search from the default would take long.
    config.tune.learning_rate = (3e-3, 1e-2) if model == 'transformer' and part in BUDGETS else 'auto'
    batches = (4, 16, 64, 256) if part.startswith('published_') else (1, 4, 16, 64, 256)
    config.tune.update(batch_size=BATCHES.get(part, batches), num_seeds=5)
    config.update(check_every=10 if part in BUDGETS else 4, test_samples=1000, max_samples=BUDGETS.get(part, 300_000))
    size, head = "the widths of the paper's code", "{task}, the paper's widths"
    if not part.startswith('published_'):
        size, head, width = 'about 20,000 parameters each', '{task}', WIDTHS[model][int(number)]
        setting, value = {
            'transformer': ('mlp_width', width), 'rnn': ('width', width), 'ffn': ('widths', (width, 100)),
        }[model]  # fmt: skip
        config[model][setting] = value
    config.title = f'{head}, one label a prompt, best batch size and rate: prompts to test MSE {{threshold}}'
    config.notes = (
        f'{size}; tested on 1STR',
        '1,000 test prompts, a test every {check_every} steps',
    )
    return config


def reduced(part='transformer_4'):
    """The same in seconds, for the tests: every part is a small FFN."""
    tuned = {'batch_size': (16, 64), 'learning_rate': 'auto'}
    return base.shrink_tuned(get_config(part), seq_lens=(2,), tune=tuned, check_every=4, threshold=0.9)


def text(rows):
    transformer, rnn, ffn = every = [rows('one_label', model=model) for model in ('transformer', 'rnn', 'ffn')]
    lengths, longest = transformer.values('seq_len'), ffn.where(seq_len=16)
    published = {model: rows('one_label_published', model=model) for model in PUBLISHED}
    of_paper = ', '.join(
        f'the {analysis.display(model)} needs {lanes.mean(by="seq_len")} at N = {listed(lanes.values("seq_len"))}'
        for model, lanes in published.items()
    )
    sizes = '; '.join(
        ' to '.join(dict.fromkeys(analysis.short_number(f(lanes.values('num_parameters'))) for f in (min, max)))
        for lanes in published.values()
    )
    grows = 'grow as a power of N, not of log N' if {one.law() for one in every} == {'N^a'} else 'grow with N'
    return f"""
Samples {grows}: the Transformer's from {transformer.where(seq_len=lengths[0]).mean()} at N = {lengths[0]} to
{transformer.where(seq_len=lengths[-1]).mean()} at N = {lengths[-1]}, N^{transformer.exponent()}, the RNN's
N^{rnn.exponent()}, the FFN's N^{ffn.exponent()}; at N = 16 {longest.count(outcome='reached')} of {longest.count()} FFNs
learn within {longest.values('max_samples')[0]:,}. This is AdamW; Theorem 4's (log N)^p is of empirical risk minimisers.

N^a or (log N)^p: {transformer.law()} for the Transformer, {rnn.law()} for the RNN, {ffn.law()} for the FFN; between
neighbouring N the Transformer's exponent is {transformer.slopes()}. A network that AdamW trains until it first crosses
the threshold says nothing about Theorem 4's minimisers in a ball. Where a prompt has N labels (Figure 1a at the best
rate, the published width) the exponent is {rows('figure1a_tuned', model='transformer').exponent()} in prompts, and one
more in labels.

With the widths of the paper's code ({sizes} parameters) {of_paper}. There the Transformer's samples grow as
N^{published['transformer'].exponent()}, and those of the FFN, whose first layer grows with N, as
N^{published['ffn'].exponent()}.

In steps of the optimiser the Transformer takes {transformer.mean('steps', by='seq_len', digits=4)} at these N, at
batches of {transformer.extent('batch_size')} and rates of {transformer.extent('learning_rate')}. Lanes and choice took
{rows('one_label', 'one_label/selection').time()}.
"""


def table(rows):
    return rows('one_label').samples_table('seq_len')


def listed(lengths):
    """'4, 8'."""
    return ', '.join(map(str, lengths))


def points(lanes_by_point):
    """'the RNN at N = 16, the Transformer at N = 128 and 256'."""
    lengths = lanes_by_point.reset_index().groupby('model')['seq_len'].apply(list)
    return ', '.join(f'the {analysis.display(model)} at N = {numbers.and_last(at)}' for model, at in lengths.items())


def batches(rows, folder):
    """By point the least batch that was tried, the one chosen where a lane learns, and those that are the least."""
    tried, learnt = rows(f'{folder}/selection').table, rows(folder, outcome='reached').table
    smallest, chosen = (table.groupby(['model', 'seq_len'])['batch_size'].min() for table in (tried, learnt))
    return smallest, chosen, chosen[chosen.eq(smallest.reindex(chosen.index)) & chosen.gt(1)]


def limits(rows):
    smallest, chosen, ends = batches(rows, 'one_label')
    least = smallest.min()
    larger = '; '.join(f'{size:g} for {points(group)}' for size, group in smallest[smallest > least].groupby(smallest))
    ffn = rows('one_label', model='ffn')
    won = rows('one_label/selection', model='ffn', seq_len=16).count(outcome='reached') or 'none'
    units, of_transformer = WIDTHS['ffn'], WIDTHS['transformer']
    published = rows('one_label_published/selection')
    *_, ends_of_paper = batches(rows, 'one_label_published')
    of_paper, of_rnn = (lanes.values('batch_size')[0] for lanes in (published, published.where(model='rnn')))
    *_, last = learned = tuple(ffn.where(outcome='reached').values('seq_len'))
    law = analysis.exponent(ffn.where(seq_len=learned).table)
    predicted = analysis.summarize(ffn.where(seq_len=last).table)['mean'].item() * (16 / last) ** law.value

    def budget(seq_len):
        return ffn.where(seq_len=seq_len).values('max_samples')[0]

    return f"""
The least batch that was tried is the best for {points(ends)}: a smaller one may do better.
ReLU layers shrink with N, so exponents mix prompts with capacity: the FFN's first from {units[4]} units to {units[16]},
the Transformer's from {of_transformer[4]} to {of_transformer[256]}. The FFN's law predicts
{analysis.short_number(predicted)} prompts at N = 16.

The smallest batch tried was {least:g}, the best at {chosen.eq(least).sum()} of {len(chosen)} points ({larger}). Width,
depth and weight decay were not tuned.

Of the paper's widths batches from {of_paper:g} on were tried, and the RNN is run
at N = {listed(PUBLISHED['rnn'])} alone, with batches from {of_rnn:g} on; the least is the best for
{points(ends_of_paper)}. Longer prompts are not run: from N = 512 on
the Transformer's attention alone has more than 20,000 parameters.

At N = 16 the FFN's budget is {budget(16):,} prompts ({budget(last):,} at N = {last}), and {won} of the batches and
rates that were tried got there. Its lanes end at test loss
{ffn.where(seq_len=16).mean('test_loss')}, where ignoring the pointers gives {1 - 1 / 16:.3f}: more prompts may not
do either.
"""
