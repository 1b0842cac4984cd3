"""When a request is sent again: faults that pass, after a pause, until the retries or the time of the ask are spent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from . import replies

_BACKOFF_SECONDS = 0.5
_BACKOFF_MAX_SECONDS = 8.0
_RETRY_AFTER_MAX_SECONDS = 60.0
_GARBLED = (replies.MalformedReplyError, openai.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError)
"""Replies that are no completions, broken JSON and text that is no UTF-8 among them."""
_REFUSALS = frozenset({400, 413, 422, 451})
"""Answers to what one request holds (too long, not allowed, not understood): the server is well."""


def send(once: Callable[[float], Any], retries: int, timeout: float, deadline: float) -> Any:
    """What ``once(seconds)`` returns, at the last try whatever it raises.

    Raises ``MalformedReplyError`` where no reply was a completion.
    """
    end = time.monotonic() + deadline
    for attempt in range(retries + 1):
        try:
            return once(max(min(timeout, end - time.monotonic()), 0.001))
        except (*_GARBLED, openai.APIConnectionError, openai.APIStatusError) as e:
            wait = _pause(e, attempt)
            if attempt < retries and _passes(e) and time.monotonic() + wait < end:
                time.sleep(wait)
                continue
            if isinstance(e, _GARBLED):
                tries = f"{attempt + 1} tries" if attempt else "1 try"
                raise replies.MalformedReplyError(f"reply is not a completion after {tries} ({e})") from e
            raise
    raise AssertionError("unreachable")


def is_refusal(error: BaseException) -> bool:
    """Whether the server refused this one request for good."""
    return isinstance(error, openai.APIStatusError) and error.status_code in _REFUSALS


def _passes(error: Exception) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code in (408, 409, 429) or error.status_code >= 500
    return True


def _pause(error: Exception, attempt: int) -> float:
    """Seconds to wait: what the server asks for where that is not long, else more with each attempt."""
    backoff = min(_BACKOFF_SECONDS * 2**attempt, _BACKOFF_MAX_SECONDS)
    stated = getattr(getattr(error, "response", None), "headers", {}).get("retry-after")
    if stated is None:
        return backoff
    try:
        seconds = float(stated)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(stated).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return backoff
    return seconds if 0 < seconds <= _RETRY_AFTER_MAX_SECONDS else backoff
