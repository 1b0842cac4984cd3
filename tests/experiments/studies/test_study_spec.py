"""What a study is about: the models file, labels, pairs; and the preset that it meets."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments.cli import studies as cli
from composcope.experiments.console.printing import Reporter
from composcope.experiments.organism.weights import DOSES
from composcope.experiments.run import write_json
from composcope.experiments.studies import running, validity
from composcope.experiments.studies.running import config_of
from composcope.experiments.studies.spec import ModelPair, Spec, StudyModel, from_flags, read_spec, slug
from composcope.experiments.studies.study import STUDIES, Study, StudyRun, by_depth

FILE = """
data: [organism:temporal]
limit: 3
models:
  - {model: organism:none, family: organism, size: 0.5, tuning: pretrained, cost: cheap}
  - {model: organism:twin, label: full, family: organism, size: 7, trained_depths: [2, 4], baseline: false, device: cpu}
  - org/Some-Model-IT
pairs:
  tuning: [[full, none]]
  cost: [[none, full], [none, Some-Model-IT]]
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "models.yaml"
    path.write_text(text)
    return path


def test_a_models_file_gives_models_groups_and_pairs(tmp_path: Path) -> None:
    spec = read_spec(_file(tmp_path, FILE), seed=3, limit=None, data=())
    assert [m.label for m in spec.models] == ["none", "full", "Some-Model-IT"]
    assert spec.models[1].groups == {"family": "organism", "size": 7, "trained_depths": [2, 4], "baseline": False}
    assert spec.models[1].options == {"device": "cpu"}
    assert spec.pairs == (ModelPair("tuning", "full", "none"), ModelPair("cost", "none", "full"),
                          ModelPair("cost", "none", "Some-Model-IT"))  # fmt: skip
    assert (spec.data, spec.limit, spec.seed) == (("organism:temporal",), 3, 3)


def test_the_command_line_stands_above_the_file(tmp_path: Path) -> None:
    spec = read_spec(_file(tmp_path, FILE), limit=9, data=("other.jsonl",))
    assert (spec.limit, spec.data) == (9, ("other.jsonl",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: []", "field 'models' is missing or empty"),
        (f"{FILE}  tuning: [[none, full]]\n", "models.yaml: tuning is given twice; keep one of them"),
        ("models: [{label: a}]", r"models\[0\]: field 'model' is None"),
        ("models: [{model: a/b, sizes: 3}]", r"models\[0\]: field 'sizes' is not known; use model, label, family"),
        ("models: [{model: a/b, size: big}]", "field 'size' is 'big'; give billions"),
        ("models: [{model: a/b, trained_depths: 4}]", "field 'trained_depths' is 4"),
        ("models: [a/b, {model: c/d, label: b}]", "label 'b' is given twice"),
        ("models: [a/b, c/d]\npairs: {cost: [[b, x]]}", "pairs.cost names 'x', and the models are b, d"),
        ("models: [a/b, c/d]\npairs: [[b, d]]", r"field 'pairs' is \[\['b', 'd'\]\]; give lists of \[A, B\] by kind"),
        ("models: [a/b, c/d]\npairs: {cost: [[b]]}", r"pairs.cost holds \['b'\]"),
        ("models: [a/b]\nlimit: many", "field 'limit' is 'many'"),
        ("models: [a/b]\nlimit: 0", "field 'limit' is 0; give a whole number of at least 1"),
        ("models: [a/b]\ndatum: x", "field 'datum' is not known"),
        ("models: [", "not valid YAML"),
        ("models: [{model: a/b, family: [x, y]}]", r"models\[0\]: field 'family' is \['x', 'y'\]; give text"),
        ("models: [{model: a/b, tuning: no}]", "field 'tuning' is False; give text .in quotes"),
        ("models: [{model: a/b, label: 7}]", "field 'label' is 7; give text"),
        ("models: [{model: a/b, batch_size: many}]", "field 'batch_size' is 'many'; give a whole number"),
        ("models: [{model: a/b, dtype: 16}]", "field 'dtype' is 16; give text"),
        ("models: [{model: a/b, size: .nan}]", "field 'size' is nan; give billions"),
        ("models: [{model: a/b, baseline: maybe}]", "field 'baseline' is 'maybe'; give true or false"),
        ("models: [a/b, c/d]\npairs: {cost: [[b, b]]}", "pairs.cost compares 'b' with itself"),
    ],
)
def test_what_a_models_file_cannot_say_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_spec(_file(tmp_path, text))


