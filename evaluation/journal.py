"""The journal: an append-only record of all responses, which serves as cache, resume, shard and merge in one.

    with Journal("run/journal") as journal: ...

A journal is a folder of JSON-lines segments. Every writer starts a new segment and appends each response as one line in
one system call as soon as it arrives. Written lines never change; their checksums (``chain``) show where one did.
Reading merges all segments by key, so a killed run continues when the same command runs again, and the segments of
several machines are merged by copying them into one folder. The key (``ask_identity``) holds everything that decides an
answer; versions, dtype and engine are provenance: written beside the answers and compared on resume. Knows nothing
about grading.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import JournalError
from ..files import sync_folder
from .asks import Ask, Response
from .journal_files import Chain, acquire, is_locked, seal

SCHEMA = 1
SYNC_SECONDS = 5.0
# Recorded, but a difference is not a reason to distrust earlier answers.
VOLATILE = frozenset({"batch_size", "host", "device_name", "base_url", "concurrency", "capabilities"})
WHEN_KNOWN = frozenset({"answered_as"})
"""Compared only where both sides state it."""

_AGAIN = "its ask is asked again if no other line answers it"
_REQUEST = ("prompt", "prompting", "max_tokens", "stop", "temperature", "seed", "repeat")


def ask_identity(ask: Ask, engine_identity: Mapping[str, str]) -> str:
    """Identity of an ask (sha256, hex): equal exactly when the same model is asked the same thing in the same way.

    Holds the engine's identity (weights hash or model id and revision, tokenizer and chat-template hash), the full
    prompt and how it is put, every sampling parameter, seed and repeat. Case, role, gold answer and format are not
    in it: an atom shared by many cases is asked once.
    """
    request = [SCHEMA, sorted(engine_identity.items()), [getattr(ask, name) for name in _REQUEST]]
    if ask.thinking is not None:
        request.append({"thinking": ask.thinking})
    if ask.begun:
        request.append({"begun": ask.begun})
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()


def engine_digest(engine_identity: Mapping[str, str]) -> str:
    """Short name of an engine inside a journal."""
    return hashlib.sha256(json.dumps(sorted(engine_identity.items())).encode()).hexdigest()[:16]


@dataclass
class Contents:
    """All segments of a journal, merged by key."""

    responses: dict[str, Response] = field(default_factory=dict)
    """Answers by key; where an ask was answered twice, the first."""
    failures: dict[str, Response] = field(default_factory=dict)
    """Infrastructure failures never followed by an answer; they are asked again on resume."""
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By engine digest: its identity and every provenance seen."""
    warnings: list[str] = field(default_factory=list)
    """Torn tails, damaged and altered lines and conflicting answers, one line each."""
    lines: dict[str, str] = field(default_factory=dict)
    """By key, the file and line of the answer that counts."""
    unsealed: list[str] = field(default_factory=list)
    """Segments without checksums."""

    def put(self, key: str, response: Response) -> None:
        """Keep a new response; an answer ends the failures before it, and never replaces an earlier answer."""
        if response.finish_reason != "error":
            self.failures.pop(key, None)
            self.responses.setdefault(key, response)
        elif key not in self.responses:
            self.failures[key] = response


def read_journal(folder: str | Path) -> Contents:
    """Read a journal without locking it; safe beside a writer.

    A torn last line (the writer was killed in the middle of it) and damaged lines are left out and said in
    ``warnings``; the asks concerned are simply asked again. While a writer holds the journal's lock, a last line
    without its end is still being written (the kernel shows an append page by page): it is left out without a
    warning. Raises ``JournalError`` for another schema.
    """
    return _read(Path(folder), growing=lambda: is_locked(Path(folder) / "lock"))


def segments(folder: Path) -> list[Path]:
    """The files of a journal, in the order in which they were begun.

    Raises ``JournalError`` for anything but a regular file: to read a pipe would wait for its writer for ever.
    """
    found = sorted(folder.glob("*.jsonl"))
    for path in found:
        if not path.is_file():
            raise JournalError(f"{path}: not a regular file, so no segment of a journal; move it out of the folder")
    return found


def _read(folder: Path, growing: Callable[[], bool]) -> Contents:
    contents = Contents()
    for path in segments(folder):
        for where, record in _records(path, contents, growing):
            _merge(record, where, contents)
    if contents.unsealed:
        first, n = contents.unsealed[0], len(contents.unsealed)
        which = f"{first} holds" if n == 1 else f"{first} and {n - 1} more segments hold"
        contents.warnings.append(
            f"{folder}: {which} no checksums (written by an earlier version): an altered answer would not be noticed"
        )
    return contents


