"""Every setting of a sweep as a config, unset: the config of `python -m qstr_jax`; other configs set a few.

A setting is there by its name (`config.threshold`), in the group of its kind (`config.task`, `config.model`,
`config.learner`), and in the group of the thing it belongs to (`config.rnn.width`). Several values make an axis.
"""

import inspect
import pathlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ml_collections import config_dict

from qstr_jax import failures, sweeps
from qstr_jax.settings import checks, registry
from qstr_jax.storage import names
from qstr_jax.sweeps.scopes import ALIASES
from qstr_jax.sweeps.tune import OPTIONS

# Arguments of `Sweep` and their defaults.
SWEEP = {
    name: parameter.default
    for name, parameter in inspect.signature(sweeps.Sweep.__init__).parameters.items()
    if name not in ('self', 'task', 'axes', 'tune', 'settings')
}


def get_config(plugins: tuple[str, ...] = (), **settings: Any) -> config_dict.ConfigDict:
    """All that can be set, and what the binaries draw; with some settings."""
    import_plugins(plugins)
    config = config_dict.ConfigDict()
    for name, default in SWEEP.items():
        config[name] = unset() if default is None else default
    schemas = {kind: _settings_of(kind) for kind in registry.SCOPES}
    for name in dict.fromkeys([*schemas['task'], *schemas['learner'], *ALIASES]):
        config[name] = unset()
    for kind, schema in schemas.items():
        config[kind] = config_dict.ConfigDict({name: unset() for name in schema})
    config.task.name = 'qstr'
    for name, entry in registry.entries().items():
        if entry.schema and entry.kind != 'task':
            config[name] = config_dict.ConfigDict({setting: unset() for setting in entry.schema})
    # Settings to tune, each 'auto' or several values, and how; see `sweeps.tune.Tune`.
    config.tune = config_dict.ConfigDict({name: unset() for name in (*schemas['learner'], *OPTIONS)})
    config.axes = ''  # further axes, as "{'rnn.width': (64, 128)}"
    config.plugins = plugins
    config.x = 'seq_len'  # the column that figures and tables run over
    config.title = ''  # above the figure; '{threshold}' and other columns in braces stand for their values
    config.notes = ()  # small print under the figure, with braces as in the title; '{num_seeds}' counts seeds
    # Published values to draw beside ours, as (model, N, samples), and the values that the rows must have for that.
    config.published_samples = ()
    config.published_for = config_dict.ConfigDict()
    # Heat map: the columns on its axes (x, y), in its panels and above it (top), and the published value of each, whose
    # cell gets a frame.
    config.heatmap = config_dict.ConfigDict({'x': '', 'y': '', 'panels': '', 'top': ''})
    config.published = config_dict.ConfigDict()
    if isinstance(settings.get('task'), str):  # as `Sweep` takes it
        settings['task'] = {'name': settings['task']}
    config.update(settings)
    return config


def unset() -> Any:
    """A field without a value. It takes any value, which the setting itself checks."""
    return config_dict.placeholder(object)


def check_part(part: str, folders: Mapping[str, Sequence[str]]) -> None:
    """Checks that a part is one of those that run into an exhibit's results directories."""
    checks.choice('part', part, [name for parts in folders.values() for name in parts])


def _settings_of(kind: str) -> list[str]:
    """Names of the settings of all things of a kind."""
    return list(dict.fromkeys(n for entry in registry.entries().values() if entry.kind == kind for n in entry.schema))


def import_plugins(modules: Any) -> None:
    """Imports modules that register something."""
    for name in modules.split(',') if isinstance(modules, str) else modules:
        for module in name.split(','):
            path = pathlib.PurePath(module.strip())
            if path.suffix == '.py' or len(path.parts) > 1:
                where = f', with PYTHONPATH={path.parent}' if len(path.parts) > 1 else ''
                raise ValueError(f'plugins={module!r}: give the name of the module, {path.stem}{where}')
            failures.import_plugin(module.strip())


