"""From a results directory to its figures and tables: what any sweep gets, whatever its learners.

Online training: samples against a setting, or heat maps of them, training curves, and what was tuned. Searches: n*
against a setting. Fits of n prompts: test loss against n, with Theorem 6's floor where rows have it.
"""

import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from qstr_jax import analysis, columns, plots
from qstr_jax.analysis import combinations, crossings, floors, formats, growth, kinds, selection, tuning
from qstr_jax.report import lanes
from qstr_jax.storage import files, results


def draw(workdir: str | os.PathLike, config: Any) -> None:
    """Writes figures and tables of a results directory into it; the config says what is on their axes."""
    folder = pathlib.Path(workdir)
    online, searches, fits = kinds.split_kinds(lanes.load(folder))
    if len(online) and config.heatmap.x:
        draw_heatmaps(folder, online, config)
    elif len(online):
        draw_samples(folder, config)
        draw_curves(folder, config)
        draw_tuning(folder, config)
    if len(searches) or len(fits):
        draw_fixed_samples(folder, searches, fits, config)


def draw_samples(folder: pathlib.Path, config: Any) -> None:
    """Samples against the setting on the x axis, and against the threshold where rows have several."""
    online = kinds.split_kinds(lanes.at_thresholds(folder)).online
    together = [*analysis.ALWAYS_NAMED, *combinations.model_settings(online)]
    for point, chosen in combinations.combinations(online, (config.x,), together):
        points = config.published_samples
        reference = published_samples(chosen, points, config.published_for) if config.x == 'seq_len' else {}
        figure = plots.samples_against(chosen, config.x, reference=reference, **words(config, chosen, point))
        save(figure, folder, f'figure{combinations.suffix(point)}')
        write(analysis.samples_table(chosen, config.x), folder, f'table{combinations.suffix(point)}')
    if crossings.has_crossings(results.load(folder)):
        for point, chosen in combinations.combinations(online, ('threshold',), together):
            figure = plots.samples_against_threshold(chosen, **words(config, chosen, point))
            save(figure, folder, f'thresholds{combinations.suffix(point)}')


def published_samples(
    rows: pd.DataFrame, points: Iterable[tuple[str, int, float]], only_for: Mapping[str, Any]
) -> dict[str, dict[int, float]]:
    """Published samples to the threshold against N, if the rows have the settings of the published ones."""
    is_same = all(rows[name].eq(value).all() for name, value in only_for.items())
    tasks = {'task', 'sparsity', 'token_dim', 'link'}
    if not is_same or tasks.intersection(analysis.curve_columns(rows, 'seq_len')):
        return {}
    found: dict[str, dict[int, float]] = {}
    for model, length, samples in points:
        if ((rows['model'] == model) & (rows['seq_len'] == length)).any():
            found.setdefault(model, {})[length] = samples
    return found


def draw_curves(folder: pathlib.Path, config: Any) -> None:
    """Training curves of all lanes, shaded by the setting on the x axis; a figure per further setting."""
    curves = kinds.split_kinds(results.load_curves(folder)).online
    if curves.empty:  # a warning has said that their files are gone or damaged
        return
    for point, chosen in combinations.combinations(curves, (config.x,), ('model',)):
        threshold = crossings.shared_loss_threshold(chosen)
        title = combinations.title('', chosen, point)
        figure = plots.training_curves(chosen, by=config.x, threshold=threshold, title=title)
        save(figure, folder, f'curves{combinations.suffix(point)}')


def draw_tuning(folder: pathlib.Path, config: Any) -> None:
    """What each tuned setting was chosen from; nothing where nothing was tuned."""
    selected = folder / 'selection'
    if not (selected / 'config.json').exists():
        return
    rows, chosen = tuning.longest(results.load(selected)), results.load(folder)
    for setting in sorted(tuning.tuned_settings(chosen)):
        lanes = tuning.beside(rows, chosen, setting, config.x)
        figure = plots.tuning(lanes, setting, config.x, title=f'Choosing the {columns.label(setting)}')
        save(figure, folder, f'tuning_{setting}')
    write(tuning.chosen(chosen, config.x), folder, 'tuning')


