"""The cost of a run for ``--dry-run``, computed from cases and tokenizer without loading weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...evaluation.asks import Ask, Grade
from ...evaluation.case import Case
from ...evaluation.engines.base import think
from ...evaluation.protocols.base import Protocol
from ...probes.catalog import PROBES
from ...terminal import to_stderr
from ..config import Config
from ..models.resolve import resolve_model
from ..models.served import weights_source
from ..models.target import choose_prompting, loading_of
from ..run.checks import role_group
from . import ask_plan
from .ask_plan import ask_options
from .benchmark import load_benchmark

_LONGEST = 20


def plan_lines(config: Config) -> list[str]:
    """Asks (identical ones once), tokens, forward passes of the probes, and one prompt per role, as text.

    Later rounds depend on the answers, so asks are counted for a model that answers everything right and for one that
    answers everything wrong. For a model that only a server has, asks are counted but tokens are not.
    """
    from transformers import AutoConfig

    from ...model_loading import load_tokenizer

    benchmark = load_benchmark(config.benchmark, seed=config.seed, limit=config.limit)
    plan, loading = ask_plan.plan_asks(ask_options(config), benchmark, config.part), loading_of(config)
    source = weights_source(loading) if loading.is_served else resolve_model(loading.model, to_stderr)
    tokenizer = None if source is None else load_tokenizer(source.location)
    prompting = config.prompting or ("chat" if tokenizer is None else choose_prompting(None, tokenizer))
    plan = plan.for_model(prompting, tokenizer)
    right, wrong = (all_asks(plan.cases, plan.protocol, outcome) for outcome in ("correct", "incorrect"))
    most = max((right, wrong), key=len)
    lines = [
        f"cases: {len(plan.cases)} of {benchmark.name}, protocol {plan.protocol.name}"
        f"{ask_plan.protocol_reason(plan.protocol.name, benchmark)}, prompting {prompting}"
        + ask_plan.format_notice(plan.options.format, benchmark),
        *ask_plan.parts_notice(plan.cases, plan.protocol.name),
        *ask_plan.depth_notice(plan.cases),
        f"asks: {len(right)} if all answers are right, {len(wrong)} if all are wrong (identical asks once)",
    ]
    if source is None:
        lines.append(f"prompt characters: at most {sum(len(a.prompt) for a in most)}")
    else:
        prompt_tokens = sum(ask_plan.prompt_lengths(tokenizer, most))
        lines.append(f"prompt tokens: at most {prompt_tokens}")
    response_tokens = sum(a.max_tokens for a in most)
    lines.append(f"response tokens: at most {response_tokens}")
    if source is not None:
        # A journalled answer consists of its prompt, both lists of token ids as numbers, and about 400 bytes more.
        size = sum(len(a.prompt.encode()) + 400 for a in most) + 6 * prompt_tokens + 10 * response_tokens
        layers = AutoConfig.from_pretrained(source.location, trust_remote_code=False).get_text_config()
        roles = 1 + max(len(case.parts) for case in plan.cases)
        lines.append(f"journal: at most {size / 1e6:.1f} MB")
        lines += _probe_lines(config, len(plan.cases), roles, layers.num_hidden_layers)
    return lines + _example_prompts(right, tokenizer)


def _example_prompts(asks: Sequence[Ask], tokenizer: Any) -> list[str]:
    """The first prompt of each role as the model receives it; all wordings of a part count as one role."""
    first: dict[str, Ask] = {}
    for ask in asks:
        first.setdefault(role_group(ask.role), ask)
    lines = []
    for role, ask in first.items():
        lines.append(f"prompt of {role} (case {ask.case}, gold answer {ask.gold!r}, at most {ask.max_tokens} tokens):")
        lines += [f"  {line}" for line in _rendered(ask, tokenizer).splitlines()]
    return lines


def _rendered(ask: Ask, tokenizer: Any) -> str:
    if tokenizer is None or ask.prompting == "raw":
        return ask.prompt
    from ...evaluation.engines.text import chat_ids

    [ids] = chat_ids(tokenizer, [ask.prompt], "the model", **({} if ask.thinking is None else think(ask.thinking)))
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def all_asks(cases: Sequence[Case], protocol: Protocol, outcome: Any) -> list[Ask]:
    """Every ask of all rounds, if every grade were ``outcome``."""
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


def _probe_lines(config: Config, n_cases: int, roles: int, layers: int) -> list[str]:
    """Upper bounds on the forward passes of the probes. A row is one position recomputed on cached keys and values.

    Each case is a failure or a success, so there are at most half as many pairs as cases, and at most --probe-cases.
    Without pairs each group is kept separately, so all cases may be probed.
    """
    if not config.probes:
        return []
    cases = min(2 * config.probe_cases, n_cases)
    pairs = min(config.probe_cases, n_cases // 2)
    prompts = cases * roles
    sizes = {"prompts": prompts, "cases": cases, "twice": 2 * cases, "pairs": pairs, "layers": layers}
    costs = {name: PROBES[name].cost.format(**sizes) for name in config.probes}
    about = f"at most {pairs} failures and as many successes, or {cases} cases without pairs, in up to {roles} roles"
    lines = [f"probes on {about}, forwards at most:", *(f"  {n}: {cost}" for n, cost in costs.items())]
    if config.case_details:
        few = min(2 * min(config.case_details, config.probe_cases), n_cases) * roles
        lines.append(
            f"  single cases for the report: {few} prompts, sweeps over positions limited to about ten seconds"
        )
    return lines
