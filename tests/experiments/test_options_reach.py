"""Every option of a run reaches what it is for: one row per option, and a row that is missing fails."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError, ModelError
from composcope.evaluation import skills
from composcope.evaluation.asks import Ask, Grade
from composcope.evaluation.builders import classification, facts, synthetic, temporal
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.graded import Graded
from composcope.experiments.building import benchmarks, scaffolds
from composcope.experiments.cli import main, root
from composcope.experiments.cli.flags import SECTIONS
from composcope.experiments.config import Asking, Config, Probing, Section, Serving
from composcope.experiments.evaluating.ask_plan import ask_options, load_benchmark, plan_asks
from composcope.experiments.investigate import investigate
from composcope.experiments.models.target import Loading, Target, load_local, loading_of
from composcope.experiments.run import read_json
from composcope.experiments.run.reader import read_about

TESTS = Path(__file__).resolve().parents[1]


def steps(i: int) -> tuple[Part, ...]:
    first = f"How many are {i} + 3?"
    extra = f"There are 9 lamps. {first}"
    return Part(first, str(i + 3), "math", "number", extra_context=extra), Part(
        "How many are 5 + 4?", "9", "math", "number"
    )


def cases() -> list[Case]:
    """Two families of six, answerable by every protocol."""
    meta = {"question_2": "How many are X + 4?", "reversed": "First the second?"}
    plain = [Case(f"c{i}", f"How many in {i}?", "9", steps(i), answer_type="number", meta=meta) for i in range(12)]
    return [replace(c, benchmark="sums", family="ab"[i % 2], depth=2) for i, c in enumerate(plain)]


@dataclass(frozen=True)
class Seen:
    """What a configuration leads to, without a model."""

    asks: Sequence[Ask]
    cases: Sequence[Case]
    counted: Any
    """The protocol that counts."""

    def roles(self) -> set[str]:
        return {a.role for a in self.asks}

    def of(self, role: str) -> Ask:
        return next(a for a in self.asks if a.role == role)


def seen(benchmark: str, protocol: str, options: dict[str, Any]) -> Seen:
    asking = {k: v for k, v in options.items() if k in Asking.model_fields}
    rest = {"format": "cot", **{k: v for k, v in options.items() if k not in Asking.model_fields}}
    config = Config(model="m", benchmark=benchmark, protocol=protocol, asking=Asking(**asking), **rest)
    found = load_benchmark(config.benchmark, seed=config.seed, limit=config.limit)
    asked = plan_asks(ask_options(config), found, config.parsed_shard)
    ways = [_rounds(c, asked.protocol, whole) for whole in ("correct", "incorrect") for c in asked.cases]
    presented: Any = asked.protocol
    return Seen([a for asks in ways for a in asks], asked.cases, presented.protocol)


def _rounds(case: Case, protocol: Any, whole: Any) -> list[Ask]:
    """Every ask of all rounds where only the whole's answer may be wrong."""
    graded: dict[str, Grade] = {}
    asks: list[Ask] = []
    while new := [a for a in protocol.asks(case, graded) if a.role not in graded]:
        graded |= {a.role: Grade(whole if a.role == "whole" else "correct", a.gold) for a in new}
        asks += new
    return asks


