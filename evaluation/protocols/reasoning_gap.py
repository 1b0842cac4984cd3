"""The reasoning gap (Compositional GSM): Q1, Q2 with its number, and the pair in which X carries Q1's answer to Q2.

    get("reasoning-gap", code=True).reduce(rows).metrics

Gap = S_comp - S_1 * S_2 (eq. 1), negative when the pair is worse than two independent answers would be. Diagnostics:
``distraction`` = mean(Q1 inside the pair) - mean(Q1 alone); ``second_hop`` = P(pair right | Q1 right inside the pair);
``leakage`` = mean(original of Q2) - mean(Q2); ``co_presented`` = accuracy of Q2 beside an independent Q1;
``code_gain`` = (acc_code - acc_text) / acc_text, with ``code_refused`` beside it: programs not run.
Rows with the group ``against`` are differences to Q2 alone.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ...errors import InputError
from .. import prompts
from ..asks import Ask, Grade
from ..case import Case
from ..graded import Graded
from ..grading.extract import CODE, PAIR_Q1
from ..metrics import Metric, extreme_mean
from ..sandbox.results import NOT_RUN, REASONS
from ..text_files import text_field
from . import compositionality_gap as gap
from . import counting
from .asking import MAX_TOKENS, ask_part, ask_whole, check_formats, pending
from .base import About, Reduction
from .counting import Item, Truth
from .presenting import Exemplar

CODE_INSTRUCTION = (
    "Answer with Python code only: a function solve_q1() that returns the answer to Q1, and a function solution() "
    "that sets X = solve_q1() and returns the answer to Q2."
)

NO_LEAKAGE = (
    "leakage was not measured: no case has meta.original, the question and answer that its Q2 was made from "
    "(`composcope build compositional-gsm` writes it)"
)


def _chains(items: Sequence[dict[str, str]]) -> list[Exemplar]:
    """Q1, Q2 with its number, the pair, the pair as code, and Q2 beside the next item's Q1."""
    found = []
    for i, item in enumerate(items):
        first, worked_1 = item["answer_1"], item["worked_1"]
        second, worked_2 = item["answer_2"], item["worked_2"].replace("{X}", first)
        alone = item["question_2"].replace("X", first, 1)
        other = items[(i + 1) % len(items)]
        pair = prompts.pair(item["question_1"], item["question_2"])
        both = prompts.co_presented(other["question_1"], alone)
        found += [
            Exemplar("q1", item["question_1"], first, worked_1),
            Exemplar("q2", alone, second, worked_2),
            Exemplar("pair", pair, second, f"A1: {worked_1}. X is {first}. A2: {worked_2}"),
            Exemplar("co-presented", both, second, f"A1: {other['worked_1']}. A2: {worked_2}"),
            Exemplar("code", pair, f"```python\n{item['code']}\n```"),
        ]
    return found


