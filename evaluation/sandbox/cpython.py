"""CPython as it is, in a process that the kernel has locked: see ``worker`` for its walls."""

import importlib.util
import json
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from .results import CodeResult, Limits, parse_reply, result_of

MAX_REPLY = 1 << 20
_STARTING = 30.0
"""Seconds for a worker to load its modules; a second on an idle machine."""
_BOOT = (
    "import sys, types; box = types.ModuleType('box'); box.__path__ = [sys.argv[1]]; sys.modules['box'] = box; "
    "from box.worker import serve; serve(*sys.argv[2:])"
)
_OUT_OF_TIME = (signal.SIGXCPU, signal.SIGPROF, signal.SIGALRM)


class Unavailable(Exception):
    """This machine lacks what a backend needs; the message says what."""


class LockedPython:
    """Runs programs one after another, each in its own process."""

    name = "cpython"
    version = platform.python_version()

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._turn = threading.Lock()
        self.walls: tuple[str, ...] = ()
        """What keeps a program in; known once started."""

    def run(self, code: str, limits: Limits, variables: bool) -> CodeResult:
        """The result of one program."""
        bounds = {k: getattr(limits, k) for k in ("seconds", "wall_seconds", "memory_mb")}
        request = json.dumps({"code": code, "variables": variables, "limits": bounds}).encode()
        with self._turn:
            try:
                line, ended = self._ask(request, limits.wall_seconds + 1)
            except (OSError, Unavailable) as e:
                self.close()
                return CodeResult(reason="crashed", detail=f"the sandbox itself: {e}"[:500])
        return _read(line, ended, limits)

    def _ask(self, request: bytes, seconds: float) -> tuple[bytes | None, int]:
        """What came back, None where it was too much; and the signal that ended the process, 0 for none."""
        control = self.start()
        ours, theirs = socket.socketpair()
        deadline = time.monotonic() + seconds
        with ours:
            with theirs:
                socket.send_fds(control, [b"r"], [theirs.fileno()])
            ours.settimeout(seconds)
            ours.sendall(request)
            ours.shutdown(socket.SHUT_WR)
            received = bytearray()
            while (
                len(received) <= MAX_REPLY and select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]
            ):
                block = ours.recv(1 << 16)
                if not block:
                    break
                received += block
            late = time.monotonic() >= deadline
            control.sendall(b"d")
            status = control.recv(1)
        if not status:
            raise Unavailable("its server ended")
        line = None if len(received) > MAX_REPLY else bytes(received)
        return line, signal.SIGALRM if late else status[0]

    def start(self) -> socket.socket:
        """The connection to the server, which is started where none runs. Raises ``Unavailable``."""
        if self._control is not None and self._server is not None and self._server.poll() is None:
            return self._control
        self.close()
        if sys.platform != "linux":
            raise Unavailable(f"{sys.platform} has no seccomp")
        found = importlib.util.find_spec("pyseccomp")
        if found is None or found.origin is None:
            raise Unavailable("the package pyseccomp is missing (pip install pyseccomp)")
        # the folder is removed once the server is inside it: an empty root that cannot be filled
        with tempfile.TemporaryDirectory(prefix="composcope-sandbox-") as root:
            Path(root).chmod(0o755)
            self._control, theirs = socket.socketpair()
            with theirs:
                self._server = subprocess.Popen(
                    [sys.executable, *"-P -s -S -B -c".split(), _BOOT, str(Path(__file__).parent), found.origin, root],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    # the order of sets is the same each time
                    env={"PATH": os.defpath, "PYTHONHASHSEED": "0", "TZ": "UTC"},
                    cwd="/",
                    start_new_session=True,
                )
            self.walls = ("seccomp", "limits", *self._told_walls())
        return self._control

    def _told_walls(self) -> list[str]:
        assert self._control is not None and self._server is not None and self._server.stderr is not None
        self._control.settimeout(_STARTING)
        line = b""
        while not line.endswith(b"\n") and (block := self._control.recv(4096)):
            line += block
        if not line:
            last = self._server.stderr.read().decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            fix = " (the system package libseccomp2 has it)" if "libseccomp" in last[-1] else ""
            raise Unavailable(last[-1] + fix)
        return json.loads(line)

    def close(self) -> None:
        """End the server."""
        if self._control is not None:
            self._control.close()
        if self._server is not None:
            self._server.kill()
            self._server.communicate()
        self._control = self._server = None


def _read(line: bytes | None, ended: int, limits: Limits) -> CodeResult:
    if line is None:
        return CodeResult(reason="output", detail=f"more than {MAX_REPLY} bytes came back")
    reply = parse_reply(line)
    if reply is not None:
        return result_of(reply)
    if ended in _OUT_OF_TIME:
        return CodeResult(reason="time", detail=f"more than {limits.seconds:g} s of processor time")
    told = signal.Signals(ended).name if ended in set(signal.Signals) else ""
    return CodeResult(reason="crashed", detail=f"ended by {told}" if told else "ended without a result")


def self_test(python: LockedPython) -> None:
    """Raises ``Unavailable`` unless a program computes, and can open nothing."""
    if sys.platform == "linux" and not os.access("/proc/self/status", os.R_OK):
        raise Unavailable("/proc cannot be read")
    result = python.run(_TRIED, Limits(), False)
    if result.value != "closed":
        raise Unavailable(result.detail or f"a program could reach out: {result.value}")


_TRIED = """
def solution():
    import os, _socket
    tries = [
        lambda: os.open("/", 0),
        lambda: os.stat("/"),
        lambda: _socket.socket(),
        lambda: os.kill(os.getpid(), 0),
        os.fork,
    ]
    for n, one in enumerate(tries):
        try:
            one()
            return f"try {n}"
        except OSError as e:
            if e.errno != 1:
                return f"try {n}: {e}"
    return "closed"
"""
