"""Results of the benchmark as JSON, as tables and as a picture; tables and picture come from the JSON alone."""

import dataclasses
import os
import pathlib
import platform

import numpy as np
import pandas as pd

from experiments.benchmarks import sections
from qstr_jax import plots
from qstr_jax.storage import files, provenance

# Columns of section 'steps': who was timed → what the table calls it.
RIVALS = {
    'ours': 'one lane', 'all': 'a lane per device', 'torch': 'PyTorch', 'one_thread': 'PyTorch on one thread',
    'compiled': 'torch.compile',
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
    data = pd.DataFrame(results['sections'][DERIVED.get(section, section)])
    return SHAPES[section](data) if len(data) else data


def _steps(data):
    shown = data[['exhibit', 'model', 'seq_len']].copy()
    for kind in 'step', 'test':
        for who, name in RIVALS.items():
            if (column := f'{who}_{kind}_seconds') in data:
                lanes = data['devices'] if who == 'all' else 1
                shown[f'{kind}s/s, {name}'] = lanes / data[column]
    for who in 'ours', 'all', 'torch':
        if (column := f'{who}_product_share') in data:
            shown[f'share of products, {RIVALS[who]}'] = data[column]
    shown['GFLOP/s, one lane'] = data['flops'] / data['ours_step_seconds'] / 1e9
    shown['compile s'] = data['compile_seconds']
    for who in 'ours', 'torch':
        shown[f'peak MiB, {RIVALS[who]}'] = data[f'{who}_peak_bytes'] / 2**20
    shown['program MiB'] = data['program_bytes'] / 2**20
    return shown


def _speed(data):
    """Times PyTorch's eager form with all cores."""
    shown = data[['exhibit', 'model', 'seq_len']].copy()
    shown['steps, one lane'] = data['torch_step_seconds'] / data['ours_step_seconds']
    shown['steps, a lane per device'] = data['torch_step_seconds'] * data['devices'] / data['all_step_seconds']
    shown['tests, one lane'] = data['torch_test_seconds'] / data['ours_test_seconds']
    return shown


def _runs(data):
    shown = data[['model', 'seq_len', 'seeds', *(['rounds'] if 'rounds' in data else [])]].copy()
    shown['s, ours'] = data['ours_seconds']
    shown['s, PyTorch'] = data['torch_seconds']
    shown['times PyTorch'] = data['torch_seconds'] / data['ours_seconds']
    # Seeds differ by chance in the samples that they need: the same ratio at equal samples.
    shown['at equal samples'] = shown['times PyTorch'] * data['ours_samples'] / data['torch_samples']
    shown['with compiling'] = data['torch_seconds'] / (data['ours_seconds'] + data['ours_compile_seconds'])
    shown['samples, ours'] = data['ours_samples']
    shown['samples, PyTorch'] = data['torch_samples']
    shown['tests of checks'] = data['tests'].astype(str) + ' of ' + data['checks'].astype(str)
    if 'unscreened_seconds' in data:
        shown['share that screening saves'] = 1 - data['ours_seconds'] / data['unscreened_seconds']
        shown['crossings missed'] = data['missed_crossings']
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
    if 'step_seconds' in data:
        shown['steps/s'] = 1 / data['step_seconds']
    samples = data['samples'].map(lambda values: np.array(values, float))
    shown['seeds'] = samples.map(len)
    shown['mean samples'] = samples.map(np.mean)
    # 'highest' is the first of each cell.
    ratios = samples / samples.groupby([data['model'], data['seq_len']]).transform('first')
    shown['times highest, same seeds'] = ratios.map(np.mean)
    shown['lowest'], shown['largest'] = ratios.map(np.min), ratios.map(np.max)
    return shown


SHAPES = {
    'steps': _steps,
    'speed': _speed,
    'runs': _runs,
    'seeds': _seeds,
    'scaling': _scaling,
    'precision': _precision,
}
# Tables that are made of another section's records.
DERIVED = {'speed': 'steps'}
TITLES = {
    'steps': 'Training steps and tests a second',
    'speed': 'Times as many a second as PyTorch, eager, with all cores',
    'runs': 'Seconds to the threshold, all seeds of a cell, without compiling',
    'seeds': 'Lanes side by side',
    'scaling': 'A training step against N: Transformer, batch 64',
    'precision': 'Matrix products of other precisions: steps a second, samples to the threshold',
}


def growth(results):
    """Exponents of seconds and memory against N of section 'scaling', by risk: least squares on logarithms.

    Resident memory is left out where an allocator hid most of it at some N.
    """
    data = pd.DataFrame(results['sections']['scaling'])
    exponents = {}
    for risk, part in data.groupby('risk', sort=False):
        is_seen = part['peak_bytes'].notna().all() and (part['peak_bytes'] > part['program_bytes'] / 2).all()
        columns = ['step_seconds', *(['peak_bytes'] if is_seen else []), 'program_bytes']
        if len(part) > 1:
            exponents |= {
                (risk, column): float(np.polyfit(np.log(part['seq_len']), np.log(part[column].astype(float)), 1)[0])
                for column in columns
                if (part[column] > 0).all()
            }
    return exponents


def total(results):
    """Seconds of all runs together, ours with compiling, and how many times PyTorch's that is."""
    data = pd.DataFrame(results['sections']['runs'])
    ours, compiling, torch = (data[f'{name}_seconds'].sum() for name in ('ours', 'ours_compile', 'torch'))
    return (
        f'all {len(data)} cells: ours {ours:.0f} s and {compiling:.0f} s to compile, PyTorch {torch:.0f} s, '
        f'{torch / (ours + compiling):.2f} times'
    )


def tables(results, section):
    """A section as Markdown, and what is made of it."""
    made = [name for name, source in DERIVED.items() if source == section]
    return '\n\n'.join(table(results, name) for name in [section, *made])


def table(results, section):
    """A table as Markdown, with its title."""
    shown = frame(results, section)
    if not len(shown):
        return f'### {TITLES[section]}\n\nnot measured'
    shown = shown.astype(object).where(shown.notna(), None)  # tabulate writes nan otherwise
    text = f'### {TITLES[section]}\n\n{shown.to_markdown(index=False, floatfmt=".3g", missingval="–")}'
    if section == 'scaling':
        lines = [f'{risk}, {column}: N^{value:.2f}' for (risk, column), value in growth(results).items()]
        text += '\n\n' + '\n'.join(lines)
    if section == 'runs':
        text += '\n\n' + total(results)
    return text


def write(results, path):
    """The JSON, all tables as Markdown and the picture, beside each other; each file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, results)
    head = f'`{results["command"]}`, {results["processor"]}, {results["cores"]} cores'
    text = '\n\n'.join([head, *(tables(results, section) for section in results['sections'])])
    files.write_text(path.with_suffix('.md'), text + '\n')
    if results['sections'].get('steps'):
        data = pd.DataFrame(results['sections']['steps'])
        notes = ['medians of rounds; bars of error: from the slowest over the fastest round to the opposite',
                 head.replace('`', '')]  # fmt: skip
        plots.save(plots.speed(data, notes=notes), path.with_suffix(''))
