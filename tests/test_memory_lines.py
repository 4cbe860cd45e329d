"""Lines of capacity and of twisted teachers from rows of a directory."""

import itertools

import numpy as np
import pandas as pd
import pytest

from qstr_jax.theory import memory_lines

TASK = {'sparsity': 1, 'token_dim': 10, 'encoding_scale': 'scaled', 'encoding_factor': np.nan, 'encoding_dim': 20,
        'max_coherence': 0.75}  # fmt: skip


def test_capacity_is_a_geometric_mean_over_lanes_by_length_and_radius():
    fits = [
        {'task': 'random_labels', 'outcome': 'fitted', 'radius': radius, 'seq_len': n, 'seed': seed,
         'num_samples': size, 'train_risk': 0.0 if size <= 5 * n * radius * 4**seed else 0.4} | TASK
        for radius, n, seed, size in itertools.product((1.0, 2.0), (8, 16), (0, 1), (20, 40, 80, 160, 320, 640, 1280))
    ]  # fmt: skip
    others = [fit | {'task': 'qstr'} for fit in fits]
    lines = memory_lines.capacity_lines(pd.DataFrame([*fits, *others]))
    assert lines['name'].unique().tolist() == [f'fits random labels (2 draws), R = {radius}' for radius in (1, 2)]
    # At N = 8, R = 1 the first lane ends between 40 and 80, the second between 160 and 320.
    expected = np.sqrt(np.sqrt(40 * 80) * np.sqrt(160 * 320))
    assert lines['samples'].tolist() == pytest.approx([expected, 2 * expected, 2 * expected, 4 * expected])
    assert memory_lines.capacity_lines(pd.DataFrame(others)).empty


def test_twisted_teachers_have_a_number_where_d_e_is_large():
    rows = pd.DataFrame([{'task': 'qstr', 'seq_len': 16} | TASK | {'encoding_dim': dim} for dim in (5, 20)])
    rows['risk'] = 'pointwise'
    narrow, wide = memory_lines.twisted_lines(rows, threshold=0.05)['samples']
    assert np.isnan(narrow) or narrow < wide
    assert 8 <= wide <= 16 * 8
    # By the averaged risk each prompt asks for 16 indices, unless they are all the same.
    averaged = memory_lines.twisted_lines(rows.assign(risk='averaged'), threshold=0.05)['samples'][1]
    assert averaged == wide // 16
    simple = rows.assign(risk='averaged', task='simple_qstr')
    assert memory_lines.twisted_lines(simple, threshold=0.05)['samples'][1] == wide
