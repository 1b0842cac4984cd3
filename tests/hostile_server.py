"""A server over bare sockets that does what no library lets one do; every exchange is real HTTP over TCP.

``Hostile(behave)`` calls ``behave(connection, request)`` for each request in a thread of its own; ``requests`` holds
what came in: method, path, headers, body.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return self.body["messages"][0]["content"] if "messages" in self.body else str(self.body.get("prompt", ""))


Behave = Callable[[socket.socket, Request], None]


class Hostile:
    """See the module."""

    def __init__(self, behave: Behave) -> None:
        self.behave = behave
        self.requests: list[Request] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = read(connection)
                self.requests.append(request)
                self.behave(connection, request)
            except OSError:
                pass  # the client has gone, as it should

    def close(self) -> None:
        self.socket.close()


def read(connection: socket.socket) -> Request:
    """One request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or _gone()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536) or _gone()
    method, path, _ = first.split(" ")
    return Request(method, path, headers, json.loads(body) if body else {})


def _gone() -> bytes:
    raise ConnectionError("closed in the middle of a request")


def completion(text: str = "So the final answer is: 6", *, model: str = "good", **choice: Any) -> bytes:
    """A good reply of an OpenAI-compatible server, as JSON."""
    said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, "text": text}
    usage = {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    whole = {"id": "x", "object": "chat.completion", "created": 0, "model": model, "choices": [{**said, **choice}]}
    return json.dumps({**whole, "usage": usage}).encode()


def reply(connection: socket.socket, body: bytes, status: str = "200 OK", **headers: str) -> None:
    """An ordinary HTTP reply."""
    named = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    connection.sendall(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body)
