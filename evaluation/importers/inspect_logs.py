"""inspect_ai logs: the JSON form, and ``.eval``, a zip archive of the same objects.

``{version, status, eval: {task, model, ...}, results, samples: [{id, epoch, input, target, output, scores,
metadata}]}``; in an archive ``header.json`` and ``samples/ID_epoch_N.json``. Verdicts are C, I, P (partially) and N (no
answer) or numbers. Case and role are read from a sample's metadata (``case``, ``role``) or from the fields named.
"""

import importlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from ...errors import InputError
from .. import text_files
from ..asks import Outcome
from ..graded import Graded
from ..options import letter_of
from .base import Imported, Options, Stored, contradiction, depth_of, described, outcome_of, place, refuse_twice

WHAT = "a log of inspect_ai (.json or .eval)"
_VERDICTS: dict[str, tuple[Outcome, str | None]] = {
    "C": ("correct", None),
    "I": ("incorrect", None),
    "P": ("invalid", "partially correct"),
    "N": ("invalid", "no-answer"),
}

_CUT_OFF = ("max_tokens", "model_length")
"""Stop reasons for a used-up token budget or context."""


def read_inspect(path: str | Path, options: Options = Options()) -> Imported:  # noqa: B008 (frozen)
    """Rows of one log; ``options.scorer`` chooses among several scorers. Epochs become repeats.

    Raises ``InputError`` for a file of another shape, and for a score that is not a right-or-wrong verdict.
    """
    samples = _load(path)
    header = next(samples)
    about = header.get("eval") or {}
    task = str(about.get("task") or Path(path).stem)
    model = options.model or about.get("model")
    rows, warnings, stored = [], [], []
    for sample in samples:
        where = f"{path}: sample {sample.get('id')!r}, epoch {sample.get('epoch', 1)}"
        rows.append(_row(sample, task, model, options, where))
        stored.append(_stored(sample, where))
    if not rows:
        raise InputError(f"{path}: holds no samples; write the log with its samples (log_samples)")
    refuse_twice(rows, path, "name the metadata that holds them with --case-field and --role-field")
    status = header.get("status")
    if status not in (None, "success"):
        warnings.append(f"{path}: the evaluation's status is {status!r}; samples may be missing")
    return Imported(rows, _contradictions(header, rows, path), warnings, stored)


def _stored(sample: Mapping[str, Any], where: str) -> Stored | None:
    """The model's completion with the target; None where the sample has neither, or failed."""
    output = sample.get("output")
    output = output if isinstance(output, dict) else {}
    first = next(iter(output.get("choices") or ()), None)
    choice = first if isinstance(first, dict) else {}
    text = output["completion"] if "completion" in output else _said(choice.get("message"))
    target = sample.get("target")
    golds = tuple(str(t).strip() for t in (target if isinstance(target, list) else [target]) if t is not None)
    golds = tuple(g for g in golds if g)
    if sample.get("error") or not isinstance(text, str) or not golds:
        return None
    stopped = choice.get("stop_reason")
    options = tuple(zip(ascii_uppercase, map(str, sample.get("choices") or ()), strict=False))
    options = options if len(golds) == 1 and letter_of(golds[0], options) else ()
    kind, finish = "choice" if options else None, "length" if stopped in _CUT_OFF else "stop"
    return Stored(text, golds, kind, finish_reason=finish, where=where, options=options)


