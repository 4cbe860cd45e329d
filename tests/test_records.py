"""JSON that is read from a directory: right, or a line that names the file and the place."""

import json
import random

import jsonschema
import pytest

from qstr_jax.storage import files, provenance, records

TIME = '2026-01-01T00:00:00+00:00'
RIGHT = {
    'config': {'format': 2, 'sweeps': [{'models': ['ffn']}]},
    'plan': {'ffn-qstr-N3-q1-00000000': {'columns': {'model': 'ffn'}, 'lanes': ['seed0-lr0.001']}},
    'heartbeat': {'cell': 'a', 'host': 'h', 'pid': 7, 'time': TIME, 'samples': 640, 'train_loss': float('nan')},
    'error': {'cell': 'a', 'error': 'ValueError: no', 'time': TIME, 'traceback': ''},
    'run': {'batches': [{'cell': 'a', 'lanes': ['seed0'], 'wall_seconds': 1.5, 'compile_seconds': 0}], 'new': None},
    'entry': {
        'entry': 'mine', 'suite': 'quick', 'model': 'ffn', 'settings': {'ffn.widths': [8]}, 'plugins': ['my_module'],
        'source': 'https://example.org',
        'runs': [{'command': ['x'], 'git_commit': None, 'python': '3', 'device': 'cpu', 'packages': {'jax': '0'}}],
    },
    'card': {
        'statement': 'theorem4', 'claim': '', 'setting': '', 'finding': '', 'settings': {}, 'checks': [{'holds': True}],
        'panels': [], 'points': {'x': [1, 2]}, 'lines': {},
    },
    'accelerators': {
        'made': {},
        'programs': [{
            'device': 'v5e', 'exhibit': 'figure1a', 'cell': 'a', 'model': 'ffn', 'seq_len': 8, 'lanes': 2,
            'precision': 'highest', 'fingerprint': '0', 'outcome': 'fits', 'flops': None,
            'serves': [{'exhibit': 'figure1a', 'cell': 'a'}],
        }],
    },
}  # fmt: skip
WRONG = {
    'config': [{}, {'sweeps': None}, {'sweeps': [1]}, {'sweeps': {}}, {'sweeps': [{'tune': 5}]},
               {'sweeps': [{'settings': {'seq_len': 4}}]}],
    'plan': [
        {'../x': {'columns': {}, 'lanes': []}}, {'a': None}, {'a': {'columns': {}}},
        {'a': {'columns': {}, 'lanes': [3]}}, {'a': {'columns': {'model': ['x']}, 'lanes': []}},
        {'a': {'columns': {'seq_len': {}}, 'lanes': []}},
    ],
    'heartbeat': [
        {'pid': None}, {'pid': 0}, {'pid': 2**40}, {'pid': True}, {'pid': '7'}, {'time': 'now'}, {'time': None},
        {'cell': '..'}, {'time': '2026-01-01T00:00:00'}, {'host': 3}, {'samples': None}, {'samples': -1},
        {'train_loss': 'x'}, {'train_loss': -10**400},
    ],
    'error': [{'cell': None}, {'error': None}, {'error': ['x']}],
    'run': [{'batches': None}, {'batches': [None]}, {'batches': [{'cell': 'a'}]}, {'packages': []}, {'command': 'ls'},
            {'batches': [{'cell': 'a', 'wall_seconds': '1', 'compile_seconds': 0}]},
            {'batches': [{'cell': 'a', 'wall_seconds': 10**500, 'compile_seconds': 0}]}],
    'entry': [{'entry': '../x'}, {'suite': None}, {'plugins': ['a/b']}, {'settings': []}, {'source': 3}, {'runs': [{}]},
              {'runs': {}}],
    'card': [{'claim': None}, {'checks': [3]}, {'panels': {}}, {'points': {'x': 1}}, {'lines': []}, {'settings': 'x'}],
    'accelerators': [{'made': None}, {'programs': [{}]}, {'programs': None}],
}  # fmt: skip


@pytest.mark.parametrize('kind', RIGHT)
def test_right_records_come_as_they_are(tmp_path, kind):
    files.write_json(tmp_path / 'a.json', RIGHT[kind])
    assert json.dumps(records.read(tmp_path / 'a.json', kind)) == json.dumps(RIGHT[kind])


@pytest.mark.parametrize(('kind', 'change'), [(kind, change) for kind in WRONG for change in WRONG[kind]], ids=str)
def test_wrong_records_are_a_line(tmp_path, kind, change):
    base = {} if kind in ('config', 'plan') else RIGHT[kind]
    files.write_json(tmp_path / 'a.json', {**base, **change})
    with pytest.raises(files.ResultsError, match=r'a\.json is damaged \(') as error:
        records.read(tmp_path / 'a.json', kind)
    assert '\n' not in str(error.value)
    assert len(str(error.value)) < 400


def test_a_thousand_brackets_are_a_line(tmp_path):
    (tmp_path / 'a.json').write_text('{"a": ' + '[' * 100_000)
    with pytest.raises(files.ResultsError, match='is damaged'):
        records.read(tmp_path / 'a.json', 'any')


def test_one_bad_record_does_not_take_the_rest(tmp_path):
    folder = tmp_path / 'provenance'
    folder.mkdir()
    files.write_json(folder / 'a.json', RIGHT['run'])
    files.write_json(folder / 'b.json', {'batches': 3})
    (folder / 'c.json').mkdir()
    with pytest.warns(UserWarning, match='left out') as warned:
        assert [json.dumps(run) for run in provenance.load(tmp_path)] == [json.dumps(RIGHT['run'])]
    assert len(warned) == 2


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
def test_what_is_right_is_right_by_another_library(tmp_path, kind, monkeypatch):
    right, draw, disagree = jsonschema.Draft202012Validator(records.SCHEMAS[kind]).is_valid, random.Random(kind), []
    for value in [RIGHT[kind], *(changed(RIGHT[kind], draw) for _ in range(300))]:
        monkeypatch.setattr(files, 'read_json', lambda path, value=value: value)
        try:
            records.read(tmp_path, kind)
        except files.ResultsError:
            disagree += [value] if right(value) and 'time' not in value else []  # jsonschema takes any text for a time
        else:
            disagree += [] if right(value) else [value]
    assert disagree == []
