"""Programs compiled for accelerators that are not there: what is read from a compiler's text, stored and drawn."""

import json
from unittest import mock

import jax
import pandas as pd
import pytest

from experiments import accelerators, exhibits
from qstr_jax import plots
from qstr_jax.accelerators import chips, groups, hlo, measure, report, roofline, store, summary, targets
from qstr_jax.storage import files
from tests import helpers, small

# A loop over checks with a loop of three steps in it, in which a loop of two tokens and a branch run.
PROGRAM = """HloModule jit_advance, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

%fused_slice (p0: f32[4,8], p1: s32[]) -> f32[1,8] {
  %p0 = f32[4,8]{1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %cut = f32[1,8]{1,0} dynamic-slice(%p0, %p1, %zero), dynamic_slice_sizes={1,8}
}

%fused_update (p2: f32[4,8], p3: f32[1,8], p4: s32[]) -> f32[4,8] {
  %p2 = f32[4,8]{1,0} parameter(0)
  %p3 = f32[1,8]{1,0} parameter(1)
  %p4 = s32[] parameter(2)
  %zero.1 = s32[] constant(0)
  ROOT %put = f32[4,8]{1,0} dynamic-update-slice(%p2, %p3, %p4, %zero.1)
}

%token (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  %h = f32[8]{0} get-tuple-element(%t), index=1
  %next = f32[8]{0} tanh(%h), metadata={op_name="a/training_step/while/body/tanh"}
  %i = s32[] get-tuple-element(%t), index=0
  ROOT %out = (s32[], f32[8]{0}) tuple(%i, %next)
}

%tokens_left (u: (s32[], f32[8])) -> pred[] {
  %u = (s32[], f32[8]{0}) parameter(0)
  %two = s32[] constant(2)
  %j = s32[] get-tuple-element(%u), index=0
  ROOT %less = pred[] compare(%j, %two), direction=LT
}

%small (a: f32[8]) -> f32[8] {
  ROOT %a = f32[8]{0} parameter(0)
}

%large (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  ROOT %copied = f32[8]{0} copy(%b)
}

%step (s: (s32[], f32[8], f32[4,8], /*index=3*/f32[8])) -> (s32[], f32[8], f32[4,8], f32[8]) {
  %s = (s32[], f32[8]{0}, f32[4,8]{1,0:T(8,128)}, /*index=3*/f32[8]{0}) parameter(0)
  %k = s32[] get-tuple-element(%s), index=0
  %x = f32[8]{0} get-tuple-element(%s), index=1
  %all = f32[4,8]{1,0} get-tuple-element(%s), index=2
  %scratch = f32[8]{0:T(128)S(1)} get-tuple-element(%s), index=3
  %row = f32[1,8]{1,0} fusion(%all, %k), kind=kLoop, calls=%fused_slice
  %kept = f32[4,8]{1,0} fusion(%all, %row, %k), kind=kLoop, calls=%fused_update
  %near = f32[8]{0:T(128)S(1)} fusion(%scratch, %x), kind=kLoop, calls=%missing
  %gemm = (f32[8]{0}, s8[4194304]{0}) custom-call(%x, %x), custom_call_target="__cublas$gemm"
  %pair = (s32[], f32[8]{0}) tuple(%k, %x)
  %states = (s32[], f32[8]{0}) while(%pair), condition=%tokens_left, body=%token, metadata={op_name="training_step"}
  %chosen = f32[8]{0} conditional(%k, %x, %x), branch_computations={%small, %large}
  ROOT %done = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[8]{0}) tuple(%k, %chosen, %kept, %near)
}

%steps_left (v: (s32[])) -> pred[] {
  %v = (s32[]) parameter(0)
  ROOT %yes = pred[] constant(true)
}

%check (c: (s32[], f32[8], f32[4,8], f32[8])) -> (s32[], f32[8], f32[4,8], f32[8]) {
  %c = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[8]{0}) parameter(0)
  %constants = f32[8]{0} broadcast(%c), metadata={op_name="a/training_step/add"}
  ROOT %w = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[8]{0}) while(%c), condition=%steps_left, body=%step
}

ENTRY %main (arg: (s32[], f32[8], f32[4,8], f32[8])) -> (s32[], f32[8], f32[4,8], f32[8]) {
  %arg = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[8]{0}) parameter(0)
  ROOT %loop = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[8]{0}) while(%arg), condition=%steps_left, body=%check
}
"""
CELL = {'exhibit': 'figure1a', 'cell': 'ffn-qstr-N2-q1-90c42eb1'}
ENTRY = {
    'device': 'v5e', 'fingerprint': 'aa', **CELL, 'model': 'ffn', 'seq_len': 2, 'lanes': 5, 'serves': [CELL],
    'outcome': 'compiled', 'compile_seconds': 20.0, 'compile_cpu_seconds': 11.0, 'memory_bytes': 2**26, 'flops': 4e7,
    'bytes_accessed': 10**6, 'kernels_per_step': 40, 'estimated_step_seconds': 1e-4, 'steps_per_check': 10,
    'estimated_screen_seconds': 2e-4, 'estimated_test_seconds': 1e-3, 'most_lanes_estimated': 900,
}  # fmt: skip
GROUP = {
    'outcome': 'compiled', 'topology': 'v5e:4x4', 'num_devices': 16, 'num_processes': 4, 'lanes': 5,
    'compared': ['TPU_0', 'TPU_15'], 'programs': ['aa', 'bb'], 'memory_bytes': [10**7, 10**7],
    'together': {'lanes': 80, 'memory_bytes_of_a_device': 10**7, 'collectives': 25},
}  # fmt: skip
NO_FLAGS = {'PRECISION': 'highest', 'ARCHITECTURES': [], 'LARGEST': False}


