r"""How many lanes one program should vectorise: lane-steps per second against k, and what k does to a row.

python -m experiments.lanes_per_batch --output=DIR [--models=transformer,rnn,ffn] [--sizes=1,2,4,8] [--seq_len=8]

Writes lanes_per_batch.json and a table. The default of a CPU in `qstr_jax/sweeps/platforms.py` comes from it.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
from absl import flags

from qstr_jax import sweeps
from qstr_jax.cli import command_line, runtime
from qstr_jax.storage import files, provenance
from qstr_jax.sweeps import lane_batches, programs, training

MODELS = flags.DEFINE_list('models', ['transformer', 'rnn', 'ffn'], 'Architectures, at their published sizes.')
SIZES = flags.DEFINE_list('sizes', ['1', '2', '4', '8'], 'Lanes per batch to try.')
SEQ_LEN = flags.DEFINE_integer('seq_len', 8, 'N.', lower_bound=2)
# How many rounds are timed, interleaved over sizes, for the median; and about how long one timed call takes.
ROUNDS, SECONDS = 3, 2.0


def timed_call(compiled: Any, lanes_K: Any, data_K: Any, state_K: Any, num_checks: int) -> tuple[Any, float]:
    """Advances a batch; returns its state and the seconds that it took."""
    start = time.perf_counter()
    state_K = compiled.advance(state_K, data_K, lanes_K, jax.device_put(np.int32(num_checks), compiled.device))
    jax.block_until_ready(state_K)
    return state_K, time.perf_counter() - start


def measure(model: str, sizes: Sequence[int]) -> dict[int, float]:
    """Lane-steps per second of one architecture by lanes per batch, the median over the rounds."""
    # A threshold that nothing reaches: every lane runs all the time, and only the screen's subset is tested.
    sweep = sweeps.Sweep(models=model, seq_lens=SEQ_LEN.value, threshold=1e-9, num_seeds=max(sizes))
    (cell,) = sweeps.cells_of(sweep)
    problem = cell.problem
    device = jax.local_devices()[0]
    running, checks = {}, {}
    for size in sizes:
        compiled = programs.compile_programs(problem, size, device)
        lanes_K, data_K, state_K = training.start(compiled, cell.lanes[:size])
        state_K, _ = timed_call(compiled, lanes_K, data_K, state_K, 1)
        state_K, seconds = timed_call(compiled, lanes_K, data_K, state_K, 1)
        checks[size] = max(1, round(SECONDS / seconds))
        running[size] = compiled, lanes_K, data_K, state_K
    rates = {size: [] for size in sizes}
    for _ in range(ROUNDS):
        for size, (*compiled, state_K) in running.items():
            state_K, seconds = timed_call(*compiled, state_K, checks[size])
            running[size] = *compiled, state_K
            rates[size].append(size * checks[size] * problem.learner.check_every / seconds)
    return {size: statistics.median(values) for size, values in rates.items()}


def run() -> None:
    """Measures, prints and writes the table."""
    if not SIZES.value or not all(size.isdecimal() and int(size) for size in SIZES.value):
        raise ValueError(f'sizes={",".join(SIZES.value)}: must be integers, at least 1')
    if not MODELS.value:
        raise ValueError('models=: give at least one')
    for model in MODELS.value:
        sweeps.Sweep(models=model)  # unknown names are refused before any work
    runtime.start()
    folder = files.make_folder(runtime.output('results/lanes_per_batch'))  # before any work
    sizes = [int(size) for size in SIZES.value]
    rates = {model: measure(model, sizes) for model in MODELS.value}
    table = pd.DataFrame(rates).T.rename_axis('model').rename(columns=lambda size: f'k = {size}')
    print(table.round(1).to_string())
    report = {
        'device': provenance.describe_device(),
        'jax': jax.__version__,
        'seq_len': SEQ_LEN.value,
        'lane_steps_per_second': rates,
        'default': {
            model: lane_batches.default_size(
                sweeps.cells_of(sweeps.Sweep(models=model))[0].problem.module,
                max(sizes), jax.default_backend(),
            )
            for model in MODELS.value
        },
    }  # fmt: skip
    files.write_json(folder / 'lanes_per_batch.json', report)


if __name__ == '__main__':
    command_line.launch(run, used=('output', 'compilation_cache'))
