"""The answer in a response: thinking removed, tags, cues, last line, and whether the response was cut off."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import InputError
from .. import options
from ..prompts import FORMATS
from ..text_files import literal
from . import cues, echo, labels, view
from .text import normalize

_OPEN, _CLOSE = re.compile(r"<answer(?:\s[^<>]{0,80})?>", re.I), re.compile(r"</answer\s{0,3}>", re.I)
_BARE = re.compile(r"\W{0,4}(?:\w[\w'-]*+[ \t]?){1,3}[*_)]{0,3}(?:[.!][*_]{0,3}\s*\n|\n\s*\n)(?=\s*\S)")
"""A first line that consists of an answer only, with text after it, so that the token limit did not cut it."""
_OPTION = re.compile(
    r"\W{0,4}[A-H][.):][*_]{0,3}\s[^\n]{1,200}\n[ \t]*\n(?=\s*\S)"
    r"(?![\s\S]*(?:^\W{0,6}[A-H][.):]|n't\b"
    r"|\b(?:no|not|incorrect|wrong|false|but|however|actually|wait|hm+|let|check|again)\b))",
    re.IGNORECASE | re.MULTILINE,
)
"""The same of an option with its letter, where neither the next option nor a doubt follows."""
_TAGS = re.compile(r"</?(?:reasoning|answer)\s{0,3}>", re.I)
_ANSWER_KEY = re.compile(r"(?:(?:the|my)[ _])?(?:final|correct|short)?[ _]?(?:answer|result|solution)", re.IGNORECASE)
"""The key of a JSON object that holds the answer: "answer", "final_answer", "finalAnswer"."""
_OBJECT = ("{", "```json\n{")
_FIELD = re.compile(r"\"[^\":,]*(?:answer|result|solution)\"\s*:", re.IGNORECASE)
_NEXT_FIELD = re.compile(r",(?=\s*\")")
_OWN_QUESTION = re.compile(r"\s*(?:Question|Q)\s*:[ \t]*(?P<question>[^\n]{3,600})(?:\n|\Z)", re.IGNORECASE)
_INLINE_QUESTION = re.compile(r"(?<=[.!?*)])\s+Question\s*:")
_LETTER = re.compile(r"\W*([A-H])\W*")
_TRIED = 5
"""Cues whose texts are looked at, the last one first, until one holds an answer of the type asked for."""
_DIFFERENT = 2
"""Most different answers of a response that was cut off."""
PAIR_Q1 = "pair-q1"
"""Extraction of the first answer from an answer to a pair (``prompts.pair_answer``)."""
CODE = "code"
"""Format of answers that are programs: they are run, and their result is graded."""
_PAIR_HEAD = re.compile(
    r"\b(?P<x>X(?:\s+is\b|\s*[=:])|Q1\s+answer\s+is\b\s*:?|answer\s+to\s+Q1\s+is\b\s*:?)\s*", re.IGNORECASE
)
"""Where an answer to a pair says what X is: "X is 9", "X = 9", "The Q1 answer is 9"."""
_SENTENCE_END = re.compile(r"\.(?:\s|$)|\n")
_OPERAND = re.compile(r"(?:\d|[\w)][ \t]*[*+/×÷·-])[ \t]*\Z")
"""Signs before X that make it an operand ("2 * X = 18", not "- **X = 18**"): what it equals is not the value of X."""


@dataclass(frozen=True)
class Extracted:
    """The possible answers of a response."""

    segments: tuple[str, ...]
    """Candidate texts, best first; empty where there is no answer."""
    following: tuple[str, ...] = ()
    """Each of these texts with all that follows it, where they were cut out of a longer one."""
    cued: bool = False
    """True where a tag or cue marks the answer, so that its first value counts."""
    reason: str | None = None
    """Why there is no answer: ``empty``, ``truncated``, ``no-answer-tag``, ``no-cue``, ``unclosed-thinking``."""
    shortened: bool = False
    """True where the middle of a very long response was not read and its end has no cue."""
    later: str = ""
    """Further questions that a completion asks itself, with their answers."""


def extract(
    text: str, format: str, finish_reason: str, letters: bool = False, question: str | None = None,
    given: options.Choices = (),
) -> Extracted:  # fmt: skip
    """Find the answer of a response in a prompt format (a name of ``prompts.FORMATS``, or ``pair-q1``).

    ``letters``: the answer is the letter of an option, of those ``given`` where they are known. Where the ``question``
    is known, a completion that puts another one instead of an answer has none. Raises ``InputError`` for a format that
    is not known.
    """
    rule = PAIR_Q1 if format == PAIR_Q1 else FORMATS[format].extract if format in FORMATS else None
    if rule is None:
        raise InputError(f"format {format!r} is not known; use one of {', '.join([*FORMATS, PAIR_Q1])}")
    cut = finish_reason == "length" and not view.ends_its_turn(text)
    shown, missing = _shown(text)
    if missing is not None:
        return Extracted((), reason="truncated" if cut and missing != "tool-call" else missing)
    if rule == "xml":
        return _xml(shown, cut)
    shown, later, missing = _of_the_question(shown, question)
    if missing is not None:
        return Extracted((), reason="truncated" if cut and not later and missing == "no-answer" else missing)
    finished = bool(later)
    shown, shortened = view.within_reach(shown)
    first = cues.first_cue(shown) if "Question" in shown else None
    if first is not None and (following := _INLINE_QUESTION.search(shown, first)):
        shown, finished, shortened = shown[: following.start()].strip(), True, False
    cut = cut and not finished
    if rule == PAIR_Q1:
        return _pair_first(shown, cut, question)
    found = _found(shown, rule, cut, shortened, letters, given)
    if found.reason == "no-cue" and format == "cot" and question and echo.states(shown, question):
        found = Extracted((shown,))  # no steps, and so no cue below them: the answer alone, in one sentence
    if not letters and not options.in_question(question or ""):
        found = replace(found, segments=tuple(_own_option(s, shown) for s in found.segments))
    return replace(found, later=later[: view.HALF])


def _shown(text: str) -> tuple[str, str | None]:
    """What a response shows its reader, without thinking, calls of tools and programs; or why it shows nothing."""
    shown = view.visible(text)
    if shown is None:
        return "", "unclosed-thinking"
    rest = view.without_tool_calls(shown)
    if (shown and not rest) or _is_call(rest):
        return "", "tool-call"
    if not rest:
        return "", "empty"
    printed = view.without_programs(rest).strip()
    return printed, None if printed else "program without output"


def _of_the_question(shown: str, question: str | None) -> tuple[str, str, str | None]:
    """The part of a response that is about the question, and what a completion goes on with after it; or why there is
    none.
    """
    if question and (own := _OWN_QUESTION.match(shown)):
        if own["question"].split() != question.split() and not echo.repeats(own["question"], question):
            return "", "", "another-question"
        shown = shown[own.end() :] if own["question"].endswith("?") else shown
    # a completion model that continued with the next question has finished the answer before it
    shown, later = view.before_next_question(shown, question)
    if question and not later and (first := _BARE.match(shown)) and echo.asks_again(shown[first.end() :], question):
        shown, later = first[0].strip(), shown[first.end() :]
    shown = echo.after_question(shown, question) if question else shown
    shown = view.without_beliefs(shown) if not _BELIEVED.search(question or "") else shown
    return shown, later, None if shown else "no-answer"


_BELIEVED = re.compile(r"\b(?:think|thought|believe|guess|assume|expect|say)", re.IGNORECASE)
"""Words of a question that asks what somebody believes."""


def _own_option(segment: str, shown: str) -> str:
    """The text of the option where a response answers with the letter of options that it wrote itself."""
    letter = _LETTER.fullmatch(segment)
    listed = dict(options.in_question(shown[: shown.rfind(segment)])) if letter else {}
    return listed.get(letter[1], segment) if letter else segment


def _found(shown: str, rule: str, cut: bool, shortened: bool, letters: bool, given: options.Choices) -> Extracted:
    """The answer in the part of a response that is read, by the rule of its format."""
    if _CLOSE.search(shown) and (tagged := _xml(shown, cut)).segments:
        return tagged
    if (field := _answer_field(shown)) is not None:
        return Extracted((field,), cued=True, shortened=shortened)
    announced = cues.segments(shown, letters)
    if announced:
        return _cued(shown, announced, cut, shortened)
    if cut and (first := _BARE.match(shown) or (_option(shown, given) if letters else None)):
        return Extracted((first[0].strip(),), cued=True)
    if cut or rule == "cue":
        return Extracted((), reason="truncated" if cut else "no-cue")
    shown = view.without_farewell(shown)
    if rule == "last-line":
        return Extracted((shown.rsplit("\n", 1)[-1].strip(),), shortened=shortened)
    return Extracted((_TAGS.sub(" ", shown).strip(),), shortened=shortened)


def _option(shown: str, given: options.Choices) -> re.Match[str] | None:
    """The first line where it is an option and nothing else: not the first step of a working ("A. Find the city.")."""
    first = _OPTION.match(shown)
    known = {normalize(f"{letter} {text}") for letter, text in given}
    return first if first and (not known or normalize(first[0]) in known) else None


def _xml(text: str, cut: bool) -> Extracted:
    opened = list(_OPEN.finditer(text))[-cues.MOST :]
    if not opened:
        return Extracted((), reason="truncated" if cut else "no-answer-tag")
    # of several answers the last one counts, unless it is empty
    for i, m in enumerate(reversed(opened)):
        rest = text[m.end() : m.end() + 2 * view.HALF]
        closed = _CLOSE.search(rest)
        inside = _TAGS.sub(" ", rest[: closed.start() if closed else None]).strip()
        if cut and i == 0 and closed is None:
            return Extracted((), reason="truncated")
        if inside:
            return Extracted((inside,), cued=True)
    return Extracted((), reason="empty")


_GOES_ON = re.compile(r"(?:[.!?]\s|\n)\s*(?=\w)")
"""The next sentence or line."""


def _cued(text: str, announced: Sequence[cues.Segment], cut: bool, shortened: bool) -> Extracted:
    """Texts after answer cues and in boxes, the last one first."""
    if cut and len({s.text for s in announced[:-1]}) == 1 < len(announced) - 1 and not announced[-1].ended:
        if announced[0].text.startswith(announced[-1].text):
            announced, cut = announced[:-1], False  # a loop of one answer, cut in the middle of it
    first_words = {m[0] for s in announced if (m := re.search(r"\w+", s.text))}
    if cut and (not announced[-1].ended or len(first_words) > _DIFFERENT):
        return Extracted((), reason="truncated")  # the last of many answers is the last by chance
    said = {_GOES_ON.split(s.text)[0].strip(" .") for s in announced}
    if len(said) > 1 and all(cues.conditional(text, s.at) for s in announced):
        if not _GOES_ON.search(text, announced[-1].at):  # "If it is Monday, the answer is A. If not, the answer is B."
            return Extracted((), reason="several cases")
        return Extracted((text,), shortened=shortened)
    # a text that ends in a colon only announces something, like a cue with nothing after it
    filled = [s for s in reversed(announced) if any(c.isalnum() for c in s.text) and not s.text.endswith(":")][:_TRIED]
    if not filled:
        return Extracted((), reason="empty")
    # cues in the end of a long response are its last ones; those in its beginning may have been taken back since
    late = shortened and filled[0].at <= view.HALF
    following = tuple(text[s.at : s.at + cues.REACH].strip(" *:") for s in filled)
    return Extracted(tuple(s.text for s in filled), following, cued=True, shortened=late)


def _pair_first(text: str, cut: bool, question: str | None) -> Extracted:
    """What the response says of X, the last statement first. If a statement has no value ("X is the number of eggs
    left"), the one before it counts; if there is none, what stands below the label of Q1.
    """
    heads = list(_PAIR_HEAD.finditer(text))[-cues.MOST :]
    stops = [*(m.start() for m in heads), len(text)][1:]
    segments = []
    for m, stop in zip(heads, stops, strict=True):
        end = _SENTENCE_END.search(text, m.end(), stop)
        is_operand = m["x"][0] in "Xx" and _OPERAND.search(text, max(0, m.start() - 8), m.start()) is not None
        is_unfinished = cut and end is None and stop == len(text)
        content = text[m.end() : stop if end is None else end.start()].strip()
        if content and not is_operand and not is_unfinished:
            segments.append(content)
    if not segments and (below := labels.first_part(text, question)):
        return Extracted(tuple(below))
    if not segments:
        return Extracted((), reason="truncated" if cut else "no-cue")
    return Extracted(tuple(reversed(segments)), cued=True)


def last_object(text: str) -> dict[str, object] | None:
    """The last ``{...}`` of a text that reads as a JSON object, outermost braces first."""
    end = text.rfind("}")
    starts = [m.start() for m in re.finditer(r"\{", text[: end + 1])][-cues.MOST :]
    for start in starts:
        try:
            loaded = json.loads(text[start : end + 1])
        except (ValueError, RecursionError):
            continue
        if isinstance(loaded, dict):
            return loaded
    return None


def _is_call(text: str | None) -> bool:
    """Whether a response is nothing but the JSON object of a tool call."""
    if not text or not text.startswith("{") or '"name"' not in text:
        return False
    return bool({*(literal(text, dict) or {})} & {"arguments", "parameters"})


def in_lines(text: str) -> str | None:
    """The fields of a JSON object, or the cells of a table with one row, each in a line with its name."""
    if text.startswith(_OBJECT) and text.rstrip("` \n").endswith("}"):
        fields = last_object(text) or {}
        plain = fields and all(isinstance(v, (str, int, float)) and not isinstance(v, bool) for v in fields.values())
        return "\n".join(f"{key.replace('_', ' ')}: {value}" for key, value in fields.items()) if plain else None
    lines = text.strip().split("\n")
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines[-3:]]
    table = len(rows) == 3 and not any("|" in line for line in lines[:-3])
    table = table and 1 < len(rows[0]) == len(rows[2]) and {*"".join(rows[1])} in ({"-"}, {"-", ":"})
    return "\n".join(f"{name}: {cell}" for name, cell in zip(rows[0], rows[2], strict=True)) if table else None


def _answer_field(text: str) -> str | None:
    """The field that holds the answer where a response is, or ends in, a JSON object, or is one that was cut off."""
    loaded: dict[str, object] = {}
    if text.rstrip("` \n").endswith("}"):
        loaded = last_object(text) or {}
    elif text.startswith(_OBJECT) and "}" not in text and (fields := [*_FIELD.finditer(text)]):
        commas = [m.start() for m in _NEXT_FIELD.finditer(text, fields[-1].end())][: cues.MOST]
        whole = (literal(text[text.find("{") : at] + "}", dict) for at in commas)
        loaded = next(filter(None, whole), {})
    value = next((v for k, v in reversed(loaded.items()) if _ANSWER_KEY.fullmatch(k) and v not in (None, "")), None)
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
