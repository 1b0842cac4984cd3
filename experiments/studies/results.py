"""Write the results of a study: tables (csv and markdown), figures, ``study.md``, ``study.json`` and the report.

Each line of a table has one number with n and interval, the same answers counted as in the paper, and the number that
the paper prints. A failed run has a line with the reason.

Printed numbers are in ``published.csv``, one per line, with source; they are found by study, metric, group and model.
Models are recognized by hub id, and by name only where the paper gives no id (its names are short: "Qwen2.5-7B" may be
the tuned one). For a model that the paper does not have, its summary rows (``reference``) are shown, labelled as such.
Models and groups must match exactly: a wrong comparison is worse than none.
"""

import csv
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any

from ...errors import ComposcopeError, NotAskedError
from ...evaluation.metrics import DIFFERENCES, MEANINGS, NUMBERS, Metric, beyond, censored, find, quoted
from ...files import to_csv
from ...terminal import how_many
from ..console.printing import Reporter, markdown_table
from ..evaluating.evaluate import recount
from ..figures.drawing import encodable
from ..organism.weights import model_called
from ..run import write_json, write_text
from .study import Row, Study, StudyRun, StudyTable

_RELATIVE = frozenset(["code_gain"])

SHOWN = (*"model data pair what group shown n invalid".split(), "as the paper counts", "published", "source")


def metric_rows(
    study: Study, names: Sequence[str | tuple[str, Callable[[Mapping[str, Any]], bool]]], **words: str
) -> list[Row]:
    """One row per run and metric of ``names``, in their order; a name alone means the row over all cases.

    With a test on the group, all rows of the metric that pass it. ``words`` gives names of metrics for the reader.
    """
    rows: list[Row] = []
    for run in study.runs:
        compat = _recounted(study, run)
        for name in names:
            metric, test = (name, lambda g: not g) if isinstance(name, str) else name
            found = [m for m in run.run.metrics if m.metric == metric and test(m.group)]
            rows += [_row(study, run, m, compat, words) for m in found]
    return rows + failed_rows(study)


def comparison(study: Study) -> StudyTable:
    """One row per model and data set: its groups, and the preset's headline metrics with interval and n."""
    rows: list[Row] = []
    for run in study.runs:
        found = {name: run.run.one(name) for name in study.preset.headline}
        cells = {k: _beside_n(k, m) if m else "not measured" for k, m in found.items()}
        rows.append({"model": run.label, "data": run.data, **run.model.groups, **cells})
    groups = dict.fromkeys(k for m in study.spec.models for k in m.groups)
    told_apart = [] if len(study.data) == 1 else ["data"]
    shown = study.preset.headline or ("failed",) * bool(study.failed)
    columns = ("model", *told_apart, *groups, *shown)
    rows += [{"model": name, shown[0]: f"could not be run: {why}"} for name, why in study.failed.items()]
    return StudyTable("models", "Models side by side", rows, columns=columns)


def _beside_n(name: str, metric: Metric) -> str:
    invalid = f", {metric.n_invalid} invalid" if metric.n_invalid else ""
    return f"{shown(name, metric)}, n={metric.n}{invalid}"


def failed_rows(study: Study) -> list[Row]:
    """One row for each failed run, so that no model is missing."""
    return [{"model": name, "what": "failed", "shown": reason, "n": 0} for name, reason in study.failed.items()]


def _recounted(study: Study, run: StudyRun) -> Sequence[Metric] | None:
    """None if the paper's grading leads to questions that this run did not ask (for example, another level k)."""
    if study.preset.compat is None or run.run.manifest.stopped:
        return []
    kept = study.__dict__.setdefault("_recounted", {})
    if run.path not in kept:
        try:
            kept[run.path] = recount(run.path, study.preset.compat)
        except NotAskedError:
            kept[run.path] = None
    return kept[run.path]


def _row(study: Study, run: StudyRun, metric: Metric, compat: Sequence[Metric] | None, words: Mapping[str, str]) -> Row:
    text, source = beside(study.preset.name, metric.metric, metric.group, run.model.model, run.data)
    again = find(compat or [], metric.metric, **metric.group)
    name = metric.metric
    counted = "needs other asks" if compat is None else None if again is None else shown(name, again, interval=False)
    return {
        **described(name, metric),
        "model": run.label,
        "data": run.data,
        "what": words.get(name.replace(":", "_"), name),
        "as the paper counts": counted,
        "published": text,
        "source": source,
        **run.model.groups,
    }


def described(name: str, metric: Metric) -> Row:
    """The numbers of a metric, and their text."""
    metric = quoted(metric)
    return {
        "what": name,
        "group": ", ".join(f"{k} {_compact(str(v))}" for k, v in metric.group.items()),
        "shown": shown(name, metric),
        **{k: getattr(metric, k) for k in ("value", "low", "high", "interval", "count", "n")},
        "invalid": metric.n_invalid or None,
        "note": metric.note,
    }


