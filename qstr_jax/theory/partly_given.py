"""Networks that are told a part of Lemma 11's construction and must find the rest: what finding costs.

A plugin with the starts `given:0` (nothing; W_QK = 0), `given:1` (the attention) and `given:2` (the link). With
`PartlyGiven` the part that is given stays as it is.
"""

import dataclasses
from typing import Any

import jax

from qstr_jax.learners import starts
from qstr_jax.theory import construction_start
from qstr_jax.theory.altered import Altered

NOTHING, ATTENTION, LINK = PARTS = ('nothing given', 'attention given', 'link given')
_LEAVES = {NOTHING: (), ATTENTION: ('attention',), LINK: ('hidden', 'out')}


@dataclasses.dataclass(frozen=True)
class PartlyGiven(Altered):
    """A Transformer of which one part is not trained: nothing flows back to it.

    Attributes:
        part: one of `PARTS`.
    """

    part: str

    def altered(self, params: dict) -> dict:
        """The same values, of which the given part has no gradient.

        Args:
            params: by layer.
        """
        return {**params, **{name: jax.lax.stop_gradient(params[name]) for name in _LEAVES[self.part]}}


@starts.register('given')
def given(place: starts.Place, number: float | None) -> Any:
    """The module's first parameters with W_QK = 0, and the given part as in the construction.

    Args:
        place: the lane's; its module is a `PartlyGiven`.
        number: the part's place in `PARTS`; None is 0.

    Raises:
        ValueError: there is no such part.
    """
    if (number or 0) not in range(len(PARTS)):
        raise ValueError(f'starts=given:{number:g}: after the colon comes one of 0 to {len(PARTS) - 1}')
    own = place._replace(problem=dataclasses.replace(place.problem, module=place.problem.module.module))
    first, built = starts.params('attention:0', own)['params'], construction_start.construction(own, None)['params']
    return {'params': {**first, **{name: built[name] for name in _LEAVES[PARTS[int(number or 0)]]}}}
