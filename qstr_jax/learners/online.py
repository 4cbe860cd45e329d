"""Online training: fresh prompts at every step, until the test loss is below a threshold, as in Figures 1 and 3.

The class has the settings and works on lane batches; the functions below it are for one lane. The conditionals that
save work (stop, skip a test) stand outside of `vmap`, under which both branches of a `cond` run.
"""

import dataclasses
import functools
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from qstr_jax import models, tasks
from qstr_jax.learners import crossings, held_out, lanes, optimizers, risks, screening, starts
from qstr_jax.learners.learner import register
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import checks, later, static, traced, validate_fields


class Data(NamedTuple):
    """What a lane draws once and never changes.

    Attributes:
        task_draw: the link's parameters and the encodings.
        test_prompts: held-out prompts.
        train_key: key of the training prompts.
        position_key: key of the positions j(i) of the point-wise risk.
    """

    task_draw: tasks.Draw
    test_prompts: tasks.Prompt
    train_key: Any
    position_key: Any


class Curves(NamedTuple):
    """One entry per check; NaN (False) for checks that have not been made.

    Attributes:
        train_C: training loss.
        test_C: test loss, or its estimate on a subset if screening skipped the full evaluation.
        test_se_C: standard error of that estimate, 0 for a full evaluation.
        is_due_C: whether screening asked for a full evaluation.
        others_C: further measures by name, see `held_out.measured_on`; of the subset where there was no evaluation.
    """

    train_C: jax.Array
    test_C: jax.Array
    test_se_C: jax.Array
    is_due_C: jax.Array
    others_C: Any = {}  # noqa: RUF012 (never changed)


class State(NamedTuple):
    """What training changes.

    Attributes:
        params: parameters of the model.
        opt_state: state of the optimiser.
        outcome: an outcome, see `lanes`.
        checks: number of checks made.
        screen: anchor of the screening.
        curves: what the checks measured.
    """

    params: Any
    opt_state: Any
    outcome: jax.Array
    checks: jax.Array
    screen: screening.Screen
    curves: Curves


class Tested(NamedTuple):
    """What a check measured of one lane.

    Attributes:
        losses_S: training losses of the steps since the last check.
        errors_T: errors on the screening subset.
        estimate: of the test loss, from the subset.
        standard_error: of the estimate.
        is_due: whether the estimate asks for a full evaluation.
        is_evaluated: whether there was a full evaluation.
        test_loss: of the full evaluation; meaningless if there was none.
        others: further measures, of the full evaluation or else of the subset.
    """

    losses_S: jax.Array
    errors_T: jax.Array
    estimate: jax.Array
    standard_error: jax.Array
    is_due: jax.Array
    is_evaluated: jax.Array
    test_loss: jax.Array
    others: dict[str, jax.Array]


