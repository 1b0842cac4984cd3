"""The folder for a paper: what it holds, what it marks, and that texts from outside print as they stand."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.graded import Graded
from composcope.experiments.cli import main
from composcope.experiments.figures.catalog import FIGURES
from composcope.experiments.report import paper as report_paper
from composcope.experiments.report.headline import tables
from composcope.experiments.report.landing import PATCHED, SAYS
from composcope.experiments.report.paper import (
    FAILED,
    NONE,
    PASSED,
    SHOWN,
    UNSAID,
    UNSHOWN,
    UNTESTED,
    _asked,
    _in_a_cell,
    badge_of,
    claims,
    escaped,
    methods,
    table,
    write,
)
from composcope.experiments.run import diagnosis
from composcope.experiments.run.diagnosis import Verdict
from composcope.experiments.run.reader import load
from composcope.files import read_csv, to_csv
from composcope.probes.catalog import PROBES
from composcope.probes.verdicts import MATCHED


@pytest.fixture(scope="module")
def study(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper") / "study"
    synthetic.make_run(folder / "one", protocol="compositionality-gap", probes=("lookback", "min-k"))
    for probe, declared in (("lookback", "lookback_ratio"), ("min-k", "min_k_pp")):
        table = folder / "one" / "probes" / probe / "table.csv"
        names, rows = read_csv(table)
        named = [*names, *({"kind", "p", "p_adjusted", "low", "high", "interval"} - set(names))]
        matched = {"quantity": "the_ratio", "group": MATCHED, "kind": "composition", "n": 7, "value": 0.25}
        matched |= {"low": 0.125, "high": 0.5, "p": 0.015625, "p_adjusted": 0.03125}
        few = {**matched, "n": 2, "low": None, "high": None}
        table.write_text(to_csv([*rows, few, {**matched, "quantity": declared}, matched], named))
    failed = {"probe": "lookback", "question": "does it follow the dose?", "verdict": "no", "headline": True}
    (folder / "validity.json").write_text(json.dumps({"schema": 1, "rows": [failed], "notes": []}))
    return folder


@pytest.fixture(scope="module")
def paper(study: Path) -> Path:
    out = study.parent / "paper"
    assert main(["paper", str(study), "--out", str(out), "--style", "gray"]) == 0
    return out


@pytest.fixture(scope="module")
def texts(study: Path) -> Path:
    """The same without its figures, which take long."""
    out = study.parent / "texts"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(report_paper, "_figures", lambda *_: ([], []))
        write([study], out, gray=True)
    return out


@pytest.mark.long
def test_every_figure_that_is_named_is_there_with_its_caption(paper: Path) -> None:
    text = (paper / "figures.tex").read_text()
    named = re.findall(r"\{figures/([a-z-]+\.pdf)\}", text)
    assert {"gap-slopes.pdf", "lookback.pdf"} <= set(named)
    assert all((paper / "figures" / name).read_bytes().startswith(b"%PDF") for name in named)
    assert text.count(r"\caption{") == len(named)


def test_claims_have_n_interval_and_badge_and_a_failed_probe_is_marked(texts: Path, study: Path) -> None:
    _, rows = read_csv(texts / "claims.csv")
    (run,) = load([study])
    whole = next(r for r in rows if r["badge"] == "counted" and "whole" in r["claim"])
    assert int(whole["n"]) > 0 and whole["interval"].startswith("[")
    assert run.one("composition") is not None
    of_probes = {r["claim"].split(":")[0]: r for r in rows if r["badge"] != "counted"}
    assert {name: r["badge"] for name, r in of_probes.items()} == {"lookback": FAILED, "min-k": UNTESTED}
    of = [r["badge"] == FAILED for r in rows if r["declared"] == "True"]
    assert f"; {sum(of)} of {len(of)} claims come from" in (texts / "claims.tex").read_text()
    assert sum(of) < sum(r["badge"] == FAILED for r in rows)
    row = of_probes["lookback"]
    assert (row["n"], row["value"], row["interval"]) == ("7", "0.25", "[0.125, 0.5]")
    assert row["p"] == "0.031", "as corrected for the declared family"
    sides = {r["claim"].endswith("failures minus matched successes") for r in rows if r["badge"] != "counted"}
    assert sides == {True} and not any("minus matched" in r["claim"] for r in rows if r["badge"] == "counted")
    assert "follow the dose" in row["why"] and "follow the dose" in (texts / "claims.tex").read_text()
    assert all(r["value"] and r["interval"] for r in rows)
    assert {r["interval"] for r in rows if r["n"] == "2"} == {NONE}


def test_the_table_has_the_declared_claims_and_the_file_the_exploratory_ones_too(texts: Path) -> None:
    _, rows = read_csv(texts / "claims.csv")
    text = (texts / "claims.tex").read_text()
    declared = [r for r in rows if r["declared"] == "True"]
    first, later = text.split("\\endfirsthead")
    assert "\\label" in first and "\\label" not in later, "a label on each page that the table spans"
    assert later.count(" \\\\\n") - 1 == len(declared) < len(rows)
    assert {r["claim"].split(":")[0] for r in declared if r["badge"] != "counted"} == {"lookback", "min-k"}
    assert any("the ratio" in r["claim"] for r in rows) and "the ratio" not in text
    assert f"{len(rows) - len(declared)} exploratory contrasts" in text
    assert "−" not in (texts / "claims.csv").read_text() and "[-" in (texts / "claims.csv").read_text(), "for programs"


def test_a_claim_and_its_table_say_what_a_rate_leaves_out_and_its_range_with_that(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "run", probes=(), protocol="compositionality-gap")
    counted = json.loads((folder / "metrics.json").read_text())
    (rate,) = [m for m in counted["metrics"] if m["metric"] == "composition" and not m["group"]]
    rate |= {"n_invalid": 7, "bound_low": 0.25, "bound_high": 0.75}
    (folder / "metrics.json").write_text(json.dumps(counted))
    said = "7 ungraded: with them 25.0\u00a0% to 75.0\u00a0%"
    runs = load([folder])
    (whole,) = (r for r in claims(runs) if r["claim"] == "whole right")
    assert (whole["why"], whole["n"]) == (said, rate["n"])
    assert f"; {said})" in _in_a_cell(tables(runs)[0]["rows"][0]["cells"][2])
    texts = [p.read_text() for p in write([folder], tmp_path / "paper") if p.name in ("tables.tex", "claims.tex")]
    assert ["7 ungraded: with them 25.0" in text for text in texts] == [True, True]


def test_a_paper_of_the_user_is_not_replaced_and_one_of_ours_is(paper: Path, study: Path, tmp_path: Path) -> None:
    (tmp_path / "methods.tex").write_text("My methods")
    with pytest.raises(InputError, match=r"methods\.tex"):
        write([study], tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["methods.tex"]
    (paper / "methods.tex").write_text("old")
    write([study], paper, gray=True)
    assert (paper / "methods.tex").read_text() != "old"


def test_a_figure_of_a_plugin_that_gives_no_drawing_is_named(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FIGURES, "added", {})
    monkeypatch.setattr(FIGURES, "own", {})
    assert FIGURES.add("nothing", lambda runs: None)
    with pytest.raises(InputError, match="figure nothing: returned NoneType"):
        write([study], tmp_path)


def test_a_run_is_told_with_its_weights_and_how_many_of_its_answers_could_not_be_judged() -> None:
    config = SimpleNamespace(format="cot", prompting="chat")
    run: Any = SimpleNamespace(
        model="m-7b", manifest=SimpleNamespace(identity={"weights": "0123456789abcdef"}), config=config, seed=5,
        benchmark="d4v2", protocol="double-gate", cases=dict.fromkeys("abc"), counted=None,
        graded=[Graded(c, "whole", o) for c, o in zip(
            "abcca", ("correct", "incorrect", "abstained", "invalid", "invalid"), strict=True)],
    )  # fmt: skip
    said = _asked(run, "M")
    for fact in ("M (m-7b, weights 0123456789ab)", "3 cases of d4v2", "protocol double-gate", "prompting chat", "cot",
                 "seed 5", "; 2 of 5 answers could not be judged."):  # fmt: skip
        assert fact in said
    strict = SimpleNamespace(**{**vars(run), "counted": SimpleNamespace(compat="stad")})
    assert "; 2 of 5 answers could not be judged, of which 2 count as wrong." in _asked(strict, "M")  # type: ignore[arg-type]
    bare = _asked(SimpleNamespace(**{**vars(run), "config": None, "graded": []}), "m-7b")  # type: ignore[arg-type]
    assert "m-7b (weights" in bare and "seed" not in bare and "; 0 of 0 answers" in bare


def test_what_patching_found_is_a_claim(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "one", n=40, probes=())
    found = {"quantity": "corrected_rate", "n": 16, "low": 0.1, "high": 0.8, "interval": "t"}
    rows = [{**found, "group": f"donor - {control}", "layer": layer, "value": value}
            for control, layer, value in (("random", 0, 0.2), ("random", 1, 0.5), ("noise", 1, 0.9))]  # fmt: skip
    synthetic.write_probe(folder / "probes" / "patching", "patching", rows, {}, {})
    (claim,) = (row for row in claims(load([folder])) if row["claim"].startswith("patching"))
    assert claim["declared"] and claim["value"] == "0.5"
    assert claim["claim"] == f"patching: {SAYS[PATCHED]}, largest at layer 1"


def test_every_number_of_the_headline_tables_is_a_claim(synthetic: ModuleType, tmp_path: Path) -> None:
    for name, about in {"a": {}, "b": {"model": "org/b", "seed": 1}, "c": {"protocol": "compositionality-gap"}}.items():
        synthetic.make_run(tmp_path / name, n=30, probes=(), **about)
    runs = load([tmp_path])
    made = [row for row in claims(runs) if row["declared"]]
    shown = [
        (row["model"], one["benchmark"], column, cell["n"], cell["shown"], cell["interval"])
        for one in tables(runs) for row in one["rows"]
        for column, cell in zip(one["columns"], row["cells"], strict=True) if cell
    ]  # fmt: skip
    keys = ("model", "benchmark", "claim", "n", "value", "interval")
    assert sorted(tuple(r[k] for k in keys) for r in made) == sorted(shown)
    assert {r["claim"] for r in made} > {"atoms right in every paraphrase"}


def test_the_causes_of_a_diagnosed_run_are_claims_and_the_model_does_not_name_the_benchmark(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    gap = "compositionality-gap"
    one = synthetic.make_run(tmp_path / "one", n=48, failure=0.8, seed=2, protocol=gap, probes=())
    synthetic.make_run(tmp_path / "two", n=48, seed=3, probes=())  # the same model on another benchmark
    (run,) = load([one])
    failing = [id for s in run.case_sets.values() if s.label == "failure" for id in s.ids]
    causes = ["bridge-not-computed"] * 6 + ["undetermined"] * 2
    verdicts = [Verdict(id, cause, ("evidence",)) for id, cause in zip(failing, causes, strict=False)]
    diagnosis.write(diagnosis.Diagnosis(one, verdicts, diagnosis.count(verdicts, run.cases)))
    made = claims(load([tmp_path / "one", tmp_path / "two"]))
    assert len({row["model"] for row in made}) == 1 and len({row["benchmark"] for row in made}) == 2
    assert not any(row["benchmark"] in row["model"] for row in made)
    shown, unshown = (row for row in made if row["claim"].startswith("cause"))
    assert diagnosis.meaning("bridge-not-computed") in shown["claim"] and shown["benchmark"] == run.benchmark
    assert (shown["n"], shown["value"], shown["badge"]) == (8, "75.0\u00a0%", SHOWN)
    assert (unshown["n"], unshown["value"], unshown["badge"]) == (8, "25.0\u00a0%", UNSHOWN)
    share = next(s for s in diagnosis.count(verdicts, run.cases) if s.group == "all" and s.count == 6)
    assert share.low and share.high
    assert shown["interval"] == f"[{100 * share.low:.1f},\u00a0{100 * share.high:.1f}]"


def test_a_probe_whose_tests_partly_cannot_say_has_not_simply_passed(study: Path, tmp_path: Path) -> None:
    rows = [{"probe": "min-k", "question": str(i), "verdict": verdict, "headline": True}
            for i, verdict in enumerate(("yes", "cannot say"))]  # fmt: skip
    rows.append({"probe": "min-k", "question": "explored", "verdict": "no", "headline": False})
    shutil.copytree(study / "one", tmp_path / "one")
    for kept, badge in ((rows, None), (rows[:1], PASSED), (rows[1:], UNSAID)):
        (tmp_path / "validity.json").write_text(json.dumps({"schema": 1, "rows": kept, "notes": []}))
        (run,) = load([tmp_path / "one"])
        found, _ = badge_of(run, PROBES["min-k"])
        assert found == badge if badge else found.startswith("1 of 2")


def test_numbers_of_a_table_are_set_to_the_right_and_claims_in_a_broad_column() -> None:
    text = table([{"claim": "a", "model": "m", "n": 3}], ("claim", "model", "n"), "caption", "label")
    layout = text.split("\n")[0]
    assert layout.endswith("r}") and layout.count("p{") == 2 and "a & m & 3" in text
    wide = table([{}], ("model", *(f"metric {i}" for i in range(6))), "caption", "label")
    assert sum(map(float, re.findall(r"p\{([\d.]+)\\linewidth\}", wide))) < 0.9, "wider than the page"


@pytest.mark.long
def test_methods_say_model_data_protocol_and_versions_and_what_runs_share_once(
    paper: Path, synthetic: ModuleType, tmp_path: Path
) -> None:
    said = (paper / "methods.tex").read_text()
    for word in (
        "control (0.45 \\%) (weights ",
        "was asked 60 cases",
        "compositionality-gap",
        "torch 2.13.0",
        "seed 0",
    ):
        assert word in said
    sizes = {"a": 24, "b": 48}
    runs = load([synthetic.make_run(tmp_path / name, n=n, probes=("min-k",)) for name, n in sizes.items()])
    (runs[0].path / "probes" / "steering").mkdir()
    text = "\n".join(methods(runs))
    assert "Probes (min-k) compare" in text, "steering has no matched groups"
    assert [text.count(word) for word in ("24 cases", "48 cases", "torch ", "min-k", "95 %")] == [1, 1, 1, 1, 1]
    assert all(f"{run.name} ({run.model}, weights " in text for run in runs), "as tables and figures call them"
    other = runs[1].path / "manifest.json"
    other.write_text(other.read_text().replace("2.13.0", "2.12.0"))
    assert "\n".join(methods(load([run.path for run in runs]))).count("torch ") == 2, "versions that differ"
    assert "compare failures whose parts are all right with" in text
    counted = runs[1].path / "metrics.json"
    document = {**json.loads(counted.read_text()), "protocol": "scaffolding", "warnings": ["as (--compat stad)"]}
    counted.write_text(json.dumps(document))
    _, how = methods(load([run.path for run in runs]))
    assert "compare failures with" in how, "parts of a ladder may be wrong"
    assert "left out of the rates, except those that count as wrong." in how


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("50 % of $x_1$ & {a}", r"50 \% of \$x\_1\$ \& \{a\}"),
        ("a\\b\n~c", r"a\textbackslash{}b"),
        ("evaluate --limit 4 -m a-1", r"evaluate -{}-limit 4 -m a-1"),
        ("-6.8 points [-21.1, 7.6]", r"$-$6.8 points [$-$21.1, 7.6]"),
    ],
)
def test_text_from_outside_is_escaped(text: str, printed: str) -> None:
    assert escaped(text).startswith(printed)
