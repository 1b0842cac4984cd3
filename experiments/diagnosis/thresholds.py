"""The thresholds of the rule, with the reason for each, and the conditions on counts and interventions made of them.

An intervention inside the model shows something if it mends, and its controls do not (``rule_inside``).
"""

from .evidence import Found, Tally, beyond, rare

MOST = 0.6
"""The share of the failing variants that has to show a cause."""
CONTROL = 0.3
"""The largest share that a control may reach."""
EXCESS = 0.5
"""How much larger the share that a left-out block mends has to be than the share that other left-out blocks mend."""
FOREIGN = 0.5
"""The share of the variants in which a foreign state has to give its own answer, which chance seldom gives."""
LUCK = 0.01
"""A run admits a shortcut if luck would follow it as often with less than this chance (two tests, half for each)."""
OTHER_RESULT, TELLING = 0.8, 3
"""The share of the variants that has to give another operation's result, and the smallest number of settings that
speak for a sign, or of different sums: in cases of models without a cause whose results are wrong, not one was that of
another operation."""
OWN_ITEMS, OWN_OF_ALL, FOREIGN_RUN = (0.9, 0.05), (0.93, 0.01), 0.8
"""In a case that reaches its answer, this share of the written operands belongs to items of the case. The rule says
that a case does not reach it if so few of them would be this unlikely: in one case, and over all failing cases. Over
many cases the smallest difference is unlikely, so there the share itself has to be below ``FOREIGN_RUN`` as well."""
OTHERS = 0.5
"""The share of the run's wrong operands with the other operand's value from which both bridges were computed. (3 to 21
% in four models in which a bridge is missing; 69 % in one that mixes the states of both operands.)"""
OF_ITEMS = 0.5
"""The share of the wrong operands that has to come from items of their case, beyond luck, if only a bridge is missing.
(65 to 81 % in five models in which one is missing; 6 to 25 % where numbers are mirrored, attention is negated or the
state is that of any question.)"""
ASKED = 0.5
"""The share of the run's failing answers with a wrong operand that has to write the operation asked for."""
UNLIKELY = 0.05
"""A case has few variants, so it may show something by chance. Noise mends too much if its count would be less likely
than this at a true share of ``CONTROL``."""
SHARED = 0.8
"""The share of the failing cases that has to show a sign of a cause which noise makes as well (``signs``)."""
ADMITTED, READ = 0.25, 0.8
"""The share of the other cases' variants that has to show an intervention, or a reading, at the same cell."""
ABSENT = 0.5
"""From this share of right readings where it is decided, the bridge cannot be said to be computed nowhere."""
ROUTED = 0.5
"""The share of the variants, of the case and of the other cases, in which the state of another place has to be enough:
among many places and layers, one of them mends a quarter by chance."""
BROUGHT, FOREIGN_BROUGHT, MANY = 0.9, 0.85, 12
"""The share of the other cases' variants, and their smallest number, in which a left-out block or the state of another
place mends nearly everything (``nearly_all``); and the share in which a foreign state arrives if own ones do."""
MANY_OF_A_GROUP = 24
"""The smallest number of variants of the group that a change mends, if the cases of a run are weighed in two groups. In
fifteen models without a cause, two had such a group by damage in their last block, of 15 and 20 variants."""
ALL, QUIET = 0.95, 0.1
"""The share of the other cases' variants that counts as all of them, in a model that selects late (``selected_late``)
and of a left-out block that has to show by itself what is wrong; it needs only most where noise mends hardly any."""
MANY_BLOCKS, TWO_THIRDS = 30, 2 / 3
"""The number of the other cases' variants from which a left-out block shows by itself what is wrong if it mends two
thirds of them, ``EXCESS`` more than other left-out blocks and ``CONTROL`` more than noise. (A block that writes one
answer whatever is asked, which is no case of *lost*, mends up to 69 %, and in most of its cases less than 64 %.)"""
PARTLY = 0.4
"""The share of a case's own variants that such a block has to mend (``partly``)."""
SPOILT, OFTEN_SPOILT = 1 / 3, 1 / 2
"""The share of the family's failing cases with a part that the whole's context spoils: if the part gives the whole's
own answer, and with whatever answer. Of cases of models without a cause, up to 5 of 12 have a wrong part there."""
INTACT, DAMAGED, BROKEN = 0.05, 0.1, 0.75
"""The largest share of parts that are wrong behind the whole's context, and the smallest share of settings that fail,
over the run, in a model where nothing but the wholes is wrong; above ``DAMAGED`` of such parts more is wrong."""
READABLE = 0.95
"""The share of the foils, absent and in the prompt, that the lens has to put below the entity."""
FEWEST_DIFFERENT = 2
"""If a share of the cases (``ADMITTED``) has to show something, at least this many cases have to. And at least this
many different sums or answers have to show it, because one error may come back in every variant."""
COMPARED = 4
"""The smallest number of failing cases in which a sign that noise makes as well can be shared."""
FEWEST = 2
"""With fewer failing variants than this (including the case), only the answer's own text settles a case."""


def mostly(shown: Tally, fewest: int = FEWEST) -> bool:
    return shown.n >= fewest and shown.share >= MOST


def admitted(cases: Tally, of: int, share: float = ADMITTED) -> bool:
    """Whether enough of the cases that can show something show it; ``of`` is the number of all failing cases."""
    return cases.k >= max(min(FEWEST_DIFFERENT, of), share * cases.n)


def brought(move: Found, skip: Found, noise: Found) -> bool:
    """Whether the state of another place of the same question mends nearly everything, whatever is right.

    It brings nothing from outside the question, so it needs no foreign state as a control: many different right values
    are one. Where noise mends many cases too, it has to mend all. A bridge may be kept out of several blocks at once.
    """
    controlled = noise.pool.share <= CONTROL or (move.pool.share >= ALL and beats_noise(move, noise))
    return nearly_all(move) and varied(move) and skip.pool.share < READ and controlled


