"""Runs the notebooks top to bottom on this Python, in an empty directory, and keeps their outputs in the files.

python -m experiments.notebooks [--name=quickstart]
"""

import importlib.util
import os
import pathlib
import sys
import tempfile
import time
from typing import Any

from absl import flags

from qstr_jax.cli import command_line

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / 'colab'
_NAME = flags.DEFINE_list('name', None, 'Notebooks to run; all by default.')


def execute(path: pathlib.Path) -> Any:
    """The notebook with the outputs of this run, by a fresh kernel of this Python."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            cell.outputs, cell.execution_count = [], None
    manager = nbclient.client.KernelManager(kernel_name='python3')
    manager.kernel_spec.argv = [sys.executable, '-m', 'ipykernel_launcher', '-f', '{connection_file}']
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(notebook, km=manager, timeout=400, resources={'metadata': {'path': folder}})
        try:
            client.execute(env=environment)
        finally:
            manager.shutdown_kernel(now=True)  # a client does not stop a kernel that it was given
    for cell in notebook.cells:
        cell.metadata.pop('execution', None)  # times of day, which would change the file at every run
        if cell.cell_type == 'code':  # warnings tell of this machine's paths
            cell.outputs = [output for output in cell.outputs if output.get('name') != 'stderr']
    return notebook


def run() -> None:
    """Runs and writes the notebooks."""
    if missing := [name for name in ('nbclient', 'nbformat', 'ipykernel') if importlib.util.find_spec(name) is None]:
        raise ValueError(f'{", ".join(missing)} is missing, which runs notebooks: make install EXTRA=notebooks')
    import nbformat

    known = sorted(path.stem for path in FOLDER.glob('*.ipynb'))
    chosen = _NAME.value or known
    if unknown := [name for name in chosen if name not in known]:
        raise ValueError(f'--name={",".join(unknown)}: unknown, one of {", ".join(known)}')
    for name in chosen:
        start = time.monotonic()
        nbformat.write(execute(FOLDER / f'{name}.ipynb'), FOLDER / f'{name}.ipynb')
        print(f'{name}: {time.monotonic() - start:.0f} s')


if __name__ == '__main__':
    command_line.launch(run, used=())
