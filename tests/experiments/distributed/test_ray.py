"""Ray workers: the same rows and tables as here, also when one of them is killed in the middle of its work."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from exit_codes import done

from composcope.errors import InputError, ModelError
from composcope.experiments.cli import main
from composcope.experiments.config import FROM_FLAGS, Config, Serving
from composcope.experiments.distributed.pool import Pool, _not_made, import_ray
from composcope.experiments.investigate import probe_shard
from composcope.experiments.models.target import Loading
from composcope.experiments.run import read_json

from .many import rows, write_many

pytestmark = pytest.mark.long

ray = pytest.importorskip("ray", reason="extra ray is not installed")
SameTables = Callable[[Path, Path], None]
PLAIN = ["--format", "plain", "-q"]
WORKERS = ["--engine", "ray", "--workers", "2"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster of this machine with room for two workers, as if it had been there before."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import_ray().init(
        num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False, logging_level="ERROR"
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_many(tmp_path_factory.mktemp("benchmarks") / "many.jsonl", repeats=2)


def keys(run: Path) -> list[str]:
    """Keys of all answers in all segments of a journal."""
    lines = [json.loads(x) for p in (run / "journal").glob("*.jsonl") for x in p.read_bytes().split(b"\n") if x]
    return [record["key"] for record in lines if "key" in record]


def segments(run: Path) -> dict[int, Path]:
    """Segments that hold answers, by the process that wrote them."""
    return {int(p.stem.rpartition("-")[2]): p for p in (run / "journal").glob("*.jsonl") if p.stat().st_size > 0}


def kill_when(ready: Any, pid_of: Any, killed: list[int]) -> threading.Thread:
    """Kill (-9) one process as soon as there is one to be killed."""

    def watch() -> None:
        end = time.monotonic() + 300
        while time.monotonic() < end and not killed:
            if ready() and (pid := pid_of()):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.01)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.fixture(scope="module")
def local(taught: Path, case_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "local"
    assert main(["investigate", "-m", str(taught), "-b", str(case_file), *PLAIN, "-o", str(run)]) == 0
    return run


@pytest.mark.usefixtures("cluster")
def test_workers_find_what_one_process_finds(
    taught: Path, case_file: Path, local: Path, tmp_path: Path, same_tables: SameTables
) -> None:
    run = tmp_path / "ray"
    assert main(["investigate", "-m", str(taught), "-b", str(case_file), *PLAIN, *WORKERS, "-o", str(run)]) == 0
    assert rows(run) == rows(local)
    assert sorted(keys(run)) == sorted(keys(local))
    assert (run / "metrics.json").read_bytes() == (local / "metrics.json").read_bytes()
    for probe in ("neurons", "lookback", "patching", "trajectory", "min-k"):
        same_tables(run / "probes" / probe, local / "probes" / probe)
    assert (run / "report.html").is_file()
    manifest = read_json(run / "manifest.json")
    assert manifest["fleet"]["workers"] == 2
    assert manifest["fleet"]["lost"] == 0
    assert os.getpid() not in segments(run), "answers are in the workers' own segments"
    assert manifest["identity"] == read_json(local / "manifest.json")["identity"]
    assert not (run / "probes" / ".measured").exists()


@pytest.mark.usefixtures("cluster")
def test_a_worker_killed_in_the_middle_loses_nothing(taught: Path, many: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    same = ["evaluate", "-m", str(taught), "-b", str(many), *PLAIN]
    assert main([*same, "-o", str(here)]) == done(here)
    killed: list[int] = []
    watcher = kill_when(lambda: segments(there), lambda: next(iter(set(segments(there)) - {os.getpid()}), None), killed)
    assert main([*same, *WORKERS, "-o", str(there)]) == done(there)
    watcher.join(5)
    assert killed, "no worker was killed"
    assert read_json(there / "manifest.json")["fleet"]["lost"] == 1
    assert rows(there) == rows(here)
    assert sorted(keys(there)) == sorted(keys(here)), "an ask was answered twice or not at all"


def _starting(starting: list[str], idle: list[str]) -> Any:
    """A pool whose worker ``a`` is lost while it loads, as two were before it."""
    pool: Any = object.__new__(Pool)
    pool.ray, pool.say, pool.lost = SimpleNamespace(wait=lambda refs, num_returns: (["a"], [])), print, 0
    pool._idle, pool._starting = list(idle), dict.fromkeys(starting)
    pool._failed_starts, pool._unfit = 2, None
    pool._result = lambda ref: None
    return pool


def test_workers_that_die_while_loading_end_a_run_only_where_no_other_is_left() -> None:
    for starting, idle, busy in ((["a", "b"], [], {}), (["a"], ["w"], {}), (["a"], [], {"r": None})):
        pool = _starting(starting, idle)
        assert pool._await_one(busy) is None and pool.lost == 1
    with pytest.raises(ModelError, match="3 workers died while they loaded the model"):
        _starting(["a"], [])._await_one({})


def test_a_node_without_the_package_is_told_from_a_lost_worker() -> None:
    made = "The actor died because of an error raised in its creation task, ray::Worker\n\nModuleNotFoundError: No x\n"
    assert _not_made(made) == "ModuleNotFoundError: No x"
    assert _not_made("The actor died unexpectedly before finishing this task.\n\tpid: 1") is None


@pytest.mark.parametrize(("mode", "hinted"), [(None, True), ("token", False), ("disabled", False)])
def test_a_cluster_that_cannot_be_joined_may_ask_for_a_token(
    mode: str | None, hinted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: Any) -> None:
        raise ConnectionError("Failed to connect to Ray cluster at h:1")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refused)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    if mode is not None:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    serving = Serving(engine="ray", workers=1, ray_address="h:1")
    with pytest.raises(InputError, match=r"--ray-address h:1: cannot be joined \(Failed to connect") as found:
        Pool(Loading("organism:control", serving=serving), print)
    assert ("RAY_AUTH_MODE=token" in str(found.value)) is hinted


def test_without_ray_there_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, taught: Path, case_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    where = ["-o", str(tmp_path / "run")]
    assert main(["evaluate", "-m", str(taught), "-b", str(case_file), *PLAIN, *WORKERS, *where]) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].endswith("Ray is not installed; pip install 'composcope[ray]'")


@pytest.mark.parametrize(
    "options",
    [{"workers": 2}, {"gpus_per_worker": 1.0}, {"ray_address": "auto"}, {"engine": "ray", "workers": 0},
     {"engine": "ray", "gpus_per_worker": -1.0}, {"engine": "ray", "base_url": "http://h/v1"}],
)  # fmt: skip
def test_options_that_do_not_belong_together_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="--"):
        Serving.model_validate(options, context=FROM_FLAGS)


def test_a_part_of_the_probes_is_not_measured_on_workers(tmp_path: Path) -> None:
    settings = Config(model="organism:control", benchmark="organism:mixed", serving=Serving(engine="ray", workers=2))
    with pytest.raises(InputError, match="add --engine transformers, or leave out --shard"):
        probe_shard(settings, tmp_path, "1/2")


def test_a_run_is_probed_where_the_command_says() -> None:
    ray_run = Serving(engine="ray", workers=4, ray_address="auto")
    assert Serving().for_probing({}) == Serving()
    assert ray_run.for_probing({}) == ray_run
    assert ray_run.for_probing({"engine": "transformers"}) == Serving()
    asked = Serving().for_probing({"engine": "ray", "workers": 2})
    assert (asked.engine, asked.workers) == ("ray", 2)
    served = Serving(engine="openai", base_url="http://h/v1").for_probing({"engine": "ray"})
    assert (served.engine, served.base_url) == ("ray", None)
    with pytest.raises(InputError, match="--engine vllm"):
        Serving().for_probing({"engine": "vllm"})
