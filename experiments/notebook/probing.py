"""Probe the model of a run; results for all failures are kept in the run's folder, others stay in memory."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...errors import InputError, NoCasesError
from ..config import Config
from ..models.resolve import ModelSource
from ..models.target import Target, choose_prompting, loading_of
from ..run.folder import probed_cases
from ..run.reader import RunData, read_config, read_probe
from .shown import ProbeResults


def kept(run: RunData, name: str) -> ProbeResults:
    """The results of a probe in a run's folder."""
    data = RunData(run.path)
    found = data.probe(name)
    if found is None:
        held = ", ".join(data.probe_names) or "none"
        raise InputError(
            f"{run.name}: no results of a probe {name!r} (the run has: {held}); use run.failures.probe(...)"
        )
    folder = next(n for n in data.probe_names if n.replace("_", "-") == name.replace("_", "-"))
    about = probed_cases(data.path, folder)
    return ProbeResults(found.name.replace("_", "-"), run, found, about.get("note", ""), about.get("groups", {}))


def measure_and_keep(run: RunData, target: Target, own: Config, name: str, quiet: bool) -> None:
    """Measure one probe as ``composcope probe`` does, with the run's own settings; unchanged results are kept."""
    from ..investigate import investigate, own_benchmark, run_the_probes

    path = run.path
    one = own.replace(probes=name)
    config = own.model_copy(update={"probes": tuple(dict.fromkeys((*own.probes, name)))})  # the run keeps the others
    found = investigate(config, path, quiet=quiet, ask=False, report=False, target=target,
                        benchmark=own_benchmark(run, config),
                        probe=lambda opened, _, *rest: run_the_probes(opened, one, *rest))  # fmt: skip
    labelled = any(found.evaluated.ids(label) for label in ("failure", "success"))
    # What is there may be of an earlier call, with other cases: then the cases chosen last are not its own.
    its_own = probed_cases(path, name).get("groups") == probed_cases(path).get("groups")
    if not (labelled and its_own) or RunData(path).probe(name) is None:
        raise NoCasesError(f"{run.name}: probe {name} had nothing to measure; {found.no_contrast or 'see log.txt'}")


def measure(run: RunData, target: Target, config: Config, ids: set[str], quiet: bool) -> ProbeResults:
    """Run a probe on some of a run's labelled cases, matched; writes nothing."""
    from ...probes.catalog import PROBES
    from ..console.printing import Reporter
    from ..probing import cases_of, choose

    name, evaluated = config.probes[0], run.evaluated()
    chosen = choose([e for e in evaluated.examples(target.tokenizer) if e.case in ids], config.probe_cases)
    reporter = Reporter(quiet=quiet)
    measured = PROBES[name].run(target.open_model(), chosen.examples, config, reporter)
    reporter.say(f"{run.name}: probe {name}: kept in memory only; the run's folder stays as it is")
    with TemporaryDirectory() as folder:  # in the form in which a folder is read (types, empty cells), as figures do
        as_read = read_probe(measured.save(Path(folder) / "probe"))
    return ProbeResults(name, run, as_read, chosen.note, cases_of(chosen.examples))


def load(run: RunData, model: Any, tokenizer: Any) -> Target:
    """The model of a run, or the model given in its place."""
    from ..distributed.engine import load_target

    config = run_config(run, model)
    if model is not None and not isinstance(model, str | Path):
        return in_memory(model, tokenizer, config)
    return load_target(loading_of(config), run.path)


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
