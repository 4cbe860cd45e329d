"""What result directories say: sections of words, tables and figures, whatever state the directories are in."""

import dataclasses
import itertools
import pathlib
import warnings

import pandas as pd

from qstr_jax import analysis, studies
from qstr_jax.analysis import formats, table1
from qstr_jax.report import exhibits
from qstr_jax.report.exhibits import ONLINE
from qstr_jax.storage import files, results
from qstr_jax.storage.files import ResultsError


@dataclasses.dataclass
class Section:
    """One directory.

    Attributes:
        name: as the reader knows it.
        words: paragraphs: what is here, what is missing.
        tables: (caption, DataFrame) pairs.
        figures: (caption, Figure) pairs, drawn from the rows.
        pictures: (caption, PNG bytes) pairs, as they lie in the directory.
        settings: config.json, empty if there is none.
        runs: provenance, oldest first.
        depth: 0, or 1 for a point of a study.
    """

    name: str
    words: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)
    figures: list = dataclasses.field(default_factory=list)
    pictures: list = dataclasses.field(default_factory=list)
    settings: dict = dataclasses.field(default_factory=dict)
    runs: list = dataclasses.field(default_factory=list)
    depth: int = 0


def sections(workdir, leave_out=None):
    """The sections of a directory: itself if it holds results, else what lies below it.

    Raises:
        ResultsError: no such directory.
    """
    workdir = pathlib.Path(workdir)
    folders = [path for path in studies.find(workdir) if not _is_below(path, leave_out)]
    if workdir in folders:
        return [sweep_section(workdir, str(workdir))]
    holders = {path.parent for path in folders} | _picture_folders(workdir, folders, leave_out)
    found = []
    for holder in sorted(holders):
        mine = [path for path in folders if path.parent == holder]
        # Folders 'setting=value' are the points of one study; others only happen to lie side by side.
        is_study = all('=' in path.name for path in mine)
        loose = _loose_section(holder, len(mine) if is_study else 0)
        found += [loose] if loose else []
        found += [sweep_section(path, str(path), depth=int(is_study)) for path in mine]
    nothing = f'Nothing to report: there are no results in {workdir}, not even settings.'
    return found or [Section(str(workdir), [nothing])]


def _is_below(path, folder):
    return folder is not None and pathlib.Path(folder).resolve() in [path.resolve(), *path.resolve().parents]


def _picture_folders(workdir, folders, leave_out):
    """Folders with pictures that are no results directories, such as those of the theorems."""
    inside = {path for path in workdir.rglob('*.png') if not any(_is_below(path, folder) for folder in folders)}
    return {path.parent for path in inside if not _is_below(path, leave_out)}


def _loose_section(folder, num_points):
    """Pictures and tables that lie beside, not in, results directories; None if there are none."""
    section = Section(str(folder))
    _add_files(section, folder)
    if not section.pictures and not section.tables:
        return None
    as_written = 'Figures and tables as they were written.'
    section.words.append(f'A study of {num_points} sweeps, which follow.' if num_points else as_written)
    return section


def _add_files(section, folder):
    """The PNG and Markdown tables of a folder."""
    for path in sorted(folder.glob('*.png')):
        section.pictures.append((path.stem.replace('_', ' '), path.read_bytes()))
    for path in sorted(set(folder.glob('*.md')) - {folder / 'README.md'}):
        for number, frame in enumerate(formats.from_markdown(path.read_text(errors='replace'))):
            section.tables.append((f'{path.stem} {number + 1}' if number else path.stem, frame))


def sweep_section(folder, name, depth=0):
    """The section of one results directory; damage, gaps and emptiness become words."""
    folder, section = pathlib.Path(folder), Section(name, depth=depth)
    rows, curves = _read(section, folder)
    if rows.empty:
        section.words.append('No lane has finished yet: there are settings, but no rows.')
    else:
        section.words += [_what_is_here(rows), *_what_is_missing(rows, section.settings)]
        exhibits.add(section, rows, curves)
    for path in sorted((folder / 'errors').glob('*.json')):
        error = _json(section, path)
        section.words.append(f'Cell {error.get("cell", path.stem)} failed: {error.get("error", "?")}')
    # The binary's own figure has the published values in it; it may be older than the rows.
    kept = [path for path in sorted(folder.glob('*.png')) if not path.stem.startswith('curves')]
    section.pictures += [(f'{path.stem.replace("_", " ")}, as the binary drew it', path.read_bytes()) for path in kept]
    return section


