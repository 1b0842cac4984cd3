"""What a run says before it asks: notices of what may surprise, and its cost for ``--dry-run``.

The cost is computed from cases and tokenizer, without loading weights.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ...evaluation.asks import Ask, Grade
from ...evaluation.case import Case, Part
from ...evaluation.engines.base import think
from ...evaluation.grading.grade import grade
from ...evaluation.grading.text import normalize
from ...evaluation.journal import ask_identity
from ...evaluation.options import in_question
from ...evaluation.protocols.asking import has_paraphrases, recommended
from ...evaluation.protocols.base import BARE, Protocol, about
from ...evaluation.protocols.presenting import REASONING
from ...probes.catalog import PROBES
from ...terminal import how_many, to_stderr
from ..config import Asking, Config, flag
from ..models.target import choose_prompting, loading_of, sources
from ..run.checks import role_group
from .ask_plan import AskPlan, LoadedBenchmark, ask_options, load_benchmark, plan_asks, prompt_lengths

_LONGEST, _SHOWN = 20, 3
_UNKNOWN = re.compile(r"\bX\b")
"""How a question stands for the answer of the question before it."""


def plan_lines(config: Config, benchmark: LoadedBenchmark | None = None) -> list[str]:
    """Asks (identical ones once), tokens, forward passes of the probes, and one prompt per role, as text.

    Later rounds depend on the answers, so asks are counted for a model that answers everything right and for one that
    answers everything wrong; of each round the last answer may then be right, which can lead to more asks. For a model
    that only a server has, asks are counted but tokens are not.
    """
    from transformers import AutoConfig

    from ...model_loading import load_tokenizer

    benchmark = benchmark or load_benchmark(config.benchmark, seed=config.seed, limit=config.limit)
    plan, loading = plan_asks(ask_options(config), benchmark, config.parsed_shard), loading_of(config)
    _, source = sources(loading, to_stderr)
    tokenizer = None if source is None else load_tokenizer(source.location)
    prompting = config.prompting or ("chat" if tokenizer is None else choose_prompting(None, tokenizer))
    plan = plan.for_model(prompting, tokenizer)
    right, wrong = (all_asks(plan.cases, plan.protocol, outcome) for outcome in ("correct", "incorrect"))
    late = all_asks(plan.cases, plan.protocol, "incorrect", last="correct")  # a control follows a scaffold that helps
    most = max((right, wrong, late), key=lambda asks: (len(asks), sum(len(a.prompt) for a in asks)))
    beyond = f", at most {len(most)}" if len(most) > max(len(right), len(wrong)) else ""
    lines = [
        f"cases: {len(plan.cases)} of {benchmark.name}, protocol {plan.protocol.name}"
        f"{protocol_reason(plan.protocol.name, benchmark)}, prompting {prompting}"
        + format_notice(plan.options.format, benchmark),
        *_case_notices(plan, config.limit),
        *_budget_notice(plan),
        f"asks: {len(right)} if all answers are right, {len(wrong)} if all are wrong{beyond} (identical asks once)",
    ]
    if source is None:
        lines.append(f"prompt characters: at most {sum(len(a.prompt) for a in most)}")
    else:
        lengths = prompt_lengths(tokenizer, most)
        prompt_tokens = sum(lengths)
        layers = AutoConfig.from_pretrained(source.location, trust_remote_code=False).get_text_config()
        lines.append(f"prompt tokens: at most {prompt_tokens}")
        lines += _room_notice(most, lengths, getattr(layers, "max_position_embeddings", None))
    response_tokens = sum(a.max_tokens for a in most)
    lines.append(f"response tokens: at most {response_tokens}")
    if source is not None:
        # A journalled answer consists of its prompt, both lists of token ids as numbers, and about 400 bytes more.
        size = sum(len(a.prompt.encode()) + 400 for a in most) + 6 * prompt_tokens + 10 * response_tokens
        roles = 1 + max(len(case.parts) for case in plan.cases)
        lines.append(f"journal: at most {size / 1e6:.1f} MB")
        lines += _probe_lines(config, len(plan.cases), roles, layers.num_hidden_layers)
    return lines + _example_prompts(right, tokenizer)


def _room_notice(asks: Sequence[Ask], lengths: Sequence[int], context: int | None) -> list[str]:
    """A line on prompts that the context cannot hold, and one on those that leave less room than the answer may take.

    An engine asks neither in another way: the first get no answer, and answers to the others are cut off earlier.
    """
    if context is None:
        return []
    rooms = [(context - length, ask) for ask, length in zip(asks, lengths, strict=True)]
    without = [(room, ask) for room, ask in rooms if room < 1]
    short = [(room, ask) for room, ask in rooms if 1 <= room < ask.max_tokens]
    lines = []
    cut = "longer answers are cut off; shorten the prompts, or lower --answer-tokens and --cot-tokens to what fits"
    for found, (what, fix) in (
        (without, ("no room to answer", "such answers are invalid; shorten them, or use another model")),
        (short, ("less room than the answer may take", cut)),
    ):
        if found:
            room, ask = min(found, key=lambda pair: pair[0])
            lines.append(
                f"warning: prompts that leave {what} in the context of {context} tokens: {len(found)} of {len(asks)} "
                f"(the longest: {context - room} tokens, case {ask.case!r}, role {ask.role!r}); {fix}"
            )
    return lines


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
    from ...evaluation.engines.text import chat_ids, verbatim

    [ids] = chat_ids(tokenizer, [ask.prompt], "the model", **({} if ask.thinking is None else think(ask.thinking)))
    return verbatim(tokenizer, ids)


def all_asks(cases: Sequence[Case], protocol: Protocol, outcome: Any, last: Any = None) -> list[Ask]:
    """Every ask of all rounds, if every grade were ``outcome``; those that a journal takes for one ask only once.

    With ``last``, the last grade of each round is that.
    """
    found: dict[str, Ask] = {}
    for case in cases:
        graded: dict[str, Grade] = {}
        for _ in range(_LONGEST):
            new = [ask for ask in protocol.asks(case, graded) if ask.role not in graded]
            if not new:
                break
            for ask in new:
                found.setdefault(ask_identity(ask, {}), ask)
            graded.update({ask.role: Grade(outcome, ask.gold) for ask in new})
            if last is not None:
                ends = {ask.role.startswith(BARE): ask for ask in new}  # with the preamble and without
                graded.update({ask.role: Grade(last, ask.gold) for ask in ends.values()})
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


def notices(plan: AskPlan, tokenizer: Any, limit: int | None = None) -> list[str]:
    """What a run says before it asks: how many cases, in which format, and what may surprise."""
    own = getattr(plan.protocol.protocol, "format", None)  # the protocol's default, if it has this option
    formatted = format_notice(plan.options.format, plan.benchmark, own if isinstance(own, str) else None)
    return [
        f"{how_many(len(plan.cases), 'case')} of {plan.benchmark.name}, protocol {plan.protocol.name}"
        f"{protocol_reason(plan.protocol.name, plan.benchmark)}{formatted}",
        *_case_notices(plan, limit),
        *_thinking_notice(plan, tokenizer),
        *_budget_notice(plan),
    ]


def _case_notices(plan: AskPlan, limit: int | None) -> list[str]:
    of_cases = (notice(plan.cases) for notice in (depth_notice, gold_notice, choice_notice))
    of_protocol = (notice(plan.cases, plan.protocol.name) for notice in (parts_notice, pair_notice))
    return [*limit_notice(plan.cases, limit), *chain(*of_protocol), *chain(*of_cases)]


def _thinking_notice(plan: AskPlan, tokenizer: Any) -> list[str]:
    """A notice if the chat template has a thinking switch that no flag sets, since such models often think first."""
    if tokenizer is None or plan.options.prompting == "raw":
        return []
    if all(ask.thinking is not None for ask in plan.protocol.asks(plan.cases[0], {})):
        return []
    from ...evaluation.engines.text import has_thinking_switch

    if not has_thinking_switch(tokenizer):
        return []
    return [
        "the chat template can switch thinking on or off, and no flag sets it; by default, thoughts count against the "
        "token budget of the answer, and a server ends the answer at a stop string in them; give --no-thinking, or "
        "--thinking (with its own budget, --thinking-tokens)"
    ]


def _budget_notice(plan: AskPlan) -> list[str]:
    """A line for each token budget that was given and that no ask of the plan has."""
    asking = plan.options.asking
    budgets = ("cot_tokens", "thinking_tokens")
    given = [name for name in budgets if getattr(asking, name) != Asking.model_fields[name].default]
    asks = all_asks(plan.cases, plan.protocol, "incorrect") if given else []
    used = {
        "cot_tokens": ("has the format cot or self-ask", any(a.format in REASONING for a in asks)),
        "thinking_tokens": ("is put with thinking", asking.may_think or any(a.thinking for a in asks)),
    }
    return [
        f"warning: {flag(n)} {getattr(asking, n)} changes nothing: no ask {used[n][0]}" for n in given if not used[n][1]
    ]


def parts_notice(cases: Sequence[Any], name: str) -> list[str]:
    """One line that says how many cases have no parts, which and why; empty if all have parts or none are needed."""
    bare = [c for c in cases if not c.parts]
    if not about(name).asks_parts or not bare:
        return []
    first = ", ".join(f"{c.id} ({c.meta.get('problem') or 'no reason given'})" for c in bare[:_SHOWN])
    more = ", ..." if len(bare) > _SHOWN else ""
    return [f"{len(bare)} of {len(cases)} cases have no parts and are not counted in any gate: {first}{more}"]


def pair_notice(cases: Sequence[Case], name: str) -> list[str]:
    """One line that says how many pairs have another gold answer than their Q2; the answer to both is Q2's."""
    pairs = [c for c in cases if len(c.parts) == 2] if name == "reasoning-gap" else []
    odd = [c for c in pairs if not any(_same(c, gold) for gold in _golds(c.parts[1]))]
    if not odd:
        return []
    first = ", ".join(f"{c.id} ({c.answer!r}, part 1: {c.parts[1].answer!r})" for c in odd[:_SHOWN])
    more = ", ..." if len(odd) > _SHOWN else ""
    return [f"warning: in {len(odd)} of {len(pairs)} pairs the answer is not that of Q2: {first}{more}; correct one"]


