"""Results of the benchmark as JSON, as tables and as a picture; tables and picture come from the JSON alone."""

import dataclasses
import os
import pathlib
import platform

import numpy as np
import pandas as pd

from experiments.benchmarks import sections
from qstr_jax import files, plots
from qstr_jax.sweeps import provenance

# Speed of ours over PyTorch's eager form that is aimed at on a CPU, by exhibit and model.
TARGETS = {
    ('1a', 'transformer'): 4.0, ('1a', 'ffn'): 4.0, ('1a', 'rnn'): 2.5,
    ('1b', 'transformer'): 4.0, ('1b', 'ffn'): 4.0, ('1b', 'rnn'): 1.8,
}  # fmt: skip


def start(command, plan):
    """Results with no section yet: what is measured where."""
    import torch

    device = sections.device_name()
    return {
        'command': ' '.join(['python -m experiments.benchmark', *command[1:]]),
        'plan': dataclasses.asdict(plan),
        'provenance': provenance.start(command) | {'batches': None},
        'torch': torch.__version__,
        'torch_threads': torch.get_num_threads(),
        'processor': torch.cuda.get_device_name() if device == 'cuda' else _processor(),
        'cores': os.cpu_count(),
        'sections': {},
    }


def _processor():
    try:
        lines = pathlib.Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:  # not Linux
        return platform.processor()
    return next((line.split(':')[1].strip() for line in lines if line.startswith('model name')), platform.machine())


def frame(results, section):
    """Records of a section with the columns that the table shows."""
    data = pd.DataFrame(results['sections'][section])
    return SHAPES[section](data) if len(data) else data


def _steps(data):
    shown = data[['exhibit', 'model', 'seq_len']].copy()
    shown['steps/s'] = 1 / data['ours_step_seconds']
    shown['PyTorch'] = 1 / data['torch_step_seconds']
    shown['times'] = data['torch_step_seconds'] / data['ours_step_seconds']
    shown['a lane per device'] = data['devices'] / data['all_step_seconds']
    shown['times PyTorch'] = data['torch_step_seconds'] * shown['a lane per device']
    if 'one_thread_step_seconds' in data:
        shown['PyTorch, 1 thread'] = 1 / data['one_thread_step_seconds']
    if 'compiled_step_seconds' in data:
        shown['compiled'] = 1 / data['compiled_step_seconds']
    shown['tests/s'] = 1 / data['ours_test_seconds']
    shown['PyTorch '] = 1 / data['torch_test_seconds']
    shown['times '] = data['torch_test_seconds'] / data['ours_test_seconds']
    if 'compiled_test_seconds' in data:
        shown['compiled '] = 1 / data['compiled_test_seconds']
    if 'ours_product_share' in data:
        shown['share of products'] = data['ours_product_share']
        shown['a lane per device '] = data['all_product_share']
        shown['PyTorch  '] = data['torch_product_share']
        shown['GFLOP/s'] = data['flops'] / data['ours_step_seconds'] / 1e9
    shown['compile s'] = data['compile_seconds']
    shown['peak MiB'] = data['ours_peak_bytes'] / 2**20
    shown['PyTorch   '] = data['torch_peak_bytes'] / 2**20
    return shown


def _runs(data):
    shown = data[['model', 'seq_len', 'seeds']].copy()
    shown['seconds'] = data['ours_seconds']
    shown['PyTorch'] = data['torch_seconds']
    shown['times'] = data['torch_seconds'] / data['ours_seconds']
    # Seeds differ by chance in the samples that they need: the same ratio at equal samples.
    shown['per sample'] = shown['times'] * data['ours_samples'] / data['torch_samples']
    shown['with compiling'] = data['torch_seconds'] / (data['ours_seconds'] + data['ours_compile_seconds'])
    shown['samples'] = data['ours_samples']
    shown['PyTorch '] = data['torch_samples']
    shown['tests of checks'] = data['tests'].astype(str) + ' of ' + data['checks'].astype(str)
    shown['screening saves'] = 1 - data['ours_seconds'] / data['unscreened_seconds']
    shown['missed'] = data['missed_crossings']
    return shown


def _seeds(data):
    shown = data[['model', 'seq_len', 'lanes']].copy()
    shown['step ms'] = 1000 * data['step_seconds']
    one = data.groupby('model')['step_seconds'].transform('first')
    shown['times one'] = data['step_seconds'] / one
    shown['lane-steps/s'] = data['lanes'] / data['step_seconds']
    return shown


def _scaling(data):
    shown = data[['risk', 'seq_len']].copy()
    shown['step s'] = data['step_seconds']
    shown['peak MiB'] = data['peak_bytes'] / 2**20
    shown['program MiB'] = data['program_bytes'] / 2**20
    return shown


def _precision(data):
    shown = data[['model', 'seq_len', 'precision']].copy()
    shown['steps/s'] = 1 / data['step_seconds']
    return shown


SHAPES = {'steps': _steps, 'runs': _runs, 'seeds': _seeds, 'scaling': _scaling, 'precision': _precision}
TITLES = {
    'steps': 'Training steps and tests a second, one seed',
    'runs': 'Seconds to the threshold, all seeds of a cell, without compiling',
    'seeds': 'Lanes side by side',
    'scaling': 'A training step against N: Transformer, batch 64',
    'precision': 'Steps a second at each precision of matrix products',
}


def growth(results):
    """Exponents of seconds and memory against N of section 'scaling', by risk: least squares on logarithms."""
    data = pd.DataFrame(results['sections']['scaling'])
    return {
        (risk, column): float(np.polyfit(np.log(part['seq_len']), np.log(part[column].astype(float)), 1)[0])
        for risk, part in data.groupby('risk', sort=False)
        for column in ('step_seconds', 'peak_bytes', 'program_bytes')
        if part[column].notna().all() and (part[column] > 0).all() and len(part) > 1
    }


def table(results, section):
    """A section as Markdown, with its title."""
    shown = frame(results, section)
    if not len(shown):
        return f'### {TITLES[section]}\n\nnot measured on this device'
    text = f'### {TITLES[section]}\n\n{shown.to_markdown(index=False, floatfmt=".3g")}'
    if section == 'scaling':
        lines = [f'{risk}, {column}: N^{value:.2f}' for (risk, column), value in growth(results).items()]
        text += '\n\n' + '\n'.join(lines)
    return text


def write(results, path):
    """The JSON, all tables as Markdown and the picture, beside each other; each file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, results)
    head = f'`{results["command"]}`, {results["processor"]}, {results["cores"]} cores'
    text = '\n\n'.join([head, *(table(results, section) for section in results['sections'])])
    files.write_text(path.with_suffix('.md'), text + '\n')
    if results['sections'].get('steps'):
        data = pd.DataFrame(results['sections']['steps'])
        notes = ['one lane, medians of rounds; dashes: what is aimed at', head.replace('`', '')]
        plots.save(plots.speed(data, TARGETS, notes=notes), path.with_suffix(''))
