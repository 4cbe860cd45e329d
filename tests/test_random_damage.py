"""Random damage to a small directory: whoever reads it succeeds, or says in one line what is wrong."""

import os
import pathlib
import resource
import shutil
import warnings

import hypothesis
import pytest
from hypothesis import strategies as st

from qstr_jax.report import content
from qstr_jax.storage import files, merge, provenance, results
from qstr_jax.sweeps import claims, lane_batches, monitor
from tests import helpers, small
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


def put_other_value(path, draw):
    """Writes another value somewhere into a JSON file, with the digest of it, as somebody does who means it."""
    tree = files.read_json(path)
    *way, last = draw(st.sampled_from(list(places(tree))[1:]))
    inner = tree
    for key in way:
        inner = inner[key]
    inner[last] = draw(VALUES)
    files.write_json(path, tree)


def flipped(before, bits):
    """Bytes with other bits at some places."""
    damaged = bytearray(before)
    for bit in bits:
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def put_sparse(path):
    """A file of 2 GiB that takes no room."""
    with path.open('wb') as file:
        file.truncate(2**31)


def damage(path, other, draw):
    """Damages one file."""
    kinds = [
        'bits',
        'shorter',
        'bytes',
        'gone',
        'folder',
        'link',
        'pipe',
        'sparse',
        'other',
        *(['value'] * 5 if path.suffix == '.json' else []),
    ]
    kind, before = draw(st.sampled_from(kinds)), path.read_bytes()
    if kind == 'value':
        put_other_value(path, draw)
    elif kind == 'bits':
        bits = st.lists(st.integers(0, 8 * len(before) - 1), min_size=1, max_size=3)
        path.write_bytes(flipped(before, draw(bits)))
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
        elif kind == 'pipe':
            os.mkfifo(path)
        elif kind == 'sparse':
            put_sparse(path)


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
        with helpers.within(60):
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


ODD = {'pipe': os.mkfifo, 'sparse': put_sparse, 'deep': lambda path: path.write_text('{"a": ' * 900 + '{}' + '}' * 900)}


@pytest.mark.parametrize('kind', ODD)
def test_what_is_no_sane_file_is_named_by_every_reader(whole, tmp_path, monkeypatch_module, kind):
    """In the place of each file; every reader ends in time and in little memory, and somebody names the file."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    suffixes = ('.json',) if kind == 'deep' else ('.json', '.parquet', '.png')
    for name in [str(path.relative_to(whole)) for path in whole.rglob('*.*') if path.suffix in suffixes]:
        workdir = tmp_path / f'{name.replace("/", "-")}'
        shutil.copytree(whole, workdir)
        (workdir / name).unlink()
        ODD[kind](workdir / name)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter('always')
            said = [what_is_said(reader, workdir) for reader in READERS.values()]
            said += [text for section in content.sections(workdir) for text, _ in section.words]
        assert any(name in text for text in [*said, *(str(one.message) for one in warned)]), name
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB


@pytest.fixture(scope='module')
def monkeypatch_module():
    """No figures are drawn: they take a second each, and see tables that were checked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content.directory, 'add', lambda section, rows, curves: None)
        yield
