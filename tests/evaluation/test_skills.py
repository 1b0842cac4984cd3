"""Skill mapping over questions of three kinds, with a teacher that reads which kind a step is of."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from composcope.errors import InputError, NoCasesError
from composcope.evaluation import skills
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.benchmarks.stad import StadItem, StadStep, case_from_item
from composcope.evaluation.engines.base import BaseEngine
from composcope.evaluation.journal import Journal, ask_identity
from composcope.evaluation.skills import Embedding, Skill, cluster, embed, granularity, map_skills, search, with_skills

KINDS = {
    "money": ("Buying and change", "price dollars paid shop coins", "Work out the cost"),
    "travel": ("Distance and speed", "train kilometers hours speed station", "Work out the distance"),
    "cooking": ("Scaling recipes", "flour eggs cups oven recipe", "Scale the amounts"),
}


def _items() -> list[StadItem]:
    out = []
    for kind, (_, words, step) in KINDS.items():
        pieces = words.split()
        for n in range(6):
            question = f"{pieces[n % 5]} {pieces[(n + 1) % 5]} {pieces[(n + 2) % 5]} number {n}?"
            steps = (StadStep(step, "3", task="t?"), StadStep("Sing a song" if n == 0 else step, "4", task="u?"))
            out.append(StadItem(f"{kind}-{n}", question, 4, steps, ("s",)))
    return out


ITEMS = _items()


class Teacher(BaseEngine):
    """Induces the kinds that the representative tasks show, and assigns steps by their words."""

    def __init__(self, wrong: str = "") -> None:
        self.identity = {"model": f"teacher{wrong}"}
        self.provenance: dict[str, str] = {}
        self.wrong = wrong
        self.asked = 0
        self.seeds: list[int] = []
        """Of the requests for skills."""

    def reply(self, ask: Ask) -> str:
        if ask.role.startswith("induce"):
            self.seeds.append(ask.seed)
            if self.wrong == "mute":
                return "No."
            shown = [k for k, (_, words, _) in KINDS.items() if re.search("|".join(words.split()), ask.prompt)]
            return json.dumps({"skills": [{"name": KINDS[k][0], "description": f"about {k}"} for k in shown]})
        if self.wrong == "mumbles" and "Scale" in ask.prompt.rsplit("Step:", 1)[1]:
            return "Hard to say"
        step = ask.prompt.rsplit("Step: ", 1)[1].split("\n")[0]
        for k, (name, _, text) in KINDS.items():
            m = re.search(rf"^(\d+)\. {name}: about {k}", ask.prompt, re.MULTILINE)
            if m and step == text:
                return f"**{m[1]}**"
        return re.findall(r"^(\d+)\. None of them", ask.prompt, re.MULTILINE)[0]

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in asks:
            self.asked += 1
            yield ask, Response(ask_identity(ask, self.identity), self.reply(ask), "stop", 1, 1)


def test_clusters_of_questions_follow_their_words() -> None:
    found = cluster(embed([i.question for i in ITEMS]), 3)
    groups = [set(found.labels[6 * k : 6 * k + 6]) for k in range(3)]
    assert [len(g) for g in groups] == [1, 1, 1] and len(set.union(*groups)) == 3
    assert sorted(r // 6 for r in found.representatives) == [0, 1, 2]


def test_words_are_the_same_with_and_without_capitals_and_counted_with_their_pairs() -> None:
    first, second, turned = embed(["Apples and PEARS", "apples and pears", "pears and apples"]).vectors
    assert first == pytest.approx(second) and first @ first == pytest.approx(1)
    assert 0.2 < first @ turned < 0.99, "the same words in other pairs"
    apples, _, _, pears = embed(["apples apples apples pears", "apples pears"]).vectors[0]
    assert apples / pears == pytest.approx(1 + np.log(3)), "a word that comes three times counts less than three times"


def test_representatives_are_nearest_their_centroids() -> None:
    angles = np.radians([0, 10, 23, 90, 100, 120])
    found = cluster(Embedding(np.stack([np.cos(angles), np.sin(angles)], axis=1), "angles"), 2)
    assert sorted(found.representatives) == [1, 4]
    with pytest.raises(InputError, match="clusters is 7 for 6 texts"):
        cluster(Embedding(np.eye(6), "e"), 7)


def test_texts_without_words_do_not_break_the_clustering() -> None:
    assert len(set(cluster(embed(["apples pears", "apples plums", "?!"]), 2).labels)) == 2


def test_the_method_says_what_the_embedding_was() -> None:
    assert "no sentence-transformers model given" in embed(["a question"]).method
    x = embed(["x 1", "x 2", "1 x", "y"]).vectors
    assert 0 == x[0] @ x[3] < x[0] @ x[1] < x[0] @ x[2] < 0.99, "words of one letter and pairs of words count"
    with pytest.raises(InputError, match="no such folder"):
        embed(["a question"], "/nowhere/model")
    with pytest.raises(NoCasesError):
        embed([])


def test_steps_get_the_skill_that_the_teacher_names_or_other() -> None:
    found = map_skills(ITEMS, Teacher(), n_clusters=3, n_skills=5)
    assert {s.name for s in found.skills} == {k[0] for k in KINDS.values()} and found.n_asked == 5
    named = {s.name: found.usage[s.id] for s in found.skills}
    assert set(named.values()) == {11} and found.usage["other"] == 3 and found.n_unread == 0
    mapped = with_skills(ITEMS, found)
    assert [s.skill for s in mapped[0].steps] == ["Buying and change", "other"]
    assert [p.skill for p in case_from_item(mapped[1]).parts] == ["Buying and change"] * 2
    with pytest.raises(InputError, match="'stranger' with 2 steps"):
        with_skills([StadItem("stranger", "q", 1, ITEMS[0].steps)], found)


def test_unreadable_assignments_are_counted_and_never_other() -> None:
    found = map_skills(ITEMS, Teacher("mumbles"), 3, 5)
    assert found.n_unread == 11 and found.usage["other"] == 3
    assert found.names("cooking-0", 2) == (None, "other")
    with pytest.raises(InputError, match="'cooking-0' with 3 steps"):
        found.names("cooking-0", 3)
    every, two = (skills.induce([i.question for i in ITEMS], n, Teacher()) for n in (9, 2))
    assert len(every) > 2 and two == every[:2], "more than were asked for"
    assert granularity(found).n_steps == 36 - 11
    with pytest.raises(NoCasesError, match="could not be read three times"):
        map_skills(ITEMS, Teacher("mute"), 3, 5)


def test_skills_are_asked_for_with_the_users_seed_and_with_another_each_further_time() -> None:
    teacher, mute = Teacher(), Teacher("mute")
    search(ITEMS, teacher, clusters=(1, 3), skills=(2,), seed=7)
    with pytest.raises(NoCasesError):
        map_skills(ITEMS, mute, 3, 5, seed=7)
    assert (teacher.seeds, mute.seeds) == ([7, 7], [7, 8, 9])


def test_granularity_is_entropy_other_rate_and_overlap() -> None:
    found = granularity(map_skills(ITEMS, Teacher(), 3, 3))
    assert found.entropy == pytest.approx(np.log2(3))
    assert found.other_rate == pytest.approx(3 / 36)
    assert found.mean_overlap is not None and 0 < found.mean_overlap < 0.5 and found.redundant == 0
    assert (found.n_clusters, found.n_skills, found.n_found, found.n_steps) == (3, 3, 3, 36)


def test_skills_in_nearly_the_same_words_are_redundant() -> None:
    base = map_skills(ITEMS, Teacher(), 3, 3)
    twins = (Skill("a", "Adding small whole numbers together"), Skill("b", "Adding small whole numbers together now"))
    far = Skill("c", "Ordering events")
    found = granularity(skills.SkillMap((*twins, far), base.assigned, base.clusters, "m", 3))
    assert found.redundant == pytest.approx(1 / 3)


def test_the_grid_is_searched_from_one_embedding_and_resumed_from_the_journal(tmp_path: Path) -> None:
    teacher = Teacher()
    with Journal(tmp_path / "j") as journal:
        grid = search(ITEMS, teacher, clusters=(1, 3, 99), skills=(2, 5), journal=journal)
    assert [(g.n_clusters, g.n_skills) for g, _ in grid] == [(1, 2), (1, 5), (3, 2), (3, 5)]
    rates = {(g.n_clusters, g.n_skills): g.other_rate or 0.0 for g, _ in grid}
    # Two skills, or one cluster, leave whole kinds of steps without a skill.
    assert rates[3, 5] == min(rates.values()) and rates[1, 2] > 0.5
    again = Teacher()
    with Journal(tmp_path / "j") as journal:
        repeated = search(ITEMS, again, clusters=(1, 3), skills=(2, 5), journal=journal)
    assert again.asked == 0 and [g for g, _ in repeated] == [g for g, _ in grid]
    with pytest.raises(InputError, match=r"clusters \(99,\) for 18 items"):
        search(ITEMS, teacher, clusters=(99,))


@pytest.mark.parametrize(
    ("reply", "skill"),
    [
        ("2", "s02"),
        ("**2.** Distance", "s02"),
        ("<think>1?</think> 3", "other"),
        ("4", None),
        ("0", None),
        ("Distance", "s02"),
        ("None of them", "other"),
        ("<think>2", None),
        ("It may be 2", None),
    ],
)
def test_assignments_are_read_strictly(reply: str, skill: str | None) -> None:
    assert skills._assigned(reply, (Skill("s01", "Money"), Skill("s02", "Distance"))) == skill


def test_the_papers_teachers_share_3_7_of_5_bottlenecks() -> None:
    published = Path(__file__).parents[1] / "references" / "published_counts.json"
    rows = json.loads(published.read_text(encoding="utf-8"))["teachers"]["rows"]
    paper, other = ({row[0]: row[teacher] for row in rows} for teacher in (1, 2))
    found, mean = skills.teacher_agreement(paper, other)
    assert [a.overlap for a in found] == [3, 4, 3, 3, 4, 5]
    assert mean == pytest.approx(22 / 6)


def test_agreement_cuts_ties_by_name_and_needs_a_common_model() -> None:
    first, second = {"m": {"b": 2, "a": 2, "c": 1}, "only here": {"a": 1}}, {"m": {"c": 9, "a": 1}, "there": {}}
    (one,), mean = skills.teacher_agreement(first, second, top=2)
    assert (one.first, one.second, one.shared, mean) == (("a", "b"), ("c", "a"), ("a",), 1.0)
    with pytest.raises(NoCasesError):
        skills.teacher_agreement({"m": {}}, {"n": {}})


def test_a_folder_without_the_package_that_reads_it_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError) as caught:
        embed(["a question"], tmp_path)
    assert str(tmp_path) in str(caught.value) and "composcope[embed]" in str(caught.value)


def test_skills_are_read_from_objects_and_texts_each_name_once_and_none_without_a_name() -> None:
    given = ["Sum: adds", {"skill": " Unit ", "description": "converts"}, {"name": "sum", "description": "x"}, "Order"]
    assert skills._skills(given) == [
        Skill("s01", "Sum", "adds"), Skill("s02", "Unit", "converts"), Skill("s03", "Order", "")
    ]  # fmt: skip
    for bad in ([" : nameless"], [*given, {"description": "nameless"}], []):
        assert skills._skills(bad) is None
