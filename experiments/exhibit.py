r"""Runs one exhibit, or goes on with it, and draws it.

python -m experiments.exhibit figure1a                       # into results/figure1a, results/figure1a_task_per_lane, …
python -m experiments.exhibit figure1a_task_per_lane         # one directory of it
python -m experiments.exhibit figure1a --reduced             # the same in seconds, into results/reduced/…
python -m experiments.exhibit figure1a --draw_only --workdir=experiments/results
python -m experiments.exhibit card_lemma11 --set=seq_lens=16,64   # a card with another setting
"""

import dataclasses
import functools
import importlib
import inspect
import json
import pathlib
import pkgutil
import sys
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from absl import flags, logging
from ml_collections import config_dict

from experiments import cards, exhibits
from qstr_jax import columns, failures, plots, settings, sweeps
from qstr_jax.analysis import card
from qstr_jax.cli import base, command_line, runtime
from qstr_jax.plots import cards as figures
from qstr_jax.report import drawing, numbers, page
from qstr_jax.settings import checks
from qstr_jax.storage import files, provenance, records, results
from qstr_jax.sweeps import Options, Sweep, lane_batches, search, tuned
from qstr_jax.sweeps.cells import Cell

REDUCED = flags.DEFINE_bool('reduced', False, 'Run the small version, which takes seconds.')
DRAW_ONLY = flags.DEFINE_bool('draw_only', False, 'Run nothing; draw, or write the table of, what is there.')
SET = flags.DEFINE_multi_string('set', [], "A setting of a card, as 'seq_lens=16,64'; repeat the flag for several.")


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """What one file of experiments/exhibits says; `experiments/exhibits/__init__.py` lists what it may hold."""

    module: types.ModuleType  # the file

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.module.__name__.rpartition('.')[2]

    @property
    def title(self) -> str:
        """The docstring's first line."""
        return inspect.getdoc(self.module).partition('\n')[0].removesuffix('.')

    def title_of(self, folder: str) -> str:
        """What a results directory is: its own title, or that of the exhibit."""
        return getattr(self.module, 'TITLES', {}).get(folder, self.title)

    @property
    def about(self) -> str:
        """The rest of the docstring."""
        return inspect.getdoc(self.module).partition('\n')[2].strip()

    @property
    def folders(self) -> dict[str, tuple[str, ...]]:
        """The parts that run into each results directory."""
        return getattr(self.module, 'FOLDERS', {self.name: ('',)})

    def configs(self, folder: str, reduced: bool = False) -> list[config_dict.ConfigDict]:
        """The configs of a results directory, in the order in which they run."""
        make = self.module.reduced if reduced else self.module.get_config
        return [make(part) if part else make() for part in self.folders[folder]]

    def sweeps(self, folder: str, reduced: bool = False) -> list[Sweep]:
        """The sweeps of a results directory, in the order in which they run."""
        return [base.to_sweep(config) for config in self.configs(folder, reduced)]

    def run(self, folder: str, root: pathlib.Path, options: Options, reduced: bool = False) -> None:
        """Runs, or continues, the sweeps of a directory, and draws it after each."""
        for sweep in self.sweeps(folder, reduced):
            sweeps.run(sweep, root / folder, options, cells_of(sweep))
            self.draw(folder, root, reduced)  # so that a picture is there while the rest runs

    def draw(self, folder: str, root: pathlib.Path, reduced: bool = False) -> None:
        """Draws the rows of a directory."""
        make = getattr(self.module, 'draw', drawing.draw)
        if not results.load(root / folder).empty:
            make(root / folder, self.configs(folder, reduced)[0])

    def text(self, rows: numbers.Rows) -> str:
        """The answer, whose first paragraph stands in the gallery."""
        return self._said('text', rows)

    @property
    def is_supporting(self) -> bool:
        """Whether the gallery has it in a table, without a section."""
        return getattr(self.module, 'IS_SUPPORTING', False)

    def answer(self, rows: numbers.Rows) -> str:
        """The answer's first paragraph."""
        return self.text(rows).partition('\n\n')[0]

    def table(self, rows: numbers.Rows) -> str:
        """The small table of the gallery, '' if there is none."""
        return self._said('table', rows) if hasattr(self.module, 'table') else ''

    def limits(self, rows: numbers.Rows) -> str:
        """What it does not show, whose first paragraph stands in the gallery; a constant where no number is in it."""
        return getattr(self.module, 'LIMITS', '').strip() or self._said('limits', rows)

    def caveat(self, rows: numbers.Rows) -> str:
        """The limits' first paragraph."""
        return self.limits(rows).partition('\n\n')[0]

    def _said(self, part: str, rows: numbers.Rows) -> str:
        """One of the exhibit's texts; an error names the exhibit."""
        try:
            return getattr(self.module, part)(rows).strip()
        except Exception as error:
            raise ValueError(f'{self.name}.{part}: {failures.reason(error)}') from error

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Pictures and what they show."""
        return list(getattr(self.module, 'FIGURES', {}).items())

    def state(self, folder: str, rows: numbers.Rows) -> str:
        """How many lanes of a directory have rows, and which have none."""
        if not (planned := self.planned(folder)):
            return 'Nothing is trained.'
        done = self.done(folder, rows.stored(folder))
        missing = {cell: len(lanes - done.get(cell, set())) for cell, lanes in planned.items()}
        left = sum(missing.values())
        count = sum(map(len, planned.values()))
        if not left:
            return f'All {count} lanes.'
        names = dict.fromkeys(cell.rpartition('-')[0] for cell, number in missing.items() if number)
        return f'{count - left} of {count} lanes; not all of {", ".join(names)}.'

    def pictures(self, folder: str, root: pathlib.Path) -> list[str]:
        """Pictures of a directory that are in no text."""
        names = sorted(path.name for path in (root / folder).glob('*.png'))
        return [name for name in names if f'{folder}/{name}' not in dict(self.figures)]

    def tables(self, folder: str, root: pathlib.Path) -> dict[str, str]:
        """Tables that were drawn into a directory, by name."""
        return {path.stem: path.read_text().strip() for path in sorted((root / folder).glob('*.md'))}

    def planned(self, folder: str) -> dict[str, set[tuple]]:
        """The lanes of a directory by cell, without tuned settings; cells that race one another count as one."""
        found: dict[str, set[tuple]] = {}
        for sweep in self.sweeps(folder):
            for first, *_ in groups_of(sweep):
                lanes = (_key(lane._asdict(), sweep.tune.names if sweep.tune else ()) for lane in first.lanes)
                found.setdefault(first.id, set()).update(lanes)
        return found

    def done(self, folder: str, rows: pd.DataFrame) -> dict[str, set[tuple]]:
        """The lanes of a directory that have rows, by cell and without tuned settings."""
        found: dict[str, set[tuple]] = {}
        firsts = {cell.id: group[0].id for sweep in self.sweeps(folder) for group in groups_of(sweep) for cell in group}
        for row in rows.to_dict('records'):
            names = row['tuned'].split() if isinstance(row.get('tuned'), str) else ()
            lane = {name: row[name] for name in columns.with_role(row, 'lane')}
            found.setdefault(firsts.get(row['cell'], row['cell']), set()).add(_key(lane, names))
        return found


@dataclasses.dataclass(frozen=True)
class CardExhibit(Exhibit):
    """A card of a theorem: its file makes it from the rows of its sweeps, and it is kept as card.json beside them."""

    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # settings that differ from the file's

    @property
    def folders(self) -> dict[str, tuple[str, ...]]:
        """The card's only directory, whose rows are evidence for nothing else."""
        return {f'{results.CARDS}/{self.name.removeprefix("card_")}': ('',)}

    def settings(self, reduced: bool = False) -> Any:
        """The settings of the card, checked."""
        given = {**(self.module.REDUCED if reduced else {}), **self.overrides}
        schema = settings.schema_of(self.module.Settings)
        values = schema.checked(given, self.name)
        for name, value in values.items():
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, int):
                    checks.integer(f'{self.name}.{name}', one)
            if value == ():
                raise ValueError(f'{self.name}.{name}=(): give at least one value')
        return self.module.Settings(**values)

    def plain_settings(self, reduced: bool = False) -> dict[str, Any]:
        """The settings as they come back from JSON, to compare them with those of a card that is there."""
        return json.loads(json.dumps(dataclasses.asdict(self.settings(reduced))))

    def trained(self, reduced: bool = False) -> dict[str, Sweep]:
        """The sweeps by what the card calls them; none if nothing is trained."""
        return self.module.sweeps(self.settings(reduced)) if hasattr(self.module, 'sweeps') else {}

    def sweeps(self, folder: str, reduced: bool = False) -> list[Sweep]:
        """The sweeps."""
        return list(self.trained(reduced).values())

    def run(self, folder: str, root: pathlib.Path, options: Options, reduced: bool = False) -> None:
        """Makes the card, unless it is there with these settings and needs no refresh; its sweeps are continued."""
        path, wanted = root / folder / 'card.json', self.plain_settings(reduced)
        if path.exists() and not options.refresh and records.read(path, 'card')['settings'] == wanted:
            logging.info('%s: already in %s', self.name, path)
        else:
            start, needed = time.monotonic(), self.trained(reduced)
            cells = {what: cells_of(one) for what, one in needed.items()}
            found = {what: sweeps.run(one, path.parent, options, cells[what]) for what, one in needed.items()}
            rows = {what: cards.rows_of(cells[what], table) for what, table in found.items()}
            made = card.as_json(self.module.card(self.settings(reduced), rows))
            by, seconds = provenance.made_by(sys.argv), round(time.monotonic() - start, 1)
            files.make_folder(path.parent)
            entry = {**made, 'settings': wanted, 'seconds': seconds, 'device': by['device'], 'made_by': by}
            files.write_json(path, entry)
        self.draw(folder, root)

    def draw(self, folder: str, root: pathlib.Path, reduced: bool = False) -> None:
        """Draws the card that is there, and says its verdict."""
        if (made := self.card(root)) is None:
            raise ValueError(f'{str(root / folder)!r} has no card.json: run {self.name} without --draw_only')
        plots.save(figures.card_figure(made), root / folder / 'figure')
        print(f'{self.name}: {made.verdict}', flush=True)

    def card(self, root: pathlib.Path) -> card.Card | None:
        """The card that is there; None if there is none."""
        (folder,) = self.folders
        path = root / folder / 'card.json'
        return card.from_json(records.read(path, 'card')) if path.exists() else None

    def text(self, rows: numbers.Rows) -> str:
        """The claim and the verdict; then every check, what was run, and what else was found."""
        made = self.card(rows.root)
        points = sum(check.count for check in made.checks)
        listed = '\n'.join(f'- {check}' for check in made.checks)
        return f"""
{made.statement}: {made.claim}
Verdict: {made.conclusion}; {len(made.checks)} checks, of the claim and of what it is computed from, on {points} points
that could have failed.

The point of each check that is nearest to failing:

{listed}

Setting: {made.setting}

{made.finding}
""".strip()

    @property
    def figures(self) -> list[tuple[str, str]]:
        """The picture of the card."""
        (folder,) = self.folders
        return [(f'{folder}/figure.png', 'Measured points, the lines of the theorem, and the verdict')]


