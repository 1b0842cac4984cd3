"""Commands on a run that is not finished: each says so, and how to continue it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from composcope.experiments.cli import main
from composcope.experiments.report import paper
from composcope.experiments.run import read_json, write_json
from composcope.experiments.run.folder import unfinished
from composcope.experiments.run.reader import RunData

COMMAND = "composcope evaluate --model m --benchmark b --out here"


@pytest.fixture
def runs(taught: Path, case_file: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A finished run, and the same one interrupted after its first answers."""
    done, cut = tmp_path / "runs" / "done", tmp_path / "runs" / "cut"
    assert main(["evaluate", "-m", str(taught), "-b", str(case_file), "-o", str(done), "-q", "--format", "plain"]) == 0
    shutil.copytree(done, cut)
    for name in ("asks.jsonl", "graded.jsonl", "metrics.json"):
        (cut / name).unlink()
    shutil.rmtree(cut / "casesets")
    [segment] = (cut / "journal").glob("*.jsonl")
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:5]))
    manifest = read_json(cut / "manifest.json")
    write_json(cut / "manifest.json", manifest | {"status": "interrupted", "command": COMMAND})
    return done, cut


@pytest.mark.parametrize(
    "command",
    ["compare CUT DONE", "compare DONE CUT", "score CUT", "verify CUT", "ls CUT --failures", "diagnose CUT",
     "plot gap-slopes CUT --out OUT", "merge CUT --out OUT", "report CUT --out OUT", "paper CUT --out OUT",
     "report RUNS --out OUT", "plot gap-slopes RUNS --out OUT"],
)  # fmt: skip
def test_each_command_names_the_unfinished_run_once_and_the_command_that_continues_it(
    runs: tuple[Path, Path], command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"DONE": runs[0], "CUT": runs[1], "RUNS": runs[1].parent, "OUT": tmp_path / "out"}
    code = main([str(places.get(word, word)) for word in command.split()])
    said = capsys.readouterr().err
    assert said.count(COMMAND) == 1 and str(runs[1]) in said and "interrupted" in said
    assert (code == 0) == (command.split()[0] in ("report", "paper") or "RUNS" in command)


def test_a_finished_run_and_a_folder_without_a_run_are_not_called_unfinished(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    assert unfinished(runs[0]) is None and unfinished(tmp_path) is None and unfinished(runs[1]) is not None


def test_a_run_that_a_limit_stopped_is_not_finished_and_its_pages_say_of_how_many_cases_they_are(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=12, probes=())
    rows = (run / "graded.jsonl").read_text().splitlines(True)
    (run / "graded.jsonl").write_text("".join(row for row in rows if json.loads(row)["case"] < "case-0008"))
    manifest = read_json(run / "manifest.json")
    write_json(run / "manifest.json", manifest | {"stopped": "max_asks=40", "command": COMMAND, "n_cases": 12})
    assert str(unfinished(run)).endswith(f"(stopped by max_asks=40); continue it with: {COMMAND}")
    assert main(["report", str(run), "--out", str(tmp_path / "page"), "-q"]) == 0
    assert COMMAND in capsys.readouterr().err
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "· 8 of 12 cases" in page and "run: stopped by max_asks=40: 8 of 12 cases have answers" in page
    assert "was asked 8 of 12 cases of " in paper.methods([RunData(run)])[0]
