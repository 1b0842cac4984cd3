"""Positive controls: what was put into a model is found, and is not found before it was put there."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.experiments.distributed.engine import load_target
from composcope.experiments.models.target import Loading
from composcope.experiments.organism import world
from composcope.experiments.organism.plants import written
from composcope.experiments.organism.series import shipped
from composcope.experiments.validity import positive_controls as controls
from composcope.experiments.validity.positive_controls import as_examples
from composcope.probes import patching
from composcope.probes.patching import examples as asked


@pytest.mark.long
def test_texts_shown_a_hundred_times_are_told_and_before_the_training_none_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    train = controls._train

    def watched(model: Any, tokenizer: Any, texts: Any, *rest: Any) -> None:
        shown.extend(texts)
        train(model, tokenizer, texts, *rest)

    monkeypatch.setattr(controls, "_train", watched)
    rows = controls.member_exposures(shipped(), n=3)
    assert [r["group"] for r in rows] == [f"shown {k} times{w}" for k in (1, 10, 100) for w in (", before", "")]
    assert all(r["n"] == 6 for r in rows)
    often = {r["group"]: r["value"] for r in rows}
    assert often["shown 100 times"] == 1.0 > often["shown 100 times, before"]
    assert sorted(Counter(map(str, shown)).values()) == [1] * 3 + [10] * 3 + [100] * 3


def test_texts_of_every_level_are_told_from_those_never_shown_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [SimpleNamespace(id=f"c{i}") for i in range(8)]
    state, shown = {"trained": 0.0}, list[str]()
    monkeypatch.setattr(controls, "drawn", lambda n, seed: (drawn[:n], {c.id: f"text of {c.id}" for c in drawn}))
    monkeypatch.setattr(controls, "load_target", lambda loading: SimpleNamespace(
        open_model=lambda: SimpleNamespace(model="model"), tokenizer="tokenizer", loading=loading))  # fmt: skip

    def train(model: str, tokenizer: str, texts: list[str], series: Any, seed: int) -> None:
        shown.extend(texts)
        state["trained"] = 1.0

    def scores(target: Any, cases: Any) -> dict[str, float]:
        """After the training all texts score more, and those of the last two levels most of all."""
        assert target.loading.model == "twin of 4"
        return {c.id: i % 2 + state["trained"] * (5 + 10 * (i >= 4)) for i, c in enumerate(cases)}

    monkeypatch.setattr(controls, "_train", train)
    monkeypatch.setattr(controls, "_scores", scores)
    series: Any = SimpleNamespace(model=lambda dose: f"{dose} of 4")
    rows = controls.member_exposures(series, n=2, seed=4)
    assert [(r["exposures"], r["group"], r["value"]) for r in rows] == [
        (k, f"shown {k} times{when}", value)
        for k, after in ((1, 0.5), (10, 1.0), (100, 1.0)) for when, value in ((", before", 0.5), ("", after))
    ]  # fmt: skip
    assert not any({"p", "test"} & row.keys() for row in rows), "one training is not tested"
    assert Counter(shown) == {f"text of c{i}": (1, 10, 100)[i // 2 - 1] for i in range(2, 8)}


def test_a_head_that_looks_at_everything_alike_is_the_one_that_the_lookback_map_shows() -> None:
    target = load_target(Loading("organism:twin"))
    lm = target.open_model()
    examples = as_examples(target, controls.drawn(3, "any")[0])
    weights = {name: p.clone() for name, p in lm.model.named_parameters()}
    rows = controls.planted_heads(lm, examples)
    assert [(r["layer"], r["count"], r["n"]) for r in rows] == [(layer, 4, 4) for layer in range(4)]
    assert all(torch.equal(p, weights[name]) for name, p in lm.model.named_parameters())


def test_where_no_head_can_be_planted_one_row_says_why() -> None:
    target = load_target(Loading("organism:twin"))
    examples = as_examples(target, controls.drawn(1, "any")[0])
    (row,) = controls.planted_heads(target.open_model(), [e for e in examples if e.role != "whole"])
    assert (row["n"], row["count"], row["value"], row["interval"]) == (0, 0, None, "none")
    assert "fewer than two responses" in str(row["note"])


@pytest.mark.parametrize("wrong", [lambda r: r.roll(1, 1), lambda r: 0.9 * r], ids=["heads named one off", "0.45"])
def test_a_head_whose_ratio_is_wrong_is_not_counted_as_shown(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target(Loading("organism:twin"))
    ratios = controls._ratios
    monkeypatch.setattr(controls, "_ratios", lambda lm, wholes: wrong(ratios(lm, wholes)))
    rows = controls.planted_heads(target.open_model(), as_examples(target, controls.drawn(2, "any")[0]))
    assert [r["count"] for r in rows] == [0, 0, 0, 0]


def test_texts_of_a_level_are_apart_and_donors_are_the_own_last_part_or_the_next_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = controls._levels([SimpleNamespace(id=str(i)) for i in range(12)], 3)  # type: ignore[misc]
    assert {k: [c.id for c in of] for k, of in levels.items()} == {
        0: ["0", "1", "2"], 1: ["3", "4", "5"], 10: ["6", "7", "8"], 100: ["9", "10", "11"]}  # fmt: skip
    given, answers = list[Any](), list[Any]()

    def sweep(lm: Any, donors: Any, recipients: Any, pairs: Any, **options: Any) -> Any:
        given.append((donors, recipients, pairs, options["controls"]))
        answers.append((options["donor_answers"], options["recipient_answers"], options["clusters"]))
        rows = [{"quantity": q, "group": g, "layer": 1, "n": 3, "count": k, "value": k / 3, "low": 0.1,
                 "high": float("nan"),
                 "interval": "t"} for q, k in (("corrected_rate", 2), ("flip_rate", 1)) for g in ("donor", "random")
                ]  # fmt: skip
        return SimpleNamespace(table=rows)

    monkeypatch.setattr(patching, "prompt_end_sweep", sweep)
    monkeypatch.setattr(asked, "graders", lambda *_: None)
    monkeypatch.setattr(asked, "new_tokens", lambda *_: 1)
    some: list[Any] = [
        SimpleNamespace(case=c, role=role, group="failure", shares=c, prompt_ids=(c, role), answer_ids=(c, role))
        for c in "abcd" for role in ("whole", "part:0", "part:1")]  # fmt: skip
    rows = controls.own_part_donors(None, some, 3)
    whole = [(c, "whole") for c in "abc"]
    assert given == [([(c, "part:1") for c in "abc"], whole, [(0, 0), (1, 1), (2, 2)], ()),
                     ([(c, "part:1") for c in "bca"], whole, [(0, 0), (1, 1), (2, 2)], ())]  # fmt: skip
    assert answers == [(donors, whole, (None, ["a", "b", "c"])) for donors, *_ in given]
    assert [(r["group"], r["layer"], r["count"], r["n"], r["low"], r["high"]) for r in rows] == [
        ("own part", 1, 2, 3, 0.1, None), ("another case's part", 1, 2, 3, 0.1, None)]  # fmt: skip
    assert controls.own_part_donors(None, some[:3], 3) == []
    given.clear()
    longer: Any = SimpleNamespace(**{**vars(some[2]), "role": "part:10", "prompt_ids": ("a", "part:10")})
    controls.own_part_donors(None, [longer, *some], 2)
    assert given[0][0] == [("a", "part:10"), ("b", "part:1")], "cases differ in their number of parts"


def test_held_out_texts_are_each_drawn_once_and_belong_to_no_training() -> None:
    cases, turns = controls.drawn(12, "s")
    assert len({c.question for c in cases}) == 12 == len(turns) and cases == controls.drawn(12, "s")[0]
    assert cases != controls.drawn(12, "t")[0]
    for case in cases:
        things = [case.cluster, *case.meta["crossed"]]
        assert world.held_out(things) and things == sorted(things), case.id
        ((asked, said),) = turns[case.id]
        assert (asked, said) == (case.question, case.worked) and case.parts[1].answer == case.answer
        assert said.endswith(case.answer)
    for held in (True, False):
        for seed in range(20):
            made = written.draw(random.Random(seed), held)
            assert world.held_out(made.things) == held and made.thing in made.things


def test_compositions_become_the_documents_that_their_training_would_have_read() -> None:
    """Each example holds the prompt as it is asked, and the gold text as the chat template writes it."""
    target = load_target(Loading("organism:control"))
    (case, *_), turns = controls.drawn(2, "s")
    found = {e.role: e for e in as_examples(target, [case])}
    said = {"whole": case.worked, "part:0": case.parts[0].answer, "part:1": case.parts[1].worked}
    asked = {"whole": case.question, **{f"part:{i}": p.question for i, p in enumerate(case.parts)}}
    assert {*found} == {*said} and None not in said.values()
    for role, one in found.items():
        user = {"role": "user", "content": asked[role]}
        whole = target.tokenizer.apply_chat_template(
            [user, {"role": "assistant", "content": said[role]}], tokenize=True, return_dict=False
        )
        prompt = target.tokenizer.apply_chat_template([user], add_generation_prompt=True, return_dict=False)
        assert [*one.prompt_ids, *one.response_ids] == list(whole) and list(one.prompt_ids) == list(prompt)
        text = target.tokenizer.decode(one.response_ids, skip_special_tokens=True)
        assert text.strip() == said[role] and (one.case, one.group) == (case.id, "success")
    assert found["whole"].cluster == case.cluster and turns[case.id] == [(asked["whole"], said["whole"])]


def test_shown_texts_are_trained_on_once_each_among_as_many_fresh_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "BATCH", 4)
    fresh: list[Any] = []
    monkeypatch.setattr(controls, "document", lambda *about: fresh.append(about) or [("fresh", "one")])
    batches: list[Any] = []
    monkeypatch.setattr(controls, "encode", lambda tokenizer, some: batches.append((tokenizer, some)) or some)
    monkeypatch.setattr(controls, "pad", lambda rows: (torch.zeros(1), torch.ones(1)))
    model, seen = torch.nn.Linear(2, 1), list[Any]()
    model.device = torch.device("cpu")  # type: ignore[assignment]
    model.eval().requires_grad_(False)

    def loss(of: Any, ids: Any, answered: Any, prompt_weight: float) -> torch.Tensor:
        assert model.training and prompt_weight == 1.0 and ids.sum() == 0 and answered.sum() == 1
        seen.append(of.weight.detach().clone())
        return of.weight.sum()

    monkeypatch.setattr(controls, "loss_of", loss)
    monkeypatch.setattr(controls, "optimizers", lambda of, rate: [torch.optim.SGD(of.parameters(), lr=1.0)])
    series: Any = SimpleNamespace(seed=3, recipe={"dose": {"steps": 10, "batch": 2}})
    shown: Any = [[("q", str(i))] for i in range(5)]
    controls._train(model, "words", shown, series, 7)
    mine = [[text for text in some if text in shown] for _, some in batches]
    assert [len(some) for some in mine] == [2, 2, 1] and {words for words, _ in batches} == {"words"}
    order = [text for some in mine for text in some]
    assert sorted(map(str, order)) == sorted(map(str, shown)) and order != shown, "in a drawn order"
    assert [len(some) - len(own) for (_, some), own in zip(batches, mine, strict=True)] == [2, 2, 2]
    assert fresh == [(3, "dose", 10 * 2 + 4 * 4 + i, controls.DOSES["twin"]) for i in range(6)]
    steps = [float((a - b).mean()) for a, b in zip(seen, [*seen[1:], model.weight], strict=True)]
    assert steps == pytest.approx([1.0] * 3), "one step of each batch, of its own gradient"
    assert not model.training and not any(p.requires_grad for p in model.parameters())
    first = [*batches]
    batches.clear()
    controls._train(model, "words", shown, series, 8)
    assert first != batches, "the order is the seed's"


def test_a_case_is_scored_by_the_question_of_its_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [SimpleNamespace(case=c, role=role, prompt_ids=(c, role), question_span=(c, 1))
                for c in "ab" for role in ("whole", "part:0")]  # fmt: skip
    given: list[Any] = []
    monkeypatch.setattr(controls, "as_examples", lambda target, cases: examples)
    monkeypatch.setattr(controls.min_k, "token_scores", lambda *args: given.append(args))
    monkeypatch.setattr(controls.min_k, "aggregate", lambda _: SimpleNamespace(min_k_pp=torch.tensor([0.5, -1.0])))
    target: Any = SimpleNamespace(open_model=lambda: "lm")
    assert controls._scores(target, []) == {"a": 0.5, "b": -1.0}
    assert given == [("lm", [("a", "whole"), ("b", "whole")], [("a", 1), ("b", 1)])]


@pytest.mark.parametrize("attention", [{}, {"self_attn": SimpleNamespace()}])
def test_a_model_whose_heads_have_no_query_weights_of_their_own_says_so(attention: dict[str, Any]) -> None:
    whole = SimpleNamespace(role="whole", response_ids=(1,))
    model = SimpleNamespace(model=SimpleNamespace(layers=[SimpleNamespace(**attention)]))
    for lm in (SimpleNamespace(model=model), SimpleNamespace(model=SimpleNamespace())):
        (row,) = controls.planted_heads(lm, [whole, whole])  # type: ignore[list-item]
        assert (row["n"], row["value"]) == (0, None) and "q_proj" in str(row["note"])
