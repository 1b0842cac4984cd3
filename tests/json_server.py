"""What the tests' servers have in common: JSON in and out without a log, an OpenAI-compatible completion, a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def body(self) -> dict[str, Any]:
        """What a request sent."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def reply(self, status: int, value: Any, length: int | None = None, **headers: str) -> None:
        """Send a value as JSON, or bytes as they are; ``length`` is what the headers say of them."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        named = {"Content_Type": "application/json", "Content_Length": str(len(data) if length is None else length)}
        for name, word in (named | headers).items():
            self.send_header(name.replace("_", "-"), word)
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def cut(words: Sequence[str], body: Mapping[str, Any]) -> tuple[str, str, int]:
    """The text within a request's token limit and before its stop strings, why it ends, and its number of tokens."""
    limit = body.get("max_completion_tokens", body.get("max_tokens", 10_000))
    text, finish = " ".join(words[:limit]), "length" if limit < len(words) else "stop"
    if stops := [text.index(s) for s in body.get("stop") or () if s in text]:
        text, finish = text[: min(stops)], "stop"
    return text, finish, min(limit, len(words))


def completion(
    text: str, finish: str = "stop", tokens: tuple[int, int] = (1, 1), model: str = "m", chat: bool = True,
    **choice: Any,
) -> dict[str, Any]:  # fmt: skip
    """A reply; ``tokens`` are those of the prompt and of the answer."""
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    kind = "chat.completion" if chat else "text_completion"
    choices = [{"index": 0, "finish_reason": finish, **said, **choice}]
    return {"id": "x", "object": kind, "created": 0, "model": model, "choices": choices, "usage": usage}


def models(name: str, **more: Any) -> dict[str, Any]:
    """The list of the only model."""
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "x", **more}]}


def serve(handler: type[JsonHandler], port: int = 0) -> None:
    """Print the port and answer for good."""
    server = Server(("127.0.0.1", port), handler)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextmanager
def running(program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of a server of this folder while its process runs."""
    command = [sys.executable, str(Path(__file__).with_name(program)), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()
