"""An evaluated run in a notebook: its metrics, its failing cases, one case, and probes on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import InputError, NoCasesError, did_you_mean, from_python
from ...evaluation.asks import Ask
from ...evaluation.case import Case
from ...evaluation.graded import Graded
from ...evaluation.prompts import with_evidence
from ...terminal import how_many, quietly
from ..config import check_options
from ..run.diagnosis import FOLDER, Diagnosis, Verdict, read_diagnosis
from ..run.reader import Row, RunData
from ..run.single_cases import Rendered, read_rendered
from ..run.summary import of_known_parts
from .shown import ProbeResults, Table, frame_html, heading, place, probed_now, signals

if TYPE_CHECKING:
    import pandas
    import xarray

    from ...hooks.model import Model
    from ..figures.drawing import Drawing
    from ..models.target import Target

_MARKS = {"correct": "✓", "incorrect": "✗", "abstained": "abstained", "invalid": "invalid"}
_LISTED = 8
_OTHER = {"failure": "success", "success": "failure"}
T = TypeVar("T")


def _whole(graded: Sequence[Graded]) -> Graded | None:
    return next((g for g in graded if g.role == "whole"), None)


def _at(things: Sequence[T], number: str) -> T | None:
    """The thing with a number in writing; None where there is none."""
    return things[int(number)] if number.isdecimal() and int(number) < len(things) else None


@dataclass(frozen=True, repr=False)
class CaseResult:
    """One case: the question, the gold answer, and the model's answers to the whole and to each part."""

    case: Case
    label: str | None
    """``failure``, ``success``, or None for a case that is in neither set."""
    graded: Sequence[Graded]
    """One row per question asked, the whole first."""
    responses: Sequence[str | None]
    """The model's response to each of them; None without a journal."""
    asks: Sequence[Ask | None] = ()
    """Each question as it was put; None in a run that keeps no questions."""
    verdict: Verdict | None = None
    """What the diagnosis of the run found, with its evidence; None for a case that was not diagnosed."""
    run: RunData | None = field(default=None, compare=False)
    prompt: str | None = None
    """The whole as it was put to the model, chat template and special tokens included; without them if the run does
    not know them, and None if it keeps no questions. ``lm.tokens(case.prompt)`` begins it as the model saw it."""

    @property
    def id(self) -> str:
        return self.case.id

    @property
    def question(self) -> str:
        return self.case.question

    @property
    def answer(self) -> str:
        """The gold answer."""
        return self.case.answer

    @property
    def cause(self) -> str | None:
        """The cause of the failure, as ``composcope diagnose`` names it; None for a case that was not diagnosed."""
        return self.verdict and self.verdict.cause

    @property
    def why(self) -> str | None:
        """The cause in plain words, with what mends it; None for a case that was not diagnosed."""
        return self.verdict and self.verdict.why

    @property
    def signals(self) -> Mapping[str, xarray.DataArray]:
        """Attention, patching, neurons, readouts, ... at the tokens of this case, as arrays with named axes.

        By probe, role and array (``"lookback whole attention"``); ``attrs["tokens"]`` are the tokens. A run's probes
        keep a few cases of each group (``composcope probe RUN --case-details 4``); empty for the others.
        """
        return signals(self.run, self.id) if self.run else {}

    @property
    def whole(self) -> Graded | None:
        """The graded answer to the whole question; None if it was not asked."""
        return _whole(self.graded)

    @property
    def parts(self) -> list[Graded]:
        """The graded answers to the parts, in their order, without paraphrases."""
        return [g for g in self.graded if g.role.startswith("part:") and g.role.count(":") == 1]

    def to_df(self) -> pandas.DataFrame:
        """One line per question asked: role, gold, the answer taken from the response, the verdict, the response."""
        asks = self.asks or [None] * len(self.graded)
        rows = zip(self.graded, asks, self.responses, strict=True)
        return Table(self.id, [self._row(g, ask, said) for g, ask, said in rows]).to_df()

    def _row(self, g: Graded, ask: Ask | None, said: str | None) -> Row:
        asked = self._of_role(g.role) if ask is None or ask.question is None else self._wording(ask.question)
        return {"role": g.role, "question": asked, "gold": g.gold, "answer": g.answer, "outcome": g.outcome,
                "reason": g.reason, "response": said}  # fmt: skip

    def _wording(self, asked: str) -> str:
        """A question without the case's evidence, which stands before all of them."""
        return asked.removeprefix(with_evidence("", self.case.evidence)) if self.case.evidence else asked

    def _of_role(self, role: str) -> str | None:
        """The question of a role in the case file's words, for runs that keep no questions."""
        kind, *rest = role.split(":")
        if kind == "whole":
            return self.case.question
        part = _at(self.case.parts, rest[0]) if kind == "part" and rest else None
        if part is None or rest[1:2] != ["paraphrase"]:
            return None if part is None else part.question
        return _at(part.paraphrases, rest[-1])

    def __repr__(self) -> str:
        parts = [_MARKS[g.outcome] for g in self.parts]
        whole = "not asked" if self.whole is None else f"{_MARKS[self.whole.outcome]} {self.whole.answer!r}"
        known = f"parts {' '.join(parts)}, " if parts else ""
        label = ", ".join(filter(None, (self.label or "neither", self.cause)))
        return f"<case {self.id} ({label}): {known}whole {whole}, gold {self.answer!r}>"

    def _repr_html_(self) -> str:
        frame = self.to_df()
        if self.graded:  # a run that was stopped has cases that were not asked
            frame["outcome"] = [_MARKS[o] for o in frame["outcome"]]
        gold = f"<p>{escape(self.question)}<br>gold: <b>{escape(self.answer)}</b>"
        gold += f"<br>why: {escape(self.why)}</p>" if self.why else "</p>"
        return heading(self.id, self.label or "neither failure nor success") + gold + frame_html(frame)


