"""What was asked for reaches the training itself, the checkpoints that are asked, and the intervention on a run."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case, Part, case_to_dict
from composcope.evaluation.graded import Graded
from composcope.experiments.console.printing import Reporter
from composcope.experiments.interventions import training, training_curve
from composcope.experiments.interventions.data import TrainingSet
from composcope.experiments.interventions.recipes import resolve
from composcope.experiments.interventions.trainers import TrainerOptions
from composcope.experiments.run import read_json, read_lines, write_json, write_lines


@pytest.mark.parametrize("last", [None, "checkpoint-3"])
def test_a_training_has_the_base_as_asked_for_and_goes_on_from_its_last_checkpoint(
    last: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = SimpleNamespace(pad_token_id=None, pad_token=None, eos_token="<end>", chat_template="t")
    sizes = ((3, True), (40, False), (5, True))
    weights = [SimpleNamespace(numel=lambda n=n: n, requires_grad=learns) for n, learns in sizes]
    state = SimpleNamespace(log_history=[{"loss": 1.0}], global_step=6)
    done: dict[str, Any] = {}
    trainer = SimpleNamespace(
        train=lambda resume_from_checkpoint: done.update(resumed=resume_from_checkpoint),
        state=state, model=SimpleNamespace(parameters=lambda: weights),
    )  # fmt: skip
    monkeypatch.setattr(
        "composcope.model_loading.load", lambda at, **how: done.update(loaded=(at, how)) or ("base", tokenizer)
    )
    monkeypatch.setattr("composcope.hooks.numerics.numerics", lambda model: {"of": model})
    monkeypatch.setattr(training, "_check_thinking", lambda *given: done.update(checked=given))
    monkeypatch.setattr(training, "_solutions", lambda *given: ([("case", "text")], {"solutions": given}))
    monkeypatch.setattr(training, "row", lambda *given: given)
    monkeypatch.setattr(training, "build", lambda *given: done.update(built=given) or trainer)
    monkeypatch.setattr(training, "last_step", lambda folder: last and folder / last)
    monkeypatch.setattr(training, "seconds_before", lambda at: (at and at.name, 7.5))
    monkeypatch.setattr(training, "export", lambda *given: done.update(exported=given))
    monkeypatch.setattr(training, "prune", lambda at, keep_last: done.update(pruned=(at, keep_last)))
    monkeypatch.setattr(training, "file_sha256", lambda path: f"sha of {path.relative_to(tmp_path)}")
    how, reporter = TrainerOptions(seed=4, dtype="bfloat16", device="cuda"), Reporter(quiet=True)
    recipe: Any = "recipe"
    data: Any = "data"
    found = training._run(recipe, SimpleNamespace(location="at", name="named"), data, tmp_path, how, reporter)  # type: ignore[arg-type]
    assert done["loaded"] == ("at", {"dtype": "bfloat16", "device": "cuda"})
    assert (tokenizer.pad_token, tokenizer.padding_side) == ("<end>", "left")
    assert done["checked"] == ("recipe", tokenizer, "named")
    rows = [("recipe", "case", "text", True)]
    assert done["built"] == ("recipe", "base", tokenizer, rows, tmp_path, how, reporter)
    assert done["resumed"] == (last and str(tmp_path / "checkpoints" / last))
    assert [row["loss"] for row in read_lines(tmp_path / "log.jsonl")] == [1.0]
    assert done["exported"] == (trainer.model, tokenizer, tmp_path, "named")
    assert done["pruned"] == (tmp_path / "checkpoints", False)
    assert found == {
        "solutions": ("recipe", "data", "base", tokenizer, how, reporter), "steps": 6, "seconds_before": (last, 7.5),
        "adapter": {"sha256": "sha of adapter/adapter_model.safetensors", "parameters": 8}, "numerics": {"of": "base"},
    }  # fmt: skip


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Trainings that take no time: the manifest of each when it began."""
    found: list[dict[str, Any]] = []

    def train(recipe: Any, source: Any, data: Any, folder: Path, how: Any, reporter: Any) -> dict[str, Any]:
        found.append(read_json(folder / "manifest.json"))
        return {"steps": 3, "seconds_before": 5.0, "adapter": {"sha256": "a"}}

    monkeypatch.setattr(training, "require_extra", lambda *_: None)
    monkeypatch.setattr(training, "resolve_model", lambda name: SimpleNamespace(location=f"at/{name}", name=name))
    monkeypatch.setattr(training, "base_hash", lambda location: f"weights {location}")
    monkeypatch.setattr(training, "_run", train)
    return found


