"""Exhibits: every one is whole, has its rows, and its reduced twin runs end to end into pictures and tables."""

import functools
import inspect
import shutil

import numpy as np
import pandas as pd
import pytest

from experiments import exhibit, gallery
from experiments.exhibits import architectures
from experiments.exhibits import state as states
from qstr_jax import sweeps
from qstr_jax.cli import base
from qstr_jax.storage import results
from qstr_jax.sweeps import programs
from qstr_jax.theory import heads
from tests import helpers, memory, small

# Cards have tests of their own.
NAMES = sorted(name for name, one in exhibit.every().items() if not isinstance(one, exhibit.CardExhibit))


@pytest.fixture(autouse=True, scope='module')
def _programs_are_kept():
    """Parts often have the cells of the part before; JAX's cache spares their compilation, but not the lowering.

    `memory.make_room` drops them.
    """
    compile_anew = programs._compile
    programs._compile = functools.lru_cache(maxsize=16)(compile_anew)
    yield
    programs._compile = compile_anew


def one(name):
    return exhibit.Exhibit(helpers.config_module(name))


@pytest.mark.parametrize('name', NAMES)
def test_each_directory_has_a_title_of_its_own(name):
    folders = one(name).folders
    heads = {one(name).title_of(folder).partition(':')[0] for folder in folders}
    assert len(heads) == len(folders)
    assert set(getattr(one(name).module, 'TITLES', {})) <= set(folders)


def test_a_mixer_that_a_part_leaves_out_has_its_size_all_the_same():
    """--config.models may name it, and its rows stand beside those of the others."""
    long, state = architectures.get_config('long_64'), states.get_config('s1024_16')
    assert {long[model].num_parameters for model in architectures.MODELS} == {20_000}
    assert 's5' not in state.models
    assert 2 * state.s5.state_dim == 1024


# Twins of exhibits that are drawn as every sweep is, by an exhibit whose twin runs all that theirs would.
AS_ANOTHER = {
    'figure1b': 'quickstart', 'figure1b_tuned': 'figure1a_tuned', 'figure3_tuned': 'figure1a_tuned',
    'n_star_models': 'n_star_models_erm',
}  # fmt: skip


def kinds_of(name):
    """What a twin runs: architectures, learners, whether they search, what is tuned, probes; and how it is drawn."""
    found = set()
    for folder in one(name).folders:
        for config, sweep in zip(one(name).configs(folder, True), one(name).sweeps(folder, True), strict=True):
            drawn = bool(config.heatmap.x), bool(config.thresholds), sweep.tune and sweep.tune.names, sweep.probes
            cells = exhibit.cells_of(sweep)
            found |= {(cell.model, cell.problem.learner.name, is_search(cell), *drawn) for cell in cells}
    return found


def is_search(cell):
    return getattr(cell.problem.learner, 'is_search', False)


@pytest.mark.parametrize('name', AS_ANOTHER)
def test_a_twin_that_is_not_run_is_as_another(name):
    assert not hasattr(one(name).module, 'draw')
    assert kinds_of(name) <= kinds_of(AS_ANOTHER[name])


def lanes_of(sweep):
    """All lanes of a sweep, by cell."""
    return frozenset((cell.id, lane) for cell in exhibit.cells_of(sweep) for lane in cell.lanes)


@pytest.mark.slow
@pytest.mark.parametrize('name', [name for name in NAMES if name not in AS_ANOTHER])
def test_reduced_twins_run_end_to_end(name, tmp_path, no_pdfs):
    """Of each folder the first and the last part, drawn together; all are built above.

    Parts, and folders, whose twins have the same lanes are run once.
    """
    some, done = one(name), {}
    for folder in some.folders:
        first, *_, last = some.sweeps(folder, reduced=True) * 2
        run = {lanes_of(sweep): sweep for sweep in (first, last)}
        lanes = frozenset().union(*run)
        if lanes in done:
            shutil.copytree(done[lanes], tmp_path / folder, ignore=shutil.ignore_patterns('*.png', '*.md'))
        else:
            for sweep in run.values():
                sweeps.run(sweep, tmp_path / folder, small.quiet(), exhibit.cells_of(sweep))
                memory.make_room(600 * 2**20)  # The programs of one part take up to this much again.
        done[lanes] = tmp_path / folder
        some.draw(folder, tmp_path, reduced=True)
        rows = results.load(tmp_path / folder)
        tuned = rows['tuned'].notna().any() if 'tuned' in rows else False
        assert tuned or len(rows) == len(lanes)
        assert np.isfinite(rows['test_loss']).all()
        assert not rows['outcome'].eq('diverged').any()
        for pattern in '*.png', '*.md':
            found = list((tmp_path / folder).glob(pattern))
            assert found
            assert all(path.stat().st_size > 50 for path in found)


