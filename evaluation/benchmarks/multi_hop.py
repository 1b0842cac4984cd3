"""MuSiQue, HotpotQA and 2WikiMultiHopQA: multi-hop questions over Wikipedia, and the sub-questions of their relations.

MuSiQue (Trivedi et al. 2022): two to four hops, each with its published sub-question and answer. A line is ``{id,
question, question_decomposition: [{id, question, answer, paragraph_support_idx}], answer, answer_aliases, answerable,
paragraphs}``. Later sub-questions name earlier answers as ``#1``, ``#2``: the gold answers are put in. Sub-questions
that are written ``subject >> relation`` become questions in words. MuSiQue-Full pairs each question with one whose
paragraphs do not hold the answer (``answerable`` is false). Only the paragraphs make the difference, so the cases of
such a file carry them as evidence, and the unanswerable ones are ``unknowable``. A file without such a line is asked
closed-book.

HotpotQA has no decomposition. Its records are ``{_id, question, answer, type, level, supporting_facts, context}``;
2WikiMultiHopQA adds ``evidences``, a list of ``[subject, relation, object]``, from which its sub-questions are made by
template. The hub's copies name the id ``id`` and write the triples as lists by column, as objects, or as JSON text;
they are read too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case, Part
from ..gold import clustered, gold, part, same_last_answer, type_of_answer
from ..text_files import objects, text_field
from .catalog import benchmark

_MUSIQUE = "MuSiQue's musique_ans_v1.0_dev.jsonl or musique_full_v1.0_dev.jsonl (or train)"
_REFERENCE = re.compile(r"#(\d)\b")
NO_DECOMPOSITION = "the line has no question_decomposition"


@benchmark("musique", answer_alone=True)
def read_musique(path: str | Path) -> list[Case]:
    """Read the cases; a line without sub-questions has no parts, and ``meta["problem"]`` says so.

    Raises ``InputError`` naming file, line and field, also for the test split, which has no answers.
    """
    cases = [_musique_case(row, where) for where, row in objects(path, _MUSIQUE)]
    if not any(case.unknowable for case in cases):
        cases = [replace(case, evidence=()) for case in cases]
    return clustered(cases)


def _musique_case(row: Mapping[str, Any], where: str) -> Case:
    if "answer" not in row:
        raise InputError(f"{where}: {_no_answer(row)}; give {_MUSIQUE}")
    answer, aliases = gold(row, "answer", "answer_aliases", where)
    answerable = row.get("answerable", True)
    if not isinstance(answerable, bool):
        raise InputError(f"{where}: field 'answerable' is {answerable!r}; give true or false")
    parts = _parts(row.get("question_decomposition") or [], where)
    name, question = (text_field(row, field, where) for field in ("id", "question"))
    return same_last_answer(
        Case(
            # A question and its unanswerable twin have the same id.
            id=name if answerable else f"{name}-unanswerable",
            question=question,
            answer=answer,
            aliases=aliases,
            answer_type=type_of_answer(answer, question),
            parts=parts,
            benchmark="musique",
            family=name.partition("__")[0] if "__" in name else None,
            depth=len(parts) or None,
            unknowable=not answerable,
            evidence=_paragraphs(row.get("paragraphs") or [], where),
            meta={} if parts else {"problem": NO_DECOMPOSITION},
        )
    )


def _no_answer(row: Mapping[str, Any]) -> str:
    return f"field 'answer' is missing (test splits have no labels); it has {', '.join(map(str, row))}"


def _parts(steps: Any, where: str) -> tuple[Part, ...]:
    if not isinstance(steps, list) or not all(isinstance(s, dict) for s in steps):
        raise InputError(f"{where}: field 'question_decomposition' is not a list of objects; give {_MUSIQUE}")
    answers: list[str] = []
    found = []
    for i, step in enumerate(steps):
        place = f"{where}, question_decomposition[{i}]"
        asked = _asked(text_field(step, "question", place), answers)
        answers.append(text_field(step, "answer", place))
        found.append(part(asked, answers[-1], i + 1, atom=f"musique-{step['id']}" if "id" in step else asked))
    return tuple(found)


def _asked(text: str, answers: Sequence[str]) -> str:
    """The sub-question in words, earlier answers put in for ``#1``, ``#2``.

    A number that no earlier step has is part of the text ("who is #1 on the charts").
    """

    def earlier(m: re.Match[str]) -> str:
        step = int(m[1])
        return answers[step - 1] if 1 <= step <= len(answers) else m[0]

    filled = _REFERENCE.sub(earlier, text)
    subject, arrow, relation = filled.rpartition(">>")
    return any_relation_question(subject.strip(), relation.strip()) if arrow and subject.strip() else filled


def _paragraphs(listed: Any, where: str) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(p, dict) for p in listed):
        raise InputError(f"{where}: field 'paragraphs' is not a list of objects; give {_MUSIQUE}")
    texts = [(str(p.get("title") or ""), text_field(p, "paragraph_text", f"{where}, paragraphs")) for p in listed]
    return tuple(f"{title}: {text}" if title else text for title, text in texts)


HOTPOTQA = "HotpotQA's hotpot_train_v1.1.json or hotpot_dev_distractor_v1.json"
TWO_WIKI = "2WikiMultiHopQA's train.json or dev.json"
NO_STEPS = "HotpotQA publishes no sub-questions"


@benchmark("hotpotqa", answer_alone=True)
def read_hotpotqa(path: str | Path) -> list[Case]:
    """Read the questions: cases without parts, to make decompositions from; ``meta["problem"]`` says so.

    Raises ``InputError`` naming file, item and field, also for the test split, which has no answers.
    """
    found = (_hotpotqa_case(row, where, HOTPOTQA, "hotpotqa") for where, row in objects(path, HOTPOTQA))
    return [replace(case, meta={**case.meta, "problem": NO_STEPS}) for case in found]


@benchmark("2wiki", answer_alone=True)
def read_2wiki(path: str | Path) -> list[Case]:
    """Read the cases; one whose relations have no template has no parts, and ``meta["problem"]`` says which.

    Raises ``InputError`` naming file, item and field, also for the test split, which has no answers.
    """
    return clustered([_two_wiki(row, where) for where, row in objects(path, TWO_WIKI)])


def _hotpotqa_case(row: Mapping[str, Any], where: str, what: str, benchmark: str) -> Case:
    if row.get("answer") is None:
        raise InputError(f"{where}: {_no_answer(row)}; give {what}")
    answer = text_field(row, "answer", where)
    question = text_field(row, "question", where)
    return Case(
        id=text_field(row, "_id" if "_id" in row else "id", where),
        question=question,
        answer=answer,
        answer_type=type_of_answer(answer, question),
        benchmark=benchmark,
        family=row["type"] if isinstance(row.get("type"), str) else None,
        meta={k: row[k] for k in ("level",) if isinstance(row.get(k), str)},
    )


def _two_wiki(row: Mapping[str, Any], where: str) -> Case:
    case = _hotpotqa_case(row, where, TWO_WIKI, "2wiki")
    triples = _triples(row.get("evidences"), where)
    unworded = sorted({r for s, r, _ in triples if relation_question(s, r) is None})
    if unworded or not triples:
        names = ", ".join(map(repr, unworded))
        problem = f"no template for the relation {names}" if unworded else "the record has no evidences"
        return replace(case, meta={**case.meta, "problem": problem})
    # Two facts of one relation may have several objects each: subject and relation are what cases share.
    parts = tuple(
        part(str(relation_question(subject, relation)), value, hop, atom=f"{subject} | {relation}".casefold())
        for hop, (subject, relation, value) in enumerate(triples, 1)
    )
    return replace(case, parts=parts, depth=len(parts))


def _triples(value: Any, where: str) -> list[tuple[str, str, str]]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as e:
            raise InputError(f"{where}: field 'evidences' is text that is not JSON; give {TWO_WIKI}") from e
    names = ("fact", "relation", "entity")
    if isinstance(value, dict):
        columns = [value.get(n) for n in names]
        if not all(isinstance(c, list) and len(c) == len(columns[0] or ()) for c in columns):
            said = f"field 'evidences' lacks one of the lists {', '.join(names)}, or they differ in length"
            raise InputError(f"{where}: {said}; give {TWO_WIKI}")
        value = [list(t) for t in zip(*columns, strict=True)]
    elif isinstance(value, list):
        value = [[t.get(n) for n in names] if isinstance(t, dict) else t for t in value]
    found = []
    for i, triple in enumerate(value or []):
        if not isinstance(triple, list) or len(triple) != 3:
            raise InputError(f"{where}: evidences[{i}] is {triple!r}; give [subject, relation, object]")
        row: dict[str, Any] = dict(zip(("subject", "relation", "object"), triple, strict=True))
        subject, relation, target = (text_field(row, n, f"{where}, evidences[{i}]") for n in row)
        found.append((subject, relation, target))
    return found


_WHO = (
    "author, cast member, chairperson, chief executive officer, child, composer, creator, director, doctoral advisor, "
    "editor, employer, father, founder, head coach, head of government, head of state, inventor, lyrics by, "
    "manufacturer, mother, performer, presenter, producer, screenwriter, sibling, spouse, stepfather, stepmother"
)
_WHAT = (
    "capital, cause of death, continent, country, country of citizenship, country of origin, currency, developer, "
    "ethnic group, genre, highest point, language, language of work or name, legislative body, military branch, "
    "native language, nationality, noble title, occupation, official language, operating system, original network, "
    "position held, production company, publisher, record label, religion, sport, student"
)
_WORDED = {
    "award received": "Which award did {} receive?",
    "conflict": "In which conflict did {} take part?",
    "date of birth": "When was {} born?",
    "date of death": "When did {} die?",
    "distributed by": "Who distributed {}?",
    "educated at": "Where was {} educated?",
    "followed by": "What is {} followed by?",
    "follows": "What does {} follow?",
    "founded by": "Who founded {}?",
    "has part": "What is {} made up of?",
    "headquarters location": "Where is {} headquartered?",
    "inception": "When was {} founded?",
    "instance of": "What is {} an instance of?",
    "located in the administrative territorial entity": "In which administrative territorial entity is {} located?",
    "located in or next to body of water": "In or next to which body of water is {} located?",
    "location": "Where is {} located?",
    "location of formation": "Where was {} formed?",
    "lyrics by": "Who wrote the lyrics of {}?",
    "member of": "What is {} a member of?",
    "member of political party": "Which political party is {} a member of?",
    "member of sports team": "Which sports team is {} a member of?",
    "named after": "Who or what is {} named after?",
    "owned by": "Who owns {}?",
    "part of": "What is {} part of?",
    "place of birth": "Where was {} born?",
    "place of burial": "Where is {} buried?",
    "place of death": "Where did {} die?",
    "place of detention": "Where was {} detained?",
    "publication date": "When was {} published or released?",
    "residence": "Where does {} live?",
    "shares border with": "What does {} share a border with?",
    "student of": "Whose student was {}?",
    "time of death": "When did {} die?",
    "work location": "Where did {} work?",
}
TEMPLATES: dict[str, str] = {
    **{name: f"Who is the {name} of {{}}?" for name in _WHO.split(", ")},
    **{name: f"What is the {name} of {{}}?" for name in _WHAT.split(", ")},
    **_WORDED,
}
"""Question templates by relation."""
_ENDS_OPEN = re.compile(r"\b(?:about|after|at|by|for|from|in|of|on|to|with)$")


def relation_question(subject: str, relation: str) -> str | None:
    """The question for the object of a fact; None for a relation without a template."""
    template = TEMPLATES.get(" ".join(relation.split()).casefold())
    return None if template is None else template.format(subject)


def any_relation_question(subject: str, relation: str) -> str:
    """The same, in general words where there is no template: "What is the R of S?", "What is S licensed to?"."""
    named = relation_question(subject, relation)
    if named is not None:
        return named
    return f"What is {subject} {relation}?" if _ENDS_OPEN.search(relation) else f"What is the {relation} of {subject}?"
