"""Do the probes measure what they say? Each one put to a dose series whose truth is known.

One number per case and probe, chosen beforehand and without looking at labels, answers three questions:

* dose: on the same wholes, does it follow how many compositions a model saw in training?
* failure: within one model, does it tell failed wholes from matched ones that succeed?
* members: on compositions, does it tell those in the training data from held-out ones drawn alike? Asked of the twin,
  which saw the members, and of ``none``, which did not: what ``none`` tells apart is not membership.

The answer is a row with n and interval also where it is no. One training per dose: descriptive, not an estimate over
trainings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation.asks import Ask, Response
from ..evaluation.cases import Case
from ..evaluation.protocols.base import CaseSet, Entry
from ..probes import validity as known_answers
from ..probes.examples import Example, from_case_sets
from ..probes.matching import match
from ..probes.result import ProbeResult, Row
from .evaluate import Evaluated, load_run
from .run import read_json, write_json
from .settings import Settings
from .targets import Target, load_target

N_CASES = 100
"""Wholes per dose, and members and non-members."""


@dataclass(frozen=True)
class Score:
    """A probe's one number per whole."""

    probe: str
    quantity: str
    expected: str
    """How it should move with the dose, declared beforehand: ``increasing`` or ``decreasing``."""
    of: Callable[[Any, Sequence[Example]], np.ndarray]


def examine(
    out: str | Path, runs: Mapping[str, Path], *, seed: int = 0, device: str | None = None, n: int = N_CASES
) -> list[Row]:
    """Rows for every probe and question over the runs of a dose series (lowest dose first), also saved in ``out``."""
    out = Path(out)
    done = out / "validity" / "inputs.json"
    inputs = {dose: read_json(Path(run) / "manifest.json")["identity"] for dose, run in runs.items()}
    evaluated = {dose: load_run(run) for dose, run in runs.items()}
    shared = shared_cases(evaluated)[:n]
    values: dict[str, dict[str, dict[str, float]]] = {}
    rows: list[Row] = []
    for dose, run in evaluated.items():
        target = load_target(Settings(f"organism:{dose}", "organism:mixed", device=device))
        lm = target.hooks()
        wholes = labelled_wholes(target, run)
        for score in SCORES:
            found = dict(zip([e.case for e in wholes], score.of(lm, wholes), strict=True))
            values.setdefault(score.quantity, {})[dose] = {k: float(v) for k, v in found.items()}
            rows += _failure_rows(score, dose, wholes, found, seed)
            if dose in ("none", "twin"):
                rows += _member_rows(score, dose, target, lm, n, seed)
    rows = [*_dose_rows(values, shared, seed), *rows]
    ProbeResult("validity", rows, settings={"n": n, "seed": seed, "shared_cases": len(shared)}).save(out / "validity")
    write_json(done, {"runs": inputs})
    return rows


def shared_cases(runs: Mapping[str, Evaluated]) -> list[str]:
    """Cases that carry a label (every part right) in every run, in the benchmark's order."""
    labelled = [{case for s in run.reduction.case_sets for case in s.ids} for run in runs.values()]
    first = next(iter(runs.values()))
    return [case for case in first.cases if all(case in ids for ids in labelled)]


def labelled_wholes(target: Target, run: Evaluated) -> list[Example]:
    """The wholes of a run's failures and successes, with the model's own responses."""
    asks, responses = run.per_case()
    found = from_case_sets(target.tokenizer, run.cases, asks, responses, run.reduction.case_sets, roles=["whole"])
    order = list(run.cases)
    return sorted(found, key=lambda e: order.index(e.case))


def _dose_rows(
    values: Mapping[str, Mapping[str, Mapping[str, float]]], shared: Sequence[str], seed: int
) -> Iterator[Row]:
    for score in SCORES:
        series = {dose: _finite([found[c] for c in shared]) for dose, found in values[score.quantity].items()}
        if len(series) < 2 or any(len(v) < 2 for v in series.values()):
            yield _undefined(score, "dose", "no case has every part right in every dose")
            continue
        found = known_answers.dose_series(series, quantity=score.quantity, expected=score.expected, seed=seed)
        for row in found.table:
            yield _row(row, score, "dose", headline="verdict" in row)


def _failure_rows(
    score: Score, dose: str, wholes: Sequence[Example], found: Mapping[str, float], seed: int
) -> Iterator[Row]:
    pairs = match(wholes).pairs
    sides = [_finite([found[pair[i]] for pair in pairs]) for i in (0, 1)]
    if min(map(len, sides)) < 2:
        yield _undefined(score, "failure", f"{len(pairs)} matched pairs", dose)
        return
    table = known_answers.failure_auroc(*sides, quantity=score.quantity, seed=seed).table
    yield from (_row(row, score, "failure", dose, headline=dose == "control") for row in table)


