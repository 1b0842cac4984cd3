"""The wordings of every prompt: how a question is asked, and how an answer in that format is written.

    render("What is 2 + 2?", "cot")

Protocols and the training documents of the organisms both use these functions, so a small model is asked in exactly the
words that it was trained on. Instructions are short on purpose: they also have to fit a small
context. This module knows nothing about models or grading.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ABSTENTION = "INSUFFICIENT_EVIDENCE"
ANSWER_CUE = "So the final answer is:"
PLACEHOLDER = "[VALUE]"


@dataclass(frozen=True)
class Format:
    """One way to ask for an answer and to write it."""

    name: str
    instruction: str
    """Line after the question; empty for none."""
    response: str
    """How an answer in this format is written: a template over ``{worked}`` and ``{answer}``."""
    extract: Literal["whole", "xml", "cue", "last-line"]
    """Place of the answer in the response."""
    stop: tuple[str, ...] = ()


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        # The organisms' own way: nothing but the question; the answer may be worked ("7 times 4 is 28").
        Format("plain", "", "{worked}", "whole"),
        # For chat models and short gold answers: parts and whole are asked for the bare answer alike. The wording is
        # one that small models follow: told to write "no sentence", SmolLM2-135M answered "No, I'm sorry ...".
        Format("short", "Give only the answer, in as few words as possible.", "{answer}", "whole"),
        # Composition collapse, App. Q: V1, V2 and V3.
        Format(
            "xml",
            "Reason briefly in <reasoning></reasoning>, then answer in <answer></answer>. "
            f"If you cannot know: {ABSTENTION}.",
            "<reasoning>{worked}</reasoning><answer>{answer}</answer>",
            "xml",
            ("</answer>",),
        ),
        Format(
            "xml-answer",
            f"Answer only, in <answer></answer>. If you cannot know: {ABSTENTION}.",
            "<answer>{answer}</answer>",
            "xml",
            ("</answer>",),
        ),
        Format("knowledge", "Use only what you know.", "{answer}", "last-line"),
        # AgentCoMa's chain of thought: the last cue wins.
        Format("cot", f"Think step by step. End with '{ANSWER_CUE}'.", f"{{worked}}. {ANSWER_CUE} {{answer}}", "cue"),
        # Press et al. 2023.
        Format(
            "self-ask",
            f"Ask and answer follow-up questions first. End with '{ANSWER_CUE}'.",
            f"{{worked}} {ANSWER_CUE} {{answer}}",
            "cue",
        ),
    )
}


def render(question: str, format: str = "plain") -> str:
    """The user message that puts ``question`` in a prompt format."""
    instruction = FORMATS[format].instruction
    return f"{question}\n{instruction}" if instruction else question


def write_answer(answer: str, worked: str | None = None, format: str = "plain") -> str:
    """A model answer in a format; ``worked`` is the reasoning that ends in the answer (default: the answer alone)."""
    return FORMATS[format].response.format(worked=worked or answer, answer=answer)


def self_ask(steps: Sequence[tuple[str, str]]) -> str:
    """The worked part of a self-ask answer: follow-up questions and their answers (Press et al. 2023, section 3)."""
    return " ".join(f"Follow up: {q} Intermediate answer: {a}." for q, a in steps)


def scaffold(question: str, solved: Sequence[tuple[str, str]]) -> str:
    """The question with its first steps revealed (STaD, section 2.2: level j reveals steps 1..j)."""
    return " ".join([*(f"Known: {q} {a}." for q, a in solved), question])


def placeholder(question: str, solved: Sequence[tuple[str, str]]) -> str:
    """The scaffold with its values blanked: what the wording alone gives away (STaD, leak control)."""
    return scaffold(question, [(q, PLACEHOLDER) for q, _ in solved])


def with_evidence(question: str, evidence: Sequence[str]) -> str:
    """The question after a block of facts (in-context families)."""
    return "Facts: " + " ".join(evidence) + "\n" + question


def pair(question_1: str, question_2: str) -> str:
    """Q1 and a Q2 that uses X, the answer to Q1 (Compositional GSM, figure 2)."""
    return f"Let X be the answer to Q1.\nQ1: {question_1}\nUse X to answer Q2.\nQ2: {question_2}"


def pair_answer(answer_1: str, worked_1: str | None, answer_2: str, worked_2: str | None) -> str:
    """An answer to a pair: Q1 first, then X, then Q2."""
    return f"A1: {worked_1 or answer_1}. X is {answer_1}. A2: {worked_2 or answer_2}. {ANSWER_CUE} {answer_2}"


def co_presented(question_1: str, question_2: str) -> str:
    """Two independent questions in one prompt; the second one is graded (Compositional GSM, figure 12)."""
    return f"Q1: {question_1}\nQ2: {question_2}\nAnswer both."


def co_presented_answer(answer_1: str, worked_1: str | None, answer_2: str, worked_2: str | None) -> str:
    """An answer to two independent questions."""
    return f"A1: {worked_1 or answer_1}. A2: {worked_2 or answer_2}. {ANSWER_CUE} {answer_2}"
