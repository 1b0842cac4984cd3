"""Loads a model and its tokenizer into memory from a folder, a GGUF file or a hub id.

``model, tokenizer = load("path/to/folder")``. Safetensors and GGUF only, and never a repository's own code.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from .devices import available
from .errors import ModelError
from .model_files import location as located
from .terminal import silent, to_stderr

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}


def dtype_of(dtype: str | torch.dtype) -> torch.dtype:
    """The dtype with a name, which may begin with ``torch.``. Raises ``ModelError`` for an unknown name."""
    if isinstance(dtype, torch.dtype):
        return dtype
    name = dtype.removeprefix("torch.")
    if name not in DTYPES:
        raise ModelError(f'dtype "{dtype}": use one of {", ".join(DTYPES)}')
    return DTYPES[name]


def load(
    name: str | Path,
    *,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[Any, Any]:
    """A causal language model, ready for inference, and its tokenizer.

    ``dtype=None`` means the dtype of the files on a GPU and float32 on a CPU. ``device="auto"`` spreads the model over
    all GPUs that this process sees (accelerate); None uses a GPU if there is one. ``say`` reports slow steps.

    Raises ``ModelError`` naming what is missing.
    """
    location = located(name, say)
    return load_weights(location, dtype=dtype, device=device, say=say), load_tokenizer(location)


@contextmanager
def _bars() -> Iterator[None]:
    """Switch the bars of transformers off where they are not wanted, and on again."""
    from transformers.utils import logging

    if not silent() or not logging.is_progress_bar_enabled():
        yield
        return
    with warnings.catch_warnings():  # the hub's bars may be fixed by an environment variable, which it warns of
        warnings.simplefilter("ignore")
        logging.disable_progress_bar()
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logging.enable_progress_bar()


_ONE_AT_A_TIME = Lock()
"""transformers ties weights in a state that all threads share."""


def load_weights(
    location: str,
    *,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    say: Callable[[str], None] | None = None,
) -> Any:
    """Only the model, from what ``model_files.location`` returned.

    ``say`` is told what is left out or changed; by default stderr. Raises ``ModelError``.
    """
    from transformers import AutoModelForCausalLM

    spread = device == "auto"
    where = None if spread else available(device)
    on_cpu = not torch.cuda.is_available() if where is None else where.type == "cpu"
    wanted = dtype_of(dtype) if dtype not in (None, "auto") else torch.float32 if on_cpu and dtype is None else "auto"
    try:
        with _ONE_AT_A_TIME, _bars():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                location, dtype=wanted, use_safetensors=True, trust_remote_code=False, output_loading_info=True,
                device_map="auto" if spread else None,
            )  # fmt: skip
            model, found = loaded
    except Exception as e:  # the libraries raise errors of any kind for a damaged folder
        fix = "save the model there again" if Path(location).is_dir() else "check name and network, or give a folder"
        raise ModelError(f"{location}: cannot be loaded as a causal language model ({reason(e)}); {fix}") from e
    for note in (*_check_whole(location, model, found), *cap_attention_scores(model)):
        (say or to_stderr)(note)
    if where is not None:
        model.to(where)  # type: ignore[arg-type]
    return model.eval()


def _check_whole(location: str, model: Any, found: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence if weights are left out.

    Raises ``ModelError`` where transformers would fill weights with random numbers, or open a model of another kind.
    """
    if missing := sorted(found.get("missing_keys") or ()):
        raise ModelError(
            f"{location}: {len(missing)} weights of {type(model).__name__} are not in its files (first: {missing[0]}), "
            "and would be random; save the whole model there, or mend the sizes in config.json"
        )
    masked = [name for name in model.config.architectures or () if name.endswith("MaskedLM")]
    if masked:
        raise ModelError(
            f"{location}: {masked[0]} in config.json fills gaps and reads both ways; give a causal language model"
        )
    if not (unused := sorted(found.get("unexpected_keys") or ())):
        return ()
    return (
        f"{location}: {len(unused)} weights in its files are not part of {type(model).__name__} as config.json "
        f"describes it, and are left out (first: {unused[0]})",
    )


def cap_attention_scores(model: Any) -> tuple[str, ...]:
    """Give eager attention to a model that caps attention scores (Gemma 2) but has sdpa; a sentence if that was so.

    Under sdpa, transformers before 5.21 leaves the cap out without a word, so the model is another one.
    """
    config = model.config.get_text_config(decoder=True)
    if getattr(config, "attn_logit_softcapping", None) is None or config._attn_implementation != "sdpa":
        return ()
    model.set_attn_implementation("eager")
    return (f"{type(model).__name__}: its attention is eager from now on; sdpa would leave out the cap on its scores",)


def rotary_limits(model: Any) -> list[int]:
    """Lengths above which a batch takes other rotary angles in every row, at every position."""
    config = model.config.get_text_config(decoder=True)
    ropes = getattr(config, "rope_parameters", None) or {}
    ropes = [r for r in (ropes, *ropes.values()) if isinstance(r, dict) and r.get("rope_type") == "longrope"]
    return sorted({int(r["original_max_position_embeddings"]) for r in ropes})


def end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Every token that ends an answer: those of the generation config, the model config and the tokenizer."""
    found: dict[int, None] = {}
    for holder in (getattr(model, "generation_config", None), model.config, tokenizer):
        ids = getattr(holder, "eos_token_id", None)
        found |= dict.fromkeys([ids] if isinstance(ids, int) else ids or ())
    return tuple(found)


def load_tokenizer(location: str) -> Any:
    """The tokenizer in a model's folder. Raises ``ModelError``."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(location, trust_remote_code=False)
    except Exception as e:
        raise ModelError(f"{location}: no usable tokenizer ({reason(e)}); save it there with save_pretrained") from e
    # A prompt beyond the context is reported with its case; the library's warning would name neither.
    getattr(tokenizer, "deprecation_warnings", {})["sequence-length-is-longer-than-the-specified-maximum"] = True
    return tokenizer


def reason(e: Exception) -> str:
    """A library's error message as one line."""
    text = " ".join(str(e).split())
    if "trust_remote_code" in text:
        return "it needs its own code (trust_remote_code), which composcope never runs"
    return text[:300] or type(e).__name__
