"""A quick test of a value against a JSON schema; jsonschema takes a hundred times as long, and says what is wrong.

A directory of 100,000 lanes has a plan and records with a million values. Only the keywords of `records` are known.
"""

import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], bool]
_TYPES: dict[str, Check] = {
    'object': lambda value: isinstance(value, dict),
    'array': lambda value: isinstance(value, list),
    'string': lambda value: isinstance(value, str),
    'boolean': lambda value: isinstance(value, bool),
    'null': lambda value: value is None,
    'number': lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    'integer': lambda value: isinstance(value, int) and not isinstance(value, bool),
}


def compiled(schema: dict[str, Any]) -> Check:
    """A function that says True of values that have a schema, and False of those that have not or may not.

    Raises:
        KeyError: the schema has a keyword that is not one of those below.
    """
    checks = [_KEYWORDS[name](schema[name], schema) for name in schema]
    if len(checks) == 1:
        return checks[0]

    def is_right(value: Any) -> bool:
        for check in checks:  # `all` takes twice as long
            if not check(value):
                return False
        return True

    return is_right


def _type(names: str | list[str], _: Any) -> Check:
    kinds = [_TYPES[name] for name in ([names] if isinstance(names, str) else names)]
    return kinds[0] if len(kinds) == 1 else lambda value: any(kind(value) for kind in kinds)


def _required(names: list[str], _: Any) -> Check:
    return lambda value: all(name in value for name in names)


def _properties(schemas: dict[str, Any], _: Any) -> Check:
    checks = {name: compiled(schema) for name, schema in schemas.items()}

    def is_right(value: dict[str, Any]) -> bool:
        for name, check in checks.items():
            if name in value and not check(value[name]):
                return False
        return True

    return is_right


def _additional(schema: dict[str, Any], whole: dict[str, Any]) -> Check:
    check, known = compiled(schema), whole.get('properties', {})
    return lambda value: all(check(one) for name, one in value.items() if name not in known)


def _names(schema: dict[str, Any], _: Any) -> Check:
    check = compiled(schema)
    return lambda value: all(map(check, value))


def _items(schema: dict[str, Any], _: Any) -> Check:
    check = compiled(schema)
    return lambda value: all(map(check, value))


def _pattern(pattern: str, _: Any) -> Check:
    found = re.compile(pattern).search
    return lambda value: found(value) is not None


_KEYWORDS: dict[str, Callable[[Any, dict[str, Any]], Check]] = {
    'type': _type,  # The first of each schema, so that the others see values of its type.
    'required': _required,
    'properties': _properties,
    'additionalProperties': _additional,
    'propertyNames': _names,
    'items': _items,
    'pattern': _pattern,
    'minimum': lambda least, _: lambda value: value is None or value >= least,
    'maximum': lambda most, _: lambda value: value is None or value <= most,
    'format': lambda *_: lambda value: False,  # Few records have one: jsonschema says.
}
