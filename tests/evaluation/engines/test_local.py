from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers.processors import TemplateProcessing

from composcope.errors import ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines import decoding
from composcope.evaluation.engines.base import cut_after_stop
from composcope.evaluation.engines.local import LocalEngine, _Prepared
from composcope.evaluation.engines.text import StopFinder, decode, special_thinking_marks
from composcope.evaluation.journal import ask_identity

ARCHITECTURES = ("llama", "gpt2", "sliding")


@pytest.fixture(params=ARCHITECTURES)
def model(request: pytest.FixtureRequest, make_llama: Any, make_gpt2: Any) -> Any:
    if request.param == "sliding":
        from transformers import MistralConfig, MistralForCausalLM

        torch.manual_seed(0)
        return MistralForCausalLM(
            MistralConfig(**{**_sizes(), "sliding_window": 8, "initializer_range": 0.3}, eos_token_id=257)
        ).eval()
    return make_llama() if request.param == "llama" else make_gpt2()


def _sizes() -> dict[str, int]:
    return {
        "vocab_size": 259,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
    }


def varied(make_ask: Callable[..., Ask], n: int = 60) -> list[Ask]:
    rng = random.Random(0)
    return [make_ask("q" * rng.randint(1, 60) + str(i), case=f"c{i}", max_tokens=rng.randint(1, 30)) for i in range(n)]


def answers(engine: LocalEngine, asks: list[Ask]) -> dict[str, Response]:
    found = {a.case: r for a, r in engine.answer(asks)}
    assert len(found) == len(asks)
    return found


def generate(model: Any, ids: tuple[int, ...], max_tokens: int, **options: Any) -> tuple[int, ...]:
    prompt = torch.tensor([ids])
    out = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=max_tokens,
        do_sample=False,
        pad_token_id=257,
        **options,
    )
    return tuple(out[0, len(ids) :].tolist())


@pytest.mark.parametrize("options", [{}, {"batch_size": 1}, {"batch_size": 3}, {"continuous": False}])
def test_texts_on_both_sides_of_a_length_that_changes_all_positions_get_the_tokens_that_they_get_alone(
    tokenizer: Any, make_ask: Callable[..., Ask], options: dict[str, Any]
) -> None:
    from transformers import Phi3Config, Phi3ForCausalLM

    torch.manual_seed(0)
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
    sizes: dict[str, Any] = {**_sizes(), "initializer_range": 0.3, "pad_token_id": 0, "eos_token_id": 257}
    config = Phi3Config(**sizes, original_max_position_embeddings=64, rope_parameters=rope)
    long = Phi3ForCausalLM(config).eval()
    given = ((3, 5), (9, 60), (44, 60), (90, 20))  # the third prompt has 64 tokens
    asks = [make_ask("q" * n + str(n), case=f"c{n}", max_tokens=m) for n, m in given]
    asks += [make_ask("q" * 90 + "z", case="other", max_tokens=20), make_ask("z", case="short", max_tokens=9)]
    seen = set()
    for ask, response in LocalEngine(long, tokenizer, **options).answer(asks):
        assert response.prompt_ids is not None and response.response_ids is not None
        assert response.response_ids == generate(long, response.prompt_ids, ask.max_tokens)
        assert response.finish_reason == ("stop" if response.response_ids[-1] == 257 else "length")
        total = response.prompt_tokens + response.response_tokens
        seen.add((response.prompt_tokens <= 64, total <= 64))
    assert seen == {(True, True), (True, False), (False, False)}


def test_greedy_answers_equal_generate_one_by_one(model: Any, tokenizer: Any, make_ask: Callable[..., Ask]) -> None:
    asks = varied(make_ask)
    for ask, response in LocalEngine(model, tokenizer, batch_size=16).answer(asks):
        assert response.prompt_ids is not None and response.response_ids is not None
        assert response.response_ids == generate(model, response.prompt_ids, ask.max_tokens)
        assert response.finish_reason == ("stop" if response.response_ids[-1] == 257 else "length")
        assert (response.prompt_tokens, response.response_tokens) == (
            len(response.prompt_ids),
            len(response.response_ids),
        )


