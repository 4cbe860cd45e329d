"""Every knob of a sweep, with the two presets: the paper's text and its published code."""

import dataclasses

from qstr_jax import learners

TUPLES = (
    'models', 'learners', 'seq_lens', 'sparsity', 'learning_rate', 'weight_decay', 'budget', 'num_samples', 'probes',
)  # fmt: skip
# Axes that may be empty.
OPTIONAL_TUPLES = ('num_samples', 'probes')

# PAPER.md, section 6: where text and code differ. A setting left at None takes its value from here.
PRESETS = {
    'published': {
        'rnn_cell': 'gru',
        'weight_decay': 0.01,
        'test_samples': 5000,
        'test_task': 'simple_qstr',
        'initializer': 'pytorch',
    },
    # The text names no test distribution but the training one, and no initialisation: the code's is kept.
    'paper': {
        'rnn_cell': 'relu',
        'weight_decay': 0.1,
        'test_samples': 10_000,
        'test_task': None,
        'initializer': 'pytorch',
    },
}

# Settings that only fixed-sample learners look at.
FIXED_ONLY = (
    'learners', 'num_samples', 'samples_unit', 'budget', 'budget_unit', 'optimizer', 'schedule', 'max_steps',
    'constraint', 'tolerance', 'epsilon', 'bisections', 'train_threshold', 'span', 'min_samples', 'resolution',
    'validation_samples',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Settings:
    """A sweep: cells are models × seq_lens × sparsity, lanes are seeds × learning_rate × weight_decay.

    None means: from the preset, or as published (`encoding_dim` ⌊5 ln N⌋, `num_heads` q, `rnn_width` 500 q,
    `ffn_widths` (N d q, 1000), `test_task` the training task).

    Attributes:
        models: registered architectures.
        task: 'qstr' or 'simple_qstr'.
        seq_lens, sparsity, token_dim: N, q, d.
        encoding_dim, encoding_scale, max_coherence, distinct_encodings: see `tasks.Task`.
        link, indices, tokens: see `tasks.Task`.
        num_heads, attention, mlp_width: see `models.Transformer`.
        rnn_*: see `models.Recurrent`.
        ffn_form, ffn_widths: see `models.Feedforward`.
        initializer: 'pytorch' or 'flax'.
        risk, batch_size, threshold, check_every, max_samples, test_samples, screen: see `learners.online`.
        test_task: distribution of the test prompts.
        learners: of `learners.NAMES`; all but 'online_adamw' fit n prompts drawn once, see `learners.fixed`.
        num_samples, samples_unit: n of these, in 'prompts' or in multiples of 'd', 'qd', 'Nd'; none makes each lane
            search for n*, the smallest n with test loss below `threshold`, between `min_samples` and `max_samples`.
        budget, budget_unit: radius R of learner 'constrained' is budget × unit, a name of `learners.budgets`.
        optimizer, schedule, max_steps, constraint, tolerance, epsilon, bisections, train_threshold, span,
            min_samples, resolution, validation_samples: see `learners.fixed.Fixed`.
        num_seeds: seeds 0..num_seeds − 1.
        task_per_lane: draw (u, ω) from the lane's seed; otherwise all lanes share that of `task_seed`.
        learning_rate, weight_decay: AdamW's; several make more lanes.
        preset: 'published' or 'paper'.
        lanes_per_batch: lanes that one program vectorises; None chooses by model and device.
        save_params: keep the trained parameters.
        probes: names of `qstr_jax.models.probes`, further columns of a row.

    Raises:
        ValueError: an unknown preset, an empty axis or a value of the wrong kind.
    """

    models: tuple = ('transformer', 'rnn', 'ffn')
    task: str = 'qstr'
    seq_lens: tuple = (2, 4, 6, 8, 10, 12)
    sparsity: tuple = (1,)
    token_dim: int = 10
    encoding_dim: int | None = None
    encoding_scale: str = 'unscaled'
    max_coherence: float = 1.0
    distinct_encodings: bool = True
    link: object = 'linear'
    indices: object = 'uniform'
    tokens: object = 'gaussian'
    num_heads: int | None = None
    attention: str = 'separate'
    mlp_width: int = 100
    rnn_cell: str | None = None
    rnn_width: int | None = None
    rnn_states: str = 'inclusive'
    rnn_readout: str = 'linear'
    rnn_readout_widths: tuple = ()
    rnn_transition_widths: tuple = ()
    rnn_radius: float | None = None
    rnn_lipschitz: float | None = None
    ffn_form: str = 'flat'
    ffn_widths: tuple = ()
    initializer: str | None = None
    risk: str = 'averaged'
    num_seeds: int = 5
    task_per_lane: bool = False
    task_seed: int = 0
    batch_size: int = 64
    learning_rate: tuple = (1e-3,)
    weight_decay: tuple | None = None
    threshold: float = 0.7
    check_every: int = 10
    max_samples: int = 1_000_000
    test_samples: int | None = None
    test_task: str | None = None
    screen: bool = True
    preset: str = 'published'
    lanes_per_batch: int | None = None
    save_params: bool = False
    probes: tuple = ()
    learners: tuple = ('online_adamw',)
    num_samples: tuple = ()
    samples_unit: str = 'prompts'
    budget: tuple = (1.0,)
    budget_unit: str = 'absolute'
    optimizer: str = 'adam'
    schedule: str = 'constant'
    max_steps: int = 5000
    constraint: str = 'l2'
    tolerance: float = 1e-4
    epsilon: float = 1e-3
    bisections: int = 8
    train_threshold: float = 0.0
    span: str = 'free'
    min_samples: int = 10
    resolution: float = 0.1
    validation_samples: int = 1000

    def __post_init__(self):
        if self.preset not in PRESETS:
            raise ValueError(f'preset={self.preset!r}: unknown, one of {", ".join(PRESETS)}')
        for name, value in PRESETS[self.preset].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.test_task is None:
            object.__setattr__(self, 'test_task', self.task)
        for name in TUPLES + ('rnn_readout_widths', 'rnn_transition_widths', 'ffn_widths'):
            object.__setattr__(self, name, _as_tuple(getattr(self, name)))
        for name in TUPLES:
            values = getattr(self, name)
            if not values and name not in OPTIONAL_TUPLES:
                raise ValueError(f'{name}=(): give at least one')
            if len(set(values)) < len(values):
                raise ValueError(f'{name}={values}: a value stands there twice')
        for name in 'num_seeds', 'lanes_per_batch':
            value = getattr(self, name)
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not is_count and not (name == 'lanes_per_batch' and value is None):
                raise ValueError(f'{name}={value!r}: must be an integer, at least 1')
        for name in 'learning_rate', 'weight_decay':
            object.__setattr__(self, name, tuple(_as_rate(name, v) for v in getattr(self, name)))
        object.__setattr__(self, 'budget', tuple(_as_budget(value) for value in self.budget))
        for name in self.learners:
            if name not in learners.NAMES:
                raise ValueError(f'learners={name!r}: unknown, one of {", ".join(learners.NAMES)}')

    def as_json(self):
        """The settings as a dict that JSON can hold; links and distributions by their names."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        # Settings of fixed-sample learners say nothing about a sweep without one.
        if self.learners == ('online_adamw',):
            plain = {name: value for name, value in plain.items() if name not in FIXED_ONLY}
        for name in 'link', 'indices', 'tokens':
            value = getattr(self, name)
            plain[name] = getattr(value, 'name', getattr(value, '__name__', value))
        return {name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()}


def _as_tuple(value):
    """A tuple, from one value or several; names may come as one comma-separated string."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(',') if part.strip())
    if isinstance(value, (tuple, list)):
        parts = (_as_tuple(part) if isinstance(part, str) else (part,) for part in value)
        return tuple(part for inner in parts for part in inner)
    return (value,)


def _as_budget(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f'budget={value!r}: must be a positive number')
    return float(value)


def _as_rate(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(f'{name}={value!r}: must be a number, at least 0')
    return float(value)
