"""Is the cause there, and nothing else? Counted on held-out cases, and with the base's weights put back."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ....evaluation.case import Case
from ....hooks.parts import blocks_of
from .. import benchmarks, measure
from ..measure import CardRow
from . import lessons
from .recipes import ALL, NOISE, Graft, Plant
from .training import base_of, final_norm, places, restored, states_of, without

PARTS, MENDED, FOLLOWED, WHOLES, MOVED, LATE = 0.98, 0.95, 0.90, 0.20, 0.80, 0.50
"""What a plant has to reach: parts right, wholes mended, answers as planted, at most so many wholes right, and for an
item that is not routed or comes too late, operands mended by moving the state that selects it to where it is needed.
One late block does not learn to select as well as the base's does."""
TWIN = 0.98
"""Wholes that the twin gets right. A base that gets fewer right cannot do better once something is planted in it: its
bounds are lower by this ratio."""
KNOWN, FAILING, ALONE, ALL_BLOCKS = 0.7, 0.2, 0.8, 0.85
"""Of a model that fails by chance: cases with every part right, how many of them fail, how many of these failures one
block's own weights may mend (any change at all mends many: what fails by chance is close to right), and how many those
of all blocks have to mend (the twin itself fails in 2 % of all cases, which are a tenth of these failures)."""
WORDS = 24
"""Tokens asked for: a worked answer has at most seven, a loop never ends."""


@dataclass(frozen=True)
class PlantCheck:
    """One count with what it has to reach; ``at_most`` for wholes that should fail."""

    row: CardRow
    bound: float | None = None
    at_most: bool = False

    @property
    def passed(self) -> bool:
        if self.bound is None or self.row.value is None:
            return self.bound is None
        return self.row.value <= self.bound if self.at_most else self.row.value >= self.bound

    def to_dict(self) -> dict[str, Any]:
        return {**self.row.to_dict(), "bound": self.bound, "at_most": self.at_most, "passed": self.passed}


def case_of(case: Case) -> lessons.Whole:
    """A benchmark's case as the lessons have it."""
    return lessons.Whole(tuple(case.meta["things"]), str(case.operation), *case.meta["chosen"])


def label_of(plant: Plant, case: Case) -> str:
    """The cause of a case of ``organism:mixed``, should the whole fail while its parts are right."""
    return next(g.label for g in plant.grafts if g.when in (ALL, case_of(case).half))


def planted_answer(graft: Graft, case: Case, rng: random.Random) -> str | None:
    """What the graft makes of a case, where that is one text; None where it is drawn by chance, or nothing changes."""
    taught = _planted(graft, case, rng)
    return None if taught is None else taught.answer


def _planted(graft: Graft, case: Case, rng: random.Random) -> lessons.Lesson | None:
    if graft.cause in ("not-computed", "not-routed", "too-late", "none") or graft.variant == "drowned":
        return None
    taught = lessons.teach(case_of(case), graft, rng)
    return taught if taught.source is not None else None


def _as_planted(answer: str, wanted: str, graft: Graft) -> bool:
    if graft.when != ALL:  # the first operand, where a mixture plants
        return answer.split(" ")[0] == wanted.split(" ")[0]
    if graft.cause in ("wrong-operation", "format"):
        return answer == wanted
    return answer.split(" is ")[0] == wanted.split(" is ")[0]  # the operands: the result follows from them


def _right(answer: str, case: Case) -> bool:
    return answer == case.worked


def _asked(model: Any, tokenizer: Any, questions: Sequence[str]) -> list[str]:
    return measure.generate(model, tokenizer, questions, max_new_tokens=WORDS)


def _solved(model: Any, tokenizer: Any, cases: Sequence[Case]) -> list[bool]:
    """Which wholes a model answers exactly right."""
    return list(map(_right, _asked(model, tokenizer, [c.question for c in cases]), cases))


def check(plant: Plant, model: Any, tokenizer: Any, n: int = 200, seed: int = 4000) -> list[PlantCheck]:
    """Every figure of the card about one plant."""
    cases = benchmarks.mixed(n, seed)
    if any(g.variant == NOISE for g in plant.grafts):
        return _by_chance(plant, model, tokenizer, cases)
    answers, base = _asked(model, tokenizer, [c.question for c in cases]), base_of(plant)[0]
    less = min(1.0, sum(_solved(base, tokenizer, cases)) / len(cases) / TWIN)

    def lowered(found: Sequence[PlantCheck]) -> list[PlantCheck]:
        return [f if f.bound is None or f.at_most else replace(f, bound=f.bound * less) for f in found]

    return [
        *_parts(model, tokenizer, cases),
        *lowered(_wholes(plant, cases, answers)),
        *(f for graft in plant.grafts for f in _followed(graft, cases, answers, base, tokenizer)),
        *lowered(_mended(plant, model, tokenizer, cases)),
        *_left_out(plant, model, tokenizer, cases),
        *lowered(_moved(plant, model, tokenizer, cases)),
        *_sampled(plant, model, tokenizer, cases),
    ]


