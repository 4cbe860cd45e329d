"""The reason of an error is one line with the user's own line."""

import pathlib

import pytest

from qstr_jax import failures


def raised_by(source, tmp_path):
    """The error of a user's file."""
    path = tmp_path / 'mine.py'
    path.write_text(source)
    try:
        exec(compile(source, str(path), 'exec'), {})
    except (Exception, SystemExit) as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ('source', 'line'),
    [
        ('\nraise KeyError(3)', 'KeyError: 3 (mine.py, line 2)'),
        ('raise RuntimeError("too much\\n---\\nFor simplicity")', 'RuntimeError: too much (mine.py, line 1)'),
        ('import sys\nsys.exit()', 'SystemExit (mine.py, line 2)'),
        ('import json\njson.loads("")', 'JSONDecodeError: Expecting value: line 1 column 1 (char 0) (mine.py, line 2)'),
        ('from qstr_jax import columns\ncolumns.get(x=1)', "TypeError: get() got an unexpected … (mine.py, line 2)"),
    ],
)  # fmt: skip
def test_first_line_and_place(source, line, tmp_path):
    start, _, end = line.partition('…')
    reason = failures.reason(raised_by(source, tmp_path))
    assert reason.startswith(start)
    assert reason.endswith(end)
    assert '\n' not in reason


def test_a_plugin_that_is_not_found_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'my_needy.py').write_text('import my_other')
    with pytest.raises(ValueError, match=r"'my_modelz'; looked in the current directory and on PYTHONPATH$"):
        failures.import_plugin('my_modelz')
    with pytest.raises(ValueError, match=r"'my_other' \(my_needy.py, line 1\)$"):
        failures.import_plugin('my_needy')


def test_a_file_beside_the_package_is_the_users():
    root = pathlib.Path(failures.__file__).parents[1]
    assert failures.is_users(str(root / 'qstr_jax_models.py'))
    assert not failures.is_users(str(root / 'qstr_jax' / 'models.py'))


def test_only_what_says_itself_what_is_wrong_stays_as_it_is():
    with pytest.raises(ValueError, match=r'^n=0$'), failures.named('models=mine'):
        raise ValueError('n=0')
    for error in KeyError(1), SystemExit(2):
        with pytest.raises(ValueError, match=r'^models=mine: ') as caught, failures.named('models=mine'):
            raise error
        assert caught.value.__cause__ is error
    with pytest.raises(KeyboardInterrupt), failures.named('models=mine'):
        raise KeyboardInterrupt
