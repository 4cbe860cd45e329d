"""Several results directories as one."""

import shutil
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

from qstr_jax.settings import registry
from qstr_jax.storage import checkpoint, files, lane_keys, merge, records, results
from qstr_jax.sweeps import monitor
from tests import small
from tests.stored import CELL, LANES, curves_of, make, rows_of, snapshot

CODE = {'qstr_jax': 'one', 'mine': 'one'}


def kept(path):
    """All files of a directory but its locks."""
    return {name: content for name, content in snapshot(path).items() if not name.startswith('locks/')}


def add_run(workdir, program, name='run', **changes):
    """Writes the record of a run that made the rows of a program."""
    batch = {'cell': CELL, 'lanes': [], 'wall_seconds': 1, 'compile_seconds': 1, 'program': program}
    run = {'batches': [batch], 'packages': {'jax': '1'}, 'sources': CODE, **changes}
    files.write_json(workdir / 'provenance' / f'{name}.json', run)
    return run


def test_identical_overlaps_merge(tmp_path):
    one, other = small.settings(num_seeds=3), small.settings(num_seeds=4, seq_lens=(3, 5))
    make(tmp_path / 'a', LANES[:3], one)
    make(tmp_path / 'b', LANES[1:], other)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        rows = merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    pd.testing.assert_frame_equal(rows, rows_of(LANES).assign(cell=CELL))
    whole = snapshot(make(tmp_path / 'whole'))
    both = snapshot(tmp_path / 'both')
    for kind in 'rows', 'curves':
        assert both[f'{kind}/{CELL}.parquet'] == whole[f'{kind}/{CELL}.parquet']
    assert results.read_config(tmp_path / 'both') == [one.as_json(), other.as_json()]
    assert sorted(p.name for p in (tmp_path / 'both' / 'provenance').iterdir()) == ['a.json', 'b.json']
    assert monitor.status(tmp_path / 'both')['state'].tolist() == ['done']
    planned = records.read_plan(tmp_path / 'both')[CELL]['lanes']
    assert planned == [lane_keys.name_of(lane) for lane in LANES]


def test_merging_into_one_of_the_sources(tmp_path):
    make(tmp_path / 'a', LANES[:2])
    make(tmp_path / 'b', LANES[2:])
    merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'a')
    assert len(results.load(tmp_path / 'a')) == 4
    assert len(results.load(tmp_path / 'b')) == 2


def test_lanes_that_the_destination_has_stay_wherever_it_is_named(tmp_path):
    make(tmp_path / 'a')
    make(tmp_path / 'b', backend='gpu', test_loss=np.float32(0.25))
    with pytest.warns(UserWarning, match=f'in {tmp_path / "b"} differ .* the first is kept'):
        rows = merge.merge([tmp_path / 'b', tmp_path / 'a'], tmp_path / 'a')
    pd.testing.assert_frame_equal(rows, rows_of(LANES).assign(cell=CELL))


def test_the_same_choice_by_another_search_is_no_contradiction(tmp_path):
    for name, grid in ('a', '0.001 0.01'), ('b', '0.01 0.1'):
        make(tmp_path / name, tuned='learning_rate', tuned_grid=grid, tuned_samples='1 2')
        make(tmp_path / name / 'selection', LANES[: 2 if name == 'a' else 4])
    rows = merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert set(rows['tuned_grid']) == {'0.001 0.01'}
    assert len(results.load(tmp_path / 'both' / 'selection')) == 4


