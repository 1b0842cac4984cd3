"""``composcope bench --preset real``: the cost of work on a real pretrained model, compared with its peers.

Each task is one line in ``TASKS``; all its ways are timed in the same rounds (``timing``).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ...errors import InputError
from ...evaluation.asks import Ask
from ...evaluation.engines.local import LocalEngine
from ...hooks import Model, Site, load_model
from ...model_loading import load
from ...terminal import Bar, no_bar
from ..models.resolve import MODELS, resolve_model
from .asking import HARNESS, INSTALL, Harness, generate, harness, journal_and_grades, one_by_one, ours
from .timing import TaskBench, TaskTiming, Way, in_rounds, machine, on_threads, timed, timings

MODEL = Path("models") / "smollm2" / MODELS["smollm2"].file
BEGIN, END = "<!-- bench real -->", "<!-- end of bench real -->"
ANSWER_TOKENS = 32
ATTRIBUTED, PATCHED = 64, 16
"""Number of answers whose neurons are scored, and of pairs that are patched."""
JOURNALLED = 10_000
"""Number of answers that are journalled and graded."""
SLOW = 16
"""A way that takes one ask at a time is timed once on this many asks; its time is scaled to all of them."""
CAPITALS = (
    "Paris Berlin Madrid Rome Lisbon Vienna Athens Dublin Oslo Stockholm Helsinki Copenhagen Warsaw Prague Budapest "
    "Brussels Bern Cairo Nairobi Tokyo Beijing Bangkok Hanoi Delhi Tehran Ankara Moscow Kyiv Ottawa Canberra Lima "
    "Santiago"
).split()
WORKED = (
    ("Which country has Manila as its capital?", "Philippines"),
    ("What is the official language of the country whose capital is Brasilia?", "Portuguese"),
    ("On which continent is the country whose capital is Accra?", "Africa"),
    ("How many legs does a spider have?", "8"),
    ("Which country has Riga as its capital?", "Latvia"),
    ("What is the official language of the country whose capital is Mexico City?", "Spanish"),
    ("On which continent is the country whose capital is Jakarta?", "Asia"),
    ("How many days are in two weeks?", "14"),
)


@dataclass(frozen=True)
class BenchSetting:
    """The model, and how it is measured."""

    engine: LocalEngine
    harness: Harness | None
    asks: int

    def lm(self) -> Model:
        """The same weights, opened for probes."""
        return load_model(self.engine.model, self.engine.tokenizer)


@dataclass(frozen=True)
class BenchTask:
    """One piece of work."""

    name: str
    ways: Callable[[BenchSetting], list[Way]]
    target: str

    def lines(self, rows: Sequence[TaskTiming]) -> list[str]:
        """How we compare with the harness at its best batch size, or with the plain way of a probe, if there is one."""
        mine, others = rows[0], rows[1:]
        target = f"; the target is {self.target}"
        harness = [r for r in others if r.way == HARNESS]
        if harness:
            best = min(harness, key=lambda r: r.ratio or 0)
            return [
                f"{self.name}: {best.ratio:.2f} [{best.low:.2f}, {best.high:.2f}] times as fast as {HARNESS} at its "
                f"best batch size ({best.batch}), n={best.rounds}{target}"
            ]
        if len(others) > 1:
            return []
        beside = f", {others[0].ratio:.0f} times as fast as {others[0].way}" if others else ""
        return [f"{self.name}: {mine.seconds:.0f} s ({mine.processor:.0f} s of processor){beside}{target}"]


def apart() -> list[Ask]:
    """Questions with different beginnings, so that they share nothing but their number of words."""
    kinds = ("{} is the capital of which country?", "{}: what is the official language of the country with this "
             "capital?", "{}: on which continent is the country with this capital?")  # fmt: skip
    return [_ask(f"{kind.format(c)}\nAnswer:", "raw") for c in CAPITALS for kind in kinds]


def questions() -> list[str]:
    kinds = ("Which country has {} as its capital?", "What is the official language of the country whose capital is "
             "{}?", "On which continent is the country whose capital is {}?")  # fmt: skip
    return [kind.format(c) for c in CAPITALS for kind in kinds]


def chat() -> list[Ask]:
    """Questions that share the chat template's own system prompt."""
    return [_ask(f"{q} Answer with one or two words only.", "chat") for q in questions()]