def _records(path: Path, contents: Contents, growing: Callable[[], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    # Bytes are split at b"\n" only: model text may hold U+2028 and other line separators.
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        # Either the writer is in the middle of its last line, or it ended the line and left since this look, or it
        # was stopped there.
        data = data[: data.rfind(b"\n") + 1] if growing() else path.read_bytes()
    lines = data.split(b"\n")
    chain = Chain(lines)
    for n, line in enumerate(lines, 1):
        if not line:
            continue
        wrong = chain.check(line)
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError):
            torn = "torn last line left out (the writer was stopped in the middle of it)"
            what = torn if n == len(lines) else "damaged line left out"
            contents.warnings.append(f"{path}:{n}: {what}; {_AGAIN}")
            continue
        if wrong is not None:
            contents.warnings.append(f"{path}:{n}: line left out ({wrong}); {_named(record)} is asked again")
            continue
        yield f"{path}:{n}", record
    if not chain.sealed and data.strip():
        contents.unsealed.append(path.name)


def _named(record: Mapping[str, Any]) -> str:
    if "key" not in record:
        return "what was asked of this engine"
    return f"ask {str(record['key'])[:12]} (case {record.get('case')!r}, role {record.get('role')!r})"


def _merge(record: dict[str, Any], where: str, contents: Contents) -> None:
    if record.get("schema", SCHEMA) != SCHEMA:
        raise JournalError(f"{where}: schema {record['schema']!r}, this version reads {SCHEMA}; use a new --out")
    if "provenance" in record:
        if not isinstance(record.get("engine"), str) or not isinstance(record.get("identity"), dict):
            contents.warnings.append(f"{where}: damaged line left out (it names no engine)")
            return
        known = contents.engines.setdefault(record["engine"], {"identity": record["identity"], "provenance": []})
        if record["provenance"] not in known["provenance"]:
            known["provenance"].append(record["provenance"])
        return
    try:
        key, raw = str(record["key"]), record["response"]
        ids = {name: tuple(raw[name]) for name in ("prompt_ids", "response_ids") if raw.get(name) is not None}
        response = Response(**{**raw, **ids, "ask": record["key"]})
        _check_response(response)
    except (KeyError, TypeError, AttributeError) as e:
        contents.warnings.append(f"{where}: damaged line left out ({e}); {_AGAIN}")
        return
    contents.put(key, response)
    if response.finish_reason == "error":
        return
    contents.lines.setdefault(key, where)
    if contents.responses[key].text != response.text:
        contents.warnings.append(f"{where}: {_named(record)} has two different answers; the earlier one counts")


def _check_response(response: Response) -> None:
    """Raises ``TypeError`` for fields that no engine writes so: a damaged line is not an answer."""
    if not isinstance(response.text, str):
        raise TypeError(f"text is {response.text!r}")
    if response.finish_reason not in ("stop", "length", "error"):
        raise TypeError(f"finish_reason is {response.finish_reason!r}")
    for name in ("prompt_tokens", "response_tokens"):
        if not isinstance(getattr(response, name), int):
            raise TypeError(f"{name} is {getattr(response, name)!r}")
    if not isinstance(response.provenance, dict | None) or not isinstance(response.error, str | None):
        raise TypeError("provenance or error is of another type")
    for name in ("prompt_ids", "response_ids"):
        if not set(map(type, getattr(response, name) or ())) <= {int}:
            raise TypeError(f"{name} hold something other than whole numbers")


class Journal:
    """A journal open for asking: one writer at a time, holding the lock until closed. Use as a context manager."""

    def __init__(self, folder: str | Path, *, reuse: bool = False, lock: bool = True) -> None:
        """Lock and read ``folder``. ``reuse`` accepts answers that were made under another provenance.

        ``lock=False`` is for a worker that writes a separate segment for a process that holds the lock.

        Raises ``JournalError`` when another process writes here or the folder cannot be used.
        """
        self.folder = Path(folder)
        self.reuse = reuse
        self._fd: int | None = None
        self._size = 0
        self._sum = ""
        self._synced = time.monotonic()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = acquire(self.folder / "lock") if lock else os.open(self.folder, os.O_RDONLY)
        except OSError as e:
            raise JournalError(f"{self.folder}: cannot be used as a journal ({e.strerror}); give another --out") from e
        try:
            # Under the lock an unfinished tail is torn; without it, another writer may still be at work.
            self.contents = _read(self.folder, growing=lambda: not lock)
        except BaseException:
            os.close(self._lock)
            raise
        # The line that introduces an engine is written with its first answer, so that looking writes nothing.
        self._pending: dict[str, dict[str, Any]] = {}
        self._announced: set[str] = set()

    @property
    def warnings(self) -> list[str]:
        return self.contents.warnings

    def __len__(self) -> int:
        return len(self.contents.responses)

    def get(self, key: str) -> Response | None:
        """The answer to an ask, or None when it has to be asked (infrastructure failures are asked again)."""
        return self.contents.responses.get(key)

    def begin(self, identity: Mapping[str, str], provenance: Mapping[str, Any]) -> None:
        """Register an engine before its answers are used or written.

        Raises ``JournalError`` when the journal holds answers of the same model made under another provenance
        (library versions, dtype, engine), unless opened with ``reuse=True``; then it is a warning.
        """
        digest = engine_digest(identity)
        present = json.loads(json.dumps(dict(provenance), default=str))
        before = self.contents.engines.setdefault(digest, {"identity": dict(identity), "provenance": []})
        for earlier in before["provenance"]:
            if changed := _changes(earlier, present):
                message = f"{self.folder}: holds answers made with {changed}"
                if not self.reuse:
                    raise JournalError(f"{message}; pass --reuse to continue with them, or give a new --out")
                if message not in self.warnings:
                    self.warnings.append(f"{message}; reused as asked")
        if present not in before["provenance"]:
            before["provenance"].append(present)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        begun = {"schema": SCHEMA, "engine": digest, "identity": dict(identity), "provenance": present, "time": now}
        self._pending.setdefault(digest, begun)

    def record(self, key: str, ask: Ask, response: Response, identity: Mapping[str, str]) -> None:
        """Write one response; when this returns, a killed process no longer loses it.

        Raises ``JournalError`` when it cannot be written (disk full, ...); everything before is kept.
        """
        if response.finish_reason == "error" and self.contents.failures.get(key) == response:
            return  # the same failure again, read back when a run is scored without its model
        digest = engine_digest(identity)
        if digest not in self._pending:
            self.begin(identity, {})
        if digest not in self._announced:
            self._write(self._pending[digest])
            self._announced.add(digest)
        request = {name: getattr(ask, name) for name in _REQUEST}
        if ask.thinking is not None:
            request["thinking"] = ask.thinking
        if ask.begun:
            request["begun"] = ask.begun
        said = {k: v for k, v in vars(response).items() if v is not None and k != "ask"}
        names = {"key": key, "engine": digest, "case": ask.case, "role": ask.role}
        self._write({**names, "request": request, "response": said})
        self.contents.put(key, response)

    def _write(self, record: dict[str, Any]) -> None:
        # surrogatepass: a server may send half a surrogate pair, and json.loads reads it back the same way.
        plain = json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
        sealed, digest = seal(plain, self._sum)
        line = sealed + b"\n"
        try:
            fd = self._segment()
            if os.fstat(fd).st_size != self._size:
                os.ftruncate(fd, self._size)  # an interrupted write left half a line
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(fd, rest) :]
            self._size += len(line)
            self._sum = digest
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._sync()
        except OSError as e:
            if self._fd is not None:
                with contextlib.suppress(OSError):  # the reader leaves a torn tail out
                    os.ftruncate(self._fd, self._size)
            full = e.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
            fix = "free some space" if full else "check the disk"
            raise JournalError(
                f"{self.folder}: cannot write ({e.strerror}); {fix} and run the same command again: "
                f"the {len(self)} answers before are kept"
            ) from e

    def _segment(self) -> int:
        if self._fd is None:
            taken = [int(p.name[:4]) for p in self.folder.glob("[0-9][0-9][0-9][0-9]-*.jsonl")]
            name = f"{max(taken, default=0) + 1:04d}-{socket.gethostname()}-{os.getpid()}.jsonl"
            self._fd = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            sync_folder(self.folder)
        return self._fd

    def _sync(self) -> None:
        if self._fd is not None:
            os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and release the lock. Closing twice is harmless."""
        if self._lock < 0:
            return
        try:
            self._sync()
        except OSError as e:
            raise JournalError(f"{self.folder}: cannot sync ({e.strerror}); check the disk") from e
        finally:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except JournalError:
            if error is None:
                raise


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    # Which name a server signs with is only known once it has answered.
    unknown = WHEN_KNOWN - (before.keys() & now.keys())
    names = sorted((before.keys() | now.keys()) - VOLATILE - unknown)
    return ", ".join(f"{n} {before.get(n)!r} (now {now.get(n)!r})" for n in names if before.get(n) != now.get(n))
