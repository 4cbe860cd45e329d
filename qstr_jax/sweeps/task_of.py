"""The tasks of a cell, from the settings of its sweep: that of the training prompts and that of the test prompts."""

import dataclasses
from typing import Any

from qstr_jax import tasks
from qstr_jax.sweeps.sweep import Sweep
from qstr_jax.tasks import encoders, links

Settings = dict[str, Any]


def part(sweep: Sweep, thing: Any) -> dict[str, tuple]:
    """Axes of the settings of a link or an encoding, which are given under its name."""
    name = 'linear' if thing is None else thing if isinstance(thing, str) else None
    return {setting: values for scope, setting, values in sweep.given if scope == name}


def task(sweep: Sweep, settings: Settings, link_settings: Settings, encoding_settings: Settings) -> Any:
    """The task of the training prompts, whose link and encoding have settings of their own."""
    settings = dict(settings)
    if link_settings:
        settings['link'] = links.get(settings.get('link', 'linear'), **link_settings)
    if encoding_settings:
        settings['encoding'] = encoders.get(settings.get('encoding', 'rademacher'), **encoding_settings)
    return tasks.build(sweep.task, **settings)


def test_task(sweep: Sweep, task: Any) -> Any:
    """The task of the test prompts: that of training, or one of another name or length beside it."""
    asked = f'test_task={sweep.test_task!r}'
    try:
        if sweep.test_task != task.name:
            task = tasks.sibling(task, sweep.test_task)
        if sweep.test_seq_len in (None, task.seq_len):
            return task
        asked = f'test_seq_len={sweep.test_seq_len}'
        # Encodings of the same dimension, which a factor of ln N would change.
        changes = {'encoding_factor': None} if hasattr(task, 'encoding_factor') else {}
        return dataclasses.replace(task, seq_len=sweep.test_seq_len, **changes)
    except ValueError as error:
        raise ValueError(f'{asked}: {error}') from None
