"""Zoology's picture: accuracy on MQAR against width, attention beside DeltaNet, and the samples to 99 %.

As in Figure 2 of Arora et al., "Zoology" (arXiv:2312.04927): two causal blocks of norm and mixer without MLP, here one
head as wide as the sequence, and a convolution of two tokens before each mixer, for all alike. N = 4 K for K pairs.
The rate is tuned at each width and number of pairs for the samples to 99 %, which that figure does not have.
"""

from experiments.exhibits import architectures
from qstr_jax import analysis, plots
from qstr_jax.analysis import formats
from qstr_jax.cli import base
from qstr_jax.report import drawing, lanes, numbers

ORDER = 34
QUESTION = 'How wide must attention and recurrent networks be to recall K pairs, and how many prompts do they need?'
WIDTHS = {'w8': 8, 'w16': 16, 'w32': 32}
FOLDERS = {'zoology': tuple(WIDTHS)}
MODELS = ('attention', 'deltanet')
TITLE = 'MQAR, two causal blocks'
POINT = ['num_pairs', 'model', 'width']
FIGURES = {
    'zoology/accuracy.png': 'Test accuracy on MQAR against width, after the budget or where 99 % were reached',
    'zoology/samples.png': 'Samples to 99 % accuracy against width',
}


def get_config(part='w8'):
    """One width: two mixers, two and four pairs, five lanes with a task each, at most 32,000 prompts."""
    base.check_part(part, FOLDERS)
    width = WIDTHS[part]
    config = base.get_config(models=MODELS, task={'name': 'mqar', 'vocab_size': 32}, seq_lens=(8, 16))
    for model in MODELS:
        config[model].update(width=width, head_dim=width, heads=1, mlp='none', short_conv=2, bidirectional=False)
    config.update(task_per_lane=True, tune={'learning_rate': (3e-3, 1e-2)})
    config.update(threshold=0.01, threshold_on='error_rate', test_samples=1000, max_samples=32_000)
    return config


def reduced(part='w8'):
    """The same in seconds, for the tests: attention at one width."""
    config = get_config('w8')
    config.update(models=('attention',), seq_lens=(8,), num_seeds=2, tune={'num_seeds': 1})
    config.update(max_samples=6400, test_samples=100)
    base.ease(config)
    return config


def draw(workdir, config):
    """Accuracy and samples against width, a panel for each number of pairs, and a table of all points."""
    rows = with_width(lanes.load(workdir))
    panels = {f'{pairs} pairs': own for pairs, own in rows.groupby('num_pairs')}
    guess = {name: (1 - own['no_retrieval']).groupby(own['width']).mean() for name, own in panels.items()}
    words = {'title': f'{TITLE}: test accuracy', 'notes': ('lanes stop where they reach 99 %',)}
    figure = plots.measure_in_panels(panels, 'width', 'accuracy', references={'guess by position': guess}, **words)
    drawing.save(figure, workdir, 'accuracy')
    drawing.save(plots.samples_in_panels(panels, 'width', title=f'{TITLE}: samples to 99 %'), workdir, 'samples')
    point = [*POINT, 'learning_rate']
    means = rows.groupby(point)[['num_parameters', 'accuracy']].mean().reset_index()
    found = analysis.summarize(rows, point).merge(means, on=point)
    shown = [*point, 'num_parameters', 'num_lanes', 'accuracy', 'num_learn', 'mean', 'min', 'max', 'lower_bound']
    drawing.write(found[shown], workdir, 'table', digits=3)


def with_width(rows):
    """Adds a column `width`: the width of each mixer."""
    return architectures.in_one_column(rows, 'width').astype({'width': int})


def points(rows):
    """The samples to 99 % and the accuracies, by number of pairs, mixer and width."""
    table = with_width(rows('zoology').table)
    found = analysis.summarize(table, POINT).set_index(POINT).sort_index()
    return found.assign(accuracy=table.groupby(POINT)['accuracy'].mean())


def shares(rows, pairs):
    """How many lanes of each mixer reach 99 %, by width: 'attention 4, 5, 5 and deltanet 0, 2, 4'."""
    found = points(rows).loc[pairs].groupby(level='model')['num_learn']
    return ' and '.join(f'{analysis.display(model)} {", ".join(map(str, own))}' for model, own in found)


def guesses(rows):
    """'0.66 (2 pairs) and 0.38 (4 pairs)': how often a guess by the position is right."""
    errors = rows('zoology').table.groupby('num_pairs')['no_retrieval'].mean()
    return ' and '.join(f'{1 - error:.2f} ({pairs} pairs)' for pairs, error in errors.items())


def text(rows):
    some = rows('zoology')
    of_pairs = '; '.join(f'{shares(rows, pairs)} with {pairs} pairs' for pairs in some.values('num_pairs')[::-1])
    return f"""
Of {some.lanes()} lanes these reach 99 % accuracy within {some.values('max_samples')[0]:,} prompts at
W = {', '.join(map(str, sorted(WIDTHS.values())))}: {of_pairs}.

A prompt with fewer pairs has fewer labels. Pairs that come first are asked for sooner, so a guess by the position of a
query alone is right in {guesses(rows)} of all cases. Lanes have a task each; all of it took
{rows('zoology', 'zoology/selection').time()}.
"""


def table(rows):
    found, widths = points(rows), sorted(WIDTHS.values())
    lines = []
    for pairs, model in dict.fromkeys((pairs, model) for pairs, model, _ in found.index):
        here = found.loc[(pairs, model)]
        entries = [entry(here.loc[width]) if width in here.index else 'not run' for width in widths]
        lines.append([analysis.display(model), f'{pairs}', *entries])
    return formats.pipes(['samples to 99 %', 'pairs', *(f'W = {width}' for width in widths)], lines)


def entry(point):
    """'12.3k', '27.4k (3 of 5 learn)', '(1 of 5 learn)', or the accuracy where no lane reaches 99 %."""
    return numbers.mean_of(point) if point['num_learn'] else f'– (accuracy {point["accuracy"]:.2f})'


def limits(rows):
    return f"""
Prompts are far shorter than zoology's, N up to {max(rows('zoology').values('seq_len'))}, and there is one recurrent
mixer, at one depth. The effect of the convolution is not measured separately.

{architectures.choice(rows('zoology'))}
"""