def _said(message: Any) -> str | None:
    """The text of a message, whose content may be a list of parts; a log may leave the completion out and have it only
    there."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
        return "\n".join(str(p.get("text", "")) for p in parts if isinstance(p, dict) and p.get("type") == "text")
    return content


def _load(path: str | Path) -> Iterator[dict[str, Any]]:
    """The header, then the samples, one at a time: together they may be larger than the memory."""
    found = text_files.existing(path, f"give {WHAT}")
    try:
        if zipfile.is_zipfile(found):
            yield from _archive(found)
            return
        raw = text_files.document(found, f"give {WHAT}")
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as e:
        raise InputError(f"{path}: cannot be read ({type(e).__name__}: {e}); give {WHAT}") from e
    except NotImplementedError as e:
        fix = "install zstandard (pip install zstandard), or write JSON: inspect log convert --to json --output-dir DIR"
        raise InputError(f"{path}: {e}; {fix} {path}") from e
    if not isinstance(raw, dict) or not isinstance(raw.get("eval"), dict):
        raise InputError(f"{path}: field 'eval' is missing; give {WHAT}")
    yield raw
    yield from (_object(sample, path) for sample in raw.get("samples") or [])


def _archive(path: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        # An interrupted evaluation has its start record only.
        first = "header.json" if "header.json" in names else "_journal/start.json"
        inside = sorted(n for n in names if n.startswith("samples/") and n.endswith(".json"))
        check_sizes(archive, [first, *inside])
        for name in (first, *inside):
            where = f"{path}: {name}"
            content = read_member(archive, name)
            _check_objects(content, name)
            raw = text_files.parse(text_files.decoded(content, where), where, f"give {WHAT}")
            yield _object(raw, path)


def _object(value: Any, path: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{path}: header or samples are not objects; give {WHAT}")
    return value


def _row(sample: Mapping[str, Any], task: str, model: str | None, options: Options, where: str) -> Graded:
    metadata = sample.get("metadata") or {}
    case, role = place({"id": sample.get("id"), **metadata}, f"{task}-{sample.get('id')}", options, where)
    name, score = _score(sample, options.scorer, where)
    outcome, reason = _verdict(sample, score, name, where)
    answer = (score or {}).get("answer")
    target = sample.get("target")
    return Graded(
        case, role, outcome, task, model=model, reason=reason, match=name, repeat=int(sample.get("epoch", 1)) - 1,
        answer=None if answer is None else str(answer),
        gold=" | ".join(map(str, target)) if isinstance(target, list) else None if target is None else str(target),
        depth=depth_of(metadata), **described(metadata),
    )  # fmt: skip


def _score(sample: Mapping[str, Any], wanted: str | None, where: str) -> tuple[str | None, Mapping[str, Any] | None]:
    scores = sample.get("scores") or {}
    if wanted is not None:
        if scores and wanted not in scores:
            raise InputError(f"{where}: --scorer {wanted}: no such scorer; it has {', '.join(scores)}")
        return wanted, scores.get(wanted)
    if len(scores) > 1:
        raise InputError(f"{where}: has the scorers {', '.join(scores)}; choose one with --scorer")
    return next(iter(scores.items()), (None, None))


def _verdict(
    sample: Mapping[str, Any], score: Mapping[str, Any] | None, name: str | None, where: str
) -> tuple[Outcome, str | None]:
    if sample.get("error"):
        error = sample["error"]
        text = error.get("message") if isinstance(error, dict) else error
        return "invalid", f"error: {' '.join(str(text).split())[:200]}"
    if score is None:
        return "invalid", "not scored"
    value = score.get("value")
    if isinstance(value, str) and value in _VERDICTS:
        return _VERDICTS[value]
    outcome, reason = outcome_of(value, str(name), where)
    return outcome, reason and f"score {value!r}"


def _contradictions(header: Mapping[str, Any], rows: list[Graded], path: object) -> list[dict[str, Any]]:
    """The stored accuracy against the samples, where each was scored once and none is left out."""
    if any(row.repeat for row in rows) or any(row.outcome == "invalid" for row in rows):
        return []
    found = []
    results = header.get("results") or {}
    name = rows[0].match
    for entry in results.get("scores") or []:
        metrics = entry.get("metrics") or {}
        stored = (metrics.get("accuracy") or {}).get("value")
        if entry.get("name") == name and isinstance(stored, int | float):
            value = sum(row.outcome == "correct" for row in rows) / len(rows)
            if abs(value - stored) > 1e-6:
                problem = f"{len(rows)} samples are in the log"
                found.append(contradiction(str(path), f"results.{name}.accuracy", stored, value, problem))
    total = results.get("completed_samples")
    if total is not None and total != len(rows):
        found.append(contradiction(str(path), "results.completed_samples", total, len(rows), "samples in the log"))
    return found


ZSTANDARD = 93
"""Compression method in a zip archive (APPNOTE.TXT, 4.4.5)."""
_HEADER = struct.Struct("<4s5H3I2H")
MOST_BYTES = 1 << 30
"""Most unpacked bytes of all members that are read from one archive."""
MOST_PER_MEMBER = 1 << 26
"""A sample with its whole transcript has some megabytes."""


def check_sizes(archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Raises ``zipfile.BadZipFile`` where members unpack to more than may be read."""
    total = 0
    for name in names:
        size = archive.getinfo(name).file_size
        total += size
        if size > MOST_PER_MEMBER or total > MOST_BYTES:
            what, most = (name, MOST_PER_MEMBER) if size > MOST_PER_MEMBER else ("its members together", MOST_BYTES)
            raise zipfile.BadZipFile(f"{what} would unpack to more than {most >> 20} MB, the most that is read")