GAP, PAIR, STAD = "compositionality-gap", "reasoning-gap", "scaffolding"
Shows = Callable[[Seen], bool]
REACHES: dict[str, tuple[str, Any, Shows]] = {
    "few_shot": (PAIR, "8", lambda s: s.of("part:0").prompt.count("Question: ") == 9),
    "preamble": (GAP, "no", lambda s: s.of("whole").prompt == "How many in 0?"),
    "also": (GAP, "self-ask", lambda s: "self-ask" in s.roles()),
    "thinking": (GAP, True, lambda s: all(a.thinking for a in s.asks)),
    "cot_tokens": (GAP, 55, lambda s: {a.max_tokens for a in s.asks} == {55}),
    "answer_tokens": (GAP, 9, lambda s: {a.max_tokens for a in s.asks} == {9}),
    "temperature": (GAP, 0.5, lambda s: {a.temperature for a in s.asks} == {0.5}),
    "reversed": (GAP, True, lambda s: s.of("whole").prompt != "" and "whole:reversed" in s.roles()),
    "extra_context": (GAP, False, lambda s: "part:0:extra-context" not in s.roles()),
    "code": (PAIR, True, lambda s: "code" in s.roles()),
    "co_presented": (PAIR, False, lambda s: "co-presented" not in s.roles()),
    "ask_all": (STAD, True, lambda s: sum(a.role == "scaffold:1" for a in s.asks) == 2 * len(s.cases)),
    "placeholders": (STAD, False, lambda s: not any(r.startswith("placeholder") for r in s.roles())),
    "compat": (GAP, "stad", lambda s: _invalid_whole(s.counted) == (1, 0)),
    "seed": (PAIR, 5, lambda s: s.counted.seed == 5),
    "limit": (GAP, 2, lambda s: [c.id for c in s.cases] == ["c0", "c1", "c2", "c3"]),
    "shard": (GAP, "1/2", lambda s: 0 < len(s.cases) < 12),
    "prompting": (GAP, "raw", lambda s: {a.prompting for a in s.asks} == {"raw"}),
    "format": (GAP, "xml", lambda s: "<answer>" in s.of("whole").prompt),
}
"""Option -> protocol, value, and what only shows with that value."""
ELSEWHERE = {
    **dict.fromkeys(("judge",), "experiments/test_keys_and_signatures.py"),
    **dict.fromkeys(("protocol", "model", "benchmark", "max_asks"), "experiments/test_investigate.py"),
    **dict.fromkeys(("base_url", "probe_model", "vllm_python", "engine"), "experiments/test_served.py"),
    **dict.fromkeys(("api_key_env",), "experiments/test_keys_and_signatures.py"),
    **dict.fromkeys(("signed_as",), "experiments/test_served.py"),
    **dict.fromkeys(("concurrency",), "evaluation/engines/test_http.py"),
    **dict.fromkeys(("vllm_args", "vllm_timeout"), "evaluation/engines/test_vllm.py"),
    **dict.fromkeys(("workers", "gpus_per_worker", "ray_address"), "experiments/distributed/test_ray.py"),
    **dict.fromkeys(("reuse",), "evaluation/test_journal.py"),
}
"""Options that take a server, workers or a journal, and the tests that have them."""
HERE = {"thinking_tokens", "batch_size", "dtype", "device"}
HERE |= {"probes", "probe_cases", "case_details", "position", "rows_dtype"}
"""Options with a test of their own below."""


def _invalid_whole(protocol: Any) -> tuple[int, int]:
    """n and number of unknowns of the whole's accuracy where one answer is invalid."""
    rows = [Graded("c", role, "correct") for role in ("part:0", "part:1")] + [Graded("c", "whole", "invalid")]
    found = next(m for m in protocol.reduce(rows).metrics if m.metric == "composition")
    return found.n, found.n_invalid


def _said(*sections: type[Section]) -> set[str]:
    return {name for s in sections for name, field in s.model_fields.items() if field.description}


def test_every_option_of_a_run_has_its_row_or_its_test() -> None:
    named = [*REACHES, *ELSEWHERE, *HERE]
    assert set(named) == _said(Asking, Serving, Probing, Config) and len(named) == len(set(named))
    for option, file in ELSEWHERE.items():
        text = (TESTS / file).read_text(encoding="utf-8")
        flags = (f"--{option.replace('_', '-')}", f"{option}=", f'"{option}"', f'"-{option[0]}"')
        assert any(flag in text for flag in flags), (option, file)


GIVEN = [(section, name, field) for section in (Config, Asking, Serving) for name, field in section.model_fields.items()
         if field.description and name != "rows_dtype"]  # fmt: skip


