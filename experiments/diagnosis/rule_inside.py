"""From what interventions inside the model show to a cause.

    from_inside(found, seen, held)  # ("lost", Tally(9, 10), "skip block 3", 3)

``STEPS`` are asked in their order, and the first that does not say None decides: for a cause, or that the case stays
``OPEN``. The thresholds are in ``thresholds``; nothing is measured here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .evidence import Behaviour, Found, Inside, Tally, rare
from .readings import Held, readable
from .rule import blind, half_followed, spoilt_anyway
from .thresholds import (
    ABSENT,
    ADMITTED,
    ALL,
    ASKED,
    BROKEN,
    BROUGHT,
    COMPARED,
    CONTROL,
    EXCESS,
    FEWEST,
    FEWEST_DIFFERENT,
    FOREIGN_BROUGHT,
    FOREIGN_RUN,
    INTACT,
    MANY,
    MOST,
    OWN_ITEMS,
    OWN_OF_ALL,
    READ,
    ROUTED,
    admitted,
    beats_noise,
    both_selected,
    brought,
    by_itself,
    demonstrated,
    from_elsewhere,
    late,
    mostly,
    nearly_all,
    needed_late,
    outdoes_noise,
    partly,
    selected_late,
    shows,
    stands_out,
    varied,
)

Shown = tuple[str, Tally, str | None, int | None]
"""A cause, how many variants show it, what mends it, and the block."""
OPEN: Shown = ("undetermined", Tally(), None, None)


@dataclass(frozen=True)
class Opened:
    """A case that was opened: what interventions and its answers show, and what its states hold."""

    found: Inside
    seen: Behaviour
    held: Sequence[Held] = ()

    def test(self, name: str) -> Found:
        """What one intervention shows: ``skip``, ``noise``, ``back``, ``move``, ``across``, ``own:entity``, ..."""
        return self.found.test(name)

    @cached_property
    def own(self) -> Found:
        """The own part's state where the answer is decided; in a model that selects late, in its later layers."""
        decision, later = self.test("own:decision"), self.test("own:later")
        return later if selected_late(self.test("own:entity"), later) and not demonstrated(decision) else decision

    @cached_property
    def known(self) -> bool:
        """Whether it mends, and its controls do not: then what is missing is known, whatever else is wrong."""
        return demonstrated(self.own)

    @cached_property
    def arrives(self) -> bool:
        return arriving(self.found, self.seen)

    @cached_property
    def donor(self) -> Found:
        """The own part's state where it mends at all."""
        return self.found.test("own:later") if self.arrives and not self.known else self.own


def from_inside(found: Inside, seen: Behaviour, held: Sequence[Held] = ()) -> Shown | None:
    """Cause, how many show it, what mends it and the block, from interventions; None if no cause is demonstrated.

    Among all layers and places, some change mends a case and its variants by chance. So no cause is named if
    there are too few cases to choose the place for each other. Where all variants have one right answer, one error may
    come back in them: the lack of a bridge then says nothing. Unless the own part's state mends where the answer is
    decided (``known``), more is wrong than one thing before it, or a left-out block has to show alone what is wrong.
    """
    case = Opened(found, seen, held)
    shown = next((shown for step in STEPS if (shown := step(case)) is not None), OPEN)
    return None if shown is OPEN else shown


def _too_little(case: Opened) -> Shown | None:
    """Too few cases to choose places, or something else than a bridge is wrong."""
    return OPEN if not case.found.enough or case.seen.own_operands_right or unasked(case.seen) else None


def _brought(case: Opened) -> Shown | None:
    """A state of the same question, moved to where it is needed, mends."""
    move = case.test("move")
    brings = brought(move, case.test("skip"), case.test("noise"))
    return ("bridge-not-routed", move.own, f"state moved {move.cell}", None) if brings else None


def _anything_mends(case: Opened) -> Shown | None:
    """Whatever is changed mends, so that no change shows what was wrong."""
    skip, move = case.test("skip"), case.test("move")
    both = min(skip.pool.share, move.pool.share) >= ROUTED
    return OPEN if both and not (skip.pool.share >= ALL and beats_noise(skip, move)) else None


