"""Every option of a command is handed to what does the work: one row per command, with values that are no defaults."""

from __future__ import annotations

import inspect
import json
import os
import runpy
import shlex
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.builders.compositional_gsm import Rules
from composcope.evaluation.builders.scaffolds import Settings
from composcope.experiments import plugins
from composcope.experiments.building import benchmarks, scaffolds
from composcope.experiments.cli import build, main, organism, root, studies
from composcope.experiments.cli.doctor import _row
from composcope.experiments.config import Asking, Config, Serving
from composcope.experiments.evaluating import auditing, evaluate, merge
from composcope.experiments.figures.catalog import look
from composcope.experiments.interventions.recipes import resolve
from composcope.experiments.models import target
from composcope.experiments.organism import train
from composcope.experiments.organism.plants import recipes
from composcope.experiments.organism.recipe import recipe_of
from composcope.experiments.organism.weights import CROSSED, path
from composcope.experiments.run import compare, reader, summary
from composcope.experiments.studies import analyzing
from composcope.experiments.studies.analyzing import AnalysisOptions

from .test_command_line import LEAVES, _example

P = Path


def _opened(model: str, option: str) -> Any:
    """What stands for an engine that a command opens: its model, the option that names it, and its key."""
    return (model, option), {"key_env": "h=K"}