@dataclass(frozen=True, repr=False)
class CaseGroup(Sequence[CaseResult]):
    """Cases of a run, such as its failures: a sequence of cases that can be probed together."""

    run: RunResults
    label: str
    ids: tuple[str, ...]

    @from_python()
    def probe(
        self,
        name: str,
        *,
        cases: int | None = None,
        against: CaseGroup | None = None,
        quiet: bool = False,
        **options: Any,
    ) -> ProbeResults:
        """Measure a probe on these cases, by default against matched successes (or failures, for successes).

        With the run's own settings, the result is kept in the run's folder, as with ``composcope probe``, and existing
        results are not measured again. A result with other settings stays in memory, and the run's folder stays as it
        is: at most ``cases`` matched pairs instead of the run's ``probe_cases``, other cases to compare with
        (``against``), only some failures (``run.failures[:8]``), or other options of the probes (``position``,
        ``rows_dtype``).

        Raises ``InputError`` for an unknown probe, and ``NoCasesError`` if there is nothing to measure.
        """
        from . import probing

        if not isinstance(name, str):
            own = "; a probe of your own is known by its name after composcope.load_plugin(FILE)" * callable(name)
            raise InputError(f"probe {name!r}: give the name of one, such as 'lookback'{own}")
        run, given = self.run, {**options, **({} if cases is None else {"probe_cases": cases})}
        if not self.ids:
            raise NoCasesError(f"{run.name}: no {self.label} cases to probe; use more or other cases")
        if not isinstance(against, CaseGroup | None):
            raise InputError(f"against of type {type(against).__name__}; give a group of cases such as run.successes")
        if against is not None and (against.run.data.path != run.data.path or against.label == self.label):
            what = f"{against.label} cases of {against.run.name}"
            raise InputError(f"against: {what} beside {self.label} cases of {run.name}; give other cases of this run")
        own = probing.run_config(run.data, run.model)
        config = own.replace(**given, probes=name)
        if len(config.probes) != 1:
            raise InputError(
                f"probe {name!r}: {how_many(len(config.probes), 'probe')}; give one, and call once for each"
            )
        with quietly(quiet):
            target = run.target  # loaded here if it was not yet
        same = config.replace(probes=()) == own.replace(probes=())  # the run's may be those of a plugin
        if against is None and self.ids == run._labelled(self.label) and same:
            probing.measure_and_keep(run.data, target, own, config.probes[0], quiet)
            return probing.kept(run.data, config.probes[0])
        others = run._labelled(_OTHER.get(self.label, "")) if against is None else against.ids
        return probing.measure(run.data, target, config, {*self.ids, *others}, quiet)

    def to_df(self) -> pandas.DataFrame:
        """One line per case: question, gold answer, the answer given, and the judgement of each question."""
        return Table(self.label, [_line(case) for case in self]).to_df()

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[CaseResult]:
        return (self.run.case(case) for case in self.ids)

    def __getitem__(self, i: Any) -> Any:
        """A case by its position or id; a slice, a list, array or column of positions or ids, or a mask with one truth
        value per case gives a smaller group. Raises ``InputError`` for a position, id or mask that does not fit.
        """
        if isinstance(i, slice):
            return CaseGroup(self.run, self.label, self.ids[i])
        i = i.tolist() if hasattr(i, "tolist") else i  # numpy, pandas
        if isinstance(i, list | tuple):
            if any(isinstance(one, bool) for one in i):
                if len(i) != len(self) or not all(isinstance(one, bool) for one in i):
                    raise InputError(f"{self!r}: a mask of {len(i)} values; give True or False for each case")
                i = [n for n, kept in enumerate(i) if kept]
            return CaseGroup(self.run, self.label, tuple(self[one].id for one in i))
        if not isinstance(i, str) and (not isinstance(i, int) or not -len(self) <= i < len(self)):
            fix = f"; give an id, or a position from 0 to {len(self) - 1}" if self.ids else ""
            raise InputError(f"{self!r}: no case {i!r}{fix}")
        found = self.run.case(i if isinstance(i, str) else self.ids[i])
        if found.id not in self.ids:
            raise InputError(f"{self!r}: case {i!r} is none of them; run.case({i!r}) has it")
        return found

    def __repr__(self) -> str:
        first = ", ".join(self.ids[:_LISTED]) + (", ..." if len(self) > _LISTED else "")
        return f"<{how_many(len(self), f'{self.label} case')} of {self.run.name}: {first}>"

    def _repr_html_(self) -> str:
        return heading(how_many(len(self), f"{self.label} case"), f"of {self.run.name}") + frame_html(self.to_df())


