"""Everything about the package is in pyproject.toml; this file lets `python setup.py` and older tools find it."""

import setuptools

setuptools.setup()
