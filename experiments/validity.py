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
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation.asks import Ask, Response
from ..evaluation.cases import Case, Part
from ..evaluation.protocols.base import CaseSet, Entry
from ..probes import validity as known_answers
from ..probes.examples import Example, from_case_sets, part_of
from ..probes.matching import match
from ..probes.result import ProbeResult, Row
from .evaluate import Evaluated, load_run
from .provenance import file_hash, source_hash, text_hash
from .run import read_json, write_json
from .settings import Settings
from .targets import Target, load_target

N_CASES = 60
"""Cases per dose and label, members and non-members."""
_PART = re.compile(r"part:\d+")


@dataclass(frozen=True)
class Score:
    """A probe's one number per case."""

    probe: str
    quantity: str
    expected: str
    """How it should move with the dose, declared beforehand: ``increasing`` or ``decreasing``."""
    short: str
    """For lines with many of them."""


Values = Mapping[str, Mapping[str, float]]
"""Quantity -> case -> value."""


def examine(
    out: str | Path, runs: Mapping[str, Path], *, seed: int = 0, device: str | None = None, n: int = N_CASES
) -> list[Row]:
    """Answers for every probe and question over the runs of a dose series (lowest dose first).

    Written as ``validity.json`` (what the report shows) and ``validity/table.csv`` (with each dose's mean); computed
    again only when the models, their answers or the code have changed.
    """
    inputs = _inputs(runs, n, seed)
    file = Path(out) / "validity.json"
    if file.is_file() and (before := read_json(file)).get("inputs") == inputs:
        return before["rows"]
    evaluated = {dose: load_run(run) for dose, run in runs.items()}
    shared = shared_cases(evaluated)[:n]
    values: dict[str, Values] = {}
    rows: list[Row] = []
    for dose, run in evaluated.items():
        target = load_target(Settings(f"organism:{dose}", "organism:mixed", device=device))
        lm = target.hooks()
        examples = opened(target, run, n, shared)
        values[dose] = measure(lm, examples)
        rows += _failure_rows(dose, _labelled(run, examples), values[dose], seed)
        if dose in ("none", "twin"):
            sides = [measure(lm, as_examples(target, cases)) for cases in compositions(n, seed)]
            rows += _member_rows(dose, sides[0], sides[1], seed)
    rows = [*_dose_rows(values, shared, seed), *rows]
    settings = {"n": n, "seed": seed, "shared_cases": len(shared), "doses": list(runs)}
    ProbeResult("validity", rows, settings=settings).save(Path(out) / "validity")
    answers = [_finite_row(row) for row in rows if row.get("verdict")]
    write_json(file, {"inputs": inputs, "settings": settings, "rows": answers, "notes": NOTES})
    return answers


def _inputs(runs: Mapping[str, Path], n: int, seed: int) -> str:
    """Hash of what the rows depend on: the models, what they answered, and the code."""
    parts = [f"{n} {seed} {source_hash()}"]
    for dose, run in runs.items():
        weights = read_json(Path(run) / "manifest.json")["identity"]["weights"]
        parts += [dose, weights, file_hash(Path(run) / "graded.jsonl")]
    return text_hash(parts)


NOTES = [
    "One number per case and probe, chosen before looking at labels; expected directions were declared beforehand.",
    "One training per dose: a trend over four models is descriptive; another seed may give another one.",
    "Members are compositions in the twin's training documents, non-members held-out ones drawn alike; what tells them "
    "apart in the model that saw none of them is not membership.",
    "Prompt-end patching has no single-case number and is not asked here: its clean and corrupted ends are in its "
    "table.",
]


def _finite_row(row: Row) -> Row:
    """JSON has no NaN: undefined is null."""
    return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}


def measure(lm: Any, examples: Sequence[Example]) -> Values:
    """Every probe's number for each case of ``examples`` (wholes with their parts)."""
    wholes = [e for e in examples if e.role == "whole"]
    if len(wholes) < 2:
        return {score.quantity: {} for score in SCORES}
    found: dict[str, Mapping[str, float]] = {}
    for probe in (_min_k, _lookback, _neurons, _trajectory):
        found.update(probe(lm, wholes, examples))
    return found


