"""The blocks that every mixer stands in: norm, mixer, norm, MLP, with residuals."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from qstr_jax.models import carry, initializers
from qstr_jax.models.mixers.mixer import Spec


class Backbone(nn.Module):
    """L blocks x ← x + Mixer(norm(x)), x ← x + MLP(norm(x)); an embedding before them, norm and readout after them.

    Attributes:
        blocks: the mixer of each.
        width: W of the sequence.
        embedding: whether tokens are mapped to W first; otherwise W is D_e.
        mlp: 'gated' (SiLU(A x) ∘ B x), 'plain' (ReLU) or 'none'.
        mlp_width: hidden units of the MLP.
        norm: 'rms', 'layer' or 'none'.
        residual: whether blocks add to their input.
        short_conv: tokens of a causal depthwise convolution before each mixer; 0 leaves it out.
        bidirectional: each mixer runs in both directions, added up, or sees all tokens at once if it can; else causal.
        initializer: of embedding, MLP and readout, see `initializers`; mixers keep their own.
        num_outputs: numbers for each position.
    """

    blocks: tuple[Spec, ...]
    width: int
    embedding: bool = True
    mlp: str = 'gated'
    mlp_width: int = 128
    norm: str = 'rms'
    residual: bool = True
    short_conv: int = 0
    bidirectional: bool = True
    initializer: str = 'flax'
    num_outputs: int = 1

    @nn.compact
    def __call__(self, z_NxE: jax.Array, length: jax.Array | None = None) -> jax.Array:
        """Predictions (N,), or (N, C) where there are several outputs; arguments as in `models.predict`.

        Both directions read padding after all tokens.
        """
        x_NxW = self._dense(self.width, 'embedding')(z_NxE) if self.embedding else z_NxE
        for i, spec in enumerate(self.blocks):
            x_NxW = self._added(x_NxW, functools.partial(self._mix, spec, i, length), f'mixer_norm_{i}')
            if self.mlp != 'none':
                x_NxW = self._added(x_NxW, functools.partial(self._mlp, i), f'mlp_norm_{i}')
        return initializers.squeezed(self._dense(self.num_outputs, 'out')(self._normed(x_NxW, 'out_norm')))

    def _added(self, x_NxW: jax.Array, part: Any, norm_name: str) -> jax.Array:
        made_NxW = part(self._normed(x_NxW, norm_name))
        return x_NxW + made_NxW if self.residual else made_NxW

    def _normed(self, x_NxW: jax.Array, name: str) -> jax.Array:
        if self.norm == 'none':
            return x_NxW
        return (nn.RMSNorm if self.norm == 'rms' else nn.LayerNorm)(name=name)(x_NxW)

    def _mix(self, spec: Spec, i: int, length: jax.Array | None, x_NxW: jax.Array) -> jax.Array:
        """A mixer in both directions, or in one."""
        kind, settings = spec[0], dict(spec[1])
        if sees_all(kind):
            mixer = kind(**settings, causal=not self.bidirectional, name=f'mixer_{i}')
            return mixer(self._convolved(x_NxW, f'mixer_{i}'), length=length)
        forward_NxW = kind(**settings, name=f'mixer_{i}')(self._convolved(x_NxW, f'mixer_{i}'))
        if not self.bidirectional:
            return forward_NxW
        order = carry.backward(len(x_NxW), length)  # its own inverse
        back = kind(**settings, name=f'mixer_{i}_back')
        return forward_NxW + back(self._convolved(x_NxW[order], f'mixer_{i}_back'))[order]

    def _convolved(self, x_NxW: jax.Array, name: str) -> jax.Array:
        if self.short_conv:
            conv = nn.Conv(
                self.width, (self.short_conv,), padding='CAUSAL', feature_group_count=self.width, name=f'{name}_conv'
            )
            x_NxW = jax.nn.silu(conv(x_NxW))
        return x_NxW

    def _mlp(self, i: int, x_NxW: jax.Array) -> jax.Array:
        hidden_NxM = self._dense(self.mlp_width, f'mlp_in_{i}')(x_NxW)
        if self.mlp == 'gated':
            hidden_NxM = jax.nn.silu(hidden_NxM) * self._dense(self.mlp_width, f'mlp_gate_{i}')(x_NxW)
        else:
            hidden_NxM = jax.nn.relu(hidden_NxM)
        return self._dense(self.width, f'mlp_out_{i}')(hidden_NxM)

    def _dense(self, features: int, name: str) -> Any:
        return lambda x: initializers.dense(features, self.initializer, x.shape[-1], name)(x)

    @nn.nowrap
    def state_size(self, seq_len: int) -> float:
        """Numbers that all blocks carry from one token to the next, in all directions; NaN if a mixer does not say."""
        total: float = 0
        for kind, settings in self.blocks:
            count = getattr(kind, 'state_size', None)  # of the class, since a field may have that name
            if not callable(count):
                return math.nan
            convolution = max(self.short_conv - 1, 0) * self.width
            own = count(kind(**dict(settings), parent=None), self.width, seq_len)
            total += self.directions((kind, settings)) * (own + convolution)
        return total

    @nn.nowrap
    def directions(self, spec: Spec) -> int:
        """How many modules of a mixer its block has."""
        return 2 if self.bidirectional and not sees_all(spec[0]) else 1


def sees_all(kind: Any) -> bool:
    """Whether a mixer can see all tokens by itself."""
    return 'causal' in {field.name for field in dataclasses.fields(kind)}


class _Nothing(nn.Module):
    """A mixer without parameters."""

    def __call__(self, x_NxW: jax.Array) -> jax.Array:
        return x_NxW


class _NothingOfAll(nn.Module):
    """The same for a mixer that can see all tokens."""

    causal: bool

    def __call__(self, x_NxW: jax.Array, length: jax.Array | None) -> jax.Array:
        return x_NxW


def num_parameters(module: Backbone, seq_len: int, embedding_dim: int) -> int:
    """Number of parameters of a model: of each mixer, times its directions, and of all that is around the mixers."""
    nothing = tuple((_NothingOfAll if sees_all(kind) else _Nothing, ()) for kind, _ in module.blocks)
    own = (module.directions(spec) * _count(spec[0](**dict(spec[1])), seq_len, module.width) for spec in module.blocks)
    return _count(module.clone(blocks=nothing), 1, embedding_dim) + sum(own)


@functools.lru_cache(maxsize=1024)
def _count(module: nn.Module, seq_len: int, width: int) -> int:
    made = jax.eval_shape(module.init, jax.random.key(0), jax.ShapeDtypeStruct((seq_len, width), jnp.float32))
    return sum(leaf.size for leaf in jax.tree.leaves(made.get('params', {})))
