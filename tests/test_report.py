"""The report: from result directories alone, in any state; self-contained; tables and figures as in the rows."""

import html
import html.parser
import itertools
import os
import pathlib
import re
import shutil

import markupsafe
import numpy as np
import pandas as pd
import pytest

from qstr_jax import columns, plots, report
from qstr_jax.report import content, directory, explorer, fragments, headline, missing, page, pictures, section
from qstr_jax.report import lanes as lane_reader
from qstr_jax.storage import files, results
from tests import harness, helpers

ROOT = pathlib.Path(__file__).parents[1]


class Reader(html.parser.HTMLParser):
    """Collects what a page would load, its open tags and its text."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.stack, self.text = [], [], ''
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.loads += [(tag, value) for name, value in attrs if name in ('src', 'href', 'srcset', 'data', 'action')]
        if tag not in ('meta', 'img', 'br', 'link', 'input'):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.text += '' if 'script' in self.stack else data


PNG = b'\x89PNG'
SCRIPTS = ['<script type="application/octet-stream" id="data">', '<script>', '<script>']  # Lanes, Vega-Lite, ours.

RUN = {
    'started': '2026-01-01T00:00:00', 'device': 'cpu', 'git_commit': 'abc', 'python': '3.12',
    'packages': {'jax': '0.9'},
    'command': ['/x/experiments/sample_complexity.py', '--workdir=a'],
    'batches': [{'cell': 'a', 'lanes': ['seed0', 'seed1'], 'wall_seconds': 1.0, 'compile_seconds': 2.0}],
}  # fmt: skip


def lanes(model, seq_len, num_seeds=2, **changes):
    """Rows of one cell of online training."""
    rows = [
        {'task': 'qstr', 'test_task': 'simple_qstr', 'seq_len': seq_len, 'sparsity': 1, 'token_dim': 10,
         'link': 'linear',
         'model': model, f'{model}_width': 10 * seq_len, 'learner': 'online', 'optimizer': 'adamw', 'threshold': 0.7,
         'max_samples': 10**6, 'risk': 'averaged', 'seed': seed, 'task_seed': seed, 'learning_rate': 1e-3,
         'weight_decay': 0.01, 'outcome': 'reached', 'num_samples': 640 * seq_len + 64 * seed, 'test_loss': 0.69,
         'train_loss': 0.7, 'test_loss_se': 0.0}
        for seed in range(num_seeds)
    ]  # fmt: skip
    frame = pd.DataFrame(rows).assign(samples_to_threshold=lambda table: table['num_samples'])
    return frame.assign(**changes).astype({'samples_to_threshold': 'Int64'})


def add(workdir, cell, rows):
    """Writes the rows and the curves of a cell."""
    for name in rows.columns:
        if name.startswith(f'{rows["model"].iloc[0]}_'):
            columns.declare(name, 'model')
    lane = rows[columns.with_role(rows.columns, 'lane')]
    checks = [lane.assign(samples=320 * k, test_loss=1 / k, train_loss=1 / k) for k in (1, 2, 3)]
    files.write_table(workdir / 'rows' / f'{cell}.parquet', rows)
    files.write_table(workdir / 'curves' / f'{cell}.parquet', pd.concat(checks, ignore_index=True))


def make(workdir, models=('transformer', 'ffn'), seq_lens=(2, 4, 6), **changes):
    """A results directory of online training, two lanes in each cell, with some columns changed."""
    results.open_workdir(workdir)
    files.write_json(
        workdir / 'config.json', {'format': 2, 'sweeps': [{'models': list(models), 'settings': {'link': [3]}}]}
    )
    files.write_json(workdir / 'provenance' / 'run.json', RUN)
    plan = {}
    for model in models:
        for seq_len in seq_lens:
            cell = f'{model}-qstr-N{seq_len}'
            add(workdir, cell, lanes(model, seq_len, **changes))
            plan[cell] = {'columns': {'model': model, 'task': 'qstr', 'seq_len': seq_len}, 'lanes': ['seed0', 'seed1']}
    files.write_json(workdir / 'plan.json', plan)
    return workdir


@pytest.fixture(scope='module')
def sweep(tmp_path_factory):
    """A finished little sweep."""
    return make(tmp_path_factory.mktemp('results') / 'sweep')


def read(workdirs, output):
    text = report.write([str(path) for path in workdirs], output).read_text()
    return Reader(text)


@pytest.mark.slow
def test_the_page_is_whole_and_loads_nothing(sweep, tmp_path):
    found = read([sweep], tmp_path / 'out')
    assert found.stack == []
    assert found.loads
    assert all(value.startswith(('data:image/png;base64,', '#')) for _, value in found.loads)
    text = (tmp_path / 'out/report.html').read_text()
    assert "default-src 'none'" in text
    assert "script-src 'sha256-" in text
    assert 'unsafe-eval' not in text
    assert re.findall('<script.*?>', text) == SCRIPTS
    for words in ('12 lanes in 6 cells of Transformer, FFN', 'exponent of N', 'Table 1, measured', 'Settings', 'jax '):
        assert words in found.text
    assert 'missing' not in found.text


def test_numbers_are_those_of_the_rows(sweep, tmp_path):
    rows = results.load(sweep)
    (section,) = content.sections(sweep)
    caption, frame = section.tables[0]
    assert caption == 'Samples to threshold'
    cell = frame.loc[frame['model'] == 'FFN', 'N = 4'].item()
    chosen = rows[(rows['model'] == 'ffn') & (rows['seq_len'] == 4)]
    mean = chosen['samples_to_threshold'].astype(float).mean()
    number, unit = re.match(r'([\d.]+)(k?)', cell).groups()
    assert float(number) * (1000 if unit else 1) == pytest.approx(mean, rel=0.01)


def test_half_finished_directories_say_what_is_missing(sweep, tmp_path):
    half = tmp_path / 'half'
    shutil.copytree(sweep, half)
    for kind in 'rows', 'curves':
        for path in (half / kind).glob('ffn-qstr-N[46]*'):
            path.unlink()
    files.write_json(half / 'errors' / 'ffn.json', {'cell': 'ffn-qstr-N4', 'error': 'ValueError: out of luck'})
    found = read([half], tmp_path / 'out')
    assert '4 of the planned lanes are missing: FFN N = 4, 6 (all 2 lanes each)' in found.text
    assert 'Cell ffn-qstr-N4 failed: ValueError: out of luck' in found.text
    assert 'without N = 2: no retrieval needed' in found.text


def test_what_was_never_run_is_no_damage(sweep, tmp_path):
    half = tmp_path / 'half'
    shutil.copytree(sweep, half)
    for path in (half / 'rows').glob('ffn-qstr-N[46]*'):
        path.unlink()
    sections = [content.sweep_section(half)]
    said = [*sections[0].words, *headline.headline(sections, content.measured(sections)).words]
    words = ' '.join(text for text, _ in said)
    assert not any(is_problem for _, is_problem in said)
    assert f'Not all planned lanes have been run in: {half}.' in words
    assert 'Curves without rows: ' in words
    assert 'amaged' not in words


def test_one_is_no_plural(tmp_path):
    make(tmp_path / 'one', models=('ffn',), seq_lens=(2,))
    text = read([tmp_path / 'one'], tmp_path / 'out').text
    assert '2 lanes of FFN in 1 directory: ' in text
    assert '2 lanes in 1 cell of FFN' in text
    assert 'Provenance: 1 run' in text
    assert 'Provenance: 1 runs' not in text
    assert section.counted(1200, 'directory', 'directories') == '1,200 directories'


def test_each_directory_has_a_picture_before_any_has_two_and_the_others_are_links(sweep, tmp_path):
    png = plots.save(plots.samples_against(results.load(sweep)), tmp_path / 'figure')[1].read_bytes()
    for folder, name in itertools.product(('first', 'second'), ('a', 'b')):
        (tmp_path / 'all' / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / 'all' / folder / f'{name} b.png').write_bytes(png)
    sections = content.sections(tmp_path / 'all')
    ((most, *_), *_) = page._shown(sections, 10**9, tmp_path).values()
    room = 2 * len(most.data) + 4 * 300
    shown = list(page._shown(sections, room, tmp_path / 'out').values())
    assert [[bool(one.data) for one in own] for own in shown] == [[True, False], [True, False]]
    assert shown[1][1].address == '../all/second/b%20b.png'
    assert page._shown(sections, room, None)[id(sections[0])][0].address == ''


def test_links_have_room_on_the_page(sweep, tmp_path, monkeypatch):
    png = plots.save(plots.samples_against(results.load(sweep)), tmp_path / 'figure')[1].read_bytes()
    (tmp_path / 'all').mkdir()
    for number in range(100):
        (tmp_path / 'all' / f'{number}{100 * "x"}.png').write_bytes(png)
    (found,) = content.sections(tmp_path / 'all')
    monkeypatch.setattr(page, 'MOST_BYTES', 100_000)
    text = page.html_of(section.Section(name='Table 1'), [found], home=tmp_path)
    assert 0 < text.count('not here, since') < 100
    assert len(text.encode()) <= 100_000
    assert 'href="all/' in text


def test_a_damaged_file_is_named_and_the_rest_is_shown(sweep, tmp_path):
    hurt = tmp_path / 'hurt'
    shutil.copytree(sweep, hurt)
    victim = sorted((hurt / 'rows').glob('*'))[0]
    victim.write_bytes(victim.read_bytes()[:100])
    found = read([hurt], tmp_path / 'out')
    assert 'Damaged file' in found.text
    assert victim.name in found.text
    assert 'Samples to threshold' in found.text


@pytest.mark.parametrize('with_settings', [False, True])
def test_an_empty_directory_is_said_in_words(with_settings, tmp_path):
    empty = tmp_path / 'empty'
    empty.mkdir()
    if with_settings:
        results.open_workdir(empty)
        files.write_json(empty / 'config.json', {'format': 2, 'sweeps': []})
    found = read([empty], tmp_path / 'out')
    assert ('No lane has finished yet' if with_settings else 'Nothing to report') in found.text
    assert 'not measured' in found.text


def test_a_folder_without_results_is_no_unfinished_run(tmp_path):
    (tmp_path / 'docs').mkdir()
    (tmp_path / 'docs/index.md').write_text('# Words')
    done = harness.run_binary('report', '--workdir=docs', '--output=out', folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, 'docs: there are no results in it')
    text = Reader((tmp_path / 'out/report.html').read_text()).text
    assert 'There are no results here' in text
    assert 'No lane has finished' not in text


def test_all_lanes_censored_and_fewer_than_three_lengths(tmp_path):
    censored = {'outcome': 'censored', 'samples_to_threshold': pd.NA, 'num_samples': 160, 'max_samples': 160}
    make(tmp_path / 'all' / 'censored', **censored)
    make(tmp_path / 'all' / 'short', seq_lens=(2, 4))
    make(tmp_path / 'all' / 'one', seq_lens=(2,))
    found = read([tmp_path / 'all'], tmp_path / 'out')
    assert 'No lane reached the threshold within its budget' in found.text
    assert 'Test loss at the end' in found.text
    assert 'only 1 N, 3 needed' in found.text
    assert 'Only one N: an exponent needs three.' in found.text


def test_a_directory_of_another_format_is_said_in_words(sweep, tmp_path):
    old = tmp_path / 'all' / 'old'
    shutil.copytree(sweep, old)
    files.write_json(old / 'config.json', {'models': ['ffn']})
    found = read([tmp_path / 'all'], tmp_path / 'out')
    assert 'Damaged file' in found.text
    assert 'has no format, this version reads 2' in found.text


@pytest.mark.slow
def test_a_damaged_plan_is_said_in_words(sweep, tmp_path):
    hurt = tmp_path / 'hurt'
    shutil.copytree(sweep, hurt)
    (hurt / 'plan.json').write_text('{"a": ')
    assert 'plan.json is damaged' in read([hurt], tmp_path / 'out').text
    for odd in 3, {'lanes': 'x'}, {'columns': 7, 'lanes': ['seed0']}, {'columns': {}, 'lanes': [1]}:
        files.write_json(hurt / 'plan.json', {'a': odd})
        (found,) = content.sections(hurt)
        assert any('plan.json is damaged (a' in text for text, is_problem in found.words if is_problem)
    files.write_json(hurt / 'plan.json', {'c': {'columns': {'seq_len': 'x'}, 'lanes': ['seed0']}})
    assert '1 of the planned cells is missing: c.' in read([hurt], tmp_path / 'out').text


def test_missing_lanes_are_told_by_what_tells_curves_apart():
    plan = {
        f'{width}-{length}': {
            'columns': {'model': 'rnn', 'rnn_width': width, 'seq_len': length, 'task': 'qstr'},
            'lanes': [f'seed{seed}' for seed in range(5)],
        }
        for width in (250, 500) for length in (2, 4, 8)
    }  # fmt: skip
    rows = pd.DataFrame({'cell': ['250-2'] * 5 + ['250-4'] * 2 + ['250-8'] * 2 + ['500-2', '500-4'] * 5})
    assert missing.words(plan, rows) == [
        '11 of the planned lanes are missing: RNN, width 250 N = 4, 8 (3 of 5 lanes each); '
        'RNN, width 500 N = 8 (all 5 lanes).'
    ]
    assert missing.words(plan, pd.DataFrame({'cell': [cell for cell in plan for _ in range(5)]})) == []
    assert missing.words({}, rows) == []


def test_names_that_are_no_utf_8_are_left_out_and_named(sweep, tmp_path):
    """Of folders, pictures, texts and tables; the rest is reported as ever, in LaTeX too."""
    folder, odd = tmp_path / 'all', os.fsdecode(b'x\xff')
    shutil.copytree(sweep, folder / odd)
    shutil.copytree(sweep, folder / 'sweep')
    for name in f'{odd}.png', f'{odd}.md', f'sweep/{odd}.png', f'sweep/rows/{odd}.parquet':
        (folder / name).write_bytes(b'')
    path = report.write([str(folder)], tmp_path / 'out', latex=True)
    text = path.read_text(encoding='utf-8')
    for name in r"x\udcff'", r"x\udcff.png'", r"x\udcff.md'", r"sweep/x\udcff.png'", r"rows/x\udcff.parquet'":
        assert f'{markupsafe.escape(name)}, whose name is no UTF-8' in text
    assert len(content.sections(folder)[-1].rows) == len(results.load(sweep))


def test_pictures_and_texts_beside_results_are_shown_as_they_are(sweep, tmp_path):
    folder = tmp_path / 'study'
    shutil.copytree(sweep, folder / 'sweep')
    plots.save(plots.samples_against(results.load(sweep)), folder / 'heads')
    files.write_text(folder / 'table.md', '| H | <b>loss</b> |\n| - | - |\n| 1 | 0.5 |\n')
    loose, own = content.sections(folder)
    assert own.name == str(folder / 'sweep')
    assert len(loose.pictures) == 1
    assert '<pre>| H | &lt;b&gt;loss&lt;/b&gt; |' in page.html_of(own, [loose])


def test_any_settings_become_curves_and_heat_maps(tmp_path):
    workdir = make(tmp_path / 'widths', models=('convolution',), seq_lens=(4,))
    for cell in list((workdir / 'rows').glob('*')) + list((workdir / 'curves').glob('*')):
        cell.unlink()
    for kernel in (3, 5):
        for rate in (1e-3, 1e-2):
            rows = lanes('convolution', 4, convolution_kernel=kernel, learning_rate=rate)
            add(workdir, f'convolution-{kernel}-{rate:g}', rows)
    found = content.sweep_section(workdir)
    captions = [caption for caption, _ in found.figures]
    assert captions[0] == 'Samples to threshold, convolution'  # A heat map.
    assert list(found.tables[0][1].columns[:3]) == ['model', 'convolution kernel', 'learning rate']
    for path in (workdir / 'rows').glob('*-0.01*'):
        path.unlink()
    table = content.sweep_section(workdir).tables[0][1]
    assert list(table.columns) == [
        'model', 'convolution kernel = 3', 'convolution kernel = 5', 'exponent of convolution kernel',
    ]  # fmt: skip


@pytest.mark.parametrize(('is_search', 'word'), [(True, 'n*'), (False, 'Test loss against n')])
def test_fixed_samples_have_their_own_tables_and_figures(is_search, word):
    sizes = (0,) if is_search else (10, 20)
    rows = pd.concat([
        lanes(model, 4, learner='adamw', is_search=is_search, sample_size=size, num_samples=size or 30,
              outcome='reached' if is_search else 'fitted', validation_loss=0.5, validation_samples_to_threshold=100)
        for model in ('transformer', 'ffn') for size in sizes
    ])  # fmt: skip
    found = section.Section(name='fits')
    directory.add(found, rows, pd.DataFrame())
    assert found.tables[0][0].startswith(word)
    assert len(found.tables) == 1
    assert len(found.figures) == (0 if is_search else 1)  # One N makes no figure of n*.


def test_a_directory_with_several_learners_shows_all(tmp_path):
    workdir = make(tmp_path / 'mixed', models=('ffn',))
    for size in (10, 20):
        rows = lanes('ffn', 4, learner='adamw', is_search=False, outcome='fitted', validation_loss=0.5,
                     sample_size=size, num_samples=size, samples_to_threshold=pd.NA)  # fmt: skip
        add(workdir, f'ffn-fits-{size}', rows)
    captions = [caption for caption, _ in content.sweep_section(workdir).tables]
    assert captions == ['Samples to threshold', 'Test loss against n, mean over lanes']


def test_hostile_names_are_escaped(sweep, tmp_path):
    hurt = tmp_path / 'a<script>alert(1)</script>'
    shutil.copytree(sweep, hurt)
    files.write_json(hurt / 'errors' / 'x.json', {'cell': 'x', 'error': '<script>'})
    files.write_json(hurt / 'errors' / 'y.json', {'cell': '<img src=x>', 'error': ''})
    files.write_json(hurt / 'config.json', {'format': 2, 'sweeps': [{'<i>': '<script>'}]})
    found = read([hurt], tmp_path / 'out')
    text = (tmp_path / 'out/report.html').read_text()
    assert re.findall('<script.*?>', text) == SCRIPTS
    assert '<i>' not in re.sub('<script.*?</script>', '', text, flags=re.DOTALL)
    assert 'Cell x failed: <script>' in found.text
    assert "y.json is damaged (cell: '<img src=x>' must match" in found.text


def test_latex_fragments_are_complete(sweep, tmp_path):
    report.write([sweep], tmp_path, latex=True)
    names = {path.name for path in (tmp_path / 'latex').iterdir()}
    assert 'table1.tex' in names
    (fragment,) = names - {'table1.tex'} - {name for name in names if name.endswith('.pdf')}
    text = (tmp_path / 'latex' / fragment).read_text()
    assert text.count(r'\begin') == text.count(r'\end')
    for picture in re.findall(r'\\includegraphics\[.*?\]\{(.*?)\}', text):
        assert picture in names
    assert not re.search(r'(?<!\\)[_#%]', re.sub(r'\\(label|includegraphics\[.*?\])\{.*?\}', '', text))
    assert fragments.slug('a/b_c d') == 'a-b-c-d'


def test_the_headline_says_who_needs_how_many_and_what_is_missing(sweep, tmp_path):
    other = make(tmp_path / 'rnn', models=(), seq_lens=(2, 4))
    for seq_len in (2, 4):
        add(other, f'ffn-{seq_len}', lanes('ffn', seq_len, num_seeds=3))
        add(other, f'rnn-{seq_len}', lanes('rnn', seq_len, num_seeds=3, num_samples=64, samples_to_threshold=64))
    sections = [content.sweep_section(path) for path in (sweep, other)]
    found = headline.headline(sections, content.measured(sections))
    words = ' '.join(text for text, _ in found.words)
    assert '24 lanes of Transformer, RNN, FFN in 2 directories: 24 reached' in words
    # Fewer than three lanes, as of the first one, are not shown.
    assert 'Of 1 directory with several architectures, fewest samples: RNN in 1' in words
    caption, table = found.tables[0]
    assert caption.startswith('Geometric mean of the samples')
    (line,) = table.to_dict('records')
    assert line == {'directory': str(other), 'at': 'N = 4', 'threshold': '0.7', 'RNN': '64', 'FFN': '2.62k (41×)'}
    empty = headline.headline([section.Section(name='x')], content.measured([]))
    assert empty.words[-1].is_problem


def test_pictures_are_smaller_and_what_is_none_stays(sweep, tmp_path):
    ours = plots.save(plots.samples_against(results.load(sweep)), tmp_path / 'figure')[1].read_bytes()
    assert ours.startswith(PNG)
    assert pictures.small(ours).startswith(PNG)
    assert len(pictures.small(ours)) < len(ours) / 2
    for odd in b'', b'no picture', ours[:200]:
        assert pictures.small(odd) == odd


def test_commands_are_as_one_types_them():
    assert page.command(['/x/experiments/heads.py', '--workdir=a']) == 'python -m experiments.heads --workdir=a'
    assert page.command(['experiments.sample_complexity', '--workdir=a']) == (
        'python -m experiments.sample_complexity --workdir=a'
    )
    assert page.command(['qstr_jax/__main__.py', '--workdir=a']) == 'python -m qstr_jax --workdir=a'
    assert page.command(['qstr_jax/__main__.py compare', '--suite=long']) == 'python -m qstr_jax compare --suite=long'
    assert page.command([]) == '(called from Python)'


@pytest.mark.slow
def test_the_command_takes_lists_and_globs_and_refuses_in_one_line(sweep, tmp_path):
    output = f'--output={tmp_path / "out"}'
    done = harness.run_binary('report', output, f'--workdir={sweep},{sweep.parent}/swee*')
    assert done.returncode == 0, done.stderr
    text = (tmp_path / 'out/report.html').read_text()
    assert text.count('12 lanes in 6 cells') == 1
    assert not (tmp_path / 'out/latex').exists()
    for arguments in ([], ['--workdir=nowhere']):
        helpers.assert_one_error(harness.run_binary('report', output, *arguments))


# What lies in a directory is data


def test_links_and_folders_among_pictures_and_tables_are_named_and_not_shown(sweep, tmp_path):
    (tmp_path / 'private').write_text('a secret')
    hurt = tmp_path / 'all' / 'hurt'
    shutil.copytree(sweep, hurt)
    for folder in hurt, hurt.parent:
        (folder / 'x.png').symlink_to(tmp_path / 'private')
        (folder / 'y.png').mkdir()
        (folder / 'z.md').symlink_to(tmp_path / 'private')
    sections = content.sections(hurt.parent)
    assert [picture for section in sections for picture in section.pictures + section.texts] == []
    words = ' '.join(text for section in sections for text, is_problem in section.words if is_problem)
    assert words.count('x.png is a symbolic link') == words.count('y.png is no file') == 2


def test_a_bad_config_in_a_sub_folder_does_not_take_the_rest(sweep, tmp_path):
    shutil.copytree(sweep, tmp_path / 'all' / 'good')
    for name, text in ('cut', '{"format"'), ('null', '{"format": 2, "sweeps": null}'), ('number', '3'):
        shutil.copytree(sweep, tmp_path / 'all' / name)
        (tmp_path / 'all' / name / 'config.json').write_text(text)
    with pytest.warns(UserWarning, match='left out') as warned:
        assert len(results.load_all([tmp_path / 'all'])) == len(results.load(sweep))
    assert len(warned) == 3
    sections = content.sections(tmp_path / 'all')
    assert [len(section.tables) > 0 for section in sections] == [False, True, False, False]
    words = ' '.join(text for section in sections for text, _ in section.words)
    assert words.count('config.json') == 3
    assert 'No lane has finished' not in words
    assert 'are missing' not in words


def test_directories_whose_names_differ_in_a_dash_have_fragments_of_their_own(sweep, tmp_path):
    for name in 'a_b', 'a-b', 'c':
        shutil.copytree(sweep, tmp_path / name)
    sections = [content.sweep_section(tmp_path / name) for name in ('a_b', 'a-b', 'c')]
    for found in sections:
        found.figures.clear()
    names = fragments.write(section.Section(name='Table 1'), sections, tmp_path / 'latex')
    assert len(set(names)) == 4
    assert names[-1] == f'{fragments.slug(str(tmp_path / "c"))}.tex'
    for name, found in zip(names[1:], sections, strict=True):
        assert found.name.replace('_', r'\_') in (tmp_path / 'latex' / name).read_text()


def test_a_figure_of_too_many_panels_is_left_out_and_said():
    found = section.Section(name='many')
    rows = pd.concat([lanes('ffn', n, token_dim=d) for n in (2, 4) for d in range(2, 15)], ignore_index=True)
    directory.add(found, rows, pd.DataFrame())
    assert found.figures == []
    assert any('a figure would have 13 panels' in paragraph.text for paragraph in found.words)
    assert len(found.tables[0][1]) == 13


def test_every_rate_has_its_table_and_that_figures_are_few_is_said():
    found = section.Section(name='rates')
    rows = pd.concat([lanes('ffn', n, learning_rate=rate) for n in (2, 4) for rate in 10.0 ** -np.arange(1, 9)])
    directory.add(found, rows.reset_index(drop=True), pd.DataFrame())
    assert len(found.tables) == 8
    assert len(found.figures) == 6
    assert any('the first 6 of 8 tables' in paragraph.text for paragraph in found.words)


def test_two_draws_of_the_task_are_lanes_and_what_cannot_be_shown_takes_nothing_else(sweep, tmp_path):
    both = [lanes('ffn', n).assign(task_seed=draw) for n in (2, 4, 6) for draw in (0, 1)]
    found = section.Section(name='draws')
    directory.add(found, pd.concat(both, ignore_index=True), pd.DataFrame())
    assert len(found.tables[0][1]) == 1
    shutil.copytree(sweep, tmp_path / 'all/good')
    odd = make(tmp_path / 'all/odd', models=('ffn',))
    add(odd, 'ffn-again', lanes('ffn', 2, train_loss=0.6))
    sections = content.sections(tmp_path / 'all')
    assert [any(is_problem for _, is_problem in one.words) for one in sections] == [False, True]
    assert [len(one.tables) > 0 for one in sections] == [True, False]


def test_a_directory_that_is_named_twice_counts_once(sweep, tmp_path):
    once, twice = (report.write(paths, tmp_path / str(len(paths))).read_text() for paths in ([sweep], [sweep, sweep]))
    assert once == twice


def test_curves_of_one_architecture_stand_side_by_side():
    measured = pd.concat([
        lanes('ffn', n, num_seeds=4, samples_to_threshold=100 * n**power, ffn_width=width)
        for n in (4, 8, 16, 32) for power, width in ((1, 7), (2, 9))
    ])  # fmt: skip
    columns.declare('ffn_width', 'model')
    growth = headline._growth(content.table1.measure(measured.reset_index(drop=True)))
    assert growth['FFN'].tolist() == ['1.00 [1.00, 1.00]; 2.00 [2.00, 2.00]']


def test_earlier_thresholds_have_their_crossings_too(tmp_path):
    workdir = make(tmp_path / 'sweep', models=('ffn',), crossings='0.9:640 0.7:960', threshold=0.7,
                   check_every=5, batch_size=64, num_samples=960, samples_to_threshold=960)  # fmt: skip
    found = content.sweep_section(workdir)
    [shown] = explorer.exhibits([found])
    rows = pd.DataFrame({name: shown['rows'][name] for name in ('threshold', 'samples')})
    expected = lane_reader.at_thresholds(workdir).groupby('threshold')['crossing'].mean()[0.9]
    assert rows['samples'][rows['threshold'] == 0.9].mean() == pytest.approx(expected, rel=1e-3)
    assert expected < 640
