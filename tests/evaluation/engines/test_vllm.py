"""Against a real vLLM process. ``make test-vllm`` sets it up; ``VLLM_PYTHON`` names the interpreter that has it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines import vllm
from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.organism import benchmarks, weights
from composcope.experiments.run import read_json

pytestmark = pytest.mark.vllm
SITE = Path(__file__).resolve().parents[3] / ".site"
PYTHON = os.environ.get("VLLM_PYTHON", ".venv-vllm/bin/python")
# 1 GB of cache blocks is plenty for an organism; without it vLLM takes half of the machine.
OPTIONS = ("--enforce-eager",)


@pytest.fixture(scope="module", autouse=True)
def _small_cache() -> Iterator[None]:
    before = os.environ.get("VLLM_CPU_KVCACHE_SPACE")
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = before or "1"
    yield
    if before is None:
        del os.environ["VLLM_CPU_KVCACHE_SPACE"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A copy: a server that crashed refuses to come back with weights that have changed meanwhile."""
    return str(shutil.copytree(weights.path("control"), tmp_path_factory.mktemp("models") / "control"))


@pytest.fixture(scope="module")
def engine(_small_cache: None, folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[vllm.VllmEngine]:
    log = tmp_path_factory.mktemp("vllm") / "vllm.log"
    with vllm.serve(folder, python=PYTHON, log=log, options=OPTIONS, startup_timeout=3600) as found:
        found.start()
        yield found


@pytest.fixture(scope="module")
def asks() -> list[Ask]:
    cases = benchmarks.mixed(60, 5) + benchmarks.temporal(4, 5)
    wholes = [Ask(c.id, "whole", c.question, c.answer, c.answer_type) for c in cases]
    parts = [Ask(c.id, f"part:{i}", p.question, p.answer, p.answer_type) for c in cases for i, p in enumerate(c.parts)]
    return list({a.prompt: a for a in [*wholes, *parts]}.values())


@pytest.fixture(scope="module")
def here(folder: str, asks: Sequence[Ask]) -> dict[Ask, Response]:
    return dict(LocalEngine(folder).answer(asks))


def shown(answers: Mapping[Ask, Response]) -> dict[str, tuple[Any, ...]]:
    return {
        a.prompt: (r.text, r.finish_reason, r.prompt_ids, r.response_ids, r.prompt_tokens, r.response_tokens)
        for a, r in answers.items()
    }


def metric(engine: vllm.VllmEngine, name: str) -> float:
    with urllib.request.urlopen(f"{engine.server.url}/metrics") as reply:
        return sum(float(x) for x in re.findall(rf"^{name}{{[^}}]*}} ([\d.e+]+)$", reply.read().decode(), re.M))


def processes(engine: vllm.VllmEngine) -> dict[int, tuple[int, str]]:
    """pid -> (resident kB, command) of the server and its children: they share a process group."""
    supervisor = engine.server._process
    assert supervisor is not None
    rows = [
        line.split(None, 4)
        for line in subprocess.run(
            ["ps", "-eo", "pid,ppid,pgid,rss,args", "--no-headers"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
    ]
    [group] = [row[2] for row in rows if int(row[1]) == supervisor.pid]
    return {int(row[0]): (int(row[3]), row[4]) for row in rows if row[2] == group}


def test_greedy_answers_are_those_of_the_transformers_engine_to_the_token(
    engine: vllm.VllmEngine, folder: str, asks: list[Ask], here: dict[Ask, Response]
) -> None:
    assert engine.identity == LocalEngine(folder).identity
    there = dict(engine.answer(asks))
    same = sum(there[a].response_ids == here[a].response_ids for a in asks)
    print(f"the same tokens, ids of prompt and answer included: {same} of {len(asks)} asks")
    # fp32 on both sides; where this ever fails, the share of equal answers is the number to document.
    assert shown(there) == shown(here)


def test_raw_prompts_stop_strings_and_the_end_of_the_context_agree_too(
    engine: vllm.VllmEngine, folder: str, asks: list[Ask]
) -> None:
    local = LocalEngine(folder)
    context = local.context
    assert context is not None
    some = [replace(a, prompting="raw", stop=(".", "is"), max_tokens=5 * context) for a in asks[:40]]
    long = replace(asks[0], prompting="raw", prompt=asks[0].prompt * 6, max_tokens=5 * context)
    assert shown(dict(engine.answer([*some, long]))) == shown(dict(local.answer([*some, long])))


def test_a_prompt_that_does_not_fit_is_an_error_and_never_shortened(engine: vllm.VllmEngine, asks: list[Ask]) -> None:
    [(_, response)] = engine.answer([replace(asks[0], prompt=asks[0].prompt * 100)])
    assert response.finish_reason == "error" and "context" in str(response.error)


def test_samples_repeat_with_their_seed_and_differ_between_repeats(engine: vllm.VllmEngine, asks: list[Ask]) -> None:
    draws = [replace(asks[0], case=str(i), temperature=1.5, repeat=i) for i in range(12)]
    first, second = (shown({replace(a, prompt=a.case): r for a, r in engine.answer(draws)}) for _ in range(2))
    assert first == second and len({text for text, *_ in first.values()}) > 3


def test_a_shared_prefix_is_computed_once(engine: vllm.VllmEngine, folder: str, asks: list[Ask]) -> None:
    prefix = " ".join(a.prompt for a in asks[:6])
    before = metric(engine, "vllm:prefix_cache_hits_total")
    shared = [replace(a, prompt=f"{prefix} {a.prompt}", prompting="raw", max_tokens=4) for a in asks[10:40]]
    answers = shown(dict(engine.answer(shared)))
    hits = metric(engine, "vllm:prefix_cache_hits_total") - before
    tokens = sum(r[4] for r in answers.values())
    print(f"{len(shared)} asks with a common prefix: {hits:.0f} of {tokens} prompt tokens came from the cache")
    assert hits > 0.3 * tokens
    assert answers == shown(dict(LocalEngine(folder).answer(shared)))


def test_a_crash_in_the_middle_loses_nothing_and_changes_nothing(
    engine: vllm.VllmEngine, asks: list[Ask], here: dict[Ask, Response]
) -> None:
    [core] = [pid for pid, (_, command) in processes(engine).items() if "EngineCore" in command]
    found: dict[Ask, Response] = {}
    for n, (ask, response) in enumerate(engine.answer(asks)):
        found[ask] = response
        if n == 20:
            os.kill(core, signal.SIGKILL)
    print(f"{len(found)} asks, the engine killed after 20: {engine.server.crashes} crash, answers as without it")
    assert shown(found) == shown(here) and engine.server.crashes >= 1
    assert core not in processes(engine)


def test_memory_is_bounded_over_ten_thousand_asks(engine: vllm.VllmEngine, asks: list[Ask]) -> None:
    def resident() -> tuple[int, int]:
        """Megabytes of this process and of the server's."""
        own = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return own >> 20, sum(kb for kb, _ in processes(engine).values()) >> 10

    many = [replace(asks[i % len(asks)], case=str(i), max_tokens=2) for i in range(10_000)]
    answered = sum(r.finish_reason != "error" for _, r in engine.answer(many[:1000]))
    before = resident()
    for _, response in engine.answer(many[1000:]):
        answered += response.finish_reason != "error"
    after = resident()
    print(f"MB before and after 9000 asks: this process {before[0]} -> {after[0]}, server {before[1]} -> {after[1]}")
    # The server's cache blocks (1 GB, see _small_cache) only become resident as they are first used.
    assert answered == 10_000 and after[0] - before[0] < 50 and after[1] - before[1] < 1024 + 150


def _investigate(*options: str) -> None:
    """In a process of its own: the server of the other tests, still running, is no child of it."""
    environment = {**os.environ, "PYTHONPATH": str(SITE)}
    subprocess.run([sys.executable, "-m", "composcope", "investigate", *options], env=environment, check=True)


def test_one_command_asks_with_vllm_and_probes_with_transformers(folder: str, tmp_path: Path) -> None:
    study = ["-m", folder, "-b", "organism:mixed", "--limit", "25", "--probe-cases", "6", "--quiet"]
    study += ["--probes", "lookback"]
    served = ["--engine", "vllm", "--vllm-python", PYTHON, "--vllm-args", " ".join(OPTIONS), "--vllm-timeout", "3600"]
    _investigate(*study, *served, "-o", str(tmp_path / "vllm"))
    _investigate(*study, "-o", str(tmp_path / "here"))
    tables = [(tmp_path / run / "probes" / "lookback" / "table.csv").read_text() for run in ("vllm", "here")]
    assert tables[0] == tables[1]
    metrics = [read_json(tmp_path / run / "metrics.json") for run in ("vllm", "here")]
    assert metrics[0] == metrics[1]
    manifest = read_json(tmp_path / "vllm" / "manifest.json")
    print(f"peak MB by step, vLLM stopped before the probes: {manifest['peak_memory']}")
    # The server is counted where it runs, and is gone where the probes run.
    peaks = manifest["peak_memory"]
    assert peaks["ask"]["children"] > 500 and peaks["probe:lookback"].get("children", 0) < 300
