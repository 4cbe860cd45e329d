"""The signals that end a run."""

import os
import signal
import sys

import pytest

from qstr_jax import signals


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(monkeypatch, capfd, number):
    codes, before = [], signal.getsignal(number)
    monkeypatch.setattr(os, '_exit', codes.append)
    with signals.stopping() as stop:
        signal.raise_signal(signal.SIGINT)
        assert (stop.signal_number, codes) == (signal.SIGINT, [])
        signal.raise_signal(number)
    assert codes == [128 + number]
    assert capfd.readouterr().err.splitlines()[-1] == 'stopped at once'
    assert signal.getsignal(number) is before


def test_a_session_that_a_person_types_into_lives_on(monkeypatch):
    monkeypatch.setattr(sys, 'ps1', '>>> ', raising=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in a job in the background
    try:
        with signals.stopping() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
