"""Result files of the papers as graded rows: STaD's evaluated records, and Bamboogle with sub-questions.

Bamboogle: several prompt styles per question, both hops, three scorers' verdicts, as
``{"summary": {...}, "per_question_results": [{STYLE: {...}, "subquestions_result": {...}}]}``. The verdicts are
exact match (EM), covered exact match (CEM: the gold answer is in the response) and a model's opinion. The rows keep
the stored verdict of one scorer; that file's other statements are held against it. CEM was judged on the response as
returned (``Q1_returned``); ``Q1_pred`` is what EM was judged on, the answer cut out of its last line.

STaD: a judge that failed is -1, or 0 where its reply could not be parsed: the latter cannot be told from a wrong answer
any more. Solved items have no scaffold scores; files of the last stage hold failed items only.
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import text_files
from ..asks import Outcome
from ..benchmarks.stad import WHAT as STAD_RECORDS
from ..benchmarks.stad import StadItem, item_from_record, score
from ..gold import typed_answer
from ..graded import Graded
from ..text_files import objects
from .base import Imported, Options, Stored, contradiction

WHAT = "Bamboogle results: {summary, per_question_results: [{STYLE, ..., subquestions_result}]}"
SCORERS = ("CEM", "EM", "GPT_opinion")
_SUB = "subquestions_result"
_DEFAULT_WHOLE = "direct_answer"


def read_bamboogle_results(path: str | Path, options: Options = Options()) -> Imported:  # noqa: B008 (frozen)
    """Rows with roles ``part:0``, ``part:1``, ``whole`` (style ``options.whole``, default ``direct_answer``) and
    ``whole:STYLE`` for the other styles, judged by ``options.scorer`` (default CEM).

    Case ids count the questions as ``benchmarks.bamboogle`` does. Raises ``InputError`` naming item and field.
    """
    raw = _load(path)
    scorer = options.scorer or "CEM"
    if scorer not in SCORERS:
        raise InputError(f"--scorer {scorer}: {path} has {', '.join(SCORERS)}")
    model = options.model or Path(path).stem
    items = raw["per_question_results"]
    rows: list[Graded] = []
    stored: list[Stored | None] = []
    contradictions: list[dict[str, Any]] = []
    styles = _styles(items, path)
    whole = options.whole or (_DEFAULT_WHOLE if _DEFAULT_WHOLE in styles else next(iter(styles)))
    if whole not in styles:
        raise InputError(f"--whole {whole}: {path} has the styles {', '.join(styles)}")
    for i, item in enumerate(items):
        where, case = f"{path}: item {i}", f"bamboogle-{i:03d}"
        for style, key in styles.items():
            answer = _object(item, key, where)
            role = "whole" if style == whole else f"whole:{style}"
            rows.append(_whole(case, role, style, answer, scorer, model, where))
            stored.append(_stored(answer.get("returned"), answer.get("answer"), where))
            returned = str(answer["returned"]) if "returned" in answer else None
            contradictions += _contradictions(
                answer, "is_right", returned, answer.get("answer"), where, field=f"{style}.is_right_CEM", name=style
            )
        sub = _object(item, _SUB, where)
        rows += [_part(case, hop, sub, scorer, model, where) for hop in (1, 2)]
        stored += [_stored(_response(sub, hop), sub.get(f"Q{hop}_gt"), where) for hop in (1, 2)]
        contradictions += _part_contradictions(sub, where)
    counted = _summary_contradictions(raw.get("summary", {}), items, styles, path)
    size = raw.get("summary", {}).get("size_of_dataset")
    other = f"{path}: size_of_dataset is {size}, but there are {len(items)} items"
    return Imported(rows, contradictions + counted, [] if size in (None, len(items)) else [other], stored)


def _load(path: str | Path) -> dict[str, Any]:
    raw = text_files.document(path, f"give {WHAT}")
    if not isinstance(raw, dict) or not isinstance(raw.get("per_question_results"), list):
        raise InputError(f"{path}: field 'per_question_results' is missing; give {WHAT}")
    if not raw["per_question_results"]:
        raise InputError(f"{path}: per_question_results is empty; give {WHAT}")
    return raw


def _styles(items: Iterable[Any], path: object) -> dict[str, str]:
    """Prompt styles by the key under which they stand (some files add ``_result`` to it)."""
    keys = [k for item in items if isinstance(item, dict) for k in item if k != _SUB]
    styles = {k.removesuffix("_result"): k for k in dict.fromkeys(keys)}
    if not styles:
        raise InputError(f"{path}: no prompt style in per_question_results; give {WHAT}")
    return styles


def _object(item: Any, key: str, where: str) -> dict[str, Any]:
    value = item.get(key) if isinstance(item, dict) else None
    if not isinstance(value, dict):
        raise InputError(f"{where}: field {key!r} is {type(value).__name__}; give an object")
    return value


def _outcome(values: Mapping[str, Any], field: str, where: str) -> tuple[Outcome, str | None]:
    if field not in values:
        raise InputError(f"{where}: field {field!r} is missing; choose another --scorer ({', '.join(SCORERS)})")
    value = values[field]
    if isinstance(value, bool):
        return ("correct" if value else "incorrect"), None
    return "invalid", f"stored verdict {value!r}"


def _whole(case: str, role: str, style: str, answer: Mapping[str, Any], scorer: str, model: str, where: str) -> Graded:
    outcome, reason = _outcome(answer, f"is_right_{scorer}", f"{where}, {style}")
    return Graded(
        case, role, outcome, "bamboogle", depth=2, model=model, reason=reason, match=scorer, prompt=style,
        answer=_text(answer.get("returned")), gold=_text(answer.get("answer")),
    )  # fmt: skip


def _part(case: str, hop: int, sub: Mapping[str, Any], scorer: str, model: str, where: str) -> Graded:
    outcome, reason = _outcome(sub, f"Q{hop}_is_right_{scorer}", f"{where}, {_SUB}")
    return Graded(
        case, f"part:{hop - 1}", outcome, "bamboogle", depth=2, kind=f"hop-{hop}", model=model, reason=reason,
        match=scorer, answer=_text(sub.get(f"Q{hop}_returned")), gold=" | ".join(_golds(sub.get(f"Q{hop}_gt"))),
    )  # fmt: skip


def _stored(response: Any, golds: Any, where: str) -> Stored | None:
    accepted = tuple(_golds(golds))
    return Stored(response, accepted, where=where) if isinstance(response, str) and accepted else None


def _response(sub: Mapping[str, Any], hop: int) -> Any:
    """What was answered to a sub-question, as returned; files without it have the cut-out answer only."""
    return sub.get(f"Q{hop}_returned", sub.get(f"Q{hop}_pred"))


def _text(value: Any) -> str | None:
    return None if value is None else str(value).strip()


def _golds(value: Any) -> list[str]:
    return [str(v) for v in (value if isinstance(value, list) else [value]) if v is not None]


_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def _plain(text: str) -> str:
    """Lower case without punctuation and articles: what EM and CEM compare."""
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def _covers(response: Any, golds: Iterable[str]) -> bool:
    return any(_plain(g) in _plain(str(response)) for g in golds)


def _contradictions(
    values: Mapping[str, Any], prefix: str, response: Any, golds: Any, where: str, *, field: str, name: str
) -> list[dict[str, Any]]:
    """What one answer's CEM says against its stored response, and against its EM."""
    stored, found = values.get(f"{prefix}_CEM"), []
    if response is not None and isinstance(stored, bool) and (mine := _covers(response, _golds(golds))) != stored:
        problem = f"the gold answer is {'' if mine else 'not '}in the stored response"
        found.append(contradiction(where, field, stored, mine, problem))
    if values.get(f"{prefix}_EM") is True and stored is False:
        problem = "an exact match covers the gold answer too"
        found.append(contradiction(where, f"{name}: {prefix}_CEM", False, True, problem))
    return found


