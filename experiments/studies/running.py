"""Run a study: one run per model and data set, then tables, figures and a page, all in one folder.

The same command continues after an interruption: answers come from the journals, and unchanged probes are kept. If a
model cannot be run, every output names it with the reason, and the other models still run.
"""

import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError, InputError
from ...files import write_text
from .. import investigate as job
from ..config import Config
from ..console.exits import disk_is_full
from ..console.printing import Reporter
from ..evaluating.ask_plan import load_benchmark
from ..models.resolve import resolve_model
from ..models.target import loading_of
from ..run import check_no_run, command_line, differing, locked, read_json, write_json
from . import results
from .spec import Spec, StudyModel, groups_document, slug
from .study import Preset, Study, StudyRun, step


def conduct(
    preset: Preset,
    spec: Spec,
    out: str | Path,
    given: Mapping[str, Any] | None = None,
    *,
    probes: bool = True,
    report: bool = True,
    quiet: bool = False,
) -> Study:
    """Run (or finish) a study in its folder and write its results.

    Raises ``ComposcopeError`` before anything runs if models, data or options are wrong, or the folder has another
    study.
    """
    start, given = time.monotonic(), given or {}
    spec = _with_series(preset, spec)
    data = spec.data or preset.data
    study = Study(spec, preset, Path(out), data)
    check_no_run(out)
    planned = _planned(study, given)  # before there is a folder
    with locked(out) as folder:
        _same_study(folder, study)
        reporter = Reporter(folder / "log.txt", quiet=quiet)
        reporter.say(f"{preset.name}: models: {len(spec.models)}, data sets: {len(data)}, runs: {len(planned)}")
        write_json(folder / "study.json", _document(study, planned))
        for one in planned:
            _run(study, one, given, probes, reporter, quiet)
        results.write(study, planned, _document(study, planned), reporter, start, report=report)
    return study


def _with_series(preset: Preset, spec: Spec) -> Spec:
    if preset.models is not None:
        return preset.models(spec)
    if spec.series or spec.only_series:
        raise InputError(f"study {preset.name}: takes no --series; only the study validity uses trainings of organisms")
    return spec


def _planned(study: Study, given: Mapping[str, Any]) -> list[StudyRun]:
    """All runs, with names, data and options checked before the first one starts."""
    slugs = {d: slug(d) for d in study.data}
    if len(set(slugs.values())) < len(slugs):
        raise InputError(f"--data: {', '.join(study.data)} have the same name; rename one file")
    for data in study.data:
        load_benchmark(data, limit=1, option="--data")
    found = []
    for model in study.spec.models:
        for data in study.data:
            made = config_of(study.spec, study.preset, given, model, data)
            if not loading_of(made).is_served and made.serving.engine != "ray":
                resolve_model(made.model)
            found.append(StudyRun(model, data, study.folder / f"{slug(model.label)}--{slugs[data]}"))
    if len({r.path for r in found}) < len(found):
        raise InputError("--model: two labels differ only in punctuation; give other labels in the models file")
    return found


def _run(study: Study, one: StudyRun, given: Mapping[str, Any], probes: bool, reporter: Reporter, quiet: bool) -> None:
    try:
        made = config_of(study.spec, study.preset, given, one.model, one.data)
        probe = step(study.preset.probe if probes else None, study.spec.probe_cases)
        found = job.investigate(made, one.path, quiet=quiet, report=False, probe=probe)
    except Exception as e:
        if isinstance(e, OSError) or disk_is_full(e):
            raise
        study.failed[one.path.name] = _reason(e, study.folder / f"failed-{one.path.name}.txt")
        reporter.say(f"{one.path.name}: failed: {study.failed[one.path.name]}")
        return
    (study.folder / f"failed-{one.path.name}.txt").unlink(missing_ok=True)  # left by an earlier try
    study.runs.append(one)
    study.n_invalid += found.evaluated.n_invalid
    if found.evaluated.stopped:
        study.stopped.append(f"{one.path.name}: stopped by {found.evaluated.stopped}; the same command continues")


def _reason(e: Exception, file: Path) -> str:
    """Why a run failed, in one line. For an unexpected error (in a model's own code), also writes the traceback."""
    if isinstance(e, ComposcopeError):
        return " ".join(str(e).split())
    write_text(file, "".join(traceback.format_exception(e)))
    return f"unexpected {type(e).__name__}: {' '.join(str(e).split())} (traceback: {file.name})"


def _same_study(folder: Path, study: Study) -> None:
    file = folder / "study.json"
    if not file.is_file():
        return
    before = read_json(file)
    now = {"study": study.preset.name, "data": list(study.data), "limit": study.spec.limit, "seed": study.spec.seed}
    differ = [said for k, v in now.items() for said in differing(k, before.get(k), v)]
    if differ:
        raise InputError(f"--out {folder}: holds another study ({'; '.join(differ)}); give another folder")


def _document(study: Study, planned: Sequence[StudyRun]) -> dict[str, Any]:
    """The content of ``study.json``: everything that is needed to order, name and group the runs."""
    about = {r.path.name: {"label": r.label, "data": Path(r.data.rstrip("/")).name, **r.model.groups} for r in planned}
    return {
        "study": study.preset.name,
        "title": study.preset.title,
        "data": list(study.data),
        "limit": study.spec.limit,
        "seed": study.spec.seed,
        "runs": [r.path.name for r in planned],
        "about": about,
        **groups_document(study.spec),
        "command": command_line(),
    }


def config_of(spec: Spec, preset: Preset, given: Mapping[str, Any], model: StudyModel, data: str) -> Config:
    """The configuration of one run; ``given`` holds the options from the command line, as ``Config`` takes them."""
    organism = data.startswith("organism:")
    asking = preset.organism_asking if organism else preset.asking
    own = dict(model.options)
    serving = {k: own.pop(k) for k in ("engine", "base_url", "probe_model") if k in own}
    published = {} if organism else {"format": preset.format, "prompting": preset.prompting}
    limit = spec.limit or preset.organism_limit.get(data)
    nested = {
        "asking": {**asking.given(), **given.get("asking", {})},
        "serving": {**given.get("serving", {}), **serving},
    }
    fixed = {"model": model.model, "benchmark": data, "protocol": preset.protocol, "seed": spec.seed, "probes": ()}
    # The options are those of all models, so one that only a served model has is no mistake for the others.
    values = {**published, **given, "limit": limit, **own, **nested, **fixed}
    return Config.model_validate(values, context={"stays": ()})
