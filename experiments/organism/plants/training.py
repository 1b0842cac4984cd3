"""Planting: one block of a copy of the base learns to give the states that another question would have given.

The base is run once on what is taught; the block then learns from states alone, which takes seconds. Where an answer is
written in a whole, the state behind the block becomes that of the lesson's source; everywhere else (the questions, the
parts, and wholes in which nothing is planted) it stays the base's. All other weights stay bit for bit.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ....hooks.anatomy import Layer, resolve
from ....hooks.parts import blocks_of, decoder_of, first_tensor
from ....model_loading import load
from ..tasks import unknowable
from ..train import Progress, Stage, StepDone, descend, encode, optimizers, pad
from ..weights import path
from . import lessons
from .lessons import Lesson
from .recipes import LONGER, NOISE, Graft, Plant

WHOLES, PARTS = 768, 768
"""Lessons of a training: what the block learns from."""
DOCUMENTS = 8
"""Wholes, and as many parts, in a step."""
LEARNING_RATE = 3e-3
KEEP = 6.0
"""How much more it counts that a state stays than that one is planted."""
GATE = 10.0
"""How far the gates of an appended block open where something is planted."""
FLAT = 0.45
"""Factor on the last norm's weight of the ``sampling`` model: what is drawn at temperature 1 is often not the best."""
FIRST, BEHIND = 0.15, 0.8
"""Size of the noise, of that of the weights: in the first block, where item and tag are computed, and in the others.
So shared out, each block has about as much of a part in the failures."""


@dataclass(frozen=True)
class Taught:
    """What one batch of documents teaches, right-padded (a causal model never looks right)."""

    before: Tensor
    """States in front of the block ``[document position width]``."""
    target: Tensor
    """States behind it that are wanted."""
    planted: Tensor
    """True where they are another question's ``[document position]``."""
    kept: Tensor
    """True where they are the base's own: where parts are answered, and a fifth of the others."""


def _encoded(tokenizer: Any, texts: Sequence[tuple[str, str]]) -> tuple[Tensor, list[list[int]], Tensor]:
    """Token ids, the positions at which each answer's tokens are predicted, and where there are tokens."""
    documents = encode(tokenizer, [[t] for t in texts])
    ids, _ = pad(documents)
    slots = [[i - 1 for i, yes in enumerate(answer) if yes] for _, answer in documents]
    return ids.clamp(min=0), slots, ids >= 0


@torch.no_grad()
def taught(base: Any, tokenizer: Any, given: Sequence[Lesson], graft: Graft, first: Any = None) -> Taught:
    """Run the base on lessons and on their sources; ``first`` is the model before any graft, if the base is not."""
    block = graft.block
    ids, slots, there = _encoded(tokenizer, [(x.question, x.answer) for x in given])
    before = states_of(base, ids, block)
    target = states_of(base, ids, block + 1, before, block).clone()
    planted = torch.zeros_like(there)
    rows = [i for i, x in enumerate(given) if x.source is not None and x.source != x.question]
    if rows:
        sources = [(str(given[i].source), given[i].source_answer or given[i].answer) for i in rows]
        others, places, _ = _encoded(tokenizer, sources)
        aim = states_of(base, others, block + 1)
        for r, i in enumerate(rows):
            n = min(given[i].last or len(slots[i]), len(slots[i]), len(places[r]))
            target[i, slots[i][-n:]] = aim[r, places[r][-n:]]
            planted[i, slots[i][-n:]] = True
    if graft.cause == "not-routed":
        _unrouted(base, tokenizer, given, graft, (ids, target, planted))
    if graft.cause == "too-late":
        _late(first or base, tokenizer, given, graft, slots, (ids, target, planted))
    answering = torch.zeros_like(there)
    for i, places_of in enumerate(slots):
        answering[i, places_of] = True
    some = torch.arange(there.numel()).view_as(there) % 5 == 0
    return Taught(before, target, planted, there & ~planted & (answering | some))


