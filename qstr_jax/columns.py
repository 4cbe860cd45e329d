"""The table of columns: the name, role, type, symbol and label of each column of the rows and curves, defined once.

Storage, analysis, plots and report look here and keep no lists of their own. Registering something declares the columns
of its settings. A rows file names the role of each of its columns, so reading the rows of a plugin that is not loaded
declares those that nobody registered.
"""

import dataclasses
import re
from collections.abc import Iterable

ROLES = ('task', 'model', 'learner', 'lane', 'outcome', 'measure')
# How a lane can end. 'reached': the test loss fell below the threshold. 'censored': the budget ran out first.
# 'censored_below': the smallest n of a search was already enough. 'diverged': a loss was not finite. 'fitted': a fit on
# n prompts, no search. 'outraced': the samples of `stop_after` were not enough, so that the lane was stopped before its
# budget.
OUTCOMES = ('reached', 'censored', 'diverged', 'fitted', 'censored_below', 'outraced')
# Checked, since names also come from files.
_NAME = re.compile(r'[A-Za-z]\w{0,99}')


@dataclasses.dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: as in the rows.
        role: 'task', 'model' or 'learner' for a setting that all rows of a cell share; 'lane' for seeds and settings
            that differ between the lanes of a cell; 'outcome' for how a lane ended; 'measure' for what was measured.
        type: 'int', 'float', 'bool', 'str', or 'count' for an integer that may be missing.
        symbol: the paper's symbol, such as 'N'; '' if there is none.
        label: for axes and legends, such as 'learning rate'.
    """

    name: str
    role: str
    type: str = 'float'
    symbol: str = ''
    label: str = ''


_KNOWN = (
    Column('task', 'task', 'str'),
    Column('test_task', 'task', 'str', label='test task'),
    Column('test_seq_len', 'task', 'int', label='$N$ of the test'),
    Column('seq_len', 'task', 'int', 'N', 'sequence length $N$'),
    Column('sparsity', 'task', 'int', 'q', 'relevant tokens $q$'),
    Column('token_dim', 'task', 'int', 'd', 'token dimension $d$'),
    Column('link', 'task', 'str'),
    Column('indices', 'task', 'str'),
    Column('tokens', 'task', 'str'),
    Column('encoding', 'task', 'str'),
    Column('encoding_factor', 'task', 'float', 'd_e/ln N', r'$d_e / \ln N$'),
    Column('encoding_dim', 'task', 'int', 'd_e', '$d_e$'),
    Column('encoding_scale', 'task', 'str', label='encodings'),
    Column('max_coherence', 'task', 'float', label='largest coherence allowed'),
    Column('distinct_encodings', 'task', 'bool', label='distinct encodings'),
    # The model. Its settings are `<model>_<setting>`.
    Column('model', 'model', 'str'),
    Column('transformer_num_heads', 'model', 'int', 'H', 'heads $H$'),
    Column('transformer_mlp_width', 'model', 'int', label='width'),
    Column('transformer_attention', 'model', 'str', label='attention'),
    Column('transformer_initializer', 'model', 'str', label='initializer'),
    Column('rnn_width', 'model', 'int', label='width'),
    Column('rnn_cell', 'model', 'str', label='cell'),
    Column('ffn_widths', 'model', 'str', label='widths'),
    Column('ffn_form', 'model', 'str', label='form'),
    Column('learner', 'learner', 'str'),
    Column('optimizer', 'learner', 'str'),
    Column('schedule', 'learner', 'str'),
    Column('risk', 'learner', 'str'),
    Column('batch_size', 'learner', 'int', label='batch size'),
    Column('check_every', 'learner', 'int', label='steps between checks'),
    Column('threshold', 'learner', 'float', label='threshold'),
    Column('thresholds', 'learner', 'str', label='further thresholds'),
    Column('threshold_on', 'learner', 'str', label='thresholds on'),
    Column('max_samples', 'learner', 'int', label='budget of samples'),
    Column('min_samples', 'learner', 'int', label='smallest $n$ tried'),
    Column('test_samples', 'learner', 'int', label='test prompts'),
    Column('validation_samples', 'learner', 'int', label='validation prompts'),
    Column('screen', 'learner', 'bool', label='screening'),
    Column('precision', 'learner', 'str', label='precision of products'),
    Column('max_steps', 'learner', 'int', label='most steps'),
    Column('is_search', 'learner', 'bool', label='search for $n^*$'),
    Column('resolution', 'learner', 'float'),
    Column('constraint', 'learner', 'str'),
    Column('radius_unit', 'learner', 'str', label='unit of the radius'),
    Column('tolerance', 'learner', 'float'),
    Column('epsilon', 'learner', 'float', 'ε'),
    Column('bisections', 'learner', 'int'),
    Column('train_threshold', 'learner', 'float', label='training threshold'),
    Column('span', 'learner', 'str'),
    # What differs between the lanes of a cell. Rows of a file are sorted by these, in this order.
    Column('seed', 'lane', 'int'),
    Column('task_seed', 'lane', 'int', label='seed of the task'),
    Column('learning_rate', 'lane', 'float', label='learning rate'),
    Column('weight_decay', 'lane', 'float', 'λ', 'weight decay'),
    Column('radius', 'lane', 'float', 'R', 'radius $R$'),
    Column('hinge', 'lane', 'float', label='weight of the hinge'),
    Column('sample_size', 'lane', 'int', 'n', 'sample size $n$'),
    Column('stop_after', 'lane', 'int', label='samples after which a lane is outraced'),
    Column('outcome', 'outcome', 'str'),
    Column('num_samples', 'outcome', 'int', 'n', 'training samples'),
    Column('samples_to_threshold', 'outcome', 'count', 'n', 'samples to threshold'),
    Column('crossings', 'outcome', 'str', label='samples to each threshold'),
    Column('validation_samples_to_threshold', 'outcome', 'count', 'n', 'samples to threshold, by validation'),
    Column('train_loss', 'measure', label='training loss'),
    Column('test_loss', 'measure', label='test MSE'),
    Column('test_loss_se', 'measure', label='standard error of the test loss'),
    Column('validation_loss', 'measure', label='validation loss'),
    Column('validation_loss_se', 'measure', label='standard error of the validation loss'),
    Column('accuracy', 'measure', label='test accuracy'),
    Column('no_retrieval', 'measure', label='error without retrieval'),
    Column('train_risk', 'measure', label='training risk'),
    Column('grad_norm', 'measure', label='gradient norm'),
    Column('distance', 'measure', label='distance to the constraint set'),
    Column('norm', 'measure', label=r'$\|\Theta\|$'),
    Column('fitted_radius', 'measure', label='radius of the fit'),
    Column('infeasible_radius', 'measure', label='largest radius that failed'),
    Column('min_train_risk', 'measure', label='least training risk'),
    Column('span_residual', 'measure', label='share off the span'),
    Column('span_bound', 'measure', label='bound of the share off the span'),
    Column('radius_unit_norm', 'measure', label='norm of the radius unit'),
    Column('erring_samples', 'measure', 'int', 'n', 'largest $n$ with an ERM that errs'),
    Column('steps', 'measure', 'int'),
    Column('converged', 'measure', 'bool'),
    Column('is_erm', 'measure', 'bool', label='an ERM'),
    Column('miss_is_erm', 'measure', 'bool', label='an ERM just below $n^*$'),
    Column('num_fits', 'measure', 'int', label='fits'),
    Column('num_evaluations', 'measure', 'int', label='full test evaluations'),
    Column('tuned', 'measure', 'str', label='tuned settings'),
    Column('tuned_grid', 'measure', 'str', label='values tried'),
    Column('tuned_samples', 'measure', 'str', label='samples of the slowest selection lane'),
    Column('tuned_seeds', 'measure', 'str', label='selection seeds'),
    Column('num_parameters', 'measure', 'int', label='parameters'),
    Column('encoding_coherence', 'measure', label='mean largest coherence'),
    Column('encoding_equal_pairs', 'measure', 'int', label='equal encodings'),
    Column('encoding_redraws', 'measure', 'int', label='redrawn encodings'),
    Column('param_norm', 'measure', label=r'$\|\Theta\|$'),
    Column('retrieval_share', 'measure', label='retrieval share'),
    Column('retrieval_mass', 'measure', label='retrieval mass'),
    Column('theorem6_floor', 'measure', label='floor of Theorem 6'),
    Column('program', 'measure', 'str', label='fingerprint of the program'),
    Column('probes', 'measure', 'str', label='fingerprints of the probes'),
    Column('backend', 'measure', 'str'),
    Column('lanes_per_batch', 'measure', 'int', label='lanes per batch'),
    # Curves: one line per check or fit.
    Column('samples', 'measure', 'int', 'n', 'training samples'),
    Column('is_due', 'measure', 'bool', label='evaluation asked for'),
)
_TABLE = {column.name: column for column in _KNOWN}
# Columns that mean the same in every file; those that a file or a plugin declares are not among them.
OURS = frozenset(_TABLE)
# Columns that are made as tables are read, and never stored: a stored one would replace what is derived from the rows.
DERIVED = frozenset({'cell', 'folder', 'lane', 'crossing'})
# Columns of our probes; users' probes may replace them.
_OF_PROBES = {'param_norm', 'retrieval_share', 'retrieval_mass', 'theorem6_floor'}
# Names that no setting or probe may take: these columns say which lane a row is of, and what became of it.
RESERVED = frozenset(
    {'task', 'test_task', 'test_seq_len', 'model', 'learner', 'seed', 'task_seed'}
    | DERIVED
    | {column.name for column in _KNOWN if column.role in ('outcome', 'measure')} - _OF_PROBES
)


def get(name: str) -> Column:
    """The column of a name; an undeclared one is a measure."""
    return _TABLE.get(name) or Column(name, 'measure')


def is_declared(name: str) -> bool:
    """Whether the table has a column of this name."""
    return name in _TABLE


def position(name: str) -> int:
    """The place of a column in the table, from 0; undeclared columns come last."""
    return list(_TABLE).index(name) if name in _TABLE else len(_TABLE)


def declare(name: str, role: str, type: str = 'float') -> None:
    """Adds a column to the table, unless the table has it already."""
    if name in _TABLE and role in ROLES:
        return
    if not _NAME.fullmatch(name) or role not in ROLES:
        roles = ', '.join(ROLES)
        raise ValueError(f'column {name!r}, role {role!r}: a name has letters, digits and _; a role is one of {roles}')
    _TABLE[name] = Column(name, role, type)


def label(name: str) -> str:
    """The name of a column in axes and legends: its label, or its name with spaces."""
    return get(name).label or name.replace('_', ' ')


def with_role(names: Iterable[str], *roles: str) -> list[str]:
    """The columns among `names` that have one of some roles; if that is only 'lane', in the table's order."""
    found = [name for name in names if get(name).role in roles]
    return sorted(found, key=position) if roles == ('lane',) else found


def settings(names: Iterable[str]) -> list[str]:
    """The columns among `names` that are settings of task, model, learner or lane, without the seeds."""
    return [name for name in with_role(names, *ROLES[:4]) if name not in ('seed', 'task_seed')]