def _part_contradictions(sub: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    found = []
    for hop in (1, 2):
        prefix, response, golds = f"Q{hop}_is_right", _response(sub, hop), sub.get(f"Q{hop}_gt")
        found += _contradictions(sub, prefix, response, golds, where, field=f"{prefix}_CEM", name=_SUB)
    for scorer in SCORERS:
        first, second, both = (sub.get(f"{q}_right_{scorer}") for q in ("Q1_is", "Q2_is", "Q1_and_Q2"))
        if None not in (first, second, both) and bool(both) != (bool(first) and bool(second)):
            name = f"Q1_and_Q2_right_{scorer}"
            problem = f"Q1 is {first} and Q2 is {second}"
            found.append(contradiction(where, name, both, bool(first) and bool(second), problem))
    return found


def _summary_contradictions(
    summary: Mapping[str, Any], items: list[dict[str, Any]], styles: Mapping[str, str], path: object
) -> list[dict[str, Any]]:
    """Stored counters against the rows that they count."""
    found = []
    for scorer in SCORERS:
        counts = {
            style: sum(item[key].get(f"is_right_{scorer}") is True for item in items) for style, key in styles.items()
        }
        counts["both_subquestions"] = sum(item[_SUB].get(f"Q1_and_Q2_right_{scorer}") is True for item in items)
        for name, count in counts.items():
            stored = summary.get(f"{name}_correct_{scorer}")
            if stored is not None and stored != count:
                field = f"summary.{name}_correct_{scorer}"
                found.append(contradiction(str(path), field, stored, count, f"{count} rows say so"))
    return found


def read_stad_results(path: str | Path, options: Options = Options()) -> Imported:  # noqa: B008 (frozen)
    """Rows (``whole``, ``part:i``, ``scaffold:j``) of a file with scores, and warnings about the file.

    Raises ``InputError`` for a file without any score, or whose records have another shape.
    """
    rows: list[Graded] = []
    records = list(objects(path, STAD_RECORDS))
    stem = Path(path).stem
    for n, (where, record) in enumerate(records):
        item = item_from_record(record, f"{stem}-{n:04d}", where)
        rows += _rows(item, record, options.model, where)
    if not rows:
        raise InputError(f"{path}: no record has evaluation_score, decomposition_score or scaffolding_score")
    stored = [Stored(r.answer, (r.gold,), where=f"{path}: {r.case}") if r.answer and r.gold else None for r in rows]
    return Imported(rows, [], _stad_warnings([record for _, record in records], str(path)), stored)


def _rows(item: StadItem, record: Mapping[str, Any], model: str | None, where: str) -> list[Graded]:
    rows = []
    if "evaluation_score" in record:
        text = str(record.get("evaluation") or "")
        rows.append(_row(item, "whole", record["evaluation_score"], text, item.answer, model))
    for field, prefix, first, n in (
        ("decomposition", "part", 0, len(item.steps)),
        ("scaffolding", "scaffold", 1, len(item.steps) - 1),
    ):
        scores = _scores(record.get(f"{field}_score"), field, where)
        if scores and n >= 0 and item.steps and len(scores) != n:
            raise InputError(f"{where}: {len(scores)} scores in {field}_score for {n} {field}s; give one for each")
        texts = record.get(f"{field}_evaluation") or []
        for i, value in enumerate(scores):
            gold = item.answer if prefix == "scaffold" else (item.steps[i].answer if i < len(item.steps) else None)
            text = str(texts[i] or "") if i < len(texts) else ""
            rows.append(_row(item, f"{prefix}:{i + first}", value, text, gold, model))
    return rows


def _scores(value: Any, field: str, where: str) -> Sequence[Any]:
    """A list, or the object with one list in it that the released code writes."""
    if isinstance(value, dict):
        value = value.get(field, next(iter(value.values()), None))
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}: {field}_score is {value!r}; give a list, or an object with a list")
    return value


