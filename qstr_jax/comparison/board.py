"""The board: a folder for each entry with `entry.json`, `rows.parquet` and the source of its plugins."""

import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from etils import epath

from qstr_jax import failures, sweeps
from qstr_jax.analysis import formats
from qstr_jax.comparison import card, entries
from qstr_jax.comparison import suite as suites
from qstr_jax.outside import LEARNER
from qstr_jax.settings import registry
from qstr_jax.storage import files, merge, names, provenance, records

# What is compared when a row is made again.
_COMPARED = ('outcome', 'num_samples', 'train_loss', 'test_loss')
# Columns that our own rows always have, since lanes cannot be run again without them.
_OF_OURS = ('batch_size', 'check_every', 'learning_rate', 'lanes_per_batch')
# What the README of an entry says where its builder has no docstring.
_UNSAID = 'What it is.'
_README = """# {entry}

{about}

{measured} on the suite {suite}. Check it, best in a container, with

    python -m qstr_jax board check board/{folder}
"""


def submit(
    workdir: Any,
    board: Any,
    *,
    suite: str,
    plugins: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    source: str = '',
) -> pathlib.Path:
    """Writes the folder of an entry: its rows, what made them and the source of its plugins."""
    points = suites.get(suite)
    rows = entries.of_directory(workdir, points)
    model, folder = _target(rows['model'], workdir, board, suite)
    for (task, seq_len), seeds in rows.groupby(['task', 'seq_len'])['seed']:
        if len(seeds) < points.num_seeds:
            raise ValueError(
                f'workdir={str(workdir)!r}: has {len(seeds)} of {points.num_seeds} lanes of {task}, N = {seq_len}; '
                'give the same command without --submit first'
            )
    sources = _sources(plugins)
    if rows['learner'].ne(LEARNER).any():
        _check_complete(model, sources)
    kept = ('command', 'git_commit', 'python', 'device', 'packages')
    runs = [{name: run[name] for name in kept} for run in provenance.load(workdir)]
    entry = {
        'entry': model, 'suite': points.version, 'model': model, 'settings': dict(settings or {}),
        'plugins': list(plugins), 'source': source, 'runs': runs,
    }  # fmt: skip
    try:
        _check_rows(rows, entry, points)
    except ValueError as error:
        raise ValueError(f'workdir={str(workdir)!r}: has {error}') from None
    files.make_folder(folder)
    for name, source_code in sources:
        files.write_bytes(folder / f'{name}.py', source_code)
    files.write_table(folder / 'rows.parquet', rows)
    files.write_json(folder / 'entry.json', entry)
    is_outside = bool(rows['learner'].eq(LEARNER).all())
    files.write_text(folder / 'README.md', _readme(model, folder.name, points.version, is_outside))
    try:
        read(folder)
    except files.ResultsError:
        shutil.rmtree(folder)
        raise
    return folder


def _readme(model: str, folder: str, suite: str, is_outside: bool) -> str:
    """The README of an entry, which its author may go on with."""
    known = registry.entries().get(model)
    about = (known.summary if known and known.kind == 'model' else '') or _UNSAID
    measured = 'Trained by a program of its own' if is_outside else 'Measured by `python -m qstr_jax compare`'
    return _README.format(entry=model, folder=folder, suite=suite, about=about, measured=measured)


def check_before(models: Sequence[str], workdir: Any, board: Any, *, suite: str, plugins: Sequence[str] = ()) -> None:
    """Raises ValueError, before anything runs, where `submit` would refuse what `compare` leaves."""
    is_there = (epath.Path(workdir) / 'config.json').exists()
    found = entries.of_directory(workdir, suites.get(suite))['model'] if is_there else []
    model, _ = _target([*found, *models], workdir, board, suite)
    _check_complete(model, _sources(plugins))


def _target(models: Iterable[str], workdir: Any, board: Any, suite: str) -> tuple[str, pathlib.Path]:
    """The one model of a submission, and its folder, which is new."""
    found = list(dict.fromkeys(models))
    if len(found) != 1:
        raise ValueError(f'workdir={str(workdir)!r}: has rows of {len(found)} models ({", ".join(found)}); submit one')
    folder = pathlib.Path(names.inside(board, _folder(found[0], suite)))
    if folder.exists():
        raise ValueError(f'{folder} is there already: remove it first, or give the model another name')
    return found[0], folder


