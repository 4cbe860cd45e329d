"""Studies: a sweep for each value of settings that are no axis of one (heads, widths, d_e), and tables over folders.

    workdir/num_heads=1/, workdir/num_heads=2/, …      each a results directory of its own

A folder is a results directory if it holds a config.json. Only tables are known here, as in `results`.
"""

import itertools
import pathlib
import re
from collections.abc import Mapping

import pandas as pd

from qstr_jax.storage import files, results

_SECONDS = ('folder', 'cell', 'model', 'task', 'seq_len', 'sparsity', 'device', 'lanes', 'wall_seconds',
            'compile_seconds')  # fmt: skip


def points(axes: Mapping) -> dict[str, dict]:
    """The product of `axes` (setting → values) as folder name → settings of that point.

        points({'num_heads': (1, 2)}) == {'num_heads=1': {'num_heads': 1}, 'num_heads=2': {'num_heads': 2}}

    Raises:
        ValueError: an axis is empty, or two points would share a folder.
    """
    for name, values in axes.items():
        if not len(values):
            raise ValueError(f'{name}=(): give at least one value')
    chosen = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    named = {','.join(f'{name}={_text(value)}' for name, value in point.items()): point for point in chosen}
    if len(named) < len(chosen):
        raise ValueError(f'axes {dict(axes)}: a value stands there twice')
    return named


def _text(value) -> str:
    """A value as a part of a folder's name; tuples as '60x500'."""
    text = 'x'.join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    return re.sub(r'[^\w.+-]', '_', text)


def find(workdir) -> list[pathlib.Path]:
    """The results directories at or below a directory, sorted; empty if there are none.

    Raises:
        results.ResultsError: there is no such directory.
    """
    workdir = pathlib.Path(workdir)
    if not workdir.is_dir():
        raise results.ResultsError(f'{str(workdir)!r}: no such directory')
    return sorted(path.parent for path in workdir.rglob('config.json'))


def load(workdir) -> pd.DataFrame:
    """All rows below a directory, with a column `folder` (relative to it); see `results.load`."""
    return _load(workdir, results.load)


def load_curves(workdir) -> pd.DataFrame:
    """All curves below a directory, with `folder` and the settings in which the folders differ; see `varied`."""
    return _load(workdir, results.load_curves)


def _load(workdir, load_one) -> pd.DataFrame:
    folders = find(workdir)
    settings = varied(folders)
    frames = []
    for folder in folders:
        frame = load_one(folder)
        new = {name: value for name, value in settings[folder].items() if name not in frame.columns}
        frames.append(frame.assign(folder=str(folder.relative_to(workdir)), **new) if len(frame) else frame)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def varied(folders) -> dict[pathlib.Path, dict]:
    """Per folder the settings of config.json that are no axis of a sweep and not the same in all folders."""
    configs = {folder: files.read_json(folder / 'config.json') for folder in folders}
    names = sorted(
        name
        for name in set().union(*configs.values())
        if name not in results.AXES + results.HARMLESS
        and len({str(config.get(name)) for config in configs.values()}) > 1
    )
    return {folder: {name: _scalar(config.get(name)) for name in names} for folder, config in configs.items()}


def _scalar(value):
    return _text(value) if isinstance(value, list) else value


def seconds(workdir) -> pd.DataFrame:
    """Seconds spent per cell at or below a directory, from `provenance/`.

    Returns:
        One row per cell and device: folder, cell, model, task, seq_len, sparsity, device, lanes, wall_seconds and
        compile_seconds (sums over lane batches, those of stopped runs included), seconds_per_lane. The machine may have
        been busy with other work.
    """
    entries = [
        {'folder': str(folder.relative_to(workdir)), 'device': run.get('device', '?'), **batch}
        for folder in find(workdir)
        for path in sorted((folder / 'provenance').glob('*.json'))
        for run in [files.read_json(path)]
        for batch in run.get('batches', [])
    ]
    if not entries:
        return pd.DataFrame(columns=[*_SECONDS, 'seconds_per_lane'])
    frame = pd.DataFrame(entries)
    # A batch that was stopped and went on later counts its lanes once.
    lanes = frame.explode('seeds').groupby(['folder', 'cell', 'device'])['seeds'].nunique().rename('lanes')
    sums = frame.groupby(['folder', 'cell', 'device'])[['wall_seconds', 'compile_seconds']].sum()
    frame = sums.join(lanes).reset_index()
    parts = frame['cell'].str.extract(r'^(?P<model>.+)-(?P<task>[^-]+)-N(?P<seq_len>\d+)-q(?P<sparsity>\d+)-[^-]+$')
    frame = frame.join(parts.astype({'seq_len': 'Int64', 'sparsity': 'Int64'}))[list(_SECONDS)]
    return frame.assign(seconds_per_lane=frame['wall_seconds'] / frame['lanes'])
