"""Modules of Equinox, of Flax's NNX and of PyTorch as Linen modules, so that they run in vmapped lanes like ours."""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import flax.core
import flax.errors
import jax
from flax import linen as nn
from jax.interpreters import partial_eval


class _Adapted(nn.Module):
    """A module of another library, kept as class and arguments, since these can be hashed and the module cannot."""

    module_class: Callable[..., Any]
    args: tuple = ()
    settings: tuple[tuple[str, Any], ...] = ()

    def make(self, **key: Any) -> Any:
        """The module of the other library."""
        return self.module_class(*self.args, **dict(self.settings), **key)


class EquinoxModule(_Adapted):
    """Parameters are the floating-point arrays of the Equinox module, by their paths."""

    @nn.compact
    def __call__(self, z_NxE: jax.Array) -> jax.Array:
        """Its outputs, as of `models.predict`."""
        equinox = _library('equinox', 'make install EXTRA=adapters')

        def draw(key: jax.Array) -> dict[str, jax.Array]:
            arrays = equinox.filter(self.make(key=key), equinox.is_inexact_array)
            return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(arrays)}

        drawn, rest = equinox.partition(self.make(key=jax.random.key(0)), equinox.is_inexact_array)
        params = self.param('module', draw)
        arrays = jax.tree.map_with_path(lambda path, _: params[jax.tree_util.keystr(path)], drawn)
        return equinox.nn.inference_mode(equinox.combine(arrays, rest))(z_NxE)


class TorchModule(_Adapted):
    """Parameters are those of the PyTorch module, drawn by its own initialisation, which torchax runs in JAX."""

    @nn.compact
    def __call__(self, z_NxE: jax.Array) -> jax.Array:
        """Its outputs, as of `models.predict`."""
        torch, torchax = _torch()
        jax_view, torch_view, env = torchax.interop.jax_view, torchax.interop.torch_view, torchax.default_env()

        def make(key: jax.Array) -> Any:
            with env, env.override_property(prng=key), torch.no_grad(), torch.device('jax'):
                return self.make().train(False)

        params = self.param('module', lambda key: jax_view(dict(make(key).named_parameters())))
        module = make(jax.random.key(0))  # its weights are replaced, so XLA drops them
        # Tensors that it makes are JAX's as well; shapes are promoted as PyTorch does.
        with env, torch.no_grad(), torch.device('jax'), jax.numpy_rank_promotion('allow'):
            return jax_view(torch.func.functional_call(module, torch_view(params), (torch_view(z_NxE),)))


def from_nnx(module_class: Callable[..., Any], /, *args: Any, **settings: Any) -> nn.Module:
    """An NNX module as a Linen module; `module_class(*args, **settings, rngs=rngs)` makes it.

    Only what is an `nnx.Param` is drawn for each lane and trained. All else, such as random features or running means,
    is made from one fixed key, the same for all lanes, and stays as it is. The module is in evaluation mode: it trains
    without dropout.

        @models.register('my_mixer')
        def my_mixer(task, width: int = 32):
            return models.from_nnx(MyMixer, task.embedding_dim, width=width)

    Args:
        module_class: of a module that maps one encoded prompt z (N, D_e) to predictions (N,).
        *args: its arguments: numbers, names or tuples.
        **settings: its arguments by name.

    Raises:
        ValueError: a module in place of its class, or an argument that cannot be hashed.
    """
    from flax import nnx  # takes 0.3 seconds, and only this needs it

    kept: Mapping[str, Any] = flax.core.FrozenDict(settings)
    _check('from_nnx', nnx.Module, module_class, args, kept)
    return nnx.bridge.ToLinen(_nnx_module, args=(module_class, *args), kwargs=kept)


def check_call(module: nn.Module, z_NxE: Any) -> None:
    """Raises Flax's errors if an NNX module draws random numbers, or changes a state, when it predicts.

    Linen does so by itself. NNX would take the same numbers for all prompts, and forget the state.
    """
    if getattr(module, 'nnx_class', None) is not _nnx_module:
        return
    from flax import nnx

    adapted: Any = module
    changed: list[Any] = []

    def predict(key: jax.Array, z_NxE: jax.Array) -> Any:
        made = _nnx_module(*adapted.args, **adapted.kwargs, rngs=nnx.Rngs(0))
        others = nnx.state(made, nnx.Not(nnx.RngState))
        before = {path: leaf.get_value() for path, leaf in nnx.to_flat_state(others)}
        keys = nnx.state(made, nnx.RngKey)
        nnx.update(made, jax.tree.map(lambda old: jax.random.split(key, old.shape), keys))
        prediction = made(z_NxE)
        after = nnx.to_flat_state(nnx.state(made, nnx.Not(nnx.RngState)))
        changed.extend(path for path, leaf in after if path in before and leaf.get_value() is not before[path])
        return prediction

    traced = jax.make_jaxpr(predict)(jax.eval_shape(jax.random.key, 0), z_NxE)
    if changed:
        raise flax.errors.ModifyScopeVariableError('state', changed[0][-1], '/'.join(map(str, changed[0][:-1])))
    _, (needs_key, _) = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars))
    if needs_key:
        raise flax.errors.InvalidRngError('an NNX module needs random numbers in its call')


