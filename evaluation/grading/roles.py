"""Whose number an answer of several numbers gives, and which event its dates belong to, as the question names them.

"Sam has 14 and Tina has 42" answers "How many does Tina have?" with 42; "Austen (1775-1817)" says when she was born
and when she died. Where the question names no person and no event, nothing here is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import view
from .text import normalize

_WHOSE = re.compile(
    r"\b[Hh]ow\s+(?:many|much)\b(?P<what>[^?]{0,80}?)\b(?:does|did|do|will|would|has|had|is|was)\s+(?P<name>[A-Z]\w+)\s"
    r"(?P<rest>[^?]{0,60})\?\W*\Z"
)
_COMPARES = re.compile(
    r"\b(?:more|fewer|less|than|together|altogether|total|each|combined|both|left|give|gave|sell|spend|and)\b", re.I
)
"""Words of a question that asks for more than what one person has."""
_HAS = re.compile(
    r"(?<![\w'])(?P<name>[A-Z][a-z]+)\s?(?:(?:now|then|also|will|would|must)\s)?"
    r"(?:(?:has|had|have|gets|got|owns|earns|earned|scored|scores|is|was)\s|[:=,]\s?|\s)(?:only\s)?[$€£]?"
    r"(?P<number>\d[\d,.]*\d|\d)(?!\d|\s?(?:times|percent|more|fewer|less|[%/*x\u00d7+-])(?!\w))"
)
_KIN = (
    "successor predecessor son daughter father mother brother sister wife husband nephew niece cousin uncle aunt "
    "friend rival teacher student assistant deputy"
)
_RELATED = re.compile(
    rf"(?:\A|\s)(?:his|her|its|their)\s(?:\w+\s){{0,2}}?(?P<kin>{_KIN.replace(' ', '|')})\b", re.IGNORECASE
)
_OWN_KIND = re.compile(r"\A[^,;:]{1,60}\s(?:is|was|are|were)\s(?:its|his|her|their)\s(?P<kind>[a-z]+)\W*\Z")
_ASKS_EVENT = re.compile(
    r"(?P<birth>\bborn\W*\Z|\b(?:birth\s+year|year\s+of\s+birth|date\s+of\s+birth|birth\s?da(?:te|y))\b)"
    r"|(?P<death>\b(?:die|died|pass\s+away)\W*\Z|\b(?:year|date)\s+of\s+death\b)"
)
_BIRTH = re.compile(r"\b(?:born|birth)\b", re.IGNORECASE)
_DEATH = re.compile(r"\b(?:died|death|passed\s+away|killed|executed|assassinated)\b", re.IGNORECASE)
_OTHER_EVENT = re.compile(
    r"\b(?:published|released|wrote|written|founded|became|elected|moved|won|crowned|married|invented|discovered)\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d{3,4}")
_SPAN = re.compile(
    r"\((?P<a>[^()\u2013\u2014]{0,30}?\d{3,4})\s?(?:-|\u2013|\u2014|to)\s?(?P<b>[^()\u2013\u2014]{0,30}?\d{3,4})\)"
    r"|\blived\s+from\s+(?P<c>[^.;]{0,30}?\d{3,4})\s+(?:to|until)\s+(?P<d>[^.;]{0,30}?\d{3,4})\b",
    re.IGNORECASE,
)
"""The dates of a life: "(1775-1817)", "lived from 1775 to 1817"."""


def own_number(text: str, question: str) -> str | None:
    """What the person has whom the question names, where the last sentence or lines say it of several.

    >>> own_number("Sam has 14 and Tina has 42.", "How many marbles does Tina have?")
    '42'
    """
    asked = _WHOSE.search(question)
    if asked is None or _COMPARES.search(asked["what"]) or _COMPARES.search(asked["rest"]):
        return None
    parts = [s for s in view.sentences(view.plain(text)) if any(c.isdigit() for c in s)]
    said: dict[str, set[str]] = {}
    for part in reversed(parts):
        held = [(m["name"], m["number"]) for m in _HAS.finditer(part)]
        if not held:
            break
        for name, number in held:
            said.setdefault(name, set()).add(number)
        if len(held) > 1:
            break
    own = said.get(asked["name"], set())
    # "Total: 56" is no person: one of the others has to be named in the question too
    others = [name for name in said if name != asked["name"] and re.search(rf"\b{name}\b", question)]
    return next(iter(own)) if len(own) == 1 and others else None


def of_another(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether every sentence with a gold answer is about a relation that was not asked for: "His successor was ..."."""
    asked = f" {normalize(question)} "
    held = [f" {normalize(gold)} " for gold in golds]
    parts = [part for s in view.sentences(view.plain(text)) for part in s.split("; ")]
    said = [s for s in parts if any(name in f" {normalize(s)} " for name in held)]
    relations = [m[1] for s in said if (m := _RELATED.search(s)) or (m := _OWN_KIND.match(s))]
    return bool(said) and len(relations) == len(said) and not any(f" {r.lower()} " in asked for r in relations)


def event_part(text: str, question: str) -> str | None:
    """The part of a text with the date of the birth or the death that a question asks for; "" where it has another.

    >>> event_part("Jane Austen (1775-1817)", "When was Jane Austen born?")
    '1775'
    """
    asked = _ASKS_EVENT.search(question)
    if asked is None:
        return None
    plain = view.plain(text)
    wanted, other = (_BIRTH, _DEATH) if asked["birth"] else (_DEATH, _BIRTH)
    events = sorted(
        [(m.start(), m.end(), kind) for kind in (wanted, other, _OTHER_EVENT) for m in kind.finditer(plain)],
        key=lambda event: event[0],
    )
    found: list[str] = []
    for n, (_, end, kind) in enumerate(events):
        stop = events[n + 1][0] if n + 1 < len(events) else len(plain)
        first = view.sentences(plain[end:stop])[:1]
        if kind is wanted and first and _DIGITS.search(first[0]):
            found.append(first[0])
    if len(found) == 1:
        return found[0]
    spans = list(_SPAN.finditer(plain))
    if not found and len(spans) == 1 and len(_DIGITS.findall(plain)) == 2:
        first, last = spans[0]["a"] or spans[0]["c"], spans[0]["b"] or spans[0]["d"]
        return first if asked["birth"] else last
    dates = len(_DIGITS.findall(plain))
    return "" if not found and dates == 1 and [kind for _, _, kind in events] == [other] else None
