"""Probes of one's own put to the dose series: what is taken from their results, what is asked, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from exit_codes import done

from composcope.errors import InputError
from composcope.evaluation.cases import Case
from composcope.evaluation.graded import Graded
from composcope.evaluation.protocols.base import Reduction
from composcope.experiments.cli import main
from composcope.experiments.interventions import inside
from composcope.experiments.run import read_json
from composcope.experiments.run.schema import Evaluated
from composcope.experiments.validity import over_doses as validity
from composcope.experiments.validity import over_seeds as validity_over_seeds
from composcope.experiments.validity import scores as validity_scores
from composcope.probes import Example, ProbeResult
from composcope.probes import validity as known_answers


def _example(i: int, role: str = "whole", group: str = "failure") -> Example:
    return Example(case=f"c{i}", role=role, kind="composition", group=group, prompt_ids=(1, 2, 3), response_ids=(4, 5),
                   answer_ids=(4,), cue_tokens=0, question_span=(1, 3), family="f", depth=2)  # fmt: skip


EXAMPLES = [_example(0), _example(0, "part:0"), _example(1)]


def _result(values: Any, axes: tuple[str, ...] = ("example",), **settings: Any) -> ProbeResult:
    return ProbeResult("mine", [], {"height": torch.as_tensor(values)}, {"height": axes}, settings)


def test_a_tensor_with_one_number_per_example_is_taken_on_wholes() -> None:
    result = _result([0.5, 9.0, 0.25], expected={"height": "decreasing"})
    found = validity_scores._own("mine", result, EXAMPLES)
    ((score, values),) = found.items()
    assert (score.quantity, score.expected, score.short) == ("height (mine)", "decreasing", "mine/height")
    assert values == {"c0": 0.5, "c1": 0.25}


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (_result([[1.0]], ("example", "layer")), "no tensor has 'example' as its only axis"),
        (_result([1.0, 2.0]), r"shape \(2,\) for 3 examples"),
        (_result([1.0, 2.0, 3.0], expected={"height": "up"}), "name tensors increasing or decreasing"),
        (_result([1.0, 2.0, 3.0], expected="up"), "name tensors increasing or decreasing"),
    ],
)
def test_a_result_that_cannot_be_examined_is_refused(result: ProbeResult, says: str) -> None:
    with pytest.raises(InputError, match=says):
        validity_scores._own("mine", result, EXAMPLES)


SCORE = validity_scores.ProbeScore("mine", "height (mine)", "increasing", "mine/height")


def _measured(values: Any) -> validity_scores.CaseScores:
    return validity_scores.CaseScores({SCORE.quantity: {f"c{i}": float(v) for i, v in enumerate(values)}}, [SCORE])


def test_control_is_told_from_twin_on_the_cases_that_both_know() -> None:
    rng = np.random.default_rng(0)
    low, high = rng.normal(size=20), rng.normal(2, size=20)
    values = {"control": _measured(low), "twin": _measured(high)}
    (row,) = validity._pair_rows(values, [SCORE], [f"c{i}" for i in range(20)])
    assert (
        row["verdict"] == validity.ALONE
        and "p" not in row
        and row["value"] == known_answers.auroc(high, low).value
        and not row["headline"]
    )
    assert row["question"] == validity.QUESTIONS["pair"] and row["n"] == 40
    assert not list(validity._pair_rows({"none": values["control"]}, [SCORE], ["c0"]))
    down = known_answers.model_auroc(high, low, expected="decreasing").table[0]
    assert down["value"] == pytest.approx(1 - row["value"]) and down["group"] == "control - twin"
    with pytest.raises(InputError, match="expected is 'up'"):
        known_answers.model_auroc(high, low, expected="up")


def test_cases_are_shared_where_every_dose_has_all_parts_right() -> None:
    def run(*wrong: str) -> Evaluated:
        rows = [Graded(c, r, "incorrect" if c + r in wrong else "correct") for c in "abc" for r in ("part:0", "part:1")]
        cases = {c: Case(c, "q", "a") for c in "abc"}
        return Evaluated(cases, {}, {}, [*rows, Graded("c", "whole", "incorrect")], Reduction(()))

    assert validity.shared_cases({"none": run("apart:1"), "twin": run("bpart:0", "bpart:1")}) == ["c"]
    known = [run("apart:1"), run()]
    for run_ in known:  # depth 2 is the control, at which nothing is opened
        run_.cases.update({c: Case(c, "q", "a", depth=d) for c, d in zip("abc", (4, 2, 4), strict=True)})  # type: ignore
    assert inside.shared(known, 9) == ["c"]


def test_members_are_the_upper_side() -> None:
    *_, row = validity._member_rows("twin", _measured([2, 3, 4]), _measured([0, 1, 2.5]))
    assert row["value"] == known_answers.auroc([2, 3, 4], [0, 1, 2.5]).value == pytest.approx(8 / 9)


def test_the_headline_of_a_question_is_at_its_own_dose_and_of_probes_only() -> None:
    values = {"c0": 3.0, "c1": 4.0, "c2": 1.0, "c3": 2.0}
    found, upper, others = (
        validity_scores.CaseScores({s.quantity: {c: values[c] for c in cases} for s in validity.SCORES})
        for cases in (values, ("c0", "c1"), ("c2", "c3"))
    )
    probes = [s for s in validity.SCORES if s.kind == "probe"]
    assert 0 < len(probes) < len(validity.SCORES)
    for dose in ("none", "control", "twin"):
        failures = [*validity._failure_rows(dose, [("c0", "c2"), ("c1", "c3")], found, validity.SCORES)]
        members = [*validity._member_rows(dose, upper, others)]
        for rows, own in ((failures, "control"), (members, "twin")):
            known = [r for r in rows if r["value"] == 1]
            assert len(known) >= len(validity.SCORES) and all(r["verdict"] == validity.ALONE for r in rows)
            headline = {r["short"] for r in rows if r["headline"]}
            assert headline == ({s.short for s in probes} if dose == own else set())


def test_planted_effects_give_a_curve_and_the_smallest_that_is_found() -> None:
    examples = [_example(i, group="failure" if i % 2 else "success") for i in range(40)]
    found = _measured(np.random.default_rng(1).normal(size=40))
    *curve, last = validity._planted_rows("control", examples, 20, found, [SCORE], 0)
    assert [r["effect"] for r in curve] == list(validity.PLANTED) and all("verdict" not in r for r in curve)
    assert curve[0]["value"] < 0.15 and curve[-1]["value"] > 0.95 and curve[0]["n"] == 20
    assert 0.7 < last["value"] < 1.2 and last["verdict"] == f"from {last['value']:.2f} sd (n=20 a side)"
    *_, few = validity._planted_rows("control", examples[:4], 2, found, [SCORE], 0)
    assert few["verdict"] == "none up to 2 sd (n=2 a side)"
    (none,) = validity._planted_rows("control", examples, 20, _measured(np.ones(40)), [SCORE], 0)
    assert none["verdict"] == "cannot say" and not none["headline"]
    over = validity_over_seeds.rows({1: [*curve, last]}, [])
    assert over == []  # effects found are no trend and no AUROC


def _by_length(lm: Any, examples: Any) -> ProbeResult:
    return ProbeResult(
        "length", [], {"tokens": torch.tensor([float(len(e.prompt_ids)) for e in examples])}, {"tokens": ("example",)}
    )


@pytest.mark.long
def test_a_probe_of_ones_own_is_examined_beside_the_others_and_kept_while_its_code_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "source_hash", lambda: "this code")  # sources may be edited while tests run
    words = ["--benchmark", "organism:mixed", "--limit", "4", "--quiet"]
    runs = {dose: tmp_path / dose for dose in ("none", "twin")}
    for dose, run in runs.items():
        assert main(["evaluate", "--model", f"organism:{dose}", *words, "--out", str(run)]) == done(run)
    rows = validity.examine(tmp_path, runs, n=3, probes={"length": _by_length})
    mine = [r for r in rows if r["probe"] == "length"]
    assert {r["question"] for r in mine} >= {validity.QUESTIONS[k] for k in ("dose", "members", "planted")}
    assert {r["probe"] for r in rows} > {"length"}
    assert rows == validity.examine(tmp_path, runs, n=3, probes={"length": _by_length})
    with pytest.raises(InputError, match="probe other"):
        validity.examine(tmp_path, runs, n=3, probes={"other": lambda lm, examples: ProbeResult("other", [])})
    assert read_json(tmp_path / "validity.json")["settings"]["own_probes"] == ["length"]


def test_the_study_takes_plugins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "validity", "--plugin", str(tmp_path / "no.py"), "--out", str(tmp_path / "s")]) == 1
    assert "no.py: no such file" in capsys.readouterr().err
