"""What result directories say: sections of words, tables and figures, whatever state the directories are in."""

import contextlib
import os
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from qstr_jax import analysis
from qstr_jax.analysis import answers, resolution, table1
from qstr_jax.report import directory, missing
from qstr_jax.report.section import Picture, Section, counted
from qstr_jax.storage import files, names, provenance, records, results
from qstr_jax.storage.files import ResultsError

# The warning of `results` about lanes that have curves and no rows yet, as a killed write leaves them.
_NO_ROWS = 'has no rows beside it'


def sections(workdir: str | os.PathLike, leave_out: str | os.PathLike | None = None) -> list[Section]:
    """The sections of a directory: itself if it holds results, otherwise what lies below it."""
    workdir = pathlib.Path(workdir)
    whole = Section(name=str(workdir))
    with _saying(whole):
        folders = [path for path in results.find(workdir) if not _is_below(path, leave_out)]
        with_pictures = _picture_folders(workdir, folders, leave_out)
    found = [whole] if whole.words else []
    if workdir in folders:
        return [*found, sweep_section(workdir)]
    for holder in sorted({path.parent for path in folders} | with_pictures):
        found += _loose_sections(holder)
        found += [sweep_section(path) for path in folders if path.parent == holder]
    if not found:
        found.append(Section(name=str(workdir)))
        found[0].say(f'Nothing to report: there are no results in {workdir}, not even settings.', is_problem=True)
    return found


def sweep_section(folder: str | os.PathLike) -> Section:
    """The section of one results directory; damage, gaps and emptiness become words."""
    folder = pathlib.Path(folder)
    section = Section(name=str(folder))
    with _saying(section):
        if _read(section, folder):
            _say_what_is_here(section, folder)
        for error in records.read_all(folder / 'errors', 'error').values():
            section.say(f'Cell {error["cell"]} failed: {error["error"]}', is_problem=True)
        # Pictures that a binary drew hold the published values too; they may be older than the rows.
        kept = [path for path in names.listed(folder, '.png') if not path.stem.startswith('curves')]
        drawn = _contents(kept, 'picture').items()
        section.pictures += [
            Picture(f'{path.stem.replace("_", " ")}, as the binary drew it', png, path) for path, png in drawn
        ]
    return section


def _say_what_is_here(section: Section, folder: pathlib.Path) -> None:
    """Adds what rows there are and what they show, and what is missing."""
    rows = section.rows
    section.say('No lane has finished yet: there are settings, but no rows.' if rows.empty else _what_is_here(rows))
    left = missing.words(_plan(section, folder), rows)
    for text in left:
        section.say(text)
    section.is_unfinished |= bool(left) or rows.empty
    if len(rows):
        try:
            directory.add(section, rows, section.curves)
        except ValueError as reason:
            section.say(f'Not all of it is shown: {reason}.', is_problem=True)


def _contents(paths: Iterable[pathlib.Path], kind: str) -> dict[pathlib.Path, bytes]:
    """Files by path; one that cannot be read, or is too large for its kind, is left out with a warning."""
    found = {}
    for path in paths:
        try:
            found[path] = files.read_bytes(path, kind)
        except (ResultsError, OSError) as error:
            warnings.warn(f'left out: {error}', stacklevel=2)
    return found


@contextlib.contextmanager
def _saying(section: Section) -> Iterator[None]:
    """What is warned of, damage above all, becomes words of a section, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning):
        if _NO_ROWS in text:
            section.is_unfinished = True
            section.say(f'Curves without rows: {text}.')
        else:
            section.say(f'Damaged file, {text}.', is_problem=True)


def measured(sections: Sequence[Section]) -> pd.DataFrame:
    """Table 1 over all directories, of `table1.measure`."""
    frames = [
        resolution.interpolated(table1.each_threshold(one.rows), one.curves).assign(folder=one.name)
        for one in sections
        if len(one.rows)
    ]
    return table1.measure(pd.concat(frames, ignore_index=True) if frames else pd.DataFrame())


def overview(measured: pd.DataFrame, num_lanes: int) -> Section:
    """The section of Table 1."""
    section = Section(name='Table 1, measured')
    section.tables += [(answers.TITLE, answers.answers(measured)), *table1.blocks(measured)]
    section.say(
        f'From {counted(num_lanes, "lane")}. Exponents come from lanes that draw their own task; the 95% intervals '
        'hold the misfit of the law as well as the noise between lanes, unless they are by lane noise alone. The '
        'theorems are about learners on n prompts, up to constants and logarithms, so online training stands beside '
        'them without a verdict.'
    )
    return section


def _is_below(path: pathlib.Path, folder: str | os.PathLike | None) -> bool:
    return folder is not None and pathlib.Path(folder).resolve() in [path.resolve(), *path.resolve().parents]


def _picture_folders(
    workdir: pathlib.Path, folders: Sequence[pathlib.Path], leave_out: str | os.PathLike | None
) -> set[pathlib.Path]:
    """Folders with pictures that are no results directories, such as those of the theorems."""
    holders = {path for path, inside in names.searched(workdir) if any(name.endswith('.png') for name in inside)}
    return {path for path in holders if not any(_is_below(path, folder) for folder in (*folders, leave_out))}


def _loose_sections(folder: pathlib.Path) -> list[Section]:
    """A section of the pictures and texts that lie beside results directories, if there are any."""
    section = Section(name=str(folder))
    with _saying(section):
        pictures = _contents(names.listed(folder, '.png'), 'picture')
        texts = _contents((path for path in names.listed(folder, '.md') if path.name != 'README.md'), 'text')
    section.pictures = [Picture(path.stem.replace('_', ' '), png, path) for path, png in pictures.items()]
    section.texts = [(path.name, text.decode(errors='replace')) for path, text in texts.items()]
    if section.pictures or section.texts:
        section.say('Figures and tables as they were written.')
    return [section] if section.words else []


def _read(section: Section, folder: pathlib.Path) -> bool:
    """Fills rows, curves, sweeps and runs; False with a warning where the directory cannot be read."""
    section.runs = provenance.load(folder)
    try:
        section.sweeps = results.read_config(folder)
        section.rows = results.load(folder)
        section.curves = results.load_curves(folder, rows=section.rows)
        section.rows = resolution.interpolated(section.rows, section.curves)
    except ResultsError as error:
        warnings.warn(f'left out: {error}', stacklevel=2)
        return False
    return True


def _plan(section: Section, folder: pathlib.Path) -> dict[str, Any]:
    """The plan; empty if there is none or it is damaged, which is said in words."""
    try:
        return records.read_plan(folder)
    except ResultsError as error:
        section.say(f'Damaged file, left out: {error}.', is_problem=True)
        return {}


def _what_is_here(rows: pd.DataFrame) -> str:
    counts = rows['outcome'].value_counts()
    outcomes = ', '.join(f'{counts[name]} {name}' for name in counts.index)
    names = ', '.join(map(analysis.display, analysis.model_order(rows)))
    lanes, cells = counted(len(rows), 'lane'), counted(rows['cell'].nunique(), 'cell')
    return f'{lanes} in {cells} of {names}: {outcomes}.'
