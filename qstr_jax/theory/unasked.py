"""A plugin: 1STR whose prompts ask for the first half of the indices only, and for the second half only."""

import dataclasses

import jax

from qstr_jax import tasks
from qstr_jax.tasks.qstr import uniform_indices


class _Part(tasks.QSTR):
    """qSTR on the random streams of qSTR itself, so that the tokens are the same."""

    @property
    def stream_name(self) -> str:
        """The stream name of qSTR."""
        return f'{tasks.QSTR.name} N={self.seq_len} q={self.sparsity} d={self.token_dim}'


@tasks.register('first_half')
@dataclasses.dataclass(frozen=True)
class FirstHalf(_Part):
    """qSTR with t uniform on the first ⌊N/2⌋ indices."""

    def draw_indices(self, key: jax.Array, unit_RxQ: jax.Array) -> jax.Array:
        """Indices (N, q) below ⌊N/2⌋."""
        return uniform_indices(unit_RxQ, self.seq_len // 2)


@tasks.register('second_half')
@dataclasses.dataclass(frozen=True)
class SecondHalf(_Part):
    """qSTR with t uniform on the other indices."""

    def draw_indices(self, key: jax.Array, unit_RxQ: jax.Array) -> jax.Array:
        """Indices (N, q) from ⌊N/2⌋ on."""
        half = self.seq_len // 2
        return half + uniform_indices(unit_RxQ, self.seq_len - half)
