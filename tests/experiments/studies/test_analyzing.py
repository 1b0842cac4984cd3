"""``composcope study`` over runs, and ``composcope study human``."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.analyses.base import Analysis, Source
from composcope.evaluation.asks import Response
from composcope.experiments.cli import main
from composcope.experiments.cli.studies import ABOUT
from composcope.experiments.run import reader
from composcope.experiments.studies import analyzing
from composcope.experiments.studies.analyzing import ANALYSES, AnalysisOptions
from composcope.experiments.studies.study import STUDIES


def _graded(path: Path, model: str, wholes: dict[str, str]) -> Path:
    rows = []
    for case, outcome in wholes.items():
        rows += [
            {"case": case, "role": "part:0", "outcome": "correct", "model": model},
            {"case": case, "role": "part:0:paraphrase:0", "outcome": "correct", "atom": "x", "model": model},
            {"case": case, "role": "whole", "outcome": outcome, "model": model, "gold": "7", "answer": "8"},
        ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_an_analysis_prints_a_document_and_writes_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = _graded(tmp_path / "plain.jsonl", "m", {"a": "incorrect", "b": "incorrect", "c": "correct"})
    other = _graded(tmp_path / "cot.jsonl", "m", {"a": "correct", "b": "incorrect", "c": "correct"})
    command = ["study", "recovery", str(plain), str(other), "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    found = next(m for m in document["metrics"] if m["metric"] == "recovery" and not m["group"])
    assert (found["count"], found["n"]) == (1, 2)
    assert json.loads((tmp_path / "out/recovery.json").read_text()) == document
    assert main(command[:-1]) == 0
    assert "recovery" in capsys.readouterr().out


def test_lengths_that_a_server_does_not_state_and_those_of_failures_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"a": ("Oslo", "stop", 3), "b": ("Oslo", "stop", 0), "c": ("", "stop", 0), "d": ("", "error", 0)}
    responses = {key: Response(key, text, why, 1, n) for key, (text, why, n) in said.items()}  # type: ignore[arg-type]
    found = SimpleNamespace(responses=responses, asks={}, graded=[], cases={})
    monkeypatch.setattr(reader, "read_run", lambda _: SimpleNamespace(evaluated=lambda: found))
    assert analyzing._from_run(tmp_path).tokens == {"a": 3, "c": 0}


def test_a_file_of_two_models_is_two_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = tmp_path / "both.jsonl"
    one = _graded(tmp_path / "1.jsonl", "m-1B", {"a": "incorrect"}).read_text()
    both.write_text(one + _graded(tmp_path / "2.jsonl", "m-30B", {"a": "correct"}).read_text())
    assert main(["study", "sizes", str(both), "--json"]) == 0
    groups = [r["group"] for r in json.loads(capsys.readouterr().out)["tables"]["models"]]
    assert groups == ["small", "large"]
    named = [Source(name, []) for name in ("runs/lr=3", "b")]
    assert analyzing._sizes(named, AnalysisOptions(sizes=("runs/lr=3=7", "b=0.5"))) == {"runs/lr=3": 7, "b": 0.5}
    with pytest.raises(InputError, match=f"study sizes: run '{both}:m-1B' is given twice"):
        analyzing.analyze("sizes", [both, str(both)])
    lines = zip(map(json.loads, both.open()), "xxxyyy", strict=True)
    apart = [line | {"model": "m", "run": run} for line, run in lines]
    both.write_text("".join(f"{json.dumps(line)}\n" for line in apart))
    assert [s.name for s in analyzing.sources(both)] == [f"{both}:m:x", f"{both}:m:y"], "so are two runs of one model"


def test_options_of_an_analysis_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = AnalysisOptions(reference="r", sizes=("a=3",), within=3.0, sample=9, seed=4)
    two = [Source(name, []) for name in "ab"]
    for name, place, wanted in (
        ("formats", analyzing.gated, (two, "r")), ("sizes", analyzing.agentcoma, (two, {"a": 3.0}, {"seed": 4})),
        ("lengths", analyzing, (two, 4)), ("profiles", analyzing.stad, (two, 0.03, {"seed": 4})),
        ("adjudicator", analyzing.adjudicator, (two, 9, 4)),
    ):  # fmt: skip
        job = {"formats": "compare_formats", "sizes": "size_groups", "lengths": "lengths", "profiles": "equal_accuracy",
               "adjudicator": "draw"}[name]  # fmt: skip
        monkeypatch.setattr(place, job, lambda *args, **options: (*args, *([options] if options else [])))
        assert ANALYSES[name][-1](two, given) == wanted


def test_an_adjudicator_is_validated_by_its_key_and_the_sheet_that_a_person_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: tmp_path / f"{name}.jsonl" for name in ("key", "sheet")}
    for name, file in files.items():
        file.write_text(json.dumps({"from": name}) + "\n")
    found = Analysis("adjudicator", (), {"agreement": [{"kappa": 0.5}]})
    given: list[Any] = []
    monkeypatch.setattr(analyzing.adjudicator, "validate", lambda *rows: given.append([*map(list, rows)]) or found)
    assert analyzing.analyze("adjudicator", [], AnalysisOptions(**files)) == found  # type: ignore[arg-type]
    assert given == [[[{"from": "key"}], [{"from": "sheet"}]]]
    for name, file in files.items():
        with pytest.raises(InputError, match="--sheet and --key together"):
            analyzing.analyze("adjudicator", [], AnalysisOptions(**{name: file}))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="study adjudicatr: no such analysis; use one of"):
        analyzing.analyze("adjudicatr", [])


def test_roles_that_no_protocol_counts_are_said_with_every_analysis(tmp_path: Path) -> None:
    rows = _graded(tmp_path / "m.jsonl", "m", {"a": "incorrect", "b": "correct"})
    rows.write_text(rows.read_text() + json.dumps({"case": "a", "role": "hint", "outcome": "correct", "model": "m"}))
    said = analyzing.analyze("stability-expectation", [rows], AnalysisOptions()).warnings
    assert any("'hint'" in line for line in said)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense", "x"], "No such command 'nonsense'"),
        (["recovery", "{file}"], "study recovery: 1 runs; give 2"),
        (["sizes", "nowhere"], "nowhere: no such run; give a run folder"),
        (["human", "nowhere"], "benchmark nowhere: no such benchmark file"),
        (["sizes", "{file}", "--size", "seven"], "give RUN=BILLIONS"),
        (["sizes", "{file}", "--size", "m=nan"], "give RUN=BILLIONS"),
        (["sizes", "{file}", "--size", "m=7", "--size", "m=8"], "--size m=8: m has a size already, 7; give it once"),
        (["sizes", "{file}", "--size", "other=7"], "--size other=7: no run or model of this name; use one of"),
    ],
)
def test_wrong_use_is_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _graded(tmp_path / "rows.jsonl", "m", {"a": "correct"})
    assert main(["study", *(str(path) if w in ("{file}", "x") else w for w in words)]) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_every_analysis_has_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(ABOUT) == tuple(ANALYSES)
    assert main(["study", "--list"]) == 0
    names = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names[:7] == [*"agentcoma compositional-gsm stad composition-collapse validity why calibration".split()]
    assert {*ANALYSES, *STUDIES.own} <= {*names}


def test_a_human_study_goes_from_sheet_to_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        {"id": f"c{i}", "question": f"{i}+1+1?", "answer": str(i + 2), "answer_type": "number",
         "parts": [{"question": f"{i}+1?", "answer": str(i + 1), "answer_type": "number"}]}
        for i in range(4)
    ]  # fmt: skip
    benchmark = tmp_path / "cases.jsonl"
    benchmark.write_text("".join(json.dumps(c) + "\n" for c in cases))
    study = tmp_path / "study"
    assert main(["study", "human", str(benchmark), "--per-person", "4", "--out", str(study)]) == 0
    key = {json.loads(line)["item"]: json.loads(line) for line in (study / "key.jsonl").read_text().splitlines()}
    filled = []
    for line in (study / "sheet.jsonl").read_text().splitlines():
        row = json.loads(line)
        place = key[row["item"]]
        number = int(place["case"][1:])
        filled.append({**row, "answer": str(number + (2 if place["role"] == "whole" else 1))})
    (study / "filled.jsonl").write_text("".join(json.dumps(r) + "\n" for r in filled))
    words = ["--sheet", str(study / "filled.jsonl"), "--key", str(study / "key.jsonl")]
    assert main(["study", "human", str(benchmark), *words, "--out", str(tmp_path / "human")]) == 0
    capsys.readouterr()
    graded = str(tmp_path / "human/graded.jsonl")
    assert main(["score", graded, "--protocol", "compositionality-gap", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert next(m for m in metrics if m["metric"] == "composition" and not m["group"])["value"] == 1.0


@pytest.mark.parametrize(
    ("name", "line", "filled"),
    [
        ("sheet.jsonl", {"item": "i1", "question": "q", "answer": ""}, {"answer": "7"}),
        ("sheet.jsonl", {"item": "i1", "response": "r", "human": None, "remark": ""}, {"human": "right"}),
        ("reexamine.jsonl", {"item": "i1", "human": "right", "reexamined": None}, {"reexamined": "wrong"}),
        ("annotate.jsonl", {"case": "c", "label": "other"}, {"label": "binding-shift"}),
    ],
)
def test_what_a_person_has_filled_in_is_not_replaced(
    name: str, line: dict[str, Any], filled: dict[str, Any], tmp_path: Path
) -> None:
    found = Analysis("x", files={name: [line], "other.jsonl": [line]})
    for _ in range(2):  # nothing is filled in yet
        analyzing.write(found, tmp_path)
    (path := tmp_path / name).write_text(text := json.dumps({**line, **filled}) + "\n")
    with pytest.raises(InputError, match=name):
        analyzing.write(found, tmp_path)
    assert path.read_text() == text
    analyzing.write(Analysis("x", files={name: [{**line, **filled}]}), tmp_path)


def test_labels_of_one_case_are_told_apart_by_their_repeats(tmp_path: Path) -> None:
    labelled = [{"case": "c", "repeat": n, "label": label} for n, label in enumerate(("binding-shift", "other"))]
    for _ in range(2):
        analyzing.write(Analysis("x", files={"annotate.jsonl": labelled}), tmp_path)
    with pytest.raises(InputError, match="field 'label' of 'c' is 'binding-shift'"):
        analyzing.write(Analysis("x", files={"annotate.jsonl": [{**labelled[0], "label": ""}, labelled[1]]}), tmp_path)


def test_rows_of_people_do_not_replace_those_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="is a run"):
        analyzing.write(Analysis("human-reference", files={"graded.jsonl": []}), tmp_path)
    analyzing.write(Analysis("lengths"), tmp_path)


@pytest.mark.parametrize(
    ("least", "most", "n", "wanted"),
    [(2, 2, 1, "2"), (2, 2, 2, None), (2, 2, 3, "2"), (1, 1, 2, "1"), (2, None, 1, "at least 2")],
)  # fmt: skip
def test_a_study_takes_as_many_runs_as_it_says(least: int, most: int | None, n: int, wanted: str | None) -> None:
    sources: Any = [object()] * n
    with pytest.raises(InputError, match=f"{n} runs; give {wanted}") if wanted else nullcontext():
        analyzing._enough("s", sources, least, most)
