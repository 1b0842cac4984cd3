"""Where the answer stands in a response: thinking stripped, tags, cues, last line, and whether it was cut off."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ...errors import InputError
from ..prompts import ANSWER_CUE, FORMATS

_CUE = re.compile(
    rf"{re.escape(ANSWER_CUE[:-1])}\s*:?"
    r"|(?:\b(?:the|my|our)\s+)?\bfinal\s+answer\b\**\s*(?:is|was|=|:)+\**\s*:?"
    r"|\b(?:the|my|our)\s+(?:correct\s+)?answer\s+(?:is|would\s+be|should\s+be|must\s+be|to\s+\w+\s+is|[=:])\s*:?"
    r"|^[^\w\n]{0,10}answer\s*\**:\**|####",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT_QUESTION = re.compile(r"\n[ \t]*(?:Question|Q)\s*:", re.IGNORECASE)
_OPEN, _CLOSE = re.compile(r"<answer(?:\s[^<>]*)?>", re.I), re.compile(r"</answer\s*>", re.I)
_DISPLAY = re.compile(r"^[\s*:]*(?:\$\$|\\\[|```\w*)[ \t]*\n")
"""A formula or a block of code that begins on the line after a cue."""
_BLOCK = re.compile(r"^[\s*:]*\n\s*((?:(?:[-*•]|\d{1,2}[.)])[ \t]+[^\n]*(?:\n[ \t]*|$)){2,})")
"""A list of at least two lines below a cue."""
_TAGS = re.compile(r"</?(?:reasoning|answer)\s*>", re.I)
_MOST = 50
"""Boxes or braces that are looked at, counted from the end."""
PAIR_Q1 = "pair-q1"
"""Extraction of the first answer from an answer to a pair (``prompts.pair_answer``)."""
CODE = "code"
"""Format of answers that are programs: they are run, and what they return is graded."""
_PAIR_HEAD = re.compile(r"\b(?P<x>X(?:\s+is\b|\s*[=:])|Q1\s+answer\s+is\b\s*:?)\s*", re.IGNORECASE)
"""Where an answer to a pair says what X is: "X is 9", "X = 9", "The Q1 answer is 9"."""
_SENTENCE_END = re.compile(r"\.(?:\s|$)|\n")
_OPERAND = re.compile(r"[\d*+/×÷·-][ \t]*\Z")
"""What makes the X after it an operand ("2 * X = 18"): the number behind its sign is no value of X."""


@dataclass(frozen=True)
class Extracted:
    """What a response offers as its answer."""

    segments: tuple[str, ...]
    """Candidate texts, best first; empty where there is no answer."""
    cued: bool = False
    """True where a tag or cue marks the answer, so that its first value counts."""
    reason: str | None = None
    """Why there is no answer: ``empty``, ``truncated``, ``no-answer-tag``, ``no-cue``, ``unclosed-thinking``."""


def visible(text: str) -> str | None:
    """The response after its thinking block; None while the block is still open.

    A closing tag without an opening one counts: some chat templates open the block in the prompt.
    """
    text = re.sub(r"\s{4,}", lambda m: "\n\n" if "\n" in m[0] else " ", text)
    closed = text.rfind("</think>")
    if closed >= 0:
        return text[closed + len("</think>") :].strip()
    return None if re.match(r"\s*<think>", text) else text.strip()


def extract(text: str, format: str, finish_reason: str) -> Extracted:
    """Find the answer of a response in a prompt format (a name of ``prompts.FORMATS``, or ``pair-q1``).

    Raises ``InputError`` for a format that is not known.
    """
    rule = PAIR_Q1 if format == PAIR_Q1 else FORMATS[format].extract if format in FORMATS else None
    if rule is None:
        raise InputError(f"format {format!r} is not known; use one of {', '.join([*FORMATS, PAIR_Q1])}")
    shown = visible(text)
    cut = finish_reason == "length"
    if shown is None:
        return Extracted((), reason="truncated" if cut else "unclosed-thinking")
    if not shown:
        return Extracted((), reason="truncated" if cut else "empty")
    if rule == "xml":
        return _xml(shown, cut)
    following = _NEXT_QUESTION.search(shown) or _next_question_inline(shown)
    if following and shown[: following.start()].strip():
        # a completion model went on to the next question: what stands before it is finished
        shown, cut = shown[: following.start()].strip(), False
    if rule == PAIR_Q1:
        return _pair_first(shown, cut)
    if rule == "cue":
        return _cue(shown, cut) or Extracted((), reason="truncated" if cut else "no-cue")
    found = _cue(shown, cut)
    if found is not None:
        return found
    if cut:
        return Extracted((), reason="truncated")
    if rule == "last-line":
        return Extracted((shown.rsplit("\n", 1)[-1].strip(),))
    return Extracted((_answer_field(shown) or _TAGS.sub(" ", shown).strip(),))


def _next_question_inline(text: str) -> re.Match[str] | None:
    """Where a completion goes on to a next question on the same line: only after it has given its answer."""
    first = _CUE.search(text)
    return re.compile(r"(?<=[.!?*)])\s+Question\s*:").search(text, first.end()) if first else None


def _xml(text: str, cut: bool) -> Extracted:
    opened = list(_OPEN.finditer(text))
    if not opened:
        return Extracted((), reason="truncated" if cut else "no-answer-tag")
    # of several answers the last one counts; one that was not begun in earnest (empty) does not
    for i, m in enumerate(reversed(opened)):
        closed = _CLOSE.search(text, m.end())
        inside = _TAGS.sub(" ", text[m.end() : closed.start() if closed else len(text)]).strip()
        if cut and i == 0 and closed is None:
            return Extracted((), reason="truncated")
        if inside:
            return Extracted((inside,), cued=True)
    return Extracted((), reason="empty")


def _cue(text: str, cut: bool) -> Extracted | None:
    """Texts after answer cues and in boxes, the last one first; None where there is neither."""
    found = [(at, content, not closed) for at, content, closed in _boxes(text)]
    for m in _CUE.finditer(text):
        rest = text[m.end() :]
        if block := _BLOCK.match(rest):
            found.append((m.end(), block[1].strip(), rest.endswith(block[1])))
            continue
        rest = _DISPLAY.sub("", rest).lstrip(" \t*:\n")
        line, newline, _ = rest.partition("\n")
        if ":" == line.strip()[-1:] and newline:  # "The answer is as follows:" and the list below
            line, newline = rest, ""
        found.append((m.end(), line.strip(), not newline))
    if not found:
        return None
    found.sort(key=lambda f: f[0])
    if cut and found[-1][2]:
        return Extracted((), reason="truncated")
    segments = [content for _, content, _ in reversed(found) if content]
    return Extracted(tuple(segments), cued=True) if segments else Extracted((), reason="empty")


def _boxes(text: str) -> list[tuple[int, str, bool]]:
    """(position, content, closed) of every ``\\boxed{...}``, with nested braces."""
    boxes = []
    for m in list(re.finditer(r"\\boxed\s*\{", text))[-_MOST:]:
        depth, i, last = 1, m.end(), min(len(text), m.end() + 2000)
        while i < last and depth:
            depth += {"{": 1, "}": -1}.get(text[i], 0)
            i += 1
        boxes.append((m.start(), text[m.end() : i - 1 if depth == 0 else i].strip(), depth == 0))
    return boxes


def _pair_first(text: str, cut: bool) -> Extracted:
    """What the response says of X, the last statement first: one without a value ("X is the number of eggs left")
    leaves the word to the one before it.
    """
    heads = list(_PAIR_HEAD.finditer(text))[-_MOST:]
    stops = [*(m.start() for m in heads), len(text)][1:]
    segments = []
    for m, stop in zip(heads, stops, strict=True):
        end = _SENTENCE_END.search(text, m.end(), stop)
        is_operand = m["x"][0] in "Xx" and _OPERAND.search(text, max(0, m.start() - 8), m.start()) is not None
        is_unfinished = cut and end is None and stop == len(text)
        content = text[m.end() : stop if end is None else end.start()].strip()
        if content and not is_operand and not is_unfinished:
            segments.append(content)
    if not segments:
        return Extracted((), reason="truncated" if cut else "no-cue")
    return Extracted(tuple(reversed(segments)), cued=True)


def last_object(text: str) -> dict[str, object] | None:
    """The last ``{...}`` of a text that reads as a JSON object, outermost braces first."""
    end = text.rfind("}")
    starts = [m.start() for m in re.finditer(r"\{", text[: end + 1])][-_MOST:]
    for start in starts:
        try:
            loaded = json.loads(text[start : end + 1])
        except (ValueError, RecursionError):
            continue
        if isinstance(loaded, dict):
            return loaded
    return None


def _answer_field(text: str) -> str | None:
    """The ``answer`` field where a response is, or ends in, a JSON object (ToT arithmetic)."""
    if not text.rstrip("` \n").endswith("}"):
        return None
    loaded = last_object(text)
    value = None if loaded is None else loaded.get("answer")
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value)
