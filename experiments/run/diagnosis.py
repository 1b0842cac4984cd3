"""Results of a diagnosis: writes and reads ``diagnosis/{cases.jsonl,table.csv,summary.json}`` in a run folder."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...evaluation.case import Case, shares
from ...evaluation.metrics import percent, span
from ...evaluation.statistics import rate_interval
from ...files import read_csv, to_csv
from . import read_json, write_json, write_lines, write_text
from .folder import placed_lines
from .provenance import write_beside
from .schema import DiagnosisAbout, checked

if TYPE_CHECKING:
    import pandas

FOLDER = "diagnosis"
GROUPS = ("all", "family", "depth")
AGAIN = "run `composcope diagnose RUN` again"
SHOWN, WIDTH = 3, 80
"""Cases shown in the summary, and characters of an answer."""
TEXTS = {
    "neutral": "a neutral beginning forced", "relation": "the relation forced as text",
    "bridge": "the parts' answers stated", "operands": "the operands forced",
    "repeated": "the question put twice", "filler": "filler before the answer",
}  # fmt: skip
"""What each forced or stated text is, in words."""
MEANS = {
    "format": "the answer has the wrong form",
    "near-miss": "the answer contains the right one among others",
    "order-error": "all items are there, in another order",
    "item-missing": "items of the list are missing or replaced",
    "answers-bridge": "it answers an earlier part and stops",
    "relation-lost": "it loses the relation that is asked for",
    "wrong-operation": "the operands come out right, but the operation or its result does not",
    "shortcut": "it follows a shortcut",
    "part-unavailable": "a part is not known in other words, or not inside the whole question",
    "bridge-not-computed": "it never computes the intermediate result",
    "bridge-not-routed": "it computes the intermediate result, but this does not reach the place of the answer",
    "lost": "a later block loses the right value",
    "too-late": "the right value comes too late, after the layers that need it",
    "fragile": "any disturbance mends it, so no cause is shown",
    "undetermined": "no cause is shown",
}
"""Each cause in plain words, in the order of tables and figures."""
CAUSES = tuple(MEANS)


@dataclass(frozen=True)
class Verdict:
    """Why a case failed."""

    case: str
    cause: str
    """One of ``CAUSES``. A shortcut also has its name (``shortcut:last-item``)."""
    evidence: tuple[str, ...]
    confidence: float = 0.0
    """Share of the failing variants that show the cause, pulled towards one half if they are few: (k + 1) / (n + 2)."""
    mended_by: str | None = None
    """The smallest intervention that mends most of the failing variants; None if no intervention does."""
    block: int | None = None
    """Only for ``lost``: the block, counted from 0, that loses the value; None where a deep model was read too seldom
    to tell which of several does."""
    settle: str | None = None
    """Only for ``undetermined``: what is left open, and what would settle it."""
    question: str | None = None
    """The whole of the case."""
    said: str | None = None
    """The answer to it."""
    gold: str | None = None
    """The right answer."""

    @property
    def kind(self) -> str:
        """The cause without the shortcut's name."""
        return self.cause.partition(":")[0]

    @property
    def means(self) -> str:
        """The cause in plain words."""
        return meaning(self.cause)

    @property
    def why(self) -> str:
        """The cause in plain words, with what mends it."""
        return self.means + (f" (mended by {self.mended_by})" if self.mended_by else "")

    def row(self) -> dict[str, Any]:
        """The line of ``cases.jsonl``."""
        known = {"settle": self.settle, "question": self.question, "said": self.said, "gold": self.gold}
        more = {name: text for name, text in known.items() if text is not None}
        return {"case": self.case, "cause": self.cause, "block": self.block, "confidence": self.confidence,
                "mended_by": self.mended_by, "evidence": list(self.evidence), **more}  # fmt: skip


