"""What a sweep tunes: which settings, over which values, on which seeds."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from qstr_jax.settings import checks, registry
from qstr_jax.sweeps.grids import Grid

# Selection seeds start here, far from the seeds that are reported.
FIRST_SEED = 10_000
# How the tuning is done; all other names are settings to be tuned.
OPTIONS = ('num_seeds', 'margin')
# Settings that say what is measured, not how well: among these the weakest goal would win.
GOALS = {
    'threshold', 'thresholds', 'threshold_on', 'max_samples', 'min_samples', 'resolution', 'sample_size', 'stop_after',
    'test_samples', 'validation_samples', 'screen', 'precision', 'risk', 'erm_tolerance', 'epsilon', 'reference',
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Tune:
    """Finds at each point the values whose slowest selection lane needs fewest samples; the rows are of other seeds.

    Attributes:
        grids: (name, values) of each tuned number that lanes can differ in, sorted by name; no values means 'auto', a
            ladder of 1 and 3 times powers of ten that starts at the setting's default.
        choices: (name, values) of each other tuned setting of a learner, such as the batch size, sorted by name. Each
            combination is a cell of its own, and these cells race one another.
        num_seeds: number of selection seeds, each with a task of its own.
        margin: a rival's lane is stopped once it has used this many times the samples of the best values so far.
    """

    grids: tuple[tuple[str, tuple[float, ...]], ...]
    choices: tuple[tuple[str, tuple], ...] = ()
    num_seeds: int = 3
    margin: float = 1.1

    def __post_init__(self) -> None:
        learners = [entry for entry in registry.entries().values() if entry.kind == 'learner']
        known = sorted({name for entry in learners for name in entry.schema} - GOALS)
        if not self.names:
            raise ValueError(f'tune: name the settings to tune, such as learning_rate=auto; one of {", ".join(known)}')
        for name in self.names:
            if name in GOALS:
                raise ValueError(f'tune.{name}: says what is measured, so it cannot be tuned')
            checks.choice('tune', name, known)
        checks.integer('tune.num_seeds', self.num_seeds)
        checks.number('tune.margin', self.margin, 1)

    @property
    def names(self) -> tuple[str, ...]:
        """The tuned settings."""
        return tuple(sorted(name for name, _ in (*self.grids, *self.choices)))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The selection seeds."""
        return tuple(range(FIRST_SEED, FIRST_SEED + self.num_seeds))

    def grids_of(self, learner: Any) -> tuple[Grid, ...]:
        """The grid of each tuned setting for a learner."""
        schema = registry.entries()[learner.name].schema
        for name in self.names:
            if name not in schema or name in learner.ignored():
                raise ValueError(f'tune.{name}: would be ignored by learner {learner.name}')
        return tuple(Grid(values=values, default=schema[name].default, name=name) for name, values in self.grids)

    def as_json(self) -> dict[str, Any]:
        """The tuning as a dict that JSON can hold."""
        tuned = {
            name: [list(one) if isinstance(one, tuple) else one for one in values] or 'auto'
            for name, values in (*self.grids, *self.choices)
        }
        return {**tuned, **{name: getattr(self, name) for name in OPTIONS}}


def parse(given: Mapping[str, Any] | None, learners: Sequence[str] = ()) -> Tune | None:
    """The tuning that a mapping asks for, such as {'learning_rate': 'auto', 'num_seeds': 3}; None for an empty one.

    Values are checked by those of the sweep's learners that have the setting.
    """
    if not given:
        return None
    if not isinstance(given, Mapping):
        raise ValueError(f"tune={given!r}: give a mapping, such as {{'learning_rate': 'auto'}}")
    options = {name: given[name] for name in OPTIONS if name in given}
    traced = {name for name in given for entry in _having(name, learners) if name in entry.schema.traced}
    tuned = sorted((name, _values(name, value, learners)) for name, value in given.items() if name not in OPTIONS)
    for name, values in tuned:
        if not values and name not in traced and _having(name, learners):
            raise ValueError(f"tune.{name}='auto': give several values")
    grids = tuple((name, tuple(sorted(values))) for name, values in tuned if name in traced)
    return Tune(grids=grids, choices=tuple(one for one in tuned if one[0] not in traced), **options)


def _values(name: str, given: Any, learners: Sequence[str]) -> tuple:
    """The values of a tuned setting; () for 'auto'."""
    if given == 'auto':
        return ()
    several = given.split(',') if isinstance(given, str) else given  # a command line hands names over as one text
    if not isinstance(several, (tuple, list)) or len(several) < 2:
        raise ValueError(f"tune.{name}={given!r}: give 'auto' or several values")
    checked = [entry.schema[name].values(given, f'tune.{name}') for entry in _having(name, learners)]
    return checked[0] if checked else tuple(several)


def _having(name: str, learners: Sequence[str]) -> list[registry.Entry]:
    """The learners of a sweep that have a setting, or all that do."""
    found = registry.having('learner', name)
    return [entry for entry in found if entry.name in learners] or found
