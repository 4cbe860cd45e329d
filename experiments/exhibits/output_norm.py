"""Norm and gate at the output of a memory: eight mixers with both, one of both and neither, N = 4.

RetNet, GLA, Gated DeltaNet, KDA, Mamba-2, mLSTM and RWKV-7 normalise what their heads read from a memory and multiply
it by a gate; DeltaNet normalises alone. The protocol of `architectures`: one label a prompt, 20,000 parameters, the
rate tuned, ten lanes with a task each.
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
MODELS = ('retnet', 'gla', 'deltanet', 'gated_deltanet', 'kda', 'mamba2', 'mlstm', 'rwkv7')
OUTPUTS = {
    'gated': 'norm and gate', 'normed': 'the norm alone', 'unnormed': 'the gate alone', 'plain': 'neither'
}  # fmt: skip
TASKS = ('qstr', 'noisy_keys')
FOLDERS = {'output_norm': tuple(f'{task}_4' for task in TASKS)}
FIGURES = {
    'output_norm/figure.png': 'Labels to test error 0.7 at N = 4: norm and gate, one of both, neither; the best on top'
}


def get_config(part='qstr_4'):
    """One task for eight mixers with each of four outputs."""
    base.check_part(part, FOLDERS)
    config = architectures.get_config(part)
    config.models = MODELS
    for model in MODELS:
        config[model].output = tuple(OUTPUTS)
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
    first, recall = (points(rows, task) for task in TASKS)
    counts = [f'{first["num_learn"].sum()[output]:.0f} with {words}' for output, words in OUTPUTS.items()]
    recalls = [f'{recall["num_learn"].sum()[output]:.0f}' for output in OUTPUTS]
    learns = (first['num_learn'] >= first['num_lanes'] / 2)[['gated', 'plain']].all(axis=1)
    both = np.log(first['mean'][learns])
    return f"""
Of {first['num_lanes'].sum()['gated']:.0f} lanes each, {counts[0]}, {counts[1]} and {counts[2]} learn 1STR within
{rows('output_norm').values('max_samples')[0]:,} labels; with neither they need
{np.exp((both['plain'] - both['gated']).mean()):.2f} of the labels that norm and gate take (geometric mean of the
{learns.sum()} mixers half of whose lanes learn with either). Noisy keys are learnt by {recalls[0]},
{recalls[1]} and {recalls[2]}.
"""


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
One N, one size, one budget, two blocks, one start of the weights. Networks of language models are deeper and
wider, and may need their norms there.

{architectures.choice(rows('output_norm'))}
"""
