"""Training prompts: the whole questions, their right answers, and a check that none of them is also evaluated.

Training cases come from an organism's training side (``organism:temporal``) or from a case file. Two cases overlap
if they ask the same question or combine the same parts. Any overlap between training and evaluation is an error.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...errors import InputError
from ...evaluation import prompts
from ...evaluation.case import Case
from ...evaluation.cases import hash_cases
from ...evaluation.grading import grade
from ...evaluation.protocols import asking
from ..evaluating.ask_plan import load_benchmark
from .recipes import AdapterRecipe

ORGANISM = "organism:temporal"


@dataclass(frozen=True)
class TrainingSet:
    """The cases that are trained on, and the cases kept for evaluation."""

    cases: tuple[Case, ...]
    evaluation: tuple[Case, ...]
    sha256: str
    """Hash of the training cases."""


def combination(case: Case) -> frozenset[str]:
    """What a case combines: its atoms, or the questions of its parts if they name no atoms."""
    return frozenset(p.atom or _plain(p.question) for p in case.parts)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def overlap(training: Iterable[Case], evaluation: Iterable[Case]) -> list[tuple[str, str]]:
    """(training id, evaluation id) of cases with the same question, or with the same two or more parts."""
    questions, combined = {}, {}
    for case in evaluation:
        questions.setdefault(_plain(case.question), case.id)
        if len(parts := combination(case)) > 1:
            combined.setdefault(parts, case.id)
    found = []
    for case in training:
        other = questions.get(_plain(case.question)) or combined.get(combination(case))
        if other is not None:
            found.append((case.id, other))
    return found


def _check_targets(cases: Sequence[Case], recipe: AdapterRecipe, where: str) -> None:
    """Raise ``InputError`` if the text that SFT would imitate is not a right answer in the recipe's format."""
    if recipe.objective == "grpo" or recipe.solutions == "self":
        return
    for case in cases:
        text = target(case, recipe)
        verdict = grade(
            text, "stop", case.answer, case.answer_type, tuple(case.aliases), recipe.format, options=case.options,
            question=case.question,
        )  # fmt: skip
        if verdict.outcome != "correct":
            raise InputError(
                f"{where}: case {case.id!r} would teach {text!r}, which is graded {verdict.outcome} in format "
                f"{recipe.format} (gold: {case.answer!r}); use --format xml, or end its 'worked' with the answer"
            )


def check_disjoint(training: Sequence[Case], evaluation: Sequence[Case], where: str) -> None:
    """Raise ``InputError`` if a training case is also evaluated."""
    found = overlap(training, evaluation)
    if found:
        first, other = found[0]
        raise InputError(
            f"{where}: {len(found)} of {len(training)} training cases are also evaluated (first: {first!r} is "
            f"{other!r}); take them out of one of the two files, or leave out --evaluation to have the file split"
        )


def training_set(source: str, recipe: AdapterRecipe, evaluation: str | None = None, seed: int = 0) -> TrainingSet:
    """Draw the training cases of a recipe and check them against the evaluation cases.

    ``source`` is ``organism:temporal`` or any benchmark that ``--benchmark`` takes; so is ``evaluation``. Without
    ``evaluation`` an organism is evaluated on its held-out side, and a file on its cases that do not overlap with the
    training. Raises ``InputError`` for a depth that no case is drawn from, too few cases, and any overlap.
    """
    given = None if evaluation is None else load_benchmark(evaluation, option="--evaluation").cases
    if source == ORGANISM:
        cases = organism_cases(recipe.depths, recipe.prompts, seed)
        kept = given or load_benchmark(source, seed=0, limit=30).cases
    else:
        pool = load_benchmark(source, option="--train").cases
        cases = _draw(pool, recipe, source, seed)
        kept = given or _rest(pool, cases, source)
    if left_out := sorted({*recipe.depths} - {c.depth for c in cases}):
        raise InputError(
            f"--prompts {recipe.prompts}: too few to train on every family and depth, none is left for depth "
            f"{left_out[0]}; give more, or fewer --depths"
        )
    check_disjoint(cases, kept, f"--train {source}")
    _check_targets(cases, recipe, f"--train {source}")
    return TrainingSet(tuple(cases), tuple(kept), hash_cases(cases))


