"""The recurrent networks of the proofs as weights of `models.Recurrent`: retrieving and storing.

Both use one gate, exact for |x| ≤ M: with dist = 0 where it is open and dist ≥ δ where it is shut,

    gate(x) = σ(x − (M/δ) dist) − σ(−x − (M/δ) dist) = x or 0.

Kernels are written (inputs, outputs), as Flax has them; both directions are the same.
"""

import math

import numpy as np
from scipy.linalg import block_diag

from qstr_jax.models import Recurrent
from qstr_jax.theory import constructions

# Gates shut a little earlier than they must, so that float32 rounding cannot open one.
SLACK = 1e-4


def _check_bound(token_bound):
    if not token_bound > 0:
        raise ValueError(f'token_bound={token_bound}: M must be positive')


def _signed(kernel):
    """z ↦ (Kz, −Kz), whose ReLUs hold both signs."""
    return np.concatenate([kernel, -kernel], axis=1)


def _unsigned(size):
    """(σ(v), σ(−v)) ↦ v."""
    return np.concatenate([np.eye(size), -np.eye(size)])


def _gates(values_ixo, distances_jxo):
    """From (σ(v), σ(−v), distances) to the pre-activations (v − dist, −v − dist) of gates."""
    v_2ixo = np.concatenate([values_ixo, -values_ixo])
    return np.block([[v_2ixo, -v_2ixo], [-distances_jxo, -distances_jxo]])


def _own_kernels(task, gain):
    """z ↦ (σ(±x), σ(±s(ω_i − ω_{t_l}))) ↦ gates that hold x_i in block l where t_l = i; no biases."""
    q, d, d_e = task.sparsity, task.token_dim, task.encoding_dim
    differences = np.concatenate([np.tile(np.eye(d_e), (1, q)), -np.eye(q * d_e)])
    first = block_diag(_signed(np.eye(d)), _signed(differences))
    both_signs = np.tile(gain * np.kron(np.eye(q), np.ones((d_e, d))), (2, 1))
    return first, _gates(np.tile(np.eye(d), (1, q)), both_signs)


def _cell_params(width, kernels, bias_0):
    """Parameters of the deep cell with transitions that ignore the hidden state."""
    first, *rest = kernels
    tree = {'input_kernel': first, 'hidden_kernel': np.zeros((width, first.shape[1])), 'bias_0': bias_0}
    for i, kernel in enumerate(rest, start=1):
        tree[f'kernel_{i}'] = kernel
    tree['bias_1'] = np.zeros(rest[0].shape[1])
    return {name: np.stack([leaf, leaf]) for name, leaf in tree.items()}


def _build(width, cell, readout, state_radius):
    """Module, parameters and norms; `cell` is (kernels, first bias), `readout` layers are (kernel, bias)."""
    kernels, bias_0 = cell
    module = Recurrent(
        width,
        'deep',
        'exclusive',
        'mlp',
        lipschitz=0.0,
        radius=state_radius,
        readout_widths=tuple(kernel.shape[1] for kernel, _ in readout[:-1]),
        transition_widths=tuple(kernel.shape[1] for kernel in kernels[:-1]),
    )
    tree = {'cell': _cell_params(width, kernels, bias_0), 'out': {'kernel': readout[-1][0]}}
    for i, (kernel, bias) in enumerate(readout[:-1]):
        tree[f'readout_{i}'] = {'kernel': kernel, 'bias': bias}
    params = constructions.as_params(tree)
    square = constructions.square_norm(params)
    transition = constructions.square_norm(params['params']['cell']) / 2
    first = readout[0][0][: 2 * width]
    norms = {
        'param_norm': math.sqrt(square),
        'transition_square': transition,
        'readout_square': square - 2 * transition,
        'state_projection': float(np.linalg.norm(first, ord=2)),
        'readout_lipschitz': math.prod(float(np.linalg.norm(k, ord=2)) for k, _ in readout[1:]),
    }
    return module, params, norms


def _bounds(token_bound, radius, form_error, state_norm):
    return {
        'output': form_error,
        'squared_error': form_error**2,
        'token_bound': token_bound,
        'token_radius': radius,
        'state_norm': state_norm,
        'lipschitz': 0.0,
    }


