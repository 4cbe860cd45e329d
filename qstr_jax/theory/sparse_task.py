"""What the theory needs of a task: the sizes of q-sparse token regression, with all defaults filled in."""

from typing import Any, Protocol

import jax

from qstr_jax import tasks
from qstr_jax.tasks import links


class SparseTask(tasks.Task, Protocol):
    """q-sparse token regression, as `tasks.build('qstr', ...)` or `tasks.build('simple_qstr', ...)` returns it.

    Attributes:
        sparsity: q.
        token_dim: d.
        encoding_dim: d_e.
        max_coherence: largest |⟨ω_i, ω_j⟩| that was accepted.
        link: g.
        scale: s, the factor of the encodings.
        num_gaussian: number of leading tokens that are not zero.
    """

    sparsity: int
    token_dim: int
    encoding_dim: int
    max_coherence: float
    link: links.Link

    def __hash__(self) -> int: ...
    @property
    def scale(self) -> float: ...
    @property
    def num_gaussian(self) -> int: ...
    def labels(self, x_NxD: jax.Array, t_NxQ: jax.Array, link_params: Any) -> jax.Array: ...
