"""Readouts on states that are known to hold a name, and on states that are known not to."""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import tiny

from composcope.errors import InputError, NoCasesError
from composcope.hooks import Site, load_model
from composcope.hooks.edits import residual
from composcope.hooks.interchange import states
from composcope.probes.examples import Example
from composcope.probes.readout import Reading, Scores, lens, over_examples, patchscope
from composcope.probes.readout import examples as readout_examples
from composcope.probes.readout.examples import _departure, _entity, _named, _rows, _within, collect_readings, upper
from composcope.probes.readout.examples import _places as readout_places
from composcope.probes.readout.readings import (
    PartPrompt,
    _read,
    _said,
    elsewhere,
    lens_by_token,
    name_tokens,
    repeating_prompt,
    ridge,
)
from composcope.probes.readout.readings import entity_vectors as vectors_of
from composcope.probes.result import ProbeResult
from composcope.probes.slots import Slot
from composcope.probes.spread import InDtype

from .synthetic_readouts import NAME, N, examples, planted, tokenizer


def value(result: ProbeResult, quantity: str, group: str, place: str = "entity", foils: str = "absent") -> float:
    wanted = {"quantity": quantity, "group": group, "kind": "bridge", "place": place, "foils": foils}
    (row,) = [r for r in result.table if wanted.items() <= r.items()]
    return row["value"]


def test_a_bridge_that_only_successes_hold_is_found_in_them_alone(tmp_path: Path) -> None:
    got = over_examples(planted(lambda i: i % 2 == 1), examples(), readers=["lens"], permutations=200)
    assert value(got, "held_lens", "success") > 0.9
    assert 0.3 < value(got, "held_lens", "failure") < 0.7
    assert value(got, "held_lens", "failure - success") < -0.3
    assert got.settings["places"] == ["entity", "question-end", "prompt-end", "answer-slot"]
    wholes = got.tensors["wholes.lens"][1::2, 0]  # the bridges, where the entity stands
    for first, group in enumerate(("failure", "success")):
        assert float(wholes[first::2].mean()) == pytest.approx(value(got, "held_lens", group))
    maps = got.tensors["lens.absent.bridge.success"]
    assert maps.shape == (4, 4) and got.axes["lens.absent.bridge.success"] == ("layer", "place")
    assert float(maps[:, 0].min()) > 0.9
    assert float(got.tensors["lens.absent.p.bridge"][:, 0].max()) < 0.05
    got.save(tmp_path / "readout")
    assert (tmp_path / "readout" / "table.csv").is_file()


def test_a_reader_trained_on_other_parts_finds_what_is_held_and_nothing_else() -> None:
    held = over_examples(planted(lambda _: True), examples(), readers=["ridge"], permutations=50)
    none = over_examples(planted(lambda _: False), examples(), readers=["ridge"], permutations=50)
    for group in ("failure", "success"):
        assert value(held, "held_ridge", group) > 0.8
        assert 0.3 < value(none, "held_ridge", group) < 0.7  # also at layer 0, where a source could be recognised


def test_the_penalty_that_is_given_is_that_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def ridge(*_: object, strength: float = 1.0) -> list[Scores]:
        given.append(strength)
        raise NoCasesError("enough")

    monkeypatch.setattr("composcope.probes.readout.examples.ridge", ridge)
    ways: list[dict[str, Any]] = [{}, {"strength": 30.0}]
    for how in ways:
        assert (
            over_examples(planted(lambda _: True), examples(), readers=["ridge"], **how).settings["strength"] in given
        )
    assert given == [1.0, 30.0]