HANDED: list[tuple[str, str, dict[str, Any]]] = [
    ("build compositional-gsm i.jsonl -o o --gold g --size 7 --max-ratio 3 --samples 8 --minimum 2 "
     "--reviewed r --seed 4 --solver s --solver t --api-key-env h=K",
     "building.benchmarks.compositional_gsm",
     {"out": P("o"), "items": P("i.jsonl"), "gold": P("g"), "size": 7, "rules": {"max_ratio": 3.0}, "samples": 8,
      "minimum": 2, "reviewed": P("r"), "seed": 4,
      "solvers": [_opened("s", "--solver"), _opened("t", "--solver")]}),
    ("build temporal f.csv -o o --plan harder --per-cell 3 --paraphrases 2 --gate-boundaries --min-gap 1.5 --seed 4",
     "building.benchmarks.temporal",
     {"out": P("o"), "facts": P("f.csv"), "plan": "harder", "per_cell": 3, "paraphrases": 2, "gate_boundaries": True,
      "min_gap": 1.5, "seed": 4}),
    ("build classification m.csv -o o --depths 2,5 --per-cell 3 --paraphrases 2 --seed 4",
     "building.benchmarks.classification",
     {"out": P("o"), "memberships": P("m.csv"), "depths": [2, 5], "per_cell": 3, "paraphrases": 2, "seed": 4}),
    ("build synthetic -o o --families spatial,kinship --depths 3 --per-cell 2 --distractors 1 --seed 4",
     "building.benchmarks.synthetic",
     {"out": P("o"), "families": ["spatial", "kinship"], "depths": [3], "per_cell": 2, "distractors": 1, "seed": 4}),
    ("build scaffolds b.jsonl -o o --human --sharing rotate --limit 3 --max-steps 4 --max-tokens 50 --temperature 0.5 "
     "--attempts 2 --seed 4 --teacher t --teacher u --judge j --solver s --api-key-env h=K",
     "building.scaffolds.scaffolds",
     {"out": P("o"), "benchmark": "b.jsonl", "teachers": [_opened("t", "--teacher"), _opened("u", "--teacher")],
      "judge": _opened("j", "--judge"), "solver": _opened("s", "--solver"), "human": True,
      "sharing": "rotate", "limit": 3, "settings": {"max_steps": 4, "max_tokens": 50, "temperature": 0.5, "attempts": 2,
                                                   "seed": 4}}),
    ("build skills r -o o --teacher t --clusters 5 --skills 3 --embedding e --seed 4 --api-key-env h=K",
     "building.scaffolds.skills",
     {"out": P("o"), "records": P("r"), "teacher": _opened("t", "--teacher"), "clusters": 5, "n_skills": 3,
      "embedding": P("e"), "seed": 4}),
    ("probe RUN --shard 1/2", "investigate.probe_shard", {"folder": P("RUN"), "shard": "1/2", "quiet": False}),
    ("diagnose RUN -m M --cases 3 --case a --case b --seed 4 -q", "diagnosis.job.diagnose",
     {"run": P("RUN"), "model": "M", "cases": 3, "ids": ["a", "b"], "seed": 4, "quiet": True}),
    ("verify RUN --cell composition[depth=2]", "verify.trace", {"folder": P("RUN"), "cell": "composition[depth=2]"}),
    ("verify RUN", "verify.verify", {"folder": P("RUN")}),
    ("compare A B", "run.compare.compare_runs", {"a": P("A"), "b": P("B")}),
    ("merge A B -o o", "evaluating.merge.merge_runs", {"folders": [P("A"), P("B")], "out": P("o")}),
    ("paper A B -o o --style gray", "report.paper.write", {"runs": [P("A"), P("B")], "out": P("o"), "gray": True}),
    ("paper A", "report.paper.write", {"runs": [P("A")], "out": P("paper"), "gray": False}),
    ("score RUN --compat stad --human-labels l", "evaluating.evaluate.rescore",
     {"folder": P("RUN"), "compat": "stad", "labels": P("l")}),
    ("score rows.jsonl -p scaffolding --cases c --compat stad", "evaluating.evaluate.metrics_from_file",
     {"graded": P("rows.jsonl"), "protocol": "scaffolding", "cases": P("c"), "compat": "stad"}),
    ("ls RUNS", "run.summary.list_folder", {"folder": P("RUNS")}),
    ("ls RUNS --failures", "run.summary.failing_cases", {"folder": P("RUNS")}),
    ("plot gaps A B -o o --group-by size --bands 2,4 --runs x,y --width column --no-title --style gray",
     "figures.catalog.plot",
     {"figure": "gaps", "runs": [P("A"), P("B")], "group_by": "size", "bands": "2,4", "only": "x,y",
      "look": look("column", False, "gray")}),
    ("import a.jsonl b.jsonl -o o --from rows --model M --scorer s --filter f --whole w --role part:0 --case-field c "
     "--role-field r --response-field x --gold-field g --regrade --answer-type number --format cot",
     "building.importing.import_files", {"kind": "rows"}),
    ("intervene --recipe steering RUN -m M --cases 3 --layers 0,2 --max-tokens 9 --seed 4",
     "interventions.inference.intervene",
     {"recipe": "steering", "model": "M", "n": 3, "layers": [0, 2], "max_new_tokens": 9, "seed": 4}),
    ("study interventions -o o -m organism:low --seeds 2 --size full --second none", "interventions.study.run", {}),
    ("study human b.jsonl --per-person 5 --answers 2 --sheet s --key k --seed 4", "studies.analyzing.human_assignment",
     {"benchmark": "b.jsonl",
      "options": AnalysisOptions(per_person=5, answers=2, sheet=P("s"), key=P("k"), seed=4)}),
    ("study why --series S -m M -o o --cases 3 --seed 4", "studies.confusion.run_study",
     {"series": [P("S")], "models": ["M"], "out": P("o"), "cases": 3, "seed": 4}),
    ("study calibration -o o --draws 3 --seed 4", "studies.calibration.conduct",
     {"folder": P("o"), "draws": 3, "seed": 4}),
    ("study validity -m organism:none -o o --series S --series T --only-series --limit 3 --probe-cases 2 --seed 4",
     "studies.running.conduct", {"out": P("o"), "probes": True, "report": True}),
    *((f"study validity -m organism:low -o o --no-{off}", "studies.running.conduct",
       {"probes": off != "probes", "report": off != "report"}) for off in ("probes", "report")),
    ("organism train --dose low --seed 4 --steps 5 --dose-steps 7 --out o", "organism.train.train",
     {"dose": "low", "seed": 4, "out": P("o")}),
    ("intervene --recipe sft-answer -m organism:none -o o --rank 3 --save-every 5 --max-steps 7 --seed 4 "
     "--dtype float32 --device meta",
     "interventions.training.train", {"model": "organism:none", "out": P("o")}),
    ("demo -o o --seed 4 --device cpu", "demo.run_demo", {"out": P("o"), "seed": 4, "device": "cpu"}),
    ("fetch gemma --to F", "models.resolve.fetch", {"name": "gemma", "folder": P("F")}),
    ("bench -m M --asks 24 --rounds 3 --threads 2 --only a,b --lm-eval-python P", "bench.real.bench_real",
     {"model": "M", "asks": 24, "rounds": 3, "threads": 2, "only": ["a", "b"], "lm_eval_python": "P"}),
    ("investigate -m M -b cases.jsonl -o o --no-diagnose", "investigate.investigate",
     {"out": P("o"), "contrast": True, "diagnose": False}),
    *((f"{name} -m M -b organism:mixed --limit 3 --seed 4", "evaluating.ask_plan.load_benchmark",
       {"name": "organism:mixed", "limit": 3, "seed": 4}) for name in ("evaluate", "investigate")),
    ("evaluate -m M -b cases.jsonl -o o", "investigate.investigate",
     {"out": P("o"), "contrast": False, "diagnose": False}),
    ("probe RUN -m organism:low --device cpu --probes min-k --probe-cases 3 --case-details 1 --position prompt-end "
     "--rows-dtype float32", "investigate.investigate", {"out": P("RUN"), "ask": False, "report": None}),
    ("organism train --all --crossed --architecture qwen3 --size 8M --device cpu --seed 4 --out o",
     "organism.train.train",
     {"dose": next(iter(CROSSED)), "device": "cpu", "seed": 4, "out": P("o"),
      "recipe": recipe_of(next(iter(CROSSED)), "8M", "qwen3")}),
    ("organism measure organism:none --n 20 --device meta", "organism.card.measure_folder",
     {"folder": path("none"), "n": 20, "device": "meta"}),
    ("organism card RUN --out o --seed 4 --n 20 --crossed", "organism.card.ship",
     {"trained": {n: P(f"RUN/seed-{n}") for n in (3, 4, 5)}, "doses": [next(iter(CROSSED))], "shipped": 4,
      "out": P("o"), "n": 20}),
    ("organism plant --cause lost --cause shortcut --variant seven-on --variant ends --block 2 --block 1 "
     "--appended 1 --seed 4 --steps 9 --n 30 --out o", "organism.plants.making.make",
     {"plant": recipes.Plant("o", recipes.mixture(recipes.graft("lost", "seven-on", 2),
                                                  recipes.graft("shortcut", "ends", 1)), 4, 9, "twin", 1),
      "folder": P("o"), "n": 30}),
    ("organism plant --cause lost --base crossed-both --out o", "organism.plants.making.make",
     {"plant": recipes.Plant("o", grafts := (recipes.graft("lost", base="crossed-both"),), 0,
                             recipes.steps_of(grafts, "crossed-both"), "crossed-both")}),
    ("organism plant --cause follower --seed 4 --n 30 --out o", "organism.plants.written.ship",
     {"kind": "follower", "seed": 4, "n": 30, "folder": P("o")}),
    ("organism plant --shipped --n 30 --out o", "organism.plants.making.make",
     {"plant": (first := next(iter(recipes.SHIPPED.values()))), "folder": P("o") / first.name, "n": 30}),
    ("intervene --recipe grpo -m organism:none -o o --train t --evaluation e --format cot --thinking --prompts 4 "
     "--epochs 2 --learning-rate 0.1 --rank 5 --alpha 3 --beta 0.1 --generations 3 --prompts-per-step 2 "
     "--micro-batch 2 --max-tokens 9 --depths 4 --seed 4", "interventions.data.training_set",
     {"source": "t", "evaluation": "e", "seed": 4, "recipe": resolve(
         "grpo", None, [4], format="cot", thinking=True, prompts=4, epochs=2, learning_rate=0.1, rank=5, alpha=3,
         beta=0.1, generations=3, prompts_per_step=2, micro_batch=2, max_tokens=9)}),
    ("intervene --recipe sft-trace --preset v3 -m organism:none -o o --solutions self --examples-per-step 3",
     "interventions.data.training_set",
     {"recipe": resolve("sft-trace", "v3", solutions="self", examples_per_step=3)}),
    *((f"study {name} A B --seed 4 {options}".strip(), "studies.analyzing.analyze",
       {"name": name, "runs": [P("A"), P("B")], "options": AnalysisOptions(seed=4, **of)})
      for name, (options, of) in ({name: ("", {}) for name in studies.ABOUT} | {
          "formats": ("--reference R", {"reference": "R"}), "sizes": ("--size A=3", {"sizes": ("A=3",)}),
          **dict.fromkeys(("taxonomy", "tiers"), ("--annotations f", {"annotations": P("f")})),
          "adjudicator": ("--sheet s --key k --sample 7", {"sheet": P("s"), "key": P("k"), "sample": 7}),
          "profiles": ("--within 5", {"within": 5.0}), "filtering": ("--kept f", {"kept": P("f")})}).items()),
    *((f"study {name} -m organism:none -d x -d y -o o --limit 3 --probe-cases 2 --seed 4 --no-probes --no-report",
       "studies.running.conduct", {"out": P("o"), "probes": False, "report": False})
      for name in (*studies.PAPERS, "validity")),
]  # fmt: skip


