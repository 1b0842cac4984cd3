"""Example: one prompt with the model's response and the gold answer, as token ids and spans, labelled for contrasts.

    examples = from_case_sets(tokenizer, cases, asks, responses, case_sets)

``from_case_sets`` makes them from the results of an evaluation. Prompt and response ids are the ones that were fed and
generated. Only the gold answer is tokenized here, in the context of its prompt. Everything must round-trip through the
tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ..errors import InputError, NoCasesError
from ..evaluation.asks import Ask, Grade, Response
from ..evaluation.case import Case, Part, shares
from ..evaluation.engines.base import THINKING_OPENED, think
from ..evaluation.engines.text import unended, verbatim
from ..evaluation.grading import grade
from ..evaluation.protocols.presenting import examples_in
from .slots import AT_ONCE, Exchange, Said, Slot, in_worked_form, locate, separators

if TYPE_CHECKING:
    from ..evaluation.protocols.base import CaseSet, Evidence

Ids = tuple[int, ...]
_ROLE = re.compile(r"whole|part:\d+")


@dataclass(frozen=True)
class Gold:
    """The gold answer of a response, and how it is graded."""

    answer: str
    answer_type: str
    format: str
    aliases: tuple[str, ...] = ()
    unknowable: bool = False
    stop: tuple[str, ...] = ()
    """Texts that end a response."""
    options: tuple[tuple[str, str], ...] = ()
    """(letter, text) of each option of a ``choice``."""
    question: str | None = None
    thinking: bool = False
    """Whether a response begins inside the thinking: its prompt opened it, or said to think first."""

    def grade(self, text: str, reason: str, compat: str | None = None) -> Grade:
        """The grade of a response that ended for a reason, as in the run."""
        if self.thinking and reason == "length" and "</think>" not in text:
            text = f"<think>{text}"  # what looks like an answer is a thought
        return grade(
            text, reason, self.answer, self.answer_type, self.aliases, self.format, compat, unknowable=self.unknowable,
            options=self.options, question=self.question,
        )  # fmt: skip


@dataclass(frozen=True)
class Example:
    """One prompt with its response, the input of probes. Token ids are those that were fed and generated."""

    case: str
    role: str
    """``whole``, ``part:0``, ..."""
    kind: str
    """The subject of the role: ``composition`` for wholes, else the part's kind (``commonsense``, ``math``, ...)."""
    group: str
    """Label from the case set: ``failure`` or ``success``."""
    prompt_ids: Ids
    """Template and BOS included."""
    response_ids: Ids
    """As generated, final EOS included when there was one."""
    answer_ids: Ids
    """The gold answer (``worked`` when the case gives it) tokenized in the context of the prompt."""
    cue_tokens: int
    """Trailing prompt tokens that belong to the template's generation prompt: they count as new, not as context."""
    question_span: tuple[int, int]
    """Half-open range of prompt positions that hold the question's own text."""
    family: str | None = None
    depth: int | None = None
    operation: str | None = None
    cluster: str | None = None
    few_shot_span: tuple[int, int] | None = None
    """Half-open range of prompt positions that hold worked examples, where the prompt has any."""
    gold: Gold | None = None
    """None if other continuations of the prompt cannot be judged."""
    slot: Slot | None = AT_ONCE
    """Where the answer begins in the response (``positions.read_at``); None if it could not be located."""
    separators: int = 0
    """First tokens of the answer that are white space alone."""
    begun: int = 0
    """Response tokens at the end of ``prompt_ids``, counted among the ``cue_tokens``: those before the answer slot."""
    crossed: tuple[str, ...] = ()
    """What the case shares with others besides its cluster."""

    @property
    def shares(self) -> Hashable:
        """What the case shares with others, as ``evaluation.dependence`` takes it; None if it shares nothing."""
        return shares(self.cluster, self.crossed)


