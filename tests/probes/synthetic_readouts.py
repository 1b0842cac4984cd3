"""A model whose states are known to hold a name, or known not to, and wholes with their parts for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tiny_models import tiny
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from composcope.hooks import Model, load_model
from composcope.probes.examples import Example, Gold
from composcope.probes.slots import Slot

N = 30
NAME, SOURCE, FILLER = 3, 3 + N, 3 + 2 * N


def tokenizer() -> PreTrainedTokenizerFast:
    words = ["<pad>", "<s>", "</s>", *(f"n{i}" for i in range(N)), *(f"s{i}" for i in range(N)), "x", ":", "the", "of"]
    words += [f"f{i}" for i in range(97 - len(words))]
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="the"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>")


def planted(holds: Callable[[int], bool]) -> Model:
    """A model whose embedding of source i is the head's row of name i, for those that hold it; else at random."""
    model: Any = tiny("llama")
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for i in range(N):
            row = head[NAME + i] if holds(i) else torch.randn(head.shape[1], generator=generator)
            embedding[SOURCE + i] = 80 * row / row.norm()
    return load_model(model, tokenizer=tokenizer())


def examples(in_prompt: bool = False) -> list[Example]:
    """Wholes whose bridge is name i where the question says source i, and their first parts; every other one fails."""
    generator = torch.Generator().manual_seed(0)
    out = []
    for i in range(N):
        fill = torch.randint(FILLER + 4, 97, (6,), generator=generator).tolist()
        named = [NAME + (i + 7) % N] if in_prompt else []
        whole = (1, *fill[:2], SOURCE + i, *named, *fill[2:4])
        for role, ids, answer in (("whole", whole, (i + 1) % N), ("part:0", (1, fill[4], SOURCE + i, fill[5]), i)):
            gold = Gold(f"n{answer}", "text", "plain")
            said = (FILLER + 2, NAME + answer, 2)
            out.append(
                Example(
                    f"c{i}", role, "composition" if role == "whole" else "fact", ("failure", "success")[i % 2], ids,
                    said, (NAME + answer,), 0, (1, len(ids)), "family", 2, None, gold=gold, slot=Slot(1),
                )
            )  # fmt: skip
    return out
