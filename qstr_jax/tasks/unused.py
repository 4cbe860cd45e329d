"""Which settings of a user's task no prompt depends on: a subclass of `QSTR` may use no link, or no encodings."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr
from jax.interpreters import partial_eval

from qstr_jax import fingerprints
from qstr_jax.settings import function_names
from qstr_jax.tasks import encoders, encodings, links, shapes, streams


class _Zeros(encoders.Encoder):
    """An encoder of no registered name."""

    def draw(self, key: jax.Array, task: Any) -> encodings.Encodings:
        """ω = 0."""
        return encodings.Encodings(jnp.zeros((task.seq_len, task.encoding_dim)), jnp.int32(0), jnp.bool_(True))


def _others(task: Any) -> tuple[dict[str, Any], ...]:
    """Other values for groups of settings; a group counts as unused if changing all of it has no effect."""
    link = links.Link('zero', lambda key, sparsity, token_dim: {}, lambda params, x_QxD: jnp.float32(0))
    scale = 'unscaled' if task.encoding_scale == 'scaled' else 'scaled'
    return (
        {'link': link},
        {'encoding': _Zeros('zeros'), 'encoding_scale': scale, 'max_coherence': 0.5, 'distinct_encodings': False},
        {'encoding_dim': task.encoding_dim + 1, 'encoding_factor': None},
    )


@functools.lru_cache(maxsize=256)
def names(task: Any) -> frozenset[str]:
    """Names of the settings of links and encodings on which labels and encoded tokens do not depend.

    What the task computes is traced with other values of these; nothing is computed. In the tasks of this
    package every setting that they record has an effect.
    """
    if function_names.is_ours(type(task)) or not hasattr(task, 'link') or not hasattr(task, 'encoding_scale'):
        return frozenset()
    program = _program(task)
    alike = [others for others in _others(task) if program and _program(dataclasses.replace(task, **others)) == program]
    return frozenset(name for others in alike for name in others)


def _program(task: Any) -> str:
    """The fingerprint of how keys become labels and encoded tokens, without idle steps; '' where tracing fails."""
    keys = streams.abstract_key(), streams.abstract_key()
    try:
        traced = jax.make_jaxpr(lambda *keys: shapes.one_prompt(task, *keys)[0])(*keys)
    except (Exception, SystemExit):  # a user's task may raise anything; checks of tasks report it
        return ''
    needed, are_used, _ = partial_eval.dce_jaxpr_consts(traced.jaxpr, [True] * len(traced.jaxpr.outvars))
    consts = [const for const, is_used in zip(traced.consts, are_used, strict=True) if is_used]
    return fingerprints.of(ClosedJaxpr(needed, consts))
