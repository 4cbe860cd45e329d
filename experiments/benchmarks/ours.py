"""A cell of `qstr_jax` as pieces to time: steps alone, tests alone, whole runs."""

import concurrent.futures
import functools
import itertools
import queue
import time

import jax
import numpy as np

from experiments.benchmarks import rounding, timing
from qstr_jax import learners, sweeps
from qstr_jax.learners import online_lane
from qstr_jax.learners.lanes import over_lanes
from qstr_jax.sweeps import lanes_per_batch, programs, training


def problem(protocol, **settings):
    """Our `Problem` of a `protocol.Protocol`; `settings` change more of `sweeps.Sweep`."""
    shared = {
        name: getattr(protocol, name)
        for name in (
            'task', 'test_task', 'sparsity', 'token_dim', 'batch_size', 'check_every', 'threshold', 'max_samples',
            'test_samples',
        )
    }  # fmt: skip
    sweep = sweeps.Sweep(
        models=protocol.model,
        seq_lens=protocol.seq_len,
        transformer={'mlp_width': protocol.mlp_width},
        rnn={'width': protocol.rnn_width},
        ffn={'widths': protocol.ffn_widths or ()},
        **shared | settings,
    )
    return sweeps.cells_of(sweep)[0].problem


def lanes(protocol, learner, num_lanes, first_seed=0):
    """Lanes that differ in their seed and share a task, as published."""
    rates = {'learning_rate': protocol.learning_rate, 'weight_decay': protocol.weight_decay}
    seeds = range(first_seed, first_seed + num_lanes)
    return [learners.lane(learner, seed=seed, task_seed=0, **rates) for seed in seeds]


@functools.partial(jax.jit, static_argnames=('problem', 'precision'), donate_argnames=('params_K', 'opt_state_K'))
def _train(params_K, opt_state_K, first, count, data_K, lanes_K, problem, precision):
    def train(params, opt_state, data, lane):
        def step(i, carry):
            return online_lane.train_step(*carry, first + i, data=data, lane=lane, problem=problem)[:2]

        return jax.lax.fori_loop(0, count, step, (params, opt_state))

    is_emulated = precision in rounding.MANTISSA_BITS
    steps = rounding.rounded(over_lanes(train), precision) if is_emulated else over_lanes(train)
    with jax.default_matmul_precision('highest' if is_emulated else precision):
        return steps(params_K, opt_state_K, data_K, lanes_K)


@functools.partial(jax.jit, static_argnames='problem')
def _test(params_K, data_K, count, problem):
    def test(params, data):
        # Each test is of other parameters than the one before, or XLA would make only one.
        def one(_, carry):
            params, total = carry
            loss, _ = online_lane.evaluate(params, data, problem)
            return jax.tree.map(lambda leaf: leaf + 1e-12 * loss, params), total + loss

        return jax.lax.fori_loop(0, count, one, (params, 0.0))[1]

    with jax.default_matmul_precision('highest'):
        return over_lanes(test)(params_K, data_K)


