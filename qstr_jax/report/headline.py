"""What all directories say together, for a reader with a minute: how samples grow, and who needs how many."""

from collections.abc import Sequence

import pandas as pd

from qstr_jax import analysis
from qstr_jax.analysis import answers, evidence, exponents, kinds, selection
from qstr_jax.analysis.samples_table import learn_text, mean_text
from qstr_jax.report import directory
from qstr_jax.report.section import Section, counted

_WHAT = (
    'A lane is one training run: one architecture with one seed. It is shown prompts of N tokens, of which q matter, '
    'until its test error is below a threshold; the prompts that it used are its samples. The question is how '
    'samples grow with N.'
)
_KINDS = {
    evidence.ONLINE: 'online, one learning rate',
    evidence.TUNED: 'online, tuned at each N',
    evidence.FIXED: 'n*, a fixed training set',
    evidence.WORST: 'largest n with an ERM that errs',
}


def headline(sections: Sequence[Section], measured: pd.DataFrame) -> Section:
    """The summary of all directories."""
    section = Section(name='In a minute')
    section.say(_WHAT)
    rows = [one.rows for one in sections if len(one.rows)]
    if not rows:
        is_begun = any(one.sweeps for one in sections)
        section.say('No lane has finished yet.' if is_begun else 'There are no results here.', is_problem=True)
        return section
    section.say(_counts(rows))
    hurt = [one.name for one in sections if any(is_problem for _, is_problem in one.words)]
    if hurt:
        section.say(f'Something is damaged, failed or could not be shown in: {", ".join(hurt)}.', is_problem=True)
    if unfinished := [one.name for one in sections if one.is_unfinished]:
        section.say(f'Not all planned lanes have been run in: {", ".join(unfinished)}.')
    needs = _needs(sections)
    if needs:
        best = pd.Series([best for best, _ in needs]).value_counts()
        counts = ', '.join(f'{model} in {count}' for model, count in best.items())
        where = counted(len(needs), 'directory', 'directories')
        section.say(f'Of {where} with several architectures, fewest samples: {counts}.')
        table = pd.DataFrame([line for _, line in needs])
        names = [name for name in ('directory', 'at', 'threshold') if name in table.columns]
        models = [analysis.display(model) for model in analysis.model_order(pd.concat(rows))]
        table = table[[*names, *(model for model in models if model in table.columns)]].fillna('–')
        section.tables.append(
            ('Geometric mean of the samples of lanes that learn, and how many times the fewest that is', table)
        )
    growth = _growth(measured)
    if len(growth):
        section.tables.append(('Samples grow with N as N^a: the exponent a with its 95% interval', growth))
    return section


def _counts(rows: Sequence[pd.DataFrame]) -> str:
    outcomes = pd.concat([some['outcome'] for some in rows]).value_counts()
    models = analysis.model_order(pd.DataFrame({'model': pd.concat([some['model'] for some in rows])}))
    names = ', '.join(map(analysis.display, models))
    text = f'{counted(outcomes.sum(), "lane")} of {names} in {counted(len(rows), "directory", "directories")}: '
    parts = [f'{count:,} {outcome}' for outcome, count in outcomes.items()]
    return (
        f'{text}{", ".join(parts)}. Censored lanes did not learn within their budget; outraced ones needed more '
        'samples than they were given (≥).'
    )


def _growth(measured: pd.DataFrame) -> pd.DataFrame:
    """A line per kind of evidence, task and threshold that has several architectures, a column for each of them."""
    found = measured[measured['exponent'].notna()]
    lines: dict[tuple, dict[str, str]] = {}
    # Curves of one architecture may differ in settings of a model, which this table does not name.
    for line in found.to_dict('records'):
        point = (_KINDS[line['evidence']], analysis.display(line['task']), line['learner'], line['loss'])
        own, model = lines.setdefault(point, {}), analysis.display(line['architecture'])
        own[model] = '; '.join([*([own[model]] if model in own else []), answers.exponent_text(line)])
    models = [
        analysis.display(model) for model in analysis.model_order(found.rename(columns={'architecture': 'model'}))
    ]
    names = ('evidence', 'task', 'learner', 'threshold')
    several = {point: own for point, own in lines.items() if len(own) > 1} or lines
    table = [{**dict(zip(names, point, strict=True)), **own} for point, own in several.items()]
    return pd.DataFrame(table, columns=[*names, *models]).fillna('–')


def _needs(sections: Sequence[Section]) -> list[tuple[str, dict[str, str]]]:
    """Who needs fewest, and a line of the table, for each directory with several architectures on an axis of N or q."""
    needs = []
    for section in sections:
        if section.rows.empty:
            continue
        online, searches, _ = kinds.split_kinds(section.rows[section.rows['learner'] != 'closed_form'])
        if len(searches) and 'validation_loss' in searches.columns:
            searches = selection.select(searches)
        for rows in (online, searches):
            x = directory.x_axis(rows) if len(rows) and rows['outcome'].eq('reached').any() else None
            if x in ('seq_len', 'sparsity') and analysis.curve_columns(rows, x) == ['model']:
                needs += _need(section.name, rows, x)
    return needs


def _need(name: str, rows: pd.DataFrame, x: str) -> list[tuple[str, dict[str, str]]]:
    """At the largest x that most architectures have in common."""
    points = analysis.summarize(rows, ['model', x])
    # Fewer than three lanes are not shown.
    points = points[points['num_learn'].gt(0) & points['mean'].gt(0) & points['num_lanes'].ge(exponents.MIN_LANES)]
    counts = points.groupby(x).size()
    if counts.empty or counts.max() < 2:
        return []
    at = counts[counts == counts.max()].index[-1]
    own = points[points[x] == at].set_index('model')
    # The architecture whose lanes learn most often comes first, however many samples they need.
    own = own.assign(share=own['num_learn'] / own['num_judged'])
    first = own.sort_values(['share', 'mean'], ascending=[False, True]).iloc[0]
    fewest = own['mean'].min()
    line = {'directory': name, 'at': analysis.setting_text(x, at)}
    line['threshold'] = ', '.join(f'{value:g}' for value in analysis.ordered(rows['threshold']))
    for model, point in own.iterrows():
        ratio = point['mean'] / fewest
        times = f'({ratio:.{1 if ratio < 10 else 0}f}×)' if ratio > 1 else ''
        words = ' '.join(part for part in (mean_text(point), times) if part)
        line[analysis.display(model)] = ', '.join(part for part in (words, learn_text(point)) if part)
    is_first = own['share'].eq(first['share']) & own['mean'].eq(first['mean'])
    best = ', '.join(map(analysis.display, own.index[is_first]))
    return [(best, line)]
