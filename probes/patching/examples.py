"""Patching over labelled examples: states of successes are put into matched failures, and the answers are graded.

    over_examples(lm, examples, max_pairs=16).table

States are exchanged where the examples are read: at the position that predicts the answer in each response, or at the
prompts' ends.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import torch

from ...errors import NoCasesError
from ...evaluation.asks import Grade
from ...evaluation.engines.base import cut_after_stop
from ...evaluation.engines.text import decode, special_thinking_marks
from ...hooks.generation import room
from ...hooks.model import Model
from ...terminal import Bar, no_bar
from ..examples import Example, Gold
from ..matching import kept, match, spread_out
from ..positions import Position, collisions, preceding_row, read_at
from ..result import ProbeResult
from ..tables import value_rows
from ..verdicts import corrected
from .outcomes import Grader
from .prompt_end import CONTROLS, prompt_end_sweep

FEWEST_TOKENS, MOST_TOKENS = 24, 64
_PLACE = {"answer-slot": "position that predicts the answer", "prompt-end": "last prompt position"}


def over_examples(
    lm: Model, examples: Sequence[Example], *, role: str = "whole", max_pairs: int = 16,
    layers: Sequence[int] | None = None, max_new_tokens: int | None = None, controls: Sequence[str] = CONTROLS,
    seed: int = 0, position: Position = "answer-slot", progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """Donors are the successes, recipients the failures, matched one to one (``matching``).

    ``position``: where states are exchanged, at each response's answer slot or at the prompts' ends. If there are more
    than ``max_pairs`` matched pairs, ``max_pairs`` are kept, spread over families, depths and operations.

    Continuations are graded by the rules that graded the responses where examples have a gold answer
    (``Example.gold``) and the model has a tokenizer; else outcomes are token by token. ``max_new_tokens`` is by default
    the length of the longest response of the examples (from where they are read), 24 to 64. Where nothing matches,
    successes are paired with failures at random, with a warning. Raises ``NoCasesError`` without both
    groups.
    """
    reading = read_at([e for e in examples if e.role == role], position)
    mine = reading.examples
    by_case: Mapping[str, Example] = {e.case: e for e in mine}
    groups = {g: [e for e in mine if e.group == g] for g in ("failure", "success")}
    if not all(groups.values()):
        sizes = {g: len(v) for g, v in groups.items()}
        raise NoCasesError(f"role {role!r}: {sizes}; patching needs failures to patch and successes to patch from")
    found = match(mine, role=role)
    warnings = [reading.note, *reading.warnings, found.note]
    chosen = spread_out(found.pairs, mine)[:max_pairs]
    matched = [(by_case[f], by_case[s]) for f, s in chosen]
    if len(found.pairs) > max_pairs:
        of_each = kept(chosen, found.pairs, mine) or "all of one family, depth and operation"
        warnings.append(f"{max_pairs} of {len(found.pairs)} pairs kept, spread evenly ({of_each})")
    if not matched:
        n = min(max_pairs, *(len(v) for v in groups.values()))
        order = torch.randperm(len(groups["success"]), generator=torch.Generator().manual_seed(seed)).tolist()
        matched = [(f, groups["success"][i]) for f, i in zip(groups["failure"][:n], order, strict=False)]
        warnings.append(f"no matched pairs: {n} failures are paired with successes at random")
    recipients, donors = [f for f, _ in matched], [s for _, s in matched]
    if alike := collisions([(f.answer_ids, s.answer_ids) for f, s in matched]):
        warnings.append(
            f"{alike} of {len(matched)} pairs: both answers begin with the same token, which does not tell the donor's "
            "answer from the recipient's (logit_difference is 0 there)"
        )
    pairs = [(i, i) for i in range(len(matched))]
    tokens = new_tokens(lm, [*recipients, *donors]) if max_new_tokens is None else max_new_tokens
    got = prompt_end_sweep(
        lm, [e.prompt_ids for e in donors], [e.prompt_ids for e in recipients], pairs, layers, tokens,
        donor_answers=[e.answer_ids for e in donors], recipient_answers=[e.answer_ids for e in recipients],
        graders=graders(lm, recipients, donors),
        clusters=([e.shares for e in donors], [e.shares for e in recipients]), controls=controls, seed=seed,
        progress=progress,
    )  # fmt: skip
    settings = {**got.settings, "cases": [(s.case, f.case) for f, s in matched], "role": role, **reading.settings}
    settings["site"] = f"residual stream after the block, {_PLACE[position]}"
    rows = [*got.table, *preceding_row(mine, [(f.case, s.case) for f, s in matched], role)]
    drop = ("tokens", "top_tokens", "top_log_probs")  # donor x recipient grids, of which only the diagonal was run
    tensors = {k: v for k, v in got.tensors.items() if k not in drop}
    axes = {k: v for k, v in got.axes.items() if k not in drop}
    for name in drop:
        tensors[name] = torch.stack([got.tensors[name][i, i] for i, _ in pairs])
        axes[name] = ("pair", *got.axes[name][2:])
    values = [value_rows(v["quantity"], [(recipients[v["recipient"]], v["value"])])[0] for v in got.values]
    return ProbeResult("patching", corrected(rows), tensors, axes, settings, [*warnings, *got.warnings], values)


def new_tokens(lm: Model, examples: Sequence[Example], most: int = MOST_TOKENS) -> int:
    """The number of tokens for continuations: that of the longest response, 24 to ``most``, within the context."""
    wanted = min(most, max(FEWEST_TOKENS, *(len(e.response_ids) for e in examples)))
    return room(lm.anatomy.context, [e.prompt_ids for e in examples], wanted)


def graders(lm: Model, recipients: Sequence[Example], donors: Sequence[Example]) -> tuple[Grader, Grader] | None:
    """Graders for ``prompt_end_sweep`` by the examples' gold answers; None without gold answers or a tokenizer."""
    if lm.tokenizer is None or any(e.gold is None for e in (*recipients, *donors)):
        return None
    return _grader(lm, recipients), _grader(lm, donors)


def _grader(lm: Model, examples: Sequence[Example]) -> Grader:
    marks = special_thinking_marks(lm.tokenizer)

    @cache
    def judge(i: int, ids: tuple[int, ...]) -> Grade:
        e = examples[i]
        assert e.gold is not None
        begun = e.prompt_ids[len(e.prompt_ids) - e.begun :]
        text = decode(lm.tokenizer, [*begun, *ids], lm.eos_ids, marks)
        return _graded(text, bool(ids) and ids[-1] in lm.eos_ids, e.gold)

    return lambda i, ids: judge(i, tuple(ids))


def _graded(text: str, ended: bool, gold: Gold) -> Grade:
    said, stopped = cut_after_stop(text, gold.stop, opened=gold.thinking)
    return gold.grade(said, "stop" if ended or stopped else "length")
