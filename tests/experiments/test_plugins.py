"""Files of one's own with ``--plugin``: what they bring is known by name, what is wrong with them is said."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType

import pytest
from exit_codes import done

from composcope.errors import InputError
from composcope.evaluation import Case
from composcope.evaluation.benchmarks import load as load_cases
from composcope.evaluation.protocols import get, metrics_from_rows
from composcope.evaluation.protocols.base import PROTOCOLS
from composcope.experiments import plugins
from composcope.experiments.cli import main
from composcope.experiments.config import Config
from composcope.experiments.console import exits
from composcope.experiments.figures.catalog import FIGURES, draw
from composcope.experiments.run import provenance
from composcope.probes.catalog import PROBES

READER = "from composcope.evaluation import Case\n\ndef read(file):\n    return [Case('a', 'Q?', file)]\n\n"


def _file(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_benchmark_of_a_plugin_is_read_by_its_name(tmp_path: Path) -> None:
    path = _file(tmp_path, READER + "BENCHMARKS = {'one-case': read}\n")
    assert plugins.load_plugin(path) == {"BENCHMARKS": ("one-case",)}
    assert plugins.load_plugin(path) == {"BENCHMARKS": ("one-case",)}  # naming it twice is no mistake
    assert load_cases("one-case:yes") == [Case("a", "Q?", "yes")]
    other = _file(tmp_path, READER + "BENCHMARKS = {'another-case': read}\n", "other.py")
    assert plugins.load_plugin(other) == {"BENCHMARKS": ("another-case",)}
    hashes = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in (path, other)}
    assert {f["file"]: f["sha256"] for f in provenance.plugin_files()} == hashes


def test_probes_of_a_plugin_run_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROBES, "added", {})
    with pytest.raises(InputError, match="no such probe"):
        Config(model="organism:control", benchmark="organism:mixed", probes=("pulse",))
    plugins.load_plugin(_file(tmp_path, "def pulse(lm, examples): ...\n\nPROBES = {'pulse': pulse}\n"))
    assert Config(model="organism:control", benchmark="organism:mixed", probes=("pulse",)).probes == ("pulse",)
    assert Config(model="organism:control", benchmark="organism:mixed").probes[-1] == "pulse"


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("x = 1\n", "defines nothing; add a dictionary"),
        ("def broken(:\n", r"broken\.py:1: SyntaxError"),
        ("\nimport no_such_module_at_all\n", r"broken\.py:2: ModuleNotFoundError"),
        ("def f():\n    return 1 / 0\nf()\n", r"broken\.py:2: ZeroDivisionError"),
        ("from composcope.errors import InputError\nraise InputError('no luck')\n", "no luck"),
        ("raise SystemExit(3)\n", r"broken\.py:1: SystemExit"),
        ("def f(lm): ...\nPROBES = {'f': f}\n", r"probe f: f\(lm\) .*function\(lm, examples\)"),
        ("PROBES = ['a']\n", "PROBES is .*; give a dictionary"),
        ("PROBES = {'lookback': print}\n", r"PROBES\['lookback'\] is taken"),
        ("PROTOCOLS = {'double-gate': print}\n", r"PROTOCOLS\['double-gate'\] is taken"),
        ("FIGURES = {'mink': print}\n", r"FIGURES\['mink'\] is taken"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_one_error_with_file_and_fix(tmp_path: Path, text: str, needle: str) -> None:
    file = _file(tmp_path, text, "broken.py")
    for _ in range(2):  # in one process, too
        with pytest.raises(InputError, match=needle):
            plugins.load_plugin(file)


def test_an_error_in_a_plugin_is_said_with_its_line_and_is_no_defect_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PROBES, "added", {})
    monkeypatch.setattr(PROBES, "_given", {})
    path = tmp_path / "crash.py"
    path.write_text("def crash(lm, examples):\n    return lm.nothing\n\nPROBES = {'crash': crash}\n")
    plugins.load_plugin(path)
    assert exits.guarded(lambda: PROBES["crash"].measure(None, []), lambda: "") == exits.USER_ERROR
    line = capsys.readouterr().err
    assert f"{path}, line 2" in line and "'nothing'" in line and "defect" not in line


def test_a_plugin_that_was_edited_is_loaded_again_and_replaces_what_it_defined(tmp_path: Path) -> None:
    for text, names in (("x = 1\n", ()), ("PROBES = {'r1': print}\n", ("r1",)), ("x = 2\n", ()),
                        ("PROBES = {'r2': print}\n", ("r2",)), ("PROBES = {'r2': max}\n", ("r2",))):  # fmt: skip
        path = _file(tmp_path, text, "edited.py")
        if names:
            assert plugins.load_plugin(path) == {"PROBES": names} and all(n in PROBES for n in names)
        else:
            with pytest.raises(InputError, match="defines nothing"):
                plugins.load_plugin(path)
        assert {"r1", "r2"} & set(PROBES) == set(names)
    assert PROBES["r2"].given is max
    loaded = {f["file"]: f["sha256"] for f in provenance.plugin_files()}["edited.py"]
    path.write_text("PROBES = {'r3': print}\n")  # not loaded: what ran is what is recorded
    assert {f["file"]: f["sha256"] for f in provenance.plugin_files()}["edited.py"] == loaded


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("3", "probe three: returned int"),
        ("ProbeResult('three', 5)", "probe three: table is no list"),
        ("ProbeResult('three', [])", "probe three: has neither rows nor tensors"),
        ("ProbeResult('three', [{'quantity': 'x', 'n': 3}])", "row 0 of its table has no 'group', 'value'"),
        ("ProbeResult('three', [], values=[('a', 1.0)])", "probe three: values is no list"),
        ("ProbeResult('three', [], {'h': [1.0]})", "probe three: tensor 'h' is of type list"),
        ("ProbeResult('three', [], {'h': zeros(2, 3)}, {'h': ('example',)})", r"tensor 'h' of shape \(2, 3\)"),
    ],
)
def test_a_probe_that_returns_something_else_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str, said: str
) -> None:
    monkeypatch.setattr(PROBES, "added", {})
    imports = "from torch import zeros\nfrom composcope.probes import ProbeResult\n"
    plugins.load_plugin(_file(tmp_path, f"{imports}PROBES = {{'three': lambda *_: {result}}}\n", "three.py"))
    with pytest.raises(InputError, match=said):
        PROBES["three"].run(None, [], None, None)


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        ("7", "figure seven: returned int"),
        ("Drawing(Figure().subplots(), [], '')", "figure of its Drawing is of type Axes"),
        ("Drawing(Figure(), {'x': [1]}, '')", "rows of its Drawing is of type dict"),
        ("Drawing(Figure(), ['x'], '')", "rows of its Drawing is of type list"),
        ("Drawing(Figure(), [], None)", "caption of its Drawing is of type NoneType"),
    ],
)
def test_a_figure_that_returns_something_else_is_said(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: str, said: str
) -> None:
    monkeypatch.setattr(FIGURES, "added", {})
    imports = "from matplotlib.figure import Figure\nfrom composcope.experiments.figures.drawing import Drawing\n"
    plugins.load_plugin(_file(tmp_path, f"{imports}FIGURES = {{'seven': lambda runs: {drawn}}}\n", "seven.py"))
    with pytest.raises(InputError, match=said):
        draw("seven", [synthetic.make_run(tmp_path / "r", n=6, probes=())])


def test_a_plugin_that_is_not_there_or_no_python_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.py: no such file"):
        plugins.load_plugin(tmp_path / "nowhere.py")
    (tmp_path / "mine.txt").write_text("PROBES = {}\n")
    with pytest.raises(InputError, match=r"mine\.txt: not a Python file; its name must end in \.py"):
        plugins.load_plugin(tmp_path / "mine.txt")


ONE_OF_EACH = """
from dataclasses import dataclass, field
from typing import ClassVar