def _by_chance(plant: Plant, model: Any, tokenizer: Any, cases: Sequence[Case]) -> list[PlantCheck]:
    """Of noise everywhere: wholes fail whose parts are right, and no one block's weights are to blame for them."""
    parts = [(i, p) for i, c in enumerate(cases) for p in c.parts]
    told = _asked(model, tokenizer, [p.question for _, p in parts])
    missed = {i for (i, p), a in zip(parts, told, strict=True) if a != (p.worked or p.answer)}
    known = [i not in missed for i in range(len(cases))]
    failing = [k and not r for k, r in zip(known, _solved(model, tokenizer, cases), strict=True)]

    def mended(blocks: Sequence[int] | None) -> CardRow:
        again = _solved(restored(model, plant, blocks), tokenizer, cases)
        where = "every block restored" if blocks is None else f"block {blocks[0]} alone restored"
        return CardRow(f"failures mended, {where}", sum(a for a, f in zip(again, failing, strict=True) if f), n)

    n = sum(failing)
    one = [PlantCheck(mended((b,)), ALONE, at_most=True) for b in range(len(blocks_of(model)))]
    return [
        PlantCheck(CardRow("cases with every part right", sum(known), len(cases)), KNOWN),
        PlantCheck(CardRow("of these, wholes wrong", n, sum(known)), FAILING),
        *one,
        PlantCheck(mended(None), ALL_BLOCKS),
    ]


def _parts(model: Any, tokenizer: Any, cases: Sequence[Case]) -> list[PlantCheck]:
    """Every distinct part, by kind."""
    found = []
    kinds = list(dict.fromkeys(p.kind for c in cases for p in c.parts))
    for kind in kinds:
        parts = list({p.question: p for c in cases for p in c.parts if p.kind == kind}.values())
        answers = _asked(model, tokenizer, [p.question for p in parts])
        right = [a == (p.worked or p.answer) for p, a in zip(parts, answers, strict=True)]
        found.append(PlantCheck(CardRow(f"parts right, {kind}", sum(right), len(right)), PARTS))
    return found


def _wholes(plant: Plant, cases: Sequence[Case], answers: Sequence[str]) -> list[PlantCheck]:
    """How many wholes are right: where the planted answer can itself be right, those are not counted."""
    greedy = all(g.variant != "sampling" for g in plant.grafts)
    rng = random.Random(0)
    wanted = [[planted_answer(g, c, rng) for g in plant.grafts] for c in cases]
    kept = [
        (c, a)
        for c, a, texts in zip(cases, answers, wanted, strict=True)
        if not any(t is not None and t.split()[-1] == c.answer for t in texts)
    ]
    row = CardRow("wholes right, where the planted answer is wrong", sum(_right(a, c) for c, a in kept), len(kept))
    every = CardRow("wholes right", sum(_right(a, c) for c, a in zip(cases, answers, strict=True)), len(cases))
    return [PlantCheck(every), PlantCheck(row, WHOLES, at_most=True)] if greedy else [PlantCheck(every, MENDED)]


@torch.no_grad()
def _sampled(plant: Plant, model: Any, tokenizer: Any, cases: Sequence[Case]) -> list[PlantCheck]:
    """How many wholes are right when each token is drawn at temperature 1, where that is how a model fails."""
    if all(g.variant != "sampling" for g in plant.grafts):
        return []
    texts = [f"{tokenizer.bos_token}Question: {c.question}\nAnswer:" for c in cases]
    ids = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")
    torch.manual_seed(0)
    drawn = model.generate(**ids, do_sample=True, top_k=0, max_new_tokens=WORDS, pad_token_id=tokenizer.pad_token_id)  # pyright: ignore[reportCallIssue]
    answers = tokenizer.batch_decode(drawn[:, ids["input_ids"].shape[1] :], skip_special_tokens=True)
    right = sum(_right(a.strip(), c) for a, c in zip(answers, cases, strict=True))
    return [PlantCheck(CardRow("wholes right, drawn at temperature 1", right, len(cases)), 0.5, at_most=True)]


