"""The one configuration: what it holds, what it refuses, the flags that are made of it, and old config files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from composcope.errors import InputError
from composcope.evaluation.grading.grade import MODES
from composcope.experiments.cli import main
from composcope.experiments.cli.flags import with_file
from composcope.experiments.config import FROM_FLAGS, RAY, Asking, Config, Probing, Serving
from composcope.experiments.evaluating.ask_plan import ask_options, make_protocol, with_examples
from composcope.probes.catalog import PROBES

SECTIONS = (Asking, Serving, Probing, Config)
OF_ENGINES: dict[str, dict[str, Any]] = {
    "openai": {"base_url": "http://h/v1"},
    "vllm": {"vllm_python": "/py", "vllm_args": "--a", "vllm_timeout": 5.0},
    "ray": {"workers": 2, "gpus_per_worker": 0.0, "ray_address": "h:1"},
}
"""Options that only one engine has."""


@pytest.mark.parametrize(
    ("values", "flag", "value", "fix"),
    [
        ({"limit": 0}, "--limit", "0", "at least 1"),
        ({"limit": "many"}, "--limit", "many", "at least 1"),
        ({"limit": 2.5}, "--limit", "2.5", "a whole number of at least 1"),
        ({"seed": -1}, "--seed", "-1", "at least 0"),
        ({"case_details": -1}, "--case-details", "-1", "at least 0"),
        ({"dtype": "int8"}, "--dtype", "int8", "float32, bfloat16 or float16"),
        ({"prompting": "talk"}, "--prompting", "talk", "chat or raw"),
        ({"position": "end"}, "--position", "end", "answer-slot or prompt-end"),
        ({"rows_dtype": "float64"}, "--rows-dtype", "float64", "float32"),
        ({"shard": "3/2"}, "--shard", "3/2", "1/8"),
        ({"probes": "lookbak"}, "--probes", "lookbak", "did you mean 'lookback'"),
        ({"probes": None}, "--probes", "None", "names of probes"),
        ({"probes": [7]}, "--probes", "7", "no such probe"),
        ({"asking": 3}, "--asking", "3", "its options"),
        ({"asking": []}, "--asking", "[]", "its options"),
        ({"asking": 3, "few_shot": 2}, "--asking", "3", "its options"),
        ({"serving": ["ray"]}, "--serving", "['ray']", "its options"),
        ({"asking": {"preamble": "maybe"}}, "--preamble", "maybe", "yes, no or both"),
        ({"asking": {"thinking_tokens": 0}}, "--thinking-tokens", "0", "at least 1"),
        ({"asking": {"compat": "gsm"}}, "--compat", "gsm", "agentcoma, stad or collapse"),
        ({"serving": {"engine": "vlm"}}, "--engine", "vlm", "transformers, openai, vllm or ray"),
        ({"serving": {"concurrency": 0}}, "--concurrency", "0", "at least 1"),
        ({"serving": {"engine": "ray", "gpus_per_worker": "half"}}, "--gpus-per-worker", "half", "at least 0"),
        ({"modle": "x"}, "modle", "", "did you mean 'model'"),
        ({"asking": {7: "x"}}, "7", "", "no such option"),
        ({"answer_tokns": 3}, "answer_tokns", "", "did you mean 'answer_tokens'"),
        ({"temperature": float("inf")}, "--temperature", "inf", "finite"),
        ({"concurrency": 2}, "--concurrency", "", "for a server"),
        ({"signed_as": "x"}, "--signed-as", "", "for a server"),
        ({"api_key_env": "KEY"}, "--api-key-env", "", "for a server"),
        ({"probe_model": "folder"}, "--probe-model", "", "for a server"),
        *(
            (
                {"engine": "ray", name: 3 if name == "concurrency" else "x"},
                f"--{name.replace('_', '-')}",
                "",
                "for a server",
            )
            for name in ("concurrency", "signed_as", "api_key_env", "probe_model")
        ),
        *(
            ({"engine": other, name: value}, f"--{name.replace('_', '-')}", "", f"is for --engine {engine}")
            for engine, options in OF_ENGINES.items()
            for name, value in options.items()
            for other in ("transformers", "openai", "vllm", "ray")
            if other != engine
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_flag_and_the_fix(
    values: dict[str, Any], flag: str, value: str, fix: str
) -> None:
    given = {"model": "m", "benchmark": "b", **values}
    with pytest.raises(InputError) as said:
        Config.model_validate(given, context=FROM_FLAGS)
    assert str(said.value).startswith(f"{flag} {value}".strip()) and fix in str(said.value)
    with pytest.raises(InputError) as told:
        Config(**given)
    name = flag.removeprefix("--").replace("-", "_")
    assert str(told.value).startswith(f"{name}={value}" if value else name), "in Python it is an argument"
    assert flag not in str(told.value) or flag == name


@pytest.mark.parametrize(
    "given",
    [
        {"answer_tokens": 7},
        {"asking": {"answer_tokens": 7}},
        {"asking": {"few_shot": "2"}, "answer_tokens": 7},
        {"answer_tokens": 7, "few_shot": 2},
        {"answer_tokens": 7, "asking": None, "serving": None},
    ],
)
def test_an_option_is_given_by_its_name_or_in_its_section(given: dict[str, Any], tmp_path: Path) -> None:
    config = Config(**{"model": "m", "benchmark": "b", **given})
    assert config.asking.answer_tokens == 7 and (config.asking.few_shot == "2") == ("few_shot" in str(given))
    assert config.serving == Serving()
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    merged = with_file(tmp_path / "c.yaml", {"asking": {"answer_tokens": 9}})
    assert merged["asking"]["answer_tokens"] == 9, "a flag overrides the file"


@pytest.mark.parametrize(
    ("line", "named"), [("asking: 3", "asking is 3"), ("asking: {temprature: 1}", "temprature"), ("5: x", "5: no such")]
)
def test_what_a_file_cannot_say_is_refused_with_the_file(tmp_path: Path, line: str, named: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"model: m\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"{re.escape(str(file))}: .*{named}"):
        with_file(file, {})


@pytest.mark.parametrize(("word", "value"), [("no", "no"), ("yes", "yes"), ("both", "both"), ("'no'", "no")])
def test_yes_and_no_are_words_with_or_without_quotation_marks(tmp_path: Path, word: str, value: str) -> None:
    for line in (f"preamble: {word}", f"asking: {{preamble: {word}}}"):
        (tmp_path / "c.yaml").write_text(f"model: m\nbenchmark: b\n{line}\n", encoding="utf-8")
        assert Config.model_validate(with_file(tmp_path / "c.yaml", {}), context=FROM_FLAGS).asking.preamble == value


def test_every_number_has_a_least_value() -> None:
    for section in SECTIONS:
        for name, field in section.model_fields.items():
            kinds = {field.annotation, *get_args(field.annotation)}
            assert not kinds & {int, float} or any(hasattr(rule, "ge") for rule in field.metadata), name


def test_the_modes_of_papers_are_those_of_the_grader() -> None:
    assert get_args(get_args(Asking.model_fields["compat"].annotation)[0]) == MODES


def test_a_configuration_survives_its_file_without_the_file_of_examples(tmp_path: Path) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text('{"kind": "*", "question": "A?", "answer": "b"}')
    asked = with_examples(Asking(few_shot=str(path), preamble="both", also="cot", compat="collapse"), [])
    given = Config(model="m", benchmark="b", protocol="compositionality-gap", probes=("lookback",), asking=asked)
    raw = yaml.safe_load(yaml.safe_dump(given.as_config(), sort_keys=False))
    path.unlink()
    assert Config.read(raw) == given and next(iter(raw)) == "model"
    assert Config.read({k: v for k, v in raw.items() if k != "asking"}).asking == Asking()
    assert set(asked.changed()) == {"preamble", "also", "exemplars"}
    assert Asking(compat="stad", judge="m@http://h/v1").changed() == {}
    assert len(make_protocol(ask_options(Config.read(raw))).how.exemplars) == 1


OLD = """
schema: 1
model: organism:control
benchmark: organism:mixed
protocol: compositionality-gap
format: plain
prompting: raw
limit: 2
max_asks: null
batch_size: null
seed: 0
dtype: null
device: cpu
probes: [neurons, lookback]
probe_cases: 4
shard: null
reuse: false
pad_token: null
asking: {few_shot: null, preamble: 'yes', also: cot, compat: null, judge: null, exemplars: [], gone: 1}
serving: {engine: ray, base_url: null, workers: 2, vllm_args: '', vllm_timeout: 1800.0}
case_details: 4
rows_dtype: null
position: answer-slot
"""
"""A file as earlier versions wrote it, with a key that is no more."""


def test_a_configuration_that_names_an_option_of_earlier_versions_can_be_given_again(tmp_path: Path) -> None:
    (path := tmp_path / "config.yaml").write_text("schema: 1\nmodel: a\nbenchmark: b\npad_token: null\n")
    assert with_file(path, {}) == {"model": "a", "benchmark": "b"}


def test_config_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    found = Config.read(yaml.safe_load(OLD), limit=3)
    assert (found.model, found.limit, found.probes, found.probe_cases) == (
        "organism:control", 3, ("neurons", "lookback"), 4,
    )  # fmt: skip
    assert (found.asking.also, found.asking.preamble, found.serving.workers) == ("cot", "yes", 2)
    assert Config.read({"model": "m", "benchmark": "b"}) == Config(model="m", benchmark="b")


@pytest.mark.parametrize(
    ("text", "probes"),
    [("none", ()), ("min_k, lookback,min-k", ("min-k", "lookback")), ("patching", ("patching",)),
     (["min_k", "own_one", "min-k"], ("min-k", "own_one"))],
)  # fmt: skip
def test_probes_are_named_in_one_text_or_list(
    text: str | list[str], probes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROBES.added, "own_one", PROBES["min-k"])
    assert Config.model_validate({"model": "m", "benchmark": "b", "probes": text}).probes == probes


def _panels(text: str) -> dict[str, set[str]]:
    """The flags under each heading of a help text."""
    blocks = re.split(r"^(\w+):\n", text, flags=re.MULTILINE)[1:]
    pairs = zip(blocks[::2], blocks[1::2], strict=True)
    return {name: set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", block, re.MULTILINE)) for name, block in pairs}


@pytest.mark.parametrize(
    ("command", "headings"),
    [
        ("investigate", {"Computing", "Asking", "Protocols", "Grading", "Serving", "Workers", "Probing", "Output"}),
        ("evaluate", {"Computing", "Asking", "Serving", "Output"}),
        ("probe", {"Computing", "Workers", "Probing", "Output"}),
        ("study agentcoma", {"Computing", "Asking", "Serving", "Output"}),
    ],
)
def test_help_lists_the_flags_of_each_section_under_its_heading(
    command: str, headings: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--help"]) == 0
    panels = _panels(capsys.readouterr().out)
    assert headings <= set(panels)
    where = {"Asking": "--few-shot", "Serving": "--engine", "Probing": "--probe-cases", "Output": "--json"}
    where |= {"Protocols": "--ask-all", "Grading": "--judge", "Workers": "--gpus-per-worker", "Computing": "--device"}
    for heading in headings:
        assert where[heading] in panels[heading], heading


def test_a_flag_that_is_not_given_leaves_the_default_of_the_model(tmp_path: Path) -> None:
    assert main(["evaluate", "-m", "organism:none", "-b", "organism:mixed", "--limit", "1", "-o", str(tmp_path)]) in (
        0,
        2,
    )
    raw = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert raw["probe_cases"] == 32 and raw["asking"]["thinking_tokens"] == 4096 and raw["limit"] == 1
    assert raw["probes"] == [] and raw["serving"]["engine"] == "transformers"


def test_the_number_of_examples_belongs_to_a_run_unless_the_examples_themselves_do() -> None:
    assert Asking(few_shot="2").changed() == {"few_shot": "2"}
    kept = Asking(few_shot="2", exemplars=({"kind": "whole"},)).changed()
    assert kept == {"exemplars": ({"kind": "whole"},)}


def test_each_engine_has_its_own_number_of_requests_at_a_time() -> None:
    found = [Serving(engine=engine).requests for engine in ("openai", "vllm")]
    assert found == [8, 64] and Serving(engine="vllm", concurrency=3).requests == 3


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://host/v1", "http://", "http://me:word@host/v1", "http://h:x"]
)
def test_what_is_no_address_of_a_server_is_refused_with_the_option(url: str) -> None:
    given: dict[str, Any] = {"engine": "openai", "base_url": url}
    with pytest.raises(InputError, match="--base-url"):
        Serving.model_validate(given, context=FROM_FLAGS)
    with pytest.raises(InputError, match=r"^base_url"):
        Serving(**given)
    assert Serving(engine="openai", base_url="http://host:8000/v1").base_url == "http://host:8000/v1"


def test_every_option_of_one_engine_is_named_for_it() -> None:
    named = {name for options in OF_ENGINES.values() for name in options}
    assert named == {n for n in Serving.model_fields if n.startswith(("vllm", "ray"))} | {*RAY, "base_url"}
    for engine, options in OF_ENGINES.items():
        assert {
            n: v for n, v in Serving.model_validate({"engine": engine, **options}).given().items() if n != "engine"
        } == options


@pytest.mark.parametrize("before", [{"engine": name, **OF_ENGINES[name]} for name in ("openai", "vllm")])
def test_a_run_that_a_server_answered_can_be_probed_by_another_engine(before: dict[str, Any]) -> None:
    was = Serving(**before, probe_model="w")
    assert was.for_probing({}) == was
    others: list[dict[str, Any]] = [{"engine": "transformers"}, {"engine": "ray", "workers": 2}]
    for given in others:
        assert was.for_probing(given) == Serving(**given, probe_model="w")
    with pytest.raises(InputError, match="--workers is for --engine ray"):
        was.for_probing({"workers": 2})


def test_options_as_a_run_keeps_them_can_be_given_again() -> None:
    made = Config(model="organism:none", benchmark="b", probes=())
    assert Config(**made.as_config()) == made
    kept = {"engine": "openai", "base_url": "http://h/v1", "vllm_timeout": 60.0}  # which was not refused at first
    assert Serving.read(kept).vllm_timeout == 60


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"model": "m", "benchmark": "b", "seed": -1}, "--seed -1"), ({"benchmark": "b"}, "'--model'"),
        ({"model": "m", "benchmark": "b", "asking": 3}, "--asking 3"),
        ({"model": "m", "benchmark": "b", "serving": {"workers": "x"}}, "--workers x"),
        ({"model": "m", "benchmark": "b", "asking": {"preamble": "perhaps"}}, "--preamble perhaps"),
    ],
)  # fmt: skip
def test_a_recorded_value_that_is_no_value_is_named_as_its_option(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        Config.read(raw)
    assert said in str(error.value)


def test_arguments_of_our_server_are_read_as_a_shell_reads_them() -> None:
    assert Serving(engine="vllm", vllm_args='--a "b c"').vllm_options == ["--a", "b c"]
    with pytest.raises(InputError, match=r"--vllm-args '--a \"b'"):
        _ = Serving(engine="vllm", vllm_args='--a "b').vllm_options


@pytest.mark.parametrize(
    ("before", "given", "engine"),
    [
        ({"engine": "ray", "workers": 2}, {}, "ray"), ({"engine": "ray", "workers": 2}, {"workers": 3}, "ray"),
        ({"engine": "ray", "workers": 2}, {"engine": "transformers"}, "transformers"),
        ({}, {"engine": "ray", "workers": 1}, "ray"),
    ],
)  # fmt: skip
def test_workers_of_a_run_are_those_of_its_probes_unless_another_engine_is_given(
    before: dict[str, Any], given: dict[str, Any], engine: str
) -> None:
    found = Serving(**before).for_probing(given)
    assert (found.engine, found.workers) == (engine, given.get("workers", before.get("workers"))
                                             if engine == "ray" else None)  # fmt: skip
    for other in ("openai", "vllm"):
        with pytest.raises(InputError, match=f"--engine {other}: probes run with"):
            Serving(**before).for_probing({"engine": other})
