from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composcope import model_loading
from composcope.errors import InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.experiments.config import Config
from composcope.experiments.evaluating import cost
from composcope.experiments.evaluating.cost import plan_lines
from composcope.probes.catalog import PROBES


@pytest.mark.parametrize(
    ("n", "probe_cases", "said", "prompts"),
    [
        (8, 32, "at most 4 failures and as many successes, or 8 cases without pairs", 8 * 3),
        (9, 32, "at most 4 failures and as many successes, or 9 cases without pairs", 9 * 3),
        (8, 2, "at most 2 failures and as many successes, or 4 cases without pairs", 4 * 3),
        (200, 32, "at most 32 failures and as many successes, or 64 cases without pairs", 64 * 3),
    ],
)
def test_a_plan_says_how_many_cases_the_probes_can_run_on_at_most(
    n: int, probe_cases: int, said: str, prompts: int, tmp_path: Path
) -> None:
    parts = (Part("What is one?", "1"), Part("What is two?", "2"))
    write_cases([Case(f"c{i}", f"What is {i}?", "3", parts) for i in range(n)], tmp_path / "cases.jsonl")
    settings = Config(model="organism:control", benchmark=str(tmp_path / "cases.jsonl"), probe_cases=probe_cases)
    lines = plan_lines(settings)
    assert any(said in line for line in lines)
    assert f"  min-k: {prompts} prompts" in lines
    few = min(2 * min(4, probe_cases), n) * 3
    assert any(f"single cases for the report: {few} prompts" in line for line in lines)


@pytest.mark.parametrize(("times", "said"), [(1, None), (55, "cut off"), (600, "no room to answer")])
def test_a_plan_warns_of_prompts_that_the_context_does_not_hold(times: int, said: str | None, tmp_path: Path) -> None:
    case = Case("long", " ".join(["What is the tag?"] * times), "3", (Part("What is one?", "1"),))
    write_cases([case], tmp_path / "cases.jsonl")
    settings = Config(model="organism:control", benchmark=str(tmp_path / "cases.jsonl"), probes=())
    warned = [line for line in plan_lines(settings) if line.startswith("warning")]
    assert len(warned) == (said is not None)
    assert all("1 of 2 " in line and "'long', role 'whole'" in line and str(said) in line for line in warned)


def test_prompts_are_warned_of_where_the_answer_may_be_longer_than_the_room() -> None:
    asks = [Ask(str(room), "whole", "Q?", "3", "number", max_tokens=10) for room in (11, 10, 9, 1, 0)]
    none, little = cost._room_notice(asks, [89, 90, 91, 99, 100], 100)
    assert "no room" in none and "1 of 5 (the longest: 100 tokens, case '0'" in none
    assert "less room" in little and "2 of 5 (the longest: 99 tokens, case '1'" in little
    assert cost._room_notice(asks[:2], [89, 90], 100) == []


@pytest.mark.parametrize(
    ("asking", "format", "warned"),
    [
        ({"cot_tokens": 9}, "short", "--cot-tokens 9 changes nothing"),
        ({"cot_tokens": 9}, "cot", None),
        ({"cot_tokens": 9, "also": "cot"}, "short", None),
        ({"thinking_tokens": 9}, "cot", "--thinking-tokens 9 changes nothing"),
        ({}, "short", None),
    ],
)
def test_a_budget_that_no_ask_has_is_said(asking: dict[str, Any], format: str, warned: str | None) -> None:
    config = Config(model="organism:control", benchmark="organism:mixed", limit=2, format=format, probes=(), **asking)
    found = [line for line in plan_lines(config) if "changes nothing" in line]
    assert len(found) == (warned is not None) and all(str(warned) in line for line in found)


def test_an_ask_that_cases_share_is_planned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Part("What is one?", "1")
    cases = [Case(f"c{i}", f"What is {i}?", "3", (shared, Part(f"What is two, {i}?", "2"))) for i in range(5)]
    write_cases(cases, tmp_path / "cases.jsonl")
    lines = plan_lines(Config(model="organism:control", benchmark=str(tmp_path / "cases.jsonl"), probes=()))
    ladders = plan_lines(Config(model="organism:control", benchmark="organism:ladders", limit=1, probes=()))
    asks = [int(word) for word in ladders[1].split() if word.isdigit()]
    tokens = int(next(line for line in ladders if line.startswith("response tokens")).split()[-1])
    assert asks[0] < asks[1] < asks[2] and tokens == 128 * asks[2], "at most: every case has a control for leaks, too"
    assert "asks: 11 if all answers are right, 11 if all are wrong (identical asks once)" in lines
    load = model_loading.load_tokenizer
    monkeypatch.setattr(model_loading, "load_tokenizer", lambda place: _without_template(load(place)))
    bare = plan_lines(Config(model="organism:control", benchmark="organism:mixed", limit=1, probes=()))
    assert "prompting chat" in lines[0] and "prompting raw" in bare[0]


def _without_template(tokenizer: Any) -> Any:
    tokenizer.chat_template = None
    return tokenizer


