"""``composcope diagnose RUN``: ask the failing cases and their variants again, open the model, and name causes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.case import Case
from ...terminal import quietly
from ..console.printing import Reporter
from ..models.target import SERVED, Loading, ServedTarget, Target, as_answered, load_local, opened_here
from ..run import diagnosis as results
from ..run import locked, one_run, provenance
from ..run.diagnosis import FOLDER, Diagnosis, Verdict
from ..run.reader import RunData, read_run
from ..run.summary import counted_failures
from . import asks, behaviour, following, hearing, hypotheses, opening, rule, rule_inside, unsettled, weighing
from .asks import Heard
from .evidence import Behaviour, Inside, Tally, behaviour_lines, inside_lines
from .readings import Held, reading_lines
from .thresholds import MANY, MANY_OF_A_GROUP, brought

COMPANY, OF_SMALL = 8, 24
"""At least this many failing cases are asked and opened, if the run has them: the second number if the model is so
small that they take less than ``QUICK``. Those not asked for are not reported; they show what one case shows by chance,
and more cases show it better."""
QUICK = 120.0
"""``investigate`` diagnoses without being asked if the estimate is at most this many seconds."""


def diagnose(
    run: str | Path | RunData,
    model: str | None = None,
    *,
    cases: int | None = None,
    ids: Sequence[str] = (),
    seed: int = 0,
    quiet: bool = False,
    target: Target | None = None,
) -> Diagnosis:
    """Name the cause of each failing case of an evaluated run: every part right, the whole wrong.

    ``model`` says where the weights are, if the run does not. ``cases`` limits the number of failures (taken
    from each family in turn); ``ids`` names them. ``target`` is the model if it is loaded; it is left open. Answers and
    measurements of an earlier diagnosis are kept. Raises ``InputError`` for a run without failures, an unknown case, or
    a served run without the place of its weights.
    """
    if isinstance(ids, str):
        raise InputError(f"ids {ids!r}: one text; give a list of ids: [{ids!r}]")
    if cases is not None and cases < 1:
        raise InputError(f"cases {cases}: give a number of at least 1, or leave it out for all failures")
    data = run if isinstance(run, RunData) else read_run(one_run(run))
    data.counted_now()  # a run that is not finished has no failures yet,
    data.evaluated()  # and one that lost a file seems to have none
    every = failures(data, ids)
    failing = in_turn(every)[:cases]
    loading = _loading(data, model)
    reporter = Reporter(data.path / "log.txt", quiet=quiet)
    with quietly(quiet):
        known = data.manifest.identity.get("weights")
        opened = nullcontext(target) if target else closing(as_answered(load_local(loading, reporter.say), known))
    with opened as loaded, locked(data.path):
        _same_model(data, loaded, model)
        if right := [id for id in dict.fromkeys(ids) if id not in {case.id for case in every}]:
            reporter.say(f"{data.name}: case {', '.join(right)}: left out, did not fail with every part right")
        if (before := results.n_diagnosed(data.path)) > len(failing):
            reporter.say(
                f"{data.name}: replaces the earlier diagnosis of {before} cases by one of {len(failing)}; without "
                "--cases and --case all are diagnosed, and nothing is asked twice"
            )
        return diagnosed(data, loaded, failing, seed, reporter)


def failures(data: RunData, ids: Sequence[str] = ()) -> list[Case]:
    """The cases to diagnose, in the run's order. Raises ``InputError`` if there are none."""
    for id in ids:
        if id not in data.cases:
            raise InputError(
                f"case {id}: {data.path.name} has no such case (the first case is {next(iter(data.cases), 'none')!r})"
            )
    found = _named(data, ids) if ids else labelled_failures(data)
    if not found:
        what = f"case {', '.join(ids)}: did not fail" if ids else f"{data.path}: no case failed"
        raise InputError(f"{what} with every part right; there is no failure of composition to explain")
    return found


def labelled_failures(data: RunData) -> list[Case]:
    """The failures that the run counts, as far as they have parts.

    A whole that could not be judged is not a failure. But if a run has only such wholes (a model that repeats itself,
    or answers in its own form), they are diagnosed.
    """
    counted = counted_failures(data)
    found = [c for c in data.cases.values() if c.id in counted and c.parts]
    return found or _named(data, sorted(unjudged(data)))


def _named(data: RunData, ids: Sequence[str]) -> list[Case]:
    """The named cases that failed with every part right, also those whose whole could not be judged."""
    counted = counted_failures(data)
    return [c for c in data.cases.values() if c.id in ids and c.parts
            and (c.id in counted or asks.fails(data.outcomes.get(c.id, {}), len(c.parts)))]  # fmt: skip


def unjudged(data: RunData) -> set[str]:
    """Cases whose whole could not be judged."""
    return {row.case for row in data.graded if row.role == "whole" and row.outcome == "invalid"}


def in_turn(cases: Sequence[Case]) -> list[Case]:
    """The first case of each family, then the second of each, and so on; within a family, the run's order."""
    families: dict[str | None, list[Case]] = {}
    for case in cases:
        families.setdefault(case.family, []).append(case)
    return [case for row in zip_longest(*families.values()) for case in row if case is not None]


