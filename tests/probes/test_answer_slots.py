"""Answer slots: the exact token that begins an answer, what is scored there, and examples read there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AddedToken, PreTrainedTokenizerFast

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.asks import Ask, Outcome, Response
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.engines.text import decode, special_thinking_marks
from composcope.evaluation.grading.extract import CODE
from composcope.evaluation.protocols.base import CaseSet, Entry, Evidence
from composcope.probes import from_case_sets
from composcope.probes.examples import Example
from composcope.probes.matching import check_templates, token_before
from composcope.probes.positions import collisions, preceding_row, read_at
from composcope.probes.slots import AT_ONCE, Exchange, Slot, continued, in_worked_form, locate, token_span

SPECIAL = ["<s>", "</s>", "<think>", "</think>", "<|user|>", "<|assistant|>"]
TEXTS = [
    "The capital of the country is Paris.",
    "It is Lima, 1,250 km away.",
    "São Paulo, 東京 und Zürich 🎈",
    "7 + 5 = 12",
]
TEMPLATE = (
    "{% for m in messages %}<|user|>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def _byte_level() -> Tokenizer:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    inner.train_from_iterator(TEXTS * 3, trainer)
    return inner


def _sentence_piece() -> Tokenizer:
    """As Llama 2 and Gemma write: words with a mark before them, digits one by one, bytes for what is not known."""
    learned = Tokenizer(models.BPE())
    learned.normalizer = normalizers.Replace(" ", "▁")
    learned.pre_tokenizer = pre_tokenizers.Split(Regex(r"▁?[^▁\d]+|▁|\d"), "isolated")
    learned.train_from_iterator(TEXTS * 3, trainers.BpeTrainer(vocab_size=120, limit_alphabet=40))
    model = json.loads(learned.to_str())["model"]
    names = ["<unk>", *SPECIAL, *(f"<0x{i:02X}>" for i in range(256)), *model["vocab"]]
    merges = [tuple(m) for m in model["merges"]]
    vocab = {name: i for i, name in enumerate(names)}
    inner = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    inner.normalizer, inner.pre_tokenizer = learned.normalizer, learned.pre_tokenizer
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    inner.add_special_tokens(SPECIAL)
    return inner


def _fast(inner: Tokenizer) -> PreTrainedTokenizerFast:
    made = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    made.add_special_tokens({"additional_special_tokens": [*(AddedToken(t, special=True) for t in SPECIAL[2:])]})
    made.chat_template = TEMPLATE
    return made


@pytest.fixture(scope="module", params=[_byte_level, _sentence_piece], ids=["byte level", "sentence piece"])
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    make: Callable[[], Tokenizer] = request.param
    return _fast(make())


def literal(prefixes: list[str], whole: str, character: int) -> int:
    """The token of a character, given the text of every prefix there is."""
    return max(n for n, text in enumerate(prefixes) if whole.startswith(text) and len(text) <= character)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.sampled_from([*TEXTS, " ", "é", "東", "🎈", "<think>", "</think>", "<s>", "x" * 30]), min_size=1, max_size=8
    )
)
@pytest.mark.parametrize("make", [_byte_level, _sentence_piece])
def test_the_token_of_every_character_is_found_exactly(make: Callable[[], Tokenizer], pieces: list[str]) -> None:
    tokenizer = _made(make)
    ids = list(tokenizer("".join(pieces), add_special_tokens=False).input_ids)
    kept = special_thinking_marks(tokenizer)
    *prefixes, whole = [decode(tokenizer, ids[:n], (), kept) for n in range(len(ids) + 1)]
    for start in range(len(whole)):
        found = token_span(tokenizer, ids, (start, len(whole)), kept)
        assert found is not None and found.first == literal(prefixes, whole, start)
        assert decode(tokenizer, ids[: found.first], (), kept) == whole[: found.characters]
        one = token_span(tokenizer, ids, (start, start + 1), kept)
        assert one is not None and one.first == found.first
        through = next(n for n, text in enumerate([*prefixes, whole]) if text.startswith(whole[: start + 1]))
        assert one.end == max(through, one.first + 1), "through its last byte, and no further"
    assert token_span(tokenizer, ids, (len(whole), len(whole) + 1), kept) is None


_MADE: dict[Any, PreTrainedTokenizerFast] = {}


def _made(make: Callable[[], Tokenizer]) -> PreTrainedTokenizerFast:
    return _MADE.setdefault(make, _fast(make()))


def _example(
    tokenizer: Any, said: str, gold: str, *, question: str = "What is the capital?", worked: str | None = None,
    answer_type: str = "text", evidence: tuple[Evidence, ...] = (), label: str = "failure",
    prompting: Any = "chat", aliases: tuple[str, ...] = (), format: str = "plain",
) -> Example:  # fmt: skip
    case = Case("c", question, gold, (Part("?", "x"),), answer_type=answer_type, worked=worked, aliases=aliases)
    ask = Ask("c", "whole", question, gold, answer_type, format, prompting=prompting, aliases=aliases)
    talk = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(talk, add_generation_prompt=True, tokenize=False)
    text = prompt if prompting == "chat" else question
    prompt_ids = tuple(tokenizer(text, add_special_tokens=prompting == "raw").input_ids)
    full = tokenizer(text + said, add_special_tokens=prompting == "raw").input_ids
    response_ids = (*full[len(prompt_ids) :], tokenizer.eos_token_id)
    shown = decode(tokenizer, response_ids, (tokenizer.eos_token_id,), special_thinking_marks(tokenizer))
    response = Response("k", shown, "stop", len(prompt_ids), len(response_ids), prompt_ids, response_ids)
    sets = [CaseSet("s", label, (Entry("c", evidence),))]
    return from_case_sets(tokenizer, [case], {"k": ask}, {"k": response}, sets, roles=["whole"])[0]


def _read(tokenizer: Any, e: Example) -> tuple[str, str, str]:
    """The end of what has been read, what follows, and what is scored."""
    (moved,) = read_at([e]).examples
    rest = tokenizer.decode(list(moved.response_ids), skip_special_tokens=True)
    return tokenizer.decode(list(moved.prompt_ids))[-12:], rest, tokenizer.decode(list(moved.answer_ids))


@pytest.mark.parametrize(
    ("said", "gold", "before", "rest", "scored"),
    [
        ("The capital of the country is Paris.", "Paris", "country is", " Paris.", " Paris"),
        ("The capital of the country is Zürich.", "Lima", "country is", " Zürich.", " Lima"),
        ("<think>it is Lima</think>The capital is Paris.", "Paris", "capital is", " Paris.", " Paris"),
        ("It is 東京.", "東京", "It is", " 東京.", " 東京"),
        ("It is **Paris**, of course.", "Lima", "It is **", "Paris**, of course.", "Lima"),
    ],
)
def test_a_slot_follows_the_response_up_to_its_answer(
    tokenizer: Any, said: str, gold: str, before: str, rest: str, scored: str
) -> None:
    e = _example(tokenizer, said, gold)
    assert e.slot is not None and e.slot.offset > 0
    end, following, answer = _read(tokenizer, e)
    assert (
        end.strip().endswith(before)
        and following.strip() == rest.strip()
        and answer.strip().rstrip(".") == scored.strip()
    )
    (moved,) = read_at([e]).examples
    assert (*moved.prompt_ids, *moved.response_ids) == (*e.prompt_ids, *e.response_ids)
    assert moved.cue_tokens - moved.begun == e.cue_tokens and moved.begun == len(moved.prompt_ids) - len(e.prompt_ids)


def test_a_right_answer_is_scored_as_it_was_written(tokenizer: Any) -> None:
    e = _example(tokenizer, "It is Zürich.", "Turicum", aliases=("zürich",), label="success")
    (moved,) = read_at([e]).examples
    assert moved.answer_ids == moved.response_ids[: len(moved.answer_ids)]
    assert tokenizer.decode(list(moved.answer_ids)).strip().rstrip(".") == "Zürich"
    e = _example(tokenizer, "Lima uses the sol in its shops.", "Callao", aliases=("lima",), label="success")
    assert e.slot is not None and tokenizer.decode(list(e.slot.answer_ids or ())).strip() == "Lima"


def test_a_negative_answer_begins_with_its_sign(tokenizer: Any) -> None:
    for said, gold, scored in (
        ("10 - 17 = -7", "-7", "-7"),
        ("10 - 17 = -7", "-5", "-5"),
        ("It is −7 now", "-5", "-5"),
    ):
        end, rest, answer = _read(tokenizer, _example(tokenizer, said, gold, answer_type="number"))
        assert end.rstrip()[-1] in "=s" and rest.strip()[0] in "-−" and answer.strip() == scored


def test_what_was_graded_says_what_the_answer_is(tokenizer: Any) -> None:
    said = "It is Paris or Lima."
    for answer, before in (("Lima", "Paris or"), ("Paris", "It is")):
        e = _example(tokenizer, said, "Zürich", evidence=(Evidence("whole", "incorrect", answer, "Zürich", "k"),))
        assert _read(tokenizer, e)[0].strip().endswith(before)
    kept: list[tuple[Outcome, str | None]] = [
        ("invalid", "Lima"), ("correct", None), ("incorrect", None), ("abstained", None)
    ]  # fmt: skip
    for outcome, answer in kept:
        e = _example(tokenizer, said, "Lima", evidence=(Evidence("whole", outcome, answer, "Lima", "k"),))
        assert (e.slot is not None) == (outcome == "correct"), "only a right answer is the gold one where none was kept"
    for format in ("plain", CODE):
        told = (Evidence("whole", "correct", "12", "12", "k"),)
        e = _example(tokenizer, "7 + 5 = 12", "12", answer_type="number", evidence=told, format=format)
        assert (e.slot is None) == (format == CODE), "a program computes its answer and does not say it"


@pytest.mark.parametrize(
    ("said", "worked", "at_once"),
    [
        ("7 + 5 = 12", "7 + 5 = 12", True),
        ("7 + 8 = 15", "7 + 5 = 12", True),
        ("We add 7 + 5 = 12 here.", "7 + 5 = 12", False),
        ("7", "7 + 5 = 12", True),
    ],
)
def test_a_worked_answer_begins_where_its_working_begins(tokenizer: Any, said: str, worked: str, at_once: bool) -> None:
    e = _example(tokenizer, said, "12", worked=worked, answer_type="number", question="What is 7 + 5?")
    assert (e.slot == AT_ONCE) == at_once
    moved = read_at([e]).examples[0]
    if at_once:
        assert moved == read_at([e], "prompt-end").examples[0] and moved.answer_ids == e.answer_ids
    else:
        assert tokenizer.decode(list(moved.answer_ids)).strip() == "12"


@pytest.mark.parametrize(
    ("worked", "said", "same"),
    [("7 times 9 is 63", "7 times 4 is 28", True), ("7 times 9 is 63", "9 times 7 is 63.", True),
     ("7 times 9 is 63", "63", False), ("7 times 9 is 63", "The answer is 63", False),
     ("Lima is 3 km away", "lima is 9 km away", True), ("So 3 + 4", "so 9 - 2", True), ("So 3 + 4", "so 9", False),
     ("So 3", "Now 3", False), ("So 3 is it", "so 4 was not", True), ("So b 1", "so c 2", True), ("", "", True)],
)  # fmt: skip
def test_worked_forms_begin_alike_and_have_as_many_numbers(worked: str, said: str, same: bool) -> None:
    assert in_worked_form(worked, said) == same


def _bare(case: str, **fields: Any) -> Example:
    base = Example(case, "whole", "composition", "failure", (9, 8, 7), (4, 5, 6, 2), (5,), 2, (0, 1))
    return replace(base, **fields)


def test_what_cannot_be_located_is_left_out_counted_and_said() -> None:
    cases = [_bare("a", slot=Slot(1, (6,))), _bare("b", slot=None), _bare("c")]
    slot, end = read_at(cases), read_at(cases, "prompt-end")
    assert [e.case for e in slot.examples] == ["a", "c"] and [e.case for e in end.examples] == ["a", "b", "c"]
    assert (slot.examples[0].prompt_ids, slot.examples[0].answer_ids) == ((9, 8, 7, 4), (6,))
    assert slot.settings["without_slot"] == 1 and "'b'" in slot.warnings[0]
    assert "coincide in 1 of 2" in slot.note and slot.settings["position"] == "answer-slot"
    assert list(end.examples) == cases
    with pytest.raises(NoCasesError, match="none of 1 responses"):
        read_at([_bare("b", slot=None)])
    with pytest.raises(InputError, match="answer-slot or prompt-end"):
        read_at(cases, "middle")  # type: ignore[arg-type]


def test_a_first_token_of_white_space_is_never_scored() -> None:
    cases = [_bare("a", answer_ids=(4, 5), separators=1), _bare("b", answer_ids=(3, 3, 5), separators=2), _bare("c")]
    for position in ("answer-slot", "prompt-end"):
        found = read_at(cases, position)  # type: ignore[arg-type]
        assert [e.answer_ids for e in found.examples] == [(5,)] * 3
        assert [e.prompt_ids for e in found.examples] == [(9, 8, 7, 4), (9, 8, 7, 3, 3), (9, 8, 7)]
        assert [e.response_ids for e in found.examples] == [(5, 6, 2), (4, 5, 6, 2), (4, 5, 6, 2)]
        assert found.settings["separators_skipped"] == 2 and "white space" in found.warnings[0]
        again = read_at(found.examples, found.settings["position"])
        assert again.examples == found.examples and again.settings["separators_skipped"] == 0


def test_white_space_before_a_gold_answer_that_is_put_at_a_slot_is_not_scored(tokenizer: Any) -> None:
    e = _example(tokenizer, "It is Paris.", "2 Unlimited")
    right = replace(e, slot=Slot(1, e.response_ids[1:2]), separators=1)
    found = read_at([e, right])
    [moved, other] = found.examples
    assert tokenizer.decode([moved.answer_ids[0]]) == "2" and moved.response_ids == e.response_ids[moved.begun - 1 :]
    assert tokenizer.decode(list(moved.prompt_ids)).endswith("It is ") and moved.separators == 0
    assert other.answer_ids == right.response_ids[1:2] and found.settings["separators_skipped"] == 1


def test_the_token_before_a_slot_stays_the_same_where_white_space_before_the_response_moves_into_the_prompt() -> None:
    spaced = partial(_bare, answer_ids=(4, 9), separators=1, slot=Slot(2, (6,)))
    cases = [spaced("a"), spaced("b", response_ids=(7, 5, 6, 2)), spaced("c", slot=Slot(0)), spaced("d", slot=None)]
    moved = read_at(cases, "prompt-end").examples
    assert [token_before(e) for e in moved] == [5, 5, 4, 4] and moved[3].slot is None
    assert [token_before(e) for e in cases[:2]] == [5, 5]


def test_white_space_before_a_number_is_a_separator(tokenizer: Any) -> None:
    e = _example(tokenizer, " 12", "12", answer_type="number", prompting="raw", question="7 + 5 =", worked="12")
    text = [tokenizer.decode([i]) for i in e.answer_ids]
    assert e.separators == sum(not t.strip() for t in text[: e.separators + 1])
    (moved,) = read_at([e], "prompt-end").examples
    assert tokenizer.decode([moved.answer_ids[0]]).strip()


def test_templates_are_compared_without_what_has_been_read() -> None:
    cases = read_at([_bare("a", slot=Slot(1, (6,))), _bare("b", slot=Slot(2, (6,))), _bare("c")]).examples
    notes: list[str] = []
    check_templates(cases, notes)
    assert "3 different tokens" in notes[0]
    with pytest.raises(InputError, match="different templates"):
        check_templates([*cases, _bare("d", prompt_ids=(9, 1, 1), cue_tokens=2)])


_short = partial(_bare, prompt_ids=(1, 2), response_ids=(3, 4, 5), answer_ids=(4,), cue_tokens=1, slot=Slot(1))


def test_examples_move_to_their_slot_or_stay_at_the_end() -> None:
    a = _short("a", slot=Slot(2, (7, 8)))
    b = _short("b", slot=Slot(0, (4,)))
    lost = _short("c", slot=None)
    spaced = _short("d", slot=Slot(1), answer_ids=(4, 6), separators=1)
    found = read_at([a, b, lost, spaced])
    assert [(e.case, e.prompt_ids, e.response_ids, e.answer_ids, e.begun, e.cue_tokens) for e in found.examples] == [
        ("a", (1, 2, 3, 4), (5,), (7, 8), 2, 3), ("b", (1, 2), (3, 4, 5), (4,), 0, 1),
        ("d", (1, 2, 3, 4), (5,), (6,), 2, 3)]  # fmt: skip
    assert found.settings == {
        "position": "answer-slot",
        "coincide": "1 of 3 responses",
        "without_slot": 1,
        "separators_skipped": 1,
    }
    assert any("1 of 4 responses" in w and "'c'" in w for w in found.warnings)
    end = read_at([a, b, lost, spaced], "prompt-end")
    assert [e.prompt_ids for e in end.examples] == [(1, 2), (1, 2), (1, 2), (1, 2, 4)] and len(end.warnings) == 2
    assert end.examples[3].response_ids == (3, 4, 5), "what it did not begin with stays"
    with pytest.raises(NoCasesError, match="none of 1"):
        read_at([lost])
    with pytest.raises(InputError, match="position 'slot'"):
        read_at([a], "slot")  # type: ignore[arg-type]


def test_pairs_read_after_different_tokens_and_answers_that_begin_alike_are_counted() -> None:
    examples = [_short(c, prompt_ids=(1, t)) for c, t in zip("abcd", (5, 5, 6, 7), strict=True)]
    examples.append(_short("a", role="part:0", prompt_ids=(1, 9)))
    [row] = preceding_row(examples, [("a", "b"), ("c", "d"), ("a", "c"), ("a", "x")])
    assert (row["quantity"], row["count"], row["n"], row["value"]) == ("preceding_token_differs", 2, 3, 2 / 3)
    assert preceding_row(examples, [("x", "y")]) == [] == preceding_row(examples, [])
    assert collisions([((1, 2), (1, 3)), ((1, 2), (1, 2)), ((1,), (1,)), ((1,), (2,)), ((1,), (1, 4))]) == 2


@pytest.mark.parametrize("sharing", ["fs", "f", "s"])
@pytest.mark.parametrize(("families", "known"), [("aabbcc", False), ("aabbccddee", True)])
def test_pairs_within_families_share_them_where_it_is_counted_after_which_token_they_are_read(
    families: str, known: bool, sharing: str
) -> None:
    examples = [_short(f"{side}{i}", cluster=f if side in sharing else None)
                for side in "fs" for i, f in enumerate(families)]  # fmt: skip
    [row] = preceding_row(examples, [(f"f{i}", f"s{i}") for i in range(len(families))])
    high = 1 - 0.025 ** (1 / 5) if known else math.nan
    assert (row["value"], row["high"]) == (0, pytest.approx(high, nan_ok=True))


def test_a_gold_answer_that_cannot_be_written_in_tokens_has_no_slot(tokenizer: Any) -> None:
    def encode(text: str) -> tuple[int, ...]:
        return tuple(tokenizer(text, add_special_tokens=False).input_ids)

    ids = encode("The capital is Paris.")
    response = Response("k", decode(tokenizer, ids, ()), "stop", 0, len(ids), (), ids)
    asked, said = Exchange(Ask("c", "whole", "?", "Lima", "text", "plain"), response, "", "?"), ("incorrect", "Paris")
    slot = locate(tokenizer, encode, asked, said)
    assert slot is not None and tokenizer.decode(list(slot.answer_ids or ())).strip() == "Lima"
    for written in ("Lim", "Lma", ""):
        assert locate(tokenizer, lambda text, w=written: encode(text.replace("Lima", w)), asked, said) is None


def test_text_that_follows_is_tokenized_in_its_context() -> None:
    def words(text: str) -> tuple[int, ...]:
        return tuple(len(w) for w in text.split(" "))

    assert continued(words, "a bb", (1, 2), " ccc") == (3,)
    assert continued(words, "a bb", (9, 9), " ccc") == (3,), "as a piece of the context is cut"
    assert continued(words, "a bb", (1, 2), "c") == () == continued(words, "a bb", (1, 2), "")
    assert continued(words, "a bb", (9, 9), "c ddd") == (), "its beginning melts into what stands before it"
