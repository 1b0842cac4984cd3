"""HotpotQA and 2WikiMultiHopQA: multi-hop questions, the one without any decomposition, the other with triples.

Records are ``{_id, question, answer, type, level, supporting_facts, context}``; 2WikiMultiHopQA adds ``evidences``, a
list of ``[subject, relation, object]``, from which its sub-questions are made by template (``relations``). The hub's
copies name the id ``id`` and write the triples as lists by column, as objects, or as JSON text; they are read too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case, Part
from ..gold import clustered, part, type_of_words
from ..reading import objects, text_field
from . import relations
from .catalog import benchmark

HOTPOTQA = "HotpotQA's hotpot_train_v1.1.json or hotpot_dev_distractor_v1.json"
TWO_WIKI = "2WikiMultiHopQA's train.json or dev.json"
NO_STEPS = "HotpotQA publishes no sub-questions"


@benchmark("hotpotqa", answer_alone=True)
def read_hotpotqa(path: str | Path) -> list[Case]:
    """Read the questions: cases without parts, to make decompositions from; ``meta["problem"]`` says so.

    Raises ``InputError`` naming file, item and field, also for the test split, which has no answers.
    """
    found = (_case(row, where, HOTPOTQA, "hotpotqa") for where, row in objects(path, HOTPOTQA))
    return [replace(case, meta={**case.meta, "problem": NO_STEPS}) for case in found]


@benchmark("2wiki", answer_alone=True)
def read_2wiki(path: str | Path) -> list[Case]:
    """Read the cases; one whose relations have no template has no parts, and ``meta["problem"]`` says which.

    Raises ``InputError`` naming file, item and field, also for the test split, which has no answers.
    """
    return clustered([_two_wiki(row, where) for where, row in objects(path, TWO_WIKI)])


def _case(row: Mapping[str, Any], where: str, what: str, benchmark: str) -> Case:
    if row.get("answer") is None:
        raise InputError(f"{where}: field 'answer' is missing: the test split has no labels; give {what}")
    answer = text_field(row, "answer", where)
    return Case(
        id=text_field(row, "_id" if "_id" in row else "id", where),
        question=text_field(row, "question", where),
        answer=answer,
        answer_type=type_of_words(answer),
        benchmark=benchmark,
        family=row["type"] if isinstance(row.get("type"), str) else None,
        meta={k: row[k] for k in ("level",) if isinstance(row.get(k), str)},
    )


def _two_wiki(row: Mapping[str, Any], where: str) -> Case:
    case = _case(row, where, TWO_WIKI, "2wiki")
    triples = _triples(row.get("evidences"), where)
    unworded = sorted({r for s, r, _ in triples if relations.question(s, r) is None})
    if unworded or not triples:
        names = ", ".join(map(repr, unworded))
        problem = f"no template for the relation {names}" if unworded else "the record has no evidences"
        return replace(case, meta={**case.meta, "problem": problem})
    parts = tuple(_hop(*triple, hop) for hop, triple in enumerate(triples, 1))
    return replace(case, parts=parts, depth=len(parts))


def _hop(subject: str, relation: str, value: str, hop: int) -> Part:
    # Two facts of one relation may have several objects each: subject and relation are what cases share.
    return part(str(relations.question(subject, relation)), value, hop, atom=f"{subject} | {relation}".casefold())


def _triples(value: Any, where: str) -> list[tuple[str, str, str]]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as e:
            raise InputError(f"{where}: field 'evidences' is text that is no JSON; give {TWO_WIKI}") from e
    names = ("fact", "relation", "entity")
    if isinstance(value, dict):
        columns = [value.get(n) for n in names]
        if not all(isinstance(c, list) for c in columns):
            raise InputError(f"{where}: field 'evidences' lacks one of the lists {', '.join(names)}; give {TWO_WIKI}")
        value = [list(t) for t in zip(*columns, strict=False)]
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
