"""The binary that runs any sweep: overrides, what it draws, and bad input."""

import re
import subprocess
import sys
import types

import pandas as pd
import pytest

from qstr_jax import sweeps
from qstr_jax.cli import base, sample_complexity
from qstr_jax.report import drawing
from qstr_jax.storage import results
from tests import harness, helpers, small, stored
from tests.helpers import config_module


@pytest.mark.slow
def test_overrides_by_the_promised_names(tmp_path):
    """Settings of every kind in one dry run."""
    overrides = (
        'models=transformer,ffn,rnn', 'task.name=simple_qstr', 'seq_lens=8,12', 'sparsity=2', 'token_dim=5',
        'encoding_dim=60', 'encoding_scale=scaled', 'max_coherence=0.5', 'link=hermite2', 'transformer.num_heads=3',
        'transformer.attention=merged', 'transformer.mlp_width=32', 'rnn.cell=lstm', 'rnn.width=10',
        'rnn.states=exclusive', 'rnn.readout=mlp', 'ffn.form=theorem6', 'ffn.widths=20,10', 'risk=pointwise',
        'num_seeds=2', 'task_per_lane=True',
        'batch_size=32', 'learning_rate=3e-4', 'weight_decay=0.05', 'threshold=0.5', 'check_every=7',
        'max_samples=10000', 'test_samples=300', 'screen=False', 'preset=paper',
    )  # fmt: skip
    texts = [f'--config.{text}' for text in overrides]
    done = harness.run_binary('sample_complexity', '--config=experiments/exhibits/figure1a.py', '--dry_run', *texts)
    assert done.returncode == 0, done.stderr
    assert 'ffn-simple_qstr-N12-q2' in done.stdout
    assert '6 cells, 12 lanes' in done.stdout


