"""n* of networks of least norm: the least n with test loss 0.2 against N (Theorems 9 and 6).

Part `rnn`: 1STR at d = 1, an RNN whose states lie in the unit ball (r_h = 1). Parts `ffn` and `ffn_qstr`: simple-1STR
and 1STR at d = 2, the FFN f(T, W x) of `n_star_stationary`; `ffn_d1` has the RNN's task. `long` has longer N;
`rnn_wide` and `ffn_wide` are `rnn` and `ffn_qstr` with more units and a smaller rate. The point-wise risk; the least
norm with R̂ ≤ 0.01 by bisection on the radius, 4,000 steps a radius; linear link, five lanes with a task each.
"""

from experiments.exhibits import n_star_stationary
from qstr_jax.analysis import formats
from qstr_jax.cli import base
from qstr_jax.report import numbers

ORDER = 205
QUESTION = 'How many prompts do RNNs and FFNs of least norm need?'
FOLDERS = {
    'n_star_min_norm_rnn_wide': ('rnn_wide',),
    'n_star_min_norm_rnn': ('rnn', 'rnn_long'),
    'n_star_min_norm_ffn': ('ffn', 'ffn_long'),
    'n_star_min_norm_ffn_wide': ('ffn_wide',),
    'n_star_min_norm_ffn_qstr': ('ffn_qstr',),
    'n_star_min_norm_ffn_d1': ('ffn_d1',),
}
TITLES = {
    'n_star_min_norm_rnn_wide': 'n* of least norm, RNN of 1,024 units: 1STR, d = 1',
    'n_star_min_norm_rnn': 'n* of least norm, RNN of 128 units: 1STR, d = 1',
    'n_star_min_norm_ffn': 'n* of least norm, FFN of 64 units, simple-1STR: d = 2',
    'n_star_min_norm_ffn_wide': 'n* of least norm, FFN of 1,024 units: 1STR, d = 2',
    'n_star_min_norm_ffn_qstr': 'n* of least norm, FFN of 64 units, 1STR: d = 2',
    'n_star_min_norm_ffn_d1': 'n* of least norm, FFN of 64 units at d = 1: 1STR',
}
FIGURES = {
    'n_star_min_norm_rnn_wide/figure.png': 'n* of RNNs of least norm against N, 1STR, d = 1',
    'n_star_min_norm_ffn_wide/figure.png': 'n* of FFNs of least norm against N, 1STR, d = 2',
    'n_star_min_norm_ffn/figure.png': 'n* of FFNs of least norm against N, simple-1STR, d = 2',
    'n_star_min_norm_rnn/figure.png': 'RNNs of 16 states and a read-out of 128 units on 1STR',
    'n_star_min_norm_ffn_qstr/figure.png': 'FFNs of 64 units in the first layer on 1STR',
    'n_star_min_norm_ffn_d1/figure.png': 'The same on 1STR, d = 1',
}


def get_config(part='rnn'):
    """From n = 8 to 5,120, but to 20,480 in all but `rnn` and `ffn`; the RNN's read-out has one hidden layer of 128."""
    base.check_part(part, FOLDERS)
    config = n_star_stationary.get_config('simple')
    config.learners = ('min_norm',)
    config.update(weight_decay=None, tolerance=None, span=None, risk='pointwise', epsilon=0.01, bisections=5)
    config.update(max_steps=4000, check_every=500, max_samples=5120, seq_lens=(2, 3, 4, 6, 8, 10, 12))
    config.title = '{task}, d = {token_dim}: n* of networks of least norm'
    if part.startswith('rnn'):
        config.update(models=('rnn',), task={'name': 'qstr'}, token_dim=1, encoding_dim=8)
        config.seq_lens = (2, 3, 4, 5, 6, 8)
        config.ffn.update(form=None, widths=None)
        config.rnn.update(cell='deep', states='exclusive', radius=1.0, width=16, readout='mlp', readout_widths=(128,))
    if part == 'rnn_wide':
        config.seq_lens = (2, 3, 4, 6, 8, 12)
        config.rnn.update(width=32, readout_widths=(1024,))
        config.learning_rate = 3e-3
    if part in ('ffn_qstr', 'ffn_wide'):
        config.update(task={'name': 'qstr'}, seq_lens=(2, 3, 4, 5, 6))
    if part == 'ffn_wide':
        config.ffn.widths = (1024, 64)
        config.learning_rate = 3e-3
    if part == 'ffn_d1':
        config.update(task={'name': 'qstr'}, token_dim=1, encoding_dim=8, seq_lens=(2, 3, 4, 5, 6))
    if part not in ('rnn', 'ffn'):
        config.max_samples = 20_480
    if part.endswith('long'):
        config.seq_lens = (10, 12) if part == 'rnn_long' else (16,)
    return config


def reduced(part='rnn'):
    """The same in seconds, for the tests; d = 1 everywhere, so that parts share their programs."""
    small = {'ffn': {'widths': (8, 8)}} if part.startswith('ffn') else {'rnn': {'width': 4, 'readout_widths': (8,)}}
    return base.shrink_search(get_config(part), seq_lens=(2,), token_dim=1, encoding_dim=4, bisections=1, **small)


