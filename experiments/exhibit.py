r"""Runs one exhibit, or goes on with it, and draws it.

python -m experiments.exhibit figure1a                       # into results/figure1a, results/figure1a_task_per_lane, …
python -m experiments.exhibit figure1a_task_per_lane         # one directory of it
python -m experiments.exhibit figure1a --reduced             # the same in seconds, into results/reduced/…
python -m experiments.exhibit figure1a --draw_only --workdir=experiments/results
"""

import dataclasses
import functools
import importlib
import inspect
import pathlib
import pkgutil
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from absl import flags
from ml_collections import config_dict

from experiments import exhibits
from qstr_jax import checks, columns, sweeps
from qstr_jax.cli import base, command_line, runtime
from qstr_jax.report import drawing, numbers
from qstr_jax.storage import results
from qstr_jax.sweeps import lanes_per_batch, search
from qstr_jax.sweeps.cells import Cell

REDUCED = flags.DEFINE_bool('reduced', False, 'Run the twin of seconds.')
DRAW_ONLY = flags.DEFINE_bool('draw_only', False, 'Run nothing; draw, or write the table of, what is there.')


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """What one file of experiments/exhibits says; `experiments/exhibits/__init__.py` lists what it may hold.

    Attributes:
        module: the file.
    """

    module: types.ModuleType

    @property
    def name(self) -> str:
        """The file's."""
        return self.module.__name__.rpartition('.')[2]

    @property
    def title(self) -> str:
        """The docstring's first line."""
        return inspect.getdoc(self.module).partition('\n')[0].removesuffix('.')

    @property
    def about(self) -> str:
        """The rest of the docstring."""
        return inspect.getdoc(self.module).partition('\n')[2].strip()

    @property
    def folders(self) -> dict[str, tuple[str, ...]]:
        """By results directory, the parts that run into it."""
        return getattr(self.module, 'FOLDERS', {self.name: ('',)})

    def configs(self, folder: str, reduced: bool = False) -> list[config_dict.ConfigDict]:
        """The configs of a results directory, in the order in which they run."""
        make = self.module.reduced if reduced else self.module.get_config
        return [make(part) if part else make() for part in self.folders[folder]]

    def sweeps(self, folder: str, reduced: bool = False) -> list[sweeps.Sweep]:
        """The sweeps of a results directory, in the order in which they run."""
        return [base.to_sweep(config) for config in self.configs(folder, reduced)]

    def draw(self, folder: str, root: pathlib.Path, reduced: bool = False) -> None:
        """Draws the rows of a directory."""
        make = getattr(self.module, 'draw', drawing.draw)
        if not results.load(root / folder).empty:
            make(root / folder, self.configs(folder, reduced)[0])

    def text(self, rows: numbers.Rows) -> str:
        """The answer, whose first paragraph stands in the gallery."""
        return self.module.text(rows).strip()

    def answer(self, rows: numbers.Rows) -> str:
        """The answer's first paragraph."""
        return self.text(rows).partition('\n\n')[0]

    def table(self, rows: numbers.Rows) -> str:
        """The small table of the gallery, '' if there is none."""
        return self.module.table(rows).strip() if hasattr(self.module, 'table') else ''

    def limits(self, rows: numbers.Rows) -> str:
        """What it does not show."""
        return self.module.limits(rows).strip()

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Pictures and what they show."""
        return list(getattr(self.module, 'FIGURES', {}).items())

    def state(self, folder: str, root: pathlib.Path) -> str:
        """How many lanes of a directory have rows, and which have none."""
        planned, done = self.planned(folder), self.done(folder, root)
        missing = {cell: len(lanes - done.get(cell, set())) for cell, lanes in planned.items()}
        left = sum(missing.values())
        count = sum(map(len, planned.values()))
        if not left:
            return f'All {count} lanes.'
        names = dict.fromkeys(cell.rpartition('-')[0] for cell, number in missing.items() if number)
        return f'{count - left} of {count} lanes; not all of {", ".join(names)}.'

    def pictures(self, folder: str, root: pathlib.Path) -> list[str]:
        """Pictures of a directory that are in no text."""
        return [
            path.name
            for path in sorted((root / folder).glob('*.png'))
            if (f'{folder}/{path.name}') not in dict(self.figures)
        ]

    def tables(self, folder: str, root: pathlib.Path) -> dict[str, str]:
        """Tables that were drawn into a directory, by name."""
        return {path.stem: path.read_text().strip() for path in sorted((root / folder).glob('*.md'))}

    def planned(self, folder: str) -> dict[str, set[tuple]]:
        """By cell of a directory its lanes, without what is tuned."""
        found: dict[str, set[tuple]] = {}
        for sweep in self.sweeps(folder):
            for cell in sweeps.cells_of(sweep):
                lanes = (_key(lane._asdict(), sweep.tune.names if sweep.tune else ()) for lane in cell.lanes)
                found.setdefault(cell.id, set()).update(lanes)
        return found

    def done(self, folder: str, root: pathlib.Path) -> dict[str, set[tuple]]:
        """By cell of a directory the lanes that have rows, without what is tuned."""
        found: dict[str, set[tuple]] = {}
        for row in results.load(root / folder).to_dict('records'):
            tuned = row.get('tuned')
            tuned = tuned.split() if isinstance(tuned, str) else ()
            lane = {name: row[name] for name in columns.with_role(row, 'lane')}
            found.setdefault(row['cell'], set()).add(_key(lane, tuned))
        return found


def _key(lane: Mapping[str, Any], tuned: Sequence[str]) -> tuple:
    """A lane's settings that tell it apart; a search stops its lanes itself."""
    left_out = {*tuned, 'stop_after'}
    return tuple(sorted((k, float(v)) for k, v in lane.items() if k not in left_out and not pd.isna(v)))


