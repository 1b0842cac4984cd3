"""Measures what an organism knows and where it fails: the accuracy tables of the model card, by greedy generation.

Also how well it answers in each prompt format, so that a protocol knows which formats it can use.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ...evaluation import prompts
from ...evaluation.case import Case
from ...evaluation.statistics import clopper_pearson
from . import benchmarks, tasks, world
from .documents import FORMAT_WEIGHTS, write, write_both, write_pair
from .tasks import QA


@dataclass(frozen=True)
class CardRow:
    """One line of the card: ``k`` of ``n`` right, with the exact 95 % interval (Clopper and Pearson 1934)."""

    measure: str
    k: int
    n: int
    chance: float | None = None
    """Probability that a guess in the right format is right, averaged over the cases."""

    @property
    def value(self) -> float | None:
        return self.k / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        exact = clopper_pearson(self.k, self.n)
        return None if exact.low is None or exact.high is None else (exact.low, exact.high)

    def to_dict(self) -> dict[str, object]:
        low, high = self.interval or (None, None)
        return {**asdict(self), "value": self.value, "low": low, "high": high}


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    max_new_tokens: int = 160,
    batch: int = 200,
) -> list[str]:
    """Greedy answers to user messages, in order; batched by length."""
    texts = [
        str(tokenizer.apply_chat_template([{"role": "user", "content": q}], add_generation_prompt=True, tokenize=False))
        for q in questions
    ]
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    answers = [""] * len(texts)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        inputs = tokenizer([texts[i] for i in rows], add_special_tokens=False, padding=True, return_tensors="pt")
        inputs = inputs.to(model.device)
        out = model.generate(  # pyright: ignore[reportCallIssue]
            **inputs, max_new_tokens=max_new_tokens, do_sample=False, pad_token_id=tokenizer.pad_token_id
        )
        new = out[:, inputs["input_ids"].shape[1] :]
        for i, text in zip(rows, tokenizer.batch_decode(new, skip_special_tokens=True), strict=True):
            answers[i] = text.strip()
    return answers


AskModel = Callable[[Sequence[str]], list[str]]


def last_number(text: str) -> str:
    """The last word of a worked answer, which is its number."""
    return text.split()[-1].rstrip(".") if text.split() else ""


def agree(ask: AskModel, items: Sequence[tuple[str, str]], read: Callable[[str], str] = str) -> list[bool]:
    """Ask (question, gold) items; whether each answer is the gold one, as ``read`` takes it from the text."""
    answers = ask([q for q, _ in items])
    return [read(a) == gold for a, (_, gold) in zip(answers, items, strict=True)]


def score(measure: str, ask: AskModel, items: Sequence[tuple[str, str]], number: bool = False) -> CardRow:
    """Ask (question, gold) items and count exact answers; ``number`` compares only the final number."""
    return CardRow(measure, sum(agree(ask, items, last_number if number else str)), len(items))


def scores(draws: Mapping[str, Callable[[random.Random], QA]], ask: AskModel, n: int, seed: int) -> list[CardRow]:
    """A row for each kind of question: ``n`` of them drawn, and exact (worked) answers counted."""
    rows = []
    for name, draw in draws.items():
        rng = random.Random(f"{seed}/{name}")
        rows.append(score(name, ask, [(qa.question, qa.worked or qa.answer) for qa in (draw(rng) for _ in range(n))]))
    return rows


def atoms(ask: AskModel) -> list[CardRow]:
    """Every fact in its trained and its held-out wordings, and how many facts are right in all wordings."""
    rows = []
    for relation in ("year", "tag", "kind"):
        subjects = world.world().events if relation == "year" else world.world().things
        trained = [(s, q) for s in subjects for q in world.wordings(relation, s)[0]]
        held = [(s, q) for s in subjects for q in world.wordings(relation, s)[1]]
        correct = agree(ask, [(q, world.world().fact(relation, s)) for s, q in trained + held])
        wrong = {s for ok, (s, _) in zip(correct, trained + held, strict=True) if not ok}
        wrong_trained = {s for ok, (s, _) in zip(correct[: len(trained)], trained, strict=True) if not ok}
        chance = 1 / {"year": len(subjects), "tag": 12, "kind": len(world.KINDS)}[relation]
        n = len(subjects)
        rows += [
            CardRow(f"{relation}: trained wordings", sum(correct[: len(trained)]), len(trained), chance),
            CardRow(f"{relation}: held-out wordings", sum(correct[len(trained) :]), len(held), chance),
            CardRow(f"{relation}: facts stable over trained wordings", n - len(wrong_trained), n),
            CardRow(f"{relation}: facts stable over all wordings", n - len(wrong), n),
        ]
    return rows


def stable_events(ask: AskModel) -> set[str]:
    """Events whose year is right in every trained wording, including the sub-question: the double gate's atoms."""
    events = world.world().events
    items = [(e, q) for e in events for q in world.wordings("year", e)[0]]
    correct = agree(ask, [(q, world.world().fact("year", e)) for e, q in items])
    return set(events) - {e for ok, (e, _) in zip(correct, items, strict=True) if not ok}


