"""A cell of Figure 1 for both sides of the benchmark, and ours to time: steps and tests of a lane, and whole sweeps."""

import contextlib
import dataclasses
import functools
import math
import tempfile
import time

import jax
from jax.experimental.compilation_cache import compilation_cache

from qstr_jax import learners, sweeps
from qstr_jax.learners import online
from qstr_jax.learners.lanes import over_lanes
from qstr_jax.storage import provenance, results
from qstr_jax.sweeps import programs

MODELS = ('transformer', 'rnn', 'ffn')


@dataclasses.dataclass(frozen=True)
class Protocol:
    """A cell of Figure 1a and its training as published; rnn_width None is 500 q, ffn_widths None is (N d q, 1000)."""

    model: str
    seq_len: int
    sparsity: int = 1
    token_dim: int = 10
    task: str = 'qstr'
    test_task: str = 'simple_qstr'
    batch_size: int = 64
    check_every: int = 10
    threshold: float = 0.7
    max_samples: int = 1_000_000
    test_samples: int = 5000
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    rnn_width: int | None = None
    mlp_width: int = 100
    ffn_widths: tuple[int, int] | None = None

    @property
    def encoding_dim(self):
        """d_e = ⌊5 ln N⌋."""
        return math.floor(5 * math.log(self.seq_len))

    @property
    def embedding_dim(self):
        """D_e = d + (q + 1) d_e."""
        return self.token_dim + (self.sparsity + 1) * self.encoding_dim


_SHARED = (
    'task', 'test_task', 'sparsity', 'token_dim', 'batch_size', 'check_every', 'threshold', 'max_samples',
    'test_samples',
)  # fmt: skip


def sweep_of(protocol, num_seeds=1):
    """The `sweeps.Sweep` of a protocol."""
    return sweeps.Sweep(
        models=protocol.model,
        seq_lens=protocol.seq_len,
        num_seeds=num_seeds,
        learning_rate=protocol.learning_rate,
        weight_decay=protocol.weight_decay,
        transformer={'mlp_width': protocol.mlp_width},
        rnn={'width': protocol.rnn_width},
        ffn={'widths': protocol.ffn_widths or ()},
        **{name: getattr(protocol, name) for name in _SHARED},
    ).without_unused()


@functools.partial(jax.jit, static_argnames='problem', donate_argnames='state_K')
def _train(state_K, first, count, data_K, lanes_K, problem):
    def train(state, data, lane):
        def step(i, carry):
            return online.train_step(*carry, first + i, data=data, lane=lane, problem=problem)[:2]

        return jax.lax.fori_loop(0, count, step, state)

    with jax.default_matmul_precision('highest'):
        return over_lanes(train)(state_K, data_K, lanes_K)


@functools.partial(jax.jit, static_argnames='problem')
def _test(params_K, data_K, count, problem):
    def test(params, data):
        # Each test is of other parameters than the one before, or XLA would make only one.
        def one(_, carry):
            params, total = carry
            loss, _ = online.evaluate(params, data, problem)
            return jax.tree.map(lambda leaf: leaf + 1e-12 * loss, params), total + loss

        return jax.lax.fori_loop(0, count, one, (params, 0.0))[1]

    with jax.default_matmul_precision('highest'):
        return over_lanes(test)(params_K, data_K)


class Cell:
    """A lane of a protocol whose steps and tests are run by the count."""

    def __init__(self, protocol):
        (cell,) = sweeps.cells_of(sweep_of(protocol))
        self.problem = cell.problem
        self.lanes_K = programs.lane_arrays(cell.lanes, jax.local_devices()[0])
        self.data_K, state_K = learners.init(self.lanes_K, self.problem)
        self.state_K, self.first = (state_K.params, state_K.opt_state), 0

    def steps(self, count):
        """`count` steps."""
        self.state_K = _train(self.state_K, self.first, count, self.data_K, self.lanes_K, self.problem)
        self.first += count
        jax.block_until_ready(self.state_K)

    def tests(self, count):
        """`count` evaluations on the test prompts."""
        jax.block_until_ready(_test(self.state_K[0], self.data_K, count, self.problem))


def run(protocol, num_seeds):
    """A sweep of some seeds to the threshold, cold: samples and whether reached of each, seconds, of compiling."""
    with fresh_cache(), tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        sweeps.run(sweep_of(protocol, num_seeds), folder, sweeps.Options(progress=False))
        seconds = time.perf_counter() - start
        rows = results.load(folder)
        batches = [batch for run in provenance.load(folder) for batch in run['batches']]
    compiling = sum(batch['compile_seconds'] for batch in batches)
    return rows['num_samples'].tolist(), rows['outcome'].eq('reached').tolist(), seconds, compiling


@contextlib.contextmanager
def fresh_cache():
    """An empty cache of programs, as a user's first sweep finds it."""
    before = jax.config.jax_compilation_cache_dir

    def use(folder):
        jax.config.update('jax_compilation_cache_dir', folder)
        compilation_cache.reset_cache()  # or JAX goes on with the folder that it saw first

    with tempfile.TemporaryDirectory() as folder:
        use(folder)
        try:
            yield
        finally:
            use(before)
