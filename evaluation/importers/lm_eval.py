"""lm-evaluation-harness: ``samples_TASK_TIME.jsonl`` as written with ``--log_samples``.

One line per document (and per answer filter, in newer versions): ``doc_id, doc, target, resps, filtered_resps,
filter, metrics`` and one field per metric. Tasks are independent there; which case and role a document belongs to is
read from the document's fields ``case`` and ``role``, or from those that the user names.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import text_files
from ..graded import Graded
from ..grading.text import normalize
from ..text_files import literal, objects
from .base import Imported, Options, Stored, contradiction, depth_of, described, outcome_of, place, refuse_twice

WHAT = "samples_TASK_TIME.jsonl of lm-evaluation-harness (--log_samples)"
_USUAL = ("exact_match", "acc", "acc_norm", "em", "correct")
_EQUALITY = ("exact_match", "em")
_NAME = re.compile(r"^samples_(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[\d.:-]+)?$")


def read_lm_eval(path: str | Path, options: Options = Options()) -> Imported:  # noqa: B008 (frozen)
    """Rows of one samples file; the metric is ``options.scorer``, or the only one, or the first usual one.

    Raises ``InputError`` for lines of another shape, for a file with several filters of which none is chosen, and for
    a metric that is not a right-or-wrong verdict.
    """
    named = _NAME.match(Path(path).stem)
    task = named["task"] if named else Path(path).stem
    model = options.model or _model(Path(path))
    rows, contradictions, stored = [], [], []
    samples = list(objects(path, WHAT))
    for where, sample in samples:
        if "doc_id" not in sample or not isinstance(sample.get("doc"), dict):
            raise InputError(f"{where}: fields doc_id and doc are missing; give {WHAT}")
    chosen = _filter([s for _, s in samples], options.filter, path)
    kept = [(where, s) for where, s in samples if s.get("filter") == chosen]
    for where, sample in kept:
        metric = _metric(sample, options.scorer, where)
        row = _row(sample, metric, task, model, options, where)
        rows.append(row)
        stored.append(_stored(sample, where))
        contradictions += _contradictions(sample, metric, row, where)
    refuse_twice(rows, path, "name the fields that hold them with --case-field and --role-field")
    left = len(samples) - len(kept)
    warnings = [f"{path}: {left} rows of other filters left out"] if left else []
    return Imported(rows, contradictions, warnings, stored)


def _filter(samples: Sequence[Mapping[str, Any]], wanted: str | None, path: object) -> str | None:
    names = list(Counter(s.get("filter") for s in samples))
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"--filter {wanted}: {path} has {', '.join(map(str, names))}")
        return wanted
    if len(names) > 1:
        raise InputError(
            f"{path}: every document has {len(names)} filtered answers; choose --filter {' or '.join(map(str, names))}"
        )
    return names[0]


def _metric(sample: Mapping[str, Any], wanted: str | None, where: str) -> str:
    listed = sample.get("metrics") or [m for m in _USUAL if m in sample]
    if wanted is not None:
        if wanted not in sample:
            raise InputError(f"{where}: --scorer {wanted}: no such metric; it has {', '.join(map(str, listed))}")
        return wanted
    usual = [m for m in _USUAL if m in listed and m in sample]
    if usual or len(listed) == 1:
        return usual[0] if usual else str(listed[0])
    raise InputError(f"{where}: none of the metrics {', '.join(map(str, listed))} is chosen; give --scorer")


def _row(sample: Mapping[str, Any], metric: str, task: str, model: str | None, options: Options, where: str) -> Graded:
    doc = sample["doc"]
    case, role = place({"doc_id": sample["doc_id"], **doc}, f"{task}-{sample['doc_id']}", options, where)
    outcome, reason = outcome_of(sample.get(metric), metric, where)
    return Graded(
        case, role, outcome, task, model=model, reason=reason, match=metric, answer=_answer(sample),
        gold=None if sample.get("target") is None else str(sample["target"]),
        depth=depth_of(doc), **described(doc),
    )  # fmt: skip


def _stored(sample: Mapping[str, Any], where: str) -> Stored | None:
    """The generated response; None for multiple choice, where likelihoods were compared and nothing was generated."""
    raw: Any = sample.get("resps")
    while isinstance(raw, list) and len(raw) == 1:
        raw = raw[0]
    target = sample.get("target")
    if not isinstance(raw, str) or target is None:
        return None
    # The target of GSM8K and its kin is a worked solution that ends in its answer.
    golds = tuple(filter(None, (str(t).rpartition("####")[2].strip() for t in _accepted(target))))
    return Stored(raw, golds, where=where) if golds else None


def _accepted(target: Any) -> list[Any]:
    """The answers that a target accepts; the harness writes a list of them as Python's text of it."""
    if isinstance(target, str) and target.startswith(("['", '["')):
        target = literal(target, list) or target
    return target if isinstance(target, list) else [target]


