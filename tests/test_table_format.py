"""Digests of tables: whatever differs between two of them, their digests differ."""

import pyarrow as pa
import pytest

from qstr_jax.storage import table_format


@pytest.mark.parametrize('kind', [pa.int64(), pa.float32()], ids=str)
def test_a_missing_value_is_no_zero(kind):
    missing, zero = (pa.table({'a': pa.array([1, value], kind)}) for value in (None, 0))
    assert table_format.digest(missing) != table_format.digest(zero)


def test_the_type_of_a_column_is_part_of_the_digest():
    """Zeros are the same bytes in each."""
    kinds = pa.int32(), pa.uint32(), pa.float32()
    assert len({table_format.digest(pa.table({'a': pa.array([0, 0], kind)})) for kind in kinds}) == len(kinds)


def test_parts_that_join_to_the_same_bytes_are_not_the_same():
    one, other = (pa.table({'a': [1]}).replace_schema_metadata(said) for said in ({'ab': 'c'}, {'a': 'bc'}))
    assert table_format.digest(one) != table_format.digest(other)
