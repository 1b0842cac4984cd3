"""Case files, read and written: JSON lines, one case per line.

    cases = read_cases("cases.jsonl")

``case`` makes a case from any JSON object; published files and runs hold cases that were made by rules. A file written
by hand is checked more strictly, because a gold answer that nothing can match would look like a failing model.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import as_path, text_hash, write_text
from ..terminal import how_many
from . import text_files
from .case import TEXTS, Case, Part, case_from_dict, case_to_dict
from .grading import booleans, dates, lists, numbers, text
from .prompts import ABSTENTION

__all__ = ["Case", "Part", "check", "check_cases", "hash_cases", "read_cases", "stated", "write_cases"]
ONE_A_LINE = "give a JSON-lines file with one case a line"
SHOWN = 20
"""Kinds of lines that cannot be used, of which an error names each."""
_PLACE = re.compile(r"^.*?:\d+(?=[:,])", re.DOTALL)
"""File and line at the beginning of an error."""
_FORMULA = re.compile(r"[\d\\\\$^=+*/<>()\[\]\u221e\u221a]|\bpi\b", re.IGNORECASE)
"""Marks of a number that is written as a formula, which math-verify compares."""
_HALF_PAIR = re.compile(r"[\ud800-\udfff]")
"""No file can hold what JSON's escapes can."""
_META: Mapping[str, type | tuple[type, ...]] = {
    "variants": (list, Mapping), "relation": str, "phrase": str, "crossed": (str, list), "reversed": (str, Mapping),
    "independent": str, "original": Mapping, "scaffolds": list, "placeholders": list,
}  # fmt: skip
"""Keys of ``meta`` that any case may have, and what a value of theirs looks like."""
_ALIKE = 0.85
"""Likeness from which a key is taken for a misspelled one ("relaton"); "relation_type" is another word."""


def read_cases(path: str | Path) -> list[Case]:
    """Read a benchmark file (JSON lines, UTF-8); lines that begin with ``#`` are comments.

    Raises ``InputError`` naming file, line and field for anything that cannot be used: in all lines at once, or
    up to one that is no JSON.
    """
    as_path(path, "path of a case file")
    places: list[str] = []
    found: list[Case] = []
    wrong: list[str] = []
    try:
        for where, raw in text_files.lines(path, ONE_A_LINE, comments=True):
            if isinstance(raw, list):
                raise InputError(f"{where}: a JSON array, not a case; {_FLAT}")
            try:
                found.append(_case(raw, where))
                places.append(where)
            except InputError as e:
                wrong.append(str(e))
    except InputError as e:
        if wrong:
            raise _all_wrong(path, [*wrong, str(e)]) from None
        other = None if found or not isinstance(e.__cause__, json.JSONDecodeError) else _other_form(path)
        if other:
            raise InputError(f"{path}: {other[0]}, and a case file is JSON lines; {other[1]}") from None
        raise
    try:
        found = check_cases(found, str(path), places) if found or not wrong else []
    except InputError as e:
        wrong.append(str(e))
    if wrong:
        raise _all_wrong(path, wrong)
    return found


def _case(raw: Any, where: str) -> Case:
    _refuse_half(_as_json(raw, where), where)
    case = case_from_dict(raw, where)
    check(case, where)
    return case


def _refuse_half(text: str, where: str) -> None:
    if half := _HALF_PAIR.search(text):
        escape = json.dumps(half[0])[1:-1]
        raise InputError(f"{where}: {escape} is half of a surrogate pair; write the whole character")


def _as_json(raw: Any, where: str) -> str:
    try:
        return json.dumps(raw, ensure_ascii=False)
    except (TypeError, ValueError) as e:  # only what was made in Python
        raise InputError(f"{where}: {e}; give texts, numbers, lists and dictionaries in 'meta'") from e


