r"""Test loss against training samples for several numbers of heads, or encoding dimensions; the floors beside them.

python -m experiments.heads --config=experiments/configs/heads.py --workdir=results/heads
"""

import functools
import pathlib

from experiments import command_line, study
from qstr_jax import plots, studies
from qstr_jax.analysis import formats
from qstr_jax.storage import files
from qstr_jax.theory import floors

SYMBOLS = {'num_heads': 'H', 'encoding_dim': 'd_e'}


def floor_of(row):
    """The floor of one lane's test loss; 0 where the task is not Proposition 3's."""
    if (row['link'], row['indices'], row['tokens']) != ('norm2', 'half', 'half'):
        return 0.0
    return floors.head_floor(int(row['transformer_num_heads']), int(row['sparsity']), int(row['token_dim']))


def last_losses(rows, setting):
    """Test loss at the end of the budget by value of a setting: mean, smallest, largest, lanes and floor."""
    rows = rows.assign(floor=rows.apply(floor_of, axis=1))
    table = rows.groupby(setting).agg(
        lanes=('seed', 'size'),
        samples=('num_samples', 'max'),
        mean=('test_loss', 'mean'),
        smallest=('test_loss', 'min'),
        largest=('test_loss', 'max'),
        floor=('floor', 'first'),
    )
    return table.reset_index()


def draw(workdir, config):
    """Writes the figure and the table of final losses."""
    if len(config.axes) != 1:
        raise ValueError(f'axes={tuple(config.axes)}: one setting can be drawn; experiments.sensitivity takes several')
    (setting,) = config.axes
    workdir = pathlib.Path(workdir)
    column = {'num_heads': 'transformer_num_heads'}.get(setting, setting)
    table = last_losses(studies.load(workdir), column)
    figure = plots.loss_by_setting(
        studies.load_curves(workdir), setting, dict(zip(table[column], table['floor'], strict=True)),
        config.title, tuple(config.notes), SYMBOLS.get(setting, ''),
    )  # fmt: skip
    plots.save(figure, workdir / 'heads')
    text = formats.markdown(table.rename(columns={column: SYMBOLS.get(setting, setting)}))
    files.write_text(workdir / 'table.md', text)
    print(f'{text}figure: {workdir / "heads.png"}')


if __name__ == '__main__':
    command_line.launch(functools.partial(study.main, draw))
