"""What mixes tokens: one mixer a file, all in the same backbone; each is also an architecture of the same name.

A mixer is causal unless it sees all tokens by itself; `bidirectional` runs it in both directions. 1STR asks for tokens
that stand later, so causal ones belong to causal tasks.
"""

import importlib
import pkgutil

from qstr_jax.models.mixers.mixer import names, parsed, spec
from qstr_jax.models.mixers.registered import register

__all__ = ['names', 'parsed', 'register', 'spec']

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f'{__name__}.{_module.name}')
