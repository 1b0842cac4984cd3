"""The cost of asking: the transformers engine against plain ``generate`` and lm-evaluation-harness on the same asks.

All ways answer the same asks of one protocol with the same model in the same dtype; loading is not timed. The time
that journal and grading add per 10,000 asks is also measured.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ...errors import ModelError
from ...evaluation.asks import Ask, Response
from ...evaluation.case import Case
from ...evaluation.engines.base import BaseEngine
from ...evaluation.engines.local import LocalEngine
from ...evaluation.graded import Graded
from ...evaluation.journal import Journal, ask_identity
from ...evaluation.pipeline import evaluate
from ...evaluation.protocols.base import Reduction
from ...model_loading import load
from ...terminal import Bar, no_bar
from ..evaluating.ask_plan import AskOptions, load_benchmark, make_protocol
from ..evaluating.cost import all_asks
from ..models.resolve import resolve_model
from ..models.target import choose_prompting
from .timing import TaskBench, TaskTiming, Took, Way, in_rounds, machine, on_threads, timed, timings

HARNESS = "lm-evaluation-harness"
SIDE = Path(__file__).with_name("lm_eval_side.py")
INSTALL = (
    'python3 -m venv .venv-lm-eval && .venv-lm-eval/bin/pip install "lm-eval[hf]==0.4.13" torch==2.13.0 '
    "transformers==5.23.0, then give --lm-eval-python .venv-lm-eval/bin/python"
)


def ours(engine: LocalEngine, asks: Sequence[Ask]) -> dict[int, str]:
    index = {ask: i for i, ask in enumerate(asks)}
    return {index[ask]: response.text for ask, response in engine.answer(asks)}


def one_by_one(engine: LocalEngine) -> LocalEngine:
    """The same engine without its optimizations: nothing is shared, one ask at a time."""
    plain = LocalEngine(engine.model, engine.tokenizer, batch_size=1, continuous=False, folder=engine.folder)
    plain._identity = engine.identity
    return plain


@torch.inference_mode()
def generate(engine: LocalEngine, asks: Sequence[Ask], batch_size: int) -> dict[int, str]:
    """``model.generate`` as a user would call it: greedy, in the order of the asks, padded on the left in batches."""
    model, tokenizer = engine.model, engine.tokenizer
    ids = engine.prompt_ids(asks)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(engine.eos_ids)
    found: dict[int, str] = {}
    for start in range(0, len(ids), batch_size):
        chunk = range(start, min(start + batch_size, len(ids)))
        width = max(len(ids[i]) for i in chunk)
        tokens = torch.tensor([[pad] * (width - len(ids[i])) + list(ids[i]) for i in chunk], device=model.device)
        mask = torch.tensor([[0] * (width - len(ids[i])) + [1] * len(ids[i]) for i in chunk], device=model.device)
        stops = sorted({s for i in chunk for s in asks[i].stop})
        budget = max(asks[i].max_tokens for i in chunk)
        out = model.generate(
            tokens, attention_mask=mask, max_new_tokens=min(budget, (engine.context or width + budget) - width),
            do_sample=False, pad_token_id=pad, **({"stop_strings": stops, "tokenizer": tokenizer} if stops else {}),
        )  # fmt: skip
        for i, row in zip(chunk, out[:, width:].tolist(), strict=True):
            found[i] = tokenizer.decode(row[: asks[i].max_tokens], skip_special_tokens=True)
    return found


class Harness:
    """lm-evaluation-harness in its own interpreter, with the model loaded once: ``harness(asks, batch_size)``."""

    def __init__(self, python: str, engine: LocalEngine, location: str, threads: int) -> None:
        self.engine, self.about, self.python = engine, {"model": location, "threads": threads}, python
        self.said = tempfile.TemporaryFile("w+")
        try:
            self.process = subprocess.Popen(
                [python, str(SIDE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True
            )
        except OSError as e:
            raise ModelError(f"--lm-eval-python {python}: {e.strerror}; {INSTALL}") from e

    def __call__(self, asks: Sequence[Ask], batch_size: int | None) -> Took:
        """Raises ``ModelError`` with the last line of output if the other interpreter fails."""
        engine = self.engine
        ids = engine.prompt_ids(asks)
        job = {
            **self.about, "batch_size": batch_size, "device": str(engine.model.device),
            "dtype": str(engine.model.dtype).removeprefix("torch."),
            "prompts": [engine.tokenizer.decode(list(row)) for row in ids], "ids": [list(row) for row in ids],
            "budgets": [a.max_tokens for a in asks],
            "until": [engine.tokenizer.eos_token or "\n\n", *sorted({s for a in asks for s in a.stop})],
        }  # fmt: skip
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            reply = self.process.stdout.readline()
        except OSError:
            reply = ""
        if not reply:
            self.said.seek(0)
            said = (self.said.read().strip().splitlines() or ["it failed"])[-1][:200]
            raise ModelError(f"--lm-eval-python {self.python}: {said}; {INSTALL}")
        found = json.loads(reply)
        note = f"lm-eval {found['versions']['lm_eval']}, transformers {found['versions']['transformers']}"
        if found["same_prompts"] < len(ids):
            note += f"; {len(ids) - found['same_prompts']} prompts tokenized differently"
        wall, processor = found["took"]
        return Took(wall, processor, dict(enumerate(found["texts"])), note)

    def close(self) -> None:
        """End the process, which only waits for the next line."""
        try:
            self.process.communicate()
        except OSError:
            self.process.kill()
        self.said.close()


def harness(
    python: str | None, engine: LocalEngine, location: str, threads: int
) -> AbstractContextManager[Harness | None]:
    """The harness, closed after use; None without an interpreter that has it."""
    return nullcontext() if python is None else closing(Harness(python, engine, location, threads))


OVERHEAD_ASKS = 10_000


def bench_evaluation(
    model: str = "organism:control",
    benchmark: str = "organism:mixed",
    *,
    asks: int = 512,
    batch_size: int = 64,
    repeats: int = 3,
    threads: int = 1,
    device: str | None = None,
    dtype: str | None = None,
    lm_eval_python: str | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
    progress: Bar = no_bar,
) -> TaskBench:
    """Measure every way on the same ``asks`` asks, at its defaults and with batches of ``batch_size``."""
    with on_threads(threads):
        source = resolve_model(model)
        loaded, tokenizer = load(source.location, device=device, dtype=dtype)
        engine = LocalEngine(loaded, tokenizer, folder=source.location if source.is_folder else None)
        some, on_cpu = _asks(benchmark, tokenizer)[:asks], loaded.device.type == "cpu"
        about = machine(loaded.device.type, threads)
        with harness(lm_eval_python, engine, source.location, threads) as other:
            ways = _ways(engine, other, some, batch_size)
            rows = timings("asking", ways, in_rounds(ways, repeats, "asking", say, progress), on_cpu)
        if lm_eval_python is None:
            say(f"{HARNESS} is left out: {INSTALL}")
        say("journal and grading")
        lines = [*_ratios(rows, on_cpu), *_rates(rows, len(some)), overhead(some, engine)]
    return TaskBench(f"{model} on {benchmark} ({len(some)} asks)", about, rows, lines)


def _asks(benchmark: str, tokenizer: Any) -> list[Ask]:
    """The different asks of a benchmark, shuffled: its own order would put the short ones together."""
    found = load_benchmark(benchmark)
    protocol = make_protocol(AskOptions(found.protocol, found.format, choose_prompting(None, tokenizer)))
    asks = list({(a.prompt, a.prompting): a for a in all_asks(found.cases, protocol, "incorrect")}.values())
    random.Random(0).shuffle(asks)
    return asks


def _ways(engine: LocalEngine, harness: Harness | None, asks: Sequence[Ask], batch_size: int) -> list[Way]:
    """Ours, plain generate and the harness, each at its default and with the same batch size."""
    fixed = LocalEngine(engine.model, engine.tokenizer, batch_size=batch_size, folder=engine.folder)
    for each in (engine, fixed):
        assert each.identity and each.trust, "hashed and tried once, before the clock runs"
    ways = []
    for batch, size, mine in (("default", None, engine), (str(batch_size), batch_size, fixed)):
        note = "" if size else "one by one"
        ways.append(Way("composcope", partial(timed, partial(ours, mine, asks)), batch))
        ways.append(Way("model.generate", partial(timed, partial(generate, engine, asks, size or 1)), batch, note=note))
        if harness is not None:
            ways.append(Way(HARNESS, partial(harness, asks, size), batch))
    return ways


def _ratios(rows: Sequence[TaskTiming], on_cpu: bool) -> Iterator[str]:
    """How many times as fast we are as the better of the others, at defaults and at equal batch size."""
    how = "processor time" if on_cpu else "wall clock"
    for name, default in (("defaults", True), ("equal batch", False)):
        spent = [(r.processor if on_cpu else r.seconds) for r in rows if (r.batch == "default") == default]
        yield f"against the better of the others, {name}: {min(spent[1:]) / spent[0]:.2f} times as fast ({how})"


def _rates(rows: Sequence[TaskTiming], n: int) -> Iterator[str]:
    yield "asks/s: " + ", ".join(f"{r.way} ({r.batch}) {n / r.seconds:.1f}" for r in rows)


class _Replay(BaseEngine):
    """An engine that has all answers ready."""

    def __init__(self, engine: LocalEngine, answers: Sequence[Response]) -> None:
        self.identity = dict(engine.identity)
        self.provenance = dict(engine.provenance)
        self.answers = answers

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for i, ask in enumerate(asks):
            response = self.answers[i % len(self.answers)]
            yield ask, replace(response, ask=ask_identity(ask, self.identity))


@dataclass(frozen=True)
class _Wholes:
    """A protocol with one ask per case."""

    by_case: Mapping[str, Ask]
    name: str = "wholes"

    def asks(self, case: Case, graded: Mapping[str, Any]) -> list[Ask]:
        return [] if graded else [self.by_case[case.id]]

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        return Reduction(())


def overhead(asks: Sequence[Ask], engine: LocalEngine) -> str:
    """Time the evaluation loop over many different asks, with the model's own answers at hand."""
    n = OVERHEAD_ASKS
    some = list(asks[:256])
    given = dict(engine.answer(some))
    chosen = [replace(some[i % len(some)], case=str(i), role="whole", repeat=i // len(some)) for i in range(n)]
    cases = [Case(a.case, a.prompt, a.gold or "0", answer_type=a.answer_type) for a in chosen]
    protocol = _Wholes({a.case: a for a in chosen})
    replay = _Replay(engine, [given[a] for a in some])

    with tempfile.TemporaryDirectory() as folder:

        def run() -> dict[str, Any]:
            with Journal(folder) as journal:
                return {"graded": len(evaluate(cases, protocol, replay, journal).graded)}

        first, again = timed(run), timed(run)
        size = sum(p.stat().st_size for p in Path(folder).iterdir()) / 1e6
    return (
        f"journal and grading of {n} asks: {first.processor:.2f} s of processor ({first.wall:.2f} s of wall clock), "
        f"again from the journal {again.processor:.2f} s ({again.wall:.2f} s); {size:.1f} MB"
    )
