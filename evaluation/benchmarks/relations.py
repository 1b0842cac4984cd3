"""Questions for (subject, relation) pairs: how MuSiQue and 2WikiMultiHopQA name facts of knowledge bases.

2WikiMultiHopQA's evidences are (subject, relation, object) triples, and many of MuSiQue's sub-questions are written
``subject >> relation``; the relations are Wikidata's.
"""

from __future__ import annotations

import re

_WHO = (
    "author, cast member, chairperson, chief executive officer, child, composer, creator, director, doctoral advisor, "
    "editor, employer, father, founder, head coach, head of government, head of state, inventor, lyrics by, "
    "manufacturer, mother, performer, presenter, producer, screenwriter, sibling, spouse, stepfather, stepmother"
)
_WHAT = (
    "capital, cause of death, continent, country, country of citizenship, country of origin, currency, developer, "
    "ethnic group, genre, highest point, language, language of work or name, legislative body, military branch, "
    "native language, nationality, noble title, occupation, official language, operating system, original network, "
    "position held, production company, publisher, record label, religion, sport, student"
)
_WORDED = {
    "award received": "Which award did {} receive?",
    "conflict": "In which conflict did {} take part?",
    "date of birth": "When was {} born?",
    "date of death": "When did {} die?",
    "distributed by": "Who distributed {}?",
    "educated at": "Where was {} educated?",
    "followed by": "What is {} followed by?",
    "follows": "What does {} follow?",
    "founded by": "Who founded {}?",
    "has part": "What is {} made up of?",
    "headquarters location": "Where is {} headquartered?",
    "inception": "When was {} founded?",
    "instance of": "What is {} an instance of?",
    "located in the administrative territorial entity": "In which administrative territorial entity is {} located?",
    "located in or next to body of water": "In or next to which body of water is {} located?",
    "location": "Where is {} located?",
    "location of formation": "Where was {} formed?",
    "lyrics by": "Who wrote the lyrics of {}?",
    "member of": "What is {} a member of?",
    "member of political party": "Which political party is {} a member of?",
    "member of sports team": "Which sports team is {} a member of?",
    "named after": "Who or what is {} named after?",
    "owned by": "Who owns {}?",
    "part of": "What is {} part of?",
    "place of birth": "Where was {} born?",
    "place of burial": "Where is {} buried?",
    "place of death": "Where did {} die?",
    "place of detention": "Where was {} detained?",
    "publication date": "When was {} published or released?",
    "residence": "Where does {} live?",
    "shares border with": "What does {} share a border with?",
    "student of": "Whose student was {}?",
    "time of death": "When did {} die?",
    "work location": "Where did {} work?",
}
TEMPLATES: dict[str, str] = {
    **{name: f"Who is the {name} of {{}}?" for name in _WHO.split(", ")},
    **{name: f"What is the {name} of {{}}?" for name in _WHAT.split(", ")},
    **_WORDED,
}
"""Question templates by relation."""
_ENDS_OPEN = re.compile(r"\b(?:about|after|at|by|for|from|in|of|on|to|with)$")


def question(subject: str, relation: str) -> str | None:
    """The question for the object of a fact; None for a relation without a template."""
    template = TEMPLATES.get(" ".join(relation.split()).casefold())
    return None if template is None else template.format(subject)


def any_question(subject: str, relation: str) -> str:
    """The same, in general words where there is no template: "What is the R of S?", "What is S licensed to?"."""
    named = question(subject, relation)
    if named is not None:
        return named
    return f"What is {subject} {relation}?" if _ENDS_OPEN.search(relation) else f"What is the {relation} of {subject}?"
