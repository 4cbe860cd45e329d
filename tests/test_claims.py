"""Claims on lane batches: each is handed out once, and ends with its holder."""

import contextlib
import os
import re
import signal
import socket
import threading
import time

import pandas as pd
import pytest
from etils import epath

from qstr_jax import sweeps
from qstr_jax.storage import files, locks, results
from qstr_jax.sweeps import claims, lane_batches, monitor
from tests import harness, small

SETTINGS = {'models': ('transformer', 'ffn'), 'seq_lens': (2, 3, 4, 5), 'num_seeds': 5}


@pytest.fixture
def workdir(tmp_path):
    return results.open_workdir(tmp_path)


@pytest.fixture(scope='module')
def cells():
    return sweeps.cells_of(small.settings(**SETTINGS))


@pytest.fixture(scope='module')
def lanes():
    return sweeps.cells_of(small.settings(**SETTINGS))[0].lanes


def add_rows(workdir, cell, lanes):
    """Writes a row and a curve for some lanes, as if they had been run."""
    rows = pd.DataFrame([{**dict(cell.columns), 'outcome': 'reached', **lane._asdict()} for lane in lanes])
    results.add(workdir, cell.id, rows, rows.assign(samples=640))


def test_missing_lanes(workdir, cells, lanes):
    (batch,) = lane_batches.cut(cells[:1], lambda cell: 5)
    assert claims.missing(workdir, batch) == lanes
    add_rows(workdir, cells[0], lanes[1:3])
    assert claims.missing(workdir, batch) == (lanes[0], *lanes[3:])
    add_rows(workdir, cells[0], lanes)
    assert claims.missing(workdir, batch) == ()


@pytest.mark.parametrize('has_locks', [True, False])
def test_a_lock_is_exclusive_also_between_threads(workdir, monkeypatch, has_locks):
    monkeypatch.setattr(locks, 'has_locks', lambda workdir: has_locks)
    with claims.locked(workdir, 'a') as first, claims.locked(workdir, 'b') as other:
        assert first
        assert other
        seen = []

        def attempt():
            with claims.locked(workdir, 'a', timeout=0) as second:
                seen.append(second)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        assert seen == [False]
    with claims.locked(workdir, 'a', timeout=0) as again:
        assert again


def hold(workdir, name, ready):
    """Takes a lock and keeps it: the life of a worker."""
    with claims.locked(epath.Path(workdir), name):
        ready.set()
        signal.pause()


def test_a_lock_ends_with_its_holder(workdir):
    ready = harness.SPAWN.Event()
    process = harness.SPAWN.Process(target=hold, args=(str(workdir), 'a', ready), daemon=True)
    process.start()
    assert ready.wait(60)
    with claims.locked(workdir, 'a', timeout=0) as mine:
        assert not mine
    process.kill()
    process.join()
    with claims.locked(workdir, 'a', timeout=60) as mine:
        assert mine


def test_who_waits_for_a_lock_says_so(workdir, monkeypatch):
    monkeypatch.setattr(locks, 'QUIET_SECONDS', 0.1)
    with contextlib.ExitStack() as held:
        held.enter_context(locks.locked(workdir, 'config'))
        monkeypatch.setattr(locks.logging, 'warning', lambda *words: (said.append(words), held.close()))
        said = []
        with locks.locked(workdir, 'config') as mine:
            assert mine
    assert len(said) == 1
    assert str(workdir / 'locks/config.lock') in said[0]


