"""The recurrent networks of the proofs as weights of `models.Recurrent`: one retrieves tokens, one stores all of them.

Both use the gates of `gates`. Kernels have the shape (inputs, outputs), as in Flax. Both directions have the same
weights.
"""

import math
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from qstr_jax import tasks
from qstr_jax.models import Recurrent
from qstr_jax.theory import gates, networks
from qstr_jax.theory.networks import Construction
from qstr_jax.theory.sparse_task import SparseTask

# The transitions' kernels and their first bias.
Cell = tuple[list[np.ndarray], np.ndarray]
# Kernel and bias of a layer of the read-out.
Layer = tuple[np.ndarray, np.ndarray | None]


def _cell_params(width: int, kernels: list[np.ndarray], bias_0: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters of a deep cell whose transitions ignore the hidden state."""
    first, *rest = kernels
    tree = {'input_kernel': first, 'hidden_kernel': np.zeros((width, first.shape[1])), 'bias_0': bias_0}
    for i, kernel in enumerate(rest, start=1):
        tree[f'kernel_{i}'] = kernel
    tree |= {f'bias_{i}': np.zeros(kernel.shape[1]) for i, kernel in enumerate(rest[:-1], start=1)}
    return {name: np.stack([leaf, leaf]) for name, leaf in tree.items()}


def build(
    width: int, cell: Cell, readout: list[Layer], state_radius: float | None
) -> tuple[Recurrent, dict, dict[str, float]]:
    """Module, parameters and norms of an RNN whose transitions ignore the hidden state."""
    kernels, bias_0 = cell
    module = Recurrent(
        width=width,
        cell='deep',
        states='exclusive',
        readout='mlp',
        lipschitz=0.0,
        radius=state_radius,
        readout_widths=tuple(kernel.shape[1] for kernel, _ in readout[:-1]),
        transition_widths=tuple(kernel.shape[1] for kernel in kernels[:-1]),
    )
    tree: dict[str, Any] = {'cell': _cell_params(width, kernels, bias_0), 'out': {'kernel': readout[-1][0]}}
    for i, (kernel, bias) in enumerate(readout[:-1]):
        tree[f'readout_{i}'] = {'kernel': kernel, 'bias': bias}
    params = networks.as_params(tree)
    square = networks.square_norm(params)
    transition = networks.square_norm(params['params']['cell']) / 2
    first = readout[0][0][: 2 * width]
    norms = {
        'param_norm': math.sqrt(square),
        'transition_square': transition,
        'readout_square': square - 2 * transition,
        'state_projection': float(np.linalg.norm(first, ord=2)),
        'readout_lipschitz': math.prod(float(np.linalg.norm(k, ord=2)) for k, _ in readout[1:]),
    }
    return module, params, norms


def _bounds(token_bound: float, radius: float, form_error: float, state_norm: float) -> dict[str, float]:
    return {
        'output': form_error,
        'squared_error': form_error**2,
        'token_bound': token_bound,
        'token_radius': radius,
        'state_norm': state_norm,
        'lipschitz': 0.0,
    }


def _token_radius(task: SparseTask, token_bound: float, radius: float | None = None) -> float:
    """The given radius, or that of all tokens with |x_jk| ≤ M."""
    if not token_bound > 0:
        raise ValueError(f'token_bound={token_bound}: M must be positive')
    return math.sqrt(task.token_dim) * token_bound if radius is None else radius


def retrieving(task: SparseTask, task_draw: tasks.Draw, token_bound: float, *, error: float = 0.1) -> Construction:
    """Propositions 26-28 for simple-qSTR, exact: states hold the relevant tokens seen so far, d_h = q d.

    Both transitions are f(z_i) = (gate_1, …, gate_q), where gate_l is x_i if t_l = i and 0 otherwise. The gate's
    distance is ‖ω_i − ω_{t_l}‖₁, which is ≥ δ for t_l ≠ i. f has three layers, of widths 2d + 2q d_e, 2qd and qd. The
    read-out adds h→_i, h←_i and the gated own token and applies (a_g, W_g, b_g); its widths are 2d + 2q d_e + 2qd, 4qd,
    m_g and 1. For all ‖x_j‖_∞ ≤ M and any distinct encodings, ŷ is the two-layer form of (x_{t_1}, …, x_{t_q}) up to
    rounding, with

        ‖Θ_f‖² = 4 q d_e + 2d + 6 q d + 4 q d d_e M²/δ².

    N enters only through d_e, M and δ. Scaled encodings multiply δ by √(d/q).
    """
    if task.name != 'simple_qstr':
        raise ValueError(f"task={task.name!r}: the retrieving RNN needs 'simple_qstr'; see `storing`")
    q, d = task.sparsity, task.token_dim
    radius = _token_radius(task, token_bound)
    state_norm = math.sqrt(q) * radius
    form = networks.two_layer_arrays(task, task_draw, radius, error)
    delta = task.scale * networks.separation(task_draw.encodings.omega_NxE).distance
    first, second = gates.own_kernels(task, (1 + gates.SLACK) * token_bound / delta)
    cell = [first, second, gates.unsigned(q * d)], np.zeros(first.shape[1])
    module, params, norms = build(q * d, cell, _retrieving_readout(first, second, form), None)
    bounds = _bounds(token_bound, radius, form.error, state_norm)
    return Construction(module=module, params=params, norms=norms, bounds=bounds)


def _retrieving_readout(first: np.ndarray, second: np.ndarray, form: networks.TwoLayerArrays) -> list[Layer]:
    """All layers of the read-out; the gates' kernels read the own token, and the columns of h→ + h← come last."""
    size = second.shape[1] // 2  # q d
    both_states = gates.signed(np.tile(np.eye(size), (2, 1)))
    own = _own_last(both_states, first), block_diag(second, np.eye(2 * size))
    last = np.concatenate([gates.unsigned(size)] * 2) @ form.W_MxV.T
    return [*((kernel, np.zeros(kernel.shape[1])) for kernel in own), (last, form.b_M), (form.a_M[:, None], None)]


def _own_last(states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Kernel on (h→, h←, z) with the columns that read the token first, then those that read the states."""
    zeros_top = np.zeros((states.shape[0], tokens.shape[1]))
    zeros_bottom = np.zeros((tokens.shape[0], states.shape[1]))
    return np.block([[zeros_top, states], [tokens, zeros_bottom]])


def storing(
    task: SparseTask,
    task_draw: tasks.Draw,
    token_bound: float,
    *,
    radius: float | None = None,
    error: float = 0.1,
    state_radius: float | None = None,
) -> Construction:
    """The RNN that stores every token, d_h = N d: exact on qSTR, an upper bound beside Proposition 8 and Theorem 9.

    Transitions write x_i to block i, through gates with distance ‖ω_k‖² − ⟨ω_i, ω_k⟩ ≥ 1 − c; the ω_k are constants in
    the weights. The read-out opens block k if t_l = k (distance ‖ω_k‖² − ⟨ω_{t_l}, ω_k⟩), adds the gated own token and
    applies (a_g, W_g, b_g). Exact up to rounding for ‖x_j‖_∞ ≤ M and c = max_{i≠j} ⟨ω_i, ω_j⟩ < 1.
    """
    radius = _token_radius(task, token_bound, radius)
    state_norm = math.sqrt(task.seq_len) * radius
    shrink = 1.0 if state_radius is None else state_radius / state_norm
    form = networks.two_layer_arrays(task, task_draw, radius, error)
    apart = networks.separation(task_draw.encodings.omega_NxE)
    gain = (1 + gates.SLACK) * token_bound / (1 - apart.coherence)
    own_gain = (1 + gates.SLACK) * token_bound / (task.scale * apart.distance)
    cell = _storing_cell(task, task_draw, gain, shrink)
    opening = _opening_layers(task, task_draw, gain, own_gain, shrink)
    readout = [*opening, (_summing_kernel(task) @ form.W_MxV.T, form.b_M), (form.a_M[:, None], None)]
    ball = None if state_radius is None else state_radius * (1 + gates.SLACK)
    module, params, norms = build(task.seq_len * task.token_dim, cell, readout, ball)
    bounds = _bounds(token_bound, radius, form.error, state_norm * shrink)
    return Construction(module=module, params=params, norms=norms, bounds=bounds)


def _storing_cell(task: SparseTask, task_draw: tasks.Draw, gain: float, shrink: float) -> Cell:
    """Transition kernels, of widths 2d + N, 2Nd and Nd, and the first bias."""
    d, n = task.token_dim, task.seq_len
    omega_NxE = np.asarray(task_draw.encodings.omega_NxE, np.float64)
    retrieved = np.zeros((task.sparsity * task.encoding_dim, 2 * d + n))
    first = np.concatenate([block_diag(gates.signed(np.eye(d)), -omega_NxE.T / task.scale), retrieved])
    second = gates.pre_activations(np.tile(np.eye(d), (1, n)), gain * np.kron(np.eye(n), np.ones((1, d))))
    bias_0 = np.concatenate([np.zeros(2 * d), np.sum(omega_NxE**2, axis=1)])
    return [first, second, shrink * gates.unsigned(n * d)], bias_0


def _opening_layers(
    task: SparseTask, task_draw: tasks.Draw, gain: float, own_gain: float, shrink: float
) -> list[Layer]:
    """The layers of the read-out that open the block of each t_l, of widths 2Nd + qN + 2d + 2q d_e and 2qNd + 2qd."""
    q, d, n, d_e = task.sparsity, task.token_dim, task.seq_len, task.encoding_dim
    omega_NxE = np.asarray(task_draw.encodings.omega_NxE, np.float64)
    own_first, own_second = gates.own_kernels(task, own_gain)
    states = gates.signed(np.tile(np.eye(n * d) / shrink, (2, 1)))
    distances = np.zeros((task.embedding_dim, q * n))
    distances[d + d_e :] = -np.kron(np.eye(q), omega_NxE.T) / task.scale
    first = block_diag(states, np.concatenate([distances, own_first], axis=1))
    squares = np.tile(np.sum(omega_NxE**2, axis=1), q)  # 1 up to rounding, which an open gate would magnify
    bias = np.concatenate([np.zeros(2 * n * d), squares, np.zeros(own_first.shape[1])])
    opened = gates.pre_activations(np.tile(np.eye(n * d), (1, q)), gain * np.kron(np.eye(q * n), np.ones((1, d))))
    second = block_diag(opened, own_second)
    return [(first, bias), (second, np.zeros(second.shape[1]))]


def _summing_kernel(task: SparseTask) -> np.ndarray:
    """The kernel that adds the blocks, of which one is open for each t_l, and the gated own token."""
    q, d = task.sparsity, task.token_dim
    blocks = np.kron(np.eye(q), np.kron(np.ones((task.seq_len, 1)), np.eye(d)))
    return np.concatenate([blocks, -blocks, gates.unsigned(q * d)])
