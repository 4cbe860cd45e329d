"""The file of all entries: each is written as soon as its program has ended, so that a run can be cut off anywhere."""

import dataclasses
from typing import Any

from qstr_jax.accelerators.chips import Chip
from qstr_jax.storage import files, provenance, records
from qstr_jax.sweeps import claims

NAME = 'accelerators.json'
WHAT = (
    'Programs compiled for accelerators that are not there: nothing was run on one. Memory is what the compiler says, '
    'and what is called estimated follows from it and from the constants below; seconds to compile are of this machine.'
)


def folder_of(folder: Any) -> Any:
    """The folder of the results; it is made if it does not exist.

    Args:
        folder: its path.
    """
    return files.make_folder(folder)


def read(folder: Any) -> dict[str, Any]:
    """What is known so far.

    Args:
        folder: of the results.

    Raises:
        ResultsError: the file is damaged.
    """
    path = folder_of(folder) / NAME
    nothing = {'what': WHAT, 'made': {}, 'constants': {}, 'programs': []}
    return {'groups': [], **(records.read(path, 'accelerators') if path.exists() else nothing)}


def add(folder: Any, entry: dict[str, Any], chip: Chip, made: dict[str, Any], part: str = 'programs') -> None:
    """Writes an entry, in the place of the one with its fingerprint, or of what its cell was before the code changed.

    Args:
        folder: of the results.
        entry: has `device` and `fingerprint`.
        chip: its device.
        made: what made it, see `made_by`.
        part: 'programs', or 'groups' for one that compares the devices of a group.
    """
    folder = folder_of(folder)
    with claims.locked(folder, 'accelerators'):
        known = read(folder)
        kept = [one for one in known[part] if name_of(one) != name_of(entry) and _of(one) != _of(entry)]
        files.write_json(folder / NAME, {
            **known,
            'what': WHAT,
            'made': {**known['made'], chip.name: made},
            'constants': {**known['constants'], chip.name: constants_of(chip)},
            part: [*kept, entry],
        })  # fmt: skip


def constants_of(chip: Chip) -> dict[str, Any]:
    """What estimates rest on, with its sources.

    Args:
        chip: the accelerator.
    """
    return {name: value for name, value in dataclasses.asdict(chip).items() if name != 'target'}


def name_of(entry: dict[str, Any]) -> tuple[str, str]:
    """What an entry is known by.

    Args:
        entry: of a program.
    """
    return entry['device'], entry['fingerprint']


def _of(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    return entry['device'], entry['exhibit'], entry['cell'], entry.get('precision', 'highest')


def made_by(command: list[str], packages: dict[str, str]) -> dict[str, Any]:
    """What makes entries now: command, commit, versions and machine.

    Args:
        command: the words of the command line.
        packages: versions of further packages.
    """
    made = provenance.made_by(command)
    return {**made, 'packages': {**made['packages'], **packages}}
