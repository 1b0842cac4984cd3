"""The part of the asking benchmark that runs under lm-evaluation-harness's own interpreter: ``python lm_eval_side.py``.

Reads one JSON object per line from stdin (model folder, prompts, token budgets, batch size, ...), answers the prompts
with ``generate_until`` of the harness, and writes one JSON object per line to stdout: seconds, texts and versions. The
model is loaded with the first object. Imports nothing from this package, which that interpreter does not have.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from importlib.metadata import version
from typing import Any


def load(job: dict[str, Any]) -> Any:
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(job["threads"])
    # The rendered prompts already contain their BOS.
    return importlib.import_module("lm_eval.models.huggingface").HFLM(
        pretrained=job["model"], dtype=job["dtype"], device=job["device"], add_bos_token=False
    )


def answer(model: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Seconds of wall clock and processor, the texts, and how many prompts had the ids that we fed."""
    instance: Any = importlib.import_module("lm_eval.api.instance").Instance
    model.batch_size_per_gpu = job["batch_size"] or 1  # its default
    requests = [
        instance(
            request_type="generate_until",
            doc={},
            arguments=(prompt, {"until": job["until"], "max_gen_toks": budget, "do_sample": False}),
            idx=i,
        )
        for i, (prompt, budget) in enumerate(zip(job["prompts"], job["budgets"], strict=True))
    ]
    wall, processor = time.perf_counter(), time.process_time()
    texts = model.generate_until(requests, disable_tqdm=True)
    took = time.perf_counter() - wall, time.process_time() - processor
    same = sum(
        list(model.tok_encode(p, add_special_tokens=False)) == ids
        for p, ids in zip(job["prompts"], job["ids"], strict=True)
    )
    versions = {name: version(name) for name in ("lm_eval", "transformers", "torch")}
    return {"took": took, "texts": texts, "same_prompts": same, "versions": versions}


if __name__ == "__main__":
    replies, model = sys.stdout, None
    with contextlib.redirect_stdout(sys.stderr):  # output of the libraries must not be taken for a reply
        for line in sys.stdin:
            job = json.loads(line)
            model = model or load(job)
            print(json.dumps(answer(model, job)), file=replies, flush=True)
