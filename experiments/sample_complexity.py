r"""Samples to a test loss, against sequence length or sparsity: runs a sweep, leaves rows, a figure and a table.

python -m experiments.sample_complexity --config=experiments/configs/figure1a.py --workdir=results/figure1a \
    --config.models=transformer,ffn --config.seq_lens=8,12
"""

import pathlib

from absl import flags
from ml_collections import config_flags

from experiments import command_line, runtime
from experiments.configs import base
from qstr_jax import analysis, plots, sweeps
from qstr_jax.storage import files, results
from qstr_jax.sweeps import listing

CONFIG = config_flags.DEFINE_config_file('config', None, 'Settings of the sweep, a file in configs/.')
DRY_RUN = flags.DEFINE_bool('dry_run', False, 'List cells, lanes, parameters and work; run nothing.')


def reference(config, rows):
    """Published values as {model: {length: samples}}; nothing if these rows are of another setting."""
    if not all(rows[name].eq(value).all() for name, value in config.reference_for.items()):
        return {}
    points = {}
    for model, length, samples in config.reference:
        if ((rows['model'] == model) & (rows['seq_len'] == length)).any():
            points.setdefault(model, {})[length] = samples
    return points


def draw(workdir, config):
    """Writes figure, learning curves and table of a results directory; one set per (learning rate, decay)."""
    workdir = pathlib.Path(workdir)
    rows, curves = results.load(workdir), results.load_curves(workdir)
    if rows.empty:  # an early share of a sweep that had nothing to run
        return
    optimisers = rows.groupby(['learning_rate', 'weight_decay'])
    for (rate, decay), chosen in optimisers:
        suffix = '' if optimisers.ngroups == 1 else f'_lr{rate:g}_wd{decay:g}'
        published = reference(config, chosen)
        figure = plots.samples_against_length(chosen, config.title, tuple(config.notes), published, config.x)
        paths = plots.save(figure, workdir / f'figure{suffix}')
        same = (curves['learning_rate'] == rate) & (curves['weight_decay'] == decay)
        draw_curves(workdir, curves[same], config.threshold, suffix)
        table = analysis.table(chosen, config.x)
        files.write_text(workdir / f'table{suffix}.md', table + '\n')
        print(f'{table}\nfigure: {paths[1]}')


def draw_curves(workdir, curves, threshold, suffix):
    """Learning curves of one optimiser's lanes, a figure for each q if there are several."""
    for sparsity, chosen in curves.groupby('sparsity'):
        several = curves['sparsity'].nunique() > 1
        name, title = (f'_q{sparsity}', f'q = {sparsity}') if several else ('', '')
        plots.save(plots.curves(chosen, threshold, title), workdir / f'curves{suffix}{name}')


def run(draw=draw):
    """Runs the sweep of --config into --workdir, then `draw(workdir, config)`."""
    sweep = base.to_sweep(CONFIG.value)
    if DRY_RUN.value:
        print(listing.describe(sweep))
        return
    if runtime.WORKDIR.value is None:
        raise ValueError('--workdir=DIR is missing: where should the results go?')
    runtime.start()
    sweeps.run(sweep, runtime.WORKDIR.value, runtime.options())
    if runtime.is_first():
        draw(runtime.WORKDIR.value, CONFIG.value)


if __name__ == '__main__':
    command_line.launch(run)
