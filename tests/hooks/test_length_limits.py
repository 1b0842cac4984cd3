"""Models that compute long texts otherwise than short ones: no text gets numbers that it would not get alone."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError, ModelError
from composcope.hooks import Model, Site, budget, length_limits, load_model
from composcope.hooks.attention_masses import Window
from composcope.hooks.budget import MAX_TOKENS, in_prefills, prompt_tokens, shrinking
from composcope.hooks.capture import Request, capture_all
from composcope.hooks.edits import Skip
from composcope.hooks.interchange import continued, interchange
from composcope.hooks.length_limits import computed_alike
from composcope.probes import lookback, neurons, patching

from ..tiny_models import tiny

TURN = 12
LONGROPE = dict(rope_type="longrope", rope_theta=1e4, short_factor=[1.0] * 4, long_factor=[4.0] * 4)
SHORT, LONG = [5 + 7 * i % 85 for i in range(8)], [9 + 5 * i % 85 for i in range(17)]


@pytest.fixture(scope="module")
def lm() -> Model:
    return load_model(tiny("phi3", rope_parameters=LONGROPE, original_max_position_embeddings=TURN))


def buffers(lm: Model) -> list[Any]:
    return [b.tolist() for b in lm.model.buffers()]


def test_rows_on_both_sides_are_refused_and_rows_on_one_side_are_what_they_are_alone(lm: Model) -> None:
    ids, mask = lm.pad([SHORT, LONG])
    with torch.no_grad():
        with pytest.raises(ModelError, match=r"texts of 8 to 17 tokens.*more than 12 differently; measure shorter"):
            lm.run(ids, mask)
        with pytest.raises(ModelError, match=r"2 rows of 17 tokens without a mask.*give the mask"):
            lm.run(ids)
        short = lm.run(torch.tensor([SHORT])).logits
        ids, mask = lm.pad([SHORT, LONG[:TURN]])
        assert torch.allclose(lm.run(ids, mask).logits[:1, : len(SHORT)], short, atol=1e-5)
        padded = torch.cat([ids, ids[:, :4]], 1), torch.cat([mask, torch.zeros(2, 4)], 1).long()
        assert torch.allclose(lm.run(*padded).logits[:1, : len(SHORT)], short, atol=1e-5), "padding is no text"
        alone = lm.run(torch.tensor([LONG])).logits
        ids, mask = lm.pad([LONG, LONG[:-2]])
        assert torch.allclose(lm.run(ids, mask).logits[:1], alone, atol=1e-5)


def test_rows_of_edits_reach_exactly_to_where_texts_are_computed_otherwise(lm: Model) -> None:
    rows = [[Skip(0, 4)]]
    assert len(interchange(lm, LONG[:TURN], rows, [TURN - 1]).top_tokens) == 1
    with pytest.raises(ModelError, match=r"texts of 5 to 13 tokens.*more than 12 differently"):
        interchange(lm, LONG[: TURN + 1], rows, [TURN])


def test_a_cache_from_one_side_is_not_continued_on_the_other(lm: Model) -> None:
    ids = torch.tensor([LONG])
    past = lm.prefill(ids[:, : TURN - 2])
    with torch.no_grad():
        same = lm.run(ids[:, TURN - 2 : TURN], past=past).logits
        assert torch.allclose(same, lm.run(ids[:, :TURN]).logits[:, -2:], atol=1e-5)
        with pytest.raises(ModelError, match=r"texts of 10 to 13 tokens.*or run without past"):
            lm.run(ids[:, TURN - 2 : TURN + 1], past=past)


def test_what_a_pass_captures_of_each_text_is_what_it_gives_alone(lm: Model) -> None:
    texts = [LONG, SHORT, LONG[:-1], SHORT[:-1]]
    requests = [Request(t, (0, 3), Window(2, 6, ((0, 2), (2, 6))), (0, len(t))) for t in texts]
    for request, got in zip(requests, capture_all(lm, requests), strict=True):
        (alone,) = capture_all(lm, [request])
        for name in ("states", "masses", "hidden"):
            assert torch.allclose(getattr(got, name), getattr(alone, name), atol=1e-5), name


def test_probes_measure_short_and_long_prompts_side_by_side(lm: Model) -> None:
    together = neurons.attribute_many(lm, [SHORT, LONG], [[7], [9]], 3).mean
    for got, prompt, answer in zip(together, (SHORT, LONG), ([7], [9]), strict=True):
        assert torch.allclose(got, neurons.attribute(lm, prompt, answer, 3), atol=1e-6)
    how: dict[str, Any] = dict(max_new_tokens=2, controls=(), stop_ids=(), keep="all")
    both = patching.prompt_end_sweep(lm, [LONG, SHORT], [SHORT, LONG], **how).tensors
    for d, donor in enumerate((LONG, SHORT)):
        for r, recipient in enumerate((SHORT, LONG)):
            one = patching.prompt_end_sweep(lm, [donor], [recipient], **how).tensors
            assert torch.allclose(both["first_logits"][d, r], one["first_logits"][0, 0], atol=1e-4)
            assert torch.equal(both["tokens"][d, r], one["tokens"][0, 0])


def test_writing_does_not_cross_the_length(lm: Model) -> None:
    lookback.generate(lm, [SHORT], TURN - len(SHORT) + 1, eos=())
    with pytest.raises(ModelError, match="more than 12 differently"):
        lookback.generate(lm, [SHORT], TURN - len(SHORT) + 2, eos=())


def test_no_way_of_writing_crosses_the_length(lm: Model) -> None:
    for new, refused in ((TURN - len(SHORT) + 1, False), (TURN - len(SHORT) + 2, True)):
        for write in (
            lambda new=new: lm.generate([SHORT], new, stop_ids=()),
            lambda new=new: continued(lm, SHORT, [[], [Skip(0, 7)]], new, ()),
        ):
            with pytest.raises(ModelError, match="generate fewer tokens") if refused else nullcontext():
                assert all(len(tokens) == new for tokens in write())
    assert len(lm.generate([LONG], 5, stop_ids=())[0]) == 5


def test_buffers_of_rotary_angles_are_as_before(lm: Model) -> None:
    before = buffers(lm)
    with torch.no_grad():
        lm.run(torch.tensor([LONG]), read=[Site(0, "pattern")])
    capture_all(lm, [Request(LONG, hidden=(0, 2))])
    neurons.attribute(lm, LONG, [7], 2)
    assert buffers(lm) == before
    with torch.no_grad():
        lm.model(torch.tensor([LONG]))
        assert buffers(lm) != before, "a plain forward pass writes them"
        lm.model(torch.tensor([SHORT]))


def test_buffers_that_a_pass_replaces_or_writes_are_put_back(lm: Model) -> None:
    before = buffers(lm)
    rotary: Any = next(m for m in lm.model.modules() if "inv_freq" in dict(m.named_buffers(recurse=False)))
    held, here = rotary.inv_freq, dict(rotary.named_buffers(recurse=False))
    for change in (
        lambda: rotary.register_buffer("inv_freq", torch.zeros(4), persistent=False),
        lambda: rotary.inv_freq.zero_(),
    ):
        with length_limits.keep_rotary_angles(lm.model):
            change()
            assert buffers(lm) != before
        assert rotary.inv_freq is held and buffers(lm) == before
        with pytest.raises(KeyError), length_limits.keep_rotary_angles(lm.model):
            change()
            raise KeyError
        assert rotary.inv_freq is held and buffers(lm) == before
        assert dict(rotary.named_buffers(recurse=False)).keys() == here.keys()


@pytest.mark.parametrize("rows", [0, -3])
def test_fewer_rows_than_one_are_refused_before_any_work(rows: int) -> None:
    done: list[int | None] = []
    with pytest.raises(InputError, match=f"max_rows is {rows}; give at least 1"):
        shrinking(done.append, rows, lambda: 8)
    assert done == []


def test_rows_are_halved_while_memory_runs_out_and_the_notes_say_so() -> None:
    def work(rows: int | None) -> int:
        if rows is None or rows > 2:
            raise MemoryError("out of memory")
        return rows

    notes: list[str] = []
    assert shrinking(work, None, lambda: 8, notes) == 2
    assert notes == [
        "out of memory with 8 at once; continuing with 4",
        "out of memory with 4 at once; continuing with 2",
    ]


def test_prompts_share_a_prefill_as_far_as_memory_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny("llama"))
    sizes = [prompt_tokens(lm, limit=n) for n in (0, 10**6, 10**7, 10**12)]
    assert sizes[0] == 1 and sizes == sorted(sizes) and sizes[-1] == MAX_TOKENS
    lengths = [3, 9, 5, 8]
    assert list(in_prefills(lm, lengths)) == [[1, 3, 2, 0]]
    monkeypatch.setattr(budget, "free_bytes", lambda _device: 0)
    assert list(in_prefills(lm, lengths)) == [[1], [3], [2], [0]]
    assert list(in_prefills(lm, [])) == []


def test_rows_of_a_suffix_share_a_quarter_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, found = load_model(tiny("llama")), []
    for free in (0, 2**20, 2**22, None):
        monkeypatch.setattr(budget, "free_bytes", lambda _device, free=free: free)
        found.append(budget.suffix_rows(lm, 40, 4))
    assert found[0] == 1 < found[1] < found[2] <= found[3]
    assert found[2] == pytest.approx(4 * found[1], rel=0.2)
    assert budget.row_budget(lm, 1, 40, graph=True) < budget.row_budget(lm, 1, 40, graph=False), (
        "a graph keeps all layers"
    )


def test_a_text_of_exactly_the_length_is_computed_as_shorter_ones(lm: Model) -> None:
    assert computed_alike(lm.model, [TURN, TURN + 1, 3]) == [[0, 2], [1]]


def _model(**config: Any) -> Any:
    text = SimpleNamespace(**config)
    return SimpleNamespace(
        config=SimpleNamespace(get_text_config=lambda decoder=None: text if decoder else SimpleNamespace())
    )


ROPE: dict[str, Any] = {"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 8}}


def test_lengths_from_which_models_compute_otherwise() -> None:
    assert length_limits.limits(_model()) == [] and length_limits.limits(_model(**ROPE)) == [8]
    nested = {"rope_parameters": {"full": ROPE["rope_parameters"], "other": {"rope_type": "default"}}}
    assert length_limits.rotary_limits(_model(**nested)) == [8]
    assert length_limits.limits(_model(layer_types=["chunked_attention"], attention_chunk_size=5)) == [5]
    assert length_limits.limits(_model(attn_temperature_tuning=True, floor_scale=7)) == [6]
    both: dict[str, Any] = {"sliding_window": 4, "attention_chunk_size": 5}
    kinds = ("sliding_attention", "chunked_attention")
    shortest = [length_limits.window_of(_model(**both, layer_types=k)) for k in (kinds, kinds[1:], ("full",))]
    assert shortest == [4, 5, None]
    assert (
        length_limits.keys_chosen(SimpleNamespace()) is None
        and length_limits.keys_chosen(SimpleNamespace(index_topk=4)) == 4
    )
    assert length_limits.keys_chosen(SimpleNamespace(index_topk_blocks=3, index_block_size=5, index_topk=4)) == 15
    assert length_limits.computed_alike(_model(**ROPE), [9, 8, 1, 20]) == [[1, 2], [0, 3]]
    assert length_limits.computed_alike(_model(index_topk=4), [9, 4, 1, 9, 5]) == [[1, 2], [4], [0, 3]]
    length_limits.check_suffix(_model(**ROPE), 2, 7)
    length_limits.check_suffix(_model(**ROPE), 8, 20)
    with pytest.raises(ModelError, match="texts of 8 to 9 tokens"):
        length_limits.check_suffix(_model(**ROPE), 7, 8)


def test_batches_on_both_sides_of_a_length_are_refused() -> None:
    def check(lengths: list[int], width: int, past: int = 0, mask: bool = True, **config: Any) -> None:
        rows = torch.tensor([[int(i < n) for i in range(width + past)] for n in lengths])
        length_limits.check_batch(
            _model(**config), torch.zeros(len(lengths), width, dtype=torch.long), rows if mask else None, past
        )

    check([8, 3], 8, **ROPE)
    check([9, 12], 12, **ROPE)
    check([9], 9, mask=False, **ROPE)
    check([8, 8], 8, mask=False, **ROPE)
    check([3, 9], 9, mask=True)
    check([4, 4], 4, mask=False, index_topk=4)
    check([5, 5], 5, index_topk=4)
    for wrong, said in (
        (([8, 9], 9, 0, True), "texts of 8 to 9"), (([9, 9], 9, 0, False), "without a mask"),
        (([10, 10], 4, 6, True), "run without past"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            check(*wrong, **ROPE)
    for lengths, mask in (([5, 5], False), ([5, 4], True)):
        with pytest.raises(ModelError, match="more than 4 keys"):
            check(lengths, 5, mask=mask, index_topk=4)


def test_budgets_are_shares_of_the_memory_that_one_row_or_token_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    lm: Any = SimpleNamespace(
        anatomy=load_model(tiny("llama")).anatomy, dtype=torch.float16, device=torch.device("cuda"), model=_model()
    )
    monkeypatch.setattr(budget, "_share", lambda device, least: 10_000_000)
    layer = 14 * 32 + 5 * 56 + 3 * 4 * 50
    for graph, decoded, layers in ((True, 0, 3), (False, 0, 2), (False, 6, 2)):
        one = 2 * (layer * layers + 4 * decoded * 3 * 2 * 8) + 16 * 97
        assert budget.row_budget(lm, 7, 50, graph, decoded=decoded) == 10_000_000 // (one * 7)
    kept = 2 * 2 * 8
    for decoded, length_of_cache in ((0, 50), (6, 3 * 56)):
        one = 2 * (5 * (16 * 32 + 4 * 56 + 8 * 50 + kept * 3) + 2 * kept * length_of_cache) + 4 * 97
        assert budget.suffix_rows(lm, 50, 5, decoded=decoded) == 10_000_000 // one
    lm.device = torch.device("cpu")
    assert budget.suffix_rows(lm, 50, 5) == budget.SUFFIX_TOKENS // 5 < 10_000_000 // one
    assert budget.suffix_rows(lm, 1, 300) == budget.SUFFIX_TOKENS // 300
    token = 2 * (3 * kept + 16 * 32 + 4 * 56)
    assert budget.prompt_tokens(lm, limit=4 * token * 10 + 3) == 10 and budget.prompt_tokens(lm, limit=1) == 1
    assert budget.prompt_tokens(lm, limit=10**12) == budget.MAX_TOKENS
    monkeypatch.setattr(budget, "prompt_tokens", lambda lm: 20)
    assert [*budget.in_prefills(lm, [10, 3, 30, 9, 4])] == [[2], [0, 3], [4, 1]]
    lengths = [7, 5, 10, 10, 3]
    assert [*budget.in_prefills(lm, lengths, 20)] == [[2, 3], [0, 1], [4]], "each as wide as its longest"
    assert [*budget.in_prefills(lm, lengths, 1)] == [[2], [3], [0], [1], [4]]
    assert [*budget.in_prefills(lm, lengths, 50)] == [[2, 3, 0, 1, 4]]


@pytest.mark.parametrize(
    ("past", "mask", "refused"),
    [
        (8, [[1, 1, 1, 1], [1, 1, 1, 1]], True),  # texts of 8 tokens, and of 12 with the new ones
        (8, [[0] * 2 + [1] * 10, [0] * 2 + [1] * 10], False),
        (8, [[0] * 2 + [1] * 10, [1] * 12], True),
        (3, [[1, 1, 1, 1], [1, 1, 1, 1]], False),
        (11, [[1, 1, 1, 1], [1, 1, 1, 1]], False),
        (0, [[1] * 12, [1] * 12], False),
        (0, [[1] * 12, [0] * 4 + [1] * 8], True),
    ],
)
def test_a_mask_may_be_that_of_the_new_tokens_alone(
    past: int, mask: list[list[int]], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(length_limits, "rotary_limits", lambda model: [10])
    config = SimpleNamespace(get_text_config=lambda decoder: SimpleNamespace())
    ids = torch.zeros(2, 4 if past else 12, dtype=torch.long)
    with pytest.raises(ModelError, match="more than 10 differently") if refused else nullcontext():
        length_limits.check_batch(SimpleNamespace(config=config), ids, torch.tensor(mask), past)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["mistral", "gemma3", "gpt_oss", "gpt_neo"])
def test_padding_between_tokens_is_refused_where_a_window_would_count_it(name: str) -> None:
    lm, more = load_model(tiny(name)), torch.tensor([[14, 28], [14, 28]])
    ids, mask = lm.pad([LONG, SHORT])
    with pytest.raises(ModelError, match="row 1 has padding between its tokens, which its attention window of 5"):
        lm.run(more, past=lm.prefill(ids, mask))
    short, few = lm.pad([LONG[:3], LONG[:2]])
    for given, real, texts in (
        (short, few, [LONG[:3], LONG[:2]]),  # no longer than the window
        (ids.flip(1), mask.flip(1), [LONG[::-1], SHORT[::-1]]),
    ):
        with torch.no_grad():
            got = lm.run(more, past=lm.prefill(given, real)).logits
            for row, text in enumerate(texts):
                assert torch.allclose(got[row], lm.run(torch.tensor([[*text, 14, 28]])).logits[0, -2:], atol=1e-4)
    few, of_few = lm.pad([[14], [14, 28, 7]])  # the batch is longer than the window, the row with padding is not
    with torch.no_grad():
        got = lm.run(few, of_few, past=lm.prefill(*lm.pad([LONG[:2], LONG[:3]]))).logits
        assert torch.allclose(got[0, 0], lm.run(torch.tensor([[*LONG[:2], 14]])).logits[0, -1], atol=1e-4)
