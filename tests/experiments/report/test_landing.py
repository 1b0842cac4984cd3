"""What the page opens on: a failing case beside a success, its cause, and which probes to trust."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from browsing import Visit, wait_until

from composcope.evaluation import dependence, metrics, statistics
from composcope.evaluation.cases import Case
from composcope.evaluation.metrics import MEANINGS, Metric
from composcope.evaluation.protocols import CaseSet, Reduction
from composcope.evaluation.protocols.base import PROTOCOLS, about
from composcope.experiments import investigate, report
from composcope.experiments.figures.catalog import FIGURES
from composcope.experiments.report import cases, landing, sections
from composcope.experiments.report.causes import Causes, place
from composcope.experiments.report.origins import Origin, origins
from composcope.experiments.run import diagnosis as results
from composcope.experiments.run import summary
from composcope.experiments.run.diagnosis import Verdict, meaning
from composcope.experiments.run.reader import ProbeData, RunData, load
from composcope.probes.catalog import PROBES, described
from composcope.probes.verdicts import FEWEST_PAIRS, MATCHED, UNMATCHED, is_primary

from ..bare_runs import bare_run

AddCases = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("wrong", "n", "says"),
    [(0, 0, "No case has every part right, so nothing"), (1, 2, "Too few"), (0, 14, "Too few"), (0, 15, "It composes"),
     (1, 30, "It rarely"), (9, 15, "It fails")],
)  # fmt: skip
def test_the_title_of_a_run_claims_nothing_from_a_few_cases(wrong: int, n: int, says: str) -> None:
    found = landing._gap_title(Metric("press_gap", n=n, count=float(wrong), value=wrong / n if n else None))
    assert says in found and (not n or f"{n} wholes" in found)
    assert landing._gap_title(Metric("press_gap", n=15, n_invalid=2, count=0.0, value=0.0)).startswith("It composes")
    open_ = landing._gap_title(Metric("press_gap", n=0, n_invalid=4))
    assert open_.startswith("4 cases could not be judged, and no other has every part right")


@pytest.mark.parametrize(
    ("kinds", "passed"),
    [(["yes", "yes"], "yes"), (["yes", "no"], "no"), (["reversed"], "no"), (["yes", "open"], "open"), ([], "open")],
)
def test_no_finding_stands_without_n_interval_and_the_probes_own_test(
    synthetic: ModuleType, tmp_path: Path, kinds: list[str], passed: str
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=24, probes=())
    row = {"quantity": "lookback_ratio", "group": "matched failure - success", "kind": "composition", "n": 12,
           "value": -0.2, "low": -0.3, "high": -0.1, "interval": "t", "p_adjusted": 0.01}  # fmt: skip
    synthetic.write_probe(folder / "probes" / "lookback", "lookback", [row], {}, {})
    runs = load([folder])
    tests = [{"lookback": [{"kind": k} for k in kinds]}]
    page = landing.landings(runs, [origins(runs[0])], tests, described())[0]
    assert page.n_failures == sum(n for _, n, *_ in page.reasons) < len(origins(runs[0])), "of the failing cases only"
    (finding,) = page.findings
    assert (finding.n, finding.interval, finding.kind, finding.passed) == (12, "[-0.3, -0.1]", "yes", passed)
    folded = landing.main_number(runs[0], page, PROBES["lookback"])  # the heading of its section
    assert "−0.2 [−0.3, −0.1], n = 12" in folded and folded.endswith(finding.trusted)
    assert "n = " not in landing.main_number(runs[0], page, PROBES["patching"])


def test_a_finding_without_a_value_is_undefined(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=24, probes=())
    row = {"quantity": "lookback_ratio", "group": "matched failure - success", "kind": "composition", "n": 1}
    synthetic.write_probe(folder / "probes" / "lookback", "lookback", [row], {}, {})
    runs = load([folder])
    (finding,) = landing.landings(runs, [origins(runs[0])], [{}], described())[0].findings
    assert (finding.value, finding.interval, finding.kind) == ("", "undefined", "open")


def test_a_p_says_for_how_many_probes_it_was_corrected_as_the_interval_beside_it_is_not(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=24, probes=())
    row = {"group": MATCHED, "kind": "composition", "n": 12, "value": 0.2, "low": 0.1, "high": 0.3, "interval": "t",
           "p_adjusted": 0.16}  # fmt: skip

    def p_of_lookback() -> str:
        run = load([folder])[0]
        return next(f.p for f in landing.landings([run], [{}], [{}], described())[0].findings if f.anchor == "lookback")

    # A test of another family, and one without a p, are not corrected together with it.
    others = [{**row, "group": "other"}, {**row, "group": "other"}, {**row, "kind": "parts", "p_adjusted": None}]
    synthetic.write_probe(
        folder / "probes" / "lookback", "lookback", [{**row, "quantity": "lookback_ratio"}, *others], {}, {}
    )
    assert "for" not in p_of_lookback()  # it was the only one
    for probe, quantity in (("min-k", "min_k_pp"), ("trajectory", "step_cosine")):
        synthetic.write_probe(folder / "probes" / probe, probe, [{**row, "quantity": quantity}], {}, {})
    assert "0.16" in p_of_lookback() and "main tests of 3 probes" in p_of_lookback()


@pytest.mark.parametrize(
    ("failures", "successes", "said"),
    [(1, 2, "1 failure and 2 successes"), (3, 1, "3 failures and 1 success"), (2, 2, "too few of them are alike"),
     (2, 2, "no numbers")],
)  # fmt: skip
def test_probes_without_a_contrast_share_one_line_with_how_many_cases_there_are(
    synthetic: ModuleType, tmp_path: Path, failures: int, successes: int, said: str
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=4, probes=(), protocol="compositionality-gap")
    for name, label, n in (("both-right-whole-wrong", "failure", failures),
                           ("both-right-whole-right", "success", successes)):  # fmt: skip
        rows = [{"schema": 1, "set": name, "label": label, "case": f"{label}-{i}", "evidence": []} for i in range(n)]
        (folder / "casesets" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    single = {"quantity": "min_k_pp", "group": MATCHED, "kind": "composition", "n": 1, "value": None}
    synthetic.write_probe(folder / "probes" / "min-k", "min-k", [single], {}, {})
    for probe in ("neurons", "lookback"):
        synthetic.write_probe(folder / "probes" / probe, probe, [{"quantity": "other", "n": 1, "value": 1.0}], {}, {})
    if said != "no numbers":
        (folder / "probes" / "examples.json").write_text(json.dumps({"note": "", "contrast": False, "groups": {}}))
    assert is_primary(single)
    (line,) = landing.in_words(RunData(folder))
    assert all(p in line for p in ("neurons", "lookback", "min-k")) and said in line
    assert (f"at least {FEWEST_PAIRS} failures" in line) == (said != "no numbers")
    counted = json.loads((folder / "metrics.json").read_text())
    (folder / "metrics.json").write_text(json.dumps({**counted, "protocol": "scaffolding"}))
    (of_scaffolds,) = landing.in_words(RunData(folder))
    assert "with every part right" not in of_scaffolds == line.replace(" with every part right", "")


@pytest.mark.parametrize(("n", "says"), [(4, "cannot say"), (5, "differs")])
def test_a_result_of_too_few_pairs_says_that_they_are_too_few(
    n: int, says: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=4, probes=(), protocol="compositionality-gap")
    row = {"quantity": "min_k_pp", "group": MATCHED, "kind": "composition", "n": n, "value": 0.3, "low": 0.2,
           "high": 0.4, "interval": "t", "p": 0.01, "p_adjusted": 0.01, "family": "primary, Holm"}  # fmt: skip
    synthetic.write_probe(folder / "probes" / "min-k", "min-k", [row], {}, {})
    (line,) = landing.in_words(RunData(folder))
    assert line.startswith(f"min-k: {says}: ") and (f"n={n} (n < 5" in line) == (n < 5)


@pytest.mark.parametrize(("outcomes", "more"), [("???", False), ("1??", True), ("111", True), ("0?0", False)])
def test_more_cases_are_not_advised_where_no_case_could_be_judged(
    outcomes: str, more: bool, synthetic: ModuleType, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=3, probes=(), protocol="compositionality-gap")
    named = {"1": "correct", "0": "incorrect", "?": "invalid"}
    whole_and_parts = zip(("whole", "part:0", "part:1"), outcomes, strict=True)
    asked = [(f"case-{i:04d}", role, named[one]) for role, one in whole_and_parts for i in range(3)]
    if outcomes == "1??":  # one of the cases is judged in full
        asked = [(case, role, "correct" if case == "case-0000" else outcome) for case, role, outcome in asked]
    rows = [{"schema": 1, "case": case, "role": role, "outcome": outcome} for case, role, outcome in asked]
    (folder / "graded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for file in (folder / "casesets").glob("*.jsonl"):
        file.write_text("")
    run = RunData(folder)
    assert ("ask more cases" in landing.lacking(run)) == more
    assert ("could not be judged" in landing.lacking(run)) != more
    none = Reduction((), (CaseSet("none", "failure", ()),))
    found: Any = SimpleNamespace(graded=run.graded, ids=lambda _: set(), cases={}, asks={}, n_invalid=1,
                                 protocol=run.protocol, reduction=none)  # fmt: skip
    said = investigate.no_contrast(found, folder)
    last = investigate.Investigation(folder, found, said).closing()
    assert ["use more" in line for line in (str(said), str(last))] == [more, more]
    assert "see why answers are invalid" in str(said) and ("could not be judged" in str(last)) != more
    found.n_invalid = 0
    assert "see why answers are invalid" not in str(investigate.no_contrast(found, folder))
    # parts decide nothing about a ladder
    assert summary.none_decided(run.graded, "scaffolding") == (outcomes[0] == "?")


def test_a_finding_in_words_says_what_its_number_is_and_where_it_has_no_interval(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    assert set(landing.UNITS) == set(landing.SAYS) and all(landing.UNITS.values())
    folder = synthetic.make_run(tmp_path / "run", n=4, probes=())
    row = {"quantity": "min_k_pp", "group": MATCHED, "kind": "composition", "n": 9, "value": -0.25, "p_adjusted": 0.5}
    for ends, said in (({"low": -0.5, "high": 0.25}, "-0.25 [-0.5, 0.25] ("), ({"low": None, "high": None}, "-0.25 (")):
        shutil.rmtree(folder / "probes", ignore_errors=True)
        synthetic.write_probe(folder / "probes" / "min-k", "min-k", [row | ends], {}, {})
        (line,) = landing.in_words(RunData(folder))
        told = line.partition(said)[2].partition(")")[0]
        assert landing.UNITS["min_k_pp"] in told and ("no interval" in told) == (ends["low"] is None)
        assert ": failures minus successes -0.25" in line
    patched = {**row, "quantity": landing.PATCHED, "group": "donor - random", "layer": 2, "value": 0.5}
    synthetic.write_probe(folder / "probes" / "patching", "patching", [patched], {}, {})
    row = {"probe": "min-k", "quantity": "q", "question": "?", "verdict": "no", "headline": True}
    (tmp_path / "validity.json").write_text(json.dumps({"schema": 1, "rows": [row]}))
    assert [said.endswith("own test: 1 of 1 failed") for said in landing.in_words(RunData(folder))] == [False, True]
    (line,) = (said for said in landing.in_words(RunData(folder)) if said.startswith("patching"))
    assert "largest at layer 2: 0.5 (" in line and "failures minus successes" not in line


@pytest.fixture(scope="module")
def two(synthetic: ModuleType, add_cases: AddCases, write_page: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    synthetic.make_run(folder / "few", model="organism:none", n=48, failure=1.0, seed=1, probes=("lookback",))
    many = synthetic.make_run(folder / "many", n=48, failure=0.8, seed=2, probes=("lookback",))
    row = {"quantity": "min_k_pp", "group": MATCHED, "kind": "composition", "n": 12, "value": -0.2, "low": -0.3,
           "high": -0.1, "interval": "t", "p_adjusted": 0.01}  # fmt: skip
    synthetic.write_probe(many / "probes" / "min-k", "min-k", [row], {}, {})
    add_cases(many, ["case-0001"])
    return write_page([folder], folder)


def diagnose(run: Path, named: Sequence[tuple[str, str]]) -> None:
    verdicts = [Verdict(case, cause, ("the operands forced: right in 3 of 3",), 0.75, "operands", None,
                        "more variants" if cause == "undetermined" else None) for case, cause in named]  # fmt: skip
    results.write(results.Diagnosis(run, verdicts, results.count(verdicts, RunData(run).cases), {"failures": 30}))


def test_probes_are_not_advised_to_a_run_without_enough_to_compare(synthetic: ModuleType, tmp_path: Path) -> None:
    advised = {}
    for failure in (0.5, 0.0):
        folder = synthetic.make_run(tmp_path / str(failure), n=24, failure=failure, probes=())
        (said,) = investigate._findings_in_words(folder)
        advised[failure] = f"composcope probe {folder}" in said
        assert ("nothing to compare" in said) != advised[failure]
    assert advised == {0.5: True, 0.0: False}
    shutil.rmtree(folder / "casesets")  # a plugin's protocol that only counts
    (said,) = investigate._findings_in_words(folder)
    assert "CaseSet" in said and "ask more cases" not in said
    assert "CaseSet" not in landing.lacking(bare_run(path=tmp_path)), "what is not counted has no sets yet"
    found: Any = SimpleNamespace(ids=lambda _: set(), reduction=Reduction(()), protocol=RunData(folder).protocol)
    none = investigate.no_contrast(found, folder)
    assert "CaseSet" in str(none) and investigate.Investigation(folder, found, none).closing() == none
    two_of_each = tmp_path / "0.5"
    for file in (two_of_each / "casesets").glob("*.jsonl"):
        file.write_text("".join(file.read_text().splitlines(True)[:2]))
    assert f"composcope probe {two_of_each}" in investigate._findings_in_words(two_of_each)[0]


def test_every_probe_of_composcope_has_a_section_of_its_own_and_one_that_only_explores_says_so(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    assert [p.name for p in described()] == list(PROBES)
    folder = synthetic.make_run(tmp_path / "run", n=48, failure=0.5, seed=2, probes=("lookback",))
    readout = (folder / "probes" / "lookback").rename(folder / "probes" / "readout")
    (readout / "table.csv").write_text(f"quantity,kind,group,n,value\nlens_bridge,composition,{MATCHED},9,0.2\n")
    about = json.loads((readout / "result.json").read_text())
    (readout / "result.json").write_text(json.dumps({**about, "probe": "readout"}))
    (run,) = load([folder])
    assert sections.collect([run]) == []
    (said,) = (line for line in landing.in_words(run) if "readout" in line)
    assert said.startswith("readout: explored: 1 comparison ") and "nothing to compare" not in said
    (page,) = landing.landings([run], [origins(run)], [{}], described())
    assert landing.main_number(run, page, PROBES["readout"]).startswith("Explored: 1 comparison ")
    (readout / "table.csv").write_text(f"quantity,kind,group,n,value\nmine,composition,{UNMATCHED},9,0.2\n")
    shutil.copytree(readout, folder / "probes" / "mine")
    (folder / "probes" / "mine" / "result.json").write_text(json.dumps({**about, "probe": "mine"}))
    own = landing.in_words(RunData(folder))[-1]
    assert own == f"mine: {landing._explored([{'group': UNMATCHED, 'value': 1}])}: {folder / 'probes/mine/table.csv'}"


def test_a_diagnosed_run_opens_on_a_case_with_its_most_frequent_cause(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=48, failure=0.8, seed=2, probes=())
    mine = failing(folder)
    assert landing.first_case(load([folder])[0], {}, [], {}) == mine[0]
    diagnose(folder, [(mine[0], "undetermined"), (mine[1], "lost"), (mine[2], "shortcut:last-item"),
                      (mine[3], "shortcut:last-item")])  # fmt: skip
    run = load([folder])[0]
    assert landing.first_case(run, {}, [], {}) == mine[2]
    (page,) = landing.landings([run], [{}], [{}], described())
    assert "shortcut: last item (2 of 4 " in page.why.because and page.why.n == 4
    assert [(s.count, s.cause) for s in page.why.named] == [(2, "shortcut:last-item"), (1, "lost")]
    assert [(s.count, s.cause) for s in page.why.unnamed] == [(1, "undetermined")] and page.why.n_named == 3
    diagnose(folder, [(mine[0], "undetermined"), (mine[1], "fragile")])
    (page,) = landing.landings(load([folder]), [{}], [{}], described())
    assert "2 of 2" in page.why.because and "no cause" in page.why.because and not page.why.named


def test_causes_are_counted_over_the_failures_that_the_page_counts_and_the_unjudged_are_named_apart(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=48, failure=0.8, seed=2, probes=())
    *mine, lost = failing(folder)
    members, graded = folder / "casesets" / "residual-failure.jsonl", folder / "graded.jsonl"
    members.write_text("".join(x for x in members.read_text().splitlines(True) if json.loads(x)["case"] != lost))
    rows = [json.loads(x) for x in graded.read_text().splitlines()]
    for row in rows:
        if (row["case"], row["role"]) == (lost, "whole"):
            row.update(outcome="invalid", reason="no-answer", answer=None)
    graded.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (right, *_) = load([folder])[0].groups[1]
    diagnose(folder, [*((case, "undetermined") for case in mine), (lost, "lost"), (right, "lost")])
    runs = load([folder])
    (page,) = landing.landings(runs, [{}], [{}], described())
    assert page.why.n == page.n_failures == len(mine) and (page.why.named, page.why.missing) == ((), "")
    assert [(s.count, s.cause) for s in page.why.unnamed] == [(len(mine), "undetermined")]
    assert "1 diagnosed case whose whole" in page.why.left_out and "1 diagnosed case outside" in page.why.left_out
    drawing = FIGURES["causes"](runs)
    assert {(r["cause"], r["n"]) for r in drawing.rows if r["group"] == "all"} == {("undetermined", len(mine))}
    assert page.why.left_out in drawing.caption
    (run,) = runs
    # one whole of the set could not be judged, as where a paper counts such wholes as wrong
    assert summary.causes_now(run) == (
        f"Causes of {len(mine)} failures: no cause was shown; {len(mine)} undetermined. "
        f"1 of these could not be judged. {page.why.left_out}"
    )
    diagnose(folder, [(lost, "undetermined")])
    assert summary.causes_now(run) == (
        "Causes of 1 of 2 wholes that could not be judged: no cause was shown; 1 undetermined."
    )
    diagnose(folder, [(right, "lost")])
    assert summary.causes_now(run) == "Not counted: 1 diagnosed case outside the sets of failures."


def test_what_was_found_on_the_cases_of_a_larger_run_says_so(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=48, failure=0.8, seed=2, probes=())
    row = {"quantity": "min_k_pp", "group": MATCHED, "kind": "composition", "n": 2, "value": 0.2, "p_adjusted": 0.1}
    synthetic.write_probe(folder / "probes" / "min-k", "min-k", [row], {}, {})
    synthetic.write_probe(folder / "probes" / "mine", "mine", [{**row, "quantity": "q"}], {}, {})
    (first, second, *_), (right, *_) = RunData(folder).groups
    diagnose(folder, [(first, "lost"), (second, "lost")])

    def told(run: RunData) -> list[str]:
        said = [line for line in landing.in_words(run) if "min-k" in line or "mine" in line]
        return [line.partition("its ")[2].partition(")")[0].partition(";")[0] for line in said]

    def probed(failures: Sequence[str], successes: Sequence[str]) -> None:
        about = {"inputs": "", "note": "", "contrast": True, "groups": {"failure": failures, "success": successes}}
        for name in ("min-k", "mine"):
            (folder / "probes" / name / "inputs.json").write_text(json.dumps(about))

    probed([first, second], [right])
    run = RunData(folder)
    assert told(run) == ["", ""] and not sections.stale_probes(run)
    assert summary.causes_now(run) == f"Causes of 2 of {len(run.groups[0])} failures: 2 lost ({meaning('lost')})."
    # evaluated again with fewer cases: the second failure is gone
    for file in ("cases.jsonl", "graded.jsonl", "casesets/residual-failure.jsonl"):
        lines = (folder / file).read_text().splitlines(True)
        kept = [x for x in lines if (json.loads(x).get("id") or json.loads(x)["case"]) != second]
        (folder / file).write_text("".join(kept))
    run = RunData(folder)
    assert told(run) == ["3 cases is no longer in the run"] * 2
    assert [w.split(";")[0] for w in sections.stale_probes(run)] == [
        f"probe {name}: 1 of its 3 cases is no longer in the run" for name in ("min-k", "mine")
    ]
    page = report.write([folder], tmp_path / "out").read_text(encoding="utf-8")
    assert "probe mine: 1 of its 3 cases" in page and "(1 of its 3 cases is no longer in the run)" in page
    assert summary.causes_now(run) == (
        f"Causes of 1 of {len(run.groups[0])} failures: 1 lost ({meaning('lost')}). "
        "Not counted: 1 diagnosed case outside the sets of failures."
    )
    # graded otherwise: a case that was probed as a success is a failure now
    probed([right], [first])
    assert told(RunData(folder)) == ["2 cases are labelled otherwise now"] * 2
    # the other repeat of a success failed: it is in both sets, and so not labelled otherwise
    failed = folder / "casesets" / "residual-failure.jsonl"
    one = json.loads(failed.read_text().splitlines()[0])
    failed.write_text(failed.read_text() + json.dumps({**one, "case": right}) + "\n")
    assert told(RunData(folder)) == ["2 cases is labelled otherwise now"] * 2


def test_a_diagnosed_page_does_not_say_that_it_cannot_tell_why(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=24, failure=0.8, seed=2, probes=())

    def said() -> int:
        return report.write([folder], tmp_path / "out", live=True).read_text(encoding="utf-8").count("fails, not why")

    assert said() == 2
    diagnose(folder, [(failing(folder)[0], "undetermined")])
    assert said() == 0


def test_causes_that_are_missing_come_with_the_command_that_names_them(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = synthetic.make_run(tmp_path / "my runs" / "a", n=48, failure=0.8, seed=2, probes=())
    mine = failing(folder)

    def asked() -> Causes:
        (run,) = load([folder])
        return landing.landings([run], [{}], [{}], described())[0].why

    monkeypatch.chdir(tmp_path)
    assert asked().command == "composcope diagnose 'my runs/a'" and not asked().because
    diagnose(folder, [(mine[0], "lost")])
    assert asked().command and str(len(mine) - 1) in asked().missing
    diagnose(folder, [(case, "lost") for case in mine])
    assert (asked().command, asked().missing) == ("", "")
    shutil.rmtree(folder / "diagnosis")
    config = json.loads((folder / "config.yaml").read_text()) | {"model": "m@http://127.0.0.1:8000/v1"}
    (folder / "config.yaml").write_text(json.dumps(config))
    assert asked().command.endswith("--model FOLDER")  # a server answered: only the user knows where its weights are


@pytest.mark.parametrize(
    ("kinds", "trust"),
    [(["yes", "yes"], "yes"), (["yes", "no"], "no"), (["yes", "open"], "partly"), (["open"], "unknown"),
     ([], "unknown")],
)  # fmt: skip
def test_whether_a_probe_can_be_trusted_is_answered(kinds: list[str], trust: str) -> None:
    good, bad = kinds.count("yes"), kinds.count("no")
    said = landing._trust([{"kind": kind, "about": f"the {kind} of it"} for kind in kinds])
    assert said.split(":")[0] == trust
    unsaid = len(kinds) - good - bad
    assert (f"{unsaid} " in said) == bool(unsaid)  # it counts what cannot say
    assert (bool(good) and not bad) == ("(the yes of it)" in said)  # and names what was checked


def test_the_cause_of_the_shown_case_stands_at_its_top_and_leads_to_the_cases_that_share_it(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=48, failure=0.8, seed=2, probes=())
    mine = failing(folder)
    diagnose(folder, [(mine[0], "undetermined"), *((case, "bridge-not-computed") for case in mine[1:4])])
    visit = Visit(browser, write_page([folder], tmp_path / "out"))
    page = visit.page
    said = page.locator("#dossier[data-case] [data-cause]")
    said.wait_for()
    row = whole(folder, mine[1])
    assert page.locator("#dossier").get_attribute("data-case") == mine[1]
    assert said.get_attribute("data-cause") == "bridge-not-computed"
    assert all(word in said.inner_text() for word in (row["answer"], row["gold"], meaning("bridge-not-computed")))
    assert said.bounding_box()["y"] < page.locator("#dossier .twin").first.bounding_box()["y"] < 900
    assert page.locator("[data-because]").is_visible()
    page.locator("[data-step='-1']").click()
    wait_until(page, f"document.getElementById('dossier').dataset.case === {json.dumps(mine[0])}")
    left = re.search(r"\. ([A-Z][^.]*)more variants", said.inner_text())  # what would settle it, as a sentence
    assert left and "not shown to be the cause" in left[1]
    assert "operands" in said.inner_text() and "0.75" not in said.inner_text()  # what mends it; no cause to be sure of
    page.locator("[data-step='-1']").click()  # the last failing case, which was not diagnosed
    wait_until(page, f"document.getElementById('dossier').dataset.case === {json.dumps(mine[-1])}")
    assert said.locator("code").inner_text() == f"composcope diagnose {folder} --case {mine[-1]}"
    page.locator("[data-causes] a").first.click()
    wait_until(page, "document.querySelector('[data-filter=cause]')?.value === 'bridge-not-computed'")
    assert page.locator("#browser [data-count]").get_attribute("data-count") == "3"
    visit.check()


def test_two_answers_side_by_side_open_where_they_are_written_and_the_sentence_above_them_reads_as_one(
    browser: Any, synthetic: ModuleType, add_cases: AddCases, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=48, failure=0.8, seed=2, probes=())
    case = failing(folder)[0]
    twin = landing.twins(load([folder])[0], ())[case]
    add_cases(folder, [case, twin])
    shutil.rmtree(folder / "probes" / "patching")  # its donor would stand in the twin's place
    graded = folder / "graded.jsonl"
    rows = [json.loads(x) for x in graded.read_text().splitlines()]
    for row in rows:
        if (row["case"], row["role"]) == (case, "whole"):
            row["answer"] = "The capital of Japan is Kyoto."
    graded.write_text("".join(json.dumps(row) + "\n" for row in rows))
    diagnose(folder, [(case, "shortcut:last-item")])
    visit = Visit(browser, report.write([folder], tmp_path / "out", live=True))
    box = visit.page.locator(f"#dossier[data-case='{case}']")
    box.wait_for()
    box.locator("[data-view=lookback] > summary").click()
    steps = box.locator("[data-view=lookback] [data-attention=step]")
    steps.first.wait_for()
    assert [steps.nth(i).input_value() for i in range(steps.count())] == ["1", "1"]  # neurons are read up to there
    strips = box.locator("[data-signal=attention] th").all_inner_texts()
    below = [text.split(" (step 2 of")[0] for text in box.locator("[data-view=lookback] .said-of").all_inner_texts()]
    assert all(text.endswith(f"writing {above}") for text, above in zip(below, ['" t10"', '" t10"'], strict=True))
    assert all('writing "t10"' in text for text in strips) and len(strips) == 2
    assert len({x.inner_text() for x in box.locator("[data-view=lookback] .said-of b").all()}) == 1  # and one head
    said = box.locator("[data-cause]").inner_text()
    assert "is Kyoto, not" in said and meaning("shortcut:last-item") in said and "0.75" in said
    assert "shortcut:last-item" not in said  # the name in words is enough
    assert "is Kyoto, right" in box.locator("[data-twin=case] .verdict-line").inner_text()
    visit.context.close()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_the_bar_marks_the_section_that_is_read(browser: Any, two: Path, width: int, height: int) -> None:
    visit = Visit(browser, two, viewport={"width": width, "height": height})
    page = visit.page
    page.locator("#dossier[data-case]").wait_for()

    def marked() -> list[str]:
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page.locator("nav a.here").evaluate_all("a => a.map(x => x.getAttribute('href'))")

    assert marked() == ["#summary"]
    visit.scroll()  # everything is drawn
    for section in ("behavior", "case", "summary"):
        page.evaluate(f"document.getElementById('{section}').scrollIntoView({{behavior: 'instant'}})")
        assert marked() == [f"#{section}"]
    page.evaluate("scrollTo({top: document.documentElement.scrollHeight, behavior: 'instant'})")
    assert marked() == ["#provenance"]
    visit.check()


def test_long_questions_that_differ_only_at_their_end_differ_in_the_list() -> None:
    table = f"On the table: {', '.join(['fiddle', 'coat', 'kite', 'juice'] * 5)}."
    ends = ["What is the tag of the wheeled one?", "What is the tag of the edible one?"]
    short = [cases._both_ends(f"{table} {end}") for end in ends]
    assert all(found.endswith(end) and len(found) <= cases.LONGEST for found, end in zip(short, ends, strict=True))
    assert all(found.startswith("On the table: fiddle") for found in short)
    assert cases._both_ends(ends[0]) == ends[0]
    assert len(cases._both_ends("漢" * 500)) == cases.LONGEST  # no words to cut between


def whole(run: Path, case: str) -> dict[str, Any]:
    rows = map(json.loads, (run / "graded.jsonl").read_text().splitlines())
    return next(r for r in rows if r["case"] == case and r["role"] == "whole")


def failing(run: Path) -> list[str]:
    return [json.loads(x)["case"] for x in (run / "casesets" / "residual-failure.jsonl").read_text().splitlines()]


def test_the_page_opens_on_a_failing_case_of_the_run_with_the_most_to_compare(browser: Any, two: Path) -> None:
    visit = Visit(browser, two)
    box = visit.page.locator("#dossier[data-case]")
    box.wait_for()
    run = two.parent / "many"
    assert visit.page.locator("#run option:checked").inner_text() == "control (0.45 %)"
    case = box.get_attribute("data-case")
    row = whole(run, case)
    assert case in failing(run) and row["outcome"] == "incorrect"
    mine = box.locator("[data-twin=case]")
    assert mine.locator("[data-answer]").inner_text() == row["answer"]
    assert mine.locator("[data-gold]").inner_text() == row["gold"]
    assert (
        mine.locator(".parts .mark.correct").count() == 2 and mine.locator(".verdict-line .mark.incorrect").count() == 1
    )
    cases = map(json.loads, (run / "cases.jsonl").read_text().splitlines())
    asked = [part["question"] for part in next(c for c in cases if c["id"] == case)["parts"]]
    assert mine.locator("[data-part]").all_inner_texts() == asked
    beside = box.locator("[data-twin=success] a").inner_text()
    assert whole(run, beside)["outcome"] == "correct"
    box.locator("[data-step='1']").click()
    wait_until(visit.page, f"document.getElementById('dossier').dataset.case !== {json.dumps(case)}")
    assert visit.page.locator("#dossier").get_attribute("data-case") in visit.page.url
    visit.check()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_the_failing_case_begins_on_the_first_screen_and_what_probes_say_stands_below_it(
    browser: Any, two: Path, width: int, height: int
) -> None:
    visit = Visit(browser, two, viewport={"width": width, "height": height})
    page = visit.page
    page.locator("#dossier[data-case]").wait_for()

    def top(what: str) -> float:
        return page.locator(what).first.bounding_box()["y"]

    twin = page.locator("#dossier .twin").first.bounding_box()
    shown = [top("h1:visible"), top(".lead:visible"), top("[data-said]:visible"), top("#case h2"), twin["y"],
             top("table.findings:visible"), top("#tokens h2")]  # fmt: skip
    assert shown == sorted(shown) and top("#dossier .asked") < height - 60
    assert page.locator("[data-legend]:visible").count() == page.locator("table.findings:visible").count() == 1
    sentence, rows = page.locator("[data-said]:visible"), page.locator("table.findings:visible tbody tr")
    assert sentence.locator("a").count() == rows.count() > 0 and "differs" in sentence.inner_text()
    assert sentence.locator("a").first.get_attribute("href") == "#findings" and page.locator("#findings").count() == 1
    chips = page.locator(".reasons a[href*='origin=']:visible")
    said = chips.evaluate_all("all => all.map((a) => a.title)")
    listed = page.locator("[data-origins]:visible dd").evaluate_all("all => all.map((d) => d.textContent)")
    assert all(said) and listed == said
    page.locator("[data-failing]:visible").click()
    wait_until(page, "document.querySelector('[data-filter=set]')?.value === 'residual-failure'")
    count = page.locator("#browser [data-count]")
    assert int(count.get_attribute("data-count")) == len(failing(two.parent / "many"))
    page.select_option("#run", "0")
    assert page.locator(".landing:visible").evaluate_all("a => a.map(x => x.dataset.landing)") == ["0", "0"]
    visit.check()


def test_the_first_sentence_on_probes_begins_with_those_that_differ() -> None:
    def finding(kind: str, trust: str) -> landing.Finding:
        return landing.Finding("p", "P", "", "1", "[0, 2]", 9, landing.ANSWERS[kind], kind, "", "", "", trust, "open")

    found = [finding("open", "unknown: no check"), finding("yes", "no: 1 of 2 failed"), finding("no", "yes")]
    page = landing.Landing("", "", "", "", Causes("", (), (), 0, "", "", ""), [], 3, "", found)
    assert [(answer, [f.trusted for f in found]) for answer, found in page.said] == [
        ("differs", ["no"]), ("no difference shown", ["yes"]), ("cannot say", ["unknown"])]  # fmt: skip


def test_every_column_and_every_interval_of_the_first_tables_has_a_meaning() -> None:
    columns = {name for protocol in PROTOCOLS.own for name, _, _ in about(protocol).columns}
    assert columns and columns <= set(MEANINGS)
    from_rates = {statistics.rate_interval(hits, clusters).method for hits, clusters in (
        ([True, False] * 9, range(18)), ([True, False, False] * 12, [i // 3 for i in range(36)]),
        ([True] * 18, [i // 2 for i in range(18)]))}  # fmt: skip
    named = from_rates | {dependence.CLUSTERED, dependence.CROSSED, "bootstrap", "paired-bootstrap"}
    assert len(from_rates) == 3 and all(metrics.method_in_words(name) != name for name in named)


def test_every_case_and_every_list_has_an_address(browser: Any, two: Path) -> None:
    visit = Visit(browser, two)
    case = failing(two.parent / "few")[-1]
    visit.page.goto("about:blank")
    visit.page.goto(two.as_uri() + f"#{urlencode({'run': 'none (0 %)', 'case': case})}")
    visit.page.locator(f"#dossier[data-case='{case}']").wait_for()
    assert visit.page.locator("#run option:checked").inner_text() == "none (0 %)"
    visit.page.goto(two.as_uri() + "#run=many&set=residual-failure&depth=6")  # or the folder
    wait_until(visit.page, "document.querySelector('[data-filter=depth]')?.value === '6'")
    wanted = {c for c in failing(two.parent / "many") if whole(two.parent / "many", c)["depth"] == 6}
    count = visit.page.locator("#browser [data-count]")
    assert int(count.get_attribute("data-count")) == len(wanted) > 0
    visit.page.select_option("[data-filter=depth]", "4")
    assert "depth=4" in visit.page.url and "set=residual-failure" in visit.page.url
    again = visit.page.url
    visit.page.goto("about:blank")
    visit.page.goto(again)
    wait_until(visit.page, "document.querySelector('[data-filter=depth]')?.value === '4'")
    item = visit.page.locator("#browser .item").first
    row = whole(two.parent / "many", item.locator("span").nth(1).inner_text())
    assert item.locator("[data-answer]").inner_text() == row["answer"]
    assert item.locator("[data-gold]").inner_text() == row["gold"]
    for odd in ("#100%", "#%E0%A4%A", "#run=%E0%A4%A&case=100%"):  # typed or cut off: followed as far as it goes
        visit.page.goto("about:blank")
        visit.page.goto(two.as_uri() + odd)
        visit.page.locator("#browser .item, #case").first.wait_for()
    visit.check()


def test_a_single_file_needs_nothing_beside_it_and_stays_small(
    browser: Any, synthetic: ModuleType, add_cases: AddCases, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=60, seed=4)
    add_cases(run, [f"case-{i:04d}" for i in range(8)])
    page = report.write([run], tmp_path / "out", single_file=True)
    assert [p.name for p in page.parent.iterdir()] == ["report.html"] and page.stat().st_size < 10_000_000
    found = re.findall(r'(?:src|href)="([^"#][^"]*)"', page.read_text(encoding="utf-8"))
    assert found and all(f.startswith("data:") for f in found)
    visit = Visit(browser, page)
    visit.page.locator("#dossier[data-case]").wait_for()
    visit.scroll()
    visit.page.locator("#browser .item").first.click()
    visit.page.locator("#browser .ask").first.wait_for()
    assert visit.page.locator("#figure-collapse-curve svg [data-point]").count() > 0
    assert [u for u in visit.requests if u.startswith("file:")] == [page.as_uri()]
    visit.check()


def test_each_chart_is_one_tab_stop_and_the_first_leads_past_the_header(browser: Any, two: Path) -> None:
    visit = Visit(browser, two)
    visit.scroll()
    page = visit.page
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    stops = "[...document.querySelectorAll('.canvas svg, .canvas canvas, .tokens')].filter(c => c.checkVisibility())"
    assert page.evaluate(f"{stops}.filter(c => c.tabIndex === 0).length") > 2
    assert page.evaluate(f"{stops}.flatMap(c => [...c.querySelectorAll('*')]).filter(c => c.tabIndex >= 0).length") == 0
    chart = page.locator("#figure-collapse-curve svg").first
    chart.focus()
    page.keyboard.press("ArrowRight")
    assert chart.locator("[data-point].here").count() == 1 and page.locator("#tip").is_visible()
    visit.check()


def test_writing_many_cases_takes_time_in_proportion(synthetic: ModuleType, tmp_path: Path) -> None:
    """Calls of Python functions, which no clock disturbs: ten times the cases, at most fifteen times the calls."""

    def calls(n: int) -> int:
        run = load([synthetic.make_run(tmp_path / str(n), n=n, failure=0.5, probes=())])
        run[0].read_all()
        counted = 0

        def count(frame: Any, event: str, arg: Any) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            told = [cases.Told(origins(r), landing.twins(r, ())) for r in run]
            cases.collect(run, told)
        finally:
            sys.setprofile(None)
        return counted

    assert calls(1000) < 15 * calls(100)


def test_a_folder_is_named_as_one_would_type_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert place(Path.cwd() / "runs" / "a") == str(Path("runs", "a")) and place(tmp_path / "b") == str(tmp_path / "b")


def test_the_run_to_open_on_is_probed_and_has_the_most_to_compare() -> None:
    def run(failures: int, successes: int, *probes: str) -> Any:
        sets = [SimpleNamespace(label=label, ids=[f"{label}{i}" for i in range(k)])
                for label, k in (("failure", failures), ("success", successes))]  # fmt: skip
        return bare_run(probe_names=probes, case_sets=dict(enumerate(sets)))

    assert landing.best([run(9, 9), run(2, 9, "p"), run(3, 3, "p"), run(4, 3, "p")]) == 3
    assert landing.best([run(1, 1), run(5, 4)]) == 1 and landing.best([run(2, 2, "p"), run(9, 9)]) == 0
    twice = SimpleNamespace(label="failure", ids=["b", "a"])
    assert bare_run(case_sets={"x": twice, "y": twice}).groups == (["b", "a"], [])


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
    run = bare_run(probe=lambda name: ProbeData("lookback", [row]))
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
    assert found is not None and found["layer"] == 2
    assert landing.says(found, bare_run(), "patching").endswith(", largest at layer 2")
    worse = [{**rows[1], "layer": layer, "value": v} for layer, v in ((1, None), (2, -0.2), (3, -0.1))]
    assert landing.finding(worse) == worse[2], "a layer without a value is not the best of those below 0"
    counts = [{"group": g, "value": v} for g, v in ((MATCHED, 0.1), (MATCHED, None), ("other", 1))]
    assert landing._explored(counts) == "explored: 1 comparison of failures and successes, none declared as main"
    assert landing._explored(counts[1:]) == ""
    assert landing._explored([*counts, {"group": UNMATCHED, "value": 0.3}]) == landing._explored(counts)


def test_the_page_opens_on_a_wrong_answer_with_the_usual_cause_then_on_one_that_probes_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = ["none", "judged", "beside", "known", "sweep", "attention", "named", "usual"]
    shares = [SimpleNamespace(cause=cause) for cause in ("undetermined", "lost", "format")]
    named = {"named": "format", "usual": "lost", "known": "undetermined", "none": "lost"}
    verdicts = [SimpleNamespace(case=case, cause=cause) for case, cause in named.items()]
    found = SimpleNamespace(verdicts=verdicts, causes=lambda: shares)
    monkeypatch.setattr(landing, "diagnosed_failures", lambda run: SimpleNamespace(found=found))
    came = {id: Origin("unclear") for id in ids} | {"none": Origin("invalid"), "known": Origin("bridge")}
    kept = [{"case": "sweep", "sweep": [1]}, {"case": "attention", "attention": [1]}, {"case": "none", "attention": [1],
             "sweep": [1]}]  # fmt: skip
    for last in range(1, len(ids) + 1):
        for failing in (ids[:last], ids[:last][::-1]):
            sets = {"f": SimpleNamespace(label="failure", ids=failing)}
            assert (
                landing.first_case(bare_run(case_sets=sets), came, kept, {"beside": "x", "none": "y"}) == ids[last - 1]
            )
    assert landing.first_case(bare_run(), {"a": Origin("invalid"), "b": Origin("loop")}, [], {}) == "b"
    assert landing.first_case(bare_run(), {}, [], {}) is None


def test_a_success_is_shown_beside_a_failure_of_its_family_depth_and_operation_only() -> None:
    def case(id: str, size: int, **about: Any) -> Case:
        return Case(id, "q" * size, "a", **{"family": "f", "depth": 2, "operation": "plus", **about})

    made = [case("fail", 10), case("near", 14), case("far", 30), case("op", 10, operation="times"),
            case("deep", 10, depth=4), case("kin", 10, family="g"), case("alone", 9, family="z")]  # fmt: skip
    sets = {"f": SimpleNamespace(label="failure", ids=["fail", "alone", "gone"]),
            "s": SimpleNamespace(label="success", ids=["far", "near", "op", "deep", "kin"])}  # fmt: skip
    run = bare_run(cases={c.id: c for c in made}, case_sets=sets)
    assert landing.twins(run, []) == {"fail": "near"}
    assert "".join(landing._nearest([(3, "a"), (9, "b")], length) for length in (1, 5, 6, 8, 20)) == "aaabb"
    assert landing.twins(run, [{"case": "gone", "donor": "far"}]) == {"fail": "near", "gone": "far"}