class Cell:
    """A lane batch whose steps and tests are run by the count.

    Args:
        protocol: `protocol.Protocol`.
        num_lanes: lanes side by side.
        precision: of the matrix products of steps, as JAX calls it or one that `rounding` emulates.
        device: the first one by default.
        first_seed: of the lanes, which have one each.
        settings: see `problem`.
    """

    def __init__(self, protocol, num_lanes=1, precision='highest', device=None, first_seed=0, **settings):
        self.precision = precision
        self.problem = problem(protocol, **settings)
        device = device or jax.local_devices()[0]
        self.lanes_K = programs.lane_arrays(lanes(protocol, self.problem.learner, num_lanes, first_seed), device)
        self.data_K, state_K = learners.init(self.lanes_K, self.problem)
        self.params_K, self.opt_state_K = state_K.params, state_K.opt_state
        self.first = 0

    def steps(self, count):
        """`count` steps of every lane."""
        self.params_K, self.opt_state_K = _train(*self._arguments(count))
        self.first += count
        jax.block_until_ready(self.params_K)

    def step_bytes(self):
        """Memory of the program of steps, by the compiler's account."""
        return programs.program_bytes(self._program())

    def step_flops(self):
        """Floating-point operations of a step, by the compiler's account, which counts a loop's body once."""
        return self._program().cost_analysis()['flops']

    def _program(self):
        return _train.lower(*self._arguments(1)).compile()

    def _arguments(self, count):
        state = self.params_K, self.opt_state_K, self.first, count
        return *state, self.data_K, self.lanes_K, self.problem, self.precision

    def tests(self, count):
        """`count` evaluations of every lane on its test prompts."""
        jax.block_until_ready(_test(self.params_K, self.data_K, count, self.problem))

    def samples_to_threshold(self):
        """Trains on until every lane's test loss was below the threshold; samples of each, NaN where it never was.

        Every test is made, in full float32 whatever the precision of the steps.
        """
        learner = self.problem.learner
        samples_K = np.full(len(self.lanes_K.seed), np.nan)
        while np.isnan(samples_K).any() and self.first < learner.max_checks * learner.check_every:
            self.steps(learner.check_every)
            losses_K = np.asarray(_test(self.params_K, self.data_K, 1, self.problem))
            is_new_K = np.isnan(samples_K) & (losses_K < learner.threshold)
            samples_K[is_new_K] = self.first * learner.batch_size
        return samples_K


class Cells:
    """A lane on every device, as a sweep has it: steps run side by side."""

    def __init__(self, protocol):
        self.cells = [Cell(protocol, device=device) for device in jax.local_devices()]

    def steps(self, count):
        """`count` steps of every lane."""
        with concurrent.futures.ThreadPoolExecutor(len(self.cells)) as pool:
            list(pool.map(lambda cell: cell.steps(count), self.cells))


class Run:
    """Training of lanes to the threshold, in batches on all devices as the sweeps do; compiled when it is made.

    Args:
        protocol: `protocol.Protocol`.
        num_lanes: seeds.
        settings: see `problem`.
    """

    def __init__(self, protocol, num_lanes, **settings):
        self.problem = problem(protocol, **settings)
        self.lanes_per_batch = lanes_per_batch.default_size(self.problem.module, num_lanes, jax.default_backend())
        self._lanes = lanes(protocol, self.problem.learner, num_lanes)
        devices = jax.local_devices()[: -(-num_lanes // self.lanes_per_batch)]
        with timing.fresh_cache(), concurrent.futures.ThreadPoolExecutor(len(devices)) as pool:
            start = time.perf_counter()
            self._programs = list(pool.map(self._compile, devices))
            self.compile_seconds = time.perf_counter() - start

    def _compile(self, device):
        return programs.compile_programs(self.problem, self.lanes_per_batch, device)

    def __call__(self):
        """Trains all lanes from the beginning; a dict with samples and tests of each, whether it reached, seconds."""
        parts = queue.SimpleQueue()
        for first in range(0, len(self._lanes), self.lanes_per_batch):
            parts.put(self._lanes[first : first + self.lanes_per_batch])
        start = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(len(self._programs)) as pool:
            shares = list(pool.map(lambda own: _train_parts(own, self.problem, parts), self._programs))
        seconds = time.perf_counter() - start
        reports = sorted(itertools.chain(*shares), key=lambda report: report['seed'])
        return {
            'samples': [int(report['num_samples']) for report in reports],
            'reached': [report['outcome'] == 'reached' for report in reports],
            'tests': [int(report['num_evaluations']) for report in reports],
            'seconds': seconds,
        }


def _train_parts(programs, problem, parts):
    """One device's share: takes batches until none is left; a report per lane with its seed."""
    reports = []
    while True:
        try:
            part = parts.get_nowait()
        except queue.Empty:
            return reports
        _, state_K = training.train(programs, problem, part)
        report = problem.learner.report(state_K, problem)
        reports += [
            {'seed': lane.seed} | {name: values[k] for name, values in report.items()} for k, lane in enumerate(part)
        ]
