"""qstr_jax: how many samples sparse retrieval costs each architecture, and the theorems beside it.

>>> import tempfile
>>> import qstr_jax
>>> sizes = {'num_seeds': 1, 'ffn': {'widths': (8,)}, 'test_samples': 100, 'max_samples': 1280}
>>> sweep = qstr_jax.Sweep(models='ffn', seq_lens=2, **sizes)
>>> workdir = tempfile.mkdtemp()
>>> rows = qstr_jax.run(sweep, workdir, qstr_jax.Options(progress=False))
>>> rows.outcome.tolist()
['censored']
>>> qstr_jax.load(workdir).equals(rows)
True
>>> figure = qstr_jax.plot(rows)

The names below are those that most users need; they are imported when they are first used. `qstr_jax.sweeps`, `.tasks`,
`.models`, `.learners`, `.analysis`, `.plots` and `.theory` have all the others.
"""

import importlib
from typing import TYPE_CHECKING, Any

from qstr_jax import threads

if TYPE_CHECKING:
    from qstr_jax.comparison import compare
    from qstr_jax.learners import register as register_learner
    from qstr_jax.models import register as register_model
    from qstr_jax.models.probes import register as register_probe
    from qstr_jax.outside import batches, judge
    from qstr_jax.plots import samples_against as plot
    from qstr_jax.storage.results import load, load_curves
    from qstr_jax.sweeps import Options, Sweep, load_params, run
    from qstr_jax.tasks import register as register_task
    from qstr_jax.tasks.encoders import register as register_encoder
    from qstr_jax.tasks.links import register as register_link

__version__ = '0.1.0'
__all__ = [
    'Options', 'Sweep', 'batches', 'compare', 'judge', 'load', 'load_curves', 'load_params', 'plot',
    'register_encoder', 'register_learner', 'register_link', 'register_model', 'register_probe', 'register_task',
    'run',
]  # fmt: skip

# Where each name is defined, and what it is called there.
_NAMES = {
    'Options': ('sweeps', 'Options'),
    'Sweep': ('sweeps', 'Sweep'),
    'batches': ('outside', 'batches'),
    'compare': ('comparison', 'compare'),
    'judge': ('outside', 'judge'),
    'load': ('storage.results', 'load'),
    'load_curves': ('storage.results', 'load_curves'),
    'load_params': ('sweeps', 'load_params'),
    'plot': ('plots', 'samples_against'),
    'register_encoder': ('tasks.encoders', 'register'),
    'register_learner': ('learners', 'register'),
    'register_link': ('tasks.links', 'register'),
    'register_model': ('models', 'register'),
    'register_probe': ('models.probes', 'register'),
    'register_task': ('tasks', 'register'),
    'run': ('sweeps', 'run'),
}
_MODULES = ('analysis', 'comparison', 'learners', 'models', 'outside', 'plots', 'storage', 'sweeps', 'tasks', 'theory')

threads.ensure()


def __getattr__(name: str) -> Any:
    """Imports what a name stands for when it is first used, so that `import qstr_jax` is quick and starts no JAX."""
    if name in _MODULES:
        return importlib.import_module(f'{__name__}.{name}')
    if name not in _NAMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    module, attribute = _NAMES[name]
    value = getattr(importlib.import_module(f'{__name__}.{module}'), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
