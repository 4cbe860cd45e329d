"""Heads: test loss against training samples for H = 1, …, 2q heads at fixed q, beside the floors of too few heads.

The task is Proposition 3's: link norm2, half of the tokens zero, t_i = (1, …, q) on the other half; no Transformer
with H < q heads, of any width and with any amount of data, falls below (1 − H/q)(1 − H/d) (theory/floors.py).
"""

import pandas as pd

from qstr_jax import analysis, plots
from qstr_jax.analysis import combinations, formats
from qstr_jax.cli import base
from qstr_jax.report import drawing
from qstr_jax.storage import results
from qstr_jax.theory import heads

ORDER = 90
QUESTION = 'Does a Transformer need q heads where the label is a norm of q tokens?'
FIGURES = {'heads/heads.png': 'Test loss against samples for one to six heads, with the floors (dashed)'}


def get_config():
    """q = 3, d = 3, N = 7, H = 1, …, 6; every lane trains for its whole budget."""
    config = base.get_config(models=('transformer',), link='norm2', seq_lens=(7,), sparsity=(3,), token_dim=3)
    config.update(indices='half', tokens='half', task_per_lane=True)
    config.threshold = 1e-9  # never reached: all lanes get the same budget
    config.update(max_samples=512_000, check_every=100, test_samples=1000)
    config.title = 'Heads: {link}, q = {sparsity}, d = {token_dim}, N = {seq_len}'
    config.update(x='transformer_num_heads', transformer={'num_heads': (1, 2, 3, 4, 5, 6)})
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.update(seq_lens=(5,), sparsity=(2,), token_dim=2, num_seeds=2)
    config.transformer.update(mlp_width=16, num_heads=(1, 2))
    config.update(max_samples=3200, check_every=10, test_samples=64)
    return config


def draw(workdir, config):
    """Writes figure and table of the losses, one of each per model and per combination of further settings.

    `config.x` is the setting that tells the lines apart.
    """
    x, rows, curves = config.x, results.load(workdir), results.load_curves(workdir)
    for point, chosen in combinations.combinations(rows, (x,)):
        suffix = combinations.suffix(point)
        losses = final_losses(chosen, x)
        own = curves[curves['cell'].isin(chosen['cell']) & combinations.matches(curves, point)]
        words = drawing.words(config, chosen, point)
        floor_of = dict(zip(losses[x], losses['floor'], strict=True))
        figure = plots.training_curves_by_setting(own, x, floors=floor_of, **words)
        drawing.save(figure, workdir, f'heads{suffix}')
        drawing.write(losses.rename(columns={x: analysis.heading(x)}), workdir, f'table{suffix}')


def final_losses(rows, x):
    """Test losses at the end of the budget by value of a setting, beside the floor of its number of heads."""
    table = rows.groupby(x).agg(
        lanes=('seed', 'size'), samples=('num_samples', 'max'), mean=('test_loss', 'mean'),
        smallest=('test_loss', 'min'), largest=('test_loss', 'max'),
    )  # fmt: skip
    floors = [heads.floor_of_row(row) for row in rows.to_dict('records')]
    return table.assign(floor=pd.Series(floors, rows.index).groupby(rows[x]).first()).reset_index()


def text(rows):
    lanes = rows('heads')
    one, three, four = (lanes.where(transformer_num_heads=number).mean('test_loss') for number in (1, 3, 4))
    return f"""
With fewer than q = 3 heads every lane stays far above its floor, a sharper form of Proposition 3's; after
{lanes.values('max_samples')[0]:,} prompts one head errs by {one}, three by {three}, four by {four}.

From q heads on no floor is left, and yet more of them help: one more than q learns far faster than q. {lanes.lanes()}
lanes with a task each; {lanes.time()} in all.
"""


def table(rows):
    return losses_table(rows, 'heads', 'H', 'heads')


def losses_table(rows, folder, column, heading):
    """Mean test losses beside their floors, from the table that `draw` wrote into a directory."""
    found = rows.written(folder, 'table.md').table[[column, 'mean', 'floor']]
    lines = [[str(x), f'{mean:.2g}', f'{floor:.2g}'] for x, mean, floor in found.itertuples(index=False, name=None)]
    return formats.pipes([heading, 'test loss', 'floor'], lines)


def limits(rows):
    return f"""
Other links and tasks: the floors hold only for Proposition 3's task. One q and one budget are run; whether three
heads end at 0 after more than {rows('heads').values('max_samples')[0]:,} prompts is open.
"""