def _draw(pool: Sequence[Case], recipe: AdapterRecipe, source: str, seed: int) -> list[Case]:
    cells: dict[tuple[int, str], list[Case]] = defaultdict(list)
    for case in pool:
        if case.depth in recipe.depths and not case.unknowable:
            cells[case.depth, case.family or ""].append(case)
    there = sorted({c.depth for c in pool if c.depth is not None})
    missing = [d for d in recipe.depths if d not in {depth for depth, _ in cells}]
    if missing:
        raise InputError(
            f"--depths: {source} has no case of depth {missing[0]} (it has {', '.join(map(str, there)) or 'none'}); "
            "give some of its depths, or another --train"
        )
    rng = random.Random(f"{seed}/training")  # without the file's path, so that a moved file gives the same draw
    for key in sorted(cells):
        rng.shuffle(cells[key])
    chosen: list[Case] = []
    while len(chosen) < recipe.prompts and any(cells.values()):
        for key in sorted(cells):
            if cells[key] and len(chosen) < recipe.prompts:
                chosen.append(cells[key].pop())
    if len(chosen) < recipe.prompts:
        raise InputError(
            f"--train {source}: {len(chosen)} cases at depth {', '.join(map(str, recipe.depths))}, but the recipe "
            f"needs {recipe.prompts}; give --prompts {len(chosen)} or fewer"
        )
    return chosen


def _rest(pool: Sequence[Case], cases: Sequence[Case], source: str) -> list[Case]:
    taken = {a for a, _ in overlap(pool, cases)}
    rest = [c for c in pool if c.id not in taken]
    if not rest:
        raise InputError(f"--train {source}: no case is left to evaluate; give fewer --prompts or an --evaluation file")
    return rest


def organism_cases(depths: Sequence[int], n: int, seed: int = 0) -> list[Case]:
    """``n`` temporal cases from the training side of the organisms' held-out split, evenly over family x depth.

    Depth 2 is the far pair; every other depth has rank, successor and interval, as in the benchmark.
    Raises ``InputError`` for a depth that the benchmark does not have.
    """
    from ..organism.benchmarks import FAMILIES, trained

    known = sorted({d for ds in FAMILIES.values() for d in ds})
    missing = [d for d in depths if d not in known]
    if missing:
        raise InputError(
            f"--depths {missing[0]}: {ORGANISM} has depths {', '.join(map(str, known))}; give some of them"
        )
    cells = [(f, d) for d in sorted(set(depths)) for f, ds in FAMILIES.items() if d in ds]
    sizes = {cell: n // len(cells) + (i < n % len(cells)) for i, cell in enumerate(cells)}
    drawn = {cell: trained(*cell, size, seed) for cell, size in sizes.items()}
    for (family, depth), size in sizes.items():
        if len(drawn[family, depth]) < size:
            raise InputError(
                f"--prompts: {ORGANISM} has fewer than {size} {family} questions of depth {depth}; give fewer"
            )
    return [case for found in drawn.values() for case in found]


def trace(case: Case) -> str:
    """The reasoning in a worked answer: the case's own, or its steps with their answers."""
    return case.worked or " ".join(f"{p.question} {p.worked or p.answer}." for p in case.parts) or case.answer


def target(case: Case, recipe: AdapterRecipe) -> str:
    """The text that SFT imitates: the answer alone in the format's tags, or reasoning and answer."""
    if recipe.objective == "sft-trace":
        return prompts.write_answer(case.answer, trace(case), recipe.format)
    bare = "xml-answer" if recipe.format == "xml" else recipe.format
    return prompts.write_answer(case.answer, None, bare)


def question(case: Case, recipe: AdapterRecipe) -> str:
    """The user message, word for word as in the evaluation."""
    return prompts.render(asking.question(case, case.question, case.options), recipe.format)
