"""Who wins where: samples to a small error against N, at the best rate, for retrieval, recall, tracking and real data.

Retrieval: 1STR, causal, weighted, of 0 to 2 tokens, over two hops, of a token that a direction marks, and of the only
token with a label. Recall: MQAR, and keys with noise. Tracking: parity and words over S₃, supervised at every
position. Real data: flights with given positions, heads of words, digits that point. The networks are small and of the
published kinds: a Transformer of one layer, a bidirectional GRU of width 32, an FFN of widths 64 and 64.
"""

import pandas as pd

from experiments.exhibits import architectures
from qstr_jax import analysis, plots
from qstr_jax.analysis import formats, no_retrieval
from qstr_jax.cli import base
from qstr_jax.plots import labels
from qstr_jax.report import drawing, lanes

ORDER = 32
QUESTION = 'Which architecture needs the fewest samples for retrieval, for recall, for tracking, and on real data?'
LENGTHS = (4, 8)
MSE, ERRORS = {'threshold': 0.3}, {'threshold': 0.05, 'threshold_on': 'error_rate'}
# By task, in the order of the figure (retrieval, recall, tracking, real data): what it is called, its lengths, its
# threshold, the settings of the task that are not at their default.
TASKS = {
    'qstr': ('1STR', (4, 8, 12), MSE, {}),
    'causal_qstr': ('causal 1STR', LENGTHS, MSE, {}),
    'weighted_qstr': ('weighted 1STR', LENGTHS, MSE, {}),
    # half of qSTR's threshold, as the error without retrieval is
    'varying_qstr': ('0 to 2 tokens', LENGTHS, {'threshold': 0.15}, {'sparsity': 2}),
    'hops': ('two hops', LENGTHS, MSE, {}),
    'latent_index': ('latent index', LENGTHS, MSE, {'signal': 16.0}),  # the oracle errs by 0.02
    'informative_token': ('informative token', LENGTHS, ERRORS, {}),
    # N = 4 has one pair, which needs no recall
    'mqar': ('MQAR (N/4 pairs)', (8, 12), ERRORS, {'vocab_size': 32}),
    'noisy_keys': ('noisy keys', LENGTHS, MSE, {}),
    'modular_sum': ('parity', LENGTHS, ERRORS, {}),
    'permutations': ('words over S₃', LENGTHS, ERRORS, {}),
    'flights': ('flights', LENGTHS, MSE, {}),
    'word_heads': ('heads of words', (8, 12), ERRORS, {}),  # few sentences have four words
    'pointing_digits': ('digits that point', LENGTHS, {**ERRORS, 'threshold': 0.2}, {}),
}
NAMES = {task: name for task, (name, *_) in TASKS.items()}
GUESS = 'guess: what the best predictor errs by that does not look at what is asked for'
FOLDERS = {'who_wins': tuple(TASKS)}
FIGURES = {'who_wins/figure.png': 'Samples to a small test error against N, a panel for each task'}


def get_config(part='qstr'):
    """One task: three architectures, five lanes with a task each, the rate tuned, at most 64,000 prompts."""
    base.check_part(part, FOLDERS)
    _, seq_lens, threshold, settings = TASKS[part]
    config = base.get_config(task={'name': part, **settings}, seq_lens=seq_lens, **threshold)
    config.update(rnn={'width': 32}, ffn={'widths': (64, 64)}, tune={'learning_rate': (1e-3, 3e-3, 1e-2)})
    config.update(task_per_lane=True, test_samples=1000, max_samples=64_000)
    return config


def reduced(part='qstr'):
    """The same in seconds, for the tests: every part is a small FFN."""
    return base.shrink_tuned(get_config(part), seq_lens=TASKS[part][1][:1])


def draw(workdir, config):
    """Writes one figure of all tasks, and a table of all points."""
    rows = lanes.load(workdir)
    found = {name: rows[rows['task'] == task] for task, name in NAMES.items() if task in set(rows['task'])}
    titles = {name: f'{name}\n{goal(own)}, guess {guess(own)}' for name, own in found.items()}
    panels = {titles[name]: own[~by_heart(own)] for name, own in found.items()}
    remarks = {titles[name]: learnt_by_heart(own) for name, own in found.items()}
    drawing.save(plots.samples_in_panels(panels, remarks=remarks, notes=(GUESS,)), workdir, 'figure')
    point = ['model', 'seq_len', 'learning_rate']
    tables = [analysis.summarize(own, point).assign(task=name, until=goal(own)) for name, own in found.items()]
    shown = ['task', 'until', *point, 'num_lanes', 'num_learn', 'mean', 'min', 'max', 'lower_bound']
    drawing.write(pd.concat(tables)[shown], workdir, 'table', digits=3)


def by_heart(rows):
    """Lanes of points at which none reaches the threshold and all have learnt their prompts by heart."""
    lanes = rows.assign(reached=rows['outcome'].eq('reached')).groupby(['model', 'seq_len'])
    return ~lanes['reached'].transform('any') & lanes['train_loss'].transform('max').lt(0.01)


def learnt_by_heart(rows):
    """'N = 8: RNN, FFN\nlearnt by heart', where a bound would say nothing; or ''."""
    models = {n: analysis.model_order(own) for n, own in rows[by_heart(rows)].groupby('seq_len')}
    named = [f'N = {n}: {", ".join(map(analysis.display, own))}' for n, own in models.items()]
    return '\n'.join([*named, 'learnt by heart']) if named else ''


