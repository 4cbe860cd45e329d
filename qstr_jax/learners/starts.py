"""Where training starts, by name: 'init', 'init:2', 'attention:0', or what a plugin registers.

An ERM is the argmin of the training risk, and one start finds one local minimum. A learner with several `starts` fits
from each and keeps the parameters of least training risk.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from qstr_jax import tasks
from qstr_jax.learners.problem import Problem
from qstr_jax.settings import registry

REGISTRY = registry.Registry('start', 'starts', leading=('context', 'number'), has_settings=False)


class StartContext(NamedTuple):
    """What a start may depend on.

    Attributes:
        key: of the stream 'init'.
        problem: the cell's.
        task_draw: the lane's link parameters and encodings.
    """

    key: jax.Array
    problem: Problem
    task_draw: tasks.Draw


def register(name: str) -> Callable[[Callable], Callable]:
    """Decorator that registers a start: a function (context, number) → parameters {'params': …}.

    Args:
        name: the name that `--config.starts` uses; `name:0.3` passes the number 0.3, and `name` passes None.
    """
    return REGISTRY.registering(name)


def check(learner: Any) -> None:
    """Checks the names of a learner's starts."""
    for setting in learner.start_settings:
        texts = _texts(learner, setting)
        if not texts and setting == 'starts':
            raise ValueError("starts=(): give at least one, such as 'init'")
        for text in texts:
            _parse(text, setting)
        if len(set(texts)) < len(texts):
            raise ValueError(
                f'{setting}={",".join(texts)}: a start is given twice; init:2 draws other first parameters'
            )


def check_on(problem: Problem) -> None:
    """Raises ValueError for a start that the model or the task does not have; traced, nothing is computed."""
    key = tasks.streams.abstract_key()
    draw = jax.eval_shape(problem.task.draw, key)
    for setting in problem.learner.start_settings:
        for text in _texts(problem.learner, setting):
            if _parse(text)[0] is init:  # every model has it
                continue
            try:
                jax.eval_shape(lambda key, draw, text=text: params(text, StartContext(key, problem, draw)), key, draw)
            except ValueError as error:
                raise ValueError(f'{setting}={text!r}: {error}') from None


def _texts(learner: Any, setting: str) -> tuple[str, ...]:
    """The starts that one setting names; none where a reference is ''."""
    value = getattr(learner, setting)
    return value if isinstance(value, tuple) else (value,) if value or setting != 'reference' else ()


def params(text: str, context: StartContext) -> Any:
    """The parameters that a fit starts from."""
    function, number = _parse(text)
    return function(context, number)


def _parse(text: str, setting: str = 'starts') -> tuple[Callable, float | None]:
    name, has_number, number = text.partition(':')
    try:
        function = REGISTRY.get(name, setting).builder
    except ValueError as error:
        hint = "; 'construction' and 'mixed' come with the plugin qstr_jax.theory.construction_start"
        raise ValueError(f'{error}{hint if name in ("construction", "mixed") else ""}') from None
    try:
        value = float(number) if has_number else None
    except ValueError:
        value = math.nan
    if value is not None and not math.isfinite(value):
        raise ValueError(f'{setting}={text!r}: after the colon comes a number')
    if name == 'init' and value is not None and not (value.is_integer() and 0 <= value < 2**32):
        raise ValueError(f'{setting}={text!r}: after the colon comes a whole number from 0 to 2³² − 1')
    return function, value


@register('init')
def init(context: StartContext, number: float | None) -> Any:
    """The module's own first parameters; `init:K` draws others."""
    task = context.problem.task
    key = jax.random.fold_in(context.key, int(number)) if number else context.key
    variables = context.problem.module.init(key, jnp.zeros((task.seq_len, task.embedding_dim)))
    # Linen also returns what was sown; only parameters are trained.
    return {'params': variables.get('params', {})}


@register('attention')
def attention(context: StartContext, number: float | None) -> Any:
    """The module's first parameters with W_QK times a number, 0 if none is given: then attention is uniform."""
    factor = number or 0.0
    first = init(context, None)
    kernels = first['params'].get('attention', {})
    if 'qk_HxExE' in kernels:
        scaled = {'qk_HxExE': factor * kernels['qk_HxExE']}
    elif 'in_kernel' in kernels:  # (D_e, 3, H, D_e): W_Q, W_K and W_V.
        scaled = {'in_kernel': kernels['in_kernel'] * jnp.array([factor, 1.0, 1.0])[:, None, None]}
    else:
        raise ValueError(f'{type(context.problem.module).__name__} has no attention')
    return {'params': {**first['params'], 'attention': {**kernels, **scaled}}}


def stacked(texts: tuple[str, ...], context: StartContext) -> Any:
    """The parameters of several starts, with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *(params(text, context) for text in texts))
