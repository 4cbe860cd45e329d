"""Table 1 of the paper, measured: how samples grow with N per architecture and task, beside the theorems' claims.

A claim is an exponent: n = O(polylog N) says at most 0, n = Ω(N d) at least 1, n ≥ N^c more than 0. Over a few short
lengths (log N)^p and N^a look alike, so both laws are fitted, and where the lanes do not tell them apart a claim
that hangs on it is open. The theorems bound what some learner needs; the rows are what AdamW did.
"""

import dataclasses

import numpy as np
import pandas as pd

from qstr_jax import analysis
from qstr_jax.analysis import formats
from qstr_jax.storage import results


@dataclasses.dataclass(frozen=True)
class Claim:
    """What the paper claims: `kind` is 'at most', 'at least' or 'more than' for the exponent `value`."""

    words: str
    source: str
    kind: str
    value: float


_ANY_C = Claim('n ≥ N^c for some c > 0', 'Theorem 9', 'more than', 0.0)
_LINEAR = Claim('n ≥ Ω(N d)', 'Theorem 6', 'at least', 1.0)
CLAIMS = {
    ('transformer', 'simple_qstr'): Claim('n ≤ polylog N', 'Theorem 4', 'at most', 0.0),
    ('transformer', 'qstr'): Claim('n ≤ polylog N', 'Theorem 4', 'at most', 0.0),
    ('rnn', 'simple_qstr'): Claim('n ≤ polylog N', 'Theorem 7', 'at most', 0.0),
    ('rnn', 'qstr'): _ANY_C,
    ('ffn', 'simple_qstr'): _LINEAR,
    ('ffn', 'qstr'): _LINEAR,
}

# What a curve has one of, besides model and task; widths follow N and are no part of it.
CURVE = ('sparsity', 'threshold', 'link', 'risk', 'learner', 'learning_rate', 'weight_decay', 'preset', 'token_dim',
         'encoding_scale')  # fmt: skip

# Links whose labels have variance 1 at q = 1.
VARIANCE_ONE = ('linear', 'mean', 'sum', 'hermite2')

NUM_DRAWS = 2000
SURE = 0.975  # share of the bootstraps from which one law counts as the better one

COLUMNS = ('architecture', 'task', 'loss', 'N', 'lanes', 'exponent', 'low', 'high', 'log_power', 'claim', 'source',
           'agrees', 'note')  # fmt: skip


