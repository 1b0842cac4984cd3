# ruff: noqa: E501
"""Each step of reading an answer by itself, where a whole grade would hide which step was wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import judging, text_files
from composcope.evaluation.graded import Graded
from composcope.evaluation.grading import (
    affirming,
    booleans,
    choices,
    cues,
    dates,
    echo,
    events,
    formulas,
    lists,
    mentions,
    names,
    numbers,
    roles,
    text,
    units,
    view,
)
from composcope.evaluation.grading.extract import extract, last_object
from composcope.evaluation.grading.grade import agentcoma_number, grade, stad_answer
from composcope.evaluation.grading.mentions import Role
from composcope.evaluation.grading.passing import Mention, in_passing

Row = tuple[Callable[..., Any], tuple[Any, ...], Any]

PRIME = "Is 17 a prime number?"

ROOM = "Which green old house burned in Paris?"  # five words with content


def _role(said: str, *golds: str) -> Role | None:
    return mentions.best(view.tokens(said), [view.words(g) for g in golds])


SEVEN = "\n".join(f"So the final answer is: {n}." for n in "zero one two three four five six".split())


def _announced(said: str) -> tuple[str, ...]:
    return extract(said, "cot", "stop").segments


ABC = (("A", "house"), ("B", "tree"), ("C", "boat"))


def _either(said: str) -> bool | None:
    return None if (date := dates.parse(said)) is None else date.either


def _parsed(said: str) -> tuple[int | None, int | None, int | None, bool] | None:
    return None if (d := dates.parse(said)) is None else (d.year, d.month, d.day, d.sure)


def _shares(said: str) -> tuple[list[Fraction], list[Fraction]]:
    plain = numbers.normalized(said)
    kept, shares = units.without_totals(plain, numbers.candidates(plain))
    return [n.value for n in kept], [n.value for n in shares.values()]


def _equal(said: str, gold: str) -> bool:
    one, other = numbers.parse(said), numbers.parse(gold)
    return one is not None and other is not None and numbers.equal(one, other)


def _choice(said: str, options: Any) -> str | None:
    return (found := choices.uncued(said, options)).letter or found.reason


def _chosen(line: str, rest: str, options: Any) -> str | None:
    return (found := choices.announced(line, rest, options)).letter or found.reason


def _ended(said: str) -> list[tuple[str, bool]]:
    return [(s.text, s.ended) for s in cues.segments(said, False)]


def _segments(said: str, letters: bool = False) -> list[str]:
    return [s.text for s in cues.segments(said, letters)]


def _same_word(said: str, word: str, last: bool) -> bool:
    return view.same_word(view.tokens(said)[0], word, last)


def _named(said: str, golds: Sequence[str], consistency: bool = False) -> Any:
    found = names.uncued(said, golds, consistency)
    return found and (found.right, found.how)


def _agentcoma(said: str, gold: str) -> tuple[str, str | None]:
    return (found := agentcoma_number(said, gold)).outcome, found.answer


OPTIONS = (("A", "house"), ("B", "tree house"), ("C", "boat"))

LISTS: list[Row] = [
    (lists.split, ('["Mars", "Venus"]',), ["Mars", "Venus"]), (lists.split, ("[Mars, Venus]",), ["Mars", "Venus"]),
    (lists.split, ("The planets: [1, 2]",), ["1", "2"]), (lists.split, ("[]",), []),
    (lists.split, ("] a, b [",), ["] a", "b ["]), (lists.split, ("1) Mars 2) Venus",), ["Mars", "Venus"]),
    (lists.split, ("a) Mars b) Venus",), ["Mars", "Venus"]), (lists.split, ("Mars/Venus",), ["Mars", "Venus"]),
    (lists.split, ("Mars, TRAPPIST/Venus",), ["Mars", "TRAPPIST/Venus"]),
    (lists.split, ("1) Mars 2) Venus\n3) Earth",), ["Mars 2) Venus", "Earth"]),
    (lists.split, ("Here they are:\n- Mars\n- Venus",), ["Mars", "Venus"]), (lists.split, ("- Mars",), ["Mars"]),
    (lists.split, ("1. Mars\nthe red one\n2. Venus\nnear us",), ["Mars", "Venus"]),
    (lists.split, ("a -> b -> c",), ["a", "b", "c"]), (lists.split, ("a, b; c",), ["a, b", "c"]),
    (lists.split, ("solid, liquid, or gas",), ["solid", "liquid", "gas"]),
    (lists.split, ("The planets are: Mars and Venus, respectively.",), ["Mars", "Venus"]),
    (lists.held, ("Venus, then Mars", ["Mars", "Venus"]), True), (lists.held, ("Venus", ["Mars", "Venus"]), False),
    (lists.held, ("Marsh", ["Mars"]), False), (lists.compare, (["a", "b"], ["b", "a"], False), (True, None)),
    (lists.compare, (["a", "b"], ["b", "a"], True), (False, "order")),
    (lists.compare, (["a"], ["a", "b"], False), (False, "incomplete")),
    (lists.compare, (["a", "b", "c"], ["a", "b"], False), (False, "extra")),
    (lists.compare, (["a", "c"], ["a", "b"], False), (False, None)),
    (lists.compare, (["x"] * 41, ["x"], False), (False, "extra")),
    (lists.compare, ([*("abcdefghij" * 4), "x", "y"], ["x"], False), (False, "extra")),
    (lists.compare, (["New York", "York"], ["York", "New York"], True), (False, "order")),
    (lists.compare, (["York", "New York"], ["York", "New York"], True), (True, None)),
    (lists.compare, (["a hen has 2 legs", "a cow has 4 legs"], ["2", "4"], True), (True, None)),
    (lists.compare, (["the hammer", "the saw and hammer"], ["hammer", "saw"], False), (False, None)),
    (lists.compare, (["the score was 3"], ["3-1"], False), (False, None)),
    (lists.compare, (["a hen 2 legs and a cow 4 legs", "2"], ["4", "2"], True), (False, None)),
    (lists.compare, (["3 times 2 is 6", "2"], ["6", "2"], True), (True, None)),
    (lists.same, ("The Mars!", "mars"), True), (lists.same, ("1,000", "1000"), True), (lists.same, ("2", "3"), False),
    (lists.same, ("2 legs", "2"), False),
]  # fmt: skip

ECHO: list[Row] = [
    (echo.repeats, ("green old house near Paris burned", ROOM), True),
    (echo.repeats, ("green old house near x yy zz", ROOM), False), (echo.repeats, ("green old house", ROOM), True),
    (echo.repeats, ("green old", ROOM), False), (echo.repeats, ("green old house near qqq rrr ttt", ROOM), False),
    (echo.repeats, ("", ""), False), (echo.states, ("The green old house burned.", ROOM), True),
    (echo.states, ("The green old house.", ROOM), True), (echo.states, ("The green old shed.", ROOM), False),
    (echo.states, ("The green old house burned?", ROOM), False),
    (echo.states, ("The green old house burned. It was Vienna.", ROOM), False),
    (echo.states, ("It is.", "Who is it?"), False), (affirming.affirms, ("17 is a prime number.", PRIME), True),
    (affirming.affirms, ("17 is not a prime number.", PRIME), False),
    (affirming.affirms, ("17 is no doubt a prime number.", PRIME), True),
    (affirming.affirms, ("It is not false that 17 is a prime number.", PRIME), None),
    (affirming.affirms, ("If 17 is a prime number, we stop.", PRIME), None),
    (affirming.affirms, ("12 is larger than 9.", "Is 9 larger than 12?"), False),
    (affirming.affirms, ("Cu is a metal.", "Is the element with the symbol Cu a metal?"), True),
    (affirming.affirms, ("7 is not prime.", "Is the odd number 7 prime?"), False),
    (affirming.affirms, ("Emma is alive.", "Is the author of Emma alive?"), None),
    (affirming.affirms, ("Copper is a metal.", "Is the element with the symbol Cu a metal?"), True),
    (affirming.affirms, ("Nitrogen is a nonmetal.", "Is nitrogen a metal?"), False),
    (affirming.affirms, ("Shelter is a nonprofit.", "Is Shelter a nonprofit?"), True),
    (affirming.affirms, ("Lima does not lie at the sea.", "Does the capital of Peru lie at the sea?"), False),
    (affirming.affirms, ("The animal is a mammal.", "Is the animal whose baby is a puppy a mammal?"), True),
    (affirming.affirms, ("Lima is a big port.", "Is the capital of Peru a port?"), None),
    (affirming.affirms, ("Lyon is a port.", "Is the Seine a port?"), None),
    (affirming.affirms, ("Callao is a port. Lima is not.", "Is the capital of Peru a port?"), None),
    (affirming.affirms, ("Peru's capital is Lima. Lima is not a port.", "Is the capital of Peru a port?"), False),
    (affirming.affirms, ("The letter is under the mat.", "Is the key under the mat?"), None),
    (affirming.affirms, ("The bike is red.", "Is his car red?"), None),
    (affirming.affirms, ("The youngest is married.", "Is the oldest of the three brothers married?"), None),
    (affirming.affirms, ("The last letter is a vowel.", "Is the first letter of the name a vowel?"), None),
    (affirming.affirms, ("Nobody has been to Mars.", "Has the president of France been to Mars?"), None),
    (affirming.affirms, ("Jupiter is red.", "Is the planet Mars red?"), None),
    (affirming.affirms, ("The Great Wall is not visible.", "Is the Great Wall of China visible?"), False),
    (affirming.affirms, ("The fiction shelf is full and the nonfiction one empty.", "Is the fiction shelf full?"), True),
    (affirming.affirms, ("Bromine is a non-metal.", "Is bromine a nonmetal?"), True),
    (affirming.affirms, ("Lima is in Asia.", "Is the capital of Peru or that of Japan in Asia?"), None),
    (affirming.affirms, ("17 is a prime number. 17 is not a prime number.", PRIME), None),
    (affirming.affirms, ("17 is a prime number. Therefore, 17 is not a prime number.", PRIME), False),
    (affirming.affirms, ("It is prime.", "Is it prime?"), True),
    (affirming.affirms, ("17 is not a prime number.", "Is 17 not a prime number?"), None),
    (affirming.affirms, ("Is 17 a prime number? 17 is not a prime number.", PRIME), False),
    (echo.after_question, ("Is 17 a prime number? Yes.", PRIME), "Yes."),
    (echo.after_question, ("Is 17 prime? Yes.", "Is 17 prime?"), "Is 17 prime? Yes."),
    (echo.after_question, ("A prime number?", PRIME), ""),
    (echo.after_question, ("A prime number of what?", "Is 17 a prime?"), "A prime number of what?"),
    (echo.clause, ("Mozart was born in 1756, and he died in 1791.", "When was Mozart born?"), "Mozart was born in 1756"),
    (echo.clause, ("Mozart was born in 1756, but he died in 1791.", "When was Mozart born?"), None),
    (echo.clause, ("Mozart was born in 1756.", "When was Mozart born?"), None),
    (echo.clause, ("Mozart died in 1791, Mozart wrote.", "When was Mozart born?"), None),
    (echo.clause, ("The war in Europe ended on 8 May; the war in Asia ended on 2 September.", "When did World War II end in Europe?"), "The war in Europe ended on 8 May"),
    (echo.focus, ("Mozart was a composer. He was born in 1756.", "When was Mozart born?"), "He was born in 1756."),
    (echo.focus, ("Mozart was born in 1756. He was Austrian.", "When was Mozart born?"), "Mozart was born in 1756."),
    (echo.focus, ("Mozart was born in 1756.", "When was Mozart born?"), None),
    (echo.focus, ("When was Mozart born? Mozart was born in 1756.", "When was Mozart born?"), "Mozart was born in 1756."),
    (echo.focus, ("He lived. He died.", "When was Mozart born?"), None),
    (echo.in_another_clause, ("Plants take in oxygen and release carbon dioxide.", ["carbon dioxide"], "What do plants take in?"), True),
    (echo.in_another_clause, ("Plants take in oxygen and release carbon dioxide.", ["oxygen"], "What do plants take in?"), False),
    (echo.in_another_clause, ("Plants take in oxygen and plants take carbon dioxide.", ["carbon dioxide"], "What do plants take in?"), False),
    (echo.in_another_clause, ("Plants take in oxygen and Carbon dioxide.", ["carbon dioxide"], "What do plants take in?"), False),
]  # fmt: skip

CHOICES: list[Row] = [
    (_choice, ("A", OPTIONS), "A"), (_choice, ("a dog", OPTIONS), "no-answer"), (_choice, ("(b)", OPTIONS), "B"),
    (_choice, ("D.", OPTIONS), "no-answer"), (_choice, ("A, boat", OPTIONS), "letter and text differ"),
    (_choice, ("The tree house.", OPTIONS), "B"), (_choice, ("The house.", OPTIONS), "A"),
    (_choice, ("The house and the boat.", OPTIONS), "several choices"),
    (_choice, ("We see that (A) is wrong and (C) is incorrect, which leaves (B).", OPTIONS), "B"),
    (choices._said, ("(C) is wrong and (B) fits.", OPTIONS), {"B"}), (choices._said, ("(C) is fine and (B) fits.", OPTIONS), {"B", "C"}),
    (_choice, ("A or B", OPTIONS), "several choices"), (_choice, ("Not (A) but (C)", OPTIONS), "C"),
    (_choice, ("Is it wood? Some are. Therefore, C.", OPTIONS), "C"),
    (_choice, ("(A) (B) (C)", OPTIONS), "several choices"), (_choice, ("B. No, wait, C", OPTIONS), "C"),
    (_choice, ("", OPTIONS), "no-answer"), (_chosen, ("as follows", "as follows\n(B)", OPTIONS), "B"),
    (_chosen, ("as follows", "as follows", OPTIONS), "no-answer"), (_chosen, ("E", "E", ()), "E"),
    (booleans.uncued, ("Yes.",), True), (booleans.uncued, ("No.",), False), (booleans.uncued, ("Yes and no.",), None),
    (booleans.uncued, ("It is not true.",), False), (booleans.uncued, ("Is it? No.",), False),
    (booleans.uncued, ("There is no evidence.",), None), (booleans.uncued, ("Yes. No wait, no.",), False),
    (booleans.uncued, ("Yes, at first. Therefore, no.",), False),
    (booleans.uncued, ("It may be. Therefore, yes. But the rule has changed. Therefore, no.",), False),
    (booleans.uncued, ("No. Wait, yes. Actually, wait, no.",), False),
    (booleans.uncued, ("Yes. Wait, he died in 1791. The claim is not true.",), False),
    (booleans.uncued, ("No. Wait, he died in 1791. That is true.",), True),
    (booleans.uncued, ("Yes. Wait, he died in 1791.",), None),
    (booleans.uncued, ("It looks so. That is true. This is false.",), None),
    (booleans.uncued, ("It is not true that it is not so.",), None), (booleans.uncued, ("",), None),
    (booleans.announced, ("well", "well\nYes."), True), (booleans.announced, ("yes and no", "yes and no\nYes."), None),
    (booleans.announced, ("well", "well"), None), (booleans.value, ("Yes.",), True),
    (booleans.value, ("maybe",), None), (booleans.opens, ("Absolutely not, no.",), True),
    (booleans.opens, ("Perhaps.",), False),
]  # fmt: skip

READING: list[Row] = [
    (_ended, ("The answer is 12.\nDone",), [("12.", True)]), (_ended, ("The answer is 12",), [("12", False)]),
    (_segments, ("If the answer is 12, stop. \\boxed{1{2}3} A: 5",), ["1{2}3"]), (_segments, ("A: 5",), ["5"]),
    (_segments, ("A: 5", True), []), (_segments, ("I think.\n**12**",), ["12"]),
    (_segments, ("Answer:\n- a\n- b",), ["- a\n- b"]),
    (cues.boxes, ("\\boxed{1} \\boxed{2",), [(0, "1", True), (10, "2", False)]),
    (lambda s: [(c.word, c.sure) for c in cues.corrections(s)], ("No, it is. Actually, wait, 5. I mean 6",), [("wait", True), ("i mean", True)]),
    (cues.guesses, ("It is B, but it could be A. C is wrong.",), ("It is B, ", "A")),
    (cues.guesses, ("B or possibly A; so C is wrong",), ("B ", "A")),
    (cues.guesses, ("B, but maybe A, but not C",), ("B, ", "A")), (cues.guesses, ("B, but maybe A\nC",), None),
    (cues.corrected, ("It is 5. No, sorry, 6",), ", 6"),
    (cues.corrected, ("It is 5. Actually, 6",), "It is 5. Actually, 6"),
    (cues.corrected, ("It is 5. Sorry.",), "It is 5. Sorry."), (cues.concludes, ("Therefore, 5",), True),
    (cues.concludes, ("Five",), False), (cues.first_cue, ("x",), None), (cues.first_cue, ("answer: 5, answer: 6",), 7),
    (view.visible, ("<think>a</think> b",), "b"), (view.visible, ("<think>a",), None),
    (view.visible, ("a</think>b",), "b"), (view.visible, ("a &lt; b<|im_end|>",), "a < b"),
    (view.visible, ("<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nNo, b",), "a"),
    (view.visible, ("<start_of_turn>model\na<end_of_turn>b",), "a"), (view.visible, ("a<|endoftext|>Human: b",), "a"),
    (view.visible, ("<think>c<eos></think>a<eos>b",), "a"), (view.visible, ("<|endoftext|>a",), "a"),
    (view.visible, ("<s>1</s> 2",), "1 2"), (view.visible, ("1</s> 2",), "1"), (view.visible, ("a</s>",), "a"),
    (view.visible, ("a      b",), "a b"), (view.visible, ("a   b",), "a   b"),
    (view.without_farewell, ("It is 5. Let me know if you have questions!",), "It is 5."),
    (view.without_farewell, ("I hope this helps!",), "I hope this helps!"),
    (view.before_next_question, ("5\nQuestion: b? 6",), ("5", "\nQuestion: b? 6")),
    (view.before_next_question, ("\nQuestion: b?",), ("\nQuestion: b?", "")),
    (view.within_reach, ("x" * 10000,), ("x" * 10000, False)),
    (lambda s: view.within_reach(s)[1], ("x" * 10001,), True),
    (view.sentences, ("Dr. Who came. J. Smith left. Vitamin C. It is.",), ["Dr. Who came.", "J. Smith left.", "Vitamin C.", "It is."]),
    (view.sentences, ("In the U.S. it is. a\n\n!!\nb",), ["In the U.S. it is.", "a", "b"]),
    (text_files.literal, ("{'a': 1}", dict), {"a": 1}), (text_files.literal, ("[1]", dict), None),
    (view.without_tool_calls, ("a <tool_call>x</tool_call> b",), "a  b"),
    (view.plain, ("**a** `b` \\text{c} \u2019",), "a b c '"), (text.normalize, ("The  Café's!",), "cafes"),
    (text.normalize, ("H_2O",), "h2o"), (text.normalize, ("C_6H_{12}O_6",), "c6h12o6"),
    (text.normalize, ("The The",), "the the"), (text.strip_opening, ("So the answer is 5",), "5"),
    (text.abstains, ("I don't know.",), True), (text.abstains, ("I don't know, but I think 1876",), False),
    *((text.abstains, (said,), True) for said in (
        "The text does not say.", "The passage doesn't mention it.", "idk", "I cannot say who it is.",
        "The question cannot be answered with the information provided.", "Not in context.", "Not specified.",
        "Sorry, not mentioned in the given passage.", "I'm sorry, but I was unable to find her name.",
        "Without the year of 'Lom', it's impossible to identify her.", "The query doesn't provide enough information.",
        "The information available is insufficient to answer it.", "Given the context, I cannot confidently answer.",
        "The information needed to say when she left is not available.", "The tools and data do not provide any details.",
        "I'm sorry, but without further details, I am currently unable to determine who she is.",
        "Due to technical difficulties, I can't retrieve it at this time.")),
    *((text.abstains, (said,), False) for said in (
        "Idkov", "The text does not mention Paris; it says Lyon.", "Not in the text, but in Lyon.", "Not in the city.",
        "Without doubt, it is Lyon.", "I was in Lyon.", "It is not enough to buy it.", "Without it, I can't say, but Lyon.",
        "Due to a hole, we need more bags: 8.", "It's impossible to give half an egg. They get 6.",
        "Without a loan, she cannot give more than 3.", "The information needed is 15 - 3 = 12; more is not available.")),
    (text.abstains, ("1876",), False), (text.refuses, ("I'm sorry, I can't help with that.",), True),
    (text.refuses, ("I can help.",), False), (text.same, ("y s n r", "ysnr"), True), (text.same, ("b c", "bc"), True),
    (text.same, ("Ernest Hemmingway", "Ernest Hemingway"), True), (text.same, ("Ernst Hemmingway", "Ernest Hemingway"), False),
    (text.same, ("b", "bc"), False), (text.same, ("new york", "newyork"), False), (text.same, ("", "!"), False),
    (text.part_of, ("Einstein", "Albert Einstein"), True), (text.part_of, ("Jane", "Jane Austen"), True),
    (text.part_of, ("Mexico", "Mexico City"), False), (text.part_of, ("J. Austen", "Jane Austen"), True),
    (text.part_of, ("K. Austen", "Jane Austen"), False), (text.part_of, ("Carson City", "Salt Lake City"), False),
    (text.part_of, ("Lake City", "Salt Lake City"), True),
    (text.part_of, ("Lawrence Augustine Washington", "Lawrence Washington"), True),
    (text.part_of, ("Lawrence Augustine Brown", "Lawrence Washington"), False), (text.part_of, ("Al", "Li Al"), False),
    (text.part_of, ("Ali", "Li Ali"), True), (text.last_name, ("Einstein", "Albert Einstein"), True),
    (text.last_name, ("Albert", "Albert Einstein"), False), (text.last_name, ("Li", "Jet Li"), False),
    (text.last_name, ("Ali", "Muhammad Ali"), True), (text.last_name, ("Einstein", "Einstein"), False),
    (text.last_name, ("1914", "July 1914"), False), (view.words, ("The Who",), ("who",)),
    (view.words, ("The",), ("the",)),
    (lambda s: [(t.word, t.capital, t.owner) for t in view.tokens(s)], ("Paris's P.R. côte",), [("pariss", True, "paris"), ("pr", True, None), ("cote", False, None)]),
    (_same_word, ("mice", "mouse", True), True), (_same_word, ("mice", "mouse", False), False),
    (_same_word, ("boxes", "box", True), True), (_same_word, ("as", "a", True), False),
    (_same_word, ("ass", "as", True), False), (_same_word, ("r2d2s", "r2d2", True), False),
]  # fmt: skip

NAMED: list[Row] = [
    (_named, ("The capital of France is Paris. It is large. The capital of France is Lyon.", ["Paris"]), (None, "another conclusion")),
    (_named, ("The capital of France is Paris. It is large. The river of France is the Seine.", ["Paris"]), (True, "contained")),
    (_role, ("The capital (of France) is Paris.", "Paris"), Role.ASSERTED), (_role, ("It is Lyon (Paris is next)", "Paris"), Role.PASSING),
    (_role, ("It is Lyon (Paris", "Paris"), Role.PASSING),
    *((_role, (f"The capital {was} Paris.", "Paris"), role) for was, role in (
        ("was", Role.ASSERTED), ("was once", Role.PASSING), ("was formerly", Role.PASSING), ("was previously", Role.PASSING),
        ("used to be", Role.PASSING), ("is", Role.ASSERTED), ("is not", Role.DENIED))),
    *((_role, (f"Lyon, {like} Paris, is wet.", "Paris"), Role.PASSING) for like in (
        "much like", "much as in", "just as in", "similar in size to", "compared to")),
    (_role, ("Lyon, unlike Paris, is wet.", "Paris"), Role.DENIED),
    (_role, ("The capital is Paris.", "Paris"), Role.ASSERTED), (_role, ("It is not Paris.", "Paris"), Role.DENIED),
    (_role, ("It is Lyon.", "Paris"), None), (_role, ("Not only Paris.", "Paris"), Role.ASSERTED),
    (_role, ("No Paris", "Paris"), Role.DENIED), (_role, ("It is Lyon rather than Paris", "Paris"), Role.DENIED),
    (_role, ("Lyon or Paris", "Paris"), Role.HEDGED), (_role, ("Paris or Lyon", "Paris"), Role.HEDGED),
    (_role, ("Either Paris or so", "Paris"), Role.HEDGED),
    (_role, ("Constantinople or Istanbul", "Istanbul", "Constantinople"), Role.ASSERTED),
    (_role, ("Paris is not it", "Paris"), Role.PASSING), (_role, ("Paris is wrong", "Paris"), Role.DENIED),
    (_role, ("It is Northern Ireland", "Ireland"), Role.PASSING), (_role, ("sea lion", "lion"), Role.PASSING),
    (_role, ("Jefferson, who preceded Madison", "Madison"), Role.PASSING),
    (_role, ("Obama, who was a member of the Democrats", "Democrats"), Role.ASSERTED),
    (_role, ("Tyler Shultz, a colleague of Erika Cheung", "Erika Cheung"), Role.PASSING),
    (_role, ("Romulus and Remus", "Remus"), Role.PASSING),
    (_role, ("Texas is large, and Austin is its capital", "Austin"), Role.ASSERTED),
    (_role, ("the Brazilian coast", "Brazil"), Role.PASSING), (_role, ("the Cubans", "Cuba"), None),
    (_role, ("Marie S. Curie", "Marie Curie"), Role.PASSING),
    (_role, ("Washington, D.C.", "Washington DC"), Role.ASSERTED),
    (_role, ("Let us see the US now", "US"), Role.ASSERTED), (_role, ("Let us see it now", "US"), None),
    (_role, ("Berlin/Paris", "Paris"), Role.PASSING), (_role, ("Paris's mayor", "Paris"), Role.PASSING),
    (_role, ("It used to be Bonn", "Bonn"), Role.PASSING), (_role, ("It lies far from Bonn", "Bonn"), Role.ASSERTED),
    (_role, ("Berlin lies far from Bonn", "Bonn"), Role.PASSING),
    (_role, ("the Swiss franc", "franc", "Swiss franc"), Role.ASSERTED), (names.match, ("Paris", ["Paris"]), "exact"),
    (names.match, ("paname", ["Paris", "Paname"]), "alias"), (names.match, ("Lyon", ["Paris"]), None),
    (names.match, ("It was Paris in the end", ["Paris"]), "contained"),
    (_named, ("Einstein", ["Albert Einstein"]), (None, "part of the name")),
    (_named, ("Einstein", ["Albert Einstein"], True), (True, "consistency")),
    (_named, ("Lyon. It is near Paris.", ["Paris"]), (False, "another answer")),
    (_named, ("It is Paris. No, sorry, Lyon.", ["Paris"]), (False, "corrected")),
    (_named, ("It is Lyon. No, sorry, Paris.", ["Paris"]), (True, "contained")),
    (_named, ("It is Paris. Therefore it is Lyon.", ["Paris"]), (None, "another conclusion")),
    (_named, ("Nitrogen", ["N"]), (None, "a letter inside a word")),
    (_named, ("the Canal Treaty", ["A", "the Ferry Act"]), (False, "another answer")),
    (_named, ("Na", ["N"]), (False, "another answer")), (_named, ("Lyon or Paris", ["Paris"]), (False, "hedged")),
    (_named, ("The author is Paul Ehrlich. Ehrlich was born in Vienna.", ["Vienna"]), (True, "contained")),
    (_named, ("The author is Paul Ehrlich. Ehrlich was born in Vienna. So it is Graz.", ["Vienna"]), (None, "another conclusion")),
    (_named, ("That's wrong. The capital is Paris.", ["Paris"]), (True, "contained")),
    (_named, ("", ["Paris"]), None),
    (names.answered_later, ("\nQuestion: a?\nParis\nQuestion: b?\nLyon", ["Paris"]), True),
    (names.answered_later, ("\nQuestion: a?\nParis\nQuestion: b?\nLyon", ["Lyon"]), False),
    (names.by_surname, (view.tokens("Einstein was born"), "Albert Einstein"), True),
    (names.by_surname, (view.tokens("Max Einstein"), "Albert Einstein"), False),
    (names.by_surname, (view.tokens("Bach was"), "J. Bach"), True),
    (names.by_surname, (view.tokens("Fox was"), "J. Fox"), False),
]  # fmt: skip

OTHERS: list[Row] = [
    (_agentcoma, ("1,250 and -3", "3"), ("correct", "3")),
    *((dates.is_real, (f"29 February{year}",), real) for year, real in (
        (" 1500", True), (" 1501", False), (" 1582", False), (" 1600", True), (" 1900", False), (" 2000", True), (" 2001", False), ("", True))),
    *((dates.is_real, (gold,), real) for gold, real in (("10:30", True), ("7:40 pm", True), ("soon", False))),
    *((formulas.is_formula, (gold,), is_one) for gold, is_one in (
        ("a/b", False), ("2/x", True), ("\\frac{2}{y}", True), ("\\frac{x}{y}", False))),
    (formulas._balanced, ("((x + 1)",), "(x + 1)"), (formulas._balanced, ("(x + 1))",), "(x + 1)"),
    (in_passing, (Mention(view.tokens(", before the Great Paris"), view.tokens(", before the Great"), (), 4),), False),
    (in_passing, (Mention(view.tokens("Lyon, before the Great Paris"), view.tokens("Lyon, before the Great"), (), 5),), True),
    (_choice, ("A. The one that is wrong is B.", ABC), "A"), (_choice, ("Of them all the largest is B.", ABC), "B"),
    (events.event_part, ("It was 1775. Jane Austen was born then.", "When was Jane Austen born?"), None),
    (events.event_part, ("It was 1775. Jane Austen died then.", "When was Jane Austen born?"), ""),
    (events.event_part, ("She was born in 1775 and died in 1817.", "When was she born and when did she die?"), None),
    (events.event_part, ("He was born in 1775 and died in 1817.", "In what year did the man who was born in Bath die?"), None),
    *((_parsed, (said,), date) for said, date in (
        ("-44", (-44, None, None, False)), ("44 B.C.E.", (-44, None, None, True)), ("AD 44", (44, None, None, True)),
        ("'30", (2030, None, None, False)), ("'31", (1931, None, None, False)), ("20 July '69", (1969, 7, 20, True)),
        ("2015-06", (2015, 6, None, True)), ("2005-06", (2005, None, None, True)), ("31 May 1990", (1990, 5, 31, True)),
        ("May 1990", (1990, 5, None, True)), ("45", (45, None, None, False)), ("0", None))),
    *((_shares, (said,), shares) for said, shares in (
        ("4 of the 8 planets", ([4], [Fraction(1, 2)])), ("9 of the 4 boxes", ([9, 4], [])), ("0 of 4", ([0], [0])),
        ("3 % of 4", ([Fraction(3, 100), 4], [])), ("2.5 of 4", ([Fraction(5, 2), 4], [])), ("4 of 0", ([4, 0], [])),
        ("1 in 6", ([1], [Fraction(1, 6)])), ("1 in 6 weeks", ([1, 6], [])), ("1 in 5000", ([1, 5000], [])))),
    *((units.as_asked, (said, [gold], asked), read) for said, gold, asked, read in (
        ("7 dozen", "7", "How many dozens are there?", "7"), ("7 dozen", "7 dozen", "How many dozens are there?", "7 dozen"),
        ("a dozen", "1", "How many dozens are there?", "1"), ("7 dozen", "7", "How many eggs are there?", "7 dozen"),
        ("47 / 6 = 7 remainder 5", "5", "What is the remainder of 47 / 6?", "47 / 6 = 7 = 5"),
        ("at least 12", "12", "What is the least number of buses?", "12"), ("at least 12", "12", "How many buses?", "at least 12"))),
    *((_equal, (said, gold), equal) for said, gold, equal in (
        ("6:8", "3:4", True), ("3:4", "0.75", False), ("0.75", "3:4", False), ("3/4", "0.75", True), ("75 %", "0.75", True),
        ("3 h", "180 min", True), ("3 h", "180 m", False), ("0.5 %", "0.5", True), ("0.5", "50 %", True))),
    (roles.own_number, ("At first Sam had 14 and Tina had 40. Now Sam has 12 and Tina has 42.", "Sam and Tina share marbles. How many marbles does Tina have?"), "42"),
    (text.same, ("2x > 6, so x > 3", "x > 3"), True), (text.same, ("x > 1, so x > 3", "x > 1"), False),
    (text.same, ("so x \\geq 3", "x >= 3"), True), (text.same, ("x > 3", "x < 3"), False),
    *((_either, (said,), either) for said, either in (
        ("3/4/1901", True), ("12/12/1901", True), ("13/4/1901", False), ("3 May 1901", False), ("1901", False))),
    (_agentcoma, ("-3.5 Question: 7", "-3.5"), ("correct", "-3.5")), (_agentcoma, ("none", "0"), ("correct", "0")),
    (_agentcoma, ("1,250", "1,250"), ("correct", "1250")), (_agentcoma, ("5", "five"), ("incorrect", "5")),
    (stad_answer, ('a {"answer": 5} b {"answer": {"x": 6}} c',), "{'x': 6}"),
    (stad_answer, ('{"answer": 0}',), '{"answer": 0}'), (stad_answer, ("none",), "none"),
    (stad_answer, ("a}",), "a}"), (stad_answer, ('{"x": 1}',), '{"x": 1}'),
    (judging.verdict, ('{"score": 1}',), True), (judging.verdict, ('{"score": 0} {"score": 1}',), None),
    (judging.verdict, ("Verdict: not correct",), False), (judging.verdict, ("<think>a",), None),
    (judging.verdict, ("<think>0</think>1",), True), (judging.verdict, ("It is correct.",), None),
    (judging.verdict, ("**Correct.**",), True), (judging.verdict, ("{'score': 0, 'why': \"it's \"no\"\"}",), False),
    (judging.shortened, ("x" * 3000,), "x" * 3000),
    (judging.shortened, ("a" * 1500 + "bb" + "c" * 1500,), "a" * 1500 + "\n[... 2 characters left out ...]\n" + "c" * 1500),
    (last_object, ('x {"a": {"b": 1}} y',), {"a": {"b": 1}}), (last_object, ('{"a": 1} {"b": 2}',), {"b": 2}),
    (last_object, ("[1]",), None), (_announced, (SEVEN,), ("six.", "five.", "four.", "three.", "two.")),
]  # fmt: skip


@pytest.mark.parametrize(("step", "given", "expected"), [*LISTS, *ECHO, *CHOICES, *READING, *NAMED, *OTHERS])
def test_a_step_of_reading_gives_what_a_reader_would_say(step: Any, given: tuple[Any, ...], expected: Any) -> None:
    assert step(*given) == expected


OUTCOMES: list[tuple[str, str, str, dict[str, Any], tuple[str, str | None, str | None]]] = [
    ("number", "12", "I see nothing here", {}, ("invalid", None, "no-answer")),
    ("number", "12", "Answer: 12\nSo the final answer is: as shown above", {}, ("correct", "numeric", None)),
    ("text", "MLP and CNN", "multi layer perceptron and convolutional neural network", {}, ("invalid", None, "initials of the name")),
    ("text", "Paris", "Lyon is south of Paris.", {}, ("invalid", None, "named in passing")),
    ("text", "Paris", "So it may be this one. " * 9 + "\nINSUFFICIENT_EVIDENCE", {"format": "cot"}, ("abstained", None, None)),
    ("number", "3", "```python\nx = 3\nprint(x)\n```", {}, ("invalid", None, "program without output")),
    ("text", "Paris", "It is Paris. Actually, it is a large city.", {}, ("invalid", None, "corrected")),
    ("text", "Paris", '{"arguments": "none", "answer": "Paris"}', {}, ("correct", "exact", None)),
    ("text", "Rome", "Ann Lee was born in Rome. That is unclear.", {"question": "Ann Lee was born in Rome. Where did she die?"}, ("invalid", None, "named in passing")),
    ("number", "1", "1 %", {"question": "How many are left?"}, ("invalid", None, "two readings")),
    ("number", "12", "3 x 4", {}, ("invalid", None, "expression without a result")),
    ("number", "12", "more than 12", {}, ("incorrect", None, "bound")), ("number", "9", "more than 12", {}, ("incorrect", None, "bound")),
    ("number", "12", "12 or 13", {}, ("incorrect", None, "hedged")), ("number", "9", "at least 12", {}, ("incorrect", None, "bound")),
    ("number", "12 kg", "12 m", {}, ("incorrect", None, "unit")), ("number", "12 kg", "13 kg", {}, ("incorrect", None, None)),
    ("number", "12500", "12.500", {}, ("invalid", None, "two readings")), ("number", "9", "17 minus 8 is 9", {}, ("correct", "numeric", None)),
    ("number", "85", "1 hour 25 minutes", {"question": "How long?"}, ("invalid", None, "another unit")),
    ("number", "3", "12 apples in 3 boxes", {}, ("correct", "numeric", None)), ("number", "3", "in third place", {}, ("correct", "numeric", None)),
    ("date", "1776", "It was in 1776.", {}, ("correct", "date", None)), ("date", "July 1776", "1776", {}, ("incorrect", None, "incomplete")),
    ("date", "1776-07-04", "7/4/1776", {}, ("correct", "date", None)), ("date", "1776-04-07", "4/7/1776", {}, ("correct", "date", None)),
    ("date", "1776-07-04", "4/7/1776", {}, ("invalid", None, "two readings")), ("date", "1961", "It began in 1961 and ended in 1969.", {}, ("invalid", None, "several dates")),
    ("date", "1776", "before 1776", {}, ("invalid", None, "several dates")), ("date", "1776", "nobody knows it", {}, ("invalid", None, "no-answer")),
    ("text", "Paris", "Paname", {"aliases": ("Paname",)}, ("correct", "exact", None)), ("text", "Paris", "Lyon", {"aliases": ("Paname",)}, ("incorrect", None, None)),
    ("text", "Paris", "I don't know.", {}, ("abstained", None, None)), ("text", "Paris", "I don't know.", {"unknowable": True}, ("correct", "abstention", None)),
    ("text", "Paris", "Paris", {"unknowable": True}, ("incorrect", None, "unknowable")), ("boolean", "yes", "Yes.", {}, ("correct", "exact", None)),
    ("number", "36", "36 is three dozen", {"question": "How many eggs are three dozen?"}, ("correct", "numeric", None)),
    ("number", "36", "three dozen", {"question": "How many eggs are three dozen?"}, ("incorrect", None, None)),
    ("number", "2x", "x + x", {}, ("correct", "math-verify", None)), ("number", "2x", "x + x", {"question": "Simplify x + x."}, ("invalid", None, "no-answer")),
    ("number", "abc", "abc", {}, ("correct", "exact", None)), ("number", "abc", "abd", {}, ("incorrect", None, None)),
    ("number", "12", "It is 12. Correction: I am not sure.", {}, ("correct", "numeric", None)), ("number", "12", "It is 12. Correction: 13.", {}, ("incorrect", None, None)),
    ("number", "1", "1" * 500, {}, ("invalid", None, "no-answer")), ("number", "1", "1e999999", {}, ("invalid", None, "no-answer")),
    ("text", "Paris", "It is Paris. Wait, no.", {}, ("correct", "contained", None)), ("text", "Paris", "It is Paris. Wait, no: Lyon.", {}, ("incorrect", None, None)),
    ("text", "Tom", "Ada, whose brother, Tom, was rich, won.", {"question": "Who won?"}, ("invalid", None, "named in passing")),
    ("text", "Tom", "Ann Lee, and then Tom is second", {"question": "Who won?"}, ("invalid", None, "named in passing")),
    ("text", "Brazil", "The Brazilian team won.", {"question": "Which country won?"}, ("invalid", None, "named in passing")),
    ("choice", "red", "It is red.", {}, ("correct", "exact", None)), ("choice", "red", "blue", {}, ("incorrect", None, None)),
    ("list", "a; b", "b, a", {}, ("correct", "set", None)), ("ordered-list", "a; b", "a, b", {}, ("correct", "ordered", None)),
    ("ordered-list", "a; b", "b, a", {}, ("incorrect", None, "order")), ("list", "a; b", "a, c", {}, ("incorrect", None, None)),
    ("choice", "A", "A or B", {}, ("invalid", None, "several choices")), ("choice", "A", "B", {}, ("incorrect", None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("answer_type", "gold", "response", "more", "expected"), OUTCOMES)
def test_a_grade_says_how_or_why(
    answer_type: str, gold: str, response: str, more: dict[str, Any], expected: Any
) -> None:
    found = grade(response, "stop", gold, answer_type, **more)
    assert (found.outcome, found.match, found.reason) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("6", "stop", "6", "numeral"), ("answer_type is 'numeral'", "number")),
        (("6", "stop", "6", "number", (), "xlm"), ("format 'xlm'", "xml")),
        (("6", "stop", "6", "number", (), "plain", "paper"), ("compat is 'paper'", "collapse")),
        (("yes", "stop", "maybe", "boolean"), ("gold answer 'maybe'", "yes or no")),
    ],
)
def test_what_no_answer_can_be_compared_with_is_refused(given: tuple[Any, ...], said: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        grade(*given)
    assert all(fact in str(caught.value) for fact in said), caught.value


def test_a_second_opinion_counts_what_it_cannot_read_apart() -> None:
    said = [("6", "6", True), ("7", "6", True), ("$", "6", False), ("6", "6", False), ("\\frac{6}{8}", "3/4", False)]
    rows = [Graded("c", "whole", "correct" if ours else "incorrect", answer=a, gold=g) for a, g, ours in said]
    found = formulas.second_opinion(rows)
    assert (found.n, found.n_unread) == (4, 1)
    assert found.disagreements == (said[1], said[3], said[4])
