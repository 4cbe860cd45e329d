"""Figure 2: |W_Q^T W_K| after training on 50,000 prompts of simple-1STR, N = 100, beside the construction of Lemma 11.

As published for q = 1; also for q = 2, 3 with q heads, matched to the indices that they retrieve, and for the merged
parameterisation, one seed each. A directory of its own has more seeds: ten for q = 1 and 2, five for q = 3.
"""

import pandas as pd

from qstr_jax import analysis, plots
from qstr_jax.analysis import combinations
from qstr_jax.cli import base
from qstr_jax.report import drawing
from qstr_jax.storage import results
from qstr_jax.theory import portraits

ORDER = 60
QUESTION = 'Does trained attention look like the construction that proves the theorem?'
FOLDERS = {'figure2': ('q1', 'all'), 'figure2_seeds': ('seeds', 'seeds_q3')}
TITLES = {'figure2_seeds': 'Figure 2 with more seeds: ten for q = 1 and 2, five for q = 3, separate W_Q and W_K'}
FIGURES = {
    'figure2/separate_q1.png': 'Trained attention weights (left) and those of the construction (right), q = 1',
    'figure2/merged_q2.png': 'The same for q = 2, W_Q^T W_K trained as one matrix',
    'figure2/separate_q2.png': 'The same for q = 2, W_Q and W_K trained: one of two indices is retrieved',
}
FORM = 'transformer_attention'
SPARSITIES = {'q1': (1,), 'all': (1, 2, 3), 'seeds': (1, 2), 'seeds_q3': (3,)}


def get_config(part='q1'):
    """AdamW, rate 1e-3, decay 0.2, batch 64, at most 20 epochs, to an epoch mean of the loss of 0.05."""
    base.check_part(part, FOLDERS)
    config = base.get_config(models=('transformer',), learners=('adamw',), task={'name': 'simple_qstr'})
    config.update(seq_lens=(100,), sparsity=SPARSITIES[part], num_seeds={'seeds': 10, 'seeds_q3': 5}.get(part, 1))
    config.update(num_samples=(50_000,), weight_decay=(0.2,))
    config.check_every = 782  # an epoch
    config.update(max_steps=20 * 782, train_threshold=0.05, test_samples=2000, validation_samples=64)
    attention = ('separate', 'merged') if part == 'all' else ('separate',)
    config.update(transformer={'attention': attention}, save_params=True)
    return config


def reduced(part='q1'):
    """The same in seconds, for the tests."""
    config = get_config(part)
    config.update(seq_lens=(6,), sparsity=(2,), token_dim=3)
    config.transformer.update(mlp_width=16, attention=('separate',))
    config.update(num_samples=(512,), num_seeds=1, learning_rate=(1e-2,))
    config.update(check_every=20, max_steps=200, test_samples=64)
    return config


def check(config, sweep):
    """Raises ValueError unless the parameters of Transformers are kept, since these are drawn."""
    if not sweep.save_params:
        raise ValueError('save_params=False: the trained parameters are what is drawn, take save_params=True')
    if sweep.models != ('transformer',):
        raise ValueError(f'models={",".join(sweep.models)}: attention is drawn, take transformer alone')


def draw(workdir, config):
    """Writes a figure per form of attention, q and further settings, of the first seed, and a table of all heads."""
    tables, rows, config = [], results.load(workdir), config.copy_and_resolve_references()
    # All parts of the directory.
    config.sparsity, config.transformer.attention = (rows[name].unique().tolist() for name in ('sparsity', FORM))
    found = portraits.load(base.to_sweep(config), workdir)
    further = [name for name in analysis.curve_columns(rows) if name not in ('model', FORM, 'sparsity', 'seq_len')]
    for one in found:
        point = {name: one.row[name] for name in further if not pd.isna(one.row[name])}
        tables.append(portraits.table([one]).assign(attention=one.row[FORM], **point))
        if one.row['seed'] == 0:
            lengths = {'seq_len': one.row['seq_len']} if rows['seq_len'].nunique() > 1 else {}
            draw_one(workdir, one, combinations.suffix({**lengths, **point}))
    table = pd.concat(tables, ignore_index=True)
    table = table[['attention', *further, *table.columns.drop(['attention', *further])]]
    table = table.sort_values(['attention', 'q'], ascending=[False, True], kind='stable')
    drawing.write(table, workdir, 'table')


def draw_one(workdir, portrait, suffix):
    """Trained heads and the construction, in the linear colour scale and in the paper's, which hides small entries."""
    form = portrait.row[FORM]
    panels, title = portraits.panels(portrait), portraits.title(portrait, form)
    notes = 'share: of the squared entries, in the frame', 'cosine: of the framed block to the identity'
    colours = {1.0: 'size of the entries', 2.0: 'squares of the entries, as in the paper'}
    for scale, gamma in (('', 1.0), ('_gamma2', 2.0)):
        words = {'title': title, 'notes': (f'seed {portrait.row["seed"]}', f'colour: {colours[gamma]}', *notes)}
        figure = plots.query_key_matrices(panels, portrait.task, gamma=gamma, columns=2, **words)
        drawing.save(figure, workdir, f'{form}_q{portrait.task.sparsity}{suffix}{scale}')


def num_found(rows, sparsity):
    """By seed, how many indices have a head with most of its weight where the construction has it."""
    heads = rows.written('figure2_seeds', 'table.md').where(q=sparsity).table
    return heads[heads['share'] > 0.5].groupby('seed')['index'].nunique().reindex(heads['seed'].unique(), fill_value=0)


def text(rows):
    from scipy import stats  # slow to import, and few exhibits need it

    heads, lanes = rows.written('figure2_seeds', 'table.md').where(q=1), rows('figure2_seeds', sparsity=1)
    two, three = rows('figure2_seeds', sparsity=2), rows('figure2_seeds', sparsity=3)
    both, found = num_found(rows, 2), num_found(rows, 3)
    num_both, one = both.eq(2).sum(), two.where(seed=tuple(both.index[both.eq(1)]))
    share = stats.binomtest(num_both, two.count()).proportion_ci()
    return f"""
For q = 1 it does in place and partly in shape: over {lanes.lanes()} seeds at least
{heads.smallest('share', digits=3)} of the squared entries of W_Q^T W_K lie in the block that compares t_i with the
encodings, as in Lemma 11; its cosine to the identity is {heads.smallest('cosine')} to {heads.largest('cosine')}. For
q = 2, {num_both} of {two.count()} seeds find both indices, for q = 3 {found.eq(3).sum()} of {len(found)} all three.

The mean test loss is {lanes.mean('test_loss')} for q = 1. For q = 2 with separate weights the share of seeds that
retrieve both indices has the 95 % interval {100 * share.low:.0f} to {100 * share.high:.0f} %; the others, which
retrieve one of them, err by {one.smallest('test_loss')} to {one.largest('test_loss')}. For q = 3
{found.eq(2).sum()} of {len(found)} seeds find two indices, and all err by {three.smallest('test_loss')} to
{three.largest('test_loss')}. With one merged matrix each of the q heads finds an index of its own at q = 1, 2 and 3,
though after twenty epochs no loss is as low as with separate weights at q = 1.

q = 1 took {rows('figure2', sparsity=1).time()}, q = 2 and 3 {rows('figure2', sparsity=(2, 3)).time()}, the seeds
{rows('figure2_seeds').time()}.
"""


def limits(rows):
    return f"""
At q = 3 there are {rows('figure2_seeds', sparsity=3).lanes()} seeds, with merged weights
{rows('figure2', sparsity=3).lanes()}. More epochs and other rates were not tried.
"""
