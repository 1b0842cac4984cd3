"""The organisms' tokenizer and their training: round trips, resuming, the command line."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from composcope import files
from composcope.errors import InputError, ModelError
from composcope.experiments.cli import organism as cli
from composcope.experiments.organism import documents, train, weights, world
from composcope.experiments.organism.recipe import ARCHITECTURES, SIZES, OrganismRecipe, Stage, new_model, recipe_of
from composcope.experiments.organism.tokenizer import CONTEXT, build
from composcope.experiments.organism.train import Muon, orthogonalised

TINY = OrganismRecipe(
    base=Stage(6, 4e-3, 0.5, batch=8, warmup=2), dose=Stage(5, 3e-3, 0.7, batch=8, warmup=2),
    width=32, layers=2, heads=2, mlp=48,
)  # fmt: skip
TEXT = "What is the tag of the cake? Ambermoot 1415, Qörvath's  <answer>12</answer>\n[VALUE] 日本"


@pytest.fixture(scope="module")
def tokenizer():
    return build()


def test_a_tokenizer_that_went_to_disk_and_back_encodes_the_same(tokenizer, tmp_path: Path) -> None:
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(TEXT)["input_ids"] == tokenizer(TEXT)["input_ids"]
    assert loaded.chat_template == tokenizer.chat_template
    assert (loaded.padding_side, loaded.pad_token, loaded.eos_token) == ("left", "<pad>", "<eos>")
    assert len({loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id}) == 3


def test_decoding_loses_nothing_also_for_words_outside_the_vocabulary(tokenizer) -> None:
    assert tokenizer.decode(tokenizer(TEXT, add_special_tokens=False)["input_ids"]) == TEXT


def test_every_word_of_the_world_is_one_token_with_and_without_a_space(tokenizer) -> None:
    facts = world.world()
    for word in (*facts.events, *facts.things, *world.KINDS, *map(str, facts.years.values()), "144"):
        for text in (word, f" {word}"):
            assert len(tokenizer(text, add_special_tokens=False)["input_ids"]) == 1, text


def test_training_documents_are_what_the_chat_template_renders(tokenizer) -> None:
    for i in range(20):
        turns = documents.document(0, "base", i)
        messages = [
            {"role": role, "content": text}
            for user, assistant in turns
            for role, text in (("user", user), ("assistant", assistant))
        ]
        ((ids, answered),) = train.encode(tokenizer, [turns])
        assert ids == tokenizer.apply_chat_template(messages, return_dict=False)
        prompt = tokenizer.apply_chat_template(messages[:1], add_generation_prompt=True, return_dict=False)
        assert ids[: len(prompt)] == prompt and answered.index(True) == len(prompt)


def test_documents_of_every_dose_fit_the_context(tokenizer) -> None:
    turns = [documents.document(0, "dose", i, documents.DOSES["twin"]) for i in range(1500)]
    assert max(len(ids) for ids, _ in train.encode(tokenizer, turns)) <= CONTEXT


def test_a_killed_training_continues_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train.train("low", 3, tmp_path / "whole", TINY, "cpu")
    monkeypatch.setattr(train, "EVERY", 2)

    def kill(name: str, step: int, total: int, loss: float) -> None:
        if name == "low":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train.train("low", 3, tmp_path / "cut", TINY, "cpu", progress=kill)
    folder = tmp_path / "cut" / "seed-3" / "low"
    assert (folder / "checkpoint.safetensors").is_file() and not (folder / "model").exists()
    resumed = train.train("low", 3, tmp_path / "cut", TINY, "cpu")
    first, second = load_file(whole / "model.safetensors"), load_file(resumed / "model.safetensors")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_stage_is_kept_at_every_so_many_steps_and_at_its_end(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    monkeypatch.setattr(train, "save_checkpoint", lambda folder, step, *_: kept.append(step))
    monkeypatch.setattr(train, "EVERY", 2)
    train.run_stage("base", tmp_path, replace(TINY.base, steps=5), train.new_model(TINY, tokenizer, 0), tokenizer, 0,
                    None)  # fmt: skip
    assert kept == [2, 4, 5]
    assert [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == [5]


def test_a_stage_that_continues_has_each_step_once_in_its_log(tokenizer: Any, tmp_path: Path) -> None:
    def trained(steps: int) -> list[int]:
        model = train.new_model(TINY, tokenizer, 0)
        train.run_stage("base", tmp_path, replace(TINY.base, steps=steps), model, tokenizer, 0, None)
        return [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]

    assert trained(2) == [2]
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"step": 3, "loss": 1.0}\n{"step": 4, "lo')  # killed after the checkpoint, while it wrote a line
    assert trained(5) == [2, 5] == trained(5)


def test_every_step_has_the_rate_of_its_place_in_the_stage_also_where_it_continues(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[float] = []
    monkeypatch.setattr(train, "_step", lambda opts, at, loss: taken.append(at) or 1.0)
    stage = Stage(6, 0.8, 0.5, warmup=2, batch=2)
    for steps in (3, 6):
        model = train.new_model(TINY, tokenizer, 0)
        train.run_stage("base", tmp_path, replace(stage, steps=steps), model, tokenizer, 0, None)
    short = replace(stage, steps=3)
    assert taken == [train.rate(of, i) for i, of in enumerate([short] * 3 + [stage] * 3)]
    assert len({*taken}) > 3


def test_both_stages_of_a_training_begin_with_what_was_asked_for(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []

    def stage(
        name: str, folder: Path, of: Any, model: Any, tokenizer: Any, seed: int, dose: Any, progress: Any, *more: Any
    ) -> None:
        begun.append((name, folder, of, seed, dose, progress, *more))

    said = lambda *_: None  # noqa: E731
    monkeypatch.setattr(train, "run_stage", stage)
    for dose, curriculum in (("low", train.FIRST), ("crossed-deep", train.SECOND)):
        begun.clear()
        made = train.train(dose, 3, tmp_path / dose, TINY, "cpu", said)
        home, rest = tmp_path / dose / "seed-3", (said, curriculum)
        assert made == home / dose / "model"
        assert begun == [("base", home / "base", TINY.base, 3, None, *rest),
                         (dose, home / dose, TINY.dose, 3, curriculum.doses[dose], *rest)]  # fmt: skip
        kept, first = load_file(made / "model.safetensors"), train.new_model(TINY, tokenizer, 3).state_dict()
        assert kept and all(torch.equal(kept[name], first[name].to(kept[name].dtype)) for name in kept)
        about = json.loads((made / "organism.json").read_text())
        assert about == {"dose": dose, "seed": 3, "recipe": TINY.record(), "device": "cpu",
                         "documents": curriculum.fingerprint(3)}  # fmt: skip


def test_seeds_and_doses_give_different_weights_and_a_seed_the_same(tmp_path: Path) -> None:
    def weights(dose: str, seed: int, out: str) -> torch.Tensor:
        return load_file(train.train(dose, seed, tmp_path / out, TINY, "cpu") / "model.safetensors")[
            "model.norm.weight"
        ]

    first = weights("twin", 0, "a")
    assert torch.equal(first, weights("twin", 0, "b"))
    assert not torch.equal(first, weights("none", 0, "a"))
    assert not torch.equal(first, weights("twin", 1, "a"))


def test_answer_tokens_weigh_1_prompt_tokens_less_and_padding_nothing() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 5)

    class Fixed:
        def __call__(self, **_: object) -> SimpleNamespace:
            return SimpleNamespace(logits=logits)

    ids = torch.tensor([[1, 2, 3, 4], [2, 0, 1, -1]])
    answered = torch.tensor([[False, False, True, True], [False, True, True, False]])
    total = weights = 0.0
    for row in range(2):
        for at in range(1, 4):
            if ids[row, at] >= 0:
                weight = 1.0 if answered[row, at] else 0.1
                total += weight * -float(logits[row, at - 1].log_softmax(-1)[ids[row, at]])
                weights += weight
    model: Any = Fixed()
    assert float(train.loss_of(model, ids, answered, 0.1)) == pytest.approx(total / weights, rel=1e-5)


def test_the_learning_rate_warms_up_stays_and_falls_to_its_share() -> None:
    stage = Stage(100, 2.0, 0.5, final=0.25, warmup=10)
    found = {step: train.rate(stage, step) for step in (0, 9, 50, 75, 100)}
    assert found == pytest.approx({0: 0.2, 9: 2.0, 50: 2.0, 75: 1.25, 100: 0.5})


def test_the_seed_decides_the_first_weights(tokenizer) -> None:
    first, second, again = (new_model(TINY, tokenizer, seed).model.embed_tokens.weight for seed in (0, 1, 0))
    assert torch.equal(first, again) and not torch.equal(first, second)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_trains_all_its_weights_and_loads_under_its_own_name(
    architecture: str, tokenizer, tmp_path: Path
) -> None:
    recipe = replace(TINY, architecture=architecture)
    folder = train.train("twin", 1, tmp_path, recipe, "cpu")
    first, trained = new_model(recipe, tokenizer, 1), AutoModelForCausalLM.from_pretrained(folder)
    assert trained.config.model_type == architecture and trained.config.architectures == [type(first).__name__]
    after = dict(trained.named_parameters())
    assert [n for n, p in first.named_parameters() if torch.equal(p, after[n])] == []
    muon, adam = ({id(p) for g in o.param_groups for p in g["params"]} for o in train.optimizers(first, 1e-3))
    assert id(first.get_input_embeddings().weight) in adam and muon.isdisjoint(adam)
    assert len(muon) == {"gpt2": 4, "llama": 7, "qwen3": 7}[architecture] * recipe.layers
    about = json.loads((folder / "organism.json").read_text())["recipe"]
    assert about.get("architecture", "llama") == architecture


def test_the_architectures_are_of_one_size(tokenizer) -> None:
    sizes = [new_model(OrganismRecipe(architecture=name), tokenizer, 0).num_parameters() for name in ARCHITECTURES]
    assert min(sizes) > 900_000 and max(sizes) < 1.07 * min(sizes)


@pytest.mark.parametrize("size", SIZES)
def test_a_size_has_about_the_parameters_of_its_name(tokenizer, size: str) -> None:
    parameters = new_model(recipe_of("crossed-none", size), tokenizer, 0).num_parameters()
    assert parameters == pytest.approx(float(size.removesuffix("M")) * 1e6, rel=0.05)


def test_a_recipe_of_the_smallest_size_is_that_of_the_shipped_weights() -> None:
    for dose in ("control", "crossed-both"):
        shipped = json.loads((weights.path(dose) / "organism.json").read_text())["recipe"]
        assert recipe_of(dose).record() == shipped


def test_a_larger_size_has_the_same_steps_at_rates_that_fall_as_the_root_of_the_width() -> None:
    small, large = recipe_of("crossed-none"), recipe_of("crossed-none", "30M")
    for a, b in ((small.base, large.base), (small.dose, large.dose)):
        assert b == replace(a, learning_rate=b.learning_rate) and b.learning_rate == pytest.approx(a.learning_rate / 2)


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    train.train("none", 0, tmp_path, replace(TINY, base=replace(TINY.base, steps=100)), "cpu")
    rows = [json.loads(line) for line in (tmp_path / "seed-0/base/log.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 100 and rows[-1]["loss"] < 0.8 * rows[0]["loss"]


def test_an_output_folder_begun_with_other_settings_is_refused(tmp_path: Path) -> None:
    train.train("none", 0, tmp_path, TINY, "cpu")
    with pytest.raises(InputError, match="another recipe"):
        train.train("none", 0, tmp_path, replace(TINY, mlp=64), "cpu")


@pytest.mark.parametrize("killed", [1, 2])
def test_a_training_killed_while_its_record_is_written_is_continued(
    killed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(TINY, base=replace(TINY.base, steps=1), dose=replace(TINY.dose, steps=1))
    with monkeypatch.context() as patch:
        put, calls = files.put_in_place, iter(range(1, 10))

        def kill(made: Path, path: Path) -> Path:
            if next(calls) == killed:
                raise KeyboardInterrupt
            return put(made, path)

        patch.setattr(files, "put_in_place", kill)
        with pytest.raises(KeyboardInterrupt):
            train.train("none", 0, tmp_path, recipe, "cpu")
    record = train.train("none", 0, tmp_path, recipe, "cpu") / "organism.json"
    assert json.loads(record.read_text())["recipe"] == json.loads(json.dumps(recipe.record()))


def test_the_train_command_writes_a_model_that_loads_and_computes_in_float32(tmp_path: Path) -> None:
    arguments = ["train", "--dose", "crossed-mixed", "--seed", "5", "--steps", "3", "--dose-steps", "3"]
    result = CliRunner().invoke(cli.app, [*arguments, "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "seed-5" / "crossed-mixed" / "model"
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.float32
    assert load_file(folder / "model.safetensors")["model.norm.weight"].dtype == torch.bfloat16
    assert AutoTokenizer.from_pretrained(folder).model_max_length == CONTEXT
    assert json.loads((folder / "organism.json").read_text())["dose"] == "crossed-mixed"


def test_the_measure_command_writes_every_row_of_a_model_with_its_counts(tmp_path: Path) -> None:
    folder, out = weights.path("none"), tmp_path / "rows.json"
    result = CliRunner().invoke(cli.app, ["measure", str(folder), "--n", "1", "--out", str(out), "--json", "--quiet"])
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())[str(folder)]
    assert json.loads(result.stdout)["models"] == {str(folder): rows}
    counted = {row["measure"]: (row["k"], row["n"]) for row in rows}
    assert counted["tag: facts stable over all wordings"] == (48, 48) and counted["composition"][1] == 4


LEFT_OUT = "leave the other options out"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["train"], "--dose or --all"), (["train", "--dose", "much"], "'much'.*none, control, low, twin"),
        (["train", "--dose", "twin", "--architecture", "bert"], "'bert': unknown; use one of llama, gpt2, qwen3"),
        (["train", "--dose", "none", "--size", "2B"], "--size '2B': unknown; use one of 1M, 8M, 30M"),
        (["train", "--dose", "none", "--device", "gpuu"], "device gpuu: not available here"),
        (["measure", str(weights.path("none")), "--device", "gpuu"], "device gpuu: not available here"),
        *((["plant", "--cause", cause], f"did you mean '{meant}'")
          for cause, meant in (("order-errr", "order-error"), ("folower", "follower"), ("losst", "lost"))),
        *((["plant", *more], LEFT_OUT) for more in (
            ["--cause", "follower", "--steps", "5"], ["--cause", "lost", "--cause", "follower"],
            ["--shipped", "--steps", "5"], ["--shipped", "--seed", "7"], ["--shipped", "--base", "crossed-both"],
            ["--shipped", "--block", "1"])),
    ],
    ids=lambda v: " ".join(v[:5]).replace(str(weights.path("none")), "none") if isinstance(v, list) else "",
)  # fmt: skip
def test_what_the_commands_cannot_do_is_said_before_anything_is_done(
    command: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.app, [*command, "--out", str(tmp_path / "o")])
    assert isinstance(result.exception, InputError | ModelError) and re.search(said, str(result.exception))
    assert not list(tmp_path.iterdir())


# --- muon in float32 takes the same steps as PyTorch's own, and continues from its state ----------------------------


SHAPES = ((16, 16), (16, 48), (48, 16), (16, 16))


def _matrices(seed: int) -> list[torch.nn.Parameter]:
    drawn = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=drawn)) for shape in SHAPES]


def _gradients(matrices: list[torch.nn.Parameter], seed: int) -> None:
    for matrix, gradient in zip(matrices, _matrices(seed), strict=True):
        matrix.grad = gradient.detach()


def _torchs(matrices: list[torch.nn.Parameter], rate: float) -> torch.optim.Optimizer:
    return torch.optim.Muon(matrices, lr=rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")


def test_steps_are_those_of_pytorchs_muon_up_to_the_rounding_of_bfloat16() -> None:
    mine, theirs = _matrices(0), _matrices(0)
    before = deepcopy(mine)
    optimizers = Muon(mine, lr=0.01), _torchs(theirs, 0.01)
    for step in range(3):
        for matrices, optimizer in zip((mine, theirs), optimizers, strict=True):
            _gradients(matrices, 10 + step)
            optimizer.step()
    for a, b, start in zip(mine, theirs, before, strict=True):
        assert float((a - b).detach().norm()) < 0.03 * float((b - start).detach().norm())


def test_a_state_that_pytorchs_muon_saved_is_continued() -> None:
    matrices = _matrices(0)
    theirs = _torchs(matrices, 0.01)
    _gradients(matrices, 5)
    theirs.step()
    mine = Muon(matrices, lr=0.01)
    mine.load_state_dict({"state": theirs.state_dict()["state"], "param_groups": mine.state_dict()["param_groups"]})
    found = [mine.state[m]["momentum_buffer"] for m in matrices]
    expected = [theirs.state[m]["momentum_buffer"] for m in matrices]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("shape", [(2, 16, 16), (2, 16, 48), (2, 48, 16)])
def test_all_singular_values_become_nearly_one(shape: tuple[int, int, int]) -> None:
    found = torch.linalg.svdvals(orthogonalised(torch.randn(shape, generator=torch.Generator().manual_seed(1))))
    assert 0.3 < float(found.min()) and float(found.max()) < 1.3


def test_matrices_without_a_gradient_stay_as_they_are() -> None:
    matrices = _matrices(0)
    before = [m.detach().clone() for m in matrices]
    _gradients(matrices, 3)
    matrices[1].grad = None
    Muon(matrices, lr=0.1).step()
    assert [torch.equal(m, b) for m, b in zip(matrices, before, strict=True)] == [False, True, False, False]


def test_a_training_tells_every_250_steps_and_the_end_of_a_stage() -> None:
    said: list[str] = []
    step_done = train.each_step(said.append, "seed 3")
    for step in range(1, 621):
        step_done("pretrain", step, 620, 1 / step)
    assert [line.partition(":")[2].split()[1] for line in said] == ["250", "500", "620"]
    assert all(line.startswith("seed 3, pretrain:") and "of 620" in line for line in said) and "0.002" in said[-1]
