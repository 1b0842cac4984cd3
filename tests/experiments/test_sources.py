"""Where a model comes from, and by which files it is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import huggingface_hub.constants
import huggingface_hub.file_download
import pytest

from composcope.errors import ComposcopeError
from composcope.evaluation.cases import Case, Part
from composcope.experiments.evaluating.benchmark import default_protocol, load_benchmark
from composcope.experiments.models.resolve import ModelSource, resolve_model, weights_folder


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


def test_a_misspelt_model_is_answered_with_the_nearest_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "smollm2").mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    near = {
        "organism:contrl": "organism:control",
        f"{tmp_path}/models/smolm2": f"{tmp_path}/models/smollm2",
        "./models/smolm2/": "./models/smollm2",
        "models/smolm2": "models/smollm2",
        "organism:xyz": None,
        "./models/gpt": None,
        "./nothing/smolm2": None,
    }
    for name, meant in near.items():
        with pytest.raises(ComposcopeError) as error:
            resolve_model(name)
        said = str(error.value)
        assert "did you mean" not in said if meant is None else f"did you mean {meant!r}?" in said, name


def test_cases_say_which_protocol_they_are_for_or_their_paraphrases_do() -> None:
    part = Part("Q one?", "6", paraphrases=("One, asked?",))
    case, other = Case("c", "Q?", "8", (part,)), Case("d", "Q?", "8", (Part("Q one?", "6"),))
    assert default_protocol([case, other]) == "double-gate" and default_protocol([other]) == "compositionality-gap"
    assert default_protocol([replace(case, meta={"protocol": "scaffolding"})]) == "scaffolding"
    assert default_protocol([replace(case, meta={"protocol": "scaffolding"}), other]) == "double-gate"


def test_the_world_is_asked_for_its_gap_and_limited_like_any_benchmark() -> None:
    few, more = load_benchmark("world", limit=2), load_benchmark("world:two-hop", limit=3)
    assert few.protocol == more.protocol == "compositionality-gap" and few.format == "short"
    assert set(Counter((c.family, c.depth) for c in few.cases).values()) == {2}
    first = {c.id for c in few.cases if c.operation == "lookup"}
    assert first < {c.id for c in more.cases} and few.sha256 != more.sha256
