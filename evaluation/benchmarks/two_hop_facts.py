"""Two-hop data sets that come with both hops: Bamboogle with sub-questions, MQuAKE, TwoHopFact and SOCRATES.

Bamboogle (Press et al. 2023, extended with sub-questions): a JSON list of ``{Question, Answer, Q1, A1: [...], Q2,
A2: [...]}``, with both hops and their accepted answers.

MQuAKE (Zhong et al. 2023): two- to four-hop questions over Wikidata facts, each hop with its question and aliases.
Records are ``{case_id, questions: [3 wordings], answer, answer_alias, single_hops: [{question, cloze, answer,
answer_alias}], orig: {triples, ...}, requested_rewrite, new_answer, ...}``. The benchmark is about editing models;
what is asked here is the world before the edits. The remastered copies write ``orig_triples`` at the top.

TwoHopFact and SOCRATES (Yang et al. 2024): two-hop statements to be completed, with both one-hop statements. CSV with
``uid``, the statements ``r1(e1).prompt``, ``r2(e2).prompt`` and ``r2(r1(e1)).prompt``, the entities ``e1.value``,
``e2.value`` (the bridge) and ``e3.value`` (the answer), their ``.aliases`` (nested lists, written as Python), and
``category`` or ``fact_comp_type``. A statement is asked as published for instruction-tuned models, as a blank to fill;
SOCRATES has wordings with the blank in its columns ``.blank.prompt``.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import text_files
from ..case import Case, Part
from ..gold import clustered, gold, others, part, same_last_answer, type_of_answer
from ..text_files import answers_field, objects, text_field
from .catalog import benchmark

_BAMBOOGLE = "Bamboogle with sub-questions: a JSON list of {Question, Answer, Q1, A1, Q2, A2}"


@benchmark("bamboogle")
def read_bamboogle(path: str | Path) -> list[Case]:
    """Read the cases; where the second sub-question is the question itself, ``meta`` says so.

    A case whose last hop is its own question tells nothing about composition. ``meta["part_is_whole"]`` marks it, but
    it is kept, because the published counts include it. Raises ``InputError`` naming item and field.
    """
    return [_bamboogle_case(row, i, where) for i, (where, row) in enumerate(objects(path, _BAMBOOGLE))]


def _bamboogle_case(row: dict[str, Any], index: int, where: str) -> Case:
    if not {"Q1", "A1", "Q2", "A2"} & row.keys():
        raise InputError(f"{where}: has no sub-questions (it has {', '.join(map(str, row))}); give {_BAMBOOGLE}")
    question = text_field(row, "Question", where)
    answer, aliases = answers_field(row, "Answer", where)
    parts = tuple(_part(row, hop, where) for hop in (1, 2))
    # The last hop's answer is the whole's: its accepted spellings hold for both.
    accepted = {answer.casefold(), *(a.casefold() for a in aliases)}
    last = (parts[1].answer, *parts[1].aliases)
    if accepted & {a.casefold() for a in last}:
        aliases += tuple(a for a in last if a.casefold() not in accepted)
    same = any(p.question.casefold() == question.casefold() for p in parts)
    return Case(
        id=f"bamboogle-{index:03d}",
        question=question,
        answer=answer,
        aliases=aliases,
        parts=parts,
        benchmark="bamboogle",
        depth=2,
        meta={"part_is_whole": True} if same else {},
    )


def _part(row: dict[str, Any], hop: int, where: str) -> Part:
    answer, aliases = answers_field(row, f"A{hop}", where)
    return Part(text_field(row, f"Q{hop}", where), answer, kind=f"hop-{hop}", aliases=aliases)


_MQUAKE = "MQuAKE-CF.json, MQuAKE-CF-3k.json or MQuAKE-T.json"


@benchmark("mquake", answer_alone=True)
def read_mquake(path: str | Path) -> list[Case]:
    """Read the cases: the first wording of each question, the others in ``meta["questions"]``.

    Raises ``InputError`` naming file, item and field.
    """
    return clustered([_mquake_case(row, where) for where, row in objects(path, _MQUAKE)])


def _mquake_case(row: Mapping[str, Any], where: str) -> Case:
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
            answer_type=type_of_answer(answer, questions[0]),
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
    if not isinstance(triples, list) or not all(isinstance(t, list) and len(t) == 3 for t in triples):
        return None
    return [" ".join(map(str, t[:2])) for t in triples] if len(triples) == n else None


_TWO_HOP_FACT = "TwoHopFact.csv or SOCRATES_v1.csv"
_STATEMENTS = ("r1(e1)", "r2(e2)", "r2(r1(e1))")
_NEEDED = (*(f"{s}.prompt" for s in _STATEMENTS), "e2.value", "e3.value")
_ABOUT = ("category", "fact_comp_type", "e1.value", "e2.value", "e3.value")
_KEPT = frozenset(
    [*_NEEDED, *(f"{s}.blank.prompt" for s in _STATEMENTS), *_ABOUT, "uid"]
    + [f"{e}.{a}" for e in ("e2", "e3") for a in ("aliases", "minimal_aliases")]
)


@benchmark("twohopfact", answer_alone=True)
def read_twohopfact(path: str | Path, benchmark: str = "twohopfact") -> list[Case]:
    """Read the cases. Raises ``InputError`` naming file, line and column."""
    columns, rows = text_files.table(path, f"give {_TWO_HOP_FACT}", _KEPT.__contains__, longest=text_files.LONG_CELL)
    missing = next((c for c in _NEEDED if c not in columns), None)
    if missing is not None:
        raise InputError(f"{path}: column {missing!r} is missing; give {_TWO_HOP_FACT}")
    return clustered([_statement_case(row, i, benchmark, f"{path}:{line}") for i, (line, row) in enumerate(rows)])


@benchmark("socrates", answer_alone=True)
def read_socrates(path: str | Path) -> list[Case]:
    """Read the cases of SOCRATES, which has TwoHopFact's columns."""
    return read_twohopfact(path, "socrates")


