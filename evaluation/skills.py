"""Skill mapping (STaD, section 2.1 and App. F): from sub-tasks to the higher-level skills that they need.

Questions are embedded and clustered (M clusters); the question nearest each centroid represents it; the teacher induces
N skills from these; every sub-task is assigned to one of them or to ``other``. The paper does not name the embedding,
linkage, metric or prompt; ``SkillMap.method`` says what was used here.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, NoCasesError
from .asks import Ask
from .benchmarks.stad import StadItem
from .builders import scaffold_teacher as parsing
from .engines.base import Engine, ask_all
from .journal import Journal
from .judging import without_thinking

OTHER = "other"
REDUNDANT = 0.78
"""Cosine similarity from which two skills are called redundant (App. F)."""


@dataclass(frozen=True)
class Embedding:
    """Rows of unit length, and how they were made."""

    vectors: np.ndarray
    """``[text dimension]``."""
    method: str
    dense: bool = True
    """False for counts of words, where texts without a common word are orthogonal."""


@dataclass(frozen=True)
class Clusters:
    """A partition of texts."""

    labels: np.ndarray
    """Cluster of each text, 0..M-1, ``[text]``."""
    representatives: tuple[int, ...]
    """For each cluster the index of the text nearest its centroid."""
    method: str


@dataclass(frozen=True)
class Skill:
    """A reasoning skill; id and name are unique within a map."""

    id: str
    name: str
    description: str = ""

    @property
    def text(self) -> str:
        return f"{self.name}: {self.description}" if self.description else self.name


@dataclass(frozen=True)
class SkillMap:
    """Skills, and the one that each step of each item calls for."""

    skills: tuple[Skill, ...]
    assigned: Mapping[str, tuple[str | None, ...]]
    """By item id, for each step a skill's id, ``other``, or None where the reply could not be read."""
    clusters: Clusters
    method: str
    n_asked: int
    """Skills asked for; the teacher may give fewer."""

    @property
    def usage(self) -> Counter[str]:
        """Steps per skill, ``other`` included; steps without a readable assignment are not in it."""
        return Counter(s for row in self.assigned.values() for s in row if s is not None)

    def names(self, item: str, n_steps: int) -> tuple[str | None, ...]:
        """The skills' names along the steps of one item. Raises ``InputError`` for an item that was not mapped."""
        ids = self.assigned.get(item)
        if ids is None or len(ids) != n_steps:
            raise InputError(f"item {item!r} with {n_steps} steps is not in the skill map; map these items")
        by_id = {s.id: s.name for s in self.skills}
        return tuple(None if i is None else by_id.get(i, OTHER) for i in ids)

    @property
    def n_unread(self) -> int:
        """Steps without a readable assignment."""
        return sum(s is None for row in self.assigned.values() for s in row)


def embed(texts: Sequence[str], model: str | Path | None = None) -> Embedding:
    """Embed texts with a local sentence-transformers folder, or with TF-IDF over words and word pairs without one.

    Raises ``InputError`` for a folder that is not there or a missing package, ``NoCasesError`` for no texts.
    """
    if not texts:
        raise NoCasesError("no texts to embed; give at least one question")
    if model is not None:
        return _sentence_embedding(texts, Path(model))
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    vectors = np.asarray(vectorizer.fit_transform(texts).todense())
    return Embedding(
        _unit(vectors), "tf-idf of words and word pairs (scikit-learn); no sentence-transformers model given", False
    )


def _sentence_embedding(texts: Sequence[str], folder: Path) -> Embedding:
    if not folder.is_dir():
        raise InputError(
            f"--embedding {folder}: no such folder; give a local sentence-transformers model, or leave it out"
        )
    try:
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise InputError(f"--embedding {folder}: needs sentence-transformers; pip install 'composcope[embed]'") from e
    try:
        model = SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as e:
        problem = " ".join(str(e).split())[:200]
        raise InputError(
            f"--embedding {folder}: cannot be loaded ({problem}); give a folder as SentenceTransformer.save writes it"
        ) from e
    vectors = np.asarray(model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False))
    return Embedding(_unit(vectors), f"sentence-transformers {folder.name}")


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def cluster(embedding: Embedding, n_clusters: int) -> Clusters:
    """Agglomerative clustering and the text nearest each centroid.

    Ward linkage on the unit vectors of dense embeddings, average linkage on the cosine distances of word counts; the
    paper names neither.

    Raises ``InputError`` unless 1 <= ``n_clusters`` <= number of texts.
    """
    n = len(embedding.vectors)
    if not 1 <= n_clusters <= n:
        raise InputError(f"clusters is {n_clusters} for {n} texts; give 1 to {n}")
    labels = np.zeros(n, dtype=int)
    if n_clusters > 1:
        from sklearn.cluster import AgglomerativeClustering

        if embedding.dense:
            # Average linkage would put nine of ten GSM8K questions into one cluster, represented by outliers.
            labels = AgglomerativeClustering(n_clusters=n_clusters, linkage="ward").fit_predict(embedding.vectors)
        else:
            model = AgglomerativeClustering(n_clusters=n_clusters, metric="cosine", linkage="average")
            # A text without any known word has no direction; a constant coordinate keeps its distances defined.
            labels = model.fit_predict(np.hstack([embedding.vectors, np.full((n, 1), 1e-9)]))
    nearest = []
    for c in range(n_clusters):
        members = np.flatnonzero(labels == c)
        centroid = embedding.vectors[members].mean(axis=0)
        distances = np.linalg.norm(embedding.vectors[members] - centroid, axis=1)
        nearest.append(int(members[np.argmin(distances)]))
    how = "Ward linkage, unit vectors" if embedding.dense else "average linkage, cosine distance"
    return Clusters(labels, tuple(nearest), f"agglomerative, {how}")


