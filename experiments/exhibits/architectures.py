"""Who else retrieves: sixteen mixers and a GRU, two blocks and 20,000 parameters each, on four tasks.

One label a prompt, N = 4, retrieval also at N = 8, the learning rate tuned on a lane of its own, ten lanes with a task
each (five where a million labels are allowed). Every mixer reads in both directions, since a causal one cannot see the
later tokens for which all tasks but parity ask; on parity causal ones are compared as well.
"""

import math

import pandas as pd

from qstr_jax import analysis, plots
from qstr_jax.analysis import formats, line_fit
from qstr_jax.cli import base
from qstr_jax.report import drawing, lanes

ORDER = 37
QUESTION = 'How many labels does each of seventeen mixers need for retrieval, recall, a join by key, and tracking?'
MODELS = (
    'attention', 'linear_attention', 'retnet', 'gla', 'deltanet', 'gated_deltanet', 'kda', 'mamba2', 'mamba3', 'rwkv7',
    'rg_lru', 'mlstm', 'min_gru', 's5', 'long_conv', 'mlp_mixer', 'gru',
)  # fmt: skip
# By task: its name in the figure, its threshold, and on which error.
TASKS = {
    'qstr': ('retrieval: 1STR', 0.7, 'loss'),
    'noisy_keys': ('recall: noisy keys', 0.7, 'loss'),
    'flights': ('a join by key: flights', 0.5, 'loss'),
    'modular_sum': ('tracking: parity', 0.1, 'error_rate'),
}
SEQ_LENS = {'qstr': (4, 8), 'noisy_keys': (4,), 'flights': (4,), 'modular_sum': (4,)}
POINTS = tuple((task, seq_len) for task, lengths in SEQ_LENS.items() for seq_len in lengths)
# The mixers that get a million labels on 1STR: all at short N, fewer at longer N, where a lane takes many minutes.
MOST_LABELS = 1_000_000
LONG = {4: MODELS, 8: MODELS, 16: MODELS, 32: ('attention', 'rg_lru'), 64: ('attention',)}
FOLDERS = {
    'architectures': tuple(f'{task}_{seq_len}' for task, seq_len in POINTS),
    'architectures_long': tuple(f'long_{seq_len}' for seq_len in LONG),
    'architectures_causal': ('causal_4', 'causal_8'),
}
TITLES = {
    'architectures_long': 'Who else retrieves at longer N: 1STR, a million labels in batches of 256',
    'architectures_causal': 'Who else tracks: parity by causal mixers, N = 4 and 8',
}
CAUSAL = 'causal parity'
FIGURES = {
    'architectures/figure.png': 'Labels to the threshold, a panel for each task; the best on retrieval on top',
    'architectures_long/figure.png': '1STR with a million labels in batches of 256, the best at the longest N on top',
    'architectures_causal/figure.png': 'Parity, on which no token asks for a later one, with causal mixers',
}


def get_config(part='qstr_4'):
    """One task and N for all mixers, ten lanes with a task each, 48,000 labels.

    `long` is 1STR with five lanes and a million labels, `causal` is parity with mixers that see only earlier tokens.
    """
    base.check_part(part, FOLDERS)
    task, _, seq_len = part.rpartition('_')
    config = protocol(task_of(part), int(seq_len))
    config.num_seeds = 5 if task == 'long' else 10
    if task == 'long':
        config.batch_size, config.check_every, config.max_samples = 256, 10, MOST_LABELS
    config.models = LONG[int(seq_len)] if task == 'long' else MODELS
    for model in MODELS:  # also those that this part leaves out, since --config.models may name them
        config[model].update(num_parameters=20_000, bidirectional=task != 'causal')
    config.gru.state_dim = 32  # 64 states have more than 20,000 parameters by themselves
    return config


def task_of(part):
    """The task of a part, 'long' and 'causal' among them."""
    name = part.rpartition('_')[0]
    return {'long': 'qstr', 'causal': 'modular_sum'}.get(name, name)


def protocol(task, seq_len):
    """How architectures are measured here, whatever they are."""
    _, threshold, kind = TASKS[task]
    config = base.get_config()
    config.task.name = task
    if task == 'flights':
        config.task.lookup = 'key'
    config.update(seq_lens=(seq_len,), risk='pointwise', batch_size=64)
    config.update(check_every=4, threshold=threshold, threshold_on=kind, test_samples=1000, max_samples=48_000)
    config.task_per_lane = True
    config.tune.update(learning_rate=(1e-3, 3e-3, 1e-2), num_seeds=1)
    return config


