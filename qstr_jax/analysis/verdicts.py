"""What the theorems say about the growth of samples with N, and whether n* of empirical risk minimisers agrees.

A statement is about the exponent of N: n = O(polylog N) says at most 0, n = Ω(N d) at least 1, and n ≥ N^c more than 0.
It is about certain learners on n prompts, so samples of online training are not judged by it. At the lengths of a
laboratory N^0.2 and a power of log N look alike; but an exponent below 1 tells the growth from that of FFNs, which is
what Table 1 of the paper says.
"""

import dataclasses

import pandas as pd

from qstr_jax.analysis import erms, laws, line_fit
from qstr_jax.analysis.exponents import Exponent

# The verdict on a claim of polylog N where the exponent is known to be below 1, the least that Theorem 6 allows FFNs.
SLOWER = 'slower than N'
# The verdicts that decide a statement, from the weakest to the strongest.
DECIDED = (SLOWER, 'yes', 'no')
# A first layer with a larger share off the span of the prompts is not where Theorem 6's proof has it.
_OFF_SPAN = 1e-3
# The largest coherence of encodings by Assumption 3.
_COHERENCE = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Statement:
    """What a theorem says about one architecture and task."""

    words: str  # as the paper writes it
    source: str
    kind: str  # 'at most', 'at least' or 'more than'
    value: float  # the exponent that `kind` is about
    learners: tuple[str, ...]  # the learners that the theorem is about
    risk: str = 'pointwise'  # which risk they minimise; '' for either


_POLYLOG = Statement(
    words='n ≤ polylog N', source='Theorem 4', kind='at most', value=0.0, learners=('constrained', erms.WORST)
)
_LINEAR = Statement(
    words='n ≥ Ω(N d)', source='Theorem 6', kind='at least', value=1.0, learners=('stationary', 'min_norm'), risk=''
)
STATEMENTS = {
    ('transformer', 'simple_qstr'): _POLYLOG,
    ('transformer', 'qstr'): _POLYLOG,
    ('rnn', 'simple_qstr'): dataclasses.replace(_POLYLOG, source='Theorem 7'),
    ('rnn', 'qstr'): Statement(
        words='n ≥ N^c for some c > 0', source='Theorem 9', kind='more than', value=0.0, learners=('min_norm',)
    ),
    ('ffn', 'simple_qstr'): _LINEAR,
    ('ffn', 'qstr'): _LINEAR,
}


def judge(statement: Statement | None, fit: Exponent, lanes: pd.DataFrame) -> tuple[str, str]:
    """Whether the growth of n* agrees with a statement: 'yes', 'no', `SLOWER`, 'open' or 'not measured', and why."""
    if fit.value is None or fit.low is None or fit.high is None:
        return 'not measured', ''
    if statement is None:
        return 'open', 'the paper claims nothing for it'
    if why := _not_of_the_theorem(statement, lanes):
        return 'open', why
    if fit.interval_by == line_fit.BY_NOISE:
        return 'open', 'three lengths say nothing of the misfit'
    verdict, why = _by_growth(statement, fit)
    return (SLOWER, why) if verdict == 'open' and statement.kind == 'at most' and fit.high < 1 else (verdict, why)


def caveat(lanes: pd.DataFrame) -> str:
    """What stands beside a verdict by some lanes: which ERMs or stationary points they are, with which encodings."""
    if set(lanes['learner']) == {'constrained'}:
        most = lanes.get('encoding_coherence', pd.Series(dtype=float)).max()
        at = f', at coherence up to {most:.2f} (Assumption 3: 0.5)' if most > _COHERENCE else ''
        return f'of the ERMs that its optimiser finds{at}'
    if set(lanes['learner']) != {'stationary'}:
        return ''
    learnt = lanes[lanes['outcome'] == 'reached']
    still = learnt['converged'].eq(True).sum()
    return f'{still} gradients of {len(learnt)} are 0' if still else 'no gradient is 0'


def _by_growth(statement: Statement, fit: Exponent) -> tuple[str, str]:
    """What the exponent and the law of some lanes say about a statement; 'open' where they do not decide it."""
    assert fit.low is not None
    assert fit.high is not None
    if fit.high < statement.value:
        return ('yes', '') if statement.kind == 'at most' else ('no', '')
    if fit.low <= statement.value <= fit.high and not (statement.kind == 'at least' and fit.low == statement.value):
        return 'open', f'the interval holds {statement.value:g}'
    law = fit.law.name if fit.law else laws.UNDECIDED
    if law == laws.UNDECIDED:
        return 'open', 'N^a and (log N)^p are not told apart'
    if fit.law and fit.law.needed is not None:
        return 'open', f'without N = {fit.law.needed} N^a and (log N)^p are not told apart'
    return ('yes' if (law == laws.POWER) == (statement.kind != 'at most') else 'no'), f'of the two laws {law} fits'


def _not_of_the_theorem(statement: Statement, lanes: pd.DataFrame) -> str:
    """Why a theorem is not about some searches: another learner or risk, or lanes that do not minimise it; or ''."""
    if not set(lanes['learner']) <= set(statement.learners):
        return f'{statement.source} is about {" and ".join(statement.learners)}'
    if statement.risk and set(lanes['risk']) != {statement.risk}:
        return f'{statement.source} is about the point-wise risk'
    moving = _is_moving(lanes)
    if moving.any():
        return f'{moving.sum()} of {len(lanes)} lanes end at no stationary point'
    above = (lanes['train_risk'] > lanes['threshold']) & lanes['learner'].ne('stationary')
    return f'{above.sum()} of {len(lanes)} lanes do not minimise the training risk' if above.any() else ''


def _is_moving(lanes: pd.DataFrame) -> pd.Series:
    """Which lanes of `stationary` reached the threshold, but not at a point as Theorem 6's proof needs it.

    The proof needs W in the span of the prompts, not a gradient of 0. From N d prompts on every W is in their span, so
    the span says nothing. Then, and for rows without a span, the row's own tolerance decides.
    """
    residual = lanes.get('span_residual', pd.Series(float('nan'), lanes.index))
    is_whole = lanes['samples_to_threshold'] >= lanes['seq_len'] * lanes['token_dim']
    is_in_span = (residual < _OFF_SPAN) & ~is_whole.fillna(False)
    is_there = lanes['converged'].eq(True) & ~(residual >= _OFF_SPAN) | is_in_span
    return lanes['learner'].eq('stationary') & lanes['outcome'].eq('reached') & ~is_there.fillna(False).astype(bool)
