"""The papers' own grading rules, defects included, so that results can be compared with published numbers."""

from __future__ import annotations

import re

from ..asks import Grade
from ..prompts import ANSWER_CUE
from .view import object_in

MODES = ("agentcoma", "stad", "collapse")


def agentcoma_number(text: str, gold: str) -> Grade:
    """AgentCoMa's rule for numbers: the last number of the response up to the next question, compared as floats.

    Only decimals keep their sign, thousands commas are removed, and a response without a number counts as 0.
    """
    found = re.findall(r"[-+]?\d*\.\d+|\d+", text.split("Question:")[0].replace(",", ""))
    answer = found[-1] if found else "0"
    try:
        equal = float(answer) == float(gold.replace(",", ""))
    except ValueError:
        equal = False
    return Grade("correct" if equal else "incorrect", answer, "numeric" if equal else None, "compat:agentcoma")


def agentcoma_has_cue(text: str) -> bool:
    """Whether the response has the cue without which AgentCoMa scores a commonsense answer as wrong."""
    return ANSWER_CUE.lower() in text.lower()


def stad_answer(text: str) -> str:
    """What STaD hands to its judge: the ``answer`` of the last ``{...}`` that parses, else the whole response.

    As published a false value (0, an empty string) falls through to the whole response.
    """
    depth_end = text.rfind("}")
    if depth_end < 0:
        return text
    depth = 0
    for start in range(depth_end, -1, -1):
        depth += {"}": 1, "{": -1}.get(text[start], 0)
        if depth == 0:
            parsed = object_in(text[start : depth_end + 1])
            return str(parsed["answer"]) if parsed and parsed.get("answer") else text
    return text
