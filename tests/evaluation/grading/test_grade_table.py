"""Hand-checked answers: what a careful reader would say, one row each."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE, ABSTAIN = "correct", "incorrect", "invalid", "abstained"
CUE = "So the final answer is:"

# (gold, response, expected) with a plain prompt
NUMBERS = [
    ("63", "63", RIGHT),
    ("63", "63.", RIGHT),
    ("63", "7 times 9 is 63", RIGHT),
    ("63", "7 times 9 is 56", WRONG),
    ("9", "7 times 9 is 63", WRONG),
    ("63", "63 wheels, which is 7 times 9", RIGHT),
    ("9", "17 minus 8 is 9", RIGHT),
    ("3", "12 divided by 4 is 3", RIGHT),
    ("12", "3 x 4 = 12", RIGHT),
    ("12", "3*4=12", RIGHT),
    ("12", "3 + 4 + 5 = 12 apples", RIGHT),
    ("4", "3 x 4 = 12", WRONG),
    ("12", "There are 3 boxes with 4 apples each, so 12 apples.", RIGHT),
    ("12", "12 apples in 3 boxes", NONE),
    ("3", "12 apples in 3 boxes", RIGHT),
    ("15", "12 apples in 3 boxes", WRONG),
    ("12", "First there are 12 apples. In the end there are 3 boxes.", WRONG),
    ("12", "12 apples in 3 boxes = 36", WRONG),
    ("12", "The answer is 12 apples in 3 boxes.", RIGHT),
    ("-5", "-5", RIGHT),
    ("5", "-5", WRONG),
    ("-5", "5", WRONG),
    ("-5", "\u22125", RIGHT),
    ("-5.5", "It is -5.5", RIGHT),
    ("-4", "minus four", RIGHT),
    ("-4", "negative four", RIGHT),
    ("+7", "7", RIGHT),
    ("1250", "1,250", RIGHT),
    ("1,250", "1250", RIGHT),
    ("1250000", "1,250,000", RIGHT),
    ("1250", "1\u202f250", RIGHT),
    ("1250", "1'250", RIGHT),
    ("20000", "20 000", RIGHT),
    ("1.25", "1,250", WRONG),
    ("3.5", "3.50", RIGHT),
    ("3.5", "3,5", RIGHT),
    ("0.5", ".5", RIGHT),
    ("7", "7.", RIGHT),
    ("7", "7.0", RIGHT),
    ("7", "7.1", WRONG),
    ("0.3333333333", "1/3", RIGHT),
    ("0.33", "1/3", WRONG),
    ("25%", "25%", RIGHT),
    ("25%", "25 percent", RIGHT),
    ("25%", "25 per cent", RIGHT),
    ("25%", "0.25", RIGHT),
    ("25%", "25", RIGHT),
    ("25", "25%", RIGHT),
    ("0.25", "25%", RIGHT),
    ("25%", "2.5%", WRONG),
    ("25%", "twenty-five percent", RIGHT),
    ("3/4", "0.75", RIGHT),
    ("0.75", "3/4", RIGHT),
    ("3/4", "6/8", RIGHT),
    ("3/4", "4/3", WRONG),
    ("3.5", "3 1/2", RIGHT),
    ("3.5", "3\u00bd", RIGHT),
    ("0.5", "\u00bd", RIGHT),
    ("-0.75", "-3/4", RIGHT),
    ("5", "$5", RIGHT),
    ("$5", "5 dollars", RIGHT),
    ("$5", "$5.00", RIGHT),
    ("$5", "\u20ac5", WRONG),
    ("$5", "500 cents", RIGHT),
    ("$1,250.50", "1250.50", RIGHT),
    ("-5", "-$5", RIGHT),
    ("-5", "$-5", RIGHT),
    ("2 kg", "2 kg", RIGHT),
    ("2 kg", "2 g", WRONG),
    ("2 kg", "2000 g", RIGHT),
    ("2 kg", "2", RIGHT),
    ("2 kg", "two kilograms", RIGHT),
    ("2 kg", "2 m", WRONG),
    ("1.63 cm^2", "1.63 cm^2", RIGHT),
    ("1.63 cm^2", "1.63 cm\u00b2", RIGHT),
    ("1.63", "1.63 cm^2", RIGHT),
    ("2", "1.63 cm^2", WRONG),
    ("2.5 hours", "2 hours 30 minutes", RIGHT),
    ("150 minutes", "2 hours and 30 minutes", RIGHT),
    ("5 apples", "5 pears", RIGHT),  # nouns are not units: the value decides
    ("1000", "1e3", RIGHT),
    ("1500", "1.5 x 10^3", RIGHT),
    ("1500", "1.5 \u00d7 10\u00b3", RIGHT),
    ("0.002", "2e-3", RIGHT),
    ("0.002", "2 \u00d7 10^-3", RIGHT),
    ("100000", "10^5", RIGHT),
    ("1500000", "1.5 million", RIGHT),
    ("2000", "2k", RIGHT),
    ("3000000000", "3 billion", RIGHT),
    ("0.75", "$\\frac{3}{4}$", RIGHT),
    ("0.75", "\\dfrac{3}{4}", RIGHT),
    ("3.5", "3\\frac{1}{2}", RIGHT),
    ("12", "$12$", RIGHT),
    ("12", "\\boxed{12}", RIGHT),
    ("12", "We get 3 and 4, so \\boxed{12} is it.", RIGHT),
    ("1500", "$1.5 \\times 10^{3}$", RIGHT),
    ("90", "90^\\circ", RIGHT),
    ("25%", "25\\%", RIGHT),
    ("1250", "1{,}250", RIGHT),
    ("42", "forty-two", RIGHT),
    ("42", "Forty two.", RIGHT),
    ("105", "one hundred and five", RIGHT),
    ("105", "a hundred and five", RIGHT),
    ("2300", "two thousand three hundred", RIGHT),
    ("12", "a dozen", RIGHT),
    ("24", "two dozen", RIGHT),
    ("3.5", "three and a half", RIGHT),
    ("0.5", "half", RIGHT),
    ("0", "zero", RIGHT),
    ("3.14", "three point one four", RIGHT),
    ("12", "twelve (12)", RIGHT),
    ("13", "twelve", WRONG),
    ("13", "It is not 12 but 13.", RIGHT),
    ("12", "It is not 12 but 13.", WRONG),
    ("12", "It isn't 12.", NONE),
    ("12", "12 or 13", WRONG),
    ("12", "either 12 or 13", WRONG),
    ("12", "The answer is 12. I used 3 and 4.", RIGHT),
    ("12", "The answer is 11. No, wait. The answer is 12.", RIGHT),
    ("11", "The answer is 11. No, wait. The answer is 12.", WRONG),
    ("12", "#### 12", RIGHT),
    ("12", "x = 12", RIGHT),
    ("12", "Answer: 12\n\nQuestion: what is 2 + 2?\nAnswer: 4", RIGHT),
    ("12", "**12**", RIGHT),
    ("12", '{"explanation": "3 times 4", "answer": 12}', RIGHT),
    ("0", '{"explanation": "none left", "answer": 0}', RIGHT),
    ("3", "3rd", RIGHT),
    ("0", "", NONE),
    ("0", "I have thought about this.", NONE),
    ("0", "none", RIGHT),
    ("5", "Q5", NONE),
    ("12", "3 x 4", NONE),
    ("12", "<think>maybe 11</think>12", RIGHT),
    ("11", "maybe 11</think>12", WRONG),
    ("12", "<think>it could be 12", NONE),
    ("12", "\uff11\uff12", RIGHT),
    ("\\frac{\\sqrt{3}}{2}", "$\\frac{\\sqrt{3}}{2}$", RIGHT),
    ("\\frac{\\sqrt{3}}{2}", "\\boxed{\\frac{1}{2}\\sqrt{3}}", RIGHT),
    ("\\frac{\\sqrt{3}}{2}", "\\boxed{\\frac{\\sqrt{2}}{3}}", WRONG),
    ("x^2+1", "$1+x^2$", RIGHT),
    ("4", "$\\sqrt{16}$", RIGHT),
]

DATES = [
    ("1876", "1876", RIGHT),
    ("1876", "1876 AD", RIGHT),
    ("1876", "AD 1876", RIGHT),
    ("1876", "the year 1876", RIGHT),
    ("1876", "It was in 1876.", RIGHT),
    ("1876", "March 10, 1876", RIGHT),
    ("1876", "10 March 1876", RIGHT),
    ("1876", "1876-03-10", RIGHT),
    ("1876", "1877", WRONG),
    ("1876", "1870s", WRONG),
    ("1608", "early 17th century", WRONG),
    ("1876", "not 1875 but 1876", RIGHT),
    ("1876", "1875 or 1876", WRONG),
    ("1914", "1914-1918", WRONG),
    ("1876", "circa 1876", RIGHT),
    ("1876", "1876 BC", WRONG),
    ("200 BC", "200 BCE", RIGHT),
    ("200 BCE", "200 B.C.", RIGHT),
    ("200 BC", "200 B.C.E.", RIGHT),
    ("200 BC", "200 AD", WRONG),
    ("200 BC", "200", WRONG),
    ("44 BC", "15 March 44 BC", RIGHT),
    ("March 1876", "1876", WRONG),
    ("March 1876", "10 March 1876", RIGHT),
    ("March 1876", "April 1876", WRONG),
    ("10 March 1876", "March 10th, 1876", RIGHT),
    ("10 March 1876", "03/10/1876", RIGHT),
    ("10 March 1876", "11 March 1876", WRONG),
    ("79", "79 AD", RIGHT),
    ("1876", "In 1876, 3 men met.", RIGHT),
    ("1876", "Some time ago.", NONE),
    ("1876", "", NONE),
]
TEXTS = [
    ("Selor treaty", "Selor treaty", RIGHT),
    ("Selor treaty", "the Selor treaty.", RIGHT),
    ("Selor treaty", "The answer is the Selor Treaty.", RIGHT),
    ("Selor treaty", "It was the Selor treaty that came first", RIGHT),
    ("Selor treaty", "Selor war", WRONG),
    ("Selor treaty", "not the Selor treaty", WRONG),
    ("Selor treaty", "Selor treaty or Bandar war", WRONG),
    ("Selor treaty", "It is either the Bandar war or the Selor treaty", WRONG),
    ("Albert Einstein", "albert einstein", RIGHT),
    ("Albert Einstein", "Einstein", NONE),
    ("S\u00e3o Paulo", "Sao Paulo", RIGHT),
    ("O'Brien", "O\u2019Brien", RIGHT),
    ("the hammer", "a hammer", RIGHT),
    ("red", "infrared", WRONG),
    ("The Who", "the who", RIGHT),
    ("B", "\\boxed{\\text{B}}", RIGHT),
    ("Paris", "", NONE),
    ("Paris", "...", NONE),
    ("Paris", "**Paris**", RIGHT),
]
LISTS = [
    ("drill and lamp", "drill and lamp", RIGHT),
    ("drill and lamp", "lamp and drill", RIGHT),
    ("drill and lamp", "the lamp, the drill", RIGHT),
    ("drill and lamp", "lamp", WRONG),
    ("drill and lamp", "lamp, drill and rope", WRONG),
    ("drill and lamp", "- lamp\n- drill", RIGHT),
    ("drill and lamp", "1. lamp\n2. drill", RIGHT),
    ("drill and lamp", "You buy: lamp; drill.", RIGHT),
    ("drill and lamp", '["lamp", "drill"]', RIGHT),
    ("drill and lamp", "drill and drill", WRONG),
    ("drill, drill", "drill, drill", RIGHT),
    ("2, 3, 5", "5, 3 and 2", RIGHT),
    ("1,250; 3", "3; 1250", RIGHT),
    ("a drill, a lamp and a rope", "rope, lamp, and drill", RIGHT),
    ("drill and lamp", "", NONE),
]
ORDERED = [
    ("A war, B war, C war", "A war, B war, C war", RIGHT),
    ("A war, B war, C war", "A war, B war, and C war.", RIGHT),
    ("A war, B war, C war", "A war -> B war -> C war", RIGHT),
    ("A war, B war, C war", "1. A war\n2. B war\n3. C war", RIGHT),
    ("A war, B war, C war", "The order is: A war, B war, C war", RIGHT),
    ("A war, B war, C war", "B war, A war, C war", WRONG),
    ("A war, B war, C war", "A war, B war", WRONG),
    ("A war, B war, C war", "A war, then B war, finally C war", RIGHT),
]
BOOLEANS = [
    ("yes", "Yes.", RIGHT),
    ("yes", "yes, it is", RIGHT),
    ("no", "No, it is not correct", RIGHT),
    ("yes", "no", WRONG),
    ("true", "True", RIGHT),
    ("no", "false", RIGHT),
    ("yes", "The answer is yes", RIGHT),
    ("yes", "It depends.", NONE),
    ("yes", "yes and no", NONE),
]
ABSTENTIONS = [
    ("1876", "INSUFFICIENT_EVIDENCE", ABSTAIN),
    ("1876", "Insufficient evidence.", ABSTAIN),
    ("1876", "I don't know.", ABSTAIN),
    ("1876", "I do not know the year of that event.", ABSTAIN),
    ("1876", "Unknown", ABSTAIN),
    ("1876", "I am not sure, but I think 1876", RIGHT),
    ("1876", "It cannot be determined.", ABSTAIN),
    ("1876", "There is not enough information to say.", ABSTAIN),
    ("1876", "N/A", ABSTAIN),
    ("1876", "I'm sorry, but I can't help with that.", ABSTAIN),
]
ROWS = [
    *(("number", *row) for row in NUMBERS),
    *(("date", *row) for row in DATES),
    *(("text", *row) for row in TEXTS),
    *(("list", *row) for row in LISTS),
    *(("ordered-list", *row) for row in ORDERED),
    *(("boolean", *row) for row in BOOLEANS),
    *(("date", *row) for row in ABSTENTIONS),
]

# (format, finish reason, answer type, gold, response, outcome, reason)
FORMATTED = [
    ("xml", "stop", "number", "63", "<reasoning>7 times 9</reasoning><answer>63</answer>", RIGHT, None),
    ("xml", "stop", "number", "63", "<reasoning>7 times 9</reasoning><answer>63", RIGHT, None),
    ("xml", "stop", "number", "63", "<answer>62</answer> no: <answer>63</answer>", RIGHT, None),
    ("xml", "stop", "number", "63", "63", NONE, "no-answer-tag"),
    ("xml", "length", "number", "63", "<reasoning>7 times", NONE, "truncated"),
    ("xml", "length", "number", "63", "<reasoning>r</reasoning><answer>6", NONE, "truncated"),
    ("xml", "length", "number", "63", "<answer>63</answer> and then on and on", RIGHT, None),
    ("xml", "stop", "number", "63", "<answer></answer>", NONE, "empty"),
    ("xml", "stop", "number", "63", "<answer>INSUFFICIENT_EVIDENCE</answer>", ABSTAIN, None),
    ("xml", "stop", "number", "63", "<answer>many</answer>", NONE, "no-answer"),
    ("xml", "stop", "number", "4", "<answer>4 apples in 2 bags</answer>", RIGHT, None),
    ("xml-answer", "stop", "list", "a, b", "<answer>b, a</answer>", RIGHT, None),
    ("cot", "stop", "number", "12", f"3 x 4. {CUE} 12", RIGHT, None),
    ("cot", "stop", "number", "12", "3 x 4. so the FINAL answer is 12", RIGHT, None),
    ("cot", "stop", "number", "12", f"{CUE} 11\n\nOops. {CUE} 12", RIGHT, None),
    ("cot", "stop", "number", "12", f"{CUE} 12 (from 3 x 4)", RIGHT, None),
    ("cot", "stop", "number", "12", f"{CUE} 12\n\nQuestion: and 5 + 5? {CUE} 10", RIGHT, None),
    ("cot", "length", "number", "12", f"{CUE} 12\n\nQuestion: and 5 + 5? Ans", RIGHT, None),
    ("cot", "stop", "number", "12", "It must be 12", NONE, "no-cue"),
    ("cot", "length", "number", "12", "First, 3 x 4", NONE, "truncated"),
    ("cot", "length", "number", "125", f"{CUE} 12", NONE, "truncated"),
    ("cot", "stop", "number", "12", f"{CUE}", NONE, "empty"),
    ("cot", "stop", "number", "12", f"{CUE} $\\boxed{{12}}$.", RIGHT, None),
    ("cot", "stop", "text", "hammer", f"Think. {CUE} a hammer.", RIGHT, None),
    ("cot", "stop", "number", "-5", f"{CUE} -5", RIGHT, None),
    ("self-ask", "stop", "number", "9", f"Follow up: a? Intermediate answer: 4. {CUE} 9", RIGHT, None),
    ("knowledge", "stop", "date", "1876", "Let me think.\n1876", RIGHT, None),
    ("knowledge", "stop", "date", "1876", "1876\nor so they say: 1877", WRONG, None),
    ("plain", "length", "number", "63", "7 times 9 is 6", NONE, "truncated"),
    ("plain", "error", "number", "63", "63", NONE, "error"),
    ("plain", "length", "number", "63", "<think>" + "long " * 20, NONE, "truncated"),
    ("pair-q1", "stop", "number", "4", f"A1: 1 plus 3 is 4. X is 4. A2: 4 times 2 is 8. {CUE} 8", RIGHT, None),
    ("pair-q1", "stop", "number", "4", "The Q1 answer is 4. Therefore X=4. The final answer is 8.", RIGHT, None),
    ("pair-q1", "stop", "number", "8", f"A1: 4. X is 4. A2: 8. {CUE} 8", WRONG, None),
    ("pair-q1", "stop", "number", "4", "8", NONE, "no-cue"),
    ("cot", "stop", "number", "8", f"A1: 1 plus 3 is 4. X is 4. A2: 4 times 2 is 8. {CUE} 8", RIGHT, None),
]

# (compat, format, answer type, gold, response, outcome): the published rules, defects included
COMPAT = [
    ("agentcoma", "cot", "number", "5", "-5", RIGHT),
    ("agentcoma", "cot", "number", "-5", "-5", WRONG),
    ("agentcoma", "cot", "number", "-5.5", "-5.5", RIGHT),
    ("agentcoma", "cot", "number", "4", "12 (from 3 x 4)", RIGHT),
    ("agentcoma", "cot", "number", "2", "1.63 cm^2", RIGHT),
    ("agentcoma", "cot", "number", "3", "1e3", RIGHT),
    ("agentcoma", "cot", "number", "1250", "1,250", RIGHT),
    ("agentcoma", "cot", "number", "7", "7.", RIGHT),
    ("agentcoma", "cot", "number", "0", "no number at all", RIGHT),
    ("agentcoma", "cot", "number", "3", "it is 3\nQuestion: 4?", RIGHT),
    ("agentcoma", "cot", "text", "hammer", "hammer", WRONG),
    ("agentcoma", "cot", "text", "hammer", f"{CUE} hammer", RIGHT),
    ("stad", "plain", "number", "12", '{"answer": 11} then {"answer": 12}', RIGHT),
    ("stad", "plain", "number", "12", "It is 12", RIGHT),
    ("stad", "plain", "number", "12", "", WRONG),
    ("collapse", "xml", "date", "1876", "<answer>1877</answer>", RIGHT),
    ("collapse", "xml", "date", "1876", "<answer>1878</answer>", WRONG),
    ("collapse", "xml", "date", "1 BC", "<answer>1 AD</answer>", RIGHT),
    ("collapse", "xml", "date", "1876", "1876", WRONG),
    ("collapse", "xml", "text", "Albert Einstein", "<answer>Einstein</answer>", RIGHT),
    ("collapse", "xml", "date", "1876", "<answer>INSUFFICIENT_EVIDENCE</answer>", ABSTAIN),
]


@pytest.mark.parametrize(("answer_type", "gold", "response", "expected"), ROWS)
def test_plain_answers_are_graded_as_a_reader_would(answer_type: str, gold: str, response: str, expected: str) -> None:
    result = grade(response, "stop", gold, answer_type)
    assert result.outcome == expected, result


@pytest.mark.parametrize(("format", "finish", "answer_type", "gold", "response", "expected", "reason"), FORMATTED)
def test_formatted_answers_are_found_or_are_invalid_with_the_reason(
    format: str, finish: str, answer_type: str, gold: str, response: str, expected: str, reason: str | None
) -> None:
    result = grade(response, finish, gold, answer_type, format=format)
    assert (result.outcome, result.reason) == (expected, reason), result


@pytest.mark.parametrize(("compat", "format", "answer_type", "gold", "response", "expected"), COMPAT)
def test_compat_modes_reproduce_the_published_rules(
    compat: str, format: str, answer_type: str, gold: str, response: str, expected: str
) -> None:
    result = grade(response, "stop", gold, answer_type, format=format, compat=compat)
    assert result.outcome == expected, result


def test_the_table_has_at_least_150_rows_without_duplicates() -> None:
    assert len({*ROWS}) == len(ROWS) >= 150


@pytest.mark.parametrize(
    ("answer_type", "text"),
    [
        ("number", "x 12 " * 20000),
        ("number", "1,2" * 30000),
        ("number", "1" * 100000),
        ("number", "one " * 25000),
        ("number", "not 5, " * 14000),
        ("number", "{" * 50000 + "}" * 50000),
        ("number", "\\boxed{" * 14000),
        ("number", "3 + " * 25000),
        ("number", "$" * 100000),
        ("date", "1876, " * 16000),
        ("date", "\n" * 100000),
        ("text", "Es tut mir leid \u2014 \u2028" * 6000),
        ("list", "a, " * 33000),
        ("ordered-list", " " * 100000 + "a -> b"),
        ("boolean", "yes no " * 14000),
    ],
)
def test_long_answers_are_graded_in_linear_time(answer_type: str, text: str) -> None:
    import time

    gold = {"number": "12", "date": "1876", "boolean": "yes"}.get(answer_type, "a, b")
    start = time.process_time()
    for format in ("plain", "cot", "xml"):
        grade(text, "stop", gold, answer_type, format=format)
    grade(f"So the final answer is: {text}", "stop", gold, answer_type, format="cot")
    assert time.process_time() - start < 10, "a few hundred milliseconds here"
