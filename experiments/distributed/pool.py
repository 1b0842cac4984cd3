"""Ray workers with a queue: each free worker takes the next item, and a lost worker is replaced.

Ray decides where workers run, how arguments reach them, and when a process or node counts as dead. This module adds
what Ray cannot know: which part of an item is still undone when its worker is lost.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InputError, ModelError
from ..models.target import Loading
from ..run import provenance
from .worker import Failure, Worker

TRIES = 3
"""The run gives up after losing this many workers to one item, or while starting workers."""
OBJECT_STORE = 512 << 20
"""Bytes of shared memory for a cluster of our own. Results are small, and Ray spills what does not fit."""

_TOKEN = "; check that it is running; if it requires a token (Ray's default from 2.60 on), set RAY_AUTH_MODE=token"
"""Unless told to, Ray sends no token to a given address, and then reports only a failure to connect."""


@dataclass
class WorkItem:
    """One piece of work: arguments of a worker's method."""

    args: tuple[Any, ...]
    tries: int = 0


def import_ray() -> Any:
    """Import Ray without its telemetry. Raises ``InputError`` if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # By default Ray runs workers at a low priority, below everything else; here the user is waiting for them.
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ImportError as e:
        raise InputError("--engine ray: Ray is not installed; pip install 'composcope[ray]'") from e
    return ray


class Pool:
    """Workers with one model each. Close it when done."""

    def __init__(self, loading: Loading, say: Callable[[str], None]) -> None:
        """Join or start a cluster and load the model on the first worker; the others follow as they can.

        Raises ``InputError`` for a cluster that cannot be joined or has no room for one worker, and any error of
        loading the model.
        """
        self.ray, self.loading, self.say = import_ray(), loading, say
        self.code = {k: v for k, v in provenance.code().items() if k in ("version", "source")}
        self.ours = not self.ray.is_initialized()
        if self.ours:
            self._join()
        self.abouts: list[Mapping[str, Any]] = []
        """What each started worker reported about itself."""
        self.lost = 0
        self._idle: list[Any] = []
        self._starting: dict[Any, Any] = {}
        """Pending ``load`` -> worker."""
        self._failed_starts = 0
        self._unfit: str | None = None
        """Why a worker could not even be created, in which case another attempt would fail too."""
        try:
            self.workers, self.cpus, self.gpus = self._shares()
            for _ in range(self.workers):
                self._start()
            while not self._idle:
                self._await_one({})
        except BaseException:
            self.close()
            raise

    @property
    def about(self) -> Mapping[str, Any]:
        """What the first worker reported about the model; the others agreed."""
        return self.abouts[0]

    def _join(self) -> None:
        address = self.loading.serving.ray_address
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address is None:
            quiet["num_cpus"] = max(os.cpu_count() or 1, self.loading.serving.workers or 1)
            quiet |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
        try:
            self.ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError, self.ray.exceptions.RayError) as e:
            where = "a cluster on this machine cannot be started" if address is None else "cannot be joined"
            line = next((x for x in str(e).splitlines() if x.strip()), type(e).__name__)
            hint = _TOKEN if address not in (None, "auto") and "RAY_AUTH_MODE" not in os.environ else ""
            raise InputError(f"--ray-address {address or '(none)'}: {where} ({line}){hint}") from e

    def _shares(self) -> tuple[int, int, float]:
        """Number of workers, and the CPUs and GPUs of each."""
        total = self.ray.cluster_resources()
        cpus, gpus = int(total.get("CPU", 0)), total.get("GPU", 0.0)
        each = self.loading.serving.gpus_per_worker
        each = (1.0 if gpus >= 1 else 0.0) if each is None else each
        if each > 1 and each % 1:
            raise InputError(f"--gpus-per-worker {each:g}: above 1, Ray gives whole GPUs only; give a whole number")
        if each > gpus:
            raise InputError(f"--gpus-per-worker {each:g}: the cluster has {gpus:g} GPUs; give fewer, or 0 for CPUs")
        # 1 // 0.1 is 9, and a worker with a part of a GPU has it from one GPU
        fit = int(gpus) * int(1 / each + 1e-6) if 0 < each < 1 else int(gpus // each) if each else 0
        workers = self.loading.serving.workers or fit
        if not workers:
            raise InputError("--engine ray: the cluster has no GPUs; give the number of workers with --workers N")
        room = fit if each else max(1, cpus)
        if workers > room:
            self.say(f"{workers} workers are wanted and the cluster has room for {room}; the others wait for nodes")
        return workers, 1 if each else max(1, cpus // workers), each

    def _start(self) -> None:
        actor = self.ray.remote(
            num_cpus=self.cpus, num_gpus=self.gpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )(Worker)
        worker = actor.remote(self.loading, self.cpus)
        self._starting[worker.load.remote(self.code)] = worker

    def map(
        self, method: str, items: Sequence[tuple[Any, ...]], rest: Callable[[tuple[Any, ...]], tuple[Any, ...] | None]
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Yield the arguments and result of every item as it is done.

        ``rest`` returns what is still undone of an item whose worker was lost; None: nothing.
        Raises what the workers' methods raise, and ``ModelError`` for an item that has cost three workers.
        """
        waiting = deque(WorkItem(args) for args in items)
        busy: dict[Any, tuple[Any, WorkItem]] = {}
        try:
            while waiting or busy:
                while waiting and self._idle:
                    worker, item = self._idle.pop(), waiting.popleft()
                    busy[getattr(worker, method).remote(*item.args)] = (worker, item)
                ref = self._await_one(busy)
                if ref is None:
                    continue
                result = self._result(ref)  # if it raises, the worker is still among the busy ones
                worker, item = busy.pop(ref)
                if result is None:
                    self._replace(worker)
                    if (again := self._again(item, rest)) is not None:
                        waiting.appendleft(again)
                    continue
                self._idle.append(worker)
                yield item.args, result
        finally:
            # A caller that stopped early (a limit, an error, Ctrl-C) wants no more answers.
            for worker, _ in busy.values():
                self._replace(worker, said=False)

    def one(self, method: str, *args: Any) -> Any:
        """The result of one call, on any free worker."""
        return next(iter([value for _, value in self.map(method, [args], lambda a: a)]))

    def _await_one(self, busy: Mapping[Any, Any]) -> Any:
        """The next result, or None if a worker has started or failed to start."""
        (ref,), _ = self.ray.wait([*busy, *self._starting], num_returns=1)
        if ref in busy:
            return ref
        worker = self._starting.pop(ref)
        about = self._result(ref)
        if about is None:
            if self._unfit:
                raise ModelError(
                    f"a worker cannot be started ({self._unfit}); install the same composcope, with its libraries, "
                    "on every node"
                )
            self._failed_starts += 1
            self.lost += 1
            if self._failed_starts < TRIES:
                self.say("a worker was lost while it loaded the model; another one is started")
                self._start()
            elif busy or self._idle or self._starting:
                self.say("a worker was lost while it loaded the model, like others before; the run goes on without it")
            else:
                died = self._failed_starts
                raise ModelError(f"{died} workers died while they loaded the model (out of memory?); see Ray's logs")
            return None
        self._failed_starts = 0
        self._agree(about)
        self.abouts.append(about)
        self._idle.append(worker)
        return None

    def _agree(self, about: Mapping[str, Any]) -> None:
        """Check that all workers have the same weights, libraries and numerics, since their answers are combined."""
        for what in ("identity", "provenance", "prompting") if self.abouts else ():
            if about[what] != self.about[what]:
                raise ModelError(
                    f"worker on {about['host']}: its {what} is {about[what]}, but {self.about[what]} on "
                    f"{self.about['host']}; give all nodes the same model, libraries and devices"
                )

    def _result(self, ref: Any) -> Any:
        """What a call returned; None if its worker was lost."""
        from ray import exceptions as lost

        try:
            value = self.ray.get(ref)
        except (lost.RayActorError, lost.WorkerCrashedError, lost.ObjectLostError, lost.OutOfMemoryError) as e:
            self._unfit = _not_made(str(e))
            return None
        if isinstance(value, Failure):
            raise value.error()
        return value

    def _again(self, item: WorkItem, rest: Callable[[tuple[Any, ...]], tuple[Any, ...] | None]) -> WorkItem | None:
        left = rest(item.args)
        if left is None:
            return None
        if item.tries + 1 >= TRIES:
            raise ModelError(
                f"{TRIES} workers died on the same item (out of memory?); use a smaller --batch-size or dtype, or "
                "more GPUs for each worker; finished work is kept"
            )
        return WorkItem(left, item.tries + 1)

    def _replace(self, worker: Any, said: bool = True) -> None:
        if said:
            self.lost += 1
            self.say("a worker was lost; its work goes to the others, and another one is started")
        self.ray.kill(worker)
        self._start()

    def peaks(self) -> list[Mapping[str, Any]]:
        """Peak memory of every living worker."""
        refs = [w.peak.remote() for w in self._idle]
        return [p for p in map(self._result, refs) if p is not None]

    def close(self) -> None:
        """Stop the workers, and the cluster if it was started here. Closing twice is harmless."""
        if not self.ray.is_initialized():
            return
        for worker in (*self._idle, *self._starting.values()):
            self.ray.kill(worker)
        self._idle.clear()
        self._starting.clear()
        if self.ours:
            self.ray.shutdown()


def _not_made(said: str) -> str | None:
    """The last line of the error in a worker's constructor, if that error caused the loss of the worker."""
    lines = [x.strip() for x in said.splitlines() if x.strip()]
    return lines[-1] if lines and "creation task" in lines[0] else None
