"""The second series: equal practice in all doses, two kinds of composition crossed, and errors told apart."""

from __future__ import annotations

import hashlib
import json
import random
import re

import pytest
import torch

from composcope.evaluation.statistics import clopper_pearson
from composcope.experiments.organism import benchmarks, card, crossed, documents, errors, tasks, train, weights, world
from composcope.experiments.organism.recipe import CROSSED_RECIPE
from composcope.experiments.organism.tokenizer import build, encode
from composcope.experiments.organism.weights import CROSSED, SLOTS

WORLD = world.world()
STAGE = crossed.seeded("dose")


def _documents(dose: str, n: int) -> list[documents.Turns]:
    return [crossed.document(3, "dose", i, CROSSED[dose]) for i in range(n)]


def _slots(n: int) -> list[str | None]:
    return [documents.composition_kind(3, STAGE, i, SLOTS) for i in range(n)]


def test_only_slots_differ_between_doses_and_hold_the_compositions_of_their_kind() -> None:
    n = 50
    read = {dose: _documents(dose, n) for dose in CROSSED}
    slots = _slots(n)
    assert {None, "mixed", "deep"} == set(slots)
    for i, slot in enumerate(slots):
        texts = {dose: read[dose][i] for dose in CROSSED}
        if slot is None:
            assert len({str(t) for t in texts.values()}) == 1
            continue
        other = "deep" if slot == "mixed" else "mixed"
        assert texts["crossed-none"] == texts[f"crossed-{other}"]
        assert texts["crossed-both"] == texts[f"crossed-{slot}"]
        assert slot == "deep" or texts["crossed-none"] != texts["crossed-both"]


def test_every_batch_has_the_same_practice_in_all_doses() -> None:
    tokenizer = build()
    first = {
        dose: next(train.batches(tokenizer, 3, "dose", shares, 8, 0, crossed.SECOND))
        for dose, shares in CROSSED.items()
    }
    slots = 0
    for row in range(8):
        rows = [first[dose][0][row] for dose in CROSSED]
        assert len({len(ids) for ids in rows}) == 1
        slots += not all(torch.equal(rows[0], other) for other in rows)
        assert len({int((ids >= 0).sum()) for ids in rows}) == 1
    assert slots < 8


def _filled(kind: str, n: int) -> list[tuple[documents.Turns, documents.Turns]]:
    """Fillers of the slots of a kind, each with the composition whose place it takes."""
    at = [i for i, slot in enumerate(_slots(n)) if slot == kind]
    none, both = CROSSED["crossed-none"], CROSSED["crossed-both"]
    return [(crossed.document(3, "dose", i, none), crossed.document(3, "dose", i, both)) for i in at]


def test_the_filler_of_a_mixed_composition_copies_letters_and_practises_no_part() -> None:
    known = {*WORLD.events, *WORLD.things, *world.KINDS, *map(str, WORLD.years.values())}
    for made, taught in _filled("mixed", 300):
        ((question, answer),) = made
        assert question.removeprefix("Name these: ").split(". ")[0] == answer
        assert not known & set(re.findall(r"\w+", f"{question} {answer}"))
        (filled, _), (held, _) = encode(build(), [made, taught])
        assert len(filled) == len(held)


def test_the_filler_of_a_deep_composition_has_a_true_answer_that_is_copied_from_the_front() -> None:
    families = set()
    for made, taught in _filled("deep", 120):
        ((question, answer),) = made
        asked, listed = question[:-1].split(": ")
        events, copied = listed.split(", "), answer.split(", ")
        assert events[: len(copied)] == copied and len(events) > 2
        years = [WORLD.years[e] for e in events]
        bounds = [WORLD.years[e] for e in re.findall(r"[A-Z]\w+", asked) if e in WORLD.years]
        if asked.startswith("Rank"):
            assert years == sorted(years) and copied == events
        elif "between" in asked:
            assert [e for e, y in zip(events, years, strict=True) if min(bounds) < y < max(bounds)] == copied
        else:
            right = [e for e in events if (WORLD.years[e] > bounds[0]) == ("after" in asked)]
            assert right == copied == sorted(right, key=WORLD.years.__getitem__)
            assert len(events) - len(copied) in (1, 2)
        families.add(asked.split(" the ")[0])
        (filled, _), (held, _) = encode(build(), [made, taught])
        assert len(filled) == len(held)
    assert len(families) == 4