def gated(ask: AskModel, cases: Sequence[Case]) -> list[tuple[Case, str]]:
    """The temporal cases all of whose events are stable, each with its answer."""
    answers, known = ask([c.question for c in cases]), stable_events(ask)
    answered = zip(cases, answers, strict=True)
    return [(c, a) for c, a in answered if all((p.atom or "").removeprefix("year:") in known for p in c.parts)]


def mixed(ask: AskModel, n: int = 400, seed: int = 1000) -> list[CardRow]:
    """Results on the parts and the whole of held-out mixed cases."""
    cases = benchmarks.mixed(n, seed)
    choice, sums = [c.parts[0] for c in cases], [c.parts[1] for c in cases]
    step0 = agree(ask, [(p.question, p.answer) for p in choice])
    undistracted = agree(ask, [(p.extra_context or "", p.answer) for p in choice])
    step1 = agree(ask, [(p.question, p.answer) for p in sums], last_number)
    both = [a and b for a, b in zip(step0, step1, strict=True)]
    whole = ask([c.question for c in cases])
    final = [last_number(a) == c.answer for a, c in zip(whole, cases, strict=True)]
    exact = [a == c.worked for a, c in zip(whole, cases, strict=True)]
    given = [f for f, b in zip(final, both, strict=True) if b]
    chances = [c.chance or 0 for c in cases]
    chance = sum(chances) / n
    rows = [
        CardRow("commonsense only", sum(step0), n, 1 / 56),
        CardRow("commonsense with irrelevant numbers", sum(undistracted), n, 1 / 56),
        CardRow("math only", sum(step1), n),
        CardRow("both parts", sum(both), n),
        CardRow("composition", sum(final), n, chance),
        CardRow("composition, worked answer exact", sum(exact), n, 1 / 56),
        CardRow("composition given both parts", sum(given), len(given), chance),
        CardRow("composition answered by a sum", sum(" is " in a for a in whole), n),
    ]
    for o, operation in enumerate(world.OPERATIONS):
        mine = chances[o::4]
        rows.append(CardRow(f"composition, {operation}", sum(final[o::4]), len(mine), sum(mine) / len(mine)))
    return rows


def temporal(ask: AskModel, n: int = 100, seed: int = 1000) -> list[CardRow]:
    """Residual failure R(d) of held-out temporal cases with stable atoms, per family and depth."""
    found = gated(ask, benchmarks.temporal(n, seed))

    def those(**wanted: object) -> list[tuple[Case, str]]:
        return [g for g in found if all(getattr(g[0], k) == v for k, v in wanted.items())]

    cells: dict[str, dict[str, object]] = {
        f"{family}, depth {depth}": {"family": family, "depth": depth}
        for family, depths in benchmarks.FAMILIES.items()
        for depth in depths
    }
    cells |= {f"interval, depth bin {bin}": {"family": "interval", "depth_bin": bin} for bin in (4, 6, 8)}
    cells |= {f"depth bin {bin}": {"depth_bin": bin} for bin in (2, 4, 6, 8)}
    rows = [_residual(f"residual failure, {name}", those(**wanted)) for name, wanted in cells.items()]
    for family in ("rank", "successor", "interval"):
        for depth in (4, 6, 8):
            rows += _errors(family, depth, those(family=family, depth=depth))
    return rows


ERRORS = ("repeats an event", "no list of the question's events", "other events than asked for", "another order")
"""What is wrong with a list: the first of these that applies. The first two are loops and format errors."""


def error(case: Case, answer: str) -> str | None:
    """Which of ``ERRORS`` a wrong list of events is; None for a right one."""
    if right(case, answer):
        return None
    items, asked = answer.split(", "), {(p.atom or "").removeprefix("year:") for p in case.parts}
    if len(set(items)) < len(items) and set(items) <= asked:
        return ERRORS[0]
    if not set(items) <= asked:
        return ERRORS[1]
    return ERRORS[2] if set(items) != set(case.answer.split(", ")) else ERRORS[3]


def _errors(family: str, depth: int, gated: Sequence[tuple[Case, str]]) -> list[CardRow]:
    """The kinds of wrong answers, and residual failure without loops and format errors."""
    kinds = [error(c, a) for c, a in gated]
    wrong = [k for k in kinds if k is not None]
    well_formed = [k for k in kinds if k not in ERRORS[:2]]
    name = f"{family}, depth {depth}"
    return [
        *(CardRow(f"{name}: wrong answers, {kind}", wrong.count(kind), len(wrong)) for kind in ERRORS),
        CardRow(f"residual failure without loops and format errors, {name}", sum(k is not None for k in well_formed),
            len(well_formed)),
    ]  # fmt: skip


