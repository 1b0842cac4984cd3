"""The rule that turns evidence into a cause. Its thresholds are in ``thresholds``; nothing is measured here.

A cause is named if most failing variants show it by a positive demonstration that its controls do not share. If none is
demonstrated, the cause is ``undetermined``, with what would settle it.
"""

from collections.abc import Sequence

from .evidence import SHOWN, Behaviour, Behind, Followed, Found, Inside, Tally, rare
from .readings import Held, readable
from .thresholds import (
    ABSENT,
    ADMITTED,
    ALL,
    ASKED,
    BROKEN,
    BROUGHT,
    COMPARED,
    CONTROL,
    DAMAGED,
    EXCESS,
    FEWEST,
    FEWEST_DIFFERENT,
    FOREIGN_BROUGHT,
    FOREIGN_RUN,
    INTACT,
    MANY,
    MOST,
    OFTEN_SPOILT,
    OTHER_RESULT,
    OWN_ITEMS,
    OWN_OF_ALL,
    READ,
    ROUTED,
    SHARED,
    SPOILT,
    TELLING,
    UNLIKELY,
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
    if mostly(found.operation_wrong) and found.operands_right.share >= MOST:
        if as_another_operation(found):
            return "wrong-operation", found.other_operation
        if "wrong-operation" not in unspecific:
            return "wrong-operation", found.operation_wrong
    if unknown := [wrong for wrong in found.unavailable.values() if wrong.k >= FEWEST and 2 * wrong.k > wrong.n]:
        return "part-unavailable", max(unknown, key=lambda t: (t.share, t.n))
    n = found.as_whole.n  # 0: a case by itself, not compared with those of its run
    few = n and not (n >= COMPARED and admitted(found.as_whole, n, SPOILT))
    if few or found.own_operands_right:
        return None
    return next((("part-unavailable", b.same) for b in found.behind.values() if as_the_whole(b) and kept(b)), None)


def from_context(found: Behaviour) -> tuple[str, Tally] | None:
    """The cause of a case that nothing else explains: the whole's context spoils a part, with whatever answer."""
    many = found.spoilt.n >= COMPARED and admitted(found.spoilt, found.spoilt.n, OFTEN_SPOILT)
    if not many or found.own_operands_right or mostly(found.exchanged) or blind(found):
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


def from_inside(
    found: Inside, seen: Behaviour, held: Sequence[Held] = ()
) -> tuple[str, Tally, str | None, int | None] | None:
    """Cause, how many show it, what mends it and the block, from interventions; None if no cause is demonstrated.

    Among all layers and places, some change mends a case and its variants by chance. So no cause is named if
    there are too few cases to choose the place for each other. Where all variants have one right answer, one error may
    come back in them: the lack of a bridge then says nothing. Unless the own part's state mends where the answer is
    decided (``known``), more is wrong than one thing before it, or a left-out block has to show alone what is wrong.
    """
    if not found.enough or seen.own_operands_right or unasked(seen):
        return None
    test = found.test
    skip, back, move, own, noise = (test(name) for name in ("skip", "back", "move", "own:decision", "noise"))
    if brought(move, skip, noise):
        return "bridge-not-routed", move.own, f"state moved {move.cell}", None
    if min(skip.pool.share, move.pool.share) >= ROUTED and not (skip.pool.share >= ALL and beats_noise(skip, move)):
        return None  # whatever is changed mends: no change shows what was wrong
    if half_followed(seen):
        return None  # the block that mends it, if left out, may be what writes the shortcut's answer
    entity, later, arrives = test("own:entity"), test("own:later"), arriving(found, seen)
    own = later if selected_late(entity, later) and not demonstrated(own) else own
    known = demonstrated(own)
    works = known or by_itself(skip, noise)
    several = found.worked >= FEWEST_DIFFERENT and skip.own.share - skip.noise.share > EXCESS
    one_more = stands_out(skip, noise) and partly(skip)
    shown = (shows(skip) and works and (nearly_all(skip) or several)) or one_more
    if shown and outdoes_noise(skip, noise):
        return "lost", skip.own, f"skip block {skip.layer}", skip.layer
    if shows(noise) and not (late(back, noise) and back.pool.n >= MANY and back.pool.share >= ALL):
        return "fragile", noise.own, f"noise {noise.cell}", None
    for read in (test("exit"), test("scope:decision")):
        if shows(read, READ) and beats_noise(read, noise) and known:
            return "lost", read.own, f"own state {own.cell}", read.loses
    if late(back, noise):
        return "too-late", back.own, f"back-patch {back.cell}", None
    for noisy in (entity, own):
        if mostly(noisy.noise) and noisy.noise_pool.share >= ADMITTED:
            return "fragile", noisy.noise, f"noise {noisy.cell}", None
    own = later if arrives and not known else own
    foreign = foreign_run(seen) or (foreign_to(seen) and not usual(found))
    if (not arrives and (foreign or not known)) or noise.pool.share > (EXCESS if intact(seen) else CONTROL):
        return None
    across = test("across")
    if nearly_all(across) and varied(across) and move.pool.share < ROUTED:
        return "too-late", across.own, f"later state moved {across.cell}", None
    for read in (move, test("scope:elsewhere")):
        if min(read.own.share, read.pool.share) >= ROUTED and read.own.n >= FEWEST:
            if not varied(read) or not all(beats_noise(test, noise) for test in (move, read) if test.pool.n):
                return None
            return "bridge-not-routed", read.own, f"state moved {move.cell}" if read is move else None, None
    if readable(held, "entity") and not readable(held, "decision"):
        return "bridge-not-routed", own.own, f"own state {own.cell}", None
    some = usual(found) or intact(seen)
    if readable(held, "decision") or any(read_there(test(name), some) for name in ("exit", "scope:decision")):
        return None
    if any(test.own.k and test.pool.share >= ADMITTED and beats_noise(test, noise) for test in (back, across)):
        return None  # it is computed, in a later layer
    if seldom(found, seen):
        return None
    if not usual(found) and (found.worked < FEWEST_DIFFERENT or not usually_fails(seen) or blind(seen)):
        return None
    if not arrives and from_elsewhere(seen.of_items, seen.by_luck):
        return None
    if spoilt_anyway(seen) or both_selected(seen.other_operands):
        return None
    return "bridge-not-computed", own.own, f"own state {own.cell}", None


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


def to_open(found: Behaviour) -> bool:
    """Whether the answers leave a case open and there are enough of them to open the model."""
    return found.fails and found.n >= FEWEST and not mostly(found.exchanged) and from_behaviour(found) is None


def foreign_to(found: Behaviour) -> bool:
    """Whether the written operands do not come from the case's items, so that none of them reaches the answer."""
    return rare(found.from_case, *OWN_ITEMS) or foreign_run(found)


def foreign_run(found: Behaviour) -> bool:
    """The same over all cases that are weighed together."""
    return rare(found.from_cases, *OWN_OF_ALL) and found.from_cases.share < FOREIGN_RUN


def unasked(found: Behaviour) -> bool:
    """Whether the run's failing answers seldom write the operation asked for, so that more is wrong than an operand."""
    return found.asked_in_run.n >= MANY and found.asked_in_run.share < ASKED
