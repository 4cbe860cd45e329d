r"""Test loss against training samples for several values of a setting, such as the heads, beside the floors of each.

python -m experiments.heads --config=experiments/configs/heads.py --workdir=results/heads
"""

import os
import pathlib

from ml_collections import config_dict

from qstr_jax import analysis, plots
from qstr_jax.analysis import combinations, final_losses, formats
from qstr_jax.cli import command_line, sample_complexity
from qstr_jax.storage import files, results
from qstr_jax.theory import floors_of_rows


def draw(workdir: str | os.PathLike, config: config_dict.ConfigDict) -> None:
    """Writes figure and table of the losses, one of each per model and per combination of further settings.

    Args:
        workdir: the results directory.
        config: `config.x` is the setting that tells the lines apart.
    """
    folder, x = pathlib.Path(workdir), config.x
    rows, curves = results.load(folder), results.load_curves(folder)
    for point, chosen in combinations.combinations(rows, (x,)):
        suffix = combinations.suffix(point)
        floors = [floors_of_rows.head_floor(row) for row in chosen.to_dict('records')]
        table = final_losses.final_losses(chosen, x, floors)
        figure = plots.training_curves_by_setting(
            curves[curves['cell'].isin(chosen['cell']) & combinations.matches(curves, point)], x,
            floors=dict(zip(table[x], table['floor'], strict=True)),
            title=combinations.title(config.title, chosen, point), notes=combinations.notes(config.notes, chosen),
        )  # fmt: skip
        plots.save(figure, folder / f'heads{suffix}')
        text = formats.markdown(table.rename(columns={x: analysis.heading(x)}))
        files.write_text(folder / f'table{suffix}.md', text)
        print(f'{text}figure: {folder / f"heads{suffix}.png"}')


def main() -> None:
    """The binary."""
    command_line.launch(lambda: sample_complexity.run(draw))


if __name__ == '__main__':
    main()
