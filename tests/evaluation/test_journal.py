from __future__ import annotations

import errno
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from composcope.errors import JournalError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.journal import Journal, ask_identity, read_journal

ENGINE = {"weights": "w", "tokenizer": "t", "chat_template": "c"}
HARD_TEXTS = ("\u2028 and \u2029 and \x85", "tab\t\r\n newline", "𝔘 é 漢", "half a pair \ud83d", "\x00", "x" * 100_000)


def respond(key: str, text: str = "an answer", **options: object) -> Response:
    given: dict = {"finish_reason": "stop", "prompt_tokens": 3, "response_tokens": 2, **options}
    return Response(ask=key, text=text, **given)


def put(journal: Journal, ask: Ask, text: str = "an answer", **options: object) -> str:
    key = ask_identity(ask, ENGINE)
    journal.record(key, ask, respond(key, text, **options), ENGINE)
    return key


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "other"},
        {"prompting": "raw"},
        {"max_tokens": 17},
        {"stop": ("x",)},
        {"temperature": 0.2},
        {"seed": 1},
        {"repeat": 1},
        {"thinking": True},
        {"thinking": False},
        {"begun": "The capital is"},
    ],
)
def test_identity_holds_everything_that_decides_an_answer(make_ask: Callable[..., Ask], change: dict) -> None:
    ask = make_ask(begun="The ")
    assert ask_identity(replace(ask, **change), ENGINE) != ask_identity(ask, ENGINE)


def test_a_line_of_the_journal_holds_what_its_key_is_made_of(make_ask: Callable[..., Ask], tmp_path: Path) -> None:
    asks = [make_ask(prompt, thinking=thinking) for prompt, thinking in (("a", None), ("b", True), ("c", False))]
    asks.append(make_ask("d", begun="The capital is"))
    with Journal(tmp_path) as journal:
        for ask in asks:
            put(journal, ask)
    (segment,) = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in segment.read_text().splitlines()[1:]]
    for ask, line in zip(asks, lines, strict=True):
        request = {**line["request"], "stop": tuple(line["request"]["stop"])}
        made = Ask("other", "role", gold="", answer_type="text", **request)
        assert ask_identity(made, ENGINE) == line["key"] == ask_identity(ask, ENGINE)


@pytest.mark.parametrize("name", ENGINE)
def test_identity_holds_the_engine(make_ask: Callable[..., Ask], name: str) -> None:
    assert ask_identity(make_ask(), {**ENGINE, name: "other"}) != ask_identity(make_ask(), ENGINE)


def test_identity_leaves_out_what_only_grading_needs(make_ask: Callable[..., Ask]) -> None:
    ask = make_ask()
    other = replace(ask, case="d", role="part:0:paraphrase:1", gold="2", aliases=("a",), atom="fact", format="xml")
    assert ask_identity(other, ENGINE) == ask_identity(ask, ENGINE)


def test_what_is_written_is_read_back_whatever_the_model_wrote(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    with Journal(tmp_path) as journal:
        keys = [
            put(journal, make_ask(f"{i} {text}"), text, prompt_ids=(1, 2, 3), response_ids=(4,), provenance={"a": [1]})
            for i, text in enumerate(HARD_TEXTS)
        ]
    with Journal(tmp_path) as again:
        assert [again.contents.responses[k].text for k in keys] == list(HARD_TEXTS)
        assert again.get(keys[0]) == respond(
            keys[0], HARD_TEXTS[0], prompt_ids=(1, 2, 3), response_ids=(4,), provenance={"a": [1]}
        )
        assert again.warnings == []


def test_every_writer_starts_a_segment_and_looking_writes_none(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    for i in range(3):
        with Journal(tmp_path) as journal:
            put(journal, make_ask(str(i)))
    with Journal(tmp_path) as journal:
        journal.begin(ENGINE, {})
    assert len(list(tmp_path.glob("*.jsonl"))) == 3
    assert len(read_journal(tmp_path).responses) == 3


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path, make_ask: Callable[..., Ask], cut: int) -> None:
    with Journal(tmp_path) as journal:
        first, second = put(journal, make_ask("one")), put(journal, make_ask("two"), "é" * 100)
    segment = next(tmp_path.glob("*.jsonl"))
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-cut])
    with Journal(tmp_path) as journal:
        if cut == 1:  # only the line end is missing: the answer is complete
            assert journal.get(second) is not None and journal.warnings == []
        else:
            assert journal.get(first) is not None and journal.get(second) is None
            assert len(journal.warnings) == 1 and "torn last line" in journal.warnings[0]
        put(journal, make_ask("three"))
    assert segment.read_bytes() == whole[:-cut], "a segment that was written is never changed"


