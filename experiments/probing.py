"""The mechanistic half of a run: probes on failures and matched successes. Probes with unchanged inputs are skipped.

``probes/examples.json`` records the cases chosen last: matched pairs, strata, and dropped cases. Each probe's folder
has those that it ran on, and the hash of everything that its numbers depend on, so running the same command again
repeats only probes that changed. A few single cases are kept beside:
``probes/NAME/cases/{index.json,tensors.safetensors}``.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_file

from ..errors import InputError, NoCasesError
from ..files import put_in_place, read_csv, text_hash, to_csv
from ..probes.catalog import PROBES, Probe
from ..probes.examples import Example
from ..probes.single_cases import SingleCases
from ..probes.spread import Fleet, call
from ..registry import PLUGIN_FIRST
from .config import Config
from .console.printing import Reporter
from .run import provenance, read_json, write_json
from .run.folder import MEASURED, write_text
from .run.writer import OpenRun, save_probe

if TYPE_CHECKING:
    from ..probes.result import ProbeResult


@dataclass(frozen=True)
class Chosen:
    """The cases that the probes run on."""

    examples: tuple[Example, ...]
    note: str
    """One sentence: pairs and dropped strata, or why there is no contrast."""
    contrast: bool
    """Whether there are both failures and matched successes."""

    def facts(self) -> dict[str, Any]:
        """What is recorded of the choice: the note, whether it is a contrast, and the cases of each group."""
        return {"note": self.note, "contrast": self.contrast, "groups": cases_of(self.examples)}


def choose(examples: Sequence[Example], n: int) -> Chosen:
    """Matched failures and successes, at most ``n`` pairs, spread evenly over the strata.

    Without common support the first ``n`` cases of each group are kept, since parts can still be compared with wholes.
    """
    from ..probes.matching import match, spread_out

    matched = match(examples)
    if not matched.possible:
        first = {case for group in cases_of(examples).values() for case in group[:n]}
        return Chosen(tuple(e for e in examples if e.case in first), matched.note, False)
    kept = {case for pair in spread_out(matched.pairs, examples)[:n] for case in pair}
    few = "" if len(matched.pairs) <= n else f"; of these {n} are probed, spread over families, depths and operations"
    return Chosen(tuple(e for e in matched.examples if e.case in kept), matched.note + few, True)


def cases_of(examples: Sequence[Example]) -> dict[str, list[str]]:
    """The cases of each group, in order."""
    cases: dict[str, dict[str, None]] = defaultdict(dict)
    for e in examples:
        cases[e.group][e.case] = None
    return {group: list(found) for group, found in cases.items()}


def save_chosen(run: OpenRun, chosen: Chosen) -> None:
    """Write which cases the probes run on."""
    write_json(run.path / "probes" / "examples.json", chosen.facts())


@contextmanager
def measuring(run: Path, target: Any, keep: bool) -> Iterator[Any]:
    """The target's model for the probes, with the run's store of measurements if the run has one.

    ``keep`` creates a store and keeps it, because a shard's measurements are used by the merged run. Otherwise the
    store is removed when everything is done.
    """
    from .distributed.store import CachedModel, Store, scope

    lm, folder = target.open_model(), run / "probes" / MEASURED
    if not isinstance(lm, Fleet) and (keep or folder.is_dir()):
        lm = CachedModel(lm, Store(folder), scope(target))
    yield lm
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)


def measure_shard(run: Path, target: Any, chosen: Chosen, settings: Config, shard: Any) -> list[str]:
    """Measure one shard's part of what the probes need into the run's store; returns one line per probe."""
    from .distributed.store import CachedModel, Missing, Store, scope

    lm = CachedModel(target.open_model(), Store(run / "probes" / MEASURED), scope(target), shard)
    lines = []
    for name in settings.probes:
        try:
            _probe(name).run(lm, chosen.examples, settings, Reporter(None))
            lines.append(f"{name}: everything is measured")
        except Missing as e:
            lines.append(f"{name}: {e}")
        except NoCasesError as e:
            lines.append(f"{name}: not run: {e}")
    return lines


def run_probes(run: OpenRun, lm: Any, chosen: Chosen, settings: Config, reporter: Reporter) -> None:
    """Run the requested probes, except those whose inputs are unchanged."""
    for name in settings.probes:
        compute = partial(_probe(name).run, lm, chosen.examples, settings, reporter)
        run_one(run, lm, name, chosen, settings, compute, reporter)


def _checked(result: ProbeResult) -> ProbeResult:
    """The result with a warning if no value of its table is known: a probe of one's own may give only NaN."""
    values = (row.get("value") for row in result.table)
    if not result.table or any(isinstance(v, Real) and math.isfinite(v) for v in values):
        return result
    return replace(result, warnings=[*result.warnings, "no value is known: each is NaN or over no cases"])


