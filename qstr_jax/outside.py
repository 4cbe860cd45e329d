"""Our prompts and our judgement for training loops of other frameworks, whose results become rows like ours."""

import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from qstr_jax import columns, failures, tasks
from qstr_jax.learners import held_out
from qstr_jax.learners.crossings import is_below
from qstr_jax.settings import checks, function_names
from qstr_jax.storage import files, names, results
from qstr_jax.sweeps import claims, point
from qstr_jax.tasks import streams, unused

# What rows call the learner of a foreign training loop.
LEARNER = 'outside'
# Prompts that are drawn in one call where many are asked for.
_CHUNK = 1000
# Settings of a training loop that rows may say, since they change neither the task nor how a lane is judged.
_OF_LOOPS = ('batch_size', 'check_every', 'optimizer', 'schedule', 'warmup_steps', 'precision')
# Measures that follow from how a lane was judged.
_OF_JUDGES = ('no_retrieval', 'miss_is_erm')

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]


def batches(
    task: str | Mapping[str, Any],
    seq_len: int,
    seed: int,
    batch_size: int,
    stream: str = 'train',
    *,
    task_seed: int = 0,
) -> Iterator[Batch]:
    """Yields (prompts, labels, weights) without end: those that our own training of this seed sees.

    Batch b of `train` has the examples b B, …, (b + 1) B − 1, as step b of `learners='online'` with batch_size B. With
    the same B they have the same tokens and indices bit for bit, and the same labels up to rounding, since a dot
    product may be summed in another order. With another B the tokens may be rounded in another way too.

        for z_BxNxE, y_BxN, weights_BxN in qstr_jax.batches('qstr', 8, seed=0, batch_size=64): ...

    Args:
        task: a registered task, or a mapping of its settings in which `name` names it, as for `Sweep`.
        seq_len: N.
        seed: of the lane.
        batch_size: B, prompts of a batch.
        stream: 'train', 'validation' or 'test'.
        task_seed: which (u, ω) all prompts share; a `Sweep` has 0.

    Yields:
        z_BxNxE: encoded tokens, float32, which is what a model reads; zero at padding.
        y_BxN: labels, float32 (B, N) or (B, N, C), or int32 classes (B, N).
        weights_BxN: how much each position counts in a prompt's error, float32; 1 where all count the same.

    Raises:
        ValueError: an unknown name, or an impossible value.
    """
    built = _task(task, seq_len)
    checks.integer('batch_size', batch_size)
    checks.choice('stream', stream, ('train', 'validation', 'test'))
    source = _source(built, _integer('seed', seed, 0), _integer('task_seed', task_seed, 0), stream)
    return _batches(built, source, batch_size, stream)


def judge(
    task: str | Mapping[str, Any],
    seq_len: int,
    seed: int,
    *,
    threshold: float = 0.7,
    threshold_on: str = 'loss',
    max_samples: int = 1_000_000,
    test_samples: int = 5000,
    task_seed: int = 0,
) -> 'Judge':
    """Holds the test prompts of a lane and says when its test loss is below the threshold; defaults as `Online`'s.

    Args:
        task: as for `batches`.
        seq_len: N.
        seed: of the lane.
        threshold: the lane is over at the first check with an error strictly below this.
        threshold_on: 'loss', or with classes 'error_rate', 1 − accuracy.
        max_samples: budget of training prompts.
        test_samples: test prompts.
        task_seed: as for `batches`.

    Raises:
        ValueError: an unknown name, or an impossible value.
    """
    built = _task(task, seq_len)
    checks.positive('threshold', threshold)
    checks.choice('threshold_on', threshold_on, ('loss', 'error_rate'))
    held_out.check_threshold(threshold_on, built)
    for name, value in (('max_samples', max_samples), ('test_samples', test_samples)):
        checks.integer(name, value)
    settings: dict[str, Any] = {'threshold': threshold, 'max_samples': max_samples, 'test_samples': test_samples}
    settings |= {'threshold_on': threshold_on} if threshold_on != 'loss' else {}
    return Judge(built, {'seed': _integer('seed', seed, 0), 'task_seed': _integer('task_seed', task_seed, 0)}, settings)


