"""What the proofs speak about, measured on trained or constructed weights."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from qstr_jax import models, tasks
from qstr_jax.models import probes
from qstr_jax.theory import floors


class Alignment(NamedTuple):
    """How much each head looks like Lemma 11's construction, heads matched to indices.

    Attributes:
        share_HxQ: share of ‖W_QK^(h)‖_F² in the block (query's ω_{t_l}, key's ω_j).
        cosine_HxQ: cosine between that block and the identity, tr B/(√d_e ‖B‖_F).
        index_H: the index l that head h is matched to, −1 for heads that are left over.
        share, cosine: means over the matched heads.
    """

    share_HxQ: jax.Array
    cosine_HxQ: jax.Array
    index_H: np.ndarray
    share: float
    cosine: float


def match_heads(gain_HxQ):
    """One-to-one match of heads to indices with the largest total gain: index per head, −1 if left over."""
    gain_HxQ = np.asarray(gain_HxQ)
    index_H = np.full(len(gain_HxQ), -1)
    heads, indices = linear_sum_assignment(gain_HxQ, maximize=True)
    index_H[heads] = indices
    return index_H


def _matched_mean(values_HxQ, index_H):
    heads = np.flatnonzero(index_H >= 0)
    return float(np.mean(np.asarray(values_HxQ)[heads, index_H[heads]]))


def alignment(params, task):
    """`Alignment` of a Transformer's W_QK = W_Q^T W_K with (A.2), either form of attention.

    Args:
        params: of `models.Transformer`, one lane.
        task: `tasks.Task`.

    Returns:
        `Alignment`; a matrix of zeros has share and cosine 0.
    """
    d, d_e, q = task.token_dim, task.encoding_dim, task.sparsity
    qk_HxExE = probes.query_key_HxExE(params)
    rows_HxQxExE = qk_HxExE[:, d + d_e :, d : d + d_e].reshape(-1, q, d_e, d_e)
    energy_HxQ = jnp.sum(rows_HxQxExE**2, axis=(2, 3))
    total_H = jnp.sum(qk_HxExE**2, axis=(1, 2))
    tiny = jnp.finfo(energy_HxQ.dtype).tiny
    share_HxQ = energy_HxQ / jnp.maximum(total_H, tiny)[:, None]
    trace_HxQ = jnp.trace(rows_HxQxExE, axis1=2, axis2=3)
    cosine_HxQ = trace_HxQ / jnp.sqrt(jnp.maximum(d_e * energy_HxQ, tiny))
    index_H = match_heads(share_HxQ)
    return Alignment(
        share_HxQ, cosine_HxQ, index_H, _matched_mean(share_HxQ, index_H), _matched_mean(cosine_HxQ, index_H)
    )


def retrieval_weights(module, params, prompt, task, task_draw):
    """Attention weight that head h at position i gives to token t_il of one prompt: (H, N, q)."""
    z_NxE = tasks.encode(prompt, task, task_draw)
    _, sown = module.apply(params, z_NxE, mutable='intermediates')
    weights_HxNxN = sown['intermediates']['attention']['weights_HxMxN'][0]
    t_HxNxQ = jnp.broadcast_to(prompt.t_NxQ[None], (weights_HxNxN.shape[0], *prompt.t_NxQ.shape))
    return jnp.take_along_axis(weights_HxNxN, t_HxNxQ, axis=2)


@functools.partial(jax.jit, static_argnames=('module', 'task'))
def _mean_and_least_weights(module, params, prompts, task, task_draw):
    weights_BxHxNxQ = jax.lax.map(lambda prompt: retrieval_weights(module, params, prompt, task, task_draw), prompts)
    return jnp.mean(weights_BxHxNxQ, axis=(0, 2)), jnp.min(weights_BxHxNxQ, axis=(0, 2))


def off_mass(module, params, prompts, task, task_draw):
    """Attention mass off the right token, 1 − weight on t_il, with heads matched to indices by mean weight.

    Args:
        module, params: a `models.Transformer`.
        prompts: `tasks.Prompt` with a leading axis.
        task, task_draw: where they come from.

    Returns:
        {'mean': …, 'max': …} over matched heads, positions and prompts (Lemma 11: ≤ N e^{−αd/(2q)}), floats.
    """
    mean_HxQ, least_HxQ = _mean_and_least_weights(module, params, prompts, task, task_draw)
    index_H = match_heads(mean_HxQ)
    heads = np.flatnonzero(index_H >= 0)
    worst = float(jnp.min(least_HxQ[heads, index_H[heads]]))
    return {'mean': 1 - _matched_mean(mean_HxQ, index_H), 'max': 1 - worst}


def operator_norm(w_AxB):
    """‖W‖_op, over the last two axes."""
    return jnp.linalg.norm(w_AxB, ord=2, axis=(-2, -1))


def two_one_norm(w_AxB):
    """‖W‖_{2,1} = Σ_columns ‖w_·b‖₂, over the last two axes."""
    return jnp.sum(jnp.linalg.norm(w_AxB, axis=-2), axis=-1)


def _layers(tree, first):
    """Kernels of the dense layers `first`0, `first`1, … and 'out' of a parameter tree, in order."""
    names = sorted((n for n in tree if n.startswith(first)), key=lambda n: int(n.removeprefix(first)))
    return [tree[name]['kernel'] for name in names] + [tree['out']['kernel']]


def lipschitz_product(kernels):
    """Π_l ‖W_l‖_op, an upper bound on a ReLU net's Lipschitz constant."""
    product = 1.0
    for kernel in kernels:
        product = product * operator_norm(kernel)
    return product