@functools.cache
def every() -> dict[str, Exhibit]:
    """All exhibits by name, in the order of the gallery."""
    names = [module.name for module in pkgutil.iter_modules(exhibits.__path__)]
    found = [Exhibit(importlib.import_module(f'experiments.exhibits.{name}')) for name in names]
    return {one.name: one for one in sorted(found, key=lambda one: (one.module.ORDER, one.name))}


def find(name: str) -> tuple[Exhibit, tuple[str, ...]]:
    """An exhibit and those of its directories that are meant: all, or the one that has the name.

    Raises:
        ValueError: there is neither; the message proposes the nearest.
    """
    name = name.replace('-', '_')
    by_folder = {folder: (one, (folder,)) for one in every().values() for folder in one.folders}
    by_name = {one.name: (one, tuple(one.folders)) for one in every().values()}
    known = {**by_folder, **by_name}
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
        cells = {cell.id: (sweep, cell) for sweep in one.sweeps(folder) for cell in sweeps.cells_of(sweep)}
        for sweep, cell in cells.values():
            count = search.lanes_at_once(sweep.tune, cell) if sweep.tune else len(cell.lanes)
            default = lanes_per_batch.default_size(cell.problem.module, count, platform)
            yield Program(exhibit=folder, cell=cell, lanes=sweep.lanes_per_batch or default)


def run(*arguments: str) -> None:
    """Runs and draws the exhibits that the words of the command line name."""
    if not arguments:
        raise ValueError(f'which exhibit? There are {", ".join(every())}')
    found = [find(name) for name in arguments]
    if DRAW_ONLY.value:
        command_line.refuse_unused(('workdir',), '--draw_only')
    runtime.check()
    root = pathlib.Path(runtime.workdir('results'))
    root = root / 'reduced' if REDUCED.value else root
    if not DRAW_ONLY.value:
        runtime.start()
    for one, folders in found:
        for folder in folders:
            for config in one.configs(folder, REDUCED.value):
                if not DRAW_ONLY.value:
                    sweeps.run(base.to_sweep(config), root / folder, runtime.options())
                    one.draw(folder, root, REDUCED.value)  # so that a picture is there while the rest runs
            if DRAW_ONLY.value:
                one.draw(folder, root, REDUCED.value)


def main() -> None:
    """The binary."""
    command_line.launch(run, required=None, takes_arguments=True, used=(*command_line.DEVICES, *command_line.JOB))


if __name__ == '__main__':
    main()
