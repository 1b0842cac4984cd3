"""Every probe by its name: how it runs, what it costs, and its part of the report.

    PROBES["lookback"].title

A probe describes itself in one object; the objects of this package's probes are below. Nothing here needs torch before
a probe runs, so a report can be written on a machine that cannot run probes.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..registry import Registry

Run = Callable[[Any, Sequence[Any], Any, Any], Any]
"""``run(lm, examples, settings, reporter)`` returns a ``probes.result.ProbeResult``."""
Cases = Callable[[Any, Sequence[Any], Sequence[Any], int, Path], Any]
"""``cases(lm, few, every, n, folder)`` returns what single cases gave a probe (``single_cases.SingleCases``)."""


@dataclass(frozen=True)
class Probe:
    """One probe."""

    name: str
    run: Run
    title: str = ""
    """Heading of its section in the report; empty: a plain section with its table."""
    question: str = ""
    """What it asks of the model."""
    reading: str = ""
    """How its numbers are read, and what they do not show."""
    order: int = 100
    """Place in lists and in the report."""
    reads_at_slots: bool = False
    """Whether its numbers depend on ``--position``."""
    cost: str = "what its plugin does"
    """Forwards at most, for a dry run: a format over prompts, cases, pairs and layers."""
    cases: Cases | None = None
    """Computes the probe on a few single cases, for the report."""
    unchecked: str = ""
    """What has to be said if a run has no control of this probe."""
    checks: Callable[[Any], Iterator[dict[str, Any]]] | None = None
    """The probe's controls as rows like those of the validity study, made from its ``ProbeData``."""
    standard: bool = True
    """Whether it runs if no probes are named; ``all`` stands for these probes."""
    given: Callable[..., Any] | None = None
    """The function of a plugin, which takes the model and the examples only."""

    def measure(self, lm: Any, examples: Sequence[Any]) -> Any:
        """Its result without a run: the function of a plugin alone, else with no settings to look at."""
        return self.run(lm, examples, None, None) if self.given is None else self.given(lm, examples)

    @property
    def folder(self) -> str:
        """Its name in tables, where dashes are underscores."""
        return self.name.replace("-", "_")


def of_function(name: str, function: Callable[..., Any]) -> Probe:
    """The probe of a plugin's function, which takes the model and the examples only."""

    def run(lm: Any, examples: Sequence[Any], settings: Any, reporter: Any) -> Any:
        from .result import ProbeResult
        from .spread import Fleet, call

        if isinstance(lm, Fleet) and settings.serving.engine == "ray":
            raise InputError(f"--probes {name}: comes from a plugin, which workers do not have; leave out --engine ray")
        found = call(lm, function, examples)
        if not isinstance(found, ProbeResult):
            kind = type(found).__name__
            raise InputError(f"probe {name}: returned {kind}; a probe returns a composcope.probes.ProbeResult")
        if not found.table and not found.tensors:
            raise InputError(f"probe {name}: has neither rows nor tensors; give a row for each quantity and group")
        for i, row in enumerate(found.table):
            if lacking := [column for column in ("quantity", "group", "n", "value") if column not in row]:
                raise InputError(f"probe {name}: row {i} of its table has no {', '.join(map(repr, lacking))}; add it")
        return found

    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        found = f"{getattr(function, '__name__', function)}{inspect.signature(function)}"
        raise InputError(f"probe {name}: {found} takes other arguments; define it as function(lm, examples)") from None
    except ValueError:  # a function in C does not tell
        pass
    return Probe(name, run, given=function)


PROBES: Registry[Probe] = Registry(
    "probes", lambda value: isinstance(value, Probe), __package__, of_function, modules=("catalog",)
)


def standard() -> tuple[str, ...]:
    """The names of the probes that run if none are named."""
    return tuple(name for name, probe in PROBES.items() if probe.standard)


def described() -> list[Probe]:
    """The probes that have a section of their own in the report, in its order."""
    return [probe for probe in PROBES.values() if probe.title]


EXACT = 1e-3
"""Nats that count as none: float rounding of a softmax."""
HALF = 0.5
"""Share of the positive control's answers from which on the donor's whole answer counts as brought."""
Few = Sequence[Any]


def _over_examples(module: str, *options: str) -> Run:
    """The function ``over_examples`` of a module, with a bar and these options of the settings."""

    def run(lm: Any, examples: Few, settings: Any, reporter: Any) -> Any:
        given = {option: getattr(settings, option) for option in options}
        return import_module(f".{module}", __package__).over_examples(lm, examples, progress=reporter.bar, **given)

    return run


