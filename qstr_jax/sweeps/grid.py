"""From settings to work: cells (one compiled program each) and the lanes of a cell."""

import dataclasses
import hashlib
import itertools
import json

from qstr_jax import models, tasks
from qstr_jax.learners import online

LEARNER = 'online_adamw'


@dataclasses.dataclass(frozen=True)
class Cell:
    """One program: everything static, and the columns that all its rows share.

    Attributes:
        model: registered name of the architecture.
        problem: `online.Problem`.
        columns: settings as a tuple of (name, value), the constant part of the rows.
    """

    model: str
    problem: online.Problem
    columns: tuple

    @property
    def id(self):
        """Readable, file-safe and unique: changes with any setting that changes the program."""
        task = self.problem.task
        digest = hashlib.sha256(json.dumps(self.columns).encode()).hexdigest()[:8]
        return f'{self.model}-{task.name}-N{task.seq_len}-q{task.sparsity}-{digest}'


def cells(settings):
    """All cells of a sweep, the cheap ones first: by sparsity, length, then model.

    Raises:
        ValueError: some setting is impossible; nothing has been run then.
    """
    points = itertools.product(settings.sparsity, settings.seq_lens, settings.models)
    return tuple(_cell(settings, *point) for point in points)


def _cell(settings, sparsity, seq_len, model):
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
    learner = online.Online(
        settings.batch_size,
        settings.check_every,
        settings.threshold,
        settings.max_samples,
        settings.test_samples,
        settings.risk,
        settings.screen,
    )
    module = models.build(model, task, settings)
    problem = online.Problem(task, test_task, module, learner)
    return Cell(model, problem, _columns(model, problem, settings.preset))


def _columns(model, problem, preset):
    """Constant columns of a cell's rows, in a fixed order; a model's settings are `<model>_<field>`."""
    task, learner = problem.task, problem.learner
    columns = {
        'model': model,
        'task': task.name,
        'test_task': problem.test_task.name,
        'learner': LEARNER,
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
    for field in dataclasses.fields(problem.module):
        if field.name not in ('parent', 'name'):
            columns[f'{model}_{field.name}'] = _name(getattr(problem.module, field.name))
    return tuple(columns.items())


def _name(value):
    """A value as a table cell: functions by name, tuples as '120,1000'."""
    if callable(value):
        return getattr(value, '__name__', type(value).__name__)
    return ','.join(map(str, value)) if isinstance(value, tuple) else value


def lanes(settings):
    """All lanes of a cell: seeds × learning rates × weight decays, as `online.Lane`s of plain numbers."""
    axes = range(settings.num_seeds), settings.learning_rate, settings.weight_decay
    return tuple(
        online.Lane(seed, seed if settings.task_per_lane else settings.task_seed, rate, decay)
        for seed, rate, decay in itertools.product(*axes)
    )
