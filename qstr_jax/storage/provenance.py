"""What made the rows: versions, device, command and seconds, beside the rows and never in them."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import pandas as pd
from etils import epath

import qstr_jax
from qstr_jax.storage import files, lane_keys, names, records, results, source_code

PACKAGES = ('jax', 'jaxlib', 'flax', 'optax', 'chex', 'orbax-checkpoint', 'numpy', 'pandas', 'pyarrow')
# The packages that programs depend on, besides this one.
_OF_PROGRAMS = ('jax', 'jaxlib', 'flax', 'optax')

# A tree is clean if nothing in it has changed but results.
CODE = (':(top)', ':(top,exclude)experiments/results')


def describe_device() -> str:
    """The device in words, as runs print it: platform, kind and how many."""
    devices = jax.local_devices()
    kind = devices[0].device_kind
    if devices[0].platform == 'cpu':
        kind = f'{_cpu_model()}, {os.cpu_count()} cores'
    return f'{devices[0].platform} ({kind}) x {len(devices)}'


def _cpu_model() -> str:
    """What Linux calls the CPU: another one may round differently, and rows then differ in bits."""
    try:
        lines = pathlib.Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        lines = []
    found = (line.partition(':')[2].strip() for line in lines if line.startswith('model name'))
    return next(found, platform.machine())


def git_commit() -> str | None:
    """Commit of the package's checkout, with '+' if it was changed since; None outside a checkout.

    A package that is installed below another project's folder is no part of that project's commits.

    Modules that are not added count as changes. Changed results do not: else the first of two runs into committed
    directories would spoil the second's tree.
    """

    def git(*words: str) -> str:
        command = ['git', '-C', str(pathlib.Path(qstr_jax.__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git('ls-files', '--error-unmatch', '__init__.py')
        is_changed = git('status', '--porcelain', '--untracked-files=no', '--', *CODE)
        is_added = git('ls-files', '--others', '--exclude-standard', '--', ':(top)*.py')
        return git('rev-parse', 'HEAD') + ('+' if is_changed or is_added else '')
    except (OSError, subprocess.SubprocessError):
        return None


def _portable(word: str) -> str:
    """A word of a command line without folders of this machine.

    Paths become relative to the repository or to the present folder; of any other absolute path only the name stays.
    """
    option, is_option, value = word.partition('=') if word.startswith('-') else ('', '', word)
    path = pathlib.Path(value)
    if not path.is_absolute():
        return word
    roots = (pathlib.Path(qstr_jax.__file__).parents[1], pathlib.Path.cwd())
    inside = [path.relative_to(root) for root in roots if path.is_relative_to(root)]
    return f'{option}{is_option}{inside[0] if inside else path.name}'


def made_by(command: Sequence[str]) -> dict[str, Any]:
    """What would make a result now: command, commit, versions and device."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        'id': f'{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}',
        'started': now.isoformat(timespec='seconds'),
        'command': [_portable(word) for word in command],
        'qstr_jax': qstr_jax.__version__,
        'git_commit': git_commit(),
        'python': platform.python_version(),
        'system': platform.platform(),
        'packages': {name: importlib.metadata.version(name) for name in PACKAGES},
        'device': describe_device(),
    }


def start(command: Sequence[str]) -> dict[str, Any]:
    """The record of a run that begins: what makes its rows, and no lane batch yet."""
    sources = {'plugins': source_code.plugins(), 'sources': source_code.digests()}
    return {**made_by(command), **sources, 'batches': []}


def versions(run: dict[str, Any]) -> tuple:
    """The versions of the packages that a run's programs are made of."""
    return (run.get('qstr_jax'), *(run.get('packages', {}).get(name) for name in _OF_PROGRAMS))


def code(run: dict[str, Any]) -> tuple:
    """What a run's programs are made of: `versions` and the digests of all code, or the run itself if one is unknown.

    Only runs of equal code are known to have made their rows by the same one.
    """
    known = run.get('sources') or {}
    is_known = known and source_code.UNKNOWN not in known.values()
    return versions(run), tuple(sorted(known.items())) if is_known else id(run)


def joined(known: dict[str, Any] | None, run: dict[str, Any]) -> dict[str, Any]:
    """A run's record with what two copies of it say, one of which may be older."""
    if known is None:
        return run
    entries = {name: [*known.get(name, ()), *run.get(name, ())] for name in ('batches', 'checked')}
    each = {
        name: list({json.dumps(one, sort_keys=True): one for one in found}.values()) for name, found in entries.items()
    }
    return {**run, **known, **{name: found for name, found in each.items() if found or name in known}}