def text(rows):
    rnns, narrow_rnns, *ffns = (rows(folder) for folder in FOLDERS)
    ffn, wide, narrow, d1 = ffns
    known, known_ffn, known_wide = (of_enough(lanes) for lanes in (rnns, ffn, wide))
    return f"""
RNNs on 1STR at d = {rnns.values('token_dim')[0]} need N^{known.exponent()} prompts, {ends(known)}; FFNs at d =
{ffn.values('token_dim')[0]} need N^{known_ffn.exponent()} on simple-1STR, {ends(known_ffn)}, and
N^{known_wide.exponent()} on 1STR, {ends(known_wide)}.

N^a or (log N)^p: {known.law()} for RNNs, {known_ffn.law()} for FFNs on simple-1STR, {known_wide.law()} on 1STR. Between
neighbouring N the RNNs' exponent is {known.slopes()}, and without N = 2 the law is
{longer(known).law()}.

The networks on 1STR above have rate {rate(rnns)}, the RNNs a read-out of {units(rnns)} units, the FFNs a first layer of
{units(wide)}. Smaller ones at rate {rate(narrow)} fail from some N on, since they fit no training set that is large
enough: RNNs with a read-out of {units(narrow_rnns)} need {up_to(narrow_rnns)}.

FFNs of {units(narrow)} units need {up_to(narrow)}; at d = 1, as the RNNs, {up_to(d1)}. No row tells whether the
units or the rate make the difference. A ReLU network that looks up one of N tokens for each of N positions by gates has
2 N² of them, 50 at N = 5.

{erms(rnns, narrow_rnns)} RNNs and {erms(*ffns)} FFNs have a training risk of at most ε = {rnns.values('epsilon')[0]:g},
so they are ERMs by the theorems' definition; a lane that has not is in no exponent, and neither is an N with fewer than
{numbers.MIN_LANES} ERMs. The directories took {', '.join(rows(folder).time() for folder in FOLDERS)}.
"""


def limits(rows):
    known = of_enough(rows('n_star_min_norm_rnn_wide'))
    means = known.table.groupby('seq_len')['samples_to_threshold'].min()
    beyond = known.where(seq_len=tuple(means.index[means > int(units(known).replace(',', ''))]))
    return f"""
That no network of smaller norm fits: the least norm is the least that a search of radii found. Theorem 9 claims N^c for
large N; without N = 2 the RNNs' law is {longer(known).law()}. Its memoriser has a unit for each prompt, and from N =
{beyond.values('seq_len')[0]} on n\\* is more than the {units(known)} units of the read-out.

Units and rate on 1STR were chosen from a few, since with them the training sets of two reported lanes are fitted.
"""


def longer(lanes):
    """The lanes without those of the shortest prompts."""
    return lanes.where(seq_len=tuple(lanes.values('seq_len')[1:]))


def erms(*some):
    """'61 of 70': how many lanes end at an ERM."""
    return f'{sum(lanes.count(converged=True) for lanes in some)} of {sum(lanes.count() for lanes in some)}'


def units(lanes):
    """'1,024': those of the first layer of an FFN, or of an RNN's read-out."""
    name = 'ffn_widths' if 'ffn_widths' in lanes.table else 'rnn_readout_widths'
    return f'{int(lanes.values(name)[0].partition(",")[0]):,}'


def rate(lanes):
    """'0.003'."""
    return f'{lanes.values("learning_rate")[0]:g}'


def ends(lanes):
    """'from 62.1 at N = 2 to 2.35k at N = 8'."""
    first, *_, last = ((lanes.where(seq_len=seq_len).mean(), seq_len) for seq_len in lanes.values('seq_len'))
    return f'from {first[0]} at N = {first[1]} to {last[0]} at N = {last[1]}'


def up_to(lanes):
    """'61.8, 344, 1.19k at N = 2, 3, 4, and 10 of 10 lanes do not learn at N = 5, 6'."""
    known, failed = of_enough(lanes), lanes.where(outcome='censored')
    at, beyond = (', '.join(map(str, some.values('seq_len'))) for some in (known, failed))
    tried = lanes.count(seq_len=tuple(failed.values('seq_len')))
    return f'{known.mean(by="seq_len")} at N = {at}, and {failed.count()} of {tried} lanes do not learn at N = {beyond}'


def of_enough(lanes):
    """The ERMs that learn, at each N that has enough of them for a mean."""
    fitted = lanes.where(converged=True, outcome='reached')
    counts = fitted.table['seq_len'].value_counts()
    return fitted.where(seq_len=tuple(counts.index[counts >= numbers.MIN_LANES]))


def entry(kept, lanes, seq_len):
    """'1.05k (4 of 5 are ERMs)': the mean of the kept lanes at an N, and how many of its lanes are kept."""
    some, total = kept.count(seq_len=seq_len), lanes.count(seq_len=seq_len)
    mean = kept.where(seq_len=seq_len).mean() if some else '–'
    return mean if some == total else f'{mean} ({some or "none"} of {total} are ERMs)'


def table(rows):
    names = {'RNN, 1STR, d = 1': 'rnn_wide', 'FFN, simple-1STR, d = 2': 'ffn', 'FFN, 1STR, d = 2': 'ffn_wide'}
    found = {name: of_enough(rows(f'n_star_min_norm_{part}')) for name, part in names.items()}
    lengths = sorted({n for part in names.values() for n in rows(f'n_star_min_norm_{part}').values('seq_len')})
    lines = [
        [name, *(entry(lanes, rows(f'n_star_min_norm_{names[name]}'), n) for n in lengths)]
        for name, lanes in found.items()
    ]
    return formats.pipes(['prompts', *(f'N = {n}' for n in lengths)], lines)
