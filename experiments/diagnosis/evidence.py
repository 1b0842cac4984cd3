"""The evidence on a case before a cause is named: what its answers show, and how interventions change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scipy.special import bdtr

from ..run.diagnosis import TEXTS

SHOWN = ("format", "near-miss", "order-error", "item-missing", "answers-bridge")
"""Causes that an answer's own text can show."""


@dataclass(frozen=True)
class Tally:
    """k of n failing variants."""

    k: int = 0
    n: int = 0
    unjudged: int = 0
    """How many of the others show neither, because their answer cannot be judged."""

    @property
    def share(self) -> float:
        return self.k / self.n if self.n else 0.0

    def __str__(self) -> str:
        return f"{self.k} of {self.n}" + (f" ({self.unjudged} cannot be judged)" if self.unjudged else "")


def rare(shown: Tally, share: float, unlikely: float) -> bool:
    """Whether ``k`` or fewer of ``n`` is less likely than ``unlikely``, if each has a chance of ``share``."""
    return bool(shown.n) and float(bdtr(shown.k, shown.n, share)) < unlikely


def beyond(shown: Tally, luck: float, unlikely: float) -> bool:
    """Whether ``k`` or more of ``n`` is less likely than ``unlikely``, if each has a chance of ``luck``."""
    return rare(Tally(shown.n - shown.k, shown.n), 1 - luck, unlikely)


class Edit(NamedTuple):
    """A failing setting that tells a hypothesis apart."""

    right: str
    said: str
    """What the hypothesis predicts."""
    hit: bool
    """Whether the model answers that."""
    luck: float
    """The chance that a model which fails in another way answers that."""


class Followed(NamedTuple):
    """How many edits follow a hypothesis, out of those where it predicts something other than the right answer."""

    name: str
    hits: int
    telling: int
    own: bool | None = None
    """Whether the case itself follows the hypothesis; None if the case cannot tell."""
    edits: Sequence[Edit] = ()
    """The single edits."""
    run: Tally = Tally()
    """Of the different pairs of right and predicted answer over the run's failing cases, how many follow it."""
    of_run: bool = True
    """Whether the pairs are those of the run, or those of a group of its cases (``Apart``)."""


def pairs(cases: Iterable[Followed]) -> Tally:
    """How many different pairs of right and predicted answer follow a hypothesis, over the failing cases of a run.

    A model that fails in another way may have one wrong answer for each right one, so a pair counts once.
    """
    found: dict[tuple[str, str], list[bool]] = {}
    for edit in (edit for case in cases for edit in case.edits):
        found.setdefault((edit.right, edit.said), []).append(edit.hit)
    return Tally(sum(2 * sum(hits) > len(hits) for hits in found.values()), len(found))


class Behind(NamedTuple):
    """How a part is answered behind the whole's context."""

    own: bool
    """Whether it is the whole's own wrong answer in the case itself."""
    wrong: Tally
    """Wrong answers in the failing settings. The part is right alone in all of them."""
    same: Tally
    """Failing settings in which it is the wrong answer that the whole gives."""
    success: Tally
    """The control: wrong answers in the run's cases of its family whose own whole is right. Variants of failing cases
    are left out: one that is right by luck may have the same fault."""
    other: Tally = Tally()
    """The control: failing settings in which a part about something else, asked behind the same context, gets that
    answer as well. Then the answer comes from the context, whatever is asked."""
    telling: bool = True
    """Whether ``same`` says something: the part's right answer is the whole's, and it is not one of a few."""
    own_wrong: bool = False
    """Whether it is wrong in the case itself."""