def _sources(plugins: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
    """Names and source code of plugins, each a module of one file."""
    specs = {name: None if '.' in name else importlib.util.find_spec(name) for name in plugins}
    for name, spec in specs.items():
        if spec is None or not spec.has_location or spec.submodule_search_locations is not None:
            raise ValueError(f'plugins={name!r}: a submission takes modules of one file')
    return tuple((name, pathlib.Path(str(spec and spec.origin)).read_bytes()) for name, spec in specs.items())


@functools.cache
def _check_complete(model: str, sources: tuple[tuple[str, bytes], ...]) -> None:
    """Raises ValueError unless the sources alone register a model, in a new process."""
    code = f'from qstr_jax.models import registered\n[*map(__import__, {[name for name, _ in sources]!r})]\n'
    command = [sys.executable, '-P', '-c', f'{code}registered.REGISTRY.get({model!r})']
    with tempfile.TemporaryDirectory() as folder:
        for name, source_code in sources:
            (pathlib.Path(folder) / f'{name}.py').write_bytes(source_code)
        paths = (pathlib.Path(folder).resolve(), pathlib.Path(__file__).parents[2])
        environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, paths))}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1]
        raise ValueError(f'submit: the folder alone does not make {model!r} ({last}): name its module in --plugins')


def missing(rows: pd.DataFrame, suite: str) -> list[str]:
    """The points of a suite without rows, such as 'qstr, N = 32'."""
    points, there = suites.get(suite), {*zip(rows['task'], rows['seq_len'], strict=True)}
    return [f'{task.name}, N = {N}' for task in points.tasks for N in points.seq_lens if (task.name, N) not in there]


def _folder(entry: str, suite: str) -> str:
    """The name of an entry's folder; it may have one for each suite."""
    return entry if suite == 'quick' else f'{entry}_{suite}'


def read(folder: Any) -> tuple[dict[str, Any], pd.DataFrame]:
    """What a folder says about its entry, and its rows; both are checked, and none of it is run."""
    folder = pathlib.Path(os.path.abspath(folder))  # since the folder's name counts, also if it is given as '.'
    files.check_no_link(folder)
    entry = records.read(folder / 'entry.json', 'entry')
    path = folder / 'rows.parquet'
    rows = files.read_table(names.inside(folder, 'rows.parquet'), kind='entry')
    known = {(_folder(entry['entry'], name), one.version): one for name, one in suites.SUITES.items()}
    points = known.get((folder.name, entry['suite']))
    if points is None or tuple(rows.columns) != entries.COLUMNS or rows.empty:
        raise files.damaged_table(path, 'not of this entry and a known suite')
    try:
        entries.check_values(rows)
        _check_rows(rows, entry, points)
    except Exception as error:  # a stranger's columns may hold anything, so pandas may raise anything
        raise files.damaged_table(path, error) from None
    return entry, rows


def _check_rows(rows: pd.DataFrame, entry: Mapping[str, Any], points: suites.Suite) -> None:
    """Raises ValueError for rows that no run of the suite leaves."""
    shared = _shared(rows, points)
    is_reached, one_check = rows['outcome'].eq('reached'), rows['batch_size'] * rows['check_every']
    off_check = rows['num_samples'] % one_check
    size = rows.groupby(['task', 'seq_len'])['seed'].transform('size')
    rules = {
        'it is of another entry, suite or model':
            rows['entry'].eq(entry['entry']) & rows['suite'].eq(entry['suite']) & rows['model'].eq(entry['model']),
        'the suite has no such outcome': rows['outcome'].isin(('reached', 'censored', 'diverged')),
        f'not each of the seeds 0 to {points.num_seeds - 1} is there once': rows['seed'].isin(range(points.num_seeds))
            & ~rows.duplicated(['task', 'seq_len', 'seed']) & size.eq(points.num_seeds),
        'num_samples is not from 1 to max_samples': rows['num_samples'].between(1, rows['max_samples']),
        'num_samples is no multiple of batch_size × check_every':
            off_check.eq(0) | off_check.isna() | rows['num_samples'].eq(rows['max_samples']),
        'it is censored before its budget is used up':
            rows['outcome'].ne('censored') | (rows['num_samples'] + one_check.fillna(0)).ge(rows['max_samples']),
        'samples_to_threshold is not num_samples': ~is_reached | rows['samples_to_threshold'].eq(rows['num_samples']),
        'test_loss is not below the threshold':
            ~(is_reached & shared['threshold_on'].eq('loss')) | rows['test_loss'].lt(rows['threshold']),
        f'one of {", ".join(_OF_OURS)} is missing':
            rows['learner'].eq(LEARNER) | rows[list(_OF_OURS)].notna().all(axis=1),
        'the suite has no such point': rows.index.isin(points.rows_of(rows.assign(**shared)).index),
    }  # fmt: skip
    for why, is_good in rules.items():
        if not is_good.all():
            task, seq_len, seed = rows.loc[~is_good, ['task', 'seq_len', 'seed']].iloc[0]
            raise ValueError(f'rows that no run of the suite leaves, such as {task}, N = {seq_len}, seed {seed}: {why}')


