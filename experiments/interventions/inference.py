"""Interventions without training: steering or patching the prompt-end states of cases that fail.

This is a causal test of where the answer is decided. The labelled cases of a run are split in two. The first half gives
the direction (and the donors) and chooses the layer at which most of its own failures come right; only the second half
is counted. Outcomes are graded like the run's own answers. Controls: random directions or noise of the same length, the
reversed direction, the recipient's own state, the other layers, and the same step on cases that succeed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, NoCasesError
from ...evaluation.engines.base import cut_after_stop
from ...evaluation.engines.text import decode, special_thinking_marks
from ...evaluation.metrics import percent, span
from ...evaluation.statistics import rate_interval, share
from ...files import text_hash
from ...probes.examples import Example
from ...probes.result import ProbeResult, Row
from ...terminal import how_many, to_stderr
from ..console.printing import Reporter
from ..run.folder import INTERVENTIONS

if TYPE_CHECKING:
    from ..run.schema import Manifest

OUTCOMES = ("correct", "incorrect", "abstained", "invalid")
HASH = 64
"""Digits of a hash of weights; only a server's model has a name instead."""
SLACK = 16
"""Tokens beyond those of the longest answer: a control that runs in circles needs no more to be told from an answer."""


@dataclass(frozen=True)
class Halves:
    """Labelled wholes, split at random into two halves within family and depth."""

    learn: Mapping[str, list[Example]]
    """``failure`` and ``success`` cases that give the direction and the layer."""
    test: Mapping[str, list[Example]]


def halve(examples: Sequence[Example], n: int, seed: int) -> Halves:
    """At most ``n`` cases per group and half; every stratum contributes to both halves if it can.

    Raises ``NoCasesError`` unless both halves have both groups.
    """
    rng = random.Random(f"{seed}/steering")
    sides: tuple[dict[str, list[Example]], dict[str, list[Example]]] = (defaultdict(list), defaultdict(list))
    strata: dict[tuple[Any, ...], list[Example]] = defaultdict(list)
    for e in examples:
        if e.role == "whole":
            strata[e.group, e.family, e.depth].append(e)
    for turn, key in enumerate(sorted(strata, key=str)):
        rng.shuffle(strata[key])
        for i, e in enumerate(strata[key]):
            sides[(i + turn) % 2][e.group].append(e)
    for side in sides:
        for group in side.values():
            rng.shuffle(group)
            del group[n:]
    counts = [[len(side[g]) for g in ("failure", "success")] for side in sides]
    if not all(map(all, counts)):
        said = " and ".join(f"{how_many(f, 'failure')} with {how_many(s, 'success', 'successes')}" for f, s in counts)
        raise NoCasesError(f"the two halves have {said}; both halves need both groups, use a larger run")
    return Halves(*sides)


def intervene(
    recipe: str, run: str | Path, *, model: str | None = None, n: int = 32, layers: Sequence[int] | None = None,
    max_new_tokens: int | None = None, seed: int = 0, device: str | None = None, reporter: Reporter | None = None,
) -> ProbeResult:  # fmt: skip
    """Steer or patch the failures of an evaluated run, and save the result in its ``probes`` folder.

    Table: per source, layer, group (``failure``, ``success``) and outcome, the rate with an interval that respects what
    cases share. ``chosen`` marks the layer that the other half of the cases chose. ``max_new_tokens`` is by default
    that of the longest of their own answers and a few more, never more than the run's own limit or the context's room;
    a warning counts the continuations that had not ended.
    Raises ``InputError`` for an unknown recipe, ``NoCasesError`` without failures and successes.
    """
    from ..config import Config
    from ..models.target import load_local, opened_here
    from ..run import locked
    from ..run.reader import read_config, read_run

    if recipe not in INTERVENTIONS:
        raise InputError(f"--recipe {recipe}: use steering or patching on a run")
    evaluated, config = read_run(run), Config.read(read_config(run))
    target = load_local(opened_here(config, model, run, device), to_stderr)
    known = str(evaluated.manifest.identity.get("weights"))
    if len(known) == HASH and target.who != known:
        named = f"--model {model}" if model else config.model
        raise InputError(f"{named}: these are not the weights that answered in {evaluated.name}; give those that did")
    found = evaluated.evaluated()
    examples = found.examples(target.tokenizer, roles=["whole"])
    wholes = [a for a in found.per_case()[0].values() if a.role == "whole"]
    halves, lm = halve(examples, n, seed), target.open_model()
    limit = max(a.max_tokens for a in wholes)
    most = _room(lm.anatomy.context, examples, limit, max_new_tokens)
    bench = InterventionTrial(lm, target.tokenizer, wholes[0].format, config.asking.compat, most, seed, limit)
    chosen = list(range(lm.anatomy.n_layers)) if layers is None else sorted(set(layers))
    with locked(run) as path:
        result = bench.run(recipe, halves, chosen)
        folder = path / "probes" / INTERVENTIONS[recipe]
        _save(result, folder, evaluated.manifest, halves)
    if reporter is not None:
        reporter.say(f"{recipe}: {folder}")
    return result


