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
from typing import Any

from json_server import JsonHandler, completion, cut, models, serve

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


class Handler(JsonHandler):
    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            return self.reply(200, models("good", **({"max_model_len": CONTEXT} if "context" in IGNORED else {})))
        with lock:
            counts = dict(seen)
        self.reply(200, counts)

    def do_POST(self) -> None:
        body = self.body()
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
        self.reply(200, self.completion(body, prompt, chat))

    def completion(self, body: dict[str, Any], prompt: str, chat: bool) -> dict[str, Any]:
        known = {k: v for k, v in body.items() if k not in IGNORED}
        text, finish, n = cut(words(prompt, known.get("temperature", 0.0), known.get("seed", 0)), known)
        if said := SAID.search(prompt):
            text = f"So the final answer is: {said[1]}" if said[1] else prompt
        choice: dict[str, Any] = {}
        if body.get("return_token_ids") and "return_token_ids" not in IGNORED:
            choice["prompt_token_ids"] = [len(word) for word in prompt.split()]
            choice["token_ids"] = [int(word[1:], 16) for word in text.split()] if not SAID.search(prompt) else []
        return completion(text, finish, (len(prompt.split()), n), "good", chat, **choice)

    def error(self, status: int, message: str, **headers: str) -> None:
        self.reply(status, {"error": {"message": message}}, None, **headers)

    def fail(self, fault: str, body: dict[str, Any], prompt: str, chat: bool) -> None:
        whole = json.dumps(self.completion(body, prompt, chat)).encode()
        if fault == "busy":
            self.error(429, "slow down", Retry_After="0")
        elif fault == "broken":
            self.error(500, "it broke")
        elif fault == "refused":
            self.error(400, "prompt is too long for this model")
        elif fault == "half":
            self.reply(200, whole[: len(whole) // 2])
        elif fault == "garbage":
            self.reply(200, b"<html>It works!</html>", Content_Type="text/html")
        elif fault == "empty":
            self.reply(200, {"object": "chat.completion", "choices": []})
        elif fault == "nothing":
            self.close_connection = True
        elif fault == "slow":
            time.sleep(30)
        elif fault == "leak":
            self.error(400, f"your header was {self.headers.get('Authorization')}")


if __name__ == "__main__":
    serve(Handler)
