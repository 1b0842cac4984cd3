"""What is asked of the teacher that writes scaffolds, and how its replies are read.

The wordings are ours; the stages are those of STaD, section 2.1. What cannot be read is said, counted and asked again;
nothing is guessed.
"""

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from ..gold import typed_answer
from ..judging import without_thinking
from ..text_files import LAYOUT, literal

REWRITTEN = "Rewritten question:"
TASK = "Question:"

_EXAMPLE_QUESTION = (
    "A theater has 12 rows of 20 seats. 45 seats are broken and a third of the others are sold. "
    "How many working seats are still free?"
)
_EXAMPLE_STEPS = [
    ("Compute the number of seats in the theater", "12 rows of 20 seats are 12 * 20 = 240 seats.", "240"),
    ("Compute the number of working seats", "240 seats without 45 broken ones are 195.", "195"),
    ("Compute the number of seats sold", "A third of 195 is 65.", "65"),
    ("Compute the number of working seats that are free", "195 - 65 = 130 seats are free.", "130"),
]
_EXAMPLE_REWRITE = (
    "A theater has 12 rows of 20 seats, which makes 240 seats in all. Without the 45 broken ones 195 seats work, and a "
    "third of these are sold. How many working seats are still free?"
)


def steps_request(question: str, max_steps: int) -> str:
    """Asks for the sub-tasks."""
    example = json.dumps({"steps": [s for s, _, _ in _EXAMPLE_STEPS]})
    return f"""Split the solution of a question into the steps that lead to its answer, without solving them.

Rules:
- at most {max_steps} steps, each one logical or arithmetical operation with one concrete result of its own
- no two steps overlap, none repeats another, and together they use everything the question gives
- the last step gives the answer to the question itself
- no step contains a result

Example
Question: {_EXAMPLE_QUESTION}
{example}

Reply with one JSON object like that, and nothing else.

Question: {question}"""


def answers_request(question: str, segments: Sequence[str]) -> str:
    """Asks for the result of every sub-task."""
    example_steps = _numbered([s for s, _, _ in _EXAMPLE_STEPS])
    example = json.dumps({"answers": [{"explanation": e, "answer": a} for _, e, a in _EXAMPLE_STEPS]})
    return f"""Solve the question by carrying out the given steps in order. Give for each step a short explanation \
and its bare result.

Example
Question: {_EXAMPLE_QUESTION}
Steps:
{example_steps}
{example}

Reply with one JSON object like that, with exactly {len(segments)} answers, and nothing else.

Question: {question}
Steps:
{_numbered(segments)}"""


def rewrite_request(question: str, solved: Sequence[tuple[str, str]]) -> str:
    """Asks for the question with its first steps already carried out."""
    example = _solved([(s, a) for s, _, a in _EXAMPLE_STEPS[:2]])
    return f"""Rewrite a question so that it states the results of the steps that are already done. Keep everything \
else of it, above all what is asked for at the end; do not solve more than the given steps and add no hint.

Example
Question: {_EXAMPLE_QUESTION}
Done:
{example}
{REWRITTEN} {_EXAMPLE_REWRITE}

Reply with one line that begins with "{REWRITTEN}".

Question: {question}
Done:
{_solved(solved)}"""


def task_request(question: str, solved: Sequence[tuple[str, str]], segment: str) -> str:
    """Asks for one step as a question of its own."""
    done = _solved(solved) if solved else "(nothing)"
    return f"""Write one step of a solution as a question that can be answered on its own: state every number and \
result that it needs, taken from the question and from the steps already done, and ask for nothing but this step.

Example
Question: {_EXAMPLE_QUESTION}
Done:
{_solved([(s, a) for s, _, a in _EXAMPLE_STEPS[:1]])}
Step: {_EXAMPLE_STEPS[1][0]}
{TASK} A theater has 240 seats, of which 45 are broken. How many seats work?

Reply with one line that begins with "{TASK}".

Question: {question}
Done:
{done}
Step: {segment}"""


def coverage_request(steps: Sequence[tuple[str, str]]) -> str:
    """Asks for the final answer from the steps and their results alone."""
    return f"""Somebody solved a problem that you do not see. These are the steps of the solution and the results of \
all but the last one. Carry out the last step and give its result.

{_solved(steps[:-1])}
Last step: {steps[-1][0]}"""


def _numbered(segments: Sequence[str]) -> str:
    return "\n".join(f"{i}. {s}" for i, s in enumerate(segments, 1))


