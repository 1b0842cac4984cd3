"""What may be held where in one text, and three readers of it: the logit lens, a ridge regression, a patchscope.

reading = Reading(ids, {"prompt-end": [17]}, "bridge", right="France", absent=("Spain", "Japan"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from einops import einsum, reduce
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from ...errors import InputError, NoCasesError
from ...hooks.edits import Patch, residual
from ...hooks.interchange import forced, states
from ...hooks.model import Model

What = Literal["bridge", "operand", "answer"]
Foils = Literal["absent", "in-prompt"]
FOILS: tuple[Foils, ...] = ("absent", "in-prompt")


@dataclass(frozen=True)
class Reading:
    """One thing that may be held in the states of one text."""

    ids: Sequence[int]
    places: Mapping[str, Sequence[int]]
    """Positions by name; if a name has several, the best one counts."""
    what: What
    right: str
    absent: Sequence[str] = ()
    """Foils: similar ones that the prompt does not name."""
    in_prompt: Sequence[str] = ()
    """Foils that the prompt names."""
    case: str = ""

    def foils(self, kind: Foils) -> Sequence[str]:
        return self.absent if kind == "absent" else self.in_prompt


@dataclass(frozen=True)
class Scores:
    """How strongly each candidate is held in one text; more is more."""

    names: tuple[str, ...]
    values: Float[Tensor, "layer place name"]

    def above(self, right: str, foils: Sequence[str]) -> Float[Tensor, "layer place"]:
        """The share of foils that the right one is above (ties count half); NaN without foils. Chance is 0.5."""
        if not foils:
            return torch.full(self.values.shape[:2], torch.nan, dtype=torch.float32)
        at = {name: i for i, name in enumerate(self.names)}
        mine, others = self.values[..., at[right], None], self.values[..., [at[f] for f in foils]]
        return ((mine > others).float() + (mine == others).float() / 2).mean(-1)


def name_tokens(tokenizer: Any, name: str) -> tuple[int, ...]:
    """Ids of the tokens that begin a name: within a sentence, and at the start of a line."""
    found = dict[int, None]()
    for text in (" " + name, name):
        ids = tokenizer(text, add_special_tokens=False).input_ids
        first = next((i for i in ids if tokenizer.decode([i]).strip()), None)
        if first is not None:
            found[int(first)] = None
    if not found:
        raise InputError(f"{name!r} tokenizes to nothing")
    return tuple(found)


def place_names(readings: Sequence[Reading]) -> tuple[str, ...]:
    """The places, which all readings must have."""
    names = tuple(readings[0].places) if readings else ()
    for r in readings:
        if tuple(r.places) != names:
            raise InputError(f"case {r.case!r}: places {list(r.places)}, others have {list(names)}; give the same ones")
    return names


def states_at(
    lm: Model, texts: Sequence[tuple[Sequence[int], Mapping[str, Sequence[int]]]], layers: Sequence[int] | None = None
) -> list[dict[str, Float[Tensor, "layer _ d_model"]]]:
    """States of each text at its places, float32: by name ``layer pos d_model``. Equal texts run once."""
    wanted: dict[tuple[int, ...], set[int]] = {}
    for ids, places in texts:
        wanted.setdefault(tuple(ids), set()).update(p for some in places.values() for p in some)
    where = [sorted(w) for w in wanted.values()]
    found = dict(zip(wanted, zip(where, states(lm, list(wanted), where, layers), strict=True), strict=True))
    out = []
    for ids, places in texts:
        positions, x = found[tuple(ids)]
        out.append({name: x[:, [positions.index(p) for p in some]].float() for name, some in places.items()})
    return out


PLACEHOLDER = "x"


def _repeated(shown: Sequence[str]) -> str:
    return "".join(f"{name}: {name}\n" for name in shown) + PLACEHOLDER


def repeating_prompt(tokenizer: Any, shown: Sequence[str]) -> tuple[list[int], int]:
    """Ids of a prompt that repeats names, and the position of its placeholder."""
    text = _repeated(shown)
    ids, through = (list(tokenizer(t).input_ids) for t in (text, text + ":"))
    if through[: len(ids)] != ids:
        raise InputError(
            "the tokenizer joins the placeholder with the colon after it; the patchscope needs two separate tokens"
        )
    return through, len(ids) - 1


def _said(tokenizer: Any, shown: Sequence[str], name: str) -> list[int]:
    """Ids of a name after the prompt that repeats others: alone, some tokenizers put a further blank before it."""
    before, through = (list(tokenizer(_repeated(shown) + end).input_ids) for end in (":", f": {name}"))
    if through[: len(before)] != before or len(through) == len(before):
        raise InputError(f"patchscope: {name!r} does not begin with a token of its own behind the colon; leave it out")
    return through[len(before) :]


def patchscope(
    lm: Model, states: Float[Tensor, "text d_model"], layers: Sequence[int], names: Sequence[str],
    shown: Sequence[str], *, max_rows: int | None = None,
) -> Float[Tensor, "text name"]:  # fmt: skip
    """Log-probability per token of each name after each state was put in after its layer.

    Unlike the lens it reads answers of several tokens (Ghandeharioun et al. 2024). The prompt shows other names being
    repeated ("Spain: Spain"), and ends in a placeholder, at which the state is put in after the same layer.

    ``shown``: names that the prompt repeats; none of ``names``.
    """
    if lm.tokenizer is None or set(shown) & set(names) or not shown:
        raise InputError("patchscope: give a model with its tokenizer, and names to show that are not read out")
    ids, at = repeating_prompt(lm.tokenizer, shown)
    rows = [[Patch(residual(layer), at, x)] for layer, x in zip(layers, states, strict=True)]
    said = [_said(lm.tokenizer, shown, name) for name in names]
    return torch.stack([x.mean(1) for x in forced(lm, ids, said, rows, max_rows=max_rows)], 1)


ROUNDING = 1e-5
"""A difference below this share of the largest score or state is rounding error."""
FEWEST = 5
"""The fewest part prompts, and the fewest answers among them, on which a reader is trained."""


class PartPrompt(NamedTuple):
    """A part asked on its own: what the reader is trained on."""

    ids: Sequence[int]
    places: Mapping[str, Sequence[int]]
    answer: str


def entity_vectors(lm: Model, entities: Mapping[str, Sequence[int]]) -> Float[Tensor, "name d_model"]:
    """Rows of the unembedding, averaged over a name's beginnings."""
    weight = lm.unembedding.head.weight
    return torch.stack([weight[list(ids)].float().mean(0).cpu() for ids in entities.values()])


