"""The data of a page: pictures of single cases (``probes/NAME/cases``), one file each, and how such files are written.

If the folder would get too large, attention is written with 8 bits, then left out starting from the last case; then
whole cases are left out. The index says so.

``fetch`` and modules do not work from ``file://``, so each data file is a classic script that passes one JSON text to
the page. The JSON is in a string literal and is parsed (a key called ``__proto__`` stays a key). ``<`` and the two line
separators of Unicode are escaped, so no text in it can end a script or a line. Arrays are packed as integers in base64:
a page opened from a file cannot fetch binary files, and decimal text would make them five times as large.
"""

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from safetensors import SafetensorError

from ...errors import ComposcopeError
from ...files import strict_json
from ...probes.catalog import PROBES
from ..figures.grouping import labels
from ..run.reader import Row, RunData
from ..run.single_cases import SavedEntry, read_single_cases, read_values

BUDGET = 8_000_000
"""Limit in bytes for all picture files together."""
HEAVY = "attention"


@dataclass(frozen=True)
class PageData:
    """Data files of a page."""

    index: dict[str, Any]
    files: dict[str, Any]
    """The files, by name (``pictures/RUN-NUMBER``)."""


def collect(runs: Sequence[RunData], budget: int = BUDGET) -> PageData:
    """Pictures of all runs within the budget; ``index["runs"]`` is in the order of the runs."""
    names = labels(runs)
    read = [_read(r) for r in runs]
    files: dict[str, Any] = {}
    notes: list[str] = []
    for bits in (16, 8):
        files = {f"pictures/{i}-{k}": _case(c, found, bits) for i, (by_case, _) in enumerate(read)
                 for k, (c, found) in enumerate(by_case.items())}  # fmt: skip
        if sum(map(size_of, files.values())) <= budget:
            break
    without, dropped = _shrink(files, budget)
    if without:
        notes.append(f"Attention per token of {without} cases was left out to keep this folder small.")
    if dropped:
        notes.append(
            f"Pictures of {dropped} cases were left out to keep this folder small; they are in the run folders."
        )
    index = [
        {"label": names[run.path], "run": run.name, "notes": said, "values": _values(run),
         "cases": [_entry(f"pictures/{i}-{k}", files[f"pictures/{i}-{k}"]) for k in range(len(by_case))
                   if f"pictures/{i}-{k}" in files]}
        for i, (run, (by_case, said)) in enumerate(zip(runs, read, strict=True))
    ]  # fmt: skip
    return PageData({"runs": index, "notes": notes}, files)


Entries = dict[str, list[SavedEntry]]
"""The entries of each probe."""


def _read(run: RunData) -> tuple[dict[str, Entries], dict[str, str]]:
    """Entries by case and probe, and for each probe one sentence on the number of cases."""
    by_case: dict[str, Entries] = {}
    notes: dict[str, str] = {}
    for probe in (p.name for p in PROBES.values() if p.cases):
        try:
            saved = read_single_cases(run.path, probe)
        except (ComposcopeError, SafetensorError, OSError) as e:
            notes[probe] = f"{run.path / 'probes' / probe / 'cases'}: cannot be read ({e}); run the probe again"
            continue
        if saved is None:
            continue
        notes[probe] = _note(saved.about)
        for entry in saved.entries:
            by_case.setdefault(str(entry.about["case"]), {}).setdefault(probe, []).append(entry)
    return by_case, notes


def _values(run: RunData) -> dict[str, dict[str, float]]:
    """Probe measurements of each case's whole, one number per quantity."""
    out: dict[str, dict[str, float]] = {}
    for name in run.probe_names:
        for v in read_values(run.path, name):
            if v.role == "whole" and v.kind.startswith("composition") and not math.isnan(v.value):
                kind = v.kind.removeprefix("composition").strip(" &")
                out.setdefault(v.case, {})[f"{v.quantity}{f' ({kind})' if kind else ''}".replace("_", " ")] = v.value
    return out


def heads(runs: Sequence[RunData]) -> dict[str, Any]:
    """Collect the lookback ratio of every probed whole by layer and head, per run as ``heads/RUN``."""
    out = {}
    for i, run in enumerate(runs):
        found = run.probe("lookback")
        names = [] if found is None else list(found.settings.get("cases", ()))
        if found is not None and len(found.tensors.get("wholes", ())) == len(names) > 0:
            out[f"heads/{i}"] = {"cases": names, "ratio": packed(found.tensors["wholes"])}
    return out


