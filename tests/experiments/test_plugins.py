"""Files of one's own with ``--plugin``: what they bring is known by name, what is wrong with them is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.evaluation import Case
from composcope.evaluation.benchmarks import load as load_cases
from composcope.experiments import plugins
from composcope.experiments.config import PLUGIN_PROBES, Config
from composcope.experiments.run import provenance

READER = "from composcope.evaluation import Case\n\ndef read(file):\n    return [Case('a', 'Q?', file)]\n\n"


def _file(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_benchmark_of_a_plugin_is_read_by_its_name(tmp_path: Path) -> None:
    path = _file(tmp_path, READER + "BENCHMARKS = {'one-case': read}\n")
    assert plugins.load(path) == {"BENCHMARKS": ("one-case",)}
    assert plugins.load(path) == {"BENCHMARKS": ("one-case",)}  # naming it twice is no mistake
    assert load_cases("one-case:yes") == [Case("a", "Q?", "yes")]
    assert {"file": "mine.py"}.items() <= provenance.plugin_files()[-1].items() or len(provenance.plugin_files()) > 1


def test_probes_of_a_plugin_run_beside_the_others(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such probe"):
        Config(model="organism:control", benchmark="organism:mixed", probes=("pulse",))
    plugins.load(_file(tmp_path, "def pulse(lm, examples): ...\n\nPROBES = {'pulse': pulse}\n"))
    assert Config(model="organism:control", benchmark="organism:mixed", probes=("pulse",)).probes == ("pulse",)
    assert Config(model="organism:control", benchmark="organism:mixed").probes[-1] == "pulse"
    del PLUGIN_PROBES["pulse"]


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("x = 1\n", "defines nothing; add a dictionary"),
        ("def broken(:\n", r"broken\.py:1: SyntaxError"),
        ("\nimport no_such_module_at_all\n", r"broken\.py:2: ModuleNotFoundError"),
        ("PROBES = ['a']\n", "PROBES is .*; give a dictionary"),
        ("PROBES = {'lookback': print}\n", r"PROBES\['lookback'\] is taken"),
        ("PROTOCOLS = {'double-gate': print}\n", r"PROTOCOLS\['double-gate'\] is taken"),
        ("FIGURES = {'mink': print}\n", r"FIGURES\['mink'\] is taken"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_one_error_with_file_and_fix(tmp_path: Path, text: str, needle: str) -> None:
    with pytest.raises(InputError, match=needle):
        plugins.load(_file(tmp_path, text, "broken.py"))


def test_a_plugin_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.py: no such file"):
        plugins.load(tmp_path / "nowhere.py")