def _room(context: int | None, examples: Sequence[Example], limit: int, given: int | None) -> int:
    """How many tokens a continuation may have, as ``intervene`` says."""
    if given is not None and given < 1:
        raise InputError(f"--max-tokens {given}: give at least 1")
    most = given or min(limit, max(len(e.response_ids) for e in examples) + SLACK)
    return most if context is None else max(1, min(most, context - max(len(e.prompt_ids) for e in examples)))


def _save(result: ProbeResult, folder: Path, manifest: Manifest, halves: Halves) -> None:
    """Save the result with the cases that it was measured on."""
    from ..probing import cases_of
    from ..run.writer import save_probe

    examples = [e for side in (halves.learn, halves.test) for group in side.values() for e in group]
    note = "one half of the cases of each group chooses the layer and gives the states, only the other half is counted"
    inputs = text_hash([repr(result.settings), *(repr(asdict(e)) for e in examples)])
    save_probe(result, folder, manifest, inputs, note=note, contrast=True, groups=cases_of(examples))


@dataclass(frozen=True)
class InterventionTrial:
    """A model with everything needed to run an intervention and judge its answers."""

    lm: Any
    tokenizer: Any
    format: str
    compat: str | None
    max_new_tokens: int
    seed: int
    limit: int = 0
    """Tokens that an answer of the run itself could have; 0 if unknown."""
    ended: list[bool] = field(default_factory=list[bool], repr=False)
    """Whether each continuation that was judged had ended."""

    def run(self, recipe: str, halves: Halves, layers: Sequence[int]) -> ProbeResult:
        """Choose the layer on the first half and count on the second."""
        trial = self._outcomes(recipe, halves, halves.learn["failure"], layers)
        best = self._best(trial, layers)
        rows: list[Row] = []
        for group in ("failure", "success"):
            outcomes = self._outcomes(recipe, halves, halves.test[group], layers)
            rows += _rows(outcomes, group, best, halves.test[group])
        rows += _rows(trial, "failure, first half", best, halves.learn["failure"])
        settings = {
            "recipe": recipe,
            "layers": list(layers),
            "chosen_layer": best,
            "right_on_first_half": max(v.count("correct") for (s, at), v in trial.items() if at == best and _helps(s)),
            "n": {half: {g: len(v) for g, v in side.items()} for half, side in vars(halves).items()},
            "cases": {half: {g: [e.case for e in v] for g, v in side.items()} for half, side in vars(halves).items()},
            "site": "residual stream after the block, last prompt position",
            "max_new_tokens": self.max_new_tokens,
            "seed": self.seed,
            "format": self.format,
            "compat": self.compat,
        }
        warnings = _warnings(rows)
        if (cut := self.ended.count(False)) and self.max_new_tokens < self.limit:
            warnings.append(
                f"{cut} of {len(self.ended)} continuations had not ended after {self.max_new_tokens} tokens and are "
                f"judged as answers that were cut; an answer of the run could have {self.limit} (--max-tokens)"
            )
        failures = halves.test["failure"]
        donors = self._donors(halves.learn["success"], failures) if recipe == "patching" else []
        if alike := sum(map(_same_answer, failures, donors)):
            warnings.append(
                f"{alike} of {len(failures)} failures have a donor with their own right answer: there is no other"
            )
        return ProbeResult(INTERVENTIONS[recipe], rows, settings=settings, warnings=warnings)

    def _outcomes(
        self, recipe: str, halves: Halves, recipients: Sequence[Example], layers: Sequence[int]
    ) -> dict[tuple[str, int], list[str]]:
        """Outcomes by (source, layer), one per recipient; layer -1 is the unchanged run."""
        from ...probes import steering

        prompts = [e.prompt_ids for e in recipients]
        if recipe == "steering":
            successes, failures = _ids(halves.learn["success"]), _ids(halves.learn["failure"])
            along = steering.direction(self.lm, successes, failures, layers)
            got = steering.steer(self.lm, prompts, along, layers, max_new_tokens=self.max_new_tokens, seed=self.seed)
        else:
            donors = {
                "donor": _ids(self._donors(halves.learn["success"], recipients)),
                "failing donor": _ids(self._donors(halves.learn["failure"], recipients)),
            }
            got = steering.patch(self.lm, prompts, donors, layers, max_new_tokens=self.max_new_tokens, seed=self.seed)
        found = {("unchanged", -1): [self._judge(e, got.base[i]) for i, e in enumerate(recipients)]}
        for s, source in enumerate(got.sources):
            for k, layer in enumerate(got.layers):
                found[source, layer] = [self._judge(e, got.tokens[i, s, k]) for i, e in enumerate(recipients)]
        return found

    def _donors(self, pool: Sequence[Example], recipients: Sequence[Example]) -> list[Example]:
        """For each recipient, a donor with another right answer, of its family and depth and with the nearest length;
        otherwise any other donor. A donor with the same answer could bring the answer itself.
        """
        rng = random.Random(f"{self.seed}/donors")
        chosen = []
        for e in recipients:
            others = [d for d in pool if d.case != e.case] or list(pool)
            rng.shuffle(others)
            chosen.append(min(others, key=partial(_distance, e)))
        return chosen

    def _judge(self, example: Example, tokens: Any) -> str:
        ids, gold = [int(t) for t in tokens if int(t) >= 0], example.gold
        assert gold is not None, "the run's own examples have one"
        text = decode(self.tokenizer, ids, self.lm.eos_ids, special_thinking_marks(self.tokenizer))
        said, stopped = cut_after_stop(text, gold.stop, opened=gold.thinking)  # cut where the run's own answers end
        ended = stopped is not None or len(ids) < self.max_new_tokens or ids[-1] in self.lm.eos_ids
        self.ended.append(ended)
        return gold.grade(said, "stop" if ended else "length", self.compat).outcome

    @staticmethod
    def _best(trial: Mapping[tuple[str, int], list[str]], layers: Sequence[int]) -> int:
        """The layer that puts most failures of the first half right, the lowest if several do; controls excluded."""
        right = dict.fromkeys(layers, 0)
        for (source, layer), outcomes in trial.items():
            if _helps(source):
                right[layer] = max(right[layer], outcomes.count("correct"))
        return max(layers, key=lambda layer: (right[layer], -layer))


