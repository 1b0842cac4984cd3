"""Reading of text, JSON and CSV from outside; every problem is one line that names file and line.

    for where, row in objects("items.jsonl", "JSON lines with id and question"): ...

Problems are text that is not JSON, bytes that are not UTF-8, brackets nested too deeply for Python, numbers of
thousands of digits, and names that occur twice in one object (Python would silently keep the last).
"""

import ast
import csv
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeVar

from ..errors import InputError
from ..files import at_home, beside

ONE_A_LINE = "one object a line"
_SHOWN = 40
"""Characters of a line that is not JSON."""
_HEADER = re.compile(r"\w[\w .()/-]*([,;\t](?! )[\w .()/-]*)+")
"""The first line of a CSV file: names without spaces after the commas."""
_CELL = re.compile(r'(?P<quoted>"[^"]*(?:""[^"]*)*+")(?:[ \t]+(?=[,\r\n]|\Z))?|[^,\r\n]+')
"""A cell of a CSV file; the spaces behind one in quotes belong to no cell."""
T = TypeVar("T")


class DuplicateKeyError(ValueError):
    """A name that occurs twice in one JSON object."""


def existing(path: str | Path, fix: str) -> Path:
    """The path of an existing file; raises ``InputError``, ended by ``fix``, for a missing file and for a folder."""
    found = at_home(path)
    if found.is_dir():
        raise InputError(f"{path}: is a folder, not a file; {fix}")
    if not found.is_file():
        raise InputError(f"{path}: no such file; {fix}{beside(found)}")
    return found


_OTHERWISE = {
    b"\x1f\x8b": "is compressed with gzip; unpack it first (gunzip)",
    b"PK\x03\x04": "is a zip archive, as Excel's files are; unpack it, or save the table as CSV in UTF-8",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}
"""What a file is that begins so and is no UTF-8, and what to do."""


