"""Trains one adapter on a base model, on one core or on a GPU.

``train`` writes a folder: ``adapter/`` (safetensors), ``model/`` (base and adapter merged, a plain model folder that
every other command takes), ``checkpoints/``, ``training.jsonl``, ``evaluation.jsonl``, ``log.jsonl`` and
``manifest.json``. The same command continues from the last checkpoint. A finished folder is left unchanged.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError, require_extra
from ...evaluation.asks import Ask
from ...evaluation.case import Case, case_to_dict
from ...evaluation.cases import hash_cases
from ...evaluation.engines.base import cut_after_stop, think
from ...evaluation.engines.text import chat_ids
from ...evaluation.prompts import FORMATS
from ...files import file_sha256
from ..console.printing import Reporter
from ..models.resolve import ModelSource, resolve_model
from ..run import check_no_run, locked, provenance, read_json, write_json, write_lines
from .data import TrainingSet, question, target
from .recipes import AdapterRecipe
from .reward import score
from .trainers import (
    WEIGHTS,
    TrainerOptions,
    base_hash,
    build,
    export,
    kept_steps,
    last_step,
    prune,
    row,
    seconds_before,
)  # fmt: skip

LIBRARIES = (*provenance.LIBRARIES, "trl", "peft", "accelerate", "datasets")

EXTRA = ("trl", "peft", "datasets")
"""What the extra ``train`` brings."""


@dataclass(frozen=True)
class Trained:
    """A finished training."""

    folder: Path
    steps: int
    seconds: float
    """Those of earlier calls that it continued from included."""

    @property
    def model(self) -> Path:
        """Base and adapter merged."""
        return self.folder / "model"

    @property
    def adapter(self) -> Path:
        return self.folder / "adapter"


def train(
    recipe: AdapterRecipe, model: str, data: TrainingSet, out: str | Path, how: TrainerOptions | None = None,
    reporter: Reporter | None = None,
) -> Trained:  # fmt: skip
    """Train an adapter on ``model`` and export it; what ``out`` already has is continued or kept.

    Raises ``InputError`` for a missing extra, a folder with another training or a run, and samples of which none is
    right.
    """
    require_extra("intervene", "train", *EXTRA)

    how = how or TrainerOptions()
    source = resolve_model(model)
    with locked(out) as folder:
        reporter = reporter or Reporter(folder / "log.txt", quiet=True)
        identity = _identity(recipe, source.location, data, how)
        before = read_json(folder / "manifest.json") if (folder / "manifest.json").is_file() else {}
        if before and "base_weights" not in before.get("identity", {}):
            check_no_run(folder)
        if before.get("status") == "complete" or kept_steps(folder / "checkpoints"):
            _same_training(folder, before.get("identity"), identity)
        evaluated = _about_cases(data.evaluation)
        if before.get("status") == "complete" and (folder / "model" / "config.json").is_file():
            reporter.say(f"{folder}: trained already, kept")
            if before.get("evaluation") != evaluated:  # changing the evaluation cases does not change the training
                write_lines(folder / "evaluation.jsonl", (case_to_dict(c) for c in data.evaluation))
                write_json(folder / "manifest.json", {**before, "evaluation": evaluated})
            return Trained(folder, before["steps"], before["seconds"])
        write_lines(folder / "training.jsonl", (case_to_dict(c) for c in data.cases))
        write_lines(folder / "evaluation.jsonl", (case_to_dict(c) for c in data.evaluation))
        about = {
            "identity": identity,
            "base": model,
            "recipe": recipe.to_dict(),
            "training": _about_cases(data.cases),
            "evaluation": evaluated,
            "composcope": provenance.code(),
            "versions": provenance.libraries(LIBRARIES),
            "machine": provenance.machine(),
        }
        write_json(folder / "manifest.json", {**about, "status": "running"})
        began = time.monotonic()
        facts = _run(recipe, source, data, folder, how, reporter)
        seconds = round(time.monotonic() - began + facts.pop("seconds_before"), 1)
        write_json(folder / "manifest.json", {**about, **facts, "seconds": seconds, "status": "complete"})
        reporter.say(f"{folder}: {facts['steps']} steps, {seconds:.0f} s")
        return Trained(folder, facts["steps"], seconds)


def _identity(recipe: AdapterRecipe, location: str, data: TrainingSet, how: TrainerOptions) -> dict[str, Any]:
    """What distinguishes this training from others."""
    return {
        "base_weights": base_hash(location),
        "recipe": recipe.to_dict(),
        "data": data.sha256,
        "seed": how.seed,
        "max_steps": how.max_steps,
        "dtype": how.dtype,
    }


def _about_cases(cases: Sequence[Case]) -> dict[str, Any]:
    """The number of cases of each depth, and the hash of the cases."""
    depths = Counter(str(c.depth) for c in cases)
    return {"cases": len(cases), "by_depth": dict(sorted(depths.items())), "sha256": hash_cases(cases)}


def _same_training(folder: Path, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> None:
    differ = [k for k in now if before is not None and before.get(k) != now[k]]
    if differ:
        raise InputError(
            f"--out {folder}: holds another training (other {', '.join(differ)}); use another --out or the same options"
        )


def _run(
    recipe: AdapterRecipe, source: ModelSource, data: TrainingSet, folder: Path, how: TrainerOptions, reporter: Reporter
) -> dict[str, Any]:
    from ...hooks.numerics import numerics as numerics_of
    from ...model_loading import load

    base, tokenizer = load(source.location, dtype=how.dtype, device=how.device)
    numerics = numerics_of(base)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "left"
    chat = bool(getattr(tokenizer, "chat_template", None))
    _check_thinking(recipe, tokenizer, source.name)
    pairs, facts = _solutions(recipe, data, base, tokenizer, how, reporter)
    rows = [row(recipe, case, text, chat) for case, text in pairs]
    trainer = build(recipe, base, tokenizer, rows, folder, how, reporter)
    last = last_step(folder / "checkpoints")
    if last is not None:
        reporter.say(f"{folder}: continues from {last.name}")
    before = seconds_before(last)
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    write_lines(folder / "log.jsonl", trainer.state.log_history)
    trained = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    export(trainer.model, tokenizer, folder, source.name)
    prune(folder / "checkpoints", keep_last=False)
    adapter = {"sha256": file_sha256(folder / "adapter" / WEIGHTS), "parameters": trained}
    done = {"steps": trainer.state.global_step, "seconds_before": before}
    return {**facts, **done, "adapter": adapter, "numerics": numerics}


def _check_thinking(recipe: AdapterRecipe, tokenizer: Any, name: str) -> None:
    """Raise ``InputError`` if thinking cannot be switched as the recipe says."""
    if recipe.thinking is None:
        return
    if not getattr(tokenizer, "chat_template", None):
        raise InputError(f"--{'' if recipe.thinking else 'no-'}thinking: {name} has no chat template; leave it out")
    on, off = (chat_ids(tokenizer, ["?"], name, **think(told)) for told in (True, False))
    if recipe.thinking and on == off:
        raise InputError(f"--thinking: the chat template of {name} has no thinking mode; leave it out")


def _solutions(
    recipe: AdapterRecipe, data: TrainingSet, model: Any, tokenizer: Any, how: TrainerOptions, reporter: Reporter
) -> tuple[list[tuple[Any, str]], dict[str, Any]]:
    """Training cases with the answer that SFT imitates, and the manifest's entry about them."""
    if recipe.solutions != "self":
        return [(c, target(c, recipe)) for c in data.cases], {}

    kept = sample_right(recipe, data.cases, model, tokenizer, how.seed)
    if not kept:
        raise InputError(
            "--solutions self: no sampled answer of the base model is right; use --solutions written or easier cases"
        )
    reporter.say(f"self-generated solutions: {len(kept)} of {len(data.cases)} training questions have a right one")
    return kept, {"solutions": {"questions": len(data.cases), "kept": len(kept)}}


SAMPLES = 8
"""Number of answers that the base model samples for each training question with ``--solutions self``. Compositional GSM
(figure 7, appendix C) trains on human-written solutions and on those that the model under study wrote itself."""


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
            repeat=k, thinking=recipe.thinking, options=case.options,
        )
        for case in cases
        for k in range(samples)
    }  # fmt: skip
    # An answer that was cut off is never used for training, even if it is right; nor is what follows an answer.
    stops = FORMATS[recipe.format].stop
    texts = {
        (ask.case, ask.repeat): cut_after_stop(response.text, stops)[0].strip()
        for ask, response in engine.answer(list(asks.values()))
        if response.finish_reason == "stop"
    }
    kept = []
    for case in cases:
        drawn = (texts[case.id, k] for k in range(samples) if (case.id, k) in texts)
        for text in drawn:
            graded = score(
                text, case.answer, case.answer_type, case.aliases, recipe.format, options=case.options,
                question=case.question,
            )  # fmt: skip
            if graded.correct:
                kept.append((case, text))
                break
    return kept