def _check(adapter: str, base: type, module_class: Any, args: tuple, settings: Mapping[str, Any]) -> None:
    """Raises ValueError for a module in place of its class, and for arguments that programs cannot be known by."""
    if isinstance(module_class, base) or not callable(module_class):
        raise ValueError(f'models.{adapter}: give the class and its arguments, not a module')
    for name, value in (*((f'argument {i}', value) for i, value in enumerate(args, start=1)), *settings.items()):
        try:
            hash(value)
        except TypeError:
            shown = ' '.join(repr(value).split())
            what = 'a tuple' if isinstance(value, list) else 'numbers, names or tuples of these'
            raise ValueError(f'models.{adapter}: {name}={shown:.80}: give {what}') from None


def _nnx_module(module_class: Callable[..., Any], /, *args: Any, rngs: Any, **settings: Any) -> Any:
    """The NNX module in evaluation mode; streams besides that of parameters, as of dropout, start from its key."""
    from flax import nnx

    if 'default' not in rngs:
        rngs = nnx.Rngs(rngs['params'].key.get_value(), params=rngs['params'].key.get_value())
    module = module_class(*args, **settings, rngs=rngs)
    module.set_attributes(deterministic=True, use_running_average=True, raise_if_not_found=False)
    return module


def from_equinox(module_class: Callable[..., Any], /, *args: Any, **settings: Any) -> nn.Module:
    """An Equinox module as a Linen module; `module_class(*args, **settings, key=key)` makes it.

    The module is in inference mode: it trains without dropout.

        @models.register('my_mixer')
        def my_mixer(task, width: int = 32):
            return models.from_equinox(MyMixer, task.embedding_dim, width=width)

    Args:
        module_class: of a module that maps one encoded prompt z (N, D_e) to predictions (N,).
        *args: its arguments: numbers, names or tuples.
        **settings: its arguments by name.

    Raises:
        ValueError: Equinox is not installed, a module in place of its class, or an argument that cannot be hashed.
    """
    equinox = _library('equinox', 'make install EXTRA=adapters')
    _check('from_equinox', equinox.Module, module_class, args, settings)
    return EquinoxModule(module_class, args, tuple(sorted(settings.items())))


def from_torch(module_class: Callable[..., Any], /, *args: Any, **settings: Any) -> nn.Module:
    """A PyTorch module as a Linen module, by torchax; `module_class(*args, **settings)` makes it.

    The module is in evaluation mode: it trains without dropout, and its buffers stay as they are made.

        @models.register('my_mixer')
        def my_mixer(task, width: int = 32):
            return models.from_torch(MyMixer, task.embedding_dim, width=width)

    Args:
        module_class: of a `torch.nn.Module` that maps one encoded prompt z (N, D_e) to predictions (N,).
        *args: its arguments: numbers, names or tuples.
        **settings: its arguments by name.

    Raises:
        ValueError: torch or torchax is not installed, a module in place of its class, or an argument that cannot be
            hashed.
    """
    torch, _ = _torch()
    _check('from_torch', torch.nn.Module, module_class, args, settings)
    return TorchModule(module_class, args, tuple(sorted(settings.items())))


def _library(name: str, install: str) -> Any:
    """Imports an optional library."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ValueError(f'models.from_{name.removesuffix("ax")}: {name} is not installed; {install}') from None


@functools.cache
def _torch() -> tuple[Any, Any]:
    """torch and torchax 0.0.13, which asks torch for operations on named dimensions that torch 2.13 no longer has."""
    install = 'pip install torch==2.13.0, then make install EXTRA=adapters'
    torch = _library('torch', install)
    packet = torch._ops.OpOverloadPacket
    found = packet.__getattr__

    def lenient(self: Any, name: str) -> Any:
        return None if 'name' in name.lower() and not name.startswith('_') else found(self, name)

    with mock.patch.object(packet, '__getattr__', lenient):
        torchax = _library('torchax', install)
        env = torchax.default_env()
    # Tensors hold their environment, and modules such as TransformerEncoder copy their layers deeply.
    type(env).__deepcopy__ = lambda self, memo: self
    return torch, torchax
