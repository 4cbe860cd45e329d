"""Progress: quiet in a log file, a bar for someone who watches, and the time that is left."""

import pytest

from qstr_jax import progress


class Clock:
    """Seconds that a test sets."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(progress, 'is_watched', lambda: False)
    return Clock()


def test_a_log_gets_a_line_a_minute(clock, capsys):
    with progress.Progress('lane', clock=clock) as shown:
        shown.expect(5)
        for second in range(1, 181):
            clock.seconds = float(second)
            shown.show('rnn-N8', f'{second} samples', count=second == 30)
    assert capsys.readouterr().err.splitlines() == [
        'rnn-N8: 1 of 5 lanes after 01:00, about 04:00 left; 60 samples',
        'rnn-N8: 1 of 5 lanes after 02:00, about 08:00 left; 120 samples',
        'rnn-N8: 1 of 5 lanes after 03:00, about 12:00 left; 180 samples',
    ]


def test_a_log_gets_a_line_for_what_is_finished(clock, capsys):
    with progress.Progress('lane', clock=clock) as shown:
        shown.expect(1)
        shown.show('rnn-N8', count=1)
        shown.say('rnn-N8: 1 reached')
    assert capsys.readouterr().err == 'rnn-N8: 1 reached\n'


def test_nothing_is_left_when_all_is_done(clock, capsys):
    with progress.Progress('lane', clock=clock) as shown:
        shown.expect(1)
        clock.seconds = 70.0
        shown.show('rnn-N8', count=1)
    assert capsys.readouterr().err == 'rnn-N8: 1 of 1 lanes after 01:10\n'


def test_work_that_is_found_on_the_way_has_no_time_left(clock, capsys):
    """A search knows its next step alone: with one of two lanes done it would promise what it cannot keep."""
    with progress.Progress('lane', clock=clock, is_open=True) as shown:
        for number, second in enumerate((60.0, 120.0), start=1):
            shown.expect(2)
            clock.seconds = second
            shown.show(f'rnn-N8, point {number} of 5', '2 running', count=1)
    assert capsys.readouterr().err.splitlines() == [
        'rnn-N8, point 1 of 5: 1 lanes after 01:00; 2 running',
        'rnn-N8, point 2 of 5: 2 lanes after 02:00; 2 running',
    ]


def test_a_bar_of_such_work_has_no_end(monkeypatch, capsys):
    monkeypatch.setattr(progress, 'is_watched', lambda: True)
    with progress.Progress('lane', is_open=True) as shown:
        shown.expect(4)
        shown.show('rnn-N8, point 2 of 5', '2 running', count=3)
    error = capsys.readouterr().err
    assert 'rnn-N8, point 2 of 5: 3lane [' in error
    assert '/4' not in error
    assert '%' not in error


def test_who_watches_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(progress, 'is_watched', lambda: True)
    with progress.Progress('lane') as shown:
        shown.expect(4)
        shown.show('rnn-N8', '2 running', count=3)
        shown.say('rnn-N8: 3 reached')
    error = capsys.readouterr().err
    assert '3/4' in error
    assert '2 running' in error
    assert 'rnn-N8: 3 reached\n' in error


@pytest.mark.parametrize('watched', [True, False])
def test_what_is_not_shown_is_silent(monkeypatch, capsys, watched):
    monkeypatch.setattr(progress, 'is_watched', lambda: watched)
    clock = Clock()
    with progress.Progress('lane', is_shown=False, clock=clock) as shown:
        shown.expect(1)
        clock.seconds = 100.0
        shown.show('rnn-N8', count=1)
        shown.say('done')
    assert capsys.readouterr().err == ''


def test_each_passes_the_items_on(clock):
    assert list(progress.each('ab', 'N')) == ['a', 'b']