def _in_one_place(module: str) -> Run:
    """The function ``over_examples`` of a module, called where the model is: here, or on one worker."""

    def run(lm: Any, examples: Few, settings: Any, reporter: Any) -> Any:
        from .spread import call

        return call(lm, import_module(f".{module}", __package__).over_examples, examples)

    return run


def _cases(name: str, given: Callable[[Few, Few, int, Path], tuple[Any, ...]]) -> Cases:
    """Single cases by a function of ``single_cases``, which takes what ``given`` makes of them."""

    def cases(lm: Any, few: Few, every: Few, n: int, folder: Path) -> Any:
        return getattr(import_module(".single_cases", __package__), name)(lm, *given(few, every, n, folder))

    return cases


def _neuron_checks(data: Any) -> Iterator[dict[str, Any]]:
    for row in data.rows("suppress_log_ratio_excess"):
        kind, group = str(row.get("kind")), row.get("group")
        if group not in ("failure", "success") or " - " in kind:
            continue
        low, high = row.get("low"), row.get("high")
        verdict = "cannot say"
        if low is not None and high is not None and (high < 0 or low > 0):
            verdict = "yes" if high < 0 else "no"
        yield {
            "question": "does silencing the selected neurons hurt the answer?", **_numbers(row),
            "statement": f"{kind}, {group}: log ratio beyond random neurons of the same layers, expected below 0",
            "measure": "log ratio", "verdict": verdict,
        }  # fmt: skip


def _neuron_cases(lm: Any, few: Few, every: Few, n: int, folder: Path) -> Any:
    from ..evaluation import text_files
    from .single_cases import neuron_cases

    settings = text_files.document(folder / "result.json", "run the probe again").get("settings", {})
    return neuron_cases(lm, few, settings.get("position", "prompt-end"))


NEURONS = Probe(
    "neurons", _over_examples("neurons", "rows_dtype", "position"), "Neurons",
    "Which MLP neurons push the answer, and does the whole use those of its parts?",
    "Attribution towards the gold answer selects neurons per task; the overlap is the share two tasks have in common. "
    "A high overlap can come from a shared answer type alone.",
    order=1,
    reads_at_slots=True,
    cost="{prompts} prompts, each with {layers} layers x 9 to 65 rows, forward and backward",
    cases=_neuron_cases,
    checks=_neuron_checks,
)  # fmt: skip


def _lookback_cases(lm: Any, few: Few, every: Few, n: int, folder: Path) -> Any:
    from safetensors.torch import load_file

    from .single_cases import lookback_cases

    path = folder / "tensors.safetensors"
    tensors = load_file(path) if path.is_file() else {}
    return lookback_cases(lm, few, {k.partition(".")[2]: v for k, v in tensors.items() if k.startswith("difference.")})


LOOKBACK = Probe(
    "lookback", _over_examples("lookback"), "Lookback",
    "How much does each head look back at the prompt while the answer is written?",
    "Click a cell to see the head's numbers for every kind of question. Ratios fall with the length of the response, "
    "so compare only responses of similar length.",
    order=2,
    cost="{prompts} prompts with their responses",
    cases=_lookback_cases,
    unchecked="Nothing in one run says whether a lookback ratio reflects use of the context: compare the means at "
    "matched lengths. A head's map shows where it attends, not what it uses.",
)  # fmt: skip


def _patching(lm: Any, examples: Few, settings: Any, reporter: Any) -> Any:
    from ..hooks.precision import widens
    from . import patching
    from .spread import InDtype

    wide = widens(lm, settings.rows_dtype)
    model: Any = InDtype(lm, str(settings.rows_dtype)) if wide else lm
    found = patching.over_examples(model, examples, position=settings.position, progress=reporter.bar)
    if not wide:
        return found
    return replace(found, settings={**found.settings, "rows_dtype": settings.rows_dtype})


