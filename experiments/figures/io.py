"""Run folders as typed data: what the figures and the report draw from, and nothing else.

Nothing here needs torch or a model, so a run can be plotted on a machine that could never have made it. A part that is
missing (no probe, no journal) is an empty value here and a sentence in the picture, never an exception.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ...errors import InputError
from ...evaluation.journal import read_journal
from ...evaluation.metrics import quoted
from ..run import find_runs, read_json, read_lines
from ..run.reader import read_cases_lines, read_config, read_filled, read_graded_lines

Row = dict[str, Any]
Array = NDArray[Any]
_TEXT_COLUMNS = frozenset(
    "quantity group kind role interval test case family operation note run model cluster token stratum task".split()
)


@dataclass(frozen=True)
class ProbeData:
    """One probe's folder: ``table.csv``, ``tensors.safetensors``, ``result.json``."""

    name: str
    table: Sequence[Row]
    """Rows of the table, numbers as numbers and empty cells as None."""
    tensors: Mapping[str, Array] = field(default_factory=dict)
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def named(self, prefix: str) -> dict[str, Array]:
        """Tensors called ``prefix.REST``, by REST."""
        return {k[len(prefix) + 1 :]: v for k, v in self.tensors.items() if k.startswith(prefix + ".")}

    def rows(self, quantity: str, **keys: Any) -> list[Row]:
        """Table rows of a quantity whose columns have the given values."""
        found = [r for r in self.table if r.get("quantity") == quantity]
        return [r for r in found if all(r.get(k) == v for k, v in keys.items())]


@dataclass(frozen=True)
class RunData:
    """One run folder, read when asked."""

    path: Path
    manifest: Mapping[str, Any]
    config: Mapping[str, Any]
    metrics: Sequence[Row]
    """Rows of ``metrics.json``, each with the interval to quote: over clusters where cases share facts or items."""
    protocol: str
    warnings: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def study(self) -> Mapping[str, Any]:
        """The ``study.json`` of the study that the run is part of; empty where it stands alone."""
        file = self.path.parent / "study.json"
        found = read_json(file) if file.is_file() else {}
        return found if self.name in found.get("runs", []) else {}

    @property
    def about(self) -> Mapping[str, Any]:
        """What its study says of the model: label, family, size, tuning, recipe, ..."""
        return self.study.get("about", {}).get(self.name, {})

    @property
    def model(self) -> str:
        """The model as its study calls it, else as the run was told, ``organism:`` and folders removed."""
        return str(self.about.get("label") or _short(str(self._said("model"))))

    @property
    def benchmark(self) -> str:
        return _short(str(self._said("benchmark")))

    @property
    def command(self) -> str:
        return str(self.manifest.get("command", ""))

    def _said(self, key: str) -> Any:
        return self.config.get(key) or self.manifest.get("identity", {}).get(key) or self.name

    def select(self, metric: str, *by: str) -> list[Row]:
        """Metric rows of a name that are grouped by exactly ``by``; constant keys (model, prompt) do not count.

        Where cases were asked in other ways too (self-ask, ...), the rows of the usual way.
        """
        keys = set(by)
        free = {"model", "prompt"} - keys
        found = [m for m in self.metrics if m["metric"] == metric and set(m.get("group") or {}) - free == keys]
        usual = [m for m in found if "prompt" not in (m.get("group") or {})]
        return found if "prompt" in keys or not usual else usual

    def one(self, metric: str, **group: Any) -> Row | None:
        """The metric row of a name whose group is exactly ``group``."""
        return next((m for m in self.select(metric, *group) if all(m["group"][k] == v for k, v in group.items())), None)

    @cached_property
    def graded(self) -> list[Row]:
        return _lines(self.path / "graded.jsonl", lambda file: read_graded_lines(file.parent))

    @cached_property
    def cases(self) -> dict[str, Row]:
        return {c["id"]: c for c in _lines(self.path / "cases.jsonl", lambda file: read_cases_lines(file.parent))}

    @cached_property
    def asks(self) -> dict[str, Row]:
        """Asks by identity. One that several cases share stands once, under one role: ``graded`` says who uses it."""
        return {a["ask"]: a for a in _lines(self.path / "asks.jsonl", read_filled)}

    @cached_property
    def responses(self) -> dict[str, Row]:
        """What was answered, by ask, from the journal; a torn last line of a killed run is left out."""
        contents = read_journal(self.path / "journal")
        return {k: vars(r) for k, r in {**contents.failures, **contents.responses}.items()}

    def read_all(self) -> None:
        """Read every file of the run now. Raises ``InputError`` or ``JournalError`` for one that cannot be read."""
        _ = self.graded, self.cases, self.asks, self.case_sets, self.responses, self.study

    @cached_property
    def case_sets(self) -> dict[str, list[Row]]:
        """Entries of ``casesets/NAME.jsonl`` by name."""
        return {p.stem: _lines(p) for p in sorted((self.path / "casesets").glob("*.jsonl"))}

    @cached_property
    def probe_names(self) -> list[str]:
        folder = self.path / "probes"
        return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []

    @cached_property
    def _probes(self) -> dict[str, ProbeData]:
        return {}

    def probe(self, *names: str) -> ProbeData | None:
        """The first of these probes that the run holds (``min-k`` and ``min_k`` are one name), or None."""
        for name in names:
            for spelled in dict.fromkeys((name, name.replace("_", "-"), name.replace("-", "_"))):
                if spelled in self._probes:
                    return self._probes[spelled]
                if (self.path / "probes" / spelled / "table.csv").is_file():
                    return self._probes.setdefault(spelled, read_probe(self.path / "probes" / spelled))
        return None


