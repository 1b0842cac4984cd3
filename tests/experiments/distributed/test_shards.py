"""``--shard i/n`` and ``merge``: shards are disjoint and complete, and merged they are the run unsharded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exit_codes import done
from hypothesis import given
from hypothesis import strategies as st

from composcope.errors import ComposcopeError, InputError
from composcope.evaluation.cases import Case
from composcope.evaluation.shards import Shard
from composcope.experiments.cli import main
from composcope.experiments.config import Config
from composcope.experiments.console.printing import Reporter
from composcope.experiments.evaluating.ask_plan import shard_positions
from composcope.experiments.evaluating.cost import plan_lines
from composcope.experiments.evaluating.merge import merge_runs
from composcope.experiments.run import read_json, read_lines
from composcope.experiments.run.folder import MEASURED

Run = Callable[..., int]
N = 3


def cases(ids: list[str]) -> list[Case]:
    return [Case(id=i, question=f"{i}?", answer="1", answer_type="number", parts=(), benchmark="b") for i in ids]


@given(st.lists(st.text("abc123", min_size=1, max_size=4), unique=True, max_size=40), st.integers(1, 7))
def test_shards_share_no_case_leave_none_out_and_differ_by_one_in_size(ids: list[str], n: int) -> None:
    every = cases(ids)
    parts = [shard_positions(every, Shard(i, n)) for i in range(1, n + 1)]
    assert sorted(p for part in parts for p in part) == list(range(len(ids)))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(part == sorted(part) for part in parts)


@given(st.permutations([f"case-{i}" for i in range(20)]))
def test_which_cases_are_whose_does_not_depend_on_their_order(ids: list[str]) -> None:
    mine = {ids[p] for p in shard_positions(cases(ids), Shard(2, 3))}
    ordered = sorted(ids)
    assert mine == {ordered[p] for p in shard_positions(cases(ordered), Shard(2, 3))}


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "-1/3", "1/2/3", ""])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--shard"):
        Shard.parse(text)


@pytest.fixture(scope="module")
def made(taught: Path, case_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the run ``whole`` and its shards ``part-1`` to ``part-3``."""
    study = tmp_path_factory.mktemp("shards")
    common = ["-m", str(taught), "-b", str(case_file), "--format", "plain", "-q"]
    assert main(["evaluate", *common, "-o", str(study / "whole")]) == 0
    for i in range(1, N + 1):
        assert main(["evaluate", *common, "--shard", f"{i}/{N}", "-o", str(study / f"part-{i}")]) == 0
    return study


def parts(study: Path) -> list[Path]:
    return [study / f"part-{i}" for i in range(1, N + 1)]


def rows(run: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "run"} for row in read_lines(run / "graded.jsonl")]


@pytest.mark.long
def test_merged_shards_are_the_run_unsharded(made: Path, tmp_path: Path) -> None:
    out, folders = tmp_path / "merged", [shutil.copytree(p, tmp_path / p.name) for p in parts(made)]
    for n, folder in enumerate(folders):
        (folder / "probes" / MEASURED).mkdir(parents=True)
        (folder / "probes" / MEASURED / f"{n}.safetensors").write_bytes(b"measured %d" % n)
    assert main(["merge", *map(str, reversed(folders)), "-o", str(out), "-q"]) == 0
    measured = {p.name: p.read_bytes() for p in (out / "probes" / MEASURED).iterdir()}
    assert measured == {f"{n}.safetensors": b"measured %d" % n for n in range(N)}, "what shards measured goes along"
    whole = made / "whole"
    assert read_json(out / "manifest.json")["benchmark"] == read_json(whole / "manifest.json")["benchmark"]
    assert rows(out) == rows(whole)
    assert (out / "metrics.json").read_bytes() == (whole / "metrics.json").read_bytes()
    assert (out / "cases.jsonl").read_bytes() == (whole / "cases.jsonl").read_bytes()
    names = sorted(p.name for p in (whole / "casesets").iterdir())
    assert names == sorted(p.name for p in (out / "casesets").iterdir())
    for name in names:
        assert (out / "casesets" / name).read_bytes() == (whole / "casesets" / name).read_bytes()
    identity = read_json(out / "manifest.json")["identity"]
    assert identity == {**read_json(whole / "manifest.json")["identity"]}


@pytest.mark.long
def test_pairs_stand_beside_the_same_independent_question_in_every_shard(taught: Path, tmp_path: Path) -> None:
    """The independent Q1 is another case's: which one must not depend on how the cases are shared out."""
    common = ["-m", str(taught), "-b", "organism:pairs", "--limit", "5", "--answer-tokens", "2", "-q"]
    assert main(["evaluate", *common, "-o", str(tmp_path / "whole")]) == done(tmp_path / "whole")
    for i in (1, 2):
        part = tmp_path / f"part-{i}"
        assert main(["evaluate", *common, "--shard", f"{i}/2", "-o", str(part)]) == done(part)
    merged = tmp_path / "merged"
    assert main(["merge", str(tmp_path / "part-1"), str(tmp_path / "part-2"), "-o", str(merged), "-q"]) == done(merged)
    assert [r for r in rows(merged) if r["role"] == "co-presented"]
    assert rows(merged) == rows(tmp_path / "whole")
    assert (merged / "cases.jsonl").read_bytes() == (tmp_path / "whole" / "cases.jsonl").read_bytes()