def test_kernels_of_a_step_with_the_bytes_that_they_move():
    """A slice counts as such, an update in place too; a TPU's own scratch and a library's do not; two tokens."""
    assert hlo.step_kernels(PROGRAM) == [32 + 32 + 4, 32 + 32 + 4, 32, 3 * 32, 64, 64, 64]


def test_a_loop_runs_as_often_as_the_compiler_says():
    told = PROGRAM.replace('body=%token', 'body=%token, backend_config={"known_trip_count":{"n":"5"}}')
    assert hlo.step_kernels(told).count(64) == 5 + 1


def test_a_program_without_steps_has_no_kernels_of_a_step():
    assert hlo.step_kernels(PROGRAM.replace('training_step', 'other')) is None


def test_results_in_the_memory_of_arguments_are_counted():
    assert hlo.num_aliased(PROGRAM) == 2


def test_transfers_to_and_from_the_host_are_found():
    assert hlo.host_transfers(PROGRAM) == []
    line = '  %asked = f32[8]{0} custom-call(%b), custom_call_target="xla_ffi_python_gpu_callback"\n'
    assert hlo.host_transfers(PROGRAM.replace('  ROOT %copied', f'{line}  ROOT %copied')) == ['asked']


@pytest.mark.parametrize(('name', 'kernels', 'flops', 'seconds'), [
    ('v5e', [819], 1.0, 1e-9),
    ('v5e', [819], 197e12 / 6, 1.0),
    ('h100', [10, 10], 1.0, 2 * chips.KERNEL_SECONDS),
    ('h100', [3352320000000, 10], 1.0, 1 + chips.KERNEL_SECONDS),
])  # fmt: skip
def test_the_roofline_is_the_slowest_of_products_memory_and_launches(name, kernels, flops, seconds):
    assert roofline.step_seconds(chips.get(name), flops, kernels) == pytest.approx(seconds)


@pytest.mark.parametrize('chip', chips.CHIPS.values(), ids=chips.CHIPS)
def test_constants_are_cited_and_lower_precision_is_no_slower(chip):
    assert all(source.startswith('https://') for source in chip.sources)
    assert chip.flops['highest'] < chip.flops['high'] <= chip.flops['default']
    assert chip.memory_bytes >= 16e9


def test_the_committed_constants_are_those_of_the_estimates():
    for name, constants in store.read(helpers.ROOT / accelerators.RESULTS)['constants'].items():
        assert constants == json.loads(json.dumps(store.constants_of(chips.get(name)))), name


def test_a_gpu_is_described_to_its_compiler():
    text = targets.target_config(chips.get('h100'))
    for line in 'core_count: 132', 'cuda_compute_capability { major: 9 }', 'platform_name: "CUDA"', 'major: 9':
        assert line in text
    assert text.count('{') == text.count('}')