def reduced(part='qstr_4'):
    """The same in seconds, for the tests: every part is a small FFN at N = 4, as in who_wins."""
    config = protocol(task_of(part), 4)
    base.shrink_tuned(config)
    config.risk, config.check_every = 'averaged', 10
    return config


def shrink(config):
    """Shrinks a sweep of some mixers to seconds, for the tests."""
    config.seq_lens = (2,)
    config.tune.learning_rate = (3e-3, 1e-2)
    config.num_seeds, config.max_samples, config.test_samples = 2, 1024, 100
    base.ease(config)
    return config


def draw(workdir, config):
    """One figure of all tasks and N, and a table of all points."""
    rows = lanes.load(workdir)
    panels = {name: rows[rows['task'] == task] for task, (name, _, _) in TASKS.items() if task in set(rows['task'])}
    draw_ranked(workdir, panels, ['task', 'model', 'seq_len', 'learning_rate'])


def draw_ranked(workdir, panels, point, by='seq_len', notes=()):
    """One figure of some panels, a line for each architecture and a colour for each value of `by`, and a table."""
    rows = pd.concat(panels.values())
    labels = ('one label a prompt',) if rows['risk'].eq('pointwise').all() else ()
    drawing.save(plots.samples_ranked(panels, by, notes=(*labels, *notes)), workdir, 'figure')
    write_points(workdir, rows, point)


def write_points(workdir, rows, point):
    """A table of the samples of all points."""
    shown = [*point, 'num_lanes', 'num_learn', 'mean', 'min', 'max', 'lower_bound']
    drawing.write(analysis.summarize(rows, point)[shown], workdir, 'table', digits=3)


def asked(rows):
    """'1STR, N = 8', of rows of one task and N."""
    (seq_len,) = rows['seq_len'].unique()
    return f'{short("qstr")}, N = {seq_len}'


def text(rows):
    some = rows('architectures')
    done = {short(task): longest(some.where(task=task)) for task in TASKS if task in some.values('task')}
    done[CAUSAL] = longest(rows('architectures_causal'))
    # Parity in both directions stands in the list below alone: by causal mixers it is asked at a longer N.
    first = '; '.join(f'{name}, {winners(lanes)}' for name, lanes in done.items() if name != short('modular_sum'))
    more = '\n'.join(f'- {name}, {best(lanes, 4)}; {lost(lanes)}.' for name, lanes in done.items())
    return f"""
Fewest of at most {some.values('max_samples')[0]:,} labels, at the longest prompts: {first}. A learner that knows where
to look needs {known(rows)} on 1STR.
{who_learns(rows)}

The four best on each task, and the mixers of which no lane of ten learns:

{more}

{some.lanes()} lanes with a task each, about 20,000 parameters, at most {some.values('max_samples')[0]:,} labels, one a
prompt; lanes and the choice of rates took {rows('architectures', 'architectures/selection').time()}.

{with_more(rows)}
"""


def choice(lanes):
    """How the rates of some tuned lanes were chosen, and at how many points none won."""
    seeds = len(str(lanes.values('tuned_seeds')[0]).split())
    how, taken = f'{seeds} lanes of their own', 'no rate got all of them there, so another may do better'
    if seeds == 1:
        how = '1 lane of their own'
        taken = 'no rate got there, and the one with the least error at the end was taken: another may do better'
    return f'Rates are chosen on {how}; at {without_rate(lanes)} points {taken}.'


def without_rate(lanes):
    """'15 of 16': at how many points of some tuned lanes no rate got there."""
    points = lanes.table.drop_duplicates(['cell', 'tuned_samples'])
    return f'{sum(set(samples.split()) == {"inf"} for samples in points["tuned_samples"])} of {len(points)}'


def lucky_choices(lanes):
    """Points, as (model, N), whose lanes need more than twice what the lane did that chose their rate."""
    return [
        (model, seq_len)
        for (model, seq_len), own in lanes.table.groupby(['model', 'seq_len'])
        if analysis.summarize(own, ['model'])['mean'].item() > 2 * min(map(float, own['tuned_samples'].iloc[0].split()))
    ]


def unlucky(lanes):
    """Says at which points a lucky lane chose the rate."""
    found = ' and '.join(f'{analysis.display(model)} at N = {seq_len}' for model, seq_len in lucky_choices(lanes))
    if not found:
        return 'no lanes need more than twice the labels of the lane that chose their rate'
    return (
        f'lanes of {found} need more than twice the labels of the lane that chose their rate, so exponents with these '
        'points are doubtful'
    )


def widths(lanes):
    """'10 to 38', of the mixers that share a size."""
    columns = [name for name in lanes.table.columns if name.endswith('_width') and not name.endswith('_mlp_width')]
    found = lanes.table[columns].stack()
    return f'{found.min():.0f} to {found.max():.0f}'


