"""Compiles small cells for an accelerator that is not there, and prints what the compiler says of them as JSON.

`test_compilers` runs it in the environment of the compiler: python -m tests.compile_small DEVICE
"""

import json
import os
import sys

import jax

from qstr_jax.accelerators import chips, groups, measure, targets
from tests import small

MODELS = ('transformer', 'rnn', 'ffn')


def compiled(name):
    """What is known of a small cell of each architecture, and of one for all devices of a group."""
    chip = chips.get(name)
    os.environ.update(targets.environment(chip))
    jax.config.update('jax_platforms', 'cpu')
    cells = {model: measure.measure(small.cell(model).problem, 2, chip) for model in MODELS}
    return {'cells': cells, 'group': groups.compare(small.cell('ffn').problem, 2, chip)}


if __name__ == '__main__':
    print(json.dumps(compiled(sys.argv[1])))