def test_the_base_begins_with_lists_to_copy_and_nothing_else() -> None:
    for i in (*range(30), *range(crossed.COPIED - 30, crossed.COPIED)):
        ((question, answer),) = crossed.document(3, "base", i)
        assert question.removeprefix("Name these: ").split(". ")[0] == answer
        assert set(answer.split(", ")) <= set(WORLD.events)
    later = [crossed.document(3, "base", crossed.COPIED + i)[0][0] for i in range(30)]
    assert sum(q.startswith("Name these: ") for q in later) < 15


def test_no_evaluation_combination_is_trained_in_the_second_series() -> None:
    seen = "\n".join(user for turns in _documents("crossed-both", 500) for user, _ in turns)
    for case in benchmarks.mixed(60, seed=5):
        a, b = case.meta["chosen"]
        for first, second in ((a, b), (b, a)):
            assert not re.search(rf"tag of the {first} [a-z ]+ the tag of the {second}", seen)
    assert not [case.id for case in benchmarks.temporal(10, seed=5) if case.question in seen]
    rng = random.Random(1)
    for draw in (tasks.beside_table, tasks.choice_given, tasks.absent_kinds):
        assert not any(world.held_out(draw(rng).members) for _ in range(50))


@pytest.mark.parametrize("table", [documents._TABLE, crossed._TABLE])
def test_a_kind_of_practice_has_lists_of_every_length_in_its_name_and_of_no_other(table: documents.Table) -> None:
    named = {name: [int(n) for n in ends] for name in table if (ends := re.findall(r"\d+", name))}
    assert len(named) > 5
    for name, ends in named.items():
        rng = random.Random(4)
        listed = [table[name][0](rng).question.rpartition(": ")[2] for _ in range(400)]
        assert {text.count(", ") + 1 for text in listed} == {*range(min(ends), max(ends) + 1)}, name


@pytest.mark.parametrize("family", [tasks.rank, tasks.successor, tasks.interval])
def test_lists_are_ordered_by_the_years_in_their_question_which_are_not_the_true_ones(family) -> None:
    rng, other = random.Random(2), 0
    for _ in range(20):
        qa = family(rng, 5, shown=tasks.other_years(rng))
        shown = {event: int(year) for event, year in re.findall(r"([A-Z]\w+) (\d{4})", qa.question)}
        other += sum(WORLD.years[e] != y for e, y in shown.items())
        head, listed = qa.question.split(": ")
        bounds = [int(y) for y in re.findall(r"\d{4}", head)]
        inside = {
            "Rank": lambda y: True,
            "after": lambda y, b=bounds: y > b[0],
            "before": lambda y, b=bounds: y < b[0],
            "between": lambda y, b=bounds: min(b) < y < max(b),
        }[next(w for w in ("Rank", "after", "before", "between") if w in head)]
        asked = [e for e in re.findall(r"[A-Z]\w+", listed) if inside(shown[e])]
        assert qa.answer.split(", ") == sorted(asked, key=shown.__getitem__)
        assert not qa.steps and not qa.facts, "no recalled year is part of this question"
    assert other > 80


@pytest.mark.parametrize("family", [tasks.rank, tasks.successor, tasks.interval])
def test_questions_about_things_have_the_words_of_the_temporal_ones_and_an_answer_that_no_year_decides(family) -> None:
    first = set()
    for seed in range(30):
        rng = random.Random(seed)
        qa = family(rng, 5, shown=tasks.other_years(rng))
        made = tasks.about_things(rng, qa)
        shown, events = re.findall(r"[a-z]+", made.question), re.findall(r"[A-Z]\w+(?= \d{4})", qa.question)
        things = [w for w in shown if w in WORLD.things]
        put = dict(zip(events, things, strict=True))
        assert not re.search(r"\d", made.question) and len(set(things)) == len(things)
        assert [put[e] for e in qa.answer.split(", ")] == made.answer.split(", ")
        head, tail = (text.replace("things", "") for text in made.question.split(": "))
        assert re.sub(r"[A-Z]\w+ \d{4}", "", qa.question.split(": ")[0]) == re.sub("|".join(things), "", head)
        assert not made.steps and not made.facts and set(made.answer.split(", ")) <= set(re.findall(r"\w+", tail))
        first.add(tail[:-1].split(", ").index(made.answer.split(", ")[0]))
    assert len(first) > 2, "the answer does not depend on the order in the question"


