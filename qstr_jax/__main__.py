"""`python -m qstr_jax` runs a sweep and draws it: see `qstr_jax.cli.sample_complexity`."""

from qstr_jax.cli.sample_complexity import main

if __name__ == '__main__':
    main()
