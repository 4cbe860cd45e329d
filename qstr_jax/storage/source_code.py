"""The source code that can make a program, as digests: whether it has changed since some rows were made."""

import functools
import hashlib
import os
import pathlib
import sys
import time
from typing import Any

import qstr_jax
from qstr_jax import failures
from qstr_jax.settings import registry
from qstr_jax.settings.function_names import is_ours, module_of

# When this module was imported: files that were written later may differ from the code that it runs.
_STARTED = time.time()
_PACKAGE = pathlib.Path(qstr_jax.__file__).parent
# The digest of code that cannot be read, which never counts as the same.
UNKNOWN = ''


def digests() -> dict[str, str]:
    """A digest for each loaded module of the user's, by its name, and one for all of this package.

    What registers something from outside this package is the user's wherever it lies, such as an installed plugin.
    """
    found, named = {'qstr_jax': _of_package()}, plugins()
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, '__file__', None)
        # Modules that a package makes as it runs, such as `torch.ops`, lack a whole path.
        if isinstance(path, str) and os.path.isabs(path) and (name in named or failures.is_users(path)):
            found[name] = _of_file(path)
    builders = (entry.builder for entry in registry.entries().values())
    return found | {module_of(thing): UNKNOWN for thing in builders if not has_file(thing)}


def plugins() -> list[str]:
    """The modules outside this package that have registered something, but for the one that Python was started with."""
    modules = {module_of(entry.builder) for entry in registry.entries().values() if not is_ours(entry.builder)}
    return sorted(modules - {'__main__'})


def is_same(known: Any, now: dict[str, str]) -> bool:
    """Whether all code can be read and is what it was."""
    return known == now and UNKNOWN not in now.values()


def changed(known: Any, now: dict[str, str]) -> list[str]:
    """The modules that are not what they were."""
    known = known if isinstance(known, dict) else {}
    return [name for name in now if now[name] == UNKNOWN or known.get(name) != now[name]]


def has_file(thing: Any) -> bool:
    """Whether a class or function was defined in a file: in a notebook it was not."""
    return isinstance(getattr(sys.modules.get(module_of(thing)), '__file__', None), str)


@functools.cache
def _of_package() -> str:
    paths = sorted(_PACKAGE.rglob('*.py'))
    parts = [_of_file(str(path)) for path in paths]
    names = [str(path.relative_to(_PACKAGE)) for path in paths]
    return UNKNOWN if UNKNOWN in parts else hashlib.sha256('\n'.join(names + parts).encode()).hexdigest()[:12]


def _of_file(path: str) -> str:
    try:
        file = pathlib.Path(path)
        if file.stat().st_mtime >= _STARTED:
            return UNKNOWN
        return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    except OSError:
        return UNKNOWN
