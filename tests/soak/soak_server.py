"""An OpenAI-compatible server that adds numbers up, slowly, and breaks as often as it is told. Run as a process.

``python soak_server.py LATENCY FAULT_RATE SLOW`` (seconds, share of the requests, seconds); prints its port. ``GET
/counts`` tells how many requests of each fate it has had, how many questions it answered and how many of them more
than once. Which request fails and how follows from the question and how often it was asked.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

FAULTS = ("429", "500", "reset", "slow", "truncated", "cut-off")
WRONG = 0.2
"""Share of the questions that it answers wrongly."""


def share(text: str) -> float:
    """A number in [0, 1) that follows from a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def question_in(prompt: str) -> str:
    """The question inside its instruction; the prompt itself where it holds none."""
    found = re.findall(r"What is the sum of [\d, ]+\?", prompt)
    return found[-1] if found else prompt


def answer(question: str) -> int:
    """What this server says: right but for a fifth of the questions."""
    return sum(map(int, re.findall(r"\d+", question))) + (share(f"wrong {question}") < WRONG)


def fault(question: str, times: int, rate: float) -> str | None:
    """How the request fails that asks a question for the n-th time; None where it does not."""
    drawn = share(f"fault {question} {times}")
    return FAULTS[int(drawn / rate * len(FAULTS))] if drawn < rate else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    latency, rate, slow = 0.5, 0.0, 3.0
    asked: ClassVar[Counter[bytes]] = Counter()
    answered: ClassVar[Counter[bytes]] = Counter()
    fates: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def reply(self, status: int, data: bytes, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            return self.reply(200, json.dumps({"object": "list", "data": [{"id": "sums", "object": "model"}]}).encode())
        with self.lock:
            again = sum(n > 1 for n in self.answered.values())
            counts = {"fates": dict(self.fates), "answered": len(self.answered), "answered_again": again}
        self.reply(200, json.dumps(counts).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            return self.reply(404, b'{"error": {"message": "chat only"}}')
        prompt = body["messages"][0]["content"]
        question = question_in(prompt)
        if not question.startswith("What is the sum of"):
            return self.probe(body, prompt)
        key = hashlib.sha256(question.encode()).digest()[:8]
        with self.lock:
            self.asked[key] += 1
            fate = fault(question, self.asked[key], self.rate) or "answered"
            self.fates[fate] += 1
        text = f"So the final answer is: {answer(question)}"
        if self.fate(fate, self.completion(text.split(" "), body)):
            with self.lock:
                self.answered[key] += 1

    def fate(self, fate: str, whole: bytes) -> bool:
        """Do to this request what was decided; whether it was answered."""
        if fate == "429":
            self.reply(429, b'{"error": {"message": "slow down"}}', Retry_After="1")
        elif fate == "reset":
            time.sleep(self.latency / 2)
            # Lingering for no time sends a reset in place of an orderly end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        else:
            time.sleep(self.latency + (self.slow if fate == "slow" else 0.0))
            if fate == "500":
                self.reply(500, b'{"error": {"message": "it broke"}}')
            elif fate == "truncated":
                self.reply(200, whole[: len(whole) // 2])
            elif fate == "cut-off":
                self.reply(200, whole[: len(whole) // 2], len(whole))
                self.close_connection = True
            else:
                self.reply(200, whole)
        return fate in ("answered", "slow")

    def probe(self, body: dict[str, Any], prompt: str) -> None:
        """Small requests that find out what is honored: text follows from prompt, temperature and seed."""
        drawn = f"{prompt}|{body.get('seed') if body.get('temperature') else ''}"
        digest = hashlib.sha256(drawn.encode()).hexdigest()
        self.reply(200, self.completion([digest[i : i + 3] for i in range(0, 60, 3)], body))

    def completion(self, words: list[str], body: dict[str, Any]) -> bytes:
        limit = body.get("max_completion_tokens", body.get("max_tokens", 10_000))
        text, finish = " ".join(words[:limit]), "length" if limit < len(words) else "stop"
        stops = [text.index(s) for s in body.get("stop") or () if s in text]
        text = text[: min(stops)] if stops else text
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1, "completion_tokens": min(limit, len(words)), "total_tokens": 1}
        whole = {"id": "r", "object": "chat.completion", "created": 0, "model": "sums", "choices": [choice]}
        return json.dumps({**whole, "usage": usage}).encode()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that was killed


if __name__ == "__main__":
    Handler.latency, Handler.rate, Handler.slow = map(float, sys.argv[1:4])
    server = Server(("127.0.0.1", int(sys.argv[4]) if len(sys.argv) > 4 else 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