def induce(
    questions: Sequence[str], n_skills: int, teacher: Engine, journal: Journal | None = None, *, seed: int = 0
) -> tuple[Skill, ...]:
    """The skills that the teacher sees in the representative questions, at most ``n_skills``.

    Raises ``NoCasesError`` if three replies cannot be read.
    """
    prompt = _INDUCE.format(n=n_skills, questions="\n".join(f"- {q}" for q in questions))
    problem = ""
    for attempt in range(3):
        ask = Ask(
            "skills", f"induce:{n_skills}", prompt, "", "text", max_tokens=4000, temperature=0.2, seed=seed + attempt
        )
        (response,) = ask_all(teacher, [ask], journal)
        found = parsing.last_list(response.text, _skills, "no list of skills")
        if found.value:
            return tuple(found.value[:n_skills])
        problem = response.error or found.problem or ""
    raise NoCasesError(
        f"the teacher's list of {n_skills} skills could not be read three times ({problem}); try another"
    )


_INDUCE = """These are representative tasks of a benchmark. Name at most {n} reasoning skills that solving tasks like \
these calls for: each one a single kind of step, general enough for many tasks, and different from the others.

Tasks:
{questions}

Reply with one JSON object, and nothing else: {{"skills": [{{"name": "...", "description": "one sentence"}}, ...]}}"""


def _skills(raw: Sequence[Any]) -> list[Skill] | None:
    """Skills from objects or from texts like "Name: description"; of two with one name the first."""
    named: dict[str, tuple[str, str]] = {}
    for row in raw:
        name, description = str(row), ""
        if isinstance(row, dict):
            name, description = str(row.get("name") or row.get("skill") or ""), str(row.get("description") or "")
        if not description:
            name, _, description = name.partition(":")
        if not name.strip():
            return None
        named.setdefault(name.strip().casefold(), (name.strip(), description.strip()))
    return [Skill(f"s{i:02d}", n, d) for i, (n, d) in enumerate(named.values(), 1)] or None


_ASSIGN = """Which skill does this step of a task call for most?

Skills:
{skills}
{other}. None of them

Task: {question}
Step: {segment}

Reply with the number of one skill, and nothing else."""


def assign(
    items: Sequence[StadItem], skills: Sequence[Skill], engine: Engine, journal: Journal | None = None
) -> dict[str, tuple[str | None, ...]]:
    """For each step of each item the id of the skill it calls for, ``other``, or None where the reply is unreadable."""
    listed = "\n".join(f"{n}. {s.text}" for n, s in enumerate(skills, 1))
    asks = [
        Ask(
            case=item.id,
            role=f"skill:{i}",
            prompt=_ASSIGN.format(skills=listed, other=len(skills) + 1, question=item.question, segment=step.segment),
            gold="",
            answer_type="text",
            max_tokens=512,
        )
        for item in items
        for i, step in enumerate(item.steps)
    ]
    replies = iter(ask_all(engine, asks, journal))
    return {item.id: tuple(_assigned(next(replies).text, skills) for _ in item.steps) for item in items}


def _assigned(reply: str, skills: Sequence[Skill]) -> str | None:
    text = without_thinking(reply).strip().strip("*`\"'.() ")
    if m := re.match(r"(\d+)\b", text):
        n = int(m[1])
        return skills[n - 1].id if 1 <= n <= len(skills) else OTHER if n == len(skills) + 1 else None
    named = [s.id for s in skills if s.name.casefold() == text.partition(":")[0].strip().casefold()]
    return named[0] if len(named) == 1 else OTHER if text.casefold() in (OTHER, "none", "none of them") else None


def map_skills(
    items: Sequence[StadItem],
    teacher: Engine,
    n_clusters: int,
    n_skills: int,
    *,
    embedding: Embedding | None = None,
    model: str | Path | None = None,
    journal: Journal | None = None,
    seed: int = 0,
) -> SkillMap:
    """Cluster the items' questions, let the teacher induce skills from the representatives, and assign every step."""
    embedding = embedding or embed([i.question for i in items], model)
    clusters = cluster(embedding, n_clusters)
    skills = induce([items[i].question for i in clusters.representatives], n_skills, teacher, journal, seed=seed)
    assigned = assign(items, skills, teacher, journal)
    return SkillMap(skills, assigned, clusters, f"{embedding.method}; {clusters.method}", n_skills)


