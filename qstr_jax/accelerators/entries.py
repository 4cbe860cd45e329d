"""What is known of programs compiled for accelerators: a file of entries, one a program, and its tables.

An entry is written as soon as its program has ended, so that a run can be cut off anywhere.
"""

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from qstr_jax.accelerators import chips
from qstr_jax.analysis import formats, names
from qstr_jax.storage import files, records
from qstr_jax.sweeps import claims

NAME = 'accelerators.json'
WHAT = (
    'Programs compiled for accelerators that are not there: nothing was run on one. Memory, FLOPs and bytes are what '
    'the compiler says; seconds to compile are of the machine that compiled.'
)
HEADER = """Compiled for accelerators that are not there (`make accelerators`); **nothing was run on one**.
Memory, FLOPs and bytes are the compiler's own account: of `init` and `advance`, and of `advance`, whose loops over
steps and test prompts count once. Without a GPU the compiler for CUDA gives no FLOPs and bytes.

"""
_MEASURED = ('compile_cpu_seconds', 'compile_seconds', 'memory_bytes', 'flops', 'bytes_accessed')


def read(folder: Any) -> dict[str, Any]:
    """The file of a folder: `programs`, and what `made` those of each device; a ResultsError if it is damaged."""
    path = folder / NAME
    return records.read(path, 'accelerators') if path.exists() else {'what': WHAT, 'made': {}, 'programs': []}


def add(folder: Any, entry: dict[str, Any], made: dict[str, Any]) -> None:
    """Writes an entry; it replaces that of the same program, or of the same cell before its code changed."""
    with claims.locked(folder, 'accelerators'):
        known = read(folder)
        kept = [one for one in known['programs'] if key(one) != key(entry) and _cell(one) != _cell(entry)]
        made = {**known['made'], entry['device']: made}
        files.write_json(folder / NAME, {'what': WHAT, 'made': made, 'programs': [*kept, entry]})


def drop_all_but(folder: Any, cells: Collection[tuple[str, str]]) -> None:
    """Removes the entries of cells that no exhibit has any more, given those that there are: (exhibit, cell)."""
    with claims.locked(folder, 'accelerators'):
        known, kept = read(folder), []
        for entry in known['programs']:
            serves = [one for one in entry['serves'] if (one['exhibit'], one['cell']) in cells]
            if serves:
                kept.append({**entry, **serves[0], 'serves': serves})
        if kept != known['programs']:
            files.write_json(folder / NAME, {'what': WHAT, 'made': known['made'], 'programs': kept})


def key(entry: dict[str, Any]) -> tuple[str, str]:
    """The key that an entry is found by."""
    return entry['device'], entry['fingerprint']


def _cell(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    return entry['device'], entry['exhibit'], entry['cell'], entry['precision']


def by_device(programs: Sequence[dict[str, Any]]) -> str:
    """A line per device, as Markdown: what its programs need at the published precision."""
    lines = []
    for name in chips.CHIPS:
        tried = [one for one in programs if (one['device'], one['precision']) == (name, 'highest')]
        done = [one for one in tried if one['outcome'] == 'compiled']
        if not done:
            continue
        largest = max(done, key=lambda one: one['memory_bytes'])
        lines.append({
            'device': _display(name),
            'programs compiled': f'{len(done)} of {len(tried)}',
            'of cells': len({(cell['exhibit'], cell['cell']) for one in done for cell in one['serves']}),
            'seconds to compile, longest': max(map(_seconds, done)),
            'median': float(pd.Series(map(_seconds, done)).median()),
            'all of Figure 1a': round(sum(_seconds(one) for one in done if one['exhibit'] == 'figure1a')) or None,
            'most memory, GiB': f'{largest["memory_bytes"] / 2**30:.1f} of {chips.get(name).memory_bytes / 2**30:.0f}',
            'needed by': f'{names.display(largest["model"])} of `{largest["exhibit"]}`, N = {largest["seq_len"]}',
        })  # fmt: skip
    return formats.markdown(pd.DataFrame(lines)) if lines else ''


def _seconds(entry: dict[str, Any]) -> float:
    """The seconds that compiling took: those of the clock, but no more than those of the processor."""
    return min(entry['compile_cpu_seconds'], entry['compile_seconds'])


def _display(device: str) -> str:
    return device.upper() if chips.get(device).platform == 'gpu' else device


def table(programs: Sequence[dict[str, Any]]) -> str:
    """A page with a line per program, as Markdown."""
    known = pd.DataFrame(programs).sort_values(['device', 'exhibit', 'seq_len', 'model', 'precision'])
    known = known.reindex(columns=[*known.columns, *(name for name in _MEASURED if name not in known)])
    shown = known[['device', 'exhibit', 'model', 'seq_len', 'lanes', 'precision', 'outcome']].rename(
        columns={'seq_len': 'N'}
    )
    shown['core seconds to compile'] = known['compile_cpu_seconds']
    shown['seconds'] = known['compile_seconds']
    shown['memory, MiB'] = known['memory_bytes'] / 2**20
    shown['MFLOP'] = known['flops'] / 1e6
    shown['MB accessed'] = known['bytes_accessed'] / 1e6
    return HEADER + formats.markdown(shown)
