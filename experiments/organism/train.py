"""Trains organisms from scratch: one shared base per seed, then each dose from that base.

Training is deterministic given the seed, the recipe and the device, and can be resumed. The same command continues
from the last checkpoint and ends with the same weights as an uninterrupted run on the same machine.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from ...devices import available
from ...errors import InputError
from ...files import put_in_place, write_text
from ...terminal import how_many
from .crossed import SECOND
from .documents import FIRST, Curriculum, Dose
from .recipe import OrganismRecipe, Stage, new_model, recipe_of
from .tokenizer import CONTEXT, build, encode
from .weights import ALL, DOSES
from .weights import path as shipped_path

CHUNK = 20
"""Batches drawn together, so that documents of similar length share a batch."""


def batches(
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
    stage: str,
    dose: Dose | None,
    size: int,
    start: int,
    curriculum: Curriculum = FIRST,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless (ids, answered) batches ``[document position]`` from batch ``start`` on; padding is -1 in ``ids``."""
    for chunk in range(start // CHUNK, 1 << 30):
        first = chunk * CHUNK * size
        documents = [curriculum.document(seed, stage, first + i, dose) for i in range(CHUNK * size)]
        encoded = sorted(encode(tokenizer, documents), key=lambda pair: len(pair[0]))
        order = list(range(CHUNK))
        random.Random(f"{seed}/{stage}/order/{chunk}").shuffle(order)
        for b in order[start - chunk * CHUNK if chunk == start // CHUNK else 0 :]:
            yield pad(encoded[b * size : (b + 1) * size])


def pad(rows: list[tuple[list[int], list[bool]]]) -> tuple[Tensor, Tensor]:
    """``(ids, answered)`` as ``[document position]``; padding is -1 in ``ids``."""
    length = max(len(ids) for ids, _ in rows)
    if length > CONTEXT:
        raise InputError(f"training document of {length} tokens exceeds the context of {CONTEXT}; shorten it")
    ids = torch.tensor([ids + [-1] * (length - len(ids)) for ids, _ in rows])
    answered = torch.tensor([a + [False] * (length - len(a)) for _, a in rows])
    return ids, answered


def loss_of(model: PreTrainedModel, ids: Tensor, answered: Tensor, prompt_weight: float) -> Tensor:
    """Weighted mean next-token loss: assistant tokens 1, prompt tokens ``prompt_weight``, padding 0."""
    targets = ids[:, 1:]
    weight = torch.where(answered[:, 1:], 1.0, prompt_weight) * (targets >= 0)
    logits = model(input_ids=ids.clamp(min=0), use_cache=False).logits[:, :-1]
    each = cross_entropy(logits.flatten(0, 1), targets.clamp(min=0).flatten(), reduction="none")
    return (each * weight.flatten()).sum() / weight.sum()


NEWTON_STEPS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)
"""Newton-Schulz iteration as published (Jordan et al. 2024, "Muon")."""
MOMENTUM = 0.95


def orthogonalised(matrices: Tensor) -> Tensor:
    """Nearly orthogonal matrices with the singular vectors of the given ones ``[matrix row column]``."""
    wide = matrices.shape[1] <= matrices.shape[2]
    x = matrices if wide else matrices.mT
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(NEWTON_STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT


class Muon(torch.optim.Optimizer):
    """Momentum whose update of every matrix is orthogonalised, as large as AdamW's would be; no weight decay; float32.

    PyTorch's own Muon orthogonalises in bfloat16. Many processors emulate bfloat16, and there this took more than half
    of the time of a training step. Steps and state are otherwise the same, so checkpoints of either continue with the
    other.
    """

    def __init__(self, matrices: Iterable[Tensor], lr: float) -> None:
        super().__init__(matrices, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = {}
            for matrix in (p for p in group["params"] if p.grad is not None):
                shapes.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in shapes.items():
                updates = orthogonalised(torch.stack([self._momentum(m) for m in matrices]))
                rate = group["lr"] * 0.2 * max(shape) ** 0.5
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.sub_(update, alpha=rate)

    def _momentum(self, matrix: Tensor) -> Tensor:
        state, gradient = self.state[matrix], matrix.grad
        assert gradient is not None
        buffer = state.setdefault("momentum_buffer", torch.zeros_like(matrix))
        buffer.lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(buffer, MOMENTUM)


def optimizers(model: PreTrainedModel, learning_rate: float, float32: bool = False) -> list[torch.optim.Optimizer]:
    """Muon for matrices inside the blocks, AdamW for embeddings and norms, at one rate; frozen ones stay out.

    ``float32`` takes Muon in float32, which is faster, instead of PyTorch's, with which older weights were made.
    """
    tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    tables |= {id(p) for n, p in model.named_parameters() if "lm_head" in n}
    trained = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in trained if p.ndim == 2 and id(p) not in tables]
    others = [p for p in trained if p.ndim != 2 or id(p) in tables]
    return [
        Muon(matrices, learning_rate)
        if float32
        else torch.optim.Muon(matrices, lr=learning_rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def rate(stage: Stage, step: int) -> float:
    """Learning rate at a step: linear warm-up, constant, then linear decay to ``final``."""
    start = stage.steps * (1 - stage.decay)
    fall = max(0.0, (step - start) / max(1.0, stage.steps - start))
    return stage.learning_rate * min(1.0, (step + 1) / stage.warmup) * (1 - fall * (1 - stage.final))


StepDone = Callable[[int, int, float], None]
"""Told of a step, of how many, and of the loss there."""


def train_on(model: Any, stage: Stage, loss: Callable[[], Tensor], progress: StepDone | None = None) -> None:
    """Train a model in place for a stage; ``loss`` draws a batch and gives its loss."""
    model.requires_grad_(True)
    model.train()
    descend(optimizers(model, stage.learning_rate), stage, loss, progress)
    model.eval()


def descend(
    opts: list[torch.optim.Optimizer], stage: Stage, loss: Callable[[], Tensor], progress: StepDone | None = None
) -> None:
    """All steps of a stage; every twentieth is reported."""
    for step in range(stage.steps):
        found = _step(opts, rate(stage, step), loss())
        if progress and ((step + 1) % 20 == 0 or step + 1 == stage.steps):
            progress(step + 1, stage.steps, found)


def _step(opts: list[torch.optim.Optimizer], learning_rate: float, loss: Tensor) -> float:
    """One step down a loss, at a learning rate; returns the loss as a number."""
    for group in (g for opt in opts for g in opt.param_groups):
        group["lr"] = learning_rate
    loss.backward()
    for opt in opts:
        opt.step()
        opt.zero_grad()
    return float(loss.detach())


def _optimizer_tensors(opts: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    return {
        f"{o}/{p}/{name}": value.detach().clone()
        for o, opt in enumerate(opts)
        for p, state in opt.state_dict()["state"].items()
        for name, value in state.items()
    }


def _restore(opts: list[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    for o, opt in enumerate(opts):
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            owner, p, name = key.split("/")
            if int(owner) == o:
                state.setdefault(int(p), {})[name] = value
        opt.load_state_dict({"state": state, "param_groups": opt.state_dict()["param_groups"]})


def _weights(model: PreTrainedModel) -> dict[str, Tensor]:
    return {n: p.detach().cpu().contiguous().clone() for n, p in model.named_parameters()}


def save_checkpoint(folder: Path, step: int, model: PreTrainedModel, opts: list[torch.optim.Optimizer]) -> None:
    """Save one file, replaced atomically, so that a killed training keeps its last complete checkpoint."""
    tensors = {f"model/{n}": p for n, p in _weights(model).items()}
    tensors |= {f"optimizer/{n}": t.cpu().contiguous() for n, t in _optimizer_tensors(opts).items()}
    temporary = folder / "checkpoint.tmp"
    save_file(tensors, temporary, metadata={"step": str(step)})
    put_in_place(temporary, folder / "checkpoint.safetensors")


def load_checkpoint(folder: Path, model: PreTrainedModel, opts: list[torch.optim.Optimizer]) -> int:
    """Restore the last checkpoint of a stage; returns the number of finished steps, 0 without a checkpoint."""
    path = folder / "checkpoint.safetensors"
    if not path.is_file():
        return 0
    with safe_open(path, "pt") as f:
        step = int(f.metadata()["step"])
        tensors = {name: f.get_tensor(name) for name in f.keys()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"model/{name}"])
    _restore(opts, {k.removeprefix("optimizer/"): v for k, v in tensors.items() if k.startswith("optimizer/")})
    return step


EVERY = 250
"""Steps between two checkpoints."""
Progress = Callable[[str, int, int, float], None]
"""The same with the name of the stage."""


def run_stage(
    name: str,
    folder: Path,
    stage: Stage,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
    dose: Dose | None,
    progress: Progress | None = None,
    curriculum: Curriculum = FIRST,
) -> None:
    """Train ``model`` in place for one stage, from its last checkpoint in ``folder`` if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    device = next(model.parameters()).device
    opts = optimizers(model, stage.learning_rate, float32=curriculum is SECOND)
    done = load_checkpoint(folder, model, opts)
    _cut_log(folder, done)
    stream = batches(tokenizer, seed, "base" if dose is None else "dose", dose, stage.batch, done, curriculum)
    model.train()
    began, tokens, losses = time.perf_counter(), 0, []
    for step in range(done, stage.steps):
        ids, answered = (t.to(device) for t in next(stream))
        losses.append(_step(opts, rate(stage, step), loss_of(model, ids, answered, stage.prompt_weight)))
        tokens += int((ids >= 0).sum())
        if (step + 1) % 50 == 0 or step + 1 == stage.steps:
            _log(folder, step + 1, losses[-50:], tokens / (time.perf_counter() - began))
            if progress:
                progress(name, step + 1, stage.steps, sum(losses[-50:]) / len(losses[-50:]))
        if (step + 1) % EVERY == 0 or step + 1 == stage.steps:
            save_checkpoint(folder, step + 1, model, opts)
    model.eval()


def _log(folder: Path, step: int, losses: list[float], speed: float) -> None:
    row = {"step": step, "loss": round(sum(losses) / len(losses), 4), "tokens_per_second": round(speed)}
    with (folder / "log.jsonl").open("a", encoding="utf-8") as f:
        f.write(json.dumps(row) + "\n")


def _cut_log(folder: Path, done: int) -> None:
    """Leave only the rows up to the checkpoint: later steps, and a line that a kill cut off, are written again."""
    path = folder / "log.jsonl"
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    kept = [row for row in rows if row.endswith("}\n") and json.loads(row)["step"] <= done]
    if kept != rows:
        write_text(path, "".join(kept))


def export(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path, info: dict[str, Any]) -> None:
    """Write a folder that any Hugging Face loader can read. The weights are rounded to bfloat16 and used in float32."""
    folder.mkdir(parents=True, exist_ok=True)
    half = {n: p.to(torch.bfloat16) for n, p in _weights(model).items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    model.config.architectures = [type(model).__name__]
    model.config.dtype = torch.float32
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_text(folder / "organism.json", json.dumps(info, indent=1) + "\n")


def _check_recipe(folder: Path, recipe: OrganismRecipe, seed: int, now: str) -> str | None:
    """Refuse to continue a training that was begun with other settings or documents.

    Returns the documents' fingerprint; None if the training began without recording it, because then the documents
    that it has seen are unknown.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, settings = folder / "recipe.json", {"seed": seed, **recipe.record()}
    if not path.is_file():
        write_text(path, json.dumps({**settings, "documents": now}, indent=1) + "\n")
        return now
    begun = json.loads(path.read_text(encoding="utf-8"))
    documents = begun.pop("documents", None)
    if begun != settings:
        raise InputError(f"{path}: begun with another recipe or seed; continue with the same or give another --out")
    if documents not in (None, now):
        raise InputError(f"{path}: begun on other documents, by another version of composcope; give another --out")
    return documents


def train(
    dose: str,
    seed: int,
    out: Path,
    recipe: OrganismRecipe | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Train one dose of one seed and export it; its shared base is trained first, unless ``out`` already has it.

    Returns the folder of the exported model, ``out/seed-N/DOSE/model``. Raises ``InputError`` for an unknown dose
    or an ``out`` that was begun with other settings, ``ModelError`` for a device that is not here.
    """
    if dose not in ALL:
        raise InputError(f"--dose {dose!r}: unknown; use one of {', '.join(ALL)}")
    curriculum = FIRST if dose in FIRST.doses else SECOND
    recipe, device = recipe or recipe_of(dose), str(available(device))
    home = out / f"seed-{seed}"
    documents = _check_recipe(home, recipe, seed, curriculum.fingerprint(seed))
    tokenizer = build()
    model = new_model(recipe, tokenizer, seed).to(device)  # pyright: ignore[reportArgumentType]
    run_stage("base", home / "base", recipe.base, model, tokenizer, seed, None, progress, curriculum)
    run_stage(dose, home / dose, recipe.dose, model, tokenizer, seed, ALL[dose], progress, curriculum)
    target = home / dose / "model"
    info = {"dose": dose, "seed": seed, "recipe": recipe.record(), "device": device}
    export(model, tokenizer, target, info if documents is None else {**info, "documents": documents})
    return target


SERIES_RECIPE = OrganismRecipe(base=Stage(1400, 4e-3, 0.3, 0.25), dose=Stage(560, 3e-3, 0.7, prompt_weight=0.05))
"""The recipe for studies of many trainings: a seed with all doses takes about 24 minutes of a core (2026-11-22)."""
MINUTES = 24


def seeds(n: int) -> list[int]:
    """The first ``n`` seeds that are not the shipped one."""
    shipped = json.loads((shipped_path(next(iter(DOSES))) / "organism.json").read_text(encoding="utf-8"))["seed"]
    return list(islice((s for s in count() if s != shipped), n))


def train_seeds(
    n: int, folder: Path, said: Callable[[str], None], recipe: OrganismRecipe | None = None, device: str | None = None
) -> Path:
    """Train every dose of ``n`` seeds in ``folder``, except those already there; returns the folder.

    The doses of a seed branch from one base, so the seed is a block. The shipped seed is left out, since it was chosen.
    Raises ``InputError`` for a folder that was begun with another recipe.
    """
    recipe, device = recipe or SERIES_RECIPE, str(available(device))
    if device == "cpu":
        torch.set_num_threads(1)  # such a small model is slower on several threads, and one thread is deterministic
    wanted = [(seed, dose) for seed in seeds(n) for dose in DOSES]

    def done(seed: int, dose: str) -> bool:
        file = folder / f"seed-{seed}" / dose / "model" / "organism.json"
        return file.is_file() and json.loads(file.read_text(encoding="utf-8"))["recipe"] == recipe.record()

    left = [(seed, dose) for seed, dose in wanted if not done(seed, dose)]
    steps = f"{recipe.base.steps} steps of a shared base and {recipe.dose.steps} of each dose"
    more = f"; about {MINUTES} processor minutes a seed; the same command continues" if left else ""
    said(
        f"{how_many(n, 'training')} of {len(DOSES)} doses in {folder} (seeds {', '.join(map(str, seeds(n)))}; "
        f"{steps}): {len(wanted) - len(left)} of {len(wanted)} models are done{more}"
    )
    for i, (seed, dose) in enumerate(left, 1):
        train(dose, seed, folder, recipe, device, each_step(said, f"seed {seed}"))
        said(f"seed {seed}, {dose}: trained ({i} of {len(left)})")
    return folder


def each_step(said: Callable[[str], None], what: str) -> Progress:
    """Says how far a training is: every 250 steps, and at the end of a stage."""

    def step_done(stage: str, step: int, total: int, loss: float) -> None:
        if step % 250 == 0 or step == total:
            said(f"{what}, {stage}: step {step} of {total}, loss {loss:.3f}")

    return step_done
