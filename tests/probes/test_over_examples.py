"""The probes over labelled examples: tables with n and families, named tensors, and files that read back."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy import stats
from tiny_models import tiny

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.dependence import Sides
from composcope.hooks import Model, load_model
from composcope.probes import effects, faithfulness, lookback, min_k, neurons, patching, readout, trajectory
from composcope.probes.catalog import PROBES, described
from composcope.probes.examples import Example
from composcope.probes.matching import match
from composcope.probes.result import ProbeResult

from . import synthetic_readouts
from .test_faithfulness import follows, played

REGIONS = ("sink", "template", "question", "cue", "response")


def _examples(n: int = 6, cluster: bool = False) -> list[Example]:
    rng = np.random.default_rng(0)
    out = []
    for group in ("failure", "success"):
        for i in range(n):
            for k, (role, kind, length) in enumerate((("whole", "composition", 18), ("part:0", "math", 9),
                                                      ("part:1", "math", 8))):  # fmt: skip
                prompt = (*(int(t) for t in rng.integers(3, 97, length - 2 + i % 3)), 7, 8)
                response = (*(int(t) for t in rng.integers(3, 97, 3 + (i + k + (group == "success")) % 4)), 2)
                case, near = f"{group[0]}{i}", f"k{i // 2}{group}" if cluster else None
                span = (2, length - 2)
                out.append(Example(case, role, kind, group, prompt, response, (5,), 2, span, "pair", 2, "add", near))
    return out


@pytest.fixture(scope="module")
def lm() -> Model:
    return load_model(tiny("llama"))


def _rows(result: ProbeResult, **where: object) -> list[dict]:
    return [r for r in result.table if all(r.get(k) == v for k, v in where.items())]


def _readable(result: ProbeResult, folder: Path) -> None:
    """Every row has what a row must have, and what is saved is what was found."""
    for row in result.table:
        assert {"quantity", "group", "n", "value", "low", "high", "interval"} <= set(row)
        assert "p" not in row or ("effect" in row and row["n"] >= 0)
    assert set(result.axes) == set(result.tensors)
    for name, tensor in result.tensors.items():
        assert tensor.ndim == len(result.axes[name]), name
    folder = result.save(folder / "a run" / "probes" / result.probe)
    with (folder / "table.csv").open() as f:
        assert len(list(csv.DictReader(f))) == len(result.table)
    assert load_file(folder / "tensors.safetensors").keys() == result.tensors.keys()
    assert json.loads((folder / "result.json").read_text())["settings"]["dtype"] == "torch.float32"


def test_lookback_over_examples_averages_ratios_by_kind_and_group(lm: Model, tmp_path: Path) -> None:
    examples = _examples()
    got = lookback.over_examples(lm, examples, permutations=200)
    _readable(got, tmp_path)
    assert got.settings["cases"] == [e.case for e in examples if e.role == "whole"]
    assert got.tensors["wholes"].shape == (12, 3, 4)
    wholes = [e for e in examples if e.kind == "composition" and e.group == "failure"]
    ratios = lookback.ratios(lm, [e.prompt_ids for e in wholes], [e.response_ids for e in wholes], 2)
    want = torch.stack([r.nanmean(-1) for r in ratios]).mean(0)
    torch.testing.assert_close(got.tensors["ratio.composition.failure"], want, atol=1e-6, rtol=0)
    difference = got.tensors["ratio.math.failure"] - got.tensors["ratio.math.success"]
    torch.testing.assert_close(got.tensors["difference.math"], difference, atol=1e-6, rtol=0)
    row = _rows(got, quantity="lookback_ratio", kind="composition", group="failure")[0]
    assert row["n"] == 6 and row["value"] == pytest.approx(float(torch.stack([r.nanmean() for r in ratios]).mean()))
    # two parts of one kind are one value per case
    assert _rows(got, quantity="lookback_ratio", kind="math", group="failure")[0]["n"] == 6
    across = _rows(got, quantity="lookback_ratio", group="failure - success")
    assert [r["kind"] for r in across] == ["composition", "math"]
    assert all(r["p_adjusted"] >= r["p"] for r in across)
    within = [r for r in _rows(got, quantity="lookback_ratio", kind="composition - math") if "p" in r]
    assert [(r["kind"], r["group"], r["n"]) for r in within] == [
        ("composition - math", "failure", 6),
        ("composition - math", "success", 6),
    ]
    shares = [_rows(got, quantity=f"mass_{r}", kind="math", group="failure")[0]["value"] for r in REGIONS]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert _rows(got, quantity="lookback_ratio_sum") and got.tensors["p.composition"].shape == (3, 4)


def test_steps_cap_makes_responses_of_different_length_comparable(lm: Model) -> None:
    examples = _examples(3)
    got = lookback.over_examples(lm, examples, steps=2, permutations=50)
    e = examples[0]
    want = lookback.ratios(lm, [e.prompt_ids], [e.response_ids[:2]], 2)[0]
    only = lookback.over_examples(lm, [e], steps=2).table[0]
    assert only["value"] == pytest.approx(float(want.nanmean()), abs=1e-6)
    assert got.settings["steps"] == 2
    swapped = lookback.over_examples(lm, [e], steps=2, form="sum").table
    summed = lookback.ratios(lm, [e.prompt_ids], [e.response_ids[:2]], 2, form="sum")[0]
    for name, ratio in (("lookback_ratio", summed), ("lookback_ratio_mean", want)):
        [value] = [r["value"] for r in swapped if r["quantity"] == name]
        assert value == pytest.approx(float(ratio.nanmean()), abs=1e-6)


def test_steps_without_anything_new_are_counted_and_said(lm: Model) -> None:
    bare = [Example(**{**e.__dict__, "cue_tokens": 0}) for e in _examples(2)]
    got = lookback.over_examples(lm, bare, permutations=50)
    assert got.settings["nan_steps"] == len(bare)
    assert "NaN" in got.warnings[0]
    assert all(np.isfinite(r["value"]) for r in got.table)


def test_trajectory_over_examples_gives_cosines_per_layer_and_steps_by_group(lm: Model, tmp_path: Path) -> None:
    examples = _examples()
    got = trajectory.over_examples(lm, examples, permutations=200)
    _readable(got, tmp_path)
    wholes = {g: [e for e in examples if e.role == "whole" and e.group == g] for g in ("failure", "success")}
    sides = [[e.prompt_ids for e in wholes[g]] for g in ("success", "failure")]
    centered, direct = (trajectory.prompt_end_cosines(lm, *sides, centered=c) for c in (True, False))
    for name, cosines in (("centered", centered), ("prompt_end", direct)):
        for key in ("dd", "rr", "dr"):
            torch.testing.assert_close(got.tensors[f"{name}.{key}"], getattr(cosines, key).float())
            assert got.axes[f"{name}.{key}"] == ("layer",)
        across = _rows(got, quantity=f"{name}_cosine", group="across")
        assert [r["value"] for r in across] == pytest.approx(cosines.dr.tolist())
    dd = _rows(got, quantity="prompt_end_cosine", group="within successes")
    assert len(dd) == 3 and dd[0]["n"] == 15
    assert dd[0]["low"] <= dd[0]["value"] <= dd[0]["high"]
    assert dd[0]["value"] == pytest.approx(float(direct.dd[0]))
    steps = trajectory.step_cosines(
        lm, [e.prompt_ids for e in wholes["failure"]], [e.response_ids for e in wholes["failure"]]
    )
    first = torch.stack([s.cosines[:, 0] for s in steps]).mean(0).float()
    torch.testing.assert_close(got.tensors["step.failure"][:, 0], first)
    assert got.tensors["step_n.failure"].tolist() == [6, 6, 6, 4, 2, 1][: len(got.tensors["step_n.failure"])]
    each = {r["case"]: r["value"] for r in got.values if r["group"] == "failure"}
    means = {e.case: s.cosines.mean() for e, s in zip(wholes["failure"], steps, strict=True)}
    assert each == pytest.approx({case: float(mean) for case, mean in means.items()}), "over all layers and steps"
    assert {(r["quantity"], r["role"]) for r in got.values} == {("step_cosine", "whole")}


def test_separation_finds_groups_of_prompts_that_end_differently(lm: Model) -> None:
    rng = np.random.default_rng(1)
    examples = []
    for i in range(16):
        group = "failure" if i % 2 else "success"
        body = [int(t) for t in rng.integers(3, 97, 2)]
        ending = list(range(11, 23)) if i % 2 else list(range(50, 62))
        prompt = tuple(body + ending)
        examples.append(Example(f"c{i}", "whole", "composition", group, prompt, (5, 6), (5,), 0, (0, 8)))
    found = trajectory.over_examples(lm, examples, permutations=300)
    rows = _rows(found, quantity="centered_cosine_separation")
    assert all(r["p_adjusted"] < 0.02 and r["low"] > 0 for r in rows)
    rng.shuffle(groups := [e.group for e in examples])
    mixed = [Example(**{**e.__dict__, "group": g}) for e, g in zip(examples, groups, strict=True)]
    null = _rows(trajectory.over_examples(lm, mixed, permutations=300), quantity="centered_cosine_separation")
    assert min(r["p_adjusted"] for r in null) > 0.02


def test_one_group_alone_gives_its_steps_and_says_what_is_missing(lm: Model) -> None:
    got = trajectory.over_examples(lm, [e for e in _examples() if e.group == "failure"])
    assert any("no prompt-end comparison possible" in w for w in got.warnings)
    assert "step.failure" in got.tensors and "prompt_end.dd" not in got.tensors
    with pytest.raises(NoCasesError, match="scaffold:1"):
        trajectory.over_examples(lm, _examples(), role="scaffold:1")


def test_a_question_with_a_token_of_probability_0_is_left_out_of_the_curve_over_ratios_too(
    lm: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples, real = _examples(), min_k.collect

    def impossible(*args: Any) -> list[dict[str, Any]]:
        first, *others = real(*args)
        return [{**first, "z": np.append(first["z"][:-1], -np.inf)}, *others]

    name = f"by_ratio.{examples[0].kind}.{examples[0].group}"
    without = min_k.over_examples(lm, examples[1:]).tensors[name]
    monkeypatch.setattr(min_k, "collect", impossible)
    got = min_k.over_examples(lm, examples)
    assert torch.equal(got.tensors[name], without) and any("left out" in w for w in got.warnings)


def test_min_k_over_examples_scores_the_questions_own_tokens(lm: Model, tmp_path: Path) -> None:
    examples = _examples()
    got = min_k.over_examples(lm, examples)
    _readable(got, tmp_path)
    parts = [e for e in examples if e.kind == "math" and e.group == "success"]
    want = min_k.score(lm, [e.prompt_ids for e in parts], spans=[e.question_span for e in parts])
    np.testing.assert_allclose(got.tensors["min_k_pp.math.success"], want.min_k_pp, rtol=1e-5)
    row = _rows(got, quantity="min_k_pp", kind="math", group="success")[0]
    per_case = np.nanmean(want.min_k_pp.reshape(-1, 2), axis=1)
    assert row["value"] == pytest.approx(np.nanmean(per_case)) and row["n"] == 6
    tokens = min_k.token_scores(lm, [e.prompt_ids for e in parts], [e.question_span for e in parts])
    curve = [np.mean([min_k.lowest(t.z, r, True) for t in tokens]) for r in min_k.RATIOS]
    np.testing.assert_allclose(got.tensors["by_ratio.math.success"], curve, rtol=1e-5)
    medians = np.mean([np.median(t.z) for t in tokens])
    assert _rows(got, quantity="z_median", kind="math", group="success")[0]["value"] == pytest.approx(medians)
    assert got.tensors["tokens.composition.failure"].tolist() == [14] * 6
    axes = {name.partition(".")[0]: axis for name, axis in got.axes.items()}
    assert axes == {"min_k_pp": ("case",), "by_ratio": ("ratio",), "tokens": ("case",)}
    whole = min_k.over_examples(lm, examples[:3], question_only=False)
    drawn = [r for r in min_k.over_examples(lm, parts, k=0.5, seed=3).values if r["quantity"].endswith("matched")]
    cut = [min_k.length_matched(t.z, 4, 0.5, seed=3) for t in tokens]  # of four and five tokens
    assert [r["value"] for r in drawn] == pytest.approx(cut, rel=1e-5)
    wholes = [e for e in examples if e.role == "whole"]
    short = min_k.over_examples(lm, [*wholes, replace(wholes[0], case="short", question_span=(3, 6))], k=0.25)
    assert short.settings["short_texts"] == 1 and short.warnings[0].startswith("1 questions have too few")
    assert [r["n"] for r in short.table[:2]] == [6, 6], "a score that is not there is left out"
    assert whole.tensors["tokens.composition.failure"].tolist() == [len(examples[0].prompt_ids) - 1]
    assert {r["quantity"] for r in got.table} == {
        *("min_k_pp", "min_k", "log_prob", "z_median", "min_k_pp_length_matched")
    }


def test_shared_clusters_reach_the_tables(lm: Model) -> None:
    examples = _examples(10, cluster=True)
    got = min_k.over_examples(lm, examples)
    assert _rows(got, quantity="min_k_pp", kind="math", group="failure")[0]["interval"] == "CR2 t over clusters"
    assert _rows(got, quantity="min_k_pp", group="failure - success")[0]["test"] == "cluster-robust t"
    maps = lookback.over_examples(lm, examples, permutations=100)
    assert "p.composition" in maps.tensors
    few = lookback.over_examples(lm, _examples(cluster=True), permutations=100)
    assert "p.composition" not in few.tensors
    (row,) = _rows(few, quantity="lookback_ratio_map", kind="composition")
    assert row["n"] == 0 and "at least 5" in row["note"]


def test_matched_failures_and_successes_are_compared_pair_by_pair(lm: Model) -> None:
    examples = _examples()
    got = lookback.over_examples(lm, examples, permutations=50)
    pairs = match(examples).pairs
    assert len(pairs) == 6
    value = {}
    for e in examples:
        if e.kind == "composition":
            ratio = lookback.ratios(lm, [e.prompt_ids], [e.response_ids], 2)[0]
            value[e.case] = ratio.double()
    d = [float(value[f].nanmean() - value[s].nanmean()) for f, s in pairs]
    row = _rows(got, quantity="lookback_ratio", group="matched failure - success", kind="composition")[0]
    assert row["n"] == 6 and row["value"] == pytest.approx(np.mean(d), abs=1e-6)
    assert row["p"] == pytest.approx(np.asarray(stats.ttest_1samp(d, 0))[1], rel=1e-4)
    assert row["family"] == "primary, Holm" and row["p_adjusted"] == row["p"]  # one of this kind in a probe
    short = [min(value[f].shape[-1], value[s].shape[-1]) for f, s in pairs]
    cut = [
        float(value[f][..., :n].nanmean() - value[s][..., :n].nanmean()) for (f, s), n in zip(pairs, short, strict=True)
    ]
    matched = _rows(got, quantity="lookback_ratio_length_matched", group="matched failure - success")
    assert matched[0]["value"] == pytest.approx(np.mean(cut), abs=1e-6)
    scores = min_k.over_examples(lm, examples)
    where = {"quantity": "min_k_pp_length_matched", "group": "matched failure - success"}
    assert _rows(scores, **where, kind="composition")[0]["n"] == 6
    short = _rows(scores, **where, kind="math")[0]  # four tokens at most: no score, and the row says so
    assert short["n"] == 0 and "no contrast possible" in short["note"]
    assert _rows(min_k.over_examples(lm, examples, k=0.5), **where, kind="math")[0]["n"] == 6


def test_length_matching_uses_the_shortest_response_of_each_case(lm: Model) -> None:
    examples = [e for e in _examples(3) if e.group == "failure"]
    got = lookback.over_examples(lm, examples, permutations=50)
    shortest = {c: min(len(e.response_ids) for e in examples if e.case == c) for c in ("f0", "f1", "f2")}
    values = []
    for e in examples:
        if e.kind == "composition":
            response = e.response_ids[: shortest[e.case]]
            values.append(float(lookback.ratios(lm, [e.prompt_ids], [response], 2)[0].nanmean()))
    row = _rows(got, quantity="lookback_ratio_length_matched", kind="composition", group="failure")[0]
    assert row["value"] == pytest.approx(np.mean(values), abs=1e-6)
    assert "no matched pairs" in got.settings["matched"]


def test_worked_examples_are_a_region_of_their_own(lm: Model) -> None:
    examples = [replace(e, few_shot_span=(1, 4), question_span=(5, 8)) for e in _examples(2) if e.kind == "math"]
    got = lookback.over_examples(lm, examples, permutations=50)
    names = (*REGIONS, "few_shot")
    shares = [_rows(got, quantity=f"mass_{r}", kind="math", group="failure")[0]["value"] for r in names]
    assert sum(shares) == pytest.approx(1, abs=1e-5) and min(shares) > 0


Run = Callable[[list[Example]], ProbeResult]
PROBED: dict[str, Callable[..., tuple[Run, list[Example]]]] = {
    "lookback": lambda lm, *n: (partial(lookback.over_examples, lm, permutations=20), _examples(*n)),
    "min-k": lambda lm, *n: (partial(min_k.over_examples, lm), _examples(*n)),
    "trajectory": lambda lm, *n: (partial(trajectory.over_examples, lm, permutations=20), _examples(*n)),
    "patching": lambda lm, *n: (
        partial(patching.over_examples, lm, max_new_tokens=1, controls=("identity",)), _examples(*n)),
    "neurons": lambda lm, *n: (partial(neurons.over_examples, lm), _examples(*n)),
    "readout": lambda *_: (
        partial(readout.over_examples, synthetic_readouts.planted(lambda i: i % 2 == 1), permutations=20),
        synthetic_readouts.examples()),
    "faithfulness": lambda *_: (partial(faithfulness.over_examples, (given := played(follows))[0]), given[1]),
}  # fmt: skip


NAMES = ("quantity", "group", "kind", "layer", "place", "foils", "step", "shown", "measure")
OTHER = {"failure": "success", "success": "failure"}


@cache
def _probed(probe: str, how: str = "") -> tuple[ProbeResult, list[Example]]:
    """A probe over cases of which two share a fact each; ``how``: in another order, or with the labels exchanged."""
    run, examples = PROBED[probe](load_model(tiny("llama")), 10)
    wholes = {g: [e.case for e in examples if (e.group, e.role) == (g, "whole")] for g in OTHER}
    examples = [replace(e, cluster=f"{e.group} {wholes[e.group].index(e.case) // 2}") for e in examples]
    if how == "mixed":
        turns, grouped = [*chain(*zip(*wholes.values(), strict=True))], sorted(examples, key=lambda e: e.group)
        examples = sorted(examples, key=lambda e: turns.index(e.case)) if examples == grouped else grouped
    if how == "exchanged":
        examples = [replace(e, group=OTHER[e.group]) for e in examples]
    return run(examples), examples


def _keyed(result: ProbeResult) -> dict[tuple[Any, ...], Any]:
    return {tuple(r.get(name) for name in NAMES): r for r in result.table}


def _alike(given: Any, wanted: Any) -> bool:
    of_numbers = isinstance(wanted, float | list)
    return given == (pytest.approx(wanted, rel=1e-4, abs=1e-6, nan_ok=True) if of_numbers else wanted)


@pytest.mark.parametrize("probe", PROBES)
def test_the_order_of_the_groups_changes_no_number(probe: str) -> None:
    got, other = (_probed(probe, how)[0] for how in ("", "mixed"))
    rows, mixed = _keyed(got), _keyed(other)
    assert rows.keys() == mixed.keys() and len(rows) > 20
    for key, row in rows.items():
        if not re.search("log_ratio_|^gradient|_map$", key[0]):  # drawn anew
            assert all(_alike(mixed[key].get(k), row.get(k)) for k in ("n", "count", "value", "low", "high")), key
    for name, axes in got.axes.items():
        in_order = {"case", "pair", "reading", "recipient", "donor"} & {*axes}
        if not in_order and not re.search(r"(^|\.)(step_)?p\.", name):
            torch.testing.assert_close(got.tensors[name], other.tensors[name], equal_nan=True, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("probe", ["lookback", "min-k", "trajectory", "neurons", "faithfulness"])
def test_exchanged_labels_exchange_the_groups_and_turn_their_differences(probe: str) -> None:
    got, other = (_probed(probe, how)[0] for how in ("", "exchanged"))
    sides = {**OTHER, "within failures": "within successes", "within successes": "within failures"}
    turned = _keyed(other)
    for (quantity, group, *more), row in _keyed(got).items():
        if not group.startswith("matched") and not quantity.endswith(("_map", "_layers")):  # other pairs, another cell
            there, sign = turned[quantity, sides.get(group, group), *more], -1 if group == "failure - success" else 1
            wanted = [sign * x for x in (there["value"], *(there["low"], there["high"])[::sign])]
            assert row["n"] == there["n"] and _alike([row[k] for k in ("value", "low", "high")], wanted), row
    sides |= {"dd": "rr", "rr": "dd"}
    for name, x in got.tensors.items():
        if not re.search(r"(^|\.)(step_)?p\.|wholes", name):
            there = other.tensors[".".join(sides.get(part, part) for part in name.split("."))]
            torch.testing.assert_close(x, -there if name.startswith("difference") else there, equal_nan=True)


@pytest.mark.parametrize("probe", [p for p in PROBES if p != "patching"])  # its values are means over layers
def test_rows_are_what_the_values_of_the_examples_give(probe: str) -> None:
    got, examples = _probed(probe)
    shares = {e.case: e.shares for e in examples}
    cells: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for v in got.values:
        for group in (v["group"], "all"):
            cells.setdefault((v["quantity"], v["kind"], group), {}).setdefault(v["case"], []).append(v["value"])
    means, every = (
        {key: {c: float(mean(v)) for c, v in of.items() if np.isfinite(mean(v))} for key, of in cells.items()}
        for mean in (lambda v: np.mean([x for x in v if np.isfinite(x)] or np.nan), np.mean)  # a pair has all parts
    )
    matched = match(examples)
    checked = set()
    for row in got.table:
        quantity, paired = row["quantity"].removesuffix("_unpaired"), row["group"].startswith("matched")
        kinds, groups = row.get("kind", "").split(" - "), row["group"].removeprefix("matched ").split(" - ")
        sides = [(every if paired else means).get((quantity, k, g), {}) for k in kinds for g in groups]
        at = {k: row[k] for k in ("layer", "foils", "step", "shown", "measure", "place") if k in row}
        if not any(sides) or not at.items() <= {"foils": "absent", "step": "all", "place": "answer-slot"}.items():
            continue
        checked.add((row["quantity"], *kinds, *groups))
        near = [[shares[c] for c in side] for side in sides]
        if paired or (len(kinds) > 1 and not row["quantity"].endswith("_unpaired")):
            pairs = matched.pairs if paired else [(c, c) for c in sides[0]]
            known = [(a, b) for a, b in pairs if a in sides[0] and b in sides[1]]
            d = [sides[0][a] - sides[1][b] for a, b in known]
            labels = [Sides(shares[a], shares[b]) if paired else shares[a] for a, b in known]
            n, found = len(d), effects.mean_interval(d, labels)
        elif len(sides) > 1:
            x, y = (list(side.values()) for side in sides)
            of = (None, None) if row["quantity"].endswith("_unpaired") else (near[0], near[1])
            n, found = len(x) + len(y), effects.difference_interval(x, y, of)
        else:
            n, found = len(sides[0]), effects.mean_interval(list(sides[0].values()), near[0])
        assert row["n"] == n, row
        if "adjusted" in row.get("note", ""):
            assert row["unadjusted"] == pytest.approx(found.value), row
        elif n > 1 and (probe != "faithfulness" or found.interval == row["interval"]):  # whose shares are exact
            ends = [row[k] for k in ("value", "low", "high")]
            assert ends == pytest.approx([*found[:3]], rel=1e-4, abs=1e-6, nan_ok=True), row
    assert len(checked) > (0 if probe == "trajectory" else 10), checked


@pytest.mark.parametrize("probe", PROBES)
def test_cases_that_share_everything_get_a_wider_interval_or_none(lm: Model, probe: str) -> None:
    run, examples = PROBED[probe](lm)

    def intervals(given: list[Example]) -> dict[tuple[Any, ...], float]:
        """Widths by row; infinite where there is none."""
        rows = [r for r in run(given).table if not r["quantity"].endswith(("_unpaired", "_map"))]
        widths = {tuple(r.get(name) for name in NAMES): r["high"] - r["low"] for r in rows}
        return {key: np.inf if np.isnan(width) else width for key, width in widths.items()}

    alone = intervals(examples)
    shared = intervals([replace(e, cluster=e.group) for e in examples])
    known = [key for key, width in alone.items() if 0 < width < np.inf and key in shared]
    assert len(known) > 20 and all(shared[key] > alone[key] for key in known)


@pytest.mark.parametrize("cue", [(9, 8), (7, 9)])
def test_donors_and_recipients_of_different_templates_are_refused(lm: Model, cue: tuple[int, int]) -> None:
    chat = [replace(e, cue_tokens=3, prompt_ids=(*e.prompt_ids, 6)) for e in _examples(2)]
    other = [replace(e, prompt_ids=(*e.prompt_ids[:-2], *cue)) if e.group == "failure" else e for e in chat]
    for act in (trajectory.over_examples, lookback.over_examples, patching.over_examples):
        with pytest.raises(InputError, match="different templates"):
            act(lm, other)
    raw = [replace(e, cue_tokens=0) if e.group == "success" else e for e in chat]
    with pytest.raises(InputError, match="different templates"):
        match(raw)
    merged = [replace(e, prompt_ids=(*e.prompt_ids[:-3], 40 + i, *e.prompt_ids[-2:])) for i, e in enumerate(chat)]
    assert match(merged).possible  # a question's end merged into the first cue token


def test_too_little_memory_shrinks_the_batch_and_the_result_says_so(lm: Model) -> None:
    examples = _examples(3)
    want = lookback.over_examples(lm, examples, permutations=50)

    def full(module: object, args: tuple, kwargs: dict) -> None:
        x = args[0] if args else kwargs["hidden_states"]
        if x.shape[0] > 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    handle = lm.anatomy.layers[1].block.register_forward_pre_hook(full, with_kwargs=True)
    try:
        got = lookback.over_examples(lm, examples, permutations=50)
        steps = trajectory.over_examples(lm, examples, permutations=50)
        scores = min_k.over_examples(lm, examples)
    finally:
        handle.remove()
    torch.testing.assert_close(got.tensors["ratio.math.failure"], want.tensors["ratio.math.failure"])
    for result in (got, steps, scores):
        assert any("out of memory with" in w for w in result.warnings)
    assert not any("memory" in w for w in want.warnings)


def test_a_result_is_saved_whatever_its_settings_are(tmp_path: Path) -> None:
    made: list[Path] = []
    write = ProbeResult._write
    numbers = torch.arange(4)
    tensors = {"t": numbers[::2], "all": numbers, "again": numbers}  # of one piece of memory
    result = ProbeResult("p", [{"a": 1}], tensors, {"t": ("x",)}, {"from": Path("a/b")}, ["w"], [{"v": 2}])
    held = tmp_path / "r"
    with patch.object(ProbeResult, "_write", side_effect=lambda folder: made.append(folder) or write(result, folder)):
        result.save(held)
    assert made[0].parent == tmp_path and fnmatch(made[0].name, ".r.*.tmp"), "what files.sweep removes"
    about = json.loads((tmp_path / "r" / "result.json").read_text())
    assert about == {"schema": 1, "probe": "p", "axes": {"t": ["x"]}, "settings": {"from": "a/b"}, "warnings": ["w"]}
    assert {f.name for f in (tmp_path / "r").iterdir()} == {
        "table.csv",
        "values.csv",
        "tensors.safetensors",
        "result.json",
    }
    kept = load_file(tmp_path / "r" / "tensors.safetensors")
    assert {name: x.tolist() for name, x in kept.items()} == {name: x.tolist() for name, x in tensors.items()}
    replace(result, tensors={}, values=[]).save(tmp_path / "r")
    assert {f.name for f in (tmp_path / "r").iterdir()} == {"table.csv", "result.json"}


REACH: dict[str, dict[str, Any]] = {
    "neurons": {"rows_dtype": "float32", "position": "prompt-end"}, "patching": {"position": "prompt-end"},
    "trajectory": {"position": "prompt-end"}, "lookback": {}, "min-k": {}, "readout": {}, "faithfulness": {},
}  # fmt: skip
"""The settings that each standard probe's function gets, beside the model, the examples and a bar."""


