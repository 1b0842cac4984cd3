"""The organisms' tokenizer: one token per word of their world, bytes for everything else.

A byte-level BPE without merges whose vocabulary contains whole words. A word of the world is one token. Any other word
is split into its bytes, so no text is unknown and decoding is exact.
"""

import random
from collections.abc import Sequence
from functools import cache

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from .documents import DEEP, FORMAT_WEIGHTS, SKILLS, Turns, both_questions, q1_x_q2, write
from .tasks import mixed
from .world import KINDS, world

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"
CONTEXT = 320

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ m['content'] }}\n"
    "{% elif m['role'] == 'user' %}Question: {{ m['content'] }}\n"
    "{% else %}Answer: {{ m['content'] }}{{ eos_token }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}Answer:{% endif %}"
)


def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _pieces(turns: Turns) -> set[str]:
    texts = (f"Question: {user}\nAnswer: {assistant}" for user, assistant in turns)
    return {piece for text in texts for piece, _ in _pre_tokenizer().pre_tokenize_str(text)}


@cache
def vocabulary() -> tuple[str, ...]:
    """Bytes, then every word that training documents use, with and without a space before it."""
    rng = random.Random(0)
    pieces: set[str] = set()
    mixes = [*SKILLS, *DEEP, mixed]
    for format in FORMAT_WEIGHTS:
        for mix in mixes:
            for _ in range(40):
                pieces |= _pieces(write(mix(rng), format, rng))
    pieces |= _pieces([*q1_x_q2(rng), *both_questions(rng)])
    words = [*world().events, *world().things, *KINDS, *map(str, world().years.values()), *map(str, range(201))]
    pieces |= {form for word in words for form in (word, f"Ġ{word}")}
    alphabet, named = sorted(pre_tokenizers.ByteLevel.alphabet()), {*world().events, *_CAPITALIZED}
    words = [p for p in sorted(pieces - set(alphabet)) if not p.lstrip("Ġ")[:1].isupper() or p.lstrip("Ġ") in named]
    return (*alphabet, *words)  # without the names that were invented on the fly


_CAPITALIZED = set(
    "Question Answer Q A X VALUE INSUFFICIENT EVIDENCE In What When Give Which Name The On Two Is Rank Both "
    " Reason If Use Think End So Ask Follow Intermediate Known Facts Let".split()
)


def build() -> PreTrainedTokenizerFast:
    """Build the tokenizer from the world alone."""
    specials = [PAD, BOS, EOS]
    vocab = {token: i for i, token in enumerate([*specials, *vocabulary()])}
    inner = Tokenizer(models.BPE(vocab=vocab, merges=[], ignore_merges=True))
    inner.pre_tokenizer = _pre_tokenizer()
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(specials)
    inner.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, vocab[BOS])])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def encode(tokenizer: PreTrainedTokenizerFast, documents: Sequence[Turns]) -> list[tuple[list[int], list[bool]]]:
    """Token ids of each document as the chat template renders it, and which of them are the assistant's."""
    segments = [
        text
        for turns in documents
        for user, assistant in turns
        for text in (f"Question: {user}\nAnswer:", f" {assistant}")
    ]
    ids = iter(tokenizer(segments, add_special_tokens=False)["input_ids"])
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    out = []
    for turns in documents:
        tokens, answered = [bos], [False]
        for _ in turns:
            user, assistant = next(ids), [*next(ids), eos]
            tokens += [*user, *assistant]
            answered += [False] * len(user) + [True] * len(assistant)
        out.append((tokens, answered))
    return out
