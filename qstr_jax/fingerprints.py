"""Digests of traced programs: equal for programs that compute the same by the same steps, in any process.

They leave out what does not change a result: names of functions, places in files, devices, and which parts of a program
JAX found in its caches and shares.
"""

import functools
import hashlib
import inspect
import pathlib
import re
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

# Parameters of equations that say where something runs, or what it is called.
_IGNORED = re.compile(r'name|.*(sharding|layout|mesh)s?|compiler_options_kvs|inline|keep_unused')
_ADDRESS = re.compile(r' at 0x[0-9a-f]+')


def of(*programs: ClosedJaxpr) -> str:
    """Twelve hexadecimal digits that depend on every step and constant of some programs."""
    known: dict[int, str] = {}
    return _sha(*(_of_closed(program, known) for program in programs))[:12]


def _sha(*parts: str) -> str:
    return hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _of_closed(closed: ClosedJaxpr, known: dict[int, str]) -> str:
    return _sha(_of_jaxpr(closed.jaxpr, known), *map(_of_array, closed.consts))


def _of_jaxpr(jaxpr: Jaxpr, known: dict[int, str]) -> str:
    """The digest of a part of a program; `known` has those of parts that occur again, by their identity."""
    if id(jaxpr) not in known:
        numbers: dict[Any, int] = {}

        def bound(variable: Any) -> str:
            numbers[variable] = len(numbers)
            return _of_type(variable.aval)

        def read(atom: Any) -> str:
            if isinstance(atom, Literal):
                return f'{_of_array(atom.val)}{_of_type(atom.aval)}'
            return str(numbers[atom])

        lines = [' '.join(map(bound, (*jaxpr.constvars, *jaxpr.invars)))]
        for eqn in jaxpr.eqns:
            if eqn.primitive.name.endswith('callback'):
                lines.append(_of_host(eqn.params['callback']))
            params = (f'{k}={_of_value(v, known)}' for k, v in sorted(eqn.params.items()) if not _IGNORED.fullmatch(k))
            lines.append(' '.join([eqn.primitive.name, *map(read, eqn.invars), *params, *map(bound, eqn.outvars)]))
        known[id(jaxpr)] = _sha(*lines, ' '.join(map(read, jaxpr.outvars)))
    return known[id(jaxpr)]


def _of_host(callback: Any) -> str:
    """A digest of the function of a callback, which no trace shows: of its file, or in a notebook of its code."""
    function = getattr(callback, 'callback_func', callback)
    while isinstance(function, functools.partial) or hasattr(function, '__wrapped__'):
        function = function.func if isinstance(function, functools.partial) else function.__wrapped__
    code = getattr(function, '__code__', None)
    try:
        return _sha(pathlib.Path(str(inspect.getsourcefile(code or type(function)))).read_text())
    except (OSError, TypeError):  # a notebook's cell is no file, and C has no source
        return _sha(code.co_code.hex(), _ADDRESS.sub('', str(code.co_consts)), str(code.co_names)) if code else ''


def _of_type(aval: Any) -> str:
    shape = ','.join(map(str, getattr(aval, 'shape', ())))
    return f'{getattr(aval, "dtype", aval)}[{shape}]{"~" * getattr(aval, "weak_type", False)}'


def _of_value(value: Any, known: dict[int, str]) -> str:
    """The text of an equation's parameter."""
    if isinstance(value, ClosedJaxpr):
        return _of_closed(value, known)
    if isinstance(value, Jaxpr):
        return _of_jaxpr(value, known)
    if isinstance(value, (tuple, list)):
        return f'({",".join(_of_value(one, known) for one in value)})'
    if isinstance(value, (np.ndarray, jax.Array)):
        return _of_array(value)
    if isinstance(value, (set, frozenset)):  # their order may differ between processes
        return f'{{{",".join(sorted(_of_value(one, known) for one in value))}}}'
    if callable(value):  # such as the rule of a derivative, which is traced where it is used
        return type(value).__name__
    return _ADDRESS.sub('', str(value))


def _of_array(value: Any) -> str:
    """The type, the shape and a digest of the numbers of a constant."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    return f'{array.dtype}{array.shape}{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}'
