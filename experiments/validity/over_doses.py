"""Tests whether the probes measure what they claim to, on a dose series whose truth is known.

One number per case and probe, chosen beforehand and without looking at labels, answers these questions:

* dose: on the same wholes, does it follow the number of compositions that a model saw in training?
* pair: does it tell the twin, which saw many compositions, from control, which saw few?
* failure: within one model, does it tell failed wholes from matched successful ones?
* members: does it tell compositions in the training data from held-out ones drawn in the same way? This is asked of the
  twin, which saw the members, and of ``none``, which did not: a difference that ``none`` shows is not membership. The
  positive control shows drawn texts to a copy of the twin a known number of times (``exposures``).
* planted: how large must an effect added to one model's numbers be, for the contrast of failures with as many matched
  successes to find it?

With one training per dose a row describes only that training: no p, no verdict. Several trainings (``examine_series``)
are examined one by one and give rows over trainings, whose verdict (``probes.verdicts``) needs eight trainings. The
numbers of each case behind every row are kept (``validity/values.csv``). Numbers with a known answer are tested in the
same way (see ``scores``).
"""

import inspect
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...evaluation.case import Case
from ...evaluation.protocols.base import CaseSet
from ...files import file_sha256, finite, text_hash
from ...probes import validity as known_answers
from ...probes.examples import Example
from ...probes.matching import match
from ...probes.result import ProbeResult, Row
from ...probes.verdicts import TRAININGS
from ...terminal import Bar, no_bar
from ..distributed.engine import load_target
from ..models.target import Loading, Target
from ..organism import series as organism_series
from ..organism.series import Series
from ..run import read_json, write_json
from ..run.provenance import source_hash
from ..run.reader import read_run
from ..run.schema import Evaluated
from . import over_seeds
from .positive_controls import CONTROLS, as_examples, compositions, member_exposures, own_part_donors, planted_heads
from .scores import SCORES, CaseScores, Probes, ProbeScore, measure

N_CASES = 60
"""Number of cases per dose and label, of members, and of non-members."""
_PART = re.compile(r"part:\d+")


def examine(
    out: str | Path, runs: Mapping[str, Path], *, seed: int = 0, device: str | None = None, n: int = N_CASES,
    series: Series | None = None, probes: Probes | None = None, exposures: bool = True, progress: Bar = no_bar,
) -> list[Row]:  # fmt: skip
    """Answers for every probe and question over the runs of a dose series (lowest dose first; by default the shipped).

    ``probes`` are your own probes by name (see ``scores``). ``exposures=False`` leaves out the one control that trains
    a model, which takes nearly half of the time.

    The answers are written to ``validity.json`` (for the report) and ``validity/table.csv`` (with each dose's mean).
    They are computed again only if the models, their answers or the code have changed.
    """
    series = series or organism_series.shipped(tuple(runs))
    return _examined(Path(out), runs, series, seed, device, n, probes or {}, exposures, progress)["rows"]


def examine_series(
    out: str | Path, runs: Sequence[tuple[Series, Mapping[str, Path]]], *, seed: int = 0, device: str | None = None,
    n: int = N_CASES, probes: Probes | None = None,
) -> list[Row]:  # fmt: skip
    """Answers over several trainings of the doses, and for each training (runs by dose, lowest dose first).

    Each training is examined in ``series/seed-N``, and again only if its models, answers or the code have changed. The
    rows over trainings come first; the others have their ``seed``. Files are those of ``examine``, and with one
    training so is the result. Raises ``InputError`` for a training that is given twice.
    """
    if not runs:
        raise InputError("no series: give at least one training with the runs of its doses")
    organism_series.check([one for one, _ in runs])
    found = {one.seed: _examined(Path(out) / "series" / f"seed-{one.seed}", paths, one, seed, device, n, probes or {})
             for one, paths in runs}  # fmt: skip
    said = [line for one, _ in runs for line in one.notes]
    settings = {"n": n, "seed": seed, "series": {str(s): d["settings"] for s, d in found.items()}}
    if len(found) == 1:
        (only,) = found.values()
        said = [*only["notes"], *said]
        _write(Path(out), (only["rows"], only["means"], only["cases"]), {**settings, **only["settings"]}, said, None)
        return only["rows"]
    answers, means = {s: d["rows"] for s, d in found.items()}, {s: d["means"] for s, d in found.items()}
    cases = [{"seed": s, **row} for s, d in found.items() for row in d["cases"]]
    every = list(dict.fromkeys(dose for _, paths in runs for dose in paths))
    lacking = {one.seed: [d for d in every if d not in paths] for one, paths in runs}
    said += [f"Seed {s}: no run of {', '.join(doses)}; its trend over doses is in no row over trainings."
             for s, doses in lacking.items() if doses]  # fmt: skip
    said += organism_series.different_recipes([one for one, _ in runs])
    chosen = any(one.shipped for one, _ in runs)
    over = over_seeds.rows(answers, cases, {s for s, doses in lacking.items() if doses})
    rows = [*over, *over_seeds.of_seeds(answers)]
    notes = [NOTES[0], over_seeds.note(list(found), chosen), *NOTES[1:], *said]
    return _write(Path(out), (rows, over_seeds.means(means), cases), settings, notes, None)["rows"]


