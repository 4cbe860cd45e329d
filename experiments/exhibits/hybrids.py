"""Hybrids: one block of attention and one of a recurrent mixer, in each order, beside two of either, on 1STR.

The protocol of `architectures`: one label a prompt, N = 8, 20,000 parameters, the rate tuned, five lanes with a task
each. A reviewer of the paper asked whether one attention layer among recurrent ones is enough.
"""

import pathlib

from experiments.exhibits import architectures
from qstr_jax import analysis, plots
from qstr_jax.analysis import formats
from qstr_jax.report import lanes
from qstr_jax.settings import checks
from qstr_jax.storage import files

ORDER = 38
QUESTION = 'Is one attention block among recurrent ones enough, and does its place matter?'
ATTENTION = 'attention'
RECURRENT = ('mamba2', 'deltanet', 'rg_lru')
FOLDERS = {'hybrids': ('attention', *RECURRENT)}
FIGURES = {'hybrids/figure.png': 'Labels to test error 0.7 on 1STR, N = 8, for each pair of blocks; the best on top'}


def get_config(part='mamba2'):
    """Two blocks of a mixer, and a block of it before and after one of attention; or two blocks of attention."""
    checks.choice('part', part, FOLDERS['hybrids'])
    config = architectures.protocol('qstr', 8)
    config.models = ('backbone',)
    both = ((part, ATTENTION), (ATTENTION, part))
    config.backbone.mixers = ((part, part), *(both if part != ATTENTION else ()))
    config.backbone.num_parameters = 20_000
    return config


def reduced(part='mamba2'):
    """The same in seconds, for the tests: one hybrid."""
    config = get_config(part)
    config.backbone.mixers = (('rg_lru', ATTENTION),)
    config.seq_lens = (2,)
    config.tune.learning_rate = (3e-3, 1e-2)
    config.num_seeds, config.max_samples, config.test_samples = 2, 1024, 100
    return config


def draw(workdir, config):
    """One figure of all pairs, and a table."""
    folder = pathlib.Path(workdir)
    rows = named(lanes.load(folder))
    plots.save(plots.samples_ranked({'1STR': rows}), folder / 'figure')
    shown = ['model', 'learning_rate', 'num_lanes', 'num_learn', 'mean', 'min', 'max', 'lower_bound']
    text = formats.markdown(analysis.summarize(rows, ['model', 'learning_rate'])[shown], digits=3)
    files.write_text(folder / 'table.md', text)
    print(f'{text}figure: {folder / "figure.png"}')


def named(rows):
    """The rows with the blocks as the name of the model: 'mamba2, attention'."""
    return rows.assign(model=rows['backbone_mixers'].str.replace(',', ', '))


def text(rows):
    some = rows('hybrids')
    means = analysis.summarize(named(some.table), ['model'])
    means = means.sort_values(['num_learn', 'mean'], ascending=[False, True])
    said = '; '.join(f'{line.model} {entry(line)}' for line in means.itertuples())
    return f"""
Labels to test error 0.7, blocks from first to last: {said}.

{some.lanes()} lanes with a task each, about 20,000 parameters, at most {some.values('max_samples')[0]:,} labels; lanes
and the choice of rates took {rows('hybrids', 'hybrids/selection').time()}.
"""


def entry(line):
    """'12.3k', '27.4k (3 of 5 learn)' or '(none of 5 learns)'."""
    if not line.num_learn:
        return f'(none of {line.num_lanes} learns)'
    some = '' if line.num_learn == line.num_lanes else f' ({line.num_learn} of {line.num_lanes} learn)'
    return f'{analysis.short_number(line.mean)}{some}'


def limits(rows):
    return """
Two blocks, one N and one task that attention is made for; hybrids of language models have one attention block among
many, and tasks on which recurrent blocks help are not here.
"""
