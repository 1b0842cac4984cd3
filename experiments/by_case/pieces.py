"""Token ids as pieces of text that add up to what was fed, for pictures with one cell per token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_LONGEST_CHARACTER = 4
"""Bytes of UTF-8; a token sequence that is undecodable for longer than that is no character."""
_CONTEXT = 6
"""Tokens before a piece that a decoder may need to see: leading spaces, bytes of an unfinished character."""


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """One piece per token; joined they are the decoded text.

    A character whose bytes are spread over several tokens stands at the last of them, the others are empty.
    """
    out: list[str] = []
    done = 0  # tokens whose text is out
    for i in range(len(ids)):
        start = max(0, done - _CONTEXT)
        before, through = decode(tokenizer, ids[start:done]), decode(tokenizer, ids[start : i + 1])
        unfinished = through.endswith("\ufffd") and i + 1 < len(ids) and i + 1 - done < _LONGEST_CHARACTER
        if unfinished:
            out.append("")
            continue
        out.append(through[len(before) :] if through.startswith(before) else decode(tokenizer, ids[done : i + 1]))
        done = i + 1
    return out


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """Text with special tokens and spaces as they are."""
    return tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
