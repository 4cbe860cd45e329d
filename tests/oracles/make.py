"""Makes the arrays that mixers are compared with, by reference code in PyTorch (and mamba3-jax); see README.md.

The recurrences are the references'; the linear maps around them are written out here. No package has the recurrences
of `long_conv` and `deep_cell`: their formulas are written out in the plainest way, as sums and loops over tokens.
"""

import argparse
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

N, W, H, K, R = 10, 8, 2, 4, 4
EXPANSION, FREQUENCIES = 2, 4
FOLDER = pathlib.Path(__file__).parent
PACKAGES = ('torch', 'transformers', 'einops', 'mamba3-jax')
BY_PATH = {'fla-core': '0.6.0', 's5-pytorch': '0.2.1', 'minGRU-pytorch': '0.2.1', 'mlp-mixer-pytorch': '0.3.1'}


class Parameters(dict):
    """Parameters by name, drawn when they are first asked for."""

    def __init__(self, seed):
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def __call__(self, name, *shape, scale=None, center=0.0):
        scale = 1 / math.sqrt(shape[0]) if scale is None else scale
        if name not in self:
            drawn = center + scale * self.rng.standard_normal(shape)
            self[name] = torch.tensor(drawn, dtype=torch.float32, requires_grad=True)
        return self[name]

    def heads(self, name, x):
        return torch.einsum('bnw,whk->bnhk', x, self(f'{name}/kernel', x.shape[-1], H, K))

    def dense(self, name, x, dim, bias=True):
        y = x @ self(f'{name}/kernel', x.shape[-1], dim)
        return y + self(f'{name}/bias', dim, scale=0.3) if bias else y

    def merged(self, o):
        return torch.einsum('bnhv,hvw->bnw', o, self('out/kernel', H, o.shape[-1], W, scale=0.3))

    def rms(self, name, o):
        scale = self(f'{name}/scale', o.shape[-1], scale=0.3, center=1.0)
        return o * torch.rsqrt(o.pow(2).mean(-1, keepdim=True) + 1e-6) * scale


