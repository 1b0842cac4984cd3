"""How often the answers of a run follow a shortcut, and how often luck would.

``followed`` compares answers with what a hypothesis predicts, ``best`` takes the one that the most edits follow.
``most_said`` makes a hypothesis from the answers themselves, and ``shortcuts`` tries every hypothesis on a run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...evaluation.case import Case
from ...evaluation.grading import text
from ..organism import world
from . import hypotheses, thresholds
from .asks import Heard, operands, without_commas, working
from .behaviour import behaviour, exchanged
from .evidence import Edit, Followed, Tally, beyond, pairs
from .hypotheses import AFTER, REPEATED, THEN, USUAL_OPERAND, Hypothesis, listed, lists_in, shown, tag_places
from .variants import source_of

PAIRS = 6
"""The smallest number of pairs of right and predicted answer that follow a shortcut which only some cases follow."""


def beyond_luck(run: Tally, cases: Sequence[Followed]) -> bool:
    """Whether a run admits a shortcut: so many pairs, or so many cases, follow it by luck in one of a hundred runs.

    Where only some cases follow it (a model with two causes), each of these still does so more often than luck would
    have it in one of twenty cases, and in ``PAIRS`` pairs: the variants of a case have one pair, so that a few
    pairs by luck are many variants.
    """
    luck = max((edit.luck for case in cases for edit in case.edits), default=1.0)
    able = [Tally(case.hits, case.telling) for case in cases if luck**case.telling < thresholds.UNLIKELY]
    often = Tally(sum(beyond(tally, luck, thresholds.UNLIKELY) for tally in able), len(able))
    by_cases = run.k >= PAIRS and beyond(often, thresholds.UNLIKELY, thresholds.LUCK / 2)
    return by_cases or beyond(run, luck, thresholds.LUCK / 2)


def of_whole_run(name: str, run: Tally) -> bool:
    """Whether nearly all pairs follow a shortcut that a model without a cause falls into in about half of them.

    If it cannot compose, it may say what it says most often, or what belongs to the other operand.
    """
    return run.share >= thresholds.BROUGHT or not {USUAL_OPERAND, REPEATED, AFTER} & set(name.split(THEN))


def most_said(heard: Iterable[Heard], by_kind: bool = True, own: bool = False) -> Hypothesis:
    """The wrong value that is said most often where the same kind is asked for and another value is right.

    So it is said whatever is right. For cases without a table, the kind is the family. No value may be said as often.
    Right values do not count: where only a part of the cases follows the shortcut, they would hide it. A question that
    is a variant of several cases counts once.
    The answers to a case and its own variants do not count for it: they would only be said to repeat each other. With
    ``own``, only they count, for a case that is the only one of its kind in a run that admits the shortcut.
    With ``by_kind=False`` it is the value that is said most often as this operand, whatever kind is asked for.
    """
    given: set[tuple[object, str, str, int, tuple[str, str], str]] = set()
    for one in heard:
        for place, kind, right in _asked_for(one.case, by_kind):
            value = one.next_value(place)[0] if operands(one.case) else text.normalize(next(iter(_answered(one)), ""))
            if value and not _same(value, right):
                given.add((kind, right, value, place, _setting(one.case), one.variant.source))

    def say(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        said: list[str | None] = [None] * max(1, operands(case))
        source = source_of(case)
        for place, kind, right in _asked_for(case, by_kind):
            like = {(v, p, q) for k, r, v, p, q, s in given if k == kind and r != right and (s == source) == own}
            match Counter(value for value, *_ in like).most_common(2):
                case [(value, n), *rest] if not rest or rest[0][1] < n:
                    said[place] = value
        return tuple(said) if any(said) else ()

    return say


def _setting(case: Case) -> tuple[str, str]:
    """What tells settings apart; a case of a small family is a variant of several others."""
    return case.question, case.answer


def _asked_for(case: Case, by_kind: bool) -> list[tuple[int, object, str]]:
    """For each number that a case takes from its table: its place, the kind asked for, and the right one.

    For other cases: the family and the answer. Without ``by_kind``: each operand with its place as its kind.
    """
    if not by_kind:
        return [(place, place, right) for place, right in enumerate(working(case.worked).values[: operands(case)])]
    if (found := shown(case)) is None:
        return [] if operands(case) else [(0, case.family, text.normalize(case.answer))]
    kinds, tags = world.world().kinds, world.world().tags
    return [(p, kinds[t], str(tags[t])) for p, t in zip(tag_places(case, found[1]), found[1], strict=False)]


def one_sentence(failing: Sequence[Heard]) -> bool:
    """Whether most answers are one and the same sum though other operations are asked for.

    Then nothing that is asked has an effect, and none of the causes does this: a usual value stands for a value only.
    A question that is a variant of several cases counts once.
    """
    each = {_setting(one.case): one for one in failing if operands(one.case)}.values()
    written = Counter((text.normalize(one.text()), one.case.operation) for one in each)
    said = Counter[str]()
    for (words, _), n in written.items():
        said[words] += n
    words, n = max(said.items(), key=lambda item: item[1], default=("", 0))
    asked = {operation for other, operation in written if other == words}
    return len(asked) > 1 and n >= thresholds.FEWEST_DIFFERENT and n >= thresholds.TWO_THIRDS * sum(said.values())


KIND, TABLE, COPY, SAID = 1 / 3, 1 / 5, 1 / 20, 1 / 2
"""The chance that a wrong answer is what a shortcut predicts: another one of the kind asked for, another one on the
table, the very thing that is asked about, which a model that fails in another way seldom says, or what the other cases
say most often."""
MOST_SAID = "most-said"
LUCK = {
    "sibling": KIND, "usual-of-kind": KIND, "usual-answer": KIND, "entity-asked-about": COPY, MOST_SAID: SAID,
}  # fmt: skip


def luck(name: str, case: Case) -> float:
    """The chance that a wrong answer is what a shortcut predicts: at least that of any wrong one in its list."""
    known = max(LUCK.get(one, TABLE) for one in name.split(THEN))
    n = len(case.options) or max(map(len, lists_in(case.question)), default=len(listed(case.question)))
    return known if known == COPY or n < 2 else max(known, 1 / (n - 1))


def followed(
    name: str, hypothesis: Hypothesis, failing: Sequence[Heard], mates: Sequence[Case], wrong: Sequence[int] = (0,)
) -> Followed:
    """How often the answers of some variants are what the hypothesis predicts, at the operands ``wrong``."""
    edits: list[Edit] = []
    own: bool | None = None
    for one in failing:
        said = hypothesis(one.case, mates)
        n = operands(one.case)
        golds = working(one.case.worked).values[:n] if n else (one.case.answer,)
        for place in wrong if n else (0,):
            if place >= min(len(said), len(golds)) or said[place] is None or _same(said[place], golds[place]):
                continue
            itself = one.variant.source == one.case.id
            strict = itself and name == "entity-asked-about"
            written = [one.next_value(place)[0]] if n else _answered(one, strict)
            # operands that have changed places are another pattern, which none of the causes produces
            hit = not exchanged(one) and any(w is not None and _same(w, said[place]) for w in written)
            right, wrong_one = text.normalize(golds[place]), text.normalize(said[place] or "")
            edits.append(Edit(right, wrong_one, hit, luck(name, one.case)))
            if itself:
                own = hit and own is not False
    return Followed(name, sum(e.hit for e in edits), len(edits), own, edits)


def _answered(one: Heard, strict: bool = False) -> list[str]:
    """The possible answers in a response: all of it, or for a sentence the words before or after its verb.

    "The capital of the country where Porto is is Porto", "It is called El Porto" and "Porto is the capital of Portugal"
    all answer Porto. But any sentence about the entity asked about may begin with it ("Porto is in Portugal"). So with
    ``strict`` the words before the verb count only if those after it name what is asked for.
    """
    said = (one.grades["whole"].answer or one.text()).strip()
    pieces = re.split(r"\b(?:is|are|was|were)\b", said)
    bare = re.sub(r"^\s*(?:(?:called|named|the|el|la|le)\s+)+", "", pieces[-1], flags=re.IGNORECASE)
    first = pieces[0] if not strict or _is_what_is_asked(one.case, pieces[1:2]) else ""
    return [piece.strip() for piece in (said, first, pieces[-1], bare) if piece.strip()]


def _is_what_is_asked(case: Case, predicate: Sequence[str]) -> bool:
    """Whether a predicate ("the capital of Portugal", "a currency") begins with what only the whole asks for."""
    words = r"((?:(?!of\b|in\b|that\b|which\b)\w+\W+){1,3})"
    pattern = rf"\W*(?:\w+ly\W+|also\W+|indeed\W+)?(?:the {words}|an? (\w+)\W)"
    found = re.match(pattern, f"{predicate[0]} " if predicate else "", re.IGNORECASE)
    earlier = {w for part in case.parts[:-1] for w in re.findall(r"\w+", part.question.lower())}
    asked = set(re.findall(r"\w+", case.question.lower())) - earlier
    return found is not None and bool(asked & set(re.findall(r"\w+", (found[1] or found[2]).lower())))


def _same(a: str | None, b: str | None) -> bool:
    return text.normalize(without_commas(a or "")) == text.normalize(without_commas(b or ""))


def best(found: Iterable[Followed]) -> Followed | None:
    """The hypothesis that the most edits follow; None if no edit follows any."""
    return max((f for f in found if f.hits), key=lambda f: (f.hits / f.telling, f.telling), default=None)


class Shortcuts(NamedTuple):
    """How the answers of a run follow each hypothesis."""

    cases: Mapping[str, Mapping[str, Followed]]
    """By hypothesis and by case."""
    admitted: Mapping[str, Tally]
    """The hypotheses that the run admits, with how many of its pairs of right and predicted answer follow each."""

    def best(self, case: str) -> Followed | None:
        """The shortcut that the most edits of a case follow, of those that the run admits; None if it follows none."""
        return best(self.cases[name][case]._replace(run=run) for name, run in self.admitted.items())

    def rows(self) -> list[dict[str, Any]]:
        """For each hypothesis that some answer can tell apart: how many pairs follow it, and whether that is enough."""
        counted = {name: pairs(cases.values()) for name, cases in self.cases.items()}
        return [{"name": name, "own": name in hypotheses.HYPOTHESES.added, "count": run.k, "n": run.n,
                 "admitted": name in self.admitted} for name, run in counted.items()
                if run.n or name in hypotheses.HYPOTHESES.added]  # fmt: skip


def shortcuts(
    heard: Mapping[str, Sequence[Heard]], known: Sequence[Case], others: Mapping[str, Sequence[Heard]] | None = None
) -> Shortcuts:
    """How the failing answers follow each hypothesis, and which hypotheses the run admits.

    ``others`` are failing cases of the run that were not asked again; they count for the run only.
    """
    heard = {**heard, **(others or {})}
    failing = {id: [one for one in group if one.fails] for id, group in heard.items()}
    wrong = {id: behaviour(group).wrong_operands for id, group in heard.items()}

    def follow(name: str, hypothesis: Hypothesis, place: int | None = None) -> dict[str, Followed]:
        """How each case follows a hypothesis, at its wrong operands or at one of these."""
        at = {id: [p for p in places if place in (None, p)] for id, places in wrong.items()}
        return {id: followed(name, hypothesis, some, known, at[id]) for id, some in failing.items()}

    def admitted(some: Mapping[str, Mapping[str, Followed]]) -> dict[str, Tally]:
        run = {name: pairs(cases.values()) for name, cases in some.items()}
        return {name: run[name] for name, cases in some.items() if beyond_luck(run[name], [*cases.values()])}

    every = dict(hypotheses.HYPOTHESES.items())
    found = {name: follow(name, h) for name, h in every.items()}
    usual = "usual-of-kind" if any(map(shown, known)) else "usual-answer"
    for name, by_kind in ((usual, True), (USUAL_OPERAND, False)):
        every_one = [one for some in failing.values() for one in some]
        said = follow(MOST_SAID, most_said(every_one, by_kind))
        if admitted({name: said}) and not (name in found and admitted({name: found[name]})):
            alone = follow(MOST_SAID, most_said(every_one, by_kind, own=True))
            found[name] = {id: (one if one.telling else alone[id])._replace(name=name) for id, one in said.items()}
    operands = [admitted({name: follow(name, h, place) for name, h in every.items()}) for place in (0, 1)]
    if all(operands):  # a model may follow another shortcut for each operand: the best one at each
        names = [max(some, key=lambda name: some[name].share) for some in operands]
        both = THEN.join(names)
        found |= {both: follow(both, hypotheses.one_for_each(names))} if names[0] != names[1] else {}
    runs = {name: run for name, run in admitted(found).items() if of_whole_run(name, run)}
    if one_sentence([one for some in failing.values() for one in some]):
        values = {*hypotheses.UNWRITTEN}
        runs = {name: run for name, run in runs.items() if values.isdisjoint(name.split(THEN))}
    return Shortcuts(found, runs)
