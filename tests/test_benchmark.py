"""The benchmark's sections, its tables and its picture, from a plan of seconds; nothing here is timed for its speed."""

import dataclasses
import json
import pathlib

import jax
import pandas as pd
import pytest

from experiments.benchmarks import cells, ours, products, report, sections, timing
from experiments.benchmarks.protocol import MODELS, Protocol
from tests import harness, helpers

pytestmark = helpers.needs_torch

TINY = cells.Plan(
    models=('ffn',),
    seq_lens_1a=(2,),
    seq_lens_1b=(),
    run_seq_lens=(('ffn', (2,)),),
    run_seeds=2,
    run_rounds=2,
    seeds=(1, 2),
    seeds_seq_len=2,
    scaling=(8, 16),
    precision_seq_lens=(('ffn', (2,)),),
    precision_seeds=2,
    rounds=2,
    seconds=0.01,
    compiled=(),
)


@pytest.fixture(scope='module')
def results():
    """All sections of a small plan; steps, which tell devices apart, on two of them: each one compiles its cells."""
    device = sections.device_name()
    results = report.start(['benchmark'], TINY)
    with timing.fresh_cache(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, 'SECONDS', 0.002)
        for name, section in sections.SECTIONS.items():
            count = 2 if name == 'steps' else 1
            patch.setattr(jax, 'local_devices', lambda count=count: jax.devices()[:count])
            patch.setattr(jax, 'local_device_count', lambda count=count: count)
            results['sections'][name] = section(TINY, device, lambda text: None)
    return json.loads(json.dumps(results))


def test_a_fresh_cache_is_empty_and_goes():
    before = jax.config.jax_compilation_cache_dir
    folders = []
    for _ in range(2):
        with timing.fresh_cache():
            folders.append(pathlib.Path(jax.config.jax_compilation_cache_dir))
            assert not list(folders[-1].iterdir())
            jax.jit(lambda x: x + 3).lower(1.0).compile()
            assert list(folders[-1].iterdir())
    assert jax.config.jax_compilation_cache_dir == before
    assert not any(folder.exists() for folder in folders)


@pytest.mark.slow
def test_sections_measure_what_they_say(results):
    (step,) = results['sections']['steps']
    assert step['ours_step_low'] <= step['ours_step_seconds'] <= step['ours_step_high']
    assert step['ours_product_share'] == pytest.approx(step['product_seconds'] / step['ours_step_seconds'])
    (run,) = results['sections']['runs']
    assert run['ours_reached'] == run['torch_reached'] == 2
    assert run['missed_crossings'] == 0
    assert report.total(results).startswith('all 1 cells: ours ')
    assert 2 <= run['tests'] <= run['checks']
    assert [record['lanes'] for record in results['sections']['seeds']] == [1, 2]
    assert {record['risk'] for record in results['sections']['scaling']} == {'pointwise', 'averaged'}
    assert {key[0] for key in report.growth(results)} == {'pointwise', 'averaged'}
    precisions = results['sections']['precision']
    assert [record['precision'] for record in precisions] == ['highest', 'tf32', 'bf16', 'highest, other sums']
    # The same cell and seeds as of the run above, which is screened.
    assert sum(precisions[0]['samples']) / 2 == run['ours_samples']
    assert all(len(record['samples']) == 2 for record in precisions)


@pytest.mark.slow
def test_report_is_written_whole(results, tmp_path):
    report.write(results, tmp_path / 'benchmark.json')
    again = json.loads((tmp_path / 'benchmark.json').read_text())
    assert again == results
    tables = (tmp_path / 'benchmark.md').read_text()
    for name in results['sections']:
        assert report.tables(again, name) in tables
    assert (tmp_path / 'benchmark.png').stat().st_size > 10_000
    assert again['provenance']['device'].startswith(('cpu', 'gpu'))


def test_products_of_a_step():
    """By hand for an FFN; and nearly all that XLA counts in a step of a network of wide layers."""
    protocol = Protocol('ffn', 4)
    fan_in, batch = 4 * protocol.embedding_dim, 64
    assert products.flops(protocol) == 2 * batch * (2 * fan_in * 40 + 3 * 40 * 1000 + 3 * 1000 * 4)
    protocol = dataclasses.replace(protocol, ffn_widths=(500, 500))
    counted = ours.Cell(protocol).step_flops()
    assert 0.85 * counted < products.flops(protocol) < counted


