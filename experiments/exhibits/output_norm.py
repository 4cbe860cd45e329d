"""Norm and gate at the output of a memory: eight mixers with both, with one, and with neither.

RetNet, GLA, Gated DeltaNet, KDA, Mamba-2, mLSTM and RWKV-7 normalise what their heads read from a memory and multiply
it by a gate; DeltaNet only normalises. The protocol of `architectures`: one label a prompt, 20,000 parameters, the rate
tuned, ten lanes with a task each. All four outputs are run at N = 4, but only both and neither at N = 8.
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
# What the outputs are called in the figure.
NAMES = {'gated': 'norm + gate', 'normed': 'norm', 'unnormed': 'gate', 'plain': 'neither'}
TASKS = ('qstr', 'noisy_keys')
# The outputs that are run at each N: at the longer one only both and neither.
AT = {4: tuple(OUTPUTS), 8: ('gated', 'plain')}
FOLDERS = {'output_norm': tuple(f'{task}_{seq_len}' for seq_len in AT for task in TASKS)}
FIGURES = {
    'output_norm/figure.png': 'Labels to test error 0.7: norm and gate, one of them, neither; best with both on top'
}


def get_config(part='qstr_4'):
    """One task and N for eight mixers with each of the outputs."""
    base.check_part(part, FOLDERS)
    task, _, seq_len = part.rpartition('_')
    config = architectures.get_config(f'{task}_4')
    config.seq_lens = (int(seq_len),)
    config.models = MODELS
    for model in MODELS:
        config[model].output = AT[int(seq_len)]
    return config


def reduced(part='qstr_4'):
    """The same in seconds, for the tests: every part is one mixer on 1STR with two of the outputs."""
    base.check_part(part, FOLDERS)
    config = architectures.protocol('qstr', 2)
    config.models = ('retnet',)
    config.retnet.depth, config.retnet.output = 1, ('normed', 'plain')
    return architectures.shrink(config)


def draw(workdir, config):
    """One figure, a panel for each task and N, and a table."""
    rows = architectures.in_one_column(lanes.load(workdir), 'output').replace({'output': NAMES})
    panels = {
        f'{architectures.short(task)}, N = {seq_len}': some
        for seq_len, both in rows.groupby('seq_len')
        for task, some in reversed(list(both.groupby('task')))  # retrieval first
    }
    point, left = ['task', 'seq_len', 'model', 'output', 'learning_rate'], set(AT[min(AT)]).difference(AT[max(AT)])
    notes = (f'not run at N = {max(AT)}: {", ".join(NAMES[output] for output in AT[min(AT)] if output in left)}',)
    architectures.draw_ranked(workdir, panels, point, by='output', notes=notes)


def points(rows, task, seq_len):
    """Lanes that learn and mean labels, by mixer and output."""
    some = architectures.in_one_column(rows('output_norm', task=task, seq_len=seq_len).table, 'output')
    means = analysis.summarize(some, ['model', 'output'])
    return means.set_index(['model', 'output']).unstack()


def text(rows):
    at = {(task, seq_len): points(rows, task, seq_len) for task in TASKS for seq_len in AT}
    learn = {point: table['num_learn'].sum().astype(int) for point, table in at.items()}
    short, long = AT
    first = at['qstr', short]

    def lanes_with(task, *outputs):
        return learn[task, short][list(outputs)].sum()

    norm, no_norm = ('gated', 'normed'), ('unnormed', 'plain')
    gate, no_gate = ('gated', 'unnormed'), ('normed', 'plain')
    half = (first['num_learn'] >= first['num_lanes'] / 2)[['gated', 'plain']].all(axis=1)
    both = np.log(first['mean'][half])
    return f"""
At N = {short}, within {rows('output_norm').values('max_samples')[0]:,} labels, {lanes_with('qstr', *norm)} of
{first['num_lanes'][list(norm)].sum().sum():.0f} lanes learn 1STR with the norm and {lanes_with('qstr', *no_norm)}
without it, {lanes_with('noisy_keys', *norm)} and {lanes_with('noisy_keys', *no_norm)} noisy keys. With and without the
gate {lanes_with('qstr', *gate)} and {lanes_with('qstr', *no_gate)} learn 1STR, {lanes_with('noisy_keys', *gate)} and
{lanes_with('noisy_keys', *no_gate)} noisy keys.

With neither they need {np.exp((both['plain'] - both['gated']).mean()):.2f} of the labels that norm and gate take on
1STR (geometric mean of the {half.sum()} mixers half of whose lanes learn with either).

At N = {long}, within as many labels, {learn['qstr', long]['gated']} of
{at['qstr', long]['num_lanes'].sum()['gated']:.0f} lanes with both and {learn['qstr', long]['plain']} with neither learn
1STR, {learn['noisy_keys', long]['gated']} and {learn['noisy_keys', long]['plain']} noisy keys.
"""


def table(rows):
    short = rows('output_norm', seq_len=min(AT))
    lines = []
    for model in MODELS:
        mine = {output: short.where(model=model, **{f'{model}_output': output}) for output in OUTPUTS}
        entries = [mine[output].where(task=task).mean() for task in TASKS for output in OUTPUTS]
        lines.append([analysis.display(model), *entries])
    heads = [f'{architectures.short(task)}, {words}' for task in TASKS for words in OUTPUTS.values()]
    return formats.pipes([f'labels, N = {min(AT)}', *heads], lines)


def limits(rows):
    return f"""
Two short N, at the longer only both and neither; one size, budget and start of the weights, two blocks. Language models
are deeper and wider, and may need their norms there.

{architectures.choice(rows('output_norm'))}
"""
