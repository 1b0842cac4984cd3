"""Checksums of journal lines: whatever is done to a segment afterwards is noticed, and named."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from composcope.errors import JournalError
from composcope.evaluation import journal_files
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.journal import Journal, ask_identity, read_journal
from composcope.evaluation.journal_files import is_locked, seal

ENGINE = {"weights": "w"}
TEXTS = ['plain, "sum": "0123456789abcdef0123456789abcdef"}', "é \u2028", "three", "four"]


@pytest.fixture
def segment(tmp_path: Path, make_ask: Callable[..., Ask]) -> Path:
    """A segment of an engine's line and four answers."""
    with Journal(tmp_path) as journal:
        for n, text in enumerate(TEXTS):
            ask = make_ask(text, case=f"c{n}")
            key = ask_identity(ask, ENGINE)
            journal.record(key, ask, Response(key, text, "stop", 1, 1), ENGINE)
    [found] = tmp_path.glob("*.jsonl")
    return found


def altered(line: bytes) -> bytes:
    return line.replace(b'"text": "three"', b'"text": "THREE"')


def resealed(line: bytes) -> bytes:
    """As somebody writes it who computes the line's own checksum anew, without the lines before."""
    record = json.loads(altered(line))
    del record["sum"]
    return seal(json.dumps(record).encode(), "")[0]


def unsealed(line: bytes) -> bytes:
    record = json.loads(line)
    del record["sum"]
    return json.dumps(record).encode()


def rewritten(line: bytes) -> bytes:
    """As other programs write JSON."""
    return json.dumps(json.loads(line), separators=(",", ":"), sort_keys=True).encode()


def test_an_untouched_segment_has_nothing_to_say(segment: Path) -> None:
    # of the format: what another version wrote is read
    assert seal(b'{"a": 1}', "")[1] == "f2dd738ddcaaa44903eccaad5636e5cb"
    contents = read_journal(segment.parent)
    assert [r.text for r in contents.responses.values()] == TEXTS and contents.warnings == []
    assert set(contents.lines.values()) == {f"{segment}:{n}" for n in (2, 3, 4, 5)}


@pytest.mark.parametrize(
    ("change", "named", "kept"),
    [
        (lambda ls: [*ls[:3], altered(ls[3]), ls[4]], {"4 c2"}, {0, 1, 3}),
        (lambda ls: [*ls[:3], resealed(ls[3]), ls[4]], {"4 c2", "5 c3"}, {0, 1}),
        (lambda ls: [*ls[:3], unsealed(ls[3]), ls[4]], {"4 c2", "5 c3"}, {0, 1}),
        (lambda ls: [*ls[:3], ls[4]], {"4 c3"}, {0, 1}),
        (lambda ls: [*ls[:2], ls[3], ls[2], ls[4]], {"3 c2", "4 c1", "5 c3"}, {0}),
        (lambda ls: [*ls, ls[3]], {"6 c2"}, {0, 1, 2, 3}),
        (lambda ls: ls[1:], {"1 c0"}, {1, 2, 3}),
        (lambda ls: [unsealed(ls[0]), unsealed(ls[1]), *ls[2:]], {"1", "2 c0", "3 c1"}, {2, 3}),
        (lambda ls: [*ls[:2], ls[2][:40], altered(ls[3]), ls[4]], {"3", "4 c2"}, {0, 3}),
        (lambda ls: [*ls[:2], b"\0" + ls[2][1:], ls[3], ls[4]], {"3"}, {0, 2, 3}),
        (lambda ls: [rewritten(altered(line)) for line in ls], {"1", "2 c0", "3 c1", "4 c2", "5 c3"}, set()),
        (lambda ls: [*map(unsealed, ls[:4]), rewritten(ls[4])], {"1", "2 c0", "3 c1", "4 c2", "5 c3"}, set()),
        (lambda ls: [*(line + b"\r" for line in ls[:3]), altered(ls[3]) + b"\r", ls[4] + b" "], {"4 c2"}, {0, 1, 3}),
    ],
    ids=[
        "altered", "altered and sealed", "seal taken off", "taken out", "moved", "put in", "first taken out",
        "first seals taken off", "altered after a damaged line", "damaged with its seal left",
        "altered and all written without spaces", "all seals but one taken off", "altered under other line ends",
    ],
)  # fmt: skip
def test_what_was_done_to_a_line_is_noticed_and_the_ask_is_named(
    segment: Path, change: Callable[[list[bytes]], list[bytes]], named: set[str], kept: set[int]
) -> None:
    segment.write_bytes(b"\n".join(change(segment.read_bytes().splitlines())) + b"\n")
    contents = read_journal(segment.parent)
    said = {tuple(w.removeprefix(f"{segment}:").split(": ", 1)) for w in contents.warnings}
    cases = {line: text.partition("(case '")[2][:2] for line, text in said}
    assert {f"{line} {case}".strip() for line, case in cases.items()} == named
    assert {r.text for r in contents.responses.values()} == {TEXTS[n] for n in kept}, "the others are asked again"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\0" * 4096, b"[]\n7\nnull\n", b"\xef\xbb\xbf{}\n", b"[" * 99_999])
def test_a_segment_that_holds_nothing_of_use_costs_nothing_but_its_own_asks(segment: Path, content: bytes) -> None:
    segment.with_name("0000-first.jsonl").write_bytes(content)
    contents = read_journal(segment.parent)
    assert [r.text for r in contents.responses.values()] == TEXTS
    assert bool(contents.warnings) == bool(content.strip())


def test_a_journal_of_an_earlier_version_is_read_continued_and_said_once(
    segment: Path, make_ask: Callable[..., Ask]
) -> None:
    old = b"\n".join(map(unsealed, segment.read_bytes().splitlines())) + b"\n"
    segment.write_bytes(old)
    segment.with_name("0002-other.jsonl").write_bytes(old)
    with Journal(segment.parent) as journal:
        assert len(journal) == 4
        [warning] = journal.warnings
        assert segment.name in warning and "1 more segments" in warning and "no checksums" in warning
        journal.record("new", make_ask("new"), Response("new", "five", "stop", 1, 1), ENGINE)
    contents = read_journal(segment.parent)
    assert len(contents.responses) == 5 and contents.warnings == [warning]
    assert segment.read_bytes() == old


def test_a_writer_waits_for_a_reader_that_only_looks_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader holds the lock for microseconds; so long here as somebody waits for it."""
    reader = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(reader, fcntl.LOCK_SH)
    waits: list[float] = []
    monkeypatch.setattr(journal_files.time, "sleep", waits.append)
    with pytest.raises(JournalError, match="is writing here"):
        Journal(tmp_path)
    assert len(waits) == 9 and 0 < sum(waits) < 1
    monkeypatch.setattr(journal_files.time, "sleep", lambda _: fcntl.flock(reader, fcntl.LOCK_UN))
    with Journal(tmp_path):
        assert is_locked(tmp_path / "lock")
    os.close(reader)


def test_a_file_system_without_locks_is_named_and_nobody_is_said_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*args: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    assert not is_locked(tmp_path / "lock")
    with Journal(tmp_path):
        assert is_locked(tmp_path / "lock")
    assert not is_locked(tmp_path / "lock")
    monkeypatch.setattr(fcntl, "flock", none)
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert not is_locked(tmp_path / "lock")
    with pytest.raises(JournalError) as caught:
        Journal(tmp_path)
    assert str(tmp_path) in str(caught.value) and "No locks available" in str(caught.value)
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "nothing stays open"
