"""Commands as forks of one process that has loaded the libraries: a second instead of eight for each.

``python forked.py serve SOCKET LIBRARY ...`` listens; ``python forked.py run SOCKET composcope ARG ...`` (or ``python
FILE ARG ...``) runs a command there, with the caller's own folder, environment and open files, and ends with its exit
code.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import Any

LIBRARIES = (
    "torch",
    "transformers.modeling_utils",  # most of what a model takes; the package itself loads nothing
    "transformers.models.auto.tokenization_auto",
    "transformers.models.llama.modeling_llama",
    "scipy.stats",
    "pandas",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "math_verify",
    "openai",
    "jinja2",
    "pydantic",
    "rich.progress",
    "typer.main",
)


@contextmanager
def server(environment: dict[str, str], libraries: Sequence[str] = LIBRARIES) -> Iterator[Path]:
    """The socket of a server that lives as long as the context and has loaded ``libraries``."""
    with TemporaryDirectory(prefix="forked-") as folder:
        where = Path(folder) / "socket"
        command = [sys.executable, __file__, "serve", str(where), *libraries]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            yield where
        finally:
            process.kill()
            process.communicate()


def serve(where: str, *libraries: str) -> None:
    """Fork for every caller."""
    for name in libraries:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one waits for the forks but their callers
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(where)
        listening.listen()
        print("ready", flush=True)
        while 0 not in select([listening, 0], [], [])[0]:  # whoever started it has gone
            caller, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(caller)
            caller.close()


def _answer(caller: socket.socket) -> None:
    """Do what a caller wants; leaves by the ordinary end of the interpreter, which closes the connection."""
    data, files, _, _ = socket.recv_fds(caller, 1 << 16, 3)
    while piece := caller.recv(1 << 16):
        data += piece
    wanted: dict[str, Any] = json.loads(data)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    code: Any = 1
    try:
        code = _run(*wanted["command"])
    except SystemExit as e:
        code = e.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    number = code if isinstance(code, int) else int(code is not None)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    with suppress(OSError):  # the caller was stopped
        caller.sendall(bytes([number & 255]))
    sys.exit(number)


def _run(program: str, *arguments: str) -> Any:
    if program == "composcope":
        sys.path[0] = os.getcwd()  # noqa: PTH109  (as with -m)
        sys.argv = ["composcope", *arguments]
        return import_module("composcope.experiments.cli").main()
    import runpy

    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    sys.argv = list(arguments)
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


def run(where: str, *command: str) -> int:
    """What a command's exit code is."""
    wanted = {"command": command, "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
    with socket.socket(socket.AF_UNIX) as there:
        there.connect(where)
        socket.send_fds(there, [b" "], [0, 1, 2])
        there.sendall(json.dumps(wanted).encode())
        there.shutdown(socket.SHUT_WR)
        said = b""
        while piece := there.recv(1):  # until the fork has ended
            said += piece
    return said[0] if said else 1


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        sys.exit(run(*sys.argv[2:]))
