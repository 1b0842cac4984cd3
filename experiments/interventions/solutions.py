"""Self-generated solutions: the model's own sampled answers, kept where they are right (rejection sampling).

Compositional GSM (figure 7, appendix C) trains on human-written solutions and on synthetic ones that the model under
study wrote itself. Here the written ones are the cases' worked answers, and the synthetic ones are sampled from the
base model and checked against the gold answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...evaluation.asks import Ask
from ...evaluation.cases import Case
from .data import question
from .recipes import AdapterRecipe
from .reward import score

SAMPLES = 8
"""Answers sampled for each training question."""


def sample_right(
    recipe: AdapterRecipe, cases: Sequence[Case], model: Any, tokenizer: Any, seed: int, samples: int = SAMPLES
) -> list[tuple[Case, str]]:
    """The first right answer among ``samples`` for each case that has one, in the order of the cases."""
    from ...evaluation.engines.local import LocalEngine

    engine = LocalEngine(model, tokenizer)
    prompting = "chat" if getattr(tokenizer, "chat_template", None) else "raw"
    asks = {
        (case.id, k): Ask(
            case.id, "whole", question(case, recipe), case.answer, case.answer_type, recipe.format, case.aliases,
            max_tokens=recipe.max_tokens, prompting=prompting, temperature=recipe.temperature, seed=seed * 1009 + k,
            repeat=k, thinking=recipe.thinking,
        )
        for case in cases
        for k in range(samples)
    }  # fmt: skip
    # An answer that was cut off is none to learn from, whatever it says.
    texts = {
        (ask.case, ask.repeat): response.text.strip()
        for ask, response in engine.answer(list(asks.values()))
        if response.finish_reason == "stop"
    }
    kept = []
    for case in cases:
        drawn = (texts[case.id, k] for k in range(samples) if (case.id, k) in texts)
        right = (t for t in drawn if _is_right(t, case, recipe))
        if (first := next(right, None)) is not None:
            kept.append((case, first))
    return kept


def _is_right(text: str, case: Case, recipe: AdapterRecipe) -> bool:
    thinking = bool(recipe.thinking)
    return score(text, case.answer, case.answer_type, case.aliases, recipe.format, thinking=thinking).correct
