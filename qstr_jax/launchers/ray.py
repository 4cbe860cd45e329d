"""A sweep on a Ray cluster, or on one that starts by itself on this machine (`make install EXTRA=ray`).

An actor is a process with the devices of one worker, and runs many lanes; the driver hands lane batches to it and
writes what comes back. Ray starts actors as new Pythons: JAX hangs in forked ones.
"""

import logging
import os
import signal
import sys
from collections.abc import Hashable, Sequence
from typing import Any

from qstr_jax import signals
from qstr_jax.launchers import driver
from qstr_jax.launchers.driver import Failed, Lost
from qstr_jax.launchers.inbox import Inbox
from qstr_jax.launchers.planner import Planner
from qstr_jax.launchers.request import LaunchError, Request
from qstr_jax.progress import Progress
from qstr_jax.storage.files import ResultsError

# Rows may depend on these variables, so all workers get the same.
SHARED = ('XLA_FLAGS', 'NPROC')
# Share of a GPU's memory that its processes take; JAX would take 75 %.
MEMORY_SHARE = 0.9
# A cluster needs the code of the present folder, and none of these.
EXCLUDES = ['.git', '/experiments/results', '/results', '/site', '/.venv*']


class Actor:
    """A worker's process, to which Ray has given its devices."""

    def __init__(self, environment: dict[str, str], arguments: tuple) -> None:
        self._environment, self._arguments = environment, arguments

    def num_devices(self) -> int:
        """Starts JAX and returns the number of its devices."""
        if 'jax' in sys.modules:
            raise RuntimeError('JAX was imported before its environment was set')
        os.environ.update(self._environment)
        from qstr_jax.launchers import batch_worker

        try:
            self._worker = batch_worker.BatchWorker(*self._arguments)
        except SystemExit as error:  # of a wrong flag; Ray would take it for the end of the actor
            raise RuntimeError(str(error.code).removeprefix('error: ')) from None
        return self._worker.num_devices

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls 'run', 'news' or 'stop' of the `batch_worker.BatchWorker`."""
        return getattr(self._worker, method)(*arguments)


class Engine:
    """Workers as actors of a cluster that this process has joined."""

    def __init__(self, request: Request) -> None:
        import ray

        self._ray: Any = ray
        self._arguments = environment_of(request), (request.arguments, request.platform, request.devices)
        self._actor: Any = ray.remote(Actor).options(
            **needs(request),
            max_restarts=0,
            max_concurrency=request.devices + 1,  # one for each device, and one to answer calls
        )

    def start(self) -> Any:
        """See `driver.Engine`."""
        return self._actor.remote(*self._arguments)

    def call(self, worker: Any, method: str, *arguments: Any) -> Hashable:
        """See `driver.Engine`."""
        return worker.num_devices.remote() if method == 'num_devices' else worker.call.remote(method, *arguments)

    def wait(self, calls: Sequence[Hashable], timeout: float) -> Sequence[Hashable]:
        """See `driver.Engine`."""
        return self._ray.wait(calls, num_returns=1, timeout=timeout)[0]

    def result(self, call: Hashable) -> Any:
        """See `driver.Engine`."""
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            raise Failed(f'{type(error.cause).__name__}: {error.cause}'.splitlines()[0]) from None
        except self._ray.exceptions.RayError as error:
            raise Lost(str(error)) from None

    def end(self, worker: Any) -> None:
        """See `driver.Engine`."""
        self._ray.kill(worker)


def environment_of(request: Request) -> dict[str, str]:
    """The environment in which a worker starts JAX."""
    found = {name: os.environ[name] for name in SHARED if name in os.environ}
    found['JAX_PLATFORMS'] = {'gpu': 'cuda'}.get(request.platform, request.platform)
    if request.gpus:
        found['XLA_PYTHON_CLIENT_MEM_FRACTION'] = str(MEMORY_SHARE * min(request.gpus, 1))
    return found


def needs(request: Request) -> dict[str, Any]:
    """What a worker needs, as Ray has it."""
    tpus = {'TPU': request.tpus} if request.tpus else {}
    memory = {'memory': int(request.mem_gb * 2**30)} if request.mem_gb else {}
    return {'num_cpus': request.cpus, 'num_gpus': request.gpus, 'resources': tpus, **memory}


def _room(request: Request, resources: dict[str, float]) -> int:
    """How many workers a cluster has room for."""
    wanted = {'CPU': request.cpus, 'GPU': request.gpus, 'TPU': request.tpus}
    return min(int(resources.get(name, 0) / amount) for name, amount in wanted.items() if amount)


def _join(request: Request) -> None:
    """Joins the cluster of an address, or starts one here."""
    import ray

    environment = {'working_dir': '.', 'excludes': EXCLUDES} if request.address else {}
    try:
        ray.init(request.address or 'local', runtime_env=environment, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise LaunchError(f'address={request.address!r}: {str(error).splitlines()[0]}') from None


def _run(request: Request) -> None:
    planner = Planner(request.arguments, request.platform)
    try:
        import ray
    except ImportError:
        raise LaunchError('ray is missing: make install EXTRA=ray') from None
    _join(request)
    room = _room(request, ray.cluster_resources())
    if not room and not request.address:
        raise LaunchError(f'a worker needs {needs(request)}, which this machine does not have')
    num_workers, about = request.num_workers or max(1, room), planner.about
    with signals.stopping() as stop, Progress('lane', is_open=about['is_tuned']) as progress:
        progress.expect(about['left'])
        progress.say(f'{about["left"]:,} of {about["lanes"]:,} lanes are to be run; workers: {num_workers}')

        def inbox(folder: str) -> Inbox:
            return Inbox(os.path.join(about['workdir'], folder))

        one = driver.Driver(
            Engine(request), planner, inbox, num_workers=num_workers, poll_seconds=request.poll_seconds,
            progress=progress, stop=stop,
        )  # fmt: skip
        one.run()
    ray.shutdown()
    if stop.is_set():
        raise LaunchError('stopped: the running lanes are saved; the same command continues them')
    if one.failed:
        raise LaunchError('\n'.join([f'batches that failed: {len(one.failed)}', *one.failed]))
    planner.finish()


def run(request: Request) -> None:
    """See `qstr_jax.launchers`."""
    try:
        _run(request)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (LaunchError, ResultsError, Failed) as error:
        sys.exit(f'error: {error}')