def _all_wrong(path: str | Path, wrong: Sequence[str]) -> InputError:
    """One error for all lines that cannot be used; the others than the first are its notes.

    A table with wrong columns is wrong in all lines alike, which is said once.
    """
    alike: dict[str, list[str]] = {}
    for line in wrong:
        alike.setdefault(_PLACE.sub("", line), []).append(line)
    first, *rest = (
        f"{found[0]} ({how_many(len(found) - 1, 'more line')} like this)" if found[1:] else found[0]
        for found in alike.values()
    )
    error = InputError(first if len(wrong) == 1 else f"{path}: {len(wrong)} lines cannot be used; {first}")
    for line in (*rest[: SHOWN - 1], *([f"and {len(rest) + 1 - SHOWN} more"] if len(rest) >= SHOWN else ())):
        error.add_note(line)
    return error


def hash_cases(cases: Sequence[Case]) -> str:
    """sha256 of the cases' content; the white space of the file does not matter."""
    return text_hash(json.dumps(case_to_dict(c), sort_keys=True, ensure_ascii=False) for c in cases)


def check_cases(cases: Iterable[Case], where: str, places: Sequence[str] = ()) -> list[Case]:
    """Refuse duplicate ids, an atom that stands for two facts, an empty benchmark, and what is not a case of texts.

    ``places`` are the file:line of each case, where they are known.
    """
    table = hasattr(cases, "columns")  # a frame of pandas runs over its columns
    if table or isinstance(cases, Case | Mapping) or not isinstance(cases, Iterable):
        raise InputError(f"{where}: {type(cases).__name__}; give a list of cases, such as [case]")
    seen: dict[str, int] = {}
    out: list[Case] = []
    for i, case in enumerate(cases):
        _check_texts(case, f"{where}[{i}]")
        if case.id in seen:
            at, this, first = where, f" of case {i + 1}", f"case {seen[case.id] + 1}"
            if places:
                at, this, first = places[i], "", f"line {places[seen[case.id]].rpartition(':')[2]}"
            raise InputError(f"{at}: id {case.id!r}{this} was already used by {first}; give each case its own id")
        seen[case.id] = i
        out.append(case)
    if not out:
        raise InputError(f"{where}: no cases; give at least one, with id, question and answer")
    _check_atoms(out, where, places)
    return out


def _check_atoms(cases: Sequence[Case], where: str, places: Sequence[str]) -> None:
    """Raises ``InputError`` where one atom has two sets of probes, which would be counted as one."""
    known: dict[str, tuple[int, Part]] = {}
    for i, case in enumerate(cases):
        for j, part in enumerate(case.parts):
            if not (part.atom and part.paraphrases):
                continue
            n, first = known.setdefault(part.atom, (i, part))
            if any(a != b for a, b in zip(first.paraphrases, part.paraphrases, strict=False)):
                raise InputError(
                    f"{places[i] if places else where}: case {case.id!r}, parts[{j}]: atom {part.atom!r} has other "
                    f"paraphrases in case {cases[n].id!r} (there: {first.paraphrases[0]!r}); give each fact its own "
                    "atom, and the same paraphrases in the same order wherever it is used"
                )


def as_in_a_file(cases: Any, where: str) -> list[Case]:
    """Cases made in Python, checked as strictly as those of a file.

    ``cases`` are ``Case`` objects, dictionaries with the fields of a case file, or a data frame with such columns; a
    missing value (NaN) is a field that is not given. Lists become tuples, and values of NumPy plain ones.
    """
    given = cases.to_dict("records") if hasattr(cases, "columns") else cases
    if isinstance(given, Iterable) and not isinstance(given, Case | Mapping):
        made = enumerate(given)
        given = [_case(_filled(row), f"{where}[{i}]") if isinstance(row, Mapping) else row for i, row in made]
    return [_case(_filled(asdict(case)), f"{where}[{i}]") for i, case in enumerate(check_cases(given, where))]