def to_sweep(config: config_dict.ConfigDict, typed: Mapping[str, Any] = MappingProxyType({})) -> sweeps.Sweep:
    """The sweep that a config describes, without settings of what it leaves out.

    What was `typed` on the command line stays, so that `cells_of` refuses what would be ignored.
    """
    is_config = isinstance(config, (config_dict.ConfigDict, dict))
    missing = [name for name in ('plugins', 'axes', *SWEEP) if not is_config or name not in config]
    if missing:
        raise ValueError(
            f'--config is not of a sweep, it has no {", ".join(missing[:3])}: start from qstr_jax.cli.base'
        )
    import_plugins(config.plugins)
    settings: dict[str, Any] = {}
    drawn = ('axes', 'plugins', 'x', 'title', 'notes', 'published_samples', 'published_for', 'heatmap', 'published')
    for name in config:
        if name in drawn:
            continue
        value = config[name]
        if isinstance(value, config_dict.ConfigDict):
            value = {key: one for key, one in value.items() if one is not None}
            if not value and name in (*registry.SCOPES, *registry.entries()):
                continue
        if value is not None:
            settings[name] = value
    sweep = sweeps.Sweep(**settings, axes=parsed_axes(config.axes))
    return sweep.without_unused({*typed, *parsed_axes(typed.get('axes', ''))})


def check_drawn(config: config_dict.ConfigDict, cells: Sequence[sweeps.Cell]) -> None:
    """Checks the columns that figures and tables run over."""
    known = dict.fromkeys(name for cell in cells for name, _ in cell.columns)
    known |= dict.fromkeys(name for cell in cells for name in cell.lanes[0]._fields)
    checks.choice('x', config.x, known)
    drawn = [(f'heatmap.{name}', config.heatmap[name]) for name in ('x', 'y', 'panels') if config.heatmap[name]]
    drawn += [(group, column) for group in ('published', 'published_for') for column in config[group]]
    for name, column in drawn:
        checks.choice(name, column, known)
    axes = [str(config.heatmap[name]) for name in ('x', 'y')]
    if any(config.heatmap.values()) and (not all(axes) or axes[0] == axes[1]):
        raise ValueError(f'heatmap.x={axes[0]!r}, heatmap.y={axes[1]!r}: a heat map needs two columns')
    for name, text in (('title', config.title), *(('notes', note) for note in _several(config.notes))):
        if not isinstance(text, str) or not names.is_text(text):
            raise ValueError(f'{name}={text!a}: must be text in UTF-8')
    for point in _several(config.published_samples):
        kinds: tuple[Any, ...] = (str, int, (int, float))
        is_triple = isinstance(point, (tuple, list)) and len(point) == 3
        if not is_triple or not all(map(isinstance, point, kinds)):
            raise ValueError(f'published_samples={point!r}: give triples of model, N and samples')


def _several(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def parsed_axes(text: str, name: str = 'axes') -> dict[str, Any]:
    """Settings that are written as a dict of names and values; none for ''."""
    try:
        axes = checks.literal(text) if text else {}
    except ValueError:
        axes = None
    if not isinstance(axes, dict) or not all(isinstance(name, str) for name in axes):
        raise ValueError(f'{name}={text!r}: give names and values, as {{"rnn.width": 64}}')
    return axes


def shrink_search(config: config_dict.ConfigDict, **more: Any) -> config_dict.ConfigDict:
    """Shrinks a search for n* to seconds, for the tests; `more` are further settings of it."""
    config.update(max_steps=60, check_every=30, threshold=0.6, max_samples=64, resolution=0.5, test_samples=100)
    config.update(validation_samples=50, num_seeds=2)
    config.update(more)
    return config


def shrink_tuned(config: config_dict.ConfigDict, **more: Any) -> config_dict.ConfigDict:
    """Shrinks a tuned sweep to seconds, for the tests; `more` are further settings of it."""
    config.update(models=('ffn',), num_seeds=2, ffn={'widths': (32,)})
    # As many lanes choose as are chosen for, so that both run the same program.
    config.tune.update(learning_rate=(3e-3, 1e-2), num_seeds=1)
    config.update(test_samples=100, max_samples=6400)
    ease(config)
    config.update(more)
    return config


def ease(config: config_dict.ConfigDict) -> None:
    """Sets a threshold that every lane reaches at its first evaluation, so that a search is short."""
    config.threshold = 1.0 if config.threshold_on == 'error_rate' else 10.0
