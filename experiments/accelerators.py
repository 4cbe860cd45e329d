r"""Compiles the programs of the published configs for TPUs and GPUs on a machine that has none.

make accelerators
python -m experiments.accelerators [--devices=v5e,h100] [--exhibits=figure1a] [--architectures=ffn] [--largest_only]
  [--limit_seconds=900] [--output=DIR]
python -m experiments.accelerators --groups [--devices=v5e,h100] [--output=DIR]

Each program is compiled in a process of its own and written to accelerators.json as soon as it has ended, so the same
command continues a run that was cut off. Nothing runs on an accelerator: seconds of steps are estimates. Devices whose
compiler is not in this environment are left out (`make accelerators` makes an environment for each kind).
"""

import dataclasses
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import jax
from absl import flags, logging

from experiments import command_line, exhibits, runtime
from qstr_jax import checks, models
from qstr_jax.accelerators import chips, groups, measure, report, store, targets
from qstr_jax.storage import provenance

RESULTS = 'experiments/results/accelerators'
DEVICES = flags.DEFINE_list('devices', [], 'Accelerators; all whose compiler is installed by default.')
EXHIBITS = flags.DEFINE_list('exhibits', [], 'Exhibits whose programs are compiled; all by default.')
ARCHITECTURES = flags.DEFINE_list('architectures', [], 'Models whose programs are compiled; all by default.')
LARGEST = flags.DEFINE_bool('largest_only', False, 'Of each model of an exhibit, compile one program at its largest N.')
GROUPS = flags.DEFINE_bool(
    'groups', False, 'Compile the shortest programs (of Figure 1a by default) for several devices of a host or pod.'
)
LIMIT = flags.DEFINE_integer('limit_seconds', 900, 'Seconds of a core that one program may take.', lower_bound=1)
PRECISION = flags.DEFINE_enum(
    'precision', 'highest', ['highest', 'high', 'default'], 'Of matrix products, as the setting of that name.'
)
DRAW = flags.DEFINE_bool('draw_only', False, 'Write table and figure of what is there, compile nothing.')
PROGRAM = flags.DEFINE_string('program', None, 'Compile one program, EXHIBIT:CELL, into the file --entry.')
ENTRY = flags.DEFINE_string('entry', None, 'See --program.')
# A machine that other work shares gives a process a part of a core.
WALL_FACTOR = 10


def compile_one() -> None:
    """The work of a process: compiles the program of --program and writes what was found to --entry."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT.value, LIMIT.value + 5))
    if len(DEVICES.value) != 1 or not ENTRY.value:
        raise ValueError(
            f'--program={PROGRAM.value}: needs one device, --devices, and a file for what is found, --entry'
        )
    chip = chips.get(DEVICES.value[0])
    exhibit, _, cell_id = PROGRAM.value.partition(':')
    program = next((one for one in programs_of(exhibit, chip) if one.cell.id == cell_id), None)
    if program is None:
        raise ValueError(f'--program={PROGRAM.value}: the exhibit has no such cell; give EXHIBIT:CELL')
    work = groups.compare if GROUPS.value else measure.measure
    found = work(program.cell.problem, program.lanes, chip)
    pathlib.Path(ENTRY.value).write_text(json.dumps(found))


def programs_of(exhibit: str, chip: chips.Chip) -> Iterator[exhibits.Program]:
    """The programs of an exhibit, with the products of --precision.

    Args:
        exhibit: its name.
        chip: to compile for.
    """
    for program in exhibits.programs_of(exhibit, chip.platform):
        problem = program.cell.problem
        if hasattr(problem.learner, 'precision'):
            learner = dataclasses.replace(problem.learner, precision=PRECISION.value)
            problem = dataclasses.replace(problem, learner=learner)
        yield program._replace(cell=dataclasses.replace(program.cell, problem=problem))


def chosen_programs(exhibit: str, chip: chips.Chip) -> list[exhibits.Program]:
    """The programs of an exhibit that --architectures and --largest_only name.

    Args:
        exhibit: its name.
        chip: to compile for.
    """
    names = ARCHITECTURES.value
    found = [one for one in programs_of(exhibit, chip) if not names or one.cell.model in names]
    return exhibits.largest(found) if LARGEST.value else found


def found_by_process(program: exhibits.Program, chip: chips.Chip) -> dict[str, Any]:
    """Compiles a program in a process of its own; its numbers, or why there are none.

    Args:
        program: of an exhibit.
        chip: to compile for.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'entry.json')
        name = f'--program={program.exhibit}:{program.cell.id}'
        command = [sys.executable, '-m', 'experiments.accelerators', name, f'--devices={chip.name}', f'--entry={path}']
        command += [f'--limit_seconds={LIMIT.value}', f'--precision={PRECISION.value}', f'--groups={GROUPS.value}']
        environment = {**os.environ, **targets.environment(chip)}
        wall = WALL_FACTOR * LIMIT.value
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=wall)
        except subprocess.TimeoutExpired:
            return {'outcome': 'out of time'}
        if path.exists():
            return {'outcome': 'compiled', **json.loads(path.read_text())}
        return {'outcome': why(done)}


