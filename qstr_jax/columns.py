"""What is known of each column of the rows and curves; `column_table` has those of this package.

Storage, analysis, plots and report look here and keep no lists of their own. Settings of plugins are not in that table:
a rows file names the role of each of its columns, and reading the file declares the new ones.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from qstr_jax.column_table import KNOWN, Column

ROLES = ('task', 'model', 'learner', 'lane', 'outcome', 'measure')
# Checked, since names also come from files.
_NAME = re.compile(r'[A-Za-z]\w{0,99}')


_TABLE = {column.name: column for column in KNOWN}
# Columns that mean the same in every file; those that a file or a plugin declares are not among them.
OURS = frozenset(_TABLE)
# Columns of the rows that no setting may be called: whose rows these are, and what became of them.
RESERVED = frozenset(
    {'cell', 'folder', 'task', 'test_task', 'model', 'learner', 'seed', 'task_seed'}
    | {column.name for column in KNOWN if column.role in ('outcome', 'measure')}
)


def get(name: str) -> Column:
    """The column of a name; an undeclared one is a measure.

    Args:
        name: as in the rows.
    """
    return _TABLE.get(name) or Column(name, 'measure')


def is_declared(name: str) -> bool:
    """Whether the table has a column of this name.

    Args:
        name: as in the rows.
    """
    return name in _TABLE


def position(name: str) -> int:
    """The place of a column in the table, from 0; undeclared columns come last.

    Args:
        name: as in the rows.
    """
    return list(_TABLE).index(name) if name in _TABLE else len(_TABLE)


def declare(name: str, role: str, type: str = 'float', label: str = '') -> None:
    """Adds a column to the table, unless the table has it already.

    Args:
        name: letters, digits and _.
        role: one of `ROLES`.
        type: as in `Column`.
        label: as in `Column`.

    Raises:
        ValueError: an impossible name or role.
    """
    if not _NAME.fullmatch(name) or role not in ROLES:
        roles = ', '.join(ROLES)
        raise ValueError(f'column {name!r}, role {role!r}: a name has letters, digits and _; a role is one of {roles}')
    _TABLE.setdefault(name, Column(name, role, type, label=label))


def symbol(name: str) -> str:
    """The paper's symbol of a column, or its name.

    Args:
        name: as in the rows.
    """
    return get(name).symbol or name


def label(name: str) -> str:
    """The name of a column in axes and legends: its label, or its name with spaces.

    Args:
        name: as in the rows.
    """
    return get(name).label or name.replace('_', ' ')


def with_role(names: Iterable[str], *roles: str) -> list[str]:
    """The columns among `names` that have one of some roles; those of the role 'lane' alone in the table's order.

    Args:
        names: columns of a table.
        *roles: one or more of `ROLES`.
    """
    found = [name for name in names if get(name).role in roles]
    order = {name: place for place, name in enumerate(_TABLE)}
    return sorted(found, key=lambda name: order[name]) if roles == ('lane',) else found


def settings(names: Iterable[str]) -> list[str]:
    """The columns among `names` that are settings of the task, the model, the learner or the lane, without the seeds.

    Args:
        names: columns of a table.
    """
    return [name for name in with_role(names, *ROLES[:4]) if name not in ('seed', 'task_seed')]


def roles_of(names: Iterable[str]) -> Mapping[str, str]:
    """The role of each of some columns, as rows files keep it.

    Args:
        names: columns of a table.
    """
    return {name: get(name).role for name in names}


def plain(value: Any) -> Any:
    """A setting's value as JSON and tables hold it: things with a name by that, tuples of numbers as '120,1000'.

    Args:
        value: of a setting.
    """
    if isinstance(value, tuple):
        return ','.join(map(str, value))
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return str(getattr(value, 'name', getattr(value, '__name__', type(value).__name__)))