@torch.no_grad()
def ridge(
    lm: Model, readings: Sequence[Reading], parts: Sequence[PartPrompt], entities: Mapping[str, Sequence[int]], *,
    strength: float = 1.0, layers: Sequence[int] | None = None,
) -> list[Scores]:  # fmt: skip
    """Scores of all ``entities`` in every text: cosine of what the reader says with each candidate's vector.

    A candidate's vector is its row of the unembedding. So candidates that training never saw can be scored, and each
    text is read by a reader from which its right one was left out: a reader that saw it may recognize the text, and
    would find the answer already at layer 0.

    Each place has a reader of its own per layer, trained on the same place of the part prompts (of several positions
    the last). ``strength``: the penalty, in units of the mean squared length of the standardized states. Raises
    ``NoCasesError`` if fewer than five part prompts with five answers are left beside a text's own.
    """
    names, places = tuple(entities), place_names(readings)
    vectors = entity_vectors(lm, entities)
    known = [p for p in parts if p.answer in entities]
    labels = [p.answer for p in known]
    y = vectors[[names.index(a) for a in labels]]

    def at_places(texts: Sequence[tuple[Sequence[int], Mapping[str, Sequence[int]]]]) -> Tensor:
        """``layer_place text d_model``"""
        found = states_at(lm, texts, layers)
        return torch.stack([torch.stack([f[p][:, -1] for p in places], 1) for f in found], 2).flatten(0, 1).cpu()

    train, test = at_places([(p.ids, p.places) for p in known]), at_places([(r.ids, r.places) for r in readings])
    out = torch.empty(len(readings), len(test), len(names), dtype=torch.float32)
    for right in dict.fromkeys(r.right for r in readings):
        kept = torch.tensor([i for i, a in enumerate(labels) if a != right], dtype=torch.long)
        if len(kept) < FEWEST or len({labels[i] for i in kept}) < FEWEST:
            raise NoCasesError(
                f"{len(kept)} part prompts without the answer {right!r}; a reader needs {FEWEST} with {FEWEST} answers"
            )
        mine = [i for i, r in enumerate(readings) if r.right == right]
        out[mine] = _read(train[:, kept], y[kept], test[:, mine], vectors, strength).transpose(0, 1)
    n_layers = len(test) // len(places)
    return [Scores(names, x.unflatten(0, (n_layers, len(places)))) for x in out]


def _read(
    train: Float[Tensor, "cell item d"], y: Float[Tensor, "item v"], test: Float[Tensor, "cell text d"],
    vectors: Float[Tensor, "name v"], strength: float,
) -> Float[Tensor, "cell text name"]:  # fmt: skip
    mean, spread = train.mean(1, keepdim=True), train.std(1, keepdim=True)
    # The states of one token before block 0 are all the same, and differ from their mean by its rounding alone.
    varies = spread.amax(-1, keepdim=True) > ROUNDING * train.abs().amax((1, 2), keepdim=True)
    h, x = (varies * (z - mean) / (spread + 1e-6 * spread.amax(-1, keepdim=True) + 1e-12) for z in (train, test))
    gram = einsum(h, h, "cell a d, cell b d -> cell a b")
    penalty = strength * gram.diagonal(dim1=1, dim2=2).mean(1)
    penalty = torch.where(penalty > 0, penalty, 1)  # states that do not differ say nothing
    penalized = gram + penalty[:, None, None] * torch.eye(gram.shape[1])
    weights = torch.linalg.solve(penalized, (y - y.mean(0)).expand(len(h), -1, -1))
    said = einsum(x, h, weights, "cell text d, cell item d, cell item v -> cell text v")
    return normalize(said, dim=-1) @ normalize(vectors - y.mean(0), dim=-1).T


