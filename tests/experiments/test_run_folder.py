"""The run folder: atomic files, one writer, one run per folder, a manifest that says how it was made."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

from composcope.errors import InputError, JournalError
from composcope.experiments.config import Config
from composcope.experiments.console import printing
from composcope.experiments.console.printing import Reporter
from composcope.experiments.diagnosis.job import diagnose
from composcope.experiments.probing import finished
from composcope.experiments.run import (
    differing,
    find_runs,
    locked,
    one_run,
    read_json,
    read_lines,
    write_json,
    write_lines,
    write_text,
    writer,
)
from composcope.experiments.run.folder import check_place
from composcope.experiments.run.reader import read_config
from composcope.experiments.run.schema import Manifest
from composcope.experiments.run.summary import failing_cases
from composcope.experiments.run.writer import begin_run, save_probe

IDENTITY = {"model": "m", "data": "abc", "protocol": "p"}


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_is_synced_before_it_gets_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    done: list[tuple[str, bool]] = []

    def sync(fd: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"
        done.append((kind, path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    write_text(path, "new")
    assert done == [("file", False), ("folder", True)]


def test_json_lines_carry_a_schema_and_survive_unicode_line_separators(tmp_path: Path) -> None:
    rows = [{"text": "a\u2028b\nc"}, {"text": "ß"}]
    path = write_lines(tmp_path / "rows.jsonl", rows)
    assert [r["text"] for r in read_lines(path)] == ["a\u2028b\nc", "ß"]
    assert all(r["schema"] == 1 for r in read_lines(path))


def test_what_json_has_no_number_for_is_null_in_every_file(tmp_path: Path) -> None:
    value = {"a": float("nan"), "b": [1, float("-inf"), {"c": (0.5, float("inf"))}], "d": tmp_path}
    for path in (write_json(tmp_path / "x.json", value), write_lines(tmp_path / "x.jsonl", [value])):
        found = json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(word))
        assert found == {"schema": 1, "a": None, "b": [1, None, {"c": [0.5, None]}], "d": str(tmp_path)}


@pytest.mark.parametrize("other", [1.5, float("nan")])
def test_a_number_of_numpy_is_a_number_in_every_file_whatever_stands_beside_it(tmp_path: Path, other: float) -> None:
    path = write_json(tmp_path / "x.json", {"n": np.int64(3), "all": np.array([1, 2]), "some": {4}, "other": other})
    found = json.loads(path.read_text())
    assert (found["n"], found["all"], found["some"]) == (3, [1, 2], [4])


def test_another_schema_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = write_text(tmp_path / "rows.jsonl", '{"schema": 1}\n{"schema": 9}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl:2: schema is 9"):
        read_lines(path)


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = write_text(tmp_path / "rows.jsonl", '{"a": 1}\n{"a":\n')
    with pytest.raises(InputError, match=r"rows\.jsonl:2: not valid JSON"):
        read_lines(path)


def test_the_manifest_says_code_versions_machine_command_and_timings(tmp_path: Path) -> None:
    options = {"seed": 3, "model": "m", "benchmark": "b", "protocol": "p"}
    with begin_run(tmp_path / "r", options, identity=IDENTITY) as run:
        with run.timed("ask"):
            pass
        assert read_json(run.path / "manifest.json")["status"] == "running"
    manifest = read_json(tmp_path / "r" / "manifest.json")
    assert manifest["status"] == "complete"
    assert manifest["seed"] == 3
    assert manifest["identity"] == IDENTITY
    assert len(manifest["composcope"]["source"]) == 64
    assert manifest["versions"]["torch"]
    assert manifest["timings"]["ask"] >= 0
    assert manifest["invocations"][0]["status"] == "complete"
    assert read_config(tmp_path / "r") == {"schema": 1, **options}


def test_the_seconds_of_a_step_are_added_up_and_kept_to_the_millisecond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begin_run(tmp_path / "r", {}, identity=IDENTITY) as run:
        ticks, peaks = iter((10.0, 11.23456, 20.0, 20.5)), iter(({"rss": 9, "children": 1}, {"rss": 7, "children": 2}))
        with monkeypatch.context() as patched:
            patched.setattr(writer, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
            patched.setattr(writer.provenance, "memory_peaks", lambda: next(peaks))
            for seconds in (1.235, 1.735):
                with run.timed("ask"):
                    pass
                assert run.manifest.timings == {"ask": seconds}
        assert run.manifest.peak_memory == {"ask": {"rss": 9, "children": 2}}, "the largest of all goes"


def test_no_file_of_a_run_holds_the_path_of_its_folder(tmp_path: Path) -> None:
    with begin_run(tmp_path / "r", {"seed": 0}, identity=IDENTITY):
        pass
    manifest = read_json(tmp_path / "r" / "manifest.json")
    del manifest["command"], manifest["invocations"]  # what the user typed
    assert str(tmp_path) not in json.dumps(manifest)


def test_reopening_adds_an_invocation_and_keeps_the_creation_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = iter(["monday", "monday", "tuesday", "tuesday"])
    monkeypatch.setattr(writer, "_now", lambda: next(days))
    plugins = iter([[{"file": "a"}], [{"file": "b"}]])
    monkeypatch.setattr(writer.provenance, "plugin_files", lambda: next(plugins))
    for _ in range(2):
        with begin_run(tmp_path / "r", {}, identity=IDENTITY) as run:
            run.manifest.timings = {"ask": run.manifest.timings.get("ask", 100.0)}
            with run.timed("ask"):
                pass
    manifest = read_json(tmp_path / "r" / "manifest.json")
    assert [call["started"] for call in manifest["invocations"]] == ["monday", "tuesday"]
    assert manifest["plugins"] == [{"file": "a"}, {"file": "b"}]
    assert manifest["created"] == "monday" and manifest["timings"]["ask"] >= 100, "seconds of all goes"


def test_a_probe_that_could_not_be_saved_is_measured_again(tmp_path: Path) -> None:
    class Unsaved:
        def save(self, folder: Path) -> None:
            raise OSError("disk full")

    write_text(tmp_path / "inputs.json", '{"inputs": "same"}')
    with pytest.raises(OSError, match="disk full"):
        save_probe(Unsaved(), tmp_path, Manifest(identity={}), "same")  # type: ignore[arg-type]
    assert not finished(tmp_path, "same")
    (tmp_path / "cases").mkdir()
    save_probe(SimpleNamespace(save=lambda folder: None), tmp_path, Manifest(identity={}), "new")  # type: ignore[arg-type]
    assert finished(tmp_path, "new") and not (tmp_path / "cases").exists(), "single cases of another result"


def test_an_interrupted_and_a_failed_run_say_so(tmp_path: Path) -> None:
    options = Config(model="m", benchmark="b", protocol="p").as_config()
    for error, status in ((KeyboardInterrupt(), "interrupted"), (ValueError("no"), "failed")):
        with pytest.raises(type(error)), begin_run(tmp_path / status, options, identity=IDENTITY):
            raise error
        command = read_json(tmp_path / status / "manifest.json")["command"]
        assert read_json(tmp_path / status / "manifest.json")["status"] == status
        for read in (failing_cases, diagnose):  # it has no failures yet, which is not to have none
            with pytest.raises(InputError, match=re.escape(f"({status}); continue it with: {command}")):
                read(tmp_path / status)


def test_a_folder_has_one_writer_and_a_killed_writer_does_not_block_the_next(tmp_path: Path) -> None:
    code = (
        "import sys, time; from composcope.experiments.run import locked\n"
        "with locked(sys.argv[1]):\n    print('held', flush=True); time.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / ".site")}
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "r")], stdout=subprocess.PIPE, env=env)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    with pytest.raises(JournalError, match="another composcope process"), locked(tmp_path / "r"):
        pass
    holder.kill()
    holder.wait()
    with locked(tmp_path / "r") as path:
        assert path.is_dir()


def test_what_a_probe_that_was_killed_while_it_saved_left_is_removed_when_the_run_is_opened_again(
    tmp_path: Path,
) -> None:
    code = f"""