def _patching_checks(data: Any) -> Iterator[dict[str, Any]]:
    if own := _known(data.rows("unchanged_rate", group="identity")):
        worst = min(own, key=lambda r: r["value"])
        yield {
            "question": "does a case's own state change nothing?", **_numbers(worst), "measure": "unchanged",
            "statement": "identity control: share of continuations that stay the same, lowest over layers",
            "about": "own state",
            "verdict": "yes" if worst["value"] == 1 else "no",
        }  # fmt: skip
    if whole := _known(data.rows("kl_from_donor", group="positive")):
        worst = max(whole, key=lambda r: r["value"])
        yield {
            "question": "does the donor's whole prompt bring the donor's next token?", **_numbers(worst),
            "statement": "positive control: KL from the donor's prediction when all positions are replaced, largest "
            "over layers, expected 0",
            "measure": "nats", "verdict": "yes" if worst["value"] < EXACT else "no", "about": "next token",
        }  # fmt: skip
    if answers := _known(data.rows("flip_rate", group="positive")):
        most = max(answers, key=lambda r: r["value"])
        yield {
            "question": "does the donor's whole prompt bring the donor's whole answer?", **_numbers(most),
            "statement": "positive control: share of answers that become the donor's when all positions are replaced, "
            "highest over layers; it can be low in a sound measurement, as what follows the next token is also written "
            "from the case's own keys and values up to that layer, so a share below one half is not evidence "
            "against the measurement",
            "measure": "share", "verdict": "yes" if most["value"] >= HALF else "cannot say", "about": "whole answer",
        }  # fmt: skip


def _known(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows that have a value: at some layers nothing may be defined."""
    return [r for r in rows if r.get("value") is not None]


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: row.get(k) for k in ("n", "value", "low", "high", "interval")}


PATCHING = Probe(
    "patching", _patching, "Patching",
    "Does the state that predicts the answer carry it?",
    "The state of a success replaces that of a failure at one layer. The identity control must change nothing; a "
    "random donor shows what any disturbance does.",
    order=3,
    reads_at_slots=True,
    cost="{cases} prompts, {pairs} pairs x {layers} layers of rows with their continuations",
    cases=_cases("patching_cases", lambda few, every, n, folder: (every, folder, n, {e.case for e in few})),
    checks=_patching_checks,
)  # fmt: skip


TRAJECTORY = Probe(
    "trajectory", _over_examples("trajectory", "position"), "Trajectory",
    "Do states that predict the answer differ between failures and successes, or move differently?",
    "If failures and successes had different states, pairs across the groups would be less similar than pairs "
    "within a group.",
    order=4,
    reads_at_slots=True,
    cost="{twice} prompts, half of them with their responses",
    cases=_cases("trajectory_cases", lambda few, *_: ([e for e in few if e.role == "whole"],)),
    unchecked="Nothing in one run checks a cosine against the truth: the separation is tested by exchanging the "
    "labels of failures and successes (see the contrasts), which says whether it is chance, not what it means.",
)  # fmt: skip


MIN_K = Probe(
    "min-k", _over_examples("min_k"), "Exposure (Min-K%++)",
    "Are compositions less familiar to the model than their parts?",
    "The mean over the lowest fifth of a question's token scores. A score is a token's log-probability, standardized "
    "by what the model predicted at that position.",
    order=5,
    cost="{prompts} prompts",
    cases=_cases("min_k_cases", lambda few, *_: (few,)),
    unchecked="Nothing in one run says which questions the model was trained on: without known members and non-members "
    "a higher score is no proof of exposure.",
)  # fmt: skip


READOUT = Probe(
    "readout", _in_one_place("readout"), "Readouts",
    "Does a state hold the bridge, an operand, the answer?",
    "The logit lens and a ridge probe that was trained on parts alone rank what a state may hold against foils, those "
    "in the prompt and others. What can be read from a state need not be used.",
    order=6,
    standard=False,
    cost="{prompts} prompts, wholes once more for the report",
    cases=_cases("readout_cases", lambda few, every, n, folder: (few, every, folder)),
)  # fmt: skip


def _faithfulness_checks(data: Any) -> Iterator[dict[str, Any]]:
    for row in data.rows("kept_same", group="all"):
        if row.get("n"):
            yield {
                "question": "does replacing a value by itself change nothing?", **_numbers(row), "measure": "kept",
                "statement": "identity control: share of cases that end in the same answer, expected 1",
                "verdict": "yes" if row["value"] == 1 else "no",
            }  # fmt: skip


FAITHFULNESS = Probe(
    "faithfulness", _in_one_place("faithfulness"), "Faithfulness of written working",
    "Does the answer come from the working that the model wrote?",
    "Early answers: the working is cut after its first steps. Altered steps: a written value is replaced by one of "
    "another case, and the answer follows it, stays, or goes elsewhere. An answer that stays was not read off the "
    "working; one that follows was, and may still be decided in other ways as well.",
    order=7,
    cost="{cases} responses, each continued from every step, and 3 times from every value in it",
    checks=_faithfulness_checks,
    standard=False,
)  # fmt: skip