CASES = tuple(Case(name, f"q{name}", "1", (Part("p", "1"),), depth=depth) for name, depth in (("a", 2), ("b", 4)))


def test_the_folder_of_a_training_says_what_it_was_made_from_with_what_and_how(
    ran: list[dict[str, Any]], tmp_path: Path
) -> None:
    recipe, how = resolve("sft-answer", "organism-v1"), TrainerOptions(seed=4, dtype="bfloat16", max_steps=9)
    done = training.train(recipe, "m", TrainingSet(CASES[:1], CASES[1:], "sha"), tmp_path, how)
    assert (done.steps, done.seconds >= 5.0, done.model) == (3, True, tmp_path / "model")
    for name, kept in (("training", "a"), ("evaluation", "b")):
        assert [row["id"] for row in read_lines(tmp_path / f"{name}.jsonl")] == [kept]
    manifest = read_json(tmp_path / "manifest.json")
    [begun] = ran
    assert (begun["status"], manifest["status"]) == ("running", "complete")
    own = {"steps", "adapter", "seconds", "status"}
    assert {k: v for k, v in manifest.items() if k not in own} == {k: v for k, v in begun.items() if k != "status"}
    assert manifest["identity"] == {
        "base_weights": "weights at/m", "recipe": recipe.to_dict(), "data": "sha", "seed": 4, "max_steps": 9,
        "dtype": "bfloat16",
    }  # fmt: skip
    assert (manifest["base"], manifest["recipe"]) == ("m", recipe.to_dict())
    about = {name: {"cases": 1, "by_depth": {depth: 1}} for name, depth in (("training", "2"), ("evaluation", "4"))}
    assert {name: {k: manifest[name][k] for k in about[name]} for name in about} == about
    assert manifest["training"]["sha256"] != manifest["evaluation"]["sha256"]
    assert {"version", "source"} <= manifest["composcope"].keys() and manifest["machine"]
    assert {"torch", "trl", "peft", "datasets", "accelerate"} <= manifest["versions"].keys()
    assert (manifest["steps"], manifest["seconds"], manifest["adapter"]) == (3, done.seconds, {"sha256": "a"})


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_training_that_was_interrupted_is_not_continued_as_another_one(
    checkpoints: bool, ran: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, data = resolve("sft-answer", "organism-v1"), TrainingSet(CASES[:1], CASES[1:], "sha")
    training.train(recipe, "m", data, tmp_path, TrainerOptions(seed=1))
    write_json(tmp_path / "manifest.json", {**ran[0], "status": "running"})
    monkeypatch.setattr(training, "kept_steps", lambda folder: [(1, folder / "checkpoint-1")] * checkpoints)
    with pytest.raises(InputError, match=r"another training \(other seed\)") if checkpoints else nullcontext():
        training.train(recipe, "m", data, tmp_path, TrainerOptions(seed=2))
    assert len(ran) == 2 - checkpoints
    known = {k: v for k, v in ran[0]["identity"].items() if k != "dtype"}  # of a version that did not write it
    write_json(tmp_path / "manifest.json", {**ran[0], "identity": {**known, "seed": 1}, "status": "complete"})
    with pytest.raises(InputError, match=r"another training \(other dtype\)"):
        training.train(recipe, "m", data, tmp_path, TrainerOptions(seed=1, dtype="float32"))


@pytest.mark.parametrize(("template", "thinking"), [(None, None), ("t", None), ("t", True), ("t", False)])
def test_a_checkpoint_is_asked_as_its_recipe_trains(
    template: str | None, thinking: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, asked = [Case("c", "q", "1", (Part("p", "1"),), depth=4)], list[Any]()

    def evaluate(*given: Any, grade: Any) -> Any:
        asked.append((*given, grade.keywords))
        return SimpleNamespace(graded=[Graded.from_dict({"case": "c", "role": "whole", "outcome": "correct"}, "row")])

    monkeypatch.setattr("composcope.evaluation.pipeline.evaluate", evaluate)
    monkeypatch.setattr("composcope.evaluation.engines.local.LocalEngine", lambda *given: given)
    recipe = {"objective": "sft-trace", "solutions": "self", "format": "xml", "depths": [2]}
    recipe |= {} if thinking is None else {"thinking": thinking}
    manifest: dict[str, Any] = {"recipe": recipe, "identity": {"seed": 3}}
    tokenizer = SimpleNamespace(chat_template=template)
    rows = training_curve._ask("model", tokenizer, cases, manifest, tmp_path, 8)
    [(given, protocol, engine, journal, graded)] = asked
    assert given is cases and engine == ("model", tokenizer) and graded == {"compat": "collapse"}
    how = protocol.how
    assert (how.thinking, how.prompting) == (thinking, "chat" if template else "raw")
    assert {a.format for a in protocol.asks(cases[0], {}) if a.role == "whole"} == {"xml"}
    assert journal.folder == tmp_path / "curve" / "step-8"
    about = {"run": tmp_path.name, "recipe": "sft-trace (self)", "seed": 3, "step": 8, "k": 1, "n": 1}
    assert rows == [{**about, "metric": name} for name in ("composition", "composition, held-out depths")]


def test_a_curve_asks_the_first_cases_of_each_family_and_depth_each_part_in_one_wording(tmp_path: Path) -> None:
    part = Part("p", "1", paraphrases=("other words",))
    about = [("a", "f", 2), ("b", "f", 2), ("c", "f", 4), ("d", "g", 2), ("e", "f", 2)]
    cases = [Case(name, "q", "1", (part, part), family=family, depth=depth) for name, family, depth in about]
    write_lines(tmp_path / "evaluation.jsonl", map(case_to_dict, cases))
    for limit, kept in ((None, "abcde"), (1, "acd"), (2, "abcd")):
        found = training_curve._cases(tmp_path, limit)
        assert [c.id for c in found] == [*kept]
        assert {p.paraphrases for c in found for p in c.parts} == {()}


def test_a_curve_has_the_base_and_every_checkpoint_and_is_measured_again_where_one_came_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, loaded, asked = [(8, tmp_path / "c8")], list[Any](), list[Any]()

    def ask(model: Any, tokenizer: Any, cases: Any, manifest: Any, folder: Path, step: int) -> list[dict[str, Any]]:
        asked.append((step, model))
        assert (tokenizer, cases, manifest, folder) == ("words", CASES, made, tmp_path)
        return [{"step": step, "metric": "parts", "k": 1, "n": 2}]

    def adapted(base: Any, path: Path) -> Any:
        tuned = SimpleNamespace(eval=lambda: f"{base} with {path.name}")
        return SimpleNamespace(base_model=SimpleNamespace(model=tuned), unload=lambda: base)

    made = {"identity": {"base_weights": "w", "dtype": "bfloat16"}}
    monkeypatch.setattr(training_curve, "read_manifest", lambda folder: made)
    monkeypatch.setattr(training_curve, "resolve_model", lambda name: SimpleNamespace(location=f"at/{name}"))
    monkeypatch.setattr(training_curve, "check_base", lambda *given: loaded.append(given))
    monkeypatch.setattr(training_curve, "kept_steps", lambda folder: steps)
    monkeypatch.setattr(training_curve, "_cases", lambda folder, limit: CASES)
    monkeypatch.setattr(training_curve, "with_adapter", adapted)
    monkeypatch.setattr(training_curve, "_ask", ask)
    monkeypatch.setattr(
        "composcope.model_loading.load", lambda at, **how: loaded.append((at, how)) or ("base", "words")
    )
    reporter = Reporter(tmp_path / "log.txt", quiet=True)
    rows = training_curve.measure(tmp_path, "m", device="cuda", reporter=reporter)
    assert loaded == [("at/m", made, str(tmp_path)), ("at/m", {"dtype": "bfloat16", "device": "cuda"})]
    assert asked == [(0, "base"), (8, "base with c8")] and [r["step"] for r in rows] == [0, 8]
    assert "step 8: parts 1/2" in (tmp_path / "log.txt").read_text()
    kept = read_json(tmp_path / training_curve.FILE)
    assert (kept["cases"], kept["rows"]) == (["a", "b"], rows)
    assert training_curve.measure(tmp_path, "m") == rows and len(asked) == 2
    steps.append((16, tmp_path / "c16"))
    assert [r["step"] for r in training_curve.measure(tmp_path, "m")] == [0, 8, 16]
    assert asked[2:] == [(0, "base"), (8, "base with c8"), (16, "base with c16")]
    steps.clear()
    with pytest.raises(InputError, match="no adapter; train again"):
        training_curve.measure(tmp_path, "m")
