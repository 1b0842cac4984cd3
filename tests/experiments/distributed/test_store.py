"""The store of measurements, and what a worker does without Ray: what goes in comes out, and only where it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from composcope.errors import InputError, ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines.base import ReplayEngine
from composcope.evaluation.journal import Journal, ask_identity, read_journal
from composcope.evaluation.shards import Shard
from composcope.experiments.config import Serving
from composcope.experiments.console import exits
from composcope.experiments.distributed import engine as rays
from composcope.experiments.distributed.engine import FleetModel, RayEngine, WorkersJournal, _size, mark
from composcope.experiments.distributed.pool import Pool
from composcope.experiments.distributed.store import CachedModel, Missing, Store, entry_key, scope
from composcope.experiments.distributed.worker import Failure, Place, Worker
from composcope.experiments.models import target as targets
from composcope.experiments.models.target import Loading
from composcope.experiments.run import provenance
from composcope.experiments.run.folder import MEASURED
from composcope.probes.lookback.examples import _measure as lookback
from composcope.probes.min_k import _measure as min_k
from composcope.probes.spread import collect

VALUE = {
    "tensor": torch.randn(3, 2, dtype=torch.float64),
    "half": torch.randn(2).bfloat16(),
    "array": np.array([1.5, float("nan")]),
    "nothing": torch.empty(0, 4),
    "parts": [([0, 1], torch.arange(3), None), ("text ü", True, -7, 1e-300, float("inf"))],
    "inner": {"a": 0.1 + 0.2},
    "by layer": {0: torch.ones(1), 3: {True: "yes"}},
}


@dataclass
class Alike:
    host: str
    device: str


class AlikeToo(Alike): ...


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    Store(tmp_path).write([("one", VALUE), ("two", torch.ones(2)), ("three", 0.5)])
    other = Store(tmp_path)
    assert same(other.get("one"), VALUE)
    assert same(other.get("two"), torch.ones(2))
    assert other.get("three") == 0.5
    assert "four" not in other


def test_a_store_sees_what_others_write_and_leaves_out_what_it_cannot_read(tmp_path: Path) -> None:
    mine, theirs = Store(tmp_path), Store(tmp_path)
    theirs.write([("a", 1)])
    theirs.write([("b", 2)])
    theirs.write([("c", 3)])
    late = sorted(tmp_path.glob("*.safetensors"))[2]
    whole = late.read_bytes()
    late.write_bytes(whole[:9])  # as a network disk shows it for a while
    (tmp_path / "broken-1-0.safetensors").write_bytes(b"not a file of tensors")
    assert "a" not in mine
    mine.refresh()
    assert (mine.get("a"), mine.get("b"), "c" in mine) == (1, 2, False)
    late.write_bytes(whole)
    mine.refresh()
    assert mine.get("c") == 3


@pytest.mark.parametrize(
    "other",
    [
        ("other model", partial(min_k, max_tokens=None), ((1, 2, 3), None)),
        ("scope", partial(min_k, max_tokens=64), ((1, 2, 3), None)),
        ("scope", partial(lookback, max_tokens=None), ((1, 2, 3), None)),
        ("scope", partial(min_k, max_tokens=None), ((1, 2, 4), None)),
        ("scope", partial(min_k, max_tokens=None), ((1, 2, 3), (1, 2))),
        ("scope", partial(min_k, max_tokens=None), ((1, 2), (3, None))),
        ("scope", partial(min_k, max_tokens=None), ((1, 2, 3.0), None)),
        ("scope", partial(min_k, max_tokens=None), (torch.tensor([1, 2, 3]), None)),
    ],
)
def test_a_key_holds_everything_that_a_result_depends_on(other: tuple[str, Any, Any]) -> None:
    mine = entry_key("scope", partial(min_k, max_tokens=None), ((1, 2, 3), None))
    assert mine == entry_key("scope", partial(min_k, max_tokens=None), [[1, 2, 3], None])
    assert entry_key(*other) != mine
    orders: Any = (partial(print, sep="", end="!"), partial(print, end="!", sep=""))
    assert len({entry_key("scope", measure, 0) for measure in orders}) == 1, "however the options are ordered"
    alike = [{"host": "h", "device": "cpu"}, Alike("h", "cpu"), AlikeToo("h", "cpu"), Alike("cpu", "h"),
             {"host": "h", "devices": "cpu"}]  # fmt: skip
    assert len({entry_key("scope", min_k, item) for item in alike}) == 5, "the kind of an object is part of it, too"
    table = torch.arange(6)
    shapes = (table, table.view(2, 3), table.view(3, 2), table.view(torch.float64))
    assert len({entry_key("scope", min_k, (x, None)) for x in shapes}) == 4, "and a tensor's shape and type"
    for item in (object(), Ask):
        with pytest.raises(TypeError, match="cannot be part"):
            entry_key("scope", min_k, item)


def count(lm: Any, items: Sequence[int], notes: Any) -> Any:
    for i, item in enumerate(items):
        lm.append(item)
        yield i, item * 10


def test_shards_measure_their_own_items_once_and_the_last_look_puts_them_together(tmp_path: Path) -> None:
    items = list(range(7))
    ran: list[list[int]] = [[], [], []]
    for i in (1, 2):
        with pytest.raises(Missing, match="of 7 items belong to other shards"):
            collect(CachedModel(ran[i - 1], Store(tmp_path), "s", Shard(i, 3)), count, items)
    assert collect(CachedModel(ran[2], Store(tmp_path), "s", Shard(3, 3)), count, items) == [x * 10 for x in items]
    assert sorted(item for mine in ran for item in mine) == items
    again: list[int] = []
    assert collect(CachedModel(again, Store(tmp_path), "s"), count, items) == [x * 10 for x in items]
    assert again == []
    assert collect(CachedModel(again, Store(tmp_path), "other model"), count, items) == [x * 10 for x in items]
    assert again == items
    light = CachedModel(ran[0], Store(tmp_path / "light"), "s", Shard(1, 3))
    assert dict(light.spread(count, items, [], light=True)) == {i: x * 10 for i, x in enumerate(items)}
    assert not (tmp_path / "light").exists(), "what takes no longer than reading it is done by every shard"


def _target(weights: str = "w", **numerics: str) -> Any:
    return SimpleNamespace(numerics=lambda: numerics, engine=SimpleNamespace(identity={"weights": weights}))


def test_measurements_are_shared_by_devices_of_one_kind_and_by_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [{"device": d, "dtype": t} for d, t in (("cuda:0", "float32"), ("cuda:1", "float32"), ("mps:0", "float32"),
                                                    ("cuda:0", "float16"))]  # fmt: skip
    kinds += [{**kinds[0], "attention": "sdpa"}, {**kinds[0], "weights": "others"}]
    first, second, *others = (scope(_target(**k)) for k in kinds)
    assert first == second and len({first, *others}) == 5
    code: list[set[str]] = []
    monkeypatch.setattr(provenance, "source_hash", lambda folders: str(code.append({*folders})))
    scope(_target())
    assert code == [{"probes", "hooks"}]


def test_a_worker_saves_where_it_sees_the_run_and_sends_the_rest(tmp_path: Path) -> None:
    place = mark(tmp_path)
    assert mark(tmp_path) == place and place.here() == tmp_path
    worker = Worker(Loading("m"), 1)
    worker._lm = []
    assert worker.measure(count, [1, 2], ["a", "b"], place) == ([(0, 10), (1, 20)], [], True)
    assert Store(tmp_path / "probes" / MEASURED).get("b") == 20
    for elsewhere in (
        Place(str(tmp_path), "another folder of this name"),
        Place(str(tmp_path / "gone"), place.mark),
        None,
    ):
        assert worker.measure(count, [3], ["c"], elsewhere) == ([(0, 30)], [], False)
    assert "c" not in Store(tmp_path / "probes" / MEASURED)

    def odd(lm: Any, items: Sequence[int], notes: list[str]) -> Any:
        notes.append("odd")
        return count(lm, items, notes)

    assert worker.measure(odd, [3], ["c"], None) == ([(0, 30)], ["odd"], False)


def test_a_worker_of_other_code_is_refused_and_one_of_this_code_takes_its_share_of_the_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = {"version": "1", "source": "a" * 64}
    monkeypatch.setattr(provenance, "code", lambda: code)
    for what in code:
        refused = Worker(Loading("m"), 1).load({**code, what: "b" * 64})
        assert isinstance(refused, Failure) and isinstance(refused.error(), ModelError)
        assert "install the same package on every node" in refused.message and "b" * 12 in refused.message
    engine = SimpleNamespace(identity={"weights": "w"}, provenance={"engine": "e"})
    target = SimpleNamespace(
        engine=engine, facts=lambda: {"layers": 2}, numerics=lambda: {"dtype": "d"}, prompting="raw"
    )
    threads: list[int] = []
    monkeypatch.setattr(targets, "load_local", lambda loading, _: target)
    monkeypatch.setattr(exits, "quiet_libraries", lambda: None)
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    about = Worker(Loading("m"), 3).load(code)
    assert threads == [3] and [about[k] for k in ("identity", "provenance", "facts", "numerics", "prompting")] == [
        {"weights": "w"}, {"engine": "e"}, {"layers": 2}, {"dtype": "d"}, "raw"]  # fmt: skip


@pytest.mark.parametrize(
    ("each", "device", "found"), [(None, None, None), (1, None, None), (2, None, "auto"), (2, "cuda:1", "cuda:1")]
)
def test_only_a_worker_with_several_gpus_spreads_its_model(each: int | None, device: str | None, found: object) -> None:
    serving = Serving(engine="ray", gpus_per_worker=each)
    loading = Worker(Loading("m", device=device, serving=serving), 1).loading
    assert (loading.device, loading.serving) == (found, Serving()), "it opens the model by itself"


def test_an_error_of_a_worker_is_the_same_error_here() -> None:
    assert isinstance(Failure("InputError", "why").error(), InputError)
    assert isinstance(Failure("Unheard", "why").error(), ModelError)


def test_items_are_grouped_by_size_the_largest_first() -> None:
    fleet: Any = SimpleNamespace(pool=SimpleNamespace(workers=2))
    items = [[0] * n for n in (3, 9, 1, 7, 5, 2, 8, 4, 6, 10)]
    found = FleetModel._parts(fleet, range(1, 10), items)
    assert [[len(items[i]) for i in part] for part in found] == [[10, 9], [8, 7], [6, 5], [4, 2], [1]]
    many = FleetModel._parts(fleet, range(1000), [[0]] * 1000)
    assert {len(part) for part in many[:-1]} == {64} and sum(map(len, many)) == 1000


def test_the_size_of_an_item_is_the_number_of_its_tokens() -> None:
    example = SimpleNamespace(prompt_ids=[0] * 4)
    items = [7, ((1, 2, 3), None), [example, "text"], SimpleNamespace(ids=[1, 2]), None]
    assert [_size(item) for item in items] == [1, 3, 4, 2, 0]


@pytest.mark.parametrize(
    ("cpus", "gpus", "each", "workers", "found"),
    [
        (8, 0, None, 2, (2, 4, 0.0)),
        (2, 0, None, 3, (3, 1, 0.0)),
        (8, 4, None, None, (4, 1, 1.0)),
        (8, 4, 2, None, (2, 1, 2)),
        (8, 4, None, 2, (2, 1, 1.0)),
        (8, 1, 0.5, None, (2, 1, 0.5)),
        (8, 1, 0.1, None, (10, 1, 0.1)),
        (8, 2, 0.4, None, (4, 1, 0.4)),
        (8, 8, 3.0, None, (2, 1, 3.0)),
        (8, 1, 0, 2, (2, 4, 0)),
        (8, 1, 2, None, "--gpus-per-worker 2"),
        (8, 0, None, None, "--workers N"),
    ],
)
def test_workers_share_what_the_cluster_has(
    cpus: int, gpus: int, each: float | None, workers: int | None, found: Any
) -> None:
    serving, said = Serving(engine="ray", workers=workers, gpus_per_worker=each), list[str]()
    ray = SimpleNamespace(cluster_resources=lambda: {"CPU": float(cpus), **({"GPU": float(gpus)} if gpus else {})})
    pool: Any = SimpleNamespace(ray=ray, loading=SimpleNamespace(serving=serving), say=said.append)
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            Pool._shares(pool)
    else:
        assert Pool._shares(pool) == found
        assert bool(said) == (workers == 3), "only where they do not all have room"


def test_workers_read_the_answers_of_a_server_only_where_they_have_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool: Any = SimpleNamespace(about={"identity": {"weights": "here" * 5}})
    (tmp_path / "journal").mkdir()

    def opened(weights: str | None, engine: str | None) -> ReplayEngine | None:
        who = SimpleNamespace(identity={"weights": weights} if weights else {}, provenance={"engine": engine})
        monkeypatch.setattr(rays, "read_run", lambda _: SimpleNamespace(manifest=SimpleNamespace(engine=who)))
        return rays._answered_elsewhere(tmp_path, pool)

    assert opened("other", "openai") is None, "a run that was never evaluated"
    (tmp_path / "graded.jsonl").touch()
    assert opened("other", "transformers") is None and opened("other", None) is None
    assert opened("here" * 5, "openai") is not None and opened(None, "openai") is not None
    with pytest.raises(ModelError, match="the workers have herehere"):
        opened("other", "openai")


def test_what_a_lost_worker_had_written_is_not_asked_or_measured_again(tmp_path: Path) -> None:
    place, identity = mark(tmp_path), {"weights": "w"}
    asks = [Ask(f"c{i}", "whole", f"{i}?", "x", "text") for i in range(3)]
    said = Response(ask_identity(asks[1], identity), "x", "stop", 1, 1)
    with Journal(tmp_path / "journal") as journal:
        journal.begin(identity, {})
        journal.record(said.ask, asks[1], said, identity)
    engine: Any = SimpleNamespace(identity=identity, written=set[str]())
    late: list[Any] = []
    assert RayEngine._rest(engine, (asks, place), late) == ([asks[0], asks[2]], place)
    assert [(ask, found.text) for ask, found in late] == [(asks[1], "x")] and engine.written == {said.ask}
    assert RayEngine._rest(engine, (asks[1:2], place), []) is None
    assert RayEngine._rest(engine, (asks, None), []) == (asks, None)
    fleet: Any = SimpleNamespace(store=Store(tmp_path / "probes" / MEASURED))
    Store(tmp_path / "probes" / MEASURED).write([("b", 20)])
    known: list[str] = []
    assert FleetModel._rest(fleet, (count, [1, 2, 3], ["a", "b", "c"], place), known) == (
        count,
        [1, 3],
        ["a", "c"],
        place,
    )
    assert known == ["b"] and FleetModel._rest(fleet, (count, [2], ["b"], place), []) is None


def test_asks_of_one_case_stay_together_and_items_are_full() -> None:
    engine: Any = SimpleNamespace(place=None, pool=SimpleNamespace(workers=1, loading=SimpleNamespace(batch_size=None)))
    asks = [Ask(f"c{i % 50}", f"part:{i // 50}", "?", "x", "text") for i in range(150)]
    found = [item for item, _ in RayEngine._items(engine, asks)]
    assert [len(item) for item in found] == [36, 36, 36, 36, 6]
    even = [Ask(f"c{i % 64}", f"part:{i // 64}", "?", "x", "text") for i in range(128)]
    assert [len(item) for item, _ in RayEngine._items(engine, even)] == [32, 32, 32, 32], "filled to the last"
    engine.pool.loading.batch_size = 64
    assert [len(item) for item, _ in RayEngine._items(engine, even)] == [64, 64], "and no smaller than a batch"
    engine.pool.loading.batch_size = 5000
    many = [Ask(f"c{i}", "whole", "?", "x", "text") for i in range(1100)]
    assert [len(item) for item, _ in RayEngine._items(engine, many)] == [1024, 76], "nor more than may be lost at once"
    cases = [{ask.case for ask in item} for item in found]
    assert sum(map(len, cases)) == 50 and sorted(a.prompt for i in found for a in i) == sorted(a.prompt for a in asks)


def test_workers_that_answer_say_how_much_memory_they_took() -> None:
    peaks = [{"host": "a"}, None, {"host": "b"}]
    workers = [SimpleNamespace(peak=SimpleNamespace(remote=lambda found=found: found)) for found in peaks]
    pool: Any = SimpleNamespace(_idle=workers, _result=lambda found: found)
    assert Pool.peaks(pool) == [{"host": "a"}, {"host": "b"}]


def test_answers_that_a_worker_wrote_are_known_and_not_written_again(tmp_path: Path) -> None:
    ask = Ask("c", "whole", "q?", "a", "text")
    who = {"weights": "w"}

    def reply(finish: Any) -> Response:
        return Response("k", "a" if finish == "stop" else "", finish, 1, 1, error=None if finish == "stop" else "gone")

    with WorkersJournal(tmp_path / "journal", {"k"}) as journal:
        journal.record("k", ask, reply("error"), who)
        assert [*journal.contents.failures] == ["k"] and not journal.contents.responses
        journal.record("k", ask, reply("stop"), who)
        assert not journal.contents.failures and journal.contents.responses["k"].text == "a"
        journal.record("other", ask, reply("stop"), who)
        assert {*journal.contents.responses} == {"k", "other"}
    assert {*read_journal(tmp_path / "journal").responses} == {"other"}


@pytest.mark.parametrize("reuse", [False, True])
def test_the_journal_of_workers_reuses_answers_only_if_asked_to(reuse: bool, tmp_path: Path) -> None:
    engine = RayEngine(SimpleNamespace(about={"identity": {}, "provenance": {}}))  # type: ignore[arg-type]
    with engine.open_journal(tmp_path / "run" / "journal", reuse=reuse) as journal:
        assert journal.reuse is reuse and engine.place is not None
