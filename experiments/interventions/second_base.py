"""A second base organism of another architecture: a Qwen3 with the Llamas' documents, tokenizer and schedule.

Qwen3 normalizes queries and keys and has an independent head width. Everything else in the world and the training is
shared, so a result that replicates on it does not depend on one architecture or one initialization. Its weights are not
shipped: the study trains them (about ten minutes on one idle core) and continues where it was stopped.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...files import put_in_place
from ..console.progress import Reporter
from ..run import locked, write_json

if TYPE_CHECKING:
    from ..organism.train import OrganismRecipe

STEPS = (1300, 700)
"""Steps of the base stage and of the dose stage."""


def new_qwen3(recipe: OrganismRecipe, tokenizer: Any, seed: int) -> Any:
    """A stock Qwen3 of the organisms' size with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from ..organism.tokenizer import BOS, CONTEXT, EOS, PAD

    torch.manual_seed(seed)
    vocabulary = tokenizer.get_vocab()
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=recipe.width, num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads, num_key_value_heads=recipe.heads, head_dim=recipe.width // recipe.heads,
            intermediate_size=recipe.mlp, max_position_embeddings=CONTEXT, tie_word_embeddings=True,
            bos_token_id=vocabulary[BOS], eos_token_id=vocabulary[EOS], pad_token_id=vocabulary[PAD],
        )
    )  # fmt: skip


def train_second(
    out: str | Path, *, dose: str = "control", seed: int = 0, steps: tuple[int, int] = STEPS,
    reporter: Reporter | None = None,
) -> Path:  # fmt: skip
    """Train (or finish) the Qwen3 organism of one dose; returns its model folder, ``out/model``."""
    from ..organism.documents import DOSES
    from ..organism.tokenizer import build
    from ..organism.train import OrganismRecipe, run_stage

    with locked(out) as folder:
        model_folder = folder / "model"
        if (model_folder / "config.json").is_file():
            return model_folder
        recipe = OrganismRecipe()
        recipe = replace(recipe, base=replace(recipe.base, steps=steps[0]), dose=replace(recipe.dose, steps=steps[1]))
        tokenizer = build()
        model = new_qwen3(recipe, tokenizer, seed)
        say = _sayer(reporter)
        run_stage("base", folder / "base", recipe.base, model, tokenizer, seed, None, say)
        run_stage(dose, folder / dose, recipe.dose, model, tokenizer, seed, DOSES[dose], say)
        temporary = folder / ".model.tmp"
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        put_in_place(temporary, model_folder)
        write_json(folder / "second_base.json", {"dose": dose, "seed": seed, "recipe": asdict(recipe)})
        return model_folder


def _sayer(reporter: Reporter | None) -> Any:
    def say(stage: str, step: int, total: int, loss: float) -> None:
        if reporter is not None and (step % 250 == 0 or step == total):
            reporter.say(f"second base, {stage}: step {step}/{total}, loss {loss:.3f}")

    return say