@functools.cache
def cells_of(sweep: Sweep) -> tuple[Cell, ...]:
    """The cells of a sweep, made once a command."""
    return sweeps.cells_of(sweep)


def groups_of(sweep: Sweep) -> list[list[Cell]]:
    """The cells of a sweep; those that race one another together."""
    cells = cells_of(sweep)
    return tuned.rivals(cells, sweep.tune) if sweep.tune else [[cell] for cell in cells]


def _key(lane: Mapping[str, Any], tuned: Sequence[str]) -> tuple:
    """The settings that tell a lane apart; not `stop_after`, which a search sets itself."""
    left_out = {*tuned, 'stop_after'}
    return tuple(sorted((k, float(v)) for k, v in lane.items() if k not in left_out and not pd.isna(v)))


@functools.cache
def every() -> dict[str, Exhibit]:
    """All exhibits by name, in the order of the gallery."""
    names = [module.name for module in pkgutil.iter_modules(exhibits.__path__)]
    modules = [importlib.import_module(f'experiments.exhibits.{name}') for name in names]
    found = [(CardExhibit if hasattr(module, 'card') else Exhibit)(module) for module in modules]
    return {one.name: one for one in sorted(found, key=lambda one: (one.module.ORDER, one.name))}


def pages(linked: bool = False) -> dict[str, page.Page]:
    """Each results directory's exhibit: its title and, if linked, the address of its page in the documentation."""
    return {
        folder: page.Page(one.title_of(folder).partition(':')[0], f'exhibits/{one.name}.html' if linked else '')
        for one in every().values()
        for folder in one.folders
    }


