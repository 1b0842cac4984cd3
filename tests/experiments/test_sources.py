"""Where a model comes from, and by which files it is known."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub.constants
import huggingface_hub.file_download
import pytest

from composcope.experiments.sources import ModelSource, resolve_model, weights_folder


def test_a_model_of_the_hub_is_known_by_the_files_that_the_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (huggingface_hub.constants, huggingface_hub.file_download):
        monkeypatch.setattr(module, "HF_HUB_CACHE", str(tmp_path), raising=False)
    model = tmp_path / "models--owner--name"
    snapshot = model / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("abc")
    online = ModelSource("owner/name", "owner/name", False)
    assert weights_folder(online) is None
    (snapshot / "config.json").write_text("{}")
    assert weights_folder(online) is None, "weights of another revision"
    (snapshot / "model.safetensors").write_bytes(b"")
    assert weights_folder(online) == snapshot
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert weights_folder(resolve_model("owner/name")) == snapshot
