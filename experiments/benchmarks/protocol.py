"""A cell of Figure 1 and how it is trained, for both sides of the benchmark; needs no PyTorch."""

import dataclasses
import math

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
