"""The main job, end to end, on a model whose knowledge was planted: parts right, every second whole wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from exit_codes import done

from composcope.errors import ComposcopeError, InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, write_cases
from composcope.experiments import investigate
from composcope.experiments.cli import main
from composcope.experiments.config import Config
from composcope.experiments.diagnosis import job as diagnosis
from composcope.experiments.evaluating import evaluate as evaluating
from composcope.experiments.evaluating.ask_plan import limit_cases, load_benchmark
from composcope.experiments.investigate import report_inputs
from composcope.experiments.run import read_json, read_lines

ODD = {f"sum-{i:02d}" for i in range(1, 12, 2)}
EVEN = {f"sum-{i:02d}" for i in range(0, 12, 2)}
PLAIN = ("--format", "plain")
pytestmark = pytest.mark.usefixtures("undrawn")


def metric(run: Path, name: str) -> dict[str, Any]:
    rows = read_json(run / "metrics.json")["metrics"]
    return next(r for r in rows if r["metric"] == name and not r["group"])


def journal_keys(run: Path) -> list[str]:
    rows = [json.loads(line) for p in sorted((run / "journal").glob("*.jsonl")) for line in p.open(encoding="utf-8")]
    return [row["key"] for row in rows if "key" in row]


@pytest.fixture(scope="module")
def investigated(taught: Path, case_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "sums"
    assert main(["investigate", "-m", str(taught), "-b", str(case_file), *PLAIN, "-o", str(run), "-q"]) == 0
    return run


def test_the_run_folder_holds_everything(investigated: Path) -> None:
    expected = [
        *("config.yaml", "manifest.json", "cases.jsonl", "asks.jsonl", "graded.jsonl", "metrics.json", "log.txt"),
        *("report.html", "probes/examples.json"),
        *("casesets/both-right-whole-wrong.jsonl", "casesets/both-right-whole-right.jsonl"),
        *(f"probes/{p}/table.csv" for p in ("neurons", "lookback", "patching", "trajectory", "min-k")),
        *("figures/lookback.png", "figures/lookback.svg", "figures/lookback.csv"),
    ]
    missing = [name for name in expected if not (investigated / name).is_file()]
    assert not missing
    assert list((investigated / "journal").glob("*.jsonl"))


def test_every_file_of_a_run_that_states_its_schema_states_the_first(investigated: Path) -> None:
    stated: list[tuple[str, int]] = []
    for path in sorted(investigated.rglob("*.json*")):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        stated += [(path.name, row["schema"]) for row in map(json.loads, lines) if "schema" in row]
    assert {schema for _, schema in stated} == {1}
    assert {"manifest.json", "metrics.json", "graded.jsonl", "cases.jsonl", "rendered.json"} <= {n for n, _ in stated}


def test_the_planted_failures_are_found(investigated: Path) -> None:
    whole, both = metric(investigated, "composition"), metric(investigated, "both")
    assert (whole["count"], whole["n"]) == (6, 12)
    assert (both["count"], both["n"]) == (12, 12)
    assert whole["low"] < 0.5 < whole["high"]
    failures = read_lines(investigated / "casesets" / "both-right-whole-wrong.jsonl")
    successes = read_lines(investigated / "casesets" / "both-right-whole-right.jsonl")
    assert {r["case"] for r in failures} == ODD
    assert {r["case"] for r in successes} == EVEN
    evidence = {e["role"]: e["outcome"] for e in failures[0]["evidence"]}
    assert evidence["whole"] == "incorrect"
    assert evidence["part:0"] == evidence["part:1"] == "correct"


def test_the_manifest_says_how_the_run_was_made(investigated: Path, taught: Path) -> None:
    manifest = read_json(investigated / "manifest.json")
    assert manifest["status"] == "complete"
    assert manifest["identity"]["model"] == taught.name
    assert len(manifest["identity"]["weights"]) == len(manifest["identity"]["data"]) == 64
    assert manifest["numerics"]["dtype"] == "float32"
    assert manifest["numerics"]["tf32"] is False
    assert manifest["numerics"]["threads"] >= 1
    assert manifest["model"]["layers"] == 2
    assert {"ask", "probe:neurons", "probe:min-k", "report"} <= set(manifest["timings"])
    config = yaml.safe_load((investigated / "config.yaml").read_text())
    assert (config["protocol"], config["prompting"], config["seed"]) == ("compositionality-gap", "chat", 0)


def test_probes_ran_on_matched_pairs(investigated: Path) -> None:
    chosen = read_json(investigated / "probes" / "examples.json")
    assert chosen["contrast"] is True
    assert set(chosen["groups"]["failure"]) == ODD
    assert set(chosen["groups"]["success"]) == EVEN
    assert "6 of 6 failures matched" in chosen["note"]


def test_single_cases_and_prompts_as_sent_are_kept_for_the_report(investigated: Path) -> None:
    sent = json.loads((investigated / "rendered.json").read_text())
    asked = [json.loads(line)["ask"] for line in (investigated / "asks.jsonl").read_text().splitlines()]
    assert set(sent["asks"]) == set(asked) and len(sent["templates"]) == 1
    groups = json.loads((investigated / "probes" / "examples.json").read_text())["groups"]
    for probe in ("lookback", "min-k"):
        index = json.loads((investigated / "probes" / probe / "cases" / "index.json").read_text())
        kept = {(e["case"], e["group"]) for e in index["entries"]}
        assert kept and all(case in groups[group] for case, group in kept)
        for group, cases in groups.items():
            n = sum(g == group for _, g in kept)
            assert 0 < n <= 4 and f"{n} of {len(cases)} {group} cases" in index["note"]
    page = (investigated / "report.html").read_text()
    assert 'id="dossier"' in page and (investigated / "data" / "pictures" / "0-0.js").is_file()


def test_the_same_command_asks_nothing_and_keeps_the_probes(
    investigated: Path, taught: Path, case_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = journal_keys(investigated)
    table = (investigated / "probes" / "min-k" / "table.csv").stat().st_mtime_ns
    assert main(["investigate", "-m", str(taught), "-b", str(case_file), *PLAIN, "-o", str(investigated)]) == 0
    out, err = capsys.readouterr()
    assert journal_keys(investigated) == before
    assert (investigated / "probes" / "min-k" / "table.csv").stat().st_mtime_ns == table
    assert "0 asks put to the model" in err
    assert err.count("unchanged, kept") == 5 and len(err.splitlines()) <= 20
    assert "composition: 50.0 %" in out
    assert out.splitlines()[-1].startswith("report: ")
    words = [line.split(":")[0].strip() for line in out.splitlines()[:-1]]
    assert words[-6:] == ["neurons", "lookback", "patching", "trajectory", "min-k", "Causes of 6 failures"]
    details = "failures matched to"
    assert details not in err and details in (investigated / "log.txt").read_text()


def test_a_moved_run_is_scored_compared_and_reported_without_its_model(
    investigated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copytree(investigated, tmp_path / "elsewhere"))
    before = read_json(moved / "metrics.json")
    assert main(["score", str(moved), "-q"]) == 0
    assert read_json(moved / "metrics.json") == before
    (moved / "report.html").unlink()
    assert main(["report", str(moved)]) == 0
    assert (moved / "report.html").is_file()
    assert main(["plot", "lookback", str(moved), "--out", str(tmp_path / "figures")]) == 0
    assert (tmp_path / "figures" / "lookback.png").is_file()
    capsys.readouterr()
    assert main(["compare", str(investigated), str(moved), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["discordant"] == []
    assert next(r for r in found["roles"] if r["role"] == "whole")["difference"] == 0


def test_metrics_of_graded_rows_are_those_of_the_run(investigated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded = str(investigated / "graded.jsonl")
    assert main(["score", graded, "--protocol", "compositionality-gap", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["protocol"]) == (1, "compositionality-gap")
    value = {m["metric"]: m["value"] for m in found["metrics"] if not m["group"]}
    assert value["composition"] == metric(investigated, "composition")["value"]


def test_ls_shows_the_run_and_its_headline(investigated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(investigated.parent), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["status"], row["cases"]) == ("complete", 12)
    assert "composition: 50.0 %" in row["headline"]


def test_another_benchmark_does_not_enter_the_same_folder(
    investigated: Path, taught: Path, tmp_path: Path, planted: Callable[..., list[Case]], capsys: Any
) -> None:
    write_cases(planted(4), tmp_path / "other.jsonl")
    args = ["-m", str(taught), "-b", str(tmp_path / "other.jsonl"), *PLAIN, "-o", str(investigated)]
    assert main(["evaluate", *args]) == 1
    err = capsys.readouterr().err
    assert "holds another run" in err and "give another --out" in err
    assert metric(investigated, "composition")["n"] == 12


def test_probes_can_be_run_later_on_a_run_whose_model_has_moved_and_whose_case_file_is_gone(
    taught: Path, case_file: Path, tmp_path: Path, capsys: Any
) -> None:
    before = Path(shutil.copytree(taught, tmp_path / "before" / taught.name))
    cases = Path(shutil.copyfile(case_file, tmp_path / "cases.jsonl"))
    args = ["evaluate", "-m", str(before), "-b", str(cases), *PLAIN, "-o", str(tmp_path / "r"), "-q"]
    assert main(args) == 0
    shutil.rmtree(before)
    cases.unlink()  # the run has its cases
    assert main(["probe", str(tmp_path / "r"), "--probes", "min-k"]) == 1
    assert "no such folder" in capsys.readouterr().err
    assert main(["probe", str(tmp_path / "r"), "--probes", "min-k", "--model", str(taught)]) == 0
    assert "0 asks put to the model" in capsys.readouterr().err
    assert (tmp_path / "r" / "probes" / "min-k" / "table.csv").is_file()
    drawn = (tmp_path / "r" / "report.html").stat().st_mtime_ns
    assert main(["probe", str(tmp_path / "r"), "--probes", "min-k", "--model", str(taught)]) == 0
    assert (tmp_path / "r" / "report.html").stat().st_mtime_ns == drawn, "nothing changed, and the report is kept"
    assert capsys.readouterr().out.splitlines()[-1].startswith("report: ")


def test_probing_a_run_whose_evaluation_was_cut_off_says_that_it_asks_first(
    investigated: Path, taught: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(investigated, tmp_path / "r"))
    (run / "metrics.json").unlink()
    for cut_off in (True, False):
        assert main(["probe", str(run), "--probes", "min-k", "--model", str(taught)]) == 0
        assert ("did not finish" in capsys.readouterr().err) == cut_off


def test_a_report_is_kept_only_where_it_would_show_the_same(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "runs" / "a", n=12)
    before = report_inputs(run)
    (run / "log.txt").write_text("another line")
    (run / "probes" / ".measured").mkdir()
    (run / "probes" / ".measured" / "x").write_text("a measurement, not a result")
    moved = Path(shutil.copytree(run, tmp_path / "elsewhere"))
    assert report_inputs(run) == report_inputs(moved) == before
    changed = set()
    for name in ("graded.jsonl", "metrics.json", "probes/lookback/table.csv", "diagnosis/cases.jsonl"):
        (run / name).parent.mkdir(exist_ok=True)
        with (run / name).open("a") as file:
            file.write("\n")
        changed.add(report_inputs(run))
    assert len(changed - {before}) == 4


def test_max_asks_stops_and_the_same_command_continues(
    taught: Path, case_file: Path, tmp_path: Path, capsys: Any
) -> None:
    args = ["evaluate", "-m", str(taught), "-b", str(case_file), *PLAIN, "-o", str(tmp_path / "r"), "--max-asks", "10"]
    main(args)
    assert len(journal_keys(tmp_path / "r")) == 10
    said = capsys.readouterr()
    assert "stopped by max_asks=10; the same command continues" in said.err
    assert "(compositionality-gap), stopped by max_asks=10\n" in said.out and "complete" not in said.out
    assert main(["ls", str(tmp_path)]) == 0
    assert "  stopped by max_asks=10  " in capsys.readouterr().out
    assert main(["probe", str(tmp_path / "r"), "--probes", "min-k"]) in (0, 1, 2)  # as many cases as were asked
    probing, asked = capsys.readouterr(), read_lines(tmp_path / "r" / "asks.jsonl")
    assert len(journal_keys(tmp_path / "r")) == 10 and f"{len(asked) - 10} asks of {len(asked)} " in probing.err
    manifest = read_json(tmp_path / "r" / "manifest.json")
    assert manifest["stopped"] == "max_asks=10" and "probe" not in manifest["command"] and not manifest["n_invalid"]
    for _ in range(10):
        if main([*args, "-q"]) == 0 and read_json(tmp_path / "r" / "manifest.json")["stopped"] is None:
            break
    keys = journal_keys(tmp_path / "r")
    assert max(Counter(keys).values()) == 1
    assert metric(tmp_path / "r", "composition")["count"] == 6


def test_a_stopped_run_that_was_continued_and_interrupted_is_an_interrupted_one(
    taught: Path, case_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    args = ["evaluate", "-m", str(taught), "-b", str(case_file), *PLAIN, "-o", str(tmp_path / "r"), "-q"]
    main([*args, "--max-asks", "10"])
    with monkeypatch.context() as during:
        during.setattr(evaluating, "ask_and_grade", _interrupt)
        assert main(args) == 130
    assert "interrupted; all finished work is kept" in capsys.readouterr().err
    manifest = read_json(tmp_path / "r" / "manifest.json")
    assert (manifest["status"], manifest["stopped"]) == ("interrupted", None)
    main(["probe", str(tmp_path / "r"), "--probes", "min-k", "-q"])  # asks the rest, as of every interrupted run
    assert metric(tmp_path / "r", "composition")["count"] == 6 and len(journal_keys(tmp_path / "r")) > 10


def _interrupt(*args: object) -> None:
    raise KeyboardInterrupt


def test_limit_takes_the_first_cases_of_each_family_and_depth(
    planted: Callable[..., list[Case]], tmp_path: Path
) -> None:
    cases = planted(9)
    mixed = [Case(**{**vars(c), "depth": 2 + 2 * (i % 3)}) for i, c in enumerate(cases)]
    assert [c.id for c in limit_cases(mixed, 2)] == [f"sum-{i:02d}" for i in range(6)]
    write_cases(mixed, tmp_path / "cases.jsonl")
    limited, full = (load_benchmark(str(tmp_path / "cases.jsonl"), limit=n) for n in (2, None))
    assert limited.sha256 == full.sha256


def test_a_dry_run_counts_and_leaves_no_trace(taught: Path, case_file: Path, tmp_path: Path, capsys: Any) -> None:
    bare = Path(shutil.copytree(taught, tmp_path / "bare"))
    args = ["investigate", "-m", str(bare), "-b", str(case_file), *PLAIN, "-o", str(tmp_path / "r"), "--dry-run"]
    assert main(args) == 0
    out = capsys.readouterr().out
    assert "cases: 12" in out and "prompt tokens: at most" in out
    for command in ("investigate", "evaluate"):
        assert main([command, *args[1:], "--json"]) == 0
        assert any("cases: 12" in line for line in json.loads(capsys.readouterr().out)["plan"])
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "sign",
    [
        pytest.param(signal.SIGINT, id="Ctrl-C", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, id="kill -9", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_continues_with_the_same_command(
    sign: signal.Signals, taught: Path, tmp_path: Path, planted: Callable[..., list[Case]], environment: dict[str, str]
) -> None:
    slow = [
        Case(**{**vars(c), "id": f"{c.id}-{k}", "question": f"{c.question}{'?' * k}"})
        for k in range(9)
        for c in planted()
    ]
    write_cases(slow, tmp_path / "cases.jsonl")
    args = ["evaluate", "-m", str(taught), "-b", "cases.jsonl", "-o", "r", "--batch-size", "1"]
    command = [sys.executable, "-m", "composcope", *args]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    _wait_until(
        lambda: (tmp_path / "r" / "journal").is_dir() and len(journal_keys_so_far(tmp_path / "r")) >= 5, process
    )
    process.send_signal(sign)
    err = process.communicate(timeout=60)[1]
    answered = journal_keys_so_far(tmp_path / "r")
    if sign is signal.SIGINT:
        assert process.returncode == 130
        assert err.splitlines()[-1].startswith("composcope: interrupted; all finished work is kept, continue with: ")
        assert read_json(tmp_path / "r" / "manifest.json")["status"] == "interrupted"
    assert not (tmp_path / "r" / "metrics.json").exists(), "too quick to be interrupted"
    again = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == done(tmp_path / "r"), again.stderr
    keys = journal_keys(tmp_path / "r")
    assert set(answered) <= set(keys)
    assert max(Counter(keys).values()) == 1, "an answered ask was put again"
    assert read_json(tmp_path / "r" / "manifest.json")["status"] == "complete"


def journal_keys_so_far(run: Path) -> list[str]:
    keys = []
    for path in (run / "journal").glob("*.jsonl"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            keys += [row["key"]] if "key" in (row := json.loads(line)) else []
    return keys


def _wait_until(ready: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < end, "nothing was answered in time"
        time.sleep(0.01)


def _can_mount() -> bool:
    try:
        probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not _can_mount(), reason="needs unprivileged mounts to make a full disk")
@pytest.mark.long
def test_a_full_disk_is_one_line_and_what_was_answered_is_kept(
    taught: Path, case_file: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "disk").mkdir()
    options = f"-m {taught} -b {case_file} --format plain -o {tmp_path}/disk/r -q"
    cli = f"{sys.executable} -m composcope evaluate {options}"
    script = (
        f"mount -t tmpfs -o size=48k none {tmp_path}/disk && {cli}; code=$?; "
        f"cat {tmp_path}/disk/r/journal/*.jsonl > {tmp_path}/kept; mount -o remount,size=8m {tmp_path}/disk; "
        f"{cli}; echo codes $code $?; cat {tmp_path}/disk/r/metrics.json > {tmp_path}/metrics.json"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "codes 1 0", done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("composcope: error:")]
    assert len(errors) == 1 and "space" in errors[0].lower()
    assert "Traceback" not in done.stderr
    assert (tmp_path / "kept").read_text().count('"key"') > 0
    assert json.loads((tmp_path / "metrics.json").read_text())["metrics"]


def test_a_path_as_model_means_no_hub(taught: Path, case_file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    main(["evaluate", "-m", str(taught), "-b", str(case_file), *PLAIN, "-o", str(tmp_path / "r"), "--dry-run"])
    assert os.environ["HF_HUB_OFFLINE"] == "1"


FAILURES, SUCCESSES = (SimpleNamespace(name=n, label=n, entries=[0] * k) for n, k in (("failure", 3), ("success", 2)))


@pytest.mark.parametrize(
    ("failing", "right", "said"),
    [(2, 2, None), (1, 5, "only 1 failure"), (5, 1, "only 1 success"),
     (1, 1, "only 1 failure and 1 success"),
     (0, 1, "no failure with every part right among 9 cases (failure 3, success 2; 4 answers invalid)"),
     (1, 0, "no success"), (0, 0, "no case")],
)  # fmt: skip
def test_a_run_without_a_contrast_says_what_is_missing(failing: int, right: int, said: str | None) -> None:
    sets = SimpleNamespace(case_sets=(FAILURES, SUCCESSES))
    ids = {"failure": [0] * failing, "success": [0] * right}
    asks = {"a": Ask("c", "whole", "Q?", "1", "text", format="cot")}
    found: Any = SimpleNamespace(
        ids=ids.get, cases=range(9), reduction=sets, n_invalid=4, asks=asks, graded=[], protocol=""
    )
    line = investigate.no_contrast(found, Path("r"))
    assert (line is None) == (said is None) and (said or "") in (line or "")
    for protocol, known in (("scaffolding", False), ("double-gate", True)):
        found.protocol = protocol
        told = str(investigate.no_contrast(found, Path("r")))
        assert ("with every part right" in told) == (known and line is not None), (
            "scaffolds are revealed to any failure"
        )
        assert ("no failure and no success among" in told) == (said == "no case" and not known)
    if line:
        assert ("use more or harder cases" in line) == (failing < right)
        assert "`--cot-tokens`" in line, "the budget that these asks have"
        found.reduction = SimpleNamespace(case_sets=())  # a plugin's protocol that only counts
        told = str(investigate.no_contrast(found, Path("r")))
        assert "CaseSet" in told and "every part right" not in told and "cases " not in told.partition("; ")[2]


def test_what_a_report_shows_decides_whether_it_is_written_again(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2, probes=("min-k",))
    first = investigate.report_inputs(run)
    for unseen in ("log.txt", "journal/more.jsonl", "figures/a.png", "probes/.measured/a.safetensors"):
        (run / unseen).parent.mkdir(parents=True, exist_ok=True)
        (run / unseen).write_text("x")
        assert investigate.report_inputs(run) == first, unseen
    for shown in ("metrics.json", "graded.jsonl", "probes/min-k/table.csv", "casesets/x.jsonl", "diagnosis/table.csv",
                  "rendered.json", "../study.json", "../validity.json"):  # fmt: skip
        path = run / shown
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.is_file() else "") + " ")
        before, first = first, investigate.report_inputs(run)
        assert first != before, shown


def test_a_job_diagnoses_and_reports_as_it_is_asked_to_and_stops_after_the_answers_without_a_contrast(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[Any] = []

    def show(run: Any, reporter: Any, again: bool) -> Path:
        given.append(("report", again))
        return run.path / "page"

    monkeypatch.setattr(investigate, "_show", show)
    monkeypatch.setattr(investigate, "_diagnose", lambda *_, wanted: given.append(("diagnose", wanted)))
    config = Config(model="organism:none", benchmark="organism:mixed", limit=1, device="cpu")
    made: dict[str, Any] = {"probe": lambda *_: given.append("probe") or "no two", "quiet": True}
    jobs: tuple[tuple[dict[str, Any], list[Any]], ...] = (
        ({"report": True}, ["probe", ("report", True)]),
        ({"report": None, "diagnose": True}, ["probe", ("diagnose", True), ("report", False)]),
        ({"report": False, "diagnose": None}, ["probe", ("diagnose", None)]),
        ({"contrast": False, "diagnose": True}, []),
    )
    for options, wanted in jobs:
        given.clear()
        found = investigate.investigate(config, tmp_path / "run", **made, **options)
        assert given == wanted
        assert found.no_contrast == ("no two" if wanted else None) and found.path == tmp_path / "run"
        assert found.report == (
            tmp_path / "run" / "page" if ("report", True) in wanted or ("report", False) in wanted else None
        )


@pytest.mark.parametrize(("wanted", "seconds", "asked"), [(None, 10, True), (None, 1e9, False), (True, 1e9, True)])
def test_failures_are_diagnosed_with_the_runs_seed_if_it_is_quick_or_wanted(
    wanted: bool | None, seconds: float, asked: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given, said = list[Any](), list[str]()
    data = SimpleNamespace(config=SimpleNamespace(seed=7), path=tmp_path)
    monkeypatch.setattr(investigate, "read_run", lambda _: data)
    monkeypatch.setattr(diagnosis, "labelled_failures", lambda _: ["f"])
    monkeypatch.setattr(diagnosis, "cannot", lambda *_: None)
    monkeypatch.setattr(diagnosis, "estimate", lambda *_: seconds)
    monkeypatch.setattr(
        diagnosis, "diagnosed", lambda *args: given.append(args[:4]) or SimpleNamespace(sentence=lambda: "why")
    )
    run: Any = SimpleNamespace(path=tmp_path, name="r", timed=nullcontext)
    reporter: Any = SimpleNamespace(say=said.append, note=said.append)
    target: Any = object()
    investigate._diagnose(run, target, reporter, wanted)
    assert given == ([(data, target, ["f"], 7)] if asked else [])
    assert said == (
        ["r: why"]
        if asked
        else [f"r: not diagnosed, because it would take about {seconds / 60:.0f} minutes; --diagnose does it"]
    )
    if not asked:
        return

    def fails(*_: Any) -> None:
        raise ComposcopeError("no state")

    monkeypatch.setattr(diagnosis, "diagnosed", fails)
    investigate._diagnose(run, target, reporter, wanted)
    assert said[-1] == "r: not diagnosed: no state"


def test_workers_of_ray_divide_a_probing_themselves(tmp_path: Path) -> None:
    config = Config.model_validate(
        {"model": "organism:low", "benchmark": "organism:mixed", "serving": {"engine": "ray"}}
    )
    with pytest.raises(InputError, match=r"--shard 1/2: .*ray.*--engine transformers"):
        investigate.probe_shard(config, tmp_path, "1/2")
