"""The check of the built documentation finds what it is there to find."""

import pytest

from qstr_jax.report import site_links
from tests import harness, helpers

GOOD = (
    '<h1 id="top">A</h1><a href="b.html#here">b</a>'
    '<a href="https://example.org">out</a><img src="data:image/png;base64,">'
)


@pytest.fixture
def site(tmp_path):
    """Two pages that are right; `bad(html)` adds to the first and says what is wrong."""
    (tmp_path / 'b.html').write_text('<p id="here">b</p><a href="#here">here</a><a href="a.html#top">a</a>')

    def bad(html='', css=''):
        (tmp_path / 'a.html').write_text(GOOD + html)
        (tmp_path / 'a.css').write_text(css)
        return site_links.problems(tmp_path)

    return bad


def test_a_site_that_is_right_has_no_problems(site):
    assert site() == []


@pytest.mark.parametrize(
    ('html', 'words'),
    [
        ('<a href="c.html">c</a>', 'a.html: c.html leads nowhere'),
        ('<a href="b.html#there">b</a>', 'names no place'),
        ('<img src="c.png">', 'c.png is missing'),
        ('<script src="https://example.org/x.js"></script>', 'loads https://example.org/x.js'),
        ('<link rel="stylesheet" href="//example.org/x.css">', 'loads //example.org/x.css'),
        ('<style>@import "https://example.org/x.css"</style>', 'loads https://example.org/x.css'),
    ],
)
def test_what_is_wrong_is_named(site, html, words):
    (problem,) = site(html)
    assert words in problem


def test_styles_load_nothing_from_elsewhere(site):
    assert site(css='a { background: url("https://example.org/x.png") }') == ['a.css: loads https://example.org/x.png']


def test_a_folder_that_is_no_site_is_one_line(tmp_path):
    helpers.assert_one_error(harness.run_binary('site', f'--output={tmp_path}'), str(tmp_path), 'no index.html')
    helpers.assert_one_error(harness.run_binary('site', '--output='), 'give a directory')
