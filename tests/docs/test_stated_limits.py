"""Numbers that the documentation states are those that the product goes by."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import doc_pages
import pytest

from composcope.evaluation import judging, metrics
from composcope.evaluation.engines import http, local, managed, replies, text, transport
from composcope.evaluation.grading import view
from composcope.evaluation.importers import inspect_logs
from composcope.evaluation.protocols import compare
from composcope.evaluation.sandbox import cpython
from composcope.experiments.building import benchmarks
from composcope.experiments.cli import root
from composcope.experiments.diagnosis import job, thresholds
from composcope.experiments.distributed import engine
from composcope.experiments.organism.plants import checks
from composcope.experiments.report import cases
from composcope.experiments.studies import calibration
from composcope.probes import contrast, neurons, trajectory, verdicts
from composcope.probes.neurons import checks as of_neurons
from composcope.probes.neurons import examples as all_neurons

WORDS = {w: i for i, w in enumerate("none one two three four five six seven eight nine ten".split())}
UNITS = {"%": 0.01, "MB": 2**20, "GB": 2**30, "a minute": 60.0, "minutes": 60.0}


def _default(function: Callable[..., Any], name: str) -> Any:
    return inspect.signature(function).parameters[name].default


STATED: list[tuple[str, str, list[Any]]] = [
    ("reliability", r"ends after (\d+) s, whatever", [_default(http.HttpEngine, "timeout")]),
    ("reliability", r"`Retry-After` is honored up to (a minute)", [transport._RETRY_AFTER_MAX_SECONDS]),
    ("reliability", r"the run stops above (\d+ %) \(from (\w+) on\)", [replies.SHARE, replies.LEAST]),
    ("reliability", r"given up after (\w+) crashes", [managed.CRASHES_PER_ASK + 1]),
    ("reliability", r"(\d+ MB) per sample, (\d+ GB) in all", [inspect_logs.MOST_PER_MEMBER, inspect_logs.MOST_BYTES]),
    ("reliability", r"after ([\d,]+) steps, (\d+ GB) of memory \(on Linux\), or a number of ([\d,]+) binary digits",
     [text.STEPS, text.MEMORY, text.DIGITS]),
    ("reliability", r"A key of (\w+) characters or more", [http._SECRET]),
    ("grading", r"A response of up to ([\d,]+) characters is read completely\. Of a longer one the first and the last "
                r"([\d,]+) are read", [2 * view.HALF, view.HALF]),
    ("grading", r"It also sees up to (\d+) decided answers per round", [judging.SAMPLE]),
    ("concepts", r"With fewer than (\d+) cases a mark is hollow, with fewer than (\d+) it is a diamond",
     [metrics.HOLLOW_BELOW, metrics.MARKED_BELOW]),
    ("reproducing", r"Points with fewer than (\d+) cases are hollow and listed in the caption; points with fewer than "
                    r"(\d+) are diamonds", [metrics.HOLLOW_BELOW, metrics.MARKED_BELOW]),
    ("reproducing", r"undefined where atom stabilities differ by more than (\d+) points",
     [100 * compare.MATCHED_WITHIN]),
    ("reproducing", r"beyond each baseline and all together is above ([\d.]+) ", [verdicts.BEYOND]),
    ("statistics", r"at most (\d+ %) false positives and at least (\d+ %) coverage",
     [calibration.MOST_FALSE, calibration.LEAST_COVERED]),
    ("scale", r"at most ([\d,]+) asks or (\d+) probe items", [engine.MAX_ASKS, engine.MAX_ITEMS]),
    ("scale", r"for a batch of up to (\d+) ", [local.MAX_ROWS]),
    ("protocols/reasoning-gap", r"samples (\d+) solutions of each new Q2; those it solves fewer than (\d+) times",
     [_default(benchmarks.compositional_gsm, "samples"), _default(benchmarks.compositional_gsm, "minimum")]),
    ("report", r"texts are cut at ([\d,]+) characters", [cases.CAPS[0]]),
    ("probes/trajectory", r"over the first (\d+) generated tokens", [_default(trajectory.over_examples, "steps")]),
    ("probes/neurons", r"neurons above (\d+ %) of the largest score", [_default(neurons.over_examples, "t")]),
    ("probes/neurons", r"neurons of more than (\d+ %) of the queries are removed",
     [_default(neurons.over_examples, "u")]),
    ("probes/neurons", r"the first (\d+) are kept \(`v`", [_default(neurons.over_examples, "v")]),
    ("probes/neurons", r"in the table say, for up to (\d+) queries", [of_neurons.SAMPLE]),
    ("probes/neurons", r"the error of half precision on up to (\d+) queries", [of_neurons.SAMPLE]),
    ("probes/neurons", r"Changes of up to ([\de-]+) nats count as 0", [all_neurons.ROUNDING]),
    ("planted-causes", r"stay right, (\d+ %) at least", [checks.PARTS]),
    ("planted-causes", r"are right in at most (\d+ %) of the cases in which what was planted", [checks.WHOLES]),
    ("planted-causes", r"is followed in at least (\d+ %) of the number", [checks.FOLLOWED]),
    ("planted-causes", r"mend at least (\d+ %) of the wholes", [checks.MENDED]),
    ("diagnose", r"\*not routed\* are not named where noise mends more than (\d+ %) of these", [thresholds.CONTROL]),
    ("diagnose", r"a bridge above (\d+ %) of the foils of each kind", [thresholds.READABLE]),
    ("diagnose", r"refused only if fewer than (\d+ %) of their operands", [thresholds.FOREIGN_RUN]),
    ("diagnose", r"is opened on up to (\d+), which", [job.OF_SMALL]),
    ("diagnose", r"two of its own variants \((\d+ %)\) that", [thresholds.PARTLY]),
]  # fmt: skip


@cache
def _page(name: str) -> str:
    return " ".join((doc_pages.ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split())


def _value(said: str) -> float:
    said = said.replace(",", "")
    number, _, unit = said.partition(" ")
    if said in UNITS:
        return UNITS[said]
    return float(WORDS.get(number, number)) * UNITS.get(unit, 1)


@pytest.mark.parametrize(("page", "pattern", "values"), STATED, ids=[f"{p}: {r[:40]}" for p, r, _ in STATED])
def test_a_stated_number_is_the_one_in_use(page: str, pattern: str, values: list[Any]) -> None:
    found = re.findall(pattern, _page(page))
    assert len(found) == 1, "the page says it once"
    numbers = [found[0]] if isinstance(found[0], str) else found[0]
    assert [_value(n) for n in numbers] == pytest.approx([float(v) for v in values])


def test_the_largest_reply_is_a_megabyte_and_what_its_tokens_take() -> None:
    assert "read up to the largest possible answer (1 MB and 256 bytes per token)" in _page("reliability")
    assert cpython.MAX_REPLY == 2**20 and job.QUICK == 120.0


def test_the_demo_takes_as_long_in_its_help_as_on_the_first_page() -> None:
    said = re.search(r"about (\w+ minutes) on two cores", (doc_pages.ROOT / "README.md").read_text(encoding="utf-8"))
    assert said and f"about {said[1]} on two cores" in inspect.getdoc(root.demo)  # type: ignore[operator]


def test_the_causes_on_the_first_page_are_those_of_the_table_and_add_up_to_all_failures() -> None:
    said = re.search(
        r"of (\d+) of these failures \(\d{4}-\d\d-\d\d\),(.*?)undetermined",
        (doc_pages.ROOT / "README.md").read_text(),
        re.S,
    )
    assert said
    counts = [int(n) for n in re.findall(r"(?<![\d-])(\d+)(?= )", said[2])]
    table = (doc_pages.ROOT / "docs" / "diagnose.md").read_text().split("| cause | SmolLM2, of 50")[1].split("\n\n")[0]
    assert counts == [int(n) for n in re.findall(r"^\| `[^|]*\| (\d+) \(", table, re.M)]
    assert sum(counts) == int(said[1])


def test_the_page_of_statistics_names_every_number_of_the_declared_family() -> None:
    said = _page("statistics").split("has one family of tests")[1].split("Every other test")[0]
    assert set(re.findall(r"`(\w+)`", said)) == set(verdicts.PRIMARY)


def test_the_page_of_formats_names_every_column_of_a_probes_table() -> None:
    said = re.findall(r"`(\w+)`", _page("formats").split("Columns of a probe's table")[1].split("`values.csv` has")[0])
    found = contrast.between({"failure": [0.1, 0.4, 0.2], "success": [0.5, 0.9, 0.6]}).table[-1]
    assert set(found) <= set(said)


def test_the_changelog_and_the_page_of_reliability_count_the_faults_of_the_table() -> None:
    changes = (doc_pages.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    table = (doc_pages.ROOT / "tests" / "soak" / "mutant_table.py").read_text(encoding="utf-8")
    said = [re.findall(r"`make mutants` puts (\d+) faults", text) for text in (changes, _page("reliability"))]
    assert said == [[str(len(re.findall(r"^    Mutant\(", table, re.M)))]] * 2