def from_case_sets(
    tokenizer: Any, cases: Mapping[str, Case] | Iterable[Case], asks: Mapping[str, Ask],
    responses: Mapping[str, Response], case_sets: Iterable[CaseSet], roles: Sequence[str] | None = None,
) -> list[Example]:  # fmt: skip
    """Examples for every case in a failure or success set, one per role that was asked.

    ``asks`` and ``responses`` are keyed by ask identity, as the pipeline returns them. Which ask belongs to which case
    and role is read from the sets' evidence (cases may share an ask), then from the asks. ``roles`` limits and extends
    the roles (default: ``whole`` and every ``part:i``). The answer slot is found from what the sets' evidence says was
    taken for the answer, else from grading the response again. Sets with other labels than failure and success are
    passed over.
    Raises ``NoCasesError`` when nothing is labelled, ``InputError`` for a case with both labels, without its whole,
    without token ids, and for prompts and answers that do not round-trip through the tokenizer.
    """
    table = {c.id: c for c in (cases.values() if isinstance(cases, Mapping) else cases)}
    case_sets = list(case_sets)
    labels = _labels(case_sets)
    if not labels:
        raise NoCasesError("no case is labelled failure or success; there is nothing to probe")
    found = {
        (case, role): key
        for (case, role), key in _keys(asks, case_sets).items()
        if case in labels and (role in roles if roles is not None else _ROLE.fullmatch(role)) and key in responses
    }
    judged = _judged(case_sets)
    writer = _Writer(tokenizer)
    out: list[Example] = []
    for case_id, group in labels.items():
        if case_id not in table:
            raise InputError(f"case set: case {case_id!r} is not among the {len(table)} cases given")
        mine = sorted((role for case, role in found if case == case_id), key=_role_order)
        if "whole" not in mine and (roles is None or "whole" in roles):
            raise InputError(f"case {case_id!r}: no response to its whole; the journal is incomplete")
        for role in mine:
            key = found[case_id, role]
            said = judged.get((case_id, role))
            out.append(writer.example(table[case_id], role, asks[key], responses[key], group, said))
    return out


def _keys(asks: Mapping[str, Ask], case_sets: Iterable[CaseSet]) -> dict[tuple[str, str], str]:
    """Ask identity by case and role; of repeats the first."""
    found: dict[tuple[str, str], str] = {}
    for key, row in _evidence(case_sets):
        if row.ask is not None and row.ask in asks:
            found.setdefault(key, row.ask)
    for key, ask in asks.items():
        found.setdefault((ask.case, ask.role), key)
    return found


def _evidence(case_sets: Iterable[CaseSet]) -> Iterator[tuple[tuple[str, str], Evidence]]:
    """What the sets say of each case and role."""
    for case_set in case_sets:
        for entry in case_set.entries:
            yield from (((entry.case, e.role), e) for e in entry.evidence)


def _judged(case_sets: Iterable[CaseSet]) -> dict[tuple[str, str], Said]:
    """The facts about each case's asks by role; for repeats, those of the first."""
    found: dict[tuple[str, str], Said] = {}
    for key, row in _evidence(case_sets):
        found.setdefault(key, (row.outcome, row.answer))
    return found


