"""Which cases a study opens a model up on, with which settings, and what is said where it cannot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.graded import Graded
from composcope.experiments import agentcoma, composition_collapse, probing, report
from composcope.experiments.studies import results, study
from composcope.experiments.studies.spec import Spec
from composcope.experiments.studies.study import STUDIES, Study
from composcope.probes import lookback, min_k, neurons, patching, trajectory
from composcope.probes.result import ProbeResult


class Opened:
    """What was noted and saved of a run with these cases; an example is a case's whole or part in its group."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cases: dict[str, Any], **found: Any) -> None:
        self.noted: list[tuple[str, bool, list[str]]] = []
        self.saved: dict[str, Any] = {}
        monkeypatch.setattr(probing, "save_chosen", self._noted)
        monkeypatch.setattr(probing, "run_one", self._saved)
        self.said: list[str] = []
        reporter: Any = SimpleNamespace(say=self.said.append)
        lm = SimpleNamespace(anatomy=SimpleNamespace(n_layers=24))
        target: Any = SimpleNamespace(tokenizer="words", open_model=lambda: lm)
        evaluated: Any = SimpleNamespace(cases=cases, examples=self._examples, **found)
        run: Any = SimpleNamespace(name="r", path=Path("r"))
        self.context = study.ProbeContext(run, SimpleNamespace(seed=5), target, evaluated, reporter)  # type: ignore[arg-type]

    def _examples(self, tokenizer: str, sets: Any) -> list[Any]:
        assert tokenizer == "words"
        return [SimpleNamespace(case=c, role=role, group=s.label) for s in sets for c in s.ids
                for role in ("whole", "part:0")]  # fmt: skip

    def _noted(self, run: Any, chosen: probing.Chosen) -> None:
        self.noted.append((chosen.note, chosen.contrast, self.named(chosen.examples)))

    def _saved(self, run: Any, lm: Any, name: str, chosen: Any, settings: Any, made: Any, *more: Any) -> None:
        given = made.args[0] is lm is self.context.lm and made.args[1] == [*chosen.examples] and chosen.contrast
        assert given and (run.name, settings.seed, more[0]) == ("r", 5, self.context.reporter)
        self.saved[name] = made.func, made.keywords, self.named(chosen.examples)
        assert more[1] == made.keywords

    @staticmethod
    def named(examples: Any) -> list[str]:
        return [f"{e.group[0]}:{e.case}" + ("" if e.role == "whole" else "/part") for e in examples]


def test_agentcoma_opens_up_every_case_whose_whole_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = {"a": "correct", "b": "incorrect", "c": "invalid", "d": "abstained", "e": "correct"}
    rows = [Graded(c, "whole", o) for c, o in outcomes.items()] + [Graded("c", "part:0", "correct")]  # type: ignore[arg-type]
    opened = Opened(monkeypatch, dict.fromkeys("edcba"), graded=rows)
    agentcoma.probe(opened.context)
    every = ["f:d", "f:d/part", "f:b", "f:b/part", "s:e", "s:e/part", "s:a", "s:a/part"]
    assert [noted[1:] for noted in opened.noted] == [(True, every)]
    assert opened.saved == {
        "lookback": (lookback.over_examples, {"seed": 5}, every),
        "min-k": (min_k.over_examples, {"k": 0.2, "seed": 5}, every),
        "neurons": (neurons.over_examples, {**agentcoma.QRNCA, "seed": 5}, every),
    }
    few = study.ProbeContext(**_limited(opened, 2))
    assert opened.named(few.all_cases()) == ["f:d", "f:d/part", "s:e", "s:e/part"], "the first in the benchmark's order"


def _limited(opened: Opened, limit: int) -> dict[str, Any]:
    known = ("run", "settings", "target", "evaluated", "reporter")
    return {**{name: getattr(opened.context, name) for name in known}, "limit": limit}


FAMILIES = {"s4": ("successor", 4), "i4": ("interval", 7), "p4": ("pair", 4), "s6": ("successor", 6),
            "i6": ("temporal_interval", 6), "x6": ("successor", 6), "s2": ("successor", 2)}  # fmt: skip
BINS = {"i4": 4}


