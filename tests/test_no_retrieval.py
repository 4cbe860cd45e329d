"""The loss of a predictor that ignores t, against draws of the task itself."""

import jax
import numpy as np
import pandas as pd
import pytest

from qstr_jax import tasks
from qstr_jax.analysis import no_retrieval
from qstr_jax.tasks import links


@pytest.mark.parametrize('link', ['linear', 'sum', 'hermite2', 'mean', 'norm2'])
def test_the_loss_is_that_of_the_mean_over_all_indices(link):
    """E[y | x] of every prompt by summing over all N^q indices; the errors of 4,000 labels about it."""
    seq_len, sparsity, token_dim = 3, 2, 4
    task = tasks.QSTR(seq_len=seq_len, sparsity=sparsity, token_dim=token_dim, link=link)
    params = task.draw(jax.random.key(0)).link
    prompts = jax.jit(lambda keys: task.samples(keys, params))(jax.random.split(jax.random.key(1), 4000))
    every = np.stack(np.meshgrid(*[range(seq_len)] * sparsity, indexing='ij'), axis=-1).reshape(-1, sparsity)
    apply = links.get(link).apply
    expected_B = jax.vmap(lambda x_NxD: jax.vmap(lambda t_Q: apply(params, x_NxD[t_Q]))(every).mean())(prompts.x_NxD)
    errors = (np.asarray(prompts.y_N) - np.asarray(expected_B)[:, None]) ** 2
    assert errors.mean() == pytest.approx(no_retrieval.no_retrieval_loss(link, sparsity, seq_len), rel=0.1)


def rows(**changes):
    point = {'task': 'qstr', 'link': 'linear', 'sparsity': 1, 'seq_len': 4, 'threshold': 0.7, 'tokens': 'gaussian'}
    return pd.DataFrame([point | changes])


@pytest.mark.parametrize(
    ('changes', 'is_easy'),
    [
        ({}, False),
        ({'threshold': 0.75}, True),
        ({'seq_len': 2}, True),
        ({'link': 'hermite2', 'sparsity': 3, 'seq_len': 7, 'threshold': 0.88}, True),
        ({'link': 'mean', 'sparsity': 2}, True),
        ({'link': 'norm2', 'threshold': 1.4}, False),
        ({'link': 'two_layer', 'seq_len': 2}, False),
        ({'tokens': 'half', 'seq_len': 2}, False),
        ({'task': 'nearby', 'seq_len': 2}, False),
    ],
)
def test_which_thresholds_need_no_retrieval(changes, is_easy):
    assert no_retrieval.is_easy(rows(**changes)).tolist() == [is_easy]


def test_a_table_that_does_not_say_its_link_has_no_easy_lane():
    assert not no_retrieval.is_easy(rows(seq_len=2).drop(columns='link')).any()
