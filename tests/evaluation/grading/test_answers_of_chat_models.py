"""How chat models write answers: lists in sentences, formulas below the cue, other languages, refusals, many notations.

Judged by hand before the grader was run on them.
"""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE, ABSTAIN = "correct", "incorrect", "invalid", "abstained"
CUE = "So the final answer is: "

LISTS = [
    ("8 and 2", "A spider has 8 legs and a hen has 2 legs.", RIGHT),
    ("8 and 2", "A spider has 8 legs, while a hen has 2.", RIGHT),
    ("8 and 2", "8 legs and 2 legs", RIGHT),
    ("8 and 2", "Spider: 8, hen: 2", RIGHT),
    ("8 and 2", "eight and two", RIGHT),
    ("8 and 2", "A hen has 2 legs and a spider has 8 legs.", WRONG),
    ("8 and 2", "A spider has 8 legs and a hen has 4 legs.", WRONG),
    ("8 and 2", "A spider has 8 or 6 legs and a hen has 2 legs.", WRONG),
    ("8 and 8", "8 legs and 8 legs", RIGHT),
    ("violin and hammer", "The musical instrument is the violin and the tool is the hammer.", RIGHT),
    ("violin and hammer", "The musical instrument is the violin and the tool is not the hammer.", WRONG),
    ("violin and hammer", "violin (musical instrument), hammer (tool)", RIGHT),
    ("violin and hammer", "Musical instrument: violin; tool: hammer", RIGHT),
    ("violin and hammer", "violin / hammer", RIGHT),
    ("violin and hammer", "\n- Musical instrument: violin\n- Tool: hammer", RIGHT),
    ("violin and hammer", "\n1. **Hammer**\n2. **Violin**", WRONG),
    ("violin and hammer", "\n- Violin\n- Hammer\n- Bread", WRONG),
    ("violin and hammer", "the hammer and the violin", WRONG),
    ("violin and hammer", "violin or hammer, and hammer", WRONG),
    ("New York and York", "New York and York", RIGHT),
    ("York and New York", "New York and York", WRONG),
    ("Apollo 11 and Apollo 12", "Apollo 11 and Gemini 12", WRONG),
]
NUMBERS = [
    ("18", "\n$$\n18\n$$", RIGHT),
    ("18", "\n\\[\n18\n\\]", RIGHT),
    ("18", "\n```\n18\n```", RIGHT),
    ("12000", "12K", RIGHT),
    ("2500000", "$2.5M", RIGHT),
    ("300", "300 K", RIGHT),
    ("16", "16KB", RIGHT),
    ("1000000", "1.000.000", RIGHT),
    ("1234.5", "1.234,5", RIGHT),
    ("1234.5", "1 234,5", RIGHT),
    ("1.234", "1.234", RIGHT),
    ("1234.567", "1,234.567", RIGHT),
    ("100000", "1,00,000", RIGHT),
    ("37.5 °C", "37.5 degrees Celsius", RIGHT),
    ("37.5 °C", "37.5 degrees", RIGHT),
    ("37.5 °C", "37.5", RIGHT),
    ("37.5 °C", "37.5 °F", WRONG),
    ("90 degrees", "90°", RIGHT),
    ("4", "4 and 5", WRONG),
    ("4", "4, 5", WRONG),
    ("4", "between 4 and 5", WRONG),
    ("4", "4, which is 2 + 2", RIGHT),
    ("12", "12, 12", RIGHT),
    ("66 inches", "5 feet 6 inches", RIGHT),
    ("3", "the 3 hens give 18 eggs", RIGHT),
    ("18", "the 3 hens give 18 eggs", NONE),
    ("18", "in 2 weeks, 18 eggs", NONE),
    ("9", "8 because 10 minus 1 is 9", WRONG),
    ("9", "the sum is 8 (I first thought 9)", WRONG),
]
DATES = [
    ("1969-07-20", "20/07/1969", RIGHT),
    ("1969-07-20", "20.07.1969", RIGHT),
    ("1969-07-20", "1969/07/20", RIGHT),
    ("1969-07-20", "20-Jul-1969", RIGHT),
    ("1969-07-20", "20. Juli 1969", RIGHT),
    ("1969-07-20", "20 juillet 1969", RIGHT),
    ("1969-07-20", "20 de julio de 1969", RIGHT),
    ("1969-07-20", "21. Juli 1969", WRONG),
    ("1969-03-08", "8 mars 1969", RIGHT),
    ("2020", "Mars 2020", RIGHT),
]