def _read(section, folder):
    """Rows and curves; fills settings, runs and what was wrong with the files."""
    section.settings = _json(section, folder / 'config.json')
    runs = [_json(section, path) for path in sorted((folder / 'provenance').glob('*.json'))]
    section.runs = sorted((run for run in runs if run), key=lambda run: run.get('started', ''))
    frames = []
    for load in (results.load, results.load_curves):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            frames.append(load(folder))
        section.words += [f'Damaged file, {warning.message}.' for warning in caught]
    return frames


def _json(section, path):
    try:
        value = files.read_json(path)
    except ResultsError as error:
        section.words.append(f'Damaged file, left out: {error}')
        return {}
    return value if isinstance(value, dict) else {}


def _what_is_here(rows):
    counts = rows['outcome'].value_counts()
    parts = [f'{counts[name]} {name}' for name in counts.index]
    names = ', '.join(analysis.DISPLAY_NAMES.get(model, model) for model in analysis.model_order(rows))
    cells = len(rows.groupby(['model', 'task', 'seq_len', 'sparsity']))
    return f'{len(rows)} lanes in {cells} cells of {names}: {", ".join(parts)}.'


def _what_is_missing(rows, settings):
    """Words for the points that config.json spans and that have no row, and for censored lanes."""
    words = []
    gaps, lanes = _gaps(rows, settings)
    if gaps and lanes == 1:
        words.append(f'{len(gaps)} of the cells that the settings span are missing: {_gap_words(gaps, lanes)}.')
    elif gaps:
        total = sum(gaps.values())
        words.append(f'{total} of the lanes that the settings span are missing: {_gap_words(gaps, lanes)}.')
    if (rows['learner'] == ONLINE).all() and not (rows['outcome'] == 'reached').any():
        words.append(
            'No lane reached the threshold within its budget, so there are no samples to threshold and no '
            'exponent; the table shows the test losses at the end instead.'
        )
    elif (rows['outcome'] == 'censored').any():
        words.append('Where lanes are censored the mean is a lower bound, marked ≥.')
    return words


def _gaps(rows, settings):
    """(model, q, N) → lanes that config.json spans and that have no row; and the lanes of a point."""
    axes = [settings.get(name) for name in ('models', 'sparsity', 'seq_lens', 'learning_rate', 'weight_decay')]
    if not all(isinstance(axis, list) for axis in axes):
        return {}, 0
    there = rows.groupby(['model', 'sparsity', 'seq_len']).size()
    lanes = settings.get('num_seeds', 1) * len(axes[3]) * len(axes[4])
    if settings.get('learners', [ONLINE]) != [ONLINE]:  # whose further axes depend on the model
        lanes, there = 1, there.clip(upper=1)
    left = {point: lanes - there.get(point, 0) for point in itertools.product(*axes[:3])}
    return {point: number for point, number in left.items() if number > 0}, lanes


def _gap_words(gaps, lanes):
    """'RNN N = 2, 4 (3 of 5 lanes each), N = 8 (all 5)': points of one model and as many missing lanes together."""
    places = {}
    for (model, sparsity, length), left in gaps.items():
        places.setdefault((model, sparsity, left), []).append(length)
    several = len({sparsity for _, sparsity, _ in places}) > 1
    parts = []
    for (model, sparsity, left), lengths in places.items():
        where = f'q = {sparsity}, ' if several else ''
        number = f'all {lanes}' if left == lanes else f'{left} of {lanes}'
        count = f' ({number} lanes{" each" if len(lengths) > 1 else ""})' if lanes > 1 else ''
        lengths = ', '.join(map(str, sorted(lengths)))
        parts.append(f'{analysis.DISPLAY_NAMES.get(model, model)} {where}N = {lengths}{count}')
    return '; '.join(parts)


def overview(workdirs):
    """The section that comes first: Table 1 measured over all directories."""
    section = Section('Table 1, measured')
    frames = []
    for workdir in workdirs:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # Its own section tells of a damaged file.
            frame = studies.load(workdir)
        if len(frame):
            frames.append(frame.assign(folder=str(workdir) + '/' + frame['folder']))
    rows = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    table = table1.measure(rows[rows['learner'] == ONLINE] if len(rows) else rows)
    section.tables.append(('How n grows with N, and what the theorems claim', table1.display(table)))
    section.words.append(
        f'From {len(rows)} lanes. Exponents come from lanes that draw their own '
        'task; the intervals are 95% percentile bootstraps over lanes. The theorems bound what some learner needs, or '
        'what every learner of a class needs, up to constants and logarithms; the rows are what AdamW did at these N.'
    )
    return section