@register('online')
@dataclasses.dataclass(frozen=True)
class Online:
    """Fresh prompts at every step, until the test loss is below a threshold.

    Attributes:
        learning_rate: the learning rate of the optimiser.
        weight_decay: the weight decay of the optimiser, if it has one.
        optimizer: any optimiser of optax by its name, such as adamw, sgd (with momentum 0.9), adam, lion or muon.
        batch_size: fresh prompts per step.
        check_every: steps between two checks of the test loss.
        threshold: a lane is over at the first check with a test loss strictly below this.
        thresholds: larger ones, whose crossings are recorded on the way to `threshold`.
        max_samples: budget of training prompts; a lane that uses it up is censored.
        stop_after: a lane that has not reached the threshold with this many training prompts is outraced; 0: never.
        test_samples: number of held-out test prompts.
        risk: 'averaged' over positions (2.2), or 'pointwise', at one position of each prompt (2.3).
        screen: whether test evaluations that cannot show a crossing are skipped, see `screening`.
        precision: of matrix products on an accelerator, 'highest' (None), 'high' or 'default'; see `lanes.run_checks`.
        schedule: of the learning rate over the T steps of the budget: 'constant', 'cosine', or 'warmup_cosine', which
            rises from 0 for `warmup_steps` before it falls.
        warmup_steps: W, steps of the rise.
        first_params: where training starts, see `starts`, such as 'init' or 'attention:0'.
        threshold_on: what thresholds are on: the test loss, or with classes the error rate, 1 − accuracy.

    With η the learning rate, step t = 0, 1, …, T − 1 has the rate

        constant         η
        cosine           η (1 + cos(π t/T))/2
        warmup_cosine    η t/W while t < W, then η (1 + cos(π (t − W)/(T − W)))/2

    Raises:
        ValueError: a size is impossible, or a name is unknown.
    """

    name: ClassVar[str]
    start_settings: ClassVar[tuple[str, ...]] = ('first_params',)

    learning_rate: float = traced(1e-3)
    weight_decay: float = traced(0.01)
    stop_after: int = traced(0)
    optimizer: str = 'adamw'
    batch_size: int = 64
    check_every: int = 10
    threshold: float = 0.7
    thresholds: tuple[float, ...] = ()
    max_samples: int = 1_000_000
    test_samples: int = 5000
    risk: Literal['averaged', 'pointwise'] = 'averaged'
    screen: bool = True
    precision: lanes.Precision = None
    schedule: Literal['constant', 'cosine', 'warmup_cosine'] = later('constant')
    warmup_steps: int = 0
    first_params: str = later('init')
    threshold_on: Literal['loss', 'error_rate'] = later('loss')

    def __post_init__(self) -> None:
        validate_fields(self)
        lanes.validate_precision(self)
        for name in 'batch_size', 'check_every', 'max_samples', 'test_samples':
            checks.integer(name, getattr(self, name))
        checks.positive('threshold', self.threshold)
        object.__setattr__(self, 'thresholds', crossings.checked(self.thresholds, self.threshold))
        checks.number('learning_rate', self.learning_rate, 0)
        checks.number('weight_decay', self.weight_decay, 0)
        checks.integer('stop_after', self.stop_after, 0)
        optimizers.function(self.optimizer)  # an error if optax has none of this name
        starts.check(self)
        checks.integer('warmup_steps', self.warmup_steps, 0)
        if self.schedule == 'warmup_cosine' and not 0 < self.warmup_steps < self.max_steps:
            most = self.max_steps - 1
            raise ValueError(f'warmup_steps={self.warmup_steps}: must be 1 to {most}, of {self.max_steps} steps')
        if self.max_checks < 1:
            raise ValueError(
                f'max_samples={self.max_samples}: fewer than one check, '
                f'check_every={self.check_every} × batch_size={self.batch_size}'
            )

    @property
    def samples_per_check(self) -> int:
        """Prompts between two checks."""
        return self.batch_size * self.check_every

    @property
    def max_checks(self) -> int:
        """Checks within the budget."""
        return self.max_samples // self.samples_per_check

    @property
    def max_steps(self) -> int:
        """Steps within the budget."""
        return self.max_checks * self.check_every

    def most_examples(self) -> int:
        """Upper bound on the examples that a lane trains on."""
        return self.max_samples

    def bind(self, module: nn.Module, task: tasks.Task, sample_sizes: tuple[int, ...]) -> 'Online':
        """The learner of a cell.

        Raises:
            ValueError: the model is fitted in closed form.
        """
        if models.is_closed_form(module):
            raise ValueError(f'learners={self.name!r}: a baseline with a closed form cannot be trained online')
        held_out.check_threshold(self.threshold_on, task)
        return static(self)

    def lane_settings(self) -> tuple[str, ...]:
        """Learning rate, weight decay if the optimiser has one, and where a lane is outraced."""
        decay = ('weight_decay',) if optimizers.takes_decay(self.optimizer) else ()
        return ('learning_rate', *decay, 'stop_after')

    def ignored(self) -> tuple[str, ...]:
        """The weight decay if the optimiser has none, and the steps of a warm-up without one."""
        decay = tuple(name for name in ('weight_decay',) if name not in self.lane_settings())
        return decay if self.schedule == 'warmup_cosine' else (*decay, 'warmup_steps')

    def lane_at(self, lane: Any, step: Any) -> Any:
        """The lane with the learning rate of a step, by the schedule."""
        if self.schedule == 'constant':
            return lane
        if self.schedule == 'cosine':
            factor = optax.cosine_decay_schedule(1.0, self.max_steps)(step)
        else:
            factor = optax.warmup_cosine_decay_schedule(0.0, 1.0, self.warmup_steps, self.max_steps)(step)
        return lane._replace(learning_rate=lane.learning_rate * factor)

    def transform(self, lane: Any) -> optax.GradientTransformation:
        """The optimiser at the lane's learning rate and, if it has one, weight decay; subclasses may override it."""
        return optimizers.build(self.optimizer, lane.learning_rate, getattr(lane, 'weight_decay', None))

    def init(self, lanes_K: Any, problem: Problem) -> tuple[Data, State]:
        """Constants and the first state of a lane batch."""
        return jax.vmap(lambda lane: init_lane(lane, problem))(lanes_K)

    def check(self, state_K: State, data_K: Data, lanes_K: Any, problem: Problem) -> State:
        """Trains all lanes up to the next check and tests those that are due; finished lanes stay as they are."""
        is_active_K = state_K.outcome == lanes.RUNNING
        train = lanes.over_lanes(functools.partial(train_window, problem=problem))
        (params_K, opt_state_K), losses_KxS = train(state_K, data_K, lanes_K)
        guess = functools.partial(evaluate_subset, problem=problem)
        errors_KxT, guessed_K, estimate_K, error_K = lanes.over_chosen(guess, is_active_K, state_K, params_K, data_K)
        threshold_K = jax.vmap(functools.partial(crossings.pending, learner=self))(state_K.curves)
        is_due_K = screening.is_due(estimate_K, error_K, threshold_K)
        if self.threshold_on == 'error_rate':
            # If the same prompts of the subset are right as before, the standard error is 0 and says nothing of others.
            is_due_K |= error_K == 0
        # The last loss of a censored lane always comes from a full evaluation.
        is_due_K |= state_K.checks + 1 >= self.max_checks
        # Without screening every check is a full evaluation; `is_due` still records what screening would have done.
        is_evaluated_K = is_active_K & is_due_K if self.screen else is_active_K
        test = functools.partial(evaluate, problem=problem)
        test_loss_K, others_K = lanes.over_chosen(test, is_evaluated_K, params_K, data_K)
        moved_K = state_K._replace(params=params_K, opt_state=opt_state_K)
        tested_K = Tested(
            losses_S=losses_KxS,
            errors_T=errors_KxT,
            estimate=estimate_K,
            standard_error=error_K,
            is_due=is_due_K,
            is_evaluated=is_evaluated_K,
            test_loss=test_loss_K,
            others=lanes.select(is_evaluated_K, others_K, guessed_K),
        )
        new_K = jax.vmap(functools.partial(record, learner=self))(moved_K, tested_K, lanes_K)
        return lanes.select(is_active_K, new_K, state_K)

    def report(self, state_K: State, problem: Problem) -> dict[str, Any]:
        """Columns of the rows of a lane batch: arrays (k,), on the host."""
        outcome_K, checks_K, curves_K = jax.device_get((state_K.outcome, state_K.checks, state_K.curves))
        last_K = (checks_K - 1).clip(0)[:, None]
        samples_K = checks_K * self.samples_per_check
        of_lanes = [jax.tree.map(lambda leaf, k=k: leaf[k], curves_K) for k in range(len(checks_K))]
        texts = [crossings.text(curves, self) for curves in of_lanes]
        return {
            'outcome': [lanes.OUTCOMES[outcome] for outcome in outcome_K],
            'num_samples': samples_K,
            'samples_to_threshold': [
                int(n) if outcome == lanes.REACHED else None for n, outcome in zip(samples_K, outcome_K, strict=True)
            ],
            **({'crossings': texts} if self.thresholds else {}),
            'train_loss': np.take_along_axis(curves_K.train_C, last_K, axis=1)[:, 0],
            'steps': checks_K * self.check_every,
            'converged': outcome_K == lanes.REACHED,
            'num_evaluations': np.sum(curves_K.test_se_C == 0, axis=1),
            **{name: np.take_along_axis(all_, last_K, axis=1)[:, 0] for name, all_ in self._measures(curves_K).items()},
        }

    def report_curves(self, state_K: State, problem: Problem) -> list[dict[str, Any]]:
        """Learning curves of a lane batch: the columns of each lane, one entry per check."""
        checks_K, curves_K = jax.device_get((state_K.checks, state_K.curves))
        samples_C = self.samples_per_check * np.arange(1, self.max_checks + 1)
        measures_KxC = self._measures(curves_K)
        return [
            {
                'samples': samples_C[:checks],
                'train_loss': curves_K.train_C[k, :checks],
                'test_loss': measures_KxC['test_loss'][k, :checks],
                'test_loss_se': curves_K.test_se_C[k, :checks],
                'is_due': curves_K.is_due_C[k, :checks],
                **{name: all_[k, :checks] for name, all_ in measures_KxC.items() if name != 'test_loss'},
            }
            for k, checks in enumerate(checks_K)
        ]

    def _measures(self, curves_K: Curves) -> dict[str, Any]:
        """Test loss, and with classes accuracy, at each check, (K, checks).

        Between full evaluations the measure that the threshold is on is screening's estimate, which uses the last full
        evaluation; the other measure is that of the subset alone.
        """
        judged = 'test_loss' if self.threshold_on == 'loss' else 'accuracy'
        estimate = curves_K.test_C if judged == 'test_loss' else 1 - curves_K.test_C
        if judged not in curves_K.others_C:
            return {'test_loss': curves_K.test_C}
        of_subset = curves_K.others_C[judged]
        return {**curves_K.others_C, judged: np.where(curves_K.test_se_C == 0, of_subset, estimate)}

    def progress(self, state_K: State, problem: Problem) -> dict[str, Any]:
        """Samples and last training loss of the lane that is furthest ahead; on the host."""
        checks_K, train_KxC = jax.device_get((state_K.checks, state_K.curves.train_C))
        lane = int(np.argmax(checks_K))
        return {
            'samples': int(checks_K[lane]) * self.samples_per_check,
            'train_loss': float(train_KxC[lane, checks_K[lane] - 1]),
        }