def test_timing_alternates_and_takes_medians():
    calls = []
    runs = {name: lambda count, name=name: calls.append((name, count)) for name in 'ab'}
    times = timing.alternate(runs, rounds=3, seconds=1e-9)
    assert [name for name, _ in calls[-6:]] == ['a', 'b'] * 3
    assert times['a'].low <= times['a'].median <= times['a'].high


def test_peak_bytes_sees_an_array():
    import numpy as np

    peak = timing.peak_bytes(lambda: np.ones(2**24).sum())
    assert peak is None or 2**26 < peak < 2**29


def test_full_plan_has_every_cell_of_figure_1a():
    pairs = {(p.model, p.seq_len) for exhibit, p in cells.FULL.protocols() if exhibit == '1a'}
    assert pairs == {(model, n) for model in MODELS for n in range(2, 13, 2)}
    assert dataclasses.replace(cells.FULL, models=('ffn',)).runs()


@pytest.mark.parametrize(
    ('flag', 'message'),
    [
        ('--sections=fast', 'unknown, one of steps, runs'),
        ('--models=mlp', 'unknown, one of transformer, rnn, ffn'),
        ('--seq_lens=5', 'not in the plan, which has [4, 64, 256]'),
        ('--seq_lens=four', 'not in the plan'),
        ('--json=/dev/null/results.json', 'must be a directory that can be written'),
        ('--json=/tmp', 'is a directory; name a file'),
        ('--speed', 'Unknown command line flag'),
    ],
)
def test_bad_flags_are_one_line(flag, message):
    done = harness.run_binary('benchmark', '--quick', flag)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith('error: ')
    assert message in line


def test_tables_of_a_section_that_does_not_apply():
    assert 'not measured' in report.table({'sections': {'precision': []}}, 'precision')
    assert isinstance(report.frame({'sections': {'precision': []}}, 'precision'), pd.DataFrame)


def test_samples_of_a_precision_are_compared_seed_by_seed():
    records = [
        {'model': 'ffn', 'seq_len': seq_len, 'precision': name, 'samples': samples}
        for seq_len, name, samples in [
            (4, 'highest', [100, 200]), (4, 'bf16', [150, 200]), (8, 'highest', [50, 50]), (8, 'bf16', [50, None]),
        ]
    ]  # fmt: skip
    shown = report.frame({'sections': {'precision': records}}, 'precision')
    assert shown['times highest, same seeds'].tolist()[:3] == [1, 1.25, 1]
    assert shown['largest'].tolist()[:3] == [1, 1.5, 1]
    assert shown.iloc[3][['mean samples', 'times highest, same seeds']].isna().all()  # a seed never got there


@pytest.mark.slow
def test_precisions_of_a_gpu_are_taken_in_turn():
    """A CPU takes JAX's names and multiplies in float32 all the same: samples agree."""
    plan = dataclasses.replace(TINY, precision_seeds=1)
    *records, other = sections.precision(plan, 'cuda', lambda text: None)
    assert [record['precision'] for record in records] == ['highest', 'high', 'default', 'bfloat16']
    assert all(record['samples'] == records[0]['samples'] and record['step_seconds'] > 0 for record in records)
    assert 'step_seconds' not in other


def test_total_of_runs_counts_compiling_once():
    record = {'ours_seconds': 1.0, 'ours_compile_seconds': 3.0, 'torch_seconds': 10.0}
    text = report.total({'sections': {'runs': [record, record | {'torch_seconds': 14.0}]}})
    assert text == 'all 2 cells: ours 2 s and 6 s to compile, PyTorch 24 s, 3.00 times'


def test_a_plan_of_some_lengths():
    some = dataclasses.replace(cells.FULL, **cells.restricted(cells.FULL, {4, 33, 64}))
    assert {p.seq_len for _, p in some.protocols()} == {4, 33}
    assert {(p.seq_len, p.threshold) for p in some.runs()} == {(4, 0.7), (33, 0.02)}
    assert some.scaling == (64,)