def _unmatched(result: ProbeResult) -> ProbeResult:
    """The result with a warning if it contrasts groups of which no two cases could be matched."""
    if not any(str(row.get("group")).startswith("failure - success") for row in result.table):
        return result
    said = "failures are contrasted with successes of other families, depths or lengths: none could be matched"
    return replace(result, warnings=[*result.warnings, said])


def run_one(
    run: OpenRun, lm: Any, name: str, chosen: Chosen, settings: Config, compute: Callable[[], ProbeResult],
    reporter: Reporter, options: Mapping[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Compute one probe and save it in the run with a few single cases; False if it was kept or cannot run.

    ``options`` are the arguments of ``compute`` besides the settings.
    """
    folder = run.path / "probes" / name
    inputs = inputs_hash(name, chosen.examples, settings, run.manifest.model)
    if options is not None:
        inputs = text_hash([inputs, json.dumps(options, sort_keys=True, default=str)])
    kept, start = finished(folder, inputs), time.monotonic()
    # A plugin's error leaves the run, its answers and other probes as they are.
    run.status_after_error = "failed" if name in PROBES.own else "complete"
    if kept:
        reporter.say(f"{run.name}: probe {name}: unchanged, kept")
    else:
        try:
            with run.timed(f"probe:{name}"):
                result = _checked(compute())
                result = result if chosen.contrast else _unmatched(result)
                save_probe(result, folder, run.manifest, inputs, **chosen.facts())
        except NoCasesError as e:
            # A probe that needs both groups cannot run here; others can.
            left = f"; {folder} still has the result of an earlier call" if (folder / "table.csv").is_file() else ""
            reporter.say(f"{run.name}: probe {name}: not run: {e}{left}")
            run.status_after_error = "failed"
            return False
        for warning in result.warnings:
            reporter.note(f"{run.name}: probe {name}: {warning}")
        reporter.note(f"{run.name}: probe {name}: {time.monotonic() - start:.1f} s")
    keep_cases(run, lm, name, chosen, settings, inputs, reporter)
    run.status_after_error = "failed"
    correct_together(run.path)
    run.record()
    return not kept


def correct_together(run: Path) -> None:
    """Adjust the p-values in the tables of all probes of a run together, as ``probes.verdicts`` declares."""
    from ..probes.verdicts import corrected

    tables: dict[Path, tuple[list[str], list[dict[str, Any]]]] = {}
    for path in sorted(run.glob("probes/*/table.csv")):
        names, rows = read_csv(path)
        if "p" in names:
            tables[path] = names, rows
    tested = [(row, {**row, "p": float(row["p"])}) for _, rows in tables.values() for row in rows if row["p"]]
    for (row, _), found in zip(tested, corrected([numbers for _, numbers in tested]), strict=True):
        row.update({k: found[k] for k in ("p_adjusted", "family")})
    for path, (names, rows) in tables.items():
        columns = [*names, *(n for n in ("p_adjusted", "family") if n not in names)]
        text = to_csv(rows, columns)
        if text != path.read_text(encoding="utf-8"):
            write_text(path, text)


def keep_cases(
    run: OpenRun, lm: Any, name: str, chosen: Chosen, settings: Config, inputs: str, reporter: Reporter
) -> None:
    """Keep a few single cases' results of a probe for the report; skipped if they are already saved."""
    folder = run.path / "probes" / name
    n = settings.case_details
    mine = text_hash([inputs, str(n)])
    if finished(folder / "cases", mine):
        return
    few = choose(chosen.examples, n).examples if n else ()
    with run.timed(f"cases:{name}"):
        left_out = write_cases(name, lm, few, chosen.examples, n, folder, mine)
    for line in left_out:
        reporter.note(f"{run.name}: probe {name}, single cases: {line}")


def inputs_hash(name: str, examples: Sequence[Example], settings: Config, model: Any) -> str:
    """Hash of everything that a probe's numbers depend on: examples, options, the model and the probes' own code."""
    about = [name, settings.seed, settings.dtype, model, provenance.source_hash(("probes", "hooks"))]
    if settings.rows_dtype is not None:
        about.append(settings.rows_dtype)
    if _probe(name).reads_at_slots:
        about.append(settings.position)
    if name not in PROBES.own:
        about.append(provenance.plugin_files())
    return text_hash([json.dumps(about, sort_keys=True, default=str), *(repr(asdict(e)) for e in examples)])


def finished(folder: Path, inputs: str) -> bool:
    """Whether a probe's folder has results for exactly these inputs."""
    done = folder / "inputs.json"
    return done.is_file() and read_json(done).get("inputs") == inputs


def _probe(name: str) -> Probe:
    found = PROBES.find(name)
    if found is None:
        raise InputError(f"--probes {name}: no such probe; {PLUGIN_FIRST}")
    return found


Few = Sequence[Example]


def write_cases(name: str, lm: Any, few: Few, every: Few, n: int, folder: Path, inputs: str) -> list[str]:
    """Save the results of the probe ``name`` on single cases; returns one sentence for each thing left out.

    ``few`` are the examples to save (``n`` cases per group), ``every`` those that the probe ran on, ``folder`` the
    probe's own folder. The files are written in one step. Nothing is written for a probe without single-case results.
    """
    if PROBES[name].cases is None:
        return []
    found = call(lm, _make, name, few, every, n, folder) if n else SingleCases([])
    _write(name, found, every, n, folder / "cases", inputs)
    return found.left_out


def _make(lm: Any, name: str, few: Few, every: Few, n: int, folder: Path) -> SingleCases:
    make = PROBES[name].cases
    return SingleCases([]) if make is None else make(lm, few, every, n, folder)


def statement(found: SingleCases, every: Few) -> str:
    """One sentence: how many cases of each group are saved, out of how many."""
    of = Counter(group for _, group in {(e.case, e.group) for e in every})
    kept = Counter(group for _, group in {(e.about["case"], e.about["group"]) for e in found.entries})
    counts = ", ".join(f"{kept[g]} of {of[g]} {g} cases" for g in sorted(of))
    return f"kept for {counts}"


def _write(name: str, found: SingleCases, every: Few, n: int, folder: Path, inputs: str) -> None:
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    tensors, entries = {}, []
    for i, entry in enumerate(found.entries):
        tensors |= {f"{i}.{k}": v.cpu().contiguous() for k, v in entry.tensors.items()}
        entries.append({**entry.about, "axes": {k: list(v) for k, v in entry.axes.items()}})
    if tensors:
        save_file(tensors, temporary / "tensors.safetensors")
    write_json(
        temporary / "index.json",
        {"schema": 1, "probe": name, "cases_per_group": n, "note": statement(found, every),
         "left_out": found.left_out, "entries": entries},
    )  # fmt: skip
    write_json(temporary / "inputs.json", {"inputs": inputs})
    shutil.rmtree(folder, ignore_errors=True)
    put_in_place(temporary, folder)
