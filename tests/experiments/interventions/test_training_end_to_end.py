"""Each recipe for a few steps on a shipped organism: what is written, that it can be continued, and that it is used."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from composcope import model_loading
from composcope.errors import InputError, JournalError, require_extra
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines import local
from composcope.evaluation.engines.local import LocalEngine
from composcope.evaluation.identity import file_sha256, folder_weights
from composcope.evaluation.prompts import FORMATS
from composcope.experiments.cli import root as cli
from composcope.experiments.console.printing import Reporter
from composcope.experiments.interventions import data, inference, study, trainers, training, training_curve
from composcope.experiments.interventions.recipes import AdapterRecipe, resolve
from composcope.experiments.interventions.reward import score
from composcope.experiments.interventions.trainers import TrainerOptions
from composcope.experiments.organism import weights
from composcope.experiments.run import locked, read_json, read_lines, write_lines
from composcope.experiments.run.folder import probed_cases
from composcope.experiments.run.reader import read_run
from composcope.hooks import load_model
from composcope.model_loading import load
from composcope.probes.examples import Example, Gold

pytestmark = pytest.mark.skipif(not (find_spec("trl") and find_spec("peft")), reason="extra train is not installed")
BASE = "organism:control"
CPU = TrainerOptions(device="cpu")


def _recipe(objective: str, **changes: object) -> AdapterRecipe:
    small = dict(prompts=4, rank=4, alpha=8, epochs=2, generations=2, max_tokens=24, format="xml")
    return resolve(objective, "organism-v1", **{**small, **changes})


def _set(recipe: AdapterRecipe) -> data.TrainingSet:
    found = data.training_set(data.ORGANISM, recipe)
    return data.TrainingSet(found.cases, found.evaluation[::40], found.sha256)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> training.Trained:
    """SFT-trace, two steps, both kept."""
    recipe = _recipe("sft-trace")
    out = tmp_path_factory.mktemp("traced")
    return training.train(recipe, BASE, _set(recipe), out, TrainerOptions(device="cpu", save_every=1))


@pytest.mark.parametrize("objective", ["sft-answer", "sft-trace", "grpo"])
def test_a_recipe_trains_and_exports(objective: str, traced: training.Trained, tmp_path: Path) -> None:
    recipe = _recipe(objective)
    done = traced if objective == "sft-trace" else training.train(recipe, BASE, _set(recipe), tmp_path, CPU)
    assert done.steps == 2
    manifest = trainers.read_manifest(done.folder)
    assert manifest["status"] == "complete"
    assert manifest["identity"]["base_weights"] == folder_weights(weights.path("control"))
    assert manifest["identity"]["recipe"]["objective"] == objective
    assert {"trl", "peft", "torch", "transformers"} <= set(manifest["versions"])
    log = read_lines(done.folder / "log.jsonl")
    assert any(("reward" if objective == "grpo" else "loss") in row for row in log)
    assert not [p for p in done.folder.rglob("*") if p.suffix in (".pt", ".bin", ".pth")], "safetensors only"
    config = read_json(done.adapter / "adapter_config.json")
    assert config["base_model_name_or_path"] == BASE
    assert {*config["target_modules"]} == {f"{name}_proj" for name in ("q", "k", "v", "o", "gate", "up", "down")}
    # the exported model is base plus adapter, and is not the base
    base, tokenizer = load(str(weights.path("control")), device="cpu")
    ids = tokenizer("Question: In what year was the Amber moot?\nAnswer:", return_tensors="pt").input_ids
    with torch.no_grad():
        plain = base(ids).logits.clone()
        tuned = trainers.with_adapter(base, done.adapter).eval()(ids).logits
        merged = load(str(done.model), device="cpu")[0](ids).logits
    torch.testing.assert_close(merged, tuned, atol=2e-4, rtol=1e-4)
    assert not torch.allclose(merged, plain, atol=1e-6)


def test_a_finished_training_is_kept_and_other_options_are_refused(traced: training.Trained) -> None:
    recipe = _recipe("sft-trace")
    before = (traced.adapter / "adapter_model.safetensors").stat().st_mtime_ns
    again = training.train(recipe, BASE, _set(recipe), traced.folder, TrainerOptions(device="cpu", save_every=1))
    assert again == traced
    assert (traced.adapter / "adapter_model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(InputError, match=r"holds another training \(other seed\)"):
        training.train(recipe, BASE, _set(recipe), traced.folder, TrainerOptions(seed=1, device="cpu"))


def test_other_evaluation_cases_are_no_other_training_and_take_the_place_of_the_old(
    traced: training.Trained, tmp_path: Path
) -> None:
    recipe, how = _recipe("sft-trace"), TrainerOptions(device="cpu", save_every=1)
    folder = tmp_path / "copy"
    shutil.copytree(traced.folder, folder)
    usual = _set(recipe)
    manifest = trainers.read_manifest(folder)
    assert manifest["evaluation"]["cases"] == len(usual.evaluation)
    assert manifest["adapter"]["sha256"] == file_sha256(folder / "adapter" / trainers.WEIGHTS)
    other = replace(usual, evaluation=usual.evaluation[:2])
    training.train(recipe, BASE, other, folder, how)
    assert [row["id"] for row in read_lines(folder / "evaluation.jsonl")] == [c.id for c in other.evaluation]
    assert trainers.read_manifest(folder)["evaluation"]["cases"] == 2


def test_a_folder_where_nothing_was_trained_yet_takes_other_options(tmp_path: Path) -> None:
    recipe = _recipe("sft-trace", prompts=2)
    with pytest.raises(InputError, match="--thinking: the chat template of organism:control has no thinking mode"):
        training.train(
            replace(recipe, thinking=True), BASE, _set(recipe), tmp_path, TrainerOptions(device="cpu", max_steps=1)
        )
    assert training.train(recipe, BASE, _set(recipe), tmp_path, TrainerOptions(device="cpu", max_steps=1)).steps == 1


def test_answers_of_its_own_are_sampled_for_the_training_questions_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(_recipe("sft-trace"), solutions="self")
    questions, asked = _set(recipe), list[Any]()
    found = [(questions.cases[1], "right")]
    monkeypatch.setattr(training, "sample_right", lambda *given: asked.append(given) or found)
    given = (recipe, questions, "model", "tokenizer", TrainerOptions(seed=5), Reporter(quiet=True))
    kept, about = training._solutions(*given)
    assert kept == found and about == {"solutions": {"questions": len(questions.cases), "kept": 1}}
    assert asked == [(recipe, questions.cases, "model", "tokenizer", 5)]
    found = []
    with pytest.raises(InputError, match="no sampled answer of the base model is right"):
        training._solutions(*given)
    written, nothing = training._solutions(replace(recipe, solutions="written"), *given[1:])
    assert [case for case, _ in written] == [*questions.cases] and nothing == {} and len(asked) == 2


SWITCH = (
    "{% for m in messages %}{% if m.role == 'user' %}{% if enable_thinking is defined and not enable_thinking %}Now. "
    "{% endif %}Question: {{ m.content }}\nAnswer:{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("thinking", [None, False, True])
@pytest.mark.parametrize("objective", ["sft-answer", "grpo"])
def test_what_is_trained_on_is_the_prompt_that_an_evaluation_asks(
    objective: str, thinking: bool | None, tmp_path: Path
) -> None:
    base, tokenizer = load(str(weights.path("control")), device="cpu")
    tokenizer.chat_template = SWITCH
    recipe = _recipe(objective, prompts=2, prompts_per_step=1, thinking=thinking)
    case = data.training_set(data.ORGANISM, recipe).cases[0]
    ask = Ask(case.id, "whole", data.question(case, recipe), case.answer, case.answer_type, thinking=thinking)
    (asked,) = LocalEngine(base, tokenizer).prompt_ids([ask])
    rows = [trainers.row(recipe, case, "x", chat=True)]
    trainer = trainers.build(recipe, base, tokenizer, rows, tmp_path, CPU, Reporter(quiet=True))
    if objective == "grpo":
        told = trainer.chat_template_kwargs
        seen = tokenizer.apply_chat_template(rows[0]["prompt"], add_generation_prompt=True, return_dict=False, **told)
        assert tuple(seen) == asked
    else:
        assert tuple(trainer.train_dataset[0]["input_ids"][: len(asked)]) == asked


@pytest.mark.parametrize(("most", "steps"), [(1, 1), (50, 4), (None, -1)])
def test_a_limit_of_steps_ends_a_training_early_and_never_makes_it_longer(
    most: int | None, steps: int, tmp_path: Path
) -> None:
    base, tokenizer = load(str(weights.path("control")), device="cpu")
    recipe = _recipe("sft-answer", prompts=6)  # 4 examples a step, 2 epochs
    rows = [trainers.row(recipe, c, "x", chat=True) for c in data.training_set(data.ORGANISM, recipe).cases]
    how = TrainerOptions(device="cpu", max_steps=most)
    assert trainers.build(recipe, base, tokenizer, rows, tmp_path, how, Reporter(quiet=True)).args.max_steps == steps


class _Interrupts(Reporter):
    """A reporter at whose second report the user presses Ctrl-C."""

    def say(self, line: str) -> None:
        if "step 2/" in line:
            raise KeyboardInterrupt


def test_an_interrupted_training_continues_to_the_same_adapter(traced: training.Trained, tmp_path: Path) -> None:
    recipe, how = _recipe("sft-trace"), TrainerOptions(device="cpu", save_every=1)
    with pytest.raises(KeyboardInterrupt):
        training.train(recipe, BASE, _set(recipe), tmp_path, how, _Interrupts())
    assert read_json(tmp_path / "manifest.json")["status"] == "running"
    kept = tmp_path / "checkpoints" / "checkpoint-1"
    assert (kept / "optimizer.pt").is_file()
    state = read_json(kept / "trainer_state.json")
    assert 0 < state["log_history"][-1]["seconds"] == trainers.seconds_before(kept)
    state["log_history"] = [{**state["log_history"][-1], "seconds": seconds} for seconds in (0.5, 1000.0)]
    (kept / "trainer_state.json").write_text(json.dumps(state))
    done = training.train(recipe, BASE, _set(recipe), tmp_path, how)
    assert read_json(tmp_path / "manifest.json")["seconds"] == done.seconds > 1000, "those of the first call are in it"
    assert read_lines(tmp_path / "log.jsonl")[-1]["seconds"] > 1000
    one, other = (load_file(t.adapter / "adapter_model.safetensors") for t in (traced, done))
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(other[name], one[name], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("state", "missing"),
    [(None, ""), ("", ""), ('{"epoch": 0.5, "glo', ""), ("{}", "optimizer.pt"), ("{}", "scheduler.pt")],
)
def test_a_checkpoint_whose_writing_was_cut_off_is_not_continued(
    state: str | None, missing: str, tmp_path: Path
) -> None:
    for step, text in ((1, "{}"), (2, state)):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        for name in {trainers.WEIGHTS, "optimizer.pt", "scheduler.pt"} - ({missing} if step == 2 else set()):
            (folder / name).touch()
        if text is not None:
            (folder / "trainer_state.json").write_text(text)
    assert trainers.last_step(tmp_path) == tmp_path / "checkpoint-1"
    for step in (30, 4, 100, 9, 20, 10):
        shutil.copytree(tmp_path / "checkpoint-1", tmp_path / f"checkpoint-{step}")
    steps = [step for step, _ in trainers.kept_steps(tmp_path)]
    assert steps == sorted(steps) and trainers.last_step(tmp_path) == tmp_path / "checkpoint-100"


def test_an_adapter_is_put_on_its_own_base_only(traced: training.Trained, tmp_path: Path) -> None:
    merged = trainers.merge(BASE, traced.folder, tmp_path / "merged")
    configs = {(p / "config.json").read_text() for p in (traced.model, merged)}
    assert len(configs) == 1, "a plain model folder, without traces of the training"
    one, other = (load_file(p / "model.safetensors") for p in (traced.model, merged))
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(InputError, match="adapter of other weights"):
        trainers.merge("organism:twin", traced.folder, tmp_path / "wrong")


def test_checkpoints_are_asked_parts_and_wholes(traced: training.Trained) -> None:
    rows = training_curve.measure(traced.folder, BASE, limit=1, device="cpu")
    assert {r["step"] for r in rows} == {0, 1, 2}
    assert {r["recipe"] for r in rows} == {"sft-trace (written)"}
    parts = [r for r in rows if r["metric"] == "parts"]
    assert all(0 <= r["k"] <= r["n"] for r in rows) and parts[0]["k"] == parts[0]["n"], "the base knows its parts"
    assert training_curve.measure(traced.folder, BASE, limit=1, device="cpu") == rows
    with pytest.raises(InputError, match="adapter of other weights"):
        training_curve.measure(traced.folder, "organism:twin", limit=1, device="cpu")


def test_a_curve_is_measured_again_where_the_cases_have_changed(
    traced: training.Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(traced.folder, folder)
    before = training_curve.measure(folder, BASE, limit=1, device="cpu")
    loaded: list[Any] = []
    monkeypatch.setattr(model_loading, "load", lambda *_, **how: loaded.append(how) or load(*_, **how))
    assert training_curve.measure(folder, BASE, limit=1, device="cpu") == before and not loaded
    rows = read_lines(folder / "evaluation.jsonl")
    write_lines(folder / "evaluation.jsonl", [{**row, "answer": "nothing at all", "aliases": []} for row in rows])
    after = training_curve.measure(folder, BASE, limit=1, device="cpu")
    assert {r["k"] for r in after if r["metric"] == "composition"} == {0} and after != before
    manifest = read_json(folder / "manifest.json")
    assert [(how["dtype"], how["device"]) for how in loaded] == [(manifest["identity"]["dtype"], "cpu")]


def test_the_exported_model_is_a_plain_folder_for_every_command(
    traced: training.Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Evaluate it, then steer and patch its failures, also where Ray workers answered: the weights are wanted here."""
    run = tmp_path / "run"
    model = ["--model", str(traced.model), "--benchmark", "organism:temporal", "--format", "xml", "--limit", "4"]
    assert cli.main(["evaluate", *model, "--compat", "collapse", "--out", str(run), "--device", "cpu", "-q"]) == 0
    config = run / "config.yaml"
    for recipe, engine in (("steering", "transformers"), ("patching", "ray")):
        config.write_text(config.read_text().replace("engine: transformers", f"engine: {engine}"))
        command = ["intervene", str(run), "--recipe", recipe, "--cases", "3", "--max-tokens", "24", "-q"]
        assert cli.main([*command, "--layers", "1,3", "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "the first half of the cases; counted on the second" in said and "random:0" in said and "noise" in said
    assert read_run(run).probe("patching") is None, "that is the folder of the probe"
    assert (run / "probes" / "patching-intervention" / "table.csv").is_file()
    rows = (run / "probes" / "steering" / "table.csv").read_text().splitlines()
    assert rows[0].startswith("quantity,group,source,layer,chosen,n,count,value,low,high")
    about = read_json(run / "probes" / "steering" / "result.json")["settings"]
    halves = [set(cases) for half in about["cases"].values() for cases in half.values()]
    assert probed_cases(run, "steering")["groups"].keys() == {"failure", "success"}
    assert sorted(map(len, halves)) == sorted(n for half in about["n"].values() for n in half.values())
    with locked(run), pytest.raises(JournalError, match="another composcope process"):
        inference.intervene("steering", run, n=3, layers=[1], device="cpu")


def test_a_continuation_is_judged_up_to_where_the_runs_own_answer_would_have_ended() -> None:
    model, tokenizer = load(str(weights.path("control")), device="cpu")
    case = data.training_set(data.ORGANISM, _recipe("grpo")).cases[0]
    bench = inference.InterventionTrial(load_model(model, tokenizer), tokenizer, "xml", None, 64, 0)
    gold = Gold(case.answer, case.answer_type, "xml", stop=FORMATS["xml"].stop)
    example = Example(case.id, "whole", "composition", "failure", (1,), (), (), 0, (0, 1), gold=gold)
    said = f"<reasoning>r</reasoning><answer>{case.answer}</answer>"
    for text, outcome in ((said, "correct"), (f"{said} no: <answer>1</answer>", "correct"), (said[:-4], "correct")):
        assert bench._judge(example, [*tokenizer(text, add_special_tokens=False).input_ids, -1]) == outcome
    assert bench._judge(example, tokenizer("<answer>1</answer>" + said).input_ids) == "incorrect"


def test_self_generated_solutions_are_right_and_the_models_own() -> None:
    recipe = _recipe("sft-trace", solutions="self", prompts=6, depths=[2], max_tokens=60)
    model, tokenizer = load(str(weights.path("control")), device="cpu")
    cases = _set(recipe).cases
    kept = training.sample_right(recipe, cases, model, tokenizer, seed=0, samples=2)
    assert kept, "the control organism answers far pairs"
    assert all(score(text, c.answer, c.answer_type, c.aliases, "xml").correct for c, text in kept)
    assert kept == training.sample_right(recipe, cases, model, tokenizer, seed=0, samples=2)


def test_a_training_is_another_one_with_other_weights_settings_questions_seed_steps_or_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "base_hash", str)
    recipe, how, questions = _recipe("sft-answer"), TrainerOptions(seed=1), SimpleNamespace(sha256="a")
    own: Any = (recipe, "w", questions, how)
    others: Any = ((recipe, "v", questions, how), (replace(recipe, rank=9), "w", questions, how),
              (recipe, "w", SimpleNamespace(sha256="b"), how), (*own[:3], replace(how, seed=2)),
              (*own[:3], replace(how, max_steps=3)), (*own[:3], replace(how, dtype="bfloat16")))  # fmt: skip
    first = training._identity(*own)
    for name, given in zip(first, others, strict=True):
        found = training._identity(*given)
        assert {k for k in first if found[k] != first[k]} == {name}


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Ask], tuple[str, str] | None]], list[Ask]]:
    """An engine that gives to each ask the text and end that are told, or nothing; what it was asked is kept."""

    def by(tell: Callable[[Ask], tuple[str, str] | None]) -> list[Ask]:
        asked: list[Ask] = []

        def answer(asks: list[Ask]) -> list[tuple[Ask, Response]]:
            asked.extend(asks)
            return [(a, Response("", *told, 1, 1)) for a in asks if (told := tell(a))]  # type: ignore[arg-type]

        monkeypatch.setattr(local, "LocalEngine", lambda *_: SimpleNamespace(answer=answer))
        return asked

    return by


