"""Trained W_QK = W_Q^T W_K beside Lemma 11's construction: the paper's Figure 2, for any number of heads."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from qstr_jax import analysis, sweeps
from qstr_jax.analysis import combinations
from qstr_jax.models import probes
from qstr_jax.storage import results
from qstr_jax.theory import measures
from qstr_jax.theory.sparse_task import SparseTask


class Portrait(NamedTuple):
    """The attention of one trained lane."""

    task: SparseTask
    row: pd.Series
    query_key_HxExE: np.ndarray  # W_QK of each head, without the factor 1/√D_e of the scores
    alignment: measures.Alignment  # how much it resembles the construction


def load(sweep: Any, workdir: Any) -> list[Portrait]:
    """Portraits of those lanes of a sweep's Transformers that have rows; they were trained with `save_params=True`."""
    rows = results.load(workdir)
    found = []
    for cell in sweeps.cells_of(sweep):
        for lane in cell.lanes:
            own = rows[combinations.matches(rows, {'cell': cell.id, **lane._asdict()})]
            if len(own):
                task: Any = cell.problem.task
                found.append(portrait(sweeps.load_params(workdir, cell, lane), task, own.iloc[0]))
    return found


def portrait(params: dict, task: SparseTask, row: pd.Series | None = None) -> Portrait:
    """The portrait of one lane."""
    query_key = np.asarray(probes.query_key_HxExE(params))
    row = pd.Series(dtype=object) if row is None else row
    return Portrait(task=task, row=row, query_key_HxExE=query_key, alignment=measures.alignment(params, task))


def sharpness(portrait: Portrait) -> np.ndarray:
    """α of the nearest construction: the mean of the diagonal of each head's block (ω_t, ω)."""
    d, d_e = portrait.task.token_dim, portrait.task.encoding_dim
    found = []
    for query_key, index in zip(portrait.query_key_HxExE, portrait.alignment.index_H, strict=True):
        row = d + (index + 1) * d_e
        found.append(float(np.trace(query_key[row : row + d_e, d : d + d_e]) / d_e) if index >= 0 else 0.0)
    return np.array(found)


def constructed(portrait: Portrait) -> np.ndarray:
    """Lemma 11's W_QK with the portrait's α and its match of heads to indices."""
    d, d_e = portrait.task.token_dim, portrait.task.encoding_dim
    built = np.zeros_like(portrait.query_key_HxExE)
    for head, (index, alpha) in enumerate(zip(portrait.alignment.index_H, sharpness(portrait), strict=True)):
        if index >= 0:
            row = d + (index + 1) * d_e
            built[head, row : row + d_e, d : d + d_e] = alpha * np.eye(d_e)
    return built


def panels(portrait: Portrait) -> list[tuple[str, np.ndarray, int]]:
    """What `plots.query_key_matrices` draws: for each head its trained matrix, then the constructed one."""
    found, built = [], constructed(portrait)
    for head, index in enumerate(map(int, portrait.alignment.index_H)):
        share, cosine = (float(values_HxQ[head, index]) for values_HxQ in portrait.alignment[:2])
        name = f'head {head + 1}, ' if len(built) > 1 else ''
        what = f'share {share:.3f}, cosine {cosine:.3f}' if index >= 0 else 'matched to no index'
        found.append((f'{name}trained: {what}', portrait.query_key_HxExE[head], index))
        found.append((f'{name}construction', built[head], index))
    return found


def table(portraits: Sequence[Portrait]) -> pd.DataFrame:
    """One line per lane and head: energy share of its block (ω_t, ω), cosine to the identity, α, and the losses."""
    lines = []
    for one in portraits:
        kept = {name: one.row.get(name) for name in ('seed', 'num_samples', 'steps', 'train_loss', 'test_loss')}
        alphas = sharpness(one)
        for head, index in enumerate(map(int, one.alignment.index_H)):
            share, cosine = (float(values[head, index]) if index >= 0 else np.nan for values in one.alignment[:2])
            lines.append({'q': one.task.sparsity, 'N': one.task.seq_len, 'head': head + 1, 'index': index + 1,
                          'share': share, 'cosine': cosine, 'alpha': alphas[head], **kept})  # fmt: skip
    return pd.DataFrame(lines)


def title(portrait: Portrait, form: str) -> str:
    """A figure's title, such as 'simple-qSTR, q = 2, N = 100, separate W_Q, W_K: share 0.910, cosine 0.980'."""
    names = {'separate': 'separate W_Q, W_K', 'merged': 'merged W_QK'}
    task, found = portrait.task, portrait.alignment
    name = analysis.DISPLAY_NAMES.get(task.name, task.name)
    means = f': share {found.share:.3f}, cosine {found.cosine:.3f}' if len(found.index_H) > 1 else ''
    return f'{name}, q = {task.sparsity}, N = {task.seq_len}, {names.get(form, form)}{means}'
