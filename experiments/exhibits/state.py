"""What does state buy: recurrent mixers with 64, 256 and 1,024 numbers of state in a block, recalling K pairs (MQAR).

The blocks of `zoology`: two, causal, 32 wide, without MLP, a convolution of two tokens before each mixer. N = 4 K.
"""

from experiments.exhibits import architectures, zoology
from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.report import lanes
from qstr_jax.settings import checks

ORDER = 41
IS_SUPPORTING = True
QUESTION = 'How many numbers must a recurrent mixer carry to recall K pairs?'
# Numbers of a head's state, and the side of a square of as many.
SIDES = {64: 8, 256: 16, 1024: 32}
PARTS = {f's{state}_{seq_len}': (state, seq_len) for seq_len in (16, 32) for state in SIDES}
FOLDERS = {'state': tuple(PARTS)}
MATRICES = ('linear_attention', 'retnet', 'gla', 'deltanet', 'gated_deltanet', 'kda', 'mlstm', 'rwkv7')
STATE_SPACES = ('mamba2', 'mamba3')
VECTORS = ('rg_lru', 'min_gru', 's5')
FIGURES = {'state/figure.png': 'Prompts to 90 % accuracy on MQAR, a colour for each size of state'}
POINT = ['pairs', 'model', 'state']


def get_config(part='s64_16'):
    """One size of state at one N: thirteen mixers, one head, five lanes with a task each, at most 24,000 prompts."""
    checks.choice('part', part, PARTS)
    state, seq_len = PARTS[part]
    config = zoology.get_config('w32')
    config.models = (*MATRICES, *STATE_SPACES, *VECTORS)
    config.seq_lens = (seq_len,)
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
    config.tune.num_seeds = 1
    config.threshold = 0.1
    config.max_samples = 24_000
    return config


def reduced(part='s64_16'):
    """The same in seconds, for the tests: one mixer."""
    config = get_config('s64_16')
    config.models = ('min_gru',)
    config.seq_lens, config.num_seeds = (8,), 2
    config.max_samples, config.test_samples = 6400, 100
    return config


def draw(workdir, config):
    """One figure with a panel for each number of pairs, and a table."""
    rows = named(lanes.load(workdir))
    panels = {zoology.pairs_text(pairs): own for pairs, own in rows.groupby('pairs')}
    architectures.draw_ranked(workdir, panels, [*POINT, 'learning_rate'], by='state')


def named(rows):
    """The rows with the nominal size of their state, and their number of pairs."""
    return rows.assign(state=[state_of(row) for row in rows.to_dict('records')], pairs=rows['num_pairs'])


def state_of(row):
    """Numbers of a row's state, without what its mixer carries besides."""
    model = row['model']
    if model in VECTORS:
        return int(row[f'{model}_state_dim']) * (2 if model == 's5' else 1)
    return int(row[f'{model}_head_dim']) ** 2


def learners(rows, pairs):
    """'64: 3 of 13, …': at each size of state the mixers of which most lanes learn."""
    points = analysis.summarize(rows[rows['pairs'] == pairs], POINT)
    most = (points['num_learn'] > points['num_lanes'] / 2).groupby(points['state'])
    return ', '.join(f'{state:,}: {own.sum()} of {len(own)}' for state, own in most)


def gains(rows, pairs):
    """Samples with the largest state over those with the smallest, of mixers that three lanes learn with either."""
    points = analysis.summarize(rows[rows['pairs'] == pairs], POINT)
    means = points[points['num_learn'] >= 3].set_index(['model', 'state'])['mean'].unstack()
    if len(means.columns) < 2:
        return {}
    return (means[means.columns[-1]] / means[means.columns[0]]).dropna().sort_values().to_dict()


def text(rows):
    some = rows('state')
    own = named(some.table)
    parts = []
    for pairs in sorted(own['pairs'].unique()):
        found = gains(own, pairs)
        ratios = ', '.join(f'{analysis.display(model)} {ratio:.2f}' for model, ratio in found.items())
        parts.append(
            f'With {zoology.pairs_text(pairs)} most lanes learn, by numbers of state, of {learners(own, pairs)}. '
            f'Prompts with the largest state over those with the smallest: {ratios or "no mixer learns with both"}.'
        )
    return f"""
{' '.join(parts)}

{some.lanes()} lanes with a task each, at most {some.values('max_samples')[0]:,} prompts to 90 % accuracy; lanes and the
choice of rates took {rows('state', 'state/selection').time()}.
"""


def table(rows):
    own = named(rows('state').table)
    found = analysis.summarize(own, POINT).set_index(POINT)
    found = found.assign(accuracy=own.groupby(POINT)['accuracy'].mean())
    columns = [(pairs, state) for pairs in sorted(own['pairs'].unique()) for state in sorted(own['state'].unique())]
    lines = [
        [analysis.display(model), *(entry(found, (pairs, model, state)) for pairs, state in columns)]
        for model in dict.fromkeys(own['model'])
    ]
    heads = [f'{pairs} pairs, state {state:,}' for pairs, state in columns]
    return formats.pipes(['prompts to 90 %', *heads], lines)


def entry(found, point):
    return zoology.entry(found.loc[point]) if point in found.index else 'not run'


def limits(rows):
    own = rows('state').table
    return f"""
Beside its state each mixer carries a convolution's last token in each block, and normalisers or angles of its own.
More state is more parameters as well: {own['num_parameters'].min():,.0f} to {own['num_parameters'].max():,.0f}. The
paper's GRU is missing, whose parameters grow with the square of its state.
"""
