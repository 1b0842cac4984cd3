"""What single cases look like inside: tokens, maps and sweeps of a few cases, kept next to each probe's summaries.

The probes report means with intervals. To look at one case you need its own map, its tokens and the values at them.
These are kept here for a few failures and successes, as safetensors with an index that says what was left out.

Attention is kept per key, in float16: query N - 1 + i predicts response token i, and ``ratio`` is formed from the
masses that are kept, as in ``probes.lookback``. Patching continuations are those of the probe itself, read from its
tensors. The sweep over positions is run here, on pairs of equally long prompts (a position must mean the same in both),
within a budget of computation: those of the most common length first, over which the figure ``patching-positions``
takes means.

Neurons read one position and readouts a few named places; here both are shown at every token of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from safetensors.torch import load_file
from torch import Tensor

from ..errors import NoCasesError
from ..evaluation import text_files
from ..evaluation.engines.text import verbatim
from ..hooks.attention_masses import Window
from ..hooks.capture import Request, capture_all
from ..hooks.sites import Kind
from .examples import Example
from .lookback.measuring import Masses
from .min_k import token_scores
from .neurons.attribution import positive_by_position
from .patching.positions import position_sweep
from .positions import Position, read_at
from .readout.examples import Collected, collect_readings, upper
from .readout.readings import lens_by_token
from .trajectory import step_cosines

SITES: tuple[Kind, ...] = ("resid_post", "attn_out", "mlp_out")
"""Activations that are put in at one position of a prompt."""
_LONGEST_CHARACTER = 4
"""Longest UTF-8 character in bytes; a token sequence that stays undecodable for longer is not a character."""
_CONTEXT = 6
"""Tokens before a piece that a decoder may need to see: leading spaces, bytes of an unfinished character."""


@dataclass(frozen=True)
class SingleCase:
    """One prompt of one case."""

    about: Mapping[str, Any]
    """Case, role, kind, group, tokens and spans, and the settings of this entry; JSON values only."""
    tensors: Mapping[str, Shaped[Tensor, "..."]] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Axis names of each tensor, outermost first."""


@dataclass(frozen=True)
class SingleCases:
    """The entries of a probe, and one sentence for each thing that had to be left out."""

    entries: list[SingleCase]
    left_out: list[str] = field(default_factory=list)


def named(example: Example) -> dict[str, Any]:
    """Which prompt an entry is about."""
    return {"case": example.case, "role": example.role, "kind": example.kind, "group": example.group}


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """One piece per token; joined they are the decoded text.

    If a character's bytes are spread over several tokens, the last of them has the character, and the others are empty.
    """
    out: list[str] = []
    done = moved = finished = 0  # tokens whose text is out; through the last one that ended a character; characters
    for i in range(len(ids)):
        start = max(0, done - _CONTEXT)
        before, through = verbatim(tokenizer, ids[start:done]), verbatim(tokenizer, ids[start : i + 1])
        if (n := len(through.rstrip("\ufffd"))) > max(finished, len(before)):
            moved, finished = i, n
        unfinished = through.endswith("\ufffd") and i + 1 < len(ids) and i + 1 - moved < _LONGEST_CHARACTER
        if unfinished:
            out.append("")
            continue
        out.append(through[len(before) :] if through.startswith(before) else verbatim(tokenizer, ids[done : i + 1]))
        done, moved, finished = i + 1, i + 1, 0
    return out


LOOKBACK_STEPS = 64
"""Response tokens whose attention is kept."""
KEYS = 1024
"""Ranges of keys told apart; longer prompts have tokens outside the question merged."""
ENTRY_BYTES, TOTAL_BYTES = 1_000_000, 8_000_000
HELD_BYTES = 2**28
"""Masses of one case that may be in memory before heads are chosen."""
Span = tuple[int, int]