ROLLS = "A baker makes 12 trays with 8 rolls each and sells 54 rolls. How many rolls are left?"
LAPTOP = "How much does a laptop of $1,500 cost after a 15% discount?"
COLD = "What is the temperature in degrees Celsius if it was 4 °C and fell by 11 degrees?"
ROPE = "A rope is 3 m long. You cut off 3/4 of a metre. How many metres are left?"
TRIP = "How long does the trip take in minutes if it starts at 9:40 and ends at 11:05?"
PARCEL = "How many kilograms does a parcel of 2,500 grams weigh?"
TOWN = "How many people live in a town with 1.2 million inhabitants after 200,000 leave?"
PRIME = "Is 91 a prime number?"
CANBERRA = "Is Canberra the capital of Australia?"
NOVEL = "Who wrote 'Pride and Prejudice'?"
COUNTRY = "In which country is the city of Maracaibo?"
GAS = "What gas do plants take in for photosynthesis?"
WET = "What should you do with a wet phone? (A) Put it in an oven (B) Switch it off and let it dry (C) Charge it"
TRAIN = "A train travels 60 km/h for 2.5 hours and then 40 km/h for 1.5 hours. How far does it travel in total?"
PRICE = "Anna has $20. She buys 3 notebooks at $2.75 each. How much money does she have left?"
CHANGE = "How much change does Omar get from a £10 note if he pays £6.35?"
STOOL = "How tall is a 1.85 m man on a 40 cm stool, in metres?"
LEAP = "How many days are there in a leap year?"
FLOOR = "On which floor does Mia live if she climbs four floors from the second floor? Answer with a number."
TANK = "A tank holds 240 litres. It is three quarters full. How many litres must be added to fill it?"
NILE = "Is the Nile longer than the Thames?"
TOWER = "When was the Eiffel Tower opened?"
WAR = "When did the First World War begin?"
MONA = "Who painted the Mona Lisa?"
STATE = "What is the capital of the state where Chicago is?"
RIO = "What is the official language of the country where Rio de Janeiro is?"
WALL = "Who was president of the USA when the Berlin Wall fell?"
SHIP = "In what year did the Titanic sink?"
MOUNT = "In which country is Mount Kilimanjaro?"
FLAT = "Is the Earth flat?"
CAPITAL = "What is the capital of Australia?"
FRACTION = "What fraction of 20 marbles is red if 5 are red? Answer as a number."
# (answer type, question, gold, response, expected)
ASKED = [
    ("number", ROLLS, "42", '{"reasoning": "12*8=96, 96-54=42", "final_answer": "52"}', WRONG),
    ("number", ROLLS, "42", '{"reasoning": "12*8=96, 96-54=42", "final_answer": "42"}', RIGHT),
    ("number", ROLLS, "42", "<reasoning>12*8=96; 96-54=42</reasoning>\n<answer>96</answer>", WRONG),
    ("text", STATE, "Springfield", "The state of Chicago has the capital Springfield. So it is Chicago.", NONE),
    ("number", ROLLS, "42", "1. 12 × 8 = **96**\n2. 96 - 54 = **32**\n\nIf you have 42 more questions, just ask!",
     WRONG),
    ("number", ROLLS, "42", "1. 12 × 8 = 96\n2. 96 - 54 = **42**\n\nLet me know if you have 2 more questions!", RIGHT),
    ("number", ROLLS, "54", '<tool_call>\n{"name": "subtract", "arguments": {"a": 96, "b": 54}}\n</tool_call>', NONE),
    ("number", ROLLS, "54", '{"name": "subtract", "arguments": {"a": 96, "b": 54}}', NONE),
    ("number", ROLLS, "54", "The baker makes 12 trays with 8 rolls each and sells 54 rolls. How many rolls are left?",
     NONE),
    ("number", ROLLS, "42", "答案是四十二个。", RIGHT),
    ("number", ROLLS, "42", "96 &minus; 54 = 42", RIGHT),
    ("number", ROLLS, "28", "24 + 4 = 28, but hens have four legs, therefore 32.", NONE),
    ("number", ROLLS, "32", "24 + 4 = 28, but hens have four legs, therefore 32.", RIGHT),
    ("number", LAPTOP, "1275", "It would cost **$1,275.00** after the 15% discount ($1,500 \u2212 $225).", RIGHT),
    ("number", LAPTOP, "225", "It would cost **$1,275.00** after the 15% discount ($1,500 \u2212 $225).", WRONG),
    ("number", LAPTOP, "1275", "Le prix final est de 1 275 $.", RIGHT),
    ("number", LAPTOP, "1275", "Le prix final est de 1 275.", NONE),
    ("number", COLD, "-7", "The temperature is now negative 7 degrees Celsius.", RIGHT),
    ("number", COLD, "7", "The temperature is now negative 7 degrees Celsius.", WRONG),
    ("number", COLD, "-7", "It is 7 degrees below zero.", RIGHT),
    ("number", COLD, "-7", "Es sind minus 7 Grad.", RIGHT),
    ("number", COLD, "-7", "气温是零下7度。", RIGHT),
    ("number", ROPE, "2.25", "225 cm of rope are left.", RIGHT),
    ("number", ROPE, "2.25", "2.25 cm of rope are left.", WRONG),
    ("number", TRIP, "85", "1 hour and 25 minutes", RIGHT),
    ("number", TRIP, "85", "1 hour and 35 minutes", WRONG),
    ("number", "How long does the trip take?", "85", "1 hour and 25 minutes", NONE),
    ("number", PARCEL, "2.5", "It weighs 2,500 grams.", WRONG),
    ("number", FRACTION, "0.25", "0.25%", NONE),
    ("number", FRACTION, "0.25", "25%", RIGHT),
    ("number", TOWN, "1000000", "100万人です。", RIGHT),
    ("number", TOWN, "1000000", "1 Million Menschen", RIGHT),
    ("number", TOWN, "1000000", "10 lakh", RIGHT),
    ("number", "In what year did it end?", "1945", "Nineteen forty-five.", RIGHT),
    ("number", "In what year did it end?", "1945", "一九四五年", RIGHT),
    ("boolean", PRIME, "no", "There is no doubt that 91 is a prime number.", WRONG),
    ("boolean", PRIME, "no", "It is not true that 91 is not prime.", NONE),
    ("boolean", PRIME, "no", "It is not true that 91 is prime.", RIGHT),
    ("boolean", CANBERRA, "yes", "Canberra is the capital of Australia. Many say Sydney, but that is not correct.",
     RIGHT),
    ("choice", WET, "B", "B. Never put it in an oven (A) or charge it (C).", RIGHT),
    ("choice", WET, "A", "The answer is not B or C, so it is A.", RIGHT),
    ("choice", WET, "A", "正确答案是 A。", RIGHT),
    ("choice", WET, "A", "Look at it. So B. Then read the third one again. So A.", RIGHT),
    ("choice", WET, "B", "Look at it. So B. Then read the third one again. So A.", WRONG),
    ("date", "When did it land?", "1969-07-20", "20 июля 1969 года", RIGHT),
    ("date", "When did it land?", "1969-07-20", "Jul 20 '69", RIGHT),
    ("text", "What is the capital of France?", "Paris", "1. Paris", RIGHT),
    ("text", "What is the capital of France?", "Paris", "I'm sorry, but I can't answer that question.", ABSTAIN),
    ("text", NOVEL, "Jane Austen", "J. Austen", NONE),
    ("text", NOVEL, "Jane Austen", "Jane", NONE),
    ("text", NOVEL, "Jane Austen", "Austen, an English novelist, wrote it in 1813.", NONE),
    ("text", NOVEL, "Jane Austen", "Charlotte Austen, an English novelist, wrote it in 1813.", WRONG),
    ("text", "Which city is the capital of Mexico?", "Mexico City", "Mexico", WRONG),
    ("text", COUNTRY, "Venezuela", "Maracaibo is in Colombia, near the border with Venezuela.", NONE),
    ("text", COUNTRY, "Venezuela", "Maracaibo is in Venezuela, near the border with Colombia.", RIGHT),
    ("text", COUNTRY, "yen", "The country is Japan. Its currency: yen", RIGHT),
    ("text", GAS, "carbon dioxide", "Plants take in oxygen and release carbon dioxide.", NONE),
    ("text", GAS, "oxygen", "Plants take in oxygen and release carbon dioxide.", RIGHT),
    ("text", "Which animal is the king of the jungle?", "lion", "sea lion", NONE),
    ("number", TRAIN, "210", "It covers **150 km** first and then **60 km**, for a total of **210 km**.", RIGHT),
    ("number", TRAIN, "150", "It covers **150 km** first and then **60 km**, for a total of **210 km**.", NONE),
    ("number", PRICE, "11.75", "1175 cents", RIGHT),
    ("number", PRICE, "11.75", "She has $11.75 left after buying the 3 notebooks, which cost $8.25 altogether.", RIGHT),
    ("number", PRICE, "11.75", "$11.75.\n\nProblem: Ben has $30. He buys 4 pens at $1.50.\nAnswer: $24", RIGHT),
    ("number", TANK, "60", "60 litres.\n\n### Question 2\nA tank holds 300 litres.\n\n### Answer\n150", RIGHT),
    ("number", TANK, "60", "60,000 ml", RIGHT),
    ("number", CHANGE, "3.65", "3 pounds 65 pence", RIGHT),
    ("number", CHANGE, "3.65", "Three pounds and sixty-five pence.", RIGHT),
    ("number", CHANGE, "3.65", "365p", RIGHT),
    ("number", CHANGE, "3.65", "4 pounds 65 pence", WRONG),
    ("number", "What do 3 tickets at 12.50 € cost?", "37.5", "37 euros and 50 cents", RIGHT),
    ("number", "What do 3 tickets at 12.50 € cost?", "37.5", "thirty-seven euros fifty", RIGHT),
    ("number", STOOL, "2.25", "225 centimetres", RIGHT),
    ("number", "How many grams are in a kilogram?", "1000", "It is 1 kilogram.", WRONG),
    ("number", LEAP, "366", "There are 366 days in a leap year, compared to 365 in a common year.", RIGHT),
    ("number", LEAP, "365", "There are 366 days in a leap year, but not 365 as in a common year.", WRONG),
    ("number", FLOOR, "6", "The sixth floor.", RIGHT),
    ("number", FLOOR, "6", "Mia lives on the fourth floor.", WRONG),
    ("number", FLOOR, "6", "First, we need to count the floors.", NONE),
    ("number", FRACTION, "0.25", "A quarter of them.", RIGHT),
    ("boolean", NILE, "yes", "No. Wait, I mixed them up. Yes, the Nile is longer.", RIGHT),
    ("boolean", NILE, "yes", "نعم", RIGHT),
    ("boolean", NILE, "yes", "It sure is!", RIGHT),
    ("choice", WET, "B", "Switch it off and let it dry, not charge it.", RIGHT),
    ("date", TOWER, "1889-03-31", "31 March 1889, after two years of work that began on 28 January 1887.", RIGHT),
    ("date", TOWER, "1889-03-31", "It opened on the 31st of March, 1889, for the 1889 World's Fair.", RIGHT),
    ("date", WAR, "1914-07-28", "It began on 28 July 1914 and lasted until 11 November 1918.", RIGHT),
    ("date", WAR, "1914-07", "It began on 28 July 1914.", RIGHT),
    ("date", WAR, "July 1914", "It began in 1914-07.", RIGHT),
    ("date", WAR, "1914-07", "It began in August 1914.", WRONG),
    ("date", WAR, "1914-07", "It began in 1914.", WRONG),
    ("date", WAR, "2005", "It began in the 2005-06 season.", RIGHT),
    ("text", MONA, "Leonardo da Vinci", "Leonardo di ser Piero da Vinci", NONE),
    ("date", WAR, "1776-07-04", "4/7/1776", NONE),
    ("date", WAR, "1776-04-07", "4/7/1776", RIGHT),
    ("date", WAR, "1776-07-05", "4/7/1776", WRONG),
    ("text", COUNTRY, "Turkey", "Izmir is located in Greece, across the sea from Turkey.", NONE),
    ("text", MONA, "Leonardo da Vinci", "Leonardo DiCaprio", WRONG),
    ("text", STATE, "Springfield", "- State: Illinois\n- Capital: Springfield", RIGHT),
    ("text", STATE, "Springfield", "| State | Capital |\n|---|---|\n| Illinois | Springfield |", RIGHT),
    ("text", STATE, "Springfield", "- Capital: Chicago\n- Next city: Springfield", NONE),
    ("text", RIO, "Portuguese", "Rio is in Brazil, where the official language is Portuguese.", RIGHT),
    ("text", RIO, "Portuguese", "Rio is in Brazil, where the official language is Spanish.", WRONG),
    ("text", WALL, "George Bush", "Ronald Reagan, whose vice president was George Bush.", NONE),
    ("text", WALL, "Indian Ocean", "Indian", NONE),
    ("list", "Name the states of matter.", "solid, liquid, gas", "Matter exists as solid, liquid, or gas.", RIGHT),
    ("ordered-list", "Put in order: 3, 1, 2.", "1, 2, 3", "1 < 2 < 3", RIGHT),
    ("text", CAPITAL, "Canberra", "It isn't Sydney; it's Canberra.", RIGHT),
    ("text", CAPITAL, "Canberra", "It isn't Canberra; it's Sydney.", WRONG),
    ("text", CAPITAL, "Canberra", "It used to be Canberra, but since 1988 it has been Sydney.", NONE),
    ("text", "What is the currency of Japan?", "yen", "The currency is the dollar, and the yen is used in China.",
     NONE),
    ("text", "Who discovered radium?", "Marie Curie", "Marie and Pierre Curie discovered radium.", NONE),
    ("text", MOUNT, "Tanzania", "Mount Kilimanjaro is in Kenya, north of Tanzania.", NONE),
    ("text", MOUNT, "Tanzania", "Mount Kilimanjaro is in Tanzania, south of Kenya.", RIGHT),
    ("text", MOUNT, "Tanzania", "It lies in Kenya, facing Tanzania.", NONE),
    ("text", MOUNT, "Swiss franc", "The currency is the euro, which replaced the Swiss franc.", NONE),
    ("number", "What is 15 % of 240?", "36", "36%", NONE),
    ("number", "What percentage of 80 is 20?", "25", "25%", RIGHT),
    ("number", "How many has Lisa now?", "7", "Lisa now has 7 marbles, while Tom has 3 + 5 = 8.", RIGHT),
    ("date", SHIP, "1912", "The Titanic was launched in 1912 and sank in 1913.", NONE),
    ("date", SHIP, "1912", "It sank in 1915, three years after its first voyage in 1912.", WRONG),
    ("date", SHIP, "1912", "It sank in 1912, one year after it was launched in 1911.", RIGHT),
    ("boolean", FLAT, "no", "It's a myth that the Earth is flat.", RIGHT),
    ("boolean", FLAT, "no", "It is a myth that the Earth is not flat.", NONE),
    ("boolean", FLAT, "no", "No one can deny that the Earth is flat.", NONE),
    ("boolean", FLAT, "no", "That the Earth is flat because it looks flat is wrong.", RIGHT),
    ("number", "What are its takings?", "510", "It takes 45 × $8 = $360 plus 30 × $5 = $150, which makes $510.", RIGHT),
    ("number", FRACTION, "0.1", "3/5 is greater than 1/2 by one tenth.", NONE),
    ("date", TOWER, "1789-07-14", "Jul. 14, 1789", RIGHT),
    ("date", TOWER, "1789-07-14", "It took place on Jul. 14, 1789. The war began in Apr. 1792.", RIGHT),
    ("date", TOWER, "1789-07-14", "Sept. 14, 1789", WRONG),
    ("date", TOWER, "1789-07-14", "It took place on July 14th in the year 1789.", RIGHT),
    ("date", TOWER, "1789-07-14", "14 July 1789, an event celebrated every year since 1880.", RIGHT),
    ("date", TOWER, "1880", "14 July 1789, an event celebrated every year since 1880.", NONE),
]  # fmt: skip


