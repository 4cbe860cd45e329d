"""Tidy tables on disk and back: one directory per sweep, one Parquet file per cell.

    config.json              settings of the sweep
    provenance/RUN.json      versions, device and seconds of each run that added to it
    rows/CELL.parquet        one row per lane
    curves/CELL.parquet      one row per lane and check
    params/CELL/LANE/        trained parameters, where they were asked for

Files appear whole or not at all. Nothing is pickled; a file that is not ours is an error that names it.
"""

import contextlib
import json
import os
import uuid
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from etils import epath

FORMAT = b'1'
FORMAT_KEY = b'qstr_jax_format'
LANE_COLUMNS = ('seed', 'task_seed', 'learning_rate', 'weight_decay')


class ResultsError(Exception):
    """A results directory or file that cannot be used; the message says which, and what to do."""


def write_atomically(path, write):
    """Calls `write(temporary_path)` and moves the file to `path` in one step.

    Raises:
        ResultsError: the disk is full, or the place not writable; what was there before is intact.
    """
    path = epath.Path(path)
    temporary = path.parent / f'.{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp'
    try:
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        raise ResultsError(f'cannot write {path}: {error.strerror or error}') from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_json(path, value):
    """Writes `value` as indented JSON, atomically."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + '\n'
    write_atomically(path, lambda temporary: temporary.write_text(text))


def read_json(path):
    """Reads JSON.

    Raises:
        ResultsError: the file is cut short or is not JSON.
    """
    try:
        return json.loads(epath.Path(path).read_text())
    except (ValueError, OSError) as error:
        raise ResultsError(f'{path} is damaged ({error}): restore it or delete it') from None


def write_table(path, frame):
    """Writes a DataFrame as Parquet, atomically and with the format's version in it."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), FORMAT_KEY: FORMAT})

    def write(temporary):
        with temporary.open('wb') as file:
            pq.write_table(table, file)

    write_atomically(path, write)


def read_table(path):
    """Reads what `write_table` wrote.

    Raises:
        ResultsError: cut short, not Parquet, not ours, or of another version.
    """
    try:
        with epath.Path(path).open('rb') as file:
            table = pq.read_table(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ResultsError(
            f'{path} is damaged ({reason}): delete it and run its cell again'
        ) from None
    found = (table.schema.metadata or {}).get(FORMAT_KEY)
    if found is None:
        raise ResultsError(f'{path} was not written by qstr_jax: move it elsewhere')
    if found != FORMAT:
        raise ResultsError(
            f'{path} has format {found.decode()}, this version reads {FORMAT.decode()}'
        )
    return table.to_pandas()


def cell_path(workdir, kind, cell_id):
    """Where a cell's 'rows' or 'curves' are."""
    return epath.Path(workdir) / kind / f'{cell_id}.parquet'


def open_workdir(workdir):
    """Makes the directories of a sweep and returns its path.

    Raises:
        ResultsError: it is a file, or not writable.
    """
    path = epath.Path(workdir)
    try:
        for kind in 'rows', 'curves', 'provenance':
            (path / kind).mkdir(parents=True, exist_ok=True)
        probe = path / f'.writable-{uuid.uuid4().hex[:8]}'
        probe.write_text('')
        probe.unlink()
    except OSError as error:
        raise ResultsError(
            f'workdir={str(workdir)!r}: must be a directory that can be written ({error.strerror})'
        ) from None
    return path


def settle_config(workdir, config, axes=()):
    """Writes config.json, or checks that the one already there says the same but for `axes`.

    Raises:
        ResultsError: a setting differs; the message lists each with both values.
    """
    path = epath.Path(workdir) / 'config.json'
    if path.exists():
        old = read_json(path)
        different = [
            f'{name}: {old.get(name)!r} there, {config.get(name)!r} now'
            for name in sorted(set(old) | set(config))
            if name not in axes and old.get(name) != config.get(name)
        ]
        if different:
            raise ResultsError(
                f'workdir={str(workdir)!r} holds a sweep with other settings ({"; ".join(different)}): '
                'take another directory'
            )
        for name in axes:
            if isinstance(config.get(name), list):
                config[name] = old[name] + [v for v in config[name] if v not in old[name]]
            elif name == 'num_seeds':
                config[name] = max(old[name], config[name])
    write_json(path, config)


def add(workdir, kind, cell_id, frame, order):
    """Adds rows to a cell's table, sorted by `order`, so that the file does not depend on who came first."""
    path = cell_path(workdir, kind, cell_id)
    if path.exists():
        frame = pd.concat([read_table(path), frame], ignore_index=True)
    write_table(path, frame.sort_values(list(order), ignore_index=True))


def _load(workdir, kind, strict):
    path = epath.Path(workdir)
    if not (path / 'config.json').exists():
        raise ResultsError(f'{str(workdir)!r} is not a results directory: no config.json in it')
    frames = []
    for file in sorted((path / kind).glob('*.parquet')):
        try:
            frames.append(read_table(file))
        except ResultsError as error:
            if strict:
                raise
            warnings.warn(f'left out: {error}', stacklevel=3)
    # A column that only some models have is missing for the others.
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def load(workdir, strict=False):
    """All rows of a sweep: a DataFrame with one row per lane.

    Columns: `model`, `task`, `seq_len`, `sparsity`, `seed`, `threshold`, `samples_to_threshold` (missing if the
    threshold was not reached), `outcome` ('reached', 'censored', 'diverged'), `learner`, `num_samples`, losses,
    and every setting; those of a model are `<model>_<setting>`.

    Args:
        workdir: directory of a sweep.
        strict: raise for a damaged file; otherwise the file is left out with a warning that names it.

    Raises:
        ResultsError: not a results directory, or a damaged file and `strict`.
    """
    return _load(workdir, 'rows', strict)


def load_curves(workdir, strict=False):
    """Train and test loss at every check of every lane; arguments and errors as in `load`.

    Columns: `model`, `task`, `seq_len`, `sparsity`, `threshold`, the lane's, `samples`, `train_loss` (mean since
    the last check), `test_loss`, `test_loss_se` (0 where the whole test set was evaluated; otherwise the
    standard error of the subset's estimate), `is_due` (whether screening asked for the whole set).
    """
    return _load(workdir, 'curves', strict)


def lane_name(lane):
    """Directory name of a lane's parameters; `lane` has the attributes or keys of LANE_COLUMNS."""
    seed, task_seed, rate, decay = (
        lane[name] if not hasattr(lane, name) else getattr(lane, name) for name in LANE_COLUMNS
    )
    return f'seed{int(seed)}-task{int(task_seed)}-lr{rate:g}-wd{decay:g}'
