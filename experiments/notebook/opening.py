"""Get results in a notebook: evaluate a model, or open an existing run."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError, from_python
from ...evaluation.case import Case
from ...evaluation.cases import as_in_a_file
from ...files import as_path
from ..config import Config, Probing
from ..evaluating.ask_plan import LoadedBenchmark, of_cases
from ..run.reader import read_run
from .probing import in_memory
from .results import RunResults

_OF_A_FILE = ("dtype", "device")


@from_python()
def evaluate(
    model: Any,
    cases: Iterable[Case | Mapping[str, Any]] | str | Path,
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
        cases: cases (``read_cases``), dictionaries or a data frame with the fields of a case file, the path of one, or
            the name of a benchmark.
        out: the run's folder (default: ``runs/MODEL--CASES-HASH--PROTOCOL``). The same call later reuses the answers
            in it and asks only what is missing.
        tokenizer: the tokenizer of a transformers model in memory.
        quiet: no progress on stderr; the run's ``log.txt`` still has it.
        options: the options of ``composcope evaluate``, such as ``protocol``, ``limit``, ``few_shot``, ``seed``.

    Raises ``ComposcopeError`` for any error that the user can fix.
    """
    from ..investigate import investigate

    settings = _settings(options)
    named = isinstance(model, str | Path)
    if not named and (given := [n for n in _OF_A_FILE if settings.get(n) is not None]):
        raise InputError(f"{given[0]}={settings[given[0]]!r}: not for a model in memory; leave {given[0]} out")
    inner = getattr(model, "model", model)  # of a model in memory: where it came from, or its type
    origin = getattr(getattr(inner, "config", None), "_name_or_path", "") or type(inner).__name__
    name = str(model if named else origin)
    file = str(cases) if isinstance(cases, str | Path) else None
    config = Config(**settings, model=name, benchmark=file or "cases", probes=())
    benchmark = None if isinstance(cases, str | Path) else _benchmark(cases, config.limit)
    config = config if benchmark is None else config.replace(benchmark=benchmark.name)
    folder = as_path(out, "out") if out is not None else config.default_folder()
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


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options, checked that none belongs to the probes."""
    for name in {"dtype", "device"} & options.keys():  # torch.float32, torch.device("cpu")
        options[name] = options[name] and str(options[name]).removeprefix("torch.")
    if wrong := [k for k in options if k in Probing.model_fields]:
        raise InputError(f"{wrong[0]}: is an option of probes; give it to run.failures.probe(...)")
    return options


def _benchmark(cases: Iterable[Any], limit: int | None) -> LoadedBenchmark:
    """Cases in memory as a benchmark, named after their own benchmark name and their hash."""
    found = as_in_a_file(cases, "cases")
    made, names = of_cases("cases", found, limit, True), {c.benchmark or "cases" for c in found}
    return replace(made, name=f"{names.pop() if len(names) == 1 else 'cases'}-{made.sha256[:8]}")