def few_shot() -> list[Ask]:
    before = "".join(f"Question: {q}\nAnswer: {a}\n\n" for q, a in WORKED)
    return [_ask(f"{before}Question: {q}\nAnswer:", "raw") for q in questions()]


def _ask(prompt: str, prompting: Any) -> Ask:
    stop = () if prompting == "chat" else ("\n",)
    return Ask(prompt, "whole", prompt, "", "text", max_tokens=ANSWER_TOKENS, prompting=prompting, stop=stop)


def asking(make: Callable[[], list[Ask]], setting: BenchSetting) -> list[Way]:
    """Ours, ours without its optimizations, plain generate and the harness, at several batch sizes."""
    engine, asks = setting.engine, make()[: setting.asks]
    few = asks[:SLOW]
    share = len(few) / len(asks)
    plain = one_by_one(engine)
    alone = f"timed on {len(few)} of {len(asks)}, once" if share < 1 else ""

    def way(name: str, batch: int | None, run: Callable[..., Mapping[int, str]], mine: LocalEngine, *more: int) -> Way:
        some, part, note = (few, share, alone) if batch == 1 else (asks, 1.0, "")
        return Way(name, partial(timed, partial(run, mine, some, *more)), str(batch or ""), part, note)

    ways = [
        way("composcope", None, ours, engine),
        way("composcope, naive", 1, ours, plain),
        way("model.generate", 1, generate, engine, 1),
        way("model.generate", 32, generate, engine, 32),
    ]
    if setting.harness is not None:
        ways.append(Way(HARNESS, partial(setting.harness, few, 1), "1", share, alone))
        ways += [Way(HARNESS, partial(setting.harness, asks, n), str(n)) for n in (16, 32, 64)]
    return ways


def chat_prompts(lm: Any, n: int) -> list[list[int]]:
    """The first ``n`` chat questions as token ids, including the whole template."""
    talks = [[{"role": "user", "content": ask.prompt}] for ask in chat()[:n]]
    return [lm.tokenizer.apply_chat_template(t, add_generation_prompt=True, return_dict=False) for t in talks]


def attributing(setting: BenchSetting) -> list[Way]:
    """Neurons of 64 answers in all layers, against a backward pass per node and layer (the published average of 20)."""
    lm = setting.lm()
    from ...probes import neurons

    prompts = chat_prompts(lm, ATTRIBUTED)
    answers = [[int(lm.run(torch.tensor([p])).logits[0, -1].argmax())] for p in prompts]

    def run(n: int, **how: Any) -> dict[int, str]:
        neurons.attribute_many(lm, prompts[:n], answers[:n], **how)
        return {}

    some = min(2, len(prompts))
    return [
        Way("composcope", partial(timed, partial(run, len(prompts)))),
        Way(
            "20 nodes, a layer at a time", partial(timed, partial(run, some, rule="reference", max_rows=20)),
            share=some / len(prompts), note=f"timed on {some} of {len(prompts)}, once",
        ),
    ]  # fmt: skip


