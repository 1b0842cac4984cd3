"""Rows over trainings: combines the answers of several dose series, each examined separately.

The unit is the training. A trend or an AUROC of one training counts as one number here, whatever its number of cases.
The verdicts come from ``probes.verdicts``, computed from the numbers of each case.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

import numpy as np

from ...errors import NoCasesError
from ...evaluation.case import shares
from ...probes.effects import mean_interval
from ...probes.result import Row
from ...probes.verdicts import NOTHING, TRAININGS, Observations, verdict
from .scores import BASELINES

AnswersBySeed = Mapping[int, Sequence[Row]]
"""Seed of a training -> its rows."""
_TREND = "Kendall's tau-b"


def rows(answers: AnswersBySeed, cases: Sequence[Row], without_trend: Collection[int] = ()) -> list[Row]:
    """One row for each number, question and dose: the mean over trainings, and their joint verdict.

    ``without_trend`` are trainings that lack a dose: a trend over fewer doses is not comparable.
    """
    found: dict[tuple[str, str, str], dict[int, Row]] = {}
    for seed, mine in answers.items():
        for row in mine:
            if row.get("kind") == "control":
                continue  # a positive control describes its training; its cases are not among the shared ones
            if row["measure"] == "AUROC" or (row["measure"] == _TREND and seed not in without_trend):
                found.setdefault((row["question"], row["model"], row["short"]), {})[seed] = row
    tables: dict[tuple[str, str], list[Row]] = {}
    for row in cases:
        tables.setdefault((row["question"], row["model"]), []).append(row)
    return [_over(by_seed, list(answers), tables.get(about[:2], [])) for about, by_seed in found.items()]


def _over(by_seed: Mapping[int, Row], seeds: Sequence[int], cases: Sequence[Row]) -> Row:
    first = next(iter(by_seed.values()))
    quantity = str(first["quantity"]).split(":")[0]
    trend = first["measure"] == _TREND
    expected = str(next((r["expected"] for r in by_seed.values() if r.get("expected")), "increasing"))
    try:
        made = verdict(
            _seen(quantity, [r for r in cases if r["seed"] in by_seed]), measure="trend" if trend else "auroc",
            expected=expected, quantity=quantity, without_lowest=trend,
        )  # fmt: skip
    except NoCasesError as e:
        made = {"quantity": f"{quantity}: over trainings", "n": 0, "value": None, "low": None, "high": None,
                "interval": "none", "as_expected": 0, "note": str(e),
                "verdict": f"cannot say: 0 trainings ({TRAININGS} are needed)"}  # fmt: skip
    absent = [f"seed {s}: {_why(by_seed.get(s))}" for s in seeds if f"seed {s}" not in made]
    about = {k: first[k] for k in ("probe", "short", "question", "model", "headline", "kind") if k in first}
    null = 0 if trend else 0.5
    said = f"expected {expected}, as expected in {made['as_expected']} of {made['n']}"
    each = [f"seed {s}: {made[f'seed {s}']:.3f}" for s in seeds if f"seed {s}" in made]
    return {
        **about, "measure": f"{first['measure']}, mean over trainings",
        "statement": "; ".join([f"{quantity}, {said}", *([", ".join(each)] if each else []), *absent]),
        **made, "group": "seeds " + ", ".join(str(s) for s in seeds if f"seed {s}" in made),
        "as_expected": f"{made['as_expected']} of {made['n']}", **{f"seed {s}": made.get(f"seed {s}") for s in seeds},
        "nothing": f"within {NOTHING['trend' if trend else 'auroc']:g} of {null:g}", "seed": "all",
        "note": "; ".join(absent) or None,
    }  # fmt: skip


def _why(row: Row | None) -> str:
    return "not examined" if row is None else str(row.get("note") or "too few cases")


def _seen(quantity: str, cases: Sequence[Row]) -> Observations:
    """The observations of one number, with the baselines; a baseline is also observed as a number itself."""

    def column(name: str) -> np.ndarray:
        return np.array([np.nan if r.get(name) is None else r[name] for r in cases], dtype=float)

    known = {name: column(of) for name, of in BASELINES.items()}
    return Observations(
        [r["seed"] for r in cases], [r["level"] for r in cases], [_shared(r) for r in cases], column(quantity),
        {name: x for name, x in known.items() if np.isfinite(x).any()},
    )  # fmt: skip


def _shared(row: Row) -> Hashable:
    """What a case shares with others, or the case."""
    crossed = row.get("crossed") or ()
    cluster = None if crossed and row["cluster"] == row["case"] else row["cluster"]
    return shares(cluster, crossed)


def of_seeds(answers: AnswersBySeed) -> list[Row]:
    """The answers of each training, marked with its seed; only rows over trainings are headlines."""
    return [{**row, "seed": seed, "model": f"{row['model']}, seed {seed}", "headline": False}
            for seed, mine in answers.items() for row in mine]  # fmt: skip


def means(found: AnswersBySeed) -> list[Row]:
    """Each training's mean per dose, then their mean over trainings."""
    return [*({**row, "seed": seed} for seed, mine in found.items() for row in mine), *_mean_of_means(found)]


def _mean_of_means(found: AnswersBySeed) -> Iterator[Row]:
    together: dict[tuple[str, str], list[Row]] = {}
    for mine in found.values():
        for row in mine:
            together.setdefault((str(row["quantity"]), str(row["group"])), []).append(row)
    for rows_of_dose in together.values():
        known = [float(r["value"]) for r in rows_of_dose if r.get("value") is not None]
        e = mean_interval(known)
        method = "Student t over trainings" if e.interval == "t" else e.interval
        kept = {k: rows_of_dose[0].get(k) for k in ("probe", "kind", "short", "question", "model", "quantity", "group")}
        mean = {"n": len(known), **e._asdict(), "interval": method}
        yield {**kept, "measure": "mean over trainings", "headline": False, "seed": "all", **mean}


def note(seeds: Sequence[int], shipped: bool) -> str:
    """A note for readers of the rows."""
    text = (
        f"{len(seeds)} trainings per dose (seeds {', '.join(map(str, seeds))}), each examined by itself on the same "
        f"cases. A verdict needs {TRAININGS} of them. Yes: interval and sign-flip test over trainings exclude no "
        "effect, also "
        "without the lowest dose and beyond length, first-token confidence and the question's log-likelihood. No: "
        "the 90 % interval lies within the bounds. Verdicts are not corrected for their number; nulls and confounds, "
        "whose answer is known, are included. A seed's own rows are over cases of that one training."
    )
    chosen = (
        " The shipped seed was chosen for doses that are well apart; `--only-series` leaves it out." if shipped else ""
    )
    return text + chosen
