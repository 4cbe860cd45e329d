r"""An estimate of what a sweep of all exhibits takes on 1, 8 and 64 TPU v5e, by the compiler's account.

python -m experiments.benchmarks.devices

Nothing was run on a TPU. A lane's operations are those of its training steps, on the mean samples of the committed
online lanes of its cell, or on its whole budget where there are none. A cell's rate is the lower of what the products
of a chip allow (197 TFLOP/s of bfloat16, six of which make one of float32) and what its memory does (819 GB/s times
the operations per byte of the program, by the compiler, of the exhibit's largest N of the same model). Lane batches
go to devices longest first, and the first batch of a cell on a device compiles it. Times of launching, tests and
optimisers are not in it.
"""

import collections
import heapq
import json
import pathlib

import pandas as pd

from experiments import exhibit
from qstr_jax.storage import results
from qstr_jax.sweeps import cost

RESULTS = pathlib.Path('experiments/results')
DEVICE, PEAK, BANDWIDTH = 'v5e', 197e12 / 6, 819e9


def programs():
    """The compiler's account by exhibit and model."""
    entries = json.loads((RESULTS / 'accelerators/accelerators.json').read_text())['programs']
    return {(one['exhibit'], one['model']): one for one in entries if one['device'] == DEVICE and one['flops']}


def batches(known):
    """(cell, seconds of a lane batch, seconds to compile) of all exhibits, and how many cells have no program."""
    rows = results.load_all([RESULTS])
    used = rows[rows['learner'] == 'online'].groupby('cell')['num_samples'].mean()
    found, missing, seen = [], collections.Counter(), set()
    for name in exhibit.every():
        for program in exhibit.programs_of(name, 'tpu'):
            cell = program.cell
            entry = known.get((program.exhibit, cell.model)) or known.get((name, cell.model))
            if cell.id in seen or cost.prediction_flops(cell.problem) == 0:
                continue
            seen.add(cell.id)
            if entry is None:
                missing[cell.model] += 1
                continue
            rate = min(PEAK, entry['flops'] / entry['bytes_accessed'] * BANDWIDTH)
            of_lane = 3 * cost.prediction_flops(cell.problem)
            of_lane *= used.get(cell.id, cell.problem.learner.most_examples())
            lanes = len(cell.lanes)
            for start in range(0, lanes, program.lanes):
                size = min(program.lanes, lanes - start)
                found.append((cell.id, size * of_lane / rate, entry['compile_cpu_seconds']))
    return found, missing


def makespan(work, num_devices):
    """Seconds until the last device is done, with batches handed out longest first."""
    ends = [(0.0, i) for i in range(num_devices)]
    compiled = [set() for _ in range(num_devices)]
    for cell, seconds, compile_seconds in sorted(work, key=lambda one: -one[1]):
        end, i = heapq.heappop(ends)
        end += seconds + (0 if cell in compiled[i] else compile_seconds)
        compiled[i].add(cell)
        heapq.heappush(ends, (end, i))
    return max(ends)[0]


def main():
    work, missing = batches(programs())
    training = sum(seconds for _, seconds, _ in work)
    longest = max(work, key=lambda one: one[1])
    rows = [{'devices': n, 'hours': round(makespan(work, n) / 3600, 2)} for n in (1, 8, 64)]
    print(pd.DataFrame(rows).to_markdown(index=False))
    cells = {cell for cell, *_ in work}
    print(f'{len(cells)} cells, {len(work)} lane batches, {training / 3600:.1f} hours of training')
    print(f'longest batch: {longest[0]}, {longest[1] / 3600:.2f} hours; without a program: {dict(missing)}')


if __name__ == '__main__':
    main()
