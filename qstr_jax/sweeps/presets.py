"""Presets: tables of settings, for where the paper's text and its published code differ.

A setting that a sweep gives comes before that of its preset, which comes before the default. The defaults are those of
the published code, which made the figures, so that the preset `published` has little to say.
"""

from typing import Any

from qstr_jax import checks

TABLE: dict[str, dict[str, Any]] = {
    'published': {},
    # The text names no initialisation: that of the code is kept.
    'paper': {'rnn.cell': 'relu', 'learner.weight_decay': 0.1, 'learner.test_samples': 10_000},
}

# By task: what the test prompts follow where it is not the task itself. The published code tests on simple-1STR.
TEST_TASKS: dict[str, dict[str, str]] = {'published': {'qstr': 'simple_qstr'}, 'paper': {}}


def settings(preset: str) -> dict[str, Any]:
    """Settings of a preset, by scope and name as in 'rnn.cell'.

    Args:
        preset: 'published' or 'paper'.

    Raises:
        ValueError: unknown preset.
    """
    checks.choice('preset', preset, TABLE)
    return TABLE[preset]


def test_task(preset: str, task: str) -> str:
    """The task that the test prompts follow.

    Args:
        preset: 'published' or 'paper'.
        task: name of the training task.
    """
    return TEST_TASKS[preset].get(task, task)
