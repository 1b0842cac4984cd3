"""Figures of skills: what is no skill, and maps of clusters and skills."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.colors import to_hex, to_rgb

from composcope.errors import InputError
from composcope.experiments import figures
from composcope.experiments.cli import main
from composcope.experiments.figures import skills


def test_steps_that_no_skill_covers_are_no_part_of_the_evenness() -> None:
    found = skills.SkillUse("x", 5, 2, {"a": 30, "b": 10, skills.OTHER: 60})
    assert found.entropy == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))


def test_skill_maps_are_read_with_their_clusters_and_skills_and_runs_count_every_part(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    line = {"n_clusters": 10, "n_skills": 3, "usage": {"add": 4, "other": 1}}
    (tmp_path / "granularity.jsonl").write_text(json.dumps(line) + "\n" + json.dumps({**line, "usage": None}) + "\n")
    (found,) = skills._maps(tmp_path)
    assert found.source == tmp_path.name, "no build.json says another name"
    assert (found.clusters, found.n_skills, found.total, skills._names([found])) == (10, 3, 5, ["M=10, N=3"])
    for name, again in (("a", 0), ("b", 1)):
        path = synthetic.make_run(tmp_path / name, n=2, probes=(), protocol="compositionality-gap") / "cases.jsonl"
        first, second = (json.loads(text) for text in path.read_text().splitlines())
        first["parts"][0]["skill"], first["parts"][1]["skill"], second["parts"][again]["skill"] = "add", "sort", "add"
        second["parts"][1 - again]["skill"] = None if name == "a" else "other"
        path.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    (used,), _ = skills._drawn(figures.load([tmp_path / "a", tmp_path / "b"]))
    assert (used.source, used.clusters, dict(used.usage)) == ("mixed", None, {"add": 2, "sort": 1})
    assert "Runs: a. Made by: " in figures.draw("skill-distribution", [tmp_path / "a", tmp_path / "b"]).caption
    maps = [skills.SkillUse("s", m, n, {"add": 6, "sort": 9, "other": 20}) for m in (5, 10) for n in (3, 2)]
    shares = skills.skill_distribution.draw(maps[:1])
    assert [(r["skill"], r["id"], r["count"]) for r in shares.rows] == [("sort", 1, 9), ("add", 2, 6), ("other", 3, 20)]
    bars = shares.figure.axes[0].patches
    assert [round(bar.get_height(), 3) for bar in bars] == [round(n / 35, 3) for n in (9, 6, 20)]  # type: ignore[attr-defined]
    shades = [to_hex(bar.get_facecolor()) for bar in bars]
    assert shades[0] == shades[1] != shades[2] and "gray: other" in shares.caption
    red, green, blue = to_rgb(bars[2].get_facecolor())
    assert max(red, green, blue) - min(red, green, blue) < 0.1
    shown = skills.skill_granularity.draw(maps)
    assert [(r["clusters"], r["skills"], r["skill"], r["id"]) for r in shown.rows] == [
        (10, n, s, i) for n in (2, 3) for i, s in enumerate(("sort", "add", "other"), 1)]  # fmt: skip


def test_maps_of_one_size_from_two_folders_have_different_names() -> None:
    for sources, said in ((("in/gsm", "in/chains"), ("gsm", "chains")), (("a/maps", "b/maps"), ("a/maps", "b/maps"))):
        maps = [skills.SkillUse(source, 20, 5, {"add": 20}) for source in sources]
        for draw in (skills.skill_distribution.draw, skills.skill_granularity.draw):
            drawn = draw(maps)
            titles = [ax.get_title(loc="left") for ax in drawn.figure.axes]
            assert [t.startswith(f"{name}: M=20, N=5") for t, name in zip(titles, said, strict=True)] == [True, True]
            assert [r["map"] for r in drawn.rows] == [f"{name}: M=20, N=5" for name in said]
        panels = skills.skill_coverage.draw(maps).figure.axes
        assert [ax.get_title(loc="left") for ax in panels] == list(said)


def test_maps_runs_and_folders_are_told_apart_whatever_else_a_folder_holds(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2, probes=(), protocol="compositionality-gap")
    line = json.dumps({"n_clusters": 2, "n_skills": 1, "usage": {"add": 4}}) + "\n"
    (tmp_path / "maps").mkdir()
    for folder in (tmp_path / "maps", run):  # a run may hold a table of that name
        (folder / "granularity.jsonl").write_text(line)
    (read,) = figures.load([run])
    found = skills.read_maps([tmp_path / "maps", read, run, str(tmp_path / "maps")])
    assert [type(f).__name__ for f in found] == ["SkillUse", "SkillUse", "RunData"]
    assert found[2] is read
    with pytest.raises(InputError, match="no folder given"):
        skills.read_maps([])


def test_figures_of_skill_maps_are_drawn_from_a_folder_without_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, line = tmp_path / "maps", {"n_clusters": 2, "n_skills": 2, "usage": {"add": 4, "sort": 1}}
    folder.mkdir()
    (folder / "granularity.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["plot", "skill-distribution", str(folder), "--out", str(tmp_path / "drawn"), "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert files and all(Path(file).is_file() for file in files)
    (folder / "granularity.jsonl").write_text(json.dumps({**line, "usage": {}}) + "\n")
    assert main(["plot", "skill-distribution", str(folder), "--out", str(tmp_path / "drawn")]) == 1
    assert f"nothing to draw from {folder}" in capsys.readouterr().err


def test_a_map_without_its_skills_is_refused_by_file_and_field(tmp_path: Path) -> None:
    (tmp_path / "granularity.jsonl").write_text('{"n_clusters": 10, "n_skills": 3, "usage": null}\n')
    with pytest.raises(InputError, match=f"{tmp_path}/granularity.jsonl: field 'usage'"):
        skills._maps(tmp_path)


@pytest.mark.parametrize("sources", [("s",), ("s", "t")])
def test_steps_without_a_skill_have_a_line_for_each_number_of_questions_in_their_order(
    sources: tuple[str, ...],
) -> None:
    maps = [skills.SkillUse(source, m, n, {"add": m, "other": n}) for source in sources for m in (200, 3, 30)
            for n in (4, 2)]  # fmt: skip
    shown = skills.skill_coverage.draw(maps)
    for ax in shown.figure.axes:
        assert [line.get_label() for line in ax.get_lines() if str(line.get_label()).startswith("M =")] == [
            "M = 3", "M = 30", "M = 200"]  # fmt: skip
    assert [(r["map"], r["clusters"], r["skills"], r["count"], r["n"]) for r in shown.rows[:2]] == [
        ("s", 200, 4, 4, 204), ("s", 200, 2, 2, 202)]  # fmt: skip
    named = "M 3, N 4" if len(sources) == 1 else "s, M 3, N 4"
    assert named in shown.caption and (f"s, {named}" in shown.caption) is False
