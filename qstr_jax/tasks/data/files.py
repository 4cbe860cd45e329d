"""Files of installed packages: found without importing the package, and checked by a digest of what was read."""

import hashlib
import importlib.util
import pathlib

import numpy as np


def folder(task: str, package: str) -> pathlib.Path:
    """Where a package is installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ValueError(f'task={task!r}: its package {package} is not installed; make install EXTRA=data')
    return pathlib.Path(spec.origin).parent


def check(task: str, arrays: dict[str, np.ndarray], digest: str) -> None:
    """Raises ValueError unless the arrays have the digest that the task's file names."""
    found = hashlib.sha256()
    for name, array in arrays.items():
        found.update(f'{name} {array.dtype} {array.shape}'.encode())
        found.update(np.ascontiguousarray(array).data)
    if found.hexdigest()[: len(digest)] != digest:
        raise ValueError(
            f'task={task!r}: the installed data differ from those of docs/data.md; make install EXTRA=data'
        )
