"""kill -9 of the command, its workers and nodes at random times: nothing is lost, nothing is counted twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exit_codes import done

from composcope.experiments.cli import main
from composcope.experiments.distributed.pool import import_ray
from composcope.experiments.run import read_json
from composcope.experiments.run.provenance import _descendants

from .many import rows, write_many

pytest.importorskip("ray", reason="extra ray is not installed")
pytestmark = pytest.mark.slow
KILLS = 6
SameTables = Callable[[Path, Path], None]
PLAIN = ["--format", "plain", "-q"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_many(tmp_path_factory.mktemp("benchmarks") / "many.jsonl", repeats=16)


def answered(run: Path) -> list[str]:
    lines = [x for p in (run / "journal").glob("*.jsonl") for x in p.read_bytes().split(b"\n") if b'"key"' in x]
    return [json.loads(x)["key"] for x in lines if x.endswith(b"}")]


def workers_of(pid: int) -> list[int]:
    found = []
    for child in _descendants(pid):
        try:
            if b"ray::Worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
        except OSError:
            continue
    return found


def test_kills_at_random_times_leave_the_undisturbed_result(
    taught: Path, many: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    same = ["evaluate", "-m", str(taught), "-b", str(many), *PLAIN]
    assert main([*same, "-o", str(tmp_path / "here")]) == done(tmp_path / "here")
    out, rng, kills = tmp_path / "there", random.Random(0), {"driver": 0, "worker": 0}
    command = [sys.executable, "-m", "composcope", *same, "--engine", "ray", "--workers", "2",
               "--batch-size", "2", "-o", str(out)]  # fmt: skip
    code = None
    for _ in range(20):
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        while process.poll() is None and sum(kills.values()) < KILLS:
            before = len(answered(out))
            while process.poll() is None and len(answered(out)) == before:
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 0.4))
            victims = workers_of(process.pid)
            if process.poll() is not None or not victims:
                continue
            if kills["worker"] <= kills["driver"]:  # first, because orphans of a driver may answer all that is left
                os.kill(rng.choice(victims), signal.SIGKILL)
                kills["worker"] += 1
            else:
                process.kill()
                kills["driver"] += 1
        code = process.wait(600)
        if code >= 0:
            break
    assert code == done(out)
    assert kills["driver"] >= 1 and kills["worker"] >= 1, kills
    assert rows(out) == rows(tmp_path / "here")
    # What an orphan answers while the next command is already at it may stand twice, with the same text.
    assert set(answered(out)) == set(answered(tmp_path / "here"))
    print("kills", kills, "answers", len(answered(out)), "asks", len(set(answered(out))))


def test_a_worker_killed_while_it_measures_leaves_the_undisturbed_tables(
    tmp_path: Path, environment: dict[str, str], same_tables: SameTables
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    organism = ["-m", "organism:control", "-b", "organism:mixed", "--limit", "60"]
    assert main(["evaluate", *organism, "-q", "-o", str(here)]) == done(here)
    shutil.copytree(here, there)
    probe = ["--probes", "patching,lookback", "--probe-cases", "24", "-q"]
    assert main(["probe", str(here), *probe]) == done(here)
    command = [sys.executable, "-m", "composcope", "probe", str(there), *probe]
    process = subprocess.Popen([*command, "--engine", "ray", "--workers", "2"], env=environment)
    killed: list[int] = []
    while process.poll() is None and not killed:
        if any((there / "probes" / ".measured").glob("*")) and (victims := workers_of(process.pid)):
            os.kill(victims[0], signal.SIGKILL)
            killed.append(victims[0])
        time.sleep(0.01)
    assert process.wait(600) == done(there) and killed
    assert read_json(there / "manifest.json")["fleet"]["lost"] >= 1
    for name in ("patching", "lookback"):
        same_tables(there / "probes" / name, here / "probes" / name)


def test_a_lost_node_loses_nothing(taught: Path, many: Path, tmp_path: Path) -> None:
    """Two raylets on this machine stand for two nodes; the one without the driver goes down in the middle."""
    import_ray()  # sets what Ray reads when a node starts
    from ray.cluster_utils import Cluster

    same = ["evaluate", "-m", str(taught), "-b", str(many), *PLAIN]
    assert main([*same, "-o", str(tmp_path / "here")]) == done(tmp_path / "here")
    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    other, run = cluster.add_node(**node), tmp_path / "there"

    removed: list[bool] = []

    def lose() -> None:
        while len(list((run / "journal").glob("*.jsonl"))) < 2:
            time.sleep(0.02)
        removed.append(True)
        cluster.remove_node(other, allow_graceful=False)

    thread = threading.Thread(target=lose, daemon=True)
    thread.start()
    try:
        where = ["--ray-address", cluster.address, "--engine", "ray", "--workers", "2", "--batch-size", "4"]
        assert main([*same, *where, "-o", str(run)]) == done(run)
        thread.join(60 if removed else 0)
    finally:
        cluster.shutdown()
    assert rows(run) == rows(tmp_path / "here")
    if not removed:
        pytest.skip("the worker of the second node was not up before the first had done everything")
    assert read_json(run / "manifest.json")["fleet"]["lost"] >= 1
