"""Ways to answer the same asks: the transformers engine, plain ``generate`` and lm-evaluation-harness.

All of them use the same model in the same dtype; loading is not timed. ``journal_and_grades`` is what an evaluation
adds to its engine.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
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
from ..evaluating.ask_plan import AskOptions, load_benchmark, make_protocol
from ..evaluating.cost import all_asks
from .timing import Took

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


class _Ready(BaseEngine):
    """An engine that has an answer to every ask."""

    def __init__(self) -> None:
        self.identity: dict[str, str] = {"weights": "none"}
        self.provenance: dict[str, Any] = {"engine": "ready"}

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in asks:
            yield ask, Response(ask_identity(ask, self.identity), f"The answer is {ask.gold}.", "stop", 20, 8)


@dataclass(frozen=True)
class _Wholes:
    """A protocol with one ask per case."""

    by_case: Mapping[str, Ask]
    name: str = "wholes"

    def asks(self, case: Case, graded: Mapping[str, Any]) -> list[Ask]:
        return [] if graded else [self.by_case[case.id]]

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        return Reduction(())


def journal_and_grades(n: int) -> Callable[[], dict[int, str]]:
    """The evaluation loop over ``n`` asks of the benchmark ``world``, with their answers at hand, ready to run."""
    found = load_benchmark("world", limit=8)
    protocol = make_protocol(AskOptions(found.protocol, found.format, "chat"))
    some = all_asks(found.cases, protocol, "incorrect")
    chosen = [replace(some[i % len(some)], case=str(i), role="whole", repeat=i // len(some)) for i in range(n)]
    cases = [Case(a.case, a.prompt, a.gold, answer_type=a.answer_type, options=a.options) for a in chosen]

    def run() -> dict[int, str]:
        with tempfile.TemporaryDirectory() as folder, Journal(folder) as journal:
            evaluate(cases, _Wholes({a.case: a for a in chosen}), _Ready(), journal)
        return {}

    return run
