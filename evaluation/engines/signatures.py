"""Whether the name that a server signs its answers with is the model that was asked.

Servers sign with the dated name of an alias, without the owner's name, or with a file's name; these count as the same.
Everything else is another model until the user says that it is not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from ..asks import Response

SHARE = 0.05
"""Share of foreign signatures above which asking stops."""
LEAST = 3
"""Foreign signatures below which it goes on, whatever their share."""
_DATED = re.compile(r"(?:[-@:](?:\d{4}(?:-?\d\d){0,2}|\d{3,4}|main|latest))$")


def same_model(asked: str, signed: str) -> bool:
    """Whether two names mean one model: ``gpt-4o`` and ``gpt-4o-2024-08-06`` do, ``gpt-4o`` and ``gpt-4o-mini`` not."""
    names = [name.strip().lower().rstrip("/").removesuffix(".gguf") for name in (asked, signed)]
    shorts = [name.rpartition("/")[2] for name in names]
    # Two owners of one name are two models; a server that leaves the owner out means the one that was asked.
    if names[0] != names[1] and all("/" in name for name in names) and not _nested(*names):
        return False
    one, other = shorts
    undated = [_DATED.sub("", name) for name in shorts]
    moving = [name.endswith(("-latest", ":latest")) for name in shorts]
    return one == other or one == undated[1] or other == undated[0] or (any(moving) and undated[0] == undated[1])


def _nested(one: str, other: str) -> bool:
    """Whether one is the other inside a folder: ``models/owner/name``."""
    short, long = sorted((_DATED.sub("", one), _DATED.sub("", other)), key=len)
    return long == short or long.endswith(f"/{short.lstrip('/')}")


def foreign(asked: str, signed: str | None, accepted: Collection[str] = ()) -> bool:
    """Whether an answer is signed by a model that was neither asked nor accepted."""
    return bool(signed) and not any(same_model(name, str(signed)) for name in (asked, *accepted))


def count(responses: Iterable[Response], identity: Mapping[str, str], accepted: Collection[str] = ()) -> dict[str, int]:
    """How many answers each foreign name signed; empty for a model that no server knows by its name."""
    found: dict[str, int] = {}
    asked = identity.get("model")
    for response in responses if asked is not None else ():
        signed = (response.provenance or {}).get("model")
        if response.finish_reason != "error" and isinstance(signed, str) and foreign(str(asked), signed, accepted):
            found[signed] = found.get(signed, 0) + 1
    return found
