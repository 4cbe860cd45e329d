r"""Compiles the programs of the published configs for TPUs and GPUs on a machine that has none.

make accelerators
python -m experiments.accelerators [--devices=v5e,h100] [--exhibits=figure1a] [--largest_only] [--precision=default]
  [--limit_seconds=900] [--output=DIR]

Each program is compiled in a process of its own and written to accelerators.json as soon as it has ended, so the same
command continues a run that was cut off. Devices whose compiler is not in this environment are left out (`make
accelerators` makes an environment for each kind).
"""

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import jax
from absl import flags, logging

from experiments import exhibit
from experiments.exhibit import Program
from qstr_jax.accelerators import chips, entries, measure
from qstr_jax.cli import command_line, runtime
from qstr_jax.storage import files, provenance
from qstr_jax.sweeps import cost

RESULTS = 'experiments/results/accelerators'
DEVICES = flags.DEFINE_list('devices', [], 'Accelerators; all whose compiler is installed by default.')
EXHIBITS = flags.DEFINE_list('exhibits', [], 'Exhibits whose programs are compiled; all by default.')
LARGEST = flags.DEFINE_bool('largest_only', False, 'Compile one program of each model of an exhibit, at its largest N.')
LIMIT = flags.DEFINE_integer('limit_seconds', 900, 'Seconds of a core that one program may take.', lower_bound=1)
PRECISION = flags.DEFINE_enum(
    'precision', 'highest', ['highest', 'high', 'default'], 'Of matrix products, as the setting of that name.'
)
PROGRAM = flags.DEFINE_string('program', None, 'Compile one program, EXHIBIT:CELL, and print what was found.')
# On a shared machine a process gets only part of a core.
WALL_FACTOR = 10


