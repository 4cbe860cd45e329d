"""Parameters of `qstr_jax` models as weights of the PyTorch baseline, so that both can be fed the same prompts."""

import numpy as np
import torch


def _dense(params, name, layer):
    """A Flax dense layer's kernel (in, out) and bias as a PyTorch layer's."""
    return {f'{layer}.weight': params[name]['kernel'].T, f'{layer}.bias': params[name]['bias']}


def _transformer(params):
    attention = params['attention']
    kernel_Ex3xHxA = attention['in_kernel']
    return {
        'in_projection.weight': kernel_Ex3xHxA.reshape(kernel_Ex3xHxA.shape[0], -1).T,
        'in_projection.bias': attention['in_bias'].ravel(),
        **_dense(attention, 'out', 'out_projection'),
        **_dense(params, 'hidden', 'hidden'),
        **_dense(params, 'out', 'out'),
    }


def _rnn(params):
    weights = _dense(params, 'out', 'out')
    for direction, suffix in enumerate(('', '_reverse')):
        for ours, theirs in ('input', 'ih'), ('hidden', 'hh'):
            weights[f'cell.weight_{theirs}_l0{suffix}'] = params['cell'][f'{ours}_kernel'][direction].T
            weights[f'cell.bias_{theirs}_l0{suffix}'] = params['cell'][f'{ours}_bias'][direction]
    return weights


def _ffn(params):
    layers = 'hidden_0', 'hidden_1', 'out'
    return {key: value for name in layers for key, value in _dense(params, name, name).items()}


STATE = {'transformer': _transformer, 'rnn': _rnn, 'ffn': _ffn}


def load(training, params, model):
    """Writes our parameters {'params': …} of one lane into a `baseline.Training`."""
    weights = STATE[model](_to_numpy(params['params']))
    training.model.load_state_dict({name: torch.tensor(np.ascontiguousarray(w)) for name, w in weights.items()})


def _to_numpy(tree):
    return {name: _to_numpy(leaf) if hasattr(leaf, 'items') else np.asarray(leaf) for name, leaf in tree.items()}
