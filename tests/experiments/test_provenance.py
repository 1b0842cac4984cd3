"""Every table says which model, data and code it is of, also when the run has moved; steps say their peak memory."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope import __version__
from composcope.experiments.cli import main
from composcope.experiments.figures import save
from composcope.experiments.run import provenance, read_json


@pytest.fixture(scope="module")
def run(taught: Path, case_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "sums"
    some = ["--format", "plain", "--probes", "min-k,trajectory", "--probe-cases", "3", "--seed", "5", "-q"]
    assert main(["investigate", "-m", str(taught), "-b", str(case_file), *some, "-o", str(out)]) == 0
    return out


def tables(folder: Path) -> list[Path]:
    found = sorted(folder.glob("probes/*/*.csv")) + sorted(folder.glob("figures/*.csv"))
    assert len(found) > 5
    return found


def check(table: Path, manifest: dict[str, Any], home: Path) -> None:
    text = provenance.beside(table).read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["url"] == table.name
    (about,) = document["composcope:runs"]
    assert about["model"]["weights"] == manifest["identity"]["weights"]
    assert len(about["model"]["weights"]) == 64
    assert about["data"]["data"] == manifest["identity"]["data"]
    assert about["seed"] == 5
    assert about["composcope"]["version"] == __version__
    assert len(about["composcope"]["source"]) == 64
    assert about["versions"]["torch"] and about["versions"]["transformers"]
    assert about["numerics"]["dtype"] == "float32"
    assert str(home) not in text


def test_every_csv_says_model_data_code_seed_and_versions(run: Path) -> None:
    for table in tables(run):
        check(table, read_json(run / "manifest.json"), run)
        assert next(csv.reader(io.StringIO(table.read_text(encoding="utf-8")))), "the csv itself stays plain"


def test_a_moved_run_is_reported_again_and_says_the_same(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "other-name"
    shutil.copytree(run, moved)
    shutil.rmtree(moved / "figures")
    (moved / "report.html").unlink()
    assert main(["report", str(moved)]) == 0
    assert (moved / "report.html").is_file()
    for table in tables(moved):
        check(table, read_json(run / "manifest.json"), run)


def test_a_figure_of_two_runs_names_both(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    paths = save("step-bars", [run, other], tmp_path / "figures")
    table = next(p for p in paths if p.suffix == ".csv")
    assert len(json.loads(provenance.beside(table).read_text())["composcope:runs"]) == 2


def test_every_step_says_its_peak_memory(run: Path) -> None:
    peaks = read_json(run / "manifest.json")["peak_memory"]
    assert {"ask", "probe:min-k", "probe:trajectory", "report"} <= peaks.keys()
    assert all(50 < step["rss"] < 100_000 for step in peaks.values())


IN_A_FRESH_PROCESS = """
from composcope.experiments.run import provenance

def peak():
    return provenance.memory_peaks()["rss"]

