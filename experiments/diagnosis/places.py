"""Locates a failing decision: the token ids up to it, the token that belongs there, and the positions of its entity.

A worked answer decides every operand separately ("7 times 9 is 63"): the decision is the first operand that comes out
wrong when those before it are forced. Any other case decides its answer after the forced relation, or where the
response begins, if no relation can be made from the questions and the part is answered in bare words (``is_bare``).
The same is located in a part (the last one, which names the entity), so that states of both can be interchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...evaluation.asks import Ask
from ...evaluation.case import Case
from ...evaluation.engines.text import verbatim
from ...evaluation.grading import lists
from .asks import Heard, operands, relation_of, working
from .variants import phrase_of

AFTER, BEFORE, END = 16, 2, 12
"""How many positions are searched for the entity: from the end of its phrase on, before it, and at the prompt's end. A
state holds the bridge only after the words that ask for it, but it may be any position there. The words between may
have more tokens in one question than in another, so most positions have a name from either side."""


@dataclass(frozen=True)
class Decision:
    """One prompt up to the position where a token is decided."""

    ids: tuple[int, ...]
    gold: int
    """First token of the right value at the decision."""
    value: str
    entity: str
    """What the decision is about: the bridge, the item that has the operand as its number, or a result's operation."""
    at: tuple[int, ...]
    """Positions at which the entity, or the phrase in its place, ends."""
    prompt: int
    """Length of the prompt, without the beginning of the response."""
    asked: tuple[int, ...] = ()
    """Position at which the question ends; () if the prompt does not contain the question word for word."""

    @property
    def last(self) -> int:
        return len(self.ids) - 1

    def readings(self) -> dict[str, int]:
        """Positions at which the entity is looked for, by name: in its phrase, after it, and at the prompt's end. One
        position may have two names."""
        end = {f"end-{j}": self.prompt - j for j in range(1, END + 1)}
        found = {f"entity{j:+d}": self.at[0] + j for j in range(-BEFORE, AFTER)} if self.at else {}
        found = {k: p for k, p in found.items() if p < self.prompt} | end
        return {"decision": self.last, **{k: p for k, p in found.items() if 0 < p < self.last}}


def of_whole(engine: Any, ask: Ask, case: Case, operand: int, *, bare: bool = False) -> Decision | None:
    """The whole's decision; None if it cannot be located. ``ask`` is the whole as it was put; ``bare``: nothing is
    forced before an answer without working."""
    begun, value = _written(case.worked, case.answer, "" if bare else relation_of(case), operand)
    if begun is None:
        return None
    entity = _entity(case, operand)
    kinds = case.meta.get("kinds")
    phrase = f"{kinds[operand]} one" if isinstance(kinds, list) and operand < len(kinds) else phrase_of(case)
    return _made(engine, replace(ask, begun=begun), value, entity, phrase or "")


def of_part(engine: Any, ask: Ask, case: Case, operand: int, *, bare: bool = False) -> Decision | None:
    """The same decision in the last part, which names the entity; ``ask`` is that part as it was put."""
    part = case.parts[-1]
    relation = "" if bare else relation_of_part(case)
    begun, value = _written(part.worked, part.answer, relation, operand)
    entity = _entity(case, operand)
    return None if begun is None else _made(engine, replace(ask, begun=begun), value, entity, entity)


def relation_of_part(case: Case) -> str | None:
    """The beginning of an answer to the last part, in that part's words.

    ``meta.relation`` is the whole's. It is forced in a part only if nothing can be made of the part's own question;
    in it, the part's entity then replaces the whole's words for that entity.
    """
    given, phrase, bridge = case.meta.get("relation"), phrase_of(case), case.parts[0].answer
    own = relation_of(replace(case, question=case.parts[-1].question, meta={}))
    if own is not None or not isinstance(given, str):
        return own
    return re.sub(re.escape(phrase), lambda _: bridge, given, flags=re.IGNORECASE) if phrase else given


def is_bare(one: Heard) -> bool:
    """Whether an answer without working is decided where the response begins: the questions give no relation to force,
    and the last part, which has the same answer, is answered without words before it."""
    case, last = one.case, len(one.case.parts) - 1
    part, relations = case.parts[last], (relation_of(case), relation_of_part(case))
    if operands(case) or None not in relations or part.answer != case.answer:
        return False
    return one.text(f"part:{last}").strip().lower().startswith(part.answer.lower())


def _written(worked: str | None, answer: str, relation: str | None, operand: int) -> tuple[str | None, str]:
    """The beginning of the response before the decision, and the value that is decided there."""
    found = working(worked)
    if len(found.values) > 1:
        if operand >= len(found.values):  # a part may work with fewer numbers than the whole
            return None, ""
        before, words = found.ends[operand - 1] if operand else 0, found.words[operand]
        value = str(worked)[before : found.ends[operand]].strip()[len(words) :].strip()  # with its commas
        return f"{str(worked)[:before]} {words}".strip(), value
    return relation, answer


def _entity(case: Case, operand: int) -> str:
    items = lists.split(case.parts[0].answer) if case.parts else []
    if (n := operands(case)) and operand == n:
        return str(case.worked)[: working(case.worked).ends[n - 1]]
    return items[operand] if n and operand < len(items) else case.parts[0].answer


def _made(engine: Any, ask: Ask, value: str, entity: str, phrase: str) -> Decision | None:
    ids = engine.prompt_ids([ask])[0]
    through = engine.prompt_ids([replace(ask, begun=f"{ask.begun} {value}".strip())])[0]
    if through[: len(ids)] != ids or len(through) <= len(ids):
        return None
    whole, reached = _reached(engine.tokenizer, ids)
    bare = engine.prompt_ids([replace(ask, begun="")])[0]
    asked = _ends(whole, reached, ask.question or "")[-1:]
    return Decision(ids, through[len(ids)], value, entity, _ends(whole, reached, phrase, entity), len(bare), asked)


def _reached(tokenizer: Any, ids: Sequence[int]) -> tuple[str, list[int]]:
    """The text of the ids, and how far into the text each id reaches; to the end of a letter only its last id does."""
    whole, reached = "", []
    for n in range(1, len(ids) + 1):
        whole = verbatim(tokenizer, ids[:n])
        reached.append(len(whole.rstrip("\ufffd")))
    return whole, [*reached[:-1], len(whole)]


def words(tokenizer: Any, decision: Decision, text: str) -> tuple[int, ...]:
    """Positions of all tokens of a text, wherever it occurs before the decision."""
    whole, reached = _reached(tokenizer, decision.ids)
    spans = [m.span() for m in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", whole)]
    begins = [0, *reached]
    inside = (i for i in range(decision.last) for a, b in spans if begins[i] < b and (reached[i] > a or begins[i] >= a))
    return tuple(dict.fromkeys(inside))


def _ends(whole: str, reached: Sequence[int], *texts: str) -> tuple[int, ...]:
    """End positions of the first of the texts that occurs, for all its occurrences in the prompt."""
    for text in filter(None, texts):
        found = [m.end() for m in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", whole)]
        if found:
            return tuple(dict.fromkeys(next(i for i, n in enumerate(reached) if n >= end) for end in found))
    return ()