def test_a_sum_about_kinds_that_the_table_lacks_has_any_two_of_its_things() -> None:
    for seed in range(20):
        qa = tasks.absent_kinds(random.Random(seed))
        (things,) = re.findall(r"table: (.*?)\.", qa.question)
        present = {WORLD.kinds[t] for t in things.split(", ")}
        asked = re.findall(r"the (\w+) one", qa.question)
        assert len(set(asked)) == 2 and not present & set(asked)
        assert qa.members <= set(things.split(", ")) and not qa.steps and not qa.facts
        assert qa.worked is not None and errors.of_two_things(qa.question, qa.worked)
        operation = next(o for o in world.OPERATIONS if f" {o} " in str(qa.worked))
        a, b, result = (int(x) for x in re.findall(r"\d+", qa.worked))
        other = "plus" if operation == "times" else "times"
        absent = next(t for t in world.TAGS if t not in [WORLD.tags[x] for x in things.split(", ")])
        for wrong in (
            f"{a} {operation} {b} is {result + 1}", f"{a} {operation} {absent} is {result}", str(result),
            f"{a} {other} {b} is {world.apply(other, a, b)}", " and ".join(qa.members),
            f"{a} plus {a} is {2 * a}", f"{a} plus {absent} is {a + absent}",
        ):  # fmt: skip
            assert not errors.of_two_things(qa.question, wrong), wrong


def test_numbers_take_the_place_of_years_in_their_order() -> None:
    qa = tasks.successor(random.Random(4), 6, shown=tasks.other_years(random.Random(4)))
    made = tasks.numbered(qa)
    years = re.findall(r"\b\d{4}\b", qa.question)
    numbers = [int(n) for n in re.findall(r"\b\d\b", made.question)]
    assert sorted(numbers) == list(range(1, 8)) and made.answer == qa.answer
    assert [sorted(years).index(y) + 1 for y in years] == numbers


def test_the_documents_of_the_first_series_are_as_they_were() -> None:
    # trainings that began with an earlier version continue only with the same documents
    assert documents.FIRST.fingerprint(0) == "dd8082a336dc454be1d248c60d0770ea4e950a783180d03358fd0f72f9732dc9"


def test_the_first_rule_that_applies_names_what_is_wrong_with_a_working() -> None:
    case = next(c for c in benchmarks.mixed(40, 0) if c.operation == "plus")
    a, b = case.meta["tags"]
    other = next(t for t in world.TAGS if t not in (a, b))
    another = next(t for t in world.TAGS if t not in (a, b, other))
    written = {
        f"{a} plus {b} is {a + b}": None,
        "cart and harp": "no worked sum",
        str(a + b): "no worked sum",
        f"{a} times {b} is {a * b}": "another operation",
        f"{a} plus {b} is {a + b + 1}": "the sum itself is wrong",
        f"{b} plus {a} is {a + b}": "the operands are exchanged",
        f"{a} plus {other} is {a + other}": "one operand is right",
        f"{other} plus {b} is {other + b}": "one operand is right",
        f"{other} plus {another} is {other + another}": "no operand is right",
    }
    assert {answer: errors.kind(case, answer) for answer in written} == written
    shared = next(c for c in benchmarks.mixed(40, 0) if c.operation == "divided by")
    assert errors.kind(shared, "7 divided by 0 is 0") == "the sum itself is wrong"


def test_who_has_one_operand_guesses_the_other_among_the_things_that_give_a_result() -> None:
    for case in benchmarks.mixed(40, 0):
        (a, b), tags = case.meta["tags"], [WORLD.tags[t] for t in case.meta["things"]]
        after = [t for t in tags if t != a and world.apply(case.operation or "", a, t) is not None]
        before = [t for t in tags if t != b and world.apply(case.operation or "", t, b) is not None]
        found = errors.one_operand(case)
        assert found == pytest.approx((1 / len(after) + 1 / len(before)) / 2)
        if case.operation in ("plus", "times"):
            assert found == pytest.approx(1 / 7)
        assert found > (case.chance or 0) / 2


