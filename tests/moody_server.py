"""An OpenAI-compatible server with the life of a real one: not well at first, crashes, hangs, leaves children behind.

``python moody_server.py PORT FOLDER [MOOD ...]``. Moods: ``never`` (never healthy), ``odd`` (speaks no HTTP),
``dead`` (ends while starting), ``deaf`` (ignores SIGTERM), ``child`` (starts a child process of its own, as vLLM does).
Crashes on a prompt that holds ``[crash:N]`` the first N times it sees it, counted in FOLDER over all its lives, where
each life leaves ``life-PID``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from json_server import JsonHandler, completion, serve

PORT, FOLDER, MOODS = int(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3:])
lock = threading.Lock()
looked = threading.Semaphore(1)
"""The first look at its health finds it starting."""


def count(prompt: str) -> int:
    with lock:
        path = FOLDER / f"seen-{abs(hash(prompt))}"
        path.write_text(path.read_text() + "x" if path.exists() else "x")
        return len(path.read_text())


class Handler(JsonHandler):
    def do_GET(self) -> None:
        if "odd" in MOODS:
            self.wfile.write(b"what?\r\n")
            return
        ready = "never" not in MOODS and looked.acquire(blocking=False) is False
        self.reply(200 if ready else 503, {})

    def do_POST(self) -> None:
        body = self.body()
        prompt = body["prompt"] if "prompt" in body else body["messages"][0]["content"]
        if "[crash:" in prompt and count(prompt) <= int(prompt.partition("[crash:")[2].partition("]")[0]):
            print("RuntimeError: the engine has died", flush=True)
            os._exit(3)
        self.reply(200, completion(f"answer to {prompt}", chat="prompt" not in body))


if __name__ == "__main__":
    (FOLDER / f"life-{os.getpid()}").touch()
    if "dead" in MOODS:
        print("ValueError: No available memory for the cache blocks", flush=True)
        sys.exit(1)
    if "deaf" in MOODS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child" in MOODS:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (FOLDER / f"life-{child.pid}").touch()
    serve(Handler, PORT)