def _examined(
    out: Path, runs: Mapping[str, Path], series: Series, seed: int, device: str | None, n: int, probes: Probes,
    exposures: bool = True, progress: Bar = no_bar,
) -> dict[str, Any]:  # fmt: skip
    """The document with one series' answers; it is read from its file if nothing has changed."""
    inputs = _inputs(runs, series, probes, n, seed, exposures)
    if (file := out / "validity.json").is_file() and (before := read_json(file)).get("inputs") == inputs:
        return before
    evaluated = {dose: read_run(run).evaluated() for dose, run in runs.items()}
    shared = shared_cases(evaluated)[:n]
    values: dict[str, CaseScores] = {}
    rows, cases = list[Row](), list[Row]()
    with progress("validity of the probes, by dose", len(evaluated)) as advance:
        for i, (dose, run) in enumerate(evaluated.items()):
            target = load_target(Loading(series.model(dose), device=device))
            lm = target.open_model()
            examples = opened(target, run, n, shared)
            values[dose] = found = measure(lm, examples, probes)
            scores = [*SCORES, *found.own]
            near = {e.case: e for e in examples}
            cases += _case_rows("dose", None, (i, dose), shared, found, near)
            if dose in PAIR:
                cases += _case_rows("pair", ", ".join(PAIR), (PAIR.index(dose), dose), shared, found, near)
            pairs = match(labelled).pairs if (labelled := _labelled(run, examples)) else ()
            for level, label in ((1, "failure"), (0, "success")):
                cases += _case_rows("failure", dose, (level, label), [pair[1 - level] for pair in pairs], found, near)
            rows += _failure_rows(dose, pairs, found, scores)
            rows += _control_rows("donors", dose, own_part_donors(lm, labelled, n))
            if dose == ("control" if "control" in evaluated else list(evaluated)[-1]):
                rows += _planted_rows(dose, labelled, len(pairs), found, [s for s in scores if s.kind == "probe"], seed)
            if dose in ("none", "twin"):
                asked = compositions(n, seed, series)
                sides = [measure(lm, as_examples(target, some), probes) for some in asked]
                for level, (some, side) in enumerate(zip(asked[::-1], sides[::-1], strict=True)):
                    about = {c.id: c for c in some}
                    group = (level, ("held out", "member")[level])
                    cases += _case_rows("members", dose, group, list(about), side, about)
                rows += _member_rows(dose, sides[0], sides[1])
            if dose == "twin":
                rows += _control_rows("heads", dose, planted_heads(lm, examples))
            if dose == "twin" and exposures:
                shown = member_exposures(series, n=max(2, n // 4), seed=seed, device=device)
                rows += _control_rows("exposures", dose, shown)
            advance(1)
    known = [*SCORES, *dict.fromkeys(score for found in values.values() for score in found.own)]
    rows = [*_dose_rows(values, known, shared), *_pair_rows(values, known, shared), *rows]
    settings = {"n": n, "seed": seed, "trained": series.seed, "shared_cases": len(shared), "doses": list(runs),
                "own_probes": list(probes)}  # fmt: skip
    means, answers = [r for r in rows if not r.get("verdict")], [r for r in rows if r.get("verdict")]
    return _write(out, (answers, means, cases), settings, [NOTES[0], ONE_TRAINING, *NOTES[1:]], inputs)


def _write(
    out: Path, found: tuple[Sequence[Row], Sequence[Row], Sequence[Row]], settings: Mapping[str, Any],
    notes: Sequence[str], inputs: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Write answers, means and numbers of cases: ``validity/``, and then ``validity.json``, which marks completion."""
    answers, means, cases = found
    ProbeResult("validity", [*means, *answers], settings=settings, values=list(cases)).save(out / "validity")
    document = {
        "inputs": inputs, "settings": dict(settings), "rows": finite(answers), "means": finite(means),
        "notes": list(notes),
    }  # fmt: skip
    document |= {"cases": finite(cases)} if inputs is not None else {}
    write_json(out / "validity.json", document)
    return document


def _inputs(runs: Mapping[str, Path], series: Series, probes: Probes, *options: object) -> str:
    """Hash of everything that the rows depend on: the models, their answers, their training, and the code."""
    parts = [f"{options} {series.seed} {series.documents_seen()} {source_hash()}"]
    parts += [f"{name} {_code(probe)}" for name, probe in probes.items()]
    for dose, run in runs.items():
        weights = read_run(run).manifest.identity["weights"]
        parts += [dose, weights, file_sha256(Path(run) / "graded.jsonl")]
    return text_hash(parts)


def _code(probe: object) -> str:
    """Hash of the file that defines a probe. A probe without a file, such as a notebook's, gets a new one each time."""
    file = inspect.getsourcefile(probe) if inspect.isfunction(probe) else None
    return file_sha256(Path(file)) if file is not None and Path(file).is_file() else secrets.token_hex(8)


ONE_TRAINING = (
    "One training per dose: these rows describe it, and another seed may give other numbers. Verdicts need eight "
    "trainings (`composcope study validity --trainings 8`)."
)
PAIR = ("control", "twin")
NOTES = [
    "One number per case and probe, chosen before looking at labels; expected directions were declared beforehand.",
    "Members are compositions in the twin's training documents, non-members held-out ones drawn alike; a difference in "
    "the model that saw none of them is not membership.",
    "The twin's positive control of membership: a copy goes on training, texts drawn by chance are shown 1, 10 and 100 "
    "times among fresh documents, and compared with texts never shown; before that training nothing tells them apart.",
    "Prompt-end patching has no single-case number. Its row says how many failures a state of the case's own last part "
    "puts right at the prompt's end (a positive control), and one of another case's last part.",
]


def shared_cases(runs: Mapping[str, Evaluated]) -> list[str]:
    """Cases with all parts right in every model, whether or not the whole is right, in the benchmark's order."""
    known = [set(parts_right(run)) for run in runs.values()]
    first = next(iter(runs.values()))
    return [case for case in first.cases if all(case in ids for ids in known)]


def parts_right(run: Evaluated) -> list[str]:
    """Cases with every part answered correctly."""
    parts: dict[str, list[bool]] = {}
    for row in run.graded:
        if _PART.fullmatch(row.role):
            parts.setdefault(row.case, []).append(row.outcome == "correct")
    return [case for case, right in parts.items() if all(right)]


def opened(target: Target, run: Evaluated, n: int, shared: Sequence[str]) -> list[Example]:
    """Wholes and parts of the shared cases and of up to ``n`` failures and successes of this run."""
    labels = {case: s.label for s in run.reduction.case_sets for case in s.ids}
    chosen = dict.fromkeys(shared)
    if len(set(labels.values())) == 2:  # otherwise there is nothing to tell apart
        for label in ("failure", "success"):
            chosen.update(dict.fromkeys([case for case in run.cases if labels.get(case) == label][:n]))
    # A shared case without a label (its whole was not an answer) is not a failure, but it has a score.
    by_label = {label: [c for c in chosen if labels.get(c, "failure") == label] for label in ("failure", "success")}
    return run.examples(target.tokenizer, map(CaseSet.of, by_label, by_label.values())) if chosen else []


def _labelled(run: Evaluated, examples: Sequence[Example]) -> list[Example]:
    known = {case for s in run.reduction.case_sets for case in s.ids}
    return [e for e in examples if e.case in known]


def _case_rows(
    question: str, model: str | None, level: tuple[int, str], cases: Sequence[str], found: CaseScores,
    near: Mapping[str, Example | Case],
) -> Iterator[Row]:  # fmt: skip
    """The numbers of each case from which a row over trainings is computed."""
    for case in cases:
        about = {"question": QUESTIONS[question], "model": model or "all doses", "group": level[1], "level": level[0]}
        of = near.get(case)
        about |= {"case": case, "cluster": (of and of.cluster) or case}
        about |= {"crossed": list(of.crossed)} if of and of.crossed else {}
        yield {**about, **{quantity: values.get(case) for quantity, values in found.values.items()}}


def _dose_rows(values: Mapping[str, CaseScores], scores: Sequence[ProbeScore], shared: Sequence[str]) -> Iterator[Row]:
    for score in scores:
        known = {dose: found.known(score, shared) for dose, found in values.items()}
        series = {dose: x for dose, (x, _) in known.items()}
        near = {dose: labels for dose, (_, labels) in known.items()}
        if len(series) < 2 or any(len(v) < 2 for v in series.values()):
            yield _undefined(score, "dose", "too few cases have every part right in every dose")
            continue
        found = known_answers.dose_series(series, quantity=score.quantity, expected=score.expected, clusters=near)
        least, most = (str(of(map(len, series.values()))) for of in (min, max))  # a case may lack a number at a dose
        counted = f"; {least if least == most else f'{least} to {most}'} cases at each of {len(series)} doses"
        for row in found.table:
            trend = "monotone" in row
            made = _row(row, score, "dose", headline=trend, answer=trend)
            yield {**made, "statement": made["statement"] + counted * trend}


def _pair_rows(values: Mapping[str, CaseScores], scores: Sequence[ProbeScore], shared: Sequence[str]) -> Iterator[Row]:
    """The two models that differ most, on the same cases, with all parts known to both: AUROC of twin over control."""
    if not set(PAIR) <= set(values):
        return
    for score in scores:
        sides, near = zip(*(values[dose].known(score, shared) for dose in PAIR[::-1]), strict=True)
        if min(map(len, sides)) < 2:
            yield _undefined(score, "pair", "too few cases have every part right in every dose", "control, twin")
            continue
        (row,) = known_answers.model_auroc(*sides, clusters=near, quantity=score.quantity).table
        yield _row({**row, "expected": score.expected}, score, "pair", "control, twin", answer=True)


def _planted_rows(
    dose: str, examples: Sequence[Example], n: int, found: CaseScores, scores: Sequence[ProbeScore], seed: int
) -> Iterator[Row]:
    """The curve of planted effects with ``n`` cases a side, as many as matched pairs, and the smallest one found."""
    cases = dict.fromkeys(e.case for e in examples)
    for score in scores:
        baseline, _ = found.known(score, list(cases))
        if n < 2 or len(baseline) < 2 or np.ptp(baseline) == 0:
            yield _undefined(score, "planted", f"{n} matched pairs, {len(baseline)} scores", dose)
            continue
        *curve, last = known_answers.planted_recovery(
            baseline, n=n, effects=PLANTED, quantity=score.quantity, seed=seed
        ).table
        yield from (_row(row, score, "planted", dose) for row in curve)
        reached = np.isfinite(last["value"])
        verdict = f"from {last['value']:.2f} sd" if reached else f"none up to {PLANTED[-1]:g} sd"
        yield _row({**last, "verdict": f"{verdict} (n={n} a side)"}, score, "planted", dose)


PLANTED = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Planted effects, in standard deviations."""


def _failure_rows(
    dose: str, pairs: Sequence[tuple[str, str]], found: CaseScores, scores: Sequence[ProbeScore]
) -> Iterator[Row]:
    for score in scores:
        sides, near = zip(*(found.known(score, [pair[i] for pair in pairs]) for i in (0, 1)), strict=True)
        if min(map(len, sides)) < 2:
            yield _undefined(score, "failure", f"{len(pairs)} matched pairs", dose)
            continue
        table = known_answers.failure_auroc(*sides, clusters=near, quantity=score.quantity, permutations=0).table
        yield from (_row(row, score, "failure", dose, headline=dose == "control", answer=True) for row in table)


def _member_rows(dose: str, members: CaseScores, others: CaseScores) -> Iterator[Row]:
    for score in [*SCORES, *members.own]:
        each = [(side, list(side.values.get(score.quantity, {}))) for side in (members, others)]
        sides, near = zip(*(side.known(score, cases) for side, cases in each), strict=True)
        if min(map(len, sides)) < 2:
            yield _undefined(score, "members", "too few scores", dose)
            continue
        table = known_answers.membership_auroc(*sides, clusters=near, quantity=score.quantity, permutations=0).table
        yield from (_row(row, score, "members", dose, headline=dose == "twin", answer=True) for row in table)


def _control_rows(question: str, dose: str, found: Sequence[Row]) -> Iterator[Row]:
    """What a positive control found: shares of what was put there, or AUROCs of it."""
    about = {"probe": CONTROLS[question], "kind": "control", "headline": False, "model": dose}
    about |= {"question": QUESTIONS[question], "measure": MEASURES[question]}
    for row in found:
        short = f"{row['group']}, layer {row['layer']}" if "layer" in row else row["group"]
        shown = "put right" if question == "donors" else "shown"
        value = "cannot say" if row["value"] is None else f"AUROC {row['value']:.2f} (n={row['n']})"
        verdict = f"{row['count']} of {row['n']} {shown}" if row.get("count") is not None and row["n"] else value
        yield {**about, "short": short, "statement": row["quantity"], **row, "verdict": verdict}


QUESTIONS = {
    "dose": "follows the dose",
    "failure": "tells failure from success",
    "members": "tells training members from held-out ones",
    "pair": "tells control from twin",
    "planted": "finds planted effects",
    "donors": "puts failures right (positive control)",
    "heads": "shows heads that look at everything alike (positive control)",
    "exposures": "tells texts that were shown from texts that were not (positive control)",
}
MEASURES = {
    "dose": "Kendall's tau-b", "failure": "AUROC", "members": "AUROC", "pair": "AUROC",
    "planted": "smallest effect found, sd", "donors": "share put right", "heads": "share shown", "exposures": "AUROC",
}  # fmt: skip
MEANS = {"planted": "share of trials found"}
HEADLINE = {"dose": None, "failure": "control", "members": "twin"}
"""The dose whose answer to a question stands in the headline (None: all doses); other questions have none there."""
ALONE = f"cannot say: 1 training ({TRAININGS} are needed)"


def _row(
    row: Row, score: ProbeScore, question: str, dose: str | None = None, *, headline: bool = False, answer: bool = False
) -> Row:
    """A row of one training; if it answers a question, its verdict is that one training cannot say."""
    row = {**row, "verdict": ALONE} if answer else row
    about: Row = {
        "probe": score.probe,
        "kind": score.kind,
        "short": score.short,
        "question": QUESTIONS[question],
        "model": dose or "all doses",
        "headline": headline and score.kind == "probe",
    }
    said = score.quantity
    if question in ("dose", "pair"):
        said += f", expected {score.expected}"
    measure = MEASURES[question] if "verdict" in row else MEANS.get(question, "mean over cases")
    return {**about, "measure": measure, "statement": said, **row}


def _undefined(score: ProbeScore, question: str, why: str, dose: str | None = None) -> Row:
    empty: Row = {"quantity": score.quantity, "group": None, "n": 0, "value": None, "low": None, "high": None}
    row = {**empty, "interval": "none", "verdict": "cannot say", "note": why}
    row |= {"expected": score.expected} if question in ("dose", "pair") else {}
    found = _row(row, score, question, dose, headline=(question, dose) in HEADLINE.items())
    return {**found, "statement": f"{found['statement']}: {why}"}