@torch.no_grad()
def lens(
    lm: Model, readings: Sequence[Reading], entities: Mapping[str, Sequence[int]], *, centred: bool = True,
    layers: Sequence[int] | None = None,
) -> list[Scores]:  # fmt: skip
    """Scores of all ``entities`` (name to the ids that begin it) in every text.

    A raw lens ranks candidates by how common they are. So the mean over the other texts with another right one, at the
    same layer and place, is subtracted from each candidate's logit; the rest is what this text adds.

    A candidate's logit is that of its likeliest beginning, less the mean over candidates; of several positions of a
    place the highest counts. ``layers``: by default -1 (before block 0) to the last. ``centred`` needs other texts with
    other right ones: ``NoCasesError`` without.
    """
    names = tuple(entities)
    for r in readings:
        if r.right not in entities:
            raise InputError(f"case {r.case!r}: {r.right!r} is not among the {len(names)} entities")
    place_names(readings)
    score = _scorer(lm, entities)
    found = states_at(lm, [(r.ids, r.places) for r in readings], layers)
    best = [[reduce(score(x), "layer pos name -> layer name", "max") for x in places.values()] for places in found]
    every = torch.stack([torch.stack(x, 1) for x in best])
    if centred:
        every = _centred(every, elsewhere(every, names, readings))
    return [Scores(names, x) for x in every]


def _scorer(lm: Model, entities: Mapping[str, Sequence[int]]) -> Callable[[Tensor], Tensor]:
    """Score every candidate in states: ``layer pos d_model`` to ``layer pos name``."""
    tokens = sorted({t for ids in entities.values() for t in ids})
    index = [[tokens.index(t) for t in ids] for ids in entities.values()]

    def score(x: Tensor) -> Tensor:
        logits = lm.unembed(x, tokens).float().cpu()
        of_names = torch.stack([logits[..., i].amax(-1) for i in index], -1)
        return of_names - of_names.mean(-1, keepdim=True)

    return score


def _centred(scores: Tensor, usual: Tensor) -> Tensor:
    left = scores - usual
    rounding = ROUNDING * scores.abs().amax(-1, keepdim=True)
    return torch.where(left.abs() <= rounding, 0, left)  # texts with the same state there tell nothing apart


@torch.no_grad()
def lens_by_token(
    lm: Model, readings: Sequence[Reading], entities: Mapping[str, Sequence[int]], first: Sequence[int],
    kept: Sequence[int], layers: Sequence[int],
) -> list[Float[Tensor, "token"]]:  # fmt: skip
    """The lens at every token of the ``kept`` readings, from ``first`` on: the share of absent foils below the right.

    Mean over ``layers``. Tokens of different texts cannot be paired. So a candidate's usual score is its mean over all
    tokens of another text, and not, as in ``lens``, its score at the same place.
    """
    names, score = tuple(entities), _scorer(lm, entities)
    usual, own = [], {}
    for i, (r, start) in enumerate(zip(readings, first, strict=True)):  # one text at a time: these states are many
        (found,) = states_at(lm, [(r.ids, {"all": range(start, len(r.ids))})], layers)
        scores = score(found["all"])
        usual.append(scores.mean(1, keepdim=True))
        if i in kept:
            own[i] = scores
    apart = elsewhere(torch.stack(usual), names, readings)
    return [
        Scores(names, _centred(own[i], apart[i])).above(readings[i].right, readings[i].absent).mean(0) for i in kept
    ]


def elsewhere(
    scores: Float[Tensor, "text layer place name"], names: Sequence[str], readings: Sequence[Reading]
) -> Float[Tensor, "text layer place name"]:
    """Each candidate's mean score over the other texts whose right one is another."""
    other = torch.tensor([[name != r.right for name in names] for r in readings], dtype=scores.dtype)[:, None, None]
    known: dict[tuple[int, ...], int] = {}  # several things may be read from one text
    text = torch.tensor([known.setdefault(tuple(r.ids), len(known)) for r in readings])

    def of_others(x: Tensor) -> Tensor:
        own = x.new_zeros(len(known), *x.shape[1:]).index_add_(0, text, x)
        return own.sum(0, keepdim=True) - own[text]

    total, n = of_others(other * scores), of_others(other)
    if not bool((n > 0).all()):
        few = names[int((n <= 0).flatten(0, 2).any(0).nonzero()[0])]
        raise NoCasesError(
            f"{len(readings)} texts: too few have another answer than {few!r} to centre its scores by; give more"
        )
    return total / n
