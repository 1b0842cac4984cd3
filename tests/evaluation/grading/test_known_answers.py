"""Answers that graders get wrong: corrections, hedges, bounds, rivals, notations, cues in many words and languages.

Judged by hand. OPEN: no rule can tell, so that the answer must not be right and may be undecided.
"""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE = {"correct"}, {"incorrect"}, {"invalid"}
OPEN = {"incorrect", "invalid"}
"""Not right; whether wrong or undecided is not for this table to say."""
FAIR = {"correct", "invalid"}
"""Not wrong."""

# (answer type, gold, response, expected)
ROWS = [
    ("text", "York", "The answer is New York.", NONE),
    ("text", "Ireland", "It is Northern Ireland.", NONE),
    ("text", "Africa", "Kenya is a country in East Africa.", RIGHT),
    ("text", "Marie Curie", "The scientist was Marie Sklodowska Curie.", FAIR),
    ("text", "calf", "Young cows are called calves.", RIGHT),
    ("text", "He", "The symbol of helium is He.", RIGHT),
    ("text", "US", "Let us see. It is Canada.", WRONG),
    ("text", "USA", "The company was founded in the U.S.A.", RIGHT),
    ("text", "J. K. Rowling", "The author is JK Rowling.", RIGHT),
    ("number", "45", "45 minutes or 0.75 hours", RIGHT),
    ("number", "32", "Each spider has 8 legs; 4 spiders have thirty-two legs.", FAIR),
    ("number", "24", "A day has 24 hours = 1440 minutes.", RIGHT),
    ("number", "2.5", "2 and a half", RIGHT),
    ("boolean", "yes", "Absolutely, a spider is an arachnid.", RIGHT),
    ("boolean", "yes", "No doubt: yes.", RIGHT),
    ("boolean", "no", "Absolutely not.", RIGHT),
    ("boolean", "no", "Not really.", RIGHT),
    ("boolean", "no", "Yes or No? No.", RIGHT),
    ("number", "9", "7 + 14 = 21 hours. He still needs 9 hours.", RIGHT),
    ("number", "21", "7 + 14 = 21 hours. He still needs 9 hours.", NONE),
    ("number", "9", "Therefore, the answer (arabic numerals) is 9", RIGHT),
    ("text", "Helium", "So the final answer (the name of the element) is: Helium", RIGHT),
    ("number", "12", "The final answer would be 12.", RIGHT),
    ("number", "12", "Final answer → 12", RIGHT),
    ("number", "12", "**Final Answer** → 12", RIGHT),
    ("number", "90", "20 * 4 = 80, and 10 more.\nA: 90", RIGHT),
    ("number", "1234567", "1.234.567.", RIGHT),
    ("number", "12500", "12.500 €", RIGHT),
    ("number", "12500", "The price is 12.500 €.", RIGHT),
    ("number", "0.6", "0.6 or 3/5", RIGHT),
    ("number", "3/5", "0.6 or 3/5", RIGHT),
    ("number", "7/12", "7/12, i.e. about 0.58", RIGHT),
    ("number", "0.58", "7/12, i.e. about 0.58", RIGHT),
    ("number", "3.5", "It takes 3:30 hours.", RIGHT),
    ("number", "0:30 am", "12:30 am", RIGHT),
    ("number", "12:30 pm", "12:30 p.m.", RIGHT),
    ("number", "12:30 pm", "12:30 am", WRONG),
    ("number", "12:30", "12:30 pm", RIGHT),
    ("number", "3:30 pm", "15:30", RIGHT),
    ("number", "3", "3:30", OPEN),
    ("number", "30", "3:30", OPEN),
    ("text", "3:30", "The train leaves at 3:30.", RIGHT),
    ("text", "3:30", "The train leaves at 3:45.", WRONG),
    ("text", "3:30 PM", "The meeting is at 3:30 PM.", RIGHT),
    ("number", "3:30", "3:30", RIGHT),
    ("number", "3:30", "The answer is 3:45", WRONG),
    ("number", "350", "$350 for 2 nights", RIGHT),
    ("number", "2", "$350 for 2 nights", OPEN),
    ("number", "350", "The answer is $350 for 2 nights", RIGHT),
    ("date", "1969-07-20", "1969年7月20日", RIGHT),
    ("date", "1969-07-21", "1969年7月20日", WRONG),
    ("ordered-list", "Mars, Jupiter, Saturn", "1) Mars 2) Jupiter 3) Saturn", RIGHT),
    ("ordered-list", "Jupiter, Mars, Saturn", "1) Mars 2) Jupiter 3) Saturn", WRONG),
    ("list", "Jupiter, Mars, Saturn", "1) Mars 2) Jupiter 3) Saturn", RIGHT),
    ("number", "0", "There are no apples left", RIGHT),
    ("number", "3", "There are no apples left", WRONG),
    ("number", "0", "The answer is: there are no apples left.", RIGHT),
    ("text", "James Madison", "Thomas Jefferson, who preceded James Madison", OPEN),
    ("text", "James Madison", "The answer is Thomas Jefferson, who preceded James Madison.", OPEN),
    ("text", "Madison", "Thomas Jefferson, who preceded James Madison", OPEN),
    ("boolean", "yes", "Yes and no. It depends.", OPEN),
    ("boolean", "no", "Yes and no. It depends.", OPEN),
    ("number", "12", "More than 12", OPEN),
    ("number", "12", "The answer is more than 12.", OPEN),
    ("number", "12", "The answer is 12... no, sorry, it's 14", OPEN),
    ("number", "14", "The answer is 12... no, sorry, it's 14", RIGHT),
    (
        "text",
        "French",
        "The official language of France is French. However, many people also speak Breton or Occitan.",
        RIGHT,
    ),
    (
        "text",
        "Breton",
        "The official language of France is French. However, many people also speak Breton or Occitan.",
        OPEN,
    ),
    ("number", "8", "The answer to this question is 8. A spider has 8 legs.", RIGHT),
    ("number", "32", "17 + 15 = 32.", RIGHT),
    ("number", "42", "17 + 25 = 42. You can check this by adding 10 and 15 to 17.", FAIR),
    ("number", "14", "12. Wait, I forgot two. It should be 14.", RIGHT),
    ("number", "12", "12. Wait, I forgot two. It should be 14.", OPEN),
    ("number", "14", "The answer is 12. Actually, I made a mistake: the answer is 14.", RIGHT),
    ("number", "14", "**Answer:** ~~12~~ 14", FAIR),
    ("number", "12", "fewer than 12", OPEN),
    ("number", "12", "at least 12", OPEN),
    ("number", "12", "up to 12", OPEN),
    ("number", "12", "12 or more", OPEN),
    ("number", "12", "about 12", RIGHT),
    ("number", "12", "approximately 12 apples", RIGHT),
    ("number", "12", "nearly 12", RIGHT),
    ("number", "12", "between 12 and 15", OPEN),
    ("number", "12", "12-15", OPEN),
    ("number", "12", "12 to 15 apples", OPEN),
    ("number", "0", "None of them are left.", RIGHT),
    ("number", "0", "Nobody.", RIGHT),
    ("number", "5", "There are 5 apples and no pears left.", RIGHT),
    ("number", "0", "She has nothing left.", RIGHT),
    ("number", "1234.56", "1.234,56 €", RIGHT),
    ("number", "1234567.89", "1.234.567,89", RIGHT),
    ("number", "12.5", "12,5 €", RIGHT),
    ("number", "9", "Die Antwort ist 9.", RIGHT),
    ("number", "9", "La réponse est 9.", RIGHT),
    ("number", "9", "La respuesta es: 9", RIGHT),
    ("number", "9", "答案是9。", RIGHT),
    ("number", "9", "答え：9", RIGHT),
    ("number", "9", "Ответ: 9", RIGHT),
    ("number", "9", "Antwort: 9 Äpfel", RIGHT),
    ("number", "9", "A resposta é 9.", RIGHT),
    ("number", "9", "La risposta è 9.", RIGHT),
    ("number", "9", "정답은 9입니다.", RIGHT),
    ("number", "9", 'The answer to the question "How many legs are there?" is 9.', RIGHT),
    ("number", "9", "### Answer\n9", RIGHT),
    ("number", "9", "**Answer**\n\n9 apples", RIGHT),
    ("number", "9", "Ans: 9", RIGHT),
    ("number", "9", "Solution: x = 9", RIGHT),
    ("number", "9", "\\[ \\boxed{9} \\]", RIGHT),
    ("number", "9", "The correct answer is **9**.", RIGHT),
    ("number", "9", "Step 1: Add 4 and 5.\nStep 2: 4 + 5 = 9\n\nSo there are **9** apples.", RIGHT),
    ("number", "9", "Answer:\nStep 1: 2 + 3 = 5 apples\nStep 2: 5 + 4 = 9 apples", RIGHT),
    ("number", "5", "Answer:\nStep 1: 2 + 3 = 5 apples\nStep 2: 5 + 4 = 9 apples", WRONG),
    ("number", "9", "If the answer is 8, then we are wrong. The answer is 9.", RIGHT),
    ("number", "9", "The answer is 9 (not 8).", RIGHT),
    ("number", "9", "x = 9, y = 4", FAIR),
    ("number", "4", "x = 9, y = 4", FAIR),
    ("number", "18000", "The answer is $18, 000.", RIGHT),
    ("number", "150", "The answer (arabic numerals) is 150%", RIGHT),
    ("number", "9", "The answer is not 8, it's 9.", RIGHT),
    ("number", "8", "The answer is not 8, it's 9.", WRONG),
    ("number", "9", "I think it's 9, but I'm not sure.", RIGHT),
    ("number", "9", "It's either 8 or 9.", OPEN),
    ("number", "16", "4^2 = 16", RIGHT),
    ("number", "0.5", "50%", RIGHT),
    ("number", "9", "9️⃣", FAIR),
    ("number", "1000", "1 000", RIGHT),
    ("number", "9", "The answer is: \n\nThere are 9 apples in total.", RIGHT),
    ("number", "72", "Natalia sold 48/2 = 24 clips in May. Altogether she sold 48 + 24 = 72 clips.", RIGHT),
    ("number", "72", "Answer: Natalia sold 48/2 = 24 clips in May.\nIn total she sold 72 clips.", RIGHT),
    ("number", "24", "Answer: Natalia sold 48/2 = 24 clips in May.\nIn total she sold 72 clips.", WRONG),
    ("number", "10", "The tip is 20% of $50 = $10.", RIGHT),
    ("number", "8", "Spiders have eight legs.", RIGHT),
    ("number", "8", "A spider has 8 legs. The legs are arranged in 4 pairs.", FAIR),
    ("number", "7", "There are seven days in a week.", RIGHT),
    ("text", "Paris", "The capital of France is Paris, not London.", RIGHT),
    ("text", "London", "The capital of France is Paris, not London.", OPEN),
    ("text", "Paris", "Paris, which is larger than Lyon, is the capital.", RIGHT),
    ("text", "Lyon", "Paris, which is larger than Lyon, is the capital.", OPEN),
    ("text", "Lyon", "Paris is larger than Lyon.", OPEN),
    ("text", "Paris", "Paris is larger than Lyon.", RIGHT),
    ("text", "Berlin", "The currency of the country whose capital is Berlin is the Euro.", OPEN),
    ("text", "Euro", "The currency of the country whose capital is Berlin is the Euro.", RIGHT),
    ("text", "Germany", "The capital of the country whose capital is Berlin is Germany", RIGHT),
    ("text", "Canberra", "The capital of Australia is Sydney. Canberra is its second largest city.", OPEN),
    ("text", "Paris", "It could be Paris or Lyon.", OPEN),
    ("text", "Paris", "I'm not sure, but I think it's Paris.", RIGHT),
    ("text", "Paris", "The answer is London. No wait, it's Paris.", RIGHT),
    ("text", "London", "The answer is London. No wait, it's Paris.", OPEN),
    ("text", "Paris", "Not Lyon. Paris.", RIGHT),
    ("text", "Paris", "The answer is definitely not Paris.", OPEN),
    ("text", "Paris", "Many people believe it is Paris, but it is Lyon.", OPEN),
    ("text", "Lyon", "Many people believe it is Paris, but it is Lyon.", RIGHT),
    ("text", "Paris", "While Paris is the largest city, Lyon is the answer.", OPEN),
    ("text", "Lyon", "While Paris is the largest city, Lyon is the answer.", RIGHT),
    ("text", "Erika Cheung", "Tyler Shultz, a colleague of Erika Cheung", OPEN),
    ("text", "Drew Carey", "Bob Barker, who was succeeded by Drew Carey", OPEN),
    ("text", "Bob Barker", "Bob Barker, who was succeeded by Drew Carey", RIGHT),
    ("text", "Augustus", "Tiberius, the successor of Augustus", OPEN),
    ("text", "Tiberius", "Tiberius, the successor of Augustus", RIGHT),
    ("text", "Tiberius", "Tiberius succeeded Augustus.", RIGHT),
    ("text", "Augustus", "Tiberius succeeded Augustus.", OPEN),
    ("text", "Paris", "Unlike Paris, Lyon lies on the Rhône.", OPEN),
    ("text", "Paris", "Lyon (not Paris)", OPEN),
    ("text", "Paris", "The city is known as Paris.", RIGHT),
    ("text", "Paris", "La capitale de la France est Paris.", RIGHT),
    ("text", "Paris", "Die Hauptstadt von Frankreich ist Paris.", RIGHT),
    ("text", "巴黎", "法国的首都是巴黎。", RIGHT),
    ("text", "巴黎", "答案是巴黎。", RIGHT),
    ("text", "Paris", "Sure! The capital of France is **Paris**.", RIGHT),
    ("text", "Paris", "$\\text{Paris}$", RIGHT),
    ("text", "Paris", "### Answer\n\n**Paris**", RIGHT),
    ("text", "Paris", "Option 1 is London, option 2 is Paris.", FAIR),
    ("text", "Paris", "Final answer: the capital.\n", WRONG),
    ("text", "John F. Kennedy", "The president was John F. Kennedy. He was shot in 1963.", RIGHT),
    ("text", "Washington, D.C.", "The capital is Washington, D.C.", RIGHT),
    ("text", "au", "The symbol for gold is Au.", RIGHT),
    ("text", "Au", "The symbol for gold is Au, from the Latin aurum.", RIGHT),
    ("text", "Ag", "The symbol for gold is Au, and that for silver is Ag.", FAIR),
    ("text", "calf", "A baby cow is called a calf.", RIGHT),
    ("text", "dog", "A puppy is a young dog.", RIGHT),
    ("text", "ysnr", 'The last letters are y, s, n, r. So the answer is "ysnr".', RIGHT),
    ("text", "ysnr", "The answer is y s n r.", RIGHT),
    ("text", "ysnr", "The answer is ysrn.", WRONG),
    ("boolean", "yes", "Therefore, the answer (Yes or No) is Yes. Therefore, the answer (Yes or No) is Yes.", RIGHT),
    (
        "boolean",
        "no",
        "the answer is probably yes, since he is known.\nTherefore, the answer (Yes or No) is most likely No.",
        RIGHT,
    ),
    ("boolean", "no", "No, it is not possible.", RIGHT),
    ("boolean", "no", "It is not true.", RIGHT),
    ("boolean", "yes", "Yes, because there is no evidence against it.", RIGHT),
    ("boolean", "yes", "It is indeed the case that yes, they can.", RIGHT),
    ("boolean", "no", "Yes... wait, no.", RIGHT),
    ("boolean", "yes", "Oui, bien sûr.", RIGHT),
    ("boolean", "no", "Nein, das stimmt nicht.", RIGHT),
    ("boolean", "yes", "是的。", RIGHT),
    ("boolean", "no", "不是。", RIGHT),
    ("boolean", "yes", "**Yes**, spiders have 8 legs.", RIGHT),
    ("boolean", "yes", "True.", RIGHT),
    ("boolean", "yes", "It is neither yes nor no.", OPEN),
    ("boolean", "yes", "That depends.", OPEN),
    ("boolean", "no", "Spiders are arachnids. So no, they are not insects.", RIGHT),
    ("boolean", "no", "The answer is no.", RIGHT),
    ("boolean", "yes", "The statement is correct.", RIGHT),
    ("boolean", "yes", "Answer: Yes, people with celiac can eat camel meat.", RIGHT),
    ("choice", "B", "B, melted.", RIGHT),
    ("choice", "B", "(B)", RIGHT),
    ("choice", "B", "b)", RIGHT),
    ("choice", "B", "(b) melted", RIGHT),
    ("choice", "A", "A", RIGHT),
    ("choice", "A", "A.", RIGHT),
    ("choice", "A", "A, cloud.", RIGHT),
    ("choice", "A", "The answer is A.", RIGHT),
    ("choice", "B", "The answer is (B) melted.", RIGHT),
    ("choice", "B", "Therefore, among A through E, the answer is B.", RIGHT),
    ("choice", "B", "**B**", RIGHT),
    ("choice", "B", "\\boxed{B}", RIGHT),
    ("choice", "B", "$\\boxed{\\text{B}}$", RIGHT),
    ("choice", "B", "The correct option is B.", RIGHT),
    ("choice", "B", "Option B", RIGHT),
    ("choice", "B", "option (B)", RIGHT),
    ("choice", "B", "B or C", OPEN),
    ("choice", "B", "A and B", OPEN),
    ("choice", "B", "(A) and (B)", OPEN),
    ("choice", "B", "Both A and B", OPEN),
    ("choice", "B", "not A but B", RIGHT),
    ("choice", "A", "not A but B", WRONG),
    ("choice", "B", "All but B.", OPEN),
    ("choice", "B", "Anything but (B).", OPEN),
    ("choice", "B", "Each of them is possible, but B is best.", RIGHT),
    ("choice", "B", "B: melted", RIGHT),
    ("choice", "B", "most likely B, bloom.", RIGHT),
    ("choice", "B", "It can't be A. So it is B.", RIGHT),
    ("choice", "A", "A dog is an animal.", OPEN),
    ("choice", "B", "A dog is an animal. The answer is B.", RIGHT),
    ("choice", "B", "The answer is A... no, sorry, B.", RIGHT),
    ("choice", "A", "The answer is A... no, sorry, B.", OPEN),
    ("choice", "C", "Among the options, C is the best.", RIGHT),
    ("choice", "D", "I would choose D.", RIGHT),
    ("choice", "I", "I", RIGHT),
    ("choice", "B", "I think B.", RIGHT),
    ("choice", "B", "Let's look at each option. (A) is wrong. (C) is wrong. Therefore, (B).", RIGHT),
    ("choice", "B", "La réponse est B.", RIGHT),
    ("choice", "B", "Die richtige Antwort ist B.", RIGHT),
    ("choice", "B", "答案是B。", RIGHT),
    ("choice", "B", "答案：B", RIGHT),
    ("choice", "B", "The answer is B) melted", RIGHT),
    ("choice", "B", "Answer: B", RIGHT),
    ("choice", "B", "B\n\nExplanation: A is wrong because...", RIGHT),
]