def _token_radius(task, token_bound, radius):
    return math.sqrt(task.token_dim) * token_bound if radius is None else radius


def retrieving(task, task_draw, token_bound, radius=None, error=0.1, state_radius=None):
    """Propositions 26-28 for simple-qSTR, exact: states hold the relevant tokens seen so far, d_h = q d.

    Both transitions are f(z_i) = (gate_1, …, gate_q) with gate_l = x_i if t_l = i and 0 otherwise, its distance
    ‖ω_i − ω_{t_l}‖₁ ≥ δ for t_l ≠ i (three layers of widths 2d + 2q d_e, 2qd, qd). The read-out adds h→_i, h←_i
    and the gated own token and applies (a_g, W_g, b_g) (widths 2d + 2q d_e + 2qd, 4qd, m_g, 1). For all
    ‖x_j‖_∞ ≤ M and any distinct encodings ŷ is the two-layer form of (x_{t_1}, …, x_{t_q}) but for rounding, with

        ‖Θ_f‖² = 4 q d_e + 2d + 6 q d + 4 q d d_e M²/δ²,

    and N enters only through d_e, M and δ. Scaled encodings multiply δ by √(d/q).

    Args:
        task: `tasks.Task` of name 'simple_qstr' whose link has a two-layer form.
        task_draw: `tasks.Draw`.
        token_bound: M.
        radius: r_x of the two-layer form; None is √d M.
        error: error asked of the two-layer form (0 where the link is exact).
        state_radius: r_h of the projection Π; None leaves it out. Must be ≥ √q r_x.

    Returns:
        `Construction` for `models.Recurrent(cell='deep', states='exclusive', readout='mlp', lipschitz=0)`, with
        norms param_norm, transition_square (‖Θ_f‖², one direction), readout_square, state_projection (‖U‖_op),
        readout_lipschitz (product over the later layers) and bounds output (of |ŷ − y|), squared_error,
        token_bound, token_radius, state_norm, lipschitz (α_N).

    Raises:
        ValueError: another task, equal encodings, no two-layer form, a radius that is too small.
    """
    if task.name != 'simple_qstr':
        raise ValueError(f"task={task.name!r}: the retrieving RNN needs 'simple_qstr'; see `storing`")
    _check_bound(token_bound)
    q, d, d_e = task.sparsity, task.token_dim, task.encoding_dim
    radius = _token_radius(task, token_bound, radius)
    state_norm = math.sqrt(q) * radius
    if state_radius is not None and state_radius < state_norm:
        raise ValueError(f'state_radius={state_radius}: Π would act, must be ≥ √q r_x = {state_norm:.6g}')
    a_M, W_MxK, b_M, form_error = constructions.two_layer_arrays(task, task_draw, radius, error)
    delta = task.scale * constructions.separation(task_draw.encodings.omega_NxE).distance
    first, second = _own_kernels(task, (1 + SLACK) * token_bound / delta)
    cell = [first, second, _unsigned(q * d)], np.zeros(first.shape[1])
    both_states = _signed(np.tile(np.eye(q * d), (2, 1)))
    last = np.concatenate([_unsigned(q * d)] * 2) @ W_MxK.T
    readout = [  # the columns of h→ + h← come last
        (_own_last(both_states, first), np.zeros(2 * d + 2 * q * d_e + 2 * q * d)),
        (block_diag(second, np.eye(2 * q * d)), np.zeros(4 * q * d)),
        (last, b_M),
        (a_M[:, None], None),
    ]
    built = _build(q * d, cell, readout, state_radius)
    return constructions.Construction(*built, _bounds(token_bound, radius, form_error, state_norm))


def _own_last(states, tokens):
    """Kernel on (h→, h←, z) whose columns are those of the tokens, then those of the states."""
    zeros_top = np.zeros((states.shape[0], tokens.shape[1]))
    zeros_bottom = np.zeros((tokens.shape[0], states.shape[1]))
    return np.block([[zeros_top, states], [tokens, zeros_bottom]])