def test_composition_collapse_opens_up_gated_successes_of_depth_4_and_failures_of_depth_6(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = {c: SimpleNamespace(family=f, depth=d, depth_bin=BINS.get(c)) for c, (f, d) in FAMILIES.items()}
    sides = {"failure": {"s4", "s6", "i6", "s2"}, "success": {"i4", "p4", "x6", "s4"}}
    opened = Opened(monkeypatch, cases, ids=sides.__getitem__)
    composition_collapse.probe(opened.context)
    chosen = ["f:s6", "f:i6", "s:s4", "s:i4"]
    ((note, contrast, noted),) = opened.noted
    assert "2 gated successes of depth 4 and 2 gated failures of depth 6" in note and (contrast, noted) == (
        True,
        chosen,
    )
    assert opened.saved == {
        "patching": (composition_collapse.patch, {"layers": [0, 3, 5, 8, 11, 13, 16, 18, 21, 23], "seed": 5}, chosen),
        "trajectory": (trajectory.over_examples, {"steps": 40, "position": "prompt-end", "seed": 5}, chosen),
    }
    few = study.ProbeContext(**_limited(opened, 1))
    composition_collapse.probe(few)
    assert opened.noted[-1][1:] == (True, ["f:s6", "s:s4"]), "as many of each side"


@pytest.mark.parametrize("side", ["failure", "success"])
def test_a_boundary_set_without_one_side_is_said_and_nothing_is_measured(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = {c: SimpleNamespace(family="interval", depth=d, depth_bin=None) for c, d in (("a", 4), ("b", 6))}
    sides = {"failure": {"b"}, "success": {"a"}} | {side: set[str]()}
    opened = Opened(monkeypatch, cases, ids=sides.__getitem__)
    composition_collapse.probe(opened.context)
    assert [noted[1:] for noted in opened.noted] == [(False, [])] and opened.saved == {}
    assert "nothing to compare" in opened.said[0]


def test_patches_go_from_successes_to_failures_and_are_judged_by_the_gold_answers_of_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Any] = []

    def sweep(*args: Any, **options: Any) -> Any:
        given.extend([args, options])
        return ProbeResult("patching", [], settings={"kept": 1})

    monkeypatch.setattr(patching, "prompt_end_sweep", sweep)
    monkeypatch.setattr(patching, "graders", lambda lm, recipients, donors: ([e.case for e in recipients],
                                                                             [e.case for e in donors]))  # fmt: skip
    monkeypatch.setattr(patching, "new_tokens", lambda lm, examples, most: (len(examples), most))
    examples = [SimpleNamespace(case=c, group=g, prompt_ids=f"{c}?", answer_ids=f"{c}!", shares=f"{c}~")
                for c, g in (("a", "failure"), ("b", "success"), ("c", "success"))]  # fmt: skip
    made = composition_collapse.patch("lm", examples, [0, 2], seed=4)
    assert given == [
        ("lm", ["b?", "c?"], ["a?"], [(0, 0), (1, 0)], [0, 2], (3, 512)),
        {"donor_answers": ["b!", "c!"], "recipient_answers": ["a!"], "graders": (["a"], ["b", "c"]),
         "clusters": (["b~", "c~"], ["a~"]), "seed": 4},
    ]  # fmt: skip
    assert made.settings == {"kept": 1, "cases": [("b", "a"), ("c", "a")], "position": "prompt-end"}


@pytest.mark.parametrize(
    ("donors", "recipients", "expected"),
    [(2, 3, [(0, 0), (1, 1), (0, 2), (0, 1), (1, 2), (1, 0)]), (1, 1, [(0, 0)]), (16, 10, None)],
)
def test_pairs_of_the_boundary_are_at_most_16_and_use_every_side_evenly(
    donors: int, recipients: int, expected: list[tuple[int, int]] | None
) -> None:
    found = composition_collapse.boundary_pairs(donors, recipients)
    assert expected in (None, found) and len(found) == len(set(found)) == min(16, donors * recipients)
    assert expected or {d for d, _ in found} == set(range(16))


@pytest.mark.parametrize(
    ("tokenizer", "fails", "note"),
    [("words", None, None), ("words", "no  such\nthing", "no such thing"), (None, None, "--probe-model")],
)
def test_why_a_model_was_not_opened_is_recorded_and_the_answers_stay(
    tokenizer: str | None, fails: str | None, note: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: dict[str, Any] = {}
    said: list[str] = []
    run: Any = SimpleNamespace(name="r", path=Path("r"), record=lambda **about: recorded.update(about))
    monkeypatch.setattr(study.job, "no_contrast", lambda found, path: (found, path))
    seen: list[Any] = []

    def probe(context: study.ProbeContext) -> None:
        seen.append((context.evaluated, context.limit))
        if fails:
            raise InputError(fails)

    target: Any = SimpleNamespace(tokenizer=tokenizer)
    reporter: Any = SimpleNamespace(say=said.append)
    found: Any = "found"
    for recipe in (probe, None):
        got = study.step(recipe, 3)(run, None, target, found, reporter)  # type: ignore[arg-type]
        assert got == ("found", Path("r"))
        told = recorded.pop("probe_note")
        wanted = note if recipe else None
        assert (told is None and said == []) if wanted is None else (wanted in told and told in said.pop())
    assert seen == ([] if tokenizer is None else [("found", 3)])


def test_a_report_that_cannot_be_written_leaves_the_study_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    reporter: Any = SimpleNamespace(say=said.append, bar="bar")
    runs: Any = [SimpleNamespace(path="one"), SimpleNamespace(path="two")]
    own = Study(Spec(()), STUDIES["agentcoma"], tmp_path, (), runs)
    monkeypatch.setattr(report, "write", lambda of, out, progress: f"{out}/{'-'.join(of)}-{progress}.html")
    assert results._report(own, reporter) == "one-two-bar.html" and said == []

    def fails(*_: Any, **__: Any) -> None:
        raise InputError("no room")

    monkeypatch.setattr(report, "write", fails)
    assert results._report(own, reporter) is None and "no room" in said[0]
