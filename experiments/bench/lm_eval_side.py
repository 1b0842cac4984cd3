"""The part of the asking benchmark that runs under lm-evaluation-harness's own interpreter: ``python lm_eval_side.py``.

Reads one JSON object from stdin (model folder, prompts, token budgets, batch size, ...), times its ``generate_until``
and writes one JSON object to the last line of stdout. Imports nothing of this package: that interpreter lacks it.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from importlib.metadata import version
from typing import Any


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Seconds of wall clock and processor for each pass, the texts, and how many prompts had the ids we fed."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(job["threads"])
    instance: Any = importlib.import_module("lm_eval.api.instance").Instance
    # The rendered prompts hold their BOS.
    model: Any = importlib.import_module("lm_eval.models.huggingface").HFLM(
        pretrained=job["model"], dtype=job["dtype"], device=job["device"], add_bos_token=False,
        **({} if job["batch_size"] is None else {"batch_size": job["batch_size"]}),
    )  # fmt: skip
    requests = [
        instance(
            request_type="generate_until",
            doc={},
            arguments=(prompt, {"until": job["until"], "max_gen_toks": budget, "do_sample": False}),
            idx=i,
        )
        for i, (prompt, budget) in enumerate(zip(job["prompts"], job["budgets"], strict=True))
    ]
    same = sum(
        list(model.tok_encode(p, add_special_tokens=False)) == ids
        for p, ids in zip(job["prompts"], job["ids"], strict=True)
    )
    passes = []
    texts: list[str] = []
    for _ in range(job["repeats"]):
        wall, processor = time.perf_counter(), time.process_time()
        texts = model.generate_until(requests, disable_tqdm=True)
        passes.append((time.perf_counter() - wall, time.process_time() - processor))
    versions = {name: version(name) for name in ("lm_eval", "transformers", "torch")}
    return {"passes": passes, "texts": texts, "same_prompts": same, "versions": versions}


if __name__ == "__main__":
    result = main(json.load(sys.stdin))
    print("\n" + json.dumps(result), flush=True)