@dataclass(frozen=True)
class CauseShare:
    """The share of one cause among the failing cases of a group."""

    group: str
    """``all``, ``family`` or ``depth``."""
    value: str
    """Which family or depth; empty for all."""
    cause: str
    count: int
    n: int
    share: float
    low: float | None
    high: float | None
    interval: str

    def __str__(self) -> str:
        shown = partial(percent, digits=0)
        return f"{self.cause}: {self.count} of {self.n} ({shown(self.share)}{span(self.low, self.high, shown)})"


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The causes of a run's failures."""

    path: Path
    """The run folder."""
    verdicts: Sequence[Verdict]
    shares: Sequence[CauseShare]
    about: Mapping[str, Any] = field(default_factory=dict)
    """Model, data, code, seed, versions, settings, seconds, and over all failing variants how often each forced text
    (``mended``) and each intervention on an opened decision (``interventions``) mends."""

    def __repr__(self) -> str:
        return f"<diagnosis of {self.path.name}: {self.sentence()}>"

    def to_df(self) -> "pandas.DataFrame":
        """One line per case: its cause with confidence, what mends it, question, answers and evidence."""
        import pandas

        return pandas.DataFrame([{**v.row(), "why": v.why} for v in self.verdicts])

    def of(self, case: str) -> Verdict | None:
        """The verdict on a case."""
        return next((v for v in self.verdicts if v.case == case), None)

    def causes(self, group: str = "all", value: str = "") -> list[CauseShare]:
        """Shares in a group, the most frequent cause first."""
        found = [s for s in self.shares if (s.group, s.value) == (group, value) and s.count]
        return sorted(found, key=lambda s: (-s.count, CAUSES.index(s.cause.partition(":")[0])))

    def sentence(self, words: bool = False) -> str:
        """One sentence: how many failures, and their causes; with what each means (``words``)."""
        if not self.verdicts:
            return "No case failed with every part right."
        causes = [s for s in self.causes() if s.cause != "undetermined"]
        named = [f"{s.count} {s.cause}" + (f" ({meaning(s.cause)})" if words else "") for s in causes]
        left = sum(v.cause == "undetermined" for v in self.verdicts)
        found = ", ".join(named) if named else "no cause was shown"
        n, every = len(self.verdicts), self.about.get("failures", len(self.verdicts))
        of = f"{n} of {every}" if every > n else f"{n}"
        one = of == "1"
        unjudged = self.about.get("unjudged", 0)
        judged = not (n and unjudged == n)
        what = f"failure{'s' * (not one)}" if judged else f"whole{'s' * (not one)} that could not be judged"
        said = f"Causes of {of} {what}: {found}" + (f"; {left} undetermined." if left else ".")
        return said + (f" {unjudged} of these could not be judged." if unjudged and judged else "")

    def lines(self) -> list[str]:
        """The summary as text."""
        out = [f"{self.path}: {self.sentence()}"]
        out += [f"  {share} ({share.interval}): {meaning(share.cause)}" for share in self.causes()]
        bare: list[str] = []
        for group in ("family", "depth"):
            values = list(dict.fromkeys(s.value for s in self.shares if s.group == group))
            if len(values) > 1:
                of = {v: self.causes(group, v) for v in values}
                out += [f"  {group} {v}: " + "; ".join(map(str, some)) for v, some in of.items()]
                bare += [s.interval for some in of.values() for s in some if s.low is None or s.high is None]
        why = (method.removeprefix("no interval: ") for method in dict.fromkeys(bare))
        out += [f"  shares without an interval: {reason}" for reason in why]
        if ids := self.about.get("left_out"):
            which = ", ".join(ids[:SHOWN]) + (", ..." if len(ids) > SHOWN else "")
            out.append(
                f"  {len(ids)} more with every part right are left out, since no rule could judge the whole: {which}"
            )
            out.append(f"    composcope diagnose {shlex.quote(str(self.path))} --case ID opens one")
        if mended := self.about.get("mended", {}):
            found = (f"{TEXTS.get(name, name)} {t['count']} of {t['n']}" for name, t in mended.items())
            out.append(
                "  what mends the failing cases and variants (no intervals, since the variants of a case belong "
                f"together): {'; '.join(found)}"
            )
        for own in (h for h in self.about.get("hypotheses", ()) if h["own"]):
            told = f"{own['count']} of {own['n']} pairs of right and predicted answer follow it"
            told = told if own["n"] else "it predicts no wrong answer in the failing cases"
            out.append(f"  hypothesis {own['name']}: {told}, {'' if own['admitted'] else 'not '}admitted")
        for v in self.verdicts[:SHOWN]:
            if v.question:
                out.append(f"  case {v.case}: {v.question}")
                out.append(f"    said {shortened(v.said or '')}, right is {v.gold!r}")
            out.append(f"    why: {v.why}")
            out += [f"    what remains open, not shown to be the cause: {v.settle}"] if v.settle else []
        if (more := len(self.verdicts) - SHOWN) > 0:
            left = "1 more case" if more == 1 else f"{more} more cases"
            out.append(f"  {left}, and the evidence of each, in {self.path / FOLDER / 'cases.jsonl'}")
        return out

    def document(self) -> dict[str, Any]:
        """The summary as JSON: the content of ``summary.json``."""
        return {
            "schema": 1, "run": self.path.name, "sentence": self.sentence(), "n": len(self.verdicts),
            "shares": [vars(s) for s in self.shares], **self.about,
        }  # fmt: skip