from composcope.evaluation import Case, Part
from composcope.evaluation.benchmarks import Benchmark
from composcope.evaluation.protocols import About, CaseSet, Entry, Reduction
from composcope.evaluation.protocols.asking import ask_part, ask_whole, pending
from composcope.evaluation.protocols.counting import items, rate
from composcope.experiments.figures.drawing import drawn, need
from composcope.experiments.figures.drawing import figure
from composcope.experiments.figures import style
from composcope.probes.catalog import Probe
from composcope.experiments.studies.study import Preset, StudyTable


def read(file):
    return [Case(f"c{i}", "Is it?", file, parts=(Part("Part?", file),)) for i in range(4)]


@dataclass(frozen=True)
class Twice:
    format: str = "plain"
    max_tokens: int | None = None
    compat: str | None = None
    seed: int = 0
    name: str = field(default="twice", init=False)
    about: ClassVar = About(roles=("whole", "part:N"), asks_parts=True, columns=(("twice", "said yes", "rate"),))

    def asks(self, case, graded):
        parts = [ask_part(case, i, f"part:{i}", p.question, self.format, 8) for i, p in enumerate(case.parts)]
        return pending([*parts, ask_whole(case, "whole", case.question, self.format, 8)], graded)

    def reduce(self, rows, cases=None):
        found = items(rows, cases)
        return Reduction((rate("twice", [i.truth("whole") for i in found], {}, of=found),))


