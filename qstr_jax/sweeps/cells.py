"""From settings to work: cells (one compiled program each) and the lanes of a cell."""

import dataclasses
import hashlib
import itertools
import json

from qstr_jax import models, tasks
from qstr_jax.learners import fixed, online, projections, radius_units
from qstr_jax.learners import problem as problems
from qstr_jax.sweeps import cost, sample_sizes


@dataclasses.dataclass(frozen=True)
class Cell:
    """One program: everything static, and the columns that all its rows share.

    Attributes:
        model: registered name of the architecture.
        problem: `learners.problem.Problem`.
        columns: settings as a tuple of (name, value), the constant part of the rows.
    """

    model: str
    problem: problems.Problem
    columns: tuple

    @property
    def id(self):
        """Readable, file-safe and unique: changes with any setting that changes the program."""
        task = self.problem.task
        digest = hashlib.sha256(json.dumps(self.columns).encode()).hexdigest()[:8]
        return f'{self.model}-{task.name}-N{task.seq_len}-q{task.sparsity}-{digest}'


def cells_of(settings):
    """All cells of a sweep, the cheap ones first: by sparsity, length, learner, then model.

    A baseline in closed form is one cell, whatever learners there are.

    Raises:
        ValueError: some setting is impossible; nothing has been run then.
    """
    points = itertools.product(settings.sparsity, settings.seq_lens, settings.learners, settings.models)
    return tuple({cell.id: cell for cell in (_cell(settings, *point) for point in points)}.values())


def _cell(settings, sparsity, seq_len, name, model):
    task = tasks.Task(
        settings.task,
        seq_len,
        sparsity,
        settings.token_dim,
        settings.link,
        settings.indices,
        settings.tokens,
        settings.encoding_dim,
        settings.encoding_scale,
        settings.max_coherence,
        settings.distinct_encodings,
    )
    try:
        test_task = dataclasses.replace(task, name=settings.test_task)
    except ValueError as error:
        raise ValueError(f'test_task={settings.test_task!r}: {error}') from None
    module = models.build(model, task, settings)
    if name == 'online_adamw' and models.is_closed_form(module):
        raise ValueError(f'learners={name!r}: {model} is solved in closed form; leave it out of models')
    learner = _learner(settings, name, task, module)
    problem = problems.Problem(task, test_task, module, learner)
    return Cell(model, problem, _columns(model, problem, settings.preset))


def _learner(settings, name, task, module):
    """Static settings of a learner for one module."""

    def shared(kind):
        names = [field.name for field in dataclasses.fields(kind) if hasattr(settings, field.name)]
        return {field: getattr(settings, field) for field in names}

    if name == 'online_adamw':
        return online.Online(**shared(online.Online))
    own = {'is_search': not settings.num_samples, 'max_samples': sample_sizes.capacity(settings, task)}
    if models.is_closed_form(module):
        # All that is not about the data at its default: the solution depends on nothing else.
        data = ('risk', 'min_samples', 'resolution', 'threshold', 'test_samples', 'validation_samples', 'tolerance')
        kept = {field: getattr(settings, field) for field in data}
        return fixed.Fixed(method='closed_form', batch_size=0, max_steps=1, check_every=1, **kept, **own)
    if settings.span != 'free' and isinstance(module, models.Feedforward) and module.form != 'theorem6':
        raise ValueError(f"span={settings.span!r}: only ffn_form='theorem6' has W x in a layer, not {module.form!r}")
    if not isinstance(module, models.Feedforward):
        own['span'] = 'free'
    own |= {'method': name, 'budget_unit': float(radius_units.get(settings.budget_unit)(module, task))}
    learner = fixed.Fixed(**{**shared(fixed.Fixed), **own})
    if learner.method == 'constrained':
        projections.check(learner.constraint, cost.abstract_params(problems.Problem(task, task, module, learner)))
    return learner


def _columns(model, problem, preset):
    """Constant columns of a cell's rows, in a fixed order; a model's settings are `<model>_<field>`."""
    task, learner = problem.task, problem.learner
    is_online = isinstance(learner, online.Online)
    columns = {
        'model': model,
        'task': task.name,
        'test_task': problem.test_task.name,
        'learner': 'online_adamw' if is_online else learner.method,
        'preset': preset,
        'seq_len': task.seq_len,
        'sparsity': task.sparsity,
        'token_dim': task.token_dim,
        'link': task.link.name,
        'indices': _name(task.indices),
        'tokens': _name(task.tokens),
        'encoding_dim': task.encoding_dim,
        'encoding_scale': task.encoding_scale,
        'max_coherence': task.max_coherence,
        'distinct_encodings': task.distinct_encodings,
        **dataclasses.asdict(learner),
    }
    columns.pop('method', None)
    for field in dataclasses.fields(problem.module):
        if field.name not in ('parent', 'name'):
            columns[f'{model}_{field.name}'] = _name(getattr(problem.module, field.name))
    return tuple(columns.items())


def _name(value):
    """A value as a table cell: functions by name, tuples as '120,1000'."""
    if callable(value):
        return getattr(value, '__name__', type(value).__name__)
    return ','.join(map(str, value)) if isinstance(value, tuple) else value


def lanes(settings, cell=None):
    """All lanes of a cell, the learner's `Lane`s of plain numbers.

    Online: seeds × learning rates × weight decays, the same for all cells. On a fixed sample also × budgets × n; an
    axis that the learner does not look at has a single 0.
    """
    learner = cell.problem.learner if cell is not None else None
    if not isinstance(learner, fixed.Fixed):
        kind, axes = online.Lane, (settings.learning_rate, settings.weight_decay)
    else:
        kind, axes = fixed.Lane, _fixed_axes(settings, cell, learner)
    return tuple(
        kind(seed, seed if settings.task_per_lane else settings.task_seed, *point)
        for seed, *point in itertools.product(range(settings.num_seeds), *axes)
    )


def _fixed_axes(settings, cell, learner):
    """Learning rates, weight decays, budgets and n of a learner on a fixed sample."""
    has_rate = learner.method != 'closed_form' and learner.optimizer != 'lbfgs'
    has_decay = learner.method in ('adamw', 'stationary') or isinstance(cell.problem.module, models.Ridge)
    return (
        settings.learning_rate if has_rate else (0.0,),
        settings.weight_decay if has_decay else (0.0,),
        settings.budget if learner.method == 'constrained' else (0.0,),
        (0,) if learner.is_search else sample_sizes.sample_sizes(settings, cell.problem.task),
    )
