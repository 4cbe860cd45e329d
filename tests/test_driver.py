"""The driver of lane batches beside workers that are functions: who gets what, who dies, what is written."""

import multiprocessing
import queue
import threading
import types

import pytest

from qstr_jax.launchers import driver, plan, planner
from qstr_jax.launchers.batch_queue import Batch, BatchQueue
from qstr_jax.launchers.driver import Failed, Lost
from qstr_jax.launchers.inbox import Inbox
from qstr_jax.progress import Progress
from qstr_jax.storage.files import ResultsError


def batch(cell, number=0, work=1.0):
    return Batch(cell=cell, number=number, name=f'{cell}-batch{number}of1', lanes=(0,), work=work)


class Workers:
    """An engine whose calls end in turn, in this process.

    Args:
        run: what a worker does with a batch; returns its files or raises.
        num_devices: of each worker; may raise too.
    """

    def __init__(self, run, num_devices=lambda: 2):
        self._run, self._num_devices = run, num_devices
        self.started, self.ended, self.ran, self._calls = 0, 0, [], []

    def start(self):
        self.started += 1
        return self.started

    def call(self, worker, method, *arguments):
        self._calls.append((method, arguments))
        return len(self._calls) - 1

    def wait(self, calls, timeout):
        return calls[:1]

    def result(self, call):
        method, arguments = self._calls[call]
        if method == 'num_devices':
            return self._num_devices()
        if method == 'news':
            return {}
        if method == 'run':
            self.ran.append(arguments[1].name)
            return {'files': self._run(arguments[1]), 'lines': []}
        return None

    def end(self, worker):
        self.ended += 1


class Written:
    """In place of the inbox: what was written."""

    def __init__(self):
        self.files, self.ended = [], []

    def checkpoint(self, batch):
        return {}

    def write(self, files):
        self.files += files

    def end(self, batch):
        self.ended.append(batch)

    def remove(self, name):
        pass


class Steps:
    """In place of the planner: batches in steps, each of which waits for the one before."""

    def __init__(self, *steps):
        self._steps, self._left, self.told = list(steps), set(), {}

    def receive(self, timeout):
        if self._left:
            return []
        if not self._steps:
            return None
        step = self._steps.pop(0)
        self._left = {each.name for each in step}
        return step

    def tell(self, batch, is_good):
        self._left.remove(batch.name)
        self.told[batch.name] = is_good


def drive(engine, source, num_workers=2, stop=None, poll_seconds=100.0):
    inbox, progress = Written(), Progress('lane', False)
    source = source if isinstance(source, Steps) else Steps(source)
    stop = stop or threading.Event()
    one = driver.Driver(
        engine, source, lambda folder: inbox,
        num_workers=num_workers, poll_seconds=poll_seconds, progress=progress, stop=stop,
    )  # fmt: skip
    one.run()
    return one, inbox


def filled(batches):
    queue = BatchQueue()
    queue.add(batches)
    return queue


def rows(one):
    return {f'curves/{one.cell}.parquet': b'', f'rows/{one.cell}.parquet': b''}


def lost(*_):
    raise Lost


def test_the_longest_cell_comes_first_and_a_device_keeps_its_cell():
    queue = filled([batch('a', 0, 1.0), batch('a', 1, 1.0), batch('b', 0, 5.0), batch('b', 1, 4.0), batch('c')])
    taken = [queue.take(device) for device in (1, 2, 1, 3, 1, 1)]
    assert [(one.cell, one.number) for one in taken[:5]] == [('b', 0), ('a', 0), ('b', 1), ('c', 0), ('a', 1)]
    assert taken[5] is None


def test_a_batch_that_is_put_back_comes_before_smaller_ones():
    queue = filled([batch('a', 0, 3.0), batch('b', 0, 2.0), batch('c', 0, 1.0)])
    first = queue.take(1)
    queue.put_back(first)
    assert queue.take(2) == first
    assert [queue.take(2).cell, queue.take(2).cell, len(queue)] == ['b', 'c', 0]


def test_each_batch_is_run_once():
    batches = [batch(cell, number) for cell in 'abc' for number in range(4)]
    one, inbox = drive(engine := Workers(rows), batches)
    assert sorted(engine.ran) == sorted(inbox.ended) == sorted(each.name for each in batches)
    assert (one.failed, engine.started, engine.ended) == ([], 2, 2)


def test_a_batch_whose_workers_die_fails_at_last_and_the_others_are_run():
    def run(one):
        return lost() if one.cell == 'b' else rows(one)

    one, inbox = drive(engine := Workers(run), [batch('a'), batch('b'), batch('c')])
    assert one.failed == [f'b-batch0of1: its worker died {driver.DEATHS} times']
    assert inbox.ended.count('a-batch0of1') == inbox.ended.count('c-batch0of1') == 1
    assert engine.ran.count('b-batch0of1') == driver.DEATHS
    assert engine.ended == engine.started


class Hanging(Workers):
    """An engine whose first worker starts, and then answers nothing, or never starts."""

    def __init__(self, *given, at_start=False):
        super().__init__(*given)
        self._at_start = at_start
        self._unanswered = set()

    def call(self, worker, method, *arguments):
        call = super().call(worker, method, *arguments)
        if worker == 1 and (self._at_start or method != 'num_devices'):
            self._unanswered.add(call)
        return call

    def wait(self, calls, timeout):
        return [call for call in calls if call not in self._unanswered][:1]


