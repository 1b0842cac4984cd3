"""`composcope init` writes what runs as it is; options of a file are those of the flags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exit_codes import done

from composcope.errors import InputError
from composcope.evaluation.case_files import read_cases
from composcope.experiments.cli import main
from composcope.experiments.cli.flags import with_file
from composcope.experiments.cli.start import write


def test_what_init_writes_runs_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "study"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    cases, config = map(Path, said["files"])
    assert cases.read_text().startswith("# ") and len(read_cases(cases)) == 12
    out = tmp_path / "run"
    code = main(["evaluate", "--config", str(config), "--limit", "2", "--out", str(out), "--quiet"])
    assert code == done(out), capsys.readouterr().err
    assert json.loads((out / "manifest.json").read_text())["identity"]["model"] == "organism:control"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(InputError, match=r"cases\.jsonl"):
        write(tmp_path)


def test_flags_win_over_the_file_also_inside_of_sections(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("model: a\nlimit: 3\nasking: {few_shot: '2', preamble: 'no'}\n")
    found = with_file(file, {"limit": "5", "asking": {"preamble": "yes"}})
    assert found == {"model": "a", "limit": "5", "asking": {"few_shot": "2", "preamble": "yes"}}


@pytest.mark.parametrize(
    ("text", "named"),
    [("[1]", "holds no options"), ("a: [", "not valid YAML"), ("model: a\nbenchmark: b\nlimmit: 2", "limmit")],
)
def test_a_file_without_options_is_refused(
    text: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert main(["evaluate", "--config", str(file)]) == 1
    assert named in capsys.readouterr().err
