r"""Checks the links of the built documentation, and that it loads nothing from elsewhere.

python -m experiments.site --output=site
"""

import pathlib

from experiments import command_line, runtime
from qstr_jax.report import site_links


def run() -> None:
    """Checks the pages of --output.

    Raises:
        ValueError: a link leads nowhere, or something is loaded from elsewhere.
    """
    folder = pathlib.Path(runtime.output('site'))
    found = site_links.problems(folder)
    print('\n'.join(found))
    if found or not (folder / 'index.html').exists():
        raise ValueError(f'--output={folder}: {len(found)} bad links in the pages')
    print(f'{len(list(folder.rglob("*.html")))} pages: all links lead somewhere, nothing is loaded from elsewhere')


if __name__ == '__main__':
    command_line.launch(run, required=None)
