"""Compiles small cells for an accelerator that is not there, and prints what the compiler says of them as JSON.

`test_compilers` runs it in the environment of the compiler: python -m tests.compile_small DEVICE
"""

import dataclasses
import json
import os
import sys

import jax

from qstr_jax.accelerators import chips, measure
from qstr_jax.storage import files
from qstr_jax.sweeps import programs
from tests import small

MODELS = ('transformer', 'rnn', 'ffn')
# A pod of four hosts, and a host of eight devices.
GROUPS = {'v5e': 'v5e:4x4', 'h100': '1x1x8'}


def compiled(name):
    """What is known of a small cell of each architecture, and of one's program for each device of a group."""
    chip = chips.get(name)
    os.environ.update(chips.environment(chip))
    jax.config.update('jax_platforms', 'cpu')
    cells = {model: measure.measure(small.cell(model).problem, 2, chip) for model in MODELS}
    devices = chips.devices(dataclasses.replace(chip, topology=GROUPS[name]))
    group = [programs.compile_programs(small.cell('ffn').problem, 2, device) for device in (devices[0], devices[-1])]
    return {
        'cells': cells,
        'num_devices': len(devices),
        'programs': [files.digest(one.init.as_text(), one.advance.as_text()) for one in group],
    }


if __name__ == '__main__':
    print(json.dumps(compiled(sys.argv[1])))