def _filled(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {n: value.tolist() if hasattr(value, "tolist") else value for n, value in row.items()}
    for name in {"depth", "depth_bin"} & plain.keys():  # a column with missing values has no whole numbers
        if isinstance(depth := plain[name], float) and depth.is_integer():
            plain[name] = int(depth)
    if isinstance(parts := plain.get("parts"), list | tuple):
        plain["parts"] = [_filled(part) if isinstance(part, Mapping) else part for part in parts]
    return {name: value for name, value in plain.items() if value not in (None, (), []) and value == value}  # NaN


def _check_texts(case: Case, where: str) -> None:
    """Raises ``InputError`` for what is no ``Case``, and for texts or parts of one that are something else."""
    if not isinstance(case, Case):
        how = "composcope.Case(id=..., question=..., answer=..., parts=(composcope.Part(...), ...))"
        raise InputError(f"{where}: {type(case).__name__}; give a {how}; read_cases makes them from a file")
    if not isinstance(case.id, str):
        raise InputError(f"{where}: id is {case.id!r}; give a text")
    if not isinstance(case.parts, tuple | list):
        raise InputError(f"{where}: parts is {case.parts!r:.60}; give a tuple of parts, such as (part,)")
    for place, asked in ((where, case), *((f"{where}, parts[{j}]", part) for j, part in enumerate(case.parts))):
        if asked is not case and not isinstance(asked, Part):
            raise InputError(f"{place}: {type(asked).__name__}; give a composcope.Part")
        for name, value in vars(asked).items():
            given = name in TEXTS and value is not None
            if (given or name in ("question", "answer")) and not isinstance(value, str):
                raise InputError(f"{place}: {name} is {value!r}; give a text")
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, str):
                    _refuse_half(item, f"{place}: {name}")


def write_cases(cases: Iterable[Case], path: str | Path) -> None:
    """Write a benchmark file that ``read_cases`` reads back unchanged. Raises ``InputError`` for what is no case."""
    if isinstance(cases, str | Path):
        raise InputError(f"cases: {type(cases).__name__}; give first a list of cases, then the path of the file")
    lines = []
    for i, case in enumerate(cases):
        _check_texts(case, f"cases[{i}]")
        lines.append(_as_json(case_to_dict(case), f"cases[{i}]") + "\n")
        _refuse_half(lines[-1], f"cases[{i}]")
    write_text(as_path(path, "path"), "".join(lines))


_FLAT = "write one object a line, without the brackets around them and the commas between them"


def _other_form(path: str | Path) -> tuple[str, str] | None:
    """What a file is whose first line is not JSON, and what to do; None if that does not show."""
    line = "write one JSON object a line"
    forms = {"yaml": ("YAML", line), "yml": ("YAML", line)}
    forms |= dict.fromkeys(("csv", "tsv"), ("a table", f"{line}, or a reader (docs/adding-a-benchmark.md has one)"))
    begins = re.sub(r"(?m)^[ \t]*#.*$", "", text_files.text(path, ONE_A_LINE)).lstrip()
    if begins.startswith("["):  # an array on many lines
        return "a JSON array", _FLAT
    if re.match(r"\{[ \t\r]*\n\s*\"", begins):
        return "JSON objects on several lines each", line
    return forms.get(Path(path).suffix.lower().removeprefix("."))


def check(case: Case, where: str) -> None:
    """Raises ``InputError`` for a gold answer of another type, an empty wording of a part, and wrong ``meta``."""
    _check_golds(case, where)
    for i, part in enumerate(case.parts):
        if not all(wording.strip() for wording in part.paraphrases):
            said = list(part.paraphrases)
            raise InputError(f"{where}, parts[{i}]: field 'paraphrases' is {said}; give no empty wording")
    for key, value in case.meta.items():
        meant = _meant(key)
        if meant is not None and isinstance(value, _META[meant]):
            raise InputError(
                f"{where}: meta has the key {key!r}; did you mean {meant!r}? (if not, use a name that is less similar)"
            )
    relation = case.meta.get("relation", "")
    if not isinstance(relation, str) or ("relation" in case.meta and not relation.strip()):
        raise InputError(f"{where}: meta.relation is {relation!r}; give a text, the beginning of an answer")
    for key in ("scaffolds", "placeholders"):
        given, levels = case.meta.get(key, []), len(case.parts) - 1
        texts = isinstance(given, list | tuple) and all(isinstance(text, str) and text.strip() for text in given)
        if not texts or len(given) > max(levels, 0):
            raise InputError(
                f"{where}: meta.{key} is {given!r}; give a list with one text for each of 1..K-1 ({levels})"
            )
    for i, (_, variant) in enumerate(stated(case, where)):
        _check_golds(variant, f"{where}, meta.variants[{i}]")