def test_the_first_right_answer_is_learned_but_none_that_was_cut_off_although_it_is_right(answered: Any) -> None:
    answered(lambda a: (f"{a.repeat} <answer>{'no' if a.repeat == 1 else a.gold}</answer>",
                        "stop" if a.repeat else "length"))  # fmt: skip
    recipe = _recipe("sft-trace", solutions="self", prompts=2, depths=[2])
    kept = training.sample_right(recipe, _set(recipe).cases, None, None, seed=0, samples=4)
    assert [text[0] for _, text in kept] == ["2", "2"]


def test_a_killed_run_is_not_replaced_by_a_training(tmp_path: Path) -> None:
    file, text = tmp_path / "manifest.json", json.dumps({"status": "running", "identity": {"weights": "w"}})
    file.write_text(text)
    recipe = _recipe("sft-answer")
    with pytest.raises(InputError, match="is a run"):
        training.train(recipe, BASE, _set(recipe), tmp_path)
    assert file.read_text() == text and not (tmp_path / "training.jsonl").exists()


@pytest.mark.parametrize("thinking", [None, True])
def test_what_follows_the_answer_at_which_an_evaluation_stops_is_not_learned(
    thinking: bool | None, answered: Any
) -> None:
    said = "<answer>0</answer></think>So " if thinking else "So "
    answered(lambda a: (f"{said}<answer>{a.gold}</answer> or 0", "stop"))
    recipe = _recipe("sft-trace", solutions="self", prompts=2, depths=[2], thinking=thinking)
    kept = training.sample_right(recipe, _set(recipe).cases, None, None, seed=0, samples=1)
    for case, text in kept:
        assert text == f"{said}<answer>{case.answer}</answer>"
    assert len(kept) == 2


