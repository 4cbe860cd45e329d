"""The sections of the benchmark: each measures one thing for all its cells and returns flat records."""

import operator
import time

import jax
import numpy as np

from experiments.benchmarks import ours, products, rounding, timing
from experiments.benchmarks.protocol import Protocol
from qstr_jax.sweeps import programs

# Steps that a timed call makes at least: as many as a sweep makes between two tests.
WINDOW = 10


def _cell(protocol, exhibit=None):
    names = {'model': protocol.model, 'seq_len': protocol.seq_len}
    return names if exhibit is None else {'exhibit': exhibit, **names}


def _spread(prefix, measured):
    return {
        f'{prefix}_seconds': measured.median, f'{prefix}_low': measured.low, f'{prefix}_high': measured.high
    }  # fmt: skip


def _torch_steps(training, device):
    def steps(count):
        for _ in range(count):
            training.step()
        if device == 'cuda':
            import torch

            torch.cuda.synchronize()

    return steps


def _on_one_thread(run):
    """What one of several PyTorch processes would do, each with a core of its own."""
    import torch

    def alone(count):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        run(count)
        torch.set_num_threads(threads)

    return alone


def _torch_tests(training):
    def tests(count):
        for _ in range(count):
            training.test()

    return tests


def device_name():
    """'cpu' or 'cuda', as PyTorch calls it."""
    return {'gpu': 'cuda'}.get(jax.default_backend(), jax.default_backend())


def steps(plan, device, say):
    """Seconds of a step and of a test, ours and PyTorch's; compile time, memory, share of the products' rate.

    'ours' is one lane by itself; 'all' a lane on every device at once, seconds until all of them have made a step.
    """
    from experiments.benchmarks import baseline

    records = []
    for exhibit, protocol in plan.protocols():
        say(f'steps: {protocol.model} N={protocol.seq_len}')
        compiled = programs.compile_programs(ours.problem(protocol), 1, jax.local_devices()[0])
        our_cell = ours.Cell(protocol)
        trainings = {'torch': baseline.Training(protocol, device=device)}
        if exhibit == '1a' and protocol.seq_len in plan.compiled:
            trainings['compiled'] = baseline.Training(protocol, device=device, compiled=True)
        runs = {'ours': our_cell.steps, 'all': ours.Cells(protocol).steps}
        runs |= {name: _torch_steps(t, device) for name, t in trainings.items()}
        if device == 'cpu':
            runs['one_thread'] = _on_one_thread(runs['torch'])
        tests = {'ours': our_cell.tests} | {name: _torch_tests(t) for name, t in trainings.items()}
        record = _cell(protocol, exhibit) | {'compile_seconds': compiled.compile_seconds}
        for name, measured in timing.alternate(runs, plan.rounds, plan.seconds, WINDOW).items():
            record |= _spread(f'{name}_step', measured)
        record['devices'] = jax.local_device_count()
        for name, measured in timing.alternate(tests, plan.rounds, plan.seconds).items():
            record |= _spread(f'{name}_test', measured)
        record['ours_peak_bytes'] = timing.peak_bytes(lambda cell=our_cell: (cell.steps(3), cell.tests(1)))
        record['torch_peak_bytes'] = timing.peak_bytes(lambda run=runs['torch'], test=tests['torch']: (run(3), test(1)))
        record['program_bytes'] = compiled.memory_bytes
        record['flops'] = products.flops(protocol)
        if plan.products:
            record['product_seconds'] = products.least_seconds(protocol, device)
            record['ours_product_share'] = record['product_seconds'] / record['ours_step_seconds']
            record['all_product_share'] = record['product_seconds'] * record['devices'] / record['all_step_seconds']
            record['torch_product_share'] = record['product_seconds'] / record['torch_step_seconds']
        records.append(record)
    return records


