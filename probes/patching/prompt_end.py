"""Prompt-end sweep: every donor's state at the last prompt position, after every block, with controls.

prompt_end_sweep(lm, donors, recipients).tensors["tokens"]  # donor recipient layer step
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from ...errors import InputError, NoCasesError
from ...evaluation.dependence import Sides
from ...hooks.capture import id_rows
from ...hooks.model import Model
from ...terminal import Bar, no_bar, stage
from ..effects import Clusters
from ..result import ProbeResult
from . import engine
from .outcomes import Grader, Graders, PatchOutcome, against_controls, by_recipient, compare, summarize

Control = Literal["identity", "random", "noise", "positive"]
CONTROLS: tuple[Control, ...] = ("identity", "random", "noise", "positive")
POSITIVE_PAIRS = 4
"""Number of equally long pairs with the control over all prompt positions."""
Ids = Sequence[int]


@dataclass(frozen=True)
class _Plan:
    """Which donors go into which recipient."""

    pairs: list[tuple[int, int]]
    """(donor, recipient)"""
    recipients: list[int]
    donors_of: list[list[int]]
    """Per recipient in ``recipients``."""

    @property
    def width(self) -> int:
        return max(map(len, self.donors_of))


def _plan(n_donors: int, n_recipients: int, pairs: Sequence[tuple[int, int]] | None) -> _Plan:
    if not n_donors or not n_recipients:
        raise NoCasesError(f"{n_donors} donors and {n_recipients} recipients; patching needs at least one of each")
    chosen = [(d, r) for d in range(n_donors) for r in range(n_recipients)] if pairs is None else list(pairs)
    if not chosen or len(set(chosen)) != len(chosen):
        raise InputError(f"{len(chosen)} pairs with repetitions or none at all; give distinct (donor, recipient) pairs")
    for d, r in chosen:
        if not (0 <= d < n_donors and 0 <= r < n_recipients):
            raise InputError(f"pair ({d}, {r}): there are {n_donors} donors and {n_recipients} recipients, from 0")
    recipients = sorted({r for _, r in chosen})
    return _Plan(chosen, recipients, [[d for d, r in chosen if r == mine] for mine in recipients])


def _sources(
    own: Tensor | None, donors: Tensor, plan: _Plan, controls: Sequence[str], seed: int
) -> tuple[Tensor, list[str]]:
    """States to put in, ``recipient source layer d_model``, and the name of every source."""
    width = plan.width
    index = torch.tensor([d + [d[0]] * (width - len(d)) for d in plan.donors_of], device=donors.device)
    states, names = [donors[index]], ["donor"] * width
    if own is None:
        return states[0], names
    generator = torch.Generator().manual_seed(seed)
    if "identity" in controls:
        states.append(own[:, None])
        names.append("identity")
    if "random" in controls and len(plan.recipients) > 1:
        shift = torch.randint(1, len(plan.recipients), (len(plan.recipients),), generator=generator)
        other = (torch.arange(len(plan.recipients)) + shift) % len(plan.recipients)
        states.append(own[other.to(own.device)][:, None])
        names.append("random")
    if "noise" in controls:
        first = donors[index[:, 0]]
        noise = torch.randn(own.shape, generator=generator, dtype=torch.float32).to(own)
        size = (first - own).norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True)
        states.append((own + size * noise)[:, None])
        names.append("noise")
    return torch.cat(states, 1), names


def prompt_end_sweep(
    lm: Model, donors: Sequence[Ids], recipients: Sequence[Ids], pairs: Sequence[tuple[int, int]] | None = None,
    layers: Sequence[int] | None = None, max_new_tokens: int = 16, keep: Literal["summary", "all"] = "summary", *,
    donor_answers: Sequence[Ids] | None = None, recipient_answers: Sequence[Ids] | None = None,
    graders: tuple[Grader, Grader] | None = None, clusters: tuple[Clusters, Clusters] = (None, None),
    controls: Sequence[str] = CONTROLS,
    stop_ids: Sequence[int] | None = None, seed: int = 0, max_rows: int | None = None, progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """Replace the recipient's prompt-end state by the donor's after each block, and continue greedily.

    Args:
        donors: prompts as token ids, full template included.
        recipients: the same, of the prompts that get their states.
        pairs: (donor, recipient) indices; all combinations by default.
        layers: blocks after which to patch (default: all).
        keep: ``all`` also keeps first logits, ``donor recipient layer vocab``.
        donor_answers: gold answers as token ids, whose first tokens' log-probabilities are reported. By default the
            donors' own continuations stand in.
        recipient_answers: the same for the recipients; a continuation that starts with the recipient's gold answer is
            ``corrected``. By default the recipients' own continuations stand in, and nothing is called corrected.
        graders: grade continuations by the gold answer of a recipient and by that of a donor: each takes the prompt's
            index and token ids and returns a ``Grade``. Then ``flip_rate``, ``abstain_rate`` and
            ``corrected_rate`` are about answers, not about tokens, and continuations without an answer are left out of
            them (``n``) and said in the warnings.
        clusters: what the donors' cases share with each other, and what the recipients' do (``evaluation.dependence``).
        controls: any of ``identity``, ``random`` (another recipient's state), ``noise`` (norm-matched), ``positive``
            (all prompt positions of an equally long donor; up to 4 pairs). What must change nothing is continued in a
            sample of layers, and elsewhere where its keys, values and logits are not the unpatched ones.
        stop_ids: tokens that end a continuation; default the model's end-of-sequence tokens.

    Table, per source and layer: ``kl`` (nats, KL(unpatched || patched) of the first token's distributions),
    ``kl_from_donor`` (0 after the last block, and for the positive control everywhere), ``argmax_changed``,
    ``tokens_before_divergence``, ``flip_rate`` (becomes the donor's continuation; graded: gives its gold answer),
    ``abstain_rate`` (turns to an abstention), ``corrected_rate`` (gives the recipient's gold answer),
    ``unchanged_rate`` (token by token), ``other_rate`` (changed, and neither the donor's nor an abstention),
    ``answer_log_prob``, ``donor_log_prob``, the probabilities, and ``logit_difference`` (donor's answer minus
    recipient's). Pairs that share members or facts are not independent: their intervals are over both sides, and rates
    of zero are bounded with as many pairs as can be formed without sharing. Then ``donor - random`` and
    ``donor - noise``, paired over recipients, with effect, test and Holm over layers: what the donor's state does that
    another does not.

    Tensors: the same by layer (controls as ``kl.identity``, ...), ``tokens`` ``donor recipient layer step`` (-1 after
    the end and for pairs left out), ``base_tokens``, ``donor_tokens``, ``top_tokens``, ``top_log_probs``. Values: four
    quantities for each ``recipient``, as means over its donors and the layers.
    """
    donors, recipients = id_rows(donors, "donor"), id_rows(recipients, "recipient")
    plan = _plan(len(donors), len(recipients), pairs)
    chosen = sorted(set(engine.chosen_layers(lm, layers)))
    stops = tuple(lm.eos_ids if stop_ids is None else stop_ids)
    unknown = set(controls) - set(CONTROLS)
    if unknown or keep not in ("summary", "all") or max_new_tokens < 1:
        raise InputError(
            f"controls {sorted(unknown)}, keep {keep!r}, max_new_tokens {max_new_tokens}: controls are {CONTROLS}, "
            "keep is summary or all, and at least one token is needed"
        )
    # The controls are made of the recipients' own states.
    prompts = [recipients[r] for r in plan.recipients]
    own = engine.prompt_end_states(lm, prompts, chosen) if {"identity", "random", "noise"} & set(controls) else None
    ends, prefix = engine.prompt_ends(lm, donors, chosen)
    states, names = _sources(own, ends, plan, controls, seed)
    warnings = _ends(donors, recipients)
    mine = names.index("identity") if "identity" in names else None
    with stage(progress, "patching: continuations", len(prompts) + len(donors)):
        got = engine.continue_patched(
            lm, prompts, states, chosen, max_new_tokens, stops, max_rows, warnings, plain=donors, ready=prefix, own=mine
        )
    vocab = lm.anatomy.vocab_size
    gold = _first_tokens(recipient_answers, got.base, plan.recipients, len(recipients), vocab)
    donor_gold = _first_tokens(donor_answers, got.plain, range(len(donors)), len(donors), vocab)
    judge = None if graders is None else Graders(*graders)
    shares = _shares(clusters, (len(donors), len(recipients)))
    comparison = _Comparison(got, plan, (gold, donor_gold), recipient_answers, judge)
    outcomes = comparison.outcomes(names)
    if "random" in controls and "random" not in names:
        warnings.append("one recipient only: no random control")
    if "positive" in controls:
        with stage(progress, "patching: positive control", POSITIVE_PAIRS):
            extra = _positive(lm, donors, recipients, plan, chosen, (max_new_tokens, stops))
        outcomes += [comparison.of("positive", d, plan.recipients.index(r), *found) for d, r, *found in extra]
        if not extra:
            warnings.append("no pair of equally long prompts: no positive control")
    outcomes = [replace(o, shares=Sides(None if o.donor is None else shares[0][o.donor], shares[1][o.recipient]))
                for o in outcomes]  # fmt: skip
    rows, tensors, axes = summarize(outcomes, chosen)
    rows += against_controls(outcomes, chosen, seed=seed)
    if judge is not None and (unjudged := sum(int(o.values["corrected_rate"].isnan().sum()) for o in outcomes)):
        warnings.append(
            f"{unjudged} of {len(outcomes) * len(chosen)} continuations hold no answer that can be judged (within "
            f"{max_new_tokens} tokens): they are left out of flips, abstentions and corrections"
        )
    more, more_axes = _kept(got, plan, (len(donors), len(recipients)), keep)
    settings: dict[str, Any] = {
        "layers": list(chosen), "pairs": plan.pairs, "max_new_tokens": max_new_tokens, "stop_ids": list(stops),
        "site": "residual stream after the block, last prompt position", "controls": list(controls), "seed": seed,
        "answer_log_prob": "first token of the gold answer" if recipient_answers else "first token of own continuation",
        "outcomes": "token by token" if graders is None else "answers, graded",
        "keep": keep, "dtype": str(lm.dtype),
    }  # fmt: skip
    named = {**axes, **more_axes}
    return ProbeResult("patching", rows, {**tensors, **more}, named, settings, warnings, by_recipient(outcomes))


def _shares(clusters: tuple[Clusters, Clusters], sizes: tuple[int, int]) -> list[Sequence[Hashable]]:
    found = [[None] * n if of is None else of for of, n in zip(clusters, sizes, strict=True)]
    if wrong := [(len(of), n) for of, n in zip(found, sizes, strict=True) if len(of) != n]:
        raise InputError(f"clusters: {wrong[0][0]} labels for {wrong[0][1]} prompts; give one of each")
    return found


def _ends(donors: Sequence[Ids], recipients: Sequence[Ids]) -> list[str]:
    """A warning where prompts end with different tokens, which is a sign of different templates."""
    last = {int(p[-1]) for p in (*donors, *recipients) if len(p)}
    if len(last) < 2:
        return []
    return [f"prompts end with {len(last)} different tokens: what is put in was not computed for the same token"]


def _first_tokens(
    answers: Sequence[Ids] | None, instead: Tensor, which: Sequence[int] | range, n: int, vocab: int
) -> Tensor:
    if answers is None:
        return instead[:, 0]
    if len(answers) != n:
        raise InputError(f"{len(answers)} answers for {n} prompts; give one of each")
    for i in which:
        if not len(answers[i]):
            raise InputError(f"answer {i}: no token; every case needs its gold answer")
        if not all(0 <= int(t) < vocab for t in answers[i]):
            raise InputError(f"answer {i}: ids {list(answers[i])[:3]}; the vocabulary has {vocab}; wrong tokenizer?")
    return torch.tensor([answers[i][0] for i in which])


@dataclass(frozen=True)
class _Comparison:
    """What continuations are compared with."""

    got: engine.Continuations
    plan: _Plan
    gold: tuple[Tensor, Tensor]
    """First tokens of the recipients' and of the donors' answers."""
    answers: Sequence[Ids] | None
    judge: Graders | None

    def of(self, name: str, donor: int | None, i: int, tokens: Tensor, logits: Tensor) -> PatchOutcome:
        """Continuations of the plan's i-th recipient; those of a control are compared with its first donor."""
        got, recipient = self.got, self.plan.recipients[i]
        reference = self.plan.donors_of[i][0] if donor is None else donor
        said = None if self.judge is None else self.judge.judged(recipient, reference, tokens, got.base[i])
        return compare(
            name, (donor, recipient), (tokens, logits), (got.base[i], got.base_logits[i]),
            (got.plain[reference], got.plain_logits[reference]),
            (int(self.gold[0][i]), int(self.gold[1][reference])),
            None if self.answers is None else self.answers[recipient], said,
        )  # fmt: skip

    def outcomes(self, names: Sequence[str]) -> list[PatchOutcome]:
        """Of every source in every recipient; recipients with fewer donors than others have no more of them."""
        got, out = self.got, []
        for i, donors in enumerate(self.plan.donors_of):
            for s, name in enumerate(names):
                if name != "donor" or s < len(donors):
                    donor = donors[s] if name == "donor" else None
                    out.append(self.of(name, donor, i, got.tokens[i, s], got.logits[i, s]))
        return out


def _positive(
    lm: Model, donors: Sequence[Ids], recipients: Sequence[Ids], plan: _Plan, layers: Sequence[int],
    how: tuple[int, tuple[int, ...]],
) -> list[tuple[int, int, Tensor, Tensor]]:  # fmt: skip
    equal = [(d, r) for d, r in plan.pairs if len(donors[d]) == len(recipients[r])][:POSITIVE_PAIRS]
    found = engine.transplant_pairs(lm, [(donors[d], recipients[r]) for d, r in equal], layers, *how) if equal else []
    return [(d, r, tokens, logits) for (d, r), (tokens, logits) in zip(equal, found, strict=True)]


def _kept(
    got: engine.Continuations, plan: _Plan, size: tuple[int, int], keep: str
) -> tuple[dict[str, Tensor], dict[str, tuple[str, ...]]]:
    """Per-pair tensors over the full donor x recipient grid; -1 or NaN for pairs left out."""
    n_layers, steps = got.tokens.shape[2:]
    vocab = got.logits.shape[-1]
    k = min(engine.TOP, vocab)
    tokens = torch.full((*size, n_layers, steps), -1, dtype=torch.long)
    top = torch.full((*size, n_layers, k), -1, dtype=torch.long)
    top_p = torch.full((*size, n_layers, k), torch.nan, dtype=torch.float32)
    logits = torch.full((*size, n_layers, vocab), torch.nan, dtype=torch.float32) if keep == "all" else None
    base = torch.full((size[1], steps), -1, dtype=torch.long)
    for i, r in enumerate(plan.recipients):
        base[r] = got.base[i]
        for s, d in enumerate(plan.donors_of[i]):
            tokens[d, r] = got.tokens[i, s]
            best = got.logits[i, s].log_softmax(-1).topk(k)
            top[d, r], top_p[d, r] = best.indices, best.values
            if logits is not None:
                logits[d, r] = got.logits[i, s]
    grid = ("donor", "recipient", "layer")
    out = {"tokens": tokens, "top_tokens": top, "top_log_probs": top_p, "base_tokens": base, "donor_tokens": got.plain}
    axes: dict[str, tuple[str, ...]] = {
        "tokens": (*grid, "step"), "top_tokens": (*grid, "rank"), "top_log_probs": (*grid, "rank"),
        "base_tokens": ("recipient", "step"), "donor_tokens": ("donor", "step"),
    }  # fmt: skip
    if logits is not None:
        out["first_logits"], axes["first_logits"] = logits, (*grid, "vocab")
    return out, axes