@pytest.mark.parametrize('is_stopped', [False, True])
def test_the_batch_of_a_worker_that_does_not_answer_is_handed_on(monkeypatch, is_stopped):
    monkeypatch.setattr(driver, 'SILENT_SECONDS', 0.0)
    stop, batches = threading.Event(), [batch(cell) for cell in 'abc']

    def run(one):
        if is_stopped:
            stop.set()
        return rows(one)

    one, inbox = drive(engine := Hanging(run, lambda: 1), batches, stop=stop, poll_seconds=0.0)
    assert one.failed == []
    if is_stopped:  # it ends, though the first worker never does
        assert engine.started == engine.ended == 2
    else:
        assert sorted(inbox.ended) == [each.name for each in batches]
        assert engine.started == engine.ended == 3


def test_a_worker_that_never_starts_is_said_once(monkeypatch):
    said = []
    monkeypatch.setattr(Progress, 'say', lambda self, line: said.append(line))
    monkeypatch.setattr(driver, 'SILENT_SECONDS', 0.0)
    batches = [batch(cell) for cell in 'abc']
    _, inbox = drive(Hanging(rows, lambda: 1, at_start=True), batches, poll_seconds=0.0)
    assert sorted(inbox.ended) == [each.name for each in batches]
    assert sum('worker 0 has not started' in line for line in said) == 1


def test_a_batch_that_raises_is_a_line():
    def run(one):
        if one.cell == 'b':
            raise Failed('KeyError: 3')
        return rows(one)

    one, inbox = drive(Workers(run), [batch('a'), batch('b'), batch('c')])
    assert one.failed == ['b-batch0of1: KeyError: 3']
    assert sorted(inbox.ended) == ['a-batch0of1', 'c-batch0of1']


def test_an_error_of_a_cell_is_kept_and_its_checkpoint_stays():
    one, inbox = drive(Workers(lambda one: {f'errors/{one.cell}.json': b'{"error": "MemoryError: 3"}'}), [batch('a')])
    assert one.failed == ['a-batch0of1: MemoryError: 3']
    assert (inbox.files, inbox.ended) == (['errors/a.json'], [])


@pytest.mark.parametrize('start', [lost, lambda: (_ for _ in ()).throw(Failed('promised 1 × gpu'))])
def test_workers_that_cannot_start_end_the_run(start):
    engine = Workers(rows, start)
    with pytest.raises(Failed, match=r'die before they have started|promised 1 × gpu'):
        drive(engine, [batch('a')])
    assert engine.ended == engine.started


def test_a_stopped_driver_hands_out_nothing_more():
    stop = threading.Event()

    def run(one):
        stop.set()
        return {f'checkpoints/{one.name}-0-abc/00000001/arrays.npz': b'1'}

    engine = Workers(run, lambda: 1)
    _, inbox = drive(engine, [batch(cell) for cell in 'abc'], 1, stop)
    assert len(engine.ran) == len(inbox.files) == 1
    assert inbox.ended == []


def test_each_step_waits_for_the_one_before_and_is_told_how_it_ended():
    def run(one):
        if one.name == 'b-batch0of1':
            raise Failed('KeyError: 3')
        return rows(one)

    source = Steps([batch('a'), batch('b')], [batch('a', 1)], [batch('c'), batch('d')])
    one, _ = drive(engine := Workers(run, lambda: 1), source)
    assert engine.ran[2] == 'a-batch1of1'
    assert set(engine.ran[:2]) == {'a-batch0of1', 'b-batch0of1'}
    assert source.told == {name: name != 'b-batch0of1' for name in engine.ran}
    assert (len(one.failed), engine.started) == (1, 2)


def test_a_device_that_has_compiled_a_cell_is_known():
    queue = filled([batch('a'), batch('b')])
    assert [queue.take(1).cell, queue.take(2).cell] == ['a', 'b']
    queue.add([batch('b', 1)])
    assert [queue.has_of(device) for device in (1, 2, 3)] == [False, True, False]


def test_a_checkpoint_replaces_older_ones_and_comes_back(tmp_path):
    inbox = Inbox(tmp_path)
    for number in (1, 2):
        name = f'checkpoints/a-batch0of1-0-abc/{number:08d}'
        inbox.write({f'{name}/d/part': bytes([number]), f'{name}/arrays.npz': b'x'})
    assert inbox.checkpoint('a-batch0of1') == {f'{name}/d/part': b'\x02', f'{name}/arrays.npz': b'x'}
    assert inbox.checkpoint('a-batch0of11') == inbox.checkpoint('b-batch0of1') == {}
    inbox.end('a-batch0of1')
    assert inbox.checkpoint('a-batch0of1') == {}


@pytest.mark.parametrize('unread', [0, 1])
def test_a_planner_ends_with_its_driver_and_a_driver_with_its_planner(unread, monkeypatch):
    ended = queue.SimpleQueue()
    monkeypatch.setattr(plan.os, '_exit', ended.put)
    ours, theirs = multiprocessing.Pipe()
    other_end = plan._Driver(theirs)
    for _ in range(unread):
        other_end.tell('a message')
    ours.close()
    assert ended.get(timeout=10) == 1

    one = planner.Planner.__new__(planner.Planner)
    one._pipe, theirs = multiprocessing.Pipe()
    one._process = types.SimpleNamespace(join=lambda: None, exitcode=3)
    for _ in range(unread):
        one.tell(batch('a'), True)
    theirs.close()
    one.tell(batch('b'), True)
    with pytest.raises(SystemExit) as found:
        one.receive(0)
    assert found.value.code == 3


def test_a_path_that_leads_out_of_the_directory_is_refused(tmp_path):
    for name in ('../x', 'params/../../x', 'provenance/.hidden'):
        with pytest.raises(ResultsError, match='cannot be a name'):
            Inbox(tmp_path / 'inside').write({name: b''})
    assert list(tmp_path.rglob('*')) == []
