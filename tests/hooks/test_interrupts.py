"""Ctrl-C in any line: it is raised, and the model is bit for bit what it was."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor

import composcope
from composcope.hooks import Model, Site, load_model
from composcope.hooks.sites import KINDS
from composcope.interrupts import held, uninterrupted
from composcope.probes import lookback, min_k, neurons, patching, trajectory

from ..tiny_models import tiny

HOME = Path(composcope.__path__[0]).resolve()
OURS = tuple(str(HOME / part) for part in ("hooks", "probes", "evaluation/engines/decoding.py"))
PROMPT, OTHER, RESPONSE = [5, 31, 77, 12, 40], [9, 9, 51], [9, 51]
IDS = torch.tensor([PROMPT])
SAMPLES = 12


@pytest.fixture(autouse=True)
def plain_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the handler is the user's again"
    signal.signal(signal.SIGINT, before)


def everything(model: Any) -> Any:
    weights = [
        (n, x.requires_grad, x.dtype, x.detach().clone())
        for n, x in (*model.named_parameters(), *model.named_buffers())
    ]
    modules = [
        (n, len(m._forward_hooks), len(m._forward_pre_hooks), sorted(m.__dict__), m.training)
        for n, m in model.named_modules()
    ]
    return weights, modules, model.config.to_dict(), model.config._attn_implementation


def same(a: Any, b: Any) -> bool:
    plain = a[1:] == b[1:] and [x[:3] for x in a[0]] == [x[:3] for x in b[0]]
    return plain and all(torch.equal(x[3], y[3]) for x, y in zip(a[0], b[0], strict=True))


def interrupted_at(job: Callable[[], Any], at: int) -> int:
    """Run a job with Ctrl-C at the n-th line of ours that runs; how many ran. Raises what the job raises."""
    seen = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            seen += 1
            if seen == at:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        job()
    finally:
        sys.settrace(before)
    return seen


def jobs(lm: Model, half: bool) -> dict[str, Callable[[], Any]]:
    expert = 0 if lm.anatomy.n_experts else None
    sites = [Site(1, k, expert if k == "neuron" else None) for k in KINDS]  # type: ignore[arg-type]
    edits: dict[Site, Any] = {Site(1, "pattern"): lambda x: x * 0.5, Site(0, "attn_out"): lambda x: x * 2}
    return {
        "read": lambda: lm.run(IDS, read=sites),
        "edit": lambda: lm.run(IDS, edit=edits),
        "neurons": lambda: neurons.attribute_many(lm, [PROMPT], [[30]], 2, rows_dtype="float32" if half else None),
        "lookback": lambda: lookback.ratios(lm, [PROMPT], [RESPONSE], 1),
        "patching": lambda: patching.prompt_end_sweep(lm, [OTHER], [PROMPT], max_new_tokens=2, controls=()),
        "screen": lambda: patching.attribution_patching(lm, [PROMPT], [PROMPT[::-1]], [(4, 9)], verify=1),
        "min-k": lambda: min_k.score(lm, [PROMPT]),
        "trajectory": lambda: trajectory.step_cosines(lm, [PROMPT], [RESPONSE], eos=()),
    }


@pytest.mark.parametrize("job", ["read", "edit", "neurons", "lookback", "patching", "screen", "min-k", "trajectory"])
@pytest.mark.parametrize(("name", "half"), [("llama", True), ("mixtral", False)])
def test_the_model_is_as_before_whichever_line_ctrl_c_falls_into(name: str, half: bool, job: str) -> None:
    model: Any = tiny(name)
    lm = load_model(model.bfloat16() if half else model)
    work = jobs(lm, half)[job]
    work()
    before, logits = everything(model), model(IDS).logits
    lines = interrupted_at(work, -1)
    for at in range(1, lines + 1, max(1, lines // SAMPLES)):
        with pytest.raises(KeyboardInterrupt):
            interrupted_at(work, at)
        assert same(everything(model), before), f"line {at} of {lines}"
        assert lm.computes_in is None
    work()
    assert torch.equal(model(IDS).logits, logits)


@pytest.mark.parametrize("backend", ["transformer_lens", "nnsight"])
def test_libraries_are_left_as_they_were_too(backend: str) -> None:
    pytest.importorskip(backend)
    model = tiny("llama")
    lm = load_model(model, backend=backend)
    work = jobs(lm, False)["read"]
    work()
    before, twin = everything(model), lm.library.bridge.original_model if backend == "transformer_lens" else None  # type: ignore[union-attr]
    rewritten = None if twin is None else everything(twin)
    lines = interrupted_at(work, -1)
    expected = work().acts
    for at in range(1, lines + 1, max(1, lines // SAMPLES)):
        with pytest.raises(KeyboardInterrupt):
            interrupted_at(work, at)
        assert same(everything(model), before) and (twin is None or same(everything(twin), rewritten)), at
    assert all(torch.equal(x, expected[s]) for s, x in work().acts.items())


def _interrupting(seen: list[str]) -> Callable[[Tensor], Tensor]:
    """An edit in which somebody presses Ctrl-C."""

    def edit(x: Tensor) -> Tensor:
        signal.raise_signal(signal.SIGINT)
        seen.append("went on")
        return x

    return edit


def test_ctrl_c_inside_the_model_is_raised_at_once() -> None:
    lm, seen = load_model(tiny("llama")), list[str]()
    with pytest.raises(KeyboardInterrupt):
        lm.run(IDS, edit={Site(0, "resid_post"): _interrupting(seen)})
    assert not seen


def test_what_is_held_waits_and_a_second_ctrl_c_waits_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()
    with pytest.raises(KeyboardInterrupt), held():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")
    assert done == ["all of it"]
    monkeypatch.setattr("composcope.interrupts.IMPATIENT", 0.01)
    with pytest.raises(KeyboardInterrupt), held():
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.02)
        signal.raise_signal(signal.SIGINT)
        done.append("never")
    assert done == ["all of it"]


def test_an_error_on_the_way_in_or_out_lets_ctrl_c_through_again() -> None:
    @uninterrupted
    def broken(where: str) -> Iterator[None]:
        if where == "in":
            raise ValueError(where)
        yield
        raise ValueError(where)

    for where in ("in", "out"):
        with pytest.raises(ValueError, match=where), broken(where):
            pass
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_other_threads_hold_nothing() -> None:
    found = list[Any]()

    def work() -> None:
        with held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_what_is_held_inside_the_model_is_finished_first_and_what_is_closed_ends_before_anything() -> None:
    lm, seen = load_model(tiny("llama")), list[str]()

    def inside(x: Tensor) -> Tensor:
        with held():
            signal.raise_signal(signal.SIGINT)
            seen.append("held")
        return x

    open_to_it = _interrupting(seen)
    with pytest.raises(KeyboardInterrupt):
        lm.run(IDS, edit={Site(0, "resid_post"): inside})
    assert seen == ["held"]
    seen.clear()
    with pytest.raises(KeyboardInterrupt), held(closed=True):
        lm.run(IDS, edit={Site(0, "resid_post"): open_to_it})
        seen.append("the end")
    assert seen == ["went on", "the end"]
    with pytest.raises(KeyboardInterrupt):
        lm.run(IDS, edit={Site(0, "resid_post"): open_to_it})
    assert seen == ["went on", "the end"], "open again"
