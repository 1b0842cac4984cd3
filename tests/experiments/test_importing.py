"""``composcope import`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.evaluation.graded import Graded, read_graded
from composcope.evaluation.protocols import PROTOCOLS
from composcope.experiments.building import importing
from composcope.experiments.building.importing import Summary, import_files
from composcope.experiments.cli import main
from composcope.experiments.console import printing


def _inspect(path: Path, verdicts: str, **results: object) -> Path:
    samples = [{"id": i, "epoch": 1, "target": "x", "scores": {"m": {"value": v}}} for i, v in enumerate(verdicts)]
    path.write_text(json.dumps({"version": 2, "eval": {"task": path.stem, "model": "m"}, "samples": samples,
                                "results": results}))  # fmt: skip
    return path


def test_rows_that_no_protocol_counts_are_told_of_in_the_summary_and_its_file(tmp_path: Path) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "graded.jsonl"
    answer = {"response": "x", "gold": "x"}
    rows = [{"case": c, "role": role, **answer} for c in "ab" for role in ("whole", "hint")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = import_files([file], out, "rows")
    (said,) = (w for w in found.warnings if "no protocol counts" in w)
    assert "2 of 4" in said and "'hint' 2" in said
    assert json.loads((tmp_path / "import.json").read_text())["warnings"] == list(found.warnings)


def test_several_files_become_one_graded_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [_inspect(tmp_path / "a.json", "CI", completed_samples=3), _inspect(tmp_path / "b.json", "C")]
    out = tmp_path / "made" / "graded.jsonl"
    assert main(["import", *map(str, files), "--out", str(out), "--json"]) == 0
    found = {r.case: r.outcome for r in read_graded(out)}
    assert [*found.items()] == [("a-0", "correct"), ("a-1", "incorrect"), ("b-0", "correct")]
    said = json.loads(capsys.readouterr().out)
    assert said["rows"] == 3 and said["roles"] == {"whole": {"correct": 2, "incorrect": 1}}
    assert json.loads((out.parent / "import.json").read_text())["files"][1]["kind"] == "inspect"
    assert [(c["where"], c["recomputed"]) for c in said["contradictions"]] == [(str(files[0]), 2)]
    assert main(["import", str(files[0]), "--out", str(out)]) == 0
    next_command = capsys.readouterr().out.splitlines()[-1]
    assert f"composcope score {out} --protocol" in next_command and all(name in next_command for name in PROTOCOLS)


def test_invalid_rows_make_the_exit_code_say_so(tmp_path: Path) -> None:
    path = _inspect(tmp_path / "a.json", "CN")
    assert main(["import", str(path), "--out", str(tmp_path / "graded.jsonl")]) == 2


def test_the_same_rows_from_two_files_are_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _inspect(tmp_path / "a.json", "C")
    out = tmp_path / "graded.jsonl"
    assert main(["import", str(path), str(path), "--out", str(out)]) == 1
    assert "case 'a-0' has role 'whole' twice" in capsys.readouterr().err
    assert not out.exists()


def test_stored_responses_are_graded_again_and_the_differences_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"case": "a", "role": "part:0", "response": "It is 4.", "gold": "4", "right": True},
        {"case": "a", "role": "whole", "response": "So the final answer is: 8", "gold": "8", "right": False},
    ]
    path, out = tmp_path / "log.jsonl", tmp_path / "made" / "graded.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert main(["import", str(path), "--out", str(out), "--json"]) == 0
    assert "regraded" not in json.loads(capsys.readouterr().out) and not (out.parent / "disagreements.jsonl").exists()
    assert [r.outcome for r in read_graded(out)] == ["correct", "incorrect"]
    assert main(["import", str(path), "--out", str(out), "--regrade", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["regraded"] == {"correct -> correct": 1, "incorrect -> correct": 1}
    assert [r.outcome for r in read_graded(out)] == ["correct", "correct"]
    [found] = [json.loads(line) for line in (out.parent / "disagreements.jsonl").read_text().splitlines()]
    assert (found["where"], found["stored"], found["ours"]) == (f"{path}:2", "incorrect", "correct")
    assert [d["case"] for d in said["disagreements"]] == ["a"]
    assert main(["import", str(path), "--out", str(out), "--regrade"]) == 0
    shown = capsys.readouterr().out
    assert "1 verdict differs" in shown and f"{path}:2, whole: stored incorrect, ours correct" in shown
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps({**r, "case": "b"}) + "\n" for r in rows))
    both = import_files([path, other], out, "rows", importing.importers.Options(regrade=True))
    assert both.to_dict()["regraded"] == {"correct -> correct": 2, "incorrect -> correct": 2}, "of both files"
    assert [d["case"] for d in both.disagreements] == ["a", "b"]


def test_rows_without_a_response_keep_their_verdict_when_others_are_graded_again(tmp_path: Path) -> None:
    path = _inspect(tmp_path / "a.json", "II")
    log = json.loads(path.read_text())
    log["samples"][0]["output"] = {"completion": "x"}
    path.write_text(json.dumps(log))
    found = import_files([path], tmp_path / "graded.jsonl", None, importing.importers.Options(regrade=True))
    assert [r.outcome for r in found.rows] == ["correct", "incorrect"]
    assert found.to_dict()["regraded"] == {"incorrect -> correct": 1}
    assert any(w.startswith(f"{path}: 1 rows") for w in found.warnings)


@pytest.mark.parametrize(("stored", "wanted"), [(True, "grading log.jsonl again"), (False, "reading log.jsonl")])
def test_rows_that_are_graded_here_move_a_bar_and_quiet_silences_it(
    stored: bool, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(printing, "PATIENCE", 0.0)
    path = tmp_path / "log.jsonl"
    rows = [{"case": f"c{i}", "response": "It is 4.", "gold": "4"} | ({"right": True} if stored else {}) for i in "abc"]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    command = ["import", str(path), "--out", str(tmp_path / "graded.jsonl"), "--regrade"]
    assert main(command) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith(wanted)][-1] == f"{wanted}: 100 % (3/3)"
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_fields_of_plain_rows_are_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("question,response,answer,role\n2 + 2?,It is 4.,4,\n3 + 3?,6,6,whole\n")
    out = str(tmp_path / "graded.jsonl")
    assert main(["import", str(path), "--out", out]) == 1
    assert "--gold-field" in capsys.readouterr().err
    monkeypatch.setattr(importing.importers, "detect", lambda *_: "inspect")
    told = ["--gold-field", "answer", "--answer-type", "number", "--role", "part:0"]
    assert main(["import", str(path), "--from", "rows", *told, "--out", out]) == 0
    assert "graded by our rules" in capsys.readouterr().out
    assert [row.role for row in read_graded(out)] == ["part:0", "whole"]


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("a.csv", "response,gold,role,right\n4,4,whole,1\n", ["--role", "part:1"], "--role part:1: every row states"),
        ("a.csv", "response,gold,right\n4,4,1\n", ["--answer-type", "number"], "--answer-type number: every row has"),
        ("a.csv", "response,gold,right\n4,4,1\n", ["--format", "cot"], "--format cot: every row has a stored verdict"),
        ("a.csv", "response,gold\n4,4\n", ["--filter", "none"], "--filter is for lm-eval, and "),
        ("a.csv", "response,gold\n4,4\n", ["--whole", "direct"], "--whole is for bamboogle, and "),
        ("a.csv", "response;gold\n4;4\n", [], "separated by semicolons; save it as CSV"),
        ("a.tsv", "response\tgold\n4\t4\n", [], "separated by tabs; save it as CSV"),
        ("a.json", '{"q1": {"out": "4", "gold": "4"}}', ["--response-field", "out"], "one JSON object (q1); write the"),
        ("a.json", '{"dev": [\n{"out": "4"}\n], "test": []}', ["--from", "rows"], "one JSON object (dev, test); write"),
        ("a.csv", "id,question,answer\n1,2 + 2?,4\n", [], "field 'response' is missing"),
        ("a.csv", "", [], "is empty"),
    ],
)
def test_an_option_that_would_change_nothing_and_a_table_of_another_form_are_refused(
    name: str, text: str, options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["import", str(tmp_path / name), "--out", str(tmp_path / "g.jsonl"), *options]) == 1
    assert said in capsys.readouterr().err and not (tmp_path / "g.jsonl").exists()


def test_an_import_is_summed_up_by_role_and_its_contradictions_are_named() -> None:
    rows = [
        Graded("a", "whole", "correct", model="m"),
        Graded("a", "whole", "invalid", model="n"),
        Graded("b", "part:0", "correct", model="m"),
    ]
    wrong = [{"where": f"f:{i}", "field": "x", "stored": i, "recomputed": 7, "problem": "p"} for i in range(3)]
    found, two, none = (Summary(("f",), ("plain",), tuple(rows), tuple(wrong[:n]), ("w",)) for n in (3, 2, 0))
    document = found.to_dict()
    assert (document["rows"], document["cases"], document["invalid"]) == (3, 3, 1), "a case of two models is two"
    assert document["roles"] == {"whole": {"correct": 1, "invalid": 1}, "part:0": {"correct": 1}}
    lines = found.lines(most=2)
    assert lines[:4] == ["f (plain)", "3 rows about 3 cases", "  whole: 1 correct, 1 invalid", "  part:0: 1 correct"]
    shown = [f"  f:{i}: x is {i}, should be 7 (p)" for i in range(2)]
    assert lines[4].startswith("3 stored values contradict") and "contradictions.jsonl" in lines[4]
    assert lines[5:] == two.lines(most=2)[5:] == [*shown, "warning: w"]
    assert "contradictions.jsonl" not in two.lines(most=2)[4] and none.lines(most=2) == [*lines[:4], "warning: w"]


@pytest.mark.parametrize(("source", "out"), [("a.csv", "a.csv"), ("import.json", "graded.jsonl")])
def test_an_import_never_overwrites_what_it_reads(source: str, out: str, tmp_path: Path) -> None:
    rows = tmp_path / source
    rows.write_text("kept")
    with pytest.raises(InputError, match=f"would overwrite .*{source}"):
        import_files([rows], tmp_path / "." / out, "rows")
    assert [p.name for p in tmp_path.iterdir()] == [source] and rows.read_text() == "kept"


def test_an_import_does_not_replace_the_rows_of_a_run(tmp_path: Path) -> None:
    for name in ("manifest.json", "graded.jsonl"):
        (tmp_path / name).write_text("kept")
    with pytest.raises(InputError, match="is a run"):
        import_files([tmp_path / "rows.csv"], tmp_path / "graded.jsonl", "rows")
    assert (tmp_path / "graded.jsonl").read_text() == "kept"
