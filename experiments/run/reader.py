"""A run folder as typed data. Each file is read and checked once, when it is first used.

    run = read_run("runs/demo/control--mixed")
    run.one("composition").value, len(run.graded), run.probe("lookback").table

This needs neither torch nor a model, so a run can be scored and plotted on a machine that could not have made it. A
part that a run does not have (no probe, no journal) is empty; a part that cannot be read raises ``InputError``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ...errors import InputError, JournalError
from ...evaluation import text_files
from ...evaluation.asks import Ask, Response
from ...evaluation.case import Case, case_from_dict
from ...evaluation.graded import Graded, read_graded
from ...evaluation.journal import Contents, read_journal
from ...evaluation.metrics import Metric, quoted
from ...evaluation.protocols.base import CaseSet, Entry, Reduction
from ...files import Row, as_path, read_csv, short_name
from ..config import Config
from ..organism.weights import model_called
from .folder import files_told_apart, find_runs, missing, placed_lines, read_json, told_apart
from .schema import AGAIN, COUNT_AGAIN, Evaluated, Manifest, Metrics, ProbeAbout, StudyAbout, checked

Array = NDArray[Any]
_TEXT_COLUMNS = frozenset(
    "quantity group kind role interval test case family operation note run model cluster token stratum task".split()
)


@dataclass(frozen=True)
class ProbeData:
    """One probe's folder: ``table.csv``, ``tensors.safetensors``, ``result.json``."""

    name: str
    table: Sequence[Row]
    """Rows of the table; numeric cells are numbers and empty cells are None."""
    tensors: Mapping[str, Array] = field(default_factory=dict)
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def named(self, prefix: str) -> dict[str, Array]:
        """The tensors whose names start with ``prefix.``, keyed by the rest of the name."""
        return {k[len(prefix) + 1 :]: v for k, v in self.tensors.items() if k.startswith(prefix + ".")}

    def rows(self, quantity: str, **keys: Any) -> list[Row]:
        """Table rows of a quantity whose columns have the given values."""
        wanted = {"quantity": quantity, **keys}
        return [r for r in self.table if all(r.get(k) == v for k, v in wanted.items())]


