"""One case's results of one probe: the text of an index, its tensors, and tokens as pieces of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Shaped
from torch import Tensor

from ..examples import Example

_LONGEST_CHARACTER = 4
"""Longest UTF-8 character in bytes; a token sequence that stays undecodable for longer is not a character."""
_CONTEXT = 6
"""Tokens before a piece that a decoder may need to see: leading spaces, bytes of an unfinished character."""


@dataclass(frozen=True)
class SingleCase:
    """One prompt of one case."""

    about: Mapping[str, Any]
    """Case, role, kind, group, tokens and spans, and the settings of this entry; JSON values only."""
    tensors: Mapping[str, Shaped[Tensor, "..."]] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Axis names of each tensor, outermost first."""


@dataclass(frozen=True)
class SingleCases:
    """The entries of a probe and what had to be left out, a sentence each."""

    entries: list[SingleCase]
    left_out: list[str] = field(default_factory=list)


def named(example: Example) -> dict[str, Any]:
    """Which prompt an entry is about."""
    return {"case": example.case, "role": example.role, "kind": example.kind, "group": example.group}


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """One piece per token; joined they are the decoded text.

    A character whose bytes are spread over several tokens is at the last of them; the others are empty.
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