def _half_a_shortcut(case: Opened) -> Shown | None:
    """The block that mends the case, if left out, may be what writes the shortcut's answer."""
    return OPEN if half_followed(case.seen) else None


def _block_left_out(case: Opened) -> Shown | None:
    """A block that mends, left out, overwrites what was computed."""
    skip, noise = case.test("skip"), case.test("noise")
    works = case.known or by_itself(skip, noise)
    several = case.found.worked >= FEWEST_DIFFERENT and skip.own.share - skip.noise.share > EXCESS
    one_more = stands_out(skip, noise) and partly(skip)
    shown = (shows(skip) and works and (nearly_all(skip) or several)) or one_more
    return ("lost", skip.own, f"skip block {skip.layer}", skip.layer) if shown and outdoes_noise(skip, noise) else None


def _noise_mends(case: Opened) -> Shown | None:
    """Plain noise mends, and no later state mends all."""
    back, noise = case.test("back"), case.test("noise")
    all_late = late(back, noise) and back.pool.n >= MANY and back.pool.share >= ALL
    return ("fragile", noise.own, f"noise {noise.cell}", None) if shows(noise) and not all_late else None


def _read_and_lost(case: Opened) -> Shown | None:
    """The right answer is read where it is decided, and not at the end."""
    for read in (case.found.test("exit"), case.found.test("scope:decision")):
        if shows(read, READ) and beats_noise(read, case.test("noise")) and case.known:
            return "lost", read.own, f"own state {case.own.cell}", read.loses
    return None


def _back_patched(case: Opened) -> Shown | None:
    """A later state, put into an earlier layer, mends."""
    back = case.test("back")
    return ("too-late", back.own, f"back-patch {back.cell}", None) if late(back, case.test("noise")) else None


def _noise_as_a_state(case: Opened) -> Shown | None:
    """Noise in the place of the own part's state mends as well."""
    for noisy in (case.test("own:entity"), case.own):
        if mostly(noisy.noise) and noisy.noise_pool.share >= ADMITTED:
            return "fragile", noisy.noise, f"noise {noisy.cell}", None
    return None


def _no_donor(case: Opened) -> Shown | None:
    """The own part's state does not mend, or what was written belongs to none of the case's items."""
    seen, pool = case.seen, case.test("noise").pool
    foreign = foreign_run(seen) or (foreign_to(seen) and not usual(case.found))
    noisy = pool.share > (EXCESS if intact(seen) else CONTROL)
    return OPEN if (not case.arrives and (foreign or not case.known)) or noisy else None


def _later_elsewhere(case: Opened) -> Shown | None:
    """A later state of another place, moved to where it is needed, mends."""
    across = case.test("across")
    mends = nearly_all(across) and varied(across) and case.test("move").pool.share < ROUTED
    return ("too-late", across.own, f"later state moved {across.cell}", None) if mends else None


def _kept_elsewhere(case: Opened) -> Shown | None:
    """The bridge is at another place than where it is needed: a moved state, the model's readings or a lens show it."""
    move, noise = case.test("move"), case.test("noise")
    for read in (move, case.found.test("scope:elsewhere")):
        if min(read.own.share, read.pool.share) >= ROUTED and read.own.n >= FEWEST:
            if not varied(read) or not all(beats_noise(test, noise) for test in (move, read) if test.pool.n):
                return OPEN
            return "bridge-not-routed", read.own, f"state moved {move.cell}" if read is move else None, None
    if readable(case.held, "entity") and not readable(case.held, "decision"):
        return "bridge-not-routed", case.donor.own, f"own state {case.donor.cell}", None
    return None


def _computed(case: Opened) -> Shown | None:
    """The bridge is readable where it is needed, or computed in a later layer."""
    found, luck = case.found, usual(case.found) or intact(case.seen)
    there = any(read_there(found.test(name), luck) for name in ("exit", "scope:decision"))
    changes = (case.test("back"), case.test("across"))
    later = any(t.own.k and t.pool.share >= ADMITTED and beats_noise(t, case.test("noise")) for t in changes)
    return OPEN if readable(case.held, "decision") or there or later else None