@dataclass(frozen=True)
class RunData:
    """One run folder."""

    path: Path
    called: str = ""  # its name where another run has a folder of the same name
    on: str = ""  # its benchmark's name where another run has another benchmark of the same name
    _probes: dict[str, ProbeData] = field(default_factory=dict[str, ProbeData], repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.called or self.path.name

    @cached_property
    def manifest(self) -> Manifest:
        file = self.path / "manifest.json"
        return checked(Manifest, read_json(file), str(file))

    @cached_property
    def config(self) -> Config | None:
        """The options that the run was made with; None for rows that came from elsewhere."""
        file = self.path / "config.yaml"
        return checked(Config, read_config(self.path), str(file)) if file.is_file() else None

    @cached_property
    def counted(self) -> Metrics | None:
        """``metrics.json`` as it was written; None if it does not exist yet."""
        file = self.path / "metrics.json"
        return checked(Metrics, read_json(file), str(file), COUNT_AGAIN) if file.is_file() else None

    def counted_now(self) -> Metrics:
        """``metrics.json``; raises ``InputError`` if it does not exist yet."""
        text_files.existing(self.path / "metrics.json", missing(self.path / "metrics.json"))
        assert self.counted is not None
        return self.counted

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """Each metric with the interval to quote: over clusters if cases share facts or items."""
        return [quoted(m) for m in self.counted.metrics] if self.counted else []

    @property
    def warnings(self) -> Sequence[str]:
        return self.counted.warnings if self.counted else ()

    @property
    def protocol(self) -> str:
        return str((self.counted and self.counted.protocol) or self.manifest.identity.get("protocol") or "")

    @property
    def seed(self) -> int:
        return self.config.seed if self.config else 0

    @cached_property
    def study(self) -> Mapping[str, Any]:
        """The ``study.json`` of the study that the run belongs to; empty for a run outside a study."""
        file = self.path.parent / "study.json"
        found = checked(StudyAbout, read_json(file), str(file)).facts() if file.is_file() else {}
        return found if self.path.name in found.get("runs", []) else {}

    @property
    def about(self) -> Mapping[str, Any]:
        """The study's description of the model: label, family, size, tuning, recipe, ..."""
        return self.study.get("about", {}).get(self.path.name, {})

    @property
    def model(self) -> str:
        """The model's name in its study, else the name that the run was given without folders; a dose has its share."""
        said = self._said("model")
        return model_called(said, str(self.about.get("label") or short_name(said)), self.about.get("dose"))

    @property
    def benchmark(self) -> str:
        return self.on or short_name(self._said("benchmark"))

    @property
    def commands(self) -> list[str]:
        """The commands that made the run, each once: it may have been evaluated and probed by different ones."""
        made = [str(call.get("command") or "") for call in self.manifest.invocations]
        return [c for c in dict.fromkeys(made or [self.manifest.command]) if c]

    def _said(self, key: str) -> str:
        return str((self.config and getattr(self.config, key)) or self.manifest.identity.get(key) or self.name)

    def select(self, metric: str, *by: str) -> list[Metric]:
        """Metrics of a name that are grouped by exactly ``by``; constant keys (model, prompt) do not count.

        If cases were also asked in other ways (self-ask, ...), only the usual way is returned.
        """
        keys = set(by)
        free = {"model", "prompt"} - keys
        found = [m for m in self.metrics if m.metric == metric and set(m.group) - free == keys]
        usual = [m for m in found if "prompt" not in m.group]
        return found if "prompt" in keys or not usual else usual

    def one(self, metric: str, **group: Any) -> Metric | None:
        """The metric of a name whose group is exactly ``group``."""
        return next((m for m in self.select(metric, *group) if all(m.group[k] == v for k, v in group.items())), None)

    @cached_property
    def cases(self) -> dict[str, Case]:
        """The cases of the run, by id.

        Raises ``InputError`` if a line has no case, if an id occurs twice, or if the number of cases is not the one
        that the run asked about: a file that lost lines would otherwise look like a smaller benchmark.
        """
        path = self.path / "cases.jsonl"
        if not path.is_file():
            return {}
        found: list[Case] = []
        for where, raw in _filled(path):
            if not isinstance(raw.get("id", ""), str):
                raise InputError(f"{where}: field 'id' is {raw['id']!r}, not text; {AGAIN}")
            found.append(case_from_dict(raw, where))
        twice = next((case for case, n in Counter(c.id for c in found).items() if n > 1), None)
        if twice is not None:
            raise InputError(f"{path}: field 'id' is {twice!r} on several lines; {AGAIN}")
        asked = self.manifest.n_cases if (self.path / "manifest.json").is_file() else None
        if asked not in (None, len(found)):
            raise InputError(f"{path}: {len(found)} cases, and field 'n_cases' of manifest.json is {asked}; {AGAIN}")
        return {c.id: c for c in found}

    @cached_property
    def graded(self) -> list[Graded]:
        """The graded rows. Raises ``InputError`` if a complete run has no row for one of its cases."""
        path = self.path / "graded.jsonl"
        if not path.is_file():
            return []
        found = read_graded(path)
        complete = (self.path / "manifest.json").is_file() and self.manifest.status == "complete"
        if complete and not self.manifest.stopped:
            graded = {row.case for row in found}
            lost = [case for case in self.cases if case not in graded]
            if lost:
                raise InputError(
                    f"{path}: no row for {len(lost)} cases (first: {lost[0]!r}), and the run is complete; {COUNT_AGAIN}"
                )
        return found

    @cached_property
    def asks(self) -> dict[str, Ask]:
        """Asks by identity. An ask that several cases share has one role here; ``graded`` says which cases use it."""
        path = self.path / "asks.jsonl"
        found = _filled(path) if path.is_file() else []
        asks = [(checked(Ask, raw, where, needed=["ask"]), raw) for where, raw in found]
        return {str(raw["ask"]): ask for ask, raw in asks}

    @cached_property
    def journal(self) -> Contents:
        """The recorded answers; a torn last line of a killed run is left out."""
        return read_journal(self.path / "journal")

    @property
    def responses(self) -> dict[str, Response]:
        """Answers and failures by ask."""
        return {**self.journal.failures, **self.journal.responses}

    @cached_property
    def by_case(self) -> dict[str, list[Graded]]:
        """Graded rows of every case in the benchmark's order, also of cases without any; then those of other cases."""
        found: dict[str, list[Graded]] = {case: [] for case in self.cases}
        for row in self.graded:
            found.setdefault(row.case, []).append(row)
        return found

    @cached_property
    def outcomes(self) -> dict[str, dict[str, str]]:
        """The outcome of each role, by case."""
        return {case: {row.role: row.outcome for row in rows} for case, rows in self.by_case.items()}

    @cached_property
    def case_sets(self) -> dict[str, CaseSet]:
        """``casesets/NAME.jsonl`` by name."""
        return {p.stem: _case_set(p) for p in sorted((self.path / "casesets").glob("*.jsonl"))}

    @cached_property
    def groups(self) -> tuple[list[str], list[str]]:
        """The cases of its sets of failures and of its sets of successes, each once."""
        failures, successes = (
            list(dict.fromkeys(c for s in self.case_sets.values() if s.label == label for c in s.ids))
            for label in ("failure", "success")
        )
        return failures, successes

    @property
    def chance(self) -> float | None:
        """Mean probability that a guess in the right format answers the whole correctly; None if no case states one."""
        known = [c.chance for c in self.cases.values() if c.chance is not None]
        return sum(known) / len(known) if known else None

    def read_all(self) -> None:
        """Read every file of the run now. Raises ``InputError`` or ``JournalError`` for a file that cannot be read."""
        _ = self.graded, self.cases, self.asks, self.case_sets, self.journal, self.study

    def evaluated(self) -> Evaluated:
        """The result of the evaluation; nothing is graded, counted or written.

        Raises ``InputError`` for a folder that is not an evaluated run, ``JournalError`` if the journal lost answers.
        """
        for name in ("cases.jsonl", "asks.jsonl", "graded.jsonl", "metrics.json"):
            text_files.existing(self.path / name, missing(self.path / name))
        answered = self.responses
        lost = [row.ask for row in self.graded if row.ask is not None and row.ask not in answered]
        if answered and lost:
            why = "".join(f"; {w}" for w in self.journal.warnings[:1])
            raise JournalError(
                f"{self.path / 'journal'}: the answers of {len(lost)} of {len(self.graded)} graded asks are missing "
                f"(first: {lost[0]}{why}); restore the folder, or run the evaluation again with the model"
            )
        reduction = Reduction(tuple(self.counted.metrics if self.counted else ()), tuple(self.case_sets.values()))
        return Evaluated(
            self.cases, self.asks, self.journal.responses, self.graded, reduction, self.manifest.stopped, self.protocol
        )

    @cached_property
    def probe_names(self) -> list[str]:
        return sorted(p.name for p in (self.path / "probes").glob("[!.]*") if p.is_dir())

    def probe(self, name: str) -> ProbeData | None:
        """A probe's results (``min-k`` and ``min_k`` are the same name); None if the run has none."""
        for spelled in dict.fromkeys((name, name.replace("_", "-"), name.replace("-", "_"))):
            if spelled in self._probes:
                return self._probes[spelled]
            if (self.path / "probes" / spelled / "table.csv").is_file():
                return self._probes.setdefault(spelled, read_probe(self.path / "probes" / spelled))
        return None


def read_run(folder: str | Path) -> RunData:
    """Open one run folder. Manifest, options and metrics are read now; metrics not yet written are an empty list.

    Raises ``InputError`` for a folder that is not a run.
    """
    run = RunData(as_path(folder, "run").resolve())
    _ = run.manifest, run.config, run.metrics
    return run


def load(runs: Iterable[str | Path | RunData]) -> list[RunData]:
    """Open run folders, or studies of several; runs that are open stay as they are, but for names that two would have.

    Raises ``InputError`` for a folder that is not a run, or a file in it that cannot be read.
    """
    out: list[RunData] = []
    for run in runs:
        found = [run] if isinstance(run, RunData) else _in_order(Path(run), [read_run(p) for p in find_runs([run])])
        out += [r for r in found if r.path not in {known.path for known in out}]
    if not out:
        raise InputError("no run folder given; see `composcope ls`")
    names = (r.called if n == r.path.name else n for r, n in zip(out, told_apart([r.path for r in out]), strict=True))
    on = files_told_apart([(r._said("benchmark"), r.manifest.identity.get("data")) for r in out])
    named = ((r, n, r.on or b) for r, n, b in zip(out, names, on, strict=True))
    return [r if (n, b) == (r.called, r.on) else replace(r, called=n, on=b) for r, n, b in named]


def _in_order(folder: Path, runs: list[RunData]) -> list[RunData]:
    """A study's runs in the order that its ``study.json`` gives (a dose series rises), else in order of creation."""
    file = folder / "study.json"
    study = checked(StudyAbout, read_json(file), str(file)).facts() if file.is_file() else {}
    place = {name: i for i, name in enumerate(study.get("runs", []))}
    return sorted(runs, key=lambda r: (place.get(r.name, len(place)), str(r.manifest.created or "")))


def read_config(folder: str | Path) -> dict[str, Any]:
    """The options that a run was made with, as written in ``config.yaml``.

    Raises ``InputError`` for a file that is missing or broken, or that lacks model, benchmark or protocol.
    """
    import yaml

    path = Path(folder) / "config.yaml"
    try:
        found = yaml.safe_load(text_files.text(path, missing(path)))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise InputError(f"{path}: not valid YAML ({' '.join(str(e).split())[:200]}); {AGAIN}") from e
    if not isinstance(found, dict):
        raise InputError(f"{path}: contains no options; {AGAIN}")
    checked(Config, found, str(path), needed=("protocol",))
    return found


def read_probe(folder: str | Path) -> ProbeData:
    """Read one probe folder. Tensors in bfloat16 become float32; tensors that cannot be read become a warning."""
    path = Path(folder)
    about = read_about(path)
    table = [{k: _value(k, v) for k, v in row.items() if k is not None} for row in read_csv(path / "table.csv")[1]]
    warnings = list(about.warnings)
    tensors: dict[str, Array] = {}
    try:
        tensors = read_tensors(path / "tensors.safetensors")
    except SafetensorError as e:
        warnings.append(f"{path / 'tensors.safetensors'}: cannot be read ({e}); run the probe again")
    return ProbeData(about.probe or path.name, table, tensors, about.axes, about.settings, warnings)


def read_about(folder: Path) -> ProbeAbout:
    """The metadata next to a probe's table; empty if there is none."""
    file = folder / "result.json"
    return checked(ProbeAbout, read_json(file) if file.is_file() else {}, str(file), "run the probe again")


def read_tensors(path: Path) -> dict[str, Array]:
    """The tensors of a file as arrays, with bfloat16 as float32; empty if there is no file."""
    if not path.is_file():
        return {}
    with safe_open(path, framework="np") as f:
        found = {k: f.get_tensor(k) for k in list(f.keys())}
    return {k: v.astype("f4") if v.dtype.kind == "V" or str(v.dtype) == "bfloat16" else v for k, v in found.items()}


def _filled(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """(place, object) for every line. Raises ``InputError`` for a file without lines."""
    if found := list(placed_lines(path)):
        return found
    raise InputError(f"{path}: no lines; {AGAIN}")


def _case_set(path: Path) -> CaseSet:
    rows = list(placed_lines(path))
    entries = tuple(checked(Entry, raw, where, COUNT_AGAIN, needed=["label"]) for where, raw in rows)
    labels = list(dict.fromkeys(str(raw["label"]) for _, raw in rows))
    if len(labels) > 1:
        raise InputError(f"{path}: field 'label' is {labels[0]!r} and {labels[1]!r}; {COUNT_AGAIN}")
    return CaseSet(path.stem, labels[0] if labels else "other", entries)


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
