"""Figure 1a: samples to test MSE 0.7 on 1STR, linear link, N = 2, 4, …, 12.

As published (preset `published`), once with one draw of (u, ω) for all lanes and once with a draw for each lane, on
which statements about the task rest. The RNN's own draws are a directory of their own, since its cells take an hour.
"""

import pathlib

import numpy as np
import pandas as pd

from experiments.exhibits import quickstart
from qstr_jax import analysis, plots
from qstr_jax.analysis import formats
from qstr_jax.cli import base
from qstr_jax.report import drawing, lanes, numbers

ORDER = 10
QUESTION = 'How many training prompts does each architecture need as the prompt grows?'
LIMITS = """
It is tested on simple-1STR, as the published code does, though it trains on 1STR. It counts optimiser steps at one
learning rate as much as statistics, and the laws cannot be distinguished.
"""
FOLDERS = {
    'figure1a': ('one_draw',),
    'figure1a_task_per_lane': ('own_draws',),
    'figure1a_task_per_lane_rnn': ('own_draws_rnn',),
}
TITLES = {
    'figure1a_task_per_lane': 'Figure 1a with own draws: Transformer and FFN, each lane with its own (u, ω)',
    'figure1a_task_per_lane_rnn': 'Figure 1a with own draws, RNN: each lane with its own (u, ω)',
}
FIGURES = {
    'figure1a_task_per_lane/figure.png': 'Samples to test error 0.7 against N, five draws of the task',
    'figure1a/figure.png': 'The same with one draw of (u, ω) for all lanes, compared with the published numbers',
}
# Read off the published plot.
PUBLISHED = {('transformer', 6): 10_500, ('transformer', 12): 17_000, ('rnn', 6): 33_000, ('rnn', 12): 74_000,
             ('ffn', 6): 20_000, ('ffn', 12): 115_000}  # fmt: skip


def get_config(part='one_draw'):
    """All three architectures and one (u, ω); or Transformer and FFN, or the RNN, with a (u, ω) for each lane."""
    base.check_part(part, FOLDERS)
    config = base.get_config(preset='published', seq_lens=(2, 4, 6, 8, 10, 12))
    config.title = '{task}: samples to test MSE {threshold}'
    config.notes = ('tested on simple-1STR, as published', 'at N = 2 a predictor that ignores t errs by 0.5')
    config.published_for.update(test_task='simple_qstr', task='qstr', link='linear', token_dim=10, threshold=0.7)
    config.published_samples = tuple((*point, samples) for point, samples in PUBLISHED.items())
    if part != 'one_draw':
        config.task_per_lane = True
        config.models = ('rnn',) if part == 'own_draws_rnn' else ('transformer', 'ffn')
        config.title = '{task}: samples to test MSE {threshold}, (u, ω) drawn per lane'
    if part == 'own_draws':
        config.screen = False
    return config


def reduced(part='one_draw'):
    """The same in seconds, for the tests: one architecture a part."""
    config = quickstart.shrink(get_config(part))
    config.models = config.models[-1:]
    config.seq_lens = (2,)
    return config


def draw(workdir, config):
    """What every sweep gets; the RNN's own draws stand in the figure of the others', where both have rows."""
    drawing.draw(workdir, config)
    both = [pathlib.Path(workdir).parent / name for name in tuple(FOLDERS)[1:]]
    if pathlib.Path(workdir) in both and all((folder / 'rows').exists() for folder in both):
        rows = pd.concat(map(lanes.load, both), ignore_index=True)
        reference = drawing.published_samples(rows, config.published_samples, config.published_for)
        figure = plots.samples_against(rows, reference=reference, **drawing.words(config, rows))
        drawing.save(figure, both[0], 'figure')


def text(rows):
    own, rnn = rows('figure1a_task_per_lane'), rows('figure1a_task_per_lane_rnn')
    transformer, ffn = own.where(model='transformer'), own.where(model='ffn')
    return f"""
From N = 4 to 12 the Transformer's samples grow as N^{transformer.exponent()}, the RNN's as N^{rnn.exponent()}, the
FFN's as N^{ffn.exponent()}.

N^a or (log N)^p: {transformer.law()} for the Transformer, {rnn.law()} for the RNN, {ffn.law()} for the FFN. Exponents
between neighbouring N: {transformer.slopes()} for the Transformer, {rnn.slopes()} for the RNN, {ffn.slopes()} for the
FFN. N = 2 is no part of these: a predictor that ignores t errs by 1 − 1/N = 0.5 there. {own.lanes()} lanes each;
{transformer.time()} for the Transformer, {rnn.time()} for the RNN, {ffn.time()} for the FFN.

Lanes
with a (u, ω) each differ {scatter(rows)} as lanes with one.
"""


def scatter(rows):
    """'1.5 (Transformer), 1.4 (RNN) and 1.3 (FFN) times as much': spreads of log samples with and without own draws."""
    one, own = rows('figure1a'), rows('figure1a_task_per_lane', 'figure1a_task_per_lane_rnn')
    ratios = {model: _spread(own.where(model=model)) / _spread(one.where(model=model)) for model in analysis.MODELS}
    said = [f'{ratio:.1f} ({analysis.display(model)})' for model, ratio in ratios.items()]
    return f'{numbers.and_last(said)} times as much'


def _spread(lanes):
    """The mean standard deviation of log samples at an N."""
    kept = lanes.table[lanes.table['seq_len'].ge(4)]
    return np.log(kept['samples_to_threshold']).groupby(kept['seq_len']).std().mean()


def table(rows):
    own = rows('figure1a_task_per_lane', 'figure1a_task_per_lane_rnn')
    return published_table(PUBLISHED, {'one (u, ω)': rows('figure1a'), 'own (u, ω) per lane': own})


def published_table(published, measured):
    """Samples in thousands of some lanes, a column each, beside the published ones."""
    lines = []
    for (model, seq_len), samples in sorted(published.items(), key=lambda item: item[0][1]):
        place = {'model': model, 'seq_len': seq_len}
        ours = (lanes.where(**place).thousands() if lanes.count(**place) else '–' for lanes in measured.values())
        lines.append([f'N = {seq_len}', analysis.display(model), *ours, f'{samples / 1000:g}'])
    return formats.pipes(['thousands of samples: mean (least – most of a lane)', '', *measured, 'published'], lines)
