"""Tidy tables on disk and back: one directory per sweep, one Parquet file per cell.

    config.json              settings of the sweep
    provenance/RUN.json      versions, device and seconds of each run that added to it
    rows/CELL.parquet        one row per lane
    curves/CELL.parquet      one row per lane and check
    params/CELL/LANE/        trained parameters, where they were asked for
    checkpoints/, progress/, errors/, locks/, plan.json   of runs that are going on

Files appear whole or not at all. Nothing is pickled; a file that is not ours is an error that names it.
"""

import warnings

import numpy as np
import pandas as pd
from etils import epath

from qstr_jax.storage import files
from qstr_jax.storage.files import ResultsError

FOLDERS = ('rows', 'curves', 'provenance', 'checkpoints', 'progress', 'errors', 'locks')
# What tells the lanes of a cell apart; the last two are those of fixed-sample learners.
LANE_COLUMNS = ('seed', 'task_seed', 'learning_rate', 'weight_decay', 'budget', 'sample_size')

# Settings that name the points of a sweep: a directory may hold any number of them.
AXES = (
    'models', 'seq_lens', 'sparsity', 'num_seeds', 'learning_rate', 'weight_decay', 'learners', 'budget', 'num_samples',
)  # fmt: skip
# What may differ between two runs into one directory without changing what a row means.
HARMLESS = ('lanes_per_batch', 'probes', 'save_params')
# So many differences of two sweeps are told.
SHOWN = 6


def cell_path(workdir, kind, cell_id):
    """Where a cell's 'rows' or 'curves' are."""
    return epath.Path(workdir) / kind / f'{cell_id}.parquet'


def open_workdir(workdir):
    """Makes the directories of a sweep, removes what killed writes left, and returns its path.

    Raises:
        ResultsError: it is a file, or not writable.
    """
    path = epath.Path(workdir)
    try:
        for kind in FOLDERS:
            (path / kind).mkdir(parents=True, exist_ok=True)
        probe = files.temporary_path(path / 'writable')
        probe.write_text('')
        probe.unlink()
    except OSError as error:
        raise ResultsError(
            f'workdir={str(workdir)!r}: must be a directory that can be written ({error.strerror})'
        ) from None
    for folder in (path, *(path / kind for kind in FOLDERS)):
        files.remove_leftovers(folder)
    return path


def settle_config(workdir, config):
    """Writes config.json, or checks that the one already there says the same and adds new points of axes.

    Raises:
        ResultsError: a setting that is no axis differs; the message lists them with both values.
    """
    path = epath.Path(workdir) / 'config.json'
    if path.exists():
        config = _joined(workdir, files.read_json(path), config)
    files.write_json(path, config)


def _joined(workdir, old, config):
    """Settings of two sweeps as one; raises ResultsError if they are not two parts of one."""
    different = [
        f'{name}: {old.get(name)!r} there, {config.get(name)!r} now'
        for name in sorted(set(old) | set(config))
        if name not in AXES + HARMLESS and old.get(name) != config.get(name)
    ]
    different += [f'{name}: only on one side' for name in AXES if (name in old) != (name in config)]
    if different:
        more = [f'{len(different) - SHOWN} more'] if len(different) > SHOWN else []
        raise ResultsError(
            f'workdir={str(workdir)!r} holds a sweep with other settings ({"; ".join(different[:SHOWN] + more)}): '
            'take another directory'
        )
    return {**config, **{name: _union(old[name], config[name]) for name in AXES if name in old}}


def _union(old, new):
    return old + [value for value in new if value not in old] if isinstance(old, list) else max(old, new)


def add(workdir, cell_id, rows, curves):
    """Adds lanes to a cell's tables, in sorted order, so that the files do not depend on who came first.

    A lane that has a row already keeps it and its curve. A curve without a row, as a killed write leaves it, is
    replaced. The caller holds the cell's lock.
    """
    rows_path, curves_path = (cell_path(workdir, kind, cell_id) for kind in ('rows', 'curves'))
    if rows_path.exists():
        old = files.read_table(rows_path)
        known = _lanes(old)
        rows, curves = _without(rows, known), _without(curves, known)
        if rows.empty:
            return
        rows = pd.concat([old, rows], ignore_index=True)
    if curves_path.exists():
        old = _without(files.read_table(curves_path), _lanes(curves))
        curves = pd.concat([old, curves], ignore_index=True)
    # Curves first: a row is the sign that its lane is complete.
    files.write_table(curves_path, curves.sort_values([*lane_columns(curves), 'samples'], ignore_index=True))
    files.write_table(rows_path, rows.sort_values(lane_columns(rows), ignore_index=True))


def lane_columns(frame):
    """Those of LANE_COLUMNS that a table has."""
    return [name for name in LANE_COLUMNS if name in frame.columns]


