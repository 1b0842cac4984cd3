"""Model: a causal language model opened for reading and editing, with one verb, ``run``.

>>> lm = load_model("path/or/hub-id")
>>> lm.run(*lm.pad([[5, 31, 77]]), read=[Site(0, "mlp_out")]).logits  # batch pos vocab
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from transformers import Cache, PreTrainedModel

from ..devices import available
from ..errors import ModelError
from ..interrupts import uninterrupted
from ..model_files import location
from ..model_loading import cap_attention_scores, dtype_of, end_ids, load_tokenizer, load_weights
from ..terminal import to_stderr
from . import backends, length_limits, placement
from .anatomy import Anatomy, resolve
from .backends import transformers as backend_transformers
from .generation import ends, greedy
from .head import Unembedding, unembedding_of
from .numerics import check_ends, check_left, check_made, check_ready, check_unmasked, foreign_hooks, unwrapped
from .parts import embedding_of, empty_cache, input_device
from .sites import Edit, Reducer, Run, Site, check_functions, check_site, put, split

EMPTY = "a prompt is empty; every prompt needs at least one token"


class Model:
    """A causal language model with its tokenizer, resolved and verified. Not thread-safe: one ``run`` at a time.

    The model's weights, buffers, modules and settings are bit for bit the same after every ``run``, also after an
    exception or Ctrl-C. ``run`` goes through the backend; the probes' engines (suffix recomputation, capture) always
    through ``model``, a transformers model that shares every weight with what the backend runs.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: Any = None, anatomy: Anatomy | None = None,
        backend: str = "transformers", opened: Any = None,
    ):  # fmt: skip
        check_ready(model)
        self.model = model
        self.tokenizer = tokenizer
        self.backend = backend
        with length_limits.keep_rotary_angles(model):
            self.anatomy = resolve(model) if anatomy is None else anatomy
            self.library = backends.open_library(backend, opened, model, self.anatomy)
        self.computes_in: torch.dtype | None = None
        """The dtype of activations where it is not that of the weights (``precision.widened``)."""
        self._running = False
        self.notes: tuple[str, ...] = ()
        if tokenizer is not None and getattr(tokenizer, "pad_token_id", None) is None:
            self.notes = (
                f"the tokenizer has no pad token; id {self.pad_id} pads on the right instead (no token attends to it)",
            )

    def __repr__(self) -> str:
        a = self.anatomy
        return f"<{type(self.model).__name__}: {a.n_layers} layers, {a.n_heads} heads, {self.dtype} on {self.device}>"

    @property
    def device(self) -> torch.device:
        """The device of the token ids."""
        return input_device(self.model)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of activations."""
        return self.computes_in or embedding_of(self.model).dtype

    @property
    def pad_id(self) -> int:
        """Id for right padding. Any id would do, because no real token attends to it."""
        for name in ("pad_token_id", "eos_token_id"):
            found = getattr(self.tokenizer, name, None)
            if isinstance(found, int) and found < embedding_of(self.model).shape[0]:
                return found  # a pad token may have been added to the tokenizer alone
        return 0

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a response, as in an evaluation."""
        return end_ids(self.model, self.tokenizer)

    @cached_property
    def identity(self) -> str:
        """sha256 over name, type, shape and bytes of every weight and buffer of a checkpoint."""
        digest = hashlib.sha256()
        for name, value in placement.state_of(self.model):
            for tensor in placement.tensors_in(value):
                if not isinstance(tensor, Tensor):  # quantized modules keep settings beside their weights
                    digest.update(f"{name}:{tensor}".encode())
                    continue
                digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
                plain = tensor.int_repr() if tensor.is_quantized else tensor
                digest.update(plain.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()

    @cached_property
    def unembedding(self) -> Unembedding:
        """The final norm and the head."""
        with self._alone():
            return unembedding_of(self.model, self.anatomy.layers[-1].block)

    def unembed(
        self, resid: Float[Tensor, "*any d_model"], tokens: Sequence[int] | None = None
    ) -> Float[Tensor, "*any token"]:
        """Logits that the final norm and the head make of a residual stream after any block (the logit lens).

        After the last block they are the model's own. ``tokens`` limits them to some of the vocabulary.
        """
        if resid.shape[-1:] != (self.anatomy.d_model,):
            need = f"the last axis has to be {self.anatomy.d_model} wide"
            raise ModelError(f"residual stream of shape {tuple(resid.shape)}; {need}")
        return self.unembedding(resid, tokens, self.computes_in)

    def run(
        self,
        ids: Shaped[Tensor, "*batch pos"],
        mask: Shaped[Tensor, "_ _"] | None = None,
        *,
        read: Iterable[Site] | Mapping[Site, Reducer | None] = (),
        edit: Mapping[Site, Edit | Float[Tensor, "..."]] | None = None,
        past: Cache | None = None,
        logits_at: Sequence[int] | None = None,
    ) -> Run:
        """One forward pass: ``batch pos`` token ids to logits and the activations asked for.

        Args:
            ids: token ids, ``batch pos``; right-pad rows of unequal length (nothing real attends to the padding).
            mask: 1 for real tokens, ``batch pos`` (or ``batch past+pos``; that of ``prefill`` is known); not needed for
                right padding, except in models that compute long texts differently throughout (longrope).
            read: sites to keep, or a mapping from site to a reducer that is applied at once, so that only its result is
                kept. A site that is also edited is read after the edit.
            edit: functions from a site's activation to the one that replaces it, of the same shape; or the tensor that
                replaces it, so that ``acts`` of one run can be put into another (``put``: only at some positions).
            past: keys and values of earlier tokens (``prefill``); never changed.
            logits_at: positions whose logits are computed, in this order, from the end if negative; ``()`` for none.

        Activations are attached to the graph unless grad is off, so ``torch.autograd.grad(score, run.acts[site])``
        works. Raises ``ModelError`` for sites that the model does not have, positions past its context, edits that
        change a shape, NaN or infinite logits, a model in training mode or under autocast, rows that begin with padding
        where no mask is given, and rows (or ``past`` and what follows) on both sides of a length from which the model
        computes whole texts differently. Hooks of others are named in the result (``Run.hooks``).
        """
        wanted: dict[Site, Reducer | None] = dict(read) if isinstance(read, Mapping) else dict.fromkeys(read)
        changes = _functions(edit)
        check_functions("read", {s: f for s, f in wanted.items() if f is not None})
        wanted, changes, with_heads = split(wanted, changes, self.anatomy)
        for site in (*wanted, *changes):
            check_site(site, self.anatomy.n_layers, self.anatomy.n_experts)
        ids = self._check_ids(ids)
        check_made(mask, past)
        if past is not None and len(past.layers) > (n := self.anatomy.n_layers):
            raise ModelError(f"past of {len(past.layers)} layers, and the model has {n}; give what its prefill returns")
        mask = backend_transformers.with_past(ids, None if mask is None else mask.to(self.device), past)
        offset = 0 if past is None else int(past.get_seq_length())
        backend_transformers.check_shapes(ids, mask, past, offset)
        check_left(self.model, self.anatomy, mask)
        length_limits.check_batch(self.model, ids, mask, offset)
        if mask is None and past is None:
            check_unmasked(ids, self.tokenizer)
        logits_at = backend_transformers.check_positions(logits_at, ids.shape[1])
        hooks = foreign_hooks(self.model)
        with self._alone(), length_limits.keep_rotary_angles(self.model):
            if self.library is not None:
                run = self.library.run(ids, mask, wanted, changes, past, logits_at)
            else:
                run = backend_transformers.run(self.model, self.anatomy, ids, mask, wanted, changes, past, logits_at)
        return run._replace(acts=with_heads(run.acts), hooks=hooks)

    def read_trunk(
        self, ids: Int[Tensor, "batch pos"], read: Iterable[Site] | Mapping[Site, Reducer | None]
    ) -> dict[Site, Shaped[Tensor, "..."]]:
        """Activations of right-padded ids, without logits; ``read`` as in ``run``."""
        wanted: dict[Site, Reducer | None] = dict(read) if isinstance(read, Mapping) else dict.fromkeys(read)
        for site in wanted:
            check_site(site, self.anatomy.n_layers, self.anatomy.n_experts)
        with self._alone(), length_limits.keep_rotary_angles(self.model):
            return backend_transformers.trunk(self.model, self.anatomy, self._check_ids(ids), wanted)

    @torch.no_grad()
    def prefill(self, ids: Shaped[Tensor, "*batch pos"], mask: Shaped[Tensor, "_ _"] | None = None) -> Cache:
        """Keys and values of ``ids`` for use as ``past``; sliding-window layers evict nothing."""
        ids = self._check_ids(ids)
        check_made(mask)
        mask = None if mask is None else mask.to(self.device)
        if mask is None:
            check_unmasked(ids, self.tokenizer)
            check_ends(ids.tolist(), self.tokenizer, "give the mask (ones where they are meant)")
        backend_transformers.check_shapes(ids, mask, None, 0)
        check_left(self.model, self.anatomy, mask)
        cache = empty_cache(self.model)
        positions = backend_transformers.position_ids(ids, mask, 0, self.anatomy.context)
        length_limits.check_batch(self.model, ids, mask, 0)
        with self._alone(), length_limits.keep_rotary_angles(self.model):
            self.model(
                input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
            )
        if mask is not None:
            backend_transformers.note_mask(cache, mask)
        return cache

    def generate(
        self, prompts: str | Sequence[str | Sequence[int]] | Int[Tensor, "batch pos"], max_new_tokens: int,
        edit: Mapping[Site, Edit | Float[Tensor, "..."]] | None = None, stop_ids: Sequence[int] | int | None = None,
    ) -> list[list[int]]:  # fmt: skip
        """Greedy continuations of prompts (texts, or token ids), the token that ended one included.

        ``edit``: as in ``run``; each function sees a prompt's activation (``batch pos ...``) once, and then that of
        every new token (``batch 1 ...``), in batches of prompts of one length. ``stop_ids``: by default ``eos_ids``.
        """
        changes = split({}, _functions(edit), self.anatomy)[1]
        for site in changes:
            check_site(site, self.anatomy.n_layers, self.anatomy.n_experts)
        rows = self._rows(prompts)
        for row in rows:
            self._check_ids(torch.tensor(row))
        check_ends(rows, self.tokenizer)
        stops = ends(self.eos_ids, stop_ids)
        with self._alone(), length_limits.keep_rotary_angles(self.model):
            return greedy(self.model, self.anatomy, rows, changes, max_new_tokens, stops)

    def tokens(self, text: str | Sequence[str]) -> Int[Tensor, "batch pos"]:
        """Token ids of one text or several, as the tokenizer begins a text, padded on the right: what ``run`` takes.

        A text that begins with the tokenizer's first token in writing (``<bos>``) gets no second one.

        Raises ``ModelError`` without a tokenizer, and for a text without a token.
        """
        if self.tokenizer is None:
            raise ModelError("no tokenizer: give load_model one (tokenizer=...), or token ids in place of text")
        rows = [self.tokenizer(text).input_ids for text in ([text] if isinstance(text, str) else text)]
        begin = getattr(self.tokenizer, "bos_token_id", None)
        return self.pad(row[1:] if begin is not None and list(row[:2]) == [begin, begin] else row for row in rows)[0]

    def _rows(self, prompts: Any) -> list[list[int]]:
        """The token ids of prompts, each without padding."""
        many = [prompts] if isinstance(prompts, str) else list(prompts)
        if any(isinstance(p, int) for p in many):
            raise ModelError("prompts are the token ids of one prompt; give a list of prompts: [ids]")
        rows = [self.tokens(p)[0].tolist() if isinstance(p, str) else torch.as_tensor(p).tolist() for p in many]
        if not all(rows):
            raise ModelError(EMPTY)
        return rows

    def pad(self, rows: Iterable[Iterable[int]]) -> tuple[Int[Tensor, "batch pos"], Int[Tensor, "batch pos"]]:
        """Rows of token ids, padded on the right: ids and mask."""
        lists = [list(r) for r in rows]
        if not lists or not all(lists):
            raise ModelError(EMPTY)
        width = max(map(len, lists))
        ids = torch.full((len(lists), width), self.pad_id, dtype=torch.long)
        mask = torch.zeros(len(lists), width, dtype=torch.long)
        for i, row in enumerate(lists):
            given = torch.tensor(row)
            if given.is_floating_point():
                raise ModelError(f"prompt {i} holds fractions, as {row[0]}; give token ids, which are whole numbers")
            ids[i, : len(row)] = given
            mask[i, : len(row)] = 1
        return ids.to(self.device), mask.to(self.device)

    @uninterrupted
    def _alone(self) -> Iterator[None]:
        """Refuse a second run during the first, also from another thread: it would call the hooks of the first."""
        if self._running:
            raise ModelError(
                f"{type(self.model).__name__} is running already: an edit or reducer runs the model again, or another "
                "thread does; read first, in a separate run, what the edit needs"
            )
        self._running = True
        try:
            yield
        finally:
            self._running = False

    def _check_ids(self, ids: Tensor) -> Tensor:
        check_ready(self.model)
        if not isinstance(ids, Tensor) or ids.dtype is torch.bool or ids.is_floating_point() or ids.is_complex():
            given = str(ids.dtype) if isinstance(ids, Tensor) else type(ids).__name__
            raise ModelError(
                f"token ids of type {given}; give a tensor of whole numbers (pad(rows) makes one of lists)"
            )
        if ids.dim() == 1:
            ids = ids[None]
        if ids.dim() != 2 or ids.numel() == 0:
            raise ModelError(f"token ids of shape {tuple(ids.shape)}; need a non-empty batch x pos")
        rows = int(embedding_of(self.model).shape[0])
        lowest, highest = int(ids.min()), int(ids.max())
        if lowest < 0 or highest >= rows:
            wrong = lowest if lowest < 0 else highest
            raise ModelError(f"token id {wrong}: the model's vocabulary has {rows}; wrong tokenizer?")
        return ids.to(self.device, torch.long)


def load_model(
    path_or_object: str | Path | PreTrainedModel | Any,
    tokenizer: Any = None,
    backend: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    anatomy: Anatomy | None = None,
) -> Model:
    """Open a model from a folder, a GGUF file or a hub id, or one that is already in memory.

    Args:
        tokenizer: object or path; by default the one in the model's folder, or none for a model in memory.
        backend: ``transformers``, ``transformer_lens`` or ``nnsight``; by default that of the object passed in (a
            TransformerBridge or NNsight object), else transformers. The other two never change a transformers model
            that is passed in: they get a twin that shares its weights.
        dtype: default is that of the checkpoint, except on the CPU, where it is float32.
        device: default is ``cuda`` if there is one; models in memory stay on their device.
        anatomy: for architectures that the structural search cannot resolve.

    Raises ``ModelError`` for unknown paths, folders without weights, GGUF files that cannot be read, code that would
    have to be trusted, models in training mode, and architectures that cannot be resolved.
    """
    if backend is not None and backend not in backends.BACKENDS:
        raise ModelError(f'backend "{backend}": use one of {", ".join(backends.BACKENDS)}')
    path_or_object, notes = unwrapped(path_or_object)
    home = backends.backend_of(path_or_object)
    if home != "transformers":
        if backend not in (None, home) or dtype is not None or device is not None:
            raise ModelError(f"a model opened in {home}: give no other backend, dtype or device with it")
        model = backends.plain(home, path_or_object)
        return Model(model, _tokenizer(tokenizer), anatomy, home, path_or_object)
    backend = backend or "transformers"
    if isinstance(path_or_object, PreTrainedModel):
        if dtype is not None and dtype_of(dtype) != path_or_object.dtype:
            raise ModelError(
                f"dtype {dtype}: the model in memory is {path_or_object.dtype}; convert it before handing it over"
            )
        model = path_or_object if device is None else path_or_object.to(available(device))  # type: ignore[arg-type]
        notes += cap_attention_scores(model)
        found = Model(model, _tokenizer(tokenizer), anatomy, backend)
        for note in notes:
            to_stderr(note)
        found.notes += notes
        return found
    if not isinstance(path_or_object, str | Path):
        raise ModelError(
            f"model of type {type(path_or_object).__name__}; need a path or a transformers PreTrainedModel"
        )
    path = location(path_or_object)
    model = load_weights(path, dtype=dtype, device=device)
    model.requires_grad_(False)
    return Model(model, _tokenizer(path if tokenizer is None else tokenizer), anatomy, backend)


def _functions(edit: Mapping[Site, Edit | Float[Tensor, "..."]] | None) -> dict[Site, Edit]:
    if edit is not None and not isinstance(edit, Mapping):
        raise ModelError(f"edit of type {type(edit).__name__}; give {{site: function or tensor}}")
    found = {site: put(e) if isinstance(e, Tensor) else e for site, e in (edit or {}).items()}
    check_functions("edit", found, " or a tensor")
    return found


def _tokenizer(tokenizer: Any) -> Any:
    return load_tokenizer(location(tokenizer)) if isinstance(tokenizer, str | Path) else tokenizer
