"""Plain rows of responses with their gold answers: JSON lines, a JSON list, or CSV.

A row has ``response`` and ``gold`` (an answer, or a list of accepted ones; other names with ``--response-field`` and
``--gold-field``), and if wanted ``question, id`` or ``case, role, model, aliases, answer_type, format, finish_reason``,
``options`` of a choice, properties of the case, and a stored verdict: ``right``, ``correct``, ``is_correct``,
``verdict`` or ``outcome``, or the field named with ``--scorer``. Rows without a verdict are graded by our rules.
Everything else is kept under ``source``.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError, did_you_mean
from .. import text_files
from ..asks import OUTCOMES, Outcome
from ..case import ANSWER_TYPES
from ..gold import typed_answer
from ..graded import Graded
from ..options import parse
from ..prompts import FORMATS
from ..text_files import in_words, literal, objects
from .base import Imported, Options, Stored, check, described, graded, has, place, refuse_twice

WHAT = "rows with response and gold (JSON lines, a JSON list, or CSV)"
_VERDICTS = ("right", "correct", "is_correct", "verdict", "outcome")
_SAID: Mapping[str, Outcome] = {
    **{o: o for o in OUTCOMES}, "true": "correct", "yes": "correct", "1": "correct", "right": "correct",
    "false": "incorrect", "no": "incorrect", "0": "incorrect", "wrong": "incorrect",
}  # fmt: skip
_FINISHED = ("stop", "length", "error")
_ID = re.compile(r"(?:\w*[_ ])?(?:[qu]?id|idx|index|key|nr|no|number|case|item)|#", re.IGNORECASE)
"""Names of a field that may say which case a row is about."""
_ROLE = re.compile(r"whole|part:\d+\S*")
"""Values of a field that may say which role a row has."""
_USED = (
    "case", "role", "id", "model", "aliases", "answer_type", "format", "finish_reason", "depth", "repeat", "benchmark"
)  # fmt: skip


def columns_of(path: Path) -> list[str]:
    """The columns of a CSV file; its header need not be one. Raises ``InputError`` for a quote that never ends."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            return next(csv.reader(file), [])
        except csv.Error as e:
            raise InputError(f"{path}:1: not valid CSV ({e}); give {WHAT}") from e


def read_plain(path: str | Path, options: Options = Options()) -> Imported:  # noqa: B008 (frozen)
    """Rows with their stored verdicts; those without are graded by our rules.

    Raises ``InputError`` naming file, line and field for a row without response or gold answer, for an unknown answer
    type, format or verdict, and for a case and role that occur twice.
    """
    check(options)
    rows: list[Graded] = []
    places: list[str] = []
    found: list[Stored | None] = []
    n_own = 0
    no_case: list[str] = []
    no_role: list[str] = []
    roles: set[str] | None = None
    stem = Path(path).stem
    names = (options.response_field or "response", options.gold_field or "gold")
    first: Mapping[str, Any] | None = None
    for n, (where, row) in enumerate(_rows(path, (*names, options.scorer))):
        first = row if first is None else first
        stored = _stored(row, names, options, where)
        name = _verdict_field(row, options, where)
        own = next((str(in_words(row[k])) for k in ("case", "id") if has(row, k)), None)
        case, role = place(row, own or f"{stem}-{n:05d}", options, where)
        no_case += [where] if not (own or options.case_field) else []
        no_role += [where] if not (options.role or options.role_field) and role == "whole" != row.get("role") else []
        named = {k for k, v in row.items() if k != "role" and isinstance(v, str) and _ROLE.fullmatch(v.strip())}
        roles = named if roles is None else roles & named
        line = Graded(
            case, role, "invalid", str(row.get("benchmark") or stem), depth=_whole(row, "depth", where),
            repeat=_whole(row, "repeat", where) or 0, model=options.model or _text(row.get("model")),
            gold=" | ".join(stored.golds) or None, prompt=_text(row.get("format")),
            extra=_source(row, options, name), **described(row),
        )  # fmt: skip
        if name is None:
            n_own += 1
            line, stored = graded(line, stored, options), replace(stored, has_verdict=False)
        else:
            outcome = _verdict(row[name], name, where)
            line = replace(line, outcome=outcome, match=name, answer=stored.response.strip() or None)
        rows.append(line)
        places.append(where)
        found.append(stored if stored.golds else None)
    refuse_twice(rows, path, "name the fields that hold them with --case-field and --role-field", places)
    warnings = [f"{path}: {n_own} rows have no stored verdict and were graded by our rules"] if n_own else []
    for what, lines, instead in (("case and no id", no_case, "a case of its own"), ("role", no_role, "the whole")):
        if 0 < len(lines) < len(rows):
            warnings.append(f"{lines[0]}: no {what}; {len(lines)} of {len(rows)} rows have none, each is {instead}")
    if len(no_case) == len(rows) and (ids := [k for k in first or () if _ID.fullmatch(k)]):
        said = " or ".join(ids[:3])
        warnings.append(f"{path}: each row is a case of its own; if {said} names the case, give it with --case-field")
    if len(no_role) == len(rows) and roles:
        (name,) = sorted(roles)[:1]
        warnings.append(f"{path}: each row counts as a whole; if {name} holds the roles, give it with --role-field")
    return Imported(rows, [], warnings, found)