def test_a_name_begins_with_a_token_of_its_own_within_a_sentence_and_at_the_start_of_a_line() -> None:
    words = {" Oslo": [9, 4], "Oslo": [5, 4], " ": [9], " Rome": [6], "Rome": [6]}
    shown = {9: " ", 4: "Oslo", 5: "Os", 6: "Rome"}

    class Tokenizer:
        def __call__(self, text: str, **_: object) -> SimpleNamespace:
            return SimpleNamespace(input_ids=words.get(text, [9]))

        def decode(self, ids: list[int]) -> str:
            return shown[ids[0]]

    assert name_tokens(Tokenizer(), "Oslo") == (4, 5), "a space is no beginning"
    assert name_tokens(Tokenizer(), "Rome") == (6,)
    with pytest.raises(InputError, match="tokenizes to nothing"):
        name_tokens(Tokenizer(), "?")


def test_states_that_do_not_differ_say_nothing() -> None:
    vectors = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    got = _read(torch.ones(2, 6, 3), vectors, torch.ones(2, 1, 3), vectors, 1.0)
    assert torch.equal(got, torch.zeros(2, 1, 6))


def test_what_all_names_have_in_common_says_nothing() -> None:
    train, test, vectors = (torch.randn(*shape, generator=torch.Generator().manual_seed(n)) for n, shape in enumerate(
        ((2, 6, 3), (2, 5, 3), (7, 4))))  # fmt: skip
    got = _read(train, vectors[:6], test, vectors, 1.0)
    assert got.std() > 0.1 and torch.allclose(_read(train, vectors[:6] + 9, test, vectors + 9, 1.0), got, atol=1e-4)


def test_a_row_of_a_map_has_its_layer_as_sites_count_them_and_the_name_of_its_place() -> None:
    assert _named({"layer": 0, "place": 1, "n": 3}, ["entity", "end"]) == {"layer": -1, "place": "end", "n": 3}
    assert _named({"n": 3}, []) == {"n": 3}


def test_failures_alone_depart_from_the_gold_answer() -> None:
    e = replace(examples()[0], response_ids=(3, 5), answer_ids=(3, 4, 1))
    assert [_departure(replace(e, group=group)) for group in ("failure", "success")] == [1, None]


def test_shuffled_names_are_held_by_chance() -> None:
    lm, shuffled = planted(lambda _: True), torch.randperm(N, generator=torch.Generator().manual_seed(5)).tolist()
    entities = {f"n{i}": (NAME + i,) for i in range(N)}
    for right, expected in ((list(range(N)), (0.95, 1.0)), (shuffled, (0.3, 0.7))):
        readings = [
            Reading(
                e.prompt_ids, {"entity": (3,), "start": (0,)}, "bridge", f"n{r}", [n for n in entities if n != f"n{r}"]
            )
            for e, r in zip([e for e in examples() if e.role == "whole"], right, strict=True)
        ]
        above = [s.above(r.right, r.absent) for r, s in zip(readings, lens(lm, readings, entities), strict=True)]
        found = torch.stack(above).mean((0, 1))  # place
        assert expected[0] <= float(found[0]) <= expected[1]
        assert float(found[1]) == 0.5  # all texts begin alike, so nothing is told apart


def test_of_several_positions_the_lens_takes_the_highest_and_of_several_beginnings_the_likeliest() -> None:
    lm, ids = load_model(tiny("llama")), (1, 40, 12, 77, 5)
    tokens = {"a": (9,), "b": (31,), "c": (50,)}

    def scores(places: dict[str, tuple[int, ...]], entities: dict[str, tuple[int, ...]]) -> torch.Tensor:
        return lens(lm, [Reading(ids, places, "bridge", "a")], entities, centred=False)[0].values

    each = scores({str(i): (i,) for i in range(5)}, tokens)  # layer place name
    both = scores({"first": (0,), "some": (1, 2, 4)}, tokens)
    torch.testing.assert_close(both, torch.stack([each[:, 0], each[:, [1, 2, 4]].amax(1)], 1))
    joint = scores({"last": (4,)}, {"a": (9, 31), "c": (50,)})[:, 0]
    torch.testing.assert_close(joint[:, 0] - joint[:, 1], each[:, 4, :2].amax(-1) - each[:, 4, 2])