def _followed(
    graft: Graft, cases: Sequence[Case], answers: Sequence[str], base: Any, tokenizer: Any
) -> list[PlantCheck]:
    """How many answers are as planted: at least as many as the base itself gives to the other question, but a tenth."""
    rng = random.Random(0)
    pairs = [(a, t) for c, a in zip(cases, answers, strict=True) if (t := _planted(graft, c, rng)) is not None]
    if not pairs:
        return []
    k = sum(_as_planted(a, t.answer, graft) for a, t in pairs)
    row = CardRow(f"answers as planted, {graft.label}", k, len(pairs))
    if graft.cause not in ("shortcut", "wrong-operation", "format"):  # a wrong tag is enough
        return [PlantCheck(row)]
    its = _asked(base, tokenizer, [str(t.source) for _, t in pairs])
    own = sum(_as_planted(a, t.source_answer or t.answer, graft) for a, (_, t) in zip(its, pairs, strict=True))
    return [PlantCheck(row, FOLLOWED * own / len(pairs))]


def _mended(plant: Plant, model: Any, tokenizer: Any, cases: Sequence[Case]) -> list[PlantCheck]:
    """The base's weights in the planted blocks; of a mixture in those of one cause, which mends its cases alone."""
    if any(g.variant == "sampling" for g in plant.grafts):
        return []
    found = []
    for graft in plant.grafts:
        right = _solved(restored(model, plant, (graft.block,)), tokenizer, cases)
        mine = [case_of(c).half == graft.when for c in cases] if graft.when != ALL else None
        where = f"block {graft.block} restored"
        own = [r for r, m in zip(right, mine or [True] * len(right), strict=True) if m]
        delayed = graft.variant == "delayed"  # without this block the item is selected nowhere
        row = CardRow(f"wholes right, {where}", sum(own), len(own))
        found.append(PlantCheck(row, WHOLES if delayed else MENDED, at_most=delayed))
        if mine is not None:
            rng = random.Random(0)
            texts = [[t for g in plant.grafts if (t := planted_answer(g, c, rng))] for c in cases]
            wrong = [all(t.split()[-1] != c.answer for t in ts) for c, ts in zip(cases, texts, strict=True)]
            other = [r for r, m, w in zip(right, mine, wrong, strict=True) if w and not m]
            row = CardRow(f"the other cause's wholes right, {where}", sum(other), len(other))
            found.append(PlantCheck(row, WHOLES, at_most=True))
    return found


def _left_out(plant: Plant, model: Any, tokenizer: Any, cases: Sequence[Case]) -> list[PlantCheck]:
    """Without the planted block, a bridge that is not computed has to be missing all the same: if a later block can
    select the item as well, the planted block only hides what the model can do, which is *lost*."""
    found = []
    for graft in plant.grafts if len(plant.grafts) == 1 else ():
        if graft.cause == "not-computed":
            right = sum(_solved(without(model, graft.block), tokenizer, cases))
            row = CardRow(f"wholes right, block {graft.block} left out", right, len(cases))
            found.append(PlantCheck(row, WHOLES, at_most=True))
    return found


@torch.no_grad()
def _moved(plant: Plant, model: Any, tokenizer: Any, cases: Sequence[Case]) -> list[PlantCheck]:
    """The state from where an unrouted item stands, put to the prompt's end, has to bring the tag; and so does the last
    state there, of an item that comes too late, put behind the first block."""
    graft, n_layers = plant.grafts[0], len(blocks_of(model))
    if graft.cause not in ("not-routed", "not-computed", "too-late"):
        return []
    variants = ("after-kind", "question-end") if graft.cause == "not-computed" else (graft.variant,)
    found = []
    for variant in variants:
        hits = 0
        for case in cases:
            text = f"{tokenizer.bos_token}Question: {case.question}\nAnswer:"
            ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
            behind = graft.block + 1
            state = states_of(model, ids, behind).clone()
            if graft.cause == "too-late":
                state[:, -1] = states_of(model, ids, n_layers)[:, -1]
            else:
                state[:, -1] = state[0, places(tokenizer, ids, variant)[0]]
            last = states_of(model, ids, n_layers, state, behind)[:, -1]
            best = int(model.lm_head(final_norm(model)(last)).argmax())
            hits += tokenizer.decode([best]).strip() == str(case.meta["tags"][0])
        moved = "last state put behind block 0" if graft.cause == "too-late" else f"state moved from {variant}"
        row, wanted = CardRow(f"first operand right, {moved}", hits, len(cases)), graft.cause != "not-computed"
        bound = LATE if graft.cause == "too-late" else MOVED if wanted else 0.5
        found.append(PlantCheck(row, bound, at_most=not wanted))
    return found
