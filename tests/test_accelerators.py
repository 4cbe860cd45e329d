"""Programs compiled for accelerators that are not there: what is asked, stored, told and resumed."""

from unittest import mock

import jax
import pytest

from experiments import accelerators, exhibit
from qstr_jax.accelerators import chips, entries, measure
from qstr_jax.storage import files
from tests import helpers, small

CELL = {'exhibit': 'figure1a', 'cell': 'ffn-qstr-N2-q1-90c42eb1'}
ENTRY = {
    'device': 'v5e', 'fingerprint': 'aa', **CELL, 'model': 'ffn', 'seq_len': 2, 'lanes': 5, 'precision': 'highest',
    'serves': [CELL], 'outcome': 'compiled', 'compile_seconds': 20.0, 'compile_cpu_seconds': 11.0,
    'memory_bytes': 2**31, 'flops': 4e7, 'bytes_accessed': 10**6,
}  # fmt: skip
NO_FLAGS = {'LIMIT': 900, 'PRECISION': 'highest', 'LARGEST': False}


@pytest.fixture
def flags(monkeypatch):
    """Sets flags of the binary."""

    def put(**values):
        for flag, value in {**NO_FLAGS, **values}.items():
            monkeypatch.setattr(accelerators, flag, mock.Mock(value=value))

    put()
    return put


def test_a_gpu_is_described_to_its_compiler():
    text = chips.target_config(chips.get('h100'))
    for line in 'core_count: 132', 'cuda_compute_capability { major: 9 }', 'platform_name: "CUDA"', 'major: 9':
        assert line in text
    assert text.count('{') == text.count('}')


def test_an_unknown_device_or_one_without_compiler_is_a_line(monkeypatch):
    with pytest.raises(ValueError, match="devices='v7': unknown, one of v5e, h100"):
        chips.get('v7')
    monkeypatch.setattr(chips, 'is_installed', lambda chip: False)
    with pytest.raises(ValueError, match=r'devices=v5e: needs libtpu from the extra tpu-compile: make accelerators'):
        chips.devices(chips.get('v5e'))


def test_the_compiler_is_asked_what_a_cell_needs(monkeypatch):
    """Here that of a CPU: memory of both programs, FLOPs and bytes of `advance`, and lanes that fit."""
    monkeypatch.setattr(chips, 'devices', lambda chip: jax.devices())
    problem, v5e = small.cell('ffn').problem, chips.get('v5e')
    found = measure.measure(problem, 2, v5e)
    assert found['lanes'] == 2
    assert min(found['memory_bytes'], found['flops'], found['bytes_accessed'], found['compile_cpu_seconds']) > 0
    small_chip = chips.Chip('small', 'tpu', int(0.9 * found['memory_bytes'] / 0.8), 'v5e:2x2')
    halved = measure.measure(problem, 2, small_chip)
    assert halved['lanes'] == 1
    assert halved['memory_bytes'] < found['memory_bytes']


def test_a_compiler_without_an_account_leaves_flops_and_bytes_unknown(monkeypatch):
    class Unaccounted:
        size, memory_bytes = 2, 100
        advance = mock.Mock(cost_analysis=mock.Mock(side_effect=NotImplementedError))

    monkeypatch.setattr(chips, 'devices', lambda chip: [None])
    monkeypatch.setattr(measure.lane_batches, 'fitting_programs', lambda *_: Unaccounted)
    found = measure.measure(None, 2, chips.get('h100'))
    assert (found['flops'], found['bytes_accessed'], found['memory_bytes']) == (None, None, 100)


def test_a_fingerprint_is_of_program_size_and_device(monkeypatch):
    monkeypatch.setattr(measure, 'versions', lambda chip: {'jax': '1'})
    problem = small.cell('ffn').problem
    v5e, v6e = chips.get('v5e'), chips.get('v6e')
    first = measure.fingerprint(problem, 2, v5e)
    assert first == measure.fingerprint(problem, 2, v5e)
    monkeypatch.setattr(measure, 'lowered', lambda *_: ())
    nothing = measure.fingerprint(problem, 2, v5e)
    assert len({first, nothing, measure.fingerprint(problem, 2, v6e)}) == 3
    monkeypatch.setattr(measure, 'versions', lambda chip: {'jax': '2'})
    assert measure.fingerprint(problem, 2, v5e) != nothing


