"""Rules of the report, each with the values that they give: what a table shows, what opens first, what is left out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.evaluation.asks import Response
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments.figures.catalog import FIGURES
from composcope.experiments.report import (
    cases,
    causes,
    checks,
    comparison,
    headline,
    landing,
    pictures,
    scripts,
    sections,
    view,
)
from composcope.experiments.report.origins import Origin, claimed, origin, origins, plain
from composcope.experiments.run.diagnosis import CauseShare, Diagnosis, Verdict
from composcope.experiments.run.reader import ProbeData, RunData, load
from composcope.probes.catalog import PROBES
from composcope.probes.verdicts import MATCHED


def _run(**about: Any) -> Any:
    given = {"name": "r", "model": "m", "benchmark": "b", "protocol": "double-gate", "path": Path("r"), "about": {},
             "probe_names": [], "metrics": [], "graded": [], "cases": {}, "chance": None, "config": None,
             "case_sets": {}}  # fmt: skip
    made = SimpleNamespace(**given | about)
    made.one = lambda name, **group: next((m for m in made.metrics if m.metric == name and m.group == group), None)
    return made


def _spaced(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("row", "form", "shown", "interval", "count"),
    [
        (Metric("x", n=40, count=10, value=0.25, low=0.127, high=0.412), "rate", "25.0 %", "[12.7, 41.2]", "10 of 40"),
        (Metric("x", n=40, count=-5, value=-0.125, low=-0.3, high=0.05), "points", "−12.5", "[−30.0, 5.0]", "n = 40"),
        (Metric("x", n=9, value=3.456, low=1, high=5.5), "number", "3.46", "[1.00, 5.50]", "n = 9"),
        (Metric("x", n=0, count=0), "rate", "undefined", "", "0 of 0"),
        (Metric("x", n=9, count=3, value=1 / 3, cluster_n=4), "rate", "33.3 %", "", "3 of 9 in 4 clusters"),
    ],
)  # fmt: skip
def test_a_number_of_a_table_has_its_unit_its_interval_and_its_count(
    row: Metric, form: str, shown: str, interval: str, count: str
) -> None:
    found = headline.shown(row, form), headline.interval(row, form), headline._count(row, form)
    assert tuple(map(_spaced, found)) == (shown, interval, count)


def test_a_cell_has_a_bar_from_0_to_100_is_few_below_15_and_says_the_range_of_what_is_open() -> None:
    row = Metric("residual_failure", n=14, n_invalid=2, count=7, value=0.5, low=0.23, high=0.77, bound_low=0.4375,
                 bound_high=0.5625)  # fmt: skip
    cell = headline._cell(_run(metrics=[row]), "residual_failure", "rate")
    assert cell is not None and (cell["at"], cell["from"], cell["to"], cell["few"]) == (50, 23, 77, True)
    assert (cell["n"], cell["invalid"], _spaced(cell["bounds"])) == (14, 2, "43.8 % to 56.2 %")
    cell = headline._cell(_run(metrics=[replace(row, n=15, low=None)]), "residual_failure", "rate")
    assert cell is not None and (cell["few"], cell["interval"], cell["from"]) == (False, "no interval", None)
    facts = Metric("atom_stability", {"per": "fact"}, n=9, count=9, value=1)
    assert (headline._cell(_run(metrics=[facts]), "atom_stability", "rate") or {})["n"] == 9
    assert headline._cell(_run(metrics=[facts]), "residual_failure", "rate") is None
    assert [headline._clip(v) for v in (-0.1, 0.12345, 1.2, None)] == [0, 12.35, 100, None]
    assert headline.heading(("gap", "Gap", "points")) == "Gap, points" and headline.heading(("a", "A", "rate")) == "A"


def test_tables_are_by_protocol_and_benchmark_without_columns_that_no_run_has(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    for name, protocol in (("a", "double-gate"), ("b", "double-gate"), ("c", "compositionality-gap")):
        synthetic.make_run(tmp_path / name, n=24, probes=(), protocol=protocol, model=f"org/{name}")
    found = headline.tables(load([tmp_path]))
    assert [(t["protocol"], [r["run"] for r in t["rows"]]) for t in found] == [
        ("double-gate", ["a", "b"]), ("compositionality-gap", ["c"])]  # fmt: skip
    for table in found:
        assert all(len(row["cells"]) == len(table["columns"]) == len(table["meanings"]) for row in table["rows"])
        assert all(any(row["cells"][i] for row in table["rows"]) for i in range(len(table["columns"])))
    assert found[1]["chance"] == "4\u00a0%"


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([], "No headline metric"),
        ([(0, 0, 3)], "No case has every part right"),
        ([(5, 20, 2)], "“m0” has every part of 20 cases right and still gets 5 of the wholes wrong: 25.0 %"),
        ([(5, 20, 2)], "(2 more wholes could not be graded)."),
        ([(15, 20, 0), (5, 20, 0)], "from 25.0 % [8.7, 49.1] of 20 wholes wrong (“m1”) to 75.0 %"),
        ([(15, 20, 0), (5, 20, 0), (1, 4, 3)], "Too few cases to say: “m2” has 4 gradable wholes and 3 others."),
    ],
)  # fmt: skip
def test_the_lead_says_who_fails_how_often(runs: Sequence[tuple[int, int, int]], said: str) -> None:
    from scipy.stats import binomtest

    made = []
    for i, (k, n, invalid) in enumerate(runs):
        ends = binomtest(k, n).proportion_ci() if n else None
        row = Metric("residual_failure", n=n, n_invalid=invalid, count=k, value=k / n if n else None,
                     low=ends and ends.low, high=ends and ends.high)  # fmt: skip
        made.append(_run(metrics=[row], model=f"m{i}", path=Path(str(i))))
    assert said in _spaced(headline.lead(made or [_run()]))


def test_families_are_named_from_the_fewest_to_the_most_wrong_wholes() -> None:
    found = [Metric("residual_failure", {"family": f}, n=20, count=k, value=k / 20, low=0.1, high=0.9)
             for f, k in (("rank", 10), ("pair", 2), ("interval", 16))]  # fmt: skip
    run = _run(select=lambda name, *by: found if by == ("family",) else [])
    said = _spaced(headline._families(run))
    assert said.startswith("pair: 10.0 % [10.0, 90.0], 2 of 20 to interval: 80.0 %")
    other = _run(select=lambda *_: [], path=Path("x"), model="n")
    assert headline.families([other, run])[0].startswith("Not measured by family in this run; in m: pair")


@pytest.mark.parametrize(
    ("about", "word", "there"),
    [
        ({"chance": 0.1}, "lucky guess; the chance level is given", True),
        ({}, "gives no chance level", True),
        ({"config": SimpleNamespace(model="organism:x")}, "One training run per dose", True),
        ({"config": SimpleNamespace(model="org/x")}, "One training run per dose", False),
        ({"graded": [Graded("a", "whole", "invalid"), Graded("b", "whole", "correct")]}, "1 of 2 answers", True),
        ({"graded": [Graded("b", "whole", "correct")]}, "could not be graded", False),
        ({"probe_names": ["min-k"]}, "A difference is an association", True),
        ({}, "No probe ran", True),
        ({"probe_names": ["min-k"]}, "There is no validity check here", True),
    ],
)
def test_what_the_numbers_do_not_show_is_said_only_where_it_applies(
    about: dict[str, Any], word: str, there: bool, tmp_path: Path
) -> None:
    said = headline.caveats([_run(path=tmp_path, **about)], [])
    assert any(word in one for one in said) == there


@pytest.mark.parametrize(
    ("kinds", "word"), [("no", "Not every probe"), ("reversed", "Not every probe"), ("open", "gives no verdicts")]
)
def test_only_headline_answers_of_validity_are_a_caveat(kinds: str, word: str, tmp_path: Path) -> None:
    for head in (True, False):
        said = headline.caveats([_run(path=tmp_path)], [{"kind": kinds, "headline": head}])
        assert any(word in one for one in said) == head


def _verdicts(*named: str) -> list[Verdict]:
    return [Verdict(f"c{i}", cause, ("evidence",)) for i, cause in enumerate(named)]


@pytest.mark.parametrize(
    ("shares", "n", "said"),
    [
        ([("bridge-not-computed", 6), ("undetermined", 2)], 8, "Why, as far as it is shown: "),
        ([("bridge-not-computed", 8)], 8, "Why: "),
        ([("bridge-not-computed", 5), ("near-miss", 3)], 8, "Why, most often: "),
        ([("undetermined", 5), ("fragile", 3)], 8, "Why: no cause is shown in 8 of 8 diagnosed failures."),
    ],
)
def test_the_reason_is_the_most_frequent_cause_with_its_share_of_all_that_were_diagnosed(
    shares: Sequence[tuple[str, int]], n: int, said: str
) -> None:
    found = Diagnosis(Path("r"), _verdicts(*(c for c, k in shares for _ in range(k))),
                      [CauseShare("all", "", c, k, n, k / n, 0.1, 0.9, "t") for c, k in shares])  # fmt: skip
    text = _spaced(causes._because(found))
    assert text.startswith(said)
    if shares[0][0] == "bridge-not-computed":
        k = shares[0][1]
        assert f"({k} of 8 diagnosed failures: {100 * k / 8:.0f} % [10, 90]" in text
        assert ("; no cause is shown in 2)" in text) == (shares[1:2] == [("undetermined", 2)])


@pytest.mark.parametrize(
    ("engine", "probe_model", "model", "asked"),
    [("transformers", None, "m", False), ("ray", None, "m", False), ("vllm", None, "m", True),
     ("vllm", "w", "m", False), ("transformers", None, "m@http://x", True)],
)  # fmt: skip
def test_the_command_that_diagnoses_asks_for_weights_only_of_a_server(
    engine: str, probe_model: str | None, model: str, asked: bool
) -> None:
    config = SimpleNamespace(serving=SimpleNamespace(engine=engine, probe_model=probe_model), model=model)
    said = causes.command(_run(config=config, path=Path("/x/a b")))
    assert said == "composcope diagnose '/x/a b'" + (" --model FOLDER" if asked else "")
    assert causes.command(_run()) == ""


def test_probes_that_no_run_has_are_named_with_the_command_for_a_run_that_can_be_compared() -> None:
    def members(failures: int, successes: int) -> dict[str, Any]:
        return {label: SimpleNamespace(label=label, entries=[0] * k)
                for label, k in (("failure", failures), ("success", successes))}  # fmt: skip

    def run(path: str, sets: dict[str, Any], *ran: str) -> Any:
        return _run(path=Path(path), case_sets=sets, probe=lambda name: name in ran or None)

    usual = [p.name for p in PROBES.own.values() if p.standard]
    able, unable = members(2, 3), members(2, 0)
    found = causes.missing([run("/a", unable), run("/b", able, usual[0])])
    assert found is not None and found.command == f"composcope probe /b --probes {','.join(usual[1:])}"
    assert PROBES[usual[0]].title not in found.titles and found.reason == ""
    found = causes.missing([run("/a", able), run("/b", able), run("/c", able)])
    assert found is not None and (found.command, found.reason) == (
        "composcope probe /a", "and the same for 2 other runs")  # fmt: skip
    found = causes.missing([run("/a", unable)])
    assert found is not None and found.command == "" and "no success with every part right" in found.reason
    assert causes.missing([run("/a", able, *usual)]) is None


def test_the_run_to_open_on_is_probed_and_has_the_most_to_compare() -> None:
    def run(failures: int, successes: int, *probes: str) -> Any:
        sets = [SimpleNamespace(label=label, ids=[f"{label}{i}" for i in range(k)])
                for label, k in (("failure", failures), ("success", successes))]  # fmt: skip
        return _run(probe_names=probes, case_sets=dict(enumerate(sets)))

    assert landing.best([run(9, 9), run(2, 9, "p"), run(3, 3, "p"), run(4, 3, "p")]) == 3
    assert landing.best([run(1, 1), run(5, 4)]) == 1 and landing.best([run(2, 2, "p"), run(9, 9)]) == 0
    twice = SimpleNamespace(label="failure", ids=["b", "a"])
    assert landing.groups(_run(case_sets={"x": twice, "y": twice})) == (["b", "a"], [])


@pytest.mark.parametrize(
    ("p", "n", "low", "kind", "smallest"),
    [(0.049, 5, 0.1, "yes", False), (0.05, 5, 0.1, "no", True), (0.01, 4, 0.1, "open", True),
     (0.01, 9, None, "open", True), (None, 9, 0.1, "open", True)],
)  # fmt: skip
def test_a_probe_differs_only_with_small_p_enough_pairs_and_an_interval(
    p: float | None, n: int, low: float | None, kind: str, smallest: bool
) -> None:
    row = {"quantity": "lookback_ratio", "group": MATCHED, "kind": "composition", "n": n, "value": 0.2, "low": low,
           "high": 0.3, "p_adjusted": p, "smallest_detectable": 0.512}  # fmt: skip
    run = _run(probe=lambda name: ProbeData("lookback", [row]))
    found = landing._finding(run, PROBES["lookback"], [{"kind": "yes"}], {True: ", corrected", False: ""})
    assert found is not None and (found.kind, found.n, found.answer) == (kind, n, landing.ANSWERS[kind])
    assert (found.smallest == "smallest detectable difference: 0.51 sd") == smallest
    assert found.p == ("" if p is None else f"p {p:.2g}, corrected")
    assert found.interval == ("no interval" if low is None else "[0.1, 0.3]")


def test_what_stands_for_patching_is_the_layer_that_repairs_most_beyond_a_random_state() -> None:
    rows = [{"quantity": "corrected_rate", "group": g, "layer": layer, "value": v}
            for g, layer, v in (("donor", 0, 0.9), ("donor - random", 1, 0.2), ("donor - random", 2, 0.4),
                                ("donor - noise", 3, 0.8))]  # fmt: skip
    found = landing.finding(rows)
    assert found is not None and found["layer"] == 2 and landing.says(found).endswith(", largest at layer 2")
    counts = [{"group": g, "value": v} for g, v in ((MATCHED, 0.1), (MATCHED, None), ("other", 1))]
    assert landing._explored(counts) == "explored: 1 comparison of failures and successes, none declared as main"
    assert landing._explored(counts[1:]) == ""


def test_the_page_opens_on_a_wrong_answer_with_the_usual_cause_then_on_one_that_probes_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = ["none", "judged", "beside", "known", "sweep", "attention", "named", "usual"]
    shares = [SimpleNamespace(cause=cause) for cause in ("undetermined", "lost", "format")]
    verdicts = [SimpleNamespace(case="named", cause="format"), SimpleNamespace(case="usual", cause="lost"),
                SimpleNamespace(case="known", cause="undetermined")]  # fmt: skip
    found = SimpleNamespace(verdicts=verdicts, causes=lambda: shares)
    monkeypatch.setattr(landing, "diagnosed_failures", lambda run: SimpleNamespace(found=found))
    came = {id: Origin("unclear") for id in ids} | {"none": Origin("invalid"), "known": Origin("bridge")}
    kept = [{"case": "sweep", "sweep": [1]}, {"case": "attention", "attention": [1]}, {"case": "none", "attention": [1],
             "sweep": [1]}]  # fmt: skip
    for last in range(1, len(ids) + 1):
        for failing in (ids[:last], ids[:last][::-1]):
            sets = {"f": SimpleNamespace(label="failure", ids=failing)}
            assert landing.first_case(_run(case_sets=sets), came, kept, {"beside": "x", "none": "y"}) == ids[last - 1]
    assert landing.first_case(_run(), {"a": Origin("invalid"), "b": Origin("loop")}, [], {}) == "b"
    assert landing.first_case(_run(), {}, [], {}) is None


def test_a_success_is_shown_beside_a_failure_of_its_family_depth_and_operation_only() -> None:
    def case(id: str, size: int, **about: Any) -> Case:
        return Case(id, "q" * size, "a", **{"family": "f", "depth": 2, "operation": "plus", **about})

    made = [case("fail", 10), case("near", 14), case("far", 30), case("op", 10, operation="times"),
            case("deep", 10, depth=4), case("kin", 10, family="g"), case("alone", 9, family="z")]  # fmt: skip
    sets = {"f": SimpleNamespace(label="failure", ids=["fail", "alone", "gone"]),
            "s": SimpleNamespace(label="success", ids=["far", "near", "op", "deep", "kin"])}  # fmt: skip
    run = _run(cases={c.id: c for c in made}, case_sets=sets)
    assert landing.twins(run, []) == {"fail": "near"}
    assert landing.twins(run, [{"case": "gone", "donor": "far"}]) == {"fail": "near", "gone": "far"}


SAID = {"a": Case("a", "What is it?", "Oslo", family="f", aliases=("Kristiania",)),
        "b": Case("b", "And it?", "Bergen", family="f"), "c": Case("c", "?", "Oslo", family="g")}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kind", "detail"),
    [("Bergen", "elsewhere", "right in b"), ("It is kristiania", "unclear", ""), ("Rome", "unclear", "")],
)
def test_an_answer_is_right_elsewhere_only_in_another_case_of_its_family(answer: str, kind: str, detail: str) -> None:
    rows = [Graded("a", "part:0", "incorrect", answer="x"), Graded("a", "whole", "incorrect", answer=answer),
            Graded("a", "whole", "incorrect", answer="x", repeat=1), Graded("b", "whole", "correct"),
            Graded("gone", "whole", "abstained")]  # fmt: skip
    found = origins(_run(cases=SAID, graded=rows, responses={}))
    assert found == {"a": Origin(kind, detail), "gone": Origin("unclear")}


def test_a_claim_is_the_shorter_side_of_a_sentence_and_text_is_compared_without_accents_and_signs() -> None:
    assert [claimed(t) for t in ("The capital of the land is Kraków.", "Oslo is the capital of it", "a is b", "")] == [
        "krakow", "oslo", "b", ""]  # fmt: skip
    assert plain("Łódź, 1,000.5 Äpfel_und-so!") == "łodz 1,000.5 apfel und so"
    several = origin(SAID["b"], Graded("b", "whole", "incorrect", answer="Oslo"), None, ["a", "x", "y"])
    assert several.detail == "right in a and 2 more"


ITEMS, SUM = Part("?", "3, 4", answer_type="ordered-list"), Part("?", "7", worked="3 + 4 = 7")
LADDER = Case("l", "How much?", "12", (ITEMS, SUM), answer_type="number", worked="3 + 4 + 5 = 12")


@pytest.mark.parametrize(
    ("said", "kind", "detail"),
    [("3 + 4 + 5 = 13", "result", "3 and 4 and 5"), ("3 + 4 + 6 = 13", "operand", "6 where 5 was needed"),
     ("3 + 4 = 13", "unclear", ""), ("7", "bridge", "the answer of part 2"),
     ("4", "bridge", "one item of the answer of part 1"), ("First I add. It is 7", "stopped", "the answer of part 2")],
)  # fmt: skip
def test_a_calculation_is_compared_with_the_one_that_the_case_needs(said: str, kind: str, detail: str) -> None:
    answer = said.split("= ")[-1].split("is ")[-1]
    found = origin(LADDER, Graded("l", "whole", "incorrect", answer=answer), Response("a", said, "stop", 9, 3))
    assert (found.kind, found.detail) == (kind, detail)


def test_outcomes_of_roles_are_one_letter_each_and_chunks_hold_forty_cases(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    assert cases._dense({2: "1", 0: "3"}) == "3.1" and cases._dense({}) == ""
    (run,) = load([synthetic.make_run(tmp_path / "r", n=90, probes=())])
    found = cases.collect([run])
    assert [len(c["cases"]) for c in found.chunks.values()] == [40, 40, 10] and found.index["chunk"] == 40
    assert [c for chunk in found.chunks.values() for c in chunk["cases"]] == cases.order(run) == list(run.cases)
    assert (found.index["cap"], found.index["dropped"]) == (cases.CAPS[0], [])
    small = cases.collect([run], budget=cases._size(found.chunks["cases/0-0"]) + 10)
    assert list(small.chunks) == ["cases/0-0"] and small.index["dropped"] == ["cases/0-2", "cases/0-1"]
    assert cases.cut("abcd", 4) == ("abcd", None) and cases.cut("abcde", 4) == ("abcd", 5)


def test_a_row_of_the_browser_has_the_first_answer_of_each_role_and_what_filters_use() -> None:
    known = Case("a", "What is it?", "Oslo", (Part("?", "x", skill="recall"), Part("?", "y", skill="add")), family="f",
                 depth=2, operation="plus")  # fmt: skip
    graded = [
        Graded("a", "whole", "incorrect", answer="Bergen"), Graded("a", "whole", "correct", answer="Oslo", repeat=1),
        Graded("a", "part:0", "correct"), Graded("a", "part:1", "correct"),
        Graded("a", "part:1", "incorrect", repeat=1),
        Graded("b", "part:1", "abstained", family="g", depth=3, operation="minus", skills=("count",), gold="7"),
        Graded("b", "whole", "invalid", gold="Rome"),
    ]  # fmt: skip
    sets = {"failures": SimpleNamespace(ids=["a"], entries=[]), "both": SimpleNamespace(ids=["a"], entries=[]),
            "scaffold-k": SimpleNamespace(ids=["b"], entries=[SimpleNamespace(case="b", value=2)])}  # fmt: skip
    run = _run(cases={"a": known}, graded=graded, case_sets=sets)
    made = cases.index([run], [cases.Told({"a": Origin("named", "it")}, {"a": "b"})])
    a, b = (dict(zip(made["columns"], row, strict=True)) for row in made["rows"])

    def outcomes(row: dict[str, Any]) -> dict[str, str]:
        return {r: made["outcomes"][int(o)] for r, o in zip(made["roles"], row["roles"], strict=False) if o != "."}

    assert outcomes(a) == {"whole": "incorrect", "part:0": "correct", "part:1": "correct"}
    assert outcomes(b) == {"whole": "invalid", "part:1": "abstained"}
    named = [{k: [made[k][i] for i in row[k]] for k in ("skills", "sets")} for row in (a, b)]
    assert named == [{"skills": ["recall", "add"], "sets": ["failures", "both"]},
                     {"skills": ["count"], "sets": ["scaffold-k"]}]  # fmt: skip
    about = [(made["families"][r["family"]], r["depth"], r["operation"], r["k"], r["twin"]) for r in (a, b)]
    assert about == [("f", 2, "plus", None, "b"), ("g", 3, "minus", 2, None)]
    told = [(r["question"], r["gold"], r["answer"], r["detail"]) for r in (a, b)]
    assert told == [("What is it?", "Oslo", "Bergen", "it"), ("", "Rome", None, "")]
    assert made["origins"][a["origin"]] == "named something else in the question" and b["origin"] is None


def test_an_opened_case_has_each_answer_with_its_outcome_prompt_gold_and_tokens(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    (run,) = load([synthetic.make_run(tmp_path / "r", n=6, probes=(), failure=0.5)])
    chunk = cases.collect([run]).chunks["cases/0-0"]
    texts = chunk["texts"]
    for case, shown in chunk["cases"].items():
        own = run.cases[case]
        assert [texts[shown[k]] for k in ("question", "gold", "cluster")] == [own.question, own.answer, own.cluster]
        assert [texts[p] for p in shown["parts"]] == [p.question for p in own.parts] and shown["chance"] == own.chance
        rows = [g for g in run.graded if g.case == case]
        assert len(rows) == len(shown["asks"])
        for g, (role, outcome, repeat, place) in zip(rows, shown["asks"], strict=True):
            asked = dict(zip(chunk["fields"], chunk["asked"][place], strict=False))
            assert (role, cases.OUTCOMES[outcome], repeat) == (g.role, g.outcome, g.repeat)
            ask, said = run.asks[str(g.ask)], run.responses[str(g.ask)]
            wanted = (ask.prompt, said.text, g.answer, g.gold)
            assert tuple(texts[asked[k]] for k in ("prompt", "response", "read", "gold")) == wanted
            assert [asked.get(k) for k in ("format", "prompting", "finish", "given", "said", "kind")][:5] == [
                ask.format, ask.prompting, said.finish_reason, said.prompt_tokens, said.response_tokens]  # fmt: skip


def test_a_table_of_validity_counts_its_headline_answers_by_probe_and_question() -> None:
    rows = [checks.check({"probe": p, "quantity": "q:0.2", "question": q, "model": m, "verdict": v, "headline": h})
            for p, q, m, v, h in (("a", "x", "", "yes", True), ("a", "y", "m", "no", True), ("b", "x", "", "yes", True),
                                  ("b", "y", "m", "cannot say", True), ("c", "x", "", "no", False))]  # fmt: skip
    found = checks.matrix(rows)
    assert (found["n"], found["said"]) == (4, "2 yes, 1 no, 1 undecided")
    assert [(c["question"], c["model"]) for c in found["columns"]] == [("x", ""), ("y", "m")]
    assert [(one["probe"], one["quantity"], [c and c["answer"] for c in one["cells"]]) for one in found["lines"]] == [
        ("a", "q", ["yes", "no"]), ("b", "q", ["yes", "cannot say"])]  # fmt: skip
    told = [{"kind": "yes", "about": "t"}, {"kind": "no"}, {"kind": "yes", "about": "t"}, {"kind": "reversed"}]
    assert checks.counted(told, "yes") == (2, " (t)") and checks.counted(told, *checks.FAILS) == (2, "")


def test_tables_of_probes_have_contrasts_only_a_value_with_its_interval_and_the_number_of_all() -> None:
    rows = [{"quantity": f"q{i}", "group": MATCHED, "n": i, "value": 0.5, "low": 0.25, "high": 0.75, "effect": 0.1,
             "p_adjusted": 0.5} for i in range(70)]  # fmt: skip
    rows += [{"quantity": "mean", "group": "failure", "value": 1.0}]
    found = sections.probe_rows([_run(probe=lambda _: ProbeData("p", rows))], "p")
    assert (found["total"], len(found["rows"])) == (70, sections._SUMMARY_LIMIT)
    shown = dict(zip(found["columns"], found["rows"][0], strict=True))
    assert shown["value [95 % interval]"] == "0.5 [0.25, 0.75]"
    assert shown["effect [95 % interval]"] == "0.1 (no interval)"
    assert [sections.cell(c, {"n": 3}) for c in ("value", "effect", "n")] == ["undefined", "", "3"]
    assert [sections.number_text("x", v) for v in (None, 0.12345, 7, "t")] == ["", "0.123", "7", "t"]


def test_notes_that_all_runs_share_are_said_once_and_others_with_their_run() -> None:
    def run(name: str, data: ProbeData | None) -> Any:
        return _run(name=name, model=name, path=Path(name), probe=lambda _: data)

    same = {"k": 0.2, "cases": [1], "none": None}
    runs = [run("a", ProbeData("p", (), settings=same, warnings=["w"])), run("b", ProbeData("p", (), settings=same))]
    assert sections.probe_notes(runs, "p") == ["settings: k = 0.2", "a: w"]
    assert sections.probe_notes([*runs, run("c", None)], "p") == ["a, b: settings: k = 0.2", "a: w", "c: did not run"]
    assert sections.probe_notes(runs[1:], "p") == ["b: settings: k = 0.2"]
    assert sections._flat({"a": {"b": 1, "c": None}, "d": [1, {"e": 2}]}) == "a: (b: 1), d: (1; e: 2)"
    taken: set[str] = set()
    assert [sections._anchor(n, taken) for n in ("A b!", "a-b", "!")] == ["probe-a-b", "probe-a-b-2", "probe-other"]


def test_columns_stand_in_reading_order_and_ends_of_intervals_inside_their_value() -> None:
    row = {"note": "x", "p": 0.1, "n": 3, "value": 1, "low": 0, "high": 2, "own": 1, "quantity": "q", "group": None}
    assert sections._columns([row]) == (["quantity", "own", "n", "value", "note"], ["p"])
    data = ProbeData("p", (), {"a": np.zeros((2, 3)), "b": np.zeros(())}, axes={"a": ("layer", "head")})
    assert sections._tensors("m", data) == [("m", "a", "layer 2 × head 3"), ("m", "b", "one number")]


def test_json_of_a_page_has_null_for_what_is_not_finite_and_keeps_everything_else() -> None:
    value = {"a": [math.nan, math.inf, 1.5], 2: np.float32(0.5), "s": {1}}
    value["t"] = (np.array([1, np.nan]), Path("x"), None)  # type: ignore[assignment]
    found = scripts.finite(value)
    assert found == {"a": [None, None, 1.5], "2": 0.5, "s": [1], "t": [[1.0, None], Path("x"), None]}
    assert json.loads(scripts._json(value)) == {**found, "t": [[1.0, None], "x", None]}
    assert json.loads(scripts._json({"plain": [1, "ü", True, None]})) == {"plain": [1, "ü", True, None]}


def _picture(n: int, attention: int, **about: Any) -> dict[str, Any]:
    entry = {"role": "whole", "group": "failure", "arrays": {"attention": "x" * attention, "ratio": "y" * 10}}
    return {"case": f"c{n}", "probes": {"lookback": [entry], "patching": [{"donor": "d", "arrays": {}, **about}]}}


def test_attention_is_left_out_from_the_last_case_on_and_then_whole_cases() -> None:
    def files() -> dict[str, Any]:
        return {f"pictures/0-{i}": _picture(i, 1000) for i in range(4)}

    def kept(budget: int) -> tuple[tuple[int, int], list[bool]]:
        made = files()
        told = pictures._shrink(made, budget)
        return told, ["attention" in f["probes"]["lookback"][0]["arrays"] for f in made.values()]

    whole, size = pictures._total(files()), pictures._size(_picture(0, 1000))
    assert kept(whole) == ((0, 0), [True] * 4) and kept(whole - 1) == ((1, 0), [True, True, True, False])
    assert kept(2 * size) == ((3, 0), [True, False, False, False])
    assert kept(2 * pictures._size(_picture(0, 1000)) // 10) == ((4, 3), [False])
    entry = pictures._entry("f", _picture(0, 9, sweep_positions=[1]))
    assert entry == {"case": "c0", "file": "f", "group": "failure", "probes": ["lookback", "patching"],
                     "attention": ["whole"], "donor": "d", "sweep": True}  # fmt: skip
    assert pictures._note({"note": "kept for 2", "cases_per_group": 2, "left_out": ["a", "b"]}) == (
        "Kept for 2 (--case-details 2). Left out: a; b.")  # fmt: skip


def test_heads_of_every_whole_are_packed_only_where_they_belong_to_named_cases() -> None:
    ratios = np.random.default_rng(0).uniform(size=(2, 3, 4))

    def run(names: list[str], tensors: dict[str, Any]) -> Any:
        return _run(probe=lambda name: ProbeData(name, (), tensors, settings={"cases": names}))

    made = [run(["a", "b"], {"wholes": ratios}), run(["a"], {"wholes": ratios}), run([], {})]
    found = pictures.heads([*made, _run(probe=lambda _: None)])
    assert list(found) == ["heads/0"] and found["heads/0"]["cases"] == ["a", "b"]
    assert found["heads/0"]["ratio"] == scripts.packed(ratios)


def test_a_live_page_keeps_the_one_before_and_is_written_only_when_a_file_changed(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2, probes=())
    written: list[tuple[list[str], bool]] = []

    def page(runs: Sequence[RunData], folder: Path, *, live: bool, progress: Any) -> None:
        written.append(([r.name for r in runs], live))
        folder.mkdir(parents=True)

    monkeypatch.setattr(view, "write", page)
    pages = view.Pages([run], tmp_path / "pages", lambda _: None)
    assert [pages.refresh(), pages.refresh()] == [True, False]
    for i in range(3):
        (run / "log.txt").write_text(str(i))  # no part of the page
        assert not pages.refresh()
        (run / "metrics.json").write_text((run / "metrics.json").read_text() + " ")
        assert pages.refresh()
    assert pages.number == 4 and written == [(["run"], True)] * 4
    assert sorted(p.name for p in (tmp_path / "pages").iterdir()) == ["3", "4"]
    drawn: list[tuple[str, str]] = []

    def figure(name: str, runs: Sequence[RunData], out: Path) -> None:
        drawn.append((name, out.name))
        (out / "data" / f"figure-{name}.js").write_text("")

    monkeypatch.setattr(view, "write_figure_data", figure)
    for number in (3, 4):
        (tmp_path / "pages" / str(number) / "data").mkdir()
        for name in ("outcomes", "outcomes", "../x", "no-figure"):
            pages.draw(number, name)
    pages.draw(1, "outcomes")
    assert drawn == [("outcomes", "3"), ("outcomes", "4")]


def test_figures_of_a_section_are_those_that_declare_it_and_one_that_fails_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write: Any = import_module("composcope.experiments.report.write")  # the function of this name hides the module
    for section in ("first", "behavior", "lookback", "optional"):
        assert write._in(section) == [n for n, f in FIGURES.items() if f.section == section] != []
    broken = replace(FIGURES["outcomes"], draw=lambda runs: 1 / 0)
    monkeypatch.setattr(type(FIGURES), "__getitem__", lambda self, name: broken)
    said = write._drawn("x", [])
    assert said.rows == [] and "could not be drawn: ZeroDivisionError: division by zero" in str(said.empty)


def test_a_comparison_leaves_out_what_it_counts_and_shows_each_side_in_its_own_place() -> None:
    found = {"left_out_invalid": 2, "changed": 0, "only_a": 3, "only_b": 4}
    assert comparison._left_out(found) == (
        "Not compared, of all asks: 2 could not be judged in A or B, 3 were asked only in A, 4 were asked only in B."
    )
    assert comparison._left_out(dict.fromkeys(found, 0)) == "Every ask was judged in both runs."
    row = {
        "role": "whole",
        "n": 40,
        "a": 0.5,
        "b": 0.25,
        "difference": 0.25,
        "low": -0.05,
        "high": 0.5,
        "interval": "t",
        "a_only": 12,
        "b_only": 2,
        "p": 0.0004,
        "p_adjusted": 0.03,
        "test": "mcnemar",
        "note": None,
    }
    shown = {k: _spaced(str(v)) for k, v in comparison._role(row).items()}
    assert shown == {"role": "whole", "n": "40", "a": "50.0 %", "b": "25.0 %", "difference": "+25.0 [−5.0, +50.0]",
                     "method": "t", "a_only": "12", "b_only": "2", "p": "< 0.001", "p_adjusted": "0.03",
                     "test": "mcnemar", "note": ""}  # fmt: skip
    said = _spaced(comparison.lead({"roles": [{**row, "role": "part"}, row]}, ["x", "y"]))
    assert said == (
        "Of 40 wholes judged in both, A (“x”) has 50.0 % right and B (“y”) 25.0 %: a difference of +25.0 "
        "[−5.0, +50.0] points. They disagree on 14: 12 only A has right, 2 only B (mcnemar: p < 0.001)."
    )
    both = {"metric": "composition", "group": {"depth": 2}, "n": 4, "count": 2, "value": 0.5}
    sides = {"a": {"metrics": [both]}, "b": {"metrics": [{**both, "group": {}}]}}
    lines = comparison._metrics(sides)
    assert [(r["name"], r["a"] == "not measured", r["b"] == "not measured") for r in lines] == [
        ("composition depth 2", False, True), ("composition", True, False)]  # fmt: skip