def cannot(run: str | Path, target: Target) -> str | None:
    """Why the model that answered cannot be opened; None if it can."""
    if isinstance(target, ServedTarget):
        return SERVED
    opened = target.model is not None
    return None if opened else f"only the workers have loaded the weights; run composcope diagnose {run}"


def _loading(data: RunData, model: str | None) -> Loading:
    if data.config is None:
        raise InputError(f"{data.path}: its rows were imported, so there is no model to open; evaluate the cases first")
    return opened_here(data.config, model, data.path)


def _same_model(data: RunData, target: Target, model: str | None) -> None:
    known = data.manifest.identity.get("weights")
    if known and len(known) == 64 and target.who != known:
        named = f"--model {model}" if model else str(data.config and data.config.model)
        raise InputError(
            f"{named}: these are not the weights that answered in {data.path.name}; "
            "give the folder of the ones that did"
        )


def estimate(target: Target, failing: Sequence[Case]) -> float:
    """The approximate seconds that a diagnosis takes on two cores, from measurements at several model sizes."""
    millions = sum(p.numel() for p in target.model.parameters()) / 1e6
    return len(failing) * (0.5 + 0.3 * millions)


def diagnosed(data: RunData, target: Target, failing: Sequence[Case], seed: int, reporter: Reporter) -> Diagnosis:
    """Diagnose these cases of a run that this process has locked, with its model loaded."""
    start, folder = time.monotonic(), data.path / FOLDER
    folder.mkdir(exist_ok=True)
    known, named = list(data.cases.values()), {case.id for case in failing}
    others = [case for case in in_turn(_named(data, [*data.cases])) if case.id not in named]
    at_least = min(OF_SMALL, max(COMPANY, int(QUICK / estimate(target, failing[:1]))))
    groups = hearing.with_variants(data, failing, others, at_least, seed, reporter)
    heard, successes, asked = hearing.hear(data, target, groups, reporter)
    followed = following.shortcuts(heard, known, hearing.heard_in_run(data, labelled_failures(data), groups))
    behaviours = behave(heard, known, successes, followed)
    left = {id: heard[id] for id, b in behaviours.items() if rule.to_open(b)}
    settings = opening.settings(target, heard, asked, seed)
    held = opening.readable(target, heard, settings)
    fewest = MANY if any(map(rule_inside.intact, behaviours.values())) else MANY_OF_A_GROUP
    opened = opening.open_cases(target, left, settings, folder, reporter, seed, fewest=fewest) if left else {}
    behaviours |= _of_groups(behaviours, opened, heard, known)
    opened = weighing.uncomputed(opened, behaviours, held, {id: data.cases[id].family for id in opened})
    # Where the answers settle the cause and no text mends the case, the model is opened only for what does.
    settled = _settled(behaviours, known)
    proved = opening.open_settled(target, heard, settled, asked, folder, reporter, seed)
    opened |= {id: replace(one, apart=opened[id].apart if id in opened else None) for id, one in proved.items()}
    said = _said_in_run(data)
    verdicts = [
        replace(_verdict(id, behaviours[id], opened.get(id), held.get(id, ())), question=one.case.question,
                said=said.get(id, one.text().strip()), gold=one.case.answer)
        for id, (one, *_) in heard.items() if id in named
    ]  # fmt: skip
    inside = [i for id, i in opened.items() if id in named]
    mended = {"mended": _sums(b.mended for id, b in behaviours.items() if id in named),
              "interventions": _sums({n: t.own for n, t in i.tests.items()} for i in inside)}  # fmt: skip
    of = _of_how_many(data, named)
    about = {**of, "hypotheses": followed.rows(), **_about(data, target, seed, time.monotonic() - start), **mended}
    found = Diagnosis(data.path, verdicts, results.count(verdicts, data.cases), about)
    results.write(found)
    return found


def _said_in_run(data: RunData) -> dict[str, str]:
    """The answer to the whole of each case in the run itself."""
    wholes = [row for row in data.graded if row.role == "whole" and row.ask in data.responses]
    return {row.case: row.answer or data.responses[str(row.ask)].text.strip() for row in wholes}


def _of_how_many(data: RunData, named: set[str]) -> dict[str, Any]:
    """How many failures the run has, and which of those without a verdict of the grader were left out."""
    open_wholes = {c.id for c in _named(data, sorted(unjudged(data)))}
    every = open_wholes if named <= open_wholes else {case.id for case in labelled_failures(data)} | named
    return {"failures": len(every), "unjudged": len(named & open_wholes), "left_out": sorted(open_wholes - named)}


def behave(
    heard: Mapping[str, Sequence[Heard]],
    known: Sequence[Case],
    successes: Sequence[Heard] = (),
    followed: following.Shortcuts | None = None,
) -> dict[str, Behaviour]:
    """What the answers show, with the shortcut that the most edits of a case follow, of those that the run admits."""
    followed = followed or following.shortcuts(heard, known)
    out = {id: behaviour.behaviour(group, followed.best(id), successes) for id, group in heard.items()}
    for id, group in _once(heard).items():
        out[id] = replace(out[id], once=behaviour.behaviour(group, None, successes))
    return weighing.together(out, {id: group[0].case.family for id, group in heard.items()})


