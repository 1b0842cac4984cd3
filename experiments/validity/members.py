"""Compositions that a training has seen, and held-out ones drawn in the same way, which a probe should tell apart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ...evaluation.asks import Ask, Response
from ...evaluation.cases import Case, Part
from ...evaluation.protocols.base import CaseSet, Entry
from ...probes.examples import Example, from_case_sets, part_of
from ..models.target import Target
from ..organism.documents import Turns
from ..organism.series import Series


def compositions(n: int, seed: int, series: Series | None = None) -> tuple[list[Case], list[Case]]:
    """Members: mixed compositions in the training documents of a series' twin (by default the shipped one).

    They depend on the seed of the series' training. If the training was too short to see ``n`` of them, there are
    fewer. Non-members: held-out compositions from the same source, the same for every series.
    """
    from ..organism import documents, tasks
    from ..organism.series import shipped

    trained = series or shipped()
    dose = documents.DOSES["twin"]
    members: dict[str, Case] = {}
    for index in range(trained.documents_seen()):
        if len(members) == n:
            break
        if documents.composition_kind(trained.seed, "dose", index, dose) == "mixed":
            qa = tasks.mixed(random.Random(f"{trained.seed}/dose/composed/{index}"))
            members.setdefault(qa.question, _case(f"member-{len(members)}", qa))
    return list(members.values()), drawn(n, f"{seed}/validity/held-out")[0]


def drawn(n: int, seed: str) -> tuple[list[Case], dict[str, Turns]]:
    """Mixed compositions that no organism has seen, each once, and by case the document that a training would see."""
    from ..organism import tasks

    rng = random.Random(seed)
    found: dict[str, tuple[Case, Turns]] = {}
    while len(found) < n:
        qa = tasks.mixed(rng, held=True)
        found.setdefault(qa.question, (_case(f"held-out-{len(found)}", qa), [(qa.question, qa.worked or qa.answer)]))
    return [case for case, _ in found.values()], {case.id: turns for case, turns in found.values()}


def _case(id: str, qa: Any) -> Case:
    """A mixed composition with its two parts, as in the benchmark."""
    (choice, chosen), (sums, answer) = qa.steps
    parts = (
        Part(choice, chosen, "commonsense", "ordered-list"),
        Part(sums, answer, "math", "number", worked=qa.worked),
    )
    cluster, *crossed = sorted(qa.members)
    shared = {"crossed": crossed}
    return Case(
        id, qa.question, qa.answer, parts, worked=qa.worked, answer_type="number", cluster=cluster, meta=shared
    )  # fmt: skip


def as_examples(target: Target, cases: Sequence[Case]) -> list[Example]:
    """Wholes and parts with the gold answer as response: for members this is the training document."""
    asks = [Ask(c.id, "whole", c.question, c.answer, c.answer_type) for c in cases]
    asks += [
        Ask(c.id, f"part:{i}", p.question, p.answer, p.answer_type, kind=p.kind)
        for c in cases
        for i, p in enumerate(c.parts)
    ]
    by_id = {c.id: c for c in cases}
    keyed, responses = {}, {}
    for ask, ids in zip(asks, target.engine.prompt_ids(asks), strict=True):
        part = part_of(by_id[ask.case], ask.role)
        gold = (part or by_id[ask.case]).worked or ask.gold
        answer = _as_written(target.tokenizer, ask.prompt, gold)[len(ids) :]
        text = target.tokenizer.decode(answer, skip_special_tokens=True)
        key = f"{ask.case}/{ask.role}"
        keyed[key], responses[key] = ask, Response(key, text, "stop", len(ids), len(answer), ids, answer)
    together = CaseSet("texts", "success", tuple(Entry(c.id, ()) for c in cases))
    return from_case_sets(target.tokenizer, by_id, keyed, responses, [together])


def _as_written(tokenizer: Any, question: str, answer: str) -> tuple[int, ...]:
    """Token ids of a whole exchange as the chat template writes it, including white space and end token."""
    talk = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return tuple(tokenizer.apply_chat_template(talk, tokenize=True, return_dict=False))
