"""A server with the OpenAI protocol whose answers follow from the prompt alone; it fails in several ways.

It answers to a question of ``material.CASES`` that the prompt holds, and keeps every request.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from json_server import JsonHandler, Server, completion
from references import material
from told_engine import drawn

PLACE = "<server>"
"""What stands in a command, and in what is compared, for the server's address."""
GOLDS = {q["question"]: q["answer"] for c in material.CASES for q in (c, *c["parts"])}
ASKED: list[dict[str, Any]] = []
_LOCK = threading.Lock()
_TIMES: Counter[str] = Counter()


class _Handler(JsonHandler):
    def do_GET(self) -> None:
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in ("told", "other")]
        self.reply(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        body = self.body()
        chat = self.path.endswith("/chat/completions")
        prompt = "\n".join(m["content"] for m in body["messages"]) if chat else body["prompt"]
        with _LOCK:
            ASKED.append({"path": self.path, "bearer": self.headers.get("Authorization"), **body})
            _TIMES[prompt] += 1
            times = _TIMES[prompt]
        question = max((q for q in GOLDS if q in prompt), key=len, default="")
        seed = str(body.get("seed")) if body.get("temperature") else ""
        luck = drawn(body["model"], prompt, seed) if question else 0.4
        if luck < 0.08:
            return self.reply(400, {"error": {"message": "content filter"}})
        if luck < 0.16 and times == 1:
            return self.reply(429, {"error": {"message": "slow down"}}, Retry_After="0")
        if luck < 0.24 and times == 1:
            return self.reply(200, b'{"choices": [{"mess')
        counted = "one two three four five six seven eight nine ten eleven twelve"
        text, finish = GOLDS.get(question, f"{drawn(prompt, seed)} {counted}" if seed else counted), "stop"
        if luck > 0.92:
            text, finish = "Let me think. There are", "length"
        elif luck > 0.7:
            text = f"So the final answer is: {text[::-1]}"
        elif luck > 0.6:
            text = f"<think>Hm, {text}?</think>So the final answer is: {text}."
        elif luck > 0.5:
            text = f"No cue, just {text}"
        else:
            text = f"So the final answer is: {text}"
        if cut := min((text.index(word) for word in body.get("stop") or () if word in text), default=0):
            text = text[:cut]
        if len(words := text.split()) > (limit := body.get("max_tokens", 1000)):
            text, finish = " ".join(words[:limit]), "length"
        name = "another" if 0.3 < luck < 0.36 else body["model"]
        self.reply(200, completion(text, finish, (len(prompt.split()), len(text.split())), name, chat))


class _Server(Server):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that closes its connection is no error; all others are shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def server() -> Iterator[str]:
    """The address of a running server that has not been asked anything."""
    ASKED.clear()
    _TIMES.clear()
    running = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_address[1]}"
    finally:
        running.shutdown()
        running.server_close()


def asked() -> list[dict[str, Any]]:
    """The requests since the last call, in an order of their own."""
    with _LOCK:
        found = sorted(ASKED, key=json.dumps)
        ASKED.clear()
    return found


CALLS: dict[str, Any] = dict.fromkeys(("asked", "asked again", "asked otherwise", "asked last"), asked)
