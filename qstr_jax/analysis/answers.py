"""Table 1 in six lines: what the paper claims, what was measured by the theorem's own learner, and the verdict."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from qstr_jax.analysis import evidence, line_fit
from qstr_jax.analysis.exponents import Exponent
from qstr_jax.analysis.names import display
from qstr_jax.analysis.verdicts import DECIDED, STATEMENTS, Statement

TITLE = "Two tasks by three architectures: the claim, what was measured by the theorem's own learner, the verdict"
# What a cell of the table says about a learner besides its name: the ball, d_e and a risk with N labels a prompt.
_SHOWN = ('R = ', 'd_e = ', 'averaged risk')


def answers(table: pd.DataFrame) -> pd.DataFrame:
    """One line per architecture and task. Of several verdicts, the one that stands last in `DECIDED` counts."""
    return pd.DataFrame([_line(table, place, statement) for place, statement in STATEMENTS.items()])


def _line(table: pd.DataFrame, place: tuple[str, str], statement: Statement) -> dict[str, str]:
    """The answer for one architecture and task."""
    model, task = place
    own = table[table['architecture'].eq(model) & table['task'].eq(task) & table['exponent'].notna()]
    own = own.assign(kind=own['learner'].str.split(',').str[0])
    own = own[own['kind'].isin(statement.learners) & own['evidence'].isin(evidence.OF_THEOREMS)]
    # Each learner shows one radius, start and risk. Those with a verdict come first, then those with more N
    # that were measured, then those with more N that are bounds, then those with longer ones.
    bounds = own['bounds_at'].map(len)
    order = own.assign(is_open=~own['agrees'].isin(DECIDED), length=bounds - own['N'].map(len), bounds=-bounds)
    order = order.assign(shorter=-own['N'].map(max, na_action='ignore'))
    order = order.sort_values(['is_open', 'length', 'bounds', 'shorter'], kind='stable')
    best = order.groupby('kind', sort=False).head(1)
    shown = pd.concat([best, _undecided(order.drop(best.index), best, statement)]).sort_values('kind', kind='stable')
    return {
        'task': display(task),
        'architecture': display(model),
        'claim': f'{statement.words} ({statement.source})',
        'measured': '; '.join(map(_measured, shown.to_dict('records'))) or 'nothing by a learner of the theorem',
        'verdict': _verdict(own, best),
    }


def _undecided(others: pd.DataFrame, best: pd.DataFrame, statement: Statement) -> pd.DataFrame:
    """A further line of each learner with a verdict that could decide and does not: of its ball, or the longest."""
    could = others['is_open'] & others['interval_by'].ne(line_fit.BY_NOISE)
    if statement.risk == 'pointwise':
        could &= others['learner'].str.contains('point-wise risk')
    is_beside = others['kind'].isin(best.loc[~best['is_open'], 'kind'])
    balls = dict(zip(best['kind'], best['learner'].map(_ball), strict=True))
    is_other_ball = others['learner'].map(_ball) != others['kind'].map(balls)
    order = others.assign(is_other_ball=is_other_ball)[could & is_beside].sort_values('is_other_ball', kind='stable')
    return order.groupby('kind', sort=False).head(1)


def _ball(learner: str) -> str:
    """'R = 1' of 'constrained, R = 1, point-wise risk'; '' of other learners."""
    return next((part for part in learner.split(', ') if part.startswith('R = ')), '')


def _measured(line: dict[str, Any]) -> str:
    """'n* as N^0.39 [−0.04, 0.71] at N = 8 to 64, bounds at 128, d = 10, constrained, R = 1 (ERMs, 10 as bounds)'."""
    what = 'the largest n with an ERM that errs' if line['evidence'] == evidence.WORST else 'n*'
    lengths = [value for value in line['N'] if value not in line['bounds_at']]
    name, *settings = line['learner'].split(', ')
    settings += [] if 'point-wise risk' in settings else ['averaged risk']
    learner = ', '.join([name, *(one for one in settings if one.startswith(_SHOWN))])
    dim = '' if pd.isna(line['token_dim']) else f', d = {line["token_dim"]:g}'
    fitted = '' if line['fitted_to'] == 'all lanes' else f' ({line["fitted_to"]})'
    bounds = f', bounds at {", ".join(map(str, line["bounds_at"]))}' if len(line['bounds_at']) else ''
    is_open = '' if line['agrees'] in DECIDED else ' (open)'
    return (
        f'{what} as N^{exponent_text(line)} at N = {lengths[0]} to {lengths[-1]}{bounds}{dim}, '
        f'{learner}{fitted}{is_open}'
    )


def exponent_text(line: Mapping[str, Any]) -> str:
    """The exponent of a line of Table 1 with its interval; '–' if there is none."""
    if pd.isna(line['exponent']):
        return '–'
    low, high = (None if pd.isna(line[name]) else line[name] for name in ('low', 'high'))
    found = Exponent(value=line['exponent'], low=low, high=high, interval_by=line['interval_by'])
    return str(found).replace('-', '−')


def _verdict(own: pd.DataFrame, best: pd.DataFrame) -> str:
    """'yes', 'no' or 'slower than N', each with what stands beside it, 'open: why' or 'not measured'."""
    if own.empty:
        return 'not measured'
    for verdict in reversed(DECIDED):
        found = [line for line in (*best.to_dict('records'), *own.to_dict('records')) if line['agrees'] == verdict]
        if found:
            return ': '.join(part for part in (verdict, found[0]['caveat']) if part)
    return f'open: {best["note"].iloc[0].split("; ")[0]}'
