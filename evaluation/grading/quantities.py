"""Whether a text says a gold number: the number that it gives, and rules for what else it may have meant.

    compare(Said("She has 12 apples."), Asked(("12",)))  # a correct grade

The rules stand in ``_RULES`` in the order in which they are asked.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from . import formulas, numbers, numeric_answer, roles, statements, units, words
from .numbers import Number
from .numeric_answer import QuantityReading
from .verdicts import Asked, Said, Verdict, right, undecided, wrong
from .view import HALF

_ROOT = re.compile(r"\\(?:sqrt|pi|sum|binom)")
_ASKED_FOR = re.compile(r"\b(?:which|what|whose)\s(?:step|part|case|question)\b", re.IGNORECASE)
_COLON = re.compile(r"(?<=\d)(\W*):(?=\s)")
"""The end of a head, which is the answer to "Which step is wrong?": "Step 3: the sign is lost"."""
_UNWORKED = re.compile(
    r"\A\W*(?:\d+|[a-z]+)\s(?:times|plus|minus)\sthe\s[^.;\n]*?\s(?:is|are|was|were)\s(?P<rest>[^.;\n]*)\W*\Z",
    re.IGNORECASE,
)
"""A sentence that says something else of a sum or product: "Two times the number of sides is a joke."."""
_READ = 400
"""Characters of a text that are read as a formula."""


def compare(said: Said, asked: Asked) -> Verdict:
    """The verdict on a text where the gold answers are numbers.

    A text with several numbers counts by the line that repeats the question ("Total: 12"), where this is right; a text
    that has the gold number as something else than what was asked for is undecided.
    """
    said = replace(said, text=units.as_asked(said.text, asked.golds, asked.question))
    if asked.question and _ASKED_FOR.search(asked.question):
        said = replace(said, text=_COLON.sub(r"\1.", said.text), rest=_COLON.sub(r"\1.", said.rest))
    unworked = None if said.cued else _UNWORKED.match(said.text)
    if unworked and not numbers.find_all(numbers.normalized(unworked["rest"])):
        return undecided(said.text, "expression without a result")
    found = _compared(said, asked)
    several, q = found is not None and found.reason == "several numbers", asked.question
    lost = found is not None and found.outcome == "incorrect" and not said.cued
    row = q and ((several and roles.field(said.text, q)) or (lost and statements.number(said.text, q)))
    one = row and len(numbers.candidates(numbers.normalized(row))) == 1  # not "by $20, so it costs $5"
    if row and one and (own := _compared(Said(row, cued=True), asked)) and own.outcome == "correct":
        return own
    decided = found is None or said.cued or not q or not (several or found.outcome == "correct")
    other = not decided and roles.elsewhere(said.text, asked.golds, q or "")
    return undecided(said.text, statements.ELSEWHERE) if other else found


def _compared(said: Said, asked: Asked) -> Verdict:
    """The verdict by the number that the text gives, without a look at other lines."""
    wanted = [numbers.parse(g) if formulas.is_plain_number(g) else None for g in asked.golds]
    if wanted[0] is None:
        return formulas.compare(said, asked)
    golds = units.in_unit([w for w in wanted if w is not None], asked.question)
    own = roles.own_number(said.rest or said.text, asked.question) if asked.question else None
    if own is not None and (number := numbers.parse(own)) is not None:
        return right(own, "numeric") if any(numbers.equal(number, w) for w in golds) else wrong(own)
    found = _read(said, asked.question)
    if found.number is None:
        return _without_a_number(said.text, found, golds)
    plain = numbers.normalized(said.text[:HALF])
    number = units.converted(plain, found.number, golds) or found.number
    given = _Given(said.text, plain, number, found, golds, asked)
    return next(verdict for rule in _RULES if (verdict := rule(given)) is not None)


def _read(said: Said, question: str | None) -> QuantityReading:
    """The number that a text gives; "the third" and "none of them" are numbers where it has no other."""
    found = numeric_answer.announced(said.text, said.rest) if said.cued else numeric_answer.uncued(said.text)
    if found.number is not None or found.reason != "no-answer":
        return found
    if (place := words.ordinal(said.text)) is not None:
        return QuantityReading(Number(Fraction(place), 0, 0, word=True))
    none = units.none_of(said.text, question)
    return QuantityReading(Number(Fraction(0), 0, 0, word=True)) if none else found


def _without_a_number(segment: str, found: QuantityReading, golds: Sequence[Number]) -> Verdict:
    spelled = [n for n in numbers.find_all(numbers.normalized(segment[:HALF])) if n.word and n.value != 1]
    if any(numbers.equal(n, w) for n in (*found.rivals, *(spelled if found.reason == "bound" else ())) for w in golds):
        return undecided(segment, found.reason or "several numbers")
    if found.reason == "loose bound":
        return wrong(segment, "bound")
    if found.reason in ("hedged", "bound"):
        return wrong(segment, found.reason)
    return undecided(segment, "expression without a result") if found.reason == "expression" else None


@dataclass(frozen=True)
class _Given:
    """The number that a text gives, in the unit asked for, and what it is compared with."""

    text: str
    plain: str
    """The text with its digits and signs written in one way."""
    number: Number
    found: QuantityReading
    golds: Sequence[Number]
    asked: Asked

    @cached_property
    def shown(self) -> str:
        return numbers.show(self.number)

    @cached_property
    def held(self) -> Sequence[Number]:
        """All numbers of the text."""
        return numbers.find_all(self.plain)

    def gold_among(self, some: Sequence[Number]) -> bool:
        return any(numbers.equal(n, w) for n in some for w in self.golds)


def _the_gold_number(given: _Given) -> Verdict:
    same = given.number, *units.not_given(given.found.same, given.number, given.asked.question)
    if not any(numbers.equal(n, w) or units.rounded(n, w) for n in same for w in given.golds):
        return None
    doubtful = units.percent_in_doubt(given.number, given.golds, given.asked.question)
    return undecided(given.text, "two readings") if doubtful else right(given.shown, "numeric")


def _a_formula_of_it(given: _Given) -> Verdict:
    r"""An answer that is a formula ("\sqrt{16}") may equal a plain gold number."""
    if not _ROOT.search(given.text[:_READ]) or not formulas.available_here():
        return None
    equal = any(formulas.verify(given.text[:_READ], g) for g in given.asked.golds)
    return right(given.text, "math-verify") if equal else None


def _among_several(given: _Given) -> Verdict:
    """The gold number beside others, where none of them is marked as the answer."""
    if not given.gold_among(given.found.rivals):
        return None
    said, question = (given.number, *given.found.rivals), given.asked.question
    if units.only_new(said, given.golds, question) or units.only_in_unit(said, given.golds, question):
        return right(numbers.show(given.golds[0]), "numeric")  # the others repeat the question
    other = units.another_in_unit(said, given.golds, question)
    return undecided(given.text, statements.ELSEWHERE if other else "several numbers")


def _nearly_it(given: _Given) -> Verdict:
    near = any(numbers.may_equal(given.number, w) or units.nearly(given.number, w) for w in given.golds)
    if near or units.duration(given.number, given.golds):
        return undecided(given.text, "two readings")
    exact = any(units.more_exact(given.number, w, given.asked.question) for w in given.golds)
    return undecided(given.text, "more decimals") if exact else None


def _the_same_quantity(given: _Given) -> Verdict:
    """Both numbers for one quantity: "24 hours = 1440 minutes", "36 is three dozen"."""
    for n in (n for n in given.held if given.gold_among([n])):
        if numbers.same_quantity(n, given.number) or (given.number.dozen and n.value == given.number.value):
            return right(given.shown, "numeric")
    return None


def _in_another_unit(given: _Given) -> Verdict:
    number, question = given.number, given.asked.question
    pairs = [(n, w) for n in given.held for w in given.golds] if not number.percent else []
    share = any(units.may_be_a_share(n, w, question) for n, w in pairs)
    other = share or any(units.may_be_in_another_unit(number, w, question) for w in given.golds)
    return undecided(given.text, "another unit") if other else None


def _in_words_beside_digits(given: _Given) -> Verdict:
    """Digits were read, and the gold number is in words; "one" is a pronoun."""
    if given.number.word or not given.gold_among([n for n in given.held if n.word and n.value != 1]):
        return None
    if units.only_new(given.held, given.golds, given.asked.question):
        return right(numbers.show(given.golds[0]), "numeric")
    return undecided(given.text, "several numbers")


def _another_number(given: _Given) -> Verdict:
    own, asked = given.number.dimension, given.golds[0].dimension
    return wrong(given.shown, "unit" if own and asked and own != asked else None)


_RULES: tuple[Callable[[_Given], Verdict], ...] = (
    _the_gold_number,
    _a_formula_of_it,
    _among_several,
    _nearly_it,
    _the_same_quantity,
    _in_another_unit,
    _in_words_beside_digits,
    _another_number,
)
"""The first rule that gives a verdict decides; the last one always gives one."""
