"""The compositionality gap on a small table whose numbers were worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import metrics as shape
from composcope.evaluation.asks import Grade
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, compositionality_gap, get, metrics_from_rows

OUTCOMES = {"1": "correct", "0": "incorrect", "?": "invalid", "-": "abstained"}


def rows_of(table: dict[str, str], **more: object) -> list[Graded]:
    """``table``: the letters of a case, for its steps and the whole."""
    return [
        Graded(case, "whole" if i + 1 == len(letters) else f"part:{i}", OUTCOMES[letter], **more)  # type: ignore[arg-type]
        for case, letters in table.items()
        for i, letter in enumerate(letters)
    ]


#          both right: a b c d; whole right: a e h; c has an open whole, g an open step
TABLE = {"a": "111", "b": "110", "c": "11?", "d": "11-", "e": "101", "f": "010", "g": "?10", "h": "001"}


def got(name: str, rows: list[Graded] | None = None, **group: object) -> Metric:
    found = find(metrics_from_rows(rows or rows_of(TABLE), "compositionality-gap").metrics, name, **group)
    assert found is not None
    return found


def test_steps_and_both_use_what_is_known_and_count_what_is_not() -> None:
    assert (got("step:0").count, got("step:0").n, got("step:0").n_invalid) == (5, 7, 1)
    assert (got("step:1").count, got("step:1").n) == (6, 8)
    assert (got("both").count, got("both").n, got("both").n_invalid) == (4, 7, 1)
    assert (got("composition").count, got("composition").n, got("composition").n_invalid) == (3, 7, 1)
    assert (got("composition").bound_low, got("composition").bound_high) == (3 / 8, 4 / 8)


def test_the_gap_is_paired_over_cases_where_both_sides_are_known() -> None:
    gap = got("gap")
    # a b d e f h: whole 1 0 0 1 0 1, both 1 1 1 0 0 0
    assert (gap.n, gap.count, gap.n_invalid) == (6, 0, 2) and gap.value == 0.0
    # c: whole open, both right; g: whole wrong, both open
    assert gap.bound_low == pytest.approx((0 - 1 - 1) / 8) and gap.bound_high == 0.0
    assert (
        gap.interval == "paired-bootstrap" and gap.low is not None and gap.high is not None and gap.low < 0 < gap.high
    )


def test_the_gap_divides_by_the_known_pairs_and_not_by_all_cases() -> None:
    table = {"a": "110", "b": "110", "c": "110", "d": "101", "e": "11?", "f": "11?", "g": "?10", "h": "?11"}
    found = find(metrics_from_rows(rows_of(table), "compositionality-gap").metrics, "gap")
    assert found is not None and (found.n, found.count, found.n_invalid) == (4, -2, 4)
    assert found.value == pytest.approx(-2 / 4)


def test_the_conditional_gap_and_its_bounds() -> None:
    press = got("press_gap")
    assert (press.count, press.n, press.n_invalid) == (2, 3, 2)
    # inside: a right, b d wrong, c open; g may be inside and is wrong
    assert press.bound_low == pytest.approx(2 / 4) and press.bound_high == pytest.approx(4 / 5)


def test_the_independence_gap_subtracts_the_product_of_the_steps() -> None:
    gap = got("independence_gap")
    # a b d e f h: steps 4/6 and 4/6, whole 3/6
    assert gap.value == pytest.approx(3 / 6 - 4 / 6 * 4 / 6) and gap.n == 6


def test_quadrants_split_failures_and_show_successes_without_both_steps() -> None:
    assert [got("quadrant", quadrant=q).count for q in ("11", "10", "01", "00")] == [2, 0, 1, 0]
    assert (got("quadrant", quadrant="11").n, got("quadrant", quadrant="11").n_invalid) == (3, 2)
    assert got("quadrant", quadrant="10", whole="correct").count == 1
    assert got("quadrant", quadrant="00", whole="correct").count == 1


def test_case_sets_need_every_step_right_and_a_judged_whole() -> None:
    found = metrics_from_rows(rows_of(TABLE), "compositionality-gap")
    assert found.case_set("both-right-whole-wrong").ids == ("b", "d")
    assert found.case_set("both-right-whole-right").ids == ("a",)
    entry = found.case_set("both-right-whole-wrong").entries[1]
    assert [(e.role, e.outcome) for e in entry.evidence] == [
        ("part:0", "correct"),
        ("part:1", "correct"),
        ("whole", "abstained"),
    ]


def test_other_ways_to_ask_are_metrics_with_their_prompt() -> None:
    rows = rows_of({"a": "110", "b": "111"})
    rows += [Graded("a", "self-ask", "correct"), Graded("b", "self-ask", "correct")]
    rows += [Graded("a", "part:0:extra-context", "incorrect")]
    metrics = metrics_from_rows(rows, "compositionality-gap").metrics
    asked, extra = find(metrics, "gap", prompt="self-ask"), find(metrics, "step:0", prompt="extra-context")
    assert asked is not None and asked.count == 0 and asked.n == 2
    assert extra is not None and (extra.count, extra.n) == (0, 1)


def test_tables_by_domain_and_operation_and_chance_level_in_the_note() -> None:
    rows = rows_of({"a": "110"}, operation="plus", domain="garage", chance=0.04)
    rows += rows_of({"b": "111"}, operation="times", domain="garage", chance=0.06)
    metrics = metrics_from_rows(rows, "compositionality-gap").metrics
    plus, garage = find(metrics, "composition", operation="plus"), find(metrics, "composition", domain="garage")
    assert plus is not None and (plus.count, plus.n) == (0, 1) and "n < 5" in (plus.note or "")
    assert garage is not None and garage.n == 2 and (garage.note or "").endswith("a guess is right in 5.0%")
    some = find(metrics_from_rows([*rows, *rows_of({"c": "111"})], "compositionality-gap").metrics, "composition")
    assert some is not None and "5.0%, stated for 2 of 3 cases" in (some.note or "")


def test_the_chance_level_of_a_share_of_some_cases_is_that_of_these_cases() -> None:
    rows = [*rows_of({"a": "110"}, chance=0.04), *rows_of({"b": "011", "c": "010"}, chance=0.5)]
    rows.append(replace(rows[2], role="whole:cot"))
    metrics = metrics_from_rows(rows, "compositionality-gap").metrics
    levels = {(m.metric, m.group.get("prompt")): (m.note or "").rpartition("in ")[2] for m in metrics}
    assert (levels["composition", None], levels["press_gap", None]) == ("34.7%", "4.0%")
    assert (levels["composition", "cot"], levels["press_gap", "cot"]) == ("4.0%", "4.0%")
    gated = {m.metric: m.note or "" for m in metrics_from_rows(rows, "double-gate").metrics}
    assert gated["residual_failure"].endswith("a guess is right in 4.0%") and gated["composition"].endswith("34.7%")


def test_clusters_widen_the_interval_and_stand_beside_the_exact_one() -> None:
    rows = [
        r
        for cluster in range(8)
        for i in range(10)
        for r in rows_of({f"{cluster}-{i}": "111" if cluster % 2 else "110"}, cluster=str(cluster))
    ]
    found = find(metrics_from_rows(rows, "compositionality-gap").metrics, "composition")
    assert found is not None and found.cluster_n == 8 and found.interval == "clopper-pearson"
    assert found.low is not None and found.cluster_low is not None and found.cluster_low < found.low
    assert found.to_dict()["cluster_interval"] == "korn-graubard"


def test_metrics_are_written_in_the_exchange_shape_without_nan() -> None:
    found = metrics_from_rows(rows_of({"a": "00?"}), "compositionality-gap")
    document = json.loads(shape.dumps("compositionality-gap", found.metrics, found.warnings))
    assert document["schema"] == 1 and document["protocol"] == "compositionality-gap"
    keys = "metric group n n_invalid count value interval low high bound_low bound_high note".split()
    assert all(list(row) == keys for row in document["metrics"])
    press = next(row for row in document["metrics"] if row["metric"] == "press_gap" and not row["group"])
    assert press["value"] is None and press["n"] == 0 and press["low"] is None
    assert [Metric(**row).to_dict() for row in document["metrics"]] == document["metrics"]


def test_asks_are_the_parts_their_extra_context_and_the_whole() -> None:
    case = Case("c", "whole?", "12", (Part("one?", "a", extra_context="one, with 3 and 4?"), Part("two?", "12")))
    protocol = get("compositionality-gap", format="plain", also=("self-ask",))
    asks = protocol.asks(case, {})
    assert [a.role for a in asks] == ["part:0", "part:0:extra-context", "part:1", "whole", "self-ask"]
    assert asks[1].prompt == "one, with 3 and 4?" and asks[1].gold == "a" and asks[3].gold == "12"
    assert protocol.asks(case, {a.role: Grade("correct", "x") for a in asks}) == []
    bare = get("compositionality-gap", extra_context=False).asks(case, {})
    assert [a.role for a in bare] == ["part:0", "part:1", "whole"]


def test_rows_of_dicts_keep_unknown_fields_and_name_what_is_wrong() -> None:
    raw = {"case": "a", "role": "whole", "outcome": "correct", "mine": 7}
    assert Graded.from_dict(raw).to_dict()["mine"] == 7
    for field, value, message in (
        ("outcome", "right", "outcome is 'right'"),
        ("depth", "two", "depth is 'two'"),
        ("case", None, "field 'case' is missing"),
        ("skills", "a, b", "skills is 'a, b'"),
    ):
        with pytest.raises(Exception, match=message):
            Graded.from_dict({**raw, field: value})


def test_uneven_numbers_of_parts_count_only_the_steps_that_a_case_has() -> None:
    found = got("independence_gap", rows_of({"a": "101", "b": "10"}))
    assert found.value == pytest.approx(1 / 2 - 1 * (0 + 1) / 2)
    four = rows_of({"a": "11110", "b": "10110"})
    assert [got("quadrant", four, quadrant=q).count for q in ("all", "some")] == [1, 1]
    some = got("quadrant", [*four, *rows_of({"c": "0?110", "d": "1?110"})], quadrant="some")
    assert (some.count, some.n, some.n_invalid, some.bound_low, some.bound_high) == (2, 3, 1, 2 / 4, 3 / 4), (
        "c is settled"
    )
    bare = metrics_from_rows(rows_of({"a": "1", "b": "0"}), "compositionality-gap")
    assert {m.metric for m in bare.metrics} == {"composition"} and not bare.case_set("both-right-whole-right").ids
    rows = [*rows_of({"a": "11"}), Graded("b", "part:1", "correct"), Graded("b", "whole", "correct")]
    lacking = metrics_from_rows(
        rows, "compositionality-gap", cases={"a": Case("a", "Which?", "red", (Part("A?", "1"),))}
    )
    assert any(w.startswith("1 cases lack") and "'b'" in w for w in lacking.warnings)


def test_a_reversed_whole_is_a_question_or_has_one() -> None:
    def asked(given: Any) -> Any:
        case = Case("c", "Which?", "red", (Part("A?", "1"), Part("B?", "2")), aliases=("r",), meta={"reversed": given})
        asks = get("compositionality-gap", reversed=True).asks(case, {})
        return next((a.question, a.gold, a.aliases) for a in asks if a.role == "whole:reversed")

    assert asked("W?") == ("W?", "red", ("r",)) and asked({"question": "W?"}) == ("W?", "red", ("r",))
    assert asked({"question": "W?", "answer": "blue"}) == ("W?", "blue", ())
    for wrong in ({"answer": "blue"}, 5, ["question"]):
        with pytest.raises(InputError, match=r"'c': meta\.reversed"):
            asked(wrong)


def test_the_gap_to_independence_is_bounded_by_what_open_answers_could_be() -> None:
    assert compositionality_gap._independence_bounds([(None, True, True), (True, None, True)]) == (0.5 - 1, 1 - 0.5)
    assert compositionality_gap._independence_bounds([]) == (None, None)


def test_a_gap_to_independence_that_no_case_changes_is_bounded_by_the_share_of_other_cases() -> None:
    other = 1 - 0.025 ** (1 / 6)  # exact upper limit of 0 of 6
    for letters, value, low, high in (
        ("110", -1.0, -1.0, other - (1 - other) ** 2),
        ("111", 0.0, (1 - other) - 1, 1 - (1 - other) ** 2),
        ("000", 0.0, -(other**2), other),
    ):
        found = got("independence_gap", rows_of(dict.fromkeys("abcdef", letters)))
        assert found.value == pytest.approx(value) and found.interval == "clopper-pearson of other cases"
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    half = got("independence_gap", rows_of({"a": "010", "b": "000", "c": "010", "d": "000", "e": "010", "f": "000"}))
    assert half.value == 0 and half.low == pytest.approx(-other * (0.5 * (1 - other) + other))
    assert half.high == pytest.approx(other), "no whole and no first step is right: what the second is changes nothing"
    shared = [replace(row, cluster=f"fact {row.case in 'abc'}") for row in rows_of(dict.fromkeys("abcdef", "110"))]
    assert got("independence_gap", shared).low is None, "two clusters carry no interval"


def test_another_way_to_ask_is_counted_over_the_cases_that_were_asked_so() -> None:
    rows = [*rows_of({"a": "111", "b": "111"}), Graded("a", "whole:cot", "incorrect")]
    found = got("composition", rows, prompt="cot")
    assert (found.count, found.n, found.n_invalid) == (0, 1, 0)


def test_a_case_without_parts_is_in_no_quadrant_and_not_in_the_gap_to_independence() -> None:
    with_parts = rows_of(TABLE)
    both = metrics_from_rows([*with_parts, *rows_of({"x": "0", "y": "1"})], "compositionality-gap").metrics
    for name in ("quadrant", "independence_gap", "gap", "press_gap", "both"):
        for alone in (m for m in metrics_from_rows(with_parts, "compositionality-gap").metrics if m.metric == name):
            found = find(both, name, **alone.group)
            assert found is not None and (found.value, found.n, found.count) == (alone.value, alone.n, alone.count)
    assert got("composition").n + 2 == find(both, "composition").n  # type: ignore[union-attr]
