"""n* of FFNs trained towards stationary points: the least n with test loss 0.2 against N (Theorem 6).

Part `simple` is simple-1STR at N = 4 to 64, part `qstr` 1STR at N = 2 to 8; linear link, d = 2; FFN f(T, W x) of widths
(64, 32), trained with weight decay for 3,000 steps. W is trained in coordinates of the prompts' span, where the proof
needs it.
"""

from experiments.exhibits import theorem6
from qstr_jax.cli import base

ORDER = 206
IS_SUPPORTING = True
QUESTION = 'Do FFNs at stationary points need n ≥ Ω(N d) prompts?'
LIMITS = """
A lower bound allows any faster growth, so only a slower one could have refuted it. FFNs of least norm, for which the
theorem holds as well, are in `n_star_min_norm`.
"""
FOLDERS = {'n_star_stationary': ('simple',), 'n_star_stationary_qstr': ('qstr',)}
TITLES = {
    'n_star_stationary': 'n* of FFNs trained towards stationary points, simple-1STR: to test loss 0.2, d = 2',
    'n_star_stationary_qstr': 'n* of FFNs trained towards stationary points, 1STR: to test loss 0.2, d = 2',
}
FIGURES = {
    'n_star_stationary/figure.png': 'n* of FFNs trained towards stationary points against N, simple-1STR, d = 2',
    'n_star_stationary_qstr/figure.png': 'The same on 1STR',
}


def get_config(part='simple'):
    """The FFN of `theorem6` at d = 2, five lanes with a task each; searches from n = 8 to 20,480."""
    base.check_part(part, FOLDERS)
    config = theorem6.get_config()
    config.update(models=('ffn',), learners=('stationary',), probes=())
    config.update(seq_lens=(4, 6, 8, 12, 16, 32, 64), token_dim=2, encoding_dim=16)
    config.update(num_samples=base.unset(), samples_unit='prompts', batch_size=64)
    config.update(threshold=0.2, min_samples=8, max_samples=20_480, resolution=0.1, test_samples=1000)
    config.title = '{task}, d = {token_dim}: n* of FFNs trained towards stationary points'
    if part == 'qstr':
        config.update(task={'name': 'qstr'}, seq_lens=(2, 3, 4, 6, 8))
    return config


def reduced(part='simple'):
    """The same in seconds, for the tests."""
    return base.shrink_search(get_config(part), seq_lens=(2,), encoding_dim=4, ffn={'widths': (8, 8)})


def text(rows):
    ffn, qstr = rows('n_star_stationary'), rows('n_star_stationary_qstr')
    learnt, learnt_qstr = ffn.where(outcome='reached'), qstr.where(outcome='reached')
    ratio = learnt.table['samples_to_threshold'] / (learnt.table['seq_len'] * learnt.table['token_dim'])
    off_span = max(lanes.table['span_residual'].max() for lanes in (learnt, learnt_qstr))
    stationary = sum(theorem6.num_stationary(lanes.table) for lanes in (learnt, learnt_qstr))
    longest = max(learnt.values('seq_len'))
    beyond = [n for n in ffn.values('seq_len') if n > longest]
    far, far_qstr = ffn.where(seq_len=tuple(beyond)), qstr.where(seq_len=max(qstr.values('seq_len')))
    return f"""
The FFNs that were found need more. On simple-1STR n\\* grows as N^{learnt.exponent()}, from
{learnt.where(seq_len=4).mean()} prompts at N = 4 to {learnt.where(seq_len=longest).mean()} at N = {longest},
{ratio.min():.0f} to {ratio.max():.0f} times N d; on 1STR as N^{learnt_qstr.exponent()}, from
{qstr.where(seq_len=2).mean()} at N = 2 to {qstr.where(seq_len=6).mean()} at N = 6. W lies in the span of the prompts,
where the theorem's proof needs it, but {stationary or 'none'} of these {learnt.count() + learnt_qstr.count()} fits is
at a stationary point, so by them the claim stays open (`n_star_min_norm` decides it).

At most {off_span:.0e} of W's norm lies off the span; as n\\* is above N d, the prompts span the whole space. On
simple-1STR the exponent between neighbouring N is {learnt.slopes()}; N^a or (log N)^p: {learnt.law()}.

At N = {' and '.join(map(str, beyond))} of simple-1STR {far.count(outcome='reached') or 'none'} of {far.count()} lanes
gets there within {ffn.values('max_samples')[0]:,} prompts, nor does one of {far_qstr.count()} at N =
{max(qstr.values('seq_len'))} of 1STR. They do not fit their training set, with risk {far.mean('train_risk')} and
{far_qstr.mean('train_risk')}, where predicting nothing has 1, and so say nothing of n\\*. On simple-1STR
{far.count(converged=True)} are within the learner's tolerance, as Θ decays, but
{theorem6.num_stationary(far.table) or 'none'} is at a stationary point. The two directories took {ffn.time()} and
{qstr.time()}.
"""


def table(rows):
    return rows('n_star_stationary').samples_table('seq_len')
