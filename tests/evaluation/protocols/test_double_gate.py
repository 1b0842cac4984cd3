"""The double gate on small tables whose numbers were worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.asks import Grade
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, double_gate, get, metrics_from_rows
from composcope.evaluation.protocols.compare import compare

OUTCOMES = {"1": "correct", "0": "incorrect", "?": "invalid", "-": "abstained"}


def case_rows(case: str, probes: str, subs: str, whole: str, atoms: str = "", **more: Any) -> list[Graded]:
    """``probes``: one word of outcomes for each part; ``atoms``: one letter for each part (shared facts)."""
    rows = []
    for i, sub in enumerate(subs):
        atom = atoms[i] if atoms else None
        rows.append(Graded(case, f"part:{i}", OUTCOMES[sub], atom=atom, **more))  # type: ignore[arg-type]
        for j, probe in enumerate(probes.split()[i] if probes else ""):
            role = f"part:{i}:paraphrase:{j}"
            rows.append(Graded(case, role, OUTCOMES[probe], atom=atom, **more))  # type: ignore[arg-type]
    return [*rows, Graded(case, "whole", OUTCOMES[whole], **more)]  # type: ignore[arg-type]


def reduced(rows: Iterable[Graded]) -> tuple[Metric, ...]:
    return metrics_from_rows(rows, "double-gate").metrics


def got(metrics: Iterable[Metric], name: str, **group: Any) -> Metric:
    found = find(metrics, name, **group)
    assert found is not None, (name, group)
    return found


TABLE = [
    *case_rows("a", "11 11", "11", "1", depth=2),  # passes both, right
    *case_rows("b", "11 11", "11", "0", depth=2),  # passes both, wrong
    *case_rows("c", "11 10", "11", "0", depth=2),  # stable atoms fail: single gate only
    *case_rows("d", "11 11", "10", "0", depth=4),  # sub-question fails
    *case_rows("e", "11 11", "11", "-", depth=4),  # abstains on the whole: a failure
    *case_rows("f", "1? 11", "11", "0", depth=4),  # gate open
    *case_rows("g", "11 11", "11", "?", depth=4),  # whole open
    *case_rows("h", "0? 11", "11", "1", depth=4),  # gate failed whatever the invalid probe is
]


def test_cases_without_a_depth_are_said_to_be_in_no_curve_only_where_others_have_one() -> None:
    flat = [*case_rows("x", "11 11", "11", "1"), *case_rows("y", "11 11", "11", "0")]
    said = metrics_from_rows([*TABLE, *flat], "double-gate").warnings
    assert sum("2 of 10 cases have no depth" in w for w in said) == 1
    for rows in (TABLE, flat):
        assert not any("no depth" in w for w in metrics_from_rows(rows, "double-gate").warnings)


def test_gates_and_failures_are_counted_as_by_hand() -> None:
    metrics = reduced(TABLE)
    assert (got(metrics, "atom_gate").count, got(metrics, "atom_gate").n, got(metrics, "atom_gate").n_invalid) == (
        5,
        7,
        1,
    )
    assert (got(metrics, "sub_question_gate").count, got(metrics, "sub_question_gate").n) == (7, 8)
    assert (got(metrics, "double_gate").count, got(metrics, "double_gate").n) == (4, 7)
    failure = got(metrics, "residual_failure")
    assert (failure.count, failure.n, failure.n_invalid) == (2, 3, 2)
    # passers of the sub-question gate a b c e f g h; c and h lose their atoms, f is open
    removed = got(metrics, "gate_removed")
    assert (removed.count, removed.n, removed.n_invalid) == (2, 6, 1)
    single = got(metrics, "single_gate_failure")
    assert (single.count, single.n, single.n_invalid) == (4, 6, 1)
    assert {failure.cluster_n, single.cluster_n} == {None}, "these cases share nothing: one interval is enough"


def test_sub_questions_are_counted_by_their_kind_and_paraphrases_are_not() -> None:
    rows = [r for c, subs in (("a", "11"), ("b", "01"), ("c", "?1")) for r in case_rows(c, "00 00", subs, "1")]
    kinds = {"part:0": "date", "part:1": "place", "part:0:paraphrase:0": "date", "whole": "date"}
    metrics = reduced(replace(r, kind=kinds.get(r.role)) for r in rows)
    date, place = (got(metrics, "skill_accuracy", skill=k) for k in ("date", "place"))
    assert (date.count, date.n, date.n_invalid, place.count, place.n) == (1, 2, 1, 3, 3)


def test_bounds_let_open_cases_be_outside_a_failure_or_a_success() -> None:
    failure = got(reduced(TABLE), "residual_failure")
    # f may be inside and is wrong, g is inside and may be either: worst 4/5, best (f outside, g right) 2/4
    assert failure.bound_high == pytest.approx(4 / 5)
    assert failure.bound_low == pytest.approx(2 / 4)


def test_failure_without_abstentions_and_the_abstention_rate_stand_beside_it() -> None:
    metrics = reduced(TABLE)
    without = got(metrics, "residual_failure", abstentions="excluded")
    assert (without.count, without.n) == (1, 2)
    left = reduced(r for r in TABLE if (r.case, r.role) != ("b", "whole"))
    fewer = got(left, "residual_failure", abstentions="excluded")
    assert (fewer.count, fewer.n, fewer.n_invalid) == (0, 1, 3), "a whole without an answer is open, not left out"
    abstention = got(metrics, "abstention")
    assert (abstention.count, abstention.n, abstention.n_invalid) == (1, 3, 2)  # f has an open gate


def test_conflation_is_single_minus_double_gate_failure_where_both_are_known() -> None:
    conflation = got(reduced(TABLE), "conflation")
    # known: a b c d e h; single gate a b c e h with failures b c e, double gate a b e with failures b e
    assert conflation.value == pytest.approx(3 / 5 - 2 / 3)
    assert conflation.n == 6


def test_a_shared_atom_is_counted_once_and_gates_every_case_that_uses_it() -> None:
    rows = [
        *case_rows("a", "11 10", "11", "1", atoms="xy"),
        # the second case shares y; its probes stand under the first case only
        *[r for r in case_rows("b", "11 11", "11", "1", atoms="zy") if not r.role.startswith("part:1:")],
        *case_rows("c", "11 11", "11", "0", atoms="xz"),
    ]
    metrics = reduced(rows)
    probes, facts = got(metrics, "atom_stability", per="probe"), got(metrics, "atom_stability", per="fact")
    assert (probes.count, probes.n) == (5, 6)
    assert (facts.count, facts.n) == (2, 3)
    assert (got(metrics, "atom_gate").count, got(metrics, "atom_gate").n) == (1, 3)
    assert got(metrics, "residual_failure").count == 1


@pytest.mark.parametrize(
    ("graded", "count", "n"),
    [("correct incorrect", 0, 1), ("incorrect correct", 0, 1), ("correct invalid", 0, 0), ("invalid incorrect", 0, 1)],
)
def test_a_wording_graded_differently_in_two_cases_makes_no_atom_stable(graded: str, count: int, n: int) -> None:
    rows = [
        Graded(case, role, outcome, atom="x")  # type: ignore[arg-type]
        for case, outcome in zip("ab", graded.split(), strict=True)
        for role, outcome in (("part:0:paraphrase:0", outcome), ("part:0", "correct"), ("whole", "correct"))
    ]
    found = got(reduced(rows), "atom_stability", per="fact")
    assert (found.count, found.n) == (count, n)


def test_stability_per_probe_and_per_fact_have_their_own_denominators() -> None:
    words = ["1111"] * 60 + ["1110"] * 19
    rows = [r for i, w in enumerate(words) for r in case_rows(f"c{i}", w, "1", "1", depth=1)]
    metrics = reduced(rows)
    assert (got(metrics, "atom_stability", per="probe").n, got(metrics, "atom_stability", per="fact").n) == (316, 79)
    assert got(metrics, "atom_stability", per="fact").count == 60
    assert got(metrics, "atom_stability", per="probe").count == 297


def test_in_context_cases_have_one_gate_and_say_so() -> None:
    rows = [r for i in range(165) for r in case_rows(f"c{i}", "", "1" if i < 36 else "0", "1" if i < 4 else "0")]
    metrics = reduced(rows)
    gate, failure = got(metrics, "double_gate"), got(metrics, "residual_failure")
    assert (gate.count, gate.n) == (36, 165) and "sub-question gate only" in (gate.note or "")
    assert (failure.count, failure.n) == (32, 36)
    assert find(metrics, "atom_gate") is None and find(metrics, "conflation") is None


def curve(counts: dict[int, tuple[int, int]], family: str | None = None, benchmark: str | None = None) -> list[Graded]:
    named: dict[str, Any] = {"family": family, "benchmark": benchmark}
    return [
        r
        for depth, (failed, n) in counts.items()
        for i in range(n)
        for r in case_rows(f"{family}{depth}-{i}", "11", "1", "0" if i < failed else "1", depth=depth, **named)
    ]


def test_the_chain_of_thought_curve_of_the_paper_gives_its_counts_and_d50() -> None:
    metrics = reduced(curve({2: (5, 21), 4: (11, 28), 6: (11, 16), 8: (5, 9)}, benchmark="d4v2"))
    assert (got(metrics, "residual_failure").count, got(metrics, "residual_failure").n) == (32, 74)
    cell = got(metrics, "residual_failure", depth_bin=8)
    assert (cell.count, cell.n) == (5, 9) and "n < 15" in (cell.note or "")
    expected = 4 + (0.5 - 11 / 28) / (11 / 16 - 11 / 28) * 2
    assert got(metrics, "d50").value == pytest.approx(expected)


def test_depths_7_9_11_count_in_the_published_bins_where_the_benchmark_declares_them() -> None:
    metrics = reduced(curve({4: (1, 10), 7: (9, 10), 11: (10, 10)}, benchmark="d4v2"))
    assert (got(metrics, "residual_failure", depth_bin=4).count, got(metrics, "residual_failure", depth_bin=4).n) == (
        10,
        20,
    )
    assert got(metrics, "residual_failure", depth=7).count == 9
    assert got(metrics, "residual_failure", depth_bin=8).n == 10


LINEAR = {depth: (depth - 1, 10) for depth in (2, 3, 4, 5, 6, 7, 8, 9, 11)}
"""Failures that reach one half at depth 6, and rise by a tenth a step."""


def test_d50_of_cases_that_share_facts_has_a_band_over_their_clusters() -> None:
    plain = curve({2: (6, 30), 4: (12, 30), 6: (18, 30), 8: (24, 30)})
    # Five facts of six cases at each depth, of which all fail or none does.
    rows = [replace(row, cluster=f"fact {int(row.case.split('-')[1]) // 6}") for row in plain]
    alone, shared = got(reduced(plain), "d50"), got(reduced(rows), "d50")
    assert shared.value == alone.value == pytest.approx(5.0) and (shared.low, shared.high) == (alone.low, alone.high)
    assert alone.cluster_n is None and shared.cluster_n == 5 and shared.cluster_interval == "korn-graubard band"
    assert alone.low is not None and alone.high is not None
    assert shared.cluster_low is None or shared.cluster_low < alone.low
    few, some = (
        got(reduced(replace(r, cluster=f"k{int(r.case.split('-')[1]) % n}") for r in curve(failed)), "d50")
        for n, failed in ((3, {2: (3, 10), 4: (6, 10), 6: (7, 10)}), (5, {2: (1, 10), 4: (6, 10), 6: (9, 10)}))
    )
    assert (few.low, few.high, few.cluster_low, few.cluster_high) == (None,) * 4 and few.note is None, "no band is said"
    assert (some.cluster_low, some.cluster_high, some.note) == (None, None, "low <2; high >6"), "of the band to quote"
    assert shared.cluster_high is None or shared.cluster_high > alone.high


def test_d50_of_a_benchmark_without_bins_is_over_its_depths() -> None:
    rows = curve(LINEAR, "mine") + curve({2: (0, 10)}, "other")
    metrics = reduced(rows)
    assert got(metrics, "d50", family="mine").value == pytest.approx(6.0)
    assert not [m for m in metrics if "depth_bin" in m.group]
    cells = {(m.group["family"], m.group["depth"]) for m in metrics if {*m.group} == {"family", "depth"}}
    assert cells == {*(("mine", d) for d in LINEAR), ("other", 2)}


def test_the_same_rows_in_declared_bins_have_another_d50() -> None:
    by_name, by_field = curve(LINEAR, benchmark="d4v2"), curve(LINEAR)
    assert got(reduced(by_name), "d50").value != pytest.approx(6.0)
    for default in (True, False):  # a depth without a bin is its own
        of = {d: {7: 4, 9: 6, 11: 8}.get(d, d if default else None) for d in LINEAR}
        binned = [replace(row, depth_bin=of[row.depth or 0]) for row in by_field]
        assert [m.to_dict() for m in reduced(binned)] == [m.to_dict() for m in reduced(by_name)]


def test_differences_of_two_runs_are_by_depth_where_no_bins_are_declared() -> None:
    rows = [replace(row, model=m) for m in "ab" for row in curve({7: (3, 10), 9: (5, 10)})]
    a, b = ([row for row in rows if row.model == m] for m in "ab")
    groups = [dict(m.group) for m in compare(a, b).metrics if m.metric == "delta_comp"]
    assert groups == [{}, {"depth": 7}, {"depth": 9}]


def test_a_family_takes_its_first_bin_from_the_depth_2_control_and_says_so() -> None:
    rows = curve({2: (1, 10)}, "pair") + curve({4: (9, 10), 6: (10, 10)}, "rank")
    d50 = got(reduced(rows), "d50", family="rank")
    assert d50.value == pytest.approx(2 + 0.4 / 0.8 * 2) and "depth 2 from pair" in (d50.note or "")
    assert find(reduced(rows), "d50", family="pair") is None
    alone = got(reduced(curve({4: (9, 10)}, "rank")), "d50")
    assert alone.value is None and alone.note is not None and alone.note.startswith("<4")


def test_case_sets_hold_failures_and_successes_with_every_ask_that_decided() -> None:
    found = metrics_from_rows(TABLE, "double-gate")
    failures, successes = found.case_set("residual-failure"), found.case_set("gated-success")
    assert failures.ids == ("b", "e") and successes.ids == ("a",)
    roles = [e.role for e in failures.entries[0].evidence]
    assert roles == [
        "part:0:paraphrase:0",
        "part:0:paraphrase:1",
        "part:0",
        "part:1:paraphrase:0",
        "part:1:paraphrase:1",
        "part:1",
        "whole",
    ]
    assert failures.to_dicts()[1]["evidence"][-1]["outcome"] == "abstained"


def test_evidence_of_a_shared_atom_stands_under_the_roles_of_the_case_and_once() -> None:
    def two(case: str, first: str) -> list[Graded]:
        rows = case_rows(case, "1 1", "11", "1", atoms="xz" if first == "x" else "zx")
        return [replace(r, ask=f"{case}/{r.role}") for r in rows]

    found = metrics_from_rows([*two("a", "x"), *two("b", "z")], "double-gate").case_set("gated-success")
    for entry in found.entries:
        roles = [e.role for e in entry.evidence]
        assert len(roles) == len(set(roles)) == 5
        assert all(e.ask == f"{entry.case}/{e.role}" for e in entry.evidence)


def test_abstaining_is_right_where_nobody_can_know() -> None:
    rows = case_rows("a", "11", "1", "-", unknowable=False) + case_rows("b", "11", "1", "-")
    rows[-1] = Graded("b", "whole", "abstained", unknowable=True)
    failure = got(reduced(rows), "residual_failure")
    assert (failure.count, failure.n) == (1, 2)


def test_collapse_mode_takes_an_answer_without_a_tag_for_wrong_but_not_a_lost_connection() -> None:
    rows = case_rows("a", "11", "1", "?") + case_rows("b", "11", "1", "?")
    rows[3] = Graded("a", "whole", "invalid", reason="no-answer-tag")
    rows[-1] = Graded("b", "whole", "invalid", reason="error: connection refused")
    failure = find(metrics_from_rows(rows, "double-gate", compat="collapse").metrics, "residual_failure")
    assert failure is not None and (failure.count, failure.n, failure.n_invalid) == (1, 1, 1)


CASE = Case(
    "c",
    "Which was first?",
    "A war",
    (
        Part("When was A?", "1300", "date", "date", paraphrases=("Year of A?", "A was when?"), atom="A"),
        Part("When was B?", "1400", "date", "date", paraphrases=("Year of B?",), atom="B"),
    ),
)


def test_asks_cover_every_wording_once_and_end_when_all_are_graded() -> None:
    protocol = get("double-gate", format="plain")
    asks = protocol.asks(CASE, {})
    assert [a.role for a in asks] == [
        "part:0", "part:0:paraphrase:0", "part:0:paraphrase:1", "part:1", "part:1:paraphrase:0", "whole",
    ]  # fmt: skip
    assert asks[2].prompt == "A was when?" and asks[2].atom == "A" and asks[2].gold == "1300"
    assert len({a.max_tokens for a in asks}) == 1, "all roles have the same budget"
    graded = {a.role: Grade("correct", "x") for a in asks}
    assert protocol.asks(CASE, graded) == []
    assert [a.role for a in protocol.asks(CASE, {k: v for k, v in graded.items() if k != "whole"})] == ["whole"]


def test_rows_that_the_benchmark_leads_to_expect_and_lack_leave_the_gate_open() -> None:
    protocol = get("double-gate", format="plain")
    rows = [
        Graded.of(CASE, ask, Grade("correct", "x"), ask_id=None, model=None, run=None)
        for ask in protocol.asks(CASE, {})
        if ask.role != "part:1:paraphrase:0"
    ]
    metrics = protocol.reduce(rows, {"c": CASE}).metrics
    assert got(metrics, "double_gate").n_invalid == 1
    assert got(protocol.reduce(rows).metrics, "double_gate").n_invalid == 0
    twins = {name: replace(CASE, id=name) for name in ("c", "d")}
    shared = [
        Graded.of(case, ask, Grade("correct", "x"), ask_id=None, model=None, run=None)
        for name, case in twins.items()
        for ask in protocol.asks(case, {})
        if (name, ask.role) != ("c", "part:1:paraphrase:0")
    ]
    found = got(protocol.reduce(shared, twins).metrics, "double_gate")
    assert (found.count, found.n, found.n_invalid) == (2, 2, 0), "the other case asked this wording of the fact"


def test_recovery_counts_gated_failures_that_another_format_solves() -> None:
    rows = []
    for i in range(18):
        rows += case_rows(f"c{i}", "11", "1", "0", depth=4)
        rows.append(Graded(f"c{i}", "whole:cot", "correct" if i < 13 else "incorrect", depth=4))
    for case, whole in (("ok", "1"), ("open", "?")):
        rows += [*case_rows(case, "11", "1", whole, depth=4), Graded(case, "whole:cot", "correct", depth=4)]
    recovery = got(reduced(rows), "recovery", prompt="cot")
    assert (recovery.count, recovery.n) == (13, 18)


def test_models_in_one_file_are_counted_apart() -> None:
    rows = case_rows("a", "11", "1", "0", model="m") + case_rows("a", "11", "1", "1", model="n")
    metrics = reduced(rows)
    assert got(metrics, "residual_failure", model="m").value == 1.0
    assert got(metrics, "residual_failure", model="n").value == 0.0


def test_a_role_graded_twice_is_refused() -> None:
    rows = [*case_rows("a", "11", "1", "0"), Graded("a", "whole", "correct")]
    with pytest.raises(InputError, match="'whole' twice"):
        metrics_from_rows(rows, "double-gate")
    two = [Graded("a", "whole", "correct", benchmark=name) for name in "xy"]
    with pytest.raises(InputError, match="benchmarks 'x' and 'y' have a case 'a'"):
        metrics_from_rows(two, "double-gate")
    tasks = [replace(row, benchmark=f"task of {row.role}") for row in case_rows("a", "11", "1", "0")]
    assert got(reduced(tasks), "residual_failure").value == 1.0, "parts and wholes may be tasks of their own"


def test_channels_between_two_runs_are_a_minus_b() -> None:
    a = curve({2: (1, 10), 4: (4, 10), 6: (8, 10)})
    b = curve({2: (1, 10), 4: (8, 10), 6: (9, 10)})
    found = compare(a, b)
    assert got(found.metrics, "delta_atom", per="fact").value == 0.0
    delta = got(found.metrics, "delta_comp")
    assert delta.value == pytest.approx((13 - 18) / 30) and delta.note is not None and "13/30 - 18/30" in delta.note
    assert delta.low is not None and delta.high is not None and delta.low < (13 - 18) / 30 < delta.high
    # d50(A) = 4 + .1 / .4 * 2 = 4.5, d50(B) = 2 + .4 / .7 * 2
    assert got(found.metrics, "delta_depth").value == pytest.approx(4.5 - (2 + 0.8 / 0.7))
    assert (found.mcnemar.a_only, found.mcnemar.b_only) == (5, 0)


def test_composition_is_not_compared_where_knowledge_differs() -> None:
    a = curve({2: (1, 20)})
    b = [
        Graded(r.case, r.role, "incorrect") if r.role == "part:0:paraphrase:0" and r.case.endswith("-7") else r
        for r in a
    ]
    found = compare(a, b)
    assert got(found.metrics, "delta_atom", per="fact").value == pytest.approx(0.05)
    delta = got(found.metrics, "delta_comp")
    assert delta.value is None and delta.note is not None and "not comparable" in delta.note


def test_d50_of_families_uses_the_depth_2_control_only_where_it_can() -> None:
    one = reduced(curve({2: (0, 10), 4: (10, 10)}, "f"))
    assert got(one, "d50", family="f").value == got(one, "d50").value == 3.0
    assert got(reduced(curve({2: (9, 10)}, "f")), "d50", family="f").n == 10, "also where it has one depth"
    failed = {"pair": {2: 1}, "far": {4: 9, 6: 10}, "both": {2: 0, 4: 10}, "shallow": {1: 0}, "around": {1: 0, 4: 10}}
    rows = [r for family, of in failed.items() for r in curve({d: (k, 10) for d, k in of.items()}, family)]
    found = {m.group.get("family"): m for m in reduced(rows) if m.metric == "d50"}
    assert {*found} == {None, "far", "both", "around"} and found["around"].n == 40
    # depth 2 of far is that of pair and both together: 1 of 20
    assert found["far"].value == pytest.approx(2 + 2 * (0.5 - 1 / 20) / (0.9 - 1 / 20)) and found["both"].value == 3.0
    assert "depth 2 from both, pair" in str(found["far"].note) and "depth 2 from" not in str(found["both"].note)
    assert (found["far"].n, found["both"].n) == (40, 20)
    mixed = reduced([*curve({2: (0, 10), 4: (10, 10)}, "f"), *curve({2: (10, 10)}, None)])
    assert (got(mixed, "d50", family="f").n, got(mixed, "d50", family="f").value) == (20, 3.0), "of its own cases"


def test_d50_counts_what_is_open_and_says_where_few_cases_are() -> None:
    rows = curve({2: (0, 5), 4: (4, 4)})
    found = got(reduced(rows), "d50")
    assert (found.n, found.n_invalid, found.value) == (9, 0, 3.0) and "n < 5 at depth 4" in str(found.note)
    assert (found.bound_low, found.bound_high) == (3.0, 3.0)
    nobody = got(reduced([*rows, *case_rows("w", "", "0", "0", depth=6)]), "d50")
    assert nobody.n == 9 and "n < 5 at depth 4" in str(nobody.note) and "6" not in str(nobody.note), "no rate, no few"
    more = [*rows, *case_rows("x", "", "?", "1", depth=2), *case_rows("y", "", "1", "?", depth=4),
            *case_rows("z", "", "0", "?", depth=4), *case_rows("zz", "", "0", "?", depth=2)]  # fmt: skip
    opened = got(reduced(more), "d50")
    assert (opened.n, opened.n_invalid, opened.value) == (9, 2, 3.0)
    # of depth 4 fail 4 or 5 of 5
    assert (opened.bound_low, opened.bound_high) == (3.0, pytest.approx(2 + 2 * 0.5 / 0.8))


def test_two_models_are_compared_over_facts_and_cases_of_both() -> None:
    def side(model: str, cases: str, wholes: str) -> list[Graded]:
        return [r for c, w in zip(cases, wholes, strict=True) for r in case_rows(c, "1", "1", w, depth=2, model=model)]

    a, b = side("a", "abcde", "0011?"), side("b", "bcdef", "01?01")
    found = compare(a, b)
    atom, delta = found.metrics[:2]
    assert (atom.n, atom.value, atom.group) == (4, 0.0, {"per": "fact"})
    assert (found.mcnemar.n, found.mcnemar.a_only, found.mcnemar.b_only) == (2, 0, 0)
    # over b c d e: A has 1 of 3 wrong, B 2 of 3
    assert (delta.n, delta.n_invalid, delta.value) == (3, 2, pytest.approx(1 / 3 - 2 / 3))
    kin, theirs = ([replace(r, family="f") for r in rows] for rows in (a, b))
    own = find(compare(kin, theirs).metrics, "delta_comp", family="f")
    assert own is not None and (own.n, own.value) == (delta.n, delta.value), "also by family"
    assert "1/3 - 2/3" in str(delta.note) and any("2 cases are in one run only" in w for w in found.warnings)
    fewer = compare(a, [r if r.case != "c" or r.role != "part:0" else replace(r, outcome="incorrect") for r in b])
    assert (fewer.metrics[1].n, fewer.metrics[1].value) == (2, pytest.approx(1 / 3 - 2 / 2))
    worse = compare(a, [replace(r, outcome="incorrect") if r.case == "c" and "para" in r.role else r for r in b])
    assert "differs by +25.0 points, more than 2" in str(worse.metrics[1].note) and worse.metrics[1].value is None
    bare = compare([r for r in a if "para" not in r.role], [r for r in b if "para" not in r.role])
    assert "no atom was probed in both" in str(bare.metrics[1].note) and bare.metrics[1].value is None
    depth = [next(m for m in c.metrics if m.metric == "delta_depth") for c in (found, fewer)]
    assert [d.n for d in depth] == [3, 2] and "d50(B) = <2" in str(depth[0].note), "over b c d e, too"
    assert "d50(A) = >2" in str(depth[1].note) and "d50(B) = <2" in str(depth[1].note) and depth[1].value is None
    with pytest.raises(InputError, match="A: rows of several models"):
        compare([*a, *b], b)
    with pytest.raises(InputError, match="no case in common"):
        compare(a[:3], b[-3:])


def test_a_wording_that_neither_run_was_asked_leaves_the_gates_of_both_open() -> None:
    a, b = ([*case_rows("a", "1", "1", "0"), *case_rows("b", "1", "1", w)] for w in "01")
    part = Part("q", "a", paraphrases=("x", "y"))
    for wordings, n in ((part.paraphrases[:1], 2), (part.paraphrases, 0)):
        cases = {c: Case(c, "q", "a", (replace(part, paraphrases=wordings),)) for c in "ab"}
        delta = compare(a, b, cases).metrics[1]
        assert (delta.metric, delta.n, delta.n_invalid) == ("delta_comp", n, 4 - 2 * n)


def test_probes_of_one_fact_share_it_and_evidence_is_the_cases_own_row_where_it_agrees() -> None:
    wordings = {a: {f"w{i}": Graded("c", f"part:0:paraphrase:{i}", "correct", atom=a) for i in range(3)} for a in "xyz"}
    per_probe, per_fact = double_gate._stability({(0, a): rows for a, rows in wordings.items()})
    assert (per_probe.n, per_probe.cluster_n, per_fact.n, per_fact.cluster_n) == (9, 3, 3, None)
    again = double_gate._stability({(repeat, a): rows for repeat in (0, 1) for a, rows in wordings.items()})
    assert [(m.n, m.cluster_n) for m in again] == [(18, 3), (6, 3)], "a fact that is asked twice is one fact"
    own, other = Graded("c", "r", "correct", answer="own"), Graded("d", "s", "incorrect", answer="other")
    item: Any = SimpleNamespace(rows={"r": own})
    for deciding, answer in ((other, "other"), (replace(other, outcome="correct"), "own")):
        found = double_gate._evidence(item, "r", deciding)
        assert (found.role, found.answer) == ("r", answer)


def test_conflation_has_the_bounds_of_its_two_rates_only_where_an_answer_is_open() -> None:
    rows = [*case_rows("a", "1", "1", "0"), *case_rows("b", "0", "1", "0"), *case_rows("c", "1", "1", "1")]
    found = got(reduced(rows), "conflation")
    assert (found.value, found.bound_low, found.bound_high) == (pytest.approx(2 / 3 - 1 / 2),) * 3
    rows = [replace(r, outcome="invalid") if (r.case, r.role) == ("c", "whole") else r for r in rows]
    found = got(reduced(rows), "conflation")
    assert found.n_invalid == 1 and (found.bound_low, found.bound_high) == pytest.approx((2 / 3 - 1, 1 - 1 / 2))


def test_depths_are_compared_by_family_where_both_runs_have_it() -> None:
    a = curve({2: (0, 4), 4: (4, 4)}, "f")
    b = [replace(row, family=None) for row in a]
    groups = [[dict(m.group) for m in compare(a, other).metrics if m.metric == "delta_depth"] for other in (a, b)]
    assert groups == [[{}, {"family": "f"}], [{}]]


def test_differences_that_no_case_changes_are_bounded_by_the_share_of_other_cases() -> None:
    other = 1 - 0.025 ** (1 / 6)  # exact upper limit of 0 of 6
    ids = "abcdef"
    right, wrong = ([row for c in ids for row in case_rows(c, "11", "1", whole)] for whole in "10")
    outside = case_rows("g", "10", "1", "1")
    for a, b, value, low, high in (
        (right, right, 0.0, -other, other),
        (wrong, right, 1.0, 1 - 2 * other, 1.0),
        (right, wrong, -1.0, -1.0, -1 + 2 * other),
    ):
        found = got(compare([*a, *outside], [*b, *outside]).metrics, "delta_comp")
        assert (found.value, found.interval) == (value, "clopper-pearson of other cases")
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high)), (
            "a case outside both gates says nothing"
        )
    alone = got(reduced(right), "conflation")
    assert alone.value == 0 and alone.high == pytest.approx(other) and -other < (alone.low or 0) < 0
    mirrored = got(reduced(wrong), "conflation")
    assert mirrored.value == 0 and (mirrored.low, mirrored.high) == (
        pytest.approx(-other),
        pytest.approx(-(alone.low or 0)),
    )
    near, lost = ([replace(row, cluster=f"fact {row.case in 'abc'}") for row in rows] for rows in (right, wrong))
    assert got(compare(near, near).metrics, "delta_comp").low is None, "two clusters carry no interval"
    assert (compare(right, wrong).mcnemar.p, compare(near, lost).mcnemar.p) == (2 / 2**6, None)


def test_cases_outside_the_gates_are_no_clusters_of_a_difference_of_failures() -> None:
    a, b = (
        [replace(row, cluster=f"k{i // 2}") for i, w in enumerate(wholes) for row in case_rows(f"c{i}", "11", "1", w)]
        for wholes in ("0110101101", "1101011110")
    )
    single = [replace(row, cluster=f"k{i // 2}") for i in range(2) for row in case_rows(f"s{i}", "10", "1", "0")]
    outside = [replace(row, cluster=f"o{i // 2}") for i in range(20) for row in case_rows(f"o{i}", "10", "0", "0")]
    for n, known in ((40, True), (24, False)):  # rows of five clusters, or of three
        few, many = (compare([*a[:n], *more], [*b[:n], *more]).metrics for more in ([], outside))
        found = got(few, "delta_comp")
        assert got(many, "delta_comp") == found and (found.low is not None) is known
    pair = [got(reduced([*a, *single, *more]), "conflation") for more in ([], outside)]
    assert (pair[0].low, pair[0].high) == (pair[1].low, pair[1].high) and pair[0].low is not None
    assert (pair[0].n, pair[1].n) == (12, 32)