def test_of_several_positions_of_a_place_ridge_reads_the_last_in_training_and_in_the_text() -> None:
    lm, entities = planted(lambda _: True), {f"n{i}": (NAME + i,) for i in range(N)}
    wholes, alone = ([e for e in examples() if (e.role == "whole") == whole][:8] for whole in (True, False))

    def scores(trained: tuple[int, ...], read: tuple[int, ...]) -> torch.Tensor:
        parts = [PartPrompt(e.prompt_ids, {"p": trained}, f"n{i}") for i, e in enumerate(alone)]
        readings = [Reading(e.prompt_ids, {"p": read}, "bridge", f"n{i}") for i, e in enumerate(wholes)]
        return torch.stack([s.values for s in ridge(lm, readings, parts, entities)])

    wanted = scores((2,), (3,))
    torch.testing.assert_close(scores((0, 1, 2), (1, 3)), wanted)
    assert not torch.allclose(scores((1,), (3,)), wanted) and not torch.allclose(scores((2,), (1,)), wanted)


def test_a_name_has_the_mean_of_the_rows_of_its_beginnings() -> None:
    lm = load_model(tiny("llama"))
    weight = lm.unembedding.head.weight
    found = vectors_of(lm, {"one": [3, 7, 9], "other": [5]})
    torch.testing.assert_close(found, torch.stack([weight[[3, 7, 9]].mean(0), weight[5]]))


def test_names_in_the_question_are_foils_of_their_own() -> None:
    got = over_examples(planted(lambda _: True), examples(in_prompt=True), readers=["lens"], permutations=50)
    assert {r["foils"] for r in got.table} == {"absent", "in-prompt"}
    assert value(got, "held_lens", "success", foils="in-prompt") > 0.9
    for _, r in collect_readings(tokenizer(), examples(in_prompt=True)).readings:
        assert len(r.in_prompt) == 1 and len({*r.absent, *r.in_prompt, r.right}) == len(r.absent) + 2 == N


@pytest.mark.parametrize(("small", "left_out"), [(2, 4), (3, 0)])
def test_readings_with_too_few_similar_names_of_a_family_are_left_out_and_counted(small: int, left_out: int) -> None:
    given = [replace(e, family="small") if int(e.case[1:]) < small else e for e in examples()]
    got = collect_readings(tokenizer(), given)
    counts = [n.split()[:2] for n in got.notes if "readings" in n]
    assert len(got.readings) == 2 * N - left_out and counts == [[str(left_out), "readings"]] * bool(left_out)
    reworded = [replace(e, role=f"{e.role}:paraphrase:0") for e in given if e.role == "part:0"]
    assert collect_readings(tokenizer(), [*given, *reworded]) == got, "no reader is trained on other wordings"


def test_a_kind_with_too_few_readings_for_the_lens_costs_no_other_kind() -> None:
    some = [e for e in examples() if e.gold is not None]
    numbered = [replace(e, gold=replace(e.gold, answer="7")) if e.gold and e.case == "c0" and e.role != "whole" else e
                for e in some]  # fmt: skip
    for given, n, left_out in ((some, 2 * N, 0), (numbered, 2 * N - 1, 1)):
        got = over_examples(planted(lambda _: True), given, readers=["lens"], permutations=9)
        assert sum("lens: operand: 1 " in w for w in got.warnings) == left_out
        assert {"answer", "bridge"} <= {r["kind"] for r in got.table} and len(got.tensors["wholes.lens"]) == n


