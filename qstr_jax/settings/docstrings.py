"""What docstrings say of single arguments."""

import inspect
import re

_ENTRY = re.compile(r'^\s*([a-z]\w*(?:, [a-z]\w*)*): (.*)$')


def meanings_of(thing: object) -> dict[str, str]:
    """What a docstring says about each argument, from entries 'name: text' or 'name, other: text'."""
    docs = [inspect.getdoc(base) or '' for base in reversed(thing.__mro__[:-1])] if inspect.isclass(thing) else []
    docs = docs or [inspect.getdoc(thing) or '']
    meanings: dict[str, str] = {}
    for doc in docs:
        names: list[str] = []
        for line in doc.splitlines():
            found = _ENTRY.match(line)
            if found:
                names = found[1].split(', ')
                meanings |= dict.fromkeys(names, found[2].strip())
            elif names and line.startswith('        '):
                meanings |= {name: f'{meanings[name]} {line.strip()}' for name in names}
            else:
                names = []
    return meanings