def _distance(a: Example, b: Example) -> tuple[bool, bool, bool, int]:
    return _same_answer(a, b), a.family != b.family, a.depth != b.depth, abs(len(a.prompt_ids) - len(b.prompt_ids))


def _same_answer(a: Example, b: Example) -> bool:
    one, other = (e.gold.answer.strip().casefold() if e.gold else None for e in (a, b))
    return one is not None and one == other


def _helps(source: str) -> bool:
    """Whether a source is meant to put a failure right; all others are controls."""
    return source.startswith("+") or source == "donor"


def _ids(examples: Sequence[Example]) -> list[tuple[int, ...]]:
    return [e.prompt_ids for e in examples]


def _rows(
    outcomes: Mapping[tuple[str, int], list[str]], group: str, best: int, examples: Sequence[Example]
) -> list[Row]:
    rows, near = [], [e.shares for e in examples]
    for (source, layer), values in outcomes.items():
        for outcome in OUTCOMES:
            about = {"quantity": f"{outcome}_rate", "group": group, "source": source, "layer": layer}
            ends = rate_interval([v == outcome for v in values], near).columns()
            rows.append({**about, "chosen": layer == best, **share(values.count(outcome), len(values)), **ends})
    return rows


def _warnings(rows: Sequence[Row]) -> list[str]:
    """Warnings if the control that must change nothing changed something, or the run's labels do not come out."""
    by_key = {(r["group"], r["source"], r["layer"], r["quantity"]): r["count"] for r in rows}
    found = [
        f"{otherwise} of {r['n']} cases ({r['group']}) are judged otherwise than in the run, with nothing changed: "
        "fewer tokens, other numerics or a judge decide them"
        for r in rows
        if (r["source"], r["quantity"]) == ("unchanged", "correct_rate")
        and (otherwise := r["n"] - r["count"] if r["group"] == "success" else r["count"])
    ]
    differ = [
        (group, layer)
        for (group, source, layer, quantity), count in by_key.items()
        if source == "none" and count != by_key.get((group, "unchanged", -1, quantity), count)
    ]
    if differ:
        found.append(
            f"adding nothing changed outcomes of {differ[0][0]} at layer {differ[0][1]}: numerics decide some of them"
        )
    return found


def lines(result: ProbeResult) -> list[str]:
    """The result as text: the chosen layer against its controls, on cases that did not choose it."""
    best = result.settings["chosen_layer"]
    why = "chosen on" if result.settings["right_on_first_half"] else "shown, although no layer put a failure right on"
    found = [f"{result.settings['recipe']}: layer {best} {why} the first half of the cases; counted on the second"]
    for row in result.table:
        wanted = row["quantity"] == "correct_rate" and "half" not in row["group"]
        if wanted and (row["chosen"] or row["source"] == "unchanged"):
            found.append(f"  {row['group']}: {row['source']}: correct {_share(row)}")
    others = [
        r
        for r in result.table
        if r["quantity"] == "correct_rate" and r["group"] == "failure" and not r["chosen"] and _helps(r["source"])
    ]
    found += [f"  failure: {r['source']} at layer {r['layer']}: correct {_share(r)}" for r in others]
    return found + [f"  {w}" for w in result.warnings]


def _share(row: Row) -> str:
    if not row["n"]:
        return "undefined (n=0)"
    shown = partial(percent, digits=0)
    return f"{shown(row['value'])}{span(row['low'], row['high'], shown)} ({row['count']}/{row['n']})"
