"""n* of constrained ERM: the smallest sample on which it gets below test loss 0.05, against N (Theorem 4).

Merged Transformer, H = q = 1, d = 10, on 1STR; R in norms of Lemma 11's network. By the averaged risk, where a prompt
has N labels, and by the point-wise risk, where it has one, as in the theorem.
"""

from experiments.exhibits import learning_curves
from qstr_jax.analysis import formats
from qstr_jax.cli import base

ORDER = 160
IS_SUPPORTING = True
QUESTION = 'How many prompts does a Transformer of bounded norm need until its empirical minimiser retrieves?'
LIMITS = """
The theorem's n: nothing checks that a fit is a minimum of the training risk, and one that is not makes n\\* larger.
Here d_e ≥ N, so that attention can be a look-up table, and there is one start; the next exhibit has several and checks
it.
"""
FOLDERS = {'n_star': ('averaged',), 'n_star_pointwise': ('pointwise', 'pointwise_64')}
FIGURES = {
    'n_star/figure.png': 'n* against N by the averaged risk',
    'n_star_pointwise/figure.png': 'n* against N by the point-wise risk',
}


def get_config(part='averaged'):
    """Scaled encodings of coherence ≤ 1/2; R = 1/2, 1, 2, point-wise also 0.3, and there at N = 64 only R = 1."""
    base.check_part(part, FOLDERS)
    config = base.get_config(learning_curves.PLUGINS)
    config.update(models=('transformer', 'least_squares'), learners=('constrained',), preset='paper')
    config.update(seq_lens=(8, 16, 32, 64), token_dim=10, encoding_scale='scaled', max_coherence=0.5)
    config.encoding_dim = 75  # 18 ln 64
    config.transformer.update(attention='merged', mlp_width=32)
    config.update(task_per_lane=True, batch_size=32)
    config.update(radius=(0.5, 1.0, 2.0), radius_unit='construction', learning_rate=(3e-3,), schedule='cosine')
    config.update(max_steps=1000, check_every=250, threshold=0.05, min_samples=5, max_samples=5120, resolution=0.2)
    config.update(test_samples=1000, validation_samples=500)
    config.title = '{task}: n* of constrained ERM, averaged risk'
    if part != 'averaged':
        config.update(risk='pointwise', batch_size=64, max_steps=3000, check_every=500)
        config.title = '1STR: n* of constrained ERM, point-wise risk'
        config.update(seq_lens=(8, 16, 32), radius=(0.3, 0.5, 1.0, 2.0))
    if part == 'pointwise_64':
        config.update(seq_lens=(64,), radius=(1.0,))
    return config


def reduced(part='averaged'):
    """The same in seconds, for the tests."""
    config = base.shrink_search(get_config(part), models=('transformer',), transformer={'mlp_width': 8})
    config.update(seq_lens=(2,), token_dim=2, encoding_dim=8, max_coherence=0.8, radius=(1.0, 2.0), min_samples=2)
    return config


def text(rows):
    averaged, pointwise = rows('n_star', model='transformer'), rows('n_star_pointwise', model='transformer')
    one, two, small = averaged.where(radius=1), averaged.where(radius=2), averaged.where(radius=0.5)
    at32, at64 = pointwise.where(seq_len=32), pointwise.where(seq_len=64)
    return f"""
By the averaged risk n\\* goes from {one.where(seq_len=8).mean()} prompts at N = 8 to {one.where(seq_len=64).mean()} at
N = 64 for R = 1, N^{one.exponent()}; by the point-wise risk, one label per prompt, from
{pointwise.where(radius=1, seq_len=8).mean()} at N = 8 to {pointwise.where(radius=1, seq_len=16).mean()} at N = 16, and
{at32.where(radius=1).count(outcome='reached')} of {at32.where(radius=1).count()} get there at N = 32,
{at64.count(outcome='reached') or 'none'} at N = 64.
That is projected Adam after {int(one.values('max_steps')[0]):,} steps (point-wise
{int(pointwise.values('max_steps')[0]):,}), not known to be ERMs: the next exhibit, with more steps, two starts and
d_e = ⌊3 ln N⌋, has another n\\*.

By the averaged risk R = 2 needs {two.where(seq_len=8).mean()} at N = 8 and as many as R = 1 beyond, so that N = 8
decides the exponent. At R = 1/2 {small.count(outcome='censored')} of {small.count()} lanes stay at a training risk of
{small.where(outcome='censored').smallest('train_risk')} or more: the optimiser's failure, not the sample's.

By the point-wise risk {at32.count(outcome='reached')} of {at32.count()} lanes, over all R, get there within
{at32.values('max_samples')[0]:,} prompts at N = 32, and {at64.count(outcome='reached') or 'none'} of {at64.count()} at
N = 64. The two took {rows('n_star').time()} and {rows('n_star_pointwise').time()}.
"""


def table(rows):
    averaged = {radius: rows('n_star', model='transformer', radius=radius).mean(by='seq_len') for radius in (1, 2)}
    pointwise = rows('n_star_pointwise', model='transformer', radius=1, seq_len=(8, 16)).mean(by='seq_len')
    lines = [[f'averaged risk, R = {radius}', *means.split(', ')] for radius, means in averaged.items()]
    lines.append(['point-wise risk, R = 1', *pointwise.split(', '), '–', '–'])
    return formats.pipes(['prompts', *(f'N = {n}' for n in (8, 16, 32, 64))], lines)