def compile_one() -> None:
    """The work of a process: compiles the program of --program; what was found is the last line that it prints."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT.value, LIMIT.value + 5))
    if len(DEVICES.value) != 1:
        raise ValueError(f'--program={PROGRAM.value}: needs one device, --devices')
    chip = chips.get(DEVICES.value[0])
    name, _, cell_id = PROGRAM.value.partition(':')
    program = next((one for one in programs_of(name, chip) if one.cell.id == cell_id), None)
    if program is None:
        raise ValueError(f'--program={PROGRAM.value}: the exhibit has no such cell; give EXHIBIT:CELL')
    print(json.dumps(measure.measure(program.cell.problem, program.lanes, chip)))


def programs_of(name: str, chip: chips.Chip) -> list[Program]:
    """The programs of an exhibit, with the products of --precision; the largest of them for --largest_only."""
    found = []
    for program in exhibit.programs_of(name, chip.platform):
        problem = program.cell.problem
        if hasattr(problem.learner, 'precision'):
            learner = dataclasses.replace(problem.learner, precision=PRECISION.value)
            problem = dataclasses.replace(problem, learner=learner)
        found.append(program._replace(cell=dataclasses.replace(program.cell, problem=problem)))
    return largest(found) if LARGEST.value else found


def largest(programs: Iterable[Program]) -> list[Program]:
    """The program with the longest prompts of each model and learner; of several, the one with the most operations."""

    def size(program: Program) -> tuple[int, int]:
        problem = program.cell.problem
        return problem.task.seq_len, cost.prediction_flops(problem)

    found: dict[tuple[str, type], Program] = {}
    for program in programs:
        kind = program.cell.model, type(program.cell.problem.learner)
        found[kind] = max(found.get(kind, program), program, key=size)
    return list(found.values())


def found_by_process(program: Program, chip: chips.Chip) -> dict[str, Any]:
    """Compiles a program in a process of its own; its numbers, or why there are none."""
    name = f'--program={program.exhibit}:{program.cell.id}'
    command = [sys.executable, '-m', 'experiments.accelerators', name, f'--devices={chip.name}']
    command += [f'--limit_seconds={LIMIT.value}', f'--precision={PRECISION.value}']
    environment = {**os.environ, **chips.environment(chip)}
    wall = WALL_FACTOR * LIMIT.value
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=wall)
    except subprocess.TimeoutExpired:
        return {'outcome': 'out of time'}
    if done.returncode:
        return {'outcome': why(done)}
    return {'outcome': 'compiled', **json.loads(done.stdout.splitlines()[-1])}


def why(done: subprocess.CompletedProcess) -> str:
    """Why a process ended without a result."""
    if done.returncode == -signal.SIGXCPU:
        return 'out of time'
    if done.returncode == -signal.SIGKILL or 'MemoryError' in done.stderr or 'RESOURCE_EXHAUSTED' in done.stderr:
        return 'out of memory'
    lines = done.stderr.strip().splitlines() or [f'exit {done.returncode}']
    return f'failed: {lines[-1][:200]}'


def compile_all(chip: chips.Chip, names: list[str], folder: Any) -> None:
    """Compiles the programs of some exhibits that have no entry yet, or whose process failed or had less time."""
    made = provenance.made_by(sys.argv)
    made = {**made, 'packages': {**made['packages'], **measure.versions(chip)}}
    for program in (one for name in names for one in programs_of(name, chip)):
        fingerprint = measure.fingerprint(program.cell.problem, program.lanes, chip)
        known = {entries.key(one): one for one in entries.read(folder)['programs']}
        entry = known.get((chip.name, fingerprint))
        cell = {'exhibit': program.exhibit, 'cell': program.cell.id}
        had_less_time = entry and entry['outcome'] == 'out of time' and entry.get('limit_seconds', 0) < LIMIT.value
        if entry is None or entry['outcome'].startswith('failed') or had_less_time:
            entry = {
                'device': chip.name,
                **cell,
                'model': program.cell.model,
                'seq_len': program.cell.problem.task.seq_len,
                'lanes': program.lanes,
                'precision': PRECISION.value,
                'limit_seconds': LIMIT.value,
                'fingerprint': fingerprint,
                'git_commit': made['git_commit'],
                'serves': [cell],
                **found_by_process(program, chip),
            }
            logging.info('%s %s: %s', chip.name, program.cell.id, entry['outcome'])
        elif cell not in entry['serves']:
            entry = {**entry, 'serves': [*entry['serves'], cell]}
        else:
            continue
        entries.add(folder, entry, made)


def cells_of(names: list[str]) -> set[tuple[str, str]]:
    """All cells of some exhibits, each with its directory; they are the same on every platform."""
    return {(program.exhibit, program.cell.id) for name in names for program in exhibit.programs_of(name, 'cpu')}


def chosen_devices() -> list[chips.Chip]:
    """The accelerators of --devices, or all that this environment has a compiler for; a ValueError if there is none."""
    found = [chips.get(name) for name in DEVICES.value] or list(filter(chips.is_installed, chips.CHIPS.values()))
    for chip in found:
        chips.check_installed(chip)
    if not found:
        raise ValueError('this environment has no compiler for accelerators: make accelerators')
    return found


def run() -> None:
    """Compiles what is missing, then writes the table."""
    jax.config.update('jax_platforms', 'cpu')  # the compilers' packages would look for their devices
    if PROGRAM.value:
        compile_one()
        return
    for name in 'devices', 'exhibits', 'largest_only', 'limit_seconds', 'precision':
        if exhibit.DRAW_ONLY.value and flags.FLAGS[name].present:
            raise ValueError(f'--{name}: --draw_only does not use it, leave it out')
    for name in EXHIBITS.value:
        exhibit.find(name)
    folder = files.make_folder(runtime.output(RESULTS))
    # Cards are small, and compile in seconds wherever they are run.
    swept = [name for name, one in exhibit.every().items() if not isinstance(one, exhibit.CardExhibit)]
    if not exhibit.DRAW_ONLY.value:
        devices = chosen_devices()
        entries.drop_all_but(folder, cells_of([*swept, *EXHIBITS.value]))
        for chip in devices:
            compile_all(chip, EXHIBITS.value or swept, folder)
    if programs := entries.read(folder)['programs']:
        files.write_text(folder / 'table.md', entries.table(programs))
    print(entries.by_device(programs) or 'no program has been compiled')


if __name__ == '__main__':
    command_line.launch(run, used=('output', 'draw_only'))
