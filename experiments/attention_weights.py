r"""Figure 2: trained |W_Q^T W_K| beside Lemma 11's construction, blocks marked, for several q and both forms.

python -m experiments.attention_weights --config=experiments/configs/attention_weights.py --workdir=results/figure2
"""

import dataclasses
import pathlib

import pandas as pd

from experiments import command_line, sample_complexity, study
from qstr_jax import plots
from qstr_jax.analysis import formats
from qstr_jax.storage import files
from qstr_jax.theory import portraits


def draw(workdir, config):
    """A figure per form of attention and q, of the first seed, and a table of all heads."""
    workdir, tables = pathlib.Path(workdir), []
    settings = sample_complexity.settings_from(config)
    for name, point in study.points(config).items():
        sweep = dataclasses.replace(settings, **point)
        found = portraits.load(sweep, workdir / name)
        tables.append(portraits.table(found).assign(attention=sweep.attention))
        for one in found:
            if one.row['seed'] == 0:
                draw_one(workdir, one, sweep.attention)
    table = pd.concat(tables, ignore_index=True)
    table = table[['attention', *table.columns.drop('attention')]]
    files.write_text(workdir / 'table.md', formats.markdown(table))
    print(formats.markdown(table))


def draw_one(workdir, portrait, form):
    """Trained heads and the construction, in the linear colour scale and in the paper's, which hides small entries."""
    title = portraits.title(portrait, form)
    for suffix, gamma in (('', 1.0), ('_gamma2', 2.0)):
        notes = (
            'colour: squares of the entries, as in the paper' if gamma != 1 else 'colour: size of the entries',
            'share: of the squared entries, in the frame', 'cosine: of the framed block to the identity',
        )  # fmt: skip
        figure = plots.query_key_matrices(portraits.panels(portrait), portrait.task, title, notes, gamma, columns=2)
        plots.save(figure, workdir / f'{form}_q{portrait.task.sparsity}{suffix}')


def run():
    """Trains what is missing of --config in --workdir, and draws it.

    Raises:
        ValueError: parameters would not be kept, which are what is drawn; before any work.
    """
    if not sample_complexity.settings_from(sample_complexity.CONFIG.value).save_params:
        raise ValueError('save_params=False: the trained parameters are what is drawn, take save_params=True')
    study.main(draw)


if __name__ == '__main__':
    command_line.launch(run)
