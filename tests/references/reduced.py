"""What a command wrote, in a form that is the same on every machine, and where two such forms differ.

Files are read as what they hold: rows, values, lines, the text of a page, the marks of a figure. What depends on the
machine or the moment is named here and nowhere else.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from safetensors.numpy import load_file

VOLATILE = frozenset(
    "created finished started updated seconds seconds_per_case timings timing versions version commit machine ask "
    "key sum python_version platform hostname cores threads sha256 checksum report_inputs weights tokenizer rss "
    "children provenance composcope transformers torch peak_memory config chat_template".split()
)
"""Fields whose values depend on the machine, the moment, or on checksums over such values."""
LABELS = ("engine", "composcope", "versions", "timings", "peak memory", "machine")
"""Labels of a page whose next cell is of the same kind."""
PATTERNS = (
    (re.compile(r"\b\d{4}-[\w.-]+?-\d+\.jsonl"), "<segment>.jsonl"),
    (re.compile(r"(?<![.\w])[0-9a-f]{12,64}\b"), "<hex>"),
    (re.compile(r"\b\d+\.\d{10,}"), lambda found: f"{float(found[0]):.9g}"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|MB|GB|kB|MiB|GiB|asks/s|tokens/s)\b"), "<measured>"),
    (re.compile(r"\bin (under )?a?n?\d* ?(seconds?|minutes?)\b"), "<measured>"),
    (
        re.compile(
            r"\b(torch|transformers|tokenizers|composcope|c?[Pp]ython|numpy|scipy|safetensors|pandas|einops|matplotlib)"
            r" \d+\.\d+(\.?[\w+-])*"
        ),
        r"\1 <version>",
    ),
    (re.compile(r"(version:?) \d+(\.\w+)+"), r"\1 <version>"),
    (re.compile(r"\.\.\. <list\[\w+\]>"), "..."),  # some versions of typer
)
"""The same in text."""
NOT_RESULTS = re.compile(
    r"(^|/)(journal|\.lock|assets)(/|$)|\.(svg|pdf|lock|arrow|bin)$|(^|/)tokenizer|figures/.*-metadata"
)
"""Files that are not compared: pictures are known by their marks, and journals by the rows made of them."""
SHORTENED = re.compile(
    r"(^|/)(cases|asks|graded|items|records|temporal|mixed)\.jsonl$|(^|/)data/|casesets/|(^|/)index\.json$"
)
"""Files whose long texts are kept as a beginning and a checksum."""
BAR = re.compile(r"^Loading (weights|checkpoint)|━|: \d+ % \(\d+/\d+\)$")
"""Bars that a terminal shows, and how far slow work has got."""
COUNTED = re.compile(r"diagnosis/(inside|variants)\.jsonl$")
"""Files of many rows, of which each field is summed or counted."""
EXACT, REAL = 1e-4, 2e-3
"""Relative distance of numbers: of models of rules, and of real ones, whose sums depend on the machine."""
LONG, DIGITS, MANY, ROWS = 24, 5, 12, 40
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w]|\.\d)")


def text_of(line: str, places: Mapping[str, str]) -> str:
    for path, word in places.items():
        line = line.replace(path, word)
    for pattern, word in PATTERNS:
        line = pattern.sub(word, line)
    return line.rstrip()


def lines_of(text: str, places: Mapping[str, str]) -> list[str]:
    kept = (line for line in text.splitlines() if line.strip() and not BAR.search(line))
    return [text_of(line, places) for line in kept]


def facts_of(line: str) -> str:
    """What a message names, in its order: options, files, fields, values and numbers, without its other words."""
    found = re.findall(r"'[^']*'|`[^`]*`|\S*[\d_./=<\[]\S*|--[\w-]+", line.removeprefix("composcope: error: "))
    return " ".join(word.strip(".,;:()") for word in found)


def value_of(value: Any, places: Mapping[str, str], short: bool = False) -> Any:
    """A value of JSON with fixed words for volatile fields, five digits of every number, and long texts shortened."""
    if isinstance(value, Mapping):
        if {"shape", "bits", "data"} <= value.keys():  # an array of a page
            packed = np.frombuffer(base64.b64decode(value["data"]), "<u2" if value["bits"] == 16 else "u1")
            return summed(np.append(packed.astype(float), [value["low"], value["high"], *value["shape"]]))
        return {
            text_of(str(k), places): "*" if k in VOLATILE else value_of(v, places, short)
            for k, v in value.items()
            if v is not None
        }
    if isinstance(value, list | tuple):
        numbers = [v for v in value if isinstance(v, float | int) and not isinstance(v, bool)]
        if len(numbers) == len(value) > MANY:
            return summed(np.array(value, dtype=float))
        return [value_of(v, places, short) for v in value]
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        known = text_of(value, places)
        return _beginning(known) if short and len(known) > LONG else known
    return value


def number(value: float) -> float | str:
    """Five digits; zero for what is zero but for rounding."""
    if not math.isfinite(value):
        return repr(value)
    return 0.0 if abs(value) < 1e-9 else float(f"{value:.{DIGITS}g}")


def summed(array: Any) -> dict[str, Any]:
    """An array by its shape and three sums, one of which depends on the order."""
    values = np.asarray(array, dtype=np.float64)
    finite = np.where(np.isfinite(values), values, 0.0).ravel()
    place = np.cos(np.arange(finite.size))
    return {"shape": list(values.shape), "finite": int(np.isfinite(values).sum()),
            "sums": [number(float(s)) for s in (finite.sum(), np.abs(finite).sum(), finite @ place)]}  # fmt: skip


def counted(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Sums of the numbers of each field, and how often its other values stand there, in the order of the rows."""
    found: list[Any] = [["rows", len(rows)]]
    for name in dict.fromkeys(k for row in rows for k in row):
        values = [row[name] for row in rows if name in row]
        numbers = [v for v in values if type(v) in (int, float)]
        if numbers:
            found.append([name, summed(np.array(numbers, dtype=float))])
            values = [v for v in values if type(v) not in (int, float)]
        if not values:
            continue
        if all(isinstance(v, dict) for v in values):
            inner = Counter(f"{k.partition(':')[0]}: {_word(v)}" for value in values for k, v in value.items())
            found.append([name, [[k, float(n)] for k, n in sorted(inner.items()) if "other" not in k][: 8 * MANY]])
        else:
            words = Counter(_word(v) for v in values)
            shown = [[w, n] for w, n in words.items()][:MANY]
            found.append([name, [len(values), len(words), *shown]])
    return found


