"""Sets up trl's trainers from a recipe: SFT on completions, or GRPO with the composition reward, on a peft LoRA."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...evaluation.case import Case
from ...evaluation.engines.base import think
from ..console.printing import Reporter
from . import adapters
from .data import question
from .recipes import AdapterRecipe

CHECKPOINTS = 8
"""How many checkpoints are kept during a training by default."""
BIG = 500_000_000
"""From this number of parameters on, activations are recomputed instead of kept."""


@dataclass(frozen=True)
class TrainerOptions:
    """Options that may differ between machines and trials of one recipe."""

    seed: int = 0
    device: str | None = None
    dtype: str | None = None
    save_every: int | None = None
    """Optimizer steps between checkpoints; None: an eighth of the training."""
    max_steps: int | None = None
    """Stop the training after this many steps."""


def row(recipe: AdapterRecipe, case: Case, completion: str, chat: bool) -> dict[str, Any]:
    """One training question in trl's columns, with its gold answer for GRPO or the text to imitate for SFT."""
    prompt = question(case, recipe)
    asked = [{"role": "user", "content": prompt}] if chat else prompt
    if recipe.objective == "grpo":
        gold = {"gold": case.answer, "answer_type": case.answer_type, "aliases": list(case.aliases)}
        return {"prompt": asked, **gold, "case": case.id}
    said = [{"role": "assistant", "content": completion}] if chat else f" {completion}"
    told = {} if recipe.thinking is None else {"chat_template_kwargs": think(recipe.thinking)}
    return {"prompt": asked, "completion": said, **told}


def lora(recipe: AdapterRecipe) -> Any:
    """LoRA on every projection of the blocks, in any architecture."""
    from peft import LoraConfig

    return LoraConfig(
        r=recipe.rank, lora_alpha=recipe.alpha, lora_dropout=recipe.dropout, target_modules="all-linear",
        bias="none", task_type="CAUSAL_LM",
    )  # fmt: skip


def build(
    recipe: AdapterRecipe, base: Any, tokenizer: Any, rows: Sequence[Mapping[str, Any]], folder: Path,
    how: TrainerOptions, reporter: Reporter,
) -> Any:  # fmt: skip
    """The trainer of a recipe over ``rows``; its checkpoints go to ``folder/checkpoints``."""
    from datasets import Dataset, disable_progress_bars
    from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

    disable_progress_bars()
    steps = recipe.epochs * -(-len(rows) // per_step(recipe))
    steps = min(steps, how.max_steps or steps)
    common = _arguments(recipe, base, folder, how, steps)
    shared: dict[str, Any] = dict(
        model=base, train_dataset=Dataset.from_list([dict(r) for r in rows]), processing_class=tokenizer,
        peft_config=lora(recipe), callbacks=[_progress(folder, reporter)],
    )  # fmt: skip
    if recipe.objective != "grpo":
        # completion_only_loss: the question is given, and only the answer is learned.
        batch: dict[str, Any] = batching(recipe.examples_per_step, recipe.micro_batch)
        args = SFTConfig(**common, **batch, max_length=None, shuffle_dataset=True, completion_only_loss=True)
        return _quiet(SFTTrainer(args=args, **shared))
    from .reward import Rewards

    rewards: Any = Rewards(recipe.format, recipe.max_tokens, thinking=bool(recipe.thinking))
    batch = batching(recipe.prompts_per_step * recipe.generations, recipe.micro_batch)
    args = GRPOConfig(
        **common, **batch,
        num_generations=recipe.generations, beta=recipe.beta, temperature=recipe.temperature,
        max_completion_length=recipe.max_tokens,
        chat_template_kwargs=None if recipe.thinking is None else think(recipe.thinking),
    )  # fmt: skip
    return _quiet(GRPOTrainer(args=args, reward_funcs=[rewards], **shared))


def _quiet(trainer: Any) -> Any:
    """Remove the callback that prints every step's numbers to stdout; they are in ``log.jsonl``."""
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def per_step(recipe: AdapterRecipe) -> int:
    """Number of questions in one optimizer step."""
    return recipe.prompts_per_step if recipe.objective == "grpo" else recipe.examples_per_step


def batching(sequences: int, micro: int) -> dict[str, int]:
    """Batch and accumulation in equal shares, whose product is the number of sequences per optimizer step."""
    size = sequences if micro >= sequences else math.gcd(sequences, micro)
    return {"per_device_train_batch_size": size, "gradient_accumulation_steps": sequences // size}


def _arguments(recipe: AdapterRecipe, base: Any, folder: Path, how: TrainerOptions, steps: int) -> dict[str, Any]:
    on_gpu = base.device.type == "cuda"
    return dict(
        output_dir=str(folder / "checkpoints"), num_train_epochs=recipe.epochs,
        max_steps=steps if how.max_steps else -1,
        learning_rate=recipe.learning_rate, lr_scheduler_type=recipe.schedule, seed=how.seed, data_seed=how.seed,
        warmup_steps=round(recipe.warmup * steps), optim="adamw_torch", save_strategy="steps", logging_steps=1,
        save_steps=how.save_every or max(1, steps // CHECKPOINTS), report_to="none", disable_tqdm=True,
        use_cpu=not on_gpu, bf16=on_gpu and base.dtype.itemsize == 2, dataloader_pin_memory=on_gpu,
        gradient_checkpointing=sum(p.numel() for p in base.parameters()) >= BIG,
    )  # fmt: skip


def _progress(folder: Path, reporter: Reporter) -> Any:
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        """Reports every tenth of the training, and reduces checkpoints to their adapter when they are not the last."""

        said = -1

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            tenth = 10 * state.global_step // max(1, state.max_steps)
            if logs and tenth > self.said and ("loss" in logs or "reward" in logs):
                self.said = tenth
                shown = ", ".join(f"{k} {float(logs[k]):.3f}" for k in ("loss", "reward", "kl") if k in logs)
                reporter.say(f"{folder.name}: step {state.global_step}/{state.max_steps}, {shown}")

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            adapters.prune(folder / "checkpoints", keep_last=True)

    return Progress()