def test_a_models_file_of_another_study_or_encoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="field 'study' is 'stad', and the study is agentcoma"):
        read_spec(_file(tmp_path, "study: stad\nmodels: [a/b]"), "agentcoma")
    assert read_spec(_file(tmp_path, "study: stad\nmodels: [a/b]"), "stad").models[0].label == "b"
    file = tmp_path / "latin.yaml"
    file.write_bytes("models: [organism:none] # für".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.yaml:1: not UTF-8"):
        read_spec(file)


def test_models_by_flag_are_compared_with_the_first() -> None:
    spec = from_flags(["organism:none", "models/a", "org/b"])
    assert [m.label for m in spec.models] == ["none", "a", "b"]
    assert spec.pairs == (ModelPair("reference", "a", "none"), ModelPair("reference", "b", "none"))
    assert [m.label for m in from_flags(["x/a", "y/a"]).models] == ["x/a", "y/a"]
    assert [m.label for m in from_flags(["a/m", "organism:low"]).models] == ["m", "low"]
    with pytest.raises(InputError, match="at least one model"):
        from_flags([])


def test_folders_are_named_after_models_and_data() -> None:
    assert slug("organism:mixed") == "mixed"
    assert slug("agentcoma:/data/agentcoma_test.csv") == "agentcoma_test"
    assert slug("a b/ü!") == "ü-"


def test_every_study_has_a_preset_that_asks_as_its_paper_does() -> None:
    presets = {name: cli.preset(name) for name in STUDIES}
    assert all(p.name == name for name, p in presets.items())
    agentcoma = presets["agentcoma"].asking
    assert (agentcoma.few_shot, agentcoma.also) == ("2", "self-ask")
    assert (agentcoma.answer_tokens, agentcoma.cot_tokens, presets["stad"].asking.answer_tokens) == (2048, 2048, 2000)
    gsm = presets["compositional-gsm"].asking
    assert (gsm.few_shot, gsm.preamble, gsm.code) == ("8", "both", True)
    collapse = presets["composition-collapse"].asking
    assert (collapse.answer_tokens, collapse.cot_tokens, collapse.thinking) == (512, 1024, False)
    with pytest.raises(InputError, match="no such study; use one of agentcoma"):
        cli.preset("agent")


def test_without_pairs_every_model_is_set_against_the_first_one(tmp_path: Path) -> None:
    spec = read_spec(_file(tmp_path, "data: [d]\nmodels: [a, b, c]\n"))
    assert [(p.kind, p.a, p.b) for p in spec.pairs] == [("reference", "b", "a"), ("reference", "c", "a")]


def test_of_several_trainings_only_those_that_ran_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    def training(seed: int, shipped: bool) -> Any:
        return SimpleNamespace(seed=seed, shipped=shipped, folders=["low"], model=lambda dose: f"{seed}/{dose}")

    trainings = [training(0, True), training(3, False)]
    made = [validity._of(StudyModel("m", "m", {}, {}), one, "low") for one in trainings]
    monkeypatch.setattr(validity, "_trainings", lambda _: trainings)
    ran: Any = SimpleNamespace(spec=None, runs=[SimpleNamespace(model=made[1], path=Path("r"))])
    assert validity._examined(ran) == [(trainings[1], {"low": Path("r")})]


def test_organisms_are_asked_in_their_own_words_and_others_as_published(tmp_path: Path) -> None:
    spec, preset = from_flags(["organism:none"]), cli.preset("agentcoma")
    own = config_of(spec, preset, {}, spec.models[0], "organism:mixed")
    assert (own.format, own.prompting, own.limit, own.asking.few_shot) == (None, None, 80, None)
    real = config_of(spec, preset, {}, spec.models[0], "cases.jsonl")
    assert (real.format, real.prompting, real.limit, real.asking.few_shot) == ("cot", "raw", None, "2")
    changed = config_of(spec, preset, {"prompting": "chat", "format": "xml"}, spec.models[0], "cases.jsonl")
    assert (changed.format, changed.prompting) == ("xml", "chat")


def test_flags_replace_single_choices_of_a_preset() -> None:
    spec, preset = from_flags(["m"]), cli.preset("agentcoma")
    given = {
        "asking": {"few_shot": "1", "compat": "agentcoma"},
        "serving": {"engine": "openai", "base_url": "http://h"},
    }
    made = config_of(spec, preset, given, spec.models[0], "cases.jsonl")
    assert (made.asking.few_shot, made.asking.also, made.asking.compat) == ("1", "self-ask", "agentcoma")
    assert made.serving.engine == "openai"
    named = replace(spec.models[0], options={"engine": "openai", "base_url": "http://own", "batch_size": 2})
    made = config_of(replace(spec, limit=5), preset, {**given, "batch_size": 9}, named, "organism:mixed")
    assert (made.serving.base_url, made.batch_size, made.limit) == ("http://own", 2, 5)
    here = config_of(spec, preset, {"serving": {"concurrency": 2}}, spec.models[0], "cases.jsonl")
    assert here.serving.concurrency == 2, "an option of a study is for those of its models that have it"


def test_trainings_are_added_by_the_study_that_takes_them_and_refused_by_others() -> None:
    spec = Spec((), series=("a",))
    preset = cli.preset("stad")
    assert running._with_series(replace(preset, models=lambda given: replace(given, limit=7)), spec).limit == 7
    assert running._with_series(preset, Spec(())) == Spec(())
    with pytest.raises(InputError, match="study stad: takes no --series"):
        running._with_series(preset, spec)
    with pytest.raises(InputError, match="study stad: takes no --series"):
        running._with_series(preset, Spec((), only_series=True))


def test_models_data_and_names_are_checked_before_the_first_run(tmp_path: Path) -> None:
    known, data = StudyModel("organism:none", "a-"), ("organism:mixed",)
    wrong: list[tuple[Sequence[StudyModel], Sequence[str], str]] = [
        ([known, StudyModel("no-folder", "b")], data, "--model no-folder: no such folder"),
        ([known, StudyModel("organism:twin", "a?")], data, "two labels differ only in punctuation"),
        ([known], [*data, "none.jsonl"], "--data none.jsonl"),
        ([known], ["x/a.jsonl", "y/a.jsonl"], "have the same name; rename one file"),
        ([known, StudyModel("organism:twin", "b")], data, ""),
    ]
    for models, of, said in wrong:
        study = Study(Spec(tuple(models)), cli.preset("agentcoma"), tmp_path, tuple(of))
        if said:
            with pytest.raises(InputError, match=said):
                running._planned(study, {})
        else:
            assert [r.path.name for r in running._planned(study, {})] == ["a---mixed", "b--mixed"]
    served = StudyModel("any-name", "s", options={"engine": "openai", "base_url": "http://x"})
    (one,) = running._planned(Study(Spec((served,)), cli.preset("agentcoma"), tmp_path, data), {})
    assert one.label == "s", "a server's model is no folder here"


_BEGUN = Study(Spec((), ("organism:mixed",), limit=8, seed=3), STUDIES["agentcoma"], Path(), ("organism:mixed",))


@pytest.mark.parametrize(("changed", "said"), [
    ({}, ""), ({"spec": replace(_BEGUN.spec, probe_cases=4)}, ""),
    ({"spec": replace(_BEGUN.spec, seed=4)}, "seed was 3, is 4"),
    ({"spec": replace(_BEGUN.spec, limit=None)}, "limit was 8, is "),
    ({"preset": STUDIES["stad"]}, "study was agentcoma, is stad"),
    ({"data": ("organism:mixed", "organism:pairs")}, "data "), ({"data": ("organism:pairs",)}, "data "),
])  # fmt: skip
def test_a_begun_study_goes_on_only_with_the_same_data_limit_and_seed(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    running._same_study(tmp_path, replace(_BEGUN, preset=STUDIES["stad"]))  # nothing is there yet
    write_json(tmp_path / "study.json", running._document(_BEGUN, ()))
    with pytest.raises(InputError, match="holds another study") if said else nullcontext() as found:
        running._same_study(tmp_path, replace(_BEGUN, **changed))
    assert said in str(found.value) if found is not None else not said


def test_every_run_of_a_study_counts_its_unjudged_answers_and_a_failed_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: dict[str, Any] = {"a": (2, None), "b": InputError("no such\nmodel"), "c": (3, "--max-cost"), "d": (0, None),
                            "e": IndexError("in the model")}  # fmt: skip

    def investigate(config: Any, path: Path, **_: Any) -> Any:
        if isinstance(end := ends[path.name], Exception):
            raise end
        return SimpleNamespace(evaluated=SimpleNamespace(n_invalid=end[0], stopped=end[1]))

    monkeypatch.setattr(running.job, "investigate", investigate)
    monkeypatch.setattr(running, "config_of", lambda *_: None)
    found = Study(Spec(()), cli.preset("stad"), tmp_path, ())
    (tmp_path / "failed-a.txt").write_text("of an earlier try")
    reporter = Reporter(tmp_path / "log.txt", quiet=True)
    for name in ends:
        run = StudyRun(StudyModel(name, name), "data", tmp_path / name)
        running._run(found, run, {}, True, reporter, True)
    assert [r.path.name for r in found.runs] == ["a", "c", "d"] and found.n_invalid == 5
    broken = "unexpected IndexError: in the model (traceback: failed-e.txt)"
    assert found.failed == {"b": "no such model", "e": broken}
    assert [p.name for p in tmp_path.glob("failed-*")] == ["failed-e.txt"], "of a defect, and of no earlier try"
    assert "in investigate" in (tmp_path / "failed-e.txt").read_text()
    assert found.stopped == ["c: stopped by --max-cost; the same command continues"]
    assert "b: failed: no such model" in (tmp_path / "log.txt").read_text()
    ends["a"] = OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="full"):
        running._run(found, StudyRun(StudyModel("a", "a"), "data", tmp_path / "a"), {}, True, reporter, True)


def test_cases_of_a_depth_go_by_their_bin_and_belong_to_the_families_that_are_asked_for() -> None:
    about = (("a", "x", 4, None), ("b", "x", 5, 4), ("c", "x", 4, 6), ("d", "y", 4, None), ("e", "x", 4, None))
    cases = {c: SimpleNamespace(family=f, depth=d, depth_bin=b) for c, f, d, b in about}
    assert by_depth(cases, {"a", "b", "c", "d"}, 4, ("x",)) == ["a", "b"]


def test_a_file_with_trainings_and_no_models_has_all_doses(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("series: [s]\n")
    found = read_spec(tmp_path / "m.yaml")
    assert [m.model for m in found.models] == [f"organism:{dose}" for dose in DOSES] and found.series == ("s",)
    (tmp_path / "m.yaml").write_text("series: []\n")
    with pytest.raises(InputError, match="field 'models'"):
        read_spec(tmp_path / "m.yaml")
