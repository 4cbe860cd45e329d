"""The report: from result directories alone, in any state; self-contained; tables and figures as in the rows."""

import html.parser
import pathlib
import re
import shutil
import subprocess

import pandas as pd
import pytest

from qstr_jax import plots, report, studies
from qstr_jax.report import content, exhibits, fragments, page
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
        self.text += data


COMMITTED = ROOT / 'experiments/results/figure1a_task_per_lane'


def make(workdir, models=('transformer', 'ffn'), seq_lens=(2, 4, 6), settings=(), **changes):
    """A results directory made of some committed cells, two lanes each, with some columns changed."""
    results.open_workdir(workdir)
    axes = {'models': list(models), 'seq_lens': list(seq_lens), 'num_seeds': 2}
    files.write_json(workdir / 'config.json', {**files.read_json(COMMITTED / 'config.json'), **axes, **dict(settings)})
    for path in (COMMITTED / 'provenance').glob('*.json'):
        shutil.copy(path, workdir / 'provenance')
    for kind in 'rows', 'curves':
        for path in (COMMITTED / kind).glob('*.parquet'):
            frame = files.read_table(path)
            first = frame.iloc[0]
            if first['model'] in models and first['seq_len'] in seq_lens:
                kept = {name: value for name, value in changes.items() if name in frame.columns}
                files.write_table(workdir / kind / path.name, frame[frame['seed'] < 2].assign(**kept))
    return workdir


@pytest.fixture(scope='module')
def sweep(tmp_path_factory):
    """A finished little sweep."""
    return make(tmp_path_factory.mktemp('results') / 'sweep')


def read(workdirs, output):
    text = report.write([str(path) for path in workdirs], output).read_text()
    return Reader(text)


def test_the_page_is_whole_and_loads_nothing(sweep, tmp_path):
    found = read([sweep], tmp_path / 'out')
    assert found.stack == []
    assert found.loads
    assert all(value.startswith(('data:image/png;base64,', '#')) for _, value in found.loads)
    text = (tmp_path / 'out/report.html').read_text()
    assert "default-src 'none'" in text
    assert '<script' not in text
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
    assert '4 of the lanes that the settings span are missing: FFN N = 4, 6 (all 2 lanes each)' in found.text
    assert 'Cell ffn-qstr-N4 failed: ValueError: out of luck' in found.text
    assert 'only 1 N, 3 needed' in found.text


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
        shutil.copy(COMMITTED / 'config.json', empty)
    found = read([empty], tmp_path / 'out')
    assert ('No lane has finished yet' if with_settings else 'Nothing to report') in found.text
    assert 'no rows' in found.text


def test_all_lanes_censored_and_fewer_than_three_lengths(tmp_path):
    censored = {'outcome': 'censored', 'samples_to_threshold': pd.NA, 'max_samples': 160}
    make(tmp_path / 'all' / 'censored', **censored)
    make(tmp_path / 'all' / 'short', seq_lens=(2, 4))
    make(tmp_path / 'all' / 'one', seq_lens=(2,))
    found = read([tmp_path / 'all'], tmp_path / 'out')
    assert 'No lane reached the threshold within its budget' in found.text
    assert 'Test loss at the end' in found.text
    assert 'only 2 N, 3 needed' in found.text
    assert 'Only one N: an exponent needs three.' in found.text


def test_studies_are_shown_with_their_points(sweep, tmp_path):
    study = tmp_path / 'study'
    for width in 8, 16:
        make(study / f'mlp_width={width}', models=('transformer',), settings={'mlp_width': width})
    figure = plots.loss_by_setting(studies.load_curves(study), 'mlp_width')
    plots.save(figure, study / 'heads')
    files.write_text(study / 'table.md', '| H | loss |\n| - | - |\n| 1 | 0.5 |\n')
    found = content.sections(study)
    assert [section.depth for section in found] == [0, 1, 1]
    assert len(found[0].pictures) == 1
    assert list(found[0].tables[0][1]['loss']) == ['0.5']
    assert set(studies.load_curves(study)['mlp_width']) == {8, 16}
    assert set(studies.seconds(study)['folder']) == {'mlp_width=8', 'mlp_width=16'}


@pytest.mark.parametrize(('is_search', 'word'), [(True, 'n*'), (False, 'Test loss against n')])
def test_fixed_samples_have_their_own_tables_and_figures(is_search, word):
    rows = results.load(COMMITTED).query('seq_len == 4').assign(
        learner='adamw', is_search=is_search, budget=0.0, validation_loss=0.5, validation_samples_to_threshold=100
    )  # fmt: skip
    section = content.Section('fits')
    exhibits.add(section, rows, pd.DataFrame())
    assert section.tables[0][0].startswith(word)
    assert len(section.figures) == (0 if is_search else 1)  # one N makes no figure of n*


def test_latex_fragments_are_complete(sweep, tmp_path):
    report.write([sweep], tmp_path)
    names = {path.name for path in (tmp_path / 'latex').iterdir()}
    assert 'table1.tex' in names
    (fragment,) = names - {'table1.tex'} - {name for name in names if name.endswith('.pdf')}
    text = (tmp_path / 'latex' / fragment).read_text()
    assert text.count(r'\begin') == text.count(r'\end')
    for picture in re.findall(r'\\includegraphics\[.*?\]\{(.*?)\}', text):
        assert picture in names
    assert not re.search(r'(?<!\\)[_#%]', re.sub(r'\\(label|includegraphics\[.*?\])\{.*?\}', '', text))
    assert fragments.slug('a/b_c d') == 'a-b-c-d'


def test_commands_are_as_one_types_them():
    assert page.command(['/x/experiments/heads.py', '--workdir=a']) == 'python -m experiments.heads --workdir=a'
    assert page.command([]) == '(called from Python)'


def test_the_command_takes_lists_and_globs_and_refuses_in_one_line(sweep, tmp_path):
    output = f'--output={tmp_path / "out"}'
    done = harness.run_binary('report', output, f'--workdir={sweep},{sweep.parent}/swee*')
    assert done.returncode == 0, done.stderr
    text = (tmp_path / 'out/report.html').read_text()
    assert text.count('12 lanes in 6 cells') == 1
    for arguments in ([], ['--workdir=nowhere']):
        helpers.assert_one_error(harness.run_binary('report', output, *arguments))


@pytest.mark.skipif(shutil.which('chromium') is None, reason='needs a browser: apt-get install chromium')
def test_a_headless_browser_opens_it_without_errors(sweep, tmp_path):
    path = report.write([sweep], tmp_path)
    call = [
        'chromium',
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--enable-logging=stderr',
        '--dump-dom',
        f'file://{path}',
    ]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert 'exponent of N' in done.stdout
    assert 'CONSOLE' not in done.stderr
