"""What the theorems claim about the growth of samples with N, and whether n* of empirical risk minimisers agrees.

A claim is about the exponent of N: n = O(polylog N) says at most 0, n = Ω(N d) at least 1, and n ≥ N^c more than 0. It
is about certain learners on n prompts, so samples of online training are not judged by it.
"""

import dataclasses

import pandas as pd

from qstr_jax.analysis import erms, laws, line_fit
from qstr_jax.analysis.exponents import Exponent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper claims for one architecture and task.

    Attributes:
        words: the claim as the paper writes it.
        source: the theorem.
        kind: 'at most', 'at least' or 'more than'.
        value: the exponent that `kind` is about.
        learners: those that it is about.
        risk: which risk they minimise; '' for either.
    """

    words: str
    source: str
    kind: str
    value: float
    learners: tuple[str, ...]
    risk: str = 'pointwise'


_POLYLOG = Claim(
    words='n ≤ polylog N', source='Theorem 4', kind='at most', value=0.0, learners=('constrained', erms.WORST)
)
_LINEAR = Claim(
    words='n ≥ Ω(N d)', source='Theorem 6', kind='at least', value=1.0, learners=('stationary', 'min_norm'), risk=''
)
CLAIMS = {
    ('transformer', 'simple_qstr'): _POLYLOG,
    ('transformer', 'qstr'): _POLYLOG,
    ('rnn', 'simple_qstr'): dataclasses.replace(_POLYLOG, source='Theorem 7'),
    ('rnn', 'qstr'): Claim(
        words='n ≥ N^c for some c > 0', source='Theorem 9', kind='more than', value=0.0, learners=('min_norm',)
    ),
    ('ffn', 'simple_qstr'): _LINEAR,
    ('ffn', 'qstr'): _LINEAR,
}


def judge(claim: Claim | None, fit: Exponent, lanes: pd.DataFrame) -> tuple[str, str]:
    """Whether the growth of n* agrees with a claim.

    Args:
        claim: the claim; None if the paper makes none.
        fit: the exponent of the curve.
        lanes: the searches that it was fitted to.

    Returns:
        'yes', 'no', 'open' or 'not measured', and why in words.
    """
    if fit.value is None or fit.low is None or fit.high is None:
        return 'not measured', ''
    if claim is None:
        return 'open', 'the paper claims nothing for it'
    if why := _not_of_the_theorem(claim, lanes):
        return 'open', why
    if fit.interval_by == line_fit.BY_NOISE:
        return 'open', 'three lengths say nothing of the misfit'
    if fit.high < claim.value:
        return ('yes', '') if claim.kind == 'at most' else ('no', '')
    if fit.low <= claim.value <= fit.high and not (claim.kind == 'at least' and fit.low == claim.value):
        return 'open', f'the interval holds {claim.value:g}'
    law = fit.law.name if fit.law else laws.UNDECIDED
    if law == laws.UNDECIDED:
        return 'open', 'N^a and (log N)^p are not told apart'
    return ('yes' if (law == laws.POWER) == (claim.kind != 'at most') else 'no'), f'it grows like {law}'


def _not_of_the_theorem(claim: Claim, lanes: pd.DataFrame) -> str:
    """Why a theorem is not about some searches: another learner or risk, or lanes that minimise no risk; or ''."""
    if not set(lanes['learner']) <= set(claim.learners):
        return f'{claim.source} is about {" and ".join(claim.learners)}'
    if claim.risk and set(lanes['risk']) != {claim.risk}:
        return f'{claim.source} is about the point-wise risk'
    moving = lanes['learner'].eq('stationary') & lanes['outcome'].eq('reached') & lanes['converged'].eq(False)
    if moving.any():
        return f'{moving.sum()} of {len(lanes)} lanes end at no stationary point'
    # A training risk above the threshold is far from the least one, which is about 0.
    above = lanes['train_risk'] > lanes['threshold']
    return f'{above.sum()} of {len(lanes)} lanes do not minimise the training risk' if above.any() else ''
