"""Table and figure of what was compiled for accelerators."""

from typing import Any

from qstr_jax.accelerators import store


def write(folder: Any) -> str:
    """Writes them; returns the table.

    Args:
        folder: of the results.
    """
    return f'{len(store.read(folder)["programs"])} programs'