def test_devices_of_a_group_are_compared(monkeypatch):
    """Here of two CPUs. All lanes in one program divide the memory, but the devices wait for each other."""
    problem, devices = small.cell('ffn').problem, jax.devices()[:2]
    monkeypatch.setattr(targets, 'devices', lambda chip, topology: devices)
    found = groups.compare(problem, 2, chips.get('v5e'))
    assert found['topology'] == 'v5e:4x4'
    assert (len(set(found['programs'])), len(set(found['memory_bytes'])), len(found['compared'])) == (1, 1, 2)
    assert found['together']['lanes'] == 4
    assert found['together']['collectives'] > 0
    assert found['together']['memory_bytes_of_a_device'] < 2 * found['memory_bytes'][0]


def test_an_unknown_device_or_one_without_compiler_is_a_line(monkeypatch):
    with pytest.raises(ValueError, match="devices='v7': unknown, one of v5e, h100"):
        chips.get('v7')
    monkeypatch.setattr(targets, 'is_installed', lambda chip: False)
    with pytest.raises(ValueError, match=r'devices=v5e: needs libtpu, of the extra tpu-compile: make accelerators'):
        targets.devices(chips.get('v5e'))


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


def test_a_run_that_is_cut_off_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """Programs that another cell shares, or that have an entry, are not compiled again, but for those that failed."""
    for flag, value in NO_FLAGS.items():
        monkeypatch.setattr(accelerators, flag, mock.Mock(value=value))
    asked = []

    def found(program, chip):
        asked.append(program.cell.id)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {'outcome': 'failed: once' if len(asked) == 3 else 'out of time'}

    one, two = small.cell('ffn'), small.cell('transformer')
    some = [exhibits.Program('heads', cell, 2) for cell in (one, two)]
    monkeypatch.setattr(accelerators, 'found_by_process', found)
    monkeypatch.setattr(exhibits, 'programs_of', lambda *_: [*some, exhibits.Program('figure2', one, 2)])
    monkeypatch.setattr(measure, 'fingerprint', lambda problem, lanes, chip: type(problem.module).__name__)
    monkeypatch.setattr(measure, 'versions', lambda chip: {'libtpu': '1'})
    with pytest.raises(KeyboardInterrupt):
        accelerators.compile_all(chips.get('v5e'), ['heads'], tmp_path)
    assert [entry['outcome'] for entry in store.read(tmp_path)['programs']] == ['out of time']
    accelerators.compile_all(chips.get('v5e'), ['heads'], tmp_path)
    assert asked == [one.id, two.id, two.id]
    accelerators.compile_all(chips.get('v5e'), ['heads'], tmp_path)
    assert asked == [one.id, two.id, two.id, two.id]
    assert {entry['outcome'] for entry in store.read(tmp_path)['programs']} == {'out of time'}
    first, second = sorted(store.read(tmp_path)['programs'], key=lambda entry: -len(entry['serves']))
    assert [len(first['serves']), len(second['serves'])] == [2, 1]
    assert json.loads((tmp_path / store.NAME).read_text())['made']['v5e']['packages']['libtpu'] == '1'


def test_shortest_programs_are_compared_once(tmp_path, monkeypatch):
    """And what is known of programs stays."""
    for flag, value in NO_FLAGS.items():
        monkeypatch.setattr(accelerators, flag, mock.Mock(value=value))
    monkeypatch.setattr(measure, 'fingerprint', lambda problem, lanes, chip: type(problem.module).__name__)
    monkeypatch.setattr(measure, 'versions', lambda chip: {})
    monkeypatch.setattr(accelerators, 'found_by_process', lambda *_: GROUP)
    v5e = chips.get('v5e')
    store.add(tmp_path, ENTRY, v5e, {})
    accelerators.compare_devices(v5e, ['figure1a'], tmp_path)
    monkeypatch.setattr(accelerators, 'found_by_process', lambda *_: pytest.fail('compiled again'))
    accelerators.compare_devices(v5e, ['figure1a'], tmp_path)
    known = store.read(tmp_path)
    assert known['programs'] == [ENTRY]
    assert [(one['model'], one['seq_len']) for one in known['groups']] == [('transformer', 2), ('rnn', 2), ('ffn', 2)]
    assert list(report.by_group(known['groups'])['different programs']) == [2, 2, 2]
    assert 'wait for each other' in report.tables(tmp_path)


@pytest.mark.parametrize(('code', 'errors', 'why'), [
    (-24, '', 'out of time'),
    (-9, '', 'out of memory'),
    (1, 'jax: RESOURCE_EXHAUSTED: Ran out of memory', 'out of memory'),
    (1, 'Traceback\nValueError: no such cell', 'failed: ValueError: no such cell'),
])  # fmt: skip
def test_how_a_process_ended_is_told(code, errors, why):
    done = accelerators.subprocess.CompletedProcess([], code, '', errors)
    assert accelerators.why(done) == why


