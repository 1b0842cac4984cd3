"""Result files of other tools: which rows they become, and which of their statements contradict each other."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.importers import Options, detect, read
from composcope.evaluation.importers.base import regrade
from composcope.evaluation.metrics import find
from composcope.evaluation.protocols import metrics_from_rows


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


# Bamboogle results


def _answer(returned: str, em: bool, cem: bool, gold: str = "Ada") -> dict[str, Any]:
    return {"answer": gold, "returned": returned, "is_right_EM": em, "is_right_CEM": cem, "is_right_GPT_opinion": cem}


def _sub(first: bool, second: bool, both: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for hop, gold, right in ((1, 1815, first), (2, 1830, second)):
        # The cut-out answer is that of a last line about something else: CEM was judged on the response as returned.
        returned = f"It was {gold if right else 1900}.\n\nQuestion: And then?"
        found |= {f"Q{hop}_gt": [str(gold)], f"Q{hop}_pred": "and then", f"Q{hop}_returned": returned}
        found |= {f"Q{hop}_is_right_{s}": right and s != "EM" for s in ("EM", "CEM", "GPT_opinion")}
    return found | {f"Q1_and_Q2_right_{s}": both if s == "CEM" else False for s in ("EM", "CEM", "GPT_opinion")}


@pytest.fixture
def bamboogle(tmp_path: Path) -> Path:
    items = [
        {
            "direct_answer_result": _answer("It is Ada.", False, True),
            "self_ask_result": _answer("Bob", False, False),
            "subquestions_result": _sub(True, True, True),
        },
        {
            # Two lies: CEM says no although the gold answer is there, "both" says yes although Q2 is wrong.
            "direct_answer_result": _answer("Ada", True, False),
            "self_ask_result": _answer("Ada", True, True),
            "subquestions_result": _sub(True, False, True),
        },
    ]
    summary = {"direct_answer_correct_CEM": 1, "both_subquestions_correct_CEM": 1, "size_of_dataset": 3}
    path = tmp_path / "some-model.json"
    path.write_text(json.dumps({"summary": summary, "per_question_results": items}))
    return path


def test_styles_become_the_whole_and_further_wholes(bamboogle: Path) -> None:
    found = read(bamboogle)
    assert [(r.case, r.role, r.outcome) for r in found.rows] == [
        ("bamboogle-000", "whole", "correct"),
        ("bamboogle-000", "whole:self_ask", "incorrect"),
        ("bamboogle-000", "part:0", "correct"),
        ("bamboogle-000", "part:1", "correct"),
        ("bamboogle-001", "whole", "incorrect"),
        ("bamboogle-001", "whole:self_ask", "correct"),
        ("bamboogle-001", "part:0", "correct"),
        ("bamboogle-001", "part:1", "incorrect"),
    ]
    assert {r.model for r in found.rows} == {"some-model"}
    assert {r.model for r in read(bamboogle, options=Options(model="mine")).rows} == {"mine"}
    assert [r.kind for r in found.rows] == [None, None, "hop-1", "hop-2"] * 2
    again = [s and (s.response.splitlines()[0], *s.golds, s.where.rpartition(": ")[2]) for s in found.stored]
    assert again[2:4] == [("It was 1815.", "1815", "item 0"), ("It was 1830.", "1830", "item 0")]
    assert again[6:] == [("It was 1815.", "1815", "item 1"), ("It was 1900.", "1830", "item 1")]
    assert [s and s.golds[0] for s in found.stored] == [r.gold for r in found.rows], "of its own row"


def test_contradictions_are_named_row_by_row_with_what_they_should_be(bamboogle: Path) -> None:
    found = read(bamboogle).contradictions
    seen = [(c["where"].rpartition(": ")[2], c["field"], c["stored"], c["recomputed"]) for c in found]
    assert ("item 1", "direct_answer.is_right_CEM", False, True) in seen
    assert ("item 1", "direct_answer: is_right_CEM", False, True) in seen  # EM is right, so CEM must be
    assert ("item 1", "Q1_and_Q2_right_CEM", True, False) in seen
    assert not {"Q1_is_right_CEM", "Q2_is_right_CEM"} & {s[1] for s in seen}, "judged on what was returned"
    # Both parts are right by GPT's opinion in item 0, the stored flag denies it.
    assert ("item 0", "Q1_and_Q2_right_GPT_opinion", False, True) in seen
    assert [s[1:] for s in seen if s[1].startswith("summary")] == [("summary.both_subquestions_correct_CEM", 1, 2)]
    assert read(bamboogle).warnings == [f"{bamboogle}: size_of_dataset is 3, but there are 2 items"]


def test_of_a_file_without_returned_responses_the_cut_out_answer_is_held_against_the_verdict(tmp_path: Path) -> None:
    sub = {k: v for k, v in _sub(True, True, True).items() if not k.endswith("_returned")}
    sub |= {"Q1_pred": "in 1815", "Q2_pred": "and then", "Q1_gt": ["in that year", "1815"]}
    direct = _answer("ADA!", True, True, "the Ada")
    item = {"cot": _answer("Bo", False, False), "direct_answer": direct, "subquestions_result": sub}
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"per_question_results": [item]}))
    found = {c["field"]: (c["stored"], c["recomputed"]) for c in read(path).contradictions}
    assert found["Q2_is_right_CEM"] == (True, False)
    assert not {"Q1_is_right_CEM", "direct_answer.is_right_CEM"} & {*found}
    assert [r.role for r in read(path).rows] == ["whole:cot", "whole", "part:0", "part:1"]


def test_an_unknown_scorer_or_style_is_refused_with_the_known_ones(bamboogle: Path) -> None:
    with pytest.raises(InputError, match=r"--scorer F1.*CEM, EM, GPT_opinion"):
        read(bamboogle, options=Options(scorer="F1"))
    with pytest.raises(InputError, match=r"--whole cot.*direct_answer, self_ask"):
        read(bamboogle, options=Options(whole="cot"))


@pytest.mark.parametrize(
    ("inside", "field"), [("direct_answer_result", "is_right_EM"), ("subquestions_result", "Q2_is_right_EM")]
)
def test_a_file_without_the_scorers_verdict_is_refused_with_place_and_field(
    bamboogle: Path, inside: str, field: str
) -> None:
    raw = json.loads(bamboogle.read_text())
    del raw["per_question_results"][1][inside][field]
    bamboogle.write_text(json.dumps(raw))
    with pytest.raises(InputError) as caught:
        read(bamboogle, options=Options(scorer="EM"))
    assert all(word in str(caught.value) for word in (str(bamboogle), f"{field!r} is missing", "--scorer", "CEM"))
    assert len(read(bamboogle, options=Options(scorer="CEM")).rows) == 8


def test_counts_of_text_davinci_003_are_the_published_ones(shared: Path) -> None:
    tables = json.loads((shared / "golden/behavioural/published_tables.json").read_text())
    rows = read(shared / "data/bamboogle_results/text-davinci-003.json").rows
    metrics = metrics_from_rows(rows, "compositionality-gap").metrics
    for expected in tables["compgap_bamboogle_recomputed"]:
        prompt = {} if expected["prompt"] == "direct_answer" else {"prompt": expected["prompt"]}

        counts = {(m.metric, m.n): m.count for m in metrics if dict(m.group) in ({}, prompt)}
        assert [counts["step:0", 125], counts["step:1", 125]] == [expected["q1"], expected["q2"]]
        assert counts["both", 125] == expected["both"]
        assert counts["composition", 125] == expected["comp"]
        assert counts["press_gap", expected["both"]] == expected["both_and_fail"]
        gap, independent = find(metrics, "gap", **prompt), find(metrics, "independence_gap", **prompt)
        assert gap is not None and independent is not None
        assert gap.value == pytest.approx(expected["diff_gap"], abs=5e-5)
        assert independent.value == pytest.approx(expected["indep_delta"], abs=5e-5)
        for cell, n in expected["fail_cells_q1q2"].items():
            quadrant = find(metrics, "quadrant", quadrant=cell, **prompt)
            assert quadrant is not None and quadrant.count == n


@pytest.mark.parametrize(
    ("model", "both", "summary", "responses"), [("text-davinci-003", 16, 4, 0), ("gpt-3.5-turbo", 7, 5, 0)]
)
def test_contradictions_of_the_two_real_files_are_all_found(
    shared: Path, model: str, both: int, summary: int, responses: int
) -> None:
    # Counted independently by a plain loop over the files.
    found = read(shared / f"data/bamboogle_results/{model}.json").contradictions
    fields = Counter(
        "summary" if c["field"].startswith("summary") else "both" if "Q1_and_Q2" in c["field"] else "response"
        for c in found
    )
    assert (fields["both"], fields["summary"], fields["response"]) == (both, summary, responses)


# lm-evaluation-harness


ABOUT = {"family": "chains", "domain": "shop", "operation": "add", "cluster": "item-3", "kind": "math"}
"""What a document states about its case."""


def _sample(doc_id: int, answer: str, target: str, right: float, **extra: Any) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "doc": {"question": "?", **extra.pop("doc", {})},
        "target": target,
        "resps": [[answer]],
        "filtered_resps": [answer],
        "metrics": ["exact_match"],
        "exact_match": right,
        **extra,
    }


def test_samples_become_rows_and_a_wrong_verdict_on_the_target_itself_is_reported(tmp_path: Path) -> None:
    rows = [
        _sample(0, "12", "12", 1.0, doc={"case": "c1", "role": "part:0", "depth": 2, **ABOUT}),
        _sample(1, "12", "12", 0.0, doc={"case": "c1", "role": "whole"}),
        _sample(2, "1,200", "1200", 1.0, doc={"case": 7, "role": "part:1"}),
        _sample(3, "seven", "12", 1.0),
        _sample(4, "Rome", "Oslo", 1.0),
        _sample(5, "13", "12", 0.0),
        _sample(6, "13", "", 0.0),
        _sample(7, "It is Oslo.", "Oslo", 1.0),
    ]
    path = _lines(tmp_path / "samples_gsm_pairs_2025-01-02T03-04-05.678.jsonl", rows)
    found = read(path, options=Options(model="m"))
    assert [(r.case, r.role, r.outcome) for r in found.rows] == [
        ("c1", "part:0", "correct"),
        ("c1", "whole", "incorrect"),
        ("7", "part:1", "correct"),
        ("gsm_pairs-3", "whole", "correct"),
        ("gsm_pairs-4", "whole", "correct"),
        ("gsm_pairs-5", "whole", "incorrect"),
        ("gsm_pairs-6", "whole", "incorrect"),
        ("gsm_pairs-7", "whole", "correct"),
    ]
    assert found.rows[0].depth == 2 and found.rows[0].benchmark == "gsm_pairs"
    assert [s and s.golds for s in found.stored][4:7] == [("Oslo",), ("12",), None], "an empty target is no gold answer"
    assert {k: getattr(found.rows[0], k) for k in ABOUT} == ABOUT
    assert [(c["where"], c["stored"], c["recomputed"]) for c in found.contradictions] == [
        (f"{path}:2", 0.0, 1),
        (f"{path}:4", 1.0, 0),
        (f"{path}:5", 1.0, 0),
    ]


def test_several_filters_need_a_choice_and_the_others_are_counted(tmp_path: Path) -> None:
    rows = [_sample(0, "12", "12", 1.0, filter="strict"), _sample(0, "13", "12", 0.0, filter="flexible")]
    path = _lines(tmp_path / "samples_gsm.jsonl", rows)
    with pytest.raises(InputError, match=r"--filter strict or flexible"):
        read(path)
    found = read(path, options=Options(filter="flexible"))
    assert [r.outcome for r in found.rows] == ["incorrect"]
    assert found.warnings == [f"{path}: 1 rows of other filters left out"]


def test_a_score_between_right_and_wrong_is_refused(tmp_path: Path) -> None:
    path = _lines(tmp_path / "samples_x.jsonl", [{**_sample(0, "a", "b", 0), "metrics": ["bleu"], "bleu": 0.4}])
    with pytest.raises(InputError, match=r"samples_x.jsonl:1: bleu is 0.4"):
        read(path, options=Options(scorer="bleu"))
    with pytest.raises(InputError, match=r"samples_x.jsonl:1: --scorer rouge: .*bleu"):
        read(path, options=Options(scorer="rouge"))


# inspect_ai


def _log(tmp_path: Path, samples: list[dict[str, Any]], accuracy: float | None = None) -> dict[str, Any]:
    scores = [] if accuracy is None else [{"name": "match", "metrics": {"accuracy": {"value": accuracy}}}]
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "chain", "model": "openai/gpt"},
        "results": {"scores": scores},
        "samples": samples,
    }


def _scored(id: int, value: Any, epoch: int = 1, **extra: Any) -> dict[str, Any]:
    scores = {"match": {"value": value, "answer": "7"}}
    return {"id": id, "epoch": epoch, "input": "?", "target": "7", "scores": scores, "metadata": {}, **extra}


def test_verdict_letters_epochs_and_errors_of_a_log_are_told_apart(tmp_path: Path) -> None:
    samples = [
        _scored(1, "C", metadata={"case": "k", "role": "part:1", "depth": 3, **ABOUT}),
        _scored(2, "I"),
        _scored(2, 1.0, epoch=2),
        _scored(3, "N"),
        _scored(4, "P"),
        {"id": 5, "epoch": 1, "target": "7", "error": {"message": "time\nout"}},
        _scored(6, "C", error="after its score"),
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(_log(tmp_path, samples)))
    assert detect(path) == "inspect"
    found = read(path)
    assert [(r.case, r.role, r.repeat, r.outcome, r.reason) for r in found.rows] == [
        ("k", "part:1", 0, "correct", None),
        ("chain-2", "whole", 0, "incorrect", None),
        ("chain-2", "whole", 1, "correct", None),
        ("chain-3", "whole", 0, "invalid", "no-answer"),
        ("chain-4", "whole", 0, "invalid", "partially correct"),
        ("chain-5", "whole", 0, "invalid", "error: time out"),
        ("chain-6", "whole", 0, "invalid", "error: after its score"),
    ]
    assert found.rows[0].model == "openai/gpt" and found.rows[0].depth == 3
    assert {r.model for r in read(path, options=Options(model="mine")).rows} == {"mine"}
    assert {k: getattr(found.rows[0], k) for k in ABOUT} == ABOUT


@pytest.mark.parametrize("status", ["success", "cancelled", "error", "started"])
def test_a_log_that_did_not_end_in_success_says_so(status: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**_log(tmp_path, [_scored(1, "C")]), "status": status}))
    said = f"{path}: the evaluation's status is {status!r}; samples may be missing"
    assert read(path).warnings == ([] if status == "success" else [said])


def test_an_archive_reads_like_the_json_form_and_its_accuracy_is_checked(tmp_path: Path) -> None:
    samples = [_scored(1, "C"), _scored(2, "I"), _scored(4, "C"), _scored(5, "C")]
    raw = _log(tmp_path, samples, accuracy=0.25)
    (tmp_path / "log.json").write_text(json.dumps(raw))
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({k: v for k, v in raw.items() if k != "samples"}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        for beside in ("summaries.json", "reductions.json", "_journal/start.json", "_journal/summaries/1.json"):
            archive.writestr(beside, "[{}]")  # written along with the samples
    one, other = read(tmp_path / "log.json"), read(tmp_path / "log.eval")
    assert one.rows == other.rows
    assert [(c["stored"], c["recomputed"]) for c in other.contradictions] == [(0.25, 0.75)]
    right = _log(tmp_path, samples, accuracy=0.75)["results"]["scores"]
    right.append(
        {"name": "another", "metrics": {"accuracy": {"value": 0.1}}}
    )  # of a scorer whose verdicts these are not
    for completed, found in ((4, []), (3, [(3, 4)])):
        raw["results"] = {"completed_samples": completed, "scores": right}
        (tmp_path / "log.json").write_text(json.dumps(raw))
        assert [(c["stored"], c["recomputed"]) for c in read(tmp_path / "log.json").contradictions] == found
    (tmp_path / "log.json").write_text(json.dumps(_log(tmp_path, [*samples, _scored(3, "N")], accuracy=0.75)))
    assert read(tmp_path / "log.json").contradictions == [], "an accuracy over samples without a verdict is not ours"
    epochs = [_scored(1, "C"), _scored(1, "I", epoch=2)]
    (tmp_path / "log.json").write_text(json.dumps(_log(tmp_path, epochs, accuracy=1.0)))
    assert read(tmp_path / "log.json").contradictions == [], "nor is one over epochs, however they are put together"


def test_an_evaluation_that_was_interrupted_has_its_start_record_for_a_header(tmp_path: Path) -> None:
    start = {"version": 2, "eval": {"task": "chain", "model": "openai/gpt"}}
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("_journal/start.json", json.dumps(start))
        archive.writestr("samples/1_epoch_1.json", json.dumps(_scored(1, "C")))
    (row,) = read(tmp_path / "log.eval").rows
    assert (row.case, row.model, row.outcome) == ("chain-1", "openai/gpt", "correct")


# Which file is which


def test_a_file_of_no_known_kind_is_refused_with_the_known_kinds(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"fields a\).*--from lm-eval\|inspect\|bamboogle\|stad\|rows"):
        detect(path)
    for text in ("3", "[3]\n4"):
        path.write_text(text)
        with pytest.raises(InputError, match="none of the known kinds"):
            detect(path)


def test_a_field_that_only_rows_have_says_that_a_file_holds_them(tmp_path: Path) -> None:
    path = _lines(tmp_path / "m.jsonl", [{"said": "4", "right one": "4"}])
    for options in (Options(response_field="said"), Options(gold_field="right one")):
        assert detect(path, options) == "rows"
    with pytest.raises(InputError, match="none of the known kinds"):
        detect(path, Options(scorer="em"))


def test_evaluated_stad_records_are_found_and_a_failed_judge_is_invalid(tmp_path: Path) -> None:
    records = [
        {"question": "q", "answer": 3, "evaluation": "3", "evaluation_score": 1},
        {"question": "r", "answer": 4, "evaluation": None, "evaluation_score": -1},
    ]
    path = _lines(tmp_path / "set_evaluation_scored.jsonl", records)
    assert detect(path) == "stad"
    assert [(r.outcome, r.answer) for r in read(path).rows] == [("correct", "3"), ("invalid", None)]


def test_scores_of_steps_and_scaffolds_have_the_gold_answers_of_what_was_asked(tmp_path: Path) -> None:
    record = {
        "question": "q", "answer": 9, "evaluation": "1", "evaluation_score": 0,
        "sub-task": [{"segment": s} for s in ("first", "second", "third")],
        "sub-task-answer": [{"explanation": "", "answer": a} for a in (2, 5, 9)],
        "scaffolding": ["q with 2", "q with 2 and 5"], "skill": [{"skill": s} for s in ("add", "sum", "add")],
        "decomposition_score": {"decomposition": [1, 0, 1]}, "decomposition_evaluation": ["2", "4", "9"],
        "scaffolding_score": {"scaffolding": [0, 1]}, "scaffolding_evaluation": ["8", "9"],
    }  # fmt: skip
    rows = read(_lines(tmp_path / "set_scored.jsonl", [record]), options=Options(model="m")).rows
    assert {r.model for r in rows} == {"m"}
    assert [(r.role, r.outcome, r.answer, r.gold) for r in rows] == [
        ("whole", "incorrect", "1", "9"), ("part:0", "correct", "2", "2"), ("part:1", "incorrect", "4", "5"),
        ("part:2", "correct", "9", "9"), ("scaffold:1", "incorrect", "8", "9"), ("scaffold:2", "correct", "9", "9"),
    ]  # fmt: skip
    assert {(r.depth, r.skills) for r in rows} == {(3, ("add", "sum", "add"))}
    assert [r.kind for r in rows] == [None, "step", "step", "step", None, None]


def test_answers_of_two_models_to_one_case_are_told_apart_unless_the_user_names_one(tmp_path: Path) -> None:
    path = _lines(tmp_path / "m.jsonl", [{"case": "a", "response": "4", "gold": "4", "model": m} for m in "xy"])
    assert [r.model for r in read(path).rows] == ["x", "y"]
    with pytest.raises(InputError, match="twice"):
        read(path, options=Options(model="m"))
    one = _lines(tmp_path / "one.jsonl", [{"case": "a", "response": "4", "gold": "4", "model": "x"}])
    assert [r.model for r in read(one, options=Options(model="m")).rows] == ["m"]


@pytest.mark.parametrize(("format", "ours"), [(None, "correct"), ("xml", "invalid")])
def test_stored_answers_are_graded_again_in_the_format_that_is_given(
    format: str | None, ours: str, tmp_path: Path
) -> None:
    path, options = tmp_path / "m.jsonl", Options(regrade=True, format=format)
    found = read(_lines(path, [{"response": "The answer is 4.", "gold": "4", "right": True}]), options=options)
    assert [r.outcome for r in regrade(found, options).rows] == [ours]