def nearly_all(test: Found) -> bool:
    """Whether a change mends nearly all variants of the other cases, and most of the case's own."""
    return test.pool.n >= MANY and test.pool.share >= BROUGHT and mostly(test.own)


def by_itself(skip: Found, noise: Found) -> bool:
    """Whether a left-out block shows by itself what is wrong: it may spoil the own part's state, too.

    In a model with some damage everywhere, other blocks mend many failures as well if they are left out.
    """
    quiet = (noise.pool.k + 1) / (noise.pool.n + 2) <= QUIET  # rule of succession: none of a few says little
    alone = nearly_all(skip) and max(noise.pool.share, skip.noise.share) <= CONTROL
    return skip.pool.share >= ALL or (quiet and skip.pool.share >= MOST) or alone or stands_out(skip, noise)


def stands_out(skip: Found, noise: Found) -> bool:
    """Whether leaving out this block mends two thirds of the other cases' variants, and other changes far fewer."""
    others = skip.noise_pool.share if skip.noise_pool.n else 1.0
    beyond_all = skip.pool.share - others >= EXCESS and skip.pool.share - noise.pool.share >= CONTROL
    return skip.pool.n >= MANY_BLOCKS and skip.pool.share >= TWO_THIRDS and beyond_all


def partly(skip: Found) -> bool:
    """Whether a left-out block mends some of the case's variants, and other blocks hardly any.

    That is enough for one more case of a run in which the block stands out.
    """
    some = skip.own.k >= FEWEST and skip.own.share >= PARTLY and skip.noise.share <= QUIET
    return some or (mostly(skip.own) and skip.noise.share <= CONTROL)


def selected_late(entity: Found, later: Found, wanted: float = ALL, wanted_foreign: float = BROUGHT) -> bool:
    """Whether the model selects the answer in its later layers only, so that what it needs has to be there by then.

    Before them, the own part's state mends where the bridge is asked about, and not where the answer is decided. In a
    model with some damage everywhere both states mend most cases, and a foreign one gives its own answer less often.
    """
    own = min(entity.pool.share, later.pool.share) >= wanted and later.pool.n >= MANY
    foreign = min(entity.foreign_pool.share, later.foreign_pool.share) >= wanted_foreign
    return demonstrated(entity) and demonstrated(later) and own and foreign


def needed_late(later: Found) -> bool:
    """Whether the own part's state mends all where the answer is decided, in the later layers, and a foreign one gives
    its own answer there."""
    own = later.pool.n >= MANY and later.pool.share >= ALL
    return demonstrated(later) and own and later.foreign_pool.share >= BROUGHT


def varied(read: Found) -> bool:
    """Whether it is not some one value that the state brings, whatever is asked."""
    return read.values.k >= FEWEST_DIFFERENT and read.values.share >= ROUTED


def shows(test: Found, wanted: float = ADMITTED) -> bool:
    """Whether most of the case's variants show it, and enough variants of the cases that chose the cell."""
    return mostly(test.own) and test.pool.share >= wanted


def late(back: Found, noise: Found) -> bool:
    """Whether a later state, put into an earlier layer, mends nearly all other cases.

    In a model with some damage everywhere, so that each block does less, it mends most of them as well.
    """
    quiet = not beyond(back.noise, CONTROL, UNLIKELY) and 0 < back.foreign.n and back.foreign.share <= CONTROL
    return shows(back, READ) and beats_noise(back, noise) and quiet


def beats_noise(test: Found, noise: Found) -> bool:
    """Whether it shows in more of the other cases' variants, by a quarter of them, than plain noise mends.

    In a model that fails everywhere a little, any change mends half of the failures. The excess has to be more than the
    best of many cells has by luck, and noise that mended none of a few may mend the next (rule of succession).
    """
    luck = (noise.pool.k + 1) / (noise.pool.n + 2) if noise.pool.n else 0.0
    return test.pool.share - noise.pool.share >= ADMITTED and beyond(test.pool, luck, LUCK)


def outdoes_noise(skip: Found, noise: Found) -> bool:
    """The same of a left-out block: where noise mends so much that no quarter is left, most of what it leaves.

    A block that only overwrites what was right can be thrown off by noise, too. The other blocks, left out, are its
    control for a model in which any change mends.
    """
    left = 1 - noise.pool.share
    return beats_noise(skip, noise) or skip.pool.share >= 1 - left * (1 - MOST)


def demonstrated(test: Found) -> bool:
    """Whether the own state mends, a foreign one gives its own answer, and noise does not mend."""
    return mostly(test.own) and test.foreign.share >= FOREIGN and not beyond(test.noise, CONTROL, UNLIKELY)


def from_elsewhere(wrong: Tally, luck: float | None) -> bool:
    """Whether more than half of the wrong numbers come from no item of their case, so that more is missing than the
    bridge.

    Where only the bridge is missing, another item of the case is taken in its place. A number from anywhere belongs to
    an item by ``luck`` as well, so what is beyond it counts; if luck is not known, it is so whatever luck is.
    """
    luck = luck or 0.0
    half, nearly = (luck + share * (1 - luck) for share in (OF_ITEMS, BROUGHT))
    return wrong.n >= MANY and wrong.share < half and rare(wrong, nearly, LUCK)


def both_selected(wrong: Tally) -> bool:
    """Whether so many of a run's ``wrong`` operands are the other operand that both bridges were computed."""
    return wrong.n >= MANY and wrong.share >= OTHERS
