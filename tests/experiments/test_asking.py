"""Options of asking: flags, config round trip, refusals; and what a run is checked for beside its metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from composcope.errors import InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.metrics import find
from composcope.evaluation.protocols.base import Graded
from composcope.experiments import asking
from composcope.experiments.asking import Asking
from composcope.experiments.run import checks
from composcope.experiments.run.compare import compare_runs, comparison_lines
from composcope.experiments.settings import Settings, from_config
from composcope.experiments.sources import load_benchmark

CHAIN = (Part("Q one?", "6", "math", "number"), Part("Q two with 6?", "8", "math", "number"))


def test_options_survive_the_config_of_a_run_without_the_file_of_examples(tmp_path: Path) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text(json.dumps({"kind": "*", "question": "A?", "answer": "b"}))
    given = Settings(
        "m", "b", asking=Asking(few_shot=str(path), preamble="both", also="cot,thinking", compat="collapse")
    )
    config = yaml.safe_load(yaml.safe_dump(given.as_config()))
    path.unlink()
    assert from_config(config) == given
    assert from_config({k: v for k, v in config.items() if k != "asking"}).asking == Asking()
    assert set(given.asking.changed()) == {"preamble", "also", "exemplars"}
    assert Asking(compat="stad", judge="m@http://h/v1").changed() == {}


def test_flags_become_options_of_the_protocol_they_are_for() -> None:
    gate = asking.protocol("double-gate", "xml", "chat", Asking(also="cot, thinking", answer_tokens=9), seed=3).protocol
    assert (gate.recovery, gate.max_tokens, gate.seed, gate.format) == (("cot", "thinking"), 9, 3, "xml")
    pair = asking.protocol("reasoning-gap", None, "raw", Asking(few_shot="8", code=True, compat="agentcoma"))
    assert pair.protocol.code and pair.protocol.compat == "agentcoma" and len(pair.how.exemplars) == 40


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"code": True}, "--code is for reasoning-gap, and the protocol is double-gate"),
        ({"ask_all": True}, "--ask-all is for scaffolding"),
        ({"co_presented": False}, "--co-presented is for reasoning-gap"),
        ({"also": "mumble"}, "--also 'mumble' is not known"),
        ({"preamble": "maybe"}, "--preamble maybe: use yes, no or both"),
        ({"few_shot": "3"}, "no examples of our own for double-gate"),
        ({"thinking_tokens": 0}, "--thinking-tokens 0"),
        ({"compat": "gsm"}, "--compat 'gsm' is not known"),
        ({"few_shot": "nowhere.jsonl"}, "--few-shot nowhere.jsonl: no such file"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asking.protocol("double-gate", None, "chat", Asking(**options))


def test_a_benchmark_that_ships_examples_is_asked_with_them_and_the_run_keeps_them() -> None:
    cases = load_benchmark("world", limit=1).cases
    given = asking.with_own_examples(Asking(few_shot="2"), cases)
    assert [e["question"] for e in given.exemplars if e["kind"] == "whole"] == [
        "What is the main language of the country whose capital is Kathmandu?",
        "A picture shows 11 hamsters. How many legs do they have in total?",
    ]
    config = yaml.safe_load(yaml.safe_dump(Settings("m", "world", asking=given).as_config()))
    assert from_config(config).asking == given
    protocol = asking.protocol("compositionality-gap", "plain", "raw", given)
    asks = {ask.role: ask for case in cases for ask in protocol.asks(case, {}) if case.family == "count-times"}
    for role, shown in (
        ("part:0", "a fortnight" not in asks["part:0"].prompt),
        ("part:1", "13 - 2" in asks["part:1"].prompt),
    ):
        assert shown, role
    with pytest.raises(InputError, match="--few-shot 9: give 1 to 4 for world"):
        asking.with_own_examples(Asking(few_shot="9"), cases)


@pytest.mark.parametrize("few_shot", [None, "0", "2"])
def test_without_examples_of_the_benchmark_the_options_stay_as_they_are(few_shot: str | None) -> None:
    cases = [Case("c", "Q?", "8", CHAIN)]
    assert asking.with_own_examples(Asking(few_shot=few_shot), cases) == Asking(few_shot=few_shot)


def test_pairs_get_an_independent_q1_unless_told_otherwise() -> None:
    cases = [Case(f"c{i}", "Q two with X?", "8", CHAIN) for i in range(3)]
    assert all("independent" in c.meta for c in asking.prepare(cases, "reasoning-gap", Asking()))
    assert asking.prepare(cases, "reasoning-gap", Asking(co_presented=False)) == cases
    with pytest.raises(InputError, match=r"--reversed: no case has"):
        asking.prepare(cases, "compositionality-gap", Asking(reversed=True))


def row(case: str, outcome: Any, role: str = "whole", **more: Any) -> Graded:
    return Graded(case, role, outcome, ask=f"{case}/{role}", **more)


def test_math_verify_is_asked_about_numbers_only_and_its_disagreements_are_shown() -> None:
    rows = [
        row("a", "correct", answer="12", gold="12", match="numeric"),
        row("b", "correct", answer="12", gold="13", match="numeric"),
        row("c", "incorrect", answer="1912", gold="1913"),
    ]
    asks = {r.ask: Ask(r.case, r.role, "q", r.gold or "", "date" if r.case == "c" else "number") for r in rows if r.ask}
    (metric,), (warning,) = checks.second_opinion(rows, asks)
    assert (metric.metric, metric.count, metric.n) == ("math_verify_disagreement", 1, 2)
    assert "disagrees on 1 of 2" in warning and "'12' for '13' (ours: right)" in warning
    assert checks.second_opinion(rows[2:], asks) == ([], [])


def test_grades_and_the_judge_among_them_are_compared_with_human_labels(tmp_path: Path) -> None:
    rows = [
        row("a", "correct", match="judge"),
        row("b", "correct", match="judge"),
        row("c", "incorrect", match="judge"),
        row("d", "correct", match="exact"),
        row("e", "invalid", match="judge", reason="judge-parse"),
    ]
    path = tmp_path / "labels.jsonl"
    labels = {"a": "correct", "b": "incorrect", "c": True, "d": "correct", "e": "correct"}
    path.write_text("".join(json.dumps({"case": c, "role": "whole", "label": v}) + "\n" for c, v in labels.items()))
    found = checks.agreement(rows, checks.read_labels(path))
    everything, judged = (find(found, "human_agreement", **g) for g in ({}, {"match": "judge"}))
    assert everything and judged
    assert (everything.count, everything.n, everything.n_invalid) == (2, 4, 1)
    assert (judged.count, judged.n, judged.n_invalid) == (1, 3, 1)
    assert find(found, "human_precision", match="judge").value == 0.5  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"no answer of case 'e'"):
        checks.agreement(rows[:4], checks.read_labels(path))
    path.write_text('{"case": "a", "label": "maybe"}')
    with pytest.raises(InputError, match=r"labels.jsonl:1: label is 'maybe'"):
        checks.read_labels(path)


def gate_run(folder: Path, wrong: set[str], n: int = 20) -> Path:
    """A double-gate run over one-fact cases whose wholes in ``wrong`` are wrong."""
    folder.mkdir()
    part = Part("When was it?", "1900", "date", "date", paraphrases=("Its year?",), atom="f")
    cases = [Case(f"c{i}", "W?", "1900", (part,), depth=2, family="pair") for i in range(n)]
    rows = []
    for case in cases:
        own = {"depth": 2, "family": "pair", "model": folder.name}
        rows += [row(case.id, "correct", role, atom="f", **own) for role in ("part:0", "part:0:paraphrase:0")]
        rows.append(row(case.id, "incorrect" if case.id in wrong else "correct", answer="1900", gold="1900", **own))
    write_cases(cases, folder / "cases.jsonl")
    (folder / "graded.jsonl").write_text("".join(json.dumps(r.to_dict()) + "\n" for r in rows))
    (folder / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "double-gate", "metrics": []}))
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {"model": folder.name}}))
    return folder


def test_two_double_gate_runs_are_compared_channel_by_channel(tmp_path: Path) -> None:
    a, b = gate_run(tmp_path / "a", {"c0"}), gate_run(tmp_path / "b", {"c1", "c2", "c3", "c4"})
    found = compare_runs(a, b)
    channels = {m["metric"]: m for m in found["channels"] if not set(m["group"]) - {"per"}}
    assert channels["delta_atom"]["value"] == 0
    assert channels["delta_comp"]["value"] == pytest.approx(1 / 20 - 4 / 20)
    assert {d["case"] for d in found["discordant"]} == {"c0", "c1", "c2", "c3", "c4"}
    lines = comparison_lines(found)
    assert any(line.startswith("delta_comp: -15.0 points") and "R(A) - R(B) = 1/20 - 4/20" in line for line in lines)