def test_architectures_draws_whatever_tasks_have_rows(tmp_path, monkeypatch):
    rows = pd.DataFrame([
        {'model': model, 'task': task, 'seq_len': 4, 'seed': seed, 'outcome': 'reached', 'samples_to_threshold': 900,
         'max_samples': 10**6, 'threshold': 0.7, 'risk': 'pointwise', 'learning_rate': 1e-3}
        for model in ('attention', 'gru') for task in ('flights', 'noisy_keys') for seed in range(3)
    ])  # fmt: skip
    figures = []
    monkeypatch.setattr(architectures.lanes, 'load', lambda workdir: rows)
    monkeypatch.setattr(architectures.drawing, 'save', lambda figure, *_: figures.append(figure))
    architectures.draw(tmp_path, architectures.get_config('noisy_keys_4'))
    titles = [axis.get_title(loc='left') for axis in figures[0].axes]
    assert titles == ['recall: noisy keys\nto MSE 0.7', 'a join by key: flights\nto MSE 0.7']


def test_what_is_only_drawn_is_not_planned(tmp_path, monkeypatch):
    shutil.copytree(gallery.RESULTS / 'quickstart', tmp_path / 'quickstart')
    (tmp_path / 'quickstart' / 'figure.png').unlink()
    monkeypatch.setattr(exhibit, 'cells_of', lambda _: pytest.fail('planned'))
    with helpers.flag_values(draw_only=True, workdir=[str(tmp_path)]):
        exhibit.run('quickstart')
    assert (tmp_path / 'quickstart' / 'figure.png').exists()


@pytest.mark.slow
def test_heads_draws_a_figure_for_each_further_setting(tmp_path, no_pdfs):
    config = helpers.config_module('heads').reduced()
    config.transformer.num_heads = 1
    config.num_seeds, config.learning_rate = 1, (1e-3, 3e-3)
    sweeps.run(base.to_sweep(config), tmp_path, small.quiet())
    helpers.config_module('heads').draw(tmp_path, config)
    names = {path.name for path in tmp_path.glob('*.png')}
    assert names == {'heads_learning_rate-0.001.png', 'heads_learning_rate-0.003.png'}


@pytest.mark.parametrize('model', ['transformer', 'rnn', 'ffn'])
def test_the_published_point_is_on_the_grid(model):
    config = helpers.config_module('sensitivity').get_config(model)
    cells = sweeps.cells_of(base.to_sweep(config))
    lanes = [lane for cell in cells for lane in cell.lanes]
    assert {lane.learning_rate for lane in lanes} > {config.published['learning_rate']}
    assert {lane.weight_decay for lane in lanes} > {config.published['weight_decay']}
    widths = {dict(cell.columns)[config.heatmap['panels']] for cell in cells}
    assert config.published[config.heatmap['panels']] in widths
    assert len(widths) == len(cells) == 3


def test_figure1a_is_the_published_setting():
    cells = sweeps.cells_of(base.to_sweep(helpers.config_module('figure1a').get_config()))
    assert len(cells) == 18
    columns = dict(cells[0].columns)
    published = {
        'batch_size': 64, 'check_every': 10, 'threshold': 0.7, 'max_samples': 10**6, 'test_samples': 5000,
        'test_task': 'simple_qstr', 'token_dim': 10, 'encoding_scale': 'unscaled', 'link': 'linear',
    }  # fmt: skip
    assert {name: columns[name] for name in published} == published
    lanes = cells[0].lanes
    assert [(lane.seed, lane.task_seed) for lane in lanes] == [(seed, 0) for seed in range(5)]
    assert {(lane.learning_rate, lane.weight_decay) for lane in lanes} == {(1e-3, 0.01)}


