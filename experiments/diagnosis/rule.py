"""The rule that turns evidence into a cause. Its thresholds are in ``thresholds``; nothing is measured here.

A cause is named if most failing variants show it by a positive demonstration that its controls do not share. If none is
demonstrated, the cause is ``undetermined``, with what would settle it.
"""

from .evidence import SHOWN, Behaviour, Behind, Followed, Inside, Tally, rare
from .thresholds import (
    BROUGHT,
    COMPARED,
    CONTROL,
    DAMAGED,
    FEWEST,
    MANY,
    MOST,
    OFTEN_SPOILT,
    OTHER_RESULT,
    READ,
    SHARED,
    SPOILT,
    TELLING,
    UNLIKELY,
    admitted,
    demonstrated,
    mostly,
    nearly_all,
)


def mended_by(found: Behaviour) -> str | None:
    """The smallest change of text that mends most of the failing variants."""
    smallest = ("neutral", "filler", "repeated", "relation", "operands", "bridge")
    return next((name for name in smallest if name in found.mended and mostly(found.mended[name], 1)), None)


def from_behaviour(found: Behaviour) -> tuple[str, Tally] | None:
    """The cause that the answers settle, with how many show it; None if the model has to be opened."""
    if not found.fails:
        return None
    shown = signs(found)
    unspecific = {sign for sign in shown if not shared(found, sign)}
    for cause in SHOWN:
        tally = found.answers.get(cause, Tally())
        if found.own == cause and cause not in unspecific and (tally.share >= MOST or cause == "answers-bridge"):
            return cause, tally
    relation, neutral = found.mended.get("relation", Tally()), found.mended.get("neutral", Tally())
    if "neutral" in shown and "neutral" not in unspecific:
        return "format", neutral
    if mostly(relation) and relation.share - neutral.share >= CONTROL:
        return "relation-lost", relation
    if found.shortcut is not None and follows(found.shortcut) and not by_damage(found.shortcut, found):
        return f"shortcut:{found.shortcut.name}", Tally(found.shortcut.hits, found.shortcut.telling)
    if as_another_operation(found):
        return "wrong-operation", found.other_operation
    if "wrong-operation" in shown and "wrong-operation" not in unspecific:
        return "wrong-operation", found.operation_wrong
    usable = {p: t for p, t in found.unavailable.items() if p == found.last or not found.own_operands_right}
    if unknown := [wrong for wrong in usable.values() if wrong.k >= FEWEST and 2 * wrong.k > wrong.n]:
        return "part-unavailable", max(unknown, key=lambda t: (t.share, t.n))
    n = found.as_whole.n  # 0 where the case's own operands are right
    if n < COMPARED or not admitted(found.as_whole, n, SPOILT):
        return None
    return next((("part-unavailable", b.same) for b in found.behind.values() if as_the_whole(b) and kept(b)), None)


def from_context(found: Behaviour) -> tuple[str, Tally] | None:
    """The cause of a case that nothing else explains: the whole's context spoils a part, with whatever answer."""
    many = found.spoilt.n >= COMPARED and admitted(found.spoilt, found.spoilt.n, OFTEN_SPOILT)
    if not many or mostly(found.exchanged) or blind(found):
        return None
    shown = (b for b in found.behind.values() if spoilt(b) and (kept(b) or always_spoilt(found)))
    return next((("part-unavailable", b.wrong) for b in shown), None)


def as_another_operation(found: Behaviour) -> bool:
    """Whether the results of right operands are those of another operation, for different sums over the run.

    The variants of a case may all have the same sum, so a case cannot show this by itself.
    """
    return other_results(found) and len(found.sums) >= TELLING


def other_results(found: Behaviour) -> bool:
    """Whether a case has wrong results of right operands, and nearly all are those of another operation."""
    return "wrong-operation" in signs(found) and found.other_operation.share >= OTHER_RESULT


def to_prove(found: Behaviour) -> bool:
    """Whether a wrong operation is shown by a part of the run's cases, or by few of them throughout.

    Damaged weights may get some sums wrong wherever they are asked. So the own part's state has to mend it as well.
    """
    cases, always = (counts.get("wrong-operation", Tally()) for counts in (found.shared, found.throughout))
    enough = admitted(cases, cases.n, SHARED) and admitted(always, cases.n)
    by_part = cases.n >= COMPARED and not enough and not as_another_operation(found)
    return named(found) == "wrong-operation" and by_part


def named(found: Behaviour) -> str | None:
    """The cause that the answers settle."""
    return (from_behaviour(found) or (None,))[0]


def mended_inside(found: Inside) -> str | None:
    """The intervention inside the model that mends a case which its answers settle."""
    if found.cut and mostly(found.cut["mended"]) and found.cut["other"].share <= CONTROL:
        return "attention to the copied words cut"
    skip, *own = (found.test(name) for name in ("skip", "own:entity", "own:decision"))
    block = f"skip block {skip.layer}" if nearly_all(skip) and skip.noise.share <= CONTROL else None
    return next((f"own state {test.cell}" for test in own if demonstrated(test)), block)


