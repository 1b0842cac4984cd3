"""``--dry-run``: what a run would cost, counted from the cases and the tokenizer; no weights are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..evaluation.asks import Ask, Grade
from ..evaluation.cases import Case
from ..evaluation.protocols.base import Protocol
from . import asking, served
from .distributed import shards
from .settings import Settings
from .sources import Benchmark, load_benchmark, resolve_model
from .targets import choose_prompting

_LONGEST = 20


def plan_lines(settings: Settings) -> list[str]:
    """Asks (identical ones once), tokens, and forward passes of the probes, as text.

    Later rounds depend on the answers: the count is given for a model that answers everything right and for one that
    answers everything wrong.
    """
    benchmark = load_benchmark(settings.benchmark, seed=settings.seed, limit=settings.limit)
    from transformers import AutoConfig, AutoTokenizer

    source = served.weights_source(settings) if served.is_served(settings) else resolve_model(settings.model)
    if source is None:
        return _asks_only(settings, benchmark)
    location = source.location
    tokenizer = AutoTokenizer.from_pretrained(location, trust_remote_code=False)
    layers = AutoConfig.from_pretrained(location, trust_remote_code=False).get_text_config().num_hidden_layers
    prompting = choose_prompting(settings.prompting, tokenizer)
    name = settings.protocol or benchmark.protocol
    protocol = asking.protocol(name, settings.format or benchmark.format, prompting, settings.asking, settings.seed)
    ready = asking.prepare(benchmark.cases, name, settings.asking, settings.seed)
    benchmark = shards.of(replace(benchmark, cases=tuple(ready)), settings.shard)
    cases = benchmark.cases
    right, wrong = (all_asks(cases, protocol, outcome) for outcome in ("correct", "incorrect"))
    most = max((right, wrong), key=len)
    prompt_tokens = sum(asking.prompt_lengths(tokenizer, most))
    roles = 1 + max(len(case.parts) for case in benchmark.cases)
    response_tokens = sum(ask.max_tokens for ask in most)
    # A journalled answer holds its prompt, both token-id lists as numbers, and about 400 bytes around them.
    size = sum(len(ask.prompt.encode()) + 400 for ask in most) + 6 * prompt_tokens + 10 * response_tokens
    return [
        f"cases: {len(benchmark.cases)} of {benchmark.name}, protocol {name}, prompting {prompting}",
        f"asks: {len(right)} if all answers are right, {len(wrong)} if all are wrong (identical asks once)",
        f"prompt tokens: at most {prompt_tokens}",
        f"response tokens: at most {response_tokens}",
        f"journal: at most {size / 1e6:.1f} MB",
        *_probe_lines(settings, len(benchmark.cases), roles, layers),
    ]


def _asks_only(settings: Settings, benchmark: Benchmark) -> list[str]:
    """The plan for a model that only a server knows: without its tokenizer there are asks to count, but no tokens."""
    name = settings.protocol or benchmark.protocol
    prompting = settings.prompting or "chat"
    protocol = asking.protocol(name, settings.format or benchmark.format, prompting, settings.asking, settings.seed)
    ready = asking.prepare(benchmark.cases, name, settings.asking, settings.seed)
    benchmark = shards.of(replace(benchmark, cases=tuple(ready)), settings.shard)
    cases = benchmark.cases
    right, wrong = (all_asks(cases, protocol, outcome) for outcome in ("correct", "incorrect"))
    return [
        f"cases: {len(benchmark.cases)} of {benchmark.name}, protocol {name}, prompting {prompting}",
        f"asks: {len(right)} if all answers are right, {len(wrong)} if all are wrong (identical asks once)",
        f"prompt characters: at most {max(sum(len(a.prompt) for a in asks) for asks in (right, wrong))}",
        f"response tokens: at most {max(sum(a.max_tokens for a in asks) for asks in (right, wrong))}",
    ]


def all_asks(cases: Sequence[Case], protocol: Protocol, outcome: Any) -> list[Ask]:
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


def _probe_lines(settings: Settings, n_cases: int, roles: int, layers: int) -> list[str]:
    """Upper bounds on what the probes forward. A row is one position recomputed on cached keys and values.

    A case is a failure or a success: pairs are at most half of the cases, and so few that --probe-cases allows them.
    Without pairs each group is kept by itself, so there may be as many cases as there are.
    """
    if not settings.probes:
        return []
    cases = min(2 * settings.probe_cases, n_cases)
    pairs = min(settings.probe_cases, n_cases // 2)
    prompts = cases * roles
    costs = {
        "neurons": f"{prompts} prompts, each with {layers} layers x 9 to 65 rows, forward and backward",
        "lookback": f"{prompts} prompts with their responses",
        "patching": f"{cases} prompts, {pairs} pairs x {layers} layers of rows with their continuations",
        "trajectory": f"{2 * cases} prompts, half of them with their responses",
        "min-k": f"{prompts} prompts",
    }
    unknown = "what its plugin does"
    about = f"at most {pairs} failures and as many successes, or {cases} cases without pairs, in up to {roles} roles"
    lines = [f"probes on {about}, forwards at most:", *(f"  {n}: {costs.get(n, unknown)}" for n in settings.probes)]
    if settings.case_details:
        few = min(2 * min(settings.case_details, settings.probe_cases), n_cases) * roles
        lines.append(
            f"  single cases for the report: {few} prompts, sweeps over positions bounded at ten seconds or so"
        )
    return lines