@pytest.mark.parametrize(("section", "name", "field"), GIVEN, ids=[name for _, name, _ in GIVEN])
def test_an_option_of_a_run_can_be_given_on_the_command_line_with_every_value(
    section: type[Section], name: str, field: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[dict[str, Any]] = []
    monkeypatch.setattr(root, "_run", lambda given, *_: handed.append(given) or 0)
    flag, kinds, within = f"--{name.replace('_', '-')}", str(field.annotation), SECTIONS.get(section)
    ways: list[tuple[list[str], Any]] = [([f"{flag}=w"], "w"), ([flag, "7"], "7")]
    if "bool" in kinds:
        ways = [([flag], True), *([([f"--no-{flag[2:]}"], False)] if field.default is not False else [])]
    ways += [([short, "w"], "w") for short in [{"model": "-m", "benchmark": "-b", "protocol": "-p"}.get(name)] if short]
    for words, value in ways:
        assert main(["investigate", *words]) == 0
        own = {name: value}
        assert handed.pop() == ({within: own} if within else own), "and nothing else is given"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    write_cases(cases(), path)
    return str(path)


@pytest.mark.parametrize("option", REACHES)
def test_an_option_reaches_its_effect_and_without_it_there_is_none(option: str, file: str) -> None:
    protocol, value, shows = REACHES[option]
    assert shows(seen(file, protocol, {option: value})), value
    assert not shows(seen(file, protocol, {})), "shows without the option, too"


def test_the_budget_of_thinking_is_that_of_asks_with_thinking_only(file: str) -> None:
    found = seen(file, GAP, {"also": "thinking", "thinking_tokens": 77})
    assert {a.max_tokens == 77 for a in found.asks if a.thinking} == {True}
    assert 77 not in {a.max_tokens for a in found.asks if not a.thinking}


@pytest.mark.parametrize("name", ["organism:pairs", "world", "a case file"])
def test_a_limit_keeps_as_many_cases_of_each_family_and_depth_of_every_kind_of_benchmark(name: str, file: str) -> None:
    found = Counter((c.family, c.depth) for c in load_benchmark(file if " " in name else name, limit=1).cases)
    assert len(found) > 1 or name == "organism:pairs"
    assert set(found.values()) == {1}


def test_the_seed_of_a_run_draws_the_independent_questions_and_the_answers(file: str) -> None:
    drawn = [[c.meta["independent"] for c in seen(file, PAIR, {"seed": seed}).cases] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert {a.seed for a in seen(file, GAP, {"seed": 5, "temperature": 0.5}).asks} == {5}, "and the answers"


def test_options_of_the_weights_reach_the_loaded_model() -> None:
    options: dict[str, Any] = {"dtype": "bfloat16", "batch_size": 3}
    plain = load_local(Loading("organism:control", device="cpu"), print)
    assert str(plain.model.dtype) == "torch.float32" and plain.engine.batch_size != 3
    assert plain.model.device.type == "cpu"
    found = load_local(loading_of(Config(model="organism:control", benchmark="b", **options)), print)
    assert (str(found.model.dtype), found.engine.batch_size) == ("torch.bfloat16", 3)
    with pytest.raises(ModelError, match="nowhere"):
        load_local(Loading("organism:control", device="nowhere"), print)


def test_options_of_the_probes_reach_what_is_measured(
    taught: Path, case_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter(({"fleet": {"lost": 0}}, {"fleet": {"lost": 2}}))
    monkeypatch.setattr(Target, "record", lambda _: next(told))
    how: Any = {"dtype": "bfloat16", "rows_dtype": "float32", "position": "prompt-end", "format": "plain"}
    few: Any = {"probes": "neurons,trajectory", "probe_cases": 2, "case_details": 0}
    investigate(Config(model=str(taught), benchmark=str(case_file), **how, **few), tmp_path, quiet=True, report=False)
    groups = read_json(tmp_path / "probes" / "examples.json")["groups"]
    assert {len(cases) for cases in groups.values()} == {2}
    assert sorted(p.parent.name for p in tmp_path.glob("probes/*/values.csv")) == ["neurons", "trajectory"]
    about = read_about(tmp_path / "probes" / "neurons").settings
    assert (about["rows_dtype"], about["position"]) == ("float32", "prompt-end")
    assert read_json(tmp_path / "manifest.json")["fleet"] == {"lost": 2}, "what the workers did for the probes, too"
    kept = read_json(tmp_path / "probes" / "trajectory" / "cases" / "index.json")
    assert kept["entries"] == []


# --- options of builds: what their builders are given --------------------------------------------------------------


CHOSEN: list[tuple[Any, dict[str, Any], Any, dict[str, dict[str, Any]]]] = [
    (benchmarks.temporal,
     {"plan": "cross-domain", "seed": 4, "per_cell": 3, "paraphrases": 2, "gate_boundaries": True, "min_gap": 1.5},
     temporal,
     {"facts.read_facts": {"path": "FILE", "paraphrases": 2},
      "temporal.build": {"facts": "facts.read_facts", "plan": tuple((f, d, 3) for f, d, _ in temporal.CROSS_DOMAIN),
                         "seed": 4, "gate_boundaries": True, "min_gap": 1.5, "benchmark": "cross-domain"}}),
    (benchmarks.classification, {"depths": [2, 5], "per_cell": 3, "seed": 4, "paraphrases": 2}, classification,
     {"classification.read_memberships": {"path": "FILE", "paraphrases": 2},
      "classification.build": {"memberships": "classification.read_memberships", "depths": [2, 5], "per_cell": 3,
                               "seed": 4}}),
    (benchmarks.synthetic, options := {"families": ["spatial"], "depths": [3], "per_cell": 2, "distractors": 1,
                                       "seed": 4}, synthetic, {"synthetic.build": options}),
]  # fmt: skip
"""A build, options that are no defaults, and what each function of its builder is given."""


@pytest.mark.parametrize(("build", "options", "builder", "expected"), CHOSEN)
def test_options_of_a_build_reach_its_builder_and_its_record(
    build: Any, options: dict[str, Any], builder: Any, expected: dict[str, dict[str, Any]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    given: dict[str, dict[str, Any]] = {}

    def kept(name: str, signature: inspect.Signature, *args: Any, **options: Any) -> Any:
        given[name] = dict(signature.bind(*args, **options).arguments)
        return cases() if name.endswith("build") else name

    for name in expected:
        module, _, function = name.partition(".")
        place = facts if module == "facts" else builder
        monkeypatch.setattr(place, function, partial(kept, name, inspect.signature(getattr(place, function))))
    monkeypatch.setattr(temporal, "shape", len)
    (file := tmp_path / "FILE").write_text("x")
    read = [] if builder is synthetic else [file]
    made = build(tmp_path / "out", *read, **options)
    assert given == {name: {k: file if v == "FILE" else v for k, v in of.items()} for name, of in expected.items()}
    assert (made["options"], [*made["inputs"]]) == (options, [path.name for path in read])
    assert made["counts"] == {"cases": 12, "rejected": 0, "review": 0}


def test_the_limit_and_the_options_of_scaffolds_and_skills_reach_what_makes_them(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [c.id for c in scaffolds._cases(file, 2)] == ["c0", "c1"], "questions, of whatever family"
    given: list[tuple[Any, ...]] = []

    def kept(items: Any, *args: Any, journal: Any, **options: Any) -> Any:
        given.append((items, *(getattr(a, "engine", a) for a in args), options))
        raise InputError("kept")

    monkeypatch.setattr(scaffolds, "read_items", lambda path: [path])
    monkeypatch.setattr(skills, "map_skills", kept)
    monkeypatch.setattr(skills, "search", kept)
    teacher: Any = SimpleNamespace(identity={"model": "t"})
    some: dict[str, Any] = {"clusters": 2, "n_skills": 3}
    for chosen in (some, {}):
        with pytest.raises(InputError, match="kept"):
            scaffolds.skills(tmp_path / "out", file, teacher, embedding="e5", seed=4, **chosen)
    how = {"model": "e5", "seed": 4}
    assert given == [([file], teacher, 2, 3, how), ([file], teacher, how)]