def _check_golds(case: Case, where: str) -> None:
    if not case.unknowable:
        _check_gold(case, where)
    for i, part in enumerate(case.parts):
        _check_gold(part, f"{where}, parts[{i}]")


def _check_gold(asked: Case | Part, where: str) -> None:
    known = _FITS.get(asked.answer_type)
    if known is None:
        return
    for name, given in (("answer", asked.answer), *(("aliases", alias) for alias in asked.aliases)):
        if not known[0](given) and text.normalize(given) != text.normalize(ABSTENTION):
            raise InputError(
                f"{where}: field {name!r} {'is' if name == 'answer' else 'has'} {given!r}, and answer_type is "
                f"{asked.answer_type!r}; give {known[1]}, or the answer_type 'text'"
            )


def _is_number(answer: str) -> bool:
    """Whether an answer is a number or a formula, as the grading of numbers reads golds; "b" is neither."""
    return numbers.parse(answer) is not None or bool(_FORMULA.search(answer))


_FITS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "number": (_is_number, "a number such as 12 or 3.5"),
    "boolean": (lambda answer: booleans.value(answer) is not None, "yes or no"),
    "date": (dates.is_real, "a date that exists, such as 1876-03-10, March 1876 or 1876"),
    "list": (lambda answer: bool(lists.split(answer)), "items such as 'hen and fox'"),
    "ordered-list": (lambda answer: bool(lists.split(answer)), "items such as 'hen, then fox'"),
}
"""Whether a gold can be read as its type, and what to write; a ``choice`` is held against its options by ``options``,
and any words are a ``text``."""


@lru_cache(maxsize=4096)
def _meant(key: str) -> str | None:
    """The known key of ``meta`` that a key misspells; None for a known one, and for any other."""
    if key in _META:
        return None
    near = get_close_matches(key.lower(), list(_META), n=1, cutoff=_ALIKE)
    return next((known for known in near if known[0] == key[0].lower()), None)  # "dependent" is not "independent"


def stated(case: Case, where: str) -> Sequence[tuple[str, Case]]:
    """The variants in ``meta.variants``: the edit in words, and the case with it (under the same id).

    Raises ``InputError``, naming the variant, if it is not an object, has an unknown field, or asks no question.
    """
    given = case.meta.get("variants", [])
    where = f"{where}, meta.variants"
    if not isinstance(given, list):
        raise InputError(f"{where}: the value is {given!r}; give a list of objects with the fields that differ")
    base = {k: v for k, v in case_to_dict(case).items() if k != "depth_bin"} if given else {}
    base["meta"] = {k: v for k, v in case.meta.items() if k not in ("variants", "relation")}  # of another question
    return [_stated(base, case.id, fields, f"{where}[{i}]") for i, fields in enumerate(given)]


def _stated(base: Mapping[str, Any], id: str, fields: Any, where: str) -> tuple[str, Case]:
    if not isinstance(fields, Mapping):
        raise InputError(f"{where}: the variant is {fields!r}; give an object with the field 'question'")
    changed = {k: v for k, v in fields.items() if k != "edit"}
    made = case_from_dict({**base, **changed, "id": id}, where)
    if "question" not in fields:
        raise InputError(f"{where}: the variant is {fields!r}; give an object with the field 'question'")
    return str(fields.get("edit", "as the case file has it")), made
