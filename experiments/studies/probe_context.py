"""Probe a model inside a study: choose the cases and save the results in the run.

The probe step of a study gets a ``ProbeContext``: the evaluated run with its model. It chooses examples as its paper
did and saves each probe's result in the run, where figures and report find it. Unchanged probes are not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ...errors import ComposcopeError
from ...evaluation.protocols.base import CaseSet, Entry
from ...probes.examples import Example, from_case_sets
from ...probes.result import ProbeResult
from .. import investigate as job
from ..config import Config
from ..console.progress import Reporter
from ..models.target import Target
from ..probing import run as probing
from ..run.schema import Evaluated
from ..run.writer import OpenRun


@dataclass(frozen=True)
class ProbeContext:
    """An evaluated run with its model."""

    run: OpenRun
    settings: Config
    target: Target
    evaluated: Evaluated
    reporter: Reporter
    limit: int | None = None
    """Maximum number of cases to probe; None for as many as the recipe takes."""

    @cached_property
    def lm(self) -> Any:
        """The model, opened for reading and editing."""
        return self.target.hooks()

    def labelled(self, failures: Collection[str], successes: Collection[str]) -> list[Example]:
        """Wholes and parts of the given cases; with ``limit``, of the first ones in the benchmark's order."""
        chosen = [c for c in self.evaluated.cases if c in failures or c in successes][: self.limit]
        sets = [
            CaseSet(label, label, tuple(Entry(c, ()) for c in chosen if c in side))
            for label, side in (("failure", failures), ("success", successes))
        ]
        asks, responses = self.evaluated.per_case()
        return from_case_sets(self.target.tokenizer, self.evaluated.cases, asks, responses, sets)

    def all_cases(self) -> list[Example]:
        """Every case whose whole was judged, by whether it was right; the papers' tables cover all questions."""
        sides: dict[bool, set[str]] = {True: set(), False: set()}
        for row in self.evaluated.graded:
            if row.role == "whole" and row.outcome != "invalid":
                sides[row.outcome == "correct"].add(row.case)
        return self.labelled(sides[False], sides[True])

    def gated(self) -> tuple[set[str], set[str]]:
        """The protocol's failures and successes: every part known, the whole wrong or right."""
        return self.evaluated.ids("failure"), self.evaluated.ids("success")

    def note(self, text: str, examples: Sequence[Example], contrast: bool = True) -> None:
        """Record and report which cases the probes run on."""
        self.reporter.say(f"{self.run.name}: {text}")
        probing.save_chosen(self.run, probing.Chosen(tuple(examples), text, contrast))

    def save(self, name: str, examples: Sequence[Example], compute: Callable[..., ProbeResult], **options: Any) -> None:
        """Run a probe and save it in the run with a few single cases for the report, unless the same result exists."""
        chosen = probing.Chosen(tuple(examples), "", contrast=True)
        made = partial(compute, self.lm, examples, **options)
        probing.run_one(self.run, self.lm, name, chosen, self.settings, made, self.reporter, options)


def step(probe: Callable[[ProbeContext], None] | None, limit: int | None) -> job.ProbeStep:
    """A recipe's probes as the step of an investigation.

    If the model cannot be probed (a served model without local weights, an unknown architecture, no cases), the
    manifest records the reason as ``probe_note``, and the evaluation is kept.
    """

    def run(run: OpenRun, settings: Config, target: Target, found: Evaluated, reporter: Reporter) -> str | None:
        note = None
        if probe is not None and target.tokenizer is None:
            note = "only the server has this model; give its weights with --probe-model"
        elif probe is not None:
            try:
                probe(ProbeContext(run, settings, target, found, reporter, limit))
            except ComposcopeError as e:
                note = " ".join(str(e).split())
        if note is not None:
            reporter.say(f"{run.name}: probes not run: {note}")
        run.record(probe_note=note)
        return job.no_contrast(found, run.path)

    return run


def scaled_layers(published: Sequence[int], of: int, n_layers: int) -> list[int]:
    """Layers of a model with ``n_layers`` layers at the same relative depth as the published layers (of ``of``)."""
    return sorted({round(layer * (n_layers - 1) / (of - 1)) for layer in published})


def by_depth(cases: Mapping[str, Any], ids: Collection[str], depth: int, families: Collection[str]) -> list[str]:
    """The cases among ``ids`` of one depth (or bin, if declared) and of some families, in the benchmark's order."""
    chosen = [c for c, case in cases.items() if c in ids and case.family in families]
    return [c for c in chosen if depth == (cases[c].depth_bin or cases[c].depth)]
