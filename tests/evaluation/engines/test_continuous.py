"""A batch that stays full: the tokens are those of ``generate``, one by one; nothing is read twice; nothing waits."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import CONFIGS, MORE, REFUSED, tiny
from transformers import GPTNeoConfig, GPTNeoForCausalLM

from composcope.evaluation.asks import Ask
from composcope.evaluation.engines import continuous, decoding, local
from composcope.evaluation.engines.continuous import find_trust
from composcope.evaluation.engines.decoding import DecodedRow, Runner
from composcope.evaluation.engines.local import LocalEngine

BATCHES = ("llama4_text", "qwen3_next", "bloom", "gemma3_text", "gpt_neo")
ANEW = ("mamba", "rwkv", "openai-gpt", "minimax", "inkling_text")
"""What remembers more than keys and values, or does not take a mask of ours."""


def drawn(n: int, budget: int, seed: int = 0) -> list[tuple[tuple[int, ...], int]]:
    """Prompts with shared beginnings, one that is the beginning of others, two that are equal; tokens to generate."""
    rng = random.Random(seed)
    stem = [rng.randrange(3, 90) for _ in range(8)]
    found = [tuple(stem[:5]), tuple(stem)]
    while len(found) < n - 1:
        found.append((*stem[: rng.randrange(1, 9)], *(rng.randrange(3, 90) for _ in range(rng.randrange(1, 12)))))
    return [(ids, rng.randrange(1, budget)) for ids in [*found, found[2]]]


def rows_of(asked: list[tuple[tuple[int, ...], int]], eos: frozenset[int] = frozenset({2})) -> list[DecodedRow]:
    return [DecodedRow(ids, budget, eos) for ids, budget in sorted(asked)]


def generated(model: Any, row: DecodedRow) -> list[int]:
    ids = torch.tensor([row.ids])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=row.budget, do_sample=False, pad_token_id=0,
        eos_token_id=sorted(row.eos_ids) or None,
    )  # fmt: skip
    return out[0, len(row.ids) :].tolist()


class Fed:
    """What a model is fed: the shape of every call."""

    def __init__(self, model: Any) -> None:
        self.shapes: list[tuple[int, int]] = []
        model.register_forward_pre_hook(
            lambda _, __, kwargs: self.shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
        )

    @property
    def read(self) -> int:
        """Tokens of prompts."""
        return sum(b * t for b, t in self.shapes if t > 1)

    @property
    def steps(self) -> int:
        return sum(t == 1 for _, t in self.shapes)


@pytest.mark.parametrize("name", [*CONFIGS, *MORE, *REFUSED])
def test_every_architecture_gives_the_tokens_of_generate_one_by_one(name: str) -> None:
    model = tiny(name)
    trust = find_trust(model)
    wanted = decoding.decode if name in BATCHES else decoding.decode_anew if name in ANEW else continuous.decode
    assert trust.decode is wanted and (trust.reason is None) == (wanted is continuous.decode)
    rows = rows_of(drawn(7, 8))
    done = list(trust.decode(Runner(model, window=trust.window, mixed=trust.mixed), rows, 3))
    assert sorted(done) == list(range(len(rows)))
    for row in rows:
        assert row.generated == generated(model, row)
        assert row.finish == ("stop" if row.generated[-1] == 2 else "length")


@pytest.mark.parametrize(
    ("name", "changes", "window", "mixed"),
    [
        ("mistral", {}, 5, False),
        ("gemma3", {"num_hidden_layers": 7}, 5, True),
        ("gemma3n_text", {"num_kv_shared_layers": 2}, None, False),
        (
            "gemma4_text",
            {"num_kv_shared_layers": 2, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 97},
            5,
            True,
        ),
    ],
)
def test_layers_that_slide_and_layers_that_share_keys(
    name: str, changes: dict[str, Any], window: int | None, mixed: bool
) -> None:
    model = tiny(name, **changes)
    trust = find_trust(model)
    assert (trust.reason, trust.window, trust.mixed) == (None, window, mixed)
    rows = rows_of(drawn(6, 9))
    list(trust.decode(Runner(model, window=window, mixed=mixed), rows, 3))
    assert [row.generated for row in rows] == [generated(model, row) for row in rows]


@pytest.mark.parametrize(
    ("difference", "dtype", "trusted"),
    [(0.0009, torch.float32, True), (0.0011, torch.float32, False), (math.nan, torch.float32, False),
     (0.049, torch.bfloat16, True), (0.051, torch.bfloat16, False), (math.inf, torch.bfloat16, False)],
)  # fmt: skip
def test_a_model_is_trusted_as_far_as_its_logits_are_those_of_each_text_alone(
    difference: float, dtype: torch.dtype, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous, "_largest_difference", lambda runner: difference)
    model: Any = tiny("llama")
    for holds, otherwise in ((True, decoding.decode), (False, decoding.decode_anew)):
        monkeypatch.setattr(continuous, "_batches_hold", lambda model, holds=holds: holds)
        found = find_trust(model.to(dtype))
        assert (found.reason is None, found.decode) == (trusted, continuous.decode if trusted else otherwise)


@pytest.mark.parametrize(
    ("error", "holds"), [(torch.OutOfMemoryError("CUDA out of memory"), True), (ValueError("no mask"), False)]
)
def test_batches_hold_where_only_the_memory_was_too_small_to_find_out(
    error: Exception, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(continuous.decoding, "decode", fails)
    assert continuous._batches_hold(tiny("llama")) is holds


def neo(context: int) -> Any:
    """GPT-Neo, whose second layer looks back over 24 columns of the cache."""
    torch.manual_seed(0)
    config = GPTNeoConfig(
        vocab_size=97, max_position_embeddings=context, hidden_size=32, num_layers=2, num_heads=2, window_size=24,
        attention_types=[[["global", "local"], 1]], initializer_range=0.6, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return GPTNeoForCausalLM(config).eval()


@pytest.mark.parametrize("continuously", [True, False])
@pytest.mark.parametrize("context", [64, 600])
def test_masks_by_column_give_the_tokens_of_generate_for_texts_longer_than_the_window(
    context: int, continuously: bool, tokenizer: Any
) -> None:
    model = neo(context)
    trust = LocalEngine(model, tokenizer, continuous=continuously).trust
    assert trust.columns == context and (trust.reason is None) != continuously
    rng = random.Random(1)
    asked = [(tuple(rng.randrange(3, 90) for _ in range(n)), min(20, 64 - n)) for n in (60, 5, 30, 44, 12, 58, 33, 28)]
    rows = rows_of(asked, frozenset())
    done = list(trust.decode(Runner(model, columns=trust.columns), rows, 8))
    assert sorted(done) == list(range(len(rows)))
    assert [row.generated for row in rows] == [generated(model, row) for row in rows]


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2"])
def test_prompts_longer_than_one_reading_and_answers_longer_than_the_first_room(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous, "READ", {"cpu": 4})
    context: dict[str, Any] = {"n_positions" if name == "gpt2" else "max_position_embeddings": 128}
    model = tiny(name, **context)
    trust = find_trust(model)
    rows = rows_of([(ids, 60) for ids, _ in drawn(6, 2)], frozenset())
    fed = Fed(model)
    list(continuous.decode(Runner(model, window=trust.window, mixed=trust.mixed), rows, 4))
    assert max(t for _, t in fed.shapes) <= 4
    for row in rows:
        assert row.generated == generated(model, row)


def trie(prompts: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {ids[: i + 1] for ids in prompts for i in range(len(ids))}


@pytest.mark.parametrize("seed", range(20))
def test_a_layout_holds_every_shared_beginning_once_and_each_token_sees_its_own_prompt_alone(seed: int) -> None:
    prompts = sorted(ids for ids, _ in drawn(12, 2, seed))
    held, rest = prompts[3], prompts[4:]
    found = continuous.lay_out(held, rest)
    everything = [*held, *found.tokens]
    depth = [*range(len(held)), *found.depths]
    for ids, columns, end in zip(rest, found.columns, found.ends, strict=True):
        assert tuple(everything[c] for c in columns) == ids
        assert [depth[c] for c in columns] == list(range(len(ids)))
        for i, c in enumerate(columns):
            if c >= len(held):
                assert found.seen[c - len(held)].nonzero().flatten().tolist() == sorted(columns[: i + 1])
        assert end == columns[-1] - len(held) >= 0
    again = rest[0] == held  # its last token is wanted anew
    assert len(found.tokens) == len(trie(rest) - trie([held])) + again


def test_a_reading_takes_prompts_up_to_its_limit_and_at_least_one() -> None:
    prompts = [(1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 9, 9, 9, 9)]
    assert [continuous.together((), prompts, limit) for limit in (1, 4, 5, 8, 9, 99)] == [1, 1, 2, 2, 3, 3]
    assert continuous.together((1, 2, 3), prompts, 2) == 2


def test_what_prompts_share_is_read_once_in_the_whole_run() -> None:
    model = tiny("llama", max_position_embeddings=256)
    rng = random.Random(1)
    stem = tuple(rng.randrange(3, 90) for _ in range(100))
    prompts = [(*stem, *(rng.randrange(3, 90) for _ in range(9))) for _ in range(40)]
    rows = rows_of([(ids, 5) for ids in prompts], frozenset())
    fed = Fed(model)
    list(continuous.decode(Runner(model), rows, 4))
    assert fed.read == len(trie(prompts)) < 0.15 * sum(map(len, prompts))


def test_a_finished_row_is_replaced_while_the_others_go_on() -> None:
    model = tiny("llama", max_position_embeddings=256)
    asked = [((5, 3 + i), 2 if i % 8 else 60) for i in range(64)]
    steps = {}
    for decode in (continuous.decode, decoding.decode):
        fed = Fed(model)
        rows = rows_of(asked, frozenset())
        list(decode(Runner(model), rows, 8))
        steps[decode] = fed.steps
        assert max(b for b, t in fed.shapes if t == 1) <= 8
    assert steps[decoding.decode] == 8 * 59  # a long row in every batch
    assert steps[continuous.decode] < 2.5 * 59


def test_an_answer_is_handed_over_in_the_step_that_finishes_it() -> None:
    model = tiny("llama", max_position_embeddings=256)
    rows = rows_of([((5, 3 + i), 3 * (i + 1)) for i in range(6)], frozenset())
    fed = Fed(model)
    at = [(i, fed.steps) for i in continuous.decode(Runner(model), rows, 8)]
    assert at == [(i, 3 * (i + 1) - 1) for i in range(6)]


def engine_asks(make_ask: Callable[..., Ask], n: int = 24) -> list[Ask]:
    rng = random.Random(3)
    return [make_ask(f"Count {'x' * rng.randint(0, 20)}{i}", case=f"c{i}", max_tokens=9) for i in range(n)]


def test_memory_that_runs_out_while_prompts_are_read_costs_no_answer(
    make_llama: Any, tokenizer: Any, make_ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = engine_asks(make_ask)
    plain = {a.case: r.text for a, r in LocalEngine(make_llama(), tokenizer).answer(asks)}
    model = make_llama()

    def check(_: Any, __: Any, kwargs: Any) -> None:
        if kwargs["input_ids"].numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory")

    model.register_forward_pre_hook(check, with_kwargs=True)
    found = [(a.case, r) for a, r in LocalEngine(model, tokenizer).answer(asks)]
    assert Counter(case for case, _ in found) == Counter(plain.keys())
    assert {case: r.text for case, r in found} == plain
    assert "out of memory with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ignored", "way"),
    [("attention_mask", "one by one and without a cache"), ("position_ids", "in fixed batches")],  # angles are relative
)
def test_a_model_that_ignores_what_it_is_told_is_found_out_and_still_answers_right(
    make_llama: Any, tokenizer: Any, make_ask: Any, ignored: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = engine_asks(make_ask, 6)
    plain = {a.case: r.response_ids for a, r in LocalEngine(make_llama(), tokenizer).answer(asks)}
    model = make_llama()
    model.register_forward_pre_hook(lambda _, args, kwargs: (args, {**kwargs, ignored: None}), with_kwargs=True)
    engine = LocalEngine(model, tokenizer)
    found = list(engine.answer(asks))
    assert str(engine.trust.reason).startswith(f"{way}, since its logits differ")
    assert {a.case: r.response_ids for a, r in found} == plain
    assert {str(r.provenance) for _, r in found} == {str({"decoded": engine.trust.reason})}
    assert capsys.readouterr().err.count(way) == 1


def test_one_long_ask_does_not_take_the_memory_of_all_others(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model = make_llama(context=4096)
    asks = [*engine_asks(make_ask, 40), make_ask("y" * 3000, case="long", max_tokens=4)]
    engine = LocalEngine(model, tokenizer)
    per_row = model.config.num_hidden_layers * 2 * 2 * 8 * 4 * 3000
    fed = Fed(model)
    engine._rows_that_fit = lambda longest: max(1, 2 * per_row // (per_row * longest.total // 3000))  # type: ignore
    found = {a.case: r for a, r in engine.answer(asks)}
    assert len(found) == 41 and found["long"].response_tokens == 4
    assert max(b for b, t in fed.shapes if t == 1) > 30, "the short ones run together"


def test_as_many_rows_run_together_as_their_keys_and_values_leave_room_for(
    make_llama: Any, tokenizer: Any, make_ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_llama()
    cache = model(torch.zeros(1, 10, dtype=torch.long), use_cache=True).past_key_values
    of_a_token = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers) // 10
    beside = 16 * 32 * 4  # what one layer computes, in float32
    assert local._bytes_per_row(model, 30) - local._bytes_per_row(model, 20) == 10 * (of_a_token + beside)
    assert local._bytes_per_row(make_llama(head_dim=32), 1) > local._bytes_per_row(model, 1)
    for said in ("a", "a" * 150):
        asks = [make_ask(said + chr(97 + i), case=str(i), max_tokens=4) for i in range(16)]
        engine, fed = LocalEngine(model, tokenizer), Fed(model)
        tokens = len(engine.prompt_ids(asks[:1])[0]) + 4
        assert engine.trust.reason is None
        fed.shapes.clear()
        monkeypatch.setattr(local, "_memory", lambda model, n=tokens: 7 * local._bytes_per_row(model, n))
        assert len(list(engine.answer(asks))) == 16
        assert max(rows for rows, n in fed.shapes if n == 1) == 7, "whether few of many tokens or many of few"


def test_sampled_asks_with_one_prompt_read_it_once_and_differ_by_their_seeds(
    make_llama: Any, tokenizer: Any, make_ask: Any
) -> None:
    asks = [make_ask("Hi", case=str(i), temperature=1.0, repeat=i, max_tokens=8) for i in range(6)]
    model = make_llama()
    engine = LocalEngine(model, tokenizer)
    assert engine.trust.reason is None
    fed = Fed(model)
    texts = {r.text for _, r in engine.answer(asks)}
    assert len(texts) > 3 and fed.read == len(engine.prompt_ids(asks[:1])[0])


@pytest.mark.parametrize(
    ("windows", "trusted", "window"), [((4, 4), True, 4), ((4, None), True, 4), ((4, 8), False, None)]
)
def test_layers_with_windows_of_several_sizes_are_not_decoded_together(
    windows: tuple[int | None, ...], trusted: bool, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [type("DynamicSlidingWindowLayer", (), {"sliding_window": size})() for size in windows]
    monkeypatch.setattr(continuous, "DynamicCache", lambda config: SimpleNamespace(layers=layers))
    config = tiny("llama").config
    found = continuous._of_cache(config)
    assert (found.reason is None, found.window) == (trusted, window)
    assert trusted or "windows" in str(found.reason)
    assert found.mixed == (trusted and None in windows)
    config.layer_types = ["full_attention", "chunked_attention"]
    assert "(chunked_attention)" in str(continuous._of_cache(config).reason), "a mask that is not made here"
