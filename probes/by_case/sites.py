"""Which activations are put in at one position of a prompt, and how they are called. Importing this needs no torch."""

from __future__ import annotations

from typing import Literal

SITES: dict[Literal["resid_post", "attn_out", "mlp_out"], str] = {
    "resid_post": "residual stream",
    "attn_out": "attention",
    "mlp_out": "MLP",
}