@dataclass(frozen=True)
class Behaviour:
    """What the answers to a case and its variants show."""

    fails: bool
    """Whether the case itself fails when it is asked again."""
    n: int
    """Number of failing variants, including the case."""
    variants: int
    """Number of variants asked, without the case."""
    answers: Mapping[str, Tally] = field(default_factory=dict)
    """For each cause that an answer's own text can show (``SHOWN``), how many failing variants show it."""
    own: str | None = None
    """The cause that the text of the case's own answer shows."""
    said: Mapping[str, str] = field(default_factory=dict)
    """For each such cause, what was seen in the first answer that shows it."""
    mended: Mapping[str, Tally] = field(default_factory=dict)
    """For each text forced or stated (``neutral``, ``relation``, ...), how often it mends the whole."""
    operands_right: Tally = Tally()
    """Variants with every operand right when the operands before it are forced."""
    operation_wrong: Tally = Tally()
    """Of these, variants with a wrong operation or result."""
    other_operation: Tally = Tally()
    """Of these, variants with the result that another operation gives for the same operands."""
    sums: frozenset[str] = frozenset()
    """The different sums among these; in a run, over all its cases with the results of another operation."""
    wrong_operands: Sequence[int] = ()
    """Positions of the operands that are wrong in most of the variants."""
    shortcut: Followed | None = None
    unavailable: Mapping[str, Tally] = field(default_factory=dict)
    """For each part (``part:0``, ...), how many of its wordings besides the plain one are not answered correctly."""
    exchanged: Tally = Tally()
    """Variants in which the operands have changed places."""
    from_case: Tally = Tally()
    """Written operands that belong to an item of the case, out of all written operands."""
    from_cases: Tally = Tally()
    """The same over the cases that are weighed together: those that were opened (of a group), before that all."""
    wrong_numbers: Sequence[tuple[str, frozenset[str]]] = ()
    """Every wrong operand that was written, and the numbers of all items of its case."""
    of_items: Tally = Tally()
    """Wrong operands that belong to an item of their case, over the cases that are weighed together."""
    by_luck: float | None = 0.0
    """The share of them that belongs to an item of another of these cases; None if only one case has wrong operands."""
    other_operand: Tally = Tally()
    """Wrong operands with the value of the other operand, out of all wrong operands, where the two differ."""
    other_operands: Tally = Tally()
    """The same over the cases that are weighed together, as in ``from_cases``."""
    asked: Tally = Tally()
    """Failing variants with a wrong operand that write the operation asked for, out of those that write one."""
    asked_in_run: Tally = Tally()
    """The same over all failing cases of the run."""
    own_operands_right: bool = False
    """Whether the case itself has every operand right, so that nothing before its operation is wrong."""
    last: str = ""
    """The last part, which has the operation; a case with its own operands right knows those before it."""
    unknown: int = 0
    """Number of settings with a part that is not right: they neither fail nor come out right."""
    specific: bool = True
    """Whether the text of the case's own answer names its fault; an answer that cannot be judged names none."""
    shared: Mapping[str, Tally] = field(default_factory=dict)
    """For each unspecific sign of a cause (``rule.signs``), how many of the run's failing cases show it."""
    spoilt: Tally = Tally()
    """Failing cases of the family with a part that the whole's context spoils, if this is one."""
    as_whole: Tally = Tally()
    """Those whose part then gives the whole's own answer, if this is one."""
    behind_in_run: Tally = Tally()
    """Parts that are wrong behind the whole's context, over the failing settings of all failing cases of the run; only
    parts that are right behind the context of right wholes."""
    fails_in_run: Tally = Tally()
    """Settings with right parts that fail, over all failing cases of the run."""
    throughout: Mapping[str, Tally] = field(default_factory=dict)
    """The same of the signs that nearly all settings of a case show, those that do not fail counted as well."""
    behind: Mapping[str, Behind] = field(default_factory=dict)
    """For each part that can be asked behind the whole's context, how it is answered there."""
    once: Behaviour | None = None
    """The same of those settings that no other case of the run has as well, for counts over the run; None: of all."""

    def settings(self) -> str:
        """How many settings fail, and in how many others a part is not right, in words."""
        others = f", and in {self.unknown} more a part is not right" if self.unknown else ""
        return f"{self.n} of {self.variants + 1} settings fail{others}"


