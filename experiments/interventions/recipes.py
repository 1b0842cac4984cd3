"""Training recipes: objective, depths, prompts, adapter and budget. The published settings are presets.

Composition collapse, section 5 and appendix F: LoRA on all projections, AdamW, learning rate 1e-5, one sequence at a
time with eight accumulated, KL coefficient 0.04, eight generations per prompt. v1 and v2 have rank 32 and 4 epochs,
v3 and v4 rank 64 and 8 epochs; they differ in the depths they train on. SFT-answer and SFT-trace use v1's data and
adapter. A model of a million parameters needs larger steps and more prompts: the presets ``organism-v1`` to ``-v4``
keep the depths and the ratios of adapters and budgets, and train in minutes on one core.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...errors import InputError

OBJECTIVES = ("sft-answer", "sft-trace", "grpo")
INFERENCE = ("steering", "patching")
SOLUTIONS = ("written", "self")


@dataclass(frozen=True)
class AdapterRecipe:
    """Everything that decides an adapter besides base weights, training cases and seed."""

    objective: str = "grpo"
    """``sft-answer`` (the gold answer alone), ``sft-trace`` (the worked answer) or ``grpo`` (reward)."""
    depths: tuple[int, ...] = (2, 4)
    prompts: int = 120
    """Number of whole questions trained on, spread evenly over family x depth."""
    rank: int = 32
    alpha: int = 64
    dropout: float = 0.05
    epochs: int = 4
    learning_rate: float = 1e-5
    schedule: str = "linear"
    warmup: float = 0.0
    """Share of the steps during which the learning rate rises."""
    prompts_per_step: int = 1
    """GRPO: prompts per optimizer step, each with all its generations."""
    examples_per_step: int = 8
    """SFT: worked examples per optimizer step."""
    micro_batch: int = 1
    """Sequences in one forward pass; the rest of a step is accumulated."""
    generations: int = 8
    beta: float = 0.04
    """Coefficient of the KL divergence from the base model."""
    temperature: float = 1.0
    max_tokens: int = 512
    """Length limit of sampled completions, in tokens."""
    format: str = "xml"
    solutions: str = "written"
    """SFT-trace: ``written`` worked answers, or right answers that the model sampled itself (``self``)."""
    thinking: bool | None = None
    """Whether the chat template is told to think first, like ``--thinking`` of an evaluation; None: its default."""

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            known = ", ".join((*OBJECTIVES, *INFERENCE))
            raise InputError(f"--recipe {self.objective}: no such recipe; use one of {known}")
        if not self.depths or min(self.depths) < 1:
            raise InputError(f"--depths {','.join(map(str, self.depths))}: give whole numbers of at least 1, as in 2,4")
        if self.solutions not in SOLUTIONS:
            raise InputError(f"--solutions {self.solutions}: use one of {', '.join(SOLUTIONS)}")
        if self.solutions == "self" and self.objective != "sft-trace":
            raise InputError(f"--solutions self: is for sft-trace, and the recipe is {self.objective}; leave it out")
        self._check_numbers()

    def _check_numbers(self) -> None:
        for name in ("prompts", "rank", "alpha", "epochs", "prompts_per_step", "examples_per_step", "micro_batch"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name.replace('_', '-')} {getattr(self, name)}: give a whole number of at least 1")
        if self.objective == "grpo" and self.prompts % self.prompts_per_step:  # the remainder would never be used
            raise InputError(
                f"--prompts {self.prompts}: GRPO takes {self.prompts_per_step} prompts a step; give a multiple of it, "
                "or another --prompts-per-step"
            )
        if self.generations < 2:
            raise InputError(f"--generations {self.generations}: a group needs at least 2 to be compared")
        if not self.learning_rate > 0 or self.beta < 0 or not self.temperature > 0 or self.max_tokens < 1:
            raise InputError("--learning-rate, --temperature and --max-tokens must be above 0, --beta at least 0")
        if not 0 <= self.dropout < 1:
            raise InputError(f"--dropout {self.dropout}: give a number from 0 to below 1")

    def to_dict(self) -> dict[str, Any]:
        found = {**asdict(self), "depths": list(self.depths)}
        if self.thinking is None:  # trainings from before this option existed are the same trainings
            del found["thinking"]
        return found


def _check_format(format: str, objective: str) -> None:
    from ...evaluation.prompts import FORMATS

    if format not in FORMATS:
        raise InputError(f"--format {format}: unknown; use one of {', '.join(FORMATS)}")
    if objective == "sft-trace" and "{worked}" not in FORMATS[format].response:
        raise InputError(f"--format {format}: has no reasoning, which sft-trace trains; use xml or cot")


_PUBLISHED = AdapterRecipe()
_ORGANISM = AdapterRecipe(
    prompts=256, dropout=0.0, epochs=2, learning_rate=1e-3, warmup=0.05, prompts_per_step=4, examples_per_step=4,
    micro_batch=64, max_tokens=100, format="plain",
)  # fmt: skip
"""Found by trials on ``organism:control``. The published rate changes nothing at this size, and with one prompt per
step the same work takes four times as many steps. ``plain`` is the format that organisms know best; in a format that
they saw rarely, such as XML, failures are due to the format as much as to composition."""

PRESETS: dict[str, AdapterRecipe] = {
    "v1": _PUBLISHED,
    "v2": replace(_PUBLISHED, depths=(2, 4, 6), prompts=210),
    "v3": replace(_PUBLISHED, depths=(2, 4, 6), prompts=210, rank=64, alpha=128, epochs=8),
    "v4": replace(_PUBLISHED, depths=(2, 4, 6, 8), prompts=300, rank=64, alpha=128, epochs=8),
    "organism-v1": _ORGANISM,
    "organism-v2": replace(_ORGANISM, depths=(2, 4, 6), prompts=448),
    "organism-v3": replace(_ORGANISM, depths=(2, 4, 6), prompts=448, rank=64, alpha=128, epochs=4),
    "organism-v4": replace(_ORGANISM, depths=(2, 4, 6, 8), prompts=640, rank=64, alpha=128, epochs=4),
}
"""The published settings under their names in the paper, and the same settings scaled to organisms."""


def resolve(
    objective: str, preset: str | None = None, depths: Sequence[int] | None = None, **changes: Any
) -> AdapterRecipe:
    """A recipe from its command-line name, a preset, and changed values (None: the preset's own).

    Raises ``InputError`` for an unknown recipe or preset and for impossible values.
    """
    if objective not in OBJECTIVES:
        AdapterRecipe(objective)  # raises an error that lists the known names
    name = preset or "v1"
    if name not in PRESETS:
        raise InputError(f"--preset {name}: no such preset; use one of {', '.join(PRESETS)}")
    given = {k: v for k, v in changes.items() if v is not None}
    if depths is not None:
        given["depths"] = tuple(sorted(set(depths)))
    made = replace(PRESETS[name], objective=objective, **given)
    _check_format(made.format, made.objective)  # checked here, so that ``--help`` does not need the formats
    return made


_SFT = ("sft-answer", "sft-trace")
READ_BY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("out", "depths", "preset", "train", "evaluation", "format", "prompts", "epochs", "learning_rate", "rank",
         "alpha", "micro_batch", "max_steps", "save_every", "curve", "limit", "dtype", "thinking"),
        OBJECTIVES,
    ),
    **dict.fromkeys(("beta", "generations", "prompts_per_step"), ("grpo",)),
    "examples_per_step": _SFT,
    "solutions": ("sft-trace",),
    "max_tokens": ("sft-trace", "grpo", *INFERENCE),
    **dict.fromkeys(("layers", "cases"), INFERENCE),
}  # fmt: skip
"""Which recipes read an option. Options that all recipes read, or with a neutral default, are not listed."""


def check_options(recipe: str, given: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for an option that the recipe does not read (None, or False for a flag, means not given)."""
    for name, recipes in READ_BY.items():
        value = given.get(name)
        unread = recipe not in recipes and recipe in (*OBJECTIVES, *INFERENCE)
        if unread and value is not None and (value is not False or name == "thinking"):  # 0 is a value
            option = f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
            shown = option if isinstance(value, bool) else f"{option} {value}"
            raise InputError(f"{shown}: is for {' and '.join(recipes)}, and the recipe is {recipe}; leave it out")
    if recipe == "sft-trace" and (most := given.get("max_tokens")) is not None and given.get("solutions") != "self":
        raise InputError(f"--max-tokens {most}: for sft-trace only with --solutions self; add it, or leave it out")
    if given.get("limit") is not None and not given.get("curve"):
        raise InputError(f"--limit {given['limit']}: only applies to --curve; add --curve, or leave it out")
