"""What the benchmark measures: the cells of Figure 1 as `protocol.Protocol`s, and how thoroughly."""

import dataclasses

from experiments.benchmarks.protocol import MODELS, Protocol

FIGURE_1A = {'task': 'qstr', 'threshold': 0.7, 'check_every': 10}
FIGURE_1B = {'task': 'simple_qstr', 'threshold': 0.02, 'check_every': 100}


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        models: architectures.
        seq_lens_1a, seq_lens_1b: prompt lengths of the two panels whose steps and tests are timed.
        run_seq_lens: lengths whose runs are timed to the threshold, by model: cells of Figure 1a, from N = 25 on of 1b.
        run_seeds: seeds of these runs.
        run_rounds, run_seconds: how often a run is repeated, and after how many seconds no more; a run of ours that
            takes longer than that is not timed without screening.
        seeds, seeds_seq_len: numbers of lanes side by side, and their length.
        scaling: lengths of a point-wise Transformer's step.
        precision_seq_lens, precision_seeds: as `run_seq_lens` and `run_seeds`, for the runs in several precisions.
        rounds, seconds: of each timing; rounds alternate, `seconds` is about how long one takes.
        compiled: lengths of Figure 1a at which `torch.compile` is measured too, which takes half a minute to compile.
        products: whether the machine's matrix products are.
    """

    models: tuple[str, ...] = MODELS
    seq_lens_1a: tuple[int, ...] = (2, 4, 6, 8, 10, 12)
    seq_lens_1b: tuple[int, ...] = (25, 33)
    run_seq_lens: tuple[tuple[str, tuple[int, ...]], ...] = (
        ('transformer', (2, 4, 6, 8, 10, 12, 25, 33)),
        ('ffn', (2, 4, 6, 8, 10, 12, 25, 33)),
        ('rnn', (2, 4, 6, 8, 10, 12)),
    )
    run_seeds: int = 5
    run_rounds: int = 5
    run_seconds: float = 60.0
    seeds: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    seeds_seq_len: int = 8
    scaling: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048, 4096)
    precision_seq_lens: tuple[tuple[str, tuple[int, ...]], ...] = (
        ('transformer', (8, 25)), ('ffn', (8,)), ('rnn', (4,)),
    )  # fmt: skip
    precision_seeds: int = 5
    rounds: int = 3
    seconds: float = 0.5
    compiled: tuple[int, ...] = (12,)
    products: bool = True

    def protocols(self):
        """(exhibit, `Protocol`) of every cell."""
        panels = ('1a', self.seq_lens_1a, FIGURE_1A), ('1b', self.seq_lens_1b, FIGURE_1B)
        return [
            (exhibit, Protocol(model, seq_len, **settings))
            for exhibit, seq_lens, settings in panels
            for model in self.models
            for seq_len in seq_lens
        ]

    def runs(self):
        """`Protocol`s that are run to their threshold."""
        return self._of(self.run_seq_lens)

    def precisions(self):
        """`Protocol`s that are run to their threshold in several precisions."""
        return self._of(self.precision_seq_lens)

    def _of(self, seq_lens_of_models):
        return [
            Protocol(model, seq_len, **(FIGURE_1A if seq_len < 25 else FIGURE_1B))
            for model, seq_lens in seq_lens_of_models
            if model in self.models
            for seq_len in seq_lens
        ]


def restricted(plan, seq_lens):
    """Fields of a plan with only some of its lengths.

    Args:
        plan: `Plan`.
        seq_lens: lengths, as numbers or in digits.

    Raises:
        ValueError: no section of the plan has one of them.
    """
    known = {*plan.seq_lens_1a, *plan.seq_lens_1b, *plan.scaling}
    if unknown := [str(n) for n in seq_lens if str(n) not in map(str, known)]:
        raise ValueError(f'seq_lens={",".join(unknown)}: not in the plan, which has {sorted(known)}')
    chosen = {int(n) for n in seq_lens}

    def kept(lengths):
        return tuple(n for n in lengths if n in chosen)

    return {
        'seq_lens_1a': kept(plan.seq_lens_1a),
        'seq_lens_1b': kept(plan.seq_lens_1b),
        'scaling': kept(plan.scaling),
        'run_seq_lens': tuple((model, kept(lengths)) for model, lengths in plan.run_seq_lens),
        'precision_seq_lens': tuple((model, kept(lengths)) for model, lengths in plan.precision_seq_lens),
    }


FULL = Plan()
QUICK = Plan(
    seq_lens_1a=(4,),
    seq_lens_1b=(),
    run_seq_lens=(('transformer', (4,)), ('ffn', (4,))),
    run_seeds=2,
    run_rounds=2,
    seeds=(1, 4),
    seeds_seq_len=4,
    scaling=(64, 256),
    precision_seq_lens=(),
    rounds=2,
    seconds=0.2,
    compiled=(),
)