@pytest.mark.parametrize(('index', 'count'), [(0, 2), (1, 2), (3, 4)])
def test_a_dry_run_of_a_share_lists_its_cells(index, count):
    done = harness.run_binary(
        'sample_complexity', '--config=experiments/exhibits/quickstart.py', '--dry_run', '--config.models=ffn',
        '--config.seq_lens=2,3', '--config.num_seeds=2', f'--shard_index={index}', f'--num_shards={count}',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if count == 4:
        assert done.stdout == 'share 3 of 4 has no cells\n'
    else:  # the longer prompts are more work, and given away first
        assert re.findall(r'^ffn-qstr-(N\d)', done.stdout, re.MULTILINE) == [f'N{3 - index}']
        assert '\n1 cells, 2 lanes' in done.stdout


@pytest.mark.slow
def test_end_to_end_as_a_command_and_once_more(tmp_path):
    """Rows, figure and table; the second call runs nothing and says the same."""
    arguments = [
        '--config=experiments/exhibits/quickstart.py', f'--workdir={tmp_path / "sweep"}', '--config.models=ffn',
        '--config.seq_lens=3', '--config.num_seeds=2', '--config.test_samples=100',
        f'--compilation_cache={tmp_path / "cache"}',
    ]  # fmt: skip
    # In a new Python and with the user's programs; all other binaries of the tests share their imports.
    call = [sys.executable, '-m', 'experiments.sample_complexity', *arguments]
    first = subprocess.run(call, capture_output=True, text=True, cwd=helpers.ROOT, timeout=300)
    assert first.returncode == 0, first.stderr
    assert 'device: cpu' in first.stderr
    rows = {path: path.read_bytes() for path in tmp_path.glob('sweep/rows/*')}
    second = harness.run_binary('sample_complexity', *arguments)
    assert second.returncode == 0
    assert second.stdout == first.stdout
    assert rows == {path: path.read_bytes() for path in tmp_path.glob('sweep/rows/*')}
    assert len(results.load(tmp_path / 'sweep')) == 2


def test_overrides_of_learners_on_a_fixed_sample():
    done = harness.run_binary(
        'sample_complexity', '--config=experiments/exhibits/n_star.py', '--dry_run',
        '--config.seq_lens=8,16', '--config.num_seeds=2',
        '--config.learners=min_norm,stationary', '--config.models=transformer,ffn',
        '--config.min_norm.epsilon=0.01', '--config.stationary.optimizer=sgd', '--config.stationary.weight_decay=0.1',
        '--config.risk=pointwise', '--config.batch_size=0', '--config.radius=None', '--config.radius_unit=None',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '8 cells, 16 lanes' in done.stdout


def test_an_exhibit_draws_and_checks_in_its_own_way(tmp_path):
    """Whatever is overridden, by the binary of all sweeps."""
    config = '--config=experiments/exhibits/figure2.py'
    done = harness.run_binary('sample_complexity', config, '--config.save_params=False', f'--workdir={tmp_path}')
    helpers.assert_one_error(done, 'save_params=False: the trained parameters are what is drawn')


@pytest.mark.parametrize(
    ('config', 'overrides', 'word'),
    [
        ('n_star', ('num_samples=0',), 'num_samples'),
        ('n_star', ('num_samples=0.33', 'samples_unit=Nd'), 'not a whole number'),
        ('n_star', ('learners=erm',), 'learners'),
        ('n_star', ('radius=-1.0',), 'radius'),
        ('n_star', ('budget=1.0',), 'budget'),
        ('n_star', ('weight_decay=0.1',), 'weight_decay=0.1: would be ignored'),
        ('n_star', ('resolution=0.0',), 'resolution'),
        ('figure1a', ('transformer.num_heads=0',), 'num_heads'),
        ('figure1a', ('sparsity=20',), 'sparsity'),
        ('figure1a', ('models=lstm',), 'transformer, rnn, ffn'),
    ],
)
def test_bad_input_is_named(parse, config, overrides, word):
    """The command makes a line of it, as above."""
    path = helpers.ROOT / 'experiments/exhibits' / f'{config}.py'

    def cells():
        _, values = parse(f'--config={path}', *(f'--config.{text}' for text in overrides))
        return sweeps.cells_of(base.to_sweep(values.config))

    with pytest.raises((SystemExit, ValueError), match=word):
        cells()


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'plugins': ('no_such_module',)}, "plugins='no_such_module': ModuleNotFoundError: No module named"),
        ({'x': 'rnn_widht'}, "x='rnn_widht': unknown; did you mean 'rnn_width'. It is one of model, task,"),
        ({'heatmap': {'y': 'optimiser'}}, "heatmap.y='optimiser': unknown; did you mean 'optimizer'"),
        ({'heatmap': {'x': 'seq_len'}}, "heatmap.x='seq_len', heatmap.y='': a heat map needs two columns"),
        ({'title': 'caf\udce9'}, 'title=.*: must be text in UTF-8'),
        ({'axes': '{rnn.width: 3}'}, "axes='{rnn.width: 3}': give names and values"),
        ({'axes': '{[1]: 2}'}, "axes='{\\[1\\]: 2}': give names and values"),
    ],
)
def test_what_is_no_setting_of_a_sweep_is_checked_too(changes, words):
    config = config_module('figure1a').get_config()
    config.update(changes)
    with pytest.raises(ValueError, match=words):
        base.check_drawn(config, sweeps.cells_of(base.to_sweep(config)))


def test_a_config_of_another_binary_is_named_as_such():
    with pytest.raises(ValueError, match='--config is not of a sweep, it has no plugins'):
        base.to_sweep({'seq_lens': (3,)})


def test_rows_whose_curves_are_all_damaged_are_drawn(tmp_path):
    workdir = stored.make(tmp_path / 'sweep')
    next(workdir.glob('curves/*.parquet')).write_bytes(b'')
    with pytest.warns(UserWarning, match='left out: .*curves'):
        drawing.draw(workdir, config_module('quickstart').get_config())
    assert (workdir / 'figure.png').exists()
    assert not (workdir / 'curves.png').exists()


def test_a_figure_says_that_its_lanes_share_a_draw_of_the_task(tmp_path):
    rows = results.load(stored.make(tmp_path / 'sweep'))
    config = config_module('quickstart').get_config()
    said = [
        [note for note in drawing.words(config, rows.assign(task_seed=seeds))['notes'] if 'share one draw' in note]
        for seeds in (0, rows['seed'])
    ]
    assert [len(notes) for notes in said] == [1, 0]


