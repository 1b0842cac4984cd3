"""The report folder: what is on the page, what is in the data, how large it gets. No browser here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation.metrics import Metric
from composcope.experiments import report
from composcope.experiments.cli import main
from composcope.experiments.figures import catalog, style
from composcope.experiments.figures.catalog import FIGURES
from composcope.experiments.figures.drawing import Drawing
from composcope.experiments.report import cases, headline, pictures, sections
from composcope.experiments.report.pictures import size_of
from composcope.experiments.report.write import write_figure_data
from composcope.experiments.run import summary
from composcope.experiments.run.reader import load
from composcope.probes.verdicts import MATCHED

AddCases = Callable[..., dict[str, Any]]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`\u2028\u2029\u202e\\u003c & ${x} \ud800"


def parsed(path: Path) -> tuple[str, Any]:
    """A data script read as a browser would: two string literals, the second of them JSON."""
    text = path.read_text(encoding="utf-8")
    found = re.fullmatch(r"composcope\.load\('((?:[^'\\]|\\.)*)','((?:[^'\\\n]|\\.)*)'\);\n", text)
    assert found is not None, text[:200]
    return _unescaped(found[1]), json.loads(_unescaped(found[2]))


def _unescaped(literal: str) -> str:
    return re.sub(
        r"\\u([0-9a-f]{4})|\\(.)", lambda m: chr(int(m[1], 16)) if m[1] is not None else m[2], literal, flags=re.DOTALL
    )


@pytest.fixture(scope="module")
def written(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    synthetic.make_run(folder / "runs" / "control", n=24, text=HOSTILE, seed=2)
    return report.write([folder / "runs"], folder / "out")


def test_a_script_holds_any_text_and_gives_it_back() -> None:
    value = {"__proto__": HOSTILE, "n": float("nan"), "list": [1, None, True, "\n\r\t\x00"]}
    text = pictures.script("name", value)
    assert text.count("\n") == 1 and "<" not in text and "\u2028" not in text
    literal = text.removeprefix("composcope.load('name','").removesuffix("');\n")
    assert json.loads(_unescaped(literal)) == {**value, "n": None}


def test_the_folder_is_complete_and_refers_to_nothing_outside(written: Path) -> None:
    page = written.read_text(encoding="utf-8")
    for name in re.findall(r'(?:src|href)="([^"#]+)"', page):
        if not name.startswith("data:"):
            assert not re.match(r"[a-z]+:|//|/", name), name
            assert (written.parent / name).is_file(), name
    assert "http://" not in (text := page.replace("http://www.w3.org/2000/svg", "")) and "https://" not in text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(", page)
    assert sorted(p.name for p in written.parent.iterdir()) == ["data", "figures", "report.html"]


def test_no_text_of_the_model_is_on_the_page_and_all_of_it_is_in_the_data(written: Path) -> None:
    assert "alert(1)" not in written.read_text(encoding="utf-8")
    name, chunk = parsed(written.parent / "data" / "cases" / "0-0.js")
    assert name == "cases/0-0" and HOSTILE in chunk["texts"]


def test_a_page_of_another_program_is_not_replaced_and_one_of_ours_is(synthetic: ModuleType, tmp_path: Path) -> None:
    run, out = synthetic.make_run(tmp_path / "run", n=4, probes=()), tmp_path / "site"
    out.mkdir()
    (out / "report.html").write_text("<h1>My thesis</h1>")
    with pytest.raises(InputError, match=r"site/report\.html"):
        report.write([run], out, live=True)
    assert (out / "report.html").read_text() == "<h1>My thesis</h1>" and len(list(out.iterdir())) == 1
    first = report.write([run], tmp_path / "ours", live=True).read_text()
    assert report.write([run], tmp_path / "ours", live=True).read_text() == first


def test_files_of_the_user_in_the_folder_of_a_page_stay_and_data_of_an_earlier_page_goes(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run, out = synthetic.make_run(tmp_path / "run", n=4, probes=()), tmp_path / "site"
    own = [out / "assets" / "logo.svg", out / "data" / "own.js", out / "data" / "cases" / "a.jsonl"]
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    (old := out / "data" / "cases" / "7-0.js").write_text(pictures.script("cases/7-0", {}))
    report.write([run], out, live=True)
    assert [path.read_text() for path in own] == ["mine"] * 3
    assert not old.exists() and (out / "data" / "cases" / "0-0.js").exists()


def test_hostile_names_are_escaped_on_the_page(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", model=HOSTILE, n=8, probes=(), command=HOSTILE)
    page = report.write([run], tmp_path / "out", live=True).read_text(encoding="utf-8")
    assert "<script>alert" not in page and 'onerror=alert(2)>"' not in page
    assert page.count("<script>") == page.count("<script") == 2 and "&lt;/script&gt;" in page


def test_the_summary_lists_up_to_three_cases_of_a_failure_set_with_answer_and_gold(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=4, probes=(), protocol="compositionality-gap")
    right, wrong = {"role": "part:0", "outcome": "correct", "answer": "6", "gold": "6"}, {"role": "whole"}
    wrong |= {"outcome": "incorrect", "answer": "so " * 99, "gold": "8"}
    for name, label, n in (("both-right-whole-wrong", "failure", 5), ("both-right-whole-right", "success", 2)):
        rows = [{"schema": 1, "set": name, "label": label, "case": f"{label}-{i}", "evidence": [right, wrong]}
                for i in range(n)]  # fmt: skip
        (run / "casesets" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    lines = summary.lines(run)
    at = lines.index("  case set both-right-whole-wrong: 5")
    shown = [line for line in lines if "failure-" in line]
    assert shown == lines[at + 1 : at + 4] and not any("success-" in line for line in lines)
    assert all("so so" in line and "'8'" in line and "'6'" not in line and len(line) < 150 for line in shown)
    stored = [json.loads(line) for line in (run / "cases.jsonl").read_text().splitlines()]
    for chances, said in (([None] * 4, []), ([0.25, 0.125, None, 0], ["12.5 % (stated for 3 of 4 cases)"]),
                          ([0.125] * 4, ["12.5 %"])):  # fmt: skip
        rows = [{**row, "chance": chance} for row, chance in zip(stored, chances, strict=True)]
        (run / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert [line.split(": ")[1] for line in summary.lines(run) if "chance" in line] == said
        assert summary.document(run)["n_chance"] == 4 - sum(c is None for c in chances)
    found = summary.document(run)
    assert (found["schema"], found["run"], found["protocol"]) == (1, str(run), "compositionality-gap")
    assert found["case_sets"] == {"both-right-whole-right": 2, "both-right-whole-wrong": 5}
    assert {m["metric"] for m in found["metrics"]} >= {"composition", "gap"}


def test_a_line_of_a_metric_says_once_what_it_is() -> None:
    rows = [
        Metric("gap", n=9, value=-0.1, note="n < 15; composition - both"),
        Metric("press_gap", n=9, value=0.1, note="n < 15"),
        Metric("press_gap", {"depth": 2}, n=9, value=0.1),
    ]
    gap, press_gap, at_depth = summary.metric_lines(rows)
    assert len(press_gap) > len("press_gap: 10.0 %, n=9 (n < 15)") and at_depth == "press_gap [depth=2]: 10.0 %, n=9"
    assert gap.count("composition") == 1 and "both" in gap and "below 0" in gap and "(n < 15)" in gap
    assert "(n < 15)" in press_gap


def test_where_cases_share_facts_everything_quotes_the_interval_over_clusters(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    over = {"cluster_n": 9, "cluster_interval": "cluster-bootstrap", "cluster_low": 0.111, "cluster_high": 0.888}
    metrics = [{**synthetic.rate("residual_failure", 9, 18), **over},
               *({**synthetic.rate("residual_failure", 9, 18, depth_bin=d), **over} for d in (2, 4)),
               synthetic.rate("double_gate", 18, 20)]  # fmt: skip
    (run / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "double-gate", "metrics": metrics}))
    assert "[11.1 %, 88.8 %] (cluster-bootstrap), n=18" in summary.metric_line(Metric(**metrics[0]))
    assert "(clopper-pearson), n=20" in summary.metric_line(Metric(**metrics[-1]))
    page = report.write([run], tmp_path / "out").read_text(encoding="utf-8")
    assert "[11.1,\u00a088.8]" in page and "9 of 18; 9 clusters" in page and "intervals are over clusters" in page
    caption = (tmp_path / "out" / "figures" / "collapse-curve.txt").read_text(encoding="utf-8")
    assert "cluster-bootstrap" in caption and "clopper-pearson" not in caption


def test_an_end_of_an_interval_beyond_what_was_asked_is_shown_as_the_note_says_it() -> None:
    row = Metric("d50", value=3.2, high=3.94, note="low <2; n < 5 at depth 2")
    assert headline.interval(row, "number") == "[<\u00a02,\u00a03.94]"
    assert headline.interval(replace(row, note="depth 2 from pair"), "number") == ""


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        ("<2; n < 5 at depth 2", "<\u00a02"),
        (">8; low <2; high >8", ">\u00a08"),
        ("no depth", "undefined"),
        ("undefined: no rate at depth 4; bound_low <2", "undefined"),
        ("n < 5; low <2", "undefined"),
    ],
)
def test_a_value_beyond_what_was_asked_is_shown_as_the_note_says_it(note: str, shown: str) -> None:
    assert headline.shown(Metric("d50", note=note), "number") == shown


def test_scaffolded_runs_lead_with_what_revealed_steps_do(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=4, probes=())
    metrics = [synthetic.rate("composition", 5, 16), {**synthetic.rate("any_scaffold", 9, 10), "n_invalid": 6}]
    (run / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "scaffolding", "metrics": metrics}))
    (table,) = headline.tables(load([run]))
    assert "gets 5 of 16 wholes right unaided and 9 of 10 unaided or with some of the steps revealed" in table["lead"]
    assert "; 6 could not be graded" in table["lead"] and "90.0\u00a0% [55.5,\u00a099.7]" in table["lead"]


def test_an_undefined_headline_is_words(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    metrics = [synthetic.rate("residual_failure", 0, 0), synthetic.rate("double_gate", 0, 8)]
    (run / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "double-gate", "metrics": metrics}))
    (table,) = headline.tables(load([run]))
    assert table["rows"][0]["cells"][0]["shown"] == "undefined" and table["rows"][0]["cells"][0]["interval"] == ""
    assert "missing knowledge" in table["lead"]


def test_a_run_without_probes_or_answers_still_gets_a_report(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=4, probes=())
    for name in ("graded.jsonl", "asks.jsonl", "metrics.json", "cases.jsonl"):
        (run / name).unlink()
    page = report.write([run], tmp_path / "out", live=True).read_text(encoding="utf-8")
    assert "No probe ran" in page and 'data-view="lookback"' not in page
    assert "Not run: Neurons, Lookback, Patching, Trajectory, Exposure (Min-K%++)" in page


def test_probes_that_did_not_run_have_no_section_but_a_line_with_the_command_that_runs_them(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=24, probes=("lookback", "min-k"))
    page = report.write([run], tmp_path / "out", live=True).read_text(encoding="utf-8")
    assert re.findall(r'<section id="([a-z-]+)">', page) == [
        "summary", "case", "behavior", "lookback", "min-k", "validity", "cases", "provenance"]  # fmt: skip
    assert f"composcope probe {run} --probes neurons,patching,trajectory</code>" in page
    assert page.count("Not run: Neurons, Patching, Trajectory.") == 1
    bare = report.write([synthetic.make_run(tmp_path / "bare", n=24, probes=())], tmp_path / "other", live=True)
    assert 'id="validity"' not in (text := bare.read_text(encoding="utf-8")) and 'href="#validity"' not in text


def test_a_report_in_which_every_probe_ran_says_nothing_of_others(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8)
    page = report.write([run], tmp_path / "out", live=True).read_text(encoding="utf-8")
    assert "Not run" not in page
    assert "matched failures against successes first, by size of the effect)" in page, (
        "the order of probes.verdicts.rank"
    )


def test_probes_are_not_offered_where_there_is_nothing_to_contrast(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=12, failure=0.0, probes=())
    failures = run / "casesets" / "residual-failure.jsonl"
    failures.write_text("")
    page = report.write([run], tmp_path / "out", live=True).read_text(encoding="utf-8")
    assert "there is no failure with every part right" in page
    assert "<code>composcope probe" not in page


OTHER_ROWS = [
    {"quantity": "entropy", "kind": "composition", "group": "failure", "layer": 2, "n": 16, "value": 1.25, "low": 1.0,
     "high": 1.5, "interval": "t", "threshold": "0.1", "sd": 0.4},
    {"quantity": "entropy", "kind": "composition", "group": "success", "layer": 2, "n": 1, "value": 0.5},
    {"quantity": "entropy", "kind": "math", "group": "success", "layer": 2, "n": 0, "value": float("nan")},
]  # fmt: skip


def test_a_probe_from_a_plugin_has_a_section_with_its_table_intervals_tensors_and_warnings(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    folder = run / "probes" / "prompt end!"
    synthetic.write_probe(folder, "prompt end!", OTHER_ROWS, {"share": np.zeros((16, 4), np.float32)}, {"k": 0.25})
    about = json.loads((folder / "result.json").read_text())
    warning = "two prompts <b>are</b> empty"
    (folder / "result.json").write_text(
        json.dumps({**about, "axes": {"share": ["example", "layer"]}, "warnings": [warning]})
    )
    page = report.write([run], tmp_path / "out", live=True).read_text(encoding="utf-8")
    section = page.partition('<section id="probe-prompt-end">')[2].partition("</section>")[0]
    assert 'href="#probe-prompt-end"' in page and ">prompt end!</h2>" in section
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", section)
    assert "1.25 [1, 1.5]" in cells and "0.5 (no interval)" in cells and "undefined" in cells and "0.1" in cells
    assert "All 3 rows, without the columns sd" in section
    assert "<code>share</code>, example 16 × layer 4" in section
    assert "settings: k = 0.25" in section and "two prompts &lt;b&gt;are&lt;/b&gt; empty" in section


def test_a_long_table_of_a_plugins_probe_is_cut_and_says_so(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    rows = [{**OTHER_ROWS[0], "layer": i} for i in range(sections.ROWS + 7)]
    synthetic.write_probe(run / "probes" / "deep", "deep", rows, {}, {})
    page = report.write([run], tmp_path / "out", live=True).read_text(encoding="utf-8")
    assert f"The first {sections.ROWS} of {sections.ROWS + 7} rows" in page


def test_a_picture_that_cannot_be_written_stops_no_report_and_is_no_defect_of_ours(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=4, probes=())
    fig, ax = style.one_panel(2, 2)
    ax.set_title("costs $5^{ and more $")
    monkeypatch.setattr(catalog.FIGURES, "added", {})
    monkeypatch.setattr(catalog.FIGURES, "own", {"outcomes": FIGURES["outcomes"]})
    odd: Any = [1]
    for name, drawing in (("price", Drawing(fig, [{"a": 1}], "")), ("none", None), ("odd", Drawing(fig, odd, ""))):
        assert catalog.FIGURES.add(name, lambda runs, drawing=drawing: drawing)
    for single in (False, True):
        page = report.write([run], tmp_path / "out", single_file=single).read_text(encoding="utf-8")
        assert page.count("This figure could not be drawn") == 3 and "3 figures have no data" in page
    with pytest.raises(InputError, match="figure price: cannot be written"):
        catalog.plot("price", [run], tmp_path / "figures")


def test_figures_of_a_plugin_stand_beside_its_probe_and_may_fail(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    synthetic.write_probe(run / "probes" / "pulse", "pulse", OTHER_ROWS, {}, {})
    fig, _ = style.grid_of(1, 1, 2, 2)
    mine = {"pulse-map": lambda runs: Drawing(fig, [{"a": 1}], "Beats."), "pulse": lambda runs: 1 / 0,
            "weather": lambda runs: Drawing(fig, [{"a": 2}], "Rain.")}  # fmt: skip
    monkeypatch.setattr(catalog.FIGURES, "added", {})
    assert all(catalog.FIGURES.add(name, draw) for name, draw in mine.items())
    page = report.write([run], tmp_path / "out").read_text(encoding="utf-8")
    section = page.partition('<section id="probe-pulse">')[2].partition("</section>")[0]
    assert "Beats." in section and "could not be drawn: ZeroDivisionError" in section and "Rain." not in section
    assert page.count("Beats.") == 1 and page.count("Rain.") == 1


def test_a_broken_probe_table_costs_its_picture_only(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=("lookback", "min-k"))
    (run / "probes" / "lookback" / "tensors.safetensors").write_bytes(b"not a tensor file")
    page = report.write([run], tmp_path / "out").read_text(encoding="utf-8")
    assert "found nothing to draw here" in page and "tensors.safetensors: cannot be read" in page
    assert "<strong>Accuracy over training</strong>" not in page, "an optional figure without data is not missed"
    assert (tmp_path / "out" / "figures" / "mink.png").is_file()


VALIDITY = {
    "schema": 1,
    "notes": ["One training per dose. More: `composcope study <a>`."],
    "rows": [
        {"probe": "min-k", "quantity": "Min-K%++: trend", "question": "follows the dose", "model": "all doses", "n": 64,
         "value": 0.7, "low": 0.6, "high": 0.8, "measure": "tau", "interval": "bootstrap", "verdict": "yes",
         "headline": True},
        {"probe": "neurons", "quantity": "shared", "question": "follows the dose", "model": "all doses", "n": 64,
         "value": -0.3, "low": -0.5, "high": -0.1, "measure": "tau", "verdict": "yes, reversed", "headline": True},
        {"probe": "neurons", "quantity": "shared", "question": "tells failure from success", "model": "low", "n": 9,
         "value": None, "low": None, "high": None, "verdict": "cannot say", "headline": False},
    ],
}  # fmt: skip


def test_validity_shows_yes_no_and_cannot_say_with_number_and_interval_and_what_failed_stands_open(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    synthetic.make_run(tmp_path / "study" / "run", n=8, probes=("neurons", "min-k"))
    (tmp_path / "study" / "validity.json").write_text(json.dumps(VALIDITY))
    page = report.write([tmp_path / "study"], tmp_path / "study", live=True).read_text(encoding="utf-8")
    assert 'class="answer yes">yes' in page and 'class="answer reversed">yes, reversed' in page
    assert "[-0.5, -0.1]" in page and "One training per dose." in page and "cannot say" in page
    assert "Not every probe measures what it claims" in page
    answers = page.split('id="validity"')[1].split("All 3 answers")[1]
    assert [f"1 of 3 {said}" in answers for said in ("passed", "cannot say")] == [True, True]
    assert "<code>composcope study &lt;a&gt;</code>." in answers
    assert answers.index("yes, reversed") < answers.index("1 of 3 cannot say") < answers.index("1 of 3 passed")


def test_each_run_of_a_report_over_two_studies_is_trusted_by_its_own_study(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    (row, *_) = VALIDITY["rows"]
    for name, verdict in (("first", "yes"), ("second", "no")):
        run = synthetic.make_run(tmp_path / name / f"run-{name}", n=8, probes=(), model=f"org/{name}")
        found = {"quantity": "min_k_pp", "group": MATCHED, "kind": "composition", "n": 9, "value": 0.2}
        synthetic.write_probe(run / "probes" / "min-k", "min-k", [found], {}, {})
        document = {"schema": 1, "notes": [f"Of {name}."], "rows": [{**row, "verdict": verdict}]}
        (tmp_path / name / "validity.json").write_text(json.dumps(document))
    synthetic.make_run(tmp_path / "alone" / "run-alone", n=8, probes=("min-k",), model="org/alone")
    runs = load([tmp_path / name for name in ("first", "second", "alone")])
    (tmp_path / "other" / "first").mkdir(parents=True)
    same = (tmp_path / "other" / "first" / "validity.json").write_text(json.dumps({"schema": 1, "notes": ["More."]}))
    named = sections.validities([runs[0], replace(runs[2], path=Path(tmp_path / "other" / "first"))], [])[2]
    assert same and named == [f"{tmp_path / 'first'}: Of first.", f"{tmp_path / 'other/first'}: More."]
    own, every, notes = sections.validities(runs, [tmp_path / "first"])
    assert [[(r["answer"], r["model"]) for r in rows] for rows in own] == [
        [("yes", "all doses · first")], [("no", "all doses · second")], [("yes", "all doses · first")]]  # fmt: skip
    assert [r["answer"] for r in every] == ["yes", "no"] and notes == ["first: Of first.", "second: Of second."]
    assert len(sections.matrix(every)["columns"]) == 2, "no answer stands in place of another study's"
    page = report.write([tmp_path / "first", tmp_path / "second"], tmp_path / "out", live=True).read_text("utf-8")
    trusted = page.split('data-finding="min-k"')[1:]
    assert ["no: 1 of 1 checks failed" in text.split("</tr>")[0] for text in trusted] == [False, True]
    (rows,), _, (note,) = sections.validities(runs[:1], [])
    assert (rows[0]["model"], note) == ("all doses", "Of first."), "one study needs no name"


def test_the_verdict_table_holds_headline_answers_only() -> None:
    found = sections.matrix([sections.check(row) for row in VALIDITY["rows"]])
    assert [line["quantity"] for line in found["lines"]] == ["Min-K%++", "shared"]
    assert [c["question"] for c in found["columns"]] == ["follows the dose"]


def test_a_broken_validity_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "validity.json").write_text("{")
    rows, notes = sections.read_validity([tmp_path])
    assert rows == [] and "not valid JSON" in notes[0]


@pytest.mark.long
def test_two_thousand_cases_with_all_probes_and_long_answers_stay_light(
    synthetic: ModuleType, add_cases: AddCases, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2000)
    add_cases(run, [f"case-{i:04d}" for i in range(8)])
    lengthen(run, 900)
    page = report.write([run], tmp_path / "out")
    data = page.parent / "data"
    # What is read before anything is scrolled to or opened, and the list of cases.
    first = [page, data / "cases.js", data / "pictures.js"]
    assert sum(p.stat().st_size for p in first) < 2_000_000
    assert 10_000_000 < sum(p.stat().st_size for p in page.parent.rglob("*") if p.is_file()) < 30_000_000
    _, index = parsed(page.parent / "data" / "cases.js")
    assert len(index["rows"]) == 2000 and index["cap"] == cases.CAPS[0] and not index["dropped"]
    assert len(list((page.parent / "data" / "cases").iterdir())) == 2000 // cases.CHUNK


def lengthen(run: Path, length: int) -> None:
    """Make every response of a synthetic run its own text of that length, as models write them."""
    path = run / "journal" / "segment.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for i, row in enumerate(r for r in rows if "response" in r):
        row["response"]["text"] = f"{i} " + "step by step " * (length // 13)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def test_a_page_says_how_many_texts_it_left_out(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=30, probes=(), text="x" * 1000)])
    for budget, said in ((cases.BUDGET, []), (100, ["1"])):
        monkeypatch.setattr(cases, "BUDGET", budget)
        page = report.write(run, tmp_path / f"report-{budget}", live=True).read_text()
        assert re.findall(r"Texts of (\d+) groups", page) == said


def test_long_texts_are_cut_to_the_budget_and_the_cut_is_said(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=45, probes=(), text="x" * 25_000)])
    roomy = cases.collect(run)
    assert roomy.index["cap"] == cases.CAPS[0]
    chunk = roomy.files["cases/0-0"]
    role, _, _, place = chunk["cases"]["case-0000"]["asks"][0]
    said = chunk["asked"][place][chunk["fields"].index("response")]
    assert role == "whole" and said[1] == 25_000 and len(chunk["texts"][said[0]]) == cases.CAPS[0]
    tight = cases.collect(run, budget=sum(size_of(c) for c in roomy.files.values()) - 1)
    assert tight.index["cap"] < cases.CAPS[0] and tight.index["dropped"] == []
    none = cases.collect(run, budget=100)
    assert none.files == {} and none.index["dropped"] == ["cases/0-1", "cases/0-0"] and len(none.index["rows"]) == 45
    short = load([synthetic.make_run(tmp_path / "short", n=30, probes=(), text="x")])
    assert cases.collect(short, budget=100).index["cap"] == cases.CAPS[0]  # a lower cap would cut nothing


def test_shared_texts_are_stored_once(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=30, probes=())])
    for chunk in cases.collect(run).files.values():
        assert len(chunk["texts"]) == len(set(chunk["texts"]))


def test_a_live_page_draws_a_figure_only_where_it_comes_into_view(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=8, probes=(), protocol="compositionality-gap")])
    page = report.write(run, tmp_path / "out", live=True).read_text(encoding="utf-8")
    places = re.findall(r'<div class="canvas"([^>]*)>', page)
    assert places and all("data-later" in place for place in places)
    assert not (tmp_path / "out" / "figures").exists()
    write_figure_data("outcomes", run, tmp_path / "out")
    name, told = parsed(tmp_path / "out" / "data" / "figure-outcomes.js")
    assert name == "figure-outcomes" and told["empty"] is None and "Runs: run." in told["caption"]


def test_writing_again_replaces_the_data(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=100, probes=())
    report.write([run], tmp_path / "out", live=True)
    short = synthetic.make_run(tmp_path / "short", n=8, probes=())
    report.write([short], tmp_path / "out", live=True)
    assert [p.name for p in (tmp_path / "out" / "data" / "cases").iterdir()] == ["0-0.js"]
    _, index = parsed(tmp_path / "out" / "data" / "cases.js")
    labels = {s.name: s.label for s in load([short])[0].case_sets.values()}
    assert index["failing"] == sorted(name for name, label in labels.items() if label == "failure")
    assert set(labels.values()) > {"failure"} and index["heads"] == [None]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no manifest\.json"):
        report.write([tmp_path], tmp_path / "out")


def test_a_page_has_a_folder_so_a_file_as_its_place_is_refused(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, page = synthetic.make_run(tmp_path / "run", n=4, probes=()), tmp_path / "page.html"
    assert main(["report", str(run), "--single-file", "--out", str(page)]) == 1
    assert f"--out {page}" in capsys.readouterr().err and not page.exists()


def test_figures_of_a_section_are_those_that_declare_it_and_one_that_fails_says_why(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write: Any = import_module("composcope.experiments.report.write")  # the function of this name hides the module
    for section in ("first", "behavior", "lookback", "optional"):
        assert write._in(section) == [n for n, f in FIGURES.items() if f.section == section] != []
    run, bare = (synthetic.make_run(tmp_path / n, n=4, probes=(), model=f"org/{n}") for n in ("run", "bare"))
    (bare / "graded.jsonl").unlink()
    assert "Runs with nothing to draw: bare." in write._drawn("outcomes", load([run, bare])).caption
    with monkeypatch.context() as patched, pytest.raises(PermissionError):
        refusals = iter([PermissionError()])  # the next try would say that the figure could not be drawn
        patched.setattr(write, "_shown", lambda *_: (_ for _ in ()).throw(next(refusals)))
        write._made("outcomes", [], tmp_path, True)
    broken = replace(FIGURES["outcomes"], draw=lambda runs: 1 / 0)
    monkeypatch.setattr(type(FIGURES), "__getitem__", lambda self, name: broken)
    said = write._drawn("x", [])
    assert said.rows == [] and "could not be drawn: ZeroDivisionError: division by zero" in str(said.empty)