def who_learns(rows):
    """How many mixers learn 1STR at N = 8 within either budget, and how the best go on."""
    seq_len = max(SEQ_LENS['qstr'])
    few, many = rows('architectures', task='qstr', seq_len=seq_len), rows('architectures_long', seq_len=seq_len)
    learn = [some.where(outcome='reached').table['model'].nunique() for some in (few, many)]
    grows = [
        f'as N^{some.exponent()} with {analysis.display(model)} up to N = {some.values("seq_len")[-1]}'
        for model in LONG[32]
        for some in [rows('architectures_long', model=model)]
    ]
    return (
        f'At N = {seq_len}, {learn[0]} of {len(MODELS)} mixers have a lane that learns 1STR within '
        f'{few.values("max_samples")[0]:,} labels, and {learn[1]} within a million. Labels '
        f'grow {" and ".join(grows)}.'
    )


def with_more(rows):
    """What 1STR takes with more labels, and how that grows with N."""
    many = rows('architectures_long')
    batch_size, most = (many.values(name)[0] for name in ('batch_size', 'max_samples'))
    alone = {seq_len: models[0] for seq_len, models in LONG.items() if len(models) == 1}
    beyond = ', '.join(
        f'{analysis.display(model)} {many.where(model=model, seq_len=seq_len).mean()} at N = {seq_len}'
        for seq_len, model in alone.items()
    )
    return f"""
The second table allows {most:,} labels in batches of {batch_size}, five lanes each; 1STR then takes
{beyond}. {growth(many)}
"""


def growth(many):
    """The two smallest exponents in N and the largest, among mixers that have one and no lucky choice of a rate."""
    found = {model: analysis.exponent(many.where(model=model).table) for model in many.values('model')}
    known = {model for model, one in found.items() if one.value is not None}
    doubtful = sorted(known & {model for model, _ in lucky_choices(many)})
    order = sorted(known.difference(doubtful), key=lambda model: found[model].value)
    least, second, greatest = (f'N^{found[model]} ({analysis.display(model)})' for model in (*order[:2], order[-1]))
    beside = ' and '.join(map(analysis.display, doubtful))
    left_out = f' {beside} are not among them: a lucky lane chose a rate of theirs.' if beside else ''
    others = f'those of {len(order) - 1} others that learn at three N as {second} to {greatest}'
    return f'Labels grow as {least}; {others}.{left_out}'


def in_one_column(rows, setting):
    """Adds a column with a setting of each mixer under its own name: `output` of `gla_output` and others."""
    own = [f'{model}_{setting}' for model in rows['model'].unique()]
    return rows.assign(**{setting: rows[own].bfill(axis=1).iloc[:, 0]})


def ratios(points, setting, most, least):
    """Labels with one value of a setting over those with another, of mixers that half learn with either, sorted."""
    half = points[points['num_learn'] >= points['num_lanes'] / 2]
    means = half.set_index(['model', setting])['mean'].unstack()
    return (means[most] / means[least]).dropna().sort_values()


def known(rows):
    """Labels to the threshold on 1STR by least squares on the right tokens, whose risk is 1 − n/(q d)."""
    some = rows('architectures', task='qstr')
    (threshold,), (token_dim,), (sparsity,) = (some.values(name) for name in ('threshold', 'token_dim', 'sparsity'))
    return math.floor((1 - threshold) * sparsity * token_dim) + 1


def short(task):
    """'1STR', of 'retrieval: 1STR'."""
    return TASKS[task][0].partition(': ')[2]


def longest(lanes):
    """Lanes at the largest N."""
    return lanes.where(seq_len=max(lanes.values('seq_len')))


def by_model(lanes):
    """The means of each architecture, those that need least first."""
    return best_first(analysis.summarize(lanes.table, ['model']))


def best_first(points):
    """Architectures sorted by how many of their lanes learn, the most first, then by how few labels they need."""
    return points.sort_values(['num_learn', 'mean'], ascending=[False, True])


def together(points):
    """The best, and those that learn on as many lanes and whose intervals overlap its own; none if no lane learns."""
    points = best_first(points)
    best = points.iloc[0]
    is_alike = (points['num_learn'] == best['num_learn']) & ~(points['low'] > best['high'])
    return points[is_alike & (best['num_learn'] > 0)]


def winners(lanes):
    """'N = 8: attention 12.6k', or 'N = 4: deltanet, gla and 8 more together, 1.47k to 2.47k'."""
    first = together(by_model(lanes))
    if len(first) < 2:
        return best(lanes, 1)
    least, most = (analysis.short_number(first['mean'].iloc[place]) for place in (0, -1))
    names = list(map(analysis.display, first['model']))
    listed = ' and '.join(names) if len(names) == 2 else f'{", ".join(names[:2])} and {len(names) - 2} more'
    return f'N = {lanes.values("seq_len")[0]}: {listed} together, {least} to {most}'