def test_every_row_compares_the_right_name_with_the_foils_that_it_states(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(_lm: Any, _reader: Any, got: Any, *_: Any) -> dict[int, Any]:
        places = len(got.readings[0][1].places)
        one = SimpleNamespace(above=lambda _, foils: torch.full((4, places), len(foils) / 100.0))
        return dict.fromkeys(range(len(got.readings)), one)

    monkeypatch.setattr(readout_examples, "_scores", counted)
    got = over_examples(planted(lambda _: True), examples(in_prompt=True), readers=["lens"], permutations=20)
    for foils, share in (("absent", (N - 2) / 100), ("in-prompt", 0.01)):
        assert value(got, "held_lens", "success", foils=foils) == pytest.approx(share)
        assert got.tensors[f"lens.{foils}.bridge.success"].numpy() == pytest.approx(share)
    assert [v["value"] for v in got.values] == pytest.approx([(N - 2) / 100] * len(got.values)), "absent ones alone"


@pytest.mark.parametrize(("name", "ids"), [("one", [1, 2, 3]), ("\u200b", None), ("two", None), ("tens", None)])
def test_a_name_to_be_repeated_has_tokens_of_its_own_behind_the_colon(name: str, ids: list[int] | None) -> None:
    def tokenizer(text: str) -> Any:
        codes = {"o": 1, "n": 2, "e": 3, "\u200b": None, " ": None}
        joined = text.replace(": two", ";").replace(": t", ";")
        return SimpleNamespace(input_ids=[x for c in joined if (x := codes.get(c, ord(c)))])

    with nullcontext() if ids else pytest.raises(InputError, match="does not begin with a token of its own"):
        assert _said(tokenizer, [], name) == ids


def _of(text: int, right: str) -> Reading:
    return Reading((text, 5), {"end": (1,)}, "bridge", right)


def test_the_lens_is_centred_by_texts_whose_right_name_is_another() -> None:
    x, names = torch.arange(12.0).reshape(3, 1, 1, 4), ["a", "b", "c", "d"]
    got = elsewhere(x, names, [_of(0, "a"), _of(1, "b"), _of(2, "c")])
    assert got[0, 0, 0].tolist() == [6.0, 9.0, 6.0, 9.0 - 2 + 2]  # a: texts 1, 2; b: text 2; c: text 1; d: texts 1, 2
    with pytest.raises(NoCasesError, match="'a'"):
        elsewhere(x[:2], names, [_of(0, "a"), _of(1, "a")])


def test_every_token_of_a_response_is_centred_by_all_tokens_of_the_other_texts() -> None:
    lm, names, layers = load_model(tiny("llama")), {"a": (9,), "b": (31,), "c": (50,), "d": (8,)}, [0, 2]
    texts, first = [(1, 40, 12, 77, 5), (1, 22, 3, 60), (1, 7, 90, 18, 33, 71)], [2, 1, 3]
    absent = [("b", "c", "d"), ("a", "d"), ("a", "b", "d")]
    readings = [Reading(t, {"end": (1,)}, "bridge", n, f, "d") for t, n, f in zip(texts, "abc", absent, strict=True)]
    places = [{str(p): (p,) for p in range(at, len(t))} for t, at in zip(texts, first, strict=True)]
    raw = [
        lens(lm, [replace(r, places=p)], names, centred=False, layers=layers)[0].values
        for r, p in zip(readings, places, strict=True)
    ]  # layer token name
    usual = [x.mean(1) for x in raw]
    for kept in ([0, 2], [1]):
        got = lens_by_token(lm, readings, names, first, kept, layers)
        for i, found in zip(kept, got, strict=True):
            left = raw[i].clone()
            for n, name in enumerate(names):
                others = [usual[j][:, n] for j, r in enumerate(readings) if j != i and r.right != name]
                left[:, :, n] -= torch.stack(others).mean(0)[:, None]
            foils = [list(names).index(f) for f in absent[i]]
            above = (left[:, :, i, None] > left[:, :, foils]).float()
            torch.testing.assert_close(found, above.mean(-1).mean(0))


def test_a_text_from_which_several_names_are_read_is_not_centred_by_itself() -> None:
    one, two, three = ([3.0, 2.0, 0.5, 0.0], [0.0, 1.0, 4.0, 1.0], [2.0, 7.0, 1.0, 4.0])
    x = torch.tensor([one, one, two, three])[:, None, None]
    got = elsewhere(x, ["a", "b", "c", "d"], [_of(0, "a"), _of(0, "b"), _of(1, "c"), _of(2, "d")])
    assert got[0, 0, 0].tolist() == got[1, 0, 0].tolist() == [1.0, 4.0, 1.0, 1.0], "means of the two other texts"
    assert got[2, 0, 0, :2].tolist() == [2.5, 4.5], "a: once the first text and the last; b: the same"
    with pytest.raises(NoCasesError, match="'a'"):
        elsewhere(x[:2], ["a", "b", "c", "d"], [_of(0, "a"), _of(0, "b")])


def test_ties_count_half_and_readings_without_foils_are_unknown() -> None:
    scores = Scores(("a", "b", "c"), torch.tensor([[[1.0, 1.0, 0.0]]]))
    assert float(scores.above("a", ["b", "c"])) == 0.75
    assert bool(scores.above("a", []).isnan().all())


def test_a_patchscope_reads_names_of_several_tokens_as_literal_passes_do() -> None:
    lm = planted(lambda _: True)
    names, shown = ["n1 n2", "n4"], ["n7", "n8"]
    (own,) = states(lm, [list(examples()[0].prompt_ids)], [[3]])
    got = patchscope(lm, own[[1, 3], 0], [0, 2], names, shown)
    ids, at = repeating_prompt(lm.tokenizer, shown)
    for row, layer in enumerate((0, 2)):
        for column, said in enumerate(([NAME + 1, NAME + 2], [NAME + 4])):

            def put(x: torch.Tensor, layer: int = layer) -> torch.Tensor:
                x[:, at] = own[layer + 1, 0]
                return x

            site: Site = residual(layer)
            with torch.no_grad():
                logits = lm.run(torch.tensor([[*ids, *said]]), edit={site: put}).logits[0].log_softmax(-1)
            mean = torch.stack([logits[len(ids) - 1 + i, t] for i, t in enumerate(said)]).mean()
            assert torch.allclose(got[row, column], mean, atol=1e-4)
    own_tokenizer = lm.tokenizer
    # a text that begins with a blank gets one more token, as in Llama-2; behind the prompt a name does not
    lm.tokenizer = lambda text, **options: SimpleNamespace(
        input_ids=[0] * text.startswith(" ") + own_tokenizer(text, **options).input_ids
    )
    assert torch.equal(patchscope(lm, own[[1, 3], 0], [0, 2], names, shown), got)


def test_what_cannot_be_read_out_is_named() -> None:
    lm = planted(lambda _: True)
    with pytest.raises(NoCasesError, match="gold"):
        over_examples(lm, [replace(e, gold=None) for e in examples()])
    with pytest.raises(InputError, match="tokenizer"):
        over_examples(load_model(tiny("llama")), examples())
    with pytest.raises(InputError, match="eye"):
        over_examples(lm, examples(), readers=["eye"])  # type: ignore[list-item]
    few = [PartPrompt((1, 2 + i), {"a": (1,)}, f"n{i % 4}") for i in range(12)]  # of only four answers
    with pytest.raises(NoCasesError, match="needs 5"):
        ridge(lm, [Reading((1, 2), {"a": (0,)}, "bridge", "n9")], few, {f"n{i}": (4 + i,) for i in range(10)})
    with pytest.raises(InputError, match="n9"):
        lens(lm, [Reading((1, 2), {"a": (0,)}, "bridge", "n9")], {"n1": (4,)})


def test_a_name_of_several_words_is_named_where_all_of_them_stand_together() -> None:
    _words = readout_examples._words
    words = _words("Is New York in the state of NEW JERSEY?")
    for name, named in {"new york": True, "new jersey": True, "york new": False, "new state": False, "": False}.items():
        assert _within(_words(name.title()), words) is named, name


def test_what_is_compared_is_the_upper_half_of_the_layers_beside_layer_0() -> None:
    held = [(e, torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.5, 0.4]])) for e in examples()[::2][:4]]
    rows, values = _rows("held", held, ["entity", "prompt-end"], None, 0)
    for place, compared, at_0 in (("entity", 0.4, 0.2), ("prompt-end", 0.55, 0.8)):
        mine = [r for r in rows if r["place"] == place and r["group"] in ("failure", "success")]
        assert [(r["value"], r["layer_0"]) for r in mine] == [(pytest.approx(compared), pytest.approx(at_0))] * 2
    assert [v["value"] for v in values] == pytest.approx([0.55] * 4), "of the last place"
    assert [[*range(-1, layers)][upper(layers + 1)] for layers in (2, 3, 4)] == [[1], [1, 2], [2, 3]]


