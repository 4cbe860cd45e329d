"""Learning curves: test loss against the size n of a fixed sample, all models, beside the baselines.

1STR at N = 8, d = 5; learning rate and weight decay are chosen on validation prompts at every n.
"""

from qstr_jax.cli import base

ORDER = 150
IS_SUPPORTING = True
QUESTION = 'How does the test error fall with the size n of a fixed training set?'
FIGURES = {
    'learning_curves/learning_curves.png': 'Test loss against the size n of a training set, all models and baselines'
}
PLUGINS = ('qstr_jax.theory.construction_norm', 'qstr_jax.theory.oracles')


def get_config():
    """1STR at N = 8, d = 5: AdamW on n prompts, a grid of learning rates and weight decays per n."""
    config = base.get_config(PLUGINS)
    config.update(models=('transformer', 'rnn', 'ffn', 'zero', 'least_squares', 'ridge'), learners=('adamw',))
    config.update(preset='paper', seq_lens=(8,), token_dim=5, encoding_dim=20)
    config.update(rnn={'cell': 'gru', 'width': 64}, transformer={'mlp_width': 32})
    config.update(task_per_lane=True, num_samples=(0.4, 1, 4, 10, 20, 50, 200), samples_unit='qd')
    config.update(learning_rate=(1e-3, 3e-3), weight_decay=(1e-2, 0.3), schedule='cosine')
    config.update(max_steps=1000, check_every=250, test_samples=1000, validation_samples=500)
    config.title = '{task}, N = {seq_len}, d = {token_dim}: AdamW on n prompts'
    config.notes = ('learning rate and weight decay chosen on validation prompts at every n',)
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = get_config()
    config.update(models=('transformer', 'least_squares', 'ridge'), seq_lens=(3,), token_dim=2, encoding_dim=4)
    config.update(num_samples=(1, 8), num_seeds=2, weight_decay=(1e-2,))
    config.update(max_steps=40, check_every=20, test_samples=100, validation_samples=50)
    return config


def text(rows):
    lanes = rows('learning_curves')
    transformer = lanes.where(model='transformer')
    return f"""
The Transformer's test error, in the median over lanes, is
{transformer.where(num_samples=50).median('test_loss')} after AdamW on 50 prompts and
{transformer.where(num_samples=100).median('test_loss')} on 100; with 1,000 prompts the RNN still errs by
{lanes.where(model='rnn', num_samples=1000).median('test_loss')} and the FFN by
{lanes.where(model='ffn', num_samples=1000).median('test_loss')}.

Predicting nothing errs by {lanes.where(model='zero', num_samples=1000).median('test_loss')}, so that the FFN is worse
than that at every n; ridge regression on the prompt has
{lanes.where(model='ridge', num_samples=1000).median('test_loss')} at 1,000. Least squares that knows t errs by nothing
from the first prompts on. {transformer.lanes()} lanes with a task each;
{lanes.where(model=('transformer', 'ffn')).time()} for Transformer and FFN, {lanes.where(model='rnn').time()} for the
RNN.
"""


def limits(rows):
    lanes = rows('learning_curves', model='rnn')
    return f"""
Growth with N: it is one length, N = {lanes.values('seq_len')[0]}. RNN and FFN may need more prompts than
{max(lanes.values('num_samples')):,}, or more steps.
"""