def _same(case: Case, answer: str) -> bool:
    return grade(answer, "stop", case.answer, case.answer_type, case.aliases, options=case.options).outcome == "correct"


def limit_notice(cases: Sequence[Case], limit: int | None) -> list[str]:
    """One line that says how many cases a limit makes; empty without one, and for cases of one family and depth."""
    strata = len({(c.family, c.depth) for c in cases})
    if limit is None or strata < 2:
        return []
    return [f"the limit is {limit} per family and depth; {strata} of these make {how_many(len(cases), 'case')}"]


def depth_notice(cases: Sequence[Case]) -> list[str]:
    """One line that names the cases whose depth is not the number of their parts; empty if there are none.

    Benchmarks with bins of depths count otherwise: a part of theirs is a fact, and a step compares two.
    """
    odd = [c for c in cases if c.parts and c.depth_bin is None and c.depth not in (None, len(c.parts))]
    if not odd:
        return []
    first = ", ".join(f"{c.id} (depth {c.depth}, parts: {len(c.parts)})" for c in odd[:_SHOWN])
    more = ", ..." if len(odd) > _SHOWN else ""
    return [
        f"warning: in {len(odd)} of {len(cases)} cases the depth is not the number of parts: {first}{more}; correct "
        "the field 'depth' or leave it out"
    ]


