"""Norm and gate at the output of a memory: five mixers with both, with the norm alone and with neither, N = 4.

RetNet, GLA, Gated DeltaNet and KDA normalise what each head reads from its memory and multiply it by a gate; DeltaNet
normalises alone. The protocol of `architectures`: one label a prompt, 20,000 parameters, the rate tuned, ten lanes with
a task each.
"""

import numpy as np

from experiments.exhibits import architectures
from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.cli import base
from qstr_jax.report import lanes

ORDER = 42
IS_SUPPORTING = True
QUESTION = 'What do the norm and the gate at the output of a memory cost?'
MODELS = ('retnet', 'gla', 'deltanet', 'gated_deltanet', 'kda')
OUTPUTS = ('gated', 'normed', 'plain')
TASKS = ('qstr', 'noisy_keys')
FOLDERS = {'output_norm': tuple(f'{task}_4' for task in TASKS)}
FIGURES = {
    'output_norm/figure.png': 'Labels to test error 0.7 at N = 4: norm and gate, norm alone, neither; the best on top'
}


def get_config(part='qstr_4'):
    """One task for five mixers with each of three outputs."""
    base.check_part(part, FOLDERS)
    config = architectures.get_config(part)
    config.models = MODELS
    for model in MODELS:
        config[model].output = OUTPUTS
    return config


def reduced(part='qstr_4'):
    """The same in seconds, for the tests: one mixer with two of the outputs."""
    config = architectures.protocol(part.rpartition('_')[0], 2)
    config.models = ('retnet',)
    config.retnet.depth, config.retnet.output = 1, ('normed', 'plain')
    return architectures.shrink(config)


def draw(workdir, config):
    """One figure, a panel for each task, and a table."""
    rows = architectures.in_one_column(lanes.load(workdir), 'output')
    panels = {architectures.TASKS[task][0]: rows[rows['task'] == task] for task in TASKS if task in set(rows['task'])}
    architectures.draw_ranked(workdir, panels, ['task', 'model', 'output', 'learning_rate'], by='output')


def points(rows, task):
    """Lanes that learn and mean labels, by mixer and output."""
    some = architectures.in_one_column(rows('output_norm', task=task).table, 'output')
    means = analysis.summarize(some, ['model', 'output'])
    return means.set_index(['model', 'output']).unstack()


def text(rows):
    some, said = rows('output_norm'), []
    for task in TASKS:
        found = points(rows, task)
        learn, total = found['num_learn'].sum(), found['num_lanes'].sum()
        counts = ', '.join(f'{learn[output]:.0f} of {total[output]:.0f} ({output})' for output in OUTPUTS)
        said.append(f'{architectures.short(task)}: {counts}{ratio(found)}')
    return f"""
Lanes that learn within {some.values('max_samples')[0]:,} labels: {'; '.join(said)}.
"""


def ratio(found):
    """'; labels plain over gated 0.62', the geometric mean of mixers half of whose lanes learn with either."""
    learns = (found['num_learn'] >= found['num_lanes'] / 2)[['gated', 'plain']].all(axis=1)
    if not learns.any():
        return ''
    both = np.log(found['mean'][learns])
    return f', labels plain over gated {np.exp((both["plain"] - both["gated"]).mean()):.2f} ({learns.sum()} mixers)'


def table(rows):
    lines = []
    for model in MODELS:
        entries = [
            rows('output_norm', task=task, model=model, **{f'{model}_output': output}).mean()
            for task in TASKS
            for output in OUTPUTS
        ]
        lines.append([analysis.display(model), *entries])
    heads = [f'{architectures.short(task)}, {output}' for task in TASKS for output in OUTPUTS]
    return formats.pipes(['labels', *heads], lines)


def limits(rows):
    return f"""
One N, one size, one budget, two blocks; other starts of the weights were not tried. Networks of language models are
deeper and wider, and may need their norms there.

{architectures.choice(rows('output_norm'))}
"""