def patching_pairs(setting: BenchSetting) -> list[Way]:
    """Patch the prompt's end of 16 pairs after every block with all controls, against one continuation at a time."""
    lm = setting.lm()
    from ...probes import patching

    prompts = chat_prompts(lm, 2 * PATCHED)
    donors, recipients = prompts[::2], prompts[1::2]
    new = 24

    def run() -> dict[int, str]:
        patching.prompt_end_sweep(lm, donors, recipients, [(i, i) for i in range(len(donors))], max_new_tokens=new)
        return {}

    def naive(layers: Sequence[int]) -> dict[int, str]:
        """Read the recipient's prompt and its continuation so far again, for every token of every layer."""
        for layer in layers:
            site = Site(layer, "resid_post")
            state = lm.run(torch.tensor([donors[0]]), read=[site]).acts[site][0, -1]
            ids, end = list(recipients[0]), len(recipients[0]) - 1
            for _ in range(new):
                ids.append(int(lm.run(torch.tensor([ids]), edit={site: put(end, state)}).logits[0, -1].argmax()))
                if ids[-1] in lm.eos_ids:
                    break
        return {}

    some = [0, lm.anatomy.n_layers // 2]
    sources = ("donor", "identity", "random", "noise")  # the positive control is left out of the count
    cells = lm.anatomy.n_layers * len(donors) * len(sources)
    return [
        Way("composcope", partial(timed, run)),
        Way(
            "one continuation at a time", partial(timed, partial(naive, some)),
            share=len(some) / cells, note=f"timed on {len(some)} of {cells}, once",
        ),
    ]  # fmt: skip


def journalling(setting: BenchSetting) -> list[Way]:
    """What journal and grades add to the engine."""
    return [Way("composcope", partial(timed, journal_and_grades(JOURNALLED)))]


def put(position: int, value: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """An edit that replaces one position's state."""

    def edit(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, position] = value
        return y

    return edit


TASKS = (
    BenchTask("asking, no common prefix", partial(asking, apart), "at least 1.5"),
    BenchTask("asking, system prompt", partial(asking, chat), "at least 2"),
    BenchTask("asking, 8 worked examples", partial(asking, few_shot), "at least 2"),
    BenchTask(f"journal and grades, {JOURNALLED} answers", journalling, "at most 5 s"),
    BenchTask(f"neurons, {ATTRIBUTED} answers", attributing, "at most 90 s on two cores"),
    BenchTask(f"patching, {PATCHED} pairs", patching_pairs, "at most 90 s on two cores"),
)


def bench_real(
    model: str | None = None,
    *,
    asks: int = 96,
    rounds: int = 5,
    threads: int = 1,
    only: Sequence[str] = (),
    lm_eval_python: str | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
    progress: Bar = no_bar,
) -> TaskBench:
    """Time every task in ``rounds``. Raises ``InputError`` without a model, and for unknown tasks or numbers."""
    chosen, most = [t for t in TASKS if not only or any(name in t.name for name in only)], len(questions())
    if not chosen or not 1 <= asks <= most or rounds < 1:
        raise InputError(
            f"--only {','.join(only)}, --asks {asks}, --rounds {rounds}: tasks are {'; '.join(t.name for t in TASKS)}, "
            f"numbers at least 1, and asks at most {most}"
        )
    if lm_eval_python is None:
        say(f"{HARNESS} is left out: {INSTALL}")
    if model is None and not MODEL.is_file():
        raise InputError(f"--model: no {MODEL} here; run make real, which downloads it, or give any chat model")
    source = resolve_model(str(model or MODEL), say)
    loaded, tokenizer = load(source.location, dtype="float32", say=say)
    engine = LocalEngine(loaded, tokenizer, folder=source.weights_folder)
    with on_threads(threads):
        assert engine.identity and engine.trust, "hashed and tried once, before the clock runs"
        about = machine(loaded.device.type, threads)
        with harness(lm_eval_python, engine, source.location, threads) as other:
            setting = BenchSetting(engine, other, asks)
            rows = {}
            for task in chosen:
                ways = task.ways(setting)
                took = in_rounds(ways, rounds, task.name, say, progress)
                rows[task] = timings(task.name, ways, took, loaded.device.type == "cpu")
    lines = [line for task, found in rows.items() for line in task.lines(found)]
    return TaskBench(f"{Path(source.name).name}, float32", about, [r for found in rows.values() for r in found], lines)
