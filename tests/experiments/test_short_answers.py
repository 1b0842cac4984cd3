"""Answer-only asking; what a run says of answers that nobody can use, that depend on the batch, or were refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from exit_codes import done
from json_server import running

from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.engines import divergence
from composcope.evaluation.graded import Graded
from composcope.experiments.cli import main
from composcope.experiments.config import Asking
from composcope.experiments.evaluating.ask_plan import (
    AskOptions,
    LoadedBenchmark,
    load_benchmark,
    make_protocol,
    plan_asks,
)
from composcope.experiments.evaluating.evaluate import depends_on_batch
from composcope.experiments.run import checks, read_json, read_lines

SHORT = Case("c", "Which language do people speak in Oslo?", "Norwegian", (Part("Where is Oslo?", "Norway"),))


@pytest.mark.parametrize(
    ("change", "protocol", "format"),
    [
        ({}, "compositionality-gap", "short"),
        ({}, "double-gate", "short"),
        ({}, "reasoning-gap", None),
        ({}, "scaffolding", None),
        ({"unknowable": True}, "double-gate", None),
        ({"worked": "Oslo is in Norway, so Norwegian"}, "compositionality-gap", None),
        ({"answer": "one two three four five six"}, "compositionality-gap", None),
        ({"parts": (Part("Where is Oslo?", "in the south of the kingdom of Norway"),)}, "double-gate", None),
        ({"meta": {"format": "xml"}}, "compositionality-gap", "xml"),
    ],
)
def test_own_cases_with_short_golds_are_asked_for_the_answer_alone(
    tmp_path: Path, change: dict, protocol: str, format: str | None
) -> None:
    write_cases([replace(SHORT, **change)], tmp_path / "cases.jsonl")
    assert load_benchmark(str(tmp_path / "cases.jsonl")).format_for(protocol) == format


def test_other_benchmarks_keep_the_format_they_want() -> None:
    assert load_benchmark("organism:mixed", limit=2).format_for("compositionality-gap") == "plain"


def test_parts_and_whole_are_asked_in_the_same_words() -> None:
    made = make_protocol(AskOptions("compositionality-gap", "short"))
    prompts = {a.role: a for a in made.asks(SHORT, {})}
    endings = {a.prompt.removeprefix(str(a.question)) for a in prompts.values()}
    assert len(endings) == 1 and endings != {""}
    assert len({a.max_tokens for a in prompts.values()}) == 1


class Template:
    def __init__(self, chat_template: str | None) -> None:
        self.chat_template = chat_template


@pytest.mark.parametrize(
    ("template", "prompting", "thinking", "format", "more"),
    [
        ("... <think> ...", "chat", None, "short", True),
        ("... <think> ...", "chat", False, "short", False),
        ("... <think> ...", "raw", None, "short", False),
        ("... <think> ...", "chat", None, "plain", False),
        ("no such thing", "chat", None, "short", False),
        (None, "chat", None, "short", False),
    ],
)
def test_models_that_may_think_first_keep_the_budget_of_thinking(
    template: str | None, prompting: str, thinking: bool | None, format: str, more: bool
) -> None:
    benchmark = LoadedBenchmark("b", (SHORT,), "compositionality-gap", None, "hash")
    options = AskOptions("compositionality-gap", format, asking=Asking(thinking=thinking))
    plan = plan_asks(options, benchmark).for_model(prompting, Template(template))
    budgets = {a.max_tokens for a in plan.protocol.asks(SHORT, {})}
    assert (budgets == {plan.options.asking.thinking_tokens}) == more
    assert ("may_think" in plan.options.asking.changed()) == more


def rows(texts: list[str], outcome: str, *, format: str = "plain", reason: str = "stop", role: str = "whole"):
    asks, responses, graded = {}, {}, []
    for i, text in enumerate(texts):
        key = f"{role}-{i}"
        asks[key] = Ask(f"c{i}", role, "Q?", "gold", "text", format=format)
        responses[key] = Response(key, text, reason, 3, 5)  # type: ignore[arg-type]
        graded.append(Graded(case=f"c{i}", role=role, outcome=outcome, ask=key))  # type: ignore[arg-type]
    return graded, asks, responses


def test_asks_without_an_answer_are_counted_and_the_first_one_is_named_with_its_error() -> None:
    graded, asks, responses = rows(["gold"] * 30, "correct")
    responses["whole-7"] = replace(responses["whole-7"], text="", finish_reason="error", error="no room to answer")
    graded[7] = replace(graded[7], outcome="invalid")
    [warning] = checks.asking_warnings(graded, asks, responses)
    assert all(fact in warning for fact in ("1 of 30", "'c7'", "'whole'", "no room to answer"))


@pytest.mark.parametrize(
    ("bad", "outcome", "format", "reason", "facts"),
    [
        ("what?", "invalid", "plain", "stop", ["whole", "6 of 100", "6%", "invalid", "'c0'", "--format short"]),
        ("what?", "invalid", "short", "stop", ["6 of 100", "invalid", "--judge"]),
        ("cut", "invalid", "plain", "length", ["6 of 100", "cut off", "--answer-tokens"]),
        ("cut", "invalid", "cot", "length", ["6 of 100", "cut off", "--cot-tokens"]),
        ("<think> so </think> cut", "invalid", "plain", "length", ["cut off", "--no-thinking"]),
        ("word " * 40, "correct", "plain", "stop", ["6 of 100", "verbose", "--format short"]),
    ],
)
def test_a_role_with_many_unusable_answers_is_named_with_what_mends_it(
    bad: str, outcome: str, format: str, reason: str, facts: list[str]
) -> None:
    first = rows([bad] * 6, outcome, format=format, reason=reason)
    rest = rows(["gold"] * 100, "correct", format=format)
    graded, asks, responses = ([*first[0], *rest[0][6:]], {**rest[1], **first[1]}, {**rest[2], **first[2]})
    [warning] = checks.asking_warnings(graded, asks, responses)
    assert all(fact in warning for fact in facts), warning
    assert "--few-shot" not in checks.asking_warnings(graded, asks, responses, few_shot=True)[0]
    five_percent = [*graded[:5], *rest[0][5:]]
    assert checks.asking_warnings(five_percent, asks, {**responses, "whole-5": rest[2]["whole-5"]}) == []


@pytest.mark.parametrize("format", ["cot", "xml"])
def test_long_answers_are_no_trouble_where_working_was_asked_for(format: str) -> None:
    assert checks.asking_warnings(*rows(["word " * 40] * 20, "correct", format=format)) == []


def test_an_ask_that_many_cases_share_counts_once() -> None:
    graded, asks, responses = rows(["gold"] * 10, "correct")
    shared = [replace(graded[0], case=f"s{i}", outcome="invalid") for i in range(50)]
    [warning] = checks.asking_warnings([*shared, *graded[1:]], asks, responses)
    assert "1 of 10" in warning


def test_an_ask_that_stands_in_two_roles_counts_in_both() -> None:
    graded, asks, responses = rows(["gold"] * 10, "invalid")
    again = [replace(row, role="pair:q1") for row in graded]
    warnings = checks.asking_warnings([*graded, *again], asks, responses)
    assert [w.split(":")[0] for w in warnings] == ["whole", "pair"]


def test_a_run_in_bfloat16_measures_it_once_and_one_in_float32_never(
    taught: Path, case_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifests: dict[str, Any] = {}
    for dtype in ("bfloat16", "float32"):
        out = tmp_path / dtype
        command = ["evaluate", "-m", str(taught), "-b", str(case_file), "-o", str(out), "--format", "plain"]
        for _ in range(2):
            assert main([*command, "--dtype", dtype]) == done(out)
        manifests[dtype] = read_json(out / "manifest.json")
        said = (out / "log.txt").read_text()
        assert said.count("depend on the batch") == (dtype == "bfloat16")
    assert "batch_divergence" not in manifests["float32"]
    measured = manifests["bfloat16"]["batch_divergence"]
    assert measured["dtype"] == "bfloat16" and measured["n"] == divergence.SAMPLE
    assert measured["n_different"] == len(measured["margins"]) == len(measured["first_steps"])
    assert measured["low"] <= measured["rate"] == measured["n_different"] / measured["n"] <= measured["high"]


def test_the_sample_is_spread_over_all_greedy_asks() -> None:
    asks = [Ask(str(i), "whole", str(i), "1", "text", temperature=float(i % 2)) for i in range(100)]
    chosen = [int(ask.case) for ask in divergence.sample(asks, 5)]
    assert chosen == [0, 20, 40, 60, 80]
    n = divergence.SAMPLE
    assert [int(ask.case) for ask in divergence.sample(asks)] == [2 * (i * 50 // n) for i in range(n)]
    assert len(divergence.sample(asks[:6], 5)) == 3 and divergence.sample(asks[1:2]) == []


def test_only_half_precision_in_transformers_depends_on_the_batch() -> None:
    made = [
        ("transformers", "bfloat16"),
        ("transformers", "float16"),
        ("transformers", "float32"),
        ("vllm", "bfloat16"),
    ]
    engines = [SimpleNamespace(provenance={"engine": e, "dtype": d}) for e, d in made]
    assert [depends_on_batch(e) for e in engines] == [True, True, False, False]


def test_what_is_said_names_rate_interval_and_margin() -> None:
    measured = {"dtype": "bfloat16", "n": 16, "n_different": 4, "rate": 0.25, "low": 0.07, "high": 0.52}
    said = divergence.in_words({**measured, "margins": [0.0, 0.125, 0.25, 0.0]})
    assert "4 of 16 answers" in said and "25 % [7 %, 52 %]" in said and "0.062 logits apart" in said
    assert "0.2 logits apart" in divergence.in_words({**measured, "margins": [0.3, 0.1, 0.2]})
    none = {**measured, "n_different": 0, "rate": 0.0, "low": 0.0, "high": 0.21, "margins": []}
    assert "0 of 16" in divergence.in_words(none)
    every = {**measured, "n_different": 16, "rate": 1.0, "low": 0.79, "high": 1.0, "margins": []}
    assert "100 % [79 %, 100 %]" in divergence.in_words(every)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running("faulty_server.py") as url:
        yield url


def journal(run: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted((run / "journal").glob("*.jsonl")))


def outcomes(run: Path) -> dict[tuple[str, str], tuple[str, str | None]]:
    return {(row["case"], row["role"]): (row["outcome"], row["reason"]) for row in read_lines(run / "graded.jsonl")}


def test_failed_asks_stay_failed_when_scored_again_and_are_asked_again_by_the_same_command(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = (Part("[says 2] What is 1 plus 1?", "2", "math", "number"),)
    cases = [
        Case("fine", "[says 5] What is 2 plus 3?", "5", parts, answer_type="number"),
        Case("refused", "[refused:*] What is 2 plus 3?", "5", parts, answer_type="number"),
    ]
    write_cases(cases, tmp_path / "cases.jsonl")
    run = tmp_path / "run"
    command = ["evaluate", "-m", f"good@{url}", "-b", str(tmp_path / "cases.jsonl"), "-o", str(run)]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "prompt is too long for this model" in said and "case 'refused', role 'whole'" in said
    first, asked = outcomes(run), journal(run)
    assert first["fine", "whole"] == first["refused", "part:0"] == ("correct", None)
    outcome, reason = first["refused", "whole"]
    assert outcome == "invalid" and str(reason).startswith("error: ") and "too long" in str(reason)
    metrics = read_json(run / "metrics.json")

    # Without the server: the same grades, the same counts, nothing written twice.
    for _ in range(2):
        assert main(["score", str(run)]) == 2
        assert outcomes(run) == first and journal(run) == asked
        again = read_json(run / "metrics.json")
        assert again["metrics"] == metrics["metrics"]

    # The same command puts the refused ask again, and only that one.
    assert main(command) == 2
    assert (
        outcomes(run) == first
        and "1 ask put to the model, 2 answered from the journal" in (run / "log.txt").read_text()
    )


def test_a_warning_needs_more_than_one_answer_in_twenty_and_counts_shared_asks_once() -> None:
    def rows(n: int, cut: int) -> tuple[list[Graded], dict[str, Ask], dict[str, Response]]:
        asks = {str(i): Ask(f"c{i}", "part:0:paraphrase:1", "q", "a", "text") for i in range(n)}
        graded = [
            Graded(f"c{i}", f"part:0:paraphrase:{i % 2}", "invalid" if i < cut else "correct", ask=str(i))
            for i in range(n)
        ]
        said = {str(i): Response(str(i), "a", "length" if i < cut else "stop", 1, 1) for i in range(n)}
        return [*graded, *graded[:cut]], asks, said

    assert checks.asking_warnings(*rows(20, 1)) == []
    (line,) = checks.asking_warnings(*rows(20, 2))
    assert line.startswith("part:0:paraphrase: 2 of 20 answers (10%) are cut off (first: case 'c0')")
    assert line.endswith("try a larger --answer-tokens")
    ask = Ask("c", "whole", "q", "a b", "text", format="short")
    long = replace(ask, format="cot")
    answers = (("invalid", ask, "a", "stop"), ("invalid", ask, "", "error"), ("correct", ask, "w " * 27, "stop"),
               ("correct", ask, "w " * 28, "stop"), ("correct", long, "w " * 99, "stop"))  # fmt: skip
    told = [checks._troubles(Graded("c", "whole", outcome), asked, Response("x", text, end, 1, 1))  # type: ignore[arg-type]
            for outcome, asked, text, end in answers]  # fmt: skip
    assert told == [["invalid"], [], [], ["verbose"], []]


@pytest.mark.parametrize(
    ("format", "thinking", "said", "more", "verbose"),
    [("short", None, "", 26, True), ("short", None, "", 25, False), ("plain", None, "", 26, True),
     ("short", False, "", 26, True), ("short", True, "", 26, False), ("short", None, "</think> ", 26, False),
     ("cot", None, "", 26, False)],
)  # fmt: skip
def test_many_words_are_too_many_only_where_the_answer_alone_was_asked_for(
    format: Any, thinking: bool | None, said: str, more: int, verbose: bool
) -> None:
    ask = Ask("c", "whole", "?", "two words", "text", format=format, thinking=thinking)
    response = Response("k", said + "word " * (2 + more), "stop", 1, 1)
    row = Graded("c", "whole", "correct")
    assert checks._troubles(row, ask, response) == (["verbose"] if verbose else [])
    invalid = replace(row, outcome="invalid")
    for end, found in (("stop", ["invalid"]), ("length", ["cut off"]), ("error", [])):
        short = replace(response, text="word", finish_reason=end)
        assert checks._troubles(invalid, ask, short) == found  # type: ignore[arg-type]
