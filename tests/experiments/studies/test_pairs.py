"""Pairs of models: differences over the cases of both, and pairs that cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.evaluation.graded import Graded
from composcope.experiments.studies import tables
from composcope.experiments.studies.spec import ModelPair

from ..bare_runs import answers
from .bare_studies import run_of, study_of


def _answers(**roles: str) -> list[Graded]:
    return answers(*map("".join, zip(*roles.values(), strict=True)), roles=" ".join(roles).replace("_", ":"))


def test_differences_of_a_pair_are_over_the_cases_of_both_and_the_gap_is_that_of_products() -> None:
    a = _answers(part_0="11011", part_1="10111", whole="1001?")
    b = _answers(part_0="1011", part_1="1101", whole="0001")
    found = {(m.metric, m.group.get("quantity")): m for m in tables.gains(a, b, seed=3)}
    assert {k: round(m.value or 0, 9) for k, m in found.items()} == {
        ("pair_gain", "step:0"): 0, ("pair_gain", "step:1"): 0, ("pair_gain", "composition"): 0.25,
        ("pair_gap", None): round((2 / 4 - 9 / 16) - (1 / 4 - 9 / 16), 9)}  # fmt: skip
    assert {m.n for m in found.values()} == {4}
    assert [m.metric for m in tables.gains(a, [r for r in b if r.role == "whole"])] == ["pair_gain"]
    short = [Graded("z", role, "correct") for role in ("part:0", "whole")]
    gains = tables.gains([*a, *short], [*b, *short])
    assert {m.metric: m.n for m in gains if m.group.get("quantity") != "step:1"} == {"pair_gain": 5}, "z has one part"


def test_a_pair_whose_run_failed_has_a_line_and_papers_of_other_pairs_say_nothing() -> None:
    one = run_of("x", graded=_answers(whole="1100"))
    other = run_of("y", graded=_answers(whole="1000"))
    kinds = [ModelPair("cost", "x", "y"), ModelPair("tuning", "x", "gone")]
    study = study_of(one, other, name="compositional-gsm")
    study.spec = replace(study.spec, pairs=tuple(kinds))
    (table,) = tables.pairs(study)
    made, failed = table.rows
    assert (made["pair"], made["value"], made["n"]) == ("cost: x − y", 0.25, 4)
    assert (failed["pair"], failed["what"], failed["shown"]) == ("tuning: x − gone", "failed", "no run of gone")
    assert tables.pairs(study_of(one)) == []
    apart = run_of(
        "y", graded=[replace(r, case=f"other-{r.case}") for r in _answers(whole="10")], protocol="double-gate"
    )
    one.run.protocol = "double-gate"
    (row,) = tables._pair_rows(study_of(one, apart), kinds[0], "d")
    assert row["what"] == "failed"


@pytest.mark.parametrize(
    ("kind", "preset", "applies"),
    [
        ("tuning", "compositional-gsm", True),
        ("cost", "compositional-gsm", False),
        ("cost", "composition-collapse", True),
    ],
)
def test_published_differences_stand_beside_pairs_that_are_matched_as_in_the_paper(
    kind: str, preset: str, applies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def beside(*about: Any, references: bool) -> tuple[str, str]:
        asked.append((*about, references))
        return "published", "source"

    monkeypatch.setattr(tables, "beside", beside)
    a, b = (run_of(name, graded=_answers(whole=whole)) for name, whole in (("x", "1100"), ("y", "1000")))
    (row,) = tables._pair_rows(study_of(a, b, name=preset), ModelPair(kind, "x", "y"), "d")
    group = {"quantity": "composition"}
    assert asked == [(preset, "pair_gain", group, tables.pair_name("org/x", "org/y"), "d", applies)]
    assert (row["published"], row["source"], row["data"]) == ("published", "source", "d")


def test_gains_of_a_pair_are_a_minus_b() -> None:
    def run(*outcomes: str) -> Any:
        rows = [Graded(f"c{i}", "whole", o) for i, o in enumerate(outcomes)]  # type: ignore[arg-type]
        return SimpleNamespace(run=SimpleNamespace(graded=rows, protocol="reasoning-gap", cases={}))

    (gain,) = tables.differences(run("correct", "correct", "incorrect"), run("correct", "incorrect", "incorrect"))
    assert (gain.metric, gain.value) == ("pair_gain", pytest.approx(1 / 3))