def _statement_case(row: Mapping[str, str], index: int, benchmark: str, where: str) -> Case:
    (bridge, bridge_names), (answer, names) = (_entity(row, e, where) for e in ("e2", "e3"))
    first, second, whole = (_asked(row, s, where) for s in _STATEMENTS)
    facts = [text_field(row, f"{s}.prompt", where).casefold() for s in _STATEMENTS[:2]]
    return Case(
        id=f"{benchmark}-{row.get('uid') or f'{index:05d}'}",
        question=whole,
        answer=answer,
        aliases=names,
        answer_type=type_of_answer(answer, whole),
        parts=(part(first, bridge, 1, bridge_names, atom=facts[0]), part(second, answer, 2, names, atom=facts[1])),
        benchmark=benchmark,
        family=row.get("category") or row.get("fact_comp_type") or None,
        depth=2,
        operation=row.get("fact_comp_type") or None,
        meta={k: row[k] for k in _ABOUT[2:] if row.get(k)},
    )


def _asked(row: Mapping[str, str], statement: str, where: str) -> str:
    with_blank = (row.get(f"{statement}.blank.prompt") or "").strip()
    return f"Fill in the blank: {with_blank or text_field(row, f'{statement}.prompt', where) + ' ____'}"


def _entity(row: Mapping[str, str], name: str, where: str) -> tuple[str, tuple[str, ...]]:
    value = text_field(row, f"{name}.value", where)
    for column in (f"{name}.aliases", f"{name}.minimal_aliases"):
        if (row.get(column) or "").strip():
            try:
                return value, others(value, _names(row[column]))
            except (ValueError, RecursionError) as e:
                raise InputError(f"{where}: column {column!r} is {row[column][:80]!r}; give a list of names") from e
    return value, ()


@lru_cache(maxsize=65536)
def _names(text: str) -> tuple[str, ...]:
    """The texts of a nested list that is written as Python; the same entity comes back in many rows."""
    found = text_files.literal(text.strip(), object)
    if found is None:
        raise ValueError("no list")
    return tuple(_texts(found))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield str(value)
