"""``composcope study NAME``: one paper's analyses over one or several models, in one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import InputError
from ..config import Asking, Config, Serving
from ..console.printing import show
from .flags import with_config, with_plugins
from .help import Command, example

if TYPE_CHECKING:
    from ..studies.study import Preset

CALIBRATION = "how often the tests are wrong where nothing is there, and intervals hold the truth, on simulated data"

WHY = "causes named on models whose cause is known: confusion matrix, refusals; causes of real models beside it"


def preset(name: str) -> Preset:
    """A study by its name. Raises ``InputError`` for an unknown one."""
    from ..studies.study import STUDIES

    found = STUDIES.find(name.replace("_", "-"))
    if found is None:
        raise InputError(f"study {name}: no such study; use one of {', '.join(STUDIES)}")
    return found


def register(app: typer.Typer) -> None:
    """Add ``study`` to the command line."""
    settled = ("model", "benchmark", "protocol", "limit", "seed", "shard")
    command = with_plugins(with_config(Config, Asking, Serving, leave_out=settled)(study))
    line = example("study agentcoma --model organism:control --limit 20")
    app.command("study", cls=Command, epilog=line)(command)


def study(
    given: dict[str, Any],
    name: Annotated[str | None, typer.Argument(help="Which study; see --list.")] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="organism:DOSE, a folder, a hub id or MODEL@URL; repeat.")
    ] = None,
    models: Annotated[
        Path | None, typer.Option("--models", help="YAML: models with family, size, cost, tuning, ..., and pairs.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", "--benchmark", "-b", help="Case file, READER:FILE or hub:NAME; repeat."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N cases of each family x depth.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Study folder; runs/NAME by default.")] = None,
    probes: Annotated[bool, typer.Option("--probes/--no-probes", help="Open the models up, as the paper did.")] = True,
    probe_cases: Annotated[
        int | None, typer.Option(min=1, help="Most cases that probes run on; all by default.")
    ] = None,
    series: Annotated[
        list[Path] | None,
        typer.Option("--series", help="validity: folder of `organism train --all`; why: folder of plants; repeat."),
    ] = None,
    only_series: Annotated[
        bool, typer.Option("--only-series", help="validity: leave the shipped training out.")
    ] = False,
    trainings: Annotated[
        int | None,
        typer.Option(min=1, help="validity: train all doses of N seeds in OUT/trainings, without the shipped one."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="calibration: simulated data sets per scenario.")] = 500,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html over all runs.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    list_: Annotated[bool, typer.Option("--list", help="Name the studies.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> int:
    """A paper's analyses over one or several models: runs, tables beside the published numbers, figures, a page."""
    if list_ or name is None:
        from ..studies.study import STUDIES

        known = {n: study.about for n, study in STUDIES.items()} | {"calibration": CALIBRATION, "why": WHY}
        rows = [{"study": n, "about": about} for n, about in known.items()]
        show({"schema": 1, "studies": rows} if json else [f"{r['study']}: {r['about']}" for r in rows], json)
        return 0
    if name == "why":
        return _why(series or (), model or (), out or Path("runs") / name, probe_cases or 20, seed=seed, json=json)
    if name == "calibration":
        return _calibration(out or Path("runs") / name, draws, seed, json=json, quiet=quiet)
    chosen = preset(name)
    from ..studies.spec import from_flags, read_spec

    of_study: dict[str, Any] = {"data": tuple(data or ()), "limit": limit, "probe_cases": probe_cases, "seed": seed}
    of_study |= {"series": tuple(map(str, series or ())), "only_series": only_series}
    if trainings is not None:
        of_study |= _train(name, trainings, out or Path("runs") / name, of_study["series"], quiet)
    if models is not None and model:
        raise InputError("--model and --models: give one of them; a models file holds all models")
    if models is not None:
        spec = read_spec(models, chosen.name, **of_study)
    else:
        spec = from_flags(model or _default_models(name), **of_study)
    _check(spec)
    if not any(d.startswith("hub:") for d in spec.data) and all(_local(m.model) for m in spec.models):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from ..studies.running import conduct

    folder = out or Path("runs") / chosen.name
    found = conduct(chosen, spec, folder, given, probes=probes, report=report, quiet=quiet)
    if json:
        from ..run import read_json

        show({"out": str(folder), **read_json(folder / "study.json")}, True)
    else:
        show((folder / "study.md").read_text(encoding="utf-8"), False)
        show(f"written: {folder / 'study.md'}", False)
    return found.exit_code()


def _train(name: str, n: int, out: Path, series: tuple[str, ...], quiet: bool) -> dict[str, Any]:
    """What ``--trainings`` gives the study: the folder of the trainings, which are run or continued before it."""
    if name != "validity":
        raise InputError(f"--trainings {n}: study {name} trains nothing; use it with `composcope study validity`")
    from ..organism.trainings import conduct

    folder = conduct(n, out / "trainings", lambda line: None if quiet else print(line, file=sys.stderr, flush=True))
    return {"series": (*series, str(folder)), "only_series": True}


def _why(series: Sequence[Path], models: Sequence[str], folder: Path, cases: int, *, seed: int, json: bool) -> int:
    from ..diagnosis.confusion import run_study
    from ..run import read_json

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    lines = run_study(series, models, folder, cases, seed)
    show(read_json(folder / "confusion.json") if json else lines, json)
    return 0


def _calibration(folder: Path, draws: int, seed: int, *, json: bool, quiet: bool) -> int:
    from ..run import read_json
    from ..studies.calibration import conduct

    rows = conduct(folder, draws, seed, lambda line: None if quiet else print(line, file=sys.stderr, flush=True))
    show(read_json(folder / "study.json") if json else (folder / "study.md").read_text(encoding="utf-8"), json)
    return 1 if any(r["holds"] == "no" for r in rows) else 0


def _default_models(name: str) -> list[str]:
    from ..organism.weights import DOSES

    wanted = DOSES if name == "validity" else ("control", "twin")
    return [f"organism:{dose}" for dose in wanted]


def _check(spec: Any) -> None:
    for option, value in (("--limit", spec.limit), ("--probe-cases", spec.probe_cases)):
        if value is not None and value < 1:
            raise InputError(f"{option} {value}: give a whole number of at least 1")


def _local(model: str) -> bool:
    return model.startswith("organism:") or Path(model).expanduser().exists()
