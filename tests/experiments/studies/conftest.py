"""Small studies on the shipped organisms, each run once for all tests: real answers, probes, tables and figures."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from exit_codes import done

from composcope.evaluation.cases import write_cases
from composcope.experiments.cli import main
from composcope.experiments.evaluating.ask_plan import load_benchmark

Study = Callable[..., Path]


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all processes of a test session, so that every study runs once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "studies"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def study(shared_folder: Path) -> Study:
    """Run a study by its command line, unless another process has; the folder it wrote, which tests only read."""

    def run(name: str, *words: str, models: tuple[str, ...] = ("control",)) -> Path:
        out = shared_folder / name
        chosen = [w for m in models for w in ("--model", f"organism:{m}")]
        with (shared_folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (out / "study.md").is_file():
                code = main(["study", name, *chosen, *words, "--out", str(out), "--no-report", "--quiet"])
                assert code == done(out)
        return out

    return run


@pytest.fixture(scope="session")
def agentcoma(study: Study) -> Path:
    return study("agentcoma", "--limit", "8")


@pytest.fixture(scope="session")
def gsm(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the questions that the second ones were made from, and the pairs also as code."""
    cases = [
        replace(c, meta={**c.meta, "original": {"question": c.parts[0].question, "answer": c.parts[0].answer}})
        for c in load_benchmark("organism:pairs", limit=6).cases
    ]
    folder = tmp_path_factory.mktemp("inputs")
    file = folder / "pairs.jsonl"
    write_cases(cases, file)
    words = ("--data", str(file), "--format", "plain", "--prompting", "chat", "--answer-tokens", "32")
    models = folder / "models.yaml"
    models.write_text(json.dumps({
        "models": [
            {"model": "organism:none", "family": "organism", "size": 0.0004, "tuning": "pretrained", "cost": "cheap"},
            {"model": "organism:twin", "family": "organism", "size": 0.0008, "tuning": "instruct", "cost": "costly"},
        ],
        "pairs": {"tuning": [["twin", "none"]]},
    }))  # fmt: skip
    words += ("--models", str(models), "--preamble", "no", "--few-shot", "0")
    return study("compositional-gsm", *words, models=())


@pytest.fixture(scope="session")
def stad(study: Study) -> Path:
    return study("stad", "--limit", "2", "--data", "organism:mixed", "--data", "organism:temporal")


@pytest.fixture(scope="session")
def collapse(study: Study) -> Path:
    return study("composition-collapse", "--limit", "3", models=("control", "twin"))