def best(lanes, count):
    """'N = 8: attention 12.6k, …'."""
    first = [
        f'{analysis.display(line.model)} {lanes.where(model=line.model).mean()}'
        for line in by_model(lanes).itertuples()
        if line.num_learn
    ]
    return f'N = {lanes.values("seq_len")[0]}: {", ".join(first[:count]) or "no lane learns"}'


def lost(lanes):
    """'no lane of gla, mlstm learns', or only their number where they are many."""
    means = by_model(lanes)
    none = [analysis.display(model) for model in means['model'][means['num_learn'] == 0]]
    if not none:
        return 'all have lanes that learn'
    return f'no lane of {", ".join(none) if len(none) <= 5 else f"{len(none)} others"} learns'


def table(rows):
    some, many, causal = rows('architectures'), rows('architectures_long'), rows('architectures_causal')
    causal_points = [{'seq_len': seq_len} for seq_len in causal.values('seq_len')]
    points = [{'task': task, 'seq_len': N} for task, N in POINTS if some.count(task=task, seq_len=N)]
    lengths = [{'seq_len': N} for N, models in LONG.items() if len(models) > 1]
    first = analysis.summarize(some.where(**points[0]).table, ['model', 'seq_len'])
    doubtful = {model for model, _ in lucky_choices(many)}
    few, more = [], []
    for model in plots.ranked(first, 'seq_len'):
        few.append([
            analysis.display(model), *(some.mean_or_dash(model=model, **point) for point in points),
            *(causal.mean_or_dash(model=model, **point) for point in causal_points),
        ])  # fmt: skip
        exponent = analysis.exponent(many.where(model=model).table)
        words = '–' if exponent.value is None else str(exponent).replace(f' by {line_fit.BY_NOISE}]', ']*')
        words += ' †' if exponent.value is not None and model in doubtful else ''
        more.append([analysis.display(model), *(many.mean_or_dash(model=model, **point) for point in lengths), words])
    heads = [f'{short(point["task"])}, N = {point["seq_len"]}' for point in points]
    heads += [f'{CAUSAL}, N = {point["seq_len"]}' for point in causal_points]
    heads_of_more = [f'1STR, N = {point["seq_len"]}' for point in lengths]
    note = 'exponent in N (\\*: by lane noise alone; †: a lucky lane chose a rate)'
    tables = (some, heads, few), (many, [*heads_of_more, note], more)
    return '\n\n'.join(formats.pipes([at_most(lanes), *heads], lines) for lanes, heads, lines in tables)


def at_most(lanes):
    """'at most 48,000 labels, batches of 64'."""
    return f'at most {lanes.values("max_samples")[0]:,} labels, batches of {lanes.values("batch_size")[0]}'


def limits(rows):
    some = rows('architectures')
    ran = some.table.groupby('task')['model'].nunique().reindex(list(TASKS), fill_value=0)
    left = [f'{short(task)} ({count} of {len(MODELS)} mixers)' for task, count in ran.items() if count < len(MODELS)]
    few = '; '.join(
        f'{" and ".join(map(analysis.display, models))} at N = {seq_len}'
        for seq_len, models in LONG.items()
        if seq_len > 16
    )
    waiting = f'Not run to the end: {", ".join(left)}. ' if left else ''
    return f"""
{waiting}Two blocks, one size, one batch size a budget; beyond N = 16 only {few}. {choice(some)}

The other way round, {unlucky(rows('architectures_long'))}.

A mixer that does not learn may do so with more labels. Equal parameters are unlike widths,
{widths(some)} numbers of a token. An interval with * is of three N, so it holds only the noise between lanes.

Flights ask by key here and by position in `who_wins`. Prompts are so short that what
a state can hold hardly binds; but for causal parity mixers read in both directions, unlike those of language models.
{with_plain_outputs(rows)}
"""


def with_plain_outputs(rows):
    """How much the norm and the gate at a memory's output decide which lanes learn."""
    some = in_one_column(rows('output_norm', task='noisy_keys', seq_len=4).table, 'output')
    learn = some['outcome'].eq('reached').groupby(some['output']).sum()
    total = some.groupby('output').size()
    return (
        f'Norms and gates at the outputs of a memory are part of the answer: without them {learn["plain"]} of '
        f'{total["plain"]} lanes of {some["model"].nunique()} mixers learn noisy keys, with both {learn["gated"]} of '
        f'{total["gated"]} (`output_norm`).'
    )