def lookback_cases(
    lm: Any, examples: Sequence[Example], differences: Mapping[str, Float[Tensor, "layer head"]]
) -> SingleCases:
    """Ratio ``[layer head step]`` and attention ``[head step key]`` of every example.

    ``differences``: by kind the map ``[layer head]`` of failures minus successes; where not all heads fit, those with
    the largest absolute difference are kept.
    """
    budget = min(ENTRY_BYTES, TOTAL_BYTES // max(1, len(examples)))
    return SingleCases([_entry(lm, e, differences.get(e.kind), budget) for e in examples])


def _entry(lm: Any, example: Example, difference: Tensor | None, budget: int) -> SingleCase:
    a, prompt = lm.anatomy, len(example.prompt_ids)
    spans = key_spans(example.question_span, prompt + min(len(example.response_ids), LOOKBACK_STEPS))
    steps = min(
        len(example.response_ids), LOOKBACK_STEPS, max(1, HELD_BYTES // (4 * a.n_layers * a.n_heads * len(spans)))
    )
    response = example.response_ids[:steps]
    spans = [s for s in spans if s[0] < prompt + steps]
    window = Window(prompt - 1, prompt - 1 + steps, tuple(spans))
    (got,) = capture_all(lm, [Request([*example.prompt_ids, *response[:-1]], masses=window)])
    assert got.masses is not None
    masses = got.masses.cpu().float()  # key layer head step
    heads = chosen_heads(masses.shape[1:3], difference, max(1, budget // (2 * steps * len(spans))))
    index = torch.tensor(heads)
    attention = masses[:, index[:, 0], index[:, 1]].permute(1, 2, 0)
    words = pieces(lm.tokenizer, [*example.prompt_ids, *response])
    about = {
        **named(example), "prompt_tokens": prompt, "response_tokens": len(example.response_ids), "steps": steps,
        "context_tokens": prompt - example.cue_tokens, "question": list(example.question_span), "tokens": words,
        "spans": None if all(b - a == 1 for a, b in spans) else [list(s) for s in spans],
        "heads": [list(h) for h in heads], "of_heads": a.n_layers * a.n_heads,
    }  # fmt: skip
    tensors = {"ratio": _ratio(masses, spans, example).half(), "attention": attention.half()}
    return SingleCase(about, tensors, {"ratio": ("layer", "head", "step"), "attention": ("head", "step", "key")})


def _ratio(masses: Tensor, spans: Sequence[Span], example: Example) -> Tensor:
    prompt = len(example.prompt_ids)
    context = torch.tensor([b <= prompt - example.cue_tokens for _, b in spans])
    return Masses(masses[context].sum(0), masses[~context].sum(0), int(prompt - example.cue_tokens), prompt).ratio()


def key_spans(question: Span, end: int, most: int = KEYS) -> list[Span]:
    """Half-open key ranges that tile ``0:end``: one per token where they are at most ``most``.

    In longer sequences tokens before the question are merged, as few at a time as it takes; the question, what follows
    it and the response stay single tokens (and may exceed ``most`` alone).
    """
    if end <= most:
        return [(i, i + 1) for i in range(end)]
    single = end - question[0]
    size = max(1, -(-question[0] // max(1, most - single)))  # nothing stands before the question of a raw prompt
    merged = [(i, min(i + size, question[0])) for i in range(0, question[0], size)]
    return merged + [(i, i + 1) for i in range(question[0], end)]


def chosen_heads(
    shape: Sequence[int], difference: Float[Tensor, "layer head"] | None, most: int
) -> list[tuple[int, int]]:
    """(layer, head) pairs in order: all, or those with the largest absolute difference (without one, the last)."""
    layers, heads = int(shape[0]), int(shape[1])
    if layers * heads <= most:
        return [(i, j) for i in range(layers) for j in range(heads)]
    weight = torch.arange(layers * heads).float() if difference is None else difference.abs().nan_to_num(-1).flatten()
    return sorted((int(i) // heads, int(i) % heads) for i in weight.topk(most).indices)


def trajectory_cases(lm: Any, examples: Sequence[Example]) -> SingleCases:
    """Step cosines ``[layer step]`` (float16) of every response of at least two tokens, over the probe's own steps."""
    long = [e for e in examples if len(e.response_ids) > 1]
    left_out = [
        f"{e.case} ({e.role}): a response of one token makes no step" for e in examples if len(e.response_ids) <= 1
    ]
    if not long:
        return SingleCases([], left_out)
    found = step_cosines(lm, [e.prompt_ids for e in long], [e.response_ids for e in long])
    entries = [
        SingleCase(
            {**named(e), "tokens": pieces(lm.tokenizer, e.response_ids[: s.norms.shape[1]]),
             "response_tokens": len(e.response_ids)},
            {"cosines": s.cosines.half()}, {"cosines": ("layer", "step")},
        )
        for e, s in zip(long, found, strict=True)
    ]  # fmt: skip
    return SingleCases(entries, left_out)


def min_k_cases(lm: Any, examples: Sequence[Example]) -> SingleCases:
    """Log-probability and z ``[token]`` (float32) of the question's own tokens, with their positions."""
    scores = token_scores(lm, [e.prompt_ids for e in examples], [e.question_span for e in examples])
    entries = [
        SingleCase(
            {**named(e), "tokens": pieces(lm.tokenizer, e.prompt_ids), "first": s.positions[0],
             "question": list(e.question_span)},
            {"log_prob": torch.from_numpy(s.log_prob).float(), "z": torch.from_numpy(s.z).float()},
            {"log_prob": ("token",), "z": ("token",)},
        )
        for e, s in zip(examples, scores, strict=True)
    ]  # fmt: skip
    return SingleCases(entries)


FLOPS = {"cpu": 1e12, "cuda": 3e14}
"""Floating point operations that the sweeps of one run may take: some ten seconds."""
MOST_LAYERS, FEWEST_POSITIONS = 12, 8
SWEEPS, MOST_SWEEPS = 2, 6
"""Sweeps that share the budget, and how many there are where the budget takes so many over all positions."""


def patching_cases(
    lm: Any, examples: Sequence[Example], folder: Path, n: int, few: Collection[str] = ()
) -> SingleCases:
    """Continuations of ``n`` of the probe's pairs by layer, and a sweep over positions where lengths agree.

    ``folder`` is the probe's own; ``examples`` are all that it may have run on, ``few`` the cases that are preferred.
    """
    settings = text_files.document(folder / "result.json", "run the probe again").get("settings", {})
    wholes = [e for e in examples if e.role == "whole"]
    by_case = {e.case: e for e in read_at(wholes, settings.get("position", "prompt-end")).examples}
    pairs = [(str(s), str(f)) for s, f in settings.get("cases", [])]
    known = [(i, by_case[s], by_case[f]) for i, (s, f) in enumerate(pairs) if s in by_case and f in by_case]
    # Pairs that have both pictures first, then the cases that the other probes keep too.
    equal = [p for p in known if len(p[1].prompt_ids) == len(p[2].prompt_ids) and _apart(*p[1:])]
    lengths = Counter(len(p[2].prompt_ids) for p in equal)
    equal = sorted(equal, key=lambda p: -lengths[len(p[2].prompt_ids)])
    whole = equal and len(planned(lm, equal[0][2], MOST_SWEEPS)[1]) == len(equal[0][2].prompt_ids)
    most = MOST_SWEEPS if whole else SWEEPS
    equal = equal[:most]
    others = sorted((p for p in known if p not in equal), key=lambda p: p[2].case not in few)
    kept, left_out = [*equal, *others][: max(n, len(equal))], []
    tensors = load_file(folder / "tensors.safetensors")
    layers, grid = settings["layers"], tensors["tokens"].ndim == 4  # donor x recipient, or one pair after the other
    entries: list[SingleCase] = []
    for place, donor, recipient in kept:
        d, r = settings["pairs"][place] if grid else (place, place)
        done = sum(bool(e.tensors) for e in entries)
        enough = f"no sweep over positions: {most} other pairs have one"
        sweep, why = _sweep(lm, donor, recipient, most) if done < most else (SingleCase({}), enough)
        if why:
            left_out.append(f"{recipient.case} with {donor.case}: {why}")
        about = {
            "case": recipient.case, "role": "whole", "group": recipient.group, "donor": donor.case, "layers": layers,
            "tokens": pieces(lm.tokenizer, recipient.prompt_ids), "question": list(recipient.question_span),
            "unpatched": said(lm.tokenizer, tensors["base_tokens"][r]),
            "donors_own": said(lm.tokenizer, tensors["donor_tokens"][d]),
            "patched": [said(lm.tokenizer, row) for row in tensors["tokens"][(d, r) if grid else (place,)]],
            **sweep.about,
        }  # fmt: skip
        entries.append(SingleCase(about, sweep.tensors, sweep.axes))
    return SingleCases(entries, left_out)


def said(tokenizer: Any, ids: Int[torch.Tensor, " step"]) -> str:
    """A continuation as text; its tokens after the end are -1."""
    return verbatim(tokenizer, [int(i) for i in ids if i >= 0])


def _apart(donor: Example, recipient: Example) -> bool:
    """Whether the two answers differ from their first token on, so that a sweep can tell them apart."""
    return donor.answer_ids[0] != recipient.answer_ids[0]


def _sweep(lm: Any, donor: Example, recipient: Example, sweeps: int) -> tuple[SingleCase, str | None]:
    nothing = SingleCase({})
    n = len(recipient.prompt_ids)
    if len(donor.prompt_ids) != n:
        return nothing, f"prompts of {len(donor.prompt_ids)} and {n} tokens, no sweep over positions"
    answers = (donor.answer_ids[0], recipient.answer_ids[0])
    if not _apart(donor, recipient):
        return nothing, "both answers begin with the same token, no sweep over positions"
    layers, positions = planned(lm, recipient, sweeps)
    if not positions:
        return nothing, f"a sweep over {lm.anatomy.n_layers} layers and {n} positions costs too much on this machine"
    tensors: dict[str, torch.Tensor] = {}
    for kind in SITES:
        got = position_sweep(
            lm, [donor.prompt_ids], [recipient.prompt_ids], [answers], kind=kind, layers=layers, positions=positions
        )
        tensors |= {f"{kind}.{name}": got.tensors[name][0].half() for name in ("recovered", "kl")}
    about: Mapping[str, Any] = {
        "sweep_layers": layers, "sweep_positions": positions, "sites": list(SITES),
        "donor_tokens": pieces(lm.tokenizer, donor.prompt_ids),
        "answers": [verbatim(lm.tokenizer, [a]) for a in answers],
    }  # fmt: skip
    return SingleCase(about, tensors, dict.fromkeys(tensors, ("layer", "position"))), None


def planned(lm: Any, recipient: Example, sweeps: int = SWEEPS) -> tuple[list[int], list[int]]:
    """Layers and positions of one of ``sweeps`` that fits its share of the budget: (layers, []) where none does."""
    a, n = lm.anatomy, len(recipient.prompt_ids)
    layers = _spread(range(a.n_layers), MOST_LAYERS)
    size = sum(p.numel() for p in lm.model.parameters())
    forwards = FLOPS.get(lm.device.type, FLOPS["cpu"]) / sweeps / (2 * size * n)
    most = int(forwards / len(layers) / len(SITES))
    if most >= n:
        return layers, list(range(n))
    # The question's own tokens, and always the place from which the answer is predicted.
    positions = _spread(range(*recipient.question_span), most - 1)
    return layers, sorted({*positions, n - 1}) if len(positions) + 1 >= FEWEST_POSITIONS else []


def _spread(values: Sequence[int], most: int) -> list[int]:
    """At most ``most`` of the values, evenly, ends included."""
    if len(values) <= most:
        return list(values)
    if most < 2:
        return list(values[-most:]) if most > 0 else []
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def neuron_cases(lm: Any, examples: Sequence[Example], position: Position) -> SingleCases:
    """Share of the neurons' positive attribution ``[token]`` at every token before the gold answer.

    An estimate (``positive_by_position``), of the answer's first token, read where the probe reads it (``position``).
    """
    if lm.anatomy.n_experts:
        return SingleCases([], ["a mixture of experts: neurons are not told apart by token"])
    wholes = [e for e in examples if e.role == "whole"]
    if not any(e.slot for e in wholes) and position == "answer-slot":
        return SingleCases([], ["the answer could be located in no response"])
    entries = []
    for e in read_at(wholes, position).examples:
        found = positive_by_position(lm, e.prompt_ids, e.answer_ids[0])
        total = float(found.sum())
        about = {
            **named(e), "tokens": pieces(lm.tokenizer, e.prompt_ids), "question": list(e.question_span),
            "answer": verbatim(lm.tokenizer, e.answer_ids[:1]), "neurons": lm.anatomy.all_neurons, "total": total,
            "method": "positive part of activation x gradient of log P", "dtype": str(lm.dtype),
        }  # fmt: skip
        entries.append(SingleCase(about, {"share": found / total if total else found}, {"share": ("token",)}))
    return SingleCases(entries)


def readout_cases(lm: Any, few: Sequence[Example], every: Sequence[Example], folder: Path) -> SingleCases:
    """Lens and ridge ``[reading token]`` of what each whole may hold, over the layers that the probe compares.

    The lens is read at every token from the question on, ``ridge`` where the probe read it (its own numbers, NaN
    elsewhere). ``every``: the candidates and the texts to centre by.
    """
    got = collect_readings(lm.tokenizer, every)
    wanted = {e.case for e in few}
    every_layer = range(-1, lm.anatomy.n_layers)
    layers = list(every_layer)[upper(len(every_layer))]
    tensors = load_file(folder / "tensors.safetensors")
    lens: dict[int, Tensor] = {}
    left_out = []
    for what in dict.fromkeys(r.what for _, r in got.readings):
        mine = [i for i, (_, r) in enumerate(got.readings) if r.what == what]
        kept = [n for n, i in enumerate(mine) if got.readings[i][0].case in wanted]
        readings, first = zip(*((got.readings[i][1], got.readings[i][0].question_span[0]) for i in mine), strict=True)
        try:
            found = lens_by_token(lm, readings, got.entities, first, kept, layers)
        except NoCasesError as e:
            left_out.append(f"{what}: {e}")
            continue
        lens |= {mine[n]: x for n, x in zip(kept, found, strict=True)}
    entries = []
    for case in dict.fromkeys(e.case for e, _ in got.readings if e.case in wanted):
        mine = [i for i, (e, _) in enumerate(got.readings) if e.case == case and i in lens]
        if mine:
            entries.append(
                _held(lm, got, mine, torch.stack([lens[i] for i in mine]), tensors.get("wholes.ridge"), layers)
            )
    return SingleCases(entries, left_out)


def _held(
    lm: Any, got: Collected, mine: Sequence[int], lens: Tensor, ridge: Tensor | None, layers: Sequence[int]
) -> SingleCase:
    e, reading = got.readings[mine[0]]
    start, held = e.question_span[0], [got.readings[i][1] for i in mine]
    about = {
        **named(e), "tokens": pieces(lm.tokenizer, reading.ids), "question": list(e.question_span), "first": start,
        "layers": list(layers), "places": {name: list(at) for name, at in reading.places.items()},
        "readings": [{"what": r.what, "right": r.right, "foils": len(r.absent)} for r in held],
    }  # fmt: skip
    tensors = {"lens": lens.float()}
    if ridge is not None and len(ridge) == len(got.readings):
        at_places = torch.full_like(tensors["lens"], torch.nan)
        for place, at in enumerate(reading.places.values()):
            at_places[:, at[-1] - start] = ridge[list(mine), place].float()
        tensors["ridge"] = at_places
    return SingleCase(about, tensors, dict.fromkeys(tensors, ("reading", "token")))