def test_tables_and_figure(tmp_path):
    v5e = chips.get('v5e')
    store.add(tmp_path, ENTRY, v5e, {})
    late = {**ENTRY, 'cell': 'ffn-qstr-N4', 'fingerprint': 'bb', 'seq_len': 4, 'outcome': 'out of time'}
    store.add(tmp_path, late, v5e, {})
    table = report.write(tmp_path)
    assert '1 of 2' in table
    text = (tmp_path / 'table.md').read_text()
    assert 'nothing was run' in text
    assert 'out of time' in text
    assert (tmp_path / 'figure.png').stat().st_size > 5000


def test_a_program_that_has_changed_takes_the_place_of_the_former(tmp_path):
    """One of another precision or device is another one."""
    v5e = chips.get('v5e')
    for changes in {}, {'precision': 'high'}, {'device': 'v6e'}:
        store.add(tmp_path, {**ENTRY, 'fingerprint': str(changes), **changes}, v5e, {})
    assert len(store.read(tmp_path)['programs']) == 3
    store.add(tmp_path, {**ENTRY, 'fingerprint': 'changed'}, v5e, {})
    known = store.read(tmp_path)['programs']
    assert len(known) == 3
    assert known[-1]['fingerprint'] == 'changed'


def test_the_committed_tables_are_those_of_the_entries():
    """`python -m experiments.accelerators --draw_only` mends it."""
    folder = helpers.ROOT / accelerators.RESULTS
    assert report.tables(store.folder_of(folder)) == (folder / 'table.md').read_text()


def test_the_page_says_how_many_cells_have_a_program_and_which_took_long():
    """A cell of another program's counts, one of another precision does not."""
    other = {'exhibit': 'heads', 'cell': 'transformer-one'}
    shared = {**ENTRY, 'serves': [CELL, other], 'lanes': 4, 'compile_cpu_seconds': 40.0, 'compile_seconds': 30.1}
    late = {**ENTRY, 'device': 'h100', 'outcome': 'out of time'}
    default = {**ENTRY, 'device': 'a100', 'precision': 'default'}
    cells = {'figure1a': {CELL['cell']: 5}, 'heads': {'transformer-one': 5, 'transformer-two': 5}}
    text = summary.text([shared, late, default], cells, [])
    assert '| exhibit  | cells | v5e |\n' in text
    assert '| heads    | 2     | 1   |\n| all      | 3     | 2   |' in text
    name = 'FFN of `figure1a` at N = 2 on '
    assert f'1 programs of 2 that were tried compiled, but for {name}H100 (out of time).' in text
    assert f'On two cores each took at most 30 seconds, but for {name}v5e: 30.1, the longest 30.1.' in text
    assert 'Of seconds of a core 1 took more, at most 40.0.' in text
    assert 'All of Figure 1a took 30 for v5e.' in text
    assert f'Lanes were halved, and compiled again, for {name}v5e;' in text
    quick = summary.outcomes([ENTRY], cells)
    assert 'each took at most 30 seconds, the longest 11.0.' in quick  # other work made it 20 of the clock
    assert 'again, for none; transfers to or from the host are in the `advance` of none.' in quick


def test_the_page_says_what_precision_does_to_samples_of_the_same_seeds():
    samples = {'highest': [10, 20], 'bf16': [10, 30], 'high': [1, 1]}
    records = [{'model': 'ffn', 'seq_len': 8, 'precision': name, 'samples': many} for name, many in samples.items()]
    text = summary.text([ENTRY], {'figure1a': {CELL['cell']: 5}}, records)
    assert '| FFN   | 8 | 2     | 1.25     |' in text


def test_what_a_precision_costs_is_shown_for_cells_compiled_with_several():
    entries = pd.DataFrame([{**ENTRY, 'precision': 'highest'}, {**ENTRY, 'cell': 'other', 'precision': 'highest'}])
    assert report.by_precision(entries).empty
    high = {**ENTRY, 'precision': 'high', 'compile_cpu_seconds': 6.0}
    table = report.by_precision(pd.concat([entries, pd.DataFrame([high])], ignore_index=True))
    assert list(table['precision']) == ['highest', 'high']


