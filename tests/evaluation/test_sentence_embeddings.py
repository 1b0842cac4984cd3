"""Skill mapping with a sentence-transformers folder: a tiny model with random weights, made here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation import skills
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.benchmarks.stad import StadItem, StadStep
from composcope.evaluation.engines.base import BaseEngine
from composcope.evaluation.journal import ask_identity

pytestmark = pytest.mark.skipif(not find_spec("sentence_transformers"), reason="extra embed is not installed")

WORDS = "price dollars paid shop coins train kilometers hours speed station flour eggs cups oven recipe".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved SentenceTransformer over a BERT of two layers."""
    import sentence_transformers
    import torch
    from transformers import BertConfig, BertModel
    from transformers.models.bert.tokenization_bert import BertTokenizer

    home = tmp_path_factory.mktemp("embedding")
    vocabulary = home / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(home / "bert")
    BertTokenizer(str(vocabulary)).save_pretrained(home / "bert")
    sentence_transformers.SentenceTransformer(str(home / "bert"), device="cpu").save(str(home / "model"))
    return home / "model"


class Teacher(BaseEngine):
    """Names a skill per kind of word and assigns every step to the first."""

    def __init__(self) -> None:
        self.identity = {"model": "teacher"}
        self.provenance: dict[str, str] = {}

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        named = [{"name": n, "description": d} for n, d in (("price coins", "dollars"), ("oven recipe", "flour"))]
        for ask in asks:
            text = json.dumps({"skills": named}) if ask.role.startswith("induce") else "1"
            yield ask, Response(ask_identity(ask, self.identity), text, "stop", 1, 1)


ITEMS = [
    StadItem(
        f"i{n}", " ".join(WORDS[5 * (n % 3) + k] for k in (n % 5, (n + 1) % 5)), 1, (StadStep("a step", "1", task="t"),)
    )
    for n in range(12)
]


def test_embeddings_have_unit_length_and_name_their_model(folder: Path) -> None:
    found = skills.embed([i.question for i in ITEMS], folder)
    assert found.vectors.shape == (12, 32)
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx(np.ones(12), abs=1e-6)
    assert found.method == "sentence-transformers model"
    again = skills.embed([ITEMS[0].question], folder)
    assert again.vectors[0] == pytest.approx(found.vectors[0], abs=1e-5), "a text's vector depends on that text only"


def test_skills_are_mapped_and_compared_in_the_models_space(folder: Path) -> None:
    grid = skills.search(ITEMS, Teacher(), clusters=(2, 3, 40), skills=(2,), model=folder)  # pyright: ignore[reportArgumentType]
    assert [(g.n_clusters, g.n_found) for g, _ in grid] == [(2, 2), (3, 2)], "more clusters than items are left out"
    (granularity, mapped) = grid[0]
    a, b = skills.embed([s.text for s in mapped.skills], folder).vectors
    assert granularity.mean_overlap == pytest.approx(float(a @ b), abs=1e-6)
    assert granularity.redundant == float(a @ b >= skills.REDUNDANT)
    assert granularity.method == "sentence-transformers model" and mapped.method.startswith(granularity.method)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        skills.embed(["x"], tmp_path / "none")


def test_a_folder_without_a_model_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--embedding .*cannot be loaded"):
        skills.embed(["x"], tmp_path)


def test_one_dense_cloud_is_still_divided_into_clusters_of_a_like_size() -> None:
    """Sentence embeddings of one benchmark lie close together; outliers must not become the representatives."""
    cloud = np.random.default_rng(0).normal(size=(120, 384)) + 1.0
    vectors = cloud / np.linalg.norm(cloud, axis=1, keepdims=True)
    labels = skills.cluster(skills.Embedding(vectors, "cloud"), 10).labels
    assert np.bincount(labels).max() < 60