def page_of(text: str) -> list[str]:
    page = _Page()
    page.feed(text)
    return page.found


def _word(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value))[:LONG]


class _Page(HTMLParser):
    """The sentences, cells, titles and alternative texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside, self.skipped = "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end(tag)
        self.skipped += tag in ("style", "script")
        self.found += [f"[{name}] {value}" for name, value in attrs if name in ("alt", "title", "href", "id") and value]

    def handle_endtag(self, tag: str) -> None:
        self._end(tag)
        self.skipped -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.inside += data

    def _end(self, tag: str) -> None:
        if tag not in ("b", "i", "em", "strong", "code", "span", "a", "sup", "sub", "abbr") and self.inside.strip():
            self.found.append(" ".join(self.inside.split()))
            self.inside = ""


def read(path: Path, name: str, places: Mapping[str, str]) -> Any:
    """What a file holds; ``name`` is its path within the folder of the commands."""
    short, end = bool(SHORTENED.search(name)), path.suffix
    if end == ".safetensors":
        return [[key, summed(value)] for key, value in sorted(load_file(path).items())]
    text = path.read_text(encoding="utf-8", errors="replace")
    if end in (".json", ".yaml", ".png"):  # pictures hold their marks, see ``commands``
        return value_of(yaml.safe_load(text) if end == ".yaml" else json.loads(text or "null"), places, short)
    if end == ".jsonl":
        rows = [line for line in text.splitlines() if line.strip()]
        found = [_row(row, places, short) for row in rows]
        return counted(found) if COUNTED.search(name) else found
    if end == ".js":  # a string literal of JavaScript, which holds JSON
        literal = text[text.index(",'") + 2 : text.rindex("'")].replace("\\'", "'").replace('"', '\\"')
        value = value_of(json.loads(json.loads(f'"{literal}"')), places, short)
        if isinstance(value, dict) and {"columns", "rows"} <= value.keys():  # of a figure, whose table is a csv, too
            rows = [dict(zip(value["columns"], row, strict=True)) for row in value["rows"]]
            value["rows"] = counted([{k: v for k, v in row.items() if v is not None} for row in rows])
        return value
    if end == ".csv":
        table = [[_cell(c, places) for c in row] for row in csv.reader(text.splitlines())]
        if len(table) <= ROWS:
            return table
        rows = (zip(map(str, table[0]), row, strict=False) for row in table[1:])
        return counted([{k: v for k, v in row if v != ""} for row in rows])
    if end == ".html":
        told = lines_of("\n".join(page_of(text)), places)
        before = ["", *told[:-1]]
        return ["<machine>" if a in LABELS else sentence(b) for a, b in zip(before, told, strict=True)]
    return lines_of(text, places)


def sentence(line: str) -> str:
    """A long sentence of a page, or one said before: its beginning, a checksum of its words, and its numbers."""
    if len(line) <= 3 * LONG:
        return line
    return " ".join([_beginning(_NUMBER.sub("#", line)), *_NUMBER.findall(line)])


def _beginning(text: str) -> str:
    return f"{text[:LONG]}#{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:6]}"


def _row(row: str, places: Mapping[str, str], short: bool) -> Any:
    try:
        return value_of(json.loads(row), places, short)
    except ValueError:
        return text_of(row, places)


def _cell(cell: str, places: Mapping[str, str]) -> Any:
    try:
        return number(float(cell)) if cell.strip() == cell and re.search(r"\d", cell) else text_of(cell, places)
    except ValueError:
        return text_of(cell, places)


def parted(name: str, value: Any) -> dict[str, Any]:
    """A value and, under names of their own, those of its fields that are tables of several rows."""
    if not isinstance(value, Mapping):
        return {name: value}
    tables = {k: v for k, v in value.items() if _is_table(v)}
    rest = [[k, v] for k, v in value.items() if k not in tables]
    return {name: rest} | {f"{name} {k}": v for k, v in tables.items()}


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 2 and all(isinstance(row, dict) for row in value)


def packed(value: Any) -> Any:
    """A table as it is stored: what all rows share once, the names of the other fields, and their values."""
    if not _is_table(value):
        return value
    names = list(dict.fromkeys(k for row in value for k in row))
    shared = {k: value[0][k] for k in names if all(k in row and row[k] == value[0][k] for row in value)}
    own = [k for k in names if k not in shared]
    return {"shared": shared, "fields": own, "rows": [[row.get(k) for k in own] for row in value]}


def unpacked(value: Any) -> Any:
    if not (isinstance(value, dict) and list(value) == ["shared", "fields", "rows"]):
        return value
    rows = (zip(value["fields"], row, strict=True) for row in value["rows"])
    return [value["shared"] | {k: v for k, v in row if v is not None} for row in rows]


def differences(stored: Any, new: Any, near: float, where: str = "") -> Iterator[str]:
    """Where two values differ: the place, the stored and the new value. ``near`` is the relative distance allowed."""
    if isinstance(stored, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*stored, *new]):
            if key not in new or key not in stored:
                missing, value = ("new", stored[key]) if key in stored else ("stored", new[key])
                yield f"{where} {key}: not among the {missing} ({_shown(value)})"
            else:
                yield from differences(stored[key], new[key], near, f"{where} {key}")
    elif isinstance(stored, list) and isinstance(new, list):
        if near > EXACT and all(isinstance(v, str) for v in (*stored, *new)):
            stored, new = _unmatched(stored, new, near)
        for i, (a, b) in enumerate(zip(stored, new, strict=False)):
            named = a[0] if _is_pair(a) and _is_pair(b) and a[0] == b[0] else i + 1
            yield from differences(a, b, near, f"{where} {named}")
        if len(stored) != len(new):
            more = (stored if len(stored) > len(new) else new)[min(len(stored), len(new))]
            yield f"{where}: {len(stored)} stored, {len(new)} new; the first of the others: {_shown(more)}"
    elif not same(stored, new, near):
        yield f"{where}: stored {_shown(stored)}, new {_shown(new)}"


def _unmatched(stored: Sequence[str], new: Sequence[str], near: float) -> tuple[list[str], list[str]]:
    """The lines that have no equal at their own place or elsewhere: a real model's near ties may change places."""
    pairs = list(zip_longest(stored, new))
    left = [b for a, b in pairs if b is not None and (a is None or not same(a, b, near))]
    kept: list[str] = []
    for a, b in pairs:
        if a is None or (b is not None and same(a, b, near)):
            continue
        match = next((i for i, other in enumerate(left) if same(a, other, near)), None)
        if match is None:
            kept.append(a)
        else:
            del left[match]
    return kept, left


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 400 else text[:400] + "..."