def _compact(text: str) -> str:
    """A sequence of skills with repeated ones counted: ``recall + recall + add`` is ``2 × recall + add``."""
    runs = [(name, len(list(same))) for name, same in groupby(text.split(" + "))]
    return " + ".join(name if n == 1 else f"{n} × {name}" for name, n in runs)


def shown(name: str, metric: Metric, *, interval: bool = True) -> str:
    """A value as text: percent, points or a plain number, with its interval; or ``undefined``."""
    value = metric.value
    if value is None:
        said = censored(metric)
        return f"undefined ({said})" if said else "undefined"
    scale, unit, form = _form("gap" if "against" in metric.group else name)
    text = f"{scale * value:{form}}{unit}"
    if interval:
        ends = [_bound(metric, k, scale, form) for k in ("low", "high")]
        text += f" [{', '.join(ends)}]" if all(ends) else " (no interval)"
    return text


def _bound(metric: Metric, name: str, scale: float, form: str) -> str:
    """One end of an interval; ``<2`` if the note says that it lies beyond what was asked."""
    value = getattr(metric, name)
    if value is not None:
        return f"{scale * value:{form}}"
    return beyond(metric, name)


def _form(name: str) -> tuple[float, str, str]:
    if name in NUMBERS:
        return 1, "", ".2f"
    if name in DIFFERENCES or name.startswith("delta"):
        return 100, " points", "+.1f"
    return 100, " %", "+.0f" if name in _RELATIVE else ".1f"


def write(
    study: Study, planned: Sequence[StudyRun], document: dict[str, Any], reporter: Reporter, start: float, *,
    report: bool,
) -> Path:  # fmt: skip
    """Write everything; returns the path of ``study.md``."""
    tables = [t for t in (comparison(study), *study.preset.tables(study)) if t.rows] if study.runs else []
    for table in tables:
        rows = [{k: v for k, v in r.items() if k != "shown"} for r in table.rows]
        write_text(study.folder / "tables" / f"{table.name}.csv", encodable(to_csv(rows)))
    drawn, not_drawn = _figures(study, reporter) if study.runs else ([], {})
    page = _report(study, reporter) if report and study.runs else None
    seconds = round(time.monotonic() - start, 1)
    text = markdown(study, tables, drawn, page, not_drawn)
    document |= {"failed": study.failed, "stopped": study.stopped, "tables": [t.name for t in tables]}
    write_json(study.folder / "study.json", {**document, "figures": drawn, "seconds": seconds})
    path = write_text(study.folder / "study.md", encodable(text))
    reporter.say(f"{study.preset.name}: {len(study.runs)} of {len(planned)} runs, {seconds:.0f} s; {path}")
    return path


def _figures(study: Study, reporter: Reporter) -> tuple[list[str], dict[str, str]]:
    """Draw the preset's figures; returns their names, and for each other figure why there is nothing to draw."""
    from ..figures import catalog
    from ..figures.drawing import write as write_figure
    from ..run import reader as io

    runs = io.load([r.path for r in study.runs])
    drawn, empty = [], {}
    for name in study.preset.figures:
        drawing = catalog.draw(name, runs)
        if drawing.empty is None:
            write_figure(drawing, name, study.folder / "figures")
            drawn.append(name)
        else:
            empty[name] = drawing.empty
            reporter.say(f"figure {name}: {drawing.empty}")
    return drawn, empty


def _report(study: Study, reporter: Reporter) -> str | None:
    from .. import report

    try:
        return Path(report.write([r.path for r in study.runs], study.folder, progress=reporter.bar)).name
    except ComposcopeError as e:
        reporter.say(f"report: {e}")
        return None


