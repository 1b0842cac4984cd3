"""Gold answers and parts made from the records of published files.

``typed_answer`` and ``type_of_answer`` find the text of a gold answer and how it is compared. The other functions make
aliases, parts and clusters for data sets of decomposed multi-hop questions.

    typed_answer("1986-06-25")  # ("1986-06-25", "date")
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..errors import InputError
from .case import Case, Part
from .grading import dates, numbers
from .grading.formulas import is_plain_number
from .text_files import number_text, text_field

_FORMULA = re.compile(r"\\[A-Za-z]+|\$|\^|\d\s*[-+*/=]\s*\d|\d\s*[A-Za-z]\b")
_ONE_NUMBER = re.compile(
    r"[-+]?[$€£]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?(?: (?:hundred|thousand|million|billion|trillion))?"
)


def typed_answer(value: Any) -> tuple[str, str]:
    """(text, answer type) of a gold answer: numbers, booleans, dates, lists, formulas (compared as numbers), text."""
    if isinstance(value, bool):
        return ("yes" if value else "no"), "boolean"
    if isinstance(value, int | float):
        return number_text(value), "number"
    if isinstance(value, list):
        return "; ".join(typed_answer(v)[0] for v in value), "list"
    if isinstance(value, dict):
        if set(value) == {"answer"}:
            return typed_answer(value["answer"])
        return json.dumps(value, ensure_ascii=False, sort_keys=True), "text"
    text = str(value).strip()
    return text, _type_of(text)


@lru_cache(maxsize=65536)
def type_of_words(text: str) -> str:
    """The type of an answer to a question about the world: yes or no, a date, a number, else text.

    Unlike in ``typed_answer``, nothing is a formula: "I-95 N" and "$ign" are names.
    """
    if text.lower() in ("yes", "no"):
        return "boolean"
    if _ONE_NUMBER.fullmatch(text):
        return "number"
    date = dates.parse(text) if any(c.isdigit() for c in text) else None
    is_whole = date is not None and date.end - date.start == len(text)
    return "date" if date and is_whole and dates.is_real(text) and (date.month or text[-1].isalpha()) else "text"


_YEAR = re.compile(r"1\d{3}|20\d\d")
_ASKS_WHEN = re.compile(r"\b(?:when|years?|dates?)\b", re.IGNORECASE)
_WHICH_YEAR = re.compile(r"\b(?:what|which)\s(?:\w+\s)?(?:year|date)\b", re.IGNORECASE)
_COUNTS = re.compile(r"\bhow\s(?:many|much|long|far|high|tall|large)\b|\b(?:population|total)\b", re.IGNORECASE)


def type_of_answer(text: str, question: str | None) -> str:
    """The same where the question is known: a year that is asked for is text, which is compared as a date.

    As numbers, the other numbers of "She died in 1991 at 45" would leave the year undecided.
    """
    kind, asked = type_of_words(text), question or ""
    if _COUNTS.search(asked) and not _WHICH_YEAR.search(asked):
        return kind  # "How many people lived there in the year 2010?"
    return "text" if kind == "number" and _YEAR.fullmatch(text) and _ASKS_WHEN.search(asked) else kind


def _type_of(text: str) -> str:
    if text.lower() in ("yes", "no", "true", "false"):
        return "boolean"
    date = None if re.fullmatch(r"\d+-1[0-2]", text) else dates.parse(text)  # a difference rather than a month
    if date is not None and dates.is_real(text) and (date.month or text.lower().endswith(("bc", "bce", "ad", "ce"))):
        return "date"
    if ":" in text:
        return "text"  # a time of day is not a number
    if is_plain_number(text) and len(numbers.find_all(text)) == 1:
        return "number"
    return "number" if _FORMULA.search(text) or re.fullmatch(r"\([\d\s,./-]+\)", text) else "text"


def gold(row: Mapping[str, Any], name: str, aliases: str, where: str) -> tuple[str, tuple[str, ...]]:
    """A gold answer and its aliases, each once and without the answer itself.

    Raises ``InputError`` for an answer that is not text, and for aliases that are not a list of texts.
    """
    answer = text_field(row, name, where)
    listed = row.get(aliases) or []
    if not isinstance(listed, list) or not all(isinstance(a, str) for a in listed):
        raise InputError(f"{where}: field {aliases!r} is {listed!r}; give a list of strings")
    return answer, others(answer, listed)


_CODE = re.compile("[a-z]{2}")


def others(answer: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names beside the answer, without repetitions and empty ones.

    Lists of Wikidata's names also have codes of two small letters ("is" for Iceland, "de" for German). They are left
    out: replies have such words for other reasons.
    """
    named = answer[:1].isupper()
    kept: dict[str, str] = {}
    for name in (n.strip() for n in names):
        if name and not (named and _CODE.fullmatch(name)):
            kept.setdefault(name.casefold(), name)
    kept.pop(answer.casefold(), None)
    return tuple(kept.values())


def part(question: str, answer: str, hop: int, aliases: Sequence[str] = (), *, atom: str) -> Part:
    """One hop (from 1): a question about a fact, named ``atom`` wherever it is used."""
    return Part(question, answer, f"hop-{hop}", type_of_answer(answer, question), tuple(aliases), atom=atom)


def same_last_answer(case: Case) -> Case:
    """The case; if whole and last part have the same answer, they accept each other's spellings."""
    if not case.parts:
        return case
    last = case.parts[-1]
    names = {n.casefold() for n in (case.answer, *case.aliases)}
    if not names & {n.casefold() for n in (last.answer, *last.aliases)}:
        return case
    whole = others(case.answer, (*case.aliases, last.answer, *last.aliases))
    own = others(last.answer, (*last.aliases, case.answer, *case.aliases))
    return replace(case, aliases=whole, parts=(*case.parts[:-1], replace(last, aliases=own)))


def clustered(cases: Sequence[Case]) -> list[Case]:
    """The cases, with one cluster for all that are linked by shared facts (the parts' atoms), directly or over others.

    A cluster is named after its first case.
    """
    from .dependence import joined  # scipy takes a second to load

    names: dict[int, str] = {}
    groups = joined([frozenset(p.atom for p in case.parts) for case in cases]).tolist()
    return [replace(case, cluster=names.setdefault(g, case.id)) for g, case in zip(groups, cases, strict=True)]
