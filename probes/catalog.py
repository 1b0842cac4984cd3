"""Every probe by its name: how it runs, what it costs, and its part of the report.

    PROBES["lookback"].title

A probe describes itself in one object; ``builtin`` has those of this package. Neither module needs torch before a probe
runs, so a report can be written on a machine that could not probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..registry import Registry

Run = Callable[[Any, Sequence[Any], Any, Any], Any]
"""``run(lm, examples, settings, reporter)`` returns a ``probes.result.ProbeResult``."""
Cases = Callable[[Any, Sequence[Any], Sequence[Any], int, Path], Any]
"""``cases(lm, few, every, n, folder)`` returns what single cases gave a probe (``by_case.SingleCases``)."""


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
    """What has to be said where a run has no control of it."""
    checks: Callable[[Any], Iterator[dict[str, Any]]] | None = None
    """The probe's controls as rows like those of the validity study, made from its ``ProbeData``."""
    standard: bool = True
    """Whether it runs where no probes are named; ``all`` are those."""
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
        from .spread import Fleet, call

        if isinstance(lm, Fleet) and settings.serving.engine == "ray":
            raise InputError(f"--probes {name}: is a plugin's, which workers do not have; leave out --engine ray")
        return call(lm, function, examples)

    return Probe(name, run, given=function)


PROBES: Registry[Probe] = Registry(
    "probes", lambda value: isinstance(value, Probe), __package__, of_function, modules=("builtin",)
)


def standard() -> tuple[str, ...]:
    """The names of the probes that run where none are named."""
    return tuple(name for name, probe in PROBES.items() if probe.standard)


def described() -> list[Probe]:
    """The probes that have a section of their own in the report, in its order."""
    return [probe for probe in PROBES.values() if probe.title]