def test_seconds_of_an_exhibit_are_those_of_its_rows():
    """Ten batches of 64 prompts and two tests; a screening every ten steps."""
    rows = pd.DataFrame({'num_samples': [640, 320], 'batch_size': 64, 'num_evaluations': [1, 1]})
    assert report.run_seconds(ENTRY, rows) == pytest.approx(10 * 1e-4 + 2e-4 + 2e-3)
    assert report.run_seconds(ENTRY, rows.iloc[:0]) is None
    assert report.run_seconds({**ENTRY, 'estimated_step_seconds': None}, rows) is None


def test_a_figure_without_its_columns_is_refused():
    with pytest.raises(ValueError, match='memory_bytes'):
        plots.accelerators(pd.DataFrame([ENTRY]).drop(columns='memory_bytes'))


@pytest.mark.parametrize(
    'programs',
    [3, [1], [{**ENTRY, 'serves': [1]}], [{**ENTRY, 'compile_cpu_seconds': 'many'}], [{'device': 'v5e'}]],
    ids=str,
)
def test_a_damaged_or_foreign_file_is_named(tmp_path, programs):
    files.write_json(tmp_path / store.NAME, {'programs': programs})
    with pytest.raises(files.ResultsError, match=r'accelerators[.]json is damaged'):
        store.read(tmp_path)


def test_where_no_program_was_compiled_there_are_tables_all_the_same(tmp_path):
    known = ('device', 'exhibit', 'cell', 'model', 'seq_len', 'lanes', 'fingerprint', 'serves')
    entry = {**{name: ENTRY[name] for name in known}, 'outcome': 'out of time'}
    files.write_json(tmp_path / store.NAME, {'programs': [entry]})
    assert '0 of 1' in report.write(store.folder_of(tmp_path))
    assert 'out of time' in (tmp_path / 'table.md').read_text()


@pytest.mark.parametrize(
    ('devices', 'program', 'words'),
    [([], 'heads:a', 'needs one device'), (['v5e'], 'heads:none', 'no such cell'), (['v5e'], 'heads', 'no such cell')],
)
def test_a_program_that_is_not_there_is_a_line(tmp_path, monkeypatch, devices, program, words):
    flags = {**NO_FLAGS, 'LIMIT': 60, 'DEVICES': devices, 'PROGRAM': program, 'ENTRY': str(tmp_path / 'entry.json')}
    for flag, value in flags.items():
        monkeypatch.setattr(accelerators, flag, mock.Mock(value=value))
    monkeypatch.setattr(accelerators.resource, 'setrlimit', lambda *_: None)
    monkeypatch.setattr(exhibits, 'programs_of', lambda *_: [exhibits.Program('heads', small.cell('ffn'), 2)])
    with pytest.raises(ValueError, match=words):
        accelerators.compile_one()


def test_exhibits_are_the_published_configs_at_the_size_of_a_sweep():
    tuned = list(exhibits.programs_of('figure1a_tuned', 'tpu'))
    assert {program.lanes for program in tuned} == {5}
    assert {program.lanes for program in exhibits.programs_of('sensitivity_ffn', 'gpu')} == {45}
    with pytest.raises(ValueError, match="exhibits='figure9': unknown"):
        list(exhibits.programs_of('figure9', 'tpu'))


def test_of_each_model_the_largest_program_is_chosen(monkeypatch):
    """The longest prompts, and of those the most operations."""
    found = exhibits.largest(exhibits.programs_of('n_star', 'tpu'))
    assert [program.cell.model for program in found] == ['transformer', 'least_squares']
    assert {program.cell.problem.task.seq_len for program in found} == {64}
    for flag, value in {**NO_FLAGS, 'ARCHITECTURES': ['ffn']}.items():
        monkeypatch.setattr(accelerators, flag, mock.Mock(value=value))
    for largest, count in ((False, 4), (True, 1)):
        monkeypatch.setattr(accelerators, 'LARGEST', mock.Mock(value=largest))
        found = accelerators.chosen_programs('figure3', chips.get('v5e'))
        assert {program.cell.model for program in found} == {'ffn'}
        assert len(found) == count
    assert found[0].cell.problem.task.sparsity == 4


def test_every_published_config_is_an_exhibit():
    """But the theorems' cards, which are no sweep."""
    configs = {path.stem for path in (helpers.ROOT / 'experiments/configs').glob('*.py')}
    assert {name for name, _ in exhibits.EXHIBITS.values()} == configs - {'__init__', 'base', 'theorems'}
