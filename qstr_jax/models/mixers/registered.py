"""Architectures made of mixers: `backbone` with any pattern of them, and one architecture for each mixer."""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from flax import linen as nn

from qstr_jax import settings
from qstr_jax.models import registered
from qstr_jax.models.backbone import Backbone, num_parameters
from qstr_jax.models.mixers import mixer
from qstr_jax.settings import checks

# A solution for num_parameters lies within this share of it.
TOLERANCE = 0.05


def register(name: str) -> Callable[[mixer.Kind], mixer.Kind]:
    """Decorator that registers a Linen module as a mixer, and its backbone as an architecture of that name.

    The module maps (N, W) to (N, W); its fields are its settings, and its docstring's `Attributes:` their meaning.

        @mixers.register('average')
        class Average(nn.Module):
            @nn.compact
            def __call__(self, x_NxW):
                return jnp.cumsum(x_NxW, axis=0) / jnp.arange(1, len(x_NxW) + 1)[:, None]

    Then `--config.models=average`, or `--config.models=backbone --config.backbone.mixers=average,attention`.

    Args:
        name: a-z, 0-9 and _.

    Raises:
        ValueError: the name is taken, or a field of the module has the name of a setting of the backbone or of a method
            of Flax, such as `init`.
    """

    def add(kind: mixer.Kind) -> mixer.Kind:
        own = mixer.schema(kind)
        for owner, taken in (("the backbone's", _HOUSE), ("Flax's", dir(nn.Module))):
            if both := sorted(set(own) & set(taken)):
                raise ValueError(f'mixer {name!r}: no setting may be called {both[0]!r}, which is {owner}')
        builder = functools.partial(_architecture, name)
        builder.__doc__ = inspect.getdoc(kind)  # type: ignore[assignment]
        registered.REGISTRY.add(name, builder, settings.Schema({**own, **_HOUSE}))
        mixer.add(name, kind)
        return kind

    return add


def _architecture(name: str, task: Any, **given: Any) -> nn.Module:
    """The backbone of one mixer."""
    house = {key: value for key, value in given.items() if key in _HOUSE}
    own = {key: value for key, value in given.items() if key not in _HOUSE}
    return _built(task, (mixer.spec(name, **own),), label=name, **house)


@registered.register('backbone')
def backbone(
    task: Any,
    mixers: tuple[str, ...] = ('attention',),
    width: int | None = None,
    depth: int = 2,
    mlp: Literal['gated', 'plain', 'none'] = 'gated',
    mlp_width: int | None = None,
    norm: Literal['rms', 'layer', 'none'] = 'rms',
    embedding: bool = True,
    residual: bool = True,
    short_conv: int = 0,
    bidirectional: bool = True,
    num_parameters: int | None = None,
    initializer: Literal['pytorch', 'flax'] = 'flax',
) -> nn.Module:
    """Blocks of norm, mixer and MLP, with residuals; a pattern of several mixers is a hybrid.

    Args:
        task: says how many outputs a position has.
        mixers: the pattern, repeated to the depth; settings follow a colon, as 'deltanet:heads=4'.
        width: W of the sequence; None is 64, or what `num_parameters` asks for.
        depth: number of blocks.
        mlp: 'gated' (SiLU(A x) ∘ B x), 'plain' (ReLU) or 'none'.
        mlp_width: hidden units of the MLP; None is 2 W.
        norm: of each block's input: 'rms', 'layer' or 'none'.
        embedding: whether tokens are mapped to W first; otherwise W is D_e.
        residual: whether blocks add to their input.
        short_conv: tokens of a depthwise convolution before each mixer; 0 leaves it out.
        bidirectional: whether tokens see all others; otherwise only earlier ones, from which 1STR cannot be answered.
        num_parameters: solves for the width, within 5 %.
        initializer: of embedding, MLP and readout; mixers keep their own.
    """
    house = {name: value for name, value in locals().items() if name in _HOUSE}
    return _built(task, tuple(map(mixer.parsed, mixers)), label='backbone', **house)


# The settings of the backbone that every architecture of a mixer has.
_HOUSE = {name: one for name, one in settings.schema_of(backbone, ('task',)).items() if name != 'mixers'}


def _built(task: Any, pattern: tuple[mixer.Spec, ...], label: str, **house: Any) -> nn.Module:
    """The backbone with the width that its settings ask for."""
    house = {**{name: one.default for name, one in _HOUSE.items()}, **house}
    for name, least in (('depth', 1), ('short_conv', 0), ('width', 1), ('mlp_width', 1), ('num_parameters', 1)):
        if house[name] is not None:
            checks.integer(f'{label}.{name}', house[name], least)
    depth, wanted, width = house.pop('depth'), house.pop('num_parameters'), house.pop('width')
    if depth < len(pattern):
        raise ValueError(f'{label}.depth={depth}: the pattern has {len(pattern)} mixers, so some would be ignored')
    specs = tuple(pattern[i % len(pattern)] for i in range(depth))
    if house['mlp'] == 'none' and house['mlp_width'] is not None:
        raise ValueError(f"{label}.mlp_width={house['mlp_width']}: would be ignored, since mlp='none'")
    if not house['embedding'] and (width or wanted) is not None:
        raise ValueError(f'{label}.embedding=False: the width is D_e then, so width and num_parameters cannot be given')
    if width is not None and wanted is not None:
        raise ValueError(f'{label}.width={width}: num_parameters={wanted} solves for it; give one of the two')
    house['num_outputs'] = getattr(task, 'num_outputs', 1)

    def make(width: int) -> Backbone:
        mlp_width = 2 * width if house['mlp_width'] is None else house['mlp_width']
        return Backbone(**{**house, 'mlp_width': mlp_width}, blocks=specs, width=width)

    if not house['embedding']:
        return make(task.embedding_dim)
    if wanted is None:
        return make(64 if width is None else width)
    return _of_parameters(make, wanted, task, label)


def _of_parameters(make: Callable[[int], Backbone], wanted: int, task: Any, label: str) -> Backbone:
    """The width whose number of parameters, a quadratic function of the width, is nearest to what is wanted."""

    def count(width: int) -> int:
        return num_parameters(make(width), task.seq_len, task.embedding_dim)

    # Divided differences are exact, so where the number is linear the quadratic term is 0 and adds no root.
    at_4, at_16, at_64 = (count(width) for width in (4, 16, 64))
    first = (at_16 - at_4) / 12
    second = ((at_64 - at_16) / 48 - first) / 60
    curve = np.polynomial.Polynomial((at_4 - 4 * first + 64 * second, first - 20 * second, second))
    low = max(1, math.floor(max((curve - wanted).roots().real)))
    best = min((low, low + 1), key=lambda width: abs(curve(width) - wanted))
    if abs(count(best) - wanted) > TOLERANCE * wanted:
        raise ValueError(
            f'{label}.num_parameters={wanted}: no width comes near; '
            f'{low} and {low + 1} have {count(low)} and {count(low + 1)} parameters'
        )
    return make(best)
