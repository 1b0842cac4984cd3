"""What trl's trainers are told: on which tokens the loss is, and by which seed they draw."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments.console.printing import Reporter
from composcope.experiments.interventions import data, trainers
from composcope.experiments.interventions.recipes import resolve
from composcope.experiments.interventions.trainers import TrainerOptions
from composcope.experiments.organism import weights
from composcope.model_loading import load

pytestmark = pytest.mark.skipif(not (find_spec("trl") and find_spec("peft")), reason="extra train is not installed")


@pytest.mark.parametrize(("objective", "opened"), [("sft-answer", False), ("grpo", False), ("grpo", True)])
def test_the_loss_is_on_the_answer_alone_and_the_seed_is_the_users(
    objective: str, opened: bool, tmp_path: Path
) -> None:
    base, tokenizer = load(str(weights.path("control")), device="cpu")
    recipe = resolve(
        objective, "organism-v1", prompts=4, rank=4, alpha=8, generations=2, max_tokens=24, format="plain", beta=0.25,
        temperature=0.75,
    )  # fmt: skip
    cases = data.training_set(data.ORGANISM, recipe).cases
    rows = [trainers.row(recipe, case, data.target(case, recipe), chat=True) for case in cases]
    how = TrainerOptions(seed=7, device="cpu")
    base.generation_config.eos_token_id = [5, 6]
    if opened:
        tokenizer.chat_template += "<think>"
        tokenizer.add_special_tokens({"additional_special_tokens": ["</think>"]})
    recipe = replace(recipe, thinking=True if objective == "grpo" and not opened else None)
    trainer = trainers.build(recipe, base, tokenizer, rows, tmp_path, how, Reporter(quiet=True))
    assert (trainer.args.seed, trainer.args.data_seed) == (7, 7)
    assert trainer.args.learning_rate == recipe.learning_rate
    callbacks = {type(callback).__name__ for callback in trainer.callback_handler.callbacks}
    assert "Progress" in callbacks and "PrinterCallback" not in callbacks, "steps are reported once, and not on stdout"
    if objective == "grpo":
        assert (trainer.args.beta, trainer.args.temperature) == (0.25, 0.75)
        [rewards] = trainer.reward_funcs
        assert (rewards.format, rewards.max_tokens, rewards.thinking) == ("plain", 24, True)
        assert set(rewards.eos_ids) == {tokenizer.eos_token_id, 5, 6}, "what ends an answer of the base"
        said = tokenizer("So 7</think> 8", add_special_tokens=False).input_ids
        columns = {"gold": ["8"], "answer_type": ["number"], "aliases": [[]], "completion_ids": [[*said, 6]]}
        assert rewards(["p"], [[{"role": "assistant", "content": "7"}]], **columns) == [1.0], "as the ids have it"
        assert (trainer.num_generations, trainer.args.max_completion_length) == (2, 24)
        return
    assert trainer.args.max_length is None and trainer.args.shuffle_dataset, "no answer is cut"
    batch = trainer.data_collator([trainer.train_dataset[0]])
    prompt = tokenizer.apply_chat_template(rows[0]["prompt"], add_generation_prompt=True, return_dict=False)
    labels = batch["labels"][0].tolist()
    assert set(labels[: len(prompt)]) == {-100}
    assert labels[len(prompt) :] == batch["input_ids"][0, len(prompt) :].tolist() and len(labels) > len(prompt)


@pytest.mark.parametrize("objective", ["sft-answer", "grpo"])
def test_a_training_takes_one_gpu_where_there_are_several(
    objective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")
    found = vars(transformers.TrainingArguments)["_setup_devices"].func

    def several(args: Any) -> Any:
        device, args._n_gpu = found(args), 4
        return device

    several_at_once = cached_property(several)
    several_at_once.__set_name__(transformers.TrainingArguments, "_setup_devices")
    monkeypatch.setattr(transformers.TrainingArguments, "_setup_devices", several_at_once)
    base, tokenizer = load(str(weights.path("none")), device="cpu")
    recipe = resolve(objective, "organism-v1", prompts=4, generations=2, max_tokens=24)
    cases = data.training_set(data.ORGANISM, recipe).cases
    rows = [trainers.row(recipe, case, data.target(case, recipe), chat=True) for case in cases]
    how = TrainerOptions(device="cpu")
    args = trainers.build(recipe, base, tokenizer, rows, tmp_path, how, Reporter(quiet=True)).args
    assert args.train_batch_size == args.per_device_train_batch_size


def _base(kind: str, itemsize: int, parameters: int) -> Any:
    return SimpleNamespace(device=SimpleNamespace(type=kind), dtype=SimpleNamespace(itemsize=itemsize),
                           parameters=lambda: [SimpleNamespace(numel=lambda: parameters)])  # fmt: skip


def test_every_setting_of_a_recipe_and_of_the_machine_reaches_the_trainer(tmp_path: Path) -> None:
    changed = {"rank": 5, "alpha": 9, "dropout": 0.25, "epochs": 3, "learning_rate": 3e-3, "warmup": 0.2}
    recipe = replace(resolve("sft-answer", "organism-v1"), schedule="constant", **changed)
    adapter = trainers.lora(recipe)
    assert (adapter.r, adapter.lora_alpha, adapter.lora_dropout) == (5, 9, 0.25)
    found = trainers._arguments(recipe, _base("cpu", 2, trainers.BIG - 1), tmp_path, TrainerOptions(seed=5), 40)
    wanted = {"num_train_epochs": 3, "max_steps": -1, "learning_rate": 3e-3, "lr_scheduler_type": "constant", "seed": 5,
              "data_seed": 5, "warmup_steps": 8, "save_steps": 40 // trainers.CHECKPOINTS, "use_cpu": True,
              "bf16": False, "gradient_checkpointing": False}  # fmt: skip
    assert {k: found[k] for k in wanted} == wanted
    how = TrainerOptions(max_steps=10, save_every=3)
    found = trainers._arguments(recipe, _base("cuda", 2, trainers.BIG), tmp_path, how, 10)
    wanted = {"max_steps": 10, "save_steps": 3, "use_cpu": False, "bf16": True, "gradient_checkpointing": True}
    assert {k: found[k] for k in wanted} == wanted
    assert not trainers._arguments(recipe, _base("cuda", 4, 1), tmp_path, how, 10)["bf16"]


def test_only_the_first_gpu_that_is_seen_can_be_asked_for() -> None:
    for device in (None, "cpu", "cuda", "cuda:0"):
        assert TrainerOptions(device=device).device == device
    with pytest.raises(InputError, match=r"--device cuda:2: .*CUDA_VISIBLE_DEVICES=2"):
        TrainerOptions(device="cuda:2")


@pytest.mark.parametrize(
    ("sequences", "micro", "found"), [(8, 16, (8, 1)), (8, 8, (8, 1)), (8, 4, (4, 2)), (9, 6, (3, 3))]
)
def test_a_step_is_cut_into_equal_shares(sequences: int, micro: int, found: tuple[int, int]) -> None:
    assert tuple(trainers.batching(sequences, micro).values()) == found


def test_a_question_is_asked_as_the_model_takes_it_and_told_to_think_only_where_the_recipe_says() -> None:
    recipe = resolve("sft-answer", "organism-v1", prompts=4)
    case = data.training_set(data.ORGANISM, recipe).cases[0]
    prompt = trainers.question(case, recipe)
    assert trainers.row(recipe, case, "x", chat=False) == {"prompt": prompt, "completion": " x"}
    said = trainers.row(replace(recipe, thinking=False), case, "x", chat=True)
    assert said["prompt"] == [{"role": "user", "content": prompt}]
    assert said["completion"] == [{"role": "assistant", "content": "x"}] and said["chat_template_kwargs"]
    asked = trainers.row(replace(recipe, objective="grpo"), case, "", chat=False)
    assert (asked["prompt"], asked["gold"], asked["aliases"]) == (prompt, case.answer, list(case.aliases))