def test_fp32_answers_do_not_depend_on_batch_size_padding_or_order(
    model: Any, tokenizer: Any, make_ask: Callable[..., Ask]
) -> None:
    asks = varied(make_ask)
    one = answers(LocalEngine(model, tokenizer, batch_size=23), asks)
    assert len({r.response_tokens for r in one.values()}) > 5, "rows must finish at different steps"
    for batch_size in (1, 5, None):
        other = answers(LocalEngine(model, tokenizer, batch_size=batch_size), asks[::-1])
        assert {k: r.response_ids for k, r in one.items()} == {k: r.response_ids for k, r in other.items()}, batch_size


def test_prompts_are_the_chat_template_or_raw_with_bos(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    engine = LocalEngine(make_llama(), tokenizer)
    chat, raw = engine.prompt_ids([make_ask("Hi"), make_ask("Hi", prompting="raw")])
    assert tokenizer.decode(chat) == "<bos>user: Hi\nassistant:"
    assert tokenizer.decode(raw) == "<bos>Hi"


def test_a_tokenizer_that_ends_every_text_does_not_end_a_raw_prompt(
    make_llama: Any, tokenizer: Any, make_tokenizer: Any, make_ask: Callable[..., Ask]
) -> None:
    ending = make_tokenizer()
    ends = [(name, ending.convert_tokens_to_ids(name)) for name in ("<bos>", "<eos>")]
    ending.backend_tokenizer.post_processor = TemplateProcessing(single="<bos> $A <eos>", special_tokens=ends)
    assert ending("Hi").input_ids == [*tokenizer("Hi").input_ids, 257]
    asks = [make_ask(text, prompting="raw") for text in ("Hi", "")]
    engines = [LocalEngine(make_llama(), words) for words in (tokenizer, ending)]
    assert engines[0].prompt_ids(asks) == engines[1].prompt_ids(asks)


def test_a_tokenizer_without_pad_token_answers_as_one_with(make_llama: Any, make_tokenizer: Any, make_ask: Any) -> None:
    asks = varied(make_ask)
    bare = answers(LocalEngine(make_llama(), make_tokenizer(pad=False), batch_size=8), asks)
    padded = answers(LocalEngine(make_llama(), make_tokenizer(pad=True), batch_size=8), asks)
    assert {k: r.text for k, r in bare.items()} == {k: r.text for k, r in padded.items()}


def test_a_missing_chat_template_is_said(make_llama: Any, make_tokenizer: Any, make_ask: Any) -> None:
    engine = LocalEngine(make_llama(), make_tokenizer(template=None))
    with pytest.raises(ModelError, match=r"no chat template.*raw"):
        list(engine.answer([make_ask()]))
    assert len(list(engine.answer([make_ask(prompting="raw")]))) == 1


def test_text_ends_exactly_after_the_first_stop_string(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    engine = LocalEngine(make_llama(), tokenizer, batch_size=7)
    asks = varied(make_ask)
    free = answers(engine, asks)
    stopped = 0
    for ask in asks:
        text = free[ask.case].text
        readable = [text[i : i + 2] for i in range(2, len(text) - 3) if "\ufffd" not in text[i : i + 2]]
        stop = readable[0] if readable else "never there"
        [(_, cut)] = engine.answer([replace(ask, stop=("also never", stop))])
        if stop in text:
            stopped += 1
            assert cut.text == text[: text.index(stop) + len(stop)] and cut.finish_reason == "stop"
            assert cut.response_ids == free[ask.case].response_ids[: cut.response_tokens]  # type: ignore[index]
        else:
            assert cut.response_ids == free[ask.case].response_ids
    assert stopped > 5


def test_a_stop_string_is_found_where_tokens_and_letters_do_not_line_up(make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer()
    finder = StopFinder(tokenizer, ("</answer>", "über"))
    ids: list[int] = []
    text = "x" * 100 + " < /answer> ü ber </answer"
    for token in tokenizer(text).input_ids[1:]:
        ids.append(token)
        assert not finder.found(ids)
    assert finder.found([*ids, *tokenizer(">").input_ids[1:]])
    assert StopFinder(tokenizer, ("\n\n",)).found(tokenizer("a\n\n").input_ids[1:])
    many = tokenizer("東京東京>").input_ids[1:]
    assert len(many) > 5 and StopFinder(tokenizer, ("東京東京>",)).found(many)
    long = "東京" * 6 + ">"
    assert StopFinder(tokenizer, (">>", long)).found(tokenizer(long).input_ids[1:]), "the longest one fits"
    assert finder.cut("a</answer>b</answer>") == "a</answer>"


def test_the_stop_string_that_ends_first_wins() -> None:
    assert cut_after_stop("one two three", ("three", "two")) == ("one two", "two")
    assert cut_after_stop("one", ("two",)) == ("one", None)


@pytest.mark.parametrize(
    ("text", "opened", "kept"),
    [
        ("In tags: <a>x</a>, so", True, None),
        ("<think>In tags: <a>x</a>, so", False, None),
        ("In tags: <a>x</a>, so", False, "In tags: <a>x</a>"),
        ("In tags: <a>x</a>, so</think> <a>y</a> and", True, "In tags: <a>x</a>, so</think> <a>y</a>"),
        ("<think><a>x</a></think> <a>y</a> and", False, "<think><a>x</a></think> <a>y</a>"),
    ],
)
def test_a_stop_string_inside_the_thinking_stops_nothing(
    make_tokenizer: Any, text: str, opened: bool, kept: str | None
) -> None:
    finder = StopFinder(make_tokenizer(), ("</a>",), opened=opened)
    ids = finder.tokenizer(text).input_ids[1:]
    ends = (n for n in range(1, len(ids) + 1) if finder.found(ids[:n]))
    assert next(ends, None) == (None if kept is None else len(kept))
    assert finder.cut(text) == (kept or text)


def test_thoughts_that_the_prompt_opened_go_on_over_a_stop_string(
    make_llama: Any, make_tokenizer: Any, make_ask: Callable[..., Ask]
) -> None:
    told = {opens: f"{{{{ messages[0]['content'] }}}}\n{opens}\n" for opens in ("<think>", "<answer>")}
    for opens, template in told.items():
        engine = LocalEngine(make_llama(), make_tokenizer(template=template))
        free = answers(engine, asks := varied(make_ask))
        stopped = answers(engine, [replace(ask, stop=("a", "e", "o", "t")) for ask in asks])
        texts = [(free[name].text, stopped[name].text) for name in free]
        assert any(a != b for a, b in texts) == (opens == "<answer>")


def test_a_prompt_longer_than_the_context_is_refused_and_never_shortened(
    make_gpt2: Any, tokenizer: Any, make_ask: Any
) -> None:
    engine = LocalEngine(make_gpt2(context=64), tokenizer)
    found = answers(engine, [make_ask("x" * 200, case="long"), make_ask("x", case="short")])
    assert found["long"].finish_reason == "error" and found["long"].text == ""
    assert (found["long"].prompt_tokens, found["long"].response_tokens) == (218, 0)
    assert "218 tokens" in str(found["long"].error) and "context of 64" in str(found["long"].error)
    assert found["short"].error is None


def test_an_answer_that_reaches_the_end_of_the_context_says_so(make_gpt2: Any, tokenizer: Any, make_ask: Any) -> None:
    engine = LocalEngine(make_gpt2(seed=1, context=64), tokenizer)
    [(_, response)] = engine.answer([make_ask("x" * 30, max_tokens=500)])
    assert response.finish_reason == "length" and response.prompt_tokens + response.response_tokens == 64
    assert response.provenance == {"limited_by": "context of 64"}
    # an answer that ends by itself, or with all the tokens that it may have, is not limited by the context
    ends = [make_ask("x" * 30, case="s", max_tokens=500, stop=(response.text[:1],)), make_ask("x" * 30, max_tokens=3)]
    assert [(r.finish_reason, r.provenance) for _, r in engine.answer(ends)] == [("stop", None), ("length", None)]


def test_an_answer_at_the_end_of_the_context_does_not_disturb_the_batch(
    make_gpt2: Any, tokenizer: Any, make_ask: Any
) -> None:
    # A long prompt fills the context at once, while most of the batch goes on for long.
    asks = [make_ask("x" * 40, case="full", max_tokens=500)]
    asks += [make_ask(f"y{i}", case=str(i), max_tokens=38) for i in range(15)]
    model = make_gpt2(seed=1, context=64)
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    tokenizer_without_end = type(tokenizer)(tokenizer_object=tokenizer.backend_tokenizer, bos_token="<bos>")
    tokenizer_without_end.chat_template = tokenizer.chat_template
    found = answers(LocalEngine(model, tokenizer_without_end, batch_size=16), asks)
    alone = answers(LocalEngine(model, tokenizer_without_end, batch_size=1), asks)
    assert found["full"].provenance == {"limited_by": "context of 64"} and found["full"].response_tokens < 10
    assert {r.response_tokens for case, r in found.items() if case != "full"} == {38}
    assert {k: r.response_ids for k, r in found.items()} == {k: r.response_ids for k, r in alone.items()}


def test_logits_that_are_not_numbers_stop_with_the_ask_named(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model = make_llama()
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")
    with pytest.raises(ModelError, match=r"case 'bad', role 'whole': the logits of token 1 are nan.*float32"):
        list(LocalEngine(model, tokenizer).answer([make_ask(case="bad")]))


def test_stop_strings_are_looked_for_by_whether_the_prompt_has_opened_the_thinking(
    make_llama: Any, tokenizer: Any, make_ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = LocalEngine(make_llama(), tokenizer)
    monkeypatch.setattr(LocalEngine, "_opens_thinking", lambda self, ids: ids[-1] == 7)
    asks = [(make_ask(stop=stop), ids) for stop in (("\n",), ("#",)) for ids in ((5, 7), (5, 6), (4, 7))]
    finders: list[Any] = [engine._row(_Prepared(ask, ids, 4)).stop for ask, ids in asks]
    assert [f.opened for f in finders] == [True, False, True] * 2
    assert [f.stops for f in finders] == [("\n",)] * 3 + [("#",)] * 3


def test_the_random_numbers_of_a_sample_are_those_of_its_ask_whatever_the_model(
    make_llama: Any, make_gpt2: Any, tokenizer: Any, make_ask: Any
) -> None:
    engines = [LocalEngine(model, tokenizer) for model in (make_llama(), make_gpt2(seed=1))]
    asks = [make_ask(temperature=0.7), make_ask(temperature=0.7, case="another"), make_ask()]
    seeds = [[engine._row(_Prepared(ask, (5, 7), 4)).seed for ask in asks] for engine in engines]
    assert seeds[0] == seeds[1] and engines[0].identity != engines[1].identity
    assert None not in seeds[0][:2] and seeds[0][2] is None


@pytest.mark.parametrize("stop", ["é", "。", ". ", "a\n", "#"])
def test_a_stop_string_is_found_though_no_token_of_its_own_shows_its_last_character(stop: str) -> None:
    def decode_bytes(ids: list[int], **_: Any) -> str:  # a token a byte, and no blank at the start of a text
        return bytes(ids).decode("utf-8", "replace").lstrip()

    ids = list(f"x{stop}".encode())
    finder = StopFinder(SimpleNamespace(decode=decode_bytes), [stop])
    assert [finder.found(ids[: n + 1]) for n in range(len(ids))] == [False] * (len(ids) - 1) + [True]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_logits_that_are_not_finite_are_refused_in_rows_that_go_on_alone(bad: float) -> None:
    good, other = (decoding.DecodedRow((1, 2), 4, frozenset(), where=name) for name in ("good", "other"))
    logits = torch.tensor([[0.5, 2.0, 1.0], [bad, bad, bad]])
    with pytest.raises(ModelError, match=f"^other: the logits of token 1 are {bad}"):
        decoding.choose(logits, [good, other])
    assert decoding.choose(logits, [good, None])[0] == 1


class SmallMemory(torch.nn.Module):
    """Makes a model run out of memory above a number of rows, or above a number of rows times steps."""

    def __init__(self, model: Any, rows: int) -> None:
        super().__init__()
        self.rows, self.largest = rows, 0
        self.handle = model.register_forward_pre_hook(self._check, with_kwargs=True)

    def _check(self, module: Any, args: Any, kwargs: Any) -> None:
        rows = kwargs["input_ids"].shape[0]
        if rows > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        self.largest = max(self.largest, rows)


def test_out_of_memory_halves_the_batch_and_loses_nothing(
    make_llama: Any, tokenizer: Any, make_ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = varied(make_ask)
    plain = answers(LocalEngine(make_llama(), tokenizer), asks)
    model = make_llama()
    limit = SmallMemory(model, rows=9)
    engine = LocalEngine(model, tokenizer)
    small = answers(engine, asks)
    assert {k: r.text for k, r in small.items()} == {k: r.text for k, r in plain.items()}
    assert limit.largest == engine.max_rows == 7  # 60 -> 30 -> 15 -> 7
    assert "out of memory with" in capsys.readouterr().err


def test_one_prompt_that_does_not_fit_is_an_error_of_its_own(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model = make_llama()
    SmallMemory(model, rows=0)
    [(_, response)] = LocalEngine(model, tokenizer).answer([make_ask()])
    assert response.finish_reason == "error" and "out of memory with one prompt" in str(response.error)


def test_other_runtime_errors_are_not_taken_for_memory(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model = make_llama()

    def fail(*_: Any) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    model.model.layers[0].register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="mat1"):
        list(LocalEngine(model, tokenizer).answer([make_ask()]))


def test_samples_follow_their_own_seed_and_not_the_batch(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    asks = [replace(a, temperature=1.0, max_tokens=12) for a in varied(make_ask, 20)]
    model = make_llama()
    one = answers(LocalEngine(model, tokenizer, batch_size=1), asks)
    many = answers(LocalEngine(model, tokenizer, batch_size=20), asks)
    assert {k: r.text for k, r in one.items()} == {k: r.text for k, r in many.items()}
    reseeded = answers(LocalEngine(model, tokenizer), [replace(a, seed=1) for a in asks])
    repeated = answers(LocalEngine(model, tokenizer), [replace(a, repeat=1) for a in asks])
    texts = [tuple(r[a.case].text for a in asks) for r in (one, reseeded, repeated)]
    assert len(set(texts)) == 3


def test_a_sample_is_the_inverse_of_the_distribution_at_a_random_number_of_its_seed_and_step() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, 0.5])
    row = decoding.DecodedRow(ids=(1,), budget=40, eos_ids=frozenset(), temperature=2.0, seed="a")
    weights = [math.exp(x / 2) for x in logits.tolist()]
    for step in range(30):
        left = random.Random(f"a:{step}").random() * sum(weights)
        expected = 0
        while left > weights[expected]:
            left -= weights[expected]
            expected += 1
        assert decoding.choose(logits[None], [row]) == [expected]
        row.accept(expected)
    assert len(set(row.generated)) == 4


def test_samples_follow_the_models_own_distribution(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model, n = make_llama(), 400
    engine = LocalEngine(model, tokenizer)
    asks = [make_ask("Hi", case=str(i), max_tokens=1, temperature=0.7, repeat=i) for i in range(n)]
    counts = torch.zeros(259)
    for _, response in engine.answer(asks):
        counts[response.response_ids[0]] += 1  # type: ignore[index]
    with torch.inference_mode():
        p = torch.softmax(model(torch.tensor([engine.prompt_ids(asks[:1])[0]])).logits[0, -1] / 0.7, -1)
    # Total variation of n draws from p stays below sum sqrt(p / n), its expectation's upper bound.
    assert 0.5 * (counts / n - p).abs().sum() < 0.5 * (p / n).sqrt().sum() * 1.5


def test_the_model_is_left_as_it_was(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model = make_llama(attention_dropout=0.5).train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    engine = LocalEngine(model, tokenizer)
    first = answers(engine, varied(make_ask, 10))
    assert model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    stream = engine.answer(varied(make_ask, 10))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert model.training
    assert {k: r.text for k, r in answers(engine, varied(make_ask, 10)).items()} == {
        k: r.text for k, r in first.items()
    }


def test_every_end_of_text_token_ends_an_answer(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model = make_llama()
    free = answers(LocalEngine(model, tokenizer), varied(make_ask, 20))
    token = next(r.response_ids[2] for r in free.values() if r.response_tokens > 3)  # type: ignore[index]
    model.generation_config.eos_token_id = [257, token]
    for response in answers(LocalEngine(model, tokenizer), varied(make_ask, 20)).values():
        assert response.response_ids is not None
        inside = set(response.response_ids[:-1])
        assert not inside & {257, token}
        assert response.finish_reason == ("stop" if response.response_ids[-1] in (257, token) else "length")


def test_identity_follows_weights_tokenizer_template_and_not_dtype(
    make_llama: Any, make_tokenizer: Any, tmp_path: Path
) -> None:
    model, tokenizer = make_llama(), make_tokenizer()
    model.save_pretrained(tmp_path / "a")
    tokenizer.save_pretrained(tmp_path / "a")
    base = LocalEngine(tmp_path / "a")
    assert LocalEngine(tmp_path / "a", dtype=torch.bfloat16).identity == base.identity
    assert LocalEngine(tmp_path / "a", dtype=torch.bfloat16).provenance != base.provenance
    again = LocalEngine(base.model, base.tokenizer, folder=tmp_path / "a")
    assert again.identity == base.identity
    in_memory = LocalEngine(base.model, base.tokenizer)
    assert {k for k in base.identity if in_memory.identity[k] != base.identity[k]} == {"weights"}
    assert LocalEngine(make_llama(seed=1), tokenizer).identity["weights"] != in_memory.identity["weights"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "no such folder"),
        ((), "no config.json"),
        (("config.json",), r"no weights \(\*.safetensors\)"),
        (("config.json", "model.safetensors"), "cannot be loaded as a causal language model"),
    ],
)
def test_a_folder_that_holds_no_model_is_refused_in_one_line(
    tmp_path: Path, files: tuple[str, ...] | None, message: str
) -> None:
    folder = tmp_path / "model"
    if files is not None:
        folder.mkdir()
        for name in files:
            (folder / name).write_text("{}")
    with pytest.raises(ModelError, match=message) as error:
        LocalEngine(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("damage", ["torn", "empty", "other widths"])
def test_damaged_weights_are_refused_in_one_line(make_llama: Any, tokenizer: Any, tmp_path: Path, damage: str) -> None:
    model = make_llama()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    if damage == "other widths":
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps({**config, "vocab_size": config["vocab_size"] + 3}))
    else:
        weights.write_bytes(weights.read_bytes()[: 3000 if damage == "torn" else 0])
    with pytest.raises(ModelError, match="cannot be loaded as a causal language model") as error:
        LocalEngine(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_a_batch_takes_few_of_the_forward_passes_that_one_answer_after_another_takes(
    make_llama: Any, tokenizer: Any, make_ask: Any
) -> None:
    model, passes = make_llama(), list[int]()
    model.register_forward_pre_hook(lambda *_: passes.append(1))
    found = answers(LocalEngine(model, tokenizer), varied(make_ask, 100))
    assert len(passes) * 10 < sum(r.response_tokens for r in found.values())


def test_thinking_goes_to_the_template_and_a_template_without_it_is_refused(
    make_llama: Any, make_tokenizer: Any, make_ask: Any
) -> None:
    template = "{{ messages[0]['content'] }}{% if enable_thinking %}<think>{% else %}:{% endif %}"
    thinker = make_tokenizer(template=template)
    engine = LocalEngine(make_llama(), thinker)
    asks = [make_ask(thinking=value) for value in (None, True, False)]
    assert [thinker.decode(ids) for ids in engine.prompt_ids(asks)] == ["How many?:", "How many?<think>", "How many?:"]
    keys = [ask_identity(ask, engine.identity) for ask in asks]
    assert len(set(keys)) == 3
    without = LocalEngine(make_llama(), make_tokenizer())
    assert without.prompt_ids([make_ask(thinking=False)]) == without.prompt_ids([make_ask()])
    with pytest.raises(ModelError, match="no thinking mode"):
        without.prompt_ids([make_ask(thinking=True)])


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('A system message is required') }}", "does not take a conversation of one user message"),
        ("{{ messages[0]['content'] ", "does not take a conversation of one user message"),
        ("{% for part in messages[0]['content'] %}{{ part['text'] }}{% endfor %}Reply:", "leaves the question out"),
    ],
)
def test_a_chat_template_that_cannot_put_a_question_is_refused_in_one_line(
    make_llama: Any, make_tokenizer: Any, make_ask: Any, template: str, message: str
) -> None:
    engine = LocalEngine(make_llama(), make_tokenizer(template=template))
    with pytest.raises(ModelError, match=rf"chat template {message}.*--prompting raw"):
        engine.prompt_ids([make_ask()])
    assert len(engine.prompt_ids([make_ask(prompting="raw")])) == 1


def test_a_tokenizer_with_more_tokens_than_the_model_has_is_refused_by_name(
    make_llama: Any, tokenizer: Any, make_ask: Any
) -> None:
    longer = copy.deepcopy(tokenizer)
    longer.add_tokens([f"<more{i}>" for i in range(600)])
    engine = LocalEngine(make_llama(), longer)
    with pytest.raises(
        ModelError, match=r"writes token \d+ \('<more599>'\), and the model has embeddings of 259 tokens"
    ):
        list(engine.answer([make_ask("plain"), make_ask("with <more599>")]))
    with pytest.raises(ModelError, match=f"writes token 259 .'{longer.convert_ids_to_tokens(259)}'"):
        list(engine.answer([make_ask(f"the first beyond: {longer.convert_ids_to_tokens(259)}")]))
    with pytest.raises(ModelError, match="batch_size is 0"):
        LocalEngine(make_llama(), tokenizer, batch_size=0)


def test_special_marks_of_thinking_stay_in_the_text_and_other_special_tokens_do_not() -> None:
    words = {1: "<think>", 2: "</think>", 3: "<pad>", 5: "Well.", 6: "Yes", 9: "<eos>"}
    special = {1, 2, 3, 9}

    def decode_ids(ids: Any, skip_special_tokens: bool, **_: Any) -> str:
        return "".join(words[i] for i in ids if not (skip_special_tokens and i in special))

    added = {i: SimpleNamespace(content=w, special=i in special) for i, w in words.items()}
    tokenizer = SimpleNamespace(decode=decode_ids, added_tokens_decoder=added)
    kept = special_thinking_marks(tokenizer)
    assert kept == {1: "<think>", 2: "</think>"}
    said = [1, 5, 3, 2, 6, 9]
    assert decode(tokenizer, said, {9}, kept) == "<think>Well.</think>Yes"
    assert decode(tokenizer, [6, 3, 9], {9}, kept) == "Yes" and decode(tokenizer, said, {9}) == "Well.Yes"
    assert decode(tokenizer, [6, 9, 6], {9}, kept) == "YesYes" and decode(tokenizer, [], {9}, kept) == ""
    # an end of text that is an ordinary word is left out at the end alone
    assert decode(tokenizer, [5, 6, 5], {5, 9}) == "Well.Yes"
    assert decode(tokenizer, [1, 5, 2, 6, 5], {5}, kept) == "<think>Well.</think>Yes"