def test_a_place_without_locks_is_a_line(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(files.ResultsError, match=r'cannot lock .*a\.lock'), claims.locked(tmp_path / 'file', 'a'):
        pass


def test_every_batch_is_handed_out_once(workdir, cells, lanes):
    batches = lane_batches.cut(cells, lambda cell: 2)
    add_rows(workdir, cells[0], lanes[:2])  # this one is complete
    add_rows(workdir, cells[1], lanes[:1])  # this one lacks a lane
    stop = threading.Event()
    claimers = [claims.Claims(workdir, batches, stop) for _ in range(2)]
    by_cell, taken = {cell.id: cell for cell in cells}, []

    def worker(mine):
        while True:
            with mine.claim() as claimed:
                if claimed is None:
                    return
                batch, missing = claimed
                taken.extend((batch.cell.id, lane) for lane in missing)
                with claims.locked(workdir, f'{batch.cell.id}-tables'):
                    add_rows(workdir, by_cell[batch.cell.id], missing)

    threads = [threading.Thread(target=worker, args=(mine,)) for mine in claimers * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(taken) == len(set(taken)) == len(cells) * len(lanes) - 3
    assert all(claims.missing(workdir, batch) == () for batch in batches)


def test_what_another_leaves_unfinished_is_taken_over(workdir, cells, lanes, monkeypatch):
    monkeypatch.setattr(claims, 'POLL_SECONDS', 0.01)
    batches = lane_batches.cut(cells[:1], lambda cell: 5)
    stop = threading.Event()
    first, second = (claims.Claims(workdir, batches, stop) for _ in range(2))
    taken = []

    def wait():
        with second.claim() as claimed:
            taken.append(claimed)

    with first.claim() as claimed:
        assert claimed[0] == batches[0]
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()  # the batch is held: it waits
        add_rows(workdir, cells[0], lanes[:2])
    thread.join(30)
    assert taken == [(batches[0], lanes[2:])]


def test_who_is_waited_for_is_said_once(workdir, cells, monkeypatch):
    monkeypatch.setattr(claims, 'POLL_SECONDS', 0.01)
    monkeypatch.setattr(claims, 'QUIET_SECONDS', 0.0)
    batches, stop, said, polls = lane_batches.cut(cells[:1], lambda cell: 5), threading.Event(), [], []
    monitor.Heartbeat(workdir, 'run', 0).beat({'cell': cells[0].id, 'batch': batches[0].name})
    find = monitor.silent_holders
    monkeypatch.setattr(monitor, 'silent_holders', lambda *given: polls.append(0) or find(*given))

    def wait():
        with claims.Claims(workdir, batches, stop, said.append).claim() as claimed:
            assert claimed is None

    with claims.locked(workdir, batches[0].name):
        thread = threading.Thread(target=wait)
        thread.start()
        while len(polls) < 3 and thread.is_alive():
            time.sleep(0.01)
        stop.set()
        thread.join(30)
    (line,) = said
    who = f'{socket.gethostname()} pid {os.getpid()}'
    assert re.fullmatch(re.escape(f'waits for {batches[0].name}, held by {who}, silent for ') + '[0-9]+ s', line)


def test_a_stop_ends_the_wait(workdir, cells, lanes):
    stop = threading.Event()
    mine = claims.Claims(workdir, lane_batches.cut(cells, lambda cell: 5), stop)
    stop.set()
    with mine.claim() as claimed:
        assert claimed is None


def test_a_failure_releases_the_claim(workdir, cells, lanes):
    batches = lane_batches.cut(cells[:1], lambda cell: 5)
    with pytest.raises(RuntimeError), claims.Claims(workdir, batches, threading.Event()).claim():
        raise RuntimeError
    with claims.locked(workdir, batches[0].name, timeout=0) as free:
        assert free


def test_an_error_while_it_claims_releases_the_lock(workdir, cells, monkeypatch):
    batches = lane_batches.cut(cells[:1], lambda cell: 5)
    monkeypatch.setattr(claims, 'missing', lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as kept, claims.Claims(workdir, batches, threading.Event()).claim():
        pass
    with claims.locked(workdir, batches[0].name, timeout=0) as is_free:
        assert is_free  # though the traceback is still there, as in a notebook
    assert kept.tb


def test_checkpoints_of_a_complete_cell_are_removed_unless_they_are_held(workdir, cells):
    first, second = (f'{cells[0].id}-batch{i}of2' for i in range(2))
    for name in f'{first}-0-0123abcd', f'{second}-0-0123abcd', f'{cells[1].id}-batch0of2-0-0123abcd':
        (workdir / 'checkpoints' / name).mkdir()
    with claims.locked(workdir, second):
        claims.remove_checkpoints(workdir, cells[0].id)
    assert sorted(os.listdir(workdir / 'checkpoints')) == sorted(
        [f'{second}-0-0123abcd', f'{cells[1].id}-batch0of2-0-0123abcd']
    )


def test_a_thread_takes_cells_that_nobody_has_begun(workdir, cells, lanes):
    """Compiling a cell a second time is put off until nothing else is left."""
    first, second, *_ = cells
    mine = claims.Claims(workdir, lane_batches.cut([first, second], lambda cell: 1), threading.Event())
    turns = threading.Barrier(2)
    taken = {}

    def claim_twice(name):
        for _ in range(2):
            with mine.claim() as (batch, _):
                taken.setdefault(name, []).append(batch.cell.id)
                turns.wait(timeout=30)

    threads = [threading.Thread(target=claim_twice, args=(name,)) for name in 'ab']
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {frozenset(cell_ids) for cell_ids in taken.values()} == {frozenset({first.id}), frozenset({second.id})}


def test_a_cell_is_helped_with_when_no_other_is_left(workdir, cells):
    """The owner is inside its batch; another thread takes an untouched cell first, then one of the owner's batches."""
    batches = lane_batches.cut(cells[:1], lambda cell: 1) + lane_batches.cut(cells[1:2], lambda cell: 5)
    mine = claims.Claims(workdir, batches, threading.Event())
    owning, taken = threading.Event(), []

    def help_out():
        owning.wait(timeout=30)
        for _ in range(2):
            with mine.claim() as claimed:
                taken.append(claimed[0].cell.id)

    thread = threading.Thread(target=help_out, daemon=True)
    thread.start()
    with mine.claim() as claimed:
        assert claimed[0].cell.id == cells[0].id
        owning.set()
        thread.join(timeout=30)
    assert taken == [cells[1].id, cells[0].id]
