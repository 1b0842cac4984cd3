"""Creates run folders and writes their options and manifest, under a lock.

One run is one model x one benchmark x one protocol. The manifest is written at each step, so a run that was stopped
shows how far it got.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import JournalError
from ...files import sweep
from . import provenance
from .folder import SCHEMA, check_own, command_line, differing, differs, locked, read_json, write_json, write_text
from .schema import Manifest, checked

if TYPE_CHECKING:
    from ...probes.result import ProbeResult  # brings torch


@dataclass
class OpenRun:
    """A run folder open for writing. ``manifest`` is kept in memory and written at each step."""

    path: Path
    config: dict[str, Any]
    manifest: Manifest
    status_after_error: str = "failed"
    """``complete`` while only a plugin's own work can fail: what the run holds is whole without it."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def journal(self) -> Path:
        return self.path / "journal"

    def record(self, **facts: Any) -> None:
        """Add facts to the manifest and write it."""
        for name, value in facts.items():
            setattr(self.manifest, name, value)
        write_json(self.path / "manifest.json", self.manifest.facts())

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add a step's wall-clock seconds and peak memory (MB) to the manifest, even if the step fails."""
        provenance.reset_peaks()
        start, manifest = time.monotonic(), self.manifest
        try:
            yield
        finally:
            peak = provenance.larger_peaks(manifest.peak_memory.get(step), provenance.memory_peaks())
            manifest.peak_memory = {**manifest.peak_memory, step: peak}
            seconds = round(manifest.timings.get(step, 0.0) + time.monotonic() - start, 3)
            manifest.timings = {**manifest.timings, step: seconds}


@contextmanager
def begin_run(
    folder: str | Path, config: Mapping[str, Any], *, identity: Mapping[str, Any], asks: bool = True
) -> Iterator[OpenRun]:
    """Create a run folder, or continue an existing one, under its lock.

    ``identity`` is what distinguishes this run from others (model, benchmark, protocol, ...). A folder that contains
    another run is refused, with the fields that differ. ``config`` has every option and is saved as ``config.yaml``.
    Without ``asks``, the manifest's ``command`` stays the one that asks, since only that one continues a stopped run.
    """
    import yaml

    check_own(Path(folder))
    with locked(folder) as path:
        sweep(path)
        file = path / "manifest.json"
        manifest = checked(Manifest, read_json(file), str(file)) if file.is_file() else Manifest(identity={})
        _same_run(path, manifest.identity, identity)
        write_text(path / "config.yaml", yaml.safe_dump({"schema": SCHEMA, **config}, sort_keys=False))
        run = OpenRun(path, dict(config), manifest)
        _begin(run, identity, manifest.command if not asks else None)
        start = time.monotonic()
        try:
            yield run
        except BaseException as e:
            _end(run, "interrupted" if isinstance(e, KeyboardInterrupt) else run.status_after_error, start, e)
            raise
        _end(run, "complete", start)


def save_probe(result: ProbeResult, folder: Path, manifest: Manifest, inputs: str | None = None, **cases: Any) -> None:
    """Save a probe's result, and next to its tables what it was made with: model, data and code.

    ``inputs`` is the hash of everything that the numbers depend on. It is removed first and written last, so a run that
    was killed in between runs the probe again. ``cases`` says which cases the probe ran on (``probing.save_chosen``).
    """
    (folder / "inputs.json").unlink(missing_ok=True)
    shutil.rmtree(folder / "cases", ignore_errors=True)  # single cases of the earlier result
    result.save(folder)
    for table in sorted(folder.glob("*.csv")):
        provenance.write_beside(table, manifest.made_with())
    if inputs is not None:
        write_json(folder / "inputs.json", {"inputs": inputs, **cases})


def _same_run(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    # Asking options are recorded only if they differ from the defaults.
    before, now = ({**about, "asking": about.get("asking", {})} if before else {} for about in (before, now))
    changed = [k for k in now if k in before and differs(k, before, now)]
    differ = [said for k in changed for said in differing(k, before[k], now[k])]
    if differ:
        raise JournalError(f"{path}: holds another run ({'; '.join(differ)}); give another --out or the same options")


def _begin(run: OpenRun, identity: Mapping[str, Any], command: str | None) -> None:
    manifest, plugins, now = run.manifest, provenance.plugin_files(), _now()
    run.record(
        created=manifest.created or now,
        run=run.name,
        status="running",
        identity={**manifest.identity, **identity},
        composcope=provenance.code(),
        plugins=[p for p in manifest.plugins if p not in plugins] + plugins,
        versions=provenance.libraries(),
        machine=provenance.machine(),
        command=command or command_line(),
        invocations=[*manifest.invocations, {"started": now, "command": command_line()}],
        seed=run.config.get("seed"),
    )


def _end(run: OpenRun, status: str, start: float, error: BaseException | None = None) -> None:
    call = {"ended": _now(), "seconds": round(time.monotonic() - start, 3), "status": status}
    if error is not None:
        call["error"] = f"{type(error).__name__}: {error}"
    *earlier, this = run.manifest.invocations
    try:
        run.record(status=status, invocations=[*earlier, {**this, **call}])
    except OSError:
        # On a full disk, the original error is the one to report; the old manifest stays.
        if error is None:
            raise


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