def _solved(steps: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{i}. {s}: {a}" for i, (s, a) in enumerate(steps, 1))


T = TypeVar("T")

_STEP_KEYS = ("segment", "step", "sub-task", "subtask", "task", "question", "description")
_LIST_KEYS = ("steps", "segments", "skills", "sub-tasks", "subtasks", "answers", "results", "sub-task-answer")
# LaTeX commands that begin like a JSON escape (\b \f \n \r \t): in JSON text they were meant as commands.
_LATEX = (
    "bar begin beta bigl bigr binom bmod boldsymbol bot boxed bullet flat floor forall frac frown nabla natural ne neg "
    "neq ni nmid not notin nu rangle rbrace rceil rfloor rho right rightarrow tan tanh tau text textbf textit tfrac "
    "theta times to top triangle"
)
_COMMANDS = frozenset(_LATEX.split())
_OPENING = re.compile(r"[\[{]")
_MAX_OPENINGS = 200


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """What a reply says, or why it says nothing."""

    value: T | None
    problem: str | None = None


def steps(reply: str) -> Parsed[list[str]]:
    """The sub-tasks of a reply: a list of texts or of objects, alone or under a key."""
    return last_list(reply, lambda raw: _each(raw, _step), "no list of steps")


def _step(raw: Any) -> str | None:
    if isinstance(raw, dict):
        texts = [v for k, v in raw.items() if str(k).lower() in _STEP_KEYS and isinstance(v, str)]
        raw = texts[0] if texts else None  # "step" may be its number
    return raw.strip() if isinstance(raw, str) and raw.strip() else None


def answers(reply: str, n: int) -> Parsed[list[tuple[str, str]]]:
    """(explanation, answer) of each of ``n`` steps; another number of them is a problem, never cut to fit."""
    found = last_list(reply, lambda raw: _each(raw, _answer), "no list of answers")
    if found.value is not None and len(found.value) != n:
        return Parsed(None, f"{len(found.value)} answers for {n} steps")
    return found


def _answer(raw: Any) -> tuple[str, str] | None:
    if not isinstance(raw, dict):
        return None
    keys = {str(k).lower(): v for k, v in raw.items()}
    value = keys.get("answer", keys.get("result"))
    if value is None or not str(value).strip():
        return None
    return str(keys.get("explanation") or ""), typed_answer(value)[0]


def marked(reply: str, marker: str) -> Parsed[str]:
    """The text after the last ``marker``, whole, with or without Markdown emphasis around the marker."""
    text = without_thinking(reply)
    word = re.escape(marker.rstrip(":"))
    places = list(re.finditer(rf"^[\s>*_#`\"]*{word}[*_`\s]*:[*_`\s]*", text, re.IGNORECASE | re.MULTILINE))
    if not places:
        return Parsed(None, f"no {marker!r}")
    value = text[places[-1].end() :].strip().strip("`").strip()
    if '"' in places[-1].group():  # the quotes are around the marker and the text
        value = value.removesuffix('"')
    return Parsed(value) if value else Parsed(None, f"nothing after {marker!r}")


def _each(raw: Sequence[Any], read: Callable[[Any], T | None]) -> list[T] | None:
    """What ``read`` makes of every entry; None where it cannot read one, or where there is none."""
    rows = [r for r in map(read, raw) if r is not None]
    return rows if rows and len(rows) == len(raw) else None


def last_list(reply: str, read: Callable[[Any], list[T] | None], problem: str) -> Parsed[list[T]]:
    """The last list of a reply that ``read`` accepts; ``problem`` is the message where there is no such list."""
    text = without_thinking(reply)
    for raw in _lists(text):
        if (value := read(raw)) is not None:
            return Parsed(value)
    unclosed = "[" in text and text.rfind("]") < text.rfind("[")
    return Parsed(None, f"{problem}: it is not closed" if unclosed else problem)


def _lists(text: str) -> Iterator[list[Any]]:
    """Every list in a text that can be read, the last outermost one first, then those nested in it."""
    for piece in reversed(list(_balanced(text))):
        loaded = _loads(piece)
        while isinstance(loaded, dict):
            named = [v for k, v in loaded.items() if str(k).lower() in _LIST_KEYS]
            only = next(iter(loaded.values())) if len(loaded) == 1 else None  # {"result": {"steps": [...]}}
            loaded = named[-1] if named else only if isinstance(only, dict) else None
        if isinstance(loaded, list):
            yield loaded


def _balanced(text: str) -> Iterator[str]:
    """Outermost balanced [...] and {...} of a text; brackets inside double-quoted strings do not count."""
    i = 0
    for _ in range(_MAX_OPENINGS):
        opening = _OPENING.search(text, i)
        if opening is None:
            return
        end = _closing(text, opening.start())
        if end is not None:
            yield text[opening.start() : end]
        # An opening bracket that is never closed is prose: look again behind it.
        i = end or opening.end()


def _closing(text: str, start: int) -> int | None:
    stack: list[str] = []
    quoted, i = False, start
    while i < len(text):
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c in "[{":
            stack.append("]" if c == "[" else "}")
        elif c == '"':
            quoted = True
        elif c == stack[-1]:
            stack.pop()
            if not stack:
                return i + 1
        elif c in "]}":
            return None
        i += 1
    return None


def _loads(text: str) -> Any:
    repaired = re.sub(r",\s*([\]}])", r"\1", text)
    repaired = re.sub(r"([}\]\"])(\s*\n\s*)([{\[\"])", r"\1,\2\3", repaired)
    found = (literal(candidate, object, (_json, _literal)) for candidate in (text, repaired))
    return next((value for value in found if value is not None), None)


def _literal(text: str) -> Any:
    """A Python literal; strings side by side would silently become one, so they are refused."""
    tokens = [t.type for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in LAYOUT]
    if (tokenize.STRING, tokenize.STRING) in pairwise(tokens):
        raise ValueError("strings without a comma between them")
    return ast.literal_eval(text)


def _json(text: str) -> Any:
    return json.loads(escape_latex(text), strict=False)


def escape_latex(text: str) -> str:
    """JSON text in which backslashes that begin LaTeX are doubled, so that ``\\frac`` stays what it was."""

    def fix(m: re.Match[str]) -> str:
        word = m.group(1)
        if word is None:  # an escaped backslash, quote or slash
            return m.group()
        if re.match(r"u[0-9a-fA-F]{4}", text[m.start() + 1 :]):
            return m.group()
        if word[0] in "bfnrt" and word not in _COMMANDS:
            return m.group()
        return "\\" + m.group()

    return re.sub(r'\\(?:\\|"|/|([A-Za-z]+|.))', fix, text)