def gold_notice(cases: Sequence[Case]) -> list[str]:
    """One line that names the first question that has two gold answers, and how many there are; else empty.

    Of two such answers one is mostly a slip. Where cases give facts first, or a part that says what X is, a question
    may have another answer in each.
    """
    seen: dict[Any, tuple[str, Case | Part]] = {}
    other: dict[Any, str] = {}
    for case in cases:
        for role, asked in (("whole", case), *((f"part:{i}", part) for i, part in enumerate(case.parts))):
            first_parts = tuple(p.question for p in case.parts) if _UNKNOWN.search(asked.question) else ()
            key = (" ".join(asked.question.split()), first_parts, case.evidence, asked.options,
                   case.unknowable and asked is case)  # fmt: skip
            place, first = seen.setdefault(key, (f"case {case.id}, {role}", asked))
            if not _golds(first) & _golds(asked):
                other.setdefault(key, f"{asked.answer!r} (case {case.id}, {role})")
    if not other:
        return []
    key, second = next(iter(other.items()))
    place, first = seen[key]
    return [
        f"warning: {how_many(len(other), 'question')} with two gold answers: {first.question!r} has {first.answer!r} "
        f"({place}) and {second}; correct one, or give it the other's as an alias"
    ]


def _golds(asked: Case | Part) -> set[str]:
    return {normalize(answer) for answer in (asked.answer, *asked.aliases)}


def choice_notice(cases: Sequence[Case]) -> list[str]:
    """One line that names the choices whose options are known neither from the field nor from the question."""

    def known(case: Case, asked: Case | Part) -> bool:
        return bool(asked.answer_type != "choice" or asked.options or case.evidence or in_question(asked.question))

    blind = [f"{c.id}, whole" for c in cases if not known(c, c)]
    blind += [f"{c.id}, part:{i}" for c in cases for i, part in enumerate(c.parts) if not known(c, part)]
    if not blind:
        return []
    more = ", ..." if len(blind) > _SHOWN else ""
    return [
        f"warning: {how_many(len(blind), 'choice')} without options, of which the model may see none: "
        f"{'; '.join(blind[:_SHOWN])}{more}; add the field 'options'"
    ]


def protocol_reason(name: str, benchmark: LoadedBenchmark) -> str:
    """Why the benchmark is asked by this protocol, in brackets; empty for the usual one and for one that was chosen."""
    if name != benchmark.protocol:
        return ""
    if benchmark.name.startswith("organism:") or recommended(benchmark.cases, "protocol") == name:
        return " (the benchmark's own; --protocol changes it)"
    if name == "double-gate" and has_paraphrases(benchmark.cases):
        return " (some parts have paraphrases; --protocol changes it)"
    return ""


def format_notice(format: str | None, benchmark: LoadedBenchmark, own: str | None = None) -> str:
    """A phrase that says which prompt format is used and why; ``own`` is the protocol's own format, if it has one."""
    if format is None:
        return "" if own is None else f", prompt format {own} (the protocol's own; --format changes it)"
    recommended = benchmark.format
    if format == recommended:
        why = "the benchmark's own; --format changes it"
    elif benchmark.own and format == "short":
        why = "the gold answers are short; --format changes it"
    else:
        why = "--format"
    other = f"; the benchmark recommends {recommended}" if recommended not in (None, format) else ""
    return f", prompt format {format} ({why}{other})"
