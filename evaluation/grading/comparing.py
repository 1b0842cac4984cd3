"""Whether an answer is the gold answer: one comparison for each answer type.

    COMPARISONS["number"](Said("12 apples"), Asked(("12",)))  # a correct grade

A comparison gives None where a text has no answer of its type, and an undecided grade where no rule can tell.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...errors import InputError
from ..options import letter_of
from . import (
    affirming,
    booleans,
    choices,
    dates,
    echo,
    events,
    formulas,
    lists,
    names,
    numbers,
    peoples,
    quantities,
    roles,
    spellings,
    statements,
    text,
    units,
    words,
)
from .verdicts import Asked, Said, Verdict, right, undecided, wrong
from .view import HALF

_ARROW = re.compile(r"\s(?:->|=>|\u2192|\u21d2|\u27f6|\u2794)\s")
_PURE_NUMBER = re.compile(r"[^\w\u00b1\u221a]*\d[\d.,]*\s*(?:%|(?:degrees\s)?[A-Za-z\u00b0/]{1,10}(?:\^?[23])?)?\W*")
_YEAR = re.compile(r"\W*(?:1\d{3}|20\d\d)\W*")
_FRACTION = re.compile(r"(?<![\d/])-?\d+\s?/\s?\d+(?![\d/])")
_RATIO = re.compile(r"\d+\s?:\s?\d+")
_THOUSANDS = re.compile(r"(?<![\d.,])[12],\d{3}(?![\d,])")


def _number(said: Said, asked: Asked) -> Verdict:
    gold = asked.golds[0]
    worded = not re.search(r"\d|\\", gold) and not formulas.is_formula(gold, asked.question)
    name = worded and (not formulas.is_plain_number(gold) or numbers.parse(gold) is None)
    return _name(Said(said.text, cued=True), asked) if name else quantities.compare(said, asked)


def _date(said: Said, asked: Asked) -> Verdict:
    if dates.is_clock_time(asked.golds[0]):
        return _time(said, asked)
    wanted = [d for g in asked.golds if (d := dates.parse(g)) is not None]
    if not wanted:
        return _name(said, asked)
    given = dates.find_all(asked.question or "")
    verdict = _dated(said, _date_said(said, asked, wanted, given), wanted, 1 if asked.consistency else 0)
    if said.cued or not asked.question:
        return verdict
    maybe = verdict is not None and verdict.outcome != "incorrect"
    named = dates.parse(roles.field(said.text, asked.question) or "")
    if named and named.sure and maybe and not any(dates.compare(named, d) for d in (*wanted, *given)):
        return undecided(said.text, statements.ELSEWHERE)
    part = events.event_part(said.text, asked.question)
    if part is None:
        return verdict
    own = dates.announced(part)
    own = own if own.date is None or (own.date.year and own.date.sure) else dates.uncued(part)
    again = _dated(said, own, wanted, 0) if own.date and own.date.sure else None
    if again is not None and again.outcome == "correct":
        return again
    return undecided(said.text, "the date of another event") if maybe and (again or not part) else verdict


def _date_said(
    said: Said, asked: Asked, wanted: Sequence[dates.Date], given: Sequence[dates.Date]
) -> dates.DateReading:
    """The date that a text gives; one without a year has that of a date ``given`` by the question."""
    found = dates.announced(said.text, said.rest) if said.cued else dates.uncued(said.text)
    if found.lead and asked.question and (sentence := echo.focus(said.text, asked.question)):
        found = dates.announced(sentence)
        if found.date and found.date.day and any(dates.compare(d, found.date) for d in given):
            found = dates.uncued(sentence)  # "25 February plus 10 days is 6 March"
    if found.date and found.date.year is None and asked.question:  # "19 March", 14 days after 5 March 2024
        near = [d for d in given if d.year and abs(d.year - (wanted[0].year or 0)) <= 1]
        return replace(found, date=replace(found.date, year=wanted[0].year if near else None))
    return found


def _dated(said: Said, found: dates.DateReading, wanted: Sequence[dates.Date], tolerance: int) -> Verdict:
    if found.date is None and found.reason == "no-answer":
        return None
    for date in (found.date, found.lead):
        matches = [m for gold in wanted if date and (m := dates.compare(date, gold, tolerance)) is not None]
        if date is not None and matches:
            return right(dates.show(date), matches[0])
    if found.date is None and found.reason == "hedged" and dates.within(said.text, wanted):
        return right(said.text, "date")
    if any(dates.compare(d, gold, tolerance) for d in found.rivals for gold in wanted):
        return undecided(said.text, "several dates")
    if (other := dates.other_reading(found.date)) and any(dates.compare(other, gold, tolerance) for gold in wanted):
        return undecided(said.text, "two readings")
    if found.date is None:
        return wrong(said.text, found.reason)
    return wrong(dates.show(found.date), "incomplete" if dates.incomplete(found.date, wanted[0]) else None)


def _text(said: Said, asked: Asked) -> Verdict:
    """A name or phrase. A gold answer that is a number, a date, or yes or no is compared as that type."""
    if formulas.is_formula(asked.golds[0], asked.question):
        return formulas.compare(said, asked) or undecided(said.text, "no formula")  # what same() ignores counts here
    exact = any(text.same(said.text[:400], gold) for gold in asked.golds)
    asked = replace(asked, golds=(spellings.exactly(asked.golds[0]), *asked.golds))
    # words where a number or a date is asked for are another answer
    found = right(said.text, "exact") if exact else _kind(asked.golds[0])(said, asked) or _name(said, asked)
    held = found is not None and found.outcome == "correct"
    other = text.other_marks(said.text, asked.golds, asked.question) if held else None
    return wrong(said.text, other) if other else found


def _year(said: Said, asked: Asked) -> Verdict:
    """A gold answer like 1200 in text is a year, but a quantity if the reply writes it with a thousands separator."""
    found = _date(said, asked)
    if (found and found.outcome == "correct") or not _THOUSANDS.search(said.text):
        return found
    number = _number(said, asked)
    if not (found and found.answer and dates.parse(found.answer)):
        return number
    return undecided(said.text, "a year or a number") if number and number.outcome == "correct" else found


def _time(said: Said, asked: Asked) -> Verdict:
    """A time of day: in the words of the gold answer, or in another notation with the same value."""
    said = replace(said, text=dates.clock_in_digits(said.text), rest=dates.clock_in_digits(said.rest))
    found = _name(said, replace(asked, golds=tuple(dates.clock_in_digits(g) for g in asked.golds)))
    due = {minutes for g in asked.golds for minutes in dates.clock_times(dates.clock_in_digits(g))}
    own = next((p for p in re.split(r"[.,;]\s|\sand\s", said.text) if due & {*dates.clock_times(p)}), said.text)
    apart = asked.question and events.at_the_other_end(own, asked.question)
    if found is not None and found.outcome == "correct":
        if apart:
            return undecided(said.text, "the time of another event")
        later = dates.clock_times(said.text)[-1:]
        passing = found.match == "contained" and later and asked.question and not said.cued
        known = [*asked.golds, asked.question or ""]
        if passing and not any(later[0] in dates.clock_times(dates.clock_in_digits(t)) for t in known):
            return undecided(said.text, "several times")
        return found
    times = tuple(t for g in asked.golds if dates.is_clock_time(t := dates.clock_in_digits(g)))
    number = _number(said, replace(asked, golds=times))
    if number and number.outcome == "correct" and apart:
        return undecided(said.text, "the time of another event")
    in_passing = found is not None and found.outcome == "invalid" and number and number.outcome == "incorrect"
    return found if number is None or in_passing else number


def _fraction(said: Said, asked: Asked) -> Verdict:
    """A fraction by its value; other terms may be what the question did not want ("Simplify 6/8")."""
    found = _number(said, asked)
    terms = {re.sub(r"\s", "", f) for f in _FRACTION.findall(numbers.normalized(said.text[:HALF]))}
    if found and found.outcome == "correct" and terms and not terms & {re.sub(r"\s", "", g) for g in asked.golds}:
        return undecided(said.text, "other terms")
    return found or _name(said, asked)


def _ratio(said: Said, asked: Asked) -> Verdict:
    """A ratio in words ("2 to 3") or with a colon."""
    return _name(replace(said, text=words.with_colons(said.text), rest=words.with_colons(said.rest)), asked)


def _years(said: Said, asked: Asked) -> Verdict:
    """A span of years or pages, in words or with a dash; a text with only another one is wrong."""
    golds = tuple(words.with_dashes(g) for g in asked.golds)
    plain = replace(said, text=words.with_dashes(said.text), rest=words.with_dashes(said.rest))
    spans = words.spans(plain.text)
    found = _name(plain, replace(asked, golds=golds))
    return wrong(said.text) if found and len(spans) == 1 and not spans & {*golds} else found


def _kind(gold: str) -> Callable[[Said, Asked], Verdict]:
    if booleans.value(gold) is not None and gold.strip().casefold() in ("yes", "no", "true", "false"):
        return _boolean
    if units.is_compound(gold):
        return _number
    if dates.is_clock_time(gold):
        return _time
    if words.with_dashes(gold) in words.spans(gold):
        return _years
    if _FRACTION.fullmatch(gold):
        return _fraction
    if _RATIO.fullmatch(gold):
        return _ratio
    if _YEAR.fullmatch(gold) or dates.is_full(gold):
        return _year if _YEAR.fullmatch(gold) else _date
    return _number if _PURE_NUMBER.fullmatch(gold) and formulas.is_plain_number(gold) else _name


def is_value(gold: str) -> bool:
    """Whether a gold answer of type text is compared as a number, a date or the like."""
    return _kind(gold) is not _name


def _name(said: Said, asked: Asked) -> Verdict:
    shorter = [short for g in asked.golds for short in statements.shorter_names(g, asked.question, said.text)]
    asked = replace(asked, golds=tuple(dict.fromkeys((*asked.golds, *shorter))))
    found = (
        names.announced(said.text, said.rest, asked.golds, asked.consistency)
        if said.cued
        else names.uncued(said.text, asked.golds, asked.consistency)
    )
    if found is None:
        return None
    if not found.right and peoples.asks_for_nationality(asked.question):
        if any(peoples.is_of(said.text, gold) for gold in asked.golds):
            abroad = peoples.born_in_another(said.text, asked.golds)
            return undecided(said.text, "named in passing") if abroad else right(said.text, "contained")
        if any(peoples.country_of(text.normalize(said.text), text.normalize(gold)) for gold in asked.golds):
            return undecided(said.text, "a country for its people")
    two = statements.of_two(said.text, asked.golds, asked.question, found.right) if found.how != "exact" else None
    if two is not None:
        return right(said.text, "contained") if two else undecided(said.text, statements.OTHER)
    if found.right is None:
        value = roles.field(said.text, asked.question) if asked.question else None
        same = value and any(text.same(value, g) for g in asked.golds)
        return right(value, "exact") if value and same else undecided(said.text, found.how)
    if found.right and found.how == "contained" and asked.question:
        if _ARROW.search(said.text) and "\n" not in said.text.strip():
            last = names.uncued(_ARROW.split(said.text.strip())[-1], asked.golds)
            if last is None or not last.right:
                return undecided(said.text, "named in passing")  # a step of a chain
        known = said.text, asked.golds, asked.question
        amounts = not said.cued and statements.only_amounts(said.text, asked.golds, asked.question)
        if amounts or any(test(*known) for test in (echo.only_repeated, echo.in_another_clause, roles.of_another)):
            return undecided(said.text, "named in passing")
        if names.of_another_kind(said.text, asked.golds, asked.question):
            return undecided(said.text, "part of another name")
    if found.how == "another answer" and asked.question and roles.goes_on(said.text, asked.golds, asked.question):
        return right(said.text, "contained")
    if not found.right and peoples.in_another_language(said.text, asked.golds):
        return undecided(said.text, "another language")
    return right(said.text, found.how) if found.right else wrong(said.text)


def _list(said: Said, asked: Asked) -> Verdict:
    return lists.grade(said.text, asked.golds, asked.question, ordered=False)


def _ordered_list(said: Said, asked: Asked) -> Verdict:
    return lists.grade(said.text, asked.golds, asked.question, ordered=True)


def _boolean(said: Said, asked: Asked) -> Verdict:
    wanted = booleans.value(asked.golds[0])
    if wanted is None:
        raise InputError(f"gold answer {asked.golds[0]!r} is not a boolean; use yes or no, or another answer_type")
    given = booleans.announced(said.text, said.rest) if said.cued else booleans.uncued(said.text)
    stated = affirming.affirms(said.rest or said.text, asked.question) if asked.question else None
    if given is not None and stated not in (None, given) and not said.cued and not booleans.opens(said.text):
        return undecided(said.text, "yes and no")  # a remark further on may be about something else
    given = None if booleans.agrees_with_a_denial(said.text, asked.question) else stated if given is None else given
    if given is None:
        return None
    shown = "yes" if given else "no"
    return right(shown, "exact") if given == wanted else wrong(shown)


def _choice(said: Said, asked: Asked) -> Verdict:
    given, gold = asked.options, asked.golds[0]
    if (wanted := letter_of(gold, given)) is None and given:
        named = ", ".join(f"{letter} ({said})" if said else letter for letter, said in given)
        raise InputError(f"gold answer {gold!r} is not one of the options {named}; use a letter or an option's text")
    if wanted is None:
        return _name(said, asked)
    found = choices.announced(said.text, said.rest, given) if said.cued else choices.uncued(said.text, given)
    differ = found.reason == "letter and text differ" and not choices.holds(said.text, wanted, given)
    if differ or found.reason == "none of the options":  # whichever of letter and text is meant
        return wrong(said.text, found.reason)
    if found.reason == "no-answer" and (polar := choices.polar(wanted, given)):
        return _boolean(said, replace(asked, golds=(polar,)))
    kind = choices.kind(said.text, given)
    valued = COMPARISONS[kind](said, replace(asked, golds=(dict(given)[wanted],))) if kind else None
    if valued is not None and valued.reason == "incomplete":
        valued = None  # "May 2" may be the day of an option with its year
    if found.letter is None:
        return valued if found.reason == "no-answer" else undecided(said.text, found.reason or "no-answer")
    if valued is not None and (found.letter == wanted) != (valued.outcome == "correct"):
        return undecided(said.text, "several choices")
    return right(found.letter, "letter") if found.letter == wanted else wrong(found.letter)


COMPARISONS: dict[str, Callable[[Said, Asked], Verdict]] = {
    "text": _text,
    "number": _number,
    "date": _date,
    "list": _list,
    "ordered-list": _ordered_list,
    "boolean": _boolean,
    "choice": _choice,
}