def _row(item: StadItem, role: str, value: Any, text: str, gold: str | None, model: str | None) -> Graded:
    verdict = score(value)
    outcome: Outcome = "invalid" if verdict is None else "correct" if verdict else "incorrect"
    skills = tuple(s.skill or "" for s in item.steps)
    return Graded(
        case=item.id,
        role=role,
        outcome=outcome,
        benchmark="stad",
        depth=len(item.steps) or None,
        skills=skills if any(skills) else (),
        kind="step" if role.startswith("part:") else None,
        model=model,
        reason=None if verdict is not None else f"score {value!r}",
        answer=text or None,
        gold=None if gold is None else typed_answer(gold)[0],
        match="judge",
    )


def _stad_warnings(records: Sequence[Mapping[str, Any]], path: str) -> list[str]:
    found = []
    texts = sum(isinstance(r.get("evaluation_score"), str) for r in records)
    if texts:
        found.append(f"{path}: {texts} evaluation_score values are text; read as numbers")
    scored = [score(r["evaluation_score"]) for r in records if "evaluation_score" in r]
    failed = sum(s is None for s in scored)
    if failed:
        found.append(f"{path}: {failed} originals were not judged; invalid, not wrong")
    if scored and not any(scored) and any("scaffolding_score" in r for r in records):
        found.append(f"{path}: failed items only; accuracies need the file with all originals scored")
    return found
