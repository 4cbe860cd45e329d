"""Digests of tables: whatever differs between two of them, their digests differ."""

import json

import pyarrow as pa
import pytest

from qstr_jax import columns
from qstr_jax.storage import table_format


@pytest.mark.parametrize('kind', [pa.int64(), pa.float32()], ids=str)
def test_a_missing_value_is_no_zero(kind):
    missing, zero = (pa.table({'a': pa.array([1, value], kind)}) for value in (None, 0))
    assert table_format.digest(missing) != table_format.digest(zero)


def test_a_column_has_the_same_role_in_all_files(monkeypatch):
    monkeypatch.setattr(columns, '_TABLE', dict(columns._TABLE))

    def schema(**roles):
        said = {table_format.ROLES_KEY: json.dumps(roles)}
        return pa.schema([(name, pa.float64()) for name in roles], metadata=said)

    table_format.declare(schema(clip_of_plugin='learner', measured='measure'))
    table_format.declare(schema(clip_of_plugin='learner'))
    with pytest.raises(table_format.ForeignError, match="has 'clip_of_plugin' as a column of the lane, elsewhere"):
        table_format.declare(schema(another='task', clip_of_plugin='lane'))
    assert not columns.is_declared('another')
    assert columns.get('clip_of_plugin').role == 'learner'


def test_the_type_of_a_column_is_part_of_the_digest():
    """Zeros are the same bytes in each."""
    kinds = pa.int32(), pa.uint32(), pa.float32()
    assert len({table_format.digest(pa.table({'a': pa.array([0, 0], kind)})) for kind in kinds}) == len(kinds)


def test_parts_that_join_to_the_same_bytes_are_not_the_same():
    one, other = (pa.table({'a': [1]}).replace_schema_metadata(said) for said in ({'ab': 'c'}, {'a': 'bc'}))
    assert table_format.digest(one) != table_format.digest(other)