def draw_heatmaps(folder: pathlib.Path, rows: pd.DataFrame, config: Any) -> None:
    """A heat map and a table per architecture, and per combination of further settings."""
    x, y = config.heatmap.x, config.heatmap.y
    panels, top = config.heatmap.panels or None, config.heatmap.top or None
    axes = [name for name in (x, y, panels) if name]
    for point, chosen in combinations.combinations(rows, axes):
        others = {name: value for name, value in point.items() if name != 'model'}
        above = words(config, chosen, others)
        figure = plots.samples_heatmap(chosen, x, y, panels=panels, published=dict(config.published), top=top, **above)
        name = f'{chosen["model"].iloc[0]}{combinations.suffix(others)}'
        save(figure, folder, f'heatmap_{name}')
        shown = [*axes[::-1], 'num_lanes', 'num_reached', 'mean', 'min', 'max', 'lower_bound']
        write(analysis.summarize(chosen, axes[::-1])[shown], folder, f'table_{name}')


def draw_fixed_samples(folder: pathlib.Path, searches: pd.DataFrame, fits: pd.DataFrame, config: Any) -> None:
    """n* and test losses, with the settings that validation prompts choose at each point."""
    values = {'samples_to_threshold': searches, 'test_loss': fits}
    tables = [selection.sensitivity(some, value=value) for value, some in values.items() if len(some)]
    files.write_text(folder / 'sensitivity.md', '\n'.join(map(formats.markdown, tables)))
    # A setting is chosen by all of its lanes, those that diverged included.
    chosen = (selection.select(some) if len(some) else some for some in (searches, fits))
    searches, fits = (some[some['outcome'] != 'diverged'] for some in chosen)
    if len(searches):
        draw_searches(folder, searches, config)
    if len(fits):
        draw_losses(folder, fits, config)


def draw_searches(folder: pathlib.Path, rows: pd.DataFrame, config: Any) -> None:
    """n* against a setting, and which power of N or of log N it is."""
    save(plots.samples_against(rows, config.x, **words(config, rows)), folder, 'figure')
    write(analysis.samples_table(rows, config.x), folder, 'table')
    if config.x == 'seq_len':
        write(growth.growth(rows), folder, 'growth', digits=3)


def draw_losses(folder: pathlib.Path, rows: pd.DataFrame, config: Any) -> None:
    """Test loss against n, medians over lanes, and Theorem 6's floor under the runs where the rows have it."""
    save(plots.learning_curves(rows, **words(config, rows)), folder, 'learning_curves')
    names = list(dict.fromkeys(['task', 'seq_len', *analysis.curve_columns(rows, 'num_samples')]))
    losses = rows.groupby([*names, 'num_samples'], dropna=False)['test_loss'].median().unstack('num_samples')
    write(losses.reset_index(), folder, 'table', digits=3)
    if 'theorem6_floor' in rows.columns:
        rows = floors.with_floor(rows)
        save(plots.loss_against_floor(rows, **words(config, rows)), folder, 'floor')
        write(floors.floor_table(rows), folder, 'floor', digits=3)


def words(config: Any, rows: pd.DataFrame, point: Any = ()) -> dict[str, Any]:
    """What stands above and under a figure."""
    notes = combinations.notes(config.notes, rows)
    if rows['task_seed'].nunique() == 1 < rows['seed'].nunique():
        notes += ('all lanes share one draw of the task, so intervals are of seeds alone',)
    return {'title': combinations.title(config.title, rows, dict(point)), 'notes': notes}


def save(figure: Any, folder: str | os.PathLike, name: str) -> None:
    """Writes a figure into a results directory, and says where it is."""
    print(f'figure: {plots.save(figure, pathlib.Path(folder) / name)[1]}')


def write(table: pd.DataFrame, folder: str | os.PathLike, name: str, **digits: int) -> None:
    """Writes a table as Markdown into a results directory, and prints it."""
    text = formats.markdown(table, **digits)
    files.write_text(pathlib.Path(folder) / f'{name}.md', text)
    print(text)