def _line(found: CaseResult) -> Row:
    verdicts = {g.role: _MARKS[g.outcome] for g in found.graded if g.role.count(":") <= 1}
    given = None if found.whole is None else found.whole.answer
    return {"case": found.id, "question": found.question, "gold": found.answer, "answer": given, "cause": found.cause,
            **verdicts}  # fmt: skip


@dataclass(repr=False)
class RunResults:
    """An open run folder: ``metrics``, ``failures``, ``case(id)``, and the model, which is loaded when needed."""

    data: RunData
    model: Any = None
    """A model in memory to probe instead of the model that the run names."""
    tokenizer: Any = None
    _target: Target | None = field(default=None)
    _diagnosed: tuple[int | None, Mapping[str, Verdict]] = field(default=(None, {}), init=False)

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def path(self) -> str:
        """The run's folder."""
        return str(self.data.path)

    @cached_property
    def metrics(self) -> Table:
        """Every metric with n, value and interval; intervals are over clusters if cases share facts or items."""
        rows = []
        for metric in self.data.metrics:
            row = metric.to_dict()
            rows.append({"metric": row.pop("metric"), **row.pop("group"), **row})
        return Table(f"metrics of {self.name}", rows)

    @property
    def cases(self) -> CaseGroup:
        """Every case that was asked about."""
        return CaseGroup(self, "evaluated", tuple(self.data.cases))

    @property
    def failures(self) -> CaseGroup:
        """The cases that fail by composition: every part right, the whole wrong."""
        return CaseGroup(self, "failure", self._labelled("failure"))

    @property
    def successes(self) -> CaseGroup:
        """The cases whose parts and whole are right."""
        return CaseGroup(self, "success", self._labelled("success"))

    @property
    def warnings(self) -> Sequence[str]:
        """What to know before reading the numbers, such as many answers that are cut off, and what helps."""
        return self.data.warnings

    def _labelled(self, label: str) -> tuple[str, ...]:
        failures, successes = self.data.groups
        return tuple({"failure": failures, "success": successes}.get(label, ()))

    @cached_property
    def _labels(self) -> dict[str, str]:
        return {case: label for label in ("success", "failure") for case in self._labelled(label)}

    def case(self, id: str) -> CaseResult:
        """One case with everything that was asked about it. Raises ``InputError`` for an unknown id."""
        if not isinstance(id, str):
            raise InputError(f"case {id!r}: give an id such as {next(iter(self.data.cases))!r}, or use run.cases[0]")
        if id not in self.data.cases:
            raise InputError(
                f"{self.name}: no case {id!r} among its {len(self.data.cases)}{did_you_mean(id, self.data.cases)}"
            )
        rows = sorted(self.data.by_case[id], key=place)
        answered = self.data.responses
        said = [answered[g.ask].text if g.ask in answered else None for g in rows]
        asks = [self.data.asks.get(g.ask or "") for g in rows]
        whole, verdict = _whole(rows), self._verdicts().get(id)
        ask = self.data.asks.get(whole.ask or "") if whole else None
        put = self._sent.text(str(whole.ask), ask.prompt) if whole and ask else None
        return CaseResult(self.data.cases[id], self._labels.get(id), rows, said, asks, verdict, self.data, put)

    @cached_property
    def _sent(self) -> Rendered:
        return read_rendered(self.data.path)

    def _verdicts(self) -> Mapping[str, Verdict]:
        """What the diagnosis found by case, read again when the run was diagnosed since: a run stays open for long."""
        file = self.data.path / FOLDER / "summary.json"
        written = file.stat().st_mtime_ns if file.is_file() else None
        if self._diagnosed[0] != written:
            found = read_diagnosis(self.data.path)
            self._diagnosed = written, {v.case: v for v in found.verdicts} if found else {}
        return self._diagnosed[1]

    def probe_results(self, name: str) -> ProbeResults:
        """The results of a probe in the run's folder. Raises ``InputError`` if there are none."""
        from . import probing

        return probing.kept(self.data, name)

    @from_python()
    def diagnose(self, **options: Any) -> Diagnosis:
        """The causes of the failures, as ``composcope diagnose`` names them; ``case(id)`` has them from then on.

        ``options`` are those of ``composcope.diagnose`` (``cases``, ``ids``, ``seed``, ``quiet``).
        """
        from ..diagnosis.job import diagnose

        check_options(options, ("cases", "ids", "seed", "quiet"))
        with quietly(bool(options.get("quiet"))):
            target = None if self.model is None else self.target
        return diagnose(self.data, target=target, **options)

    @property
    def target(self) -> Target:
        """The model with its tokenizer and engine; loaded when first needed."""
        if self._target is None:
            from . import probing

            self._target = probing.load(self.data, self.model, self.tokenizer)
        return self._target

    @cached_property
    def lm(self) -> Model:
        """The model, opened for reading and editing."""
        return self.target.open_model()

    @from_python()
    def plot(self, figure: str, **options: Any) -> Drawing:
        """A figure of the run by name, such as ``collapse-curve``; ``composcope.plot`` lists them."""
        from ..figures import draw

        return draw(figure, [probed_now(self.data)], **options)

    def __fspath__(self) -> str:
        """The run's folder, so that a run can be given wherever a folder can."""
        return self.path

    def __repr__(self) -> str:
        d = self.data
        about = f"{d.model} on {d.benchmark} ({d.protocol}), {how_many(len(d.cases), 'case')}"
        return f"<run {self.name}: {about}, {self._sets()}>"

    def _sets(self, which: str = "") -> str:
        successes = how_many(len(self.successes), "success", "successes")
        return f"{how_many(len(self.failures), 'failure')}{which}, {successes}"

    def _repr_html_(self) -> str:
        d = self.data
        about = f"{d.model} on {d.benchmark}, protocol {d.protocol}, {how_many(len(d.cases), 'case')}"
        said = f"<p>{self._sets(of_known_parts(d.protocol))}</p>" + "".join(
            f"<p>{escape(w)}</p>" for w in self.warnings
        )
        return heading(self.name, about) + said + frame_html(self.metrics.to_df())