@pytest.mark.slow
def test_several_settings_get_a_figure_each_and_those_of_a_model_a_line_each(tmp_path):
    config = config_module('quickstart').reduced()
    config.models, config.seq_lens, config.learning_rate = ('ffn',), (2,), (1e-3, 3e-3)
    config.ffn.widths = ((8, 8), (16, 16))
    sweeps.run(base.to_sweep(config), tmp_path, small.quiet())
    drawing.draw(tmp_path, config)
    assert {path.name for path in tmp_path.glob('figure*.png')} == {
        'figure_learning_rate-0.001.png', 'figure_learning_rate-0.003.png',
    }  # fmt: skip
    table = (tmp_path / 'table_learning_rate-0.001.md').read_text()
    assert '8,8' in table
    assert '16,16' in table
    assert len(list(tmp_path.glob('curves*.png'))) == 4


def test_lanes_with_several_thresholds_get_a_figure_for_each_and_one_of_all(tmp_path):
    workdir = stored.make(
        tmp_path / 'results', task='qstr', learner='online', sparsity=1, seq_len=3, max_samples=9000, num_samples=9000,
        thresholds='1.1', crossings='1.1:320 0.9:',
    )  # fmt: skip
    config = config_module('quickstart').reduced()
    rows = results.load(workdir)
    assert set(rows['crossings']) == {'1.1:320 0.9:'}
    drawing.draw(workdir, config)
    assert {path.name for path in workdir.glob('*.png')} == {
        'figure_threshold-0.9.png', 'figure_threshold-1.1.png', 'thresholds.png', 'curves.png',
    }  # fmt: skip


def test_published_values_stand_beside_rows_of_their_own_setting_alone():
    rows = pd.DataFrame([
        {'model': model, 'task': 'qstr', 'seq_len': n, 'link': 'linear', 'sparsity': 1}
        for model in ('transformer', 'ffn') for n in (6, 8)
    ])  # fmt: skip
    points = (('transformer', 6, 10_500), ('transformer', 12, 17_000), ('rnn', 6, 33_000), ('ffn', 6, 20_000))
    found = drawing.published_samples(rows, points, {'task': 'qstr'})
    assert found == {'transformer': {6: 10_500}, 'ffn': {6: 20_000}}
    assert drawing.published_samples(rows, points, {'task': 'qstr', 'link': 'hermite2'}) == {}
    several = pd.concat([rows, rows.assign(sparsity=2)])
    assert drawing.published_samples(several, points, {'task': 'qstr'}) == {}


def test_every_binary_says_which_directory_is_missing_or_too_many(tmp_path):
    config = '--config=experiments/exhibits/quickstart.py'
    helpers.assert_one_error(harness.run_binary('sample_complexity', config), '--workdir=DIR is missing')
    twice = [f'--workdir={tmp_path / name}' for name in 'ab']
    helpers.assert_one_error(harness.run_binary('sample_complexity', config, *twice), 'give one directory')
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('source', 'line'),
    [
        ('def draw(workdir, config):\n    raise KeyError(3)', r'^draw of .*mine\.py: KeyError: 3 \(mine.py, line 2\)$'),
        ('draw = 5', r'^draw=5: must be a function, in .*mine\.py$'),
    ],
)
def test_a_function_of_a_users_config_fails_in_a_line(tmp_path, monkeypatch, source, line):
    (tmp_path / 'mine.py').write_text(source)
    monkeypatch.setattr(sample_complexity.config_flags, 'get_config_filename', lambda flag: str(tmp_path / 'mine.py'))
    with pytest.raises(ValueError, match=line):
        sample_complexity.draw(stored.make(tmp_path / 'results'), base.get_config())


def test_the_file_of_a_config_is_run_once(tmp_path, monkeypatch):
    path, runs = tmp_path / 'mine.py', tmp_path / 'runs'
    path.write_text(f"with open({str(runs)!r}, 'a') as file:\n    file.write('run ')\n")
    monkeypatch.setattr(sample_complexity.config_flags, 'get_config_filename', lambda flag: str(path))
    for name in 'check', 'draw', 'draw':
        sample_complexity._of_config(name, print)
    assert runs.read_text() == 'run '


def test_a_draw_that_is_no_function_is_found_before_any_work(tmp_path, monkeypatch):
    (tmp_path / 'mine.py').write_text('from qstr_jax.cli.base import get_config\n\ndraw = 5\n')
    monkeypatch.setattr(sample_complexity, 'CONFIG', types.SimpleNamespace(value=base.get_config()))
    monkeypatch.setattr(sample_complexity.config_flags, 'get_config_filename', lambda flag: str(tmp_path / 'mine.py'))
    with pytest.raises(ValueError, match='draw=5: must be a function'):
        sample_complexity.prepared()