@pytest.mark.parametrize('part', ['wide', 'log_labels', 'wide_labels'])
def test_parts_of_n_star_erm_have_their_task_and_encodings(part):
    tasks = [cell.problem.task for cell in sweeps.cells_of(base.to_sweep(one('n_star_erm').module.get_config(part)))]
    assert {task.name for task in tasks} == {'random_labels' if part.endswith('labels') else 'qstr'}
    dims = [6, 8, 10, 12, 14, 16] if part == 'log_labels' else [75] * 4
    assert [task.encoding_dim for task in tasks] == dims


@pytest.mark.parametrize('model', ['rnn', 'ffn'])
def test_models_without_attention_start_at_two_draws(model):
    config = helpers.config_module('n_star_models_erm').get_config(f'simple_{model}')
    assert {cell.problem.learner.starts for cell in sweeps.cells_of(base.to_sweep(config))} == {('init', 'init:1')}


def test_bad_settings_are_refused_before_anything_runs():
    config = helpers.config_module('heads').reduced()
    config.transformer.num_heads = (1, 0)
    with pytest.raises(ValueError, match='num_heads=0'):
        sweeps.cells_of(base.to_sweep(config))
    config.transformer.num_heads = ()
    with pytest.raises(ValueError, match=r'transformer.num_heads=\(\): give at least one'):
        base.to_sweep(config)


WITH_PARTS = [name for name in NAMES if inspect.signature(exhibit.every()[name].module.get_config).parameters]


@pytest.mark.parametrize('name', WITH_PARTS)
def test_a_part_that_is_none_is_an_error(name):
    with pytest.raises(ValueError, match=r"^part='nothing': unknown[^\n]* one of"):
        helpers.config_module(name).get_config('nothing')


def test_an_exhibit_that_is_gone_names_the_one_that_answers():
    with pytest.raises(ValueError, match=r"^exhibit='larger_n_tuned': is gone; one_label answers"):
        exhibit.find('larger-n-tuned')


def test_floors_belong_to_the_task_of_proposition_3():
    row = {'link': 'norm2', 'indices': 'half', 'tokens': 'half', 'sparsity': 3, 'token_dim': 3}
    row['transformer_num_heads'] = 1
    assert heads.floor_of_row(row) == pytest.approx(4 / 9)
    assert heads.floor_of_row({**row, 'link': 'linear'}) == 0
    assert heads.floor_of_row({**row, 'transformer_num_heads': None}) == 0


@pytest.mark.parametrize(
    ('name', 'config', 'changes', 'words'),
    [
        ('figure2', 'heads', {}, 'save_params=False: the trained parameters are what is drawn'),
        ('figure2', 'heads', {'save_params': True, 'models': ('ffn',)}, 'models=ffn: attention is drawn'),
        ('n_star_erm', 'n_star_models', {}, 'learners=adamw: ERMs in a ball are drawn'),
    ],
)
def test_an_exhibit_refuses_what_it_cannot_draw(name, config, changes, words):
    config = helpers.config_module(config).get_config()
    config.update(changes)
    with pytest.raises(ValueError, match=words):
        helpers.config_module(name).check(config, base.to_sweep(config))


def test_names_from_the_command_line_are_split():
    config = helpers.config_module('figure2').get_config()
    config.transformer.attention = 'separate,merged'
    config.sparsity = 1
    cells = sweeps.cells_of(base.to_sweep(config))
    assert [cell.problem.module.attention for cell in cells] == ['separate', 'merged']


def test_a_dry_run_lists_all_points():
    sweep = base.to_sweep(helpers.config_module('heads').get_config())
    text = small.listed(sweep)
    assert '6 cells, 30 lanes' in text


def test_values_of_a_card_that_are_no_python_are_text():
    assert exhibit._setting('seq_lens={[1]:2}') == ('seq_lens', '{[1]:2}')
    assert exhibit._setting('seq_lens=16,64') == ('seq_lens', (16, 64))


def test_an_exhibit_needs_a_directory_of_this_machine(monkeypatch):
    monkeypatch.setattr(exhibit.runtime, 'workdir', lambda default: 'gs://bucket/x')
    with helpers.flag_values(), pytest.raises(ValueError, match=r'^--workdir=gs://bucket/x: exhibits are drawn into'):
        exhibit.run('quickstart')
