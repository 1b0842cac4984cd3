"""What each paper's study costs at its published size: asks and probes counted, then the arithmetic of ``scale``.

Numbers of cases are the papers'; asks per case follow from the presets (``composcope study``); lengths of texts are
assumptions, printed beside the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..interventions.recipes import PRESETS, Recipe
from .scale import H100, SIZES, Hardware, Load, Size, gpus_for, minutes, seconds

D4V2 = 390 + 2490 + 79 * 4
"""Wholes, sub-questions and wordings of the atoms of composition collapse's benchmark."""


@dataclass(frozen=True)
class Training:
    """Trainings of one kind."""

    recipe: Recipe
    times: int


@dataclass(frozen=True)
class Planned:
    """One study of one model."""

    name: str
    load: Load
    steps: tuple[str, ...]
    """Steps of ``scale.study_flops`` that it has."""
    trainings: tuple[Training, ...] = ()


_PATCHED = ("ask", "patching", "trajectory")
STUDIES = (
    # 260 cases; the whole, both steps, the commonsense step with more context, self-ask; 30 wholes reversed.
    Planned("agentcoma", Load(500, 200, 5 * 260 + 30, 3 * 260, nodes=21), ("ask", "neurons", "lookback", "min-k")),
    # 1,200 pairs; Q1, Q2, the pair, Q2 beside an independent Q1, Q2's original, code; with and without the instruction.
    Planned("compositional-gsm", Load(1800, 250, 12 * 1200), ("ask",)),
    # 1,448 + 1,176 + 773 cases of 4.56 steps; the whole, every step, and for the half that fails 3.56 scaffolds and a
    # placeholder.
    Planned("stad", Load(250, 300, round(3397 * (1 + 4.56 + 0.5 * 4.56))), ("ask",)),
    # The benchmark and its wholes again with chain of thought; 16 pairs patched, here at all layers.
    Planned("composition-collapse", Load(120, 100, D4V2 + 390, 3 * 32, 16, continuation=40), _PATCHED),
    # 3 seeds of 7 variants, 3 of them on a second base too; every model and the two bases evaluated.
    Planned(
        "interventions, 30 trainings", Load(120, 100, 32 * D4V2), ("ask",),
        (Training(PRESETS["v1"], 6), Training(PRESETS["v2"], 3), Training(PRESETS["v3"], 3), Training(PRESETS["v4"], 3),
         Training(Recipe("sft-answer"), 6), Training(Recipe("sft-trace"), 9)),
    ),
)  # fmt: skip


def training_seconds(size: Size, recipe: Recipe, load: Load, hardware: Hardware) -> float:
    """Seconds of one training on one copy of the model, one GPU of it at work at a time.

    GRPO generates a prompt's completions in one batch, which reads all weights for each token. Then each sequence goes
    forward, forward again for the activations that were not kept, backward (frozen weights have no gradients, so it
    costs what forward does) and, for GRPO, forward through the base model; logits are made for the answer's tokens.
    """
    answers = recipe.prompts * recipe.epochs * (recipe.generations if recipe.objective == "grpo" else 1)
    passes, heads = (4, 3) if recipe.objective == "grpo" else (3, 2)
    tokens = load.prompt + load.response
    flops = answers * (passes * size.prompt(tokens, 0) + heads * load.response * 2 * size.head)
    found = flops / (hardware.flops * hardware.utilization)
    if recipe.objective == "grpo":
        steps = recipe.prompts * recipe.epochs
        moved = 2 * size.weights + recipe.generations * size.kv_bytes() * tokens
        found += steps * load.response * moved / hardware.bandwidth
    return found


def study_minutes(size: Size, study: Planned, gpus: int, hardware: Hardware = H100) -> float | None:
    """Minutes of a study on ``gpus`` GPUs; None where no copy of the model fits.

    Trainings run side by side, one to a copy: never faster than the longest of them.
    """
    found = seconds(size, study.load, hardware, gpus)
    if found is None:
        return None
    copies = gpus // gpus_for(size, hardware)
    each = [(training_seconds(size, t.recipe, study.load, hardware), t.times) for t in study.trainings]
    training = max([sum(s * n for s, n in each) / copies, *(s for s, _ in each)], default=0.0)
    return (sum(found[name] for name in study.steps) + training) / 60


def study_lines(hardware: Hardware = H100, gpus: Sequence[int] = (1, 8, 64)) -> list[str]:
    """The table of studies of ``docs/scale.md`` as markdown."""
    columns = [(name, n) for name in ("8B", "70B") for n in gpus]
    heads = ["minutes", "asks", "prompt + answer", "opened up", *(f"{name}, {n} GPU" for name, n in columns)]
    out = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1)]
    for study in STUDIES:
        load, opened = study.load, _opened(study)
        times = [study_minutes(SIZES[name], study, n, hardware) for name, n in columns]
        cells = [study.name, f"{load.asks:,}", f"{load.prompt} + {load.response}", opened]
        out.append(f"| {' | '.join([*cells, *('–' if t is None else minutes(t) for t in times)])} |")
    return out


def _opened(study: Planned) -> str:
    """Prompts that a study's probes run on; trajectories alone are those of the wholes, one prompt in three."""
    if len(study.steps) == 1:
        return "–"
    return str(study.load.examples // (3 if study.steps == _PATCHED else 1))