def _rows(path: str | Path, names: Sequence[str | None]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row); of a table without its empty cells, but for those of ``names`` (response, gold, chosen verdict)."""
    if Path(path).suffix.lower() not in (".csv", ".tsv"):
        for where, row in objects(path, WHAT):  # NaN: the missing value of data frames
            yield where, {k: v if v == v else None for k, v in row.items()}
        return
    lists = (names[1], "aliases", "options", "skills", "crossed")
    for line, row in text_files.table(path, f"give {WHAT}", longest=text_files.LONG_CELL)[1]:
        kept = {k: v for k, v in row.items() if v != "" or k in names}
        yield f"{path}:{line}", {k: _cell(v) if k in lists else v for k, v in kept.items()}


def _cell(text: str) -> Any:
    """A list where a cell holds one, written as JSON or Python; its text otherwise."""
    if text.startswith("[") and text.endswith("]"):
        return text if (found := literal(text, list)) is None else found
    return text


def _stored(row: Mapping[str, Any], names: tuple[str, str], options: Options, where: str) -> Stored:
    """What is to be graded. A row need not have a gold answer where the user names the field of its verdict."""
    given = options.answer_type
    judged = options.scorer is not None and options.gold_field is None
    for name, flag in zip(names, ("--response-field", "--gold-field"), strict=True):
        if name not in row and not (judged and name == names[1]):
            meant, has = did_you_mean(name, row) or ";", ", ".join(sorted(filter(None, row)))
            none = ", or without one the verdict with --scorer" if name == names[1] else ""
            raise InputError(f"{where}: field {name!r} is missing{meant} it has {has}; name it with {flag}{none}")
    response = row[names[0]]
    if response is not None and not isinstance(response, str | int | float):
        raise InputError(f"{where}: field {names[0]!r} is {type(response).__name__}; give the response as text")
    kind = _one_of(row.get("answer_type"), "answer_type", ANSWER_TYPES, where)
    gold = row.get(names[1])
    if isinstance(gold, list) and (kind or given) in ("list", "ordered-list"):
        gold = "; ".join(_golds(gold, names[1], where))  # the items of one answer
    stated = not judged or row.get(names[1]) not in (None, "")
    golds = _golds(gold, names[1], where) + _golds(row.get("aliases") or [], "aliases", where) if stated else []
    if stated and not golds:
        raise InputError(f"{where}: field {names[1]!r} is empty; give the gold answer")
    finish = row.get("finish_reason", "stop")
    choices = parse(row["options"], where) if (kind or given) == "choice" and row.get("options") else ()
    return Stored(
        "" if response is None else str(response),
        tuple(dict.fromkeys(golds)),
        kind,
        _one_of(row.get("format"), "format", tuple(FORMATS), where) or "plain",
        _one_of(finish, "finish_reason", _FINISHED, where) or "stop",
        where,
        _text(row.get("question")),
        choices,
    )


def _golds(value: Any, name: str, where: str) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(v, str | int | float) and v == v for v in values):  # NaN
        raise InputError(f"{where}: field {name!r} is {value!r}; give an answer, or a list of accepted ones")
    return [t for t in (v.strip() if isinstance(v, str) else typed_answer(v)[0] for v in values) if t]


def _one_of(value: Any, name: str, known: Sequence[str], where: str) -> str | None:
    if value is None:
        return None
    if value not in known:
        raise InputError(f"{where}: {name} is {value!r}; use one of {', '.join(known)}")
    return str(value)


def _verdict_field(row: Mapping[str, Any], options: Options, where: str) -> str | None:
    if options.scorer is not None:
        if options.scorer not in row:
            raise InputError(f"{where}: --scorer {options.scorer}: no such field; it has {', '.join(sorted(row))}")
        return options.scorer
    present = [n for n in _VERDICTS if row.get(n) is not None]
    if len(present) > 1:
        raise InputError(f"{where}: has the verdicts {', '.join(present)}; choose one with --scorer")
    return present[0] if present else None


def _verdict(value: Any, name: str, where: str) -> Outcome:
    if value in (None, ""):
        return "invalid"
    said = _written(value).lower()
    if said not in _SAID:
        raise InputError(f"{where}: {name} is {value!r}, not a right-or-wrong verdict; use true, false or one of "
                         f"{', '.join(OUTCOMES)}, or give another --scorer")  # fmt: skip
    return _SAID[said]


def _whole(row: Mapping[str, Any], name: str, where: str) -> int | None:
    value = row.get(name)
    if value is None:
        return None
    text = _written(value)
    if not text.isdecimal():
        raise InputError(f"{where}: {name} is {value!r}; give a whole number of at least 0")
    return int(text)


def _written(value: Any) -> str:
    """The text of a value; data frames write a whole number as 2.0 where its column lacks some."""
    return str(value).strip().removesuffix(".0")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _source(row: Mapping[str, Any], options: Options, verdict: str | None) -> dict[str, Any]:
    """The fields of a row that a graded row has no place for."""
    used = {*_USED, options.response_field or "response", options.gold_field or "gold", verdict}
    used |= {options.case_field, options.role_field, *described(row)}
    rest = {k: v for k, v in row.items() if k not in used}
    return {"source": rest} if rest else {}