def decoded(content: bytes, where: str) -> str:
    """UTF-8 text (a byte-order mark is dropped). Raises ``InputError`` naming the line that is not."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        if found := next((said for begins, said in _OTHERWISE.items() if content.startswith(begins)), None):
            raise InputError(f"{where}: {found}") from e
        line = content.count(b"\n", 0, e.start) + 1
        raise InputError(
            f"{where}:{line}: not UTF-8 (byte {content[e.start]:#04x} at offset {e.start}); save the file as UTF-8 text"
        ) from e


def text(path: str | Path, fix: str) -> str:
    """The text of a file. Raises ``InputError`` where there is no such file, or no UTF-8 in it."""
    found = decoded(existing(path, fix).read_bytes(), str(path))
    return found.replace("\r\n", "\n").replace("\r", "\n") if "\r" in found else found


def parse(source: str, where: str, fix: str = ONE_A_LINE, *, line: int | None = None) -> Any:
    """The value of a JSON text; ``where`` is its file, ``line`` its line there (without, the line of the error).

    Raises ``InputError`` naming file, line, what is wrong and ``fix``.
    """
    try:
        return _DECODER.decode(source)
    except (ValueError, RecursionError):  # once more, for an error that names the place: most lines have none
        with _refusing(where, fix, line):
            return _DECODER.decode(source)


@contextmanager
def _refusing(where: str, fix: str, line: int | None = None, item: int | None = None) -> Iterator[None]:
    place = f"{where}: item {item}" if item is not None else where if line is None else f"{where}:{line}"
    try:
        yield
    except json.JSONDecodeError as e:
        what = f"{e.msg} at column {e.colno}{_begins(e)}"
        raise InputError(f"{where}:{line or e.lineno}: not valid JSON ({what}); {fix}") from e
    except DuplicateKeyError as e:
        raise InputError(f"{place}: field {e} occurs twice in one object; keep one of them") from e
    except RecursionError as e:
        raise InputError(f"{place}: JSON nested too deeply to be read; {fix}") from e
    except ValueError as e:  # Python reads no number of more than 4,300 digits
        raise InputError(f"{place}: JSON that cannot be read ({str(e).split(';')[0]}); {fix}") from e


def _begins(e: json.JSONDecodeError) -> str:
    """What stands in place of JSON, if not even the first character is right."""
    if e.doc[: e.pos].strip() or not (first := e.doc.strip().split("\n")[0]):
        return ""
    shown = repr(first if len(first) <= _SHOWN else f"{first[:_SHOWN]}...")
    return f": {shown}{', which looks like CSV' if _HEADER.fullmatch(first) else ''}"


def lines(
    path: str | Path, missing: str, fix: str = ONE_A_LINE, *, comments: bool = False
) -> Iterator[tuple[str, Any]]:
    """(file:line, value) of every JSON line that is not blank; ``missing`` ends the error where there is no file.

    ``comments``: lines that begin with ``#`` are left out. Raises ``InputError`` as ``text`` and ``parse`` do.
    """
    source = text(path, missing)
    yield from _lines(re.sub(r"(?m)^[ \t]*#.*$", "", source) if comments else source, path, fix)


def _lines(source: str, path: str | Path, fix: str) -> Iterator[tuple[str, Any]]:
    # Split at "\n" only: text may hold U+2028 and other line separators.
    for n, line in enumerate(source.split("\n"), 1):
        if line.strip():
            yield f"{path}:{n}", parse(line, str(path), fix, line=n)


_SPACE = re.compile(r"\s*")


def records(path: str | Path, fix: str) -> Iterator[tuple[str, Any]]:
    """(place, value) of every element of a JSON list (``file: item 3``), or of every JSON line (``file:3``).

    The elements of a list are decoded one by one: of a large file only the text is held, and what the caller keeps.
    Raises ``InputError`` as ``text`` and ``parse`` do.
    """
    source = text(path, fix)
    at = _after_space(source, 0)
    if source[at : at + 1] != "[":
        if names := _of_one_object(source):
            raise InputError(
                f"{path}: one JSON object ({names}); write the records in it as a list, or one a line; {fix}"
            )
        yield from _lines(source, path, fix)
        return
    decode = _DECODER.raw_decode
    at, n = _after_space(source, at + 1), 0
    while source[at : at + 1] != "]":
        with _refusing(str(path), fix, item=n):
            value, at = decode(source, at)
        yield f"{path}: item {n}", value
        at, n = _after_space(source, at), n + 1
        if source[at : at + 1] == ",":
            at = _after_space(source, at + 1)
        elif source[at : at + 1] != "]":
            line = source.count("\n", 0, at) + 1
            raise InputError(f"{path}:{line}: not valid JSON (neither ',' nor ']' after item {n - 1}); {fix}")
    if rest := source[at + 1 :].strip():
        raise InputError(f"{path}: not valid JSON ({rest[:20]!r} follows the closing bracket of the list); {fix}")


def _of_one_object(source: str) -> str:
    """The names in a file that is one JSON object over several lines, or one that holds nothing but records or lists of
    them; empty for JSON lines, and for what is no JSON."""
    first, _, rest = source.strip().partition("\n")
    with suppress(ValueError, RecursionError):
        if rest and isinstance(_value(first), dict):
            return ""
        found = json.loads(source)
        if isinstance(found, dict) and (rest or all(isinstance(v, dict | list) for v in found.values())):
            return ", ".join(islice(found, 6)) + (", ..." if len(found) > 6 else "")
    return ""


def _value(source: str) -> Any:
    """The value of a JSON text; None for anything else."""
    with suppress(ValueError, RecursionError):
        return json.loads(source)
    return None


def objects(path: str | Path, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of every element of a JSON list or every JSON line; ``what`` says which file is expected.

    Raises ``InputError`` as ``records`` does, for a value that is not an object, and for a file without any.
    """
    where = None
    for where, row in records(path, f"give {what}"):
        if not isinstance(row, dict):
            raise InputError(f"{where}: expected a JSON object, got {type(row).__name__}; give {what}")
        yield where, row
    if where is None:
        raise InputError(f"{path}: no rows; give {what}")


def _after_space(source: str, at: int) -> int:
    found = _SPACE.match(source, at)
    return at if found is None else found.end()


def document(path: str | Path, fix: str) -> Any:
    """The value of a file that holds one JSON value. Raises ``InputError`` as ``text`` and ``parse`` do."""
    return parse(text(path, fix), str(path), fix)


def yaml_document(path: str | Path, where: str, fix: str) -> Any:
    """The value of a YAML file, called ``where`` in errors.

    Raises ``InputError`` as ``text`` does, for what is not YAML, and for a name that one object has twice.
    """
    import yaml

    class Once(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value]
            if twice := [name for i, name in enumerate(names) if name in names[:i]]:
                raise InputError(f"{where}: {twice[0]} is given twice; keep one of them")
            return super().construct_mapping(node, deep)

    try:
        return Once(text(path, fix)).get_single_data()
    except yaml.YAMLError as e:
        raise InputError(f"{where}: not valid YAML ({' '.join(str(e).split())[:200]})") from e


def text_field(row: Mapping[str, Any], name: str, where: str) -> str:
    """A field that must hold text."""
    value = in_words(row.get(name))
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: field {name!r} is {value!r}; give a non-empty string")
    return value.strip()


