"""Sets up trl's trainers from a recipe (SFT on completions, or GRPO with the composition reward, on a peft LoRA), and
turns a trained adapter into a model folder: every other command takes the merged model as ``--model``.

The adapter is kept next to it, with a manifest that names its base weights. It is never applied to other weights.
"""

import json
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.case import Case
from ...evaluation.engines.base import think
from ...evaluation.engines.text import decode, opens_thinking, special_thinking_marks
from ..console.printing import Reporter
from ..models.resolve import resolve_model
from ..run import read_json, write_text
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

    def __post_init__(self) -> None:
        kind, _, index = (self.device or "").partition(":")
        if kind == "cuda" and index not in ("", "0"):
            raise InputError(
                f"--device {self.device}: trl trains on the first GPU that it sees; set CUDA_VISIBLE_DEVICES={index} "
                "and give --device cuda"
            )


def row(recipe: AdapterRecipe, case: Case, completion: str, chat: bool) -> dict[str, Any]:
    """One training question in trl's columns, with its gold answer for GRPO or the text to imitate for SFT."""
    prompt = question(case, recipe)
    asked = [{"role": "user", "content": prompt}] if chat else prompt
    if recipe.objective == "grpo":
        gold = {"gold": case.answer, "answer_type": case.answer_type, "aliases": list(case.aliases),
                "options": [list(option) for option in case.options], "question": case.question}  # fmt: skip
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
        return _quiet(SFTTrainer(args=_on_one(args), **shared))
    from ...model_loading import end_ids
    from .reward import Rewards

    ends = end_ids(base, tokenizer)
    # The text as an evaluation has it: trl leaves out marks of thinking, or all of it where a tokenizer parses answers.
    read = partial(decode, tokenizer, eos_ids=ends, kept=special_thinking_marks(tokenizer))
    thinking = bool(recipe.thinking) or opens_thinking(tokenizer, recipe.thinking)  # as an evaluation has it
    rewards: Any = Rewards(recipe.format, recipe.max_tokens, thinking, ends, read)
    batch = batching(recipe.prompts_per_step * recipe.generations, recipe.micro_batch)
    args = GRPOConfig(
        **common, **batch,
        num_generations=recipe.generations, beta=recipe.beta, temperature=recipe.temperature,
        max_completion_length=recipe.max_tokens,
        chat_template_kwargs=None if recipe.thinking is None else think(recipe.thinking),
    )  # fmt: skip
    return _quiet(GRPOTrainer(args=_on_one(args), reward_funcs=[rewards], **shared))


def _on_one(args: Any) -> Any:
    """On one GPU, however many this process sees: trl refuses to share a step among several."""
    args._n_gpu = min(args.n_gpu, 1)
    return args


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
        """Reports every tenth of the training, times it, and leaves only the adapter of checkpoints before the last."""

        said = -1
        began = time.monotonic() - seconds_before(last_step(folder / "checkpoints"))

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            state.log_history[-1]["seconds"] = round(time.monotonic() - self.began, 1)
            tenth = 10 * state.global_step // max(1, state.max_steps)
            if logs and tenth > self.said and ("loss" in logs or "reward" in logs):
                self.said = tenth
                shown = ", ".join(f"{k} {float(logs[k]):.3f}" for k in ("loss", "reward", "kl") if k in logs)
                reporter.say(f"{folder.name}: step {state.global_step}/{state.max_steps}, {shown}")

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            prune(folder / "checkpoints", keep_last=True)

    return Progress()


def export(model: Any, tokenizer: Any, folder: Path, base: str) -> None:
    """Write ``adapter/`` and the merged ``model/`` of a peft model; each appears only when it is complete."""
    adapter, merged = folder / ".adapter.tmp", folder / ".model.tmp"
    for path in (adapter, merged):
        shutil.rmtree(path, ignore_errors=True)
    model.save_pretrained(adapter, safe_serialization=True)
    path = adapter / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = base  # as the user named it: a temporary path means nothing elsewhere
    write_text(path, json.dumps(config, indent=1, sort_keys=True) + "\n")
    (adapter / "README.md").unlink(missing_ok=True)
    plain = model.merge_and_unload()
    plain.config.use_cache = True  # as every base has it; a trainer switches it off
    plain.save_pretrained(merged)
    tokenizer.save_pretrained(merged)
    for path, name in ((adapter, "adapter"), (merged, "model")):
        shutil.rmtree(folder / name, ignore_errors=True)
        path.rename(folder / name)