def _not_computed(case: Opened) -> Shown:
    """What is left: the bridge is nowhere, in enough of the family's cases, and nothing else explains the answers."""
    found, seen = case.found, case.seen
    few = found.worked < FEWEST_DIFFERENT or not usually_fails(seen) or blind(seen)
    if seldom(found, seen) or (few and not usual(found)):
        return OPEN
    if not case.arrives and from_elsewhere(seen.of_items, seen.by_luck):
        return OPEN
    if spoilt_anyway(seen) or both_selected(seen.other_operands):
        return OPEN
    return "bridge-not-computed", case.donor.own, f"own state {case.donor.cell}", None


Step = Callable[[Opened], Shown | None]
STEPS: tuple[Step, ...] = (
    _too_little, _brought, _anything_mends, _half_a_shortcut, _block_left_out, _noise_mends, _read_and_lost,
    _back_patched, _noise_as_a_state, _no_donor, _later_elsewhere, _kept_elsewhere, _computed, _not_computed,
)  # fmt: skip


def read_there(read: Found, luck: bool) -> bool:
    """Whether the model itself reads the right answer where it is decided, so that the bridge is computed.

    One of a few answers comes up by ``luck``. Where most of the family's cases lack their bridge, or nothing but the
    wholes is wrong, a reading counts only if it shows in the other cases as well.
    """
    return read.own.share >= ABSENT and not (luck and read.pool.share < ABSENT)


def arriving(found: Inside, seen: Behaviour) -> bool:
    """Whether the own part's state reaches the answer in the later layers only, and nothing else is wrong there.

    So a model may select late. If the state mends in an early layer, too, the model does not.
    """
    entity, decision, later = (found.test(f"own:{at}") for at in ("entity", "decision", "later"))
    if demonstrated(decision):
        return False
    return selected_late(entity, later, BROUGHT, FOREIGN_BROUGHT) or (intact(seen) and needed_late(later))


def intact(found: Behaviour) -> bool:
    """Whether nothing but the wholes is wrong over the run: most similar wholes fail, and hardly any part behind them.

    Damage everywhere makes some wholes wrong, and with them some of the parts behind their context.
    """
    behind, fails = found.behind_in_run, found.fails_in_run
    return min(behind.n, fails.n) >= MANY and behind.share <= INTACT and fails.share >= BROKEN


def usual(found: Inside) -> bool:
    """Whether most of the family's opened cases lack their bridge, so that few variants are enough for one more.

    In models without a cause, up to 7 of 12 cases of a family lack it, and in one that was hardly trained 11.
    """
    return found.uncomputed.n >= COMPARED and found.uncomputed.share >= MOST


def seldom(found: Inside, seen: Behaviour) -> bool:
    """Whether too few of the family's opened cases lack their bridge, if there are enough to compare with.

    Where nothing but the wholes is wrong, a quarter of them is enough: a model may have two causes.
    """
    lacking = found.uncomputed
    few = not admitted(lacking, lacking.n) if intact(seen) else lacking.share < MOST
    return lacking.n >= COMPARED and few


def usually_fails(found: Behaviour) -> bool:
    """Whether most of all the case's settings fail, counting those that do not.

    A bridge that is computed nowhere is missing in similar questions, too. If most of them are right, the model
    computes it in them.
    """
    return mostly(Tally(found.n, found.variants + 1))


def foreign_to(found: Behaviour) -> bool:
    """Whether the written operands do not come from the case's items, so that none of them reaches the answer."""
    return rare(found.from_case, *OWN_ITEMS) or foreign_run(found)


def foreign_run(found: Behaviour) -> bool:
    """The same over all cases that are weighed together."""
    return rare(found.from_cases, *OWN_OF_ALL) and found.from_cases.share < FOREIGN_RUN


def unasked(found: Behaviour) -> bool:
    """Whether the run's failing answers seldom write the operation asked for, so that more is wrong than an operand."""
    return found.asked_in_run.n >= MANY and found.asked_in_run.share < ASKED
