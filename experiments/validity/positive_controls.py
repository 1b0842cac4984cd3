"""Positive controls: effects that a probe has to find, because they were put there.

* Min-K%++: texts that a copy of the twin was shown 1, 10 and 100 times, beside texts never shown. The texts are
  compositions that no organism has seen, and chance decides how often each of them is shown, so an AUROC is about the
  exposure. The same numbers before the training are its null.
* Lookback: one head at a time is made to look at every token equally (its queries are zero). Its ratio is then exactly
  one half, and the map has to show that head, and no other head of its layer.
* Patching: a state of the case's own last part, which is known to carry what is missing.

    for row in member_exposures(series, n=30, seed=0):
        print(row["group"], row["value"])
"""

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ...evaluation.asks import Ask, Response
from ...evaluation.case import Case, Part
from ...evaluation.protocols.base import CaseSet
from ...evaluation.statistics import share
from ...probes import lookback, min_k
from ...probes import validity as known_answers
from ...probes.examples import Example, from_case_sets, part_of
from ...probes.result import Row
from ..distributed.engine import load_target
from ..models.target import Loading, Target
from ..organism.documents import DOSES, Turns, document
from ..organism.series import Series, shipped
from ..organism.train import encode, loss_of, optimizers, pad

CONTROLS = {"donors": "patching", "heads": "lookback", "exposures": "min-k"}
"""The probe of each question that is a positive control."""
EXPOSURES = (1, 10, 100)
"""How often the texts of a level are shown; those that are never shown are compared with them."""
BATCH = 64
"""Documents per step: half of them are shown texts, half are fresh."""
LEARNING_RATE = 1e-3
"""A third of the peak of the organisms' own last stage: the parts have to stay known."""


def member_exposures(series: Series, *, n: int = 30, seed: int = 0, device: str | None = None) -> list[Row]:
    """AUROC of Min-K%++ of the question, texts shown k times against ``n`` never shown, before and after the training.

    Each level has ``n`` texts. The unit is the text: a draw decides how often each text is shown. One training is
    described, so an interval says nothing about other trainings.
    """
    cases, turns = drawn(n * (1 + len(EXPOSURES)), f"{seed}/validity/exposures")
    levels = _levels(cases, n)
    target = load_target(Loading(series.model("twin"), device=device))
    before = _scores(target, cases)
    shown = [turns[case.id] for k in EXPOSURES for case in levels[k] for _ in range(k)]
    _train(target.open_model().model, target.tokenizer, shown, series, seed)
    after = _scores(target, cases)
    return [
        {**row, "group": f"shown {k} times{when}", "exposures": k}
        for k in EXPOSURES
        for when, scores in ((", before", before), ("", after))
        for row in known_answers.membership_auroc(
            [scores[c.id] for c in levels[k]], [scores[c.id] for c in levels[0]],
            quantity="Min-K%++ of the question", permutations=0, seed=seed,
        ).table
    ]  # fmt: skip


def _levels(cases: Sequence[Case], n: int) -> dict[int, Sequence[Case]]:
    """The texts of each level, in the order in which they were drawn."""
    return {k: cases[i * n : (i + 1) * n] for i, k in enumerate((0, *EXPOSURES))}


def _scores(target: Target, cases: Sequence[Case]) -> Mapping[str, float]:
    wholes = [e for e in as_examples(target, cases) if e.role == "whole"]
    tokens = min_k.token_scores(target.open_model(), [e.prompt_ids for e in wholes], [e.question_span for e in wholes])
    found = np.asarray(min_k.aggregate(tokens).min_k_pp, dtype=float)
    return {e.case: float(v) for e, v in zip(wholes, found, strict=True)}


