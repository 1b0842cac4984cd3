"""The options of a choice: how a case lists them, how a question lists them, and which letter a gold answer means."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InputError
from .text_files import in_words

Choices = tuple[tuple[str, str], ...]
"""(letter, text) of each option, in order."""

_ITEM = r"(?P<text>(?:(?!\([A-Z]\)|\n).)+?)"
_IN_BRACKETS = re.compile(rf"\((?P<letter>[A-Z])\)[ \t]*{_ITEM}[ \t]*[;,]?(?=[ \t]*\([A-Z]\)|[ \t]*$)", re.MULTILINE)
_ON_LINES = re.compile(r"^[ \t]*\(?(?P<letter>[A-Z])[).:][ \t]+(?P<text>[^\n]+)$", re.MULTILINE)
_LETTERED = re.compile(r"\(?(?P<letter>[A-Z])[).:]\s+(?P<text>.+)", re.DOTALL)
_GIVE = 'give a list of texts, or an object such as {"A": "red", "B": "blue"}'
_QUESTION = 4000
"""Characters at the end of a question that are searched for options."""


def parse(value: Any, where: str) -> Choices:
    """Options from a case file: a list of texts (A, B, ... in order, or with their letters), or letters with texts.

    >>> parse(["red", "blue"], "case")
    (('A', 'red'), ('B', 'blue'))

    Raises ``InputError`` naming the place for anything else.
    """
    if isinstance(value, Mapping):
        # the data set hub writes {"label": ["A", ...], "text": [...]}
        labels, texts = value.get("label"), value.get("text")
        rows = list(value.items())
        if set(value) == {"label", "text"} and isinstance(labels, list) and isinstance(texts, list):
            if len(labels) != len(texts):
                raise InputError(f"{where}: field 'options' has {len(labels)} labels for {len(texts)} texts; {_GIVE}")
            rows = list(zip(labels, texts, strict=True))
    elif isinstance(value, list | tuple):
        lettered = [_LETTERED.fullmatch(item) if isinstance(item, str) else None for item in value]
        # "A. Lincoln" among names has no letter: all or none
        due = all(m and m["letter"] == chr(ord("A") + i) for i, m in enumerate(lettered))
        rows = [
            (m["letter"], m["text"]) if due and m else _row(item, i)
            for i, (item, m) in enumerate(zip(value, lettered, strict=True))
        ]
    else:
        raise InputError(f"{where}: field 'options' is {value!r}; {_GIVE}")
    rows = [(letter, in_words(text)) for letter, text in rows]
    for letter, text in rows:
        if not (
            isinstance(letter, str) and re.fullmatch(r"[A-Za-z]", letter) and isinstance(text, str) and text.strip()
        ):
            raise InputError(f"{where}: field 'options' holds {letter!r}: {text!r}; {_GIVE}")
    found = tuple((letter.upper(), text.strip()) for letter, text in rows)
    if len(found) < 2 or len({letter for letter, _ in found}) < len(found):
        raise InputError(
            f"{where}: field 'options' has the letters {[letter for letter, _ in found]}; give two or more, each once"
        )
    first: dict[str, str] = {}
    for letter, text in found:
        if (same := first.setdefault(text, letter)) != letter:
            raise InputError(f"{where}: field 'options' has {text!r} as {same} and as {letter}; give each text once")
    return found


def _row(item: Any, i: int) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        return item.get("label", item.get("letter")), item.get("text")
    if isinstance(item, list | tuple) and len(item) == 2:
        return item[0], item[1]
    return chr(ord("A") + i), item


def in_question(question: str) -> Choices:
    """The options that a question lists: "(A) melted (B) frozen", or one "A. melted" a line; () where it lists none.

    >>> in_question("Which? Answer Choices: (A) red (B) blue")
    (('A', 'red'), ('B', 'blue'))
    """
    for pattern in (_IN_BRACKETS, _ON_LINES):
        found = tuple((m["letter"], m["text"].strip(" ,;")) for m in pattern.finditer(question[-_QUESTION:]))
        if len(found) >= 2 and [letter for letter, _ in found] == [chr(ord("A") + i) for i in range(len(found))]:
            return found
    return ()


_BETWEEN = r"(?:[^\w]|\b(?:or|and|the|an?|is|it|either|[A-Z]|[0-9])\b){0,12}"
"""What may stand between the options that a question lists: "red, blue or the green one"."""


def listed(question: str, options: Sequence[tuple[str, str]]) -> str:
    """The question with its options, where it does not list them itself, one after the other.

    >>> listed("Is it red or blue?", (("A", "red"), ("B", "blue")))
    'Is it red or blue?'
    """
    every = _BETWEEN.join(rf"(?<!\w){re.escape(text)}(?!\w)" for _, text in options)
    if not options or in_question(question) or re.search(every, question):
        return question
    return f"{question} Answer Choices: " + " ".join(f"({letter}) {text}" for letter, text in options)


def letter_of(gold: str, options: Sequence[tuple[str, str]]) -> str | None:
    """The letter of a gold answer, which is the letter itself ("B", "(B)"), the text of an option, or both.

    None where it is not one of the options, or not a letter where no options are known.
    """
    letters = {letter for letter, _ in options}
    same = [letter for letter, text in options if _plain(text) == _plain(gold)]
    if len(same) == 1:
        return same[0]
    alone = re.fullmatch(r"\W*([A-Za-z])\W*", gold) or re.match(r"\W*([A-Z])[).:]\s", gold)
    letter = alone[1].upper() if alone else None
    return letter if not letters or letter in letters else None


def check(answer_type: str, answer: str, options: Sequence[tuple[str, str]], question: str, where: str) -> None:
    """Raises ``InputError`` where a choice's answer is not one of its options, or means one as a letter and another as
    a text, and where another type has options.
    """
    if answer_type != "choice":
        if options:
            raise InputError(f"{where}: field 'options' is for answer_type 'choice', and here it is {answer_type!r}")
        return
    known = options or in_question(question)
    if letter_of(answer, known) is None:
        have = f"the options are {', '.join(letter for letter, _ in known)}" if known else "there are no options"
        raise InputError(
            f"{where}: field 'answer' is {answer!r}, and {have}; give the letter or the text of one option"
            + ("" if known else ", and the field 'options'")
        )
    alone, meant = answer.strip().upper(), letter_of(answer, known)
    if alone != meant and alone in dict(known):
        raise InputError(
            f"{where}: field 'answer' is {answer!r}, the letter of {dict(known)[alone]!r} and the text of {meant}; "
            f"give letter and text, such as '{alone}) {dict(known)[alone]}'"
        )


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text.casefold()).split())
