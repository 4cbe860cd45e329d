"""Table 1 of the paper, measured: how samples grow with N per architecture and task, a block per kind of evidence."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax import columns
from qstr_jax.analysis import answers, crossings, erms, evidence, formats, growth, summary
from qstr_jax.analysis.curves import require
from qstr_jax.analysis.exponents import MIN_LANES, MIN_POINTS, Exponent, fit
from qstr_jax.analysis.names import MODELS, display, heading, ordered, setting_text
from qstr_jax.analysis.verdicts import SLOWER, STATEMENTS, Statement, caveat, judge

TITLES = {
    evidence.ONLINE: 'Online training at three N or more, one learning rate for all',
    evidence.TUNED: 'Online training at three N or more, at each the settings that need fewest samples',
    evidence.FIXED: 'n*, the least training set that is enough, beside what the theorems claim about it',
    evidence.WORST: 'The largest n at which an ERM that errs was found in the ball: none errs only from a larger n on',
}
COLUMNS = ('evidence', 'architecture', 'task', 'token_dim', 'learner', 'loss', 'N', 'bounds_at', 'lanes', 'num_learn',
           'num_judged', 'learn_low', 'learn_high', 'fitted_to', 'exponent', 'low', 'high', 'interval_by',
           'local_slopes', 'log_power', 'law', 'claim', 'source', 'agrees', 'caveat', 'note')  # fmt: skip
_LEARN = ('num_learn', 'num_judged', 'learn_low', 'learn_high')


def measure(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per curve: the exponent of samples in N with its interval, and for n* whether a claim agrees.

    Online curves of fewer than three N are left out: they show no growth, and no claim is about them. So are curves
    along which more of the task grows than N, such as the number of MQAR's pairs.
    """
    lines: list[dict[str, Any]] = []
    if len(rows):
        require(rows, ('model', 'task', 'seq_len', 'learner', 'threshold', 'seed', 'task_seed', 'outcome'))
        rows = rows if 'folder' in rows.columns else rows.assign(folder='')
        rows = erms.by_own_risk(each_threshold(rows))
        kind = evidence.kind_of(rows)
        for name in evidence.KINDS:
            own = evidence.own_draws(rows[kind == name]) if (kind == name).any() else rows.iloc[:0]
            own = erms.worst(own) if name == evidence.WORST and len(own) else own
            found = list(evidence.curves(own)) if len(own) else []
            if name not in evidence.OF_THEOREMS:
                found = [one for one in found if one['seq_len'].nunique() >= MIN_POINTS and _is_of_one_task(one)]
            lines += [_line(name, lanes) for lanes in found]
    seen = {(line['architecture'], line['task']) for line in lines if line['evidence'] == evidence.FIXED}
    lines += [_unmeasured(place, statement) for place, statement in STATEMENTS.items() if place not in seen]
    frame = pd.DataFrame(lines, columns=list(COLUMNS))
    order = [*MODELS, *sorted(set(frame['architecture']) - set(MODELS))]
    rank = frame.assign(
        by_kind=frame['evidence'].map(evidence.KINDS.index),
        by_task=frame['task'].ne('simple_qstr'),
        by_model=frame['architecture'].map(order.index),
    )
    by = ['by_kind', 'by_task', 'by_model', 'loss', 'learner']
    return frame.loc[rank.sort_values(by, kind='stable').index].reset_index(drop=True)


