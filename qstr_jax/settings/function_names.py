"""Names of functions that are given as settings, by which columns and ids tell them apart, and where they are from.

A function of a module has its plain name. Functions that one definition makes several of, such as closures, are told
apart by what they hold: `mine(scale=5)`.
"""

import functools
import hashlib
import inspect
import sys
import types
from typing import Any

import numpy as np

# Depth to which functions within functions are named, since a function may hold itself.
_DEPTH = 3


def name_of(thing: Any, depth: int = _DEPTH) -> str:
    """The name of a function, or of an object that is called like one, with what it holds."""
    if isinstance(thing, functools.partial):
        name = name_of(thing.func, depth)
    else:
        name = str(getattr(thing, '__name__', type(thing).__name__))
    held = {} if _is_of_module(thing) or not depth else _held(inspect.unwrap(thing))
    return f'{name}({", ".join(f"{key}={_text(value, depth - 1)}" for key, value in held.items())})' if held else name


def plain(value: Any) -> Any:
    """A setting's value as JSON and tables hold it: the name of what has one, and tuples of numbers as '120,1000'."""
    if isinstance(value, tuple):
        return ','.join(map(str, value))
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return str(getattr(value, 'name', None) or name_of(value))


def module_of(thing: Any) -> str:
    """The name of the module that a class, a function, or the function of a link was defined in."""
    function = thing if isinstance(thing, type) else getattr(thing, 'apply', thing)
    return str(getattr(function, '__module__', None) or type(function).__module__)


def is_ours(thing: Any) -> bool:
    """Whether something was defined in this package."""
    return module_of(thing).startswith('qstr_jax.')


def _is_of_module(thing: Any) -> bool:
    """Whether a module has this very thing under its name."""
    module = sys.modules.get(getattr(thing, '__module__', None) or '')
    return thing is getattr(module, getattr(thing, '__qualname__', ''), not thing)


def _held(thing: Any) -> dict[str, Any]:
    """What differs between functions of one definition, by name."""
    if isinstance(thing, functools.partial):
        return {**{str(i): value for i, value in enumerate(thing.args)}, **thing.keywords}
    if isinstance(thing, types.MethodType):
        return dict(getattr(thing.__self__, '__dict__', {}))
    if isinstance(thing, types.FunctionType):
        arguments = inspect.signature(thing).parameters.items()
        defaults = {name: one.default for name, one in arguments if one.default is not one.empty}
        return {**defaults, **inspect.getclosurevars(thing).nonlocals}
    return {} if isinstance(thing, type) else dict(getattr(thing, '__dict__', {}))


def _text(value: Any, depth: int) -> str:
    """A value within a name: a short one as it is, any other as a digest."""
    if value is None or isinstance(value, (bool, int, float, str)):
        text = str(value)
        return text if len(text) <= 20 else _digest(text.encode())
    if hasattr(value, 'shape') and hasattr(value, 'dtype') and value.dtype != object:
        array = np.asarray(value)
        return _digest(f'{array.dtype}{array.shape}'.encode() + array.tobytes())
    if isinstance(value, (tuple, list)):
        return f'({",".join(_text(one, depth) for one in value)})'
    if callable(value):
        return name_of(value, max(0, depth))
    text = repr(value)
    return type(value).__name__ if ' at 0x' in text else _digest(text.encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
