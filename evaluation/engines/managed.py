"""A model server that belongs to us: started, waited for, watched, started again when it crashes, and always stopped.

``ManagedServer`` is the process, ``ManagedEngine`` asks it over HTTP. Knows no particular server program.
"""

import http.client
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import openai

from ...errors import ModelError
from ...terminal import to_stderr
from ..asks import Ask
from .http import HttpEngine

SUPERVISOR = Path(__file__).with_name("supervisor.py")
CRASHES_PER_ASK = 3
"""An ask that is in flight during more crashes than this is given up: it may be what kills the server."""
_SAY_SECONDS = 15.0
_UNWELL_SECONDS = 10.0
_REAP_SECONDS = 10.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A proxy that the environment names is for other hosts than our own process."""


@dataclass(frozen=True)
class Launch:
    """How a server is started."""

    name: str
    """Named in messages."""
    command: Callable[[int], Sequence[str]]
    """Port -> command line."""
    log: Path
    """Its stdout and stderr, appended."""
    env: Mapping[str, str] | None = None
    health: str = "/health"
    """Path that answers 200 once the server is ready."""
    startup_timeout: float = 900.0
    """Seconds from the start to the first 200."""
    grace: float = 15.0
    """Seconds from SIGTERM to SIGKILL."""
    restarts: int = 5
    """Crashes that are mended in the life of the server."""
    say: Callable[[str], None] = to_stderr


class ManagedServer:
    """The process behind a ``Launch``. Use as a context manager, or call ``close``.

    It dies with this process, however this process ends (see ``supervisor``). Thread-safe.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.port = _free_port()
        self.generation = 0
        """Grows by one with each start."""
        self.crashes = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._log_start = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether the process runs; says nothing about its health."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and wait until it is healthy; does nothing where it runs.

        Raises ``ModelError`` with the end of its log when it ends or stays unhealthy for ``startup_timeout`` seconds.
        """
        with self._lock:
            if not self.alive:
                self._start()

    def revive(self, generation: int) -> bool:
        """Called with the ``generation`` that a request failed on: True when a new server is there to ask again.

        False if the server works, so that the failure was the request's own. Raises ``ModelError`` after
        ``restarts`` crashes.
        """
        with self._lock:
            if self.generation != generation:
                return True
            if self._settle():
                return False
            while True:
                self.crashes += 1
                if self.crashes > self.launch.restarts:
                    raise ModelError(
                        f"{self.launch.name} crashed {self.crashes} times ({self._last_words()}); "
                        "fix it and run the same command again: all answers so far are kept"
                    )
                self.launch.say(f"{self.launch.name} crashed ({self._last_words()}); starting it again")
                self._kill()
                try:
                    self._start()
                    return True
                except ModelError:
                    if self._closed.is_set():
                        raise

    def close(self) -> None:
        """Stop the server and wait until its processes are gone. Closing twice is harmless."""
        # Not under the lock: a start that is under way has to end now, too.
        self._closed.set()
        self._kill()

    def _start(self) -> None:
        self._check_open()
        launch = self.launch
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        with launch.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR), str(launch.grace), *launch.command(self.port)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(launch.env) if launch.env is not None else None,
                start_new_session=True,
            )
        self.generation += 1
        try:
            self._wait_until_healthy()
        except BaseException:
            self._kill()
            raise

    def _wait_until_healthy(self) -> None:
        launch, start = self.launch, time.monotonic()
        said = start
        launch.say(f"{launch.name}: starting; its log is {launch.log}")
        while not self.healthy():
            now = time.monotonic()
            self._check_open()
            if not self.alive:
                raise ModelError(f"{launch.name} ended while starting ({self._last_words()}); see {launch.log}")
            if now - start > launch.startup_timeout:
                raise ModelError(
                    f"{launch.name} was not ready after {launch.startup_timeout:g} s ({self._last_words()}); "
                    f"see {launch.log}, or give it more time"
                )
            if now - said > _SAY_SECONDS:
                said = now
                launch.say(f"{launch.name}: still starting after {now - start:.0f} s")
            self._closed.wait(min(0.1 + (now - start) / 20, 1.0))
        launch.say(f"{launch.name}: ready after {time.monotonic() - start:.0f} s")

    def healthy(self) -> bool:
        """Whether the health check answers 200."""
        try:
            with _DIRECT.open(self.url + self.launch.health, timeout=5) as reply:
                return reply.status == 200
        except (OSError, http.client.HTTPException, ValueError):  # URLError is an OSError
            return False

    def _settle(self) -> bool:
        """Whether the server works; a server that is about to end, or that hangs, gets a few seconds to show it."""
        end = time.monotonic() + _UNWELL_SECONDS
        while self.alive and time.monotonic() < end:
            self._check_open()
            if self.healthy():
                return True
            time.sleep(0.2)
        return False

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ModelError(f"{self.launch.name} was stopped")

    def _kill(self) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        try:
            process.wait(self.launch.grace + _REAP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _last_words(self) -> str:
        """Exit code and the last telling line of the log since the latest start."""
        code = self._process.poll() if self._process is not None else None
        state = "still running" if code is None else f"exit code {code}"
        with self.launch.log.open("rb") as log:
            log.seek(max(self._log_start, os.fstat(log.fileno()).st_size - 20_000))
            lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if "Error" in line and "INFO" not in line and "WARN" not in line]
        # vLLM ends with an error that only points at the one before.
        roots = [line for line in errors if "See root cause above" not in line]
        last = (roots or errors or lines or ["its log is empty"])[-1]
        named = re.search(r"\w*Error: .*", last)  # without the log's time and process
        return f"{state}: {(named.group() if named else last)[:400]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class ManagedEngine(HttpEngine):
    """An HTTP engine over a server of ours: requests that a crash cut off are sent again to the next one."""

    def __init__(self, server: ManagedServer, model: str, **options: Any) -> None:
        # Two quick tries: more is the business of ``revive``.
        super().__init__(f"{server.url}/v1", model, **{"retries": 2, "timeout": 600.0, "direct": True, **options})
        self.server = server
        self.name = server.launch.name

    def _request(self, ask: Ask, again: Callable[[Exception], None] = lambda e: None) -> Any:
        for crash in range(CRASHES_PER_ASK + 1):
            generation = self.server.generation
            try:
                return super()._request(ask, again)
            except (openai.APIConnectionError, openai.InternalServerError):
                if not self.server.revive(generation) or crash == CRASHES_PER_ASK:
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections and stop the server."""
        super().close()
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