def measure(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per curve: the exponent of samples in N with its interval, the claim, and whether they agree.

    Args:
        rows: lanes of any sweeps, as of `studies.load`; the same lane twice counts once. Cells whose lanes share one
            (u, ω) are left out, since such repeats understate the error; the column `folder`, if there is one, tells
            cells of different directories apart.

    Returns:
        COLUMNS: `loss` is the threshold, `N` the lengths that the exponent is fitted to, `lanes` per length,
        `exponent` with `low` and `high` as of `analysis.exponent` (NaN if there is none), `log_power` the p of a fit
        of (log N)^p to the same means, `agrees` 'yes', 'no', 'open' or 'not measured', and `note`, why.

    Raises:
        ValueError: missing columns.
    """
    lines, own = [], rows
    if len(rows):
        analysis.require(rows, ('model', 'task', 'seq_len', 'seed', 'task_seed', 'outcome', *CURVE))
        rows = rows[rows['learner'] == 'online_adamw']  # n of the others is given to them, or searched
        own = _distinct(_own_draws(rows)) if len(rows) else rows
        lines = [_line(lanes) for lanes in _curves(own)] if len(own) else []
    seen = {(line['architecture'], line['task']) for line in lines}
    for (model, task), claim in CLAIMS.items():
        if (model, task) not in seen:
            lines.append(_unmeasured(model, task, claim, _why_unmeasured(model, task, rows, own)))
    frame = pd.DataFrame(lines, columns=list(COLUMNS))
    order = [*analysis.MODELS, *sorted(set(frame['architecture']) - set(analysis.MODELS))]
    rank = frame.assign(by_task=frame['task'].ne('simple_qstr'), by_model=frame['architecture'].map(order.index))
    return frame.loc[rank.sort_values(['by_task', 'by_model', 'loss'], kind='stable').index].reset_index(drop=True)


def _distinct(rows):
    """Each lane once: two directories may hold it, with and without screening."""
    lane = [name for name in results.LANE_COLUMNS if name in rows.columns]
    # As objects, or a column of one number type would make floats of all.
    rows = rows.assign(**{name: rows[name].astype(object).map(_plain).astype(object) for name in _shape_columns(rows)})
    names = list(dict.fromkeys(['model', 'task', 'seq_len', *CURVE, *lane, *_shape_columns(rows)]))
    keys = rows[names].astype(object)
    keys = keys.where(keys.notna(), None)  # None of one directory and NaN of another are both "not there"
    return rows[~keys.duplicated()].reset_index(drop=True)


def _shape_columns(rows):
    """Settings of the models and the encodings, which make curves of their own."""
    names = ('encoding_dim', 'max_coherence')
    prefixes = tuple(f'{model}_' for model in set(rows['model']))
    return [c for c in rows.columns if c in names or c.startswith(prefixes)]


def _plain(value):
    """A whole number as it is, whether its column also had missing ones, and so floats, or not."""
    return int(value) if isinstance(value, (float, np.floating)) and float(value).is_integer() else value


def _own_draws(rows):
    """The lanes of cells in which every lane draws its own (u, ω), with `reach`, how many N the lane's folder has."""
    rows = rows if 'folder' in rows.columns else rows.assign(folder='')
    lanes = rows.groupby(['folder', 'model', 'task', 'seq_len', *CURVE, *_shape_columns(rows)], dropna=False)
    rows = rows[lanes['task_seed'].transform('nunique') == lanes['seed'].transform('nunique')]
    reach = rows.groupby(['folder', 'model', 'task', *CURVE], dropna=False)['seq_len'].transform('nunique')
    return rows.assign(reach=reach).sort_values('reach', ascending=False, kind='stable')


def _curves(rows):
    """Lanes of each curve. Of several widths or d_e at one N that of the folder with the most N is taken."""
    curves = []
    for _, lanes in rows.groupby(['model', 'task', *CURVE], observed=True):
        shape = [repr(row) for row in lanes[_shape_columns(lanes)].itertuples(index=False, name=None)]
        lanes = lanes.assign(shape=shape)
        farthest = lanes['reach'] == lanes.groupby('seq_len')['reach'].transform('max')
        known = lanes[farthest].groupby('seq_len')['shape'].agg(['nunique', 'first'])
        known = known.loc[known['nunique'] == 1, 'first']
        lanes = lanes[lanes['shape'] == lanes['seq_len'].map(known)]
        # Rows of a study name the settings of all models, so that `_distinct` does not know them as the same lane.
        lanes = lanes.drop_duplicates(['seq_len', 'seed', 'task_seed'])
        if lanes['seq_len'].nunique() > 1:
            curves.append(lanes)
    return curves


def _line(lanes):
    """One line of the table."""
    first = lanes.iloc[0]
    claim = CLAIMS.get((first['model'], first['task']))
    lanes, left_out = _without_easy(lanes)
    fit = analysis.exponent(lanes) if len(lanes) else analysis.Exponent(None, None, None, 0, (), 'no N is left')
    lengths = sorted(set(map(int, lanes['seq_len'])) - set(fit.left_out))
    counts = lanes.groupby('seq_len')['seed'].nunique()
    power, share = log_power(lanes[lanes['seq_len'].isin(lengths)]) if fit.value is not None else (np.nan, np.nan)
    agrees, why = judge(claim, fit, power, share)
    risk = 'by the point-wise risk' if first['risk'] == 'pointwise' else ''
    return {
        'architecture': first['model'], 'task': first['task'], 'loss': first['threshold'], 'N': tuple(lengths),
        'lanes': f'{counts.min()}' if counts.nunique() == 1 else f'{counts.min()}-{counts.max()}',
        'exponent': _or_nan(fit.value), 'low': _or_nan(fit.low), 'high': _or_nan(fit.high), 'log_power': power,
        'claim': claim.words if claim else '–', 'source': claim.source if claim else '–', 'agrees': agrees,
        'note': '; '.join(part for part in (risk, why, fit.note, left_out) if part),
    }  # fmt: skip


def _why_unmeasured(model, task, rows, own):
    def has(frame):
        return len(frame) and bool(((frame['model'] == model) & (frame['task'] == task)).any())

    if has(own):
        return 'only one N'
    return 'all lanes share one (u, ω)' if has(rows) else 'no rows'


def _unmeasured(model, task, claim, note):
    nothing = dict.fromkeys(('loss', 'exponent', 'low', 'high', 'log_power'), np.nan)
    return {'architecture': model, 'task': task, 'N': (), 'lanes': '0', 'claim': claim.words, 'source': claim.source,
            'agrees': 'not measured', 'note': note, **nothing}  # fmt: skip


def _without_easy(lanes):
    """The lanes without those N at which a predictor that ignores t is good enough, and what was left out, in words.

    For q = 1, tokens N(0, I) and uniform t it errs by the share 1 − 1/N of the label variance 1: the mean of the
    link over all tokens.
    """
    first = lanes.iloc[0]
    if first['sparsity'] > 1 or first['link'] not in VARIANCE_ONE:
        return lanes, ''
    is_easy = 1 - 1 / lanes['seq_len'] <= first['threshold']
    easy = ', '.join(map(str, sorted(set(lanes.loc[is_easy, 'seq_len']))))
    note = f'without N = {easy}: 1 − 1/N ≤ {first["threshold"]:g} needs no retrieval' if easy else ''
    return lanes[~is_easy], note


def _or_nan(value):
    return np.nan if value is None else value


def log_power(lanes):
    """The other law, (log N)^p: p by least squares of log(mean samples) on log log N, and how often N^a fits better.

    Args:
        lanes: of one curve, all of which reached.

    Returns:
        (p, share): in `share` of NUM_DRAWS bootstraps (lanes resampled within each N, seeded) the power law leaves
        the smaller sum of squares; near 0 or 1 the data tell the two laws apart, in between they do not.
    """
    samples = [np.sort(cell['samples_to_threshold'].to_numpy(float)) for _, cell in lanes.groupby('seq_len')]
    log_n = np.log(sorted(set(lanes['seq_len'])))
    power = np.polyfit(np.log(log_n), np.log([lane.mean() for lane in samples]), 1)[0]
    rng = np.random.default_rng(0)
    draws = [rng.choice(lane, (NUM_DRAWS, lane.size)).mean(axis=1) for lane in samples]
    log_means = np.log(np.stack(draws))
    return float(power), float(np.mean(_misfit(log_n, log_means) < _misfit(np.log(log_n), log_means)))


def growth(rows: pd.DataFrame) -> pd.DataFrame:
    """Both laws for every curve of `rows`: N^a with its interval, and (log N)^p; no claims.

    Args:
        rows: lanes of one task and sparsity, as for `analysis.exponent`; curves differ in `model`.

    Returns:
        model, N (lengths at which every lane reached), exponent, low, high, log_power, power_is_better (share of
        bootstraps in which N^a leaves the smaller sum of squares); NaN where fewer than three N are left.
    """
    table = []
    for lanes in analysis.split_curves(rows):
        fit = analysis.exponent(lanes)
        reached = lanes[~lanes['seq_len'].isin(fit.left_out)]
        power, share = log_power(reached) if fit.value is not None else (np.nan, np.nan)
        lengths = ', '.join(map(str, sorted(set(reached['seq_len']))))
        table.append((lanes['model'].iloc[0], lengths, fit.value, fit.low, fit.high, power, share))
    names = ['model', 'N', 'exponent', 'low', 'high', 'log_power', 'power_is_better']
    return pd.DataFrame(table, columns=names).astype(dict.fromkeys(names[2:], float))


def _misfit(x, log_means):
    """Sum of squares that a straight line in x (lengths,) leaves of log means (lengths, draws), (draws,)."""
    return np.polyfit(x, log_means, 1, full=True)[1]


def judge(claim, fit, power, share):
    """('yes' | 'no' | 'open' | 'not measured', why) for one claim, an `analysis.Exponent` and `log_power`'s answer."""
    if fit.value is None:
        return 'not measured', ''
    if claim is None:
        return 'open', 'the paper claims nothing for it'
    if fit.low is None:
        return 'open', ''  # the fit's own note says it
    is_power, is_log = share >= SURE, share <= 1 - SURE
    law = f'(log N)^{power:.1f} fits ' + ('better' if is_log else 'worse' if is_power else 'as well')
    if claim.kind == 'at most':
        if fit.low <= claim.value:
            return 'yes', ''
        if is_log:  # grows, but as the claim allows
            return 'yes', law
        return ('no', law) if is_power else ('open', f'at these N {law}')
    if fit.high < claim.value:
        return 'no', ''
    if fit.low < claim.value or (fit.low == claim.value and claim.kind == 'more than'):
        return 'open', f'the interval holds {claim.value:g}'
    return ('yes', law) if is_power else ('open', f'at these N {law}')


def display(table):
    """The table as it is printed: names, and the exponent with its interval in one column."""
    names = analysis.DISPLAY_NAMES
    interval = [
        '–' if np.isnan(value) else f'{value:.2f}' + ('' if np.isnan(low) else f' [{low:.2f}, {high:.2f}]')
        for value, low, high in zip(table['exponent'], table['low'], table['high'], strict=True)
    ]
    return pd.DataFrame({
        'architecture': table['architecture'].map(lambda name: names.get(name, name)),
        'task': table['task'].map(lambda name: names.get(name, name)),
        'loss below': table['loss'],
        'N': table['N'].map(lambda lengths: ', '.join(map(str, lengths)) or '–'),
        'lanes per N': table['lanes'],
        'n grows as N to the': interval,
        'or as log N to the': table['log_power'].map(lambda power: '–' if np.isnan(power) else f'{power:.1f}'),
        'claim': table['claim'] + ' (' + table['source'] + ')',
        'agrees': table['agrees'],
        'note': table['note'].replace('', '–'),
    })  # fmt: skip


def markdown(table):
    """The table of `measure` in Markdown."""
    return formats.markdown(display(table))


def latex(table):
    """The table of `measure` in LaTeX."""
    caption = (
        'Measured growth of the number of samples with N (exponent with 95% interval over lanes that draw '
        'their own task), and what the theorems claim.'
    )
    return formats.latex(display(table).drop(columns='note'), caption, 'tab:measured')
