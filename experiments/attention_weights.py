r"""Figure 2: trained |W_Q^T W_K| beside Lemma 11's construction, blocks marked, for several q and both forms.

python -m experiments.attention_weights --config=experiments/configs/attention_weights.py --workdir=results/figure2
"""

import os
import pathlib

import pandas as pd
from ml_collections import config_dict

from qstr_jax import analysis, plots, sweeps
from qstr_jax.analysis import combinations, formats
from qstr_jax.cli import base, command_line, sample_complexity
from qstr_jax.storage import files
from qstr_jax.theory import portraits

FORM = 'transformer_attention'


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Writes a figure per form of attention, q and further settings, of the first seed, and a table of all heads.

    Args:
        workdir: the results directory.
        config: of the sweep, whose parameters were kept.
    """
    folder, tables = pathlib.Path(workdir), []
    found = portraits.load(base.to_sweep(config), folder)
    rows = pd.DataFrame([one.row for one in found])
    further = [name for name in analysis.curve_columns(rows) if name not in ('model', FORM, 'sparsity', 'seq_len')]
    for one in found:
        point = {name: one.row[name] for name in further if not pd.isna(one.row[name])}
        tables.append(portraits.table([one]).assign(attention=one.row[FORM], **point))
        if one.row['seed'] == 0:
            lengths = {'seq_len': one.row['seq_len']} if rows['seq_len'].nunique() > 1 else {}
            draw_one(folder, one, combinations.suffix({**lengths, **point}))
    table = pd.concat(tables, ignore_index=True)
    table = table[['attention', *further, *table.columns.drop(['attention', *further])]]
    text = formats.markdown(table.sort_values(['attention', 'q'], ascending=[False, True], kind='stable'))
    files.write_text(folder / 'table.md', text)
    print(text)


def draw_one(folder: pathlib.Path, portrait: portraits.Portrait, suffix: str = '') -> None:
    """Trained heads and the construction, in the linear colour scale and in the paper's, which hides small entries.

    Args:
        folder: where the figures go.
        portrait: of one lane.
        suffix: a part of the files' names that tells further settings.
    """
    form = portrait.row[FORM]
    for scale, gamma in (('', 1.0), ('_gamma2', 2.0)):
        notes = (
            'colour: squares of the entries, as in the paper' if gamma != 1 else 'colour: size of the entries',
            'share: of the squared entries, in the frame', 'cosine: of the framed block to the identity',
        )  # fmt: skip
        figure = plots.query_key_matrices(
            portraits.panels(portrait), portrait.task, title=portraits.title(portrait, form), notes=notes,
            gamma=gamma, columns=2,
        )  # fmt: skip
        plots.save(figure, folder / f'{form}_q{portrait.task.sparsity}{suffix}{scale}')


def check(config: config_dict.ConfigDict, sweep: sweeps.Sweep) -> None:
    """Raises ValueError unless the parameters of Transformers are kept, which are what is drawn.

    Args:
        config: of `draw`.
        sweep: what will be run.
    """
    if not sweep.save_params:
        raise ValueError('save_params=False: the trained parameters are what is drawn, take save_params=True')
    if sweep.models != ('transformer',):
        raise ValueError(f'models={",".join(sweep.models)}: attention is drawn, take transformer alone')


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw, check))


if __name__ == '__main__':
    main()