class Judge:
    """The test prompts of a lane, and what became of it.

        judge = qstr_jax.judge('qstr', 8, seed=0)
        while not judge.check(predict(judge.prompts), samples=...): train()

    Attributes:
        task, seeds, settings: the task, the lane's seeds, and thresholds and sizes by name.
        prompts, labels, weights: z_TxNxE, y_TxN and weights_TxN of the test prompts, as `batches` yields them.
        outcome: 'running', 'reached', 'censored' or 'diverged'.
        history: (samples, error) of each check.
        measured: at each check the test loss, and with classes the accuracy.
    """

    def __init__(self, task: Any, seeds: Mapping[str, int], settings: Mapping[str, Any]) -> None:
        self.task, self.seeds, self.settings = task, dict(seeds), dict(settings)
        test_samples = self.settings['test_samples']
        source = _source(task, seeds['seed'], seeds['task_seed'], 'test')
        size = min(_CHUNK, test_samples)
        drawn = _batches(task, source, size, 'test')
        parts = [next(drawn) for _ in range(-(-test_samples // size))]
        self.prompts, self.labels, self.weights = (
            np.concatenate(one)[:test_samples] for one in zip(*parts, strict=True)
        )
        self.outcome = 'running'
        self.history: list[tuple[int, float]] = []
        self.measured: list[dict[str, float]] = []

    def error(self, predictions: Any) -> float:
        """The error that the threshold is on: the test loss, or with classes 1 − accuracy; NaN where the loss is."""
        return self._measure(predictions)[0]

    def _measure(self, predictions: Any) -> tuple[float, dict[str, float]]:
        """The error, and the test loss, and with classes the accuracy, as our own rows have them."""
        found = self._numbers(predictions)
        if self.task.loss != 'cross_entropy':
            errors_TxN = ((found - self.labels) ** 2).reshape(*self.labels.shape[:2], -1).mean(-1)
            loss = float(np.mean(self._of_prompts(errors_TxN)))
            return loss, {'test_loss': loss}
        with np.errstate(invalid='ignore'):  # infinite logits
            top = found.max(-1, keepdims=True)
            right = np.take_along_axis(found, self.labels[..., None], -1)
            losses_TxN = (np.log(np.exp(found - top).sum(-1, keepdims=True)) + top - right)[..., 0]
        accuracy_T = self._of_prompts((found.argmax(-1) == self.labels).astype(np.float32))
        loss = float(np.mean(self._of_prompts(losses_TxN)))
        is_rate = self.settings.get('threshold_on') == 'error_rate' and np.isfinite(loss)
        # The mean of 1 − accuracy by JAX, as in our own training, so that ties with the threshold end in the same way.
        error = float(jnp.mean(1 - accuracy_T)) if is_rate else loss
        return error, {'test_loss': loss, 'accuracy': float(np.mean(accuracy_T))}

    def _numbers(self, predictions: Any) -> np.ndarray:
        """Predictions in float32, of the shape that the task asks for."""
        try:
            found = np.asarray(predictions)
        except Exception as error:  # whatever another framework raises, such as for a tensor with gradients
            raise ValueError(f'predictions: {failures.reason(error)}') from None
        if found.dtype.kind not in 'fiu':
            raise ValueError(f'predictions of {found.dtype}: must be a NumPy array of numbers, such as float32')
        classes = (self.task.num_outputs,) if self.task.num_outputs > 1 else ()
        if found.shape != (*self.labels.shape[:2], *classes):
            raise ValueError(f'predictions of shape {found.shape}: must be {(*self.labels.shape[:2], *classes)}')
        return found.astype(np.float32)

    def _of_prompts(self, errors_TxN: np.ndarray) -> np.ndarray:
        """Σ_i w_i e_i / Σ_i w_i of each prompt."""
        return np.where(self.weights > 0, self.weights * errors_TxN, 0).sum(1) / self.weights.sum(1)

    def check(self, predictions: Any, samples: int) -> bool:
        """Records a check and returns whether the lane is over: below the threshold, out of budget, or not finite."""
        if self.outcome != 'running':
            raise ValueError(f'samples={samples}: the lane is over, {self.outcome}')
        samples = _integer('samples', samples, self.history[-1][0] if self.history else 1)
        error, measured = self._measure(predictions)
        self.measured.append(measured)
        self.history.append((samples, error))
        if not np.isfinite(error):
            self.outcome = 'diverged'
        elif is_below(error, np.float32(self.settings['threshold'])) and samples <= self.settings['max_samples']:
            self.outcome = 'reached'
        elif samples >= self.settings['max_samples']:
            self.outcome = 'censored'
        return self.outcome != 'running'


def write_rows(
    workdir: Any, model: str, judges: Sequence[Judge], *, settings: Mapping[str, Any] | None = None, **measures: Any
) -> pd.DataFrame:
    """Adds the lanes of a foreign training loop to a results directory, where analysis and figures read them like ours.

    Their learner is called 'outside', which tells them from our lanes. Lanes that are there already stay.

    Args:
        workdir: the results directory, new or not; several processes may write to it.
        model: what the rows call the architecture.
        judges: the lanes, which are over.
        settings: of the model: numbers, texts, True, False, and tuples or lists of these.
        **measures: further columns of the rows, the same for all these lanes, such as num_parameters.

    Raises:
        ValueError: no lane, one that is not over, a value that no row can have, or a measure that is for the judge to
            say, such as a threshold.
    """
    names.check(model)
    if not isinstance(judges, (list, tuple)) or not judges or not all(isinstance(one, Judge) for one in judges):
        raise ValueError('judges: give a list of at least one lane, each made by `judge`')
    if not isinstance(settings, (Mapping, type(None))):
        raise ValueError(f"settings={settings!r:.80}: give a mapping, such as {{'width': 32}}")
    if running := [one for one in judges if one.outcome == 'running']:
        raise ValueError(f'seed={running[0].seeds["seed"]}: its lane is not over; check until `check` says so')
    if settings:
        checks.name_part('model', model)  # whose name begins the columns of its settings
    own = {f'{model}_{name}': function_names.plain(_setting(name, value)) for name, value in (settings or {}).items()}
    for name, value in own.items():
        columns.declare(name, 'model', type(value).__name__)
    judged = [_row(one, model, own) for one in judges]
    for name, value in measures.items():
        if any(name in row for row in judged):
            raise ValueError(f'{name}={value!r:.80}: rows have that from the judge, the model or its settings')
        _check_measure(name, value)
    rows = pd.DataFrame([{**row, **measures} for row in judged])
    if (is_twice := rows.duplicated(['cell', 'seed', 'task_seed'])).any():
        raise ValueError(f'judges: two of them are of seed {rows[is_twice]["seed"].iloc[0]}')
    of_lanes = {name: measures[name] for name in columns.with_role(measures, 'lane')}
    folder = results.open_workdir(workdir)
    for cell, mine in rows.groupby('cell', sort=False):
        kept = mine.drop(columns='cell').dropna(axis=1, how='all')
        kept['samples_to_threshold'] = mine['samples_to_threshold'].astype('Int64')
        kept['test_loss'] = mine['test_loss']
        curves = pd.concat([_curve(judges[i]) for i in mine.index], ignore_index=True).assign(**of_lanes)
        with claims.locked(folder, f'{cell}-tables'):
            _add(folder, str(cell), kept, curves)
    with claims.locked(folder, 'config'):
        results.add_sweep(folder, {'models': [model], 'learners': [LEARNER]})
    return rows


def _add(folder: Any, cell: str, rows: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Adds lanes to a cell; measures may be anything, so pandas and Arrow may raise anything."""
    try:
        added = results.add(folder, cell, rows, curves, is_foreign=True)
    except (ValueError, results.ResultsError):
        raise
    except Exception as error:
        raise ValueError(f'{cell}: {failures.reason(error)}') from None
    if added < len(rows):
        warnings.warn(f'{cell}: {len(rows) - added} lanes are there already and stay as they are', stacklevel=3)


def _check_measure(name: str, value: Any) -> None:
    """Raises ValueError for a value that no row can have, and for what the judge says or analysis derives."""
    if not isinstance(value, (str, bool, int, float, np.bool_, np.integer, np.floating)):
        raise ValueError(f'{name}={value!r:.80}: must be a number or a text')
    is_judged = columns.get(name).role in ('task', 'model', 'learner', 'outcome') and name not in _OF_LOOPS
    if is_judged or name in _OF_JUDGES or name in columns.DERIVED:
        raise ValueError(f'{name}={value!r:.80}: is for the judge to say')
    if isinstance(value, (float, np.floating)) and np.isinf(value):
        raise ValueError(f'{name}={value!r}: must be finite')
    if name in ('batch_size', 'check_every'):
        _integer(name, value, 1)


def _setting(name: str, value: Any) -> Any:
    """A setting as rows can tell it from others: lists as tuples, NumPy's numbers as Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, (tuple, list)):
        return tuple(_setting(name, one) for one in value)
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ValueError(f'settings: {name}={value!r:.80}: must be a number, a text, or a list of these')
    return value


def _task(given: str | Mapping[str, Any], seq_len: int) -> Any:
    settings = {'name': given} if isinstance(given, str) else given
    if (
        not isinstance(settings, Mapping)
        or 'seq_len' in settings
        or not all(isinstance(name, str) for name in settings)
    ):
        raise ValueError(f'task={given!r}: give a name, or a mapping of settings; seq_len stands beside it')
    settings = {'name': 'qstr', **settings}
    return tasks.build(settings.pop('name'), **settings, seq_len=seq_len)


def _source(task: Any, seed: int, task_seed: int, stream: str) -> tuple[Any, tasks.Draw]:
    """The key of a stream and what its prompts share."""
    task_draw = jax.jit(tasks.draw, static_argnums=1)(tasks.task_key(task_seed, task), task)
    task.check_draw(task_draw.encodings.complete)
    return streams.stream_key(seed, stream, task), task_draw


def _integer(name: str, value: Any, least: int) -> int:
    """An integer from `least`; NumPy's are taken too, since loops of other frameworks count in them."""
    value = value.item() if isinstance(value, np.integer) else value
    checks.integer(name, value, least)
    return value


def _batches(task: Any, source: tuple[Any, tasks.Draw], size: int, stream: str) -> Iterator[Batch]:
    first = 0
    while True:
        yield jax.device_get(_drawn(*source, first, task=task, size=size, stream=stream))
        first += size


@functools.partial(jax.jit, static_argnames=('task', 'size', 'stream'))
def _drawn(key: Any, task_draw: tasks.Draw, first: Any, *, task: Any, size: int, stream: str) -> Any:
    """Examples first, …, first + size − 1 as a model and a loss take them."""
    prompts = tasks.examples(key, first + jnp.arange(size), task, task_draw.link, stream)
    z_BxNxE = jax.vmap(lambda prompt: tasks.encode(prompt, task, task_draw))(prompts)
    counts_BxN = jnp.ones(z_BxNxE.shape[:2])
    if prompts.length is not None:
        is_there_BxN = jnp.arange(task.seq_len)[None] < prompts.length[:, None]
        z_BxNxE = jnp.where(is_there_BxN[..., None], z_BxNxE, 0.0)
    if prompts.weights_N is not None or prompts.length is not None:
        counts_BxN = jax.vmap(lambda prompt: prompt.counts_N)(prompts)
    return z_BxNxE, prompts.y_N, counts_BxN


def _row(one: Judge, model: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a lane, with the id of its cell."""
    task = one.task
    asked = point.task_columns(task, task, unused.names(task))
    shared = {name: function_names.plain(value) for name, value in asked.items()}
    sparsity = f'-q{task.sparsity}' if 'sparsity' in shared else ''
    said = files.digest(sorted({**shared, **one.settings, **own, 'learner': LEARNER}.items()))
    samples, _ = one.history[-1]
    no_retrieval = task.no_retrieval(one.settings.get('threshold_on', 'loss'))
    return {
        'cell': f'{model}-{task.name}-N{task.seq_len}{sparsity}-{said}',
        'model': model, 'learner': LEARNER, **shared, **one.settings, **own, **one.seeds,
        'outcome': one.outcome, 'num_samples': min(samples, one.settings['max_samples']),
        'samples_to_threshold': samples if one.outcome == 'reached' else None,
        **one.measured[-1], **({} if no_retrieval is None else {'no_retrieval': no_retrieval}),
    }  # fmt: skip


def _curve(one: Judge) -> pd.DataFrame:
    return pd.DataFrame(one.measured).assign(**one.seeds, samples=[samples for samples, _ in one.history])
