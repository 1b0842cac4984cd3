"""Addresses of models behind servers, ``MODEL@http://HOST:PORT/v1``, and the keys that go to each of them.

``secret`` finds a key in whatever a server sends back.
"""

import base64
import os
import re
from urllib.parse import SplitResult, urlsplit

from ...errors import InputError
from ...terminal import words


def address(model: str, option: str = "--model") -> tuple[str, str] | None:
    """``MODEL@http://HOST:PORT/v1`` -> (model, URL); None for anything else.

    Raises ``InputError`` that names ``option`` for a URL without a model, and for one that ``check_url`` refuses.
    """
    # The first "@" before a scheme: a URL may hold another one, in front of it a password.
    found = re.fullmatch(r"(?:(.*?)@)?(https?://.*)", model, re.DOTALL)
    if found is None:
        return None
    name, url = found.groups()
    check_url(url, option)
    if not name:
        raise InputError(f"{option} {model}: the model's name is missing; give MODEL@{url}")
    return name, url


def check_url(url: str, option: str) -> None:
    """Refuse a URL that is not a server's, and one that holds secrets: the URL is kept in the run folder."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, usable = None, False
    if parts is None or not usable:
        raise InputError(f"{option}: not a server URL; give http://HOST:PORT/v1")
    if parts.username or parts.password or parts.query:
        raise InputError(
            f"{option}: holds a user name, a password or a query, which would be kept in the run folder; "
            "put the key into an environment variable and name it with --api-key-env"
        )


def key_for(url: str, named: str | None, *, own: bool = False) -> str | None:
    """The key for a server, from the environment; None where it gets none.

    ``named`` is ``--api-key-env``: comma-separated ``HOST=VARIABLE`` or ``HOST:PORT=VARIABLE``, and a bare ``VARIABLE``
    for the command's ``own`` server. The most exact entry counts, whatever their order. Nothing else is sent anywhere
    (but ``OPENAI_API_KEY`` to its own service, see ``evaluation.engines.transport``). Raises ``InputError`` for a
    variable that is not set.
    """
    split = urlsplit(url)
    found: dict[int, str] = {}
    for entry in words(named):
        host, equals, variable = entry.rpartition("=")
        if exact := _named(split, host) if equals else int(own):
            found.setdefault(exact, variable)
    if not found:
        return None
    variable = found[max(found)]
    if not os.environ.get(variable):
        raise InputError(f"--api-key-env {variable}: not set in the environment; export it first")
    check_key(os.environ[variable], f"--api-key-env {variable}")
    return os.environ[variable]


def _named(url: SplitResult, host: str) -> int:
    """3 if ``HOST:PORT`` means the server of a URL, 2 for ``HOST``, else 0; IPv6 with or without brackets."""
    name, port = url.hostname or "", url.port or {"http": 80, "https": 443}.get(url.scheme)
    bare = f"[{name}]" if ":" in name else name
    return 3 if host.lower() == f"{bare}:{port}" else 2 if host.lower() in (name, bare) else 0


def check_key(key: str, named: str) -> None:
    """Refuse a key that cannot stand in a header, without showing it; ``named`` says where it comes from."""
    if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", key):
        raise InputError(
            f"{named}: the key holds a line end, a space at an end or a character beyond ASCII, "
            "so that it cannot be sent; export the key alone"
        )


def secret(key: str) -> re.Pattern[str]:
    """Finds a key in any letter case: as it is, escaped in a URL or (once or more) in JSON, hexadecimal, in Base64."""
    raw = key.encode()
    forms = ["".join(rf"(?:%{ord(c):02x}|\\+u{ord(c):04x}|\\*{re.escape(c)})" for c in key), raw.hex()]
    for before in range(3):  # Base64 depends on where in three bytes a text begins; bits shared with others are left
        coded = base64.b64encode(bytes(before) + raw).decode()[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        forms.append("".join({"+": "[-+]", "/": "[/_]"}.get(c, c) for c in coded))
    return re.compile("|".join(forms), re.IGNORECASE)
