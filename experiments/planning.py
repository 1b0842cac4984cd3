"""``--dry-run``: what a run would cost, counted from the cases and the tokenizer; no weights are read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ..evaluation.asks import Ask, Grade
from ..evaluation.cases import Case
from ..evaluation.protocols.base import Protocol
from .evaluate import get_protocol
from .settings import Settings
from .sources import load_benchmark, resolve_model
from .targets import choose_prompting

_LONGEST = 20


def plan_lines(settings: Settings) -> list[str]:
    """Asks (identical ones once), tokens, and forward passes of the probes, as text.

    Later rounds depend on the answers: the count is given for a model that answers everything right and for one that
    answers everything wrong.
    """
    benchmark = load_benchmark(settings.benchmark, seed=settings.seed, limit=settings.limit)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(resolve_model(settings.model).location, trust_remote_code=False)
    prompting = choose_prompting(settings.prompting, tokenizer)
    name = settings.protocol or benchmark.protocol
    protocol = get_protocol(name, settings.format or benchmark.format, prompting)
    right, wrong = (_all_asks(benchmark.cases, protocol, outcome) for outcome in ("correct", "incorrect"))
    most = max((right, wrong), key=len)
    prompt_tokens = sum(_prompt_tokens(tokenizer, most))
    roles = len({ask.role for ask in most if ask.case == most[0].case}) if most else 0
    return [
        f"cases: {len(benchmark.cases)} of {benchmark.name}, protocol {name}, prompting {prompting}",
        f"asks: {len(right)} if all answers are right, {len(wrong)} if all are wrong (identical asks once)",
        f"prompt tokens: at most {prompt_tokens}",
        f"response tokens: at most {sum(ask.max_tokens for ask in most)}",
        *_probe_lines(settings, roles),
    ]


def _all_asks(cases: Sequence[Case], protocol: Protocol, outcome: Any) -> list[Ask]:
    """Every ask of all rounds if all grades were ``outcome``."""
    found: dict[tuple[str, int], Ask] = {}
    for case in cases:
        graded: dict[str, Grade] = {}
        for _ in range(_LONGEST):
            new = [ask for ask in protocol.asks(case, graded) if ask.role not in graded]
            if not new:
                break
            found.update({(ask.prompt, ask.repeat): ask for ask in new if (ask.prompt, ask.repeat) not in found})
            graded.update({ask.role: Grade(outcome, ask.gold) for ask in new})
    return list(found.values())


def _prompt_tokens(tokenizer: Any, asks: Sequence[Ask]) -> list[int]:
    chats = [a for a in asks if a.prompting == "chat"]
    lengths = (
        [len(ids) for ids in tokenizer([a.prompt for a in asks if a.prompting == "raw"]).input_ids]
        if len(chats) < len(asks)
        else []
    )
    rest = iter(chats)
    while block := list(islice(rest, 512)):
        talks = [[{"role": "user", "content": a.prompt}] for a in block]
        lengths += map(len, tokenizer.apply_chat_template(talks, add_generation_prompt=True, return_dict=False))
    return lengths


def _probe_lines(settings: Settings, roles: int) -> list[str]:
    """Upper bounds; a teacher-forced example is one forward pass over its prompt and response."""
    if not settings.probes:
        return []
    cases = 2 * settings.probe_cases
    return [
        f"probes: {', '.join(settings.probes)} on at most {cases} cases ({settings.probe_cases} failures, as many "
        f"successes) in up to {roles} roles: at most {cases * max(1, roles)} prompts, each forwarded once per probe"
    ]