def answers_field(row: Mapping[str, Any], name: str, where: str) -> tuple[str, tuple[str, ...]]:
    """A gold answer and its aliases from a field that holds one answer or a list of accepted ones."""
    value = row.get(name)
    accepted = value if isinstance(value, list) else [value]
    texts = [text_field({name: v}, name, where) for v in accepted]
    if not texts:
        raise InputError(f"{where}: field {name!r} is an empty list; give at least one accepted answer")
    unique = list(dict.fromkeys(texts))
    return unique[0], tuple(unique[1:])


def id_field(row: Mapping[str, Any], otherwise: str, names: Sequence[str] = ("id",)) -> str:
    """The id of a row, in the first of ``names`` that has one; ``otherwise`` where none has. 0 is an id."""
    given = (in_words(row.get(name)) for name in names)
    return next((value for value in given if isinstance(value, str) and value.strip()), otherwise)


def in_words(value: Any) -> Any:
    """A number as text, where text is wanted; anything else as it is, and NaN, which is no text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number_text(value) if is_number and value == value else value


def number_text(value: float) -> str:
    """A number as one writes it: 39.0 is "39"."""
    whole = isinstance(value, int) or value.is_integer()  # a float cannot hold every int
    return str(int(value)) if whole else repr(float(value))


LONG_CELL = 1 << 24
"""Characters of a CSV cell that may hold a response, or a list: Python's own limit is 131,072."""


def check_commas(columns: list[str], path: object) -> None:
    """Raises ``InputError`` for the only column of a file whose cells are separated by something else."""
    for sign, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(columns) == 1 and sign in columns[0]:
            raise InputError(f"{path}: its cells are separated by {name}; save it as CSV, with commas between them")


def table(
    path: str | Path, fix: str, keep: Callable[[str], bool] | None = None, *, longest: int | None = None
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns of a CSV file and its rows with their lines, of the columns that ``keep`` accepts.

    ``longest`` is the most characters of a cell, in place of Python's limit; cells that a row leaves out at its end are
    empty. Raises ``InputError`` without rows, for a column that occurs twice, for a quote that never ends (the rows
    behind it would be one cell), and for a row with more cells than columns: which is which is unknown.
    """
    text = _CELL.sub(lambda m: m["quoted"] or m[0], decoded(existing(path, fix).read_bytes(), str(path)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, dict[str, str]]] = []
    usual = csv.field_size_limit() if longest is None else csv.field_size_limit(longest)
    begins = 1
    try:
        columns = next(reader, [])
        check_commas(columns, path)
        twice = next((c for c in columns if columns.count(c) > 1), None)
        if twice is not None:
            raise InputError(f"{path}:1: column {twice!r} occurs twice; keep one of them")
        kept = [(i, c) for i, c in enumerate(columns) if keep is None or keep(c)]
        begins = reader.line_num + 1
        for cells in reader:
            begins = reader.line_num + 1  # the next row, which a quote that never ends makes as long as the file
            if not cells:
                continue
            if len(cells) > len(columns):
                seen = f"{len(cells)} cells for {len(columns)} columns"
                raise InputError(f"{path}:{reader.line_num}: {seen}; put quotes around text that holds commas")
            rows.append((reader.line_num, {c: cells[i] if i < len(cells) else "" for i, c in kept}))
    except csv.Error as e:
        if "expected after" in str(e):
            row = re.split(r"\r\n?|\n", text)[begins - 1][:_SHOWN]
            end = "write quotes inside a quoted cell twice, or quote no part of a cell"
            raise InputError(f"{path}:{begins}: {row!r}... has text behind a closing quote; {end}") from e
        raise InputError(f"{path}:{begins}: not valid CSV ({e}); {fix}") from e
    finally:
        csv.field_size_limit(usual)
    if not rows:
        raise InputError(f"{path}: no rows; {fix}")
    return columns, rows


def literal(text: str, kind: type[T], forms: Sequence[Callable[[str], Any]] = ()) -> T | None:
    """The value of a kind that a text is, written as JSON or as Python, or in the first of ``forms``; None for anything
    else."""
    for read in forms or (json.loads, _python):
        try:
            found = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
            continue
        if isinstance(found, kind):
            return found
    return None


LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
"""Tokens of Python that are no part of a literal."""
_SIDE_BY_SIDE = re.compile(r"['\"]\s+['\"]")


def _python(text: str) -> Any:
    """A Python literal; strings side by side are items of a list, as numpy prints them, and not one text."""
    if _SIDE_BY_SIDE.search(text):
        words = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in LAYOUT]
        beside = [a.type == b.type == tokenize.STRING for a, b in pairwise(words)]
        text = " ".join(f"{t.string}," if also else t.string for t, also in zip(words, [*beside, False], strict=True))
    return ast.literal_eval(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise DuplicateKeyError(repr(next(n for n in names if names.count(n) > 1)))
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
