"""Words and numbers of an answer that are not what they look like, each beside answers in which they are.

Judged by hand before grading. OPEN: not right; whether wrong or undecided is not for this table to say.
"""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE = {"correct"}, {"incorrect"}, {"invalid"}
OPEN = {"incorrect", "invalid"}

_MONTH = "In which month does the fair open?"
_FRIEND = "Who fed the cat?"
_TOWN = "In which town was she born?"
_MONEY = "Which currency is used in Seoul?"
# (answer type, gold, response, question or None, expected)
ORDINARY_WORDS = [
    ("text", "May", "The fair may open in July.", _MONTH, OPEN),
    ("text", "May", "may", _MONTH, RIGHT),
    ("text", "May", "It opens in May.", _MONTH, RIGHT),
    ("text", "May", "it may be july", _MONTH, OPEN),
    ("text", "May", "it is in may", _MONTH, RIGHT),
    ("text", "May", "I may be wrong, but the fair opens in May.", _MONTH, RIGHT),
    ("text", "May", "May I ask which fair?", _MONTH, OPEN),
    ("text", "May", "The fair opens in may, and Ida comes.", _MONTH, RIGHT),
    ("text", "Will", "It will have been Ida.", _FRIEND, OPEN),
    ("text", "Will", "Will fed the cat.", _FRIEND, RIGHT),
    ("text", "Will", "will", _FRIEND, RIGHT),
    ("text", "Grace", "Bo fed it with grace.", _FRIEND, OPEN),
    ("text", "Nice", "She was born in a nice little town near Lyon.", _TOWN, OPEN),
    ("text", "Nice", "She was born in Nice.", _TOWN, RIGHT),
    ("text", "Nice", "nice", _TOWN, RIGHT),
    ("text", "Bath", "She took a bath in London.", _TOWN, OPEN),
    ("text", "Bath", "She was born in Bath.", _TOWN, RIGHT),
    ("text", "won", "Seoul won the bid in 1981, and people there pay in yen.", _MONEY, OPEN),
    ("text", "won", "They pay in won.", _MONEY, RIGHT),
    ("text", "won", "Seoul won the bid; its currency is the won.", _MONEY, RIGHT),
    ("text", "lead", "Tin can lead to the same result.", "Which metal is it?", OPEN),
    ("text", "lead", "It is lead.", "Which metal is it?", RIGHT),
    ("text", "Oxygen", "Plants give off oxygen in Norway.", "Which gas do plants give off?", RIGHT),
]
# published alias lists have codes of countries and languages that are small words too
CODES = [
    ("Iceland", "IS", "The country is Norway.", WRONG),
    ("Iceland", "is", "Norway is the country.", WRONG),
    ("Iceland", "IS", "The code of the country is IS.", RIGHT),
    ("Iceland", "IS", "IS", RIGHT),
    ("Montenegro", "me", "Let me see: Serbia", WRONG),
    ("Iceland", "IS", "Norway is the country. " + "It is in the north and has a long coast. " * 20, WRONG),
    ("Iceland", "IS", "Is it Norway? Yes, he is from there.", WRONG),
    ("Italian", "it", "It is Spanish.", WRONG),
    ("Italian", "it", "it is Spanish", WRONG),
    ("Italian", "it", "It is Italian.", RIGHT),
    ("India", "IN", "In Germany", WRONG),
    ("India", "IN", "in Germany", WRONG),
    ("It", "Stephen King's It", "It is a book.", NONE),
    ("Canada", "CAN", "It can be Germany, I think.", WRONG),
    ("Canada", "CAN", "Germany can be it. " + "It is in Europe and has a long history. " * 20, WRONG),
    ("Canada", "CAN", "Its code is CAN in most lists.", RIGHT),
    ("Canada", "CAN", "can", RIGHT),
    ("Andorra", "AND", "He lives in Spain and Portugal, mostly Spain.", WRONG),
    ("Laos", "LA", "The country of La Paz is Bolivia.", WRONG),
]
_SQUARES = "Which square numbers are between 20 and 70?"
_POPES = "Which popes reigned between Pius XII and John Paul II?"
BETWEEN = [
    ("list", "25, 36, 49, 64", "The square numbers between 20 and 70 are 25, 36, 49, and 64.", _SQUARES, RIGHT),
    ("list", "25, 36, 49, 64", "Between 20 and 70, the squares are 25, 36, 49 and 64.", _SQUARES, RIGHT),
    ("list", "25, 36, 49, 64", "The squares between 20 and 70 are **25, 36, 49 and 64**.", _SQUARES, RIGHT),
    ("list", "25, 36, 49, 64", "The square numbers between 20 and 70 are 25, 36, and 49.", _SQUARES, WRONG),
    ("list", "25, 36, 49, 64", "The square numbers between 20 and 70 are 25, 36, 49, 64 and 81.", _SQUARES, WRONG),
    ("list", "25, 36, 49, 64", "5 squared is 25.\n8 squared is 64.\nSo they are 25, 36, 49 and 64.", _SQUARES, RIGHT),
    ("list", "25, 36, 49, 64", "25, 36, 49, 64\nSo they are 25, 36 and 49, not 64.", _SQUARES, OPEN),
    ("list", "John XXIII, Paul VI", "The popes between Pius XII and John Paul II were John XXIII and Paul VI.", _POPES,
     RIGHT),
    ("list", "John XXIII, Paul VI", "The popes between Pius XII and John Paul II were Paul VI and Pius XI.", _POPES,
     WRONG),
]  # fmt: skip
_POWER = "What is 3 to the power of 4, minus 6?"
GOES_ON = [
    ("number", "75", "3^4 = 81, minus 6 is 75.", _POWER, RIGHT),
    ("number", "75", "3^4 = 81; minus 6 makes 75.", _POWER, RIGHT),
    ("number", "75", "3^4 = 81, so minus 6 gives 75", _POWER, RIGHT),
    ("number", "75", "3^4 = 81 and subtracting 6 leaves 75.", _POWER, RIGHT),
    ("number", "75", "3^4 = 81, which minus 6 is 75.", _POWER, RIGHT),
    ("number", "75", "3^4 = 81, and 81 minus 6 is 75.", _POWER, RIGHT),
    ("number", "75", "3^4 = 81, minus 6 is 74.", _POWER, WRONG),
    ("number", "81", "3^4 = 81, minus 6 is 75.", _POWER, OPEN),
    ("number", "22", "2 x 5 = 10, plus 1 is 11, and 11 x 2 = 22.", "What is 2 times 5, plus 1, times 2?", RIGHT),
    ("number", "11", "2 x 5 = 10, plus 1 is 11, and 11 x 2 = 22.", "What is 2 times 5, plus 1, times 2?", WRONG),
    ("number", "54", "4 x 9 = 36, times 1.5 is 54.", "What is 4 times 9, times 1.5?", RIGHT),
    ("number", "36", "4 x 9 = 36, as each of the 9 rows is 4 wide.", "What is 4 times 9?", RIGHT),
]
_BACH = "Was Bach alive when Handel died?"
_FERRY = "Can you walk from Dover to Calais?"
_PRIME = "Is 51 a prime number?"
_SYDNEY = "Is Sydney the capital of Australia?"
YES_OR_NO = [
    ("boolean", "no", "Yes... wait, Bach died in 1750 and Handel in 1759, so no.", _BACH, RIGHT),
    ("boolean", "yes", "Yes... wait, Bach died in 1750 and Handel in 1759, so no.", _BACH, WRONG),
    ("boolean", "no", "Yes. Hold on - wait, Bach died nine years earlier. So the answer is no.", _BACH, RIGHT),
    ("boolean", "yes", "Yes. Wait, Bach died in 1750.", _BACH, NONE),
    ("boolean", "yes", "Yes. Wait, let me count again. Yes.", _BACH, RIGHT),
    ("boolean", "no", "No, sorry.", _BACH, RIGHT),
    ("boolean", "no", "He wasn't: he had died in 1750.", _BACH, RIGHT),
    ("boolean", "no", "He was: he died in 1760.", _BACH, WRONG),
    ("boolean", "no", "Unfortunately not.", _FERRY, RIGHT),
    ("boolean", "no", "Sadly, no.", _FERRY, RIGHT),
    ("boolean", "no", "I'm afraid not, there is water between them.", _FERRY, RIGHT),
    ("boolean", "no", "You can't; there is water between them.", _FERRY, RIGHT),
    ("boolean", "no", "You can.", _FERRY, WRONG),
    ("boolean", "no", "Sure, you can walk on the beach.", _FERRY, WRONG),
    ("boolean", "yes", "Surely you can't.", _FERRY, OPEN),
    ("boolean", "yes", "Sure, I can tell you more.", _FERRY, NONE),
    ("boolean", "no", "Impossible.", _FERRY, RIGHT),
    ("boolean", "no", "Never!", _FERRY, RIGHT),
    ("boolean", "no", "It is not possible.", _FERRY, RIGHT),
    ("boolean", "no", "Never mind.", _FERRY, NONE),
    ("boolean", "yes", "Never.", "Is it true that he never slept?", NONE),
    ("boolean", "yes", "Impossible.", "Is it impossible to count all primes?", NONE),
    ("boolean", "no", "It's widely held that 51 is prime, but it isn't.", _PRIME, RIGHT),
    ("boolean", "no", "51 may look like a prime number, but it is not.", _PRIME, RIGHT),
    ("boolean", "no", "They look like fish that breathe air, but they don't.", "Do trout breathe air?", RIGHT),
    ("boolean", "no", "51 is odd, but it isn't.", _PRIME, NONE),
    ("boolean", "yes", "It's widely held that 51 is prime, but it isn't.", "Is 51 composite?", NONE),
    ("boolean", "no", "Canberra is the capital of Australia, not Sydney.", _SYDNEY, RIGHT),
    ("boolean", "no", "Canberra, rather than Sydney, is the capital of Australia.", _SYDNEY, RIGHT),
    ("boolean", "no", "Sydney is the capital of Australia, not Canberra.", _SYDNEY, WRONG),
    ("boolean", "no", "Insects have six legs, not eight.", "Do insects have eight legs?", RIGHT),
    ("boolean", "no", "Insects have eight legs, not six.", "Do insects have eight legs?", WRONG),
    ("boolean", "yes", "It is, because 8 * 8 = 64.", "Is 64 a square number?", RIGHT),
    ("boolean", "yes", "It is, however, not a square.", "Is 64 a square number?", OPEN),
    ("boolean", "yes", "It isn't, because 64 is even.", "Is 64 a square number?", WRONG),
]
_BRAZIL = "What is the main language of Brazil?"
_PLANTS = "What do plants take in?"
INSTEAD = [
    ("text", "Portuguese", "The main language of Brazil is not a language, but rather Portuguese.", _BRAZIL, RIGHT),
    ("text", "Portuguese", "It is not a language, but rather a variant of the Portuguese language.", _BRAZIL, RIGHT),
    ("text", "Portuguese", "It is not Portuguese, but rather a variant of Spanish.", _BRAZIL, WRONG),
    ("text", "rice", "It is not wheat, but instead rice.", "What do they grow?", RIGHT),
    ("text", "oil", "Plants take in air, but instead release oil.", _PLANTS, OPEN),
    ("text", "oil", "Plants do not take in air, but rather release oil.", _PLANTS, OPEN),
    ("text", "Canada", "Bell was born in Scotland, and rather lived in Canada.", "Where was Bell born?", OPEN),
]
_CUBE = "What does this program print?\nprint(3 ** 3 - 2)"
PROGRAMS = [
    ("number", "25", "```python\nprint(3 ** 3 - 2)\n```", _CUBE, NONE),
    ("number", "25", "```\nprint(3 ** 3 - 2)\n```", _CUBE, NONE),
    ("number", "25", "print(3 ** 3 - 2)", _CUBE, NONE),
    ("number", "2", "```python\nprint(3 ** 3 - 2)\n```", _CUBE, NONE),
    ("number", "25", "```python\nprint(3 ** 3 - 2)  # 25\n```", _CUBE, RIGHT),
    ("number", "25", "```python\nprint(3 ** 3 - 2)\n```\nprints 25.", _CUBE, RIGHT),
    ("number", "25", "```python\nprint(25)\n```", _CUBE, RIGHT),
    ("number", "25", "```python\nprint(24)\n```", _CUBE, WRONG),
    ("text", "Oslo", "```python\nprint('Oslo')\n```", None, RIGHT),
    ("list", "3, 6, 9", "```python\nprint([n for n in range(1, 10) if n % 3 == 0])\n```", None, NONE),
]
_PAINT = "A wall of 12 m needs 3 l of paint. How many litres does a wall of 20 m need?"
_LAKE = "Which lake lies in the country where Nairobi is?"
_ORDER = "Order these by mass: ant, whale, cat."
_DAYS = "How many days are there in two weeks and three days?"
NOTHING_SAID = [
    ("number", "17", "Two weeks and three days are equal", _DAYS, NONE),
    ("number", "17", "Two weeks and three days is equal to 17", _DAYS, RIGHT),
    ("number", "17", "Sixteen days are equal to", _DAYS, WRONG),
    ("number", "5", "How many litres does a wall of 40 m need? How many does one of 8 m need?", _PAINT, NONE),
    ("number", "5", "How many litres does a wall of 20 m need? 5", _PAINT, RIGHT),
    ("number", "5", "Is it 5?", _PAINT, NONE),
    ("number", "5", "5?", _PAINT, RIGHT),
    ("number", "45", "15% of 300", "What is 15% of 300?", NONE),
    ("number", "45", "15% of 300 = 40", "What is 15% of 300?", WRONG),
    ("text", "Lake Victoria", "Which lake lies in the country where Kampala is?", _LAKE, NONE),
    ("text", "Lake Victoria", "the country where Nairobi is", _LAKE, NONE),
    ("text", "Lake Victoria", "Lake Chad, isn't it?", _LAKE, WRONG),
    ("text", "Lake Victoria", "Which lake? Lake Chad.", _LAKE, WRONG),
    ("text", "Lake Victoria", "Hello there! I'm here to help.", _LAKE, NONE),
    ("text", "Where Are We Going?", "Where Are We Going?", "Which book did she write?", RIGHT),
    ("ordered-list", "ant, cat, whale", "Certainly! I can help you to order the animals.", _ORDER, NONE),
    ("ordered-list", "ant, cat, whale", "ant, whale, cat", _ORDER, WRONG),
    ("boolean", "yes", "Of course!", "Is 9 odd?", RIGHT),
    ("text", "7z", "Simplify 8z - 7z. Simplify 9z + z.", "Simplify 3z + 4z.", NONE),
    ("text", "7z", "Simplify 3z + 4z to 7z.", "Simplify 3z + 4z.", RIGHT),
]
_SEA = "Into which sea does the river flow that runs through Cologne?"
ASKED_AGAIN = [
    ("text", "North Sea", f"Baltic Sea\n\nQuestion: {_SEA}\nAnswer: North Sea", _SEA, NONE),
    ("text", "North Sea", f"Baltic Sea\n\nQ: {_SEA}\nA: It flows into the North Sea.", _SEA, NONE),
    ("text", "North Sea", f"Baltic Sea\n\nQuestion: {_SEA.replace('Cologne', 'London')}\nAnswer: North Sea", _SEA,
     WRONG),
    ("text", "North Sea", "Baltic Sea\n\nQuestion: Which sea is shallow?\nAnswer: the North Sea", _SEA, WRONG),
    ("text", "North Sea", "North Sea\n\nQuestion: Which sea is salty?\nAnswer: the Dead Sea", _SEA, RIGHT),
]  # fmt: skip
_WEEKS = "How many days are there in two and a half weeks?"
_TRACK = "How many metres long is the track?"
UNITS = [
    ("number", "17.5", "420 hours", _WEEKS, RIGHT),
    ("number", "17.5", "That is 420 hours.", _WEEKS, RIGHT),
    ("number", "17.5", "430 hours", _WEEKS, WRONG),
    ("number", "17.5", "420", _WEEKS, WRONG),
    ("number", "17.5", "2.5 weeks", _WEEKS, WRONG),
    ("number", "17.5", "two and a half weeks", _WEEKS, WRONG),
    ("number", "450", "0.45 km", _TRACK, RIGHT),
    ("number", "450", "45,000 cm", _TRACK, RIGHT),
    ("number", "450", "0.45", _TRACK, WRONG),
]
_PRODUCT = "What is 4 times 6?\n(A) 4\n(B) 6\n(C) 10\n(D) 24"
_ROLLS = "A baker has 90 rolls, sells 35 and gives 10 away. How many rolls are left?"
_SALARY = "A salary rises from $2000 to $2300. By what percentage does it rise?"
_CHOIR = "How many girls are in the choir?"
LEFT = [
    ("number", "45", "Gone: 35 + 10 = 45\nLeft: 90 - 45 = 45", _ROLLS, RIGHT),
    ("number", "45", "Sold: 35\nGiven away: 10\nLeft: 90 - 35 - 10 = 45", _ROLLS, RIGHT),
    ("number", "45", "Gone: 35 + 10 = 45\nLeft: 90 - 45 = 55", _ROLLS, WRONG),
    ("number", "45", "Gone: 45\nLeft: 90 - 45 = 35", _ROLLS, OPEN),
    ("number", "15", "The salary rises by $300, which is 15% of $2000.", _SALARY, RIGHT),
    ("number", "15", "It rises from $2000 to $2300, that is, by 15 percent.", _SALARY, RIGHT),
    ("number", "15", "The salary rises by $300, which is 13% of $2300.", _SALARY, OPEN),
    ("number", "15", "It rises by $15, 0.75% of it.", _SALARY, OPEN),
    ("number", "14", "The choir has 30 members, 14 of which are girls and 16 of which are boys.", _CHOIR, RIGHT),
    ("number", "14", "The choir has 30 members, 16 of which are girls and 14 of which are boys.", _CHOIR, WRONG),
    ("text", "France", "Avignon lies in the southeast of France, on the Rh\u00f4ne.", "Where is Avignon?", RIGHT),
    ("text", "France", "Avignon is in the country to the south of France.", "Where is Avignon?", OPEN),
    ("text", "France", "Avignon lies in Spain, south of France.", "Where is Avignon?", OPEN),
    ("date", "1894", "The bridge was built from 1886 to 1894.", "When was the bridge completed?", RIGHT),
    ("date", "1894", "The bridge was built from 1894 to 1901.", "When was the bridge completed?", OPEN),
]
_EGGS = "A cook uses 9 eggs a day. How many dozen eggs does she need for 8 days?"
_AHEAD = "Ann has 150 points and Bo has 120. Ann scores 20 more, and Bo scores 35. By how many points is Ann now ahead?"
_PLACE = "Kim is in 9th place, overtakes 4 runners and is overtaken by 2. What place is she in?"
_FEES = "A plumber has 3 jobs of $40, pays $25 for parts and a fee of $5 per job. How much does he keep, in dollars?"
_EARNED = "The jobs bring 3 * 40 = $120.\nThe fees are 3 * 5 = $15.\n"
_LEAST = "At least how many degrees must it have?"
RESULTS = [
    ("number", "68", "It must have at least 68 degrees because 200 - 132 = 68.", _LEAST, RIGHT),
    ("number", "68", "It must have at least 78 degrees because 200 - 122 = 78.", _LEAST, WRONG),
    ("number", "68", "It has at least 68 degrees.", "How many degrees does it have?", OPEN),
    ("number", "80", f"{_EARNED}He paid $15 in fees and $25 for parts, so he keeps 120 - 15 - 25 = $80.", _FEES, RIGHT),
    ("number", "80", f"{_EARNED}He paid $15 in fees and $25 for parts, so he keeps 120 - 15 - 25 = $90.", _FEES, WRONG),
    ("number", "80", "120 - 40 = $80.\nHe has $80 and pays $25, so he keeps 80 - 25 = $55.", _FEES, OPEN),
    ("number", "240", "3 * 80 = 240. So he walks 240 km in 80 days.", "How far does he walk in 80 days?", RIGHT),
    ("number", "6", "9 * 8 = 72 eggs, and 72 / 12 = 6 dozen eggs.", _EGGS, RIGHT),
    ("number", "6", "She needs six dozen eggs.", _EGGS, RIGHT),
    ("number", "6", "She needs 7 dozen eggs.", _EGGS, WRONG),
    ("number", "6", "She needs 72 eggs.", _EGGS, OPEN),
    ("number", "72", "6 dozen eggs are 72 eggs.", "How many eggs does she need if she needs 6 dozen?", RIGHT),
    ("number", "33", "32/96 = 33.33...%, which rounds to 33%.", None, RIGHT),
    ("number", "33", "32/96 = 33.33...%, which rounds up to 34%.", None, WRONG),
    ("number", "7", "9 - 4 = 5th place, then 5 + 2 = 7th place.", _PLACE, RIGHT),
    ("number", "7", "9 - 4 = 5th place, then 5 + 1 = 6th place.", _PLACE, WRONG),
    ("number", "15", "Ann now has 150 + 20 = 170.\nBo now has 120 + 35 = 155.\nAnd 170 - 155 = 15.", _AHEAD, RIGHT),
    ("number", "15", "Ann now has 150 + 20 = 170.\nBo now has 120 + 35 = 155.\nAnd 170 - 155 = 25.", _AHEAD, WRONG),
]
EQUATIONS = [
    ("number", "28", "The perimeter is 28 cm since 4 \u00d7 7 = 28.",
     "A square has sides of 7 cm. What is its perimeter?", RIGHT),
    ("number", "28", "The perimeter is 7 cm because 4 \u00d7 7 = 28.",
     "A square has sides of 7 cm. What is its perimeter?", WRONG),
    ("choice", "D", "4 \u00d7 6 = 24", _PRODUCT, RIGHT),
    ("choice", "D", "4 * 6 = 24", _PRODUCT, RIGHT),
    ("choice", "D", "4 times 6 is 24.", _PRODUCT, RIGHT),
    ("choice", "D", "We multiply 4 by 6.\n4 x 6 = 24", _PRODUCT, RIGHT),
    ("choice", "D", "4 + 6 = 10", _PRODUCT, WRONG),
    ("choice", "D", "4 x 6 is not 24.", _PRODUCT, OPEN),
    ("choice", "D", "4 x 6 = 25", _PRODUCT, NONE),
    ("choice", "D", "4 x 6", _PRODUCT, NONE),
    ("choice", "D", "24 and 10", _PRODUCT, NONE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer_type", "gold", "response", "question", "expected"),
    [
        *ORDINARY_WORDS,
        *BETWEEN,
        *GOES_ON,
        *YES_OR_NO,
        *PROGRAMS,
        *NOTHING_SAID,
        *ASKED_AGAIN,
        *UNITS,
        *EQUATIONS,
        *LEFT,
        *RESULTS,
        *INSTEAD,
    ],
)
def test_a_word_counts_in_the_sense_that_it_has(
    answer_type: str, gold: str, response: str, question: str | None, expected: set[str]
) -> None:
    result = grade(response, "stop", gold, answer_type, question=question)
    assert result.outcome in expected, result


@pytest.mark.parametrize("name", ["Find Me", "Factor X", "Solve et Coagula"])
def test_a_name_that_reads_like_a_task_is_an_answer(name: str) -> None:
    assert grade(f"{name}.", "stop", name, "text", question="What is it called?").outcome == "correct"


@pytest.mark.parametrize(("gold", "alias", "response", "expected"), CODES)
def test_a_code_among_the_aliases_is_not_the_small_word_of_a_sentence(
    gold: str, alias: str, response: str, expected: set[str]
) -> None:
    assert grade(response, "stop", gold, "text", (alias,)).outcome in expected
