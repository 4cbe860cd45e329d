"""Presets: tables of settings, since the paper's text and its published code differ.

A sweep's own settings override its preset, which overrides the defaults. The defaults are those of the published code,
which made the figures, except for the test prompts: the published code trains on 1STR and tests on simple-1STR. The
preset `published` does that too, to reproduce the paper's figures; the others test on what they train on.
"""

from typing import Any

from qstr_jax.settings import checks

TABLE: dict[str, dict[str, Any]] = {
    'standard': {},
    'published': {},
    # The text does not mention the initialisation, so that of the code is kept.
    'paper': {'rnn.cell': 'relu', 'learner.weight_decay': 0.1, 'learner.test_samples': 10_000},
}

# The task of the test prompts where it is not the training task.
TEST_TASKS: dict[str, dict[str, str]] = {'published': {'qstr': 'simple_qstr'}}


def settings(preset: str) -> dict[str, Any]:
    """The settings of a preset, by scope and name, such as 'rnn.cell'."""
    checks.choice('preset', preset, TABLE)
    return TABLE[preset]


def test_task(preset: str, task: str) -> str:
    """The name of the task of the test prompts."""
    return TEST_TASKS.get(preset, {}).get(task, task)