def meaning(cause: str) -> str:
    """A cause in plain words.

    >>> meaning("shortcut:last-item")
    'it follows a shortcut: last item'
    """
    kind, _, name = cause.partition(":")
    return MEANS[kind] + (f": {name.replace('-', ' ')}" if name else "")


def shortened(text: str) -> str:
    """A text on one line and in quotation marks; a long one ends with dots."""
    text = " ".join(text.split())
    return repr(text if len(text) <= WIDTH else f"{text[:WIDTH]}...")


def count(verdicts: Sequence[Verdict], cases: Mapping[str, Case]) -> list[CauseShare]:
    """Shares of the causes over all cases, by family and by depth. Intervals account for what cases share."""
    out: list[CauseShare] = []
    for group in GROUPS:
        values: dict[str, list[Verdict]] = {}
        for v in verdicts:
            value = "" if group == "all" else getattr(cases[v.case], group)
            if value is not None:
                values.setdefault(str(value), []).append(v)
        # depths in the order of their numbers, families as they come
        for value, members in sorted(values.items(), key=lambda item: int(item[0]) if group == "depth" else 0):
            labels = [shares(cases[v.case].cluster, cases[v.case].crossed) for v in members]
            for cause in dict.fromkeys(v.cause for v in members):
                hits = [v.cause == cause for v in members]
                interval = rate_interval(hits, labels)
                ends = interval.low, interval.high, interval.method
                out.append(CauseShare(group, value, cause, sum(hits), len(hits), sum(hits) / len(hits), *ends))
    return out


def write(found: Diagnosis) -> None:
    """Write the three files."""
    folder = found.path / FOLDER
    write_lines(folder / "cases.jsonl", (v.row() for v in found.verdicts))
    write_text(folder / "table.csv", to_csv([vars(s) for s in found.shares]))
    write_beside(folder / "table.csv", found.about.get("made_with", {}))
    write_json(folder / "summary.json", found.document())


def n_diagnosed(run: Path) -> int:
    """The number of cases in a run's diagnosis; its lines are not read, so that a broken one can be replaced."""
    file = run / FOLDER / "cases.jsonl"
    return sum(map(bool, map(bytes.strip, file.read_bytes().splitlines()))) if file.is_file() else 0


def read_diagnosis(run: str | Path) -> Diagnosis | None:
    """The result of ``composcope diagnose`` on a run; None if the run has not been diagnosed.

    Raises ``InputError`` if a file is broken.
    """
    path = Path(run).resolve()
    folder = path / FOLDER
    if not (folder / "summary.json").is_file():
        return None
    about = read_json(folder / "summary.json")
    checked(DiagnosisAbout, about, str(folder / "summary.json"), AGAIN)
    verdicts = [_verdict(row, where) for where, row in placed_lines(folder / "cases.jsonl")]
    table = [_share(row, f"{folder / 'table.csv'}:{n}") for n, row in enumerate(read_csv(folder / "table.csv")[1], 2)]
    known = ("schema", "run", "sentence", "n", "shares")
    return Diagnosis(path, verdicts, table, {k: v for k, v in about.items() if k not in known})


def _verdict(row: Mapping[str, Any], where: str) -> Verdict:
    found = checked(Verdict, row, where, AGAIN)
    if found.kind not in CAUSES:
        raise InputError(f"{where}: field 'cause' is {found.cause!r}; the causes are {', '.join(CAUSES)}; {AGAIN}")
    return found


def _share(row: Mapping[str, Any], where: str) -> CauseShare:
    open_ends = {k: None for k in ("low", "high") if row.get(k) in ("", "None")}
    return checked(CauseShare, {**row, **open_ends}, where, AGAIN)
