"""Composition collapse (arXiv 2605.26789): residual failure over depth when every part is stably known.

``python -m composcope.experiments.composition_collapse --model M --data d4v2/cases.jsonl --out runs/collapse``

The study follows the paper: XML answers with an option to abstain, greedy, 512 tokens, thinking off, and both gates. It
asks the wholes again with chain of thought (1,024 tokens). Mechanism (App. I): depth-4 successes against depth-6
failures of the successor and interval families, all gated, at most 16 pairs, ten layers, 40 steps. A model with another
number of layers is patched at the same relative depths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .config import Asking
from .studies.results import metric_rows
from .studies.study import Preset, ProbeContext, Row, Study, StudyTable, by_depth, scaled_layers
from .studies.tables import mechanism, pairs

FAMILIES = ("successor", "interval", "temporal_successor", "temporal_interval_decoy", "temporal_interval")
SUCCESS_DEPTH, FAILURE_DEPTH = 4, 6
MAX_PAIRS, STEPS, MOST_NEW_TOKENS = 16, 40, 512
LAYERS, LAYERS_OF = (0, 4, 8, 12, 16, 20, 24, 28, 32, 35), 36


def probe(opened: ProbeContext) -> None:
    """Prompt-end patching, prompt-end cosines and step cosines on the boundary set."""
    failures, successes = opened.gated()
    cases = opened.evaluated.cases
    donors = by_depth(cases, successes, SUCCESS_DEPTH, FAMILIES)[: opened.limit]
    recipients = by_depth(cases, failures, FAILURE_DEPTH, FAMILIES)[: opened.limit]
    text = (
        f"boundary set: {len(donors)} gated successes of depth {SUCCESS_DEPTH} and {len(recipients)} gated failures of "
        f"depth {FAILURE_DEPTH}, successor and interval"
    )
    if not donors or not recipients:
        opened.note(f"{text}: nothing to compare", [], contrast=False)
        return
    examples = [e for e in opened.labelled(recipients, donors) if e.role == "whole"]
    opened.note(text, examples)
    layers = scaled_layers(LAYERS, LAYERS_OF, opened.lm.anatomy.n_layers)
    opened.save("patching", examples, patch, layers=layers, seed=opened.settings.seed)
    from ..probes import trajectory

    how = {"steps": STEPS, "position": "prompt-end", "seed": opened.settings.seed}
    opened.save("trajectory", examples, trajectory.over_examples, **how)


def patch(lm: Any, examples: Sequence[Any], layers: Sequence[int], seed: int = 0) -> Any:
    """The prompt-end sweep over at most 16 pairs of donor and recipient; every donor is used before any is used twice.

    Each continuation is as long as the longest of the model's own answers, and is judged by the donor's and the
    recipient's gold answers.
    """
    from ..probes.patching import graders, new_tokens, prompt_end_sweep

    donors, recipients = ([e for e in examples if e.group == g] for g in ("success", "failure"))
    chosen = boundary_pairs(len(donors), len(recipients))
    found = prompt_end_sweep(
        lm, [e.prompt_ids for e in donors], [e.prompt_ids for e in recipients], chosen, layers,
        new_tokens(lm, examples, MOST_NEW_TOKENS), donor_answers=[e.answer_ids for e in donors],
        recipient_answers=[e.answer_ids for e in recipients], graders=graders(lm, recipients, donors),
        clusters=([e.shares for e in donors], [e.shares for e in recipients]), seed=seed,
    )  # fmt: skip
    cases = [(donors[d].case, recipients[r].case) for d, r in chosen]
    return replace(found, settings={**found.settings, "cases": cases, "position": "prompt-end"})


def boundary_pairs(n_donors: int, n_recipients: int, most: int = MAX_PAIRS) -> list[tuple[int, int]]:
    """Pairs (donor, recipient) from the donors x recipients table, diagonal by diagonal, so that use is even."""
    size = max(n_donors, n_recipients)
    found = [(i % n_donors, (i + k) % n_recipients) for k in range(n_recipients) for i in range(size)]
    return list(dict.fromkeys(found))[: min(most, n_donors * n_recipients)]


def tables(study: Study) -> list[StudyTable]:
    """Tables 1, 3, 4 and 9; single against double gate; recovery; the mechanism of App. I; the three channels."""
    knows = [("atom_stability", lambda g: set(g) == {"per"}), "double_gate", "gate_removed", "conflation", "abstention"]
    kept = _own_depths(study)

    def rows(name: str, *wanted: set[str]) -> list[Row]:
        return metric_rows(
            study, [(name, lambda g: kept(g) and {"depth" if k == "depth_bin" else k for k in g} in wanted)]
        )

    failure, families = rows("residual_failure", set(), {"depth"}), rows("residual_failure", {"family", "depth"})
    recovery = rows("recovery", {"prompt"}, {"prompt", "depth"})
    return [
        StudyTable("depth", "Residual failure by depth (Table 1, Fig. 2)", failure),
        StudyTable("families", "Residual failure by family and depth (Table 3, Fig. 5, 6)", families),
        StudyTable("knowledge", "What is known, and what one gate would miss (Table 9)", metric_rows(study, knows),
              "gate_removed: cases without stable atoms, among the cases with right sub-questions; conflation: "
              "single-gate − double-gate failure."),
        StudyTable("d50", "Depth of 50 % failure (Table 4)",
              metric_rows(study, [("d50", lambda g: set(g) <= {"family"})])),
        StudyTable("recovery", "Residual failures that chain of thought gets right (section 6)", recovery),
        StudyTable("mechanism", "Patching and cosines on the boundary set (App. I)", mechanism(study)),
        *pairs(study),
    ]  # fmt: skip


def _own_depths(study: Study) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a group has no depth, or the one that its run's benchmark counts in: bins where it declares them."""
    of_runs = [[m.group for m in run.run.metrics] for run in study.runs]
    others = [("depth" if any("depth_bin" in g for g in groups) else "depth_bin", groups) for groups in of_runs]
    left = {id(group) for other, groups in others for group in groups if other in group}
    return lambda group: id(group) not in left


PRESET = Preset(
    name="composition-collapse",
    order=4,
    title="Composition collapse: every part stably known, and the whole wrong",
    protocol="double-gate",
    data=("organism:temporal",),
    tables=tables,
    probe=probe,
    headline=("double_gate", "residual_failure", "d50", "conflation"),
    figures=(
        "collapse-curve", "family-curves", "family-heatmap", "gate-funnel", "stability-scatter", "channels",
        "patching", "cosine-prompt-end", "cosine-trajectory",
    ),
    format="xml",
    asking=Asking(also="cot", answer_tokens=512, cot_tokens=1024, thinking=False),
    organism_asking=Asking(also="cot"),
    organism_limit={"organism:temporal": 12},
    compat="collapse",
    notes=(
        "The benchmark is not released. `composcope build temporal` makes a similar one from a file of dated facts.",
        "Answers in words are matched by rules, and by `--judge` if it is given; the paper asks Gemini 2.5 Flash.",
        "To train on compositions (Fig. 3), use `composcope intervene`; give its models here with `trained_depths`.",
    ),
)  # fmt: skip

if __name__ == "__main__":
    from .cli.root import run_study

    raise SystemExit(run_study(PRESET.name))
