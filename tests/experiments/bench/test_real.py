"""The benchmark on a real model, run here on a tiny one: who is compared with whom, and what is said when it cannot."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from importlib.metadata import version
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
from composcope.probes import neurons, patching


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


def test_every_way_to_ask_does_the_part_of_the_work_that_it_says_with_the_engine_that_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, ran = LocalEngine(weights.path("control")), list[tuple[int, int, set[bool]]]()

    def asked(mine: LocalEngine, asks: Any, batch: int = 0) -> dict[int, str]:
        ran.append((len(asks), batch, {mine.batch_size != 1, mine._continuous}))
        return {}

    monkeypatch.setattr(real, "ours", asked)
    monkeypatch.setattr(real, "generate", asked)
    ways = real.asking(real.chat, BenchSetting(engine, lambda asks, n: took(asked(engine, asks, n) or 1), 20))  # type: ignore[arg-type]
    for way in ways:
        way.run()
    part, some = 16 / 20, (16, 1, {True})  # what takes one ask at a time takes 16 of the 20
    assert [(w.name, w.batch, w.share, did) for w, did in zip(ways, ran, strict=True)] == [
        ("composcope", "", 1, (20, 0, {True})),
        ("composcope, naive", "1", part, (16, 0, {False})),
        ("model.generate", "1", part, some),
        ("model.generate", "32", 1, (20, 32, {True})),
        (HARNESS, "1", part, some),
        *[(HARNESS, str(n), 1, (20, n, {True})) for n in (16, 32, 64)],
    ]
    assert {w.note for w in ways if w.share != 1} == {"timed on 16 of 20, once"}
    assert {(w.share, w.note) for w in real.asking(real.chat, BenchSetting(engine, None, 16))} == {(1, "")}


def test_the_questions_of_the_bench_share_what_their_task_names() -> None:
    made = {"apart": real.apart(), "chat": real.chat(), "few": real.few_shot()}
    for name, asks in made.items():
        assert len({a.prompt for a in asks}) == len(asks) == 96 == 3 * len({*real.CAPITALS})
        assert {(a.prompting, a.stop, a.max_tokens) for a in asks} == {
            ("chat", (), 32) if name == "chat" else ("raw", ("\n",), 32)
        }
    first = [a.prompt for a in made["apart"]]
    assert len({p.split()[0].strip(":") for p in first}) == 32 and all(p.endswith("\nAnswer:") for p in first)
    before = "Question: Which country has Manila as its capital?\nAnswer: Philippines\n\n"
    for ask, question in zip(made["few"], real.questions(), strict=True):
        assert ask.prompt.startswith(before) and ask.prompt.endswith(f"\n\nQuestion: {question}\nAnswer:")
        assert ask.prompt.count("Question: ") == 9 and not {*real.CAPITALS} & {*re.findall(r"\w+", before)}
    assert {a.prompt.removeprefix(q) for a, q in zip(made["chat"], real.questions(), strict=True)} == {
        " Answer with one or two words only."
    }


def test_a_table_of_the_bench_shows_every_number_of_its_rows_and_says_what_follows() -> None:
    rows = [timing.TaskTiming("asking", "composcope", "", 2.5, 2.25, None, None, None, 3, "", ""),
            timing.TaskTiming("asking", "other", "16", 5.5, 4.5, 2.0, 1.5, 2.75, 3, "17/18", "a note")]  # fmt: skip
    machine = timing.machine("cpu", 2)
    found = TaskBench("the model, float32", machine, rows, ["asking: 2.00 times"])
    lines = found.markdown().splitlines()
    assert lines[-1] == "- asking: 2.00 times" and [row.split(" | ") for row in lines[4:6]] == [
        ["| asking", "composcope", "", "2.25", "2.50", "", "", " |"],
        ["| asking", "other", "16", "4.50", "5.50", "2.00 [1.50, 2.75], n=3", "17/18", "a note |"],
    ]
    shown = found.text()
    assert shown[-1] == "asking: 2.00 times" and "4.50" in shown[4] and "17/18" in shown[4]
    clocks = [replace(found, machine={**machine, "device": device}).about() for device in ("cpu", "H200")]
    assert "median of paired processor times" in clocks[0] and "median of paired wall-clock times" in clocks[1]
    document = found.document()
    assert document["rows"][1]["processor"] == 4.5 and document["summary"] == ["asking: 2.00 times"]
    assert document["machine"] == machine and (document["schema"], document["model"]) == (1, "the model, float32")


class Known:
    """A model of four layers that writes 5, 6 and then ``last`` after any prompt, and records what it runs."""

    def __init__(self, last: int) -> None:
        self.anatomy, self.eos_ids, self.last = SimpleNamespace(n_layers=4), {9}, last
        self.tokenizer = SimpleNamespace(apply_chat_template=lambda talk, **_: [1, 2, 3])
        self.ran: list[tuple[int, int | None, list[int]]] = []

    def run(self, ids: torch.Tensor, read: Any = (), edit: Any = None) -> Any:
        n = ids.shape[1]
        sites = [*(edit or ())] or [*read] or [None]
        states = torch.arange(1.0, n + 1)[None, :, None]
        changed = edit[sites[0]](torch.zeros(1, n, 1))[0, :, 0] if edit else torch.zeros(n)
        assert edit is None or changed.max() == 3, "the state of the end of the donor's prompt is put in"
        self.ran.append((n, sites[0] and sites[0].layer, changed.nonzero().flatten().tolist()))
        logits = torch.zeros(1, 1, 10)
        logits[0, 0, [5, 6, self.last][min(n - 3, 2)]] = 1
        return SimpleNamespace(logits=logits, acts=dict.fromkeys(sites, states))


@pytest.mark.parametrize(("last", "written"), [(9, 3), (7, 24)])
def test_the_plain_way_to_patch_reads_everything_again_for_each_token(
    last: int, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm, swept = Known(last), list[Any]()
    monkeypatch.setattr(real, "PATCHED", 3)
    monkeypatch.setattr(patching, "prompt_end_sweep", lambda *args, **how: swept.append((args, how)))
    ours, plain = real.patching_pairs(SimpleNamespace(lm=lambda: lm))  # type: ignore[arg-type]
    ours.run()
    assert [(len(a[1]), len(a[2]), a[3], how) for a, how in swept] == [
        (3, 3, [(0, 0), (1, 1), (2, 2)], {"max_new_tokens": 24})
    ]
    assert not lm.ran and plain.run().found == {}
    assert lm.ran == [row for layer in (0, 2)
                      for row in ((3, layer, []), *((3 + i, layer, [2]) for i in range(written)))]  # fmt: skip
    cells = 4 * 3 * 4  # layers, pairs, and what is put in: the donor and three controls
    assert (ours.share, plain.share, plain.note) == (1, 2 / cells, f"timed on 2 of {cells}, once")


def test_the_plain_way_to_attribute_is_the_reference_on_two_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, given = Known(7), list[Any]()
    monkeypatch.setattr(real, "ATTRIBUTED", 6)
    monkeypatch.setattr(neurons, "attribute_many", lambda _, *args, **how: given.append((*args, how)))
    ours, plain = real.attributing(SimpleNamespace(lm=lambda: lm))  # type: ignore[arg-type]
    assert [way.run().found for way in (ours, plain)] == [{}, {}]
    prompts, answers = [[1, 2, 3]] * 6, [[5]] * 6
    reference = {"rule": "reference", "max_rows": 20}
    assert given == [(prompts, answers, {}), (prompts[:2], answers[:2], reference)]
    assert (ours.share, plain.share, plain.note) == (1, 2 / 6, "timed on 2 of 6, once")


def test_a_table_says_on_which_machine_and_how_many_threads_it_was_measured() -> None:
    found = timing.machine("cpu", 3)
    assert (found["threads"], found["device"], found["cores"]) == (3, "cpu", os.cpu_count())
    wanted = {"torch": torch.__version__, "transformers": version("transformers"), "date": str(date.today())}
    assert {k: found[k] for k in wanted} == wanted and found["python"] == platform.python_version()
    assert len(found["load_average"]) == 3 and platform.machine() in found["system"] and found["processor"]
    said = timing.setting({**found, "load_average": [1.25, 0, 0]}, "the model")
    assert "3 threads" in said and "load 1.2, 0.0, 0.0" in said and "the model" in said
    assert all(str(found[k]) in said for k in (*wanted, "processor", "cores", "system", "device"))


def test_answers_are_compared_without_the_blanks_around_them() -> None:
    assert same({0: " a\n", 1: "b", 2: "c"}, {0: "a", 1: "B"}) == 1


@pytest.mark.parametrize(
    ("options", "error", "needle"),
    [
        ({"only": ("no such",)}, InputError, "tasks are asking, no common prefix; "),
        ({"asks": 97}, InputError, "asks at most 96"), ({"rounds": 0}, InputError, "numbers at least 1"),
        ({"model": None}, InputError, "run make real"),
        ({"lm_eval_python": "/nowhere/python"}, ModelError, "--lm-eval-python /nowhere/python: No such file"),
    ],
)  # fmt: skip
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
