r"""Times each mixer beside its reference: outputs and gradients of a batch of prompts, both on all cores, in turn.

    pip install -e ../..
    python speed.py --packages=packages --output=../../experiments/benchmarks/mixers

References in PyTorch run as they come, without a compiler; that of Mamba-3 is in JAX and is compiled as ours. Sizes are
those of the zoo. Writes OUTPUT.json and OUTPUT.md.
"""

import argparse
import os
import pathlib

import jax
import make
import numpy as np
import pandas as pd
import torch
from flax import traverse_util

from experiments import benchmark
from qstr_jax.analysis import formats
from qstr_jax.cli import runtime
from qstr_jax.models import mixers
from qstr_jax.models.mixers import mixer
from qstr_jax.storage import files

BATCH, WIDTH, HEAD_DIM = 64, 32, 16
SETTINGS = {'attention': {'causal': True}}


def ours(name, params, x, weight):
    """A function that takes outputs and gradients `count` times."""
    kind = mixers.spec(name)[0]
    sizes = {'heads': 2, **dict.fromkeys(('head_dim', 'rank', 'state_dim', 'hidden_dim', 'filter_dim'), HEAD_DIM)}
    if name == 'rg_lru':
        sizes['state_dim'] = WIDTH
    own = {key: size for key, size in sizes.items() if key in mixer.schema(kind)}
    module = kind(**own, **SETTINGS.get(name, {}))

    def total(params, x):
        y = jax.vmap(lambda one: module.apply(params, one))(x)
        return (y * weight).sum(), y

    return repeated_jax(total, {'params': traverse_util.unflatten_dict(params, sep='/')}, x)


def repeated_jax(total, params, x):
    """Compiled by JAX."""
    run = jax.jit(jax.value_and_grad(total, argnums=(0, 1), has_aux=True))

    def repeat(count):
        for _ in range(count):
            jax.block_until_ready(run(params, x))

    return repeat


def theirs(reference, packages, p, x, weight):
    """The same by the reference."""
    if reference is make.mamba3:
        params, apply = reference(p)

        def total(params, x):
            y = apply(params, x)
            return (y * weight).sum(), y

        return repeated_jax(total, params, x)
    x, weight = torch.tensor(x, requires_grad=True), torch.tensor(weight)

    def repeat(count):
        for _ in range(count):
            torch.autograd.grad((reference(packages, p, x) * weight).sum(), [x, *p.values()])

    return repeat


def record(reference, packages):
    """Milliseconds of ours and theirs, at the sizes that `make` has now."""
    name, p = reference.__name__, make.Parameters(0)
    x, weight = (p.rng.standard_normal((BATCH, make.N, make.W)).astype(np.float32) for _ in range(2))
    other = theirs(reference, packages, p, x, weight)
    other(1)  # Draws the parameters.
    params = {key: value.detach().numpy() for key, value in p.items()}
    seconds = benchmark.alternate({'ours': ours(name, params, x, weight), 'theirs': other})
    milliseconds = {f'ms, {key}': 1000 * value for key, value in seconds.items()}
    return {'mixer': name, 'N': make.N, **milliseconds, 'times as fast': seconds['theirs'] / seconds['ours']}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--packages', type=pathlib.Path, required=True)
    parser.add_argument('--output', type=pathlib.Path, required=True)
    given = parser.parse_args()
    runtime.use_all_cores()
    make.W, make.K, make.R = WIDTH, HEAD_DIM, HEAD_DIM
    records = []
    for reference in make.REFERENCES:
        if not reference.__name__.endswith(('_causal', '_bounded')):
            for make.N in (16, 64):
                records.append(record(reference, given.packages))
                print(records[-1], flush=True)
    found = {'torch': torch.__version__, 'jax': jax.__version__, 'cores': os.cpu_count(), 'prompts': BATCH,
             'width': WIDTH, 'records': records}  # fmt: skip
    files.write_json(given.output.with_suffix('.json'), found)
    files.write_text(given.output.with_suffix('.md'), formats.markdown(pd.DataFrame(records), digits=3))


if __name__ == '__main__':
    main()
