r"""Checks the links of the built documentation, and that it loads nothing from elsewhere.

python -m experiments.site --output=site
"""

import pathlib

from qstr_jax.cli import command_line, runtime
from qstr_jax.report import site_links


def run() -> None:
    """Checks the pages of --output."""
    folder = pathlib.Path(runtime.output('site'))
    if not (folder / 'index.html').exists():
        raise ValueError(f'--output={folder}: there is no index.html, so no documentation; `make docs` builds it')
    found = site_links.problems(folder)
    if found:
        print('\n'.join(found))
        raise ValueError(f'--output={folder}: {len(found)} bad links in the pages')
    print(f'{len(list(folder.rglob("*.html")))} pages: all links lead somewhere, nothing is loaded from elsewhere')


if __name__ == '__main__':
    command_line.launch(run, used=('output',))
