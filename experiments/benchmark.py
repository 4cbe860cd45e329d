r"""Times qstr_jax beside PyTorch's form of the same protocol, in one run, in turn.

make install EXTRA=benchmark
python -m experiments.benchmark [--json=results/benchmark.json] [--models=ffn] [--seq_lens=4] [--sections=steps]

steps: training steps and tests a second, one lane beside one run of PyTorch, both with all cores.
runs: seconds to the threshold of all seeds of a cell, a cold sweep beside PyTorch's runs one after the other.
See experiments/benchmarks/README.md.
"""

import importlib.util
import os
import pathlib
import statistics
import sys
import time

import jax
import pandas as pd
from absl import flags

from experiments.benchmarks import ours
from experiments.benchmarks.ours import MODELS, Protocol
from qstr_jax.analysis import formats
from qstr_jax.cli import command_line, runtime
from qstr_jax.storage import files, provenance

JSON = flags.DEFINE_string('json', None, 'File of the results.')
SECTIONS = flags.DEFINE_multi_enum('sections', ['steps', 'runs'], ['steps', 'runs'], 'What to measure.')
MODELS_FLAG = flags.DEFINE_list('models', list(MODELS), 'Which architectures.')
SEQ_LENS = flags.DEFINE_list('seq_lens', ['4', '8', '12'], 'Which lengths of Figure 1a.')
SEEDS = flags.DEFINE_integer('run_seeds', 5, 'Seeds of a run to the threshold.', lower_bound=1)
MILLISECONDS = flags.DEFINE_integer('milliseconds', 500, 'Of each of three timings.', lower_bound=1)
ROUNDS = 3  # Timings; what is compared is timed in turn.


def protocols():
    """The cells of the flags; ValueError for an unknown architecture or a length that is no number."""
    if unknown := set(MODELS_FLAG.value) - set(MODELS):
        raise ValueError(f'--models={",".join(sorted(unknown))}: unknown, one of {", ".join(MODELS)}')
    if not all(text.isdigit() and int(text) > 1 for text in SEQ_LENS.value):
        raise ValueError(f'--seq_lens={",".join(SEQ_LENS.value)}: give numbers above 1, such as 4,8')
    return [Protocol(model, int(length)) for model in MODELS_FLAG.value for length in SEQ_LENS.value]


def alternate(runs):
    """Times functions of a count in turn, so that a slow spell slows all of them: median seconds of one, by name."""
    counts = {}
    for name, run in runs.items():
        run(1)  # May compile.
        start = time.perf_counter()
        run(10)
        counts[name] = max(10, round(MILLISECONDS.value / 100 / (time.perf_counter() - start)))
    taken = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run(counts[name])
            taken[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(times) for name, times in taken.items()}


def steps(protocol, device):
    """Steps and tests a second, ours and PyTorch's."""
    from experiments.benchmarks import baseline

    cell, training = ours.Cell(protocol), baseline.Training(protocol, device=device)
    record = {}
    for kind, mine, theirs in (('steps', cell.steps, training.steps), ('tests', cell.tests, training.tests)):
        measured = alternate({'ours': mine, 'PyTorch': theirs})
        record |= {f'{kind}/s, {name}': 1 / seconds for name, seconds in measured.items()}
        record[f'times PyTorch, {kind}'] = measured['PyTorch'] / measured['ours']
    return record


def runs(protocol, device):
    """Seconds to the threshold; seeds differ by chance in their samples, so the ratio is given at equal ones too."""
    from experiments.benchmarks import baseline

    num_seeds = SEEDS.value
    samples, reached, seconds, compiling = ours.run(protocol, num_seeds)
    others = [baseline.Training(protocol, seed, device).run() for seed in range(num_seeds)]
    their_samples, their_reached, their_seconds = map(list, zip(*others, strict=True))
    times = sum(their_seconds) / seconds
    return {
        'seeds': num_seeds, 's, ours': seconds, 'compiling': compiling, 's, PyTorch': sum(their_seconds),
        'times PyTorch': times, 'at equal samples': times * sum(samples) / sum(their_samples),
        'samples, ours': statistics.mean(samples), 'samples, PyTorch': statistics.mean(their_samples),
        'reached': f'{sum(reached)}, {sum(their_reached)}',
    }  # fmt: skip


def run() -> None:
    """Measures the sections one after the other; what is done is in the file at once."""
    if flags.FLAGS['run_seeds'].present and 'runs' not in SECTIONS.value:
        raise ValueError('--run_seeds: runs is not among the --sections, leave it out')
    if importlib.util.find_spec('torch') is None:
        raise ValueError('PyTorch is missing, which the benchmark compares with: make install EXTRA=benchmark')
    import torch

    runtime.use_all_cores()
    chosen, path = protocols(), JSON.value and pathlib.Path(JSON.value)
    if path:
        if path.is_dir():
            raise ValueError(f'--json={path}: is a folder; give a file, such as {path}/benchmark.json')
        files.make_folder(path.parent)  # Before any work.
    device = {'gpu': 'cuda'}.get(jax.default_backend(), jax.default_backend())
    found = {'provenance': provenance.start(sys.argv) | {'batches': None}, 'torch': torch.__version__,
             'cores': os.cpu_count(), 'sections': {}}  # fmt: skip
    for name in SECTIONS.value:
        records = found['sections'][name] = []
        for protocol in chosen:
            print(f'{name}: {protocol.model} N={protocol.seq_len}', file=sys.stderr)
            measured = {'steps': steps, 'runs': runs}[name](protocol, device)
            records.append({'model': protocol.model, 'N': protocol.seq_len} | measured)
            if path:
                files.write_json(path, found)
        print(f'### {name}\n\n{formats.markdown(pd.DataFrame(records), digits=3)}', flush=True)


if __name__ == '__main__':
    command_line.launch(run, used=())