def with_skills(items: Sequence[StadItem], skill_map: SkillMap) -> list[StadItem]:
    """The items with the name of each step's skill (``other`` where none fits, None where it could not be read)."""
    found = []
    for item in items:
        names = skill_map.names(item.id, len(item.steps))
        steps = tuple(replace(s, skill=n) for s, n in zip(item.steps, names, strict=True))
        found.append(replace(item, steps=steps))
    return found


@dataclass(frozen=True)
class Granularity:
    """How good a pair of M and N is, by the paper's criteria (App. F)."""

    n_clusters: int
    n_skills: int
    """As asked for."""
    n_found: int
    entropy: float
    """Of the usage of skills, in bits; higher is more even. ``other`` is left out."""
    other_rate: float | None
    mean_overlap: float | None
    """Mean cosine similarity of two skills; None for fewer than two."""
    redundant: float | None
    """Share of pairs of skills at or above 0.78."""
    n_steps: int
    n_unread: int
    method: str


def granularity(skill_map: SkillMap, model: str | Path | None = None) -> Granularity:
    """Entropy, other-rate and overlap of a skill map."""
    usage = skill_map.usage
    used = np.array([usage[s.id] for s in skill_map.skills if usage[s.id]], dtype=float)
    shares = used / used.sum() if used.size else used
    total = sum(usage.values())
    overlap = embed([s.text for s in skill_map.skills], model)
    cosines = (overlap.vectors @ overlap.vectors.T)[np.triu_indices(len(skill_map.skills), 1)]
    return Granularity(
        n_clusters=len(skill_map.clusters.representatives),
        n_skills=skill_map.n_asked,
        n_found=len(skill_map.skills),
        entropy=float(-(shares * np.log2(shares)).sum()) if used.size else 0.0,
        other_rate=usage[OTHER] / total if total else None,
        mean_overlap=float(cosines.mean()) if cosines.size else None,
        redundant=float((cosines >= REDUNDANT).mean()) if cosines.size else None,
        n_steps=total,
        n_unread=skill_map.n_unread,
        method=overlap.method,
    )


def search(
    items: Sequence[StadItem],
    teacher: Engine,
    clusters: Sequence[int] = (5, 10, 20, 40, 80),
    skills: Sequence[int] = (5, 10, 20, 40),
    *,
    model: str | Path | None = None,
    journal: Journal | None = None,
    seed: int = 0,
) -> list[tuple[Granularity, SkillMap]]:
    """A skill map with its granularity for every M x N of the grid (App. F); nothing is chosen.

    Values of M above the number of items are left out, as the result shows; none that fits raises ``InputError``.
    """
    embedding = embed([i.question for i in items], model)
    fitting = [m for m in clusters if m <= len(items)]
    if not fitting:
        raise InputError(f"clusters {tuple(clusters)} for {len(items)} items; give numbers up to {len(items)}")
    maps = [
        map_skills(items, teacher, m, n, embedding=embedding, journal=journal, seed=seed)
        for m in fitting
        for n in skills
    ]
    return [(granularity(one, model), one) for one in maps]


@dataclass(frozen=True)
class TeacherAgreement:
    """Top bottlenecks under two teachers (App. D)."""

    model: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    shared: tuple[str, ...]

    @property
    def overlap(self) -> int:
        return len(self.shared)


def teacher_agreement(
    first: Mapping[str, Mapping[str, int]], second: Mapping[str, Mapping[str, int]], top: int = 5
) -> tuple[list[TeacherAgreement], float]:
    """Which of the ``top`` bottlenecks of each model both teachers find, and the mean number shared.

    Arguments are bottleneck counts by target model and name, under two teachers. Ties at the end of a list are cut by
    name, so that equal counts give equal lists. Raises ``NoCasesError`` if no model is in both.
    """
    models = [m for m in first if m in second]
    if not models:
        raise NoCasesError("no target model was evaluated under both teachers; give bottlenecks of the same models")
    found = []
    for model in models:
        lists = [tuple(sorted(counts, key=lambda k: (-counts[k], k))[:top]) for counts in (first[model], second[model])]
        found.append(TeacherAgreement(model, lists[0], lists[1], tuple(n for n in lists[0] if n in lists[1])))
    return found, math.fsum(a.overlap for a in found) / len(found)


def as_rows(skill_map: SkillMap) -> list[dict[str, Any]]:
    """The skills as rows of a file: id, name, description, steps assigned."""
    usage = skill_map.usage
    rows = [{"id": s.id, "name": s.name, "description": s.description, "steps": usage[s.id]} for s in skill_map.skills]
    return [*rows, {"id": OTHER, "name": OTHER, "description": "", "steps": usage[OTHER]}]
