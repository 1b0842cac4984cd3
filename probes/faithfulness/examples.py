"""Faithfulness over labelled examples: early answers, altered values, and their controls.

    over_examples(lm, examples).table

Each whole's own response is taken apart (``working``). It is cut after its first 0 to m steps and the final answer is
asked for in the model's own words (*early answering*); and each value written in it is replaced by one of another case,
after which the model continues (*corrupted steps*). Controls: the working is replaced by as many tokens that say
nothing, and each value is put in again unchanged.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import InputError, NoCasesError
from ...hooks.model import Model
from ...terminal import Bar, no_bar, stage
from ..examples import Example
from ..result import ProbeResult
from . import altering
from .altering import candidates
from .summary import SHOWN, CaseOutcomes, summarize
from .working import Working, question_of, read_working, same

FEWEST_TOKENS, MOST_TOKENS, SLACK = 24, 512, 16
TRIES = 3
"""Values looked at for each one that is put in, because the same answer may follow from some of them."""


@dataclass
class _Taken:
    """One whole with what was found in its response."""

    example: Example
    found: Working | str
    parts: dict[str, Example] = field(default_factory=dict)
    candidates: list[altering.Replacement] = field(default_factory=list)
    altered: list[altering.Altered] = field(default_factory=list)
    why: str = altering.NO_BRIDGE


def over_examples(
    lm: Model, examples: Sequence[Example], *, donors: int = 2, max_new_tokens: int | None = None, seed: int = 0,
    progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """Does the final answer of wholes come from their written working? Failures against successes, with controls.

    Quantities, shares of cases:

    * ``kept_early``: with a share ``shown`` of the steps (0, 1/4, ...) the answer is the final one already;
      ``kept_before_end``: the mean over all cuts before the end; ``settled_at``: the share from which on it stays.
    * ``answer_follows``, ``answer_stays``, ``answer_elsewhere``: after a value was altered, by ``step``: ``bridge``,
      ``operand``, ``result``, and ``all`` for bridges and operands together.
    * ``kept_filler``, ``kept_same``: the controls. ``undefined``: the cases in which ``measure`` cannot be taken, with
      the reason.

    ``donors``: other values for each written one. Cost: of a working of m steps, m + 2 continuations and 1 + ``donors``
    for each written value; where what follows has to be asked, a few more. Raises ``NoCasesError`` without wholes,
    ``InputError`` without a tokenizer.
    """
    if lm.tokenizer is None:
        raise InputError("faithfulness reads texts: open the model with its tokenizer")
    if donors < 1:
        raise InputError(f"donors={donors}; give at least 1")
    wholes = [e for e in examples if e.role == "whole"]
    if not wholes:
        raise NoCasesError(f"{len(examples)} examples: no whole among them")
    taken = _taken(lm, wholes, examples)
    with stage(progress, "faithfulness: what would follow", len(taken)):
        _alter(lm, taken, donors, seed)
    begun = [
        (t, b)
        for t in taken
        if isinstance(t.found, Working)
        for b in altering.beginnings(lm.tokenizer, t.example, t.found, t.altered)
    ]
    prompts = [(*t.example.prompt_ids, *b.ids) for t, b in begun]
    most = max_new_tokens or min(MOST_TOKENS, max(FEWEST_TOKENS, *(len(e.response_ids) + SLACK for e in wholes)))
    with stage(progress, "faithfulness: answers", len(set(prompts))):
        new = altering.continued(lm, prompts, most)
    found: dict[int, list[altering.AlteredOutcome]] = {}
    for (t, b), ids in zip(begun, new, strict=True):
        assert isinstance(t.found, Working)
        found.setdefault(id(t), []).append(altering.outcome(lm, t.example, t.found, b, ids))
    cases = [CaseOutcomes(t.example, t.found, t.why, tuple(found.get(id(t), ()))) for t in taken]
    rows, values, tensors = summarize(cases, examples, seed)
    settings = {
        "donors": donors, "max_new_tokens": most, "shown": list(SHOWN), "filler": altering.MARK.strip(), "seed": seed,
        "expected": {"answer_follows": "increasing", "kept_before_end": "decreasing"}, "dtype": str(lm.dtype),
    }  # fmt: skip
    return ProbeResult(
        "faithfulness", rows, tensors, dict.fromkeys(tensors, ("example",)), settings, _warnings(cases), values
    )


def _taken(lm: Model, wholes: Sequence[Example], examples: Sequence[Example]) -> list[_Taken]:
    """Every whole's response taken apart, with its parts."""
    parts: dict[str, dict[str, Example]] = {}
    pool: dict[tuple[str | None, str], list[str]] = {}
    for e in examples:
        if e.role.startswith("part:") and e.role.count(":") == 1 and e.gold is not None:
            parts.setdefault(e.case, {})[e.role] = e
            pool.setdefault((e.family, e.role), []).append(e.gold.answer.strip())
    out = []
    for e in wholes:
        mine = parts.get(e.case, {})
        like = {role: [p.gold.answer.strip(), *pool[e.family, role]] for role, p in mine.items() if p.gold is not None}
        out.append(_Taken(e, read_working(lm.tokenizer, e, lm.eos_ids, like), mine))
    return out