@pytest.mark.long
def test_the_plan_of_a_shard_counts_its_own_asks(taught: Path, case_file: Path) -> None:
    settings = Config(model=str(taught), benchmark=str(case_file))
    whole, part = (plan_lines(settings.replace(shard=shard)) for shard in (None, f"1/{N}"))
    counts = [int(lines[0].split()[1]) for lines in (whole, part)]
    assert counts[0] == 12 and counts[1] == 4
    assert int(part[1].split()[1]) < int(whole[1].split()[1])


@pytest.mark.long
def test_a_merged_run_goes_on_as_the_run_unsharded(made: Path, taught: Path, case_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "merged"
    merge_runs(parts(made), out, Reporter(quiet=True))
    before = sum(1 for p in (out / "journal").glob("*.jsonl") for _ in p.open())
    same = ["-m", str(taught), "-b", str(case_file), "--format", "plain", "-q", "-o", str(out)]
    assert main(["evaluate", *same]) == 0
    assert sum(1 for p in (out / "journal").glob("*.jsonl") for _ in p.open()) == before


@pytest.mark.long
def test_probes_measured_in_shards_are_the_probes(
    made: Path, tmp_path: Path, same_tables: Callable[[Path, Path], None]
) -> None:
    names = ("min-k", "trajectory", "patching")
    direct, parted = tmp_path / "direct", tmp_path / "parted"
    for run in (direct, parted):
        shutil.copytree(made / "whole", run)
    some = ["--probes", ",".join(names), "--probe-cases", "4", "-q"]
    assert main(["probe", str(direct), *some]) == 0
    for i in (1, 2):
        assert main(["probe", str(parted), *some, "--shard", f"{i}/2"]) == 0
        assert not (parted / "probes" / "min-k").exists()
    assert len(list((parted / "probes" / ".measured").glob("*.safetensors"))) >= 2
    assert main(["probe", str(parted), *some]) == 0
    for name in names:
        same_tables(direct / "probes" / name, parted / "probes" / name)
    assert not (parted / "probes" / ".measured").exists()


def _missing(study: Path, folders: list[Path]) -> list[Path]:
    return folders[:-1]


def _double(study: Path, folders: list[Path]) -> list[Path]:
    shutil.copytree(folders[0], study / "again")
    return [*folders, study / "again"]


def _whole(study: Path, folders: list[Path]) -> list[Path]:
    return [*folders, study / "whole"]


def _changed(name: str, field: str, value: Any) -> Callable[[Path, list[Path]], list[Path]]:
    def change(study: Path, folders: list[Path]) -> list[Path]:
        path = folders[1] / name
        document = json.loads(path.read_text())
        place = document["identity"] if name == "manifest.json" and field in document["identity"] else document
        place[field] = value
        path.write_text(json.dumps(document))
        return folders

    return change


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_missing, "missing: 3/3"),
        (_double, "1/3 is given twice"),
        (_whole, "is not a shard"),
        (_changed("manifest.json", "seed", 7), "seed is 7"),
        (_changed("manifest.json", "format", "xml"), "format is xml"),
        (_changed("manifest.json", "data", "other"), "data is other"),
        (_changed("manifest.json", "status", "failed"), "2/3 is not finished"),
        (_changed("manifest.json", "stopped", "max_asks=3"), "max_asks=3"),
        (_changed("shard.json", "limit", 2), "--limit is 2"),
        (_changed("shard.json", "of", 4), "number of shards is 4"),
    ],
)
@pytest.mark.long
def test_wrong_shards_are_refused_by_name(
    made: Path, tmp_path: Path, spoil: Callable[[Path, list[Path]], list[Path]], says: str
) -> None:
    study = tmp_path / "study"
    shutil.copytree(made, study)
    folders = spoil(study, parts(study))
    with pytest.raises(ComposcopeError, match=says):
        merge_runs(folders, tmp_path / "out", Reporter(quiet=True))
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_shards_of_other_code_or_libraries_are_merged_and_it_is_said(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study"
    shutil.copytree(made, study)
    path = parts(study)[1] / "manifest.json"
    document = json.loads(path.read_text())
    document["composcope"]["source"] = "c" * 64
    document["versions"]["torch"] = "2.10.0"
    document["identity"]["model"] = f"models/{document['identity']['model']}"  # as folders were labelled once
    path.write_text(json.dumps(document))
    merge_runs(parts(study), tmp_path / "out", Reporter(bars=False))
    said = capsys.readouterr().err
    assert "different settings: composcope" in said and "cccccccccccc" in said and "2.10.0" in said
    assert set(read_json(tmp_path / "out" / "manifest.json")["mixed"]) == {"composcope", "torch"}
    assert rows(tmp_path / "out") == rows(made / "whole")


@pytest.mark.long
def test_a_shards_folder_is_no_place_for_another_shard(
    made: Path, taught: Path, case_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = ["evaluate", "-m", str(taught), "-b", str(case_file), "--format", "plain", "-q", "-o", str(made / "part-1")]
    assert main([*same, "--shard", "2/3"]) == 1
    assert main(same) == 1
    assert "shard was 1/3, is unset" in capsys.readouterr().err