def test_readouts_are_taken_at_places_that_nearly_all_cases_have() -> None:
    tokenizer = SimpleNamespace(decode=lambda ids: " ".join(f"w{i}" for i in ids))
    ids = (1, 2, 3, 4, 5), (6, 7, 8), (6, 9)
    own = Example("a", "whole", "composition", "failure", *ids, 1, (0, 1), slot=Slot(2))
    usual = replace(own, case="b", group="success")
    left, notes = readout_places(tokenizer, [own, usual], {})
    places = {"question-end": (0,), "prompt-end": (4,), "answer-slot": (6,), "decision": (5,)}
    assert left == {"a": places, "b": places} and [n.split()[1] for n in notes] == ["entity:"]
    without, _ = readout_places(tokenizer, [own, replace(usual, slot=None)], {})
    assert without["b"] == {"question-end": (0,), "prompt-end": (4,)}
    five = [replace(usual, case=c, slot=None if c == "e" else usual.slot) for c in "bcde"]
    assert readout_places(tokenizer, [own, *five], {})[0] == dict.fromkeys("abcd", places), "four of five have it"
    at_once, _ = readout_places(tokenizer, [replace(own, answer_ids=(9,))], {})  # decided at the prompt's end
    assert at_once == {"a": {k: v for k, v in places.items() if k != "decision"}}


