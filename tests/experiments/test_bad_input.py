"""Every bad input is one clear line and a non-zero exit, and what was done is kept."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from exit_codes import done
from safetensors.torch import load_file, save_file

from composcope.errors import InputError
from composcope.evaluation.cases import Case, read_cases, write_cases
from composcope.experiments.cli import main
from composcope.experiments.run import read_json

Capture = pytest.CaptureFixture[str]


def error_of(capsys: Capture) -> str:
    """The one error line on stderr (progress lines stand before it)."""
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("composcope: error: ")]
    assert len(errors) == 1
    return errors[0]


def run(command: str, model: Any, benchmark: Any, out: Path, *more: str) -> int:
    return main([command, "-m", str(model), "-b", str(benchmark), "-o", str(out), "--format", "plain", *more])


@pytest.mark.parametrize("device", ["cuda", "gpuu"])
def test_a_device_that_is_not_here_is_named(
    device: str, taught: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert run("evaluate", taught, case_file, tmp_path / "r", "--device", device) == 1
    assert f"device {device}: not available here" in error_of(capsys)


@pytest.fixture
def model_copy(taught: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(taught, tmp_path / "model"))


@pytest.mark.parametrize(
    ("name", "needle"),
    [
        ("./nowhere", "--model ./nowhere: no such folder"),
        ("/no/such/model", "--model /no/such/model: no such folder"),
        ("nowhere", "--model nowhere: no such folder; give a model folder"),
        ("my@localhost:9/v1", "give my@http://localhost:9/v1"),
        ("my model/v1", "--model my model/v1: no such folder, and no hub id"),
        ("organism:cat", "--model organism:cat: no such organism; `composcope organism list`"),
        ("nobody/nothing", "HF_HUB_OFFLINE is set"),
    ],
)
def test_an_unknown_model_is_named(
    name: str, needle: str, case_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert run("evaluate", name, case_file, tmp_path / "r") == 1
    assert needle in error_of(capsys)
    assert not (tmp_path / "r").exists()
    assert main(["organism", "measure", name, "--n", "1"]) == 1
    assert needle.replace(" ./", " ") in error_of(capsys)


@pytest.mark.parametrize(
    ("remove", "needle"),
    [
        ("model.safetensors", "no weights (*.safetensors)"),
        ("config.json", "no config.json"),
        ("tokenizer.json", "tokenizer"),
    ],
)
def test_a_folder_without_a_piece_of_the_model_says_which(
    remove: str, needle: str, model_copy: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    (model_copy / remove).unlink()
    if remove == "tokenizer.json":
        (model_copy / "tokenizer_config.json").unlink()
    assert run("evaluate", model_copy, case_file, tmp_path / "r") == 1
    message = error_of(capsys)
    assert needle in message and str(model_copy) in message


def _without_pad_token(model: Path) -> None:
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        path = model / name
        if path.is_file():
            raw = json.loads(path.read_text())
            raw.pop("pad_token", None)
            path.write_text(json.dumps(raw))


def test_a_tokenizer_without_pad_token_gets_one_and_answers_are_the_same(
    model_copy: Path, taught: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    _without_pad_token(model_copy)
    from transformers import AutoTokenizer

    assert AutoTokenizer.from_pretrained(model_copy).pad_token is None
    answers = []
    for folder, name in ((taught, "a"), (model_copy, "b")):
        out = tmp_path / name
        capsys.readouterr()
        assert run("evaluate", folder, case_file, out) == done(out)
        said = "names no pad token; batches are padded with '</s>'" in capsys.readouterr().err
        assert said == (name == "b")
        rows = (json.loads(line) for line in (out / "graded.jsonl").open())
        answers.append({(row["case"], row["role"]): row["answer"] for row in rows})
    assert answers[0] == answers[1]


def test_a_tokenizer_without_chat_template_is_asked_raw_and_chat_is_refused(
    model_copy: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    (model_copy / "chat_template.jinja").unlink(missing_ok=True)
    config = model_copy / "tokenizer_config.json"
    raw = json.loads(config.read_text())
    raw.pop("chat_template", None)
    config.write_text(json.dumps(raw))
    assert run("evaluate", model_copy, case_file, tmp_path / "r", "-q") == done(tmp_path / "r")
    assert read_json(tmp_path / "r" / "manifest.json")["identity"]["prompting"] == "raw"
    capsys.readouterr()
    assert run("evaluate", model_copy, case_file, tmp_path / "s", "--prompting", "chat") == 1
    assert "no chat template" in error_of(capsys)


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ('{"id": "a", "question": "q"}\n', "cases.jsonl:1: field 'answer' is missing"),
        (
            '{"id": "a", "question": "q", "answer": "1", "parts": [{"question": "p"}]}\n',
            "cases.jsonl:1, parts[0]: field 'answer' is missing",
        ),
        ('{"id": "a", "question": "q", "answer": "1"}\n' * 2, "cases.jsonl:2: id 'a' was already used by line 1"),
        ('{"id": "a",\n', "cases.jsonl:1: not valid JSON"),
        ("\n", "no cases; give at least one"),
    ],
)
def test_a_broken_case_file_is_refused_with_line_and_field(
    text: str, needle: str, taught: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "cases.jsonl").write_text(text)
    assert run("investigate", taught, tmp_path / "cases.jsonl", tmp_path / "r") == 1
    assert needle in error_of(capsys)
    assert not (tmp_path / "r").exists()


def test_an_unknown_benchmark_or_protocol_is_named(
    taught: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "rows.jsonl").touch()
    assert run("evaluate", taught, tmp_path / "none.jsonl", tmp_path / "r") == 1
    assert f"--benchmark {tmp_path / 'none.jsonl'}: no such benchmark file" in (said := error_of(capsys))
    assert "did you mean" not in said
    near = case_file.with_name("smus.jsonl")
    assert run("evaluate", taught, near, tmp_path / "r") == 1
    assert error_of(capsys).endswith(f"did you mean '{case_file}'?")
    with pytest.raises(InputError, match=f"did you mean '{case_file}'"):
        read_cases(near)
    assert run("evaluate", taught, "organism:sums", tmp_path / "r") == 1
    assert "--benchmark organism:sums: no such benchmark" in error_of(capsys)
    assert run("evaluate", taught, "organism:mixd", tmp_path / "r") == 1
    assert "did you mean 'organism:mixed'?" in error_of(capsys)
    assert run("evaluate", taught, "wrold", tmp_path / "r") == 1
    assert "--benchmark wrold: no such" in (said := error_of(capsys)) and said.endswith("did you mean 'world'?")
    assert run("evaluate", taught, case_file, tmp_path / "r", "--protocol", "guesswork") == 1
    assert "guesswork" in error_of(capsys)


@pytest.mark.parametrize(("keep", "what"), [(0, "no failure"), (1, "no success")])
@pytest.mark.usefixtures("undrawn")
def test_an_empty_case_set_is_said_with_its_counts_and_the_rest_is_kept(
    keep: int, what: str, taught: Path, tmp_path: Path, planted: Callable[..., list[Case]], capsys: Capture
) -> None:
    write_cases([c for i, c in enumerate(planted()) if i % 2 == keep], tmp_path / "cases.jsonl")
    assert run("investigate", taught, tmp_path / "cases.jsonl", tmp_path / "r", "--probes", "min-k") == 1
    err = capsys.readouterr().err
    (first,) = [line for line in err.splitlines() if "among 6 cases" in line]
    assert f"no contrast possible: {what}" in first and "both-right-whole-wrong" in first
    assert err.index(first) < err.index("are left out"), "said before the probes run"
    last = err.splitlines()[-1]
    assert f"no contrast possible: {what}" in last and "error" not in last and "among" not in last
    assert (tmp_path / "r" / "report.html").is_file()
    assert (tmp_path / "r" / "probes" / "min-k" / "table.csv").is_file()
    assert read_json(tmp_path / "r" / "metrics.json")["metrics"]
    assert read_json(tmp_path / "r" / "manifest.json")["status"] == "complete"


def test_a_prompt_longer_than_the_context_is_invalid_and_never_shortened(
    taught: Path, tmp_path: Path, planted: Callable[..., list[Case]], capsys: Capture
) -> None:
    cases = planted()
    long = Case(**{**vars(cases[0]), "id": "long", "question": "word " * 200 + cases[0].question})
    write_cases([*cases, long], tmp_path / "cases.jsonl")
    assert run("evaluate", taught, tmp_path / "cases.jsonl", tmp_path / "r") == 2
    err = capsys.readouterr().err
    (line,) = [x for x in err.splitlines() if "context of 96" in x]
    assert "case 'long', role 'whole'" in line and "are invalid" in line
    rows = [json.loads(x) for x in (tmp_path / "r" / "graded.jsonl").open()]
    assert [r["outcome"] for r in rows if r["case"] == "long" and r["role"] == "whole"] == ["invalid"]
    whole = next(m for m in read_json(tmp_path / "r" / "metrics.json")["metrics"] if m["metric"] == "composition")
    assert (whole["count"], whole["n"], whole["n_invalid"]) == (6, 12, 1)


def test_nan_logits_are_an_error_and_no_answer(
    model_copy: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    weights = load_file(model_copy / "model.safetensors")
    name = next(k for k in weights if "layers.1.mlp.down_proj" in k)
    weights[name][0, 0] = float("nan")
    save_file(weights, model_copy / "model.safetensors", metadata={"format": "pt"})
    assert run("investigate", model_copy, case_file, tmp_path / "r") == 1
    message = error_of(capsys)
    assert "nan" in message.lower() or "not finite" in message.lower()
    assert not (tmp_path / "r" / "metrics.json").exists()
    assert read_json(tmp_path / "r" / "manifest.json")["status"] == "failed"


def test_an_unusable_out_folder_is_named(taught: Path, case_file: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "r").write_text("")
    assert run("evaluate", taught, case_file, tmp_path / "r") == 1
    assert "is a file; give a folder" in error_of(capsys)
    assert run("evaluate", tmp_path / "no-model", case_file, tmp_path / "r" / "a") == 1
    assert "is a file; give a folder" in error_of(capsys), "before the model is looked for"


@pytest.mark.parametrize(
    ("options", "needle"),
    [
        (["--protocol", "duble-gate"], "did you mean 'double-gate'?"),
        (["--protocol", "reasoning-gap"], "needs a Q2 that uses X"),
        (["--probes", "neurns"], "did you mean 'neurons'?"),
        (["--format", "nonsense"], "--format 'nonsense' is not known"),
        (["--also", "nonsense"], "--also 'nonsense' is not known"),
        *((["--few-shot", n], f"--few-shot {n}: give 1 to") for n in ("99", "-1")),
        (["--judge", "nobody"], "--judge nobody: cannot be opened"),
        (["--reversed"], "--reversed: no case has a wording"),
        (["--thinking", "--prompting", "raw"], "--thinking needs the chat template"),
        (["--preamble", "perhaps"], "--preamble perhaps: use"),
        (["--thinking-tokens", "0"], "--thinking-tokens 0"),
        (["--device", "gpuu"], "device gpuu"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_refused_before_anything_is_asked_leaves_no_folder_and_changes_none(
    options: list[str], needle: str, taught: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    command = ["investigate", "-m", str(taught), "-b", str(case_file), "-o", str(tmp_path / "runs" / "r")]
    assert main([*command, *options]) == 1
    assert needle in error_of(capsys)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_is_complete_stays_as_it_is_when_the_next_command_is_refused(
    taught: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert run("evaluate", taught, case_file, tmp_path / "r") == done(tmp_path / "r")
    before = {p: p.read_bytes() for p in (tmp_path / "r").rglob("*") if p.is_file()}
    capsys.readouterr()
    assert run("evaluate", taught, case_file, tmp_path / "r", "--judge", "nobody") == 1
    assert main(["probe", str(tmp_path / "r"), "--probes", "neurns"]) == 1
    assert {p: p.read_bytes() for p in (tmp_path / "r").rglob("*") if p.is_file()} == before


def test_what_a_model_said_before_its_run_began_is_in_the_log(
    model_copy: Path, case_file: Path, tmp_path: Path
) -> None:
    _without_pad_token(model_copy)
    assert run("evaluate", model_copy, case_file, tmp_path / "r", "-q") == done(tmp_path / "r")
    first, *rest = (tmp_path / "r" / "log.txt").read_text().splitlines()
    assert "names no pad token" in first and rest


def test_a_benchmark_that_publishes_no_sub_questions_is_refused_before_a_run_is_made(
    taught: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([{"_id": "5a", "question": "q", "answer": "a", "type": "bridge", "context": []}]))
    assert run("evaluate", taught, f"hotpotqa:{path}", tmp_path / "r") == 1
    assert "no sub-questions" in (said := error_of(capsys)) and "composcope build scaffolds" in said
    assert run("evaluate", taught, path, tmp_path / "r") == 1
    assert f"give hotpotqa:{path}" in error_of(capsys)
    assert not (tmp_path / "r").exists()


def test_weights_beside_a_model_that_answered_here_are_refused(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    before = (run / "config.yaml").read_text()
    assert main(["probe", str(run), "--probe-model", "organism:twin"]) == 1
    assert "--probe-model organism:twin: is for a run that a server answered" in capsys.readouterr().err
    assert (run / "config.yaml").read_text() == before


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("organism train --out o", ["--dose", "--all"]),
        ("organism train --out o --all --dose low", ["--dose", "--all"]),
        ("organism train --out o --dose low --crossed", ["--crossed", "--all"]),
        ("organism plant --cause lost", ["--out", "--list"]),
        ("organism plant --out o --shipped --cause lost", ["--shipped", "--cause"]),
        ("organism plant --out o", ["--cause once, or twice"]),
        ("organism plant --out o --cause lost --cause lost --cause lost", ["--cause once, or twice"]),
        ("organism plant --out o --cause lost --variant a --variant b", ["--variant once for each --cause"]),
        ("organism plant --out o --cause lost --block 1 --block 2", ["--block once for each --cause"]),
        ("organism plant --out o --cause lst", ["--cause lst", "did you mean 'lost'"]),
        *(
            (f"organism plant --out o {of} {option}", [of.removeprefix("--shipped") or "--shipped", "only"])
            for of in ("--shipped", "--cause follower")
            for option in ("--variant a", "--block 1", "--appended 1", "--base low", "--steps 3")
        ),
        ("organism plant --out o --shipped --seed 1", ["--shipped"]),
        ("organism plant --out o --cause follower --cause lost", ["--cause follower"]),
        ("organism card nowhere --out o --seed 3", ["nowhere/seed-3", "--all --seed 3"]),
        ("organism card nowhere --out o --crossed", ["nowhere/seed-0", "--all --crossed --seed 0"]),
        ("study agentcoma -o o -m organism:control --models m.yaml", ["--model and --models"]),
        (
            "study agentcoma -o o -m organism:none -d {run}/cases.jsonl -d b/cases.jsonl",
            ["--data", "{run}/cases.jsonl"],
        ),
        ("study filtering {run}", ["--kept"]),
        ("study human {run}/cases.jsonl --key k", ["--sheet", "--key"]),
        ("study human {run}/cases.jsonl --sheet k", ["--sheet", "--key"]),
        ("study interventions -o o --size medium", ["--size medium", "small", "full"]),
        ("probe {run} --engine openai", ["--engine openai", "transformers", "ray"]),
        ("evaluate -m m -b {run}/cases.jsonl -o o --engine openai", ["--engine openai", "--base-url"]),
        ("evaluate -m organism:none -b {run}/cases.jsonl -o o --shard 1/9", ["--shard 1/9", "8 cases"]),
        ("evaluate -m organism:none -b {run}/cases.jsonl -o o --vllm-args '\"' --engine vllm", ["--vllm-args", "'\"'"]),
        ("plot gaps {run} -o o --bands 2,x", ["--bands 2,x"]),
        ("plot gaps {run} -o o --width wide", ["--width wide", "column"]),
        ("plot gaps {run} -o o --style red", ["--style red", "gray"]),
        ("plot gaps {run} -o o --runs r2", ["--runs r2", "'r'"]),
        ("plot training-curve nowhere -o o", ["nowhere"]),
    ],
)
def test_what_does_not_go_together_is_named_and_nothing_is_made(
    words: str,
    facts: list[str],
    synthetic: ModuleType,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for job in ("train.train", "plants.making.make", "plants.written.ship", "plants.lists.ship"):
        monkeypatch.setattr(f"composcope.experiments.organism.{job}", lambda *_, **__: pytest.fail("something is made"))
    run = synthetic.make_run(tmp_path / "r", n=8, probes=())
    assert main(shlex.split(words.format(run=run))) == 1
    said = error_of(capsys)
    assert not [fact for fact in facts if fact.format(run=run) not in said]
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize(
    "words",
    [
        ["build", "synthetic"],
        ["study", "agentcoma", "--model", "organism:none", "--limit", "1"],
        ["study", "validity", "--limit", "1"],
        ["demo"],
        ["paper", "{run}"],
    ],
    ids=" ".join,
)
def test_what_is_no_run_takes_no_run_s_place(
    words: list[str], synthetic: ModuleType, tmp_path: Path, capsys: Capture
) -> None:
    folder = synthetic.make_run(tmp_path / "r", n=6, probes=())
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main([*(word.format(run=folder) for word in words), "--out", str(folder)]) == 1
    assert str(folder) in error_of(capsys)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
