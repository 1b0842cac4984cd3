"""What would settle a case that the rule leaves open, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import rule, rule_inside
from .evidence import Behaviour, Inside, Tally
from .readings import Held, readable
from .thresholds import FEWEST, FEWEST_DIFFERENT, both_selected, demonstrated, from_elsewhere, mostly

LATE = (
    "where the answer is decided, the own part's state mends only in the later layers, and there an answer's own state "
    "mends whatever the cause is"
)
MORE = "more variants with parts that the model knows (meta.variants of the case)"


def open_question(found: Behaviour, inside: Inside | None, held: Sequence[Held] = ()) -> str:
    """What would settle an undetermined case."""
    inside = inside or Inside()
    arrives = rule_inside.arriving(inside, found)
    left = _of_answers(found, inside, arrives) or _of_opening(found, inside)
    if left is not None:
        return left
    if arrives or demonstrated(inside.test("own:decision")):
        return _of_the_bridge(found, inside, held, arrives)
    return _of_the_place(found, inside)


def _of_answers(found: Behaviour, inside: Inside, arrives: bool) -> str | None:
    """What the answers leave open."""
    if not found.fails:
        return (
            "asked again for its likeliest answers, the case does not fail with every part right: ask it several times"
        )
    if mostly(found.exchanged):
        return "the operands have changed places, which is not one of the causes"
    cause = rule.named(found) or ""
    if rule.drifts(cause, inside):
        return (
            f"the answers follow {cause.partition(':')[2]}, but without attention to it they stay the same: over all "
            f"such cases they change in only {inside.cuts}"
        )
    if found.shortcut is not None and rule.follows(found.shortcut) and rule.by_damage(found.shortcut, found):
        return (
            f"the answers follow {found.shortcut.name}, but behind the wholes' context parts are wrong in "
            f"{found.behind_in_run} too, and damaged weights make usual values as well"
        )
    if rule_inside.foreign_to(found) and not arrives:
        both = (found.from_cases, "the cases weighed together"), (found.from_case, "the case")
        some, where = both[0] if rule_inside.foreign_run(found) else both[1]
        return (
            f"only {some.k} of {some.n} written operands belong to an item of {where}, and none of the causes does this"
        )
    if rule_inside.unasked(found):
        return (
            f"only {found.asked_in_run} of the run's answers with a wrong operand write the operation asked for, and "
            "none of the causes does this"
        )
    if found.n < FEWEST:
        return f"{found.settings()}: {MORE}"
    signs = [f"{sign} in {t}" for sign, t in found.shared.items() if not rule.shared(found, sign)]
    if signs and rule.from_behaviour(replace(found, shared={})):
        return (
            f"few failing cases of the run show the same ({', '.join(signs)}), and plain noise can cause it as well: "
            "evaluate more cases"
        )
    if rule.to_prove(found):
        return (
            "some of the cases have wrong results of right operands, which the own part's state does not mend: damaged "
            "weights make such results as well"
        )
    return None


def _of_opening(found: Behaviour, inside: Inside) -> str | None:
    """What has to be there before the model can be opened."""
    if not inside.n:
        if found.mended.get("relation"):
            return "no decision could be opened, though a relation was forced: give another meta.relation, or variants"
        return "no decision could be opened: give a worked answer, or the beginning of the answer (meta.relation)"
    if not inside.enough:
        return (
            "too few failing cases could be opened: each needs others to choose the place and the layer at which it is "
            "tested; evaluate more cases"
        )
    return None


def _of_the_place(found: Behaviour, inside: Inside) -> str:
    """What is open where the own part's state does not mend the case where it is decided."""
    later = inside.test("own:later")
    if demonstrated(inside.test("own:entity")):
        asked = "the own part's state mends where the bridge is asked about"
        if mostly(later.own):
            return f"{asked}; {LATE}"
        return f"{asked}, but not where the answer is decided: more than the bridge is wrong"
    if rule_inside.seldom(inside, found):
        return f"no state holds the bridge, but this is so in only {inside.uncomputed} cases of the family: more cases"
    if inside.n < FEWEST:
        return f"only {inside.n} of {found.n} failing variants could be opened: {MORE}"
    nothing = "intervention mends most variants beyond its controls: a cause outside the list, or several causes"
    return f"{LATE}; no other {nothing}" if demonstrated(later) else f"no {nothing}"


def _of_the_bridge(found: Behaviour, inside: Inside, held: Sequence[Held], arrives: bool) -> str:
    """What is open where that state mends it, so that only the bridge may be missing."""
    few = not rule_inside.usual(inside)
    if few and inside.worked < FEWEST_DIFFERENT:
        return f"all failing variants have the same right answer, so one error may come back in them: {MORE}"
    if rule_inside.seldom(inside, found):
        return f"no state holds the bridge, but this is so in only {inside.uncomputed} cases of the family: more cases"
    if readable(held, "decision"):
        return (
            "the lens reads the part's answer where the whole's is decided; no intervention shows whether it was "
            "computed and then not used"
        )
    if rule.spoilt_anyway(found):
        return (
            "a part is wrong behind the whole's context even where the whole is right, so more is wrong than the bridge"
        )
    if not arrives and from_elsewhere(found.of_items, found.by_luck):
        return (
            f"only {found.of_items} wrong operands of the cases weighed together belong to an item of their case"
            + (f", and {100 * found.by_luck:.0f} % do so by luck" if found.by_luck is not None else "")
            + ", so more is missing than the bridge"
        )
    if both_selected(found.other_operands):
        return (
            f"{found.other_operands} wrong operands of the cases weighed together have the other operand's value, so "
            "both bridges are computed, and none of the causes mixes them"
        )
    if few and rule.blind(found):
        return (
            "another question behind the same context gets the same answer: a shortcut that is not among the hypotheses"
        )
    if found.shortcut is not None and rule.half_followed(found):
        return f"half of the edits follow the shortcut {found.shortcut.name}, but not most, or not the case: {MORE}"
    if few and not rule_inside.usually_fails(found):
        if mostly(Tally(found.n, found.variants + 1 - found.unknown)):
            return f"only {found.settings()}: {MORE}"
        return f"only {found.settings()}, so in similar questions the bridge is computed"
    if inside.n < FEWEST:
        return f"only {inside.n} of {found.n} failing variants could be opened: {MORE}"
    return (
        "the own part's state mends where the answer is decided, but other changes or readings leave open whether "
        "the bridge is computed"
    )
