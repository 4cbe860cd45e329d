"""Where a process of a test ends itself: at a call of a function, or at a change of the file system."""

import dataclasses
import importlib
import io
import itertools
import os
import signal
import sys
import time

FILE_EVENTS = ('open', 'os.mkdir', 'os.rename', 'os.remove', 'os.rmdir', 'os.truncate', 'os.link')


@dataclasses.dataclass(frozen=True)
class Death:
    """Where a process sends itself a signal.

    Attributes:
        target: 'module:function', 'module:Class.method', or 'event': a change of the file system below the results
            directory.
        call: at which call of it, from 1.
        when: 'before' it, 'after' it, or in the 'middle' (of pyarrow's `write_table`: half of the file is there).
        signal_number: SIGKILL by default.
    """

    target: str
    call: int = 1
    when: str = 'before'
    signal_number: int = signal.SIGKILL


def arm(death, workdir):
    """Makes this process end where `death` says."""
    numbers = itertools.count(1)

    def die():
        handler = signal.getsignal(death.signal_number)
        os.kill(os.getpid(), death.signal_number)
        # A handler runs in the main thread, when that wakes up, and ends with itself unset; training is quicker.
        while signal.getsignal(death.signal_number) is handler:
            time.sleep(0.001)

    def audit(event, args):
        if event in FILE_EVENTS and str(args[0]).startswith(str(workdir)) and _changes(event, args):
            if next(numbers) == death.call:
                die()

    def wrapped(*args, **kwargs):
        is_due = next(numbers) == death.call
        if is_due and death.when == 'before':
            die()
        if is_due and death.when == 'middle':
            table, file = args
            function(table, buffer := io.BytesIO())
            file.write(buffer.getvalue()[: buffer.tell() // 2])
            file.flush()
            die()
        result = function(*args, **kwargs)
        if is_due and death.when == 'after':
            die()
        return result

    if death.target == 'event':
        sys.addaudithook(audit)
        return
    module, path = death.target.split(':')
    *owners, name = path.split('.')
    owner = importlib.import_module(module)
    for owner_name in owners:
        owner = getattr(owner, owner_name)
    function = getattr(owner, name)
    setattr(owner, name, wrapped)


def _changes(event, args):
    """Whether an audited event changes the file system; reading does not."""
    if event != 'open':
        return True
    _, mode, flags = args
    return bool((flags or 0) & (os.O_WRONLY | os.O_RDWR)) or (isinstance(mode, str) and mode[0] in 'wax')
