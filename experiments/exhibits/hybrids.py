"""Hybrids: one block of attention and one of a recurrent mixer, in each order, beside two of either, on 1STR.

The protocol of `architectures`: one label a prompt, N = 8, 20,000 parameters, the rate tuned, ten lanes with a task
each. A reviewer of the paper asked whether one attention layer among recurrent ones is enough.
"""

from experiments.exhibits import architectures
from qstr_jax import analysis
from qstr_jax.cli import base
from qstr_jax.report import lanes

ORDER = 38
QUESTION = 'Is one attention block among recurrent ones enough, and does its place matter?'
ATTENTION = 'attention'
RECURRENT = ('mamba2', 'deltanet', 'rg_lru')
FOLDERS = {'hybrids': ('attention', *RECURRENT)}
FIGURES = {'hybrids/figure.png': 'Labels to test error 0.7 on 1STR, N = 8, for each pair of blocks; the best on top'}


def get_config(part='mamba2'):
    """Two blocks of a mixer, or one of them before or after a block of attention; or two blocks of attention."""
    base.check_part(part, FOLDERS)
    config = architectures.protocol('qstr', 8)
    config.models, config.num_seeds = ('backbone',), 10
    both = ((part, ATTENTION), (ATTENTION, part))
    config.backbone.update(mixers=((part, part), *(both if part != ATTENTION else ())), num_parameters=20_000)
    return config


def reduced(part='mamba2'):
    """The same in seconds, for the tests: one hybrid."""
    config = get_config(part)
    config.backbone.mixers = (('rg_lru', ATTENTION),)
    return architectures.shrink(config)


def draw(workdir, config):
    """One figure of all pairs, and a table."""
    rows = named(lanes.load(workdir))
    architectures.draw_ranked(workdir, {architectures.asked(rows): rows}, ['model', 'learning_rate'])


def named(rows):
    """The rows with the blocks as the name of the model: 'mamba2, attention'."""
    return rows.assign(model=rows['backbone_mixers'].str.replace(',', ', '))


def text(rows):
    some = rows('hybrids')
    pairs = analysis.summarize(named(some.table), ['model'])
    places = {
        'with attention first hybrids need': [f'{ATTENTION}, {mixer}' for mixer in RECURRENT],
        'with attention second': [f'{mixer}, {ATTENTION}' for mixer in RECURRENT],
        'two recurrent blocks': [f'{mixer}, {mixer}' for mixer in RECURRENT],
        'two of attention': [f'{ATTENTION}, {ATTENTION}'],
    }
    said = '; '.join(f'{words} {span(pairs[pairs["model"].isin(names)])}' for words, names in places.items())
    models = architectures.best_first(pairs)['model']
    each = '; '.join(f'{model} {span(pairs[pairs["model"] == model])}' for model in models)
    alone = pairs[pairs['model'].isin(places['two recurrent blocks']) & pairs['num_learn'].gt(0)]
    only = ', '.join(
        f'{line.model.partition(", ")[0]} {line.num_learn} of {line.num_lanes}' for line in alone.itertuples()
    )
    return f"""
Labels to test error 0.7: {said}. Of the recurrent pairs these learn: {only or 'none'}.

Blocks from first to last: {each}.

{some.lanes()} lanes with a task each, about 20,000 parameters, at most {some.values('max_samples')[0]:,} labels; lanes
and the choice of rates took {rows('hybrids', 'hybrids/selection').time()}.
"""


def span(pairs):
    """'10.8k to 15.9k', '41.6k (2 of 5 lanes learn)' or '(none of 15 lanes learns)'."""
    learnt, num_learn, num_lanes = pairs[pairs['num_learn'] > 0], pairs['num_learn'].sum(), pairs['num_lanes'].sum()
    if learnt.empty:
        return f'(none of {num_lanes} lanes learns)'
    ends = dict.fromkeys(analysis.short_number(value) for value in (learnt['mean'].min(), learnt['mean'].max()))
    return ' to '.join(ends) + ('' if num_learn == num_lanes else f' ({num_learn} of {num_lanes} lanes learn)')


def limits(rows):
    return f"""
Two blocks, one N and one task that attention is made for; hybrids of language models have one attention block among
many, and tasks on which recurrent blocks help are not here.

{architectures.choice(rows('hybrids'))}
"""