@pytest.mark.parametrize("name", [p.name for p in described()])
def test_settings_of_probes_reach_the_function_that_measures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[dict[str, Any]] = []

    def over_examples(lm: Any, examples: Any, **given: Any) -> ProbeResult:
        assert (lm, examples) == ("model", ["example"])
        got.append(given)
        return ProbeResult(name, [])

    module = {"min-k": "min_k"}.get(name, name)
    monkeypatch.setattr(f"composcope.probes.{module}.over_examples", over_examples)
    monkeypatch.setattr("composcope.hooks.precision.widens", lambda lm, dtype: False)
    settings: Any = SimpleNamespace(rows_dtype="float32", position="prompt-end")
    PROBES[name].run("model", ["example"], settings, SimpleNamespace(bar="bar"))  # type: ignore[arg-type]
    (given,) = got
    assert given == REACH[name] | ({} if name in ("readout", "faithfulness") else {"progress": "bar"})


def test_failures_without_a_match_are_paired_at_random_and_this_is_said(lm: Model) -> None:
    apart = [replace(e, family=e.group) for e in _examples(4)]
    run = partial(patching.over_examples, lm, apart, layers=[1], max_new_tokens=2, controls=(), position="prompt-end")
    found = run(max_pairs=3)
    said = [w for w in found.warnings if "no matched pairs" in w]
    assert len(said) == 1 and "3 failures" in said[0] and run(max_pairs=3).table == found.table != run(seed=1).table
    matched = patching.over_examples(lm, _examples(4), layers=[1], max_new_tokens=2, controls=(), position="prompt-end")
    assert not any("no matched pairs" in w for w in matched.warnings)