def test_lanes_that_were_tuned_to_different_values_are_no_point(tmp_path):
    tuned = {'tuned': 'learning_rate', 'tuned_grid': '0.001 0.01', 'tuned_samples': '1 2'}
    make(tmp_path / 'a', LANES[:2], **tuned)
    make(tmp_path / 'b', [lane._replace(learning_rate=0.5) for lane in LANES[2:]], **tuned)
    with pytest.raises(results.ResultsError, match='one point were tuned to different values of learning_rate'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()


def test_a_curve_without_a_row_is_not_merged(tmp_path):
    """As a killed write leaves it, where the other directory has the lane whole."""
    make(tmp_path / 'a')
    path = results.cell_path(tmp_path / 'a', 'rows', CELL)
    files.write_table(path, files.read_table(path, CELL).head(2), CELL)
    make(tmp_path / 'b')
    merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    make(tmp_path / 'whole')
    both, whole = (results.load_curves(tmp_path / name, strict=True) for name in ('both', 'whole'))
    assert len(both) == len(whole)


def test_contradictions_are_named_and_nothing_is_written(tmp_path):
    make(tmp_path / 'a')
    loss = rows_of(LANES)['test_loss'].to_numpy().copy()
    loss[2] = np.nextafter(loss[2], np.float32(9))  # the last bit
    make(tmp_path / 'b', test_loss=loss)
    with pytest.raises(results.ResultsError, match=rf'{CELL}, seed2-task0-lr0\.001-wd0\.01: test_loss in .*contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()
    before = kept(tmp_path / 'a')
    with pytest.raises(results.ResultsError, match='contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'a')
    assert kept(tmp_path / 'a') == before


@pytest.mark.parametrize(
    ('column', 'one', 'other'),
    [('train_loss', 0.5, 0.25), ('num_samples', 1280, 1920), ('outcome', 'reached', 'diverged'), ('steps', 10, 20)],
)
def test_every_measure_can_contradict(tmp_path, column, one, other):
    make(tmp_path / 'a', **{column: one})
    make(tmp_path / 'b', **{column: other})
    with pytest.raises(results.ResultsError, match=rf': {column} in .*contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')


def test_another_program_excuses_no_other_loss(tmp_path):
    make(tmp_path / 'a', LANES[2:3], program='one')
    make(tmp_path / 'b', LANES[2:3], program='other', test_loss=np.float32(0.25))
    with pytest.raises(results.ResultsError, match=r'test_loss.*contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')


@pytest.mark.parametrize(('version', 'is_merged'), [('1', False), ('2', True)])
def test_programs_differ_by_version_and_not_by_edited_code(tmp_path, version, is_merged):
    for name, lanes, installed in ('a', LANES[:2], '1'), ('b', LANES[2:], version):
        make(tmp_path / name, lanes, program=f'of {name}')
        batch = {'cell': CELL, 'lanes': [], 'wall_seconds': 1, 'compile_seconds': 1, 'program': f'of {name}'}
        run = {'batches': [batch], 'packages': {'jax': installed}}
        files.write_json(tmp_path / name / 'provenance' / f'{name}.json', run)
    sources = [tmp_path / 'a', tmp_path / 'b']
    if is_merged:
        assert len(merge.merge(sources, tmp_path / 'both')) == 4
    else:
        with pytest.raises(results.ResultsError, match='rows of two programs'):
            merge.merge(sources, tmp_path / 'both')


def test_a_missing_value_against_a_number_is_a_contradiction(tmp_path):
    make(tmp_path / 'a', LANES[1:2])
    make(tmp_path / 'b', LANES[1:2], outcome='reached', samples_to_threshold=pd.array([640], 'Int64'))
    with pytest.raises(results.ResultsError, match='outcome, samples_to_threshold'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')


@pytest.mark.parametrize('column', ['backend', 'lanes_per_batch'])
def test_another_backend_or_batch_may_differ_by_rounding(tmp_path, column):
    make(tmp_path / 'a')
    make(tmp_path / 'b', test_loss=np.float32(0.25), **{column: {'backend': 'gpu', 'lanes_per_batch': 4}[column]})
    with pytest.warns(UserWarning, match=rf'seed\d-.*{column}.* the first is kept') as warned:
        rows = merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert len(warned) == 4
    pd.testing.assert_frame_equal(rows, rows_of(LANES).assign(cell=CELL))


@pytest.fixture
def older(tmp_path, monkeypatch):
    """Two directories of one cell, and a function that takes a column from the first; nothing is registered."""
    sources = [make(tmp_path / 'a', LANES[:2]), make(tmp_path / 'b', LANES[2:])]
    monkeypatch.setattr(registry, '_ENTRIES', {})

    def without(column):
        for kind in 'rows', 'curves':
            path = sources[0] / kind / f'{CELL}.parquet'
            files.write_table(path, files.read_table(path, CELL).drop(columns=column, errors='ignore'), CELL)
        return sources

    return without


def test_rows_from_before_a_setting_of_the_model_merge_with_newer_ones(older, tmp_path):
    rows = merge.merge(older('ffn_widths'), tmp_path / 'both')
    assert len(rows) == 4
    assert rows['ffn_widths'].nunique(dropna=False) == 1


def test_rows_from_before_an_unknown_setting_of_lanes_are_a_clear_error(older, tmp_path):
    with pytest.raises(results.ResultsError, match='lack stop_after: import'):
        merge.merge(older('stop_after'), tmp_path / 'both')


def test_sweeps_with_other_settings_merge_side_by_side(tmp_path):
    """Each cell keeps its rows, and both sweeps are recorded."""
    one, other = small.settings(), small.settings(threshold=0.5)
    make(tmp_path / 'a', sweep=one)
    make(tmp_path / 'b', LANES[:2], sweep=other, cell=f'{CELL}1', threshold=0.5)
    rows = merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert rows.groupby(['cell', 'threshold']).size().to_dict() == {(CELL, 0.9): 4, (f'{CELL}1', 0.5): 2}
    assert results.read_config(tmp_path / 'both') == [one.as_json(), other.as_json()]
    assert sorted(monitor.status(tmp_path / 'both')['lanes']) == [2, 4]
    for name in 'ab':
        theirs = snapshot(tmp_path / name)
        tables = {path: content for path, content in theirs.items() if path.endswith('.parquet')}
        assert tables.items() <= snapshot(tmp_path / 'both').items()


def test_damaged_files_and_other_formats_merge_not_at_all(tmp_path):
    make(tmp_path / 'a')
    shutil.copytree(tmp_path / 'a', tmp_path / 'c')
    (tmp_path / 'c' / 'curves' / f'{CELL}.parquet').write_bytes(b'PAR1')
    with pytest.raises(results.ResultsError, match='is damaged'):
        merge.merge([tmp_path / 'a', tmp_path / 'c'], tmp_path / 'both')
    files.write_json(tmp_path / 'c' / 'config.json', {'models': ['ffn']})
    with pytest.raises(results.ResultsError, match='has no format, this version reads 2'):
        merge.merge([tmp_path / 'a', tmp_path / 'c'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()


def test_a_destination_with_other_results_is_refused(tmp_path):
    make(tmp_path / 'a')
    make(tmp_path / 'b')
    before = snapshot(tmp_path / 'b')
    with pytest.raises(results.ResultsError, match='name it among the sources'):
        merge.merge([tmp_path / 'a'], tmp_path / 'b')
    assert snapshot(tmp_path / 'b') == before


def test_directories_that_were_tuned_in_other_ways_are_refused(tmp_path):
    for name, tune in ('a', {'learning_rate': [1e-3, 1e-2]}), ('b', {'learning_rate': 'auto'}):
        make(tmp_path / name)
        [sweep] = results.read_config(tmp_path / name)
        files.write_json(
            tmp_path / name / 'config.json', {'format': results.FORMAT, 'sweeps': [{**sweep, 'tune': tune}]}
        )
    with pytest.raises(results.ResultsError, match='were tuned with'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()


def test_rows_that_come_meanwhile_stay(tmp_path, monkeypatch):
    make(tmp_path / 'a', LANES[:1])
    make(tmp_path / 'b', LANES[:2])
    merge_cell = merge._merge_cell

    def merge_slowly(*given):
        found = merge_cell(*given)
        results.add(tmp_path / 'a', CELL, rows_of(LANES[3:]), curves_of(LANES[3:]))
        return found

    monkeypatch.setattr(merge, '_merge_cell', merge_slowly)
    merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'a')
    assert results.load(tmp_path / 'a')['seed'].tolist() == [0, 1, 3]


def test_a_table_that_nobody_could_read_is_not_written(tmp_path):
    """The default of a setting has changed, which is no part of the cell's id."""
    make(tmp_path / 'a', LANES[:2])
    make(tmp_path / 'b', LANES[2:], threshold=0.5)
    before = kept(tmp_path / 'a')
    for target in 'a', 'both':
        with pytest.raises(results.ResultsError, match=f'{CELL}: threshold: differs.*--refresh.*nothing was merged$'):
            merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / target)
    assert kept(tmp_path / 'a') == before
    assert not (tmp_path / 'both').exists()


def test_what_selection_refuses_is_said_before_anything_is_written(tmp_path):
    for name, loss in ('a', 0.5), ('b', 0.25):
        make(tmp_path / name)
        make(tmp_path / name / 'selection', train_loss=loss)
    with pytest.raises(results.ResultsError, match=r'train_loss in .*contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()


@pytest.mark.parametrize(
    ('changes', 'is_merged'),
    [
        ({}, True),
        ({'sources': {**CODE, 'mine': 'other'}}, False),
        ({'sources': {**CODE, 'mine': 'other'}, 'packages': {'jax': '2'}}, True),
        ({'sources': {**CODE, 'mine': ''}}, False),  # code that could not be read
        ({'batches': []}, False),  # no record says what made the rows
        ({'sources': {**CODE, 'mine': 'other'}, 'checked': [{'cell': CELL, 'program': 'of a'}]}, True),
    ],
)
def test_rows_of_other_lane_batches_are_of_the_same_code(tmp_path, changes, is_merged):
    for name, lanes, size in ('a', LANES[:2], 1), ('b', LANES[2:], 2):
        make(tmp_path / name, lanes, program=f'of {name}', lanes_per_batch=size)
        add_run(tmp_path / name, f'of {name}', name, **(changes if name == 'b' else {}))
    sources = [tmp_path / 'a', tmp_path / 'b']
    if is_merged:
        assert len(merge.merge(sources, tmp_path / 'both')) == 4
    else:
        with pytest.raises(
            results.ResultsError, match='no record says that the same code makes both: give the command'
        ):
            merge.merge(sources, tmp_path / 'both')
        assert not (tmp_path / 'both').exists()


def test_an_older_copy_of_a_record_takes_nothing_away(tmp_path):
    for name in 'a', 'b':
        make(tmp_path / name)
    run = add_run(tmp_path / 'a', 'one')
    more = add_run(tmp_path / 'a', 'one', batches=[*run['batches'], {**run['batches'][0], 'lanes': ['seed0']}])
    run = add_run(tmp_path / 'b', 'one', checked=[{'cell': CELL, 'program': 'two'}])
    merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert records.read(tmp_path / 'both' / 'provenance' / 'run.json', 'run') == {**run, 'batches': more['batches']}


def test_two_merges_into_one_directory_wait_for_each_other(tmp_path, monkeypatch):
    for name, lanes in ('a', LANES[:1]), ('b', LANES[1:2]), ('c', LANES[2:]):
        make(tmp_path / name, lanes)
    write, others = merge._write, []

    def write_late(*given):
        monkeypatch.setattr(merge, '_write', write)
        others.append(threading.Thread(target=merge.merge, args=([tmp_path / 'a', tmp_path / 'c'], tmp_path / 'a')))
        others[0].start()
        others[0].join(timeout=1)
        write(*given)

    monkeypatch.setattr(merge, '_write', write_late)
    merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'a')
    others[0].join()
    assert len(results.load(tmp_path / 'a')) == 4
    assert len(records.read_plan(tmp_path / 'a')[CELL]['lanes']) == 4


def test_a_destination_that_another_merge_makes_meanwhile_is_refused(tmp_path, monkeypatch):
    for name, lanes in ('a', LANES[:2]), ('b', LANES[2:]):
        make(tmp_path / name, lanes)
    read = merge._read

    def read_late(*given):
        monkeypatch.setattr(merge, '_read', read)
        found = read(*given)
        merge.merge([tmp_path / 'b'], tmp_path / 'both')
        return found

    monkeypatch.setattr(merge, '_read', read_late)
    with pytest.raises(results.ResultsError, match='name it among the sources'):
        merge.merge([tmp_path / 'a'], tmp_path / 'both')
    assert results.load(tmp_path / 'both')['seed'].tolist() == [2, 3]


@pytest.mark.parametrize('what', ['rows', f'rows/{CELL}.parquet', 'curves', 'provenance/a.json', 'params', 'selection'])
def test_links_are_an_error(tmp_path, what):
    make(tmp_path / 'a')
    path = tmp_path / 'a' / what
    if path.exists():
        path.rename(tmp_path / 'elsewhere')
    else:
        make(tmp_path / 'elsewhere')
    path.symlink_to(tmp_path / 'elsewhere')
    with pytest.raises(results.ResultsError, match=f'{path} is a symbolic link.*: [a-z]+ .* it'):
        merge.merge([tmp_path / 'a'], tmp_path / 'both')
    assert not (tmp_path / 'both').exists()


def test_lists_are_compared(tmp_path):
    column = [[1.0, float('nan')], [2.0], [], [3.0]]
    make(tmp_path / 'a', several=column)
    make(tmp_path / 'b', several=column)
    assert len(merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')) == 4
    make(tmp_path / 'c', several=[[1.0], *column[1:]])
    with pytest.raises(results.ResultsError, match=r'several in .*contradict'):
        merge.merge([tmp_path / 'a', tmp_path / 'c'], tmp_path / 'all')


@pytest.mark.parametrize(
    ('a', 'b', 'is_same'),
    [
        (1, 1.0, True), (1, 2, False), (None, np.nan, True), (None, 1, False), ('x', 'x', True),
        (np.array([1, 2]), [1, 2], True), (np.array([1]), 1, False), (np.array([]), None, False),
        ({'x': np.array([1])}, {'x': np.array([1])}, True), ({'x': 1}, {'x': 2}, False),
    ],
)  # fmt: skip
def test_values_are_the_same_or_both_missing(a, b, is_same):
    assert merge.is_same(a, b) is is_same


@pytest.mark.parametrize(
    ('sources', 'line'),
    [
        ('results', "sources='results': give a list of results directories"),
        (None, 'sources=None: give a list of results directories'),
        ([3], 'sources=3: give the path of a directory'),
        ((one for one in ()), 'sources: give at least one results directory'),
        (['foo://x'], "sources='foo://x': unknown kind of address"),
    ],
)
def test_sources_that_are_none_are_a_line(tmp_path, sources, line):
    with pytest.raises(results.ResultsError, match=f'^{line}$'):
        merge.merge(sources, tmp_path / 'both')


@pytest.mark.parametrize(
    ('destination', 'line'),
    [
        (None, 'destination=None: give the path of a directory'),
        ('', "destination='': give the path of a directory"),
        ('a\0b', r"destination='a\\x00b': give the path of a directory"),
        ('foo://x', "destination='foo://x': unknown kind of address"),
    ],
)
def test_a_destination_that_is_none_is_a_line(tmp_path, destination, line):
    make(tmp_path / 'a')
    with pytest.raises(results.ResultsError, match=f'^{line}$'):
        merge.merge([tmp_path / 'a'], destination)


def test_sources_may_come_one_by_one_and_by_a_link(tmp_path):
    make(tmp_path / 'a', LANES[:2])
    make(tmp_path / 'b', LANES[2:])
    (tmp_path / 'link').symlink_to(tmp_path / 'a')
    assert len(merge.merge((tmp_path / name for name in ('b', 'a', 'a')), tmp_path / 'link')) == 4
    assert len(results.load(tmp_path / 'a')) == 4


def put_params(workdir, lane, value):
    checkpoint.save_tree(workdir / 'params' / CELL / lane_keys.name_of(lane), {'x': np.array([value])}, 'mine')


def params_of(workdir, lane):
    path = workdir / 'params' / CELL / lane_keys.name_of(lane)
    return checkpoint.load_tree(path, {'x': np.zeros(1)}, 'mine')['x'].tolist()


def test_kept_parameters_are_merged_with_their_rows(tmp_path):
    make(tmp_path / 'a', LANES[:3])
    make(tmp_path / 'b')
    for name, lanes in ('a', LANES[:1]), ('b', LANES):
        for lane in lanes:
            put_params(tmp_path / name, lane, 1.0 if name == 'a' else 2.0)
    for target in 'both', 'a':
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / target)
        assert [params_of(tmp_path / target, lane) for lane in LANES] == [[1.0], [2.0], [2.0], [2.0]]
    assert len(list((tmp_path / 'a' / 'params' / CELL).iterdir())) == 4


def test_parameters_of_a_row_that_is_not_taken_stay(tmp_path):
    make(tmp_path / 'a', LANES[:1])
    make(tmp_path / 'b', LANES[:1], backend='gpu', test_loss=np.float32(0.25))
    put_params(tmp_path / 'b', LANES[0], 2.0)
    with pytest.warns(UserWarning, match='the first is kept'):
        merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'both')
    assert not (tmp_path / 'both' / 'params').exists()


def test_parameters_without_a_row_are_replaced_by_those_of_the_row(tmp_path):
    """As a merge or a run leaves them that was killed."""
    make(tmp_path / 'a', LANES[:1])
    make(tmp_path / 'b', LANES[1:2])
    put_params(tmp_path / 'a', LANES[1], 1.0)
    put_params(tmp_path / 'b', LANES[1], 2.0)
    merge.merge([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'a')
    assert params_of(tmp_path / 'a', LANES[1]) == [2.0]
