"""Runs the suite for an architecture and writes its card beside the committed rows of all others."""

import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd
from etils import epath

from qstr_jax import sweeps
from qstr_jax.comparison import card, entries
from qstr_jax.comparison import suite as suites
from qstr_jax.outside import LEARNER
from qstr_jax.settings import function_names
from qstr_jax.storage import names, provenance, results


def compare(
    models: str | Sequence[str] | None,
    workdir: Any,
    *,
    suite: str = 'quick',
    seq_lens: Sequence[int] | None = None,
    every_point: bool = False,
    options: sweeps.Options | None = None,
    **settings: Any,
) -> card.Cards:
    """Your architecture beside all others: runs the suite's points that are not there yet, and writes a card.

    A directory that was stopped goes on where it was. The card is card.html, card.png, card.md and card.json in
    `workdir`, or in a folder of each entry where there are several.

        qstr_jax.compare('mine', 'results/mine', mine={'width': 32})

    Args:
        models: registered architectures; None runs nothing and takes what is there, such as rows of `outside`.
        workdir: the results directory.
        suite: 'quick' or 'long'.
        seq_lens: some of the suite's N; None for all.
        every_point: whether a task goes on to longer prompts after an N at which no lane learns.
        options: how to run.
        **settings: of the models, such as rnn={'width': 40}.

    Returns:
        What each card says, by entry: a dict that is shown as its sentences, and in notebooks with its tables.

    Raises:
        ValueError: an unknown name, or no row of the suite in the directory.
    """
    points = suites.get(suite)
    given = {'seq_lens': seq_lens, 'every_point': every_point or None, 'options': options}
    of_run = {name: value for name, value in given.items() if value is not None}
    if not models and (ignored := {**settings, **of_run}):
        name, value = next(iter(ignored.items()))
        raise ValueError(f'{name}={value!r}: would be ignored, since without models nothing is run')
    if models:
        planned = points.sweeps_of(models, seq_lens, **settings)
        cells = [cell for sweep in planned for cell in sweeps.cells_of(sweep)]
        _check_single(cells)
        _check_settings(cells, workdir, points)
        sweeps.run_all(planned, workdir, options, until_none_learns=not every_point)
    elif not (epath.Path(workdir) / 'config.json').exists():
        raise ValueError(f'workdir={str(workdir)!r}: has no rows yet, so give models to run')
    mine = entries.of_directory(workdir, points)
    _say_what_is_left_out(workdir, points)
    if mine.empty:
        raise ValueError(f'workdir={str(workdir)!r}: has no rows of the suite {points.version}')
    made = provenance.made_by(['qstr_jax.compare'])
    known = entries.reference()
    known = known[known['suite'] == points.version]
    entered = [names.check(name) for name in dict.fromkeys(mine['entry'])]  # since the names come from files
    for name in sorted(set(mine['entry'][mine['learner'].eq(LEARNER)]) & set(known['entry'])):
        warnings.warn(f"{name}: stands on the card in place of the board's entry of this name", stacklevel=2)
    cards = card.Cards()
    for name in entered:
        rows = pd.concat([known[~known['entry'].isin(entered)], mine], ignore_index=True)
        cards[name] = card.data(points, name, rows, made)
        card.write(names.inside(workdir, name) if len(entered) > 1 else workdir, cards[name], rows)
    return cards


def _check_single(cells: Sequence[sweeps.Cell]) -> None:
    """Raises ValueError, before anything runs, for several values of a setting, which a card cannot tell apart."""
    first: dict[tuple, dict[str, Any]] = {}
    for cell in cells:
        asked = dict(cell.columns)
        other = first.setdefault((asked['model'], asked['task'], asked['seq_len']), asked)
        for name, value in asked.items():
            if value != other.get(name):
                raise ValueError(
                    f'{name}: has values {other.get(name)!r} and {value!r}; give one, and each a directory of its own'
                )


def _check_settings(cells: Sequence[sweeps.Cell], workdir: Any, points: suites.Suite) -> None:
    """Raises ValueError, before anything runs, where rows of a model are there with other settings."""
    if not (epath.Path(workdir) / 'config.json').exists():
        return
    rows, point = points.rows_of(results.load(workdir)), ['model', 'task', 'seq_len']
    for cell in cells if len(rows) else ():
        asked = dict(cell.columns)
        there = rows[(rows[point] == [asked[name] for name in point]).all(axis=1)]
        for name in (name for name in asked if name.startswith(f'{asked["model"]}_') and name in there.columns):
            other = there[name][there[name].ne(function_names.plain(asked[name])) & there[name].notna()]
            if len(other):
                raise ValueError(
                    f'{name}={asked[name]!r}: {str(workdir)!r} has rows with {other.iloc[0]!r}; '
                    'give each setting of a model a directory of its own'
                )


def _say_what_is_left_out(workdir: Any, points: suites.Suite) -> None:
    """Warns of rows of foreign loops that are not of the suite; ours may be of any sweep."""
    rows = results.load(workdir)
    foreign = rows[rows['learner'].eq(LEARNER)] if len(rows) else rows
    if len(left := foreign.drop(points.rows_of(foreign).index)):
        why = points.why_not(left)
        warnings.warn(f'left out: {len(left)} of {len(foreign)} rows{why and f", such as {why}"}', stacklevel=3)