def _alter(lm: Model, taken: Sequence[_Taken], donors: int, seed: int) -> None:
    """Choose the values that are put in. If no case says what would follow from them, the model is asked."""
    tokenizer = lm.tokenizer
    golds = ((p, p.gold) for t in taken for p in t.parts.values())
    known = {question_of(lm.tokenizer, p): gold for p, gold in golds if gold is not None}
    pool = _pool(taken)
    for t in taken:
        if not isinstance(t.found, Working):
            t.why = t.found
            continue
        for written in t.found.written:
            rng = random.Random(f"{seed}/{t.example.case}/{written.what}/{written.role}")
            like = pool.get((t.example.family, written.what, written.role), {})
            others = [v for case, v in like.items() if case != t.example.case]
            t.candidates += candidates(tokenizer, t.found, written, others, t.parts, known, rng, TRIES * donors)
        if any(w.what != "result" for w in t.found.written):
            t.why = altering.NO_FOLLOWING
    asked = [(c.ask, c.gold) for t in taken for c in t.candidates if c.ask is not None and c.gold is not None]
    golds = dict(asked)
    prompts = list(golds)
    said = altering.continued(lm, prompts, MOST_TOKENS // 8)
    answers = {ids: altering.answer_to(lm, golds[ids], new) for ids, new in zip(prompts, said, strict=True)}
    for t in taken:
        t.altered = _chosen(lm, t, answers, donors)
        if any(c.written.what != "result" and _follows(t, c, answers) is not None for c in t.candidates):
            t.why = altering.NOT_WRITTEN


Pool = dict[tuple[str | None, str, str], dict[str, str]]
"""Each case's own value, by family, kind of value and role."""


def _pool(taken: Sequence[_Taken]) -> Pool:
    """Like values: of a part its gold answer, of operands and results what is written."""
    found: Pool = {}
    for t in taken:
        family, case = t.example.family, t.example.case
        for role, part in t.parts.items():
            assert part.gold is not None
            found.setdefault((family, "bridge", role), {})[case] = part.gold.answer.strip()
        if isinstance(t.found, Working):
            found.setdefault((family, "result", "whole"), {})[case] = t.found.answer
            for w in t.found.written:
                if w.what == "operand":
                    found.setdefault((family, w.what, w.role), {})[case] = w.value
    return found


Answers = Mapping[tuple[int, ...], str | None]
"""The model's answer to each prompt that asks what would follow; None if it cannot be read."""


def _follows(t: _Taken, c: altering.Replacement, answers: Answers) -> str | None:
    """The other answer that follows from a value; None if it is not known, or if it is the same answer."""
    assert isinstance(t.found, Working)
    follows = c.follows if c.ask is None else answers[c.ask]
    return None if follows is None or same(follows, t.found.answer) else follows


def _chosen(lm: Model, t: _Taken, answers: Answers, donors: int) -> list[altering.Altered]:
    """For each written value, the first other values from which another answer follows."""
    out: list[altering.Altered] = []
    for c in t.candidates:
        follows = _follows(t, c, answers)
        if follows is None or sum(a.written is c.written for a in out) == donors:
            continue
        ids = altering.put_in(lm.tokenizer, t.example, c.written, c.value)
        if ids:
            out.append(altering.Altered(c.written, c.value, follows, c.known, ids))
    return out


def _warnings(cases: Sequence[CaseOutcomes]) -> list[str]:
    reasons: dict[str, int] = {}
    for c in cases:
        if isinstance(c.found, str):
            reasons[c.found] = reasons.get(c.found, 0) + 1
    found = [f"{k} of {len(cases)} wholes: {why}" for why, k in reasons.items()]
    broken = [o for c in cases for o in c.outcomes if o.measure == "same" and o.kept is False]
    if broken:
        found.append(f"{len(broken)} responses end in another answer though the same value was put in again")
    return found
