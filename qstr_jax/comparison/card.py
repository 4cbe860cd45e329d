"""The card of an entry: what it needs beside all others, as one page, a figure, a text and data."""

import base64
import html
import io
import pathlib
from collections.abc import Sequence
from typing import Any

import jinja2
import matplotlib
import numpy as np
import pandas as pd

from qstr_jax import analysis, plots
from qstr_jax.analysis import exponents, formats
from qstr_jax.analysis.card import plain
from qstr_jax.analysis.samples_table import mean_and_share, short_number
from qstr_jax.comparison import paired
from qstr_jax.comparison.suite import Suite, Task
from qstr_jax.outside import LEARNER
from qstr_jax.plots.style import STYLE
from qstr_jax.storage import files

_TEMPLATE = 'card.html.jinja'
_SIGNIFICANT = (
    'Significant is meant among all statements of the card (Holm); the noise of lanes is pooled over the N of a task, '
    'so two N or more say more than one.'
)
_RATIOS = f'The interval of a ratio is one of 95 %, not corrected for the other statements. {_SIGNIFICANT}'


def data(suite: Suite, entry: str, rows: pd.DataFrame, made: dict[str, Any]) -> dict[str, Any]:
    """All that a card says, as JSON can hold it."""
    mine, others = rows[rows['entry'] == entry], rows[rows['entry'] != entry]
    verdicts = paired.verdicts(mine, others)
    tasks = []
    for task in suite.tasks:
        own = rows[rows['task'] == task.name]
        here = [one for one in verdicts if one.task == task.name]
        lines = lines_of(own, suite.seq_lens)
        lines.sort(key=lambda line: line['entry'] != entry)
        tasks.append({
            'name': task.name, 'about': task.about, 'goal': goal(task), 'lines': lines,
            'says': sentences(here, others[others['task'] == task.name]['entry'].nunique()),
            'pairs': [{**plain(one._asdict()), 'text': one.text} for one in here],
        })  # fmt: skip
    return {
        'entry': entry, 'suite': suite.version, 'seq_lens': list(suite.seq_lens), 'num_seeds': suite.num_seeds,
        'max_samples': suite.max_samples, 'test_samples': suite.test_samples, 'tasks': tasks, 'made': made,
        'rows': [plain(row) for row in mine.to_dict('records')],
    }  # fmt: skip


class Cards(dict[str, dict[str, Any]]):
    """What cards say, by entry; shown as their sentences, and in notebooks with their tables."""

    def __repr__(self) -> str:
        return '\n'.join(
            f'{entry} on {task["name"]}: {"; ".join(task["says"]) or "no rows yet"}'
            for entry, card in self.items()
            for task in card['tasks']
        )

    def _repr_html_(self) -> str:
        parts = [f'<p>{html.escape(line)}</p>' for line in repr(self).splitlines()]
        for card in self.values():
            for task in card['tasks']:
                parts += [
                    f'<h4>{html.escape(task["name"])}</h4>',
                    table(task['lines'], card['seq_lens']).to_html(index=False),
                ]
        return '\n'.join(parts)


def write(folder: Any, card: dict[str, Any], rows: pd.DataFrame) -> None:
    """Writes card.json, card.md, card.png and card.html."""
    folder = pathlib.Path(files.make_folder(folder))
    picture = drawn([task['name'] for task in card['tasks']], rows, card['entry'])
    files.write_json(folder / 'card.json', card)
    files.write_text(folder / 'card.md', markdown(card))
    files.write_bytes(folder / 'card.png', picture)
    files.write_text(folder / 'card.html', _html(card, picture))


def drawn(tasks: Sequence[str], rows: pd.DataFrame, entry: str = '') -> bytes:
    """A picture of all entries, a line each and a panel for each task; one entry may stand out."""
    names = ['entry', 'task', 'seq_len', 'seed', 'outcome', 'num_samples', 'samples_to_threshold', 'max_samples']
    marks, buffer = rows['learner'].map({LEARNER: f' ({LEARNER})'}).fillna(''), io.BytesIO()
    marked = dict(zip(rows['entry'], rows['entry'] + marks, strict=True))
    rows = rows[names].rename(columns={'entry': 'model'}).assign(model=rows['entry'].map(marked))
    panels = {task: own for task in tasks if len(own := rows[rows['task'] == task])}
    notes = [f'sorted by {analysis.display(next(iter(panels)))}, at the largest N at which lanes learn']
    with matplotlib.rc_context(STYLE):
        figure = plots.samples_ranked(panels, highlight=marked.get(entry, ''), notes=notes)
        figure.savefig(buffer, format='png', dpi=150)
    return buffer.getvalue()


def markdown(card: dict[str, Any]) -> str:
    """The card as Markdown."""
    parts = [f'# {card["entry"]}', f'{_about(card)} {_SIGNIFICANT}']
    for task in card['tasks']:
        parts += [f'## {task["name"]}', f'It {task["about"]}; samples until {task["goal"]}.']
        parts += [f'- {sentence}' for sentence in task['says']] if task['says'] else []
        parts.append(formats.markdown(table(task['lines'], card['seq_lens'])) if task['lines'] else 'No rows yet.')
    return '\n\n'.join(parts).replace('\n\n- ', '\n- ') + '\n'