def test_a_damaged_line_costs_its_own_ask_and_that_of_the_line_whose_checksum_rests_on_it(
    tmp_path: Path, make_ask: Callable[..., Ask]
) -> None:
    with Journal(tmp_path) as journal:
        keys = [put(journal, make_ask(str(i))) for i in range(4)]
    segment = next(tmp_path.glob("*.jsonl"))
    lines = segment.read_bytes().split(b"\n")
    lines[2] = lines[2][:50] + b"\xff\xfe" + lines[2][60:80]
    segment.write_bytes(b"\n".join(lines))
    contents = read_journal(tmp_path)
    assert set(contents.responses) == {keys[0], keys[3]}
    assert [w.partition(": ")[0] for w in contents.warnings] == [f"{segment}:{n}" for n in (3, 4)]


@pytest.mark.parametrize(
    "damage",
    [
        {"finish_reason": "stopp"},
        {"prompt_tokens": None},
        {"response_tokens": "two"},
        {"response_ids": "abc"},
        {"response_ids": [1, None]},
        {"text": None},
        {"provenance": "x"},
        {"error": 7},
    ],
)
def test_an_answer_with_a_damaged_field_is_asked_again(
    tmp_path: Path, make_ask: Callable[..., Ask], damage: dict
) -> None:
    with Journal(tmp_path) as journal:
        key = put(journal, make_ask(), "6", response_ids=(1, 2))
    [segment] = tmp_path.glob("*.jsonl")
    head, record = map(json.loads, segment.read_text(encoding="utf-8").splitlines())
    record["response"] |= damage
    del head["sum"], record["sum"]  # as an earlier version wrote it: with checksums it is noticed before
    segment.write_text(f"{json.dumps(head)}\n{json.dumps(record)}\n", encoding="utf-8")
    found = read_journal(tmp_path)
    assert key not in found.responses and "damaged line left out" in found.warnings[0]


def test_the_name_a_server_signs_with_counts_once_both_sides_know_it(
    tmp_path: Path, make_ask: Callable[..., Ask]
) -> None:
    said = {"engine": "openai", "answered_as": "one-7b"}
    with Journal(tmp_path) as journal:
        journal.begin(ENGINE, said)
        put(journal, make_ask(), "6")
    with Journal(tmp_path) as journal:
        journal.begin(ENGINE, {"engine": "openai"})  # not asked yet
        with pytest.raises(JournalError, match="answered_as 'one-7b'"):
            journal.begin(ENGINE, {**said, "answered_as": "another-7b"})


def test_segments_of_several_machines_merge_and_conflicts_are_reported(
    tmp_path: Path, make_ask: Callable[..., Ask]
) -> None:
    for shard, text in (("a", "one"), ("b", "two")):
        with Journal(tmp_path / shard) as journal:
            put(journal, make_ask("shared"), text)
            put(journal, make_ask("same everywhere"), "same")
            put(journal, make_ask(shard))
    merged = tmp_path / "merged"
    merged.mkdir()
    for shard in "ab":
        for segment in (tmp_path / shard).glob("*.jsonl"):
            (merged / f"{shard}-{segment.name}").write_bytes(segment.read_bytes())
    contents = read_journal(merged)
    assert len(contents.responses) == 4
    assert sum("two different answers" in w for w in contents.warnings) == 1
    key = ask_identity(make_ask("shared"), ENGINE)
    assert contents.responses[key].text == "one" and contents.lines[key].startswith(f"{merged / 'a-'}")
    assert "two different answers" in contents.warnings[0]


