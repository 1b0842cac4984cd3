"""Which event the dates of an answer belong to, as the question names it.

"Austen (1775-1817)" says when she was born and when she died. Where the question names no event, nothing here is used.
"""

import re

from . import echo, view

_BIRTH, _DEATH = r"born|birth", r"die|died|death|passed\s+away|killed|executed|assassinated"
_BEGAN, _ENDED = r"began|begin|started|start", r"ended|end"
_EVENTS = tuple(
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for words in f"""{_BIRTH}
{_DEATH}
founded|founding|established|formed
published|publication|released|release
sink|sank|sunk
sailed|set\\s+sail|departed
adopted|adoption
signed
built|completed|construction
opened
discovered
invented
incorporated
conceived
launched|launch
crowned
elected
married
{_BEGAN}
{_ENDED}
won
wrote|written
became
moved
hit|struck
landed|land|landing
ratified
fell|fall
closed|dissolved""".split("\n")
)
"""Words for events that have a date each."""
_AT_FIRST = re.compile(rf"\b(?:(?P<life>{_BIRTH})|{_BEGAN})\b", re.IGNORECASE)
_AT_LAST = re.compile(rf"\b(?:(?P<life>{_DEATH})|{_ENDED}|completed|finished)\b", re.IGNORECASE)
_ASKS_DATE = re.compile(r"\b(?:when|(?:what|which)\s+(?:year|date|day)|(?:year|date)\s+of)\b", re.IGNORECASE)
_MONTHS = r"(?:(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)[a-z]*\.?)"
_DAY = re.compile(
    rf"(?:{_MONTHS}\s\d{{1,2}}(?:st|nd|rd|th)?,?|\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTHS},?)\s(?=\d{{4}}\b)"
)
"""The day and month before a year."""
_DENIED = re.compile(r"\b(?:not|never)\b|n't\b")
_ASKS_YEAR = re.compile(r"\b(?:what|which)\s+year\b", re.IGNORECASE)
_BEGINS = re.compile(r"\b(?:start|begin|leave|depart|open)(?:s|ed|ing)?\b|\b(?:left|began)\b", re.IGNORECASE)
_ENDS = re.compile(r"\b(?:end|finish|arriv|clos|return)(?:e|es|s|ed|ing)?\b", re.IGNORECASE)
_MOST = 40
"""Events that are looked at."""
_DIGITS = re.compile(r"\d{3,4}")
_SPAN = re.compile(
    r"\((?P<a>[^()\u2013\u2014]{0,30}?\d{3,4})\s?(?:-|\u2013|\u2014|to)\s?(?P<b>[^()\u2013\u2014]{0,30}?\d{3,4})\)"
    r"|\b(?P<lived>lived\s+)?from\s+(?P<c>[^.;]{0,30}?\d{3,4})\s+(?:to|until)\s+(?P<d>[^.;]{0,30}?\d{3,4})\b",
    re.IGNORECASE,
)
"""The dates of a life or a time: "(1775-1817)", "lived from 1775 to 1817", "it lasted from 1939 to 1945"."""


def at_the_other_end(text: str, question: str) -> bool:
    """Whether a text speaks of a beginning only where the question asks for an end, or of an end for a beginning."""
    plain = view.plain(text)
    asked, said = (
        (_BEGINS.search(t) is not None, _ENDS.search(t) is not None)
        for t in (re.split(r"[.!]\s", question)[-1].split(" if ")[0], plain)
    )
    return asked != said and asked in ((True, False), (False, True)) and said in ((True, False), (False, True))


def own_year(text: str, question: str) -> str | None:
    """The year that a question asks for, of the two of a life or a time ("1817" for "When did she die?"), or of the
    only sentence that repeats the question: "She won it in 1975. She won another one in 1984."
    """
    if not _ASKS_DATE.search(question):
        return None
    if date := _at_an_end(plain := view.plain(text), question):
        return _DIGITS.findall(date)[-1]
    every = view.sentences(plain) if _ASKS_YEAR.search(question) else []
    said = [s for s in every if echo.states(s, question)]
    sentence = _DAY.sub("in ", said[0]) if len(said) == 1 else ""
    lacks = {*echo.content(echo.last_question(question))} - {*echo.content(sentence)}
    if _DENIED.search(sentence) or any(lacks & {*echo.content(s)} for s in every if re.search(r"\d", s)):
        return (
            None  # "She won a prize in 1984. Her first prize was in 1975.", "She did not win it in 1984. It was 1975."
        )
    numbers = re.findall(r"\d+", sentence)
    return numbers[0] if len(numbers) == 1 and re.search(rf"\bin {numbers[0]}\b", sentence) else None


def _at_an_end(plain: str, question: str) -> str | None:
    """The date of a birth, death, beginning or end, where a text has nothing but the two dates of a life or a time."""
    events, spans = sum(kind.search(question) is not None for kind in _EVENTS), list(_SPAN.finditer(plain))
    first, last = _AT_FIRST.search(question), _AT_LAST.search(question)
    if len(spans) != 1 or len(_DIGITS.findall(plain)) != 2 or events != 1 or not (asked := first or last):
        return None
    if asked["life"] and not (spans[0]["a"] or spans[0]["lived"]):
        return None  # "He reigned from 1556 to 1605" does not say when he was born
    return spans[0]["a"] or spans[0]["c"] if first else spans[0]["b"] or spans[0]["d"]


def event_part(text: str, question: str) -> str | None:
    """The part of a text with the date of the event that a question asks for; "" where its only date is another one's.

    >>> event_part("Jane Austen (1775-1817)", "When was Jane Austen born?")
    '1775'
    """
    asked = [kind for kind in _EVENTS if kind.search(question)]
    if len(asked) != 1 or not _ASKS_DATE.search(question):
        return None
    plain, wanted = view.plain(text), asked[0]
    events = sorted(
        [(m.start(), m.end(), kind) for kind in _EVENTS for m in kind.finditer(plain)], key=lambda event: event[0]
    )[:_MOST]
    found: list[str] = []
    for n, (start, end, kind) in enumerate(events):
        before = plain[events[n - 1][1] if n else 0 : start]
        sentence_begins = n == 0 or len(view.sentences(before + "x")) > 1 or ";" in before
        before = before.rpartition(";")[2]
        if sentence_begins and _DIGITS.search(view.sentences(before + "x")[-1]) and not _SPAN.search(before):
            return None  # dates stand before their events
        stop = events[n + 1][0] if n + 1 < len(events) else len(plain)
        first = view.sentences(plain[end:stop].split(";")[0])[:1]
        if kind is wanted and first and _DIGITS.search(first[0]):
            found.append(first[0])
    if len(found) < 2 and (date := _at_an_end(plain, question)):
        return date
    if len(found) == 1:
        return found[0]
    other = len(events) == 1 and events[0][2] is not wanted
    return "" if not found and other and len(_DIGITS.findall(plain)) == 1 else None
