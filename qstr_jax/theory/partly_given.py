"""Networks that are told a part of Lemma 11's construction and must find the rest: what finding costs.

A plugin with the model `partly_given`, one part of which is not trained, and the start `given`, which takes that part
from the construction.
"""

import dataclasses
from typing import Any, Literal

import jax
from flax import linen as nn

from qstr_jax import models
from qstr_jax.learners import starts
from qstr_jax.theory import construction_start
from qstr_jax.theory.altered import Altered

# The layers of each part.
PARTS: dict[str, tuple[str, ...]] = {'nothing': (), 'attention': ('attention',), 'link': ('hidden', 'out')}


class PartlyGiven(Altered):
    """A Transformer with one part that is not trained: no gradient reaches it.

    Attributes:
        part: one of `PARTS`.
    """

    part: str = 'nothing'

    def altered(self, params: dict) -> dict:
        """The same values; the given part has no gradient."""
        return {**params, **{name: jax.lax.stop_gradient(params[name]) for name in PARTS[self.part]}}


@models.register('partly_given')
def partly_given(
    task: Any,
    part: Literal['nothing', 'attention', 'link'] = 'nothing',
    num_heads: int | None = None,
    mlp_width: int = 100,
) -> nn.Module:
    """A Transformer of which one part stays as it starts; start it with `starts=given`.

    Args:
        task: sets the number of heads.
        part: what is given.
        num_heads: H; None is q.
        mlp_width: m, width of the ReLU layer.
    """
    module = models.build('transformer', task, num_heads=num_heads, mlp_width=mlp_width, attention='merged')
    return PartlyGiven(module=module, part=part)


@starts.register('given')
def given(context: starts.StartContext, number: float | None) -> Any:
    """The first parameters with W_QK = 0, in which the given part is that of the construction.

    Raises:
        ValueError: another model.
    """
    told = context.problem.module
    if not isinstance(told, PartlyGiven):
        raise ValueError(f'needs the model partly_given, not {type(told).__name__}')
    own = context._replace(problem=dataclasses.replace(context.problem, module=told.module))
    first, built = starts.params('attention:0', own)['params'], construction_start.construction(own, None)['params']
    return {'params': {**first, **{name: built[name] for name in PARTS[told.part]}}}
