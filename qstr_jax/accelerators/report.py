"""Tables and figure of what was compiled for accelerators."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from qstr_jax import plots
from qstr_jax.accelerators import store
from qstr_jax.analysis import formats
from qstr_jax.storage import files, results

# The figure shows one exhibit, at its sequence lengths.
DRAWN = 'figure1a'
HEADER = """Compiled for accelerators that are not there (`make accelerators`); **nothing was run on one**.
Seconds to compile are of a core of this machine. Memory is the compiler's account. What is called estimated is a lower
bound by published peaks, bandwidths and launch costs (`accelerators.json` names their sources). Only the programs that
were compiled are counted and summed: of most exhibits those at the largest N.

"""

GROUPS = """For several devices of a host or pod: how many different programs the compiler made for those compared (by
the optimised text of `init` and `advance`), and their memory. Together is one program that divides the lanes of all
devices among them, which no sweep runs: at so many of its instructions the devices wait for each other.

"""

PRECISIONS = """By the precision of matrix products, for programs that were compiled with several. A TPU makes a
product in float32 of six of bfloat16 (highest), three (high) or one (default); a GPU takes float32, or TF32 for the
other two.

"""


def write(folder: Any) -> str:
    """Writes tables and figure.

    Args:
        folder: of the results, beside which are the rows of the exhibits.

    Returns:
        The table of exhibits.

    Raises:
        ResultsError: a file is damaged.
    """
    entries = _entries(folder)
    if entries.empty:
        return 'no program has been compiled\n'
    files.write_text(folder / 'table.md', tables(folder))
    drawn = entries[(entries['exhibit'] == DRAWN) & (entries['precision'] == 'highest')]
    drawn = drawn[drawn['outcome'] == 'compiled']
    if len(drawn):
        title = 'Figure 1a compiled for accelerators that are not there'
        plots.save(plots.accelerators(drawn, title=title), pathlib.Path(folder, 'figure'))
    return formats.markdown(by_exhibit(entries, _rows(folder, entries)))


def tables(folder: Any) -> str:
    """All tables as one page.

    Args:
        folder: of the results.
    """
    entries = _entries(folder)
    parts = [HEADER, formats.markdown(by_exhibit(entries, _rows(folder, entries))), '\n']
    if len(groups := by_group(store.read(folder)['groups'])):
        parts += [GROUPS, formats.markdown(groups), '\n']
    if len(precisions := by_precision(entries)):
        parts += [PRECISIONS, formats.markdown(precisions), '\n']
    return ''.join([*parts, formats.markdown(by_program(entries))])


def _entries(folder: Any) -> pd.DataFrame:
    entries = pd.DataFrame(store.read(folder)['programs'])
    if 'precision' not in entries.columns:  # of before it was a setting
        entries['precision'] = 'highest'
    # Where no program was compiled nothing was measured.
    measured = [name for name in ('compile_cpu_seconds', 'memory_bytes', 'kernels_per_step') if name not in entries]
    entries = entries.assign(**dict.fromkeys(measured, float('nan')))
    return entries.assign(precision=entries['precision'].fillna('highest'))


def _rows(folder: Any, entries: pd.DataFrame) -> pd.DataFrame:
    """The committed rows of the exhibits, each with its exhibit."""
    names = {one['exhibit'] for several in entries['serves'] for one in several}
    folders = {name: folder.parent / name for name in sorted(names)}
    found = [results.load(path).assign(exhibit=name) for name, path in folders.items() if (path / 'rows').exists()]
    return pd.concat(found) if found else pd.DataFrame(columns=['exhibit', 'cell'])


def by_exhibit(entries: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """A line per exhibit and device: what its programs take to compile, and the estimated seconds of running them.

    Args:
        entries: of programs, with `precision`; those of the published one count.
        rows: of the exhibits, whose steps and tests the device is taken to repeat.
    """
    served = entries[entries['precision'] == 'highest'].explode('serves', ignore_index=True)
    served['exhibit'] = [one['exhibit'] for one in served['serves']]
    served['cell'] = [one['cell'] for one in served['serves']]
    lines = []
    for (exhibit, device), some in served.groupby(['exhibit', 'device'], sort=False):
        done = some[some['outcome'] == 'compiled']
        of_exhibit = rows[rows['exhibit'] == exhibit]
        seconds = [run_seconds(entry, of_exhibit[of_exhibit['cell'] == entry['cell']]) for _, entry in done.iterrows()]
        known = [one for one in seconds if one is not None]
        lines.append({
            'exhibit': exhibit,
            'device': device,
            'compiled, of tried': f'{len(done)} of {len(some)}',
            'compiling, core seconds': round(done['compile_cpu_seconds'].sum()),
            'longest': done['compile_cpu_seconds'].max(),
            'most memory, MiB': round(done['memory_bytes'].max() / 2**20) if len(done) else None,
            'kernels per step': _range(done['kernels_per_step'].dropna()),
            'estimated seconds to run': sum(known) if known else None,
            'of programs': len(known),
        })  # fmt: skip
    return pd.DataFrame(lines)


def run_seconds(entry: Mapping[str, Any], rows: pd.DataFrame) -> float | None:
    """Estimated seconds of the lane batches of a cell on one device; None where no rows say how long they train.

    A batch trains until its last lane is over, and looks at all test prompts whenever one of its lanes has to.

    Args:
        entry: of the cell's program.
        rows: of the cell.
    """
    needed = ('estimated_step_seconds', 'estimated_screen_seconds')
    if rows.empty or any(pd.isna(entry.get(name)) for name in needed):
        return None
    batches = -(-len(rows) // int(entry['lanes']))
    steps = (rows['num_samples'] / rows['batch_size']).max()
    screens = steps / entry['steps_per_check'] * entry['estimated_screen_seconds']
    return float(
        batches * (steps * entry['estimated_step_seconds'] + screens)
        + rows['num_evaluations'].sum() * entry['estimated_test_seconds']
    )


def by_precision(entries: pd.DataFrame) -> pd.DataFrame:
    """A line per program and precision, of the cells that were compiled with several.

    Args:
        entries: of programs, with `precision`.
    """
    done = entries[entries['outcome'] == 'compiled']
    counts = done.groupby(['device', 'cell'])['precision'].transform('nunique')
    some = done[counts > 1].sort_values(['device', 'model', 'seq_len', 'compile_cpu_seconds'], ascending=False)
    return _table(some)[
        ['device', 'model', 'N', 'precision', 'core seconds to compile', 'memory, MiB', 'kernels per step',
         'MB per step', 'estimated µs per step']
    ]  # fmt: skip


def by_group(found: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A line per program that was compiled for several devices of a group.

    Args:
        found: entries of groups.
    """
    return pd.DataFrame(
        {
            'device': one['device'],
            'topology': one['topology'],
            'devices': one['num_devices'],
            'hosts': one['num_processes'],
            'model': one['model'],
            'N': one['seq_len'],
            'lanes': one['lanes'],
            'compared': ', '.join(one['compared']),
            'different programs': len(set(one['programs'])),
            'memory, MiB': ', '.join(f'{number / 2**20:.0f}' for number in sorted(set(one['memory_bytes']))),
            'together: lanes': one['together']['lanes'],
            'memory of a device, MiB': one['together']['memory_bytes_of_a_device'] / 2**20,
            'waits': one['together']['collectives'],
        }
        for one in found if one['outcome'] == 'compiled'
    )  # fmt: skip


