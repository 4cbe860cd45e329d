"""n* of constrained ERM: the smallest sample on which it gets below test loss 0.05, against N (Theorem 4).

Merged Transformer, H = q = 1, d = 10, on 1STR; R in norms of Lemma 11's network. By the averaged risk, where a prompt
has N labels, and by the point-wise risk, where it has one, as in the theorem.
"""

from experiments.exhibits import learning_curves
from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.cli import base
from qstr_jax.report import numbers

ORDER = 160
IS_SUPPORTING = True
QUESTION = 'How many prompts does a Transformer of bounded norm need until its empirical minimiser retrieves?'
LIMITS = """
The theorem's n: nothing checks that a fit is a minimum of the training risk, and one that is not makes n\\* larger.
Here d_e ≥ N, so that attention can be a look-up table, and there is one start; the next exhibit has several and checks
it.
"""
FOLDERS = {'n_star': ('averaged',), 'n_star_pointwise': ('pointwise', 'pointwise_64')}
TITLES = {
    'n_star': 'n* of constrained ERM, averaged risk: the least n with test loss 0.05 on 1STR against N',
    'n_star_pointwise': 'n* of constrained ERM, point-wise risk: the least n with test loss 0.05 on 1STR against N',
}
FIGURES = {
    'n_star/figure.png': 'n* against N by the averaged risk',
    'n_star_pointwise/figure.png': 'n* against N by the point-wise risk',
}


def get_config(part='averaged'):
    """Scaled encodings of coherence ≤ 1/2; R = 1/2, 1, 2, point-wise also 0.3, and there at N = 64 not R = 2."""
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
        config.update(seq_lens=(64,), radius=(0.3, 0.5, 1.0))
    return config


def reduced(part='averaged'):
    """The same in seconds, for the tests."""
    config = base.shrink_search(get_config(part), models=('transformer',), transformer={'mlp_width': 8})
    config.update(seq_lens=(2,), token_dim=2, encoding_dim=8, max_coherence=0.8, radius=(1.0, 2.0), min_samples=2)
    return config


def text(rows):
    averaged, pointwise = rows('n_star', model='transformer'), rows('n_star_pointwise', model='transformer')
    half, one, two = (averaged.where(radius=radius) for radius in (0.5, 1, 2))
    erms = rows('n_star_erm', task='qstr', radius=1, encoding_dim=75)
    balls = {radius: pointwise.where(radius=radius) for radius in pointwise.values('radius')}
    return f"""
By the averaged risk n\\* goes from {one.where(seq_len=8).mean()} prompts at N = 8 to {one.where(seq_len=64).mean()} at
N = 64 in the ball R = 1, N^{one.exponent()}, and from {half.where(seq_len=8).mean()} to
{half.where(seq_len=64).mean()} in R = 1/2, N^{half.exponent()}. By the point-wise risk, one label a prompt, it rises
with R: at N = 16 {at(balls, 16)}. That is the optimiser's, since with more steps and two starts R = 1 ends at
{erms.where(seq_len=16).mean()} there.

That is projected Adam after {int(one.values('max_steps')[0]):,} steps (point-wise
{int(pointwise.values('max_steps')[0]):,}), not known to be ERMs: the next exhibit, with more steps, two starts and
d_e = ⌊3 ln N⌋, has another n\\*. At N = 32 it is {at(balls, 32)}, at N = 64 {at(balls, 64)}. From N = 8 to 64 it grows
as {growing(balls)}.

By the averaged risk R = 2 needs {two.mean(by='seq_len')} at N = 8, 16, 32, 64. The two took {rows('n_star').time()} and
{rows('n_star_pointwise').time()}.
"""


def at(balls, seq_len):
    """'1.76k (R = 0.3), 2.74k (R = 0.5)': the means at an N in each ball in which enough lanes end."""
    ended = {radius: lanes.count(seq_len=seq_len, outcome='reached') for radius, lanes in balls.items()}
    there = {radius: lanes for radius, lanes in balls.items() if ended[radius] >= numbers.MIN_LANES}
    return ', '.join(f'{lanes.where(seq_len=seq_len).mean()} (R = {radius:g})' for radius, lanes in there.items())


def growing(balls):
    """'N^0.80 [0.60, 1.00] (R = 0.3)': the exponents in the balls that have one."""
    found = {radius: analysis.exponent(lanes.table) for radius, lanes in balls.items()}
    return ', '.join(f'N^{one} (R = {radius:g})' for radius, one in found.items() if one.value is not None)


def table(rows):
    lines = []
    for risk, folder in (('averaged', 'n_star'), ('point-wise', 'n_star_pointwise')):
        lanes = rows(folder, model='transformer')
        for radius in lanes.values('radius'):
            means = (lanes.mean_or_dash(radius=radius, seq_len=n) for n in (8, 16, 32, 64))
            lines.append([f'{risk} risk, R = {radius:g}', *means])
    return formats.pipes(['prompts', *(f'N = {n}' for n in (8, 16, 32, 64))], lines)
