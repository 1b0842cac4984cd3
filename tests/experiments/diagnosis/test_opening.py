"""Which variants are opened, where, and with which donors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError
from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.config import Config
from composcope.experiments.console.printing import Reporter
from composcope.experiments.diagnosis import asks, hypotheses, inside, job, opening, places, weighing
from composcope.experiments.diagnosis.evidence import Tally
from composcope.experiments.models.resolve import ModelSource
from composcope.experiments.models.target import ServedTarget, Target, opened_here

from .told import CASES, MIXED, heard, wrote


def test_donors_are_like_parts_that_are_answered_right_each_about_something_else(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decided(entity: str, gold: int, value: str = "") -> places.Decision:
        return places.Decision((1, 2), gold, value or str(gold), entity, (0,), 2)

    def one(entity: str, gold: int, operation: str = "plus", right: bool = True, value: str = "", family: str = "f",
            ) -> SimpleNamespace:  # fmt: skip
        case = SimpleNamespace(id=entity, family=family, operation=operation, parts=(1, 2))
        return SimpleNamespace(case=case, right=lambda role: right, asks={"whole": None}, preamble=False,
                               made=decided(entity, gold, value))  # fmt: skip

    monkeypatch.setattr(places, "of_whole", lambda engine, ask, case, operand, bare: decided("own", 1))
    monkeypatch.setattr(places, "is_bare", lambda one: False)
    donors = [one("own", 1), one("like", 2), one("like", 2), one("times", 2, "times"), one("wrong", 2, right=False),
              one("same", 1), one("begins alike", 1, value="12"), one("of another family", 2, family="g"),
              one("of another family, too", 1, family="g")]  # fmt: skip
    found = opening._setting(SimpleNamespace(engine=None), one("own", 1), 0, donors, lambda d, *_: d.made, 0)  # type: ignore
    assert found is not None
    assert [d.entity for d in found.foreign] == ["like"] and [d.entity for d in found.same] == ["same"]
    many = [one(f"{gold} {i}", gold) for gold in (1, 2) for i in range(9)]
    drawn = [opening._setting(SimpleNamespace(engine=None), one("own", 1), 0, many, lambda d, *_: d.made, seed)  # type: ignore
             for seed in (0, 0, 1)]  # fmt: skip
    assert [(len(s.foreign), len(s.same)) for s in drawn if s] == [(6, 3)] * 3, "some may not give their own answer"
    assert drawn[0] == drawn[1] != drawn[2]
    behind = SimpleNamespace(**{**vars(donors[0]), "preamble": True})  # its working is not where the response begins
    assert opening._setting(SimpleNamespace(engine=None), behind, 0, donors, lambda d, *_: d.made, 0) is None  # type: ignore
    made = {opening._inputs(SimpleNamespace(who=who), replace(found, answers=(1, n), source=source), seed)  # type: ignore
            for who in "vw" for source in ((), (1,)) for n in (2, 3) for seed in (0, 1)}  # fmt: skip
    assert len(made) == 16


def test_a_failing_variant_is_opened_at_its_first_wrong_operand_or_at_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gold = asks.working(MIXED[2].worked).values
    said = {"first": ("98", gold[1]), "second": (gold[0], "98"), "result": (gold[0], gold[1]), "lost": ("98", "99")}
    some = {id: heard(replace(MIXED[2], id=id), wrote(MIXED[2], *operands)) for id, operands in said.items()}
    some["right"] = heard(replace(MIXED[2], id="right"), {"whole": str(MIXED[2].worked)})
    assert [one.fails for one in some.values()] == [True] * 4 + [False]
    made = places.Decision((1, 2), 1, "7", "oak", (0,), 2)

    def setting(target: Any, one: asks.Heard, operand: int, donors: Any, part: Any, seed: int) -> Any:
        assert (donors, seed) == (["all"], 5)
        return None if one.case.id == "lost" else inside.Setting(one.case.id, made, made, [], operand=operand)

    monkeypatch.setattr(opening, "_setting", setting)
    monkeypatch.setattr(places, "words", lambda tokenizer, decision, text: (len(text),))
    groups: Any = {"a": [some["first"], some["second"], some["right"]], "b": [some["result"], some["lost"]]}
    target, donors = SimpleNamespace(engine=None, tokenizer=None), ["all"]

    def opened(**options: Any) -> dict[str, tuple[int, Sequence[int]]]:
        found = opening.settings(target, groups, donors, 5, **options)  # type: ignore[arg-type]
        return {id: (one.operand, one.source) for id, one in found.items()}

    assert opened() == {"first": (0, ()), "second": (1, ()), "result": (0, ())}
    assert opened(result=True) == {"first": (2, ()), "second": (2, ()), "result": (2, ())}
    copied = {"first": "oak", "second": "o", "lost": "a"}
    told = opened(source=lambda one, operand: copied[one.case.id] + "x" * operand if one.case.id in copied else None)
    assert told == {"first": (0, (3,)), "second": (1, (2,)), "result": (0, ())}


def test_a_variant_is_measured_with_the_answers_of_all_and_weighed_with_its_own_right_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def decided(gold: int, value: str) -> places.Decision:
        return places.Decision((1, gold), gold, value, "oak", (0,), 2)

    some = [heard(replace(MIXED[i], id=f"{i}"), wrote(MIXED[i], "98", "99")) for i in (0, 1, 2)]
    found = {f"{i}": inside.Setting(f"{i}", decided(i, f"v{i}"), decided(i, ""), [decided(7 + i, "")], operand=i)
             for i in (0, 1)}  # fmt: skip
    asked: list[tuple[object, ...]] = []

    def measure(lm: Any, one: inside.Setting, seed: int, held: Any) -> dict[str, str] | None:
        asked.append((one.answers, seed))
        return {"skip:decision:0": "gold"} if one.variant == "0" else None

    monkeypatch.setattr(opening, "measure", measure)
    monkeypatch.setattr(opening, "weigh", lambda groups, fewest: (groups, fewest))
    target: Any = SimpleNamespace(who="w", open_model=lambda: None)
    for _ in range(2):  # nothing is measured twice
        groups: Any = {"a": [some[0], some[2]], "b": [some[1]]}
        got: Any = opening.open_cases(target, groups, found, tmp_path, Reporter(None, quiet=True), 5, fewest=12)
    opened = weighing.Opened({"skip:decision:0": "gold"}, 0, str(MIXED[0].worked), "v0", (1, 0))
    assert got == ({"a": [opened], "b": []}, 12)
    assert asked == [([0, 1, 7, 8], 5)] * 2


def test_cases_of_one_cause_and_source_are_opened_together_and_a_wrong_operation_at_its_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = []

    def source(one: Any, operand: int) -> str | None:
        return None

    def settings(target: Any, some: Any, donors: Any, seed: int, *, result: bool, source: Any) -> str:
        calls.append((list(some), donors, seed, result, source))
        return f"settings {len(calls)}"

    def opened(target: Any, some: Any, found: Any, folder: Path, reporter: Any, seed: int, what: str) -> Any:
        assert (found, folder, seed) == (f"settings {len(calls)}", tmp_path, 3)
        return {id: (what.rpartition(", ")[2], some[id]) for id in some}

    monkeypatch.setattr(opening, "settings", settings)
    monkeypatch.setattr(opening, "open_cases", opened)
    causes = {"a": ("wrong-operation", None), "b": ("shortcut:last-item", source), "c": ("wrong-operation", None),
              "d": ("shortcut:last-item", None)}  # fmt: skip
    groups: Any = {id: [id.upper()] for id in "abcde"}
    found = opening.open_settled(None, groups, causes, ["X"], tmp_path, None, 3)  # type: ignore[arg-type]
    assert found == {id: (cause, [id.upper()]) for id, (cause, _) in causes.items()}
    assert calls == [(["a", "c"], ["X"], 3, True, None), (["b"], ["X"], 3, False, source),
                     (["d"], ["X"], 3, False, None)]  # fmt: skip


def test_of_cases_that_answers_settle_those_are_opened_that_no_text_mends_or_that_need_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: dict[str, tuple[str | None, str | None, bool]] = {
        "unmended": ("format", None, False), "mended": ("format", "neutral", False),
        "to prove": ("wrong-operation", "operands", True), "nothing": (None, None, True),
        "shortcut": ("shortcut:last-item", "neutral", False),
    }  # fmt: skip
    for place, name in enumerate(("named", "mended_by", "to_prove")):
        monkeypatch.setattr(job.rule, name, lambda one, place=place: said[one][place])
    looked: list[Any] = []
    monkeypatch.setattr(job.hypotheses, "copied_from", lambda *given: looked.append(given))
    found = job._settled({id: id for id in said}, ["known"])  # type: ignore[arg-type, misc]
    assert {id: cause for id, (cause, _) in found.items()} == {
        "unmended": "format", "to prove": "wrong-operation", "shortcut": "shortcut:last-item"
    }  # fmt: skip
    assert found["unmended"][1] is None is found["to prove"][1]
    source = found["shortcut"][1]
    assert source is not None
    source(SimpleNamespace(case="case"), "place")  # type: ignore[arg-type]
    assert looked == [("last-item", "case", ["known"], "place")]


@pytest.mark.parametrize(
    ("config", "model", "opened"),
    [
        ({"model": "folder"}, None, "folder"), ({"model": "folder"}, "other", "other"),
        ({"model": "folder", "engine": "vllm"}, None, "folder"),
        ({"model": "m", "engine": "openai", "base_url": "http://h/v1", "probe_model": "w"}, "other", "other"),
        ({"model": "folder", "engine": "ray", "workers": 2}, None, "folder"),
        ({"model": "m@http://h/v1", "probe_model": "w"}, None, "w"),
        ({"model": "m@http://h/v1", "probe_model": "w"}, "other", "other"),
        ({"model": "m@http://h/v1"}, "other", "other"),
        ({"model": "m@http://h/v1"}, None, "--model FOLDER"), (None, "other", "imported"),
    ],
)  # fmt: skip
def test_the_weights_are_opened_here_whoever_answered_and_a_run_without_them_is_refused(
    config: dict[str, Any] | None, model: str | None, opened: str
) -> None:
    made = None if config is None else Config.model_validate({"benchmark": "b", "dtype": "bfloat16", **config})
    data: Any = SimpleNamespace(config=made, path=Path("run"))
    if opened in ("--model FOLDER", "imported"):
        with pytest.raises(InputError, match=f"run: .*{opened}"):
            job._loading(data, model)
        return
    found = job._loading(data, model)
    assert (found.model, found.url, found.engine, found.dtype) == (opened, None, "transformers", "bfloat16")
    assert made is not None and opened_here(made, model, "run", "cuda:1") == replace(found, device="cuda:1")


def test_a_model_that_is_not_here_cannot_be_diagnosed_and_its_reason_is_told() -> None:
    source = ModelSource("m", "m", False)
    here, workers = (Target(source, model, None, None, "chat") for model in ("weights", None))
    served = ServedTarget(source, None, None, None, "chat")
    assert job.cannot("run", here) is None and "composcope diagnose run" in str(job.cannot("run", workers))
    assert "server" in str(job.cannot("run", served))


def test_what_a_hypothesis_of_a_plugin_returns_is_checked() -> None:
    case = CASES[0]
    for said, expected in (("a", ("a",)), (None, ()), (["a", None], ["a", None]), ((), ())):
        assert hypotheses._checked("mine", lambda *_, said=said: said)(case, []) == expected  # type: ignore[arg-type, misc]
    for said in (3, [3], {"a": 1}):
        with pytest.raises(InputError, match=rf"HYPOTHESES\['mine'\] on case '{case.id}'"):
            hypotheses._checked("mine", lambda *_, said=said: said)(case, [])  # type: ignore[arg-type, misc]

    def fails(case: Any, mates: Any) -> Any:
        raise (InputError("own words") if mates else KeyError("x"))

    with pytest.raises(InputError, match=rf"{__file__}: HYPOTHESES.*'{case.id}': KeyError"):
        hypotheses._checked("mine", fails)(case, [])
    with pytest.raises(InputError, match=r"^own words$"):
        hypotheses._checked("mine", fails)(case, [case])


def test_changes_that_mend_are_summed_over_cases_by_name() -> None:
    found = job._sums([{"skip": Tally(1, 4), "move": Tally(0, 3)}, {"skip": Tally(2, 5)}])
    assert found == {"skip": {"count": 3, "n": 9}, "move": {"count": 0, "n": 3}}


def test_the_confidence_in_a_cause_grows_with_the_variants_that_show_it_and_is_never_certain() -> None:
    shown = [(0, 0), (0, 2), (2, 2), (4, 4), (3, 4)]
    assert [job._confidence(Tally(k, n)) for k, n in shown] == [0.5, 0.25, 0.75, 0.83, 0.67]


def test_a_diagnosis_is_estimated_by_its_failures_and_the_size_of_the_model() -> None:
    model = SimpleNamespace(parameters=lambda: [torch.empty(2, 1_000_000, device="meta")])
    target: Any = SimpleNamespace(model=model)
    assert job.estimate(target, CASES[:3]) == pytest.approx(3 * (0.5 + 0.3 * 2))
