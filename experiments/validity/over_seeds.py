"""Rows over trainings: what the answers of several dose series, each examined by itself, come to.

The unit is the training. A trend or an AUROC of one training is one number here, however many cases it rests on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ...probes import validity as known_answers
from ...probes.effects import mean_interval
from ...probes.result import Row

Answers = Mapping[int, Sequence[Row]]
"""Seed of a training -> its rows."""
_TREND = "Kendall's tau-b"


def rows(answers: Answers, without_trend: Collection[int] = ()) -> list[Row]:
    """One row for each number, question and dose: the mean over trainings, and whether it excludes no effect.

    ``without_trend`` are trainings that lack a dose: a trend over fewer doses is another number.
    """
    found: dict[tuple[str, str, str], dict[int, Row]] = {}
    for seed, mine in answers.items():
        for row in mine:
            if row["measure"] == "AUROC" or (row["measure"] == _TREND and seed not in without_trend):
                found.setdefault((row["question"], row["model"], row["short"]), {})[seed] = row
    return [_over(by_seed, list(answers)) for by_seed in found.values()]


def _over(by_seed: Mapping[int, Row], seeds: Sequence[int]) -> Row:
    first = next(iter(by_seed.values()))
    quantity = str(first["quantity"]).split(":")[0]
    trend = first["measure"] == _TREND
    expected = str(next((r["expected"] for r in by_seed.values() if r.get("expected")), "increasing"))
    values = {s: float(r["value"]) for s, r in by_seed.items() if r.get("value") is not None}
    absent = [f"seed {s}: {by_seed[s].get('note') or 'undefined' if s in by_seed else 'not examined'}"
              for s in seeds if s not in values]  # fmt: skip
    about = {k: first[k] for k in ("probe", "short", "question", "model", "headline")}
    if values:
        (made,) = known_answers.over_trainings(
            list(values.values()), null=0.0 if trend else 0.5, expected=expected if trend else "increasing",
            bounds=(-1.0, 1.0) if trend else (0.0, 1.0), quantity=quantity,
        ).table  # fmt: skip
    else:
        made = {"quantity": f"{quantity}: over trainings", "n": 0, "value": None, "low": None, "high": None,
                "interval": "none", "as_expected": 0, "verdict": "cannot say (0 trainings)"}  # fmt: skip
    signs = f"{made['as_expected']} of {len(values)}"
    said = f"expected {expected}, sign as expected in {signs}" if trend else f"above 0.5 in {signs}"
    each = ", ".join(f"seed {s}: {v:.3f}" for s, v in values.items())
    return {
        **about, "measure": f"{first['measure']}, mean over trainings",
        "statement": "; ".join([f"{quantity}, {said}", *([each] if each else []), *absent]),
        **made, "group": "seeds " + ", ".join(map(str, values)), "expected": expected if trend else None,
        "as_expected": signs, **{f"seed {s}": values.get(s) for s in seeds}, "seed": "all",
        "note": "; ".join(absent) or None,
    }  # fmt: skip


def of_seeds(answers: Answers) -> list[Row]:
    """The answers of each training, told apart by its seed; the headline is what is over trainings."""
    return [{**row, "seed": seed, "model": f"{row['model']}, seed {seed}", "headline": False}
            for seed, mine in answers.items() for row in mine]  # fmt: skip


def means(found: Answers) -> list[Row]:
    """Each training's mean per dose, then their mean over trainings."""
    return [*({**row, "seed": seed} for seed, mine in found.items() for row in mine), *_mean_of_means(found)]


def _mean_of_means(found: Answers) -> Iterator[Row]:
    together: dict[tuple[str, str], list[Row]] = {}
    for mine in found.values():
        for row in mine:
            together.setdefault((str(row["quantity"]), str(row["group"])), []).append(row)
    for rows_of_dose in together.values():
        known = [float(r["value"]) for r in rows_of_dose if r.get("value") is not None]
        e = mean_interval(known)
        method = "Student t over trainings" if e.interval == "t" else e.interval
        kept = {k: rows_of_dose[0][k] for k in ("probe", "short", "question", "model", "quantity", "group")}
        mean = {"n": len(known), "value": e.value, "low": e.low, "high": e.high, "interval": method}
        yield {**kept, "measure": "mean over trainings", "headline": False, "seed": "all", **mean}


def note(seeds: Sequence[int], shipped: bool) -> str:
    """What a reader of the rows has to know about them."""
    text = (
        f"{len(seeds)} trainings per dose (seeds {', '.join(map(str, seeds))}), each examined by itself on the same "
        "cases. Rows over trainings have n = trainings and Student's interval over them, which is wide for so few; "
        "they say yes or reversed only where it excludes no effect, and are not corrected for their number. Intervals "
        "of a seed's own rows are over cases of that one training."
    )
    chosen = (
        " The shipped seed was chosen for doses that are well apart; `--only-series` leaves it out." if shipped else ""
    )
    return text + chosen
