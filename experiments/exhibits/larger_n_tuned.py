"""Larger N at the best learning rate: samples to test MSE 0.7 on 1STR by the point-wise risk, N = 4, 8, …, 256.

As the larger N, with five lanes, the rate tuned, and a test every ten steps.
"""

from experiments.exhibits import larger_n
from qstr_jax.cli import base

ORDER = 120
IS_SUPPORTING = True
QUESTION = 'How many samples does one label per prompt cost at the best learning rate?'
FOLDERS = {'larger_n_tuned': ('transformer', 'ffn')}
FIGURES = {
    'larger_n_tuned/figure.png': 'Samples at the best learning rates against N, the Transformer to N = 256',
    'larger_n_tuned/tuning_learning_rate.png': 'Samples against the learning rate, from which the best is chosen',
}
draw = larger_n.draw


def get_config(part='transformer'):
    """The Transformer to N = 256, or the FFN at N = 4 and 8; at most a million samples."""
    config = larger_n.get_config(part)
    config.update(seq_lens=(4, 8) if part == 'ffn' else (4, 8, 16, 64, 256), num_seeds=5)
    config.tune.learning_rate = 'auto'
    config.update(check_every=10, max_samples=1_000_000)
    config.title = '{task}, point-wise risk, best learning rate: samples to test MSE {threshold}'
    return config


def reduced(part='transformer'):
    """The same in seconds, for the tests: every part is a small FFN."""
    return base.shrink_tuned(get_config(part), seq_lens=(2,), threshold=0.9)


def text(rows):
    transformer, ffn = (rows('larger_n_tuned', model=model) for model in ('transformer', 'ffn'))
    untuned = rows('larger_n', model='transformer', seq_len=256)
    at64, at256 = transformer.where(seq_len=64), transformer.where(seq_len=256)
    return f"""
The Transformer needs {transformer.where(seq_len=4).mean()} samples at N = 4 and {at256.mean()} at N = 256, where the
published rate needs {untuned.mean()}; but at N = 64 only {at64.count(outcome='reached')} of {at64.count()} lanes learn
within {at64.values('max_samples')[0]:,}.

A rate that is fastest is not safe: all selection lanes had learned at N = 64. The chosen rate falls from
{transformer.where(seq_len=4).extent('learning_rate')} at N = 4 to {at256.extent('learning_rate')} at N = 256. The FFN
needs {ffn.where(seq_len=4).mean()} at N = 4 and {ffn.where(seq_len=8).mean()} at N = 8. Lanes and the choice took
{rows('larger_n_tuned', 'larger_n_tuned/selection', model='transformer').time()} for the Transformer and
{rows('larger_n_tuned', 'larger_n_tuned/selection', model='ffn').time()} for the FFN.
"""


def table(rows):
    return rows('larger_n_tuned').samples_table('seq_len')


def limits(rows):
    lengths = {model: max(rows('larger_n_tuned', model=model).values('seq_len')) for model in ('transformer', 'ffn')}
    return f"""
Each N has its own rate, so that this growth is not that of one rate, and it is tested on simple-1STR, though trained
on 1STR. The Transformer beyond N = {lengths['transformer']}, the FFN beyond N = {lengths['ffn']} and the RNN are not
run.
"""