def shared_cases(runs: Mapping[str, Evaluated]) -> list[str]:
    """Cases whose parts every model has right, whatever became of the whole, in the benchmark's order."""
    known = [set(parts_right(run)) for run in runs.values()]
    first = next(iter(runs.values()))
    return [case for case in first.cases if all(case in ids for ids in known)]


def parts_right(run: Evaluated) -> list[str]:
    """Cases with every part answered right."""
    parts: dict[str, list[bool]] = {}
    for row in run.graded:
        if _PART.fullmatch(row.role):
            parts.setdefault(row.case, []).append(row.outcome == "correct")
    return [case for case, right in parts.items() if all(right)]


def opened(target: Target, run: Evaluated, n: int, shared: Sequence[str]) -> list[Example]:
    """Wholes and parts of the shared cases and of up to ``n`` failures and successes of this run."""
    labels = {case: s.label for s in run.reduction.case_sets for case in s.ids}
    chosen = dict.fromkeys(shared)
    if len(set(labels.values())) == 2:  # else there is nothing to tell apart
        for label in ("failure", "success"):
            chosen.update(dict.fromkeys([case for case in run.cases if labels.get(case) == label][:n]))
    # A shared case without a label (its whole was no answer at all) is no failure, but it has a score all the same.
    by_label = {label: [c for c in chosen if labels.get(c, "failure") == label] for label in ("failure", "success")}
    sets = [CaseSet(label, label, tuple(Entry(c, ()) for c in cases)) for label, cases in by_label.items()]
    asks, responses = run.per_case()
    return from_case_sets(target.tokenizer, run.cases, asks, responses, sets) if chosen else []


def _labelled(run: Evaluated, examples: Sequence[Example]) -> list[Example]:
    known = {case for s in run.reduction.case_sets for case in s.ids}
    return [e for e in examples if e.case in known]


def _dose_rows(values: Mapping[str, Values], shared: Sequence[str], seed: int) -> Iterator[Row]:
    for score in SCORES:
        series = {dose: _finite([found[score.quantity][c] for c in shared]) for dose, found in values.items()}
        if len(series) < 2 or any(len(v) < 2 for v in series.values()):
            yield _undefined(score, "dose", "too few cases have every part right in every dose")
            continue
        found = known_answers.dose_series(series, quantity=score.quantity, expected=score.expected, seed=seed)
        for row in found.table:
            yield _row(row, score, "dose", headline="verdict" in row)


def _failure_rows(dose: str, examples: Sequence[Example], values: Values, seed: int) -> Iterator[Row]:
    pairs = match(examples).pairs if examples else ()
    for score in SCORES:
        found = values[score.quantity]
        sides = [_finite([found[pair[i]] for pair in pairs]) for i in (0, 1)]
        if min(map(len, sides)) < 2:
            yield _undefined(score, "failure", f"{len(pairs)} matched pairs", dose)
            continue
        table = known_answers.failure_auroc(*sides, quantity=score.quantity, seed=seed).table
        yield from (_row(row, score, "failure", dose, headline=dose == "control") for row in table)


def _member_rows(dose: str, members: Values, others: Values, seed: int) -> Iterator[Row]:
    for score in SCORES:
        sides = [_finite(list(side[score.quantity].values())) for side in (members, others)]
        if min(map(len, sides)) < 2:
            yield _undefined(score, "members", "too few scores", dose)
            continue
        table = known_answers.membership_auroc(*sides, quantity=score.quantity, seed=seed).table
        yield from (_row(row, score, "members", dose, headline=dose == "twin") for row in table)


QUESTIONS = {
    "dose": "follows the dose",
    "failure": "tells failure from success",
    "members": "tells training members from held-out ones",
}
MEASURES = {"dose": "Kendall's tau-b", "failure": "AUROC", "members": "AUROC"}


