"""What tells the curves of a table apart: the settings in which rows differ, except those that follow from others.

A curve is what a figure joins with a line: rows that differ only in the seeds, in the setting on the x axis, and in
settings that follow from it, such as widths that are a multiple of N.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import columns
from qstr_jax.analysis import names

# Not a setting that tells curves apart: a lane that is stopped sooner is the same lane.
_NO_SETTING = ('stop_after',)
# A summary names these even where all rows have the same value.
ALWAYS_NAMED = ('model', 'task', 'sparsity', 'seq_len')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curve:
    """The lanes of one curve, and what is special about it.

    Attributes:
        model: the architecture.
        task: settings of the task in which the curves of the table differ; a figure makes a panel of each.
        settings: other settings in which this curve differs from others of the same model.
        lanes: the rows.
        places: the numbers of their lines in the table.
    """

    model: str
    task: Mapping[str, Any]
    settings: Mapping[str, Any]
    lanes: pd.DataFrame
    places: np.ndarray

    @property
    def key(self) -> str:
        """Short and unique within a panel, for looks and ids: 'transformer', or 'transformer learning_rate=0.01'."""
        return ' '.join([self.model, *(f'{name}={value}' for name, value in self.settings.items())])

    @property
    def name(self) -> str:
        """The curve's name for readers: 'Transformer', or 'Transformer, learning rate 0.01'."""
        return ', '.join([names.display(self.model), *(names.setting_text(*item) for item in self.settings.items())])

    @property
    def short(self) -> str:
        """As `name` for figures, without the model's name in settings: 'gated_delta, heads 1, not bidirectional'."""
        words = f'{self.model.replace("_", " ")} '
        texts = {name: names.setting_text(name, value).removeprefix(words) for name, value in self.settings.items()}
        for name, value in self.settings.items():
            if isinstance(value, (bool, np.bool_)):
                texts[name] = f'{"" if value else "not "}{names.heading(name).removeprefix(words)}'
        return ', '.join([names.display(self.model), *texts.values()])


def require(rows: pd.DataFrame, needed: Sequence[str]) -> None:
    """Raises ValueError where a table has no rows, or lacks some columns, which it names."""
    missing = [column for column in dict.fromkeys(needed) if column not in rows.columns]
    if missing:
        raise ValueError(f'rows lack the columns: {", ".join(missing)}')
    if rows.empty:
        raise ValueError('no rows: the table is empty')


def setting_columns(rows: pd.DataFrame) -> list[str]:
    """The columns of a table that are settings, without the seeds.

    An undeclared column `<model>_<name>` is a setting of that model.
    """
    declared = set(columns.settings(rows.columns)).difference(_NO_SETTING)
    prefixes = tuple(f'{model}_' for model in set(rows['model']))
    return [
        name
        for name in rows.columns
        if name in declared or (name.startswith(prefixes) and not columns.is_declared(name))
    ]


def curve_columns(rows: pd.DataFrame, x: str | None = None, leave_out: Sequence[str] = ()) -> list[str]:
    """The settings that tell the curves of a table apart: `model`, then those of the task, model, learner and lane.

    These are the settings in which rows differ. One that follows from `x` and the others is left out: `ffn_widths`
    where it is a multiple of N, `learning_rate` where each point has the one that validation chose. Those of
    `leave_out` count as equal.
    """
    fixed = ['model', *([x] if x else [])]
    return ['model', *_independent(rows, fixed, leave_out)]


def point_columns(rows: pd.DataFrame, leave_out: Sequence[str] = ()) -> list[str]:
    """What names one point of a table: model, task, q and N, and further settings in which rows differ."""
    always = [name for name in ALWAYS_NAMED if name in rows.columns and name not in leave_out]
    return [*always, *_independent(rows, always, leave_out)]


