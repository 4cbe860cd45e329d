"""Every device of a host or pod runs the same program: what is compiled for several of them, and for all at once."""

from typing import Any

import jax
import numpy as np

from qstr_jax.accelerators import hlo, targets
from qstr_jax.accelerators.chips import Chip
from qstr_jax.learners.problem import Problem
from qstr_jax.storage import files
from qstr_jax.sweeps import programs


def compare(problem: Problem, lanes: int, chip: Chip) -> dict[str, Any]:
    """A cell's programs for the first, the eighth and the last device of a group, and one of all devices together.

    Args:
        problem: the cell's.
        lanes: of a batch, which runs on one device.
        chip: whose group it is.
    """
    devices = targets.devices(chip, chip.group)
    several = [devices[index] for index in sorted({0, min(7, len(devices) - 1), len(devices) - 1})]
    compiled = [programs.compile_programs(problem, lanes, device) for device in several]
    names = [files.digest(one.init.as_text(), one.advance.as_text()) for one in compiled]
    return {
        'topology': chip.group,
        'num_devices': len(devices),
        'num_processes': len({device.process_index for device in devices}),
        'lanes': lanes,
        'compared': [str(device) for device in several],
        'programs': names,
        'memory_bytes': [one.memory_bytes for one in compiled],
        'together': together(problem, lanes, devices),
    }


def together(problem: Problem, lanes: int, devices: list[Any]) -> dict[str, Any]:
    """One program whose lanes are divided among all devices.

    Args:
        problem: the cell's.
        lanes: of each device.
        devices: of a group.
    """
    size, mesh = lanes * len(devices), jax.sharding.Mesh(np.array(devices), ('lanes',))

    def sharding_of(leaf: jax.ShapeDtypeStruct) -> jax.sharding.NamedSharding:
        axes = ('lanes',) if leaf.shape[:1] == (size,) else ()
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))

    compiled = programs.compile_placed(problem, size, devices[0].platform, sharding_of)
    return {
        'lanes': size,
        'memory_bytes_of_a_device': sum(map(programs.program_bytes, compiled)),
        'collectives': len(hlo.collectives(compiled[1].as_text())),
    }