def init_lane(lane: Any, problem: Problem) -> tuple[Data, State]:
    """Constants and the first state of one lane."""
    learner = problem.learner
    keys = held_out.stream_keys(lane, problem)
    task_draw = held_out.draw_task(keys, problem)
    data = Data(
        task_draw=task_draw,
        test_prompts=held_out.draw_prompts(keys, problem, {'test': learner.test_samples}, task_draw),
        train_key=keys['train'],
        position_key=keys['position'],
    )
    params = starts.params(learner.first_params, starts.StartContext(keys['init'], problem, task_draw))
    nothing_C = jnp.full((learner.max_checks,), jnp.nan)
    state = State(
        params=params,
        opt_state=learner.transform(lane).init(params),
        outcome=jnp.int32(lanes.RUNNING),
        checks=jnp.int32(0),
        screen=screening.start(learner.test_samples),
        curves=Curves(
            train_C=nothing_C,
            test_C=nothing_C,
            test_se_C=nothing_C,
            is_due_C=jnp.zeros(nothing_C.shape, bool),
            others_C=dict.fromkeys(held_out.other_measures(problem), nothing_C),
        ),
    )
    return data, state


def batch_loss(params: Any, data: Data, problem: Problem, indices_B: jax.Array) -> jax.Array:
    """The learner's risk on some examples."""
    task = problem.task
    prompts = tasks.examples(data.train_key, indices_B, task, data.task_draw.link)
    if problem.learner.risk == 'averaged':
        return risks.averaged(problem.module, params, prompts, task, data.task_draw)
    counts_BxN = jax.vmap(lambda prompt: prompt.counts_N)(prompts)
    positions_B = tasks.positions(data.position_key, indices_B, task.seq_len, counts_BxN)
    return risks.pointwise(problem.module, params, prompts, positions_B, task=task, task_draw=data.task_draw)