@dataclass(frozen=True)
class Found:
    """One intervention at the cell that the other cases chose."""

    cell: str
    """``place:layer``"""
    own: Tally = Tally()
    """Variants that the intervention mends."""
    noise: Tally = Tally()
    """The control with noise of the same size: variants that it mends. For a left-out block: variants that leaving out
    other blocks mends."""
    foreign: Tally = Tally()
    """The control with a foreign donor: variants that give the donor's answer. For back-patching: variants that a
    foreign state mends."""
    pool: Tally = Tally()
    """The same test on the variants of the cases that chose the cell."""
    same: Tally = Tally()
    """Variants that are mended by the state of a similar part about another entity with the same answer."""
    noise_pool: Tally = Tally()
    """The same control on the variants of the cases that chose the cell."""
    foreign_pool: Tally = Tally()
    """The variants of these cases that give a foreign donor's answer."""
    values: Tally = Tally()
    """The different right values at the decisions of the pool, and of how many it mends most variants."""
    gone: int | None = None
    """Of a reading: the next layer at which it was made, where most of the right ones are gone."""

    @property
    def layer(self) -> int:
        return int(self.cell.rpartition(":")[2].partition(">")[0])

    @property
    def loses(self) -> int | None:
        """The block that loses what is read; None if several blocks lie between this reading and the next one."""
        return self.layer + 1 if self.gone in (None, self.layer + 1) else None


class Apart(NamedTuple):
    """One of two groups of a run's opened cases. They may have different causes, so they are weighed apart."""

    change: str
    """The change that mends nearly all variants of one group, and few of the other."""
    cases: frozenset[str]
    """The cases of this group."""
    of: int
    """The number of all opened cases."""

    def __str__(self) -> str:
        own = f"({self.change}; this one has {len(self.cases)} of {self.of} cases)"
        return f"two groups of cases, of which only one is mended by a change {own}; weighed apart"


@dataclass(frozen=True)
class Inside:
    """What interventions and readings show about a case."""

    n: int = 0
    """Failing variants whose decision was found and whose own part is right."""
    tests: Mapping[str, Found] = field(default_factory=dict)
    """The result of each test (``skip``, ``back``, ``own:entity``, ``own:decision``)."""
    seen: Tally = Tally()
    """Variants in which the right answer is on top after some layer but not at the end."""
    cut: Mapping[str, Tally] = field(default_factory=dict)
    """Variants whose wrong answer goes away if the decision does not attend to the words that a shortcut copies
    (``source``), or to as many others (``other``); ``mended``: those that are right without the source."""
    cuts: Tally = Tally()
    """The same for the source, over all cases that follow the shortcut."""
    worked: int = 2
    """The number of different right workings (or answers) of the variants. One error may come back in all of a kind."""
    enough: bool = True
    """Whether enough cases were opened for the others to choose where this one is judged."""
    apart: Apart | None = None
    """The group that the case is weighed in, if there are two."""
    uncomputed: Tally = Tally()
    """Opened cases of the family, without those that have another cause, in which no state holds the bridge; empty
    unless this is one or most are."""

    def test(self, name: str) -> Found:
        """The result of a test; an empty one if it was not made."""
        return self.tests.get(name, Found("none:0"))