def _lanes(frame):
    return set(frame[lane_columns(frame)].itertuples(index=False, name=None))


def _load(workdir, kind, strict):
    path = epath.Path(workdir)
    if not (path / 'config.json').exists():
        raise ResultsError(f'{str(workdir)!r} is not a results directory: no config.json in it')
    frames = []
    for file in sorted((path / kind).glob('*.parquet')):
        try:
            frames.append(files.read_table(file))
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
    """Directory name of a lane's parameters; `lane` is a learner's `Lane` or a row."""
    values = lane._asdict() if hasattr(lane, '_asdict') else dict(lane)
    name = f'seed{int(values["seed"])}-task{int(values["task_seed"])}'
    name += f'-lr{values["learning_rate"]:g}-wd{values["weight_decay"]:g}'
    # Both are there in the tables of fixed-sample learners; a table of several cells has them empty for the others.
    if 'sample_size' in values and values['sample_size'] == values['sample_size']:
        name += f'-R{values["budget"]:g}-n{int(values["sample_size"])}'
    return name


def merge(sources, destination):
    """Merges result directories of the same settings into `destination`, new or one of them; returns its rows.

    A lane that several directories hold is taken from the first of them. Rows of one lane, backend and
    `lanes_per_batch` must be equal; rows of different ones may differ by rounding, which is warned of. Trained
    parameters and checkpoints stay where they are.

    Raises:
        ResultsError: other settings, a damaged file, rows that contradict each other, or a destination that holds
            other results; nothing is written then.
    """
    sources = [epath.Path(source) for source in sources]
    if (epath.Path(destination) / 'config.json').exists() and epath.Path(destination) not in sources:
        raise ResultsError(f'destination={str(destination)!r} holds results: name it among the sources too')
    config = files.read_json(sources[0] / 'config.json')
    for source in sources[1:]:
        config = _joined(source, files.read_json(source / 'config.json'), config)
    tables, plan = {}, {}
    for name in sorted({path.name for source in sources for path in (source / 'rows').glob('*.parquet')}):
        tables[name] = _merge_cell(name, [s for s in sources if (s / 'rows' / name).exists()])
    for path in [source / 'plan.json' for source in sources if (source / 'plan.json').exists()]:
        for cell_id, names in files.read_json(path).items():
            plan[cell_id] = list(dict.fromkeys([*plan.get(cell_id, []), *names]))
    runs = [path for source in sources for path in (source / 'provenance').glob('*.json')]
    runs = {path.name: files.read_json(path) for path in runs}
    target = open_workdir(destination)
    files.write_json(target / 'config.json', config)
    for name, (rows, curves) in tables.items():
        files.write_table(target / 'curves' / name, curves)
        files.write_table(target / 'rows' / name, rows)
    files.write_json(target / 'plan.json', plan)
    for name, run in runs.items():
        files.write_json(target / 'provenance' / name, run)
    return load(target)


def _merge_cell(name, sources):
    """Rows and curves of one cell, each lane from the first source that has it."""
    rows = files.read_table(sources[0] / 'rows' / name)
    curves = files.read_table(sources[0] / 'curves' / name)
    for source in sources[1:]:
        other = files.read_table(source / 'rows' / name)
        _check_same(name, rows, other, source)
        known = _lanes(rows)
        more = files.read_table(source / 'curves' / name)
        rows, curves = (
            pd.concat([mine, _without(theirs, known)], ignore_index=True)
            for mine, theirs in ((rows, other), (curves, more))
        )
    lane = lane_columns(rows)
    return (
        rows.sort_values(lane, ignore_index=True),
        curves.sort_values([*lane, 'samples'], ignore_index=True),
    )


def _without(frame, lanes):
    keys = frame[lane_columns(frame)].itertuples(index=False, name=None)
    return frame[np.array([key not in lanes for key in keys], bool)]


def _is_same(a, b):
    return pd.isna(a) and pd.isna(b) if pd.isna(a) or pd.isna(b) else a == b


def _check_same(name, rows, other, source):
    """Raises ResultsError where two rows of a lane differ though they were computed in the same way."""
    lane = lane_columns(rows)
    both = rows.merge(other, on=lane, suffixes=('', ' there'))
    for _, row in both.iterrows():
        pairs = {c: (row[c], row[f'{c} there']) for c in rows.columns if f'{c} there' in both.columns}
        different = [c for c, (a, b) in pairs.items() if not _is_same(a, b)]
        if not different:
            continue
        what = f'{name.removesuffix(".parquet")}, {lane_name(row)}: {", ".join(different)} in {source}'
        if {'backend', 'lanes_per_batch'} & set(different):
            warnings.warn(f'{what} differ by backend or lanes_per_batch: the first is kept', stacklevel=4)
        else:
            raise ResultsError(f'{what} contradict the same lane elsewhere: nothing was merged')