def markdown(
    study: Study, tables: Sequence[StudyTable], figures: Sequence[str], page: str | None = None,
    empty: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """The study as one page of text: models, tables with the paper's numbers, figures, and what it does not reproduce.

    ``empty`` maps figures with nothing to draw to the reason.
    """
    preset, n = study.preset, len(study.spec.models)
    out = [f"# {preset.title}", ""]
    out += [f"Study `{preset.name}`: {how_many(n, 'model')} on {', '.join(study.data)}.", ""]
    for name, reason in study.failed.items():
        out += [f"**{name} could not be run:** {reason}", ""]
    out += [f"**{line}**\n" for line in study.stopped]
    seen = {str(r.get("what")) for t in tables for r in t.rows} | set(preset.headline)
    meant = [f"* {name}: {words}" for name, words in MEANINGS.items() if name in seen]
    for table in tables:
        told_apart = {"data"} if len(study.data) == 1 else set()
        columns = list(table.columns) or [
            c for c in SHOWN if c not in told_apart and any(r.get(c) not in (None, "") for r in table.rows)
        ]
        out += [f"## {table.title}", "", *_markdown_table([_read_as(r, study) for r in table.rows], columns), ""]
        out += [table.note, ""] if table.note else []
        out += [*meant, ""] if table is tables[0] and meant else []
    for name in figures:
        out += [f"## Figure {name}", "", f"![{name}](figures/{name}.png)", ""]
        out += [(study.folder / "figures" / f"{name}.txt").read_text(encoding="utf-8").strip(), ""]
    warned = [f"* {run.path.name}: {_line(warning)}" for run in study.runs for warning in run.run.warnings]
    out += ["## Warnings", "", *warned, ""] if warned else []
    if empty:
        out += ["## Figures with nothing to draw", "", *(f"* {name}: {_line(why)}" for name, why in empty.items()), ""]
    out += [f"The page with every answer: [{page}]({page})", ""] if page else []
    if preset.notes:
        out += ["## What this does not reproduce", "", *(f"* {n}" for n in preset.notes), ""]
    return "\n".join(out)


def _read_as(row: Row, study: Study) -> Row:
    """The row with readable model names: doses of organisms with their share of compositions."""
    known = {m.label: model_called(m.model, m.label, m.groups.get("dose")) for m in study.spec.models}
    said = row.get("model")
    return {**row, "model": ", ".join(known.get(m, m) for m in str(said).split(", "))} if said else row


def _line(text: str) -> str:
    return " ".join(text.split())


def _markdown_table(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    names = {"shown": "measured [95 %]", "what": "quantity", "short": "number", "interval": "method",
             "verdict": "answer", "as_expected": "expected sign, or above 0.5"}  # fmt: skip
    return markdown_table([names.get(c, c) for c in columns], [[_cell(r.get(c)) for c in columns] for r in rows])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


@dataclass(frozen=True)
class Published:
    """One printed number."""

    study: str
    metric: str
    group: str
    """``key=value;...`` with keys in alphabetical order; empty for all cases."""
    model: str
    ids: str
    """Hub id of the model, if the paper gives it."""
    benchmark: str
    """Name of the benchmark; empty if the study has only one."""
    value: str
    """As printed; a range as ``2.5 to 9.8``."""
    unit: str
    n: str
    reference: str
    """``1`` if the number is shown for models that the paper does not have."""
    source: str

    @property
    def text(self) -> str:
        """The number with its unit and n."""
        n = f" (n={self.n})" if self.n else ""
        return f"{self.value}{' ' + self.unit if self.unit else ''}{n}"


@lru_cache(maxsize=1)
def table() -> tuple[Published, ...]:
    """All printed numbers."""
    text = files("composcope.experiments.studies").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(Published(**row) for row in csv.DictReader(text.splitlines()))


_FAMILIES = {
    "temporal_rank": "rank",
    "temporal_successor": "successor",
    "temporal_interval_decoy": "interval",
    "pair_far_control": "pair",
}


def group_key(group: Mapping[str, Any]) -> str:
    """A metric's group as one string, with families under their short names from the organisms' benchmark."""
    return ";".join(f"{k}={_FAMILIES.get(str(group[k]), group[k])}" for k in sorted(group)).casefold()


def name_key(name: str) -> str:
    """A model's name without owner, server, case or signs: ``Qwen/Qwen2.5-7B-Instruct`` is ``qwen257binstruct``."""
    return "".join(c for c in _last(name).casefold() if c.isalnum())


def pair_name(a: str, b: str) -> str:
    """Two matched models in the form of ``ids`` in ``published.csv``: names without owners, ``A - B``."""
    return f"{_last(a)} - {_last(b)}"


def _last(name: str) -> str:
    return name.partition("@http")[0].rstrip("/").rsplit("/", 1)[-1]


_STAGES = ("-final", "-scaffolded", "-arithmetic")


def benchmark_key(spec: str) -> str:
    """The benchmark's name in ``published.csv``: ``bamboogle:FILE`` and ``hub:tot`` are ``bamboogle`` and ``tot``.

    STaD scaffolds several benchmarks, so its files and splits tell which: ``stad:DIR/gsm8k_final.jsonl`` is ``gsm8k``.
    """
    words = spec.split(":")
    if words[0] == "hub" and len(words) > 1:
        words = [words[1].partition("@")[0], *words[2:]]
    if words[0].casefold() == "stad" and len(words) > 1:
        name = PurePath(words[-1]).stem.replace("_", "-").casefold()
        for stage in _STAGES:
            name = name.removesuffix(stage)
        return name
    return words[0].casefold()


def beside(
    study: str, metric: str, group: Mapping[str, Any], model: str, data: str = "", *, references: bool = True
) -> tuple[str, str]:
    """(text, source) of the paper's number; for a model that it does not have, the paper's reference values.

    Both are empty if the paper does not print this number, or only as ``references`` that are not wanted.
    """
    rows = [r for r in table() if (r.study, r.metric, r.group.casefold()) == (study, metric, group_key(group))]
    where = benchmark_key(data)
    if where in {r.benchmark for r in table() if r.study == study} - {""}:
        rows = own_data = [r for r in rows if r.benchmark == where]
    else:
        own_data = [r for r in rows if not r.benchmark]
        rows = own_data or rows
    own = [r for r in own_data if name_key(model) == name_key(r.ids or r.model)]
    if own:
        return own[0].text, own[0].source
    shown = [r for r in rows if r.reference and references]
    text = "; ".join(f"{', '.join(filter(None, (r.model, r.benchmark)))}: {r.text}" for r in shown)
    return text, "; ".join(dict.fromkeys(r.source for r in shown))
