"""Baselines whose solution has a closed form. Sweeps choose this learner for such models; users do not name it."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from qstr_jax import models, tasks
from qstr_jax.learners import fitting
from qstr_jax.learners.fixed_sample import Data, FixedSample
from qstr_jax.learners.learner import register
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import derived, traced
from qstr_jax.tasks import streams


@register('closed_form')
@dataclasses.dataclass(frozen=True)
class ClosedForm(FixedSample):
    """The minimiser of R̂ + (λ/2)‖vec Θ‖² in closed form, for baselines.

    Attributes:
        weight_decay: λ, for baselines with a penalty.
    """

    # Settings of the base class without effect, since no steps are taken.
    STEPS: ClassVar = ('learning_rate', 'batch_size', 'schedule', 'max_steps', 'check_every', 'span', 'starts')

    weight_decay: float = traced(0.01)
    has_penalty: bool = derived(False)

    def bind(self, module: nn.Module, task: tasks.Task, sample_sizes: tuple[int, ...]) -> 'ClosedForm':
        """The learner of a cell: a single step that solves the whole problem."""
        bound = super().bind(module, task, sample_sizes)
        if self.risk == 'averaged' and not isinstance(module, models.Zero) and _has_weights(task):
            raise ValueError(
                f'task={task.name!r}: the closed form of {type(module).__name__} counts all labels alike, and here '
                'some count more; leave it out, or use the point-wise risk'
            )
        has_penalty = getattr(module, 'has_penalty', False)
        return dataclasses.replace(
            bound, batch_size=0, max_steps=1, check_every=1, has_penalty=has_penalty, starts=('init',)
        )

    def own_lane_settings(self) -> tuple[str, ...]:
        """λ if the baseline has a penalty."""
        return ('weight_decay',) if self.has_penalty else ()

    def ignored(self) -> tuple[str, ...]:
        """All settings about steps, and λ without a penalty."""
        return (*super().ignored(), *self.STEPS, *(() if self.has_penalty else ('weight_decay',)))

    def optimizer_at(self, lane: Any, step: Any) -> optax.GradientTransformation:
        """The identity: no step is taken."""
        return optax.identity()

    def penalty(self, params: Any, lane: Any) -> Any:
        """(λ/2)‖vec Θ‖²."""
        return 0.5 * lane.weight_decay * optax.tree.norm(params, squared=True) if self.has_penalty else 0.0

    def steps(self, fit: fitting.Fit, radius: Any, data: Data, lane: Any, problem: Problem) -> Any:
        """The whole fit, by the model's `closed_form`."""
        task = problem.task
        z_BxNxE = jax.vmap(lambda p: tasks.encode(p, task, data.task_draw))(data.train)
        counts_B = jnp.arange(self.max_samples) < fit.n
        is_there_BxN = jnp.broadcast_to(counts_B[:, None], (self.max_samples, task.seq_len))
        counts_BxN = jax.vmap(lambda prompt: prompt.counts_N)(data.train)
        if counts_BxN is not None:
            is_there_BxN &= counts_BxN > 0
        size = fit.n * task.seq_len
        if self.risk == 'pointwise':
            is_there_BxN &= jax.nn.one_hot(data.position_B, task.seq_len, dtype=bool)
            size = fit.n
        # ∇[(1/size) Σ (y − ŷ)² + (λ/2)‖W‖²] = 0 is the normal equation with λ size/2 on the diagonal.
        decay = lane.weight_decay if self.has_penalty else 0.0
        params = problem.module.closed_form(z_BxNxE, data.train.y_N, is_there_BxN, decay * size / 2, data.task_draw)
        value = fitting.full_risk(fit, data, problem)(params)
        return fit._replace(params=params, step=jnp.int32(self.max_steps)), value


def _has_weights(task: tasks.Task) -> bool:
    """Whether the labels of a prompt count differently in its error."""
    prompt = jax.eval_shape(lambda key: tasks.sample(key, task, task.draw(key).link), streams.abstract_key())
    return prompt.weights_N is not None or prompt.length is not None
