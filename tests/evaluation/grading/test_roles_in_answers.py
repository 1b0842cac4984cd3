"""Answers of several names, numbers or dates, where the question says which of them counts; each beside near misses.

Judged by hand before grading. OPEN: not right; whether wrong or undecided is not for this table to say.
"""

from __future__ import annotations

import time

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE = {"correct"}, {"incorrect"}, {"invalid"}
OPEN = {"incorrect", "invalid"}
HALF_OPEN = {"correct", "invalid"}

TAJ = "What is the capital of the country where the Taj Mahal is?"
FUJI = "What currency is used in the country where Mount Fuji is?"
CEO = "In which city was the CEO of Microsoft born?"
MOZART = "Which river flows through the capital of the country where Mozart was born?"
NOVEL = "Who wrote the novel on which the film is based?"
NAMES = [
    ("New Delhi", "The country is India; New Delhi is its capital.", TAJ, RIGHT),
    ("New Delhi", "Right, so the country is India and the capital is New Delhi.", TAJ, RIGHT),
    ("New Delhi", "Right, so the country is India and the capital is Mumbai.", TAJ, WRONG),
    ("New Delhi", "The capital of India is Mumbai. New Delhi is its university town.", TAJ, OPEN),
    ("New Delhi", "The capital is Mumbai; New Delhi is its suburb.", TAJ, OPEN),
    ("New Delhi", "It's not Mumbai, which many people assume; it's New Delhi.", TAJ, RIGHT),
    ("New Delhi", "It's not New Delhi, which many people assume; it's Mumbai.", TAJ, OPEN),
    ("New Delhi", "Many people think Mumbai; it is actually New Delhi.", TAJ, RIGHT),
    ("New Delhi", "Many people think New Delhi; it is actually Mumbai.", TAJ, WRONG),
    ("New Delhi", "You might think it is New Delhi; in fact it's Agra.", TAJ, WRONG),
    ("New Delhi", "I used to believe it was New Delhi. It's Mumbai.", TAJ, WRONG),
    ("New Delhi", "Although most people believe it is Mumbai, the capital is actually New Delhi.", TAJ, RIGHT),
    ("New Delhi", "Many people think it is New Delhi, and they are right.", TAJ, HALF_OPEN),
    ("New Delhi", "Many people think it is New Delhi; they are right.", TAJ, HALF_OPEN),
    ("New Delhi", "I always thought it was New Delhi. It is the seat of parliament.", TAJ, HALF_OPEN),
    ("New Delhi", "Many people think New Delhi. The correct answer is Mumbai.", TAJ, WRONG),
    ("New Delhi", "Many people say New Delhi, but the capital is Mumbai.", TAJ, WRONG),
    ("New Delhi", "I think it is New Delhi.", TAJ, RIGHT),
    ("hola", "You would say hola, but on the phone it is digame.", "How does one greet in Spain?", RIGHT),
    ("Mumbai", "Many people think Mumbai; it is actually New Delhi.", "What do many people think is its capital?",
     HALF_OPEN),
    ("New Delhi", "The Taj Mahal stands in Agra. India's capital? That's New Delhi!", TAJ, RIGHT),
    ("New Delhi", "The Taj Mahal stands in Agra. India's capital? That's Mumbai, not New Delhi!", TAJ, OPEN),
    ("yen", "The country is Japan; its currency is the yen, not the yuan.", FUJI, RIGHT),
    ("yen", "The country is Japan; its currency is the yuan, not the yen.", FUJI, OPEN),
    ("Hyderabad", "As of my knowledge cutoff in 2023, the CEO is Nadella, who was born in Hyderabad, India.", CEO,
     RIGHT),
    ("Hyderabad", "As of my knowledge cutoff in 2023, the CEO is Nadella, who was born in Chennai, India.", CEO, WRONG),
    ("Hyderabad", "Nadella attended the Hyderabad Public School, but he was born in Mumbai.", CEO, OPEN),
    ("Hyderabad", "The CEO is Steve Ballmer, who was born in Detroit. His successor was born in Hyderabad.", CEO, OPEN),
    ("Lisbon", "Portugal. Its capital is Lisbon.", "What is the capital of the country of the Douro?", RIGHT),
    ("Lisbon", "Portugal. The capital of Portugal is Lisbon.", "What is the capital of the land of the Douro?", RIGHT),
    ("Persian", "Iran. Iran's official language is Persian.", "What is the language of the country of Yazd?", RIGHT),
    ("Lyon", "Portugal. The capital of Portugal is Lisbon.", "What is the capital of the land of the Rhone?", WRONG),
    ("Jones", "Smith. Smith's wife is Jones.", "Who wrote the book?", WRONG),
    ("Persian", "Iran. The language of Iran is Arabic, some speak Persian.", "What is the language of Iran?", WRONG),
    ("Zurich", "Bern. The capital of Bern is not Zurich.", "What is the capital of Switzerland?", WRONG),
    ("Jane Austen", "A friend of Jane Austen.", NOVEL, OPEN),
    ("Jane Austen", "It was written by a distant cousin of Jane Austen.", NOVEL, OPEN),
    ("Jane Austen", "It was written by the great Jane Austen.", NOVEL, RIGHT),
    ("Jane Austen", "A friend of Walter Scott, Jane Austen.", NOVEL, RIGHT),
    ("George VI", "The daughter of George VI.", "Who was the father of Elizabeth II?", HALF_OPEN),
    ("Jane Austen", "the sister of Jane Austen", "Cassandra was the sister of which writer?", RIGHT),
    ("Danube", "The capital of Austria is Vienna, and the Danube flows through it.", MOZART, RIGHT),
    ("Danube", "The Inn, a tributary of the Danube", MOZART, OPEN),
    ("Philip K. Dick", "Philip Kindred Dick", NOVEL, RIGHT),
    ("Philip K. Dick", "Philip Roth Dick", NOVEL, OPEN),
    ("George H. W. Bush", "George Herbert Walker Bush", "Who was president?", RIGHT),
    ("George H. W. Bush", "George W. Bush", "Who was president?", OPEN),
    ("Hyderabad", "Nadella was born in Chennai, and studied in Hyderabad.", CEO, OPEN),
    ("Hyderabad", "Nadella was born in Hyderabad, and studied in Manipal.", CEO, RIGHT),
    ("Hyderabad", "Nadella studied in Manipal, but he was born in Hyderabad.", CEO, RIGHT),
    ("yen", "Mount Fuji is in Japan, where the yen (\u00a5) is used.", FUJI, RIGHT),
    ("yen", "Mount Fuji is in Korea, where the won is used, unlike in Japan, where the yen is.", FUJI, OPEN),
    ("New Delhi", "Taj Mahal \u2192 India \u2192 New Delhi", TAJ, RIGHT),
    ("New Delhi", "Taj Mahal \u2192 New Delhi \u2192 India", TAJ, OPEN),
    ("16:05", "The train leaves at 14:20 and arrives at 16:05.", "It leaves at 14:20. When does it arrive?", RIGHT),
    ("16:05", "The train leaves at 16:05 and arrives at 17:50.", "It leaves at 14:20. When does it arrive?", OPEN),
    ("16:05", "It arrives at 16:05 (4:05 PM).", "It leaves at 14:20. When does it arrive?", RIGHT),
    ("yen", "Fuji lies in Japan, and the currency there is the Yen.", "What is the currency where Fuji lies?", RIGHT),
    ("yen", "Fuji lies in Korea, and the Yen is Japanese.", "What is the currency where Fuji lies?", OPEN),
    ("Jane Austen", "The film is based on Sense and Sensibility by Jane Austen.", NOVEL, RIGHT),
    ("Jane Austen", "The film is based on Emma and was seen by Jane Austen.", NOVEL, OPEN),
    ("Spanish", "It lies in Peru, where people speak Spanish.", "Which language is spoken in Lima?", RIGHT),
    ("Spanish", "It lies in Peru, where people speak Quechua.", "Which language is spoken in Lima?", WRONG),
    ("Spanish", "It lies in Peru, where mostly Spanish is spoken.", "Which language is spoken in Lima?", RIGHT),
    ("Spanish", "It lies in Peru, where old Spanish is famous.", "Which language is spoken in Lima?", OPEN),
    ("Tom Hanks", "Actor: Tom Hanks\nDirector: Robert Zemeckis", "Which actor is it?", RIGHT),
    ("Tom Hanks", "Director: Tom Hanks\nActor: Robert Zemeckis", "Which actor is it?", OPEN),
    ("Lisbon", "Country: Portugal\nCapital: Lisbon", "What is the capital of the country of the Douro?", RIGHT),
    ("C", "The note B in the C major scale is E.", "Which note follows B in the C major scale?", OPEN),
    ("C", "In the C major scale, B is followed by D.", "Which note follows B in the C major scale?", OPEN),
    ("Oxford", "The University of Oxford is in Cambridge.", "In which city is the University of Oxford?", OPEN),
    ("Oxford", "The University of Oxford is in the city of Oxford.", "In which city is the University of Oxford?",
     RIGHT),
    ("C", "In the C major scale, B is followed by C.", "Which note follows B in the C major scale?", RIGHT),
    ("C", "In the C major scale, the note after B is A.", "Which note follows B in the C major scale?", OPEN),
    ("C", "The note after B in the C major scale is C.", "Which note follows B in the C major scale?", RIGHT),
    ("C major", "It is the C major scale.", "Which one has no sharps: the C major scale or the G major scale?", RIGHT),
    ("Mary", "The owner is the girl who got it: John gave the book to Mary.",
     "John gave the book to Mary. Who is its owner?", RIGHT),
    ("Danube", "The Danube flows through Vienna.", "Which river flows through Vienna?", RIGHT),
    ("Danube", "Vienna lies where the Inn River flows into the Danube.", "Which river flows through Vienna?", OPEN),
    ("Danube", "The Inn River flows into the Danube.", "Which river flows through Vienna?", OPEN),
    ("Jane Austen", "The novel was written by Jane Austen.", NOVEL, RIGHT),
    ("Jane Austen", "Emily wrote it, much like Jane Austen.", NOVEL, OPEN),
    ("Lisbon", "Magellan died in Lisbon; the capital is Porto.", "What is the capital of Magellan's country?", OPEN),
    ("Lisbon", "Magellan died in Cebu; the capital is Lisbon.", "What is the capital of Magellan's country?", RIGHT),
    ("honey", "Pollen, which they turn into honey.", "What do bees make?", OPEN),
    ("pollen", "Pollen, which they turn into honey.", "What do bees collect?", RIGHT),
    ("silver", "The second was silver and the third black, so it is black.", "What color is the third?", OPEN),
    ("black", "The second was silver and the third black, so it is black.", "What color is the third?", RIGHT),
    ("Armstrong", "Armstrong was the first, Aldrin the second.", "Who was the first on the Moon?", RIGHT),
    ("Armstrong", "Aldrin was the first, Armstrong the second.", "Who was the first on the Moon?", OPEN),
    ("Ernest Hemingway", 'That\'s Ernest Hemingway! The novel is "Fiesta" of Paris.', NOVEL, RIGHT),
    ("centrifugal force", "Centrifugal force is used.", "The machine uses which physical force?", RIGHT),
    ("Mercia", "Leofric was Earl of the Anglo-Saxon kingdom of Mercia.", "He was Earl of which Anglic kingdom?", RIGHT),
    ("Bern, Switzerland", "He was born in Switzerland.", "Where was he born?", WRONG),
    ("Ludwig van Beethoven", "L. van Beethoven", "Who composed it?", HALF_OPEN),
    ("Ludwig van Beethoven", "It was L. van Gogh.", "Who composed it?", WRONG),
]  # fmt: skip
BELL, KING = "In which country was the inventor of the telephone born?", "Who is the spouse of the current king?"
NAMES += [
    ("Scotland", "He was born in Canada to parents from Scotland.", BELL, OPEN),
    ("Scotland", "Bell, the inventor, emigrated from Scotland to Canada. He was born in Canada.", BELL, OPEN),
    ("Scotland", "Bell, the inventor, emigrated from Scotland to Canada. He was born in Scotland.", BELL, RIGHT),
    ("Scotland", "Bell came from Scotland. He was born in Edinburgh, Scotland.", BELL, RIGHT),
    ("Camilla", "The current king is Charles III, and his wife is Camilla.", KING, RIGHT),
    ("Camilla", "His first wife was Diana. His current wife is Camilla.", KING, RIGHT),
    ("Camilla", "His current wife is Kate. His first wife was Camilla.", KING, OPEN),
    ("Camilla", "The king's wife is Diana. His sister is Camilla.", KING, OPEN),
    ("red", "Its color is red.", "What colors does the flag have?", RIGHT),
]
TANGO = "What is the official language of the country where the tango originated?"
VOYAGER, GALAXY = "Which planet did Voyager 2 visit last?", "In what city is the headquarters of the maker of Galaxy?"
FILM = "A movie starts at 7:40 pm and lasts 135 minutes. At what time does it end?"
HUSBAND = "Who was the first husband of the author of 'Emma'?"
NAMES += [
    ("Spanish", "The tango originated in Argentina, where Spanish is the official language.", TANGO, RIGHT),
    ("Spanish", "Buenos Aires, Argentina. They speak Spanish there.", TANGO, RIGHT),
    ("Spanish", "Buenos Aires, Argentina. They speak Portuguese there.", TANGO, WRONG),
    ("Spanish", "Spanish sailors brought it to Brazil, whose official language is Portuguese.", TANGO, OPEN),
    ("Spanish", "The Spanish language is the official one.", TANGO, RIGHT),
    ("Ann Lee", "Her first husband was Ann Lee.", HUSBAND, RIGHT),
    ("Ann Lee", "The author is Ida. Her first husband was Max Moe; her second was Ann Lee.", HUSBAND, OPEN),
    ("Ann Lee", "She married Ann Lee in 1914 and Max Moe in 1930, so her first husband was Ann Lee.", HUSBAND, RIGHT),
    ("Ann Lee", "She married Ann Lee in 1930 and Max Moe in 1914, so her first husband was Max Moe.", HUSBAND, OPEN),
    ("Neptune", "The last visit was to Uranus, before it would have reached Neptune.", VOYAGER, OPEN),
    ("Neptune", "Pluto, after passing Neptune in 1989", VOYAGER, OPEN),
    ("Neptune", "Neptune, after passing Uranus in 1986", VOYAGER, RIGHT),
    ("Neptune", "1. Saturn\n2. Uranus\n3. Neptune\n\nThe last one was Neptune.", VOYAGER, RIGHT),
    ("Neptune", "1. Saturn\n2. Neptune\n3. Uranus\n\nThe last one was Uranus.", VOYAGER, OPEN),
    ("Suwon", "Samsung is headquartered in Seoul, about 30 km from Suwon.", GALAXY, OPEN),
    ("Suwon", "Samsung is headquartered in Suwon, about 30 km from Seoul.", GALAXY, RIGHT),
    ("Suwon", "The company is Samsung. Headquarters: Suwon.", GALAXY, RIGHT),
    ("Suwon", "The company is Samsung. Headquarters: Seoul. Its largest factory is in Suwon.", GALAXY, OPEN),
    ("Suwon", "The company is Samsung. Its headquarters is in Suwon.", GALAXY, RIGHT),
    ("9:55 pm", "The movie ends at 9:55 pm.", FILM, RIGHT),
    ("9:55 pm", "The movie starts at 9:55 pm.", FILM, OPEN),
]
OCEAN, ANTHEM = "Which ocean borders the country where the Amazon ends?", "Who composed the anthem's music of Austria?"
GUERNICA = "In which country is the birthplace of the painter of Guernica?"
NAMES += [
    ("Atlantic Ocean", "Brazil; the ocean is the Atlantic Ocean.", OCEAN, RIGHT),
    ("Atlantic Ocean", "Brazil; the ocean is the Pacific Ocean.", OCEAN, WRONG),
    ("Atlantic Ocean", "Pacific Ocean; the largest port is on the Atlantic Ocean.", OCEAN, OPEN),
    ("Paris", "Lyon. The largest city is Paris.", "What is the capital of France?", OPEN),
    ("Johann Holzer", "Austria. The music is by Johann Holzer.", ANTHEM, RIGHT),
    ("Johann Holzer", "It was long attributed to Johann Holzer, but Mozart composed it.", ANTHEM, OPEN),
    ("Johann Holzer", "It was long attributed to Mozart, but Johann Holzer composed it.", ANTHEM, RIGHT),
    ("Spain", "Guernica is a town in Spain; its painter was born in Cuba.", GUERNICA, OPEN),
    ("Spain", "Guernica is a town in Spain; its painter was born in Spain, too.", GUERNICA, RIGHT),
    ("Spain", "Picasso lived in France after leaving Spain.", GUERNICA, OPEN),
]
SUSHI = "What is the capital of the country of sushi?"
NAMES += [
    ("Tokyo", "Tokyo was the capital, but now it's Osaka.", SUSHI, OPEN),
    ("Tokyo", "Osaka was the capital, but now it's Tokyo.", SUSHI, RIGHT),
]
TINA = "Sam has 3 times as many marbles as Tina, and together they have 56. How many marbles does Tina have?"
CLIPS = "She sold clips in April and half as many in May. How many did she sell altogether in April and May?"
PAID = "Weng earns $12 an hour. How much did she earn for 50 minutes?"
NUMBERS = [
    ("14", "Tina has 14 and Sam has 42.", TINA, RIGHT),
    ("14", "Tina has 42 and Sam has 14.", TINA, WRONG),
    ("14", "Sam has 42 and Tina has 14.", TINA, RIGHT),
    ("14", "Sam has 14 and Tina has 42.", TINA, WRONG),
    ("42", "Tina has 42 and Sam has 14.", "How many marbles does Tina have?", RIGHT),
    ("14", "Tina has 42 and Sam has 14.", "How many marbles does Tina have?", WRONG),
    ("56", "Tina has 42. Total: 56", "How many marbles does Tina have?", RIGHT),
    ("14", "Tina: 14\nSam: 42", TINA, RIGHT),
    ("14", "Tina: 56 / 4 = 14\nSam: 14 x 3 = 42", TINA, RIGHT),
    ("14", "Tina: 14 x 3 = 42\nSam: 56 / 4 = 14", TINA, WRONG),
    ("14", "Tina: 42\nSam: 14", TINA, WRONG),
    ("14", "Sam: 14\nTina: 42", TINA, WRONG),
    ("14", "Tina has 14 marbles and Sam has 42 marbles, for a total of 56 marbles.", TINA, RIGHT),
    ("10", "Tina has 14 and Sam has 42. After she gives away 4 of her marbles, 10 are left.", TINA, RIGHT),
    ("72", "She sold 48 in April and 24 in May, 72 in total.", CLIPS, RIGHT),
    ("72", "She sold 72 clips in April and 36 in May, 108 in total.", CLIPS, OPEN),
    ("10", "For 50 minutes of babysitting she earned ten dollars.", PAID, RIGHT),
    ("10", "For 50 minutes of babysitting she earned eleven dollars.", PAID, OPEN),
    ("10", "Yesterday Weng earned $10, which is $2 less than her hourly rate.", PAID, RIGHT),
    ("2", "Yesterday Weng earned $10, which is $2 less than her hourly rate.", PAID, OPEN),
    ("25", "0.25", "What percentage of 80 is 20?", NONE),
    ("25", "20 is a quarter of 80.", "What percentage of 80 is 20?", NONE),
    ("25", "0.4", "What percentage of 80 is 20?", WRONG),
    ("7.5", "7 cups and a half", "How many cups?", RIGHT),
    ("7", "7 cups and a half", "How many cups?", OPEN),
    ("14", "Tina's share: 14. Sam's share: 42.", TINA, RIGHT),
    ("14", "Tina's share: 42. Sam's share: 14.", TINA, WRONG),
]
SOLD = "It sold 120 books on Monday and 45 fewer on Tuesday. How many books did it sell on Tuesday?"
NUMBERS += [
    ("75", "On Monday it sold 120 books and on Tuesday 75.", SOLD, RIGHT),
    ("75", "On Monday it sold 75 books and on Tuesday 120.", SOLD, OPEN),
    ("75", "Monday: 120\nTuesday: 75\nTotal: 195", SOLD, RIGHT),
    ("75", "Monday: 75\nTuesday: 165", SOLD, WRONG),
]
BEN = "Anna is 12 years old. Her brother Ben is 3 years younger. How old is Ben?"
PRICE = "The price of a $250 phone rises by 8%. What is the new price?"
PENCILS = "James has 60 pencils and gives 15 to his sister. How many pencils are left?"
NUMBERS += [
    ("9", "Anna is 12 and Ben is 9.", BEN, RIGHT),
    ("9", "Ben is 12 and Anna is 9.", BEN, WRONG),
    ("270", "The phone now costs $270, up from $250.", PRICE, RIGHT),
    ("270", "The phone now costs $280, up from $270.", PRICE, OPEN),
    ("270", "270 dollars, a $20 increase", PRICE, RIGHT),
    ("20", "270 dollars, a $20 increase", PRICE, OPEN),
    ("270", "It rose from $250 to $270.", PRICE, RIGHT),
    ("270", "It went from $270 to $250.", PRICE, OPEN),
    ("45", "There are 45 pencils left, and his sister has 15.", PENCILS, RIGHT),
    ("45", "His sister has 45 and he has 15 left.", PENCILS, OPEN),
]
CHANGE = "Muffins are $3. If Lena buys 7 and pays with a $50 bill, how much change does she get?"
WALK = "Tom walked 3 km on Monday and 5 km on Tuesday. What was his average distance per day?"
EGGS = "If a dozen eggs cost $4.80, what is the cost of 5 eggs?"
NUMBERS += [
    ("29", "She gets $29 change after paying $21 for seven muffins.", CHANGE, RIGHT),
    ("4", "4000 m", WALK, RIGHT),
    ("4", "400 m", WALK, WRONG),
    ("4000", "4 km", WALK, OPEN),
    ("2", "200 cents", EGGS, RIGHT),
    ("2", "20 cents", EGGS, WRONG),
]
WAR = "The war in Europe ended on 8 May 1945; the war in the Pacific ended on 2 September 1945."
AUNT = "Tim is half as old as his aunt, who is 36. How old is Tim?"
NUMBERS += [
    ("18", "His aunt is 36 and Tim is 18.", AUNT, RIGHT),
    ("18", "Tim is 18 and his aunt is 36.", AUNT, RIGHT),
    ("18", "Tim is 36 and his aunt is 18.", AUNT, WRONG),
]
FACES = "How many faces does a cube have?"
UNKNOWN = "Solve for x: x + y = 10, x - y = 4."
NUMBERS += [
    ("7", "x=7, y=3", UNKNOWN, RIGHT),
    ("7", "y = 7, x = 3", UNKNOWN, WRONG),
    ("7", "Adding gives 2x = 14, so x = 14/2 = 7. Then y = 10 - 7 = 3.", UNKNOWN, RIGHT),
    ("7", "Adding gives 2y = 14, so y = 14/2 = 7. Then x = 10 - 7 = 3.", UNKNOWN, WRONG),
    ("10", "x = 7, y = 3, so x + y = 10", "If x = 7 and y = 3, what is x + y?", RIGHT),
]
NUMBERS += [
    ("6", "6 faces, 12 edges and 8 corners", FACES, RIGHT),
    ("6", "It has 8 corners, 12 edges, and 6 faces.", FACES, RIGHT),
    ("6", "8 faces, 12 edges and 6 corners", FACES, WRONG),
    ("2", "It has 2 hydrogen atoms and 1 oxygen atom.", "How many hydrogen atoms does water have?", RIGHT),
    ("2", "It has 1 hydrogen atom and 2 oxygen atoms.", "How many hydrogen atoms does water have?", WRONG),
    ("3", "It has 1 hydrogen atom and 2 oxygen atoms.", "How many atoms does water have?", OPEN),
    ("2.5", "2 hours and 30 minutes", "How many hours does it take?", RIGHT),
    ("21", "Emma has 24 sweets and 21 left.", "How many sweets are left?", HALF_OPEN),
    ("0", "Mercury has no moons.", "How many moons does Mercury have?", RIGHT),
    ("0", "Mercury has no rings.", "How many moons does Mercury have?", OPEN),
    ("1", "Mercury has no moons.", "How many moons does Mercury have?", WRONG),
    ("1815", "In 1815; he had been defeated before in 1813.", "In what year was it?", RIGHT),
    ("1813", "In 1815; he had been defeated before in 1813.", "In what year was it?", OPEN),
    ("1914", "The war, which lasted from 1914 to 1918, began in 1914.", "In what year did it begin?", RIGHT),
    ("300", "287 rounds up to 300.", "What is 287, rounded?", RIGHT),
    ("300", "It may have up to 300.", "How many has it?", OPEN),
]
AUSTEN, DEATH = "In what year was the author of 'Emma' born?", "When did Jane Austen die?"
DATES = [
    ("1775", "Jane Austen (1775-1817)", AUSTEN, RIGHT),
    ("1817", "Jane Austen (1775-1817)", AUSTEN, WRONG),
    ("1817", "Jane Austen (1775-1817)", DEATH, RIGHT),
    ("1775", "Jane Austen (1775-1817)", DEATH, WRONG),
    ("1775", "She lived from 1775 to 1817.", AUSTEN, RIGHT),
    ("1775", "Jane Austen, who was born in 1775 and died in 1817, wrote Emma in 1815.", AUSTEN, RIGHT),
    ("1817", "Jane Austen, who was born in 1775 and died in 1817, wrote Emma in 1815.", AUSTEN, OPEN),
    ("1775", "Jane Austen died in 1775.", AUSTEN, OPEN),
    ("1775", "The book was published in 1775. Austen was born in 1750.", AUSTEN, OPEN),
    ("1775", "The book was published in 1815. Austen was born in 1775.", AUSTEN, RIGHT),
    ("1775", "Austen was born in 1775; Emma was published in 1815.", AUSTEN, RIGHT),
    ("1815", "Austen was born in 1775; Emma was published in 1815.", AUSTEN, OPEN),
    ("8 May 1945", WAR, "When did World War II end in Europe?", RIGHT),
    ("2 September 1945", WAR, "When did World War II end in Europe?", OPEN),
]
MADE = "When was the company founded that makes the iPhone?"
DATES += [
    ("1976-04-01", "The iPhone came out on June 29, 2007; Apple was founded on April 1, 1976.", MADE, RIGHT),
    ("1976-04-01", "Apple was founded on January 3, 1977, after being conceived on April 1, 1976.", MADE, OPEN),
    ("1976-04-01", "Apple was founded on April 1, 1976, after being conceived on January 3, 1975.", MADE, RIGHT),
    ("1976-04-01", "On April 1, 1976, Apple was founded.", MADE, RIGHT),
    (
        "1912-04-15",
        "It struck ice on 14 April 1912 and sank at 2:20 a.m. on 15 April 1912.",
        "When did it sink?",
        RIGHT,
    ),
]
BEFORE = "What is the date before 2022-03-01?"
DATES += [
    ("2022-02-28", "2022 is no leap year, so the day before March 1, 2022 was 2022-02-28.", BEFORE, RIGHT),
    ("2022-02-28", "2022 is no leap year, so the day before February 28, 2022 was 2022-02-27.", BEFORE, OPEN),
]
LANDED = "When did Apollo 11 land?"
DATES += [
    ("July 20, 1969", "They landed on July 20, 1969 and returned on July 24, 1969.", LANDED, RIGHT),
    ("July 20, 1969", "The landing was on July 24, 1969, after a launch on July 20, 1969.", LANDED, OPEN),
]
BOOLEANS = [
    ("no", "Many people say no, but a tomato is a vegetable.", "Is a tomato a vegetable?", OPEN),
    ("no", "There is no evidence that Aristotle used a laptop.", "Did Aristotle use a laptop?", HALF_OPEN),
]
SNICKERS = "Would a person with a nut allergy be able to eat a Snickers bar?"
TOMATO = "Is a tomato botanically a vegetable?"
BOOLEANS += [
    ("no", "Aristotle could not have used a laptop.", "Did Aristotle use a laptop?", RIGHT),
    ("no", "Aristotle could have used a laptop.", "Did Aristotle use a laptop?", OPEN),
    ("no", "Botanically, a tomato is a fruit, not a vegetable.", TOMATO, RIGHT),
    ("no", "Botanically, a tomato is a vegetable, not a fruit.", TOMATO, WRONG),
    ("no", "A Snickers bar has nuts, so a person with a nut allergy would not be able to eat it.", SNICKERS, RIGHT),
    ("no", "A Snickers bar is soft, so a person with a nut allergy would be able to eat it.", SNICKERS, WRONG),
]
SAME = "Is Kilimanjaro in the same country as the Sphinx?"
BOOLEANS += [
    ("no", "They are not in the same country.", SAME, RIGHT),
    ("no", "They are in the same country.", SAME, WRONG),
]
POSSIBLE = "Is it possible to see the Great Wall from the Moon?"
BOOLEANS += [
    ("no", "It isn't possible.", POSSIBLE, RIGHT),
    ("no", "Not possible.", POSSIBLE, RIGHT),
    ("no", "It is possible.", POSSIBLE, WRONG),
    ("no", "It is possible that I do not know this.", POSSIBLE, OPEN),
]
POTATO = "Could someone in ancient Rome have eaten a potato?"
BOOLEANS += [
    ("no", "They could not have.", POTATO, RIGHT),
    ("no", "I don't think so.", POTATO, RIGHT),
    ("no", "I think so.", POTATO, WRONG),
    ("no", "The opposite is true.", POTATO, HALF_OPEN),
]
COLORS, EVENTS = '["red", "yellow", "blue"]', '["Moon landing", "fall of the Wall"]'
SHARED = '["Haiti", "Dominican Republic"]'
LISTS = [
    ("list", "2, 3, 7", "42 = 2 x 3 x 7, so the prime factors are 2, 3 and 7.", RIGHT),
    ("list", "2, 3, 7", "42 = 2 x 21, so the prime factors are 2 and 21.", WRONG),
    ("list", COLORS, "Blue, yellow, and red, in equal stripes.", RIGHT),
    ("list", COLORS, "Blue, yellow, and green, in equal stripes.", WRONG),
    ("list", COLORS, "The primary colours are red, yellow and blue, and the other ones are green and violet.", RIGHT),
    ("list", COLORS, "The primary colours are red and green, and the other ones are yellow and blue.", OPEN),
    ("list", COLORS, "They are red, yellow, blue and green.", WRONG),
    ("list", COLORS, "red and yellow, plus blue", RIGHT),
    ("list", SHARED, "It is shared by Haiti, which is poor, and the Dominican Republic, which is larger.", RIGHT),
    ("list", SHARED, "It is shared by Haiti, which is poor, and Cuba, which is larger.", WRONG),
    ("list", SHARED, "Haiti shares Hispaniola with the Dominican Republic.", NONE),
    ("list", SHARED, "Haiti shares Hispaniola with Cuba.", WRONG),
    ("ordered-list", EVENTS, "Moon landing (July 20, 1969), fall of the Wall (November 9, 1989)", RIGHT),
    ("ordered-list", EVENTS, "Fall of the Wall (November 9, 1989), Moon landing (July 20, 1969)", WRONG),
    (
        "ordered-list",
        EVENTS,
        "Dates:\n- Fall of the Wall\n- Moon landing\nOrder:\n1. Moon landing\n2. Fall of the Wall",
        RIGHT,
    ),
    (
        "ordered-list",
        EVENTS,
        "Dates:\n- Moon landing\n- Fall of the Wall\nOrder:\n1. Fall of the Wall\n2. Moon landing",
        OPEN,
    ),
    ("list", "Haiti", "| state | capital |\n|---|---|\n| Haiti | Port-au-Prince |", RIGHT),
    ("list", SHARED, "| state | capital |\n|---|---|\n| Haiti | Port-au-Prince |\n| Dominican Republic | - |", RIGHT),
    ("list", SHARED, "| state | capital |\n|---|---|\n| Haiti | Port-au-Prince |\n| Cuba | Havana |", WRONG),
    ("ordered-list", EVENTS, "| | event |\n|---|---|\n| 1 | Moon landing |\n| 2 | fall of the Wall |", RIGHT),
    ("ordered-list", EVENTS, "| | event |\n|---|---|\n| 1 | fall of the Wall |\n| 2 | Moon landing |", OPEN),
]
HEAT = (("A", "90 \u00b0C"), ("B", "212 \u00b0C"), ("C", "100 \u00b0C"))
OPTIONS = (("A", "oxygen"), ("B", "nitrogen"), ("C", "carbon dioxide"), ("D", "hydrogen"))
GAS = "Which gas do plants absorb?"
CHOICES = [
    ("C", "A. Oxygen is released, so it isn't A. C is right.", RIGHT),
    ("A", "A. Oxygen is released, so it isn't A. C is right.", WRONG),
    ("C", "D is incorrect, B is incorrect, A is incorrect.", HALF_OPEN),
    ("C", "C is incorrect; the answer is A.", WRONG),
    ("C", "A \u274c\nB \u274c\nC \u2705\nD \u274c", RIGHT),
    ("A", "A \u274c\nB \u274c\nC \u2705\nD \u274c", WRONG),
    ("C", "A (oxygen) \u274c, B (nitrogen) \u274c, C (carbon dioxide) \u2705, D \u274c", RIGHT),
    ("C", "I'm torn between A and C, but I'll go with C.", RIGHT),
    ("C", "I'm torn between A and C, but I'll go with A.", WRONG),
    ("D", "All but hydrogen", OPEN),
    ("C", "C or maybe A", OPEN),
    ("A", "A. oxygen\nB. nitrogen\nC. carbon dioxide\nD. hydrogen", OPEN),
    ("A", "A. oxygen\nB. nitrogen\nC. carbon dioxide\nD. hydrogen\n\nAnswer: A", RIGHT),
    ("C", "C. Maybe you know that A is released.", HALF_OPEN),
    ("C", "A is made of O, B is inert, so carbon dioxide is the gas.", RIGHT),
    ("C", "A is made of O, C is inert, so nitrogen is the gas.", WRONG),
    ("C", "Plants absorb carbon dioxide and release oxygen.", RIGHT),
    ("C", "Plants absorb oxygen and release carbon dioxide.", OPEN),
    ("A", "Plants absorb oxygen, carbon dioxide and nitrogen.", OPEN),
    ("A", "Plants absorb oxygen and carbon dioxide.", OPEN),
]
GERMANY, FRANCE = "What is the capital of Germany?", "What is the capital of France?"
OTHER_VALUES = [
    ("Berlin", "Munich is the capital of Berlin.", GERMANY, OPEN),
    ("Berlin", "The capital of Germany is Munich, which is in Berlin.", GERMANY, OPEN),
    ("Berlin", "The capital is Munich, formerly Berlin.", GERMANY, OPEN),
    ("Paris", "Lyon is the capital of Paris.", FRANCE, OPEN),
    ("Paris", "The capital of France is Lyon, and its largest city is Paris.", FRANCE, OPEN),
    ("Berlin", "Berlin is the capital of Germany", GERMANY, RIGHT),
    ("Berlin", "The capital of Germany is Berlin, formerly Bonn", GERMANY, RIGHT),
    ("Berlin", "The capital of Germany is Munich, no, sorry, Berlin.", GERMANY, RIGHT),
    ("Berlin", "Germany's capital is Berlin, which is in Brandenburg's middle", GERMANY, RIGHT),
    ("Paris", "Paris is the capital and largest city of France", FRANCE, RIGHT),
    ("Paris", "It is the capital of France, Paris.", FRANCE, RIGHT),
]
ROWS = [
    *(("text", *row) for row in NAMES),
    *(("text", *row) for row in OTHER_VALUES),
    *(("number", *row) for row in NUMBERS),
    *(("date", *row) for row in DATES),
    *(("boolean", *row) for row in BOOLEANS),
    *((kind, gold, response, "Which?", expected) for kind, gold, response, expected in LISTS),
    *(("choice", gold, response, GAS, expected) for gold, response, expected in CHOICES),
]


@pytest.mark.parametrize(("answer_type", "gold", "response", "question", "expected"), ROWS)
def test_what_counts_is_what_the_question_asks_for(
    answer_type: str, gold: str, response: str, question: str, expected: set[str]
) -> None:
    options = OPTIONS if answer_type == "choice" else ()
    result = grade(response, "stop", gold, answer_type, question=question, options=options)
    assert result.outcome in expected, result


@pytest.mark.parametrize(
    "piece", ["Tina ", "born ", "a", "1 ", "(1", "A \u2705", "it's ", "x: ", "Tina has 1, ", "? that's ", "4y or "]
)
@pytest.mark.parametrize(
    ("answer_type", "gold"), [("text", "Paris"), ("number", "14"), ("date", "1775"), ("choice", "C"), ("text", "4y")]
)
def test_a_long_repetition_is_graded_in_no_time(piece: str, answer_type: str, gold: str) -> None:
    options = OPTIONS if answer_type == "choice" else ()
    begin = time.process_time()
    for question in (TINA, AUSTEN):
        grade(piece * (4_000 // len(piece)), "stop", gold, answer_type, question=question, options=options)
    assert time.process_time() - begin < 2