def _answer(sample: Mapping[str, Any]) -> str | None:
    """The filtered response of a generated answer; of multiple choice the number of the likeliest choice."""
    found = sample.get("filtered_resps")
    value = found[0] if isinstance(found, list) and found else found
    if isinstance(value, list) and isinstance(found, list) and len(found) > 1:
        return _likeliest(found)
    if isinstance(value, list) and len(value) == 1:  # of a filter that keeps all responses
        value = value[0]
    return value.strip() if isinstance(value, str) else None


def _likeliest(choices: Sequence[Any]) -> str | None:
    """Choices come as (log-likelihood, is it the greedy continuation), often both as text."""
    try:
        scores = [float(choice[0]) for choice in choices]
    except (TypeError, ValueError, IndexError):
        return None
    return str(max(range(len(scores)), key=scores.__getitem__)) if all(s == s for s in scores) else None


def _model(path: Path) -> str | None:
    """The model's name from the results file in the same folder; None without such a file."""
    named = _NAME.match(path.stem)
    beside = path.with_name(f"results_{path.stem[named.end('task') + 1 :]}.json") if named else None
    if beside is None or not beside.is_file():
        return None
    try:
        raw = text_files.document(beside, WHAT)
    except InputError:
        return None
    name = raw.get("model_name") if isinstance(raw, dict) else None
    return name if isinstance(name, str) and name else None


def _contradictions(sample: Mapping[str, Any], metric: str, row: Graded, where: str) -> list[dict[str, Any]]:
    """Equality whose answer is the target but counts as wrong, or has nothing to do with it but counts; and accuracy
    of multiple choice that the stored likelihoods speak against."""
    if metric == "acc":
        return _choice_contradictions(sample, row, where)
    if metric not in _EQUALITY or row.answer is None or row.gold is None or row.outcome == "invalid":
        return []
    if row.outcome == "incorrect" and row.answer == row.gold:
        return [contradiction(where, metric, sample[metric], 1, f"the answer is the target, {row.gold!r}")]
    if row.outcome == "correct" and not _alike(row.answer, row.gold):
        return [contradiction(where, metric, sample[metric], 0, f"answer {row.answer!r}, target {row.gold!r}")]
    return []


def _choice_contradictions(sample: Mapping[str, Any], row: Graded, where: str) -> list[dict[str, Any]]:
    found = sample.get("filtered_resps")
    is_choice = isinstance(found, list) and len(found) > 1 and isinstance(found[0], list)
    if not is_choice or row.answer is None or row.gold is None or not row.gold.isdigit() or row.outcome == "invalid":
        return []
    right = row.answer == row.gold
    if right == (row.outcome == "correct"):
        return []
    problem = f"choice {row.answer} is the likeliest, the target is {row.gold}"
    return [contradiction(where, "acc", sample["acc"], int(right), problem)]


def _alike(answer: str, gold: str) -> bool:
    """Whether some rule about case, punctuation, currency or surroundings could call two texts equal."""
    a, b = (normalize(text).replace(" ", "") for text in (answer, gold))
    digits = [re.sub(r"[^0-9.]", "", text).rstrip(".") for text in (answer, gold)]
    return a == b or a in b or b in a or (bool(digits[0]) and digits[0] == digits[1])
