"""The columns that rows and curves of this package have: name, role, type, symbol and label of each."""

import dataclasses


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


KNOWN = (
    # The task.
    Column('task', 'task', 'str'),
    Column('test_task', 'task', 'str', label='test task'),
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
    # The learner.
    Column('learner', 'learner', 'str'),
    Column('optimizer', 'learner', 'str'),
    Column('schedule', 'learner', 'str'),
    Column('risk', 'learner', 'str'),
    Column('batch_size', 'learner', 'int', label='batch size'),
    Column('check_every', 'learner', 'int', label='steps between checks'),
    Column('threshold', 'learner', 'float', label='threshold'),
    Column('thresholds', 'learner', 'str', label='further thresholds'),
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
    Column('sample_size', 'lane', 'int', 'n', 'sample size $n$'),
    Column('stop_after', 'lane', 'int', label='samples after which a lane is outraced'),
    # How a lane ended.
    Column('outcome', 'outcome', 'str'),
    Column('num_samples', 'outcome', 'int', 'n', 'training samples'),
    Column('samples_to_threshold', 'outcome', 'count', 'n', 'samples to threshold'),
    Column('crossings', 'outcome', 'str', label='samples to each threshold'),
    Column('validation_samples_to_threshold', 'outcome', 'count', 'n', 'samples to threshold, by validation'),
    # What was measured.
    Column('train_loss', 'measure', label='training loss'),
    Column('test_loss', 'measure', label='test MSE'),
    Column('test_loss_se', 'measure', label='standard error of the test loss'),
    Column('validation_loss', 'measure', label='validation loss'),
    Column('validation_loss_se', 'measure', label='standard error of the validation loss'),
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
    Column('steps', 'measure', 'int'),
    Column('converged', 'measure', 'bool'),
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
    Column('backend', 'measure', 'str'),
    Column('lanes_per_batch', 'measure', 'int', label='lanes per batch'),
    # Curves: one line per check or fit.
    Column('samples', 'measure', 'int', 'n', 'training samples'),
    Column('is_due', 'measure', 'bool', label='evaluation asked for'),
)