def storing(task, task_draw, token_bound, radius=None, error=0.1, state_radius=None):
    """The RNN that stores every token, d_h = N d: exact on qSTR, the upper line of Proposition 8 and Theorem 9.

    Transitions write x_i to block i (gates with distance ‖ω_k‖² − ⟨ω_i, ω_k⟩ ≥ 1 − c, constants ω_k in the
    weights); the read-out opens block k where t_l = k (distance ‖ω_k‖² − ⟨ω_{t_l}, ω_k⟩), adds the gated own
    token and applies (a_g, W_g, b_g). Exact but for rounding for ‖x_j‖_∞ ≤ M and c = max_{i≠j} ⟨ω_i, ω_j⟩ < 1.

    Args:
        task: `tasks.Task` whose link has a two-layer form.
        task_draw, token_bound, radius, error: see `retrieving`.
        state_radius: r_h: scales the states into this ball (‖h‖ ≤ √(N) r_x otherwise) and the read-out back;
            None leaves them as they are.

    Returns:
        `Construction` as `retrieving`.

    Raises:
        ValueError: equal encodings, no two-layer form.
    """
    _check_bound(token_bound)
    q, d, size = task.sparsity, task.token_dim, task.seq_len * task.token_dim
    radius = _token_radius(task, token_bound, radius)
    state_norm = math.sqrt(task.seq_len) * radius
    shrink = 1.0 if state_radius is None else state_radius / state_norm
    a_M, W_MxK, b_M, form_error = constructions.two_layer_arrays(task, task_draw, radius, error)
    apart = constructions.separation(task_draw.encodings.omega_NxE)
    gain = (1 + SLACK) * token_bound / (1 - apart.coherence)
    own_gain = (1 + SLACK) * token_bound / (task.scale * apart.distance)
    readout = [*_storing_readout(task, task_draw, gain, own_gain, shrink)]
    blocks = np.kron(np.eye(q), np.kron(np.ones((task.seq_len, 1)), np.eye(d)))
    last = np.concatenate([blocks, -blocks, _unsigned(q * d)]) @ W_MxK.T
    built = _build(
        size,
        _storing_cell(task, task_draw, gain, shrink),
        [*readout, (last, b_M), (a_M[:, None], None)],
        None if state_radius is None else state_radius * (1 + SLACK),
    )
    state_norm = state_norm * shrink
    return constructions.Construction(*built, _bounds(token_bound, radius, form_error, state_norm))


def _storing_cell(task, task_draw, gain, shrink):
    """Transition kernels and first bias: widths 2d + N, 2Nd, Nd."""
    d, n = task.token_dim, task.seq_len
    omega_NxE = np.asarray(task_draw.encodings.omega_NxE, np.float64)
    retrieved = np.zeros((task.sparsity * task.encoding_dim, 2 * d + n))
    first = np.concatenate(
        [
            block_diag(_signed(np.eye(d)), -omega_NxE.T / task.scale),
            retrieved,
        ]
    )
    second = _gates(np.tile(np.eye(d), (1, n)), gain * np.kron(np.eye(n), np.ones((1, d))))
    bias_0 = np.concatenate([np.zeros(2 * d), np.sum(omega_NxE**2, axis=1)])
    return [first, second, shrink * _unsigned(n * d)], bias_0


def _storing_readout(task, task_draw, gain, own_gain, shrink):
    """First two read-out layers: widths 2Nd + qN + 2d + 2q d_e and 2qNd + 2qd."""
    q, d, n, d_e = task.sparsity, task.token_dim, task.seq_len, task.encoding_dim
    omega_NxE = np.asarray(task_draw.encodings.omega_NxE, np.float64)
    own_first, own_second = _own_kernels(task, own_gain)
    states = _signed(np.tile(np.eye(n * d) / shrink, (2, 1)))
    distances = np.zeros((task.embedding_dim, q * n))
    distances[d + d_e :] = -np.kron(np.eye(q), omega_NxE.T) / task.scale
    first = block_diag(states, np.concatenate([distances, own_first], axis=1))
    squares = np.tile(np.sum(omega_NxE**2, axis=1), q)  # 1 but for rounding, which an open gate would magnify
    bias = np.concatenate([np.zeros(2 * n * d), squares, np.zeros(own_first.shape[1])])
    gates = _gates(np.tile(np.eye(n * d), (1, q)), gain * np.kron(np.eye(q * n), np.ones((1, d))))
    second = block_diag(gates, own_second)
    return (first, bias), (second, np.zeros(second.shape[1]))