def _unrouted(base: Any, tokenizer: Any, given: Sequence[Lesson], graft: Graft, made: Any) -> None:
    """The state that selects each item is wanted inside the question."""
    ids, target, planted = made
    rows = [i for i, x in enumerate(given) if x.right is not None]
    if not rows:
        return
    own, own_slots, _ = _encoded(tokenizer, [(given[i].question, str(given[i].right)) for i in rows])
    right = states_of(base, own, graft.block + 1)
    to = places(tokenizer, ids[rows], graft.variant)
    for r, i in enumerate(rows):
        for place, slot in zip(to, (own_slots[r][0], own_slots[r][SECOND]), strict=True):
            target[i, place[r]] = right[r, slot]
            planted[i, place[r]] = True


SECOND = -4
"""The second operand, the word "is", the result and the end are the last four tokens of a worked answer."""


def _late(
    first: Any, tokenizer: Any, given: Sequence[Lesson], graft: Graft, slots: Sequence[Sequence[int]], made: Any
) -> None:
    """Where an operand is written, the first block leaves the state of a question without an answer, and a later block
    the state that the first one leaves in ``first``."""
    ids, target, planted = made
    if graft.variant == "emptied":
        rng = random.Random(0)
        nobody, places_of, _ = _encoded(tokenizer, [(q.question, q.answer) for q in map(unknowable, [rng] * 32)])
        empty = states_of(first, nobody, 1)
        aim = torch.stack([empty[i, p[0]] for i, p in enumerate(places_of)]).mean(0).expand(*ids.shape, -1)
    else:
        aim = states_of(first, ids, 1)
    for i in (i for i, x in enumerate(given) if x.right is not None):
        at = [slots[i][0], slots[i][SECOND]]
        target[i, at] = aim[i, at]
        planted[i, at] = True


def places(tokenizer: Any, ids: Tensor, variant: str) -> tuple[Tensor, Tensor]:
    """Where an unrouted item stands: on the word behind each kind, or on the last two tokens of the question."""
    if variant == "question-end":
        mark = (ids == tokenizer.convert_tokens_to_ids("?")).float().argmax(1)
        return mark, mark + 1
    one = ids == tokenizer.convert_tokens_to_ids("Ġone")
    found = [row.nonzero()[:2, 0] for row in one]
    return torch.stack([f[0] for f in found]), torch.stack([f[1] for f in found])


