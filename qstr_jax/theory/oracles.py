"""A plugin: the model 'theorem6_oracle', Theorem 6's best predictor, and the probe 'theorem6_floor'."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax import models, tasks
from qstr_jax.learners import span_of_inputs
from qstr_jax.models import baselines, probes
from qstr_jax.models.initializers import Position
from qstr_jax.tasks import variant


class Theorem6Oracle(nn.Module):
    """ŷ_i = ⟨V^T V (e_{t_i} ⊗ u), x⟩: the best prediction of a linear label from V x by a learner that knows u.

    V is an orthonormal basis of the span of the training prompts. The risk is therefore Theorem 6's floor for this u
    and this training set, `floors.theorem6_given`.

    Attributes:
        seq_len: N.
        token_dim: d.
    """

    seq_len: int
    token_dim: int

    @nn.compact
    def __call__(self, z_NxE: jax.Array, position: Position = None) -> jax.Array:
        """Predictions (N,), or () at a position; arguments as in `models.predict`."""
        size = self.seq_len * self.token_dim
        target_NxV = self.param('target_NxV', nn.initializers.zeros, (self.seq_len, size))
        x_V = z_NxE[:, : self.token_dim].ravel()
        # With positions in place of tokens, what each position retrieves is t itself.
        place_Nx1 = jnp.arange(self.seq_len, dtype=z_NxE.dtype)[:, None]
        labelled = jnp.concatenate([place_Nx1, z_NxE[:, self.token_dim :]], axis=1)
        t_N = baselines.retrieved(labelled, 1, 1)[:, 0].astype(jnp.int32)
        prediction_N = (target_NxV @ x_V)[t_N]
        return prediction_N if position is None else prediction_N[position]

    def closed_form(
        self, z_BxNxE: jax.Array, y_BxN: jax.Array, is_there_BxN: jax.Array, penalty: Any, task_draw: tasks.Draw
    ) -> dict:
        """The projections of all e_t ⊗ u; the labels are not used. See `baselines.LeastSquares.closed_form`."""
        is_there_B = jnp.any(is_there_BxN, axis=1)
        x_BxNxD = z_BxNxE[:, :, : self.token_dim] * is_there_B[:, None, None]
        basis_RxV = span_of_inputs.basis(x_BxNxD.reshape(x_BxNxD.shape[0], -1))
        target_NxV = jnp.kron(jnp.eye(self.seq_len), task_draw.link['u_V'][None, :])
        return {'params': {'target_NxV': (target_NxV @ basis_RxV.T) @ basis_RxV}}


@models.register('theorem6_oracle')
def theorem6_oracle(task: Any) -> nn.Module:
    """Theorem 6's oracle, which knows u and sees x through the training prompts' span; for a linear link with q = 1."""
    is_qstr = isinstance(task, tasks.QSTR) and not isinstance(task, variant.Variant)
    if not is_qstr:
        raise ValueError(f'task={task.name!r}: Theorem 6 is about qstr and simple_qstr')
    if task.link.name != 'linear' or task.sparsity != 1:
        raise ValueError(f"link={task.link.name!r}, sparsity={task.sparsity}: Theorem 6 is about 'linear' with q = 1")
    return Theorem6Oracle(seq_len=task.seq_len, token_dim=task.token_dim)


@probes.register
def theorem6_floor(params: dict, task_draw: tasks.Draw, problem: Any) -> dict[str, jax.Array]:
    """1 − ‖V (I_N ⊗ u)‖_F²/N, the floor for this u and training set; only the oracle's rows have it."""
    if not isinstance(problem.module, Theorem6Oracle):
        return {}
    squares_N = jnp.sum(jnp.square(jax.tree.leaves(params)[0]), axis=1)
    return {'theorem6_floor': 1 - jnp.mean(squares_N)}