def split_curves(rows: pd.DataFrame, x: str = 'seq_len') -> list[Curve]:
    """The curves of a table against a setting: by task, then models in `model_order`, then by the other settings.

    Rows without a value of `x`, since their model or learner has no such setting, are left out; ValueError if all are.
    """
    require(rows, ('model', x))
    present = np.flatnonzero(rows[x].notna())
    rows = rows.iloc[present]
    if rows.empty:
        raise ValueError(f'no row has a value of {x}')
    apart = curve_columns(rows, x)
    order = {model: place for place, model in enumerate(names.model_order(rows))}
    varying = {
        model: [name for name in apart[1:] if lanes[name].nunique(dropna=False) > 1]
        for model, lanes in rows.groupby('model')
    }
    curves, groups = [], rows.groupby(apart, dropna=False, sort=False)
    for (values, lanes), places in zip(groups, places_of(groups), strict=True):
        point = dict(zip(apart, values, strict=True))
        model = point.pop('model')
        task = dict(_ruled(item, lanes) for item in point.items() if columns.get(item[0]).role == 'task')
        own = {
            name: value
            for name, value in point.items()
            if columns.get(name).role != 'task' and name in varying[model] and not pd.isna(value)
        }
        curves.append(Curve(model=model, task=task, settings=own, lanes=lanes, places=present[places]))
    return sorted(curves, key=lambda curve: _curve_order(curve, order))


def places_of(groups: Any) -> list[np.ndarray]:
    """The numbers of the lines of each group of a table, in the order of the groups."""
    codes = groups.ngroup().to_numpy()
    order = np.argsort(codes, kind='stable')
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _ruled(setting: tuple[str, Any], lanes: pd.DataFrame) -> tuple[str, Any]:
    """A setting of the task; where there is no rule for d_e, d_e itself."""
    name, value = setting
    if name == 'encoding_factor' and pd.isna(value) and lanes['encoding_dim'].nunique() == 1:
        return 'encoding_dim', lanes['encoding_dim'].iloc[0]
    return setting


def only_curve(rows: pd.DataFrame, x: str = 'seq_len') -> None:
    """Checks that a table holds one curve."""
    for column in curve_columns(rows, x):
        values = rows[column].drop_duplicates().tolist()
        if len(values) > 1:
            raise ValueError(f'rows of several curves: {column} {sorted(values, key=str)}')


def _independent(rows: pd.DataFrame, fixed: Sequence[str], leave_out: Sequence[str]) -> list[str]:
    """The settings in which rows differ and that follow neither from the fixed ones nor from each other.

    Settings of the task cannot follow from the model's, the model's not from the learner's, these not from the lane's.
    """
    if 'cell' in rows.columns:  # its rows differ only in settings of the lane and in the thresholds that they recorded
        of_lanes = [name for name in columns.settings(rows.columns) if columns.get(name).role == 'lane']
        rows = rows.drop_duplicates([*of_lanes, *rows.columns.intersection(['cell', 'folder', 'threshold'])])
    if len(rows) == 1:
        return []
    settings = [name for name in setting_columns(rows) if name not in fixed and name not in leave_out]
    place = {name: i for i, name in enumerate([*fixed, *settings])}
    codes = np.stack([pd.factorize(rows[name], use_na_sentinel=False)[0] for name in place], axis=1)
    # Curves have thousands of lines of each lane.
    codes = pd.DataFrame(codes).drop_duplicates().to_numpy()
    kept = [name for name in settings if codes[:, place[name]].any()]
    role = {name: _rank(name)[0] for name in kept}
    for name in sorted(kept, key=_expendable, reverse=True):
        others = [*fixed, *(other for other in kept if other != name and role[other] <= role[name])]
        given = [place[other] for other in others]
        if others and _num_distinct(codes[:, given]) == _num_distinct(codes[:, [*given, place[name]]]):
            kept.remove(name)
    return sorted(kept, key=_rank)


def _num_distinct(codes: np.ndarray) -> int:
    """How many different lines an array has."""
    return len(set(map(bytes, codes)))


def _rank(name: str) -> tuple[int, int]:
    """Task, model, learner, lane; within each as in the table of columns."""
    role = columns.get(name).role
    # An undeclared setting belongs to a model.
    return columns.ROLES.index(role if columns.is_declared(name) else 'model'), columns.position(name)


def _expendable(name: str) -> tuple[int, int]:
    """Sort key: settings with larger keys are dropped first as redundant.

    A lane's settings go first, the learning rate before the radius that it was chosen for. Then those of the learner,
    the model and the task go, each from the end of the table: d_e follows from N, and not N from d_e.
    """
    place, position = _rank(name)
    return place, -position if columns.ROLES[place] == 'lane' else position


def _curve_order(curve: Curve, models: Mapping[str, int]) -> tuple:
    """The key by which curves are sorted."""
    task, own = ([names.sort_key(value) for value in part.values()] for part in (curve.task, curve.settings))
    return task, models[curve.model], own