def lipschitz_sampled(function, points_BxK):
    """max over points of ‖J(x)‖_op, a lower bound on the Lipschitz constant of function: (K,) → scalar or vector.

    Args:
        function: differentiable almost everywhere.
        points_BxK: where to look, (B, K).

    Returns:
        The largest operator norm of a Jacobian, a scalar.
    """
    jacobians_BxFxK = jax.vmap(lambda x_K: jnp.atleast_2d(jax.jacrev(function)(x_K)))(points_BxK)
    return jnp.max(operator_norm(jacobians_BxFxK))


def transition_lipschitz(params):
    """‖W_L‖_op ⋯ ‖W_2‖_op ‖W_{1,h}‖_op of the deep cell as stored, (2,): Theorem 7 wants it ≤ α_N.

    A module with `lipschitz=α` shrinks W_{1,h} in the forward pass, so there the effective value is at most α.
    """
    cell = params['params']['cell']
    kernels = [cell[f'kernel_{i}'] for i in range(1, sum(n.startswith('kernel_') for n in cell) + 1)]
    return lipschitz_product([cell['hidden_kernel'], *kernels])


def read_out(params, states_F, z_E):
    """f_y(h→, h←, z) of a `models.Recurrent(readout='mlp')`; (2 d_h,), (D_e,) → scalar."""
    tree = params['params']
    layer = jnp.concatenate([states_F, z_E])
    for i in range(sum(name.startswith('readout_') for name in tree)):
        layer = jax.nn.relu(layer @ tree[f'readout_{i}']['kernel'] + tree[f'readout_{i}']['bias'])
    return (layer @ tree['out']['kernel'])[0]


def state_sensitivity(params, width, state_norm):
    """L² ‖U‖_op² of a trained RNN by layer products (Proposition 8; compare `rates.proposition8_norm`).

    U are the rows of the read-out's first layer that act on (h→, h←); f_y is (L/r_h)-Lipschitz in U h with
    L/r_h = Π_{l ≥ 2} ‖W_l‖_op (1 for a linear read-out), ‖h‖ ≤ r_h.

    Args:
        params: of `models.Recurrent`, one lane.
        width: d_h.
        state_norm: r_h, the module's radius or the largest ‖(h→, h←)‖ seen.

    Returns:
        (r_h Π_{l ≥ 2} ‖W_l‖_op ‖U‖_op)², a scalar.
    """
    first, *later = _layers(params['params'], 'readout_')
    return (state_norm * lipschitz_product(later) * operator_norm(first[: 2 * width])) ** 2


def state_sensitivity_sampled(params, states_BxF, z_BxE, state_norm):
    """The same from below: max over samples of r_h² ‖∂f_y/∂(h→, h←)‖², read-out 'mlp'; ≤ `state_sensitivity`."""
    gradients_BxF = jax.vmap(lambda h, z: jax.grad(read_out, argnums=1)(params, h, z))(states_BxF, z_BxE)
    return state_norm**2 * jnp.max(jnp.sum(gradients_BxF**2, axis=-1))


def recurrent_states(module, params, z_NxE):
    """(h→_i, h←_i) as the read-out of a `models.Recurrent` sees them, (N, 2 d_h)."""
    _, sown = module.apply(params, z_NxE, capture_intermediates=_is_cell, mutable='intermediates')
    states_2xNxH = sown['intermediates']['cell']['__call__'][0]
    if module.states == 'exclusive':
        states_2xNxH = jnp.pad(states_2xNxH, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    return jnp.concatenate([states_2xNxH[0], states_2xNxH[1, ::-1]], axis=-1)


def _is_cell(module, method):
    return method == '__call__' and isinstance(module, models.recurrent.DeepCell | models.recurrent.GatedCell)


def span_residual(w_KxM, x_BxK):
    """‖(I − P_S) W‖_F/‖W‖_F, S the span of the rows of x (n, K); W is a kernel (K, m), one unit per column."""
    basis_RxK = floors.span_basis(x_BxK)
    return jnp.linalg.norm(w_KxM - basis_RxK.T @ (basis_RxK @ w_KxM)) / jnp.linalg.norm(w_KxM)


def feedforward_span_residual(params, x_BxNxD):
    """Theorem 6's residual of an FFN: the share of its token weights outside the span of the training tokens.

    Args:
        params: of `models.Feedforward`, one lane, either form ('flat': the columns that read x).
        x_BxNxD: tokens of the training prompts, (n, N, d).

    Returns:
        The residual, in [0, 1].
    """
    num_samples, seq_len, token_dim = x_BxNxD.shape
    tree = params['params']
    if 'tokens' in tree:
        kernel = tree['tokens']['kernel']
    else:
        kernel = tree['hidden_0']['kernel']
        kernel = kernel.reshape(seq_len, -1, kernel.shape[-1])[:, :token_dim].reshape(-1, kernel.shape[-1])
    return span_residual(kernel, x_BxNxD.reshape(num_samples, -1))