def all_rows(board: Any) -> pd.DataFrame:
    """The rows of all entries of a board, as `reference.parquet` has them."""
    found = [read(path.parent)[1] for path in sorted(pathlib.Path(board).glob('*/entry.json'))]
    if not found:
        raise ValueError(f'{board}: holds no entries of a board; give the folder of all of them, such as board')
    return pd.concat(found, ignore_index=True)


class Again(NamedTuple):
    """A lane that was run again."""

    text: str  # whether it is the same bit for bit, or what differs by how much
    holds: bool  # whether it ends in the same way, after the same samples or one check more or less


def check(folder: Any, num_lanes: int = 2) -> list[Again]:
    """Runs some lanes of an entry again; none where all are of training loops outside.

    This imports the plugins of the folder, which are a stranger's code.
    """
    if not (pathlib.Path(folder) / 'entry.json').exists():
        raise ValueError(f'{folder}: has no entry.json; give a folder of board/, such as board/transformer')
    entry, rows = read(folder)
    readme = pathlib.Path(folder) / 'README.md'
    if readme.exists() and _UNSAID.encode() in files.read_bytes(readme, 'text').splitlines():
        raise ValueError(f'{readme}: still has the line {_UNSAID!r}; say what it is and who made it')
    points = next(one for one in suites.SUITES.values() if one.version == entry['suite'])
    sys.path.insert(0, str(pathlib.Path(folder).resolve()))
    for name in entry['plugins']:
        failures.import_plugin(name)
    suites.check_of_models(entry['settings'])
    lanes = rows[rows['seed'].eq(0) & rows['learner'].ne(LEARNER)].sort_values('num_samples').head(num_lanes)
    return [_again(points, row, entry['settings']) for row in lanes.to_dict('records')]


def _again(points: suites.Suite, row: Mapping[Any, Any], settings: Mapping[str, Any]) -> Again:
    with tempfile.TemporaryDirectory() as workdir:
        sweep = points.again(row['task'], row, **settings)
        made = sweeps.run(sweep, workdir, sweeps.Options(progress=False, num_devices=1)).iloc[0]
    pairs = {name: (row[name], made[name]) for name in _COMPARED}
    different = [f'{name} {one} now {other}' for name, (one, other) in pairs.items() if not merge.is_same(one, other)]
    text = f'{row["task"]}, N = {row["seq_len"]}, seed 0: {", ".join(different) or "the same bit for bit"}'
    one_check = row['batch_size'] * row['check_every']
    is_near = abs(row['num_samples'] - made['num_samples']) <= one_check
    return Again(text, holds=bool(row['outcome'] == made['outcome'] and is_near))


def pictures(board: Any) -> dict[str, bytes]:
    """A picture of each suite that has entries, by file name: all entries, a line each."""
    rows = all_rows(board)
    return {
        f'{points.version}.png': card.drawn([task.name for task in points.tasks], own)
        for points in suites.SUITES.values()
        if len(own := rows[rows['suite'] == points.version])
    }


def page(board: Any, shown: Collection[str] = ()) -> str:
    """The page of a board: a table for each task, sorted as `plots.ranked` says, and no score over tasks.

    `shown` names the `pictures` that lie in the folder `board` beside the page.
    """
    rows = all_rows(board)
    parts = ['# The board', _ABOUT]
    for points in suites.SUITES.values():
        own = rows[rows['suite'] == points.version]
        if (name := f'{points.version}.png') in shown:
            parts.append(f'![All entries of {points.version}](board/{name})')
        for task in points.tasks if len(own) else ():
            lanes = own[own['task'] == task.name]
            parts += [f'## {task.name}, {points.version}', f'It {task.about}; samples until {card.goal(task)}.']
            parts.append(formats.markdown(card.table(card.lines_of(lanes, points.seq_lens), points.seq_lens)))
    return '\n\n'.join(parts) + '\n'


_ABOUT = """Training samples to a threshold; the learning rate of each entry is chosen at each point on another seed.
`≥` is a bound: the budget was used up; `~` is a mean of one to three checks. `–` under an N was not run; under state
size the model names none. Exponents of N have 95 % intervals, or say why there is none. Lines are sorted by the largest
N at which lanes learn, and there by how many do and from how many samples. Entries see the same prompts, so two of them
are compared lane by lane: `python -m qstr_jax compare` says what is significant. There is no score over tasks.
[CONTRIBUTING](../CONTRIBUTING.md) says how to add yours."""


def _shared(rows: pd.DataFrame, points: suites.Suite) -> dict[str, Any]:
    """The columns that all rows of a suite share and entries leave out."""
    task_on = {task.name: task.threshold_on for task in points.tasks}
    return {
        'test_task': rows['task'], 'task_seed': 0, 'test_samples': points.test_samples,
        'threshold_on': rows['task'].map(task_on),
    }  # fmt: skip
