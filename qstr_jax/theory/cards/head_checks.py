"""The checks that the cards of Propositions 3 and 21 share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.theory import floors
from qstr_jax.theory.cards import card


def floors_of(rows: pd.DataFrame, floor: Callable[[Any, int], float], fewer: int = 0) -> np.ndarray:
    """The floor at late positions of each row, as if its network had some heads fewer.

    Args:
        rows: with the column heads.
        floor: (row, number of heads) → floor.
        fewer: how many heads fewer; where none are left the floor is the label's variance.
    """
    return np.array(
        [floors.LATE_VARIANCE if row.heads <= fewer else floor(row, row.heads - fewer) for row in rows.itertuples()]
    )


def checks_of(
    trained: pd.DataFrame,
    readers: pd.DataFrame,
    built: pd.DataFrame,
    *,
    floor_of: Callable[..., np.ndarray],
    what: tuple[str, str],
) -> list[card.Check]:
    """Checks that trained networks keep a floor, best readers attain it, and Lemma 11's construction passes below it.

    Args:
        trained: rows of trained networks.
        readers: rows of best readers.
        built: rows of the construction, with H ≥ q.
        floor_of: (rows, fewer=0) → the floor of each row, see `floors_of`.
        what: names of the first two checks.
    """
    floor = floor_of(trained)
    wrong = card.above('wrong floor', trained['loss'], floor_of(trained, fewer=1), trained['error'])
    return [
        card.above(what[0], trained['loss'], floor, trained['error'], can_fail=floor > 0),
        card.near(what[1], readers['loss'], floor_of(readers), readers['error']),
        card.fails('a wrong floor, of one head fewer, is crossed', wrong),
        card.below('Lemma 11 with H ≥ q: loss < 0.01', built['loss'], 0.01),
    ]