def goal(rows):
    """What a lane has to reach: 'MSE 0.3', or 'error rate 0.05'."""
    return labels.aim(rows).removeprefix('to ')


def guess(rows):
    """The error of a guess: '0.75', or '0.75 to 0.92' at the N of the rows."""
    errors = no_retrieval.losses(rows)
    return ' to '.join(dict.fromkeys(f'{error:.2g}' for error in (errors.min(), errors.max())))


def best(rows, task, seq_len):
    """The best by lanes that learn, then by samples, and those whose interval overlaps its own: 'RNN', or ''."""
    some = rows('who_wins', task=task, seq_len=seq_len).table
    first = architectures.together(analysis.summarize(some, ['model']))
    return ' and '.join(map(analysis.display, first['model']))


def text(rows):
    longest = rows('who_wins').table.groupby('task')['seq_len'].max()
    found = {task: best(rows, task, longest[task]) for task in NAMES if task in longest}
    by_name = {name: [NAMES[task] for task in found if found[task] == name] for name in dict.fromkeys(found.values())}
    won = '; '.join(f'{name} on {", ".join(some)}' for name, some in by_name.items() if name)
    none = f'; there none learns {", ".join(by_name[""])}' if '' in by_name else ''
    retrieval, hops, parity = (rows('who_wins', task=task, seq_len=4) for task in ('qstr', 'hops', 'modular_sum'))
    return f"""
Fewest samples at the largest N of each task, within {rows('who_wins').values('max_samples')[0]:,} prompts: {won}{none}.

At N = 4 Transformer, RNN and FFN need {listed(retrieval)} samples for retrieval (1STR), {listed(hops)} for two hops
and {listed(parity)} for parity. Of the heads of words, most of which are neighbours, a guess by the tags of a word and
of the next one misses {guess(rows('who_wins', task='word_heads').table)}. Architectures are called first together where
the 95% intervals of their means meet; where fewer lanes of one learn than of another, it is not called first, whatever
its samples.

{rows('who_wins').lanes()} lanes with a task each; lanes and the choice of rates took
{rows('who_wins', 'who_wins/selection').time()}.
"""


def listed(lanes):
    """Mean samples of the three architectures, in the order of the names."""
    return ', '.join(lanes.where(model=model).mean() for model in analysis.MODELS)


def table(rows):
    lines = []
    for task in (task for task in NAMES if task in rows('who_wins').values('task')):
        some = rows('who_wins', task=task)
        for seq_len in some.values('seq_len'):
            means = [entry(some.where(seq_len=seq_len, model=model)) for model in analysis.MODELS]
            lines.append([f'{NAMES[task]}, {goal(some.table)}', f'N = {seq_len}', *means])
    return formats.pipes(['samples to', '', *map(analysis.display, analysis.MODELS)], lines)


def entry(lanes):
    """The mean of some lanes; of lanes that have learnt their prompts by heart a bound would say nothing."""
    return '– (learnt by heart)' if by_heart(lanes.table).all() else lanes.mean()


def limits(rows):
    some = rows('who_wins')
    left = [name for task, name in NAMES.items() if task not in some.values('task')]
    waiting = f'The sweep has no rows yet of {", ".join(left)}.' if left else ''
    words, attention = (
        rows('who_wins', task='word_heads', model=('rnn', 'ffn'), seq_len=8),
        rows('architectures', task='modular_sum', model='attention', seq_len=4),
    )
    return f"""
Each architecture has one small size ({some.extent('num_parameters')} parameters), so a failure is one of this size
within its budget, and N ends at {max(some.values('seq_len'))}. {architectures.choice(some)}

Two layers on MQAR are the next exhibit. Flights ask by position here, and by key in their own exhibit. {waiting}

The Transformer is the smallest{larger_at(some)}: on parity the others have
{larger(rows('who_wins', task='modular_sum'))} times its parameters, on words over S₃
{larger(rows('who_wins', task='permutations'))} times. With
{attention.values('num_parameters')[0]:,.0f} attention learns parity at N = 4 from {attention.mean()} labels, to an
error rate of {attention.extent('threshold')} (`architectures`).

Heads of words are of some hundred sentences at N = 8, which repeat, and of more at N = 12. At N = 8 FFN and RNN have
learnt them by heart, with losses of {words.mean('train_loss', by='model')} on them and accuracies of
{words.mean('accuracy', by='model')} on others, so more prompts would hardly help.
"""


def ratios(lanes):
    """Parameters of RNN and FFN over those of the Transformer, by task and N."""
    sizes = lanes.table.groupby(['task', 'seq_len', 'model'])['num_parameters'].first().astype(float).unstack()
    return sizes.drop(columns='transformer').div(sizes['transformer'], axis=0)


def larger(lanes):
    """'4.2 to 5.9': the smallest and largest of `ratios`."""
    found = ratios(lanes)
    return f'{found.min(axis=None):.1f} to {found.max(axis=None):.1f}'


def larger_at(lanes):
    """', but not on digits that point at N = 4': where another architecture has fewer parameters."""
    found = ratios(lanes).min(axis=1)
    places = [f'{NAMES[task]} at N = {seq_len}' for task, seq_len in found.index[found < 1]]
    return f', but not on {" and ".join(places)}' if places else ''
