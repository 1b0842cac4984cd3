"""Readers of published multi-hop sets on small samples in our own words that have their exact shapes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.benchmarks import multi_hop
from composcope.evaluation.benchmarks.catalog import load
from composcope.evaluation.cases import Case, read_cases, write_cases
from composcope.evaluation.gold import others, type_of_answer, type_of_words
from composcope.evaluation.grading import grade


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def document(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(list(rows), indent=1), encoding="utf-8")
    return path


def step(id: int, question: str, answer: str, support: int | None = 0) -> dict[str, Any]:
    return {"id": id, "question": question, "answer": answer, "paragraph_support_idx": support}


def musique(id: str, *steps: dict[str, Any], **over: Any) -> dict[str, Any]:
    paragraphs = [{"idx": 0, "title": "Quince", "paragraph_text": "A paragraph about it.", "is_supporting": True}]
    return {
        "id": id, "paragraphs": paragraphs, "question": "The whole question?", "question_decomposition": list(steps),
        "answer": steps[-1]["answer"] if steps else "none", "answer_aliases": [], "answerable": True, **over,
    }  # fmt: skip


# MuSiQue


def test_later_sub_questions_name_the_gold_answers_of_earlier_steps(tmp_path: Path) -> None:
    row = musique(
        "3hop1__1_2_3",
        step(1, "Quince Lane >> author", "Ada Quill"),
        step(2, "Which town was #1 born in?", "Marlow"),
        step(3, "When did #1's teacher leave #2?", "3 May 1901"),
        answer_aliases=["May 3, 1901"],
    )
    [case] = load(f"musique:{lines(tmp_path / 'm.jsonl', row)}")
    assert [p.question for p in case.parts] == [
        "Who is the author of Quince Lane?",
        "Which town was Ada Quill born in?",
        "When did Ada Quill's teacher leave Marlow?",
    ]
    assert [p.answer for p in case.parts] == ["Ada Quill", "Marlow", "3 May 1901"]
    assert [p.answer_type for p in case.parts] == ["text", "text", "date"]
    assert (case.id, case.family, case.depth, case.answer_type) == ("3hop1__1_2_3", "3hop1", 3, "date")
    # The last step's answer is the whole's: the spellings that are accepted hold for both.
    assert case.aliases == case.parts[2].aliases == ("May 3, 1901",)
    assert case.evidence == () and not case.unknowable


def test_a_number_that_no_earlier_step_has_and_an_arrow_after_nothing_are_part_of_the_text(tmp_path: Path) -> None:
    steps = [step(1, "who was #1 on the list", "Bo"), step(2, "#1 >> spouse", "Cy"), step(3, " >> what next", "Di")]
    [case] = load(f"musique:{lines(tmp_path / 'm.jsonl', musique('3hop1__1_2_3', *steps))}")
    asked = [p.question.strip() for p in case.parts]
    assert asked == ["who was #1 on the list", "Who is the spouse of Bo?", ">> what next"]


def test_questions_that_share_a_sub_question_are_one_cluster_also_over_a_third(tmp_path: Path) -> None:
    rows = [
        musique("2hop__1_2", step(1, "a", "x"), step(2, "b", "y")),
        musique("2hop__3_4", step(3, "c", "x"), step(4, "d", "y")),
        musique("2hop__2_5", step(2, "b", "y"), step(5, "e", "z")),
        musique("2hop__5_6", step(5, "e", "z"), step(6, "f", "w")),
    ]
    found = load(f"musique:{lines(tmp_path / 'm.jsonl', *rows)}")
    assert [c.cluster for c in found] == ["2hop__1_2", "2hop__3_4", "2hop__1_2", "2hop__1_2"]


def test_an_unanswerable_twin_is_unknowable_and_then_paragraphs_are_evidence(tmp_path: Path) -> None:
    steps = (step(1, "a", "x"), step(2, "b #1", "y", None))
    rows = [musique("2hop__1_2", *steps), musique("2hop__1_2", *steps, answerable=False)]
    found = load(f"musique:{lines(tmp_path / 'full.jsonl', *rows)}")
    assert [(c.id, c.unknowable) for c in found] == [("2hop__1_2", False), ("2hop__1_2-unanswerable", True)]
    assert [c.evidence for c in found] == [("Quince: A paragraph about it.",)] * 2


def test_a_case_file_behind_a_readers_name_is_said_to_need_none(tmp_path: Path) -> None:
    row = {"id": "c", "question": "q", "answer": "a #### b", "parts": [], "family": "f"}
    path = lines(tmp_path / "c.jsonl", row)
    with pytest.raises(InputError, match=rf"is a case file, which the reader musique is not for; give {path}$"):
        load(f"musique:{path}")
    assert load(f"cases:{path}") == load(path) == load(f"own:{path}", {"own": read_cases})


def test_a_line_without_sub_questions_has_no_parts_and_says_why(tmp_path: Path) -> None:
    rows = [musique("2hop__1_2", answer="x"), musique("own", answer="y")]
    case, own = load(f"musique:{lines(tmp_path / 'm.jsonl', *rows)}")
    assert (case.family, own.family) == ("2hop", None)
    assert case.parts == () and case.depth is None and "question_decomposition" in case.meta["problem"]


# HotpotQA and 2WikiMultiHopQA

HOTPOT = {
    "_id": "5a", "question": "Which of two rivers is longer?", "answer": "the Orl", "type": "comparison",
    "level": "hard", "supporting_facts": [["Orl", 0], ["Mave", 1]],
    "context": [["Orl", ["The Orl is long."]], ["Mave", ["The Mave is a river.", "It is short."]]],
}  # fmt: skip


def wiki(*evidences: Any, **over: Any) -> dict[str, Any]:
    return {**HOTPOT, "type": "compositional", "evidences": list(evidences), **over}


def test_hotpotqa_has_no_sub_questions_and_says_so(tmp_path: Path) -> None:
    copied = {"id" if name == "_id" else name: value for name, value in HOTPOT.items()}
    [case] = load(f"hotpotqa:{document(tmp_path / 'h.json', HOTPOT)}")
    assert load(f"hotpotqa:{document(tmp_path / 'hub.json', copied)}") == [case]
    assert (case.id, case.family, case.parts, case.meta["level"]) == ("5a", "comparison", (), "hard")
    assert "no sub-questions" in case.meta["problem"]


@pytest.mark.parametrize(
    "evidences",
    [
        [["Dune Song", "performer", "Ada Quill"], ["Ada Quill", "date of birth", "3 May 1901"]],
        '[["Dune Song", "performer", "Ada Quill"], ["Ada Quill", "date of birth", "3 May 1901"]]',
        {
            "fact": ["Dune Song", "Ada Quill"],
            "relation": ["performer", "date of birth"],
            "entity": ["Ada Quill", "3 May 1901"],
        },
        [
            {"fact": "Dune Song", "relation": "performer", "entity": "Ada Quill"},
            {"fact": "Ada Quill", "relation": "date of birth", "entity": "3 May 1901"},
        ],
    ],
)
def test_triples_become_parts_in_every_shape_that_they_are_published_in(tmp_path: Path, evidences: Any) -> None:
    row = {**HOTPOT, "type": "compositional", "answer": "3 May 1901", "evidences": evidences}
    [case] = load(f"2wiki:{document(tmp_path / 'w.json', row)}")
    assert [(p.question, p.answer, p.answer_type) for p in case.parts] == [
        ("Who is the performer of Dune Song?", "Ada Quill", "text"),
        ("When was Ada Quill born?", "3 May 1901", "date"),
    ]
    assert (case.depth, case.family, case.answer_type, case.meta) == (2, "compositional", "date", {"level": "hard"})
    assert [(p.kind, p.atom) for p in case.parts] == [
        ("hop-1", "dune song | performer"), ("hop-2", "ada quill | date of birth")
    ]  # fmt: skip


def test_a_relation_without_a_template_leaves_the_case_without_parts_and_is_named(tmp_path: Path) -> None:
    rows = [wiki(["A", "director", "B"], ["B", "favourite hat", "C"]), wiki(_id="5b")]
    found = load(f"2wiki:{document(tmp_path / 'w.json', *rows)}")
    assert [c.parts for c in found] == [(), ()]
    assert "'favourite hat'" in found[0].meta["problem"] and "no evidences" in found[1].meta["problem"]


def test_comparisons_share_a_cluster_where_they_share_a_fact(tmp_path: Path) -> None:
    rows = [
        wiki(["A", "country", "X"], ["B", "country", "X"], _id="1", type="comparison", answer="yes"),
        wiki(["B", "Country", "X"], ["C", "country", "Y"], _id="2", type="comparison", answer="no"),
        wiki(["B", "director", "D"], ["C", "director", "D"], _id="3", type="comparison", answer="yes"),
    ]
    found = load(f"2wiki:{document(tmp_path / 'w.json', *rows)}")
    assert [c.cluster for c in found] == ["1", "1", "3"]
    assert {c.answer_type for c in found} == {"boolean"}


# MQuAKE


def mquake(**over: Any) -> dict[str, Any]:
    hops = [
        {"question": "Who wrote Dune Song?", "cloze": "Dune Song was written by", "answer": "Ada Quill",
         "answer_alias": ["A. Quill", "ada quill"]},
        {"question": "What is the country of Ada Quill?", "cloze": "Ada Quill is a citizen of", "answer": "Norland",
         "answer_alias": ["NL"]},
    ]  # fmt: skip
    return {
        "case_id": 7, "requested_rewrite": [{"prompt": "{} is a citizen of", "target_new": {"str": "Sur", "id": "Q9"}}],
        "questions": ["First wording?", "Second wording?", "Third wording?"], "answer": "Norland",
        "answer_alias": ["The North"], "new_answer": "Sur", "new_answer_alias": [], "single_hops": hops,
        "new_single_hops": hops, "orig": {"triples": [["Q1", "P50", "Q2"], ["Q2", "P27", "Q3"]]}, **over,
    }  # fmt: skip


def test_mquake_is_asked_as_the_world_was_before_the_edits(tmp_path: Path) -> None:
    other = mquake(case_id=8, answer_extended=["Northland"])
    found = load(f"mquake:{document(tmp_path / 'q.json', mquake(), other)}")
    case = found[0]
    assert (case.id, case.question, case.answer, case.depth) == ("mquake-7", "First wording?", "Norland", 2)
    assert [(p.question, p.answer, p.aliases) for p in case.parts] == [
        ("Who wrote Dune Song?", "Ada Quill", ("A. Quill",)),
        ("What is the country of Ada Quill?", "Norland", ("NL", "The North")),
    ]
    assert case.aliases == ("The North", "NL") and len(case.meta["questions"]) == 3
    assert "Northland" in found[1].aliases and {c.cluster for c in found} == {"mquake-7"}


def test_the_remastered_copies_name_their_triples_at_the_top(tmp_path: Path) -> None:
    flat = [mquake(case_id=i, orig_triples=[["Q1", "P50", f"Q{i}"], [f"Q{i}", "P27", "Q3"]]) for i in (1, 2)]
    for row in flat:
        del row["orig"]
    flat.append({**flat[0], "case_id": 3, "orig_triples": [["Q1", "P57", "Q8"], ["Q8", "P27", "Q3"]]})
    clusters = [c.cluster for c in load(f"mquake:{lines(tmp_path / 'q.jsonl', *flat)}")]
    assert clusters == ["mquake-1", "mquake-1", "mquake-3"], "another relation of the subject is another fact"


# TwoHopFact and SOCRATES


def twohop(uid: str, novel: str, author: str, town: str, **over: Any) -> dict[str, Any]:
    return {
        "uid": uid, "category": "novel-author-birthcity", "fact_comp_type": "birthcity of novel's author",
        "e1.value": novel, "e2.value": author, "e3.value": town, "e2.aliases": repr(((author, "Quill, A."),)),
        "e3.aliases": repr(((town, "Old Marlow"), ("M.",))), "r1(e1).prompt": f"The author of the novel {novel} is",
        "r2(e2).prompt": f"{author} was born in the city of",
        "r2(r1(e1)).prompt": f"The author of the novel {novel} was born in the city of", **over,
    }  # fmt: skip


def table(path: Path, *rows: dict[str, Any]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_statements_are_asked_as_blanks_with_both_hops_and_their_aliases(tmp_path: Path) -> None:
    rows = [
        twohop("0", "Dune Song", "Ada Quill", "Marlow"),
        twohop("1", "Sea Song", "Ada Quill", "Marlow"),
        twohop("2", "Quince", "Bo", "1901"),
    ]
    found = load(f"twohopfact:{table(tmp_path / 'TwoHopFact.csv', *rows)}")
    case = found[0]
    assert (case.id, case.depth, case.family) == ("twohopfact-0", 2, "novel-author-birthcity")
    assert case.question == "Fill in the blank: The author of the novel Dune Song was born in the city of ____"
    assert [(p.question, p.answer, p.aliases) for p in case.parts] == [
        ("Fill in the blank: The author of the novel Dune Song is ____", "Ada Quill", ("Quill, A.",)),
        ("Fill in the blank: Ada Quill was born in the city of ____", "Marlow", ("Old Marlow", "M.")),
    ]
    assert (case.answer, case.aliases) == ("Marlow", ("Old Marlow", "M."))
    assert [c.cluster for c in found] == ["twohopfact-0", "twohopfact-0", "twohopfact-2"]
    assert found[2].answer_type == "number"


def test_socrates_has_its_own_wordings_with_a_blank(tmp_path: Path) -> None:
    row = twohop("0", "Dune Song", "Ada Quill", "Marlow", **{"r1(e1).blank.prompt": "Dune Song was written by ___."})
    del row["e2.aliases"]
    row["e2.minimal_aliases"] = "['Ada Quill', 'A. Quill']"
    [case] = load(f"socrates:{table(tmp_path / 'SOCRATES_v1.csv', row)}")
    assert case.parts[0].question == "Fill in the blank: Dune Song was written by ___."
    assert (case.benchmark, case.parts[0].aliases) == ("socrates", ("A. Quill",))
    both = table(tmp_path / "both.csv", {**row, "e2.aliases": "['Ada Quill', 'Quill, A.', 'A. Quill']"})
    assert load(f"socrates:{both}")[0].parts[0].aliases == ("Quill, A.", "A. Quill"), "the full list where there is one"
    many = table(tmp_path / "many.csv", {**row, "e2.aliases": str([f"name {n}" for n in range(20_000)])})
    assert len(load(f"socrates:{many}")[0].parts[0].aliases) == 20_000


# AgentCoMa


def test_extra_contexts_of_agentcoma_go_to_the_step_that_they_belong_to(tmp_path: Path) -> None:
    row = {
        "id": "test_HW_add_1", "category": "house_working", "operation_type": "addition",
        "question_commonsense": "Which of a kettle and a spoon is electrical?",
        "answers_commonsense": "['the kettle', 'kettle']", "question_math": "2 kettles at 3 each. What do they cost?",
        "answer_math": "6", "question_composition": "2 kettles at 3 each and a spoon. The electrical ones?",
        "answer_composition": "6", "question_commonsense_extra_context": "Of 2 kettles at 3 each and a spoon, which?",
    }  # fmt: skip
    [case] = load(f"agentcoma:{table(tmp_path / 'agentcoma_test.csv', row)}")
    assert (case.id, case.domain, case.operation) == ("agentcoma_test-test_HW_add_1", "house_working", "addition")
    assert [p.extra_context for p in case.parts] == ["Of 2 kettles at 3 each and a spoon, which?", None]
    assert case.meta == {}
    twice = table(tmp_path / "twice.csv", {**row, "extra_context": "another"})
    with pytest.raises(InputError, match=r":1: columns 'question_commonsense_extra_context' and 'extra_context'"):
        load(f"agentcoma:{twice}")


# What holds for all


CASES: dict[str, Any] = {
    "musique": lambda p: lines(p / "a.jsonl", musique("2hop__1_2", step(1, "a", "x"), step(2, "b #1", "y"))),
    "hotpotqa": lambda p: document(p / "a.json", HOTPOT),
    "2wiki": lambda p: document(p / "a.json", wiki(["A", "director", "B"], ["B", "spouse", "C"])),
    "mquake": lambda p: document(p / "a.json", mquake()),
    "twohopfact": lambda p: table(p / "a.csv", twohop("0", "Dune Song", "Ada Quill", "Marlow")),
}


@pytest.mark.parametrize("reader", CASES)
def test_read_cases_survive_a_case_file(tmp_path: Path, reader: str) -> None:
    found = load(f"{reader}:{CASES[reader](tmp_path)}")
    assert all(isinstance(c, Case) for c in found)
    write_cases(found, tmp_path / "cases.jsonl")
    assert read_cases(tmp_path / "cases.jsonl") == found


GSM8K = {"question": "One and two?", "answer": "1 + 2 = <<1+2=3>>3\n#### 3"}


@pytest.mark.parametrize("reader", [*CASES, "gsm8k"])
def test_a_published_file_given_as_a_case_file_is_refused_with_its_reader(tmp_path: Path, reader: str) -> None:
    path = lines(tmp_path / "g.jsonl", GSM8K) if reader == "gsm8k" else CASES[reader](tmp_path)
    with pytest.raises(InputError) as error:
        load(str(path))
    assert f"give {reader}:{path}" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("reader", "rows", "said"),
    [
        ("musique", [{"id": "2hop__1_2", "question": "q", "paragraphs": []}], ": item 0: field 'answer' is missing"),
        ("musique", [musique("2hop__1_2", step(1, "", "x"))], "question_decomposition[0]: field 'question' is ''"),
        ("musique", [musique("2hop__1_2", step(1, "a", "x"), answer_aliases="y")], "field 'answer_aliases' is 'y'"),
        ("musique", [musique("2hop__1_2", step(1, "a", "x"), answerable="no")], "field 'answerable' is 'no'"),
        ("musique", [musique("a", question_decomposition={"1": "q"}, answer="x")], "field 'question_decomposition'"),
        ("musique", [musique("a", question_decomposition=["q"], answer="x")], "field 'question_decomposition'"),
        ("musique", [musique("a", step(1, "a", "x"), paragraphs={"idx": 0})], "field 'paragraphs'"),
        ("musique", [musique("a", step(1, "a", "x"), paragraphs=["text"])], "field 'paragraphs'"),
        ("musique", [{"id": "2hop__1_2", "input": "q", "output": [{"answer": "x"}]}], "it has id, input, output; give"),
        ("2wiki", [{**HOTPOT, "evidences": {"fact": ["A"], "relation": ["r"]}}], "lists fact, relation, entity"),
        ("hotpotqa", [HOTPOT, {"_id": "5b", "question": "q"}], ": item 1: field 'answer' is missing"),
        (
            "2wiki",
            [{**HOTPOT, "evidences": {"fact": ["A", "B"], "relation": ["r"], "entity": ["C", "D"]}}],
            "differ in length",
        ),
        ("2wiki", [wiki(["A", "director"])], "evidences[0] is ['A', 'director']; give [subject, relation, object]"),
        ("2wiki", [wiki(["A", "director", ""])], "evidences[0]: field 'object' is ''"),
        ("2wiki", [{**HOTPOT, "evidences": "[["}], "field 'evidences' is text that is not JSON"),
        ("mquake", [mquake(single_hops=[])], "field 'single_hops' is []"),
        ("mquake", [mquake(questions="q")], "field 'questions' is 'q'"),
        ("mquake", [mquake(single_hops=[{"question": "q"}])], "single_hops[0]: field 'answer' is None"),
        ("mquake", [[]], ": item 0: expected a JSON object, got list"),
        ("mquake", [], ": no rows; give MQuAKE-CF.json"),
    ],
)
def test_a_record_that_cannot_be_used_is_named_with_field_and_value(
    tmp_path: Path, reader: str, rows: list[Any], said: str
) -> None:
    path = document(tmp_path / "a.json", *rows)
    with pytest.raises(InputError) as error:
        load(f"{reader}:{path}")
    assert str(error.value).startswith(str(path)) and said in str(error.value) and "\n" not in str(error.value)


def test_a_table_without_a_needed_column_or_with_names_that_are_no_list_is_refused(tmp_path: Path) -> None:
    row = twohop("0", "Dune Song", "Ada Quill", "Marlow")
    bare = table(tmp_path / "bare.csv", {k: v for k, v in row.items() if k != "r2(e2).prompt"})
    with pytest.raises(InputError, match=r"bare.csv: column 'r2\(e2\).prompt' is missing"):
        load(f"twohopfact:{bare}")
    torn = table(tmp_path / "torn.csv", {**row, "e3.aliases": "(('Marlow',"})
    with pytest.raises(InputError, match=r"torn.csv:2: column 'e3.aliases' is "):
        load(f"twohopfact:{torn}")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1963", "number"), ("2,193", "number"), ("$5 million", "number"), ("-5.5", "number"), ("12%", "number"),
        ("3 September 1939", "date"), ("September 3, 1939", "date"), ("December 1972", "date"), ("44 BC", "date"),
        ("yes", "boolean"), ("No", "boolean"), ("I-95 N", "text"), ("Route 66", "text"), ("7:30", "text"),
        ("20th century", "text"), ("circa 1900", "text"), ("May", "text"), ("1,2", "text"), ("James Madison", "text"),
        ("Battle of 3 May 1901", "text"),
    ],
)  # fmt: skip
def test_answers_about_the_world_have_the_type_that_they_are_written_in(text: str, kind: str) -> None:
    assert type_of_words(text) == kind


def test_a_code_of_two_small_letters_is_no_name_of_a_country() -> None:
    assert others("Iceland", ["is", "ISL", "Republic of Iceland", "", "iceland"]) == ("ISL", "Republic of Iceland")
    assert others("German", ["de", "DE", "German language"]) == ("DE", "German language")
    assert others("kilometres", ["km", "kilometers"]) == ("km", "kilometers")


@pytest.mark.parametrize(
    ("text", "question", "kind"),
    [
        ("1523", "How many people lived in Lom in the year 2010?", "number"),
        ("1984", "In what year did the population reach 2000?", "text"),
        ("1984", "When was Marlow founded?", "text"),
        ("1984", "In what year did it burn down?", "text"),
        ("1984", "Fill in the blank: The year in which it was founded is ____", "text"),
        ("1984", "How many people live in Marlow?", "number"),
        ("2,193", "How many people lived there in that year?", "number"),
        ("84", "In what year did it burn down?", "number"),
        ("3 May 1984", "When was Marlow founded?", "date"),
        ("1984", None, "number"),
    ],
)
def test_a_year_that_is_asked_for_is_compared_as_a_date_and_not_as_a_number(
    text: str, question: str | None, kind: str
) -> None:
    assert type_of_answer(text, question) == kind
    if kind == "text":
        assert grade("It was in 1984, with 12 votes.", "stop", text, kind).outcome == "correct"
        assert grade("It was in 1985, with 12 votes.", "stop", text, kind).outcome == "incorrect"


def test_every_relation_makes_a_question_that_names_its_subject_once() -> None:
    for relation in multi_hop.TEMPLATES:
        asked = multi_hop.relation_question("Dune {Song}", relation.upper())
        assert asked is not None and asked.count("Dune {Song}") == 1 and asked.endswith("?")
    assert multi_hop.relation_question("A", "favourite hat") is None
    assert multi_hop.any_relation_question("A", "favourite hat") == "What is the favourite hat of A?"
    assert multi_hop.any_relation_question("A", "licensed to") == "What is A licensed to?"


@pytest.mark.parametrize(
    "triples", [[["Q1", "P50", "Q2"]], [["Q1", "P50", "Q2"], ["Q2", "P27"]], [["Q1", "P50", "Q2"], "Q2"], "Q1"]
)
def test_triples_that_do_not_fit_the_hops_name_no_facts(tmp_path: Path, triples: Any) -> None:
    [case] = load(f"mquake:{document(tmp_path / 'q.json', mquake(orig={'triples': triples}))}")
    assert [p.atom for p in case.parts] == [p.question.casefold() for p in case.parts]
    [named] = load(f"mquake:{document(tmp_path / 'q.json', mquake())}")
    assert [p.atom for p in named.parts] == ["Q1 P50", "Q2 P27"]


def test_entities_without_other_names_have_none(tmp_path: Path) -> None:
    row = {**twohop("0", "Dune Song", "Ada Quill", "Marlow"), "e2.aliases": " ", "e3.aliases": ""}
    [case] = load(f"twohopfact:{table(tmp_path / 't.csv', row)}")
    assert [p.aliases for p in case.parts] == [(), ()] and case.aliases == ()
