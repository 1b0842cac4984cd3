"""Probes on a group of cases: kept in the run's folder for all failures, in memory for a choice of cases."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...errors import InputError, NoCasesError
from ..config import Config
from ..evaluating.benchmark import LoadedBenchmark
from ..run import read_json
from ..run.reader import ProbeData, RunData, read_probe
from .shown import ProbeResults

if TYPE_CHECKING:
    from ..models.target import Target


def kept(run: RunData, name: str) -> ProbeResults:
    """What a run's folder holds of a probe."""
    data = RunData(run.path)
    found, chosen = data.probe(name), data.path / "probes" / "examples.json"
    if found is None:
        held = ", ".join(data.probe_names) or "none"
        raise InputError(
            f"{run.name}: nothing measured by a probe {name!r} (there is: {held}); run.failures.probe(...)"
        )
    about = read_json(chosen) if chosen.is_file() else {}
    return ProbeResults(found.name.replace("_", "-"), run, found, about.get("note", ""), about.get("groups", {}))


def measure_and_keep(run: RunData, target: Target, config: Config, quiet: bool) -> None:
    """As ``composcope probe`` does; what is there and unchanged is left."""
    from ..investigate import investigate

    path, name = run.path, config.probes[0]
    cases, identity = tuple(run.cases.values()), run.manifest.identity
    # The cases as the run has them: the file that they were read from may be gone. A shard's are not all of them.
    benchmark = None
    if config.shard is None:
        benchmark = LoadedBenchmark(
            config.benchmark, cases, str(config.protocol), config.format, str(identity.get("data"))
        )
    found = investigate(config, path, quiet=quiet, report=False, benchmark=benchmark, target=target)
    if RunData(path).probe(name) is None:
        raise NoCasesError(f"{run.name}: probe {name} had nothing to measure; {found.no_contrast or 'see log.txt'}")


def measure(run: RunData, target: Target, config: Config, ids: set[str], quiet: bool) -> ProbeResults:
    """A probe on some of a run's labelled cases, matched; nothing is written."""
    from ...probes import examples
    from ...probes.catalog import PROBES
    from ..console.progress import Reporter
    from ..probing.run import choose

    name, evaluated = config.probes[0], run.evaluated()
    asks, responses = evaluated.per_case()
    sets = evaluated.reduction.case_sets
    labelled = examples.from_case_sets(target.tokenizer, evaluated.cases, asks, responses, sets)
    chosen = choose([e for e in labelled if e.case in ids], config.probe_cases)
    measured = PROBES[name].run(target.hooks(), chosen.examples, config, Reporter(quiet=quiet))
    groups: dict[str, list[str]] = {}
    for e in chosen.examples:
        if e.case not in groups.setdefault(e.group, []):
            groups[e.group].append(e.case)
    return ProbeResults(name, run, as_read(measured), chosen.note, groups)


def as_read(measured: Any) -> ProbeData:
    """A result as its folder would be read: the same types and empty cells, so that figures draw from both alike."""
    with TemporaryDirectory() as folder:
        return read_probe(measured.save(Path(folder) / "probe"))