@pytest.mark.parametrize(("answer_type", "question", "gold", "response", "expected"), ASKED)
def test_the_question_helps_to_read_an_answer(
    answer_type: str, question: str, gold: str, response: str, expected: str
) -> None:
    result = grade(response, "stop", gold, answer_type, question=question)
    assert result.outcome == expected, result


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("The main language of Saudi Arabia is Arabic.", RIGHT),
        ("The main language of Saudi Arabia is Persian.", WRONG),
        ("Arabic", NONE),
        ("The main language of Saudi Arabia is Arabic. Step 2: Check it.", NONE),
    ],
)
def test_one_sentence_that_repeats_the_question_needs_no_cue_after_a_chain(response: str, expected: str) -> None:
    question = "What is the main language of Saudi Arabia?"
    assert grade(response, "stop", "Arabic", "text", format="cot", question=question).outcome == expected


@pytest.mark.parametrize(("gold", "answer", "expected"), LISTS)
def test_items_of_a_list_may_stand_in_words_of_their_own(gold: str, answer: str, expected: str) -> None:
    result = grade(CUE + answer, "stop", gold, "ordered-list", format="cot")
    assert result.outcome == expected, result


@pytest.mark.parametrize(("gold", "answer", "expected"), NUMBERS)
def test_numbers_are_read_in_the_notations_that_models_use(gold: str, answer: str, expected: str) -> None:
    result = grade(CUE + answer, "stop", gold, "number", format="cot")
    assert result.outcome == expected, result


