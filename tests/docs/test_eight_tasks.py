"""The eight tasks of ``hooks.md`` beside those tasks in TransformerLens 4.3: no longer, and with the same numbers."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import textwrap
from pathlib import Path
from typing import Any

import doc_pages
import pytest
import torch

PAGE = (doc_pages.ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
THEIRS = {
    "Cache activations": """
        logits, cache = model.run_with_cache(clean)
        print(cache["resid_post", 0].shape)
        """,
    "Logit lens": """
        from transformer_lens.tools.analysis import logit_lens
        print(logit_lens(model, clean, top_k=3).top_tokens(model.tokenizer))
        """,
    "Ablate a head": """
        def ablate(z, hook):
            z[:, :, 2] = 0
            return z
        without = model.run_with_hooks(clean, fwd_hooks=[("blocks.1.attn.hook_z", ablate)])
        print((without - model(clean))[0, -1].abs().max())
        """,
    "Mean ablation of neurons": """
        texts = model.to_tokens(["7 times 8 is", "3 times 4 is", "5 times 9 is"], prepend_bos=False)
        chosen = [3, 14, 15]
        mean = model.run_with_cache(texts)[1]["post", 1].mean((0, 1))
        def to_mean(x, hook):
            x[..., chosen] = mean[chosen]
            return x
        ablated = model.run_with_hooks(clean, fwd_hooks=[("blocks.1.mlp.hook_post", to_mean)])
        """,
    "Patching with a metric of your own": """
        from transformer_lens.patching import get_act_patch_resid_pre
        right, wrong = model.to_tokens("56 63", prepend_bos=False)[0, :2]
        def metric(logits):
            return logits[0, -1, right] - logits[0, -1, wrong]
        _, cache = model.run_with_cache(clean)
        recovered = get_act_patch_resid_pre(model, corrupted, cache, metric)
        """,
    "Path patching": """
        from transformer_lens.patching import get_act_patch_direct_path
        _, clean_cache = model.run_with_cache(clean)
        _, corrupted_cache = model.run_with_cache(corrupted)
        effect = get_act_patch_direct_path(model, clean, corrupted_cache, clean_cache, metric, 0, 1)[2, 0]
        """,
    "Steer while generating": """
        _, other = model.run_with_cache(corrupted)
        direction = cache["resid_post", 2][0, -1] - other["resid_post", 2][0, -1]
        with model.hooks(fwd_hooks=[("blocks.2.hook_resid_post", lambda x, hook: x + 4 * direction)]):
            steered = model.generate(clean, max_new_tokens=6, do_sample=False)
        print(model.tokenizer.decode(steered[0]))
        """,
    "See attention": """
        import circuitsvis as cv
        _, cache = model.run_with_cache("7 times 8 is")
        cv.attention.attention_patterns(model.to_str_tokens("7 times 8 is"), cache["pattern", 1][0])
        """,
}
"""The shortest way by its documentation. Its imports count, because ours are all in the page's first block."""
FIRST, *TASKS = [b.text for b in doc_pages.blocks(PAGE) if b.language == "python"]


def _length(code: str) -> int:
    return sum(bool(line.strip()) for line in code.splitlines())


def test_no_task_takes_more_lines_than_in_transformer_lens() -> None:
    for (task, theirs), ours in zip(THEIRS.items(), TASKS, strict=True):
        assert f"## {task}\n" in PAGE
        assert _length(ours) <= _length(theirs), task


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("transformer_lens") is None, reason="transformer_lens is not installed")
def test_both_ways_give_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

    from composcope.experiments.models.resolve import resolve_model
    from composcope.hooks import load_model

    monkeypatch.chdir(tmp_path)  # where a picture is saved
    ours: dict[str, Any] = {}
    was = torch.is_grad_enabled()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(FIRST.replace("path/to/model-folder", str(resolve_model("organism:twin").location)), ours)
            inside = load_model(str(resolve_model("organism:twin").location)).model
            bridge: Any = build_bridge_from_module(inside, type(inside).__name__, hf_config=inside.config)
            bridge.eval().tokenizer = ours["lm"].tokenizer
            theirs: dict[str, Any] = {"model": bridge, "clean": ours["clean"], "corrupted": ours["corrupted"]}
            bridge.to_tokens = lambda text, prepend_bos: ours["lm"].tokens(text)
            for (task, text), own in zip(THEIRS.items(), TASKS, strict=True):
                exec(own, ours)
                if "circuitsvis" not in text:
                    exec(textwrap.dedent(text), theirs)
                for name in ("without", "ablated") if "ablat" in task.lower() else ():
                    if name in theirs:
                        assert torch.allclose(ours[name], theirs[name], atol=1e-4), (task, name)
        for site, resid in ours["acts"].items():
            assert torch.allclose(resid, theirs["cache"]["resid_post", site.layer], atol=1e-4), site
        assert torch.allclose(torch.tensor(ours["recovered"])[:-1], theirs["recovered"][1:], atol=1e-4)
        assert theirs["steered"][0, ours["clean"].shape[1] :].tolist() == ours["steered"][0]
        assert _direct(ours) == pytest.approx(float(theirs["effect"]), abs=1e-4)
        # with a change of the receiver's input that is large enough to be seen
        ours["corrupt"] = {site: 50 * value for site, value in ours["corrupt"].items()}
        theirs["corrupted_cache"]["blocks.0.attn.hook_z"].mul_(50)
        exec(textwrap.dedent(THEIRS["Path patching"]).splitlines()[-1], theirs)
        assert _direct(ours) == pytest.approx(float(theirs["effect"]), abs=1e-3)
        assert abs(_direct(ours) - ours["metric"](ours["lm"].run(ours["clean"]).logits)) > 0.01
    finally:
        torch.set_grad_enabled(was)


def _direct(ours: dict[str, Any]) -> float:
    """The metric under the page's path patching, with the MLPs between sender and receiver frozen too."""
    from composcope.hooks import Site

    lm, clean = ours["lm"], ours["clean"]
    mlps = lm.run(clean, read=[Site(0, "mlp_out"), Site(1, "mlp_out")]).acts
    edits = ours["frozen"] | mlps | ours["corrupt"]
    queries = lm.run(clean, edit=edits, read=[Site(2, "q", head=0)]).acts
    return ours["metric"](lm.run(clean, edit=queries).logits)