def measure(lm, examples, settings, reporter):
    raise NotImplementedError


@figure("twice-bars", "Said yes", "composcope evaluate -p twice -m MODEL -b CASES", "optional")
def bars(runs):
    rows = [{"run": r.name, **m.to_dict()} for r in runs for m in r.metrics if m.metric == "twice"]
    need(rows, "No run here was asked twice.")
    fig, ax = style.one_panel(3, 3)
    return drawn(fig, rows, "Said yes.", runs)


BENCHMARKS = [Benchmark("yes", read, answer_alone=True)]
PROTOCOLS = [Twice]
PROBES = [Probe("glance", measure, "Glance", "Does it look?", "Higher is more.", cost="{prompts} glances")]
FIGURES = [bars]
STUDIES = [Preset("twice-study", "Twice", "twice", ("yes:yes",), lambda study: [StudyTable("t", "T", [])],
                  ("twice-bars",), about="is it so twice?")]
"""


def test_one_file_brings_one_of_each_and_all_of_them_are_known_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(_file(tmp_path, ONE_OF_EACH, "each.py"))
    run = str(tmp_path / "run")
    how = ["-m", "organism:control", "-b", "yes:yes", "-p", "twice", "--plugin", path]
    assert main(["evaluate", *how, "--out", run]) == done(Path(run))
    assert main(["investigate", *how, "--probes", "glance", "--dry-run"]) == 0
    assert "  glance: 4 glances" in capsys.readouterr().out.replace("8 glances", "4 glances")
    assert main(["plot", "twice-bars", run, "--plugin", path, "--out", str(tmp_path)]) == 0
    assert "twice" in (tmp_path / "twice-bars.csv").read_text()
    assert main(["report", run, "--out", str(tmp_path / "page"), "--plugin", path]) == 0
    page = (tmp_path / "page" / "report.html").read_text()
    assert "said yes" in page and "Said yes" in page
    assert main(["study", "--list", "--plugin", path]) == 0
    assert "twice-study: is it so twice?" in capsys.readouterr().out


OWN = (Path(__file__).resolve().parents[2] / "examples" / "add_protocol.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("was", "now", "needle"),
    [
        ("where, of=cell)", "where)", r"FirstStepGiven\.reduce: rate\(\) missing .*'of'"),
        ("seed=self.seed, of=cell", "of=cell", r"reduce: difference\(\) missing .*'seed'"),
        ("def asks", "def questions", r"FirstStepGiven\.asks: .*; define asks\(self, case, graded\)"),
        (", cases: Mapping[str, Case] | None = None)", ")", r"FirstStepGiven\.reduce: too many .*; define reduce"),
        ('default="first-step-given"', 'default="other"', "field 'name' is 'other'; make it 'first-step-given'"),
        ("return Reduction(tuple(metrics), sets)", "return metrics", r"reduce returns \[Metric.*; return a Reduction"),
        ('    format: str = "plain"\n', "", r"'format'\); give its class each option as a field with a default"),
        ('{"first-step-given": FirstStepGiven}', "[FirstStepGiven()]", "an object; give its class"),
    ],
)
def test_a_protocol_that_could_not_ask_or_count_is_refused_before_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was: str, now: str, needle: str
) -> None:
    monkeypatch.setattr(PROTOCOLS, "added", {})
    monkeypatch.setattr(PROTOCOLS, "_given", {})
    assert was in OWN
    plugins.load_plugin(_file(tmp_path, OWN.replace(was, now), "own.py"))
    with pytest.raises(InputError, match=f"--protocol first-step-given: .*{needle}"):
        get("first-step-given", format="plain")


def test_a_protocol_may_fail_to_count_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROTOCOLS, "added", {})
    monkeypatch.setattr(PROTOCOLS, "_given", {})
    was = "return Reduction(tuple(metrics), sets)"
    own = OWN.replace(was, f"float(max((r.repeat for r in rows), default=None))\n        {was}")  # its argument is None
    assert own != OWN
    plugins.load_plugin(_file(tmp_path, own, "own.py"))
    assert get("first-step-given", format="plain").name == "first-step-given"


def test_a_protocol_needs_no_option_that_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROTOCOLS, "added", {})
    monkeypatch.setattr(PROTOCOLS, "_given", {})
    bare = (
        OWN.replace("    compat: str | None = None\n", "").replace("    seed: int = 0\n", "").replace("self.seed", "0")
    )
    plugins.load_plugin(_file(tmp_path, bare, "own.py"))
    rows = [{"case": "c", "role": role, "outcome": "correct"} for role in ("whole", "part:0")]
    assert metrics_from_rows(rows, "first-step-given").case_set("needs-no-help").ids == ("c",)