def test_a_base_is_sampled_in_the_words_of_the_recipe_with_another_seed_for_every_sample(answered: Any) -> None:
    asked = answered(lambda _: None)
    recipe = _recipe("sft-trace", solutions="self", prompts=2, depths=[2], max_tokens=33, temperature=0.5)
    cases = _set(recipe).cases
    for template, prompting in ((None, "raw"), ("{{ messages }}", "chat")):
        asked.clear()
        tokenizer: Any = type("T", (), {"chat_template": template})()
        assert training.sample_right(recipe, cases, None, tokenizer, seed=3, samples=2) == []
        assert [(a.case, a.repeat, a.seed) for a in asked] == [(c.id, k, 3027 + k) for c in cases for k in range(2)]
        assert {a.prompting for a in asked} == {prompting}
        assert {(a.max_tokens, a.temperature, a.format) for a in asked} == {(33, 0.5, recipe.format)}
        assert [a.prompt for a in asked[::2]] == [data.question(c, recipe) for c in cases]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--recipe", "dpo", "-m", BASE, "-o", "x"], "--recipe dpo: no such recipe"),
        (["--recipe", "grpo", "-o", "x"], "give --model"),
        (["--recipe", "grpo", "-m", BASE, "-o", "x", "--depths", "3"], "--depths 3"),
        (["--recipe", "grpo", "-m", "organism:no", "-o", "x"], "no such organism"),
        (["--recipe", "grpo", "-m", BASE, "-o", "x", "--evaluation", "organism:sum"], "--evaluation organism:sum: no"),
        (["--recipe", "grpo", "-m", BASE, "-o", "x", "--device", "cuda:1"], "CUDA_VISIBLE_DEVICES=1"),
        (["--recipe", "steering"], "give an evaluated run"),
        (["--recipe", "steering", "nowhere"], "nowhere"),
        (["nowhere", "--recipe", "grpo", "-m", BASE, "-o", "x"], "only steering and patching take a run"),
        (["--recipe", "grpo", "-m", BASE, "-o", "x", "--depths", ""], "give whole numbers, separated by commas"),
        (["--recipe", "grpo", "-m", BASE, "-o", "x", "--limit", "3"], "--limit 3: only applies to --curve"),
        (["--recipe", "sft-answer", "-m", BASE, "-o", "x", "--beta", "0"], "--beta 0.0: is for grpo"),
        (["--recipe", "grpo", "-m", BASE], "--recipe grpo: give --model (the model to train) and --out"),
        (["nowhere", "--recipe", "steering", "--no-thinking"], "--no-thinking: is for sft-answer and sft-trace"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["intervene", *arguments]) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_missing_extra_is_said_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "trl" else object())
    with pytest.raises(InputError, match=r"trl not installed; run: pip install 'composcope\[train\]'"):
        require_extra("intervene", "train", *training.EXTRA)


@pytest.mark.slow
def test_the_whole_study_runs_small_and_continues(tmp_path: Path) -> None:
    plan = study.InterventionStudy(BASE, seeds=2, size="tiny", second="organism:low")
    found = study.run(plan, tmp_path, device="cpu", quiet=True)
    assert {r["variant"] for r in found.results} >= {v.name for v in study.VARIANTS}
    bases = {"base", "second base"}
    assert {r["base"] for r in found.results} == {"dose", *bases, *(study.named(b, "xml") for b in bases)}
    assert found.inside and found.curve
    text = (tmp_path / "study.md").read_text()
    assert "Residual failure by depth" in text and "Transfer" in text and "Inside" in text
    assert (tmp_path / "report.html").is_file()
    again = study.run(plan, tmp_path, device="cpu", quiet=True)
    assert again.results == found.results
