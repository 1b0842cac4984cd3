"""What trl's trainers are told: on which tokens the loss is, and by which seed they draw."""

from __future__ import annotations

from pathlib import Path

import pytest

from composcope.experiments.console.progress import Reporter
from composcope.experiments.interventions import data, trainers
from composcope.experiments.interventions.recipes import resolve
from composcope.experiments.interventions.trainers import TrainerOptions
from composcope.experiments.organism import weights
from composcope.model_loading import load

pytest.importorskip("trl")
pytest.importorskip("peft")


@pytest.mark.parametrize("objective", ["sft-answer", "grpo"])
def test_the_loss_is_on_the_answer_alone_and_the_seed_is_the_users(objective: str, tmp_path: Path) -> None:
    base, tokenizer = load(str(weights.path("control")), device="cpu")
    recipe = resolve(objective, "organism-v1", prompts=4, rank=4, alpha=8, generations=2, max_tokens=24, format="plain")
    cases = data.training_set(data.ORGANISM, recipe).cases
    rows = [trainers.row(recipe, case, data.target(case, recipe), chat=True) for case in cases]
    how = TrainerOptions(seed=7, device="cpu")
    trainer = trainers.build(recipe, base, tokenizer, rows, tmp_path, how, Reporter(quiet=True))
    assert (trainer.args.seed, trainer.args.data_seed) == (7, 7)
    assert trainer.args.learning_rate == recipe.learning_rate
    if objective == "grpo":
        assert (trainer.args.beta, trainer.args.temperature) == (recipe.beta, recipe.temperature)
        assert (trainer.num_generations, trainer.args.max_completion_length) == (2, 24)
        return
    batch = trainer.data_collator([trainer.train_dataset[0]])
    prompt = tokenizer.apply_chat_template(rows[0]["prompt"], add_generation_prompt=True, return_dict=False)
    labels = batch["labels"][0].tolist()
    assert set(labels[: len(prompt)]) == {-100}
    assert labels[len(prompt) :] == batch["input_ids"][0, len(prompt) :].tolist() and len(labels) > len(prompt)
