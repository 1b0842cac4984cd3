"""An OpenAI-compatible server with the life of a real one: not well at first, crashes, hangs, leaves children behind.

``python moody_server.py PORT FOLDER [MOOD ...]``. Moods: ``never`` (never healthy), ``odd`` (speaks no HTTP),
``dead`` (ends while starting), ``deaf`` (ignores SIGTERM), ``child`` (starts a child process of its own, as vLLM does).
Crashes on a prompt that holds ``[crash:N]`` the first N times it sees it, counted in FOLDER over all its lives, where
each life leaves ``life-PID``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PORT, FOLDER, MOODS = int(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3:])
lock = threading.Lock()
looked = threading.Semaphore(1)
"""The first look at its health finds it starting."""


def count(prompt: str) -> int:
    with lock:
        path = FOLDER / f"seen-{abs(hash(prompt))}"
        path.write_text(path.read_text() + "x" if path.exists() else "x")
        return len(path.read_text())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def reply(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if "odd" in MOODS:
            self.wfile.write(b"what?\r\n")
            return
        ready = "never" not in MOODS and looked.acquire(blocking=False) is False
        self.reply(200 if ready else 503, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["prompt"] if "prompt" in body else body["messages"][0]["content"]
        if "[crash:" in prompt and count(prompt) <= int(prompt.partition("[crash:")[2].partition("]")[0]):
            print("RuntimeError: the engine has died", flush=True)
            os._exit(3)
        text = f"answer to {prompt}"
        said = {"text": text} if "prompt" in body else {"message": {"role": "assistant", "content": text}}
        choice = {"index": 0, "finish_reason": "stop", **said}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self.reply(200, {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice],
                         "usage": usage})  # fmt: skip


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
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    server.daemon_threads = True
    server.serve_forever()