@dataclass(frozen=True)
class ReasoningGap:
    """``--protocol reasoning-gap``.

    ``format`` is the prompt format of all roles in words; ``code`` also asks for the pair's solution as code, which is
    run in the sandbox when graded. Cases carry in ``meta``: ``question_2`` (Q2 with X) or a question that has the X
    already, ``independent`` (a Q1 that Q2 does not depend on, see ``co_present``) and ``original`` (question and answer
    that Q2 was made from).
    """

    format: str = "cot"
    code: bool = False
    max_tokens: int | None = None
    compat: str | None = None
    seed: int = 0
    name: str = field(default="reasoning-gap", init=False)
    about: ClassVar = About(
        roles=("whole", "part:N", "pair:q1", "co-presented", "original", "code", "part:N:extra-context", "whole:WAY",
               "self-ask"),
        needs=("whole", "part:0", "part:1"),
        options={"code": "code", "co_presented": ""},
        prepares={"co_presented": lambda cases, seed: co_present(cases, seed)},
        two_steps=True,
        examples=("chains.jsonl", _chains),
        example_kinds={"part:0": "q1", "part:1": "q2", "original": "q2", "whole": "pair"},
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_formats(self.format)

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """Q1, Q2 and the pair; Q1 inside the pair (the same prompt, read for its first answer); the controls."""
        if len(case.parts) != 2:
            raise InputError(f"case {case.id!r}: the reasoning gap needs 2 parts, Q1 and Q2, got {len(case.parts)}")
        first, second = case.parts
        pair = pair_question(case)
        whole = ask_whole(case, "whole", pair, self.format, self.max_tokens)
        within = {
            "gold": first.answer, "answer_type": first.answer_type, "aliases": first.aliases, "kind": first.kind,
            "options": first.options,
        }  # fmt: skip
        found = [
            ask_part(case, 0, "part:0", first.question, self.format, self.max_tokens),
            ask_part(case, 1, "part:1", second.question, self.format, self.max_tokens),
            whole,
            replace(whole, role="pair:q1", format=PAIR_Q1, **within),
        ]
        where = f"case {case.id!r}: meta"
        if "independent" in case.meta:
            text = prompts.co_presented(text_field(case.meta, "independent", where), second.question)
            found.append(ask_part(case, 1, "co-presented", text, self.format, self.max_tokens))
        if "original" in case.meta:
            original, where = case.meta["original"], f"{where}.original"
            if not isinstance(original, Mapping):
                raise InputError(f"{where} is {original!r}; give an object with the fields question and answer")
            ask = ask_part(case, 1, "original", text_field(original, "question", where), self.format, self.max_tokens)
            found.append(replace(ask, gold=text_field(original, "answer", where), aliases=()))
        if self.code:
            limit = self.max_tokens or MAX_TOKENS["cot"]
            prompt = f"{whole.question}\n{CODE_INSTRUCTION}"
            found.append(replace(whole, role="code", prompt=prompt, format=CODE, max_tokens=limit, stop=()))
        return pending(found, graded)

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """Accuracies, the three gaps, the diagnostics, and failures at the second hop against successes."""

        def count(chosen: Sequence[Graded], _: object) -> counting.Counted:
            items = counting.items(chosen, cases, parts=2)
            metrics: list[Metric] = []
            for cell, members in counting.grouped(items):
                metrics += gap.cell_metrics(members, 2, cell, self.seed) + diagnostics(members, cell, self.seed)
            warnings = gap.missing(items)
            if cases is not None and not any("original" in item.rows for item in items):
                warnings.append(NO_LEAKAGE)
            found = []
            for item in items:
                needed = ("part:0", "part:1", *(r for r in ("pair:q1",) if r in item.rows))
                if counting.all_of(map(item.truth, needed)) is True and (whole := item.truth("whole")) is not None:
                    evidence = item.evidence(["part:0", "part:1", "pair:q1", "whole"])
                    found.append((f"second-hop-{'success' if whole else 'failure'}", item.entry(evidence)))
            return metrics, warnings, found

        sets = {"second-hop-failure": "failure", "second-hop-success": "success"}
        return counting.reduced(rows, self.compat, sets, count)


def pair_question(case: Case) -> str:
    """The question of the pair: the case's question where it is a pair already, else made from Q1 and Q2 with X.

    Q2 is ``meta["question_2"]``, or the case's question where that has an X. Raises ``InputError`` where neither has:
    without an X, nothing of Q1 is needed.
    """
    opening = prompts.pair("\0", "\0").partition("\0")[0]
    if case.question.startswith(opening):
        return case.question
    second = str(case.meta.get("question_2", case.question))
    if not re.search(r"\bX\b", second):
        raise InputError(
            f"case {case.id!r}: the reasoning gap needs a Q2 that uses X, Q1's answer; add it as meta.question_2 (see "
            "`composcope build compositional-gsm`), or use --protocol compositionality-gap"
        )
    return prompts.pair(case.parts[0].question, second)


def co_present(cases: Sequence[Case], seed: int = 0) -> list[Case]:
    """The cases, each with the Q1 of another case as its independent question (the capacity control, figure 12).

    Cases of which some have one already stay as they are, and so does a case whose Q1 all others have.
    """
    if any("independent" in case.meta for case in cases):
        return list(cases)
    order = [i for i, case in enumerate(cases) if case.parts]
    random.Random(seed).shuffle(order)
    made = list(cases)
    for place, i in enumerate(order):
        others = (cases[j] for j in chain(order[place + 1 :], order[:place]))
        if (other := _unrelated(cases[i], others)) is not None:
            made[i] = replace(cases[i], meta={**cases[i].meta, "independent": other.parts[0].question})
    return made


def _unrelated(case: Case, others: Iterable[Case]) -> Case | None:
    """The first case with another Q1 that shares nothing with the case; else the first with another Q1, if any.

    Several cases may have one Q1, and a case that shares something may ask for what this Q2 needs.
    """
    shared, found = {case.cluster, *case.crossed} - {None}, None
    for other in others:
        if other.parts[0].question != case.parts[0].question:
            if shared.isdisjoint((other.cluster, *other.crossed)):
                return other
            found = found or other
    return found


def diagnostics(items: Sequence[Item], group: Mapping[str, Any], seed: int) -> list[Metric]:
    """Possible reasons of the gap, for the roles that were asked."""
    metrics = []

    def difference(metric: str, of: Sequence[Item], a: str, b: str, note: str, **more: Any) -> Metric:
        left: list[Truth] = [item.truth(a) for item in of]
        right: list[Truth] = [item.truth(b) for item in of]
        found = counting.difference(metric, left, right, {**group, **more}, seed=seed, of=of)
        return replace(found, note=counting.join(found.note, note))

    if inside := [item for item in items if "pair:q1" in item.rows]:
        metrics.append(difference("distraction", inside, "pair:q1", "part:0", "Q1 in the pair - Q1 alone"))
        outcomes = [(item.truth("pair:q1"), item.truth("whole")) for item in inside]
        metrics.append(counting.given("second_hop", outcomes, inside, group, "pair right given Q1 right in the pair"))
        known = [item for item in inside if item.truth("pair:q1") is True]
        note = "pair - Q2 alone, given Q1 right in the pair"
        found = difference("second_hop", known, "whole", "part:1", note, against="step:1")
        metrics.append(_with_open(found, [item for item in inside if item.truth("pair:q1") is None], known))
    if beside := [item for item in items if "co-presented" in item.rows]:
        values = [item.truth("co-presented") for item in beside]
        note = "Q2 beside an independent Q1"
        metrics.append(counting.rate("co_presented", values, group, of=beside, note=note))
        note = "Q2 beside an independent Q1 - Q2 alone"
        metrics.append(difference("co_presented", beside, "co-presented", "part:1", note, against="step:1"))
    if original := [item for item in items if "original" in item.rows]:
        metrics.append(difference("leakage", original, "original", "part:1", "original of Q2 - Q2"))
    if coded := [item for item in items if "code" in item.rows]:
        metrics.append(code_gain(coded, group, seed))
        metrics.append(code_refused(coded, group))
        values = [item.truth("code") for item in coded]
        metrics.append(counting.rate("composition", values, {**group, "prompt": "code"}, of=coded))
    return metrics


def _with_open(found: Metric, open_: Sequence[Item], known: Sequence[Item]) -> Metric:
    """The difference of pair and Q2 over ``known`` items, with the bounds that ``open_`` items may move, too."""

    def ends(items: Sequence[Item], otherwise: bool) -> list[int]:
        pairs = [(item.truth("whole"), item.truth("part:1")) for item in items]
        return [(otherwise if a is None else a) - (not otherwise if b is None else b) for a, b in pairs]

    low, high = (extreme_mean(ends(known, best), ends(open_, best), end) for best, end in ((False, min), (True, max)))
    return replace(found, n_invalid=found.n_invalid + len(open_), bound_low=low, bound_high=high)


def code_gain(items: Sequence[Item], group: Mapping[str, Any], seed: int, role: str = "code") -> Metric:
    """Relative gain of code over words, (acc_code - acc_text) / acc_text; null where no text answer is right.

    ``role`` names another way of asking the whole, whose gain is then measured.

    The bounds count every undecided answer in code as wrong and in words as right, or the other way round.
    """
    pairs = [(item, item.truth(role), item.truth("whole")) for item in items]
    known = [(item, c, w) for item, c, w in pairs if c is not None and w is not None]

    def gain(s: np.ndarray) -> np.ndarray:
        return (s[..., 0] - s[..., 1]) / s[..., 1]

    right = sum(w is True for _, _, w in pairs)
    least = _relative(sum(c is True for _, c, _ in pairs), sum(w is not False for _, _, w in pairs))
    most = _relative(sum(c is not False for _, c, _ in pairs), right)
    is_open = len(known) < len(items)
    unbounded = "no upper bound: every answer in words may be wrong" if is_open and not right else None
    return counting.statistic(
        "code_gain",
        [(bool(c), bool(w)) for _, c, w in known],
        gain,
        group,
        seed=seed,
        n_invalid=len(items) - len(known),
        of=[item for item, _, _ in known],
        note=counting.join("(code - text) / text", unbounded),
        bounds=(least, most) if is_open else None,
        possible=(-1, math.inf),
        rates=([(bool(c), bool(w)) for _, c, w in known], gain),
    )


def code_refused(items: Sequence[Item], group: Mapping[str, Any]) -> Metric:
    """Share of the programs that the sandbox refused or cut off; their cases are not in the gain.

    Programs that failed for another reason (an error, no answer) do not count here; the note gives both counts.
    """
    reasons = [str(item.rows["code"].reason).removeprefix("code: ") for item in items]
    stopped = Counter(r for r in reasons if r in NOT_RUN)
    failed = Counter(r for r in reasons if r in REASONS and r not in NOT_RUN)
    told = [", ".join(f"{n} {r}" for r, n in sorted(found.items())) for found in (stopped, failed)]
    note = counting.join(
        "programs that the sandbox did not run", told[0], f"by themselves: {told[1]}" if failed else None
    )
    values: list[Truth] = [r in NOT_RUN for r in reasons]
    return counting.rate("code_refused", values, {**group, "prompt": "code"}, of=items, note=note)


def _relative(code: int, text: int) -> float | None:
    return (code - text) / text if text else None
