"""The first tables of a page: numbers with unit, interval and count, the lead, families, what is not shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments.report import headline
from composcope.experiments.run.reader import load

from ..bare_runs import bare_run, spaced


@pytest.mark.parametrize(
    ("row", "form", "shown", "interval", "count"),
    [
        (Metric("x", n=40, count=10, value=0.25, low=0.127, high=0.412), "rate", "25.0 %", "[12.7, 41.2]", "10 of 40"),
        (Metric("x", n=40, count=-5, value=-0.125, low=-0.3, high=0.05), "points", "−12.5", "[−30.0, 5.0]", "n = 40"),
        (Metric("x", n=9, value=3.456, low=1, high=5.5), "number", "3.46", "[1.00, 5.50]", "n = 9"),
        (Metric("x", n=0, count=0), "rate", "undefined", "", "0 of 0"),
        (Metric("x", n=9, count=3, value=1 / 3, cluster_n=4), "rate", "33.3 %", "", "3 of 9; 4 clusters"),
        (Metric("x", n=9, count=3, value=1 / 3, cluster_n=4, interval="korn-graubard, crossed"), "rate", "33.3 %", "",
         "3 of 9; 4 shared facts"),
        (Metric("x", n=6, count=4, value=2 / 3, cluster_n=10), "rate", "66.7 %", "", "4 of 6; 10 shared facts"),
    ],
)  # fmt: skip
def test_a_number_of_a_table_has_its_unit_its_interval_and_its_count(
    row: Metric, form: str, shown: str, interval: str, count: str
) -> None:
    found = headline.shown(row, form), headline.interval(row, form), headline._count(row, form)
    assert tuple(map(spaced, found)) == (shown, interval, count)


def test_a_cell_has_a_bar_from_0_to_100_is_few_below_15_and_says_the_range_of_what_is_open() -> None:
    row = Metric("residual_failure", n=14, n_invalid=2, count=7, value=0.5, low=0.23, high=0.77, bound_low=0.4375,
                 bound_high=0.5625)  # fmt: skip
    cell = headline._cell(bare_run(metrics=[row]), "residual_failure", "rate")
    assert cell is not None and (cell["at"], cell["from"], cell["to"], cell["few"]) == (50, 23, 77, True)
    assert (cell["n"], spaced(cell["ungraded"])) == (14, "2 ungraded: with them 43.8 % to 56.2 %")
    cell = headline._cell(bare_run(metrics=[replace(row, n=15, low=None)]), "residual_failure", "rate")
    assert cell is not None and (cell["few"], cell["interval"], cell["from"]) == (False, "no interval", None)
    facts = Metric("atom_stability", {"per": "fact"}, n=9, count=9, value=1)
    assert (headline._cell(bare_run(metrics=[facts]), "atom_stability", "rate") or {})["n"] == 9
    assert headline._cell(bare_run(metrics=[facts]), "residual_failure", "rate") is None
    assert [headline._clip(v) for v in (-0.1, 0.12345, 1.2, None)] == [0, 12.35, 100, None]
    assert headline.heading(("gap", "Gap", "points")) == "Gap, points" and headline.heading(("a", "A", "rate")) == "A"


def test_tables_are_by_protocol_and_benchmark_without_columns_that_no_run_has(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    for name, protocol in (("a", "double-gate"), ("b", "double-gate"), ("c", "compositionality-gap")):
        synthetic.make_run(tmp_path / name, n=24, probes=(), protocol=protocol, model=f"org/{name}")
    file = tmp_path / "a" / "metrics.json"
    counted = json.loads(file.read_text())
    kept = [m for m in counted["metrics"] if m["metric"] != "double_gate"]
    file.write_text(json.dumps({**counted, "metrics": kept}))
    found = headline.tables(runs := load([tmp_path]))
    at = [name for _, name, _ in found[0]["meanings"]].index("double_gate")
    assert [row["cells"][at] is None for row in found[0]["rows"]] == [True, False]
    assert [t["lead"] for t in found] == [headline.lead(runs[:2]), headline.lead(runs[2:])]
    assert [(t["protocol"], [r["run"] for r in t["rows"]]) for t in found] == [
        ("double-gate", ["a", "b"]), ("compositionality-gap", ["c"])]  # fmt: skip
    for table in found:
        assert all(len(row["cells"]) == len(table["columns"]) == len(table["meanings"]) for row in table["rows"])
        assert all(any(row["cells"][i] for row in table["rows"]) for i in range(len(table["columns"])))
    assert found[1]["chance"] == "4\u00a0%"


def test_methods_are_those_of_intervals_in_the_tables() -> None:
    rows = [Metric("press_gap", interval="korn-graubard", low=0.1, high=0.2), Metric("gap", interval="bootstrap"),
            Metric("quadrant", interval="clopper-pearson", low=0.1, high=0.2)]  # fmt: skip
    assert [n for n, _ in headline.methods([bare_run(metrics=rows, protocol="compositionality-gap")])] == [
        "korn-graubard"
    ]


def test_the_chance_level_of_a_table_is_that_of_all_of_its_runs(synthetic: ModuleType, tmp_path: Path) -> None:
    for name, depth in (("a", 2), ("b", 8), ("c", 4)):
        synthetic.make_run(tmp_path / name, n=8, probes=(), depths={depth: 8}, model=f"org/{name}")
    (table,) = headline.tables(load([tmp_path]))
    assert table["chance"] == "12.5\u00a0% to 50\u00a0%"
    file = tmp_path / "c" / "cases.jsonl"
    first, *others = file.read_text().splitlines(True)
    file.write_text(json.dumps({**json.loads(first), "chance": None}) + "\n" + "".join(others))
    (table,) = headline.tables(load([tmp_path]))
    assert table["chance"] == "12.5\u00a0% to 50\u00a0% (stated for 7 of 8 cases)"


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([], "No headline metric"),
        ([(0, 0, 0)], "No case has every part right, so"),
        ([(0, 0, 3)], "3 cases could not be judged, and no other has every part right, so"),
        ([(0, 0, 3), (0, 0, 3)], "Over 2 runs, 6 cases could not be judged, and no other has"),
        ([(5, 20, 2), (0, 0, 26)], "not be judged). Too few cases to say: “m1” has 0 gradable wholes"),
        ([(5, 20, 2)], "“m0” has every part of 20 cases right and still gets 5 of the wholes wrong: 25.0 %"),
        ([(5, 20, 2)], "(2 more cases could not be judged)."),
        ([(1, 4, 0)], "“m0” has every part of 4 cases right and still gets 1 of the wholes wrong: 25.0 %"),
        ([(15, 20, 0), (5, 20, 0)], "from 25.0 % [8.7, 49.1] of 20 wholes wrong (“m1”) to 75.0 %"),
        ([(15, 20, 0), (5, 20, 0), (1, 4, 3)], "Too few cases to say: “m2” has 4 gradable wholes and 3 others."),
        ([(15, 20, 0), (5, 20, 0), (4, 4, 0)], "to 75.0 %"),
    ],
)  # fmt: skip
def test_the_lead_says_who_fails_how_often(runs: Sequence[tuple[int, int, int]], said: str) -> None:
    from scipy.stats import binomtest

    made = []
    for i, (k, n, invalid) in enumerate(runs):
        ends = binomtest(k, n).proportion_ci() if n else None
        row = Metric("residual_failure", n=n, n_invalid=invalid, count=k, value=k / n if n else None,
                     low=ends and ends.low, high=ends and ends.high)  # fmt: skip
        made.append(bare_run(metrics=[row], model=f"m{i}", path=Path(str(i))))
    assert said in spaced(headline.lead(made or [bare_run()]))


def test_families_are_named_from_the_fewest_to_the_most_wrong_wholes() -> None:
    found = [Metric("residual_failure", {"family": f}, n=20, count=k, value=k / 20, low=0.1, high=0.9)
             for f, k in (("rank", 10), ("pair", 2), ("interval", 16))]  # fmt: skip
    run = bare_run(select=lambda name, *by: found if by == ("family",) else [])
    said = spaced(headline._families(run))
    assert said.startswith("pair: 10.0 % [10.0, 90.0], 2 of 20 to interval: 80.0 %")
    other = bare_run(select=lambda *_: [], path=Path("x"), model="n")
    assert headline.families([other, run])[0].startswith("Not measured by family in this run; in m: pair")


@pytest.mark.parametrize(
    ("about", "word", "there"),
    [
        ({"chance": 0.1}, "lucky guess; the chance level is given", True),
        ({}, "gives no chance level", True),
        ({"config": SimpleNamespace(model="organism:x")}, "Each organism was trained once", True),
        ({"config": SimpleNamespace(model="org/x")}, "Each organism was trained once", False),
        ({"graded": [Graded("a", "whole", "invalid"), Graded("b", "whole", "correct")]}, "1 of 2 answers", True),
        *(({"graded": [Graded("b", "whole", o)]}, "could not be graded", False)
          for o in ("correct", "incorrect", "abstained")),
        *(({"counted": SimpleNamespace(compat=paper), "graded": [Graded("a", "whole", "invalid", reason="no-answer"),
                                                                 Graded("b", "whole", "invalid", reason="judge-failed"),
                                                                 Graded("c", "whole", "correct")]}, said, True)
          for paper, said in (("agentcoma", "2 of 3 answers could not be graded and count as wrong"),
                              ("collapse", "1 of 3 answers could not be graded and count as wrong"),
                              ("collapse", "1 of 3 answers could not be graded; rates leave them out"))),
        ({"probe_names": ["min-k"]}, "A difference is an association", True),
        ({}, "No probe ran", True),
        ({"probe_names": ["patching-intervention", "steering"]}, "Probes compare failures", False),
        ({"probe_names": ["min-k"]}, "No study of validity is part of this page", True),
    ],
)  # fmt: skip
def test_what_the_numbers_do_not_show_is_said_only_where_it_applies(
    about: dict[str, Any], word: str, there: bool, tmp_path: Path
) -> None:
    said = headline.caveats([bare_run(path=tmp_path, **about)], [])
    assert any(word in one for one in said) == there


@pytest.mark.parametrize(
    ("kinds", "word"), [("no", "Not every probe"), ("reversed", "Not every probe"), ("open", "gives no verdicts")]
)
def test_only_headline_answers_of_validity_are_a_caveat(kinds: str, word: str, tmp_path: Path) -> None:
    for head in (True, False):
        said = headline.caveats([bare_run(path=tmp_path)], [{"kind": kinds, "headline": head}])
        assert any(word in one for one in said) == head


def test_the_range_of_a_rate_is_that_of_its_bounds() -> None:
    row = Metric("both", n=8, n_invalid=2, count=4, value=0.5, bound_low=0.4, bound_high=0.6)
    assert spaced(headline.ungraded(row, "rate")) == "2 ungraded: with them 40.0 % to 60.0 %"
    assert headline.ungraded(replace(row, n_invalid=0), "rate") == ""
    assert headline.ungraded(replace(row, bound_low=None), "rate") == "2 ungraded"


@pytest.mark.parametrize(
    ("alone", "helped", "said"),
    [(Metric("composition", n=9, count=3, value=1 / 3, low=0.1, high=0.6),
      Metric("any_scaffold", n=8, count=4, n_invalid=2, value=0.5, low=0.2, high=0.8),
      ["3 of 9", "4 of 8", "2 could not be graded"]),
     (Metric("composition", n=0), Metric("any_scaffold", n=8, count=4, value=0.5), ["too few answers"]),
     (Metric("composition", n=9, count=3, value=1 / 3), None, ["too few answers"])],
)  # fmt: skip
def test_scaffolds_are_told_by_their_counts_or_that_too_few_answers_could_be_graded(
    alone: Metric, helped: Metric | None, said: list[str], tmp_path: Path
) -> None:
    run = bare_run(path=tmp_path, metrics=[m for m in (alone, helped) if m is not None])
    found = headline._scaffolded([run], {tmp_path: "mine"})
    assert "mine" in found and all(words in found for words in said)
    assert ("too few" in found) == (said == ["too few answers"])
