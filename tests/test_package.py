"""`import qstr_jax`: the names that most users need."""

import doctest
import subprocess
import sys

import pytest

import qstr_jax


def test_the_example_runs():
    result = doctest.testmod(qstr_jax)
    assert result.attempted > 5
    assert result.failed == 0


def test_every_name_is_there_and_listed():
    assert set(qstr_jax.__all__) == set(qstr_jax._NAMES)
    for name in qstr_jax.__all__:
        assert callable(getattr(qstr_jax, name))
    assert set(qstr_jax.__all__) < set(dir(qstr_jax))
    assert qstr_jax.tasks.register is qstr_jax.register_task


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'qstr_jax' has no attribute 'sweep'"):
        qstr_jax.sweep  # noqa: B018


def test_the_import_alone_loads_no_jax():
    code = 'import sys, qstr_jax; sys.exit("jax" in sys.modules or "pandas" in sys.modules)'
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0


def test_sweeps_import_nothing_that_few_tasks_need():
    """Every worker imports them, and each of these takes half a second."""
    code = 'import sys, qstr_jax.sweeps; sys.exit("scipy.stats" in sys.modules or "matplotlib" in sys.modules)'
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0
