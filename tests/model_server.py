"""An OpenAI-compatible server over the transformers engine, with vLLM's command line and its token ids.

``python model_server.py --model FOLDER [--port N] ...``; unknown arguments are passed over. Prints its port. Asked for
the model ``silent`` it leaves token ids out. Like vLLM it refuses requests without the key of ``VLLM_API_KEY``.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

from composcope.evaluation.asks import Ask
from composcope.evaluation.engines.local import LocalEngine

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--served-model-name", default="target")
parser.add_argument("--port", type=int, default=0)
options, _ = parser.parse_known_args()
torch.set_num_threads(1)
engine = LocalEngine(options.model)
lock = threading.Lock()


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
        entry = {"id": options.served_model_name, "object": "model", "max_model_len": engine.context}
        self.reply(200, {"object": "list", "data": [entry]} if self.path.endswith("/models") else {"status": "ok"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = os.environ.get("VLLM_API_KEY")
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            return self.reply(401, {"error": {"message": "Unauthorized"}})
        chat = self.path.endswith("/chat/completions")
        ask = Ask(
            "case", "whole", body["messages"][0]["content"] if chat else body["prompt"], gold="", answer_type="text",
            prompting="chat" if chat else "raw", max_tokens=body["max_tokens"], temperature=body["temperature"],
            stop=tuple(body.get("stop") or ()), seed=body.get("seed", 0),
        )  # fmt: skip
        with lock:
            [(_, response)] = engine.answer([ask])
        choice: dict[str, Any] = {"index": 0, "finish_reason": response.finish_reason}
        choice |= {"message": {"role": "assistant", "content": response.text}} if chat else {"text": response.text}
        if body.get("return_token_ids") and body["model"] != "silent":
            choice |= {"prompt_token_ids": response.prompt_ids, "token_ids": response.response_ids}
        usage = {"prompt_tokens": response.prompt_tokens, "completion_tokens": response.response_tokens}
        kind = "chat.completion" if chat else "text_completion"
        whole = {"id": "x", "object": kind, "created": 0, "model": options.served_model_name, "choices": [choice]}
        self.reply(200, {**whole, "usage": {**usage, "total_tokens": sum(usage.values())}})


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
