"""What does state buy: recurrent mixers that carry 64, 256 or 1,024 numbers in a block, recalling pairs (MQAR).

The blocks of `zoology`: two, causal, 32 wide, without MLP, a convolution of two tokens before each mixer. N = 8 has two
pairs, N = 16 four, N = 32 eight.
"""

import math

import numpy as np

from experiments.exhibits import architectures, zoology
from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.cli import base
from qstr_jax.report import lanes

ORDER = 41
IS_SUPPORTING = True
QUESTION = 'How many numbers must a recurrent mixer carry to recall two, four or eight pairs?'
# Numbers of a head's state, and the side of a square of as many.
SIDES = {64: 8, 256: 16, 1024: 32}
PARTS = {f's{state}_{seq_len}': (state, seq_len) for seq_len in (8, 16, 32) for state in SIDES}
FOLDERS = {'state': tuple(PARTS)}
MATRICES = ('linear_attention', 'retnet', 'gla', 'deltanet', 'gated_deltanet', 'kda', 'mlstm', 'rwkv7')
STATE_SPACES = ('mamba2', 'mamba3')
VECTORS = ('rg_lru', 'min_gru', 's5')
FIGURES = {'state/figure.png': 'Prompts to 90 % accuracy on MQAR, a colour for each size of state'}
POINT = ['num_pairs', 'model', 'state']


def get_config(part='s64_16'):
    """One size of state at one N: up to thirteen mixers, one head, ten lanes with a task each, 24,000 prompts at most.

    At N = 32 the mixers whose state is a vector are not run, since none of their lanes learns at N = 16.
    """
    base.check_part(part, FOLDERS)
    state, seq_len = PARTS[part]
    config = zoology.get_config('w32')
    config.models = (*MATRICES, *STATE_SPACES, *VECTORS)
    config.seq_lens = (seq_len,)
    config.num_seeds = 10
    for model in config.models:
        config[model].update(width=32, mlp='none', short_conv=2, bidirectional=False)
        if model in VECTORS:
            # The state of S5 is complex.
            config[model].state_dim = state // 2 if model == 's5' else state
        else:
            config[model].update(heads=1, head_dim=SIDES[state])
        if model in STATE_SPACES:
            config[model].state_dim = SIDES[state]
    config.rg_lru.heads = SIDES[state]
    if seq_len == 32:
        config.models = (*MATRICES, *STATE_SPACES)
    elif state > 256:
        config.models = config.models[:-1]  # S5, whose 512 complex numbers took too long, is not run.
    config.update(tune={'num_seeds': 1}, threshold=0.1, max_samples=24_000)
    return config


def reduced(part='s64_16'):
    """The same in seconds, for the tests: one mixer."""
    config = get_config('s64_16')
    config.update(models=('min_gru',), seq_lens=(8,), num_seeds=2, max_samples=6400, test_samples=100)
    base.ease(config)
    return config


def draw(workdir, config):
    """One figure, and a table."""
    panels = {f'MQAR, {pairs} pairs': own for pairs, own in named(lanes.load(workdir)).groupby('num_pairs')}
    architectures.draw_ranked(workdir, panels, [*POINT, 'learning_rate'], by='state')


def named(rows):
    """Adds a column `state`: the nominal size of each mixer's state."""
    return rows.assign(state=[state_of(row) for row in rows.to_dict('records')])


def state_of(row):
    """Numbers of a row's state, without what its mixer carries besides."""
    model = row['model']
    if model in VECTORS:
        return int(row[f'{model}_state_dim']) * (2 if model == 's5' else 1)
    return int(row[f'{model}_head_dim']) ** 2


def learners(points):
    """'5 of 13 mixers with 64 numbers, …': how many mixers learn on more than half of their lanes, by size of state."""
    most = (points['num_learn'] > points['num_lanes'] / 2).groupby(points['state'])
    return ', '.join(f'{own.sum()} of {len(own)} mixers with {state:,} numbers' for state, own in most)


def gains(points):
    """'deltanet 0.45, …': samples with the largest state over the smallest, for mixers that half learn with either."""
    ratios = architectures.ratios(points, 'state', max(SIDES), min(SIDES))
    return ', '.join(f'{analysis.display(model)} {ratio:.2f}' for model, ratio in ratios.items()) or 'none'


