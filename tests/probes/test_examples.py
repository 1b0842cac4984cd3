"""Examples from what an evaluation leaves behind: ids as fed, answers in context, spans and cues found from ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import pytest
from tiny_models import tiny
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.engines.local import LocalEngine
from composcope.evaluation.journal import ask_identity
from composcope.evaluation.prompts import render
from composcope.evaluation.protocols.base import CaseSet, Entry, Evidence
from composcope.probes import from_case_sets
from composcope.probes.examples import Example, _judged, _keys, _question, _role_order, _Writer, part_of
from composcope.probes.slots import separators

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
CASES = [
    Case(
        f"c{i}",
        f"How many bags of item {i} times 7 plus {i}?",
        str(8 * i),
        (
            Part(f"What is 7 times {i}?", str(7 * i), "math", worked=f"7 times {i} is {7 * i}"),
            Part(f"A bag of {i}?", "yes"),
        ),
        family="bags",
        depth=2,
        cluster="k",
        worked=f"7 times {i} plus {i} is {8 * i}",
    )
    for i in (3, 4)
]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    bpe.train_from_iterator([c.question for c in CASES] * 3, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    fast.chat_template = TEMPLATE
    return fast


def _text(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids)))


def _asks(prompting: Literal["chat", "raw"] = "chat", format: str = "plain") -> list[Ask]:
    asks = []
    for case in CASES:
        asks.append(Ask(case.id, "whole", render(case.question, format), case.answer, "number", format))
        for j, part in enumerate(case.parts):
            asks.append(Ask(case.id, f"part:{j}", render(part.question, format), part.answer, "text", format))
    return [replace(a, max_tokens=6, prompting=prompting) for a in asks]


def _evaluated(tokenizer: PreTrainedTokenizerFast, asks: list[Ask]) -> tuple[dict[str, Ask], dict[str, Response]]:
    engine = LocalEngine(tiny("llama", vocab_size=len(tokenizer), max_position_embeddings=128), tokenizer)
    responses = {r.ask: r for _, r in engine.answer(asks)}
    return {ask_identity(a, engine.identity): a for a in asks}, responses


def _sets(evidence: tuple[Evidence, ...] = ()) -> list[CaseSet]:
    failure = CaseSet("residual-failure", "failure", (Entry("c3", evidence),))
    return [failure, CaseSet("gated-success", "success", (Entry("c4", ()),)), CaseSet("all", "other", ())]


def test_examples_carry_the_ids_as_fed_and_the_gold_answer_in_context(tokenizer: PreTrainedTokenizerFast) -> None:
    given = _asks()
    again = replace(given[1], role="part:0:paraphrase:1", prompt=f"Say: {given[1].prompt}")  # of the double gate
    asks, responses = _evaluated(tokenizer, [*given, again])
    got = from_case_sets(tokenizer, CASES, asks, responses, _sets())
    assert [(e.case, e.role, e.kind, e.group) for e in got] == [
        ("c3", "whole", "composition", "failure"),
        ("c3", "part:0", "math", "failure"),
        ("c3", "part:1", "part", "failure"),
        ("c4", "whole", "composition", "success"),
        ("c4", "part:0", "math", "success"),
        ("c4", "part:1", "part", "success"),
    ]
    whole = got[0]
    assert whole.prompt_ids in {r.prompt_ids for r in responses.values()}
    assert _text(tokenizer, whole.answer_ids) == CASES[0].worked
    assert _text(tokenizer, got[2].answer_ids) == "yes"
    text = _text(tokenizer, [*whole.prompt_ids, *whole.answer_ids])
    assert tokenizer(text, add_special_tokens=False).input_ids == [*whole.prompt_ids, *whole.answer_ids]
    assert (whole.family, whole.depth, whole.cluster) == ("bags", 2, "k")


def test_the_gold_answer_knows_whether_a_response_begins_inside_the_thinking(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    asks, responses = _evaluated(tokenizer, _asks())
    for told, opened in ((None, False), (None, True), (True, False), (False, False)):
        some = {key: replace(ask, thinking=told) for key, ask in asks.items()}
        made = {"thinking_opened": True} if opened else None
        said = {key: replace(r, provenance=made) for key, r in responses.items()}
        found = from_case_sets(tokenizer, CASES, some, said, _sets())
        assert {e.gold is not None and e.gold.thinking for e in found} == {bool(told or opened)}


def test_spans_hold_the_question_and_cues_the_generation_prompt(tokenizer: PreTrainedTokenizerFast) -> None:
    asks, responses = _evaluated(tokenizer, _asks(format="cot"))
    for e in from_case_sets(tokenizer, CASES, asks, responses, _sets()):
        a, b = e.question_span
        spoken = _text(tokenizer, e.prompt_ids[a:b])
        case = next(c for c in CASES if c.id == e.case)
        question = case.question if e.role == "whole" else case.parts[int(e.role[-1])].question
        assert question in spoken
        assert len(spoken.strip()) <= len(question) + 1
        assert _text(tokenizer, e.prompt_ids[-e.cue_tokens :]) == "<|assistant|>\n" and e.few_shot_span is None
    shown = "Question: A bag of 1?\nAnswer: 1"
    asked_for = [q for c in CASES for q in (c.question, *(p.question for p in c.parts))]
    with_it = zip(_asks(), asked_for, strict=True)
    told = [replace(a, prompt=f"{shown}\n\nQuestion: {q}", question=q) for a, q in with_it]
    asks, responses = _evaluated(tokenizer, told)
    for e in from_case_sets(tokenizer, CASES, asks, responses, _sets()):
        first, last = e.few_shot_span or (0, 0)
        assert _text(tokenizer, e.prompt_ids[first:last]).strip() == shown and last <= e.question_span[0]
    asked = Ask("c3", "part:1", render("And now: A bag of 3?"), "yes", "text", "plain")
    part = replace(CASES[0].parts[1], paraphrases=("Now: A bag of 3?", "And now: A bag of 3?"))
    assert _question(CASES[0], part, asked) == "And now: A bag of 3?", "the longest wording that is there"
    part = replace(part, extra_context="Of a shop. And now: A bag of 3?")
    asked = replace(asked, prompt=render(str(part.extra_context)))
    assert _question(CASES[0], part, asked) == part.extra_context


def test_a_token_across_the_end_of_a_question_belongs_to_it(tokenizer: PreTrainedTokenizerFast) -> None:
    text = "So: How many bags of item 3 times 7"
    ids = tuple(tokenizer(text, add_special_tokens=False).input_ids)
    ask = Ask("c3", "whole", text, "24", "number", prompting="raw")
    for question, want in (("How many bags", "How many bags"), ("How many bag", "How many bags")):
        a, b = _Writer(tokenizer)._span(ask, text, ids, question, "")
        assert _text(tokenizer, ids[a:b]).strip() == want
    shown = tuple(tokenizer(f"{text}. 21. {text}", add_special_tokens=False).input_ids)  # an example before it
    twice = replace(ask, prompt=f"{text}. 21. {text}")
    a, b = _Writer(tokenizer)._span(twice, twice.prompt, shown, text, "")
    assert b == len(shown) and _text(tokenizer, shown[:a]).strip() == f"{text}. 21."
    with pytest.raises(InputError, match="does the template rewrite it"):
        _Writer(tokenizer)._span(ask, "so: how many bags of item", ids, "How many bags", "")


def test_only_the_whole_of_an_unknowable_case_is_unknowable(tokenizer: PreTrainedTokenizerFast) -> None:
    asks, responses = _evaluated(tokenizer, _asks())
    got = from_case_sets(tokenizer, [replace(c, unknowable=True) for c in CASES], asks, responses, _sets())
    assert {(e.role, e.gold.unknowable) for e in got if e.gold} == {
        ("whole", True),
        ("part:0", False),
        ("part:1", False),
    }


def test_other_answers_to_an_example_are_judged_with_the_options_and_the_question_of_its_ask(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    options = (("A", "yes"), ("B", "no"))
    given = [replace(a, answer_type="choice", gold="yes", options=options) if a.role == "part:1" else
             replace(a, question="how many?") for a in _asks()]  # fmt: skip
    asks, responses = _evaluated(tokenizer, given)
    got = {e.role: e.gold for e in from_case_sets(tokenizer, CASES, asks, responses, _sets()) if e.gold}
    assert (got["part:1"].options, got["part:1"].question) == (options, None)
    assert (got["whole"].options, got["whole"].question) == ((), "how many?")


def test_of_an_answer_of_white_space_one_token_is_left(tokenizer: PreTrainedTokenizerFast) -> None:
    for text in ("  ", " 21", "21"):
        ids = tokenizer(text, add_special_tokens=False).input_ids
        blank = sum(1 for i in range(1, len(ids)) if not _text(tokenizer, ids[:i]).strip())
        assert separators(tokenizer, tuple(ids)) == blank < len(ids)


def test_white_space_before_an_answer_is_the_models_also_where_its_tokens_are_unusual(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    ask = Ask("c3", "whole", "A bag?", "24", "number", prompting="raw")
    ids = tuple(tokenizer("A bag?", add_special_tokens=False).input_ids)
    response = Response("k", " \n 24", "stop", 3, 1, ids, (len(tokenizer) - 1,))
    assert _Writer(tokenizer)._separator(ask, "A bag?", ids, response) == " \n "
    merged = _Writer(tokenizer)._answer_ids(ask, "A bag", ids, "24", response, "")  # the prompt's last token is another
    assert merged == tuple(tokenizer(" \n 24", add_special_tokens=False).input_ids)


def test_raw_prompts_take_the_models_own_separator_and_have_no_cue(tokenizer: PreTrainedTokenizerFast) -> None:
    asks, responses = _evaluated(tokenizer, _asks("raw"))
    spaced = {
        k: replace(r, text=" 21", response_ids=tuple(tokenizer(" 21", add_special_tokens=False).input_ids))
        for k, r in responses.items()
    }
    for e in from_case_sets(tokenizer, CASES, asks, spaced, _sets()):
        assert e.cue_tokens == 0
        assert _text(tokenizer, e.answer_ids).startswith(" ")
        assert e.question_span == (0, len(e.prompt_ids))


def test_a_tokenizer_that_ends_every_text_gives_examples_of_prompts_without_the_end(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    inner = tokenizer.backend_tokenizer
    before, ends = inner.post_processor, [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("<s>", "</s>")]
    inner.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    try:
        asks, responses = _evaluated(tokenizer, _asks("raw"))
        found = from_case_sets(tokenizer, CASES, asks, responses, _sets())
    finally:
        inner.post_processor = before
    for e in found:
        assert tokenizer.eos_token_id not in (e.prompt_ids[-1], e.answer_ids[-1])
        assert e.question_span == (1, len(e.prompt_ids))


def test_an_ask_that_cases_share_is_found_through_the_evidence(tokenizer: PreTrainedTokenizerFast) -> None:
    asks = [a for a in _asks() if (a.case, a.role) != ("c3", "part:1")]
    known, responses = _evaluated(tokenizer, asks)
    shared = next(k for k, a in known.items() if a.role == "part:1")
    evidence = (Evidence("part:1", "correct", "yes", "yes", shared),)
    got = from_case_sets(tokenizer, CASES, known, responses, _sets(evidence))
    roles = [(e.case, e.role) for e in got]
    assert ("c3", "part:1") in roles and ("c4", "part:1") in roles


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: replace(r, prompt_ids=None), "no token ids"),
        (lambda r: replace(r, response_ids=()), "no response to probe"),
        (lambda r: replace(r, prompt_ids=(*r.prompt_ids[:-1], 300, 301)), "do not round-trip"),
    ],
)
def test_responses_that_cannot_be_looked_into_are_refused(
    tokenizer: PreTrainedTokenizerFast, change: Callable[[Response], Response], says: str
) -> None:
    asks, responses = _evaluated(tokenizer, _asks())
    with pytest.raises(InputError, match=says):
        from_case_sets(tokenizer, CASES, asks, {k: change(r) for k, r in responses.items()}, _sets())


def test_of_repeats_the_first_counts() -> None:
    repeats = [Evidence("whole", "incorrect", "3", "1", "k"), Evidence("whole", "correct", "1", "1", "k")]
    assert _judged(_sets(tuple(repeats))) == {("c3", "whole"): ("incorrect", "3")}
    asks = {"b": Ask("c3", "whole", "Q?", "1", "text")}
    asks |= {"a": replace(asks["b"], repeat=1), "c": replace(asks["b"], case="c6")}
    assert _keys(asks, []) == {("c3", "whole"): "b", ("c6", "whole"): "c"}
    sets = _sets((Evidence("whole", "incorrect", ask="a"),))
    assert _keys(asks, sets)["c3", "whole"] == "a", "what the sets say comes first"
    sets = _sets(tuple(Evidence("whole", "incorrect", ask=key) for key in "ab"))
    assert _keys(asks, sets)["c3", "whole"] == "a", "the first that the sets name"
    gone = _sets((Evidence("whole", "incorrect", ask="gone"),))
    assert _keys(asks, gone)["c3", "whole"] == "b", "an ask that is not there"


def test_labels_that_contradict_or_are_missing_are_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    asks, responses = _evaluated(tokenizer, _asks())
    both = [*_sets(), CaseSet("again", "success", (Entry("c3", ()),))]
    with pytest.raises(InputError, match="failure and success"):
        from_case_sets(tokenizer, CASES, asks, responses, both)
    with pytest.raises(NoCasesError, match="nothing to probe"):
        from_case_sets(tokenizer, CASES, asks, responses, [])
    strange = [*_sets(), CaseSet("other", "success", (Entry("c99", ()),))]
    with pytest.raises(InputError, match=rf"'c99' is not among the {len(CASES)} cases"):
        from_case_sets(tokenizer, CASES, asks, responses, strange)
    with pytest.raises(InputError, match="no response to its whole"):
        parts = {k: a for k, a in asks.items() if a.role != "whole"}
        from_case_sets(tokenizer, CASES, parts, responses, _sets())
    with pytest.raises(InputError, match="no response to its whole"):
        from_case_sets(tokenizer, CASES, parts, responses, _sets(), roles=("whole", "part:0"))
    alone = from_case_sets(tokenizer, CASES, parts, responses, _sets(), roles=("part:0",))
    assert [(e.case, e.role) for e in alone] == [("c3", "part:0"), ("c4", "part:0")]


def test_an_answer_that_comes_back_changed_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    words = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<unk>": 0, "yes": 1, "A": 2}, unk_token="<unk>")),
        unk_token="<unk>",
    )
    case = Case("c", "A", "no")
    ask = Ask("c", "whole", "A", "no", "text", prompting="raw")
    response = Response("k", "yes", "stop", 1, 1, (2,), (1,))
    sets = [CaseSet("s", "failure", (Entry("c", ()),))]
    with pytest.raises(InputError, match="'no' comes back"):
        from_case_sets(words, [case], {"k": ask}, {"k": response}, sets)
    with pytest.raises(InputError, match="tokenizes to nothing"):
        from_case_sets(words, [replace(case, answer=" ")], {"k": ask}, {"k": response}, sets)
    with pytest.raises(InputError, match="tokenizes to nothing"):  # blanks are tokens here, and no answer
        from_case_sets(tokenizer, [replace(case, answer=" ")], {"k": ask}, {"k": response}, sets)


def test_fields_of_an_example_say_where_it_stands() -> None:
    e = Example("a", "whole", "composition", "failure", (1, 2), (3, 4), (4,), 1, (0, 1), cluster="k", crossed=("x",))
    assert e.shares == replace(e, group="success").shares and e.shares is not None


def test_roles_of_a_case_stand_in_the_order_in_which_it_is_solved() -> None:
    roles = ["whole", "part:2", "part:2:paraphrase:0", "part:10", "part:11:paraphrase:2", "part:11:paraphrase:10"]
    assert sorted((roles[i] for i in (5, 0, 3, 1, 4, 2)), key=_role_order) == roles


def test_the_part_that_a_role_asks_about() -> None:
    case = Case("c", "w", "x", (Part("a", "1"), Part("b", "2")))
    assert [part_of(case, r) for r in ("part", "part:x", "part:", "whole", "pair:0")] == [None] * 5
    assert [part_of(case, r) for r in ("part:1", "part:0:paraphrase:1")] == [case.parts[1], case.parts[0]]
    with pytest.raises(InputError, match="2 parts"):
        part_of(case, "part:2")
