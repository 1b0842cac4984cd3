"""Forms of answers in logs of other people's benchmarks, each beside one that looks alike and is not right."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE = "correct", "incorrect", "invalid"
OWNER, WRITER, TEAM = "Which company owns the brand?", "Who wrote the song?", "Which team won only once?"
WRITERS = ("Ann Boyd", "Ben Carr", "Dan Egan")
TOWN = ("Dalby", "Dalby, France", "Dalby (town)", "Dalby (disambiguation)")
FIRST, ALBUM = "Who was born first, Ann Lee or Bo Diaz?", "Which album did she make with him?"
PLAYS, SINGS = "Ann Lee is a Welsh guard who plays for which basketball club?", "Who sings the song?"
SHOW = "Aladdin is a show by a writer whose first work with Alan Moor was what 1979 musical?"
CAPITAL, SEAT = "What is the capital of Austria?", "The town of Bree was succeeded as the seat of Arnor by what city?"
MET, AGO, DID = "Whom did I meet first?", "How many days ago did it begin?", "What did they do there?"
DEBT, SUMS = "What was the largest debt?", "Total loans were $5 million, and customer deposits were $9 million."
BODY, TIME = "World Health Organization (WHO)", "25 minutes and 50 seconds (or 25:50)"
KING, BORDERS = "Which king had him executed?", "Which countries border Mongolia?"
TEXTS = [
    (OWNER, ("Bell Bros. Coffee",), "The brand is owned by Bell Bros. Coffee.", RIGHT),  # a stop inside a name
    (OWNER, ("Bell Bros. Coffee",), "It is owned by bell bros. coffee, which is in Leeds.", RIGHT),
    (OWNER, ("Bell Bros. Coffee",), "It is owned by Bell Bros. Tea.", WRONG),
    (OWNER, ("Bell Bros. Coffee",), "It is not owned by Bell Bros. Coffee. It is owned by Acme.", WRONG),
    (WRITER, WRITERS, "It was written by Ann Boyd and Ben Carr of the band.", RIGHT),  # names of which each is right
    (WRITER, WRITERS, "The writers are Ann Boyd & Dan Egan.", RIGHT),
    (WRITER, WRITERS, "It was written by Ann Boyd and Tom Hall.", NONE),
    (WRITER, WRITERS, "It was written by Tom Hall, Ann Boyd and Ben Carr.", NONE),
    (WRITER, WRITERS, "Tom Hall was succeeded by Ann Boyd and Ben Carr.", NONE),
    (WRITER, WRITERS, "It was not written by Ann Boyd and Ben Carr.", WRONG),
    (WRITER, WRITERS, "The children of Ann Boyd and Ben Carr wrote it.", NONE),
    (WRITER, WRITERS, "It was written by Tom Hall for Ann Boyd and Ben Carr.", NONE),
    (WRITER, WRITERS, "Tom Hall met Ann Boyd and Ben Carr.", NONE),
    (TEAM, ("Hill Racing",), "The answer is Penn, Kraco-Lee, Haas/Ford, and Hill Racing.", NONE),  # one of a list
    (TEAM, ("Hill Racing",), "Penn, Haas, and Hill Racing won only once.", NONE),
    (TEAM, ("Hill Racing",), "The teams are Penn, Haas, and Hill Racing.", NONE),
    (TEAM, ("Hill Racing",), "Hill Racing won once, and Penn, Haas, and Kraco won more.", RIGHT),
    ("What is the capital of Texas?", ("Austin",), "Houston is in Texas, and Austin became its capital.", RIGHT),
    ("Which town was raided?", TOWN, "It was the Dalby Raid.", RIGHT),  # aliases that only add to another one
    ("Which town was raided?", TOWN, "Derby, France", WRONG),
    ("Who painted it?", ("Leonardo", "Leonardo da Vinci"), "It was Leonardo DiCaprio.", NONE),
    (FIRST, ("Ann Maria Lee",), "Ann Lee was born before Bo Diaz.", RIGHT),  # the name as the question has it
    (FIRST, ("Ann Maria Lee",), "Bo Diaz was born before Ann Lee.", NONE),
    (FIRST, ("Ann Maria Lee",), "Bo Diaz was.", WRONG),
    ("Between Jo Li and Al Day, who won?", ('Alan Ray "Al" Day',), "Al Day won.", RIGHT),
    ("Who is the father of Ann Lee and Bo Lee?", ("Carl Ann Lee",), "Ann Lee", NONE),
    ("Which canal is longer, the Hill Canal or the Dale Canal?", ("Dale Canal",), "Canal", NONE),
    (WRITER, ("Francis Scott Hale",), "F. Scott Hale", RIGHT),  # a first name as an initial
    (WRITER, ("Francis Scott Hale",), "G. Scott Hale", NONE),
    (WRITER, ("Francis Scott Hale",), "F. S. Hale", NONE),
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for Leeds.", RIGHT),  # at the place that is asked for
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for York, near Leeds.", NONE),
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for York and not for Leeds.", WRONG),
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for Leeds's rival York.", NONE),
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for Leeds or York.", NONE),
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for Leeds Beckett.", NONE),
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for the Leeds rival York.", NONE),
    (PLAYS, ("Leeds",), "Ann Lee is a Welsh guard who plays for Leeds in Yorkshire.", RIGHT),
    (SHOW, ("Cats",), "It is a show by Howard Ash, whose first work with Alan Moor was the 1979 musical Cats.", RIGHT),
    (SHOW, ("Cats",), "It is a show by Howard Ash, whose second work with Alan Moor was the 1979 musical Cats.", NONE),
    (SHOW, ("Cats",), "It is by Bo, whose first work with Alan Moor was Hair, after the 1979 musical Cats.", NONE),
    (SEAT, ("Fornost",), "The town of Bree was succeeded as the seat of Arnor by Fornost.", RIGHT),
    (SEAT, ("Fornost",), "The town of Bree succeeded Fornost as the seat of Arnor.", NONE),
    (CAPITAL, ("Vienna",), "The capital of Austria is Vienna1.", RIGHT),  # a footnote
    (CAPITAL, ("Vienna",), "It is Graz, not Vienna1.", WRONG),
    ("Which system is it?", ("Windows10",), "It is Windows8.", WRONG),
    ("Which film is it?", ("Terminator",), "It is Terminator2.", NONE),
    (MET, ("my aunt",), "You met Rachel first and your aunt later.", NONE),  # the second one
    (MET, ("Rachel",), "You met Rachel first and your aunt later.", RIGHT),
    (MET, ("my aunt",), "Rachel, then your aunt.", NONE),
    (MET, ("my aunt",), "Your aunt, then Rachel.", RIGHT),
    (MET, ("my aunt",), "First Rachel, later your aunt.", NONE),
    (DEBT, ("customer deposits",), SUMS, NONE),  # amounts, of which none is said to be the largest
    (DEBT, ("customer deposits",), "Customer deposits were $9 million.", RIGHT),
    (DEBT, ("customer deposits",), f"Customer deposits. {SUMS}", RIGHT),
    (DEBT, ("customer deposits",), f"{SUMS} So customer deposits were the largest.", RIGHT),
    (DEBT, ("customer deposits",), f"{SUMS} So it is customer deposits.", RIGHT),
    (DEBT, ("customer deposits",), f"{SUMS} So it is loans, not customer deposits.", NONE),
    (DEBT, ("customer deposits",), f"It is customer deposits! {SUMS}", RIGHT),
    ("When did he leave?", ("10 years ago",), "He left ten years ago.", RIGHT),  # numbers in words
    ("When did he leave?", ("10 years ago",), "He left eleven years ago.", WRONG),
    ("When did he leave?", ("10 years ago",), "He left twenty years ago.", WRONG),
    ("How long was it?", ("nearly two months",), "Approximately 2 months.", RIGHT),  # two words for one guess
    ("How long was it?", ("about 400 years",), "Approximately 400 years.", RIGHT),
    ("How long was it?", ("about 400 years",), "More than 400 years.", WRONG),
    ("How long was it?", ("nearly two months",), "Approximately 2 weeks.", WRONG),
    ("What is it of?", ("about time travel",), "time travel", NONE),
    ("What is it of?", ("about two boys",), "about two girls", WRONG),
    ("Which century is it?", ("21st century",), "the twenty-first century", RIGHT),
    ("Which century is it?", ("1st century",), "the twenty-first century", WRONG),
    ("Which Amendment is it?", ("First Amendment",), "the Twenty-first Amendment", WRONG),
    ("Which floor is it on?", ("the 5th floor",), "twenty-fifth floor", WRONG),
    ("How old was he?", ("thirty years",), "30 years", RIGHT),
    ("How old was he?", ("thirty years",), "13 years", WRONG),
    ("How warm is it?", ("12 degrees Celsius",), "12 degrees Fahrenheit", WRONG),
    ("When was it?", ("July 12, 1969",), "It was on 13 July 1969.", WRONG),
    ("When was it?", ("the 2010 election",), "2010.", NONE),  # a number of a longer name
    ("When was it?", ("the 2010 election",), "2011.", WRONG),
    ("What is its rank?", ("third-largest",), "3rd.", NONE),
    ("What is its rank?", ("third-largest",), "13th.", WRONG),
    ("Why no milk?", ("lactose intolerance",), "She is lactose intolerant.", NONE),  # another form of a word
    ("Why no milk?", ("lactose intolerance",), "She is lactose tolerant.", WRONG),
    ("Why no milk?", ("lactose intolerance",), "She is not lactose intolerant.", WRONG),
    ("Where did she study?", ("University of Austria",), "University of Australia", WRONG),
    ("How long was it?", ("seventeen years",), "seventy years", WRONG),
    ("Which film is it?", ("Twelve Monkeys",), "12 Monkeys", RIGHT),
    ("Which film is it?", ("Twelve Monkeys",), "13 Monkeys", WRONG),
    ("What is its rank?", ("third-largest",), "It is the 3rd-largest city.", RIGHT),
    ("What is its rank?", ("third-largest",), "It is the 13th-largest city.", WRONG),
    (MET, ("my aunt",), "You met your aunt.", RIGHT),  # said to the one who asks
    (MET, ("my aunt",), "You met your uncle.", WRONG),
    ("Whom did he meet?", ("my aunt",), "He met your aunt.", WRONG),
    (AGO, ("19 days ago",), "It began 19 days before the fair.", RIGHT),
    (AGO, ("19 days ago",), "It began 9 days before the fair.", WRONG),
    ("What does she lead?", (BODY,), f"She leads the {BODY}.", RIGHT),  # two forms of a name
    ("What does she lead?", (BODY,), "She leads the World Health Organization.", RIGHT),
    ("What does she lead?", (BODY,), "She leads the World Trade Organization (WTO).", WRONG),
    ("Which agency is it?", ("Association of Nations (AN)",), "an agency", WRONG),
    ("What was her time?", (TIME,), "Her time was 25:50.", RIGHT),
    ("What was her time?", (TIME,), "Her time was 25:05.", WRONG),
    (DID, ("planting trees",), "They planted trees.", NONE),  # another form of a verb
    (DID, ("planting trees",), "They never planted trees.", WRONG),
    (DID, ("planting trees",), "They planted beans.", WRONG),
    (SINGS, ("Ann Vale",), "The Song: Originally sung by Ann Vale.", RIGHT),
    (SINGS, ("Ann Vale",), "Bo Fox sings to Ann Vale.", NONE),
    (KING, ("Henry VIII",), "Henry VIII's men did it.", NONE),  # a king's number with another ending
    (KING, ("Henry VIII",), "Henry VII's men did it.", WRONG),
    (
        ALBUM,  # an answer that ends in its doubt
        ("Blue Fern",),
        "There is no album of both. Blue Fern is hers. Therefore, the text does not answer the question.",
        NONE,
    ),
    (ALBUM, ("Blue Fern",), "They made Blue Fern. So it is Blue Fern, although the date is unknown.", RIGHT),
    (ALBUM, ("Blue Fern",), "It is Blue Fern. The text does not say when it came out.", RIGHT),
    ("Who plays Noah?", ("Robert Gill Hale IV",), "Robert Hale", NONE),  # a name without its number
    ("Who plays Noah?", ("Robert Gill Hale IV",), "He is played by Robert Hale on TV.", NONE),
    ("Who plays Noah?", ("Robert Gill Hale IV",), "Robert Gill Hale III", WRONG),
    ("Who plays Noah?", ("Pope John Paul II",), "John Paul I", WRONG),
    ("Which film is it?", ("Toy Story 3",), "It is Toy Story 2.", WRONG),
    ("Which game is it?", ("Final Fantasy IV",), "It is Fantasy Zone.", WRONG),
    ("Which film is it?", ("Star Wars Episode IV",), "It is Star Wars Episode V.", WRONG),
    ("Which war ended in 1945?", ("World War II",), "World War", WRONG),
    ("Who visited Poland?", ("Pope John Paul II",), "Pope Paul VI", WRONG),
    ("Who spoke?", ("Martin Luther King Jr.",), "Martin King Jr.", NONE),
]
LISTS = [
    ("list", BORDERS, "Russia, People's Republic of China", "China and Russia", NONE),  # parts of names
    ("list", BORDERS, "Russia, People's Republic of China", '["China", "Kazakhstan"]', WRONG),
    ("list", BORDERS, "Russia, People's Republic of China", "China", WRONG),
    ("list", "Who led it?", "George Washington, John Adams", "Adams and Washington", NONE),
    ("list", "Who led it?", "George Washington, John Adams", "Adams and Adams", WRONG),
    ("ordered-list", "Who led it, in order?", "George Washington, John Adams", "Washington, Adams", NONE),
    ("ordered-list", "Who led it, in order?", "George Washington, John Adams", "Adams, Washington", WRONG),
]


@pytest.mark.parametrize(("question", "golds", "response", "expected"), TEXTS)
def test_a_name_in_a_form_of_other_logs(question: str, golds: tuple[str, ...], response: str, expected: str) -> None:
    assert grade(response, "stop", golds[0], "text", golds[1:], question=question).outcome == expected


@pytest.mark.parametrize(("answer_type", "question", "gold", "response", "expected"), LISTS)
def test_items_by_parts_of_their_names_are_undecided(
    answer_type: str, question: str, gold: str, response: str, expected: str
) -> None:
    assert grade(response, "stop", gold, answer_type, question=question).outcome == expected