def text(rows):
    some = rows('state')
    own = named(some.table)
    is_vector = own['model'].isin(VECTORS)
    vector, other = some.where(model=VECTORS), some.where(model=(*MATRICES, *STATE_SPACES))
    by_state = ', '.join(f'{shares(lanes)} with {state:,} numbers' for state, lanes in own[~is_vector].groupby('state'))
    learners = own[is_vector & own['outcome'].eq('reached')][['model', 'num_pairs', 'state']].drop_duplicates()
    where = ' and '.join(
        f'{analysis.display(line.model)} with {line.num_pairs} pairs and {line.state:,} numbers'
        for line in learners.itertuples()
    )
    said = '\n\n'.join(f'- {with_pairs(own[own["num_pairs"] == pairs])}' for pairs in some.values('num_pairs'))
    return f"""
Of the lanes of mixers whose state is a matrix these learn {', '.join(map(str, some.values('num_pairs')))} pairs within
{some.values('max_samples')[0]:,} prompts: {by_state}. Of all lanes of mixers whose state is a vector
({', '.join(map(analysis.display, VECTORS))}) {learnt(own[is_vector]).replace(' lanes', '')} learn, {where or 'none'}.

Those of vectors have {sizes(vector)} parameters, those of matrices {sizes(other)}; on the selection lane no rate got
there at {architectures.without_rate(vector)} of their points and at {architectures.without_rate(other)}.

{said}

{fewer_pairs(own)}

{some.lanes()} lanes with a task each, to 90 % accuracy; lanes and the choice of rates took
{rows('state', 'state/selection').time()}.
"""


def sizes(lanes):
    """'13,280 to 340,800': the parameters of some lanes."""
    least, *_, most = lanes.values('num_parameters')
    return f'{least:,.0f} to {most:,.0f}'


def learnt(lanes):
    """'79 of 200 lanes'."""
    return f'{lanes["outcome"].eq("reached").sum()} of {len(lanes)} lanes'


def shares(lanes):
    """'32, 29, 7 %': how many lanes learn, by the number of pairs."""
    learn = lanes['outcome'].eq('reached').groupby(lanes['num_pairs']).mean()
    return f'{", ".join(f"{100 * share:.0f}" for share in learn)} %'


def with_pairs(own):
    """What is found at one number of pairs."""
    points = analysis.summarize(own, POINT)
    return (
        f'{own["num_pairs"].iloc[0]} pairs: {learnt(own)} learn, more than half of the lanes of {learners(points)}. '
        f'Prompts with {max(SIDES):,} numbers over those with {min(SIDES)}, where half of the lanes learn with either: '
        f'{gains(points)}.'
    )


def fewer_pairs(own):
    """Samples with the fewest pairs over those with the most, for mixers and states with which half the lanes learn."""
    points = analysis.summarize(own, POINT)
    half = points[points['num_learn'] >= points['num_lanes'] / 2]
    means = half.set_index(POINT)['mean'].unstack('num_pairs').dropna()
    few, many = means.columns.min(), means.columns.max()
    ratio = math.exp(np.log(means[few] / means[many]).mean())
    return (
        f'Where half of the lanes learn with either ({len(means)} mixers and states), {few} pairs take {ratio:.2f} '
        f'times the prompts of {many}, by the geometric mean. A prompt has a label for each pair, so in labels that is '
        f'{ratio * few / many:.2f} times.'
    )


def table(rows):
    own = named(rows('state').table)
    found = analysis.summarize(own, POINT).set_index(POINT)
    found = found.assign(accuracy=own.groupby(POINT)['accuracy'].mean())
    lines = [
        [analysis.display(model), f'{pairs}', *(entry(found, (pairs, model, state)) for state in SIDES)]
        for pairs in sorted(own['num_pairs'].unique())
        for model in (*MATRICES, *STATE_SPACES, *VECTORS)
        if (own['model'].eq(model) & own['num_pairs'].eq(pairs)).any()
    ]
    return formats.pipes(['prompts to 90 %', 'pairs', *(f'state {state:,}' for state in SIDES)], lines)


def entry(found, point):
    return zoology.entry(found.loc[point]) if point in found.index else 'not run'


def limits(rows):
    return f"""
More state is more parameters as well, {sizes(rows('state'))} here, and more pairs stand in longer prompts, N = 8 to 32.
{architectures.choice(rows('state'))} Prompts have a label at
each query, and are short. Not run: vectors at N = 32, S5 with 1,024 numbers, and the paper's GRU, whose parameters grow
with the square of its state.
"""