def runs(plan, device, say):
    """Seconds to the threshold of whole cells, `run_seeds` seeds each: ours as sweeps run them, PyTorch one by one.

    Short runs are repeated in turn, since half a second says little; without screening only those that are not long.
    """
    from experiments.benchmarks import baseline

    records = []
    for protocol in plan.runs():
        say(f'runs: {protocol.model} N={protocol.seq_len}, {plan.run_seeds} seeds')
        ours_run, taken = ours.Run(protocol, plan.run_seeds), {'ours': [], 'torch': []}
        unscreened_run = unscreened = None
        for _ in range(plan.run_rounds):
            mine = ours_run()
            results = [baseline.Training(protocol, seed, device).run() for seed in range(plan.run_seeds)]
            samples, reached, seconds = zip(*results, strict=True)
            taken['ours'].append(mine['seconds'])
            taken['torch'].append(sum(seconds))
            if mine['seconds'] < plan.run_seconds:
                unscreened_run = unscreened_run or ours.Run(protocol, plan.run_seeds, screen=False)
                unscreened = unscreened_run()
                taken.setdefault('unscreened', []).append(unscreened['seconds'])
            if sum(map(sum, taken.values())) > plan.run_seconds:
                break
        record = _cell(protocol) | {
            'seeds': plan.run_seeds,
            'rounds': len(taken['ours']),
            'ours_compile_seconds': ours_run.compile_seconds,
            'ours_samples': float(np.mean(mine['samples'])),
            'ours_reached': sum(mine['reached']),
            'lanes_per_batch': ours_run.lanes_per_batch,
            'torch_samples': float(np.mean(samples)),
            'torch_reached': sum(reached),
            'checks': sum(mine['samples']) // (protocol.check_every * protocol.batch_size),
            'tests': sum(mine['tests']),
            'missed_crossings': unscreened and sum(map(operator.ne, mine['samples'], unscreened['samples'])),
        }
        for name, times in taken.items():
            record |= _spread(name, timing.of(times))
        records.append(record)
    return records


def seeds(plan, device, say):
    """Seconds of a step of k lanes side by side against k times one."""
    del device
    records = []
    for model in plan.models:
        # A CPU's memory and time end before 64 lanes of a GRU do.
        most = 8 if model == 'rnn' and jax.default_backend() == 'cpu' else max(plan.seeds)
        protocol = Protocol(model, plan.seeds_seq_len)
        for num_lanes in (k for k in plan.seeds if k <= most):
            say(f'seeds: {model} N={protocol.seq_len}, {num_lanes} lanes')
            cell = ours.Cell(protocol, num_lanes)
            (measured,) = timing.alternate({'ours': cell.steps}, plan.rounds, plan.seconds, WINDOW).values()
            records.append(_cell(protocol) | {'lanes': num_lanes} | _spread('step', measured))
    return records


def scaling(plan, device, say):
    """Seconds and memory of a Transformer's training step against N: point-wise risk, and all positions."""
    del device
    records = []
    for risk in 'pointwise', 'averaged':
        for seq_len in plan.scaling:
            say(f'scaling: {risk} N={seq_len}')
            protocol = Protocol('transformer', seq_len, task='simple_qstr', test_samples=64)
            cell = ours.Cell(protocol, risk=risk)
            start = time.perf_counter()
            cell.steps(1)
            first = time.perf_counter() - start
            peak = timing.peak_bytes(lambda cell=cell: cell.steps(1))
            rounds = plan.rounds if first < 10 else 1
            times = [timing.seconds_of(cell.steps, 1) for _ in range(rounds)]
            records.append(
                {'risk': risk, 'seq_len': seq_len, 'step_seconds': float(np.median(times)), 'peak_bytes': peak,
                 'program_bytes': cell.step_bytes()}
            )  # fmt: skip
    return records


def precision(plan, device, say):
    """What narrower matrix products save of a step, and whether they move the samples to the threshold.

    On a GPU in JAX's own precisions. A CPU has float32 alone: there the narrower ones are emulated, which says nothing
    about seconds. The same lanes in compiled of their own tell how far samples move by the order of sums alone.
    """
    names = ('highest', 'high', 'default', 'bfloat16') if device == 'cuda' else ('highest', *rounding.MANTISSA_BITS)
    records = []
    for protocol in plan.precisions():
        say(f'precision: {protocol.model} N={protocol.seq_len}, {plan.precision_seeds} seeds')
        times = {}
        if device == 'cuda':
            cells = {name: ours.Cell(protocol, precision=name) for name in names}
            times = timing.alternate({name: cell.steps for name, cell in cells.items()}, plan.rounds, plan.seconds)
        alone = [ours.Cell(protocol, first_seed=seed).samples_to_threshold() for seed in range(plan.precision_seeds)]
        samples = {'highest, other sums': np.concatenate(alone)}
        for name in names:
            samples[name] = ours.Cell(protocol, plan.precision_seeds, name).samples_to_threshold()
        records += [
            _cell(protocol)
            | {'precision': name, 'samples': [None if np.isnan(n) else int(n) for n in samples[name]]}
            | (_spread('step', times[name]) if name in times else {})
            for name in (*names, 'highest, other sums')
        ]
    return records


SECTIONS = {'steps': steps, 'runs': runs, 'seeds': seeds, 'scaling': scaling, 'precision': precision}
