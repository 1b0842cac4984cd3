"""Answers that a rule decides, each beside the like answer that the same rule could get wrong."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, OPEN = {"correct"}, {"incorrect"}, {"invalid"}
NOT_RIGHT, NOT_WRONG = {"incorrect", "invalid"}, {"correct", "invalid"}

# (answer type, gold, response, question or None, expected)
NUMBERS = [
    ("number", "1.5 hours", "One and a half hours.", None, RIGHT),
    ("number", "1.5", "one and a half", None, RIGHT),
    ("number", "1.5", "one half", None, WRONG),
    ("number", "0.5", "one half", None, RIGHT),
    ("number", "0.5", "one and a half", None, WRONG),
    ("number", "1.25", "one and a quarter", None, RIGHT),
    ("number", "33.33", "33 1/3 %", None, RIGHT),
    ("number", "33.33", "(10 / 30) \u00d7 100 = 33.333...%", None, RIGHT),
    ("number", "33.33", "\\frac{10}{30} \\times 100 = 33.\\overline{3}", None, RIGHT),
    ("number", "66.67", "66.666667", None, RIGHT),
    ("number", "33.33", "33.34", None, WRONG),
    ("number", "33.33", "33.3334", None, OPEN),
    # in another unit
    ("number", "1.11 hours", "66.666666 minutes", None, RIGHT),
    ("number", "1.11 hours", "66.777777 minutes", None, WRONG),
    ("number", "1.667", "1666.66666 m", "How many km is it?", RIGHT),
    ("number", "1.667", "1667.66666 m", "How many km is it?", WRONG),
    ("text", "H2O", "H_2O", None, RIGHT),
    ("text", "C6H12O6", "$C_6H_{12}O_6$", None, RIGHT),
    ("text", "CO2", "CO_3", None, WRONG),
    ("number", "3.14", "3.14159", None, OPEN),
    ("number", "0.33", "1/3", None, OPEN),
    ("number", "3.7", "3.76", None, WRONG),
    ("number", "12", "12.4", None, WRONG),
    ("number", "12.5", "12.49", None, WRONG),
    ("number", "0.8", "0.7985", "What is the ratio, to two decimal places?", OPEN),
    ("number", "0.8", "0.79", "What is the ratio, to two decimal places?", WRONG),
    ("number", "43", "60 less 17 were left, so Alex now has forty-three (43) pencils.", None, RIGHT),
    ("number", "43", "forty (43)", None, WRONG),
    ("number", "45", "12:15 - 11:30 = 0:45 \u2192 45 minutes", None, RIGHT),
    ("number", "12", "12 \u2192 24", None, NOT_RIGHT),
    ("number", "77.5", "She receives $77.50, which is $46.50 more than it cost.", None, RIGHT),
    ("number", "46.5", "She receives $77.50, which is $46.50 more than it cost.", None, NOT_RIGHT),
    ("number", "238.80", "Approximately 239 euros (exactly \u20ac238.80).", None, RIGHT),
    ("number", "238.80", "Approximately 239 euros (exactly \u20ac239.20).", None, WRONG),
    ("number", "77.5", "She receives 31 dollars. 2.5 times would be 77.5, but this is not allowed.", None, WRONG),
    ("number", "31", "She receives 31 dollars. 2.5 times would be 77.5, but this is not allowed.", None, RIGHT),
    ("number", "17", "It would be 20, but she gave 3 away, so it is 17.", None, RIGHT),
    ("number", "20", "That would be 20, but I am not sure.", None, RIGHT),
]

HOURS = "Two pumps fill a pool. How many hours do they need together?"
BUS = "How long does the bus take if it leaves at 8:50 and arrives at 10:05? Answer in minutes."
WEEKS = "They want to save $12,000, have $7,400 and save $230 every week. How many weeks do they need?"
SPENT = "How much did it spend (in USD millions)?"
UNITS = [
    ("number", "1577", "It spent $1,577 million.", SPENT, RIGHT),
    ("number", "1577", "$1.577 billion", SPENT, RIGHT),
    ("number", "1577", "$1,577 billion", SPENT, WRONG),
    ("number", "1577", "$1,577 million", "How much did it spend?", WRONG),
    ("number", "59", "The population is 59 million.", "What is the population of Italy, in millions?", RIGHT),
    ("number", "2000", "2,000,000", "How many thousands are in two million?", WRONG),
    ("number", "382", "$381.6 million", SPENT, OPEN),
    ("number", "382", "$382.6 million", SPENT, WRONG),
    ("number", "2", "9600/80 = 120, so they need 120 minutes, which is 1.2 hours.", HOURS, WRONG),
    ("number", "2", "120 minutes, or 2.5 hours", HOURS, NOT_RIGHT),
    ("number", "2", "120 minutes (2 hours)", HOURS, RIGHT),
    ("number", "2", "They need 120 minutes, which is 2 hours.", HOURS, RIGHT),
    ("number", "2", "120 minutes", HOURS, RIGHT),
    ("number", "2.67", "8/3 hours", HOURS, RIGHT),
    ("number", "2.67", "2 hours and 40 minutes", HOURS, RIGHT),
    ("number", "2.67", "240/90 = 2.666... hours", HOURS, RIGHT),
    ("number", "2.67", "8/3 minutes", HOURS, WRONG),
    ("number", "2.67", "160 minutes, which is 1.6 hours", HOURS, WRONG),
    ("number", "2.67", "2 hours and 45 minutes", HOURS, WRONG),
    ("number", "2.76", "240/90 = 2.666... hours", HOURS, WRONG),
    ("number", "75", "1:15", BUS, OPEN),
    ("number", "75", "1:05", BUS, WRONG),
    ("number", "75", "10:05", BUS, WRONG),
    ("number", "20", "They need 20 weeks to save the remaining $4,600.", WEEKS, RIGHT),
    ("number", "20", "They need 21 weeks to save the remaining $4,600.", WEEKS, WRONG),
]
FILM = "A film starts at 19:50 and ends at 22:05. How long is it?"
COMPOUND = [
    ("text", "2 hours 15 minutes", "The film is 2 hours and 15 minutes long.", FILM, RIGHT),
    ("text", "2 hours 15 minutes", "2h 15m", FILM, RIGHT),
    ("text", "2 hours 15 minutes", "135 min (2 h 15 min)", FILM, RIGHT),
    ("text", "2 hours 15 minutes", "Two and a quarter hours.", FILM, RIGHT),
    ("text", "2 hours 15 minutes", "2:15", FILM, OPEN),
    ("text", "2 hours 15 minutes", "The film is 2 hours and 5 minutes long.", FILM, WRONG),
    ("text", "2 hours 15 minutes", "2.15 hours", FILM, WRONG),
    ("text", "2 hours 15 minutes", "15 minutes", FILM, WRONG),
    ("text", "6 feet 8 inches", "The door is 80 inches tall.", "How tall is the door?", RIGHT),
    ("text", "6 feet 8 inches", "8 feet 6 inches", "How tall is the door?", WRONG),
    ("text", "2 kg 300 g", "2.3 kg", "How heavy is the parcel?", RIGHT),
    ("text", "2 kg 300 g", "2.03 kg", "How heavy is the parcel?", WRONG),
]
WAR = "Between which years was the war?"
SPANS = [
    ("text", "1939-1945", "1939 to 1945", WAR, RIGHT),
    ("text", "1939-1945", "From 1939 until 1945.", WAR, RIGHT),
    ("text", "1939\u20131945", "World War II took place between 1939 and 1945.", WAR, RIGHT),
    ("text", "1939-1945", "1941 to 1945", WAR, WRONG),
    ("text", "1939-1945", "It lasted from 1941 until 1945.", WAR, WRONG),
    ("text", "1939-1945", "Not from 1939 to 1945.", WAR, WRONG),
    ("text", "1939-1945", "It is between 1939 to 1945 and 1941 to 1945.", WAR, NOT_RIGHT),
]
WHALE = "Who wrote the novel in which Ahab hunts a whale?"
MOTORCYCLES = "A parking lot holds 45 vehicles, cars and motorcycles. How many are motorcycles?"
HENS = "A farm has hens and goats with 40 legs. How many hens are there?"
THINGS = [
    ("number", "13", "13 motorcycles and 32 cars", MOTORCYCLES, RIGHT),
    ("number", "13", "32 motorcycles and 13 cars", MOTORCYCLES, WRONG),
    ("number", "13", "There are 13 motorcycles and 32 cars in the parking lot.", MOTORCYCLES, RIGHT),
    ("number", "13", "There are 32 motorcycles and 13 cars in the parking lot.", MOTORCYCLES, WRONG),
    ("number", "13", "- Motorcycles: 13\n- Cars: 32", MOTORCYCLES, RIGHT),
    ("number", "13", "- Motorcycles: 32\n- Cars: 13", MOTORCYCLES, WRONG),
    ("number", "13", "**Cars:** 45 - 13 = 32\n**Motorcycles:** 13", MOTORCYCLES, RIGHT),
    ("number", "8", "Goats: 6\nHens: 8\nTotal: 14", HENS, RIGHT),
    ("number", "8", "Goats: 8\nHens: 6", HENS, WRONG),
]
BENELUX = "What were the countries of the Benelux in 1960?"
IN_1960, MEMBERS = "In 1960, they were Belgium, the Netherlands, and ", "Belgium, Netherlands, Luxembourg"
SETTINGS = [
    ("list", MEMBERS, IN_1960 + "Luxembourg.", BENELUX, RIGHT),
    ("list", MEMBERS, "Historically, the members are Belgium, Luxembourg, and the Netherlands.", BENELUX, RIGHT),
    ("list", MEMBERS, IN_1960 + "France.", BENELUX, WRONG),
    ("list", MEMBERS, "In Germany, Belgium, the Netherlands, and Luxembourg.", BENELUX, NOT_RIGHT),
    ("ordered-list", "2, 5, 9", "In ascending order, the numbers are 2, 5, 9.", None, RIGHT),
    ("ordered-list", "2, 5, 9", "In ascending order, the numbers are 2, 9, 5.", None, WRONG),
]
NAMES = [
    ("text", "Richard Nixon", 'That would be Richard "Tricky Dick" Nixon.', None, RIGHT),
    ("text", "Richard Nixon", "It was Richard (Dick) Nixon.", None, RIGHT),
    ("text", "Richard Nixon", 'It was Pat "Tricky" Nixon.', None, NOT_RIGHT),
    ("text", "Richard Nixon", 'It was not Richard "Tricky Dick" Nixon.', None, WRONG),
    ("text", "Herman Melville", "Nathaniel Hawthorne, to whom it was dedicated by Herman Melville", WHALE, NOT_RIGHT),
    ("text", "Herman Melville", "Moby-Dick, in which Ahab hunts it, is by Herman Melville.", WHALE, RIGHT),
    ("text", "Herman Melville", "Herman Melville, to whom Hawthorne was a friend", WHALE, RIGHT),
    ("text", "Martin Luther King", "Martin Luther King Jr. was it.", None, RIGHT),
    ("text", "New York", "New York City is the largest.", None, RIGHT),
]
RANK = "Rank these events from earliest to latest: A) landing, B) fall, C) revolution, D) war."
OPTIONS = "Rank these events:\nA. landing\nB. fall\nC. war"
KNOWN = "A is 1969, B is 1989, C is 1789 and D is 1914.\n\n"
BORDERS = "Which country borders both Spain and Italy?"
CONCEDED = [
    ("text", "France", "France, although Andorra and Monaco lie in between.", BORDERS, RIGHT),
    ("text", "France", "Although Spain and Italy are close, only France borders both of them.", BORDERS, RIGHT),
    ("text", "France", "The country, although smaller than Ukraine, is France.", BORDERS, RIGHT),
    ("text", "France", "Portugal, although most of the border of Spain is with France, which is larger.", BORDERS,
     NOT_RIGHT),
    ("text", "France", "Switzerland, even though France borders Italy.", BORDERS, NOT_RIGHT),
    ("text", "France", "Switzerland, although it does not touch Spain, which borders France.", BORDERS, NOT_RIGHT),
]  # fmt: skip
DAY = "What day of the week is it if yesterday was Monday?"
COUNTED_FROM = [
    ("text", "Tuesday", "It is the day after Monday, so it is Tuesday.", DAY, RIGHT),
    ("text", "Tuesday", "It is Tuesday, the day before Wednesday.", DAY, RIGHT),
    ("text", "Tuesday", "It is the day after Tuesday, Wednesday.", DAY, NOT_RIGHT),
    ("text", "Tuesday", "It is the day before Tuesday.", DAY, NOT_RIGHT),
    ("text", "Tuesday", "Two days after Tuesday", DAY, NOT_RIGHT),
]
RENAMED = [
    ("text", "Germany", "He was born in Bonn, in the Electorate of Cologne (now Germany).", None, RIGHT),
    ("text", "Istanbul", "Constantinople (now called Istanbul)", None, RIGHT),
    ("text", "Germany", "He was born in Vienna, Austria (not in Germany).", None, NOT_RIGHT),
    ("text", "Istanbul", "Ankara (next to Istanbul)", None, NOT_RIGHT),
    ("text", "King Charles III", "His Majesty Charles III", None, RIGHT),
    ("text", "Tsar Nicholas II", "It was Emperor Nicholas II, who abdicated.", None, RIGHT),
    ("text", "Tsar Nicholas II", "Emperor Alexander III, the father of Nicholas II", None, NOT_RIGHT),
]
OFFICE = "Who was the prime minister of the United Kingdom when World War I began?"
IN_OFFICE = [
    ("text", "H. H. Asquith",
     "It began on July 28, 1914, when H. H. Asquith was the prime minister of the United Kingdom.", OFFICE, RIGHT),
    ("text", "H. H. Asquith", "It began in 1914, when H. H. Asquith was serving as prime minister.", OFFICE, RIGHT),
    ("text", "H. H. Asquith", "It began in 1914, when H. H. Asquith was deputy prime minister.", OFFICE, NOT_RIGHT),
    ("text", "H. H. Asquith", "It began in 1914, when David Lloyd George was prime minister, not H. H. Asquith.",
     OFFICE, NOT_RIGHT),
]  # fmt: skip
CODE = "What does print('ab' * 2) print in Python?"
BELOW = [
    ("text", "abab", "The output of the code is:\n\n```python\nabab\n```\n\nThis is because `*` repeats a string.",
     CODE, RIGHT),
    ("text", "abab", "The code prints:\n\n```\nabab\n```", CODE, RIGHT),
    ("text", "abab", "The code prints:\n\n```\naabb\n```", CODE, WRONG),
    ("text", "Lima", "The capital of Peru is:\n\n- **Lima**", None, RIGHT),
    ("text", "Lima", "The capital of Peru is:\n\n- **Cusco**\n- not Lima", None, NOT_RIGHT),
]  # fmt: skip
ROUNDED = [
    ("number", "10/3", "Each piece is approximately 3.33 m long.", None, RIGHT),
    ("number", "10/3", "Each piece is 10/3 metres, or about 3.33 metres, for a rope of 10 metres.", None, RIGHT),
    ("number", "50/7", "about 7.14", None, RIGHT),
    ("number", "10/3", "Each piece is about 3.34 m long.", None, WRONG),
    ("number", "10/3", "3.3 m", None, WRONG),
    ("number", "50/7", "about 7.15", None, WRONG),
]
PRIME = "Is 51 a prime number?"
CONCLUDED = [
    ("boolean", "no", "To determine if 51 is prime, we check its divisors. 51 = 3 × 17. So 51 is not prime.", PRIME,
     RIGHT),
    ("boolean", "no", "A prime has two divisors. 51 has more: 3 and 17. Thus, 51 is not prime.", PRIME, RIGHT),
    ("boolean", "no",
     "To determine if 51 is prime, we check its divisors. 51 is not divisible by 2, 5 or 7. So 51 is prime.", PRIME,
     WRONG),
    ("boolean", "no",
     "Let's check whether 51 is a prime number. We try 2, 5, and 7. None divides it. Therefore, it is prime.", PRIME,
     WRONG),
    ("boolean", "no", "Let us check. It is odd. So let us see whether 51 is prime.", PRIME, NOT_RIGHT),
]  # fmt: skip
ROOT = "What is the cube root of 512?"
REASONED = [
    ("number", "8", "The cube root of 512 is 8, since 8³ = 512 and 7³ = 343.", ROOT, RIGHT),
    ("number", "8", "The cube root of 512 is 8 because 8 × 8 × 8 = 512, whereas 9 × 9 × 9 = 729.", ROOT, RIGHT),
    ("number", "8", "Since 8 × 8 × 8 = 512, the cube root is 8.", ROOT, RIGHT),
    ("number", "8", "The cube root of 512 is 9, since 9³ = 729.", ROOT, WRONG),
    ("number", "8", "The cube root of 512 is 64, since 64 × 8 = 512.", ROOT, NOT_RIGHT),
]
WHEELS = "How many wheels do the trains have in all?"
BREAKDOWN = [
    ("number", "24", "There are 24 wheels on the tracks in this scene: 8 per train.", WHEELS, RIGHT),
    ("number", "24", "The trains have 24 wheels in all: 12 on each of them.", WHEELS, RIGHT),
    ("number", "24", "There are 16 wheels on the tracks: 8 per train.", WHEELS, WRONG),
    ("number", "24", "The trains have 12 wheels: 24 are listed for each pair.", WHEELS, NOT_RIGHT),
]
CIVIL = "In which year did the American Civil War end?"
AKBAR = "In what year was Akbar born?"
FROM_TO = [
    ("date", "1865", "The American Civil War lasted from 1861 to 1865.", CIVIL, RIGHT),
    ("date", "1865", "The American Civil War (1861–1865) was fought between North and South.", CIVIL, RIGHT),
    ("date", "1865", "The war lasted from 1861 to 1866.", CIVIL, WRONG),
    ("date", "1865", "The war lasted from 1865 to 1869.", CIVIL, NOT_RIGHT),
    ("date", "1556", "Akbar reigned from 1556 to 1605.", "In what year did the reign of Akbar begin?", RIGHT),
    ("date", "1542", "Akbar lived from 1542 to 1605.", AKBAR, RIGHT),
    ("date", "1542", "Akbar reigned from 1542 to 1605.", AKBAR, NOT_RIGHT),
]
BOILING = "What is the boiling point of ethanol in degrees Celsius?"
FIELDS = [
    ("number", "78", "Substance: ethanol\nBoiling point: 78 °C\nMelting point: -114 °C", BOILING, RIGHT),
    ("number", "78", "Substance: ethanol\nBoiling point: 65 °C\nMelting point: -114 °C", BOILING, WRONG),
    ("number", "78", "Substance: ethanol\nMelting point: 78 °C\nBoiling point: 65 °C", BOILING, NOT_RIGHT),
    ("number", "24060", "The town has 24 060 inhabitants.", None, RIGHT),
    ("number", "24060", "The town has 42 060 inhabitants.", None, WRONG),
    ("number", "24060", "24 inhabitants, 060 of them old", None, NOT_RIGHT),
]
IN_WORDS = [
    ("text", "3:5", "The ratio is three to five.", None, RIGHT),
    ("text", "3:5", "three to five", None, RIGHT),
    ("text", "3:5", "five to three", None, WRONG),
    ("text", "3:5", "The ratio is three to four.", None, WRONG),
]
UPPER = "What does print('Nile'.upper()) print?"
CASES = [
    ("text", "NILE", "It prints `NILE`.", UPPER, RIGHT),
    ("text", "NILE", "nile", UPPER, WRONG),
    ("text", "NILE", "The output is:\n```\nnile\n```", UPPER, WRONG),
    ("text", "RIVER", "The word is **RIVER**.", "Write river in capital letters.", RIGHT),
    ("text", "RIVER", "River", "Write river in capital letters.", WRONG),
    ("text", "Oslo", "OSLO", "What is the capital of Norway?", RIGHT),
]
ELSEWHERE = [
    ("date", "2023-03-01", "It is 1 March 2023, while in a leap year it would be 29 February 2023.", None, RIGHT),
    ("date", "2023-03-01", "It is 2 March 2023, while in a leap year it would be 1 March 2023.", None, NOT_RIGHT),
    ("date", "2023-03-01", "28 February 2023 plus one day would be 1 March 2023.", None, RIGHT),
    ("number", "28", "It has 28 days, while in a leap year it would be 29.", None, RIGHT),
    ("number", "28", "It has 29 days, while in a normal year it would be 28.", None, NOT_RIGHT),
]
FALL = "What was the percentage decrease when the price fell from $50 to $30?"
SHARES = [
    ("number", "40", "The price fell by two fifths (40 percent).", FALL, RIGHT),
    ("number", "40", "0.4, or 40%", FALL, RIGHT),
    ("number", "40", "0.6, or 60%", FALL, WRONG),
    ("number", "40", "It fell by three fifths (60 percent).", FALL, WRONG),
]
LETTERS = [
    ("ordered-list", "C, D, A, B", "C D A B", RANK, RIGHT),
    ("ordered-list", "C, D, A, B", "CDAB", RANK, RIGHT),
    ("ordered-list", "C, D, A, B", "So the answer is CDAB.", RANK, RIGHT),
    ("ordered-list", "C, D, A, B", "CDBA", RANK, WRONG),
    ("ordered-list", "C, D, A, B", "C D A", RANK, WRONG),
    ("ordered-list", "C, D, A, B", f"{KNOWN}Final order: **C, D, A, B**", RANK, RIGHT),
    ("ordered-list", "C, D, A, B", f"{KNOWN}Final order: **C, D, B, A**", RANK, NOT_RIGHT),
    ("ordered-list", "C, D, A, B", f"{KNOWN}Reverse order: C, D, A, B", RANK, NOT_RIGHT),
    ("ordered-list", "C, A, B", "war, landing, fall", OPTIONS, RIGHT),
    ("ordered-list", "C, A, B", "1. War\n2. Landing\n3. Fall", OPTIONS, RIGHT),
    ("ordered-list", "C, A, B", "landing, war, fall", OPTIONS, WRONG),
    ("ordered-list", "C, A, B", "war, landing, peace", OPTIONS, WRONG),
    ("ordered-list", "C, A, B", "A: 1969, B: 1989, C: 1914\n\nOrder: C, A, B", OPTIONS, RIGHT),
    ("ordered-list", "C, A, B", "A: 1969, B: 1989, C: 1914\n\nOrder: C, B, A", OPTIONS, NOT_RIGHT),
    ("ordered-list", "C, A, B", "A: C, A, B\n\nQ: Which is next?\nA: B", OPTIONS, RIGHT),
    ("list", "hen, fox", "A: hen, fox", None, RIGHT),
    ("list", "NASA, ESA", "NASA and ESA", None, RIGHT),
    ("list", "NASA, ESA", "N, A, S, A, E, S, A", None, WRONG),
]
BAGS = "Sam has 7 bags with 8 marbles each. He loses 6 marbles. How many marbles does he have?"
BORN = "In which year was the author of 'Nineteen Eighty-Four' born?"
WORKED = [
    ("number", "50", "50 marbles\nSolution:\nSam has 7 * 8 = 56. After losing 6 he has 56 - 6 = 50.", BAGS, RIGHT),
    ("number", "56", "Answer: Sam has 7 * 8 = 56. After losing 6 he has 56 - 6 = 50.", BAGS, NOT_RIGHT),
    ("number", "50", "Answer: Sam has 7 * 8 = 56. After losing 6 he has 56 - 6 = 49.", BAGS, WRONG),
    ("number", "50", "Answer: He has 56 - 6 = 50 marbles. Check: 50 + 6 = 56.", BAGS, RIGHT),
    ("number", "50", "Answer: He has 56 - 6 = 50 marbles. 7 * 8 = 56.", BAGS, RIGHT),
    ("number", "1903", "George Orwell (1903\u20131950)", BORN, RIGHT),
    ("number", "1950", "George Orwell (1903\u20131950)", "In which year did George Orwell die?", RIGHT),
    ("number", "1903", "George Orwell (1903\u20131950)", "In which year did George Orwell die?", WRONG),
    ("number", "1903", "George Orwell (1905\u20131950)", BORN, WRONG),
    ("number", "1903", "George Orwell (25 June 1903 \u2013 21 January 1950)", BORN, RIGHT),
    ("number", "1903", "George Orwell (25 June 1905 \u2013 21 January 1950)", BORN, WRONG),
    ("number", "1903", "between 1903 and 1950", BORN, NOT_RIGHT),
]
LOOP = "4,600 / 230 = 20 weeks.\n\n**Final Answer: 20**\n\n**Final Answer: 20**\n\n**Final Answer:"


DEGREES = "What is the boiling point of water in degrees Celsius?"
KILOMETRES = "How far is it, in kilometres?"
WRITTEN = [
    ("number", "5", "5 nm", "How far in nautical miles?", RIGHT),
    ("text", "France", "Pas-de-Calais is in France.", "In which country is Pas-de-Calais?", RIGHT),
    ("text", "Germany", "It lies in NE Germany.", "In which country?", RIGHT),
    ("text", "Myanmar", "Ne Win ruled Myanmar.", "Which country did Ne Win rule?", RIGHT),
    ("text", "Petrarca", "Non \u00e8 Dante, ma Petrarca.", "Chi l'ha scritto?", RIGHT),
    ("text", "Dante", "Non \u00e8 Dante, ma Petrarca.", "Chi l'ha scritto?", WRONG),
    ("text", "Oder", "The border follows the river Oder to the Baltic Sea.", "Which river does the border follow?",
     RIGHT),
    ("boolean", "no", "That is not so true.", "Is it so?", RIGHT),
    ("number", "12", "It is between 10 and 12.", "How many?", NOT_RIGHT),
    ("number", "70", "70.0 \u00b1 0.5 kg", "How heavy is it?", RIGHT),
    ("number", "0.5", "70.0 \u00b1 0.5 kg", "How heavy is it?", WRONG),
    ("number", "70", "The mass is $70 \\pm 0.5$ kg.", "How heavy is it?", RIGHT),
    ("number", "70", "m = 70 kg +/- 1 kg", "How heavy is it?", RIGHT),
    ("number", "70 kg", "(70 kg \u00b1 1 kg)", "How heavy is it?", RIGHT),
    ("number", "71", "70 \u00b1 1", "How heavy is it?", WRONG),
    ("number", "2", "The difference between 10 and 12 is 2.", None, RIGHT),
    ("number", "12", "The price rose from 10 to 12.", None, RIGHT),
    ("number", "500", "5.0e-7 m", "What is the wavelength in nm?", RIGHT),
    ("text", "Goethe", "Kein Geringerer als Goethe.", None, RIGHT),
    ("text", "\u041c\u043e\u0441\u043a\u0432\u0430",
     "\u041d\u0435 \u041c\u043e\u0441\u043a\u0432\u0430, \u0430 \u041a\u0438\u0435\u0432.", None, WRONG),
    ("text", "\u041a\u0438\u0435\u0432",
     "\u041d\u0435 \u041c\u043e\u0441\u043a\u0432\u0430, \u0430 \u041a\u0438\u0435\u0432.", None, RIGHT),
    ("text", "\u6771\u4eac", "\u6771\u4eac\u3067\u306f\u306a\u304f\u4eac\u90fd\u3067\u3059\u3002", None, WRONG),
    ("text", "\u4eac\u90fd", "\u6771\u4eac\u3067\u306f\u306a\u304f\u4eac\u90fd\u3067\u3059\u3002", None, RIGHT),
    ("text", "\uc11c\uc6b8", "\uc11c\uc6b8\uc774 \uc544\ub2c8\ub77c \ubd80\uc0b0\uc785\ub2c8\ub2e4.", None, WRONG),
    ("number", "3.01e23", "$3.01\\times10^{23}$", None, RIGHT),
    ("number", "3.01e23", "\\boxed{3.01\\cdot10^{23}}", None, RIGHT),
    ("number", "3.01e23", "\\[ 0.5 \\times 6.02\\times10^{23} = 3.01\\times10^{23} \\]", None, RIGHT),
    ("number", "3.01", "$3.01\\times10^{23}$", None, WRONG),
    ("number", "0.0025", "$2.5\\times10^{-3}$ M", None, RIGHT),
    ("number", "3", "$2.5\\times10^{-3}$ M", None, WRONG),
    ("number", "3.01e23", "3.01*10**23", None, RIGHT),
    ("number", "23", "3.01*10**23", None, WRONG),
    ("number", "500000", "5 \u00d7 10<sup>5</sup>", None, RIGHT),
    ("number", "0.0025", "0,0025 mol/l", None, RIGHT),
    ("number", "25", "0,0025 mol/l", None, WRONG),
    ("number", "0.125", "0,125", None, RIGHT),
    ("number", "125", "0,125", None, NOT_RIGHT),
    ("number", "83250", "83 250", None, RIGHT),
    ("number", "250", "83 250", None, WRONG),
    ("number", "0.05", "50 mV", "How many volts?", RIGHT),
    ("number", "50", "50 mV", "How many volts?", NOT_RIGHT),
    ("number", "100", "212 \u00b0F (100 \u00b0C)", DEGREES, RIGHT),
    ("number", "212", "212 \u00b0F (100 \u00b0C)", DEGREES, WRONG),
    ("number", "100", "It boils at 373.15 K (100 \u00b0C).", DEGREES, RIGHT),
    ("number", "100", "212 \u00b0F (110 \u00b0C)", DEGREES, WRONG),
    ("number", "1609.34", "It is 1,000 miles (1,609.34 km) away.", KILOMETRES, RIGHT),
    ("number", "1000", "It is 1,000 miles (1,609.34 km) away.", KILOMETRES, WRONG),
    ("text", "H2SO4", "H<sub>2</sub>SO<sub>4</sub>", None, RIGHT),
    ("text", "H2SO3", "H<sub>2</sub>SO<sub>4</sub>", None, WRONG),
    ("text", "Thursday", "Thurs.", None, RIGHT),
    ("text", "Tuesday", "Thurs.", None, WRONG),
    ("text", "September", "in Sep 1939", None, RIGHT),
]  # fmt: skip

HAUPTSTADT = "Was ist die Hauptstadt der T\u00fcrkei?"
CAPITALE = "Quelle est la capitale de la Turquie ?"
DENIED_ELSEWHERE = [
    (one, two, reply.format(one, two), question)
    for question, one, two, replies in (
        (HAUPTSTADT, "Ankara", "Istanbul", (
            "{}, nicht {}.", "Nicht {1}, sondern {0}.", "Die Hauptstadt ist nicht {1}, sondern {0}.",
            "Viele denken {1}, aber es ist {0}.")),
        (CAPITALE, "Ankara", "Istanbul", (
            "Ce n'est pas {1} mais {0}.", "C'est {}, pas {}.", "{}, et non {}.",
            "La capitale n'est pas {1}, c'est {0}.")),
        ("\u00bfCu\u00e1l es la capital de Turqu\u00eda?", "Ankara", "Estambul", ("No es {1}, sino {0}.",)),
        ("\u571f\u8033\u5176\u7684\u9996\u90fd\u662f\u54ea\u91cc\uff1f", "\u5b89\u5361\u62c9",
         "\u4f0a\u65af\u5766\u5e03\u5c14",
         ("\u4e0d\u662f{1}\uff0c\u800c\u662f{0}\u3002", "\u662f{}\uff0c\u4e0d\u662f{}\u3002")),
    )
    for reply in replies
]  # fmt: skip


@pytest.mark.parametrize(
    ("response", "gold", "expected"),
    [
        (LOOP, "20", RIGHT),
        (LOOP + " 2", "20", RIGHT),
        (LOOP, "21", WRONG),
        (LOOP + " 3", "20", OPEN),
        (LOOP.replace("Answer: 20", "Answer: 21", 1), "20", OPEN),
        ("**Final Answer: 20**\n\nWait.\n\n**Final Answer:", "20", OPEN),
    ],
)
def test_a_loop_of_one_answer_is_that_answer_although_it_was_cut(response: str, gold: str, expected: set[str]) -> None:
    assert grade(response, "length", gold, "number").outcome in expected


PENCILS = "Alex has 5 boxes with 12 pencils and gives away 17 pencils. How many pencils are left?"
# (response to PENCILS that was cut by its token limit or not, expected)
TURNS = [
    ("43<|im_end|>\n<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n4", True, RIGHT),
    ("44<|im_end|>\n<|im_start|>user\nWhat is 60 - 17?<|im_end|>\n<|im_start|>assistant\n43", True, WRONG),
    ("<think>43<|im_end|></think>12 boxes of 43", True, OPEN),
    ("12 boxes of 43", True, OPEN),
    (f"Question: {PENCILS}\nAnswer: 43", False, RIGHT),
    (f"Question: {PENCILS}\n60 - 17 = 43", False, RIGHT),
    (f"Question: {PENCILS}\nAnswer: 44", False, WRONG),
    (f"Question: {PENCILS}", False, OPEN),
    (f"Question: {PENCILS.replace('12', '10')}\nAnswer: 43", False, OPEN),
]


@pytest.mark.parametrize(("response", "cut", "expected"), TURNS)
def test_an_answer_ends_with_its_turn_and_begins_after_its_question(
    response: str, cut: bool, expected: set[str]
) -> None:
    assert grade(response, "length" if cut else "stop", "43", "number", question=PENCILS).outcome in expected


JACKET = "A jacket costs $80 and is reduced by 25 %. What is the new price in dollars?"
CHANGE = "Ana buys 3 notebooks at $4 each and a pen for $2. She pays with a $20 bill. How much change does she get?"
AVERAGE = "What is the average of 4, 8 and 12?"
STATED = [
    ("number", "60", "New price: $60. You save $20.", JACKET, RIGHT),
    ("number", "60", "New price: $20. You save $60.", JACKET, NOT_RIGHT),
    ("number", "60", "The new price is $60, and the discount is $20.", JACKET, RIGHT),
    ("number", "60", "The new price is $20, and the discount is $60.", JACKET, NOT_RIGHT),
    ("number", "60", "So the new price is 80 - 20 = 60. You saved 20 dollars.", JACKET, RIGHT),
    ("number", "60", "So the new price is 80 - 60 = 20. You saved 60 dollars.", JACKET, NOT_RIGHT),
    ("number", "60", "New price = 80 − 20 = 60. Saving = 20.", JACKET, RIGHT),
    ("number", "60", "New price = 80 − 60 = 20. Saving = 60.", JACKET, NOT_RIGHT),
    ("number", "60", "The new price is $70. Wait, no, 25 % of 80 is 20, so $60.", JACKET, RIGHT),
    ("number", "70", "The new price is $70. Wait, no, 25 % of 80 is 20, so $60.", JACKET, NOT_RIGHT),
    ("number", "60", "60 %", JACKET, NOT_RIGHT),
    ("number", "60", "60 dollars", JACKET, RIGHT),
    ("number", "6", "change: $6.00\nspent: $14.00", CHANGE, RIGHT),
    ("number", "6", "change: $14.00\nspent: $6.00", CHANGE, NOT_RIGHT),
    ("number", "8", "The average of 4, 8 and 12 is 8.", AVERAGE, RIGHT),
    ("number", "8", "The average of 4, 8 and 12 is 12.", AVERAGE, NOT_RIGHT),
    ("number", "25", "The sum of the first four is 16, and with 9 it is 25.", "What is the sum of the first five?",
     RIGHT),
    ("number", "16", "The sum of the first four is 16, and with 9 it is 25.", "What is the sum of the first four?",
     RIGHT),
    ("number", "-3", "The temperature is - 3 °C.", "What is the temperature?", RIGHT),
    ("number", "3", "The temperature is - 3 °C.", "What is the temperature?", WRONG),
    ("number", "-5", "The result is - 5.", "What is 3 - 8?", RIGHT),
    ("number", "5", "The difference between the two is 8 - 3.", "What is 8 - 3?", NOT_RIGHT),
]  # fmt: skip
SUM = "What is 75 + 20?"
CHECKED = [
    ("number", "95", "75 + 20 = 95. Check: 95 - 20 = 75.", SUM, RIGHT),
    ("number", "95", "75 + 20 = 85. Check: 85 - 20 = 65.", SUM, WRONG),
    ("number", "95", "75 + 20 = 95. To double-check: 95 - 20 = 75. ✓", SUM, RIGHT),
    ("number", "95", "The sum is 95. You can verify this by subtracting: 95 - 75 = 20.", SUM, RIGHT),
    ("number", "95", "The sum is 85. You can verify this by subtracting: 85 - 65 = 20.", SUM, WRONG),
    ("number", "6", "The total is $14. The change is $6. Verification: $14 + $6 = $20. ✓", CHANGE, RIGHT),
    ("number", "6", "The total is $6. The change is $14. Verification: $6 + $14 = $20. ✓", CHANGE, NOT_RIGHT),
    ("number", "7", "There were 12 eggs. To check how many are left, subtract: 12 - 5 = 7.", None, RIGHT),
    ("number", "12", "There were 12 eggs. To check how many are left, subtract: 12 - 5 = 7.", None, NOT_RIGHT),
    ("number", "95", "75 + 20 = 85. Check: 85 - 20 = 65, not 75, so it should be 95.", SUM, RIGHT),
    ("number", "85", "75 + 20 = 85. Check: 85 - 20 = 65, not 75, so it should be 95.", SUM, NOT_RIGHT),
    ("number", "20", "$80 - $60 = $20. The discount was $60.", JACKET, RIGHT),
    ("number", "60", "$80 - $60 = $20. The discount was $60.", JACKET, NOT_RIGHT),
]
YEAR = "In which year did the first human walk on the Moon?"
OTHER_YEARS = [
    ("number", "1969", "1969 (Apollo 11), though Apollo 8 flew in 1968.", YEAR, RIGHT),
    ("number", "1969", "1968 (Apollo 8), though Apollo 11 landed in 1969.", YEAR, NOT_RIGHT),
    ("number", "1969", "The year was 1969, eight years after 1961.", YEAR, RIGHT),
    ("number", "1969", "The year was 1961, eight years before 1969.", YEAR, WRONG),
    ("number", "11.75", "She has $11.75 left after buying 3, which cost $8.25.", "How much money does she have left?",
     RIGHT),
]  # fmt: skip
LYON = "What is the capital of the country where Lyon is?"
FLAG = "Name the three colours of the flag of France."
NAMED_CELLS = [
    ("text", "Paris", "city: Lyon\ncountry: France\ncapital: Paris", LYON, RIGHT),
    ("text", "Paris", "city: Paris\ncountry: France\ncapital: Lyon", LYON, NOT_RIGHT),
    ("text", "Paris", '{"country": "France", "capital": "Paris"}', LYON, RIGHT),
    ("text", "Paris", '{"country": "Paris", "capital": "Lyon"}', LYON, NOT_RIGHT),
    ("text", "Paris", "| City | Country | Capital |\n|---|---|---|\n| Lyon | France | Paris |", LYON, RIGHT),
    ("text", "Paris", "| City | Country | Capital |\n|---|---|---|\n| Lyon | Paris | France |", LYON, NOT_RIGHT),
    ("text", "Paris", "The answer is:\n\n| Country | Capital |\n|:--|--:|\n| France | Paris |", LYON, RIGHT),
    ("text", "Paris", "The answer is:\n\n| Country | Capital |\n|:--|--:|\n| Paris | Lyon |", LYON, NOT_RIGHT),
    ("number", "60", '{"original_price": 80, "discount": 20, "new_price": 60}', JACKET, RIGHT),
    ("number", "60", '{"original_price": 80, "discount": 60, "new_price": 20}', JACKET, NOT_RIGHT),
    ("list", "blue, white, red", "| Left | Middle | Right |\n|---|---|---|\n| Blue | White | Red |", FLAG, RIGHT),
    ("list", "blue, white, red", "| Left | Middle | Right |\n|---|---|---|\n| Blue | White | Black |", FLAG, WRONG),
]
NEXT, PREVIOUS = "Who succeeded Tyler as president?", "Who preceded Polk as president?"
IN_TURN = [
    ("text", "Polk", "Polk succeeded Tyler.", NEXT, RIGHT),
    ("text", "Polk", "Polk was succeeded by Tyler.", NEXT, NOT_RIGHT),
    ("text", "Tyler", "Tyler came before Polk.", PREVIOUS, RIGHT),
    ("text", "Tyler", "Tyler was preceded by Polk.", PREVIOUS, NOT_RIGHT),
    ("text", "Tyler", "Tyler, who was succeeded by Polk", PREVIOUS, RIGHT | {"invalid"}),
]
FRANCE, SKY = "What is the capital of France?", "Is the sky blue?"
POLITE = [
    ("text", "Paris", "As an AI, I don't have opinions, but the capital is Paris.", FRANCE, RIGHT),
    ("text", "Paris", "As an AI, I don't have opinions, but the capital is Lyon.", FRANCE, WRONG),
    ("text", "Paris", "As an AI, I cannot travel, but I know the capital of France is Paris.", FRANCE, RIGHT),
    ("text", "Paris", "As an AI language model, I can tell you that the capital is Paris.", FRANCE, RIGHT),
    ("text", "Paris", "As an AI language model, I can tell you that the capital is Lyon.", FRANCE, WRONG),
    ("text", "Paris", "As an AI, I cannot answer that.", FRANCE, {"abstained"}),
    ("text", "Paris", "As an AI, I can help you with that.", FRANCE, OPEN),
    ("text", "Paris", "Sure, I can tell you! It's Paris.", FRANCE, RIGHT),
    ("boolean", "yes", "Of course it is.", SKY, RIGHT),
    ("boolean", "yes", "Of course it isn't.", SKY, WRONG),
    ("boolean", "yes", "It certainly is.", SKY, RIGHT),
    ("boolean", "yes", "It certainly is not.", SKY, WRONG),
]
SPEED = "A train travels 240 km in 3 hours. What is its speed in km/h?"
BILL = "How much does each person pay if 5 friends share a bill of $87.50?"
DIE = "What is the probability of rolling a number greater than 4 with a fair die?"
SECOND = "In the list 4, 7, 1, 9, what is the second largest number?"
CONVERTED = [
    ("number", "80", "v = s/t = 240/3 = 80 km/h = 22.2 m/s", SPEED, RIGHT),
    ("number", "80", "v = s/t = 240/3 = 70 km/h = 19.4 m/s", SPEED, WRONG),
    ("number", "80", "80 km/h \u2248 50 mph", SPEED, RIGHT),
    ("number", "80", "50 mph \u2248 80 km/h", SPEED, RIGHT),
    ("number", "80", "129 km/h \u2248 80 mph", SPEED, WRONG),
    ("number", "160", "160 min = 2.67 h", "How many minutes?", RIGHT),
    ("number", "160", "180 min = 160 h", "How many minutes?", WRONG),
    ("number", "17.5", "$87.50 / 5 = $17.50 per person", BILL, RIGHT),
    ("number", "17.5", "$87.50 / 5 = $17.00 per person", BILL, WRONG),
    ("number", "3.5", "7/2 = 3.5", None, RIGHT),
    ("number", "3.5", "7/2 = 3", None, WRONG),
    ("number", "3.5", "7/2 = 3.5, so about 4", None, RIGHT | OPEN),
    ("text", "1/3", "one third", DIE, RIGHT),
    ("text", "1/3", "33.3 %", DIE, OPEN),
    ("text", "1/3", "0.333", DIE, OPEN),
    ("text", "1/3", "34 %", DIE, WRONG),
    ("text", "1/3", "0.3", DIE, WRONG),
    ("text", "1/4", "0.33", DIE, WRONG),
    ("number", "7", "The largest is 9, and the second largest is 7.", SECOND, RIGHT),
    ("number", "7", "The largest is 7, and the second largest is 4.", SECOND, NOT_RIGHT),
]
MARBLES = "Ana has 5 marbles and Ben has 3. How many marbles do they have in total?"
HEPTAGON = "How many sides does a heptagon have?"
SHIRT = "A shirt costs $40 and is reduced by 25%. What does it cost now, in dollars?"
TREES = "He has 270 trees, of which a storm fells 38, and he plants 60. How many trees has he now?"
REMARKS = [
    ("number", "8", "They have 8 marbles in total. So Ana has more than half.", MARBLES, RIGHT),
    ("number", "8", "They have 9 marbles in total. So Ana has more than half.", MARBLES, WRONG),
    ("number", "8", "5 + 3 = 8. Ana has 2 more than Ben.", MARBLES, RIGHT),
    ("number", "8", "5 - 3 = 2. Ben has 8 fewer than Ana.", MARBLES, WRONG),
    ("number", "2", "Together they have 8. Ana has 2 more than Ben.", "How many more marbles does Ana have?", RIGHT),
    ("number", "8", "They have more than 5 marbles.", MARBLES, WRONG),
    ("number", "30", "The discount is $10, so the new price is $30. You save $10.", SHIRT, RIGHT),
    ("number", "30", "The discount is $30, so the new price is $10. You save $30.", SHIRT, NOT_RIGHT),
    ("number", "10", "The new price is $30. You save $10.", "A shirt is $40, now $30. How much do I save?", RIGHT),
    ("number", "292", "He has 292 trees now. That is 22 more than the 270 of before.", TREES, RIGHT),
    ("number", "292", "He has 270 trees now. That is 22 fewer than the 292 of before.", TREES, WRONG),
    ("number", "292", "So now he has 292 trees. If he had not planted any, he would have 232.", TREES, RIGHT),
    ("number", "292", "So now he has 232 trees. If he had planted 60, he would have 292.", TREES, WRONG),
    ("number", "292", "After planting = **292**\n\n**Tip:** Do such problems in 3 steps.", TREES, RIGHT),
    ("number", "292", "After planting = **232**\n\n**Tip:** Do such problems in 292 steps.", TREES, WRONG),
    ("number", "21", "Three weeks consist of 21 days, since each week has 7 days.", "How many days are 3 weeks?",
     RIGHT),
    ("number", "21", "Three weeks consist of 7 days, since each week has 21 days.", "How many days are 3 weeks?",
     NOT_RIGHT),
    ("number", "54", "A = 9 \u00d7 6 = 54 cm^2. (The perimeter is 2(9 + 6) = 30 cm.)", None, RIGHT),
    ("number", "54", "A = 2(9 + 6) = 30 cm^2. (The product (9 \u00d7 6) is 54.)", None, NOT_RIGHT),
]  # fmt: skip
PRIMES = "How many prime numbers are there between 1 and 20?"
TALL = "Anna is 8 years older than Ben. Ben is 13. How old is Anna?"
AREA = "What is the area of a rectangle with sides of 6 cm and 9 cm?"
FAST = "What is the speed of light in m/s?"
SEATS = "A car has 5 seats. How many cars do 17 people need?"
COUNTS = [
    ("number", "8", "There are **eight** primes between 1 and 20: 2, 3, 5, 7, 11, 13, 17, 19.", PRIMES, RIGHT),
    ("number", "8", "There are **seven** primes between 1 and 20: 3, 5, 7, 11, 13, 17, 19.", PRIMES, WRONG),
    ("number", "8", "Count: 8\nPrimes: 2, 3, 5, 7, 11, 13, 17, 19", PRIMES, RIGHT),
    ("number", "8", "Count: 9\nPrimes: 1, 2, 3, 5, 7, 11, 13, 17, 19", PRIMES, WRONG),
    ("number", "32", "It is 2 multiplied by itself 5 times: 2, 4, 8, 16, 32.", "What is 2 to the power of 5?", RIGHT),
    ("number", "21", "Since Ben is 13 and Anna is 8 years older than him, she is 21.", TALL, RIGHT),
    ("number", "21", "Since Ben is 13 and Anna is 8 years younger than him, she is 5.", TALL, WRONG),
    ("number", "7.1", "$\\sqrt{50} = 5\\sqrt{2} \\approx 7.1$", "What is the square root of 50?", RIGHT),
    ("number", "7.1", "$\\sqrt{50} = 7.1\\sqrt{2} \\approx 5$", "What is the square root of 50?", NOT_RIGHT),
    ("number", "0.28", "4 \u00d7 7 = 28, and with two decimals this gives 0.28.", "What is 0.4 times 0.7?", RIGHT),
    ("number", "0.28", "4 \u00d7 7 = 28, and with one decimal this gives 2.8.", "What is 0.4 times 0.7?", WRONG),
    ("number", "54", "54 cm\u00b2", AREA, RIGHT),
    ("number", "54", "0.0054 m\u00b2", AREA, RIGHT),
    ("number", "54", "54 m\u00b2", AREA, WRONG),
    ("number", "40", "40 litres of water", "How many litres does the tank hold?", RIGHT),
    ("number", "40", "40 gallons of water", "How many litres does the tank hold?", WRONG),
    ("number", "3e8", "3 \u00d7 10^8 m/s", FAST, RIGHT),
    ("number", "3e8", "3 \u00d7 10^6 m/s", FAST, WRONG),
    ("number", "4", "17 / 5 = 3.4, so they need 4 cars of 5 seats each.", SEATS, RIGHT),
    ("number", "4", "17 / 5 = 4, so they need 3 cars of 5 seats each.", SEATS, NOT_RIGHT),
]
PLANETS = "Which planet is red? (A) Venus (B) Mars (C) Jupiter"
AUTHOR = "Who wrote Pride and Prejudice?"
ASIDES = "What is the capital of Australia?"
JAWS, LIGHTEST = "Who is the director of the film Jaws?", "Which element has the atomic number 2?"
LONGEST = "Which of the words 'cat', 'horse' and 'elephant' is the longest?"
SORTED = "Sort 7, 2, 9 and 4 in ascending order."
PAGES, WALL = "Which pages must be read?", "When did the Berlin Wall fall?"
SECOND_GUESSES = [
    *(
        (kind, gold, said.format(*pair), question, OPEN)
        for kind, gold, other, question in (
            ("choice", "B", "A", PLANETS),
            ("number", "7", "8", HEPTAGON),
            ("boolean", "yes", "no", "Is 7 a prime number?"),
            ("date", "1919", "1920", "In what year was it signed?"),
            ("text", "Jane Austen", "Charlotte Bront\u00eb", AUTHOR),
        )
        for pair in ((gold, other), (other, gold))
        for said in ("I think it's {}, but it could be {}.", "Probably {}, though it might also be {}.")
    ),
    ("choice", "B", "I think it's A, but it could be C.", PLANETS, WRONG),
    ("choice", "B", "I think it's B, but it could be argued that others are reddish.", PLANETS, RIGHT),
    ("choice", "B", "The red planet is Mars (not Jupiter).", PLANETS, RIGHT),
    ("choice", "B", "The red planet is Jupiter (not Mars).", PLANETS, WRONG),
    ("choice", "B", "It can't be A (bright) or C (banded), which leaves B.", PLANETS, RIGHT),
    ("choice", "B", "It can't be A (bright) or B (cold), which leaves C.", PLANETS, WRONG),
    ("boolean", "no", "At first glance, yes. But 7 \u00d7 13 = 91, so no, it is not.", "Is 91 a prime?", RIGHT),
    ("boolean", "no", "At first glance, no. But nothing divides it, so yes, it is.", "Is 91 a prime?", WRONG),
    ("text", "Jane Austen", "Austen, Jane", AUTHOR, RIGHT),
    ("text", "Jane Austen", "Bront\u00eb, Jane", AUTHOR, NOT_RIGHT),
    ("text", "Canberra", "Australia's capital city is Canberra, about 280 km southwest of Sydney.", ASIDES, RIGHT),
    ("text", "Canberra", "Australia's capital city is Sydney, about 280 km northeast of Canberra.", ASIDES, NOT_RIGHT),
    ("text", "helium", "Hydrogen has atomic number 1 and helium 2, so it's helium.", LIGHTEST, RIGHT),
    ("text", "helium", "Helium has atomic number 1 and hydrogen 2, so it's hydrogen.", LIGHTEST, NOT_RIGHT),
    ("text", "Steven Spielberg", "The director is Steven Spielberg. The music is by John Williams.", JAWS, RIGHT),
    ("text", "Steven Spielberg", "The director is John Williams. The producer is Steven Spielberg.", JAWS, NOT_RIGHT),
    ("text", "elephant", "'elephant' is longer than 'cat' and 'horse'.", LONGEST, RIGHT),
    ("text", "elephant", "'horse' is longer than 'cat' and 'elephant'.", LONGEST, NOT_RIGHT),
    ("text", "20 degrees Celsius", "68\u00b0F is equal to 20\u00b0C.", None, RIGHT),
    ("text", "20 degrees Celsius", "68\u00b0F is equal to 22\u00b0C.", None, WRONG),
    ("text", "20 degrees Celsius", "20 degrees Fahrenheit", None, WRONG),
    ("text", "3-9", "You must read pages 3 through 9.", PAGES, RIGHT),
    ("text", "3-9", "You must read pages 3 through 19.", PAGES, WRONG),
    ("text", "3-9", "pp. 3\u20139", PAGES, RIGHT),
    ("text", "3-9", "pp. 2\u20139", PAGES, WRONG),
    ("text", "1939-1945", "1 September 1939 \u2013 2 September 1945", WAR, RIGHT),
    ("text", "1939-1945", "28 July 1914 \u2013 11 November 1918", WAR, WRONG),
    ("date", "9 November 1989", "November 9, 1989. Unity came on October 3, 1990.", WALL, RIGHT),
    ("date", "9 November 1989", "October 3, 1990. The borders had opened on November 9, 1989.", WALL, NOT_RIGHT),
    ("ordered-list", "2, 4, 7, 9", "Sorting 7, 2, 9, 4 in ascending order gives 2, 4, 7, 9.", SORTED, RIGHT),
    ("ordered-list", "2, 4, 7, 9", "Sorting 2, 4, 7, 9 in ascending order gives 7, 2, 9, 4.", SORTED, WRONG),
    ("ordered-list", "2, 4, 7, 9", "2, 4, 7, 9. (Descending it would be 9, 7, 4, 2.)", SORTED, RIGHT),
    ("ordered-list", "2, 4, 7, 9", "9, 7, 4, 2. (Descending it would be 2, 4, 7, 9.)", SORTED, WRONG),
    ("number", "30", "15% of 200 is", "What is 15% of 200?", OPEN),
    ("text", "Jane Austen", "The author of Pride and Prejudice is", AUTHOR, OPEN),
    ("text", "Jane Austen", "The author of Pride and Prejudice is Jane Austen and", AUTHOR, RIGHT),
    ("ordered-list", "Oslo, Bonn, Rome", "The three are Rome, Oslo, Bonn:\n1. Oslo\n2. Bonn\n3. Rome",
     "Sort by age: Rome, Oslo, Bonn.", RIGHT),
    ("ordered-list", "Oslo, Bonn, Rome", "The order is Bonn, Rome, Oslo:\n1. Oslo\n2. Bonn\n3. Rome",
     "Sort by age: Rome, Oslo, Bonn.", OPEN),
    ("text", "Jane Austen", "The author of Pride and Prejudice is Anne.", AUTHOR, WRONG),
]  # fmt: skip
SIGNS = [
    *(
        row
        for kind, gold, other in (
            ("text", "-5", "5"),
            ("text", "-5 \u00b0C", "5 \u00b0C"),
            ("text", "1.5", "15"),
            ("text", "1e3", "1e-3"),
            ("text", "10^5", "105"),
            ("text", "$5", "\u20ac5"),
            ("text", "x > 3", "x < 3"),
            ("text", "x \u2264 3", "x \u2265 3"),
            ("text", "C++", "C"),
            ("text", "C", "C++"),
            ("text", "C#", "C"),
            ("text", "O-", "O+"),
            ("text", "A+", "A"),
            ("text", "Na+", "Na"),
            ("text", "Symphony in C# minor", "Symphony in C minor"),
            ("list", "2, 4", "-2, 4"),
            ("list", "-2, 4", "2, 4"),
            ("list", "7, -7", "-7, -7"),
            ("ordered-list", "-3, 1", "3, 1"),
            ("list", "$5, $7", "\u20ac5, \u20ac7"),
        )
        for row in ((kind, gold, gold, None, RIGHT), (kind, gold, other, None, WRONG))
    ),
    ("text", "-5", "The answer is **\u22125**.", None, RIGHT),
    ("text", "C++", "It is written in C++, not in C.", None, RIGHT),
    ("text", "C++", "It is written in C.", None, WRONG),
    ("text", "H+", "H\u207a", None, RIGHT),
    ("text", "10^5", "10\u2075", None, RIGHT),
    ("text", "SO4^2-", "SO\u2084\u00b2\u207b", None, RIGHT),
    ("text", "SO4^2-", "SO\u2083\u00b2\u207b", None, WRONG),
    ("text", "1.5", "1,5", None, RIGHT),
    ("text", "2:3", "2 : 3", None, RIGHT),
    ("text", "1,234", "1234", None, RIGHT),
    ("text", "COVID-19", "Covid 19", None, RIGHT),
    ("list", "-2, 4", "4 and \u22122", None, RIGHT),
]
NOVELS = "A library has 1,240 books, 15% of them novels. How many novels are there?"
SAVED, ROOTS = "Tim saved $40 and Eva saved $15 more. How much did Eva save?", "Find all solutions of x^2 = 49."
GARDEN = "A garden is 12 m long and 8 m wide. What is its area in square metres?"
SON = "Lisa is 3 times as old as her son, who is 12. How old is Lisa?"
LIGHT = "By which process do plants make sugar? (A) photosynthesis (B) respiration (C) digestion"
MORE_REMARKS = [
    ("number", "186", "There are 186 novels. This means that 1,054 books are not novels.", NOVELS, RIGHT),
    ("number", "186", "There are 1,054 novels. This means that 186 books are not novels.", NOVELS, WRONG),
    ("number", "5", "Of the 12 apples 7 are red. The other 5 are not red.", "How many apples are green?", RIGHT),
    ("number", "55", "Eva saved 55 dollars. Together they saved 95 dollars.", SAVED, RIGHT),
    ("number", "55", "Eva saved 15 dollars. Together they saved 55 dollars.", SAVED, WRONG),
    ("number", "95", "Eva saved 55 dollars. Together they saved 95 dollars.", "How much did they save?", RIGHT),
    ("number", "55", "Tim saved $40 and Eva saved $55.", SAVED, RIGHT),
    ("number", "55", "Tim saved $55 and Eva saved $40.", SAVED, WRONG),
    ("number", "672", "It will cost \u20ac672. You'd pay \u20ac72 extra.", "What is the new price?", RIGHT),
    ("number", "672", "It will cost \u20ac612. You'd pay \u20ac672 extra.", "What is the new price?", WRONG),
    ("number", "36", "Lisa is 36 years old, which is 24 years older than her son.", SON, RIGHT),
    ("number", "36", "Lisa is 24 years old, which is 36 years older than her son.", SON, WRONG),
    ("number", "22", "Sum of digits: 4+7=11, 11+2=13, 13+9=22", "What is the sum of the digits of 4,729?", RIGHT),
    ("number", "22", "Sum of digits: 4+7=11, 11+2=13, 13+9=23", "What is the sum of the digits of 4,729?", WRONG),
    ("number", "96", "The area is 96 square metres and the perimeter is 40 metres.", GARDEN, RIGHT),
    ("number", "96", "The area is 40 square metres and the perimeter is 96 metres.", GARDEN, NOT_RIGHT),
    ("number", "96", "96 m\u00b2", GARDEN, RIGHT),
    ("number", "96", "96 cm\u00b2", GARDEN, WRONG),
    ("number", "0.625", "5 \u00f7 8 = 0.625, so 5/8 is 0.625 as a decimal.", "What is 5/8 as a decimal?", RIGHT),
    ("number", "0.625", "5 \u00f7 8 = 0.6, so 5/8 is 0.6 as a decimal.", "What is 5/8 as a decimal?", NOT_RIGHT),
    ("number", "22", "The digits of 4,729 are 4, 7, 2 and", "What is the sum of the digits of 4,729?", OPEN),
    ("list", "7, -7", "x = 7 or x = -7", ROOTS, RIGHT),
    ("list", "7, -7", "x = 7 or x = -9", ROOTS, WRONG),
    ("list", "Jupiter, Saturn", "Jupiter and Saturn, both gas giants.", None, RIGHT),
    ("list", "Jupiter, Saturn", "Jupiter and Neptune, both gas giants.", None, WRONG),
    ("choice", "A", "The choice is **A**. Respiration and digestion both use up sugar.", LIGHT, RIGHT),
    ("choice", "A", "The choice is **B**. Photosynthesis and digestion both use up sugar.", LIGHT, WRONG),
    ("choice", "A", "A. Respiration", LIGHT, NOT_RIGHT),
    ("choice", "A", "It's not respiration or digestion; it's photosynthesis.", LIGHT, RIGHT),
    ("choice", "A", "It's not photosynthesis or digestion; it's respiration.", LIGHT, WRONG),
]
BOTH_DAYS = "A cinema sold 245 tickets on Friday and 178 on Saturday. How many were sold on both days?"
COAT, DIVIDED = "A shop gives a 20% discount on a $75 coat. What is the sale price?", "What is the remainder of 47 / 6?"
DONOR, KERNEL = "Which blood type is the universal donor?", "In which language is the Linux kernel written?"
INEQUALITY, SOLUTIONS = "Solve the inequality 2x > 6.", "Which numbers solve x^2 - x - 6 = 0?"
NOTATIONS = [
    ("number", "423", "423 were sold in total, 67 more on Friday than on Saturday.", BOTH_DAYS, RIGHT),
    ("number", "423", "67 were sold in total, 423 more on Friday than on Saturday.", BOTH_DAYS, WRONG),
    ("number", "67", "423 were sold, 67 more on Friday than on Saturday.", "How many more were sold on Friday?", RIGHT),
    ("number", "60", "You pay $60, so you save $15.", COAT, RIGHT),
    ("number", "60", "You pay $15, so you save $60.", COAT, WRONG),
    ("number", "6", "She has saved $6,000.00 so she can buy 6000/1000 = 6 pairs.", "How many can she buy?", RIGHT),
    ("number", "5", "47 \u00f7 6 = 7 remainder 5", DIVIDED, RIGHT),
    ("number", "5", "47 \u00f7 6 = 5 remainder 7", DIVIDED, NOT_RIGHT),
    ("number", "5", "7 R 5", DIVIDED, RIGHT),
    ("number", "45", "45 min, since an hour has 60 minutes.", "How many minutes are 3/4 of an hour?", RIGHT),
    ("text", "-4", "minus four", None, RIGHT),
    ("text", "-4", "four", None, WRONG),
    ("text", "44 BC", "44 BCE", None, RIGHT),
    ("text", "O-", "The universal donor is O-.", DONOR, RIGHT),
    ("text", "O-", "The universal donor is O+.", DONOR, WRONG),
    ("text", "C", "It is C, not C++.", KERNEL, RIGHT),
    ("text", "C", "It is C++, not C.", KERNEL, WRONG),
    ("text", "x > 3", "Dividing by 2 gives x > 3.", INEQUALITY, RIGHT),
    ("text", "x > 3", "Dividing by 2 gives x < 3.", INEQUALITY, WRONG),
    ("text", "x \u2265 3", "$2x \\geq 6$, so $x \\geq 3$.", INEQUALITY, RIGHT),
    ("text", "x \u2265 3", "$2x \\geq 6$, so $x \\leq 3$.", INEQUALITY, WRONG),
    ("list", "-2, 3", "(x - 3)(x + 2) = 0, so x = 3 or x = -2", SOLUTIONS, RIGHT),
    ("list", "-2, 3", "(x + 3)(x - 2) = 0, so x = -3 or x = 2", SOLUTIONS, WRONG),
    ("list", "solid, liquid, gas", "Matter can be a solid, a liquid or a gas.", None, RIGHT),
    ("list", "solid, liquid, gas", "Matter can be a solid, a liquid or a plasma.", None, WRONG),
    ("text", "Bell", "I'm afraid I don't have that information.", "Who invented it?", {"abstained"}),
]
LARGER, LEFT = "Which is larger, 0.6 or 5/8?", "Kim earns $360 and spends $200. How much is left?"
SWIM, KEPT_BY_HER = "Of 40 pupils, 28 can swim. How many cannot swim?", "She keeps $30 of $200. How much does he get?"
SEA = "Which city lies on the sea? (A) Paris (B) Lyon (C) Nice (D) Lille"
KEPT = [
    ("text", "5/8", "5/8 is larger than 0.6.", LARGER, RIGHT),
    ("text", "5/8", "0.6 is larger than 5/8.", LARGER, NOT_RIGHT),
    ("number", "9", "9 is greater than 8.", "Which is larger, 8 or 9?", RIGHT),
    ("number", "9", "8 is greater than 9.", "Which is larger, 8 or 9?", NOT_RIGHT),
    ("number", "160", "She makes $360. She saves $160.", LEFT, RIGHT),
    ("number", "160", "$360 - $200 = $160. She saves $160 a week.", LEFT, RIGHT),
    ("number", "23", "Leo has 3 more than Max's 20 coins, which is 23.", "How many coins has Leo?", RIGHT),
    ("number", "90", "The shirts cost $60 and the hats $30. Together they cost $90.", "What is the cost?", RIGHT),
    ("number", "12", "28 can swim. This means that 12 do not swim.", SWIM, RIGHT),
    ("number", "170", "She keeps $30. The rest is $170.", KEPT_BY_HER, RIGHT),
    ("text", "-4 \u00b0C", "- 4 \u00b0C", None, RIGHT),
    ("text", "B+", "B plus", None, RIGHT),
    ("text", "B+", "B minus", None, WRONG),
    ("text", "5-7", "From chapter 5 to chapter 7.", "Which chapters?", RIGHT),
    ("choice", "C", "C, though it may be less well known than A.", SEA, RIGHT),
    ("choice", "C", "It isn't Paris, Lyon or Lille. It's Nice.", SEA, RIGHT),
    ("choice", "C", "It isn't Paris, Nice or Lille. It's Lyon.", SEA, WRONG),
]

TWO = "The sum of two numbers is 50 and their difference is 10. What is the larger number?"
NEXT_PRIME = "What is the smallest prime number greater than 13?"
TAGS = "What is the tag of the axe plus the tag of the tea?"
OWN_SON = "Maria is 36 and four times as old as her son. How old is her son?"
EGGS = "Janet has 9 eggs left and sells them at $2 per egg. How much does she make per day in dollars?"
SALE = "A shirt costs $25 and is discounted by 20%. What is the sale price in dollars?"
DESKS = "A school has 8 classrooms with 12 desks each. 32 desks are removed. How many desks remain?"
LEFT_AND_EACH = "The number of desks remaining is 96-32 = 64.\n\nThe number of desks per classroom is 64/8 = 8."
GAMES = "They won 8 more than they lost. How many did they win?"
PEARS = "Tom has 12 pears and gives away 5. How many does he have left? (A) 3 (B) 5 (C) 7 (D) 9"
SOUND = "True or false: Sound is faster than light."
LEGS = "How many legs does a spider have, and how many does a hen have?"
RATIO = "A class has 18 girls and 12 boys. What is the ratio of girls to boys in lowest terms?"
WATER = "Which river carries the most water?"
LIGHTEST = "What is the second lightest element?"
BACKWARDS = 'Spell the word "apple" backwards.'
RED = "A box has 20 balls, 5 of which are red. How many are not red?"
WALK = "A quarter of the 60 pupils walk to school. How many pupils do not walk?"
SWIM = "40 pupils are in a class, and 12 cannot swim. How many pupils can swim?"
CLIPS = "How many clips did she sell altogether in April and May?"
EMPTY = "Which continent has no permanent population?"
LONGEST = "What is the longest river in the world?"
BOOK = "Who wrote the book Frankenstein?"
CHORD = "Which notes make a C major chord?"
WITH_TIP = "What is the total price in dollars after the tip is added?"
NOVEL = "Who wrote Frankenstein?"
FIRST_LETTERS = "What are the first three letters of the Greek alphabet, in order?"
MORE_LEGS = "How many more legs does a spider have than an insect?"
PHONE = "A phone's price rose from $200 to $300. By what percentage did it rise?"
TAKEN = "A cinema has 200 seats. 80 are taken. How many are not taken?"
LEAP_YEAR = "How many days did the year 2023 have?"
HER_BROTHER = "Lena's brother is 5 years younger than she is. Lena is 18. How old is her brother?"
SQUARE = "A square has an area of 25. What is its perimeter? (A) 10 m (B) 20 m (C) 30 m (D) 40 m"
GASES = "What is the change from liquid to gas called? (A) evaporation (B) condensation (C) freezing"
IN_BAGS = "Anna has 5 bags with 3 apples each. How many apples does she have, and how many are in each bag?"
LANDLOCKED = "Which of the countries Chad, Kenya and Ghana is landlocked?"
TALLER = "Is Ann taller than Bob, if Ann is 160 cm and Bob is 175 cm tall?"
FISH = "How many chambers does a fish heart have?"
SYDNEY = "In which year did the Sydney Olympics take place?"
PRESIDENTS = "Who were the first three presidents of the United States, in order?"
NAIROBI = "What is the currency of the country whose capital is Nairobi?"
SHILLING = "The currency of the country whose capital is Nairobi is the shilling."
PESO = "The currency of the country whose capital is Nairobi is the peso."
VIENTIANE = "What is the main language of the country whose capital is Vientiane?"
CANDIDE = "Which country did the person who wrote Candide come from?"
UKULELES = "A music school owns 2 ukuleles. How many strings do they have in total?"
WHAT_IS_ASKED = [
    ("text", "shilling", f"It is not true that t{PESO[1:]} {SHILLING}", NAIROBI, RIGHT),
    ("text", "shilling", f"It is not true that t{SHILLING[1:]} {PESO}", NAIROBI, WRONG),
    ("text", "shilling", f"It is a myth that t{SHILLING[1:]}", NAIROBI, WRONG),
    ("text", "shilling", f"It is true that t{SHILLING[1:]}", NAIROBI, RIGHT),
    ("number", "8", "It is not true that they have 7 strings. They have 8 strings.", UKULELES, RIGHT),
    ("number", "8", "It is not true that they have 8 strings. They have 7 strings.", UKULELES, WRONG),
    ("text", "France", "As far as I know, the person who wrote Candide came from France.", CANDIDE, RIGHT),
    ("text", "France", "Based on the information provided, the person who wrote it came from Italy.", CANDIDE, WRONG),
    ("text", "shilling", f"{PESO} Wait, no. {SHILLING}", NAIROBI, RIGHT),
    ("text", "shilling", f"{SHILLING} Wait, no. {PESO}", NAIROBI, WRONG),
    ("text", "shilling", f"{SHILLING} Actually, no: it is the peso.", NAIROBI, NOT_RIGHT),
    ("text", "Lao", "The main language of Laos is Lao.", VIENTIANE, RIGHT),
    ("text", "Lao", "Laos", VIENTIANE, WRONG),
    ("text", "Lao", "The main language of Laos is Thai.", VIENTIANE, WRONG),
    ("text", "Laos", "Vientiane is in Laos.", "In which country is Vientiane?", RIGHT),
    ("text", "France", "Voltaire wrote Candide. Voltaire came from France.", CANDIDE, RIGHT),
    ("text", "France", "Voltaire wrote Candide. Voltaire came from Italy.", CANDIDE, WRONG),
    ("text", "France", "Voltaire. He came from Italy, and wrote in France.", CANDIDE, NOT_RIGHT),
    ("number", "2", "A fish heart has two chambers, unlike the human heart, which has four.", FISH, RIGHT),
    ("number", "2", "A fish heart has four chambers, unlike the human heart, which has two.", FISH, NOT_RIGHT),
    ("number", "2", "While the fish heart has four chambers, a human heart has only two.", FISH, NOT_RIGHT),
    ("date", "2000", "From 15 September to 1 October 2000.", SYDNEY, RIGHT),
    ("date", "2001", "From 15 September to 1 October 2000.", SYDNEY, WRONG),
    ("date", "2000", "From 15 September 2000 to 1 October 2001.", SYDNEY, WRONG),
    ("date", "2000", "Before 1 October 2000.", SYDNEY, NOT_RIGHT),
    ("ordered-list", "George Washington; John Adams", "Washington and Adams", PRESIDENTS, OPEN),
    ("ordered-list", "George Washington; John Adams", "Adams and Washington", PRESIDENTS, WRONG),
    ("number", "120", "80 seats are taken and 120 are not.", TAKEN, RIGHT),
    ("number", "120", "120 seats are taken and 80 are not.", TAKEN, NOT_RIGHT),
    ("number", "365", "A leap year has 366 days, but 2023 wasn't one. So 365.", LEAP_YEAR, RIGHT),
    ("number", "366", "A leap year has 366 days, but 2023 wasn't one. So 365.", LEAP_YEAR, NOT_RIGHT),
    ("number", "13", "Lena's brother is 13 years old.", HER_BROTHER, RIGHT),
    ("number", "13", "Lena is 13.", HER_BROTHER, NOT_RIGHT),
    ("choice", "B", "Option A would mean a side of 2 m. Since the side is 5 m, it's option B.", SQUARE, RIGHT),
    ("choice", "A", "Option A would mean a side of 2 m. Since the side is 5 m, it's option B.", SQUARE, WRONG),
    ("choice", "C", "Option B would mean a side of 5 m, which is too small, so C.", SQUARE, RIGHT),
    ("choice", "B", "Option B would mean a side of 5 m, which is too small, so C.", SQUARE, WRONG),
    ("choice", "A", "Evaporation (A) is right, because condensation is the opposite.", GASES, RIGHT),
    ("choice", "A", "It's condensation. Evaporation (A) is the opposite.", GASES, NOT_RIGHT),
    ("choice", "A", "It's evaporation. Condensation (B) is the opposite.", GASES, {"correct", "invalid"}),
    ("ordered-list", "15 and 3", "There are 3 apples in each bag, and she has 15 apples in all.", IN_BAGS, RIGHT),
    ("ordered-list", "15 and 3", "There are 15 apples in each bag, and she has 3 apples in all.", IN_BAGS, WRONG),
    ("text", "Chad", "Kenya has a coast, but Chad doesn't, so Chad is landlocked.", LANDLOCKED, RIGHT),
    ("text", "Chad", "Chad has a coast, but Kenya doesn't, so Kenya is landlocked.", LANDLOCKED, NOT_RIGHT),
    ("boolean", "no", "Ann (160 cm) is not taller than Bob (175 cm).", TALLER, RIGHT),
    ("boolean", "no", "Ann (160 cm) is taller than Bob (175 cm).", TALLER, WRONG),
    ("number", "15", "5 are red and 15 are not.", RED, RIGHT),
    ("number", "15", "15 are red and 5 are not.", RED, NOT_RIGHT),
    ("number", "45", "Of the 60 pupils, 15 walk and 45 do not walk.", WALK, RIGHT),
    ("number", "45", "45 pupils walk and 15 do not.", WALK, NOT_RIGHT),
    ("number", "28", "28 pupils can swim and 12 cannot.", SWIM, RIGHT),
    ("number", "28", "12 pupils can swim and 28 are not able to.", SWIM, NOT_RIGHT),
    ("number", "72", "She sold 72 clips \u2014 48 in April and 24 in May.", CLIPS, RIGHT),
    ("number", "72", "She sold 74 clips \u2014 48 in April and 26 in May.", CLIPS, WRONG),
    ("number", "11", "Each team has 11 players: 10 outfield players and one goalkeeper.", None, RIGHT),
    ("number", "10", "Each team has 11 players: 10 outfield players and one goalkeeper.", None, NOT_RIGHT),
    ("number", "2", "Spiders have 8 legs while insects have 6, a difference of 2.", MORE_LEGS, RIGHT),
    ("number", "2", "Spiders have 8 legs while insects have 2, a difference of 6.", MORE_LEGS, NOT_RIGHT),
    ("number", "50", "It rose by 50%, from $200 to $300.", PHONE, RIGHT),
    ("text", "Antarctica", "The continent without a permanent population is Antarctica.", EMPTY, RIGHT),
    ("text", "Jordan", "The country that has not won is Jordan.", None, RIGHT),
    ("text", "Jordan", "I do not think that the country is Jordan.", None, WRONG),
    ("text", "Mary Shelley", '"Frankenstein; or, The Modern Prometheus" was written by Mary Shelley.', NOVEL, RIGHT),
    ("text", "Mercury", "Venus is the hottest, but Mercury is closest to the Sun.",
     "Which planet is closest to the Sun?", RIGHT),
    ("text", "Mercury", "Mercury is the smallest planet, but Venus is closest to the Sun.",
     "Which planet is closest to the Sun?", NOT_RIGHT),
    ("ordered-list", "Alpha; Beta; Gamma", "Alpha, beta, and gamma, followed by delta.", FIRST_LETTERS, RIGHT),
    ("ordered-list", "Alpha; Beta; Delta", "Alpha, beta, and gamma, followed by delta.", FIRST_LETTERS, NOT_RIGHT),
    ("number", "30", "The larger number is 30 and the smaller is 20.", TWO, RIGHT),
    ("number", "30", "The larger number is 20 and the smaller is 30.", TWO, NOT_RIGHT),
    ("number", "17", "The smallest prime greater than 13 is 17, then comes 19.", NEXT_PRIME, RIGHT),
    ("number", "17", "The smallest prime greater than 13 is 15, then comes 17.", NEXT_PRIME, NOT_RIGHT),
    ("number", "11", "The tag of the axe is 4 and the tag of the tea is 7. The sum is 11.", TAGS, RIGHT),
    ("number", "4", "The tag of the axe is 4 and the tag of the tea is 7. The sum is 11.", TAGS, NOT_RIGHT),
    ("number", "9", "Maria is 36 and her son is 9.", OWN_SON, RIGHT),
    ("number", "9", "Her son is 36 and Maria is 9.", OWN_SON, WRONG),
    ("number", "18", "Janet sells 9 eggs per day and makes $18.", EGGS, RIGHT),
    ("number", "18", "Janet sells 18 eggs per day and makes $36.", EGGS, NOT_RIGHT),
    ("number", "20", "The shirt is discounted by $5, so it costs $20.", SALE, RIGHT),
    ("number", "20", "The shirt is discounted by $20, so it costs $5.", SALE, NOT_RIGHT),
    ("number", "64", LEFT_AND_EACH, DESKS, RIGHT),
    ("number", "8", LEFT_AND_EACH, DESKS, NOT_RIGHT),
    ("number", "15", "The number of wins is L + 8. 2L = 14. They won 22 - 7 = 15.", GAMES, RIGHT),
    ("number", "6.5", "The average is **6.5**, which lies between 6 and 7.", None, RIGHT),
    ("number", "6.5", "The average lies between 6 and 7.", None, WRONG),
    ("choice", "C", "Option A is 3, which is too few. 12 - 5 = 7, so option C.", PEARS, RIGHT),
    ("choice", "A", "Option A is 3, which is too few. 12 - 5 = 7, so option C.", PEARS, WRONG),
    ("boolean", "false", "F", SOUND, RIGHT),
    ("boolean", "false", "T", SOUND, WRONG),
    ("boolean", "true", "F", SOUND, WRONG),
    ("ordered-list", "8 and 2", "A hen has 2 legs, and a spider has 8.", LEGS, RIGHT),
    ("ordered-list", "8 and 2", "A hen has 8 legs, and a spider has 2.", LEGS, WRONG),
    ("ordered-list", "8 and 2", "Hen: 2\nSpider: 8", LEGS, RIGHT),
    ("ordered-list", "8 and 2", "Hen: 8\nSpider: 2", LEGS, WRONG),
    ("ordered-list", "8 and 2", "2 and 8", LEGS, WRONG),
    ("ordered-list", "2, 8", "A hen has 2 and a spider has 8.", f"In ascending order, h{LEGS[1:]}", RIGHT),
    ("ordered-list", "2, 8", "A spider has 8 and a hen has 2.", f"In ascending order, h{LEGS[1:]}", WRONG),
    ("ordered-list", "2, 8", "A hen has 2, a spider has 8.", "How many legs has a spider and a hen, fewest first?",
     RIGHT),
    ("text", "3:2", "The ratio of girls to boys is 18:12, which simplifies to 3:2.", RATIO, RIGHT),
    ("text", "3:2", "18:12 = 2:3", RATIO, NOT_RIGHT),
    ("text", "Amazon", "The Nile is the longest, but the Amazon carries the most water.", WATER, RIGHT),
    ("text", "Amazon", "The Amazon is the longest, but the Nile carries the most water.", WATER, NOT_RIGHT),
    ("text", "helium", "The lightest is hydrogen and the second lightest is helium.", LIGHTEST, RIGHT),
    ("text", "helium", "The lightest is helium and the second lightest is hydrogen.", LIGHTEST, NOT_RIGHT),
    ("text", "elppa", "e-l-p-p-a", BACKWARDS, RIGHT),
    ("text", "elppa", "E L P P A", BACKWARDS, RIGHT),
    ("text", "elppa", "The word backwards is e-l-p-p-a.", BACKWARDS, RIGHT),
    ("text", "elppa", "The word backwards is e-l-p-a-p.", BACKWARDS, WRONG),
    ("text", "C-E-G", "The chord is C-E-G.", CHORD, RIGHT),
    ("text", "C-E-G", "The chord is C-G-E.", CHORD, WRONG),
    ("text", "3:2", "The ratio is 3:2 = 1.5.", RATIO, RIGHT),
    ("text", "3:2", "The ratio is 3:2, which reduces to nothing smaller.", RATIO, RIGHT),
    ("number", "60", "The total price is $60. The tip was $10.", WITH_TIP, RIGHT),
    ("number", "10", "The total price is $60. The tip was $10.", WITH_TIP, NOT_RIGHT),
    ("number", "12", "28 pupils can swim and 12 cannot.", SWIM.replace("pupils can", "pupils cannot"), NOT_WRONG),
    ("choice", "A", "Water is a vapour then. A is right, that is unlike condensation.", GASES, NOT_WRONG),
    ("choice", "A", "Heat is needed. A is the answer, it's the reverse of condensation.", GASES, NOT_WRONG),
    ("choice", "A", "Heat is needed. That's evaporation, it's the reverse of condensation.", GASES, NOT_WRONG),
    ("choice", "A", "A is right. Vapour that cools is liquid, so condensation is the reverse.", GASES, NOT_WRONG),
    ("choice", "B", "Condensation (B). Heat makes evaporation, therefore evaporation fails.", GASES, NOT_WRONG),
    ("choice", "B", "Evaporation and freezing need no cold vapour; what is asked for is (B).", GASES, RIGHT),
    ("number", "12", "Ben is 12.", "Tom is 10. His brother is Ben. How old is his brother?", RIGHT),
    ("number", "12", "Ben is 12.", "Tom is 10. His brother Al is older than Ben. How old is his brother?", NOT_RIGHT),
    ("text", "Nile", "It is the Nile, and the longest river in Asia is the Yangtze.", LONGEST, RIGHT),
    ("text", "peso", f"It is not true that t{SHILLING[1:-1]}, it is the peso.", NAIROBI, RIGHT),
    ("text", "peso", "I know that it isn't what is called a peso.", NAIROBI, WRONG),
    ("text", "Mary Shelley", "It was Mary Shelley, and the book Frankenstein is set in Geneva.", BOOK, RIGHT),
    ("text", "Amazon", "The Amazon is longest, but most water is carried by the Nile.", WATER, NOT_RIGHT),
    ("text", "[1, 4, 9]", "```python\n[1, 4, 9]\n```", None, RIGHT),
    ("text", "[1, 4, 9]", "The expression gives `[1,4,9]`.", None, RIGHT),
    ("text", "[1, 4, 9]", "The expression gives `[1,4,8]`.", None, NOT_RIGHT),
    ("text", "HELLO", "```python\nHELLO\n```", None, RIGHT),
]  # fmt: skip
PLANETS, EVENTS = (
    "Order these planets from closest to farthest: Mars, Venus, Earth.",
    "In what order: A) Moon, B) Wall, C) War?",
)
FACTORS, BORDERS = "What are the prime factors of 60?", "Which countries border Portugal or Andorra?"
ORDERS = [
    ("ordered-list", "C, A, B", "The order is **C, A, B**:\n\n- C) War (1945)\n- A) Moon (1969)\n- B) Wall (1989)",
     EVENTS, RIGHT),
    ("ordered-list", "C, A, B", "The order is **C, B, A**:\n\n- C) War (1945)\n- A) Moon (1969)\n- B) Wall (1989)",
     EVENTS, NOT_RIGHT),
    ("ordered-list", "C, A, B", "C-A-B", EVENTS, RIGHT),
    ("ordered-list", "C, A, B", "C-B-A", EVENTS, WRONG),
    ("ordered-list", "Venus, Earth, Mars", "Mars, Earth, Venus. From afar: Venus, Earth, Mars.", PLANETS, NOT_RIGHT),
    ("ordered-list", "Venus, Earth, Mars", "We have Mars, Venus, Earth. Sorted: Venus, Earth, Mars.", PLANETS, RIGHT),
    (
        "ordered-list",
        "Venus, Earth, Mars",
        "Venus 0.7, Earth 1, Mars 1.5. So the order is Mars, Earth, Venus.",
        PLANETS,
        WRONG,
    ),
    (
        "ordered-list",
        "Venus, Earth, Mars",
        "Mars 1.5, Venus 0.7, Earth 1. So the order is Venus, Earth, Mars.",
        PLANETS,
        RIGHT,
    ),
    ("ordered-list", "Venus, Earth, Mars", "Venus is first, Mars is last, and Earth is in between.", PLANETS,
     NOT_WRONG),
    ("ordered-list", "Venus, Earth, Mars",
     "**Venus, Earth, Mars**\n\nWhy:\n- Mars is at 1.5\n- Venus is at 0.7\n- Earth is at 1", PLANETS, RIGHT),
    ("ordered-list", "Venus, Earth, Mars",
     "**Mars, Earth, Venus**\n\nWhy:\n- Venus is at 0.7\n- Earth is at 1\n- Mars is at 1.5", PLANETS, NOT_RIGHT),
    ("ordered-list", "-2, 3.5, 10", "minus two, three and a half, ten", None, RIGHT),
    ("ordered-list", "-2, 3.5, 10", "minus two, three and a quarter, ten", None, NOT_RIGHT),
    ("list", "2, 3, 5", "$$60 = 2^2 \\cdot 3 \\cdot 5$$\n\nPrime factors: $2, 3, 5$", FACTORS, RIGHT),
    ("list", "2, 3, 5", "60/2 = 30\n30/2 = 15\n15/3 = 5\n\nPrime factors: 2, 3, 5", FACTORS, RIGHT),
    ("list", "2, 3, 5", "60/2 = 30\n30/2 = 15\n\nPrime factors: 2, 15", FACTORS, WRONG),
    ("list", "2, 3, 5", "-", FACTORS, OPEN),
    ("list", "Spain and France", "- [x] Spain\n- [x] France\n- [ ] Italy", BORDERS, RIGHT),
    ("list", "Spain and France", "- [x] Spain\n- [ ] France\n- [x] Italy", BORDERS, NOT_RIGHT),
    ("list", "Spain and France", "Spain, of course, but also France.", BORDERS, RIGHT),
    ("list", "Spain and France", "Spain, of course, but also Italy.", BORDERS, WRONG),
    ("list", "Spain and France", "Spain as well as France", BORDERS, RIGHT),
    ("list", "Spain and France", "Spain as well as Italy", BORDERS, WRONG),
    ("number", "1/6", "There is a 1-in-6 chance (about 16.7%).", None, RIGHT),
    ("number", "1/6", "There is a 1-in-5 chance (about 20%).", None, WRONG),
]  # fmt: skip
SPEED, RUN = "What is its average speed in kilometres per hour?", "How fast is it in m/s?"
SPEEDS = [
    ("number", "72", "72 km/h", SPEED, RIGHT),
    ("number", "72", "20 m/s", SPEED, RIGHT),
    ("number", "72", "72 m/s", SPEED, WRONG),
    ("number", "72", "72 mph", SPEED, WRONG),
    ("number", "72 km/h", "20 metres per second", None, RIGHT),
    ("number", "72 km/h", "72 metres per second", None, WRONG),
    ("number", "20000", "20 km/s", RUN, RIGHT),
    ("number", "20", "20 km/s", RUN, WRONG),
    ("date", "22:05", "It starts at 7:45 PM and ends at 10:05 PM.", "When does it end if it starts at 19:45?", RIGHT),
    ("date", "22:05", "It starts at 10:05 PM and ends at 7:45 PM.", "When does it end if it starts at 19:45?",
     NOT_RIGHT),
]  # fmt: skip
DAYS, SIGNED = "Which date is 10 days after 25 February 2024?", "In what year was the treaty signed?"
LANDED = "When did the Apollo 11 mission land on the Moon?"
BORN, ABSTAIN = "In which city was Franz Kafka born?", {"abstained"}
WHERE_IN = "Which town in Norway has the church of wood?"
PRIZE = "In which year did Ida Holm win the Hansa Prize for work on the history of the old harbour towns?"
TWO_PRIZES = (
    "From what is known, Ida Holm won the Hansa Prize for work on the history of harbour towns in 1975. It was one of "
    "her prizes, beside the Gold Star in 1984 and the Medal of the Town."
)
FIRST_PRIZE = "In what year did Ida win her first Prize?"
PLACES_AND_REMARKS = [
    ("text", "Mercury (planet)", "Mercury", None, RIGHT),
    ("text", "Mercury (planet)", "The closest to the Sun is Mercury, which has no moon.", None, RIGHT),
    ("text", "Mercury (planet)", "Venus", None, WRONG),
    ("text", "Emma (1996)", "The film is Emma.", None, RIGHT),
    ("text", "Emma (1996)", "Emma (2020)", None, OPEN),
    ("text", "John Vik (died 1890)", "John Vik (died 1900)", None, OPEN),
    ("text", "John Vik (died 1890)", "John Vik (died in 1890)", None, RIGHT),
    ("text", "Georgia (country)", "It is the state of Georgia.", None, OPEN),
    ("text", "Georgia (country)", "Georgia, the country, is meant.", None, RIGHT),
    ("text", "f(n) = n (mod 4)", "f(n) = n", None, OPEN),
    ("text", "Iron (III)", "Iron (II)", None, WRONG),
    ("text", "Lom, Norway", "The town of Lom has the church.", WHERE_IN, RIGHT),
    ("text", "Lom, Norway", "The town of Vik has the church.", WHERE_IN, WRONG),
    ("text", "Lom, Norway", "Norway", WHERE_IN, NOT_RIGHT),
    ("text", "Lom, Norway", "Lom, Bulgaria", WHERE_IN, WRONG),
    ("text", "Lom, Norway", "The town of Lom in Bulgaria has the church.", WHERE_IN, WRONG),
    ("text", "Portland, Maine", "He was born in Portland, a town with a harbour.", "Where was he born?", OPEN),
    ("text", "Portland, Maine", "He was born in Portland, Oregon.", "Where was he born?", WRONG),
    ("text", "Portland, Maine", "He was born in Bangor.", "Where was he born?", WRONG),
    ("text", "Folk Museum Oslo", "Folk Museum", "Which museum in Oslo is it?", RIGHT),
    ("text", "Folk Museum Oslo", "Folk Theatre", "Which museum in Oslo is it?", WRONG),
    ("text", "University of Oslo", "It is the University.", "Which university in Oslo is it?", NOT_RIGHT),
    ("text", "Hawaii", "Hawai\u02bbi", None, RIGHT),
    ("text", "Hawaii", "It is in Hawai\u2018i.", None, RIGHT),
    ("text", "Nora Vik", "From the clues, this is Nora Vik. Her voyages to Iceland made her known.", "Who is it?",
     RIGHT),
    ("number", "1975", "Ida won the Prize in 1984. Her first Prize was in 1975.", FIRST_PRIZE, RIGHT),
    ("number", "1975", "Ida did not win her first Prize in 1984. It was 1975.", FIRST_PRIZE, RIGHT),
    ("text", "WHO", "It was held on the lake by UNICEF.", "Which body is it?", WRONG),
    ("date", "1975", "Ida won the Prize in 1984. Her first Prize was in 1975.", FIRST_PRIZE, RIGHT),
    ("number", "1975", TWO_PRIZES, PRIZE, RIGHT),
    ("number", "1984", TWO_PRIZES, PRIZE, WRONG),
    ("date", "1975", TWO_PRIZES, PRIZE, RIGHT),
    ("date", "1984", TWO_PRIZES, PRIZE, WRONG),
]  # fmt: skip
NO_SOURCE = "The available data sources do not contain specific information about"
CAPITAL = "What is the capital of Norway?"
ABSTAINED = {"abstained"}
DECLINED = [
    ("date", "1903", "The exact date is unknown; she died in 1903.", "When did she die?", RIGHT),
    ("date", "1903", "The exact date is not known. She died in 1905.", "When did she die?", WRONG),
    ("boolean", "no", "I'm not sure, but no.", "Is Lom in Norway?", RIGHT),
    ("boolean", "yes", "I'm not sure, but no.", "Is Lom in Norway?", WRONG),
    ("boolean", "yes", "No evidence against it: yes.", "Is Lom in Norway?", ABSTAINED),
    ("boolean", "yes", "No evidence against it. Yes.", "Is Lom in Norway?", ABSTAINED),
    ("boolean", "no", "There is no direct mention of it. No.", "Is Lom in Norway?", RIGHT),
    ("boolean", "no", "The sources do not provide any information on it, so no.", "Is Lom in Norway?", RIGHT),
    ("boolean", "no", "I don't know, but it does not say so.", "Is Lom in Norway?", ABSTAINED),
    ("number", "12", "There is no direct mention, so 12.", "How many?", RIGHT),
    ("number", "12", "I'm not sure, but it is 14, not 12.", "How many?", WRONG),
    ("choice", "B", "I'm not sure, but B, not A.", "Which?\nA) one\nB) two", RIGHT),
    ("text", "Oslo", "I'm not sure, but it is Oslo, not Bergen.", CAPITAL, RIGHT),
    ("text", "Oslo", "I'm not sure, but it is Bergen, not Oslo.", CAPITAL, WRONG),
    ("text", "Oslo", "I don't know, but no doubt it is Oslo.", CAPITAL, RIGHT),
    ("date", "1903", "The exact date is not known.", "When did she die?", ABSTAINED),
    ("text", "Oslo", f"Unfortunately, {NO_SOURCE[0].lower()}{NO_SOURCE[1:]} the capital.", CAPITAL, ABSTAINED),
    ("text", "Oslo", f"{NO_SOURCE} it. They name some towns, but do not say which is the capital.", CAPITAL, ABSTAINED),
    ("number", "5", "Based on the provided passages, there is no specific mention of the number.", None, ABSTAINED),
    ("date", "1814", "From the documents provided, I cannot definitively determine the year.", None, ABSTAINED),
    ("text", "Oslo", f"{NO_SOURCE} it, but it is Oslo.", CAPITAL, RIGHT),
    ("text", "Oslo", f"{NO_SOURCE} it, but it is Bergen.", CAPITAL, WRONG),
    ("text", "Oslo", f"{NO_SOURCE} it. The capital of Norway is Oslo.", CAPITAL, OPEN),
    ("text", "Oslo", "I'm not sure, but it isn't Oslo.", CAPITAL, NOT_RIGHT),
    ("text", "Oslo", "Based on the available information, the capital is Oslo.", CAPITAL, RIGHT),
    ("text", "Oslo", "Based on the available information, the capital is Bergen.", CAPITAL, WRONG),
]
LATE = "Who was late?\nA) The cook\nB) The guide\nC) Cannot be determined"
OPEN_WORLD = "Was she late?\nA) Yes\nB) No\nC) Unknown"
DYED, GUILD = "In which year did Mara Lind make the dye?", "During which years did Otto Brandt lead the guild?"
NOT_GIVEN = "The sources do not provide a specific year when Mara Lind made the dye."
UNKNOWN = [
    ("choice", "C", "Cannot be determined", LATE, RIGHT),
    ("choice", "C", "(C) Cannot be determined", LATE, RIGHT),
    ("choice", "C", "It cannot be determined from the text who was late.", LATE, RIGHT),
    ("choice", "C", "I do not know.", LATE, OPEN),
    ("choice", "C", "(C) cannot be right. It was the guide (B).", LATE, WRONG),
    ("choice", "B", "(C) cannot be right. It was the guide (B).", LATE, RIGHT),
    ("choice", "B", "Cannot be determined", LATE, WRONG),
    ("choice", "B", "I do not know.", LATE, ABSTAINED),
    ("choice", "C", "Unknown.", OPEN_WORLD, RIGHT),
    ("choice", "A", "Unknown.", OPEN_WORLD, WRONG),
    ("text", "unknown", "It is unknown.", "Is the claim true, false or unknown?", RIGHT),
    ("text", "unknown", "True.", "Is the claim true, false or unknown?", WRONG),
    ("text", "true", "Unknown.", "Is the claim true, false or unknown?", ABSTAINED),
    ("boolean", "yes", "The answer is **indeterminable.**", "Was she late?", ABSTAINED),
    ("number", "1950", f"{NOT_GIVEN} However, Lind led the works in 1950.", DYED, OPEN),
    ("number", "1950", f"{NOT_GIVEN} However, she probably did so in 1950.", DYED, RIGHT),
    ("number", "1950", f"{NOT_GIVEN} However, she probably did so in 1951.", DYED, WRONG),
    ("number", "1950", "The exact year is not given. Lind led the works in 1950.", DYED, OPEN),
    ("text", "1903 to 1904", "Otto Brandt led the guild during 1903-04.", GUILD, RIGHT),
    ("text", "1903 to 1904", "Otto Brandt led the guild during 1903-05.", GUILD, WRONG),
    ("text", "1903/04", "He led it from 1903 to 1904.", GUILD, RIGHT),
    ("text", "1903/04", "He led it from 1902 to 1904.", GUILD, WRONG),
]
AS_IT_STANDS = 'Is "Nick Dorn of the series Harbour has a child" true or false?'
STATEMENTS = [
    ("boolean", "false", "So the statement is correct about the child. The statement as it stands is **False.**",
     RIGHT),
    ("boolean", "true", "So the statement is correct about the child. The statement as it stands is **False.**", WRONG),
    ("boolean", "true", "The claim is false of the book. As he has a child, the whole claim is thus true.", RIGHT),
    ("boolean", "true", "The statement is false. If he had a child, the statement would be true.", NOT_RIGHT),
    ("boolean", "false", "The statement is false. If he had a child, the statement is true.", RIGHT),
    ("boolean", "false", "Are follow up questions needed here: No.\nFalse", RIGHT),
    ("boolean", "true", "Are follow up questions needed here: No.\nTrue", RIGHT),
    ("boolean", "true", "Are follow up questions needed here: Yes.\nFollow up: Who was Nick Dorn?", OPEN),
]  # fmt: skip
SPUN = "24 hours, 39 minutes and 35 seconds"
VOTE = "50 Yeas and 49 Nays"
QUANTITIES = [
    ("text", SPUN, "A day there lasts 24 hours, 39 minutes, and 35 seconds.", "How long is a day there?", RIGHT),
    ("text", SPUN, "A day there lasts 24 hours, 38 minutes, and 35 seconds.", "How long is a day there?", WRONG),
    ("number", "2 hours, 15 minutes", "It takes 135 minutes.", "How long does it take?", RIGHT),
    ("number", "2 hours, 15 minutes", "It takes 125 minutes.", "How long does it take?", WRONG),
    ("text", VOTE, "She was confirmed by a vote of 50-49 in June 2023.", "By which vote?", OPEN),
    ("text", VOTE, "She was confirmed by a vote of 51-48 in June 2023.", "By which vote?", WRONG),
    ("text", VOTE, "She was confirmed by a vote of 49-50 in June 2023.", "By which vote?", WRONG),
    ("text", "Argentinian", "He is an Argentine player.", "Of what nationality is he?", RIGHT),
    ("text", "Argentinian", "He is a Chilean player.", "Of what nationality is he?", WRONG),
    ("date", "2002-06-04", "I apologize, but I do not have enough reliable information.", "When was it?", ABSTAINED),
]
ICE, WHICH_DAY = "What happens to ice in the sun?", "What is the date tomorrow?"
MELTS = "Ice melts in the sun and is soon gone"
WHEN_IT_IS = "The answer depends on the date. If today is {}, the answer is {}. If today is {}, the answer is {}."
SENTENCES = [
    ("text", MELTS, "Ice melts in the sun and is soon gone.", ICE, RIGHT),
    ("text", MELTS, "It turns to water quickly.", ICE, OPEN),
    ("text", MELTS, "It becomes harder.", ICE, OPEN),
    ("text", MELTS, "The text does not mention it.", ICE, ABSTAINED),
    ("text", "The Melting of the Ice in the Sun", "The Freezing of the Lake", "Which book is it?", WRONG),
    ("text", "Everything Is Ice", "Nothing Is Ice", "Which book is it?", WRONG),
    ("date", "2020-12-03", WHEN_IT_IS.format("Dec 2, 2020", "12/03/2020", "Dec 2, 2021", "12/03/2021"), WHICH_DAY,
     OPEN),
    ("number", "4", "If x is 3, the answer is 4. If x is 5, the answer is 6.", "What is x + 1?", OPEN),
    ("text", "Oslo", "If it is cold, the answer is Oslo. If not, the answer is Lom.", "Which town?", OPEN),
    ("text", "Lom", "If it is cold, the answer is Oslo. If not, the answer is Lom.", "Which town?", OPEN),
    ("number", "4", "If x is 3, the answer is 4. If we count again, the answer is 4.", "What is x + 1?", RIGHT),
    ("number", "4", "If x is 3, then the answer is 4.", "What is x + 1 for x = 3?", RIGHT),
    ("number", "4", "If x is 5, the answer is 6. So the answer is 4.", "What is x + 1 for x = 3?", RIGHT),
    ("number", "4", "If x is 3, the answer is 4. So the answer is 6.", "What is x + 1 for x = 5?", WRONG),
]  # fmt: skip
FOREST = "What is the area of the Lom forest in square kilometers according to the Forest Report 2019?"
LOM_AREA = (
    "According to the Forest Report 2019, the area of the Lom forest is {} square kilometres, or 6.15 percent of all."
)
AREAS = [
    ("number", "14805.65", LOM_AREA.format("14,805.65"), FOREST, RIGHT),
    ("number", "14805.65", LOM_AREA.format("14,850.65"), FOREST, WRONG),
    ("number", "6.15", LOM_AREA.format("14,805.65"), FOREST, NOT_RIGHT),
]
KIN, RACE, CUPS = "How is Ada related to Bo?", "Could a mule win twice?", "How many of 12 cups are left after 3 days?"
COMPOUNDS = [
    ("text", "mother", "Final Answer: Ada is Bo's mother.", KIN, RIGHT),
    ("text", "mother", "Final Answer: Ada is Bo's mother-in-law.", KIN, NOT_RIGHT),
    ("text", "mother-in-law", "Final Answer: Ada is Bo's mother in law.", KIN, RIGHT),
    ("text", "mother-in-law", "Final Answer: Ada is Bo's mother.", KIN, WRONG),
    ("text", "grandson", "Final Answer: Ben is Bo's great-grandson.", KIN, NOT_RIGHT),
    ("text", "great-grandson", "Final Answer: Ben is Bo's great-grandson.", KIN, RIGHT),
    ("text", "president", "She was the vice-president of the club.", "What was she?", NOT_RIGHT),
    ("text", "fiction", "The book is non-fiction.", "Which kind of book is it?", NOT_RIGHT),
    ("text", "law", "She took a degree in law.", "In what did she take a degree?", RIGHT),
    ("boolean", "no", f"Final answer: {RACE}\nNo, it could not.", RACE, RIGHT),
    ("boolean", "yes", f"Final answer: {RACE}\nNo, it could not.", RACE, WRONG),
    ("boolean", "yes", f"Final answer: {RACE}", RACE, OPEN),
    ("number", "6", f"Final answer: {CUPS}\nThere are 6 cups left.", CUPS, RIGHT),
    ("number", "12", f"Final answer: {CUPS}\nThere are 6 cups left.", CUPS, WRONG),
    ("text", "Who Goes There?", "Answer: Who Goes There?\nIt is a play by Ida Holm.", "Which play is it?", RIGHT),
    ("boolean", "no", "I cannot give a sure answer. However, it is unlikely, as it was not shown.", RACE, OPEN),
]
MARKED_NAMES = [
    ("text", "Old Songs #1", 'The record is called "Old Songs #1." It came out late.', None, RIGHT),
    ("text", "Old Songs #1", 'The record is called "Old Songs #2." It came out late.', None, WRONG),
    ("text", "Hurray! At the Lake", "They saw Hurray! At the Lake, a comedy.", "Which play did they see?", RIGHT),
    ("text", "Hurray! At the Lake", "They saw Hurray. At the sea it rained.", "Which play did they see?", NOT_RIGHT),
    ("text", "Oh! Summer!", 'The musical "Oh! Summer!" opened in 1969.', "Which musical opened in 1969?", RIGHT),
    ("text", "WHO", "The World Health Organization (in Geneva) published it.", "Who published it?", OPEN),
    ("text", "WHO", "The National Trust (in London) published it.", "Who published it?", WRONG),
    ("text", "red, white and blue", "red, white, blue", None, RIGHT),
    ("text", "red, white and blue", "red, white, green", None, WRONG),
    ("text", "salt and pepper", "salt, pepper", None, NOT_WRONG),
    ("text", "40:30", "She ran it in 40 minutes and 30 seconds.", None, RIGHT),
    ("text", "40:30", "She ran it in 40 minutes and 3 seconds.", None, WRONG),
    ("choice", "B", "Yes, B is correct. The other options (A, C and D) take a town for granted.", None, RIGHT),
    ("choice", "C", "Yes, B is correct. The other options (A, C and D) take a town for granted.", None, WRONG),
    ("number", "1777", "Lom was founded on 3 May 1777. It lies by a lake.", "What year was Lom founded?", RIGHT),
    ("number", "1777", "Lom was founded on 3 May 1778. It lies by a lake.", "What year was Lom founded?", WRONG),
]
STEPS = [
    ("boolean", "yes", "Yes, he lied. The statement was false.", "Did he lie?", RIGHT),
    ("boolean", "no", "Yes, he lied. The statement was false.", "Did he lie?", WRONG),
    ("boolean", "yes", "No, he told the truth. The statement was true.", "Did he lie?", WRONG),
    ("text", "Oslo", "Bergen is by the sea; Oslo is the capital.\nAction: Finish[Oslo]", None, RIGHT),
    ("text", "Bergen", "Bergen is by the sea; Oslo is the capital.\nAction: Finish[Oslo]", None, WRONG),
    ("number", "12", "3 + 9 is 12, not 39.\nAction: Finish[12]", None, RIGHT),
    ("number", "39", "3 + 9 is 12, not 39.\nAction: Finish[12]", None, WRONG),
    ("boolean", "no", "Only one of them is.\nThought: done\nAction: Finish[No, only one is]", None, RIGHT),
    ("text", "Oslo", "The question asks which city is the capital. It is Oslo.", "Which city is it?", RIGHT),
    ("text", "Oslo", "The question asks which city is larger: Oslo or Bergen.", "Is it Oslo or Bergen?", OPEN),
    ("text", "Oslo", "Okay, so the user is asking for the capital of Norway.", "What is its capital?", OPEN),
    ("text", "Oslo", "The question asks for the capital, which is Oslo.", "What is its capital?", RIGHT),
    ("text", "Oslo", "The question asks for the capital. It is Bergen.", "What is its capital?", WRONG),
    ("text", "Oslo", "The question asks for its capital: Oslo.", "What is its capital?", RIGHT),
    ("text", "Oslo", "The question wants Oslo.", "What is its capital?", RIGHT),
    ("text", "Oslo", "The question is about a land whose capital is Oslo.", "What is its capital?", RIGHT),
    ("number", "7", "The question asks how many are left: 12 - 5 = 7.", "How many of 12 are left?", RIGHT),
    ("boolean", "yes", "The question is asking if Oslo is its capital: yes", "Is Oslo its capital?", RIGHT),
]
AFTERWORDS = [
    ("date", "2024-03-06", "2024 is a leap year. 25 Feb + 4 days = 29 Feb; 6 more days \u2192 6 March 2024.", DAYS,
     RIGHT),
    ("date", "2024-03-06", "2024 is a leap year. 25 Feb + 4 days = 29 Feb; 6 more days \u2192 7 March 2024.", DAYS,
     WRONG),
    ("date", "2024-03-06", "February 2024 has 29 days. 25 February 2024 plus 10 days is 6 March 2024.", DAYS, RIGHT),
    ("date", "1969-07-20", "Apollo 11 launched on July 20, 1969 and landed on July 24, 1969.", LANDED, NOT_RIGHT),
    ("date", "1969-07-20", "Apollo 11 launched on July 16, 1969 and landed on July 20, 1969.", LANDED, RIGHT),
    ("date", "1648", "Year: 1648\nTalks began: 1644", SIGNED, RIGHT),
    ("date", "1648", "Year: 1644\nTalks ended: 1648", SIGNED, NOT_RIGHT),
    ("text", "Prague", "Kafka was born in Budapest, raised in Prague.", BORN, NOT_RIGHT),
    ("text", "Prague", "Kafka was born in Prague, raised in Vienna.", BORN, RIGHT),
    ("text", "Prague", "I apologize for my mistake earlier. The city is Prague, not Vienna.", BORN, RIGHT),
    ("text", "Prague", "I apologize for my mistake earlier. The city is Vienna, not Prague.", BORN, WRONG),
    ("text", "Prague", "Prague? Yes \u2014 Kafka was born there.", BORN, NOT_WRONG),
    ("text", "Prague", "Vienna? Yes \u2014 Kafka was born there.", BORN, NOT_RIGHT),
    ("text", "Prague", "Unfortunately I can't verify that.", BORN, ABSTAIN),
    ("text", "Prague", "I can't verify that, but I think it is Prague.", BORN, RIGHT),
    ("boolean", "no", "91 is 7 x 13 and not even.\n\n**Verdict: No** \u2714", "Is 91 prime?", RIGHT),
    ("boolean", "no", "91 is odd and not even.\n\n**Verdict: Yes** \u2714", "Is 91 prime?", WRONG),
    ("text", "Prague", "Answer: Prague. My verdict: a fine city.", BORN, RIGHT),
    ("text", "Prague", "Answer: Vienna. My verdict: a fine city.", BORN, WRONG),
    ("number", "5", "5\n\nVerdict: correct", None, RIGHT),
    ("number", "2432902008176640000", "It is about 2.432902008 \u00d7 10^18.", None, RIGHT),
    ("number", "2432902008176640000", "It is about 2.432912008 \u00d7 10^18.", None, WRONG),
    ("number", "6.02214076e23", "6.022141 \u00d7 10^23", None, RIGHT),
    ("number", "6.02214076e23", "6.022241 \u00d7 10^23", None, WRONG),
    ("list", "1/2, 1/3", "one half and one third", None, RIGHT),
    ("list", "1/2, 1/3", "one half and one quarter", None, WRONG),
    ("list", "a half, a quarter", "a quarter and a half", None, RIGHT),
    ("date", "March 1918", "It was signed on 3 or 4 March 1918.", SIGNED, RIGHT),
    ("date", "March 1918", "It was not signed on 3 or 4 March 1918.", SIGNED, NOT_RIGHT),
    ("ordered-list", "Venus, Earth, Mars", "Comparing Mars, Earth, Venus:\n1. Venus\n2. Earth\n3. Mars", PLANETS,
     RIGHT),
]  # fmt: skip
FIRST = "Who was born first, Ida Holm or Nora Vik?"
BOOKS = "Which of Ida Holm and Nora Vik has written more books?"
OLDER = "Which bridge is older, the Iron Bridge or the Stone Bridge?"
BELLS = "Which inn was named after its bells, Swan Inn or Crown House?"
# (question, the name that the response says, the other one, response)
TWO_NAMES = [
    (FIRST, "Nora Vik", "Ida Holm",
     "Ida Holm was born in 1985. Nora Vik was born in 1976. So Nora Vik was born first."),
    (FIRST, "Nora Vik", "Ida Holm", "Ida Holm was born in 1985. Nora Vik was born in 1976. Nora Vik was born first."),
    (FIRST, "Nora Vik", "Ida Holm", "Ida Holm was born in 1985 and Nora Vik in 1976, so Nora Vik was born first."),
    (FIRST, "Nora Vik", "Ida Holm", "1976 (Nora Vik) < 1985 (Ida Holm), so Nora Vik was born first."),
    (FIRST, "Nora Vik", "Ida Holm", "Nora Vik was born first. She was born in 1976, while Ida Holm was born in 1985."),
    (FIRST, "Nora Vik", "Ida Holm", "Nora Vik was born in 1976, before Ida Holm, who was born in 1985."),
    (BOOKS, "Nora Vik", "Ida Holm", "Ida Holm has written six books. Nora Vik has written seven. So it is Nora Vik."),
    (BOOKS, "Nora Vik", "Ida Holm", "Ida Holm wrote six. Hence Nora Vik has written more books than Ida Holm."),
    (OLDER, "Stone Bridge", "Iron Bridge", "The Iron Bridge dates from 1810. The Stone Bridge is older, from 1740."),
    (OLDER, "Stone Bridge", "Iron Bridge", "The Stone Bridge (1740) is older than the Iron Bridge (1810)."),
    (FIRST, "Nora Vik", "Ida Holm", "Nora Vik, not Ida Holm."),
    (FIRST, "Nora Vik", "Ida Holm", "The second one was Ida Holm and the first one was Nora Vik."),
    ("Does the sun rise in the east or west?", "east", "west", "It rises in the east, not in the west."),
    (BELLS, "Crown House", "Swan Inn", "Crown House was named after its bells, Swan Inn was not."),
    (FIRST, "Nora Vik", "Ida Holm", "Nora Vik (b. 1976), not Ida Holm (b. 1985)"),
    (FIRST, "Nora Vik", "Ida Holm", "The answer is Nora Vik, who was born in 1976, while Ida Holm was born in 1985."),
    (FIRST, "Nora Vik", "Ida Holm", "Comparing Ida Holm and Nora Vik: Nora Vik was born first."),
    (BOOKS, "Nora Vik", "Ida Holm", "Nora Vik has written the most books; Ida Holm wrote six."),
    (FIRST, "Nora Vik", "Ida Holm", "Nora Vik was older than Ida Holm."),
    (FIRST, "Nora Vik", "Ida Holm", "Nora Vik was born nine years earlier than Ida Holm."),
    (FIRST, "Nora Vik", "Ida Holm", "Of Ida Holm and Nora Vik, Nora Vik was born first."),
    (FIRST, "Nora Vik", "Ida Holm", "Ida Holm was not born first, but Nora Vik was."),
    (FIRST, "Nora Vik", "Ida Holm", "Although Ida Holm died later, Nora Vik was born first."),
    (OLDER, "Stone Bridge", "Iron Bridge",
     "Unlike the Iron Bridge, the Stone Bridge is from 1740. It is the Stone Bridge."),
    (OLDER, "Stone Bridge", "Iron Bridge", "The Stone Bridge, since the Iron Bridge is from 1810."),
    (OLDER, "Stone Bridge", "Iron Bridge",
     "The older bridge between the Iron Bridge and the Stone Bridge is the Stone Bridge."),
    (BELLS, "Crown House", "Swan Inn", "Crown House was named after its bells, but Swan Inn was not."),
    (BELLS, "Crown House", "Swan Inn", "Swan Inn was not named after its bells, Crown House was."),
    (BELLS, "Crown House", "Swan Inn", "Crown House, unlike Swan Inn, was named after its bells."),
    (BELLS, "Crown House", "Swan Inn", "Swan Inn lies by a lake. Thus, Crown House was named after its bells."),
]  # fmt: skip
# texts that say neither of the two: what they know of both is no answer
NEITHER = [
    (FIRST, "Ida Holm", "Nora Vik", "Ida Holm was born in 1985. Nora Vik was born in 1976."),
    (FIRST, "Ida Holm", "Nora Vik", "Ida Holm was born in 1985, nine years after Nora Vik."),
    (BOOKS, "Ida Holm", "Nora Vik", "Ida Holm has written six books, while Nora Vik has written seven."),
    (FIRST, "Ida Holm", "Nora Vik", "Nora Vik was born after her sister. She is older than Ida Holm."),
    (OLDER, "Iron Bridge", "Stone Bridge",
     "The Iron Bridge is from 1810, the Stone Bridge from 1740. Neither is older."),
]  # fmt: skip

ROWS = [
    *NUMBERS,
    *WRITTEN,
    *UNITS,
    *COMPOUND,
    *THINGS,
    *SETTINGS,
    *SPANS,
    *NAMES,
    *LETTERS,
    *WORKED,
    *CONCEDED,
    *COUNTED_FROM,
    *RENAMED,
    *IN_OFFICE,
    *BELOW,
    *ROUNDED,
    *CONCLUDED,
    *REASONED,
    *BREAKDOWN,
    *FROM_TO,
    *FIELDS,
    *IN_WORDS,
    *CASES,
    *ELSEWHERE,
    *SHARES,
    *STATED,
    *CHECKED,
    *OTHER_YEARS,
    *NAMED_CELLS,
    *IN_TURN,
    *CONVERTED,
    *POLITE,
    *REMARKS,
    *COUNTS,
    *SECOND_GUESSES,
    *SIGNS,
    *MORE_REMARKS,
    *NOTATIONS,
    *KEPT,
    *WHAT_IS_ASKED,
    *ORDERS,
    *SPEEDS,
    *AFTERWORDS,
    *STEPS,
    *DECLINED,
    *UNKNOWN,
    *COMPOUNDS,
    *QUANTITIES,
    *SENTENCES,
    *AREAS,
    *((*row[:3], AS_IT_STANDS, row[3]) for row in STATEMENTS),
    *MARKED_NAMES,
    *PLACES_AND_REMARKS,
]


@pytest.mark.parametrize(("answer_type", "gold", "response", "question", "expected"), ROWS)
def test_an_answer_and_its_mirror_are_graded_as_a_reader_would(
    answer_type: str, gold: str, response: str, question: str | None, expected: set[str]
) -> None:
    assert grade(response, "stop", gold, answer_type, question=question).outcome in expected


@pytest.mark.parametrize(("question", "said", "other", "reply"), TWO_NAMES)
def test_of_two_names_in_a_question_the_one_counts_that_the_answer_says(
    question: str, said: str, other: str, reply: str
) -> None:
    assert grade(reply, "stop", said, "text", question=question).outcome == "correct"
    assert grade(reply, "stop", other, "text", question=question).outcome in NOT_RIGHT


def test_a_text_that_denies_a_name_and_says_the_other_one_of_two_is_wrong() -> None:
    for reply in ("It was not Ida Holm; it was Nora Vik.", "Nora Vik was born first, not Ida Holm."):
        assert grade(reply, "stop", "Ida Holm", "text", question=FIRST).outcome == "incorrect"


@pytest.mark.parametrize(("question", "one", "other", "reply"), NEITHER)
def test_a_text_that_says_neither_of_two_names_is_undecided(question: str, one: str, other: str, reply: str) -> None:
    for gold in (one, other):
        assert grade(reply, "stop", gold, "text", question=question).outcome == "invalid"


@pytest.mark.parametrize(("said", "denied", "reply", "question"), DENIED_ELSEWHERE)
def test_a_name_that_another_language_denies_is_not_the_answer(
    said: str, denied: str, reply: str, question: str
) -> None:
    assert grade(reply, "stop", said, "text", question=question).outcome == "correct"
    assert grade(reply, "stop", denied, "text", question=question).outcome in NOT_RIGHT


@pytest.mark.parametrize(
    ("question", "reply", "said"),
    [
        ("Is the Moon a satellite?", "The Moon is not a planet; it is a satellite.", "yes"),
        ("Is the Moon a planet?", "The Moon is not a planet; it is a satellite.", "no"),
        ("Is the Moon a satellite?", "The Moon isn't a planet, it's a satellite.", "yes"),
        ("Is the Moon a satellite?", "The Moon, which is not a planet, is a satellite.", "yes"),
        ("Is the Moon a planet?", "The Moon, which is a satellite, is not a planet.", "no"),
        ("Is the Moon a satellite?", "The Moon does not shine by itself, but it is a satellite.", "yes"),
        ("Is a spider an insect?", "A spider is not an insect but an arachnid.", "no"),
        ("Is a spider an arachnid?", "A spider is not an insect but an arachnid.", "yes"),
        ("Is copper magnetic?", "Copper is non-magnetic.", "no"),
        ("Can penguins swim?", "Penguins cannot fly, but they can swim.", "yes"),
        ("Can penguins fly?", "Penguins cannot fly, but they can swim.", "no"),
        ("Are whales mammals?", "It is not true that whales are fish; they are mammals, so yes.", "yes"),
        ("Are whales fish?", "It is true that whales live in the sea; they are mammals, so no.", "no"),
    ],
)
def test_what_a_sentence_denies_of_something_else_is_no_answer(question: str, reply: str, said: str) -> None:
    for gold in ("yes", "no"):
        right = grade(reply, "stop", gold, "boolean", question=question).outcome == "correct"
        assert right == (gold == said)
