"""What a command prints of what its job found: lines for people, or one document."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope import __version__
from composcope.errors import InputError
from composcope.experiments.cli import main, start
from composcope.experiments.organism import train
from composcope.experiments.organism.weights import CROSSED, DOSES

P = Path
TRAINED = SimpleNamespace(model=P("o/model"), adapter=P("o/adapter"), steps=7, seconds=2.5)
ROW = {"quantity": "rate", "value": 0.5}
CHECKED = [SimpleNamespace(to_dict=lambda: {"k": 3}, bound=None, row=SimpleNamespace(measure="wholes right", k=3, n=9))]
DOCUMENT = '{"schema": 1, "seed": 4}'
PRINTED: list[tuple[str, dict[str, Any], dict[str, Any] | list[Any], list[str]]] = [
    ("fetch m --to t", {"models.resolve.fetch": lambda name, to, say: to / name}, {"schema": 1, "model": "t/m"},
     ["t/m"]),
    ("probe RUN --shard 1/2", {"investigate.probe_shard": lambda *_, **__: ["a: x", "b: y"]},
     {"schema": 1, "shard": "1/2", "probes": ["a: x", "b: y"]}, ["a: x", "b: y"]),
    ("demo -o RUN", {"demo.run_demo": lambda *_, **__: ["done", "next"]},
     {"schema": 1, "seed": 4, "report": "RUN/report.html"}, ["done", "next"]),
    ("study why -o RUN", {"studies.confusion.run_study": lambda *_, **__: ["all named"]}, {"schema": 1, "seed": 4},
     ["all named"]),
    ("intervene --recipe sft-answer -m organism:none -o o",
     {"interventions.training.train": lambda *_, **__: TRAINED, "interventions.data.training_set": lambda *_: "data"},
     {"schema": 1, "model": "o/model", "adapter": "o/adapter", "steps": 7, "seconds": 2.5},
     ["sft-answer: 7 steps in 2 s", "model: o/model", "adapter: o/adapter"]),
    ("intervene --recipe steering RUN",
     {"interventions.inference.intervene": lambda *_, **__: SimpleNamespace(table=[ROW]),
      "interventions.inference.lines": lambda found: [str(found.table)]}, [ROW], [str([ROW])]),
    ("study interventions -o o",
     {"interventions.study.run": lambda *_, **__: SimpleNamespace(to_dict=lambda: ROW, lines=["table"]),
      "interventions.study_tables.markdown": lambda found: found.lines}, ROW, ["table"]),
    ("organism list", {"cli.organism.names": lambda: ["none", "low"]},
     {"schema": 1, "organisms": ["organism:none", "organism:low"]}, ["organism:none", "organism:low"]),
    ("organism card RUN --out o", {"organism.card.ship": lambda *_: None}, {"schema": 1, "card": "o/CARD.md"},
     ["o/CARD.md"]),
    ("organism train --all --out o", {"organism.train.train": lambda dose, seed, out, *_: out / dose},
     {"schema": 1, "models": [f"o/{dose}" for dose in DOSES]},
     [f"o/{dose}" for dose in DOSES]),
    ("organism train --dose low --out o", {"organism.train.train": lambda dose, seed, out, *_: out / dose},
     {"schema": 1, "models": ["o/low"]}, ["o/low"]),
    ("organism plant --cause follower --out o --seed 4 --n 9",
     {"organism.plants.written.ship": lambda *given: CHECKED if given[:4] == ("follower", P("o"), 4, 9) else []},
     {"schema": 1, "plants": [{"model": "o", "plant": "follower", "checks": [{"k": 3}]}]},
     ["o", "  wholes right 3 of 9"]),
    ("organism plant --cause item-missing --out o",
     {"organism.plants.lists.ship": lambda *given: CHECKED if given[:4] == ("item-missing", P("o"), 0, 200) else []},
     {"schema": 1, "plants": [{"model": "o", "plant": "item-missing", "checks": [{"k": 3}]}]},
     ["o", "  wholes right 3 of 9"]),
    ("organism plant --cause lost --out o",
     {"organism.plants.making.make": lambda plant, *_: CHECKED if plant.name == "o" else []},
     {"schema": 1, "plants": [{"model": "o", "plant": "o", "checks": [{"k": 3}]}]}, ["o", "  wholes right 3 of 9"]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "jobs", "document", "lines"), PRINTED, ids=[w for w, *_ in PRINTED])
def test_a_command_prints_what_its_job_found_as_lines_or_as_one_document(
    words: str, jobs: dict[str, Any], document: Any, lines: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for file in ("manifest.json", "study.json", "confusion.json", "seed-0/low/model/x"):
        (tmp_path / "RUN" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "RUN" / file).write_text(DOCUMENT)
    (tmp_path / "RUN" / "config.yaml").write_text(
        '{"model": "organism:control", "benchmark": "organism:mixed", "protocol": "scaffolding"}'
    )
    for kind in ("lists", "written"):
        monkeypatch.setattr(f"composcope.experiments.organism.plants.{kind}.ship", lambda *_: pytest.fail("trained"))
    for job, result in jobs.items():
        monkeypatch.setattr(f"composcope.experiments.{job}", result)
    assert main(shlex.split(words)) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert main([*shlex.split(words), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == document


def test_the_documentation_is_named_opened_or_its_absence_is_said_and_the_version_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, opened = tmp_path / "index.html", list[str]()
    monkeypatch.setattr(start, "SITE", page)
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["docs"]) == 1 and str(page) in capsys.readouterr().err
    page.touch()
    assert main(["docs"]) == 0 and capsys.readouterr().out.strip() == str(page) and opened == []
    assert main(["docs", "--open", "--json"]) == 0 and opened == [page.as_uri()]
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "docs": str(page)}
    assert main(["--version"]) == 0 and capsys.readouterr().out.strip() == __version__


def test_the_second_series_and_the_checkpoints_of_a_training_are_asked_for_by_their_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trained: list[str] = []
    monkeypatch.setattr(train, "train", lambda dose, *_: trained.append(dose))
    assert main(["organism", "train", "--all", "--crossed", "--out", "o"]) == 0
    assert tuple(trained) == tuple(CROSSED)
    measured: list[Any] = []
    monkeypatch.setattr("composcope.experiments.interventions.training.train", lambda *_: TRAINED)
    monkeypatch.setattr("composcope.experiments.interventions.data.training_set", lambda *_: "data")
    curve = "composcope.experiments.interventions.training_curve.measure"
    monkeypatch.setattr(curve, lambda *given, **how: measured.append((given, how["limit"], how["device"])))
    words = ["intervene", "--recipe", "sft-answer", "-m", "organism:none", "-o", "o", "--device", "cpu"]
    assert main(words) == 0 and measured == []
    assert main([*words, "--curve", "--limit", "3"]) == 0 and measured == [((P("o"), "organism:none"), 3, "cpu")]
    given: list[Any] = []
    monkeypatch.setattr(train, "train_seeds", lambda n, folder, _: folder / str(n))

    def conduct(preset: Any, spec: Any, out: Path, *_: Any, **__: Any) -> Any:
        given.append((spec.series, spec.only_series, out))
        raise InputError("handed over")

    monkeypatch.setattr("composcope.experiments.studies.running.conduct", conduct)
    assert main(["study", "validity", "--trainings", "2", "--series", "S", "-o", "o"]) == 1
    assert main(["study", "validity", "--trainings", "2"]) == 1
    assert given == [(("S", "o/trainings/2"), True, P("o")), (("runs/validity/trainings/2",), True, P("runs/validity"))]
