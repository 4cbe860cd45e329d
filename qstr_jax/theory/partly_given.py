"""Networks that are told a part of Lemma 11's construction and must find the rest: what finding costs.

A plugin with the starts `given:0` (nothing; W_QK = 0), `given:1` (the attention) and `given:2` (the link). With
`PartlyGiven` the part that is given stays as it is.
"""

import dataclasses
from typing import Any

import jax

from qstr_jax.learners import starts
from qstr_jax.theory import construction_start

NOTHING, ATTENTION, LINK = PARTS = ('nothing given', 'attention given', 'link given')
_LEAVES = {NOTHING: (), ATTENTION: ('attention',), LINK: ('hidden', 'out')}


@dataclasses.dataclass(frozen=True)
class PartlyGiven:
    """A Transformer of which one part is not trained.

    Attributes:
        module: the `models.Transformer`.
        part: one of `PARTS`.
    """

    module: Any
    part: str

    def init(self, key: jax.Array, z_NxE: jax.Array) -> dict:
        """First parameters of the Transformer.

        Args:
            key: typed key.
            z_NxE: an encoded prompt, (N, D_e).
        """
        return self.module.init(key, z_NxE)

    def __call__(self, z_NxE: jax.Array, position: Any = None) -> jax.Array:
        """Not called; its arguments tell `models.predict` that there can be a position."""
        raise NotImplementedError

    def apply(self, params: dict, z_NxE: jax.Array, position: Any = None) -> jax.Array:
        """Predictions; nothing flows back to the given part.

        Args:
            params: of the Transformer.
            z_NxE: an encoded prompt, (N, D_e).
            position: index of the position, or None for all.
        """
        kept = {name: jax.lax.stop_gradient(params['params'][name]) for name in _LEAVES[self.part]}
        return self.module.apply({'params': {**params['params'], **kept}}, z_NxE, position=position)


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