def by_program(entries: pd.DataFrame) -> pd.DataFrame:
    """A line per program of the published precision.

    Args:
        entries: of programs, with `precision`.
    """
    published = entries[entries['precision'] == 'highest']
    return _table(published.sort_values(['device', 'exhibit', 'seq_len', 'model'])).drop(columns='precision')


def _table(entries: pd.DataFrame) -> pd.DataFrame:
    """All columns that the tables of programs show, in the units of their headings; empty where nothing is known."""
    columns = ('compile_cpu_seconds', 'compile_seconds', 'memory_bytes', 'most_lanes_estimated', 'flops',
               'bytes_accessed', 'kernels_per_step', 'estimated_step_seconds')  # fmt: skip
    known = entries.reindex(columns=[*entries.columns, *(name for name in columns if name not in entries.columns)])
    return pd.DataFrame({
        'device': known['device'],
        'exhibit': known['exhibit'],
        'model': known['model'],
        'N': known['seq_len'],
        'lanes': known['lanes'],
        'precision': known['precision'],
        'outcome': known['outcome'],
        'core seconds to compile': known['compile_cpu_seconds'],
        'wall': known['compile_seconds'],
        'memory, MiB': (known['memory_bytes'] / 2**20).round(),
        'most lanes, estimated': known['most_lanes_estimated'].astype('Int64'),
        'GFLOP per step': known['flops'] / 1e9,
        'MB per step': known['bytes_accessed'] / 1e6,
        'kernels per step': known['kernels_per_step'].astype('Int64'),
        'estimated µs per step': known['estimated_step_seconds'] * 1e6,
    })  # fmt: skip


def _range(values: pd.Series) -> str:
    return f'{values.min():.0f}–{values.max():.0f}' if len(values) else '–'
