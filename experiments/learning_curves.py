r"""Learners on a fixed sample: test loss against n, or n* against N; runs a sweep, leaves rows, figures and tables.

python -m experiments.learning_curves --config=experiments/configs/n_star.py --workdir=results/n_star \
    --config.seq_lens=8,16 --config.num_seeds=5
"""

import pathlib

from experiments import command_line, sample_complexity
from qstr_jax import analysis, plots
from qstr_jax.analysis import floors, selection, table1
from qstr_jax.storage import files, results


def draw(workdir, config):
    """Writes figures and tables of a results directory: one setting per point, chosen on validation prompts."""
    workdir = pathlib.Path(workdir)
    rows = results.load(workdir)
    if rows.empty:  # an early share of a sweep that had nothing to run
        return
    chosen = selection.select(rows[rows['outcome'] != 'diverged'])
    is_search = bool(rows['is_search'].any())
    table = selection.sensitivity(rows, value='samples_to_threshold' if is_search else 'test_loss')
    files.write_text(workdir / 'sensitivity.md', table.to_markdown(index=False, floatfmt='.4g') + '\n')
    named = selection.name_curves(chosen)
    if is_search:
        draw_scaling(workdir, named, config)
    else:
        draw_losses(workdir, named, config)
    if 'theorem6_floor' in rows.columns:
        draw_floor(workdir, named, config)


def draw_scaling(workdir, rows, config):
    """n* against N or q, and which power of N or of log N it is."""
    figure = plots.scaling(rows, config.title, tuple(config.notes), config.x)
    paths = plots.save(figure, workdir / 'figure')
    table = analysis.table(rows, config.x)
    files.write_text(workdir / 'table.md', table + '\n')
    if config.x == 'seq_len':
        laws = table1.growth(rows)
        files.write_text(workdir / 'growth.md', laws.to_markdown(index=False, floatfmt='.3g') + '\n')
        table += f'\n{laws.round(2).to_string(index=False)}'
    print(f'{table}\nfigure: {paths[1]}')


def draw_losses(workdir, rows, config):
    """Test loss against n."""
    figure = plots.learning_curves(rows, config.title, tuple(config.notes))
    paths = plots.save(figure, workdir / 'learning_curves')
    losses = rows.pivot_table(index=['task', 'seq_len', 'model'], columns='num_samples', values='test_loss')
    files.write_text(workdir / 'table.md', losses.reset_index().to_markdown(index=False, floatfmt='.3g') + '\n')
    print(f'{losses.round(3).to_string()}\nfigure: {paths[1]}')


def draw_floor(workdir, rows, config):
    """Theorem 6's floor under the runs."""
    rows = floors.with_floor(rows)
    paths = plots.save(plots.against_floor(rows, config.title, tuple(config.notes)), workdir / 'floor')
    table = floors.floor_table(rows)
    files.write_text(workdir / 'floor.md', table.to_markdown(index=False, floatfmt='.3g') + '\n')
    print(f'{table.round(3).to_string()}\nfigure: {paths[1]}')


if __name__ == '__main__':
    command_line.launch(lambda: sample_complexity.run(draw))