def test_a_run_that_is_cut_off_goes_on_where_it_stopped(tmp_path, monkeypatch, flags):
    """Programs that another cell shares, or that have an entry, are not compiled again, but for those that failed."""
    asked = []

    def found(program, chip):
        asked.append(program.cell.id)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {'outcome': 'failed: once' if len(asked) == 3 else 'out of time'}

    one, two = small.cell('ffn'), small.cell('transformer')
    some = [exhibit.Program('heads', cell, 2) for cell in (one, two)]
    monkeypatch.setattr(accelerators, 'found_by_process', found)
    monkeypatch.setattr(exhibit, 'programs_of', lambda *_: [*some, exhibit.Program('figure2', one, 2)])
    monkeypatch.setattr(measure, 'fingerprint', lambda problem, lanes, chip: type(problem.module).__name__)
    monkeypatch.setattr(measure, 'versions', lambda chip: {'libtpu': '1'})
    with pytest.raises(KeyboardInterrupt):
        accelerators.compile_all(chips.get('v5e'), ['heads'], tmp_path)
    assert [entry['outcome'] for entry in entries.read(tmp_path)['programs']] == ['out of time']
    accelerators.compile_all(chips.get('v5e'), ['heads'], tmp_path)
    assert asked == [one.id, two.id, two.id]
    accelerators.compile_all(chips.get('v5e'), ['heads'], tmp_path)
    assert asked == [one.id, two.id, two.id, two.id]
    assert {entry['outcome'] for entry in entries.read(tmp_path)['programs']} == {'out of time'}
    flags(LIMIT=901)
    accelerators.compile_all(chips.get('v5e'), ['heads'], tmp_path)
    assert asked[4:] == [one.id, two.id]
    first, second = sorted(entries.read(tmp_path)['programs'], key=lambda entry: -len(entry['serves']))
    assert [len(first['serves']), len(second['serves'])] == [2, 1]
    assert entries.read(tmp_path)['made']['v5e']['packages']['libtpu'] == '1'


@pytest.mark.parametrize(('code', 'errors', 'why'), [
    (-24, '', 'out of time'),
    (-9, '', 'out of memory'),
    (1, 'jax: RESOURCE_EXHAUSTED: Ran out of memory', 'out of memory'),
    (1, 'Traceback\nValueError: no such cell', 'failed: ValueError: no such cell'),
])  # fmt: skip
def test_how_a_process_ended_is_told(monkeypatch, flags, code, errors, why):
    flags(LIMIT=60)
    done = accelerators.subprocess.CompletedProcess([], code, '', errors)
    monkeypatch.setattr(accelerators.subprocess, 'run', lambda *_, **__: done)
    program = exhibit.Program('heads', small.cell('ffn'), 2)
    assert accelerators.found_by_process(program, chips.get('v5e')) == {'outcome': why}


@pytest.mark.parametrize(
    ('devices', 'program', 'words'),
    [([], 'heads:a', 'needs one device'), (['v5e'], 'heads:none', 'no such cell'), (['v5e'], 'heads', 'no such cell')],
)
def test_a_program_that_is_not_there_is_a_line(monkeypatch, flags, devices, program, words):
    flags(LIMIT=60, DEVICES=devices, PROGRAM=program)
    monkeypatch.setattr(accelerators.resource, 'setrlimit', lambda *_: None)
    monkeypatch.setattr(exhibit, 'programs_of', lambda *_: [exhibit.Program('heads', small.cell('ffn'), 2)])
    with pytest.raises(ValueError, match=words):
        accelerators.compile_one()


def test_a_program_that_has_changed_takes_the_place_of_the_former(tmp_path):
    """One of another precision or device is another one."""
    for changes in {}, {'precision': 'high'}, {'device': 'v6e'}:
        entries.add(tmp_path, {**ENTRY, 'fingerprint': str(changes), **changes}, {})
    assert len(entries.read(tmp_path)['programs']) == 3
    entries.add(tmp_path, {**ENTRY, 'fingerprint': 'changed'}, {})
    known = entries.read(tmp_path)['programs']
    assert len(known) == 3
    assert known[-1]['fingerprint'] == 'changed'


