"""How a sweep is run."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Options:
    """How a sweep is run; nothing here changes a row.

    Attributes:
        progress: whether to show a progress bar on standard error.
        checkpoint_seconds: time between two checkpoints of a running lane batch.
        memory_limit: bytes that a lane batch may use; None measures what the device has.
        shard_index: number of the share of the cells to run, from 0.
        num_shards: number of shares.
        num_devices: number of local devices to use; None uses all.
    """

    progress: bool = True
    checkpoint_seconds: float = 60.0
    memory_limit: int | None = None
    shard_index: int = 0
    num_shards: int = 1
    num_devices: int | None = None
