"""Convolution or state: the mixers of `architectures` with and without a short convolution before them, on 1STR, N = 4.

Much of what recurrent mixers of language models do may be their convolution over four tokens, so the backbone has it as
a setting of its own. The protocol of `architectures`: one label a prompt, 20,000 parameters, the rate tuned, ten lanes
with a task each.
"""

import numpy as np

from experiments.exhibits import architectures
from qstr_jax import analysis
from qstr_jax.analysis import summary
from qstr_jax.report import lanes

ORDER = 39
IS_SUPPORTING = True
QUESTION = 'How much of a mixer is its short convolution?'
FIGURES = {'short_conv/figure.png': 'Labels to test error 0.7 on 1STR, N = 4, with and without a short convolution'}
WIDTH = 4
MARGIN = 5  # A mixer is named if at least this many lanes differ: another CPU moves up to four (`windows`).


def get_config():
    """All mixers with `short_conv` of 0 and of 4 tokens."""
    config = architectures.get_config('qstr_4')
    for model in config.models:
        config[model].short_conv = (0, WIDTH)
    return config


def reduced():
    """The same in seconds, for the tests: one mixer."""
    config = architectures.protocol('qstr', 2)
    config.models = ('attention',)
    config.attention.depth, config.attention.short_conv = 1, (0, WIDTH)
    return architectures.shrink(config)


def draw(workdir, config):
    """One figure of all mixers, and a table."""
    rows = named(lanes.load(workdir))
    architectures.draw_ranked(
        workdir, {architectures.asked(rows): rows}, ['model', 'short_conv', 'learning_rate'], by='short_conv'
    )


def named(rows):
    """The rows with `short_conv` in one column, whatever the mixer."""
    return architectures.in_one_column(rows, 'short_conv').astype({'short_conv': int})


def at_budget(rows):
    """Labels with the convolution over those without it, of all mixers; failures count as the budget."""
    logs = np.log(rows['samples_to_threshold'].fillna(rows['max_samples']).astype(float))
    means = logs.groupby([rows['model'], rows['short_conv']]).mean().unstack()
    return np.exp(means[WIDTH] - means[0])


def geometric(ratios):
    """'1.11 [0.87, 1.40]': the geometric mean with Student's 95 % interval over mixers."""
    found = summary.geometric(np.sort(ratios))
    return f'{found["mean"]:.2f} [{found["low"]:.2f}, {found["high"]:.2f}]'


def text(rows):
    some = rows('short_conv')
    own = named(some.table)
    means = analysis.summarize(own, ['model', 'short_conv'])
    found = architectures.ratios(means, 'short_conv', WIDTH, 0)
    learn = means.groupby('short_conv')['num_learn'].sum()
    total = means.groupby('short_conv')['num_lanes'].sum()
    gained = means.set_index(['model', 'short_conv'])['num_learn'].unstack()
    more, fewer = (
        ', '.join(analysis.display(model) for model in gained.index[sign * (gained[WIDTH] - gained[0]) >= MARGIN])
        for sign in (1, -1)
    )
    said = ', '.join(f'{analysis.display(model)} {ratio:.1f}' for model, ratio in found.items())
    every, diverged = at_budget(own), some.count(outcome='diverged')
    return f"""
With a convolution {learn[WIDTH]} of {total[WIDTH]} lanes learn, without it {learn[0]} of {total[0]} ({diverged} of
all diverge): at least {MARGIN} more of {more or 'no mixer'}, at least
{MARGIN} fewer of {fewer or 'none'}.
Labels with it over labels without it are {geometric(found)} in the geometric mean of the {len(found)} mixers of
which at least half the lanes learn either way, but {geometric(every)} of all {len(every)} with failures at the budget.

The {len(found)}: {said}.
"""


def limits(rows):
    return f"""
One task, one N and one budget, ten lanes: a ratio near 1 lies within the spread of lanes. A convolution over four
tokens can see all of a prompt of four, so this is where it helps most.

{architectures.choice(rows('short_conv'))}
"""
