"""Why a run fails, as its page says it: the usual cause, and the commands that find out more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.experiments.report import causes
from composcope.experiments.run.diagnosis import CauseShare, Diagnosis, Verdict
from composcope.experiments.run.summary import Diagnosed
from composcope.probes.catalog import PROBES

from ..bare_runs import bare_run, spaced


def _verdicts(*named: str) -> list[Verdict]:
    return [Verdict(f"c{i}", cause, ("evidence",)) for i, cause in enumerate(named)]


@pytest.mark.parametrize(
    ("shares", "n", "said"),
    [
        ([("bridge-not-computed", 6), ("undetermined", 2)], 8, "Why, as far as it is shown: "),
        ([("bridge-not-computed", 8)], 8, "Why: "),
        ([("bridge-not-computed", 5), ("near-miss", 3)], 8, "Why, most often: "),
        ([("format", 4), ("near-miss", 4)], 8, "Why: the answer has the wrong form; the answer contains "),
        ([(cause, 2) for cause in ("format", "near-miss", "lost", "too-late")], 8, "Why: 4 causes, "),
        ([("format", 3), ("lost", 3), ("near-miss", 2)], 8, "Why, most often: the answer has the wrong form; a later "),
        ([("undetermined", 5), ("fragile", 3)], 8, "Why: no cause is shown in 8 of 8 diagnosed failures."),
    ],
)
def test_the_reason_is_the_most_frequent_cause_with_its_share_of_all_that_were_diagnosed(
    shares: Sequence[tuple[str, int]], n: int, said: str
) -> None:
    found = Diagnosis(Path("r"), _verdicts(*(c for c, k in shares for _ in range(k))),
                      [CauseShare("all", "", c, k, n, k / n, 0.1, 0.9, "t") for c, k in shares])  # fmt: skip
    text = spaced(causes._because(found))
    assert text.startswith(said)
    if shares[0][0] == "format":
        assert f"(each {shares[0][1]} of 8 diagnosed failures: {100 * shares[0][1] / 8:.0f} % [10, 90])" in text
    if shares[0][0] == "format":
        found.shares[0].__dict__["high"] = 0.8
        assert "[" not in causes._because(found), "equally frequent causes with other intervals"
    if shares[0][0] == "bridge-not-computed":
        k = shares[0][1]
        assert f"({k} of 8 diagnosed failures: {100 * k / 8:.0f} % [10, 90]" in text
        assert ("; no cause is shown in 2)" in text) == (shares[1:2] == [("undetermined", 2)])


@pytest.mark.parametrize(
    ("failures", "missing"), [(4, None), (5, "Why the other one failed"), (9, "Why the other 5 failed"), (3, None)]
)
def test_causes_of_a_page_are_counted_named_apart_and_lead_to_their_cases(
    failures: int, missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"format": 1, "undetermined": 1, "shortcut:last-item": 2}
    found = Diagnosis(Path("r"), _verdicts(*(c for c, k in counts.items() for _ in range(k))),
                      [CauseShare("all", "", c, k, 4, k / 4, 0.1, 0.9, "t") for c, k in counts.items()])  # fmt: skip
    monkeypatch.setattr(causes, "diagnosed_failures", lambda run: Diagnosed(found, 2, 1))
    config = SimpleNamespace(serving=SimpleNamespace(engine="transformers", probe_model=None), model="m")
    run = bare_run(config=config, path=Path("/x"))
    page = causes.causes_of(run, {"run": "a b", "set": "s"}, failures)
    address = "run=a+b&set=s&cause=".__add__
    assert [(s.cause, s.count, s.address, s.means) for s in page.named] == [
        ("shortcut:last-item", 2, address("shortcut%3Alast-item"), "it follows a shortcut: last item"),
        ("format", 1, address("format"), "the answer has the wrong form"),
    ]
    assert [(s.cause, s.count) for s in page.unnamed] == [("undetermined", 1)]
    assert (page.n, page.n_named, page.diagnosed) == (4, 3, True) and "2 diagnosed cases whose" in page.left_out
    assert page.missing == (f"{missing} is not known yet." if missing else "")
    assert page.command == ("composcope diagnose /x" if missing else "")
    assert causes.causes_of(bare_run(), {}, failures).missing == "", "imported rows have no model to open"
    monkeypatch.setattr(causes, "diagnosed_failures", lambda run: None)
    bare = causes.causes_of(run, {}, failures)
    assert (bare.n, bare.named, bare.unnamed, bare.diagnosed, bare.because) == (0, (), (), False, "")
    assert bare.missing.startswith("Why they failed") and bare.command == "composcope diagnose /x"


@pytest.mark.parametrize(
    ("engine", "probe_model", "model", "asked"),
    [("transformers", None, "m", False), ("ray", None, "m", False), ("vllm", None, "m", True),
     ("vllm", "w", "m", False), ("transformers", None, "m@http://x", True)],
)  # fmt: skip
def test_the_command_that_diagnoses_asks_for_weights_only_of_a_server(
    engine: str, probe_model: str | None, model: str, asked: bool
) -> None:
    config = SimpleNamespace(serving=SimpleNamespace(engine=engine, probe_model=probe_model), model=model)
    said = causes.command(bare_run(config=config, path=Path("/x/a b")))
    assert said == "composcope diagnose '/x/a b'" + (" --model FOLDER" if asked else "")
    assert causes.command(bare_run()) == ""


def test_probes_that_no_run_has_are_named_with_the_command_for_a_run_that_can_be_compared() -> None:
    def members(failures: int, successes: int) -> dict[str, Any]:
        return {label: SimpleNamespace(label=label, ids=list(range(k)))
                for label, k in (("failure", failures), ("success", successes))}  # fmt: skip

    def run(path: str, sets: dict[str, Any], *ran: str) -> Any:
        return bare_run(path=Path(path), case_sets=sets, probe=lambda name: name in ran or None)

    usual = [p.name for p in PROBES.own.values() if p.standard]
    able, unable = members(2, 3), members(2, 0)
    found = causes.missing([run("/a", unable), run("/b", able, usual[0])])
    assert found is not None and found.command == f"composcope probe /b --probes {','.join(usual[1:])}"
    assert PROBES[usual[0]].title not in found.titles and found.reason == ""
    found = causes.missing([run("/a", able), run("/b", able), run("/c", able)])
    assert found is not None and (found.command, found.reason) == (
        "composcope probe /a", "and the same for 2 other runs")  # fmt: skip
    scaffolds = run("/b", unable)
    scaffolds.protocol = "scaffolding"
    found = causes.missing([run("/a", unable), scaffolds])
    assert found is not None and "no success, so" in found.reason
    found = causes.missing([run("/a", unable)])
    assert found is not None and found.command == "" and "no success with every part right" in found.reason
    assert causes.missing([run("/a", able, *usual)]) is None
