"""Runs one command for as long as its parent lives: ``python supervisor.py GRACE COMMAND...``, with a pipe as stdin.

The parent holds the other end of the pipe. When it closes (the parent stopped, crashed or was killed, whatever the
signal), the command's whole process group gets SIGTERM and, ``GRACE`` seconds later, SIGKILL. When the command ends by
itself, its remaining processes are killed and the supervisor exits with its exit code. On Linux the command gets
SIGTERM also if the supervisor itself is killed. It is a script in a new session, so that Ctrl-C in a terminal reaches
the parent only; standard library only, because it starts without site-packages.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

POLL_SECONDS = 0.2
_REAP_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1


def supervise(command: list[str], grace: float) -> int:
    """Run ``command`` until it ends or the parent does; returns its exit code (128 + signal where one ended it)."""
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: told.append(1))
    parent = os.getppid()
    bound = _end_with_parent if sys.platform == "linux" else None
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=bound)
    while child.poll() is None and not told and os.getppid() == parent:
        # Nobody writes into the pipe: readable means that its other end is closed.
        if select.select([sys.stdin], [], [], POLL_SECONDS)[0]:
            break
    if child.poll() is None:
        _signal(child.pid, signal.SIGTERM)
        _wait(child, grace)
    _signal(child.pid, signal.SIGKILL)
    _wait(child, _REAP_SECONDS)
    code = child.returncode if child.returncode is not None else -signal.SIGKILL
    return code if code >= 0 else 128 - code


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def _wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Until the whole group is gone: memory is only free then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        child.poll()
        try:
            os.killpg(child.pid, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[2:], float(sys.argv[1])))