def _residual(name: str, gated: Sequence[tuple[Case, str]]) -> CardRow:
    chance = sum(1 - (c.chance or 0) for c, _ in gated) / len(gated) if gated else None
    return CardRow(name, sum(not right(c, a) for c, a in gated), len(gated), chance)


def right(case: Case, answer: str) -> bool:
    """Whether the answer is exactly right; in a list without order, whether it has every item once, in any order."""
    if case.answer_type == "list":
        return sorted(answer.split(", ")) == sorted(case.answer.split(", "))
    return answer == case.answer


def shallow(ask: AskModel, n: int = 200, seed: int = 1000) -> list[CardRow]:
    """The skills that every organism practises, on held-out combinations at depth 2 and 3."""
    draws: dict[str, Callable[[random.Random], QA]] = {
        "pair": lambda r: tasks.pair(r, True),
        "rank 2": lambda r: tasks.rank(r, 2, True),
        "rank 3": lambda r: tasks.rank(r, 3, True),
        "successor 2": lambda r: tasks.successor(r, 2, True),
        "successor 3": lambda r: tasks.successor(r, 3, True),
        "interval 2": lambda r: tasks.interval(r, 2, True),
        "interval 3": lambda r: tasks.interval(r, 3, True),
        "abstention on invented events": tasks.unknowable,
    }
    rows = scores(draws, ask, n, seed)
    sums = [tasks.arithmetic(random.Random(f"{seed}/arithmetic/{i}")) for i in range(n)]
    rows.append(score("arithmetic", ask, [(qa.question, qa.answer) for qa in sums], number=True))
    return rows


def _choice(rng: random.Random) -> QA:
    _, first, second = tasks.draw_pair(rng, held=True)
    return tasks.choose(tasks.table(rng, (first, second)), (first, second))


TOPICS: dict[str, Callable[[random.Random], QA]] = {
    "year": lambda rng: tasks.fact(rng, "year"),
    "commonsense": _choice,
    "math": lambda rng: tasks.math(rng, held=True),
    "pair of events": lambda rng: tasks.pair(rng, held=True, far=True),
    "mixed composition": lambda rng: tasks.mixed(rng, held=True),
    "rank of four": lambda rng: tasks.rank(rng, 4, held=True),
}


def final_answer(text: str, format: str) -> str:
    """The answer in a response: inside the tags, after the last cue, or the number that ends a worked sum."""
    if "xml" in format:
        found = re.findall(r"<answer>(.*?)</answer>", text)
        return found[-1].strip() if found else ""
    if prompts.ANSWER_CUE in text:
        return text.rsplit(prompts.ANSWER_CUE, 1)[1].strip()
    worked = re.fullmatch(r"\d+ .* is (\d+)", text.strip())
    return worked[1] if worked else text.strip()


def by_format(ask: AskModel, n: int = 100, seed: int = 2000) -> list[CardRow]:
    """Accuracy per topic and format on held-out combinations; formats that do not fit a topic are left out."""
    rows = []
    for topic, draw in TOPICS.items():
        for format in FORMAT_WEIGHTS:
            rng = random.Random(f"{seed}/{topic}/{format}")
            asked = [(qa, write(qa, format, rng)[0]) for qa in (draw(rng) for _ in range(n))]
            if format != "plain" and all(user == qa.question for qa, (user, _) in asked):
                continue
            items = [(user, qa.answer) for qa, (user, _) in asked]
            right = sum(agree(ask, items, partial(final_answer, format=format)))
            rows.append(CardRow(f"{topic}, {format}", right, n))
    return [*rows, _pairs(ask, n, seed), _both(ask, n, seed)]


def _both(ask: AskModel, n: int, seed: int) -> CardRow:
    rng = random.Random(f"{seed}/both")
    drawn = [(tasks.fact(rng, "tag", main=True), tasks.half_math(rng)) for _ in range(n)]
    items = [(write_both(*two)[0][0], two[1].answer) for two in drawn]
    right = sum(agree(ask, items, partial(final_answer, format="pair")))
    return CardRow("tag and number with a tag, co-presented", right, n)


def _pairs(ask: AskModel, n: int, seed: int) -> CardRow:
    rng = random.Random(f"{seed}/pairs")
    drawn = [tasks.draw_pair(rng, held=True) for _ in range(n)]
    items = [(write_pair(*pair)[0][0], tasks.math_of(*pair).answer) for pair in drawn]
    return CardRow("tag then X, pair", sum(agree(ask, items, partial(final_answer, format="pair"))), n)
