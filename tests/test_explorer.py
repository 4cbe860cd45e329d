"""The report's explorer: its data are those of the rows, and a browser shows, filters, sorts and copies them."""

import base64
import gzip
import itertools
import json
import re
import shutil

import pandas as pd
import pytest

from qstr_jax import analysis, sweeps
from qstr_jax.report import commands, content, explorer, headline, scripts
from qstr_jax.report import page as html
from qstr_jax.report.section import Section
from qstr_jax.storage import results
from tests import helpers, test_report

pytestmark = pytest.mark.slow

HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(1)>'
SWEEP = sweeps.Sweep(
    models=('transformer', 'ffn'), seq_lens=(2, 4, 6), num_seeds=2, task_per_lane=True, preset='published'
)
CENSORED = {'outcome': 'censored', 'samples_to_threshold': pd.NA, 'num_samples': 10**6}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Results of a sweep that our own config describes; of several thresholds and bounds; of a hostile link."""
    folder = tmp_path_factory.mktemp('explorer')
    test_report.make(folder / 'sweep')
    (folder / 'sweep/config.json').unlink()
    results.add_sweep(folder / 'sweep', SWEEP.as_json())
    test_report.make(folder / 'longer', models=('ffn', 'transformer'), seq_lens=(4, 6, 8))
    test_report.make(folder / 'crossed', models=('ffn',), crossings='0.9:640 0.8: 0.7:', **CENSORED)
    test_report.make(folder / 'hostile', models=('rnn',), link=HOSTILE)
    test_report.add(folder / 'hostile', 'rnn-linear', test_report.lanes('rnn', 4))
    test_report.make(folder / 'my rows', models=('ffn',))
    for widths in '32', '32,32':
        test_report.add(folder / 'my rows', f'ffn-{widths}', test_report.lanes('ffn', 4, ffn_widths=widths))
    test_report.make(folder / 'chosen', models=('ffn',), seq_lens=())
    for seq_len, rate in itertools.product((4, 6, 8), (0.1, 0.2)):
        rows = test_report.lanes('ffn', seq_len, learner='constrained', learning_rate=rate, validation_loss=rate)
        test_report.add(folder / 'chosen', f'ffn-{seq_len}-{rate}', rows)
    fits = {'learner': 'adamw', 'outcome': 'fitted', 'samples_to_threshold': pd.NA}
    test_report.make(folder / 'fits', models=('ffn',), seq_lens=())
    for size in 1000, 2000:
        rows = test_report.lanes('ffn', 4, sample_size=size, **{**fits, 'num_samples': size})
        test_report.add(folder / 'fits', f'ffn-{size}', rows)
    test_report.make(folder / 'both', models=('ffn',), test_loss=2.899e-06)
    for size in 1000, 2000:
        rows = test_report.lanes('ffn', 4, sample_size=size, **{**fits, 'num_samples': size})
        test_report.add(folder / 'both', f'fits-{size}', rows)
    return folder


def sections_of(folder):
    return {section.name.rpartition('/')[2]: section for section in content.sections(folder)}


def test_ns_of_erms_are_bounds_and_erring_ones_are_named_as_such():
    """As in the exhibits, of committed rows: of some lanes n* of ERMs is at most that of the search."""
    root = helpers.ROOT / 'experiments/results'
    found, erring = (explorer.exhibits(content.sections(root / name)) for name in ('n_star_erm_simple', 'worst_erm'))
    rows = results.load(root / 'n_star_erm_simple')
    assert found[0]['rows']['bound'].count(-1) == rows['miss_is_erm'].eq(False).sum() > 0
    unfitted = pd.DataFrame(explorer.exhibits(content.sections(root / 'n_star_stationary'))[0]['rows'])
    assert unfitted['samples'].isna().equals(unfitted['outcome'].eq('unfitted'))
    assert unfitted['outcome'].eq('unfitted').sum() == 10
    assert ['samples', 'largest n with an ERM that errs'] in erring[0]['values']
    assert set(erring[0]['rows']['samples']) <= set(results.load(root / 'worst_erm')['erring_samples'])
    assert set(erring[0]['rows']['test_loss']) == {None}  # that of the search's last fit is of another n


def test_every_exponent_has_its_rows_its_note_and_what_it_leaves_out():
    folder = helpers.ROOT / 'experiments/results/n_star_erm'
    exhibit = explorer.exhibits(content.sections(folder))[0]
    rows = pd.DataFrame(exhibit['rows']).astype(object).where(lambda table: table.notna(), None)
    assert {name for fit in exhibit['fits'] for name in fit['where']} <= set(exhibit['settings'])
    fits = [fit for fit in exhibit['fits'] if fit['x'] == 'seq_len']
    assert len(fits) == 4
    of_rows = []
    for fit in fits:
        for place, row in rows.iterrows():
            of_rows += [place] * all(row[name] == value for name, value in fit['where'].items())
        assert ('are bounds' in fit['text'], fit['text'].startswith(fit['value'])) == (True, True)
    assert sorted(of_rows) == list(rows.index)  # each row is of one curve
    assert [fit['left_out'] for fit in fits].count([256]) == 1
    (dimension,) = [one for one in exhibit['filters'] if one['name'] == 'encoding_dim']
    assert (dimension['values'], dimension['texts']) == ([75, None], ['75', '–'])
    stored = results.load(folder)
    assert sum(exhibit['rows']['is_short']) == stored.loc[stored['is_search'], 'is_erm'].eq(False).sum() > 0


def test_data_are_those_of_the_rows(folder):
    section = sections_of(folder)['sweep']
    (exhibit,) = explorer.exhibits([section])
    rows = pd.DataFrame(exhibit['rows'])
    wanted = section.rows.sort_values(['model', 'seq_len', 'seed'], ascending=[False, True, True])
    assert rows['samples'].tolist() == wanted['samples_to_threshold'].tolist()
    assert rows['model'].tolist() == wanted['model'].tolist()
    names = [one['name'] for one in exhibit['filters']]
    assert names == ['model', 'seq_len', 'threshold']
    assert exhibit['filters'][1]['values'] == [2, 4, 6]
    lanes = exhibit['lanes']
    for row, record in zip(rows.to_dict('records'), wanted.to_dict('records'), strict=True):
        line = lanes['shared'][lanes['cell'][row['lane']]] + lanes['command'][row['lane']]
        assert line == commands.command_of(record, section.sweeps)
        assert f'--config.task.seq_len={record["seq_len"]}' in line
        assert lanes['curve'][row['lane']] == [[320, 640, 960], [1, 0.5, 0.333]]


def test_each_threshold_has_its_samples_and_bounds(folder):
    (exhibit,) = explorer.exhibits([sections_of(folder)['crossed']])
    rows = pd.DataFrame(exhibit['rows']).groupby('threshold')[['samples', 'bound']].agg(set)
    assert rows.loc[0.9].tolist() == [{640}, {0}]
    assert rows.loc[0.7].tolist() == [{10**6}, {1}]
    (shown,) = [one['first'] for one in exhibit['filters'] if one['name'] == 'threshold']
    assert shown == [0.7]


def test_settings_that_validation_chose_are_shown_first():
    rows = pd.concat([
        test_report.lanes('ffn', 4, learner='adamw', outcome='fitted', sample_size=size, num_samples=size,
                          learning_rate=rate, validation_loss=rate, samples_to_threshold=pd.NA)
        for size in (10, 20) for rate in (0.1, 0.2)
    ]).assign(cell='a')  # fmt: skip
    (exhibit,) = explorer.exhibits([Section(name='fits', rows=rows)])
    found = pd.DataFrame(exhibit['rows'])
    assert set(found.loc[found['chosen'], 'learning_rate']) == {0.1}
    assert exhibit['filters'][-1]['first'] == [True]
    assert exhibit['axes'][0][0] == 'num_samples'
    assert exhibit['values'] == [['test_loss', 'test loss']]


def test_exponents_are_those_of_the_analysis_and_tuned_settings_are_shown(folder):
    section = sections_of(folder)['longer']
    section.rows = section.rows.assign(tuned='learning_rate')
    (exhibit,) = explorer.exhibits([section])
    own = section.rows[section.rows['model'] == 'ffn']
    (fit,) = [fit for fit in exhibit['fits'] if fit['where'] == {'model': 'ffn', 'threshold': 0.7}]
    assert (fit['x'], fit['text']) == ('seq_len', str(analysis.exponent(own)))
    assert exhibit['shown'] == {'learning_rate': 'learning rate'}
    assert exhibit['rows']['learning_rate'] == 12 * [0.001]


def test_exponents_of_chosen_lanes_are_of_these_alone():
    root = helpers.ROOT / 'experiments/results/n_star_models_simple'
    (exhibit,) = explorer.exhibits(content.sections(root))
    assert {fit['where']['chosen'] for fit in exhibit['fits']} == {True}
    assert set(exhibit['rows']['chosen']) == {True, False}


def test_a_threshold_is_drawn_among_losses_where_it_is_one(folder):
    section = sections_of(folder)['sweep']
    (on_loss,) = explorer.exhibits([section])
    assert set(on_loss['rows']['loss_threshold']) == {0.7}
    section.rows = section.rows.assign(threshold_on='error_rate')
    (on_rate,) = explorer.exhibits([section])
    assert set(on_rate['rows']['loss_threshold']) == {None}
    assert on_rate['settings']['threshold'] == 'threshold of the error rate'


def test_a_tuned_name_is_shown_and_not_drawn(folder):
    section = sections_of(folder)['longer']
    section.rows = section.rows.assign(tuned='optimizer')
    (exhibit,) = explorer.exhibits([section])
    assert 'optimizer' in exhibit['shown']
    assert [name for name, _ in exhibit['values']] == ['samples', 'test_loss']


def test_odd_values_are_json(folder):
    rows = test_report.lanes('ffn', 4).assign(cell='a', test_loss=[float('nan'), float('inf')], thing=[{1}, None])
    text = scripts.packed(explorer.exhibits([Section(name='</script>', rows=rows)]))
    assert '<' not in text
    data = json.loads(gzip.decompress(base64.b64decode(text)))
    assert data[0]['rows']['test_loss'] == [None, None]
    assert explorer.exhibits([Section(name='empty'), Section(name='x', rows=rows.drop(columns='test_loss'))]) == []


def test_short_names_leave_out_what_all_share():
    assert explorer.short_names(['a/b/c', 'a/b/d/e']) == {'a/b/c': 'c', 'a/b/d/e': 'd/e'}
    assert explorer.short_names(['a/b']) == {'a/b': 'b'}
    assert explorer.short_names([]) == {}


def test_marks_are_those_of_the_figures():
    looks = scripts.looks(['transformer', 'rnn', 'ffn', 'zero'])
    assert looks['transformer']['colour'] == '#0072b2'
    assert looks['rnn']['dash'] == pytest.approx([6.4, 3.2])
    assert len({look['shape'] for look in looks.values()}) == 4
    assert all(re.fullmatch(r'M[MLQCZ\d.,-]+', look['shape']) for look in looks.values())


# In a browser

browser_needed = pytest.mark.skipif(
    shutil.which('chromium') is None, reason='needs a browser: apt-get install chromium'
)


@pytest.fixture(scope='module')
def browser():
    """Headless Chromium."""
    with pytest.importorskip('playwright.sync_api').sync_playwright() as driver:
        options = ['--no-sandbox', '--disable-gpu', '--disable-background-networking']
        browser = driver.chromium.launch(executable_path=shutil.which('chromium'), args=options)
        yield browser
        browser.close()


@pytest.fixture(scope='module')
def address(folder, tmp_path_factory):
    """The page of all of them, without pictures, which take a second each."""
    sections, path = content.sections(folder), tmp_path_factory.mktemp('page') / 'report.html'
    for section in sections:
        section.figures.clear()
    measured = content.measured(sections)
    text = html.html_of(content.overview(measured, 30), sections, headline.headline(sections, measured))
    path.write_text(text)
    return path.as_uri()


@pytest.fixture(scope='module')
def said():
    """What the browser said, asked of the network or showed in a dialog in all tests."""
    return []


@pytest.fixture
def page(browser, address, said):
    context = browser.new_context(permissions=['clipboard-read', 'clipboard-write'], color_scheme='light')
    page = context.new_page()
    page.on('console', lambda message: said.append(message.text))
    page.on('pageerror', lambda error: said.append(str(error)))
    page.on('dialog', lambda dialog: said.append(f'dialog {dialog.message}') or dialog.dismiss())
    page.on('request', lambda request: request.url.startswith(('file:', 'data:')) or said.append(request.url))
    page.goto(address)
    page.evaluate('state.ready')
    choose(page, 'sweep')
    yield page
    context.close()
    assert said == []


def validate_fields(page):
    page.evaluate('state.drawn')


def choose(page, name):
    page.locator('#exhibit').select_option(label=name)
    validate_fields(page)


def box(page, name):
    return page.get_by_role('checkbox', name=name, exact=True)


def column(page, place):
    return page.locator(f'#lanes tbody td:nth-child({place})').all_inner_texts()


MARKS = '#points .mark-symbol.role-mark path'


@browser_needed
def test_filters_change_charts_and_table(page):
    assert (page.locator(MARKS).count(), len(column(page, 1))) == (12, 12)
    legend = page.locator('#points .role-legend-label text').all_text_contents()
    assert legend == ['Transformer', 'FFN']
    box(page, 'FFN').uncheck()
    box(page, '4').uncheck()
    validate_fields(page)
    assert page.locator(MARKS).count() == 4
    assert set(zip(column(page, 1), column(page, 2), strict=True)) == {('Transformer', '2'), ('Transformer', '6')}
    assert page.locator('#count').inner_text() == '4 of 12 rows'
    page.locator('#y').select_option('test_loss')
    validate_fields(page)
    assert 'test loss against sequence length N' in page.locator('#points').get_attribute('aria-label')
    box(page, 'Transformer').uncheck()
    validate_fields(page)
    assert not page.locator('#points').is_visible()
    choose(page, 'crossed')
    assert column(page, 4) == ['≥ 1,000,000'] * 6
    assert page.locator('#points .mark-text.role-mark text').all_text_contents() == ['↑'] * 6
    page.get_by_role('radio', name='0.9').check()
    assert column(page, 4) == ['640'] * 6


@browser_needed
def test_pointing_names_the_lane_and_a_click_shows_its_command(page, folder):
    page.locator(MARKS).last.hover()
    tip = page.locator('#tip').inner_text()
    assert tip.startswith('FFN, N 6, threshold 0.7, seed 1')
    assert 'ffn-qstr-N6' in tip
    page.locator(MARKS).last.click()
    rows = results.load(folder / 'sweep')
    row = rows[(rows['model'] == 'ffn') & (rows['seq_len'] == 6) & (rows['seed'] == 1)].iloc[0].to_dict()
    assert page.locator('#command').inner_text() == commands.command_of(row, [SWEEP.as_json()])
    assert page.locator('#lanes tr[aria-selected=true]').count() == 1
    page.mouse.move(0, 0)
    assert page.locator('#tip').count() == 0
    page.locator('#curves').scroll_into_view_if_needed()
    middle = page.locator('#curves .mark-line.role-mark path').last.evaluate(
        '(path) => { const middle = path.getPointAtLength(path.getTotalLength() / 2); '
        'const point = middle.matrixTransform(path.getScreenCTM()); return [point.x, point.y]; }'
    )
    for shift in 2, 0:  # A pointer that moves.
        page.mouse.move(middle[0], middle[1] - shift)
    assert 'seed' in page.locator('#tip').inner_text()


@browser_needed
def test_the_table_is_sorted_and_copied_from_by_keyboard(page):
    for direction in 'ascending', 'descending':
        page.get_by_role('button', name='samples', exact=False).first.focus()
        page.keyboard.press('Enter')
        assert page.locator('th:has([data-sort=samples])').get_attribute('aria-sort') == direction
        numbers = [int(text.replace(',', '')) for text in column(page, 4)]
        assert numbers == sorted(numbers, reverse=direction == 'descending')
    button = page.get_by_role('button', name='Copy the command of FFN, N 6, threshold 0.7, seed 1')
    button.focus()
    page.keyboard.press('Enter')
    page.get_by_text('Copied.').wait_for()
    copied = page.evaluate('navigator.clipboard.readText()')
    assert '--config.models=ffn' in copied
    assert copied == page.locator('#command').inner_text()


@browser_needed
def test_hostile_names_are_text(page):
    choose(page, 'hostile')
    assert HOSTILE in column(page, 3)
    page.locator(MARKS).first.hover()
    page.locator(MARKS).first.click()
    assert 'link' in page.locator('#lane h3').inner_text()
    assert page.locator('img[src=x]').count() == 0
    assert not page.locator('#copy').is_enabled()  # Its config.json has no such sweep.


@browser_needed
def test_everything_has_a_name(page):
    unnamed = """[...document.querySelectorAll('button, input, select')].filter(
        (one) => !(one.innerText || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML)"""
    assert page.evaluate(unnamed) == []
    assert page.evaluate('[...document.images].filter((one) => !one.alt).length') == 0
    assert all(page.locator(f'#{name}').get_attribute('aria-label') for name in ('points', 'curves'))


@browser_needed
def test_dark_narrow_and_printed(page):
    def colours():
        return page.evaluate(
            "[document.body, document.querySelector('#points svg text')].map((one) => getComputedStyle(one))"
            '.map((style, place) => place ? style.fill : style.backgroundColor)'
        )

    light = colours()
    page.emulate_media(color_scheme='dark')
    dark = colours()
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    choose(page, 'longer')
    written = page.locator('#points .mark-text.role-mark text').first
    assert 'brightness' in written.evaluate('(text) => getComputedStyle(text).filter')
    page.set_viewport_size({'width': 380, 'height': 800})
    assert page.evaluate('document.documentElement.scrollWidth') <= 380
    page.emulate_media(media='print')
    assert not page.locator('#exhibit').is_visible()
    assert page.locator('#points svg').is_visible()
    assert page.pdf().startswith(b'%PDF')
    assert page.locator('details.section:not([open])').count() == 0


@browser_needed
def test_several_exhibits_lie_over_each_other_and_the_address_keeps_the_choice(page, address):
    page.locator('#beside').select_option('crossed')
    box(page, 'Transformer').uncheck()
    validate_fields(page)
    assert set(column(page, 1)) == {'sweep', 'crossed'}
    assert page.locator('#chosen .chip').count() == 2
    for chart in 'points', 'curves':
        legend = page.locator(f'#{chart} .role-legend-label text').all_text_contents()
        assert legend == ['FFN', 'sweep', 'crossed']
    shapes = page.locator(MARKS).evaluate_all("(marks) => marks.map((mark) => mark.getAttribute('d'))")
    assert len(set(shapes)) == 2
    count, kept = page.locator('#count').inner_text(), page.url
    assert 'exhibit=sweep&exhibit=crossed' in kept
    open_again(page, kept)
    assert page.locator('#count').inner_text() == count
    assert not box(page, 'Transformer').is_checked()
    page.get_by_role('button', name='Without crossed').click()
    assert 'crossed' not in page.url


def open_again(page, address):
    page.goto('about:blank')
    page.goto(address)
    page.evaluate('state.ready')
    validate_fields(page)


@browser_needed
def test_an_address_keeps_names_with_spaces_and_values_with_commas(page):
    choose(page, 'my rows')
    box(page, '32').uncheck()
    validate_fields(page)
    count = page.locator('#count').inner_text()
    open_again(page, page.url)
    assert page.locator('#exhibit').input_value() == 'my rows'
    assert page.locator('#count').inner_text() == count
    assert (box(page, '32').is_checked(), box(page, '32,32').is_checked()) == (False, True)


MEANS = """(lanes) => meansOf(
    lanes.map((lane) => ({ exhibit: 'e', model: 'm', curve: 'c', x: 8, ...lane })), { isLog: true, isSamples: true })"""


@browser_needed
@pytest.mark.parametrize(
    ('lanes', 'is_open'),
    [
        ([('reached', 100), ('reached', 400), ('censored', 1000)], False),
        ([('reached', 100), ('outraced', 400)], True),
        ([('censored', 1000), ('censored', 1000)], True),
        ([('reached', 100), ('censored_below', 50)], True),
        ([('reached', 100), ('reached', 400, True)], False),
    ],
)
def test_a_line_joins_the_means_of_the_tables(page, lanes, is_open):
    rows = pd.DataFrame([
        {'seed': seed, 'outcome': outcome, 'samples_to_threshold': size if outcome == 'reached' else None,
         'max_samples': 1000, 'num_samples': size, 'min_samples': 50, 'learner': 'constrained', 'is_erm': not is_short}
        for seed, (outcome, size, is_short) in enumerate((*lane, False)[:3] for lane in lanes)
    ])  # fmt: skip
    wanted = analysis.summarize(rows.assign(x=8), ['x'])['mean'].item()
    bound = {'outraced': 1, 'censored': 1, 'censored_below': -1}
    points = [
        {'outcome': outcome, 'y': size, 'bound': bound.get(outcome, 0), 'isShort': (*rest, False)[0]}
        for outcome, size, *rest in lanes
    ]
    (mean,) = page.evaluate(MEANS, points)
    assert mean['y'] == pytest.approx(wanted)
    assert mean['isOpen'] == is_open
    (outside,) = page.evaluate(MEANS, [{**one, 'fit': {'value': '1', 'left_out': [8]}} for one in points])
    assert outside['isOpen']


@browser_needed
def test_a_line_is_dotted_between_open_means(page):
    pieces = page.evaluate(
        """piecesOf([[2, true], [4, false], [8, false], [16, false]].map(([x, isOpen]) => ({ x, isOpen }))).map(
            ({ x, isDotted, piece }) => [x, isDotted, piece])"""
    )
    assert pieces == [[2, True, 0], [4, True, 0], [4, False, 1], [8, False, 1], [16, False, 1]]


@browser_needed
def test_names_and_exponents_of_curves_stand_apart(page):
    scale = {'type': 'log', 'domain': [10, 1000]}
    ends = page.evaluate(
        '([scale, ys]) => apart(ys.map((y) => ({ y })), scale)', [scale, [10, 500, 510, 520, 1000, 1000]]
    )
    places = [end['at'] + end['dy'] for end in ends]
    assert all(later - one >= 12 for one, later in itertools.pairwise(places))
    assert places[-1] <= 320
    choose(page, 'my rows')
    shown = page.locator('#points .mark-text.role-mark text').all_text_contents()
    assert sorted(shown) == ['widths 32', 'widths 32,32']


@browser_needed
def test_overlaid_axes_have_all_titles_and_filters_are_sorted(page):
    exhibits = """[[['samples', 'largest n']], [['samples', 'samples'], ['test_loss', 'test loss']]].map(
        (values) => ({ values }))"""
    assert page.evaluate(f"titled({exhibits}, 'values')") == [['samples', 'largest n / samples']]
    choose(page, 'longer')
    page.locator('#beside').select_option('sweep')
    validate_fields(page)
    assert page.locator('[data-filter=seq_len] label').all_inner_texts() == [' 2', ' 4', ' 6', ' 8']


@browser_needed
def test_a_directory_is_its_first_exhibit_and_one_that_is_not_here_is_said(page, address):
    open_again(page, f'{address}#exhibit=both')
    assert page.locator('#exhibit').input_value() == 'both (online)'
    page.locator(MARKS).last.hover()
    assert 'test loss 0.000002899' in page.locator('#tip').inner_text()
    page.evaluate("location.hash = '#exhibit=gone'")
    page.get_by_text('No exhibit gone here.').wait_for()
    assert page.locator('#exhibit').input_value() == 'both (online)'
    open_again(page, f'{address}#exhibit=gone')
    assert page.locator('#gone').inner_text() == 'No exhibit gone here.'
    choose(page, 'sweep')
    assert page.locator('#gone').inner_text() == ''


@browser_needed
def test_samples_between_checks_are_rounded_and_marked(page):
    texts = page.evaluate("[[618.4, true, 0], [640, false, 0], [900, false, -1]].map(([samples, crossed, bound]) => "
                          "samplesText({ samples, crossed, bound }))")  # fmt: skip
    assert texts == ['≈ 618', '640', '≤ 900']


@browser_needed
@pytest.mark.parametrize('typed', ['#exhibit=gone', '#exhibit=sweep&model=[', '#exhibit=sweep&seq_len=3'])
def test_an_address_may_say_anything(page, address, typed):
    open_again(page, address + typed)
    assert page.locator('#exhibit').input_value()
    assert page.locator('#count').inner_text().endswith(' rows')


@browser_needed
def test_exponents_stand_at_no_curves_of_lanes_that_were_not_chosen(page):
    choose(page, 'chosen')
    assert page.locator('#fits').inner_text().count('N^') == 1
    box(page, 'no').check()
    validate_fields(page)
    assert page.locator('#fits').inner_text() == ''
    box(page, 'yes').uncheck()
    validate_fields(page)
    assert page.locator('#fits').inner_text() == ''


@browser_needed
def test_a_fit_is_named_by_its_n(page):
    choose(page, 'fits')
    assert set(column(page, 3)) == {'1000', '2000'}
    page.locator(MARKS).last.hover()
    assert 'n 2,000' in page.locator('#tip').inner_text()


@browser_needed
def test_the_first_screen_has_the_controls_and_both_charts(page):
    choose(page, 'longer')
    assert page.locator('#points').bounding_box()['y'] < page.viewport_size['height'] / 2
    exponent = page.locator('#points .mark-text.role-mark text').all_text_contents()
    assert len(exponent) == 2
    assert exponent == [f'N^{value}' for value in re.findall(r'N\^([\d.−-]+) ', page.locator('#fits').inner_text())]


@browser_needed
def test_one_value_far_from_all_others_stands_at_the_edge(page):
    scales = page.evaluate('[[1, 2, 3, 4, 5, 6, 1e9], [1, 2, 3, 4, 5, 6, 9]].map((values) => scaleOf(values, 8))')
    assert scales[0]['clamp']
    assert 6 <= scales[0]['domain'][1] < 20
    assert 'clamp' not in scales[1]


@browser_needed
def test_links_choose_an_exhibit_and_open_a_section(page):
    page.evaluate("choose('crossed')")
    page.locator('a[data-exhibit$=sweep]').first.evaluate('(link) => link.click()')
    assert page.locator('#exhibit').input_value() == 'sweep'
    page.locator('nav a').first.click()
    assert page.locator('details.section').first.get_attribute('open') is not None
