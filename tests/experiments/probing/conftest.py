"""A tiny model with a tokenizer of its own, and labelled examples of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tiny_models import tiny
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from composcope.hooks import load_model
from composcope.probes.examples import Example


def words_tokenizer() -> PreTrainedTokenizerFast:
    """One word a token: ``w0`` to ``w96``."""
    vocabulary = {f"w{i}": i for i in range(97)}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw)


@pytest.fixture(scope="session")
def bytes_tokenizer() -> PreTrainedTokenizerFast:
    """One byte a token, so that most characters outside ASCII are spread over several."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=raw)


@pytest.fixture(scope="session")
def tiny_lm() -> Callable[[str], Any]:
    """A hooked tiny model of an architecture, with the tokenizer of words."""
    return lambda name: load_model(tiny(name), words_tokenizer())


@pytest.fixture(scope="session")
def labelled() -> list[Example]:
    """Three failures and three successes with a whole and a part each; the first pair has prompts of one length."""
    rng = np.random.default_rng(3)
    out = []
    for i, (group, size) in enumerate([("failure", 12), ("success", 12), ("failure", 14), ("success", 13),
                                       ("failure", 11), ("success", 11)]):  # fmt: skip
        for role, kind in (("whole", "composition"), ("part:0", "math")):
            ids = [tuple(rng.integers(3, 97, n).tolist()) for n in (size, 5)]
            prompt = (*ids[0][:-2], 95, 96)  # all end alike, as a template makes them
            out.append(Example(f"c{i}", role, kind, group, prompt, ids[1], (3 + i, 40), 2, (3, size - 2), "f", 2))
    return out
