"""A protocol in one file: ask the whole plainly, then once more with the first step's answer given.

    composcope evaluate --plugin examples/add_protocol.py --protocol first-step-given \
        --benchmark organism:mixed --model organism:control --limit 20
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from composcope.errors import InputError
from composcope.evaluation import Ask, Case, Grade
from composcope.evaluation.protocols import CaseSet, Entry, Graded, Reduction
from composcope.evaluation.protocols.asking import ask_part, ask_whole, pending
from composcope.evaluation.protocols.counting import by_model, difference, grouped, items, rate

GIVEN = "given:0"


@dataclass(frozen=True)
class FirstStepGiven:
    """Does being told the first step's answer help? ``gain`` = accuracy when told - accuracy of the plain whole."""

    format: str = "plain"
    max_tokens: int | None = None
    compat: str | None = None
    seed: int = 0
    name: str = field(default="first-step-given", init=False)

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """First round: the whole and the first step. Second round, where the whole failed: told the step's answer."""
        if not case.parts:
            raise InputError(f"case {case.id!r}: has no parts; this protocol needs at least one")
        first = case.parts[0]
        found = [
            ask_whole(case, "whole", case.question, self.format, self.max_tokens),
            ask_part(case, 0, "part:0", first.question, self.format, self.max_tokens),
        ]
        if "whole" in graded and graded["whole"].outcome != "correct":
            told = f"{first.question} {first.answer}. {case.question}"
            found.append(ask_whole(case, GIVEN, told, self.format, self.max_tokens))
        return pending(found, graded)

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """Rates over all cases and by depth and family; a whole that was right counts as right when told, too."""
        metrics = []
        for model, mine in by_model(rows):
            for group, cell in grouped(items(mine), groupings=(("depth",), ("family",))):
                where = {**model, **group}
                plain = [item.truth("whole") for item in cell]
                told = [item.truth(GIVEN) if GIVEN in item.rows else item.truth("whole") for item in cell]
                metrics += [
                    rate("composition", plain, where, of=cell),
                    rate("told", told, where, of=cell),
                    difference("gain", told, plain, where, seed=self.seed, of=cell),
                ]
        helped = [item for item in items(rows) if item.truth("whole") is False and item.truth(GIVEN)]
        alone = [item for item in items(rows) if item.truth("whole") and item.truth("part:0")]
        sets = (
            CaseSet("helped-by-first-step", "failure", tuple(map(_entry, helped))),
            CaseSet("needs-no-help", "success", tuple(map(_entry, alone))),
        )
        return Reduction(tuple(metrics), sets)


def _entry(item) -> Entry:
    first = item.first
    return Entry(item.case, item.evidence(["part:0", "whole", GIVEN]), first.family, first.depth, first.cluster)


PROTOCOLS = {"first-step-given": FirstStepGiven}
