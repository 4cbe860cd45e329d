"""How a sweep is run."""

import dataclasses

import jax

from qstr_jax.settings import checks


@dataclasses.dataclass(frozen=True)
class Options:
    """How a sweep is run; nothing here changes what a row would be.

    Attributes:
        progress: whether to show a progress bar on standard error.
        checkpoint_seconds: time between two checkpoints of a running lane batch.
        memory_limit: bytes that a lane batch may use; None measures what the device has.
        shard_index: number of the share of the cells to run, from 0.
        num_shards: number of shares.
        num_devices: number of local devices to use; None uses all.
        refresh: run the cells again whose rows are of another program, since the code has changed. The old rows,
            curves and parameters are kept in the directory's `replaced/`. Without it such cells are an error.

    Raises:
        ValueError: a value is impossible.
    """

    progress: bool = True
    checkpoint_seconds: float = 60.0
    memory_limit: int | None = None
    shard_index: int = 0
    num_shards: int = 1
    num_devices: int | None = None
    refresh: bool = False

    def __post_init__(self) -> None:
        checks.number('checkpoint_seconds', self.checkpoint_seconds, 0)
        if self.memory_limit is not None and (not isinstance(self.memory_limit, int) or self.memory_limit < 1):
            raise ValueError(f'memory_limit={self.memory_limit!r}: must be bytes, at least 1; None measures them')
        checks.integer('num_shards', self.num_shards)
        checks.integer('shard_index', self.shard_index, 0)
        if self.shard_index >= self.num_shards:
            raise ValueError(
                f'shard_index={self.shard_index}, num_shards={self.num_shards}: need 0 ≤ shard_index < num_shards'
            )
        if self.num_devices is not None:
            checks.integer('num_devices', self.num_devices)

    def check_devices(self) -> None:
        """Raises ValueError if there are fewer local devices than `num_devices`."""
        count = jax.local_device_count()
        if self.num_devices is not None and self.num_devices > count:
            raise ValueError(f'num_devices={self.num_devices}: there are {count} here')
