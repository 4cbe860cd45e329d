"""Random damage to a small directory: whoever reads it succeeds, or says in one line what is wrong."""

import json
import pathlib
import shutil
import warnings

import hypothesis
import pytest
from hypothesis import strategies as st

from qstr_jax.report import content
from qstr_jax.storage import files, merge, provenance, results
from qstr_jax.sweeps import claims, lane_batches, monitor
from tests import small
from tests.stored import LANES, make
from tests.test_records import RIGHT, TIME

# More find more: 500 were tried once.
EXAMPLES = 15
CELL = small.cell('ffn')
BATCH = lane_batches.cut([CELL], lambda cell: 2)[0]


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """Two cells with rows, and records of all kinds."""
    workdir = make(tmp_path_factory.mktemp('whole'), cell=CELL.id)
    make(workdir, LANES[:2], cell='ffn-qstr-N3-q1-00000001')
    for kind, folder in ('heartbeat', 'progress'), ('error', 'errors'), ('run', 'provenance'):
        files.write_json(workdir / folder / 'one.json', {**RIGHT[kind], 'time': TIME})
    (workdir / 'figure.png').write_bytes(b'PNG')
    (workdir / 'table.md').write_text('# Table')
    return pathlib.Path(workdir)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(['../x', '1e999']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def places(value, place=()):
    """Where the values of a JSON tree are, the tree itself first."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))


def with_other_value(text, draw):
    """A JSON file with another value somewhere."""
    tree = json.loads(text)
    *way, last = draw(st.sampled_from(list(places(tree))[1:]))
    inner = tree
    for key in way:
        inner = inner[key]
    inner[last] = draw(VALUES)
    return json.dumps(tree)


def with_other_bits(before, draw):
    damaged = bytearray(before)
    for bit in draw(st.lists(st.integers(0, 8 * len(damaged) - 1), min_size=1, max_size=3)):
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def damage(path, other, draw):
    """Damages one file."""
    kinds = [
        'bits',
        'shorter',
        'bytes',
        'gone',
        'folder',
        'link',
        'other',
        *(['value'] * 5 if path.suffix == '.json' else []),
    ]
    kind, before = draw(st.sampled_from(kinds)), path.read_bytes()
    if kind == 'value':
        path.write_text(with_other_value(before, draw))
    elif kind == 'bits':
        path.write_bytes(with_other_bits(before, draw))
    elif kind == 'shorter':
        path.write_bytes(before[: draw(st.integers(0, len(before) - 1))])
    elif kind == 'bytes':
        path.write_bytes(draw(st.binary(max_size=40)))
    elif kind == 'other':
        path.write_bytes(other.read_bytes())
    else:
        path.unlink()
        if kind == 'folder':
            path.mkdir()
        elif kind == 'link':
            path.symlink_to(other)


READERS = {
    'load_curves': results.load_curves,
    'load_all': lambda path: results.load_all([path]),
    'provenance': lambda path: provenance.of_rows(path),
    'status': monitor.status,
    'missing': lambda path: claims.missing(path, BATCH),
    'merge': lambda path: merge.merge([path], path.parent / 'merged'),
    'report': content.sections,
    'sweep': lambda path: results.add_sweep(path, {}) or monitor.add_plan(path, [CELL]) or monitor.remove_dead(path),
}  # The last one writes.


def what_is_said(reader, workdir):
    """The error that a user would read, '' if there is none."""
    try:
        reader(workdir)
    except files.ResultsError as error:
        return str(error)
    return ''


@pytest.mark.slow
@hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@hypothesis.given(data=st.data())
def test_damage_ends_in_success_or_a_line(data, whole, tmp_path_factory, monkeypatch_module):
    folder = tmp_path_factory.mktemp('damaged')
    workdir = folder / 'results'
    shutil.copytree(whole, workdir)
    found = sorted(path for path in workdir.rglob('*') if path.is_file())
    for path in data.draw(st.lists(st.sampled_from(found), min_size=1, max_size=2, unique=True)):
        damage(path, found[0], data.draw)
    for reader in READERS.values():
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            warnings.simplefilter('ignore', UserWarning)
            said = what_is_said(reader, workdir)
        assert '\n' not in said
        assert len(said) < 1000
    shutil.rmtree(folder)


@pytest.fixture(scope='module')
def monkeypatch_module():
    """No figures are drawn: they take a second each, and see tables that were checked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content.exhibits, 'add', lambda section, rows, curves: None)
        yield
