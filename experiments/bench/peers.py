"""Ways to answer the same asks with the same model: ours, plain ``generate``, lm-evaluation-harness."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ...errors import ModelError
from ...evaluation.asks import Ask
from ...evaluation.engines.local import LocalEngine
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
        return _took(json.loads(reply), len(ids))

    def close(self) -> None:
        """End the process, which only waits for the next line."""
        try:
            self.process.communicate()
        except OSError:
            self.process.kill()
        self.said.close()


def _took(reply: dict[str, Any], n: int) -> Took:
    note = f"lm-eval {reply['versions']['lm_eval']}, transformers {reply['versions']['transformers']}"
    if reply["same_prompts"] < n:
        note += f"; {n - reply['same_prompts']} prompts tokenized differently"
    wall, processor = reply["took"]
    return Took(wall, processor, dict(enumerate(reply["texts"])), note)


@contextmanager
def harness(python: str | None, engine: LocalEngine, location: str, threads: int) -> Iterator[Harness | None]:
    """The harness, closed after use; None without an interpreter that has it."""
    if python is None:
        yield None
        return
    opened = Harness(python, engine, location, threads)
    try:
        yield opened
    finally:
        opened.close()
