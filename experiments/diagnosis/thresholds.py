"""The thresholds of the rule, with the reason for each, and the counts that most of its conditions are made of."""

from .evidence import Tally

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