def _note(about: Mapping[str, Any]) -> str:
    left = [str(x) for x in about.get("left_out", [])]
    more = f" Left out: {'; '.join(left)}." if left else ""
    return f"{str(about.get('note', '')).capitalize()} (--case-details {about.get('cases_per_group')}).{more}"


def _case(case: str, found: Entries, bits: int) -> dict[str, Any]:
    return {
        "case": case,
        "probes": {
            probe: [
                {**{k: v for k, v in entry.about.items() if k != "axes"},
                 "arrays": {k: packed(v, bits if k == HEAVY else 16) for k, v in entry.arrays.items()}}
                for entry in entries
            ]
            for probe, entries in found.items()
        },
    }  # fmt: skip


def _entry(name: str, file: Mapping[str, Any]) -> dict[str, Any]:
    probes: Mapping[str, Sequence[Row]] = file["probes"]
    group = next((e.get("group") for entries in probes.values() for e in entries), None)
    attention = [e["role"] for e in probes.get("lookback", []) if HEAVY in e["arrays"]]
    donor = next((e.get("donor") for e in probes.get("patching", [])), None)
    return {"case": file["case"], "file": name, "group": group, "probes": list(probes), "attention": attention,
            "donor": donor, "sweep": any("sweep_positions" in e for e in probes.get("patching", []))}  # fmt: skip


def size_of(value: Any) -> int:
    """The size of a value in a data file, in bytes."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _shrink(files: dict[str, Any], budget: int) -> tuple[int, int]:
    """Leave attention out, then cases, from the end until the files fit the budget; returns how many of each."""
    sizes = {name: size_of(file) for name, file in files.items()}
    without = 0
    for name in reversed(list(files)):
        if sum(sizes.values()) <= budget:
            break
        held = [e["arrays"] for e in files[name]["probes"].get("lookback", []) if HEAVY in e["arrays"]]
        for arrays in held:
            del arrays[HEAVY]
        without += bool(held)
        sizes[name] = size_of(files[name])
    return without, len(leave_out(files, sizes, budget))


def leave_out(files: dict[str, Any], sizes: dict[str, int], budget: int) -> list[str]:
    """Remove whole files from the end until the others fit the budget; returns their names."""
    dropped = []
    while sizes and sum(sizes.values()) > budget:
        name, _ = sizes.popitem()
        del files[name]
        dropped.append(name)
    return dropped


MISSING = {16: 65535, 8: 255}
"""The code for NaN and infinities; finite values use the codes below it."""
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def script(name: str, value: Any) -> str:
    """``composcope.load('NAME', 'JSON')`` for any JSON value; NaN and infinities become null."""
    return f"composcope.load({_literal(name)},{_literal(_json(value))});\n"


def block(value: Any) -> Markup:
    """The same JSON for a data block inside a page; no text in it can end the block."""
    text = _json(value).translate({ord("<"): "\\u003c", ord("&"): "\\u0026"})
    return Markup(_SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", text))


def _json(value: Any) -> str:
    return strict_json(value, separators=(",", ":"))


def remove_scripts(folder: Path, *patterns: str) -> None:
    """Remove the data files that an earlier page left in a folder; all other files stay, since it may be the user's."""
    for path in (found for pattern in patterns for found in folder.glob(pattern)):
        if path.is_file() and path.read_bytes().startswith(b"composcope.load("):
            path.unlink()


def write_script(folder: Path, name: str, value: Any) -> int:
    """Write ``folder/NAME.js``; returns its size in bytes."""
    path = folder / f"{name}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = script(name, value).encode("utf-8")
    path.write_bytes(data)
    return len(data)


def _literal(text: str) -> str:
    # Half of a surrogate pair cannot be encoded, but its JSON escape can.
    return "'" + _SURROGATE.sub(lambda m: f"\\\\u{ord(m.group()):04x}", text.translate(_ESCAPES)) + "'"


def packed(array: NDArray[Any], bits: int = 16) -> dict[str, Any]:
    """``{shape, low, high, bits, data}``; value = low + (high - low) * number / (2 ** bits - 2).

    The error is at most half a step, (high - low) / 2 ** 17 with 16 bits.
    """
    values = np.asarray(array, dtype=np.float64)
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    top = MISSING[bits] - 1
    scaled = np.zeros(values.shape) if high == low else (np.where(known, values, low) - low) / (high - low) * top
    numbers = np.where(known, np.rint(scaled), MISSING[bits]).astype("<u2" if bits == 16 else "u1")
    text = base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode("ascii")
    return {"shape": list(values.shape), "low": low, "high": high, "bits": bits, "data": text}
