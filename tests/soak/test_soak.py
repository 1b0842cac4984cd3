"""Faults and kills under load, in small here, in full with ``make soak``; the table of ``make mutants``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[ModuleType, ModuleType]]:
    """The two programs, which import each other from their own folder."""
    sys.path.insert(0, str(HERE))
    import killing
    import under_load

    yield under_load, killing
    sys.path.remove(str(HERE))


@pytest.mark.slow
def test_a_tenth_of_the_requests_failing_loses_nothing_and_counts_nothing_twice(
    tools: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    soak, _ = tools
    small = ["--asks", "240", "--latency", "0.02", "--faults", "0.1", "--slow", "0.2", "--throughput", "0"]
    lines, failed = soak.soak(soak.parse(small), tmp_path)
    assert not failed, "\n".join(lines)
    assert lines[-1] == "all of it holds"


@pytest.mark.long
def test_a_run_that_lost_an_answer_or_graded_one_wrong_does_not_pass(
    tools: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    soak, killing = tools
    found = soak.run(5, tmp_path, 0.0, 0.0, 0.0, 4)
    assert soak.problems(tmp_path, found) == []
    path = tmp_path / "run" / "graded.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[1:]) + "\n")
    assert "1 asks lost, 0 made up" in soak.problems(tmp_path, found)
    right = [n for n, line in enumerate(lines) if '"outcome": "correct"' in line]
    lines[right[0]] = lines[right[0]].replace('"outcome": "correct"', '"outcome": "incorrect"')
    path.write_text("\n".join(lines) + "\n")
    assert ["1 asks counted wrong" in said for said in soak.problems(tmp_path, found)] == [True]
    [segment] = (tmp_path / "run" / "journal").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes() + segment.read_bytes().splitlines()[-1] + b"\n")
    assert any("the journal holds 21 answers to 20 of 20 asks" in said for said in soak.problems(tmp_path, found))
    assert killing.compare(tmp_path / "run", tmp_path / "run") == ["1 asks have two answers in the journal"]


@pytest.mark.long
def test_a_killed_driver_and_a_killed_server_change_nothing(
    tools: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    _, killing = tools
    server = killing.Served(0.02, 0.05)
    try:
        study = killing.over_http(tmp_path, server, ["driver", "soak_server"], 60)
        lines, problems = killing.run(study, tmp_path, 1)
    finally:
        server.close()
    assert problems == [] and "2 times kill -9" in lines[0] and "started 2 times" in lines[0]


@pytest.mark.slow
def test_a_run_struck_at_a_few_of_its_file_calls_resumes_to_what_it_would_have_been() -> None:
    # All of them: make crashpoints.
    command = [
        sys.executable,
        str(HERE / "crashpoints.py"),
        "--every",
        "85",
        "--every-refused",
        "100",
        "--every-probed",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("all resumed and equal") == 2, done.stdout + done.stderr


def test_every_fault_of_the_table_stands_in_exactly_one_place_and_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    import mutants

    texts = {path: path.read_text(encoding="utf-8") for path in mutants.files_of(mutants.ROOT)}
    places = {mutant.name: mutants.place_of(mutant, texts) for mutant in mutants.MUTANTS}
    assert [(name, place) for name, place in places.items() if isinstance(place, str)] == []
    assert len(places) == len(mutants.MUTANTS), "each has a name of its own"
    assert [m.name for m in mutants.MUTANTS if m.was == m.now] == []


def test_names_of_failed_tests_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    import mutants

    said = "FAILED a.py::t[x-1/2 - 0/2] - a [1] - [2]\nERROR b.py::u - no\nFAILED c.py::v\nFAILED d.py::w[é 1]"
    assert mutants._failed(said) == ["a.py::t[x-1/2 - 0/2]", "b.py::u", "c.py::v", "d.py::w[é 1]"]
