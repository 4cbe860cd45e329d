"""The PyTorch baseline computes what our models and steps compute, from the same weights on the same prompts."""

import functools
import math

import jax
import numpy as np
import pytest

from experiments.benchmarks.ours import MODELS, Protocol
from qstr_jax import models, sweeps, tasks
from qstr_jax.learners import online
from tests import helpers, small

pytestmark = [pytest.mark.slow, helpers.needs_torch]


SIZES = {'seq_len': 5, 'sparsity': 2, 'rnn_width': 24, 'ffn_widths': (40, 30), 'test_samples': 50}


def torch_side():
    """PyTorch and what imports it; not above, since all workers collect this file, and it takes 180 MB."""
    import torch

    from experiments.benchmarks import baseline
    from tests import torch_weights

    return torch, baseline, torch_weights


@pytest.fixture(params=MODELS)
def pair(request):
    """Our problem, lane, data and parameters, and the baseline with the same weights and task."""
    torch, baseline, transfer = torch_side()
    model = request.param
    sweep = sweeps.Sweep(
        models=model, seq_lens=SIZES['seq_len'], sparsity=2, test_samples=50,
        transformer={'num_heads': 2}, rnn={'width': 24}, ffn={'widths': (40, 30)},
    ).without_unused()  # fmt: skip
    cell = sweeps.cells_of(sweep)[0].problem
    lane = small.lane(3, 3, 1e-3, 0.01)
    data, state = jax.jit(online.init_lane, static_argnames='problem')(lane, cell)
    training = baseline.Training(Protocol(model, **SIZES))
    transfer.load(training, state.params, model)
    training.task.omega_NxE = torch.tensor(np.asarray(data.task_draw.encodings.omega_NxE))
    return cell, lane, data, state, training


@functools.partial(helpers.quick_jit, static_argnames='task')
def _drawn(data, indices_B, task):
    prompts = tasks.examples(data.train_key, indices_B, task, data.task_draw.link)
    return prompts, jax.vmap(lambda prompt: tasks.encode(prompt, task, data.task_draw))(prompts)


def _prompts(data, indices_B, cell):
    torch, _, _ = torch_side()
    prompts, z_BxNxE = _drawn(data, indices_B, task=cell.task)
    return prompts, torch.tensor(np.asarray(z_BxNxE)), torch.tensor(np.asarray(prompts.y_N))


def test_outputs_agree(pair):
    cell, _, data, state, training = pair
    prompts, z_BxNxE, _ = _prompts(data, np.arange(32), cell)
    ours = helpers.quick_jit(
        jax.vmap(lambda p: models.predict(cell.module, state.params, tasks.encode(p, cell.task, data.task_draw)))
    )(prompts)
    theirs = training.model(z_BxNxE).detach().numpy()
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_first_twenty_steps_agree(pair):
    _, baseline, transfer = torch_side()
    cell, lane, data, state, training = pair
    step = jax.jit(online.train_step, static_argnames='problem')
    params, opt_state = state.params, state.opt_state
    for i in range(20):
        with jax.default_matmul_precision('highest'):
            params, opt_state, ours = step(params, opt_state, i, data=data, lane=lane, problem=cell)
        _, *batch = _prompts(data, 64 * i + np.arange(64), cell)
        theirs = training.step_on(*batch)
        np.testing.assert_allclose(float(ours), float(theirs), rtol=2e-5)
    ours, start = baseline.Training(training.protocol), baseline.Training(training.protocol)
    transfer.load(ours, params, training.protocol.model)
    transfer.load(start, state.params, training.protocol.model)
    apart, moved = _distance(ours, training), _distance(start, training)
    # Where a gradient is all rounding Adam turns it into a step of the learning rate, so not entry by entry.
    assert apart < 1e-3 * moved


def _distance(one, other):
    weights = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return math.sqrt(sum(float(((a - b).detach() ** 2).sum()) for a, b in weights))


def test_prompts_are_those_of_the_task():
    torch, baseline, _ = torch_side()
    protocol = Protocol('transformer', 6, sparsity=2, task='qstr', test_samples=10)
    training = baseline.Training(protocol)
    x, t = training.task.draw(1000, training.generator)
    z, y = training.task.encode(x, t)
    i = 4
    retrieved = x[7, t[7, i]]
    assert y[7, i] == pytest.approx(float((retrieved @ training.direction_D).sum() / math.sqrt(2)), abs=1e-5)
    assert z.shape == (1000, 6, protocol.embedding_dim)
    torch.testing.assert_close(z[7, i, 10:18], training.omega_NxE[i])
    torch.testing.assert_close(z[7, i, 18:26], training.omega_NxE[t[7, i, 0]])
    assert len(t.flatten().unique()) == 6
    simple = baseline.Task(protocol, 'simple_qstr', training.direction_D, training.omega_NxE)
    _, t = simple.draw(20, training.generator)
    assert (t == t[:, :1]).all()


def test_a_run_reaches_the_threshold():
    _, baseline, _ = torch_side()
    protocol = Protocol('ffn', 2, threshold=0.8, max_samples=64_000, test_samples=200)
    samples, reached, _ = baseline.Training(protocol).run()
    assert reached
    assert samples % 640 == 0
    assert samples < 64_000


def test_a_run_ends_with_its_budget():
    _, baseline, _ = torch_side()
    protocol = Protocol('ffn', 4, threshold=1e-6, max_samples=1280, test_samples=50)
    assert baseline.Training(protocol).run()[:2] == (1280, False)
