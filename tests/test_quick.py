"""The quick look at records agrees with jsonschema wherever it says that a record is right."""

import random

import jsonschema
import pytest

from qstr_jax.storage import quick, records
from tests.test_records import RIGHT, WRONG

VALUES = (None, True, 3, 2.0, -1, float('nan'), 10**500, 'x', '../x', [], ['a'], {}, {'a': {}}, {'cell': 'a'})


def changed(value, draw):
    """A record with one part replaced, at a random depth."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        name = draw.choice(sorted(value))
        return {**value, name: changed(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        place = draw.randrange(len(value))
        return [*value[:place], changed(value[place], draw), *value[place + 1 :]]
    return draw.choice(VALUES)


@pytest.mark.parametrize('kind', RIGHT)
def test_what_is_right_at_once_is_right(kind):
    is_right, draw = quick.compiled(records.SCHEMAS[kind]), random.Random(kind)
    right = jsonschema.Draft202012Validator(records.SCHEMAS[kind]).is_valid
    tried = [RIGHT[kind], *WRONG[kind], *(changed(RIGHT[kind], draw) for _ in range(300))]
    assert [value for value in tried if is_right(value) and not right(value)] == []


@pytest.mark.parametrize('kind', ['plan', 'run', 'config', 'error'])
def test_what_we_write_is_right_at_once(kind):
    assert quick.compiled(records.SCHEMAS[kind])(RIGHT[kind])


def test_missing_numbers_and_numbers_out_of_bounds():
    is_right = quick.compiled({'type': ['number', 'null'], 'minimum': 0, 'maximum': 5})
    assert list(map(is_right, [None, 0, 5, -1, 6, 'x', True])) == [True, True, True, False, False, False, False]


def test_other_keywords_are_an_error():
    with pytest.raises(KeyError, match='oneOf'):
        quick.compiled({'type': 'object', 'oneOf': []})
