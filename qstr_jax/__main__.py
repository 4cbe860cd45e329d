"""`python -m qstr_jax` runs a sweep and draws it: see `qstr_jax.cli.sample_complexity`.

`python -m qstr_jax compare` puts an architecture beside all others: see `qstr_jax.cli.compare`.
"""

import importlib
import sys

if __name__ == '__main__':
    is_compare = sys.argv[1:2] == ['compare']
    if is_compare:
        del sys.argv[1]
    importlib.import_module('qstr_jax.cli.compare' if is_compare else 'qstr_jax.cli.sample_complexity').main()
