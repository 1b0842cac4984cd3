"""The probes before and after a training, on the same cases: what changed inside the model when it learned to compose.

The cases are wholes above the depth-2 control whose parts every model answers right, whatever the whole. There is one
number per case and probe: the mean lookback ratio of the answer, the mean cosine of successive steps, the share of the
whole's key neurons that are also key neurons of its parts, and, per layer, whether another case's prompt-end state
changes the answer. Differences are paired by case. With one training on each side, they describe two models and not a
recipe.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...evaluation.case import shares as sharing
from ...evaluation.protocols.base import CaseSet
from ...files import file_sha256, text_hash
from ...probes.effects import mean_interval
from ...probes.examples import Example
from ...terminal import how_many
from ..console.printing import Reporter
from ..run import provenance, read_json, write_json
from ..run.reader import read_config, read_run
from ..run.schema import Evaluated

ValuesByCase = dict[str, dict[str, float]]
"""quantity -> case -> value"""
PATCHED_TOKENS = 48
"""How many tokens of a patched continuation are compared."""
Side = tuple[str, Path]
"""A model and its evaluated run."""


def compare(
    before: Side, after: Mapping[str, Side], out: str | Path, n: int, *, device: str | None = None,
    reporter: Reporter | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Rows ``{variant, quantity, n, before, after, value, low, high, interval}``, also saved in ``out/inside.json``.

    Nothing is measured again unless runs or code have changed.
    """
    file = Path(out) / "inside.json"
    sides = {"before": before, **after}
    hashes = [f"{name} {file_sha256(run / 'graded.jsonl')}" for name, (_, run) in sides.items()]
    inputs = text_hash([str(n), provenance.source_hash(("probes", "hooks", "experiments/interventions")), *hashes])
    if file.is_file() and (known := read_json(file)).get("inputs") == inputs:
        return known["rows"]
    runs = {name: read_run(run).evaluated() for name, (_, run) in sides.items()}
    cases = shared(list(runs.values()), n)
    values: dict[str, ValuesByCase] = {}
    for name, (model, run) in sides.items():
        if reporter is not None:
            reporter.say(f"inside: {name}, {how_many(len(cases), 'case')}")
        values[name] = measure(model, runs[name], run, cases, device)
    near = {id: sharing(case.cluster, case.crossed) for id, case in runs["before"].cases.items()}
    rows = [row for name in after for row in differences(name, values["before"], values[name], near)]
    write_json(file, {"inputs": inputs, "cases": cases, "rows": rows, "values": values})
    return rows


def shared(runs: Sequence[Evaluated], n: int) -> list[str]:
    """The first ``n`` cases above depth 2 with all parts right in all models, with families and depths in turn."""
    from ..validity.over_doses import parts_right

    known = [set(parts_right(run)) for run in runs]
    turns: dict[Any, int] = {}
    order = []
    for i, (id, case) in enumerate(runs[0].cases.items()):
        if (case.depth or 0) > 2 and all(id in ids for ids in known):
            key = (case.family, case.depth)
            turns[key] = turns.get(key, 0) + 1
            order.append((turns[key], i, id))
    return [id for _, _, id in sorted(order)[:n]]


def measure(model: str, run: Evaluated, folder: Path, cases: Sequence[str], device: str | None) -> ValuesByCase:
    """Every probe's number per case, for one model."""
    from ..config import Config
    from ..distributed.engine import load_target
    from ..models.target import loading_of
    from ..validity.scores import lookback_ratios, step_cosines

    if len(cases) < 2:
        return {}
    target = load_target(loading_of(Config.read(read_config(folder), model=model, device=device, probes=())))
    examples = run.examples(target.tokenizer, [CaseSet.of("success", cases)])
    wholes = [e for e in examples if e.role == "whole"]
    lm = target.open_model()
    return {
        "lookback ratio": dict(lookback_ratios(lm, wholes)["mean lookback ratio"]),
        "step-to-step cosine": dict(step_cosines(lm, wholes)["mean step cosine"]),
        **_neurons(lm, examples),
        **_patching(lm, wholes),
    }


def _neurons(lm: Any, examples: Sequence[Example]) -> ValuesByCase:
    """Mean overlap of the whole's key neurons with those of each of its parts (gold answers' first tokens)."""
    from ...probes import neurons

    sets = neurons.key_neurons(lm, examples)
    whole = {e.case: s for e, s in zip(examples, sets, strict=True) if e.role == "whole"}
    shares: dict[str, list[float]] = {case: [] for case in whole}
    for e, mine in zip(examples, sets, strict=True):
        if e.role != "whole":
            shares[e.case].append(float(neurons.share(whole[e.case], mine).overlap))
    means = {}
    for case, found in shares.items():
        finite = [x for x in found if math.isfinite(x)]
        means[case] = sum(finite) / len(finite) if finite else math.nan
    return {"neurons shared with the parts": means}


def _patching(lm: Any, wholes: Sequence[Example]) -> ValuesByCase:
    """Whether the prompt-end state of the next case in its family changes a case's answer, per layer.

    The first token alone would say nothing in formats whose answers all begin with the same tag.
    """
    from ...probes import patching

    pairs = _next_of_family(wholes)
    if not pairs:
        return {}
    prompts = [e.prompt_ids for e in wholes]
    got = patching.prompt_end_sweep(lm, prompts, prompts, pairs, max_new_tokens=PATCHED_TOKENS, controls=())
    tokens, base = got.tensors["tokens"], got.tensors["base_tokens"]
    return {
        f"patch at layer {layer} changes the answer": {
            wholes[r].case: float((tokens[d, r, k] != base[r]).any()) for d, r in pairs
        }
        for k, layer in enumerate(got.settings["layers"])
    }


def _next_of_family(wholes: Sequence[Example]) -> list[tuple[int, int]]:
    """(donor, recipient): every case with the next case of its family and depth."""
    groups: dict[Any, list[int]] = {}
    for i, e in enumerate(wholes):
        groups.setdefault((e.family, e.depth), []).append(i)
    return [(mine[(k + 1) % len(mine)], r) for mine in groups.values() if len(mine) > 1 for k, r in enumerate(mine)]


def differences(
    variant: str, before: ValuesByCase, after: ValuesByCase, near: Mapping[str, Hashable] | None = None
) -> list[dict[str, Any]]:
    """After minus before, paired by case, with Student's interval over cases or what they share (``near``).

    Undefined values are left out.
    """
    rows = []
    for quantity, left in before.items():
        right = after.get(quantity, {})
        known = [c for c in left if c in right and math.isfinite(left[c]) and math.isfinite(right[c])]
        pairs = [(left[c], right[c]) for c in known]
        row: dict[str, Any] = {"variant": variant, "quantity": quantity, "n": len(pairs), "before": None, "after": None}
        row |= {"value": None, "low": None, "high": None, "interval": "none"}
        if pairs:
            row["before"], row["after"] = (sum(p[i] for p in pairs) / len(pairs) for i in (0, 1))
            e = mean_interval([b - a for a, b in pairs], None if near is None else [near[c] for c in known])
            low, high = ((x if math.isfinite(x) else None) for x in (e.low, e.high))
            row |= {"value": e.value, "low": low, "high": high, "interval": e.interval}
        rows.append(row)
    return rows
