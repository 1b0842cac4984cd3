"""What stands around a model and changes its numbers: refused by name, or recorded with the result."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import ModelError
from composcope.hooks import Site, load_model
from composcope.hooks.capture import Request, capture_all
from composcope.hooks.numerics import check_unmasked, foreign_hooks, numerics, unwrapped
from composcope.terminal import quietly, reached, silent, stage, tick

from ..tiny_models import tiny

IDS = torch.tensor([[7, 8, 9, 10], [3, 3, 9, 10]])
MASK = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])


def _tokenizer(pad: int | None, bos: int | None = None, eos: int | None = None) -> Any:
    return SimpleNamespace(pad_token_id=pad, bos_token_id=bos, eos_token_id=eos)


@pytest.mark.parametrize(
    ("tokenizer", "ids", "refused"),
    [
        (_tokenizer(3), IDS, "row 1 begins with 2 pad tokens (3)"),
        (_tokenizer(3, bos=3), IDS, "row 1 begins with 2 pad tokens (3)"),
        (_tokenizer(3), IDS[:, 1:], "row 1 begins with 1 pad tokens (3)"),
        (_tokenizer(3, eos=3), IDS[:, 1:], None),
        (_tokenizer(3, bos=3), IDS[:, 1:], None),
        (_tokenizer(None), IDS, None),
        (_tokenizer(5), IDS, None),
        (None, IDS, None),
    ],
)
@pytest.mark.parametrize("name", ["run", "prefill"])
def test_padding_on_the_left_without_a_mask_is_refused(
    tokenizer: Any, ids: torch.Tensor, refused: str | None, name: str
) -> None:
    lm = load_model(tiny("llama"), tokenizer)
    if refused is None:
        getattr(lm, name)(ids)
        return
    with pytest.raises(ModelError) as error:
        getattr(lm, name)(ids)
    assert refused in str(error.value) and "mask" in str(error.value)


def test_padding_on_the_left_with_a_mask_gives_the_numbers_of_the_row_alone() -> None:
    lm = load_model(tiny("llama"), _tokenizer(3))
    with torch.no_grad():
        both, alone = lm.run(IDS, MASK).logits[1, 2:], lm.run(IDS[1:, 2:]).logits[0]
    torch.testing.assert_close(both, alone, atol=1e-5, rtol=1e-5)
    later = lm.run(IDS[1:, :2], past=lm.prefill(IDS[1:, 2:]))
    assert later.logits.shape[1] == 2, "what pads a beginning is text after earlier tokens"


def _runs(lm: Any) -> list[Callable[[], Any]]:
    return [
        lambda: lm.run(IDS[:1]),
        lambda: lm.prefill(IDS[:1]),
        lambda: lm.read_trunk(IDS[:1], [Site(0, "head")]),
        lambda: capture_all(lm, [Request([7, 8, 9])]),
    ]


def test_autocast_is_refused_by_name_wherever_the_model_runs() -> None:
    lm = load_model(tiny("llama"))
    for run in _runs(lm):
        with torch.autocast("cpu", torch.bfloat16), pytest.raises(ModelError, match=r"autocast.*bfloat16"):
            run()
        run()


def _compile_forward(model: Any) -> None:
    model.forward = torch.compile(model.forward, backend="eager")


def _compile_block(model: Any) -> None:
    model.model.layers[1] = torch.compile(model.model.layers[1], backend="eager")


@pytest.mark.parametrize(
    ("compiled", "named"),
    [
        (lambda model: model.compile(backend="eager"), "LlamaForCausalLM is compiled"),
        (lambda model: model.model.layers[1].compile(backend="eager"), r"model\.layers\.1 is compiled"),
        (_compile_block, r"model\.layers\.1 is compiled"),
        (_compile_forward, "LlamaForCausalLM is compiled"),
    ],
)
def test_a_model_compiled_in_place_is_refused_since_its_hooks_would_not_run(
    compiled: Callable[[Any], None], named: str
) -> None:
    model = tiny("llama")
    lm = load_model(model)
    compiled(model)
    for run in (*_runs(lm), lambda: load_model(model)):
        with pytest.raises(ModelError, match=named):
            run()


def test_a_part_that_is_kept_from_being_compiled_is_not_taken_for_a_compiled_one() -> None:
    model = tiny("llama")
    block = model.model.layers[1]
    block.forward = torch.compiler.disable(block.forward)
    for run in _runs(load_model(model)):
        run()


def test_outputs_without_names_are_refused_with_the_setting_to_change() -> None:
    model = tiny("llama")
    lm = load_model(model)
    model.config.return_dict = False
    for run in _runs(lm):
        with pytest.raises(ModelError, match=r"config\.return_dict"):
            run()
    with pytest.raises(ModelError, match=r"config\.return_dict"):
        load_model(model)
    model.config.return_dict = True
    lm.run(IDS[:1])


def steer(_module: Any, _args: Any, output: Any, by: float = 1.0) -> Any:
    return (output[0] + by, *output[1:]) if isinstance(output, tuple) else output + by


class Watcher:
    def __call__(self, *_: Any) -> None:
        return None


def test_hooks_of_others_stand_in_the_result_and_in_the_manifest() -> None:
    lm = load_model(tiny("llama"))
    plain = lm.run(IDS[:1], read=[Site(0, "head")])
    assert plain.hooks == () and numerics(lm.model) == {
        "dtype": "float32", "device": "cpu", "device_name": "cpu", "tf32": torch.backends.cuda.matmul.allow_tf32,
        "attention": "sdpa", "threads": torch.get_num_threads(),
    }  # fmt: skip
    block, mlp = lm.anatomy.layers[1].block, lm.model.model.layers[0].mlp  # type: ignore[union-attr]
    handles = [
        block.register_forward_hook(functools.partial(steer, by=2.0)),
        mlp.register_forward_pre_hook(Watcher()),
        mlp.register_full_backward_hook(lambda *_: None),
    ]
    steered = lm.run(IDS[:1], read=[Site(0, "head")])
    assert not torch.equal(steered.logits, plain.logits)
    told = [(h.split(":")[0], h.split()[1], h.split()[3].split(".")[-1]) for h in steered.hooks]
    assert told == [
        ("model.layers.0.mlp", "forward-pre", "Watcher"),
        ("model.layers.0.mlp", "backward", "<lambda>"),
        ("model.layers.1", "forward", "steer"),
    ]
    assert all(h.endswith(f"of {__name__}") for h in steered.hooks)
    assert numerics(lm.model)["hooks"] == list(steered.hooks)
    for handle in handles:
        handle.remove()
    assert lm.run(IDS[:1]).hooks == ()


def test_a_hook_on_every_module_and_a_replaced_forward_stand_in_the_result() -> None:
    lm = load_model(tiny("llama"))
    plain = lm.run(IDS[:1])
    mlp = lm.model.model.layers[0].mlp  # type: ignore[union-attr]

    def louder(x: Any, inner: Any = mlp.forward) -> Any:
        return 2 * inner(x)

    mlp.forward = louder
    handle = torch.nn.modules.module.register_module_forward_hook(Watcher())
    try:
        changed = lm.run(IDS[:1])
    finally:
        handle.remove()
    assert not torch.equal(changed.logits, plain.logits)
    watched, replaced = changed.hooks
    assert watched == f"every module: forward hook Watcher of {__name__}"
    assert replaced.startswith("model.layers.0.mlp: forward is ") and replaced.endswith(f"louder of {__name__}")
    del mlp.forward
    assert lm.run(IDS[:1]).hooks == ()


def test_partial_hooks_of_libraries_are_theirs() -> None:
    module = torch.nn.Linear(1, 1)
    hook: Any = functools.partial(torch.nn.init.ones_)
    module.register_forward_hook(hook)
    assert foreign_hooks(module) == ()


def test_wrappers_in_wrappers_are_opened_and_each_is_said() -> None:
    inside, notes = unwrapped(SimpleNamespace(_orig_mod=SimpleNamespace(_orig_mod=7)))
    assert inside == 7 and len(notes) == 2


class Begins:
    bos_token_id, pad_token_id, eos_token_id = 1, 0, 2

    def __call__(self, text: str) -> Any:
        return SimpleNamespace(input_ids=[1, *(1 if c == "^" else ord(c) - 90 for c in text)])


def test_a_text_that_begins_with_the_first_token_in_writing_gets_no_second_one() -> None:
    assert load_model(tiny("llama"), Begins()).tokens(["^ab", "a", "a^"]).tolist() == [[1, 7, 8], [1, 7, 0], [1, 7, 1]]


def test_prompts_to_continue_are_texts_or_token_ids_and_one_prompt_of_ids_alone_is_refused() -> None:
    lm = load_model(tiny("llama"), Begins())
    texts = ["^ab", "a"]
    expected = lm.generate([[1, 7, 8], [1, 7]], 3, stop_ids=[])
    assert lm.generate(texts, 3, stop_ids=[]) == expected
    assert lm.generate(texts[0], 3, stop_ids=[]) == lm.generate(lm.tokens(texts[0]), 3, stop_ids=[]) == expected[:1]
    with pytest.raises(ModelError, match="list of prompts"):
        lm._rows([1, 7])


@pytest.mark.parametrize(
    ("row", "pad", "bos", "refused"),
    [([0, 5], 0, 1, True), ([0, 5], 0, 0, False), ([0, 0, 5], 0, 0, True), ([5, 0], 0, 1, False),
     ([0, 5], None, 1, False)],
)  # fmt: skip
def test_padding_in_front_is_text_only_where_texts_begin_with_it(
    row: list[int], pad: int | None, bos: int, refused: bool
) -> None:
    tokenizer = SimpleNamespace(pad_token_id=pad, bos_token_id=bos, eos_token_id=9)
    ids = torch.tensor([[5] * len(row), row])
    if refused:
        with pytest.raises(ModelError, match="row 1 begins with"):
            check_unmasked(ids, tokenizer)
    else:
        check_unmasked(ids, tokenizer)


def test_bars_stay_unwanted_in_all_that_is_called_quietly() -> None:
    with quietly(False):
        assert not silent()
        with quietly(True), quietly(False):
            assert silent()
        assert not silent()


def test_progress_never_runs_backwards_or_over() -> None:
    seen: list[float] = []

    tick(5)
    with stage(lambda title, total: contextlib.nullcontext(seen.append), "t", 4):
        tick(1)
        reached(3)
        reached(2)
        tick(0.5)
        tick(9)
    reached(9)
    assert seen == [1, 2, 0.5, 0.5]
    outer: list[float] = []
    with stage(lambda title, total: contextlib.nullcontext(outer.append), "t", 9):
        tick(1)
        with stage(lambda title, total: contextlib.nullcontext(seen.append), "t", 4):
            tick(2)
        tick(3)
    tick(1)
    assert outer == [1, 3] and seen[4:] == [2], "a stage inside another moves its own bar"
