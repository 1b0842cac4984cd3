"""MuSiQue (Trivedi et al. 2022): two to four hops, each with its published sub-question and answer.

A line is ``{id, question, question_decomposition: [{id, question, answer, paragraph_support_idx}], answer,
answer_aliases, answerable, paragraphs}``. Later sub-questions name earlier answers as ``#1``, ``#2``: the gold answers
are put in. Sub-questions that are written ``subject >> relation`` become questions in words.

MuSiQue-Full pairs each question with one whose paragraphs do not hold the answer (``answerable`` is false). Only with
the paragraphs is there a difference: the cases of such a file carry them as evidence, and the unanswerable ones are
``unknowable``. Without such a line the file is asked closed-book.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case, Part
from ..gold import clustered, gold, part, same_last_answer, type_of_words
from ..reading import objects, text_field
from . import relations
from .catalog import benchmark

WHAT = "MuSiQue's musique_ans_v1.0_dev.jsonl or musique_full_v1.0_dev.jsonl (or train)"
_REFERENCE = re.compile(r"#(\d)\b")
NO_STEPS = "the line has no question_decomposition"


@benchmark("musique", answer_alone=True)
def read_musique(path: str | Path) -> list[Case]:
    """Read the cases; a line without sub-questions has no parts, and ``meta["problem"]`` says so.

    Raises ``InputError`` naming file, line and field, also for the test split, which has no answers.
    """
    cases = [_case(row, where) for where, row in objects(path, WHAT)]
    if not any(case.unknowable for case in cases):
        cases = [replace(case, evidence=()) for case in cases]
    return clustered(cases)


def _case(row: Mapping[str, Any], where: str) -> Case:
    if "answer" not in row:
        raise InputError(f"{where}: field 'answer' is missing: MuSiQue's test split has no labels; give {WHAT}")
    answer, aliases = gold(row, "answer", "answer_aliases", where)
    answerable = row.get("answerable", True)
    if not isinstance(answerable, bool):
        raise InputError(f"{where}: field 'answerable' is {answerable!r}; give true or false")
    parts = _parts(row.get("question_decomposition") or [], where)
    name = text_field(row, "id", where)
    return same_last_answer(
        Case(
            # A question and its unanswerable twin have the same id.
            id=name if answerable else f"{name}-unanswerable",
            question=text_field(row, "question", where),
            answer=answer,
            aliases=aliases,
            answer_type=type_of_words(answer),
            parts=parts,
            benchmark="musique",
            family=name.partition("__")[0] if "__" in name else None,
            depth=len(parts) or None,
            unknowable=not answerable,
            evidence=_paragraphs(row.get("paragraphs") or [], where),
            meta={} if parts else {"problem": NO_STEPS},
        )
    )


def _parts(steps: Any, where: str) -> tuple[Part, ...]:
    if not isinstance(steps, list) or not all(isinstance(s, dict) for s in steps):
        raise InputError(f"{where}: field 'question_decomposition' is no list of objects; give {WHAT}")
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
    return relations.any_question(subject.strip(), relation.strip()) if arrow and subject.strip() else filled


def _paragraphs(listed: Any, where: str) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(p, dict) for p in listed):
        raise InputError(f"{where}: field 'paragraphs' is no list of objects; give {WHAT}")
    texts = [(str(p.get("title") or ""), text_field(p, "paragraph_text", f"{where}, paragraphs")) for p in listed]
    return tuple(f"{title}: {text}" if title else text for title, text in texts)
