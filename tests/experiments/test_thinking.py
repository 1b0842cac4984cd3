"""Thinking mode on a model that has one: a small Qwen3 that was taught to think, and is right only when it does."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.cli import main
from composcope.experiments.evaluating.ask_plan import prompt_lengths
from composcope.experiments.run import read_json, read_lines

pytestmark = pytest.mark.long

TAGS = {"lamp": 14, "rope": 27, "drum": 35, "kite": 41, "boot": 52, "fork": 63}
# As models with a switch have it: told not to think, the prompt holds an empty block of thinking.
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
OPENING = TEMPLATE.replace("{% endif %}{% endif %}", "{% else %}<think>\n{% endif %}{% endif %}")
"""A template that opens the block itself."""


def cases() -> list[Case]:
    names = list(TAGS)
    return [
        Case(
            id=f"sum-{a}-{b}",
            question=f"Tag of {a} plus tag of {b}?",
            answer=str(TAGS[a] + TAGS[b]),
            answer_type="number",
            parts=tuple(Part(f"Tag of {x}?", str(TAGS[x]), "fact", "number") for x in (a, b)),
        )
        for a, b in zip(names, names[1:] + names[:1], strict=True)
    ]


def lessons() -> list[tuple[str, bool, str]]:
    """Question, thinking or not, reply: wholes are right after thinking and one too many without."""
    found = []
    for case in cases():
        a, b = (part.answer for part in case.parts)
        wrong = str(int(case.answer) + 1)
        # The thoughts hold what looks like an answer, so that nobody may take it for one.
        found.append(
            (case.question, True, f"<think>\n{a} and {b}. So the final answer is: {wrong}\n</think>\n\n{case.answer}")
        )
        found.append((case.question, False, wrong))
        for part in case.parts:
            found.append((part.question, False, part.answer))
            found.append((part.question, True, f"<think>\nI know.\n</think>\n\n{part.answer}"))
    return found


def tokenizer(special: bool, template: str) -> PreTrainedTokenizerFast:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    inner.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    texts = [text for question, _, reply in lessons() for text in (question, reply)]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|start|>", "<|end|>", "<pad>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    inner.train_from_iterator(texts, trainer)
    inner.add_tokens([AddedToken(mark, special=special, normalized=False) for mark in ("<think>", "</think>")])
    found = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>", pad_token="<pad>")
    found.chat_template = template
    return found


def teach(folder: Path, special: bool, template: str) -> Path:
    torch.manual_seed(0)
    words = tokenizer(special, template)
    config = Qwen3Config(
        vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=128, tie_word_embeddings=True, eos_token_id=1,
        pad_token_id=2, bos_token_id=None,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    ids, labels = batch(words, lessons())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(300):
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 2e-3:
            break
    model.eval().save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def batch(words: Any, pairs: Sequence[tuple[str, bool, str]]) -> tuple[torch.Tensor, torch.Tensor]:
    rows, marks = [], []
    for question, thinking, reply in pairs:
        talk = [{"role": "user", "content": question}]
        prompt = words.apply_chat_template(
            talk, add_generation_prompt=True, return_dict=False, enable_thinking=thinking
        )
        opened = words.decode(prompt).rstrip().endswith("<think>")
        answer = [*words(reply.removeprefix("<think>\n") if opened else reply, add_special_tokens=False).input_ids, 1]
        rows.append([*prompt, *answer])
        marks.append([-100] * len(prompt) + answer)
    width = max(map(len, rows))
    return (
        torch.tensor([row + [2] * (width - len(row)) for row in rows]),
        torch.tensor([mark + [-100] * (width - len(mark)) for mark in marks]),
    )


@pytest.fixture(scope="module", params=["plain marks", "special marks, opened by the template"])
def thinker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    special = request.param.startswith("special")
    return teach(tmp_path_factory.mktemp("thinker") / "model", special, OPENING if special else TEMPLATE)


def rows(out: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["case"], row["role"]): row for row in read_lines(out / "graded.jsonl")}


def thoughts(thinker: Path) -> int:
    """Tokens up to the end of the shortest thoughts about a whole."""
    engine = LocalEngine(thinker)
    asks = [Ask(c.id, "whole", c.question, c.answer, "number", max_tokens=60, thinking=True) for c in cases()]
    closing = engine.tokenizer.convert_tokens_to_ids("</think>")
    return min((r.response_ids or ()).index(closing) for _, r in engine.answer(asks))


def test_lengths_of_prompts_are_those_that_are_fed_with_thinking_on_off_or_unset(thinker: Path) -> None:
    engine = LocalEngine(thinker)
    ways: list[dict[str, Any]] = [{"thinking": how, "prompting": "chat"} for how in (None, True, False)]
    ways.append({"prompting": "raw"})
    asks = [Ask(c.id, "whole", c.question, c.answer, "number", **way) for c in cases() for way in ways]
    fed = [len(ids) for ids in engine.prompt_ids(asks)]
    assert prompt_lengths(engine.tokenizer, asks) == fed and fed[0] < fed[2], "an empty block of thinking"


def test_thinking_has_its_own_budget_and_only_what_follows_it_is_graded(thinker: Path, tmp_path: Path) -> None:
    write_cases(cases(), tmp_path / "cases.jsonl")
    study = ["evaluate", "-m", str(thinker), "-b", str(tmp_path / "cases.jsonl"), "--format", "plain", "--quiet"]
    study += ["--also", "thinking", "--answer-tokens", "6"]
    enough, few = tmp_path / "enough", tmp_path / "few"
    assert main([*study, "--thinking-tokens", "60", "-o", str(enough)]) == 0
    found = rows(enough)
    for case in cases():
        whole, thought = found[case.id, "whole"], found[case.id, "whole:thinking"]
        assert (whole["outcome"], whole["answer"]) == ("incorrect", str(int(case.answer) + 1))
        assert (thought["outcome"], thought["answer"]) == ("correct", case.answer)
        assert found[case.id, "part:0"]["outcome"] == "correct"
    metrics = read_json(enough / "metrics.json")["metrics"]
    assert any(m["value"] == 1.0 for m in metrics if "thinking" in str(m["group"]))
    # Cut off inside the thoughts, after what looks like an answer: no answer, and the exit code says so.
    assert main([*study, "--thinking-tokens", str(thoughts(thinker)), "-o", str(few)]) == 2
    cut = {row["reason"] for (_, role), row in rows(few).items() if role == "whole:thinking"}
    assert cut == {"truncated"}


def test_the_text_keeps_the_marks_of_thinking(thinker: Path) -> None:
    engine = LocalEngine(thinker)
    case = cases()[0]
    ask = Ask(case.id, "whole", case.question, case.answer, "number", format="plain", max_tokens=60, thinking=True)
    [(_, response)] = engine.answer([ask])
    assert response.text.rpartition("</think>")[2].strip() == case.answer
    opened = engine.tokenizer.decode(response.prompt_ids).endswith("<think>\n")
    assert response.text.startswith("<think>") != opened
    assert (response.provenance or {}).get("thinking_opened", False) == opened


def test_a_switch_of_thinking_that_nobody_has_set_is_said(
    thinker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(cases(), tmp_path / "cases.jsonl")
    study = ["evaluate", "-m", str(thinker), "-b", str(tmp_path / "cases.jsonl"), "--format", "plain", "--limit", "1"]
    said = {}
    for name, more in {"unset": [], "off": ["--no-thinking"], "raw": ["--prompting", "raw"]}.items():
        main([*study, *more, "-o", str(tmp_path / name), "--answer-tokens", "4"])
        said[name] = "can switch thinking on or off" in capsys.readouterr().err
    assert said == {"unset": True, "off": False, "raw": False}


def test_thinking_that_the_template_does_not_have_is_refused_before_there_is_a_run(
    thinker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(thinker, bare)
    (bare / "chat_template.jinja").write_text("{{ messages[0]['content'] }}", encoding="utf-8")
    write_cases(cases(), tmp_path / "cases.jsonl")
    study = ["evaluate", "-m", str(bare), "-b", str(tmp_path / "cases.jsonl"), "-o", str(tmp_path / "run"), "--quiet"]
    assert main([*study, "--thinking"]) == 1
    assert "no thinking mode" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