def test_an_infrastructure_failure_is_recorded_but_asked_again(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    with Journal(tmp_path) as journal:
        key = put(journal, make_ask(), "", finish_reason="error", error="server said 500")
        assert journal.get(key) is None
    with Journal(tmp_path) as journal:
        assert journal.get(key) is None
        assert journal.contents.failures[key].error == "server said 500"
        # Scored without its model, a run records what it has read back: that is nothing new.
        size = sum(p.stat().st_size for p in tmp_path.glob("*.jsonl"))
        journal.record(key, make_ask(), journal.contents.failures[key], ENGINE)
        assert sum(p.stat().st_size for p in tmp_path.glob("*.jsonl")) == size
        put(journal, make_ask(), "", finish_reason="error", error="server said 503")
        assert read_journal(tmp_path).failures[key].error == "server said 503", "another failure is"
        put(journal, make_ask(), "recovered")
    contents = read_journal(tmp_path)
    assert contents.responses[key].text == "recovered" and not contents.failures and not contents.warnings


def test_a_failure_that_comes_after_an_answer_counts_for_nothing(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    with Journal(tmp_path) as journal:
        key = put(journal, make_ask(), "said")
        put(journal, make_ask(), "", finish_reason="error", error="too late")
    contents = read_journal(tmp_path)
    assert contents.responses[key].text == "said" and not contents.failures


def test_what_was_written_is_synced_when_the_journal_is_closed(
    tmp_path: Path, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    with Journal(tmp_path) as journal:
        put(journal, make_ask())
        synced.clear()
    [segment] = tmp_path.glob("*.jsonl")
    assert synced == [segment.stat().st_ino]


def test_a_segment_is_numbered_after_the_last_one_and_provenance_is_kept_once(
    tmp_path: Path, make_ask: Callable[..., Ask]
) -> None:
    (tmp_path / "0007-elsewhere-1.jsonl").write_text("")
    for n in range(2):
        with Journal(tmp_path) as journal:
            journal.begin(ENGINE, {"torch": "2.11"})
            put(journal, make_ask(str(n)))
    assert [p.name[:4] for p in sorted(tmp_path.glob("*.jsonl"))] == ["0007", "0008", "0009"]
    [engine] = read_journal(tmp_path).engines.values()
    assert engine["provenance"] == [{"torch": "2.11"}]


def test_answers_made_under_another_provenance_are_refused_unless_reused(
    tmp_path: Path, make_ask: Callable[..., Ask]
) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(ENGINE, {"torch": "2.11", "dtype": "float32", "batch_size": 8, "host": "a"})
        put(journal, make_ask())
    with Journal(tmp_path) as journal:
        journal.begin(ENGINE, {"torch": "2.11", "dtype": "float32", "batch_size": 16, "host": "b"})
        put(journal, make_ask("another"))
        for contents in (journal.contents, read_journal(tmp_path)):
            [engine] = contents.engines.values()
            assert [known["host"] for known in engine["provenance"]] == ["a", "b"]
        with pytest.raises(
            JournalError, match=r"dtype 'float32' \(now 'bfloat16'\), torch '2.11' \(now '2.13'\).*--reuse"
        ):
            journal.begin(ENGINE, {"torch": "2.13", "dtype": "bfloat16", "batch_size": 8})
        gained, lost = {"torch": "2.11", "dtype": "float32", "quantized": True}, {"torch": "2.11"}
        for other, said in ((lost, "dtype 'float32' (now None)"), (gained, "quantized None (now True)")):
            with pytest.raises(JournalError, match=re.escape(said)):
                journal.begin(ENGINE, other)
        journal.begin({**ENGINE, "weights": "another model"}, {"torch": "2.13"})
    with Journal(tmp_path, reuse=True) as journal:
        journal.begin(ENGINE, {"torch": "2.13", "dtype": "bfloat16"})
        assert "reused as asked" in journal.warnings[0]


HOLD = """
import sys, time
from composcope.evaluation.journal import Journal
journal = Journal(sys.argv[1])
print("open", flush=True)
time.sleep(60)
"""


def test_two_runs_on_one_journal_are_refused_and_the_holder_is_named(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        with pytest.raises(JournalError, match=f"pid {holder.pid} on .* is writing here"):
            Journal(tmp_path)
    finally:
        holder.kill()
        holder.wait()
    with Journal(tmp_path) as journal:  # the kernel released the lock of the killed process
        assert len(journal) == 0


def test_a_second_journal_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("pid 1234567 on a machine whose name is much longer than that of this one")
    holder = re.escape(f"pid {os.getpid()} on {socket.gethostname()}")
    with Journal(tmp_path), pytest.raises(JournalError, match=f"{tmp_path}: {holder} is writing here"):
        Journal(tmp_path)


def test_an_interrupt_in_the_middle_of_a_write_leaves_no_half_line(
    tmp_path: Path, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(tmp_path) as journal:
        put(journal, make_ask("one"))
        real = os.write

        def half(fd: int, data: memoryview) -> int:
            real(fd, bytes(data[:10]))
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(KeyboardInterrupt):
            put(journal, make_ask("two"))
        monkeypatch.setattr(os, "write", real)
        put(journal, make_ask("three"))
    contents = read_journal(tmp_path)
    assert len(contents.responses) == 2 and contents.warnings == []


FILL = """
import resource, sys
from composcope.errors import JournalError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.journal import Journal, ask_identity
if sys.argv[2] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
engine = {"weights": "w"}
with Journal(sys.argv[1]) as journal:
    try:
        for i in range(int(sys.argv[3])):
            ask = Ask(f"c{i}", "whole", f"prompt {i} " + "x" * 1000, "1", "text")
            key = ask_identity(ask, engine)
            if journal.get(key) is None:
                journal.record(key, ask, Response(key, "y" * 1000, "stop", 1, 1), engine)
    except JournalError as e:
        print(e, file=sys.stderr)
        sys.exit(1)
"""


def _fill(folder: Path, limit: int = 0, n: int = 1000) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", FILL, str(folder), str(limit), str(n)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_file_that_cannot_grow_stops_with_one_line_and_keeps_everything_before(tmp_path: Path) -> None:
    found = _fill(tmp_path, limit=100_000)
    assert found.returncode == 1
    assert "free some space and run the same command again" in found.stderr and found.stderr.count("\n") == 1
    kept = read_journal(tmp_path)
    assert len(kept.responses) > 20 and kept.warnings == []
    assert f"the {len(kept.responses)} answers before are kept" in found.stderr
    assert _fill(tmp_path, n=100).returncode == 0
    assert len(read_journal(tmp_path).responses) == 100


def test_a_full_disk_stops_with_one_line_and_keeps_everything_before(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        found = _fill(disk / "journal")
        assert found.returncode == 1 and "No space left on device" in found.stderr
        kept = read_journal(disk / "journal")
        assert len(kept.responses) > 20 and kept.warnings == []
        subprocess.run(["mount", "-o", "remount,size=2m", str(disk)], check=True)
        assert _fill(disk / "journal", n=100).returncode == 0
        assert len(read_journal(disk / "journal").responses) == 100
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full_before_the_first_line_stops_with_the_same_line(
    tmp_path: Path, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path) as journal:
        with monkeypatch.context() as m, pytest.raises(JournalError, match=r"free some space .* the 0 answers before"):
            m.setattr(journal, "_segment", full)
            put(journal, make_ask("a"))
        put(journal, make_ask("a"))
    assert len(read_journal(tmp_path).responses) == 1


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot be used as a journal"):
        Journal(tmp_path / "file" / "journal")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("nowhere")])
def test_only_regular_files_are_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "0001-x-1.jsonl")
    for read in (read_journal, Journal):
        with pytest.raises(JournalError, match=r"0001-x-1\.jsonl: not a regular file"):
            read(tmp_path)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001-x-1.jsonl").write_text(json.dumps({"schema": 9, "engine": "e"}) + "\n")
    with pytest.raises(JournalError, match="schema 9"):
        Journal(tmp_path)
    (tmp_path / "0001-x-1.jsonl").unlink()
    with Journal(tmp_path):  # a refused journal leaves no lock behind
        pass


def test_a_reader_beside_a_writer_sees_only_whole_answers(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    stop = threading.Event()
    seen: list[int] = []
    torn: list[str] = []

    def read() -> None:
        while not stop.is_set():
            contents = read_journal(tmp_path)
            seen.append(len(contents.responses))
            torn.extend(contents.warnings)

    with Journal(tmp_path) as journal:
        reader = threading.Thread(target=read)
        reader.start()
        for i in range(300):
            put(journal, make_ask(f"{i}" + "x" * 2000))
        stop.set()
        reader.join()
    assert seen == sorted(seen) and torn == []


def test_a_half_written_tail_is_no_news_while_its_writer_lives_and_torn_when_it_is_gone(
    tmp_path: Path, make_ask: Callable[..., Ask]
) -> None:
    with Journal(tmp_path) as journal:
        put(journal, make_ask("one"))
        [segment] = tmp_path.glob("*.jsonl")
        whole = segment.read_bytes()
        segment.write_bytes(whole + b'{"key": "half')
        beside = read_journal(tmp_path)
        assert len(beside.responses) == 1 and beside.warnings == []
        segment.write_bytes(whole + b'{"key": "half')
    after = read_journal(tmp_path)
    assert len(after.responses) == 1
    [warning] = after.warnings
    assert str(segment) in warning and "torn" in warning


def test_readers_that_look_whether_a_writer_is_there_never_keep_one_out(tmp_path: Path) -> None:
    with Journal(tmp_path):
        pass
    (tmp_path / "0001-torn.jsonl").write_bytes(b"{")
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            read_journal(tmp_path)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(100):
            Journal(tmp_path).close()
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_an_answer_costs_one_write_of_its_own_line_however_many_stand_before_it(
    tmp_path: Path, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, real = list[int](), os.write
    monkeypatch.setattr(os, "write", lambda fd, data: sizes.append(len(data)) or real(fd, data))
    with Journal(tmp_path) as journal:
        for i in range(2000):
            put(journal, make_ask(f"prompt {i:04}"), prompt_ids=tuple(range(40)), response_ids=tuple(range(10)))
    [segment] = tmp_path.glob("*.jsonl")
    assert len(sizes) == 2001 and len(set(sizes[1:])) == 1, "the head, and lines that are alike"
    assert sum(sizes) == segment.stat().st_size
    with Journal(tmp_path) as journal:
        assert len(journal) == 2000


def test_a_write_that_fails_midway_leaves_no_half_line_and_the_answers_before(
    tmp_path: Path, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def half(fd: int, data: bytes) -> int:
        write(fd, bytes(data[:10]))
        raise OSError(errno.EIO, "Input/output error")

    with Journal(tmp_path) as journal:
        put(journal, make_ask("a"))
        [segment] = tmp_path.glob("*.jsonl")
        before = segment.read_bytes()
        with monkeypatch.context() as m, pytest.raises(JournalError) as caught:
            m.setattr(os, "write", half)
            put(journal, make_ask("b"))
        for fact in (str(tmp_path), "Input/output error", "check the disk", "the 1 answers before"):
            assert fact in str(caught.value)
        assert segment.read_bytes() == before
        put(journal, make_ask("b"))
    found = read_journal(tmp_path)
    assert len(found.responses) == 2 and found.warnings == []


def _broken(*args: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_disk_that_cannot_sync_is_named_on_closing_unless_another_error_comes_first(
    tmp_path: Path, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    for raised, said in ((None, JournalError), (KeyError("first"), KeyError)):
        with monkeypatch.context() as m, pytest.raises(said) as caught, Journal(tmp_path) as journal:
            put(journal, make_ask(str(raised)))
            m.setattr(os, "fsync", _broken)
            if raised is not None:
                raise raised
        assert raised is caught.value or (str(tmp_path) in str(caught.value) and "sync" in str(caught.value))
        journal.close()  # once more, which is harmless: the lock is free again
    with Journal(tmp_path) as journal:
        assert len(journal) == 2