def test_a_plan_shows_the_prompt_of_each_role_as_the_model_is_given_it(tmp_path: Path) -> None:
    parts = (Part("What is one?", "1", paraphrases=("Name one!", "Say one!")), Part("What is two?", "2"))
    write_cases([Case(f"c{i}", f"What is {i}?", "3", parts) for i in range(3)], tmp_path / "cases.jsonl")
    lines = plan_lines(
        Config(model="organism:control", benchmark=str(tmp_path / "cases.jsonl"), protocol="double-gate")
    )
    shown = [line for line in lines if line.startswith("prompt of ")]
    assert [line.split()[2] for line in shown] == ["part:0", "part:0:paraphrase", "part:1", "whole"]
    assert "case c0" in shown[-1] and "'3'" in shown[-1]
    text = "\n".join(lines[lines.index(shown[-1]) :])
    assert "What is 0?" in text and "Give only the answer" in text and "<bos>" in text


MUSIQUE = {"question": "Who was the spouse of the author?", "answer": "Bo", "answerable": True, "answer_aliases": []}
STEPS = [
    {"id": 1, "question": "Quince >> author", "answer": "Ada"},
    {"id": 2, "question": "#1 >> spouse", "answer": "Bo"},
]


def _musique(path: Path, *decomposed: bool) -> str:
    rows = [
        {**MUSIQUE, "id": f"2hop__{i}", "question_decomposition": STEPS if d else []} for i, d in enumerate(decomposed)
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return f"musique:{path}"


def test_cases_without_parts_are_named_with_their_reason_before_anything_is_asked(tmp_path: Path) -> None:
    settings = Config(model="organism:control", benchmark=_musique(tmp_path / "m.jsonl", True, False, True, False))
    [said] = [line for line in plan_lines(settings) if "have no parts" in line]
    assert said.startswith("2 of 4 cases have no parts") and "2hop__1 (the line has no question_decomposition)" in said
    whole = Config(model="organism:control", benchmark=_musique(tmp_path / "whole.jsonl", True, True))
    assert not [line for line in plan_lines(whole) if "no parts" in line]


def test_a_benchmark_without_any_decomposition_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([{"_id": "5a", "question": "q", "answer": "a", "type": "bridge"}]))
    for benchmark, why in (
        (f"hotpotqa:{path}", "HotpotQA publishes no sub-questions"),
        (_musique(tmp_path / "m.jsonl", False), "the line has no question_decomposition"),
    ):
        with pytest.raises(InputError) as error:
            plan_lines(Config(model="organism:control", benchmark=benchmark))
        assert all(word in str(error.value) for word in (why, "composcope build scaffolds", "docs/formats.md"))


def test_probes_cost_what_their_cases_roles_and_layers_make() -> None:
    config = Config(model="m", benchmark="b", probes=("lookback", "patching"), probe_cases=8, case_details=2)
    lines = cost._probe_lines(config, 40, 3, 12)
    sizes = {"prompts": 48, "cases": 16, "twice": 32, "pairs": 8, "layers": 12}
    assert lines == [
        "probes on at most 8 failures and as many successes, or 16 cases without pairs, in up to 3 roles, "
        "forwards at most:",
        *(f"  {name}: {PROBES[name].cost.format(**sizes)}" for name in config.probes),
        "  single cases for the report: 12 prompts, sweeps over positions limited to about ten seconds",
    ]
    assert cost._probe_lines(config, 5, 3, 12)[0].startswith(
        "probes on at most 2 failures and as many successes, or 5 cases"
    )
    assert cost._probe_lines(config.replace(probes=()), 40, 3, 12) == []


def test_every_ask_of_all_rounds_is_planned_once() -> None:
    class Rounds:
        def asks(self, case: Case, graded: Any) -> list[Ask]:
            first = [Ask(case.id, "whole", case.question, "a", "text"), Ask(case.id, "part:0", "shared", "a", "text")]
            more = [Ask(case.id, "part:1", f"{case.id} again", "a", "text")]
            return first + (more if graded and graded["whole"].outcome == "incorrect" else [])

    cases = [Case("a", "qa", "a"), Case("b", "qb", "a")]
    planned = {o: [a.prompt for a in cost.all_asks(cases, Rounds(), o)] for o in ("correct", "incorrect")}  # type: ignore[arg-type]
    assert planned == {"correct": ["qa", "shared", "qb"], "incorrect": ["qa", "shared", "a again", "qb", "b again"]}


def test_one_prompt_that_is_put_in_two_ways_is_planned_twice() -> None:
    class Ways:
        def asks(self, case: Case, graded: Any) -> list[Ask]:
            asked = Ask(case.id, "whole", case.question, "a", "text")
            return [asked, replace(asked, role="whole:thinking", thinking=True), replace(asked, role="again")]

    planned = cost.all_asks([Case("a", "qa", "a")], Ways(), "correct")  # type: ignore[arg-type]
    assert [(ask.role, ask.thinking) for ask in planned] == [("whole", None), ("whole:thinking", True)]
