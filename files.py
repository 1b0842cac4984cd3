"""Writes files and folders completely or not at all, even on a power failure; hashes files and texts; tables as CSV.

A spreadsheet takes a cell of a CSV file for a formula if it begins with ``=``, ``+``, ``-`` or ``@`` and is not a
number, and answers of models may begin like that. ``to_csv`` writes an apostrophe before such cells, as spreadsheets do
to mark text, and ``read_csv`` removes it. Where a spreadsheet separates cells by semicolons, a cell may begin in the
middle of one of ours, behind a semicolon or a line end, so the apostrophe is also written there.
"""

import csv
import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import InputError, did_you_mean


def as_path(value: Any, what: str) -> Path:
    """A path from an argument of that name, with the home folder for ``~``. Raises ``InputError`` for what is none."""
    if isinstance(value, str | os.PathLike):
        if not os.fspath(value):
            raise InputError(f"{what}: is empty; give the path of a file or folder")
        return at_home(value)
    raise InputError(f"{what}: {type(value).__name__}; give the path of a file or folder")


def at_home(path: str | os.PathLike[str]) -> Path:
    """The path with the home folder for ``~``, or as it is if there is no user of that name."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def beside(name: str | Path, wanted: Callable[[Path], bool] = Path.is_file) -> str:
    """``; did you mean ...?`` with that ``wanted`` file beside a missing one whose name is nearest to its name."""
    from difflib import get_close_matches

    missing = Path(name)
    try:
        found = [p for p in at_home(missing).parent.iterdir() if wanted(p)]
    except OSError:  # the folder above is missing, too, or closed to us
        return ""
    # A common suffix makes no two names alike.
    there = [p.name for p in found if p.is_dir() or get_close_matches(missing.stem, [p.stem])]
    return did_you_mean(missing.name, there, str(name).rstrip("/").removesuffix(missing.name))


def write_text(path: str | Path, text: str) -> Path:
    """Write a file atomically: a reader sees the old content or the new one, never half of it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        return put_in_place(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace the text between two marks of a page; raises ``InputError`` if they are not there once each."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    if old.count(begin) != 1 or old.count(end) != 1:
        raise InputError(
            f"{path}: must contain the lines {begin!r} and {end!r} exactly once; add them where the table should go"
        )
    before, rest = old.split(begin)
    write_text(path, f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def put_in_place(made: Path, path: Path) -> Path:
    """Rename a finished file or folder to its final name, replacing a file or an empty folder, and sync the name."""
    made.replace(path)
    sync_folder(path.parent)
    return path


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk; without this, a power failure may lose a file that was itself synced."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno != errno.EINVAL:  # a file system that cannot sync folders
            raise
    finally:
        os.close(fd)


def file_sha256(path: str | Path) -> str:
    """sha256 of a file. This process remembers it by path, size and modification time."""
    path = Path(path).resolve()
    stat = path.stat()
    return _sha256_of(str(path), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256_of(path: str, size: int, mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_hash(parts: Iterable[str]) -> str:
    """sha256 of several texts. The separator distinguishes ("ab", "c") from ("a", "bc")."""
    return hashlib.sha256("".join(f"{part}\x00" for part in parts).encode("utf-8", "surrogatepass")).hexdigest()


def sweep(folder: Path) -> None:
    """Remove half-finished files of killed processes from a folder that this process has locked."""
    for path in folder.rglob(".*.tmp"):
        if path.is_file():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)


def finite(value: Any) -> Any:
    """The value as strict JSON has it: numbers of numpy and torch become plain ones, NaN and infinities null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [finite(v) for v in value]
    return value


def strict_json(value: Any, **layout: Any) -> str:
    """A value as strict JSON: NaN and infinities become null, values that JSON does not know plain ones or texts.

    Half a surrogate pair, which no file can hold, is written as its escape. ``layout`` are arguments of ``json.dumps``.
    """
    options: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "default": _plain, **layout}
    try:  # most values are plain JSON, and walking through 20,000 cases takes longer than the rest
        text = json.dumps(value, **options)
    except (ValueError, TypeError):
        text = json.dumps(finite(value), **options)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any) -> Any:
    """A value that is not of JSON's own types."""
    known = hasattr(value, "tolist") or isinstance(value, Mapping | set | frozenset)
    return finite(value) if known else str(value)


Row = dict[str, Any]
"""A row of a table, by column."""
_FORMULA = re.compile(r"'*([\t\r\n]|[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]).", re.DOTALL)
"""Some programs skip spaces, and read the wide forms of East Asian keyboards as the ordinary ones."""
_PIECES = re.compile(r"(?:^|(?<=[;\r\n]))[^;\r\n]*[;\r\n]?|[;\r\n]", re.DOTALL)
"""A text, cut behind each semicolon and line end."""


def to_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as CSV. Columns are in order of first appearance unless given; None becomes an empty cell."""
    rows = list(rows)
    names = list(columns or dict.fromkeys(k for row in rows for k in row))
    return _line(names) + "".join(_line([row.get(name) for name in names]) for row in rows)


def _line(cells: Iterable[Any]) -> str:
    text = io.StringIO(newline="")
    # The writer quotes a cell with a line end only if its own line terminator contains that character.
    csv.writer(text, lineterminator="\r\n").writerow([inert(cell) for cell in cells])
    return text.getvalue()[:-2] + "\n"


def read_csv(path: str | Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of a table written by ``to_csv``, like ``csv.DictReader``, with the original cells.

    A spreadsheet may have saved it with semicolons or tabs between the cells.
    """
    usual = csv.field_size_limit(1 << 30)  # a response may be longer than Python's limit
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            reader = csv.DictReader(file, delimiter=next((d for d in ",;\t" if d in head), ","))
            rows = [{k: _as_it_was(v) if isinstance(v, str) else v for k, v in row.items()} for row in reader]
            return list(reader.fieldnames or ()), rows
    finally:
        csv.field_size_limit(usual)


def inert(value: Any) -> Any:
    """A cell's value, with text that a spreadsheet would take for a formula marked as text."""
    if not isinstance(value, str):
        return value
    first, *later = _PIECES.findall(value) or [""]
    text = first + "".join(map(_marked, later))
    try:
        float(text)
    except ValueError:
        return _marked(text)
    return text


def _marked(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def _as_it_was(cell: str) -> str:
    first, *later = _PIECES.findall(_unmarked(cell)) or [""]
    return first + "".join(map(_unmarked, later))


def _unmarked(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def short_name(name: str) -> str:
    """``organism:control`` -> ``control``; ``/models/qwen3/`` -> ``qwen3``; ``cases.jsonl`` -> ``cases``;
    ``owner/model@http://host/v1`` -> ``model``.
    """
    last = name.partition("@http")[0].removeprefix("organism:").rstrip("/").rsplit("/", 1)[-1]
    return last.rsplit(".", 1)[0] if last.endswith((".jsonl", ".json", ".csv")) else last


def safe_name(text: str, otherwise: str) -> str:
    """The text as part of a file's name: other characters than letters, digits, ``.``, ``_`` and ``-`` become ``-``."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in text) or otherwise
