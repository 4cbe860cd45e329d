"""Encodings: samples to test MSE 0.7 on 1STR, N = 6, over d_e (with the coherence) and scaled against unscaled.

The Transformer; published is d_e = ⌊5 ln 6⌋ = 8, unscaled.
"""

from qstr_jax.analysis import formats
from qstr_jax.cli import base

ORDER = 140
IS_SUPPORTING = True
QUESTION = 'What do width and scale of the positional encodings change?'
FIGURES = {
    'encodings/heatmap_transformer.png': 'Samples over the width and the scale of the positional encodings, with their '
    'largest coherence; the published setting is framed'
}


def get_config():
    """The Transformer; published is d_e = ⌊5 ln 6⌋ = 8, unscaled. Five lanes a point, each with its own (u, ω)."""
    config = base.get_config(models=('transformer',), seq_lens=(6,), num_seeds=5, task_per_lane=True)
    config.update(encoding_dim=(3, 5, 8, 12, 18, 32), encoding_scale=('unscaled', 'scaled'), max_samples=300_000)
    config.heatmap = {'x': 'encoding_dim', 'y': 'encoding_scale', 'panels': '', 'top': 'encoding_coherence'}
    config.published = {'encoding_dim': 8, 'encoding_scale': 'unscaled'}
    config.title = 'Transformer: {task}, N = {seq_len}, samples to test MSE {threshold}'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.update(seq_lens=(3,), encoding_dim=(3,), num_seeds=2, threshold=0.9, test_samples=64, max_samples=3200)
    return config


def text(rows):
    lanes = rows('encodings')
    published = lanes.where(encoding_dim=8, encoding_scale='unscaled')
    return f"""
The theory's factor √(d/q), which the published code leaves out, takes {published.mean()} samples to
{lanes.where(encoding_dim=8, encoding_scale='scaled').mean()}, and d_e = 32 instead of 8 to
{lanes.where(encoding_dim=32, encoding_scale='unscaled').mean()}.

Wider encodings are less coherent: the largest coherence is {lanes.where(encoding_dim=3).mean('encoding_coherence')} at
d_e = 3 and {lanes.where(encoding_dim=32).mean('encoding_coherence')} at d_e = 32. {lanes.lanes()} lanes a point, each
with its own (u, ω); {lanes.time()} in all.
"""


def table(rows):
    lanes, scales = rows('encodings'), ('unscaled', 'scaled')
    lines = [[scale, *lanes.where(encoding_scale=scale).mean(by='encoding_dim').split(', ')] for scale in scales]
    return formats.pipes(['samples at d_e', *map(str, lanes.values('encoding_dim'))], lines)


def limits(rows):
    (seq_len,) = rows('encodings').values('seq_len')
    return f"""
The FFN and the RNN, and another N than {seq_len}. It is at one learning rate, whose effect a
scale of the encodings can imitate.
"""