@pytest.mark.parametrize(("answer_type", "gold", "response", "expected"), ROWS)
def test_an_answer_is_graded_as_a_careful_reader_would(
    answer_type: str, gold: str, response: str, expected: set[str]
) -> None:
    result = grade(response, "stop", gold, answer_type)
    assert result.outcome in expected, result


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("The Australian dollar.", RIGHT),
        ("They pay in Dollars.", RIGHT),
        ("It is Australia's Dollar.", RIGHT),
        ("It is the Canadian dollar.", NONE),
        ("Canadian dollar", NONE),
        ("The euro.", WRONG),
    ],
)
def test_a_short_name_is_not_the_end_of_another_name_where_its_own_longer_form_is_known(
    response: str, expected: set[str]
) -> None:
    result = grade(response, "stop", "dollar", "text", aliases=("Australian dollar",))
    assert result.outcome in expected, result


@pytest.mark.parametrize(
    "said", ["It is not the very large old city of Lyon.", "It was never the capital city of Lyon."]
)
def test_a_denial_reaches_the_name_at_the_end_of_its_sentence(said: str) -> None:
    assert grade(said, "stop", "Lyon", "text").outcome == "incorrect"


def test_each_accepted_number_counts_as_the_right_one() -> None:
    accepted = ("a dozen", "13")
    assert [grade(said, "stop", "12", "number", aliases=accepted).outcome for said in ("12", "13", "14")] == [
        "correct", "correct", "incorrect",
    ]  # fmt: skip


@pytest.mark.parametrize(("gold", "expected"), [("Rome", RIGHT), ("Lyon", WRONG), ("Paris", WRONG)])
def test_the_last_of_several_corrections_counts(gold: str, expected: set[str]) -> None:
    said = "The capital is Paris. No, wait, it is Lyon. No, sorry, it is Rome."
    assert grade(said, "stop", gold, "text").outcome in expected


def test_a_completion_that_asks_again_and_then_names_any_accepted_answer_is_undecided() -> None:
    again = "Lyon\n\nQuestion: What is the capital of France?\nAnswer: {}"
    found = [grade(again.format(a), "stop", "Paris", "text", aliases=("Lutetia",)) for a in ("Lutetia", "Nice")]
    assert [(f.outcome, f.reason) for f in found] == [("invalid", "answered later"), ("incorrect", None)]