def find(name: str) -> tuple[Exhibit, tuple[str, ...]]:
    """An exhibit and its directories: all of them, or only the one with this name."""
    if (name := name.replace('-', '_')) == 'larger_n_tuned':
        raise ValueError(f'exhibit={name!r}: is gone; one_label answers its question')
    known = {folder: (one, (folder,)) for one in every().values() for folder in one.folders}
    known |= {one.name: (one, tuple(one.folders)) for one in every().values()}
    checks.choice('exhibit', name, known)
    return known[name]


class Program(NamedTuple):
    """A program of a results directory: the cell, and how many lanes it runs at once."""

    exhibit: str
    cell: Cell
    lanes: int


def programs_of(name: str, platform: str) -> Iterator[Program]:
    """The programs that an exhibit, or one of its directories, would run on a platform, one for each cell."""
    one, folders = find(name)
    for folder in folders:
        cells = {cell.id: (sweep, cell) for sweep in one.sweeps(folder) for cell in cells_of(sweep)}
        for sweep, cell in cells.values():
            count = search.lanes_at_once(sweep.tune, cell) if sweep.tune else len(cell.lanes)
            default = lane_batches.default_size(cell.problem.module, count, platform)
            yield Program(exhibit=folder, cell=cell, lanes=sweep.lanes_per_batch or default)


