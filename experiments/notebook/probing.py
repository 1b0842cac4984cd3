"""Probe the model of a run; results for all failures are kept in the run's folder, others stay in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...errors import InputError, NoCasesError
from ...evaluation.cases import Case, check_cases
from ...evaluation.protocols.asking import recommended_format
from ..config import Asking, Config, Probing, Serving
from ..evaluating.benchmark import LoadedBenchmark, default_protocol, hash_cases, limit_cases
from ..models.resolve import ModelSource
from ..models.target import Target, choose_prompting
from ..run import read_json
from ..run.reader import ProbeData, RunData, read_config, read_probe, read_run
from .results import RunResults
from .shown import ProbeResults

if TYPE_CHECKING:
    from ..models.target import Target


def kept(run: RunData, name: str) -> ProbeResults:
    """The results of a probe in a run's folder."""
    data = RunData(run.path)
    found, chosen = data.probe(name), data.path / "probes" / "examples.json"
    if found is None:
        held = ", ".join(data.probe_names) or "none"
        raise InputError(
            f"{run.name}: no results of a probe {name!r} (the run has: {held}); use run.failures.probe(...)"
        )
    about = read_json(chosen) if chosen.is_file() else {}
    return ProbeResults(found.name.replace("_", "-"), run, found, about.get("note", ""), about.get("groups", {}))


def measure_and_keep(run: RunData, target: Target, config: Config, quiet: bool) -> None:
    """Measure as ``composcope probe`` does; existing results that are unchanged are kept."""
    from ..investigate import investigate

    path, name = run.path, config.probes[0]
    cases, identity = tuple(run.cases.values()), run.manifest.identity
    # Take the cases from the run, since the original file may be gone. A shard does not have all of them.
    benchmark = None
    if config.shard is None:
        benchmark = LoadedBenchmark(
            config.benchmark, cases, str(config.protocol), config.format, str(identity.get("data"))
        )
    found = investigate(config, path, quiet=quiet, report=False, benchmark=benchmark, target=target)
    if RunData(path).probe(name) is None:
        raise NoCasesError(f"{run.name}: probe {name} had nothing to measure; {found.no_contrast or 'see log.txt'}")


def measure(run: RunData, target: Target, config: Config, ids: set[str], quiet: bool) -> ProbeResults:
    """Run a probe on some of a run's labelled cases, matched; writes nothing."""
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
    """Convert a result to the form in which its folder is read (types, empty cells), so that figures accept both."""
    with TemporaryDirectory() as folder:
        return read_probe(measured.save(Path(folder) / "probe"))


def load(run: RunData, model: Any, tokenizer: Any) -> Target:
    """The model of a run, or the model given in its place."""
    from ..distributed.target import load_target

    config = run_config(run, model)
    if model is not None and not isinstance(model, str | Path):
        return in_memory(model, tokenizer, config)
    return load_target(config, run.path)


def run_config(run: RunData, model: Any) -> Config:
    """The options of a run, with the given model in place of the run's model if it is a path."""
    return Config.read(read_config(run.path), **({"model": str(model)} if isinstance(model, str | Path) else {}))


def in_memory(model: Any, tokenizer: Any, config: Config) -> Target:
    """A model in memory as the target of a run. Raises ``ModelError`` for an object that cannot be opened."""
    from ...evaluation.engines.local import LocalEngine
    from ...hooks.model import Model, load_model

    lm = model if isinstance(model, Model) else load_model(model, tokenizer)
    if lm.tokenizer is None:
        raise InputError("tokenizer: missing; with a model in memory, give the tokenizer that it was trained with")
    engine = LocalEngine(lm.model, lm.tokenizer, batch_size=config.batch_size)
    source = ModelSource(config.model, config.model, False)
    return Target(source, lm.model, lm.tokenizer, engine, choose_prompting(config.prompting, lm.tokenizer))


_OF_A_FILE = ("dtype", "device", "pad_token")


def evaluate(
    model: Any,
    cases: Iterable[Case] | str | Path,
    *,
    out: str | Path | None = None,
    tokenizer: Any = None,
    quiet: bool = False,
    **options: Any,
) -> RunResults:
    """Ask a model every part and every whole, grade the answers, and open the run.

    Args:
        model: a folder, hub id or ``organism:DOSE``; or a model in memory: a transformers model with its ``tokenizer``,
            or the result of ``load_model``.
        cases: cases (``read_cases``), the path of a case file, or the name of a benchmark.
        out: the run's folder (default: ``runs/MODEL--CASES-HASH--PROTOCOL``). The same call later reuses the answers
            in it and asks only what is missing.
        options: the options of ``composcope evaluate``, such as ``protocol``, ``limit``, ``few_shot``, ``seed``.

    Raises ``ComposcopeError`` for any error that the user can fix.
    """
    from ..investigate import investigate

    settings = _settings(options)
    benchmark = None if isinstance(cases, str | Path) else _benchmark(list(cases), settings.get("limit"))
    named = isinstance(model, str | Path)
    if not named and (given := [n for n in _OF_A_FILE if settings.get(n) is not None]):
        raise InputError(f"{given[0]}={settings[given[0]]!r}: not for a model in memory; leave {given[0]} out")
    name = str(model) if named else _name_of(model)
    config = Config(**settings, model=name, benchmark=str(cases) if benchmark is None else benchmark.name, probes=())
    folder = Path(out) if out is not None else config.default_folder()
    if benchmark is not None:
        benchmark = replace(benchmark, name=str(folder / "cases.jsonl"))  # the file in which the run keeps its cases
        config = config.replace(benchmark=benchmark.name)
    target = None if named else in_memory(model, tokenizer, config)
    investigate(config, folder, quiet=quiet, contrast=False, benchmark=benchmark, target=target)
    return RunResults(read_run(folder), None if named else model, tokenizer, target)


def open_run(folder: str | Path, model: Any = None, tokenizer: Any = None) -> RunResults:
    """Open a run folder. Data are loaded when they are needed, and the model only to probe.

    ``model`` (with ``tokenizer``) is a model in memory, or the current path of the run's model. Raises ``InputError``
    for a folder that is not an evaluated run.
    """
    found = read_run(folder)
    found.counted_now()
    return RunResults(found, model, tokenizer)


def _name_of(model: Any) -> str:
    """The place that a model in memory came from, or the name of its type if it does not say."""
    inner = getattr(model, "model", model)
    return str(getattr(getattr(inner, "config", None), "_name_or_path", "") or type(inner).__name__)


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Options by name in the form of ``Config``, with asking and serving options in their own sections."""
    found = {k: v for k, v in options.items() if k not in (*Asking.model_fields, *Serving.model_fields)}
    if wrong := [k for k in found if k in Probing.model_fields]:
        raise InputError(f"{wrong[0]}: is an option of probes; give it to run.failures.probe(...)")
    for section, fields in (("asking", Asking.model_fields), ("serving", Serving.model_fields)):
        if mine := {k: v for k, v in options.items() if k in fields}:
            found[section] = {**dict(found.get(section) or {}), **mine}
    return found


def _benchmark(cases: list[Case], limit: int | None) -> LoadedBenchmark:
    """Cases in memory as a benchmark, named after their own benchmark name and their hash."""
    found, digest = check_cases(cases, "cases"), hash_cases(cases)
    names = {c.benchmark or "cases" for c in found}
    name = f"{names.pop() if len(names) == 1 else 'cases'}-{digest[:8]}"
    kept = tuple(limit_cases(found, limit))
    return LoadedBenchmark(name, kept, default_protocol(found), recommended_format(found), digest, True)
