"""The published configs as programs: which cells they run, and how many lanes at once."""

import importlib
from collections.abc import Iterator
from typing import NamedTuple

from experiments.configs import base
from qstr_jax import checks, sweeps
from qstr_jax.sweeps import lanes_per_batch, search
from qstr_jax.sweeps.cells import Cell

# By exhibit: its config, and the argument that the config takes. The first ones are the paper's.
EXHIBITS = {
    'figure1a': ('figure1a', None),
    'figure1b': ('figure1b', None),
    'figure3': ('figure3', None),
    'quickstart': ('quickstart', None),
    'figure1a_tuned': ('figure1a_tuned', None),
    'figure1b_tuned': ('figure1b_tuned', None),
    'figure3_tuned': ('figure3_tuned', None),
    'figure2': ('attention_weights', None),
    'heads': ('heads', None),
    'embedding': ('embedding', None),
    'encodings': ('encodings', None),
    'larger_n': ('larger_n', None),
    'larger_n_tuned': ('larger_n_tuned', None),
    'accuracy': ('accuracy', None),
    'sensitivity_transformer': ('sensitivity', 'transformer'),
    'sensitivity_rnn': ('sensitivity', 'rnn'),
    'sensitivity_ffn': ('sensitivity', 'ffn'),
    'learning_curves': ('learning_curves', None),
    'n_star': ('n_star', None),
    'n_star_models': ('n_star_models', None),
    'n_star_erm': ('n_star_erm', None),
    'n_star_models_erm': ('n_star_models_erm', None),
    'theorem6': ('theorem6', None),
    'theorem6_control': ('theorem6_control', None),
}


class Program(NamedTuple):
    """A program that an exhibit runs.

    Attributes:
        exhibit: its name.
        cell: the cell.
        lanes: how many at once.
    """

    exhibit: str
    cell: Cell
    lanes: int


def programs_of(exhibit: str, platform: str) -> Iterator[Program]:
    """The programs of an exhibit, one for each cell.

    Args:
        exhibit: a key of `EXHIBITS`.
        platform: that it would run on.

    Raises:
        ValueError: unknown.
    """
    checks.choice('exhibits', exhibit, EXHIBITS)
    name, argument = EXHIBITS[exhibit]
    module = importlib.import_module(f'experiments.configs.{name}')
    sweep = base.to_sweep(module.get_config(argument) if argument else module.get_config())
    for cell in sweeps.cells_of(sweep):
        count = search.lanes_at_once(sweep.tune, cell) if sweep.tune else len(cell.lanes)
        default = lanes_per_batch.default_size(cell.problem.module, count, platform)
        yield Program(exhibit=exhibit, cell=cell, lanes=sweep.lanes_per_batch or default)