@functools.cache
def by_path(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def naive(packages, folder):
    return by_path(packages / 'fla/ops' / folder / 'naive.py', folder.replace('/', '_'))


def head_first(*parts):
    """(B, N, H, …) → (B, H, N, …)."""
    return [part.transpose(1, 2) for part in parts]


def linear_attention(packages, p, x):
    q, k, v = (p.heads(name, x) for name in ('query', 'key', 'value'))
    run = naive(packages, 'linear_attn').naive_recurrent_linear_attn
    return p.merged(run(F.elu(q) + 1, F.elu(k) + 1, v, scale=1.0, normalize=True)[0])


def rotated(x):
    angle = torch.arange(N)[:, None] * 10_000.0 ** (-torch.arange(K // 2) / (K // 2))
    first, second = x.chunk(2, dim=-1)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def gated(p, x, o):
    return p.merged(p.rms('head_norm', o) * F.silu(p.heads('gate', x)))


def retnet(packages, p, x):
    q, k, v = (p.heads(name, x) for name in ('query', 'key', 'value'))
    o = naive(packages, 'retention').naive_retention(*head_first(rotated(q), rotated(k), v))
    return gated(p, x, o.transpose(1, 2))


def gla(packages, p, x):
    q, k, v = (p.heads(name, x) for name in ('query', 'key', 'value'))
    decay = p.heads('decay_out', p.dense('decay_in', x, R, bias=False)) + p('decay_out/bias', H, K)
    g = F.logsigmoid(decay) / 16
    return gated(p, x, naive(packages, 'gla').naive_recurrent_gla(q, k, v, g)[0])


def delta_inputs(p, x):
    q, k, v = (F.silu(p.heads(name, x)) for name in ('query', 'key', 'value'))
    q, k = (part * torch.rsqrt(part.pow(2).sum(-1, keepdim=True) + 1e-6) for part in (q, k))
    return q, k, v, torch.sigmoid(p.dense('beta', x, H, bias=False))


def deltanet(packages, p, x):
    q, k, v, beta = delta_inputs(p, x)
    o, _ = naive(packages, 'delta_rule').delta_rule_recurrence(*head_first(q, k, v, beta))
    return p.merged(p.rms('head_norm', o.transpose(1, 2)))


def gated_deltanet(packages, p, x):
    q, k, v, beta = delta_inputs(p, x)
    step = F.softplus(p.dense('step', x, H, bias=False) + p('step_bias', H))
    g = -torch.exp(p('log_rate', H)) * step
    run = naive(packages, 'gated_delta_rule').naive_recurrent_gated_delta_rule
    return gated(p, x, run(q, k, v, beta, g)[0])


def kda(packages, p, x):
    q, k, v, beta = delta_inputs(p, x)
    step = F.softplus(p.heads('step_out', p.dense('step_in', x, K, bias=False)) + p('step_bias', H, K))
    g = -torch.exp(p('log_rate', H))[:, None] * step
    o = naive(packages, 'kda').naive_recurrent_kda(q, k, v, g, beta)[0]
    gate = p.heads('gate_out', p.dense('gate_in', x, K, bias=False))
    return p.merged(p.rms('head_norm', o) * torch.sigmoid(gate))


def per_head_norm(p, o, eps, bias):
    o = F.layer_norm(o, (K,), eps=eps) * p('head_norm/scale', H, K, scale=0.3, center=1.0)
    return o + p('head_norm/bias', H, K) if bias else o


def rwkv7(packages, p, x):
    before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)
    share = p('token_shift', 6, W, center=0.5)
    mixed = {name: x + (before - x) * share[i] for i, name in enumerate('rwkvag')}

    def low_rank(name, x, inner):
        return p.heads(f'{name}_out', inner(p.dense(f'{name}_in', x, R, bias=False)))

    r, k, v = (p.heads(name, mixed[name]) for name in 'rkv')
    g = -math.exp(-0.5) * torch.sigmoid(low_rank('decay', mixed['w'], torch.tanh) + p('decay_bias', H, K))
    a = torch.sigmoid(low_rank('rate', mixed['a'], lambda x: x) + p('rate_bias', H, K))
    removal = F.normalize(k * p('removal_scale', H, K, center=1.0), dim=-1)
    k = k * (1 + (a - 1) * p('key_rate', H, K, center=1.0))
    run = naive(packages, 'generalized_delta_rule/dplr').dplr_recurrence
    o, _ = run(*head_first(r * math.sqrt(K), k, v, -removal, removal * a, g))
    o = per_head_norm(p, o.transpose(1, 2), 64e-5, bias=True)
    o = o + (r * k * p('bonus', H, K)).sum(-1, keepdim=True) * v
    return p.merged(o * low_rank('gate', mixed['g'], torch.sigmoid))


@functools.cache
def mamba2_module(width, heads, head_dim):
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    config = Mamba2Config(
        num_heads=heads,
        head_dim=head_dim,
        hidden_size=width,
        expand=heads * head_dim // width,
        state_size=head_dim,
        n_groups=1,
        conv_kernel=1,
        chunk_size=4,
        layer_norm_epsilon=1e-6,
        use_bias=False,
        use_conv_bias=False,
        num_hidden_layers=1,
    )
    return Mamba2Mixer(config, 0).eval()


def mamba2(packages, p, x):
    parts = {name: p(f'{name}/kernel', W, H, K).reshape(W, -1) for name in ('gate', 'value')}
    rest = [p(f'{name}/kernel', W, size) for name, size in (('b', K), ('c', K), ('step', H))]
    weights = {
        'in_proj.weight': torch.cat([parts['gate'], parts['value'], *rest], dim=1).T,
        'conv1d.weight': torch.ones(H * K + 2 * K, 1, 1),
        'dt_bias': p('step_bias', H),
        'A_log': p('log_rate', H),
        'D': p('skip', H, center=1.0),
        'norm.weight': p('gated_norm/scale', H, K, scale=0.3, center=1.0).reshape(-1),
        'out_proj.weight': p('out/kernel', H, K, W, scale=0.3).reshape(-1, W).T,
    }
    return torch.func.functional_call(mamba2_module(W, H, K), weights, (x,))


def rg_lru_module(width, heads):  # made anew, since it keeps its last state
    from transformers import RecurrentGemmaConfig
    from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

    return RecurrentGemmaRglru(RecurrentGemmaConfig(num_attention_heads=heads, lru_width=width, hidden_size=width))


def rg_lru(packages, p, x):
    weights = {'recurrent_param': p('decay', W)}
    for name in ('input', 'recurrent'):
        weights[f'{name}_gate_weight'] = p(f'{name}_gate_kernel', H, W // H, W // H)
        weights[f'{name}_gate_bias'] = p(f'{name}_gate_bias', W).reshape(H, -1)
    u = p.dense('value', x, W)
    h = torch.func.functional_call(rg_lru_module(W, H), weights, (u, torch.arange(N).expand(len(x), N)))
    return p.dense('out', h * F.gelu(p.dense('gate', x, W), approximate='tanh'), W)


def mlstm(packages, p, x):
    from transformers.models.xlstm import modeling_xlstm

    q, k, v = (p.heads(name, x) for name in ('query', 'key', 'value'))
    gates = [modeling_xlstm.soft_cap(p.dense(f'{name}_gate', x, H), 15.0) for name in ('input', 'forget')]
    o = modeling_xlstm.mlstm_recurrent_sequence_native(*head_first(q, k, v, *gates))
    o = per_head_norm(p, (o[0] if isinstance(o, tuple) else o).transpose(1, 2), 1e-6, bias=False)
    return p.merged(o * torch.sigmoid(p.heads('output_gate', x)))


def s5(packages, p, x):
    sys.path.insert(0, str(next(packages.glob('s5-pytorch*/'))))
    from s5 import s5_model

    values = torch.complex(-torch.exp(p('log_rate', K)), p('frequency', K))
    b, c = (torch.complex(*p(name, 2, *shape)) for name, shape in (('b', (W, K)), ('c', (K, W))))
    decay, inputs = s5_model.discretize_zoh(values, b.T, torch.exp(p('log_step', K, scale=0.3, center=-2.0)))
    skip = p('skip', W)
    y = torch.vmap(lambda one: s5_model.apply_ssm(decay, inputs, 2 * c.T, skip, one)[0])(x)
    g = F.gelu(y, approximate='tanh')
    return g * torch.sigmoid(p.dense('gate', g, W))


@functools.cache
def gru_module(width, state_dim):
    return torch.nn.GRU(width, state_dim, batch_first=True)


def gru(packages, p, x):
    weights = {
        'weight_ih_l0': p('input/kernel', W, 3 * K).T,
        'bias_ih_l0': p('input/bias', 3 * K),
        'weight_hh_l0': p('hidden_kernel', 1, K, 3 * K, scale=0.5)[0].T,
        'bias_hh_l0': p('hidden_bias', 3 * K),
    }
    return p.dense('out', torch.func.functional_call(gru_module(W, K), weights, (x,))[0], W)


def attention(packages, p, x):
    q, k, v = (p.heads(name, x) + p(f'{name}/bias', H, K) for name in ('query', 'key', 'value'))
    o = F.scaled_dot_product_attention(*head_first(q, k, v), is_causal=True).transpose(1, 2)
    return p.merged(o) + p('out/bias', W)


@functools.cache
def min_gru_module(packages, width, state_dim):
    layer = by_path(packages / 'minGRU_pytorch/minGRU.py', 'min_gru').minGRU(width, state_dim / width)
    layer.to_hidden_and_gate = torch.nn.Linear(width, 2 * state_dim)  # with a bias, as below
    layer.to_out = torch.nn.Linear(state_dim, width)
    return layer


def min_gru(packages, p, x):
    weights = {
        'to_hidden_and_gate.weight': torch.cat([p('value/kernel', W, K), p('update/kernel', W, K)], dim=1).T,
        'to_hidden_and_gate.bias': torch.cat([p('value/bias', K), p('update/bias', K)]),
        'to_out.weight': p('out/kernel', K, W).T,
        'to_out.bias': p('out/bias', W),
    }
    return torch.func.functional_call(min_gru_module(packages, W, K), weights, (x,))


@functools.cache
def mlp_mixer_module(packages, seq_len, hidden):
    module = by_path(packages / 'mlp_mixer_pytorch/mlp_mixer_pytorch.py', 'mlp_mixer_pytorch')
    mlp = module.FeedForward(seq_len, hidden, dense=functools.partial(torch.nn.Conv1d, kernel_size=1))
    mlp[1] = torch.nn.GELU(approximate='tanh')  # as in the authors' own code, which is in Flax
    return mlp


def mlp_mixer(packages, p, x, causal=False):
    hidden = N * EXPANSION
    seen = torch.triu(torch.ones(N, N)) if causal else torch.ones(N, N)
    into, out = (p(f'{name}_kernel', N, N, EXPANSION) * seen[..., None] for name in ('in', 'out'))
    weights = {
        '0.weight': into.reshape(N, hidden).T[..., None],
        '0.bias': p('in_bias', N, EXPANSION).reshape(-1),
        '3.weight': out.transpose(0, 1).reshape(N, hidden)[..., None],
        '3.bias': p('out_bias', N),
    }
    return torch.func.functional_call(mlp_mixer_module(packages, N, hidden), weights, (x,))


def mlp_mixer_causal(packages, p, x):
    return mlp_mixer(packages, p, x, causal=True)


def long_conv(packages, p, x):
    """Hyena of order 2 (arXiv:2302.10866): y_i = Σ_s h(s) u_{i−s} between two gates, h by a network of sines."""
    value, before, after = (p.dense(name, x, W) for name in ('value', 'before', 'after'))
    u = before * value
    share = torch.arange(N)[:, None] / N
    turns = 2 * math.pi * share * torch.arange(FREQUENCIES)
    layer = torch.cat([share, turns.cos(), turns.sin()], dim=-1)
    for name in ('filter_0', 'filter_1'):
        layer = torch.sin(p('frequency', R, center=2.0) * p.dense(name, layer, R))
    h = p.dense('filter_out', layer, W, bias=False) * torch.exp(-share * p('rate', W, scale=5.0).abs())
    y = torch.stack([sum(h[s] * u[:, i - s] for s in range(i + 1)) for i in range(N)], dim=1)
    return p.dense('out', after * (y + p('skip', W) * u), W)


def deep_cell(packages, p, x, radius=None, bound=None):
    """The theory's cell (arXiv:2503.11272, Section 5), h ← Π(h + W₂ σ(W_h h + W_x x + b)), token by token."""
    w_hidden, w_input, w_2 = (
        p(f'cell/{name}', 1, *shape, scale=0.3)[0]
        for name, shape in (('hidden_kernel', (K, R)), ('input_kernel', (W, R)), ('kernel_1', (R, K)))
    )
    b = p('cell/bias_0', 1, R)[0]
    if bound is not None:
        product = torch.linalg.matrix_norm(w_2, ord=2) * torch.linalg.matrix_norm(w_hidden, ord=2)
        w_hidden = w_hidden * torch.clamp(bound / product, max=1)
    h, states = torch.zeros(len(x), K), []
    for token in x.unbind(1):
        h = h + torch.relu(h @ w_hidden + token @ w_input + b) @ w_2
        if radius is not None:
            h = h * torch.clamp(radius / torch.linalg.vector_norm(h, dim=-1, keepdim=True), max=1)
        states.append(h)
    return p.dense('out', torch.stack(states, dim=1), W)


def deep_cell_bounded(packages, p, x):
    return deep_cell(packages, p, x, radius=2.0, bound=0.25)


def mamba3(p):
    """mamba3-jax as a function of parameters and prompts, with its parameters, which are drawn here as everywhere."""
    import jax
    import jax.numpy as jnp
    from flax import nnx
    from mamba3_jax.modeling import Mamba3Config, Mamba3Mixer

    config = Mamba3Config(hidden_size=W, state_size=K, head_dim=K, expand=H * K // W, chunk_size=16)
    mixer = Mamba3Mixer(config, layer_idx=0, rngs=nnx.Rngs(0))
    shapes = [('gate', (W, H, K)), ('value', (W, H, K)), ('key', (W, K)), ('query', (W, K)), ('step', (W, H)),
              ('rate', (W, H)), ('share', (W, H)), ('angle', (W, K // 4))]  # fmt: skip
    for name, shape in shapes:
        p(f'{name}/kernel', *shape)
    for name in ('key', 'query'):
        p(f'{name}_norm/scale', K, scale=0.3, center=1.0)
        p(f'{name}_bias', H, K)
    p('step_bias', H)
    p('skip', H)
    p('out/kernel', H, K, W, scale=0.3)
    params = {name: jnp.asarray(value.detach().numpy()) for name, value in p.items()}
    graph, state = nnx.split(mixer)

    def apply(params, x):
        parts = [params[f'{name}/kernel'].reshape(W, -1) for name, _ in shapes]
        theirs = {
            'in_proj.kernel': jnp.concatenate(parts, axis=1),
            'B_norm.weight': params['key_norm/scale'],
            'C_norm.weight': params['query_norm/scale'],
            'B_bias': params['key_bias'][:, None],
            'C_bias': params['query_bias'][:, None],
            'dt_bias': params['step_bias'],
            'D': params['skip'],
            'out_proj.kernel': params['out/kernel'].reshape(-1, W),
        }
        leaves, tree = jax.tree_util.tree_flatten_with_path(state)
        names = ['.'.join(str(part.key) for part in path if hasattr(part, 'key')) for path, _ in leaves]
        assert sorted(names) == sorted(theirs), names
        for name, (_, leaf) in zip(names, leaves, strict=True):
            assert theirs[name].shape == leaf.shape, name
        merged = nnx.merge(graph, jax.tree.unflatten(tree, [theirs[name] for name in names]))
        return merged(x)[0]

    return params, apply


def by_torch(reference, packages, p, x, weight):
    """Outputs, and the gradients of their weighted sum."""
    x = torch.tensor(x, requires_grad=True)
    y = reference(packages, p, x[None])[0]
    of_x, *others = torch.autograd.grad((y * torch.tensor(weight)).sum(), [x, *p.values()])
    return y.detach(), of_x, dict(zip(p, others, strict=True))


def by_jax(reference, p, x, weight):
    """The same of a reference in JAX."""
    import jax

    params, apply = reference(p)

    def total(params, x):
        y = apply(params, x[None])[0]
        return (y * weight).sum(), y

    with jax.default_matmul_precision('highest'):
        (_, y), (gradients, of_x) = jax.value_and_grad(total, argnums=(0, 1), has_aux=True)(params, x)
    return y, of_x, gradients


# The place of each one is its seed.
REFERENCES = (
    attention, linear_attention, retnet, gla, deltanet, gated_deltanet, kda, rwkv7, mamba2, rg_lru, mlstm, s5, gru,
    mamba3, min_gru, mlp_mixer, mlp_mixer_causal, long_conv, deep_cell, deep_cell_bounded,
)  # fmt: skip


def saved(name, arrays):
    path = FOLDER / f'{name}.npz'
    np.savez_compressed(path, **{key: np.asarray(value, np.float32) for key, value in arrays.items()})
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--packages', type=pathlib.Path, required=True)
    packages = parser.parse_args().packages
    digests = {}
    for seed, reference in enumerate(REFERENCES):
        p = Parameters(seed)
        x, weight = (p.rng.standard_normal((N, W)).astype(np.float32) for _ in range(2))
        run = (
            functools.partial(by_jax, mamba3)
            if reference is mamba3
            else functools.partial(by_torch, reference, packages)
        )
        y, of_x, gradients = run(p, x, weight)
        arrays = {'x': x, 'weight': weight, 'y': y, 'gradient/x': of_x}
        arrays |= {f'params/{name}': value.detach() for name, value in p.items()}
        arrays |= {f'gradient/params/{name}': value for name, value in gradients.items()}
        digests[reference.__name__] = saved(reference.__name__, arrays)
        print(reference.__name__, float(np.abs(np.asarray(y)).max()))
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    versions |= BY_PATH
    (FOLDER / 'made.json').write_text(json.dumps({'versions': versions, 'sha256': digests}, indent=2) + '\n')


if __name__ == '__main__':
    main()
