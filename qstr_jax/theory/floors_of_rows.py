"""The floors of trained lanes, from the settings in their rows."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from qstr_jax.theory import floors


def head_floor(row: Mapping[str, Any]) -> float:
    """The floor of the test loss that the number of heads sets; 0 where the task is not Proposition 3's."""
    heads = row.get('transformer_num_heads')
    is_task = (row['link'], row['indices'], row['tokens']) == ('norm2', 'half', 'half')
    if not is_task or heads is None or pd.isna(heads):
        return 0.0
    return floors.head_floor(int(heads), int(row['sparsity']), int(row['token_dim']))
