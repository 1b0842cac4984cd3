"""Figures of the gates: stages, quadrants, causes, bottlenecks and levels of scaffolds in their order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments.figures import gates, grouping
from composcope.experiments.figures.drawing import NothingToDraw
from composcope.experiments.run.diagnosis import CauseShare

from ..bare_runs import answers, bare_run


def test_stages_of_the_gates_are_in_the_order_in_which_they_are_passed() -> None:
    counts = {"atom_gate": 70, "sub_question_gate": 60, "double_gate": 50, "residual_failure": 20}
    found = {name: Metric(name, n=50 if name == "residual_failure" else 80, count=k) for name, k in counts.items()}
    stages = [(r["stage"], r["count"], r["n"]) for r in gates._stages(bare_run(one=found.get))]
    assert stages == [("all cases", 80, 80), ("atoms stable", 70, 80), ("sub-questions right", 60, 80),
                      ("both gates", 50, 80), ("whole wrong, gated", 20, 80)]  # fmt: skip
    asked = {"step:0": (60, 78, 2), "step:1": (40, 60, 0), "both": (30, 70, 10), "press_gap": (12, 25, 5)}
    gap = [Metric(name, n=n, n_invalid=open_, count=k) for name, (k, n, open_) in asked.items()]
    stages = [(r["stage"], r["count"], r["n"]) for r in gates._stages(bare_run(metrics=gap))]
    assert stages == [("all cases", 80, 80), ("step 1 right", 60, 80), ("step 2 right (of 60)", 40, 80),
                      ("both right", 30, 80), ("whole wrong, both right", 12, 80)]  # fmt: skip


def test_quadrants_have_their_own_order_and_names() -> None:
    order = sorted(["00", "01", "111", "10", "11", "some", "all"], key=lambda q: gates._quadrant_order((q, None)))  # type: ignore[arg-type]
    assert order == ["11", "10", "01", "00", "all", "some", "111"]
    names = {q: gates._right(q) for q in ("11", "10", "01", "00", "111", "101", "001", "000")}
    assert names == {"11": "both steps right", "10": "only step 1 right", "01": "only step 2 right",
                     "00": "no step right", "111": "every step right", "101": "step 2 wrong",
                     "001": "steps 1 and 2 wrong", "000": "steps 1, 2 and 3 wrong"}  # fmt: skip
    assert gates.role_class("part:0:paraphrase:2") == "part paraphrase" and gates.role_class("scaffold:1") == "scaffold"


def test_cases_without_scaffolds_are_unknown_unless_they_were_right_unaided() -> None:
    alone = [
        *answers("1", "0", roles="whole"),
        *(replace(r, case=f"s{r.case}") for r in answers("01", roles="whole x")),
    ]
    alone[-1] = replace(alone[-1], role="scaffold:1")
    assert gates._ladders(bare_run(graded=alone)) == [frozenset({0}), frozenset(), frozenset({1})]
    assert gates._ladders(bare_run(graded=alone[:2])) == [], "a run that asked no scaffold has no levels"


def test_the_caption_of_causes_says_of_each_run_what_was_not_diagnosed_and_what_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = [CauseShare("all", "", "undetermined", 2, 2, 1.0, 0.2, 1.0, "clopper-pearson")]
    left = {"x": "Not counted: 1 case.", "y": "", "z": ""}
    every = {"x": {"a", "b"}, "y": {"a", "b", "c"}, "z": set[str]()}
    told = {name: SimpleNamespace(found=SimpleNamespace(shares=shares, verdicts=("a", "b")), left_out=said.__str__)
            for name, said in left.items()}  # fmt: skip
    monkeypatch.setattr(gates, "diagnosed_failures", lambda run: told[run.name] if run.name != "z" else None)
    monkeypatch.setattr(gates, "counted_failures", lambda run: every[run.name])
    runs = [bare_run(name=n, path=Path(n), model=f"m-{n}") for n in left]
    both, alone = (gates.causes.draw(some) for some in (runs, runs[1:]))
    assert " m-y: Only 2 of 3 failures were diagnosed. m-x: Not counted: 1 case." in both.caption
    assert "m-x: Only" not in both.caption and "Runs: x, y." in both.caption
    assert " Only 2 of 3 failures were diagnosed." in alone.caption and "m-y: Only" not in alone.caption
    assert [r["model"] for r in both.rows] == ["m-x", "m-y"] and {r["n"] for r in both.rows} == {2}


def test_causes_are_grouped_only_by_what_differs_between_the_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def share(group: str, value: str) -> CauseShare:
        return CauseShare(group, value, "undetermined", 3, 6, 0.5, 0.1, 0.9, "clopper-pearson")

    shares = [share("all", ""), share("family", "rank"), share("depth", "2"), share("depth", "4")]
    told = SimpleNamespace(found=SimpleNamespace(shares=shares, verdicts=()), left_out=lambda: "")
    monkeypatch.setattr(gates, "diagnosed_failures", lambda run: told)
    rows = gates.causes.draw([bare_run()]).rows
    assert [r["group"] for r in rows] == ["all", "depth 2", "depth 4"]
    assert {(r["count"], r["n"], r["value"], r["low"], r["high"]) for r in rows} == {(3, 6, 0.5, 0.1, 0.9)}
    two = [bare_run(name=n, path=Path(n), model=f"m-{n}") for n in "xy"]
    panels = gates.causes.draw(two).figure.axes
    assert [(ax.get_title(loc="left"), ax.get_xlabel()) for ax in panels] == [
        ("m-x", ""), ("m-y", "share of the failures")
    ]  # fmt: skip
    monkeypatch.setattr(grouping, "FAMILIES", 1)
    shares += [replace(share("family", "rank"), cause="lost"), replace(share("family", "pair"), count=5)]
    drawing = gates.causes.draw([bare_run(protocol="scaffolding")])
    assert {r["group"] for r in drawing.rows if r.get("drawn") == "no"} == {"family pair"}
    assert "1 families with the most cases; the csv has 1 more" in drawing.caption
    assert drawing.caption.startswith("Causes of the failures, as shares"), "parts of a ladder may be wrong"


def test_quadrants_and_bottlenecks_are_drawn_in_order_and_without_what_never_happened() -> None:
    found = [Metric("quadrant", {"quadrant": q}, n=20, count=5, value=0.25) for q in ("00", "11", "01", "10")]
    run = bare_run(metrics=found, select=lambda *_: found)
    assert [r["quadrant"] for r in gates.failure_quadrants.draw([run]).rows] == ["11", "10", "01", "00"]
    skill = [Metric("bottleneck", {"skill": s}, n=9, count=k, value=k / 9) for s, k in (("never", 0), ("b", 2))]
    skill.append(Metric("bottleneck", {"combination": ["x", "y"]}, n=9, count=4, value=4 / 9))
    for top, drawn in ((5, ["x + y", "b"]), (1, ["x + y"])):
        assert [r["skill"] for r in gates.bottlenecks.draw([bare_run(metrics=skill)], top=top).rows] == drawn


def test_tasks_that_no_revealed_step_solves_and_open_ones_have_their_own_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [frozenset({k}) for k, n in ((-1, 3), (0, 5), (2, 4)) for _ in range(n)]
    some_open = [frozenset({0, -1}), frozenset({0, 1, 2}), frozenset({2, -1}), frozenset[int]()]
    monkeypatch.setattr(gates, "_ladders", lambda run: [*known, *some_open])
    drawing = gates.k_histogram.draw([bare_run()])
    fields = ("revealed", "k", "count", "n", "value", "bound_low", "bound_high")
    assert [tuple(r[k] for k in fields) for r in drawing.rows] == [
        ("0", 0, 5, 16, 5 / 16, 5 / 16, 7 / 16), ("2", 2, 4, 16, 4 / 16, 4 / 16, 6 / 16),
        ("none", -1, 3, 16, 3 / 16, 3 / 16, 5 / 16), ("no ladder", None, 1, 16, 1 / 16, None, None),
        ("open", None, 3, 16, 3 / 16, None, None),
    ], "shares of all cases, as an open one is more often one that needs many steps"  # fmt: skip
    assert "“open” = " in drawing.caption and "“no ladder” = " in drawing.caption
    monkeypatch.setattr(gates, "_ladders", lambda run: known)
    assert "“open” = " not in gates.k_histogram.draw([bare_run()]).caption


def test_ladders_of_which_none_could_be_judged_were_asked_all_the_same() -> None:
    asked = bare_run(graded=[Graded("c", "whole", "invalid"), Graded("c", "scaffold:1", "invalid")])
    for run, said in ((asked, "could be judged"), (bare_run(), "asked with scaffolds")):
        with pytest.raises(NothingToDraw, match=said):
            gates.k_histogram.draw([run])


def test_ladders_are_counted_as_the_metrics_count_them() -> None:
    graded = [Graded("c", "whole", "incorrect"), Graded("c", "scaffold:1", "invalid", reason="error: timeout")]
    run = bare_run(graded=[*graded, Graded("d", "whole", "correct"), Graded("d", "scaffold:1", "correct")])
    for compat, counts in ((None, {"0": 1, "open": 1}), ("stad", {"0": 1, "none": 1})):
        run.counted = SimpleNamespace(compat=compat)
        assert {r["revealed"]: r["count"] for r in gates.k_histogram.draw([run]).rows} == counts


def test_bars_of_failed_wholes_show_every_quadrant_that_has_some_of_whatever_number_of_steps() -> None:
    counts = {"111": 5, "110": 3, "001": 1, "000": 0}
    found = [Metric("quadrant", {"quadrant": q}, n=9, count=k, value=k / 9) for q, k in counts.items()]
    drawing = gates.failure_quadrants.draw([bare_run(metrics=found, select=lambda *_: found)])
    assert {r["quadrant"]: r["count"] for r in drawing.rows} == counts
    fig = drawing.figure
    legends = [*fig.legends, *(ax.get_legend() for ax in fig.axes if ax.get_legend() is not None)]
    named = {text.get_text() for legend in legends for text in legend.get_texts()}
    assert named >= {gates._right(q) for q in ("111", "110", "001")} and gates._right("000") not in named
    alone = [Metric("quadrant", {"quadrant": q}, n=9, count=k, value=k / 9) for q, k in (("1", 5), ("0", 4))]
    rows = gates.failure_quadrants.draw([bare_run(metrics=alone, select=lambda *_: alone)]).rows
    assert [r["steps"] for r in rows] == ["every step right", "step 1 wrong"]
