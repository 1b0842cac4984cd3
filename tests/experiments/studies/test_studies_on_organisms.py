"""Each study end to end on shipped organisms: runs, tables beside the printed numbers, figures; resumed, compared."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from exit_codes import done

from composcope.errors import NotAskedError
from composcope.experiments import agentcoma as agentcoma_study
from composcope.experiments import compositional_gsm
from composcope.experiments.cli import main
from composcope.experiments.evaluating.evaluate import recount
from composcope.experiments.run import read_json
from composcope.experiments.run import reader as io
from composcope.experiments.run.provenance import beside
from composcope.experiments.studies import tables
from composcope.experiments.studies.spec import ModelPair, Spec, StudyModel, from_flags
from composcope.experiments.studies.study import Study, StudyRun

pytestmark = pytest.mark.long


def _table(study: Path, name: str) -> list[dict[str, str]]:
    with (study / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def _metric(run: Path, name: str) -> dict[str, Any]:
    return next(m for m in read_json(run / "metrics.json")["metrics"] if m["metric"] == name and not m["group"])


def _journal(study: Path) -> int:
    return sum(len(p.read_text().splitlines()) for p in study.glob("*/journal/*.jsonl"))


def test_agentcoma_puts_its_tables_beside_the_printed_numbers(agentcoma: Path) -> None:
    rows = {r["what"]: r for r in _table(agentcoma, "accuracy")}
    whole = _metric(agentcoma / "control--mixed", "composition")
    assert float(rows["composition"]["value"]) == whole["value"] and int(rows["composition"]["n"]) == whole["n"]
    assert rows["composition"]["published"].endswith("median of 61 models: 42.2 % (n=61)")
    assert "AgentCoMa, Table 4" in rows["composition"]["source"]
    page = (agentcoma / "study.md").read_text()
    assert "## Lookback ratio by question type (Table 3), %" in page and "figures/mink.png" in page
    assert "data are gated" in page
    assert "## Figures with nothing to draw" not in page
    assert read_json(agentcoma / "study.json")["runs"] == ["control--mixed"]


def test_agentcoma_opens_the_model_up_on_all_questions(agentcoma: Path) -> None:
    chosen = read_json(agentcoma / "control--mixed" / "probes" / "examples.json")
    assert sum(map(len, chosen["groups"].values())) == 8
    kinds = {r["group"]: r for r in _table(agentcoma, "lookback")}
    assert set(kinds) == {"composition", "commonsense", "math"} and {r["n"] for r in kinds.values()} == {"8"}
    assert all(0 < float(r["low"]) < float(r["value"]) < float(r["high"]) < 1 for r in kinds.values())
    tests = _table(agentcoma, "lookback-tests")
    assert [r["group"] for r in tests] == ["composition - commonsense", "composition - math", "commonsense - math"]
    assert all(float(r["p"]) <= float(r["p_adjusted"]) <= 1 for r in tests)
    neurons = io.load([agentcoma])[0].probe("neurons")
    assert neurons is not None and neurons.settings["rule"] == "reference" and neurons.settings["v"] == 20
    for table in (agentcoma / "control--mixed" / "probes").glob("*/*.csv"):
        (made,) = json.loads(beside(table).read_text())["composcope:runs"]
        assert made["run"] == "control--mixed" and made["data"]["benchmark"] == "organism:mixed"


def test_a_model_that_could_not_be_opened_up_stands_in_the_tables_with_its_reason(
    agentcoma: Path, tmp_path: Path
) -> None:
    for name in ("opened", "closed"):
        shutil.copytree(agentcoma / "control--mixed", tmp_path / name)
    shutil.rmtree(tmp_path / "closed" / "probes")
    manifest = read_json(tmp_path / "closed" / "manifest.json") | {"probe_note": "only the server knows this model"}
    (tmp_path / "closed" / "manifest.json").write_text(json.dumps(manifest))
    spec = from_flags(["models/opened", "models/closed"])
    runs = [StudyRun(m, "organism:mixed", tmp_path / m.label) for m in spec.models]
    rows = tables.means(
        Study(spec, agentcoma_study.PRESET, tmp_path, ("organism:mixed",), runs), "min-k", "min_k_pp", 1
    )
    assert [r["model"] for r in rows] == ["opened"] * 3 + ["closed"]
    assert (rows[-1]["what"], rows[-1]["shown"]) == ("not opened up", "only the server knows this model")
    # Nobody asked for probes: nothing is missing.
    (tmp_path / "closed" / "manifest.json").write_text(json.dumps(manifest | {"probe_note": None}))
    alone = Study(spec, agentcoma_study.PRESET, tmp_path, ("organism:mixed",), [StudyRun(*_parts(runs[1]))])
    assert tables.means(alone, "min-k", "min_k_pp", 1) == []


def _parts(run: StudyRun) -> tuple[StudyModel, str, Path]:
    return run.model, run.data, run.path


def test_the_same_answers_are_counted_as_the_paper_counts(agentcoma: Path) -> None:
    run = agentcoma / "control--mixed"
    before = (run / "metrics.json").read_bytes()
    again = {m.metric: m for m in recount(run, "agentcoma") if not m.group}
    # Its code takes a commonsense answer without the cue for wrong, and an organism never writes the cue.
    assert again["step:0"].value == 0.0 and _metric(run, "step:0")["value"] > 0.8
    assert (run / "metrics.json").read_bytes() == before
    row = next(r for r in _table(agentcoma, "accuracy") if r["what"] == "step:0")
    assert row["as the paper counts"] == "0.0 %"


def test_counting_again_says_which_question_was_never_asked(agentcoma: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(agentcoma / "control--mixed", tmp_path / "moved"))
    segment = max((moved / "journal").glob("*.jsonl"), key=lambda p: p.stat().st_size)
    lines = segment.read_text().splitlines(keepends=True)
    segment.write_text("".join(lines[:-1]))
    with pytest.raises(NotAskedError, match=r"1 asks are not in the journal .first: case 'mixed-"):
        recount(moved, "agentcoma")


def test_the_same_command_asks_nothing_and_keeps_the_probes(
    agentcoma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copytree(agentcoma, tmp_path / "moved"))
    asked = _journal(moved)
    table = moved / "control--mixed" / "probes" / "neurons" / "table.csv"
    changed = table.stat().st_mtime_ns
    words = ["--model", "organism:control", "--limit", "8", "--out", str(moved), "--no-report"]
    assert main(["study", "agentcoma", *words]) == done(moved)
    out, err = capsys.readouterr()
    assert _journal(moved) == asked and table.stat().st_mtime_ns == changed
    assert err.count("unchanged, kept") == 3 and "0 asks put to the model" in err
    assert f"written: {moved / 'study.md'}" in out


def test_compositional_gsm_has_the_gap_the_controls_and_the_pairs(gsm: Path) -> None:
    rows = [r for r in _table(gsm, "gap") if r["what"] == "independence_gap"]
    assert [(r["model"], r["size"], r["cost"]) for r in rows] == [
        ("none", "0.0004", "cheap"),
        ("twin", "0.0008", "costly"),
    ]
    assert "Llama-3 8B-IT: -27.5 points" in rows[0]["published"]
    side = _table(gsm, "models")
    assert [(r["model"], r["tuning"]) for r in side] == [("none", "pretrained"), ("twin", "instruct")]
    assert all("n=" in r["composition"] and ("%" in r["composition"] or "undefined" in r["composition"]) for r in side)
    assert "| model | family | size | cost | tuning | step:0 |" in (gsm / "study.md").read_text()
    controls = {(r["what"], r["group"]) for r in _table(gsm, "controls")}
    assert {("distraction", ""), ("second_hop", "against step:1"), ("leakage", ""), ("co_presented", "")} <= controls
    pairs = _table(gsm, "pairs")
    assert {r["pair"] for r in pairs} == {"tuning: twin − none"}
    runs = {r.about["label"]: r for r in io.load([gsm])}
    page = (gsm / "study.md").read_text()
    assert ("* prompt-gain: No run here asked wholes in another way" in page) != ("figures/prompt-gain.png" in page)
    gain = next(r for r in pairs if r["group"] == "quantity composition")
    assert float(gain["value"]) == pytest.approx(
        _metric(runs["twin"].path, "composition")["value"] - _metric(runs["none"].path, "composition")["value"]
    )
    assert runs["twin"].about["tuning"] == "instruct" and [r.model for r in io.load([gsm])] == [
        "none (0 %)",
        "twin (50 %)",
    ]


def test_stad_has_k_skills_and_bottlenecks_on_each_benchmark(stad: Path) -> None:
    shares = [r for r in _table(stad, "k") if r["what"] in ("k_zero", "k_positive", "intractable")]
    for data in ("organism:mixed", "organism:temporal"):
        mine = [r for r in shares if r["data"] == data]
        assert len(mine) == 3 and sum(float(r["count"]) for r in mine) == min(int(r["n"]) for r in mine)
    skills = {r["group"] for r in _table(stad, "skills")}
    assert {"skill choose by kind", "skill recall a year"} <= skills
    assert any("× recall a year" in r["group"] for r in _table(stad, "combinations"))
    assert {"gain", "k", "combinations", "skills", "levels"} <= set(read_json(stad / "study.json")["tables"])


def test_composition_collapse_has_depths_channels_and_the_boundary_set(collapse: Path) -> None:
    depths = [r["group"] for r in _table(collapse, "depth") if r["model"] == "twin"]
    assert depths == ["", "depth_bin 2", "depth_bin 4", "depth_bin 6", "depth_bin 8"]
    assert any("Qwen3-8B: 92.9 %" in r["published"] for r in _table(collapse, "families"))
    channels = {r["what"] for r in _table(collapse, "pairs")}
    assert {"delta_atom", "delta_comp", "delta_depth"} <= channels
    for run in ("control--temporal", "twin--temporal"):
        note = read_json(collapse / run / "probes" / "examples.json")["note"]
        assert "gated successes of depth 4" in note and "failures of depth 6, successor and interval" in note
    assert {r["what"] for r in _table(collapse, "mechanism")} >= {"patches that give the right answer"}


def test_patches_and_cosines_in_the_table_are_those_of_the_probes(collapse: Path) -> None:
    opened = 0
    for run in io.load([collapse]):
        rows = [r for r in _table(collapse, "mechanism") if r["model"] == run.about["label"]]
        patched, moved = run.probe("patching"), run.probe("trajectory")
        if patched is None or moved is None:
            assert [r["what"] for r in rows] == ["not opened up"]
            continue
        found = {r["what"]: r for r in rows if r["what"].startswith("patches")}
        flips = sum(int(r["count"]) for r in patched.rows("flip_rate", group="donor"))
        assert int(found["patches that give the donor's answer"]["count"]) == flips
        # What the paper counts is the donor's answer, so its number stands there and nowhere else.
        assert found["patches that give the donor's answer"]["published"] == "Qwen3-8B: 0 % (n=160)"
        assert not found["patches that give the right answer"]["published"]
        differences = [r for r in rows if r["what"] == "step_cosine_difference"]
        for layer, row in enumerate(differences):
            means = {r["group"]: r for r in moved.rows("step_cosine", layer=layer)}
            expected = means["failure"]["value"] - means["success"]["value"]
            assert float(row["value"]) == pytest.approx(expected)
            if row["low"]:
                assert float(row["low"]) < expected < float(row["high"])
        opened += 1
    assert opened


def test_the_boundary_set_is_what_the_paper_says(collapse: Path) -> None:
    opened = 0
    for run in ("control--temporal", "twin--temporal"):
        path = collapse / run
        chosen = read_json(path / "probes" / "examples.json")["groups"]
        donors = _gated(path, "gated-success", depth=4)
        recipients = _gated(path, "residual-failure", depth=6)
        if not donors or not recipients:
            assert chosen == {} and not (path / "probes" / "patching").exists()
            continue
        assert (set(chosen["success"]), set(chosen["failure"])) == (donors, recipients)
        patching = io.read_probe(path / "probes" / "patching")
        (n,) = {r["n"] for r in patching.rows("flip_rate", group="donor")}
        assert n == min(16, len(donors) * len(recipients))
        opened += 1
    assert opened


def _gated(run: Path, case_set: str, depth: int) -> set[str]:
    """Cases of a case set that are of a depth (7 and 9 count as 4 and 6) and of the two families."""
    cases = {c["id"]: c for c in map(json.loads, (run / "cases.jsonl").read_text().splitlines())}
    inside = [json.loads(line)["case"] for line in (run / "casesets" / f"{case_set}.jsonl").read_text().splitlines()]
    bins = {7: 4, 9: 6, 11: 8}
    return {
        c for c in inside
        if bins.get(cases[c]["depth"], cases[c]["depth"]) == depth and cases[c]["family"] in ("successor", "interval")
    }  # fmt: skip


def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--model", "organism:contrl"], "no such organism"),
        (["--data", "nothing.jsonl"], "--data nothing.jsonl: no such benchmark file"),
        (["--limit", "0"], "--limit 0"),
        (["--data", "hub:compositional-gsm"], "composcope build compositional-gsm"),
        (["--model", "organism:none", "--models", "x.yaml"], "give only one of them"),
    ):
        assert main(["study", "agentcoma", *words, "--out", str(tmp_path / "s")]) == 1
        assert said in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_what_the_runs_warn_of_stands_on_the_page(stad: Path) -> None:
    page = (stad / "study.md").read_text()
    warned = {run: read_json(stad / run / "metrics.json")["warnings"] for run in read_json(stad / "study.json")["runs"]}
    assert any(warned.values())
    assert all(f"* {run}: {line}" in page for run, lines in warned.items() for line in lines)


def test_printed_gains_of_tuning_stand_beside_pairs_of_tuning_alone(gsm: Path) -> None:
    models = tuple(StudyModel(f"organism:{m}", m) for m in ("none", "twin"))
    matched = tuple(ModelPair(kind, "twin", "none") for kind in ("tuning", "cost"))
    data = tuple(read_json(gsm / "study.json")["data"])
    study = Study(Spec(models, data, pairs=matched), compositional_gsm.PRESET, gsm, data)
    study.runs += [StudyRun(m, data[0], gsm / run) for m in models for run in read_json(gsm / "study.json")["runs"]
                   if run.startswith(m.label)]  # fmt: skip
    (table,) = tables.pairs(study)
    printed = {str(r["pair"]).partition(":")[0]: r["published"] for r in table.rows if "step:0" in str(r["group"])}
    assert "IT - PT" in printed["tuning"] and printed["cost"] == ""


def test_a_few_single_cases_of_each_probe_are_kept_for_the_report(agentcoma: Path, collapse: Path) -> None:
    kept = [(agentcoma / "control--mixed", probe) for probe in ("lookback", "min-k")]
    kept += [(collapse / f"{m}--temporal", p) for m in ("control", "twin") for p in ("trajectory", "patching")]
    for run, probe in kept:
        if (run / "probes" / probe).is_dir():
            entries = read_json(run / "probes" / probe / "cases" / "index.json")["entries"]
            groups = read_json(run / "probes" / "examples.json")["groups"]
            assert entries and all(e["case"] in groups[e["group"]] for e in entries), probe
            assert all(e["donor"] in groups["success"] for e in entries if probe == "patching")
    assert (agentcoma / "control--mixed" / "probes" / "lookback" / "cases" / "tensors.safetensors").is_file()
