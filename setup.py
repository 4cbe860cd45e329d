"""Installs qstr_jax; `pip install -e .[test]` is what the Makefile does."""

import pathlib
import re

import setuptools

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(r"__version__ = '(.+)'", (ROOT / 'qstr_jax/__init__.py').read_text()).group(1)

setuptools.setup(
    name='qstr_jax',
    version=VERSION,
    description='Sample complexity of Transformers, RNNs and FFNs on sparse retrieval, in JAX',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    # The notebooks' badges and install cells name it too; tests/test_notebooks.py keeps them in step.
    url='https://github.com/qstr-jax/qstr_jax',
    python_requires='>=3.11',
    packages=setuptools.find_packages(include=['qstr_jax*', 'experiments*']),
    package_data={'qstr_jax': ['py.typed', 'report/assets/*']},
    # Python 3.11 ends at jax 0.10; newer Pythons get the newer releases of the same line.
    install_requires=[
        'jax>=0.10',
        'flax>=0.12',
        'optax>=0.2.5',
        'chex>=0.1.90',
        'einops>=0.8',
        'ml_collections>=1.1',
        'orbax-checkpoint>=0.11.30',
        'absl-py>=2.1',
        'numpy>=2.0',
        'scipy>=1.13',
        'pandas>=2.2',
        'pyarrow>=17',
        'matplotlib>=3.9',
        'pillow>=10',
        'vl-convert-python>=1.9',
        'tabulate>=0.9',
        'tqdm>=4.66',
        'filelock>=3.15',
        'etils[epath]>=1.9',
        'jsonschema>=4.23',
    ],
    extras_require={
        'cpu': [],
        'cuda': ['jax[cuda12]>=0.10'],
        'tpu': ['jax[tpu]>=0.10'],
        'notebooks': ['jupyterlab>=4', 'ipykernel>=6', 'nbclient>=0.10', 'nbformat>=5.10'],
        'test': [
            'pytest>=8',
            'pytest-xdist>=3.6',
            'hypothesis>=6.100',
            'ruff>=0.8',
            'mypy>=2.0',
            'submitit>=1.5',
            'ipykernel>=6',
            'nbclient>=0.10',
            'nbformat>=5.10',
            'playwright>=1.50',
        ],
        'launch': ['submitit>=1.5'],
        # One version, so that speeds are compared with the same thing everywhere.
        'benchmark': ['torch==2.13.0'],
    },
)
