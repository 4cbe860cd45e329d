"""Card of Figure 2: a Transformer stays at Lemma 11's construction, and one from scratch moves towards it."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pandas as pd

from experiments import cards
from qstr_jax.analysis import check
from qstr_jax.analysis.card import Card, Panel, line, point
from qstr_jax.sweeps import Sweep
from qstr_jax.theory import construction_norm, construction_start

ORDER = 310
QUESTION = 'Does training keep a Transformer at the construction, and does it move one from scratch towards it?'
LIMITS = (
    'That one from scratch arrives: the check asks that its cosine grows, and the finding says how far. Other links, '
    'longer prompts or fewer samples: it is one task and one N.'
)
# Modules that register what the sweeps name.
PLUGINS = (construction_start,)
STARTS = {'construction': 'from the construction', 'init': 'from scratch'}
# The largest error that the construction may make.
ERROR = construction_norm.ERROR
MEASURED = {'test_loss': 'loss', 'alignment_share': 'share', 'alignment_cosine': 'cosine', 'off_mass': 'off_mass'}


@dataclasses.dataclass(frozen=True)
class Settings(cards.Settings):
    """Settings of the card; the link is 'sum'.

    Attributes:
        seq_len: N.
        sparsity: q.
        token_dim: d.
        encoding_dim: d_e.
        num_lanes: networks of each start.
        weight_decay: of AdamW.
        mlp_width: width of the ReLU layer.
        steps: of the longest training; the others have a half, a quarter and an eighth of it.
    """

    seq_len: int = 12
    sparsity: int = 2
    token_dim: int = 4
    encoding_dim: int = 12
    num_lanes: int = 5
    steps: int = 3000
    weight_decay: float = 0.1
    mlp_width: int = 64
    test_samples: int = 2000


# Settings of the small version, which takes seconds.
REDUCED = {
    'seq_len': 4, 'token_dim': 2, 'encoding_dim': 6, 'num_lanes': 1, 'steps': 40, 'batch_size': 8, 'mlp_width': 8,
    'test_samples': 64,
}  # fmt: skip


def sweeps(settings: Settings) -> dict[str, Sweep]:
    """Networks after trainings of several lengths, each with a schedule of its own, and before any."""
    task = {'name': 'qstr', 'link': 'sum', 'seq_len': settings.seq_len, 'sparsity': settings.sparsity}
    task |= {'token_dim': settings.token_dim, 'encoding_dim': settings.encoding_dim}
    model = {'mlp_width': settings.mlp_width, 'attention': 'merged'}
    eighth = settings.steps // 8
    lengths = tuple(eighth * parts * settings.batch_size for parts in (1, 2, 4, 8))

    def sweep(**learner: Any) -> Sweep:
        shared = {'check_every': eighth, 'weight_decay': settings.weight_decay, 'first_params': tuple(STARTS)}
        probe: dict[str, Any] = {'models': 'transformer', 'transformer': model, 'probes': 'head_alignment'}
        return cards.online(settings, task, learner={**shared, **learner}, **probe)

    return {'trained': sweep(max_samples=lengths), 'before': sweep(max_samples=lengths[0], learning_rate=0.0)}


def measure(rows: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row per start, lane and length: start, lane, samples, and what was measured."""
    found = pd.concat([rows['before'].assign(num_samples=0), rows['trained']], ignore_index=True)
    # The default of a setting is in no row.
    start = found['first_params'].fillna('init').map(STARTS)
    names = {'seed': 'lane', 'num_samples': 'samples', **MEASURED}
    return found[[*names]].rename(columns=names).assign(start=start)


def checks_of(built: pd.DataFrame, scratch: pd.DataFrame, first: pd.DataFrame) -> tuple[check.Check, ...]:
    """The comparisons of the verdict: networks after the longest training, and from scratch before any training."""
    return (
        check.below(f'from the construction: loss ≤ {ERROR:g}² after training', built['loss'], ERROR**2),
        check.above('from the construction: share of the block ≥ 0.95', built['share'], 0.95),
        check.above('from the construction: cosine to the identity ≥ 0.95', built['cosine'], 0.95),
        check.above('from scratch: the share of the block grows', scratch['share'], first['share'].max()),
        check.above('from scratch: the cosine to the identity grows', scratch['cosine'], first['cosine'].max()),
    )


def card(settings: Settings, rows: dict[str, pd.DataFrame]) -> Card:
    """The card of the sweeps' rows."""
    found = measure(rows)
    last = found[found['samples'] == found['samples'].max()]
    built, scratch = (last[last['start'] == name] for name in STARTS.values())
    first = found[(found['samples'] == 0) & (found['start'] == STARTS['init'])]
    return Card(
        statement='Lemma 11 and Figure 2',
        claim='Training keeps a Transformer at the construction, and turns W_QK of one from scratch towards a scaled '
        'identity in the (query ω_t, key ω) block.',
        setting=f'qSTR, sum link, N = {settings.seq_len}, q = H = {settings.sparsity}, d = {settings.token_dim}, d_e = '
        f'{settings.encoding_dim}, merged attention, AdamW (weight decay {settings.weight_decay:g}), '
        f'a cosine for each length of training, {settings.num_lanes} lanes.',
        panels=(
            Panel('held-out loss', 'thousand training prompts', 'loss', log_y=True),
            Panel('energy share of the block', 'thousand training prompts', 'share of ‖W_QK‖²'),
            Panel('cosine of the block to the identity', 'thousand training prompts', 'cosine'),
            Panel('attention off the right token', 'thousand training prompts', 'mean mass', log_y=True),
        ),
        points=pd.DataFrame(_points(found)),
        lines=pd.DataFrame(_lines(settings, found)),
        checks=checks_of(built, scratch, first),
        finding=f'From the construction the loss is {built["loss"].max():.1g}; from scratch share '
        f'{scratch["share"].mean():.2f}, cosine {scratch["cosine"].mean():.2f}, mass off the right token '
        f'{scratch["off_mass"].mean():.2g}, loss {scratch["loss"].mean():.2g}.',
    )


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for panel, column in enumerate(MEASURED.values()):
        for row in rows.to_dict('records'):
            yield point(panel, row['start'], row['samples'] / 1000, row[column], lane=row['lane'])


def _lines(settings: Settings, rows: pd.DataFrame) -> list[dict[str, Any]]:
    ends = [0, rows['samples'].max() / 1000]
    width = settings.token_dim + (settings.sparsity + 1) * settings.encoding_dim
    isotropic = (settings.encoding_dim / width) ** 2
    lines = line(0, 'error² of the construction', ends, ERROR**2)
    lines += line(1, 'the construction', ends, 1) + line(1, 'random W_QK', ends, isotropic)
    return lines + line(2, 'the construction', ends, 1)