def run(*arguments: str) -> None:
    """Runs and draws the exhibits that the words of the command line name."""
    if not arguments:
        raise ValueError(f'which exhibit? There are {", ".join(every())}')
    found = [find(name) for name in arguments]
    if overrides := dict(map(_setting, SET.value)):
        found = [(_overridden(one, overrides), folders) for one, folders in found]
    if DRAW_ONLY.value:
        command_line.refuse_unused(('workdir',), '--draw_only')
        if overrides:
            raise ValueError('--set: --draw_only does not use it, since it draws the card that is there')
    runtime.check()
    workdir = runtime.workdir('results')
    if '://' in workdir:
        raise ValueError(f'--workdir={workdir}: exhibits are drawn into directories of this machine')
    root = pathlib.Path(workdir)
    root = root / 'reduced' if REDUCED.value else root
    wanted = [(one, folder) for one, folders in found for folder in folders]
    if DRAW_ONLY.value:
        for one, folder in wanted:
            one.draw(folder, root, REDUCED.value)
        return
    runtime.start()
    for one, folder in wanted:
        for sweep in one.sweeps(folder, REDUCED.value):
            cells_of(sweep)  # Errors before any work; after the start, since it may use the device.
    for one, folder in wanted:
        one.run(folder, root, runtime.options(), REDUCED.value)


def _setting(word: str) -> tuple[str, Any]:
    """Name and value of a word of --set; values with commas are tuples."""
    name, _, text = word.partition('=')
    try:
        return name, checks.literal(text)
    except ValueError:
        return name, tuple(text.split(',')) if ',' in text else text


def _overridden(one: Exhibit, overrides: Mapping[str, Any]) -> CardExhibit:
    """A card with other settings."""
    if not isinstance(one, CardExhibit):
        raise ValueError(f'--set is of cards; settings of {one.name}: --config of experiments.sample_complexity')
    return dataclasses.replace(one, overrides=overrides)


if __name__ == '__main__':
    command_line.launch(run, takes_arguments=True, used=(*command_line.DEVICES, *command_line.JOB))