MOST_OBJECTS, MOST_VALUES = 2_000_000, 8_000_000
"""Most objects and lists, and most values, of one member: empty ones take three bytes in it and 64 in memory."""


def _check_objects(content: bytes, name: str) -> None:
    """Raises ``zipfile.BadZipFile`` for a member whose values would take far more memory than its text."""
    for what, marks, most in (("objects and lists", b"{[", MOST_OBJECTS), ("values", b",", MOST_VALUES)):
        count = sum(content.count(mark) for mark in marks)
        if count > most:
            raise zipfile.BadZipFile(f"{name} has about {count:,} {what}, and at most {most:,} are read")


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member, checked against its checksum; never more is unpacked than the archive states.

    Raises ``KeyError`` for a name that is not there, ``NotImplementedError`` for a compression that nothing here
    reads, ``zipfile.BadZipFile`` for damaged content and for too much of it.
    """
    info = archive.getinfo(name)
    check_sizes(archive, [name])
    if info.compress_type != ZSTANDARD:
        with archive.open(info) as member:
            # Not ``archive.read``, which unpacks all there is and then looks at the size.
            return member.read(info.file_size + 1)
    content = _decompress(_raw(archive, info), info.file_size)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {name!r}")
    return content


def _raw(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The compressed bytes, which follow a local header of their own length."""
    file = archive.fp
    if file is None:
        raise zipfile.BadZipFile("archive is closed")
    file.seek(info.header_offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[:4] != b"PK\3\4":
        raise zipfile.BadZipFile(f"Bad magic number for file header of {info.filename!r}")
    *_, name_length, extra_length = _HEADER.unpack(header)
    file.seek(info.header_offset + _HEADER.size + name_length + extra_length)
    return file.read(info.compress_size)


ZSTANDARD_READERS: dict[str, Callable[[Any, bytes, int], bytes]] = {
    "compression.zstd": lambda found, raw, size: found.ZstdDecompressor().decompress(raw, size + 1),
    "zstandard": lambda found, raw, size: found.ZstdDecompressor().stream_reader(raw).read(size + 1),
    "pyarrow": lambda found, raw, size: found.Codec("zstd").decompress(raw, size, asbytes=True),
}
"""How each module that may be there unpacks; pyarrow comes with ``datasets``."""


def _decompress(raw: bytes, size: int) -> bytes:
    for module, unpack in ZSTANDARD_READERS.items():
        try:
            found = importlib.import_module(module)
        except ImportError:
            continue
        try:
            return unpack(found, raw, size)
        except Exception as e:  # each library has its own errors
            raise zipfile.BadZipFile(f"Zstandard content cannot be read ({e})") from e
    raise NotImplementedError("compressed with Zstandard, which this Python cannot read")