def behaviour_lines(found: Behaviour) -> list[str]:
    """The evidence from the answers, one statement per line."""
    out = [f"the case and its variants: {found.settings()}"]
    out += [f"{found.answers[c]} answers: {said}" for c, said in found.said.items()]
    out += [f"{TEXTS[k]}: right in {t}" for k, t in found.mended.items()]
    if found.operands_right.n:
        sums = f" ({len(found.sums)} different sum{'s' * (len(found.sums) != 1)} over the run)"
        other = f", the result of another operation in {found.other_operation}{sums}" if found.other_operation.k else ""
        wrong = f"operation or result wrong in {found.operation_wrong}{other}"
        out.append(f"every operand right in {found.operands_right}; of these, {wrong}")
    if found.shortcut is not None:
        s = found.shortcut
        among = "over the run" if s.of_run else "over its group of cases"
        pairs = f"; {among}, {s.run} different pairs of right and predicted answer do" if s.run.n else ""
        out.append(f"shortcut {s.name}: {s.hits} of {s.telling} edits that tell it apart follow it{pairs}")
    if found.exchanged.k:
        out.append(f"the operands have changed places in {found.exchanged}")
    if found.from_case.n:
        luck = "not known by luck" if found.by_luck is None else f"by luck {100 * found.by_luck:.0f} %"
        others = f"; in the cases weighed together {found.of_items} wrong ones, {luck}"
        out.append(
            f"operands it wrote that belong to an item of the case: {found.from_case}{others * bool(found.of_items.n)}"
        )
    if found.other_operand.k:
        out.append(
            f"wrong operands with the other operand's value: {found.other_operand}; in the cases weighed together "
            f"{found.other_operands}"
        )
    if found.asked.n and found.asked_in_run.k < found.asked_in_run.n:
        written = f"{found.asked}; in the failing cases of the run, in {found.asked_in_run}"
        out.append(f"beside wrong operands it wrote the operation asked for in {written}")
    out += [f"other wordings of {part} not answered: {t}" for part, t in found.unavailable.items()]
    for part, b in found.behind.items():
        same = f", with the whole's own answer in {b.same}" if b.telling else ""
        same += f" (so is another question there in {b.other})" if b.telling and b.other.n else ""
        out.append(
            f"{part} behind the whole's context: wrong in {b.wrong}{same}; where the whole is right, in {b.success}"
        )
    if found.behind_in_run.n:
        fails, wrong = found.fails_in_run, found.behind_in_run
        out.append(
            f"over the run: {fails} settings fail; in these, parts behind the whole's context are wrong in {wrong}"
        )
    if found.spoilt.n:
        same = f", with the whole's own answer: {found.as_whole}" if found.as_whole.n else ""
        out.append(f"failing cases of the family with a part that its whole's context spoils: {found.spoilt}{same}")
    for name, t in found.shared.items():
        whole = f"; in four of five of all their settings: {found.throughout[name]}" if name in found.throughout else ""
        out.append(f"failing cases of the run with this sign ({name}): {t}{whole}")
    return out


def inside_lines(found: Inside) -> list[str]:
    """The evidence from inside the model, one statement per line."""
    if not found.n:
        why = "its decision was not found, it is right there already, or its own part is not"
        return [f"no failing variant could be opened: {why}"]
    answers = "the same right answer" if found.worked == 1 else f"{found.worked} different right answers"
    out = [f"opened at the decision of {found.n} failing variants, with {answers}"]
    if found.apart is not None:
        out.append(str(found.apart))
    if found.uncomputed.n:
        without = "opened cases of the family without another cause (four at least)"
        out.append(f"{without} that lack it: {found.uncomputed}")
    if found.cut:
        source, other = found.cut["source"], found.cut["other"]
        gone = f"goes away in {source} (as many other words: {other}), right in {found.cut['mended']}"
        weak = "; cutting other words has at least half that effect, so this does not show where it was copied from"
        said = weak if source.k and 2 * other.share >= source.share else ""
        out.append(f"attention to the copied words cut: the wrong answer {gone}{said}")
    words = {
        "skip": "leaving out a block",
        "back": "the later state put into an earlier layer",
        "across": "the later state of another place put where the answer is decided, in an earlier layer",
        "exit": "the answer read after an earlier layer",
        "move": "the state of another place put where the answer is decided",
        "noise": "noise of the donors' size",
        "scope:decision": "the state there, read by a similar part",
        "scope:elsewhere": "the state of another place, read by a similar part",
        "own:entity": "the own part's state at the entity",
        "own:decision": "the own part's state at the decision",
        "own:later": "the own part's state there, in a later layer",
    }
    pool = "in the other cases" if found.enough else "over all opened variants"
    for name, test in found.tests.items():
        control = "other blocks" if name == "skip" else "noise"
        noise = f", {control} {test.noise}" if test.noise.n else ""
        other = "a foreign state mends" if name == "back" else "a foreign state gives its own answer in"
        foreign = f", {other} {test.foreign}" if test.foreign.n else ""
        same = f", a state with the same answer mends {test.same}" if test.same.n else ""
        does = "is right in" if name.startswith(("scope", "exit")) else "mends"
        elsewhere = f"; {pool} {test.pool}" if test.pool.n else ""
        out.append(f"{words[name]} ({test.cell}): {does} {test.own}{noise}{foreign}{same}{elsewhere}")
    return out
