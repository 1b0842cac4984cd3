"""What a program may use, and what it came to."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError

REASONS = ("no-code", "no-answer", "syntax", "refused", "error", "time", "memory", "recursion", "output", "crashed")
NOT_RUN = ("refused", "time", "memory", "recursion", "output", "crashed")
"""The reasons that lie with the sandbox and its limits, not with the program alone."""


@dataclass(frozen=True)
class Limits:
    """What one program may use."""

    seconds: float = 5.0
    """Processor time, so that a busy machine changes no result."""
    memory_mb: int = 512

    def __post_init__(self) -> None:
        for name, least in (("seconds", 0.01), ("memory_mb", 128)):
            if not getattr(self, name) >= least:
                raise InputError(f"sandbox limit {name} is {getattr(self, name)!r}; give at least {least}")

    @property
    def wall_seconds(self) -> float:
        """Time by the clock, should all else fail: nothing can wait, so a busy machine is all that takes long."""
        return 20 * self.seconds + 60


@dataclass(frozen=True)
class CodeResult:
    """The result of a program: a value, or the reason why there is no value."""

    value: Any = None
    reason: str | None = None
    """None if it ran, else one of ``REASONS``."""
    detail: str = ""
    """The reason in words: what was refused, which error."""
    printed: str = ""
    variables: dict[str, Any] = field(default_factory=dict)
    """Numbers and texts that the entry function had assigned in the end, where they were asked for."""

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


def parse_reply(line: bytes) -> dict[str, Any] | None:
    """A worker's reply, or None where it has no such shape: the program may have written it itself."""
    try:
        reply = json.loads(line.decode("utf-8", "replace"))
        # half a surrogate pair is text to JSON, and no text to a file
        reply = json.loads(json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace"))
        _text(reply["value"] if isinstance(reply, dict) and "value" in reply else None)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) and _well_formed(reply) else None


def _well_formed(reply: dict[str, Any]) -> bool:
    if "reason" in reply:
        return reply["reason"] in REASONS and isinstance(reply.get("detail"), str)
    variables = reply.get("variables")
    return (
        {"value", "called", "printed", "variables"} <= reply.keys()
        and isinstance(reply["called"], bool)
        and isinstance(reply["printed"], str)
        and not isinstance(reply["value"], dict)
        and isinstance(variables, dict)
        and all(isinstance(v, bool | int | float | str) for v in variables.values())
    )


def result_of(reply: dict[str, Any]) -> CodeResult:
    """The result that a reply tells; where no entry function returns anything the last line printed is the answer."""
    if "reason" in reply:
        return CodeResult(reason=reply["reason"], detail=reply["detail"][:500])
    value, printed = reply["value"], reply["printed"]
    if not reply["called"] or value is None:
        value = (printed.strip().splitlines() or [None])[-1]
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        detail = f"the code came to {value}" if reply["called"] else "no function solution() and nothing printed"
        return CodeResult(reason="no-answer", detail=detail, printed=printed)
    return CodeResult(value=value, printed=printed, variables=reply["variables"])