def readable(table: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The lines of one kind of evidence as texts for readers: the exponent with its interval in one column."""
    table = table[table['evidence'] == kind]
    texts = pd.DataFrame({
        'architecture': table['architecture'].map(display),
        'task': table['task'].map(display),
        'learner': table['learner'],
        'threshold': table['loss'],
        'N': [_lengths(line['N'], line['bounds_at']) for line in table.to_dict('records')],
        'lanes per N': table['lanes'],
        'lanes that learn': [_learn_text(line) for line in table.to_dict('records')],
        'n grows as N to the': [answers.exponent_text(line) for line in table.to_dict('records')],
        'fitted to': table['fitted_to'].replace('', '–'),
        'between neighbours': table['local_slopes'],
        'law': table['law'],
        'claim': table['claim'] + ' (' + table['source'] + ')',
        'agrees': table['agrees'],
        'note': table['note'].replace('', '–'),
    })  # fmt: skip
    if kind == evidence.WORST:  # these are the searches that found an ERM that errs, not all of them
        return texts.drop(columns=['lanes that learn'])
    return texts if kind in evidence.OF_THEOREMS else texts.drop(columns=['claim', 'agrees'])


def _lengths(values: Sequence[int], bounds_at: Sequence[int]) -> str:
    """'8, 16, (32)', in brackets where all lanes are bounds."""
    return ', '.join(f'({value})' if value in bounds_at else str(value) for value in values) or '–'


def _learn_text(line: Mapping[str, Any]) -> str:
    """'25 of 25 (86–100%)'."""
    if not line['num_judged']:
        return '–'
    return f'{line["num_learn"]} of {line["num_judged"]} ({line["learn_low"]:.0%}–{line["learn_high"]:.0%})'


def blocks(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Title and lines of each kind of evidence that has any."""
    return [(title, readable(table, kind)) for kind, title in TITLES.items() if (table['evidence'] == kind).any()]


def markdown(table: pd.DataFrame) -> str:
    """The table of `measure` in Markdown: the answers, then a block per kind of evidence."""
    parts = [(answers.TITLE, answers.answers(table)), *blocks(table)]
    titled = ((title.replace('*', r'\*'), block) for title, block in parts)
    return '\n'.join(f'**{title}**\n\n{formats.markdown(block)}' for title, block in titled)


def latex(table: pd.DataFrame) -> str:
    """The table of `measure` in LaTeX, without the notes; a `table` per kind of evidence."""
    return '\n'.join(
        formats.latex(
            readable(table, kind).drop(columns=['note', 'between neighbours', 'fitted to']),
            f'{title}. Exponents of the lanes that learn, with 95% intervals that hold the misfit of the law unless '
            'they are by lane noise alone; lanes draw their own task.',
            f'tab:measured-{kind}',
        )
        for kind, title in TITLES.items()
        if (table['evidence'] == kind).any()
    )


def each_threshold(rows: pd.DataFrame) -> pd.DataFrame:
    """Lanes at each threshold that they recorded; tuned lanes only at the threshold for which they were tuned."""
    is_tuned = rows['tuned'].fillna('').ne('') if 'tuned' in rows.columns else pd.Series(False, rows.index)
    kept = rows[is_tuned].drop(columns=['crossings', 'thresholds'], errors='ignore')
    others = crossings.at_thresholds(rows[~is_tuned])
    return pd.concat([part for part in (kept, others) if len(part)], ignore_index=True)


def _is_of_one_task(lanes: pd.DataFrame) -> bool:
    """Whether only N and d_e change along a curve."""
    settings = set(columns.with_role(lanes.columns, 'task')) - {'seq_len', 'test_seq_len', 'encoding_dim'}
    return all(lanes[name].nunique() <= 1 for name in settings)


def _line(kind: str, lanes: pd.DataFrame) -> dict[str, Any]:
    """One line of the table."""
    first = lanes.iloc[0]
    counts = lanes.groupby('seq_len')['seed'].nunique()
    fitted = lanes['seed'].where(~erms.is_short(lanes)).groupby(lanes['seq_len']).nunique()  # lanes that may be ERMs
    thin = ordered({*counts.index[counts < MIN_LANES], *fitted.index[fitted < MIN_LANES]})
    kept, counts = lanes[~lanes['seq_len'].isin(thin)], counts.drop(thin)
    found = fit(kept) if len(kept) else Exponent()
    few = f'without N = {", ".join(map(str, thin))}: fewer than {MIN_LANES} lanes' if thin else ''
    place = {'evidence': kind, 'architecture': first['model'], 'task': first['task'], 'loss': first['threshold']}
    place['token_dim'] = first.get('token_dim', np.nan)
    is_of_theorem = kind in evidence.OF_THEOREMS
    statement = STATEMENTS.get((first['model'], first['task'])) if is_of_theorem else None
    agrees, why = judge(statement, found, kept[~erms.is_short(kept)]) if is_of_theorem else ('–', '')
    if kind == evidence.WORST and agrees in ('yes', SLOWER):
        agrees, why = 'open', 'a lower bound, which could only have contradicted it'
    beside = caveat(kept) if agrees in ('yes', SLOWER) else ''  # a counter-example needs none
    lengths = sorted(set(map(int, kept['seq_len'])) - set(found.left_out))
    return place | _stated(statement) | {
        'learner': _learner(kind, lanes), 'N': tuple(lengths), 'bounds_at': found.bounds_at, 'lanes': _range(counts),
        **dict(zip(_LEARN, found.learn or summary.share(kept['outcome']), strict=True)), 'fitted_to': found.fitted_to,
        'exponent': _or_nan(found.value), 'low': _or_nan(found.low), 'high': _or_nan(found.high),
        'interval_by': found.interval_by,
        'local_slopes': growth.local_slopes(found), 'law': growth.law(found),
        'log_power': found.law.log_power.value if found.law else np.nan, 'agrees': agrees,
        'caveat': beside, 'note': '; '.join(part for part in (why, beside, found.note, few) if part),
    }  # fmt: skip


def _learner(kind: str, lanes: pd.DataFrame) -> str:
    """'adamw, learning rate tuned', or 'constrained, R = 1, point-wise risk, best of 2 starts, 4,000 steps each'."""
    first = lanes.iloc[0]
    tuned = '' if pd.isna(first.get('tuned', '')) else first.get('tuned', '')
    name = first['learner'] if first['learner'] != 'online' else first.get('optimizer', 'online')
    parts = [str(name)]
    if kind == evidence.ONLINE and not pd.isna(first.get('learning_rate')):
        parts.append(setting_text('learning_rate', first['learning_rate']))
    parts += [f'{heading(setting)} tuned' for setting in tuned.split()]
    if not pd.isna(first.get('radius')):
        parts.append(setting_text('radius', first['radius']))
    parts += ['point-wise risk'] if first.get('risk') == 'pointwise' else []
    if not pd.isna(first.get('encoding_factor')):
        parts.append(f'd_e = ⌊{first["encoding_factor"]:g} ln N⌋')
    elif 'encoding_dim' in lanes and lanes['seq_len'].nunique() > 1 == lanes['encoding_dim'].nunique():
        parts.append(f'd_e = {first["encoding_dim"]:g}')
    has_several = first.get('num_starts', 1) > 1
    parts += [f'best of {first["num_starts"]:.0f} starts'] if has_several else []
    if kind == evidence.FIXED and not pd.isna(first.get('max_steps')):
        parts.append(f'{first["max_steps"]:,.0f} steps{" each" if has_several else ""}')
    return ', '.join(parts)


def _range(counts: pd.Series) -> str:
    """'5', or '5-24'; '–' where no length has enough lanes."""
    if counts.empty:
        return '–'
    return f'{counts.min()}' if counts.nunique() == 1 else f'{counts.min()}-{counts.max()}'


def _stated(statement: Statement | None) -> dict[str, str]:
    return {'claim': statement.words if statement else '–', 'source': statement.source if statement else '–'}


def _unmeasured(where: tuple[str, str], statement: Statement) -> dict[str, Any]:
    nothing = dict.fromkeys(('loss', 'exponent', 'low', 'high', 'log_power', 'learn_low', 'learn_high'), np.nan)
    texts = dict.fromkeys(('learner', 'local_slopes', 'law', 'lanes'), '–')
    texts |= dict.fromkeys(('fitted_to', 'interval_by', 'caveat'), '')
    nothing |= {'num_learn': 0, 'num_judged': 0, 'token_dim': np.nan}
    place = {'evidence': evidence.FIXED, 'architecture': where[0], 'task': where[1], 'N': (), 'bounds_at': ()}
    return place | texts | nothing | _stated(statement) | {'agrees': 'not measured', 'note': 'no search over several N'}


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value