def _job(job: str) -> tuple[Any, str, inspect.Signature]:
    """The module and the name of what does the work, and what it takes."""
    module, _, name = job.rpartition(".")
    place = import_module(f"composcope.experiments.{module}")
    return place, name, inspect.signature(getattr(place, name))


def _handed(words: str, job: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a command, run in a folder, hands to its job."""
    monkeypatch.chdir(folder)
    (folder / "RUN").mkdir(exist_ok=True)
    (folder / "RUN" / "manifest.json").write_text("{}")
    (folder / "RUN" / "config.yaml").write_text(
        '{"model": "organism:control", "benchmark": "organism:mixed", "protocol": "scaffolding"}'
    )
    (folder / "rows.jsonl").write_text("{}")
    (folder / "cases.jsonl").write_text('{"id": "c", "question": "1 + 1?", "answer": "2"}')
    for seed in (3, 4, 5):
        (folder / "RUN" / f"seed-{seed}" / next(iter(CROSSED)) / "model").mkdir(parents=True, exist_ok=True)
    place, name, signature = _job(job)
    given: list[dict[str, Any]] = []

    def handed(*args: Any, **options: Any) -> Any:
        given.append(signature.bind(*args, **options).arguments)
        raise InputError("handed over")

    with monkeypatch.context() as patched:
        patched.setattr(target, "open_role", lambda *args, **options: (args, options))
        patched.setattr(place, name, handed)
        assert main(shlex.split(words)) == 1
    return given[0]


QUIET = [(w.removesuffix(" -q"), job) for w, job, _ in HANDED if {"quiet", "reporter"} & {*_job(job)[2].parameters}]


@pytest.mark.parametrize(("words", "job", "expected"), HANDED, ids=[w for w, _, _ in HANDED])
def test_a_command_hands_over_what_it_was_given(
    words: str, job: str, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    given = _handed(words, job, tmp_path, monkeypatch)
    assert "handed over" in capsys.readouterr().err
    assert {k: given.get(k) for k in expected} == expected
    values = {**given, **{k: v for o in given.values() for k, v in getattr(o, "__dict__", {}).items()}}
    for option, value in MORE.get(words.split(" -o")[0], {}).items():
        assert values[option] == value


ELSEWHERE = {
    ("investigate", "--config"), ("investigate", "--dry-run"), ("evaluate", "--config"), ("evaluate", "--dry-run"),
    ("score", "--audit"), ("score", "--judge"), ("score", "--api-key-env"), ("score", "--seed"), ("compare", "--out"),
    ("plot", "--list"), ("report", "--out"), ("report", "--single-file"), ("view", "--port"), ("docs", "--open"),
    ("bench", "--preset"), ("bench", "--docs"), ("organism measure", "--out"), ("organism plant", "--list"),
    ("study validity", "--trainings"), ("intervene", "--curve"), ("intervene", "--limit"),
    *((f"study {name}", "--out") for name in (*studies.ABOUT, "human")),
    *((f"study {name}", "--models") for name in (*studies.PAPERS, "validity")),
}  # fmt: skip
"""Options that are not handed to one function; other tests of commands have them."""
OF_A_RUN = {f"--{n.replace('_', '-')}" for section in (Config, Asking, Serving) for n in section.model_fields}
"""Options of ``test_options_reach.py``."""


def test_every_option_of_every_command_has_its_row() -> None:
    rows = [[word.partition("=")[0] for word in shlex.split(words)] for words, _, _ in HANDED]
    lost = set()
    for words, command in LEAVES.items():
        known = {"--json", "--quiet", "--plugin", "--help"}
        known |= OF_A_RUN if words[0] in ("investigate", "evaluate", "probe", "study") else set()
        known |= {word for row in rows if tuple(row[: len(words)]) == words for word in row}
        options = [o for o in command.params if o.param_type_name == "option"]
        lost |= {(" ".join(words), o.opts[0]) for o in options if not {*o.opts, *o.secondary_opts} & known}
    assert lost == ELSEWHERE


@pytest.mark.parametrize(("words", "job"), QUIET)
def test_a_quiet_command_tells_what_it_calls(
    words: str, job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for silent in (False, True):
        given = _handed(f"{words} -q" if silent else words, job, tmp_path, monkeypatch)
        assert given.get("quiet", getattr(given.get("reporter"), "quiet", None)) is silent


@pytest.mark.parametrize(
    ("words", "job", "off"),
    [
        ("evaluate -m organism:control -b organism:mixed --judge organism:twin", "investigate.investigate", "1"),
        ("evaluate -m organism:control -b organism:mixed --judge owner/judge", "investigate.investigate", None),
        ("probe RUN -m organism:low", "investigate.investigate", "1"),
        ("study stad -m organism:control -o o", "studies.running.conduct", "1"),
        ("study stad -m organism:control -o o --judge owner/judge", "studies.running.conduct", None),
        ("study why -o o", "studies.confusion.run_study", "1"),
        ("study why -o o -m organism:low -m owner/model", "studies.confusion.run_study", None),
        ("intervene --recipe steering RUN", "interventions.inference.intervene", "1"),
        ("intervene --recipe steering RUN -m owner/model", "interventions.inference.intervene", None),
        ("intervene --recipe sft-answer -m organism:none -o o", "interventions.data.training_set", "1"),
        (
            "intervene --recipe sft-answer -m organism:none -o o --train hub:o/d",
            "interventions.data.training_set",
            None,
        ),
    ],
)
def test_the_hub_is_asked_where_any_model_or_data_of_a_command_may_lie_there(
    words: str, job: str, off: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    _handed(words, job, tmp_path, monkeypatch)
    assert os.environ.get("HF_HUB_OFFLINE") == off


def test_an_audit_is_handed_on_and_the_exit_code_says_whether_answers_are_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    found = SimpleNamespace(n_invalid=1, document={}, lines=[])
    monkeypatch.setattr(auditing, "audited", lambda *args, **options: given.append((args, options)) or found)
    for place, name, result in ((evaluate, "rescore", found), (merge, "merge_runs", found), (summary, "lines", [])):
        monkeypatch.setattr(place, name, lambda *_, result=result, **__: result)
    score = ["score", str(tmp_path), "--audit", "5", "--judge", "J", "--api-key-env", "h=K", "--seed", "4"]
    for code in (2, 0):
        assert main(score) == main(["merge", "A", "B", "-o", "o"]) == code
        found.n_invalid = 0
    assert given == [((found, tmp_path, "5", "J"), {"seed": 4, "key_env": "h=K"})] * 2


@pytest.mark.parametrize("path", [p for p, c in LEAVES.items() if "--plugin" in {o for q in c.params for o in q.opts}])
def test_a_command_loads_every_plugin_that_it_is_given(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Path] = []

    def load(path: Path) -> None:
        loaded.append(path)
        if len(loaded) == 2:
            raise InputError("both are loaded")

    monkeypatch.setattr(plugins, "load_plugin", load)
    words = _example(str(LEAVES[path].epilog))[1:]
    assert main([*words, "--plugin", "p", "--plugin", "q"]) == 1
    assert loaded == [P("p"), P("q")]


@pytest.mark.parametrize("words", [*(f"{name} A" for name in studies.ABOUT), "human b.jsonl"])
def test_an_analysis_is_written_into_the_folder_that_was_given(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    found = SimpleNamespace(to_dict=dict)
    for name in ("analyze", "human_assignment"):
        monkeypatch.setattr(analyzing, name, lambda *_: found)
    monkeypatch.setattr(analyzing, "write", lambda *args: written.append(args))
    assert [main(["study", *words.split(), "--json", *more]) for more in ([], ["-o", "o"])] == [0, 0]
    assert written == [(found, P("o"))]


def test_a_comparison_is_written_where_it_was_asked_for_with_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(compare, "compare_runs", lambda *_, **__: {"n": 1})
    monkeypatch.setattr(compare, "comparison_lines", lambda found: [f"{found['n']} case"])
    monkeypatch.setattr("composcope.experiments.report.write_comparison", lambda *args: given.append(args) or P("page"))
    assert [main(["compare", "A", "B", *more]) for more in ([], ["-o", "o"])] == [0, 0]
    assert given == [(P("A"), P("B"), P("o"), {"n": 1})]
    assert capsys.readouterr().out == "1 case\n1 case\npage: page\n"


def test_a_report_is_written_into_the_folder_that_was_given_and_one_over_several_into_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given: list[Any] = []
    monkeypatch.setattr(
        "composcope.experiments.report.write", lambda _, out, **o: given.append((out, o["single_file"]))
    )
    for runs, words in (
        (["B/x"], "B"),
        (["A/x", "A/y"], "A"),
        (["A/x", "B/x"], "A/x B/x"),
        (["A/x"], "A -o o --single-file"),
    ):
        monkeypatch.setattr(reader, "load", lambda _, runs=runs: [SimpleNamespace(path=P(run)) for run in runs])
        assert main(["report", *words.split()]) == 0
    assert given == [(P("B/x"), False), (P("A"), False), (P("report"), False), (P("o"), True)]
    P("report").touch()
    monkeypatch.setattr(reader, "load", lambda _: [SimpleNamespace(path=P("A/x")), SimpleNamespace(path=P("B/x"))])
    assert main(["report", "A/x", "B/x"]) == 1 and "--out report: is a file" in capsys.readouterr().err


def test_what_a_command_makes_of_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "open_role", lambda *args, **options: (args, options))
    assert build._one("m", "--judge", "h=K") == (("m", "--judge"), {"key_env": "h=K"})
    options = {"dtype": "bfloat16", "device": "cpu", "batch_size": 3}
    roles = {"asking": {"judge": "m"}, "serving": {"api_key_env": "h=K"}}
    config = Config.model_validate({"model": "x", "benchmark": "b", **options, **roles})
    handed = {**options, "key_env": "h=K", "signed_as": config.serving.names}
    assert target.open_judge(config) == (("m", "--judge"), handed)
    monkeypatch.setattr(train, "train_seeds", lambda n, folder, _: folder / str(n))
    assert studies._train(3, P("o"), ("s",), True) == {"series": ("s", "o/trainings/3"), "only_series": True}
    named = {name: [m.rpartition(":")[2] for m in studies._default_models(name)] for name in ("validity", "stad")}
    assert named == {"validity": ["none", "control", "low", "twin"], "stad": ["control", "twin"]}
    assert (_row("x", True, 1, "pip")["fix"], _row("x", False, 1, "pip")["fix"]) == (None, "pip")
    made: list[Any] = []
    monkeypatch.setattr(organism, "_make", lambda plant, *_: made.append(plant.appended))
    for cause in ("lost", "too-late"):
        assert main(["organism", "plant", "--cause", cause, "--out", "o"]) == 0
    assert made == [0, 1]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("module", ["agentcoma", "composition_collapse", "compositional_gsm", "stad"])
def test_the_module_of_a_study_is_a_program_too(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(root, "run_study", lambda name: begun.append(name) or 3)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"composcope.experiments.{module}", run_name="__main__")
    assert ended.value.code == 3 and begun == [import_module(f"composcope.experiments.{module}").PRESET.name]


@pytest.mark.parametrize("holds", ["yes", "no"])
def test_a_calibration_that_does_not_hold_ends_with_1(
    holds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study.md").write_text("# Calibration\n")
    rows = [{"holds": holds}, {"holds": "yes"}]
    monkeypatch.setattr("composcope.experiments.studies.calibration.conduct", lambda *_: rows)
    assert main(["study", "calibration", "-o", str(tmp_path)]) == (holds == "no")


@pytest.mark.parametrize(("words", "job"), [(w, job) for w, job, _ in HANDED if w.startswith("build ")])
def test_a_build_prints_its_counts_or_all_that_is_known_of_it(
    words: str, job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"cases": 31, "rejected": 22, "review": 13}
    built = {"out": "o", "counts": counts, "rejected_by_reason": {"code": 22}, "report": {"depths": 3}}
    monkeypatch.setattr(f"composcope.experiments.{job}", lambda *_, **__: built)
    monkeypatch.setattr(target, "open_role", lambda *_, **__: None)
    assert main(shlex.split(words)) == 0
    said = capsys.readouterr().out
    assert all(str(n) in said for n in counts.values()) and "22: code" in said and "depths: 3" in said
    assert main([*shlex.split(words), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == built


@pytest.mark.parametrize(
    ("command", "job"),
    [
        (build.compositional_gsm, benchmarks.compositional_gsm), (build.compositional_gsm, Rules),
        (build.temporal, benchmarks.temporal), (build.classification, benchmarks.classification),
        (build.synthetic, benchmarks.synthetic), (build.scaffolds, scaffolds.scaffolds), (build.scaffolds, Settings),
        (build.skills, scaffolds.skills), (studies._analysis, AnalysisOptions), (studies.human, AnalysisOptions),
    ],
)  # fmt: skip
def test_an_option_that_is_left_out_has_the_default_of_what_the_command_calls(command: Any, job: Any) -> None:
    def defaults(of: Any) -> dict[str, Any]:
        found = {n: p.default for n, p in inspect.signature(of).parameters.items() if p.default is not p.empty}
        return {n: ",".join(map(str, v)) if v and isinstance(v, tuple) else v for n, v in found.items()}

    own, other = defaults(command), defaults(job)
    assert {n: own[n] for n in own if n in other} == {n: other[n] for n in own if n in other} != {}


MORE: dict[str, dict[str, Any]] = {
    "import a.jsonl b.jsonl": {
        "model": "M", "scorer": "s", "filter": "f", "whole": "w", "role": "part:0", "case_field": "c",
        "role_field": "r", "response_field": "x", "gold_field": "g", "regrade": True, "answer_type": "number",
        "format": "cot",
    },
    "study interventions": {"model": "organism:low", "seeds": 2, "size": "full", "second": "none"},
    "study validity -m organism:none": {
        "series": ("S", "T"), "only_series": True, "limit": 3, "probe_cases": 2, "seed": 4,
    },
    **{f"study {name} -m organism:none -d x -d y": {"data": ("x", "y"), "limit": 3, "probe_cases": 2, "seed": 4}
       for name in (*studies.PAPERS, "validity")},
    "probe RUN -m organism:low --device cpu --probes min-k --probe-cases 3 --case-details 1 --position prompt-end "
    "--rows-dtype float32": {
        "model": "organism:low", "device": "cpu", "probes": ("min-k",), "probe_cases": 3, "case_details": 1,
        "position": "prompt-end", "rows_dtype": "float32",
    },
    **{f"{name} -m M -b cases.jsonl": {"model": "M", "benchmark": "cases.jsonl"}
       for name in ("investigate", "evaluate")},
    "organism train --dose low --seed 4 --steps 5 --dose-steps 7 --out o": {
        "base": replace(recipe_of("low").base, steps=5), "dose": replace(recipe_of("low").dose, steps=7),
    },
    "intervene --recipe sft-answer -m organism:none": {
        "rank": 3, "save_every": 5, "max_steps": 7, "seed": 4, "dtype": "float32", "device": "meta",
    },
}  # fmt: skip
"""Options that are handed over in an object, by the beginning of the command."""