def load(runs: Iterable[str | Path | RunData]) -> list[RunData]:
    """Run folders (or study folders that hold several) as data; what is loaded already is kept.

    Raises ``InputError`` for a folder that is no run, or a file of it that cannot be read.
    """
    out: list[RunData] = []
    for run in runs:
        out += [run] if isinstance(run, RunData) else _in_order(Path(run), [read_run(p) for p in find_runs([run])])
    if not out:
        raise InputError("no run folder given; see `composcope ls`")
    return out


def _in_order(folder: Path, runs: list[RunData]) -> list[RunData]:
    """A study's runs in the order that its ``study.json`` gives (a dose series rises), else as they were made."""
    study = folder / "study.json"
    names = read_json(study).get("runs", []) if study.is_file() else []
    place = {name: i for i, name in enumerate(names)}
    return sorted(runs, key=lambda r: (place.get(r.name, len(place)), str(r.manifest.get("created", ""))))


def having(runs: Sequence[RunData], *metrics: str) -> list[RunData]:
    """The runs that have all of these metrics, so that only they are named and counted."""
    return [r for r in runs if set(metrics) <= {m["metric"] for m in r.metrics}]


def read_run(folder: str | Path) -> RunData:
    """One run folder. Metrics that were not written yet are an empty list."""
    path = Path(folder)
    manifest = read_json(path / "manifest.json")
    config = read_config(path) if (path / "config.yaml").is_file() else {}
    file = path / "metrics.json"
    document = read_json(file) if file.is_file() else {}
    metrics = [quoted(m) for m in document.get("metrics", [])]
    protocol = document.get("protocol") or manifest.get("identity", {}).get("protocol") or ""
    return RunData(path.resolve(), manifest, config or {}, metrics, str(protocol), document.get("warnings", []))


def read_probe(folder: str | Path) -> ProbeData:
    """One probe folder; tensors in bfloat16 come back as float32, tensors that cannot be read as a warning."""
    path = Path(folder)
    about = read_json(path / "result.json") if (path / "result.json").is_file() else {}
    with (path / "table.csv").open(encoding="utf-8", newline="") as f:
        table = [{k: _value(k, v) for k, v in row.items() if k is not None} for row in csv.DictReader(f)]
    warnings = [str(w) for w in about.get("warnings", [])]
    try:
        tensors = _tensors(path / "tensors.safetensors")
    except SafetensorError as e:
        tensors, warnings = (
            {},
            [*warnings, f"{path / 'tensors.safetensors'}: cannot be read ({e}); run the probe again"],
        )
    name, axes, settings = str(about.get("probe", path.name)), about.get("axes", {}), about.get("settings", {})
    return ProbeData(name, table, tensors, axes, settings, warnings)


def labels(runs: Sequence[RunData]) -> dict[Path, str]:
    """A short name per run: the model where that tells them apart, else with the benchmark, else the folder."""
    for make in (lambda r: r.model, lambda r: f"{r.model} · {r.benchmark}", lambda r: r.name):
        names = [make(r) for r in runs]
        if len(set(names)) == len(runs):
            return {r.path: n for r, n in zip(runs, names, strict=True)}
    return {r.path: f"{r.name} ({i})" for i, r in enumerate(runs, 1)}


def labels_by_benchmark(runs: Sequence[RunData]) -> dict[Path, str]:
    """Short names that tell the runs of each benchmark apart: for figures with one panel a benchmark."""
    found: dict[Path, str] = {}
    for benchmark in dict.fromkeys(r.benchmark for r in runs):
        found |= labels([r for r in runs if r.benchmark == benchmark])
    return found


def _tensors(path: Path) -> dict[str, Array]:
    if not path.is_file():
        return {}
    with safe_open(path, framework="np") as f:
        return {k: _read_tensor(f, k) for k in list(f.keys())}


def _read_tensor(file: Any, key: str) -> Array:
    array = file.get_tensor(key)
    return array.astype(np.float32) if array.dtype.kind == "V" or str(array.dtype) == "bfloat16" else array


def _lines(path: Path, read: Callable[[Path], list[Row]] = read_lines) -> list[Row]:
    return read(path) if path.is_file() else []


def _value(column: str, text: Any) -> Any:
    if text is None or text == "" or text == "None":
        return None
    if column in _TEXT_COLUMNS:
        return text
    try:
        number = float(text)
    except (TypeError, ValueError):
        return text
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() and "." not in text and "e" not in text.lower() else number


def _short(name: str) -> str:
    """``organism:control`` -> ``control``; ``/models/qwen3/`` -> ``qwen3``; ``cases.jsonl`` -> ``cases``."""
    last = name.removeprefix("organism:").rstrip("/").rsplit("/", 1)[-1]
    return last.rsplit(".", 1)[0] if last.endswith((".jsonl", ".json", ".csv")) else last