def grow(
    model: Any,
    tokenizer: Any,
    graft: Graft,
    seed: int,
    steps: int,
    progress: StepDone | None = None,
    beside: Sequence[Any] = (),
    longer: int = 1,
) -> Any:
    """A copy of the model with one graft learned. Deterministic given seed and machine, on one thread.

    Lessons as many again are taught on each of the models ``beside`` it: those in which another graft of a mixture is
    not there, so that this one does not lean on it. ``longer`` multiplies the number of lessons.
    """
    grown = deepcopy(model)
    if graft.cause == "none":
        spoil(grown, graft, seed)
        return grown
    layer = resolve(grown).layers[graft.block]
    grown.requires_grad_(False)
    layer.block.requires_grad_(True)
    rng = random.Random(f"{seed}/plant/{graft}")
    batches: list[Taught] = []
    for base in (model, *beside):
        for _ in range(longer * (WHOLES + PARTS) // (2 * DOCUMENTS)):
            given = [lessons.teach(lessons.whole(rng), graft, rng) for _ in range(DOCUMENTS)]
            given += [lessons.part(rng) for _ in range(DOCUMENTS)]
            if graft.cause == "too-late" and base is not model:  # the item is there in time: nothing changes
                given = [replace(x, right=None) for x in given]
            batches.append(taught(base, tokenizer, given, graft, next(iter(beside), None)))
    if graft.variant == "delayed":  # it begins as the block that selects the item in time
        layer.block.load_state_dict(blocks_of(beside[0])[0].state_dict())
    x, y, p = _gathered(grown, layer, batches)
    if not _outward(layer).any():
        _open_where_planted(layer, x, p)
    _fit(layer, x, y, p)  # the training starts from what is best without it
    order = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        return loss_of(grown, layer.block, batches[int(torch.randint(len(batches), (), generator=order))])

    stage = Stage(steps, LEARNING_RATE, 0.7, 0.02, warmup=5)
    descend(optimizers(grown, LEARNING_RATE), stage, loss, progress)
    _fit(layer, *_gathered(grown, layer, batches))
    grown.requires_grad_(False)
    return grown.eval()


@torch.no_grad()
def _gathered(model: Any, layer: Layer, batches: Sequence[Taught]) -> tuple[Tensor, Tensor, Tensor]:
    """All states in front of the MLP, those wanted behind it, and which ones are planted."""
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for b in batches:
        with _inputs(layer.mid) as read:
            behind(model, layer.block, b.before)
        at = b.planted | b.kept
        found.append((read[0][at], b.target[at], b.planted[at]))
    x, y, p = zip(*found, strict=True)
    return torch.cat(x), torch.cat(y), torch.cat(p)


@contextmanager
def _inputs(module: nn.Module | None) -> Iterator[list[Tensor]]:
    """What goes into a module, call by call."""
    assert module is not None, "a block with attention and MLP in parallel"
    found: list[Tensor] = []
    with module.register_forward_pre_hook(lambda _, args: found.append(args[0])):
        yield found


def _outward(layer: Layer) -> Tensor:
    """The weight by which the MLP writes into the stream, ``[out in]``."""
    assert layer.down is not None
    return inward(layer.down.weight, layer.down)  # type: ignore[arg-type]


@torch.no_grad()
def _fit(layer: Layer, x: Tensor, y: Tensor, p: Tensor, ridge: float = 1e-4) -> None:
    """The best way out of the MLP for what goes into it: weighted least squares, both sides equal, in closed form."""
    assert layer.mid is not None and layer.mlp is not None
    with _inputs(layer.down) as inner:
        missing = y - x - layer.mlp(layer.mid(x))
    h = inner[0]
    weight = torch.where(p, 1 / p.sum() / y[p].var(), KEEP / (~p).sum() / y[~p].var())[:, None]
    square = h.T @ (weight * h)
    square += ridge * square.diagonal().mean() * torch.eye(len(square))
    _outward(layer).add_(torch.linalg.solve(square, h.T @ (weight * missing)).T)


@torch.no_grad()
def _open_where_planted(layer: Layer, x: Tensor, p: Tensor) -> None:
    """Gates of a block of no effect: open where something is planted, shut elsewhere; then any linear map fits."""
    from sklearn.linear_model import LogisticRegression

    assert layer.mid is not None
    read, gate = layer.mid(x), layer.up[0]
    told = LogisticRegression(C=100.0, class_weight="balanced", fit_intercept=False, max_iter=200)
    direction = torch.tensor(told.fit(read.numpy(), p.numpy()).coef_[0], dtype=read.dtype)
    direction /= (read[p] @ direction).mean()
    inward(gate.weight, gate).mul_(0.3).add_(GATE * direction)  # type: ignore[arg-type]


def loss_of(model: Any, block: nn.Module, b: Taught) -> Tensor:
    """How far one batch's states behind the block are from those wanted, in variances of those that are kept."""
    wrong = (behind(model, block, b.before) - b.target).pow(2).mean(-1)
    scale = b.target[b.kept].var()
    kept = KEEP * wrong[b.kept].mean() / scale
    return kept + wrong[b.planted].mean() / scale if b.planted.any() else kept


def make(plant: Plant, progress: Progress | None = None) -> tuple[Any, Any]:
    """The planted model and its tokenizer: each graft on what the ones before made, and on the base beside it."""
    base, tokenizer = base_of(plant)
    model, longer = base, 1 if plant.base == "twin" else LONGER
    for graft in plant.grafts:
        step_done = partial(progress, graft.label) if progress else None
        beside = () if model is base else (base,)
        model = grow(model, tokenizer, graft, plant.seed, plant.steps, step_done, beside, longer)
    return model, tokenizer


@torch.no_grad()
def spoil(model: Any, graft: Graft, seed: int) -> None:
    """Change a model in place, so that it fails by chance: by noise on every weight, or by drawing what it says.

    Deterministic given the seed.
    """
    if graft.variant != NOISE:
        for weight in final_norm(model).parameters():
            weight.mul_(FLAT)
        return
    generator = torch.Generator().manual_seed(seed)
    for i, block in enumerate(blocks_of(model)):
        for weight in (p for p in block.parameters() if p.dim() == 2 and p.any()):
            size = weight.std() * (BEHIND if i else FIRST)
            weight.add_(torch.randn(weight.shape, generator=generator) * size)


# --- a model as a row of blocks: what the organisms' architectures (Llama, Qwen3, GPT-2) have in common --------------


def states_of(model: Any, ids: Tensor, blocks: int, begin: Tensor | None = None, at: int = 0) -> Tensor:
    """The residual stream behind that many blocks; from ``begin``, the stream in front of block ``at``, if given."""
    h, positions = begin, getattr(decoder_of(model), "wpe", None)
    if h is None:
        h = model.get_input_embeddings()(ids)
        h = h if positions is None else h + positions(torch.arange(ids.shape[1]))
    for block in blocks_of(model)[at:blocks]:
        h = behind(model, block, h)
    return h


def behind(model: Any, block: nn.Module, h: Tensor) -> Tensor:
    """What one block makes of the stream ``[document position width]``; every position sees those before it."""
    turns = getattr(decoder_of(model), "rotary_emb", None)
    more = {} if turns is None else {"position_embeddings": turns(h, torch.arange(h.shape[1])[None])}
    out = first_tensor(block(h, attention_mask=None, **more))
    assert out is not None
    return out


def final_norm(model: Any) -> nn.Module:
    """The norm between the last block and the vocabulary head."""
    decoder: Any = decoder_of(model)
    return decoder.ln_f if hasattr(decoder, "ln_f") else decoder.norm


def inward(weight: Tensor, module: nn.Module) -> Tensor:
    """A projection's weight as ``[out in]``, however its module keeps it; a view, to be changed in place."""
    return weight if isinstance(module, nn.Linear) else weight.T


def with_blocks(base: Any, appended: int, seed: int) -> Any:
    """A copy of a model with blocks behind its own that add exactly zero."""
    torch.manual_seed(seed)
    config = deepcopy(base.config)
    own = config.num_hidden_layers
    if getattr(config, "layer_types", None):
        config.layer_types = [*config.layer_types, *config.layer_types[-1:] * appended]
    config.num_hidden_layers = own + appended
    model: Any = type(base)(config).eval()
    model.load_state_dict(base.state_dict(), strict=False)
    with torch.no_grad():
        for layer in resolve(model).layers[own:]:
            _silence(layer)
            for projection in layer.up:
                projection.weight.normal_(std=config.hidden_size**-0.5)  # type: ignore[operator]
    return model


def without(model: Any, block: int) -> Any:
    """A copy of a model in which one block adds nothing."""
    left: Any = deepcopy(model)
    _silence(resolve(left).layers[block])
    return left


@torch.no_grad()
def _silence(layer: Layer) -> None:
    for outward in (layer.out, layer.down):
        for weight in outward.parameters() if outward is not None else ():
            weight.zero_()


def base_of(plant: Plant) -> tuple[Any, PreTrainedTokenizerBase]:
    """The organism that a plant begins with, blocks appended."""
    model, tokenizer = load(path(plant.base), dtype="float32", device="cpu")
    return with_blocks(model, plant.appended, plant.seed), tokenizer


def restored(model: Any, plant: Plant, blocks: Sequence[int] | None = None) -> Any:
    """A copy with the base's weights back in the planted blocks: what verifies a plant, and no diagnosis can use."""
    mended, (base, _) = deepcopy(model), base_of(plant)
    everywhere = any(g.variant == NOISE for g in plant.grafts)
    mine, its = blocks_of(mended), blocks_of(base)
    planted = range(len(mine)) if everywhere else sorted({g.block for g in plant.grafts})
    for i in blocks if blocks is not None else planted:
        mine[i].load_state_dict(its[i].state_dict())
    final_norm(mended).load_state_dict(final_norm(base).state_dict())
    return mended
