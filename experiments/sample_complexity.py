r"""Samples to a test loss against N, q or any other setting: runs a sweep, leaves rows, figures and tables.

python -m experiments.sample_complexity --config=experiments/exhibits/quickstart.py --workdir=results/quickstart \
    --config.models=transformer,ffn --config.seq_lens=8,12

`qstr_jax.cli.sample_complexity` is its body; without this repository `python -m qstr_jax` does the same.
"""

from qstr_jax.cli.sample_complexity import main

if __name__ == '__main__':
    main()
