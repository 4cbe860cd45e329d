"""Words in figures: names, settings, tick labels, exponents and what is measured."""

import re
import textwrap
from collections.abc import Sequence

import pandas as pd

from qstr_jax import analysis, columns
from qstr_jax.analysis import line_fit, resolution


def display(name: object) -> str:
    """A name, title or note for print: '$' is no mathtext, and a leading '_' would hide a label."""
    text = analysis.display(name).replace('$', r'\$')
    return f' {text}' if text.startswith('_') else text


def wrap(text: str, width: int) -> list[str]:
    """A text in lines, none of which ends within 'N = 7' or 'MSE 0.7'."""
    joined = re.sub(r'(?<=[^\W\d]) (?=\d)', '\u00a0', text.replace(' = ', '\u00a0=\u00a0'))
    return textwrap.wrap(joined, width=width)


def thousands(samples: float, _: float = 0) -> str:
    """A tick label: 20000 -> '20k', 500 -> '500'."""
    for unit, letter in ((1e6, 'M'), (1e3, 'k')):
        if samples >= unit:
            return f'{samples / unit:,g}{letter}'
    return f'{samples:g}'


def power(fit: analysis.Exponent, x: str) -> str:
    """'N^0.62 [0.55, 0.70]' as mathtext; a star behind an interval by the noise between lanes alone."""
    symbol = columns.get(x).symbol
    base = f'${symbol}^{{{fit.value:.2f}}}$' if symbol else f'slope {fit.value:.2f}'
    interval = fit.interval_text.replace(f' by {line_fit.BY_NOISE}]', ']*').replace('-', '−')
    return f'{base} {interval}'.strip()


def coarse_key(rows: pd.DataFrame, means: pd.DataFrame) -> list[str]:
    """What the ring around a mean is; empty if there is none."""
    return [resolution.note(rows).replace(resolution.MARK, 'rings around means', 1)] if means['is_coarse'].any() else []


def samples_to_threshold(rows: pd.DataFrame) -> str:
    """The label of an axis of samples: 'samples to test MSE < 0.7', or without the number if there are several.

    Searches for n* are of a training set of n prompts.
    """
    is_search = 'is_search' in rows.columns and rows['is_search'].eq(True).all()
    error, threshold = _aim(rows)
    what = '$n^*$, prompts' if is_search else 'samples'
    return f'{what} to {error.replace("MSE", "test MSE")} < {threshold:g}' if error else f'{what} to threshold'


def aim(rows: pd.DataFrame) -> str:
    """'to MSE 0.7', what the samples of a table are to; '' if there are several thresholds."""
    error, threshold = _aim(rows)
    return f'to {error} {threshold:g}' if error else ''


def _aim(rows: pd.DataFrame) -> tuple[str, float]:
    """The name of the error and its threshold; without a name if there are several."""
    thresholds = set(rows.get('threshold', ()))
    kinds = set(resolution.is_of_rate(rows))
    if len(thresholds) != 1 or len(kinds) != 1:
        return '', 0.0
    return 'error rate' if kinds.pop() else 'MSE', thresholds.pop()


def point_text(curve: analysis.Curve) -> str:
    """The settings of a curve's task in which curves differ, the title of its panel; '' if there are none."""
    return display(', '.join(analysis.setting_text(name, value) for name, value in curve.task.items()))


def notes_text(notes: str | Sequence[str], key: str) -> str:
    """Notes and the key of marks as one paragraph."""
    return display('; '.join([*([notes] if isinstance(notes, str) else notes), *([key] if key else [])]))
