"""Options, seeds and smaller batches of the probes over labelled examples: each reaches what it is for."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import tiny

from composcope.hooks import Model, load_model
from composcope.probes import neurons
from composcope.probes.catalog import PROBES
from composcope.probes.examples import Example
from composcope.probes.slots import Slot

from .test_over_examples import PROBED, _examples


@pytest.fixture(scope="module")
def lm() -> Model:
    return load_model(tiny("llama"))


OPTIONS: dict[str, dict[str, Any]] = {
    "lookback": {"form": "sum", "steps": 2, "permutations": 30},
    "min-k": {"k": 0.5, "ratios": (0.3,), "question_only": False},
    "trajectory": {"role": "part:0", "alignment": "token", "steps": 1, "eos": (5,), "permutations": 30,
                   "position": "prompt-end"},
    "patching": {"role": "part:0", "max_pairs": 2, "layers": (1,), "max_new_tokens": 2, "controls": (),
                 "position": "prompt-end"},
    "neurons": {"answer_tokens": None, "rule": "gradient", "steps": 4, "t": 0.6, "u": 0.1, "v": 3, "bins": 4,
                "draws": 2, "position": "prompt-end"},
    "readout": {"readers": ("lens",), "strength": 100.0, "permutations": 30},
    "faithfulness": {"donors": 1, "max_new_tokens": 1},
}  # fmt: skip
"""Every option of each probe with another value than its default, less those that leave results as they are."""


@cache
def _optional(probe: str, **option: Any) -> tuple[Any, ...]:
    """What a probe finds; its settings say what was asked for, and do not count."""
    run: Any
    run, examples = PROBED[probe](load_model(tiny("llama")), 3)
    if probe not in ("readout", "faithfulness"):
        examples = [replace(e, slot=Slot(1), answer_ids=(5, 9)) for e in examples]
    found = run(examples, **option)
    return repr(found.table), {k: x.tolist() for k, x in found.tensors.items()}, repr(found.values)


@pytest.mark.parametrize(("probe", "option"), [(probe, name) for probe, of in OPTIONS.items() for name in of])
def test_every_option_of_a_probe_changes_what_it_finds(probe: str, option: str) -> None:
    run: Any = PROBED[probe](load_model(tiny("llama")))[0]
    left = {"lm", "examples", "progress", "seed", "max_tokens", "rows_dtype"}
    assert {*inspect.signature(run.func).parameters} - left == {*OPTIONS[probe]}
    beside = {"alignment": "token"} if option == "eos" else {}  # where end tokens count
    assert _optional(probe, **beside, **{option: OPTIONS[probe][option]}) != _optional(probe, **beside)


@pytest.mark.parametrize("probe", PROBES)
def test_whatever_a_probe_draws_is_drawn_from_its_seed(lm: Model, probe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    def told(make: Callable[..., Any]) -> Callable[..., Any]:
        def seeded(*given: Any) -> Any:
            seed = given[-1]  # of a method, after the generator
            if sys._getframe(1).f_globals["__name__"].startswith("composcope."):  # libraries draw, too
                drawn.append(seed)
            return make(*given)

        return seeded

    monkeypatch.setattr(np.random, "default_rng", told(np.random.default_rng))
    monkeypatch.setattr(random, "Random", told(random.Random))
    generator = type("Told", (torch.Generator,), {"manual_seed": told(torch.Generator.manual_seed)})
    monkeypatch.setattr(torch, "Generator", generator)
    run: Any
    run, examples = PROBED[probe](lm)
    run(examples, seed=4711, **({"controls": ("identity", "random", "noise")} if probe == "patching" else {}))
    assert drawn and {str(seed).partition("/")[0] for seed in drawn} == {"4711"}


MEASURED: dict[str, Callable[[Any, list[Example]], Any]] = {
    "causal check": lambda lm, some: neurons.causal_check(
        lm, [e.prompt_ids for e in some], [e.answer_ids for e in some], [[(1, 3)] for _ in some], draws=2),
    **{probe: lambda lm, some, of=probe: PROBED[of](lm)[0](some) for probe in ("lookback", "min-k", "trajectory",
                                                                               "patching")},
}  # fmt: skip


@pytest.mark.parametrize("probe", MEASURED)
def test_smaller_batches_are_told_to_whoever_asked_for_the_measurement(lm: Model, probe: str) -> None:
    told: dict[str, list[str]] = {}
    most = 70 if probe == "patching" else 40  # positions at once; the ends of all prompts take one pass

    class Worker:
        """Measures here, and brings remarks back."""

        def __getattr__(self, name: str) -> Any:
            return getattr(lm, name)

        def spread(self, measure: Any, items: Any, notes: Any, *, light: bool) -> Any:
            yield from measure(lm, items, told.setdefault(measure.func.__qualname__, []))

        def call(self, function: Any, *args: Any) -> Any:
            return function(lm, *args)

    def full(module: object, args: tuple, kwargs: dict) -> None:
        x = args[0] if args else kwargs["hidden_states"]
        if x.shape[0] * x.shape[1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    handle = lm.anatomy.layers[1].block.register_forward_pre_hook(full, with_kwargs=True)
    try:
        MEASURED[probe](Worker(), _examples(3))
    finally:
        handle.remove()
    told.pop("_prompt_ends", None)
    assert told and all(any("memory" in note for note in notes) for notes in told.values())


@pytest.mark.parametrize("rule", ["gauss-legendre", "gradient"])
def test_smaller_batches_of_neurons_are_told_in_the_result_once_each(
    lm: Model, rule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the integrals, of the estimates beside them and of the causal check."""
    examples = _examples(3)
    expected = neurons.over_examples(lm, examples, rule=rule)
    forward = lm.model.forward

    def small(*args: Any, **kwargs: Any) -> Any:
        out = forward(*args, **kwargs)
        if out.logits.shape[:2].numel() > 40:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return out

    monkeypatch.setattr(lm.model, "forward", small)
    got = neurons.over_examples(lm, examples, rule=rule)
    told = [w for w in got.warnings if w not in expected.warnings]
    assert told and len(set(told)) == len(told) and all("out of memory with" in w for w in told)
