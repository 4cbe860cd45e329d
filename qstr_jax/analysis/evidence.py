"""What Table 1 rests on: curves of samples against N, of four kinds that it keeps apart.

online: fresh prompts, one learning rate for all N.   tuned: fresh prompts, at each N the settings that need fewest
samples.   fixed: searches for n*, the least size of a training set that is enough.   worst: searches for the largest n
at which an ERM errs, a lower bound of the n from which none does.
"""

import itertools
from collections.abc import Iterator

import pandas as pd

from qstr_jax import columns
from qstr_jax.analysis import erms, kinds, selection, tuning
from qstr_jax.analysis.curves import ALWAYS_NAMED, setting_columns

ONLINE, TUNED, FIXED, WORST = 'online', 'tuned', 'fixed', 'worst'
KINDS = (ONLINE, TUNED, FIXED, WORST)
# The kinds that theorems are about.
OF_THEOREMS = (FIXED, WORST)
# Settings that save time or allow more of it, but do not change how many samples a lane needs.
_COST = ('screen', 'max_samples')
# Settings of a learner that may follow from N, as a shape does: lanes that need more samples may be tested less often.
_MAY_FOLLOW = ('check_every',)
# Settings that say how another one follows from N; they follow from nothing themselves.
_RULES = ('encoding_factor',)
# Baselines search for n*, too.
_CLOSED_FORM = 'closed_form'


def kind_of(rows: pd.DataFrame) -> pd.Series:
    """The kind of each row; missing for fits of a given n, and for baselines in closed form."""
    online, searches, _ = kinds.split_kinds(rows)
    kind = pd.Series(None, rows.index, dtype=object)
    kind[online.index[online['learner'] == 'online']] = ONLINE
    if 'tuned' in rows.columns:
        kind[(kind == ONLINE) & rows['tuned'].fillna('').ne('')] = TUNED
    kind[searches.index[searches['learner'] != _CLOSED_FORM]] = FIXED
    kind[searches.index[searches['learner'] == erms.WORST]] = WORST
    return kind


def own_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """The lanes of points at which every lane draws its own (u, ω); repeats of one draw would understate the error."""
    for one, other in (('task_seed', 'seed'), ('seed', 'task_seed')):
        lanes = rows.groupby(['folder', *_settings(rows), one], dropna=False)
        rows = rows[lanes[other].transform('nunique') == 1]
    return rows


def curves(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The lanes of each curve with several N; at each N they are from the directories with the most N.

    A shape is made of the settings that follow from N in some directory, such as widths and d_e. Settings that are
    chosen at each N, by tuning or by validation, do not tell curves apart.
    """
    chosen = _chosen(rows)
    is_tuned = kind_of(rows).eq(TUNED).all()
    if kind_of(rows).eq(FIXED).all():
        rows = selection.select(rows, [name for name in chosen if name in rows.columns])
    rows = _distinct(rows)
    for _, mine in rows.groupby(['model', 'task'], sort=False):
        # Without the settings of other architectures, of which there are hundreds.
        mine = mine[[name for name in mine.columns if columns.is_declared(name) or mine[name].notna().any()]]
        settings = _settings(mine)
        shape = _following(mine, settings, chosen)
        apart = [name for name in settings if name not in ('seq_len', *shape, *chosen)]
        apart += ['tuned'] if is_tuned else []
        for _, lanes in mine.groupby(['model', *apart], dropna=False, sort=False):
            if lanes['seq_len'].nunique() > 1:
                lanes = _of_one_shape(lanes, shape) if shape else lanes
                lanes = lanes[_is_of_the_longest(lanes)]
                lanes = lanes[_is_of_one_search(lanes)] if is_tuned else lanes
            if lanes['seq_len'].nunique() > 1:
                yield lanes


def _chosen(rows: pd.DataFrame) -> list[str]:
    """The settings that were chosen at each N."""
    if kind_of(rows).eq(FIXED).all():
        return list(selection.DEFAULT_OVER)
    return sorted(tuning.tuned_settings(rows))


def _settings(rows: pd.DataFrame) -> list[str]:
    """The settings in which rows differ; the others tell nothing apart, and tables have dozens of them."""
    return [name for name in setting_columns(rows) if name not in _COST and rows[name].nunique(dropna=False) > 1]


def _distinct(rows: pd.DataFrame) -> pd.DataFrame:
    """Each lane once, from the directory with the most N."""
    lane = ['seed', 'task_seed', *_settings(rows)]
    reach = rows.groupby(['folder', 'model', 'task'])['seq_len'].transform('nunique')
    rows = rows.loc[reach.sort_values(ascending=False, kind='stable').index]
    # Whole numbers of one directory may be floats in another, where they stand beside missing values.
    keys = pd.DataFrame({name: pd.factorize(rows[name].astype(object), use_na_sentinel=False)[0] for name in lane})
    return rows[~keys.duplicated().to_numpy()].reset_index(drop=True)


def _following(rows: pd.DataFrame, settings: list[str], chosen: list[str]) -> list[str]:
    """The settings of model and task, and a few others, whose values change with N in some directory."""
    may = [
        name
        for name in settings
        if name in _MAY_FOLLOW
        or (columns.get(name).role not in ('learner', 'lane') and name not in (*ALWAYS_NAMED, *_RULES))
    ]
    fixed = [name for name in settings if name not in (*may, *chosen, 'seq_len')]
    groups = [lanes for _, lanes in rows.groupby(['folder', *fixed], dropna=False) if lanes['seq_len'].nunique() > 1]
    return [name for name in may if any(_differs(lanes, name) for lanes in groups)]


def _differs(lanes: pd.DataFrame, name: str) -> bool:
    """Whether a setting has no value in common at two different N."""
    values = [set(cell[name].astype(str)) for _, cell in lanes.groupby('seq_len')]
    return any(one.isdisjoint(other) for one, other in itertools.combinations(values, 2))


def _is_of_the_longest(lanes: pd.DataFrame) -> pd.Series:
    """Which lanes are from the directory with the most N, of those with lanes at their N; its figure agrees."""
    reach = lanes.groupby('folder')['seq_len'].transform('nunique')
    return reach == reach.groupby(lanes['seq_len']).transform('max')


def _is_of_one_search(lanes: pd.DataFrame) -> pd.Series:
    """Which lanes are from the first directory that has their N: another search may have chosen other values."""
    return lanes['folder'] == lanes.groupby('seq_len')['folder'].transform('min')


def _of_one_shape(lanes: pd.DataFrame, shape: list[str]) -> pd.DataFrame:
    """At each N the lanes of one shape; an N at which the choice is open is left out."""
    number = lanes.groupby(shape, dropna=False).ngroup()
    known = number[_is_of_the_longest(lanes)].groupby(lanes['seq_len']).agg(['nunique', 'first'])
    chosen = known.loc[known['nunique'] == 1, 'first']
    return lanes[number == lanes['seq_len'].map(chosen)]
