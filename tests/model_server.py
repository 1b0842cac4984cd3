"""An OpenAI-compatible server over the transformers engine, with vLLM's command line and its token ids.

``python model_server.py --model FOLDER [--port N] ...``; unknown arguments are passed over. Prints its port. Asked for
the model ``silent`` it leaves token ids out. Like vLLM it refuses requests without the key of ``VLLM_API_KEY``.
"""

from __future__ import annotations

import argparse
import os
import threading
from typing import Any

import torch
from json_server import JsonHandler, completion, models, serve

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


class Handler(JsonHandler):
    def do_GET(self) -> None:
        known = models(options.served_model_name, max_model_len=engine.context)
        self.reply(200, known if self.path.endswith("/models") else {"status": "ok"})

    def do_POST(self) -> None:
        body = self.body()
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
        choice: dict[str, Any] = {}
        if body.get("return_token_ids") and body["model"] != "silent":
            choice = {"prompt_token_ids": response.prompt_ids, "token_ids": response.response_ids}
        tokens, name = (response.prompt_tokens, response.response_tokens), options.served_model_name
        self.reply(200, completion(response.text, response.finish_reason, tokens, name, chat, **choice))


if __name__ == "__main__":
    serve(Handler, options.port)