def _train(model: Any, tokenizer: Any, shown: Sequence[Turns], series: Series, seed: int) -> None:
    """Train in place on the shown texts in a drawn order, among as many fresh documents; all tokens count the same."""
    order = list(shown)
    random.Random(f"{seed}/validity/exposures/order").shuffle(order)
    steps = math.ceil(len(order) / (BATCH // 2))
    fresh = _fresh(series)
    model.requires_grad_(True)
    model.train()
    opts = optimizers(model, LEARNING_RATE)
    with torch.enable_grad():
        for step in range(steps):
            own = order[step * BATCH // 2 : (step + 1) * BATCH // 2]
            ids, answered = pad(encode(tokenizer, [*own, *(next(fresh) for _ in range(BATCH // 2))]))
            loss_of(model, ids.to(model.device), answered.to(model.device), prompt_weight=1.0).backward()
            for opt in opts:
                opt.step()
                opt.zero_grad(set_to_none=True)
    model.eval()
    model.requires_grad_(False)


def _fresh(series: Series) -> Iterator[Turns]:
    """Documents of the twin's kind that it has not seen."""
    index = int(series.recipe["dose"]["steps"]) * int(series.recipe["dose"]["batch"]) + BATCH * BATCH
    while True:
        yield document(series.seed, "dose", index, DOSES["twin"])
        index += 1


SAME = 1e-4
"""Differences up to this still count as one half, and as unchanged, in a lookback ratio; float32 rounding stays
below."""


def planted_heads(lm: Any, examples: Sequence[Example], n: int = 8) -> list[Row]:
    """Positive control of lookback: if a head is made to look at all tokens equally, does the map show it?

    A head counts as shown if its own ratio is one half in all ``n`` responses, the ratios of the other heads of its
    layer and of all layers before it are unchanged, and its own ratio was not one half before. One row per layer; a
    single row without a share, with the reason, if no head can be planted.
    """
    wholes = [e for e in examples if e.role == "whole" and e.response_ids][:n]
    blocks: list[Any] = [getattr(b, "self_attn", None) for b in getattr(getattr(lm.model, "model", None), "layers", ())]
    if len(wholes) < 2 or not blocks or not all(hasattr(block, "q_proj") for block in blocks):
        why = "fewer than two responses" if len(wholes) < 2 else "attention without query weights of its own (q_proj)"
        empty = {"n": 0, "count": 0, "value": None, "low": None, "high": None, "interval": "none", "note": why}
        return [{"quantity": f"head made to look at all tokens alike: {why}", "group": "planted head", **empty}]
    before = _ratios(lm, wholes)
    rows: list[Row] = []
    for layer, block in enumerate(blocks):
        heads = before.shape[1]
        width = block.q_proj.weight.shape[0] // heads
        shown = 0
        for head in range(heads):
            queries = block.q_proj.weight[head * width : (head + 1) * width]
            kept = queries.detach().clone()
            with torch.no_grad():
                queries.zero_()
            try:
                after = _ratios(lm, wholes)
            finally:
                with torch.no_grad():
                    queries.copy_(kept)
            moved = (after - before)[: layer + 1].abs().amax(-1) > SAME
            expected = torch.zeros_like(moved)
            expected[layer, head] = True
            shown += bool((moved == expected).all() and ((after[layer, head] - 0.5).abs() < SAME).all())
        rows.append({"quantity": f"head made to look at all tokens alike, layer {layer}", "group": "planted head",
                     "layer": layer, **share(shown, heads)})  # fmt: skip
    return rows


def _ratios(lm: Any, wholes: Sequence[Example]) -> torch.Tensor:
    """Ratios of all heads at every step of all responses ``layer head step``."""
    prompts, responses = [e.prompt_ids for e in wholes], [e.response_ids for e in wholes]
    found = lookback.ratios(lm, prompts, responses, [e.cue_tokens for e in wholes])
    return torch.cat([r.double().cpu() for r in found], dim=-1).nan_to_num(0.5)


def own_part_donors(lm: Any, examples: Sequence[Example], n: int) -> list[Row]:
    """Positive control of patching: a state that is known to carry what is missing, next to one that is not.

    The prompt-end state of a failed whole is replaced by that of its own last part and, for comparison, by that of
    another failure's last part. The rows ``own part`` and ``another case's part`` say, per layer, how many of up to
    ``n`` failures are put right.
    """
    from ...probes import patching
    from ...probes.patching.examples import graders, new_tokens

    asked = [e for e in examples if re.fullmatch(r"part:\d+", e.role) and e.group == "failure"]
    parts = {e.case: e for e in sorted(asked, key=lambda e: int(e.role.partition(":")[2]))}  # the last of each case
    wholes = [e for e in examples if e.role == "whole" and e.group == "failure" and e.case in parts][:n]
    if len(wholes) < 2:
        return []
    rows: list[Row] = []
    others = [*wholes[1:], wholes[0]]
    for name, givers in (("own part", wholes), ("another case's part", others)):
        donors = [parts[e.case] for e in givers]
        got = patching.prompt_end_sweep(
            lm, [e.prompt_ids for e in donors], [e.prompt_ids for e in wholes], [(i, i) for i in range(len(wholes))],
            max_new_tokens=new_tokens(lm, [*wholes, *donors]), donor_answers=[e.answer_ids for e in donors],
            recipient_answers=[e.answer_ids for e in wholes], graders=graders(lm, wholes, donors), controls=(),
            clusters=(None, [e.shares for e in wholes]),
        )  # fmt: skip
        for row in got.table:
            if row["quantity"] == "corrected_rate" and row["group"] == "donor":
                kept = {k: row[k] for k in ("layer", "n", "count", "interval")}
                numbers = {k: row[k] if math.isfinite(row[k]) else None for k in ("value", "low", "high")}
                rows.append({"quantity": f"put right by a state of {name}, layer {row['layer']}", "group": name,
                             **kept, **numbers})  # fmt: skip
    return rows


def compositions(n: int, seed: int, series: Series | None = None) -> tuple[list[Case], list[Case]]:
    """Members: mixed compositions in the training documents of a series' twin (by default the shipped one).

    They depend on the seed of the series' training. If the training was too short to see ``n`` of them, there are
    fewer. Non-members: held-out compositions from the same source, the same for every series.
    """
    from ..organism import documents, tasks

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
    return Case(id, qa.question, qa.answer, parts, worked=qa.worked, answer_type="number", cluster=cluster, meta=shared)


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
        talk = [{"role": "user", "content": ask.prompt}, {"role": "assistant", "content": gold}]
        written = target.tokenizer.apply_chat_template(talk, tokenize=True, return_dict=False)
        answer = tuple(written)[len(ids) :]  # as the template writes it, with white space and end token
        text = target.tokenizer.decode(answer, skip_special_tokens=True)
        key = f"{ask.case}/{ask.role}"
        keyed[key], responses[key] = ask, Response(key, text, "stop", len(ids), len(answer), ids, answer)
    return from_case_sets(target.tokenizer, by_id, keyed, responses, [CaseSet.of("success", by_id)])
