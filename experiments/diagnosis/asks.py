"""The questions of a diagnosis: each case and its variants as wholes and parts, then the whole with forced text.

Forced text is the cheapest and most informative test. The response is made to begin with the relation ("The currency
of the country whose capital is Oslo is") or with the first operands of its working; the bridge is stated in the prompt.
A neutral beginning is the control: if it mends a whole, the relation was not lost. Two more ways to ask give the model
more room without a hint: the question put twice, and filler before the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from ...evaluation import prompts
from ...evaluation.asks import Ask, Grade, Response
from ...evaluation.case import Case, Part
from ...evaluation.graded import Graded
from ...evaluation.grading.text import plain
from ...evaluation.pipeline import Evaluation
from ...evaluation.protocols.asking import ask_part, ask_whole, pending
from ...evaluation.protocols.base import Reduction
from ...evaluation.protocols.presenting import FormattedProtocol
from ..run.reader import RunData
from .variants import Variant, source_of

NEUTRAL, RELATION, BRIDGE, GIVEN = "whole:neutral", "whole:relation", "whole:bridge", "whole:given:{}"
REPEATED, FILLER = "whole:repeated", "whole:filler"
BEHIND, OTHER = "part:{}:extra-context", "part:other"
_NEUTRAL_TEXT = "The answer is"
_FILLER_TEXT = " ".join("." * 16)
_NOUN, _CLAUSE = r"(\w+(?: \w+){0,2}?)", r"(?!.* (?:where|that|who|whose|which) )"
_QUESTIONS = (
    (r"what do you call (.+)", r"\1 is called"),
    (r"what do (.+)", r"what \1 is"),
    (rf"(?:what|which) {_NOUN} do (.+)", r"the \1 that \2 is"),
    (rf"(?:what|which) {_NOUN} (?:does|did) (.+?) (?:have|use|belong to|come from|lie in)", r"the \1 of \2 is"),
    (r"what (is|are) (.+) called", r"\2 \1 called"),
    (r"(?:what|which|who) (is|are|was|were) (.+)", r"\2 \1"),
    (rf"(?:what|which) {_NOUN} (?:is|are|was|were) (.+) in", r"the \1 of \2 is"),
    (rf"(?:what|which) {_NOUN} (is|are|was|were) (.+)", r"the \1 that \2 \3 is"),
    (rf"(on|in|at|to|from) which {_NOUN} can you (.+)", r"the \2 \1 which you can \3 is"),
    (rf"(on|in|at|to|from) which {_NOUN} (is|are|was|were) {_CLAUSE}(.+) (\w+ed)", r"the \2 \1 which \4 \3 \5 is"),
    (rf"(?:on|in|at|to|from) which {_NOUN} (?:is|are|was|were) (.+)", r"the \1 of \2 is"),
    (rf"how many {_NOUN} (?:does|do) (.+?) have", r"the number of \1 of \2 is"),
    (rf"how many {_NOUN} are there in (.+)", r"the number of \1 in \2 is"),
    (r"(?:what|which) (\w+) (?!does |is |was )(\w+s) (.+)", r"the \1 that \2 \3 is"),
)  # fmt: skip
"""Patterns that turn a question into the beginning of its answer; the first match is used."""
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!\b[DMS][rst])(?<!\bMrs)[.!][\"')]*\s+(?![a-z])|\n\s*")
"""Where a sentence ends: not after an initial or a title."""


def relation_of(case: Case) -> str | None:
    """The beginning of an answer that states the relation asked for: ``meta.relation``, or made from the question."""
    given = case.meta.get("relation")
    if isinstance(given, str):
        return given
    question = case.question.strip().rstrip("?")
    question = question[:1].lower() + question[1:]
    for pattern, written in _QUESTIONS:
        if (found := re.fullmatch(pattern, question, re.IGNORECASE)) is not None:
            text = found.expand(written)
            return text[:1].upper() + text[1:]
    return None


def behind_context(case: Case, part: int) -> str | None:
    """A part's question behind the whole's context; None if the whole has none, or if the part's question holds it.

    The case file may give the wording. Otherwise the context is the text before the whole's question. A whole with
    several questions has no such context, because the context would contain questions, too.
    """
    asked = case.parts[part]
    return asked.extra_context or _behind(case, asked.question)


def _behind(case: Case, asked: str) -> str | None:
    before, _, more = case.question.partition("?")
    ends = [m.end() for m in _SENTENCE_END.finditer(before)]
    if "?" in more or "?" not in case.question or not ends:
        return None
    context = before[: ends[-1]]
    return None if plain(context) in plain(asked) else context + asked


def others(variants: Sequence[Variant]) -> dict[str, Part]:
    """For each variant, the last part of the next similar one that is about something else, with another answer."""
    cases, found = [v.case for v in variants if v.case.parts], dict[str, Part]()
    for i, case in enumerate(cases):
        mine = case.parts[-1]
        like = (c.parts[-1] for c in (*cases[i:], *cases[:i]) if c.family == case.family)
        other = next((p for p in like if p.answer != mine.answer and p.question != mine.question), None)
        if other is not None:
            found[case.id] = other
    return found


NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!,?\d)|\d+)(?:\.\d+)?"
"""A number without its sign; commas may part its thousands."""


def without_commas(text: str) -> str:
    """A text without the commas that part thousands: 1,200 and 1200 are the same number."""
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)


class Working(NamedTuple):
    """The numbers of a worked answer ("7 times 9 is 63"), and the words before each number."""

    values: tuple[str, ...]
    words: tuple[str, ...]
    ends: tuple[int, ...]
    """Where each number ends in the text."""


@lru_cache(maxsize=4096)  # every hypothesis reads the same few texts
def working(text: str | None) -> Working:
    """The numbers that a text works with, in order; empty for a text without a working."""
    spans = [m.span() for m in re.finditer(f"-?{NUMBER}", text or "")]
    starts = [0, *(end for _, end in spans)]
    words = (str(text)[start:here].strip() for start, (here, _) in zip(starts, spans, strict=False))
    values = (without_commas(str(text)[a:b]) for a, b in spans)
    return Working(tuple(values), tuple(words), tuple(end for _, end in spans))


def operands(case: Case) -> int:
    """How many numbers the worked answer has before its result; 0 if it shows no working."""
    found = working(case.worked)
    return len(found.values) - 1 if len(found.values) > 1 else 0


@dataclass(frozen=True)
class Questions:
    """The questions about cases and variants, as a protocol for ``pipeline.evaluate``."""

    name: str
    format: str
    max_tokens: int | None = None
    others: Mapping[str, Part] = field(default_factory=dict)
    """For the case of each variant, a part about something else, asked behind its context (``others``)."""

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """First whole and parts (for the case itself, in all wordings), then forced text if the case fails."""
        found = [ask_whole(case, "whole", case.question, self.format, self.max_tokens)]
        for i, part in enumerate(case.parts):
            texts = {f"part:{i}": part.question}
            if (behind := behind_context(case, i)) is not None:
                texts[BEHIND.format(i)] = behind
            if source_of(case) == case.id:
                texts |= {f"part:{i}:paraphrase:{j}": p for j, p in enumerate(part.paraphrases)}
            found += [ask_part(case, i, role, text, self.format, self.max_tokens) for role, text in texts.items()]
        if graded and fails({role: g.outcome for role, g in graded.items()}, len(case.parts)):
            found += self._forced(case)
        return pending(found, graded)

    def _forced(self, case: Case) -> list[Ask]:
        def whole(role: str, text: str = case.question, begun: str = "") -> Ask:
            return replace(ask_whole(case, role, text, self.format, self.max_tokens), begun=begun)

        known = [(p.question, p.answer) for p in case.parts[:-1]]
        found = self._other(case)
        found += [whole(NEUTRAL, begun=_NEUTRAL_TEXT)]
        found += [whole(BRIDGE, prompts.scaffold(case.question, known))] if known else []
        if not case.worked:  # a worked answer already gives room, and a model of worked answers does not know filler
            relation = relation_of(case)
            found += [whole(RELATION, begun=relation)] if relation is not None else []
            found += [
                whole(REPEATED, f"{case.question} {case.question}"),
                whole(FILLER, f"{case.question} {_FILLER_TEXT}"),
            ]
        ends = working(case.worked).ends
        found += [whole(GIVEN.format(k), begun=case.worked[: ends[k - 1]]) for k in range(1, operands(case) + 1)]  # type: ignore[index]
        return found

    def _other(self, case: Case) -> list[Ask]:
        other = self.others.get(case.id)
        if other is None:
            return []
        mine = case.parts[-1]
        context = (mine.extra_context or "").removesuffix(mine.question)  # a wording without its question has none
        given = context if context not in ("", mine.extra_context) else None
        text = _behind(case, other.question) if given is None else given + other.question
        if text is None:
            return []
        return [ask_part(replace(case, parts=(other,)), 0, OTHER, text, self.format, self.max_tokens)]

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """Return an empty reduction: these questions have no metrics."""
        return Reduction((), ())


def fails(outcomes: Mapping[str, str], n_parts: int) -> bool:
    """Whether every part is right and the whole is not; an answer that could not be judged counts as not right."""
    return parts_right(outcomes, n_parts) and outcomes.get("whole", "correct") != "correct"


def parts_right(outcomes: Mapping[str, str], n_parts: int) -> bool:
    """Whether there are parts, and every one of them is right."""
    return n_parts > 0 and all(outcomes.get(f"part:{i}") == "correct" for i in range(n_parts))


def questions(protocol: FormattedProtocol, others: Mapping[str, Part] | None = None) -> FormattedProtocol:
    """The diagnosis questions, asked in the same way as the run asked its own, but for the likeliest answer.

    A run's answers may have been drawn (``--temperature``). A wrong draw has no cause to look for, and the
    interventions can only open failures of the likeliest tokens.
    """
    inner: Any = protocol.protocol
    format = str(getattr(inner, "format", None) or "plain")
    made = Questions(inner.name, format, getattr(inner, "max_tokens", None), others or {})
    preamble = "yes" if protocol.how.preamble == "both" else protocol.how.preamble
    how = replace(protocol.how, preamble=preamble, temperature=0.0)
    return FormattedProtocol(made, how)


@dataclass(frozen=True)
class Heard:
    """The answers to one variant."""

    variant: Variant
    grades: Mapping[str, Graded]
    asks: Mapping[str, Ask]
    responses: Mapping[str, Response]

    @property
    def case(self) -> Case:
        return self.variant.case

    @property
    def parts_right(self) -> bool:
        """Whether every part is right."""
        return parts_right({role: row.outcome for role, row in self.grades.items()}, len(self.case.parts))

    @property
    def fails(self) -> bool:
        """Whether every part is right and the whole is not."""
        return fails({role: row.outcome for role, row in self.grades.items()}, len(self.case.parts))

    def right(self, role: str) -> bool | None:
        """Whether a role was answered correctly; None if it was not asked or could not be judged."""
        row = self.grades.get(role)
        return None if row is None or row.outcome == "invalid" else row.outcome == "correct"

    def text(self, role: str = "whole") -> str:
        """The response, including the text that it was made to begin with."""
        if role not in self.responses:
            return ""
        return self.asks[role].begun + self.responses[role].text

    @property
    def preamble(self) -> bool:
        """Whether other words come before the working ("A1: 5. X is 5. A2: 5 times 6 is 30")."""
        found, gold = working(self.text()), working(self.case.worked)
        return bool(operands(self.case)) and bool(found.values) and found.words[0] != gold.words[0]

    def next_value(self, stated: int, later: int = 0) -> tuple[str | None, str | None]:
        """The number written after ``stated`` operands (or so many ``later``), and the words before it.

        The operands are forced, except after a preamble that has them right by itself, because forced text would
        replace it. A result is not an operand: "7 minus the tag is 7" has no second number.
        """
        gold, found, start = working(self.case.worked), working(self.text()), 0
        if self.preamble:
            first = range(len(found.values) - 1)
            start = next((i for i in first if found.words[i + 1] == gold.words[1]), 0)
        said = start or GIVEN.format(stated) not in self.responses  # a case that was not asked with forced operands
        if stated and not (said and found.values[start : start + stated] == gold.values[:stated]):
            found, start = working(self.text(GIVEN.format(stated))), 0
        at, place = start + stated + later, stated + later
        if len(found.values) <= at:
            return None, None
        operand, words = 0 < place < operands(self.case), found.words[at]
        early = operand and words != gold.words[place] and words.endswith(gold.words[-1])
        return (None if early else found.values[at]), words


def heard(variants: Sequence[Variant], found: Evaluation | RunData) -> dict[str, Heard]:
    """The answers by id of the variant's case, in this evaluation or in an evaluated run.

    A whole may be in the words of a part's paraphrase. If the original case has that paraphrase wrong, the part is not
    known in these words, and counts as wrong for this variant.
    """
    rows: dict[str, dict[str, Graded]] = {v.case.id: {} for v in variants}
    for row in found.graded:
        if row.case in rows:
            rows[row.case][row.role] = row
    by_id = {v.case.id: v for v in variants}
    for id, variant in by_id.items():
        reworded = rows.get(variant.source, {}).get(variant.wording or "")
        if reworded is not None and reworded.outcome != "correct":
            rows[id][reworded.role.partition(":paraphrase:")[0]] = reworded

    def of(id: str, source: Mapping[str, Any]) -> dict[str, Any]:
        return {role: source[str(row.ask)] for role, row in rows[id].items() if row.ask in source}

    return {id: Heard(by_id[id], rows[id], of(id, found.asks), of(id, found.responses)) for id in rows}