import os
from composcope.probes import result
result.put_in_place = lambda *_: os._exit(137)
result.ProbeResult("min-k", []).save({str(tmp_path / "run" / "probes" / "min-k")!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 137
    left = [p for p in (tmp_path / "run" / "probes").iterdir() if p.name != "min-k"]
    assert len(left) == 1 and any(left[0].iterdir())
    with begin_run(tmp_path / "run", {}, identity={"model": "m"}):
        pass
    assert not left[0].exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("")
    for folder in (tmp_path / "r", tmp_path / "r" / "below" / "run"):
        with pytest.raises(InputError, match="is a file; give a folder"), locked(folder):
            pass


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(InputError, match=f"{tmp_path} cannot be written"):
        check_place(tmp_path / "a" / "b")
    assert not list(tmp_path.iterdir())


def test_runs_are_found_in_a_study_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        with begin_run(tmp_path / "study" / name, {}, identity=IDENTITY):
            pass
    (tmp_path / "study" / "figures").mkdir()
    assert [p.name for p in find_runs([tmp_path / "study"])] == ["a", "b"]
    assert [p.name for p in find_runs([tmp_path / "study" / "b", tmp_path / "study"])] == ["b", "a"]
    with pytest.raises(InputError, match="holds no run"):
        find_runs([tmp_path])


def test_a_job_on_one_run_takes_no_folder_of_several(tmp_path: Path) -> None:
    from composcope.experiments.diagnosis.job import diagnose

    for name in ("b", "a"):
        with begin_run(tmp_path / "study" / name, {}, identity=IDENTITY):
            pass
    with pytest.raises(InputError, match=rf"holds 2 runs \(a, b\).*{tmp_path / 'study' / 'a'}"):
        diagnose(tmp_path / "study")
    assert one_run(tmp_path / "study" / "b") == tmp_path / "study" / "b"


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(printing.time, "monotonic", lambda: self.now)

    def work(self, reporter: Reporter, title: str, items: int, seconds: float) -> None:
        with reporter.bar(title, items) as advance:
            for _ in range(items):
                self.now += seconds / items
                advance(1)


def test_a_job_in_a_script_has_a_line_for_each_work_of_some_seconds_and_none_for_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, reporter = Clock(monkeypatch), Reporter(tmp_path / "log.txt")
    for i in range(40):
        clock.work(reporter, f"step {i}", 100, 1.0 if i % 4 else 20.0)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == "" and lines == [f"step {i}: 100 % (100/100)" for i in range(0, 40, 4)]
    assert len((tmp_path / "log.txt").read_text().splitlines()) == len(lines)


def test_long_work_in_a_script_is_never_silent_for_more_than_a_minute_nor_says_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, reporter, said = Clock(monkeypatch), Reporter(), [0.0]
    say = reporter.say
    monkeypatch.setattr(reporter, "say", lambda line: (said.append(clock.now), say(line)))
    clock.work(reporter, "asking", 1800, 1800)
    for i in range(20):  # none of these is long, but they are together
        clock.work(reporter, f"step {i}", 9, 9)
    gaps = [b - a for a, b in pairwise([*said, clock.now])]
    assert max(gaps) <= printing.EVERY + 1 and len(said) - 1 <= 1800 / printing.EVERY + 180 / printing.EVERY + 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(said) - 1
    assert lines.count("asking: 100 % (1800/1800)") == 1, "what was said at the end is not said once more"
    assert lines[9] == "asking: 33 % (600/1800), about 20 minutes left" and lines[28].endswith(", about 1 minute left")


def test_the_time_that_is_left_is_told_from_what_followed_the_first_count(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    with Reporter().bar("asking", 157) as advance:
        for seconds in (120, 6, *[6] * 20):  # a model is loaded before the first answer
            clock.now += seconds
            advance(1)
    with Reporter().bar("in batches", 157) as advance:
        for items in (0.1, 0.9, 78):  # of a long batch nothing is known before it ends
            clock.now += 100
            advance(items)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["asking: 1 % (1/157)", "asking: 7 % (11/157), about 15 minutes left"]
    assert lines[-3:] == ["in batches: 0 % (0/157)", "in batches: 1 % (1/157)",
                          "in batches: 50 % (79/157), about 4 minutes left"]  # fmt: skip


def test_work_that_counts_nothing_yet_says_so_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "EVERY", 0.0)
    reporter, said = Reporter(), Event()
    monkeypatch.setattr(reporter, "say", lambda line: said.set() if line == "asking: 0 % (0/9)" else None)
    with reporter.bar("asking", 9):
        assert said.wait(60)


def test_work_that_fails_has_no_line_at_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    with pytest.raises(InputError), Reporter().bar("reading", 2) as advance:
        advance(1)
        clock.now += 30
        raise InputError("broken")
    assert capsys.readouterr().err == ""


def test_a_detail_is_for_the_log_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Reporter(tmp_path / "log.txt").note("read at the answer slot")
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "log.txt").read_text().endswith(" read at the answer slot\n")


def test_quiet_progress_still_reaches_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Reporter(tmp_path / "log.txt", quiet=True).say("hello")
    assert capsys.readouterr().err == ""
    assert (tmp_path / "log.txt").read_text().endswith(" hello\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_a_bar_and_lines_said_meanwhile_stand_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing, "PATIENCE", 0.0)
    terminal = Terminal()
    reporter = Reporter(tmp_path / "log.txt", stream=terminal)
    with reporter.bar("asking", 4) as advance:
        advance(2)
        reporter.say("half [bold]way")
        advance(2)
    text = terminal.getvalue()
    assert "half [bold]way" in text and "4/4" in text
    assert text.rstrip().endswith("asking: 100 % (4/4)")


@pytest.mark.parametrize("how", [{"quiet": True}, {"bars": False}, {"stream": io.StringIO()}])
def test_a_bar_that_is_not_wanted_or_has_no_terminal_draws_nothing(how: dict[str, object]) -> None:
    terminal = Terminal()
    reporter = Reporter(**{"stream": terminal, **how})  # type: ignore[arg-type]
    with reporter.bar("asking", 4) as advance:
        advance(4)
    assert terminal.getvalue() == reporter.stream.getvalue() == ""  # type: ignore[attr-defined]


def test_warnings_of_libraries_go_to_the_log_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(tmp_path / "log.txt")
    with warnings.catch_warnings(action="always"), reporter.logging_warnings():
        for _ in range(3):
            warnings.warn("precision\n lost", RuntimeWarning, stacklevel=1)
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert len(lines) == 1 and "RuntimeWarning: precision lost" in lines[0] and capsys.readouterr().err == ""


def test_an_occupied_folder_names_only_what_differs_and_cuts_hashes_and_long_values(tmp_path: Path) -> None:
    first, second = "ab" * 32, "cd" * 32
    before = {"model": "m", "weights": f"sha256:{first}", "seed": 0, "asking": {"few_shot": "2", "also": "cot"}}
    with begin_run(tmp_path / "r", {}, identity=before):
        pass
    now = {**before, "weights": f"sha256:{second}", "asking": {"few_shot": "3", "also": "cot"}}
    with pytest.raises(JournalError) as error, begin_run(tmp_path / "r", {}, identity=now):
        pass
    said = "weights was sha256:abababababab, is sha256:cdcdcdcdcdcd; asking.few_shot was 2, is 3"
    assert f"holds another run ({said});" in str(error.value)
    assert read_json(tmp_path / "r" / "manifest.json")["identity"] == before
    usual = {k: v for k, v in before.items() if k != "asking"}  # as options at their defaults are recorded
    for name, first_run, next_run in (("usual", usual, before), ("r", before, usual)):
        with begin_run(tmp_path / name, {}, identity=first_run):
            pass
        with pytest.raises(JournalError, match="few_shot was"), begin_run(tmp_path / name, {}, identity=next_run):
            pass


@pytest.mark.parametrize(("before", "now", "same"), [
    ("models/mine", "mine", True), ("a/mine", "b/mine", False), ("models/mine", "ine", False),
])  # fmt: skip
def test_a_run_whose_folder_was_labelled_by_its_path_is_continued_under_its_label(
    tmp_path: Path, before: str, now: str, same: bool
) -> None:
    with begin_run(tmp_path / "r", {}, identity={"model": before, "weights": "w"}):
        pass
    for weights, continued in (("other", False), ("w", same)):
        wanted = contextlib.nullcontext() if continued else pytest.raises(JournalError, match="holds another run")
        with wanted, begin_run(tmp_path / "r", {}, identity={"model": now, "weights": weights}) as run:
            assert run.manifest.identity["model"] == now


def test_asking_otherwise_than_a_run_that_asked_by_default_is_another_run_too(tmp_path: Path) -> None:
    whole = {**IDENTITY, "shard": None}
    with begin_run(tmp_path / "r", {}, identity=whole):
        pass
    for other, said in (({"shard": "1/2"}, "shard"), ({"asking": {"few_shot": "2"}}, r"asking\.few_shot")):
        with pytest.raises(JournalError, match=f"{said} was unset, is"):
            with begin_run(tmp_path / "r", {}, identity={**whole, **other}):
                pass
    with begin_run(tmp_path / "r", {}, identity=whole):
        pass


def test_values_that_differ_only_far_on_are_said_to_differ() -> None:
    assert differing("prompt", "x" * 100 + "a", "x" * 100 + "b") == ["prompt differs"]
    assert differing("depths", (2, 3), [2, 3]) == []


@pytest.mark.parametrize("name", ["cases.jsonl", "graded.jsonl", "metrics.json"])
def test_a_folder_that_is_no_run_keeps_its_files(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=rf"has {name} and no manifest\.json"), begin_run(tmp_path, {}, identity={}):
        pass
    assert [p.name for p in tmp_path.iterdir()] == [name] and (tmp_path / name).read_text() == "mine"
