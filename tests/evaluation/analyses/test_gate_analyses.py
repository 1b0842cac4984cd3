"""Analyses of gate-passing cases: formats, recovery, joint stability, failure classes, tiers. All counts by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.analyses import gated, taxonomy
from composcope.evaluation.analyses.base import Analysis, Source
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.grading import grade
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols.compare import delta_atom

MARKS = {"+": "correct", "-": "incorrect", "0": "abstained", "?": "invalid"}
LABEL = "malformed-output"


def row(case: str, role: str, mark: str, **extra: object) -> Graded:
    return Graded.from_dict({"case": case, "role": role, "outcome": MARKS[mark], **extra})


def case_rows(case: str, atoms: str, marks: str, whole: str, **extra: object) -> list[Graded]:
    """A case over one-letter atoms: one wording and one sub-question each, with equal marks."""
    found = []
    for i, (atom, mark) in enumerate(zip(atoms, marks, strict=True)):
        found.append(row(case, f"part:{i}", mark, family=extra.get("family")))
        found.append(row(case, f"part:{i}:paraphrase:0", mark, atom=atom, family=extra.get("family")))
    return [*found, row(case, "whole", whole, **extra)]


def source(name: str, rows: list[Graded], **extra: object) -> Source:
    return Source(name, rows, **extra)  # type: ignore[arg-type]


def value(found: Analysis, metric: str, **group: object) -> tuple[float | None, int]:
    rows: list[Metric] = [m for m in found.metrics if m.metric == metric and dict(m.group) == group]
    assert len(rows) == 1, (metric, group, [(m.metric, dict(m.group)) for m in found.metrics])
    return rows[0].count, rows[0].n


# Formats


def test_formats_are_compared_on_the_cases_that_pass_the_first_runs_gate_only() -> None:
    first = [
        *case_rows("a", "x", "+", "+", prompt="xml", answer="Rome", ask="a1"),
        *case_rows("b", "x", "+", "-", prompt="xml", answer="Oslo", ask="b1"),
        *case_rows("c", "y", "+", "0", prompt="xml", answer="INSUFFICIENT_EVIDENCE", ask="c1"),
        *case_rows("d", "z", "-", "+", prompt="xml", answer="Bern", ask="d1"),
    ]
    second = [
        row("a", "whole", "+", prompt="xml-answer", answer="rome.", ask="a2"),
        row("b", "whole", "+", prompt="xml-answer", answer="Paris", ask="b2"),
        row("c", "whole", "0", prompt="xml-answer", answer="cannot know", ask="c2"),
        row("d", "whole", "+", prompt="xml-answer", answer="Bern", ask="d2"),
    ]
    third = [
        row("a", "whole", "+", prompt="knowledge", answer="Rome"),
        row("b", "whole", "?", prompt="knowledge", reason="no-answer"),
        row("c", "whole", "-", prompt="knowledge", answer="Kyiv"),
    ]
    texts = {"a1": "<answer>Rome</answer>", "b1": "<answer>Oslo</answer>", "c1": "<answer>x", "d1": ""}
    found = gated.compare_formats([source("v1", first, texts=texts), source("v2", second), source("v3", third)])
    assert value(found, "composition", prompt="xml") == (1, 3)
    assert value(found, "composition", prompt="xml-answer") == (2, 3)
    assert value(found, "composition", prompt="knowledge") == (1, 2)  # one invalid
    assert value(found, "abstention", prompt="xml") == (1, 3)
    assert value(found, "abstention", prompt="knowledge") == (0, 2), "nobody knows what an invalid answer says"
    assert value(found, "closing_tag", prompt="xml") == (2, 3)
    del texts["b1"]
    fewer = gated.compare_formats([source("v1", first, texts=texts), source("v2", second)])
    assert value(fewer, "closing_tag", prompt="xml") == (1, 2)
    texts |= {"a3": "Rome", "c3": "Kyiv</answer>"}
    own = [[replace(r, prompt=prompt, ask=f"{r.case}3") for r in third] for prompt in ("knowledge", None)]
    others = [source(name, rows, texts=texts) for name, rows in zip(("v1", "v3", "v4"), (first, *own), strict=True)]
    tags = [m for m in gated.compare_formats(others).metrics if m.metric == "closing_tag"]
    assert [(dict(m.group)["prompt"], m.count, m.n, "ask for tags" in str(m.note)) for m in tags] == [
        ("xml", 1, 2, False), ("knowledge", 1, 2, True), ("v4", 1, 2, True)
    ]  # fmt: skip
    # Rome = rome., Oslo != Paris, both abstain.
    assert value(found, "agreement", prompts="xml = xml-answer") == (2, 3)
    assert value(found, "agreement", prompts="xml = knowledge") == (1, 2)
    assert value(found, "all_identical", prompts="xml = xml-answer = knowledge") == (1, 2)
    second += case_rows("d", "z", "+", "+", prompt="xml-answer", answer="Bern")[:1]
    other = gated.compare_formats([source("v1", first), source("v2", second)], reference="v2")
    assert value(other, "composition", prompt="xml") == (1, 1), "the cases that pass the gates of the reference"


def test_further_formats_of_one_run_are_compared_too() -> None:
    rows = [
        *case_rows("a", "x", "+", "-", prompt="xml", answer="1"),
        row("a", "whole:cot", "+", prompt="cot", answer="2"),
        row("a", "whole:cot", "+", prompt="cot", answer="1", repeat=1),
    ]
    found = gated.compare_formats([source("run", rows)])
    assert value(found, "agreement", prompts="xml = cot") == (0, 1)


def test_a_question_with_its_steps_reversed_is_no_format() -> None:
    rows = [one for case in "ab" for one in case_rows(case, "x", "+", "-", prompt="xml", answer="1")]
    rows += [row(case, "whole:cot", "+", prompt="cot", answer="1") for case in "ab"]
    found = gated.compare_formats([source("run", [*rows, row("a", "whole:reversed", "-", prompt="xml", answer="9")])])
    assert value(found, "agreement", prompts="xml = cot") == (2, 2)
    assert {m.metric for m in found.metrics} == {"composition", "abstention", "agreement"} and not found.warnings


def test_one_format_alone_is_no_comparison() -> None:
    with pytest.raises(InputError, match="only xml"):
        gated.compare_formats([source("run", case_rows("a", "x", "+", "+", prompt="xml"))])


# Recovery


def test_recovery_is_over_the_plain_runs_failures_by_family_and_depth() -> None:
    plain = [
        *case_rows("a", "x", "+", "-", family="rank", depth=4),
        *case_rows("b", "x", "+", "0", family="rank", depth=6),
        *case_rows("c", "x", "+", "-", family="pair", depth=4),
        *case_rows("d", "x", "+", "+", family="pair", depth=4),
        *case_rows("e", "z", "-", "-", family="pair", depth=4),
        *case_rows("f", "x", "+", "-", family="pair", depth=4),
    ]
    after = {"a": "+", "b": "-", "c": "+", "d": "-", "e": "+", "f": "?"}
    found = gated.recovery(source("plain", plain), source("cot", [row(c, "whole", m) for c, m in after.items()]))
    assert value(found, "recovery") == (2, 3)  # a, b, c judged; f unknown; e never passed the gate
    assert value(found, "recovery", family="rank") == (1, 2)
    assert value(found, "recovery", depth=4) == (2, 2)
    assert value(found, "loss") == (1, 1)
    assert found.tables["paired"][0]["recovered"] == 2 and found.tables["paired"][0]["lost"] == 1


# Joint stability


def test_cases_are_pure_mixed_or_gaps_by_what_all_runs_know() -> None:
    # x is stable in both runs, y in the first only, z in none.
    cases = {"p": "x", "m": "xy", "g": "yz", "h": "z"}
    marks = [{"x": "+", "y": "+", "z": "-"}, {"x": "+", "y": "-", "z": "-"}]
    wholes = [{"p": "-", "m": "+", "g": "-", "h": "-"}, {"p": "+", "m": "-", "g": "-", "h": "+"}]
    runs = [
        source(
            f"run{i}",
            [r for c, atoms in cases.items() for r in case_rows(c, atoms, "".join(known[a] for a in atoms), whole[c])],
        )
        for i, (known, whole) in enumerate(zip(marks, wholes, strict=True))
    ]
    found = gated.joint_stability(runs)
    assert [(r["case"], r["kind"]) for r in found.files["cases-by-kind.jsonl"]] == [
        ("g", "knowledge-gap"),
        ("h", "knowledge-gap"),
        ("m", "mixed"),
        ("p", "pure"),
    ]
    assert [r["atom"] for r in found.files["stable-facts.jsonl"]] == ["x"] and not found.warnings
    assert [*map(gated._text, ("fact-1", ("a", "part:0"), 7))] == ["fact-1", "a/part:0", "7"]
    less = [replace(run, rows=[r for r in run.rows if r.atom != "y" or i == 0]) for i, run in enumerate(runs)]
    fewer = gated.joint_stability(less)
    assert [(r["case"], r["kind"]) for r in fewer.files["cases-by-kind.jsonl"]] == [
        ("h", "knowledge-gap"), ("p", "pure"),
    ]  # fmt: skip
    invalid = replace(runs[0], rows=[replace(r, outcome="invalid") if r.atom == "y" else r for r in runs[0].rows])
    open_fact = gated.joint_stability([invalid])
    assert [r["atom"] for r in open_fact.files["stable-facts.jsonl"]] == ["x"]
    assert open_fact.tables["jointly stable"] == [
        {"runs": 1, "facts": 3, "jointly_stable": 1, "pure": 1, "mixed": 0, "knowledge-gap": 1}
    ]
    [said], [also] = fewer.warnings, open_fact.warnings
    assert said == also, "one run was never asked about y; what the other answered is invalid"
    assert said.startswith("2 cases have a fact of unknown stability")
    assert value(found, "residual_failure", model="run0", kind="pure") == (1, 1)
    assert value(found, "residual_failure", model="run1", kind="pure") == (0, 1)
    # Run 0 knows y, so its mixed case lacks nothing: it is no control there.
    assert value(found, "control_passes", model="run0", kind="mixed") == (0, 0)
    assert value(found, "control_passes", model="run1", kind="mixed") == (1, 1)
    assert value(found, "control_passes", model="run1", kind="knowledge-gap") == (2, 2)


def test_a_right_whole_without_the_knowledge_is_kept_out_by_the_gate_and_shown_as_accuracy() -> None:
    found = gated.joint_stability([source("run", case_rows("g", "z", "-", "+"))])
    assert value(found, "control_passes", model="run", kind="knowledge-gap") == (1, 1)
    assert value(found, "composition", model="run", kind="knowledge-gap") == (1, 1)


def test_the_expected_share_of_cases_with_k_stable_facts_is_s_to_the_k() -> None:
    rows = [*case_rows("a", "wx", "++", "+"), *case_rows("b", "yz", "+-", "-"), *case_rows("c", "w", "+", "+")]
    rows += case_rows("d", "v", "?", "+")  # whether this fact is stable is not known
    found = gated.expectation(source("run", rows))
    (one, two) = found.tables["s^k"]
    assert (one["facts"], one["observed"], one["expected"]) == (1, 1.0, 0.75)
    assert (two["facts"], two["observed"], two["expected"]) == (2, 0.5, 0.5625)


def test_a_control_passes_only_where_the_whole_gate_refuses_it_and_each_repeat_counts() -> None:
    # The fact is unstable, because of the first repeat; afterwards it is right, and the sub-question is what decides.
    repeats = [("-", "+"), ("+", "-"), ("+", "+"), ("+", "?")]
    rows = [r for n, (atom, sub) in enumerate(repeats)
            for r in (row("g", "part:0:paraphrase:0", atom, atom="z", repeat=n), row("g", "part:0", sub, repeat=n),
                      row("g", "whole", "+", repeat=n))]  # fmt: skip
    [found] = [m for m in gated.joint_stability([source("run", rows)]).metrics if m.metric == "control_passes"]
    assert (found.count, found.n, found.n_invalid) == (2, 3, 1)


def test_a_wording_that_the_cases_have_and_nobody_asked_leaves_the_gate_open_in_every_analysis() -> None:
    part = Part("When?", "1402", paraphrases=("In which year?", "What year?"), atom="x")
    cases = {c: Case(c, "Rank", "A", (part,)) for c in "ab"}
    rows = [replace(r, match="exact", ask=r.case) for c in "ab" for r in case_rows(c, "x", "+", "-", prompt="xml")]
    again = [replace(r, role="part:0:paraphrase:1") for r in rows if r.role == "part:0:paraphrase:0"]
    cot = source("cot", [row(c, "whole", "+", prompt="cot") for c in "ab"])
    runs = [source("run", asked, cases=cases, texts=dict.fromkeys("ab", "<answer>A</answer>"))
            for asked in ([*rows, *again], rows)]  # fmt: skip
    for run, n in zip(runs, (2, 0), strict=True):
        found = [*taxonomy.tiers(run).metrics, *gated.recovery(run, cot).metrics]
        failing = {m.group.get("tier", "recovery"): (m.n, m.n_invalid) for m in found
                   if m.metric == "residual_failure" or (m.metric == "recovery" and not m.group)}  # fmt: skip
        assert failing == dict.fromkeys(("semantic", "exact", "strict", "adjudicated", "recovery"), (n, 2 - n))
        own = {c: replace(case, parts=(replace(part, atom=None),)) for c, case in cases.items()}
        unnamed = replace(run, rows=[replace(r, atom=None) for r in run.rows], cases=own)
        for asked, facts in ((run, 1), (unnamed, 2), (replace(unnamed, cases={}), 2)):
            [kind] = gated.joint_stability([asked]).tables["jointly stable"]
            assert (kind["pure"], kind["facts"]) == (2, facts), "what was asked of the fact was right"
        [behind] = [m for m in gated.joint_stability([run]).metrics if m.metric == "residual_failure"]
        assert (behind.n, behind.n_invalid) == (n, 2 - n)
    assert len(taxonomy.taxonomy(runs[0]).files["annotate.jsonl"]) == 2
    assert value(gated.compare_formats([runs[0], cot]), "composition", prompt="cot") == (2, 2)
    for call in (lambda: taxonomy.taxonomy(runs[1]), lambda: gated.compare_formats([runs[1], cot])):
        with pytest.raises(NoCasesError):
            call()


# Failure classes and tiers

DATES = {"A": "1402", "B": "1500", "C": "1600"}
PARTS = tuple(
    Part(f"When was {e}?", d, "date", "date", worked=f"{n}: {d}")
    for (e, d), n in zip(DATES.items(), ("Ambermoot", "Birchsiege", "Cedarpact"), strict=True)
)


def temporal(id: str) -> Case:
    return Case(id, "Rank", "A, B, C", PARTS, answer_type="ordered-list", family="rank", depth=3)


WRONG = {
    "order": ("B, A, C", "-", "Ambermoot 1402, Birchsiege 1500, Cedarpact 1600. <answer>B, A, C</answer>"),
    "shift": ("B, A, C", "-", "Ambermoot in 1500. Birchsiege in 1402, Cedarpact in 1600. <answer>B, A, C</answer>"),
    "lost": ("A, B", "-", "Ambermoot 1402 and Birchsiege 1500. <answer>A, B</answer>"),
    "abstain": ("INSUFFICIENT_EVIDENCE", "0", "<answer>INSUFFICIENT_EVIDENCE</answer>"),
    "tag": (None, "?", "Ambermoot 1402, Birchsiege 1500"),
    "type": ("1402, 1500, 1600", "-", "<answer>1402, 1500, 1600</answer>"),
}
EXPECTED = {
    "order": "order-or-boundary",
    "shift": "binding-shift",
    "lost": "lost-intermediate",
    "abstain": "over-abstention",
    "tag": "malformed-output",
    "type": "answer-type-mismatch",
}


def failing() -> Source:
    rows: list[Graded] = []
    texts = {}
    for name, (answer, mark, text) in WRONG.items():
        extra = {"answer": answer, "gold": "A, B, C", "ask": name, "prompt": "xml", "match": None}
        extra |= {"reason": "no-answer-tag"} if mark == "?" else {}
        rows += case_rows(name, "xyz", "+++", mark, **extra)
        texts[name] = text
    for n in range(4):
        rows += case_rows(f"ok{n}", "xyz", "+++", "+", answer="A, B, C", gold="A, B, C", ask=f"ok{n}", prompt="xml")
        texts[f"ok{n}"] = "<answer>A, B, C</answer>" if n else "<answer>A, B, C</answer> or so"
    return source("run", rows, cases={n: temporal(n) for n in (*WRONG, "ok0", "ok1", "ok2", "ok3")}, texts=texts)


@pytest.mark.parametrize("name", WRONG)
def test_rules_name_the_class_of_a_failure(name: str) -> None:
    asked = replace(failing(), prompts={name: f"question of {name}"})
    sheet = taxonomy.taxonomy(asked).files["annotate.jsonl"]
    [line] = [line for line in sheet if line["case"] == name]
    assert line["label"] == EXPECTED[name] and line["question"] == f"question of {name}"


@pytest.mark.parametrize(
    ("reason", "label"),
    [("compat:no-answer", LABEL), ("compat:truncated", LABEL), ("compat:agentcoma", "other"), ("incomplete", "other")],
)
def test_an_answer_that_a_paper_counts_as_wrong_for_its_form_is_malformed(reason: str, label: str) -> None:
    extra = {"gold": "Oslo", "ask": "c", "prompt": "cot", "reason": reason}
    given = source("run", case_rows("c", "xy", "++", "-", **extra), texts={"c": "I think about it."})
    assert [line["label"] for line in taxonomy.taxonomy(given).files["annotate.jsonl"]] == [label]


def test_shares_of_failures_that_share_facts_have_an_interval_over_clusters() -> None:
    given = failing()
    cases = list(dict.fromkeys(row.case for row in given.rows))
    rows = [replace(row, cluster=f"fact {cases.index(row.case) // 2}") for row in given.rows]
    plain, shared = taxonomy.taxonomy(given), taxonomy.taxonomy(replace(given, rows=rows))
    assert all(m.cluster_n is None for m in plain.metrics)
    failed = [line["case"] for line in shared.files["annotate.jsonl"]]
    of = {row.case: row.cluster for row in rows}
    right = [f"ok{n}" for n in range(4)]
    for name, near in (("artefact_share", failed), ("residual_failure", [*failed, *right])):
        before, after = (next(m for m in found.metrics if m.metric == name) for found in (plain, shared))
        assert (after.count, after.n, after.low) == (before.count, len(near), before.low)
        assert after.cluster_n == len({of[case] for case in near})
    assert after.cluster_interval == "korn-graubard" and after.cluster_low is not None


@pytest.mark.parametrize(
    ("text", "lost", "shifted"),
    [
        ("Ambermoot 1402, Birchsiege 1500, Cedarpact 1600.", False, False),
        ("Ambermoot 1402 and Birchsiege 1500.", True, False),
        ("Nothing of that.", False, False),
        ("Ambermoot 1500.", True, True),
        (f"Ambermoot {'is ' * 18}1500.", True, True),
        (f"Ambermoot {'is ' * 20}1500.", True, False),  # too far behind it to be said of it
        ("Ambermoot and Birchsiege 1500.", True, False),
        ("Ambermoot. 1500", True, False),
    ],
)
def test_what_a_failing_response_says_of_the_parts(text: str, lost: bool, shifted: bool) -> None:
    case = temporal("c")
    assert (taxonomy._lost(text, case), taxonomy._binding_shift(text, case)) == (lost, shifted)
    alone = Case("d", "q", "1402", PARTS[:1])
    assert not taxonomy._lost(text, alone) and not taxonomy._binding_shift(text, alone)


def test_corrected_rates_take_artefacts_out_of_the_failures() -> None:
    found = taxonomy.taxonomy(failing())
    # 10 pass the gates, 6 fail, of which 2 are artefacts.
    assert value(found, "residual_failure") == (6, 10)
    assert value(found, "corrected_counted_right") == (4, 10)
    assert value(found, "corrected_left_out") == (4, 8)
    assert value(found, "artefact_share") == (2, 6)
    assert value(found, "class_share", **{"class": "binding-shift", "of": "structural"}) == (1, 4)


def test_a_persons_label_wins_over_the_rules_and_unknown_labels_are_refused() -> None:
    labels = taxonomy.read_annotations([{"case": "order", "label": "malformed-output"}])
    found = taxonomy.taxonomy(failing(), labels)
    assert value(found, "corrected_counted_right") == (3, 10)
    assert found.warnings == ("1 of 1 annotations differ from the rules' label",)
    with pytest.raises(InputError, match="use one of order-or-boundary"):
        taxonomy.read_annotations([{"case": "order", "label": "odd"}])
    assert taxonomy.read_annotations([{"case": 0, "label": "other"}]) == {"0": "other"}
    with pytest.raises(InputError, match="'ok1' is not a gate-passing failure"):
        taxonomy.taxonomy(failing(), {"ok1": "other"})


def test_each_repeat_of_a_failure_has_its_own_label() -> None:
    given = failing()
    other = [replace(row, repeat=1) for row in given.rows]
    other = [replace(r, outcome="correct") if (r.case, r.role) == ("order", "whole") else r for r in other]
    both = replace(given, rows=[*given.rows, *other])
    found = taxonomy.taxonomy(both)
    assert value(found, "artefact_share") == (4, 11) and value(found, "residual_failure") == (11, 20)
    assert value(found, "corrected_counted_right") == (7, 20)
    sheet = found.files["annotate.jsonl"]
    assert [line.get("repeat") for line in sheet].count(1) == 5
    labels = taxonomy.read_annotations([{**line, "label": "other"} if line.get("repeat") else line for line in sheet])
    by_hand = taxonomy.taxonomy(both, labels)
    assert value(by_hand, "artefact_share") == (2, 11)
    with pytest.raises(InputError, match="repeat is 'x'"):
        taxonomy.read_annotations([{"case": "order", "label": "other", "repeat": "x"}])


def test_a_case_counts_once_in_formats_and_later_repeats_are_said() -> None:
    rows = [replace(r, repeat=i) for i, whole in enumerate("0-") for c in "abc" for r in case_rows(c, "x", "+", whole)]
    other = [row(c, "whole", "+", prompt="cot", repeat=i) for c in "abc" for i in range(2)]
    both = gated.compare_formats([source("run", rows), source("cot", other)])
    assert value(both, "composition", prompt="cot") == (3, 3) and "12 rows of later repeats" in both.warnings[0]


def test_nothing_to_classify_is_said() -> None:
    with pytest.raises(NoCasesError, match="no case passes the gates"):
        taxonomy.taxonomy(source("run", case_rows("a", "x", "-", "-")))


def test_the_strict_tier_wants_well_formed_answers_and_the_adjudicated_one_forgives_artefacts() -> None:
    found = taxonomy.tiers(failing())
    # The missing tag has no judgement in the semantic tier: 5 failures of 9.
    assert value(found, "residual_failure", tier="semantic") == (5, 9)
    # "tag" stays without judgement; the type mismatch is forgiven.
    assert value(found, "residual_failure", tier="adjudicated") == (4, 9)


@pytest.mark.parametrize("match", taxonomy.LITERAL)
def test_every_literal_match_counts_in_the_exact_tier(match: str) -> None:
    literal = {"exact", "alias", "numeric", "date", "set", "ordered", "list", "boolean", "letter", "abstention"}
    assert set(taxonomy.LITERAL) == literal
    found = taxonomy.tiers(source("run", [replace(r, match=match) for r in case_rows("a", "x", "+", "+")]))
    assert value(found, "residual_failure", tier="exact") == (0, 1)


@pytest.mark.parametrize(
    ("text", "gold", "answer_type", "more"),
    [("B, A, C", "B, A, C", "ordered-list", {}), ("A, B", "B, A", "list", {}), ("(B)", "B", "choice", {}),
     ("1969", "1969", "date", {}), ("Yes", "yes", "boolean", {}), ("7", "7", "number", {}),
     ("Oslo", "Oslo", "text", {}), ("INSUFFICIENT_EVIDENCE", "1969", "date", {"unknowable": True})],
)  # fmt: skip
def test_the_gold_answer_itself_is_a_literal_match_in_every_type(
    text: str, gold: str, answer_type: str, more: dict[str, Any]
) -> None:
    found = grade(text, "stop", gold, answer_type, **more)
    assert found.outcome == "correct" and found.match in taxonomy.LITERAL


def test_literal_matches_alone_count_in_the_exact_tier() -> None:
    rows = [*case_rows("a", "x", "+", "+", match="judge"), *case_rows("b", "x", "+", "+", match="exact")]
    found = taxonomy.tiers(source("run", [r if r.role == "whole" else replace(r, match="exact") for r in rows]))
    assert value(found, "residual_failure", tier="semantic") == (0, 2)
    assert value(found, "residual_failure", tier="exact") == (1, 2)
    assert found.warnings == ("run: no responses at hand; the strict tier needs a run folder",)


def test_the_strict_tier_refuses_what_stands_after_the_answer() -> None:
    found = taxonomy.tiers(answered())
    # ok0 goes on after its answer, ok1 has two; ok2 and ok3 end with their only one.
    assert value(found, "residual_failure", tier="semantic") == (0, 4)
    assert value(found, "residual_failure", tier="strict") == (2, 4)


def answered() -> Source:
    given = failing()
    rows = [r for r in given.rows if r.case.startswith("ok")]
    # The gate's own answers are well-formed.
    rows = [r if r.role == "whole" else replace(r, ask="part") for r in rows]
    texts = {**given.texts, "part": "1402", "ok1": "<answer>B</answer> No, <answer>A, B, C</answer>"}
    return source("run", rows, cases={c: given.cases[c] for c in given.cases if c.startswith("ok")}, texts=texts)


# What cases share


def test_analyses_of_gated_cases_know_what_cases_share() -> None:
    marks = {"a": "+", "b": "+", "c": "-", "d": "+", "e": "+", "f": "-"}
    pairs = [(x, y) for x in marks for y in marks if x < y]
    about = {"cluster": "x", "prompt": "xml", "answer": "Rome"}
    rows = [r for x, y in pairs for r in case_rows(x + y, x + y, marks[x] + marks[y], "+", **{**about, "cluster": x})]
    joint = gated.expectation(source("m", rows)).metrics[-1]
    assert (joint.metric, joint.n, joint.count, joint.cluster_n) == ("jointly_stable", 15, 6, 6)
    other = [replace(r, prompt="cot") for r in rows if r.role == "whole"]
    passing = gated.compare_formats([source("xml", rows), source("cot", other)]).metrics
    assert {m.metric: m.cluster_n for m in passing} == {"composition": 3, "abstention": 3, "agreement": 3}
    lacking = [m for m in gated.joint_stability([source("m", rows)]).metrics if m.metric == "control_passes"]
    assert sum(m.n for m in lacking) == 9 and {m.cluster_n is not None for m in lacking if m.n > 1} == {True}


def test_the_difference_of_stabilities_is_over_facts_and_not_over_their_repeats() -> None:
    def side(wrong: str, repeats: int) -> list[Graded]:
        return [row(a, "part:0:paraphrase:0", "-" if a in wrong else "+", atom=a, repeat=r)
                for r in range(repeats) for a in "abcdefghijklmnop"]  # fmt: skip

    once, often = (delta_atom(side("abc", n), side("cdefg", n), seed=0) for n in (1, 10))
    assert once.low is not None and once.high is not None and often.low is not None and often.high is not None
    assert often.value == once.value and often.high - often.low > 0.9 * (once.high - once.low)
    bare = [replace(r, role=f"no-preamble/{r.role}", outcome="incorrect") for r in side("", 1)]
    assert delta_atom(side("abc", 1) + bare, side("cdefg", 1), seed=0) == once, "asked without preamble is another way"


@pytest.mark.parametrize(
    ("gold", "kind"),
    [("A, B; C", "ordered-list"), ("-3.5", "number"), ("1,200", "number"), ("Yes", "boolean"), ("A", "text"),
     (None, "text")],
)  # fmt: skip
def test_the_type_of_an_answer_is_read_from_the_gold_where_no_case_says_it(gold: str | None, kind: str) -> None:
    assert taxonomy._kind_of(gold) == kind


@pytest.mark.parametrize(
    ("answer", "gold", "kind", "mismatch"),
    [("twelve", "12", "number", True), ("x 12", "12", "number", False), ("soon", "1402", "date", True),
     ("1402", "1500", "date", False),
     ("maybe", "yes", "boolean", True), ("No.", "yes", "boolean", False), ("1402, 1500", "A, B", "list", True),
     ("B, A", "A, B", "list", False), ("12", "Rome", "text", False)],
)  # fmt: skip
def test_an_answer_of_another_type_is_told_by_its_form(answer: str, gold: str, kind: str, mismatch: bool) -> None:
    assert taxonomy._mismatch(answer, gold, kind) == mismatch


def test_answers_are_alike_whatever_their_dress_and_none_without_a_judgement() -> None:
    outcomes: list[Any] = ["correct", "incorrect", "abstained", "invalid", "correct"]
    answers = ("The ROME.", "rome", "no idea", "Rome", None)
    rows = [Graded("c", "whole", o, answer=a) for o, a in zip(outcomes, answers, strict=True)]
    said = [gated.answer_of(r) for r in rows]
    assert said[1] == "rome" and said[3:] == [None, None] and said[2] == gated.prompts.ABSTENTION
    assert gated.answer_of(replace(rows[1], answer="ROME.")) == said[1]
    joint: dict[Any, Any] = {"x": True, "y": False, "z": None}
    kinds = [gated.kind_of(set(atoms), joint) for atoms in ("x", "xy", "y", "xz", "xw")]
    assert kinds == ["pure", "mixed", "knowledge-gap", None, None]


def test_a_case_recovers_only_where_the_other_run_judged_it() -> None:
    after: Any = SimpleNamespace(item=SimpleNamespace(case="c", repeat=0))
    judged: list[tuple[int, Any]] = [(0, "correct"), (0, "abstained"), (0, "invalid"), (1, "correct")]
    wholes = [{}, *({("c", repeat): Graded("c", "whole", outcome)} for repeat, outcome in judged)]
    found = [gated._after(after, of) for of in wholes]
    assert found == [None, True, False, None, None]


@pytest.mark.parametrize(
    ("gold", "kind", "answer", "label"),
    [("1492", "text", "Columbus", "other"), ("1492", "number", "Columbus", "answer-type-mismatch"),
     ("1492", None, "Columbus", "answer-type-mismatch"), ("Rome", None, "Bern", "other"),
     ("yes", "text", "perhaps", "other"), ("yes", None, "perhaps", "answer-type-mismatch"),
     ("A, B, C", None, "C, B, A", "order-or-boundary"), ("A, B, C", "ordered-list", "A, B", "lost-intermediate"),
     ("A, B, C", "text", "A, B", "other"), ("A, B, C", "ordered-list", "C, then B, then A.", "order-or-boundary")],
)  # fmt: skip
def test_the_type_of_an_answer_is_the_cases_own_where_a_case_is_known(
    gold: str, kind: str | None, answer: str, label: str
) -> None:
    rows = {"whole": row("c", "whole", "-", answer=answer, gold=gold)}
    case = None if kind is None else Case("c", "?", gold, answer_type=kind)
    assert taxonomy.rule_label(SimpleNamespace(item=SimpleNamespace(rows=rows)), case, answer) == label  # type: ignore[arg-type]


def _named(run: str, case: str, **extra: Any) -> Source:
    return source(run, case_rows(case, "x", "+", "+", **extra))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: gated.joint_stability([]), InputError, ("0 runs", "at least 1")),
        (lambda: gated.joint_stability([_named("r", "a"), _named("r", "a")]), InputError, ("'r'", "twice")),
        (lambda: gated.joint_stability([_named("r", "a"), source("s", case_rows("a", "y", "+", "+"))]), NoCasesError,
         ("no probed atom in common",)),
        (lambda: gated.compare_formats([_named("r", "a", prompt="xml"), _named("s", "a", prompt="cot")], "t"),
         InputError, ("--reference t", "r, s")),
        (lambda: gated.compare_formats([_named("r", "a", prompt="xml"), _named("s", "b", prompt="cot")]), NoCasesError,
         ("none of the 1 gate-passing",)),
        (lambda: gated.compare_formats([_named("r", "a", prompt="xml"), _named("s", "a", prompt="xml")]), InputError,
         ("s: case 'a'", "format 'xml'")),
        (lambda: taxonomy.read_annotations([{"case": "a", "label": "other"}, {"case": "a", "label": LABEL}], "f"),
         InputError, ("f:2: case 'a'", f"'other' and '{LABEL}'")),
        (lambda: taxonomy.read_annotations([{"label": "other"}]), InputError, ("annotations:1", "case None")),
        (lambda: taxonomy.read_annotations([{"case": "a", "label": "other", "repeat": True}]), InputError,
         ("annotations:1", "repeat is True")),
    ],
)  # fmt: skip
def test_runs_and_labels_that_do_not_fit_together_are_named(
    call: Any, error: type[Exception], said: tuple[str, ...]
) -> None:
    with pytest.raises(error) as caught:
        call()
    assert all(fact in str(caught.value) for fact in said), caught.value


def test_the_named_run_chooses_the_cases_of_formats_and_labels_of_repeats_are_apart() -> None:
    knows, not_b = ("+", "+"), ("+", "-")
    first = [r for c, m in zip("ab", knows, strict=True) for r in case_rows(c, c, m, "+", prompt="xml")]
    other = [r for c, m in zip("ab", not_b, strict=True) for r in case_rows(c, c, m, "-", prompt="cot")]
    runs = [source("one", first), source("two", other)]
    assert value(gated.compare_formats(runs), "composition", prompt="cot") == (0, 2)
    for reference, n in (("one", 2), ("two", 1)):
        assert value(gated.compare_formats(runs, reference), "composition", prompt="xml") == (n, n)
    labels = [{"case": "a", "label": "other", "repeat": 0}, {"case": "a", "label": LABEL, "repeat": 1}]
    assert taxonomy.read_annotations([*labels, labels[0]]) == {("a", 0): "other", ("a", 1): LABEL}
