"""Constrained ERM: min R̂ over a norm ball, and the units of its radius."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from qstr_jax import tasks
from qstr_jax.learners import projections
from qstr_jax.learners.fits import State
from qstr_jax.learners.fixed_sample import GradientSteps
from qstr_jax.learners.held_out import abstract_params
from qstr_jax.learners.learner import register
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import checks, derived, registry, traced

# A norm may exceed R by this share, the rounding of float32.
ROUNDING = 1e-5
# Units of norm bounds by name: functions (module, task) → number. `qstr_jax.theory.construction_norm` adds
# 'construction', the norm of the proof's network.
UNITS = registry.Registry('radius unit', 'radius_unit', leading=('module', 'task'), has_settings=False)


def register_unit(name: str) -> Callable[[Callable], Callable]:
    """Decorator that registers a function (module, task) → norm under a name.

    Args:
        name: the name that `--config.radius_unit` uses.
    """
    return UNITS.registering(name)


def norm_of_unit(name: str, module: Any, task: Any) -> float:
    """The norm that one unit stands for."""
    try:
        unit = UNITS.get(name).builder
    except ValueError as error:
        hint = "; 'construction' comes with the plugin qstr_jax.theory.construction_norm"
        raise ValueError(f'{error}{hint if name == "construction" else ""}') from None
    return float(unit(module, task))


@register_unit('absolute')
def absolute(module: Any, task: Any) -> float:
    """1: the radius is the norm itself."""
    return 1.0


@register('constrained')
@dataclasses.dataclass(frozen=True)
class Constrained(GradientSteps):
    """ERM in a norm ball: argmin R̂ over {‖vec Θ‖₂ ≤ R}, or over norm balls of single matrices.

    Attributes:
        radius: R, in units of `radius_unit`.
        radius_unit: a registered unit of R; with 'absolute' R is the norm itself.
        constraint: 'l2' bounds all parameters together; 'PATH:SET:RADIUS+…' bounds single matrices, see `projections`.
        optimizer: 'adam', or 'sgd' with momentum 0.9.
    """

    is_projected = True

    radius: float = traced(1.0)
    radius_unit: str = 'absolute'
    constraint: str = 'l2'
    optimizer: Literal['adam', 'sgd'] = 'adam'
    unit_norm: float = derived(1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive('radius', self.radius)
        projections.parse(self.constraint)

    def bind(self, module: nn.Module, task: tasks.Task, sample_sizes: tuple[int, ...]) -> 'Constrained':
        """The learner of a cell, with the norm that one unit of R stands for.

        Raises:
            ValueError: an unknown unit, or a constraint on a matrix that the model lacks.
        """
        projections.check(self.constraint, abstract_params(module, task))
        unit_norm = norm_of_unit(self.radius_unit, module, task)
        return dataclasses.replace(super().bind(module, task, sample_sizes), unit_norm=unit_norm)

    def own_lane_settings(self) -> tuple[str, ...]:
        """Learning rate and radius."""
        return ('learning_rate', 'radius')

    def first_radius(self, lane: Any) -> jax.Array:
        """The lane's radius, as a norm."""
        return lane.radius * self.unit_norm

    def placed(self, starts_S: Any, lane: Any) -> Any:
        """The starts; those outside the set are projected onto it.

        There the gradient mapping is as long as the way back over the learning rate, and Adam, which would keep its
        square, would hardly move for thousands of steps.
        """

        def place(params: Any) -> Any:
            projected = self.project(params, self.first_radius(lane))
            distance = optax.tree.norm(optax.tree.sub(params, projected))
            is_outside = distance > ROUNDING * optax.tree.norm(params)
            return jax.tree.map(lambda one, other: jnp.where(is_outside, one, other), projected, params)

        return jax.vmap(place)(starts_S)

    def report(self, state_K: State, problem: Problem) -> dict[str, Any]:
        """Columns of the rows, with the norm of the radius unit."""
        norms_K = np.full(len(state_K.outcome), self.unit_norm)
        return {**super().report(state_K, problem), 'radius_unit_norm': norms_K}

    def project(self, params: Any, radius: Any) -> Any:
        """The parameters' projection onto the constraint set."""
        return projections.project(params, self.constraint, radius)