def spoilt(found: Behind) -> bool:
    """Whether the whole's context spoils a part, unless it does so in other cases, too, whose wholes are right.

    In a small model a long context makes many parts wrong, whatever the wholes do.
    """
    wrong = found.own_wrong and mostly(found.wrong) and found.wrong.k >= TELLING
    return wrong and (found.success.n < COMPARED or kept(found))


def kept(found: Behind) -> bool:
    """Whether the part is right behind the context of other cases, whose wholes are right."""
    n, wrong, unjudged = found.success.n, found.success.k, found.success.unjudged
    return n >= COMPARED and n - wrong - unjudged >= (1 - CONTROL) * n


def always_spoilt(found: Behaviour) -> bool:
    """Whether nearly all failing cases of the family have such a part, a quarter of them with the whole's own answer.

    Where hardly any whole is right, there is no other control for the part.
    """
    some = found.as_whole.n >= COMPARED and admitted(found.as_whole, found.as_whole.n)
    return some and found.spoilt.share >= BROUGHT


def spoilt_anyway(found: Behaviour) -> bool:
    """Whether a part is wrong behind the whole's context although the whole is right.

    Then the context disturbs more than what the whole needs.
    """
    success = [b.success for b in found.behind.values() if mostly(b.wrong)]
    return any(t.n >= COMPARED and t.share >= READ for t in success)


def as_the_whole(found: Behind) -> bool:
    """Whether a part that its context spoils gives the whole's own answer there, and another question does not."""
    same = mostly(found.same) and found.same.k >= TELLING and found.other.share <= CONTROL
    return spoilt(found) and found.own and found.telling and same


def blind(found: Behaviour) -> bool:
    """Whether the whole's wrong answer comes from its context, whatever is asked behind it."""
    return any(b.telling and mostly(b.other) and b.other.k >= TELLING for b in found.behind.values())


def signs(found: Behaviour) -> set[str]:
    """Signs of a cause that a model without any cause shows as well, in some of its failures.

    An answer that cannot be judged or breaks off, a failure that a neutral beginning mends, a wrong result of right
    operands, an item where a worked number is asked for: noise on a model's weights makes them all. They settle a case
    only if four of five of the run's failing cases share them, or a quarter share them ``throughout``.
    """
    out = {found.own} if found.own and not found.specific else set[str]()
    if mostly(found.mended.get("neutral", Tally())):
        out.add("neutral")
    if mostly(found.operation_wrong) and found.operands_right.share >= MOST:
        out.add("wrong-operation")
    return out


def shared(found: Behaviour, sign: str) -> bool:
    if sign not in found.shared:  # a case by itself, not compared with those of its run
        return True
    cases = found.shared[sign]
    if cases.n < COMPARED:
        return False
    return admitted(cases, cases.n, SHARED) or (
        sign in throughout(found) and admitted(found.throughout.get(sign, Tally()), cases.n)
    )


def throughout(found: Behaviour) -> set[str]:
    """Signs that four of five of all the case's settings show, counting those that do not fail.

    A fault of the model shows in nearly all similar questions. Noise makes one wrong and leaves others right.
    """
    settings = found.variants + 1
    wrong = {"neutral": found.mended.get("neutral", Tally()), "wrong-operation": found.operation_wrong}
    shown = {**found.answers, **wrong}
    return {s for s in signs(found) if settings >= TELLING and shown.get(s, Tally()).k >= SHARED * settings}


def follows(found: Followed) -> bool:
    """Whether most edits follow an admitted shortcut, and so does the case itself, unless nearly the whole run does."""
    return (found.own is not False or found.run.share >= BROUGHT) and mostly(Tally(found.hits, found.telling))


def by_damage(shortcut: Followed, found: Behaviour) -> bool:
    """Whether damaged weights may make the usual value: parts are wrong behind their context, too, and some wholes do
    not follow it."""
    behind = found.behind_in_run
    damaged = behind.n >= MANY and behind.share > DAMAGED
    return damaged and shortcut.name.startswith("usual") and shortcut.run.share < BROUGHT


def drifts(cause: str, found: Inside | None) -> bool:
    """Whether answers that are the largest or smallest of some do not come from there.

    Weights that were damaged or averaged drift to such values. If a model looks for the largest item, it attends to it.
    """
    extreme = "largest-" in cause or "smallest-" in cause
    if not extreme or found is None:
        return False
    return rare(found.cuts, READ, UNLIKELY) or (found.cuts.n >= MANY and found.cuts.share < READ)


def half_followed(found: Behaviour) -> bool:
    """Whether half of the edits follow a shortcut that the run admits, though most or the case itself do not."""
    return (cut := found.shortcut) is not None and cut.hits >= FEWEST and 2 * cut.hits >= cut.telling


def to_open(found: Behaviour) -> bool:
    """Whether the answers leave a case open and there are enough of them to open the model."""
    return found.fails and found.n >= FEWEST and not mostly(found.exchanged) and from_behaviour(found) is None
