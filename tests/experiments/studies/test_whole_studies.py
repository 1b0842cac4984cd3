"""Each paper's study as a whole command, on models of rules: every file against the answers that were given."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import told_engine
from exit_codes import done

from composcope.errors import ModelError
from composcope.evaluation.graded import read_graded
from composcope.evaluation.metrics import Metric, quoted
from composcope.evaluation.protocols import metrics_from_rows
from composcope.experiments import investigate as job
from composcope.experiments.cli import main
from composcope.experiments.figures import catalog, drawing
from composcope.experiments.run import read_json, read_lines
from composcope.experiments.run.reader import read_run
from composcope.experiments.studies.study import STUDIES

MODELS = ("none", "control", "twin")
"""The last one cannot be opened."""
Groups = Callable[[Mapping[str, Any]], bool]


def _keys(*names: str) -> Groups:
    return lambda group: set(group) == set(names)


OVERALL = _keys()
SETTINGS: dict[str, tuple[list[str], dict[str, list[tuple[str, Groups]]]]] = {
    "agentcoma": (["--limit", "6"], {
        "accuracy": [(m, OVERALL) for m in ("step:0", "step:1", "both", "composition", "gap", "press_gap",
                                            "independence_gap")],
        "quadrants": [("quadrant", _keys("quadrant"))],
        "controls": [(m, _keys("prompt")) for m in ("step:0", "composition", "gap")],
    }),
    "compositional-gsm": (["--limit", "6"], {
        "gap": [(m, OVERALL) for m in ("step:0", "step:1", "composition", "independence_gap")],
        "controls": [("distraction", OVERALL), ("second_hop", OVERALL), ("second_hop", _keys("against")),
                     ("co_presented", OVERALL), ("co_presented", _keys("against")), ("leakage", OVERALL)],
    }),
    "stad": (["--limit", "6", "--data", "organism:mixed", "--data", "organism:pairs"], {
        "gain": [("composition", OVERALL), ("any_scaffold", OVERALL)],
        "k": [(m, OVERALL) for m in ("mean_k", "mean_k_solvable", "k_zero", "k_positive", "intractable",
                                     "non_monotone")],
        "levels": [("scaffold_success", _keys("level")), ("placeholder", OVERALL)],
    }),
    "composition-collapse": (["--limit", "1"], {
        "depth": [("residual_failure", OVERALL), ("residual_failure", _keys("depth_bin"))],
        "families": [("residual_failure", _keys("family", "depth_bin"))],
        "knowledge": [("atom_stability", _keys("per")), *((m, OVERALL) for m in (
            "double_gate", "gate_removed", "conflation", "abstention"))],
        "d50": [("d50", OVERALL), ("d50", _keys("family"))],
        "recovery": [("recovery", _keys("prompt")), ("recovery", _keys("prompt", "depth_bin"))],
    }),
}  # fmt: skip
"""Options of each study, and the metrics that each of its tables has."""
SCALES = {"mean_k": (1, ""), "mean_k_solvable": (1, ""), "d50": (1, "")}


@dataclass(frozen=True)
class Made:
    name: str
    folder: Path
    code: int

    @property
    def runs(self) -> list[Path]:
        return [self.folder / name for name in read_json(self.folder / "study.json")["runs"] if "twin" not in name]

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.folder / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as f:
            return [{k: v.removeprefix("'") for k, v in row.items()} for row in csv.DictReader(f)]


@pytest.fixture(scope="module", params=list(SETTINGS))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    def load(loading: Any, *_: Any) -> told_engine.ToldTarget:
        if loading.model == "organism:twin":
            raise ModelError("its server is gone")
        return told_engine.target(loading.model)

    def draw(name: str, runs: Any) -> Any:
        assert {r.name for r in runs} == {f"{m}--{d}" for m in MODELS[:2] for d in data}
        return SimpleNamespace(empty="Nothing was measured." if name == STUDIES[request.param].figures[1] else None)

    def written(found: Any, name: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.txt").write_text(f"drawn {name}")

    options = SETTINGS[request.param][0]
    data = [w.removeprefix("organism:") for w in options if ":" in w] or [
        d.removeprefix("organism:") for d in STUDIES[request.param].data
    ]
    out = tmp_path_factory.mktemp("studies") / request.param
    words = [w for m in MODELS for w in ("--model", f"organism:{m}")]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "load_target", load)
        patched.setattr(catalog, "draw", draw)
        patched.setattr(drawing, "write", written)
        fixed = ["--out", str(out), "--no-report", "--no-probes", "-q", "--seed", "3"]
        code = main(["study", request.param, *words, *options, *fixed])
    return Made(request.param, out, code)


def _metrics(run: Path) -> list[Metric]:
    return [Metric(**m) for m in read_json(run / "metrics.json")["metrics"]]


def _number(text: str) -> float | None:
    return float(text) if text else None


def test_the_command_says_that_a_model_failed_and_the_others_are_there(made: Made) -> None:
    document = read_json(made.folder / "study.json")
    assert made.code == 1 and {name.partition("--")[0] for name in document["failed"]} == {"twin"}
    assert {run.partition("--")[0] for run in document["runs"]} == set(MODELS)
    assert (document["study"], document["seed"], document["stopped"]) == (made.name, 3, [])
    assert document["limit"] == int(SETTINGS[made.name][0][1])
    assert {label: m["model"] for label, m in document["models"].items()} == {m: f"organism:{m}" for m in MODELS}
    assert [(p["a"], p["b"]) for p in document["pairs"]] == [("control", "none"), ("twin", "none")]
    assert sorted(document["tables"]) == sorted(p.stem for p in (made.folder / "tables").glob("*.csv"))
    assert sorted(document["figures"]) == sorted(p.stem for p in (made.folder / "figures").glob("*.txt"))
    page = (made.folder / "study.md").read_text()
    assert all(f"**{name} could not be run:** {why}" in page for name, why in document["failed"].items())
    assert all(f"![{name}](figures/{name}.png)" in page for name in document["figures"])
    first, empty, *others = STUDIES[made.name].figures
    assert document["figures"] == [first, *others] and f"* {empty}: Nothing was measured." in page


def test_every_run_keeps_what_was_asked_and_its_counts_follow_from_its_rows(made: Made) -> None:
    assert made.runs
    for run in made.runs:
        config, manifest, rows = (
            read_run(run).config,
            read_json(run / "manifest.json"),
            read_graded(run / "graded.jsonl"),
        )
        preset = STUDIES[made.name]
        assert config is not None and (config.protocol, config.seed) == (preset.protocol, 3)
        assert {k: getattr(config.asking, k) for k in preset.organism_asking.given()} == preset.organism_asking.given()
        asks = {a["ask"]: a for a in read_lines(run / "asks.jsonl")}
        assert {r.ask for r in rows} == {*asks} and len({(r.case, r.role, r.repeat) for r in rows}) == len(rows)
        assert {r.run for r in rows} == {run.name}
        cases = [c["id"] for c in read_lines(run / "cases.jsonl")]
        assert {r.case for r in rows} == {*cases} and manifest["n_cases"] == len(cases)
        invalid = [r for r in rows if r.outcome == "invalid"]
        assert manifest["n_invalid"] == len(invalid) and all(r.reason for r in invalid)
        lines = [json.loads(x) for p in (run / "journal").glob("*.jsonl") for x in p.read_text().splitlines()]
        assert len([x for x in lines if "response" in x]) == len({r.ask for r in rows})
        again = {
            (m.metric, frozenset(m.group.items())): m for m in metrics_from_rows(rows, preset.protocol, seed=3).metrics
        }
        known = {(m.metric, frozenset(m.group.items())): m for m in _metrics(run)}
        assert {*again} <= {*known}
        for key, m in again.items():
            assert (known[key].n, known[key].n_invalid, known[key].count) == (m.n, m.n_invalid, m.count), key
            assert known[key].value == pytest.approx(m.value) and known[key].low == pytest.approx(m.low), key
        sets = {p.stem: [e["case"] for e in read_lines(p)] for p in (run / "casesets").glob("*.jsonl")}
        assert sets == {s.name: [e.case for e in s.entries] for s in read_run(run).case_sets.values()} or sets


def test_every_row_of_every_table_is_a_metric_of_its_run_and_none_is_missing(made: Made) -> None:
    runs = {(r.about["label"], _data(r)): r for r in map(read_run, made.runs)}
    for name, wanted in SETTINGS[made.name][1].items():
        rows = [r for r in made.table(name) if r["what"] != "failed"]
        expected = []
        for (label, data), run in runs.items():
            quotes = [quoted(m) for m in _metrics(run.path)]
            expected += [
                (label, data, m) for metric, group in wanted for m in quotes if m.metric == metric and group(m.group)
            ]
        assert len(rows) == len(expected) > 0, name
        for row, (label, data, m) in zip(rows, expected, strict=True):
            assert (row["model"], row["data"], row["what"]) == (label, data, m.metric), (name, row)
            assert row["group"] == ", ".join(f"{k} {v}" for k, v in m.group.items())
            assert (
                int(row["n"]) == m.n and (row["invalid"] or "0") == str(m.n_invalid) and row["note"] == (m.note or "")
            )
            got = [_number(row[k]) for k in ("value", "low", "high", "count")]
            assert got == pytest.approx([m.value, m.low, m.high, m.count]) and row["interval"] == (m.interval or "")
        if len(rows) < len(made.table(name)):
            assert {r["model"] for r in made.table(name) if r["what"] == "failed"} == {
                *read_json(made.folder / "study.json")["failed"]
            }


def _data(run: Any) -> str:
    return run.manifest.identity["benchmark"]


def _shown(name: str, m: Metric | None) -> str:
    if m is None or m.value is None:
        return "undefined"
    if name in SCALES:
        return f"{m.value:.2f}"
    difference = m.metric in ("gap", "independence_gap", "conflation")
    return f"{100 * m.value:+.1f} points" if difference else f"{100 * m.value:.1f} %"


def test_the_numbers_as_the_paper_counts_are_those_of_the_run_scored_as_the_paper_does(
    made: Made, tmp_path: Path
) -> None:
    compat, compared = STUDIES[made.name].compat, 0
    for run in made.runs[1:2]:
        table = made.table(next(iter(SETTINGS[made.name][1])))
        rows = [r for r in table if (r["model"], r["data"]) == (read_run(run).about["label"], _data(read_run(run)))]
        if compat is None:
            assert all(not r["as the paper counts"] for r in rows)
            continue
        assert any(m.grader_low is not None for m in _metrics(run)), "of what the grader may have got wrong"
        scored = Path(shutil.copytree(run, tmp_path / run.name))
        assert main(["score", str(scored), "--compat", compat, "-q"]) == done(scored)
        assert all(m.grader_low is None for m in _metrics(scored))
        again = {(m.metric, ", ".join(f"{k} {v}" for k, v in m.group.items())): m for m in _metrics(scored)}
        for row in rows:
            m = again.get((row["what"], row["group"]))
            assert row["as the paper counts"] == ("" if m is None else _shown(row["what"], m)), row
            compared += m is not None
    assert compared or compat is None


def test_models_side_by_side_have_the_headline_of_each_run(made: Made) -> None:
    table = {(r["model"], r["data"]): r for r in made.table("models") if r["data"]}
    headline = STUDIES[made.name].headline
    assert {k[0] for k in table} == {"none", "control"} and len(table) == len(made.runs)
    for run in map(read_run, made.runs):
        row = table[run.about["label"], _data(run)]
        own = {m.metric: quoted(m) for m in _metrics(run.path) if not m.group}
        for name in headline:
            text = row[name]
            assert text.startswith(_shown(name, own[name]).split(" ")[0]), (name, text)
            assert f"n={own[name].n}" in text and (f"{own[name].n_invalid} invalid" in text) == (
                own[name].n_invalid > 0
            )


def test_pairs_of_models_are_compared_over_the_cases_that_both_were_judged_on(made: Made) -> None:
    rows = [r for r in made.table("pairs") if r["what"] in ("pair_gain", "delta_comp") and "depth" not in r["group"]]
    assert {r["pair"] for r in made.table("pairs")} == {"reference: control − none", "reference: twin − none"}
    assert all(r["what"] == "failed" for r in made.table("pairs") if "twin" in r["pair"])
    sides = {(r.about["label"], _data(r)): {(g.case, g.role): g.outcome for g in r.graded}
             for r in map(read_run, made.runs)}  # fmt: skip
    roles = {"step:0": "part:0", "step:1": "part:1", "composition": "whole"}
    asked = 1 if made.name == "stad" else 3  # STaD splits each case in its own way
    assert made.name == "composition-collapse" or len(rows) == asked * len({_data(read_run(r)) for r in made.runs})
    for row in rows:
        if row["what"] != "pair_gain":
            continue
        role = roles[row["group"].removeprefix("quantity ")]
        a, b = (
            {c: o for (c, r), o in sides[label, row["data"]].items() if r == role and o != "invalid"}
            for label in ("control", "none")
        )
        both = a.keys() & b.keys()
        counts = Counter((a[c] == "correct") - (b[c] == "correct") for c in both)
        assert (int(row["n"]), float(row["count"])) == (len(both), counts[1] - counts[-1])
        assert float(row["value"]) == pytest.approx((counts[1] - counts[-1]) / len(both))
        asked = {c for (c, r) in sides["control", row["data"]] if r == role}
        assert int(row["invalid"] or 0) == len(asked) - len(both)