provenance.reset_peaks()
before = peak()
block = bytearray(200 << 20)
block[::4096] = b"x" * len(block[::4096])
high = peak()
del block
provenance.reset_peaks()
print(before, high, peak())
"""


def test_the_high_water_mark_starts_anew_where_the_system_can_do_that() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_FRESH_PROCESS], capture_output=True, text=True, check=True)
    before, high, after = map(int, done.stdout.split())
    assert high >= before + 150
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # the system keeps its peaks
    assert after < high - 100


@pytest.mark.parametrize(("changed", "said"), [("", "abc"), (" M files.py", "abc+changes")])
def test_a_commit_says_whether_the_checkout_was_changed(
    changed: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    monkeypatch.setattr(provenance, "_git", lambda *args: {"rev-parse": "abc", "status": changed}[args[0]])
    assert provenance.git_commit() == said


def test_the_larger_of_two_peaks_is_taken_entry_by_entry() -> None:
    a = {"rss": 10, "cuda": {"cuda:0": 5, "cuda:1": 1}}
    b = {"rss": 7, "children": 3, "cuda": {"cuda:0": 6}}
    assert provenance.larger_peaks(a, b) == {"rss": 10, "children": 3, "cuda": {"cuda:0": 6, "cuda:1": 1}}
    assert provenance.larger_peaks(None, b) == b


def test_libraries_that_are_absent_are_said_to_be() -> None:
    found = provenance.libraries(("numpy", "no-such-library-of-ours"))
    assert found["numpy"] == np.__version__ and found["no-such-library-of-ours"] is None
    assert next(iter(found)) == "python"


def test_the_hash_of_the_source_is_of_the_code_of_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/x.py", "a/deep/y.py", "a/notes.txt", "b/z.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    first = provenance.source_hash(("a",))
    for name, changed in (("a/notes.txt", False), ("b/z.py", False), ("a/deep/y.py", True)):
        (tmp_path / name).write_text("other")
        assert (provenance.source_hash(("a",)) != first) == changed, name
    assert provenance.source_hash(("a", "b")) != (before := provenance.source_hash(("a",)))
    (tmp_path / "a/x.py").rename(tmp_path / "a/w.py")
    assert provenance.source_hash(("a",)) != before, "a file of another name is another module"
    monkeypatch.setattr(provenance, "_SOURCE_FOLDERS", ("a",))
    every, some = provenance.source_hash(), provenance.source_hash(("a",))
    (tmp_path / "model_loading.py").write_text("beside the folders")
    assert provenance.source_hash() != every and provenance.source_hash(("a",)) == some


def test_processes_below_this_one_are_found_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, parent, peak in ((5, 1, 10), (6, 5, 20), (7, 6, 40), (8, 1, 80)):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} 0")
        (folder / "status").write_text(f"Name: x\nVmHWM:\t {peak * 1024} kB\n")
    monkeypatch.setattr(provenance, "_PROC", tmp_path)
    assert sorted(provenance._descendants(5)) == [6, 7] and provenance._descendants(8) == []
    assert [provenance._high_water(pid) for pid in (5, 7, 99)] == [10, 40, 0]
    monkeypatch.setattr(provenance.os, "getpid", lambda: 5)
    monkeypatch.setattr(provenance, "_devices", dict)
    monkeypatch.setattr(provenance, "_cuda", lambda: None)
    assert provenance.memory_peaks() == {"rss": 10, "children": 60}


def test_what_cannot_be_found_out_about_code_or_memory_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise subprocess.CalledProcessError(1, "git")

    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    assert provenance.git_commit() is None
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(provenance.subprocess, "run", fails)
    monkeypatch.setattr(provenance.shutil, "which", str)
    assert provenance.git_commit() is None and provenance._devices() == {}
    for text in ("", "{", "[]", '{"url": "t.csv"}'):
        (tmp_path / "t.csv-metadata.json").write_text(text)
        assert provenance.n_runs(tmp_path / "t.csv") == 0, text
    provenance.write_beside(tmp_path / "t.csv", {"a": 1})
    assert provenance.n_runs(tmp_path / "t.csv") == 1
    provenance.write_beside(tmp_path / "t.csv", [{"a": 1}, {"a": 2}])
    assert provenance.n_runs(tmp_path / "t.csv") == 2 and provenance.n_runs(tmp_path / "other.csv") == 0
    monkeypatch.setattr(provenance, "_PROC", tmp_path)
    (tmp_path / "5").mkdir()  # gone before it was read
    assert provenance._descendants(4) == []
    usage = SimpleNamespace(ru_maxrss=3 * 2**20)
    monkeypatch.setattr(provenance.resource, "getrusage", lambda who: usage)
    for system, megabytes in (("linux", 3 * 2**10), ("darwin", 3)):
        monkeypatch.setattr(provenance.sys, "platform", system)
        assert provenance._peak_rss() == megabytes


def test_memory_of_gpus_is_told_by_device_once_this_process_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    reset: list[int] = []
    cuda = SimpleNamespace(device_count=lambda: 2, max_memory_allocated=lambda i: (i + 1) * 2**20,
                           reset_peak_memory_stats=reset.append, is_initialized=lambda: used)  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    used = False
    assert provenance._cuda() is None
    used = True
    provenance.reset_peaks()
    said = "0, 7\n 1, 9\n"
    given: list[Any] = []

    def run(command: list[str], **options: Any) -> Any:
        given.append((command[0], options["timeout"], options["check"]))
        return SimpleNamespace(stdout=said)

    monkeypatch.setattr(provenance.subprocess, "run", run)
    monkeypatch.setattr(provenance.shutil, "which", str)
    found = provenance.memory_peaks()
    assert (found["cuda"], found["devices"]) == ({"cuda:0": 1, "cuda:1": 2}, {"gpu:0": 7, "gpu:1": 9})
    assert reset == [0, 1] and given == [("nvidia-smi", 10, True)]
