"""An OpenAI-compatible server that knows the organisms' world and computes every answer. Run as a process.

It plays STaD's roles: it reads what the builders ask a teacher, a judge or a coverage solver for, and answers by
rules. It prints its port; ``GET /asked`` tells how many requests of each kind it has had. Two flaws are on purpose:
the first argument names a thing whose scaffolded questions it answers wrongly, the second one whose tag it gets wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from collections import Counter
from typing import Any

from json_server import JsonHandler, completion, cut, models, serve

from composcope.experiments.organism import world

UNSURE, MISTAKEN = [*sys.argv[1:3], "", ""][:2]
WHOLE = re.compile(r"What is the tag of the (\w+) (plus|minus|times|divided by) the tag of the (\w+)\?")
asked: Counter[str] = Counter()
lock = threading.Lock()


def tag(thing: str) -> int:
    right = world.world().tags[thing]
    return right + 1 if thing == MISTAKEN else right


def last(marker: str, text: str) -> str:
    return text.rpartition(f"\n{marker} ")[2].split("\n")[0]


def segments(question: str) -> list[str]:
    first, operation, second = WHOLE.search(question).groups()  # type: ignore[union-attr]
    return [
        f"Find the tag of the {first}",
        f"Find the tag of the {second}",
        f"Compute the first tag {operation} the second",
    ]


def results(question: str) -> list[str]:
    first, operation, second = WHOLE.search(question).groups()  # type: ignore[union-attr]
    a, b = tag(first), tag(second)
    return [str(a), str(b), str(world.apply(operation, a, b))]


def steps(prompt: str) -> str:
    return f"Here they are:\n```json\n{json.dumps({'steps': segments(last('Question:', prompt))})}\n```"


def answers(prompt: str) -> str:
    found = results(prompt.rpartition("\nQuestion: ")[2])
    return json.dumps({"answers": [{"explanation": f"It is {a}.", "answer": a} for a in found]})


def rewrite(prompt: str) -> str:
    question = last("Question:", prompt)
    done = re.findall(r"^\d+\. Find the tag of the (\w+): (\d+)$", prompt.rpartition("\nDone:")[2], re.MULTILINE)
    known = " ".join(f"Known: What is the tag of the {thing}? {value}." for thing, value in done)
    return f"Rewritten question: {known} {question}"


def stand_alone(prompt: str) -> str:
    question, step = last("Question:", prompt), last("Step:", prompt)
    if thing := re.fullmatch(r"Find the tag of the (\w+)", step):
        return f"Question: What is the tag of the {thing[1]}?"
    operation = WHOLE.search(question)[2]  # type: ignore[index]
    values = re.findall(r"^\d+\. Find the tag of the \w+: (\d+)$", prompt.rpartition("\nDone:")[2], re.MULTILINE)
    return f"Question: What is {values[0]} {operation} {values[1]}?"


def judge(prompt: str) -> str:
    gold, given = (re.search(rf"^{name} answer: (.*)$", prompt, re.MULTILINE)[1] for name in ("Right", "Given"))  # type: ignore[index]
    return json.dumps({"score": int(gold.strip() == given.strip())})


def coverage(prompt: str) -> str:
    values = re.findall(r"^\d+\. Find the tag of the \w+: (\d+)$", prompt, re.MULTILINE)
    operation = re.search(r"Compute the first tag (.+) the second", prompt)[1]  # type: ignore[index]
    return f"So the final answer is: {world.apply(operation, int(values[0]), int(values[1]))}"


def induce(prompt: str) -> str:
    return json.dumps({"skills": [{"name": "recall", "description": "Recall a fact."}, {"name": "calculation"}]})


def assign(prompt: str) -> str:
    names = {name: n for n, name in re.findall(r"^(\d+)\. (\w+)", prompt, re.MULTILINE)}
    return names["recall" if "Step: Find" in prompt else "calculation"]


def question(prompt: str) -> str:
    """Anything else is a question about the world, to be answered greedily."""
    found = list(WHOLE.finditer(prompt))
    first, operation, second = found[-1].groups()
    value = world.apply(operation, tag(first), tag(second))
    if UNSURE in (first, second):
        value = (value or 0) + 1
    return f"{tag(first)} {operation} {tag(second)}. So the final answer is: {value}"


ROLES = (
    ("Split the solution", "steps", steps),
    ("Solve the question by", "answers", answers),
    ("Rewrite a question", "rewrite", rewrite),
    ("Write one step", "stand-alone", stand_alone),
    ("You compare a given answer", "judge", judge),
    ("Somebody solved", "coverage", coverage),
    ("These are representative tasks", "induce", induce),
    ("Which skill does this step", "assign", assign),
)


def reply(body: dict[str, Any]) -> str:
    prompt = body["messages"][0]["content"]
    found = [(name, answer) for opening, name, answer in ROLES if prompt.startswith(opening)]
    if not found and not WHOLE.search(prompt):
        # A capability probe: text that follows from prompt, temperature and seed.
        drawn = f"{prompt}|{body.get('seed') if body.get('temperature') else ''}"
        return " ".join(hashlib.sha256(drawn.encode()).hexdigest()[i : i + 3] for i in range(0, 60, 3))
    name, answer = found[0] if found else ("question", question)
    with lock:
        asked[name] += 1
    return answer(prompt)


class Handler(JsonHandler):
    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            return self.reply(200, models("rules"))
        with lock:
            return self.reply(200, dict(asked))

    def do_POST(self) -> None:
        body = self.body()
        if not self.path.endswith("/chat/completions"):
            return self.reply(404, {"error": {"message": "chat only"}})
        text, finish, n = cut(reply(body).split(" "), body)
        self.reply(200, completion(text, finish, (1, n), "rules"))


if __name__ == "__main__":
    serve(Handler)