def _row(row: Row, score: Score, question: str, dose: str | None = None, headline: bool = False) -> Row:
    about: Row = {
        "probe": score.probe,
        "short": score.short,
        "question": QUESTIONS[question],
        "model": dose or "all doses",
        "headline": headline,
    }
    said = score.quantity
    if question == "dose":
        said += f", expected {score.expected}"
        doses = str(row.get("group") or "").split(" < ")
        said += f"; {row['n'] // len(doses)} cases at each of {len(doses)} doses" if len(doses) > 1 else ""
    p = f"; {'one-sided ' if question == 'dose' else ''}p = {row['p']:.2g}" if row.get("p") is not None else ""
    return {**about, "measure": MEASURES[question], "statement": said + p, **row}


def _undefined(score: Score, question: str, why: str, dose: str | None = None) -> Row:
    empty: Row = {"quantity": score.quantity, "group": None, "n": 0, "value": None, "low": None, "high": None}
    row = {**empty, "interval": "none", "verdict": "cannot say", "note": why}
    found = _row(row, score, question, dose, headline=dose in (None, "control", "twin"))
    return {**found, "statement": f"{found['statement']}: {why}"}


def _finite(values: Sequence[float]) -> np.ndarray:
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
    """A mixed composition with its two parts, as the benchmark has them."""
    (choice, chosen), (sums, answer) = qa.steps
    parts = (
        Part(choice, chosen, "commonsense", "ordered-list"),
        Part(sums, answer, "math", "number", worked=qa.worked),
    )
    cluster = "+".join(sorted(qa.members))
    return Case(id, qa.question, qa.answer, parts, worked=qa.worked, answer_type="number", cluster=cluster)


def as_examples(target: Target, cases: Sequence[Case]) -> list[Example]:
    """Wholes and parts with the gold answer as response: what was, or would have been, the training document."""
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
    """Token ids of a whole exchange as the chat template writes it: white space and end token included."""
    talk = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return tuple(tokenizer.apply_chat_template(talk, tokenize=True, return_dict=False))


def _min_k(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    from ..probes import min_k

    tokens = min_k.token_scores(lm, [e.prompt_ids for e in wholes], [e.question_span for e in wholes])
    return {"Min-K%++ of the question": _by_case(wholes, min_k.aggregate(tokens).min_k_pp)}


def _lookback(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    from ..probes import lookback

    prompts, responses = [e.prompt_ids for e in wholes], [e.response_ids for e in wholes]
    found = lookback.masses(lm, prompts, responses, [e.cue_tokens for e in wholes])
    return {"mean lookback ratio": _by_case(wholes, [float(m.ratio().double().nanmean()) for m in found])}


def _trajectory(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    from ..probes import trajectory

    found = trajectory.step_cosines(lm, [e.prompt_ids for e in wholes], [e.response_ids for e in wholes])
    means = [float(s.cosines.mean()) if s.cosines.numel() else np.nan for s in found]
    return {"mean step cosine": _by_case(wholes, means)}


def _neurons(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    """Overlap of the whole's key neurons with those of each kind of part, within cases (gold answers' first token)."""
    from ..probes import neurons

    sets = neurons.key_neurons(lm, examples)
    whole = {e.case: s for e, s in zip(examples, sets, strict=True) if e.role == "whole"}
    out: dict[str, dict[str, float]] = {f"neurons shared with {kind}": {} for kind in ("math", "commonsense")}
    for e, neurons_of_part in zip(examples, sets, strict=True):
        name = f"neurons shared with {e.kind}"
        if name in out and e.case in whole:
            out[name][e.case] = neurons.share(whole[e.case], neurons_of_part).overlap
    return {name: {case: found.get(case, np.nan) for case in whole} for name, found in out.items()}


def _by_case(wholes: Sequence[Example], values: Any) -> dict[str, float]:
    return {e.case: float(v) for e, v in zip(wholes, values, strict=True)}


SCORES: tuple[Score, ...] = (
    Score("min-k", "Min-K%++ of the question", "increasing", "min-k"),
    Score("lookback", "mean lookback ratio", "increasing", "lookback"),
    Score("neurons", "neurons shared with math", "decreasing", "neurons/math"),
    Score("neurons", "neurons shared with commonsense", "increasing", "neurons/commonsense"),
    Score("trajectory", "mean step cosine", "increasing", "cosine"),
)
