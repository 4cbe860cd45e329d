"""A sweep per value of a config's `axes`, each in a folder of one directory: what several binaries share."""

import dataclasses
import pathlib

from experiments import runtime, sample_complexity
from qstr_jax import studies, sweeps


def points(config):
    """Folder name → settings of each point of a study; a tuple of names comes from the command line as one string.

    Raises:
        ValueError: no axes, an empty one, or a value that stands there twice.
    """
    if not config.axes:
        raise ValueError('axes=(): the config of a study names settings and their values, as configs/heads.py does')
    split = {
        name: [part for value in values for part in (value.split(',') if isinstance(value, str) else [value])]
        for name, values in config.axes.items()
    }
    return studies.points(split)


def run(config, workdir):
    """Runs what is missing of all points of a study.

    Args:
        config: a config with `axes`.
        workdir: directory of the study.

    Raises:
        ValueError: no axes or an impossible setting, before anything is run.
    """
    if workdir is None:
        raise ValueError('--workdir=DIR is missing: where should the results go?')
    settings = sample_complexity.settings_from(config)
    sweep_of = {name: dataclasses.replace(settings, **point) for name, point in points(config).items()}
    for sweep in sweep_of.values():
        sweeps.cells_of(sweep)
    for name, sweep in sweep_of.items():
        sweeps.run(sweep, pathlib.Path(workdir) / name, runtime.options())


def dry_run(config):
    """What a study would run, as text."""
    settings = sample_complexity.settings_from(config)
    parts = [
        f'{name}\n{sample_complexity.list_cells(dataclasses.replace(settings, **point))}'
        for name, point in points(config).items()
    ]
    return '\n'.join(parts)


def main(draw):
    """A study's binary: the dry run, or all points and then `draw(workdir, config)`."""
    config, workdir = sample_complexity.CONFIG.value, runtime.WORKDIR.value
    if sample_complexity.DRY_RUN.value:
        print(dry_run(config))
        return
    runtime.start()
    run(config, workdir)
    if runtime.is_first():
        draw(workdir, config)