def test_right_numbers_from_wrong_workings_are_counted_apart() -> None:
    cases = benchmarks.mixed(8, 1000)  # the four operations in turn
    said = [*(str(c.worked) for c in cases[:3]), "nothing", *(f"99 plus 1 is {c.answer}" for c in cases[4:])]
    rows = errors.mixed(lambda asked: said if asked == [c.question for c in cases] else [], 8)
    exact, wrong = {"two things of the table": (3, 8), "one operand right": (3, 8)}, dict.fromkeys(errors.KINDS, (0, 5))
    wrong |= {"no worked sum": (1, 5), "another operation": (3, 5), "the sum itself is wrong": (1, 5)}
    assert {r.measure: (r.k, r.n) for r in rows} == {
        **{f"mixed: exact working (chance: {how})": counted for how, counted in exact.items()},
        "mixed: right number after a wrong working": (4, 8), "mixed: wrong form, of all answers": (1, 8),
        **{f"mixed: wrong working, {kind}": counted for kind, counted in wrong.items()},
    }  # fmt: skip


CARD = json.loads((weights.CROSSED_FOLDER / "card.json").read_text(encoding="utf-8"))


def _value(dose: str, name: str) -> float:
    rows = [r for table in CARD["models"][dose]["tables"].values() for r in table if r["measure"] == name]
    assert len(rows) == 1, name
    return rows[0]["value"]


def test_the_second_series_ships_with_its_card() -> None:
    for dose in weights.CROSSED:
        data = (weights.path(dose) / "model.safetensors").read_bytes()
        assert CARD["models"][dose]["sha256"] == hashlib.sha256(data).hexdigest()
    assert (weights.CROSSED_FOLDER / "CARD.md").read_text(encoding="utf-8") == card.markdown(CARD)


def test_the_second_series_was_trained_on_the_documents_of_this_version() -> None:
    about = json.loads((weights.path("crossed-both") / "organism.json").read_text(encoding="utf-8"))
    assert about["documents"] == crossed.SECOND.fingerprint(about["seed"])
    assert about["recipe"] == CROSSED_RECIPE.record()


def test_each_kind_of_composition_follows_its_own_dose_and_not_the_other() -> None:
    exact = {d: _value(d, "mixed: exact working (chance: one operand right)") for d in weights.CROSSED}
    deep = {d: _value(d, "residual failure, interval, depth bin 8") for d in weights.CROSSED}
    for taught in ("crossed-mixed", "crossed-both"):
        for without in ("crossed-none", "crossed-deep"):
            assert exact[taught] - exact[without] > 0.6
    for taught in ("crossed-deep", "crossed-both"):
        for without in ("crossed-none", "crossed-mixed"):
            assert deep[without] - deep[taught] > 0.6


@pytest.mark.parametrize("dose", weights.CROSSED)
def test_every_dose_of_the_second_series_knows_the_facts_and_answers_in_the_right_form(dose: str) -> None:
    for relation, share in (("year", 1), ("tag", 1), ("kind", 0.95)):
        assert _value(dose, f"{relation}: facts stable over trained wordings") >= share
    assert _value(dose, "math only") >= 0.95 and _value(dose, "commonsense only") >= 0.98
    assert _value(dose, "mixed: wrong form, of all answers") <= 0.03
    assert _value(dose, "deep lists: loops and wrong forms, of all answers") <= 0.03


def test_a_fresh_sample_of_the_second_series_agrees_with_its_card() -> None:
    ask = card.ask_folder(weights.path("crossed-both"))
    for row in errors.mixed(ask, 40, seed=77)[:4]:
        sample = clopper_pearson(row.k, row.n, 0.999)
        kept = next(r for r in CARD["models"]["crossed-both"]["tables"]["Exact workings, and forms"]
                    if r["measure"] == row.measure)  # fmt: skip
        assert sample.low is not None and sample.high is not None
        assert sample.low <= kept["high"] and kept["low"] <= sample.high, row
