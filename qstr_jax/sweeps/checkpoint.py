"""States of running lane batches on disk, with Orbax: arrays only, nothing that runs when it is read.

A checkpoint is a folder named by its number of checks; it appears whole (Orbax renames it into place). A batch
that cannot read its checkpoint starts anew and comes to the same rows.
"""

import jax
import numpy as np
from absl import logging
from orbax.checkpoint import v1 as ocp


def _context():
    """Every process saves its own lane batch: no barrier with the others of a `jax.distributed` job."""
    context = ocp.Context()
    if jax.process_count() > 1:
        process = jax.process_index()
        context.multiprocessing.primary_host = process
        context.multiprocessing.active_processes = {process}
        context.multiprocessing.barrier_sync_key_prefix = f'process{process}'
    return context


def save_tree(path, tree):
    """Saves a pytree of arrays at `path`, replacing what is there."""
    with _context():
        ocp.save(path.resolve(), jax.tree.map(np.asarray, jax.device_get(tree)), overwrite=True)


def load_tree(path, abstract_tree):
    """Loads what `save_tree` saved, as NumPy arrays of the shapes in `abstract_tree`."""
    shapes = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), abstract_tree)
    with _context():
        return ocp.load(path.resolve(), shapes)


def save(folder, state_K):
    """Saves the state of a lane batch; older ones go when it is there."""
    number = int(np.max(np.asarray(state_K.checks)))
    path = folder / f'{number:08d}'
    # A NamedTuple is saved as a dict of its leaves, by path.
    save_tree(path, _as_dict(state_K))
    for other in folder.iterdir():
        if other.name != path.name:
            other.rmtree()


def load(folder, abstract_state_K):
    """The newest state in a batch's folder, or None if there is none that can be read."""
    if not folder.exists():
        return None
    for path in sorted(folder.iterdir(), key=lambda p: p.name, reverse=True):
        if not path.name.isdigit():  # what a killed write left
            continue
        try:
            leaves = load_tree(path, _as_dict(abstract_state_K))
        except Exception as error:  # Orbax raises many kinds for a damaged folder; none may stop the sweep
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            logging.warning('checkpoint %s cannot be read (%s): left out', path, reason)
            continue
        structure = jax.tree.structure(abstract_state_K)
        return jax.tree.unflatten(structure, [leaves[name] for name in sorted(leaves)])
    return None


def remove(folder):
    """Removes the checkpoints of a batch that is in the tables."""
    if folder.exists():
        folder.rmtree()


def _as_dict(tree):
    return {f'{i:04d}': leaf for i, leaf in enumerate(jax.tree.leaves(tree))}
