"""Fingerprints of programs: whatever tells two programs apart, and nothing else."""

import os
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import fingerprints, sweeps
from qstr_jax.sweeps import programs
from tests import helpers, small

PRINTED = """
from qstr_jax.sweeps import programs
from tests import small
for model in {models}:
    print(programs.fingerprint(small.cell(model).problem, 2, 'cpu'))
"""
X = np.zeros(3, np.float32)


def of(function, *arguments):
    return fingerprints.of(jax.make_jaxpr(function)(*(arguments or (X,))))


def test_it_depends_on_steps_constants_and_types():
    table = np.arange(2000, dtype=np.float32)
    found = [
        of(lambda x: 2 * x),
        of(lambda x: 3 * x),
        of(lambda x: 2 + x),
        of(lambda x: 2 * x, X[:2]),
        of(lambda x: 2 * x, X.astype(np.int32)),
        of(lambda x: x + jnp.sum(jnp.asarray(table))),
        of(lambda x: x + jnp.sum(jnp.asarray(table + (table == 1000)))),
        of(lambda x, y: x - y, X, X),
        of(lambda x, y: y - x, X, X),
        of(jax.jit(lambda x: 4 * x)),
        of(jax.jit(lambda x: 5 * x)),
    ]
    assert len(set(found)) == len(found)


def test_names_and_what_jax_has_traced_before_do_not_matter():
    def twice(f):
        return lambda x: f(x) + f(x + 1)

    def other(x):
        return jnp.sin(x) * 2

    shared = jax.jit(lambda x: jnp.sin(x) * 2)
    apart = [jax.jit(lambda x: jnp.sin(x) * 2), jax.jit(other)]
    assert of(twice(shared)) == of(lambda x: apart[0](x) + apart[1](x + 1))


def test_a_callback_has_no_address_in_it():
    def call(scale):
        return lambda x: jax.pure_callback(lambda y: scale * y, jax.ShapeDtypeStruct((3,), np.float32), x)

    assert of(call(1)) == of(call(1))


def test_a_callback_is_of_the_file_that_defines_its_function(tmp_path):
    """A trace does not show what the function does."""
    found = []
    for scale in 1, 2, 2:
        path = tmp_path / f'host{len(found)}.py'
        path.write_text(f'def host(y):\n    return {scale} * y\n')
        module = types.ModuleType('host')
        exec(compile(path.read_text(), str(path), 'exec'), vars(module))
        host = module.host
        found.append(of(lambda x, h=host: jax.pure_callback(h, jax.ShapeDtypeStruct((3,), np.float32), x)))
    assert found[0] != found[1] == found[2]
    path.unlink()  # as in a notebook
    cells = [eval(f'lambda y: {scale} * y') for scale in (1, 2, 2)]
    of_cells = [of(lambda x, h=h: jax.pure_callback(h, jax.ShapeDtypeStruct((3,), np.float32), x)) for h in cells]
    assert of_cells[0] != of_cells[1] == of_cells[2]


@pytest.mark.slow
def test_it_is_the_same_in_another_process_order_and_on_another_device():
    models = ['ffn', 'transformer']
    words = [sys.executable, '-c', PRINTED.format(models=models[::-1])]
    environment = {**os.environ, 'PYTHONHASHSEED': '7'}
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=helpers.ROOT, env=environment)
    here = [programs.fingerprint(small.cell(model).problem, 2, 'cpu') for model in models]
    assert done.stdout.split()[::-1] == here
    compiled = programs.compile_programs(small.cell('ffn').problem, 2, jax.devices()[-1])
    assert compiled.fingerprint == here[0]


def test_lanes_of_a_batch_and_every_static_setting_count():
    base = small.cell('ffn').problem
    others = [small.cell('ffn', **changes).problem for changes in ({'threshold': 0.8}, {'ffn.widths': (16, 8)})]
    found = [programs.fingerprint(base, 1, 'cpu'), programs.fingerprint(base, 2, 'cpu')]
    found += [programs.fingerprint(problem, 1, 'cpu') for problem in others]
    assert len(set(found)) == 4
    cells = sweeps.cells_of(small.settings(models='ffn', learning_rate=(1e-3, 1e-2)))
    assert len(cells) == 1  # a traced setting is in no program