def train_step(
    params: Any, opt_state: Any, step: jax.Array, *, data: Data, lane: Any, problem: Problem
) -> tuple[Any, Any, jax.Array]:
    """One step on the fresh examples step·B, …, (step+1)·B − 1."""
    learner = problem.learner
    indices_B = step * learner.batch_size + jnp.arange(learner.batch_size)
    loss, grads = jax.value_and_grad(batch_loss)(params, data, problem, indices_B)
    updates, opt_state = learner.transform(learner.lane_at(lane, step)).update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def evaluate(params: Any, data: Data, problem: Problem) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The error that the threshold is on, such as the test loss (2.1), of one lane, and further measures."""
    return jax.tree.map(jnp.mean, held_out.measured_on(params, data.task_draw, data.test_prompts, problem))


def train_window(state: State, data: Data, lane: Any, problem: Problem) -> Any:
    """The steps of one lane from one check to the next."""
    check_every = problem.learner.check_every

    def body(carry: Any, i: jax.Array) -> Any:
        step = state.checks * check_every + i
        params, opt_state = carry
        params, opt_state, loss = train_step(params, opt_state, step, data=data, lane=lane, problem=problem)
        return (params, opt_state), loss

    return jax.lax.scan(body, (state.params, state.opt_state), jnp.arange(check_every))


def evaluate_subset(state: State, params: Any, data: Data, problem: Problem) -> Any:
    """Errors of one lane on the screening subset, further measures, the estimated test loss and its standard error."""
    size = screening.subset_size(problem.learner.test_samples)
    subset = jax.tree.map(lambda leaf: leaf[:size], data.test_prompts)
    errors_T, others = held_out.measured_on(params, data.task_draw, subset, problem)
    return errors_T, jax.tree.map(jnp.mean, others), *screening.estimate(state.screen, errors_T)


def record(state: State, tested: Tested, lane: Any, learner: Any) -> State:
    """The state of one lane after a check."""
    train_loss = jnp.mean(tested.losses_S)
    is_reached = tested.is_evaluated & crossings.is_below(tested.test_loss, learner.threshold)
    test_loss = jnp.where(tested.is_evaluated, tested.test_loss, tested.estimate)
    is_finite = jnp.isfinite(train_loss) & jnp.isfinite(test_loss)
    is_spent = state.checks + 1 >= learner.max_checks
    num_checks = state.checks + 1
    # Outraced is counted in checks, since the samples could overflow.
    is_outraced = (lane.stop_after > 0) & (num_checks > (lane.stop_after - 1) // learner.samples_per_check)
    outcome = jnp.where(is_outraced, lanes.OUTRACED, lanes.RUNNING)
    outcome = jnp.where(is_spent, lanes.CENSORED, outcome)
    outcome = jnp.where(is_reached, lanes.REACHED, outcome)
    outcome = jnp.where(is_finite, outcome, lanes.DIVERGED)
    standard_error = jnp.where(tested.is_evaluated, 0.0, tested.standard_error)
    point = Curves(
        train_C=train_loss, test_C=test_loss, test_se_C=standard_error, is_due_C=tested.is_due, others_C=tested.others
    )
    return state._replace(
        outcome=outcome.astype(jnp.int32),
        checks=state.checks + 1,
        screen=screening.update(state.screen, tested.errors_T, test_loss, tested.is_due),
        curves=jax.tree.map(lambda curve, value: curve.at[state.checks].set(value), state.curves, point),
    )
