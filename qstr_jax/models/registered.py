"""Models by name, and their predictions."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import flax.errors
import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.interpreters import partial_eval

from qstr_jax import failures, fingerprints
from qstr_jax.models import adapters
from qstr_jax.settings import function_names, registry
from qstr_jax.tasks import streams

REGISTRY = registry.Registry('model', 'models', leading=('task',))


def register(name: str) -> Callable[[Callable[..., nn.Module]], Callable[..., nn.Module]]:
    """Decorator that registers a builder (task, **settings) → Linen module.

        @models.register('convolution')
        def convolution(task, channels: int = 64, kernel: int = 5):
            return Convolution(channels, kernel)

    The keyword arguments are the model's settings: `--config.convolution.channels=32` sets one, and the rows have it in
    the column `convolution_channels`.

    Args:
        name: a-z, 0-9 and _.

    Raises:
        ValueError: the name is taken, or an argument after `task` has no default.
    """
    return REGISTRY.registering(name)


def names() -> tuple[str, ...]:
    """Names that `build` knows."""
    return REGISTRY.names()


def build(name: str, task: Any, **settings: Any) -> nn.Module:
    """The module of one architecture for one task.

    Args:
        name: as registered.
        task: the `tasks.Task`.
        **settings: of the builder; those left out have their defaults.

    Raises:
        ValueError: an unknown name or setting, an impossible value, or a builder that returns no Linen module.
    """
    entry = REGISTRY.get(name)
    settings = entry.schema.checked(settings, name)
    with failures.named(f'models={name!r}'):
        module = entry.builder(task, **settings)
    if not isinstance(module, nn.Module):
        raise ValueError(f'models={name!r}: its builder must return a flax.linen Module, not {_what(module)}')
    _check_hashable(name, module)
    return module


def _what(made: Any) -> str:
    """What a builder returned, in words."""
    if made is None:
        return 'None'
    if isinstance(made, type):
        return f'the class {made.__name__} itself'
    packages = {kind.__module__.partition('.')[0] for kind in type(made).__mro__}
    known = {'flax': 'Flax NNX', 'equinox': 'Equinox', 'torch': 'PyTorch'}
    of = next((f', a module of {title}' for package, title in known.items() if package in packages), '')
    return f'{type(made).__name__}{of}'


def _check_hashable(name: str, module: nn.Module) -> None:
    """Raises ValueError unless a module can be an argument of a compiled program."""
    for field in dataclasses.fields(module):
        value = getattr(module, field.name, None)
        try:
            hash(value)
        except TypeError:
            shown = ' '.join(repr(value).split())
            is_list = isinstance(value, list)
            hint = 'write a tuple, (…) in place of […]' if is_list else 'attributes must be numbers, names or tuples'
            raise ValueError(
                f'models={name!r}: the attribute {field.name} of its module, {shown:.80}, cannot be hashed; {hint}'
            ) from None


def predict(module: nn.Module, params: Any, z_NxE: jax.Array, position: Any = None, length: Any = None) -> jax.Array:
    """Predictions (N,), or (N, C) of C numbers, or without N at one position, with as little work as possible.

    Args:
        module: the model.
        params: its parameters, {'params': …}.
        z_NxE: an encoded prompt.
        position: index of the position, may be traced; None for all positions.
        length: n, of a prompt that ends after n ≤ N tokens, may be traced. No model can read the padding, which is zero
            here, and a model that takes `length` can leave it out.
    """
    apply: Callable[..., Any] = module.apply  # Flax's own type also allows for collections that change
    known = inspect.signature(type(module).__call__).parameters
    given: dict[str, Any] = {}
    if length is not None:
        z_NxE = jnp.where(jnp.arange(z_NxE.shape[0])[:, None] < length, z_NxE, 0.0)
        if 'length' in known:
            given['length'] = length
    if position is None:
        return apply(params, z_NxE, **given)
    if 'position' in known:
        return apply(params, z_NxE, position=position, **given)
    return apply(params, z_NxE, **given)[position]


def _of_params(module: nn.Module) -> Callable[[jax.Array, jax.Array], Any]:
    """The function from a key to predictions with the parameters that it draws."""
    return lambda key, z_NxE: predict(module, {'params': module.init(key, z_NxE).get('params', {})}, z_NxE)


@functools.lru_cache(maxsize=256)
def check_output(name: str, module: nn.Module, task: Any) -> None:
    """Raises ValueError unless a model makes N, or N × C, floats of a prompt; nothing is computed."""
    key, z_NxE = streams.abstract_key(), jax.ShapeDtypeStruct((task.seq_len, task.embedding_dim), jnp.float32)
    try:
        # As it is used: with only the parameters, and without random numbers.
        traced, made = jax.make_jaxpr(_of_params(module), return_shape=True)(key, z_NxE)
        is_ours = function_names.is_ours(getattr(module, 'module_class', type(module)))
        again = traced if is_ours else jax.make_jaxpr(_of_params(module))(key, z_NxE)
        adapters.check_call(module, z_NxE)
        is_alike = not is_ours and _starts_alike(module, key, z_NxE)
    except flax.errors.InvalidRngError as error:
        raise ValueError(
            f'models={name!r}: asks for random numbers when it predicts{failures.users_line(error)}; '
            'a model is a function of parameters and prompt alone: leave out Dropout and the like'
        ) from error
    except (flax.errors.ScopeCollectionNotFound, flax.errors.ModifyScopeVariableError) as error:
        raise ValueError(
            f'models={name!r}: keeps a state beside its parameters{failures.users_line(error)}; '
            'a model is a function of parameters and prompt alone: take LayerNorm in place of BatchNorm'
        ) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ValueError(f'models={name!r}: {failures.reason(error)}') from error
    if again is not traced and fingerprints.of(traced) != fingerprints.of(again):
        raise ValueError(f'models={name!r}: {failures.FROZEN}')
    if is_alike:
        raise ValueError(
            f'models={name!r}: draws its first parameters from a key of its own, so all lanes would start alike: '
            'draw them from the key, or rngs, that it is given'
        )
    shape: Any = getattr(made, 'shape', None)
    dtype: Any = getattr(made, 'dtype', None)
    wanted = (task.seq_len,) if task.num_outputs == 1 else (task.seq_len, task.num_outputs)
    if shape != wanted or not jnp.issubdtype(dtype, jnp.floating):
        found = f'{dtype} of shape {shape}' if dtype is not None else f'a {type(made).__name__}'
        what = 'one' if task.num_outputs == 1 else f'task.num_outputs={task.num_outputs}'
        raise ValueError(
            f'models={name!r}: must predict floats of shape {wanted}, {what} for each position, not {found}'
        )


def _starts_alike(module: nn.Module, key: Any, z_NxE: Any) -> bool:
    """Whether a module's first parameters are random, and none depends on the key of its lane."""
    traced = jax.make_jaxpr(lambda key, z_NxE: module.init(key, z_NxE).get('params', {}))(key, z_NxE)
    drawn, (needs_key, _) = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars))
    return not needs_key and 'random_bits' in str(drawn)


def is_closed_form(module: nn.Module) -> bool:
    """Whether a module is a baseline that is fitted in closed form, see `baselines`."""
    return hasattr(module, 'closed_form')
