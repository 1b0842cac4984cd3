"""Answers in notations and wordings that a reader who had not seen the rules came up with, each beside near misses.

Judged by hand. OPEN: not right; whether wrong or undecided is not for this table to say.
"""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE, ABSTAIN = {"correct"}, {"incorrect"}, {"invalid"}, {"abstained"}
OPEN = {"incorrect", "invalid"}

# (answer type, gold, response, question or None, expected)
QUANTITIES = [
    ("number", "3400000", "3 400 000 habitants", None, RIGHT),
    ("number", "1000000", "1 000 000", None, RIGHT),
    ("number", "400000", "3 400 000 habitants", None, WRONG),
    ("number", "45", "between 45 and 46 kg", None, OPEN),
    ("number", "45", "45 or 46 kg", None, OPEN),
    ("number", "45.3", "45.3, or about 45", None, RIGHT),
    ("number", "3:30 pm", "3:30 PM", None, RIGHT),
    ("text", "17:20", "It closes at 5:20 PM.", None, RIGHT),
    ("text", "17:20", "17.20", None, RIGHT),
    ("text", "17:20", "twenty past five in the afternoon", None, RIGHT),
    ("text", "17:20", "5:20", None, NONE),
    ("text", "17:20", "twenty past five", None, NONE),
    ("text", "17:20", "5:20 am", None, WRONG),
    ("text", "17:20", "twenty to five in the afternoon", None, WRONG),
    ("text", "17:20", "between 17:20 and 17:40", "When does the shop close?", OPEN),
    ("text", "6:50 am", "It is ten to seven in the morning.", None, RIGHT),
    ("text", "9:00 am", "nine o'clock", None, RIGHT),
    ("text", "9:00 am", "9 pm", None, WRONG),
    ("text", "noon", "12 pm", None, RIGHT),
    ("text", "noon", "12 am", None, WRONG),
    ("text", "2/5", "$\\frac{2}{5}$", None, RIGHT),
    ("text", "2/5", "\\boxed{\\dfrac{2}{5}}", None, RIGHT),
    ("text", "2/5", "4/10 = 2/5", None, RIGHT),
    ("text", "2/5", "two fifths", None, RIGHT),
    ("text", "2/5", "0.4", None, RIGHT),
    ("text", "2/5", "4/10", None, NONE),
    ("text", "2/5", "5/2", None, WRONG),
    ("text", "2/5", "1 2/5", None, WRONG),
    ("date", "14:30", "It ends at 2:30 PM.", None, RIGHT),
    ("date", "14:30", "12:45 + 1:45 = 14:30.", None, RIGHT),
    ("date", "14:30", "half past two in the afternoon", None, RIGHT),
    ("date", "14:30", "It ends at 2:30 AM.", None, WRONG),
    ("date", "14:30", "12:45 + 1:45 = 14:20.", None, OPEN),
    ("number", "16", "16\n\nx ** 2 raises 4 to the power of 2.", None, RIGHT),
    ("number", "2", "16\n\nx ** 2 raises 4 to the power of 2.", None, OPEN),
    ("number", "8", "Most have 8 legs, though some have 6, 4, 2 or 0 eyes.", None, NONE),
    ("number", "7", "Most have 8 legs, though some have 6, 4, 2 or 0 eyes.", None, WRONG),
    ("number", "75", "1955 - 1879 = 76, but it was before his birthday, so he was 75.", None, RIGHT),
    ("number", "76", "1955 - 1879 = 76, but it was before his birthday, so he was 75.", None, OPEN),
    ("number", "27", "15 + 12 = 27, and these two are enrolled, so it isn't 25.", None, RIGHT),
    ("number", "14", "x = 14, so Sam has 42.", None, RIGHT),
    ("number", "0.75", "1/8 + 1/8 = 1/4, so three quarters are left.", None, RIGHT),
    ("number", "0.25", "1/8 + 1/8 = 1/4, so three quarters are left.", None, OPEN),
    ("number", "27", "25... wait, actually those two count as well. 27.", None, RIGHT),
    ("number", "25", "25... wait, actually those two count as well. 27.", None, WRONG),
    ("number", "20", "She gives 60 cups to her 20 hens.", None, OPEN),
    ("number", "60", "She gives 60 cups to her 20 hens.", None, RIGHT),
    ("number", "30", "half an hour", "How many minutes?", RIGHT),
    ("number", "45", "three quarters of an hour", "How many minutes?", RIGHT),
    ("number", "45", "a quarter of an hour", "How many minutes?", WRONG),
    ("number", "250", "a quarter of a kilogram", "How many grams?", RIGHT),
    ("number", "250", "half a kilogram", "How many grams?", WRONG),
    ("number", "84", "She reads on 6 days, for a total of 84 pages.", None, RIGHT),
    ("number", "6", "She reads on 6 days, for a total of 84 pages.", None, OPEN),
    ("number", "1967", "1967, which made her 22 when it came out in 1990.", None, RIGHT),
    ("number", "1990", "1967, which made her 22 when it came out in 1990.", None, OPEN),
    ("number", "42", "42 rolls, because 63 are baked and 21 are sold.", None, RIGHT),
    ("number", "21", "42 rolls, because 63 are baked and 21 are sold.", None, OPEN),
    ("number", "4.5", "450 cents", "Three share 13.50 dollars. How much does each get?", RIGHT),
    ("number", "4.5", "45 cents", "Three share 13.50 dollars. How much does each get?", WRONG),
]
CAPITAL, WHICH = "What is the capital of France?", "Which one barks? (A) cat (B) dog (C) cow"
POLITE = [
    ("text", "Paris", "Sure, the capital of France is Paris. It lies on the Seine.", CAPITAL, RIGHT),
    ("text", "Paris", "Sure, the capital of France is Lyon. It lies on the Rhône.", CAPITAL, WRONG),
    ("text", "Paris", "Of course, it's Lyon.", CAPITAL, WRONG),
    ("text", "Paris", "Ok, Paris", CAPITAL, RIGHT),
    ("text", "Paris", "Great question, the capital of France is Paris!", CAPITAL, RIGHT),
    ("text", "Paris", "Here's what I found: Paris is the capital of France.", CAPITAL, RIGHT),
    ("text", "Paris", "As an AI I can't browse, but the capital is Paris.", CAPITAL, RIGHT),
    ("text", "Paris", "As an AI I can't browse, but the capital is Lyon.", CAPITAL, WRONG),
    ("text", "Paris", "As an AI, I think it's Lyon.", CAPITAL, WRONG),
    ("text", "Paris", "As an AI language model, I don't know.", CAPITAL, ABSTAIN),
    ("text", "Paris", "That's a great question, but I don't know.", CAPITAL, ABSTAIN),
    ("text", "Paris", "Sure, I can help with that!", CAPITAL, NONE),
    ("text", "Paris", "Hello! How can I assist you today?", CAPITAL, NONE),
    ("text", "Paris", "I'm glad you asked! Paris is the capital.", CAPITAL, RIGHT),
    ("text", "Hello", "Hello!", "What does 'hola' mean?", RIGHT),
    ("list", "apple, cherry", "Sure, the fruits are apples and cherries.", "Which fruits?", RIGHT),
    ("list", "apple, cherry", "Sure, apple, cherry and fig", "Which fruits?", WRONG),
    ("ordered-list", "Ada, Bea, Cy", "Okay, the order is Ada, Bea, Cy.", "In which order?", RIGHT),
    ("ordered-list", "Ada, Bea, Cy", "Ada - Bea - Cy", "In which order?", RIGHT),
    ("ordered-list", "Ada, Bea, Cy", "Bea - Ada - Cy", "In which order?", WRONG),
]
STATED = [
    ("text", "Lisbon", "Portugal. Its capital is Lisbon.", "What is the capital of Spain's neighbour?", RIGHT),
    ("text", "Lisbon", "Porto. Lisbon is the capital.", "What is the capital of Spain's neighbour?", OPEN),
    ("text", "hammer", "I'd use the spoon, because the hammer is heavy.", "A hammer or a spoon?", OPEN),
    ("text", "Leonardo", "The painter is none other than Leonardo.", "Who painted it?", RIGHT),
    ("text", "Leonardo", "It was someone other than Leonardo.", "Who painted it?", OPEN),
    ("choice", "B", "Among A, B and C, the one that barks is B.", WHICH, RIGHT),
    ("choice", "B", "Among A, B and C, the one that barks is not B.", WHICH, OPEN),
    ("choice", "B", "None of the above", WHICH, WRONG),
    ("number", "19", "He has **19** cows.\n\n*Check: 19 + 9 - 4 = 24.*", "How many cows?", RIGHT),
    ("number", "24", "He has **19** cows.\n\n*Check: 19 + 9 - 4 = 24.*", "How many cows?", OPEN),
    ("boolean", "yes", "China is in Asia, so yes", "Is the Great Wall in Asia?", RIGHT),
    ("boolean", "yes", "The evidence favours yes", "Is the Great Wall in Asia?", RIGHT),
    ("boolean", "yes", "I would lean towards no", "Is the Great Wall in Asia?", WRONG),
    ("boolean", "yes", "17 is a prime number because it has no other divisors.", "Is 17 a prime number?", RIGHT),
    ("boolean", "yes", "It is prime.", "Is 17 a prime number?", RIGHT),
    ("boolean", "yes", "17 is not prime.", "Is 17 a prime number?", WRONG),
    ("boolean", "yes", "They can't fly.", "Can penguins fly?", WRONG),
    ("boolean", "no", "Penguins can't.", "Can penguins fly?", RIGHT),
    ("boolean", "no", "They can swim but not fly.", "Can penguins fly?", RIGHT),
    ("boolean", "yes", "It is in France.", "Is Lyon the capital of France?", NONE),
    ("boolean", "yes", "He wrote operas and Shakespeare wrote Hamlet.", "Did Mozart write Hamlet?", NONE),
    ("boolean", "yes", "It is often thought to be a fruit.", "Is a tomato a fruit?", NONE),
    ("boolean", "yes", "It is hard to eat soup with a fork.", "Can you eat soup with a fork?", NONE),
    ("boolean", "yes", "It's not", "Is the Great Wall in Asia?", WRONG),
    ("text", "hammer", "A spoon, since the hammer is heavy.", "A hammer or a spoon?", OPEN),
    ("text", "spoon", "A spoon, since the hammer is heavy.", "A hammer or a spoon?", RIGHT),
    ("text", "hammer", "Wood is hard, so, since spoons are soft, a hammer.", "A hammer or a spoon?", RIGHT),
    ("text", "ink", "Pens write because of ink.", "What makes pens write?", NONE),
    ("text", "ink", "The stain is blue because of ink.", "What makes the stain blue?", RIGHT),
    ("text", "ink", "The stain is blue because of jam, not ink.", "What makes the stain blue?", OPEN),
    ("boolean", "yes", "A giraffe could look over a wall.", "Could a giraffe look over a wall?", RIGHT),
    ("boolean", "yes", "A giraffe couldn't look over a wall.", "Could a giraffe look over a wall?", WRONG),
    ("boolean", "yes", "A giraffe could look over a wall.", "Does a giraffe look over a wall?", NONE),
]
NAMES = [
    ("text", "Oslo", "It could be Oslo, or maybe Bergen.", None, OPEN),
    ("text", "Oslo", "Bergen, or possibly Oslo.", None, OPEN),
    ("text", "Oslo", "Maybe Oslo, maybe Bergen.", None, OPEN),
    ("text", "Oslo", "Maybe Oslo.", None, RIGHT),
    ("text", "Oslo", "Oslo, or Christiania, as it was called.", None, RIGHT),
    ("text", "German", "Germany", None, WRONG),
    ("text", "Greek", "Greece", None, WRONG),
    ("text", "Thai", "The country is Thailand.", None, WRONG),
    ("text", "Germany", "German", None, NONE),
    ("text", "Greece", "Greek", None, NONE),
    ("text", "Poland", "It is a Polish city.", None, NONE),
    ("text", "Africa", "The African continent.", None, NONE),
    ("text", "France", "It was founded by the French engineer Renault in Italy.", None, WRONG),
    ("text", "France", "The French team won in London.", None, NONE),
    ("text", "Sweden", "Swiss", None, WRONG),
    ("text", "Niger", "Nigeria", None, WRONG),
    ("text", "Spanish", "Spain", "What nationality was Goya?", NONE),
    ("text", "Spanish", "Spain", "Which language did Goya speak?", WRONG),
    ("text", "Japan", "日本です。", None, NONE),
    ("text", "Japan", "日本 (Nippon, called Zipangu by Marco Polo)", None, WRONG),
    ("text", "Vienna", "Die Hauptstadt ist Wien.", None, NONE),
    ("text", "Vienna", "La capitale de l'Autriche est Vienne.", None, NONE),
    ("text", "Vienna", "La capitale de l'Autriche est Vienna.", None, RIGHT),
    ("text", "Vienna", "The film was Das Leben der Anderen.", None, WRONG),
    ("text", "Germinal", "Le Rouge et le Noir", None, WRONG),
    ("text", "東京", "Osaka", None, NONE),
    ("text", "Africa", "South Africa", None, OPEN),
    ("text", "Africa", "Chad is a country in Central Africa.", None, RIGHT),
    ("text", "Africa", "Togo is the country, which lies in West Africa.", None, RIGHT),
    ("text", "Sir Isaac Newton", "Isaac Newton", None, RIGHT),
    ("text", "Sir Isaac Newton", "It was found by Isaac Newton.", None, RIGHT),
    ("text", "Sir Isaac Newton", "Isaac Barrow", None, WRONG),
    ("text", "Queen Victoria", "Queen Anne", None, WRONG),
    ("text", "Jane Austen", "It was written by Austen.", None, NONE),
    ("text", "Arthur Conan Doyle", "Holmes, a creation of Conan Doyle.", None, NONE),
    ("text", "Jane Austen", "It was written by Mary Austen.", None, WRONG),
    ("text", "Marie Sklodowska Curie", "Pierre Curie", None, WRONG),
    ("text", "Marie Sklodowska Curie", "Madame Curie", None, NONE),
    ("text", "Pacific Ocean", "The Pacific", "Which ocean is the largest?", RIGHT),
    ("text", "Pacific Ocean", "The largest one is the Pacific.", "Which ocean is the largest?", RIGHT),
    ("text", "Pacific Ocean", "The Atlantic", "Which ocean is the largest?", WRONG),
    ("text", "Mount Everest", "Everest", "What is the highest mountain?", RIGHT),
    ("text", "Lake Victoria", "Victoria", "Who was the queen?", NONE),
    ("text", "Red Sea", "Red", "Which sea lies east of Egypt?", OPEN),
    ("text", "Hungary", "Austria-Hungary", "Which country is it?", OPEN),
    ("text", "Hungary", "Vienna - Hungary", "Which country is it?", RIGHT),
    ("text", "Hungary", "It was in Austria-Hungary, today Hungary.", "Which country is it?", RIGHT),
    ("text", "cold", "Ice-cold", "What is the opposite of hot?", RIGHT),
]
_PROGRAM = "```python\nrows = 6\nprice = 7\nanswer = rows * price\nprint(answer){}\n```"
DATES = [
    ("date", "1969", "'69", None, RIGHT),
    ("date", "1869", "nineteen sixty-nine", None, WRONG),
    ("date", "1969", "It was in nineteen sixty-nine.", None, RIGHT),
    ("date", "3 May 1969", "on the third of May, 1969", None, RIGHT),
    ("date", "23 May 1969", "May twenty-third, 1969", None, RIGHT),
    ("date", "23 May 1969", "May third, 1969", None, WRONG),
    ("date", "1969", "It may first have come up in 1969.", None, RIGHT),
    ("date", "2005", "two thousand and five", None, RIGHT),
    ("date", "1969", "It had sixty-nine members.", None, NONE),
    ("text", "1969", "Nineteen sixty-nine.", None, RIGHT),
    ("date", "15 April 1912", "15 April 1912", None, RIGHT),
    ("date", "15 April 1912", "It sank on the night of 14\u201315 April 1912.", None, NONE),
    ("date", "14 April", "14-15 April", None, NONE),
    ("date", "14 April", "It is the 14th of April.", None, RIGHT),
    ("date", "14 April 1912", "April 14 or 15, 1912", None, NONE),
    ("date", "15 April 1912", "14/15 April 1912", None, NONE),
    ("date", "16 April 1912", "April 14 or 15, 1912", None, WRONG),
]
NO_ANSWERS = [
    ("text", "Oslo", "I do not have information about that.", None, ABSTAIN),
    ("text", "Oslo", "I'm sorry, but I have no information on this topic.", None, ABSTAIN),
    ("text", "Oslo", "I do not have reliable data, but I think it is Oslo.", None, RIGHT),
    ("number", "42", _PROGRAM.format(""), None, NONE),
    ("number", "7", _PROGRAM.format(""), None, NONE),
    ("number", "42", f"Here is a program:\n\n{_PROGRAM.format('')}\n\nThe result is 42.", None, RIGHT),
    ("number", "42", f"Here is a program:\n\n{_PROGRAM.format('')}\n\nOutput:\n\n```\n42\n```", None, RIGHT),
    ("number", "42", _PROGRAM.format("  # Output: 42"), None, RIGHT),
    ("number", "42", _PROGRAM.format("  # Output: 43"), None, WRONG),
    ("number", "42", "```\n6 * 7 = 42\n```", None, RIGHT),
    ("number", "42", "```python\n42\n```", None, RIGHT),
]
_LONGER = "Is the Nile longer than the Rhine?"
_MORE = "Do more people live in Canada than in Poland?"
BOOLEANS = [
    ("boolean", "no", "It isn't.", "Is 91 prime?", RIGHT),
    ("boolean", "no", "They can't.", "Can pigs fly?", RIGHT),
    ("boolean", "no", "So he did not; he walked.", "Did he ride?", RIGHT),
    ("boolean", "no", "They do.", "Do pigs fly?", WRONG),
    ("boolean", "yes", "That is, yes.", "Do pigs fly?", RIGHT),
    ("boolean", "yes", "The Nile is longer.", _LONGER, RIGHT),
    ("boolean", "yes", "The Rhine is longer.", _LONGER, WRONG),
    ("boolean", "yes", "The Rhine is longer than the Nile.", _LONGER, WRONG),
    ("boolean", "yes", "The Nile is shorter than the Rhine.", _LONGER, WRONG),
    ("boolean", "yes", "The Nile is not longer.", _LONGER, OPEN),
    ("boolean", "yes", "The Rhine is not longer than the Nile.", _LONGER, NONE),
    ("boolean", "yes", "The Nile is longer than the Amazon.", _LONGER, NONE),
    ("boolean", "yes", "The Nile is 6,650 km long, the Rhine 1,230 km.", _LONGER, NONE),
    ("boolean", "yes", "More people live in Poland than in Canada.", _MORE, WRONG),
    ("boolean", "yes", "Fewer people live in Canada than in Poland.", _MORE, WRONG),
    ("boolean", "yes", "More people live in Canada.", _MORE, RIGHT),
    ("boolean", "yes", "Rome fell before Oslo was built.", "Did Rome fall before Oslo was built?", RIGHT),
    ("boolean", "yes", "Rome fell after Oslo was built.", "Did Rome fall before Oslo was built?", WRONG),
    ("boolean", "no", "Kilimanjaro is higher.", "Is Mount Kenya higher than Kilimanjaro?", RIGHT),
    ("boolean", "no", "Mount Kenya is higher.", "Is Mount Kenya higher than Kilimanjaro?", WRONG),
    ("boolean", "no", "Kilimanjaro is a mountain.", "Is Mount Kenya higher than Kilimanjaro?", NONE),
    ("boolean", "no", "9 is 12.", "Is 9 larger than 12?", NONE),
    ("boolean", "no", "Bach died after Mozart was born.", "Did Bach die before Mozart was born?", RIGHT),
]
COUNTS = [
    ("number", "4", "Four of the eight planets have rings.", None, RIGHT),
    ("number", "8", "Four of the eight planets have rings.", None, WRONG),
    ("number", "8", "100% of the 8 planets have rings.", None, RIGHT),
    ("number", "15", "15 of the 20 seats are free.", None, RIGHT),
    ("number", "15", "Out of 20 seats, 15 are free.", None, RIGHT),
    ("number", "0.75", "15 out of 20", None, RIGHT),
    ("number", "0.8", "15 out of 20", None, WRONG),
    ("number", "25", "20 of 80 is 25%", None, RIGHT),
    ("number", "4", "5% of 80 is 4.", None, RIGHT),
]
_RIVER = "Which river flows through Vienna?"
MORE = [
    ("number", "-6", "It was six degrees below zero.", None, RIGHT),
    ("number", "6", "It was six degrees below zero.", None, WRONG),
    ("number", "2.5", "two hours and a half", None, RIGHT),
    ("number", "90", "an hour and a half", "How many minutes does it take?", RIGHT),
    ("number", "90", "an hour and a quarter", "How many minutes does it take?", WRONG),
    ("number", "2.5", "2h30", None, RIGHT),
    ("number", "30", "Ann has 30 pens and Bo has 12, which makes 42.", "How many pens has Ann and Bo?", OPEN),
    ("number", "0.2", "one in five", None, RIGHT),
    ("number", "12", "12 apples in 3 boxes", None, OPEN),
    ("number", "1999", "It joined the other 500 in 1999.", None, {"correct", "invalid"}),
    ("list", "red, blue", "In this picture these are red and blue.", None, RIGHT),
    ("list", "red, blue", "In this picture these are red and green.", None, WRONG),
    ("text", "Io", "It has two moons, Io and Leda. The larger one is Io.", None, RIGHT),
    ("text", "Leda", "It has two moons, Io and Leda. The larger one is Io.", None, OPEN),
    ("text", "Danube", "The Danube Canal", _RIVER, OPEN),
    ("text", "Danube", "The Danube River", _RIVER, RIGHT),
    ("text", "Oxford", "Oxford University", "Which university is the oldest?", RIGHT),
    ("text", "Oxford", "Oxford University", "In which city was he born?", OPEN),
    ("text", "2:5", "The ratio is 2 to 5.", None, RIGHT),
    ("text", "2:5", "The ratio is 5 to 2.", None, WRONG),
]
OWN = [
    ("number", "15", "A) 12\nB) 15\nC) 18\n\nAnswer: B", "How many?", RIGHT),
    ("number", "15", "A) 12\nB) 15\nC) 18\n\nAnswer: C", "How many?", WRONG),
    ("text", "Rome", "(A) Paris (B) Rome\nThe answer is (B).", "Which city?", RIGHT),
    ("text", "B", "A) Paris\nB) Rome\n\nAnswer: B", "Which letter?\nA) Paris\nB) Rome", RIGHT),
]
_GASES = (("A", "oxygen"), ("B", "nitrogen"), ("C", "carbon dioxide"), ("D", "argon"))