def goal(task: Task) -> str:
    """When a lane of a task is over, in words."""
    return f'the {"error rate" if task.threshold_on == "error_rate" else "test loss"} is below {task.threshold:g}'


def table(lines: Sequence[dict[str, Any]], seq_lens: Sequence[int]) -> pd.DataFrame:
    """The table of one task, as texts."""
    has_speeds = sum(line['steps_per_second'] != '–' for line in lines) > 1  # one alone is beside nothing
    return pd.DataFrame([
        {
            'entry': f'{line["entry"]} ({LEARNER})' if line['is_outside'] else line['entry'],
            **{f'N = {N}': line['samples'].get(str(N), '–') for N in seq_lens},
            'exponent': line['exponent'], 'parameters': line['parameters'], 'state size': line['state_size'],
            **({'steps/s': line['steps_per_second']} if has_speeds else {}),
        }
        for line in lines
    ])  # fmt: skip


def _about(card: dict[str, Any]) -> str:
    outside = any(line['is_outside'] for task in card['tasks'] for line in task['lines'])
    of_outside = f' Entries marked {LEARNER} were trained by programs of their own, which chose their rates.' * outside
    return (
        f'Suite {card["suite"]}: training samples to a threshold, {card["num_seeds"]} lanes a point, at most '
        f'{card["max_samples"]:,} samples, the learning rate chosen at each point on another seed. A mean is '
        'geometric, of the lanes that learn; ≥ is a bound, ~ is one to three checks; – under an N was not run, often '
        'since no lane learned at a smaller one, and under state size the model names none. Exponents of N have 95 % '
        f'intervals, or say why there is none. {card["entry"]} stands first, the others are sorted by the largest N at '
        f'which lanes learn. Lanes are paired: all entries see the same prompts.{of_outside}'
    )


def lines_of(rows: pd.DataFrame, seq_lens: Sequence[int]) -> list[dict[str, Any]]:
    """What each entry needs on one task, best first, see `plots.ranked`."""
    if rows.empty:
        return []
    means = analysis.summarize(rows.assign(model=rows['entry']), ['model', 'seq_len'])
    return [_line(name, rows[rows['entry'] == name], seq_lens) for name in plots.ranked(means, 'seq_len')]


def _line(entry: str, lanes: pd.DataFrame, seq_lens: Sequence[int]) -> dict[str, Any]:
    """One entry on one task."""
    means = analysis.summarize(lanes.assign(model=entry), ['seq_len']).set_index('seq_len')
    return {
        'entry': entry, 'is_outside': bool(lanes['learner'].eq(LEARNER).any()),
        'samples': {str(N): mean_and_share(means.loc[N]) for N in seq_lens if N in means.index},
        'exponent': exponents.fit(lanes.assign(model=entry)).with_note,
        'parameters': _range(lanes['num_parameters']), 'state_size': _range(lanes['state_size']),
        'steps_per_second': _range(lanes['steps_per_second']),
    }  # fmt: skip


def _range(values: pd.Series) -> str:
    """'7k', '7k–12k' or '–'."""
    known = values.astype(float)
    known = known[np.isfinite(known)]
    ends = dict.fromkeys(short_number(value) for value in (known.min(), known.max()))
    return '–'.join(ends) if len(known) else '–'


def sentences(verdicts: Sequence[paired.Verdict], num_others: int) -> list[str]:
    """In words: who needs more, who less, and where the lanes cannot say."""
    if not num_others:
        return ['No committed rows to compare with.']
    pairs = '–'.join(dict.fromkeys(str(pick(one.num_pairs for one in verdicts)) for pick in (min, max) if verdicts))
    lanes = 'lane' if pairs == '1' else 'lanes'
    doubt = f'{verdicts[0].doubt}, ' if verdicts else ''
    words = {
        'better': 'significantly fewer samples than',
        'worse': 'significantly more samples than',
        'fewer': f'fewer samples, {doubt}than',
        'more': f'more samples, {doubt}than',
        'cannot say': f'{pairs} {lanes} cannot say whether fewer or more than',
        'neither learns': 'does not learn within the budget; nor, at the same N, does any of',
    }
    found = []
    for says, text in words.items():
        by_other: dict[str, list[str]] = {}
        for one in verdicts:
            if one.says == says:
                by_other.setdefault(one.other, []).append(str(one.seq_len))
        by_lens: dict[str, list[str]] = {}
        for other, at in by_other.items():
            by_lens.setdefault(', '.join(at), []).append(other)
        whom = '; '.join(f'{_named(others, num_others)} (N = {at})' for at, others in by_lens.items())
        found += [f'{text} {whom}'] if whom else []
    return found


def _named(others: Sequence[str], num_others: int) -> str:
    """'attention, mamba2', or 'all 19 others'."""
    return f'all {num_others} others' if len(others) == num_others > 1 else ', '.join(others)


def _html(card: dict[str, Any], picture: bytes) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
    )
    tables = [table(task['lines'], card['seq_lens']) for task in card['tasks']]
    return environment.get_template(_TEMPLATE).render(
        card=card,
        about=f'{_about(card)} {_RATIOS}',
        tables=tables,
        picture=base64.b64encode(picture).decode(),
        cells=formats.cells,
    )
