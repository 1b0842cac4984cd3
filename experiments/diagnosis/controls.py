"""When an intervention inside the model shows something: it mends, and its controls do not.

These are the conditions that the rule for the inside (``rule.from_inside``) is made of.
"""

from .evidence import Found, Tally, beyond
from .thresholds import (
    ADMITTED,
    ALL,
    BROUGHT,
    CONTROL,
    EXCESS,
    FEWEST,
    FEWEST_DIFFERENT,
    FOREIGN,
    LUCK,
    MANY,
    MANY_BLOCKS,
    MOST,
    OTHERS,
    PARTLY,
    QUIET,
    READ,
    ROUTED,
    TWO_THIRDS,
    UNLIKELY,
    mostly,
)


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


def both_selected(wrong: Tally) -> bool:
    """Whether so many of a run's ``wrong`` operands are the other operand that both bridges were computed."""
    return wrong.n >= MANY and wrong.share >= OTHERS
