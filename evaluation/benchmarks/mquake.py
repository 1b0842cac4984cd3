"""MQuAKE (Zhong et al. 2023): two- to four-hop questions over Wikidata facts, each hop with its question and aliases.

Records are ``{case_id, questions: [3 wordings], answer, answer_alias, single_hops: [{question, cloze, answer,
answer_alias}], orig: {triples, ...}, requested_rewrite, new_answer, ...}``. The benchmark is about editing models;
what is asked here is the world before the edits. The remastered copies write ``orig_triples`` at the top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case, Part
from ..gold import clustered, gold, others, part, same_last_answer, type_of_words
from ..reading import objects, text_field
from .catalog import benchmark

WHAT = "MQuAKE-CF.json, MQuAKE-CF-3k.json or MQuAKE-T.json"


@benchmark("mquake", answer_alone=True)
def read_mquake(path: str | Path) -> list[Case]:
    """Read the cases: the first wording of each question, the others in ``meta["questions"]``.

    Raises ``InputError`` naming file, item and field.
    """
    return clustered([_case(row, where) for where, row in objects(path, WHAT)])


def _case(row: Mapping[str, Any], where: str) -> Case:
    questions = row.get("questions")
    if not isinstance(questions, list) or not questions or not all(isinstance(q, str) and q.strip() for q in questions):
        raise InputError(f"{where}: field 'questions' is {questions!r}; give a list of questions")
    answer, aliases = gold(row, "answer", "answer_alias", where)
    extended = row.get("answer_extended") or []  # MQuAKE-T: other answers that were right at the time
    parts = _parts(row, where)
    return same_last_answer(
        Case(
            id=f"mquake-{text_field(row, 'case_id', where)}",
            question=questions[0].strip(),
            answer=answer,
            aliases=others(answer, (*aliases, *(e for e in extended if isinstance(e, str)))),
            answer_type=type_of_words(answer),
            parts=parts,
            benchmark="mquake",
            family=f"{len(parts)}-hop",
            depth=len(parts),
            meta={"questions": questions},
        )
    )


def _parts(row: Mapping[str, Any], where: str) -> tuple[Part, ...]:
    hops = row.get("single_hops")
    if not isinstance(hops, list) or not hops or not all(isinstance(h, dict) for h in hops):
        raise InputError(f"{where}: field 'single_hops' is {hops!r}; give a list of objects with question and answer")
    facts = _facts(row, len(hops))
    found = []
    for i, hop in enumerate(hops):
        place = f"{where}, single_hops[{i}]"
        question = text_field(hop, "question", place)
        answer, aliases = gold(hop, "answer", "answer_alias", place)
        found.append(part(question, answer, i + 1, aliases, atom=facts[i] if facts else question.casefold()))
    return tuple(found)


def _facts(row: Mapping[str, Any], n: int) -> Sequence[str] | None:
    """A name for the fact of each hop; None where the triples do not fit the hops."""
    nested = row.get("orig")
    triples = nested.get("triples") if isinstance(nested, dict) else row.get("orig_triples")
    if not isinstance(triples, list) or len(triples) != n:
        return None
    if not all(isinstance(t, list) and len(t) == 3 for t in triples):
        return None
    return [" ".join(map(str, t[:2])) for t in triples]