def why(done: subprocess.CompletedProcess) -> str:
    """How a process ended that wrote no numbers.

    Args:
        done: the process.
    """
    if done.returncode == -signal.SIGXCPU:
        return 'out of time'
    if done.returncode == -signal.SIGKILL or 'MemoryError' in done.stderr or 'RESOURCE_EXHAUSTED' in done.stderr:
        return 'out of memory'
    lines = done.stderr.strip().splitlines() or [f'exit {done.returncode}']
    return f'failed: {lines[-1][:200]}'


def compile_all(chip: chips.Chip, names: list[str], folder: Any) -> None:
    """Compiles the programs of some exhibits that have no entry yet, or whose process failed.

    Args:
        chip: to compile for.
        names: of the exhibits.
        folder: of the results.
    """
    made = store.made_by(sys.argv, measure.versions(chip))
    for name in names:
        for program in chosen_programs(name, chip):
            fingerprint = measure.fingerprint(program.cell.problem, program.lanes, chip)
            known = {store.name_of(one): one for one in store.read(folder)['programs']}
            entry = known.get((chip.name, fingerprint))
            cell = {'exhibit': program.exhibit, 'cell': program.cell.id}
            if entry is None or entry['outcome'].startswith('failed'):
                entry = _new_entry(program, chip, fingerprint)
                logging.info('%s %s: %s', chip.name, program.cell.id, _summary(entry))
            elif cell not in entry['serves']:
                entry = {**entry, 'serves': [*entry['serves'], cell]}
            else:
                continue
            store.add(folder, entry, chip, made)


def compare_devices(chip: chips.Chip, names: list[str], folder: Any) -> None:
    """Compiles the shortest programs of some exhibits for several devices of a group, where that is not yet done.

    Args:
        chip: whose group it is.
        names: of the exhibits.
        folder: of the results.
    """
    made = store.made_by(sys.argv, measure.versions(chip))
    for name in names:
        programs = chosen_programs(name, chip)
        shortest = min((one.cell.problem.task.seq_len for one in programs), default=0)
        for program in programs:
            fingerprint = measure.fingerprint(program.cell.problem, program.lanes, chip)
            known = {store.name_of(one): one['outcome'] for one in store.read(folder)['groups']}
            is_new = known.get((chip.name, fingerprint), 'failed').startswith('failed')
            if is_new and program.cell.problem.task.seq_len == shortest:
                store.add(folder, _new_entry(program, chip, fingerprint), chip, made, part='groups')


def _new_entry(program: exhibits.Program, chip: chips.Chip, fingerprint: str) -> dict[str, Any]:
    cell = {'exhibit': program.exhibit, 'cell': program.cell.id}
    return {
        'device': chip.name,
        **cell,
        'model': program.cell.model,
        'seq_len': program.cell.problem.task.seq_len,
        'lanes': program.lanes,
        'precision': PRECISION.value,
        'fingerprint': fingerprint,
        'git_commit': provenance.git_commit(),
        'serves': [cell],
        **found_by_process(program, chip),
    }


def _summary(entry: dict[str, Any]) -> str:
    if entry['outcome'] != 'compiled':
        return entry['outcome']
    seconds, memory = entry['compile_cpu_seconds'], entry['memory_bytes'] / 2**20
    return f'{entry["lanes"]} lanes, {seconds:.0f} s of a core to compile, {memory:,.0f} MiB'


def chosen_devices() -> list[chips.Chip]:
    """The accelerators of --devices, or all that this environment has a compiler for.

    Raises:
        ValueError: unknown, or without a compiler here.
    """
    found = [chips.get(name) for name in DEVICES.value] or list(filter(targets.is_installed, chips.CHIPS.values()))
    for chip in found:
        targets.check_installed(chip)
    if not found:
        raise ValueError('this environment has no compiler for accelerators: make accelerators')
    return found


def run() -> None:
    """Compiles what is missing, then writes table and figure."""
    jax.config.update('jax_platforms', 'cpu')  # the compilers' packages would look for their devices
    if PROGRAM.value:
        compile_one()
        return
    for name in EXHIBITS.value:
        checks.choice('exhibits', name, exhibits.EXHIBITS)
    for name in ARCHITECTURES.value:
        checks.choice('architectures', name, models.names())
    folder = runtime.output(RESULTS)
    found = [] if DRAW.value else chosen_devices()
    for chip in found:
        if GROUPS.value and chip.group:
            compare_devices(chip, EXHIBITS.value or [report.DRAWN], store.folder_of(folder))
        elif not GROUPS.value:
            compile_all(chip, EXHIBITS.value or list(exhibits.EXHIBITS), store.folder_of(folder))
    print(report.write(store.folder_of(folder)))


if __name__ == '__main__':
    command_line.launch(run, required=None, used=('output',))
