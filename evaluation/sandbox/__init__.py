"""Runs code-form answers of a model without ever handing them to Python.

The text is parsed and walked by a small interpreter with an allow-list (``interpreter``, ``names``), in a child
process without files, network or further processes and with bounded memory, processor time and steps (``child``).
Whatever is outside ends as a result with a reason, which graders count as *invalid*, never as wrong.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import InputError
from .finding import extract_code

REASONS = ("no-code", "no-answer", "syntax", "refused", "error", "steps", "time", "memory", "recursion", "crashed")


@dataclass(frozen=True)
class Limits:
    """What one program may use."""

    seconds: float = 5.0
    memory_mb: int = 256
    steps: int = 1_000_000
    """Nodes of the syntax tree that may be visited, about one second's worth."""

    def __post_init__(self) -> None:
        for name, least in (("seconds", 0.01), ("memory_mb", 64), ("steps", 1)):
            if getattr(self, name) < least:
                raise InputError(f"sandbox limit {name} is {getattr(self, name)!r}; give at least {least}")


@dataclass(frozen=True)
class CodeResult:
    """What a program came to: a value, or the reason why there is none."""

    value: Any = None
    reason: str | None = None
    """None if it ran, else one of ``REASONS``."""
    detail: str = ""
    """The reason in words: what was refused, which error."""
    printed: str = ""
    variables: dict[str, Any] = field(default_factory=dict)
    """Numbers and texts the entry function (or the module) had assigned in the end."""

    @property
    def ok(self) -> bool:
        return self.reason is None

    @property
    def text(self) -> str | None:
        """The value as an answer is written: 18.0 is ``18``, a list is comma-separated; None where it did not run."""
        return _text(self.value) if self.ok else None


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, list):
        return ", ".join(str(_text(v)) for v in value)
    return None if value is None else str(value)


_BOOT = (
    "import sys, types; box = types.ModuleType('box'); box.__path__ = [sys.argv[1]]; sys.modules['box'] = box; "
    "from box.child import main; main(int(sys.argv[2]))"
)


class Sandbox:
    """A child process that interprets programs one after another; it is replaced when a program uses it up."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def run(self, code: str, call: str = "solution", arguments: tuple[Any, ...] = ()) -> CodeResult:
        """Interpret ``code`` and call its function ``call``.

        Without that function the last line printed is the answer. The result's ``reason`` is ``no-answer`` where
        nothing came back, ``time`` or ``memory`` where a limit was hit, ``refused`` for anything not allowed.
        """
        request = {"code": code, "call": call, "arguments": list(arguments)}
        request |= {"steps": self.limits.steps, "seconds": self.limits.seconds}
        try:
            line = json.dumps(request).encode() + b"\n"
        except (TypeError, ValueError) as e:
            raise InputError(f"sandbox arguments {arguments!r} are not plain JSON values: {e}") from e
        reply = self._ask(line)
        if isinstance(reply, str):
            self.close()
            return CodeResult(reason=reply, detail=f"after {self.limits.seconds} s")
        if reply.get("spent"):
            self.close()
        return _result(reply, call)

    def _ask(self, line: bytes) -> dict[str, Any] | str:
        """The child's reply, or the reason why there is none."""
        process = self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except OSError:
            return "crashed"
        ready, _, _ = select.select([process.stdout], [], [], self.limits.seconds)
        if not ready:
            return "time"
        received = process.stdout.readline()
        try:
            return json.loads(received)
        except (ValueError, RecursionError):  # its output may hold anything that the code it ran printed
            return "crashed"

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [sys.executable, "-I", "-S", "-c", _BOOT, str(Path(__file__).parent)]
            self._process = subprocess.Popen(
                [*command, str(self.limits.memory_mb << 20)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath},
                cwd="/",
                close_fds=True,
                start_new_session=True,
            )
        return self._process


def _result(reply: dict[str, Any], call: str) -> CodeResult:
    if reply.get("reason"):
        return CodeResult(reason=reply["reason"], detail=reply["detail"])
    value, printed = reply["value"], reply["printed"]
    if not reply["called"]:
        value = (printed.strip().splitlines() or [None])[-1]
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        detail = f"the code came to {value}" if reply["called"] else f"no function {call}() and nothing printed"
        return CodeResult(reason="no-answer", detail=detail, printed=printed)
    return CodeResult(value=value, printed=printed, variables=reply["variables"])


def run_code(
    code: str, call: str = "solution", arguments: tuple[Any, ...] = (), limits: Limits | None = None
) -> CodeResult:
    """Interpret one program in a fresh child process (about 50 ms); use ``Sandbox`` for many."""
    with Sandbox(limits) as box:
        return box.run(code, call, arguments)


def run_answer(text: str, call: str = "solution", limits: Limits | None = None) -> CodeResult:
    """Find the program in a model's answer and run it; ``no-code`` where there is none."""
    code = extract_code(text)
    return CodeResult(reason="no-code") if code is None else run_code(code, call, limits=limits)
