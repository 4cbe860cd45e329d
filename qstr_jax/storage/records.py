"""JSON files of a results directory, and cards: they may be damaged, foreign or hostile, and only this file reads them.

Each kind has a schema, which allows further fields, since records of other versions have some.
"""

import datetime
import pathlib
import warnings
from typing import Any

import fastjsonschema

from qstr_jax.storage import files, names
from qstr_jax.storage.files import ResultsError

_NAME = {'type': 'string', 'pattern': rf'^{names.NAME}\Z'}
_TEXT = {'type': 'string'}
# Bounded, since JSON allows numbers of a thousand digits.
_SECONDS = {'type': 'number', 'minimum': 0, 'maximum': 1e12}
_COUNT = {'type': 'integer', 'minimum': 0, 'maximum': 2**62}
_TIME = {'type': 'string', 'format': 'date-time'}
_LANES = {'type': 'array', 'items': _NAME}
_LIST_OF_TEXT = {'type': 'array', 'items': _TEXT}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {'type': 'object', 'required': list(required), 'properties': {**required, **(optional or {})}}


_BATCH = _object(
    {'cell': _NAME, 'lanes': _LANES, 'wall_seconds': _SECONDS, 'compile_seconds': _SECONDS},
    {'stopped': {'type': 'boolean'}, 'program': _TEXT},
)
_CHECKED = {'type': 'array', 'items': _object({'cell': _NAME, 'program': _TEXT})}
_TEXTS = {'type': 'object', 'additionalProperties': _TEXT}
_RUN = {
    'id': _NAME, 'started': _TEXT, 'command': _LIST_OF_TEXT,
    'git_commit': {'type': ['string', 'null']}, 'python': _TEXT, 'device': _TEXT, 'packages': _TEXTS,
    'plugins': _LIST_OF_TEXT, 'sources': _TEXTS, 'checked': _CHECKED,
}  # fmt: skip
_RUN_SAYS = {name: _RUN[name] for name in ('command', 'git_commit', 'python', 'device', 'packages')}
_LIST = {'type': 'array', 'items': {'type': 'object'}}
_TABLE = {'type': 'object', 'additionalProperties': {'type': 'array'}}
_CARD = _object(
    {'statement': _TEXT, 'claim': _TEXT, 'setting': _TEXT, 'finding': _TEXT, 'settings': {'type': 'object'},
     'checks': _LIST, 'panels': _LIST, 'points': _TABLE, 'lines': _TABLE}
)  # fmt: skip
_NUMBER = {'type': ['number', 'null'], 'minimum': 0, 'maximum': 1e300}
_PROGRAM = _object(
    {'device': _TEXT, 'exhibit': _TEXT, 'cell': _TEXT, 'model': _TEXT, 'seq_len': _COUNT, 'lanes': _COUNT,
     'precision': _TEXT, 'fingerprint': _TEXT, 'outcome': _TEXT,
     'serves': {'type': 'array', 'items': _object({'exhibit': _TEXT, 'cell': _TEXT})}},
    dict.fromkeys(
        ('limit_seconds', 'compile_seconds', 'compile_cpu_seconds', 'memory_bytes', 'flops', 'bytes_accessed'), _NUMBER
    ),
)  # fmt: skip
_PLAIN = {'type': ['string', 'number', 'boolean', 'null']}
_SETTINGS = {**_object({}, {'model': _TEXT}), 'additionalProperties': _PLAIN}
_PLANNED = _object({'columns': _SETTINGS, 'lanes': _LANES})
_ENTRY = _object(
    {'entry': _NAME, 'suite': _NAME, 'model': _NAME, 'settings': {'type': 'object'}, 'plugins': _LANES,
     'source': _TEXT, 'runs': {'type': 'array', 'items': _object(_RUN_SAYS)}}
)  # fmt: skip
_SWEEP = _object(
    {},
    {'models': {'type': 'array'}, 'settings': _TABLE, 'tune': {'type': ['object', 'null']},
     'task_seed': {'type': 'integer'}},
)  # fmt: skip
SCHEMAS = {
    'any': {'type': 'object'},
    'config': _object({'sweeps': {'type': 'array', 'items': _SWEEP}}),
    'plan': {'type': 'object', 'propertyNames': _NAME, 'additionalProperties': _PLANNED},
    'heartbeat': _object(
        {'cell': _NAME, 'host': _TEXT, 'pid': {'type': 'integer', 'minimum': 1, 'maximum': 2**31 - 1}, 'time': _TIME},
        {'samples': _COUNT, 'train_loss': {'type': 'number', 'minimum': -1e300, 'maximum': 1e300}},
    ),
    'error': _object({'cell': _NAME, 'error': _TEXT}),
    'accelerators': _object({'made': {'type': 'object'}, 'programs': {'type': 'array', 'items': _PROGRAM}}),
    'card': _CARD,
    'entry': _ENTRY,
    'run': _object({'batches': {'type': 'array', 'items': _BATCH}}, _RUN),
}


def _is_time(text: str) -> bool:
    """Whether a text is a time with its zone, as we write it."""
    try:
        return datetime.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


# Compiled, since a directory of 100,000 lanes has a plan and records with a million values.
_VALIDATORS = {
    kind: fastjsonschema.compile(schema, formats={'date-time': _is_time}) for kind, schema in SCHEMAS.items()
}


def read(path: Any, kind: str) -> dict[str, Any]:
    """Reads a record."""
    record = files.read_json(path)
    try:
        _VALIDATORS[kind](record)
    except fastjsonschema.JsonSchemaValueException as error:
        name = str(error.name)
        where, rule = name.removeprefix('data').lstrip('.'), error.message.removeprefix(name).strip()
        found = '' if isinstance(error.value, (dict, list)) else f'{error.value!r} '
        reason = ' '.join(f'{where}: {found}{rule}'.removeprefix(': ').split())
        reason = reason if len(reason) <= 120 else f'{reason[:60]} … {reason[-50:]}'
        raise ResultsError(f'{path} is damaged ({reason}): restore it or delete it') from None
    return record


def read_all(folder: Any, kind: str) -> dict[pathlib.Path, dict[str, Any]]:
    """The records of a folder by path; one that is damaged is left out with a warning."""
    found = {}
    for path in names.listed(folder, '.json'):
        try:
            found[path] = read(path, kind)
        except ResultsError as error:
            if path.exists():  # otherwise its worker has removed it meanwhile
                warnings.warn(f'left out: {error}', stacklevel=2)
    return found


def read_plan(workdir: Any) -> dict[str, dict[str, Any]]:
    """The directory's plan: by cell its `columns` and the names of its `lanes`; empty if there is none."""
    path = workdir / 'plan.json'
    return read(path, 'plan') if path.exists() else {}