@pytest.mark.parametrize("said", [["7", "4", "and", "7", "x"], ["7", "x", "7", "and", "7", "4"]])
def test_a_word_that_begins_another_one_is_not_taken_for_it(said: list[str]) -> None:
    pieces = ["7", "4", "and", "x"]
    decoder = SimpleNamespace(
        decode=lambda ids: "".join(pieces[i] if pieces[i] == "4" else f" {pieces[i]}" for i in ids)
    )
    ids = (0, *(pieces.index(p) for p in said))  # "74 and 7 x" holds the word 7 once
    e = replace(examples()[0], prompt_ids=ids, question_span=(1, len(ids)))
    last = max(i for i, p in enumerate(said) if p == "7" and said[i + 1 : i + 2] != ["4"])
    assert _entity(decoder, e, "7 of them", Counter({"7": 1, "and": 9})) == 1 + last


def test_the_entity_of_a_part_is_not_its_wording_where_no_whole_has_that_wording() -> None:
    the, of = (tokenizer().convert_tokens_to_ids(word) for word in ("the", "of"))
    worded = [
        e if e.role == "whole" else replace(e, prompt_ids=(1, the, e.prompt_ids[2], of), question_span=(1, 4))
        for e in examples()
    ]
    assert {p.places["entity"] for p in collect_readings(tokenizer(), worded).parts} == {(2,)}


def test_readouts_in_float32_on_half_precision_weights_are_those_of_the_model_in_float32() -> None:
    half = planted(lambda i: i % 2 == 1).model.to(torch.bfloat16)  # type: ignore[arg-type]
    full = load_model(copy.deepcopy(half).float(), tokenizer=tokenizer())
    wide = InDtype(load_model(half, tokenizer=tokenizer()), "float32")
    got, want = (
        wide.call(partial(over_examples, permutations=20), examples()),
        over_examples(full, examples(), permutations=20),
    )
    for reader in ("lens", "ridge"):
        assert torch.allclose(got.tensors[f"wholes.{reader}"], want.tensors[f"wholes.{reader}"], atol=1e-3)