BIG_APPLE, FROM = "In which US state is New York City?", "Which country did the person who painted it come from?"
LATER, SUN = "What date is 14 days after 5 March 2024?", "Is it true that the Sun moves around the Earth?"
NICE, EGGS = "Is the capital of France larger than the city of Nice?", "Which lays eggs? (A) cow (B) hen (C) dog (D) ox"
# of small models: asked and judged before any was graded, or with only the decisive word changed
SMALL = [
    ("text", "New York", "New York City is the capital of the USA and lies in the north-east.", BIG_APPLE, NONE),
    ("text", "New York", "New York City is in the state of New York.", BIG_APPLE, RIGHT),
    ("text", "New York", "New York City is the largest city of New York State.", BIG_APPLE, RIGHT),
    ("text", "Paris", "The Paris Marathon takes place in Paris.", "Where is the Paris Marathon held?", RIGHT),
    ("text", "Japan", "It was a Japanese artist named Takashi Kobayashi.", FROM, RIGHT),
    ("text", "Spain", "Picasso was a Spanish artist. He was born in Malaga, Spain.", FROM, RIGHT),
    ("text", "Germany", "She was a French composer of the Baroque era.", FROM, WRONG),
    ("text", "France", "He was a French painter, born in Paris.", FROM, NONE),
    ("text", "France", "He was French.", FROM, RIGHT),
    ("text", "France", "It was probably a Frenchman named Martin.", FROM, RIGHT),
    ("text", "France", "It was probably a Dutchman named Martin.", FROM, WRONG),
    ("text", "Germany", "The person is Kepler, a German astronomer who lived from 1609 to 1610.", FROM, NONE),
    ("text", "France", "People think he was a French painter, but he was Belgian.", FROM, OPEN),
    ("text", "France", "He was a French and Polish painter.", FROM, NONE),
    ("text", "France", "He was a Polish-born French painter.", FROM, OPEN),
    ("text", "France", "He was born in the French city of Marselle.", FROM, NONE),
    ("text", "Japan", "It was a Japanese artist.", "In which country is the picture?", NONE),
    ("date", "2024-03-19", "March 19", LATER, RIGHT),
    ("date", "2024-03-19", "It is the 19th of March.", LATER, RIGHT),
    ("date", "2024-03-19", "March 29", LATER, WRONG),
    ("date", "2024-03-19", "19 March 2023", LATER, WRONG),
    ("date", "2024-03-19", "March 19", "When was the meeting?", WRONG),
    ("date", "2024-01-04", "4 January", "Which date is a week after 28 December 2023?", RIGHT),
    ("boolean", "no", "The answer is: The Sun does not move around the Earth.", SUN, RIGHT),
    ("boolean", "no", "The Sun moves around the Earth in a circle.", SUN, WRONG),
    ("boolean", "no", "The Sun goes around the Earth.", "Does the Sun go around the Earth?", WRONG),
    ("boolean", "yes", "The capital of France is Paris, which is larger than Nice.", NICE, RIGHT),
    ("boolean", "yes", "The capital of France is not larger than Nice.", NICE, WRONG),
    ("number", "15", "3 times 4 or 15", "Which is larger: 3 times 4 or 15?", NONE),
    ("text", "Venus", "Venus or Earth\n\nQuestion:", "Which is closer, Venus or Earth?", NONE),
    ("choice", "D", "The answer is (C) hen.", EGGS, WRONG),
    ("choice", "C", "The answer is (C) hen.", EGGS, NONE),
    ("choice", "B", "The answer is (C) hen.", EGGS, NONE),
]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("The second one.", RIGHT),
        ("It's the third option.", WRONG),
        ("The last one.", WRONG),
        ("The second one, since it is inert.", RIGHT),
        ("The second reason is the pressure.", OPEN),
        ("The sixth one.", NONE),
        ("Nitrogen makes up the largest part, more than oxygen and carbon dioxide.", RIGHT),
        ("Although oxygen is needed more, it is nitrogen.", RIGHT),
        ("Oxygen, unlike nitrogen.", WRONG),
        ("Oxygen and nitrogen.", NONE),
        ("It is not oxygen, although there is more of it than nitrogen.", OPEN),
    ],
)
def test_an_option_is_named_by_its_place_or_beside_those_that_it_is_compared_with(
    response: str, expected: set[str]
) -> None:
    assert grade(response, "stop", "B", "choice", options=_GASES).outcome in expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("John F. Kennedy", RIGHT),
        ("Kennedy", RIGHT),
        ("It was President Kennedy.", RIGHT),
        ("Robert F. Kennedy", OPEN),
        ("Robert Kennedy", OPEN),
    ],
)
def test_a_surname_among_the_aliases_is_not_that_of_another_person(response: str, expected: set[str]) -> None:
    assert grade(response, "stop", "John F. Kennedy", "text", ("Kennedy",)).outcome in expected


@pytest.mark.parametrize(
    ("answer_type", "gold", "response", "question", "expected"),
    [*QUANTITIES, *POLITE, *STATED, *NAMES, *DATES, *NO_ANSWERS, *BOOLEANS, *COUNTS, *MORE, *OWN, *SMALL],
)
def test_an_answer_in_an_unforeseen_wording_is_graded_as_a_reader_would(
    answer_type: str, gold: str, response: str, question: str | None, expected: set[str]
) -> None:
    result = grade(response, "stop", gold, answer_type, question=question)
    assert result.outcome in expected, result