def by_program(runs: Iterable[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The runs that ran the programs of cells, or found them to be what their own code makes, by (cell, program)."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        for entry in (*run['batches'], *run.get('checked', ())):
            known = found.setdefault((entry['cell'], entry['program']), []) if 'program' in entry else [run]
            if not known or known[-1] is not run:  # A run has many batches of a program.
                known.append(run)
    return found


def add_checked(workdir: Any, record: dict[str, Any], checked: Sequence[tuple[str, str]]) -> None:
    """Notes in a run's record which (cell, program) its code still makes, although the code has changed."""
    with _mutex:
        record['checked'] = [{'cell': cell_id, 'program': program} for cell_id, program in checked]
        files.write_json(names.inside(workdir, 'provenance', f'{record["id"]}.json'), record)


_mutex = threading.Lock()  # several devices' threads share a record


def add_batch(
    workdir: Any,
    record: dict[str, Any],
    cell_id: str,
    lanes: Sequence[Any],
    *,
    program: str,
    seconds: dict[str, float],
    stopped: bool = False,
) -> None:
    """Adds a lane batch to the run's record; a run that added nothing leaves none."""
    entry = {
        'cell': cell_id,
        'lanes': [lane_keys.name_of(lane) for lane in lanes],
        'program': program,
        'compile_seconds': round(seconds['compile'], 3),
        'wall_seconds': round(seconds['wall'], 3),
    } | ({'stopped': True} if stopped else {})
    with _mutex:
        record['batches'].append(entry)
        files.write_json(names.inside(workdir, 'provenance', f'{record["id"]}.json'), record)


def load(workdir: Any) -> list[dict[str, Any]]:
    """The records of all runs that added to a directory, the oldest first; a damaged one is left out with a warning."""
    found = records.read_all(epath.Path(workdir) / 'provenance', 'run').values()
    return sorted(found, key=lambda run: str(run.get('started', '')))


def of_rows(workdir: Any, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Which run each row of a directory is from: `cell`, `lane`, `run`, `git_commit` and `is_clean`, one line a row.

    A run is recorded before its rows are written. If several runs finished a lane with the row's program, which also
    says how many lanes a batch has, the last of them wrote the row.
    Values that no record tells are missing: the commit of a run outside a checkout, and the run of a lane that old
    records name only by its seed, if several runs had that seed.
    """
    rows = results.load(workdir) if rows is None else rows
    finished: dict[tuple[str, str], list[tuple[str | None, dict[str, Any]]]] = {}
    for run in load(workdir):
        for batch in run['batches']:
            for lane in batch['lanes'] if not batch.get('stopped') else []:
                finished.setdefault((batch['cell'], lane), []).append((batch.get('program'), run))
    lines = []
    for row in rows.to_dict('records'):
        lane = lane_keys.name_of(row)
        runs = _of_program(row, finished.get((row['cell'], lane), []))[-1:]
        runs = runs or _of_program(row, finished.get((row['cell'], f'seed{row["seed"]}'), []))
        ids = {run.get('id') for run in runs}
        run = runs[0] if len(ids) == 1 else {}
        commit = run.get('git_commit')
        lines.append({
            'cell': row['cell'], 'lane': lane, 'run': run.get('id'),
            'git_commit': commit and commit.removesuffix('+'),
            'is_clean': None if commit is None else not commit.endswith('+'),
        })  # fmt: skip
    return pd.DataFrame(lines, columns=['cell', 'lane', 'run', 'git_commit', 'is_clean'], dtype=object)


def _of_program(row: Mapping[Any, Any], runs: Sequence[tuple[str | None, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The runs that had the program of a row, as far as run and row name one."""
    mine = row.get('program')
    return [run for program, run in runs if program is None or not isinstance(mine, str) or program == mine]


def sources(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """The runs that rows of several directories are from, with how many lanes each."""
    found = []
    for folder, own in rows.groupby('folder', sort=True) if len(rows) else ():
        columns = ['run', 'git_commit', 'is_clean']
        for values, lanes in of_rows(folder, own).groupby(columns, dropna=False, sort=False):
            known = {name: None if pd.isna(value) else value for name, value in zip(columns, values, strict=True)}
            found.append({'folder': _portable(str(folder)), **known, 'lanes': len(lanes)})
    return found