def same(stored: Any, new: Any, near: float) -> bool:
    """Whether two values are equal but for ``near``; the numbers in texts count as numbers."""
    if isinstance(stored, bool) or isinstance(new, bool) or stored is None or new is None:
        return stored is new
    if isinstance(stored, int | float) and isinstance(new, int | float):
        both_whole = isinstance(stored, int) and isinstance(new, int)
        return stored == new if both_whole else math.isclose(stored, new, rel_tol=near, abs_tol=near * 1e-2)
    if not (isinstance(stored, str) and isinstance(new, str)):
        return bool(stored == new)
    if stored == new:
        return True
    a, b = _NUMBER.findall(stored), _NUMBER.findall(new)
    return near > EXACT and _NUMBER.sub("#", stored) == _NUMBER.sub("#", new) and _all_near(a, b, stored, near)


def _all_near(a: Sequence[str], b: Sequence[str], text: str, near: float) -> bool:
    """Numbers in a text of a real model: the last digit may be two off (processors differ), of whole ones in shares."""
    shares = set(re.findall(r"(-?\d+) ?(?:%|points)", text))
    for x, y in zip(a, b, strict=True):
        digits = len(x.partition(".")[2].partition("e")[0])
        unit = 10.0**-digits if "." in x else 1.0 if x in shares else 0.0
        if abs(float(x) - float(y)) > max(unit * 2.01, near * abs(float(x)) * (unit > 0)):
            return False
    return True
