"""Results directories that several test files read: made of tables, without training."""

import pathlib

import numpy as np
import pandas as pd

from qstr_jax.storage import files, lane_keys, results, table_format
from tests import small

CELL = 'ffn-qstr-N3-q1-00000000'
SETTINGS = dict(small.cell('ffn').columns)
LANES = [small.lane(seed, 0) for seed in range(4)]


def rows_of(lanes, **changes):
    """One row per lane; the second lane is censored."""
    frame = pd.DataFrame([{**SETTINGS, **lane._asdict()} for lane in lanes])
    samples = [None if lane.seed == 1 else 640 + lane.seed for lane in lanes]
    outcome = ['censored' if lane.seed == 1 else 'reached' for lane in lanes]
    losses = np.float32(0.5) + np.array([lane.seed for lane in lanes], np.float32)
    return frame.assign(
        outcome=outcome,
        samples_to_threshold=pd.array(samples, 'Int64'),
        test_loss=losses,
        grad_norm=None,
        backend='cpu',
        lanes_per_batch=2,
    ).assign(**changes)


def curves_of(lanes, num_checks=3):
    """`num_checks` entries per lane."""
    return pd.DataFrame(
        [
            {**lane._asdict(), 'samples': 640 * (i + 1), 'test_loss': np.float32(1 / (i + 1))}
            for lane in lanes
            for i in range(num_checks)
        ]
    )


def make(path, lanes=LANES, sweep=None, cell=CELL, **changes):
    """A results directory with some lanes of one cell."""
    workdir = results.open_workdir(path)
    results.add_sweep(workdir, (sweep or small.settings()).as_json())
    entry = {'columns': SETTINGS, 'lanes': [lane_keys.name_of(lane) for lane in lanes]}
    files.write_json(workdir / 'plan.json', {cell: entry})
    results.add(workdir, cell, rows_of(lanes, **changes), curves_of(lanes))
    files.write_json(workdir / 'provenance' / f'{path.name}.json', {'batches': []})
    return workdir


def signed(table):
    """A Parquet table with the digest of what it holds now, as somebody writes it who means it."""
    bare = {key: value for key, value in table.schema.metadata.items() if key != table_format.DIGEST_KEY}
    table = table.replace_schema_metadata(bare)
    return table.replace_schema_metadata({**bare, table_format.DIGEST_KEY: table_format.digest(table)})


def snapshot(path):
    """All files of a directory as {name: bytes}."""
    path = pathlib.Path(path)
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob('*') if p.is_file()}