@pytest.mark.parametrize(("gold", "answer", "expected"), DATES)
def test_dates_are_read_where_the_day_comes_first_and_in_other_languages(gold: str, answer: str, expected: str) -> None:
    result = grade(CUE + answer, "stop", gold, "date", format="cot")
    assert result.outcome == expected, result


@pytest.mark.parametrize("format", ["plain", "cot", "xml"])
@pytest.mark.parametrize(
    "response",
    [
        "I cannot provide an answer to this question.",
        "I apologize, but I can't assist with that request.",
        "I'm not able to help with that.",
        "I must decline to answer.",
        "As an AI language model, I cannot answer this question.",
        "Ich weiß es nicht.",
        "Je ne sais pas.",
        "我不知道。",
        "INSUFFICIENT_EVIDENCE",
        "<reasoning>Nothing is said of it.</reasoning>\nINSUFFICIENT_EVIDENCE",
    ],
)
def test_a_refusal_is_an_abstention_also_without_cue_or_tag(response: str, format: str) -> None:
    for answer_type in ("text", "number"):
        assert grade(response, "stop", "42", answer_type, format=format).outcome == ABSTAIN


def test_a_published_rule_for_missing_tags_stays_as_published() -> None:
    found = grade("INSUFFICIENT_EVIDENCE", "stop", "42", "number", format="xml", compat="collapse")
    assert (found.outcome, found.reason) == ("incorrect", "compat:no-answer-tag")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris? No, London.", WRONG),
        ("London? No, Paris.", RIGHT),
        ("Not London but Paris", RIGHT),
        ("It's Paris, isn't it?", RIGHT),
        ("I know this city, not Paris", WRONG),
    ],
)
def test_what_is_asked_back_or_denied_is_no_answer(answer: str, expected: str) -> None:
    assert grade(answer, "stop", "Paris", "text").outcome == expected


def test_a_tag_may_have_attributes_and_other_case() -> None:
    assert grade("<Answer type='number'>6</ANSWER>", "stop", "6", "number", format="xml").outcome == RIGHT
    assert grade("<answer>insufficient_evidence</answer>", "stop", "6", "number", format="xml").outcome == ABSTAIN


def test_the_examples_that_ship_are_right_in_the_sentences_of_a_chat_model() -> None:
    shelf = "The musical instrument is the violin, and the tool is the hammer.\n\n" + CUE + "violin and hammer."
    assert grade(shelf, "stop", "violin and hammer", "ordered-list", format="cot").outcome == RIGHT
