# ruff: noqa: E501
"""Rules of single probes that need no model, at their limits and with values by hand."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from composcope.errors import InputError, ModelError, NoCasesError
from composcope.evaluation.cases import Case, Part
from composcope.probes import min_k, positions, slots, trajectory, validity
from composcope.probes.answer_spans import answer_span
from composcope.probes.examples import Example, part_of
from composcope.probes.faithfulness.altering import result_of
from composcope.probes.lookback.measuring import layout, spans_of
from composcope.probes.matching import Matched
from composcope.probes.neurons import quadrature as paths
from composcope.probes.neurons.paths import _factor
from composcope.probes.patching import positions as sweeps
from composcope.probes.readout.examples import _places as readout_places
from composcope.probes.result import ProbeResult
from composcope.probes.slots import Slot

NAN = float("nan")


def _example(case: str, **more: Any) -> Example:
    of: dict[str, Any] = {"role": "whole", "group": "failure", "prompt_ids": (1, 2), "response_ids": (3, 4, 5), "answer_ids": (4,),
                          "cue_tokens": 1, "slot": Slot(1)} | more  # fmt: skip
    first = [of.pop(k) for k in ("role", "group", "prompt_ids", "response_ids", "answer_ids", "cue_tokens")]
    ids: Any = first[2:]
    return Example(case, first[0], "composition", first[1], ids[0], ids[1], ids[2], ids[3], (0, 1), **of)


# Min-K


def test_the_lowest_share_of_values_is_counted_as_in_the_reference() -> None:
    values = np.array([5.0, 1, 4, 2, 3])
    for k, mean in ((0.2, 1.0), (0.39, 1.0), (0.4, 1.5), (1.0, 3.0)):
        assert min_k.lowest(values, k) == mean
    assert math.isnan(min_k.lowest(values, 0.19)) and min_k.lowest(values, 0.19, True) == 1.0
    for k in (0.0, -0.1, 1.1):
        with pytest.raises(InputError, match="k is"):
            min_k.lowest(values, k)


def test_z_is_the_distance_in_standard_deviations_and_zero_for_a_certain_token() -> None:
    log_prob, mean = np.array([-1.0, 0, -2, 0.5]), np.array([-3.0, 0, -1, 0])
    z = min_k.standardize(log_prob, mean, np.array([4.0, 0, 0, 0]))
    assert z.tolist() == [1, 0, -np.inf, np.inf]
    assert min_k.standardize(log_prob, mean, np.array([4.0, 0, 0.01, 0]), 0.5).tolist() == [1, 0, -2, 1]
    tokens = min_k.TokenScores(log_prob, mean, np.array([1e-4, 0.99e-4, 1, 0]), z, (1, 2, 3, 4))
    assert tokens.small_sigma == 2
    found = min_k.aggregate([tokens], 0.5)
    assert (found.min_k[0], found.log_prob[0]) == (-1.5, -0.625)


def test_matching_lengths_averages_the_lowest_values_over_random_subsets() -> None:
    values = np.array([0.0, 1, 2, 3])
    assert min_k.length_matched(values, 4, 0.25) == 0 and min_k.length_matched(values, 4, 0.5) == 0.5
    exact = np.mean([min(s) for s in itertools.combinations(values, 2)])
    assert min_k.length_matched(values, 2, 0.5, draws=5000) == pytest.approx(exact, abs=0.05)
    assert min_k.length_matched(values, 2, 0.5, seed=1) == min_k.length_matched(values, 2, 0.5, seed=1)
    assert min_k.length_matched(values, 2, 0.5, seed=1) != min_k.length_matched(values, 2, 0.5, seed=2)
    assert math.isnan(min_k.length_matched(values, 4, 0.2))
    for n in (0, 5):
        with pytest.raises(InputError, match="cannot match 4 tokens"):
            min_k.length_matched(values, n)


def test_questions_that_share_their_value_are_those_of_other_cases_and_of_one_kind() -> None:
    def of(case: str, kind: str) -> Any:
        return SimpleNamespace(case=case, kind=kind)

    asked = [of("a", "whole"), of("b", "whole"), of("c", "whole"), of("a", "part"), of("c", "part"), of("c", "part")]
    assert min_k._alike(asked, np.array([1.0, 1.0, 2.0, 1.0, 3.0, 3.0])) == 2


def test_the_first_token_is_never_scored() -> None:
    assert min_k._scored((1, 2, 3), None, 0) == (1, 3) == min_k._scored((1, 2, 3), (0, 3), 0)
    assert min_k._scored((1, 2, 3), (2, 3), 0) == (2, 3)
    for ids, span in (((1,), None), ((1, 2, 3), (2, 2)), ((1, 2, 3), (0, 1)), ((1, 2, 3), (1, 4))):
        with pytest.raises(InputError, match="text 7"):
            min_k._scored(ids, span, 7)


# Trajectories


@pytest.mark.parametrize(
    ("alignment", "steps", "ids", "states"),
    [("predictive", 9, (1, 2, 5, 6), (1, 4)), ("predictive", 2, (1, 2, 5), (1, 3)), ("token", 9, (1, 2, 5, 6), (2, 4)),
     ("token", 2, (1, 2, 5, 6), (2, 4)), ("token", 1, (1, 2, 5), (2, 3))],
)  # fmt: skip
def test_states_stand_before_or_at_the_tokens_of_a_response(
    alignment: Any, steps: int, ids: tuple[int, ...], states: tuple[int, int]
) -> None:
    found = trajectory._request((1, 2), (5, 6, 9), alignment, steps, (9,), 0)
    assert (tuple(found.ids), found.states) == (ids, states)


def test_requests_for_steps_that_cannot_be_are_refused() -> None:
    for prompt, response, alignment, said in (
        ((), (5,), "token", "0 prompt"),
        ((1,), (), "token", "0 response"),
        ((1,), (5,), "tokens", "alignment"),
    ):
        with pytest.raises(InputError, match=said):
            trajectory._request(prompt, response, alignment, 3, (), 2)  # type: ignore[arg-type]
    only = trajectory._request((1,), (9,), "token", 3, (9,), 0)
    assert only.states == (1, 2), "a response that only ends has one state"


def test_cosines_of_steps_and_of_pairs_are_those_of_numpy() -> None:
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    found = trajectory._steps(x)
    for layer, t in itertools.product(range(2), range(4)):
        a, b = x[layer, t], x[layer, t + 1]
        assert float(found["cosines"][layer, t]) == pytest.approx(float(a @ b / a.norm() / b.norm()))
    states = torch.randn(4, 2, 3)
    for centered in (False, True):
        m = trajectory.cosine_matrix(states, centered)
        y = states.double() - (states.double().mean(0) if centered else 0)
        for i, j in itertools.product(range(4), range(4)):
            assert float(m[1, i, j]) == pytest.approx(float(torch.cosine_similarity(y[i, 1], y[j, 1], dim=0)))
    split = trajectory._split(m, 3, True)
    assert (
        float(split.dd[0]) == pytest.approx(float((m[0, 0, 1] + m[0, 0, 2] + m[0, 1, 2]) / 3))
        and split.rr.isnan().all()
    )
    assert float(split.dr[1]) == pytest.approx(float(m[1, :3, 3].mean()))
    assert trajectory._padded(torch.ones(1, 2), 4).isnan().tolist() == [[False, False, True, True]]


# Paths of neurons


@pytest.mark.parametrize("steps", [2, 3, 5])
def test_rules_integrate_the_polynomials_that_they_should(steps: int) -> None:
    gauss, ends = paths.quadrature("gauss-legendre", steps), paths.lobatto(steps)
    for degree in range(2 * steps):
        assert sum(w * x**degree for x, w in zip(gauss.at, gauss.weight, strict=True)) == pytest.approx(
            1 / (degree + 1)
        )
        if degree < 2 * steps - 2:
            inner = sum(w * x**degree for x, w in zip(ends.at, ends.weight, strict=True))
            assert inner + ends.end == pytest.approx(1 / (degree + 1)), degree
    assert ends.at[0] == 0 and ends.end > 0 and len(ends.at) == steps - 1
    reference = paths.quadrature("reference", steps)
    assert (
        reference.at == pytest.approx([i / (steps - 1) for i in range(steps)])
        and reference.weight == [1 / steps] * steps
    )
    assert paths.quadrature("gradient", 0) == paths.Nodes([1.0], [1.0])
    assert reference.with_start() == (reference, 0)
    added, at = gauss.with_start()
    assert (added.at[at], added.weight[at], at, added.end) == (0, 0, steps, gauss.end)
    for rule, n in (("reference", 1), ("gauss", 3), ("gauss-legendre", 2.5)):
        with pytest.raises(InputError):
            paths.quadrature(rule, n)  # type: ignore[arg-type]


def test_readouts_are_taken_at_places_that_nearly_all_cases_have() -> None:
    tokenizer = SimpleNamespace(decode=lambda ids: " ".join(f"w{i}" for i in ids))
    ids = {"prompt_ids": (1, 2, 3, 4, 5), "response_ids": (6, 7, 8), "answer_ids": (6, 9), "slot": Slot(2)}
    own, usual = _example("a", **ids), _example("b", **ids, group="success")
    left, notes = readout_places(tokenizer, [own, usual], {})
    places = {"question-end": (0,), "prompt-end": (4,), "answer-slot": (6,), "decision": (5,)}
    assert left == {"a": places, "b": places} and [n.split()[1] for n in notes] == ["entity:"]
    without, _ = readout_places(tokenizer, [own, replace(usual, slot=None)], {})
    assert without["b"] == {"question-end": (0,), "prompt-end": (4,)}


def test_a_factor_of_experts_is_one_up_to_rounding_and_other_maps_are_refused() -> None:
    mine, off, experts = torch.tensor([1.0, -2, 3]), torch.tensor([0, 0, 0.1]), torch.nn.Identity()
    for factor, known in ((1.0, 1), (1.009, 1), (0.991, 1), (1.02, 1.02), (0.5, 0.5), (0.004, 0.004), (-2.0, -2)):
        assert _factor(experts, factor * mine, mine) == pytest.approx(known, abs=1e-6)
    assert _factor(experts, (mine + off).bfloat16(), mine) == pytest.approx(1.02, abs=5e-3)
    for other in (mine + off, (mine + 6 * off).bfloat16(), mine * torch.nan):
        with pytest.raises(ModelError, match="up to a factor"):
            _factor(experts, other, mine)


def _panel(gap: float, start: float = 0.0, end: float = 1.0, nodes: int = paths.NODES, stale: int = 0) -> paths.Panel:
    return paths.Panel(start, end, torch.zeros(1), gap, nodes, stale)


def test_panels_are_split_worst_first_until_the_rest_is_within_half() -> None:
    panels = [_panel(g) for g in (0.1, -3.0, 0.2, 1.0)]
    assert [p.gap for p in paths.worst(panels, 1.0)] == [-3.0, 1.0] and paths.worst(panels, 4.31) == []
    assert [p.gap for p in paths.worst(panels, 4.2)] == [-3.0] and [p.gap for p in paths.worst(panels, 0.01)] == [
        -3.0,
        1.0,
        0.2,
        0.1,
    ]
    assert len(paths.worst([_panel(1.0) for _ in range(9)], 0.1)) == paths.SPLITS
    assert paths.worst([_panel(1.0) for _ in range(paths.MAX_PANELS)], 0.1) == []
    assert (
        paths.worst([_panel(1.0, stale=paths.STALE)], 0.1) == []
        and paths.worst([_panel(1.0, 0.5, 0.5 + 0.9e-6)], 0.1) == []
    )
    assert len(paths.worst([_panel(1.0, stale=paths.STALE - 1)], 0.1)) == 1


def test_first_tries_are_accepted_repeated_or_split() -> None:
    quick = paths.QUICK
    assert paths.again(_panel(0.3, nodes=quick), 1.0) == [] and paths.again(_panel(-1.0), 1.0) == []
    assert paths.again(_panel(0.31, nodes=quick), 1.0) == [(0.0, 1.0)] == paths.again(_panel(10.0, nodes=quick), 1.0)
    pieces = [(0.0, 1 / 16), (1 / 16, 1 / 4), (1 / 4, 1 / 2), (1 / 2, 1.0)]
    assert paths.again(_panel(10.1, nodes=quick), 1.0) == pieces == paths.again(_panel(1.1), 1.0)
    assert paths.split(_panel(1, 0.0, 0.8)) == [(0.0, 0.1), (0.1, 0.8)] and paths.split(_panel(1, 0.2, 0.6)) == [
        (0.2, 0.4),
        (0.4, 0.6),
    ]
    for gaps, stale in (((0.5, -0.5), 0), ((0.6, -0.5), 3)):
        children = [_panel(g) for g in gaps]
        paths.aged(_panel(-2.0, stale=2), children)
        assert [c.stale for c in children] == [stale, stale]
    accepted = paths.limit(torch.tensor([[0.5]]), torch.tensor([[0.2, 0.5, 0.9]]))
    assert accepted[0].tolist() == pytest.approx([0.003 + 1e-6, 1e-6, 0.004 + 1e-6])
    assert paths.limit(torch.tensor([[1e-6]]), torch.tensor([[0.0]]), 0.1)[0, 0] == pytest.approx(1e-7 + 1e-7)


# Where states are read


def test_examples_move_to_their_slot_or_stay_at_the_end() -> None:
    a = _example("a", slot=Slot(2, (7, 8)))
    b = _example("b", slot=Slot(0))
    lost = _example("c", slot=None)
    spaced = _example("d", slot=Slot(1), answer_ids=(4, 6), separators=1)
    found = positions.read_at([a, b, lost, spaced])
    assert [(e.case, e.prompt_ids, e.response_ids, e.answer_ids, e.begun, e.cue_tokens) for e in found.examples] == [
        ("a", (1, 2, 3, 4), (5,), (7, 8), 2, 3), ("b", (1, 2), (3, 4, 5), (4,), 0, 1), ("d", (1, 2, 3, 4), (5,), (6,), 2, 3),
    ]  # fmt: skip
    assert found.settings == {
        "position": "answer-slot",
        "coincide": "1 of 3 responses",
        "without_slot": 1,
        "separators_skipped": 1,
    }
    assert any("1 of 4 responses" in w and "'c'" in w for w in found.warnings)
    end = positions.read_at([a, b, lost, spaced], "prompt-end")
    assert [e.prompt_ids for e in end.examples] == [(1, 2), (1, 2), (1, 2), (1, 2, 4)] and len(end.warnings) == 2
    assert end.examples[3].response_ids == (3, 4, 5), "what it did not begin with stays"
    with pytest.raises(NoCasesError, match="none of 1"):
        positions.read_at([lost])
    with pytest.raises(InputError, match="position 'slot'"):
        positions.read_at([a], "slot")  # type: ignore[arg-type]


def test_pairs_read_after_different_tokens_and_answers_that_begin_alike_are_counted() -> None:
    examples = [_example(c, prompt_ids=(1, t)) for c, t in zip("abcd", (5, 5, 6, 7), strict=True)]
    examples.append(_example("a", role="part:0", prompt_ids=(1, 9)))
    [row] = positions.preceding_row(examples, [("a", "b"), ("c", "d"), ("a", "c"), ("a", "x")])
    assert (row["count"], row["n"], row["value"]) == (2, 3, 2 / 3)
    assert positions.preceding_row(examples, [("x", "y")]) == []
    assert positions.collisions([((1, 2), (1, 3)), ((1,), (1,)), ((1,), (2,)), ((1,), (1, 4))]) == 2


# Sweeps


def test_a_cell_is_the_part_of_its_head() -> None:
    x = list(range(12))
    assert [x[sweeps.Cell((0,), h, 4).part(12)] for h in (0, 3)] == [[0, 1, 2], [9, 10, 11]] and x[
        sweeps.Cell((0,)).part(12)
    ] == x
    assert sweeps._within([0, -1, 3], 4) == [0, 3, 3]
    for wrong in ([], [4], [-5], [0, 4]):
        with pytest.raises(InputError, match="4 tokens"):
            sweeps._within(wrong, 4)
    lm: Any = SimpleNamespace(
        anatomy=SimpleNamespace(n_layers=3, heads=lambda layer: (4 + (layer == 2), 2), vocab_size=10)
    )
    assert sweeps.chosen_layers(lm, None) == [0, 1, 2] and sweeps.chosen_layers(lm, [2, 0]) == [2, 0]
    for bad in ([], [3], [0, -1], [0, 3]):
        with pytest.raises(InputError, match="0-2"):
            sweeps.chosen_layers(lm, bad)
    assert sweeps.head_count(lm, [0, 1]) == 4
    with pytest.raises(InputError, match=r"\[4, 5\] heads"):
        sweeps.head_count(lm, [1, 2])
    check: Any = sweeps.check_pairs
    pairs: Any = ([[1, 2]], [[3, 4]], [(5, 6)])
    assert check(lm, *pairs, "mlp_out", "denoising") == [([1, 2], [3, 4], (5, 6))]
    assert check(lm, *pairs, "mlp_out", "noising") == [([3, 4], [1, 2], (6, 5))]
    for i, change in ((2, [(5, 10)]), (2, [(5, -1)]), (1, [[3]]), (0, [])):
        given: list[Any] = list(pairs)
        given[i] = change
        with pytest.raises((InputError, NoCasesError)):
            check(lm, *given, "mlp_out", "denoising")
    for kind, direction in (("q", "denoising"), ("mlp_out", "both")):
        with pytest.raises(InputError):
            check(lm, *pairs, kind, direction)


def test_measures_of_a_patch_are_shares_of_the_way_from_one_run_to_the_other() -> None:
    ends = torch.tensor([[3.0, 0, 1], [1.0, 2, 0]], dtype=torch.float64)
    patched = torch.tensor([[[3.0, 0, 1], [1, 2, 0], [1, 0, 5]]], dtype=torch.float64)
    found = sweeps.measures(patched, ends, (0, 1))
    assert found["recovered"][0].tolist() == [1, 0, 0.5] and found["logit_difference"][0].tolist() == [3, -1, 1]
    p, q = patched[0].softmax(-1), ends[1].softmax(-1)
    assert found["probability"][0].tolist() == pytest.approx(p[:, 0].tolist())
    assert found["kl"][0].tolist() == pytest.approx([float((q * (q / row).log()).sum()) for row in p], abs=1e-9)
    level = sweeps.measures(patched, ends[[0, 0]], (0, 1))["recovered"]
    assert level.isnan().all()


def test_the_best_place_of_a_sweep_is_the_largest_mean_over_pairs() -> None:
    recovered = torch.tensor([[0.1, 0.9, NAN], [0.3, 0.2, NAN]])
    row = sweeps._best(recovered, 4, [7, 8, 9], "position")
    assert (row["layer"], row["position"], row["n"], row["value"]) == (4, 8, 2, pytest.approx(0.55))
    none = sweeps._best(torch.full((2, 3), NAN), 4, [7, 8, 9], "position")
    assert (none["position"], none["n"]) == (7, 0)


# Places of answers

SPANS: list[tuple[str, str | None, str, dict[str, Any], str | None]] = [
    ("It is 12, not 13.", "13", "number", {}, "13"), ("12 and 12", "12", "number", {"cued": True}, "12"),
    ("3 x 4 = 12 apples, 12 in all", "12", "number", {"cued": True}, "12"), ("It is 1 million now", "1000000", "number", {}, "1 million"),
    ("It is -5 now", "-5", "number", {}, "5"), ("twelve apples", "12", "number", {}, "twelve"), ("none", "12", "number", {}, None),
    ("On 4 July 1776 and in 1780", "1776-07-04", "date", {}, "4 July 1776"), ("in 1776", "1777", "date", {}, None),
    ("1776, later 1776", "1776", "date", {"cued": True}, "1776"), ("It is true.", "yes", "boolean", {}, "true"),
    ("It is not true.", "no", "boolean", {}, "not true"), ("Yes. It is false that ...", "yes", "boolean", {}, "Yes"),
    ("They are Mars, then Venus", "Mars, Venus", "list", {}, "Mars, then Venus"), ("Venus, Mars", "Mars, Venus", "list", {}, None),
    ("anything", None, "text", {}, None), ("<think>12", "12", "number", {}, None), ("<think>12</think> 12", "12", "number", {}, "12"),
    ("The capital is Lima.", "Lima", "text", {"golds": ("Lima",), "question": "What is the capital?"}, "Lima"),
]  # fmt: skip


@pytest.mark.parametrize(("response", "answer", "kind", "more", "place"), SPANS)
def test_the_characters_of_an_answer(
    response: str, answer: str | None, kind: str, more: dict[str, Any], place: str | None
) -> None:
    found = answer_span(response, answer, kind, **more)
    assert (found and response[slice(*found)]) == place


def test_of_several_places_the_first_counts_after_a_cue_and_the_last_without() -> None:
    for response, answer, kind in (
        ("12, so 12", "12", "number"),
        ("1776, so 1776", "1776", "date"),
        ("yes or yes", "yes", "boolean"),
    ):
        n = len(answer)
        assert answer_span(response, answer, kind, segments=(response,), cued=True) == (0, n)
        if kind != "boolean":
            assert answer_span(response, answer, kind) == (len(response) - n, len(response))
    assert answer_span("a 12 b 12", "12", "number", segments=("a 12",), cued=True) == (2, 4)
    after = "<think>12</think> 12"
    assert answer_span(after, "12", "number") == (18, 20)


def test_text_that_follows_is_tokenized_in_its_context() -> None:
    def words(text: str) -> tuple[int, ...]:
        return tuple(len(w) for w in text.split(" "))

    assert slots.continued(words, "a bb", (1, 2), " ccc") == (3,)
    assert slots.continued(words, "a bb", (9, 9), " ccc") == (3,), "as a piece of the context is cut"
    assert slots.continued(words, "a bb", (1, 2), "c") == () == slots.continued(words, "a bb", (1, 2), "")
    for worked, said, same in (("So 3 + 4", "so 9 - 2", True), ("So 3 + 4", "so 9", False), ("So 3", "Now 3", False), ("So 3 is it", "so 4 was not", True),
                               ("So b 1", "so c 2", True), ("", "", True)):  # fmt: skip
        assert slots.in_worked_form(worked, said) == same


SUMS = [("plus", 7, 2, 9), ("+", 1, 1, 2), ("times", 7, 2, 14), ("*", 3, 3, 9), ("×", 3, 2, 6), ("divided by", 8, 2, 4), ("/", 8, 3, None),
        ("÷", 8, 0, None), ("minus", 7, 2, 5), ("-", 2, 2, 0), ("minus", 2, 7, None)]  # fmt: skip


@pytest.mark.parametrize(("operation", "a", "b", "result"), SUMS)
def test_results_of_written_sums_are_whole_and_not_negative(operation: str, a: int, b: int, result: int | None) -> None:
    assert result_of(a, operation, b) == result


# Validity


def test_aurocs_count_ties_half_and_have_delongs_interval() -> None:
    x, y = np.array([3.0, 1, 4, 2, 2]), np.array([2.0, 0, 1, 2.5])
    wins = [[(a > b) + 0.5 * (a == b) for b in y] for a in x]
    value = float(np.mean(wins))
    found = validity.auroc(x, y, level=0.9)
    v = np.array(wins)
    error = math.sqrt(v.mean(1).var(ddof=1) / 5 + v.mean(0).var(ddof=1) / 4)
    logit, half = math.log(value / (1 - value)), stats.norm.ppf(0.95) * error / (value * (1 - value))
    assert found[:3] == pytest.approx((value, 1 / (1 + math.exp(-(logit - half))), 1 / (1 + math.exp(-(logit + half)))))
    for a, b, want in (
        ([2.0, 3], [0.0, 1, 1], (1.0, 0.025**0.5, 1.0)),
        ([0.0, 1], [2.0, 3, 4], (0.0, 0.0, 1 - 0.025**0.5)),
    ):
        assert validity.auroc(a, b)[:3] == pytest.approx(want)
    clustered = validity.auroc([2.0, 3, 4, 5, 6, 7], [0.0, 1, 1, 0, 1, 1, 1], (list("aabcde"), list("fffghij")))
    assert clustered[:2] == pytest.approx((1.0, 0.025 ** (1 / 5)))
    one = validity.auroc([1.5], [1.0, 2.0])
    assert one.value == 0.5 and math.isnan(one.low)
    for a, b in (([], [1.0]), ([1.0], [])):
        with pytest.raises(NoCasesError, match="AUROC"):
            validity.auroc(a, b)


def test_a_shuffled_p_is_the_share_of_labelings_as_far_from_the_middle() -> None:
    x, y = np.array([5.0, 6, 9]), np.array([1.0, 2, 6.5])
    pooled = np.concatenate([x, y])
    gap: Callable[[Any, Any], float] = lambda a, b: float(np.mean(a) - np.mean(b))  # noqa: E731
    null = [gap(pooled[list(c)], np.delete(pooled, list(c))) for c in itertools.combinations(range(6), 3)]
    exact = 2 * min(np.mean(np.array(null) >= gap(x, y) - 1e-9), np.mean(np.array(null) <= gap(x, y) + 1e-9))
    assert validity.shuffled_p(x, y, gap, permutations=4000) == pytest.approx(exact, abs=0.03)
    assert validity.shuffled_p(x, y, permutations=9, clusters=(list("abc"), list("dea"))) != validity.shuffled_p(
        x, y, permutations=9
    )
    far, near = (np.arange(10.0), list("aabbccddee")), (np.arange(10.0, 20.0), list("ffgghhiijj"))
    whole = validity.shuffled_p(far[0], near[0], gap, permutations=2000, clusters=(far[1], near[1]))
    assert whole == pytest.approx(2 / math.comb(10, 5), abs=0.01), "whole clusters change places"
    for p, n in ((0, 1), (9, 0)):
        with pytest.raises(InputError, match="give at least one"):
            validity.shuffled_p(x[: 3 * n], y, permutations=p)


def test_doses_are_monotone_only_where_every_mean_is_beyond_the_one_before() -> None:
    def last(expected: str = "increasing", **doses: list[float]) -> Any:
        return validity.dose_series(doses, expected=expected).table[-1]

    up = last(a=[1.0, 2], b=[2.0, 3], c=[4.0, 5])
    assert up["monotone"] and up["group"] == "a < b < c" and up["n"] == 6
    order = [0, 0, 1, 1, 2, 2]
    assert up["value"] == pytest.approx(stats.kendalltau(order, [1, 2, 2, 3, 4, 5])[0])
    assert not last(a=[1.0, 2], b=[1.0, 2])["monotone"] and last(a=[1.0, 2], b=[1.0, 2])["value"] == 0
    assert (
        last("decreasing", a=[3.0, 2], b=[1.0, 1])["monotone"]
        and not last("decreasing", a=[1.0, 1], b=[3.0, 3])["monotone"]
    )
    level = last(a=[1.0, 1], b=[1.0, 1])
    assert level["value"] == 0 and math.isnan(level["low"])
    with pytest.raises(NoCasesError, match="two doses"):
        validity.dose_series({"a": [1.0]})
    with pytest.raises(InputError, match="expected is 'up'"):
        validity.dose_series({"a": [1.0], "b": [2.0]}, expected="up")


def test_two_models_are_told_apart_in_the_expected_direction() -> None:
    high, low = [3.0, 4, 5], [1.0, 2, 3]
    up = validity.model_auroc(high, low, names=("t", "c")).table[0]
    down = validity.model_auroc(high, low, names=("t", "c"), expected="decreasing").table[0]
    assert (
        (up["group"], down["group"]) == ("t - c", "c - t")
        and up["value"] == pytest.approx(1 - down["value"])
        and "p" not in up
    )
    failing = validity.failure_auroc(high, low, permutations=19).table[0]
    assert (
        failing["group"] == "failure - success"
        and (failing["n_first"], failing["n_second"]) == (3, 3)
        and failing["p"] >= 0.05
    )
    assert validity.membership_auroc(high, low, permutations=19).table[0]["group"] == "member - non-member"


def test_fields_of_an_example_say_where_it_stands() -> None:
    e = _example("a", cluster="k", crossed=("x",))
    assert e.shares == replace(e, group="success").shares and e.shares is not None


def test_the_part_that_a_role_asks_about() -> None:
    case = Case("c", "w", "x", (Part("a", "1"), Part("b", "2")))
    assert [part_of(case, r) for r in ("part", "part:x", "part:", "whole", "pair:0")] == [None] * 5
    assert [part_of(case, r) for r in ("part:1", "part:0:paraphrase:1")] == [case.parts[1], case.parts[0]]
    with pytest.raises(InputError, match="2 parts"):
        part_of(case, "part:2")


def test_spans_are_one_or_none_for_each_prompt() -> None:
    assert spans_of(None, 2, "s") == [None, None] and spans_of([(0, 1), None], 2, "s") == [(0, 1), None]
    with pytest.raises(InputError, match="2 prompts, 1 s"):
        spans_of([None], 2, "s")


def test_a_result_is_saved_whatever_its_settings_are(tmp_path: Path) -> None:
    result = ProbeResult(
        "p", [{"a": 1}], {"t": torch.arange(4)[::2]}, {"t": ("x",)}, {"from": Path("a/b")}, ["w"], [{"v": 2}]
    )
    result.save(tmp_path / "r")
    about = json.loads((tmp_path / "r" / "result.json").read_text())
    assert about == {"schema": 1, "probe": "p", "axes": {"t": ["x"]}, "settings": {"from": "a/b"}, "warnings": ["w"]}
    assert {f.name for f in (tmp_path / "r").iterdir()} == {
        "table.csv",
        "values.csv",
        "tensors.safetensors",
        "result.json",
    }
    replace(result, tensors={}, values=[]).save(tmp_path / "r")
    assert {f.name for f in (tmp_path / "r").iterdir()} == {"table.csv", "result.json"}


def test_a_planted_effect_is_in_standard_deviations_of_the_scores() -> None:
    x = np.random.default_rng(0).normal(size=40)
    found = [[r["value"] for r in validity.planted_recovery(x * scale, n=12, trials=40).table] for scale in (1, 50)]
    assert found[0] == pytest.approx(found[1])


def test_a_contrast_is_possible_from_two_pairs_on() -> None:
    pairs = (("a", "b"), ("c", "d"), ("e", "f"))
    assert [Matched(pairs[:n], (), (), (), 0.0).possible for n in range(4)] == [False, False, True, True]


# Lookback


@pytest.mark.parametrize(
    ("question", "few_shot", "expected"),
    [
        (None, None, []),
        ((3, 6), None, [("sink", 0, 1), ("template", 1, 3), ("question", 3, 6), ("template", 6, 8)]),
        ((0, 6), None, [("sink", 0, 1), ("question", 1, 6), ("template", 6, 8)]),  # the first key is the sink's
        ((1, 8), None, [("sink", 0, 1), ("question", 1, 8)]),
        ((6, 9), None, [("sink", 0, 1), ("template", 1, 6), ("question", 6, 8)]),  # what is cue is not the question's
        ((5, 7), (0, 3), [("sink", 0, 1), ("few_shot", 1, 3), ("template", 3, 5), ("question", 5, 7),
                          ("template", 7, 8)]),
        ((3, 5), (5, 8), [("sink", 0, 1), ("template", 1, 3), ("question", 3, 5), ("few_shot", 5, 8)]),
    ],
)  # fmt: skip
def test_regions_of_a_prompt_follow_its_spans_and_have_every_key_once(
    question: tuple[int, int] | None, few_shot: tuple[int, int] | None, expected: list[tuple[str, int, int]]
) -> None:
    found = layout(10, 2, 14, question, few_shot)
    assert (found.prompt, found.context, found.ranges[:2]) == (10, 8, ((0, 8), (8, 14)))
    parts = [(name, *span) for name, span in zip(found.names, found.ranges[2:], strict=True) if span[0] < span[1]]
    assert parts == expected + ([("cue", 8, 10), ("response", 10, 14)] if expected else [])
    sums = torch.stack([torch.full((1, 1, 1), float(max(0, b - a))) for a, b in found.ranges])
    masses = found.masses(sums)
    assert (float(masses.context), float(masses.new)) == (8, 6)
    sizes = {name: sum(b - a for other, a, b in parts if other == name) for name in ("template", "question")}
    assert {n: float(masses.regions[n]) for n in sizes} == sizes if expected else not masses.regions
