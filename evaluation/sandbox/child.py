"""The child process: gives up every right it does not need, then answers one program a line.

A request is ``{"code", "call", "arguments", "steps", "seconds"}``; the answer is ``{"value", "printed", "variables"}``
or ``{"reason", "detail"}``. Runs under ``python -I -S``, so it imports nothing but the standard library.
"""

from __future__ import annotations

import ast
import json
import math
import resource
import sys
import warnings
from typing import Any

from .interpreter import Machine
from .names import Module, attribute, builtins, load
from .scopes import Function, Refused

MAX_PRINTED = 20_000
HARMLESS = {"compile", "resource.setrlimit"}
"""What this file itself still does: parse, and lower the limit on processor time."""
REASONS = {SyntaxError: "syntax", MemoryError: "memory", RecursionError: "recursion"}


def _limit(what: int, soft: int, hard: int) -> None:
    """Lower one limit; systems that do not know it (RLIMIT_AS on macOS) keep the other safeguards."""
    try:
        resource.setrlimit(what, (soft, hard))
    except (ValueError, OSError):
        pass


def give_up_rights(memory_bytes: int) -> None:
    """No more memory than given, no file, socket or process from now on: by resource limits and by an audit hook."""
    _limit(resource.RLIMIT_AS, memory_bytes, memory_bytes)
    _limit(resource.RLIMIT_FSIZE, 0, 0)
    _limit(resource.RLIMIT_CORE, 0, 0)
    _limit(resource.RLIMIT_NPROC, 0, 0)
    _limit(resource.RLIMIT_NOFILE, 3, 3)

    def deny(event: str, _: tuple[Any, ...]) -> None:
        if event not in HARMLESS:
            raise Refused(f"{event} is not allowed")

    sys.addaudithook(deny)


def _allow_seconds(seconds: float) -> None:
    """The kernel ends the process after this much more processor time, should the parent not do it first."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    _limit(resource.RLIMIT_CPU, soft, resource.RLIM_INFINITY)


def plain(value: Any) -> Any:
    """The value as JSON can hold it; numbers that are no plain numbers become numbers, everything else text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 10_000 else float("inf")
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if callable(value) or isinstance(value, Module) or hasattr(value, "__next__"):
        raise Refused(f"the code came to a {type(value).__name__}, which is no value", "no-answer")
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Interpret one program and call its entry function."""
    printed: list[str] = []

    def write(text: str) -> None:
        if sum(map(len, printed)) + len(text) > MAX_PRINTED:
            raise Refused(f"more than {MAX_PRINTED} characters printed")
        printed.append(text)

    machine = Machine(builtins(write), attribute, load, request["steps"])
    try:
        machine.run(ast.parse(request["code"]).body, machine.module)
        entry = machine.module.names.get(request["call"])
        value, variables = None, machine.module.names
        if isinstance(entry, Function):
            value, variables = entry.call(tuple(request["arguments"]))
        shown = {k: plain(v) for k, v in variables.items() if isinstance(v, int | float | str)}
        return {
            "called": isinstance(entry, Function),
            "value": plain(value),
            "printed": "".join(printed),
            "variables": shown,
        }
    except Refused as e:
        return {"reason": e.reason, "detail": str(e)}
    except (SyntaxError, MemoryError, RecursionError) as e:
        return {"reason": REASONS.get(type(e), "syntax"), "detail": str(e), "spent": not isinstance(e, SyntaxError)}
    except Exception as e:
        return {"reason": "error", "detail": f"{type(e).__name__}: {e}"[:500]}
    except BaseException as e:
        # A return or break where no function or loop is: Python calls that a syntax error.
        return {"reason": "syntax", "detail": type(e).__name__}


def main(memory_bytes: int) -> None:
    """Answer requests from standard input until it ends."""
    sys.setrecursionlimit(6_000)
    # A warning about the text (an escape such as "\\$") would be shown with its source, and so open a file.
    warnings.simplefilter("ignore")
    give_up_rights(memory_bytes)
    for line in sys.stdin:
        request = json.loads(line)
        _allow_seconds(request["seconds"])
        reply = answer(request)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
        if reply.get("spent"):
            return  # after running out of memory or stack, a fresh process is surer