def _member_rows(score: Score, dose: str, target: Target, lm: Any, n: int, seed: int) -> Iterator[Row]:
    sides = [_finite(score.of(lm, as_examples(target, texts))) for texts in compositions(n, seed)]
    if min(map(len, sides)) < 2:
        yield _undefined(score, "members", "no scores", dose)
        return
    table = known_answers.membership_auroc(*sides, quantity=score.quantity, seed=seed).table
    yield from (_row(row, score, "members", dose, headline=dose == "twin") for row in table)


def _row(row: Row, score: Score, question: str, dose: str | None = None, headline: bool = False) -> Row:
    return {"probe": score.probe, "question": question, "model": dose, "headline": headline, **row}


def _undefined(score: Score, question: str, why: str, dose: str | None = None) -> Row:
    empty: Row = {"quantity": score.quantity, "group": None, "n": 0, "value": None, "low": None, "high": None}
    row = {**empty, "interval": "none", "verdict": "cannot say", "note": why}
    return _row(row, score, question, dose, headline=dose in (None, "control", "twin"))


def _finite(values: Sequence[float] | np.ndarray) -> np.ndarray:
    x = np.asarray(values, dtype=float)
    return x[np.isfinite(x)]


def compositions(n: int, seed: int) -> tuple[list[Case], list[Case]]:
    """Members: mixed compositions in the twin's training documents. Non-members: held-out ones from the same source."""
    from .organism import documents, tasks, weights

    about = read_json(weights.path("twin") / "organism.json")
    dose, trained = documents.DOSES["twin"], int(about.get("seed", 0))
    members: dict[str, Case] = {}
    index = 0
    while len(members) < n:
        if documents.composition_kind(trained, "dose", index, dose) == "mixed":
            qa = tasks.mixed(random.Random(f"{trained}/dose/composed/{index}"))
            members.setdefault(qa.question, _case(f"member-{len(members)}", qa))
        index += 1
    rng = random.Random(f"{seed}/validity/held-out")
    held: dict[str, Case] = {}
    while len(held) < n:
        qa = tasks.mixed(rng, held=True)
        held.setdefault(qa.question, _case(f"held-out-{len(held)}", qa))
    return list(members.values()), list(held.values())


def _case(id: str, qa: Any) -> Case:
    return Case(
        id, qa.question, qa.answer, worked=qa.worked, answer_type="number", cluster="+".join(sorted(qa.members))
    )


def as_examples(target: Target, cases: Sequence[Case]) -> list[Example]:
    """Wholes as examples with the gold answer as response: what was, or would have been, the training document."""
    asks = [Ask(c.id, "whole", c.question, c.answer, c.answer_type) for c in cases]
    eos = target.tokenizer.eos_token_id
    responses = {}
    for ask, case, ids in zip(asks, cases, target.engine.prompt_ids(asks), strict=True):
        gold = case.worked or case.answer
        answer = (*target.tokenizer(gold, add_special_tokens=False).input_ids, eos)
        responses[ask.case] = Response(ask.case, gold, "stop", len(ids), len(answer), ids, answer)
    together = CaseSet("texts", "success", tuple(Entry(c.id, ()) for c in cases))
    by_id = {c.id: c for c in cases}
    return from_case_sets(target.tokenizer, by_id, {a.case: a for a in asks}, responses, [together], roles=["whole"])


def _min_k(lm: Any, examples: Sequence[Example]) -> np.ndarray:
    from ..probes import min_k

    tokens = min_k.token_scores(lm, [e.prompt_ids for e in examples], [e.question_span for e in examples])
    return np.asarray(min_k.aggregate(tokens).min_k_pp, dtype=float)


def _lookback(lm: Any, examples: Sequence[Example]) -> np.ndarray:
    from ..probes import lookback

    prompts, responses = [e.prompt_ids for e in examples], [e.response_ids for e in examples]
    found = lookback.masses(lm, prompts, responses, [e.cue_tokens for e in examples])
    return np.array([float(m.ratio().double().nanmean()) for m in found])


def _trajectory(lm: Any, examples: Sequence[Example]) -> np.ndarray:
    from ..probes import trajectory

    found = trajectory.step_cosines(lm, [e.prompt_ids for e in examples], [e.response_ids for e in examples])
    return np.array([float(s.cosines.mean()) if s.cosines.numel() else np.nan for s in found])


SCORES: tuple[Score, ...] = (
    Score("min-k", "Min-K%++ of the question", "increasing", _min_k),
    Score("lookback", "mean lookback ratio", "increasing", _lookback),
    Score("trajectory", "mean step cosine", "increasing", _trajectory),
)
