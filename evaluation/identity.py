"""The identity of a model: hashes of weights, configuration, tokenizer and chat template.

    folder_identity("path/to/model")["weights"]

Two models with the same identity give the same greedy answers up to numerics; dtype and library versions are
provenance, not identity. Imports torch only for models that are already in memory.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..files import file_sha256, text_hash

# How a configuration was written; none of this changes an answer.
_CONFIG_NOISE = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "_attn_implementation", "use_cache"}
_CHUNK = 1 << 22


def folder_weights(folder: str | Path) -> str:
    """Hash of the safetensors files of a model folder, in order of name.

    Raises ``ModelError`` for a folder without them.
    """
    files = sorted(Path(folder).glob("*.safetensors"))
    if not files:
        raise ModelError(f"{folder}: no *.safetensors weights here; save the model with save_pretrained")
    return text_hash(f"{p.name}:{file_sha256(p)}" for p in files)


def model_weights(model: Any) -> str:
    """Hash of the parameters and buffers of a model in memory: names, shapes, dtypes and every byte."""
    import torch

    sha = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        sha.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8).numpy()
        for start in range(0, len(flat), _CHUNK):
            sha.update(flat[start : start + _CHUNK].data)
    return sha.hexdigest()


def config_hash(config: Mapping[str, Any]) -> str:
    """Hash of a model configuration without what does not change an answer (versions, dtype, paths)."""
    kept = {k: v for k, v in config.items() if k not in _CONFIG_NOISE}
    return text_hash([json.dumps(kept, sort_keys=True, default=str)])


def tokenizer_hash(tokenizer: Any) -> str:
    """Hash of what decides token ids: the fast tokenizer's own definition, or class and vocabulary of a slow one."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        parts = [type(tokenizer).__name__, json.dumps(sorted(tokenizer.get_vocab().items()))]
    else:
        # Padding and truncation are settings of the last call, not of the tokenizer.
        state = {k: v for k, v in json.loads(backend.to_str()).items() if k not in ("padding", "truncation")}
        parts = [json.dumps(state, sort_keys=True)]
    special = {k: str(v) for k, v in tokenizer.special_tokens_map.items()}
    return text_hash([*parts, json.dumps(special, sort_keys=True)])


def chat_template_hash(tokenizer: Any) -> str:
    """Hash of the chat template."""
    return text_hash([json.dumps(tokenizer.chat_template, sort_keys=True), "{}"])  # as earlier journals have it


def local_identity(model: Any, tokenizer: Any, folder: str | Path | None = None) -> dict[str, str]:
    """Identity of a transformers model.

    With ``folder`` the weights are hashed from the files they were loaded from, so that dtype does not enter; a model
    that only exists in memory is hashed as it stands.
    """
    return _identity(model_weights(model) if folder is None else folder_weights(folder), model.config, tokenizer)


def _identity(weights: str, config: Any, tokenizer: Any) -> dict[str, str]:
    return {
        "weights": weights,
        "config": config_hash(config.to_dict()),
        "tokenizer": tokenizer_hash(tokenizer),
        "chat_template": chat_template_hash(tokenizer),
    }


def folder_identity(folder: str | Path) -> dict[str, str]:
    """Identity of the model in a folder without loading its weights: equal to the one of the model loaded from there.

    Raises ``ModelError`` for a folder that holds no model.
    """
    from transformers import AutoConfig, AutoTokenizer

    weights = folder_weights(folder)
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as e:
        reason = next((line for line in str(e).splitlines() if line.strip()), type(e).__name__)
        raise ModelError(f"{folder}: configuration or tokenizer cannot be read ({reason})") from e
    return _identity(weights, config, tokenizer)