def _once(heard: Mapping[str, Sequence[Heard]]) -> dict[str, list[Heard]]:
    """The settings of each case without those that an earlier case has, or that are a case themselves.

    A case of a small family is a variant of several others, with the same answers each time. Cases without such
    settings are left out.
    """
    seen, out = {group[0].case.question for group in heard.values()}, dict[str, list[Heard]]()
    for id, (original, *others) in heard.items():
        kept = [original]
        for one in others:
            if one.case.question not in seen:
                seen.add(one.case.question)
                kept.append(one)
        if len(kept) <= len(others):
            out[id] = kept
    return out


def _of_groups(
    found: Mapping[str, Behaviour], opened: Mapping[str, Inside], heard: Mapping[str, Sequence[Heard]],
    known: Sequence[Case],
) -> dict[str, Behaviour]:  # fmt: skip
    """The evidence of the opened cases, with what these write together; if there are two groups, for each group.

    The other group may hide a shortcut that only one group follows, so each is searched for shortcuts again.
    """
    out: dict[str, Behaviour] = {}
    for some in dict.fromkeys(one.apart.cases if one.apart else frozenset(opened) for one in opened.values()):
        out |= weighing.within({id: found[id] for id in found if id in some})
        if some != frozenset(opened):
            followed = following.shortcuts({id: heard[id] for id in heard if id in some}, known)
            of_group = {id: best._replace(of_run=False) for id in some if (best := followed.best(id)) is not None}
            out |= {id: replace(out[id], shortcut=shortcut) for id, shortcut in of_group.items()}
    return out


def _settled(found: Mapping[str, Behaviour], known: Sequence[Case]) -> dict[str, tuple[str, opening.Source | None]]:
    """Cause and source of the cases that are opened although their answers settle them: no text mends them, they follow
    a shortcut, or an intervention has to prove the cause."""

    @cache
    def source(name: str) -> opening.Source:
        return lambda one, place: hypotheses.copied_from(name, one.case, known, place)

    out: dict[str, tuple[str, opening.Source | None]] = {}
    for id, one in found.items():
        cause = rule.named(one) or ""
        if cause.startswith("shortcut:"):
            out[id] = cause, source(cause.partition(":")[2])
        elif cause and (rule.mended_by(one) is None or rule.to_prove(one)):
            out[id] = cause, None
    return out


def _verdict(id: str, found: Behaviour, inside: Inside | None, held: Sequence[Held]) -> Verdict:
    settled, evidence = rule.from_behaviour(found), (*behaviour_lines(found), *reading_lines(held))
    if settled is not None and (_said_instead(settled[0], inside) or rule.drifts(settled[0], inside)):
        settled = None
    evidence += tuple(inside_lines(inside)) if inside is not None else ()
    inner = rule.mended_inside(inside) if inside is not None else None
    if settled is not None and (inner is not None or not rule.to_prove(found)):
        cause, shown = settled
        return Verdict(id, cause, evidence, _confidence(shown), rule.mended_by(found) or inner)
    opened = rule_inside.from_inside(inside, found, held) if settled is None and inside is not None else None
    if opened is not None:
        cause, shown, mends, block = opened
        return Verdict(id, cause, evidence, _confidence(shown), rule.mended_by(found) or mends, block)
    if settled is None and (spoilt := rule.from_context(found)) is not None:
        return Verdict(id, spoilt[0], evidence, _confidence(spoilt[1]), rule.mended_by(found))
    return Verdict(
        id, "undetermined", evidence, 0.0, rule.mended_by(found), settle=unsettled.open_question(found, inside, held)
    )


def _about(data: RunData, target: Target, seed: int, seconds: float) -> dict[str, Any]:
    made_with = {**data.manifest.made_with(), "composcope": provenance.code(), "versions": provenance.libraries(),
                 "numerics": dict(target.numerics())}  # fmt: skip
    return {"seed": seed, "model": target.label, "seconds": round(seconds, 2), "made_with": made_with}


def _sums(found: Iterable[Mapping[str, Tally]]) -> dict[str, dict[str, int]]:
    """Over all cases: how many failing variants each change mends (or shows the right answer), of how many."""
    total: dict[str, dict[str, int]] = {}
    for tallies in found:
        for name, tally in tallies.items():
            before = total.get(name, {"count": 0, "n": 0})
            total[name] = {"count": before["count"] + tally.k, "n": before["n"] + tally.n}
    return total


def _confidence(shown: Tally) -> float:
    return round((shown.k + 1) / (shown.n + 2), 2)


def _said_instead(cause: str, found: Inside | None) -> bool:
    """Whether a usual value is what the model says where it lacks a bridge that stands elsewhere in the question."""
    if not cause.startswith("shortcut:usual") or found is None or not found.enough:
        return False
    return brought(*(found.test(name) for name in ("move", "skip", "noise")))
