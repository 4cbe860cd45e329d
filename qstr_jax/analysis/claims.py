"""What the theorems claim about the growth of samples with N, and whether measured exponents agree.

A claim is about the exponent of N: n = O(polylog N) says at most 0, n = Ω(N d) at least 1, and n ≥ N^c more than 0.
Where the lanes do not tell N^a and (log N)^p apart, a claim that depends on it is open. The theorems bound what some
learner needs; the rows are what AdamW did.
"""

import dataclasses

from qstr_jax.analysis.exponents import Exponent

# One law counts as the better one if it is in this share of the bootstraps.
_SURE = 0.975


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper claims for one architecture and task.

    Attributes:
        words: the claim as the paper writes it.
        source: the theorem.
        kind: 'at most', 'at least' or 'more than'.
        value: the exponent that `kind` is about.
    """

    words: str
    source: str
    kind: str
    value: float


_POLYLOG = Claim(words='n ≤ polylog N', source='Theorem 4', kind='at most', value=0.0)
_LINEAR = Claim(words='n ≥ Ω(N d)', source='Theorem 6', kind='at least', value=1.0)
CLAIMS = {
    ('transformer', 'simple_qstr'): _POLYLOG,
    ('transformer', 'qstr'): _POLYLOG,
    ('rnn', 'simple_qstr'): dataclasses.replace(_POLYLOG, source='Theorem 7'),
    ('rnn', 'qstr'): Claim(words='n ≥ N^c for some c > 0', source='Theorem 9', kind='more than', value=0.0),
    ('ffn', 'simple_qstr'): _LINEAR,
    ('ffn', 'qstr'): _LINEAR,
}


def judge(claim: Claim | None, fit: Exponent, power: float, share: float) -> tuple[str, str]:
    """Whether a measured curve agrees with a claim.

    Args:
        claim: the claim; None if the paper makes none.
        fit: the exponent of the curve.
        power: p of the law (log N)^p, from `growth.log_power`.
        share: how often N^a fits better, from `growth.log_power`.

    Returns:
        'yes', 'no', 'open' or 'not measured', and why in words.
    """
    if fit.value is None:
        return 'not measured', ''
    if claim is None:
        return 'open', 'the paper claims nothing for it'
    if fit.low is None or fit.high is None:
        return 'open', ''  # The note of the exponent says why.
    is_power, is_log = share >= _SURE, share <= 1 - _SURE
    law = f'(log N)^{power:.1f} fits ' + ('better' if is_log else 'worse' if is_power else 'as well')
    if claim.kind == 'at most':
        if fit.low <= claim.value:
            return 'yes', ''
        if is_log:  # It grows, but as the claim allows.
            return 'yes', law
        return ('no', law) if is_power else ('open', f'at these N {law}')
    if fit.high < claim.value:
        return 'no', ''
    if fit.low < claim.value or (fit.low == claim.value and claim.kind == 'more than'):
        return 'open', f'the interval holds {claim.value:g}'
    return ('yes', law) if is_power else ('open', f'at these N {law}')
