"""The benchmark on a real model, run here on a tiny one: who is compared with whom, and what is said when it cannot."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError, ModelError
from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.bench import asking, real, timing
from composcope.experiments.bench.asking import HARNESS
from composcope.experiments.bench.real import BenchSetting, BenchTask, bench_real
from composcope.experiments.bench.timing import TaskBench, Took, Way, in_rounds, same
from composcope.experiments.cli import main
from composcope.experiments.organism import weights


@pytest.fixture(scope="module")
def found() -> TaskBench:
    return bench_real("organism:control", asks=18, rounds=2, only=("no common", "system"), say=lambda _: None)


@pytest.mark.long
def test_ours_and_plain_generate_give_the_same_answers(found: TaskBench) -> None:
    assert {r.task for r in found.rows} == {"asking, no common prefix", "asking, system prompt"}
    for row in found.rows:
        assert row.same in ("", "16/16", "18/18") and (row.ratio is None) == (row.way == "composcope")
        assert row.rounds == (1 if row.batch == "1" else 2), "what takes one at a time is timed once"
    assert found.lines == [], "nothing is claimed without the peer"


@pytest.mark.long
def test_the_table_has_a_row_for_each_way(found: TaskBench) -> None:
    assert sum(line.startswith("| asking") for line in found.markdown().splitlines()) == len(found.rows)
    assert len(found.document()["rows"]) == len(found.rows) and len(found.text()) == len(found.rows) + 4


def test_journal_and_grades_are_timed_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(real, "JOURNALLED", 30)
    monkeypatch.setattr(asking, "evaluate", lambda cases, *_: asked.append(len({c.id for c in cases})))
    found = bench_real("organism:control", rounds=2, only=("journal",), say=lambda _: None)
    assert asked == [30, 30] and [(r.way, r.rounds) for r in found.rows] == [("composcope", 2)]
    assert found.lines == ["journal and grades, 10000 answers: 0 s (0 s of processor); the target is at most 5 s"]


def took(processor: float, text: str = "a") -> Took:
    return Took(processor, processor, {0: text})


def test_ratios_are_medians_over_rounds_of_neighbors_in_time_and_the_best_peer_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times: dict[str, list[float]] = {"ours": [2, 4, 1], "16": [6, 8, 5], "32": [4, 12, 2], "1": [8]}

    def ways(_: BenchSetting) -> list[Way]:
        def way(name: str, batch: str, share: float = 1.0) -> Way:
            left = iter(times[batch or "ours"])
            return Way(name, lambda: took(next(left)), batch, share)

        return [way("composcope", ""), way(HARNESS, "1", 0.5), way(HARNESS, "16"), way(HARNESS, "32")]

    monkeypatch.setattr(real, "TASKS", (BenchTask("task", ways, "at least 2"),))
    done: dict[str, list[float]] = {}

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Callable[[float], None]]:
        done[title] = [total]
        yield done[title].append

    bench = bench_real("organism:control", rounds=3, say=lambda _: None, progress=bar)
    assert done == {"task": [10, *[1] * 10]}, "a bar for each task counts what is timed"
    assert [(r.batch, r.processor, r.ratio, r.low, r.high, r.rounds) for r in bench.rows] == [
        ("", 2, None, None, None, 3),
        ("1", 16, 8, 8, 8, 1),
        ("16", 6, 3, 2, 5, 3),
        ("32", 4, 2, 2, 3, 3),
    ]
    assert [r.same for r in bench.rows] == ["", "1/1", "1/1", "1/1"], "ours is what the others are compared with"
    (line,) = bench.lines
    assert "2.00 [2.00, 3.00] times as fast" in line and "(32)" in line and "at least 2" in line


def test_every_other_round_runs_the_other_way_round_and_parts_of_the_work_run_once() -> None:
    order: list[str] = []
    ways = [Way(n, lambda n=n: (order.append(n), took(1))[1], share=0.5 if n == "c" else 1.0) for n in "abc"]
    said: list[str] = []
    assert [len(some) for some in in_rounds(ways, 3, "asking", said.append)] == [3, 3, 1]
    assert "".join(order) == "abc" + "ba" + "ab"
    assert [line.split(":")[0][-6:] for line in said] == [*["1 of 3"] * 3, *["2 of 3"] * 2, *["3 of 3"] * 2]
    order.clear()
    assert [len(some) for some in in_rounds(ways, 2, partial_once=False)] == [2, 2, 2]
    assert "".join(order) == "abc" + "cba"


def test_a_state_is_put_at_one_position_of_a_copy() -> None:
    before = torch.zeros(1, 3, 2)
    assert real.put(1, torch.ones(2))(before).tolist() == [[[0, 0], [1, 1], [0, 0]]] and not before.any()


def test_answers_are_compared_without_the_blanks_around_them() -> None:
    assert same({0: " a\n", 1: "b", 2: "c"}, {0: "a", 1: "B"}) == 1


@pytest.mark.parametrize(
    ("options", "error", "needle"),
    [
        ({"only": ("no such",)}, InputError, "tasks are asking, no common prefix; "),
        ({"model": None}, InputError, "run make real"),
        ({"lm_eval_python": "/nowhere/python"}, ModelError, "--lm-eval-python /nowhere/python: No such file"),
    ],
)
def test_what_is_missing_is_said_with_what_mends_it(
    options: dict[str, Any], error: type[Exception], needle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=needle):
        bench_real(**{"model": "organism:control", "rounds": 1, "asks": 1, "say": lambda _: None, **options})


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is not None, reason="this interpreter has the harness")
def test_an_interpreter_without_the_harness_is_refused_with_the_command_that_installs_it() -> None:
    options: dict[str, Any] = {"rounds": 1, "asks": 1, "only": ("system",), "say": lambda _: None}
    with pytest.raises(ModelError, match=r"No module named 'lm_eval'; python3 -m venv"):
        bench_real("organism:control", lm_eval_python=sys.executable, **options)


def test_other_presets_are_refused_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--preset", "rael"]) == 1
    said = capsys.readouterr().err
    assert "--preset rael" in said and "use real" in said


def test_every_option_of_the_real_bench_reaches_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given: dict[str, Any] = {}

    def bench(*words: str, **options: Any) -> Any:
        given.update(options, words=words)
        return SimpleNamespace(document=dict, text=lambda: "the table", markdown=lambda: "| a table |")

    monkeypatch.setattr(real, "bench_real", bench)
    docs = tmp_path / "page.md"
    docs.write_text(f"before\n{real.BEGIN}\nold\n{real.END}\nafter\n")
    options = {"asks": 3, "rounds": 7, "threads": 2, "lm_eval_python": "/x/python"}
    words = [w for name, value in options.items() for w in (f"--{name.replace('_', '-')}", str(value))]
    command = ["bench", "--preset", "real", "-m", "some/model", "--only", "asking,patching", "--docs", str(docs)]
    assert main([*command, *words, "--quiet"]) == 0
    assert given["words"] == ("some/model",) and {k: given[k] for k in options} == options
    assert [*given["only"]] == ["asking", "patching"] and capsys.readouterr().out == "the table\n"
    assert "| a table |" in docs.read_text() and "old" not in docs.read_text() and "after" in docs.read_text()
    docs.write_text("a page without a place for the table")
    assert main([*command, *words, "--quiet"]) == 1
    assert capsys.readouterr().out == "the table\n"  # hours of measurements are not lost


def test_a_run_takes_the_time_between_its_beginning_and_its_end_on_as_many_threads_as_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([100.0, 107.5]), iter([10.0, 13.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock[0]))
    monkeypatch.setattr(timing.time, "process_time", lambda: next(clock[1]))
    assert timing.timed(lambda: {0: "a"}) == Took(7.5, 3.0, {0: "a"})
    before = torch.get_num_threads()
    with pytest.raises(KeyError), timing.on_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before
    half = Way("h", lambda: took(1), share=0.5)
    some = [Took(wall=8.0, processor=2.0, found={})]
    assert timing.costs(half, some, on_cpu=True) == [4.0] and timing.costs(half, some, on_cpu=False) == [16.0]


def test_plain_generate_answers_as_our_engine_whatever_its_batches() -> None:
    engine = LocalEngine(weights.path("control"))
    some = [replace(ask, max_tokens=4 + 8 * i) for i, ask in enumerate(real.chat()[:3])]
    ours = [r.text.strip() for _, r in sorted(engine.answer(some), key=lambda pair: some.index(pair[0]))]
    for batch_size in (1, 2, 9):
        found = asking.generate(engine, some, batch_size)
        assert [found[i].strip() for i in range(3)] == ours
