"""The queue of workers without Ray: who gets the next item, what a lost worker costs, and what is never asked twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

from composcope.errors import InputError, ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.journal import Journal, ask_identity, read_journal
from composcope.experiments.config import Serving
from composcope.experiments.distributed import engine as engines
from composcope.experiments.distributed import pool as pools
from composcope.experiments.distributed.engine import FleetModel, RayEngine, WorkersJournal, mark
from composcope.experiments.distributed.pool import TRIES, Pool
from composcope.experiments.distributed.store import Store, entry_key
from composcope.experiments.distributed.worker import Failure, Worker, _on_cpu
from composcope.experiments.models.target import Loading, Raw
from composcope.experiments.run.folder import MEASURED

exceptions = pytest.importorskip("ray.exceptions", reason="ray is not installed: no registry")
ABOUT = {"host": "h", "pid": 1, "identity": {"weights": "w"}, "provenance": {"dtype": "float32"}, "prompting": "raw",
         "versions": {}, "facts": {}, "numerics": {}}  # fmt: skip


@dataclass(eq=False)
class Ref:
    """A call that was made, and what it will return."""

    name: str
    args: tuple[Any, ...]
    function: Callable[..., Any]


class Ray:
    """Actors that live in this process: a call is done when it is waited for, and ``die`` says which calls lose one."""

    exceptions = exceptions

    def __init__(
        self, die: Callable[[str, tuple[Any, ...]], bool] = lambda *_: False, about: Sequence[Any] = ()
    ) -> None:
        self.die, self.abouts = die, itertools.chain(about, itertools.repeat(ABOUT))
        self.killed: list[Any] = []
        self.made = 0

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 8.0}

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        self.options = options
        return lambda _: SimpleNamespace(remote=self._actor)

    def _actor(self, loading: Loading, threads: int) -> Any:
        self.made += 1
        calls = {"load": lambda code: next(self.abouts), "double": lambda x, times=2: times * x, "refuse": self._refuse}
        about = {n: SimpleNamespace(remote=lambda *args, n=n, f=f: Ref(n, args, f)) for n, f in calls.items()}
        return SimpleNamespace(number=self.made, threads=threads, **about)

    @staticmethod
    def _refuse(x: int) -> Failure:
        return Failure("InputError", f"no {x}")

    def wait(self, refs: Sequence[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return [refs[-1]], list(refs[:-1])

    def get(self, ref: Ref) -> Any:
        if self.die(ref.name, ref.args):
            raise exceptions.RayActorError()
        return ref.function(*ref.args)

    def kill(self, worker: Any) -> None:
        self.killed.append(worker)


def _pool(monkeypatch: pytest.MonkeyPatch, ray: Ray, workers: int = 2) -> tuple[Pool, list[str]]:
    said: list[str] = []
    monkeypatch.setattr(pools, "import_ray", lambda: ray)
    serving = Serving(engine="ray", workers=workers)
    return Pool(Loading("m", serving=serving), said.append), said


def test_every_item_is_done_once_and_workers_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray()
    pool, _ = _pool(monkeypatch, ray)
    done = dict(pool.map("double", [(i,) for i in range(7)], lambda args: args))
    assert done == {(i,): 2 * i for i in range(7)} and pool.one("double", 4) == 8
    assert pool.one("double", 4, 3) == 12, "with all that it is given"
    assert (ray.made, pool.lost, ray.killed) == (2, 0, [])
    assert (ray.options["num_cpus"], ray.options["num_gpus"], ray.options["max_restarts"]) == (4, 0.0, 0)


@pytest.mark.parametrize("gpus", [1.5, 16.0])
def test_gpus_that_a_worker_cannot_have_are_refused_and_our_own_cluster_ends(
    gpus: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, up = Ray(), list[bool]()
    monkeypatch.setattr(ray, "is_initialized", lambda: bool(up))
    monkeypatch.setattr(ray, "init", lambda **_: up.append(True), raising=False)
    monkeypatch.setattr(ray, "shutdown", up.clear, raising=False)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 8.0, "GPU": 8.0})
    monkeypatch.setattr(pools, "import_ray", lambda: ray)
    with pytest.raises(InputError, match=f"--gpus-per-worker {gpus:g}: "):
        Pool(Loading("m", serving=Serving(engine="ray", gpus_per_worker=gpus)), print)
    assert not up and not ray.made


@pytest.mark.parametrize("address", [None, "auto", "h:1"])
def test_the_cluster_that_was_named_is_joined_and_without_one_a_small_one_is_started(
    address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[dict[str, Any]] = []
    ray = Ray()
    monkeypatch.setattr(ray, "is_initialized", lambda: bool(joined))
    monkeypatch.setattr(ray, "init", lambda **given: joined.append(given), raising=False)
    monkeypatch.setattr(pools, "import_ray", lambda: ray)
    Pool(Loading("m", serving=Serving(engine="ray", workers=2, ray_address=address)), print)
    (given,) = joined
    assert given["address"] == address and ("num_cpus" in given) == (address is None)
    assert address is not None or (given["num_cpus"] >= 2 and not given["include_dashboard"])
    for cores, workers, wanted in ((1, 6, 6), (32, 6, 32), (None, None, 1)):  # a worker takes at least one
        monkeypatch.setattr(pools.os, "cpu_count", lambda cores=cores: cores)
        pool: Any = SimpleNamespace(ray=ray, loading=Loading("m", serving=Serving(engine="ray", workers=workers)))
        Pool._join(pool)
        assert joined[-1]["num_cpus"] == wanted


def test_a_lost_worker_is_replaced_and_only_what_is_left_of_its_item_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    deaths = iter([True])
    ray = Ray(lambda name, args: name == "double" and args == (3,) and next(deaths, False))
    pool, said = _pool(monkeypatch, ray)
    asked: list[Any] = []

    def rest(args: tuple[Any, ...]) -> tuple[Any, ...]:
        asked.append(args)
        return (30,)

    done = [value for _, value in pool.map("double", [(i,) for i in range(5)], rest)]
    assert sorted(done) == [0, 2, 4, 8, 60] and asked == [(3,)]
    assert (pool.lost, len(ray.killed), ray.made) == (1, 1, 3) and "a worker was lost" in said[-1]
    deaths = iter([True])
    assert [v for _, v in pool.map("double", [(3,), (1,)], lambda args: None)] == [2], "nothing was left of it"


def test_an_item_that_costs_three_workers_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(lambda name, args: args == (3,))
    pool, _ = _pool(monkeypatch, ray)
    with pytest.raises(ModelError, match=rf"{TRIES} workers died on the same item \(out of memory\?\)"):
        list(pool.map("double", [(3,)], lambda args: args))
    assert pool.lost == TRIES


def test_an_error_that_a_user_can_mend_is_raised_and_workers_that_are_busy_are_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = Ray()
    pool, said = _pool(monkeypatch, ray)
    with pytest.raises(InputError, match=r"no [12]"):
        list(pool.map("refuse", [(1,), (2,)], lambda args: args))
    assert len(ray.killed) == 2 and pool.lost == 0 and not said, "both were busy, and no worker was lost"
    pool, _ = _pool(monkeypatch, ray := Ray())
    given: Any = pool.map("double", [(i,) for i in range(6)], lambda args: args)
    next(given)
    given.close()
    assert pool.lost == 0 and len(ray.killed) == 1, "the other worker was busy"


def test_workers_that_differ_or_die_while_they_load_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for what, value in {"identity": {"weights": "x"}, "provenance": {"dtype": "bfloat16"}, "prompting": "chat"}.items():
        pool, _ = _pool(monkeypatch, Ray(about=[ABOUT, {**ABOUT, what: value, "host": "other"}]))
        with pytest.raises(ModelError, match=f"worker on other: its {what} is .*on h;"):
            list(pool.map("double", [(i,) for i in range(9)], lambda args: args))
    with pytest.raises(ModelError, match=f"{TRIES} workers died while they loaded"):
        _pool(monkeypatch, Ray(lambda name, _: name == "load"), workers=1)
    deaths = iter([True, True])
    pool, said = _pool(monkeypatch, Ray(lambda name, _: name == "load" and next(deaths, False)), workers=1)
    assert pool.one("double", 2) == 4 and pool.lost == 2 and len(said) == 2
    late = iter([True, True, False, True, True])
    pool, _ = _pool(monkeypatch, Ray(lambda name, _: name == "load" and next(late, False)), workers=1)
    for _ in range(2):
        pool._idle.clear()
        pool._start()
        assert pool.one("double", 2) == 4, "only losses in a row are counted"
    assert pool.lost == 4 and len(pool.abouts) == 3


def _asks(n: int) -> list[Ask]:
    return [Ask(f"c{i}", "whole", f"q{i}", "a", "text") for i in range(n)]


def _response(ask: Ask, identity: Any) -> Response:
    return Response(ask_identity(ask, identity), f"to {ask.prompt}", "stop", 1, 1)


class Engine:
    """Answers in another order than it was asked."""

    identity, provenance = {"weights": "w"}, {"dtype": "float32"}

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    def answer(self, asks: Sequence[Ask]) -> Any:
        self.asked += asks
        for ask in reversed(asks):
            yield ask, _response(ask, self.identity)


@pytest.mark.parametrize("shared", [True, False])
def test_a_worker_answers_what_its_journal_lacks_and_gives_everything_back_in_its_place(
    shared: bool, tmp_path: Path
) -> None:
    worker, asks, engine = Worker(Loading("m"), 1), _asks(4), Engine()
    worker.target = SimpleNamespace(engine=engine)
    place = mark(tmp_path) if shared else None
    if shared:
        with Journal(tmp_path / "journal") as journal:
            journal.begin(engine.identity, engine.provenance)
            journal.record(
                ask_identity(asks[1], engine.identity), asks[1], _response(asks[1], engine.identity), engine.identity
            )
    found, written = worker.answer(asks, place)
    assert written == shared and {i: r.text for i, r in found} == {i: f"to q{i}" for i in range(4)}
    assert [a.prompt for a in engine.asked] == (["q0", "q2", "q3"] if shared else ["q0", "q1", "q2", "q3"])
    if shared:
        assert len(read_journal(tmp_path / "journal").responses) == 4
        again = Worker(Loading("m"), 1)
        again.target = SimpleNamespace(engine=engine)
        assert len(again.answer(asks, place)[0]) == 4 and len(engine.asked) == 3, "nothing is asked twice"
    else:
        assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize("kept", [True, False])
def test_answers_of_workers_come_back_with_their_asks_and_those_in_their_journals_are_known(
    kept: bool, tmp_path: Path
) -> None:
    asks, identity = _asks(3), {"weights": "w"}

    def answered(method: str, items: Sequence[Any], rest: Any) -> Any:
        assert method == "answer" and [len(args[0]) for args in items] == [3]
        yield items[0], ([(i, _response(asks[i], identity)) for i in (2, 0, 1)], kept)

    pool: Any = SimpleNamespace(about={"identity": identity, "provenance": {}}, workers=1, map=answered,
                                loading=SimpleNamespace(batch_size=None))  # fmt: skip
    engine = RayEngine(pool)
    journal = engine.open_journal(tmp_path / "journal")
    assert isinstance(journal, WorkersJournal) and engine.place is not None and engine.place.here() == tmp_path
    found = {ask.prompt: r.text for ask, r in engine.answer(asks)}
    assert found == {f"q{i}": f"to q{i}" for i in range(3)}
    assert engine.written == {ask_identity(a, identity) for a in asks if kept} and journal.written is engine.written


def test_what_the_last_worker_had_kept_when_it_was_lost_is_given_back_too(tmp_path: Path) -> None:
    asks, identity = _asks(2), {"weights": "w"}

    def lost(method: str, items: Sequence[Any], rest: Any) -> Any:
        assert {rest(args) for args in items} == {None}
        yield from ()

    pool: Any = SimpleNamespace(about={"identity": identity, "provenance": {}}, workers=1, map=lost,
                                loading=SimpleNamespace(batch_size=None),
                                one=lambda *_: (None, torch.float32, (0,)))  # fmt: skip
    engine = RayEngine(pool)
    engine.place = mark(tmp_path)
    with Journal(tmp_path / "journal") as journal:
        journal.begin(identity, {})
        for ask in asks:
            journal.record(ask_identity(ask, identity), ask, _response(ask, identity), identity)
    assert {ask.prompt: r.text for ask, r in engine.answer(asks)} == {"q0": "to q0", "q1": "to q1"}

    def measure(*_: Any) -> list[tuple[int, Any]]:
        return []

    fleet = FleetModel(pool, None, tmp_path, "s")
    pool.map = lambda method, work, rest: (
        Store(tmp_path / "probes" / MEASURED).write([(entry_key("s", measure, i), i * 10) for i in (1, 2)]),
        lost(method, work, rest),
    )[1]
    assert dict(fleet.spread(measure, [1, 2, 1], [], light=False)) == {0: 10, 1: 20, 2: 10}


def test_measurements_are_made_once_for_equal_items_and_kept_where_the_worker_could_not(tmp_path: Path) -> None:
    measured: list[Any] = []

    def mapped(method: str, work: Sequence[Any], rest: Any) -> Any:
        for args in work:
            measured.extend(args[1])
            yield args, ([(j, 10 * len(item)) for j, item in enumerate(args[1])], ["odd", "odd"], False)

    def measure(*_: Any) -> list[tuple[int, Any]]:
        return []

    sizes = lambda *_: (None, torch.float32, (0,))  # noqa: E731
    pool: Any = SimpleNamespace(one=sizes, workers=1, map=mapped)
    store = Store(tmp_path / "probes" / MEASURED)
    store.write([(entry_key("s", measure, (1, 2)), "kept")])
    fleet, notes = FleetModel(pool, None, tmp_path, "s"), list[str]()
    items = [(1,), (1, 2), (1,), (1, 2, 3)]
    found = dict(fleet.spread(measure, items, notes, light=False))
    assert found == {0: 10, 1: "kept", 2: 10, 3: 30} and notes == ["odd"]
    assert sorted(measured) == [(1,), (1, 2, 3)]
    measured.clear()
    assert dict(fleet.spread(measure, items, notes, light=False)) == found and not measured, "the store has them now"
    assert dict(fleet.spread(measure, [[7, 7, 7, 7]], None, light=False)) == {0: 40}


def test_results_leave_the_workers_device_with_their_shape() -> None:
    made = torch.ones(2, requires_grad=True) * 2
    found = _on_cpu({"a": [made, (made, "x")], "b": 3})
    assert isinstance(found["a"], list) and isinstance(found["a"][1], tuple) and found["b"] == 3
    assert not found["a"][0].requires_grad and found["a"][1][0].tolist() == [2, 2]


def test_a_model_without_a_chat_template_is_asked_in_raw_prompts_and_answers_what_was_asked() -> None:
    engine = Engine()
    asks = [Ask(f"c{i}", "whole", f"q{i}", "a", "text", prompting="chat") for i in range(3)]
    found = list(Raw(engine).answer(asks))  # type: ignore[arg-type]
    assert [a.prompting for a in engine.asked] == ["raw"] * 3
    assert [(a.prompt, a.prompting, r.text) for a, r in found] == [(f"q{i}", "chat", f"to q{i}") for i in (2, 1, 0)]


@pytest.mark.parametrize(("prompting", "before"), [(None, None), ("raw", "kept")])
def test_workers_are_opened_with_the_tokenizer_of_their_model_and_closed_where_it_cannot_be_read(
    prompting: str | None, before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    made: list[Any] = []

    class Opened:
        about: ClassVar = {"prompting": "chat"}

        def __init__(self, loading: Loading, say: Any) -> None:
            made.append(loading.model)

        def close(self) -> None:
            closed.append("closed")

    words = SimpleNamespace()
    monkeypatch.setattr(engines, "Pool", Opened)
    monkeypatch.setattr(engines, "sources", lambda *_: (SimpleNamespace(name="m", location="at"), None))
    monkeypatch.setattr(engines, "_answered_elsewhere", lambda *_: before)
    monkeypatch.setattr(engines, "RayEngine", lambda pool: "asked here")
    monkeypatch.setattr("composcope.model_loading.load_tokenizer", lambda at: words if at == "at" else None)
    loading = Loading("given", prompting=prompting)
    found = engines.load_fleet(loading, tmp_path, print)
    assert (found.tokenizer, found.engine, found.prompting, found.run) == (
        words, before or "asked here", prompting or "chat", tmp_path)  # fmt: skip
    assert made == ["m"] and closed == []

    def broken(_: str) -> None:
        raise ModelError("no tokenizer")

    monkeypatch.setattr("composcope.model_loading.load_tokenizer", broken)
    with pytest.raises(ModelError):
        engines.load_fleet(loading, tmp_path, print)
    assert closed == ["closed"]


def test_the_manifest_says_which_workers_there_were_what_they_had_and_how_many_were_lost(tmp_path: Path) -> None:
    versions = {"torch": "2"}
    abouts = [{**ABOUT, "host": h, "pid": i, "versions": versions, "facts": {"n": i}, "numerics": {"dtype": h}}
              for i, h in enumerate("ab")]  # fmt: skip
    has = {"workers": 4, "gpus": 0.5, "cpus": 1, "lost": 3, "abouts": abouts, "about": abouts[0]}
    pool: Any = SimpleNamespace(**has, peaks=lambda: ["p"])
    target = engines.RayTarget(*[None] * 5, pool=pool, run=tmp_path)  # type: ignore[arg-type]
    started = [{"host": h, "pid": i, "versions": versions} for i, h in enumerate("ab")]
    assert target.record() == {"fleet": {"workers": 4, "gpus_per_worker": 0.5, "cpus_per_worker": 1, "lost": 3,
                                         "started": started, "peak_memory": ["p"]}}  # fmt: skip
    assert (target.facts(), target.numerics()) == ({"n": 0}, {"dtype": "a"})