def merge(model: str, training: str | Path, out: str | Path) -> Path:
    """Apply a training's adapter to its base again and write the merged model folder to ``out``.

    ``training`` is a folder that ``composcope intervene`` wrote. Raises ``InputError`` if ``model`` is not the base
    that the adapter was trained on.
    """
    from ...model_loading import load

    source, folder, target = resolve_model(model), Path(training), Path(out)
    manifest = read_manifest(folder)
    check_base(source.location, manifest, str(folder))
    if target.exists():
        raise InputError(f"--out {target}: already exists; give a new folder")
    base, tokenizer = load(source.location, dtype=manifest["identity"].get("dtype"))
    merged = with_adapter(base, folder / "adapter").merge_and_unload()
    merged.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target


def check_base(location: str, manifest: dict[str, Any], where: str) -> None:
    """Raise ``InputError`` unless ``location`` has the weights that an adapter was trained on."""
    wanted, found = manifest["identity"]["base_weights"], base_hash(location)
    if wanted != found:
        raise InputError(
            f"{where}: adapter of other weights ({wanted[:12]}; --model has {found[:12]}); give the base it was "
            f"trained on ({manifest.get('base')})"
        )


def with_adapter(base: Any, adapter: str | Path) -> Any:
    """A base model in memory with an adapter from a folder of safetensors."""
    from peft import PeftModel

    path = Path(adapter)
    if not (path / "adapter_model.safetensors").is_file():
        raise InputError(f"{path}: no adapter_model.safetensors; give the adapter folder of a training")
    return PeftModel.from_pretrained(base, str(path))


def base_hash(location: str) -> str:
    """Hash of a base model's weights: of its files, or of its name for a model on the hub."""
    from ...evaluation.identity import folder_weights

    return folder_weights(location) if Path(location).is_dir() else location


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a training. Raises ``InputError`` for a folder that is not a training."""
    path = Path(folder) / "manifest.json"
    found = read_json(path) if path.is_file() else {}
    if "base_weights" not in found.get("identity", {}):
        raise InputError(f"{folder}: no training here; give a folder that `composcope intervene` wrote")
    return found


WEIGHTS = "adapter_model.safetensors"
_KEPT = (WEIGHTS, "adapter_config.json", "trainer_state.json")


def kept_steps(folder: Path) -> list[tuple[int, Path]]:
    """(step, folder) of the adapters that were kept during a training, in order."""
    found = [(int(p.name.rpartition("-")[2]), p) for p in folder.glob("checkpoint-*") if (p / WEIGHTS).is_file()]
    return sorted(found)


def last_step(folder: Path) -> Path | None:
    """The newest checkpoint that is complete and can be continued: its state is written last."""
    whole = [path for _, path in kept_steps(folder) if _can_continue(path)]
    return whole[-1] if whole else None


def _can_continue(path: Path) -> bool:
    if not all((path / name).is_file() for name in ("optimizer.pt", "scheduler.pt")):
        return False
    try:
        json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # missing, or the process was killed while writing it
        return False
    return True


def seconds_before(checkpoint: Path | None) -> float:
    """Seconds of the training up to a checkpoint, all calls together."""
    state = {} if checkpoint is None else json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    return next((row["seconds"] for row in reversed(state.get("log_history", ())) if "seconds" in row), 0.0)


def prune(folder: Path, keep_last: bool) -> None:
    """Leave only the adapters: optimizer states are large and are needed only for continuing."""
    spared = last_step(folder) if keep_last else None
    for _, path in kept_steps(folder):
        if path != spared:
            for file in path.iterdir():
                if file.name not in _KEPT:
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
    (folder / "README.md").unlink(missing_ok=True)
