"""An OpenAI-compatible server whose answers follow from the prompt and that fails on demand. Run as a process.

``python faulty_server.py [FIELD ...]`` ignores those request fields (``old-limit``: refuses
the old name of the token limit; ``context``: says that it has twenty positions); prints its port. A prompt that holds
``[fault:N]`` fails N times (or always with ``N = *``) before it is answered.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

IGNORED = set(sys.argv[1:])
CONTEXT = 20
seen: Counter[str] = Counter()
lock = threading.Lock()


def words(prompt: str, temperature: float, seed: int) -> list[str]:
    source = f"{prompt}|{seed}" if temperature > 0 else prompt
    digest = hashlib.sha256(source.encode()).hexdigest()
    return [f"w{digest[i : i + 3]}" for i in range(0, 60, 3)]


SAID = re.compile(r"\[(?:echo|says (\d+))\]")
"""What a prompt has the server say: the prompt itself, or that a number is the answer."""


def completion(body: dict[str, Any], prompt: str) -> tuple[str, str, int]:
    body = {k: v for k, v in body.items() if k not in IGNORED}
    text = words(prompt, body.get("temperature", 0.0), body.get("seed", 0))
    limit = body.get("max_completion_tokens", body.get("max_tokens", 1000))
    answer, finish = " ".join(text[:limit]), "length" if limit < len(text) else "stop"
    stop = [answer.index(s) for s in body.get("stop", ()) if s in answer]
    if stop:
        answer, finish = answer[: min(stop)], "stop"
    return answer, finish, min(limit, len(text))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def reply(self, status: int, data: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            entry = {"id": "good", "object": "model", "created": 0, "owned_by": "x"}
            entry |= {"max_model_len": CONTEXT} if "context" in IGNORED else {}
            return self.reply(200, json.dumps({"object": "list", "data": [entry]}).encode())
        with lock:
            counts = dict(seen)
        self.reply(200, json.dumps(counts).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") == "Bearer wrong":
            return self.error(401, "Incorrect API key provided: wrong")
        chat = self.path.endswith("/chat/completions")
        if ("chat" if chat else "raw") in IGNORED:
            return self.error(404, "no such endpoint")
        if "old-limit" in IGNORED and chat and "max_tokens" in body:
            return self.error(400, "max_tokens is not supported with this model; use max_completion_tokens")
        if body["model"] != "good":
            return self.error(404, f"no model {body['model']}")
        if "context" in IGNORED and body.get("max_tokens", 0) > CONTEXT:
            return self.error(400, f"max_tokens cannot be greater than {CONTEXT}")
        prompt = body["messages"][0]["content"] if chat else body["prompt"]
        with lock:
            seen[prompt] += 1
            count = seen[prompt]
        fault = re.search(r"\[(\w+):(\d+|\*)\]", prompt)
        if fault and (fault[2] == "*" or count <= int(fault[2])):
            return self.fail(fault[1], body, prompt, chat)
        self.succeed(body, prompt, chat)

    def succeed(self, body: dict[str, Any], prompt: str, chat: bool) -> None:
        self.reply(200, json.dumps(self.completion_object(body, prompt, chat)).encode())

    def completion_object(self, body: dict[str, Any], prompt: str, chat: bool) -> dict[str, Any]:
        text, finish, n = completion(body, prompt)
        if said := SAID.search(prompt):
            text = f"So the final answer is: {said[1]}" if said[1] else prompt
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        if body.get("return_token_ids") and "return_token_ids" not in IGNORED:
            choice["prompt_token_ids"] = [len(word) for word in prompt.split()]
            choice["token_ids"] = [int(word[1:], 16) for word in text.split()] if not SAID.search(prompt) else []
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": n, "total_tokens": 0}
        kind = "chat.completion" if chat else "text_completion"
        return {"id": "x", "object": kind, "created": 0, "model": "good", "choices": [choice], "usage": usage}

    def error(self, status: int, message: str, **headers: str) -> None:
        self.reply(status, json.dumps({"error": {"message": message}}).encode(), **headers)

    def fail(self, fault: str, body: dict[str, Any], prompt: str, chat: bool) -> None:
        whole = json.dumps(self.completion_object(body, prompt, chat)).encode()
        if fault == "busy":
            self.error(429, "slow down", Retry_After="0")
        elif fault == "broken":
            self.error(500, "it broke")
        elif fault == "refused":
            self.error(400, "prompt is too long for this model")
        elif fault == "half":
            self.reply(200, whole[: len(whole) // 2])
        elif fault == "garbage":
            self.reply(200, b"<html>It works!</html>", "text/html")
        elif fault == "empty":
            self.reply(200, json.dumps({"object": "chat.completion", "choices": []}).encode())
        elif fault == "nothing":
            self.close_connection = True
        elif fault == "slow":
            time.sleep(30)
        elif fault == "leak":
            self.error(400, f"your header was {self.headers.get('Authorization')}")


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