def _labels(case_sets: Iterable[CaseSet]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for case_set in case_sets:
        if case_set.label not in ("failure", "success"):
            continue
        for case in case_set.ids:
            if labels.setdefault(case, case_set.label) != case_set.label:
                raise InputError(f"case {case!r} is in failure and success sets; give the sets of one protocol only")
    return labels


def _role_order(role: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    pieces = [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in role.split(":")]
    return role != "whole", pieces


def part_of(case: Case, role: str) -> Part | None:
    """The part that a ``part:i...`` role asks about; None for wholes and everything else."""
    pieces = role.split(":")
    if pieces[0] != "part" or len(pieces) < 2 or not pieces[1].isdigit():
        return None
    index = int(pieces[1])
    if index >= len(case.parts):
        raise InputError(f"case {case.id!r}: role {role!r}, but the case has {len(case.parts)} parts")
    return case.parts[index]


def _question(case: Case, part: Part | None, ask: Ask) -> str:
    """The question's own wording inside the ask's prompt (the whole prompt where no known wording is in it)."""
    wordings = [case.question] if part is None else [part.question, *part.paraphrases, part.extra_context or ""]
    known = [w for w in wordings if w and w in ask.prompt]
    return max(known, key=len) if known else ask.prompt


@dataclass(frozen=True)
class _Writer:
    tokenizer: Any

    def example(
        self, case: Case, role: str, ask: Ask, response: Response, group: str, said: Said | None = None
    ) -> Example:
        where = f"case {case.id!r}, role {role!r}"
        if response.prompt_ids is None or response.response_ids is None:
            raise InputError(f"{where}: the engine returned no token ids; ask again with the transformers engine")
        if response.error is not None or not response.response_ids:
            raise InputError(
                f"{where}: no response to probe ({response.error or 'no tokens'}); run the evaluation again"
            )
        part = part_of(case, role)
        prompt_ids, text = tuple(response.prompt_ids), self._text(ask, response.prompt_ids, where)
        source = case if part is None else part
        answer_ids = self._answer_ids(ask, text, prompt_ids, source.worked or source.answer, response, where)
        gold = Gold(ask.gold, ask.answer_type, ask.format, tuple(ask.aliases), case.unknowable and role == "whole",
                    tuple(ask.stop), tuple(ask.options), ask.question,
                    bool(ask.thinking or (response.provenance or {}).get(THINKING_OPENED)))  # fmt: skip
        question = _question(case, part, ask)
        return Example(
            case=case.id, role=role, kind="composition" if part is None else part.kind or ask.kind or "part",
            group=group, prompt_ids=prompt_ids, response_ids=tuple(response.response_ids),
            answer_ids=answer_ids, cue_tokens=self._cue_tokens(ask, prompt_ids),
            question_span=self._span(ask, text, prompt_ids, question, where),
            family=case.family, depth=case.depth, operation=case.operation, cluster=case.cluster,
            crossed=case.crossed,
            few_shot_span=self._few_shot_span(ask, text, prompt_ids, where), gold=gold,
            slot=self._slot(source, Exchange(ask, response, text, question), gold, said),
            separators=separators(self.tokenizer, answer_ids),
        )  # fmt: skip

    def _slot(self, source: Case | Part, asked: Exchange, gold: Gold, said: Said | None) -> Slot | None:
        """Where the response's answer begins.

        For a worked answer ("7 times 9 is 63") this is its beginning: its first number is the first thing that the
        model has to find out, and the target of training and attribution.
        """
        worked = source.worked
        if worked and in_worked_form(worked, asked.response.text):
            return AT_ONCE
        if said is None:
            graded = gold.grade(asked.response.text, asked.response.finish_reason)
            said = graded.outcome, graded.answer
        found = locate(self.tokenizer, lambda text: self._encode(text, asked.ask), asked, said)
        return AT_ONCE if worked and found is not None and found.offset == 0 else found

    def _encode(self, text: str, ask: Ask) -> Ids:
        # A chat template writes its special tokens itself.
        raw = ask.prompting == "raw"
        ids = self.tokenizer(text, add_special_tokens=raw).input_ids
        return tuple(unended(self.tokenizer, ids, text, (self.tokenizer.eos_token_id,)) if raw else ids)

    def _chat(self, ask: Ask, cue: bool) -> str:
        talk = [{"role": "user", "content": ask.prompt}]
        thinking = {} if ask.thinking is None else think(ask.thinking)
        options = {"add_generation_prompt": cue, "tokenize": False, **thinking}
        return self.tokenizer.apply_chat_template(talk, **options)

    def _text(self, ask: Ask, ids: Sequence[int], where: str) -> str:
        """The prompt as text, such that tokenizing it gives the ids that were fed."""
        rendered = self._chat(ask, True) if ask.prompting == "chat" else ask.prompt
        if self._encode(rendered, ask) == tuple(ids):
            return rendered
        decoded = verbatim(self.tokenizer, ids)
        if self._encode(decoded, ask) == tuple(ids):
            return decoded
        raise InputError(f"{where}: prompt ids do not round-trip through the tokenizer; use the one it was asked with")

    def _cue_tokens(self, ask: Ask, ids: Ids) -> int:
        if ask.prompting == "raw":
            return 0
        return len(ids) - _shared_prefix(self._encode(self._chat(ask, False), ask), ids)

    def _span(self, ask: Ask, text: str, ids: Ids, question: str, where: str) -> tuple[int, int]:
        message = text.rfind(ask.prompt)
        start = text.rfind(question.strip()) if message < 0 else message + ask.prompt.rfind(question)
        if start < 0:
            raise InputError(f"{where}: the question is not in the rendered prompt; does the template rewrite it?")
        size = len(question.strip()) if message < 0 else len(question)
        first = _shared_prefix(self._encode(text[:start], ask), ids)
        through = self._encode(text[: start + size], ask)
        last = _shared_prefix(through, ids)
        # A token across the question's end contains a part of the question.
        return first, max(last if last == len(through) else last + 1, first + 1)

    def _few_shot_span(self, ask: Ask, text: str, ids: Ids, where: str) -> tuple[int, int] | None:
        shown = examples_in(ask)
        return None if shown is None else self._span(ask, text, ids, shown, where)

    def _answer_ids(self, ask: Ask, text: str, ids: Ids, gold: str, response: Response, where: str) -> Ids:
        written = self._separator(ask, text, ids, response) + gold
        full = self._encode(text + written, ask)
        if _shared_prefix(full, ids) == len(ids):
            found = full[len(ids) :]
        else:  # the first answer token would merge with the prompt's last: the model cannot write it that way
            found = tuple(self.tokenizer(written, add_special_tokens=False).input_ids)
        if not gold.strip():
            raise InputError(f"{where}: the gold answer {gold!r} tokenizes to nothing")
        back = verbatim(self.tokenizer, found)
        if "".join(back.split()) != "".join(gold.split()):
            raise InputError(f"{where}: the gold answer {gold!r} comes back from the tokenizer as {back!r}")
        return found

    def _separator(self, ask: Ask, text: str, ids: Ids, response: Response) -> str:
        """The white space that the model itself put before its answer."""
        body = response.text.lstrip()
        lead = response.text[: len(response.text) - len(body)]
        first = (response.response_ids or (None,))[0]
        for candidate in dict.fromkeys((lead, "", " ", "\n")) if body else ():
            tokens = self._encode(text + candidate + body, ask)[len(ids) :]
            if tokens and tokens[0] == first:
                return candidate
        return lead


def _shared_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
