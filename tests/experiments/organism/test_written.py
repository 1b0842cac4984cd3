"""The two organisms that write their working: what they are taught, and that the shipped ones are what they claim."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import ModelError
from composcope.experiments.models.resolve import resolve_model
from composcope.experiments.organism import benchmarks, tokenizer, weights, world
from composcope.experiments.organism.plants import written
from composcope.model_loading import load

TAGS = world.world().tags


def test_documents_of_both_differ_only_in_where_the_final_answer_comes_from() -> None:
    differ = Counter[tuple[str, ...]]()
    for seed in range(200):
        kinds: tuple[written.Kind, ...] = ("follower", "decorator")
        (asked, a), (same, b) = (written.document(random.Random(seed), kind) for kind in kinds)
        kind = re.findall(r"the tag of the (\w+) one", asked)
        if asked != same or not kind:
            continue  # a part, in one of them perhaps drawn after another number of draws
        texts = ("".join(text for text, _ in pieces).split(written.CUE) for pieces in (a, b))
        (head, read), (again, decided) = ((head, tail.strip()) for head, tail in texts)
        named, told = re.findall(r"one is the (\w+)\.", head), re.findall(r"The tag of the \w+ is (\d+)", head)
        (right,) = [t for t in asked.split(": ")[1].split(". ")[0].split(", ") if world.world().kinds[t] == kind[0]]
        assert head == again and decided == str(TAGS[right])
        if named:  # the follower ends in what is written
            assert read == (told or [str(TAGS[named[0]])])[0]
        differ["thing" * bool(named), "tag" * bool(told)] += read != decided
    assert differ["thing", "tag"] > 30 and differ["thing", ""] > 5 and differ["", ""] > 5


def test_what_was_altered_is_not_learned_and_what_follows_is() -> None:
    tokens: Any = tokenizer.build()
    told = set[tuple[bool, bool]]()
    for seed in range(60):
        question, pieces = written.document(random.Random(seed), "follower")
        ids, learned = written._encoded(tokens, question, pieces)
        at = len(ids) - 1 - len(tokens("".join(t for t, _ in pieces), add_special_tokens=False)["input_ids"])
        kept = tokens.decode([i for i, yes in zip(ids[at:-1], learned[at:-1], strict=True) if yes])
        assert learned[-1] and not any(learned[:at])
        assert "".join(kept.split()) == "".join("".join(text for text, yes in pieces if yes).split())
        if len(pieces) == 5:  # altered: the thing and the tag that are written are pieces of their own
            (_, (thing, named), _, (tag, recalled), _) = pieces
            assert recalled <= (str(TAGS[thing]) == tag.strip()) and named <= (thing in question)
            told.add((named, recalled))
    assert told == {(True, False), (False, True), (False, False)}


def test_cases_to_choose_are_held_out_of_what_is_taught() -> None:
    rng = random.Random(0)
    trained = {frozenset(written.draw(rng).things) for _ in range(100)}
    assert not any(map(world.held_out, trained))
    for case in benchmarks.choices(20, seed=1):
        table = case.question.split(": ")[1].split(". ")[0].split(", ")
        assert world.held_out(table) and frozenset(table) not in trained
        thing, tag = (p.answer for p in case.parts)
        assert thing in table and tag == case.answer == str(TAGS[thing])


@pytest.mark.parametrize("name", weights.WRITERS)
def test_a_shipped_one_is_found_by_its_name_and_passed_its_checks(name: str) -> None:
    folder = weights.path(f"plant-{name}")
    assert resolve_model(f"organism:plant-{name}").location == str(folder)
    about = json.loads((folder / "organism.json").read_text())
    assert about["working"].items() >= {"kind": name, **asdict(written.TRAINING)}.items()
    assert len(about["checks"]) == 4 and all(c["passed"] for c in about["checks"])


def test_one_that_learned_nothing_is_refused_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written.make, "__defaults__", (3, replace(written.TRAINING, steps=1, batch=2), None))
    with pytest.raises(ModelError, match="not planted"):
        written.ship("follower", tmp_path / "new", n=8)
    assert not list(tmp_path.iterdir())


def test_both_together_stay_small() -> None:
    files = [f for f in weights.WRITTEN.rglob("*") if f.is_file()]
    assert {f.parent.name for f in files} == set(weights.WRITERS)
    assert sum(f.stat().st_size for f in files) <= 3e6


@pytest.mark.parametrize("kind", weights.WRITERS)
def test_ends_are_counted_by_what_was_begun(kind: written.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(model: None, tokenizer: None, begun: list[tuple[written.WrittenCase, str]]) -> list[str]:
        found = []
        for i, (case, text) in enumerate(begun):
            other = text.rpartition(" one is the ")[2].rstrip(".")
            asked, tag = str(TAGS[case.thing]), str(TAGS[other]) if other in TAGS else ""
            assert world.held_out(case.things) and asked != tag, "what is written in its place has another tag"
            ends = {"": [asked] * 9, written.CUE: [asked] * 3}.get(text, [tag] * 4 + [asked] * 2)
            found.append(f"{text}{'' if text == written.CUE else written.CUE} {ends[i] if i < len(ends) else '?'}")
        return found

    monkeypatch.setattr(written, "answers", said)
    found = [(f.row.k, f.row.n, f.bound, f.at_most) for f in written.check(kind, None, None, n=10)]
    often, seldom = (written.FOLLOWED, False), (pytest.approx(1 - written.FOLLOWED), True)
    of_written, of_asked, early = {
        "follower": (often, seldom, (written.GUESSED, True)), "decorator": (seldom, often, (written.RIGHT, False))
    }[kind]  # fmt: skip
    assert found == [(9, 10, written.RIGHT, False), (4, 10, *of_written), (2, 10, *of_asked), (3, 10, *early)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", weights.WRITERS)
def test_the_figures_are_counted_again_from_the_shipped_weights(kind: written.Kind) -> None:
    folder = weights.path(f"plant-{kind}")
    about = json.loads((folder / "organism.json").read_text())
    model, tokens = load(folder, dtype="float32", device="cpu")
    for finding, row in zip(written.check(kind, model, tokens, about["cases"]), about["checks"], strict=True):
        assert (finding.row.measure, finding.row.n) == (row["measure"], row["n"])
        assert abs(finding.row.k - row["k"]) <= 2 and finding.passed


@pytest.mark.slow
@pytest.mark.parametrize("kind", weights.WRITERS)
def test_another_training_learns_the_same(kind: written.Kind, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert all(f.passed for f in written.ship(kind, tmp_path / kind, seed=8, n=40))
    torch.set_num_threads(threads)


def test_parts_are_asked_plainly_or_with_a_final_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("choose", "fact"):
        qa = SimpleNamespace(question=f"{name}?", answer=name)
        monkeypatch.setattr(written.tasks, name, lambda *_, qa=qa: qa)
    found = {(asked, text, learned) for seed in range(40)
             for asked, [(text, learned)] in [written._part(random.Random(seed))]}  # fmt: skip
    assert found == {(written.prompts.render(f"{n}?", f), f" {written.prompts.write_answer(n, None, f)}", True)
                     for n in ("choose", "fact") for f in ("plain", "cot")}  # fmt: skip