def test_entries_go_with_the_cells_that_no_exhibit_has_any_more(tmp_path):
    """A program that another cell shares stays, as that cell's."""
    one, two, old, gone = ({'exhibit': 'heads', 'cell': cell} for cell in ('one', 'two', 'old', 'gone'))
    for number, serves in enumerate(([old, one], [two], [gone])):
        entries.add(tmp_path, {**ENTRY, **serves[0], 'fingerprint': str(number), 'serves': serves}, {})
    entries.drop_all_but(tmp_path, {('heads', 'one'), ('heads', 'two')})
    left = entries.read(tmp_path)['programs']
    assert [(entry['cell'], entry['serves']) for entry in left] == [('one', [one]), ('two', [two])]


def test_the_committed_table_is_that_of_the_entries():
    """`python -m experiments.accelerators --draw_only` mends it."""
    folder = helpers.ROOT / accelerators.RESULTS
    assert entries.table(entries.read(folder)['programs']) == (folder / 'table.md').read_text()


def test_programs_are_told_by_device():
    """A cell of another program's counts, one of another precision does not; of seconds the lesser."""
    other = {'exhibit': 'heads', 'cell': 'transformer-one'}
    shared = {**ENTRY, 'serves': [CELL, other], 'compile_cpu_seconds': 40.0, 'compile_seconds': 30.1}
    late = {**ENTRY, 'outcome': 'out of time', 'fingerprint': 'bb'}
    default = {**ENTRY, 'device': 'a100', 'precision': 'default'}
    lines = entries.by_device([shared, late, default]).splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip('| ').split('|')]
    assert cells == ['v5e', '1 of 2', '2', '30.1', '30.1', '30', '2.0 of 16', 'FFN of `figure1a`, N = 2']
    assert entries.by_device([late]) == entries.by_device([]) == ''


def test_where_no_program_was_compiled_there_is_a_table_all_the_same():
    known = ('device', 'exhibit', 'cell', 'model', 'seq_len', 'lanes', 'precision', 'fingerprint', 'serves')
    page = entries.table([{**{name: ENTRY[name] for name in known}, 'outcome': 'out of time'}])
    assert 'nothing was run' in page
    assert 'out of time' in page


@pytest.mark.parametrize(
    'programs',
    [3, [1], [{**ENTRY, 'serves': [1]}], [{**ENTRY, 'compile_cpu_seconds': 'many'}], [{'device': 'v5e'}]],
    ids=str,
)
def test_a_damaged_or_foreign_file_is_named(tmp_path, programs):
    files.write_json(tmp_path / entries.NAME, {'made': {}, 'programs': programs})
    with pytest.raises(files.ResultsError, match=r'accelerators[.]json is damaged'):
        entries.read(tmp_path)


def test_exhibits_are_the_published_configs_at_the_size_of_a_sweep():
    tuned = list(exhibit.programs_of('figure1a_tuned', 'tpu'))
    assert {program.lanes for program in tuned} == {5}
    assert {program.lanes for program in exhibit.programs_of('sensitivity_ffn', 'gpu')} == {38}  # two of 75 lanes
    with pytest.raises(ValueError, match="exhibit='figure9': unknown"):
        list(exhibit.programs_of('figure9', 'tpu'))


def test_of_each_model_the_largest_program_is_chosen(flags):
    """The longest prompts, and of those the most operations; with the precision that is asked for."""
    flags(LARGEST=True, PRECISION='high')
    found = accelerators.programs_of('n_star', chips.get('v5e'))
    assert [program.cell.model for program in found] == ['transformer', 'least_squares']
    assert {program.cell.problem.task.seq_len for program in found} == {64}
    (ffn,) = [one for one in accelerators.programs_of('figure3', chips.get('v5e')) if one.cell.model == 'ffn']
    assert (ffn.cell.problem.task.sparsity, ffn.cell.problem.learner.precision) == (4, 'high')
