"""What kind of lanes rows are of: online training, searches for n*, or fits of a training set of given size."""

from typing import NamedTuple

import pandas as pd


class Kinds(NamedTuple):
    """The rows of one directory by kind."""

    online: pd.DataFrame  # lanes that draw fresh prompts until their test loss is below a threshold
    searches: pd.DataFrame  # lanes that search for n*
    fits: pd.DataFrame  # lanes that fit n prompts


def split_kinds(rows: pd.DataFrame) -> Kinds:
    """The rows of each kind."""
    nothing = pd.Series(False, rows.index)
    is_search = rows.get('is_search', nothing).eq(True)
    has_size = rows.get('sample_size', nothing).fillna(0).gt(0)
    is_fitted = rows.get('outcome', nothing).eq('fitted')
    is_fit = ~is_search & (has_size | is_fitted)
    return Kinds(online=rows[~is_search & ~is_fit], searches=rows[is_search], fits=rows[is_fit])
